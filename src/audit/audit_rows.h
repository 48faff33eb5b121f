/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How an audit's findings are written down; for src/app/audit*.c only. One thread at a time.
 */
#include "audit/audit.h"

struct audit_report *audit_report_new(void);

/* Adds a row about a pod, or with `pod` NULL about the node. Takes the sides, either may be NULL. */
struct audit_finding {
    enum audit_cause cause;
    const struct allocation *pod;
    const char *node;
    char *take_cluster, *take_ledger;
};
void audit_report_add(struct audit_report *report, const struct audit_finding *finding);
/* One that gets no row of its own. */
void audit_report_count(struct audit_report *report, enum audit_cause cause);

/* Sorts, and notes when and how long. */
void audit_report_finish(struct audit_report *report, int64_t began_ms);

/* "card 0, 6GiB", "no card, 6 units". Free with g_free. */
char *audit_holding(const struct allocation *allocation, int64_t memory_unit);
/* "6GiB", "4096MiB". Free with g_free. */
char *audit_bytes(int64_t bytes, int64_t memory_unit);

/* Copies of the names of all nodes that exist or hold something, in order. */
GPtrArray *audit_node_names(struct store *store);
