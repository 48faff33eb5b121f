/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/pauses.h"

#include <string.h>

#define CONTROLLER_MAX 64 /* bytes of a UID, which a tenant may have made up */

struct pause {
    int64_t last_ms, until_ms;
};

struct pauses {
    int64_t first_ms, most_ms;
    GHashTable *all; /* "NAMESPACE\nCONTROLLER", or "NAMESPACE" as a whole -> struct pause * */
};

struct pauses *pauses_new(int64_t first_ms, int64_t most_ms)
{
    struct pauses *pauses = g_new(struct pauses, 1);

    *pauses = (struct pauses){first_ms, most_ms,
                              g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    return pauses;
}

void pauses_free(struct pauses *pauses)
{
    if (!pauses)
        return;
    g_hash_table_unref(pauses->all);
    g_free(pauses);
}

int64_t pauses_next(int64_t last, int64_t first, int64_t most)
{
    return last > most / 2 ? most : CLAMP(2 * last, first, most);
}

static char *key_of(const char *ns, const char *controller)
{
    return g_strdup_printf("%s\n%.*s", ns, CONTROLLER_MAX, controller ? controller : "");
}

static int64_t left_of(const struct pauses *pauses, const char *key, int64_t now_ms)
{
    const struct pause *pause = g_hash_table_lookup(pauses->all, key);

    return pause ? MAX(pause->until_ms - now_ms, 0) : 0;
}

int64_t pauses_left(const struct pauses *pauses, const char *ns, const char *controller,
                    int64_t now_ms)
{
    g_autofree char *key = key_of(ns, controller);

    return MAX(left_of(pauses, key, now_ms), left_of(pauses, ns, now_ms));
}

void pauses_end(struct pauses *pauses, const char *ns, const char *controller)
{
    g_autofree char *key = key_of(ns, controller);

    g_hash_table_remove(pauses->all, key);
    g_hash_table_remove(pauses->all, ns);
}

struct forgetting {
    const struct pauses *pauses;
    int64_t now_ms;
};

static gboolean is_forgotten(gpointer key, gpointer value, gpointer data)
{
    const struct forgetting *forgetting = data;

    return forgetting->now_ms >=
           ((const struct pause *)value)->until_ms + forgetting->pauses->most_ms;
}

static guint count_of(const struct pauses *pauses, const char *ns)
{
    const size_t length = strlen(ns);
    GHashTableIter iter;
    gpointer key;
    guint n = 0;

    g_hash_table_iter_init(&iter, pauses->all);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        n += strncmp(key, ns, length) == 0 && ((const char *)key)[length] == '\n';
    return n;
}

int64_t pauses_begin(struct pauses *pauses, const char *ns, const char *controller, int64_t now_ms)
{
    char *key = key_of(ns, controller);
    struct pause *pause;

    g_hash_table_foreach_remove(pauses->all, is_forgotten, &(struct forgetting){pauses, now_ms});
    if (pauses_left(pauses, ns, controller, now_ms) > 0) {
        g_free(key);
        return 0;
    }
    if (!g_hash_table_contains(pauses->all, key) &&
        count_of(pauses, ns) >= PAUSES_CONTROLLERS_MAX) {
        g_free(key);
        key = g_strdup(ns);
    }
    pause = g_hash_table_lookup(pauses->all, key);
    if (!pause) {
        pause = g_new0(struct pause, 1);
        g_hash_table_insert(pauses->all, g_strdup(key), pause);
    }
    g_free(key);
    pause->last_ms = pauses_next(pause->last_ms, pauses->first_ms, pauses->most_ms);
    pause->until_ms = now_ms + pause->last_ms;
    return pause->last_ms;
}
