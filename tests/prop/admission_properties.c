/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What admission promises, over random nodes and pods: whoever is told yes can be reserved, of
 * equal pods one at a time waits for the node side, what is written is read back, and no policy opens cards that another would not.
 */
#include "chance.h"
#include "oracle.h"

#include <gpuledger/dialect.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_EVENTS 300
#define GIB (INT64_C(1) << 30)
#define PATIENCE_NS 50
#define START_NS INT64_C(1767225600000000000)

struct world {
    struct oracle oracle;
    struct ledger *ledger;
    int64_t now_ns;
};

static const struct dialect *row; /* the one under test */

/* --- drawing -------------------------------------------------------------------------------- */

static struct oracle_pod *pick_pod(struct world *world, bool held)
{
    for (int tries = 0; tries < ORACLE_PODS; tries++) {
        struct oracle_pod *pod = &world->oracle.pods[chance_below(ORACLE_PODS)];
        if ((pod->node >= 0) == held)
            return pod;
    }
    return NULL;
}

static const char *node_name(const struct world *world, int node)
{
    return world->oracle.nodes[node].name;
}

static void draw_node(struct world *world, int at)
{
    struct oracle_node *node = &world->oracle.nodes[at];
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    node->present = node->shared = true;
    node->unit = GIB;
    node->n_cards = (int32_t)chance_between(1, ORACLE_CARDS);
    for (int32_t i = 0; i < ORACLE_CARDS; i++)
        node->memory[i] = i < node->n_cards ? chance_between(4, 16) * GIB : 0;
    oracle_topology(node, row, topology);
    ledger_set_topology(world->ledger, node->name, topology);
}

static void world_renew(struct world *world)
{
    ledger_free(world->ledger);
    *world = (struct world){.ledger = ledger_new(), .now_ns = START_NS};
    oracle_init(&world->oracle);
    for (int i = 0; i < ORACLE_NODES; i++)
        draw_node(world, i);
}

static struct request *ask_for(int64_t units)
{
    struct request *request = request_new(row, 1);

    request->match_amount = units;
    request->asks[0] = (struct card_ask){.memory = {units, AMOUNT_NODE_UNITS}, .count = 1};
    return request;
}

/* --- what gpushare's admission should say --------------------------------------------------- */

struct verdict {
    enum admission admission;
    enum reason reason;
    int32_t card;
};

static bool fits(const struct world *world, int node, int64_t units, int32_t card)
{
    struct share share = {{units, AMOUNT_NODE_UNITS}, 0, card, 0, false};
    return oracle_fits(&world->oracle, node, &share, 1);
}

/* The card that a policy's sentence describes; CARD_UNKNOWN if none fits. */
static int32_t choose(const struct world *world, int node, int64_t units, const char *policy)
{
    int32_t best = CARD_UNKNOWN;
    int64_t best_free = 0;

    for (int32_t card = 0; card < world->oracle.nodes[node].n_cards; card++) {
        int64_t left = oracle_memory_free(&world->oracle, node, card);
        if (!fits(world, node, units, card))
            continue;
        if (best == CARD_UNKNOWN || (g_str_equal(policy, "binpack") && left < best_free) ||
            (g_str_equal(policy, "spread") && left > best_free)) {
            best = card;
            best_free = left;
        }
    }
    return best;
}

static struct verdict judge(const struct world *world, int node, int64_t units, const char *policy)
{
    int32_t wanted = choose(world, node, units, policy);
    int64_t oldest = INT64_MAX;

    for (int i = 0; i < ORACLE_PODS; i++) {
        const struct oracle_pod *pod = &world->oracle.pods[i];
        if (pod->node == node && pod->waiting && pod->match_amount == units)
            oldest = MIN(oldest, pod->assume_time_ns);
    }
    if (oldest != INT64_MAX && wanted != CARD_UNKNOWN)
        return world->now_ns < oldest + PATIENCE_NS
                   ? (struct verdict){ADMISSION_WAIT, REASON_NONE, CARD_UNKNOWN}
                   : (struct verdict){ADMISSION_NO, REASON_AWAITING_ASSIGNMENT, CARD_UNKNOWN};
    if (wanted != CARD_UNKNOWN)
        return (struct verdict){ADMISSION_YES, REASON_NONE, wanted};
    /* Which of the reasons for want of room is the placement suite's business. */
    return (struct verdict){ADMISSION_NO, REASON_N, CARD_UNKNOWN};
}

/* --- what happens --------------------------------------------------------------------------- */

static void assert_alone(const struct world *world, const struct oracle_pod *newcomer)
{
    for (int i = 0; i < ORACLE_PODS; i++) {
        const struct oracle_pod *pod = &world->oracle.pods[i];
        HOLDS(pod == newcomer || pod->node != newcomer->node || !pod->waiting ||
                  pod->match_amount != newcomer->match_amount,
              "%s and %s wait at a time", pod->uid, newcomer->uid);
    }
}

static void ask(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, false);
    int at = (int)chance_below(ORACLE_NODES);
    int64_t units = chance_between(1, 6);
    const struct policy *policy = &policies[chance_below(3)];
    struct dialect_options options = {0};
    g_autoptr(request) request = ask_for(units);
    struct admission_query query = {request, policy, &options, world->now_ns, PATIENCE_NS};
    const struct node *node = ledger_node(world->ledger, node_name(world, at));
    struct placement placement;
    enum reason reason, other_reason;

    if (!pod)
        return;
    enum admission admission = dialect_admit(node, &query, &placement, &reason);
    HOLDS(dialect_admit(node, &query, NULL, &other_reason) == admission, "%d", admission);
    HOLDS(other_reason == reason, "%s", reason_info(reason)->code);
    HOLDS((admission == ADMISSION_NO) == (reason != REASON_NONE), "%s", reason_info(reason)->code);

    struct verdict verdict = judge(world, at, units, policy->name);
    HOLDS(admission == verdict.admission, "%d: %s", admission, reason_info(reason)->code);
    HOLDS(verdict.reason == REASON_N || reason == verdict.reason, "%s", reason_info(reason)->code);
    if (admission != ADMISSION_YES)
        return;

    HOLDS(placement.n_shares == 1 && placement.shares[0].card == verdict.card, "card %d, not %d",
          placement.shares[0].card, verdict.card);
    struct oracle_pod placed = {
        .node = at,
        .waiting = true,
        .match_amount = units,
        .assume_time_ns = world->now_ns,
        .n_shares = 1,
        .shares = {placement.shares[0]},
    };
    memcpy(placed.uid, pod->uid, sizeof placed.uid);
    HOLDS(ledger_reserve(world->ledger, node->name, oracle_allocation(&placed, row), &reason), "%s",
          reason_info(reason)->code);
    *pod = placed;
    assert_alone(world, pod);
    HOLDS(oracle_usage(&world->oracle, at, verdict.card).memory <=
              world->oracle.nodes[at].memory[verdict.card],
          "card %d", verdict.card);
}

static void assign(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, true);

    if (!pod)
        return;
    pod->waiting = false;
    pod->assigned = true;
    ledger_put(world->ledger, node_name(world, pod->node), oracle_allocation(pod, row));
}

static void drop(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, true);

    if (!pod)
        return;
    ledger_drop(world->ledger, pod->uid);
    pod->node = -1;
}

/* A pod that somebody else has bound. */
static void intrude(void *data)
{
    struct world *world = data;
    struct oracle_pod *pod = pick_pod(world, false);

    if (!pod)
        return;
    pod->node = (int)chance_below(ORACLE_NODES);
    pod->waiting = chance_percent(60);
    pod->assigned = false;
    pod->match_amount = chance_between(1, 6);
    pod->assume_time_ns = chance_percent(50) ? 0 : world->now_ns;
    pod->n_shares = 1;
    pod->shares[0] = (struct share){{pod->match_amount, AMOUNT_NODE_UNITS},
                                    0,
                                    (int32_t)chance_between(CARD_UNKNOWN, ORACLE_CARDS),
                                    0,
                                    false};
    ledger_put(world->ledger, node_name(world, pod->node), oracle_allocation(pod, row));
}

static void change_node(void *data)
{
    struct world *world = data;
    draw_node(world, (int)chance_below(ORACLE_NODES));
}

static void change_health(void *data)
{
    struct world *world = data;
    struct oracle_node *node = &world->oracle.nodes[chance_below(ORACLE_NODES)];
    int32_t sick[ORACLE_CARDS + 2];

    for (int32_t i = 0; i < ORACLE_CARDS; i++)
        node->sick[i] = chance_percent(15);
    ledger_set_unhealthy(world->ledger, node->name, sick, oracle_sick(node, sick));
}

static void pass_time(void *data)
{
    struct world *world = data;
    world->now_ns += chance_between(1, PATIENCE_NS);
}

/* --- what is written is read back ----------------------------------------------------------- */

#define CONTAINERS_MAX 4

/* A pod that asks for some of the row's first resource: in one container of several, or, where
 * the node side allows it, in more. */
static struct pod_view draw_pod(struct container_view *containers, struct string_pair *limits,
                                char amounts[][8], bool anything)
{
    static const char *const names[CONTAINERS_MAX] = {"c0", "c1", "c2", "c3"};
    size_t n = 1 + chance_below(CONTAINERS_MAX), gpu = chance_below((uint32_t)n);
    size_t n_init = anything ? chance_below((uint32_t)n) : 0;

    for (size_t i = 0; i < n; i++) {
        bool asks = i == gpu || (anything && chance_percent(40));
        g_snprintf(amounts[i], sizeof amounts[i], "%u", 1 + chance_below(4));
        limits[i] = (struct string_pair){asks ? row->resources[0] : "cpu", amounts[i]};
        containers[i] = (struct container_view){
            .name = names[i],
            .init = i >= n - n_init,
            .sidecar = i >= n - n_init && chance_percent(30),
            .limits = {&limits[i], 1},
        };
    }
    return (struct pod_view){
        .ns = "ml",
        .name = "u0",
        .uid = "u0",
        .phase = "Pending",
        .containers = containers,
        .n_containers = n,
    };
}

/* Recorded as it is read back, the pod takes of every card what it was given. */
static void read_back(struct world *world, const struct pod_view *asking,
                      const struct allocation *allocation, const struct dialect_options *options)
{
    const struct node *node = allocation->node;
    g_auto(annotations) annotations = {0};
    struct string_pair pairs[ANNOTATIONS_MAX];
    struct pod_view bound = *asking;
    struct card before[ORACLE_CARDS];
    g_autofree char *warning = NULL;

    memcpy(before, node->cards, (size_t)node->n_cards * sizeof *before);
    row->write_annotations(allocation, node, &annotations);
    for (size_t i = 0; i < annotations.n; i++)
        pairs[i] = (struct string_pair){annotations.items[i].key, annotations.items[i].value};
    bound.node_name = node->name;
    bound.annotations = (struct string_pairs){pairs, annotations.n};
    g_autoptr(allocation) before_it = allocation_dup(allocation);
    struct allocation *back = dialect_read_allocation(&bound, options, &warning);
    HOLDS(back, "nothing was read back");
    HOLDS(!warning, "%s", warning);
    back = ledger_put(world->ledger, node->name, back);
    HOLDS(back->dialect == row, "as %s", back->dialect->name);
    HOLDS(back->waiting == before_it->waiting && back->match_amount == before_it->match_amount &&
              back->n_shares == before_it->n_shares,
          "%u shares, back %u", before_it->n_shares, back->n_shares);
    HOLDS(ABS(back->assume_time_ns - before_it->assume_time_ns) < INT64_C(1000000000),
          "back at %" G_GINT64_FORMAT, back->assume_time_ns);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *after = &node->cards[i];
        HOLDS(after->memory_used == before[i].memory_used &&
                  after->core_used == before[i].core_used && after->holders == before[i].holders &&
                  after->exclusive == before[i].exclusive,
              "card %d: %" G_GINT64_FORMAT ", back %" G_GINT64_FORMAT, i, before[i].memory_used,
              after->memory_used);
    }
}

static void encode_and_decode(void *data)
{
    struct world *world = data;
    struct container_view containers[CONTAINERS_MAX];
    struct string_pair limits[CONTAINERS_MAX];
    char amounts[CONTAINERS_MAX][8];
    struct dialect_options options = {.gpushare_any_on_single_card = chance_percent(50)};
    struct pod_view pod =
        draw_pod(containers, limits, amounts, options.gpushare_any_on_single_card);
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = row->read_request(&pod, &options, &error);
    const struct node *node = ledger_node(world->ledger, node_name(world, 0));
    struct placement placement;
    enum reason reason;

    HOLDS(request, "%s", error ? error->message : "asks nothing");
    struct admission_query query = {request, policies, &options, world->now_ns, PATIENCE_NS};
    if (world->oracle.pods[0].node >= 0 ||
        dialect_admit(node, &query, &placement, &reason) != ADMISSION_YES)
        return;
    struct allocation *allocation = allocation_new(pod.uid, pod.ns, pod.name, placement.n_shares);
    allocation->dialect = row;
    allocation->terms = terms_ref(request->terms);
    allocation->match_amount = request->match_amount;
    /* A node side that mistakes no pod for another needs no times. */
    allocation->waiting = row->in_flight != NULL;
    allocation->assume_time_ns = row->in_flight ? world->now_ns : 0;
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation = ledger_reserve(world->ledger, node->name, allocation, &reason);
    HOLDS(allocation, "%s", reason_info(reason)->code);
    read_back(world, &pod, allocation, &options);
    ledger_drop(world->ledger, pod.uid);
}

/* --- policies ------------------------------------------------------------------------------- */

static int touched(const struct ledger *ledger)
{
    const struct node *node = ledger_node(ledger, "n");
    int n = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        n += node->cards[i].holders > 0;
    return n;
}

/* On equal cards and with the same pods accepted everywhere, binpack opens the fewest cards and
 * spread the most. */
static void compare_policies(void *data)
{
    static const char *const names[] = {"binpack", "first-fit", "spread"};
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    struct ledger *ledgers[G_N_ELEMENTS(names)];
    struct placement placements[G_N_ELEMENTS(names)];
    enum reason reason;

    *topology = (struct topology){
        .dialect = row, .memory_unit = GIB, .n_cards = (int32_t)chance_between(1, 8)};
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = 16 * GIB;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        ledgers[i] = ledger_new();
        ledger_set_topology(ledgers[i], "n", topology);
    }
    for (int pod = 0; pod < 40; pod++) {
        g_autofree char *uid = g_strdup_printf("u%d", pod);
        g_autoptr(request) request = ask_for(chance_between(1, 12));
        bool accepted = true;
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
            accepted &= placement_find(ledger_node(ledgers[i], "n"), request, policy_find(names[i]),
                                       NULL, CARD_UNKNOWN, &placements[i]) == REASON_NONE;
        for (size_t i = 0; accepted && i < G_N_ELEMENTS(names); i++) {
            struct allocation *allocation = allocation_new(uid, "ml", uid, 1);
            allocation->shares[0] = placements[i].shares[0];
            HOLDS(ledger_reserve(ledgers[i], "n", allocation, &reason), "%s",
                  reason_info(reason)->code);
        }
        HOLDS(touched(ledgers[0]) <= touched(ledgers[2]), "binpack %d, spread %d cards",
              touched(ledgers[0]), touched(ledgers[2]));
        HOLDS(touched(ledgers[1]) <= touched(ledgers[2]), "first-fit %d, spread %d cards",
              touched(ledgers[1]), touched(ledgers[2]));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        ledger_free(ledgers[i]);
}

static const struct chance_action any_actions[] = {
    {"encode and decode", 40, encode_and_decode},
    {"change node", 4, change_node},
    {"pass time", 8, pass_time},
    {"compare policies", 1, compare_policies},
    {0},
};

static const struct chance_action gpushare_actions[] = {
    {"ask", 50, ask},
    {"assign", 16, assign},
    {"drop", 14, drop},
    {"intrude", 2, intrude},
    {"change node", 1, change_node},
    {"change health", 2, change_health},
    {"pass time", 8, pass_time},
    {"encode and decode", 6, encode_and_decode},
    {0},
};

int main(void)
{
    struct world world = {0};

    for (size_t i = 0; dialects[i]; i++) {
        g_autofree char *property =
            g_strdup_printf("%s: pods are placed as promised", dialects[i]->name);
        row = dialects[i];
        if (!row->write_annotations)
            continue; /* it is counted, never placed */
        chance_init(property, 50000);
        for (unsigned event = 0; chance_next_event(); event++) {
            bool specified = g_str_equal(row->name, "gpushare") && event / ROUND_EVENTS % 4 != 0;
            if (event % ROUND_EVENTS == 0)
                world_renew(&world);
            chance_act(specified ? gpushare_actions : any_actions, &world);
            if (event % 16 == 0)
                oracle_check(&world.oracle, world.ledger);
        }
    }
    ledger_free(world.ledger);
    return EXIT_SUCCESS;
}
