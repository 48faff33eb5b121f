/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of shapes i, of which pods come n[i] times, for k[i] cards each of which they want a part of:
 *
 *   a[i] = n[i] * k[i] * wanted[i] / PART_WHOLE * size     what they ask for (gpu_of), in cards
 *   b[i] = k[i] * weight[i] * size                         what one is worth (worth_of), in cards
 *   cpu.mean     = sum of n[i] * cpu[i] / W, with W = sum of n[i] * b[i], over i that some node has the
 *                  CPU and memory for
 *   cpu.variance = sum of n[i] * (cpu[i] - cpu.mean * b[i])^2 / W
 *   memory, the same of the node's memory, of which not all pods of a shape ask for as much
 *   q[i] = a[i] / sum of a * cards     the same once all cards are asked for (cards_wanted)
 *   share  = sum of q[i] / cards that do for i, over i for which not all do, at most 1
 *   want   = q[i] / places in empty nodes for pods of i, at most 1 (groups, k[i] > 1)
 *
 *   wanted   the larger part of a card, memory or compute, in thousandths; weight, of that part, in
 *            cards (cutting.c); size, of one card or device, in cards: all three of that kind which
 *            fits i and has most cards (set_homes)
 *   cpu      of a pod, in thousandths of a core
 */
#include "policy/value_model_making.h"

#include "core/bytes.h"
#include "core/ledger.h"

#include <stdlib.h>

/* So many nodes ahead, what is read of each is fetched. */
#define PREFETCHED 8

/* The most frequent shapes that make up so much of the pods are the typical ones. */
#define TYPICAL_PART 0.95

/* --- nodes that are alike ------------------------------------------------------------------- */

static guint supply_hash(gconstpointer key)
{
    const struct node *node = key;
    const uint64_t hardware = node_own(node)->hardware ^ (uint64_t)node->host.cpu << 40;

    return (guint)(hardware ^ hardware >> 32);
}

static gboolean are_alike(gconstpointer a, gconstpointer b)
{
    const struct node *one = a, *other = b;

    return node_own(one)->hardware == node_own(other)->hardware && one->host.cpu == other->host.cpu;
}

static void prefetch(const GPtrArray *nodes, guint at)
{
    if (at >= nodes->len)
        return;
    const struct node *node = nodes->pdata[at];
    __builtin_prefetch(&node_own(node)->hardware);
    __builtin_prefetch(&node->present);
    __builtin_prefetch(&node->host);
}

static int64_t most_of(int64_t most, int64_t amount)
{
    return MAX(most, amount > 0 ? amount : INT64_MAX);
}

struct supplies *supplies_new(bool own)
{
    struct supplies *supplies = g_new0(struct supplies, 1);

    supplies->all = g_array_new(FALSE, FALSE, sizeof(struct supply));
    supplies->places = g_hash_table_new(supply_hash, are_alike);
    supplies->own = own ? ledger_new() : NULL;
    return supplies;
}

void supplies_free(struct supplies *supplies)
{
    g_array_unref(supplies->all);
    g_hash_table_unref(supplies->places);
    ledger_free(supplies->own);
    g_free(supplies);
}

/* Clusters have few kinds of nodes: of thousands only this is looked at one by one. */
void supplies_add(struct supplies *supplies, const struct node *node)
{
    struct supply *supply = supplies->all->len > 0
                                ? &g_array_index(supplies->all, struct supply, supplies->last)
                                : NULL;
    gpointer place;

    supplies->hardware += node_own(node)->hardware;
    if (!node->present)
        return;
    supplies->cpu_most = most_of(supplies->cpu_most, node->host.cpu);
    supplies->memory_most = most_of(supplies->memory_most, node->host.memory);
    if (!supply || !are_alike(supply->node, node)) {
        if (!g_hash_table_lookup_extended(supplies->places, node, NULL, &place)) {
            place = GUINT_TO_POINTER(supplies->all->len);
            if (supplies->own)
                node = ledger_copy_node(supplies->own, node);
            g_array_append_val(supplies->all, ((struct supply){node, 0}));
            g_hash_table_insert(supplies->places, (gpointer)node, place);
        }
        supplies->last = GPOINTER_TO_UINT(place);
        supply = &g_array_index(supplies->all, struct supply, supplies->last);
    }
    supply->n++;
}

uint64_t supplies_hardware(const struct supplies *supplies)
{
    return supplies->hardware;
}

static struct supplies *collect_supplies(const struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    struct supplies *supplies = supplies_new(false);

    for (guint i = 0; i < nodes->len; i++) {
        prefetch(nodes, i + PREFETCHED);
        supplies_add(supplies, nodes->pdata[i]);
    }
    return supplies;
}

/* --- kinds ---------------------------------------------------------------------------------- */

static struct draft *find_draft(struct making *making, uint64_t key)
{
    for (size_t i = 0; i < making->n_drafts; i++) {
        if (making->drafts[i].kind.key == key)
            return &making->drafts[i];
    }
    return NULL;
}

static struct draft *add_draft(struct making *making, const struct draft *draft)
{
    if (making->n_drafts == KINDS_MAX)
        return NULL;
    making->drafts[making->n_drafts] = *draft;
    return &making->drafts[making->n_drafts++];
}

static void collect_pools(struct making *making, const struct supply *supply)
{
    const struct node *node = supply->node;

    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const double size = pool_device_size(pool);
        struct draft *draft = find_draft(making, pool->kind);
        if (!draft)
            draft = add_draft(making, &(struct draft){.kind = {.key = pool->kind, .size = size},
                                                      .node = node,
                                                      .pool = pool});
        if (draft)
            draft->kind.cards += supply->n * pool->capacity * size;
    }
}

static void collect_kinds(struct making *making)
{
    struct draft *draft = NULL;

    for (guint i = 0; i < making->supplies->all->len; i++) {
        const struct supply *supply = &g_array_index(making->supplies->all, struct supply, i);
        const struct node *node = supply->node;
        for (int32_t j = 0; j < node->n_cards; j++) {
            const struct card *card = &node->cards[j];
            if (!draft || draft->kind.key != card->kind)
                draft = find_draft(making, card->kind);
            if (!draft)
                draft = add_draft(making, &(struct draft){.kind = {.key = card->kind, .size = 1},
                                                          .node = node,
                                                          .card = card});
            if (draft)
                draft->kind.cards += supply->n;
        }
        collect_pools(making, supply);
    }
}

/* --- the whole ------------------------------------------------------------------------------ */

static gint compare_counts(gconstpointer a, gconstpointer b)
{
    const struct shape *const *left = a, *const *right = b;

    if ((*left)->count != (*right)->count)
        return (*left)->count > (*right)->count ? -1 : 1;
    return *left < *right ? -1 : *left > *right;
}

static void mark_typical(struct making *making)
{
    g_autofree const struct shape **order = g_new(const struct shape *, making->n);
    double total = 0, count = 0;

    for (size_t i = 0; i < making->n; i++) {
        order[i] = &making->shapes[i];
        total += making->shapes[i].count;
    }
    qsort(order, making->n, sizeof *order, compare_counts);
    for (size_t i = 0; i < making->n && count < TYPICAL_PART * total; i++) {
        making->typical[order[i] - making->shapes] = true;
        count += order[i]->count;
        g_array_append_val(making->order, order[i]);
    }
}

/* Of the kinds that a pod of each shape fits, the one that most cards are of. */
static void set_homes(struct making *making)
{
    for (size_t i = 0; i < making->n; i++) {
        const struct draft *home = NULL;
        for (size_t k = 0; k < making->n_drafts; k++) {
            const struct draft *draft = &making->drafts[k];
            if (draft->wanted[i] > 0 && (!home || draft->kind.cards > home->kind.cards))
                home = draft;
        }
        making->homes[i] = home;
    }
}

/* What a pod of the shape is worth at home, in cards. */
static double worth_of(const struct making *making, size_t shape)
{
    const struct draft *home = making->homes[shape];
    return home->weights[shape] * making->shapes[shape].cards * home->kind.size;
}

/* Sums of equal pods are rounded. */
#define ROUNDED 1e-9

/* A pod that asks for more than any node has never comes with a card, however much that is. */
static bool comes_with_cards(const struct making *making, size_t i)
{
    const struct shape *shape = &making->shapes[i];

    return making->homes[i] && shape->cpu <= making->supplies->cpu_most &&
           shape->gib * GIB <= (1 + ROUNDED) * shape->count * (double)making->supplies->memory_most;
}

/* Pods come one after the other until they are worth so many cards: the CPU and the memory that come
 * with them have these means and variances for each. */
static void set_company(struct making *making)
{
    struct company *cpu = &making->value_model->cpu, *memory = &making->value_model->memory;
    double worth = 0, cpus = 0, gibs = 0;

    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (!comes_with_cards(making, i))
            continue;
        worth += shape->count * worth_of(making, i);
        cpus += shape->count * (double)shape->cpu;
        gibs += shape->gib;
    }
    if (worth <= 0)
        return;
    cpu->mean = cpus / worth;
    memory->mean = gibs / worth;
    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (!comes_with_cards(making, i))
            continue;
        const double off = (double)shape->cpu - cpu->mean * worth_of(making, i);
        const double gib = memory->mean * worth_of(making, i);
        const double squares = shape->gib_squares - 2 * gib * shape->gib + shape->count * gib * gib;
        cpu->variance += shape->count * off * off / worth;
        memory->variance += MAX(squares, 0) / worth;
    }
}

static double gpu_of(const struct making *making, size_t i)
{
    const struct draft *home = making->homes[i];
    const struct shape *shape = &making->shapes[i];

    return home ? shape->count * shape->cards * home->wanted[i] / PART_WHOLE * home->kind.size : 0;
}

static void set_totals(struct making *making)
{
    for (size_t i = 0; i < making->n; i++)
        making->gpus += gpu_of(making, i);
    for (size_t k = 0; k < making->n_drafts; k++)
        making->cards += making->drafts[k].kind.cards;
}

/* Of pods that come until the cards are asked for once, how many cards those of the shape ask for. */
static double cards_wanted(const struct making *making, size_t i)
{
    return making->gpus > 0 ? gpu_of(making, i) / making->gpus * making->cards : 0;
}

/* Pods that only some of the cards will do for, because they name models or are too large for others,
 * want this part of each that will; if several kinds will, of them alike. */
static void set_shares(struct making *making)
{
    for (size_t i = 0; i < making->n; i++) {
        const char *device = making->shapes[i].device;
        double accepted = 0, all = 0;
        for (size_t k = 0; k < making->n_drafts; k++) {
            const struct draft *draft = &making->drafts[k];
            if (g_strcmp0(draft->pool ? draft->pool->resource : NULL, device) != 0)
                continue;
            all += draft->kind.cards;
            accepted += draft->accepted[i] ? draft->kind.cards : 0;
        }
        if (accepted >= all)
            continue;
        for (size_t k = 0; k < making->n_drafts; k++) {
            if (making->drafts[k].accepted[i])
                making->drafts[k].kind.share += cards_wanted(making, i) / accepted;
        }
    }
    for (size_t k = 0; k < making->n_drafts; k++)
        making->drafts[k].kind.share = MIN(making->drafts[k].kind.share, 1);
}

/* --- groups --------------------------------------------------------------------------------- */

/* Nodes have so many cards or devices of a kind: by shape, the cards in which pods would find room,
 * were they empty. */
static void add_places(const struct making *making, const struct supply *supply,
                       const struct draft *draft, int32_t units, double *places)
{
    const int64_t cpu = supply->node->host.cpu;

    for (size_t i = 0; draft && i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (shape->cards < 2 || shape->cards > units || !draft->accepted[i])
            continue;
        int64_t n = units / shape->cards;
        if (shape->cpu > 0 && cpu > 0)
            n = MIN(n, cpu / shape->cpu);
        places[i] += supply->n * (double)(n * shape->cards) * draft->kind.size;
    }
}

/* Supply by supply, for there may be more of them than shapes. */
static double *sum_places(struct making *making)
{
    double *places = g_new0(double, making->n);

    for (guint j = 0; j < making->supplies->all->len; j++) {
        const struct supply *supply = &g_array_index(making->supplies->all, struct supply, j);
        const struct node *node = supply->node;
        int32_t n = 0;
        for (int32_t k = 0; k < node->n_cards; k++) {
            const uint64_t kind = node->cards[k].kind;
            n++;
            if (k + 1 < node->n_cards && node->cards[k + 1].kind == kind)
                continue;
            add_places(making, supply, find_draft(making, kind), n, places);
            n = 0;
        }
        for (int32_t k = 0; k < node->n_pools; k++)
            add_places(making, supply, find_draft(making, node->pools[k].kind),
                       node->pools[k].capacity, places);
    }
    return places;
}

static double group_demand(const struct group *group)
{
    return group->cards * group->want;
}

/* One that asks for the same is the same; where there are too many, the least wanted gives way. */
static void add_group(struct card_values *values, const struct group *new)
{
    struct group *place = NULL;

    for (int32_t i = 0; i < values->n_groups; i++) {
        struct group *group = &values->groups[i];
        if (group->cards == new->cards && group->cpu == new->cpu) {
            group->want = MIN(group->want + new->want, 1);
            return;
        }
        if (!place || group_demand(group) < group_demand(place))
            place = group;
    }
    if (values->n_groups < GROUPS_MAX)
        values->groups[values->n_groups++] = *new;
    else if (group_demand(place) < group_demand(new))
        *place = *new;
}

static gint compare_groups(gconstpointer a, gconstpointer b)
{
    const struct group *left = a, *right = b;
    return left->cards != right->cards ? left->cards - right->cards
                                       : (left->cpu > right->cpu) - (left->cpu < right->cpu);
}

static void set_groups(struct making *making)
{
    g_autofree double *places = sum_places(making);

    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (places[i] <= 0)
            continue;
        const struct group group = {shape->cards, shape->cpu,
                                    MIN(cards_wanted(making, i) / places[i], 1)};
        for (size_t k = 0; k < making->n_drafts; k++) {
            struct draft *draft = &making->drafts[k];
            if (draft->own && draft->accepted[i])
                add_group(draft->own, &group);
        }
    }
    for (size_t k = 0; k < making->n_drafts; k++) {
        struct card_values *own = making->drafts[k].own;
        if (own)
            qsort(own->groups, (size_t)own->n_groups, sizeof *own->groups, compare_groups);
    }
}

static gint compare_kinds(gconstpointer a, gconstpointer b)
{
    const struct valued_kind *left = a, *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

static void free_making(struct making *making)
{
    for (size_t i = 0; i < making->n_drafts; i++) {
        g_free(making->drafts[i].rooms);
        g_free(making->drafts[i].wanted);
        g_free(making->drafts[i].accepted);
        g_free(making->drafts[i].weights);
    }
    g_free(making->homes);
    g_free(making->typical);
    g_array_unref(making->order);
    g_free(making);
}

struct value_model *value_model_new(const struct shape *shapes, size_t n, struct ledger *ledger)
{
    g_autoptr(supplies) supplies = collect_supplies(ledger);

    return value_model_of(shapes, n, supplies);
}

struct value_model *value_model_of(const struct shape *shapes, size_t n,
                                   const struct supplies *supplies)
{
    struct making *making = g_new0(struct making, 1);
    struct value_model *value_model = g_atomic_rc_box_new0(struct value_model);

    *making = (struct making){.shapes = shapes, .n = n, .value_model = value_model};
    value_model->values = g_ptr_array_new_with_free_func(g_free);
    making->supplies = supplies;
    collect_kinds(making);
    making->typical = g_new0(bool, n);
    making->order = g_array_new(FALSE, FALSE, sizeof(const struct shape *));
    making->homes = g_new0(const struct draft *, n);
    mark_typical(making);
    for (size_t k = 0; k < making->n_drafts; k++) {
        struct draft *draft = &making->drafts[k];
        draft->rooms = g_new0(struct room, n);
        draft->wanted = g_new0(int32_t, n);
        draft->accepted = g_new0(bool, n);
        for (size_t i = 0; i < n; i++) {
            draft->rooms[i] = draft->card ? room_wanted(draft->node, draft->card, &shapes[i])
                                          : room_wanted_device(draft->pool, &shapes[i]);
            draft->wanted[i] = MAX(draft->rooms[i].memory, draft->rooms[i].core);
            draft->accepted[i] = draft->wanted[i] > 0 &&
                                 terms_accept_model(shapes[i].terms, draft->card ? draft->card->model
                                                                                 : draft->pool->model);
        }
    }
    drafts_weigh(making);
    for (size_t k = 0; k < making->n_drafts; k++)
        draft_set_values(making, &making->drafts[k]);
    set_homes(making);
    set_company(making);
    set_totals(making);
    set_shares(making);
    set_groups(making);
    for (size_t k = 0; k < making->n_drafts; k++)
        value_model->kinds[value_model->n_kinds++] = making->drafts[k].kind;
    qsort(value_model->kinds, value_model->n_kinds, sizeof *value_model->kinds, compare_kinds);
    free_making(making);
    if (value_model->cpu.mean <= 0 && value_model->n_kinds == 0)
        g_clear_pointer(&value_model, value_model_unref);
    return value_model;
}

static void value_model_clear(gpointer data)
{
    struct value_model *value_model = data;
    g_ptr_array_unref(value_model->values);
}

struct value_model *value_model_ref(struct value_model *value_model)
{
    return value_model ? g_atomic_rc_box_acquire(value_model) : NULL;
}

void value_model_unref(struct value_model *value_model)
{
    if (value_model)
        g_atomic_rc_box_release_full(value_model, value_model_clear);
}

const struct valued_kind *value_kind(const struct value_model *value_model, uint64_t key)
{
    size_t from = 0, to = value_model->n_kinds;

    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (value_model->kinds[middle].key == key)
            return &value_model->kinds[middle];
        if (value_model->kinds[middle].key < key)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}
