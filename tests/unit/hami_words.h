/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What HAMi, its relatives and their users write, as tests spell it. */
#include "literals.h"

#include <gpuledger/dialect.h>

#define MIB (INT64_C(1) << 20)
#define GPU "nvidia.com/gpu"
#define MEM "nvidia.com/gpumem"
#define PERCENT "nvidia.com/gpumem-percentage"
#define CORES "nvidia.com/gpucores"
#define VGPU "volcano.sh/vgpu-number"
#define VMEM "volcano.sh/vgpu-memory"
#define VCORES "volcano.sh/vgpu-cores"

#define REGISTERED "hami.io/node-nvidia-register"
#define ALLOCATED "hami.io/vgpu-devices-allocated"

/* A card in seven fields. */
#define A7 "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:"

#define WITH(...) {.name = "c", .limits = PAIRS(__VA_ARGS__)}
#define PLAIN {.name = "p"}
#define INIT(...) {.name = "i", .init = true, .limits = PAIRS(__VA_ARGS__)}

static inline const char *find(const struct annotations *annotations, const char *key)
{
    for (size_t i = 0; i < annotations->n; i++) {
        if (g_str_equal(annotations->items[i].key, key))
            return annotations->items[i].value;
    }
    return NULL;
}
