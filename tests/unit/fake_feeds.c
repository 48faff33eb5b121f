/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as text, read as the feeds read them. */
#include "fake_cluster.h"

#include <check.h>
#include <string.h>

static void feed_pod(struct store *store, bool deleted, const cJSON *json, struct json_arena *arena)
{
    struct pod_view view;

    ck_assert(pod_view_decode(arena, json, &view, NULL));
    if (!deleted) {
        store_apply_pod(store, &view);
        return;
    }
    store_delete_pod(store, view.uid); /* kubelet has done with it */
    store_vanish_pod(store, view.uid);
}

static void feed_node(struct store *store, bool deleted, const cJSON *json,
                      struct json_arena *arena)
{
    struct node_view view;

    ck_assert(node_view_decode(arena, json, &view, NULL));
    if (deleted)
        store_delete_node(store, view.name);
    else
        store_apply_node(store, &view);
}

static void feed_configmap(struct store *store, bool deleted, const cJSON *json,
                           struct json_arena *arena)
{
    struct configmap_view view;

    ck_assert(configmap_view_decode(arena, json, &view, NULL));
    if (deleted)
        store_delete_configmap(store, &view);
    else
        store_apply_configmap(store, &view);
}

static void feed_budget(struct store *store, bool deleted, const cJSON *json,
                        struct json_arena *arena)
{
    struct budget_view view;

    ck_assert(budget_view_decode(arena, json, &view, NULL));
    if (deleted)
        store_delete_budget(store, view.ns, view.name);
    else
        store_apply_budget(store, &view);
}

static void feed_resource_quota(struct store *store, bool deleted, const cJSON *json,
                                struct json_arena *arena)
{
    struct resource_quota_view view;

    ck_assert(resource_quota_view_decode(arena, json, &view, NULL));
    if (deleted)
        store_delete_resource_quota(store, &view);
    else
        store_apply_resource_quota(store, &view);
}

static void feed_elastic_quota(struct store *store, bool deleted, const cJSON *json,
                               struct json_arena *arena)
{
    struct resource_quota_view view;

    ck_assert(elastic_quota_view_decode(arena, json, &view, NULL));
    if (deleted)
        store_delete_resource_quota(store, &view);
    else
        store_apply_resource_quota(store, &view);
}

static void feed_group(struct store *store, bool deleted, const cJSON *json,
                       struct json_arena *arena, bool native)
{
    struct pod_group_view view;

    ck_assert(pod_group_view_decode(arena, json, native, &view, NULL));
    if (deleted)
        store_delete_pod_group(store, &view);
    else
        store_apply_pod_group(store, &view);
}

static void feed_pod_group(struct store *store, bool deleted, const cJSON *json,
                           struct json_arena *arena)
{
    feed_group(store, deleted, json, arena, false);
}

static void feed_native_pod_group(struct store *store, bool deleted, const cJSON *json,
                                  struct json_arena *arena)
{
    feed_group(store, deleted, json, arena, true);
}

void feed_event(struct store *store, enum feed feed, bool deleted, const char *object)
{
    static void (*const feeders[FEED_N])(struct store *, bool, const cJSON *,
                                         struct json_arena *) = {
        [FEED_NODES] = feed_node,
        [FEED_PODS] = feed_pod,
        [FEED_CONFIGMAPS] = feed_configmap,
        [FEED_BUDGETS] = feed_budget,
        [FEED_RESOURCE_QUOTAS] = feed_resource_quota,
        [FEED_ELASTIC_QUOTAS] = feed_elastic_quota,
        [FEED_POD_GROUPS] = feed_pod_group,
        [FEED_NATIVE_POD_GROUPS] = feed_native_pod_group,
    };
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *json = json_parse(arena, object, strlen(object), &error);

    ck_assert_msg(json != NULL, "%s: %s", object, error ? error->message : "");
    feeders[feed](store, deleted, json, arena);
}
