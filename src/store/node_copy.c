/* SPDX-License-Identifier: Apache-2.0 */
#include "store/node_copy.h"

#include "store/node_walk.h"
#include "quota/holding.h"
#include "quota/share_amounts.h"

#include <gpuledger/fragmentation.h>
#include <gpuledger/mig.h>
#include <stdlib.h>
#include <string.h>

/* All else is the arena's. */
static void clear_node(gpointer data)
{
    struct node_copy *node = data;

    for (int32_t i = 0; i < node->n_cards; i++)
        mig_profiles_unref(node->cards[i].mig);
    for (uint32_t i = 0; i < node->n_pods; i++)
        pod_facts_unref(node->pods[i].facts);
}

static int compare_pods(const void *a, const void *b)
{
    const struct pod_copy *left = a, *right = b;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

/* Thousands of short pieces a view: of the memory that a reader has used before, not of the heap, which
 * may have to be put in order first. */
static void *keep(struct json_arena *arena, const void *from, size_t size)
{
    return size > 0 ? memcpy(json_arena_alloc(arena, size), from, size) : NULL;
}

static char *keep_text(struct json_arena *arena, const char *text)
{
    return text ? keep(arena, text, strlen(text) + 1) : NULL;
}

static int64_t measure_gpus(const struct node *node, const struct share *share, const void *data)
{
    return share_gpus(node, share);
}

/* Without facts. */
static struct pod_copy copy_pod(struct json_arena *arena, const struct allocation *allocation)
{
    const struct node *node = allocation->node;
    struct pod_copy copy = {
        .uid = keep_text(arena, allocation->uid),
        .ns = keep_text(arena, allocation->ns),
        .name = keep_text(arena, allocation->name),
        .dialect = allocation->dialect,
        .state = allocation->state,
        .assigned = allocation->assigned,
        .waiting = allocation->waiting,
        .since_ns = allocation->assume_time_ns,
        .gpus = holding_peak(
            &(struct holding_query){node, allocation->shares, allocation->n_shares, measure_gpus}),
        .n_shares = allocation->n_shares,
        .shares = json_arena_alloc(arena, allocation->n_shares * sizeof(struct share_copy)),
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
            .device = keep_text(arena, share->device),
        };
    }
    return copy;
}

static struct node_copy copy_node(struct json_arena *arena, const struct node *node, bool with_pods,
                                  const struct demand *demand)
{
    struct node_copy copy = {
        .name = keep_text(arena, node->name),
        .n_dialects = node->n_dialects,
        .present = node->present,
        .paused = node->paused,
        .cordoned = node->cordoned,
        .memory_unit = node->memory_unit,
        .unplaced_memory = node->unplaced_memory,
        .fragmented = fragmentation_of(node, demand),
        .n_cards = node->n_cards,
        .n_pools = node->n_pools,
        .n_pods = with_pods ? node->allocations->len : 0,
        .cards = keep(arena, node->cards, (size_t)node->n_cards * sizeof(struct card)),
        .pools = keep(arena, node->pools, (size_t)node->n_pools * sizeof(struct pool)),
    };

    memcpy(copy.dialects, node->dialects, sizeof copy.dialects);
    for (int32_t i = 0; i < copy.n_cards; i++) {
        copy.cards[i].uuid = keep_text(arena, node->cards[i].uuid);
        copy.cards[i].model = keep_text(arena, node->cards[i].model);
        copy.cards[i].mode = keep_text(arena, node->cards[i].mode);
        copy.cards[i].mig = mig_profiles_ref(node->cards[i].mig);
    }
    for (int32_t i = 0; i < copy.n_pools; i++) {
        copy.pools[i].resource = keep_text(arena, node->pools[i].resource);
        copy.pools[i].model = keep_text(arena, node->pools[i].model);
    }
    copy.pods = json_arena_alloc(arena, copy.n_pods * sizeof *copy.pods);
    for (uint32_t i = 0; i < copy.n_pods; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        copy.pods[i] = copy_pod(arena, allocation);
        copy.pods[i].facts = pod_facts_ref(allocation->facts);
    }
    return copy;
}

struct node_reader {
    struct node_walk walk;
    char *name; /* NULL: all */
    bool with_pods;
    bool ended;
    struct demand *demand;
    struct json_arena *arena; /* of what the copies hold */
    GArray *copies;           /* struct node_copy */
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
    reader->arena = json_arena_new();
    reader->demand = store_demand_copy(store);
    return reader;
}

void node_reader_free(struct node_reader *reader)
{
    node_walk_clear(&reader->walk);
    g_free(reader->name);
    demand_free(reader->demand);
    g_array_unref(reader->copies);
    json_arena_free(reader->arena);
    g_free(reader);
}

static void read_node(const struct node *node, void *data)
{
    struct node_reader *reader = data;

    if (!reader->name && node->n_cards == 0 && node->n_pools == 0 && node->allocations->len == 0)
        return;
    const struct node_copy copy = copy_node(reader->arena, node, reader->with_pods, reader->demand);
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
    json_arena_clear(reader->arena);
    if (reader->name && !reader->ended)
        read_one(reader);
    while (!reader->ended && reader->copies->len == 0)
        reader->ended = !node_walk_step(&reader->walk, read_node, reader);
    for (guint i = 0; i < reader->copies->len; i++) {
        const struct node_copy *node = &g_array_index(reader->copies, struct node_copy, i);
        if (node->n_pods > 1)
            qsort(node->pods, node->n_pods, sizeof *node->pods, compare_pods);
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
    struct json_arena *arena;
    struct pod_copy *pod;
    const char *node; /* where it is; NULL: not found yet */
};

static void match_pods(const struct node *node, void *data)
{
    struct pod_search *search = data;

    for (guint i = 0; !search->node && i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (!g_str_equal(allocation->name, search->name) || !g_str_equal(allocation->ns, search->ns))
            continue;
        *search->pod = copy_pod(search->arena, allocation);
        search->node = keep_text(search->arena, node->name);
    }
}

bool pod_copy_find(struct store *store, struct json_arena *arena, const char *ns, const char *name,
                   struct pod_copy *ret_pod, const char **ret_node)
{
    struct pod_search search = {ns, name, arena, ret_pod, NULL};
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
