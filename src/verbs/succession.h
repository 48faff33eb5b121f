/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process that may already be at work in this one's place. Without a Lease two processes know nothing of
 * each other's bookings; a rollout ends one before the next begins, but the end of a pod by a drain, an
 * eviction or a deletion does not.
 */
#include <stdint.h>

enum succession_state {
    SUCCESSION_NONE,
    SUCCESSION_UNKNOWN, /* the API server does not tell */
    SUCCESSION_THERE,   /* and it stays so */
};

struct succession {
    /* Whether there is one: before each Binding of a process that is leaving, so that whoever comes after the
     * answer lists the pods after the Binding. Any number of threads may ask at once. `deadline_ms`: monotonic,
     * by when it answers. */
    enum succession_state (*find)(struct succession *succession, int64_t deadline_ms);
};
