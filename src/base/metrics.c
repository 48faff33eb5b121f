/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"
#include "base/longest.h"
#include "base/metrics_text.h"
#include "base/process_metrics.h"

#include "wire/rejection.h"
#include "base/version.h"
#include "core/reason/reasons.h"

#include <gpuledger/reason.h>
#include <stdatomic.h>

#define CELLS_MAX REASONS_MAX

static const char *const verb_names[VERB_N] = {
    [VERB_FILTER] = "filter",
    [VERB_PRIORITIZE] = "prioritize",
    [VERB_PREEMPT] = "preempt",
    [VERB_BIND] = "bind",
    [VERB_INSPECT] = "inspect",
};

static const char *const phase_names[PHASE_N] = {
    [PHASE_READ] = "read",     [PHASE_DECODE] = "decode", [PHASE_LOCK] = "lock",
    [PHASE_DECIDE] = "decide", [PHASE_QUEUE] = "queue",   [PHASE_API] = "api",
    [PHASE_ENCODE] = "encode", [PHASE_TOTAL] = "total",
};

const char *const bind_result_names[BIND_RESULT_N] = {
    [BIND_RESULT_BOUND] = "bound",       [BIND_RESULT_REPEATED] = "repeated",
    [BIND_RESULT_NO_ROOM] = "no_room",   [BIND_RESULT_TIMED_OUT] = "timed_out",
    [BIND_RESULT_CONFLICT] = "conflict", [BIND_RESULT_REFUSED] = "refused",
    [BIND_RESULT_UNKNOWN] = "unknown",   [BIND_RESULT_NOT_READY] = "not_ready",
    [BIND_RESULT_INVALID] = "invalid",   [BIND_RESULT_DENIED] = "denied",
    [BIND_RESULT_CROWDED] = "crowded",
};

const char *denial_name(unsigned denial)
{
    static const char *const names[DENIAL_N] = {
        [DENIAL_NODE] = "node_unknown",       [DENIAL_OTHER_POD] = "other_pod",
        [DENIAL_SCHEDULER] = "scheduler",     [DENIAL_UNREADABLE] = "unreadable",
        [DENIAL_LOOKUPS] = "lookups",
    };

    if (denial >= DENIAL_BARRIER && denial < DENIAL_LOOKUPS)
        return barrier_code((enum barrier)(denial - DENIAL_BARRIER + BARRIER_NONE + 1));
    return denial < DENIAL_N ? names[denial] : NULL;
}

static const char *const audit_result_names[AUDIT_RESULT_N] = {
    [AUDIT_RESULT_CLEAN] = "clean",
    [AUDIT_RESULT_DIFFERENT] = "different",
    [AUDIT_RESULT_FAILED] = "failed",
};

static const char *const seal_result_names[SEAL_RESULT_N] = {"written", "failed"};
static const char *const revoke_result_names[REVOKE_RESULT_N] = {"revoked", "failed"};
static const char *const wake_result_names[WAKE_RESULT_N] = {"woken", "failed"};
static const char *const pod_event_result_names[POD_EVENT_RESULT_N] = {
    [POD_EVENT_RESULT_WRITTEN] = "written",       [POD_EVENT_RESULT_MERGED] = "merged",
    [POD_EVENT_RESULT_LIMITED] = "limited",       [POD_EVENT_RESULT_QUEUE_FULL] = "queue_full",
    [POD_EVENT_RESULT_FAILED] = "failed",
};

static const char *const preempt_result_names[PREEMPT_RESULT_N] = {
    [PREEMPT_RESULT_KEPT] = "kept",
    [PREEMPT_RESULT_CHANGED] = "changed",
    [PREEMPT_RESULT_DROPPED] = "dropped",
    [PREEMPT_RESULT_AWAITED] = "awaited",
};

static const char *const lease_change_names[LEASE_CHANGE_N] = {
    [LEASE_CHANGE_TAKEN] = "taken",
    [LEASE_CHANGE_LOST] = "lost",
    [LEASE_CHANGE_RELEASED] = "released",
};

static const char *const status_names[] = {NULL, NULL, "2xx", "3xx", "4xx", "5xx"};

static const char *const http_cut_names[HTTP_CUT_N] = {
    [HTTP_CUT_ROOM] = "room",           [HTTP_CUT_HANDSHAKE] = "handshake",
    [HTTP_CUT_IDLE] = "idle",           [HTTP_CUT_RECEIVING] = "receiving",
    [HTTP_CUT_SENDING] = "sending",
};

static const char *reason_name(unsigned cell)
{
    return cell == REASON_NONE || cell >= reasons_count() ? NULL : reason_info(cell)->code;
}

/* Cells are named by an array or by a function; a cell without a name is not written. */
struct counter_row {
    const char *name;
    const char *help;
    const char *label; /* NULL: one cell */
    unsigned n_cells;
    const char *const *cell_names;
    const char *(*cell_name)(unsigned cell);
    const char *second; /* another label, whose names repeat; NULL: there is none */
    unsigned n_second;
    const char *const *second_names;
};

static const char *const record_result_names[RECORD_RESULT_N] = {
    [RECORD_RESULT_WRITTEN] = "written",
    [RECORD_RESULT_LOST] = "lost",
};

static const char *const eviction_outcome_names[EVICTION_OUTCOME_N] = {
    [EVICTION_OUTCOME_EVICTED] = "evicted", [EVICTION_OUTCOME_OBSERVED] = "observed",
    [EVICTION_OUTCOME_STOPPED] = "stopped", [EVICTION_OUTCOME_LIMITED] = "limited",
    [EVICTION_OUTCOME_BUDGET] = "budget",   [EVICTION_OUTCOME_MOVING] = "moving",
    [EVICTION_OUTCOME_STAYS] = "stays",     [EVICTION_OUTCOME_FAILED] = "failed",
    [EVICTION_OUTCOME_UNKNOWN] = "unknown",
};

const char *metrics_capability(enum ender ender)
{
    static const char *const names[ENDER_N] = {
        [ENDER_GANG_STRICT] = "gang-strict",
        [ENDER_SWITCH] = "calendar",
        [ENDER_PLAN] = "plans",
        [ENDER_RECLAIM] = "reclaim",
    };

    return names[ender];
}

/* Of the cells of COUNTER_EVICTIONS. */
static const char *eviction_capability(unsigned cell)
{
    return metrics_capability((enum ender)(cell / EVICTION_OUTCOME_N));
}

static const char *const kueue_result_names[KUEUE_RESULT_N] = {
    [KUEUE_RESULT_READY] = "ready",   [KUEUE_RESULT_NO_GPU] = "no_gpu",
    [KUEUE_RESULT_RETRY] = "retry",   [KUEUE_RESULT_UNREADABLE] = "unreadable",
    [KUEUE_RESULT_FAILED] = "failed", [KUEUE_RESULT_LEFT_OUT] = "left_out",
};

const char *const switch_events[SWITCH_EVENTS] = {
    "none", "announced", "begun",       "set",       "retried",
    "done", "given_up",  "rolled_back", "withdrawn", "kept"};

static const char *const reclaim_result_names[RECLAIM_RESULT_N] = {
    [RECLAIM_RESULT_CLAIMED] = "claimed", [RECLAIM_RESULT_REFUSED] = "refused",
    [RECLAIM_RESULT_BOUND] = "bound",     [RECLAIM_RESULT_GONE] = "gone",
    [RECLAIM_RESULT_LAPSED] = "lapsed",   [RECLAIM_RESULT_CHANGED] = "changed",
};

static const char *const reclaim_look_names[RECLAIM_LOOK_N] = {
    [RECLAIM_LOOK_READ] = "read",
    [RECLAIM_LOOK_CLOSED] = "closed",
};

static const char *const usage_result_names[USAGE_RESULT_N] = {
    [USAGE_RESULT_OK] = "ok",
    [USAGE_RESULT_EMPTY] = "empty",
    [USAGE_RESULT_CUT] = "cut",
    [USAGE_RESULT_FAILED] = "failed",
    [USAGE_RESULT_UNREADABLE] = "unreadable",
    [USAGE_RESULT_OUT_OF_DATE] = "out_of_date",
};

static const char *const plan_result_names[PLAN_RESULT_N] = {
    [PLAN_RESULT_DONE] = "done",
    [PLAN_RESULT_STOPPED] = "stopped",
    [PLAN_RESULT_REFUSED] = "refused",
    [PLAN_RESULT_UNREADABLE] = "unreadable",
};

const char *const plan_step_names[PLAN_STEP_N] = {
    [PLAN_STEP_BEGUN] = "begun",
    [PLAN_STEP_MOVED] = "moved",
    [PLAN_STEP_FAILED] = "failed",
    [PLAN_STEP_GONE] = "gone",
};

#define CELLS(names) G_N_ELEMENTS(names), names, NULL
#define FEEDS WATCHED_N, NULL, NULL /* whose names the caller of metrics_write knows */

static const struct counter_row counter_rows[COUNTER_N] = {
    [COUNTER_REQUESTS_BAD] = {"gpuledger_requests_bad_total",
                              "Calls of kube-scheduler that could not be understood.", "verb",
                              CELLS(verb_names)},
    [COUNTER_REFUSALS] = {"gpuledger_refusals_total", "Nodes refused, once for each pod and call.",
                          "reason", REASONS_MAX, NULL, reason_name},
    [COUNTER_BINDS] = {"gpuledger_binds_total", "Calls of the bind verb by how they ended.",
                       "result", CELLS(bind_result_names)},
    [COUNTER_BIND_DENIALS] = {"gpuledger_bind_denials_total",
                              "Calls of the bind verb that kube-scheduler would not have made, by "
                              "what it would have left the node out for.",
                              "cause", DENIAL_N, NULL, denial_name},
    [COUNTER_API_CALLS] = {"gpuledger_api_calls_total",
                           "Requests to the API server, watches apart, by how they ended.",
                           "outcome", CELLS(outcome_names)},
    [COUNTER_WATCH_RESTARTS] = {"gpuledger_watch_restarts_total",
                                "Watches that ended and were begun again.", "feed", FEEDS},
    [COUNTER_LISTS] = {"gpuledger_lists_total", "Complete lists read from the API server.", "feed",
                       FEEDS},
    [COUNTER_EVENTS] = {"gpuledger_events_total", "Watch events applied to the ledger.", "feed",
                        FEEDS},
    [COUNTER_FEED_DENIED] = {"gpuledger_feed_denied_total",
                             "Lists and watches that the API server did not permit.", "feed",
                             FEEDS},
    [COUNTER_OBJECTS_BAD] = {"gpuledger_objects_bad_total",
                             "Objects that could not be decoded or trusted.", "feed", FEEDS},
    [COUNTER_WAITS_ENDED] = {"gpuledger_waits_ended_total",
                             "Pods whose node side had not taken them after the longest time that "
                             "others wait for one.",
                             NULL, 1},
    [COUNTER_REJECTED] = {"gpuledger_rejected_pods_total",
                          "Pods of the ledger that kubelet rejected.", "reason",
                          CELLS(rejection_names)},
    [COUNTER_UNPLACED] = {"gpuledger_unplaced_pods_total",
                          "Pods seen to hold GPU memory on no known card.", NULL, 1},
    [COUNTER_SEALS] = {"gpuledger_seals_written_total",
                       "Seals that were written, or not, on pods that were bound already.",
                       "result", CELLS(seal_result_names)},
    [COUNTER_REVOKES] = {"gpuledger_promises_revoked_total",
                         "Promises revoked, or not, that a device plugin might have given to other "
                         "pods.",
                         "result", CELLS(revoke_result_names)},
    [COUNTER_WAKES] = {"gpuledger_wakes_total",
                       "Refused pods woken, or not, because room had appeared for them.", "result",
                       CELLS(wake_result_names)},
    [COUNTER_HTTP_RESPONSES] = {"gpuledger_http_responses_total",
                                "Answers sent, by class of the status code.", "class",
                                CELLS(status_names)},
    [COUNTER_LEASE_CHANGES] = {"gpuledger_lease_changes_total",
                               "Times that this replica took, lost or gave back the Lease.",
                               "change", CELLS(lease_change_names)},
    [COUNTER_LEASE_FAILURES] = {"gpuledger_lease_failures_total",
                                "Reads and writes of the Lease that failed, by how they ended.",
                                "outcome", CELLS(outcome_names)},
    [COUNTER_HTTP_CUTS] = {"gpuledger_http_connections_cut_total",
                           "Connections cut: to make room for others, or because the client took "
                           "too long.",
                           "reason", CELLS(http_cut_names)},
    [COUNTER_AUDITS] = {"gpuledger_audits_total", "Audits of the ledger by how they ended.",
                        "result", CELLS(audit_result_names)},
    [COUNTER_POD_EVENTS] = {"gpuledger_pod_events_total",
                            "Events about pods by what became of them.", "result",
                            CELLS(pod_event_result_names)},
    [COUNTER_PREEMPT_NODES] = {"gpuledger_preempt_nodes_total",
                               "Nodes offered for preemption by what became of their victims.",
                               "result", CELLS(preempt_result_names)},
    [COUNTER_RECORDS] = {"gpuledger_records_total",
                         "Entries for the record (--record), by what became of them.", "result",
                         CELLS(record_result_names)},
    [COUNTER_KUEUE] = {"gpuledger_kueue_answers_total",
                       "Workloads of Kueue by what they were told, or why they were not.", "result",
                       CELLS(kueue_result_names)},
    [COUNTER_SWITCHES] =
        {"gpuledger_switches_total",
         "Steps of nodes that are to share their cards in another way (--calendar).", "step",
         CELLS(switch_events)},
    [COUNTER_EVICTIONS] = {"gpuledger_evictions_total",
                           "Pods that were to be evicted, by capability and by what became of "
                           "that.",
                           "capability", ENDER_N *EVICTION_OUTCOME_N, NULL, eviction_capability,
                           "outcome", EVICTION_OUTCOME_N, eviction_outcome_names},
    [COUNTER_RECLAIMS] = {"gpuledger_reclaims_total",
                          "Pods for which lent quota is taken back (--reclaim), by what became of "
                          "that.",
                          "result", CELLS(reclaim_result_names)},
    [COUNTER_RECLAIM_LOOKS] =
        {"gpuledger_reclaim_looks_total",
         "Reads of the claims on lent quota (--reclaim), by whether they could "
         "be read.",
         "result", CELLS(reclaim_look_names)},
    [COUNTER_USAGE] = {"gpuledger_usage_answers_total",
                       "Questions to the source of usage (--usage) by what became of them.",
                       "result", CELLS(usage_result_names)},
    [COUNTER_PLANS] = {"gpuledger_plans_total",
                       "Plans that ConfigMaps order (--plans), by what came of them.", "result",
                       CELLS(plan_result_names)},
    [COUNTER_PLAN_STEPS] = {"gpuledger_plan_steps_total",
                            "Pods that these move, by what became of it.", "result",
                            CELLS(plan_step_names)},
};

static const struct gauge_row {
    const char *name;
    const char *help;
} gauge_rows[GAUGE_N] = {
    [GAUGE_LEASE_HELD] = {"gpuledger_lease_held",
                          "1 if this replica holds the Lease and serves, 0 if it stands by."},
    [GAUGE_JOURNAL] = {"gpuledger_lease_journal_bytes",
                       "Bookings not settled when the Lease was last written, in bytes of text."},
    [GAUGE_SWITCHES_STUCK] = {"gpuledger_switches_stuck",
                              "Nodes that were to share their cards in another way, and need "
                              "somebody to look."},
    [GAUGE_EVICTIONS_STOPPED] = {"gpuledger_evictions_stopped",
                                 "1 while the stop key keeps all pods from being evicted."},
    [GAUGE_USAGE_ANSWERED] = {"gpuledger_usage_answered_timestamp_seconds",
                              "When the source of usage (--usage) was last understood."},
    [GAUGE_CERTIFICATE_END] = {"gpuledger_certificate_not_after_timestamp_seconds",
                               "When the certificate that the listeners show ends."},
};

static struct {
    atomic_bool given;
    atomic_int_fast64_t value;
} gauges[GAUGE_N];

static atomic_uint_fast64_t cells[COUNTER_N][CELLS_MAX];

G_STATIC_ASSERT(BIND_RESULT_N <= CELLS_MAX);
G_STATIC_ASSERT(DENIAL_N <= CELLS_MAX);
G_STATIC_ASSERT((int)ENDER_N *(int)EVICTION_OUTCOME_N <= CELLS_MAX);

/* Upper bounds, and the same in seconds as the "le" label spells them. */
static const struct {
    int64_t us;
    const char *le;
} buckets[] = {
    {50, "0.00005"},  {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},
    {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
    {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"},
    {1000000, "1"},   {5000000, "5"},   {10000000, "10"}, {30000000, "30"},
};
#define BUCKETS_N G_N_ELEMENTS(buckets)

static struct {
    atomic_uint_fast64_t counts[BUCKETS_N + 1]; /* not cumulative; the last is +Inf */
    atomic_uint_fast64_t sum_us;
} histograms[VERB_N][PHASE_N];

void metrics_add(enum counter counter, unsigned cell, uint64_t n)
{
    g_return_if_fail((unsigned)counter < COUNTER_N && cell < counter_rows[counter].n_cells);
    atomic_fetch_add_explicit(&cells[counter][cell], n, memory_order_relaxed);
}

void metrics_count_eviction(enum ender ender, enum eviction_outcome outcome)
{
    metrics_count(COUNTER_EVICTIONS, (unsigned)ender * EVICTION_OUTCOME_N + outcome);
}

const char *metrics_eviction_outcome(enum eviction_outcome outcome)
{
    return eviction_outcome_names[outcome];
}

void metrics_count(enum counter counter, unsigned cell)
{
    metrics_add(counter, cell, 1);
}

uint64_t metrics_counted(enum counter counter, unsigned cell)
{
    g_return_val_if_fail((unsigned)counter < COUNTER_N && cell < counter_rows[counter].n_cells, 0);
    return atomic_load_explicit(&cells[counter][cell], memory_order_relaxed);
}

void metrics_set(enum gauge gauge, int64_t value)
{
    g_return_if_fail((unsigned)gauge < GAUGE_N);
    atomic_store_explicit(&gauges[gauge].value, value, memory_order_relaxed);
    atomic_store_explicit(&gauges[gauge].given, true, memory_order_release);
}

const char *metrics_verb(enum verb verb)
{
    return verb_names[verb];
}

void metrics_observe(enum verb verb, enum phase phase, int64_t duration_us)
{
    size_t bucket = 0;

    g_return_if_fail((unsigned)verb < VERB_N && (unsigned)phase < PHASE_N);
    duration_us = MAX(duration_us, 0);
    while (bucket < BUCKETS_N && duration_us > buckets[bucket].us)
        bucket++;
    atomic_fetch_add_explicit(&histograms[verb][phase].counts[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histograms[verb][phase].sum_us, (uint64_t)duration_us,
                              memory_order_relaxed);
}

static const char *cell_name(const struct counter_row *row, unsigned cell, metrics_name feed_name)
{
    return row->cell_names  ? row->cell_names[cell]
           : row->cell_name ? row->cell_name(cell)
                            : feed_name(cell);
}

static void counter_write(GString *text, enum counter counter, metrics_name feed_name)
{
    const struct counter_row *row = &counter_rows[counter];

    metrics_append_head(text, row->name, "counter", row->help);
    if (!row->label) {
        g_string_append_printf(text, "%s %" G_GUINT64_FORMAT "\n", row->name,
                               metrics_counted(counter, 0));
        return;
    }
    for (unsigned cell = 0; cell < row->n_cells; cell++) {
        const char *name = cell_name(row, cell, feed_name);

        if (!name)
            continue;
        g_string_append_printf(text, "%s{%s=\"", row->name, row->label);
        metrics_append_label(text, name);
        if (row->second)
            g_string_append_printf(text, "\",%s=\"%s", row->second,
                                   row->second_names[cell % row->n_second]);
        g_string_append_printf(text, "\"} %" G_GUINT64_FORMAT "\n", metrics_counted(counter, cell));
    }
}

static void gauge_write(GString *text, enum gauge gauge)
{
    const struct gauge_row *row = &gauge_rows[gauge];

    if (!atomic_load_explicit(&gauges[gauge].given, memory_order_acquire))
        return;
    metrics_append_head(text, row->name, "gauge", row->help);
    g_string_append_printf(text, "%s %" G_GINT64_FORMAT "\n", row->name,
                           (gint64)atomic_load_explicit(&gauges[gauge].value,
                                                        memory_order_relaxed));
}

#define DURATION "gpuledger_verb_duration_seconds"

static void histogram_write(GString *text, enum verb verb, enum phase phase)
{
    const char *verb_name = verb_names[verb];
    const char *phase_name = phase_names[phase];
    uint64_t total = 0;

    for (size_t i = 0; i <= BUCKETS_N; i++) {
        total += atomic_load_explicit(&histograms[verb][phase].counts[i], memory_order_relaxed);
        g_string_append_printf(
            text, DURATION "_bucket{verb=\"%s\",phase=\"%s\",le=\"%s\"} %" G_GUINT64_FORMAT "\n",
            verb_name, phase_name, i < BUCKETS_N ? buckets[i].le : "+Inf", total);
    }
    g_string_append_printf(text, DURATION "_sum{verb=\"%s\",phase=\"%s\"} ", verb_name, phase_name);
    metrics_append_seconds(
        text, atomic_load_explicit(&histograms[verb][phase].sum_us, memory_order_relaxed));
    g_string_append_printf(text,
                           "\n" DURATION "_count{verb=\"%s\",phase=\"%s\"} %" G_GUINT64_FORMAT "\n",
                           verb_name, phase_name, total);
}

static bool histogram_is_used(enum verb verb, enum phase phase)
{
    for (size_t i = 0; i <= BUCKETS_N; i++) {
        if (atomic_load_explicit(&histograms[verb][phase].counts[i], memory_order_relaxed) > 0)
            return true;
    }
    return false;
}

void metrics_write(GString *text, metrics_name feed_name)
{
    metrics_append_head(text, "gpuledger_build_info", "gauge",
                        "Always 1; the labels say what runs.");
    g_string_append(text, "gpuledger_build_info{version=\"");
    metrics_append_label(text, version_text);
    g_string_append(text, "\",commit=\"");
    metrics_append_label(text, version_commit);
    g_string_append(text, "\"} 1\n");

    for (unsigned counter = 0; counter < COUNTER_N; counter++)
        counter_write(text, (enum counter)counter, feed_name);
    for (unsigned gauge = 0; gauge < GAUGE_N; gauge++)
        gauge_write(text, (enum gauge)gauge);

    metrics_append_head(text, DURATION, "histogram", "Time spent in a verb, in all and by phase.");
    for (unsigned verb = 0; verb < VERB_N; verb++) {
        for (unsigned phase = 0; phase < PHASE_N; phase++) {
            if (histogram_is_used((enum verb)verb, (enum phase)phase))
                histogram_write(text, (enum verb)verb, (enum phase)phase);
        }
    }

    longest_write(text, g_get_monotonic_time());
    process_metrics_write(text);
}
