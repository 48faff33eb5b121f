/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes as a pod finds them beside those for whom room is kept (nominations.h). What is looked up is of
 * the pod that looks: its own room it finds free. Guarded by the store's lock.
 */
#include "policy/what_if.h"
#include "queue/hints.h"
#include "queue/nominations.h"

/* Nodes as one pod finds them. Lasts until the lock is given back or anything is changed. */
struct nominees {
    const struct nominations *nominations;
    const struct hints *hints; /* those that are kept; NULL: none are */
    GHashTable
        *schedulers; /* a set of names: nominations of their pods count, and of `scheduler`'s; NULL:
                                 * those of all do */
    const struct ledger *ledger;
    struct admission_query admission; /* whatever is asked for */
    const char *uid;                  /* of the pod that looks; its own nomination does not count */
    const char *ns, *controller, *group; /* its, or NULL */
    const char *scheduler;               /* its */
    int64_t priority;                    /* its; those below it do not count */
    const GPtrArray *came;               /* nominees_take's, what is kept no longer; or NULL */
    GHashTable *what_ifs;                /* node's name -> struct what_if *, as far as asked for */
};

void nominees_clear(struct nominees *nominees);

/* Whether anything is kept on the node, for whatever pod. */
bool nominees_concern(const struct nominees *nominees, const struct node *node);

/* Both pods find the same of it kept from them, so that they find the node alike. */
bool nominees_agree(const struct nominees *nominees, const struct nominees *other,
                    const struct node *node);
/* As if the pod had come to the node: adds to `came` what was kept for it there. */
void nominees_take(const struct nominees *nominees, const struct node *node, GPtrArray *came);

/* The node with those placed on it that are nominated there; mostly the node itself. NULL gives
 * NULL. */
const struct node *nominees_see(struct nominees *nominees, const struct node *node);

/* Whether the node has room for the pod beside them, once the node side has matched those that it has not yet. */
bool nominees_find_room(struct nominees *nominees, const struct node *node);

/* The card on which a plan keeps room for the pod, or for a successor that it may be; CARD_UNKNOWN: it keeps none
 * there, or several. */
int32_t nominees_card(const struct nominees *nominees, const struct node *node);

/* Moves the pod's placement on the node to that card; false: it is not for one share of a card, or the card does
 * not take it. */
bool card_place_on(const struct node *node, int32_t card, struct placement *placement);
