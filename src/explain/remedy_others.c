/* SPDX-License-Identifier: Apache-2.0 */
/* Other pods end, or move. */
#include "explain/trial.h"
#include "base/printable.h"
#include "explain/remedy_search.h"
#include "policy/victims/may_end.h"
#include "wire/constraints.h"

#include <string.h>

#define GET_POD_MS 2000

static int64_t size_of(const struct node *node, const struct allocation *allocation)
{
    int64_t size = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        size += share->device ? share->devices
                              : card_bytes(node, node_share_card(node, share), share->memory) +
                                    share->core;
    }
    return size;
}

static gint compare_sizes(gconstpointer a, gconstpointer b)
{
    const struct allocation *left = *(const struct allocation *const *)a;
    const struct allocation *right = *(const struct allocation *const *)b;
    const int64_t one = size_of(left->node, left), other = size_of(right->node, right);

    if (one != other)
        return one < other ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

bool search_stays(const struct allocation *allocation)
{
    return allocation->facts && may_end_not(ENDER_PLAN, true, allocation->facts->ties);
}

bool search_needs_force(const struct allocation *allocation)
{
    return allocation->facts && may_end_not(ENDER_PLAN, false, allocation->facts->ties);
}

bool search_may_plan(const struct search *search, const struct allocation *allocation, bool end)
{
    const struct budgets *budgets = search->query->budgets;
    g_autofree int64_t *allowed = g_new0(int64_t, budgets_n(budgets) + 1);
    uint32_t places[2];
    const uint32_t n = budgets_of(budgets, allocation, places, G_N_ELEMENTS(places));

    budgets_allowed(budgets, allowed);
    return !allocation->terminating && n <= 1 && (n == 0 || allowed[places[0]] > 0) &&
           (!end || allocation->priority <= search->query->pod->priority);
}

/* Ends pods of the node, the smaller ones first, until it takes the pod, and then lets back those
 * that need not have ended. What has ended is the caller's, and is not in the ledger any more; empty:
 * nothing helps. */
static GPtrArray *make_room(struct search *search, const struct node *node)
{
    GPtrArray *ended = g_ptr_array_new();
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    bool room = false;

    for (guint i = 0; i < node->allocations->len; i++) {
        if (!search_stays(node->allocations->pdata[i]))
            g_ptr_array_add(others, node->allocations->pdata[i]);
    }
    g_ptr_array_sort(others, compare_sizes);
    for (guint i = 0; i < others->len; i++) {
        struct allocation *copy = allocation_dup(others->pdata[i]);
        g_ptr_array_add(ended, copy);
    }
    /* One is better than several. */
    for (guint i = 0; i < ended->len && search_may_try(search) && !room; i++) {
        struct allocation *only = ended->pdata[i];
        ledger_drop(search->ledger, only->uid);
        room = search_takes(search, node);
        if (!room) {
            ledger_put(search->ledger, node->name, allocation_dup(only));
            continue;
        }
        for (guint j = 0; j < ended->len; j++) {
            if (j != i)
                allocation_free(ended->pdata[j]);
        }
        g_ptr_array_set_size(ended, 0);
        g_ptr_array_add(ended, only);
        return ended;
    }
    guint n = 0;
    while (n < ended->len && !room && search_may_try(search)) {
        ledger_drop(search->ledger, ((struct allocation *)ended->pdata[n++])->uid);
        room = search_takes(search, node);
    }
    for (guint i = ended->len; i > n; i--)
        allocation_free(ended->pdata[i - 1]);
    g_ptr_array_set_size(ended, (gint)n);
    for (guint i = n; i > 0; i--) {
        struct allocation *one = ended->pdata[i - 1];
        ledger_put(search->ledger, node->name, allocation_dup(one));
        if (room && !search_takes(search, node)) {
            ledger_drop(search->ledger, one->uid);
            continue;
        }
        allocation_free(one);
        g_ptr_array_remove_index(ended, i - 1);
    }
    return ended;
}

/* Finds the ended pod another node, and leaves it there. Free with g_free; NULL: there is none. */
static char *find_home(struct search *search, const struct allocation *ended)
{
    struct cluster *cluster = search->query->cluster;
    struct store *copy = search->query->copy;
    g_autoptr(json_arena) arena = json_arena_new();
    struct placement placement;
    struct pod_view view;
    bool found;

    if (!cluster)
        return NULL;
    store_unlock(copy); /* nobody else has it, but no lock is held while the cluster is asked */
    found = cluster->ops->get_pod(cluster, arena, ended->ns, ended->name,
                                  g_get_monotonic_time() / 1000 + GET_POD_MS, &view,
                                  NULL) == OUTCOME_OK;
    store_lock(copy);
    if (!found)
        return NULL;
    view.node_name = NULL; /* whoever makes it again does not say */
    g_autoptr(request) request =
        constraints_decode(arena, &view, NULL)
            ? dialect_read_request(&view, &store_options(copy)->dialects, NULL)
            : NULL;
    if (!request)
        return NULL;
    const struct trial_pod pod = {&view, request, &search->moment};
    const struct node *home = trial_choose(copy, &pod, &placement);
    return home && trial_put(copy, &pod, ended->uid, home, &placement) ? g_strdup(home->name)
                                                                      : NULL;
}

/* Where all of the ended pods would go once the pod is on the node. */
static bool find_homes(struct search *search, const struct node *node, const GPtrArray *ended,
                       GArray *pods)
{
    const struct trial_pod own = {search->query->pod, search->query->request, &search->moment};
    struct placement placement;
    bool all = ended->len <= REMEDY_MOVES_MAX &&
               search_ask(search, node, own.view, own.request, &placement) == REASON_NONE &&
               trial_put(search->query->copy, &own, "", node, &placement);

    for (guint i = 0; i < pods->len && all; i++) {
        struct remedy_pod *pod = &g_array_index(pods, struct remedy_pod, i);
        pod->to = find_home(search, ended->pdata[i]);
        all = pod->to;
    }
    ledger_drop(search->ledger, "");
    return all;
}

static char *tell_moves(const GArray *pods, bool move, const char *node)
{
    GString *text = g_string_new(move ? "move " : "end ");

    for (guint i = 0; i < pods->len; i++) {
        const struct remedy_pod *pod = &g_array_index(pods, struct remedy_pod, i);
        printable_append(text, "%s%s/%s", i ? ", " : "", pod->ns, pod->name);
        if (move)
            printable_append(text, " to %s%s", g_str_equal(pod->to, node) ? "other cards of " : "",
                             pod->to);
    }
    return g_string_free(text, FALSE);
}

static void add_pods(struct search *search, const struct node *node, const GPtrArray *ended)
{
    struct remedy remedy = {.pods = remedy_pods_new()};

    for (guint i = 0; i < ended->len; i++) {
        const struct allocation *one = ended->pdata[i];
        const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};
        g_array_append_val(remedy.pods, pod);
        remedy.force |= search_needs_force(one);
    }
    const bool move = !remedy.force && find_homes(search, node, ended, remedy.pods);
    remedy.kind = move ? REMEDY_MOVE : REMEDY_END;
    remedy.planned = ended->len <= REMEDY_MOVES_MAX;
    for (guint i = 0; i < ended->len; i++)
        remedy.planned &= search_may_plan(search, ended->pdata[i], !move);
    remedy.text = tell_moves(remedy.pods, move, node->name);
    for (guint i = 0; i < remedy.pods->len && !move; i++)
        g_clear_pointer(&g_array_index(remedy.pods, struct remedy_pod, i).to, g_free);
    search_add(search, remedy, node);
}

/* Fewer pods are better, then smaller ones. */
static bool is_smaller(const GPtrArray *left, const GPtrArray *right)
{
    int64_t one = 0, other = 0;

    if (left->len != right->len)
        return left->len < right->len;
    for (guint i = 0; i < left->len; i++) {
        const struct allocation *a = left->pdata[i], *b = right->pdata[i];
        for (uint32_t j = 0; j < a->n_shares; j++)
            one += a->shares[j].memory.value + a->shares[j].devices + a->shares[j].core;
        for (uint32_t j = 0; j < b->n_shares; j++)
            other += b->shares[j].memory.value + b->shares[j].devices + b->shares[j].core;
    }
    return one < other;
}

/* Back to how it was, wherever they are now. */
static void put_back(struct search *search, const char *node, const GPtrArray *ended)
{
    for (guint i = 0; i < ended->len; i++)
        ledger_put(search->ledger, node, allocation_dup(ended->pdata[i]));
}

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

void search_pods(struct search *search)
{
    g_autoptr(GPtrArray) best = NULL;
    const struct node *where = NULL;

    for (const char *const *name = search->query->nodes; *name && search_may_try(search); name++) {
        const struct node *node = ledger_node(search->ledger, *name);
        if (search_barrier(search, node) != BARRIER_NONE || node->allocations->len == 0)
            continue;
        g_autoptr(GPtrArray) ended = make_room(search, node);
        g_ptr_array_set_free_func(ended, free_allocation);
        put_back(search, *name, ended);
        if (ended->len == 0 || (best && !is_smaller(ended, best)))
            continue;
        g_clear_pointer(&best, g_ptr_array_unref);
        best = g_steal_pointer(&ended);
        where = node;
    }
    if (!best)
        return;
    for (guint i = 0; i < best->len; i++)
        ledger_drop(search->ledger, ((struct allocation *)best->pdata[i])->uid);
    add_pods(search, where, best);
    put_back(search, where->name, best);
}
