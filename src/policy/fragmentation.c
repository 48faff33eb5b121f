/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgd, fragmentation gradient descent (Weng, Yang et al., USENIX ATC 2023): a pod goes where the free
 * GPU that the typical pods could not use grows least.
 */
#include "policy/policies.h"

#include <gpuledger/fragmentation.h>

#include <math.h>

/* Cards in a row that the same pods see alike are weighed together: what a typical pod could use of
 * them, if it fits there, is the cards with room for it. */
struct row {
    const struct card_values *values; /* NULL: nothing is known of such cards */
    int32_t cpu;         /* steps of CPU that are free */
    int32_t whole, most; /* free cards; the largest free part */
    int64_t left;        /* the sum of all free parts */
    double small;        /* of it, what is on cards in use, times who could use it there */
    int64_t small_left;  /* the same, but for anybody */
};

static struct row row_begin(const struct valued_kind *kind, int64_t cpu_free)
{
    struct row row = {.values = kind ? kind->values : NULL};

    while (row.values && row.cpu < row.values->n_cpus &&
           row.values->cpus[row.cpu] <= cpu_free)
        row.cpu++;
    return row;
}

static void row_add(struct row *row, int32_t part)
{
    row->whole += part == PART_WHOLE;
    row->most = MAX(row->most, part);
    row->left += part;
    if (!row->values || part == PART_WHOLE)
        return;
    row->small += part * (double)row->values->below[row->cpu][row->values->steps[part]];
    row->small_left += part;
}

/* What a typical pod cannot use of the row, in cards; one without a GPU can use nothing. Who does
 * not fit on any card can use none of it, who does all but what is on the cards that are too full. */
static double row_lost(const struct row *row)
{
    const struct card_values *values = row->values;
    int32_t sizes;

    if (!values)
        return 0;
    sizes = values->steps[row->most];
    while (sizes < values->n_sizes && values->sizes[sizes] <= row->whole * PART_WHOLE)
        sizes++;
    const double reach = (double)values->below[row->cpu][sizes];
    return ((1 - reach) * (double)row->left + reach * (double)row->small_left - row->small) /
           PART_WHOLE;
}

struct lost {
    double cards; /* what a typical pod cannot use, in cards */
    double left;  /* all that is free of what is known */
    double by_gpu_pods; /* what a typical pod that asks for GPU cannot use */
};

/* `size`: how many cards each of the row is. */
static void lost_add(struct lost *lost, const struct row *row, double size)
{
    const double cards = row_lost(row) * size, left = (double)row->left / PART_WHOLE * size;

    lost->cards += cards;
    if (!row->values)
        return;
    lost->left += left;
    if (row->values->cpu_only < 1)
        lost->by_gpu_pods +=
            (cards - row->values->cpu_only * left) / (1 - row->values->cpu_only);
}

static struct lost node_lost(const struct value_model *value_model, const struct node *node,
                             const struct placement *placement)
{
    const struct valued_kind *kind = NULL;
    struct row row = {0};
    int64_t cpu = node_host_free(node).cpu;
    struct lost lost = {0};

    if (cpu != INT64_MAX && placement)
        cpu = MAX(cpu - placement->request->host.cpu, 0);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const struct taken taken = placement_taken(node, card, placement);
        if (i == 0 || node->cards[i - 1].kind != card->kind) {
            kind = value_kind(value_model, card->kind);
            lost_add(&lost, &row, 1);
            row = row_begin(kind, cpu);
        }
        row_add(&row, room_part(room_free(node, card, &taken)));
    }
    lost_add(&lost, &row, 1);
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const int32_t left = pool_free(pool, placement);
        row = row_begin(value_kind(value_model, pool->kind), cpu);
        row.whole = left;
        row.most = left > 0 ? PART_WHOLE : 0;
        row.left = (int64_t)left * PART_WHOLE;
        lost_add(&lost, &row, pool_device_size(pool));
    }
    return lost;
}

int64_t fragmentation_of(const struct node *node, const struct demand *demand)
{
    const struct value_model *value_model = demand_value_model(demand);

    if (!value_model)
        return 0;
    const struct lost lost = node_lost(value_model, node, NULL);
    return (int64_t)(CLAMP(lost.by_gpu_pods, 0, lost.left) * PART_WHOLE + 0.5);
}

/* As published: whole hundredths of a sigmoid. What rounding makes equal goes by name, which packs. */
static int64_t score(double before, double after)
{
    return (int64_t)(100 / (1 + exp(after - before)));
}

struct cost cost_fgd(const struct node *node, const struct card *card, const struct card_ask *ask,
                     const struct demand *demand)
{
    const struct value_model *value_model = demand_value_model(demand);
    struct request request = {0};
    struct placement placement = {.request = &request, .n_shares = 1};

    if (!value_model)
        return cost_binpack(node, card, ask, demand);
    placement.shares[0] = (struct share){.memory = {card_bytes(node, card, ask->memory)},
                                         .card = card->index,
                                         .core = ask->core,
                                         .exclusive = ask->exclusive};
    const double before = node_lost(value_model, node, NULL).cards;
    return (struct cost){.loss = -score(before, node_lost(value_model, node, &placement).cards)};
}

void rate_fgd(const struct node *node, const struct placement *placement,
              const struct demand *demand, struct rank *ret_rank)
{
    const struct value_model *value_model = demand_value_model(demand);

    if (!value_model) {
        rate_binpack(node, placement, demand, ret_rank);
        return;
    }
    const double before = node_lost(value_model, node, NULL).cards;
    ret_rank->loss = -(double)score(before, node_lost(value_model, node, placement).cards);
}
