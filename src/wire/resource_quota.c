/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/resource_quota.h"

#include "core/fail.h"

#include <string.h>

#define QUOTA(KIND, member, path, flags)                                                           \
    JSON_FIELD_##KIND(struct resource_quota_view, member, path, flags)
static const struct json_field quota_fields[] = {
    QUOTA(STRING, name, "metadata.name", JSON_REQUIRED),
    QUOTA(STRING, ns, "metadata.namespace", JSON_REQUIRED),
    QUOTA(PAIRS, hard, "spec.hard", JSON_NUMBERS),
    QUOTA(PAIRS, min, "spec.min", JSON_NUMBERS),
    QUOTA(PAIRS, max, "spec.max", JSON_NUMBERS),
    QUOTA(PAIRS, labels, "metadata.labels", 0),
    QUOTA(PAIRS, annotations, "metadata.annotations", 0),
    JSON_FIELD_END,
};

#define TREE "quota.scheduling.koordinator.sh/"
#define ROOT "koordinator-root-quota"
#define KEY_PARENT TREE "parent"
#define KEY_IS_PARENT TREE "is-parent"
#define KEY_TREE TREE "tree-id"
#define KEY_LENDS TREE "allow-lent-resource"
#define KEY_WEIGHTS TREE "shared-weight"
#define KEY_NAMESPACES TREE "namespaces"
#define KEY_OF_POD TREE "name"

static const char *const tree_labels[] = {KEY_PARENT, KEY_IS_PARENT, KEY_TREE, KEY_LENDS, NULL};
static const char *const tree_annotations[] = {KEY_WEIGHTS, KEY_NAMESPACES, NULL};

/* A map that an annotation has as JSON. */
struct map {
    struct string_pairs pairs;
};
static const struct json_field map_fields[] = {
    JSON_FIELD_PAIRS(struct map, pairs, "value", JSON_NUMBERS),
    JSON_FIELD_END,
};

static bool read_map(struct json_arena *arena, const struct string_pairs *annotations,
                     const char *key, struct string_pairs *pairs, GError **error)
{
    const char *text = string_pairs_get(annotations, key);
    struct map map = {0};

    if (!text)
        return true;
    g_autofree char *object = g_strconcat("{\"value\":", text, "}", NULL);
    const cJSON *tree = json_parse(arena, object, strlen(object), error);
    if (!tree || !json_decode(arena, tree, map_fields, &map, error)) {
        g_prefix_error(error, "annotation '%s': expected an object of quantities: ", key);
        return false;
    }
    *pairs = map.pairs;
    return true;
}

/* Those of the pairs that have such a key. */
static struct string_pairs keep(struct json_arena *arena, const struct string_pairs *pairs,
                                const char *const *keys)
{
    struct string_pair *items = json_arena_alloc(arena, (pairs->n + 1) * sizeof *items);
    size_t n = 0;

    for (size_t i = 0; i < pairs->n; i++) {
        if (g_strv_contains(keys, pairs->items[i].key))
            items[n++] = pairs->items[i];
    }
    return (struct string_pairs){items, n};
}

static const char *keep_text(struct json_arena *arena, const char *text)
{
    return strcpy(json_arena_alloc(arena, strlen(text) + 1), text);
}

#define KEY_MIN "gpuledger.io/min"
#define KEY_MAX "gpuledger.io/max"

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error)
{
    static const char *const maps[] = {KEY_MIN, KEY_MAX, NULL};
    struct resource_quota_view quota = {0};
    g_autoptr(GError) unread = NULL;

    if (!json_decode(arena, object, quota_fields, &quota, error))
        return false;
    quota.labels = (struct string_pairs){0};
    quota.annotations = keep(arena, &quota.annotations, maps);
    if (read_map(arena, &quota.annotations, KEY_MIN, &quota.min, &unread) &&
        read_map(arena, &quota.annotations, KEY_MAX, &quota.max, &unread))
        quota.annotations = (struct string_pairs){0};
    else
        quota.in.unread = keep_text(arena, unread->message);
    *ret_quota = quota;
    return true;
}

/* --- trees -------------------------------------------------------------------------------------- */

static bool read_namespaces(struct json_arena *arena, const char *text,
                            struct quota_tree_view *tree, GError **error)
{
    const cJSON *list = json_parse(arena, text, strlen(text), error), *item;
    size_t n = 0;

    if (!list)
        return false;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > QUOTA_NAMESPACES_MAX)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "expected an array of at most %d namespaces", QUOTA_NAMESPACES_MAX);
    tree->namespaces =
        json_arena_alloc(arena, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *tree->namespaces);
    cJSON_ArrayForEach (item, list) {
        const char *ns = cJSON_GetStringValue(item);
        if (!ns || !*ns)
            return fail_with(error, GPULEDGER_ERROR_INVALID, "expected an array of namespaces");
        tree->namespaces[n++] = ns;
    }
    return true;
}

static bool read_tree(struct json_arena *arena, struct resource_quota_view *quota, GError **error)
{
    const char *parent = string_pairs_get(&quota->labels, KEY_PARENT);
    const char *tree = string_pairs_get(&quota->labels, KEY_TREE);
    const char *namespaces = string_pairs_get(&quota->annotations, KEY_NAMESPACES);

    quota->in = (struct quota_tree_view){
        .inside = quota->labels.n > 0 || quota->annotations.n > 0,
        .is_parent = g_strcmp0(string_pairs_get(&quota->labels, KEY_IS_PARENT), "true") == 0,
        .keeps = g_strcmp0(string_pairs_get(&quota->labels, KEY_LENDS), "false") == 0,
        .parent = parent && *parent && strcmp(parent, ROOT) != 0 ? parent : NULL,
        .tree = tree ? tree : "",
    };
    if (namespaces && *namespaces && !read_namespaces(arena, namespaces, &quota->in, error))
        return fail_within(error, "annotation '" KEY_NAMESPACES "': ");
    return read_map(arena, &quota->annotations, KEY_WEIGHTS, &quota->in.weights, error);
}

const char *quota_of_pod(const struct pod_view *pod)
{
    const char *name = string_pairs_get(&pod->labels, KEY_OF_POD);

    return name && *name ? name : NULL;
}

bool elastic_quota_view_decode(struct json_arena *arena, const cJSON *object,
                               struct resource_quota_view *ret_quota, GError **error)
{
    struct resource_quota_view quota = {0};
    g_autoptr(GError) unread = NULL;

    if (!json_decode(arena, object, quota_fields, &quota, error))
        return false;
    if (g_str_equal(quota.name, ROOT))
        quota = (struct resource_quota_view){.ns = quota.ns, .name = quota.name};
    quota.elastic = true;
    quota.hard = (struct string_pairs){0};
    quota.labels = keep(arena, &quota.labels, tree_labels);
    quota.annotations = keep(arena, &quota.annotations, tree_annotations);
    if (!read_tree(arena, &quota, &unread))
        quota.in.unread = keep_text(arena, unread->message);
    *ret_quota = quota;
    return true;
}

void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota)
{
    json_encode(writer, &(struct json_encoding){.fields = quota_fields, .base = quota});
}
