/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All nodes of a ledger in the order in which they were asked for last. Whoever asks for thousands asks in
 * the same order the next time, so the next node is a guess that costs less than a look-up: names lie one
 * after the other in memory, and what is read of nodes is fetched before their turn.
 */
#include "core/ledger.h"

struct pulses;

/* `pulses` are those of the nodes, and stay the caller's. */
struct asked_order *asked_order_new(const struct pulses *pulses);
void asked_order_free(struct asked_order *order);

/* The nodes are borrowed. One that is added comes last. */
void asked_order_add(struct asked_order *order, struct node *node);
void asked_order_remove(struct asked_order *order, struct node *node);

/* Moves the cursor to the node after that where it is, or at first to that where a call began, if it has
 * this name. False: it has another one, or there is none. */
bool asked_order_guess(struct asked_order *order, struct node_cursor *cursor, const char *name,
                       enum node_part part);

/* The guess was wrong, cursor->node was meant: from now on it follows. */
void asked_order_correct(struct asked_order *order, struct node_cursor *cursor);
