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
    GHashTable *last;  /* uid -> int64_t *: when those of the last minute were */
};

struct throttle *throttle_new(int64_t at_once, int64_t per_minute)
{
    struct throttle *throttle = g_new(struct throttle, 1);

    *throttle = (struct throttle){at_once, per_minute,
                                  g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                                  g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    return throttle;
}

void throttle_free(struct throttle *throttle)
{
    g_hash_table_unref(throttle->going);
    g_hash_table_unref(throttle->last);
    g_free(throttle);
}

static bool is_within(int64_t at_ms, int64_t now_ms)
{
    return now_ms - at_ms < MINUTE_MS;
}

bool throttle_allows(const struct throttle *throttle, int64_t now_ms)
{
    GHashTableIter iter;
    gpointer at_ms;
    int64_t n = 0;

    g_hash_table_iter_init(&iter, throttle->last);
    while (g_hash_table_iter_next(&iter, NULL, &at_ms))
        n += is_within(*(const int64_t *)at_ms, now_ms);
    return n < throttle->per_minute && g_hash_table_size(throttle->going) < throttle->at_once;
}

void throttle_count(struct throttle *throttle, const char *uid, int64_t now_ms)
{
    g_hash_table_replace(throttle->last, g_strdup(uid), g_memdup2(&now_ms, sizeof now_ms));
}

bool throttle_counts(const struct throttle *throttle, const char *uid, int64_t now_ms)
{
    const int64_t *at_ms = g_hash_table_lookup(throttle->last, uid);

    return at_ms && is_within(*at_ms, now_ms);
}

static void note(struct throttle *throttle, const char *uid, const struct going *going)
{
    g_hash_table_replace(throttle->going, g_strdup(uid), g_memdup2(going, sizeof *going));
    throttle_count(throttle, uid, going->since_ms);
}

void throttle_note(struct throttle *throttle, const char *uid, int64_t now_ms)
{
    note(throttle, uid, &(struct going){now_ms, false});
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
    g_hash_table_iter_init(&iter, throttle->last);
    while (g_hash_table_iter_next(&iter, NULL, &going)) {
        if (!is_within(*(const int64_t *)going, now_ms))
            g_hash_table_iter_remove(&iter);
    }
}
