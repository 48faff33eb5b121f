/* SPDX-License-Identifier: Apache-2.0 */
#include "app/store.h"

#include "app/log.h"
#include "app/metrics.h"
#include "app/recorder.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define COPIED_AT_ONCE 64 /* nodes, by store_copy */

struct pending {
    struct request *request;
    int64_t priority;
    uint32_t generation;
};

struct store {
    struct store_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    struct ledger *ledger;
    struct demand *demand;
    GHashTable *pending; /* uid -> struct pending *: pods that ask for a GPU and have no node */
    struct arrivals *arrivals; /* the same, in order; borrows their requests */
    struct nominations *nominations; /* those with room kept for them; borrows, too */
    struct quotas *quotas;
    uint32_t quotas_generation;
    struct pod_facts_pool *facts; /* of the pods with allocations */
    struct budgets *budgets;
    GHashTable *moved;   /* uid -> char *: pods whose cards are not those that they had first */
    GHashTable *health;  /* node name -> generation of the ConfigMap that speaks of it */
    uint32_t generation[FEED_N];
    bool synced[FEED_N];
    char *trouble[FEED_N]; /* why it cannot be read, or NULL */
    bool listing[FEED_N]; /* a list has begun that has not ended */
    struct recorder *recorder; /* NULL: none */
    const struct moment *replayed; /* NULL: clocks say when it is */
};

static const char *const feed_names[FEED_N] = {"nodes", "pods", "configmaps",
                                                "poddisruptionbudgets"};

static void pending_free(gpointer data)
{
    struct pending *pending = data;
    request_free(pending->request);
    g_free(pending);
}

struct store *store_new(const struct store_options *options)
{
    struct store *store = g_new0(struct store, 1);
    pthread_condattr_t monotonic;

    store->options = *options;
    if (!store->options.policy)
        store->options.policy = &policies[0];
    pthread_mutex_init(&store->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    store->ledger = ledger_new();
    store->demand = demand_new();
    store->pending = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, pending_free);
    store->arrivals = arrivals_new();
    store->nominations = nominations_new(store->ledger);
    store->quotas = quotas_new();
    store->facts = pod_facts_pool_new();
    store->budgets = budgets_new();
    store->moved = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    store->health = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return store;
}

/* Under the lock. */
static void copy_pending(struct store *copy, struct store *store)
{
    GHashTableIter iter;
    gpointer uid, value;

    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        struct pending *pending = g_new0(struct pending, 1);
        pending->request = request_dup(((const struct pending *)value)->request);
        pending->priority = ((const struct pending *)value)->priority;
        g_hash_table_insert(copy->pending, g_strdup(uid), pending);
        arrivals_copy(copy->arrivals, store->arrivals, uid, pending->request);
        nominations_copy(copy->nominations, store->nominations, uid, pending->request);
    }
}

struct store *store_copy(struct store *store)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    struct ledger *ledger = store_lock(store);
    struct store *copy = store_new(&store->options);
    const GPtrArray *nodes = ledger_nodes(ledger);

    copy->options.silent = true;
    memcpy(copy->synced, store->synced, sizeof copy->synced);
    for (guint i = 0; i < nodes->len; i++)
        g_ptr_array_add(names, g_strdup(((const struct node *)nodes->pdata[i])->name));
    quotas_free(copy->quotas);
    copy->quotas = quotas_dup(store->quotas);
    demand_free(copy->demand);
    copy->demand = demand_dup(store->demand);
    copy_pending(copy, store);
    for (guint i = 0; i < names->len; i++) {
        const struct node *node = ledger_node(ledger, names->pdata[i]);
        if (node)
            ledger_copy_node(copy->ledger, node);
        if (i % COPIED_AT_ONCE == COPIED_AT_ONCE - 1) {
            store_unlock(store);
            store_lock(store);
        }
    }
    store_unlock(store);
    return copy;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    for (int feed = 0; feed < FEED_N; feed++)
        g_free(store->trouble[feed]);
    ledger_free(store->ledger);
    demand_free(store->demand);
    arrivals_free(store->arrivals);
    nominations_free(store->nominations);
    quotas_free(store->quotas);
    pod_facts_pool_free(store->facts);
    budgets_free(store->budgets);
    g_hash_table_unref(store->pending);
    g_hash_table_unref(store->moved);
    g_hash_table_unref(store->health);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->mutex);
    g_free(store);
}

/* --- lock ----------------------------------------------------------------------------------- */

struct ledger *store_lock(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    return store->ledger;
}

struct ledger *store_decide(struct store *store, struct moment *ret_moment)
{
    pthread_mutex_lock(&store->mutex);
    if (store->replayed) {
        *ret_moment = *store->replayed;
    } else {
        ret_moment->now_ns = g_get_real_time() * 1000;
        ret_moment->now_ms = g_get_monotonic_time() / 1000;
        ret_moment->number = 0;
    }
    return store->ledger;
}

struct ledger *store_decide_recorded(struct store *store, struct moment *ret_moment)
{
    struct ledger *ledger = store_decide(store, ret_moment);

    if (store->recorder)
        ret_moment->number = recorder_number(store->recorder);
    return ledger;
}

void store_unlock(struct store *store)
{
    pthread_mutex_unlock(&store->mutex);
}

bool store_wait(struct store *store, int64_t until_ms)
{
    struct timespec until = {until_ms / 1000, (until_ms % 1000) * 1000000};
    return pthread_cond_timedwait(&store->changed, &store->mutex, &until) != ETIMEDOUT;
}

void store_notify(struct store *store)
{
    pthread_cond_broadcast(&store->changed);
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

int64_t store_pending_priority(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    return pending ? pending->priority : 0;
}

struct nominees store_nominees(const struct store *store, const struct admission_query *admission,
                               const char *uid, int64_t priority)
{
    return (struct nominees){
        .nominations = store->nominations,
        .ledger = store->ledger,
        .admission = *admission,
        .uid = uid,
        .priority = priority,
    };
}

const char *store_first_cards(const struct store *store, const char *uid)
{
    return g_hash_table_lookup(store->moved, uid);
}

const struct quotas *store_quotas(const struct store *store)
{
    return store->quotas;
}

const struct demand *store_demand(struct store *store)
{
    demand_settle(store->demand, store->ledger);
    return store->demand;
}

struct arrivals *store_arrivals(struct store *store)
{
    return store->arrivals;
}

const struct store_options *store_options(const struct store *store)
{
    return &store->options;
}

void store_set_recorder(struct store *store, struct recorder *recorder)
{
    store->recorder = recorder;
}

struct recorder *store_recorder(const struct store *store)
{
    return store->recorder;
}

void store_set_moment(struct store *store, const struct moment *moment)
{
    store->replayed = moment;
}

void store_set_policy(struct store *store, const struct policy *policy, int64_t patience_ms)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    store->options.policy = policy;
    store->options.patience_ms = patience_ms;
    store_unlock(store);
    recorder_take(store->recorder, record_policy(number, policy->name, patience_ms));
}

/* --- pods ----------------------------------------------------------------------------------- */

static void forget_pending(struct store *store, const char *uid)
{
    arrivals_forget(store->arrivals, uid);
    nominations_forget(store->nominations, uid);
    g_hash_table_remove(store->pending, uid);
}

static void forget_pod(struct store *store, const char *uid)
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

static void apply_pending_pod(struct store *store, const struct pod_view *pod)
{
    g_autoptr(request) request = dialect_read_request(pod, &store->options.dialects, NULL);

    /* Not a pod of ours, or one that cannot be understood: a verb that is asked about it reads it
     * afresh and says why. */
    if (!request)
        return;

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    struct allocation *held = ledger_get(store->ledger, pod->uid);
    if (held)
        held->generation = store->generation[FEED_PODS]; /* named all the same, see store.h */
    struct pending *pending = g_hash_table_lookup(store->pending, pod->uid);
    if (!pending) {
        pending = g_new0(struct pending, 1);
        pending->request = g_steal_pointer(&request);
        pending->priority = pod->priority;
        g_hash_table_insert(store->pending, g_strdup(pod->uid), pending);
        arrivals_add(store->arrivals, pod, pending->request);
        if (!held)
            demand_note(store->demand, pending->request);
    }
    pending->generation = store->generation[FEED_PODS];
    nominations_note(store->nominations, pod, pending->request);
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
    forget_pod(store, uid);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_gone(RECORD_POD_GONE, number, uid));
}

/* --- nodes and their health ----------------------------------------------------------------- */

/* Under the lock: what quotas are about. */
static void mark_node(struct store *store, const struct node_view *view)
{
    const struct store_options *options = &store->options;
    const char *model = NULL, *pool = NULL;

    if (options->model_label && *options->model_label)
        model = string_pairs_get(&view->labels, options->model_label);
    if (options->pool_label && *options->pool_label)
        pool = string_pairs_get(&view->labels, options->pool_label);
    quotas_set_node(store->quotas, view->name, model, pool);
}

void store_apply_node(struct store *store, const struct node_view *view)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) failure = NULL;
    bool shared = dialect_read_topology(view, &store->options.dialects, topology, &warning,
                                        &failure);

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    struct node *node = ledger_set_topology(store->ledger, view->name, shared ? topology : NULL);
    node->generation = store->generation[FEED_NODES];
    node->cordoned = view->cordoned;
    mark_node(store, view);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_node(number, view));

    if ((failure || warning) && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_NODES);
        log_event(LOG_LEVEL_WARN, "node cannot be understood", LOG_TEXT("node", view->name),
                  LOG_TEXT("why", failure ? failure->message : warning));
    }
}

void store_delete_node(struct store *store, const char *name)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_remove_node(store->ledger, name);
    quotas_set_node(store->quotas, name, NULL, NULL);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_gone(RECORD_NODE_GONE, number, name));
}

/* The dialect that the ConfigMap belongs to, and the node it speaks of. */
static const struct dialect *health_dialect(const struct configmap_view *view,
                                            const char **ret_node)
{
    for (size_t i = 0; dialects[i]; i++) {
        const struct dialect *dialect = dialects[i];
        if (dialect->health_prefix && g_strcmp0(view->ns, dialect->health_namespace) == 0 &&
            g_str_has_prefix(view->name, dialect->health_prefix)) {
            *ret_node = view->name + strlen(dialect->health_prefix);
            return dialect;
        }
    }
    return NULL;
}

static bool is_of_quotas(const struct store *store, const struct configmap_view *view)
{
    return store->options.model_label && *store->options.model_label &&
           g_strcmp0(view->ns, QUOTAS_NAMESPACE) == 0 && g_strcmp0(view->name, QUOTAS_NAME) == 0;
}

static void apply_quotas(struct store *store, const struct configmap_view *view, bool gone)
{
    const char *text = gone ? NULL : string_pairs_get(&view->data, "gpu_quota");
    g_autoptr(GError) failure = NULL;

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    store->quotas_generation = store->generation[FEED_CONFIGMAPS];
    quotas_set(store->quotas, text, &failure);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, gone));
    if (failure && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);
        log_event(LOG_LEVEL_WARN, "quotas cannot be understood; those before them count",
                  LOG_TEXT("why", failure->message));
    }
}

void store_apply_configmap(struct store *store, const struct configmap_view *view)
{
    const char *node;
    const struct dialect *dialect = health_dialect(view, &node);
    g_autofree char *warning = NULL;

    if (is_of_quotas(store, view))
        apply_quotas(store, view, false);
    if (!dialect)
        return;
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    dialect->read_health(view, indices, &warning);

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_set_unhealthy(store->ledger, node, (const int32_t *)(void *)indices->data,
                         indices->len);
    g_hash_table_insert(store->health, g_strdup(node),
                        GUINT_TO_POINTER(store->generation[FEED_CONFIGMAPS]));
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, false));

    if (warning && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);
        log_event(LOG_LEVEL_WARN, "unhealthy cards cannot be understood", LOG_TEXT("node", node),
                  LOG_TEXT("why", warning));
    }
}

void store_delete_configmap(struct store *store, const struct configmap_view *view)
{
    const char *node;

    if (is_of_quotas(store, view))
        apply_quotas(store, view, true);
    if (!health_dialect(view, &node))
        return;
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_set_unhealthy(store->ledger, node, NULL, 0);
    g_hash_table_remove(store->health, node);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, true));
}

/* --- budgets -------------------------------------------------------------------------------- */

void store_apply_budget(struct store *store, const struct budget_view *view)
{
    store_lock(store);
    budgets_set(store->budgets, view, store->generation[FEED_BUDGETS]);
    store_unlock(store);
}

void store_delete_budget(struct store *store, const char *ns, const char *name)
{
    store_lock(store);
    budgets_remove(store->budgets, ns, name);
    store_unlock(store);
}

/* --- lists ---------------------------------------------------------------------------------- */

static void collect_stale_allocation(struct allocation *allocation, void *data)
{
    GPtrArray *stale = ((gpointer *)data)[0];
    const uint32_t *generation = ((gpointer *)data)[1];

    if (allocation->state == ALLOCATION_CONFIRMED && allocation->generation != *generation)
        g_ptr_array_add(stale, g_strdup(allocation->uid));
}

static void sweep_pods(struct store *store)
{
    g_autoptr(GPtrArray) stale = g_ptr_array_new_with_free_func(g_free);
    gpointer arguments[] = {stale, &store->generation[FEED_PODS]};
    GHashTableIter iter;
    gpointer key, value;

    ledger_each(store->ledger, collect_stale_allocation, arguments);
    for (guint i = 0; i < stale->len; i++)
        forget_pod(store, g_ptr_array_index(stale, i));
    ledger_sweep_guests(store->ledger, store->generation[FEED_PODS]);
    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const struct pending *pending = value;
        if (pending->generation == store->generation[FEED_PODS])
            continue;
        arrivals_forget(store->arrivals, key);
        nominations_forget(store->nominations, key);
        g_hash_table_iter_remove(&iter);
    }
}

static void sweep_nodes(struct store *store)
{
    g_autoptr(GPtrArray) stale = g_ptr_array_new_with_free_func(g_free);
    const GPtrArray *nodes = ledger_nodes(store->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        if (node->present && node->generation != store->generation[FEED_NODES])
            g_ptr_array_add(stale, g_strdup(node->name));
    }
    for (guint i = 0; i < stale->len; i++)
        ledger_remove_node(store->ledger, g_ptr_array_index(stale, i));
}

static void sweep_configmaps(struct store *store)
{
    GHashTableIter iter;
    gpointer name, generation;

    if (store->quotas_generation != store->generation[FEED_CONFIGMAPS])
        quotas_set(store->quotas, NULL, NULL);
    g_hash_table_iter_init(&iter, store->health);
    while (g_hash_table_iter_next(&iter, &name, &generation)) {
        if (GPOINTER_TO_UINT(generation) == store->generation[FEED_CONFIGMAPS])
            continue;
        ledger_set_unhealthy(store->ledger, name, NULL, 0);
        g_hash_table_iter_remove(&iter);
    }
}

static void sweep_budgets(struct store *store)
{
    budgets_sweep(store->budgets, store->generation[FEED_BUDGETS]);
}

static void (*const sweeps[FEED_N])(struct store *store) = {
    [FEED_NODES] = sweep_nodes,
    [FEED_PODS] = sweep_pods,
    [FEED_CONFIGMAPS] = sweep_configmaps,
    [FEED_BUDGETS] = sweep_budgets,
};

/* Under the lock. No decision that is recorded depends on budgets. */
static uint64_t list_number(struct store *store, enum feed feed)
{
    return feed == FEED_BUDGETS ? 0 : recorder_number(store->recorder);
}

void store_list_begin(struct store *store, enum feed feed)
{
    store_lock(store);
    const uint64_t number = list_number(store, feed);
    store->generation[feed]++;
    store->listing[feed] = true;
    store_unlock(store);
    recorder_take(store->recorder, record_list(RECORD_LIST_BEGIN, number, feed));
}

void store_list_end(struct store *store, enum feed feed)
{
    store_lock(store);
    const uint64_t number = list_number(store, feed);
    sweeps[feed](store);
    store->listing[feed] = false;
    store->synced[feed] = true;
    if (feed != FEED_BUDGETS) /* for which nobody waits */
        store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_list(RECORD_LIST_END, number, feed));
}

bool store_is_synced(struct store *store)
{
    bool synced = true;

    store_lock(store);
    for (int feed = 0; feed < FEED_N; feed++)
        synced &= store->synced[feed] || feed == FEED_BUDGETS;
    store_unlock(store);
    return synced;
}

/* Under the lock. */
static void append_feed(const struct store *store, int feed, GString *text)
{
    g_string_append_printf(text, "%s%s", text->len ? ", " : "", feed_names[feed]);
    if (store->trouble[feed])
        g_string_append_printf(text, " (%s)", store->trouble[feed]);
}

char *store_unsynced(struct store *store)
{
    GString *text = g_string_new(NULL);

    store_lock(store);
    for (int feed = 0; feed < FEED_N; feed++) {
        if (!store->synced[feed] && feed != FEED_BUDGETS)
            append_feed(store, feed, text);
    }
    store_unlock(store);
    return g_string_free(text, FALSE);
}

void store_set_trouble(struct store *store, enum feed feed, const char *why)
{
    store_lock(store);
    g_free(store->trouble[feed]);
    store->trouble[feed] = g_strdup(why);
    store_unlock(store);
}

char *store_troubles(struct store *store)
{
    GString *text = g_string_new(NULL);

    store_lock(store);
    for (int feed = 0; feed < FEED_N; feed++) {
        if (store->trouble[feed])
            append_feed(store, feed, text);
    }
    store_unlock(store);
    return g_string_free(text, FALSE);
}
