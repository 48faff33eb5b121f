/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a bind does under the store's lock: look at the ledger, book, and write down how the Binding
 * went. No I/O, and no clock but the moment's, so that each look can be recorded and repeated.
 */
#include "verbs/journal.h"
#include "base/metrics.h"
#include "wire/extender.h"

enum attempt_step {
    ATTEMPT_SEND,       /* a reservation is ours to send */
    ATTEMPT_DONE,       /* nothing left to do */
    ATTEMPT_FETCH,      /* the pod is not known here: ask the API server what it asks for */
    ATTEMPT_WAIT_NODE,  /* until the node side has matched an earlier pod: look again */
    ATTEMPT_WAIT_GROUP, /* until the other pods of its group have come: look again */
    ATTEMPT_WAIT_BIND,  /* until another bind of the pod has ended: look again */
    ATTEMPT_FAILED,
    ATTEMPT_STEP_N
};

/* A bind as far as its looks are concerned; from one look to the next it is kept. */
struct attempt {
    const struct bind_args *args;
    struct journal *journal;       /* NULL: none */
    bool journal_full;             /* it had no room for the booking */
    struct request *request;       /* what the pod asks for, once that is known; owned */
    int64_t priority;              /* the pod's, likewise */
    bool fetched;                  /* by a GET, since the watch had not shown the pod */
    const struct dialect *dialect; /* NULL: no GPU */
    int64_t send_until_ms;         /* a reservation made later cannot be sent */
    int32_t card;
    int64_t assume_time_ns; /* of the booking, by which it is known again; 0: none */
    bool marks_group;       /* its Binding says so */
    uint32_t came_with;     /* how many the group needs */
    bool grouped;           /* its place is its group's, and it is kept to it */
    bool distrusted;        /* an earlier Binding of the pod may still be carried out */
    bool seals;             /* what is granted is to be sealed */
    char *facts;            /* what is to be sealed of it; owned, or NULL */
    struct annotations annotations;
    enum bind_result result;
    enum reason waits; /* ATTEMPT_WAIT_NODE: for what */
    int64_t wait_ms; /* ATTEMPT_WAIT_NODE: after which patience ends, and the answer with it, unless
                            * something happens; INT64_MAX: nothing tells */
    uint64_t call;   /* the number of its first look in a record; 0: none */
    GString *asks;   /* for a record: the pod that the API server was asked for; owned, or NULL */
};

/* Sets result and error. False. */
bool attempt_fail(struct attempt *attempt, enum bind_result result, GError **error,
                  const char *text);

/* When waiting for the rest of a group ends, so that there is time left to bind the pod. */
int64_t attempt_group_ends(const struct attempt *attempt);

/* Under the lock, which the moment is of. */
enum attempt_step attempt_look(struct attempt *attempt, struct store *store, struct ledger *ledger,
                               const struct moment *moment, GError **error);

/* Under the lock: the Binding of the pod ended so. */
void attempt_conclude(struct store *store, const char *uid, enum bind_result result,
                      const struct moment *moment);

void attempt_clear(struct attempt *attempt);

/* The pod, fetched, as text for whoever observes: `asks`. Free with g_string_free. */
GString *attempt_describe(const struct pod_view *pod);
