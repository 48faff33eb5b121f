/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oc, opportunity cost: a node is worth what the pods that are expected could still make of it, and a
 * pod goes where that falls least.
 *
 *   loss = V(before) - V(after), with V of a node, in cards
 *
 *   V = S * (1 - U / R) + G
 *   R = sum of w             over its cards and the free devices of its pools
 *   S = sum of w * (1 + s)   over the same
 *   U = E[max(X - C, 0)] / c, at most R, with X normal, of mean c * R and variance v * R
 *   G = GROUP_PART * sum of g * k * d * min(F / k, C / p), rounded down
 *       over cards and each pool, and their groups with k <= F
 *
 *   w   what is free of a card, or a device, is worth to the pods that are expected, in cards
 *       (card_values_worth): 0 to 1 of a card, 0 to its size of a device; what is free of an unknown one
 *   s   kind.share, 0 to 1: the part of the kind that pods will want for which others do not do
 *   U   of R, what will go unused for want of CPU (shortfall), in cards
 *   C   the node's CPU that is free, in thousandths of a core
 *   c   CPU_PART * cpu_mean: the CPU that must come with one card, in thousandths of a core
 *   v   cpu_variance, the square of that for one card
 *   G   what whole cards that are free together are worth beside that (groups_worth), in cards
 *   g   group.want, 0 to 1; k, group.cards, and p, group.cpu: what a pod of the group asks for
 *   F   free whole cards, or free devices of the pool; d, the size of one, in cards
 */
#include "policy/policies.h"

#include <math.h>

/* Pods that need much CPU are kept apart from cards where they can be, so not all that usually comes
 * with a card has to be there. */
#define CPU_PART 0.3

/* A place that everybody wants who wants several cards is worth so much more than its cards. */
#define GROUP_PART 0.1

/* How much a normal variable exceeds z on average, between -Z_MAX and Z_MAX in steps. */
#define Z_MAX 6
#define Z_STEPS 64

static const double *excess_table(void)
{
    static double table[2 * Z_MAX * Z_STEPS + 1];
    static gsize made;

    if (g_once_init_enter(&made)) {
        for (int i = 0; i <= 2 * Z_MAX * Z_STEPS; i++) {
            const double z = (double)i / Z_STEPS - Z_MAX;
            table[i] = exp(-z * z / 2) / sqrt(2 * G_PI) - z * erfc(z / G_SQRT2) / 2;
        }
        g_once_init_leave(&made, 1);
    }
    return table;
}

/* Asked twice for each of thousands of nodes, so that it is looked up. */
static double excess(double z)
{
    const double *table = excess_table();

    if (z >= Z_MAX)
        return 0;
    if (z <= -Z_MAX)
        return -z;
    const double at = (z + Z_MAX) * Z_STEPS;
    const int i = (int)at;
    return table[i] + (table[i + 1] - table[i]) * (at - i);
}

/* Of so many cards' worth of room, how much is expected to go unused for want of CPU. */
static double shortfall(const struct value_model *value_model, double room, int64_t cpu_free)
{
    const double each = CPU_PART * value_model->cpu_mean, mean = each * room;
    const double deviation = sqrt(value_model->cpu_variance * room);
    double over = mean - (double)cpu_free;

    if (cpu_free == INT64_MAX || mean <= 0)
        return 0;
    if (deviation > 0)
        over = deviation * excess(((double)cpu_free - mean) / deviation);
    return CLAMP(over / each, 0, room);
}

/* What a node is worth, and how far it is used. */
struct worth {
    double cards;  /* what it is worth */
    int32_t units; /* cards and devices */
    int32_t whole; /* of them, those that are free */
    int64_t left;  /* the sum of all free parts */
    int64_t tight; /* of it, what is left on the cards of the placement, for each share */
};

/* Free cards, or devices of one pool, of which each is so many cards: what they are worth to those
 * who want several and would find the CPU, too. */
static double groups_worth(const struct card_values *values, int32_t whole, int64_t cpu, double each)
{
    double cards = 0;

    for (int32_t i = 0; values && i < values->n_groups; i++) {
        const struct group *group = &values->groups[i];
        if (group->cards > whole)
            break;
        const int64_t n = whole / group->cards;
        const int64_t fed = group->cpu > 0 ? MIN(n, cpu / group->cpu) : n;
        cards += GROUP_PART * group->want * (double)(group->cards * fed) * each;
    }
    return cards;
}

static struct worth measure(const struct value_model *value_model, const struct node *node,
                            const struct placement *placement)
{
    const struct kind *kind = NULL;
    const struct room whole = {PART_WHOLE, PART_WHOLE};
    struct worth worth = {0};
    double room = 0, weighted = 0, groups = 0;
    int64_t cpu = node_host_free(node).cpu;

    if (cpu != INT64_MAX && placement)
        cpu = MAX(cpu - placement->request->host.cpu, 0);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const struct taken taken = placement_taken(node, card, placement);
        const struct room free = room_free(node, card, &taken);
        if (!kind || kind->key != card->kind)
            kind = value_kind(value_model, card->kind);
        const int32_t left = card_values_left(kind ? kind->values : NULL, free);
        const double each =
            kind ? (double)card_values_worth(kind->values, free) : (double)left / PART_WHOLE;
        room += each;
        weighted += each * (1 + (kind ? kind->share : 0));
        worth.whole += room_part(free) == PART_WHOLE;
        worth.left += left;
        worth.tight += (int64_t)taken.holders * left;
    }
    worth.units = node->n_cards;
    groups = groups_worth(kind ? kind->values : NULL, worth.whole, cpu, 1);
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const int32_t left = pool_free(pool, placement);
        const double size = pool_device_size(pool);
        kind = value_kind(value_model, pool->kind);
        const double each = kind ? size * (double)card_values_worth(kind->values, whole) : size;
        room += left * each;
        weighted += left * each * (1 + (kind ? kind->share : 0));
        groups += groups_worth(kind ? kind->values : NULL, left, cpu, size);
        worth.units += pool->capacity;
        worth.whole += left;
        worth.left += (int64_t)(PART_WHOLE * left * size);
    }
    if (room > 0)
        worth.cards = weighted * (1 - shortfall(value_model, room, cpu) / room);
    worth.cards += groups;
    return worth;
}

struct cost cost_oc(const struct node *node, const struct card *card, const struct card_ask *ask,
                    const struct demand *demand)
{
    const struct value_model *value_model = demand_value_model(demand);
    const struct kind *kind = value_model ? value_kind(value_model, card->kind) : NULL;

    if (!kind)
        return cost_binpack(node, card, ask, demand);
    const struct taken none = {0}, taken = {card_bytes(node, card, ask->memory),
                                            card_core(card, ask->core), 1, ask->exclusive};
    const struct card_values *values = kind->values;
    const struct room before = room_free(node, card, &none), after = room_free(node, card, &taken);
    const int32_t left = card_values_left(values, after);
    return (struct cost){(int64_t)(COST_CARD * (double)(card_values_worth(values, before) -
                                                        card_values_worth(values, after))),
                         room_part(before) == PART_WHOLE ? PART_WHOLE + left : left};
}

/* Between losses that count as equal: a used card before a free one, a used node before a free one;
 * the tighter card, the smaller device; the fuller node. */
static void set_ties(const struct node *node, const struct placement *placement,
                     const struct worth *before, const struct worth *after, struct rank *ret_rank)
{
    const bool fresh = before->whole == before->units;

    ret_rank->ties[0] = fresh ? 2 : after->whole < before->whole;
    ret_rank->ties[1] = after->tight;
    for (uint32_t i = 0; i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device)
            ret_rank->ties[1] += node_pool(node, share->device)->memory;
    }
    ret_rank->ties[2] = after->left;
}

void rate_oc(const struct node *node, const struct placement *placement,
             const struct demand *demand, struct rank *ret_rank)
{
    const struct value_model *value_model = demand_value_model(demand);

    if (!value_model) {
        rate_binpack(node, placement, demand, ret_rank);
        return;
    }
    const struct worth before = measure(value_model, node, NULL);
    const struct worth after = measure(value_model, node, placement);
    ret_rank->loss = before.cards - after.cards;
    set_ties(node, placement, &before, &after, ret_rank);
}
