/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/obstacles.h"

#include "core/card.h"
#include "policy/effort/work_meter.h"

#include <gpuledger/mig.h>

const enum reason obstacle_reasons[] = {
    [OBSTACLE_TERMS] = REASON_TERMS,
    [OBSTACLE_SIZE] = REASON_CARD_TOO_SMALL,
    [OBSTACLE_HEALTH] = REASON_CARD_UNHEALTHY,
    [OBSTACLE_CLOSURE] = REASON_CARD_CLOSED,
    [OBSTACLE_OTHER_USE] = REASON_OTHER_USE,
    [OBSTACLE_TENANT] = REASON_OTHER_TENANT,
    [OBSTACLE_SLOTS] = REASON_NO_SLOT,
    [OBSTACLE_NODE_SLOTS] = REASON_NODE_SLOTS,
    [OBSTACLE_MEMORY] = REASON_INSUFFICIENT_MEMORY,
    [OBSTACLE_UNLIMITED] = REASON_UNLIMITED,
    [OBSTACLE_OVERSUBSCRIBED] = REASON_OVERSUBSCRIBED,
    [OBSTACLE_PLACE] = REASON_NO_MIG_PLACE,
    [OBSTACLE_CORE] = REASON_INSUFFICIENT_CORE,
    [OBSTACLE_CLASS] = REASON_OTHER_CLASS,
    [OBSTACLE_NONE] = REASON_INSUFFICIENT_MEMORY, /* each has room, but not all asks together */
};

static bool oversubscribes(const struct situation *at)
{
    return at->request->terms && at->request->terms->oversubscribes;
}

/* Whether a share that was chosen earlier, and so is of a container that starts earlier or of one that
 * lasts, is held while the ask's container runs. */
static bool is_beside(const struct share *share, const struct card_ask *ask)
{
    if (!ask->init)
        return !share->init;
    return share->init ? share->container == ask->container
                       : share->sidecar && share->container < ask->container;
}

struct card card_with_chosen(const struct situation *at, const struct card_ask *ask,
                             const struct card *card)
{
    struct card later = *card;

    for (uint32_t i = 0; i < n_chosen(at); i++) {
        const struct share *share = &at->chosen->shares[i];
        if (share->device || share->card != card->index || !is_beside(share, ask))
            continue;
        later.memory_used += card_bytes(at->node, card, share->memory);
        if (!oversubscribes(at))
            later.memory_promised += card_bytes(at->node, card, share->memory);
        later.core_used += card_core(card, share->core);
        later.holders++;
        later.exclusive += card_excludes(card, share->exclusive, share->core);
    }
    return later;
}

static struct part find_instance(const struct situation *at, const struct card_ask *ask,
                                 const struct card *card, const struct card *now)
{
    const struct mig_profiles *profiles = card->mig;
    const int64_t bytes = mig_bytes(at->node, card, ask_of_instance(ask));
    const struct mig_profile *profile = mig_smallest(profiles, bytes, ask->core);
    struct mig_taken taken;
    struct part part = {.bytes = AMOUNT_BYTES_MAX + 1};

    if (!profile)
        return part;
    taken = mig_taken_of(at->node, now, NULL);
    for (uint32_t i = 0; i < n_chosen(at); i++) {
        const struct share *share = &at->chosen->shares[i];
        if (!share->device && share->card == card->index)
            mig_take(&taken, share->place);
    }
    const struct mig_profile *free = mig_choose(profiles, &taken, bytes, ask->core, &part.place);
    profile = free ? free : profile;
    part.placeless = !free;
    part.bytes = profile->memory;
    part.core = MAX(ask->core, profile->core);
    return part;
}

/* To who does not accept the rest, a card is what it really has. */
static int64_t bytes_of(const struct situation *at, const struct card_ask *ask,
                        const struct card *card)
{
    if (ask->memory.kind != AMOUNT_THOUSANDTHS || card->physical == 0 || oversubscribes(at))
        return card_bytes(at->node, card, ask->memory);
    struct card real = *card;
    real.memory = card->physical;
    return card_bytes(at->node, &real, ask->memory);
}

void part_find(const struct situation *at, const struct card_ask *ask, const struct card *card,
               const struct card *now, struct part *ret_part)
{
    if (card->mig) {
        *ret_part = find_instance(at, ask, card, now);
        return;
    }
    ret_part->bytes = bytes_of(at, ask, card);
    ret_part->core = ask->core;
    ret_part->place = (struct mig_place){0};
    ret_part->placeless = false;
}

/* Who has one of N shares is promised an N-th of the compute at most, or the others are promised
 * nothing. */
static bool card_promises(const struct card *card, const struct card_ask *ask)
{
    if (card->best_effort)
        return ask->core == 0 && !ask->exclusive;
    return card->parts <= 1 ||
           (!ask->exclusive && (int64_t)card_core(card, ask->core) * card->parts <= card->core);
}

/* Whether the pod's class, or that of a holder, does not share the card or pool with the other. */
static bool is_in_wrong_company(const struct situation *at, const struct card *card,
                                const struct pool *pool)
{
    const struct terms *terms = at->request->terms;
    const struct work_class *work_class = terms ? terms->work_class : NULL;

    return (at->node->n_choosy > 0 || work_class_is_choosy(work_class)) &&
           node_taken_by_class(at->node, card, pool, work_class);
}

enum obstacle card_obstacle(const struct situation *at, const struct card_ask *ask,
                            const struct card *card, const struct card *now,
                            struct part *ret_part)
{
    const struct node *node = at->node;
    const struct terms *terms = at->request->terms;

    part_find(at, ask, card, now, ret_part);
    const int64_t bytes = ret_part->bytes;
    if (!work_accept_card(at->work, terms, card))
        return OBSTACLE_TERMS;
    if (!card_promises(card, ask))
        return OBSTACLE_TERMS;
    if (bytes > (card->physical > 0 && !oversubscribes(at) ? card->physical : card->memory))
        return OBSTACLE_SIZE;
    if (!card->healthy)
        return OBSTACLE_HEALTH;
    if (card->closure != CLOSURE_NONE)
        return OBSTACLE_CLOSURE;
    if (node_is_mixed(node) && node_taken_by_other(node, now, at->request->dialect))
        return OBSTACLE_OTHER_USE;
    if (terms && terms->tenant && node_isolation(node, at->request) < terms->tenant_isolation &&
        node_taken_by_tenant(node, now, NULL, terms->tenant))
        return OBSTACLE_TENANT;
    if (card_slots_free(node, card) == 0)
        return card->capped ? OBSTACLE_NODE_SLOTS : OBSTACLE_SLOTS;
    if (ret_part->placeless)
        return OBSTACLE_PLACE;
    if (bytes > card_memory_free(node, card) || card->exclusive + node->unplaced_exclusive > 0 ||
        ((card_excludes(card, ask->exclusive, ask->core) || (terms && terms->idle)) &&
         card->holders + node->unplaced_holders > 0))
        return ask->unlimited && !card->mig ? OBSTACLE_UNLIMITED : OBSTACLE_MEMORY;
    if (bytes > card_memory_room(node, card, oversubscribes(at)))
        return OBSTACLE_OVERSUBSCRIBED;
    /* Who asks for no compute in particular needs some all the same. */
    if (card_core(card, ret_part->core) > card_core_free(node, card) ||
        card_core_free(node, now) == 0)
        return OBSTACLE_CORE;
    if (is_in_wrong_company(at, now, NULL))
        return OBSTACLE_CLASS;
    return OBSTACLE_NONE;
}

/* --- pools ---------------------------------------------------------------------------------- */

/* By the name that GPU Feature Discovery gives what is shared, whether or not the resource is renamed. */
static bool accepts_model_of(const struct terms *terms, const struct pool *pool)
{
    if (!pool->shared || !terms || (!terms->models && !terms->models_not))
        return terms_accept_model(terms, pool->model);
    g_autofree char *product = g_strconcat(pool->model ? pool->model : "", "-SHARED", NULL);
    return terms_accept_model(terms, product);
}

enum reason pool_obstacle(const struct situation *at, const struct card_ask *ask)
{
    const struct pool *pool = node_pool(at->node, ask->device);
    const struct terms *terms = at->request->terms;
    int32_t left;

    if (!pool)
        return REASON_CARD_COUNT;
    if (!pool_is_known(pool, terms) || !accepts_model_of(terms, pool) ||
        (terms && (pool->memory < terms->memory_min || (terms->unshared && pool->shared))))
        return REASON_TERMS;
    if (pool->at_once > 0 && ask->count > pool->at_once)
        return REASON_DEVICES_AT_ONCE;
    if (pool->withheld == WITHHELD_CHANGE)
        return REASON_CHANGING;
    if (ask->count > pool->capacity)
        return ask->count > pool->reported || pool->withheld == WITHHELD_NONE ? REASON_CARD_COUNT
                                                                              : REASON_WITHHELD;
    if (terms && terms->tenant && pool_may_be_shared(pool) &&
        pool->isolation < terms->tenant_isolation &&
        node_taken_by_tenant(at->node, NULL, pool->resource, terms->tenant))
        return REASON_OTHER_TENANT;
    if (pool_may_be_shared(pool) && is_in_wrong_company(at, NULL, pool))
        return REASON_OTHER_CLASS;
    left = pool->capacity - pool->used;
    for (uint32_t i = 0; i < n_chosen(at); i++) {
        const struct share *share = &at->chosen->shares[i];
        if (share->device && is_beside(share, ask) && g_str_equal(share->device, ask->device))
            left -= share->devices;
    }
    if (ask->count <= left)
        return REASON_NONE;
    return pool->withheld != WITHHELD_NONE && ask->count <= left + pool->reported - pool->capacity
               ? REASON_WITHHELD
               : REASON_INSUFFICIENT_DEVICES;
}
