/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/room.h"

#include "core/card.h"

struct taken placement_taken(const struct node *node, const struct card *card,
                             const struct placement *placement)
{
    struct taken taken = {0};

    for (uint32_t i = 0; placement && i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device || share->card != card->index)
            continue;
        taken.memory += card_bytes(node, card, share->memory);
        taken.core += card_core(card, share->core);
        taken.holders++;
        taken.exclusive |= card_excludes(card, share->exclusive, share->core);
    }
    return taken;
}

struct room room_free(const struct node *node, const struct card *card, const struct taken *taken)
{
    const int64_t memory = card_memory_free(node, card) - taken->memory;
    const int64_t core = card_core_free(node, card) - taken->core;
    const int32_t holders = card->holders + node->unplaced_holders + taken->holders;
    const int32_t most = holders > 0 ? PART_WHOLE - 1 : PART_WHOLE;
    struct room room = {most, most};

    if (!card_is_open(card) || taken->exclusive || card->exclusive + node->unplaced_exclusive > 0 ||
        (card->slots > 0 && holders >= card->slots) || memory < 0 || core <= 0)
        return (struct room){0};
    if (card->memory > 0)
        room.memory = (int32_t)MIN(most, PART_WHOLE * memory / card->memory);
    if (card->core > 0)
        room.core = (int32_t)MIN(most, PART_WHOLE * core / card->core);
    return room;
}

struct room room_wanted(const struct node *node, const struct card *card,
                        const struct shape *shape)
{
    const int64_t memory = card_bytes(node, card, shape->memory);
    const int64_t core = card_core(card, shape->core);
    struct room room = {1, 1};

    if (shape->cards == 0 || shape->device || memory > card->memory || core > card->core ||
        (shape->terms && shape->terms->memory_min > card->memory))
        return (struct room){0};
    if (card_excludes(card, shape->exclusive, shape->core))
        return (struct room){PART_WHOLE, PART_WHOLE};
    if (card->memory > 0)
        room.memory = (int32_t)MAX(1, PART_WHOLE * memory / card->memory);
    if (card->core > 0)
        room.core = (int32_t)MAX(1, PART_WHOLE * core / card->core);
    return room;
}

struct room room_wanted_device(const struct pool *pool, const struct shape *shape)
{
    const bool fits =
        g_strcmp0(shape->device, pool->resource) == 0 && pool_is_known(pool, shape->terms) &&
        (!shape->terms || pool->memory == 0 || shape->terms->memory_min <= pool->memory);

    return fits ? (struct room){PART_WHOLE, PART_WHOLE} : (struct room){0};
}

int32_t pool_free(const struct pool *pool, const struct placement *placement)
{
    int32_t left = pool->capacity - pool->used;

    for (uint32_t i = 0; placement && i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device && !share->init && g_str_equal(share->device, pool->resource))
            left -= share->devices;
    }
    return MAX(left, 0);
}

double pool_device_size(const struct pool *pool)
{
    return 1.0 / MAX(pool->replicas, 1);
}
