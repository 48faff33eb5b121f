/* SPDX-License-Identifier: Apache-2.0 */
/* Pods without a node. */
#include "store/pods/pods_state.h"

#include "core/ledger.h"
#include "dialect/annotations.h"
#include "wire/constraints.h"

void store_note_choice(struct store *store, const struct pod_view *pod)
{
    const struct allocation *held = ledger_get(store->ledger, pod->uid);

    if (store->options.elastic_quotas && (!held || held->state != ALLOCATION_CONFIRMED))
        elastic_quotas_choose(quotas_elastic(store->quotas), pod, quota_of_pod(pod),
                              held ? held->node->name : NULL);
}

char *store_tell_choice(const struct store *store, const struct pod_view *pod)
{
    const struct elastic_quotas *quotas = store_elastic_quotas(store);
    const char *choice = quotas ? elastic_quotas_choice(quotas, pod->uid) : NULL;

    if (!quotas || g_strcmp0(choice, quota_of_pod(pod)) == 0)
        return NULL;
    return g_strdup(choice ? choice : "");
}

void store_forget_pending(struct store *store, const char *uid)
{
    arrivals_forget(store->arrivals, uid);
    nominations_forget(store->nominations, uid);
    clearings_forget(store->clearings, uid);
    hints_forget(store->hints, uid);
    elastic_quotas_forget(quotas_elastic(store->quotas), uid);
    g_hash_table_remove(store->pending, uid);
    g_hash_table_remove(store->rules, uid);
}

void store_set_rules(struct store *store, const char *uid, struct pod_rules *take_rules)
{
    take_rules->generation = store->generation[FEED_PODS];
    g_hash_table_replace(store->rules, g_strdup(uid), take_rules);
}

/* Under the lock: who has gates does not wait to be placed. */
static void note_waiting(struct store *store, const struct pod_view *pod, struct pending *pending)
{
    const struct pod_rules *rules = store_rules(store, pod->uid);
    const unsigned gates = 1U << OVERLOOKED_SCHEDULING_GATES;

    if (!rules || !rules->constraints || rules->constraints->overlooked & gates || pod->terminating)
        pending->since_ms = 0;
    else if (pending->since_ms == 0)
        pending->since_ms = store_clock(store).now_ms;
}

static void replace_text(char **text, const char *with)
{
    g_free(*text);
    *text = g_strdup(with);
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
        if (store->options.elastic_quotas)
            elastic_quotas_await(quotas_elastic(store->quotas), pod->uid, pod->ns, take_request);
    }
    elastic_quotas_tie(quotas_elastic(store->quotas), pod);
    pending->priority = pod->priority;
    replace_text(&pending->controller, pod->controller);
    replace_text(&pending->created, pod->created);
    replace_text(&pending->nominated_node, pod->nominated_node);
    pending->terminating = pod->terminating;
    pending->generation = store->generation[FEED_PODS];
    note_waiting(store, pod, pending);
    g_autoptr(pod_facts) facts = pod_facts_pool_get(store->facts, pod);
    const bool grouped = store->options.gangs && pod_group_claim(pod).name;
    arrivals_add(store->arrivals,
                 &(struct arrivals_pod){pod, pending->request, facts, plain, grouped});
    nominations_note(store->nominations, pod, pending->request);
    if (pod->nominated_node)
        store_note_coming(store, pod->uid, store_clock(store).now_ns);
    const bool changed = old != NULL;
    request_free(old); /* nobody borrows it any more */
    return changed;
}

/* Under the lock: a list has named the pod, if only without a node, see store.h. */
static void name_unbound(struct store *store, struct allocation *held)
{
    if (!held)
        return;
    allocation_own(held)->generation = store->generation[FEED_PODS];
    if (held->state == ALLOCATION_CONFIRMED && store->listing[FEED_PODS] &&
        g_hash_table_add(store->doubted, g_strdup(held->uid)))
        g_queue_push_tail(&store->doubts, g_strdup(held->uid));
}

/* A pod that asks for no GPU, or cannot be understood: a verb that is asked about it reads it afresh and
 * says why. What it asked for before counts no longer. */
static void apply_unread_pod(struct store *store, const struct pod_view *pod)
{
    struct pod_rules *rules = pod_rules_new(pod);
    uint64_t number = 0;

    store_lock(store);
    const bool member = store->options.gangs && pod_group_claim(pod).name;
    const bool waited = store_pending(store, pod->uid) != NULL;
    if (member || waited)
        number = observer_number(store->observer);
    store_join_gang(store, pod, GANG_PLAIN);
    if (waited) {
        store_forget_pending(store, pod->uid);
        store_notify(store, NULL, pod->uid);
    }
    store_set_rules(store, pod->uid, rules);
    name_unbound(store, ledger_get(store->ledger, pod->uid));
    store_unlock(store);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_POD, number, .pod = pod, .unread = true,
                                        .trust = TRUST_ANNOTATIONS});
}

/* Under the lock: it may go where it might before, if it asks for the same. */
static bool goes_as_before(const struct store *store, const struct pod_view *pod,
                           const struct pod_rules *rules)
{
    const struct pod_rules *before = store_rules(store, pod->uid);
    const struct pending *pending = g_hash_table_lookup(store->pending, pod->uid);

    return before && pending && pending->terminating == pod->terminating &&
           host_equal(&before->host, &rules->host) &&
           constraints_equal(before->constraints, rules->constraints) &&
           (!rules->constraints ||
            before->constraints->overlooked == rules->constraints->overlooked);
}

void store_apply_pending(struct store *store, const struct pod_view *pod)
{
    struct request *request = dialect_read_request(pod, &store->options.dialects, NULL);

    if (!request) {
        apply_unread_pod(store, pod);
        return;
    }
    const bool plain = constraints_are_none(pod);
    struct pod_rules *rules = pod_rules_new(pod);
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    const unsigned gates = 1U << OVERLOOKED_SCHEDULING_GATES;
    const bool gated = rules->constraints && rules->constraints->overlooked & gates;
    const bool barred = gated || pod->terminating || !annotations_may_fit(request);
    store_join_gang(store, pod, barred ? GANG_BARRED : GANG_PENDING);
    store_note_choice(store, pod);
    struct allocation *held = ledger_get(store->ledger, pod->uid);
    /* Who was seen bound stays so, and does not queue again. */
    const bool is_old = held && held->state == ALLOCATION_CONFIRMED;
    name_unbound(store, held);
    if (!held && !store_pending(store, pod->uid))
        demand_note(store->demand, request);
    if (!is_old) {
        const bool as_before = goes_as_before(store, pod, rules);
        store_set_rules(store, pod->uid, g_steal_pointer(&rules));
        const bool changed = replace_pending(store, pod, g_steal_pointer(&request), plain);
        if (changed)
            store_notify(store, NULL, pod->uid); /* a bind of it may be waiting */
        if (changed || !as_before)
            store_hope_pod(store, pod->uid);
    }
    g_autofree char *quota = store_tell_choice(store, pod);
    store_unlock(store);
    pod_rules_free(rules);
    request_free(request);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_POD, number, .pod = pod, .quota = quota});
}
