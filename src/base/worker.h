/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A thread that sleeps until there is something to do or the time has come, and that ends when it
 * is told to. Its lock also guards whatever its owner shares with it.
 *
 *     worker_lock(worker);
 *     while (worker_wait(worker, until_ms)) { … worker_unlock(worker); work; worker_lock(worker); }
 *     worker_unlock(worker);
 */
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    bool running;           /* written by the owner only */
    bool stopped;           /* under the lock */
    bool woken;             /* under the lock */
};

#define WORKER_FOREVER INT64_MAX

/* To be called once before all else, and once after all else. */
void worker_init(struct worker *worker);
void worker_release(struct worker *worker);

/* GPULEDGER_ERROR_LIMIT if no thread can be had. */
bool worker_start(struct worker *worker, void *(*run)(void *data), void *data, GError **error);

/* Tells the thread to end and waits for it; nothing if it was not started. */
void worker_stop(struct worker *worker);

void worker_lock(struct worker *worker);
void worker_unlock(struct worker *worker);

/* Under the lock, by the thread: sleeps until it is woken or that time (g_get_monotonic_time()/1000,
 * or WORKER_FOREVER) is reached; at once if it was woken meanwhile. False: time to end. */
bool worker_wait(struct worker *worker, int64_t until_ms);

/* The same without the lock, whatever wakes it: rests for so long. False: time to end. */
bool worker_rest(struct worker *worker, int64_t duration_ms);

/* Without the lock, by the thread, between two pieces of work: false: time to end. */
bool worker_goes_on(struct worker *worker);

/* Under the lock: there is something to do. */
void worker_wake(struct worker *worker);
