/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room that is kept. After a preemption kube-scheduler nominates the pod to the node whose pods it
 * has ended, and counts it there when it looks for room for others that are not more important; but
 * it does so in sums, and does not tell its extenders. So the cards are kept here: others see the
 * node with the nominated pods placed, where they will be once those have ended that must.
 *
 * A nomination lasts as long as the pod's status says so and the pod waits. Guarded by the store's
 * lock.
 */
#include "policy/what_if.h"

#include <gpuledger/dialect.h>

struct nominations;

/* Tells the ledger when room is kept no longer. */
struct nominations *nominations_new(struct ledger *ledger);
void nominations_free(struct nominations *nominations);

/* A pod that waits, and its request, which is borrowed until the pod is forgotten or noted with another
 * one. */
void nominations_note(struct nominations *nominations, const struct pod_view *pod,
                      const struct request *request);
void nominations_copy(struct nominations *nominations, const struct nominations *from,
                      const char *uid, const struct request *request);
void nominations_forget(struct nominations *nominations, const char *uid);

/* Flags the nodes on which room is kept (ledger_flag). */
void nominations_flag(const struct nominations *nominations, struct ledger *ledger);

/* Whether room is kept for the pod. */
bool nominations_have(const struct nominations *nominations, const char *uid);

/* Nodes as one pod finds them. Lasts until the lock is given back or anything is changed. */
struct nominees {
    const struct nominations *nominations;
    const struct ledger *ledger;
    struct admission_query admission; /* whatever is asked for */
    const char *uid; /* of the pod that looks; its own nomination does not count */
    int64_t priority; /* its; those below it do not count */
    GHashTable *what_ifs; /* node's name -> struct what_if *, as far as asked for */
};

void nominees_clear(struct nominees *nominees);

/* The node with those placed on it that are nominated there; mostly the node itself. NULL gives
 * NULL. */
const struct node *nominees_see(struct nominees *nominees, const struct node *node);
