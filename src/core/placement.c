/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/placement.h>

/* --- policies ------------------------------------------------------------------------------- */

static int64_t cost_binpack(const struct node *node, const struct card *card)
{
    return card_memory_free(node, card);
}

static int64_t cost_spread(const struct node *node, const struct card *card)
{
    return -card_memory_free(node, card);
}

static int64_t cost_first_fit(const struct node *node, const struct card *card)
{
    return 0;
}

const struct policy policies[] = {
    {"binpack", "the fullest card that still has room, so that whole cards stay free",
     cost_binpack},
    {"spread", "the emptiest card", cost_spread},
    {"first-fit", "the card of the lowest index that has room", cost_first_fit},
    {0},
};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *policy = policies; policy->name; policy++) {
        if (g_strcmp0(policy->name, name) == 0)
            return policy;
    }
    return NULL;
}

/* --- search --------------------------------------------------------------------------------- */

/* How far the best card for an ask got; the refusal tells of the one that got furthest. */
enum obstacle {
    OBSTACLE_SIZE,
    OBSTACLE_HEALTH,
    OBSTACLE_MEMORY,
    OBSTACLE_CORE,
    OBSTACLE_NONE,
};

static const enum reason obstacle_reasons[] = {
    [OBSTACLE_SIZE] = REASON_CARD_TOO_SMALL,
    [OBSTACLE_HEALTH] = REASON_CARD_UNHEALTHY,
    [OBSTACLE_MEMORY] = REASON_INSUFFICIENT_MEMORY,
    [OBSTACLE_CORE] = REASON_INSUFFICIENT_CORE,
    [OBSTACLE_NONE] = REASON_INSUFFICIENT_MEMORY, /* cards with room are too few */
};

struct search {
    const struct node *node;
    const struct policy *policy;
    int32_t pinned;
    struct placement *placement; /* shares chosen so far count as taken */
};

static bool taken_by_ask(const struct search *search, uint32_t first_share, int32_t card)
{
    for (uint32_t i = first_share; i < search->placement->n_shares; i++) {
        if (search->placement->shares[i].card == card)
            return true;
    }
    return false;
}

/* The card as it will be with the shares chosen so far. */
static struct card with_chosen(const struct search *search, const struct card *card)
{
    struct card later = *card;

    for (uint32_t i = 0; i < search->placement->n_shares; i++) {
        const struct share *share = &search->placement->shares[i];
        if (share->card != card->index)
            continue;
        later.memory_used += amount_bytes(share->memory, search->node->memory_unit);
        later.core_used += share->core;
        later.holders++;
        later.exclusive += share->exclusive;
    }
    return later;
}

static enum obstacle card_obstacle(const struct node *node, const struct card_ask *ask,
                                   int64_t bytes, const struct card *card)
{
    if (bytes > card->memory)
        return OBSTACLE_SIZE;
    if (!card->healthy)
        return OBSTACLE_HEALTH;
    if (bytes > card_memory_free(node, card) || card->exclusive + node->unplaced_exclusive > 0 ||
        (ask->exclusive && card->holders + node->unplaced_holders > 0))
        return OBSTACLE_MEMORY;
    if (ask->core > card_core_free(node, card))
        return OBSTACLE_CORE;
    return OBSTACLE_NONE;
}

/* The best card for one share of an ask, or NULL and how far the best got. */
static const struct card *best_card(const struct search *search, const struct card_ask *ask,
                                    uint32_t first_share, enum obstacle *ret_obstacle)
{
    const struct node *node = search->node;
    int64_t bytes = amount_bytes(ask->memory, node->memory_unit);
    const struct card *best = NULL;
    int64_t best_cost = 0;
    enum obstacle furthest = OBSTACLE_SIZE;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (search->pinned != CARD_UNKNOWN && card->index != search->pinned)
            continue;
        const struct card later = with_chosen(search, card);
        enum obstacle obstacle = card_obstacle(node, ask, bytes, &later);
        furthest = MAX(furthest, obstacle);
        if (obstacle != OBSTACLE_NONE || taken_by_ask(search, first_share, card->index))
            continue;
        int64_t cost = search->policy->cost(node, &later);
        if (!best || cost < best_cost) {
            best = card;
            best_cost = cost;
        }
    }
    *ret_obstacle = furthest;
    return best;
}

bool placement_is_obvious(const struct node *node, const struct request *request)
{
    const struct card_ask *ask = &request->asks[0];

    return request->n_asks == 1 && ask->count == 1 && ask->core == 0 && !ask->exclusive &&
           amount_bytes(ask->memory, node->memory_unit) <= node->memory_free_max;
}

enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, int32_t pinned,
                           struct placement *ret_placement)
{
    struct search search = {node, policy, pinned, ret_placement};

    ret_placement->n_shares = 0;
    if (node->n_cards == 0)
        return REASON_NOT_GPU_SHARE;
    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        uint32_t first_share = ret_placement->n_shares;

        if (ask->count > node->n_cards || first_share + (uint32_t)ask->count > REQUEST_ASKS_MAX)
            return REASON_CARD_COUNT;
        for (int32_t k = 0; k < ask->count; k++) {
            enum obstacle obstacle;
            const struct card *card = best_card(&search, ask, first_share, &obstacle);
            if (!card)
                return obstacle_reasons[obstacle];
            ret_placement->shares[ret_placement->n_shares++] = (struct share){
                .memory = ask->memory,
                .container = ask->container,
                .card = card->index,
                .core = ask->core,
                .exclusive = ask->exclusive,
            };
        }
    }
    return REASON_NONE;
}
