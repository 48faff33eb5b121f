/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever happens to nodes and pods, in whatever order: the ledger says what the oracle works out
 * from the plain list of them.
 */
#include "chance.h"
#include "core/ledger.h"
#include "oracle.h"
#include "policy/what_if.h"

#include <gpuledger/placement.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_EVENTS 400 /* then another world */
#define GIB (INT64_C(1) << 30)
#define I64 "%" G_GINT64_FORMAT

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

struct world {
    struct oracle oracle;
    struct ledger *ledger;
    uint32_t generation; /* of guests */
};

/* Everything that the ledger says, as text. */
static char *dump(struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        g_string_append_printf(text, "%s %p %d " I64 " " I64 " " I64 " " I64 " %d %d %d " I64 " " I64 " %u\n",
                               node->name, (const void *)node->dialect, node->present,
                               node->memory_unit, node->memory_free_max, node->unplaced_memory,
                               node->unplaced_core, node->unplaced_holders,
                               node->unplaced_exclusive, node->n_waiting,
                               node->host_used.cpu, node->host_used.memory, node->n_cpu_pods);
        for (int32_t j = 0; j < node->n_cards; j++) {
            const struct card *card = &node->cards[j];
            g_string_append_printf(text, " %d %d %d %d %d " I64 " " I64 "\n", card->index,
                                   card->holders, card->exclusive, card->core_used, card->healthy,
                                   card->memory, card->memory_used);
        }
    }
    for (int i = 0; i < ORACLE_PODS; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        const struct allocation *held = ledger_get(ledger, uid);
        if (!held)
            continue;
        g_string_append_printf(text, "%s %s %d %d " I64 " " I64 "\n", held->uid, held->node->name,
                               held->assigned, held->waiting, held->match_amount,
                               held->assume_time_ns);
        for (uint32_t j = 0; j < held->n_shares; j++) {
            const struct share *share = &held->shares[j];
            g_string_append_printf(text, " " I64 " %d %d %d %d %d\n", share->memory.value,
                                   share->memory.kind, share->container, share->card, share->core,
                                   share->exclusive);
        }
    }
    return g_string_free(text, FALSE);
}

/* --- drawing -------------------------------------------------------------------------------- */

static struct amount draw_amount(void)
{
    static const int64_t odd[] = {0, INT64_MAX, AMOUNT_BYTES_MAX, AMOUNT_BYTES_MAX + 1};

    if (chance_percent(4))
        return (struct amount){odd[chance_below(G_N_ELEMENTS(odd))],
                               chance_percent(50) ? AMOUNT_BYTES : AMOUNT_NODE_UNITS};
    if (chance_percent(20))
        return (struct amount){chance_between(0, 8 * GIB), AMOUNT_BYTES};
    return (struct amount){chance_between(0, 8), AMOUNT_NODE_UNITS};
}

static void draw_shares(struct oracle_pod *pod, bool existing_cards)
{
    pod->n_shares = chance_percent(70) ? 1 : chance_below(ORACLE_SHARES + 1);
    for (uint32_t i = 0; i < pod->n_shares; i++) {
        int32_t lowest = existing_cards ? 0 : CARD_UNKNOWN;
        pod->shares[i] = (struct share){
            .memory = draw_amount(),
            .container = (int32_t)chance_between(CONTAINER_POD, 2),
            .card = (int32_t)chance_between(lowest, existing_cards ? 3 : ORACLE_CARDS + 1),
            .core = chance_percent(30) ? (int32_t)chance_between(0, 600) : 0,
            .exclusive = chance_percent(5),
        };
    }
}

static struct host draw_host(void)
{
    return (struct host){chance_percent(90) ? chance_between(0, 64000) : HOST_AMOUNT_MAX,
                         chance_between(0, 256) * GIB, chance_between(0, 3)};
}

static struct oracle_pod draw_pod(const struct oracle_pod *pod, bool existing_cards)
{
    struct oracle_pod drawn = *pod;

    drawn.node = (int)chance_below(ORACLE_NODES);
    drawn.assigned = chance_percent(50);
    drawn.waiting = chance_percent(50);
    drawn.guest = false;
    drawn.host = draw_host();
    drawn.match_amount = chance_between(0, 3);
    drawn.assume_time_ns = chance_between(0, 3);
    draw_shares(&drawn, existing_cards);
    return drawn;
}

/* Some pod that the ledger has an allocation of, or nothing at all; or NULL. */
static struct oracle_pod *pick_pod(struct world *world, bool held)
{
    for (int tries = 0; tries < ORACLE_PODS; tries++) {
        struct oracle_pod *pod = &world->oracle.pods[chance_below(ORACLE_PODS)];
        if ((pod->node >= 0) == held && !(held && pod->guest))
            return pod;
    }
    return NULL;
}

static const char *node_name(const struct world *world, int node)
{
    return world->oracle.nodes[node].name;
}

/* --- what happens --------------------------------------------------------------------------- */

static void put(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = &world->oracle.pods[chance_below(ORACLE_PODS)];

    *pod = draw_pod(pod, chance_percent(50));
    struct allocation *held =
        ledger_put(world->ledger, node_name(world, pod->node), oracle_allocation(pod, DIALECT));
    HOLDS(ledger_get(world->ledger, pod->uid) == held, "%s", pod->uid);
}

/* What the watch mostly brings: a pod of which little has changed. */
static void put_changed(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, true);

    if (!pod)
        return;
    struct oracle_pod drawn = draw_pod(pod, false);
    switch (chance_below(6)) {
    case 5:
        pod->host = drawn.host;
        break;
    case 0:
        pod->node = drawn.node;
        break;
    case 1:
        pod->assigned = drawn.assigned;
        break;
    case 2:
        pod->waiting = drawn.waiting;
        break;
    case 3:
        pod->assume_time_ns = drawn.assume_time_ns;
        break;
    default:
        if (pod->n_shares > 0)
            pod->shares[0].card = (int32_t)chance_between(CARD_UNKNOWN, ORACLE_CARDS);
        break;
    }
    ledger_put(world->ledger, node_name(world, pod->node), oracle_allocation(pod, DIALECT));
}

static void put_again(void *data)
{
    struct world *world = data;
    const struct oracle_pod *pod = pick_pod(world, true);

    if (!pod)
        return;
    g_autofree char *before = dump(world->ledger);
    struct allocation *held = ledger_get(world->ledger, pod->uid);
    HOLDS(ledger_put(world->ledger, node_name(world, pod->node), oracle_allocation(pod, DIALECT)) ==
              held,
          "%s", pod->uid);
    g_autofree char *after = dump(world->ledger);
    HOLDS(g_str_equal(before, after), "%s%s", before, after);
}

static void put_guest(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = &world->oracle.pods[chance_below(ORACLE_PODS)];
    struct oracle_pod guest = {.guest = true,
                               .node = (int)chance_below(ORACLE_NODES),
                               .host = draw_host(),
                               .generation = world->generation};

    memcpy(guest.uid, pod->uid, sizeof guest.uid);
    *pod = guest;
    ledger_put_cpu_pod(world->ledger, node_name(world, pod->node), pod->uid, pod->host,
                     pod->generation);
}

static void sweep_guests(void *data)
{
    struct world *world = data;

    const char *stale;
    while ((stale = ledger_stale_cpu_pod(world->ledger, world->generation))) {
        g_autofree char *uid = g_strdup(stale);
        ledger_drop(world->ledger, uid);
    }
    for (int i = 0; i < ORACLE_PODS; i++) {
        struct oracle_pod *pod = &world->oracle.pods[i];
        if (pod->node >= 0 && pod->guest && pod->generation != world->generation) {
            pod->node = -1;
            pod->guest = false;
            pod->host = (struct host){0};
        }
    }
    world->generation++;
}

static void reserve(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, false);
    enum reason reason;

    if (!pod)
        return;
    struct oracle_pod drawn = draw_pod(pod, chance_percent(90));
    bool fits = oracle_fits(&world->oracle, drawn.node, drawn.shares, drawn.n_shares);
    g_autofree char *before = dump(world->ledger);
    struct allocation *held = ledger_reserve(world->ledger, node_name(world, drawn.node),
                                             oracle_allocation(&drawn, DIALECT), &reason);
    HOLDS((held != NULL) == fits, "%s on node %d: %s", pod->uid, drawn.node,
          reason_info(reason)->code);
    HOLDS((reason == REASON_NONE) == fits, "%s", reason_info(reason)->code);
    if (held && chance_percent(70)) {
        *pod = drawn;
        return;
    }
    if (held)
        ledger_drop(world->ledger, pod->uid);
    g_autofree char *after = dump(world->ledger);
    HOLDS(g_str_equal(before, after), "%s%s", before, after);
}

/* Of the cards of a node, none must hold more than before and more than it can. */
static void assert_not_overbooked(const struct world *world, int node)
{
    const struct oracle *oracle = &world->oracle;

    for (int32_t card = 0; card < oracle->nodes[node].n_cards; card++) {
        struct oracle_usage usage = oracle_usage(oracle, node, card);
        struct oracle_usage unplaced = oracle_usage(oracle, node, CARD_UNKNOWN);
        HOLDS(usage.memory + unplaced.memory <= oracle->nodes[node].memory[card] &&
                  usage.core + unplaced.core <= CORE_WHOLE &&
                  (usage.exclusive == 0 || usage.holders + unplaced.holders == 1),
              "node %d card %d", node, card);
    }
}

static bool is_overbooked(const struct oracle *oracle, int node)
{
    for (int32_t card = 0; card < oracle->nodes[node].n_cards; card++) {
        struct oracle_usage usage = oracle_usage(oracle, node, card);
        struct oracle_usage unplaced = oracle_usage(oracle, node, CARD_UNKNOWN);
        if (usage.memory + unplaced.memory > oracle->nodes[node].memory[card] ||
            usage.core + unplaced.core > CORE_WHOLE ||
            (usage.exclusive > 0 && usage.holders + unplaced.holders > 1) || unplaced.exclusive > 0)
            return true;
    }
    return false;
}

static struct request *draw_request(void)
{
    struct request *request = request_new(DIALECT, 1 + chance_below(3));

    for (uint32_t i = 0; i < request->n_asks; i++) {
        request->asks[i] = (struct card_ask){
            .memory = draw_amount(),
            .container = (int32_t)i,
            .count = chance_percent(80) ? 1 : (int32_t)chance_between(1, 3),
            .core = chance_percent(30) ? (int32_t)chance_between(0, 600) : 0,
            .exclusive = chance_percent(5),
        };
    }
    if (chance_percent(60))
        request->n_asks = 1;
    return request;
}

/* A single ask is refused only if no card at all would do. */
static void assert_no_card_fits(const struct world *world, int node, const struct request *request)
{
    const struct card_ask *ask = &request->asks[0];

    for (int32_t card = 0; card < world->oracle.nodes[node].n_cards; card++) {
        struct share share = {ask->memory, 0, card, ask->core, ask->exclusive};
        HOLDS(!oracle_fits(&world->oracle, node, &share, 1), "node %d card %d", node, card);
    }
}

/* The cards of one ask are different ones; `share` is where its first is. */
static void assert_different_cards(const struct placement *placement, uint32_t share,
                                   const struct card_ask *ask)
{
    for (uint32_t i = share; i < share + (uint32_t)ask->count; i++) {
        for (uint32_t j = share; j < i; j++)
            HOLDS(placement->shares[i].card != placement->shares[j].card, "card %d",
                  placement->shares[i].card);
    }
}

/* Where there is room for several by the summary, one finds a place after the other. */
static void assert_all_fit(const struct node *node, const struct request *request)
{
    const int32_t n = 1 + (int32_t)chance_below(4);
    struct what_if *what_if;

    if (!placement_of_all_is_obvious(node, request, n))
        return;
    what_if = what_if_new(node);
    for (int32_t i = 0; i < n; i++) {
        struct placement placement;
        const enum reason reason = placement_find(
            what_if->node, request, &policies[chance_below(3)], NULL, CARD_UNKNOWN, &placement);
        HOLDS(reason == REASON_NONE, "%d of %d: %s", i, n, reason_info(reason)->code);
        what_if_add(what_if, what_if_allocation("", 0, &placement));
    }
    what_if_free(what_if);
}

/* What placement finds can be reserved, and then no card holds more than it can. */
static void place(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, false);
    int at = (int)chance_below(ORACLE_NODES);
    const struct node *node = ledger_node(world->ledger, node_name(world, at));
    g_autoptr(request) request = draw_request();
    struct placement placement;
    enum reason reason;

    if (!pod || !node || !node->present)
        return;
    bool obvious = placement_is_obvious(node, request);
    assert_all_fit(node, request);
    reason = placement_find(node, request, &policies[chance_below(3)], NULL, CARD_UNKNOWN, &placement);
    HOLDS(reason == REASON_NONE || !obvious, "%s", reason_info(reason)->code);
    if (reason != REASON_NONE && request->n_asks == 1 && request->asks[0].count == 1)
        assert_no_card_fits(world, at, request);
    if (reason != REASON_NONE)
        return;
    for (uint32_t i = 0, share = 0; i < request->n_asks;
         share += (uint32_t)request->asks[i++].count)
        assert_different_cards(&placement, share, &request->asks[i]);
    if (placement.n_shares > ORACLE_SHARES)
        return;

    bool was_overbooked = is_overbooked(&world->oracle, at);
    struct oracle_pod placed = *pod;
    placed.node = at;
    placed.guest = false;
    placed.host = draw_host();
    placed.n_shares = placement.n_shares;
    memcpy(placed.shares, placement.shares, placement.n_shares * sizeof placement.shares[0]);
    HOLDS(ledger_reserve(world->ledger, node->name, oracle_allocation(&placed, DIALECT), &reason),
          "%s", reason_info(reason)->code);
    *pod = placed;
    if (!was_overbooked)
        assert_not_overbooked(world, at);
}

static void drop(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = &world->oracle.pods[chance_below(ORACLE_PODS)];

    HOLDS(ledger_drop(world->ledger, pod->uid) == (pod->node >= 0), "%s", pod->uid);
    pod->node = -1;
    pod->guest = false;
}

static void draw_topology(struct oracle_node *node)
{
    static const int64_t units[] = {GIB, GIB, GIB, INT64_C(1) << 20, 1};

    node->present = true;
    node->shared = chance_percent(90);
    node->unit = node->shared ? units[chance_below(G_N_ELEMENTS(units))] : 1;
    node->n_cards = node->shared ? (int32_t)chance_between(0, ORACLE_CARDS) : 0;
    node->host = node->shared && chance_percent(80) ? draw_host() : (struct host){0};
    for (int32_t i = 0; i < ORACLE_CARDS; i++)
        node->memory[i] = i < node->n_cards ? chance_between(0, 24) * GIB : 0;
}

static void send_topology(struct ledger *ledger, const struct oracle_node *node)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    oracle_topology(node, DIALECT, topology);
    ledger_set_topology(ledger, node->name, node->shared ? topology : NULL);
}

static void change_node(void *data)
{
    struct world *world = data;
    struct oracle_node *node = &world->oracle.nodes[chance_below(ORACLE_NODES)];

    if (!node->present || chance_percent(60))
        draw_topology(node); /* else the same news once more */
    send_topology(world->ledger, node);
}

static void remove_node(void *data)
{
    struct world *world = data;
    struct oracle_node *node = &world->oracle.nodes[chance_below(ORACLE_NODES)];

    ledger_remove_node(world->ledger, node->name);
    node->present = node->shared = false;
    node->unit = 1;
    node->host = (struct host){0};
    node->n_cards = 0;
}

static void send_health(struct ledger *ledger, const struct oracle_node *node)
{
    int32_t sick[ORACLE_CARDS + 2];

    ledger_set_unhealthy(ledger, node->name, sick, oracle_sick(node, sick));
}

static void change_health(void *data)
{
    struct world *world = data;
    struct oracle_node *node = &world->oracle.nodes[chance_below(ORACLE_NODES)];
    uint32_t percent = chance_percent(60) ? 0 : 30;

    for (size_t i = 0; i < G_N_ELEMENTS(node->sick); i++)
        node->sick[i] = chance_percent(percent);
    send_health(world->ledger, node);
}

/* Asks for nodes one after the other, as filter does, in one of two orders or in a new one. */
static void ask_in_order(void *data)
{
    static const uint32_t usual[][ORACLE_NODES] = {{0, 1, 2, 3, 4}, {3, 1, 4, 0, 2}};
    struct world *world = data;
    uint32_t order[ORACLE_NODES];
    struct node_cursor cursor = {0};

    chance_order(order, ORACLE_NODES);
    if (chance_percent(80))
        memcpy(order, usual[chance_below(G_N_ELEMENTS(usual))], sizeof order);
    for (int i = 0; i < ORACLE_NODES; i++) {
        const char *name = node_name(world, (int)order[i]);
        struct node *node = ledger_next_node(world->ledger, &cursor, name, NODE_PULSE);
        HOLDS(node == ledger_node(world->ledger, name), "%s", name);
        HOLDS(!node ||
                  (cursor.place == node_own(node)->place && cursor.pulse == node_own(node)->pulse),
              "%s at %u", name, cursor.place);
    }
}

/* --- room ----------------------------------------------------------------------------------- */

/* What each node has to give, and what it may give. */
struct room {
    int64_t memory[ORACLE_CARDS], core[ORACLE_CARDS];
    int32_t holders[ORACLE_CARDS]; /* none is more room than some, for an exclusive share */
    int waiting;
};

static struct room measure(const struct oracle *oracle, int at)
{
    const struct oracle_node *node = &oracle->nodes[at];
    int32_t unplaced = oracle_usage(oracle, at, CARD_UNKNOWN).holders;
    struct room room = {0};

    for (int32_t card = 0; card < ORACLE_CARDS; card++) {
        bool usable = card < node->n_cards && !node->sick[card];
        room.memory[card] = usable ? oracle_memory_free(oracle, at, card) : -1;
        room.core[card] = usable ? oracle_core_free(oracle, at, card) : -1;
        room.holders[card] = usable ? oracle_usage(oracle, at, card).holders + unplaced : INT32_MAX;
    }
    for (int i = 0; i < ORACLE_PODS; i++)
        room.waiting += oracle->pods[i].node == at && oracle->pods[i].waiting;
    return room;
}

static bool has_more(const struct room *now, const struct room *before)
{
    bool more = now->waiting < before->waiting;

    for (int32_t card = 0; card < ORACLE_CARDS; card++)
        more |= now->memory[card] > before->memory[card] || now->core[card] > before->core[card] ||
                now->holders[card] < before->holders[card];
    return more;
}

/* Does something, and finds room that appeared announced. */
static void act(const struct chance_action *what, struct world *world)
{
    struct room before[ORACLE_NODES];
    uint64_t freed = ledger_freed(world->ledger);

    for (int i = 0; i < ORACLE_NODES; i++)
        before[i] = measure(&world->oracle, i);
    chance_act(what, world);
    for (int i = 0; i < ORACLE_NODES; i++) {
        const struct node *node = ledger_node(world->ledger, node_name(world, i));
        struct room now = measure(&world->oracle, i);
        HOLDS(!node || node_own(node)->freed_at > freed || !has_more(&now, &before[i]), "node %d",
              i);
    }
}

/* --- replay --------------------------------------------------------------------------------- */

/* The same nodes, pods and health records told to a fresh ledger, each once and in any order. */
static void replay(void *data)
{
    struct world *world = data;
    const struct oracle *oracle = &world->oracle;
    uint32_t order[2 * ORACLE_NODES + ORACLE_PODS];
    g_autoptr(ledger) fresh = ledger_new();

    chance_order(order, G_N_ELEMENTS(order));
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        uint32_t which = order[i];
        if (which < ORACLE_NODES) {
            if (oracle->nodes[which].present)
                send_topology(fresh, &oracle->nodes[which]);
        } else if (which < 2 * ORACLE_NODES) {
            send_health(fresh, &oracle->nodes[which - ORACLE_NODES]);
        } else {
            const struct oracle_pod *pod = &oracle->pods[which - 2 * ORACLE_NODES];
            if (pod->node >= 0 && pod->guest)
                ledger_put_cpu_pod(fresh, node_name(world, pod->node), pod->uid, pod->host, 0);
            else if (pod->node >= 0)
                ledger_put(fresh, node_name(world, pod->node), oracle_allocation(pod, DIALECT));
        }
    }
    oracle_check(oracle, fresh);
    g_autofree char *incremental = dump(world->ledger), *replayed = dump(fresh);
    HOLDS(g_str_equal(incremental, replayed), "%s%s", incremental, replayed);
}

static const struct chance_action actions[] = {
    {"put", 24, put},
    {"put changed", 10, put_changed},
    {"put again", 6, put_again},
    {"reserve", 12, reserve},
    {"place", 24, place},
    {"put guest", 8, put_guest},
    {"sweep guests", 1, sweep_guests},
    {"drop", 22, drop},
    {"change node", 6, change_node},
    {"remove node", 2, remove_node},
    {"change health", 3, change_health},
    {"ask in order", 4, ask_in_order},
    {"replay", 1, replay},
    {0},
};

int main(void)
{
    struct world world = {0};

    chance_init("the ledger is what the list of pods adds up to", 60000);
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % ROUND_EVENTS == 0) {
            ledger_free(world.ledger);
            world.ledger = ledger_new();
            oracle_init(&world.oracle);
        }
        act(actions, &world);
        oracle_check_node(&world.oracle, (int)chance_below(ORACLE_NODES), world.ledger);
        if (i % 16 == 0)
            oracle_check(&world.oracle, world.ledger);
    }
    ledger_free(world.ledger);
    return EXIT_SUCCESS;
}
