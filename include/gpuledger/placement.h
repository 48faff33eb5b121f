/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which cards of a node a request gets. A policy orders the cards that fit; ties go to the lowest
 * index. Pure: reads the node, changes nothing; the caller serialises access to the ledger.
 */
#include <gpuledger/names.h>
#include <gpuledger/demand.h>

#pragma GCC visibility push(default)

struct placement;
struct rank;

#define COST_CARD 1000000 /* a whole card, in millionths */

/* What it costs to put an ask on a card; lower is better. */
struct cost {
    int64_t loss; /* what the policy measures by; in millionths where it has a slack */
    int64_t tie;  /* decides between losses that count as equal */
};

struct policy {
    const char *name; /* as options and annotations spell it */
    const char *help;
    /* Of a card that fits. The demand may be NULL here and below. */
    struct cost (*cost)(const struct node *node, const struct card *card,
                        const struct card_ask *ask, const struct demand *demand);
    /* Sets loss and ties for ranking.h; NULL: all nodes are alike. */
    void (*rate)(const struct node *node, const struct placement *placement,
                 const struct demand *demand, struct rank *ret_rank);
    double slack; /* losses that differ by no more count as equal */
    int fullness;  /* 1: the fullest card goes first, -1: the emptiest; 0: it goes by other things */
    bool foreseen; /* the node side itself takes the first card of this order, never another */
    bool expects;  /* it goes by the demand; to others it may be NULL */
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

/* Before a variable that is filled before it is read: it is some kilobytes, which a build that clears
 * variables (-ftrivial-auto-var-init) would otherwise clear for each of thousands of nodes. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define SCRATCH __attribute__((uninitialized))
#endif
#endif
#ifndef SCRATCH
#define SCRATCH
#endif

/* Whether placement_find would succeed without a pin, told from the node's summary alone; false
 * means that only placement_find knows. Not for policies that are `foreseen`. Made for the thousands of
 * nodes of one filter call. */
bool placement_is_obvious(const struct node *node, const struct request *request);
/* The same of `n` such pods, at least 1, one after the other and by whatever policy. */
bool placement_of_all_is_obvious(const struct node *node, const struct request *request, int32_t n);

/* Places all asks or none. `pinned` is the one card to use, or CARD_UNKNOWN for any. The demand may
 * be NULL. */
enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, const struct demand *demand,
                           int32_t pinned, struct placement *ret_placement);

/* Whether placement_find would succeed, without a pin, for whoever asks neither where nor why not. */
bool placement_fits(const struct node *node, const struct request *request,
                    const struct policy *policy, const struct demand *demand);

/* Why a share of that ask alone would not go to the card as it is; REASON_NONE: it would. The ask must
 * be for cards. For explanations: placement_find decides about all asks together. */
enum reason placement_card_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask, const struct card *card);
/* The same of an ask for devices and their pool; what several asks take together is not seen. */
enum reason placement_pool_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask);

#pragma GCC visibility pop
