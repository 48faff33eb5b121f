/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods on their way whose room is kept: those that filter has let pass and that bind late (queue/hints.h), and
 * those that are nominated to a node where nobody has to end (queue/nominations.h).
 */
#include "store/store_state.h"

struct look {
    const struct store *store;
    int64_t now_ns;
};

/* As the pod finds the nodes beside those for whom room is kept. */
static struct nominees look_as(const struct look *look, const char *uid,
                               const struct pending *pending)
{
    const struct store *store = look->store;

    return (struct nominees){
        .nominations = store->nominations,
        .hints = store->hints,
        .ledger = store->ledger,
        .admission = {.request = pending->request,
                      .policy = store->options.policy,
                      .options = &store->options.dialects,
                      .now_ns = look->now_ns,
                      .patience_ns = store->options.patience_ms * 1000000,
                      .demand = store->demand},
        .uid = uid,
        .priority = pending->priority,
    };
}

/* Whether the pod finds room on the node that it is nominated to as things are. */
static bool finds_room(const char *uid, void *data)
{
    const struct look *look = data;
    const struct pending *pending = g_hash_table_lookup(look->store->pending, uid);
    const struct node *node = pending && pending->nominated_node
                                  ? ledger_node(look->store->ledger, pending->nominated_node)
                                  : NULL;

    if (!node || !node->present || look->store->options.volume_bind_ms == 0)
        return false;
    struct nominees nominees = look_as(look, uid, pending);
    const bool finds = nominees_find_room(&nominees, node);
    nominees_clear(&nominees);
    return finds;
}

/* While the cluster is listed, a node looks emptier than it is. */
static bool is_listing(const struct store *store)
{
    return store->listing[FEED_NODES] || store->listing[FEED_PODS] || !store->synced[FEED_NODES] ||
           !store->synced[FEED_PODS];
}

void store_note_coming(struct store *store, const char *uid, int64_t now_ns)
{
    struct look look = {store, now_ns};

    if (nominations_unsettled(store->nominations, uid) && !is_listing(store))
        nominations_settle(store->nominations, uid, finds_room(uid, &look));
}

void store_begin_coming(struct store *store, const struct moment *moment)
{
    struct look look = {store, moment->now_ns};

    nominations_begin(store->nominations, &(struct nominations_begin){
                                              .now_ns = moment->now_ns,
                                              .lasts_ns = store->options.volume_bind_ms * 1000000,
                                              .comes = finds_room,
                                              .data = &look,
                                          });
}

void store_stop_coming(struct store *store, const char *uid)
{
    nominations_stop(store->nominations, uid);
}
