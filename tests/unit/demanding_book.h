/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A book of cards of 20 GiB, what pods are expected to come, and where a policy puts one.
 */
#include "book.h"

#include "core/ledger.h"
#include "policy/value_model.h"

#include <gpuledger/fragmentation.h>
#include <gpuledger/ranking.h>

static struct demand *expected;

static inline void begin(void)
{
    setup();
    expected = demand_new();
}

static inline void end(void)
{
    demand_free(expected);
    teardown();
}

/* A pod of so many GiB of each card, with so much CPU. */
static inline struct request *asking(int64_t gib, int32_t cards, int64_t cpu)
{
    struct request *request = request_new(DIALECT, cards > 0 ? 1 : 0);

    request->host.cpu = cpu;
    if (cards > 0)
        request->asks[0] = (struct card_ask){.memory = {gib, AMOUNT_NODE_UNITS}, .count = cards};
    return request;
}

static inline void expect_pods(int n, int64_t gib, int32_t cards, int64_t cpu)
{
    g_autoptr(request) request = asking(gib, cards, cpu);

    for (int i = 0; i < n; i++)
        demand_note(expected, request);
}

static inline void expect_model(int n, int64_t gib, const char *model)
{
    g_autoptr(request) request = asking(gib, 1, 0);

    request->terms = terms_new();
    request->terms->models = g_strsplit(model, ",", 0);
    for (int i = 0; i < n; i++)
        demand_note(expected, request);
}

static inline struct node *add_cards(const char *name, int32_t cards, int64_t gib, int64_t cpu,
                                     const char *model)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = GIB;
    topology->host.cpu = cpu;
    topology->n_cards = cards;
    for (int32_t i = 0; i < cards; i++)
        topology->cards[i] =
            (struct topology_card){.memory = gib * GIB, .model = topology_keep(topology, model)};
    return ledger_set_topology(book, name, topology);
}

static inline struct node *add_node(const char *name, int32_t cards, int64_t cpu, const char *model)
{
    return add_cards(name, cards, 20, cpu, model);
}

/* The node that the policy prefers, and the card there. */
static inline const char *choose(const char *policy_name, const struct request *request,
                                 int32_t *ret_card)
{
    const struct policy *policy = policy_find(policy_name);
    const GPtrArray *nodes = ledger_nodes(book);
    struct placement placements[8];
    struct rank ranks[8];
    size_t n = 0;

    demand_settle(expected, book);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        if (placement_find(node, request, policy, expected, CARD_UNKNOWN, &placements[n]) !=
            REASON_NONE)
            continue;
        ranking_rate(policy, node, &placements[n], expected, &ranks[n]);
        n++;
    }
    if (n == 0)
        return NULL;
    const size_t best = ranking_winner(policy, ranks, n);
    if (ret_card)
        *ret_card = placements[best].n_shares > 0 ? placements[best].shares[0].card : CARD_UNKNOWN;
    return ranks[best].name;
}

static inline void expect_choice(const char *policy, int64_t gib, int64_t cpu, const char *node,
                                 int32_t card)
{
    g_autoptr(request) request = asking(gib, gib > 0, cpu);
    int32_t found = CARD_UNKNOWN;

    ck_assert_str_eq(choose(policy, request, &found), node);
    ck_assert_int_eq(found, card);
}

static inline struct request *asking_devices(int32_t devices, const char *device)
{
    struct request *request = request_new(DIALECT, 1);

    request->asks[0] = (struct card_ask){.count = devices, .device = device};
    return request;
}

static inline void expect_devices(int n, int32_t devices, const char *device)
{
    g_autoptr(request) request = asking_devices(devices, device);

    for (int i = 0; i < n; i++)
        demand_note(expected, request);
}
