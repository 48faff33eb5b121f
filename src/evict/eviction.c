/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/eviction.h"

#include "kube/clock.h"
#include "wire/condition.h"
#include "wire/controller.h"
#include "wire/kubernetes.h"

#include <string.h>

#define CALL_MS 10000
#define TRY_MS 1500
#define PODS_MAX ((size_t)64 << 20)

void evictee_clear(struct evictee *evictee)
{
    g_free(evictee->ns);
    g_free(evictee->name);
    g_free(evictee->uid);
    g_free(evictee->owner);
    g_free(evictee->owner_kind);
    g_free(evictee->node);
    *evictee = (struct evictee){0};
}

/* --- pods ------------------------------------------------------------------------------------- */

/* Unix time; 0: there is none, or it cannot be read. */
static int64_t read_time(const char *text)
{
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return time ? g_date_time_to_unix(time) : 0;
}

int64_t evictee_started_s(const struct pod_view *pod)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(pod->object, "status");

    return read_time(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "startTime")));
}

void evictee_set(struct evictee *evictee, const struct pod_view *pod)
{
    *evictee = (struct evictee){
        .ns = g_strdup(pod->ns),
        .name = g_strdup(pod->name),
        .uid = g_strdup(pod->uid),
        .owner = g_strdup(pod->controller),
        .owner_kind = g_strdup(pod->controller_kind),
        .ties = pod_view_ties(pod),
        .node = g_strdup(pod->node_name),
        .placed = pod_view_is_bound(pod),
        .ended = pod_view_is_terminal(pod),
        .ends = pod->terminating,
        .started_s = evictee_started_s(pod),
    };
}

/* Of a pod no more is read than matters here, so that nothing else that it says keeps it from ending. */
struct pod {
    struct pod_view view;
    const char *deleted;
    const cJSON *conditions;
};
static const struct json_field pod_fields[] = {
    JSON_FIELD_STRING(struct pod, view.ns, "metadata.namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod, view.name, "metadata.name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod, view.uid, "metadata.uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod, deleted, "metadata.deletionTimestamp", 0),
    JSON_FIELD_STRING(struct pod, view.node_name, "spec.nodeName", 0),
    JSON_FIELD_STRING(struct pod, view.phase, "status.phase", 0),
    JSON_FIELD_PAIRS(struct pod, view.annotations, "metadata.annotations", 0),
    JSON_FIELD_PAIRS(struct pod, view.labels, "metadata.labels", 0),
    JSON_FIELD_STRING(struct pod, view.scheduling_group, "spec.schedulingGroup.podGroupName", 0),
    JSON_FIELD_ARRAY(struct pod, conditions, "status.conditions", 0),
    JSON_FIELD_END,
};

static bool decode(struct json_arena *arena, const cJSON *object, struct evictee *ret_evictee,
                   GError **error)
{
    struct controller controller;
    struct pod pod = {0};

    if (!json_decode(arena, object, pod_fields, &pod, error))
        return false;
    if (controller_decode(arena, object, &controller)) {
        pod.view.controller = controller.uid;
        pod.view.controller_kind = controller.kind;
    }
    pod.view.terminating = pod.deleted != NULL;
    pod.view.object = object;
    evictee_set(ret_evictee, &pod.view);
    ret_evictee->ready = !pod.deleted && condition_is_true(arena, pod.conditions, "Ready");
    return true;
}

/* Free with g_free. */
static char *pods_path(const char *ns, const char *name, const char *end)
{
    g_autofree char *ns_escaped = g_uri_escape_string(ns, NULL, FALSE);
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);

    return g_strconcat("/api/v1/namespaces/", ns_escaped, "/pods", *name ? "/" : "", escaped, end,
                       NULL);
}

enum outcome evictee_read(struct api_client *client, const char *ns, const char *name,
                          struct evictee *ret_evictee, GError **error)
{
    g_autofree char *path = pods_path(ns, name, "");
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    return object && decode(arena, object, ret_evictee, error) ? OUTCOME_OK : OUTCOME_REFUSED;
}

struct list {
    const cJSON *items;
};
static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list, items, "items", 0),
    JSON_FIELD_END,
};

enum outcome eviction_count_ready(struct api_client *client, const char *ns, const char *owner,
                                  guint *ret_n, GError **error)
{
    g_autofree char *path = pods_path(ns, "", "");
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS, .reply_max = PODS_MAX};
    struct list list = {0};
    const cJSON *item;
    const enum outcome outcome = api_client_call(client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    if (!object || !json_decode(arena, object, list_fields, &list, error))
        return OUTCOME_REFUSED;
    *ret_n = 0;
    cJSON_ArrayForEach (item, list.items) {
        g_auto(evictee) pod = {0};
        if (decode(arena, item, &pod, NULL))
            *ret_n += pod.ready && g_strcmp0(pod.owner, owner) == 0;
    }
    return OUTCOME_OK;
}

/* --- evictions -------------------------------------------------------------------------------- */

/* Source: policy/v1 Eviction. The UID keeps another pod of that name from being hit. */
static void write_body(GString *body, const struct evictee *evictee, bool try)
{
    struct json_writer writer;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", "policy/v1");
    json_key_string(&writer, "kind", "Eviction");
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", evictee->name);
    json_key_string(&writer, "namespace", evictee->ns);
    json_end_object(&writer);
    json_key_object(&writer, "deleteOptions");
    json_key_object(&writer, "preconditions");
    json_key_string(&writer, "uid", evictee->uid);
    json_end_object(&writer);
    if (try) {
        json_key_array(&writer, "dryRun");
        json_string(&writer, "All");
        json_end_array(&writer);
    }
    json_end_object(&writer);
    json_end_object(&writer);
}

#define BUDGET "disruption budget"
/* Status 500, but nothing was done. Source: kubernetes@v1.37.2:pkg/registry/core/pod/storage/eviction.go. */
#define BUDGETS "more than one PodDisruptionBudget"

/* Status 429 of a webhook that has asked for the move. Source:
 * kubevirt/kubevirt:pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go. */
#define MOVING "triggered evacuation of VMI"

static bool is_refusal(const char *message)
{
    return strstr(message, BUDGET) || strstr(message, BUDGETS) || strstr(message, MOVING);
}

enum eviction eviction_send(struct api_client *client, const struct evictee *evictee, bool try,
                            GError **error)
{
    g_autofree char *path = pods_path(evictee->ns, evictee->name, "/eviction");
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    bool doubted = false;
    struct api_call call = {.method = "POST",
                            .path = path,
                            .body = body,
                            .deadline_ms = clock_ms() + TRY_MS,
                            .is_final = is_refusal,
                            .ret_doubted = &doubted};

    write_body(body, evictee, try);
    const enum outcome outcome = api_client_call(client, &call, reply, &failure);
    if (outcome == OUTCOME_OK || outcome == OUTCOME_NOT_FOUND)
        return EVICTION_DONE;
    const bool later = failure && strstr(failure->message, BUDGET);
    const bool moving = failure && strstr(failure->message, MOVING);
    g_propagate_error(error, g_steal_pointer(&failure));
    if (moving)
        return EVICTION_MOVING;
    /* kube-apiserver first charges the budget, then deletes the pod: an earlier attempt may be between the two, and be
     * why this one is refused. A dry run charges nothing. Source:
     * kubernetes@v1.37.2:pkg/registry/core/pod/storage/eviction.go. */
    if (later)
        return outcome == OUTCOME_UNKNOWN && !try ? EVICTION_DOUBTED : EVICTION_LATER;
    /* Another UID than the one that was meant: the pod may have ended by an earlier attempt. */
    const bool replaced = outcome == OUTCOME_CONFLICT && doubted;
    return outcome == OUTCOME_UNKNOWN || replaced ? EVICTION_UNKNOWN : EVICTION_FAILED;
}

enum outcome eviction_tell(struct api_client *client, const struct pod_event *event, GError **error)
{
    const struct pod_event_info *info = pod_event_info(event->cause);
    const char *place = event->ns ? event->ns : EVENT_NODE_NAMESPACE;
    const int64_t now_us = g_get_real_time();
    g_autofree char *ns = transport_escape(place, "namespace", error);
    g_autofree char *time = micro_time_format(now_us);
    g_autofree char *name = event_name(event->name, now_us);
    g_autofree char *instance = g_strndup(g_get_host_name(), EVENT_WORD_MAX);
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct json_writer writer;

    if (!ns)
        return OUTCOME_REFUSED;
    g_autofree char *path = g_strdup_printf("/apis/events.k8s.io/v1/namespaces/%s/events", ns);
    json_writer_init(&writer, body);
    event_encode(&writer, &(struct event_object){.ns = place,
                                                 .node = !event->ns,
                                                 .kind = info->kind,
                                                 .name = name,
                                                 .pod = event->name,
                                                 .pod_uid = event->uid,
                                                 .time = time,
                                                 .reason = info->reason,
                                                 .action = info->action,
                                                 .controller = "gpuledger.io/maintenance",
                                                 .instance = instance,
                                                 .note = event->note,
                                                 .normal = info->normal});
    const struct api_call call = {.method = "POST",
                                  .path = path,
                                  .body = body,
                                  .deadline_ms = clock_ms() + CALL_MS,
                                  .once = true};
    return api_client_call(client, &call, reply, error);
}
