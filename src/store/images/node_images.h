/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Images of nodes (core/ledger/node_image.h), for who has more to do with a node than to copy it: that is done
 * while nobody holds the lock. Any thread; one reader is one thread's.
 */
#include "core/ledger/node_image.h"
#include "store/node_walk.h"

struct node_images;

/* With or without the texts of cards. */
#define node_images_new(store, texts) node_images_new_by(store, texts, __func__)
struct node_images *node_images_new_by(struct store *store, bool texts, const char *who);
void node_images_free(struct node_images *images); /* NULL is ignored */
typedef struct node_images node_images;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(node_images, node_images_free)

/* Those of the next few nodes in order of name, as a node_walk visits them: struct node_image *, the
 * reader's own until the next call. NULL: there are no more, and the next are the first again. `also`, or
 * NULL: what else is to be done about each of them under the lock, told of the ledger's own node. */
const GPtrArray *node_images_next(struct node_images *images, node_visit also, void *data);

/* That of the node of that name, the reader's own until the next call; NULL: it is not known. */
const struct node *node_images_one(struct node_images *images, const char *name);
