/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/housekeeping.h"

#include "base/log.h"
#include "base/worker.h"
#include "store/node_walk.h"
#include "verbs/revoker.h"

#include <malloc.h>

#define SYNC_POLL_MS 50
#define SETTLE_EVERY_MS 1000
#define SETTLE_AGE_MS 5000 /* the watch confirms a bind within milliseconds, unless it is cut */

struct housekeeping {
    struct worker worker;
    struct extender *extender;
    struct keys *keys;
    int64_t started_ms;
};

struct sums {
    size_t nodes, cards, pools; /* of pools only kubelet knows the cards */
};

static void add_node(const struct node *node, void *data)
{
    struct sums *sums = data;

    sums->nodes += node->n_cards > 0 || node->n_pools > 0;
    sums->pools += (size_t)node->n_pools;
    sums->cards += (size_t)node->n_cards;
}

static void report_sync(const struct housekeeping *housekeeping)
{
    struct store *store = housekeeping->extender->store;
    struct sums sums = {0};

    node_walk_all(store, add_node, &sums);
    const size_t pods = ledger_size(store_lock(store));
    store_unlock(store);
    log_event(LOG_LEVEL_INFO, "synced", LOG_NUMBER("gpu_nodes", sums.nodes),
              LOG_NUMBER("cards", sums.cards), LOG_NUMBER("pods", pods),
              LOG_NUMBER("ms", g_get_monotonic_time() / 1000 - housekeeping->started_ms),
              LOG_NUMBER("pools", sums.pools));
    if (sums.nodes == 0)
        log_event(LOG_LEVEL_WARN, "no node shares GPUs",
                  LOG_TEXT("hint", "nodes report shared memory once their device plugin runs"));
    /* The first lists are the largest documents that are ever parsed. */
    malloc_trim(0);
}

static bool serves(const struct extender *extender)
{
    return leadership_term(extender->leadership) != 0;
}

static void settle(struct housekeeping *housekeeping)
{
    struct extender *extender = housekeeping->extender;

    extender_reconcile(extender, SETTLE_AGE_MS);
    store_count_quotas(extender->store);
    store_end_waits(extender->store);
    keys_tend(housekeeping->keys, extender->store, extender->cluster, serves(extender));
    /* Both write to pods, so that the right to do so is there. */
    if ((extender->wake || housekeeping->keys) && serves(extender))
        revoker_run(extender->store, extender->cluster);
    /* Whoever serves has refused the pods. */
    if (extender->wake && serves(extender))
        wake_run(extender->wake, extender->store, extender->cluster);
}

static void *run(void *data)
{
    struct housekeeping *housekeeping = data;
    bool synced = false;

    do {
        if (synced) {
            settle(housekeeping);
        } else if (store_is_synced(housekeeping->extender->store)) {
            synced = true;
            report_sync(housekeeping);
        }
    } while (worker_rest(&housekeeping->worker, synced ? SETTLE_EVERY_MS : SYNC_POLL_MS));
    return NULL;
}

struct housekeeping *housekeeping_start(struct extender *extender, struct keys *keys,
                                        GError **error)
{
    struct housekeeping *housekeeping = g_new0(struct housekeeping, 1);

    *housekeeping = (struct housekeeping){
        .extender = extender, .keys = keys, .started_ms = g_get_monotonic_time() / 1000};
    worker_init(&housekeeping->worker);
    if (worker_start(&housekeeping->worker, run, housekeeping, error))
        return housekeeping;
    housekeeping_free(housekeeping);
    return NULL;
}

void housekeeping_free(struct housekeeping *housekeeping)
{
    if (!housekeeping)
        return;
    worker_stop(&housekeeping->worker);
    worker_release(&housekeeping->worker);
    g_free(housekeeping);
}
