/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/sums/space_limits.h"

#include "json/json.h"
#include "quota/share_amounts.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define LIMIT_MAX 1000000 /* GPUs */

static void limits_free(gpointer data)
{
    struct space_limits *limits = data;
    g_hash_table_unref(limits->models);
    g_hash_table_unref(limits->pools);
    g_free(limits);
}

GHashTable *space_limits_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, limits_free);
}

struct entry {
    struct string_pairs quota;
    const cJSON *pool;
};

static const struct json_field entry_fields[] = {
    JSON_FIELD_PAIRS(struct entry, quota, "quota", JSON_NUMBERS),
    JSON_FIELD_ARRAY(struct entry, pool, "pool", 0),
    JSON_FIELD_END,
};

static struct space_limits *read_limits(struct json_arena *arena, const cJSON *object,
                                        GError **error)
{
    struct space_limits *limits = g_new0(struct space_limits, 1);
    struct entry entry = {0};
    const cJSON *pool;

    limits->models = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    limits->pools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!json_decode(arena, object, entry_fields, &entry, error))
        goto fail;
    for (size_t i = 0; i < entry.quota.n; i++) {
        const struct string_pair *pair = &entry.quota.items[i];
        int64_t gpus;
        if (!quantity_parse(pair->value, &gpus, error)) {
            g_prefix_error(error, "model '%s': ", pair->key);
            goto fail;
        }
        gpus = MIN(gpus, LIMIT_MAX) * SHARE_UNIT;
        g_hash_table_insert(limits->models, g_strdup(pair->key), g_memdup2(&gpus, sizeof gpus));
    }
    cJSON_ArrayForEach (pool, entry.pool) {
        if (cJSON_IsString(pool))
            g_hash_table_add(limits->pools, g_strdup(pool->valuestring));
    }
    return limits;

fail:
    limits_free(limits);
    return NULL;
}

GHashTable *space_limits_read(const char *text, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GHashTable) namespaces = space_limits_new();
    const cJSON *document = NULL, *item;

    if (text && !(document = json_parse(arena, text, strlen(text), error)))
        return NULL;
    if (document && !cJSON_IsObject(document)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "expected an object of namespaces");
        return NULL;
    }
    cJSON_ArrayForEach (item, document) {
        struct space_limits *limits = read_limits(arena, item, error);
        if (!limits) {
            g_prefix_error(error, "namespace '%s': ", item->string);
            return NULL;
        }
        g_hash_table_insert(namespaces, g_strdup(item->string), limits);
    }
    return g_steal_pointer(&namespaces);
}
