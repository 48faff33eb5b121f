/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the pods that wait could come, if others ended: for the rest elastic quotas keep nothing. A pod
 * could where kube-scheduler would ask about it, and some node would take it if nobody else were there; one of a
 * group only if that has as many pods as it needs.
 *
 * Of each that could, one node is known; it is looked at again when that node has become another one, and who
 * could not when any has. A tenant may have thousands of pods that are all different, so the rest is left to
 * the next event of a Node: until then what was found last counts.
 */
#include "policy/effort/work_meter.h"
#include "queue/reservation.h"
#include "store/store_state.h"

#include <string.h>

/* What is looked at in one event: about a node each; and what it takes to see one empty. */
#define NODES_MAX 20000
#define NODES_EMPTY 8
/* Nodes of different hardware that are looked at for a pod; one that fits none of so many is taken for one that
 * could come, and so is one of which the work (policy/effort/work_meter.h) leaves it open. */
#define KINDS_MAX 32

/* What an event may take. */
struct looking {
    int nodes;
    struct work_meter work; /* of a call, for searches and for what pods have to be compared with */
};

static void begin(struct looking *looking)
{
    looking->nodes = NODES_MAX;
    work_begin(&looking->work);
}

/* --- what a node is --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15) ^ (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text ? g_str_hash(text) + UINT64_C(1) : 0);
}

/* The same of nodes that, empty, take the same pods, but for whom kube-scheduler lets go there. */
static uint64_t hardware_of(const struct node *node)
{
    uint64_t hash = mix(1, (uint64_t)node->memory_unit);

    for (int32_t i = 0; i < node->n_dialects; i++)
        hash = mix(hash, (uintptr_t)node->dialects[i]);
    hash = mix(mix(hash, (uintptr_t)node->dialect), (uintptr_t)node->policy);
    hash = mix(mix(mix(hash, (uint64_t)node->compute), (uint64_t)node->driver), node->isolation);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        hash = mix(mix(mix(hash, card->kind), (uint64_t)card->memory), (uint64_t)card->core);
        hash = mix(mix(mix_text(hash, card->model), (uint64_t)card->slots), (uint64_t)card->parts);
        hash = mix(mix_text(hash, card->mode), card_is_open(card));
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        hash = mix(mix_text(hash, pool->resource), (uint64_t)pool->capacity);
        hash = mix(mix_text(hash, pool->model), (uint64_t)pool->at_once);
    }
    return hash;
}

static uint64_t shape_of(const struct node *node)
{
    const struct node_traits *traits = node->traits;
    uint64_t hash = mix(hardware_of(node), node->present + 2 * node->cordoned);

    hash = mix(mix(hash, (uint64_t)node->host.cpu), (uint64_t)node->host.memory);
    for (size_t i = 0; traits && i < traits->labels.n; i++)
        hash = mix_text(mix_text(hash, traits->labels.items[i].key), traits->labels.items[i].value);
    for (uint32_t i = 0; traits && i < traits->n_taints; i++) {
        const struct taint_view *taint = &traits->taints[i];
        hash = mix_text(mix_text(mix_text(hash, taint->key), taint->value), taint->effect);
    }
    return hash;
}

/* --- whether a pod could be there ------------------------------------------------------------- */

/* Nobody places it. */
static bool is_barred(const struct store *store, const char *uid, const struct pending *pending,
                      const struct pod_rules *rules)
{
    const unsigned gates = 1U << OVERLOOKED_SCHEDULING_GATES;

    return pending->terminating || !rules || !rules->constraints ||
           rules->constraints->overlooked & gates || gangs_are_short(store->gangs, uid);
}

/* Whether there is work left to compare one node with what the pod says. */
static bool may_compare(struct looking *looking, const struct pod_rules *rules)
{
    return work_afford(&looking->work, rules->size / WORK_VALUES);
}

static bool is_offered(const struct node *node, const struct pod_rules *rules)
{
    const struct host *asked = &rules->host, *all = &node->host;

    return node->present && node->dialect &&
           constraints_check(rules->constraints, node) == BARRIER_NONE &&
           (all->cpu == 0 || asked->cpu <= all->cpu) &&
           (all->memory == 0 || asked->memory <= all->memory);
}

static bool could_hold(const struct store *store, const struct node *node,
                       const struct pending *pending, struct looking *looking)
{
    const struct admission_query admission = {
        .request = pending->request,
        .policy = store->options.policy,
        .options = &store->options.dialects,
        .now_ns = store_clock(store).now_ns,
        .patience_ns = store->options.patience_ms * 1000000,
        .demand = store->demand,
        .work = &looking->work,
    };

    looking->nodes -= NODES_EMPTY;
    return reservation_could_hold(node, &admission);
}

/* NULL: there is none. */
static const struct node *find_node(const struct store *store, const struct pending *pending,
                                    const struct pod_rules *rules, struct looking *looking)
{
    const GPtrArray *nodes = ledger_nodes(store->ledger);
    uint64_t tried[KINDS_MAX];
    guint n = 0;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        looking->nodes--;
        if (!node->present || !node->dialect)
            continue;
        if (!may_compare(looking, rules))
            return node;
        if (!is_offered(node, rules))
            continue;
        const uint64_t kind = hardware_of(node);
        guint at = 0;
        while (at < n && tried[at] != kind)
            at++;
        if (at < n)
            continue;
        if (n == KINDS_MAX || could_hold(store, node, pending, looking))
            return node;
        tried[n++] = kind;
    }
    return NULL;
}

/* --- what becomes of it ----------------------------------------------------------------------- */

static void set_hope(struct store *store, const char *uid, struct pending *pending,
                     const struct node *node)
{
    pending->unlooked = false;
    if (!node || g_strcmp0(pending->could_be_on, node->name) != 0) {
        g_free(pending->could_be_on);
        pending->could_be_on = node ? g_strdup(node->name) : NULL;
    }
    if (elastic_quotas_hope(quotas_elastic(store->quotas), uid, node != NULL))
        store_note_quotas(store); /* what was kept for it may be lent */
}

static void look_for(struct store *store, const char *uid, struct pending *pending,
                     struct looking *looking)
{
    const struct pod_rules *rules = store_rules(store, uid);

    set_hope(store, uid, pending,
             is_barred(store, uid, pending, rules) ? NULL
                                                   : find_node(store, pending, rules, looking));
}

void store_hope_pod(struct store *store, const char *uid)
{
    struct pending *pending = g_hash_table_lookup(store->pending, uid);
    struct looking looking;

    begin(&looking);
    if (store->options.elastic_quotas && pending)
        look_for(store, uid, pending, &looking);
}

void store_hope_groups(struct store *store)
{
    g_auto(GStrv) uids = gangs_take_shifted(store->gangs);
    struct looking looking;

    begin(&looking);
    for (char **uid = uids; store->options.elastic_quotas && *uid; uid++) {
        struct pending *pending = g_hash_table_lookup(store->pending, *uid);
        if (pending && looking.nodes > 0)
            look_for(store, *uid, pending, &looking);
        else if (pending)
            pending->unlooked = store->any_unlooked = true;
    }
}

/* Of whom it is not known any more whether they could. */
static void look_for_others(struct store *store, struct looking *looking)
{
    GHashTableIter iter;
    gpointer uid, value;

    store->any_unlooked = false;
    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        struct pending *pending = value;
        if (pending->unlooked && looking->nodes > 0)
            look_for(store, uid, pending, looking);
        store->any_unlooked |= pending->unlooked;
    }
}

/* Whether the node has become another one; NULL: it is gone. */
static bool note_shape(struct store *store, const char *name, const struct node *node)
{
    const uint64_t *known = g_hash_table_lookup(store->shapes, name);
    const uint64_t shape = node && node->present ? shape_of(node) : 0;

    if (known ? *known == shape : shape == 0)
        return false;
    if (shape == 0)
        g_hash_table_remove(store->shapes, name);
    else
        g_hash_table_replace(store->shapes, g_strdup(name), g_memdup2(&shape, sizeof shape));
    return true;
}

/* Those that could be there, and those that could nowhere. */
static void look_there(struct store *store, const char *name, const struct node *node,
                       struct looking *looking)
{
    GHashTableIter iter;
    gpointer uid, value;

    g_hash_table_iter_init(&iter, store->pending);
    while (g_hash_table_iter_next(&iter, &uid, &value)) {
        struct pending *pending = value;
        const struct pod_rules *rules = store_rules(store, uid);
        const bool there = g_strcmp0(pending->could_be_on, name) == 0;
        if ((pending->could_be_on && !there) || is_barred(store, uid, pending, rules))
            continue;
        const bool known = looking->nodes > 0 && may_compare(looking, rules);
        const bool offered = node && (!known || is_offered(node, rules));
        if (offered && known && could_hold(store, node, pending, looking))
            set_hope(store, uid, pending, node);
        else
            pending->unlooked |= there || (offered && !known);
        store->any_unlooked |= pending->unlooked;
    }
}

void store_hope_node(struct store *store, const char *name)
{
    const struct node *node = ledger_node(store->ledger, name);
    struct looking looking;

    if (!store->options.elastic_quotas)
        return;
    begin(&looking);
    if (note_shape(store, name, node))
        look_there(store, name, node, &looking);
    if (store->any_unlooked)
        look_for_others(store, &looking);
}
