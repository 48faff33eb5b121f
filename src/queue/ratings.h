/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What prioritize has found out about nodes, remembered until they change: pods come in numbers that
 * ask for the same, and each changes one node of thousands. Nobody sees that something was
 * remembered, but for the time that it takes.
 *
 * A rating depends on the node, the request, the policy and the demand, and on nothing else. So it
 * must not be remembered where time counts, or more than the node: a node with pods that its node
 * side has not matched yet, or with room kept on it; a pod whose namespace has a quota.
 *
 * Guarded by the store's lock.
 */
#include <gpuledger/ranking.h>

/* Kinds of pods, and nodes of all of them together; of more the latest are remembered. */
#define RATINGS_BOOKS_MAX 64
#define RATINGS_MAX 65536

struct ratings;
struct rating_book;
struct node_cursor; /* core/ledger.h */

struct ratings *ratings_new(void);
void ratings_free(struct ratings *ratings);

/* Those by pods of one kind, for the nodes of the ledger; until the next call. */
struct rating_book *ratings_open(struct ratings *ratings, const struct ledger *ledger,
                                 const struct request *request, const struct policy *policy,
                                 const struct demand *demand);

/* Nothing is in it. */
bool rating_book_is_new(const struct rating_book *book);

/* Whether something is remembered of the node where the cursor is, as it is, of which nothing else is read:
 * whether it would take the pod, and if so its rank, but for `name` and `waits`. */
bool rating_book_find(const struct rating_book *book, const struct node_cursor *cursor,
                      bool *ret_takes, struct rank *ret_rank);

/* `rank` NULL: the node would not take the pod. */
void rating_book_note(struct rating_book *book, const struct node_cursor *cursor,
                      const struct rank *rank);
