/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One step of one node's switch: reads the Node and, where that matters, its pods, finds out what is next
 * (machine.h), and does it: a merge patch that the API server refuses if the Node has changed meanwhile,
 * or evictions. All that one step changes of a Node is in one patch.
 */
#include "evict/moves.h"
#include "switch/machine.h"
#include "evict/permits.h"
#include "verbs/leadership.h"

#include <gpuledger/dialect.h>

/* For how long a Binding may be on its way that was sent before anybody knew of the switch. */
#define SWITCH_SETTLE_S 30

struct node_switch {
    struct api_client *client;
    struct cluster *cluster; /* whose pods are listed */
    struct store *store; /* whose bookings count as well; NULL: none, so Bindings are waited for */
    const struct calendar *calendar; /* these as in struct switch_sight */
    const char *replicas;
    struct switch_limits limits;
    struct permits *permits; /* as struct door_order has them */
    const char *moves_ns;    /* where the moves of the hour are (struct moves), if it has a bound */
    const struct dialect_options *dialects;
    const struct switch_mark
        *only;    /* what may be carried out, at whatever time; NULL: whatever is announced */
    bool dry_run; /* nothing is written */
    struct leadership *leadership; /* asked before each write; NULL: there is no other replica */
    uint64_t term;                 /* in which nothing else may be written */
};

struct node_look {
    enum switch_event event; /* what was, or would be, done */
    enum switch_phase phase; /* before that */
    bool stuck;
    const char *waits; /* a constant, or NULL */
    guint n_holders, n_evicted;
    char *label, *is, *mark; /* NULL: there is none */
    char *unread; /* why the hour of evictions is not known; NULL: it is, or nobody asked */
};
void node_look_clear(struct node_look *look);

/* OUTCOME_CONFLICT: somebody else has written; look again. OUTCOME_REFUSED: among others, something is announced
 * that may not be carried out. `wanted`, if not NULL, is announced first unless something is already:
 * LABEL=VALUE, now. */
enum outcome node_switch_look(const struct node_switch *with, const char *node,
                              const struct switch_mark *wanted, struct node_look *ret_look,
                              GError **error);
