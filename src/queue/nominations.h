/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room that is kept. After a preemption kube-scheduler nominates the pod to the node whose pods it
 * has ended, and counts it there when it looks for room for others that are not more important; but
 * it does so in sums, and does not tell its extenders. So the cards are kept here: others see the
 * node with the nominated pods placed, where they will be once those have ended that must.
 *
 * A nomination lasts as long as the pod's status says so and the pod waits. It counts for pods that ask by a
 * scheduler that asks us, as kube-scheduler knows those of its own profiles alone.
 *
 * kube-scheduler also nominates a pod to the node where it will bind it, while it waits for the pod's volumes
 * (NominatedNodeNameForExpectation). Nobody has to end there: the node has room when the nomination is seen first.
 * Such a pod is on its way and counts for all others, whatever their priority, until filter is asked about it
 * again, for as long as that may take (`volume_bind_ms` of the store's options). Source: kubernetes/kubernetes
 * 1.37.2, pkg/scheduler/schedule_one.go, bindingCycle and assume. Guarded by the store's
 * lock.
 *
 * A plan that moves pods (wire/plan_mark.h) has room kept, too: for the pod that it makes room for, and for
 * the successor of each pod that it ends, which nobody knows yet. A successor is known by its namespace,
 * its controller's UID and what it asks for; it gets the card that is kept for it, if that still takes it. What is kept for a pod of a group that is to come whole the others of
 * the group find free as well, so that they find places together, with whatever cards the policy chooses; each room
 * ends when its pod has a place. Any author of pods there may write the same, and gains
 * nothing: such a pod finds the node as it would if nothing were kept, is asked everything else, and takes
 * the room from that controller's pod, once. Others find the node with the room taken, even where those
 * who are to leave are still there, so that nobody gets what they leave.
 */
#include "wire/claim.h"
#include "wire/plan_mark.h"

#include <gpuledger/dialect.h>

struct nominations;

/* Tells the ledger when room is kept no longer. */
struct nominations *nominations_new(struct ledger *ledger);
void nominations_free(struct nominations *nominations);

/* Array of struct kept_room: all that are kept on the node from now on. */
void nominations_keep(struct nominations *nominations, const char *node, const GPtrArray *rooms);
/* Those whose time is over go; whether there were any. */
bool nominations_end(struct nominations *nominations, int64_t now_ns);
void nominations_copy_rooms(struct nominations *nominations, const struct nominations *from);
/* The groups for which any is kept, one as often as there are rooms. */
void nominations_each_group(const struct nominations *nominations,
                            void (*visit)(const char *ns, const char *group, void *data),
                            void *data);

/* A pod that has been booked on the node or is seen there first. */
struct kept_room_taker {
    const char *uid, *ns, *controller; /* that, or NULL */
    const struct request *request;
    const char *node;
    int64_t created_s; /* Unix time; 0: it was booked just now. An older pod is no successor */
};
/* Whether any is kept on the node for a pod of that controller, which may be NULL. */
bool nominations_await(const struct nominations *nominations, const char *node,
                       const char *controller);
void nominations_take(struct nominations *nominations, const struct kept_room_taker *taker);

/* A pod that waits, and its request, which is borrowed until the pod is forgotten or noted with another
 * one. */
void nominations_note(struct nominations *nominations, const struct pod_view *pod,
                      const struct request *request);
/* Whether the pod is nominated to a node and nobody has looked yet whether it comes there as things are. */
bool nominations_unsettled(const struct nominations *nominations, const char *uid);
/* It is on its way, or waits for others to end. */
void nominations_settle(struct nominations *nominations, const char *uid, bool comes);
/* filter is asked about it: it is not on its way. */
void nominations_stop(struct nominations *nominations, const char *uid);
/* At each decision: asks of those that are not settled, and begins the time of those that come. */
struct nominations_begin {
    int64_t now_ns, lasts_ns;
    bool (*comes)(const char *uid, void *data);
    void *data;
};
void nominations_begin(struct nominations *nominations, const struct nominations_begin *begin);
/* For a record: of those that pods' statuses name, when they end. Those that are not in it do not come. */
void nominations_each_coming(const struct nominations *nominations,
                             void (*visit)(const char *uid, int64_t until_ns, void *data),
                             void *data);
void nominations_learn_coming(struct nominations *nominations, const char *uid, int64_t until_ns);
void nominations_learn_none_comes(struct nominations *nominations);
void nominations_copy(struct nominations *nominations, const struct nominations *from,
                      const char *uid, const struct request *request);
void nominations_forget(struct nominations *nominations, const char *uid);

/* Replaces the claims on a node; NULL: there are none. Whoever is named in the old or the new ones is to be
 * noted again. */
void nominations_set_claims(struct nominations *nominations, const char *node,
                            GPtrArray *take_claims);
void nominations_copy_claims(struct nominations *nominations, const struct nominations *from);
/* Those on the node, or NULL. */
const GPtrArray *nominations_claims(const struct nominations *nominations, const char *node);
/* The pod's, and its node, if not NULL; NULL: it has none. Of several the one that was made last. */
const struct room_claim *nominations_claim(const struct nominations *nominations, const char *uid,
                                           const char **ret_node);
/* In no order; must not change them. */
void nominations_each_claim(const struct nominations *nominations,
                            void (*visit)(const char *node, const struct room_claim *claim,
                                          void *data),
                            void *data);

/* Flags the nodes on which room is kept (ledger_flag). */
void nominations_flag(const struct nominations *nominations, struct ledger *ledger);

/* Grows whenever more is kept than before; when less is, the ledger is told. */
uint64_t nominations_kept(const struct nominations *nominations);

/* Whether anything is kept on the node, for whomever. */
bool nominations_concern(const struct nominations *nominations, const struct node *node);
/* Whether room is kept for the pod by its status or a claim. The room of a plan does not count: the node's
 * annotation alone says so, which its kubelet can write for any pod, and a node decides nothing elsewhere. */
bool nominations_have(const struct nominations *nominations, const char *uid);
/* Whether a plan keeps room on that node for the pod. */
bool nominations_keep_for(const struct nominations *nominations, const char *node, const char *uid);
