/* SPDX-License-Identifier: Apache-2.0 */
/* Fresh lists, what they did not name, and feeds that cannot be read. */
#include "core/ledger.h"
#include "store/kinds/kind.h"
#include "store/node_walk.h"
#include "store/store_state.h"

#include <gpuledger/error.h>

/* What is swept is told one by one, as it happens, so that the lock is held for one of them only; the
 * end of the list, which comes last, then has next to nothing left to sweep. */
struct stale {
    struct store *store;
    GPtrArray *keys; /* UIDs or names */
};

static bool is_stale_pod(const struct store *store, const struct allocation *allocation)
{
    return allocation->state == ALLOCATION_CONFIRMED &&
           allocation_own(allocation)->generation != store->generation[FEED_PODS];
}

static void collect_stale_pods(const struct node *node, void *data)
{
    const struct stale *stale = data;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (is_stale_pod(stale->store, allocation))
            g_ptr_array_add(stale->keys, g_strdup(allocation->uid));
    }
}

static void drop_stale_pod(struct store *store, const char *uid)
{
    uint64_t number = 0;
    const struct allocation *allocation = ledger_get(store_lock_again(store), uid);

    if (allocation && is_stale_pod(store, allocation)) {
        g_autofree char *node = g_strdup(allocation->node->name);
        number = observer_number(store->observer);
        store_miss_pod(store, uid);
        store_notify(store, node, uid);
    }
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POD_VANISHED, number, .key = uid});
}

static bool drop_stale_cpu_pod(struct store *store)
{
    const struct ledger *ledger = store_lock_again(store);
    g_autofree char *uid = g_strdup(ledger_stale_cpu_pod(ledger, store->generation[FEED_PODS]));
    const uint64_t number = uid ? observer_number(store->observer) : 0;

    if (uid)
        store_miss_pod(store, uid);
    store_unlock(store);
    if (uid)
        observer_tell(store->observer,
                      &(struct observation){OBSERVED_POD_VANISHED, number, .key = uid});
    return uid != NULL;
}

static bool is_stale_pending(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);

    return pending && pending->generation != store->generation[FEED_PODS];
}

static bool collect_stale_pending(const struct arrivals_row *row, void *data)
{
    const struct stale *stale = data;

    if (is_stale_pending(stale->store, row->uid))
        g_ptr_array_add(stale->keys, g_strdup(row->uid));
    return true;
}

/* One that a bind holds cards for is left to the end of the list: its booking stays. */
static void drop_stale_pending(struct store *store, const char *uid)
{
    const struct ledger *ledger = store_lock_again(store);
    const bool goes = is_stale_pending(store, uid) && !ledger_get(ledger, uid);
    const uint64_t number = goes ? observer_number(store->observer) : 0;

    if (goes)
        store_miss_pod(store, uid);
    store_unlock(store);
    if (goes)
        observer_tell(store->observer,
                      &(struct observation){OBSERVED_POD_VANISHED, number, .key = uid});
}

static bool drop_stale_promise(struct store *store)
{
    store_lock_again(store);
    struct stray *stray = strays_stale(store->strays, store->generation[FEED_PODS]);
    store_unlock(store);

    if (stray)
        store_set_promise(store, stray, false);
    const bool dropped = stray != NULL;
    stray_free(stray);
    return dropped;
}

static void drop_stale_pods(struct store *store)
{
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) pending = g_ptr_array_new_with_free_func(g_free);
    struct stale stale = {store, uids}, stale_pending = {store, pending};

    node_walk_all(store, collect_stale_pods, &stale);
    for (guint i = 0; i < uids->len; i++)
        drop_stale_pod(store, uids->pdata[i]);
    store_arrivals_each(store, collect_stale_pending, &stale_pending);
    for (guint i = 0; i < pending->len; i++)
        drop_stale_pending(store, pending->pdata[i]);
    while (drop_stale_cpu_pod(store))
        continue;
    while (drop_stale_promise(store))
        continue;
}

static void sweep_pods(struct store *store)
{
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const struct pending *pending = value;
        if (pending->generation == store->generation[FEED_PODS])
            continue;
        arrivals_forget(store->arrivals, key);
        nominations_forget(store->nominations, key);
        g_hash_table_iter_remove(&iter);
    }
    g_hash_table_iter_init(&iter, store->rules);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (((const struct pod_rules *)value)->generation != store->generation[FEED_PODS])
            g_hash_table_iter_remove(&iter);
    }
    strays_sweep(store->strays, store->ledger, store->generation[FEED_PODS]);
    gangs_sweep_pods(store->gangs, store->generation[FEED_PODS]);
    store_tell_gangs(store);
    store_hope_groups(store);
}

bool store_doubts(const struct store *store, const char *uid)
{
    return g_hash_table_contains(store->doubted, uid);
}

GPtrArray *store_doubted(struct store *store, guint most)
{
    GPtrArray *uids = g_ptr_array_new_with_free_func(g_free);

    /* Each goes behind the others: whom nobody tells of does not keep them waiting. */
    for (guint n = g_queue_get_length(&store->doubts); n > 0 && uids->len < most; n--) {
        char *uid = g_queue_pop_head(&store->doubts);
        if (store_doubts(store, uid)) {
            g_ptr_array_add(uids, g_strdup(uid));
            g_queue_push_tail(&store->doubts, uid);
        } else {
            g_free(uid);
        }
    }
    return uids;
}

bool store_drop_doubted(struct store *store, const char *uid)
{
    uint64_t number = 0;

    store_lock(store);
    const bool doubted = store_doubts(store, uid);
    if (doubted) {
        number = observer_number(store->observer);
        store_forget_pod(store, uid);
    }
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_POD_ENDED, number, .key = uid});
    return doubted;
}

static bool is_stale_node(const struct store *store, const struct node *node)
{
    return node->present && node_own(node)->generation != store->generation[FEED_NODES];
}

static void collect_stale_node(const struct node *node, void *data)
{
    const struct stale *stale = data;

    if (is_stale_node(stale->store, node))
        g_ptr_array_add(stale->keys, g_strdup(node->name));
}

static void drop_stale_nodes(struct store *store)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    struct stale stale = {store, names};

    node_walk_all(store, collect_stale_node, &stale);
    for (guint i = 0; i < names->len; i++)
        store_delete_node(store, names->pdata[i]); /* nobody else brings nodes */
}

/* Under the store's lock only now and then. */
static void drop_stale(struct store *store, enum feed feed)
{
    if (feed == FEED_NODES)
        drop_stale_nodes(store);
    else if (feed == FEED_PODS)
        drop_stale_pods(store);
}

/* Under the lock. */
static void sweep(struct store *store, enum feed feed)
{
    if (feed == FEED_PODS)
        sweep_pods(store);
    else
        store_sweep_objects(store, feed);
}

void store_list_begin(struct store *store, enum feed feed)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store->generation[feed]++;
    store->listing[feed] = true;
    store->spared[feed] = false;
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_LIST_BEGIN, number, .feed = feed});
}

void store_list_spare(struct store *store, enum feed feed)
{
    store_lock(store);
    store->spared[feed] = store->listing[feed];
    store_unlock(store);
}

static bool is_spared(struct store *store, enum feed feed)
{
    store_lock(store);
    const bool spared = store->spared[feed];
    store_unlock(store);
    return spared;
}

void store_list_end(struct store *store, enum feed feed)
{
    const bool spared = is_spared(store, feed);

    if (!spared)
        drop_stale(store, feed);
    store_count_quotas(store); /* before a decision needs it */
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    if (!spared)
        sweep(store, feed);
    store->listing[feed] = false;
    store->synced[feed] = true;
    if (!kinds[feed]->unawaited)
        store_notify_all(store);
    store_unlock(store);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_LIST_END, number, .feed = feed, .spared = spared});
}

/* Whether the ledger is complete only once it has been listed. */
static bool is_awaited(const struct store *store, int feed)
{
    return !kinds[feed]->unawaited && store_wants(store, (enum feed)feed);
}

bool store_is_synced(struct store *store)
{
    bool synced = true;

    store_lock(store);
    for (int feed = 0; feed < kinds_n; feed++)
        synced &= store->synced[feed] || !is_awaited(store, feed);
    store_unlock(store);
    return synced;
}

/* Under the lock. */
static void append_feed(const struct store *store, int feed, GString *text)
{
    g_string_append_printf(text, "%s%s", text->len ? ", " : "", kinds[feed]->feed);
    if (store->trouble[feed])
        g_string_append_printf(text, " (%s)", store->trouble[feed]);
}

char *store_unsynced(struct store *store)
{
    GString *text = g_string_new(NULL);

    store_lock(store);
    for (int feed = 0; feed < kinds_n; feed++) {
        if (!store->synced[feed] && is_awaited(store, feed))
            append_feed(store, feed, text);
    }
    store_unlock(store);
    return g_string_free(text, FALSE);
}

bool store_check_synced(struct store *store, GError **error)
{
    if (store_is_synced(store))
        return true;
    g_autofree char *unsynced = store_unsynced(store);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                "gpuledger has not read the cluster's %s yet; try again", unsynced);
    return false;
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
    for (int feed = 0; feed < kinds_n; feed++) {
        if (store->trouble[feed])
            append_feed(store, feed, text);
    }
    store_unlock(store);
    return g_string_free(text, FALSE);
}

void store_set_unwatched(struct store *store, enum feed feed, const char *why)
{
    store_lock(store);
    g_free(store->unwatched[feed]);
    store->unwatched[feed] = g_strdup(why);
    store_unlock(store);
}

char *store_unwatched(struct store *store)
{
    GString *text = g_string_new(NULL);

    store_lock(store);
    for (int feed = 0; feed < kinds_n; feed++) {
        if (store->unwatched[feed] && is_awaited(store, feed))
            g_string_append_printf(text, "%s%s (%s)", text->len ? ", " : "", kinds[feed]->feed,
                                   store->unwatched[feed]);
    }
    store_unlock(store);
    return g_string_free(text, FALSE);
}
