/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory of a ledger's nodes: many in one block, so that who asks about thousands finds them on few
 * pages. Blocks live as long as the ledger; what a node that is gone had is given to another.
 */
#include <stddef.h>

struct node_blocks;

struct node_blocks *node_blocks_new(void);
void node_blocks_free(struct node_blocks *blocks);

/* Zeroed, on a line of the cache of its own. */
void *node_blocks_take(struct node_blocks *blocks, size_t size);
/* Of the size with which it was taken. */
void node_blocks_give(struct node_blocks *blocks, void *block, size_t size);
