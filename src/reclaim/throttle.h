/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many pods are evicted: so many on their way out at once, and so many in a minute. And whom not to ask
 * about again for a while. Monotonic time comes in. One thread.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct throttle;

struct throttle *throttle_new(int64_t at_once, int64_t per_minute);
void throttle_free(struct throttle *throttle);

/* One more may be evicted now. */
bool throttle_allows(const struct throttle *throttle, int64_t now_ms);
void throttle_note(struct throttle *throttle, const char *uid, int64_t now_ms);
/* It was evicted a moment ago, and has ended. */
void throttle_count(struct throttle *throttle, const char *uid, int64_t now_ms);
/* It counts in the minute that ends now. */
bool throttle_counts(const struct throttle *throttle, const char *uid, int64_t now_ms);
/* Nobody knows whether it was evicted: it counts as one that was, for a minute, and on if it ends by then. */
void throttle_doubt(struct throttle *throttle, const char *uid, int64_t now_ms);
/* It was evicted, or may have been, and nobody has said that it has ended. */
bool throttle_has(const struct throttle *throttle, const char *uid);
/* The UIDs of those, a set; the throttle's. */
GHashTable *throttle_going(const struct throttle *throttle);
/* What is known of a pod. */
enum throttle_pod { THROTTLE_STAYS, THROTTLE_ENDS, THROTTLE_ENDED };
/* Forgets those that have ended, and what is long ago. */
void throttle_settle(struct throttle *throttle,
                     enum throttle_pod (*look)(const char *uid, void *data), void *data,
                     int64_t now_ms);
