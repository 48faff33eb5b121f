/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_cluster.h"

#include "base/log.h"
#include "kube/api_list.h"
#include "kube/feeds.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define LIST_IDLE_MS 30000
#define NODE_PODS_REPLY_MAX ((size_t)32 << 20) /* some hundred pods, each far below its maximum */
#define FORBIDDEN 403
#define GONE 410

struct api_cluster {
    struct cluster cluster;
    struct api_client *client;
    struct events *events; /* or NULL */
    gint uid_check; /* enum uid_check, atomic; asked for once, by whoever binds first */

    pthread_mutex_t lock; /* of what follows */
    GPtrArray *lists;     /* struct api_stream * of the lists under way */
    bool stopped;
};

/* --- does the API server check the UID? ------------------------------------------------------ */

/*
 * A Binding carries the pod's UID, so that it cannot hit a pod that was created again under the
 * same name. API servers check that since 1.23, but for 1.25.0-8 and 1.26.0-3, which drop it
 * (kubernetes/kubernetes 105913, 110646, 116550). There the pod is asked for just before.
 */
enum uid_check {
    UID_CHECK_NOT_ASKED,
    UID_CHECK_BY_SERVER,
    UID_CHECK_BY_US,
};

struct server_version {
    const char *git; /* "v1.36.3", "v1.20.2-eks-1" */
};

static const struct json_field version_fields[] = {
    JSON_FIELD_STRING(struct server_version, git, "gitVersion", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* A change that came with one release and, by patch releases, to older ones: per minor version the
   first patch release that has it; every later minor version has it. */
struct backport {
    guint64 minor, patch_from;
};

static bool version_has(const char *git_version, const struct backport *since, size_t count)
{
    g_auto(GStrv) parts = NULL;

    if (!g_str_has_prefix(git_version, "v1."))
        return false;
    parts = g_strsplit(git_version + strlen("v1."), ".", 2);
    const guint64 minor = g_ascii_strtoull(parts[0], NULL, 10);
    const guint64 patch = parts[1] ? g_ascii_strtoull(parts[1], NULL, 10) : 0;
    for (size_t i = 0; i < count; i++) {
        if (since[i].minor == minor)
            return patch >= since[i].patch_from;
    }
    return minor > since[count - 1].minor;
}

void api_cluster_set_version(struct cluster *cluster, const char *git_version)
{
    static const struct backport uid_checks[] = {{23, 0}, {24, 0}, {25, 9}, {26, 4}};
    /* kubernetes/kubernetes#102971; the scheduler is taken to be of the API server's version. */
    static const struct backport preempt_calls[] = {{20, 10}, {21, 4}};
    struct api_cluster *api = (struct api_cluster *)cluster;
    const bool checks = version_has(git_version, uid_checks, G_N_ELEMENTS(uid_checks));

    g_atomic_int_set(&api->uid_check, checks ? UID_CHECK_BY_SERVER : UID_CHECK_BY_US);
    log_event(LOG_LEVEL_INFO, "API server", LOG_TEXT("version", git_version),
              LOG_NUMBER("checks_uid_of_bindings", checks));
    if (!version_has(git_version, preempt_calls, G_N_ELEMENTS(preempt_calls))) {
        log_event(LOG_LEVEL_WARN, "kube-scheduler of this version preempts without asking extenders",
                  LOG_TEXT("version", git_version),
                  LOG_TEXT("hint", "it ends pods by sums of nodes; 1.20.10 and 1.21.4 ask"));
    }
}

/* Until the server has said its version, nothing is taken for granted. */
static enum uid_check ask_uid_check(struct api_cluster *api, int64_t deadline_ms)
{
    enum uid_check known = (enum uid_check)g_atomic_int_get(&api->uid_check);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    struct server_version version = {0};
    const struct api_call call = {.method = "GET", .path = "/version", .deadline_ms = deadline_ms};

    if (known != UID_CHECK_NOT_ASKED)
        return known;
    if (api_client_call(api->client, &call, reply, NULL) != OUTCOME_OK)
        return UID_CHECK_BY_US;
    const cJSON *object = json_parse(arena, reply->str, reply->len, NULL);
    if (!object || !json_decode(arena, object, version_fields, &version, NULL))
        return UID_CHECK_BY_US;
    api_cluster_set_version(&api->cluster, version.git);
    return (enum uid_check)g_atomic_int_get(&api->uid_check);
}

/* --- calls ---------------------------------------------------------------------------------- */

static char *pod_path(const char *ns, const char *name, const char *subresource, GError **error)
{
    g_autofree char *ns_part = transport_escape(ns, "namespace", error);
    g_autofree char *name_part = ns_part ? transport_escape(name, "pod", error) : NULL;

    return name_part
               ? g_strdup_printf("/api/v1/namespaces/%s/pods/%s%s", ns_part, name_part, subresource)
               : NULL;
}

static char *node_path(const char *name, GError **error)
{
    g_autofree char *part = transport_escape(name, "node", error);
    return part ? g_strdup_printf("/api/v1/nodes/%s", part) : NULL;
}

/* What GET path answered could not be read. */
static enum outcome unread(const char *path, GError **error)
{
    g_prefix_error(error, "GET %s: ", path);
    return OUTCOME_UNKNOWN;
}

/* `path` NULL: it could not be made. `reply_max` as in struct api_call. */
static enum outcome get(struct cluster *cluster, struct json_arena *arena, const char *path,
                        size_t reply_max, int64_t deadline_ms, const cJSON **ret_object,
                        GError **error)
{
    struct api_cluster *api = (struct api_cluster *)cluster;
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = deadline_ms, .reply_max = reply_max};
    const enum outcome outcome =
        path ? api_client_call(api->client, &call, reply, error) : OUTCOME_REFUSED;

    if (outcome != OUTCOME_OK)
        return outcome;
    char *text = json_arena_alloc(arena, reply->len + 1);
    memcpy(text, reply->str, reply->len);
    *ret_object = json_parse(arena, text, reply->len, error);
    return *ret_object ? OUTCOME_OK : unread(path, error);
}

/* Which pod it is, and where, is enough: the rest counts as the worst. */
static bool decode_pod(struct json_arena *arena, const cJSON *object, struct pod_view *ret_pod,
                       GError **error)
{
    if (pod_view_decode(arena, object, ret_pod, error))
        return true;
    if (!pod_view_decode_part(arena, object, ret_pod))
        return false;
    g_clear_error(error);
    return true;
}

static enum outcome api_get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                                const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                GError **error)
{
    g_autofree char *path = pod_path(ns, name, "", error);
    const cJSON *object;
    const enum outcome outcome = get(cluster, arena, path, 0, deadline_ms, &object, error);

    if (outcome != OUTCOME_OK || decode_pod(arena, object, ret_pod, error))
        return outcome;
    return unread(path, error);
}

static enum outcome api_get_node(struct cluster *cluster, struct json_arena *arena,
                                 const char *name, int64_t deadline_ms, struct node_view *ret_node,
                                 GError **error)
{
    g_autofree char *path = node_path(name, error);
    const cJSON *object;
    const enum outcome outcome = get(cluster, arena, path, 0, deadline_ms, &object, error);

    if (outcome != OUTCOME_OK || node_view_decode(arena, object, ret_node, error))
        return outcome;
    return unread(path, error);
}

static enum outcome api_list_pods_on(struct cluster *cluster, struct json_arena *arena,
                                     const char *node, int64_t deadline_ms,
                                     struct pod_view **ret_pods, size_t *ret_n, GError **error)
{
    g_autofree char *selector = g_strdup_printf(
        "spec.nodeName=%s,status.phase!=Succeeded,status.phase!=Failed", node);
    g_autoptr(GString) path = g_string_new("/api/v1/pods");
    const cJSON *list, *item;
    size_t n = 0;

    api_url_add(path, "fieldSelector", selector);
    const enum outcome outcome =
        get(cluster, arena, path->str, NODE_PODS_REPLY_MAX, deadline_ms, &list, error);
    if (outcome != OUTCOME_OK)
        return outcome;
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "items");
    struct pod_view *pods =
        json_arena_alloc(arena, ((size_t)cJSON_GetArraySize(items) + 1) * sizeof *pods);
    cJSON_ArrayForEach (item, items) {
        if (!decode_pod(arena, item, &pods[n++], error))
            return unread(path->str, error);
    }
    *ret_pods = pods;
    *ret_n = n;
    return OUTCOME_OK;
}

/* Nothing has been sent yet, so that whatever goes wrong here is a definite no. */
static enum outcome check_uid(struct cluster *cluster, const struct binding *binding,
                              int64_t deadline_ms, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod = {0};
    const enum outcome outcome = api_get_pod(cluster, arena, binding->ns, binding->name,
                                             deadline_ms, &pod, error);

    if (outcome != OUTCOME_OK)
        return outcome == OUTCOME_NOT_FOUND ? outcome : OUTCOME_REFUSED;
    if (g_strcmp0(pod.uid, binding->uid) == 0)
        return OUTCOME_OK;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                "pod '%s/%s' has another UID: it was deleted and created again", binding->ns,
                binding->name);
    return OUTCOME_CONFLICT;
}

/*
 * A 409 to a Binding is a no only for these causes. assignPod makes one of every error that is none of
 * the API's, so of etcd's timeouts, too, after which etcd may still carry the Binding out.
 * Sources: kubernetes@v1.36.3:pkg/registry/core/pod/storage/storage.go assignPod and setPodNodeAndMetadata,
 * apiserver@v0.36.3:pkg/storage/interfaces.go Preconditions.Check.
 */
static bool is_refusal(const char *message)
{
    static const char *const causes[] = {
        "Precondition failed: ",
        " is being deleted, cannot be assigned to a host",
        " is already assigned to node ",
        " has non-empty .spec.schedulingGates",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(causes); i++) {
        if (strstr(message, causes[i]))
            return true;
    }
    return false;
}

static enum outcome send_binding(struct api_cluster *api, const struct api_call *call,
                                 GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    enum outcome outcome = api_client_call(api->client, call, reply, &failure);

    if (outcome == OUTCOME_CONFLICT && !is_refusal(failure->message)) {
        failure->code = GPULEDGER_ERROR_UNKNOWN;
        outcome = OUTCOME_UNKNOWN;
    }
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    return outcome;
}

static enum outcome api_bind(struct cluster *cluster, const struct binding *binding,
                             int64_t deadline_ms, GError **error)
{
    struct api_cluster *api = (struct api_cluster *)cluster;
    g_autofree char *path = pod_path(binding->ns, binding->name, "/binding", error);
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    if (!path)
        return OUTCOME_REFUSED;
    if (ask_uid_check(api, deadline_ms) == UID_CHECK_BY_US) {
        const enum outcome outcome = check_uid(cluster, binding, deadline_ms, error);
        if (outcome != OUTCOME_OK)
            return outcome;
    }
    json_writer_init(&writer, body);
    binding_encode(&writer, binding);
    const struct api_call call = {
        .method = "POST",
        .path = path,
        .body = body,
        .deadline_ms = deadline_ms,
        .once = true,
        .timely = true,
    };
    return send_binding(api, &call, error);
}

/* --- lists ---------------------------------------------------------------------------------- */

/* A stream that api_cluster_stop knows of. */
static struct api_stream *begin_list(struct api_cluster *api)
{
    struct api_stream *stream = api_stream_new(api->client);

    pthread_mutex_lock(&api->lock);
    g_ptr_array_add(api->lists, stream);
    if (api->stopped)
        api_stream_stop(stream);
    pthread_mutex_unlock(&api->lock);
    return stream;
}

static void end_list(struct api_cluster *api, struct api_stream *take_stream)
{
    pthread_mutex_lock(&api->lock);
    g_ptr_array_remove_fast(api->lists, take_stream);
    pthread_mutex_unlock(&api->lock);
    api_stream_free(take_stream);
}

struct listing {
    enum feed feed;
    struct store *store;
    struct json_arena *arena;
};

/* What cannot be read is treated as the reflector treats it. */
static bool apply_item(const char *text, size_t length, void *data, GError **error)
{
    const struct listing *listing = data;

    json_arena_clear(listing->arena);
    const cJSON *object = json_parse(listing->arena, text, length, NULL);
    feed_apply(listing->feed, listing->store, listing->arena, object, NULL);
    return true;
}

static enum outcome api_list(struct cluster *cluster, enum feed feed, struct store *store,
                             GError **error)
{
    struct api_cluster *api = (struct api_cluster *)cluster;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *path = feed_path(feed);
    g_autofree char *version = NULL;
    g_autoptr(GError) failure = NULL;
    struct listing listing = {feed, store, arena};
    struct api_list_call call = {
        .path = path,
        .page = API_LIST_PAGE,
        .idle_ms = LIST_IDLE_MS,
        .emit = apply_item,
        .data = &listing,
    };
    struct stream_result result = {.end = STREAM_COMPLETE};

    store_list_begin(store, feed);
    if (path) {
        struct api_stream *stream = begin_list(api);
        result = api_list_run(stream, &call, &version, &failure);
        if (result.status == GONE) {
            call.page = 0;
            g_clear_error(&failure);
            store_list_begin(store, feed);
            result = api_list_run(stream, &call, &version, &failure);
        }
        end_list(api, stream);
    }
    if (result.end == STREAM_COMPLETE || (result.status == FORBIDDEN && kinds[feed]->optional)) {
        store_list_end(store, feed);
        return OUTCOME_OK;
    }
    if (result.end == STREAM_STOPPED)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, "stopped");
    else
        g_propagate_prefixed_error(error, g_steal_pointer(&failure),
                                   "cannot list %s: ", kinds[feed]->resource);
    return result.end == STREAM_STATUS ? api_outcome(result.status) : OUTCOME_UNKNOWN;
}

void api_cluster_stop(struct cluster *cluster)
{
    struct api_cluster *api = (struct api_cluster *)cluster;

    pthread_mutex_lock(&api->lock);
    api->stopped = true;
    for (guint i = 0; i < api->lists->len; i++)
        api_stream_stop(g_ptr_array_index(api->lists, i));
    pthread_mutex_unlock(&api->lock);
}

/* --- changes of annotations ------------------------------------------------------------------ */

/* `path` NULL: it could not be made. */
static enum outcome patch(struct cluster *cluster, const char *path, const GString *body, bool once,
                          int64_t deadline_ms, GError **error)
{
    struct api_cluster *api = (struct api_cluster *)cluster;
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "PATCH", .path = path, .body = body, .deadline_ms = deadline_ms, .once = once};

    return path ? api_client_call(api->client, &call, reply, error) : OUTCOME_REFUSED;
}

static enum outcome api_annotate_pod(struct cluster *cluster,
                                     const struct pod_annotation *annotation, int64_t deadline_ms,
                                     GError **error)
{
    g_autofree char *path = pod_path(annotation->ns, annotation->name, "", error);
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    pod_annotation_encode(&writer, annotation);
    return patch(cluster, path, body, false, deadline_ms, error);
}

static enum outcome api_annotate_node(struct cluster *cluster,
                                      const struct node_annotation *annotation,
                                      int64_t deadline_ms, GError **error)
{
    g_autofree char *path = node_path(annotation->node, error);
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    node_annotation_encode(&writer, annotation);
    return patch(cluster, path, body, true, deadline_ms, error);
}

/* --- events --------------------------------------------------------------------------------- */

static void api_post_event(struct cluster *cluster, const struct pod_event *event)
{
    struct api_cluster *api = (struct api_cluster *)cluster;

    if (api->events)
        events_post(api->events, event);
}

void api_cluster_set_events(struct cluster *cluster, struct events *events)
{
    struct api_cluster *api = (struct api_cluster *)cluster;
    api->events = events;
}

static const struct cluster_ops api_cluster_ops = {
    .name = "kubernetes",
    .bind = api_bind,
    .get_pod = api_get_pod,
    .list_pods_on = api_list_pods_on,
    .list = api_list,
    .annotate_pod = api_annotate_pod,
    .get_node = api_get_node,
    .annotate_node = api_annotate_node,
    .post_event = api_post_event,
};

struct cluster *api_cluster_new(struct api_client *client)
{
    struct api_cluster *api = g_new0(struct api_cluster, 1);

    api->cluster.ops = &api_cluster_ops;
    api->client = client;
    pthread_mutex_init(&api->lock, NULL);
    api->lists = g_ptr_array_new();
    return &api->cluster;
}

void api_cluster_free(struct cluster *cluster)
{
    struct api_cluster *api = (struct api_cluster *)cluster;

    if (!api)
        return;
    g_ptr_array_unref(api->lists);
    pthread_mutex_destroy(&api->lock);
    g_free(api);
}
