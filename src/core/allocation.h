/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a pod holds, for those who put it on nodes. */
#include <gpuledger/ledger.h>
#include <gpuledger/request.h>

/* Chooses, of all that was read of the pod, what counts on the node as it is now. An allocation that
 * is charged is credited before, or everything is counted anew after. */
void allocation_choose(struct allocation *allocation, const struct node *node);

/* What a pod would hold of a card that is not known. */
struct share share_of_ask(const struct card_ask *ask);

/* For many copies in one block of memory: the bytes of a copy, a multiple of its alignment; one that is
 * made at such a place; and its end, where the block is freed by whoever made it. */
size_t allocation_size(const struct allocation *allocation);
struct allocation *allocation_copy(const struct allocation *allocation, void *block);
void allocation_clear(struct allocation *allocation);
