/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which nodes have changed since their pods were counted, so that sums over pods are kept and not walked: a sum
 * is caught up with a ledger by counting those nodes alone. Owners keep what they have counted by the ledger's
 * places. Guarded by the store's lock.
 */
#include "core/ledger.h"

struct node_tallies {
    const struct ledger *ledger; /* one for all its life */
    GArray *versions;            /* uint64_t, by place; 0: to be counted */
    GHashTable *stale;           /* names of nodes to be counted anew, whatever their version */
    uint64_t complete;           /* ledger_changes when all was counted; 0: not all is */
    uint64_t n_pods,
        n_looks; /* pods that were counted, and places looked at, ever: for tests of the work done */
};

void node_tallies_init(struct node_tallies *tallies);
void node_tallies_clear(struct node_tallies *tallies);

/* What was counted of the node holds no more. */
void node_tallies_renew(struct node_tallies *tallies, const char *node);

/* Each place that has changed is counted: its node's pods take the place of those that were counted there before;
 * `node` NULL: there is none any more. Takes what it has counted, in pods, from `*left`; false: that was used up, and
 * places are left. The pods of one node are counted in any case. */
typedef void (*node_tally)(void *data, uint32_t place, const struct node *node);
bool node_tallies_catch_up(struct node_tallies *tallies, const struct ledger *ledger,
                           uint64_t *left, node_tally count, void *data);

/* Fetches the pod after the next ones, for who counts a node's pods: they are all over the memory. */
static inline void node_tallies_fetch(const struct node *node, guint at)
{
    const guint ahead = at + 8;

    if (!node || ahead >= node->allocations->len)
        return;
    for (size_t line = 0; line < sizeof(struct allocation) + sizeof(struct share); line += 64)
        __builtin_prefetch((const char *)node->allocations->pdata[ahead] + line);
}

/* What was counted of the place is of the node as it is. */
bool node_tallies_are_current(const struct node_tallies *tallies, const struct ledger *ledger,
                              uint32_t place);
