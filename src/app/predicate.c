/* SPDX-License-Identifier: Apache-2.0 */
#include "app/predicate.h"

#include "app/booking.h"
#include "app/log.h"

#include <gpuledger/error.h>

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
        room.core += card_core_free(node, &node->cards[i]);
        room.memory += card_memory_free(node, &node->cards[i]);
    }
    return room;
}

static bool is_fuller(const struct node *node, const struct node *other)
{
    const struct room here = room_of(node), there = room_of(other);

    if (here.core != there.core)
        return here.core < there.core;
    return here.memory != there.memory ? here.memory < there.memory
                                       : g_strcmp0(node->name, other->name) < 0;
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
    const struct store_options *options = store_options(store);
    struct admission_query query = {
        .request = call->request,
        .policy = options->policy,
        .options = &options->dialects,
        .now_ns = call->moment.now_ns,
        .demand = store_demand(store),
    };
    g_autoptr(quota_room) quota = quotas_room(store_quotas(store), ledger,
                                              args->pod.ns ? args->pod.ns : "", call->request);
    struct nominees nominees = store_nominees(store, &query, args->pod.uid, args->pod.priority);
    const struct node *best = NULL;

    for (size_t i = 0; i < args->n_names; i++) {
        const struct node *node = nominees_see(&nominees, ledger_node(ledger, args->names[i]));
        if (dialect_admit(node, &query, NULL, &call->reasons[i]) != ADMISSION_YES)
            continue;
        call->reasons[i] = quota_room_refuse(quota, node, NULL);
        if (call->reasons[i] != REASON_NONE)
            continue;
        call->reasons[i] = REASON_PLACED_ELSEWHERE;
        if (!best || is_fuller(node, best))
            best = node;
    }
    enum reason reason;
    if (best && dialect_admit(best, &query, ret_placement, &reason) == ADMISSION_YES)
        best = ledger_node(ledger, best->name);
    else
        best = NULL;
    nominees_clear(&nominees);
    return best;
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
        held->state = ALLOCATION_RESERVED;
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
    if (!fence_publish(extender->fence, term, until_ms, error))
        return OUTCOME_REFUSED;
    return extender->cluster->ops->annotate_pod(
        extender->cluster, &annotation, fence_cut(extender->fence, term, until_ms), error);
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
    const uint64_t term = fence_term(extender->fence);
    g_auto(annotations) annotations = {0};
    g_autofree char *node = NULL;
    GError *failure = NULL;

    if (term == 0) {
        fence_set_error(error);
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
