/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * placement_find for whoever counts what it costs (policy/effort/work_meter.h): a search that may be cut short.
 */
#include <gpuledger/placement.h>

struct work_meter;

struct placement_query {
    const struct policy *policy;
    const struct demand *demand; /* or NULL */
    int32_t pinned;              /* the one card to use, or CARD_UNKNOWN */
    struct work_meter *work; /* NULL: nothing is counted, and each search has a bound of its own */
};

/* REASON_WORK_LIMIT: it is not known. */
enum reason placement_search(const struct node *node, const struct request *request,
                             const struct placement_query *query, struct placement *ret_placement);

/* Whether it would find one. */
bool placement_suffices(const struct node *node, const struct request *request,
                        const struct placement_query *query);
