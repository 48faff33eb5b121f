/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/object_tree.h"

#include "kube/feeds.h"

#include <string.h>

cJSON *object_tree_parse(struct json_arena *arena, const char *text)
{
    const cJSON *tree = json_parse(arena, text, strlen(text), NULL);
    return cJSON_Duplicate(tree, true);
}

static void set_value(cJSON *parent, const char *key, cJSON *take_value)
{
    if (cJSON_GetObjectItemCaseSensitive(parent, key))
        cJSON_ReplaceItemInObjectCaseSensitive(parent, key, take_value);
    else
        cJSON_AddItemToObject(parent, key, take_value);
}

void object_tree_set(cJSON *parent, const char *key, const char *value)
{
    set_value(parent, key, cJSON_CreateString(value));
}

cJSON *object_tree_descend(cJSON *parent, const char *key)
{
    cJSON *child = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (!cJSON_IsObject(child)) {
        child = cJSON_CreateObject();
        set_value(parent, key, child);
    }
    return child;
}

const char *object_tree_get(const cJSON *parent, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parent, key));
    return text ? text : "";
}

void object_tree_annotate(cJSON *tree, const struct annotations *annotations)
{
    if (!annotations || annotations->n == 0)
        return;
    cJSON *target = object_tree_descend(object_tree_descend(tree, "metadata"), "annotations");
    for (size_t i = 0; i < annotations->n; i++)
        object_tree_set(target, annotations->items[i].key, annotations->items[i].value);
}

char *object_tree_timestamp(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    return g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
}

void object_tree_complete(cJSON *tree, enum feed feed)
{
    cJSON *metadata = object_tree_descend(tree, "metadata");

    /* "/api/v1", "/apis/policy/v1" */
    object_tree_set(tree, "apiVersion",
                    kinds[feed]->api + (strstr(kinds[feed]->api, "/apis/") ? 6 : 5));
    object_tree_set(tree, "kind", kinds[feed]->kind);
    if (feed != FEED_NODES && !*object_tree_get(metadata, "namespace"))
        object_tree_set(metadata, "namespace", "default");
    if (!*object_tree_get(metadata, "uid")) {
        g_autofree char *uid = g_uuid_string_random();
        object_tree_set(metadata, "uid", uid);
    }
    if (feed == FEED_PODS && !*object_tree_get(object_tree_descend(tree, "status"), "phase"))
        object_tree_set(object_tree_descend(tree, "status"), "phase", "Pending");
}
