/* SPDX-License-Identifier: Apache-2.0 */
#include "store/node_walk.h"

#include "core/ledger.h"
#include "store/store_state.h"

#include <stdatomic.h>
#include <string.h>

#define HOLD_US 10     /* after which no other node is begun */
#define WAIT_US 50     /* for those who were there before */
#define NAME_SIZE 256  /* of a node, mostly */
#define WAITS_MAX 1000 /* a reader gets its turn, whoever else comes */

/* A thread that unlocks a mutex and locks it again is faster than one that has to be woken. */
struct ledger *store_lock_again_by(struct store *store, const char *who)
{
    for (int i = 0; i < WAITS_MAX && atomic_load(&store->n_waiting) > 0; i++)
        g_usleep(WAIT_US);
    return store_lock_by(store, who);
}

void node_walk_init_by(struct node_walk *walk, struct store *store, const char *who)
{
    *walk = (struct node_walk){.store = store, .who = who};
}

void node_walk_begin_after(struct node_walk *walk, const char *name)
{
    node_walk_clear(walk);
    walk->last = g_strdup(name);
    walk->last_size = name ? strlen(name) + 1 : 0;
    walk->next = 0;
}

void node_walk_clear(struct node_walk *walk)
{
    g_clear_pointer(&walk->last, g_free);
    walk->last_size = 0;
}

/* Under the lock, and so mostly without the heap. */
static void note_last(struct node_walk *walk, const char *name)
{
    const size_t size = strlen(name) + 1;

    if (size > walk->last_size) {
        g_free(walk->last);
        walk->last_size = MAX(size, NAME_SIZE);
        walk->last = g_malloc(walk->last_size);
    }
    memcpy(walk->last, name, size);
}

/* The first node behind the last one. */
static guint find_next(const struct node_walk *walk, const GPtrArray *nodes)
{
    guint from = 0, to = nodes->len;

    if (!walk->last)
        return 0;
    if (walk->next > 0 && walk->next <= nodes->len &&
        strcmp(((const struct node *)nodes->pdata[walk->next - 1])->name, walk->last) == 0)
        return walk->next;
    while (from < to) {
        const guint middle = (from + to) / 2;
        if (strcmp(((const struct node *)nodes->pdata[middle])->name, walk->last) <= 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool node_walk_step(struct node_walk *walk, node_visit visit, void *data)
{
    const GPtrArray *nodes = ledger_nodes(store_lock_again_by(walk->store, walk->who));
    const int64_t until_us = g_get_monotonic_time() + HOLD_US;
    guint at = find_next(walk, nodes);
    const bool ended = at == nodes->len;
    const struct node *node = NULL;

    walk->put_off = false;
    for (; at < nodes->len && (!node || g_get_monotonic_time() < until_us); at++) {
        visit(nodes->pdata[at], data);
        if (walk->put_off)
            break;
        node = nodes->pdata[at];
    }
    if (node)
        note_last(walk, node->name);
    if (node || ended)
        walk->next = at;
    store_unlock(walk->store);
    if (ended)
        node_walk_clear(walk);
    return !ended;
}

void node_walk_all_by(struct store *store, const char *who, node_visit visit, void *data)
{
    struct node_walk walk;

    node_walk_init_by(&walk, store, who);
    while (node_walk_step(&walk, visit, data))
        continue;
}
