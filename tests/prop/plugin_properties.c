/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gpushare device plugin, played over random schedules: every container gets the card that the
 * ledger says its pod has, though the plugin does not know which pod it serves.
 *
 * Source of the plugin's rule: AliyunContainerService/gpushare-device-plugin aff8a23, 2656995,
 * 45fb8b8, allocate.go and podutils.go. Of the pending pods of the node with an assume time and
 * ASSIGNED "false", the one with the oldest assume time (in any order among equal ones) whose
 * total equals the container's amount is taken; its IDX is handed out and it is marked. The newest
 * plugin hands out the only card of a node to whatever it cannot match.
 *
 * Two kinds of schedule. Calm: kubelet admits pods in batches in the order in which they were
 * bound, in any order within a batch, and a pod gets no further before its batch is admitted.
 * Then every container is served. Wild: kubelet asks for any pod at any time, pods run or vanish
 * at any time, assume times may be equal. Then a container may find no match, as it may with the
 * peer, but never another card than its own. In both, the ledger hears of everything late.
 */
#include "chance.h"
#include "pod_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCE "aliyun.com/gpu-mem"
#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

#define ROUND_EVENTS 400
#define PODS 24
#define CONTAINERS 3
#define NO_CARD (-1)
#define GIB (INT64_C(1) << 30)
#define START_NS INT64_C(1767225600000000000)

/* A pod as the API server has it. */
struct pod {
    char uid[12];
    bool bound, pending, started;
    uint32_t n_containers, n_served; /* kubelet asks for one container after the other */
    char amounts[CONTAINERS][8];
    struct pod_marks marks;
    uint64_t bound_as; /* the how-manieth */
};

struct world {
    bool wild;
    int32_t n_cards;
    int64_t now_ns;
    uint64_t n_bound;
    struct dialect_options options;
    struct pod pods[PODS];
    struct ledger *ledger;
    GQueue feed; /* struct pod *: what the watch has yet to tell */
    struct pod *batch[PODS];
    uint32_t n_batch;
};

static const struct dialect *gpushare;
static struct {
    uint64_t calls, swaps, unserved;
} counted;

/* --- the API server ------------------------------------------------------------------------- */

static void pod_clear(struct pod *pod)
{
    pod_marks_clear(&pod->marks);
    *pod = (struct pod){0};
}

static int64_t amount_of(const struct pod *pod, uint32_t container)
{
    return g_ascii_strtoll(pod->amounts[container], NULL, 10);
}

static int64_t total_of(const struct pod *pod)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < pod->n_containers; i++)
        total += amount_of(pod, i);
    return total;
}

/* Puts the pod's present state at the end of what the watch will tell. */
static void tell(struct world *world, const struct pod *pod)
{
    struct pod *event = g_memdup2(pod, sizeof *pod);

    pod_marks_dup(&event->marks);
    g_queue_push_tail(&world->feed, event);
}

static struct pod_view view_of(const struct pod *pod, struct container_view *containers,
                               struct string_pair *limits)
{
    for (uint32_t i = 0; i < pod->n_containers; i++) {
        limits[i] = (struct string_pair){RESOURCE, pod->amounts[i]};
        containers[i] = (struct container_view){.name = "c", .limits = {&limits[i], 1}};
    }
    return (struct pod_view){
        .ns = "ml",
        .name = pod->uid,
        .uid = pod->uid,
        .node_name = pod->bound ? "n" : NULL,
        .phase = pod->pending ? "Pending" : "Running",
        .started = pod->started,
        .annotations = pod_marks_view(&pod->marks),
        .containers = containers,
        .n_containers = pod->n_containers,
    };
}

/* The watch tells one thing. */
static void hear(void *data)
{
    struct world *world = data;
    struct pod *event = g_queue_pop_head(&world->feed);
    struct container_view containers[CONTAINERS];
    struct string_pair limits[CONTAINERS];
    g_autofree char *warning = NULL;

    if (!event)
        return;
    struct pod_view view = view_of(event, containers, limits);
    if (event->bound) {
        struct allocation *allocation = dialect_read_allocation(&view, &world->options, &warning);
        HOLDS(allocation && !warning, "%s: %s", event->uid, warning);
        ledger_put(world->ledger, "n", allocation);
    } else {
        ledger_drop(world->ledger, event->uid);
    }
    pod_clear(event);
    g_free(event);
}

/* --- the extender --------------------------------------------------------------------------- */

static int64_t draw_assume_time(const struct world *world)
{
    const struct node *node = ledger_node(world->ledger, "n");
    int64_t time_ns = world->now_ns;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        time_ns = MAX(time_ns, other->assume_time_ns + !world->wild);
    }
    return time_ns;
}

static void draw_pod(struct world *world, struct pod *pod)
{
    bool several = world->options.gpushare_any_on_single_card && chance_percent(40);

    *pod = (struct pod){.pending = true, .n_containers = several ? 1 + chance_below(3) : 1};
    g_snprintf(pod->uid, sizeof pod->uid, "u%" G_GUINT64_FORMAT, world->n_bound++ % 1000000);
    for (uint32_t i = 0; i < pod->n_containers; i++)
        g_snprintf(pod->amounts[i], sizeof pod->amounts[i], "%u", 1 + chance_below(3));
}

/* One pod goes through admission; it stays unbound if it has to wait. */
static void bind(void *data)
{
    struct world *world = data;
    struct pod *pod = &world->pods[chance_below(PODS)];
    struct container_view containers[CONTAINERS];
    struct string_pair limits[CONTAINERS];
    g_auto(annotations) written = {0};
    struct placement placement;
    enum reason reason;

    if (pod->bound)
        return;
    draw_pod(world, pod);
    struct pod_view view = view_of(pod, containers, limits);
    g_autoptr(request) request = dialect_read_request(&view, &world->options, NULL);
    struct admission_query query = {request, &policies[chance_below(3)], &world->options,
                                    world->now_ns, INT64_MAX};
    if (dialect_admit(ledger_node(world->ledger, "n"), &query, &placement, &reason) !=
        ADMISSION_YES)
        return;

    struct allocation *allocation = allocation_new(pod->uid, "ml", pod->uid, 1);
    allocation->dialect = gpushare;
    allocation->waiting = true;
    allocation->match_amount = request->match_amount;
    allocation->assume_time_ns = draw_assume_time(world);
    allocation->shares[0] = placement.shares[0];
    allocation = ledger_reserve(world->ledger, "n", allocation, &reason);
    HOLDS(allocation, "%s", reason_info(reason)->code);
    gpushare->write_annotations(allocation, allocation->node, &written);
    pod->bound = true;
    pod->bound_as = world->n_bound;
    pod_marks_apply(&pod->marks, &written);
    tell(world, pod);
}

/* --- the plugin ----------------------------------------------------------------------------- */

static bool is_candidate(const struct pod *pod)
{
    return pod->bound && pod->pending && pod_marks_get(&pod->marks, ASSUME_TIME) &&
           g_strcmp0(pod_marks_get(&pod->marks, ASSIGNED), "false") == 0;
}

static struct pod *match(struct world *world, int64_t amount)
{
    uint32_t order[PODS];
    struct pod *oldest = NULL;
    guint64 oldest_time = 0;

    chance_order(order, PODS); /* equal times come in any order */
    for (uint32_t i = 0; i < PODS; i++) {
        struct pod *pod = &world->pods[order[i]];
        if (!is_candidate(pod) || total_of(pod) != amount)
            continue;
        guint64 time = g_ascii_strtoull(pod_marks_get(&pod->marks, ASSUME_TIME), NULL, 10);
        if (!oldest || time < oldest_time) {
            oldest = pod;
            oldest_time = time;
        }
    }
    return oldest;
}

/* One Allocate call: the card handed out, or NO_CARD. */
static int32_t allocate(struct world *world, const struct pod *caller, int64_t amount)
{
    struct pod *matched = match(world, amount);
    g_auto(annotations) marks = {0};
    struct allocation none = {0};

    counted.calls++;
    if (!matched && world->n_cards == 1)
        return 0;
    if (!matched) {
        counted.unserved++;
        return NO_CARD;
    }
    counted.swaps += matched != caller;
    gpushare->write_assigned(&none, world->now_ns, &marks);
    pod_marks_apply(&matched->marks, &marks);
    tell(world, matched);
    return (int32_t)g_ascii_strtoll(pod_marks_get(&matched->marks, IDX), NULL, 10);
}

/* --- kubelet -------------------------------------------------------------------------------- */

/* Asks for all containers of a pod, as admission does, then reports that the pod has started. */
static void admit(struct world *world, struct pod *pod)
{
    const struct allocation *held = ledger_get(world->ledger, pod->uid);
    int32_t own = (int32_t)g_ascii_strtoll(pod_marks_get(&pod->marks, IDX), NULL, 10);

    HOLDS(held && held->shares[0].card == own, "%s is on card %d", pod->uid, own);
    for (; pod->n_served < pod->n_containers; pod->n_served++) {
        int32_t card = allocate(world, pod, amount_of(pod, pod->n_served));
        HOLDS(card == own || (card == NO_CARD && world->wild),
              "%s has card %d, its container got %d", pod->uid, own, card);
    }
}

static void report_start(struct world *world, struct pod *pod)
{
    pod->started = true;
    tell(world, pod);
}

static int compare_bound(const void *a, const void *b)
{
    const struct pod *const *left = a, *const *right = b;
    return (*left)->bound_as < (*right)->bound_as ? -1 : 1;
}

/* The pods that kubelet hears of next, in the order in which they were bound. */
static void form_batch(struct world *world)
{
    struct pod *bound[PODS];
    uint32_t order[PODS], n = 0;

    for (uint32_t i = 0; i < PODS; i++) {
        if (world->pods[i].bound && world->pods[i].n_served == 0)
            bound[n++] = &world->pods[i];
    }
    if (n == 0)
        return;
    qsort(bound, n, sizeof(struct pod *), compare_bound);
    n = 1 + chance_below(n);
    chance_order(order, n);
    for (uint32_t i = 0; i < n; i++)
        world->batch[i] = bound[order[i]];
    world->n_batch = n;
}

static void call(void *data)
{
    struct world *world = data;
    struct pod *pod = &world->pods[chance_below(PODS)];

    if (!world->wild) {
        if (world->n_batch == 0)
            form_batch(world);
        if (world->n_batch == 0)
            return;
        pod = world->batch[--world->n_batch];
    } else if (!pod->bound || pod->n_served > 0) {
        return;
    }
    admit(world, pod);
    if (!world->wild)
        report_start(world, pod);
}

static struct pod *pick_served(struct world *world)
{
    struct pod *pod = &world->pods[chance_below(PODS)];
    bool served = pod->bound && pod->n_served == pod->n_containers;

    return served && (world->wild || world->n_batch == 0) ? pod : NULL;
}

static void start(void *data)
{
    struct pod *pod = pick_served(data);

    if (pod && !pod->started)
        report_start(data, pod);
}

static void run(void *data)
{
    struct pod *pod = pick_served(data);

    if (!pod || !pod->pending)
        return;
    pod->started = true;
    pod->pending = false;
    tell(data, pod);
}

static void end(void *data)
{
    struct world *world = data;
    struct pod *pod = pick_served(world);

    if (world->wild && chance_percent(50))
        pod = &world->pods[chance_below(PODS)]; /* whatever has become of it */
    if (!pod || !pod->bound)
        return;
    pod->bound = false;
    tell(world, pod);
    pod_clear(pod);
}

static void pass_time(void *data)
{
    struct world *world = data;
    world->now_ns += chance_below(3);
}

/* --- rounds --------------------------------------------------------------------------------- */

static void world_clear(struct world *world)
{
    struct pod *event;

    for (uint32_t i = 0; i < PODS; i++)
        pod_clear(&world->pods[i]);
    while ((event = g_queue_pop_head(&world->feed))) {
        pod_clear(event);
        g_free(event);
    }
    ledger_free(world->ledger);
    world->ledger = NULL;
}

static void world_renew(struct world *world, bool wild)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    world_clear(world);
    *world = (struct world){
        .wild = wild,
        .n_cards = (int32_t)chance_between(1, 4),
        .now_ns = START_NS,
        .ledger = ledger_new(),
    };
    world->options.gpushare_any_on_single_card = world->n_cards == 1;
    topology->dialect = gpushare;
    topology->memory_unit = GIB;
    topology->n_cards = world->n_cards;
    for (int32_t i = 0; i < world->n_cards; i++)
        topology->cards[i].memory = 16 * GIB;
    ledger_set_topology(world->ledger, "n", topology);
}

static const struct chance_action actions[] = {
    {"bind", 24, bind}, {"hear", 40, hear}, {"call", 16, call},          {"start", 8, start},
    {"run", 8, run},    {"end", 16, end},   {"pass time", 6, pass_time}, {0},
};

int main(void)
{
    static const struct {
        const char *property;
        bool wild;
    } schedules[] = {
        {"calm schedules: every container gets its pod's card", false},
        {"wild schedules: no container gets another pod's card", true},
    };
    struct world world = {0};

    gpushare = dialect_find("gpushare");
    for (size_t i = 0; i < G_N_ELEMENTS(schedules); i++) {
        memset(&counted, 0, sizeof counted);
        chance_init(schedules[i].property, 300000);
        for (unsigned event = 0; chance_next_event(); event++) {
            if (event % ROUND_EVENTS == 0)
                world_renew(&world, schedules[i].wild);
            chance_act(actions, &world);
        }
        printf("  %" G_GUINT64_FORMAT " calls, %" G_GUINT64_FORMAT
               " of them matched with another pod, %" G_GUINT64_FORMAT " with none\n",
               counted.calls, counted.swaps, counted.unserved);
    }
    world_clear(&world);
    return EXIT_SUCCESS;
}
