/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/workload.h"

#include "core/fail.h"

#include <string.h>

int64_t kueue_time(const char *text, int64_t now_s)
{
    g_autoptr(GTimeZone) utc = text ? g_time_zone_new_utc() : NULL;
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, utc) : NULL;

    return time ? CLAMP(g_date_time_to_unix(time), 0, now_s) : 0;
}

/* --- conditions ----------------------------------------------------------------------------- */

struct condition {
    const char *type, *status, *since, *reason, *message;
    int64_t observed;
};
#define CONDITION(KIND, member, path, flags)                                                       \
    JSON_FIELD_##KIND(struct condition, member, path, flags)
static const struct json_field condition_fields[] = {
    CONDITION(STRING, type, "type", JSON_REQUIRED),
    CONDITION(STRING, status, "status", JSON_REQUIRED),
    CONDITION(STRING, since, "lastTransitionTime", 0),
    CONDITION(STRING, reason, "reason", 0),
    CONDITION(STRING, message, "message", 0),
    CONDITION(INT64, observed, "observedGeneration", 0),
    JSON_FIELD_END,
};

/* Of that type; false: there is none. */
static bool find_condition(struct json_arena *arena, const cJSON *list, const char *type,
                           struct condition *ret_condition)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct condition condition = {0};
        if (json_decode(arena, item, condition_fields, &condition, NULL) &&
            g_str_equal(condition.type, type)) {
            *ret_condition = condition;
            return true;
        }
    }
    return false;
}

/* Whether the condition is true, and since when. */
static bool holds(struct json_arena *arena, const cJSON *list, const char *type,
                  const char **ret_since)
{
    struct condition condition;

    if (!find_condition(arena, list, type, &condition) || !g_str_equal(condition.status, "True"))
        return false;
    *ret_since = condition.since;
    return true;
}

/* --- workloads ------------------------------------------------------------------------------ */

struct workload_object {
    struct workload_view view;
    bool active;
    const cJSON *pod_sets, *assignments, *conditions, *checks;
};
#define WORKLOAD(KIND, member, path, flags)                                                        \
    JSON_FIELD_##KIND(struct workload_object, member, path, flags)
static const struct json_field workload_fields[] = {
    WORKLOAD(STRING, view.ns, "metadata.namespace", JSON_REQUIRED),
    WORKLOAD(STRING, view.name, "metadata.name", JSON_REQUIRED),
    WORKLOAD(STRING, view.uid, "metadata.uid", JSON_REQUIRED),
    WORKLOAD(STRING, view.version, "metadata.resourceVersion", 0),
    WORKLOAD(PRESENT, view.terminating, "metadata.deletionTimestamp", 0),
    WORKLOAD(BOOL, active, "spec.active", 0),
    WORKLOAD(ARRAY, conditions, "status.conditions", 0),
    WORKLOAD(ARRAY, checks, "status.admissionChecks", 0),
    JSON_FIELD_END,
};

/* Who cannot be read by these is told so. */
static const struct json_field pods_fields[] = {
    WORKLOAD(ARRAY, pod_sets, "spec.podSets", 0),
    WORKLOAD(ARRAY, assignments, "status.admission.podSetAssignments", 0),
    JSON_FIELD_END,
};

#define POD_SET(KIND, member, path, flags)                                                         \
    JSON_FIELD_##KIND(struct workload_pod_set, member, path, flags)
static const struct json_field pod_set_fields[] = {
    POD_SET(STRING, name, "name", 0),
    POD_SET(INT64, count, "count", 0),
    POD_SET(OBJECT, template, "template", 0),
    JSON_FIELD_END,
};
/* Of status.admission.podSetAssignments. */
static const struct json_field assignment_fields[] = {
    POD_SET(STRING, name, "name", JSON_REQUIRED),
    POD_SET(INT64, count, "count", 0),
    POD_SET(OBJECT, flavors, "flavors", 0),
    POD_SET(PRESENT, topology, "topologyAssignment", 0),
    JSON_FIELD_END,
};

#define CHECK_STATE(KIND, member, path, flags)                                                     \
    JSON_FIELD_##KIND(struct workload_check, member, path, flags)
static const struct json_field check_state_fields[] = {
    CHECK_STATE(STRING, name, "name", JSON_REQUIRED),
    CHECK_STATE(STRING, state, "state", JSON_REQUIRED),
    CHECK_STATE(STRING, since, "lastTransitionTime", 0),
    CHECK_STATE(STRING, message, "message", 0),
    CHECK_STATE(INT64, retries, "retryCount", 0),
    CHECK_STATE(INT64, requeue_s, "requeueAfterSeconds", 0),
    CHECK_STATE(ARRAY, updates, "podSetUpdates", 0),
    JSON_FIELD_END,
};

static bool count_in(const cJSON *list, const char *path, int max, GError **error)
{
    const int n = cJSON_GetArraySize(list);

    return n <= max || fail_with(error, GPULEDGER_ERROR_LIMIT,
                                 "field '%s': %d items, at most %d are read", path, n, max);
}

static bool decode_pod_sets(struct json_arena *arena, const cJSON *list,
                            struct workload_view *workload, GError **error)
{
    const cJSON *item;

    if (!count_in(list, "spec.podSets", WORKLOAD_POD_SETS_MAX, error))
        return false;
    cJSON_ArrayForEach (item, list) {
        struct workload_pod_set *set = &workload->pod_sets[workload->n_pod_sets];
        *set = (struct workload_pod_set){.name = "main", .count = 1};
        if (!json_decode(arena, item, pod_set_fields, set, error))
            return fail_within(error, "field 'spec.podSets': item %zu: ", workload->n_pod_sets);
        workload->n_pod_sets++;
    }
    return true;
}

static struct workload_pod_set *find_pod_set(struct workload_view *workload, const char *name)
{
    for (size_t i = 0; i < workload->n_pod_sets; i++) {
        if (g_str_equal(workload->pod_sets[i].name, name))
            return &workload->pod_sets[i];
    }
    return NULL;
}

/* With what Kueue has said of the pod sets since: it may have admitted fewer pods. */
static bool decode_assignments(struct json_arena *arena, const cJSON *list,
                               struct workload_view *workload, GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct workload_pod_set said = {.count = -1};
        if (!json_decode(arena, item, assignment_fields, &said, error))
            return fail_within(error, "field 'status.admission.podSetAssignments': ");
        struct workload_pod_set *set = find_pod_set(workload, said.name);
        if (!set)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'status.admission.podSetAssignments': there is no pod set '%s'",
                             said.name);
        set->count = said.count >= 0 ? said.count : set->count;
        set->flavors = said.flavors;
        set->topology = said.topology;
    }
    return true;
}

/* All of them together are bounded, so that their sum is. */
static bool check_counts(const struct workload_view *workload, GError **error)
{
    for (size_t i = 0; i < workload->n_pod_sets; i++) {
        if (workload->pod_sets[i].count < 0 || workload->pod_sets[i].count > INT32_MAX)
            return fail_with(error, GPULEDGER_ERROR_RANGE,
                             "pod set '%s': %" G_GINT64_FORMAT " pods", workload->pod_sets[i].name,
                             workload->pod_sets[i].count);
    }
    return true;
}

static bool decode_checks(struct json_arena *arena, const cJSON *list,
                          struct workload_view *workload, GError **error)
{
    const cJSON *item;

    if (!count_in(list, "status.admissionChecks", WORKLOAD_CHECKS_MAX, error))
        return false;
    cJSON_ArrayForEach (item, list) {
        struct workload_check *check = &workload->checks[workload->n_checks];
        if (!json_decode(arena, item, check_state_fields, check, error))
            return fail_within(error,
                               "field 'status.admissionChecks': item %zu: ", workload->n_checks);
        check->retries = CLAMP(check->retries, 0, INT32_MAX);
        workload->n_checks++;
    }
    return true;
}

static void decode_pods(struct json_arena *arena, const cJSON *object, struct workload_object *read)
{
    g_autoptr(GError) failure = NULL;
    struct workload_view *view = &read->view;

    if (json_decode(arena, object, pods_fields, read, &failure) &&
        decode_pod_sets(arena, read->pod_sets, view, &failure) &&
        decode_assignments(arena, read->assignments, view, &failure) &&
        check_counts(view, &failure))
        return;
    const size_t size = strlen(failure->message) + 1;
    view->unreadable = memcpy(json_arena_alloc(arena, size), failure->message, size);
    view->n_pod_sets = 0;
}

bool workload_view_decode(struct json_arena *arena, const cJSON *object,
                          struct workload_view *ret_workload, GError **error)
{
    struct workload_object read = {.active = true};
    struct workload_view *view = &read.view;
    const char *ignored;

    if (!json_decode(arena, object, workload_fields, &read, error) ||
        !decode_checks(arena, read.checks, view, error))
        return false;
    decode_pods(arena, object, &read);
    view->inactive = !read.active;
    view->reserved = holds(arena, read.conditions, "QuotaReserved", &view->reserved_at);
    view->admitted = holds(arena, read.conditions, "Admitted", &view->admitted_at);
    view->finished = holds(arena, read.conditions, "Finished", &ignored);
    view->evicted = holds(arena, read.conditions, "Evicted", &ignored);
    *ret_workload = *view;
    return true;
}

bool workload_view_waits(const struct workload_view *workload)
{
    return workload->reserved && !workload->finished && !workload->evicted && !workload->inactive &&
           !workload->terminating;
}

/* --- admission checks ----------------------------------------------------------------------- */

struct check_object {
    struct check_view view;
    const char *controller;
    const cJSON *conditions;
};
#define CHECK(KIND, member, path, flags) JSON_FIELD_##KIND(struct check_object, member, path, flags)
static const struct json_field check_fields[] = {
    CHECK(STRING, view.name, "metadata.name", JSON_REQUIRED),
    CHECK(STRING, view.version, "metadata.resourceVersion", 0),
    CHECK(INT64, view.generation, "metadata.generation", 0),
    CHECK(STRING, controller, "spec.controllerName", 0),
    CHECK(PRESENT, view.parameters, "spec.parameters", 0),
    CHECK(ARRAY, conditions, "status.conditions", 0),
    JSON_FIELD_END,
};

static const struct json_field own_check_fields[] = {
    CHECK(STRING, view.name, "metadata.name", JSON_REQUIRED),
    CHECK(STRING, view.since, "metadata.creationTimestamp", 0),
    CHECK(STRING, controller, "spec.controllerName", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* One of ours is told what is wrong with it. */
static bool decode_unreadable(struct json_arena *arena, const cJSON *object, const char *why,
                              struct check_view *ret_check)
{
    struct check_object read = {0};
    const size_t size = strlen(why) + 1;

    if (!json_decode(arena, object, own_check_fields, &read, NULL) ||
        strcmp(read.controller, KUEUE_CONTROLLER) != 0)
        return false;
    read.view.ours = true;
    read.view.unreadable = memcpy(json_arena_alloc(arena, size), why, size);
    *ret_check = read.view;
    return true;
}

bool check_view_decode(struct json_arena *arena, const cJSON *object, struct check_view *ret_check,
                       GError **error)
{
    struct check_object read = {0};
    struct condition active;
    g_autoptr(GError) failure = NULL;

    if (!json_decode(arena, object, check_fields, &read, &failure)) {
        if (decode_unreadable(arena, object, failure->message, ret_check))
            return true;
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    read.view.ours = g_strcmp0(read.controller, KUEUE_CONTROLLER) == 0;
    if (find_condition(arena, read.conditions, "Active", &active)) {
        read.view.status = active.status;
        read.view.reason = active.reason;
        read.view.message = active.message;
        read.view.since = active.since;
        read.view.observed = active.observed;
    }
    *ret_check = read.view;
    return true;
}

/* --- flavors -------------------------------------------------------------------------------- */

#define FLAVOR(KIND, member, path) JSON_FIELD_##KIND(struct flavor_view, member, path, 0)
static const struct json_field flavor_fields[] = {
    FLAVOR(PAIRS, labels, "spec.nodeLabels"),
    FLAVOR(ARRAY, tolerations, "spec.tolerations"),
    JSON_FIELD_END,
};

bool flavor_view_decode(struct json_arena *arena, const cJSON *object,
                        struct flavor_view *ret_flavor, GError **error)
{
    struct flavor_view view = {0};

    if (!json_decode(arena, object, flavor_fields, &view, error))
        return false;
    *ret_flavor = view;
    return true;
}
