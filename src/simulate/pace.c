/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/pace.h"

#include "simulate/memory_cluster.h"

/* Long before any machine was started; not 0, which stands for no time. */
#define BEGIN_MS (-(INT64_C(1) << 40))

/* A pod that will have been served. */
struct service {
    int64_t at_us;
    char *ns, *name;
};

struct pace {
    struct store *store;
    struct cluster *cluster;
    int64_t takes_us, pause_us;
    int64_t began_ns; /* Unix time */
    int64_t now_us, came_us; /* since the beginning; when the last pod came */
    struct moment moment;
    GHashTable *nodes;   /* name -> int64_t: when its node side will be free */
    GSequence *services; /* struct service, by time */
    GArray *waits_us;    /* int64_t */
};

static void service_free(gpointer data)
{
    struct service *service = data;

    g_free(service->ns);
    g_free(service->name);
    g_free(service);
}

static void set_time(struct pace *pace, int64_t now_us)
{
    pace->now_us = MAX(pace->now_us, now_us);
    pace->moment = (struct moment){.now_ns = pace->began_ns + pace->now_us * 1000,
                                   .now_ms = BEGIN_MS + pace->now_us / 1000};
    store_set_moment(pace->store, &pace->moment);
}

struct pace *pace_new(struct store *store, struct cluster *cluster, int64_t takes_ms,
                      int64_t per_second)
{
    struct pace *pace = g_new0(struct pace, 1);

    pace->store = store;
    pace->cluster = cluster;
    pace->takes_us = takes_ms * 1000;
    pace->pause_us = G_USEC_PER_SEC / per_second;
    pace->began_ns = g_get_real_time() * 1000;
    pace->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    pace->services = g_sequence_new(service_free);
    pace->waits_us = g_array_new(FALSE, FALSE, sizeof(int64_t));
    memory_cluster_set_paced(cluster);
    set_time(pace, 0);
    return pace;
}

void pace_free(struct pace *pace)
{
    if (!pace)
        return;
    store_set_moment(pace->store, NULL);
    g_hash_table_unref(pace->nodes);
    g_sequence_free(pace->services);
    g_array_unref(pace->waits_us);
    g_free(pace);
}

/* Serves the first that is due until then; false: none is, or with an error it failed. */
static bool serve_next(struct pace *pace, int64_t until_us, GError **error)
{
    GSequenceIter *first = g_sequence_get_begin_iter(pace->services);

    if (g_sequence_iter_is_end(first))
        return false;
    const struct service *service = g_sequence_get(first);
    if (service->at_us > until_us)
        return false;
    set_time(pace, service->at_us);
    const bool served = memory_cluster_serve(pace->cluster, service->ns, service->name, error);
    g_sequence_remove(first);
    return served;
}

bool pace_arrive(struct pace *pace, GError **error)
{
    GError *failure = NULL;

    pace->came_us += pace->pause_us;
    while (serve_next(pace, pace->came_us, &failure))
        continue;
    set_time(pace, pace->came_us);
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}

bool pace_pass(struct pace *pace, GError **error)
{
    return serve_next(pace, INT64_MAX, error);
}

static gint compare_services(gconstpointer a, gconstpointer b, gpointer unused)
{
    const struct service *left = a, *right = b;

    return left->at_us < right->at_us ? -1 : left->at_us > right->at_us;
}

void pace_bind(struct pace *pace, const char *ns, const char *name, const char *node)
{
    int64_t *free_us = g_hash_table_lookup(pace->nodes, node);
    struct service *service = g_new(struct service, 1);

    if (!free_us) {
        free_us = g_new0(int64_t, 1);
        g_hash_table_insert(pace->nodes, g_strdup(node), free_us);
    }
    *free_us = MAX(*free_us, pace->now_us) + pace->takes_us;
    *service = (struct service){*free_us, g_strdup(ns), g_strdup(name)};
    g_sequence_insert_sorted(pace->services, service, compare_services, NULL);
    const int64_t wait_us = *free_us - pace->came_us;
    g_array_append_val(pace->waits_us, wait_us);
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static double at(const GArray *times, guint percent)
{
    const guint rank = (times->len * percent + 99) / 100; /* so many are not longer, at least */

    return rank > 0 ? (double)g_array_index(times, int64_t, rank - 1) / G_USEC_PER_SEC : 0;
}

void pace_sum_up(struct pace *pace, double *ret_median_s, double *ret_p99_s)
{
    g_array_sort(pace->waits_us, compare_times);
    *ret_median_s = at(pace->waits_us, 50);
    *ret_p99_s = at(pace->waits_us, 99);
}
