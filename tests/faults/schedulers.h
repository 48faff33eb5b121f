/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * kube-schedulers that take up the server's pods one by one, give their calls up after a while, ask
 * again, and get in each other's way. What the extender answers is held against the server.
 */
#include "server.h"

#include "verbs/extender.h"

struct schedulers_counts {
    uint64_t filters, binds; /* calls */
    uint64_t bound;          /* binds that the extender calls successful */
};

/* They know nothing of any pod. */
void schedulers_reset(void);
/* Each is a simulated thread that ends soon after `stopping` is true. Both are borrowed until then. */
void schedulers_start(struct extender *extender, const bool *stopping);
/* While paused they make no call. */
void schedulers_pause(bool paused);
/* The extender has died with all that they were waiting for. */
void schedulers_lose_calls(void);
const struct schedulers_counts *schedulers_counts(void);

/* Which of the nodes pass, as bits; -1: an error. `ret_left` (NULL: none wanted): which are left out only
 * for others on their way there. Now and then checks that nothing has changed. */
int schedulers_filter(const struct pod *pod, int *ret_left);
/* The error, "" for success. */
char *schedulers_bind(int i, const char *uid, int node);
/* The ledger as /api/v1/nodes tells it. */
char *schedulers_nodes(void);
