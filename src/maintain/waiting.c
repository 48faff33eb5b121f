/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/waiting.h"

#include "explain/explain.h"
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

    if (is_old(waiters->query, row->created)) {
        const struct waiting_pod pod = {g_strdup(row->ns),
                                        g_strdup(row->title + strlen(row->ns) + 1)};
        g_array_append_val(waiters->pods, pod);
    }
    return true;
}

static GArray *list_waiters(const struct waiting_query *query)
{
    struct store *store = query->relocation.store;
    struct waiters waiters = {query, g_array_new(FALSE, FALSE, sizeof(struct waiting_pod))};

    g_array_set_clear_func(waiters.pods, clear_pod);
    store_arrivals_each(store, collect, &waiters);
    return waiters.pods;
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

/* A plan that moves somebody for the pod. NULL: there is none; with an error: the cluster cannot be read. */
static struct relocation *try_pod(const struct waiting_query *query, const struct waiting_pod *who,
                                  GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct relocation_query asked = query->relocation;
    struct pod_view pod;

    if (!explain_read_pod(asked.cluster, arena, who->ns, who->name,
                          g_get_monotonic_time() / 1000 + GET_POD_MS, &pod, NULL) ||
        pod_view_is_bound(&pod) || pod_group_claim(&pod).name ||
        (query->passed && pod.uid && g_hash_table_contains(query->passed, pod.uid)))
        return NULL;
    asked.admit = &pod;
    g_autoptr(relocation) plan = relocation_find(&asked, error);
    return plan && plan->reached && plan->steps->len > 0 ? g_steal_pointer(&plan) : NULL;
}

static char *why_nobody(const GArray *pods)
{
    if (pods->len == 0)
        return NULL;
    return g_strdup_printf(pods->len > WAITING_TRIES_MAX
                               ? "%u wait, and no moves help one of the first %d"
                               : "%u wait, and no moves help any of them",
                           pods->len, WAITING_TRIES_MAX);
}

struct relocation *waiting_find(const struct waiting_query *query, GError **error)
{
    g_autoptr(GArray) pods = list_waiters(query);

    for (guint i = 0; i < pods->len && i < WAITING_TRIES_MAX; i++) {
        GError *failure = NULL;
        struct relocation *plan =
            try_pod(query, &g_array_index(pods, struct waiting_pod, i), &failure);
        if (plan)
            return plan;
        if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID))
            g_clear_error(&failure); /* of this pod alone */
        if (failure) {
            g_propagate_error(error, failure);
            return NULL;
        }
    }
    return without_steps(g_strdup("room for those who wait"), why_nobody(pods));
}
