/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls of preempt, for the record of them: what they come to is nobody's business here. And the
 * PodDisruptionBudgets that they look at, which come and go and are told to the store as a feed tells
 * them.
 */
#include "server.h"

#include "verbs/extender.h"

/* Some victims are named on every node, pods that are not there among them. */
void preempts_call(struct extender *extender, const struct pod *pod);

struct preempts_feed {
    struct store *store;
    const bool *stopping; /* the feed ends soon after this is true */
};
/* A simulated thread's; `feed` is a struct preempts_feed. */
void preempts_feed_budgets(void *feed);

/* So many calls have named somebody. */
uint64_t preempts_n_chosen(void);
