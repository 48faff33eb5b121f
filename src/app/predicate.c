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

/* Under the lock: the node that the pod should go to, and how; NULL: none. */
static const struct node *choose(struct extender *extender, struct ledger *ledger,
                                 const struct filter_args *args, const struct request *request,
                                 struct placement *ret_placement, enum reason *ret_reasons)
{
    const struct store_options *options = store_options(extender->store);
    struct admission_query query = {
        .request = request,
        .policy = options->policy,
        .options = &options->dialects,
        .now_ns = g_get_real_time() * 1000,
    };
    g_autoptr(quota_room) quota = quotas_room(store_quotas(extender->store), ledger,
                                              args->pod.ns ? args->pod.ns : "", request);
    const struct node *best = NULL;

    for (size_t i = 0; i < args->n_names; i++) {
        const struct node *node = ledger_node(ledger, args->names[i]);
        if (dialect_admit(node, &query, NULL, &ret_reasons[i]) != ADMISSION_YES)
            continue;
        ret_reasons[i] = REASON_QUOTA;
        if (!quota_room_allows(quota, node->name))
            continue;
        ret_reasons[i] = REASON_PLACED_ELSEWHERE;
        if (!best || is_fuller(node, best))
            best = node;
    }
    enum reason reason;
    if (best && dialect_admit(best, &query, ret_placement, &reason) != ADMISSION_YES)
        return NULL;
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

/* Under the lock: the booking to write down; NULL without an error: no node has room. */
static struct allocation *plan(struct extender *extender, struct ledger *ledger,
                               const struct filter_args *args, const struct request *request,
                               enum reason *ret_reasons, GError **error)
{
    const struct booking_pod pod = {args->pod.uid, args->pod.ns, args->pod.name};
    struct allocation *held = ledger_get(ledger, args->pod.uid);
    struct placement placement;
    enum reason reason;

    if (held && held->state != ALLOCATION_UNKNOWN) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    held->state == ALLOCATION_RESERVED ? "another call for the pod is under way"
                                                       : "the pod is bound already");
        return NULL;
    }
    if (held && is_offered(args, held->node->name)) {
        held->state = ALLOCATION_RESERVED;
        held->since_ms = now_ms();
        return held;
    }
    if (held)
        ledger_drop(ledger, args->pod.uid);
    const struct node *node = choose(extender, ledger, args, request, &placement, ret_reasons);
    if (!node)
        return NULL;
    held = booking_reserve(ledger, node, &pod, &placement, &reason);
    if (held && !journal_add(extender->journal, held)) {
        ledger_drop(ledger, args->pod.uid);
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
    struct ledger *ledger = store_lock(extender->store);
    struct allocation *held = ledger_get(ledger, uid);

    if (held && held->state == ALLOCATION_RESERVED) {
        held->since_ms = now_ms();
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
    struct ledger *ledger = store_lock(extender->store);
    struct allocation *held = plan(extender, ledger, args, request, ret_reasons, &failure);
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
