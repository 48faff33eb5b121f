/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod counts towards a limit: what its containers have together, or one of its init containers
 * before them beside the sidecars that were started earlier, whichever is more, as the API server
 * counts. Pure.
 */
#include <gpuledger/ledger.h>

struct holding_query {
    const struct node *node;
    const struct share *shares;
    uint32_t n_shares;
    /* What one share counts. */
    int64_t (*measure)(const struct node *node, const struct share *share, const void *data);
    const void *data;
};
int64_t holding_peak(const struct holding_query *query);

/* The shares that a request would be, wherever it went: `shares` has room for REQUEST_ASKS_MAX. How many
 * there are. */
uint32_t holding_ask(const struct request *request, struct share *shares);
