/* SPDX-License-Identifier: Apache-2.0 */
/* What operators, plans and records say to a store. */
#include "core/ledger.h"
#include "store/images/part_picture.h"
#include "store/store_state.h"

bool store_order(struct store *store, const char *verb, const char *node)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    const bool changed = parts_order(&store->parts, verb, node);

    if (changed) {
        ledger_mark_freed(store->ledger, node);
        store_notify(store, node, NULL);
    }
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_RESUME, number, .key = node});
    return changed;
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

void *store_part(const struct store *store, const struct part *part)
{
    return parts_of(&store->parts, part);
}

void store_change_part(struct store *store, const struct part *part,
                       bool (*change)(void *self, void *data), void *data)
{
    struct part_picture picture = {.part = part};

    store_lock(store);
    void *self = store_part(store, part);
    if (self && change(self, data))
        picture = part_picture_begin(part, self, store->observer);
    while (part_picture_take(&picture))
        continue;
    store_unlock(store);
    part_picture_tell(&picture, store->observer);
}

bool store_learn_part(struct store *store, const struct part *part, struct json_arena *arena,
                      const cJSON *object, GError **error)
{
    store_lock(store);
    void *self = store_part(store, part);
    const bool learned = !self || part->image->learn(self, arena, object, error);

    store_unlock(store);
    return learned;
}
