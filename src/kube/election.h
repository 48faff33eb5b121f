/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who holds the Lease, as one candidate sees it: what was last seen and when, and what to do next.
 * Pure decisions, no I/O, no clock and no thread; kube/lease.c carries them out. The rules are those
 * of client-go's tools/leaderelection with coordination.k8s.io/v1:
 *
 *  - Times in the Lease are never compared with our clock. A Lease counts as held for its duration
 *    from the moment at which we first saw it in its present version.
 *  - It is only ever written in the version that was last seen, so that of two writers one loses.
 *  - A Lease asks for as long as its holder likes, or as somebody has edited it to. Nobody waits
 *    for longer than ELECTION_PATIENCE_MS, or our own duration if that is more. That is a wait in
 *    vain at worst: what keeps two from serving is that each write names the version it replaces.
 *  - Who has never seen a Lease waits before he makes one: there may have been one that somebody has
 *    deleted, and what its holder has sent may still be on its way, while its journal is gone.
 *  - A holder whose renewals do not come through stops in time: the renew deadline counts from the
 *    moment before the last good write was sent, so that it is over before anybody else's wait is.
 *
 * All times are monotonic milliseconds; outcomes are those of the calls (store/cluster.h).
 */
#include "store/cluster.h"
#include "wire/lease.h"

#define ELECTION_PATIENCE_MS 60000

struct election_options {
    const char *identity;      /* borrowed; no two candidates share one (lease_identity) */
    int64_t duration_ms;       /* for whom sees our Lease; whole seconds */
    int64_t renew_deadline_ms; /* below the duration */
    int64_t retry_ms;          /* between renewals; looking on is done four times as often */
    int64_t first_wait_ms;     /* before a Lease is made by who has never seen one */
};

enum election_step {
    ELECTION_WAIT,
    ELECTION_READ,
    ELECTION_CREATE, /* there is none: make it, as its holder */
    ELECTION_TAKE,   /* it is free */
    ELECTION_RENEW,
};

struct election {
    struct election_options options;
    bool seen;           /* anything, be it that there is no Lease */
    bool exists;
    char *version;       /* as seen last */
    char *holder;        /* "": nobody; after a Lease has vanished who held it */
    int64_t duration_ms; /* that the holder is given */
    int64_t asked_ms;    /* that it asks for */
    int64_t seen_ms;     /* when it was first seen so, or first looked for in vain */
    int64_t looked_ms;   /* when it was last read or written */
    int64_t renewed_ms;  /* the write that makes us the holder began then; meaningless otherwise */
    bool holding;
    bool distrusted;       /* a call failed: read before anything else */
    int64_t pause_until_ms;
};

void election_init(struct election *election, const struct election_options *options);
void election_release(struct election *election);

/* What to do now. ELECTION_WAIT: nothing until `ret_until_ms`, or until `eager` or `willing`
 * change. `willing`: take the Lease if it is free. `eager`: renew it now although it is not due.
 * Notices that our time is over; so ask again after every call and every wait. */
enum election_step election_next(struct election *election, int64_t now_ms, bool willing,
                                 bool eager, int64_t *ret_until_ms);

/* How a call went: what was read (NULL: there is no Lease), what was written by a call that began at
 * `began_ms`, or that it failed. Of the Lease no more than version, holder and duration count. */
void election_read(struct election *election, const struct lease_view *lease, int64_t now_ms);
void election_wrote(struct election *election, const struct lease_view *lease, int64_t began_ms,
                    int64_t now_ms);
void election_failed(struct election *election, enum outcome outcome, int64_t now_ms);

/* We hand the Lease over, or are about to. */
void election_resign(struct election *election);

/* Until when we may act as its holder; 0: we are not. */
int64_t election_until_ms(const struct election *election);
