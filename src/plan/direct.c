/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search.h"
#include "policy/what_if.h"

#include <gpuledger/ranking.h>

#define WAYS_MAX 256 /* that are tried */

/* --- where a pod goes -------------------------------------------------------------------------- */

/* What the policy would take of the node, but for what is to be emptied. */
static bool place_on(const struct search *search, const struct request *request,
                     const struct node *node, struct placement *ret_placement)
{
    if (!search_place(search, node, request, CARD_UNKNOWN, ret_placement))
        return false;
    if (!search_refills(search, node, ret_placement))
        return true;
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (search_place(search, node, request, node->cards[i].index, ret_placement) &&
            !search_refills(search, node, ret_placement))
            return true;
    }
    return false;
}

/* The best of the nodes that have room now; `from` only if there is no other. */
static const struct node *choose(struct search *search, const struct plan_pod *pod,
                                 const char *from, struct placement *ret_placement)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);
    g_autofree struct rank *ranks = g_new0(struct rank, nodes->len + 1);
    const struct policy *policy = search->query->policy;
    const struct node *own = ledger_node(search->ledger, from), *best = NULL;
    size_t n = 0;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node == own || !search_admits(search, node, pod) ||
            !place_on(search, pod->request, node, ret_placement))
            continue;
        ranking_rate(policy, node, ret_placement, NULL, &ranks[n]);
        ranks[n++].name = node->name;
    }
    if (n > 0)
        best = ledger_node(search->ledger, ranks[ranking_winner(policy, ranks, n)].name);
    else if (search_admits(search, own, pod))
        best = own;
    if (best == own && best && search_may_pin(search, pod->request, own) &&
        search_land(search, (size_t)(pod - search->query->pods), from, ret_placement) &&
        !search_refills(search, ledger_node(search->ledger, from), ret_placement))
        return ledger_node(search->ledger, from);
    best = best == own && best ? ledger_node(search->ledger, from) : best;
    return best && place_on(search, pod->request, best, ret_placement) ? best : NULL;
}

/* All of them, the most expensive first, since it finds room hardest. False: nothing has moved. */
static bool move_all(struct search *search, const GArray *pods, bool *ret_reached)
{
    const guint before = search->steps->len;

    for (guint i = pods->len; i-- > 0;) {
        const size_t pod = g_array_index(pods, size_t, i);
        const struct plan_pod *plan_pod = &search->query->pods[pod];
        const struct allocation *old = ledger_get(search->ledger, plan_pod->uid);
        const bool may = search_may_move(search, pod);
        struct placement placement;

        if (may && plan_pod->ends) {
            search_end(search, pod);
            continue;
        }
        const struct node *to = may ? choose(search, plan_pod, old->node->name, &placement) : NULL;
        if (!to || !search_move(search, pod, to->name, &placement)) {
            search_return(search, before);
            return false;
        }
    }
    *ret_reached = search_reached(search);
    if (!*ret_reached)
        search_return(search, before);
    return true;
}

/* --- who goes ---------------------------------------------------------------------------------- */

/* Pods that leave one node, and what that costs. */
struct way {
    GArray *pods; /* size_t */
    int64_t cost;
};

static void way_clear(void *data)
{
    g_array_unref(((struct way *)data)->pods);
}

static gint compare_ways(gconstpointer a, gconstpointer b)
{
    const struct way *one = a, *other = b;

    if (one->pods->len != other->pods->len)
        return one->pods->len < other->pods->len ? -1 : 1;
    return (one->cost > other->cost) - (one->cost < other->cost);
}

static gint compare_costs(gconstpointer a, gconstpointer b, gpointer pods)
{
    const size_t one = *(const size_t *)a, other = *(const size_t *)b;
    const int64_t costs[] = {((const struct plan_pod *)pods)[one].cost,
                             ((const struct plan_pod *)pods)[other].cost};

    if (costs[0] != costs[1])
        return costs[0] > costs[1] ? 1 : -1;
    return (one > other) - (one < other);
}

static void add_way(const struct search *search, GArray *ways, GArray *take_pods)
{
    struct way way = {take_pods, 0};

    for (guint i = 0; i < take_pods->len; i++)
        way.cost += search->query->pods[g_array_index(take_pods, size_t, i)].cost;
    g_array_append_val(ways, way);
}

static struct allocation *held_by(const struct what_if *what_if, const struct plan_pod *pod)
{
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *one = what_if->allocations->pdata[i];
        if (g_str_equal(one->uid, pod->uid))
            return one;
    }
    return NULL;
}

/* The pods of one node, the cheapest first, until there is room; then back with those that need not
 * go. */
static void clear_node(const struct search *search, struct what_if *what_if, const GArray *pods,
                       uint32_t most, GArray *ways)
{
    const struct request *admit = search->query->goal.admit;
    GArray *gone = g_array_new(FALSE, FALSE, sizeof(size_t));
    bool fits = false;

    for (guint i = 0; i < pods->len && !fits; i++) {
        const size_t pod = g_array_index(pods, size_t, i);
        what_if_without(what_if, held_by(what_if, &search->query->pods[pod]));
        g_array_append_val(gone, pod);
        fits = search_fits(search, what_if->node, admit);
    }
    for (guint i = gone->len; fits && i-- > 0;) {
        const struct plan_pod *pod = &search->query->pods[g_array_index(gone, size_t, i)];
        what_if_with(what_if, held_by(what_if, pod));
        if (search_fits(search, what_if->node, admit))
            g_array_remove_index(gone, i);
        else
            what_if_without(what_if, held_by(what_if, pod));
    }
    if (fits && gone->len <= most)
        add_way(search, ways, gone);
    else
        g_array_unref(gone);
}

/* One pod alone, each that would do, or the cheapest together. */
static void look_at_node(const struct search *search, const struct node *node, GArray *pods,
                         uint32_t most, GArray *ways)
{
    g_autoptr(what_if) what_if = what_if_new(node);
    const guint before = ways->len;

    g_array_sort_with_data(pods, compare_costs, (gpointer)search->query->pods);
    for (guint i = 0; i < pods->len; i++) {
        const size_t pod = g_array_index(pods, size_t, i);
        struct allocation *held = held_by(what_if, &search->query->pods[pod]);
        what_if_without(what_if, held);
        const bool fits = search_fits(search, what_if->node, search->query->goal.admit);
        what_if_with(what_if, held);
        if (!fits)
            continue;
        GArray *alone = g_array_new(FALSE, FALSE, sizeof(size_t));
        g_array_append_val(alone, pod);
        add_way(search, ways, alone);
    }
    if (ways->len == before && most > 1)
        clear_node(search, what_if, pods, most, ways);
}

/* Of each node that may take the pod to admit. */
static GArray *list_ways(const struct search *search, uint32_t most)
{
    g_autoptr(GHashTable) by_node =
        g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, (GDestroyNotify)g_array_unref);
    GArray *ways = g_array_new(FALSE, FALSE, sizeof(struct way));
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    g_array_set_clear_func(ways, way_clear);
    for (size_t i = 0; i < search->query->n_pods; i++) {
        const struct allocation *old = ledger_get(search->ledger, search->query->pods[i].uid);
        if (!old || !search_may_move(search, i))
            continue;
        GArray *pods = g_hash_table_lookup(by_node, old->node);
        if (!pods) {
            pods = g_array_new(FALSE, FALSE, sizeof(size_t));
            g_hash_table_insert(by_node, old->node, pods);
        }
        g_array_append_val(pods, i);
    }
    for (guint i = 0; i < nodes->len; i++) {
        GArray *pods = g_hash_table_lookup(by_node, nodes->pdata[i]);
        if (pods && search_admits(search, nodes->pdata[i], search->who))
            look_at_node(search, nodes->pdata[i], pods, most, ways);
    }
    g_array_sort(ways, compare_ways);
    return ways;
}

/* False: somebody is there who may not move. */
static bool list_in_the_way(const struct search *search, GArray *ret_pods)
{
    const struct node *node = ledger_node(search->ledger, search->query->goal.node);
    guint n = 0;

    for (guint i = 0; node && i < node->allocations->len; i++)
        n += search_is_in_the_way(search, node->allocations->pdata[i]);
    for (size_t i = 0; i < search->query->n_pods; i++) {
        const struct allocation *old = ledger_get(search->ledger, search->query->pods[i].uid);
        if (old && search_is_in_the_way(search, old) && search_may_move(search, i))
            g_array_append_val(ret_pods, i);
    }
    g_array_sort_with_data(ret_pods, compare_costs, (gpointer)search->query->pods);
    return ret_pods->len == n;
}

bool direct_find(struct search *search, uint32_t most)
{
    bool reached = false;

    if (!search->query->goal.admit) {
        g_autoptr(GArray) pods = g_array_new(FALSE, FALSE, sizeof(size_t));
        return list_in_the_way(search, pods) && pods->len <= most &&
               move_all(search, pods, &reached) && reached;
    }
    const guint before = search->steps->len;
    g_autoptr(GArray) ways = list_ways(search, most - before);
    for (guint i = 0; i < ways->len && i < WAYS_MAX; i++) {
        const struct way *way = &g_array_index(ways, struct way, i);
        if (before + way->pods->len <= most && move_all(search, way->pods, &reached) && reached)
            return true;
    }
    return false;
}
