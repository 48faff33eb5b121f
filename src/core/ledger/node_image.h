/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A node as it is, with its allocations, outside of any ledger and in one block of memory, which whoever
 * takes the image has at hand before: so it costs no request to the heap while the node's ledger is
 * locked (but for pods that several dialects read), and what is to be done with it can wait until it is
 * locked no more. It has references, which may be dropped by any thread.
 */
#include "core/ledger.h"

struct node_image {
    GPtrArray allocations; /* the node's: to be read, and neither copied by GLib nor changed */
    struct node_own own;
};

/* Bytes that the image takes, a multiple of its alignment. Without `texts` the cards have no UUID, model
 * and mode: NULL. */
size_t node_image_size(const struct node *from, bool texts);

/* `block` is of so many bytes, aligned as g_malloc does it, and outlives the image, for which
 * node_image_clear is called. */
struct node_image *node_image_take(const struct node *from, bool texts, void *block);
void node_image_clear(struct node_image *image);

/* To be read only; ledger_copy_node takes it, if it has its texts. */
static inline const struct node *node_image_node(const struct node_image *image)
{
    return &image->own.node;
}
