/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ledger to test: `book`, with nodes of cards and pods that hold shares of them. Whatever a test
 * did, teardown finds usage to be the sum of its parts.
 */
#include "ledger_end.h"

#include <check.h>
#include <gpuledger/error.h>
#include <gpuledger/ledger.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

/* The ledger never looks into a dialect. */
static const char rows[2] = "";
#define DIALECT ((const struct dialect *)(const void *)&rows[0])
#define OTHER_DIALECT ((const struct dialect *)(const void *)&rows[1])

static struct ledger *book;

static inline void setup(void)
{
    book = ledger_new();
}

static inline void teardown(void)
{
    ledger_end(book);
}

static inline struct node *set_cards(const char *name, int64_t unit, int32_t n,
                                     const int64_t *units)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    topology->dialect = DIALECT;
    topology->memory_unit = unit;
    topology->n_cards = n;
    for (int32_t i = 0; i < n; i++)
        topology->cards[i].memory = units[i] * unit;
    return ledger_set_topology(book, name, topology);
}

static inline struct node *set_equal_cards(const char *name, int32_t n, int64_t gib)
{
    int64_t units[NODE_CARDS_MAX];

    for (int32_t i = 0; i < n; i++)
        units[i] = gib;
    return set_cards(name, GIB, n, units);
}

static inline struct share units_on(int32_t card, int64_t units)
{
    return (struct share){.memory = {units, AMOUNT_NODE_UNITS}, .card = card};
}

static inline struct share core_on(int32_t card, int32_t core)
{
    return (struct share){.memory = {0, AMOUNT_BYTES}, .card = card, .core = core};
}

static inline struct share exclusive_on(int32_t card)
{
    return (struct share){.memory = {0, AMOUNT_BYTES}, .card = card, .exclusive = true};
}

static inline struct allocation *holding(const char *uid, size_t n, const struct share *shares)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, n);

    allocation->dialect = DIALECT;
    memcpy(allocation->shares, shares, n * sizeof *shares);
    return allocation;
}

#define HOLDING(uid, ...)                                                                          \
    holding(uid, G_N_ELEMENTS(((const struct share[]){__VA_ARGS__})),                              \
            (const struct share[]){__VA_ARGS__})

static inline struct allocation *put(const char *node, const char *uid, int32_t card, int64_t units)
{
    return ledger_put(book, node, HOLDING(uid, units_on(card, units)));
}

static inline enum reason reserve(const char *node, struct allocation *take_allocation)
{
    enum reason reason = REASON_N;
    g_autofree char *uid = g_strdup(take_allocation->uid);
    struct allocation *allocation = ledger_reserve(book, node, take_allocation, &reason);

    ck_assert_int_eq(allocation == NULL, reason != REASON_NONE);
    ck_assert_ptr_eq(ledger_get(book, uid), allocation);
    return reason;
}

static inline int64_t free_on(const char *name, int32_t card)
{
    const struct node *node = ledger_node(book, name);
    return card_memory_free(node, node_card(node, card)) / GIB;
}
