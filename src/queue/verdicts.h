/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What filter has found out about nodes, remembered until they change, as ratings.h has it for
 * prioritize: pods come in numbers that ask for the same, and each changes one node of thousands. Of a
 * node that is remembered filter reads its pulse alone (core/ledger.h).
 *
 * A verdict depends on the node's version, the request, the policy and the demand, and on nothing else. So
 * it must neither be remembered nor asked for where more counts: time, the pod's namespace or its place in
 * the order of arrival, who is on the way to the node or has room kept there.
 *
 * Guarded by the store's lock.
 */
#include <gpuledger/dialect.h>

/* Kinds of pods, and nodes of all of them together, eight bytes each; of more the latest are remembered. */
#define VERDICTS_BOOKS_MAX 32
#define VERDICTS_MAX (1U << 18)

struct verdicts;
struct verdict_book;
struct node_cursor; /* core/ledger.h */

struct verdicts *verdicts_new(void);
void verdicts_free(struct verdicts *verdicts);

/* Those on pods of one kind, for the nodes of the ledger; until the next call. */
struct verdict_book *verdicts_open(struct verdicts *verdicts, const struct ledger *ledger,
                                   const struct admission_query *query);
/* Nothing is in it. */
bool verdict_book_is_new(const struct verdict_book *book);

/* Of the node where the cursor is, of which nothing else is read. REASON_NONE: it takes the pod at once.
 * False: nothing is remembered of the node as it is. */
bool verdict_book_find(const struct verdict_book *book, const struct node_cursor *cursor,
                       enum reason *ret_reason);
void verdict_book_note(struct verdict_book *book, const struct node_cursor *cursor,
                       enum reason reason);
