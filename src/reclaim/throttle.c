/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/throttle.h"

#define MINUTE_MS 60000
#define GOING_MS 600000 /* whoever has not ended by then is evicted anew */

struct going {
    int64_t since_ms;
    bool doubted; /* and not seen to end */
};

struct throttle {
    int64_t at_once, per_minute;
    GHashTable *going; /* uid -> struct going */
    GArray *last;      /* int64_t: when those of the last minute were */
};

struct throttle *throttle_new(int64_t at_once, int64_t per_minute)
{
    struct throttle *throttle = g_new(struct throttle, 1);

    *throttle = (struct throttle){at_once, per_minute,
                                  g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                                  g_array_new(FALSE, FALSE, sizeof(int64_t))};
    return throttle;
}

void throttle_free(struct throttle *throttle)
{
    g_hash_table_unref(throttle->going);
    g_array_unref(throttle->last);
    g_free(throttle);
}

bool throttle_allows(const struct throttle *throttle, int64_t now_ms)
{
    int64_t n = 0;

    for (guint i = 0; i < throttle->last->len; i++)
        n += now_ms - g_array_index(throttle->last, int64_t, i) < MINUTE_MS;
    return n < throttle->per_minute && g_hash_table_size(throttle->going) < throttle->at_once;
}

static void note(struct throttle *throttle, const char *uid, const struct going *going)
{
    g_hash_table_replace(throttle->going, g_strdup(uid), g_memdup2(going, sizeof *going));
    g_array_append_val(throttle->last, going->since_ms);
}

void throttle_note(struct throttle *throttle, const char *uid, int64_t now_ms)
{
    note(throttle, uid, &(struct going){now_ms, false});
}

void throttle_count(struct throttle *throttle, int64_t now_ms)
{
    g_array_append_val(throttle->last, now_ms);
}

void throttle_doubt(struct throttle *throttle, const char *uid, int64_t now_ms)
{
    note(throttle, uid, &(struct going){now_ms, true});
}

bool throttle_has(const struct throttle *throttle, const char *uid)
{
    return g_hash_table_contains(throttle->going, uid);
}

GHashTable *throttle_going(const struct throttle *throttle)
{
    return throttle->going;
}

/* It counts no more. */
static bool is_over(struct going *going, enum throttle_pod seen, int64_t now_ms)
{
    const int64_t passed_ms = now_ms - going->since_ms;

    going->doubted = going->doubted && seen == THROTTLE_STAYS;
    return seen == THROTTLE_ENDED || passed_ms >= (going->doubted ? MINUTE_MS : GOING_MS);
}

void throttle_settle(struct throttle *throttle,
                     enum throttle_pod (*look)(const char *uid, void *data), void *data,
                     int64_t now_ms)
{
    GHashTableIter iter;
    gpointer uid, going;

    g_hash_table_iter_init(&iter, throttle->going);
    while (g_hash_table_iter_next(&iter, &uid, &going)) {
        if (is_over(going, look(uid, data), now_ms))
            g_hash_table_iter_remove(&iter);
    }
    for (guint i = throttle->last->len; i-- > 0;) {
        if (now_ms - g_array_index(throttle->last, int64_t, i) >= MINUTE_MS)
            g_array_remove_index(throttle->last, i);
    }
}
