/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage is kept, not computed: every allocation that enters or leaves a node is charged to or
 * credited from its cards by the one function node_count(). A change of the cards themselves
 * counts everything anew.
 */
#include "core/ledger/node_sums.h"

#include "core/allocation.h"
#include "core/card.h"
#include "core/ledger.h"
#include "core/node.h"

#include <gpuledger/mig.h>
#include <string.h>

/* What is held of one card, or of those that are not known. */
struct usage {
    int64_t memory, core;
    int32_t holders, exclusive;
};

static struct usage share_usage(const struct node *node, const struct card *card,
                                const struct share *share)
{
    int64_t memory = card_bytes(node, card, share->memory), memory_max = AMOUNT_BYTES_MAX;
    int32_t core = card ? card_core(card, share->core) : share->core, core_max = INT32_MAX;

    if (card && card->mig && share->place.size > 0)
        mig_place_most(card->mig, share->place, &memory_max, &core_max);
    const bool exclusive =
        card ? card_excludes(card, share->exclusive, share->core) : share->exclusive;
    return (struct usage){MIN(memory, memory_max), MIN(core, core_max), 1,
                          exclusive && core_max >= CORE_WHOLE};
}

static void charge_card(struct node *node, struct card *card, const struct usage *usage, int sign)
{
    if (card) {
        card->memory_used += sign * usage->memory;
        card->core_used += (int32_t)(sign * usage->core);
        card->holders += sign * usage->holders;
        card->exclusive += sign * usage->exclusive;
    } else {
        node->unplaced_memory += sign * usage->memory;
        node->unplaced_core += sign * usage->core;
        node->unplaced_holders += sign * usage->holders;
        node->unplaced_exclusive += sign * usage->exclusive;
    }
}

static void add_usage(struct usage *sum, const struct usage *usage)
{
    sum->memory += usage->memory;
    sum->core += usage->core;
    sum->holders += usage->holders;
    sum->exclusive += usage->exclusive;
}

static void raise_usage(struct usage *most, const struct usage *usage)
{
    most->memory = MAX(most->memory, usage->memory);
    most->core = MAX(most->core, usage->core);
    most->holders = MAX(most->holders, usage->holders);
    most->exclusive = MAX(most->exclusive, usage->exclusive);
}

/* What is held of the card while this init container runs: its own, and that of the sidecars that were
 * started before it. */
static struct usage usage_during(const struct node *node, const struct card *card,
                                 const struct allocation *allocation, int32_t container)
{
    struct usage sum = {0};

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        const bool then = share->init ? share->container == container
                                      : share->sidecar && share->container < container;
        if (share->device || !then || card_find_share(node, share) != card)
            continue;
        const struct usage one = share_usage(node, card, share);
        add_usage(&sum, &one);
    }
    return sum;
}

/* What init containers hold of a card beyond what the others will: they run before them, one at a
 * time. Kubernetes' own rule: the larger of that and of what containers and sidecars hold together. */
static struct usage init_surplus(const struct node *node, const struct card *card,
                                 const struct allocation *allocation)
{
    struct usage later = {0}, peak = {0};

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (share->device || card_find_share(node, share) != card)
            continue;
        const struct usage one = share->init
                                     ? usage_during(node, card, allocation, share->container)
                                     : share_usage(node, card, share);
        if (share->init)
            raise_usage(&peak, &one);
        else
            add_usage(&later, &one);
    }
    return (struct usage){MAX(peak.memory - later.memory, 0), MAX(peak.core - later.core, 0),
                          MAX(peak.holders - later.holders, 0),
                          MAX(peak.exclusive - later.exclusive, 0)};
}

/* Whether an earlier share of an init container is on the same card. */
static bool init_seen(const struct node *node, const struct allocation *allocation, uint32_t i)
{
    const struct card *card = card_find_share(node, &allocation->shares[i]);

    for (uint32_t j = 0; j < i; j++) {
        const struct share *share = &allocation->shares[j];
        if (share->init && !share->device && card_find_share(node, share) == card)
            return true;
    }
    return false;
}

static int64_t devices_during(const struct allocation *allocation, const char *device,
                              int32_t container)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        const bool then = share->init ? share->container == container
                                      : share->sidecar && share->container < container;
        if (share->device && then && g_str_equal(share->device, device))
            sum += share->devices;
    }
    return sum;
}

/* What a share adds to the devices that its allocation has of its pool. Those of init containers
 * are handed on to the others; what they had beyond that is counted with the first of them. */
static int64_t share_devices(const struct allocation *allocation, uint32_t i)
{
    const struct share *share = &allocation->shares[i];
    int64_t later = 0, peak = 0;

    if (!share->init)
        return share->devices;
    for (uint32_t j = 0; j < allocation->n_shares; j++) {
        const struct share *other = &allocation->shares[j];
        if (!other->device || !g_str_equal(other->device, share->device))
            continue;
        if (other->init && j < i)
            return 0;
        if (other->init)
            peak = MAX(peak, devices_during(allocation, share->device, other->container));
        else
            later += other->devices;
    }
    return MAX(peak - later, 0);
}

void node_charge_host(struct node *node, const struct host *host, int sign)
{
    node_note_change(node);
    node->host_used.cpu += sign * host->cpu;
    node->host_used.memory += sign * host->memory;
    node->host_used.pods += sign * host->pods;
}

/* Devices that have a name, or all that there are. */
static void count_devices(struct node *node, const struct allocation *allocation, uint32_t i,
                          int sign)
{
    const struct share *share = &allocation->shares[i];
    const bool all = g_str_equal(share->device, DEVICE_ALL);
    struct pool *pool = all ? NULL : pool_find(node, share->device);

    for (int32_t j = 0; all && j < node->n_pools; j++)
        node->pools[j].used += sign * node->pools[j].capacity;
    if (pool)
        pool->used += sign * share_devices(allocation, i);
}

/* A share of cards; `card` NULL: it is not known which. */
static void count_usage(struct node *node, struct card *card, const struct allocation *allocation,
                        const struct usage *usage, int sign)
{
    charge_card(node, card, usage, sign);
    if (card && !allocation->oversubscribes)
        card->memory_promised += sign * usage->memory;
}

static bool is_away(const struct node *node, const struct dialect *dialect)
{
    for (int32_t i = 0; i < node->n_away; i++) {
        if (node->away[i] == dialect)
            return true;
    }
    return false;
}

/* The pod runs with devices that the node has no pool of any more, though it still reports their
 * resource: another plugin has given them, on whatever cards. */
static bool is_served_before(const struct node *node, const struct allocation *allocation)
{
    bool found = false;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        if (allocation_share_dialect(allocation, &allocation->shares[i]) != node->replaced)
            return false; /* it has been told which cards */
        found = true;
    }
    return found && allocation->started;
}

static bool is_stranger(const struct node *node, const struct allocation *allocation)
{
    for (uint32_t i = 0; i < allocation->n_shares && node->n_away > 0; i++) {
        if (is_away(node, allocation_share_dialect(allocation, &allocation->shares[i])))
            return true;
    }
    return node->replaced && is_served_before(node, allocation);
}

static void count_pod(struct node *node, const struct allocation *allocation, int sign)
{
    if (allocation->waiting)
        node->n_waiting += sign;
    if (allocation->distrust == DISTRUST_UNSEALED)
        node->n_unsealed += sign;
    if (work_class_is_choosy(allocation->work_class))
        node->n_choosy += sign;
    if (is_stranger(node, allocation))
        node->n_strangers += sign;
    node_charge_host(node, &allocation->host, sign);
}

static void node_count(struct node *node, struct allocation *allocation, int sign)
{
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        struct share *share = &allocation->shares[i];
        if (share->device) {
            count_devices(node, allocation, i, sign);
            continue;
        }
        struct card *card = card_find_share(node, share);
        share_settle(share, card);
        if (share->init && init_seen(node, allocation, i))
            continue;
        struct usage usage =
            share->init ? init_surplus(node, card, allocation) : share_usage(node, card, share);
        count_usage(node, card, allocation, &usage, sign);
    }
    count_pod(node, allocation, sign);
}

/* What is free of a card that anybody may still join; -1 of one that somebody has to himself, or
 * that has no compute or no slot left. */
static int64_t joinable_room(const struct node *node, const struct card *card)
{
    return card_is_open(card) && card->exclusive + node->unplaced_exclusive == 0 &&
                   card_core_free(node, card) > 0 && card_slots_free(node, card) > 0
               ? card_memory_room(node, card, false)
               : -1;
}

void node_summarize(struct node *node)
{
    node_note_change(node);
    node->memory_free_max = -1;
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (card_memory_free(node, card) > node->memory_free_max)
            node->memory_free_max = MAX(node->memory_free_max, joinable_room(node, card));
    }
}

/* The usual pod: one share of a card that is known. */
static void charge_one(struct node *node, struct card *card, struct allocation *allocation,
                       int sign)
{
    struct share *share = &allocation->shares[0];
    const struct usage usage = share_usage(node, card, share);
    const int64_t before = joinable_room(node, card);

    share_settle(share, card);
    count_usage(node, card, allocation, &usage, sign);
    count_pod(node, allocation, sign);
    const int64_t after = joinable_room(node, card);
    if (before == node->memory_free_max && after < before)
        node_summarize(node); /* another card may be the emptiest now */
    else
        node->memory_free_max = MAX(node->memory_free_max, after);
}

void node_charge(struct node *node, struct allocation *allocation, int sign)
{
    const struct share *share = &allocation->shares[0];
    struct card *card = allocation->n_shares == 1 && !share->device && !share->init
                            ? card_find_share(node, share)
                            : NULL;

    if (card) {
        charge_one(node, card, allocation, sign);
    } else {
        node_count(node, allocation, sign);
        node_summarize(node);
    }
}

struct host node_cpu_pods(const struct node *node)
{
    struct host cpu_pods = node->host_used;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        cpu_pods.cpu -= allocation->host.cpu;
        cpu_pods.memory -= allocation->host.memory;
        cpu_pods.pods -= allocation->host.pods;
    }
    return cpu_pods;
}

void node_charge_all(struct node *node, struct host cpu_pods)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card *card = &node->cards[i];
        card->holders = card->exclusive = card->core_used = 0;
        card->memory_used = card->memory_promised = 0;
    }
    for (int32_t i = 0; i < node->n_pools; i++)
        node->pools[i].used = 0;
    node->unplaced_memory = node->unplaced_core = 0;
    node->unplaced_holders = node->unplaced_exclusive = node->n_waiting = 0;
    node->n_unsealed = node->n_choosy = node->n_strangers = 0;
    node->host_used = cpu_pods;
    for (guint i = 0; i < node->allocations->len; i++)
        node_count(node, g_ptr_array_index(node->allocations, i), 1);
    node_summarize(node);
}

/* Whether a share of a card that is cut is an instance that may be where it is, beside all others;
 * those of init containers stay as long as the pod. */
static bool is_instance(const struct node *node, const struct card *card,
                        const struct allocation *allocation, uint32_t at)
{
    const struct share *share = &allocation->shares[at];
    struct mig_taken taken = mig_taken_of(node, card, allocation);

    for (uint32_t i = 0; i < at; i++) {
        if (node_share_card(node, &allocation->shares[i]) == card)
            mig_take(&taken, allocation->shares[i].place);
    }
    return mig_is_free(&taken, share->place) &&
           mig_find(card->mig, share->place, card_bytes(node, card, share->memory), share->core);
}

/* Whether somebody is where the share would be with whom its class shares no card. */
static bool node_parts(const struct node *node, const struct share *share,
                       const struct work_class *work_class)
{
    const struct card *card = node_share_card(node, share);
    const struct pool *pool = share->device ? node_pool(node, share->device) : NULL;

    if (node->n_choosy == 0 && !work_class_is_choosy(work_class))
        return false;
    return card ? node_taken_by_class(node, card, NULL, work_class)
                : pool && pool_may_be_shared(pool) &&
                      node_taken_by_class(node, NULL, pool, work_class);
}

enum reason node_check_fit(const struct node *node, const struct allocation *allocation)
{
    /* Charged to copies, by the function that will charge it. */
    struct node_own own = {.node = *node}; /* of what is charged to it, the version changes too */
    struct node *what_if = &own.node;
    own.pulse = &own.alone;
    g_autofree struct card *cards = g_memdup2(node->cards, sizeof *cards * (gsize)node->n_cards);
    g_autofree struct pool *pools = g_memdup2(node->pools, sizeof *pools * (gsize)node->n_pools);
    what_if->cards = cards;
    what_if->pools = pools;
    node_count(what_if, (struct allocation *)allocation, 1);

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (node_parts(node, share, allocation->work_class))
            return REASON_OTHER_CLASS;
        if (share->device) {
            const struct pool *pool = node_pool(what_if, share->device);
            if (!pool || pool->used > pool->capacity)
                return pool && pool->withheld == WITHHELD_CHANGE ? REASON_CHANGING
                                                                 : REASON_INSUFFICIENT_DEVICES;
            continue;
        }
        const struct card *card = node_share_card(what_if, share);
        if (!card || (!share->key && card->index != share->card))
            return REASON_CARD_COUNT;
        if (!card->healthy)
            return REASON_CARD_UNHEALTHY;
        if (card->closure != CLOSURE_NONE)
            return REASON_CARD_CLOSED;
        /* A card that others have overbooked may still take what needs nothing of it. */
        const struct card *before = &node->cards[card - what_if->cards];
        if (card->mig && !is_instance(node, before, allocation, i))
            return REASON_NO_MIG_PLACE;
        if (card->memory_used > before->memory_used &&
            card->memory_used + what_if->unplaced_memory > card->memory)
            return REASON_INSUFFICIENT_MEMORY;
        if (card->memory_used - before->memory_used >
            card_memory_room(node, before, allocation->oversubscribes))
            return REASON_OVERSUBSCRIBED;
        if (card_core_free(node, before) == 0 ||
            (card->core_used > before->core_used &&
             card->core_used + card_core_unplaced(what_if, card) > card->core))
            return REASON_INSUFFICIENT_CORE;
        if (card->slots > 0 && card->holders + what_if->unplaced_holders > card->slots)
            return card->capped ? REASON_NODE_SLOTS : REASON_NO_SLOT;
        if (card->exclusive + what_if->unplaced_exclusive > 0 &&
            card->holders + what_if->unplaced_holders > 1)
            return REASON_INSUFFICIENT_MEMORY;
    }
    return REASON_NONE;
}
