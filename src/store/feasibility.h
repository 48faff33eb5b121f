/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * May this pod go on this node now, and why not: whether a card is free for it (dialect_admit) beside those for whom
 * room is kept, whether a gate (gate/gate.h) keeps it away, whether its quotas allow it, and the order of arrival.
 * filter, prioritize, bind and wake ask it, and so does whoever explains or foresees what they say; what one of them
 * leaves out on purpose it says.
 *
 * Under the store's lock from feasibility_init to feasibility_clear. What may change is the order of
 * arrival, in which an older pod gets its time; who only asks does so of a copy (store_copy), or
 * without the order.
 */
#include "store/store.h"
#include "core/constraints.h"
#include "gate/gate.h"
#include "policy/effort/work_meter.h"

#include <gpuledger/ranking.h>

struct node_pulse; /* core/ledger.h */

/* What is left out. */
enum feasibility_without {
    WITHOUT_ORDER = 1 << 0,   /* the order of arrival: it is neither looked at nor changed */
    WITHOUT_LIMITS = 1 << 1,  /* quotas; they can still be counted */
    WITHOUT_WAITING = 1 << 2, /* a node that would take the pod after a wait does not take it */
    WITHOUT_PLUGIN = 1 << 3, /* that a node's plugin is away: whoever asks waits for it himself, and
                                * has a deadline of his own */
};

struct feasibility_about {
    enum gate_asker asker;
    const struct pod_view *pod; /* its UID, namespace, priority and constraints; need not exist */
    const struct request *request;
    const struct moment *moment; /* what store_decide gave: the only clock */
    unsigned without;
    const struct demand *demand; /* NULL: the store's */
    bool of_many; /* nodes are asked about by the thousand */
};

struct feasibility {
    struct ledger *ledger;
    struct arrivals *arrivals;
    struct admission_query admission;
    struct arrivals_query turn; /* points to `nominees`: a question stays where it is */
    struct nominees nominees;
    const struct strays *strays;
    const struct constraints *constraints; /* for feasibility_barrier; of the pod, or NULL */
    unsigned without;
    bool ordered; /* somebody older may have to be left a node */
    struct gates gates;        /* those that matter for the pod */
    struct gate_ground ground; /* theirs */
    const char *uid;
    int64_t priority;
    int64_t late_ms;           /* of a pod that binds late, how long its room is kept; else 0 */
    struct work_meter work;    /* what the question costs */
    int64_t barrier_work;      /* what it costs to compare the pod's constraints with a node */
    struct placement *scratch; /* too large to be made for each question; NULL: not needed yet */
    struct hints *hints;
    const char *ns; /* of the pod; "": not known */
    uint32_t flags; /* the round in which those were flagged of which more matters; 0: none were */

    /* Of the node that was asked about last: */
    bool calm;                 /* it was not flagged */
    const struct node *judged; /* of which `todo` is */
    uint32_t todo;             /* gates that have to be asked */
    bool limited;            /* nothing but limits and what is asked after them may have objected */
    const struct node *seen; /* with those on it for whom room is kept; until the next question */
    struct what_if *left;    /* the same as a gate has narrowed it */
    const struct node *found; /* what was seen, but for what is kept for older pods */
    struct what_if *cover;      /* that, where it is for older pods */
    struct what_if *coming;     /* `found`, with those on it who are on their way there */
    bool spoken_for; /* feasibility_at_once: those whose binds wait there leave no room for it */
    int32_t
        n_equals; /* feasibility_at_once: those on their way there of whom `coming` was not made */
    bool waits;                  /* it takes the pod, after one that waits there */
    struct arrivals_older older; /* REASON_EARLIER_POD: the pod it is left to */
};

/* Borrows the pod and the request. */
void feasibility_init(struct feasibility *question, struct store *store,
                      const struct feasibility_about *about);
void feasibility_clear(struct feasibility *question);
/* The same of another pod of the namespace, of the same priority, that asks for the same, in the turn of
 * the first. */
void feasibility_go_on(struct feasibility *question, struct store *store,
                       const struct pod_view *pod);
/* An allocation of the namespace was made since the question was asked first. */
void feasibility_note_taken(struct feasibility *question, struct allocation *taken);

/* REASON_NONE: it may, if only after a pod that waits there. `node` NULL: nobody knows it.
 * `ret_placement`, if not NULL, is set where it may. */
enum reason feasibility_ask(struct feasibility *question, const struct node *node,
                            struct placement *ret_placement);

/* The node that was asked about last, and takes the pod, would not let it wait, even if all come before
 * it that are on their way there (queue/hints.h). `seen` is then the node with those. `ret_placement`, if
 * not NULL, is set if so. */
bool feasibility_at_once(struct feasibility *question, struct placement *ret_placement);

/* How many pods the node side of that node has yet to serve, those on their way included; after
 * feasibility_at_once. */
int32_t feasibility_ahead(const struct feasibility *question);

/* Whether the answer depends on nothing but the request and the node's version, so that it may be
 * remembered. Then the pod waits for nobody there. */
bool feasibility_lasts(struct feasibility *question, const struct node *node);
/* The same but for limits: the answer was of the cards alone, or is a limit's. */
bool feasibility_lasts_beside_limits(struct feasibility *question, const struct node *node);
/* The same for all nodes of which feasibility_is_calm is true and was when it was remembered, as long as
 * their versions are: nothing of the pod but its request counts, nor who came before it. */
bool feasibility_is_plain(const struct feasibility *question);
bool feasibility_is_plain_beside_limits(const struct feasibility *question);
/* What is to be remembered of the node that was asked about last, without ret_placement, and lasts; and what follows
 * from it for this question. False: it is to be asked anew. */
struct node_verdict feasibility_verdict(const struct feasibility *question, enum reason reason);
bool feasibility_recall(struct feasibility *question, const struct node_verdict *verdict,
                        enum reason *ret_reason);
/* Nobody is on the way to the node or has room kept on it, and no gate has marked it, as far as the question, which is of
 * many, knows. */
bool feasibility_is_calm(const struct feasibility *question, const struct node_pulse *pulse);

/* What kube-scheduler leaves the node out for, before it asks: core/constraints.h, or CPU, memory or
 * the number of pods of the node. Of a pod whose constraints nobody has read only whether the node is cordoned. */
enum barrier feasibility_barrier(struct feasibility *question, const struct node *node);
/* A sentence with label, taint or numbers. Free with g_free; NULL for BARRIER_NONE. */
char *feasibility_tell_barrier(struct feasibility *question, const struct node *node,
                               enum barrier barrier);

/* How good the placement would be on `node`, which was asked about last and takes the pod. The rank has the
 * node's own name: what was seen may be gone when the next node has been asked about. */
void feasibility_rate(const struct feasibility *question, const struct policy *policy,
                      const struct node *node, const struct placement *placement,
                      struct rank *ret_rank);

/* What preemption finds on a node once pods there may have ended. */
struct feasibility_opening {
    const struct node
        *seen; /* with those for whom room is kept, without the cards and places that are
                              * left out; until the next question */
    struct gates_relief
        *relief; /* what quotas lack, for pods there to give back; NULL: nothing. The caller's */
};

/* Whether the end of pods on the node, which is there, could let the pod in: REASON_NONE, or a reason that no
 * end there mends. preempt, its preview, reclaim and the choice of nodes that are kept for a group ask it. It asks every
 * rule but the cards, of which only the search for pods to end knows, and the order of arrival, which leaves the room
 * to an older pod, but not unused. `seen` of `ret_opening` is NULL if a gate is shut; its relief is set for
 * REASON_NONE. */
enum reason feasibility_open(struct feasibility *question, const struct node *node,
                             struct feasibility_opening *ret_opening);

/* feasibility_ask, and kube-scheduler asks about the node at all. False as well where what the work may take
 * is spent (`work.cut`). */
bool feasibility_takes(struct feasibility *question, const struct node *node,
                       struct placement *ret_placement);
