/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settling: what became of Bindings whose outcome is unknown or that the watch has not shown, by
 * asking the API server about each pod. Nothing is dropped as long as a Binding of it may still be
 * carried out.
 */
#include "verbs/extender.h"
#include "base/log.h"
#include "core/ledger.h"

/* The API server closes a connection that has been silent for 90 s, and gives up on a request after
 * a minute (--request-timeout): what it has not written by then, it will never write. */
#define UNKNOWN_FOR_AT_MOST_MS 150000
#define SETTLE_CALL_MS 5000

/* Whoever calls has more to do. After a restore from a backup thousands may be doubted; and each call takes
 * seconds if the API server does not answer. */
#define DOUBTED_MAX 50
#define ROUND_MS 2000

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

struct unsettled {
    char *uid, *ns, *name;
    int64_t since_ms; /* as it was found; moves with every change of state */
    bool expired;     /* no Binding of it can still be under way */
    bool doubted;     /* see store_doubts */
};

static void unsettled_clear(gpointer data)
{
    struct unsettled *unsettled = data;
    g_free(unsettled->uid);
    g_free(unsettled->ns);
    g_free(unsettled->name);
}

struct settling {
    GArray *found;
    int64_t age_ms, now_ms;
};

static void find_unsettled(struct allocation *allocation, void *data)
{
    struct settling *settling = data;
    int64_t age_ms = settling->now_ms - allocation->since_ms;

    if ((allocation->state != ALLOCATION_UNKNOWN && allocation->state != ALLOCATION_BOUND) ||
        age_ms < settling->age_ms)
        return;
    struct unsettled unsettled = {
        g_strdup(allocation->uid),
        g_strdup(allocation->ns),
        g_strdup(allocation->name),
        allocation->since_ms,
        allocation->state == ALLOCATION_BOUND || age_ms > UNKNOWN_FOR_AT_MOST_MS,
        false,
    };
    g_array_append_val(settling->found, unsettled);
}

/* Under the lock. */
static void find_doubted(struct store *store, const struct ledger *ledger, GArray *found)
{
    g_autoptr(GPtrArray) uids = store_doubted(store, DOUBTED_MAX);

    for (guint i = 0; i < uids->len; i++) {
        const struct allocation *allocation = ledger_get(ledger, uids->pdata[i]);
        if (!allocation)
            continue;
        const struct unsettled unsettled = {g_strdup(allocation->uid), g_strdup(allocation->ns),
                                            g_strdup(allocation->name), .expired = true,
                                            .doubted = true};
        g_array_append_val(found, unsettled);
    }
}

/* Drops an allocation unless something has happened to it since it was found unsettled. */
static bool drop_unsettled(struct store *store, const struct unsettled *unsettled)
{
    struct ledger *ledger = store_lock(store);
    uint64_t number = 0;
    const struct allocation *allocation = ledger_get(ledger, unsettled->uid);
    bool untouched = allocation && allocation->since_ms == unsettled->since_ms &&
                     (allocation->state == ALLOCATION_UNKNOWN ||
                      allocation->state == ALLOCATION_BOUND);

    if (untouched) {
        number = observer_number(store_observer(store));
        store_notify(store, allocation->node->name, unsettled->uid);
        ledger_drop(ledger, unsettled->uid);
        gangs_settle(store_gangs(store), unsettled->uid, false);
    }
    store_unlock(store);
    observer_tell(store_observer(store),
                  &(struct observation){OBSERVED_DROPPED, number, .key = unsettled->uid});
    return untouched;
}

static bool drop(struct store *store, const struct unsettled *unsettled)
{
    return unsettled->doubted ? store_drop_doubted(store, unsettled->uid)
                              : drop_unsettled(store, unsettled);
}

static bool settle(struct extender *extender, struct json_arena *arena,
                   const struct unsettled *unsettled)
{
    struct cluster *cluster = extender->cluster;
    g_autoptr(GError) failure = NULL;
    struct pod_view pod = {0};
    uint32_t asked = store_ask(extender->store);
    enum outcome outcome = cluster->ops->get_pod(cluster, arena, unsettled->ns, unsettled->name,
                                                 now_ms() + SETTLE_CALL_MS, &pod, &failure);

    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND)
        return false;
    bool same = outcome == OUTCOME_OK && g_strcmp0(pod.uid, unsettled->uid) == 0;
    if (same && (pod_view_is_bound(&pod) || pod_view_is_terminal(&pod)))
        store_reconcile_pod(extender->store, &pod, asked);
    else if ((same && !unsettled->expired) || !drop(extender->store, unsettled))
        return false;
    log_event(LOG_LEVEL_INFO, "settled", LOG_TEXT("uid", unsettled->uid),
              LOG_TEXT("node", same && pod_view_is_bound(&pod) ? pod.node_name : "none"));
    return true;
}

unsigned extender_reconcile(struct extender *extender, int64_t age_ms)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct unsettled));
    g_autoptr(json_arena) arena = json_arena_new();
    struct settling settling = {found, age_ms, now_ms()};
    unsigned settled = 0;

    g_array_set_clear_func(found, unsettled_clear);
    struct ledger *ledger = store_lock(extender->store);
    ledger_each_open(ledger, find_unsettled, &settling);
    find_doubted(extender->store, ledger, found);
    store_unlock(extender->store);
    /* Not always the same ones first: those behind them have their turn as well. */
    const guint first = extender->rounds++;
    for (guint i = 0; i < found->len && now_ms() - settling.now_ms <= ROUND_MS &&
                      !g_atomic_int_get(&extender->draining);
         i++) {
        settled += settle(extender, arena,
                          &g_array_index(found, struct unsettled, (first + i) % found->len));
        json_arena_clear(arena);
    }
    return settled;
}
