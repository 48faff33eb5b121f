/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the ledger may be believed: reads the cluster afresh into a ledger of its own, compares
 * the two, and looks in both for what no ledger can put right. Each finding is a row with its
 * cause, from one table (audit/audit.c), and with what either side says.
 *
 * What changes while the two are compared is no finding: a suspect is asked about, then the watch
 * gets the time to deliver what was said, and only who is still wrong, and has not changed on the
 * API server since, is reported.
 */
#include "store/cluster.h"

enum audit_cause {
    AUDIT_NONE,
    /* The state of the cluster itself: */
    AUDIT_FOREIGN,
    AUDIT_LOST,
    AUDIT_MALFORMED,
    AUDIT_EDITED,
    AUDIT_UNREAD,
    AUDIT_UNSEALED,
    AUDIT_MISTAKEN,
    AUDIT_PROMISE,
    AUDIT_CARD_GONE,
    AUDIT_OVERBOOKED,
    AUDIT_UNLIMITED,
    AUDIT_CARD_NUMBERS,
    AUDIT_COMPANY,
    AUDIT_UNASSIGNED,
    AUDIT_LEFT_OUT,
    AUDIT_GROUP_HALF,
    AUDIT_QUOTA_LABEL,
    AUDIT_QUOTA_UNKEPT,
    /* The ledger against the cluster: */
    AUDIT_MISSING,
    AUDIT_LEFT_OVER,
    AUDIT_PLACE,
    AUDIT_AMOUNT,
    AUDIT_STALE,
    AUDIT_TOPOLOGY,
    AUDIT_UNCONFIRMED,
    AUDIT_N
};

struct audit_cause_info {
    const char *code;   /* stable, for metrics and scripts: "card_gone" */
    const char *text;   /* constant, for people */
    const char *advice; /* what to do about it */
    bool difference;    /* false: worth a row, but nothing is wrong */
    int event;          /* enum pod_event_cause, what the pod is told; -1: nothing */
};

/* Never NULL; any thread. */
const struct audit_cause_info *audit_cause_info(enum audit_cause cause);

struct audit_row {
    enum audit_cause cause;
    char *ns, *name, *uid; /* NULL: the row is about the node */
    char *node;
    char *cluster; /* what the cluster says; NULL: nothing */
    char *ledger;  /* what the ledger has; NULL: nothing */
};

#define AUDIT_ROWS_MAX 1000

struct audit_report {
    bool compared;          /* else one side was looked at alone */
    GPtrArray *rows;        /* struct audit_row *, by cause and name; at most AUDIT_ROWS_MAX */
    size_t counts[AUDIT_N]; /* rows that were left out counted */
    size_t nodes, pods;     /* that were looked at */
    size_t unchecked;       /* suspects too many to be asked about; none of them is a row */
    int64_t finished_us;    /* Unix time */
    int64_t took_ms;
};

void audit_report_free(struct audit_report *report);
typedef struct audit_report audit_report; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(audit_report, audit_report_free)

/* Rows that tell of something wrong. */
size_t audit_report_differences(const struct audit_report *report);

void audit_report_encode(struct json_writer *writer, const struct audit_report *report);

struct audit_options {
    int64_t stuck_ms;  /* a pod that the node side has not taken for so long is stuck */
    int64_t settle_ms; /* what the watch is given to deliver what the API server has said */
    /* Sleeps; false: give up. NULL: cannot be ended. */
    bool (*rest)(void *data, int64_t duration_ms);
    void *rest_data;
};

/* The state of the cluster as the store has it; does no I/O. */
struct audit_report *audit_look(struct store *store, const struct audit_options *options);

/* The same, and the store against the cluster. NULL if the cluster could not be read; nothing is
 * known then. Blocks for as long as lists and calls take, without any lock. */
struct audit_report *audit_compare(struct store *store, struct cluster *cluster,
                                   const struct audit_options *options, GError **error);
