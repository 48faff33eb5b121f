/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/waiting.h"

#include "explain/explain.h"
#include "kube/clock.h"
#include "wire/pod_group.h"

#include <string.h>

#define GET_POD_MS 10000

/* --- who waits ---------------------------------------------------------------------------------- */

struct waiting_pod {
    char *ns, *name;
};

static void clear_pod(void *data)
{
    struct waiting_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
}

struct waiters {
    const struct waiting_query *query;
    int64_t now_ms;
    GArray *pods; /* struct waiting_pod, in order */
};

/* Under the store's lock. What cannot be read was made long ago. */
static bool is_old(const struct waiting_query *query, const char *created)
{
    g_autoptr(GDateTime) time = created ? g_date_time_new_from_iso8601(created, NULL) : NULL;

    return !time || (query->now_s - g_date_time_to_unix(time)) * 1000 >= query->waited_ms;
}

static bool collect(const struct arrivals_row *row, void *data)
{
    struct waiters *waiters = data;

    if (is_old(waiters->query, row->created) &&
        (!waiters->query->asking || waiters->now_ms < row->asking_ms)) {
        const struct waiting_pod pod = {g_strdup(row->ns),
                                        g_strdup(row->title + strlen(row->ns) + 1)};
        g_array_append_val(waiters->pods, pod);
    }
    return true;
}

static GArray *list_waiters(const struct waiting_query *query)
{
    struct store *store = query->relocation.store;
    struct waiters waiters = {query, .pods = g_array_new(FALSE, FALSE, sizeof(struct waiting_pod))};
    struct moment moment;

    store_decide(store, &moment);
    store_unlock(store);
    waiters.now_ms = moment.now_ms;
    g_array_set_clear_func(waiters.pods, clear_pod);
    store_arrivals_each(store, collect, &waiters);
    return waiters.pods;
}

/* --- turns -------------------------------------------------------------------------------------- */

GHashTable *waiting_turns_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

static uint64_t last_turn(GHashTable *turns, const char *ns)
{
    const uint64_t *turn = g_hash_table_lookup(turns, ns);

    return turn ? *turn : 0;
}

/* The oldest pod of the namespace whose turn is longest ago; it is taken out of the list. */
static struct waiting_pod take_next(GArray *pods, GHashTable *turns)
{
    static const char latest[] = ""; /* no namespace: the last turn of all */
    guint next = 0;

    for (guint i = 1; i < pods->len; i++) {
        if (last_turn(turns, g_array_index(pods, struct waiting_pod, i).ns) <
            last_turn(turns, g_array_index(pods, struct waiting_pod, next).ns))
            next = i;
    }
    const struct waiting_pod pod = g_array_index(pods, struct waiting_pod, next);
    const uint64_t turn = last_turn(turns, latest) + 1;
    g_array_index(pods, struct waiting_pod, next) = (struct waiting_pod){0};
    g_array_remove_index(pods, next);
    g_hash_table_replace(turns, g_strdup(pod.ns), g_memdup2(&turn, sizeof turn));
    g_hash_table_replace(turns, g_strdup(latest), g_memdup2(&turn, sizeof turn));
    return pod;
}

static gboolean waits_no_more(gpointer ns, gpointer turn, gpointer data)
{
    const GArray *pods = data;

    for (guint i = 0; i < pods->len; i++) {
        if (g_str_equal(g_array_index(pods, struct waiting_pod, i).ns, ns))
            return FALSE;
    }
    return *(const char *)ns != '\0';
}

/* --- for whom ----------------------------------------------------------------------------------- */

static struct relocation *without_steps(char *take_goal, char *take_why)
{
    struct relocation *found = relocation_new();

    found->goal = take_goal;
    found->why = take_why;
    found->reached = found->fewest = take_why == NULL;
    return found;
}

struct relocation *waiting_gone(const char *ns, const char *name)
{
    return without_steps(g_strdup_printf("room for %s/%s, which is gone", ns, name), NULL);
}

/* A plan that moves somebody for the pod. NULL: there is none; with an error: the cluster cannot be read.
 * `ret_tried`: moves were looked for. */
static struct relocation *try_pod(const struct waiting_query *query, const struct waiting_pod *who,
                                  bool *ret_tried, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct relocation_query asked = query->relocation;
    struct pod_view pod;

    *ret_tried = false;
    if (!explain_read_pod(asked.cluster, arena, who->ns, who->name,
                          g_get_monotonic_time() / 1000 + GET_POD_MS, &pod, NULL) ||
        pod_view_is_bound(&pod) || pod.terminating || pod_group_claim(&pod).name ||
        (query->passed && pod.uid && g_hash_table_contains(query->passed, pod.uid)) ||
        (query->pauses && pauses_left(query->pauses, who->ns, pod.controller, clock_ms()) > 0))
        return NULL;
    *ret_tried = true;
    asked.admit = &pod;
    g_autoptr(relocation) plan = relocation_find(&asked, error);
    return plan && plan->reached && plan->steps->len > 0 ? g_steal_pointer(&plan) : NULL;
}

static char *why_nobody(guint n, guint n_left)
{
    if (n == 0)
        return NULL;
    return n_left > 0
               ? g_strdup_printf("%u wait, and no moves help one of the first %u", n, n - n_left)
               : g_strdup_printf("%u wait, and no moves help any of them", n);
}

struct relocation *waiting_find(const struct waiting_query *query, GError **error)
{
    g_autoptr(GHashTable) turns =
        query->turns ? g_hash_table_ref(query->turns) : waiting_turns_new();
    g_autoptr(GArray) pods = list_waiters(query);
    const guint n = pods->len;
    guint n_tries = 0;

    g_hash_table_foreach_remove(turns, waits_no_more, pods);
    for (guint i = 0; i < n && i < WAITING_READS_MAX && n_tries < WAITING_TRIES_MAX; i++) {
        struct waiting_pod pod = take_next(pods, turns);
        GError *failure = NULL;
        bool tried;
        struct relocation *plan = try_pod(query, &pod, &tried, &failure);
        clear_pod(&pod);
        if (plan)
            return plan;
        n_tries += tried;
        if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID))
            g_clear_error(&failure); /* of this pod alone */
        if (failure) {
            g_propagate_error(error, failure);
            return NULL;
        }
    }
    return without_steps(g_strdup("room for those who wait"), why_nobody(n, pods->len));
}

bool waiting_leave(const struct waiting_left *left, GHashTable *passed, struct pauses *pauses,
                   int64_t for_ms)
{
    const int64_t until_ms = clock_ms() + for_ms;
    const bool pause = !left->helped || left->in_vain;

    if (pause)
        pauses_begin(pauses, left->ns, left->controller, clock_ms());
    if (left->uid)
        g_hash_table_replace(passed, g_strdup(left->uid), g_memdup2(&until_ms, sizeof until_ms));
    return pause;
}
