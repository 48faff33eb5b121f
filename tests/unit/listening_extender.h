/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Both listeners of an extender, with a cluster of one node with two cards of 15 and a pod on the
 * first.
 */
#include "http/routes.h"
#include "http_client.h"

#include <gpuledger/error.h>

static inline enum outcome fake_bind(struct cluster *cluster, const struct binding *binding,
                                     int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static inline enum outcome fake_get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                                        const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                        GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "pod '%s/%s' not found", ns,
                name);
    return OUTCOME_NOT_FOUND;
}

static inline enum outcome fake_list(struct cluster *cluster, enum feed feed, struct store *store,
                                     GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, "no list");
    return OUTCOME_REFUSED;
}

static const struct cluster_ops fake_ops = {
    .name = "fake", .bind = fake_bind, .get_pod = fake_get_pod, .list = fake_list};
static struct cluster fake_cluster = {&fake_ops};

static inline void apply_node(struct store *store)
{
    static const struct string_pair amounts[] = {
        {"aliyun.com/gpu-count", "2"},
        {"aliyun.com/gpu-mem", "30"},
    };
    const struct node_view node = {
        .name = "n1",
        .capacity = {amounts, 2},
        .allocatable = {amounts, 2},
    };

    store_apply_node(store, &node);
}

static inline void apply_pod(struct store *store)
{
    static const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "6"}};
    static const struct container_view container = {.name = "main", .limits = {limits, 1}};
    static const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
        {"ALIYUN_COM_GPU_MEM_IDX", "0"},
        {"ALIYUN_COM_GPU_MEM_POD", "6"},
    };
    const struct pod_view pod = {
        .ns = "ml",
        .name = "a-0",
        .uid = "uid-1",
        .node_name = "n1",
        .phase = "Running",
        .annotations = {annotations, G_N_ELEMENTS(annotations)},
        .containers = &container,
        .n_containers = 1,
    };

    store_apply_pod(store, &pod);
}

static inline bool fake_add_pod(void *data, const char *body, size_t length, GString *reply,
                                GError **error)
{
    if (length == 2 && memcmp(body, "{}", 2) == 0) {
        g_string_append(reply, "{\"metadata\":{}}");
        return true;
    }
    g_set_error(error, GPULEDGER_ERROR,
                length > 0 ? GPULEDGER_ERROR_CONFLICT : GPULEDGER_ERROR_INVALID, "no");
    return false;
}

static inline bool fake_delete_pod(void *data, const char *ns, const char *name, GError **error)
{
    if (strcmp(ns, "ml") == 0 && strcmp(name, "a-0") == 0)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "no pod '%s/%s'", ns, name);
    return false;
}

static const struct snapshot_hooks fake_snapshot = {NULL, fake_add_pod, fake_delete_pod};

static gint elected = 1, labelled = 1; /* atomic */

static inline bool fake_is_elected(void *data, char **ret_why)
{
    if (!g_atomic_int_get(&elected))
        *ret_why = g_strdup("another replica leads");
    return g_atomic_int_get(&elected);
}

static inline uint64_t fake_term(struct leadership *leadership)
{
    return g_atomic_int_get(&elected) ? 1 : 0;
}

static inline int64_t fake_until_ms(struct leadership *leadership, uint64_t term)
{
    return INT64_MAX;
}

static inline bool fake_publish(struct leadership *leadership, uint64_t term, int64_t deadline_ms, GError **error)
{
    return true;
}

static const struct leadership_ops fake_fence_ops = {fake_term, fake_until_ms, fake_publish};
static struct leadership fake_fence = {&fake_fence_ops};

static inline bool fake_is_labelled(void *data, char **ret_why)
{
    if (!g_atomic_int_get(&labelled))
        *ret_why = g_strdup("still labelled");
    return g_atomic_int_get(&labelled);
}

static const struct replica_hooks fake_replica = {NULL, fake_is_elected, fake_is_labelled};

enum listener { SCHEDULER, OPERATIONS, LISTENERS_N };

#define HOSTS "gpus.example,test"
#define AS_JSON "Content-Type: application/json\r\n"

static struct extender extender;
static struct operations operations;
static struct routes routes[LISTENERS_N];
static struct server *servers[LISTENERS_N];
static int connections[LISTENERS_N];

static inline void feed_store(void)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        if (feed == FEED_NODES)
            apply_node(extender.store);
        if (feed == FEED_PODS)
            apply_pod(extender.store);
        store_list_end(extender.store, (enum feed)feed);
    }
}

/* Nothing has been read yet. */
static inline void world_begin_empty(void)
{
    static const struct store_options store_options = {
        .policy = policies,
        .dialects = {.gpushare_memory_unit = INT64_C(1) << 30},
    };
    static const struct route *const tables[] = {scheduler_routes, operations_routes};

    extender = (struct extender){
        .store = store_new(&store_options),
        .cluster = &fake_cluster,
        .leadership = &fake_fence,
        .bind_timeout_ms = 1000,
    };
    operations = (struct operations){&extender, &fake_snapshot, &fake_replica, NULL,
                                     .card_metrics_max = 100};
    operations.auditor = auditor_start(&extender, &(struct auditor_options){0}, NULL);
    for (int i = 0; i < LISTENERS_N; i++) {
        routes[i] =
            (struct routes){tables[i], i == SCHEDULER ? (void *)&extender : (void *)&operations,
                            .no_browser = i == SCHEDULER, .hosts = i == SCHEDULER ? NULL : HOSTS};
        const struct server_options options = {
            .name = i == SCHEDULER ? "scheduler" : "operations",
            .host = "127.0.0.1",
            .mode = i == SCHEDULER ? SERVER_THREADS : SERVER_ONE_THREAD,
            .connections_max = 8,
            .idle_timeout_s = 120,
            .body_max = 1 << 20,
            .bodies_max = 1 << 20,
            .error_bodies = i == OPERATIONS,
            .handler = routes_handle,
            .data = &routes[i],
        };
        servers[i] = server_start(&options, NULL);
        ck_assert_ptr_nonnull(servers[i]);
        connections[i] = http_connect(server_port(servers[i]));
    }
}

static inline void world_begin(void)
{
    world_begin_empty();
    feed_store();
}

static inline void world_end(void)
{
    for (int i = 0; i < LISTENERS_N; i++) {
        close(connections[i]);
        server_free(servers[i]);
    }
    auditor_free(operations.auditor);
    store_free(extender.store);
}

/* A POST without headers is one of JSON. */
static inline void call(enum listener listener, const char *method, const char *path, const char *headers,
                        const char *body, struct http_reply *ret_reply)
{
    if (!headers && strcmp(method, "POST") == 0)
        headers = AS_JSON;
    http_call(connections[listener],
              &(struct http_call){method, path, headers, body, body ? strlen(body) : 0}, ret_reply);
}
