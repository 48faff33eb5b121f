/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/predicate.h"

#include "store/booking.h"
#include "store/feasibility.h"
#include "base/log.h"

#include <gpuledger/error.h>
#include <string.h>

/* kube-scheduler gives its extenders 5 s unless it is told otherwise. */
#define WRITE_MS 4000

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* What is left on the node: first compute, then memory. The fullest node that still has room is
 * taken, as gpu-admission does; kube-scheduler's scores have no say, since it is the only one. */
struct room {
    int64_t core, memory;
};

static struct room room_of(const struct node *node)
{
    struct room room = {0};

    for (int32_t i = 0; i < node->n_cards; i++) {
        room.core += card_core_told(&node->cards[i], card_core_free(node, &node->cards[i]));
        room.memory += card_memory_free(node, &node->cards[i]);
    }
    return room;
}

static bool is_fuller(const struct room *here, const struct room *there)
{
    return here->core != there->core ? here->core < there->core : here->memory < there->memory;
}

/* One call, under the lock. */
struct booking_call {
    struct extender *extender;
    const struct filter_args *args;
    const struct request *request;
    struct moment moment;
    enum reason *reasons; /* one per node */
};

/* The node that the pod should go to, and how; NULL: none. */
static const struct node *choose(const struct booking_call *call, struct ledger *ledger,
                                 struct placement *ret_placement)
{
    const struct filter_args *args = call->args;
    struct store *store = call->extender->store;
    struct room best_room = {0};
    const char *best = NULL;
    const struct node *chosen = NULL;
    struct feasibility question;

    arrivals_ask(store_arrivals(store), args->pod.uid, call->moment.now_ms);
    feasibility_init(&question, store,
                     &(struct feasibility_about){&args->pod, call->request, &call->moment});
    for (size_t i = 0; i < args->n_names; i++) {
        call->reasons[i] = feasibility_ask(&question, ledger_node(ledger, args->names[i]), NULL);
        if (call->reasons[i] != REASON_NONE)
            continue;
        call->reasons[i] = question.waits ? REASON_AWAITING_ASSIGNMENT : REASON_PLACED_ELSEWHERE;
        const struct room room = room_of(question.seen);
        if (question.waits || (best && !is_fuller(&room, &best_room) &&
                            (is_fuller(&best_room, &room) || strcmp(args->names[i], best) > 0)))
            continue;
        best = args->names[i];
        best_room = room;
    }
    if (best && feasibility_ask(&question, ledger_node(ledger, best), ret_placement) == REASON_NONE)
        chosen = ledger_node(ledger, best);
    feasibility_clear(&question);
    if (chosen)
        arrivals_renew(store_arrivals(store), args->pod.uid);
    return chosen;
}

static bool is_offered(const struct filter_args *args, const char *node)
{
    for (size_t i = 0; i < args->n_names; i++) {
        if (g_str_equal(args->names[i], node))
            return true;
    }
    return false;
}

static void pass_only(const struct filter_args *args, const char *node, enum reason *ret_reasons)
{
    for (size_t i = 0; i < args->n_names; i++) {
        if (g_str_equal(args->names[i], node))
            ret_reasons[i] = REASON_NONE;
        else if (ret_reasons[i] == REASON_NONE)
            ret_reasons[i] = REASON_PLACED_ELSEWHERE;
    }
}

/* The booking to write down; NULL without an error: no node has room. */
static struct allocation *plan(const struct booking_call *call, struct ledger *ledger,
                               GError **error)
{
    const struct pod_view *pod = &call->args->pod;
    const struct booking_entry entry = {pod->uid, pod->ns, pod->name, &call->moment};
    struct allocation *held = ledger_get(ledger, pod->uid);
    struct placement placement;
    enum reason reason;

    if (held && held->state != ALLOCATION_UNKNOWN) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    held->state == ALLOCATION_RESERVED ? "another call for the pod is under way"
                                                       : "the pod is bound already");
        return NULL;
    }
    if (held && is_offered(call->args, held->node->name)) {
        ledger_set_state(ledger, held, ALLOCATION_RESERVED);
        held->since_ms = call->moment.now_ms;
        return held;
    }
    if (held)
        ledger_drop(ledger, pod->uid);
    const struct node *node = choose(call, ledger, &placement);
    if (!node)
        return NULL;
    held = booking_reserve(ledger, node, &entry, &placement, &reason);
    if (held && !journal_add(call->extender->journal, held)) {
        ledger_drop(ledger, pod->uid);
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "too many binds are not settled; try again");
        return NULL;
    }
    return held;
}

/* Puts the booking's words on the pod. */
static enum outcome write_down(struct extender *extender, const struct filter_args *args,
                               uint64_t term, const struct annotations *annotations,
                               GError **error)
{
    const int64_t until_ms = now_ms() + WRITE_MS;
    const struct pod_annotation annotation = {
        .ns = args->pod.ns,
        .name = args->pod.name,
        .uid = args->pod.uid,
        .all = annotations,
    };

    if (!extender->cluster->ops->annotate_pod) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "this cluster's pods cannot be annotated: give kube-scheduler a bindVerb");
        return OUTCOME_REFUSED;
    }
    if (!leadership_publish(extender->leadership, term, until_ms, error))
        return OUTCOME_REFUSED;
    return extender->cluster->ops->annotate_pod(
        extender->cluster, &annotation, leadership_cut(extender->leadership, term, until_ms), error);
}

/* What has been written may be bound at any time from now on, or never. */
static void conclude(struct extender *extender, const char *uid, enum outcome outcome)
{
    struct moment moment;
    struct ledger *ledger = store_decide(extender->store, &moment);
    struct allocation *held = ledger_get(ledger, uid);

    if (held && held->state == ALLOCATION_RESERVED) {
        held->since_ms = moment.now_ms;
        if (outcome == OUTCOME_OK || outcome == OUTCOME_UNKNOWN)
            ledger_set_state(ledger, held, ALLOCATION_UNKNOWN);
        else
            ledger_drop(ledger, uid);
    }
    store_notify(extender->store);
    store_unlock(extender->store);
}

bool predicate_book(struct extender *extender, const struct filter_args *args,
                    const struct request *request, enum reason *ret_reasons, GError **error)
{
    const uint64_t term = leadership_term(extender->leadership);
    g_auto(annotations) annotations = {0};
    g_autofree char *node = NULL;
    GError *failure = NULL;

    if (term == 0) {
        leadership_set_error(error);
        return false;
    }
    for (size_t i = 0; i < args->n_names; i++)
        ret_reasons[i] = REASON_NONE;
    struct booking_call call = {extender, args, request, .reasons = ret_reasons};
    struct ledger *ledger = store_decide(extender->store, &call.moment);
    struct allocation *held = plan(&call, ledger, &failure);
    if (held) {
        node = g_strdup(held->node->name);
        held->dialect->write_annotations(held, held->node, &annotations);
        g_autofree char *facts = seal_describe(held);
        char *seal = seals_make(store_options(extender->store)->seals, facts);
        if (seal)
            annotations_add(&annotations, SEAL_ANNOTATION, seal);
        pass_only(args, node, ret_reasons);
    }
    store_unlock(extender->store);

    if (held) {
        const enum outcome outcome = write_down(extender, args, term, &annotations, &failure);
        conclude(extender, args->pod.uid, outcome);
        if (!failure)
            log_event(LOG_LEVEL_INFO, "booked", LOG_TEXT("namespace", args->pod.ns),
                      LOG_TEXT("pod", args->pod.name), LOG_TEXT("node", node));
    }
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}
