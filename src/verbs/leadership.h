/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which of several replicas may bind. One at a time serves, in terms that it numbers; what is
 * booked in a term is sent in that term or not at all, since between two terms others may have
 * given away what the ledger took for free.
 *
 * Two things keep two replicas from granting one card twice:
 *  - No Binding is sent before the journal (verbs/journal.h) that holds it has been stored, with
 *    a write that succeeds only while this replica holds the Lease. Whoever takes over reads the
 *    journal in the same step, so a Binding that arrives late finds its place kept.
 *  - None is under way after until_ms, which lies well before others may take over.
 *
 * The functions take no leadership (NULL) for a single replica, which always may. Any thread, but not with
 * the store locked.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct leadership;

struct leadership_ops {
    /* The term in which this replica serves; 0: it stands by. */
    uint64_t (*term)(struct leadership *leadership);

    /* Until when (monotonic milliseconds) what writes in this term may be under way; 0: the term
     * is over. */
    int64_t (*until_ms)(struct leadership *leadership, uint64_t term);

    /* Blocks until the journal has been stored with all that was in it when this was called.
     * False, with an error: the term is over, or it was not done by the deadline. */
    bool (*publish)(struct leadership *leadership, uint64_t term, int64_t deadline_ms, GError **error);
};

/* Implementations embed this as their first member. */
struct leadership {
    const struct leadership_ops *ops;
};

uint64_t leadership_term(struct leadership *leadership);

/* The deadline, or the end of the term if that is sooner; in the past once the term is over. */
int64_t leadership_cut(struct leadership *leadership, uint64_t term, int64_t deadline_ms);

bool leadership_publish(struct leadership *leadership, uint64_t term, int64_t deadline_ms, GError **error);

/* Sets what kube-scheduler is told by a replica that stands by: constant, as all that it is told. */
void leadership_set_error(GError **error);
