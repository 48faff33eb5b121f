/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever pods are expected and whatever is on a node: a policy's choice can be reserved, taking room
 * never makes a node worth more, what is fragmented is free, and the same pods in the same order give
 * the same answers.
 */
#include "chance.h"

#include <gpuledger/fragmentation.h>
#include <gpuledger/ranking.h>
#include <stdlib.h>
#include <string.h>

#define NODES 4
#define WORLD_EVENTS 200 /* with more kinds of pods, each placement takes ten times as long */
#define GIB (INT64_C(1) << 30)
#define SLIGHT 1e-4 /* worths are sums of single-precision numbers */

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

struct world {
    struct ledger *ledger;
    struct demand *demand, *twin; /* told the same */
    unsigned n_pods;
};

static const char *const resources[] = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb"};

static struct request *draw_request(void)
{
    static const char *const models[] = {"A10", "T4", "T4,A10"};
    const bool whole = chance_percent(30);
    struct request *request = request_new(DIALECT, chance_percent(90));

    request->host = (struct host){.cpu = chance_between(0, 16000),
                                  .memory = chance_percent(50) ? chance_between(0, 64) * GIB : 0};
    if (request->n_asks == 0)
        return request;
    if (chance_percent(20)) {
        request->asks[0] = (struct card_ask){.count = (int32_t)chance_between(1, 4),
                                             .device = resources[chance_below(2)]};
        return request;
    }
    request->asks[0] = (struct card_ask){
        .memory = {chance_between(0, 24), AMOUNT_NODE_UNITS},
        .core = chance_percent(40) ? (int32_t)chance_between(0, 1000) : 0,
        .count = whole ? (int32_t)chance_between(1, 4) : 1,
        .exclusive = whole,
    };
    if (chance_percent(20)) {
        request->terms = terms_new();
        request->terms->models = g_strsplit(models[chance_below(3)], ",", 0);
    }
    return request;
}

static void note(void *data)
{
    struct world *world = data;
    g_autoptr(request) request = draw_request();
    const unsigned times = chance_percent(20) ? (unsigned)chance_between(1, 200) : 1;

    for (unsigned i = 0; i < times; i++) {
        demand_note(world->demand, request);
        demand_note(world->twin, request);
    }
}

static void set_node(void *data)
{
    struct world *world = data;
    g_autofree char *name = g_strdup_printf("n%u", chance_below(NODES));
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = GIB;
    topology->host.cpu = chance_percent(50) ? 0 : chance_between(1, 96) * 1000;
    topology->host.memory = chance_percent(50) ? 0 : chance_between(1, 512) * GIB;
    topology->n_cards = (int32_t)chance_between(1, 8);
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i] = (struct topology_card){
            .memory = (chance_percent(70) ? 24 : chance_between(1, 80)) * GIB,
            .model = topology_keep(topology, chance_percent(50) ? "A10" : "T4"),
            .unhealthy = chance_percent(5),
            .slots = chance_percent(20) ? (int32_t)chance_between(1, 4) : 0,
        };
    topology->n_pools = (int32_t)chance_below(3);
    for (int32_t i = 0; i < topology->n_pools; i++)
        topology->pools[i] = (struct pool){
            .resource = topology_keep(topology, resources[i]),
            .model = chance_percent(50) ? topology_keep(topology, "A10") : NULL,
            .capacity = (int32_t)chance_between(1, 8),
            .replicas = (int32_t)chance_below(3),
        };
    ledger_set_topology(world->ledger, name, topology);
}

/* Cards and devices. */
static int32_t units_of(const struct node *node)
{
    int32_t units = node->n_cards;

    for (int32_t i = 0; i < node->n_pools; i++)
        units += node->pools[i].capacity;
    return units;
}

static void check_loss(const struct policy *policy, const struct node *node,
                       const struct request *request, const struct rank *rank)
{
    const bool limited = node->host.cpu > 0 || node->host.memory > 0;

    if (strcmp(policy->name, "oc") != 0)
        return;
    /* Where CPU or memory is short, fewer cards may be worth more than many: only what it costs is
     * known. */
    HOLDS(rank->loss >= -SLIGHT || (limited && request->n_asks > 0), "%f", rank->loss);
    HOLDS(rank->loss <= 4 * units_of(node), "%f", rank->loss);
}

static int64_t free_part(const struct node *node)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        sum += node->cards[i].healthy ? 1000 : 0;
    for (int32_t i = 0; i < node->n_pools; i++)
        sum += 1000 * node->pools[i].capacity / MAX(node->pools[i].replicas, 1);
    return sum;
}

static void place(void *data)
{
    struct world *world = data;
    const struct policy *policy = &policies[chance_below(6)];
    g_autofree char *uid = g_strdup_printf("u%u", world->n_pods++);
    g_autofree char *name = g_strdup_printf("n%u", chance_below(NODES));
    const struct node *node = ledger_node(world->ledger, name);
    g_autoptr(request) request = draw_request();
    struct placement placement, again;
    struct rank rank, same;
    enum reason reason;

    if (!node)
        return;
    demand_settle(world->demand, world->ledger);
    demand_settle(world->twin, world->ledger);
    HOLDS(demand_version(world->demand) == demand_version(world->twin), "versions");
    HOLDS(fragmentation_of(node, world->demand) >= 0 &&
              fragmentation_of(node, world->demand) <= free_part(node),
          "%s", name);
    reason = placement_find(node, request, policy, world->demand, CARD_UNKNOWN, &placement);
    HOLDS(placement_find(node, request, policy, world->twin, CARD_UNKNOWN, &again) == reason, "%s",
          policy->name);
    HOLDS(placement_find(node, request, &policies[0], NULL, CARD_UNKNOWN, &again) == reason,
          "whether a pod fits depends on %s", policy->name);
    if (reason != REASON_NONE)
        return;
    placement_find(node, request, policy, world->twin, CARD_UNKNOWN, &again);
    ranking_rate(policy, node, &placement, world->demand, &rank);
    ranking_rate(policy, node, &again, world->twin, &same);
    HOLDS(rank.loss == same.loss, "%s: %f, %f", policy->name, rank.loss, same.loss);
    for (uint32_t i = 0; i < placement.n_shares; i++)
        HOLDS(placement.shares[i].card == again.shares[i].card, "%s", policy->name);
    check_loss(policy, node, request, &rank);
    if (request->n_asks == 0) {
        ledger_put_cpu_pod(world->ledger, name, uid, request->host, 0);
        return;
    }
    struct allocation *allocation = allocation_new(uid, "ml", uid, placement.n_shares);
    allocation->dialect = DIALECT;
    allocation->host = request->host;
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof(struct share));
    HOLDS(ledger_reserve(world->ledger, name, allocation, &reason), "%s",
          reason_info(reason)->code);
}

static void drop(void *data)
{
    struct world *world = data;
    g_autofree char *uid = g_strdup_printf("u%u", chance_below(world->n_pods + 1));

    ledger_drop(world->ledger, uid);
}

static const struct chance_action actions[] = {
    {"note", 20, note}, {"set node", 3, set_node}, {"place", 40, place}, {"drop", 30, drop}, {0},
};

int main(void)
{
    struct world world = {0};

    chance_init("policies choose what fits and never gain by taking", 1500);
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % WORLD_EVENTS == 0) {
            ledger_free(world.ledger);
            demand_free(world.demand);
            demand_free(world.twin);
            world = (struct world){ledger_new(), demand_new(), demand_new(), 0};
        }
        chance_act(actions, &world);
    }
    ledger_free(world.ledger);
    demand_free(world.demand);
    demand_free(world.twin);
    return EXIT_SUCCESS;
}
