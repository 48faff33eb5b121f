/* SPDX-License-Identifier: Apache-2.0 */
/* What free parts of one kind of cards are worth, and who is expected there. */
#include "policy/cutting.h"
#include "policy/value_model_making.h"

#include <stdlib.h>
#include <string.h>

/* A free part of a card is worth what comes of so many pods, if each goes there or not: what only rare pods
 * complete is worth less than what many do. */
#define OFFERS 8

/* --- cuts ----------------------------------------------------------------------------------- */

int32_t draft_whole(const struct draft *draft)
{
    return PART_WHOLE / draft->pair_step;
}

/* To the nearest of the step, in steps of a pair. */
static int32_t to_steps(const struct draft *draft, int32_t part)
{
    const int32_t step = draft->step;
    return MIN((part + step / 2) / step * step, PART_WHOLE) / draft->pair_step;
}

struct cut draft_cut(const struct draft *draft, size_t shape)
{
    const struct room *room = &draft->rooms[shape];
    const int32_t wanted = draft->wanted[shape];

    if (!draft->paired)
        return (struct cut){.size = wanted - wanted % draft->step};
    return (struct cut){to_steps(draft, room->memory), to_steps(draft, room->core)};
}

/* --- values ------------------------------------------------------------------------------ */

static struct piece *find_piece(struct piece *pieces, size_t n, const struct cut *like)
{
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].size == like->size && pieces[i].other == like->other)
            return &pieces[i];
    }
    return NULL;
}

/* Those that weigh something. */
static size_t collect_pieces(const struct making *making, const struct draft *draft,
                             struct piece *pieces)
{
    size_t n = 0;

    for (size_t i = 0; i < making->n; i++) {
        const struct shape *shape = &making->shapes[i];
        const struct cut cut =
            draft->paired ? draft_cut(draft, i) : (struct cut){.size = draft->wanted[i]};
        if (!draft->accepted[i] || (cut.size == 0 && cut.other == 0) || draft->weights[i] <= 0)
            continue;
        struct piece *piece = find_piece(pieces, n, &cut);
        if (!piece && n == CUTTING_SIZES_MAX)
            continue;
        if (!piece) {
            piece = &pieces[n++];
            *piece =
                (struct piece){.size = cut.size, .other = cut.other, .weight = draft->weights[i]};
        }
        piece->wanted += shape->count * shape->cards;
    }
    return n;
}

/* A whole card is worth the best that can be made of it, whoever comes. */
static void set_worth(const struct making *making, const struct draft *draft,
                      struct card_values *values)
{
    struct piece pieces[CUTTING_SIZES_MAX];
    const size_t n = collect_pieces(making, draft, pieces);
    const int32_t whole = draft_whole(draft), other = draft->paired ? whole : 0;
    float *worth = values->worth, *last = worth + (whole + 1) * (other + 1) - 1;

    values->paired = draft->paired;
    values->step = draft->pair_step;
    values->memory_price = draft->memory_price;
    cutting_worth(pieces, n, whole, other, worth);
    if (!draft->paired || *last <= 0)
        return;
    const float most = *last;
    cutting_worth_of_offers(pieces, n, whole, other, OFFERS, worth);
    const float scale = *last > 0 ? most / *last : 0;
    for (float *each = worth; each <= last; each++)
        *each *= scale;
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
