/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/idle_pods/idle_pods_told.h"

#include <gpuledger/error.h>

void idle_pods_encode(struct json_writer *writer, const struct idleness *idleness)
{
    json_begin_object(writer);
    json_key_int(writer, "until", idleness_until(idleness));
    json_key_int(writer, "after", idleness_after(idleness));
    json_key_array(writer, "pods");
    for (size_t i = 0; i < idleness_n(idleness); i++) {
        const struct idle_pod *pod = idleness_at(idleness, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", pod->ns);
        json_key_string(writer, "name", pod->name);
        json_key_int(writer, "since", pod->since_ms);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

struct told {
    int64_t until_ms, after_ms;
    const cJSON *pods;
};

static const struct json_field told_fields[] = {
    JSON_FIELD_INT64(struct told, until_ms, "until", JSON_REQUIRED),
    JSON_FIELD_INT64(struct told, after_ms, "after", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct told, pods, "pods", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct told_pod {
    const char *ns, *name;
    int64_t since_ms;
};

static const struct json_field pod_fields[] = {
    JSON_FIELD_STRING(struct told_pod, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct told_pod, name, "name", JSON_REQUIRED),
    JSON_FIELD_INT64(struct told_pod, since_ms, "since", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct idleness *idle_pods_decode(struct json_arena *arena, const cJSON *object, GError **error)
{
    struct told told = {0};
    const cJSON *item;

    if (!json_decode(arena, object, told_fields, &told, error))
        return NULL;
    g_autoptr(idleness) idleness = idleness_new(told.until_ms, told.after_ms);
    cJSON_ArrayForEach (item, told.pods) {
        struct told_pod pod = {0};
        if (!json_decode(arena, item, pod_fields, &pod, error))
            return NULL;
        const struct idle_pod idle = {(char *)pod.ns, (char *)pod.name, pod.since_ms};
        if (!idleness_add(idleness, &idle)) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT, "field 'pods': more than %d",
                        IDLENESS_PODS_MAX);
            return NULL;
        }
    }
    return g_steal_pointer(&idleness);
}
