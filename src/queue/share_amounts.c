/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/share_amounts.h"

#include "core/bytes.h"
#include "core/ledger.h"

#define UNIT 1000 /* thousandths */

static int64_t divide_up(int64_t amount, int64_t by)
{
    return by > 0 ? (amount + by - 1) / by : 0;
}

/* Of a device that kubelet hands out by count, in thousandths of a card. */
static int64_t device_part(const struct share *share)
{
    struct instance_size size;

    if (share->replicas > 0)
        return divide_up(UNIT, share->replicas);
    if (share->device && dialect_read_instance(share->device, &size) && size.slices > 0)
        return divide_up(size.slices * UNIT, 7); /* of a card's slices, MIG's user guide */
    return UNIT;
}

/* Of the share's card, or the node's largest if that is not known. */
static int64_t card_size(const struct node *node, const struct share *share)
{
    const struct card *card = node_share_card(node, share);
    int64_t most = 0;

    if (card)
        return card->memory;
    for (int32_t i = 0; i < node->n_cards; i++)
        most = MAX(most, node->cards[i].memory);
    return most;
}

static int64_t memory_of(const struct node *node, const struct share *share)
{
    const int64_t bytes = card_bytes(node, node_share_card(node, share), share->memory);

    return MIN(bytes, SHARE_AMOUNT_MAX / UNIT);
}

int64_t share_gpus(const struct node *node, const struct share *share)
{
    const int64_t size = share->device ? 0 : card_size(node, share);

    if (share->device)
        return share->devices * device_part(share);
    if (share->exclusive || size == 0)
        return share->exclusive ? UNIT : share->core;
    return MAX(share->core, divide_up(memory_of(node, share) * UNIT, size));
}

int64_t share_kib(const struct node *node, const struct share *share)
{
    const struct pool *pool = share->device ? node_pool(node, share->device) : NULL;
    struct instance_size size;
    int64_t bytes = 0;

    if (!share->device)
        bytes = share->exclusive ? card_size(node, share) : memory_of(node, share);
    else if (pool && pool->memory > 0)
        bytes = pool->memory * share->devices;
    else if (dialect_read_instance(share->device, &size))
        bytes = size.memory * share->devices;
    return divide_up(bytes, KIB);
}

int64_t share_units(const struct node *node, const struct share *share,
                    const struct dialect *dialect, const char *key)
{
    const struct dialect_words *words = &dialect->words;
    const int64_t unit = words->memory_unit ? words->memory_unit : node->memory_unit;
    int64_t most = 0;

    if (share->device)
        return g_str_equal(share->device, key) ? share->devices * UNIT : 0;
    if (g_strcmp0(words->memory, key) == 0)
        most = share->memory.kind == AMOUNT_NODE_UNITS
                   ? share->memory.value * UNIT
                   : divide_up(memory_of(node, share), unit) * UNIT;
    if (g_strcmp0(words->percent, key) == 0)
        most = MAX(most, divide_up(memory_of(node, share) * 100, card_size(node, share)) * UNIT);
    if (g_strcmp0(words->core, key) == 0)
        most = MAX(most, share->core * INT64_C(100) * UNIT / CORE_WHOLE);
    if (g_strcmp0(words->whole, key) == 0 && share->exclusive)
        most = MAX(most, words->whole_units * INT64_C(1) * UNIT);
    if (g_strcmp0(words->count, key) == 0)
        most = MAX(most, UNIT);
    return most;
}
