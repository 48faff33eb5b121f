/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves that admit a pod which found no room: for large clusters, where plan/plan.h would give up. On
 * each node the smallest pods are taken away, on a copy, until the pod fits there; those that need not
 * go are put back. The node with the fewest moves is taken.
 */
#include "plan/rate.h"
#include "policy/what_if.h"
#include "simulate/memory_cluster.h"
#include "simulate/simulation_state.h"

#define MOVES_OF_ONE_POD 8

/* Who leaves which node. */
struct way {
    struct departure *leave[MOVES_OF_ONE_POD];
    uint32_t n;
    double gpus; /* of those who leave */
};

struct looking {
    struct simulation *simulation;
    const struct kind_of_pod *kind; /* of the pod that is to find room */
    const struct ledger *ledger;
    uint32_t most; /* moves */
};

static bool has_room(const struct looking *looking, const struct node *node, uint32_t at,
                     const struct kind_of_pod *kind)
{
    return !(kind->barred && kind->barred[at]) &&
           scheduler_model_fits(looking->simulation->model, at, kind->needs) &&
           placement_fits(node, kind->request, &policies[0], NULL);
}

static const struct node *node_at(const struct looking *looking, uint32_t at)
{
    return ledger_node(looking->ledger, looking->simulation->node_names->pdata[at]);
}

/* Whether some other node has room for it as things are. */
static bool can_go(const struct looking *looking, const struct departure *pod)
{
    for (uint32_t i = 0; i < looking->simulation->node_names->len; i++) {
        const struct node *node = node_at(looking, i);
        if (i != pod->node && node && has_room(looking, node, i, pod->of))
            return true;
    }
    return false;
}

static struct allocation *held_by(const struct what_if *what_if, const struct departure *pod)
{
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *allocation = what_if->allocations->pdata[i];
        if (g_str_equal(allocation->name, pod->name) && g_str_equal(allocation->ns, pod->ns))
            return allocation;
    }
    return NULL;
}

static void set_away(const struct looking *looking, struct what_if *what_if,
                     const struct departure *pod, bool away)
{
    (away ? what_if_without : what_if_with)(what_if, held_by(what_if, pod));
    (away ? scheduler_model_give : scheduler_model_take)(looking->simulation->model, pod->node,
                                                         pod->of->needs);
}

/* The smallest first; `pods` are of one node. False: too many would have to go. */
static bool clear_node(const struct looking *looking, struct what_if *what_if, uint32_t at,
                       const GPtrArray *pods, struct way *ret_way)
{
    struct departure *gone[MOVES_OF_ONE_POD];
    struct way way = {0};
    uint32_t n = 0;
    bool fits = false;

    for (guint i = 0; i < pods->len && n < looking->most && !fits; i++) {
        gone[n++] = pods->pdata[i];
        set_away(looking, what_if, pods->pdata[i], true);
        fits = has_room(looking, what_if->node, at, looking->kind);
    }
    for (uint32_t i = n; i-- > 0;) {
        set_away(looking, what_if, gone[i], false);
        if (!fits || has_room(looking, what_if->node, at, looking->kind))
            continue;
        set_away(looking, what_if, gone[i], true);
        way.leave[way.n++] = gone[i];
        way.gpus += gone[i]->gpus;
    }
    for (uint32_t i = 0; i < way.n; i++)
        set_away(looking, what_if, way.leave[i], false);
    *ret_way = way;
    return fits;
}

/* One pod alone that need not be the smallest, or the smallest ones together. */
static bool look_at_node(const struct looking *looking, uint32_t at, const GPtrArray *pods,
                         struct way *ret_way)
{
    const struct node *node = node_at(looking, at);

    if (!node || pods->len == 0)
        return false;
    g_autoptr(what_if) what_if = what_if_new(node);
    for (guint i = 0; i < pods->len; i++) {
        struct departure *pod = pods->pdata[i];
        set_away(looking, what_if, pod, true);
        const bool fits = has_room(looking, what_if->node, at, looking->kind);
        set_away(looking, what_if, pod, false);
        if (fits && can_go(looking, pod)) {
            *ret_way = (struct way){{pod}, 1, pod->gpus};
            return true;
        }
    }
    if (looking->most < 2 || !clear_node(looking, what_if, at, pods, ret_way))
        return false;
    for (uint32_t i = 0; i < ret_way->n; i++)
        if (!can_go(looking, ret_way->leave[i]))
            return false;
    return true;
}

static gint compare_sizes(gconstpointer a, gconstpointer b)
{
    const struct departure *left = *(struct departure *const *)a;
    const struct departure *right = *(struct departure *const *)b;

    return left->gpus != right->gpus ? (left->gpus > right->gpus ? 1 : -1)
                                     : g_strcmp0(left->name, right->name);
}

/* Who is no smaller than the pod would not find room where the pod has not. */
static GPtrArray *movable_by_node(const struct looking *looking, GSequence *departures)
{
    const guint n = looking->simulation->node_names->len;
    GPtrArray *nodes = g_ptr_array_new_full(n, (GDestroyNotify)g_ptr_array_unref);

    for (guint i = 0; i < n; i++)
        g_ptr_array_add(nodes, g_ptr_array_new());
    for (GSequenceIter *at = g_sequence_get_begin_iter(departures); !g_sequence_iter_is_end(at);
         at = g_sequence_iter_next(at)) {
        struct departure *pod = g_sequence_get(at);
        if (pod->of->filtered && pod->of->request && pod->gpus < looking->kind->gpus)
            g_ptr_array_add(nodes->pdata[pod->node], pod);
    }
    for (guint i = 0; i < n; i++)
        g_ptr_array_sort(nodes->pdata[i], compare_sizes);
    return nodes;
}

static bool find_way(const struct looking *looking, GSequence *departures, struct way *ret_way)
{
    g_autoptr(GPtrArray) nodes = movable_by_node(looking, departures);
    bool found = false;
    struct way way = {0};

    for (guint i = 0; i < nodes->len; i++) {
        if (!look_at_node(looking, i, nodes->pdata[i], &way) ||
            (found && (way.n > ret_way->n || (way.n == ret_way->n && way.gpus >= ret_way->gpus))))
            continue;
        *ret_way = way;
        found = true;
    }
    return found;
}

/* The successor is booked while its predecessor counts; then that one ends. */
static bool move(struct simulation *simulation, struct departure *pod, GError **error)
{
    uint32_t node;
    char *name = simulation_place(simulation, pod->of, pod->node, &node, error);

    if (!name)
        return false;
    memory_cluster_remove(simulation->cluster, pod->of->manifest->ns, pod->name);
    scheduler_model_give(simulation->model, pod->node, pod->of->needs);
    simulation_recount(simulation, pod->node);
    simulation_recount(simulation, node);
    g_free(pod->name);
    pod->name = name;
    pod->node = node;
    simulation->result->moves++;
    return true;
}

/* How many pods may be moved now; the time is in mean lifetimes. */
static uint64_t moves_left(const struct simulation *simulation, double now)
{
    const struct simulation_options *options = simulation->options;
    const struct simulation_result *result = simulation->result;
    const uint64_t budget = result->arrivals * (uint64_t)options->moves_per_thousand / 1000;

    if (options->moves_per_hour > 0)
        return rate_left(simulation->moved_ms, options->moves_per_hour, RATE_HOUR_MS,
                         (int64_t)(now * (double)options->lifetime_ms));
    return budget > result->moves ? budget - result->moves : 0;
}

char *simulation_make_room(struct simulation *simulation, GSequence *departures,
                           struct kind_of_pod *kind, double now, uint32_t *ret_node, GError **error)
{
    struct simulation_result *result = simulation->result;
    const int64_t now_ms = (int64_t)(now * (double)simulation->options->lifetime_ms);
    const uint64_t left = moves_left(simulation, now);
    struct looking looking = {.simulation = simulation, .kind = kind};
    GError *failure = NULL;
    struct way way = {0};

    if (!kind->filtered || !kind->request || left == 0)
        return NULL;
    looking.most = (uint32_t)MIN(MOVES_OF_ONE_POD, left);
    looking.ledger = store_lock(simulation->store);
    const bool found = find_way(&looking, departures, &way);
    store_unlock(simulation->store);
    if (!found)
        return NULL;
    for (uint32_t i = 0; i < way.n; i++) {
        if (!move(simulation, way.leave[i], &failure)) {
            if (failure)
                g_propagate_error(error, failure);
            return NULL;
        }
        g_array_append_val(simulation->moved_ms, now_ms);
    }
    char *name = simulation_place(simulation, kind, SIMULATION_ANYWHERE, ret_node, error);
    if (name) {
        simulation_recount(simulation, *ret_node);
        result->failed[kind->kind]--;
    }
    return name;
}
