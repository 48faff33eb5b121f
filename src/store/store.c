/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_state.h"

#include "core/ledger.h"
#include "policy/demand.h"
#include "policy/value_model.h"

#include <string.h>
#include <time.h>

static void rules_free(gpointer data)
{
    pod_rules_free(data);
}

static void pending_free(gpointer data)
{
    struct pending *pending = data;
    request_free(pending->request);
    g_free(pending->controller);
    g_free(pending->created);
    g_free(pending->nominated_node);
    g_free(pending->could_be_on);
    g_free(pending);
}

static void drop_place(void *data, const char *uid)
{
    struct store *store = data;
    const struct allocation *held = ledger_get(store_ledger(store), uid);

    if (!held || held->state != ALLOCATION_HELD)
        return;
    store_notify(store, held->node->name, uid);
    ledger_drop(store_ledger(store), uid);
}

static void free_mark(gpointer mark)
{
    plan_mark_free(mark);
}

struct store *store_new(const struct store_options *options)
{
    struct store *store = g_new0(struct store, 1);

    store->options = *options;
    if (!store->options.policy)
        store->options.policy = &policies[0];
    pthread_mutex_init(&store->mutex, NULL);
    store->ledger = ledger_new();
    store->demand = demand_new();
    store->pending = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, pending_free);
    store->rules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, rules_free);
    store->shapes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    store->arrivals = arrivals_new();
    store->nominations = nominations_new(store->ledger);
    store->hints = hints_new();
    store->gangs = gangs_new(&(struct gang_keeper){.drop = drop_place,
                                                   .data = store,
                                                   .room_ms = store->options.gang_room_ms,
                                                   .unhurried = store->options.gangs_unhurried});
    store->ratings = ratings_new();
    store->verdicts = verdicts_new();
    store->unsearched = passes_new();
    store->stand_ins = stand_ins_new();
    store->clearings = clearings_new();
    store->quotas = quotas_new();
    resource_quotas_scale(quotas_resources(store->quotas), options->dialects.hami_memory_factor);
    elastic_quotas_trust(quotas_elastic(store->quotas), options->tree_namespaces);
    if (options->reclaim && !options->lend_unreclaimable)
        elastic_quotas_lend_reclaimable(quotas_elastic(store->quotas),
                                        options->reclaim_uncontrolled);
    store->facts = pod_facts_pool_new();
    store->budgets = budgets_new();
    store->doubted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&store->doubts);
    store->named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    store->changes = changes_new();
    store->strays = strays_new();
    store->turns = turns_new();
    parts_start(&store->parts, &(struct part_base){.ledger = store->ledger, .store = store},
                options->parts);
    store->options.parts = store->parts.settings;
    store->sealing = sealing_new();
    store->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_mark);
    store->claim_views = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    store->expecting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return store;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    for (int feed = 0; feed < FEEDS_MAX; feed++) {
        if (store->kept[feed].own)
            store->kept[feed].free(store->kept[feed].own);
        g_free(store->trouble[feed]);
        g_free(store->unwatched[feed]);
    }
    gangs_free(store->gangs);
    ledger_free(store->ledger);
    demand_free(store->demand);
    demand_free(store->told);
    demand_free(store->draft.demand);
    g_clear_pointer(&store->draft.supplies, supplies_free);
    arrivals_free(store->arrivals);
    nominations_free(store->nominations);
    hints_free(store->hints);
    node_books_free(store->ratings);
    node_books_free(store->verdicts);
    passes_free(store->unsearched);
    stand_ins_free(store->stand_ins);
    clearings_free(store->clearings);
    quotas_free(store->quotas);
    pod_facts_pool_free(store->facts);
    budgets_free(store->budgets);
    g_hash_table_unref(store->pending);
    g_hash_table_unref(store->rules);
    g_hash_table_unref(store->shapes);
    g_hash_table_unref(store->doubted);
    g_queue_clear_full(&store->doubts, g_free);
    g_hash_table_unref(store->named);
    changes_free(store->changes);
    strays_free(store->strays);
    turns_free(store->turns);
    parts_stop(&store->parts);
    sealing_free(store->sealing);
    g_hash_table_unref(store->marks);
    g_hash_table_unref(store->claim_views);
    g_free(store->claims_trouble);
    g_hash_table_unref(store->expecting);
    pthread_mutex_destroy(&store->mutex);
    g_free(store);
}

const struct nominations *store_nominations(const struct store *store)
{
    return store->nominations;
}

const struct part_set *store_parts(const struct store *store)
{
    return &store->parts;
}

struct strays *store_strays(const struct store *store)
{
    return store->strays;
}

struct sealing *store_sealing(const struct store *store)
{
    return store->sealing;
}

void store_set_trust(struct store *store, enum trust trust)
{
    store->replayed_trust = trust;
}

void store_set_change(struct store *store, int64_t since_ms)
{
    store->replayed_change_ms = since_ms;
}

void store_note_quotas(struct store *store)
{
    ledger_mark_all_freed(store->ledger);
    store_notify_all(store);
}

void store_tell_gangs(struct store *store)
{
    if (gangs_take_news(store->gangs))
        store_note_quotas(store); /* on whatever node, likewise */
}

/* --- lock ----------------------------------------------------------------------------------- */

void store_measure(struct store *store, const struct lock_meter *meter)
{
    store->meter = *meter;
}

static void begin_hold(const struct store *store, const char *who, bool decides)
{
    if (store->meter.begin)
        store->meter.begin(store->meter.data, who, decides);
}

static void end_hold(const struct store *store)
{
    if (store->meter.end)
        store->meter.end(store->meter.data);
}

struct moment store_clock(const struct store *store)
{
    if (store->replayed)
        return *store->replayed;
    return (struct moment){.now_ns = g_get_real_time() * 1000,
                           .now_ms = g_get_monotonic_time() / 1000};
}

static struct ledger *take_lock(struct store *store, const char *who, bool decides)
{
    atomic_fetch_add(&store->n_waiting, 1);
    pthread_mutex_lock(&store->mutex);
    atomic_fetch_sub(&store->n_waiting, 1);
    begin_hold(store, who, decides);
    return store->ledger;
}

struct ledger *store_lock_by(struct store *store, const char *who)
{
    return take_lock(store, who, false);
}

/* What quotas limit is counted, as far as one decision may count. */
static void begin_counting(struct store *store, struct moment *moment)
{
    if (store->replayed)
        quotas_begin_as(store->quotas, store->ledger, moment->counting);
    else
        moment->counting = !quotas_begin(store->quotas, store->ledger);
}

/* True: decisions were made before all was counted, and now it is. */
static bool end_counting(struct store *store, const struct moment *moment)
{
    const bool ended = store->was_counting && !moment->counting;

    store->was_counting = moment->counting;
    if (ended)
        store_note_quotas(store);
    return ended;
}

struct ledger *store_decide_by(struct store *store, struct moment *ret_moment, const char *who)
{
    take_lock(store, who, true);
    *ret_moment = store_clock(store);
    begin_counting(store, ret_moment);
    return store->ledger;
}

struct ledger *store_decide_recorded_by(struct store *store, struct moment *ret_moment,
                                        const char *who)
{
    struct ledger *ledger = store_decide_by(store, ret_moment, who);

    store_record_moment(store, ret_moment);
    return ledger;
}

void store_record_moment(struct store *store, struct moment *moment)
{
    if (store->observer)
        moment->number = observer_number(store->observer);
    end_counting(store, moment);
    if (moment->now_ns > 0 && /* older records do not tell */
        (parts_settle(&store->parts, moment->now_ms) & PART_OPENED))
        store_notify_all(store);
    if (changes_end(store->changes, store->ledger, moment->now_ms))
        store_notify_all(store);
    hints_end(store->hints, store->ledger, moment->now_ms);
    store_begin_coming(store, moment);
    if (nominations_end(store->nominations, moment->now_ns))
        store_notify_all(store);
    gangs_expire(store->gangs, moment->now_ms);
    store_tell_gangs(store);
}

void store_unlock(struct store *store)
{
    end_hold(store);
    pthread_mutex_unlock(&store->mutex);
}

bool store_wait(struct store *store, const char *node, const char *uid, int64_t until_ms)
{
    end_hold(store);
    const bool woken = sleepers_wait(&store->sleepers, &store->mutex, node, uid, until_ms);
    begin_hold(store, __func__, true);
    return woken;
}

void store_notify(struct store *store, const char *node, const char *uid)
{
    sleepers_wake(&store->sleepers, node, uid);
}

void store_notify_all(struct store *store)
{
    sleepers_wake_all(&store->sleepers);
}

struct ledger *store_ledger(const struct store *store)
{
    return store->ledger;
}

const struct request *store_pending(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    return pending ? pending->request : NULL;
}

const struct budgets *store_budgets(const struct store *store)
{
    return store->budgets;
}

const struct pod_rules *store_rules(const struct store *store, const char *uid)
{
    return g_hash_table_lookup(store->rules, uid);
}

int64_t store_pending_priority(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    return pending ? pending->priority : 0;
}

const char *store_pending_controller(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    return pending ? pending->controller : NULL;
}

/* Whoever asks about a pod by its UID has not its whole view. */
static const char *controller_of(const struct store *store, const struct pod_view *pod)
{
    const struct pending *pending = pod->uid ? g_hash_table_lookup(store->pending, pod->uid) : NULL;

    return pod->controller ? pod->controller : pending ? pending->controller : NULL;
}

int64_t store_waiting_since(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    return pending ? pending->since_ms : 0;
}

void store_waiting_each(const struct store *store,
                        void (*visit)(const char *uid, int64_t since_ms, void *data), void *data)
{
    GHashTableIter iter;
    gpointer uid, value;

    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        const struct pending *pending = value;
        if (pending->since_ms != 0)
            visit(uid, pending->since_ms, data);
    }
}

static const char *scheduler_name(const struct store *store, const struct pod_view *pod)
{
    const struct pod_rules *rules =
        !pod->scheduler_name && pod->uid ? store_rules(store, pod->uid) : NULL;

    return rules ? pod_rules_scheduler(rules) : scheduler_of_pod(pod);
}

struct nominees store_nominees(const struct store *store, const struct admission_query *admission,
                               const struct pod_view *pod)
{
    return (struct nominees){
        .nominations = store->nominations,
        .hints = store->hints,
        .schedulers = arrivals_schedulers(store->arrivals),
        .scheduler = scheduler_name(store, pod),
        .ledger = store->ledger,
        .admission = *admission,
        .uid = pod->uid ? pod->uid : "",
        .ns = pod->ns,
        .controller = controller_of(store, pod),
        .group = gangs_name(store->gangs, pod->uid),
        .priority = pod->priority,
    };
}

void store_take_room(struct store *store, const struct pod_view *pod, const struct request *request,
                     const char *node)
{
    nominations_take(store->nominations,
                     &(struct kept_room_taker){.uid = pod->uid,
                                               .ns = pod->ns,
                                               .controller = controller_of(store, pod),
                                               .request = request,
                                               .node = node});
}

void store_marks_each(const struct store *store,
                      void (*visit)(const char *node, const struct plan_mark *mark, bool lives,
                                    void *data),
                      void *data)
{
    const struct moment moment = store_clock(store);
    GHashTableIter iter;
    gpointer node, mark;

    g_hash_table_iter_init(&iter, store->marks);
    while (g_hash_table_iter_next(&iter, &node, &mark)) {
        if (ledger_node(store->ledger, node))
            visit(node, mark, plan_mark_lives(mark, moment.now_ns), data);
    }
}

const char *store_named_cards(const struct store *store, const char *uid)
{
    return g_hash_table_lookup(store->named, uid);
}

void store_end_waits(struct store *store)
{
    struct moment moment;
    uint64_t number = 0;

    store_lock(store);
    moment = store_clock(store);
    begin_counting(store, &moment);
    const bool counted = end_counting(store, &moment);
    const unsigned settled = parts_settle(&store->parts, moment.now_ms);
    const bool changed = changes_end(store->changes, store->ledger, moment.now_ms);
    const bool left = hints_end(store->hints, store->ledger, moment.now_ms);
    const bool over = nominations_end(store->nominations, moment.now_ns);
    const bool lapsed = gangs_expire(store->gangs, moment.now_ms);
    store_tell_gangs(store);
    if (counted || settled || changed || left || over || lapsed)
        number = observer_number(store->observer);
    if ((settled & PART_OPENED) || changed || over)
        store_notify_all(store);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_TIME, number, .moment = &moment});
}

const struct quotas *store_quotas(const struct store *store)
{
    return store->quotas;
}

const struct elastic_quotas *store_elastic_quotas(const struct store *store)
{
    return store->options.elastic_quotas ? quotas_elastic(store->quotas) : NULL;
}

struct hints *store_hints(struct store *store)
{
    return store->hints;
}

struct gangs *store_gangs(struct store *store)
{
    return store->gangs;
}

struct stand_ins *store_stand_ins(struct store *store)
{
    return store->stand_ins;
}

struct clearings *store_clearings(struct store *store)
{
    return store->clearings;
}

struct node_books *store_ratings(struct store *store)
{
    return store->ratings;
}

struct passes *store_unsearched(struct store *store)
{
    return store->unsearched;
}

struct node_books *store_verdicts(struct store *store)
{
    return store->verdicts;
}

struct arrivals *store_arrivals(struct store *store)
{
    return store->arrivals;
}

const struct store_options *store_options(const struct store *store)
{
    return &store->options;
}

void store_set_observer(struct store *store, struct observer *observer)
{
    store->observer = observer;
}

struct observer *store_observer(const struct store *store)
{
    return store->observer;
}

void store_set_moment(struct store *store, const struct moment *moment)
{
    store->replayed = moment;
}

void store_set_policy(struct store *store, const struct policy *policy, int64_t patience_ms)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store->options.policy = policy;
    store->options.patience_ms = patience_ms;
    store_notify_all(store); /* binds wait by it */
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POLICY, number, .key = policy->name,
                                                           .patience_ms = patience_ms});
}
