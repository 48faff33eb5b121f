/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What gpushare's node side and its users write, as tests spell it. */
#include "literals.h"

#include <check.h>
#include <gpuledger/dialect.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define DEV "ALIYUN_COM_GPU_MEM_DEV"
#define POD "ALIYUN_COM_GPU_MEM_POD"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define CARD_MEMORY "gpuledger.io/card-memory"
#define GFD "nvidia.com/gpu.memory"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
/* 2026-01-01T00:00:00.000000001Z, as the node side and other extenders write it. */
#define TODAY_NS INT64_C(1767225600000000001)
#define TODAY_TEXT "1767225600000000001"

#define WITH(amount)                                                                               \
    {                                                                                              \
        .name = "c", .limits = PAIRS({MEM, amount})                                                \
    }
#define INIT(amount)                                                                               \
    {                                                                                              \
        .name = "i", .init = true, .limits = PAIRS({MEM, amount})                                  \
    }
#define SIDECAR(amount)                                                                            \
    {                                                                                              \
        .name = "s", .init = true, .sidecar = true, .limits = PAIRS({MEM, amount})                 \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        .name = "p", .limits = PAIRS({"cpu", "500m"})                                              \
    }

#define SEVERAL REQUEST_SEVERAL_GPU_CONTAINERS
#define INIT_TRAIT REQUEST_GPU_INIT_CONTAINER

static const struct dialect *gpushare;
static struct dialect_options options;

static inline void setup(void)
{
    gpushare = dialect_find("gpushare");
    ck_assert_ptr_nonnull(gpushare);
    options = (struct dialect_options){0};
}

/* The pairs whose value is there. */
static inline struct string_pairs present(struct string_pair *items, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (items[i].value)
            items[kept++] = items[i];
    }
    return (struct string_pairs){items, kept};
}
