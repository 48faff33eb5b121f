/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Audits now and then, in a thread of its own, one at a time, and keeps the last report for whoever
 * asks. Between audits it looks at the ledger alone, which costs the API server nothing, and has
 * pods told what is wrong with them.
 *
 * However often it is asked, it spends at most a tenth of the time on audits, and rests between two
 * of them: each reads the whole cluster.
 */
#include "audit/audit.h"
#include "verbs/extender.h"

struct auditor;

struct auditor_options {
    int64_t interval_ms; /* from the end of an audit to the next; 0: only when asked */
    int64_t settle_ms;   /* as in struct audit_options; 0: 1,000 */
    int64_t look_ms;     /* from one look at the ledger to the next; 0: 10,000 */
    int64_t rest_ms;     /* from the end of an audit to one that is asked for, at least; 0: 2,000 */
};

/* Borrows the extender. The thread begins as soon as the store is in sync. */
struct auditor *auditor_start(struct extender *extender, const struct auditor_options *options,
                              GError **error);
/* Waits for its thread; an audit under way ends with its next call to the cluster. NULL is fine. */
void auditor_free(struct auditor *auditor);
typedef struct auditor auditor; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(auditor, auditor_free)

/* Asks for an audit. Returns the number of the one that answers: that under way, or else the next.
 * Any thread; never blocks. */
uint64_t auditor_request(struct auditor *auditor);

/* Appends the last report as JSON, and returns how old it is in milliseconds, -1 if there is none.
 * Any thread; never blocks for long. */
int64_t auditor_encode(struct auditor *auditor, GString *reply);

/* Gauges of the last report in the Prometheus text format. */
void auditor_metrics(struct auditor *auditor, GString *text);
