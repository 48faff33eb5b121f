/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One change that can be made and unmade by itself: to a node of the copy in place, or to the pod.
 * The search for single remedies asks whether it is enough, the search for pairs what else is missing.
 * For remed*.c alone.
 */
#include "explain/remedy_search.h"

struct step {
    enum remedy_kind kind;
    struct pod_view pod;         /* as it is after the step; borrows from the search's pod */
    struct request *request;     /* what that asks for; NULL: what the search's pod does */
    struct remedy remedy;        /* to be told; without the node */
    struct constraints constraints;
    void *items;                 /* that the changed pod refers to */
    struct card *card;           /* of the node, that was mended or opened; what it was before: */
    bool healthy;
    enum closure closure;
    bool cordoned;               /* the node as it was: these three */
    int32_t compute, driver;
};

/* Makes the step of that kind; of several the one with this number. False: there is none (any more),
 * and nothing has changed. Kinds: REMEDY_UNCORDON, _TOLERATE, _SELECTOR, _AFFINITY, _LABEL, _HEAL, and
 * _CONDITION. */
bool step_make(struct step *ret_step, struct search *search, struct node *node,
               enum remedy_kind kind, size_t number);
/* Puts the node back, and frees what was not told. */
void step_undo(struct step *step, struct node *node);

/* What is to be told; the caller's. */
struct remedy step_tell(struct step *step);

/* What lifts the barrier; REMEDY_N: nothing does. */
enum remedy_kind step_of_barrier(enum barrier barrier);
