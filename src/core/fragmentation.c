/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgd, fragmentation gradient descent (Weng, Yang et al., USENIX ATC 2023): a pod goes where the free
 * GPU that the typical pods could not use grows least.
 */
#include "core/policies.h"

#include <math.h>

/* Cards in a row that the same pods see alike are weighed together: what a typical pod could use of
 * them, if it fits there, is the cards with room for it. */
struct row {
    const struct prospect *prospect;
    int32_t n, whole, most; /* cards; free ones; the largest free part */
    int64_t left;           /* the sum of all free parts */
    int32_t parts[NODE_CARDS_MAX];
};

static void row_add(struct row *row, int32_t part)
{
    row->parts[row->n++] = part;
    row->whole += part == PART_WHOLE;
    row->most = MAX(row->most, part);
    row->left += part;
}

/* The part of the typical pods that fits on cards of the row; `cpu` is how many steps of CPU are
 * free. */
static float row_reach(const struct row *row, int32_t cpu)
{
    const struct prospect *prospect = row->prospect;
    int32_t sizes = prospect->steps[row->most];

    while (sizes < prospect->n_sizes && prospect->sizes[sizes] <= row->whole * PART_WHOLE)
        sizes++;
    return prospect->below[cpu][sizes];
}

/* In cards, for a typical pod; those without a GPU can use nothing. */
static double row_lost(const struct row *row, int64_t cpu_free)
{
    const struct prospect *prospect = row->prospect;
    int32_t cpu = 0;
    double lost;

    if (!prospect)
        return 0;
    while (cpu < prospect->n_cpus && prospect->cpus[cpu] <= cpu_free)
        cpu++;
    const double reach = (double)row_reach(row, cpu);
    lost = (1 - reach) * (double)row->left;
    for (int32_t i = 0; i < row->n; i++) {
        const int32_t part = row->parts[i];
        if (part < PART_WHOLE)
            lost += part * MAX(reach - (double)prospect->below[cpu][prospect->steps[part]], 0);
    }
    return lost / PART_WHOLE;
}

static double node_lost(const struct outlook *outlook, const struct node *node,
                        const struct placement *placement, double *ret_left)
{
    const struct kind *kind = NULL;
    struct row row = {0};
    int64_t cpu = node_host_free(node).cpu;
    double lost = 0;

    if (cpu != INT64_MAX && placement)
        cpu = MAX(cpu - placement->request->host.cpu, 0);
    *ret_left = 0;
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const struct taken taken = placement_taken(node, card, placement);
        if (i == 0 || node->cards[i - 1].kind != card->kind)
            kind = outlook_kind(outlook, card->kind);
        if (i > 0 && row.prospect != (kind ? kind->prospect : NULL)) {
            lost += row_lost(&row, cpu);
            row = (struct row){0};
        }
        row.prospect = kind ? kind->prospect : NULL;
        const int32_t part = part_free(node, card, &taken);
        row_add(&row, part);
        *ret_left += (double)part / PART_WHOLE;
    }
    return lost + row_lost(&row, cpu);
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
    double left;

    if (!outlook)
        return cost_binpack(node, card, ask, demand);
    placement.shares[0] = (struct share){.memory = {card_bytes(node, card, ask->memory)},
                                         .card = card->index,
                                         .core = ask->core,
                                         .exclusive = ask->exclusive};
    const double before = node_lost(outlook, node, NULL, &left);
    return (struct cost){.loss = -score(before, node_lost(outlook, node, &placement, &left))};
}

void rate_fgd(const struct node *node, const struct placement *placement,
              const struct demand *demand, struct rank *ret_rank)
{
    const struct outlook *outlook = demand_outlook(demand);
    double left;

    if (!outlook || (placement->n_shares > 0 && placement->shares[0].device)) {
        rate_binpack(node, placement, demand, ret_rank);
        return;
    }
    const double before = node_lost(outlook, node, NULL, &left);
    ret_rank->loss = -(double)score(before, node_lost(outlook, node, placement, &left));
}
