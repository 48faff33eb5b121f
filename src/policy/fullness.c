/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that go by how full cards and nodes are. */
#include "policy/policies.h"

/* What is left of compute, then of slots: where memory says nothing, as on nodes that do not hand it
 * out, these tell a full card from an empty one. */
static int64_t rest_free(const struct node *node, const struct card *card)
{
    return ((int64_t)card_core_free(node, card) << 32) + card_slots_free(node, card);
}

struct cost cost_binpack(const struct node *node, const struct card *card,
                         const struct card_ask *ask, const struct demand *demand)
{
    return (struct cost){card_memory_free(node, card), rest_free(node, card)};
}

struct cost cost_spread(const struct node *node, const struct card *card,
                               const struct card_ask *ask, const struct demand *demand)
{
    return (struct cost){-card_memory_free(node, card), -rest_free(node, card)};
}

struct cost cost_first_fit(const struct node *node, const struct card *card,
                                  const struct card_ask *ask, const struct demand *demand)
{
    return (struct cost){0};
}

/* What a step of compute capability is worth under "strongest", in cards: more than nodes have. */
#define STRENGTH 1000.0

/* The part of the card that is in use, beside what is taken of it now. */
static double used_part(const struct node *node, const struct card *card,
                        const struct taken *taken)
{
    const int64_t memory = card->memory - card_memory_free(node, card) + taken->memory;
    const int64_t core = card->core - card_core_free(node, card) + taken->core;

    return MAX(card->memory > 0 ? (double)memory / (double)card->memory : 0,
               card->core > 0 ? (double)core / (double)card->core : 0);
}

struct cost cost_weighted(const struct node *node, const struct card *card,
                          const struct card_ask *ask, const struct policy *policy,
                          const struct weights *weights)
{
    const int64_t memory =
        card->memory - card_memory_free(node, card) + card_bytes(node, card, ask->memory);
    const int64_t core = card->core - card_core_free(node, card) + card_core(card, ask->core);
    double part = 0;

    if (card->slots > 0)
        part += weights->slots * (double)(card->holders + node->unplaced_holders + 1) / card->slots;
    if (card->core > 0)
        part += weights->core * (double)core / card->core;
    if (card->memory > 0)
        part += weights->memory * (double)memory / (double)card->memory;
    part /= (double)weights->slots + weights->core + weights->memory;
    return (struct cost){.loss = (int64_t)(-policy->fullness * part * COST_CARD)};
}

/* The part of a pool's devices that is in use after the placement. */
static double pool_used_part(const struct pool *pool, const struct placement *placement)
{
    int64_t used = pool->used;

    for (uint32_t i = 0; i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device && g_str_equal(share->device, pool->resource))
            used += share->devices;
    }
    return pool->capacity > 0 ? (double)used / pool->capacity : 0;
}

/* What is in use after a placement. */
struct fullness {
    double node;   /* of it: of cards and devices, each the mean of their parts */
    double opened; /* cards of the placement that were free before */
    double left;   /* of the placement's cards, in cards */
};

static struct fullness measure(const struct node *node, const struct placement *placement)
{
    struct fullness fullness = {0};

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        const struct taken taken = placement_taken(node, card, placement);
        const double after = used_part(node, card, &taken);
        fullness.node += after / node->n_cards;
        if (taken.holders == 0)
            continue;
        const double before = used_part(node, card, &(struct taken){0});
        if (after == before)
            continue;
        fullness.left += 1 - MIN(after, 1);
        fullness.opened += before == 0;
    }
    for (int32_t i = 0; i < node->n_pools; i++)
        fullness.node += pool_used_part(&node->pools[i], placement) / node->n_pools;
    return fullness;
}

/* What is left on the cards that the placement uses and that nobody else can use whole. A device of
 * a pool is taken as a whole, so that it is the smallest that is enough. */
void rate_binpack(const struct node *node, const struct placement *placement,
                  const struct demand *demand, struct rank *ret_rank)
{
    const char *device = placement->n_shares > 0 ? placement->shares[0].device : NULL;
    const struct fullness after = measure(node, placement);

    ret_rank->loss = after.opened + after.left;
    ret_rank->ties[0] = device ? node_pool(node, device)->memory : 0;
    ret_rank->ties[1] = (int64_t)(-1000 * after.node);
}

void rate_spread(const struct node *node, const struct placement *placement,
                        const struct demand *demand, struct rank *ret_rank)
{
    ret_rank->loss = measure(node, placement).node;
}

/* For those who cannot wait: what is gained by a better card is worth more than whole cards. */
void rate_strongest(const struct node *node, const struct placement *placement,
                           const struct demand *demand, struct rank *ret_rank)
{
    rate_binpack(node, placement, demand, ret_rank);
    ret_rank->loss -= node->compute * STRENGTH;
}
