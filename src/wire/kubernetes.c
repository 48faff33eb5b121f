/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/kubernetes.h"

#include "wire/container.h"
#include "wire/controller.h"
#include "wire/pod_group.h"
#include "wire/resize.h"

#include "core/fail.h"

#include <string.h>

const char *const outcome_names[OUTCOME_N] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_CONFLICT] = "conflict",
    [OUTCOME_NOT_FOUND] = "not_found",
    [OUTCOME_REFUSED] = "refused",
    [OUTCOME_UNKNOWN] = "unknown",
};

/* --- pods ----------------------------------------------------------------------------------- */

struct pod_object {
    struct pod_view view;
    bool keeps_away, said_particular;
    const cJSON *volumes, *claims;
    const cJSON *containers;
    const cJSON *init_containers;
    const cJSON *statuses, *init_statuses, *conditions;
    const cJSON *owners;
    const cJSON *selector, *affinity, *tolerations; /* written only */
};

#define UNREAD "unread"
#define POD(KIND, member, path, flags) JSON_FIELD_##KIND(struct pod_object, member, path, flags)
#define POD_FIELDS                                                                                 \
    POD(STRING, view.name, "metadata.name", JSON_REQUIRED),                                        \
        POD(STRING, view.ns, "metadata.namespace", JSON_REQUIRED),                                 \
        POD(STRING, view.uid, "metadata.uid", 0),                                                  \
        POD(STRING, view.resource_version, "metadata.resourceVersion", 0),                         \
        POD(STRING, view.created, "metadata.creationTimestamp", 0),                                \
        POD(PRESENT, view.terminating, "metadata.deletionTimestamp", 0),                           \
        POD(ARRAY, owners, "metadata.ownerReferences", 0),                                         \
        POD(PAIRS, view.labels, "metadata.labels", 0),                                             \
        POD(PAIRS, view.annotations, "metadata.annotations", 0),                                   \
        POD(INT64, view.unlisted_annotations, "metadata.unlistedAnnotations", 0),                  \
        POD(ARRAY, volumes, "spec.volumes", 0), POD(ARRAY, claims, "spec.resourceClaims", 0),      \
        POD(STRING, view.node_name, "spec.nodeName", 0),                                           \
        POD(STRING, view.scheduler_name, "spec.schedulerName", 0),                                 \
        POD(INT64, view.priority, "spec.priority", 0),                                             \
        POD(INT64, view.active_deadline_s, "spec.activeDeadlineSeconds", JSON_CLAMP),              \
        POD(INT64, view.grace_s, "spec.terminationGracePeriodSeconds", JSON_CLAMP),                \
        POD(STRING, view.priority_class, "spec.priorityClassName", 0),                             \
        POD(STRING, view.scheduling_group, "spec.schedulingGroup.podGroupName", 0),                \
        POD(PAIRS, view.overhead, "spec.overhead", JSON_NUMBERS),                                  \
        POD(ARRAY, containers, "spec.containers", 0),                                              \
        POD(ARRAY, init_containers, "spec.initContainers", 0),                                     \
        POD(STRING, view.phase, "status.phase", 0),                                                \
        POD(STRING, view.status_reason, "status.reason", 0),                                       \
        POD(STRING, view.status_message, "status.message", 0),                                     \
        POD(STRING, view.nominated_node, "status.nominatedNodeName", 0),                           \
        POD(PRESENT, view.started, "status.startTime", 0),                                         \
        POD(STRING, view.started_at, "status.startedAt", 0), /* of records, likewise */            \
        POD(PAIRS, view.level, "spec.resources.requests", JSON_NUMBERS),                           \
        POD(PAIRS, view.level_actual, "status.resources.requests", JSON_NUMBERS),                  \
        POD(PAIRS, view.level_allocated, "status.allocatedResources", JSON_NUMBERS),               \
        POD(ARRAY, statuses, "status.containerStatuses", 0),                                       \
        POD(ARRAY, init_statuses, "status.initContainerStatuses", 0),                              \
        POD(ARRAY, conditions, "status.conditions", 0),                                            \
        POD(PRESENT, keeps_away, "spec.affinity.podAntiAffinity",                                  \
            0), /* of records; the API's objects have none */                                      \
        POD(BOOL, view.resize_infeasible, "status.resizeInfeasible", 0),                           \
        POD(BOOL, view.level_reported, "status.levelReported", 0), /* likewise */                  \
        POD(BOOL, said_particular, "particular", 0), POD(STRING, view.unread, UNREAD, 0)
static const struct json_field pod_fields[] = {POD_FIELDS, JSON_FIELD_END};
/* Where the members of a group may go matters to each of them: what a record says of one holds that, too. */
static const struct json_field member_fields[] = {
    POD_FIELDS,
    POD(OBJECT, selector, "spec.nodeSelector", 0),
    POD(OBJECT, affinity, "spec.affinity.nodeAffinity", 0),
    POD(ARRAY, tolerations, "spec.tolerations", 0),
    JSON_FIELD_END,
};

/* What it waits for in kube-scheduler's PreBind. Source: kubernetes/kubernetes 1.37.2, pkg/scheduler/framework/
 * plugins/volumebinding/volume_binding.go and dynamicresources/dynamicresources.go. */
static bool binds_late(const struct pod_object *pod)
{
    const cJSON *volume;

    cJSON_ArrayForEach (volume, pod->volumes) {
        if (cJSON_GetObjectItemCaseSensitive(volume, "persistentVolumeClaim") ||
            cJSON_GetObjectItemCaseSensitive(volume, "ephemeral"))
            return true;
    }
    return cJSON_GetArraySize(pod->claims) > 0;
}

/* A record says beside its `startTime`, which is true there, since when. */
static void read_start(const cJSON *object, struct pod_view *pod)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");
    const char *time = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(status, "startTime"));

    if (time)
        pod->started_at = time;
}

bool pod_view_decode_anonymous(struct json_arena *arena, const cJSON *object,
                               struct pod_view *ret_pod, GError **error)
{
    struct pod_object pod = {0};
    struct controller controller = {0};
    struct container_view *views = NULL;

    if (!json_decode(arena, object, pod_fields, &pod, error))
        return false;
    const size_t n = (size_t)cJSON_GetArraySize(pod.containers) +
                     (size_t)cJSON_GetArraySize(pod.init_containers);
    if (n)
        views = json_arena_alloc(arena, MIN(n, POD_CONTAINERS_MAX) * sizeof(*views));
    pod.view.truncated = n > POD_CONTAINERS_MAX || pod.view.unread;
    pod.view.containers = views;
    pod.view.object = object;
    if (pod.owners && controller_find(arena, pod.owners, &controller)) {
        pod.view.controller = controller.uid;
        pod.view.controller_kind = controller.kind;
    }
    pod.view.particular = pod.keeps_away || pod.said_particular;
    pod.view.resize_infeasible |= resize_is_infeasible(arena, pod.conditions);
    pod.view.level_reported |= resize_reports_level(object);
    pod.view.binds_late = binds_late(&pod);
    read_start(object, &pod.view);
    pod.view.unlisted_annotations = CLAMP(pod.view.unlisted_annotations, 0, ANNOTATIONS_BYTES_MAX);
    if (!container_views_decode(arena, pod.containers, false, views, &pod.view.n_containers,
                                error) ||
        !container_views_decode(arena, pod.init_containers, true, views, &pod.view.n_containers,
                                error))
        return false;
    if (pod.statuses || pod.init_statuses)
        resize_read_statuses(arena, (const cJSON *const[]){pod.statuses, pod.init_statuses}, views,
                             pod.view.n_containers);
    *ret_pod = pod.view;
    return true;
}

bool pod_view_decode(struct json_arena *arena, const cJSON *object, struct pod_view *ret_pod,
                     GError **error)
{
    struct pod_view pod;

    if (!pod_view_decode_anonymous(arena, object, &pod, error))
        return false;
    if (!pod.uid || !*pod.uid)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "field 'metadata.uid': %s",
                         pod.uid ? "must not be empty" : "missing");
    *ret_pod = pod;
    return true;
}

/* What says which pod it is, where, and whether it has ended. */
static bool is_identity(const struct json_field *field)
{
    static const char *const paths[] = {"metadata.name", "metadata.namespace", "metadata.uid",
                                        "spec.nodeName", "status.phase"};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        if (strcmp(field->path, paths[i]) == 0)
            return true;
    }
    return false;
}

bool pod_view_decode_part(struct json_arena *arena, const cJSON *object, struct pod_view *ret_pod)
{
    struct pod_object pod = {0};
    g_autoptr(GError) first = NULL;

    for (const struct json_field *field = pod_fields; field->path; field++) {
        const struct json_field one[] = {*field, JSON_FIELD_END};
        g_autoptr(GError) failure = NULL;

        if (json_decode(arena, object, one, &pod, &failure))
            continue;
        if (is_identity(field))
            return false;
        if (!first)
            first = g_steal_pointer(&failure);
    }
    if (!pod.view.uid || !*pod.view.uid)
        return false;
    const char *why = first ? first->message : "a container cannot be read";
    char *kept = json_arena_alloc(arena, strlen(why) + 1);
    read_start(object, &pod.view);
    pod.view.unread = strcpy(kept, why);
    pod.view.truncated = true;
    pod.view.object = object;
    *ret_pod = pod.view;
    return true;
}

/* --- other objects -------------------------------------------------------------------------- */

struct node_object {
    struct node_view view;
    const cJSON *taints;
};

#define NODE(KIND, member, path, flags) JSON_FIELD_##KIND(struct node_object, member, path, flags)
static const struct json_field node_fields[] = {
    NODE(STRING, view.name, "metadata.name", JSON_REQUIRED),
    NODE(STRING, view.resource_version, "metadata.resourceVersion", 0),
    NODE(BOOL, view.cordoned, "spec.unschedulable", 0),
    NODE(ARRAY, taints, "spec.taints", 0),
    NODE(PAIRS, view.labels, "metadata.labels", 0),
    NODE(PAIRS, view.annotations, "metadata.annotations", 0),
    NODE(PAIRS, view.capacity, "status.capacity", JSON_NUMBERS),
    NODE(PAIRS, view.allocatable, "status.allocatable", JSON_NUMBERS),
    JSON_FIELD_END,
};

#define TAINT(member, path, flags) JSON_FIELD_STRING(struct taint_view, member, path, flags)
static const struct json_field taint_fields[] = {
    TAINT(key, "key", JSON_REQUIRED),
    TAINT(value, "value", 0),
    TAINT(effect, "effect", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool decode_taints(struct json_arena *arena, const cJSON *list, struct node_view *node,
                          GError **error)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);
    const cJSON *item;

    if (n == 0)
        return true;
    struct taint_view *taints = json_arena_alloc(arena, n * sizeof *taints);
    node->taints = taints;
    cJSON_ArrayForEach (item, list) {
        if (!json_decode(arena, item, taint_fields, &taints[node->n_taints], error))
            return fail_within(error, "field 'spec.taints': item %zu: ", node->n_taints);
        node->n_taints++;
    }
    return true;
}

bool node_view_decode(struct json_arena *arena, const cJSON *object, struct node_view *ret_node,
                      GError **error)
{
    struct node_object node = {0};

    if (!json_decode(arena, object, node_fields, &node, error) ||
        !decode_taints(arena, node.taints, &node.view, error))
        return false;
    *ret_node = node.view;
    return true;
}

#define CONFIGMAP(KIND, member, path, flags)                                                       \
    JSON_FIELD_##KIND(struct configmap_view, member, path, flags)
static const struct json_field configmap_fields[] = {
    CONFIGMAP(STRING, name, "metadata.name", JSON_REQUIRED),
    CONFIGMAP(STRING, ns, "metadata.namespace", JSON_REQUIRED),
    CONFIGMAP(PAIRS, data, "data", 0),
    JSON_FIELD_END,
};

bool configmap_view_decode(struct json_arena *arena, const cJSON *object,
                           struct configmap_view *ret_configmap, GError **error)
{
    struct configmap_view configmap = {0};

    if (!json_decode(arena, object, configmap_fields, &configmap, error))
        return false;
    *ret_configmap = configmap;
    return true;
}

#define STATUS(KIND, member, path, flags) JSON_FIELD_##KIND(struct status_view, member, path, flags)
static const struct json_field status_fields[] = {
    STATUS(STRING, kind, "kind", 0),
    STATUS(STRING, reason, "reason", 0),
    STATUS(STRING, message, "message", 0),
    STATUS(INT64, code, "code", JSON_CLAMP),
    STATUS(INT64, retry_after_s, "details.retryAfterSeconds", JSON_CLAMP),
    JSON_FIELD_END,
};

bool status_view_decode(struct json_arena *arena, const cJSON *object,
                        struct status_view *ret_status, GError **error)
{
    struct status_view status = {0};

    if (!json_decode(arena, object, status_fields, &status, error))
        return false;
    *ret_status = status;
    return true;
}

/* --- the same again, for a record ----------------------------------------------------------- */

/* kubectl's copy of what was applied, environment included. */
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* A pair that was made by hand may lack its value. */
static int64_t bytes_of(const struct string_pair *pair)
{
    return (int64_t)(strlen(pair->key) + (pair->value ? strlen(pair->value) : 0));
}

/* Without what nobody reads and may be secret; for g_free. Adds up the bytes of that. */
static struct string_pair *without_secrets(const struct string_pairs *annotations, size_t *ret_n,
                                           int64_t *left_out)
{
    struct string_pair *kept = g_new(struct string_pair, annotations->n + 1);

    *ret_n = 0;
    for (size_t i = 0; i < annotations->n; i++) {
        const struct string_pair *one = &annotations->items[i];
        if (strcmp(one->key, LAST_APPLIED) != 0)
            kept[(*ret_n)++] = *one;
        else
            *left_out += bytes_of(one);
    }
    return kept;
}

static void write_containers(struct json_writer *writer, const struct json_field *field,
                             const void *base)
{
    const struct pod_view *pod = &((const struct pod_object *)base)->view;
    const bool init = field->offset == offsetof(struct pod_object, init_containers);

    json_begin_array(writer);
    for (size_t i = 0; i < pod->n_containers; i++) {
        if (pod->containers[i].init == init)
            container_view_encode(writer, &pod->containers[i]);
    }
    json_end_array(writer);
}

static void write_tree(struct json_writer *writer, const cJSON *tree)
{
    if (tree)
        json_value(writer, tree);
    else
        json_null(writer);
}

static void write_owner(struct json_writer *writer, const struct pod_view *pod)
{
    json_begin_array(writer);
    json_begin_object(writer);
    json_key_string(writer, "kind", pod->controller_kind ? pod->controller_kind : "controller");
    json_key_string(writer, "uid", pod->controller);
    json_key_bool(writer, "controller", true);
    json_end_object(writer);
    json_end_array(writer);
}

static bool has_list(const struct json_field *field, const void *base)
{
    const struct pod_object *object = base;

    if (field->offset == offsetof(struct pod_object, volumes) ||
        field->offset == offsetof(struct pod_object, statuses) ||
        field->offset == offsetof(struct pod_object, init_statuses) ||
        field->offset == offsetof(struct pod_object, conditions))
        return false;
    if (field->offset == offsetof(struct pod_object, claims))
        return object->view.binds_late;
    return field->offset != offsetof(struct pod_object, owners) || object->view.controller;
}

/* One stands for all for which the pod may have to wait. */
static void write_claim(struct json_writer *writer)
{
    json_begin_array(writer);
    json_begin_object(writer);
    json_end_object(writer);
    json_end_array(writer);
}

/* One of the pod's two lists of containers, or what is written as it was read. */
static void write_list(struct json_writer *writer, const struct json_field *field, const void *base)
{
    const struct pod_object *object = base;

    if (field->offset == offsetof(struct pod_object, selector))
        write_tree(writer, object->selector);
    else if (field->offset == offsetof(struct pod_object, affinity))
        write_tree(writer, object->affinity);
    else if (field->offset == offsetof(struct pod_object, tolerations))
        write_tree(writer, object->tolerations);
    else if (field->offset == offsetof(struct pod_object, owners))
        write_owner(writer, &object->view);
    else if (field->offset == offsetof(struct pod_object, claims))
        write_claim(writer);
    else
        write_containers(writer, field, base);
}

/* How much was left out matters only where there is much. */
static int64_t tell_unlisted(const struct string_pair *kept, size_t n, int64_t left_out)
{
    int64_t bytes = left_out;

    for (size_t i = 0; i < n && bytes < ANNOTATIONS_BYTES_FEW; i++)
        bytes += bytes_of(&kept[i]);
    return bytes < ANNOTATIONS_BYTES_FEW ? 0 : left_out;
}

void pod_view_encode(struct json_writer *writer, const struct pod_view *pod)
{
    struct pod_object object = {.view = *pod};
    size_t n;
    g_autofree struct string_pair *kept =
        without_secrets(&pod->annotations, &n, &object.view.unlisted_annotations);
    object.view.unlisted_annotations = tell_unlisted(kept, n, object.view.unlisted_annotations);

    object.view.annotations = (struct string_pairs){kept, n};
    object.view.status_reason = object.view.status_message = NULL; /* a record says it otherwise */
    object.said_particular = pod->particular;
    const bool member = pod->object && pod_group_claim(pod).name;
    if (member) {
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(pod->object, "spec");
        const cJSON *affinity = cJSON_GetObjectItemCaseSensitive(spec, "affinity");
        object.selector = cJSON_GetObjectItemCaseSensitive(spec, "nodeSelector");
        object.affinity = cJSON_GetObjectItemCaseSensitive(affinity, "nodeAffinity");
        object.tolerations = cJSON_GetObjectItemCaseSensitive(spec, "tolerations");
    }
    json_encode(writer, &(struct json_encoding){member ? member_fields : pod_fields, &object,
                                                write_list, has_list});
}

static void write_taints(struct json_writer *writer, const struct json_field *field,
                         const void *base)
{
    const struct node_view *node = &((const struct node_object *)base)->view;

    json_begin_array(writer);
    for (size_t i = 0; i < node->n_taints; i++)
        json_encode(writer, &(struct json_encoding){.fields = taint_fields,
                                                    .base = &node->taints[i]});
    json_end_array(writer);
}

void node_view_encode(struct json_writer *writer, const struct node_view *node)
{
    struct node_object object = {.view = *node};
    size_t n;
    int64_t left_out = 0;
    g_autofree struct string_pair *kept = without_secrets(&node->annotations, &n, &left_out);

    object.view.annotations = (struct string_pairs){kept, n};
    json_encode(writer, &(struct json_encoding){node_fields, &object,
                                                node->n_taints ? write_taints : NULL});
}

void configmap_view_encode(struct json_writer *writer, const struct configmap_view *configmap)
{
    json_encode(writer, &(struct json_encoding){.fields = configmap_fields, .base = configmap});
}

/* --- bodies that we send -------------------------------------------------------------------- */

void binding_encode(struct json_writer *writer, const struct binding *binding)
{
    json_begin_object(writer);
    json_key_string(writer, "apiVersion", "v1");
    json_key_string(writer, "kind", "Binding");

    json_key_object(writer, "metadata");
    json_key_string(writer, "name", binding->name);
    json_key_string(writer, "namespace", binding->ns);
    json_key_string(writer, "uid", binding->uid);
    if (binding->annotations && binding->annotations->n > 0) {
        json_key_object(writer, "annotations");
        for (size_t i = 0; i < binding->annotations->n; i++)
            json_key_string(writer, binding->annotations->items[i].key,
                            binding->annotations->items[i].value);
        json_end_object(writer);
    }
    if (binding->node_label && strlen(binding->node) <= LABEL_VALUE_MAX) {
        json_key_object(writer, "labels");
        json_key_string(writer, binding->node_label, binding->node);
        json_end_object(writer);
    }
    json_end_object(writer);

    json_key_object(writer, "target");
    json_key_string(writer, "apiVersion", "v1");
    json_key_string(writer, "kind", "Node");
    json_key_string(writer, "name", binding->node);
    json_end_object(writer);
    json_end_object(writer);
}

void pod_annotation_encode(struct json_writer *writer, const struct pod_annotation *annotation)
{
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_key_string(writer, "uid", annotation->uid);
    json_key_object(writer, "annotations");
    if (annotation->key)
        json_key_string(writer, annotation->key, annotation->value);
    for (size_t i = 0; !annotation->key && i < annotation->all->n; i++)
        json_key_string(writer, annotation->all->items[i].key, annotation->all->items[i].value);
    json_end_object(writer);
    json_end_object(writer);
    json_end_object(writer);
}

void node_annotation_encode(struct json_writer *writer, const struct node_annotation *annotation)
{
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_key_string(writer, "resourceVersion", annotation->version);
    json_key_object(writer, "annotations");
    json_key_string(writer, annotation->key, annotation->value);
    json_end_object(writer);
    json_end_object(writer);
    json_end_object(writer);
}

/* --- events --------------------------------------------------------------------------------- */

char *event_name(const char *pod, int64_t time_us)
{
    g_autofree char *time = g_strdup_printf(".%" G_GINT64_MODIFIER "x", time_us * 1000);
    g_autofree char *start = g_strndup(pod, EVENT_NAME_MAX - strlen(time));

    for (size_t n = strlen(start); n > 0 && !g_ascii_isalnum(start[n - 1]); n--)
        start[n - 1] = '\0';
    return g_strconcat(start, time, NULL);
}

void event_encode(struct json_writer *writer, const struct event_object *event)
{
    json_begin_object(writer);
    json_key_string(writer, "apiVersion", "events.k8s.io/v1");
    json_key_string(writer, "kind", "Event");
    json_key_object(writer, "metadata");
    json_key_string(writer, "name", event->name);
    json_key_string(writer, "namespace", event->ns);
    json_end_object(writer);
    json_key_string(writer, "eventTime", event->time);
    json_key_string(writer, "type", event->normal ? "Normal" : "Warning");
    json_key_string(writer, "reason", event->reason);
    json_key_string(writer, "action", event->action);
    json_key_string(writer, "reportingController", event->controller);
    json_key_string(writer, "reportingInstance", event->instance);
    json_key_object(writer, "regarding");
    json_key_string(writer, "apiVersion", "v1");
    json_key_string(writer, "kind", event->kind ? event->kind : event->node ? "Node" : "Pod");
    if (!event->node)
        json_key_string(writer, "namespace", event->ns);
    json_key_string(writer, "name", event->pod);
    if (!event->kind)
        json_key_string(writer, "uid", event->pod_uid);
    json_end_object(writer);
    json_key_string(writer, "note", event->note);
    json_end_object(writer);
}

void event_series_encode(struct json_writer *writer, int64_t count, const char *time)
{
    json_begin_object(writer);
    json_key_object(writer, "series");
    json_key_int(writer, "count", count);
    json_key_string(writer, "lastObservedTime", time);
    json_end_object(writer);
    json_end_object(writer);
}

char *micro_time_format(int64_t time_us)
{
    g_autoptr(GDateTime) seconds = g_date_time_new_from_unix_utc(time_us / G_USEC_PER_SEC);
    g_autofree char *text = g_date_time_format(seconds, "-%m-%dT%H:%M:%S");

    /* A year has four digits, also one before the year 1000, which objects may name. */
    return g_strdup_printf("%04d%s.%06dZ", g_date_time_get_year(seconds), text,
                           (int)(time_us % G_USEC_PER_SEC));
}
