/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/auditor.h"

#include "base/log.h"
#include "base/worker.h"

#include <gpuledger/error.h>

#define SETTLE_MS 1000
#define LOOK_MS 10000
#define STUCK_MIN_MS 60000
#define REST_MIN_MS 2000
#define REST_FACTOR 9 /* times as long as an audit took, before the next */
#define REST_MAX_MS 60000
#define SYNC_POLL_MS 200

struct auditor {
    struct extender *extender;
    struct auditor_options options;
    struct worker worker;

    /* Under the worker's lock: */
    uint64_t finished;           /* audits so far, failed ones too */
    bool wanted, running;
    struct audit_report *report; /* of the last one that succeeded, or NULL */
    char *failure;               /* why the last one failed, or NULL */
    int64_t ended_ms;            /* when the last one ended, or this began */
    int64_t rested_ms;           /* before then no other begins */
};

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* --- what pods are told ---------------------------------------------------------------------- */

/* No pod and no node is at fault, but a quota of the namespace. */
static void tell_namespace(struct cluster *cluster, const struct audit_row *row)
{
    const struct audit_cause_info *info = audit_cause_info(row->cause);
    g_autofree char *note = g_strdup_printf("%s: %s (%s; %s). What to do: %s.", row->name,
                                            info->text, row->cluster, row->ledger, info->advice);

    pod_event_post(cluster, &(struct pod_event){(enum pod_event_cause)info->event, row->ns, row->ns,
                                                row->ns, note});
}

static void tell_pod(struct cluster *cluster, const struct audit_row *row)
{
    const struct audit_cause_info *info = audit_cause_info(row->cause);

    if (info->event < 0)
        return;
    if (pod_event_info((enum pod_event_cause)info->event)->kind) {
        tell_namespace(cluster, row);
        return;
    }
    g_autofree char *note =
        g_strdup_printf("On node %s: %s (%s; %s). What to do: %s.", row->node, info->text,
                        row->cluster, row->ledger, info->advice);
    pod_event_post(cluster, &(struct pod_event){
                                .cause = (enum pod_event_cause)info->event,
                                .ns = row->ns,
                                .name = row->name ? row->name : row->node,
                                .uid = row->uid ? row->uid : row->node,
                                .note = note,
                            });
}

/* Pods have one voice: that of the replica that serves. */
static void post_findings(struct auditor *auditor, const struct audit_report *report)
{
    if (leadership_term(auditor->extender->leadership) == 0)
        return;
    for (guint i = 0; i < report->rows->len; i++)
        tell_pod(auditor->extender->cluster, g_ptr_array_index(report->rows, i));
}

/* --- audits ---------------------------------------------------------------------------------- */

static bool rest(void *data, int64_t duration_ms)
{
    struct auditor *auditor = data;
    return worker_rest(&auditor->worker, duration_ms);
}

static struct audit_options audit_options(struct auditor *auditor)
{
    struct store *store = auditor->extender->store;
    int64_t patience_ms;

    store_lock(store);
    patience_ms = store_options(store)->patience_ms;
    store_unlock(store);
    return (struct audit_options){
        .stuck_ms = MAX(STUCK_MIN_MS, patience_ms),
        .settle_ms = auditor->options.settle_ms,
        .rest = rest,
        .rest_data = auditor,
    };
}

static void log_audit(const struct audit_report *report, const char *failure)
{
    if (failure) {
        log_event(LOG_LEVEL_WARN, "audit failed", LOG_TEXT("why", failure));
        return;
    }
    size_t differences = audit_report_differences(report);
    log_event(differences > 0 ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "audited",
              LOG_NUMBER("pods", report->pods), LOG_NUMBER("differences", differences),
              LOG_NUMBER("ms", report->took_ms));
    for (int cause = AUDIT_NONE + 1; cause < AUDIT_N; cause++) {
        const struct audit_cause_info *info = audit_cause_info((enum audit_cause)cause);
        if (info->difference && report->counts[cause] > 0)
            log_event(LOG_LEVEL_WARN, "difference", LOG_TEXT("cause", info->code),
                      LOG_NUMBER("count", report->counts[cause]), LOG_TEXT("what", info->text),
                      LOG_TEXT("advice", info->advice));
    }
}

/* Under the worker's lock, which is let go meanwhile. */
static void audit(struct auditor *auditor)
{
    g_autoptr(GError) failure = NULL;
    int64_t began_ms = now_ms();

    auditor->wanted = false;
    auditor->running = true;
    worker_unlock(&auditor->worker);
    struct audit_options options = audit_options(auditor);
    struct audit_report *report = audit_compare(auditor->extender->store,
                                                auditor->extender->cluster, &options, &failure);
    log_audit(report, failure ? failure->message : NULL);
    metrics_count(COUNTER_AUDITS, !report                           ? AUDIT_RESULT_FAILED
                                  : audit_report_differences(report) ? AUDIT_RESULT_DIFFERENT
                                                                     : AUDIT_RESULT_CLEAN);
    if (report)
        post_findings(auditor, report);
    worker_lock(&auditor->worker);

    auditor->running = false;
    auditor->finished++;
    g_free(auditor->failure);
    auditor->failure = failure ? g_strdup(failure->message) : NULL;
    if (report) {
        audit_report_free(auditor->report);
        auditor->report = report;
    }
    auditor->ended_ms = now_ms();
    const int64_t rest_ms = MIN((auditor->ended_ms - began_ms) * REST_FACTOR, REST_MAX_MS);
    auditor->rested_ms = auditor->ended_ms + MAX(rest_ms, auditor->options.rest_ms);
}

static void look(struct auditor *auditor)
{
    struct audit_options options = audit_options(auditor);
    g_autoptr(audit_report) report = audit_look(auditor->extender->store, &options);

    post_findings(auditor, report);
    store_verify(auditor->extender->store);
}

/* --- the thread ------------------------------------------------------------------------------ */

/* Under the lock: when the next audit is due, WORKER_FOREVER if none is. */
static int64_t next_audit_ms(const struct auditor *auditor)
{
    if (auditor->wanted)
        return auditor->rested_ms;
    if (auditor->options.interval_ms == 0)
        return WORKER_FOREVER;
    return MAX(auditor->ended_ms + auditor->options.interval_ms, auditor->rested_ms);
}

static void *run(void *data)
{
    struct auditor *auditor = data;
    int64_t look_at_ms = 0;

    while (!store_is_synced(auditor->extender->store)) {
        if (!worker_rest(&auditor->worker, SYNC_POLL_MS))
            return NULL;
    }
    worker_lock(&auditor->worker);
    while (worker_wait(&auditor->worker, MIN(look_at_ms, next_audit_ms(auditor)))) {
        if (now_ms() >= next_audit_ms(auditor)) {
            audit(auditor);
        } else if (now_ms() >= look_at_ms) {
            worker_unlock(&auditor->worker);
            look(auditor);
            worker_lock(&auditor->worker);
            look_at_ms = now_ms() + auditor->options.look_ms;
        }
    }
    worker_unlock(&auditor->worker);
    return NULL;
}

struct auditor *auditor_start(struct extender *extender, const struct auditor_options *options,
                              GError **error)
{
    struct auditor *auditor = g_new0(struct auditor, 1);

    auditor->extender = extender;
    auditor->options = *options;
    if (auditor->options.settle_ms == 0)
        auditor->options.settle_ms = SETTLE_MS;
    if (auditor->options.look_ms == 0)
        auditor->options.look_ms = LOOK_MS;
    if (auditor->options.rest_ms == 0)
        auditor->options.rest_ms = REST_MIN_MS;
    auditor->ended_ms = now_ms();
    worker_init(&auditor->worker);
    if (!worker_start(&auditor->worker, run, auditor, error))
        g_clear_pointer(&auditor, auditor_free);
    return auditor;
}

void auditor_free(struct auditor *auditor)
{
    if (!auditor)
        return;
    worker_release(&auditor->worker);
    audit_report_free(auditor->report);
    g_free(auditor->failure);
    g_free(auditor);
}

uint64_t auditor_request(struct auditor *auditor)
{
    worker_lock(&auditor->worker);
    uint64_t number = auditor->finished + 1;
    if (!auditor->running) {
        auditor->wanted = true;
        worker_wake(&auditor->worker);
    }
    worker_unlock(&auditor->worker);
    return number;
}

/* --- what is known --------------------------------------------------------------------------- */

int64_t auditor_encode(struct auditor *auditor, GString *reply)
{
    struct json_writer writer;
    int64_t age_ms = -1;

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    worker_lock(&auditor->worker);
    json_key_int(&writer, "run", (int64_t)auditor->finished);
    json_key_bool(&writer, "running", auditor->running);
    json_key_string(&writer, "error", auditor->failure);
    json_key(&writer, "report");
    if (auditor->report) {
        age_ms = MAX(g_get_real_time() - auditor->report->finished_us, 0) / 1000;
        audit_report_encode(&writer, auditor->report);
    } else {
        json_null(&writer);
    }
    worker_unlock(&auditor->worker);
    json_end_object(&writer);
    return age_ms;
}

#define DIFFERENCES "gpuledger_audit_differences"
#define LAST_RUN "gpuledger_audit_last_run_timestamp_seconds"
#define DURATION "gpuledger_audit_duration_seconds"

void auditor_metrics(struct auditor *auditor, GString *text)
{
    worker_lock(&auditor->worker);
    const struct audit_report *report = auditor->report;
    if (report) {
        g_string_append(text, "# HELP " DIFFERENCES " Findings of the last audit by cause.\n"
                              "# TYPE " DIFFERENCES " gauge\n");
        for (int cause = AUDIT_NONE + 1; cause < AUDIT_N; cause++)
            g_string_append_printf(text, DIFFERENCES "{cause=\"%s\"} %zu\n",
                                   audit_cause_info((enum audit_cause)cause)->code,
                                   report->counts[cause]);
        g_string_append_printf(text,
                               "# HELP " LAST_RUN " When the last audit that succeeded ended.\n"
                               "# TYPE " LAST_RUN " gauge\n" LAST_RUN " %" G_GINT64_FORMAT "\n",
                               report->finished_us / G_USEC_PER_SEC);
        g_string_append_printf(text,
                               "# HELP " DURATION " How long it took.\n"
                               "# TYPE " DURATION " gauge\n" DURATION " %" G_GINT64_FORMAT
                               ".%03d\n",
                               report->took_ms / 1000, (int)(report->took_ms % 1000));
    }
    worker_unlock(&auditor->worker);
}
