/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/resource_quota.h"

#include <string.h>

#define QUOTA(KIND, member, path, flags)                                                           \
    JSON_FIELD_##KIND(struct resource_quota_view, member, path, flags)
static const struct json_field quota_fields[] = {
    QUOTA(STRING, name, "metadata.name", JSON_REQUIRED),
    QUOTA(STRING, ns, "metadata.namespace", JSON_REQUIRED),
    QUOTA(PAIRS, hard, "spec.hard", JSON_NUMBERS),
    QUOTA(PAIRS, min, "spec.min", JSON_NUMBERS),
    QUOTA(PAIRS, max, "spec.max", JSON_NUMBERS),
    JSON_FIELD_END,
};

struct notes {
    struct string_pairs annotations;
};
static const struct json_field notes_fields[] = {
    JSON_FIELD_PAIRS(struct notes, annotations, "metadata.annotations", 0),
    JSON_FIELD_END,
};

/* A map that an annotation has as JSON. */
struct map {
    struct string_pairs pairs;
};
static const struct json_field map_fields[] = {
    JSON_FIELD_PAIRS(struct map, pairs, "map", JSON_NUMBERS),
    JSON_FIELD_END,
};

static bool read_map(struct json_arena *arena, const struct notes *notes, const char *key,
                     struct string_pairs *pairs, GError **error)
{
    const char *text = string_pairs_get(&notes->annotations, key);
    struct map map = {0};

    if (!text)
        return true;
    g_autofree char *object = g_strconcat("{\"map\":", text, "}", NULL);
    const cJSON *tree = json_parse(arena, object, strlen(object), error);
    if (!tree || !json_decode(arena, tree, map_fields, &map, error)) {
        g_prefix_error(error, "annotation '%s': expected an object of quantities: ", key);
        return false;
    }
    *pairs = map.pairs;
    return true;
}

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error)
{
    struct resource_quota_view quota = {0};
    struct notes notes = {0};

    if (!json_decode(arena, object, quota_fields, &quota, error) ||
        !json_decode(arena, object, notes_fields, &notes, error) ||
        !read_map(arena, &notes, "gpuledger.io/min", &quota.min, error) ||
        !read_map(arena, &notes, "gpuledger.io/max", &quota.max, error))
        return false;
    *ret_quota = quota;
    return true;
}

bool elastic_quota_view_decode(struct json_arena *arena, const cJSON *object,
                               struct resource_quota_view *ret_quota, GError **error)
{
    struct resource_quota_view quota = {0};

    if (!json_decode(arena, object, quota_fields, &quota, error))
        return false;
    quota.elastic = true;
    quota.hard = (struct string_pairs){0};
    *ret_quota = quota;
    return true;
}

void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota)
{
    json_encode(writer, &(struct json_encoding){.fields = quota_fields, .base = quota});
}
