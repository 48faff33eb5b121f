/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/bind/attempt.h"

#include "core/ledger.h"
#include "store/booking.h"
#include "store/steering.h"
#include "verbs/gang/gang_gate.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>

bool attempt_fail(struct attempt *attempt, enum bind_result result, GError **error,
                  const char *text)
{
    attempt->result = result;
    g_set_error_literal(
        error, GPULEDGER_ERROR,
        result == BIND_RESULT_INVALID ? GPULEDGER_ERROR_INVALID : GPULEDGER_ERROR_CONFLICT, text);
    return false;
}

static enum attempt_step refuse(struct attempt *attempt, enum bind_result result, GError **error,
                                const char *text)
{
    attempt_fail(attempt, result, error, text);
    return ATTEMPT_FAILED;
}

/* --- an earlier bind ------------------------------------------------------------------------ */

/* What other schedulers of the node read. */
static void describe_to_others(struct attempt *attempt, const struct allocation *allocation)
{
    const struct node *node = allocation->node;

    for (int32_t i = 0; i < node->n_dialects; i++) {
        if (node->dialects[i]->write_seen)
            node->dialects[i]->write_seen(allocation, node, &attempt->annotations);
    }
}

static void describe(struct attempt *attempt, const struct allocation *allocation)
{
    annotations_clear(&attempt->annotations);
    attempt->dialect = allocation->dialect;
    allocation->dialect->write_annotations(allocation, allocation->node, &attempt->annotations);
    describe_to_others(attempt, allocation);
    if (attempt->grouped && attempt->marks_group)
        annotations_add(&attempt->annotations, POD_GROUP_BOUND, g_strdup("true"));
    if (attempt->grouped && attempt->came_with > 0)
        annotations_add(&attempt->annotations, POD_GROUP_MIN,
                        g_strdup_printf("%u", attempt->came_with));
    attempt->card = allocation->shares[0].card;
    g_free(attempt->facts);
    attempt->facts = attempt->seals ? seal_describe(allocation) : NULL;
    attempt->assume_time_ns = allocation->assume_time_ns;
}

/* The pod may have been edited since filter was asked. False, with an error: its annotations leave too little
 * room for those of the booking. */
static bool check_annotations(struct attempt *attempt, const struct allocation *booked,
                              GError **error)
{
    const struct request *request = attempt->request;

    while (request && request->dialect != booked->dialect)
        request = request->alternative;
    if (!request || annotations_fit(&attempt->annotations, request))
        return true;
    metrics_count(COUNTER_REFUSALS, REASON_ANNOTATIONS);
    return attempt_fail(attempt, BIND_RESULT_NO_ROOM, error, reason_info(REASON_ANNOTATIONS)->text);
}

/* A booking that another replica left holds no names that annotations carry. */
static void adopt_terms(struct allocation *held, const struct request *request)
{
    while (request && request->dialect != held->dialect)
        request = request->alternative;
    if (request && !held->terms)
        held->terms = terms_ref(request->terms);
}

/* The pod has an allocation already. */
static enum attempt_step join_earlier(struct attempt *attempt, struct ledger *ledger,
                                      struct allocation *held, const struct moment *moment,
                                      GError **error)
{
    if (!g_str_equal(held->node->name, attempt->args->node)) {
        g_autofree char *text =
            g_strdup_printf("the pod is being bound to node '%s' already", held->node->name);
        return refuse(attempt, BIND_RESULT_CONFLICT, error, text);
    }
    switch (held->state) {
    case ALLOCATION_BOUND:
    case ALLOCATION_CONFIRMED:
        attempt->card = held->shares[0].card;
        attempt->result = BIND_RESULT_REPEATED;
        return ATTEMPT_DONE;
    case ALLOCATION_UNKNOWN:
        adopt_terms(held, attempt->request);
        describe(attempt, held);
        if (!check_annotations(attempt, held, error))
            return ATTEMPT_FAILED;
        ledger_set_state(ledger, held, ALLOCATION_ASSUMED);
        held->since_ms = moment->now_ms;
        attempt->distrusted = true;
        return ATTEMPT_SEND;
    case ALLOCATION_ASSUMED:
    case ALLOCATION_HELD: /* it is not asked about here */
        break;
    }
    return ATTEMPT_WAIT_BIND;
}

/* --- a new one ------------------------------------------------------------------------------ */

/* Leaves word of a fresh reservation to the next holder of the Lease. */
static enum attempt_step enter(struct attempt *attempt, struct ledger *ledger,
                               const struct allocation *booked, GError **error)
{
    describe(attempt, booked);
    if (!check_annotations(attempt, booked, error)) {
        ledger_drop(ledger, attempt->args->pod_uid);
        return ATTEMPT_FAILED;
    }
    /* A replay has none, and is told. */
    if (attempt->journal)
        attempt->journal_full = !journal_add(attempt->journal, booked);
    if (!attempt->journal_full)
        return ATTEMPT_SEND;
    ledger_drop(ledger, attempt->args->pod_uid);
    return refuse(attempt, BIND_RESULT_NOT_READY, error,
                  "too many binds of the namespace are not settled; try again");
}

static struct pod_view describe_pod(const struct attempt *attempt)
{
    return (struct pod_view){
        .uid = attempt->args->pod_uid,
        .ns = attempt->args->pod_namespace,
        .priority = attempt->priority,
    };
}

/* In milliseconds, and not a moment early. */
static int64_t time_left(const struct feasibility *question, const struct moment *moment)
{
    const int64_t ends_ns = dialect_wait_ends(question->seen, &question->admission);

    if (ends_ns == INT64_MAX)
        return INT64_MAX;
    return MAX(1, (ends_ns - moment->now_ns + 999999) / 1000000);
}

/* Others may have come since filter was asked, so it is asked again. */
static enum reason ask(struct attempt *attempt, struct store *store, const struct node *node,
                       const struct moment *moment, struct placement *ret_placement)
{
    const struct pod_view pod = describe_pod(attempt);
    struct feasibility question;

    feasibility_init(
        &question, store,
        &(struct feasibility_about){GATE_BY_BIND, &pod, attempt->request, moment, WITHOUT_PLUGIN});
    const enum reason reason = feasibility_ask(&question, node, ret_placement);
    const bool waits = reason == REASON_NONE && question.waits;
    attempt->waits = waits ? dialect_why_wait(question.seen, attempt->request)
                     : reason == REASON_PROMISE_STANDS ? reason /* until it is revoked */
                                                       : REASON_NONE;
    attempt->wait_ms = waits ? time_left(&question, moment) : INT64_MAX;
    feasibility_clear(&question);
    return reason;
}

/* A group that has come goes before a pod that is in none: the node's side would take only one of both. */
static bool is_behind_group(const struct attempt *attempt, struct store *store,
                            const struct node *node, const struct moment *moment)
{
    return !attempt->grouped && attempt->request->dialect->in_flight &&
           store_options(store)->gangs && gang_gate_is_taken(store, moment, node);
}

/* The node side would let the pod wait. */
static enum attempt_step wait_or_turn(struct attempt *attempt, struct store *store,
                                      const struct moment *moment, GError **error)
{
    const struct pod_view pod = describe_pod(attempt);

    if (attempt->grouped ||
        !steering_turns(store,
                        &(struct feasibility_about){GATE_BY_BIND, &pod, attempt->request, moment},
                        attempt->args->node, attempt->send_until_ms))
        return ATTEMPT_WAIT_NODE;
    metrics_count(COUNTER_REFUSALS, REASON_OTHERS_COMING);
    return refuse(attempt, BIND_RESULT_NO_ROOM, error, reason_info(REASON_OTHERS_COMING)->text);
}

/* The node side has not matched an earlier pod in time. */
static bool is_late(enum reason reason)
{
    return reason == REASON_AWAITING_ASSIGNMENT || reason == REASON_AWAITING_TURN;
}

/* The plugin may take the first pod of the cluster for it, or it for a pod of another node, unless their times
 * are in order. */
static void take_turn(struct attempt *attempt, struct store *store, const struct node *node,
                      const struct placement *placement, struct booking_entry *entry)
{
    const struct turn pod = {entry->uid, entry->ns, entry->name, 0};
    const int64_t turn =
        store_choose_turn(store, placement->request->dialect, node, &pod, entry->moment->now_ns);

    entry->turn = MAX(turn, 0);
    if (turn == 0)
        attempt->waits = REASON_PROMISE_STANDS;
    else if (is_behind_group(attempt, store, node, entry->moment))
        attempt->waits = REASON_AWAITING_TURN;
}

static enum attempt_step place(struct attempt *attempt, struct store *store, struct ledger *ledger,
                               const struct moment *moment, GError **error)
{
    const struct node *node = ledger_node(ledger, attempt->args->node);
    struct booking_entry entry = {attempt->args->pod_uid, attempt->args->pod_namespace,
                                  attempt->args->pod_name, moment};
    const struct allocation *booked = NULL;
    struct placement placement;
    enum reason reason = ask(attempt, store, node, moment, &placement);

    if (reason == REASON_NONE && attempt->waits == REASON_NONE)
        take_turn(attempt, store, node, &placement, &entry);
    if (attempt->waits != REASON_NONE)
        return wait_or_turn(attempt, store, moment, error);
    /* Sent now, its fate would not be known, and the card booked until it is settled. */
    if (reason == REASON_NONE && moment->now_ms >= attempt->send_until_ms)
        return refuse(attempt, BIND_RESULT_TIMED_OUT, error,
                      "no time was left to bind the pod; try again");
    if (reason == REASON_NONE)
        booked = booking_reserve(ledger, node, &entry, &placement, &reason);
    if (booked) {
        const struct pod_view pod = describe_pod(attempt);
        store_take_turn(store, booked);
        store_take_room(store, &pod, attempt->request, node->name);
        hints_book(store_hints(store), attempt->args->pod_uid, node->name, moment->now_ms);
        return enter(attempt, ledger, booked, error);
    }
    hints_forget(store_hints(store), attempt->args->pod_uid);
    metrics_count(COUNTER_REFUSALS, reason);
    return refuse(attempt, is_late(reason) ? BIND_RESULT_TIMED_OUT : BIND_RESULT_NO_ROOM, error,
                  reason_info(reason)->text);
}

/* --- a group ---------------------------------------------------------------------------------- */

#define GROUP_SEND_MS 2000

int64_t attempt_group_ends(const struct attempt *attempt)
{
    return attempt->send_until_ms - GROUP_SEND_MS;
}

/* The group has come: the pod is booked where its place is, on what is the best card there now. How long
 * it waits for the node side is decided here, so that a record has it. */
static enum attempt_step take_place(struct attempt *attempt, struct store *store,
                                    struct ledger *ledger, const struct allocation *held,
                                    const struct moment *moment, GError **error)
{
    struct allocation *place_kept = allocation_dup(held);
    const char *uid = attempt->args->pod_uid;

    attempt->grouped = true;
    attempt->marks_group = store_options(store)->gang_strict;
    attempt->came_with = gangs_came_with(store_gangs(store), uid);
    ledger_drop(ledger, uid);
    const enum attempt_step step = place(attempt, store, ledger, moment, error);
    if (step == ATTEMPT_WAIT_NODE) {
        ledger_put(ledger, attempt->args->node, place_kept);
        gangs_stay(store_gangs(store), uid);
        if (moment->now_ms < attempt_group_ends(attempt))
            return step;
        gangs_depart(store_gangs(store), uid);
        return refuse(attempt, BIND_RESULT_TIMED_OUT, error, reason_info(attempt->waits)->text);
    }
    allocation_free(place_kept);
    if (step == ATTEMPT_SEND)
        gangs_book(store_gangs(store), uid);
    else
        gangs_lose(store_gangs(store), uid);
    return step;
}

/* One look, as struct gang_gate wants it. */
struct gang_look {
    struct attempt *attempt;
    struct store *store;
    const struct moment *moment;
    enum reason refused; /* the pod itself, where it has its place */
};

static bool takes(void *data, const char *uid)
{
    struct gang_look *gate = data;
    const bool own = g_str_equal(uid, gate->attempt->args->pod_uid);
    const struct allocation *held = ledger_get(store_ledger(gate->store), uid);
    const struct request *request = own ? gate->attempt->request : store_pending(gate->store, uid);
    enum reason reason = REASON_NONE;

    if (!held || !request)
        return false;
    const enum admission answer = gang_gate_ask(gate->store, gate->moment, held, request, &reason);
    if (own && answer == ADMISSION_NO && reason != REASON_PROMISE_STANDS)
        gate->refused = reason;
    return answer == ADMISSION_YES;
}

static uint64_t version_of(void *data, const char *uid)
{
    struct ledger *ledger = store_ledger(((const struct gang_look *)data)->store);
    const struct allocation *held = ledger_get(ledger, uid);

    return held ? ledger_version_at(ledger, node_own(held->node)->place) : 0;
}

/* The place is of no use: filter will look for another one. */
static enum attempt_step give_back(struct attempt *attempt, struct store *store, enum reason reason,
                                   GError **error)
{
    gangs_lose(store_gangs(store), attempt->args->pod_uid);
    metrics_count(COUNTER_REFUSALS, reason);
    return refuse(attempt, is_late(reason) ? BIND_RESULT_TIMED_OUT : BIND_RESULT_NO_ROOM, error,
                  reason_info(reason)->text);
}

static enum attempt_step wait_for_group(struct attempt *attempt, struct store *store,
                                        enum reason reason, const struct moment *moment,
                                        GError **error)
{
    attempt->waits = reason;
    if (moment->now_ms < attempt_group_ends(attempt))
        return ATTEMPT_WAIT_GROUP;
    gangs_depart(store_gangs(store), attempt->args->pod_uid);
    return refuse(attempt, BIND_RESULT_TIMED_OUT, error, reason_info(reason)->text);
}

static enum attempt_step come(struct attempt *attempt, struct store *store, struct ledger *ledger,
                              const struct allocation *held, const struct moment *moment,
                              GError **error)
{
    struct gangs *gangs = store_gangs(store);
    const char *uid = attempt->args->pod_uid;
    struct gang_look gate = {attempt, store, moment, REASON_NONE};

    if (held && !g_str_equal(held->node->name, attempt->args->node))
        return refuse(attempt, BIND_RESULT_CONFLICT, error, reason_info(REASON_GANG_PLACE)->text);
    switch (
        gangs_arrive(gangs, uid, moment->now_ms, &(struct gang_gate){takes, &gate, version_of})) {
    case GANG_NONE:
        return place(attempt, store, ledger, moment, error);
    case GANG_YES:
        store_tell_gangs(store); /* if it has come just now: the others' binds wait */
        return held ? take_place(attempt, store, ledger, held, moment, error)
                    : place(attempt, store, ledger, moment, error);
    case GANG_WAIT:
        return wait_for_group(attempt, store, REASON_GANG_WAITING, moment, error);
    case GANG_BEHIND:
        return gate.refused != REASON_NONE
                   ? give_back(attempt, store, gate.refused, error)
                   : wait_for_group(attempt, store, REASON_GANG_PLUGIN, moment, error);
    default:
        metrics_count(COUNTER_REFUSALS, REASON_GANG_LOST);
        return refuse(attempt, BIND_RESULT_NO_ROOM, error, reason_info(REASON_GANG_LOST)->text);
    }
}

/* Takes what the pod asks for now, as the watch has it; what a GET said counts until the end. */
static void read_request(struct attempt *attempt, const struct store *store)
{
    const struct request *pending = store_pending(store, attempt->args->pod_uid);

    if (attempt->fetched)
        return;
    if (!pending || !attempt->request || !request_equal(attempt->request, pending)) {
        request_free(attempt->request);
        attempt->request = pending ? request_dup(pending) : NULL;
    }
    attempt->priority = store_pending_priority(store, attempt->args->pod_uid);
}

enum attempt_step attempt_look(struct attempt *attempt, struct store *store, struct ledger *ledger,
                               const struct moment *moment, GError **error)
{
    struct allocation *held = ledger_get(ledger, attempt->args->pod_uid);

    if (attempt->call == 0)
        attempt->call = moment->number;
    attempt->grouped = false; /* another bind may have taken its place since */
    read_request(attempt, store);
    if (held && store_doubts(store, held->uid))
        return refuse(attempt, BIND_RESULT_NOT_READY, error,
                      "the pod was bound, and a list of the pods says that it is not; try again");
    if (held && held->state != ALLOCATION_HELD)
        return join_earlier(attempt, ledger, held, moment, error);
    return attempt->request ? come(attempt, store, ledger, held, moment, error) : ATTEMPT_FETCH;
}

/* --- the end -------------------------------------------------------------------------------- */

static void settle(struct ledger *ledger, const char *uid, enum bind_result result,
                   const struct moment *moment)
{
    struct allocation *allocation = ledger_get(ledger, uid);

    /* Gone: the watch has seen the pod's end. Confirmed: the watch knows better than we do. */
    if (!allocation || allocation->state == ALLOCATION_CONFIRMED)
        return;
    allocation->since_ms = moment->now_ms;
    if (result == BIND_RESULT_BOUND)
        ledger_set_state(ledger, allocation, ALLOCATION_BOUND);
    else if (result == BIND_RESULT_UNKNOWN)
        ledger_set_state(ledger, allocation, ALLOCATION_UNKNOWN);
    else if (allocation->state == ALLOCATION_ASSUMED) /* else it is bound all the same */
        ledger_drop(ledger, uid);
}

void attempt_conclude(struct store *store, const char *uid, enum bind_result result,
                      const struct moment *moment)
{
    settle(store_ledger(store), uid, result, moment);
    /* Of what may be bound all the same the watch tells. */
    if (result == BIND_RESULT_BOUND || !ledger_get(store_ledger(store), uid))
        gangs_settle(store_gangs(store), uid, result == BIND_RESULT_BOUND);
}

void attempt_clear(struct attempt *attempt)
{
    annotations_clear(&attempt->annotations);
    g_clear_pointer(&attempt->facts, g_free);
    request_free(attempt->request);
    attempt->request = NULL;
    if (attempt->asks)
        g_string_free(attempt->asks, TRUE);
    attempt->asks = NULL;
}

GString *attempt_describe(const struct pod_view *pod)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    pod_view_encode(&writer, pod);
    return text;
}
