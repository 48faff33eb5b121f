/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All nodes of a ledger in the order in which they were asked for last. Whoever asks for thousands asks in
 * the same order the next time, so the next node is a guess that costs less than a look-up: names lie one
 * after the other in memory, and what is read of nodes is fetched before their turn.
 */
#include "core/ledger.h"

struct asked_order *asked_order_new(void);
void asked_order_free(struct asked_order *order);

/* The nodes are borrowed. One that is added comes last. */
void asked_order_add(struct asked_order *order, struct node *node);
void asked_order_remove(struct asked_order *order, struct node *node);

/* The node after `after`, or at its NULL where a call began, if it has this name. */
struct node *asked_order_guess(struct asked_order *order, const struct node *after,
                               const char *name, enum node_part part);

/* The guess was wrong, `node` was meant: from now on it follows. */
void asked_order_correct(struct asked_order *order, const struct node *after, struct node *node);
