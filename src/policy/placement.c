/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search: an ask after the other, each on the best of its candidates (candidates.c), and back to
 * the next best where what follows finds no room. What fits at all is said in obstacles.c.
 */
#include "policy/candidates.h"
#include "policy/effort/counts.h"
#include "policy/effort/placement_search.h"
#include "policy/effort/work_meter.h"

/* Sets of cards tried before the search gives up: it runs under the caller's lock. */
#define TRIES_MAX 2048
/* What it takes, as policy/effort/work_meter.h counts, until counts are asked whether there is a placement at all. */
#define WORK_FIRST 512
/* That many shares that were chosen before cost as much as one card more. */
#define CHOSEN_PER_LOOK 16
/* Candidates of all asks together that need no memory of their own. */
#define CANDIDATES_INLINE 16

struct search {
    struct situation situation;   /* its `chosen` is the placement below */
    struct placement *placement;  /* grows and shrinks while cards are tried */
    struct candidate *candidates; /* n_cards for each ask */
    bool same_numa; /* all cards of an ask are on one NUMA node */
    unsigned tries;
    int64_t left;       /* what it may still take */
    bool cut;           /* it has taken all of that, or tried too much */
    enum reason reason; /* why the first ask that failed did */
};

static bool place_from(struct search *search, uint32_t at);

static bool may_go_on(struct search *search)
{
    search->cut |= search->tries >= TRIES_MAX || search->left <= 0;
    return !search->cut;
}

static void spend(struct search *search, int64_t work)
{
    search->left -= work;
    work_do(search->situation.work, work);
}

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
    for (int32_t i = from; i < n && may_go_on(search); i++) {
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
    spend(search, 1);
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

    if (!may_go_on(search))
        return false;
    struct candidate *candidates = &search->candidates[at * (uint32_t)node->n_cards];
    enum reason reason;
    const int32_t n = candidates_find(&search->situation, ask, candidates, &reason);
    spend(search,
          node->n_cards + node->n_cards * (int64_t)search->placement->n_shares / CHOSEN_PER_LOOK);
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

/* From the beginning, for so much. */
static enum reason search_once(struct search *search, int64_t work)
{
    search->left = work;
    search->tries = 0;
    search->cut = false;
    search->reason = REASON_NONE;
    search->placement->n_shares = 0;
    return place_from(search, 0) ? REASON_NONE : search->reason;
}

/* Whether the cards for one share depend on those for others, or may be taken in many orders. */
static bool has_turns(const struct node *node, const struct request *request)
{
    const struct terms *terms = request->terms;

    return request->n_asks > 1 ||
           (request->n_asks == 1 && request->asks[0].count > 1 &&
            (may_repeat(node) || (terms && (terms->same_numa || terms->near_numa))));
}

/* What counts tell where a search was cut short; REASON_WORK_LIMIT: nothing. */
static enum reason count(struct search *search)
{
    const struct situation alone = {.node = search->situation.node,
                                    .request = search->situation.request,
                                    .policy = search->situation.policy,
                                    .pinned = search->situation.pinned,
                                    .work = search->situation.work};

    return counts_place(&alone, search->placement) ? REASON_NONE : REASON_WORK_LIMIT;
}

/* A little first, in which most searches end; then, unless counts speak against it, as much as there is. */
static enum reason search_in_turns(struct search *search, int64_t budget)
{
    const int64_t first = MIN(budget, WORK_FIRST);
    enum reason reason = first > 0 ? search_once(search, first) : REASON_NONE;

    if (first > 0 && !search->cut)
        return reason;
    search->placement->n_shares = 0;
    if (counts_refuse(&search->situation))
        return reason == REASON_NONE ? REASON_INSUFFICIENT_MEMORY : reason;
    reason = budget > first ? search_once(search, budget - first) : REASON_NONE;
    if (budget > first && (!search->cut || reason == REASON_NONE))
        return reason;
    return count(search);
}

/* What a look at the node costs is added to what searches may take. */
static enum reason search_within(struct search *search)
{
    const struct node *node = search->situation.node;
    struct work_meter *work = search->situation.work;

    if (!has_turns(node, search->situation.request))
        return search_once(search, INT64_MAX);
    if (!work)
        return search_in_turns(search, INT64_MAX);
    work->left = MAX(work->left, 0) + WORK_NODE + node->n_cards;
    const int64_t before = work->done;
    const enum reason reason = search_in_turns(search, MIN(work->left, WORK_CALL));
    work->left -= work->done - before;
    work->cut |= reason == REASON_WORK_LIMIT;
    work->hasty |= search->cut;
    return reason;
}

enum reason placement_search(const struct node *node, const struct request *request,
                             const struct placement_query *query, struct placement *ret_placement)
{
    SCRATCH struct candidate few[CANDIDATES_INLINE];
    g_autofree struct candidate *many = NULL;
    const size_t n = (size_t)node->n_cards * request->n_asks;
    struct search search = {
        .situation = {node, request, ret_placement, query->policy, query->demand, query->pinned,
                      query->work},
        .placement = ret_placement,
        .candidates = few,
    };

    ret_placement->request = request;
    ret_placement->n_shares = 0;
    enum reason reason = check_counts(node, request);
    if (reason != REASON_NONE)
        return reason;
    if (n > CANDIDATES_INLINE)
        search.candidates = many = g_new(struct candidate, n);
    search.same_numa = request->terms && (request->terms->same_numa || request->terms->near_numa);
    reason = search_within(&search);
    if (reason == REASON_NONE || !search.same_numa || request->terms->same_numa)
        return reason;
    /* It was only a wish. */
    search.same_numa = false;
    return search_within(&search);
}

enum reason placement_find(const struct node *node, const struct request *request,
                           const struct policy *policy, const struct demand *demand, int32_t pinned,
                           struct placement *ret_placement)
{
    const struct placement_query query = {policy, demand, pinned, NULL};

    return placement_search(node, request, &query, ret_placement);
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
                                      const struct placement_query *query)
{
    SCRATCH struct placement scratch;

    return placement_search(node, request, query, &scratch) == REASON_NONE;
}

/* Where any card is as good as another they are counted; else the search tells. */
bool placement_suffices(const struct node *node, const struct request *request,
                        const struct placement_query *query)
{
    const struct situation alone = {.node = node, .request = request, .work = query->work};

    return is_plain(node, request, query->policy)
               ? check_counts(node, request) == REASON_NONE &&
                     candidates_suffice(&alone, &request->asks[0])
               : is_found(node, request, query);
}

bool placement_fits(const struct node *node, const struct request *request,
                    const struct policy *policy, const struct demand *demand)
{
    const struct placement_query query = {policy, demand, CARD_UNKNOWN, NULL};

    return placement_suffices(node, request, &query);
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
