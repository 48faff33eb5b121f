/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What would be if: a node outside any ledger, like one that is in it, from which allocations are
 * taken away and to which others are added. Nobody else sees it, so no lock is needed once it is
 * made.
 */
#include <gpuledger/ledger.h>

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

/* Adds another one, whether it fits or not. */
void trial_add(struct trial *trial, struct allocation *take_allocation);
