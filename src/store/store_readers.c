/* SPDX-License-Identifier: Apache-2.0 */
/* The whole store for who decides nothing, a few nodes and pods at a time: a copy, and what an observer
 * could not know. */
#include "base/log.h"
#include "core/ledger.h"
#include "core/node.h"
#include "policy/demand.h"
#include "policy/value_model.h"
#include "store/images/ledger_reader.h"
#include "store/pods/pods_state.h"
#include "store/store_state.h"

#include <string.h>

#define COPIED_AT_ONCE 4       /* pods that wait */
#define COUNTED_AT_ONCE 256    /* pods, for quotas */
#define COUNT_HOLDS_MAX 100000 /* others may change pods faster than they are counted */
#define TOLD_AT_ONCE 64   /* holds of the lock, by store_tell_ledger */

/* --- a copy --------------------------------------------------------------------------------- */

struct group_copy {
    struct gangs *gangs, *from;
};

static void copy_group(const char *ns, const char *group, void *data)
{
    const struct group_copy *copy = data;

    gangs_copy_pods(copy->gangs, copy->from, ns, group);
}

/* What is not kept by node, but for the pods that wait. */
static void copy_common(struct store *copy, struct store *store)
{
    store_lock(store);
    memcpy(copy->synced, store->synced, sizeof copy->synced);
    quotas_free(copy->quotas);
    copy->quotas = quotas_dup(store->quotas);
    demand_free(copy->demand);
    copy->demand = demand_dup(store->demand);
    arrivals_copy_common(copy->arrivals, store->arrivals);
    nominations_copy_rooms(copy->nominations, store->nominations);
    nominations_copy_claims(copy->nominations, store->nominations);
    hints_copy_kept(copy->hints, store->hints);
    gangs_copy_rooms(copy->gangs, store->gangs);
    nominations_each_group(store->nominations, copy_group,
                           &(struct group_copy){copy->gangs, store->gangs});
    store_unlock(store);
}

/* Under the lock. It may wait no longer. */
static void copy_pending_pod(struct store *copy, struct store *store, const char *uid)
{
    const struct pending *known = g_hash_table_lookup(store->pending, uid);

    if (!known)
        return;
    struct pending *pending = g_new0(struct pending, 1);
    pending->request = request_dup(known->request);
    pending->priority = known->priority;
    pending->controller = g_strdup(known->controller);
    pending->created = g_strdup(known->created);
    pending->nominated_node = g_strdup(known->nominated_node);
    pending->terminating = known->terminating;
    g_hash_table_insert(copy->pending, g_strdup(uid), pending);
    arrivals_copy(copy->arrivals, store->arrivals, uid, pending->request);
    nominations_copy(copy->nominations, store->nominations, uid, pending->request);
    quotas_copy_pod(copy->quotas, store->quotas, uid);
    const bool asked = store->options.gangs || store->options.elastic_quotas;
    const struct pod_rules *rules = asked ? store_rules(store, uid) : NULL;
    if (rules) /* for who looks where a group would go, or who gives back for it */
        g_hash_table_insert(copy->rules, g_strdup(uid), pod_rules_dup(rules));
}

static bool note_uid(const struct arrivals_row *row, void *data)
{
    g_ptr_array_add(data, g_strdup(row->uid));
    return true;
}

static void copy_part(const struct part *part, void *self, struct store *store)
{
    struct part_cursor at = PART_BEGIN;
    bool more;

    do {
        store_lock_again(store);
        more = part->copy(self, store_part(store, part), &at);
        store_unlock(store);
    } while (more);
}

static void copy_parts(struct store *copy, struct store *store)
{
    for (size_t i = 0; parts_table[i]; i++) {
        void *self = copy->parts.selves[i];
        if (self && parts_table[i]->copy)
            copy_part(parts_table[i], self, store);
    }
}

static void forget_copied(struct store *store, const char *uid)
{
    store_forget_pending(store, uid);
    elastic_quotas_leave(quotas_elastic(store->quotas), uid);
}

/* By way of a store that has only these few: tables of the copy grow while nobody is locked. */
static void copy_pending(struct store *copy, struct store *store)
{
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(store) few = store_new(&copy->options);

    store_arrivals_each(store, note_uid, uids);
    for (guint from = 0; from < uids->len; from += COPIED_AT_ONCE) {
        const guint to = MIN(from + COPIED_AT_ONCE, uids->len);
        store_lock_again(store);
        for (guint i = from; i < to; i++)
            copy_pending_pod(few, store, uids->pdata[i]);
        store_unlock(store);
        for (guint i = from; i < to; i++) {
            copy_pending_pod(copy, few, uids->pdata[i]);
            forget_copied(few, uids->pdata[i]);
        }
    }
}

struct copying {
    struct store *copy, *from;
    struct quotas *some; /* what quotas know of the nodes of one portion */
};

/* Under the lock: what the image does not have. */
static void copy_mark(const struct node *node, void *data)
{
    const struct copying *copying = data;

    quotas_copy_node(copying->some, copying->from->quotas, node);
    store_note_policy(copying->copy, node->name, node->policy);
}

static void copy_nodes(struct store *copy, struct store *store)
{
    g_autoptr(node_images) images = node_images_new(store, true);
    struct copying copying = {copy, store, quotas_new()};
    const GPtrArray *some;

    while ((some = node_images_next(images, copy_mark, &copying))) {
        for (guint i = 0; i < some->len; i++) {
            const struct node *node = node_image_node(g_ptr_array_index(some, i));
            quotas_copy_node(copy->quotas, copying.some, node);
            ledger_copy_node(copy->ledger, node);
        }
        quotas_free(copying.some);
        copying.some = quotas_new();
    }
    quotas_free(copying.some);
}

struct store *store_copy(struct store *store)
{
    store_lock(store);
    struct store_options options = store->options;
    store_unlock(store);
    options.silent = true;
    struct store *copy = store_new(&options);
    copy_common(copy, store);
    copy_parts(copy, store);
    copy_pending(copy, store);
    copy_nodes(copy, store);
    return copy;
}

/* --- what is told --------------------------------------------------------------------------- */

bool store_tell_ledger(struct store *store, struct ledger_reader *reader)
{
    const GArray *nodes = NULL;

    for (int i = 0; i < TOLD_AT_ONCE && (nodes = ledger_reader_next(reader)); i++) {
        for (guint j = 0; j < nodes->len; j++) {
            const struct held_node *held = &g_array_index(nodes, struct held_node, j);
            observer_tell(store->observer,
                          &(struct observation){OBSERVED_LEDGER, held->number, .held = held});
        }
    }
    return nodes != NULL;
}

/* --- what is expected ------------------------------------------------------------------------- */

/* Under the lock: what was worked out, for decisions or for readers before; NULL: it is to be. */
static struct demand *known_demand(struct store *store)
{
    if (demand_is_settled(store->demand, store->ledger) ||
        (store->apart && demand_value_model(store->demand)))
        return demand_dup_outcome(store->demand);
    if (store->told && demand_follows(store->told, store->demand, store->ledger))
        return demand_dup_outcome(store->told);
    return NULL;
}

static void add_supply(const struct node *node, void *data)
{
    supplies_add(data, node);
}

/* Mostly a decision has worked it out; else that costs as much as there are cards, once for all readers,
 * and changes nothing for decisions. If nodes come or go meanwhile, the next reader does it again. */
struct demand *store_demand_copy(struct store *store)
{
    store_lock(store);
    struct demand *copy = known_demand(store);
    struct demand *told = copy ? NULL : demand_dup(store->demand);
    store_unlock(store);
    if (copy)
        return copy;
    g_autoptr(supplies) supplies = supplies_new(true);
    node_walk_all(store, add_supply, supplies);
    demand_settle_for(told, supplies);
    copy = demand_dup_outcome(told);
    store_lock(store);
    if (demand_follows(told, store->demand, store->ledger)) {
        struct demand *old = store->told;
        store->told = told;
        told = old;
    }
    store_unlock(store);
    demand_free(told);
    return copy;
}

void store_count_quotas(struct store *store)
{
    bool all = false;

    for (int i = 0; i < COUNT_HOLDS_MAX && !all; i++) {
        struct ledger *ledger = store_lock_again(store);
        all = quotas_catch_up(store->quotas, ledger, COUNTED_AT_ONCE);
        store_unlock(store);
    }
}

/* --- what every store checks of itself ------------------------------------------------------- */

struct verification {
    const struct ledger *ledger;
    struct quotas *quotas;
    bool sound;
};

/* Under the lock. */
static void verify_held(const struct node *node, void *data)
{
    struct verification *verification = data;

    verification->sound = ledger_holds(verification->ledger, node) && verification->sound;
    quotas_verify_node(verification->quotas, verification->ledger, node);
}

static bool verify_quotas(struct store *store)
{
    store_lock(store);
    const bool sound = quotas_verify_end(store->quotas);
    const guint n_wrong = quotas_n_wrong(store->quotas);
    store_unlock(store);
    if (!sound)
        log_event(LOG_LEVEL_ERROR,
                  "sums of quotas are wrong, and pods of their namespaces are refused: restart "
                  "gpuledger and report this",
                  LOG_NUMBER("namespaces", n_wrong));
    return sound;
}

void store_verify(struct store *store)
{
    g_autoptr(node_images) images = node_images_new(store, false);
    struct verification verification = {store->ledger, store->quotas, true};
    const GPtrArray *some;

    store_lock(store);
    quotas_verify_begin(store->quotas);
    store_unlock(store);
    while ((some = node_images_next(images, verify_held, &verification))) {
        for (guint i = 0; i < some->len; i++) {
            const struct node *node = node_image_node(g_ptr_array_index(some, i));
            verification.sound = node_verify(node, node_cpu_pods(node), NULL) && verification.sound;
        }
    }
    verification.sound = verify_quotas(store) && verification.sound;
    atomic_store(&store->unsound, !verification.sound);
}

bool store_is_sound(const struct store *store)
{
    return !atomic_load(&store->unsound);
}
