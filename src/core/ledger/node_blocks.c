/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/node_blocks.h"

#include "core/ledger.h"

#include <stdlib.h>
#include <string.h>

/* So that AddressSanitizer, whose own these two are, sees who reads a node that is gone. */
#ifdef __SANITIZE_ADDRESS__
void __asan_poison_memory_region(const volatile void *start, size_t size);
void __asan_unpoison_memory_region(const volatile void *start, size_t size);
#else
#define __asan_poison_memory_region(start, size) ((void)(start))
#define __asan_unpoison_memory_region(start, size) ((void)(start))
#endif

/* A node and a name of the usual length; what is larger has memory of its own. */
#define SLOT_SIZE (NODE_LINES(sizeof(struct node_own) + 64) * NODE_ALIGNMENT)
#define NODE_LINES(size) (((size) + NODE_ALIGNMENT - 1) / NODE_ALIGNMENT)
/* Nodes of the first block; each has twice as many as the one before, up to the most. */
#define SLOTS_FIRST 4
#define SLOTS_MOST 256

struct node_blocks {
    GPtrArray *blocks;
    GPtrArray *free;       /* slots */
    char *next;            /* of the last block, the first slot that nobody has had */
    size_t n_next, n_last; /* how many of those there are, and how many it has in all */
};

static void *aligned(size_t size)
{
    void *block;

    if (posix_memalign(&block, NODE_ALIGNMENT, size) != 0)
        g_error("no memory for a node");
    return block;
}

struct node_blocks *node_blocks_new(void)
{
    struct node_blocks *blocks = g_new0(struct node_blocks, 1);

    blocks->blocks = g_ptr_array_new_with_free_func(free);
    blocks->free = g_ptr_array_new();
    return blocks;
}

void node_blocks_free(struct node_blocks *blocks)
{
    g_ptr_array_unref(blocks->blocks);
    g_ptr_array_unref(blocks->free);
    g_free(blocks);
}

static void *take_slot(struct node_blocks *blocks)
{
    if (blocks->free->len > 0) {
        void *again = g_ptr_array_remove_index_fast(blocks->free, blocks->free->len - 1);
        __asan_unpoison_memory_region(again, SLOT_SIZE);
        return again;
    }
    if (blocks->n_next == 0) {
        blocks->n_last = blocks->n_last == 0 ? SLOTS_FIRST : MIN(2 * blocks->n_last, SLOTS_MOST);
        blocks->n_next = blocks->n_last;
        blocks->next = aligned(blocks->n_last * SLOT_SIZE);
        g_ptr_array_add(blocks->blocks, blocks->next);
    }
    void *slot = blocks->next;
    blocks->next += SLOT_SIZE;
    blocks->n_next--;
    return slot;
}

void *node_blocks_take(struct node_blocks *blocks, size_t size)
{
    return memset(size > SLOT_SIZE ? aligned(size) : take_slot(blocks), 0, size);
}

void node_blocks_give(struct node_blocks *blocks, void *block, size_t size)
{
    if (size > SLOT_SIZE) {
        free(block);
        return;
    }
    g_ptr_array_add(blocks->free, block);
    __asan_poison_memory_region(block, SLOT_SIZE);
}
