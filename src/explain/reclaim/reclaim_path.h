/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The accounts in which a pod counts (quota/elastic/elastic_quotas.h), its own first and then those above it,
 * and of what they are sure. Under the store's lock; it borrows the quotas' accounts.
 */
#include "explain/reclaim/reclaim_plan.h"

#define RECLAIM_LEVELS_MAX (ELASTIC_DEPTH_MAX + 1)

struct reclaim_path {
    const struct elastic_account *accounts[RECLAIM_LEVELS_MAX];
    struct elastic_sums sums[RECLAIM_LEVELS_MAX];
    const amount_sum *going[RECLAIM_LEVELS_MAX]; /* held beside that, by key; NULL: nothing */
    guint n;                                     /* 0: it is not limited */
};

/* `going`: account -> amount_sum *, or NULL. */
void reclaim_path_find(struct elastic_quotas *quotas, struct ledger *ledger, GHashTable *going,
                       const struct pod_view *pod, struct reclaim_path *ret_path);

/* Whether it is sure of so much more, by key: RECLAIM_FOUND, _NO_MIN or _ABOVE_MIN; and from which account on
 * upwards. */
enum reclaim_answer reclaim_path_weigh(const struct elastic_quotas *quotas,
                                       const struct reclaim_path *path, const int64_t *wanted,
                                       guint *ret_from);

/* Where the way up from the account meets the path: at its length, if only at the top; -1: they lend each other
 * nothing. */
int reclaim_path_meets(const struct reclaim_path *path, const struct elastic_account *account);
bool reclaim_path_has(const struct reclaim_path *path, const struct elastic_account *account);
