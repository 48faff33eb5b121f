/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server is told of a bind, and what it says: the Binding, sent until its fate is known.
 *
 * It accepts one Binding per pod, so repeating one can never grant twice.
 */
#include "verbs/bind/bind.h"

#define RETRY_PAUSE_MS 200

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static enum outcome call_bind(struct bind *bind, GError **error)
{
    struct cluster *cluster = bind->extender->cluster;
    struct binding binding = {
        .ns = bind->args->pod_namespace,
        .name = bind->args->pod_name,
        .uid = bind->args->pod_uid,
        .node = bind->args->node,
        .annotations = &bind->attempt.annotations,
        .node_label = bind->attempt.dialect ? bind->attempt.dialect->node_label : NULL,
    };
    int64_t start_us = g_get_monotonic_time();
    int64_t until_ms =
        leadership_cut(bind->extender->leadership, bind->term, bind->attempt.send_until_ms);
    enum outcome outcome = cluster->ops->bind(cluster, &binding, until_ms, error);
    bind->api_us += g_get_monotonic_time() - start_us;
    return outcome;
}

enum outcome bind_get_pod(struct bind *bind, struct pod_view *ret_pod, GError **error)
{
    struct cluster *cluster = bind->extender->cluster;
    int64_t start_us = g_get_monotonic_time();
    enum outcome outcome =
        cluster->ops->get_pod(cluster, bind->arena, bind->args->pod_namespace, bind->args->pod_name,
                              bind->deadline_ms, ret_pod, error);
    bind->api_us += g_get_monotonic_time() - start_us;
    return outcome;
}

/* Whether the pod is on the cards that we chose. The rest of what we wrote may differ: the node side
 * writes some of it anew, and a node that has changed makes a repeated Binding differ in it. */
static bool is_on_our_cards(const struct bind *bind, const struct pod_view *pod)
{
    const struct dialect_options *options = &store_options(bind->extender->store)->dialects;
    struct string_pair ours[ANNOTATIONS_MAX];
    struct pod_view as_sent = *pod;

    if (!bind->attempt.dialect)
        return true;
    for (size_t i = 0; i < bind->attempt.annotations.n; i++)
        ours[i] = (struct string_pair){bind->attempt.annotations.items[i].key,
                                       bind->attempt.annotations.items[i].value};
    as_sent.annotations = (struct string_pairs){ours, bind->attempt.annotations.n};

    g_autoptr(allocation) chosen = bind->attempt.dialect->read_allocation(&as_sent, options, NULL);
    g_autoptr(allocation) found = bind->attempt.dialect->read_allocation(pod, options, NULL);
    if (!chosen || !found || chosen->n_shares != found->n_shares)
        return false;
    /* A node side that chooses cards itself may have said which, but not when it was bound. */
    if (bind->attempt.dialect->policy && chosen->assume_time_ns == found->assume_time_ns)
        return true;
    for (uint32_t i = 0; i < found->n_shares; i++) {
        if (!share_same_place(&chosen->shares[i], &found->shares[i]))
            return false;
    }
    return true;
}

/* Whether the ledger, which has heard that the pod is on the node, goes on from our booking, of which
 * a Binding may have been carried out. It does whatever the pod has been made to say since. */
static bool holds_our_booking(const struct bind *bind)
{
    struct store *store = bind->extender->store;
    const struct allocation *held = ledger_get(store_lock(store), bind->args->pod_uid);
    const bool ours = held && !held->refused && held->assume_time_ns != 0 &&
                      held->assume_time_ns == bind->attempt.assume_time_ns;

    store_unlock(store);
    return ours;
}

/* What the pod itself says about how a Binding went. */
enum truth {
    TRUTH_BOUND,   /* to our node, by us */
    TRUTH_FOREIGN, /* bound by somebody else, or another pod, or none, or being deleted */
    TRUTH_UNBOUND, /* not bound (yet) */
    TRUTH_HIDDEN,  /* the API server does not tell */
};

static enum truth ask_for_truth(struct bind *bind)
{
    g_autoptr(GError) ignored = NULL;
    struct pod_view pod = {0};
    uint32_t asked = store_ask(bind->extender->store);

    switch (bind_get_pod(bind, &pod, &ignored)) {
    case OUTCOME_OK:
        break;
    case OUTCOME_NOT_FOUND:
        return TRUTH_FOREIGN;
    case OUTCOME_CONFLICT:
    case OUTCOME_REFUSED:
    case OUTCOME_UNKNOWN:
        return TRUTH_HIDDEN;
    }
    if (g_strcmp0(pod.uid, bind->args->pod_uid) != 0)
        return TRUTH_FOREIGN;
    if (!pod_view_is_bound(&pod))
        return pod.terminating || pod_view_is_terminal(&pod) ? TRUTH_FOREIGN : TRUTH_UNBOUND;
    store_reconcile_pod(bind->extender->store, &pod, asked);
    return g_str_equal(pod.node_name, bind->args->node) &&
                   (holds_our_booking(bind) || is_on_our_cards(bind, &pod))
               ? TRUTH_BOUND
               : TRUTH_FOREIGN;
}

bool bind_check_term(struct bind *bind, GError **error)
{
    if (leadership_cut(bind->extender->leadership, bind->term, INT64_MAX) > now_ms())
        return true;
    bind->attempt.result = bind->attempt.distrusted ? BIND_RESULT_UNKNOWN : BIND_RESULT_NOT_READY;
    leadership_set_error(error);
    return false;
}

/* Once somebody else is at work in this one's place, all binds are turned away. If that cannot be told, only
 * this one is: the next one asks again. */
static bool check_succession(struct bind *bind, GError **error)
{
    struct extender *extender = bind->extender;
    enum succession_state found = SUCCESSION_NONE;

    if (extender->succession && g_atomic_int_get(&extender->leaving))
        found = extender->succession->find(extender->succession, bind->attempt.send_until_ms);
    if (found == SUCCESSION_NONE)
        return true;
    if (found == SUCCESSION_THERE)
        g_atomic_int_set(&extender->draining, 1);
    bind->attempt.result = bind->attempt.distrusted ? BIND_RESULT_UNKNOWN : BIND_RESULT_NOT_READY;
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, BIND_DRAINING);
    return false;
}

bool bind_send(struct bind *bind, GError **error)
{
    for (;;) {
        g_autoptr(GError) failure = NULL;
        if (!bind_check_term(bind, error) || !check_succession(bind, error))
            return false;
        enum outcome outcome = call_bind(bind, &failure);

        if (outcome == OUTCOME_OK) {
            bind->attempt.result = BIND_RESULT_BOUND;
            return true;
        }
        if (outcome == OUTCOME_NOT_FOUND ||
            (outcome == OUTCOME_REFUSED && !bind->attempt.distrusted)) {
            bind->attempt.result =
                outcome == OUTCOME_NOT_FOUND ? BIND_RESULT_CONFLICT : BIND_RESULT_REFUSED;
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        if (outcome == OUTCOME_CONFLICT && !bind->attempt.distrusted)
            store_note_refused(bind->extender->store, bind->args->pod_uid);
        enum truth truth = ask_for_truth(bind);
        if (truth == TRUTH_BOUND) {
            bind->attempt.result = BIND_RESULT_BOUND;
            return true;
        }
        if (truth == TRUTH_FOREIGN ||
            (truth == TRUTH_UNBOUND && outcome == OUTCOME_CONFLICT && !bind->attempt.distrusted)) {
            bind->attempt.result = BIND_RESULT_CONFLICT;
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        bind->attempt.distrusted = true;
        if (now_ms() + RETRY_PAUSE_MS >= bind->attempt.send_until_ms) {
            bind->attempt.result = BIND_RESULT_UNKNOWN;
            g_propagate_prefixed_error(error, g_steal_pointer(&failure),
                                       "it is not known whether the pod was bound: ");
            return false;
        }
        g_usleep(RETRY_PAUSE_MS * 1000);
    }
}
