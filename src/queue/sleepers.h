/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that sleep until something of a node or of a pod has changed, each with a condition of its
 * own: what happens elsewhere does not wake them. One lock, the caller's, guards the list and all that
 * they wait for, and is held by whoever calls.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sleeper;

struct sleepers {
    struct sleeper *first; /* NULL: nobody sleeps */
};

/* Until sleepers_wake names the node or the pod, or the monotonic time is reached (false). The lock is
 * free meanwhile. Texts are borrowed; NULL: none. */
bool sleepers_wait(struct sleepers *sleepers, pthread_mutex_t *lock, const char *node,
                   const char *uid, int64_t until_ms);

/* Something of the node or of the pod has changed, or is about to before the lock is free; NULL: of
 * none. */
void sleepers_wake(const struct sleepers *sleepers, const char *node, const char *uid);
void sleepers_wake_all(const struct sleepers *sleepers);
