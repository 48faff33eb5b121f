/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one share is worth in measures that compare over cards and dialects. Pure; under the lock that
 * guards the node.
 */
#include <gpuledger/dialect.h>
#include <gpuledger/ledger.h>

#define SHARE_AMOUNT_MAX (INT64_MAX / 4096) /* of one pod; for sums see core/amount_sum.h */

/* Cards are counted in millionths, rounded down but for the first, so that as many pods as fit on a card
 * together count as one card at most, and nobody has many for nothing. */
#define SHARE_UNIT INT64_C(1000000)

/* Of an amount of cards, for people. */
int64_t share_thousandths(int64_t amount);

/* In cards: the larger of its parts of the card's memory and compute. A share of a card that nobody knows
 * counts as one of the node's largest. */
int64_t share_gpus(const struct node *node, const struct share *share);

/* Two pods of one node, of a share of a card each, count the same in all of these measures: mostly a node's pods
 * do, and one of them is measured for all. */
bool share_pods_are_alike(const struct allocation *one, const struct allocation *other);

/* Its memory in KiB. */
int64_t share_kib(const struct node *node, const struct share *share);

/* In thousandths of the unit of a resource by which pods of the dialect ask; 0: it is none of that. */
int64_t share_units(const struct node *node, const struct share *share,
                    const struct dialect *dialect, const char *key);
