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
 *   U = sqrt(u of the CPU ^ 2 + u of the memory ^ 2), at most R
 *   u = E[max(X - C, 0)] / c, at most R, with X normal, of mean c * R and variance v * R
 *   G = GROUP_PART * sum of g * k * d * (N + RETURN_PART ^ m)
 *       over cards and each pool, and their groups
 *
 *   w   what is free of a card, or a device, is worth to the pods that are expected, in cards
 *       (card_values_worth), about 1 for a whole card, 0 to its size of a device; what is free of an
 *       unknown one
 *   s   kind.share, 0 to 1: the part of the kind that pods will want for which others do not do
 *   U   of R, what will go unused for want of CPU or of the node's memory (unused), in cards
 *   C   the node's CPU that is free, in thousandths of a core, or its memory, in GiB
 *   c   COMPANY_PART * company.mean: as much of it must come with one card
 *   v   company.variance, the square of that for one card
 *   G   what whole cards that are free together are worth beside that (groups_worth), in cards
 *   g   group.want, 0 to 1; k, group.cards, and p, group.cpu: what a pod of the group asks for
 *   N   places for such pods: min(F / k, C / p), rounded down
 *   m   cards or devices that must become free for one place more; without that part of G where the
 *       node is too small for one
 *   F   free whole cards, or free devices of the pool; d, the size of one, in cards
 */
#include "policy/policies.h"

#include "core/bytes.h"
#include "core/card.h"

#include <math.h>

/* Pods that need much CPU or memory are kept apart from cards where they can be, so not all that
 * usually comes with a card has to be there. */
#define COMPANY_PART 0.3

/* A place that everybody wants who wants several cards is worth so much more than its cards. */
#define GROUP_PART 0.1

/* A place that is not there is worth what it would be if it were, times this for each card that has to
 * become free first: pods leave, and a place of which one card is taken comes back sooner than one of
 * which half are. If nothing were left of it, whoever has to break a place might as well break
 * another. */
#define RETURN_PART 0.8

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

/* Of so many cards' worth of room, how much is expected to go unused for want of one sort of company. */
static double shortfall(const struct company *company, double room, double left)
{
    const double each = COMPANY_PART * company->mean, mean = each * room;
    const double deviation = sqrt(company->variance * room);
    double over = mean - left;

    if (mean <= 0)
        return 0;
    if (deviation > 0)
        over = deviation * excess((left - mean) / deviation);
    return CLAMP(over / each, 0, room);
}

/* Pods that need much CPU are mostly those that need much memory, so the two do not add up. But where
 * one of them is short, the other is not free either. */
static double unused(const struct value_model *value_model, double room, const struct host *left)
{
    double cpu = 0, memory = 0;

    if (left->cpu != INT64_MAX)
        cpu = shortfall(&value_model->cpu, room, (double)left->cpu);
    if (left->memory != INT64_MAX)
        memory = shortfall(&value_model->memory, room, (double)left->memory / GIB);
    if (cpu == 0 || memory == 0)
        return MAX(cpu, memory);
    return MIN(sqrt(cpu * cpu + memory * memory), room);
}

/* What a node is worth, and how far it is used. */
struct worth {
    double cards;  /* what it is worth */
    int32_t units; /* cards and devices */
    int32_t whole; /* of them, those that are free */
    int64_t left;  /* the sum of all free parts */
    int64_t tight; /* of it, what is left on the cards of the placement, for each share */
};

/* RETURN_PART ^ m, up to the largest group. */
static const double *returns_table(void)
{
    static double table[SHAPE_CARDS_MAX + 1];
    static gsize made;

    if (g_once_init_enter(&made)) {
        table[0] = 1;
        for (int i = 1; i <= SHAPE_CARDS_MAX; i++)
            table[i] = RETURN_PART * table[i - 1];
        g_once_init_leave(&made, 1);
    }
    return table;
}

/* The cards of a node, or the devices of one of its pools. */
struct bunch {
    int32_t units;
    int32_t whole;   /* of them, those that are free */
    double size;     /* of one, in cards */
    int64_t cpu_all; /* of the node, free or not; 0: not known */
    int64_t cpu;     /* of it, what is free */
};

/* Places for pods of the group where there are so many units and so much CPU. */
static int64_t places(const struct group *group, int32_t units, int64_t cpu)
{
    const int64_t n = units / group->cards;

    return cpu >= n * group->cpu ? n : cpu / group->cpu;
}

/* What it is worth to those who want several and would find the CPU, too. */
static double groups_worth(const struct card_values *values, const struct bunch *bunch)
{
    const int64_t cpu_all = bunch->cpu_all > 0 ? bunch->cpu_all : INT64_MAX;
    const double *returns = returns_table();
    double cards = 0;

    for (int32_t i = 0; values && i < values->n_groups; i++) {
        const struct group *group = &values->groups[i];
        const int64_t now = places(group, bunch->whole, bunch->cpu);
        const int64_t missing = MAX((now + 1) * group->cards - bunch->whole, 1);
        double n = (double)now;
        if (now < places(group, bunch->units, cpu_all))
            n += returns[missing];
        cards += GROUP_PART * group->want * group->cards * n * bunch->size;
    }
    return cards;
}

/* What the node has free beside its GPUs, once the placement is made. */
static struct host company_left(const struct node *node, const struct placement *placement)
{
    struct host left = node_host_free(node);

    if (left.cpu != INT64_MAX && placement)
        left.cpu = MAX(left.cpu - placement->request->host.cpu, 0);
    if (left.memory != INT64_MAX && placement)
        left.memory = MAX(left.memory - placement->request->host.memory, 0);
    return left;
}

static struct worth measure(const struct value_model *value_model, const struct node *node,
                            const struct placement *placement)
{
    const struct valued_kind *kind = NULL;
    const struct room whole = {PART_WHOLE, PART_WHOLE};
    struct worth worth = {0};
    double room = 0, weighted = 0, groups = 0;
    const struct host beside = company_left(node, placement);

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
    struct bunch bunch = {node->n_cards, worth.whole, 1, node->host.cpu, beside.cpu};
    groups = groups_worth(kind ? kind->values : NULL, &bunch);
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const int32_t left = pool_free(pool, placement);
        const double size = pool_device_size(pool);
        kind = value_kind(value_model, pool->kind);
        const double each = kind ? size * (double)card_values_worth(kind->values, whole) : size;
        room += left * each;
        weighted += left * each * (1 + (kind ? kind->share : 0));
        bunch.units = pool->capacity;
        bunch.whole = left;
        bunch.size = size;
        groups += groups_worth(kind ? kind->values : NULL, &bunch);
        worth.units += pool->capacity;
        worth.whole += left;
        worth.left += (int64_t)(PART_WHOLE * left * size);
    }
    if (room > 0)
        worth.cards = weighted * (1 - unused(value_model, room, &beside) / room);
    worth.cards += groups;
    return worth;
}

struct cost cost_oc(const struct node *node, const struct card *card, const struct card_ask *ask,
                    const struct demand *demand)
{
    const struct value_model *value_model = demand_value_model(demand);
    const struct valued_kind *kind = value_model ? value_kind(value_model, card->kind) : NULL;

    if (!kind)
        return cost_binpack(node, card, ask, demand);
    const struct taken none = {0},
                       taken = {card_bytes(node, card, ask->memory), card_core(card, ask->core), 1,
                                card_excludes(card, ask->exclusive, ask->core)};
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
