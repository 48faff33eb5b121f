/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search: an ask after the other, each on the best of its candidates (candidates.c), and back to
 * the next best where what follows finds no room. What fits at all is said in obstacles.c.
 */
#include "policy/candidates.h"

/* Sets of cards tried before the search gives up: it runs under the caller's lock. */
#define TRIES_MAX 2048
/* Candidates of all asks together that need no memory of their own. */
#define CANDIDATES_INLINE 16

struct search {
    struct situation situation;   /* its `chosen` is the placement below */
    struct placement *placement;  /* grows and shrinks while cards are tried */
    struct candidate *candidates; /* n_cards for each ask */
    bool same_numa; /* all cards of an ask are on one NUMA node */
    unsigned tries;
    enum reason reason; /* why the first ask that failed did */
};

static bool place_from(struct search *search, uint32_t at);

/* Whether a card is beside, or apart from, the pod's other containers as the terms want it. */
static bool suits_neighbours(const struct search *search, const struct card_ask *ask,
                             const struct card *card)
{
    const struct placement *placement = search->placement;
    const struct terms *terms = search->situation.request->terms;
    const enum neighbours wanted = terms ? terms->neighbours : NEIGHBOURS_ANY;
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

static bool is_on(const struct placement *placement, int32_t container, int32_t card)
{
    for (uint32_t i = 0; i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->container == container && share->card == card && !share->device)
            return true;
    }
    return false;
}

/* Whether an init container may have the card as one of `left` that it has yet to get. kubelet gives its devices
 * to the app containers next, in their order (kubernetes@v1.34.0:pkg/kubelet/cm/devicemanager/manager.go:
 * devicesToReuse), and a node side may go by those devices instead of what the pod was promised. */
static bool suits_successors(const struct search *search, const struct card_ask *ask,
                             const struct card *card, int32_t left)
{
    const struct placement *placement = search->placement;
    int32_t passed_on = 0, missing = 0, container = CONTAINER_POD;

    if (!ask->init || card->mig)
        return true;
    for (uint32_t i = 0; i < placement->n_shares; i++) {
        const struct share *share = &placement->shares[i];
        if (share->device || share->init || share->sidecar)
            continue;
        if (passed_on >= ask->count && share->container != container)
            return false;
        if (share->card == card->index)
            return true;
        missing += !is_on(placement, ask->container, share->card);
        container = share->container;
        passed_on++;
    }
    return passed_on < ask->count && missing < left;
}

/* What the ask gets of a card; false: what it has got of it before leaves no place. */
static bool take_part(const struct search *search, const struct card_ask *ask,
                      const struct card *card, struct share *ret_share)
{
    struct part part;

    if (!card->mig) {
        part_find(&search->situation, ask, card, card, &part);
    } else {
        const struct card later = card_with_chosen(&search->situation, ask, card);
        if (card_obstacle(&search->situation, ask, &later, card, &part) != OBSTACLE_NONE)
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
    const struct card_ask *ask = &search->situation.request->asks[at];
    struct placement *placement = search->placement;
    const struct node *node = search->situation.node;

    if (left == 0)
        return place_from(search, at + 1);
    for (int32_t i = from; i < n && search->tries < TRIES_MAX; i++) {
        const struct card *card = candidates[i].card;
        const uint32_t before = placement->n_shares;
        if (!card->mig && i + left > n)
            continue;
        if (search->same_numa && left < ask->count &&
            node_card(node, placement->shares[before - 1].card)->numa != card->numa)
            continue;
        search->tries++;
        if (!suits_neighbours(search, ask, card) || !suits_successors(search, ask, card, left)) {
            if (search->situation.policy->foreseen)
                break;
            continue;
        }
        if (!take_part(search, ask, card, &placement->shares[before]))
            continue;
        placement->n_shares++;
        if (choose_cards(search, at, candidates, n, card->mig ? i : i + 1, left - 1))
            return true;
        placement->n_shares = before;
        if (search->situation.policy->foreseen)
            break;
    }
    return false;
}

static bool place_devices(struct search *search, uint32_t at)
{
    const struct card_ask *ask = &search->situation.request->asks[at];
    const enum reason reason = pool_obstacle(&search->situation, ask);

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
    const struct node *node = search->situation.node;
    const struct request *request = search->situation.request;

    if (at == request->n_asks)
        return true;
    const struct card_ask *ask = &request->asks[at];
    if (ask->device)
        return place_devices(search, at);

    struct candidate *candidates = &search->candidates[at * (uint32_t)node->n_cards];
    enum reason reason;
    const int32_t n = candidates_find(&search->situation, ask, candidates, &reason);
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
           !ask->device && !request->terms && node->n_dialects == 1 && !node_is_mixed(node) &&
           node->n_choosy == 0 && ask->memory.kind != AMOUNT_THOUSANDTHS &&
           amount_bytes(ask->memory, node->memory_unit) <= node->memory_free_max;
}

static bool has_slots(const struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].slots > 0)
            return true;
    }
    return false;
}

/* Wherever the others go, they take no more than this of the emptiest card. */
bool placement_of_all_is_obvious(const struct node *node, const struct request *request, int32_t n)
{
    return placement_is_obvious(node, request) && !has_slots(node) &&
           amount_bytes(request->asks[0].memory, node->memory_unit) <= node->memory_free_max / n;
}

enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, const struct demand *demand,
                           int32_t pinned, struct placement *ret_placement)
{
    SCRATCH struct candidate few[CANDIDATES_INLINE];
    g_autofree struct candidate *many = NULL;
    const size_t n = (size_t)node->n_cards * request->n_asks;
    struct search search = {
        .situation = {node, request, ret_placement, policy, demand, pinned},
        .placement = ret_placement,
        .candidates = few,
    };

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

/* Whether the request is for some cards of which each is as good as the others. */
static bool is_plain(const struct node *node, const struct request *request,
                     const struct policy *policy)
{
    const struct card_ask *ask = &request->asks[0];

    return request->n_asks == 1 && !ask->device && !policy->foreseen &&
           (ask->count == 1 ||
            (!may_repeat(node) && !(request->terms && request->terms->same_numa)));
}

/* Out of line, for its placement is large. */
G_GNUC_NO_INLINE static bool is_found(const struct node *node, const struct request *request,
                                      const struct policy *policy, const struct demand *demand)
{
    SCRATCH struct placement scratch;

    return placement_find(node, request, policy, demand, CARD_UNKNOWN, &scratch) == REASON_NONE;
}

/* Where any card is as good as another they are counted; else the search tells. */
bool placement_fits(const struct node *node, const struct request *request,
                    const struct policy *policy, const struct demand *demand)
{
    const struct situation alone = {.node = node, .request = request};

    return is_plain(node, request, policy)
               ? check_counts(node, request) == REASON_NONE &&
                     candidates_suffice(&alone, &request->asks[0])
               : is_found(node, request, policy, demand);
}

enum reason placement_card_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask, const struct card *card)
{
    const struct situation alone = {.node = node, .request = request};
    struct part part;
    const enum obstacle obstacle = card_obstacle(&alone, ask, card, card, &part);

    return obstacle == OBSTACLE_NONE ? REASON_NONE : obstacle_reasons[obstacle];
}

enum reason placement_pool_reason(const struct node *node, const struct request *request,
                                  const struct card_ask *ask)
{
    const struct situation alone = {.node = node, .request = request};

    return pool_obstacle(&alone, ask);
}
