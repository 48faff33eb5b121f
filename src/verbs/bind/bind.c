/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding: reserve under the lock, tell the API server without it, then confirm, cancel, or keep
 * what is not known.
 *
 * Idempotent by pod UID: whoever finds an allocation of the pod joins the bind that made it,
 * repeats a Binding whose outcome is unknown with the very same annotations, or reports success.
 * The API server accepts one Binding per pod, so repeating one can never grant twice.
 */
#include "verbs/bind/bind.h"
#include "base/decisions.h"
#include "base/log.h"
#include "verbs/bind/node_lock.h"

#include <gpuledger/error.h>
#include <string.h>

#define UNKNOWN_PODS "too many binds of pods that are not known here; try again"
#define EARLY_MEMBER "the pod is of a group, and the watch has not shown it yet; try again"
#define CROWDED "too many binds wait already; try again"

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void post_event(const struct bind *bind, enum pod_event_cause cause, const char *note)
{
    const struct bind_args *args = bind->args;

    pod_event_post(bind->extender->cluster, &(struct pod_event){.cause = cause,
                                                                .ns = args->pod_namespace,
                                                                .name = args->pod_name,
                                                                .uid = args->pod_uid,
                                                                .note = note});
}

/* --- reserving ------------------------------------------------------------------------------ */

enum step {
    STEP_SEND,  /* a reservation is ours to send */
    STEP_PLAIN, /* no GPU: bind without annotations */
    STEP_DONE,  /* nothing left to do */
    STEP_FAILED,
};

/* Reads the pod that the watch has not shown, once. */
static bool fetch_pod(struct bind *bind, GError **error)
{
    GError *failure = NULL;

    if (bind->pod.uid)
        return true;
    switch (bind_get_pod(bind, &bind->pod, &failure)) {
    case OUTCOME_OK:
        break;
    case OUTCOME_NOT_FOUND:
        bind->attempt.result = BIND_RESULT_CONFLICT;
        g_propagate_error(error, failure);
        return false;
    case OUTCOME_CONFLICT:
    case OUTCOME_REFUSED:
    case OUTCOME_UNKNOWN:
        bind->attempt.result = BIND_RESULT_REFUSED; /* nothing was written */
        g_propagate_error(error, failure);
        return false;
    }
    if (g_strcmp0(bind->pod.uid, bind->args->pod_uid) != 0)
        return attempt_fail(
            &bind->attempt, BIND_RESULT_CONFLICT, error,
            "the pod of that name has another UID: it was deleted and created again");
    if (!pod_view_is_bound(&bind->pod))
        bind->rules = pod_rules_new(&bind->pod);
    return true;
}

/* What the pod asks for, likewise. */
static enum step fetch_request(struct bind *bind, GError **error)
{
    const struct store_options *options = store_options(bind->extender->store);
    const struct pod_view *pod = &bind->pod;
    GError *failure = NULL;

    if (!fetch_pod(bind, error))
        return STEP_FAILED;
    if (pod_view_is_bound(pod)) {
        if (g_str_equal(pod->node_name, bind->args->node)) {
            bind->attempt.result = BIND_RESULT_REPEATED;
            return STEP_DONE;
        }
        attempt_fail(&bind->attempt, BIND_RESULT_CONFLICT, error,
                     "the pod is bound to another node");
        return STEP_FAILED;
    }
    bind->attempt.request = dialect_read_request(pod, &options->dialects, &failure);
    bind->attempt.priority = pod->priority;
    bind->attempt.fetched = bind->attempt.request != NULL;
    if (failure) {
        bind->attempt.result = BIND_RESULT_INVALID;
        post_event(bind, POD_EVENT_INVALID, failure->message);
        g_propagate_error(error, failure);
        return STEP_FAILED;
    }
    if (bind->attempt.request && options->gangs && pod_group_claim(pod).name) {
        attempt_fail(&bind->attempt, BIND_RESULT_NOT_READY, error, EARLY_MEMBER);
        return STEP_FAILED;
    }
    if (bind->attempt.request && store_observer(bind->extender->store))
        bind->attempt.asks = attempt_describe(pod);
    return bind->attempt.request ? STEP_SEND : STEP_PLAIN;
}

/* --- who may go where ----------------------------------------------------------------------- */

/* What a look at a call comes to. */
struct look {
    bool unknown; /* nobody here knows the pod */
    bool may_ask; /* ... and the API server may be asked about it */
    bool is_pod;  /* there is such a pod, and it waits for a node */
    enum denial denial;
    char *why; /* of a denial; owned */
};

/* Under the lock: whether kube-scheduler could have sent the call. Of a pod that holds cards, because an
 * earlier bind goes on or has ended, the ledger knows all, and a repeated bind has to end as the first
 * one. */
static struct look look_at_call(struct bind *bind, const struct ledger *ledger,
                                const struct moment *moment)
{
    struct denials *denials = bind->extender->denials;
    const char *uid = bind->args->pod_uid;
    const struct pod_rules *rules = store_rules(bind->extender->store, uid);
    struct look look = {0};

    if (!denials || ledger_get(ledger, uid))
        return look;
    look.unknown = !rules && !bind->pod.uid;
    rules = rules ? rules : bind->rules;
    look.denial = denials_find(denials, bind->args, rules, ledger_node(ledger, bind->args->node),
                               moment->now_ms, &look.why);
    look.is_pod = rules && look.denial != DENIAL_OTHER_POD;
    if (look.unknown && look.denial == DENIAL_NONE)
        look.may_ask = denials_may_ask(denials, bind->args, moment->now_ms);
    return look;
}

/* Does what such a look asks for; takes it. True: look again. */
static bool act_on_look(struct bind *bind, const struct look *take_look, GError **error)
{
    g_autofree char *why = take_look->why;

    if (take_look->denial == DENIAL_NONE && take_look->may_ask)
        return fetch_pod(bind, error);
    if (take_look->is_pod)
        post_event(bind, POD_EVENT_DENIED, why);
    metrics_count(COUNTER_BIND_DENIALS,
                  take_look->denial == DENIAL_NONE ? DENIAL_LOOKUPS : take_look->denial);
    return attempt_fail(&bind->attempt, BIND_RESULT_DENIED, error, why ? why : UNKNOWN_PODS);
}

/* Whoever waits leaves room for another replica when this one hands over. */
static bool check_patience(struct bind *bind, GError **error)
{
    if (!bind->extender->leadership)
        return true;
    if (g_atomic_int_get(&bind->extender->draining))
        return attempt_fail(&bind->attempt, BIND_RESULT_NOT_READY, error, BIND_DRAINING);
    return bind_check_term(bind, error);
}

/* Under the lock: the end of waiting for the node. What has no time of its own is waited for as long as a
 * match may take. */
static int64_t find_wait_end(const struct bind *bind)
{
    const int64_t patience_ms = store_options(bind->extender->store)->patience_ms;
    const int64_t until_ms = bind->attempt.wait_ms == INT64_MAX ? bind->start_ms + patience_ms
                                                                : now_ms() + bind->attempt.wait_ms;

    return MIN(bind->queue_until_ms, until_ms);
}

/* Under the lock: sleeps until something of the node or the pod has changed, it is time to look whether
 * something else has, or patience has ended with that which is waited for. False, with an error: that
 * took too long, or too many wait. */
static bool wait_for(struct bind *bind, enum attempt_step step, GError **error)
{
    const int64_t start_us = g_get_monotonic_time();
    const bool for_node = step == ATTEMPT_WAIT_NODE;
    const bool for_group = step == ATTEMPT_WAIT_GROUP || bind->attempt.grouped;
    bool cut;

    if (!waiters_enter(&bind->extender->waiters, &bind->waiter, &cut))
        return attempt_fail(&bind->attempt, BIND_RESULT_CROWDED, error, CROWDED);
    if (cut)
        store_notify_all(bind->extender->store);
    const int64_t until_ms = for_group  ? attempt_group_ends(&bind->attempt)
                             : for_node ? find_wait_end(bind)
                                        : bind->deadline_ms;
    if (now_ms() >= bind->look_ms)
        bind->look_ms = now_ms() + HINT_LOOK_MS;
    /* The end of patience is a change as well: the next look refuses. */
    const bool in_time =
        store_wait(bind->extender->store, bind->args->node, bind->args->pod_uid,
                   MIN(until_ms, bind->look_ms)) ||
        now_ms() < until_ms || for_group ||
        (for_node && until_ms < bind->queue_until_ms && bind->attempt.wait_ms != INT64_MAX);

    if (for_node || for_group)
        bind->queue_us += g_get_monotonic_time() - start_us;
    if (in_time)
        return true;
    return for_node ? attempt_fail(&bind->attempt, BIND_RESULT_TIMED_OUT, error,
                                   reason_info(bind->attempt.waits)->text)
                    : attempt_fail(&bind->attempt, BIND_RESULT_UNKNOWN, error,
                                   "another bind of the same pod is still running");
}

static enum step look_and_wait(struct bind *bind, GError **error)
{
    struct store *store = bind->extender->store;

    while (check_patience(bind, error)) {
        struct moment moment;
        struct ledger *ledger = store_decide(store, &moment);
        const struct look look = look_at_call(bind, ledger, &moment);
        if (look.unknown || look.denial != DENIAL_NONE) {
            store_unlock(store);
            if (act_on_look(bind, &look, error))
                continue;
            break;
        }
        store_record_moment(store, &moment);
        enum attempt_step step = attempt_look(&bind->attempt, store, ledger, &moment, error);
        bool go_on = true;

        observer_tell(store_observer(store),
                      &(struct observation){OBSERVED_LOOK, moment.number, .moment = &moment,
                                            .attempt = &bind->attempt, .step = step,
                                            .ledger = ledger, .failure = *error});
        if (step == ATTEMPT_WAIT_NODE || step == ATTEMPT_WAIT_GROUP || step == ATTEMPT_WAIT_BIND)
            go_on = wait_for(bind, step, error);
        store_unlock(store);
        if (step == ATTEMPT_FETCH) {
            enum step fetched = fetch_request(bind, error);
            if (fetched != STEP_SEND) /* else there is something to place now */
                return fetched;
        }
        if (step == ATTEMPT_SEND || step == ATTEMPT_DONE)
            return step == ATTEMPT_SEND ? STEP_SEND : STEP_DONE;
        if (step == ATTEMPT_FAILED || !go_on)
            break;
    }
    return STEP_FAILED;
}

/* Finds or makes the pod's reservation, and waits for nothing any more. */
static enum step secure(struct bind *bind, GError **error)
{
    const enum step step = look_and_wait(bind, error);

    if (!bind->waiter.in)
        return step;
    store_lock(bind->extender->store);
    waiters_leave(&bind->extender->waiters, &bind->waiter);
    store_unlock(bind->extender->store);
    return step;
}

/* Writes down how the Binding went. */
static void conclude(struct bind *bind)
{
    struct moment moment;

    store_decide_recorded(bind->extender->store, &moment);
    attempt_conclude(bind->extender->store, bind->args->pod_uid, bind->attempt.result, &moment);
    /* Of a pod that is bound its booking stays as it was. */
    store_notify(bind->extender->store,
                 bind->attempt.result == BIND_RESULT_BOUND ? NULL : bind->args->node,
                 bind->args->pod_uid);
    store_unlock(bind->extender->store);
    observer_tell(store_observer(bind->extender->store),
                  &(struct observation){OBSERVED_CONCLUSION, moment.number, .moment = &moment,
                                        .key = bind->args->pod_uid,
                                        .result = bind->attempt.result});
}

/* From here on the next holder of the Lease knows of the reservation. */
static bool publish(struct bind *bind, GError **error)
{
    int64_t start_us = g_get_monotonic_time();
    bool published = leadership_publish(bind->extender->leadership, bind->term,
                                        bind->attempt.send_until_ms, error);
    bind->api_us += g_get_monotonic_time() - start_us;
    if (!published)
        bind->attempt.result =
            bind->attempt.distrusted ? BIND_RESULT_UNKNOWN : BIND_RESULT_NOT_READY;
    return published;
}

static struct node_lock node_lock(const struct bind *bind)
{
    return (struct node_lock){bind->extender->cluster,   bind->extender->store,
                              bind->attempt.dialect,     bind->args->node,
                              bind->args->pod_namespace, bind->args->pod_name};
}

static bool lock_node(struct bind *bind, GError **error)
{
    const struct node_lock lock = node_lock(bind);
    /* A little more than the time for waiting, all of which may have been spent. */
    const int64_t until_ms = (bind->queue_until_ms + bind->attempt.send_until_ms) / 2;
    int64_t start_us = g_get_monotonic_time();
    enum outcome outcome = node_lock_take(
        &lock, leadership_cut(bind->extender->leadership, bind->term, until_ms), error);
    bind->queue_us += g_get_monotonic_time() - start_us;
    if (outcome == OUTCOME_OK)
        return true;
    bind->attempt.result = bind->attempt.distrusted      ? BIND_RESULT_UNKNOWN
                           : outcome == OUTCOME_CONFLICT ? BIND_RESULT_TIMED_OUT
                                                         : BIND_RESULT_REFUSED;
    return false;
}

/* Before the reservation goes, so that nobody who gets its place finds the lock taken. */
static void unlock_node(struct bind *bind)
{
    const struct node_lock lock = node_lock(bind);

    if (bind->attempt.result != BIND_RESULT_BOUND && bind->attempt.result != BIND_RESULT_UNKNOWN)
        node_lock_release(&lock, bind->deadline_ms);
}

/* The seal is no part of what was decided, and is not recorded: its key is a secret. */
static void add_seal(struct bind *bind)
{
    char *seal = seals_make(store_options(bind->extender->store)->seals, bind->attempt.facts);

    if (seal)
        annotations_add(&bind->attempt.annotations, SEAL_ANNOTATION, seal);
}

static bool run(struct bind *bind, GError **error)
{
    switch (secure(bind, error)) {
    case STEP_DONE:
        return true;
    case STEP_FAILED:
        return false;
    case STEP_PLAIN:
        return bind_send(bind, error);
    case STEP_SEND:
        break;
    }
    add_seal(bind);
    bool bound = publish(bind, error) && lock_node(bind, error) && bind_send(bind, error);
    unlock_node(bind);
    conclude(bind);
    return bound;
}

/* --- the verb ------------------------------------------------------------------------------- */

static bool read_call(struct bind *bind, struct bind_args *args, const char *body, size_t length,
                      GError **error)
{
    bind->attempt.result = BIND_RESULT_INVALID;
    const cJSON *json = json_parse(bind->arena, body, length, error);
    if (!json || !bind_args_decode(bind->arena, json, args, error)) {
        metrics_count(COUNTER_REQUESTS_BAD, VERB_BIND);
        return false;
    }
    bind->attempt.result = BIND_RESULT_NOT_READY;
    if (g_atomic_int_get(&bind->extender->draining)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, BIND_DRAINING);
        return false;
    }
    /* Before anything is looked up: what the ledger says counts for this term only. */
    bind->term = leadership_term(bind->extender->leadership);
    if (bind->term == 0) {
        leadership_set_error(error);
        return false;
    }
    return store_check_synced(bind->extender->store, error);
}

static void log_bind(const struct bind *bind, int64_t took_us, const GError *failure)
{
    const char *ns = bind->args->pod_namespace, *name = bind->args->pod_name;
    g_autofree char *pod = g_strdup_printf("%s/%s", ns ? ns : "", name ? name : "");

    if (failure)
        log_event(LOG_LEVEL_WARN, "bind failed", LOG_TEXT("pod", pod),
                  LOG_TEXT("node", bind->args->node), LOG_TEXT("why", failure->message),
                  LOG_NUMBER("us", took_us));
    else
        log_event(LOG_LEVEL_INFO, "bound", LOG_TEXT("pod", pod), LOG_TEXT("node", bind->args->node),
                  LOG_NUMBER("card", bind->attempt.card),
                  LOG_NUMBER("repeated", bind->attempt.result == BIND_RESULT_REPEATED),
                  LOG_NUMBER("queue_us", bind->queue_us), LOG_NUMBER("api_us", bind->api_us),
                  LOG_NUMBER("us", took_us));
}

/* The policy by which cards of the node are chosen. */
static const char *policy_name(struct store *store, const char *node_name)
{
    const struct node *node = ledger_node(store_lock(store), node_name);
    const struct policy *policy =
        node && node->policy ? node->policy : store_options(store)->policy;

    store_unlock(store);
    return policy ? policy->name : NULL;
}

/* For people. */
static void note_decision(const struct bind *bind, const GError *failure)
{
    if (bind->attempt.result == BIND_RESULT_INVALID)
        return; /* it may name nobody */
    decisions_note(
        &(struct decision){
            .verb = VERB_BIND,
            .ns = bind->args->pod_namespace,
            .name = bind->args->pod_name,
            .node = bind->args->node,
            .card = bind->attempt.card,
            .result = bind_result_names[bind->attempt.result],
            .policy = bind->attempt.result == BIND_RESULT_BOUND && bind->attempt.card >= 0
                          ? policy_name(bind->extender->store, bind->args->node)
                          : NULL,
            .why = failure ? failure->message : NULL,
        },
        g_get_real_time() / G_USEC_PER_SEC);
}

void extender_bind(struct extender *extender, const char *body, size_t length, GString *reply)
{
    int64_t start_us = g_get_monotonic_time();
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct bind_args args = {0};
    struct bind bind = {
        .extender = extender,
        .arena = arena,
        .args = &args,
        .start_ms = start_us / 1000,
        .deadline_ms = start_us / 1000 + extender->bind_timeout_ms,
        .queue_until_ms = start_us / 1000 + extender->bind_timeout_ms * 4 / 6,
        .attempt = {.args = &args,
                    .journal = extender->journal,
                    .send_until_ms = start_us / 1000 + extender->bind_timeout_ms * 5 / 6,
                    .seals = seals_sign(store_options(extender->store)->seals),
                    .card = CARD_UNKNOWN},
    };
    struct json_writer writer;

    if (read_call(&bind, &args, body, length, &failure)) {
        bind.waiter = (struct waiting_bind){.ns = args.pod_namespace ? args.pod_namespace : "",
                                            .node = args.node};
        run(&bind, &failure);
    }
    json_writer_init(&writer, reply);
    bind_result_encode(&writer, failure ? failure->message : "");
    if (extender->denials && !failure)
        passes_forget(extender->denials->passes, args.pod_uid);
    pod_rules_free(bind.rules);
    attempt_clear(&bind.attempt);

    int64_t took_us = g_get_monotonic_time() - start_us;
    metrics_count(COUNTER_BINDS, bind.attempt.result);
    metrics_observe(VERB_BIND, PHASE_QUEUE, bind.queue_us);
    metrics_observe(VERB_BIND, PHASE_API, bind.api_us);
    metrics_observe(VERB_BIND, PHASE_DECIDE, took_us - bind.queue_us - bind.api_us);
    metrics_observe(VERB_BIND, PHASE_TOTAL, took_us);
    log_bind(&bind, took_us, failure);
    note_decision(&bind, failure);
}
