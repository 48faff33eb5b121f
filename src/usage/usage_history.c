/* SPDX-License-Identifier: Apache-2.0 */
#include "usage/usage_history.h"

#include <string.h>

struct usage_history {
    struct usage_rule rule;
    int64_t last_ms;   /* of the last answer; 0: there was none */
    GHashTable *quiet; /* "NAMESPACE/NAME" -> int64_t *: since when */
};

static GHashTable *new_table(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

struct usage_history *usage_history_new(const struct usage_rule *rule)
{
    struct usage_history *history = g_new0(struct usage_history, 1);

    history->rule = *rule;
    history->quiet = new_table();
    return history;
}

void usage_history_free(struct usage_history *history)
{
    if (!history)
        return;
    g_hash_table_unref(history->quiet);
    g_free(history);
}

void usage_history_take(struct usage_history *history, const struct usage_reading *reading,
                        int64_t now_ms)
{
    /* A clock that was set back proves nothing either. */
    const bool goes_on =
        now_ms >= history->last_ms && now_ms - history->last_ms <= history->rule.gap_ms;
    GHashTable *quiet = new_table();
    GHashTableIter iter;
    gpointer pod, percent;

    g_hash_table_iter_init(&iter, reading->percents);
    while (g_hash_table_iter_next(&iter, &pod, &percent)) {
        const int64_t *before = goes_on ? g_hash_table_lookup(history->quiet, pod) : NULL;
        const int64_t since_ms = before ? *before : now_ms;
        if (*(const double *)percent < (double)history->rule.below)
            g_hash_table_insert(quiet, g_strdup(pod), g_memdup2(&since_ms, sizeof since_ms));
    }
    g_hash_table_unref(history->quiet);
    history->quiet = quiet;
    history->last_ms = now_ms;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

struct idleness *usage_history_tell(const struct usage_history *history)
{
    struct idleness *idleness =
        idleness_new(history->last_ms + history->rule.gap_ms, history->rule.after_ms);
    g_autoptr(GList) pods = g_list_sort(g_hash_table_get_keys(history->quiet), compare_names);

    for (const GList *item = pods; item; item = item->next) {
        const char *name = strchr(item->data, '/') + 1;
        g_autofree char *ns = g_strndup(item->data, (gsize)(name - 1 - (const char *)item->data));
        const int64_t *since_ms = g_hash_table_lookup(history->quiet, item->data);
        idleness_add(idleness, &(struct idle_pod){ns, (char *)name, *since_ms});
    }
    return idleness;
}
