/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What would be if: a node outside any ledger, like one that is in it, from which allocations are
 * taken away and to which others are added. Nobody else sees it, so no lock is needed once it is
 * made.
 */
#include <gpuledger/placement.h>

struct trial {
    struct node *node;      /* as it would be */
    GPtrArray *allocations; /* copies of all that were on the node, those taken away included; owned */
};

struct trial *trial_new(const struct node *node);
void trial_free(struct trial *trial); /* NULL is ignored */
typedef struct trial trial;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(trial, trial_free)

/* As if one of the trial's own allocations were not there, or there again. */
void trial_without(struct trial *trial, struct allocation *allocation);
void trial_with(struct trial *trial, struct allocation *allocation);

/* What a pod would hold that is placed so; for a trial, or to be kept. */
struct allocation *trial_allocation(const char *uid, int64_t priority,
                                    const struct placement *placement);
/* Adds another one, whether it fits or not. */
void trial_add(struct trial *trial, struct allocation *take_allocation);

/* Raises what is used of each card and pool to what is used of it on the other node, which differs from
 * this one in its allocations only, and lists one more of those. For asking what fits on both: sums
 * are then no longer those of the allocations. */
void trial_cover(struct trial *trial, const struct node *other, struct allocation *take_allocation);
