/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/occupancy.h"

static double part(int64_t used, int64_t whole)
{
    return whole > 0 ? MIN((double)used / (double)whole, 1) : 0;
}

static double card_used(const struct card *card)
{
    return card->exclusive > 0 ? 1
                               : MAX(part(card->memory_used, card->memory),
                                     part(card->core_used, card->core));
}

static bool is_overcommitted(const struct card *card)
{
    return card->memory_used > card->memory || card->core_used > card->core ||
           (card->slots > 0 && card->holders > card->slots) ||
           (card->exclusive > 0 && card->holders > 1);
}

static void add_cards(const struct node *node, struct occupancy *occupancy)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const double used = card_used(card);
        occupancy->gpus += 1;
        occupancy->used += used;
        *(card->holders > 0 ? &occupancy->part_used : &occupancy->untouched) += 1 - used;
        occupancy->overcommitted += is_overcommitted(card);
    }
}

/* Which card a device is of, only the node knows. */
static void add_pools(const struct node *node, struct occupancy *occupancy)
{
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        const double each = 1.0 / MAX(pool->replicas, 1);
        const double used = MIN(pool->used, pool->capacity) * each;
        occupancy->gpus += pool->capacity * each;
        occupancy->used += used;
        *(pool->used > 0 && pool->shared ? &occupancy->part_used : &occupancy->untouched) +=
            pool->capacity * each - used;
        occupancy->overcommitted += pool->used > pool->capacity;
    }
}

void occupancy_read(const GPtrArray *nodes, struct occupancy *ret_occupancy)
{
    struct occupancy occupancy = {.memory_unit = 1};
    double memory = 0;
    int64_t cards = 0;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->present)
            continue;
        add_cards(node, &occupancy);
        if (node->n_cards == 0)
            add_pools(node, &occupancy);
        for (int32_t k = 0; k < node->n_cards; k++)
            memory += (double)node->cards[k].memory;
        cards += node->n_cards;
        occupancy.memory_unit = MAX(occupancy.memory_unit, node->memory_unit);
    }
    occupancy.card_memory = cards > 0 ? (int64_t)(memory / (double)cards) : 0;
    *ret_occupancy = occupancy;
}

static double memory_part(const struct occupancy *occupancy, struct amount amount)
{
    if (amount.kind == AMOUNT_THOUSANDTHS)
        return (double)amount.value / 1000;
    return part(amount_bytes(amount, occupancy->memory_unit), occupancy->card_memory);
}

double occupancy_of_request(const struct occupancy *occupancy, const struct request *request)
{
    double cards = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        const double one = ask->device || ask->exclusive
                               ? 1
                               : MAX(memory_part(occupancy, ask->memory),
                                     part(ask->core, CORE_WHOLE));
        cards += ask->init ? 0 : one * ask->count;
    }
    return cards;
}
