/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/what_if.h"

#include "core/allocation.h"
#include "core/ledger.h"
#include "core/node.h"

#include <string.h>

/* Pods of a node lie anywhere in memory; while one is looked at, those after it come. */
#define PREFETCHED 6

static void prefetch(const GPtrArray *allocations, guint at)
{
    if (at >= allocations->len)
        return;
    const char *block = (const char *)allocation_own(g_ptr_array_index(allocations, at));
    for (size_t offset = 0; offset < sizeof(struct allocation_own) + 3 * 64; offset += 64)
        __builtin_prefetch(block + offset);
}

static size_t sum_sizes(const GPtrArray *allocations)
{
    size_t sum = 0;

    for (guint i = 0; i < allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(allocations, i);
        prefetch(allocations, i + PREFETCHED);
        __builtin_prefetch(allocation->facts);
        sum += allocation_size(allocation);
    }
    return sum;
}

/* One block for all of them: who searches reads them one after the other. */
static void copy_allocations(struct what_if *what_if, const GPtrArray *allocations)
{
    struct node *node = what_if->node;
    what_if->block_size = sum_sizes(allocations);
    char *at = what_if->block = g_malloc(what_if->block_size);

    what_if->n_copied = allocations->len;
    for (guint i = 0; i < allocations->len; i++) {
        const struct allocation *its = g_ptr_array_index(allocations, i);
        struct allocation *allocation = allocation_copy(its, at);
        at += allocation_size(its);
        allocation->node = node;
        g_ptr_array_add(node->allocations, allocation);
        g_ptr_array_add(what_if->allocations, allocation);
    }
}

struct what_if *what_if_new(const struct node *node)
{
    struct what_if *what_if = g_new0(struct what_if, 1);
    struct node *copy = node_new(node->name);

    what_if->node = copy;
    what_if->allocations = g_ptr_array_sized_new(node->allocations->len + 1);
    copy_allocations(what_if, node->allocations);
    node_copy_all(copy, node);
    return what_if;
}

void what_if_free(struct what_if *what_if)
{
    if (!what_if)
        return;
    node_free(what_if->node);
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *allocation = g_ptr_array_index(what_if->allocations, i);
        if (i < what_if->n_copied)
            allocation_clear(allocation);
        else
            allocation_free(allocation);
    }
    g_ptr_array_unref(what_if->allocations);
    g_free(what_if->block);
    g_free(what_if);
}

/* Who is taken away is mostly one who came last, or soon after the one that was taken away before. */
void what_if_without(struct what_if *what_if, struct allocation *allocation)
{
    GPtrArray *all = what_if->node->allocations;
    guint at = all->len - 1;

    node_charge(what_if->node, allocation, -1);
    if (all->pdata[at] != allocation) {
        for (at = what_if->removed_at; at >= all->len || all->pdata[at] != allocation;)
            at = at + 1 < all->len ? at + 1 : 0;
        what_if->removed_at = at;
    }
    g_ptr_array_remove_index_fast(all, at);
}

/* Their places are taken by who stands behind as many as are left. */
void what_if_without_those(struct what_if *what_if, const struct what_if_those *those)
{
    GPtrArray *all = what_if->node->allocations;
    const guint left = all->len - (guint)those->n;
    guint next = left;

    for (size_t i = 0; i < those->n_parts; i++)
        node_charge(what_if->node, those->parts[i].allocation, -those->parts[i].n);
    for (size_t i = 0; i < those->n; i++)
        all->pdata[those->places[i]] = NULL;
    for (size_t i = 0; i < those->n; i++) {
        if (those->places[i] >= left)
            continue;
        while (!all->pdata[next])
            next++;
        all->pdata[those->places[i]] = all->pdata[next++];
    }
    g_ptr_array_set_size(all, (gint)left);
}

void what_if_with(struct what_if *what_if, struct allocation *allocation)
{
    g_ptr_array_add(what_if->node->allocations, allocation);
    node_charge(what_if->node, allocation, 1);
}

struct what_if_mark {
    struct node node; /* its pointers are the what-if node's own, or these: */
    struct card *cards;
    struct pool *pools;
    gpointer *allocations;
    guint n_allocations;
};

struct what_if_mark *what_if_mark(const struct what_if *what_if)
{
    const struct node *node = what_if->node;
    struct what_if_mark *mark = g_new(struct what_if_mark, 1);

    *mark = (struct what_if_mark){
        .node = *node,
        .cards = g_memdup2(node->cards, (gsize)node->n_cards * sizeof *node->cards),
        .pools = g_memdup2(node->pools, (gsize)node->n_pools * sizeof *node->pools),
        .allocations =
            g_memdup2(node->allocations->pdata, node->allocations->len * sizeof(gpointer)),
        .n_allocations = node->allocations->len,
    };
    return mark;
}

void what_if_return(struct what_if *what_if, const struct what_if_mark *mark)
{
    struct node *node = what_if->node;
    GPtrArray *all = node->allocations;

    *node = mark->node;
    if (node->n_cards > 0)
        memcpy(node->cards, mark->cards, (size_t)node->n_cards * sizeof *node->cards);
    if (node->n_pools > 0)
        memcpy(node->pools, mark->pools, (size_t)node->n_pools * sizeof *node->pools);
    g_ptr_array_set_size(all, (gint)mark->n_allocations);
    if (all->len > 0)
        memcpy(all->pdata, mark->allocations, all->len * sizeof *mark->allocations);
    node_note_change(node); /* it is not the one again that it was in between */
}

void what_if_mark_free(struct what_if_mark *mark)
{
    if (!mark)
        return;
    g_free(mark->cards);
    g_free(mark->pools);
    g_free(mark->allocations);
    g_free(mark);
}

struct allocation *what_if_allocation(const char *uid, int64_t priority,
                                    const struct placement *placement)
{
    const struct request *request = placement->request;
    struct allocation *allocation = allocation_new(uid, "", uid, placement->n_shares);

    allocation_note_request(allocation, request);
    allocation->state = ALLOCATION_ASSUMED;
    allocation->priority = priority;
    memcpy(allocation->shares, placement->shares,
           placement->n_shares * sizeof *placement->shares);
    return allocation;
}

void what_if_add(struct what_if *what_if, struct allocation *take_allocation)
{
    take_allocation->node = what_if->node;
    g_ptr_array_add(what_if->allocations, take_allocation);
    what_if_with(what_if, take_allocation);
}

void what_if_cover(struct what_if *what_if, const struct node *other, struct allocation *take_allocation)
{
    struct node *node = what_if->node;

    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card *card = &node->cards[i];
        const struct card *its = &other->cards[i];
        card->memory_used = MAX(card->memory_used, its->memory_used);
        card->memory_promised = MAX(card->memory_promised, its->memory_promised);
        card->core_used = MAX(card->core_used, its->core_used);
        card->holders = MAX(card->holders, its->holders);
        card->exclusive = MAX(card->exclusive, its->exclusive);
    }
    for (int32_t i = 0; i < node->n_pools; i++)
        node->pools[i].used = MAX(node->pools[i].used, other->pools[i].used);
    node->unplaced_memory = MAX(node->unplaced_memory, other->unplaced_memory);
    node->unplaced_core = MAX(node->unplaced_core, other->unplaced_core);
    node->unplaced_holders = MAX(node->unplaced_holders, other->unplaced_holders);
    node->unplaced_exclusive = MAX(node->unplaced_exclusive, other->unplaced_exclusive);
    take_allocation->node = node;
    g_ptr_array_add(what_if->allocations, take_allocation);
    g_ptr_array_add(node->allocations, take_allocation);
    node->n_choosy += work_class_is_choosy(take_allocation->work_class);
    node_apply_health(node); /* the summary follows */
}
