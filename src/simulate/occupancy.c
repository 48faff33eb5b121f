/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/occupancy.h"

#include "core/ledger.h"
#include "policy/room.h"

#include <gpuledger/dialect.h>

static double part(int64_t used, int64_t whole)
{
    return whole > 0 ? MIN((double)used / (double)whole, 1) : 0;
}

static double card_used(const struct node *node, const struct card *card)
{
    return card->exclusive > 0 ? 1
                               : MAX(part(card->memory_used + node->unplaced_memory, card->memory),
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
        const double used = card_used(node, card);
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
        const double each = pool_device_size(pool);
        const double used = MIN(pool->used, pool->capacity) * each;
        occupancy->gpus += pool->capacity * each;
        occupancy->used += used;
        *(pool->used > 0 && pool->shared ? &occupancy->part_used : &occupancy->untouched) +=
            pool->capacity * each - used;
        occupancy->overcommitted += pool->used > pool->capacity;
    }
}

void occupancy_read_node(const struct node *node, struct occupancy *ret_occupancy)
{
    *ret_occupancy = (struct occupancy){0};
    add_cards(node, ret_occupancy);
    if (node->n_cards == 0)
        add_pools(node, ret_occupancy);
}

void occupancy_read(const GPtrArray *nodes, struct occupancy *ret_occupancy)
{
    struct occupancy sum = {0};

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct occupancy one;
        if (!node->present)
            continue;
        occupancy_read_node(node, &one);
        sum.gpus += one.gpus;
        sum.used += one.used;
        sum.part_used += one.part_used;
        sum.untouched += one.untouched;
        sum.overcommitted += one.overcommitted;
    }
    *ret_occupancy = sum;
}

/* --- requests --------------------------------------------------------------------------------- */

static double asked_of_card(const struct node *node, const struct card *card,
                            const struct card_ask *ask)
{
    return ask->exclusive ? 1
                          : MAX(part(card_bytes(node, card, ask->memory), card->memory),
                                part(card_core(card, ask->core), card->core));
}

/* On average over the node's cards that have so much; negative: none has. */
static double asked_of_cards(const struct node *node, const struct card_ask *ask,
                             const struct terms *terms)
{
    double sum = 0;
    int32_t n = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (!terms_accept_card(terms, card) || card_bytes(node, card, ask->memory) > card->memory)
            continue;
        sum += asked_of_card(node, card, ask);
        n++;
    }
    return n > 0 ? sum / n : -1;
}

static double asked_of_devices(const struct node *node, const struct card_ask *ask)
{
    const struct pool *pool = node_pool(node, ask->device);

    return pool && pool->capacity > 0 ? pool_device_size(pool) : -1;
}

/* What it comes to on the node; negative: the node has no such cards. */
static double asked_of_node(const struct node *node, const struct request *request)
{
    double cards = 0;

    while (request && !node_offers(node, request->dialect))
        request = request->alternative;
    for (uint32_t i = 0; request && i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        const double one =
            ask->device ? asked_of_devices(node, ask) : asked_of_cards(node, ask, request->terms);
        if (one < 0)
            return -1;
        cards += ask->init ? 0 : one * ask->count;
    }
    return request ? cards : -1;
}

/* Of cards that no node has: whole ones, or the part that it names itself. */
static double asked_of_nobody(const struct request *request)
{
    double cards = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        const bool named = !ask->device && !ask->exclusive;
        const double memory =
            ask->memory.kind == AMOUNT_THOUSANDTHS ? part(ask->memory.value, CORE_WHOLE) : 0;
        const double one = named ? MAX(memory, part(ask->core, CORE_WHOLE)) : 1;
        cards += ask->init ? 0 : (one > 0 ? one : 1) * ask->count;
    }
    return cards;
}

double occupancy_of_request(const GPtrArray *nodes, const uint8_t *barred,
                            const struct request *request)
{
    double sum = 0;
    guint n = 0;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const double cards = node && !(barred && barred[i]) ? asked_of_node(node, request) : -1;
        if (cards < 0)
            continue;
        sum += cards;
        n++;
    }
    return n > 0 ? sum / n : asked_of_nobody(request);
}
