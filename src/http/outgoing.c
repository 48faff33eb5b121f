/* SPDX-License-Identifier: Apache-2.0 */
#include "http/outgoing.h"

#include <pthread.h>

struct outgoing {
    size_t bytes_max;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    size_t held;
    struct {
        bool taken;
        unsigned waiting;
    } lines[LINE_N];
};

struct outgoing *outgoing_new(size_t bytes_max)
{
    struct outgoing *outgoing = g_new0(struct outgoing, 1);
    pthread_condattr_t monotonic;

    outgoing->bytes_max = bytes_max;
    pthread_mutex_init(&outgoing->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&outgoing->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return outgoing;
}

void outgoing_free(struct outgoing *outgoing)
{
    if (!outgoing)
        return;
    pthread_cond_destroy(&outgoing->changed);
    pthread_mutex_destroy(&outgoing->lock);
    g_free(outgoing);
}

static size_t views_max(const struct outgoing *outgoing)
{
    return outgoing->bytes_max / 4 * 3;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Under the lock. How large a view will be is known when it is there, so it is begun as long as
 * anything is left. */
static bool may_begin(const struct outgoing *outgoing, enum line line)
{
    return line != LINE_VIEWS || outgoing->held < views_max(outgoing);
}

bool outgoing_enter(struct outgoing *outgoing, enum line line)
{
    pthread_mutex_lock(&outgoing->lock);
    bool enters = !outgoing->lines[line].taken ||
                  outgoing->lines[line].waiting < LINE_MAX_WAITING;

    outgoing->lines[line].waiting += enters;
    while (enters && outgoing->lines[line].taken)
        pthread_cond_wait(&outgoing->changed, &outgoing->lock);
    outgoing->lines[line].waiting -= enters;
    enters = enters && may_begin(outgoing, line);
    outgoing->lines[line].taken |= enters;
    /* Whoever turns away at the head of the line leaves it to the next. */
    if (!enters)
        pthread_cond_broadcast(&outgoing->changed);
    pthread_mutex_unlock(&outgoing->lock);
    return enters;
}

void outgoing_leave(struct outgoing *outgoing, enum line line)
{
    pthread_mutex_lock(&outgoing->lock);
    outgoing->lines[line].taken = false;
    pthread_cond_broadcast(&outgoing->changed);
    pthread_mutex_unlock(&outgoing->lock);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Under the lock. */
static bool fits(const struct outgoing *outgoing, size_t length, bool is_view)
{
    const size_t max = is_view ? views_max(outgoing) : outgoing->bytes_max;

    return outgoing->held == 0 || (length <= max && outgoing->held <= max - length);
}

bool outgoing_hold(struct outgoing *outgoing, const struct connection *connection, size_t length,
                   bool is_view, size_t *ret_held)
{
    const int64_t until_ms = g_get_monotonic_time() / 1000 + ANSWERS_WAIT_MS;
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    bool in_time = true;

    *ret_held = 0;
    if (length < ANSWER_SMALL)
        return true;
    pthread_mutex_lock(&outgoing->lock);
    while (in_time && !is_view && !fits(outgoing, length, is_view)) {
        pthread_mutex_unlock(&outgoing->lock);
        connections_cut_slowest(connection);
        pthread_mutex_lock(&outgoing->lock);
        /* One after the other: whoever is cut takes a moment to go, and may have been enough. */
        if (!fits(outgoing, length, is_view))
            in_time = pthread_cond_timedwait(&outgoing->changed, &outgoing->lock, &until) == 0;
    }
    const bool held = fits(outgoing, length, is_view);
    outgoing->held += held ? length : 0;
    pthread_mutex_unlock(&outgoing->lock);
    *ret_held = held ? length : 0;
    return held;
}

void outgoing_release(struct outgoing *outgoing, size_t held)
{
    if (held == 0)
        return;
    pthread_mutex_lock(&outgoing->lock);
    outgoing->held -= held;
    pthread_cond_broadcast(&outgoing->changed);
    pthread_mutex_unlock(&outgoing->lock);
}

size_t outgoing_held(struct outgoing *outgoing)
{
    pthread_mutex_lock(&outgoing->lock);
    const size_t held = outgoing->held;
    pthread_mutex_unlock(&outgoing->lock);
    return held;
}
