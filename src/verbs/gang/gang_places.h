/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Places for the pods of a group (gang/gangs.h): allocations that no Binding follows yet, so that everybody
 * else finds the cards taken and the quotas used. Each pod is placed beside those before it, equal ones
 * where the policy puts the first, as long as the node takes them. All take their turn with the first of
 * their kind. A node whose device plugin serves one pod at a time gets no more of them than it serves within
 * the group's deadline, at GANG_TAKE_MS each. It goes on for GANG_WORK_MAX at most (gang/gangs.h). Under the store's lock.
 */
#include "store/store.h"

/* Different pods of a group that are looked at one by one, beside the one that filter is asked about; of
 * more, those that are like none before them get no place. */
#define GANG_KINDS_MAX 8

struct gang_places_query {
    struct store *store;
    const struct moment *moment;
    /* Filter is asked about this member, and the nodes that kube-scheduler has left for it. */
    const struct pod_view *pod;
    const struct request *request;
    const char *const *names;
    size_t n_names;
    /* The group's, in which a node's device plugin has to serve all of its pods there; 0: any. */
    int64_t timeout_ms;
    bool late; /* set: a node would have taken more if its plugin were quicker */
};

/* As struct gang_ask wants it; `data` is a query. */
uint64_t gang_places_take(void *data, const char *const *uids, size_t n, bool *ret_taken);
