/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pauses: for whom no pod is evicted for a while, since an eviction was refused, or was in vain, before. A claimant is
 * known by its namespace and its controller, not by its name or UID, so that a pod that is made anew each time waits as
 * long; pods that no controller makes wait together. A namespace with more than PAUSES_CONTROLLERS_MAX paused
 * controllers waits as a whole.
 *
 * Each pause is twice as long as the one before. It is forgotten as long after its end as the longest lasts. Monotonic
 * time comes in. Not locked.
 */
#include <glib.h>
#include <stdint.h>

#define PAUSES_CONTROLLERS_MAX 16 /* of a namespace */

struct pauses;

struct pauses *pauses_new(int64_t first_ms, int64_t most_ms);
void pauses_free(struct pauses *pauses); /* NULL is ignored */

/* How long it lasts; 0: one lasts already. `controller`: its UID; NULL: there is none. */
int64_t pauses_begin(struct pauses *pauses, const char *ns, const char *controller, int64_t now_ms);
/* How long it lasts still; 0: there is none. */
int64_t pauses_left(const struct pauses *pauses, const char *ns, const char *controller,
                    int64_t now_ms);
/* It was not in vain: the next one begins anew. */
void pauses_end(struct pauses *pauses, const char *ns, const char *controller);

/* The length of one that follows one of that length, 0: none. Any unit. */
int64_t pauses_next(int64_t last, int64_t first, int64_t most);
