/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cards on which one share of an ask fits, in the policy's order. Pure; for placement.c alone.
 */
#include "policy/obstacles.h"

/* A card on which one share of an ask fits. */
struct candidate {
    int32_t crowd; /* replicas of the pod on it, of one that keeps apart from those */
    int64_t waste; /* bytes of an instance beyond what is asked for; 0 on a card that is not cut */
    struct cost cost;
    const struct card *card;
};

/* Writes them, best first, to candidates[], which has room for all cards of the node, and says how
 * many there are; and why, if they do not suffice. */
int32_t candidates_find(const struct situation *at, const struct card_ask *ask,
                        struct candidate *candidates, enum reason *ret_reason);

/* Whether there are as many as the ask wants. Not in order, so that no policy is asked. */
bool candidates_suffice(const struct situation *at, const struct card_ask *ask);
