/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/sleepers.h"

#include <glib.h>
#include <string.h>
#include <time.h>

struct sleeper {
    const char *node, *uid;
    guint node_hash, uid_hash; /* so that most are passed over without a look at their names */
    bool woken;
    pthread_cond_t wake; /* on CLOCK_MONOTONIC */
    struct sleeper *next, **link;
};

/* 0: nobody. */
static guint hash(const char *name)
{
    return name ? g_str_hash(name) | 1 : 0;
}

static void enter(struct sleepers *sleepers, struct sleeper *sleeper)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sleeper->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sleeper->next = sleepers->first;
    sleeper->link = &sleepers->first;
    if (sleeper->next)
        sleeper->next->link = &sleeper->next;
    sleepers->first = sleeper;
}

static void leave(struct sleeper *sleeper)
{
    *sleeper->link = sleeper->next;
    if (sleeper->next)
        sleeper->next->link = sleeper->link;
    pthread_cond_destroy(&sleeper->wake);
}

bool sleepers_wait(struct sleepers *sleepers, pthread_mutex_t *lock, const char *node,
                   const char *uid, int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, (until_ms % 1000) * 1000000};
    struct sleeper sleeper = {
        .node = node, .uid = uid, .node_hash = hash(node), .uid_hash = hash(uid)};

    enter(sleepers, &sleeper);
    /* It may wake without a reason. Whatever else ends the wait is the end of the time. */
    while (!sleeper.woken && pthread_cond_timedwait(&sleeper.wake, lock, &until) == 0)
        continue;
    leave(&sleeper);
    return sleeper.woken;
}

/* It may be named many times before it has the lock again. */
static void wake(struct sleeper *sleeper)
{
    if (!sleeper->woken)
        pthread_cond_signal(&sleeper->wake);
    sleeper->woken = true;
}

static bool is_same(const char *own, guint own_hash, const char *named, guint named_hash)
{
    return named && own_hash == named_hash && strcmp(own, named) == 0;
}

void sleepers_wake(const struct sleepers *sleepers, const char *node, const char *uid)
{
    const guint node_hash = hash(node), uid_hash = hash(uid);

    for (struct sleeper *one = sleepers->first; one; one = one->next) {
        if (is_same(one->node, one->node_hash, node, node_hash) ||
            is_same(one->uid, one->uid_hash, uid, uid_hash))
            wake(one);
    }
}

void sleepers_wake_all(const struct sleepers *sleepers)
{
    for (struct sleeper *one = sleepers->first; one; one = one->next)
        wake(one);
}
