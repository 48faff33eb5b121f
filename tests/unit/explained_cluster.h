/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster as its objects are written, and what explain says of a pod in it. JSON is written with single
 * quotes: 'cpu':'1'.
 */
#include "core/ledger.h"
#include "explain/explain.h"
#include "fake_cluster.h"
#include "wire/kubernetes.h"

#include <check.h>
#include <gpuledger/error.h>
#include <stdarg.h>
#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define DUO "'" MEM "':'20','aliyun.com/gpu-count':'2'"  /* two cards of 10 GiB */
#define MONO "'" MEM "':'10','aliyun.com/gpu-count':'1'" /* one */
#define REGISTER "hami.io/node-nvidia-register"

static struct store *told;
static GHashTable *pods; /* "NAMESPACE/NAME" -> JSON, as the API server has it */

/* What is NULL or 0 is left out, or has the value that its comment names. */
struct said_node {
    const char *name, *labels, *annotations, *spec;
    const char *amounts; /* NULL: DUO */
};

struct said_pod {
    const char *name;
    const char *ns;                /* NULL: "ml" */
    const char *node, *card, *mem; /* of gpushare, as it was bound */
    const char *limits;            /* NULL: `mem` of gpushare */
    const char *containers;        /* instead of one with these limits */
    const char *labels, *annotations, *meta, *spec, *status;
    const char *phase; /* NULL: "Running" of a pod that is bound and matched, else "Pending" */
    int64_t priority;
    bool unmatched; /* its device plugin has not served it yet */
};

#define REPLICA_SET                                                                                \
    "'ownerReferences':[{'kind':'ReplicaSet','name':'r','uid':'r','controller':true}],"
#define DAEMON_SET                                                                                 \
    "'ownerReferences':[{'kind':'DaemonSet','name':'d','uid':'d','controller':true}],"

static inline char *json_of(const char *text)
{
    return g_strdelimit(g_strdup(text), "'", '"');
}

static inline const char *or_nothing(const char *text)
{
    return text ? text : "";
}

G_GNUC_PRINTF(3, 4)
static inline void feed(enum feed feed, bool deleted, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *json = json_of(text);
    feed_event(told, feed, deleted, json);
}

static inline void add_node(struct said_node node)
{
    const char *amounts = node.amounts ? node.amounts : DUO;

    feed(FEED_NODES, false,
         "{'metadata':{'name':'%s','labels':{%s},'annotations':{%s}},'spec':{%s},"
         "'status':{'capacity':{%s},'allocatable':{%s}}}",
         node.name, or_nothing(node.labels), or_nothing(node.annotations), or_nothing(node.spec),
         amounts, amounts);
}

static inline char *containers_of(const struct said_pod *pod)
{
    g_autofree char *memory = pod->mem ? g_strdup_printf("'" MEM "':'%s'", pod->mem) : g_strdup("");

    if (pod->containers)
        return g_strdup(pod->containers);
    return g_strdup_printf("{'name':'main','resources':{'limits':{%s}}}",
                           pod->limits ? pod->limits : memory);
}

/* Bound pods of gpushare run, and were placed at 2026-01-01. */
static inline char *pod_json(const struct said_pod *pod)
{
    const char *ns = pod->ns ? pod->ns : "ml";
    const char *phase = pod->phase                     ? pod->phase
                        : pod->node && !pod->unmatched ? "Running"
                                                       : "Pending";
    g_autofree char *containers = containers_of(pod);
    g_autofree char *bound =
        pod->card ? g_strdup_printf("'ALIYUN_COM_GPU_MEM_IDX':'%s','ALIYUN_COM_GPU_MEM_POD':'%s',"
                                    "'ALIYUN_COM_GPU_MEM_ASSIGNED':'%s',"
                                    "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'1767225600000000000'%s",
                                    pod->card, pod->mem, pod->unmatched ? "false" : "true",
                                    pod->annotations ? "," : "")
                  : g_strdup("");
    g_autofree char *node =
        pod->node ? g_strdup_printf("'nodeName':'%s',", pod->node) : g_strdup("");
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'name':'%s','namespace':'%s','uid':'%s/%s',"
        "'creationTimestamp':'2026-01-01T00:00:00Z',%s'labels':{%s},'annotations':{%s%s}},"
        "'spec':{%s%s'priority':%" G_GINT64_FORMAT ",'containers':[%s]},"
        "'status':{%s'phase':'%s'}}",
        pod->name, ns, ns, pod->name, or_nothing(pod->meta), or_nothing(pod->labels), bound,
        or_nothing(pod->annotations), node, or_nothing(pod->spec), pod->priority, containers,
        or_nothing(pod->status), phase);
    return json_of(text);
}

static inline void add_pod(struct said_pod pod)
{
    char *json = pod_json(&pod);

    feed_event(told, FEED_PODS, false, json);
    g_hash_table_insert(pods, g_strdup_printf("%s/%s", pod.ns ? pod.ns : "ml", pod.name), json);
}

/* ml/NAME, of gpushare, that runs. */
static inline void hold(const char *name, const char *node, const char *card, const char *mem)
{
    add_pod((struct said_pod){.name = name, .node = node, .card = card, .mem = mem});
}

/* Its Binding is under way: the watch has not shown it bound. */
static inline void unconfirm(const char *uid)
{
    struct ledger *ledger = store_lock(told);
    struct allocation *booking = allocation_dup(ledger_get(ledger, uid));
    g_autofree char *node = g_strdup(ledger_get(ledger, uid)->node->name);

    booking->state = ALLOCATION_ASSUMED;
    ledger_drop(ledger, uid);
    ledger_put(ledger, node, booking);
    store_unlock(told);
}

/* --- the API server ---------------------------------------------------------------------------- */

static inline void read_pod(struct json_arena *arena, const char *json, struct pod_view *ret_pod)
{
    g_autoptr(GError) error = NULL;
    const cJSON *object = json_parse(arena, json, strlen(json), NULL);

    ck_assert_msg(object && pod_view_decode(arena, object, ret_pod, &error), "%s", json);
}

static inline enum outcome get_pod(struct cluster *base, struct json_arena *arena, const char *ns,
                                   const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                   GError **error)
{
    g_autofree char *key = g_strdup_printf("%s/%s", ns, name);
    const char *json = g_hash_table_lookup(pods, key);

    if (!json) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "there is no %s", key);
        return OUTCOME_NOT_FOUND;
    }
    read_pod(arena, json, ret_pod);
    return OUTCOME_OK;
}

static inline enum outcome list_pods_on(struct cluster *base, struct json_arena *arena,
                                        const char *node, int64_t deadline_ms,
                                        struct pod_view **ret_pods, size_t *ret_n, GError **error)
{
    g_autoptr(GList) keys = g_list_sort(g_hash_table_get_keys(pods), (GCompareFunc)strcmp);
    struct pod_view *views = json_arena_alloc(arena, (g_list_length(keys) + 1) * sizeof *views);
    size_t n = 0;

    for (const GList *key = keys; key; key = key->next) {
        read_pod(arena, g_hash_table_lookup(pods, key->data), &views[n]);
        n += g_strcmp0(views[n].node_name, node) == 0;
    }
    *ret_pods = views;
    *ret_n = n;
    return OUTCOME_OK;
}

static const struct cluster_ops cluster_ops = {
    .name = "objects", .get_pod = get_pod, .list_pods_on = list_pods_on};
static struct cluster cluster = {&cluster_ops};

/* --- a test's life ----------------------------------------------------------------------------- */

static inline void end(void)
{
    g_autoptr(GError) error = NULL;

    if (!told)
        return;
    ck_assert_msg(ledger_verify(store_lock(told), &error), "%s", error ? error->message : "");
    store_unlock(told);
    g_clear_pointer(&told, store_free);
    g_clear_pointer(&pods, g_hash_table_unref);
}

/* An empty cluster that has been read; `options` without policy and patience. */
static inline void begin_with(struct store_options options)
{
    end();
    options.policy = options.policy ? options.policy : &policies[0];
    options.patience_ms = 60000;
    options.silent = true;
    told = store_new(&options);
    pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (int i = 0; i < FEED_N; i++) {
        store_list_begin(told, (enum feed)i);
        store_list_end(told, (enum feed)i);
    }
}

static inline void begin(void)
{
    begin_with((struct store_options){0});
}

/* --- answers ----------------------------------------------------------------------------------- */

/* Of a pod that the cluster has ("ml/p"). */
static inline struct explanation *explain(const char *key)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const char *json = g_hash_table_lookup(pods, key);
    struct pod_view view;

    ck_assert_msg(json, "%s", key);
    read_pod(arena, json, &view);
    return explain_pod(told, &cluster, &view);
}

static inline const struct explained_node *explained(const struct explanation *explanation,
                                                     const char *name)
{
    for (guint i = 0; i < explanation->nodes->len; i++) {
        const struct explained_node *node =
            &g_array_index(explanation->nodes, struct explained_node, i);
        if (g_str_equal(node->name, name))
            return node;
    }
    ck_abort_msg("%s is not explained", name);
}

static inline void expect_text(const char *text, const char *expected)
{
    ck_assert_msg(g_strcmp0(text, expected) == 0, "\n  is     \"%s\"\n  not    \"%s\"",
                  text ? text : "(null)", expected ? expected : "(null)");
}
