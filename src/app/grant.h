/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a bind does under the store's lock: look at the ledger, book, and write down how the Binding
 * went. No I/O, and no clock but the moment's, so that each look can be recorded and repeated.
 */
#include "app/journal.h"
#include "app/metrics.h"
#include "wire/extender.h"

enum grant_step {
    GRANT_SEND,      /* a reservation is ours to send */
    GRANT_DONE,      /* nothing left to do */
    GRANT_FETCH,     /* the pod is not known here: ask the API server what it asks for */
    GRANT_WAIT_NODE, /* until the node side has matched an earlier pod: look again */
    GRANT_WAIT_BIND, /* until another bind of the pod has ended: look again */
    GRANT_FAILED,
    GRANT_STEP_N
};

/* A bind as far as its looks are concerned; from one look to the next it is kept. */
struct grant {
    const struct bind_args *args;
    struct journal *journal;       /* NULL: none */
    struct request *request;       /* what the pod asks for, once that is known; owned */
    int64_t priority;              /* the pod's, likewise */
    bool fetched;                  /* by a GET, since the watch had not shown the pod */
    const struct dialect *dialect; /* NULL: no GPU */
    int64_t send_until_ms;         /* a reservation made later cannot be sent */
    int32_t card;
    int64_t assume_time_ns; /* of the booking, by which it is known again; 0: none */
    bool doubtful; /* an earlier Binding of the pod may still be carried out */
    bool seals;                    /* what is granted is to be sealed */
    char *facts;                   /* what is to be sealed of it; owned, or NULL */
    struct annotations annotations;
    enum bind_result result;
    enum reason waits; /* GRANT_WAIT_NODE: for what */
    uint64_t call; /* the number of its first look in a record; 0: none */
    GString *asks; /* for a record: the pod that the API server was asked for; owned, or NULL */
};

/* Sets result and error. False. */
bool grant_fail(struct grant *grant, enum bind_result result, GError **error, const char *text);

/* Under the lock, which the moment is of. */
enum grant_step grant_look(struct grant *grant, struct store *store, struct ledger *ledger,
                           const struct moment *moment, GError **error);

/* Under the lock: the Binding of the pod ended so. */
void grant_conclude(struct ledger *ledger, const char *uid, enum bind_result result,
                    const struct moment *moment);

void grant_clear(struct grant *grant);
