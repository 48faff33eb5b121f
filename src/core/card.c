/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of cards and pools: which one it is, what an amount is there, what is left of it,
 * who has some of it.
 */
#include "core/card.h"

#include "core/bytes.h"

#include <string.h>

int64_t amount_bytes(struct amount amount, int64_t memory_unit)
{
    int64_t unit = amount.kind == AMOUNT_NODE_UNITS ? memory_unit : 1;
    int64_t bytes;

    if (__builtin_mul_overflow(amount.value, unit, &bytes) || bytes > AMOUNT_BYTES_MAX)
        return AMOUNT_BYTES_MAX;
    return MAX(bytes, 0);
}

int64_t card_bytes(const struct node *node, const struct card *card, struct amount amount)
{
    int64_t whole = card ? card->memory : 0, part;

    if (amount.kind != AMOUNT_THOUSANDTHS && amount.at_least == 0)
        return amount_bytes(amount, node->memory_unit);
    for (int32_t i = 0; !card && i < node->n_cards; i++)
        whole = MAX(whole, node->cards[i].memory);
    if (amount.kind == AMOUNT_THOUSANDTHS) {
        part = whole / 1000 * amount.value + whole % 1000 * amount.value / 1000;
        part = whole % MIB == 0 ? part - part % MIB : part;
    } else {
        part = amount_bytes(amount, node->memory_unit);
    }
    return MAX(part, MIN(amount.at_least, whole));
}

/* What one multiprocessor counts: about as many thousandths as it is, so that the sum of any
 * multiprocessors is what they are together. */
static int32_t multiprocessor(const struct card *card)
{
    return MAX(CORE_WHOLE / card->multiprocessors, 1);
}

int32_t card_core_size(const struct card *card, int32_t core)
{
    return card->multiprocessors > 0
               ? (int32_t)((int64_t)core * card->multiprocessors / CORE_WHOLE * multiprocessor(card))
               : core;
}

int32_t card_core(const struct card *card, int32_t core)
{
    const int64_t all = card->multiprocessors;

    if (all == 0)
        return core;
    const int64_t taken = (MAX(core, 0) * all + CORE_WHOLE - 1) / CORE_WHOLE;
    return (int32_t)MIN(taken * multiprocessor(card), INT32_MAX);
}

bool card_excludes(const struct card *card, bool exclusive, int32_t core)
{
    return exclusive &&
           (core != CORE_WHOLE || card->multiprocessors > 0 || card->core <= CORE_WHOLE);
}

int32_t card_core_told(const struct card *card, int64_t core)
{
    const int64_t all = card->multiprocessors;

    if (all == 0)
        return (int32_t)core;
    return (int32_t)((core / multiprocessor(card) * CORE_WHOLE + all - 1) / all);
}

int32_t card_core_unplaced(const struct node *node, const struct card *card)
{
    return card_core(card, (int32_t)MIN(node->unplaced_core, INT32_MAX));
}

#define KEY_FACTOR UINT64_C(0x100000001b3)

uint64_t card_key(const char *uuid)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);

    for (; *uuid; uuid++)
        key = (key ^ (unsigned char)*uuid) * KEY_FACTOR;
    return key ? key : 1;
}

uint64_t card_kind(const struct node *node, const struct card *card)
{
    const int64_t numbers[] = {card->memory, card->core, card->multiprocessors, node->memory_unit};
    uint64_t kind = card_key(card->model ? card->model : "");

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        for (int shift = 0; shift < 64; shift += 8)
            kind = (kind ^ (uint64_t)(numbers[i] >> shift & 0xff)) * KEY_FACTOR;
    }
    return kind;
}

uint64_t pool_kind(const struct pool *pool)
{
    const int64_t numbers[] = {pool->memory, pool->replicas, pool->shared, pool->sharing,
                               pool->doubt};
    uint64_t kind = card_key(pool->resource) ^ card_key(pool->model ? pool->model : "") << 1;

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        for (int shift = 0; shift < 64; shift += 8)
            kind = (kind ^ (uint64_t)(numbers[i] >> shift & 0xff)) * KEY_FACTOR;
    }
    return kind;
}

uint64_t kind_join(uint64_t kinds, uint64_t kind)
{
    return (kinds ^ kind) * KEY_FACTOR;
}

struct card *card_find(const struct node *node, int32_t index)
{
    /* Cards are numbered from 0 without gaps by every node side read so far; the search is for
     * those that will not be. */
    if (index >= 0 && index < node->n_cards && node->cards[index].index == index)
        return &node->cards[index];
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].index == index)
            return &node->cards[i];
    }
    return NULL;
}

static struct card *find_minor(const struct node *node, int32_t minor)
{
    if (!node->numbered)
        return card_find(node, minor);
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].minor == minor)
            return &node->cards[i];
    }
    return NULL;
}

struct card *card_find_share(const struct node *node, const struct share *share)
{
    if (node->n_cards == 1)
        return &node->cards[0];
    if (!share->key)
        return share->minor ? find_minor(node, share->minor - 1) : card_find(node, share->card);
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].key == share->key || node->cards[i].former_key == share->key)
            return &node->cards[i];
    }
    return NULL;
}

void share_settle(struct share *share, const struct card *card)
{
    if (share->key)
        share->card = card ? card->index : CARD_UNKNOWN;
    else if (share->minor)
        share->card = card ? card->index : share->minor - 1;
}

const struct card *node_card(const struct node *node, int32_t index)
{
    return card_find(node, index);
}

const struct card *node_share_card(const struct node *node, const struct share *share)
{
    return share->device ? NULL : card_find_share(node, share);
}

struct pool *pool_find(const struct node *node, const char *resource)
{
    for (int32_t i = 0; i < node->n_pools; i++) {
        if (g_str_equal(node->pools[i].resource, resource))
            return &node->pools[i];
    }
    return NULL;
}

bool pool_may_be_shared(const struct pool *pool)
{
    return pool->shared || pool->sliced || pool->doubt != DOUBT_NONE;
}

bool pool_is_known(const struct pool *pool, const struct terms *terms)
{
    if (!terms || pool->doubt == DOUBT_NONE)
        return true;
    return !terms->models && !terms->models_not && !terms->unshared &&
           (terms->memory_min == 0 || pool->doubt == DOUBT_UNSAID);
}

const struct pool *node_pool(const struct node *node, const char *resource)
{
    return pool_find(node, resource);
}

int64_t card_memory_free(const struct node *node, const struct card *card)
{
    int64_t left = card->memory - card->memory_used - node->unplaced_memory;
    return MAX(left, 0);
}

int64_t card_memory_room(const struct node *node, const struct card *card, bool oversubscribes)
{
    const int64_t left = card_memory_free(node, card);
    const int64_t real = card->physical - node->unplaced_memory;

    if (card->physical == 0)
        return left;
    if (card->pressed || card->memory_promised >= real)
        return 0;
    return oversubscribes ? left : CLAMP(real - card->memory_used, 0, left);
}

int32_t card_core_free(const struct node *node, const struct card *card)
{
    int64_t left = card->core - (int64_t)card->core_used - card_core_unplaced(node, card);
    return left > 0 ? (int32_t)left : 0;
}

bool card_is_open(const struct card *card)
{
    return card->healthy && card->closure == CLOSURE_NONE;
}

int32_t card_slots_free(const struct node *node, const struct card *card)
{
    int32_t left = card->slots - card->holders - node->unplaced_holders;
    return card->slots == 0 ? INT32_MAX : MAX(left, 0);
}

struct host node_host_free(const struct node *node)
{
    const struct host *host = &node->host, *used = &node->host_used;

    return (struct host){
        host->cpu > 0 ? MAX(host->cpu - used->cpu, 0) : INT64_MAX,
        host->memory > 0 ? MAX(host->memory - used->memory, 0) : INT64_MAX,
        host->pods > 0 ? MAX(host->pods - used->pods, 0) : INT64_MAX,
    };
}

bool node_offers(const struct node *node, const struct dialect *dialect)
{
    for (int32_t i = 0; i < node->n_dialects; i++) {
        if (node->dialects[i] == dialect)
            return true;
    }
    return false;
}

bool node_taken_by_tenant(const struct node *node, const struct card *card, const char *pool,
                          const char *ns)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (g_str_equal(other->ns, ns))
            continue;
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            const struct card *held = node_share_card(node, share);
            if (card ? !share->device && (!held || held == card)
                     : share->device && g_str_equal(share->device, pool))
                return true;
        }
    }
    return false;
}

/* Whether a share of devices may be of a card of which the pool's devices are parts. */
static bool meets_pool(const struct node *node, const struct share *share, const struct pool *pool)
{
    if (!share->device)
        return false;
    if (g_str_equal(share->device, DEVICE_ALL) || g_str_equal(share->device, pool->resource))
        return true;
    const struct pool *its = node_pool(node, share->device);
    return pool->sliced && its && its->sliced;
}

bool node_taken_by_class(const struct node *node, const struct card *card, const struct pool *pool,
                         const struct work_class *work_class)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (work_class_mixes(work_class, other->work_class))
            continue;
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            const struct card *held = node_share_card(node, share);
            if (card ? !share->device && (!held || held == card) : meets_pool(node, share, pool))
                return true;
        }
    }
    return false;
}

static bool is_on(const struct allocation *allocation, const struct card *card)
{
    for (uint32_t i = 0; card && i < allocation->n_shares; i++) {
        if (node_share_card(allocation->node, &allocation->shares[i]) == card)
            return true;
    }
    return !card;
}

int32_t node_replicas(const struct node *node, const struct card *card, uint64_t replica_of)
{
    int32_t n = 0;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        n += other->replica_of == replica_of && is_on(other, card);
    }
    return n;
}

bool node_taken_by_other(const struct node *node, const struct card *card,
                         const struct dialect *dialect)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            if (allocation_share_dialect(other, share) == dialect)
                continue;
            const struct card *held = node_share_card(node, share);
            if (!card || (held ? held == card : !share->device))
                return true;
        }
    }
    return false;
}

const struct dialect *allocation_share_dialect(const struct allocation *allocation,
                                               const struct share *share)
{
    return share->dialect ? share->dialect : allocation->dialect;
}
