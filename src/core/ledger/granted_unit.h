/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unit in which a pod was granted memory. A device plugin that counted in GiB counts in MiB once it
 * was started with another option, and its pods go on. The size of the card that a Binding states
 * (struct allocation.card_units) shows which of both it was.
 */
#include <gpuledger/ledger.h>

/* The amount of a share as it counts on the node: bytes if it was granted in another unit than the node
 * has now. Without a stated size the larger of both counts, if the node has pods of the other unit. In
 * GiB no stated size lowers what counts, but for an amount that no card has. */
struct amount granted_amount(const struct allocation *allocation, const struct node *node,
                             struct amount memory);

/* Whether a pod of the node states a card in GiB, and the node counts in MiB. */
bool granted_otherwise(const struct node *node);
