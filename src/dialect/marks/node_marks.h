/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the administrator says of a node's cards, whichever dialects share them, in annotations of
 * the Node. Cards are named by index, `*` stands for all that are
 * not named.
 *
 *   gpuledger.io/cordoned-cards           cordoned_cards.h
 *   gpuledger.io/exclusive-cards  "0"     take one holder at a time (compute mode EXCLUSIVE_PROCESS)
 *   gpuledger.io/share-class      "0=fixed:4,*=best-effort:8"
 *                                         at most so many holders, each promised that part of compute at
 *                                         most; best-effort cards promise none. A card of which this
 *                                         says nothing that can be read, or two things, is closed
 *   gpuledger.io/physical-memory  "0=16Gi"
 *                                         what the card really has, if the node side offers more
 *   gpuledger.io/memory-in-use    "0=97"  percent of that which is in use, as somebody has measured;
 *                                         from 95 on the card takes no new pods
 */
#include <gpuledger/dialect.h>

/* What follows is read by those rows alone that name it (card_marks), and warned about where none of the
 * node's does: the true sizes of unequal cards, and the order in which NVML counts them. */
#define NODE_CARD_MEMORY_KEY "gpuledger.io/card-memory"
#define NODE_CARD_ORDER_KEY "gpuledger.io/card-order"

/* Pure. Items that cannot be read are ignored, but for classes, and `ret_warning`, unless it is NULL or set, says
 * which. */
void node_marks_apply(const struct node_view *view, struct topology *topology, char **ret_warning);

/* How many holders at once each card of a node takes at most, as its administrator says it to gpuledger
 * alone, whose node side knows nothing of it:
 *
 *   gpuledger.io/slots: "4"     from 1 to NODE_SLOTS_MAX; "any": as many as its node side gives it
 */
#define NODE_SLOTS_KEY "gpuledger.io/slots"
#define NODE_SLOTS_MAX 1000

struct node_slots {
    bool readable; /* false: what is said cannot be read, so no card takes anybody new */
    int32_t most;  /* 0: nothing is said, or "any" */
};

/* Of a value, which may be NULL: nothing is said. */
struct node_slots node_slots_parse(const char *text);

/* Of a Node. A warning as those of dialects. */
void node_slots_read(const struct node_view *view, struct node_slots *ret_slots,
                     char **ret_warning);

/* Whether cards that one value bounds may have more holders than another one lets them; either may be
 * NULL. */
bool node_slots_shrink(const char *from, const char *to);
