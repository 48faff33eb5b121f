/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Answers while they are made and until their clients have taken them, and the memory of all of
 * them together, of both listeners.
 *
 * A client that asks for a view of the whole cluster and does not read it keeps its memory for as
 * long as --transfer-timeout. So there is a budget: beyond it, views are refused (503), and for the
 * answer of a verb those are cut that have been taking theirs the longest. A part of the budget is
 * kept for verbs. What is smaller than ANSWER_SMALL is not counted: there are only so many
 * connections. One answer that is larger than the budget passes while there is no other.
 *
 * Making a view takes memory, too, and time under the store's lock, so large ones are made one after
 * the other. The line for that is short, since a connection that waits in it cannot be cut.
 *
 * Any thread.
 */
#include "http/connections.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_SMALL ((size_t)64 << 10)
#define ANSWERS_MAX ((size_t)96 << 20) /* of all; three quarters of it for views */
#define ANSWERS_WAIT_MS 1000           /* for those that were cut to go */
#define LINE_MAX_WAITING 8

/* Lines in which requests wait, each for its turn. */
enum line {
    LINE_VIEWS,
    LINE_QUESTIONS, /* explain, fit, filter-dryrun: a copy of the ledger, and long thought */
    LINE_N
};

struct outgoing;

struct outgoing *outgoing_new(size_t bytes_max);
/* Nothing must be held any more. */
void outgoing_free(struct outgoing *outgoing);

/* Waits for the turn; false: there are too many in the line already, or, for views, the memory is
 * used up. */
bool outgoing_enter(struct outgoing *outgoing, enum line line);
void outgoing_leave(struct outgoing *outgoing, enum line line);

/* Counts an answer that is to be sent on `connection`; false: there is no memory for it. What was
 * counted is `ret_held`, for outgoing_release. `is_view`: it must not use what is kept for verbs, and
 * nobody is cut for it. */
bool outgoing_hold(struct outgoing *outgoing, const struct connection *connection, size_t length,
                   bool is_view, size_t *ret_held);
void outgoing_release(struct outgoing *outgoing, size_t held);

/* What is counted at the moment. */
size_t outgoing_held(struct outgoing *outgoing);
