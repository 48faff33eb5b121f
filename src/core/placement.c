/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policies.h"

#include <gpuledger/links.h>
#include <gpuledger/mig.h>
#include <stdlib.h>
#include <string.h>

/* --- search --------------------------------------------------------------------------------- */

/* How far a card got with an ask. The refusal tells of the last card that would have been needed, were
 * they taken in the order of how far they got. */
enum obstacle {
    OBSTACLE_TERMS,
    OBSTACLE_SIZE,
    OBSTACLE_HEALTH,
    OBSTACLE_CLOSURE,
    OBSTACLE_OTHER_USE,
    OBSTACLE_TENANT,
    OBSTACLE_SLOTS,
    OBSTACLE_MEMORY,
    OBSTACLE_OVERSUBSCRIBED,
    OBSTACLE_PLACE,
    OBSTACLE_CORE,
    OBSTACLE_NONE,
};

static const enum reason obstacle_reasons[] = {
    [OBSTACLE_TERMS] = REASON_TERMS,
    [OBSTACLE_SIZE] = REASON_CARD_TOO_SMALL,
    [OBSTACLE_HEALTH] = REASON_CARD_UNHEALTHY,
    [OBSTACLE_CLOSURE] = REASON_CARD_CLOSED,
    [OBSTACLE_OTHER_USE] = REASON_OTHER_USE,
    [OBSTACLE_TENANT] = REASON_OTHER_TENANT,
    [OBSTACLE_SLOTS] = REASON_NO_SLOT,
    [OBSTACLE_MEMORY] = REASON_INSUFFICIENT_MEMORY,
    [OBSTACLE_OVERSUBSCRIBED] = REASON_OVERSUBSCRIBED,
    [OBSTACLE_PLACE] = REASON_NO_MIG_PLACE,
    [OBSTACLE_CORE] = REASON_INSUFFICIENT_CORE,
    [OBSTACLE_NONE] = REASON_INSUFFICIENT_MEMORY, /* each has room, but not all asks together */
};

/* Sets of cards tried before the search gives up: it runs under the caller's lock. */
#define TRIES_MAX 2048
/* Candidates of all asks together that need no memory of their own. */
#define CANDIDATES_INLINE 16

/* A card on which one share of an ask fits. */
struct candidate {
    int64_t waste; /* bytes of an instance beyond what is asked for; 0 on a card that is not cut */
    struct cost cost;
    const struct card *card;
};

struct search {
    const struct node *node;
    const struct request *request;
    const struct policy *policy;
    const struct demand *demand;
    int32_t pinned;
    struct placement *placement; /* shares chosen so far count as taken */
    struct candidate *candidates; /* n_cards for each ask */
    bool same_numa; /* all cards of an ask are on one NUMA node */
    unsigned tries;
    enum reason reason; /* why the first ask that failed did */
};

static bool oversubscribes(const struct search *search)
{
    return search->request->terms && search->request->terms->oversubscribes;
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

/* The card as it will be with the shares chosen so far; what ends before this share begins, or begins
 * after it ends, is not beside it. */
static struct card with_chosen(const struct search *search, const struct card_ask *ask,
                               const struct card *card)
{
    struct card later = *card;

    for (uint32_t i = 0; i < search->placement->n_shares; i++) {
        const struct share *share = &search->placement->shares[i];
        if (share->device || share->card != card->index || !is_beside(share, ask))
            continue;
        later.memory_used += card_bytes(search->node, card, share->memory);
        if (!oversubscribes(search))
            later.memory_promised += card_bytes(search->node, card, share->memory);
        later.core_used += card_core(card, share->core);
        later.holders++;
        later.exclusive += share->exclusive;
    }
    return later;
}

/* What an ask takes of a card: what it says, or an instance that is as large at least. */
struct part {
    int64_t bytes; /* more than the card has: none of its instances is as large */
    int32_t core;
    struct mig_place place;
    bool placeless; /* there is no place for the instance */
};

static struct part instance_of(const struct search *search, const struct card_ask *ask,
                               const struct card *card, const struct card *now)
{
    const struct mig_profiles *profiles = card->mig;
    const int64_t bytes = mig_bytes(search->node, card, ask->memory);
    const struct mig_profile *profile = mig_smallest(profiles, bytes, ask->core);
    struct mig_taken taken;
    struct part part = {.bytes = AMOUNT_BYTES_MAX + 1};

    if (!profile)
        return part;
    taken = mig_taken_of(search->node, now, NULL);
    for (uint32_t i = 0; i < search->placement->n_shares; i++) {
        const struct share *share = &search->placement->shares[i];
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
static int64_t bytes_of(const struct search *search, const struct card_ask *ask,
                        const struct card *card)
{
    if (ask->memory.kind != AMOUNT_THOUSANDTHS || card->physical == 0 || oversubscribes(search))
        return card_bytes(search->node, card, ask->memory);
    struct card real = *card;
    real.memory = card->physical;
    return card_bytes(search->node, &real, ask->memory);
}

static struct part part_of(const struct search *search, const struct card_ask *ask,
                           const struct card *card, const struct card *now)
{
    if (card->mig)
        return instance_of(search, ask, card, now);
    return (struct part){.bytes = bytes_of(search, ask, card), .core = ask->core};
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

/* `card` as it will be, `now` as it is. */
static enum obstacle card_obstacle(const struct search *search, const struct card_ask *ask,
                                   const struct card *card, const struct card *now,
                                   struct part *ret_part)
{
    const struct node *node = search->node;
    const struct terms *terms = search->request->terms;
    const struct part part = *ret_part = part_of(search, ask, card, now);
    const int64_t bytes = part.bytes;

    if (!terms_accept_card(terms, card))
        return OBSTACLE_TERMS;
    if (!card_promises(card, ask))
        return OBSTACLE_TERMS;
    if (bytes > (card->physical > 0 && !oversubscribes(search) ? card->physical : card->memory))
        return OBSTACLE_SIZE;
    if (!card->healthy)
        return OBSTACLE_HEALTH;
    if (card->closure != CLOSURE_NONE)
        return OBSTACLE_CLOSURE;
    if (node->n_dialects > 1 && node_taken_by_other(node, now, search->request->dialect))
        return OBSTACLE_OTHER_USE;
    if (terms && terms->tenant && search->request->isolation < terms->tenant_isolation &&
        node_taken_by_tenant(node, now, NULL, terms->tenant))
        return OBSTACLE_TENANT;
    if (card_slots_free(node, card) == 0)
        return OBSTACLE_SLOTS;
    if (part.placeless)
        return OBSTACLE_PLACE;
    if (bytes > card_memory_free(node, card) || card->exclusive + node->unplaced_exclusive > 0 ||
        ((ask->exclusive || (terms && terms->idle)) && card->holders + node->unplaced_holders > 0))
        return OBSTACLE_MEMORY;
    if (bytes > card_memory_room(node, card, oversubscribes(search)))
        return OBSTACLE_OVERSUBSCRIBED;
    /* Who asks for no compute in particular needs some all the same. */
    if (card_core(card, part.core) > card_core_free(node, card) || card_core_free(node, now) == 0)
        return OBSTACLE_CORE;
    return OBSTACLE_NONE;
}

/* Whether a node side that chooses by itself will think that a card fits: it counts, and knows of
 * nothing else that speaks against a card. */
static bool has_amounts(const struct node *node, const struct card_ask *ask,
                        const struct card *card)
{
    return card->exclusive == 0 && (!ask->exclusive || card->holders == 0) &&
           card_bytes(node, card, ask->memory) <= card_memory_free(node, card) &&
           card_core(card, ask->core) <= card_core_free(node, card);
}

static struct cost cost_of(const struct search *search, const struct card *card,
                           const struct card_ask *ask)
{
    const struct terms *terms = search->request->terms;
    const struct policy *policy = search->policy;

    if (policy->fullness != 0 && terms &&
        (terms->weights.slots || terms->weights.core || terms->weights.memory))
        return cost_weighted(search->node, card, ask, policy, &terms->weights);
    return policy->cost(search->node, card, ask, search->demand);
}

static gint compare_candidates(gconstpointer a, gconstpointer b)
{
    const struct candidate *left = a, *right = b;

    if (left->waste != right->waste)
        return left->waste < right->waste ? -1 : 1;
    if (left->cost.loss != right->cost.loss)
        return left->cost.loss < right->cost.loss ? -1 : 1;
    if (left->cost.tie != right->cost.tie)
        return left->cost.tie < right->cost.tie ? -1 : 1;
    return left->card->index < right->card->index ? -1 : 1;
}

/* Losses that are close to the least count as equal to it. */
static void level(const struct policy *policy, struct candidate *candidates, int32_t n)
{
    int64_t least = INT64_MAX;

    for (int32_t i = 0; i < n; i++)
        least = MIN(least, candidates[i].cost.loss);
    for (int32_t i = 0; i < n; i++) {
        if ((double)(candidates[i].cost.loss - least) <= policy->slack * COST_CARD)
            candidates[i].cost.loss = least;
    }
}

/* Whether a policy cannot tell the cards apart. */
static bool is_alike(const struct card *a, const struct card *b)
{
    return !a->mig && !b->mig && a->kind == b->kind && a->memory_used == b->memory_used &&
           a->core_used == b->core_used && a->holders == b->holders &&
           a->exclusive == b->exclusive && a->slots == b->slots && a->rank == b->rank;
}

/* The cards on which a share of the ask fits, best first, and what to say if they do not suffice. */
static int32_t find_candidates(const struct search *search, const struct card_ask *ask,
                               struct candidate *candidates, enum reason *ret_reason)
{
    int32_t got[OBSTACLE_NONE + 1] = {0}, needed = ask->count;
    enum obstacle last = OBSTACLE_NONE;
    const struct node *node = search->node;
    const struct policy *policy = search->policy;
    int64_t barred_cost = INT64_MAX; /* of the card that the node side will take and must not */
    enum obstacle barred = OBSTACLE_NONE;
    const bool chosen = search->placement->n_shares > 0;
    struct cost cost = {0};
    struct card beside;
    int32_t n = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (search->pinned != CARD_UNKNOWN && card->index != search->pinned)
            continue;
        if (chosen)
            beside = with_chosen(search, ask, card);
        const struct card *later = chosen ? &beside : card;
        struct part part;
        const enum obstacle obstacle = card_obstacle(search, ask, later, card, &part);
        got[obstacle]++;
        if (obstacle == OBSTACLE_NONE) {
            const int64_t waste = card->mig ? part.bytes - mig_bytes(node, card, ask->memory) : 0;
            if (chosen || n == 0 || !is_alike(card, candidates[n - 1].card))
                cost = cost_of(search, later, ask);
            candidates[n++] = (struct candidate){waste, cost, card};
        } else if (policy->foreseen && has_amounts(node, ask, later)) {
            /* Whole cards go by an order that is not known. */
            const int64_t loss =
                ask->exclusive ? INT64_MIN : policy->cost(node, later, ask, search->demand).loss;
            barred = loss < barred_cost ? obstacle : barred;
            barred_cost = MIN(barred_cost, loss);
        }
    }
    for (; last > OBSTACLE_TERMS && got[last] < needed; last--)
        needed -= got[last];
    *ret_reason = got[last] < needed ? REASON_CARD_COUNT : obstacle_reasons[last];
    if (n > 0 && n < ask->count && candidates[0].card->mig)
        *ret_reason = REASON_NO_MIG_PLACE;
    if (n > 1 && policy->slack > 0)
        level(policy, candidates, n);
    if (n > 1)
        qsort(candidates, (size_t)n, sizeof *candidates, compare_candidates);
    if (n > 0 && barred_cost < candidates[0].cost.loss) {
        *ret_reason = obstacle_reasons[barred];
        return 0;
    }
    return n;
}

/* Puts those first that are connected best, if the pod wants that and the node side tells. Instances
 * of a card that is cut are not connected at all. */
static void put_linked_first(const struct search *search, const struct card_ask *ask,
                             struct candidate *candidates, int32_t n)
{
    const struct terms *terms = search->request->terms;
    const struct links *links = search->node->links;
    int32_t cards[LINKS_CARDS_MAX], chosen[LINKS_CARDS_MAX];

    if (!terms || !terms->best_linked || !links || links->n != search->node->n_cards ||
        n < ask->count)
        return;
    for (int32_t i = 0; i < n; i++) {
        if (candidates[i].card->mig)
            return;
        cards[i] = candidates[i].card->index;
    }
    links_choose(links, cards, n, ask->count, chosen);
    for (int32_t i = 0; i < ask->count; i++) {
        const struct candidate linked = candidates[chosen[i]];
        memmove(&candidates[i + 1], &candidates[i], (size_t)(chosen[i] - i) * sizeof linked);
        candidates[i] = linked;
    }
}

static bool place_from(struct search *search, uint32_t at);

/* Whether a card is beside, or apart from, the pod's other containers as the terms want it. */
static bool suits_neighbours(const struct search *search, const struct card_ask *ask,
                             const struct card *card)
{
    const struct placement *placement = search->placement;
    const enum neighbours wanted =
        search->request->terms ? search->request->terms->neighbours : NEIGHBOURS_ANY;
    bool others = false, beside = false;

    for (uint32_t i = 0; wanted != NEIGHBOURS_ANY && i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device || share->init || share->container == ask->container)
            continue;
        others = true;
        beside |= share->card == card->index;
    }
    return ask->init || !others || beside == (wanted == NEIGHBOURS_SAME_CARD);
}

/* What the ask gets of a card; false: what it has got of it before leaves no place. */
static bool take_part(const struct search *search, const struct card_ask *ask,
                      const struct card *card, struct share *ret_share)
{
    struct part part;

    if (!card->mig) {
        part = part_of(search, ask, card, card);
    } else {
        const struct card later = with_chosen(search, ask, card);
        if (card_obstacle(search, ask, &later, card, &part) != OBSTACLE_NONE)
            return false;
    }
    *ret_share = (struct share){
        .memory = card->mig || ask->memory.kind == AMOUNT_THOUSANDTHS
                      ? (struct amount){part.bytes, AMOUNT_BYTES}
                      : ask->memory,
        .container = ask->container,
        .card = card->index,
        .core = part.core,
        .exclusive = ask->exclusive || (card->mig && part.core == CORE_WHOLE),
        .init = ask->init,
        .sidecar = ask->sidecar,
        .place = part.place,
    };
    return true;
}

/* Chooses `left` more cards for an ask among its candidates from `from` on, the rest of the asks
 * after them. Of a card that is cut it may get several instances. */
static bool choose_cards(struct search *search, uint32_t at, const struct candidate *candidates,
                         int32_t n, int32_t from, int32_t left)
{
    const struct card_ask *ask = &search->request->asks[at];
    struct placement *placement = search->placement;

    if (left == 0)
        return place_from(search, at + 1);
    for (int32_t i = from; i < n && search->tries < TRIES_MAX; i++) {
        const struct card *card = candidates[i].card;
        const uint32_t before = placement->n_shares;
        if (!card->mig && i + left > n)
            continue;
        if (search->same_numa && left < ask->count &&
            node_card(search->node, placement->shares[before - 1].card)->numa != card->numa)
            continue;
        search->tries++;
        if (!suits_neighbours(search, ask, card)) {
            if (search->policy->foreseen)
                break;
            continue;
        }
        if (!take_part(search, ask, card, &placement->shares[before]))
            continue;
        placement->n_shares++;
        if (choose_cards(search, at, candidates, n, card->mig ? i : i + 1, left - 1))
            return true;
        placement->n_shares = before;
        if (search->policy->foreseen)
            break;
    }
    return false;
}

static enum reason pool_obstacle(const struct search *search, const struct card_ask *ask)
{
    const struct pool *pool = node_pool(search->node, ask->device);
    const struct terms *terms = search->request->terms;
    int32_t left;

    if (!pool)
        return REASON_CARD_COUNT;
    if (!terms_accept_model(terms, pool->model) ||
        (terms && (pool->memory < terms->memory_min || (terms->unshared && pool->shared))))
        return REASON_TERMS;
    if (pool->at_once > 0 && ask->count > pool->at_once)
        return REASON_DEVICES_AT_ONCE;
    if (pool->withheld == WITHHELD_CHANGE)
        return REASON_CHANGING;
    if (ask->count > pool->capacity)
        return ask->count > pool->reported || pool->withheld == WITHHELD_NONE ? REASON_CARD_COUNT
                                                                              : REASON_WITHHELD;
    if (terms && terms->tenant && pool->shared && pool->isolation < terms->tenant_isolation &&
        node_taken_by_tenant(search->node, NULL, pool->resource, terms->tenant))
        return REASON_OTHER_TENANT;
    left = pool->capacity - pool->used;
    for (uint32_t i = 0; i < search->placement->n_shares; i++) {
        const struct share *share = &search->placement->shares[i];
        if (share->device && is_beside(share, ask) && g_str_equal(share->device, ask->device))
            left -= share->devices;
    }
    if (ask->count <= left)
        return REASON_NONE;
    return pool->withheld != WITHHELD_NONE && ask->count <= left + pool->reported - pool->capacity
               ? REASON_WITHHELD
               : REASON_INSUFFICIENT_DEVICES;
}

static bool place_devices(struct search *search, uint32_t at)
{
    const struct card_ask *ask = &search->request->asks[at];
    const enum reason reason = pool_obstacle(search, ask);

    if (reason != REASON_NONE) {
        search->reason = search->reason == REASON_NONE ? reason : search->reason;
        return false;
    }
    search->placement->shares[search->placement->n_shares++] = (struct share){
        .container = ask->container,
        .card = CARD_UNKNOWN,
        .init = ask->init,
        .sidecar = ask->sidecar,
        .devices = ask->count,
        .device = ask->device,
    };
    if (place_from(search, at + 1))
        return true;
    search->placement->n_shares--;
    return false;
}

/* Places the asks from `at` on. */
static bool place_from(struct search *search, uint32_t at)
{
    const struct node *node = search->node;
    const struct request *request = search->request;

    if (at == request->n_asks)
        return true;
    const struct card_ask *ask = &request->asks[at];
    if (ask->device)
        return place_devices(search, at);

    struct candidate *candidates = &search->candidates[at * (uint32_t)node->n_cards];
    enum reason reason;
    const int32_t n = find_candidates(search, ask, candidates, &reason);
    put_linked_first(search, ask, candidates, n);
    const bool placed = n > 0 && choose_cards(search, at, candidates, n, 0, ask->count);
    if (!placed && search->reason == REASON_NONE)
        search->reason = reason;
    return placed;
}

/* Whether an ask may get more than one part of a card. */
static bool may_repeat(const struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].mig)
            return true;
    }
    return false;
}

static enum reason check_counts(const struct node *node, const struct request *request)
{
    int64_t shares = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        if (!ask->device && node->n_cards == 0)
            return REASON_NOT_GPU_SHARE;
        if (!ask->device && ask->count > node->n_cards && !may_repeat(node))
            return REASON_CARD_COUNT;
        shares += ask->device ? 1 : ask->count;
    }
    return shares > REQUEST_ASKS_MAX ? REASON_CARD_COUNT : REASON_NONE;
}

bool placement_is_obvious(const struct node *node, const struct request *request)
{
    const struct card_ask *ask = &request->asks[0];

    return request->n_asks == 1 && ask->count == 1 && ask->core == 0 && !ask->exclusive &&
           !ask->device && !request->terms && node->n_dialects == 1 &&
           ask->memory.kind != AMOUNT_THOUSANDTHS &&
           amount_bytes(ask->memory, node->memory_unit) <= node->memory_free_max;
}

enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, const struct demand *demand,
                           int32_t pinned, struct placement *ret_placement)
{
    struct candidate few[CANDIDATES_INLINE];
    g_autofree struct candidate *many = NULL;
    const size_t n = (size_t)node->n_cards * request->n_asks;
    struct search search = {.node = node,
                            .request = request,
                            .policy = policy,
                            .demand = demand,
                            .pinned = pinned,
                            .placement = ret_placement,
                            .candidates = few};

    ret_placement->request = request;
    ret_placement->n_shares = 0;
    search.reason = check_counts(node, request);
    if (search.reason != REASON_NONE)
        return search.reason;
    if (n > CANDIDATES_INLINE)
        search.candidates = many = g_new(struct candidate, n);
    search.same_numa = request->terms && (request->terms->same_numa || request->terms->near_numa);
    if (place_from(&search, 0))
        return REASON_NONE;
    if (!search.same_numa || request->terms->same_numa)
        return search.reason;
    /* It was only a wish. */
    search.same_numa = false;
    search.tries = 0;
    search.reason = REASON_NONE;
    return place_from(&search, 0) ? REASON_NONE : search.reason;
}

/* No card has as much memory left, whatever else it has. */
static bool is_futile(const struct node *node, const struct request *request)
{
    if (request->terms && request->terms->oversubscribes)
        return false; /* the summary is of what cards really have */
    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        if (!ask->device && ask->memory.kind != AMOUNT_THOUSANDTHS &&
            amount_bytes(ask->memory, node->memory_unit) > node->memory_free_max)
            return true;
    }
    return false;
}

/* Whether the request is for some cards of which each is as good as the others. */
static bool is_plain(const struct node *node, const struct request *request,
                     const struct policy *policy)
{
    const struct card_ask *ask = &request->asks[0];

    return request->n_asks == 1 && !ask->device && !policy->foreseen &&
           (ask->count == 1 ||
            (!may_repeat(node) && !(request->terms && request->terms->same_numa)));
}

static bool has_candidates(const struct node *node, const struct request *request)
{
    static struct placement none; /* nothing is written to it, and on the stack it is dear */
    const struct search search = {.node = node, .request = request, .placement = &none};
    const struct card_ask *ask = &request->asks[0];
    const int64_t bytes = ask->memory.kind == AMOUNT_THOUSANDTHS
                              ? 0
                              : amount_bytes(ask->memory, node->memory_unit);
    int32_t needed = ask->count;
    struct part part;

    for (int32_t i = 0; i < node->n_cards && needed > 0; i++) {
        const struct card *card = &node->cards[i];
        needed -= bytes <= card_memory_free(node, card) &&
                  card_obstacle(&search, ask, card, card, &part) == OBSTACLE_NONE;
    }
    return needed <= 0;
}

/* Out of line, for its placement is large. */
G_GNUC_NO_INLINE static bool is_found(const struct node *node, const struct request *request,
                                      const struct policy *policy, const struct demand *demand)
{
    struct placement scratch;

    return placement_find(node, request, policy, demand, CARD_UNKNOWN, &scratch) == REASON_NONE;
}

bool placement_fits(const struct node *node, const struct request *request,
                    const struct policy *policy, const struct demand *demand)
{
    if (is_futile(node, request))
        return false;
    if (placement_is_obvious(node, request))
        return true;
    if (is_plain(node, request, policy))
        return check_counts(node, request) == REASON_NONE && has_candidates(node, request);
    return is_found(node, request, policy, demand);
}

enum reason placement_card_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask, const struct card *card)
{
    struct placement none = {.request = request};
    const struct search search = {.node = node, .request = request, .placement = &none};
    struct part part;
    const enum obstacle obstacle = card_obstacle(&search, ask, card, card, &part);

    return obstacle == OBSTACLE_NONE ? REASON_NONE : obstacle_reasons[obstacle];
}

enum reason placement_pool_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask)
{
    struct placement none = {.request = request};
    const struct search search = {.node = node, .request = request, .placement = &none};

    return pool_obstacle(&search, ask);
}
