/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/fit_body.h"

#include "core/fail.h"
#include "wire/kubernetes.h"

#include <string.h>

#define DRAIN_MAX 1000

struct wrapper {
    const cJSON *pod, *drain, *template;
    int64_t replicas;
};
static const struct json_field wrapper_fields[] = {
    JSON_FIELD_OBJECT(struct wrapper, pod, "pod", 0),
    JSON_FIELD_INT64(struct wrapper, replicas, "replicas", 0),
    JSON_FIELD_ARRAY(struct wrapper, drain, "drain", 0),
    JSON_FIELD_OBJECT(struct wrapper, template, "template", 0),
    JSON_FIELD_END,
};

static bool is_wrapper(const cJSON *tree)
{
    return cJSON_IsObject(tree) && !cJSON_GetObjectItemCaseSensitive(tree, "kind") &&
           !cJSON_GetObjectItemCaseSensitive(tree, "spec") &&
           !cJSON_GetObjectItemCaseSensitive(tree, "items");
}

static bool read_drain(struct json_arena *arena, const cJSON *list, struct fit_body *body,
                       GError **error)
{
    const size_t n = (size_t)cJSON_GetArraySize(list);
    const cJSON *item;
    size_t i = 0;

    if (n > DRAIN_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "field 'drain': %zu nodes, at most %d are accepted", n, DRAIN_MAX);
    body->drain = json_arena_alloc(arena, (n + 1) * sizeof *body->drain);
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item) || !*item->valuestring)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'drain': item %zu: expected NODE or NODE/CARD", i);
        if (!g_strv_contains((const char *const *)body->drain, item->valuestring))
            body->drain[i++] = item->valuestring;
    }
    return true;
}

static bool read_template(struct json_arena *arena, const cJSON *tree, struct fit_body *body,
                          GError **error)
{
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(tree, "kind");

    if (kind && !(cJSON_IsString(kind) && strcmp(kind->valuestring, "Node") == 0))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'template': field 'kind': expected Node, such as a node of the "
                         "group would be");
    return node_view_decode(arena, tree, &body->template, error) ||
           fail_within(error, "field 'template': ");
}

static bool read_wrapper(struct json_arena *arena, const cJSON *tree, struct fit_body *body,
                         GError **error)
{
    struct wrapper wrapper = {0};

    if (!json_decode(arena, tree, wrapper_fields, &wrapper, error))
        return false;
    if (wrapper.replicas < 0 || wrapper.replicas > MANIFEST_REPLICAS_MAX)
        return fail_with(error, GPULEDGER_ERROR_RANGE,
                         "field 'replicas': expected a number from 0 to %d", MANIFEST_REPLICAS_MAX);
    if (wrapper.pod && !manifest_decode(arena, wrapper.pod, &body->manifest, error))
        return fail_within(error, "field 'pod': ");
    if (wrapper.template && !read_template(arena, wrapper.template, body, error))
        return false;
    body->has_pod = wrapper.pod;
    body->has_template = wrapper.template;
    body->replicas = wrapper.replicas;
    return read_drain(arena, wrapper.drain, body, error);
}

bool fit_body_parse(struct json_arena *arena, const char *text, size_t length,
                    struct fit_body *ret_body, GError **error)
{
    const cJSON *tree = manifest_load(arena, text, length, error);
    struct fit_body body = {0};

    if (!tree)
        return false;
    if (is_wrapper(tree)) {
        if (!read_wrapper(arena, tree, &body, error))
            return false;
    } else {
        body.has_pod = true;
        if (!manifest_decode(arena, tree, &body.manifest, error) ||
            !read_drain(arena, NULL, &body, error))
            return false;
    }
    if (!body.has_pod && !body.drain[0])
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "expected 'pod' or 'drain': what is to fit?");
    if (body.replicas == 0 && body.has_pod && body.manifest.counted) {
        body.replicas = body.manifest.replicas;
        if (body.replicas == 0)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'spec.replicas' is 0: no pod is to fit; say how many are, with "
                             "'replicas' or --replicas");
    }
    *ret_body = body;
    return true;
}
