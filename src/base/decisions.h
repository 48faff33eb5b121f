/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The last decisions of the verbs, for people: what was asked about which pod, what came of it and
 * why. A question about the same pod with the same answer as before counts, and adds no entry, so
 * that a pod that kube-scheduler asks about again and again does not displace the others.
 *
 * One ring for the process, like the metrics. Any thread; its lock is held to copy an entry.
 */
#include "base/metrics.h"
#include "core/reason/reasons.h"

#include <gpuledger/reason.h>

#define DECISIONS_MAX 100  /* kept */
#define DECISION_REASONS 3 /* told of one: those of the most nodes */

struct decision {
    enum verb verb; /* VERB_FILTER or VERB_BIND */
    const char *ns, *name;
    const char *node; /* of a bind; else NULL */
    int32_t card;     /* of a bind that chose one; else negative */
    size_t n_nodes, n_taking;               /* of a filter: offered, and those that take the pod */
    struct {
        enum reason reason;
        uint64_t n;
    } refusals[DECISION_REASONS]; /* of a filter; n 0: no more */
    const char *result; /* of a bind, a constant (bind_result_names); else NULL */
    const char *policy; /* of a bind that chose a card, a constant; else NULL */
    const char *why;    /* the error, or NULL */
};

/* Fills the refusals from how many nodes gave each reason. */
void decision_set_refusals(struct decision *decision, const uint64_t counts[REASONS_MAX]);

/* Copies what it needs. `now_s`: Unix time. */
void decisions_note(const struct decision *decision, int64_t now_s);

struct decision_row {
    struct decision decision; /* strings borrowed until the visitor returns */
    int64_t first_s, last_s;  /* Unix time */
    uint64_t times;
};
/* The latest first. The visitor runs without the lock. */
void decisions_each(void (*visit)(const struct decision_row *row, void *data), void *data);
