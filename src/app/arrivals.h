/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods that wait for a node, in the order in which they came: creation time, then the order in
 * which the watch told of them.
 *
 * What becomes free is offered to the pod that has waited longest, not to the one that happens to
 * ask first: a younger pod, unless it is more important, leaves a node alone that would take an
 * older one now and not both. It does so for a while only. The older pod may be kept from that node, or from
 * asking, by something that only kube-scheduler knows; it gets another chance when it has asked.
 *
 * Guarded by the store's lock.
 */
#include <gpuledger/dialect.h>

/* Older pods looked at for one answer: where so many fit together, there is room. */
#define ARRIVALS_OLDER_MAX 16

struct arrivals;

struct arrivals *arrivals_new(void);
void arrivals_free(struct arrivals *arrivals);

/* A pod waits; borrows the request, until the pod is forgotten. Known pods keep their place. */
void arrivals_add(struct arrivals *arrivals, const struct pod_view *pod,
                  const struct request *request);
void arrivals_forget(struct arrivals *arrivals, const char *uid);
/* Adds a pod with the place that it has in `from`, if it has one. */
void arrivals_copy(struct arrivals *arrivals, const struct arrivals *from, const char *uid,
                   const struct request *request);

struct arrivals_query {
    const struct ledger *ledger;
    const struct admission_query *admission; /* the younger pod's */
    const char *uid;
    int64_t priority;
    int64_t now_ms;  /* monotonic */
    int64_t hold_ms; /* how long an older pod may take to come; 0: nobody is waited for */
};

/* The older pod, "NAMESPACE/NAME", to which the pod should leave this node, which would take it;
 * NULL: to none. Valid until that pod is forgotten. */
const char *arrivals_yield(struct arrivals *arrivals, const struct node *node,
                           const struct arrivals_query *query);

/* The pod has asked and found a node. */
void arrivals_renew(struct arrivals *arrivals, const char *uid);
