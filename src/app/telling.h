/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sentences with numbers about requests, nodes and cards. Under the lock of the store that the node
 * is of; texts are the caller's (g_free).
 */
#include "app/feasibility.h"

/* "8GiB", "6.5GiB", "512MiB". */
char *tell_bytes(int64_t bytes);

/* Why a card is closed. */
const char *tell_closure(enum closure closure);

/* What the request asks for, as a node reads it; NULL: as far as it can be said of no node. */
char *tell_request(const struct node *node, const struct request *request);

/* Where a placement or an allocation is: "card 1 (8GiB)". */
char *tell_shares(const struct node *node, const struct share *shares, uint32_t n);

/* Why a share of the ask does or does not go to the card. */
char *tell_card(const struct node *node, const struct request *request, const struct card_ask *ask,
                const struct card *card, enum reason reason);

/* Why the node refuses the request as a whole, card aside; NULL: some card has to tell. */
char *tell_node(const struct feasibility *question, const struct node *node,
                const struct request *request, enum reason reason);

/* The request as a node side of the node reads it, or NULL. */
const struct request *tell_reading(const struct node *node, const struct request *request);

/* The ask that the node fails on: the first that no card, or too few, would take. */
const struct card_ask *tell_ask(const struct node *node, const struct request *request);

/* Pods with something of the card, or of the pool, "NAMESPACE/NAME"; both NULL: of the node. */
GPtrArray *tell_pods(const struct node *node, const struct card *card, const struct pool *pool);
