/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, as the watch, a list or a GET shows them. */
#include "app/log.h"
#include "app/metrics.h"
#include "app/recorder.h"
#include "app/store_state.h"
#include "wire/constraints.h"

static void forget_pending(struct store *store, const char *uid)
{
    arrivals_forget(store->arrivals, uid);
    nominations_forget(store->nominations, uid);
    g_hash_table_remove(store->pending, uid);
}

void store_forget_pod(struct store *store, const char *uid)
{
    forget_pending(store, uid);
    g_hash_table_remove(store->moved, uid);
    ledger_drop(store->ledger, uid);
}

static char *format_cards(const struct node *node, const struct allocation *allocation)
{
    GString *text = g_string_new(NULL);

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct card *card = node_share_card(node, &allocation->shares[i]);
        g_string_append_printf(text, "%s%d", i ? "," : "",
                               card ? card->index : allocation->shares[i].card);
    }
    return g_string_free(text, FALSE);
}

static bool same_cards(const struct allocation *a, const struct allocation *b)
{
    bool same = a->n_shares == b->n_shares;

    for (uint32_t i = 0; same && i < a->n_shares; i++)
        same = share_same_place(&a->shares[i], &b->shares[i]);
    return same;
}

/* Under the lock: a container stays on the card that it was started with, whatever becomes of the
 * annotations afterwards. A node side that chooses cards itself says which when it takes the pod. */
static void note_move(struct store *store, const struct allocation *known,
                      const struct allocation *new)
{
    const char *first = store_first_cards(store, known->uid);

    if (known->state != ALLOCATION_CONFIRMED || same_cards(known, new) ||
        (known->waiting && known->dialect->policy))
        return;
    g_autofree char *to = format_cards(known->node, new);
    if (first && g_str_equal(first, to))
        g_hash_table_remove(store->moved, known->uid);
    else if (!first && known->shares[0].card != CARD_UNKNOWN)
        g_hash_table_insert(store->moved, g_strdup(known->uid), format_cards(known->node, known));
}

/* Under the lock: what the API server says of a pod with a node is what counts. Returns whether
 * that is news. */
static bool record_allocation(struct store *store, const char *node,
                              struct allocation *take_allocation, enum allocation_state state)
{
    const struct allocation *known = ledger_get(store->ledger, take_allocation->uid);
    const struct share *old = known ? &known->shares[0] : NULL;
    const struct share *new = &take_allocation->shares[0];
    bool news = !old || !g_str_equal(known->node->name, node) || !share_same_place(old, new) ||
                old->memory.value != new->memory.value;

    if (known)
        note_move(store, known, take_allocation);
    take_allocation->state = state;
    take_allocation->since_ms = g_get_monotonic_time() / 1000;
    take_allocation->generation = store->generation[FEED_PODS];
    ledger_put(store->ledger, node, take_allocation);
    return news;
}

/* Under the lock: a pod with a node that holds no GPU. */
static void record_guest(struct store *store, const struct pod_view *pod)
{
    const struct request nothing = {.host = host_of_pod(pod)};

    g_hash_table_remove(store->moved, pod->uid);
    if (ledger_put_guest(store->ledger, pod->node_name, pod->uid, nothing.host,
                         store->generation[FEED_PODS]))
        demand_note(store->demand, &nothing);
}

/* Under the lock: a pod with a node that was not seen waiting for one is new all the same. */
static void note_bound(struct store *store, const struct pod_view *pod)
{
    g_autoptr(request) request = NULL;

    if (ledger_get(store->ledger, pod->uid) || store_pending(store, pod->uid))
        return;
    request = dialect_read_request(pod, &store->options.dialects, NULL);
    if (request)
        demand_note(store->demand, request);
}

static void report_distrust(const struct pod_view *pod, bool unplaced, const char *warning)
{
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);

    metrics_add(COUNTER_UNPLACED, 0, unplaced);
    log_event(LOG_LEVEL_WARN, "pod's annotations cannot be trusted", LOG_TEXT("pod", name),
              LOG_TEXT("node", pod->node_name), LOG_TEXT("why", warning));
}

/* Under the lock: the number of the last list of the pods; 0 while one is under way. */
static uint32_t moment(const struct store *store)
{
    return store->listing[FEED_PODS] ? 0 : store->generation[FEED_PODS];
}

/* `asked` as in store_settle_pod, NULL for what the watch or a list says. */
static void apply_bound_pod(struct store *store, const struct pod_view *pod, const uint32_t *asked)
{
    g_autofree char *warning = NULL;
    struct allocation *allocation =
        dialect_read_allocation(pod, &store->options.dialects, &warning);
    bool unplaced = allocation && allocation->doubt != DOUBT_NONE &&
                    allocation->doubt != DOUBT_EDITED;
    bool news = false;

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    const struct allocation *known = ledger_get(store->ledger, pod->uid);
    bool confirmed = !asked || (*asked != 0 && *asked == moment(store));
    if (asked && (!known || known->state == ALLOCATION_CONFIRMED)) {
        /* The watch was faster, and it may have seen the pod's end. */
        allocation_free(allocation);
    } else {
        if (allocation)
            note_bound(store, pod);
        forget_pending(store, pod->uid);
        if (allocation) {
            allocation->facts = pod_facts_pool_get(store->facts, pod);
            news = record_allocation(store, pod->node_name, allocation,
                                     confirmed ? ALLOCATION_CONFIRMED : ALLOCATION_BOUND);
        } else {
            record_guest(store, pod);
        }
        store_notify(store);
    }
    store_unlock(store);
    recorder_take(store->recorder, asked ? record_settle(number, pod, confirmed)
                                         : record_pod(number, pod));
    if (news && warning && !store->options.silent)
        report_distrust(pod, unplaced, warning);
}

/* Under the lock. Returns whether it asked for something else before. */
static bool replace_pending(struct store *store, const struct pod_view *pod,
                            struct request *take_request, bool plain)
{
    struct pending *pending = g_hash_table_lookup(store->pending, pod->uid);
    struct request *old = NULL;

    if (!pending) {
        pending = g_new0(struct pending, 1);
        g_hash_table_insert(store->pending, g_strdup(pod->uid), pending);
    }
    if (pending->request && request_equal(pending->request, take_request)) {
        request_free(take_request);
    } else {
        old = pending->request;
        pending->request = take_request;
    }
    pending->priority = pod->priority;
    pending->generation = store->generation[FEED_PODS];
    g_autoptr(pod_facts) facts = pod_facts_pool_get(store->facts, pod);
    arrivals_add(store->arrivals, &(struct arrivals_pod){pod, pending->request, facts, plain});
    nominations_note(store->nominations, pod, pending->request);
    const bool changed = old != NULL;
    request_free(old); /* nobody borrows it any more */
    return changed;
}

/* A pod that asks for no GPU, or cannot be understood: a verb that is asked about it reads it afresh and
 * says why. What it asked for before counts no longer. */
static void apply_unread_pod(struct store *store, const struct pod_view *pod)
{
    uint64_t number = 0;

    store_lock(store);
    if (store_pending(store, pod->uid)) {
        number = recorder_number(store->recorder);
        forget_pending(store, pod->uid);
        store_notify(store);
    }
    struct allocation *held = ledger_get(store->ledger, pod->uid);
    if (held)
        held->generation = store->generation[FEED_PODS];
    store_unlock(store);
    recorder_take(store->recorder, record_unread_pod(number, pod));
}

static void apply_pending_pod(struct store *store, const struct pod_view *pod)
{
    struct request *request = dialect_read_request(pod, &store->options.dialects, NULL);

    if (!request) {
        apply_unread_pod(store, pod);
        return;
    }
    const bool plain = constraints_are_none(pod);
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    struct allocation *held = ledger_get(store->ledger, pod->uid);
    if (held)
        held->generation = store->generation[FEED_PODS]; /* named all the same, see store.h */
    if (!held && !store_pending(store, pod->uid))
        demand_note(store->demand, request);
    if (replace_pending(store, pod, request, plain))
        store_notify(store); /* a bind of it may be waiting */
    store_unlock(store);
    recorder_take(store->recorder, record_pod(number, pod));
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
    if (pod_view_is_terminal(pod))
        store_delete_pod(store, pod->uid);
    else if (pod_view_is_bound(pod))
        apply_bound_pod(store, pod, NULL);
    else
        apply_pending_pod(store, pod);
}

uint32_t store_ask(struct store *store)
{
    store_lock(store);
    uint32_t asked = moment(store);
    store_unlock(store);
    return asked;
}

void store_settle_pod(struct store *store, const struct pod_view *pod, uint32_t asked)
{
    if (pod_view_is_terminal(pod))
        store_delete_pod(store, pod->uid);
    else if (pod_view_is_bound(pod))
        apply_bound_pod(store, pod, &asked);
}

void store_delete_pod(struct store *store, const char *uid)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    store_forget_pod(store, uid);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_gone(RECORD_POD_GONE, number, uid));
}
