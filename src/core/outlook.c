/* SPDX-License-Identifier: Apache-2.0 */
#include "core/outlook.h"

#include "core/cutting.h"

#include <stdlib.h>
#include <string.h>

/* The most frequent shapes that make up so much of the pods are the typical ones. */
#define TYPICAL_PART 0.95
/* Of what a pair weighs, so much is for how much it is, the rest what cutting says. That alone
 * gives room for small pods away for nothing. */
#define AMOUNT_PART 0.3

/* --- the makings ---------------------------------------------------------------------------- */

/* A kind while the outlook is made. */
struct draft {
    struct kind kind;
    const struct node *node; /* one that has a card of it, or a pool */
    const struct card *card; /* NULL: it is of devices */
    const struct pool *pool;
    struct room *rooms; /* by shape: what is wanted of one, whatever the model */
    int32_t *wanted; /* by shape: the larger part of it; 0: does not fit */
    bool *accepted;  /* by shape: whether a pod of it may have one */
    double *weights; /* by shape, of one card's part; those of the first kind with the same sizes */
    bool paired;     /* as in struct prospect, as is the price */
    int32_t step;    /* sizes within so many thousandths are one */
    int32_t memory_price;
    struct prospect *own; /* NULL: that of an earlier kind, which is seen alike, is its, too */
};

struct making {
    const struct shape *shapes;
    size_t n;
    struct outlook *outlook;
    size_t n_drafts;
    struct draft drafts[KINDS_MAX];
    const struct draft **homes; /* by shape: where it is measured; NULL: it fits nowhere */
    double gpus, cards; /* that all pods ask for, and that there are */
    bool *typical; /* by shape */
    GArray *order; /* const struct shape *, the typical ones, most frequent first */
};

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

static void collect_pools(struct making *making, const struct node *node)
{
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const double size = pool_device_size(pool);
        struct draft *draft = find_draft(making, pool->kind);
        if (!draft)
            draft = add_draft(making, &(struct draft){.kind = {.key = pool->kind, .size = size},
                                                      .node = node,
                                                      .pool = pool});
        if (draft)
            draft->kind.cards += pool->capacity * size;
    }
}

static void collect_kinds(struct making *making, struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    struct draft *draft = NULL;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        for (int32_t j = 0; node->present && j < node->n_cards; j++) {
            const struct card *card = &node->cards[j];
            if (!draft || draft->kind.key != card->kind)
                draft = find_draft(making, card->kind);
            if (!draft)
                draft = add_draft(making, &(struct draft){.kind = {.key = card->kind, .size = 1},
                                                          .node = node,
                                                          .card = card});
            if (draft)
                draft->kind.cards++;
        }
        if (node->present)
            collect_pools(making, node);
    }
}

/* Whether some pods want more memory and others more compute; if not, the larger part tells all. */
static bool has_pairs(const struct making *making, const struct draft *draft)
{
    bool memory = false, core = false;

    for (size_t i = 0; i < making->n; i++) {
        const struct room *room = &draft->rooms[i];
        memory |= room->memory >= room->core + COARSE;
        core |= room->core >= room->memory + COARSE;
    }
    return memory && core;
}

/* What a pod of the shape is cut as, its size rounded down to the step; nothing, if that is 0. */
static struct piece cut_of(const struct draft *draft, size_t shape, int32_t step)
{
    const struct room *room = &draft->rooms[shape];
    const int32_t wanted = draft->wanted[shape];

    if (!draft->paired)
        return (struct piece){.size = wanted - wanted % step};
    return (struct piece){.size = (room->memory - room->memory % step) / COARSE,
                          .other = (room->core - room->core % step) / COARSE};
}

static bool is_nothing(const struct piece *piece)
{
    return piece->size == 0 && piece->other == 0;
}

static struct piece *find_piece(struct piece *pieces, size_t n, const struct piece *like)
{
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].size == like->size && pieces[i].other == like->other)
            return &pieces[i];
    }
    return NULL;
}

/* The sizes that are wanted; -1: they are too many. */
static int collect_pieces(const struct making *making, const struct draft *draft, int32_t step,
                          struct piece *pieces)
{
    size_t n = 0;

    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        const struct piece like = cut_of(draft, i, step);
        if (is_nothing(&like))
            continue;
        struct piece *piece = find_piece(pieces, n, &like);
        if (!piece && n == CUTTING_SIZES_MAX)
            return -1;
        if (!piece) {
            piece = &pieces[n++];
            *piece = like;
        }
        piece->wanted += shape->count * shape->cards;
    }
    return (int)n;
}

static gint compare_pieces(gconstpointer a, gconstpointer b)
{
    const struct piece *left = a, *right = b;
    return left->size != right->size ? left->size - right->size : left->other - right->other;
}

static void set_price(const struct making *making, struct draft *draft)
{
    double memory = 0, core = 0;

    for (size_t i = 0; i < making->n; i++) {
        const double cards = making->shapes[i].count * making->shapes[i].cards;
        memory += cards * draft->rooms[i].memory;
        core += cards * draft->rooms[i].core;
    }
    draft->memory_price = (int32_t)(PART_WHOLE * memory / (memory + core));
}

/* No set that fits a card weighs more than 1: that is so of either part. */
static double weight_of(const struct draft *draft, const struct piece *piece)
{
    const double amount =
        (double)(draft->memory_price * piece->size +
                 (PART_WHOLE - draft->memory_price) * piece->other) / (PART_WHOLE * PAIR_STEPS);

    return draft->paired ? (1 - AMOUNT_PART) * piece->weight + AMOUNT_PART * amount
                         : piece->weight;
}

/* What each size is worth is the same wherever the sizes are, whatever the models. */
static void weigh(struct making *making, struct draft *draft)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    int n;

    for (struct draft *other = making->drafts; other < draft; other++) {
        if (memcmp(other->rooms, draft->rooms, making->n * sizeof *draft->rooms) == 0) {
            draft->weights = g_memdup2(other->weights, making->n * sizeof *draft->weights);
            draft->paired = other->paired;
            draft->step = other->step;
            draft->memory_price = other->memory_price;
            return;
        }
    }
    draft->weights = g_new0(double, making->n);
    draft->paired = has_pairs(making, draft);
    draft->step = draft->paired ? COARSE : 1;
    if (draft->paired)
        set_price(making, draft);
    while ((n = collect_pieces(making, draft, draft->step, pieces)) < 0)
        draft->step = MAX(2 * draft->step, COARSE);
    qsort(pieces, (size_t)n, sizeof *pieces, compare_pieces);
    cutting_weigh(pieces, (size_t)n, draft->paired ? PAIR_STEPS : PART_WHOLE,
                  draft->paired ? PAIR_STEPS : 0);
    for (size_t i = 0; i < making->n; i++) {
        const struct piece like = cut_of(draft, i, draft->step);
        if (!is_nothing(&like))
            draft->weights[i] = weight_of(draft, find_piece(pieces, (size_t)n, &like));
    }
}

/* --- prospects ------------------------------------------------------------------------------ */

static void set_worth(const struct making *making, const struct draft *draft,
                      struct prospect *prospect)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    size_t n = 0;

    prospect->paired = draft->paired;
    prospect->memory_price = draft->memory_price;
    for (size_t i = 0; i < making->n; i++) {
        struct piece piece = cut_of(draft, i, draft->paired ? draft->step : 1);
        if (!draft->accepted[i] || is_nothing(&piece) || draft->weights[i] <= 0)
            continue;
        piece.weight = draft->weights[i];
        if (!find_piece(pieces, n, &piece) && n < CUTTING_SIZES_MAX)
            pieces[n++] = piece;
    }
    cutting_worth(pieces, n, draft->paired ? PAIR_STEPS : PART_WHOLE,
                  draft->paired ? PAIR_STEPS : 0, prospect->worth);
}

/* A pod for several cards is so many times as large as a whole one. */
static int32_t size_of(const struct making *making, const struct draft *draft, size_t i)
{
    const int32_t cards = making->shapes[i].cards;
    return cards > 1 ? cards * PART_WHOLE : draft->wanted[i];
}

static gint compare_int64(gconstpointer a, gconstpointer b)
{
    const int64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Sorts, and leaves at most STEPS_MAX different ones, the largest among them. */
static int32_t make_steps(GArray *values, int64_t *ret_steps)
{
    guint n = 0, every;
    int32_t n_steps = 0;
    int64_t *all = (int64_t *)(void *)values->data;

    g_array_sort(values, compare_int64);
    for (guint i = 0; i < values->len; i++) {
        if (n == 0 || all[n - 1] != all[i])
            all[n++] = all[i];
    }
    every = n / STEPS_MAX + 1;
    for (guint i = 0; i < n; i++) {
        if ((n - 1 - i) % every == 0)
            ret_steps[n_steps++] = all[i];
    }
    return n_steps;
}

/* How many typical pods there are that could ask for such cards or devices, or for none, and the part
 * of them that asks for none. */
static double count_typical(const struct making *making, const struct draft *draft,
                            double *ret_cpu_only)
{
    const char *device = draft->pool ? draft->pool->resource : NULL;
    double count = 0, cpu_only = 0;

    for (guint i = 0; i < making->order->len; i++) {
        const struct shape *shape = g_array_index(making->order, const struct shape *, i);
        if (shape->cards > 0 && g_strcmp0(shape->device, device) != 0)
            continue;
        count += shape->count;
        cpu_only += shape->cards == 0 ? shape->count : 0;
    }
    *ret_cpu_only = count > 0 ? cpu_only / count : 1;
    return count;
}

static void set_below(const struct making *making, const struct draft *draft,
                      struct prospect *prospect)
{
    g_autoptr(GArray) cpus = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    const double count = count_typical(making, draft, &prospect->cpu_only);
    int64_t size_steps[STEPS_MAX];

    for (size_t i = 0; i < making->n; i++) {
        const int64_t size = size_of(making, draft, i);
        if (!making->typical[i] || !draft->accepted[i] || size == 0)
            continue;
        g_array_append_val(cpus, making->shapes[i].cpu);
        g_array_append_val(sizes, size);
    }
    prospect->n_cpus = make_steps(cpus, prospect->cpus);
    prospect->n_sizes = make_steps(sizes, size_steps);
    for (int32_t s = 0; s < prospect->n_sizes; s++)
        prospect->sizes[s] = (int32_t)size_steps[s];
    for (size_t i = 0; i < making->n; i++) {
        const int32_t size = size_of(making, draft, i);
        int32_t c = 0, s = 0;
        if (!making->typical[i] || !draft->accepted[i] || size == 0)
            continue;
        while (prospect->cpus[c] < making->shapes[i].cpu)
            c++;
        while (prospect->sizes[s] < size)
            s++;
        prospect->below[c + 1][s + 1] +=
            (float)(making->shapes[i].count / count);
    }
    for (int32_t part = 0, s = 0; part <= PART_WHOLE; part++) {
        while (s < prospect->n_sizes && prospect->sizes[s] <= part)
            s++;
        prospect->steps[part] = (uint8_t)s;
    }
    for (int32_t c = 1; c <= prospect->n_cpus; c++) {
        for (int32_t s = 1; s <= prospect->n_sizes; s++)
            prospect->below[c][s] += prospect->below[c - 1][s] + prospect->below[c][s - 1] -
                                     prospect->below[c - 1][s - 1];
    }
}

static void add_prospect(struct making *making, struct draft *draft)
{
    for (struct draft *other = making->drafts; other < draft; other++) {
        if (memcmp(other->rooms, draft->rooms, making->n * sizeof *draft->rooms) == 0 &&
            memcmp(other->accepted, draft->accepted, making->n * sizeof *draft->accepted) == 0) {
            draft->kind.prospect = other->kind.prospect;
            return;
        }
    }
    struct prospect *prospect = g_new0(struct prospect, 1);
    set_worth(making, draft, prospect);
    set_below(making, draft, prospect);
    g_ptr_array_add(making->outlook->prospects, prospect);
    draft->kind.prospect = draft->own = prospect;
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

/* Pods come one after the other until they are worth so many cards: the CPU that comes with them has
 * this mean and variance for each. */
static void set_cpu(struct making *making)
{
    double worth = 0, cpu = 0, squares = 0;

    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (!making->homes[i])
            continue;
        worth += shape->count * worth_of(making, i);
        cpu += shape->count * (double)shape->cpu;
    }
    if (worth <= 0)
        return;
    const double mean = cpu / worth;
    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        if (!making->homes[i])
            continue;
        const double off = (double)shape->cpu - mean * worth_of(making, i);
        squares += shape->count * off * off;
    }
    making->outlook->cpu_mean = mean;
    making->outlook->cpu_variance = squares / worth;
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

/* Pods that name models want this part of each; those that name several want them alike. */
static void set_shares(struct making *making)
{
    for (size_t i = 0; i < making->n; i++) {
        double accepted = 0;
        if (!making->shapes[i].terms)
            continue;
        for (size_t k = 0; k < making->n_drafts; k++)
            accepted += making->drafts[k].accepted[i] ? making->drafts[k].kind.cards : 0;
        for (size_t k = 0; k < making->n_drafts; k++) {
            if (making->drafts[k].accepted[i])
                making->drafts[k].kind.share += cards_wanted(making, i) / accepted;
        }
    }
    for (size_t k = 0; k < making->n_drafts; k++)
        making->drafts[k].kind.share = MIN(making->drafts[k].kind.share, 1);
}

/* --- groups --------------------------------------------------------------------------------- */

static bool accepts(struct making *making, uint64_t kind, size_t shape)
{
    const struct draft *draft = find_draft(making, kind);
    return draft && draft->accepted[shape];
}

/* How many pods of the shape so many cards have room for, if nobody else uses the node. */
static int64_t count_places(const struct node *node, int32_t cards, const struct shape *shape)
{
    const int64_t n = cards / shape->cards;
    return shape->cpu > 0 && node->host.cpu > 0 ? MIN(n, node->host.cpu / shape->cpu) : n;
}

/* The cards of all places for pods of the shape, were the nodes empty. */
static double sum_places(struct making *making, const GPtrArray *nodes, size_t i)
{
    const struct shape *shape = &making->shapes[i];
    double cards = 0;

    for (guint j = 0; j < nodes->len; j++) {
        const struct node *node = g_ptr_array_index(nodes, j);
        int32_t accepted = 0;
        for (int32_t k = 0; node->present && k < node->n_cards; k++)
            accepted += accepts(making, node->cards[k].kind, i);
        cards += (double)(count_places(node, accepted, shape) * shape->cards);
        for (int32_t k = 0; node->present && k < node->n_pools; k++) {
            const struct pool *pool = &node->pools[k];
            if (accepts(making, pool->kind, i))
                cards += (double)(count_places(node, pool->capacity, shape) * shape->cards) *
                         pool_device_size(pool);
        }
    }
    return cards;
}

static double group_demand(const struct group *group)
{
    return group->cards * group->want;
}

/* One that asks for the same is the same; where there are too many, the least wanted gives way. */
static void add_group(struct prospect *prospect, const struct group *new)
{
    struct group *place = NULL;

    for (int32_t i = 0; i < prospect->n_groups; i++) {
        struct group *group = &prospect->groups[i];
        if (group->cards == new->cards && group->cpu == new->cpu) {
            group->want = MIN(group->want + new->want, 1);
            return;
        }
        if (!place || group_demand(group) < group_demand(place))
            place = group;
    }
    if (prospect->n_groups < GROUPS_MAX)
        prospect->groups[prospect->n_groups++] = *new;
    else if (group_demand(place) < group_demand(new))
        *place = *new;
}

static gint compare_groups(gconstpointer a, gconstpointer b)
{
    const struct group *left = a, *right = b;
    return left->cards != right->cards ? left->cards - right->cards
                                       : (left->cpu > right->cpu) - (left->cpu < right->cpu);
}

static void set_groups(struct making *making, const GPtrArray *nodes)
{
    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        const double places = shape->cards > 1 && making->homes[i] ? sum_places(making, nodes, i) : 0;
        if (places <= 0)
            continue;
        const struct group group = {shape->cards, shape->cpu,
                                    MIN(cards_wanted(making, i) / places, 1)};
        for (size_t k = 0; k < making->n_drafts; k++) {
            struct draft *draft = &making->drafts[k];
            if (draft->own && draft->accepted[i])
                add_group(draft->own, &group);
        }
    }
    for (size_t k = 0; k < making->n_drafts; k++) {
        struct prospect *own = making->drafts[k].own;
        if (own)
            qsort(own->groups, (size_t)own->n_groups, sizeof *own->groups, compare_groups);
    }
}

static gint compare_kinds(gconstpointer a, gconstpointer b)
{
    const struct kind *left = a, *right = b;
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

struct outlook *outlook_new(const struct shape *shapes, size_t n, struct ledger *ledger)
{
    struct making *making = g_new0(struct making, 1);
    struct outlook *outlook = g_atomic_rc_box_new0(struct outlook);

    *making = (struct making){.shapes = shapes, .n = n, .outlook = outlook};
    outlook->prospects = g_ptr_array_new_with_free_func(g_free);
    collect_kinds(making, ledger);
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
        weigh(making, draft);
        add_prospect(making, draft);
    }
    set_homes(making);
    set_cpu(making);
    set_totals(making);
    set_shares(making);
    set_groups(making, ledger_nodes(ledger));
    for (size_t k = 0; k < making->n_drafts; k++)
        outlook->kinds[outlook->n_kinds++] = making->drafts[k].kind;
    qsort(outlook->kinds, outlook->n_kinds, sizeof *outlook->kinds, compare_kinds);
    free_making(making);
    if (outlook->cpu_mean <= 0 && outlook->n_kinds == 0)
        g_clear_pointer(&outlook, outlook_unref);
    return outlook;
}

static void outlook_clear(gpointer data)
{
    struct outlook *outlook = data;
    g_ptr_array_unref(outlook->prospects);
}

struct outlook *outlook_ref(struct outlook *outlook)
{
    return outlook ? g_atomic_rc_box_acquire(outlook) : NULL;
}

void outlook_unref(struct outlook *outlook)
{
    if (outlook)
        g_atomic_rc_box_release_full(outlook, outlook_clear);
}

const struct kind *outlook_kind(const struct outlook *outlook, uint64_t key)
{
    size_t from = 0, to = outlook->n_kinds;

    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (outlook->kinds[middle].key == key)
            return &outlook->kinds[middle];
        if (outlook->kinds[middle].key < key)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}
