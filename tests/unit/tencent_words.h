/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What gpu-manager and its users write, as tests spell it, and a ledger to read it into. Whatever a
 * test did, teardown finds usage to be the sum of its parts.
 */
#include "ledger_end.h"
#include "literals.h"

#include <check.h>
#include <gpuledger/dialect.h>
#include <string.h>

#define CORE "tencent.com/vcuda-core"
#define MEM "tencent.com/vcuda-memory"
#define TIME "tencent.com/predicate-time"
#define NODE "tencent.com/predicate-node"
#define IDX "tencent.com/predicate-gpu-idx-"
#define ASSIGNED "tencent.com/gpu-assigned"
#define CORE_LIMIT "tencent.com/vcuda-core-limit"
#define CARD_MEMORY "gpuledger.io/card-memory"
#define CARD_ORDER "gpuledger.io/card-order"

#define MIB (INT64_C(1) << 20)
#define BLOCK (256 * MIB)
#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(1767225600) * SECOND)
#define PATIENCE (30 * SECOND)

#define WITH(core, memory)                                                                         \
    {                                                                                              \
        .name = "c", .limits = PAIRS({CORE, core}, {MEM, memory})                                  \
    }
#define INIT(core, memory)                                                                         \
    {                                                                                              \
        .name = "i", .init = true, .limits = PAIRS({CORE, core}, {MEM, memory})                    \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        .name = "p", .limits = PAIRS({"cpu", "1"})                                                 \
    }
#define POD(...)                                                                                   \
    {                                                                                              \
        .ns = "ml", .name = "a-0", .uid = "u1", CONTAINERS(__VA_ARGS__)                            \
    }

static const struct dialect *tencent;
static struct dialect_options options;
static struct ledger *book;

static inline void setup(void)
{
    tencent = dialect_find("tencent");
    ck_assert_ptr_nonnull(tencent);
    options = (struct dialect_options){0};
    book = ledger_new();
}

static inline void teardown(void)
{
    ledger_end(book);
}

static inline const struct node *add_node(const char *core, const char *memory, const char *sizes,
                                          const char *order)
{
    const struct string_pair annotations[] = {{sizes ? CARD_MEMORY : "x", sizes ? sizes : ""},
                                              {order ? CARD_ORDER : "y", order ? order : ""}};
    struct node_view view = {.name = "n1",
                             .capacity = PAIRS({CORE, core}, {MEM, memory}),
                             .annotations = {annotations, 2}};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(dialect_read_topology(&view, &options, topology, &warning, &error));
    ck_assert_ptr_null(warning);
    return ledger_set_topology(book, "n1", topology);
}
