/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a watch says, event after event, of nodes, pods and ConfigMaps alike: the store takes it
 * or says why not, and what it then shows is right. An object's kind chooses its feed.
 */
#include "views_check.h"

#include "kube/feeds.h"
#include "kube/framer.h"

#define OBJECT_MAX ((size_t)64 << 10)

struct event {
    const char *type;
    const char *kind;
    const cJSON *object;
};

static const struct json_field event_fields[] = {
    JSON_FIELD_STRING(struct event, type, "type", JSON_REQUIRED),
    JSON_FIELD_STRING(struct event, kind, "object.kind", JSON_REQUIRED),
    JSON_FIELD_OBJECT(struct event, object, "object", JSON_REQUIRED),
    JSON_FIELD_END,
};

static void apply(struct store *store, struct json_arena *arena, const struct event *event)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        g_autoptr(GError) error = NULL;

        if (!g_str_equal(kinds[feed]->kind, event->kind))
            continue;
        const bool gone = g_str_equal(event->type, "DELETED");
        const bool ok =
            (gone ? feed_forget : feed_apply)((enum feed)feed, store, arena, event->object, &error);
        FUZZ_CHECK(ok == !error);
    }
}

static bool on_event(const char *text, size_t length, void *data, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct event event = {0};

    const cJSON *tree = json_parse(arena, text, length, NULL);
    if (tree && json_decode(arena, tree, event_fields, &event, NULL))
        apply(data, arena, &event);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(store) store = store_new(&(struct store_options){.policy = policies, .silent = true});
    g_autoptr(framer) framer = framer_new(FRAMER_SEQUENCE, OBJECT_MAX, on_event, store);

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, (enum feed)feed);
    framer_feed(framer, (const char *)data, size, NULL);
    check_views(store);
    /* What was said before the lists ended stays. */
    const size_t held = ledger_size(store_lock(store));
    store_unlock(store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, (enum feed)feed);
    FUZZ_CHECK(ledger_size(store_lock(store)) == held);
    store_unlock(store);
    FUZZ_CHECK(store_is_synced(store));
    check_views(store);
    return 0;
}
