/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the pods of each namespace hold, added up for limits by model and for ResourceQuotas: kept as nodes change
 * (quota/sums/node_tallies.h), so that no call walks pods. Amounts are the callers'. Guarded by the store's lock.
 */
#include "core/amount_sum.h"

#include <gpuledger/ledger.h>
#include <gpuledger/request.h>

#define SPACE_UNITS 2 /* amounts by a dialect's key for them */

struct space_sums;

/* What one pod counts. */
struct space_amounts {
    int64_t gpus;
    const char *key; /* static: whose units they are; NULL: of nobody */
    int64_t units[SPACE_UNITS];
};

struct space_counting {
    void (*measure)(const struct allocation *pod, struct space_amounts *ret_amounts);
    const char *(*model)(const void *data,
                         const char *node); /* NULL: its pods count for no model */
    const void *data;
};

struct space_sums *space_sums_new(const struct space_counting *counting);
void space_sums_free(struct space_sums *sums);

/* Its model is another one. */
void space_sums_renew(struct space_sums *sums, const char *node);

/* Counts what has changed; before these two. Sums stop at their maximum. As node_tallies_catch_up. */
bool space_sums_catch_up(struct space_sums *sums, const struct ledger *ledger, uint64_t *left);
int64_t space_sums_gpus(const struct space_sums *sums, const char *ns, const char *model);
int64_t space_sums_units(const struct space_sums *sums, const char *ns, const char *key, int unit);

/* Adds up again what is kept, a node at a time, while others go on: `found` is called for each namespace whose sum
 * is wrong, perhaps more than once. */
typedef void (*quotas_found)(const char *ns, void *data);
void space_sums_verify_begin(struct space_sums *sums);
void space_sums_verify_node(struct space_sums *sums, const struct ledger *ledger,
                            const struct node *node, quotas_found found, void *data);
void space_sums_verify_end(struct space_sums *sums, quotas_found found, void *data);

/* Pods that were counted, ever. */
uint64_t space_sums_n_pods(const struct space_sums *sums);
