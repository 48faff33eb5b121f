/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in that was kept is what a fresh copy of its node is, in all that anybody may ask of it,
 * whatever has become of the ledger and of the stand-in since it was made.
 */
#include "chance.h"

#include "core/ledger.h"
#include "core/node.h"
#include "core/node_traits.h"
#include "policy/victims/stand_in.h"
#include "policy/victims/victims.h"

#include <stdio.h>
#include <stdlib.h>

#define GIB (INT64_C(1) << 30)
#define I64 "%" G_GINT64_FORMAT
#define NODES 4
#define PODS 40
#define CARDS 3
#define FACTS 3
#define ROUND_EVENTS 400

static const char row; /* stands for a dialect: the ledger looks at its address only */
#define DIALECT ((const struct dialect *)(const void *)&row)

static const char *const names[NODES] = {"n0", "n1", "n2", "n3"};

static struct world {
    struct ledger *ledger;
    struct stand_ins *stand_ins;
    struct pod_facts *facts[FACTS];
    unsigned n_kept, n_searches;
} world;

/* --- all that may be asked ------------------------------------------------------------------ */

static void dump_pod(GString *text, const struct allocation *pod)
{
    g_string_append_printf(text,
                           "%s/%s/%s %d %d %d%d%d%d%d%d%d%d " I64 " " I64 " " I64 " " I64 " " I64
                           " " I64 " " I64 " " I64 " " I64 " %p:",
                           pod->ns, pod->name, pod->uid, pod->state, pod->distrust, pod->started,
                           pod->assigned, pod->waiting, pod->heeded, pod->open, pod->oversubscribes,
                           pod->waited_out, pod->terminating, pod->host.cpu, pod->host.memory,
                           pod->host.pods, pod->match_amount, pod->card_units, pod->assume_time_ns,
                           pod->priority, pod->created_s, pod->started_s, (void *)pod->facts);
    for (uint32_t i = 0; i < pod->n_shares; i++)
        g_string_append_printf(text, " " I64 " on %d, %d%s", pod->shares[i].memory.value,
                               pod->shares[i].card, pod->shares[i].core,
                               pod->shares[i].exclusive ? " alone" : "");
    g_string_append_c(text, '\n');
}

static char *dump(const struct node *node)
{
    GString *text = g_string_new(node->name);

    g_string_append_printf(
        text,
        " " I64 " " I64 " %d %d %d %d%d%d%d " I64 " %d " I64 " " I64 " %d %d " I64 " " I64 " " I64
        " " I64 " " I64 " " I64 " " I64 " " I64 " %u %p\n",
        node->memory_free_max, node->memory_unit, node->n_cards, node->n_waiting, node->n_unsealed,
        node->present, node->paused, node->cordoned, node->distrusted, node->switches_ns,
        node->slots_ahead, node->heartbeat.said_ns, node->heartbeat.at_ns, node->unplaced_holders,
        node->unplaced_exclusive, node->unplaced_memory, node->unplaced_core, node->host.cpu,
        node->host.memory, node->host.pods, node->host_used.cpu, node->host_used.memory,
        node->host_used.pods, node->n_cpu_pods, (void *)node->traits);
    for (guint i = 0; node->departed && i < node->departed->len; i++)
        g_string_append_printf(text, "departed " I64 "\n",
                               g_array_index(node->departed, struct departed, i).match_amount);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        g_string_append_printf(text, "card " I64 " " I64 " " I64 " %d %d %d %d\n", card->memory,
                               card->memory_used, card->memory_promised, card->core_used,
                               card->holders, card->exclusive, card->healthy);
    }
    for (guint i = 0; i < node->allocations->len; i++)
        dump_pod(text, node->allocations->pdata[i]);
    return g_string_free(text, FALSE);
}

/* --- what happens --------------------------------------------------------------------------- */

static const char *draw_node(void)
{
    return names[chance_below(NODES)];
}

static char *draw_uid(void)
{
    return g_strdup_printf("p%u", chance_below(PODS));
}

static struct allocation *draw_known(void)
{
    g_autofree char *uid = draw_uid();

    return ledger_get(world.ledger, uid);
}

/* What is told of a pod beside what it holds. */
static void tell(struct allocation *pod)
{
    struct pod_facts *facts =
        chance_percent(80) ? pod_facts_ref(world.facts[chance_below(FACTS)]) : NULL;

    pod_facts_unref(pod->facts);
    pod->facts = facts;
    pod->priority = chance_between(0, 2);
    pod->created_s = chance_between(0, 2);
    pod->started_s = chance_between(0, 2);
    pod->terminating = chance_percent(20);
    pod->started = chance_percent(50);
    pod->waited_out = chance_percent(10);
    pod->heeded = chance_percent(10);
    pod->card_units = chance_between(0, 1);
    pod->state = chance_percent(80) ? ALLOCATION_CONFIRMED : (enum allocation_state)chance_below(4);
}

static struct allocation *draw_pod(const char *uid)
{
    struct allocation *pod =
        allocation_new(uid, "ns", uid, chance_percent(80) ? 1 : chance_below(3));

    pod->dialect = DIALECT;
    pod->assigned = chance_percent(50);
    pod->waiting = chance_percent(10);
    pod->host = (struct host){chance_between(0, 2), chance_between(0, 1), 1};
    pod->distrust = chance_percent(5) ? DISTRUST_UNSEALED : DISTRUST_NONE;
    for (uint32_t i = 0; i < pod->n_shares; i++)
        pod->shares[i] = (struct share){.memory = {chance_between(1, 3) * GIB, AMOUNT_BYTES},
                                        .card = (int32_t)chance_between(CARD_UNKNOWN, CARDS - 1),
                                        .core = chance_percent(20) ? 100 : 0,
                                        .exclusive = chance_percent(5)};
    tell(pod);
    return pod;
}

static void put(void *data)
{
    g_autofree char *uid = draw_uid();

    ledger_put(world.ledger, draw_node(), draw_pod(uid));
}

/* The same, but for one thing that is told of it, or not even that. */
static void put_again(void *data)
{
    const struct allocation *known = draw_known();

    if (!known)
        return;
    struct allocation *pod = allocation_dup(known);
    g_autoptr(allocation) told = draw_pod("told");
    switch (chance_below(10)) {
    case 0:
        pod->priority = told->priority;
        break;
    case 1:
        pod->created_s = told->created_s;
        break;
    case 2:
        pod->terminating = told->terminating;
        break;
    case 3:
        pod->started = told->started;
        pod->started_s = told->started_s;
        break;
    case 4:
        pod->waited_out = told->waited_out;
        break;
    case 5:
        pod->heeded = told->heeded;
        break;
    case 6:
        pod->card_units = told->card_units;
        break;
    case 7:
        pod->state = told->state;
        break;
    case 8:
        pod_facts_unref(pod->facts);
        pod->facts = pod_facts_ref(told->facts);
        break;
    default:
        break;
    }
    ledger_put(world.ledger, known->node->name, pod);
}

static void set_state(void *data)
{
    struct allocation *known = draw_known();

    if (known)
        ledger_set_state(world.ledger, known, (enum allocation_state)chance_below(4));
}

static void reserve(void *data)
{
    g_autofree char *uid = draw_uid();
    enum reason reason;

    if (!ledger_get(world.ledger, uid))
        ledger_reserve(world.ledger, draw_node(), draw_pod(uid), &reason);
}

static void drop(void *data)
{
    g_autofree char *uid = draw_uid();

    ledger_drop(world.ledger, uid);
}

static void put_cpu_pod(void *data)
{
    g_autofree char *uid = draw_uid();

    ledger_put_cpu_pod(world.ledger, draw_node(), uid, (struct host){chance_between(0, 2), 0, 1},
                       0);
}

static void set_topology(void *data)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = GIB;
    topology->n_cards = (int32_t)chance_between(1, CARDS);
    topology->host = (struct host){chance_between(0, 9), 0, 9};
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = chance_between(8, 12) * GIB;
    ledger_set_topology(world.ledger, draw_node(), topology);
}

static void set_facts(void *data)
{
    struct node *node = ledger_node(world.ledger, draw_node());
    const struct node_view view = {.name = "n"};
    const struct host host = {chance_between(0, 9), chance_between(0, 9), 9};
    const struct node_facts facts = {
        .cordoned = chance_percent(50),
        .distrusted = chance_percent(10),
        .switches_ns = chance_between(0, 1),
        .slots_ahead = (int32_t)chance_between(0, 1),
        .heartbeat = {DIALECT, chance_between(0, 3), chance_between(0, 3)},
        .host = chance_percent(50) ? &host : NULL,
    };

    if (node && node->present)
        node_traits_unref(node_set_facts(node, &facts, node_traits_new(&view)));
}

static void set_unhealthy(void *data)
{
    const int32_t sick = (int32_t)chance_below(CARDS);

    ledger_set_unhealthy(world.ledger, draw_node(), &sick, chance_below(2));
}

static void set_departed(void *data)
{
    const struct departed departed = {DIALECT, chance_between(0, 3), 1};

    ledger_set_departed(world.ledger, draw_node(), &departed, chance_below(2));
}

static void pause_node(void *data)
{
    ledger_pause_node(world.ledger, draw_node());
}

static void remove_node(void *data)
{
    ledger_remove_node(world.ledger, draw_node());
}

/* --- the search ----------------------------------------------------------------------------- */

static bool has_room(const struct node *node, void *data)
{
    const int64_t *wanted = data;

    for (int32_t i = 0; i < node->n_cards; i++) {
        if (card_memory_free(node, &node->cards[i]) >= *wanted)
            return true;
    }
    return false;
}

static void search(struct stand_in *stand_in)
{
    const struct roster *roster = stand_in->roster;
    g_autofree struct victim *all = g_new0(struct victim, roster->n + 1);
    struct victims victims = {all, 0, 0};
    int64_t wanted = chance_between(1, 12) * GIB, allowed = 1;
    const struct victims_query query = {.admits = has_room,
                                        .data = &wanted,
                                        .asked_host = {1, 0, 1},
                                        .allowed = &allowed,
                                        .n_allowed = 1,
                                        .one_card = chance_percent(50)};
    struct victims_cost cost;

    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        const bool named = chance_percent(10);
        all[victims.n++] = (struct victim){.seat = seat,
                                           .named = named,
                                           .fixed = named && chance_percent(50),
                                           .n_budgets = (uint8_t)chance_below(2)};
    }
    victims_choose(stand_in->what_if, roster, &query, &victims, &cost);
    world.n_searches++;
}

static void expect_same(const struct node *node, const struct stand_in *stand_in, const char *when)
{
    g_autoptr(what_if) fresh = what_if_new(node);
    g_autofree char *expected = dump(fresh->node), *found = dump(stand_in->what_if->node);

    HOLDS(g_str_equal(expected, found), "%s:\n%sand fresh\n%s", when, found, expected);
    for (uint32_t i = 0; stand_in->roster && i < stand_in->roster->n; i++) {
        const struct seat *seat = &stand_in->roster->seats[i];
        const struct allocation *its = seat->allocation;
        HOLDS(stand_in->what_if->node->allocations->pdata[seat->place] == its &&
                  seat->priority == its->priority && seat->created_s == its->created_s &&
                  seat->started_s == (its->started_s > 0 ? its->started_s : INT64_MAX) &&
                  seat->terminating == its->terminating &&
                  seat->confirmed == (its->state == ALLOCATION_CONFIRMED),
              "%s: seat %u", when, i);
    }
}

/* Two calls at once now and then. */
static void look(void *data)
{
    const struct node *node = ledger_node(world.ledger, draw_node());
    g_autoptr(GPtrArray) left_over = g_ptr_array_new();

    if (!node)
        return;
    struct stand_in *stand_in = stand_ins_take(world.stand_ins, node, left_over);
    struct stand_in *other = chance_percent(10) ? stand_in_new(node) : NULL;
    HOLDS(!stand_ins_take(world.stand_ins, node, left_over), "it is there twice");
    world.n_kept += stand_in != NULL;
    if (!stand_in)
        stand_in = stand_in_new(node);
    expect_same(node, stand_in, "taken");
    stand_in_prepare(stand_in);
    search(stand_in);
    expect_same(node, stand_in, "searched");
    if (other)
        stand_ins_give(world.stand_ins, other, left_over);
    stand_ins_give(world.stand_ins, stand_in, left_over);
    for (guint i = 0; i < left_over->len; i++)
        stand_in_free(left_over->pdata[i]);
}

static void begin(void)
{
    static const char *const amounts[FACTS] = {"1", "2", "3"};

    world.ledger = ledger_new();
    world.stand_ins = stand_ins_new();
    for (int i = 0; i < FACTS; i++) {
        const struct string_pair limits[] = {{"example.com/x", amounts[i]}};
        const struct container_view container = {.name = "c", .limits = {limits, 1}};
        world.facts[i] = pod_facts_new(&(struct pod_view){
            .ns = "ns", .name = "p", .containers = &container, .n_containers = 1});
    }
}

static void end(void)
{
    stand_ins_free(world.stand_ins);
    ledger_free(world.ledger);
    for (int i = 0; i < FACTS; i++)
        pod_facts_unref(world.facts[i]);
}

static const struct chance_action actions[] = {
    {"put", 20, put},
    {"put again", 20, put_again},
    {"set state", 8, set_state},
    {"reserve", 8, reserve},
    {"drop", 6, drop},
    {"put a CPU-only pod", 4, put_cpu_pod},
    {"set topology", 4, set_topology},
    {"set facts", 6, set_facts},
    {"set unhealthy", 3, set_unhealthy},
    {"set departed", 3, set_departed},
    {"pause", 1, pause_node},
    {"remove", 2, remove_node},
    {"look", 60, look},
    {0},
};

int main(void)
{
    chance_init("a stand-in that was kept is a fresh copy", 20000);
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % ROUND_EVENTS == 0) {
            if (i > 0)
                end();
            begin();
        }
        chance_act(actions, &world);
    }
    end();
    printf("# %u searches, %u of a stand-in that was kept\n", world.n_searches, world.n_kept);
    HOLDS(world.n_kept > world.n_searches / 8, "hardly anything was kept");
    return EXIT_SUCCESS;
}
