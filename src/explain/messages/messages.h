/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sentences with numbers about requests, nodes and cards. Under the lock of the store that the node
 * is of; texts are the caller's (g_free).
 */
#include "store/amounts.h"
#include "store/feasibility.h"

/* Why a card is closed. */
const char *message_of_closure(enum closure closure);

/* Why a share of the ask does or does not go to the card. */
char *message_of_card(const struct node *node, const struct request *request,
                      const struct card_ask *ask, const struct card *card, enum reason reason);

/* Why the node refuses the request as a whole, card aside; NULL: some card has to tell. */
char *message_of_node(const struct feasibility *question, const struct node *node,
                      const struct request *request, enum reason reason);

/* The request as a node side of the node reads it, or NULL. */
const struct request *reading_in_message(const struct node *node, const struct request *request);

/* The ask that the node fails on: the first that no card, or too few, would take. */
const struct card_ask *ask_in_message(const struct node *node, const struct request *request);

/* Pods with something of the card, or of the pool, "NAMESPACE/NAME"; both NULL: of the node. */
GPtrArray *pods_in_message(const struct node *node, const struct card *card,
                           const struct pool *pool);
