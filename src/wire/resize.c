/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/resize.h"

struct status_object {
    const char *name;
    const cJSON *resources;
    struct string_pairs actual, allocated;
};

#define STATUS(KIND, member, path, flags)                                                          \
    JSON_FIELD_##KIND(struct status_object, member, path, flags)
static const struct json_field status_fields[] = {
    STATUS(STRING, name, "name", 0),
    STATUS(OBJECT, resources, "resources", 0),
    STATUS(PAIRS, actual, "resources.requests", JSON_NUMBERS),
    STATUS(PAIRS, allocated, "allocatedResources", JSON_NUMBERS),
    JSON_FIELD_END,
};

struct condition_object {
    const char *type, *reason;
};
static const struct json_field condition_fields[] = {
    JSON_FIELD_STRING(struct condition_object, type, "type", 0),
    JSON_FIELD_STRING(struct condition_object, reason, "reason", 0),
    JSON_FIELD_END,
};

static void add_statuses(struct json_arena *arena, const cJSON *list, GHashTable *by_name)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct status_object status = {0};
        struct container_view *view;

        if (!json_decode(arena, item, status_fields, &status, NULL) || !status.name ||
            !status.resources || !(view = g_hash_table_lookup(by_name, status.name)))
            continue;
        view->reported = true;
        view->actual = status.actual;
        view->allocated = status.allocated;
    }
}

void resize_read_statuses(struct json_arena *arena, const cJSON *const lists[2],
                          struct container_view *views, size_t n)
{
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; i < n; i++) {
        if (views[i].name)
            g_hash_table_insert(by_name, (gpointer)views[i].name, &views[i]);
    }
    for (int i = 0; i < 2; i++)
        add_statuses(arena, lists[i], by_name);
}

/* The first condition of that type tells. Source: kubernetes/kubernetes 1.35.0,
 * staging/src/k8s.io/component-helpers/resource/helpers.go, IsPodResizeInfeasible. */
bool resize_is_infeasible(struct json_arena *arena, const cJSON *conditions)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, conditions) {
        struct condition_object condition = {0};
        if (json_decode(arena, item, condition_fields, &condition, NULL) &&
            g_strcmp0(condition.type, "PodResizePending") == 0)
            return g_strcmp0(condition.reason, "Infeasible") == 0;
    }
    return false;
}

/* Source: kubernetes/kubernetes 1.35.0, staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests. */
bool resize_reports_level(const cJSON *pod)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(pod, "status");

    return cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(status, "resources")) ||
           cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(status, "allocatedResources"));
}
