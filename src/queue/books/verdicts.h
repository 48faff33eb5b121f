/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What filter has found out about nodes, in books of queue/books/node_books.h. Of a node that is remembered filter
 * reads its pulse alone (core/ledger.h).
 *
 * A verdict must neither be remembered nor asked for where more counts than the node's version: time, the
 * pod's namespace or its place in the order of arrival, who is on the way to the node or has room kept there.
 *
 * Guarded by the store's lock.
 */
#include "queue/books/node_books.h"

#include <gpuledger/reason.h>

struct node_cursor; /* core/ledger.h */

/* Of the cards alone: REASON_NONE, it takes the pod at once. What quotas say then follows from what it would
 * count there (quota_room_judge). */
struct node_verdict {
    enum reason reason;
    uint64_t number; /* 0: not known */
};

/* For the other two. */
struct node_books *verdicts_new(void);

/* Of the node where the cursor is, of which nothing else is read. False: nothing is remembered of the node as it
 * is. */
bool verdict_find(const struct node_book *book, const struct node_cursor *cursor,
                  struct node_verdict *ret_verdict);
void verdict_note(struct node_book *book, const struct node_cursor *cursor,
                  const struct node_verdict *verdict);
