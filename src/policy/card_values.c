/* SPDX-License-Identifier: Apache-2.0 */
/* What sizes of pods are worth on one kind of cards, and who is expected there. */
#include "policy/cutting.h"
#include "policy/value_model_making.h"

#include <stdlib.h>
#include <string.h>

/* Of what a pair weighs, so much is for how much it is, the rest what cutting says. That alone
 * gives room for small pods away for nothing. */
#define AMOUNT_PART 0.15

/* Pairs that are told apart in hundredths, at most. */
#define FINE_PAIRS_MAX 24

/* --- weights -------------------------------------------------------------------------------- */

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

/* How many steps of a pair are in a card. */
static int32_t pair_steps(const struct draft *draft)
{
    return PART_WHOLE / draft->pair_step;
}

/* To the nearest of the wider step, in steps of a pair. */
static int32_t to_steps(const struct draft *draft, int32_t part, int32_t step)
{
    return MIN((part + step / 2) / step * step, PART_WHOLE) / draft->pair_step;
}

/* What a pod of the shape is cut as, its size rounded to the step: down, if it is no pair; nothing, if
 * that is 0. */
static struct piece cut_of(const struct draft *draft, size_t shape, int32_t step)
{
    const struct room *room = &draft->rooms[shape];
    const int32_t wanted = draft->wanted[shape];

    if (!draft->paired)
        return (struct piece){.size = wanted - wanted % step};
    return (struct piece){.size = to_steps(draft, room->memory, step),
                          .other = to_steps(draft, room->core, step)};
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

/* Whether to tell hundredths apart would take too long: it is done under the caller's lock. */
static bool has_many(const struct making *making, const struct draft *draft)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    const int n = collect_pieces(making, draft, FINE, pieces);

    return n < 0 || n > FINE_PAIRS_MAX;
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
                 (PART_WHOLE - draft->memory_price) * piece->other) / (PART_WHOLE * pair_steps(draft));

    return draft->paired ? (1 - AMOUNT_PART) * piece->weight + AMOUNT_PART * amount
                         : piece->weight;
}

/* So much more large pods than were seen, and so much more small ones. */
#define TILT 0.5

/* Where large and small pods complete each other on a card, and as many of the ones come as of the
 * others, cutting gives all of the card's worth to either of them by chance, and to the other nothing.
 * So pairs weigh the mean of what they would if more of the large ones came and if more of the small
 * ones did. No set that fits a card weighs more than 1, as that is so of both. */
static void weigh_tilted(const struct draft *draft, struct piece *pieces, size_t n)
{
    static const double tilts[] = {-TILT, TILT};
    struct piece tilted[CUTTING_SIZES_MAX];
    const int32_t whole = pair_steps(draft);

    if (!draft->paired) {
        cutting_weigh(pieces, n, whole, 0);
        return;
    }
    for (size_t k = 0; k < G_N_ELEMENTS(tilts); k++) {
        for (size_t i = 0; i < n; i++) {
            const double size = (double)MAX(pieces[i].size, pieces[i].other) / whole;
            tilted[i] = pieces[i];
            tilted[i].wanted *= 1 + tilts[k] * (2 * size - 1);
        }
        cutting_weigh(tilted, n, whole, whole);
        for (size_t i = 0; i < n; i++)
            pieces[i].weight += tilted[i].weight / G_N_ELEMENTS(tilts);
    }
}

/* What each size is worth is the same wherever the sizes are, whatever the models. */
void draft_weigh(struct making *making, struct draft *draft)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    int n;

    for (struct draft *other = making->drafts; other < draft; other++) {
        if (memcmp(other->rooms, draft->rooms, making->n * sizeof *draft->rooms) == 0) {
            draft->weights = g_memdup2(other->weights, making->n * sizeof *draft->weights);
            draft->paired = other->paired;
            draft->step = other->step;
            draft->pair_step = other->pair_step;
            draft->memory_price = other->memory_price;
            return;
        }
    }
    draft->weights = g_new0(double, making->n);
    draft->paired = has_pairs(making, draft);
    draft->step = draft->pair_step = draft->paired ? FINE : 1;
    if (draft->paired)
        set_price(making, draft);
    if (draft->paired && has_many(making, draft))
        draft->step = draft->pair_step = COARSE;
    while ((n = collect_pieces(making, draft, draft->step, pieces)) < 0)
        draft->step = MAX(2 * draft->step, COARSE);
    qsort(pieces, (size_t)n, sizeof *pieces, compare_pieces);
    weigh_tilted(draft, pieces, (size_t)n);
    for (size_t i = 0; i < making->n; i++) {
        const struct piece like = cut_of(draft, i, draft->step);
        if (!is_nothing(&like))
            draft->weights[i] = weight_of(draft, find_piece(pieces, (size_t)n, &like));
    }
}

/* --- values ------------------------------------------------------------------------------ */

static void set_worth(const struct making *making, const struct draft *draft,
                      struct card_values *values)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    size_t n = 0;

    values->paired = draft->paired;
    values->step = draft->pair_step;
    values->memory_price = draft->memory_price;
    for (size_t i = 0; i < making->n; i++) {
        struct piece piece = cut_of(draft, i, draft->paired ? draft->step : 1);
        if (!draft->accepted[i] || is_nothing(&piece) || draft->weights[i] <= 0)
            continue;
        piece.weight = draft->weights[i];
        if (!find_piece(pieces, n, &piece) && n < CUTTING_SIZES_MAX)
            pieces[n++] = piece;
    }
    cutting_worth(pieces, n, pair_steps(draft), draft->paired ? pair_steps(draft) : 0,
                  values->worth);
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
                      struct card_values *values)
{
    g_autoptr(GArray) cpus = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    const double count = count_typical(making, draft, &values->cpu_only);
    int64_t size_steps[STEPS_MAX];

    for (size_t i = 0; i < making->n; i++) {
        const int64_t size = size_of(making, draft, i);
        if (!making->typical[i] || !draft->accepted[i] || size == 0)
            continue;
        g_array_append_val(cpus, making->shapes[i].cpu);
        g_array_append_val(sizes, size);
    }
    values->n_cpus = make_steps(cpus, values->cpus);
    values->n_sizes = make_steps(sizes, size_steps);
    for (int32_t s = 0; s < values->n_sizes; s++)
        values->sizes[s] = (int32_t)size_steps[s];
    for (size_t i = 0; i < making->n; i++) {
        const int32_t size = size_of(making, draft, i);
        int32_t c = 0, s = 0;
        if (!making->typical[i] || !draft->accepted[i] || size == 0)
            continue;
        while (values->cpus[c] < making->shapes[i].cpu)
            c++;
        while (values->sizes[s] < size)
            s++;
        values->below[c + 1][s + 1] +=
            (float)(making->shapes[i].count / count);
    }
    for (int32_t part = 0, s = 0; part <= PART_WHOLE; part++) {
        while (s < values->n_sizes && values->sizes[s] <= part)
            s++;
        values->steps[part] = (uint8_t)s;
    }
    for (int32_t c = 1; c <= values->n_cpus; c++) {
        for (int32_t s = 1; s <= values->n_sizes; s++)
            values->below[c][s] += values->below[c - 1][s] + values->below[c][s - 1] -
                                     values->below[c - 1][s - 1];
    }
}

void draft_set_values(struct making *making, struct draft *draft)
{
    for (struct draft *other = making->drafts; other < draft; other++) {
        if (memcmp(other->rooms, draft->rooms, making->n * sizeof *draft->rooms) == 0 &&
            memcmp(other->accepted, draft->accepted, making->n * sizeof *draft->accepted) == 0) {
            draft->kind.values = other->kind.values;
            return;
        }
    }
    struct card_values *values = g_new0(struct card_values, 1);
    set_worth(making, draft, values);
    set_below(making, draft, values);
    g_ptr_array_add(making->value_model->values, values);
    draft->kind.values = draft->own = values;
}
