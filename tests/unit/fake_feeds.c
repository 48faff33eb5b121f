/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as text, read as the feeds read them. */
#include "fake_cluster.h"
#include "store/kinds/kind.h"

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

static void feed_object(struct store *store, enum feed feed, bool deleted, const cJSON *json,
                        struct json_arena *arena)
{
    void *view = json_arena_alloc(arena, kinds[feed]->size);

    ck_assert(kinds[feed]->decode(arena, json, view, NULL));
    if (deleted)
        store_remove_object(store, feed, view);
    else
        store_apply_object(store, feed, view);
}

void feed_event(struct store *store, enum feed feed, bool deleted, const char *object)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *json = json_parse(arena, object, strlen(object), &error);

    ck_assert_msg(json != NULL, "%s: %s", object, error ? error->message : "");
    if (feed == FEED_PODS)
        feed_pod(store, deleted, json, arena);
    else if (feed == FEED_NODES)
        feed_node(store, deleted, json, arena);
    else
        feed_object(store, feed, deleted, json, arena);
}
