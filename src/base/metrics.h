/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counters and latency histograms of the process. One table (base/metrics.c) names each metric,
 * its help text and its label; everything else is an index into it. Updates are atomic adds: any
 * thread, no lock, no allocation.
 *
 * Gauges that mirror the ledger are not kept here: they are written from the ledger itself when
 * somebody asks (inspect/views.h).
 */
#include "core/constraints.h"
#include "policy/victims/may_end.h"

#include <glib.h>
#include <stdint.h>

enum counter {
    COUNTER_REQUESTS_BAD,   /* by verb */
    COUNTER_REFUSALS,       /* by enum reason */
    COUNTER_BINDS,          /* by enum bind_result */
    COUNTER_BIND_DENIALS,   /* by enum denial */
    COUNTER_API_CALLS,      /* by enum outcome */
    COUNTER_WATCH_RESTARTS, /* by enum feed */
    COUNTER_LISTS,          /* by enum feed */
    COUNTER_EVENTS,         /* by enum feed */
    COUNTER_FEED_DENIED,    /* by enum feed: lists and watches that we may not have */
    COUNTER_OBJECTS_BAD,    /* by enum feed: objects that could not be decoded or trusted */
    COUNTER_WAITS_ENDED,    /* pods that nobody waits for any longer (gate/waits/waits.h) */
    COUNTER_REJECTED,       /* by enum rejection_kind */
    COUNTER_UNPLACED,       /* pods that hold memory on no known card, as they were seen */
    COUNTER_SEALS,          /* by enum seal_result */
    COUNTER_REVOKES,        /* by enum revoke_result */
    COUNTER_WAKES,          /* by enum wake_result */
    COUNTER_HTTP_RESPONSES, /* by first digit of the status code */
    COUNTER_LEASE_CHANGES,  /* by enum lease_change */
    COUNTER_LEASE_FAILURES, /* by enum outcome */
    COUNTER_HTTP_CUTS,      /* by enum http_cut */
    COUNTER_AUDITS,         /* by enum audit_result */
    COUNTER_POD_EVENTS,     /* by enum pod_event_result */
    COUNTER_PREEMPT_NODES,  /* by enum preempt_result */
    COUNTER_RECORDS,        /* by enum record_result */
    /* By enum kueue_result. */
    COUNTER_KUEUE,
    COUNTER_SWITCHES,      /* by enum switch_event */
    COUNTER_EVICTIONS,     /* metrics_count_eviction */
    COUNTER_RECLAIMS,      /* by enum reclaim_result */
    COUNTER_RECLAIM_LOOKS, /* by enum reclaim_look */
    COUNTER_USAGE,         /* by enum usage_result */
    COUNTER_PLANS,         /* by enum plan_result */
    COUNTER_PLAN_STEPS,    /* by enum plan_step */
    COUNTER_N
};

/* What became of a question to the source of usage. */
enum usage_result {
    USAGE_RESULT_OK,
    USAGE_RESULT_EMPTY,  /* it names no pod */
    USAGE_RESULT_CUT,    /* it names too many, and the others are not known */
    USAGE_RESULT_FAILED, /* nobody answers, or not with what was asked for */
    USAGE_RESULT_UNREADABLE,
    USAGE_RESULT_OUT_OF_DATE, /* it tells of another time */
    USAGE_RESULT_N
};

/* What a Workload of Kueue was told, or why it was not. */
enum kueue_result {
    KUEUE_RESULT_READY,
    KUEUE_RESULT_NO_GPU, /* ready: none of its pods asks for one */
    KUEUE_RESULT_RETRY,
    KUEUE_RESULT_UNREADABLE, /* retry: it, or what it refers to, cannot be understood */
    KUEUE_RESULT_FAILED,     /* the API server did not give it, or did not take the answer */
    KUEUE_RESULT_LEFT_OUT,   /* too many wait in its namespace */
    KUEUE_RESULT_N
};

/* What became of a pod that was to be evicted. */
enum eviction_outcome {
    EVICTION_OUTCOME_EVICTED,
    EVICTION_OUTCOME_OBSERVED, /* it would have been; its capability only observes */
    EVICTION_OUTCOME_STOPPED,  /* all evictions are stopped */
    EVICTION_OUTCOME_LIMITED,  /* as many as may be were evicted */
    EVICTION_OUTCOME_BUDGET,   /* a PodDisruptionBudget has nothing to give now */
    EVICTION_OUTCOME_MOVING,   /* its controller moves it to another node first */
    EVICTION_OUTCOME_STAYS,    /* it may not be ended */
    EVICTION_OUTCOME_FAILED,   /* the API server refuses, or does not let us */
    EVICTION_OUTCOME_UNKNOWN,
    EVICTION_OUTCOME_N
};

/* What became of pods for which what was lent is taken back. */
enum reclaim_result {
    RECLAIM_RESULT_CLAIMED, /* it was worked out who gives back, and the room is kept for the pod */
    RECLAIM_RESULT_REFUSED, /* nobody gives back for it; once until something else is found */
    RECLAIM_RESULT_BOUND,   /* a claim has ended: the pod has come */
    RECLAIM_RESULT_GONE,    /* likewise: it is there no longer */
    RECLAIM_RESULT_LAPSED,  /* likewise: it has not come in time */
    RECLAIM_RESULT_CHANGED, /* likewise: what was to be taken back is not lent any more */
    RECLAIM_RESULT_N
};

/* What became of a look at the claims. */
enum reclaim_look {
    RECLAIM_LOOK_READ,
    RECLAIM_LOOK_CLOSED, /* they cannot be read or believed: nobody ends */
    RECLAIM_LOOK_N
};

/* What became of a plan that a ConfigMap orders. */
enum plan_result {
    PLAN_RESULT_DONE,
    PLAN_RESULT_STOPPED,
    PLAN_RESULT_REFUSED,    /* its order cannot be understood */
    PLAN_RESULT_UNREADABLE, /* nor can its ConfigMap; once for each change of it */
    PLAN_RESULT_N
};

/* What became of its steps; in the order of enum executor_event (maintain/executor.h). */
enum plan_step_result {
    PLAN_STEP_BEGUN,
    PLAN_STEP_MOVED,
    PLAN_STEP_FAILED,
    PLAN_STEP_GONE,
    PLAN_STEP_N
};
extern const char *const plan_step_names[PLAN_STEP_N];

/* What became of something that was to be recorded. */
enum record_result {
    RECORD_RESULT_WRITTEN,
    RECORD_RESULT_LOST, /* the disk is slower than things happen, or full */
    RECORD_RESULT_N
};

/* What became of a seal that was to be written on a pod that is bound already. */
enum seal_result {
    SEAL_RESULT_WRITTEN,
    SEAL_RESULT_FAILED, /* the API server did not take it, or does not let us */
    SEAL_RESULT_N
};

/* What became of a try to wake a pod for which room had appeared. */
enum revoke_result { REVOKE_RESULT_REVOKED, REVOKE_RESULT_FAILED, REVOKE_RESULT_N };

enum wake_result {
    WAKE_RESULT_WOKEN,
    WAKE_RESULT_FAILED, /* the API server did not take it, or does not let us */
    WAKE_RESULT_N
};

/* What became of a switch of a node (switch/machine.h). */
enum switch_event {
    SWITCH_EVENT_NONE,
    SWITCH_EVENT_ANNOUNCED,
    SWITCH_EVENT_BEGUN,
    SWITCH_EVENT_SET,
    SWITCH_EVENT_RETRIED,
    SWITCH_EVENT_DONE,
    SWITCH_EVENT_GIVEN_UP,    /* before anything was changed */
    SWITCH_EVENT_ROLLED_BACK, /* the old value is there again */
    SWITCH_EVENT_WITHDRAWN,   /* by somebody else, and the node is given back */
    SWITCH_EVENT_KEPT,        /* it is what its window wants, by advice */
    SWITCH_EVENTS,
};
extern const char *const switch_events[SWITCH_EVENTS];

/* How a call of the bind verb ended. */
enum bind_result {
    BIND_RESULT_BOUND,
    BIND_RESULT_REPEATED,  /* it was bound there already */
    BIND_RESULT_NO_ROOM,   /* no card of the node takes it */
    BIND_RESULT_TIMED_OUT, /* mostly: the node side did not match an earlier pod in time */
    BIND_RESULT_CONFLICT,  /* the pod is bound elsewhere, is another one, or is gone */
    BIND_RESULT_REFUSED,   /* the API server said no */
    BIND_RESULT_UNKNOWN,   /* the Binding's outcome is not known */
    BIND_RESULT_NOT_READY, /* not synced, or draining */
    BIND_RESULT_INVALID,   /* the body, or what the pod asks for */
    BIND_RESULT_DENIED,    /* verbs/denial.h says why */
    BIND_RESULT_CROWDED,   /* too many binds waited already */
    BIND_RESULT_N
};
extern const char *const bind_result_names[BIND_RESULT_N];

/* Why bind does not touch a pod (verbs/denial.h). */
enum denial {
    DENIAL_NONE,
    DENIAL_NODE,       /* nobody knows the node */
    DENIAL_OTHER_POD,  /* the UID is another pod's */
    DENIAL_SCHEDULER,  /* another scheduler places it */
    DENIAL_UNREADABLE, /* where it may go cannot be read */
    DENIAL_BARRIER,    /* the first of as many as there are in core/constraints.h, but for _NONE */
    DENIAL_LOOKUPS = DENIAL_BARRIER + BARRIER_N - 1, /* too many unknown pods were asked about */
    DENIAL_N
};
/* Of a metric: "node", "taint"; NULL for DENIAL_NONE. */
const char *denial_name(unsigned denial);

/* What happened between this replica and the Lease. */
enum lease_change {
    LEASE_CHANGE_TAKEN,
    LEASE_CHANGE_LOST,
    LEASE_CHANGE_RELEASED,
    LEASE_CHANGE_N
};

/* Why a connection was cut. */
enum http_cut {
    HTTP_CUT_ROOM, /* for a newcomer */
    HTTP_CUT_HANDSHAKE,
    HTTP_CUT_IDLE,
    HTTP_CUT_RECEIVING,
    HTTP_CUT_SENDING,
    HTTP_CUT_N
};

/* How an audit ended. */
enum audit_result {
    AUDIT_RESULT_CLEAN,
    AUDIT_RESULT_DIFFERENT,
    AUDIT_RESULT_FAILED, /* the cluster could not be read */
    AUDIT_RESULT_N
};

/* What became of an Event about a pod. */
enum pod_event_result {
    POD_EVENT_RESULT_WRITTEN,
    POD_EVENT_RESULT_MERGED,     /* with an earlier one for the same pod and cause */
    POD_EVENT_RESULT_LIMITED,    /* dropped: too many of its cause, or of all */
    POD_EVENT_RESULT_QUEUE_FULL, /* dropped: the API server is slower than they come */
    POD_EVENT_RESULT_FAILED,     /* the API server did not take it, or does not let us */
    POD_EVENT_RESULT_N
};

/* What became of a node that kube-scheduler offered for preemption. */
enum preempt_result {
    PREEMPT_RESULT_KEPT,    /* with the victims that it had named */
    PREEMPT_RESULT_CHANGED, /* with others */
    PREEMPT_RESULT_DROPPED, /* no end of less important pods makes room there, or none is needed */
    PREEMPT_RESULT_AWAITED, /* who was named before has to end first */
    PREEMPT_RESULT_N
};

/* Adds one to a counter's cell. `cell` is the enum value that the counter's label names (a
 * reason, a feed, a verb …); 0 if it has no label. */
void metrics_count(enum counter counter, unsigned cell);
/* "reclaim"; NULL: kube-scheduler evicts, or a command does. */
const char *metrics_capability(enum ender ender);
void metrics_count_eviction(enum ender ender, enum eviction_outcome outcome);
const char *metrics_eviction_outcome(enum eviction_outcome outcome);
void metrics_add(enum counter counter, unsigned cell, uint64_t n);
uint64_t metrics_counted(enum counter counter, unsigned cell);

/* Values that go up and down; one that was never set is not written. */
enum gauge {
    GAUGE_LEASE_HELD,        /* 1: this replica serves */
    GAUGE_JOURNAL,           /* bytes of the journal that was stored last */
    GAUGE_CERTIFICATE_END,   /* Unix time in seconds at which what the listeners show is over */
    GAUGE_SWITCHES_STUCK,    /* nodes whose switch needs somebody to look */
    GAUGE_EVICTIONS_STOPPED, /* 1: no pod is evicted */
    GAUGE_USAGE_ANSWERED,    /* Unix time in seconds of the last good answer about usage */
    GAUGE_N
};
void metrics_set(enum gauge gauge, int64_t value);

enum verb {
    VERB_FILTER,
    VERB_PRIORITIZE,
    VERB_PREEMPT,
    VERB_BIND,
    VERB_INSPECT,
    VERB_N
};

enum phase {
    PHASE_READ,   /* from the request's first byte to its last */
    PHASE_DECODE,
    PHASE_LOCK,   /* waiting for the ledger */
    PHASE_DECIDE,
    PHASE_QUEUE,  /* waiting for the node side to match an earlier pod */
    PHASE_API,    /* the API server */
    PHASE_ENCODE,
    PHASE_TOTAL,
    PHASE_N
};

/* "filter". */
const char *metrics_verb(enum verb verb);

/* A negative duration counts as zero. */
void metrics_observe(enum verb verb, enum phase phase, int64_t duration_us);

/* Appends all of it, and what the process uses, in the Prometheus text format 0.0.4. `feed_name`: of the cells
 * of counters by enum feed, NULL for those that are not used. */
typedef const char *(*metrics_name)(unsigned cell);
void metrics_write(GString *text, metrics_name feed_name);
