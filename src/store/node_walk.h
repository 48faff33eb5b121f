/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All nodes in order of name, a few at a time under the store's lock, for whoever reads the cluster and
 * decides nothing. Between the holds everybody else gets the lock first. What is read of one node is of
 * one moment; what is read of two may not be, and a node that comes or goes meanwhile may be missed.
 * Any thread; one walk is one thread's.
 */
#include "store/store.h"

struct node_walk {
    struct store *store;
    const char *who;
    char *last; /* the name of the last that was visited, or NULL; of so many bytes */
    size_t last_size;
    guint next; /* where that one's successor was */
    bool
        put_off; /* a visit sets it that has to be made once more: the step ends before that node */
};

/* Under the lock; must not change the ledger. */
typedef void (*node_visit)(const struct node *node, void *data);

#define node_walk_init(walk, store) node_walk_init_by(walk, store, __func__)
void node_walk_init_by(struct node_walk *walk, struct store *store, const char *who);
/* To begin after the node of that name, known or not; NULL: at the first. */
void node_walk_begin_after(struct node_walk *walk, const char *name);
/* Of one that is left before its end. */
void node_walk_clear(struct node_walk *walk);

/* Visits the next few nodes, at least one; false: there are no more. */
bool node_walk_step(struct node_walk *walk, node_visit visit, void *data);

/* All of them. */
#define node_walk_all(store, visit, data) node_walk_all_by(store, __func__, visit, data)
void node_walk_all_by(struct store *store, const char *who, node_visit visit, void *data);

/* The lock for a reader that has just had it: lets those who wait for it go first. */
#define store_lock_again(store) store_lock_again_by(store, __func__)
struct ledger *store_lock_again_by(struct store *store, const char *who);
