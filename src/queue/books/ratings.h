/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What prioritize has found out about nodes, in books of queue/books/node_books.h. A rating must not be remembered
 * where time counts, or more than the node: a node with pods that its node side has not matched yet, or with
 * room kept on it; a pod whose namespace has a quota.
 *
 * Guarded by the store's lock.
 */
#include "queue/books/node_books.h"

struct node_cursor; /* core/ledger.h */

/* For the other two. */
struct node_books *ratings_new(void);

/* Whether something is remembered of the node where the cursor is, as it is, of which nothing else is read:
 * whether it would take the pod, and if so its rank, but for `name` and `waits`. */
bool rating_find(const struct node_book *book, const struct node_cursor *cursor, bool *ret_takes,
                 struct rank *ret_rank);

/* `rank` NULL: the node would not take the pod. */
void rating_note(struct node_book *book, const struct node_cursor *cursor, const struct rank *rank);
