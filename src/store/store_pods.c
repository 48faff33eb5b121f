/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, as the watch, a list or a GET shows them. */
#include "base/log.h"
#include "base/metrics.h"
#include "core/card.h"
#include "core/ledger.h"
#include "dialect/annotations.h"
#include "dialect/hold.h"
#include "store/pods/pods_state.h"
#include "wire/constraints.h"
#include "wire/rejection.h"

void store_choose_quota(struct store *store, const struct pod_view *pod, const char *quota)
{
    const struct allocation *held = ledger_get(store_lock(store), pod->uid);

    if (store->options.elastic_quotas)
        elastic_quotas_choose(quotas_elastic(store->quotas), pod, *quota ? quota : NULL,
                              held ? held->node->name : NULL);
    store_unlock(store);
}

void store_miss_pod(struct store *store, const char *uid)
{
    const struct allocation *allocation = ledger_get(store->ledger, uid);

    if (allocation)
        parts_pod(&store->parts, &(struct pod_change){POD_CHANGE_VANISHED, uid, allocation});
    store_drop_promises(store, uid);
    store_forget_pod(store, uid);
}

bool store_forget_pod(struct store *store, const char *uid)
{
    const bool member = gangs_forget(store->gangs, uid); /* with its place */
    /* Of a pod that only filter was asked about there is a hint. */
    const bool known = member || store_pending(store, uid) || hints_find(store->hints, uid);
    const struct allocation *held = ledger_get(store->ledger, uid);

    store_notify(store, held ? held->node->name : NULL, uid);
    /* What it waited for may be lent now. */
    if (!held && elastic_quotas_forget(quotas_elastic(store->quotas), uid))
        store_note_quotas(store);
    store_forget_pending(store, uid);
    elastic_quotas_leave(quotas_elastic(store->quotas), uid);
    g_hash_table_remove(store->named, uid);
    g_hash_table_remove(store->doubted, uid);
    parts_pod(&store->parts, &(struct pod_change){POD_CHANGE_GONE, uid});
    turns_drop(store->turns, uid);
    sealing_forget(store->sealing, uid);
    store_tell_gangs(store);
    store_hope_groups(store);
    return ledger_drop(store->ledger, uid) || known;
}

/* The cards that annotations name and that the pod is not on. */
static char *format_named(const struct allocation *held, const struct allocation *told)
{
    GString *text = g_string_new(NULL);
    uint32_t n;
    const struct share *shares = allocation_known(told, &n);

    for (uint32_t i = 0; i < n; i++) {
        const struct card *card = node_share_card(held->node, &shares[i]);
        struct share settled = shares[i];
        share_settle(&settled, card);
        bool own = shares[i].device || (!shares[i].key && shares[i].card == CARD_UNKNOWN);
        for (uint32_t j = 0; j < held->n_shares && !own; j++)
            own = !held->shares[j].named && share_same_place(&held->shares[j], &settled);
        if (!own && card)
            g_string_append_printf(text, "%s%d", text->len ? "," : "", card->index);
        else if (!own && !shares[i].key)
            g_string_append_printf(text, "%s%d", text->len ? "," : "", shares[i].card);
        else if (!own)
            g_string_append_printf(text, "%sunknown", text->len ? "," : "");
    }
    return g_string_free(text, FALSE);
}

static bool same_time(int64_t a, int64_t b)
{
    return a == b || (b % 1000000000 == 0 && a / 1000000000 == b / 1000000000);
}

static bool says_our_time(const struct allocation *booking, const struct allocation *told)
{
    bool says = allocation_own(told)->n_readings == 0 && told->dialect == booking->dialect &&
                same_time(booking->assume_time_ns, told->assume_time_ns);

    for (uint32_t i = 0; i < allocation_own(told)->n_readings; i++)
        says |= allocation_own(told)->readings[i].dialect == booking->dialect &&
                same_time(booking->assume_time_ns,
                          allocation_own(told)->readings[i].assume_time_ns);
    return says && booking->assume_time_ns != 0;
}

/* Whether a pod that was bound to the node of our booking was bound by it. If our Binding may have been
 * carried out, it was: what the pod says may have been edited since. Once it was refused, what a GET
 * says after that decides, and from then on it stays. */
static bool is_our_binding(const struct allocation *booking, const struct allocation *told,
                           bool asked)
{
    const bool seen =
        booking->state == ALLOCATION_CONFIRMED || booking->state == ALLOCATION_BOUND;
    bool edited;

    if (!booking->refused || (seen && !asked) || says_our_time(booking, told))
        return true;
    g_autoptr(allocation) next = dialect_continue(booking, allocation_dup(told), &edited);
    return !edited && next->distrust == DISTRUST_NONE;
}

/* What a pod's seal says. */
struct sealed {
    bool pending;                  /* the watch has shown it without a node */
    struct allocation *allocation; /* NULL: it has none that counts */
    char key[KEYRING_ID_SIZE];
    enum trust trust;
};

static struct sealed read_seal(struct store *store, const struct pod_view *pod)
{
    struct sealed sealed = {.trust = TRUST_ANNOTATIONS};

    if (store->options.seals || store->replayed_trust == TRUST_SEAL)
        sealed.allocation =
            seals_read(store->options.seals, pod, store->options.dialects.classes, sealed.key);
    return sealed;
}

/* Whether the node side has chosen the card since the seal was written, and a tenant may have written
 * another one in its place: kubelet has started the containers, and the seal is still of before that,
 * or was put back. */
static bool is_outdated(const struct allocation *sealed, const struct pod_view *pod)
{
    return sealed->state != ALLOCATION_CONFIRMED && dialect_is_open(sealed) && pod->phase &&
           !g_str_equal(pod->phase, "Pending");
}

/* Under the lock: whom to believe of a pod of which nothing is known. Who was seen being bound had no
 * time to write anything else. */
static enum trust trust_in(const struct store *store, const struct sealed *sealed,
                           const struct pod_view *pod)
{
    struct seals *seals = store->options.seals;

    if (!seals)
        return store->replayed_trust;
    if (sealed->allocation && is_outdated(sealed->allocation, pod))
        return seals_adopt(seals) ? TRUST_ANNOTATIONS : TRUST_NOTHING;
    if (sealed->allocation)
        return TRUST_SEAL;
    return store->listing[FEED_PODS] && !seals_adopt(seals) ? TRUST_NOTHING : TRUST_ANNOTATIONS;
}

/* Under the lock: the pod as it is known, of this node. */
static const struct allocation *find_known(struct store *store, const struct pod_view *pod,
                                           const struct allocation *told, struct sealed *sealed,
                                           bool asked)
{
    const struct allocation *known = ledger_get(store->ledger, told->uid);
    const struct node *node = ledger_node(store->ledger, pod->node_name);

    if (known && known->node == node && is_our_binding(known, told, asked) &&
        (known->distrust != DISTRUST_UNSEALED || sealed->trust != TRUST_SEAL))
        return known;
    if (sealed->trust != TRUST_SEAL)
        return NULL;
    seal_call_cards(sealed->allocation, told);
    return ledger_put(store->ledger, pod->node_name, allocation_dup(sealed->allocation));
}

/* Under the lock: whether a seal is to be written, or another one. A Binding's does where its cards are
 * those of the Binding for good, and nobody will have to ask whether it was served. */
static void note_seal(struct store *store, const struct allocation *held,
                      const struct sealed *sealed)
{
    const struct allocation *said = sealed->allocation;

    if (!store->options.seals || held->state != ALLOCATION_CONFIRMED)
        return;
    if (!sealing_concerns(held)) {
        sealing_forget(store->sealing, held->uid);
        return;
    }
    const bool chosen = said && said->state != ALLOCATION_CONFIRMED &&
                        (held->dialect->policy || held->dialect->any_phase) && !held->waiting &&
                        !held->heeded && !held->open;
    sealing_note(store->sealing, held->uid, said ? sealed->key : NULL, !chosen);
}

/* Whether a Binding of this program, or of another replica, has put it on its node. Who names the node in
 * the spec was never seen waiting for one. A list may be the first to show a pod that was bound before. */
static bool was_placed(const struct store *store, const struct allocation *before,
                       const struct allocation *told, const struct sealed *sealed)
{
    if (before)
        return before->placed || before->state != ALLOCATION_CONFIRMED;
    if (sealed->trust != TRUST_ANNOTATIONS)
        return sealed->trust == TRUST_SEAL;
    return (sealed->pending || store->listing[FEED_PODS]) &&
           (told->distrust == DISTRUST_NONE || told->distrust == DISTRUST_EDITED);
}

/* Under the lock: what the pod holds, now that its object says that it is on the node. Returns whether
 * something is wrong with it that was not before. */
static bool record_allocation(struct store *store, const struct pod_view *pod,
                              struct allocation *take_allocation, struct sealed *sealed,
                              enum allocation_state state, bool asked)
{
    g_autoptr(allocation) told = allocation_dup(take_allocation);
    const struct allocation *before = ledger_get(store->ledger, told->uid);
    const bool placed = was_placed(store, before, told, sealed);
    const bool new = !before;
    const enum distrust distrusted = before ? before->distrust : DISTRUST_NONE;
    const bool had_started = before && before->started;
    const struct allocation *known = find_known(store, pod, told, sealed, asked);
    const struct node *node = ledger_node(store->ledger, pod->node_name);
    bool edited = false;

    if (known) {
        take_allocation = dialect_continue(known, take_allocation, &edited);
        take_allocation->facts = pod_facts_ref(told->facts);
    } else if (sealed->trust == TRUST_NOTHING) {
        take_allocation = seal_distrust(take_allocation, pod, &store->options.dialects);
    } else if (node && !store->listing[FEED_PODS]) {
        /* Somebody else has bound it just now, and the node side gives it what the node has now,
         * whatever the pod says of that. */
        allocation_witness(take_allocation, node);
    }
    take_allocation->state = state;
    take_allocation->placed = placed;
    take_allocation->started = pod->started || g_strcmp0(pod->phase, "Running") == 0;
    take_allocation->awaited = strays_await(pod);
    take_allocation->since_ms = g_get_monotonic_time() / 1000;
    allocation_own(take_allocation)->generation = store->generation[FEED_PODS];
    const struct allocation *held =
        ledger_put(store->ledger, pod->node_name, take_allocation);
    parts_pod(&store->parts,
              &(struct pod_change){POD_CHANGE_BOUND, held->uid, held, .admitted = pod->started});
    if (!held->waiting && !held->awaited)
        turns_drop(store->turns, held->uid);
    if (held->started && !had_started &&
        parts_pod(&store->parts, &(struct pod_change){POD_CHANGE_STARTED, held->uid, held}))
        ledger_mark_freed(store->ledger, held->node->name);
    note_seal(store, held, sealed);
    if (edited)
        g_hash_table_insert(store->named, g_strdup(held->uid), format_named(held, told));
    else
        g_hash_table_remove(store->named, held->uid);
    return new || held->distrust != distrusted;
}

/* Under the lock: a pod with a node that holds no GPU. */
static void record_cpu_pod(struct store *store, const struct pod_view *pod)
{
    const struct request nothing = {.host = host_of_pod(pod)};

    if (pod->unread &&
        ledger_keep_cpu_pod(store->ledger, pod->node_name, pod->uid, store->generation[FEED_PODS]))
        return;
    g_hash_table_remove(store->named, pod->uid);
    if (ledger_put_cpu_pod(store->ledger, pod->node_name, pod->uid, nothing.host,
                         store->generation[FEED_PODS]))
        demand_note(store->demand, &nothing);
    ledger_note_cpu_pod_priority(store->ledger, pod->uid, pod->priority);
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

/* Under the lock: room may have been kept for it on its node, also if another replica has bound it. */
static void take_room(struct store *store, const struct pod_view *pod, int64_t created_s)
{
    g_autoptr(request) request = NULL;

    if (!nominations_await(store->nominations, pod->node_name, pod->controller))
        return;
    request = dialect_read_request(pod, &store->options.dialects, NULL);
    if (request)
        nominations_take(store->nominations, &(struct kept_room_taker){
                                                 .uid = pod->uid,
                                                 .ns = pod->ns,
                                                 .controller = pod->controller,
                                                 .request = request,
                                                 .node = pod->node_name,
                                                 .created_s = created_s,
                                             });
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

/* What those who wait for a node go by. That a booking is confirmed is no news to them. */
struct standing {
    uint64_t version; /* the node's */
    bool started, waited_out;
};

static struct standing find_standing(const struct store *store, const struct pod_view *pod)
{
    const struct node *node = ledger_node(store->ledger, pod->node_name);
    const struct allocation *held = ledger_get(store->ledger, pod->uid);

    return (struct standing){
        .version = node ? node_own(node)->pulse->version : 0,
        .started = held && held->started,
        .waited_out = held && held->waited_out,
    };
}

/* Under the lock: what a pod holds of which part cannot be read. What was known of it counts, or what its
 * seal says; else the worst, which it was `told` to hold. */
static struct allocation *hold_as_known(struct store *store, const struct pod_view *pod,
                                        const struct sealed *sealed, struct allocation *take_told)
{
    const struct allocation *known = ledger_get(store->ledger, pod->uid);

    if (!pod->unread)
        return take_told;
    if (known && !g_str_equal(known->node->name, pod->node_name))
        known = NULL;
    if (!known && sealed->trust == TRUST_SEAL)
        known = sealed->allocation;
    const bool plain = !known && ledger_keep_cpu_pod(store->ledger, pod->node_name, pod->uid,
                                                     store->generation[FEED_PODS]);
    if (!known && !plain)
        return take_told;
    allocation_free(take_told);
    return known ? allocation_dup(known) : NULL;
}

/* `asked` as in store_reconcile_pod, NULL for what the watch or a list says. */
static void apply_bound_pod(struct store *store, const struct pod_view *pod, const uint32_t *asked)
{
    g_autofree char *warning = NULL;
    struct allocation *allocation =
        dialect_read_allocation(pod, &store->options.dialects, &warning);
    bool unplaced = allocation && allocation->distrust != DISTRUST_NONE &&
                    allocation->distrust != DISTRUST_EDITED;
    struct sealed sealed = read_seal(store, pod);
    bool news = false;

    store_lock(store);
    sealed.trust = trust_in(store, &sealed, pod);
    allocation = hold_as_known(store, pod, &sealed, allocation);
    if (!allocation && sealed.trust == TRUST_SEAL)
        allocation = allocation_dup(sealed.allocation); /* whatever it is made to look like */
    const uint64_t number = observer_number(store->observer);
    if (!asked || ledger_get(store->ledger, pod->uid))
        store_join_gang(store, pod, allocation ? GANG_BOUND : GANG_PLAIN); /* its place is gone */
    const struct allocation *known = ledger_get(store->ledger, pod->uid);
    g_hash_table_remove(store->doubted, pod->uid);
    bool confirmed = !asked || (*asked != 0 && *asked == moment(store));
    if (asked && (!known || (known->state == ALLOCATION_CONFIRMED && !known->refused))) {
        /* The watch was faster, and it may have seen the pod's end. Of whom it showed while our Binding
         * was under way, which then was refused, it could not tell who had bound it. */
        allocation_free(allocation);
    } else {
        const struct standing before = find_standing(store, pod);
        sealed.pending = store_pending(store, pod->uid);
        store_note_choice(store, pod);
        if (known && !g_str_equal(known->node->name, pod->node_name))
            store_notify(store, known->node->name, NULL); /* it was booked there */
        if (allocation)
            note_bound(store, pod);
        store_forget_pending(store, pod->uid);
        if (allocation) {
            take_room(store, pod, allocation->created_s);
            if (!allocation->facts) /* else it is a copy of what was known, and so are they */
                allocation->facts = pod_facts_pool_get(store->facts, pod);
            news = record_allocation(store, pod, allocation, &sealed,
                                     confirmed ? ALLOCATION_CONFIRMED : ALLOCATION_BOUND,
                                     asked != NULL);
        } else {
            record_cpu_pod(store, pod);
        }
        const struct standing after = find_standing(store, pod);
        const bool same = before.version == after.version && before.started == after.started &&
                          before.waited_out == after.waited_out;
        store_notify(store, same ? NULL : pod->node_name, pod->uid);
    }
    g_autofree char *quota = store_tell_choice(store, pod);
    store_unlock(store);
    observer_tell(store->observer,
                  asked ? &(struct observation){OBSERVED_ASKED_POD, number, .pod = pod,
                                                .confirmed = confirmed, .quota = quota}
                        : &(struct observation){OBSERVED_POD, number, .pod = pod,
                                                .trust = sealed.trust, .quota = quota});
    allocation_free(sealed.allocation);
    if (news && warning && !store->options.silent)
        report_distrust(pod, unplaced, warning);
}

bool store_reject_pod(struct store *store, const char *uid, const struct rejection *rejection)
{
    store_lock(store);
    const struct allocation *allocation = ledger_get(store->ledger, uid);
    const bool counts = allocation != NULL;
    uint64_t number = 0;

    if (counts)
        parts_pod(&store->parts,
                  &(struct pod_change){POD_CHANGE_REJECTED, uid, allocation, rejection});
    if (store_forget_pod(store, uid))
        number = observer_number(store->observer);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POD_REJECTED, number, .key = uid,
                                                         .rejection = rejection});
    if (counts && !store->options.silent)
        metrics_count(COUNTER_REJECTED, rejection->kind);
    return counts;
}

static void report_rejection(const struct pod_view *pod)
{
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);

    log_event_limited(LOG_LEVEL_WARN, "kubelet has rejected a pod", LOG_TEXT("pod", name),
                      LOG_TEXT("node", pod->node_name), LOG_TEXT("reason", pod->status_reason),
                      LOG_TEXT("message", pod->status_message));
}

static bool is_placed(struct store *store, const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(store), uid);
    const bool placed = held && (held->placed || held->state != ALLOCATION_CONFIRMED);

    store_unlock(store);
    return placed;
}

/* It holds nothing any more. A list names many that have ended long ago, and nobody knows. */
static void end_pod(struct store *store, const struct pod_view *pod)
{
    struct rejection rejection;
    uint64_t number = 0;

    const bool placed = is_placed(store, pod->uid);
    if (placed && rejection_read(pod, &rejection)) {
        if (store_reject_pod(store, pod->uid, &rejection) && !store->options.silent)
            report_rejection(pod);
        return;
    }
    store_lock(store);
    if (store_forget_pod(store, pod->uid))
        number = observer_number(store->observer);
    store_unlock(store);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_POD_ENDED, number, .key = pod->uid});
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
    store_note_promises(store, pod);
    if (pod_view_is_terminal(pod))
        end_pod(store, pod);
    else if (pod_view_is_bound(pod))
        apply_bound_pod(store, pod, NULL);
    else
        store_apply_pending(store, pod);
}

uint32_t store_ask(struct store *store)
{
    store_lock(store);
    uint32_t asked = moment(store);
    store_unlock(store);
    return asked;
}

void store_note_refused(struct store *store, const char *uid)
{
    struct allocation *booking = ledger_get(store_lock(store), uid);
    const uint64_t number = observer_number(store->observer);

    if (booking)
        booking->refused = true;
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_REFUSED, number, .key = uid});
}

void store_reconcile_pod(struct store *store, const struct pod_view *pod, uint32_t asked)
{
    if (pod_view_is_terminal(pod))
        end_pod(store, pod);
    else if (pod_view_is_bound(pod))
        apply_bound_pod(store, pod, &asked);
}

void store_delete_pod(struct store *store, const char *uid)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store_forget_pod(store, uid);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POD_ENDED, number, .key = uid});
}

void store_vanish_pod(struct store *store, const char *uid)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store_miss_pod(store, uid);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POD_VANISHED, number, .key = uid});
}
