/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods that wait for a node, in the order in which they came: creation time, then the order in
 * which the watch told of them.
 *
 * What becomes free is offered to the pod that has waited longest, not to the one that happens to
 * ask first: a younger pod, unless it is more important, leaves a node alone that would take an
 * older one now and not both. For the oldest of those that fit nowhere a place is kept (reservation.h),
 * beside which younger ones must fit, now and when the older one has come.
 *
 * Only who asks is waited for: about whom filter was asked, for as long as kube-scheduler goes on asking.
 * One that kube-scheduler's own sums leave out on every node cannot ask, and counts all the same, unless
 * something else may keep it from asking: gates, another scheduler, a selector. One namespace has at most
 * half of the places, and half of those who are waited for, while pods of another wait.
 *
 * Once an older pod could come, it is waited for a while only. It may be kept from that node, or from
 * asking, by something that only kube-scheduler knows; it gets another chance, and another place, when
 * it has asked. So it is where only pods of its own namespace are still in its way.
 *
 * Guarded by the store's lock.
 */
#include "json/json.h"
#include "queue/reservation.h"

/* Older pods looked at for one answer, at most; and those of them who find a place on one node
 * together: where so many do, there is room. */
#define ARRIVALS_OLDER_MAX 256
#define ARRIVALS_TOGETHER_MAX 16
/* How long somebody counts who goes on asking. kube-scheduler asks again about whom it has refused five
 * minutes later at the latest (--pod-max-in-unschedulable-pods-duration; 60 s before 1.24). */
#define ARRIVALS_ASKING_MS (6 * 60 * 1000)
/* Schedulers that are told apart; pods of others count only once they have asked. */
#define ARRIVALS_SCHEDULERS_MAX 64
/* Pods for which a place is kept, at most; and, for each of these, pods looked at for it. */
#define ARRIVALS_PLACES_MAX 64
#define ARRIVALS_LOOKS 2

struct pod_facts;
struct arrivals;

struct arrivals *arrivals_new(void);
void arrivals_free(struct arrivals *arrivals);

/* A pod waits; borrows the request, until the pod is forgotten or another one is given. A pod that is
 * known keeps its turn. `plain`: nothing but sums can keep kube-scheduler from asking about it. */
struct arrivals_pod {
    const struct pod_view *view;
    const struct request *request;
    struct pod_facts *facts;
    bool plain;
    bool grouped; /* it comes with others (gang/gangs.h), for whom no place is kept here yet */
};
void arrivals_add(struct arrivals *arrivals, const struct arrivals_pod *pod);
void arrivals_forget(struct arrivals *arrivals, const char *uid);
/* What `from` knows apart from its pods. */
void arrivals_copy_common(struct arrivals *arrivals, const struct arrivals *from);
/* Adds a pod with the place that it has in `from`, if it has one. */
void arrivals_copy(struct arrivals *arrivals, const struct arrivals *from, const char *uid,
                   const struct request *request);

struct older_pod {
    const char *uid, *ns;
    int64_t priority;
    const struct request *request;
};

struct arrivals_query {
    struct ledger *ledger;
    const struct nominees *nominees; /* as the younger pod finds the nodes, its UID and priority */
    const struct quotas *quotas;
    const struct gangs *gangs;
    /* Whether a rule beside the cards closes the node to the older pod, whatever is free there. */
    bool (*shut_out)(const void *gates, const struct older_pod *pod, const struct node *node);
    const void *gates;
    int64_t now_ms;      /* monotonic */
    int64_t patience_ns; /* with which older pods are answered, whoever asks */
    int64_t hold_ms;     /* how long an older pod may take to come; 0: nobody is waited for */
    int64_t n_places;    /* older pods for which a place is kept; 0: who fits nowhere is passed */
    bool all_ask;        /* see struct store_options */
    GPtrArray *older;    /* those that count, the oldest first: arrivals_settle's; to be freed */
};

/* Before nodes are asked about: chooses places for the oldest pods that have none, or none any
 * more, and finds out who is older. */
void arrivals_settle(struct arrivals *arrivals, struct arrivals_query *query);

/* filter was asked about the pod. */
void arrivals_ask(struct arrivals *arrivals, const char *uid, int64_t now_ms);

/* To whom the pod should leave a node. */
struct arrivals_older {
    const char *title;               /* "NAMESPACE/NAME"; NULL: to nobody */
    const struct reservation *place; /* kept for it on this node; NULL: it may come now */
};

/* A node that is asked about. Older pods are judged by what they find there themselves: what is kept for
 * the pod that asks (nominations.h) is kept from them, and the other way round. */
struct arrivals_node {
    const struct node *as_it_is;
    const struct node *seen; /* as the pod that asks finds it */
};

/* For a node that would take the pod, and where. Valid until anything is forgotten or settled. */
struct arrivals_older arrivals_yield(const struct arrivals_node *node,
                                     const struct placement *placement,
                                     const struct arrivals_query *query);

/* The node, as the pod finds it, with what older pods will have of it, as reservations_cover has it; NULL: nothing is kept there.
 * Free with what_if_free. */
struct what_if *arrivals_cover(const struct arrivals *arrivals, const struct node *node,
                               const struct arrivals_query *query);
/* To whom a node is left that took the pod, but not so covered. */
struct arrivals_older arrivals_leave(struct arrivals *arrivals, const struct arrivals_node *node,
                                     const struct arrivals_query *query);

/* Nobody older has to be left anything, on any node. */
bool arrivals_are_idle(const struct arrivals *arrivals, const struct arrivals_query *query);

/* The pod has asked and found a node. */
void arrivals_renew(struct arrivals *arrivals, const char *uid);

/* What has come of a pod's waiting, for who goes on from it elsewhere (store/images/queue_state.h). */
struct queue_entry {
    const char *uid;
    bool asked;          /* filter was asked about it */
    int64_t asking_ms;   /* until when it counts as asking; INT64_MAX: it cannot ask; 0: never */
    int64_t looked_ms;   /* when it was last seen whether it could; or 0 */
    int64_t until_ms;    /* how long others leave room for it; 0: nobody has had to yet */
    int64_t hopeless_ms; /* when it was seen that no node could ever take it; or 0 */
    const struct reservation *place; /* where it will go, or NULL */
    bool settled;                    /* looked at since anything last changed that it depends on */
};

/* More is kept for pods on their way than before (queue/hints.h). */
void arrivals_note_kept(struct arrivals *arrivals);

/* A set of names: those that have asked. */
GHashTable *arrivals_schedulers(const struct arrivals *arrivals);
/* `ns`: of the pod that it has asked about, which may bring half of them; NULL: it was known before. */
void arrivals_note_scheduler(struct arrivals *arrivals, const char *name, const char *ns);

/* The same for a record: "schedulers":[NAME,…], sorted, and, unless all were known before, "broughtBy":[NAMESPACE,…]
 * of the same length, "" for those. */
struct arrivals_scheduler {
    const char *name, *ns; /* the latter NULL: it was known before */
};
/* The caller's; texts are borrowed. */
GArray *arrivals_list_schedulers(const struct arrivals *arrivals);
void arrivals_encode_schedulers(struct json_writer *writer, const GArray *schedulers);
void arrivals_learn_schedulers(struct arrivals *arrivals, const cJSON *names,
                               const cJSON *brought_by);

/* All that of one moment, of which there may be thousands, taken a few pods at a time (base/roll.h): of
 * the pods that have not just come, and the schedulers that have asked. One at a time. */
struct arrivals_image;
struct arrivals_image *arrivals_image_new(void);
void arrivals_image_free(struct arrivals_image *image); /* once it is complete, or has not begun */
typedef struct arrivals_image arrivals_image;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(arrivals_image, arrivals_image_free)
/* Under the lock: it is of this moment. */
void arrivals_image_begin(struct arrivals_image *image, struct arrivals *arrivals,
                          const struct ledger *ledger, const struct nominations *nominations);
/* Under the lock: some more pods. False: it is complete. */
bool arrivals_image_take(struct arrivals_image *image);
/* Of a complete one, while it lasts, without the lock: struct queue_entry, in order; struct arrivals_scheduler. */
const GArray *arrivals_image_entries(struct arrivals_image *image);
const GArray *arrivals_image_schedulers(const struct arrivals_image *image);
/* Takes these for all that has come of waiting; pods that nobody knows are passed over. Not while an
 * image is taken. */
void arrivals_learn(struct arrivals *arrivals, const struct ledger *ledger,
                    const struct nominations *nominations, const GArray *entries);

/* A pod that waits, for people; borrowed. */
struct arrivals_row {
    const char *uid, *ns, *title; /* "NAMESPACE/NAME" */
    const char *created;          /* RFC 3339, or NULL */
    int64_t priority;
    const struct request *request;
    const struct reservation *place; /* where it will go, or NULL */
    bool asked;                      /* filter was asked about it */
    int64_t asking_ms;               /* until when its scheduler counts as asking; 0: it does not */
};
/* False: it was the last that is wanted. */
typedef bool (*arrivals_visit)(const struct arrivals_row *row, void *data);
/* Behind which pod to go on; zeros: at the first one. To be cleared. */
struct arrivals_cursor {
    bool begun;
    char *created;
    uint64_t number;
};
void arrivals_cursor_clear(struct arrivals_cursor *cursor);
/* The next few, in order. False: there are no more, or none that are wanted. */
bool arrivals_walk(const struct arrivals *arrivals, struct arrivals_cursor *cursor,
                   arrivals_visit visit, void *data);
guint arrivals_n(const struct arrivals *arrivals);

/* The place of a pod, for tests; NULL: it has none, or needs none. */
const struct reservation *arrivals_place(const struct arrivals *arrivals, const char *uid);
