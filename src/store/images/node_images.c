/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/node_images.h"

#include <string.h>

#define ROOM ((size_t)128 << 10) /* at first, for many nodes, or for one of hundreds of pods */
#define IMAGES_AT_ONCE 64        /* of nodes that hold next to nothing */

struct node_images {
    struct node_walk walk;
    bool texts;
    char *block;
    size_t size, used;
    size_t wanted;    /* what the next node needs, and there is not left; else 0 */
    GPtrArray *taken; /* struct node_image *, in the block */
    node_visit also;
    void *data;
};

/* While nobody is locked. What is touched for the first time under the lock would have to be fetched from
 * the kernel there. */
static void make_room(struct node_images *images, size_t size)
{
    g_free(images->block);
    images->block = memset(g_malloc(size), 0, size);
    images->size = size;
}

static void drop_taken(struct node_images *images)
{
    for (guint i = 0; i < images->taken->len; i++)
        node_image_clear(g_ptr_array_index(images->taken, i));
    g_ptr_array_set_size(images->taken, 0);
    images->used = 0;
    if (images->wanted > images->size)
        make_room(images, 2 * images->wanted);
    images->wanted = 0;
}

struct node_images *node_images_new_by(struct store *store, bool texts, const char *who)
{
    struct node_images *images = g_new0(struct node_images, 1);

    node_walk_init_by(&images->walk, store, who);
    images->texts = texts;
    images->taken = g_ptr_array_sized_new(IMAGES_AT_ONCE);
    make_room(images, ROOM);
    return images;
}

void node_images_free(struct node_images *images)
{
    if (!images)
        return;
    drop_taken(images);
    node_walk_clear(&images->walk);
    g_ptr_array_unref(images->taken);
    g_free(images->block);
    g_free(images);
}

/* Under the lock. False: there is no room for it. */
static bool take(struct node_images *images, const struct node *node)
{
    const size_t size = node_image_size(node, images->texts);

    if (images->taken->len == IMAGES_AT_ONCE || size > images->size - images->used) {
        images->wanted = size;
        return false;
    }
    g_ptr_array_add(images->taken,
                    node_image_take(node, images->texts, images->block + images->used));
    images->used += size;
    return true;
}

static void visit(const struct node *node, void *data)
{
    struct node_images *images = data;

    images->walk.put_off = !take(images, node);
    if (!images->walk.put_off && images->also)
        images->also(node, images->data);
}

const GPtrArray *node_images_next(struct node_images *images, node_visit also, void *data)
{
    images->also = also;
    images->data = data;
    do
        drop_taken(images);
    while (node_walk_step(&images->walk, visit, images) && images->taken->len == 0);
    return images->taken->len > 0 ? images->taken : NULL;
}

const struct node *node_images_one(struct node_images *images, const char *name)
{
    struct store *store = images->walk.store;
    const struct node *node;

    do {
        drop_taken(images);
        node = ledger_node(store_lock_again_by(store, images->walk.who), name);
        if (node)
            take(images, node);
        store_unlock(store);
    } while (node && images->taken->len == 0);
    return node ? node_image_node(g_ptr_array_index(images->taken, 0)) : NULL;
}
