/* SPDX-License-Identifier: Apache-2.0 */
#include "store/node_copy.h"

#include "store/node_walk.h"

#include <gpuledger/fragmentation.h>
#include <gpuledger/mig.h>
#include <string.h>

void pod_copy_clear(struct pod_copy *pod)
{
    g_free(pod->uid);
    g_free(pod->ns);
    g_free(pod->name);
    for (uint32_t i = 0; i < pod->n_shares; i++)
        g_free(pod->shares[i].device);
    g_free(pod->shares);
    pod_facts_unref(pod->facts);
}

static void clear_pod(gpointer data)
{
    pod_copy_clear(data);
}

static void clear_node(gpointer data)
{
    struct node_copy *node = data;

    g_free(node->name);
    for (int32_t i = 0; i < node->n_cards; i++) {
        g_free(node->cards[i].uuid);
        g_free(node->cards[i].model);
        g_free(node->cards[i].mode);
        mig_profiles_unref(node->cards[i].mig);
    }
    g_free(node->cards);
    for (int32_t i = 0; i < node->n_pools; i++) {
        g_free(node->pools[i].resource);
        g_free(node->pools[i].model);
    }
    g_free(node->pools);
    g_array_unref(node->pods);
}

static gint compare_pods(gconstpointer a, gconstpointer b)
{
    const struct pod_copy *left = a, *right = b;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

static struct pod_copy copy_pod(const struct allocation *allocation)
{
    const struct node *node = allocation->node;
    struct pod_copy copy = {
        .uid = g_strdup(allocation->uid),
        .ns = g_strdup(allocation->ns),
        .name = g_strdup(allocation->name),
        .dialect = allocation->dialect,
        .state = allocation->state,
        .assigned = allocation->assigned,
        .waiting = allocation->waiting,
        .since_ns = allocation->assume_time_ns,
        .n_shares = allocation->n_shares,
        .shares = g_new0(struct share_copy, allocation->n_shares),
        .facts = pod_facts_ref(allocation->facts),
    };

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        copy.shares[i] = (struct share_copy){
            .card = share->card,
            .container = share->container,
            .core = share->core,
            .memory = card_bytes(node, node_share_card(node, share), share->memory),
            .place = share->place,
            .devices = share->devices,
            .device = g_strdup(share->device),
        };
    }
    return copy;
}

static struct node_copy copy_node(const struct node *node, bool with_pods,
                                  const struct demand *demand)
{
    struct node_copy copy = {
        .name = g_strdup(node->name),
        .n_dialects = node->n_dialects,
        .present = node->present,
        .paused = node->paused,
        .cordoned = node->cordoned,
        .memory_unit = node->memory_unit,
        .unplaced_memory = node->unplaced_memory,
        .fragmented = fragmentation_of(node, demand),
        .n_cards = node->n_cards,
        .n_pools = node->n_pools,
        .cards = g_memdup2(node->cards, (gsize)node->n_cards * sizeof(struct card)),
        .pools = g_memdup2(node->pools, (gsize)node->n_pools * sizeof(struct pool)),
        .pods = g_array_new(FALSE, FALSE, sizeof(struct pod_copy)),
    };

    memcpy(copy.dialects, node->dialects, sizeof copy.dialects);
    for (int32_t i = 0; i < copy.n_cards; i++) {
        copy.cards[i].uuid = g_strdup(node->cards[i].uuid);
        copy.cards[i].model = g_strdup(node->cards[i].model);
        copy.cards[i].mode = g_strdup(node->cards[i].mode);
        copy.cards[i].mig = mig_profiles_ref(node->cards[i].mig);
    }
    for (int32_t i = 0; i < copy.n_pools; i++) {
        copy.pools[i].resource = g_strdup(node->pools[i].resource);
        copy.pools[i].model = g_strdup(node->pools[i].model);
    }
    g_array_set_clear_func(copy.pods, clear_pod);
    for (guint i = 0; with_pods && i < node->allocations->len; i++) {
        struct pod_copy pod = copy_pod(g_ptr_array_index(node->allocations, i));
        g_array_append_val(copy.pods, pod);
    }
    return copy;
}

struct node_reader {
    struct node_walk walk;
    char *name; /* NULL: all */
    bool with_pods;
    bool ended;
    struct demand *demand;
    GArray *copies; /* struct node_copy */
};

struct node_reader *node_reader_new_by(struct store *store, const char *name, bool with_pods,
                                       const char *who)
{
    struct node_reader *reader = g_new0(struct node_reader, 1);

    node_walk_init_by(&reader->walk, store, who);
    reader->name = g_strdup(name);
    reader->with_pods = with_pods;
    reader->copies = g_array_new(FALSE, FALSE, sizeof(struct node_copy));
    g_array_set_clear_func(reader->copies, clear_node);
    reader->demand = store_demand_copy(store);
    return reader;
}

void node_reader_free(struct node_reader *reader)
{
    node_walk_clear(&reader->walk);
    g_free(reader->name);
    demand_free(reader->demand);
    g_array_unref(reader->copies);
    g_free(reader);
}

static void read_node(const struct node *node, void *data)
{
    struct node_reader *reader = data;

    if (!reader->name && node->n_cards == 0 && node->n_pools == 0 && node->allocations->len == 0)
        return;
    const struct node_copy copy = copy_node(node, reader->with_pods, reader->demand);
    g_array_append_val(reader->copies, copy);
}

static void read_one(struct node_reader *reader)
{
    struct store *store = reader->walk.store;
    const struct node *node = ledger_node(store_lock(store), reader->name);

    if (node && (node->present || node->allocations->len > 0)) /* not just by a ConfigMap */
        read_node(node, reader);
    store_unlock(store);
    reader->ended = true;
}

const GArray *node_reader_next(struct node_reader *reader)
{
    g_array_set_size(reader->copies, 0);
    if (reader->name && !reader->ended)
        read_one(reader);
    while (!reader->ended && reader->copies->len == 0)
        reader->ended = !node_walk_step(&reader->walk, read_node, reader);
    for (guint i = 0; i < reader->copies->len; i++) {
        g_array_sort(g_array_index(reader->copies, struct node_copy, i).pods, compare_pods);
    }
    return reader->copies->len > 0 ? reader->copies : NULL;
}

void node_reader_begin_after(struct node_reader *reader, const char *name)
{
    node_walk_begin_after(&reader->walk, name);
}

bool node_reader_foresees(const struct node_reader *reader)
{
    return demand_version(reader->demand) > 0;
}

struct pod_search {
    const char *ns, *name;
    struct pod_copy *pod;
    char *node; /* where it is; NULL: not found yet */
};

static void match_pods(const struct node *node, void *data)
{
    struct pod_search *search = data;

    for (guint i = 0; !search->node && i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (!g_str_equal(allocation->name, search->name) || !g_str_equal(allocation->ns, search->ns))
            continue;
        *search->pod = copy_pod(allocation);
        search->node = g_strdup(node->name);
    }
}

bool pod_copy_find(struct store *store, const char *ns, const char *name, struct pod_copy *ret_pod,
                   char **ret_node)
{
    struct pod_search search = {ns, name, ret_pod, NULL};
    struct node_walk walk;

    node_walk_init(&walk, store);
    while (!search.node && node_walk_step(&walk, match_pods, &search))
        continue;
    node_walk_clear(&walk);
    *ret_node = search.node;
    return search.node != NULL;
}

bool share_copy_is_on(const struct node_copy *node, const struct share_copy *share,
                      const struct card *card)
{
    if (share->device)
        return false;
    if (card)
        return node->n_cards == 1 || share->card == card->index;
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (share_copy_is_on(node, share, &node->cards[i]))
            return false;
    }
    return true;
}

int64_t card_copy_free(const struct node_copy *node, const struct card *card)
{
    return MAX(card->memory - card->memory_used - node->unplaced_memory, 0);
}
