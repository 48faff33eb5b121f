/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_group.h"

#include "core/fail.h"

#include <string.h>

#define LIGHT_LABEL "pod-group.scheduling.sigs.k8s.io/"
#define KOORDINATOR "gang.scheduling.koordinator.sh/"
#define LIGHT_MIN LIGHT_LABEL "min-available"
#define KOORDINATOR_MIN KOORDINATOR "min-available"
#define MIN_MAX 100000

static const char *get(const struct string_pairs *pairs, const char *key)
{
    const char *value = string_pairs_get(pairs, key);
    return value && *value ? value : NULL;
}

/* A pod that says something else than a number says nothing, and its group stays undeclared. */
static uint32_t read_min(const char *text)
{
    guint64 min;
    return text && g_ascii_string_to_unsigned(text, 10, 1, MIN_MAX, &min, NULL) ? (uint32_t)min : 0;
}

static int64_t bound_timeout(int64_t timeout_ms)
{
    return timeout_ms <= 0 ? POD_GROUP_TIMEOUT_MS : MIN(timeout_ms, POD_GROUP_TIMEOUT_MAX_MS);
}

/* Go's durations, of whole hours, minutes and seconds: "1m30s". */
static int64_t read_duration(const char *text)
{
    int64_t all_ms = 0;

    while (text && *text) {
        char *end;
        const guint64 number = g_ascii_strtoull(text, &end, 10);
        const char *unit = strchr("hms", *end);
        if (end == text || !*end || !unit || number > POD_GROUP_TIMEOUT_MAX_MS)
            return 0;
        all_ms += (int64_t)number * (*unit == 'h' ? 3600000 : *unit == 'm' ? 60000 : 1000);
        text = end + 1;
    }
    return all_ms;
}

struct pod_group_claim pod_group_claim(const struct pod_view *pod)
{
    struct pod_group_claim claim = {.name = pod_view_group(pod),
                                    .timeout_ms = POD_GROUP_TIMEOUT_MS,
                                    .bound_with = get(&pod->annotations, POD_GROUP_BOUND),
                                    .came_with = read_min(get(&pod->annotations, POD_GROUP_MIN))};

    if (claim.name && claim.name == pod->scheduling_group) {
        claim.native = true;
        return claim;
    }
    claim.min = read_min(get(&pod->labels, LIGHT_MIN));
    if (claim.min == 0)
        claim.min = read_min(get(&pod->annotations, KOORDINATOR_MIN));
    claim.timeout_ms =
        bound_timeout(read_duration(get(&pod->annotations, KOORDINATOR "waiting-time")));
    return claim;
}

char *pod_group_claim_lack(const struct pod_view *pod)
{
    const struct pod_group_claim claim = pod_group_claim(pod);
    const char *light = get(&pod->labels, LIGHT_MIN);
    const char *said = light ? light : get(&pod->annotations, KOORDINATOR_MIN);

    if (claim.native)
        return g_strdup_printf("there is no PodGroup %s of scheduling.k8s.io", claim.name);
    if (said)
        return g_strdup_printf("%s is '%.64s', no number from 1 to %d",
                               light ? "label " LIGHT_MIN : "annotation " KOORDINATOR_MIN, said,
                               MIN_MAX);
    return g_strdup("a PodGroup of that name would, or the label " LIGHT_MIN);
}

/* --- objects ---------------------------------------------------------------------------------- */

struct group_object {
    struct pod_group_view view;
    int64_t count, seconds;
    const char *phase;
    const cJSON *conditions;
};

#define GROUP(KIND, member, path, flags) JSON_FIELD_##KIND(struct group_object, member, path, flags)
static const struct json_field native_fields[] = {
    GROUP(STRING, view.name, "metadata.name", JSON_REQUIRED),
    GROUP(STRING, view.ns, "metadata.namespace", JSON_REQUIRED),
    GROUP(INT64, count, "spec.schedulingPolicy.gang.minCount", 0),
    GROUP(ARRAY, conditions, "status.conditions", 0),
    JSON_FIELD_END,
};
static const struct json_field plugin_fields[] = {
    GROUP(STRING, view.name, "metadata.name", JSON_REQUIRED),
    GROUP(STRING, view.ns, "metadata.namespace", JSON_REQUIRED),
    GROUP(INT64, count, "spec.minMember", 0),
    GROUP(INT64, seconds, "spec.scheduleTimeoutSeconds", 0),
    GROUP(STRING, phase, "status.phase", 0),
    JSON_FIELD_END,
};

struct condition {
    const char *type, *status, *time;
};
static const struct json_field condition_fields[] = {
    JSON_FIELD_STRING(struct condition, type, "type", 0),
    JSON_FIELD_STRING(struct condition, status, "status", 0),
    JSON_FIELD_STRING(struct condition, time, "lastTransitionTime", 0),
    JSON_FIELD_END,
};

/* kube-scheduler says there that it has given up; its condition has another name from 1.37 on. */
static const char *find_failure(struct json_arena *arena, const cJSON *conditions)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, conditions) {
        struct condition condition = {0};
        if (json_decode(arena, item, condition_fields, &condition, NULL) &&
            (g_strcmp0(condition.type, "PodGroupScheduled") == 0 ||
             g_strcmp0(condition.type, "PodGroupInitiallyScheduled") == 0) &&
            g_strcmp0(condition.status, "False") == 0)
            return condition.time ? condition.time : "False";
    }
    return NULL;
}

bool pod_group_view_decode(struct json_arena *arena, const cJSON *object, bool native,
                           struct pod_group_view *ret_group, GError **error)
{
    struct group_object group = {0};

    if (!json_decode(arena, object, native ? native_fields : plugin_fields, &group, error))
        return false;
    if (group.count < 0 || group.count > MIN_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "field '%s': %" G_GINT64_FORMAT " is not within 0 and %d",
                         native ? "spec.schedulingPolicy.gang.minCount" : "spec.minMember",
                         group.count, MIN_MAX);
    group.view.native = native;
    group.view.min =
        (uint32_t)MAX(group.count, 1); /* without a gang's policy there is nothing to hold to */
    group.view.timeout_ms =
        bound_timeout(MIN(group.seconds, POD_GROUP_TIMEOUT_MAX_MS / 1000) * 1000);
    group.view.failure = native ? find_failure(arena, group.conditions)
                         : g_strcmp0(group.phase, "Failed") == 0 ? group.phase
                                                                 : NULL;
    *ret_group = group.view;
    return true;
}

static void write_native(struct json_writer *writer, const struct pod_group_view *group)
{
    json_key_object(writer, "spec");
    json_key_object(writer, "schedulingPolicy");
    json_key_object(writer, "gang");
    json_key_int(writer, "minCount", group->min);
    json_end_object(writer);
    json_end_object(writer);
    json_end_object(writer);
    if (!group->failure)
        return;
    json_key_object(writer, "status");
    json_key_array(writer, "conditions");
    json_begin_object(writer);
    json_key_string(writer, "type", "PodGroupScheduled");
    json_key_string(writer, "status", "False");
    json_key_string(writer, "lastTransitionTime", group->failure);
    json_end_object(writer);
    json_end_array(writer);
    json_end_object(writer);
}

void pod_group_view_encode(struct json_writer *writer, const struct pod_group_view *group)
{
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_key_string(writer, "name", group->name);
    json_key_string(writer, "namespace", group->ns);
    json_end_object(writer);
    if (group->native) {
        write_native(writer, group);
    } else {
        json_key_object(writer, "spec");
        json_key_int(writer, "minMember", group->min);
        json_key_int(writer, "scheduleTimeoutSeconds", group->timeout_ms / 1000);
        json_end_object(writer);
        json_key_object(writer, "status");
        json_key_string(writer, "phase", group->failure ? group->failure : "");
        json_end_object(writer);
    }
    json_end_object(writer);
}
