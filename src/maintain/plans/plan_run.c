/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_run.h"

#include "audit/audit.h"
#include "base/log.h"
#include "base/metrics.h"
#include "core/fail.h"
#include "explain/explain.h"
#include "kube/clock.h"
#include "maintain/card_service.h"
#include "evict/drain.h"
#include "maintain/findings.h"
#include "maintain/keeping.h"
#include "maintain/plans/plan_config_map.h"
#include "maintain/plans/plan_marks.h"
#include "maintain/waiting.h"

#include <string.h>

#define CALL_MS 10000
#define ASK_MS 2000  /* between looks at the ConfigMap, while something is waited for */
#define TELL_MS 5000 /* between writes of what is only told */
#define SETTLE_MS 10000
#define SETTLE_POLL_MS 100
#define STUCK_MS 60000
#define AUDITS 3
#define AUDIT_SETTLE_MS 1000
#define AUDIT_PAUSE_MS 5000

struct run {
    const struct plan_run_args *args;
    struct keeping *keeping;
    char *by;   /* "plan NAMESPACE/NAME", the same for all replicas */
    char *gone; /* UID of the pod that went last; or NULL */
    int64_t asked_ms, told_ms;
    char *waiter_uid,
        *waiter_controller; /* of the pod that waits for which it is, as far as they are known */
    char *lost,
        *lost_ns; /* the UID of a controller whose pod has not moved, and its namespace; or NULL */
    bool in_vain; /* room was kept for the pod that waits, and it has not come */
    bool stalled;
    bool left; /* to whoever serves next: nothing is written any more */
    bool paused;
};

/* --- what the executor asks ------------------------------------------------------------------- */

static bool write_status(const struct plan_run_args *args, GError **error)
{
    return plan_config_map_write(args->with->client, args->order, args->status, error);
}

static bool is_same(const struct plan_order *order, const struct plan_order *now)
{
    return now->wanted && g_str_equal(order->digest, now->digest) &&
           g_str_equal(order->uid, now->uid);
}

/* This replica serves as it did when it began, and is not about to end. */
static bool serves(struct run *run)
{
    run->left = run->left || !worker_rest(run->args->worker, 0) ||
                leadership_term(run->args->with->leadership) != run->args->term;
    return !run->left;
}

/* What cannot be read may still be ordered: nothing begins before the status has been written. */
static bool is_wanted(void *data, GError **error)
{
    struct run *run = data;
    g_autoptr(plan_order) now = NULL;

    if (!serves(run))
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "this replica serves no longer");
    if (clock_ms() < run->asked_ms + ASK_MS)
        return true;
    run->asked_ms = clock_ms();
    const enum outcome outcome =
        plan_config_map_read(run->args->with->client, run->args->order, &now, NULL);
    if (outcome == OUTCOME_NOT_FOUND)
        return fail_with(error, GPULEDGER_ERROR_NOT_FOUND, "its ConfigMap is gone");
    return outcome != OUTCOME_OK || is_same(run->args->order, now) ||
           fail_with(error, GPULEDGER_ERROR_CONFLICT, "its ConfigMap orders it no longer");
}

static void tell(void *data, const char *text)
{
    struct run *run = data;
    const struct plan_order *order = run->args->order;
    g_autoptr(GError) failure = NULL;

    log_event(LOG_LEVEL_INFO, "plan", LOG_TEXT("configmap", order->name), LOG_TEXT("what", text));
    plan_status_tell(run->args->status, text);
    if (clock_ms() < run->told_ms + TELL_MS || !serves(run))
        return;
    run->told_ms = clock_ms();
    if (!write_status(run->args, &failure))
        log_event(LOG_LEVEL_WARN, "plan's status cannot be written",
                  LOG_TEXT("configmap", order->name), LOG_TEXT("why", failure->message));
}

/* Of another thread, while nobody waits for it. */
static void complain_of(void *data, const char *text)
{
    log_event(LOG_LEVEL_WARN, "plan", LOG_TEXT("what", text));
}

static bool is_held(struct store *store, const char *uid)
{
    const bool held = ledger_get(store_lock(store), uid) != NULL;

    store_unlock(store);
    return held;
}

/* The watch needs a moment to tell that the last pod has ended, and that nothing is kept in its place any more: that
 * may be left of another replica, which was killed before it said that the step begins. */
static void settle(const struct run *run)
{
    const int64_t until_ms = clock_ms() + SETTLE_MS;

    while (((run->gone && is_held(run->args->with->store, run->gone)) ||
            plan_marks_keep_left(run->args->with->store, run->by)) &&
           clock_ms() < until_ms && worker_rest(run->args->worker, SETTLE_POLL_MS))
        continue;
}

/* But for the pod to admit. */
static struct relocation_query query_of(const struct plan_run_args *args)
{
    const struct plan_order *order = args->order;

    return (struct relocation_query){
        .store = args->with->store,
        .cluster = args->with->cluster,
        .empty = order->aim.place.node ? &order->aim.place : NULL,
        .group_ns = order->aim.group_ns,
        .group = order->aim.group,
        .less = order->aim.less,
        .fragmented_most = args->status->fragmented_most,
        .moves_max = order->moves_max,
        .per_owner = order->budgets.per_owner,
        .per_node = order->budgets.per_node,
        .per_namespace = order->budgets.per_namespace,
        .paused = order->aim.waits ? args->stayed : NULL,
        .permits = args->with->permits,
    };
}

bool plan_run_choose(const struct plan_run_args *args, char **ret_why)
{
    struct plan_aim *aim = &args->order->aim;
    g_autoptr(GError) failure = NULL;
    g_autoptr(relocation) plan =
        waiting_find(&(struct waiting_query){.relocation = query_of(args),
                                             .waited_ms = aim->waited_ms,
                                             .now_s = g_get_real_time() / G_USEC_PER_SEC,
                                             .passed = args->passed,
                                             .pauses = args->waiters,
                                             .asking = true,
                                             .turns = args->turns},
                     &failure);

    *ret_why = NULL;
    if (plan && plan->steps->len > 0) {
        aim->ns = g_strdup(plan->ns);
        aim->name = g_strdup(plan->name);
        args->status->waiter = g_strdup_printf("%s/%s", plan->ns, plan->name);
        return true;
    }
    *ret_why = g_strdup(!plan ? failure->message : plan->why ? plan->why : "nobody waits");
    return false;
}

static struct relocation *look(void *data, GError **error)
{
    struct run *run = data;
    const struct plan_aim *aim = &run->args->order->aim;
    struct plan_status *status = run->args->status;
    g_autoptr(json_arena) arena = json_arena_new();
    GError *failure = NULL;
    struct pod_view pod;

    settle(run);
    if (aim->name && !explain_read_pod(run->args->with->cluster, arena, aim->ns, aim->name,
                                       clock_ms() + CALL_MS, &pod, &failure)) {
        if (aim->waits && g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND)) {
            g_error_free(failure);
            return waiting_gone(aim->ns, aim->name);
        }
        g_propagate_error(error, failure);
        return NULL;
    }
    struct relocation_query query = query_of(run->args);
    query.admit = aim->name ? &pod : NULL;
    struct relocation *plan = relocation_find(&query, error);
    if (plan) {
        g_free(run->waiter_uid);
        run->waiter_uid = g_strdup(plan->uid);
        g_free(run->waiter_controller);
        run->waiter_controller = aim->name ? g_strdup(pod.controller) : NULL;
    }
    if (plan && plan->measured && plan->fragmented_most >= 0)
        status->fragmented_most = plan->fragmented_most;
    return plan;
}

static bool rest(void *data, int64_t duration_ms)
{
    return worker_rest(data, duration_ms);
}

/* `error` is not NULL. Once more, if the API server could not be read. */
static struct audit_report *audit(struct run *run, GError **error)
{
    const struct plan_service_options *with = run->args->with;
    struct audit_report *report = NULL;

    for (int i = 0; i < AUDITS && !report; i++) {
        g_clear_error(error);
        if (i > 0 && (!worker_rest(run->args->worker, AUDIT_PAUSE_MS) || !serves(run)))
            break;
        report = audit_compare(with->store, with->cluster,
                               &(struct audit_options){.stuck_ms = STUCK_MS,
                                                       .settle_ms = AUDIT_SETTLE_MS,
                                                       .rest = rest,
                                                       .rest_data = run->args->worker},
                               error);
    }
    if (!report && !*error)
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                            "this replica serves no longer");
    return report;
}

static bool may_go_on(void *data, const struct relocation *plan, GError **error)
{
    struct run *run = data;
    struct plan_status *status = run->args->status;
    const char *nodes[RELOCATION_PLACES_MAX];
    g_autoptr(findings) now = findings_new(), before = findings_new();
    GError *failure = NULL;
    g_autoptr(audit_report) report = audit(run, &failure);

    if (!report) {
        g_propagate_prefixed_error(error, failure, "stopped: the cluster cannot be audited: ");
        return false;
    }
    findings_add_report(now, report);
    if (!status->known)
        status->known = findings_texts(now);
    for (char **known = status->known; *known; known++)
        findings_learn(before, *known);
    status->left = plan->steps->len;
    relocation_places(plan, nodes);
    return findings_check(now, before, nodes, error);
}

/* --- what becomes of steps -------------------------------------------------------------------- */

static void tell_move(const struct run *run, const struct logged_step *step)
{
    g_autofree char *plan = g_strdup_printf("%s/%s", run->args->order->ns, run->args->order->name);
    const char *outcome = plan_step_names[step->event];
    g_autofree char *pod = g_strdup_printf("%s/%s", step->ns, step->name);

    metrics_count(COUNTER_PLAN_STEPS, (unsigned)step->event);
    log_event(step->event == EXECUTOR_FAILED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "plan's step",
              LOG_TEXT("plan", plan), LOG_TEXT("outcome", outcome), LOG_TEXT("pod", pod),
              LOG_TEXT("from", step->from), LOG_TEXT("to", step->to), LOG_TEXT("why", step->why));
    store_tell_move(run->args->with->store, &(struct observed_move){.plan = plan,
                                                                    .outcome = outcome,
                                                                    .ns = step->ns,
                                                                    .name = step->name,
                                                                    .uid = step->uid,
                                                                    .from = step->from,
                                                                    .to = step->to,
                                                                    .why = step->why});
}

/* The last of the log has come to this. */
static void note_last(struct run *run)
{
    struct plan_status *status = run->args->status;
    const struct logged_step *last = step_log_get(status->log, step_log_n(status->log) - 1);
    g_autofree char *text = g_strdup_printf("%s/%s %s", last->ns, last->name,
                                            last->event == EXECUTOR_STEP    ? "moves"
                                            : last->event == EXECUTOR_MOVED ? "has moved"
                                            : last->event == EXECUTOR_GONE  ? "has gone by itself"
                                                                            : "has not moved");

    status->moved += last->event == EXECUTOR_MOVED;
    status->left -= last->event == EXECUTOR_MOVED && status->left > 0;
    plan_status_tell(status, text);
    tell_move(run, last);
}

static bool note(void *data, const struct executor_news *news, GError **error)
{
    struct run *run = data;
    const struct plan_run_args *args = run->args;

    if (!serves(run))
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "this replica serves no longer");
    step_log_note(args->status->log, news, g_get_real_time() / G_USEC_PER_SEC);
    g_free(run->gone);
    run->gone = g_strdup(news->step->uid);
    if (news->event != EXECUTOR_STEP)
        note_last(run);
    if (news->event == EXECUTOR_GONE)
        step_log_withdraw(args->status->log);
    run->told_ms = clock_ms();
    if (!write_status(args, error)) {
        step_log_withdraw(args->status->log);
        return fail_within(error, "stopped: its status cannot be written: ");
    }
    if (news->event == EXECUTOR_STEP)
        note_last(run);
    return true;
}

/* --- going on --------------------------------------------------------------------------------- */

static void note_lost(void *data, const char *ns, const char *owner)
{
    struct run *run = data;

    g_free(run->lost_ns);
    run->lost_ns = g_strdup(ns);
    g_free(run->lost);
    run->lost = g_strdup(owner);
}

/* A step that had begun when its executor ended. */
static bool finish_step(struct run *run, GError **error)
{
    struct step_log *log = run->args->status->log;
    const struct logged_step *open = step_log_open(log);
    GError *failure = NULL;

    if (!open)
        return true;
    struct drain_pod pod = {
        .ns = open->ns, .name = open->name, .uid = open->uid, .n_ready = open->n_ready};
    const struct drain_query query = {
        .ender = ENDER_PLAN,
        .client = run->args->with->client,
        .pods = &pod,
        .n_pods = 1,
        .timeout_ms = run->args->order->timeout_ms,
        .progress = tell,
        .go_on = is_wanted,
        .data = run,
    };
    const bool ok = drain_finish(&query, open->owner, &failure);
    g_free(pod.why);
    if (run->left) {
        g_propagate_error(error, failure);
        return false;
    }
    run->gone = g_strdup(open->uid);
    if (ok && pod.state == DRAIN_STAYS) {
        step_log_withdraw(log);
        return true;
    }
    if (pod.lost)
        note_lost(run, open->ns, open->owner);
    step_log_end(log, ok ? EXECUTOR_MOVED : EXECUTOR_FAILED, ok ? NULL : failure->message);
    note_last(run);
    if (!ok)
        g_propagate_prefixed_error(error, failure, "stopped: ");
    return ok;
}

static bool close_place(const struct run *run, GError **error)
{
    const struct plan_order *order = run->args->order;
    const struct service_query query = {run->args->with->client, &order->aim.place,
                                        run->args->with->dialects, false, false};
    g_autoptr(GPtrArray) changes = order->aim.place.node ? card_service_set(&query, error) : NULL;

    return !order->aim.place.node || changes;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool execute(struct run *run, GError **error)
{
    const struct plan_run_args *args = run->args;
    const struct plan_order *order = args->order;
    const struct moves moves = {args->with->client, args->with->ns, MOVES_PLAN};
    const struct executor executor = {
        .client = args->with->client,
        .store = args->with->store,
        .permits = args->with->permits,
        .leadership = args->with->leadership,
        .term = args->term,
        .keeping = run->keeping,
        .budgets = order->budgets,
        .moves = &moves,
        .window = order->window,
        .timeout_ms = order->timeout_ms,
        .ns = order->aim.ns,
        .name = order->aim.name,
        .paused = &run->paused,
        .stalled = &run->stalled,
        .in_vain = &run->in_vain,
        .note_lost = note_lost,
        .past = args->past,
        .look = look,
        .may_go_on = may_go_on,
        .is_wanted = is_wanted,
        .note = note,
        .tell = tell,
        .data = run,
    };
    guint moved = 0;
    g_autoptr(relocation) plan = look(run, error);

    if (!plan)
        return fail_within(error, "stopped: ");
    g_free(args->status->goal);
    args->status->goal = g_strdup(plan->goal);
    args->status->left = plan->steps->len;
    const bool ok = executor_run(&executor, &plan, &moved, error);
    args->status->left = plan->steps->len;
    return ok;
}

static void tell_paused(const struct run *run, const char *text)
{
    const struct plan_aim *aim = &run->args->order->aim;

    if (run->waiter_uid)
        door_tell(&(struct door_order){.client = run->args->with->client,
                                       .ender = ENDER_PLAN,
                                       .permits = run->args->with->permits,
                                       .ns = aim->ns,
                                       .name = aim->name,
                                       .uid = run->waiter_uid},
                  DOOR_PAUSED, text);
}

/* It goes on with another one. Who cannot be helped has another turn later. */
static void leave_waiter(struct run *run, bool ok, const char *why)
{
    const struct plan_run_args *args = run->args;
    struct plan_status *status = args->status;
    const char *reason = ok ? "it has not come to the room that was made" : why;
    const struct waiting_left left = {args->order->aim.ns, run->waiter_uid, run->waiter_controller,
                                      .helped = ok, .in_vain = run->in_vain};
    const bool paused = waiting_leave(&left, args->passed, args->waiters, PLAN_PAUSE_MS);
    g_autofree char *text =
        paused ? g_strdup_printf("%s is passed over for an hour: %s", status->waiter, reason)
               : g_strdup_printf("room for %s has been made", status->waiter);

    if (paused)
        tell_paused(run, text);
    status->phase = PLAN_PHASE_WAITING;
    plan_status_tell(status, text);
    g_clear_pointer(&status->waiter, g_free);
}

/* An order 'waiting' goes on without the pods of a controller of which one has not moved: any tenant could have one
 * that never ends, or is never made again. */
static void pass_over_lost(struct run *run)
{
    if (!run->lost || !run->args->order->aim.waits)
        return;
    pauses_begin(run->args->stayed, run->lost_ns, run->lost, clock_ms());
    run->stalled = true;
}

static void conclude(struct run *run, bool ok, const GError *failure)
{
    const struct plan_run_args *args = run->args;
    struct plan_status *status = args->status;
    g_autoptr(GError) unwritten = NULL;

    pass_over_lost(run);
    status->phase = ok ? PLAN_PHASE_DONE : run->paused ? PLAN_PHASE_WAITING : PLAN_PHASE_STOPPED;
    plan_status_tell(status, ok ? "the goal is reached" : failure->message);
    if (args->order->aim.waits && (ok || run->stalled))
        leave_waiter(run, ok, ok ? NULL : failure->message);
    if (!run->paused && (ok || !args->order->aim.waits || !run->stalled))
        metrics_count(COUNTER_PLANS, ok ? PLAN_RESULT_DONE : PLAN_RESULT_STOPPED);
    log_event(ok || run->paused ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "plan ended",
              LOG_TEXT("configmap", args->order->name),
              LOG_TEXT("phase", plan_phases[status->phase]), LOG_NUMBER("moved", status->moved),
              LOG_TEXT("text", status->text));
    if (!write_status(args, &unwritten))
        log_event(LOG_LEVEL_WARN, "plan's status cannot be written",
                  LOG_TEXT("configmap", args->order->name), LOG_TEXT("why", unwritten->message));
}

char *plan_run_observe(const struct plan_run_args *args)
{
    struct run run = {.args = args};
    g_autoptr(GError) failure = NULL;
    g_autoptr(relocation) plan = look(&run, &failure);

    g_free(run.waiter_uid);
    g_free(run.waiter_controller);
    if (!plan)
        return g_strdup_printf("observed: %s", failure->message);
    if (plan->steps->len == 0)
        return g_strdup_printf("observed: no pod would be moved%s%s", plan->why ? ": " : "",
                               plan->why ? plan->why : "");
    const struct relocation_step *step = &g_array_index(plan->steps, struct relocation_step, 0);
    return g_strdup_printf("observed: %s/%s on %s would be the first of %u pods to leave", step->ns,
                           step->name, step->from, plan->steps->len);
}

void plan_run(const struct plan_run_args *args)
{
    struct run run = {.args = args, .asked_ms = clock_ms()};
    g_autoptr(GError) failure = NULL;

    run.by = g_strdup_printf("plan %s/%s", args->order->ns, args->order->name);
    run.keeping = keeping_new(&(struct keeping_options){
        .client = args->with->client, .by = run.by, .tell = complain_of, .data = NULL});
    args->status->phase = PLAN_PHASE_RUNNING;
    plan_status_tell(args->status, "begins");
    if (!write_status(args, &failure)) {
        run.left = true; /* somebody else is at it, or it will be tried again */
        log_event(LOG_LEVEL_WARN, "plan does not begin", LOG_TEXT("configmap", args->order->name),
                  LOG_TEXT("why", failure->message));
    } else {
        const bool ok = plan_marks_take_over(run.args->with, run.by, run.keeping, &failure) &&
                        finish_step(&run, &failure) &&
                        (!plan_marks_keep_left(run.args->with->store, run.by) ||
                         keeping_narrow(run.keeping, &failure)) &&
                        close_place(&run, &failure) && execute(&run, &failure);
        if (serves(&run)) {
            keeping_end(
                run.keeping); /* so that nothing is kept any more for what is said to be over */
            conclude(&run, ok, failure);
        }
    }
    if (run.left)
        keeping_abandon(run.keeping);
    keeping_free(run.keeping);
    g_free(run.by);
    g_free(run.gone);
    g_free(run.waiter_uid);
    g_free(run.waiter_controller);
    g_free(run.lost);
    g_free(run.lost_ns);
}
