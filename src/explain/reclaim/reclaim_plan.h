/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who gives back what a namespace has borrowed (quota/elastic/elastic_quotas.h), so that pods come of a namespace
 * that is within its min: policy/reclaim.h on all nodes, for one pod or for those of a group together.
 *
 * Found out on a copy of the store as it will be: without the pods that end already, and with those that
 * have claims (wire/claim.h) on the room that was made for them. A namespace is within its min with all
 * that its pods hold, those included that end, and with its claims. One thread.
 */
#include "store/feasibility.h"

enum reclaim_answer {
    RECLAIM_FOUND,
    RECLAIM_NO_MIN,    /* the namespace is sure of nothing that the pod asks for */
    RECLAIM_ABOVE_MIN, /* it would be above its min */
    RECLAIM_ROOM, /* nobody need give back: there is room, or will be when those have ended that end */
    RECLAIM_NOBODY,     /* nobody who may end has borrowed anything where the pod may go */
    RECLAIM_TOO_LITTLE, /* even if all of them ended there would be no room */
    RECLAIM_WORK_LIMIT, /* a search was cut short: whether pods have to end is not known */
    RECLAIM_N
};
/* For metrics and JSON, "above_min"; and for people. */
const char *reclaim_code(enum reclaim_answer answer);
const char *reclaim_text(enum reclaim_answer answer);

/* A pod that waits. */
struct reclaim_pod {
    const struct pod_view
        *view; /* with namespace, name, priority and constraints; its UID may be NULL */
    const struct request *request;
};

/* A pod that is to end. */
struct reclaim_end {
    char *ns, *name, *uid, *node;
    int64_t gpus; /* thousandths of a card */
    int64_t priority;
    guint pod; /* for whom, in the order of the question */
};

/* Where a pod will be. */
struct reclaim_place {
    char *node;
    int32_t card; /* CARD_UNKNOWN: several, or only the node side knows */
};

struct reclaim_plan {
    enum reclaim_answer answer;
    GArray
        *places;  /* struct reclaim_place, of each of the pods; empty unless it is RECLAIM_FOUND */
    GArray *ends; /* struct reclaim_end, likewise */
};
void reclaim_plan_free(struct reclaim_plan *plan); /* NULL is ignored */
typedef struct reclaim_plan reclaim_plan;          /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(reclaim_plan, reclaim_plan_free)

struct reclaim_ground;

/* The cluster as it will be. `stays` says who may not end, if not NULL. Takes the store's lock. */
struct reclaim_ground *
reclaim_ground_new(struct store *store,
                   bool (*stays)(const struct allocation *allocation, void *data), void *data);
void reclaim_ground_free(struct reclaim_ground *ground); /* NULL is ignored */
typedef struct reclaim_ground reclaim_ground;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(reclaim_ground, reclaim_ground_free)

/* All of the pods get room, or nobody ends. Of RECLAIM_FOUND and RECLAIM_ROOM the ground is then as if they
 * had come, for the next question; of others it is as before. */
struct reclaim_plan *reclaim_plan_make(struct reclaim_ground *ground,
                                       const struct reclaim_pod *pods, size_t n);
/* The plan is given up after all. */
void reclaim_plan_undo(struct reclaim_ground *ground);

/* A pod of the ground that waits, as its watch has shown it; false: it does not, as one that has a claim's or a plan's
 * room there, or where it may go cannot be read. Borrowed from the ground. */
bool reclaim_ground_pod(const struct reclaim_ground *ground, const char *uid,
                        struct pod_view *ret_view, struct reclaim_pod *ret_pod);

/* What claims keep for pods that have not come, by the account in which these count. */
struct reclaim_promises *reclaim_promises_new(void);
void reclaim_promises_free(struct reclaim_promises *promises); /* NULL is ignored */
typedef struct reclaim_promises reclaim_promises;              /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(reclaim_promises, reclaim_promises_free)

/* Whether the pod's account is still sure of what the pod would hold on the node, beside what it has been promised;
 * if so, it is promised that, too. Under the store's lock. */
bool reclaim_is_sure(struct store *store, struct reclaim_promises *promises, const char *node,
                     const char *uid);

/* Whether a pod that is to end may still: it holds something on the claim's node, what its namespace has borrowed is
 * still as much, and the claimant is still sure of what that lends to it. A claim stands on a Node, where kubelet may
 * write what it likes, so it concerns that Node alone. Under the store's lock; `claimant` with UID and namespace;
 * `going`: the UIDs, a set, of those that end for claims. */
bool reclaim_may_end(struct store *store, GHashTable *going, const struct pod_view *claimant,
                     const char *node, const char *uid);
