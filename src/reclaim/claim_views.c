/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claim_views.h"

#include "base/log.h"

#define CALL_MS 5000
#define WRITES_MAX 8 /* of a look */
#define PAUSE_MS 60000

/* What was last written on a Node. */
struct shown {
    guint hash;
    int64_t at_ms;
};

struct claim_views {
    struct store *store;
    struct cluster *cluster;
    GHashTable *shown; /* node -> struct shown *, of the last minute */
};

struct claim_views *claim_views_new(struct store *store, struct cluster *cluster)
{
    struct claim_views *views = g_new(struct claim_views, 1);

    *views = (struct claim_views){store, cluster,
                                  g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    return views;
}

void claim_views_free(struct claim_views *views)
{
    g_hash_table_unref(views->shown);
    g_free(views);
}

static gboolean is_old(gpointer node, gpointer shown, gpointer now_ms)
{
    return *(const int64_t *)now_ms - ((const struct shown *)shown)->at_ms >= PAUSE_MS;
}

/* NULL: it has no claims. Free with g_free. */
static char *text_of(const struct claim_sheet *sheet, const char *node)
{
    const GPtrArray *claims = claim_sheet_on(sheet, node);

    return claims ? claims_encode(claims) : NULL;
}

/* Under the lock: whether it is to be written, as far as the watch has shown. */
static bool differs(const struct claim_views *views, const char *node, const char *text)
{
    const struct shown *shown = g_hash_table_lookup(views->shown, node);

    return (!shown || shown->hash != g_str_hash(text ? text : "")) &&
           ledger_node(store_ledger(views->store), node) &&
           !store_shows_claims(views->store, node, text);
}

static enum outcome annotate(struct cluster *cluster, const char *name, const char *text,
                             GError **error)
{
    const int64_t until_ms = g_get_monotonic_time() / 1000 + CALL_MS;
    g_autoptr(json_arena) arena = json_arena_new();
    struct node_view node = {0};
    const enum outcome outcome =
        cluster->ops->get_node(cluster, arena, name, until_ms, &node, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    return cluster->ops->annotate_node(
        cluster,
        &(struct node_annotation){
            .node = name, .version = node.resource_version, .key = CLAIM_KEY, .value = text},
        until_ms, error);
}

static void write_one(struct claim_views *views, const char *node, const char *text, int64_t now_ms)
{
    const struct shown shown = {g_str_hash(text ? text : ""), now_ms};
    g_autoptr(GError) failure = NULL;
    const enum outcome outcome = annotate(views->cluster, node, text, &failure);

    if (outcome == OUTCOME_CONFLICT) /* the next look tries again */
        return;
    g_hash_table_replace(views->shown, g_strdup(node), g_memdup2(&shown, sizeof shown));
    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND)
        log_event_limited(LOG_LEVEL_WARN, "claims cannot be shown on their node",
                          LOG_TEXT("node", node), LOG_TEXT("why", failure->message));
}

/* All that show claims, or have any. Free with g_hash_table_unref. */
static GHashTable *list_nodes(const struct claim_views *views, const struct claim_sheet *sheet)
{
    GHashTable *nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer node;

    store_lock(views->store);
    g_auto(GStrv) shown = store_list_claim_views(views->store);
    store_unlock(views->store);
    for (char **one = shown; *one; one++)
        g_hash_table_add(nodes, g_strdup(*one));
    g_hash_table_iter_init(&iter, sheet->nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        g_hash_table_add(nodes, g_strdup(node));
    return nodes;
}

void claim_views_show(struct claim_views *views, const struct claim_sheet *sheet, int64_t now_ms)
{
    g_autoptr(GHashTable) nodes = NULL;
    GHashTableIter iter;
    gpointer node;
    int n = 0;

    if (!views->cluster->ops->annotate_node || !views->cluster->ops->get_node)
        return;
    g_hash_table_foreach_remove(views->shown, is_old, &now_ms);
    nodes = list_nodes(views, sheet);
    g_hash_table_iter_init(&iter, nodes);
    while (n < WRITES_MAX && g_hash_table_iter_next(&iter, &node, NULL)) {
        g_autofree char *text = text_of(sheet, node);
        store_lock(views->store);
        const bool wanted = differs(views, node, text);
        store_unlock(views->store);
        if (wanted)
            write_one(views, node, text, now_ms);
        n += wanted;
    }
}
