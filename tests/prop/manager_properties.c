/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tencent's gpu-manager, played over random schedules on one node: it takes the very pod that
 * kubelet asks for and the very card that was foreseen, as long as no pod has ended that the ledger
 * has not heard of; and whatever ends when, in the end nobody waits.
 *
 * Source of its rules: tkestack/gpu-manager at 8cd842e, pkg/services/allocator and pkg/algorithm.
 * Among the pending, unassigned pods the one that was placed first with as much core is taken; one
 * that is being deleted stays among them. Cards of pods that have ended, or that are being deleted
 * and do not run, are free again. Parts of a card go where the least core is free, then the least
 * memory, then the lowest number; which whole cards are taken nobody foresees.
 */
#include "chance.h"
#include "pod_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORE "tencent.com/vcuda-core"
#define MEMORY "tencent.com/vcuda-memory"
#define IDX "tencent.com/predicate-gpu-idx-0"
#define ASSIGNED "tencent.com/gpu-assigned"

#define ROUND_EVENTS 300
#define DRAIN_PASSES 200
#define PODS 12
#define CARDS 4
#define CARD_CORE 100
#define CARD_BLOCKS 60
#define BLOCK (INT64_C(256) << 20)

enum stage {
    NOWHERE, /* no pod */
    UNBOUND,
    BOUND,
    ADMITTED, /* gpu-manager has given out cards */
    REPORTED, /* and kubelet has said so */
    RUNNING,
};

struct pod {
    char uid[16], core_text[8], blocks_text[8];
    enum stage stage;
    bool deleting, assigned;
    int64_t core, blocks, time_ns;
    uint64_t created, ends; /* how many pods had ended when it was bound */
    bool foreseen;          /* the ledger had heard of all of these */
    struct pod_marks marks;
    /* gpu-manager's: */
    bool held;
    int32_t cards[CARDS], n_cards;
};

struct world {
    int32_t n_cards;
    int64_t now_ns;
    uint64_t n_pods, ends, ends_heard;
    struct dialect_options options;
    struct pod pods[PODS];
    struct ledger *ledger;
    GQueue feed; /* struct pod *: what the watch has yet to tell */
    int64_t free_core[CARDS], free_blocks[CARDS];
};

static const struct dialect *tencent;
static struct {
    uint64_t admitted, foreseen, failed;
} counted;

/* --- the API server ------------------------------------------------------------------------- */

static void pod_clear(struct pod *pod)
{
    pod_marks_clear(&pod->marks);
    *pod = (struct pod){0};
}

static void tell(struct world *world, const struct pod *pod)
{
    struct pod *event = g_memdup2(pod, sizeof *pod);

    pod_marks_dup(&event->marks);
    g_queue_push_tail(&world->feed, event);
}

static struct pod_view view_of(const struct pod *pod, struct container_view *container,
                               struct string_pair limits[2])
{
    limits[0] = (struct string_pair){CORE, pod->core_text};
    limits[1] = (struct string_pair){MEMORY, pod->blocks_text};
    *container = (struct container_view){.name = "c", .limits = {limits, 2}};
    return (struct pod_view){
        .ns = "ml",
        .name = pod->uid,
        .uid = pod->uid,
        .node_name = pod->stage > UNBOUND ? "n" : NULL,
        .phase = pod->stage == RUNNING ? "Running" : "Pending",
        .started = pod->stage >= REPORTED,
        .terminating = pod->deleting,
        .annotations = pod_marks_view(&pod->marks),
        .containers = container,
        .n_containers = 1,
    };
}

/* The watch tells one thing. An event of a pod that is gone counts as the end that it is. */
static void hear(void *data)
{
    struct world *world = data;
    struct pod *event = g_queue_pop_head(&world->feed);
    struct container_view container;
    struct string_pair limits[2];

    if (!event)
        return;
    struct pod_view view = view_of(event, &container, limits);
    if (event->stage == NOWHERE)
        ledger_drop(world->ledger, event->uid);
    else
        ledger_put(world->ledger, "n", dialect_read_allocation(&view, &world->options, NULL));
    world->ends_heard = MAX(world->ends_heard, event->ends);
    pod_clear(event);
    g_free(event);
}

/* The pod has ended, or will without having run: news that gpu-manager has at once. */
static void note_end(struct world *world, struct pod *pod)
{
    pod->ends = ++world->ends;
    tell(world, pod);
}

static void remove_pod(struct world *world, struct pod *pod)
{
    for (int32_t i = 0; pod->held && i < pod->n_cards; i++) {
        world->free_core[pod->cards[i]] += MIN(pod->core, CARD_CORE);
        world->free_blocks[pod->cards[i]] += pod->core >= CARD_CORE ? CARD_BLOCKS : pod->blocks;
    }
    pod->held = false;
    pod->stage = NOWHERE;
    note_end(world, pod);
    pod_clear(pod);
}

/* --- the extender --------------------------------------------------------------------------- */

static void create(void *data)
{
    static const int64_t cores[] = {10, 10, 20, 30, 50, 70, 100, 200};
    struct world *world = data;
    struct pod *pod = &world->pods[chance_below(PODS)];

    if (pod->stage != NOWHERE)
        return;
    pod->stage = UNBOUND;
    pod->created = ++world->n_pods;
    pod->core = cores[chance_below(world->n_cards > 1 ? 8 : 7)];
    pod->blocks = chance_between(1, 20);
    g_snprintf(pod->uid, sizeof pod->uid, "u%" G_GUINT64_FORMAT, pod->created % 1000000);
    g_snprintf(pod->core_text, sizeof pod->core_text, "%d", (int)pod->core);
    g_snprintf(pod->blocks_text, sizeof pod->blocks_text, "%d", (int)pod->blocks);
}

static void try_bind(struct world *world, struct pod *pod)
{
    struct container_view container;
    struct string_pair limits[2];
    g_auto(annotations) written = {0};
    struct placement placement;
    enum reason reason;

    if (pod->stage != UNBOUND)
        return;
    struct pod_view view = view_of(pod, &container, limits);
    g_autoptr(request) request = dialect_read_request(&view, &world->options, NULL);
    const struct admission_query query = {request, &policies[0], &world->options, world->now_ns,
                                          INT64_MAX};
    if (dialect_admit(ledger_node(world->ledger, "n"), &query, &placement, &reason) !=
        ADMISSION_YES)
        return;

    struct allocation *allocation = allocation_new(pod->uid, "ml", pod->uid, placement.n_shares);
    allocation->dialect = tencent;
    allocation->waiting = true;
    allocation->match_amount = request->match_amount;
    allocation->assume_time_ns = ++world->now_ns;
    allocation->terms = terms_ref(request->terms);
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation = ledger_reserve(world->ledger, "n", allocation, &reason);
    HOLDS(allocation, "%s: %s", pod->uid, reason_info(reason)->code);
    tencent->write_annotations(allocation, allocation->node, &written);
    pod_marks_apply(&pod->marks, &written);
    pod->stage = BOUND;
    pod->time_ns = world->now_ns;
    pod->foreseen = world->ends == world->ends_heard;
    pod->ends = world->ends;
    tell(world, pod);
}

/* --- gpu-manager ---------------------------------------------------------------------------- */

static void recycle(struct world *world)
{
    for (int p = 0; p < PODS; p++) {
        struct pod *pod = &world->pods[p];
        if (!pod->held || !pod->deleting || pod->stage == RUNNING)
            continue;
        for (int32_t i = 0; i < pod->n_cards; i++) {
            world->free_core[pod->cards[i]] += MIN(pod->core, CARD_CORE);
            world->free_blocks[pod->cards[i]] += pod->core >= CARD_CORE ? CARD_BLOCKS : pod->blocks;
        }
        pod->held = false;
    }
}

/* Without a time of prediction, that of creation counts. */
static bool is_older(const struct world *world, const struct pod *pod, const struct pod *other)
{
    return world->options.tencent_unchecked ? pod->created < other->created
                                            : pod->time_ns < other->time_ns;
}

static struct pod *match(struct world *world, int64_t core)
{
    struct pod *oldest = NULL;

    for (int p = 0; p < PODS; p++) {
        struct pod *pod = &world->pods[p];
        if (pod->stage < BOUND || pod->stage == RUNNING || pod->assigned || pod->held ||
            pod->core != core)
            continue;
        if (!oldest || is_older(world, pod, oldest))
            oldest = pod;
    }
    return oldest;
}

static int32_t best_card(const struct world *world, const struct pod *pod)
{
    int32_t best = -1;

    for (int32_t i = 0; i < world->n_cards; i++) {
        if (world->free_core[i] < pod->core || world->free_blocks[i] < pod->blocks)
            continue;
        if (best < 0 || world->free_core[i] < world->free_core[best] ||
            (world->free_core[i] == world->free_core[best] &&
             world->free_blocks[i] < world->free_blocks[best]))
            best = i;
    }
    return best;
}

/* False: there are no such cards. */
static bool choose_cards(const struct world *world, struct pod *pod)
{
    uint32_t order[CARDS];

    pod->n_cards = 0;
    if (pod->core < CARD_CORE) {
        pod->cards[0] = best_card(world, pod);
        pod->n_cards = pod->cards[0] >= 0;
        return pod->n_cards == 1;
    }
    chance_order(order, (uint32_t)world->n_cards);
    for (int32_t i = 0; i < world->n_cards && pod->n_cards < pod->core / CARD_CORE; i++) {
        if (world->free_core[order[i]] == CARD_CORE)
            pod->cards[pod->n_cards++] = (int32_t)order[i];
    }
    return pod->n_cards == pod->core / CARD_CORE;
}

static void write_cards(struct pod *pod, const char *assigned)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (int32_t i = 0; i < pod->n_cards; i++)
        g_string_append_printf(text, "%s%d", i ? "," : "", pod->cards[i]);
    pod_marks_set(&pod->marks, IDX, text->str);
    pod_marks_set(&pod->marks, ASSIGNED, assigned);
}

/* Whether what earlier pods were admitted as is what they are. */
static bool is_sound(const struct world *world)
{
    for (int p = 0; p < PODS; p++) {
        const struct pod *pod = &world->pods[p];
        if (pod->stage >= ADMITTED && !pod->held && !pod->deleting)
            return false;
    }
    return true;
}

/* kubelet admits the pod; one that is being deleted it does not. */
static void admit(struct world *world, struct pod *pod)
{
    if (pod->stage != BOUND || pod->deleting)
        return;
    const bool calm = pod->foreseen && pod->ends == world->ends && is_sound(world);
    recycle(world);
    struct pod *matched = match(world, pod->core);
    HOLDS(matched, "%s is there", pod->uid);
    HOLDS(matched == pod || !calm, "%s is taken for %s", matched->uid, pod->uid);
    const bool found = choose_cards(world, matched);
    HOLDS(found || !calm, "no card for %s", pod->uid);

    const char *said = pod_marks_get(&matched->marks, IDX);
    const bool as_said = found && (matched->core >= CARD_CORE || atoi(said) == matched->cards[0]);
    HOLDS(as_said || !calm, "%s: %s was foreseen, it is %d", pod->uid, said, matched->cards[0]);
    counted.admitted++;
    counted.foreseen += calm;
    if (!found || (!as_said && !world->options.tencent_unchecked)) {
        counted.failed++;
        remove_pod(world, pod);
        return;
    }
    for (int32_t i = 0; i < matched->n_cards; i++) {
        world->free_core[matched->cards[i]] -= MIN(matched->core, CARD_CORE);
        world->free_blocks[matched->cards[i]] -=
            matched->core >= CARD_CORE ? CARD_BLOCKS : matched->blocks;
    }
    matched->held = true;
    pod->stage = ADMITTED;
    if (world->options.tencent_unchecked) {
        write_cards(matched, "false");
        tell(world, matched);
    }
}

/* --- kubelet -------------------------------------------------------------------------------- */

static void report(struct world *world, struct pod *pod)
{
    if (pod->stage != ADMITTED)
        return;
    pod->stage = REPORTED;
    tell(world, pod);
}

/* Before a container starts, gpu-manager knows whose it is. */
static void run(struct world *world, struct pod *pod)
{
    if (pod->stage != REPORTED || pod->deleting)
        return;
    if (!pod->held) {
        counted.failed++;
        remove_pod(world, pod);
        return;
    }
    pod->assigned = true;
    write_cards(pod, "true");
    tell(world, pod);
    pod->stage = RUNNING;
    tell(world, pod);
}

static void finish(struct world *world, struct pod *pod)
{
    if (pod->stage == RUNNING || (pod->stage >= BOUND && pod->deleting))
        remove_pod(world, pod);
}

static void delete_pod(struct world *world, struct pod *pod)
{
    if (pod->stage == UNBOUND) {
        pod_clear(pod);
    } else if (pod->stage >= BOUND && !pod->deleting) {
        pod->deleting = true;
        note_end(world, pod);
    }
}

static struct pod *any_pod(struct world *world)
{
    return &world->pods[chance_below(PODS)];
}

static void do_bind(void *world) { try_bind(world, any_pod(world)); }
static void do_admit(void *world) { admit(world, any_pod(world)); }
static void do_report(void *world) { report(world, any_pod(world)); }
static void do_run(void *world) { run(world, any_pod(world)); }
static void do_finish(void *world) { finish(world, any_pod(world)); }
static void do_delete(void *world) { delete_pod(world, any_pod(world)); }

/* --- rounds --------------------------------------------------------------------------------- */

/* Nothing new comes, and everything goes on: all get their turn. */
static void drain(struct world *world)
{
    bool left = true;

    for (int pass = 0; left && pass < DRAIN_PASSES; pass++) {
        left = false;
        for (int p = 0; p < PODS; p++) {
            struct pod *pod = &world->pods[p];
            try_bind(world, pod);
            admit(world, pod);
            report(world, pod);
            run(world, pod);
            finish(world, pod);
            while (!g_queue_is_empty(&world->feed))
                hear(world);
            left |= pod->stage != NOWHERE;
        }
    }
    for (int p = 0; p < PODS; p++)
        HOLDS(world->pods[p].stage == NOWHERE, "%s waits for ever", world->pods[p].uid);
    HOLDS(ledger_node(world->ledger, "n")->allocations->len == 0, "the node is empty");
}

static void world_clear(struct world *world)
{
    for (int p = 0; p < PODS; p++)
        pod_clear(&world->pods[p]);
    for (struct pod *event; (event = g_queue_pop_head(&world->feed));) {
        pod_clear(event);
        g_free(event);
    }
    ledger_free(world->ledger);
    world->ledger = NULL;
}

static void world_renew(struct world *world)
{
    g_autoptr(topology) topology = topology_new();

    world_clear(world);
    *world = (struct world){
        .n_cards = (int32_t)chance_between(1, CARDS), .now_ns = 1, .ledger = ledger_new()};
    world->options.tencent_unchecked = chance_percent(30);
    topology->dialect = tencent;
    topology->dialects[topology->n_dialects++] = tencent;
    topology->memory_unit = BLOCK;
    topology->n_cards = world->n_cards;
    for (int32_t i = 0; i < world->n_cards; i++) {
        topology->cards[i].memory = CARD_BLOCKS * BLOCK;
        topology->cards[i].rank = i;
        world->free_core[i] = CARD_CORE;
        world->free_blocks[i] = CARD_BLOCKS;
    }
    ledger_set_topology(world->ledger, "n", topology);
}

static const struct chance_action actions[] = {
    {"create", 10, create},     {"bind", 30, do_bind}, {"hear", 40, hear},
    {"admit", 20, do_admit},    {"report", 20, do_report}, {"run", 16, do_run},
    {"finish", 10, do_finish},  {"delete", 3, do_delete},  {0},
};

int main(void)
{
    struct world world = {0};

    tencent = dialect_find("tencent");
    chance_init("gpu-manager takes what was foreseen, and nobody waits for ever", 300000);
    for (unsigned event = 0; chance_next_event(); event++) {
        if (event % ROUND_EVENTS == 0) {
            if (event > 0)
                drain(&world);
            world_renew(&world);
        }
        chance_act(actions, &world);
    }
    drain(&world);
    printf("  %" G_GUINT64_FORMAT " pods admitted, %" G_GUINT64_FORMAT
           " of them as foreseen for certain, %" G_GUINT64_FORMAT " failed\n",
           counted.admitted, counted.foreseen, counted.failed);
    world_clear(&world);
    return EXIT_SUCCESS;
}
