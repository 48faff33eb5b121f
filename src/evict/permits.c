/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/permits.h"

#include "base/metrics.h"
#include "kube/clock.h"

#include <pthread.h>

#define TOLD_MS INT64_C(600000)

struct permits {
    struct permits_options options;
    pthread_mutex_t mutex;
    struct limiter *limiter; /* this and what follows under the mutex */
    char *why_stopped;       /* NULL: evictions may be made */
    int64_t heard_ms;        /* when that was so */
    GHashTable *told; /* what was said of a pod -> int64_t *: until when it is not said again */
};

static bool take_capability(const char *item, void *into)
{
    for (int ender = 0; ender < ENDER_N; ender++) {
        if (g_strcmp0(metrics_capability((enum ender)ender), item) != 0)
            continue;
        if (into)
            ((bool *)into)[ender] = true;
        return true;
    }
    return false;
}

const struct item_list item_list_capabilities = {
    .form = "calendar, gang-strict, plans or reclaim",
    .example = "plans,reclaim",
    .separator = ',',
    .take = take_capability,
};

struct permits *permits_new(const struct permits_options *options)
{
    struct permits *permits = g_new0(struct permits, 1);

    permits->options = *options;
    pthread_mutex_init(&permits->mutex, NULL);
    permits->limiter = limiter_new(&options->limits);
    permits->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (options->stopped)
        permits->why_stopped = g_strdup("whether they are is not known yet");
    return permits;
}

void permits_free(struct permits *permits)
{
    if (!permits)
        return;
    limiter_free(permits->limiter);
    g_hash_table_unref(permits->told);
    pthread_mutex_destroy(&permits->mutex);
    g_free(permits->why_stopped);
    g_free(permits);
}

bool permits_observe(const struct permits *permits, enum ender ender)
{
    return permits && permits->options.observes[ender];
}

/* What has not started yet has not run, nor has what says that it starts later. */
int64_t permits_young_ms(const struct permits *permits, enum ender ender, int64_t started_s)
{
    const bool bound = permits && (ender == ENDER_PLAN || ender == ENDER_RECLAIM);
    const int64_t min_ms = bound ? permits->options.min_runtime_ms : 0;
    const int64_t ran_ms = g_get_real_time() / 1000 - started_s * 1000;

    return started_s == 0 ? min_ms : CLAMP(min_ms - ran_ms, 0, min_ms);
}

static int64_t now_of(const struct permits *permits)
{
    const struct permits_options *options = &permits->options;

    return options->clock ? options->clock(options->data) : clock_ms();
}

void permits_stop(struct permits *permits, const char *why)
{
    permits_hear(permits, why, now_of(permits));
}

void permits_hear(struct permits *permits, const char *why, int64_t at_ms)
{
    pthread_mutex_lock(&permits->mutex);
    g_free(permits->why_stopped);
    permits->why_stopped = g_strdup(why);
    permits->heard_ms = at_ms;
    pthread_mutex_unlock(&permits->mutex);
}

char *permits_why_stopped(struct permits *permits)
{
    const int64_t stale_ms = permits->options.stale_ms, now_ms = now_of(permits);

    pthread_mutex_lock(&permits->mutex);
    const bool stale = stale_ms > 0 && now_ms - permits->heard_ms > stale_ms;
    char *why = g_strdup(permits->why_stopped ? permits->why_stopped
                         : stale ? "whether they are has not been read for some seconds"
                                 : NULL);
    pthread_mutex_unlock(&permits->mutex);
    return why;
}

struct limiter *permits_lock(struct permits *permits, int64_t *ret_now_ms)
{
    *ret_now_ms = now_of(permits);
    pthread_mutex_lock(&permits->mutex);
    return permits->limiter;
}

void permits_unlock(struct permits *permits)
{
    pthread_mutex_unlock(&permits->mutex);
}

static gboolean is_over(gpointer what, gpointer until_ms, gpointer now_ms)
{
    return *(const int64_t *)until_ms <= *(const int64_t *)now_ms;
}

bool permits_may_tell(struct permits *permits, const char *uid, const char *what)
{
    int64_t now_ms = now_of(permits);
    const int64_t until_ms = now_ms + TOLD_MS;
    g_autofree char *key = g_strconcat(uid, " ", what, NULL);

    pthread_mutex_lock(&permits->mutex);
    g_hash_table_foreach_remove(permits->told, is_over, &now_ms);
    const bool may = !g_hash_table_contains(permits->told, key) &&
                     g_hash_table_size(permits->told) < PERMITS_TOLD_MAX;
    if (may)
        g_hash_table_insert(permits->told, g_steal_pointer(&key),
                            g_memdup2(&until_ms, sizeof until_ms));
    pthread_mutex_unlock(&permits->mutex);
    return may;
}

enum limit permits_forbid(struct permits *permits, enum ender ender, const char *ns)
{
    int64_t now_ms;
    const struct limiter *limiter = permits_lock(permits, &now_ms);
    const enum limit limit = limiter_forbids(limiter, ender, ns, now_ms);

    permits_unlock(permits);
    return limit;
}

enum limit permits_take(struct permits *permits, enum ender ender, const char *ns, const char *uid)
{
    int64_t now_ms;
    struct limiter *limiter = permits_lock(permits, &now_ms);
    const enum limit limit = limiter_forbids(limiter, ender, ns, now_ms);

    if (limit == LIMIT_NONE)
        limiter_take(limiter, ender, ns, uid, now_ms);
    permits_unlock(permits);
    return limit;
}
