/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is told, in one order, of all that changes a store and of what the verbs decide from it: the
 * recorder (record/recorder.h). The store knows no more of it than this.
 *
 * What happens gets its number under the store's lock, and is told under that number by the same
 * thread, mostly after it has let go of the lock. The number 0 means that nobody wants to be told.
 * Pointers of an observation are good until `tell` returns.
 */
#include "base/metrics.h"
#include "wire/kubernetes.h"

#include <stdbool.h>
#include <stdint.h>

enum observed {
    OBSERVED_LIST_BEGIN,   /* feed */
    OBSERVED_LIST_END,     /* feed, spared */
    OBSERVED_NODE,         /* node, paused, change_ms */
    OBSERVED_NODE_GONE,    /* key: its name */
    OBSERVED_POD,          /* pod, trust, quota, unread */
    OBSERVED_ASKED_POD,    /* pod, confirmed, quota: what a GET said of it */
    OBSERVED_POD_ENDED,    /* key: its UID, as in all that follow of pods */
    OBSERVED_POD_VANISHED, /* key */
    OBSERVED_POD_REJECTED, /* key, rejection */
    OBSERVED_OBJECT,       /* feed, view: of another kind (store/kinds/kind.h) */
    OBSERVED_OBJECT_GONE,  /* feed, view: only namespace and name */
    OBSERVED_POLICY,       /* key: the policy's name, patience_ms */
    OBSERVED_RESUME,       /* key: a node's name */
    OBSERVED_TIME,         /* moment: somebody is waited for no longer */
    OBSERVED_REFUSED,      /* key: the API server has carried out none of its Bindings */
    OBSERVED_DROPPED,      /* key: no pod was found for its allocation */
    OBSERVED_INHERITED,    /* key, booking: another replica has left it */
    OBSERVED_CALL,         /* call, reply: filter, prioritize or preempt has answered */
    OBSERVED_LOOK,         /* moment, attempt, ledger, failure: a bind has looked; under the lock */
    OBSERVED_CONCLUSION,   /* moment, key, result: a bind has ended */
    OBSERVED_PART,         /* part, image */
    OBSERVED_LEDGER,       /* held: a node of it */
    OBSERVED_PROMISE,      /* stray: it is so */
    OBSERVED_PROMISE_GONE, /* stray: its dialect and UID: it is not */
    OBSERVED_OUTLOOK_BEGUN, /* a value model is being made of what is known now */
    OBSERVED_OUTLOOK,       /* decisions go by it from here on */
    OBSERVED_MOVE,          /* key: the UID of a pod that a plan moves, move */
    OBSERVED_EVICTION,      /* key: the UID of a pod, eviction */
    OBSERVED_N
};

/* The API server has answered an eviction, or has not. */
struct observed_eviction {
    const char *capability, *outcome; /* as in gpuledger_evictions_total */
    const char *whom;                 /* for whom it ends, for people */
    const char *ns, *name, *uid, *node;
};

/* A step of a plan that is carried out. */
struct observed_move {
    const char *plan;    /* whose it is: "NAMESPACE/NAME" of its ConfigMap */
    const char *outcome; /* "begun", "moved", "failed", "gone" */
    const char *ns, *name, *uid;
    const char *from, *to; /* nodes */
    const char *why;       /* NULL: there is nothing to say */
};

struct observation {
    enum observed what;
    uint64_t number;
    const char *key;
    enum feed feed;
    bool spared; /* see store_list_spare */
    const struct node_view *node;
    int64_t change_ms; /* monotonic: since when the node is being changed; 0: it is not */
    const struct pod_view *pod;
    bool unread; /* without a node, it asks for nothing that can be read any more */
    const void *view;
    int trust; /* enum trust */
    const char
        *quota; /* the elastic quota that the pod asked for, "" for none; NULL: its label says so */
    bool paused, confirmed;
    const struct rejection *rejection;
    int64_t patience_ms;
    const struct moment *moment;
    const char *booking; /* as booking_encode writes it */
    const struct call *call;
    const GString *reply;
    const struct attempt *attempt;
    int step; /* enum attempt_step: what came of the look */
    const GError *failure;
    enum bind_result result;
    const struct ledger *ledger;
    const struct held_node *held; /* store/images/ledger_reader.h */
    const struct part *part;      /* gate/part.h */
    void *image;                  /* complete */
    const struct observed_move *move;
    const struct observed_eviction *eviction;
    const struct stray *stray;
};

/* Whoever observes embeds this as the first member. */
struct observer {
    /* Under the store's lock; 0: what happens now will not be told. */
    uint64_t (*number)(struct observer *observer);
    /* Once for each number but 0; never blocks. */
    void (*tell)(struct observer *observer, const struct observation *observation);
};

/* NULL observers are ignored, and give 0. */
uint64_t observer_number(struct observer *observer);
void observer_tell(struct observer *observer, const struct observation *observation);
