/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that kubelet rejects, and nodes that are left out for it. */
#include "base/metrics.h"
#include "core/ledger.h"
#include "store/store_state.h"

bool store_resume_node(struct store *store, const char *name)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    const bool resumed = rejects_resume(store->rejects, name);

    if (resumed) {
        ledger_mark_freed(store->ledger, name);
        store_notify(store, name, NULL);
    }
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_RESUME, number, .key = name});
    return resumed;
}

void store_tell_move(struct store *store, const struct observed_move *move)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store_unlock(store);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_MOVE, number, .key = move->uid, .move = move});
}

void store_tell_eviction(struct store *store, const struct observed_eviction *eviction)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    store_unlock(store);
    observer_tell(store->observer,
                  &(struct observation){OBSERVED_EVICTION, number, .key = eviction->uid,
                                        .eviction = eviction});
}

const struct rejects *store_rejects(const struct store *store)
{
    return store->rejects;
}

bool store_learn_rejects(struct store *store, struct json_arena *arena, const cJSON *object,
                         GError **error)
{
    store_lock(store);
    const bool learned = rejects_decode(store->rejects, arena, object, error);

    store_unlock(store);
    return learned;
}
