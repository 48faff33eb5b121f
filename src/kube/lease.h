/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Leader election by a Lease of coordination.k8s.io/v1, and the leadership that verbs ask (verbs/leadership.h).
 * A thread of its own looks on, takes the Lease when it is free, renews it, and writes the journal
 * (verbs/journal.h) into one of its annotations with every write.
 *
 * A term begins when the Lease has been taken, the former holder's journal has been read and a list
 * of the pods that began after that has ended. It ends when the Lease is lost or given back, or when
 * it could not be renewed in time. The rules of taking and renewing are in kube/election.h.
 */
#include "verbs/leadership.h"
#include "verbs/journal.h"
#include "kube/api_client.h"

#define LEASE_JOURNAL_KEY "gpuledger.io/bookings"

/* How the pods are read afresh; both are called by the lease's thread and must not block. */
struct lease_refresh {
    uint64_t (*begin)(void *data); /* from now on; returns a number to ask by */
    bool (*is_done)(void *data, uint64_t number);
    void *data;
};

/* Strings are copied; all else is borrowed. The client should be the lease's own, so that nothing
 * keeps a renewal waiting. Durations: retry * 1.2 < renew deadline < duration, which is in whole
 * seconds. */
struct lease_args {
    struct api_client *client;
    struct store *store;
    struct journal *journal;
    struct lease_refresh refresh;
    /* Called by the lease's thread when a term has begun or ended, or NULL. Must not block. */
    void (*changed)(void *data, bool serves);
    void *changed_data;
    const char *ns;
    const char *name;
    const char *identity; /* no other process may have it: see lease_identity */
    int64_t duration_ms;
    int64_t renew_deadline_ms;
    int64_t retry_ms;
    int64_t first_wait_ms; /* before a Lease is made where none was ever seen */
    int64_t (*slept_ms)(void); /* of tests; NULL: clock_slept_ms */
};

/* A holder's name that no other process has: `name`, "_" and eight random hexadecimal digits. A replica
 * takes a Lease with its own identity for its own, so two of one name would both serve; nor must a
 * restarted container take itself for the one before. g_free. */
char *lease_identity(const char *name);

struct lease;

/* The Lease is not taken before the store is synced. NULL with an error: a name that cannot be, or
 * no thread. */
struct lease *lease_start(const struct lease_args *args, GError **error);

/* Valid until lease_free. */
struct leadership *lease_leadership(struct lease *lease);

/* Whether this replica serves; false sets why not (g_free). Any thread. */
bool lease_is_held(struct lease *lease, char **ret_why);

/* Ends the term, gives the Lease back so that another replica may take it at once, and ends the
 * thread. Bookings whose fate is open are in the journal that is left behind. */
void lease_stop(struct lease *lease);

/* Stops it if need be; NULL is fine. No verb may be running. */
void lease_free(struct lease *lease);
