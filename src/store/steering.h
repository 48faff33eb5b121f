/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * No pod waits inside bind for a node's plugin while another node that filter was asked about takes it
 * at once. filter leaves out the nodes where it would wait as long as another is left; prioritize
 * prefers one where fewer come before it; a bind that would wait all the same, since others came
 * meanwhile or kube-scheduler chose without us, is turned away if another node would take its pod, so
 * that kube-scheduler asks again. Only where all nodes would let it wait does it wait: then filter
 * leaves those where fewest come before it, for kube-scheduler may not ask which is best, and who is
 * turned away from a longer queue later comes back no sooner than after a second.
 *
 * Under the store's lock.
 */
#include "store/feasibility.h"
#include "wire/extender.h"

/* One call of filter. */
struct steering {
    struct feasibility *question;
    int64_t now_ms;
    struct hint *hint;
    size_t n_at_once; /* nodes that take the pod at once */
    GArray *queues;   /* int32_t: how many come before it on each that lets it wait; NULL: none does, or
                       * it is not needed any more */
    int32_t shortest; /* of those */
    const size_t *order; /* in which the call's nodes are asked about; NULL: as they are named */
};

/* The pod of the question is asked about anew. */
void steering_begin(struct steering *steering, struct feasibility *question, int64_t now_ms);
/* The node that was asked about last, NULL: an unknown one, has this to say; why it is left out, unless
 * none is left else. */
enum reason steering_pass(struct steering *steering, const struct node *node, enum reason reason);
/* The same of the node that has the place, which was not asked about, since it is known what it says:
 * REASON_NONE, it takes the pod at once. */
void steering_recall(struct steering *steering, uint32_t place, enum reason reason);
/* All nodes have been asked about. Returns whether any takes the pod. */
bool steering_end(struct steering *steering, const struct filter_args *args, enum reason *reasons);

/* prioritize prefers this node for the pod of the question. */
void steering_prefer(const struct feasibility *question, const char *node, int64_t now_ms);

/* A bind to this node would wait: whether another node takes its pod at once. If not, it is on its way
 * there until then. */
bool steering_turns(struct store *store, const struct feasibility_about *about, const char *node,
                    int64_t until_ms);
