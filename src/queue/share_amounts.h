/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one share is worth in measures that compare over cards and dialects. Pure; under the lock that
 * guards the node.
 */
#include <gpuledger/dialect.h>
#include <gpuledger/ledger.h>

#define SHARE_AMOUNT_MAX (INT64_MAX / 4096) /* so that sums do not overflow */

/* In thousandths of a card: the larger of its parts of the card's memory and compute. A share of a card
 * that nobody knows counts as one of the node's largest. */
int64_t share_gpus(const struct node *node, const struct share *share);

/* Its memory in KiB. */
int64_t share_kib(const struct node *node, const struct share *share);

/* In thousandths of the unit of a resource by which pods of the dialect ask; 0: it is none of that. */
int64_t share_units(const struct node *node, const struct share *share,
                    const struct dialect *dialect, const char *key);
