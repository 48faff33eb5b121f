/* SPDX-License-Identifier: Apache-2.0 */
#include "base/worker.h"

#include <errno.h>
#include <gpuledger/error.h>
#include <time.h>

void worker_init(struct worker *worker)
{
    pthread_condattr_t monotonic;

    *worker = (struct worker){.running = false};
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void worker_release(struct worker *worker)
{
    worker_stop(worker);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
}

bool worker_start(struct worker *worker, void *(*run)(void *data), void *data, GError **error)
{
    int code = pthread_create(&worker->thread, NULL, run, data);

    worker->running = code == 0;
    if (code != 0)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "a thread cannot be started: %s", g_strerror(code));
    return worker->running;
}

void worker_stop(struct worker *worker)
{
    if (!worker->running)
        return;
    worker_lock(worker);
    worker->stopped = true;
    pthread_cond_broadcast(&worker->changed);
    worker_unlock(worker);
    pthread_join(worker->thread, NULL);
    worker->running = false;
}

void worker_lock(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
}

void worker_unlock(struct worker *worker)
{
    pthread_mutex_unlock(&worker->mutex);
}

/* Under the lock. False: it is that late. */
static bool sleep_until(struct worker *worker, int64_t until_ms)
{
    struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

    if (until_ms == WORKER_FOREVER)
        return pthread_cond_wait(&worker->changed, &worker->mutex) == 0;
    return pthread_cond_timedwait(&worker->changed, &worker->mutex, &until) != ETIMEDOUT;
}

bool worker_wait(struct worker *worker, int64_t until_ms)
{
    while (!worker->stopped && !worker->woken && sleep_until(worker, until_ms))
        continue;
    worker->woken = false;
    return !worker->stopped;
}

bool worker_rest(struct worker *worker, int64_t duration_ms)
{
    int64_t until_ms = g_get_monotonic_time() / 1000 + duration_ms;

    worker_lock(worker);
    while (!worker->stopped && sleep_until(worker, until_ms))
        continue;
    bool go_on = !worker->stopped;
    worker_unlock(worker);
    return go_on;
}

bool worker_goes_on(struct worker *worker)
{
    worker_lock(worker);
    const bool go_on = !worker->stopped;
    worker_unlock(worker);
    return go_on;
}

void worker_wake(struct worker *worker)
{
    worker->woken = true;
    pthread_cond_broadcast(&worker->changed);
}
