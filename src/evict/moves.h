/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods that were evicted within the last hour by what may evict only so many in an hour: `plan --apply` and --plans,
 * which count one hour, and `switch --apply` and --calendar, which count another, so that neither keeps the other
 * waiting. One ConfigMap of gpuledger's namespace has them, over restarts and takeovers:
 *
 *   metadata: {name: gpuledger-moves}
 *   data: {moves: "2026-11-26T09:14:35Z UID NAMESPACE NODE plan\n…"}      the oldest first; times are UTC
 *
 * A line without the last word counts in both.
 *
 * An eviction is written down before it is made, against the version that was read: of two that would take the same
 * place in the hour one reads again. What cannot be read or written allows no eviction. No namespace of a tenant is
 * read. One thread for each call; calls may come from any.
 */
#include "kube/api_client.h"

#define MOVES_NAME "gpuledger-moves"
#define MOVES_PLAN "plan"
#define MOVES_SWITCH "switch"

/* Where it is; borrowed. */
struct moves {
    struct api_client *client;
    const char *ns;
    const char
        *by; /* MOVES_PLAN, MOVES_SWITCH; NULL: all of them count, and each counts this one */
};

struct moved_pod {
    const char *uid, *ns, *node; /* which it leaves */
};

/* How long until another pod may be evicted; 0: now. `per_hour` is more than 0. False, with an error: nobody knows,
 * which may be another time. */
bool moves_wait(const struct moves *moves, uint32_t per_hour, int64_t *ret_wait_ms, GError **error);

/* The same, and if it is 0 the pod is written down: it may be evicted now. A pod that is there already takes no
 * second place. */
bool moves_book(const struct moves *moves, const struct moved_pod *pod, uint32_t per_hour,
                int64_t *ret_wait_ms, GError **error);
