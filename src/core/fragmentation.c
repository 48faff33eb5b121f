/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgd, fragmentation gradient descent (Weng, Yang et al., USENIX ATC 2023): a pod goes where the free
 * GPU that the typical pods could not use grows least.
 */
#include "core/policies.h"

#include <gpuledger/fragmentation.h>

#include <math.h>

/* Cards in a row that the same pods see alike are weighed together: what a typical pod could use of
 * them, if it fits there, is the cards with room for it. */
struct row {
    const struct prospect *prospect; /* NULL: nothing is known of such cards */
    int32_t cpu;         /* steps of CPU that are free */
    int32_t whole, most; /* free cards; the largest free part */
    int64_t left;        /* the sum of all free parts */
    double small;        /* of it, what is on cards in use, times who could use it there */
    int64_t small_left;  /* the same, but for anybody */
};

static struct row row_begin(const struct kind *kind, int64_t cpu_free)
{
    struct row row = {.prospect = kind ? kind->prospect : NULL};

    while (row.prospect && row.cpu < row.prospect->n_cpus &&
           row.prospect->cpus[row.cpu] <= cpu_free)
        row.cpu++;
    return row;
}

static void row_add(struct row *row, int32_t part)
{
    row->whole += part == PART_WHOLE;
    row->most = MAX(row->most, part);
    row->left += part;
    if (!row->prospect || part == PART_WHOLE)
        return;
    row->small += part * (double)row->prospect->below[row->cpu][row->prospect->steps[part]];
    row->small_left += part;
}

/* What a typical pod cannot use of the row, in cards; one without a GPU can use nothing. Who does
 * not fit on any card can use none of it, who does all but what is on the cards that are too full. */
static double row_lost(const struct row *row)
{
    const struct prospect *prospect = row->prospect;
    int32_t sizes;

    if (!prospect)
        return 0;
    sizes = prospect->steps[row->most];
    while (sizes < prospect->n_sizes && prospect->sizes[sizes] <= row->whole * PART_WHOLE)
        sizes++;
    const double reach = (double)prospect->below[row->cpu][sizes];
    return ((1 - reach) * (double)row->left + reach * (double)row->small_left - row->small) /
           PART_WHOLE;
}

struct lost {
    double cards; /* what a typical pod cannot use, in cards */
    double left;  /* all that is free */
};

static struct lost node_lost(const struct outlook *outlook, const struct node *node,
                             const struct placement *placement)
{
    const struct kind *kind = NULL;
    struct row row = {0};
    int64_t cpu = node_host_free(node).cpu;
    struct lost lost = {0};

    if (cpu != INT64_MAX && placement)
        cpu = MAX(cpu - placement->request->host.cpu, 0);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const struct taken taken = placement_taken(node, card, placement);
        if (i == 0 || node->cards[i - 1].kind != card->kind) {
            kind = outlook_kind(outlook, card->kind);
            lost.cards += row_lost(&row);
            row = row_begin(kind, cpu);
        }
        const int32_t part = part_free(node, card, &taken);
        row_add(&row, part);
        lost.left += row.prospect ? (double)part / PART_WHOLE : 0;
    }
    lost.cards += row_lost(&row);
    return lost;
}

int64_t fragmentation_of(const struct node *node, const struct demand *demand)
{
    const struct outlook *outlook = demand_outlook(demand);

    if (!outlook || outlook->cpu_only >= 1)
        return 0;
    const struct lost lost = node_lost(outlook, node, NULL);
    const double cards = (lost.cards - outlook->cpu_only * lost.left) / (1 - outlook->cpu_only);
    return (int64_t)(CLAMP(cards, 0, lost.left) * PART_WHOLE + 0.5);
}

/* As published: whole hundredths of a sigmoid. What rounding makes equal goes by name, which packs. */
static int64_t score(double before, double after)
{
    return (int64_t)(100 / (1 + exp(after - before)));
}

struct cost cost_fgd(const struct node *node, const struct card *card, const struct card_ask *ask,
                     const struct demand *demand)
{
    const struct outlook *outlook = demand_outlook(demand);
    struct request request = {0};
    struct placement placement = {.request = &request, .n_shares = 1};

    if (!outlook)
        return cost_binpack(node, card, ask, demand);
    placement.shares[0] = (struct share){.memory = {card_bytes(node, card, ask->memory)},
                                         .card = card->index,
                                         .core = ask->core,
                                         .exclusive = ask->exclusive};
    const double before = node_lost(outlook, node, NULL).cards;
    return (struct cost){.loss = -score(before, node_lost(outlook, node, &placement).cards)};
}

void rate_fgd(const struct node *node, const struct placement *placement,
              const struct demand *demand, struct rank *ret_rank)
{
    const struct outlook *outlook = demand_outlook(demand);

    if (!outlook || (placement->n_shares > 0 && placement->shares[0].device)) {
        rate_binpack(node, placement, demand, ret_rank);
        return;
    }
    const double before = node_lost(outlook, node, NULL).cards;
    ret_rank->loss = -(double)score(before, node_lost(outlook, node, placement).cards);
}
