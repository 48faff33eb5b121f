/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a policy would make of a cluster: pods of the learned demand come to a copy of its nodes,
 * empty at first, and leave after lifetimes that are exponential. Of kube-scheduler it knows that a
 * node must have the CPU; nothing of taints, affinity or node sides. A rehearsal, not a forecast:
 * for telling policies apart on the same arrivals.
 *
 * The same nodes, demand and options give the same result. One thread at a time; takes no lock.
 */
#include "policy/demand.h"

/* More nodes are not looked at: every so many-th stands for its neighbours of the same hardware. */
#define LOOKAHEAD_NODES_MAX 512

struct lookahead;

/* NULL: nothing can be said, since the ledger has no GPUs or too few pods were seen. Both are borrowed
 * for this call only. */
struct lookahead *lookahead_new(struct ledger *ledger, const struct demand *demand);
void lookahead_free(struct lookahead *lookahead); /* NULL is ignored */
typedef struct lookahead lookahead;               /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(lookahead, lookahead_free)

struct lookahead_options {
    const struct policy *policy;
    uint32_t seed;
    double load;           /* what pods would hold if none was refused, of all GPUs */
    double lifetimes;      /* for how many mean lifetimes it is counted, after the first */
    const gint *cancelled; /* atomic; NULL: it is not */
};

/* How many pods ask for all GPUs once. */
double lookahead_arrivals(const struct lookahead *lookahead);

/* The part of all GPUs that is allocated, mean over the time counted; negative: cancelled. */
double lookahead_run(struct lookahead *lookahead, const struct lookahead_options *options);
