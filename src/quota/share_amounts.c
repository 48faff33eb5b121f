/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/share_amounts.h"

#include "core/bytes.h"
#include "core/ledger.h"

static int64_t divide_up(int64_t amount, int64_t by)
{
    return by > 0 ? (amount + by - 1) / by : 0;
}

/* In thousandths: some resources are counted in bytes. */
static int64_t units(int64_t n)
{
    return MIN(n, SHARE_AMOUNT_MAX / 1000) * 1000;
}

/* `amount` is at most INT64_MAX / SHARE_UNIT. */
static int64_t part(int64_t amount, int64_t of)
{
    return of > 0 && amount > 0 ? CLAMP(amount * SHARE_UNIT / of, 1, SHARE_AMOUNT_MAX) : 0;
}

int64_t share_thousandths(int64_t amount)
{
    return (amount + SHARE_UNIT / 2000) / (SHARE_UNIT / 1000);
}

/* Of a card; of a device that kubelet hands out by count. */
static int64_t device_part(const struct share *share)
{
    struct instance_size size;

    if (share->replicas > 0)
        return part(1, share->replicas);
    if (share->device && dialect_read_instance(share->device, &size) && size.slices > 0)
        return part(size.slices, 7); /* of a card's slices, MIG's user guide */
    return SHARE_UNIT;
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

    return MIN(bytes, INT64_MAX / SHARE_UNIT);
}

bool share_pods_are_alike(const struct allocation *one, const struct allocation *other)
{
    const struct share *left = &one->shares[0], *right = &other->shares[0];

    return one->n_shares == 1 && other->n_shares == 1 && one->dialect == other->dialect &&
           !left->device && !right->device && left->memory.kind == right->memory.kind &&
           left->memory.value == right->memory.value && left->core == right->core &&
           left->exclusive == right->exclusive && left->init == right->init &&
           card_size(one->node, left) == card_size(other->node, right);
}

int64_t share_gpus(const struct node *node, const struct share *share)
{
    const int64_t size = share->device ? 0 : card_size(node, share);

    if (share->device)
        return MIN(share->devices * device_part(share), SHARE_AMOUNT_MAX);
    if (share->exclusive)
        return SHARE_UNIT;
    return MAX(part(share->core, CORE_WHOLE), part(memory_of(node, share), size));
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

/* Who asks for all the compute of a card in one dialect names memory beside it, has all of it, and is noted
 * down with none. */
static bool has_all_memory(const struct share *share, const struct dialect_words *words)
{
    return share->exclusive && share->memory.value == 0 && words->core &&
           g_strcmp0(words->whole, words->core) == 0;
}

int64_t share_units(const struct node *node, const struct share *share,
                    const struct dialect *dialect, const char *key)
{
    const struct dialect_words *words = &dialect->words;
    const int64_t unit = words->memory_unit ? words->memory_unit : node->memory_unit;
    int64_t most = 0;

    if (share->device)
        return g_str_equal(share->device, key) ? units(share->devices) : 0;
    if (g_strcmp0(words->memory, key) == 0)
        most = share->memory.kind == AMOUNT_NODE_UNITS
                   ? units(share->memory.value)
                   : units(divide_up(has_all_memory(share, words) ? card_size(node, share)
                                                                  : memory_of(node, share),
                                     unit));
    if (g_strcmp0(words->percent, key) == 0)
        most = MAX(most, units(divide_up(memory_of(node, share) * 100, card_size(node, share))));
    if (g_strcmp0(words->core, key) == 0)
        most = MAX(most, share->core * INT64_C(100) * 1000 / CORE_WHOLE);
    if (g_strcmp0(words->whole, key) == 0 && share->exclusive)
        most = MAX(most, units(words->whole_units));
    if (g_strcmp0(words->count, key) == 0)
        most = MAX(most, units(1));
    return most;
}
