/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which cards of a node a request gets. A policy orders the cards that fit; ties go to the lowest
 * index. Pure: reads the node, changes nothing; the caller serialises access to the ledger.
 */
#include <gpuledger/ledger.h>

#pragma GCC visibility push(default)

struct placement;
struct rank;

struct policy {
    const char *name; /* as options and annotations spell it */
    const char *help;
    /* Lower is better, among cards that fit. */
    int64_t (*cost)(const struct node *node, const struct card *card);
    /* Sets loss and ties for ranking.h; NULL: all nodes are alike. */
    void (*rate)(const struct node *node, const struct placement *placement,
                 struct rank *ret_rank);
    double slack; /* losses that differ by no more count as equal */
    bool foreseen; /* the node side itself takes the first card of this order, never another */
};

/* Ends with a row whose name is NULL; the first row is the default. */
extern const struct policy policies[];

/* NULL if there is none of that name. */
const struct policy *policy_find(const char *name);

struct placement {
    const struct request *request; /* or its alternative: what was placed */
    uint32_t n_shares;
    struct share shares[REQUEST_ASKS_MAX];
};

/* Whether placement_find would succeed without a pin, told from the node's summary alone; false
 * means that only placement_find knows. Made for the thousands of nodes of one filter call. */
bool placement_is_obvious(const struct node *node, const struct request *request);

/* Places all asks or none. `pinned` is the one card to use, or CARD_UNKNOWN for any. */
enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, int32_t pinned,
                           struct placement *ret_placement);

/* Why a share of that ask alone would not go to the card as it is; REASON_NONE: it would. The ask must
 * be for cards. For explanations: placement_find decides about all asks together. */
enum reason placement_card_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask, const struct card *card);
/* The same of an ask for devices and their pool; what several asks take together is not seen. */
enum reason placement_pool_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask);

#pragma GCC visibility pop
