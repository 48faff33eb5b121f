/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_marks.h"

#include "base/log.h"
#include "maintain/relocation.h"

#include <string.h>

struct left_look {
    const char *by;
    bool found;
};

static void find_left(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    struct left_look *look = data;

    for (guint i = 0; lives && g_strcmp0(mark->by, look->by) == 0 && i < mark->rooms->len; i++) {
        const struct kept_room *room = mark->rooms->pdata[i];
        look->found |= room->uid && g_str_has_prefix(room->uid, RELOCATION_LEFT);
    }
}

bool plan_marks_keep_left(struct store *store, const char *by)
{
    struct left_look look = {by, false};

    store_lock(store);
    store_marks_each(store, find_left, &look);
    store_unlock(store);
    return look.found;
}

struct marks {
    const char *by;
    GPtrArray *dead; /* names of nodes */
    GHashTable *own; /* name of a node -> struct plan_mark; NULL: nobody asks */
};

/* Under the store's lock. */
static void collect(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    struct marks *marks = data;

    if (!lives)
        g_ptr_array_add(marks->dead, g_strdup(node));
    else if (marks->own && g_strcmp0(mark->by, marks->by) == 0)
        g_hash_table_insert(marks->own, g_strdup(node), plan_mark_dup(mark));
}

/* Returns the dead ones. */
static GPtrArray *find_marks(struct store *store, const char *by, GHashTable *own)
{
    GPtrArray *dead = g_ptr_array_new_with_free_func(g_free);
    struct marks marks = {by, dead, own};

    store_lock(store);
    store_marks_each(store, collect, &marks);
    store_unlock(store);
    return dead;
}

static bool clean(struct api_client *client, const GPtrArray *dead, GError **error)
{
    for (guint i = 0; i < dead->len; i++) {
        if (!keeping_clean(client, dead->pdata[i], error))
            return false;
    }
    return true;
}

bool plan_marks_take_over(const struct plan_service_options *with, const char *by,
                          struct keeping *keeping, GError **error)
{
    g_autoptr(GHashTable) own = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) dead = find_marks(with->store, by, own);
    GHashTableIter iter;
    gpointer node, mark;

    g_hash_table_iter_init(&iter, own);
    while (g_hash_table_iter_next(&iter, &node, &mark))
        keeping_adopt(keeping, node, mark);
    return clean(with->client, dead, error);
}

void plan_marks_sweep(const struct plan_service_options *with)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GPtrArray) dead = find_marks(with->store, NULL, NULL);

    if (!clean(with->client, dead, &failure))
        log_event_limited(LOG_LEVEL_WARN, "what a plan has left on a node cannot be taken away",
                          LOG_TEXT("why", failure->message));
}
