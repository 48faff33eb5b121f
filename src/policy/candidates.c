/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/candidates.h"

#include "core/card.h"
#include "policy/policies.h"
#include "policy/effort/work_meter.h"

#include <gpuledger/links.h>
#include <gpuledger/mig.h>
#include <stdlib.h>
#include <string.h>

/* Whether a node side that chooses by itself will think that a card fits: it counts, and knows of
 * nothing else that speaks against a card. */
static bool has_amounts(const struct node *node, const struct card_ask *ask,
                        const struct card *card)
{
    return card->exclusive == 0 &&
           (!card_excludes(card, ask->exclusive, ask->core) || card->holders == 0) &&
           card_bytes(node, card, ask->memory) <= card_memory_free(node, card) &&
           card_core(card, ask->core) <= card_core_free(node, card);
}

static struct cost cost_of(const struct situation *at, const struct card *card,
                           const struct card_ask *ask)
{
    const struct terms *terms = at->request->terms;
    const struct policy *policy = at->policy;

    if (policy->fullness != 0 && terms &&
        (terms->weights.slots || terms->weights.core || terms->weights.memory))
        return cost_weighted(at->node, card, ask, policy, &terms->weights);
    return policy->cost(at->node, card, ask, at->demand);
}

static gint compare_candidates(gconstpointer a, gconstpointer b)
{
    const struct candidate *left = a, *right = b;

    if (left->crowd != right->crowd)
        return left->crowd < right->crowd ? -1 : 1;
    if (left->waste != right->waste)
        return left->waste < right->waste ? -1 : 1;
    if (left->cost.loss != right->cost.loss)
        return left->cost.loss < right->cost.loss ? -1 : 1;
    if (left->cost.tie != right->cost.tie)
        return left->cost.tie < right->cost.tie ? -1 : 1;
    return left->card->index < right->card->index ? -1 : 1;
}

/* Where the node side chooses by itself nothing is gained by another order. */
static int32_t crowd_on(const struct situation *at, const struct card *card)
{
    const struct terms *terms = at->request->terms;

    return terms && terms->replica_of && !at->policy->foreseen
               ? node_replicas(at->node, card, terms->replica_of)
               : 0;
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

/* Puts those first that are connected best, if the pod wants that and the node side tells. Instances
 * of a card that is cut are not connected at all. */
static void put_linked_first(const struct situation *at, const struct card_ask *ask,
                             struct candidate *candidates, int32_t n)
{
    const struct terms *terms = at->request->terms;
    const struct links *links = at->node->links;

    if (!terms || !terms->best_linked || !links || links->n != at->node->n_cards ||
        n < ask->count)
        return;
    int32_t cards[LINKS_CARDS_MAX], chosen[LINKS_CARDS_MAX];
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

/* The last card that would have been needed, were they taken in the order of how far they got. */
static enum reason tell_shortage(const int32_t *got, int32_t needed)
{
    enum obstacle last = OBSTACLE_NONE;

    for (; last > OBSTACLE_TERMS && got[last] < needed; last--)
        needed -= got[last];
    return got[last] < needed ? REASON_CARD_COUNT : obstacle_reasons[last];
}

/* Whether the search never gets beyond the best candidate: on a card that is not cut nothing else can
 * go wrong. */
static bool best_is_enough(const struct situation *at, const struct card_ask *ask)
{
    return at->request->n_asks == 1 && ask->count == 1 && !at->request->terms;
}

static void swap_best_first(struct candidate *candidates, int32_t n)
{
    int32_t best = 0;

    for (int32_t i = 1; i < n; i++) {
        if (compare_candidates(&candidates[i], &candidates[best]) < 0)
            best = i;
    }
    const struct candidate first = candidates[0];
    candidates[0] = candidates[best];
    candidates[best] = first;
}

static void put_best_first(const struct situation *at, const struct card_ask *ask,
                           struct candidate *candidates, int32_t n)
{
    if (n < 2)
        return;
    if (at->policy->slack > 0)
        level(at->policy, candidates, n);
    if (best_is_enough(at, ask)) {
        swap_best_first(candidates, n);
        if (!candidates[0].card->mig)
            return;
    }
    qsort(candidates, (size_t)n, sizeof *candidates, compare_candidates);
}

int32_t candidates_find(const struct situation *at, const struct card_ask *ask,
                        struct candidate *candidates, enum reason *ret_reason)
{
    const struct node *node = at->node;
    const bool chosen = n_chosen(at) > 0;
    int32_t got[OBSTACLE_NONE + 1] = {0}; /* cards, by how far they got */
    int64_t barred_cost = INT64_MAX; /* of the card that the node side will take and must not */
    enum obstacle barred = OBSTACLE_NONE;
    struct cost cost = {0};
    SCRATCH struct card beside;
    int32_t n = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (at->pinned != CARD_UNKNOWN && card->index != at->pinned)
            continue;
        if (chosen)
            beside = card_with_chosen(at, ask, card);
        const struct card *later = chosen ? &beside : card;
        struct part part;
        const enum obstacle obstacle = card_obstacle(at, ask, later, card, &part);
        got[obstacle]++;
        if (obstacle == OBSTACLE_NONE) {
            const int64_t waste =
                card->mig ? part.bytes - mig_bytes(node, card, ask_of_instance(ask)) : 0;
            if (chosen || n == 0 || !is_alike(card, candidates[n - 1].card))
                cost = cost_of(at, later, ask);
            candidates[n++] = (struct candidate){crowd_on(at, card), waste, cost, card};
        } else if (at->policy->foreseen && has_amounts(node, ask, later)) {
            /* Whole cards go by an order that is not known. */
            const int64_t loss =
                ask->exclusive ? INT64_MIN : at->policy->cost(node, later, ask, at->demand).loss;
            barred = loss < barred_cost ? obstacle : barred;
            barred_cost = MIN(barred_cost, loss);
        }
    }
    *ret_reason = tell_shortage(got, ask->count);
    if (n > 0 && n < ask->count && candidates[0].card->mig)
        *ret_reason = REASON_NO_MIG_PLACE;
    put_best_first(at, ask, candidates, n);
    if (n > 0 && barred_cost < candidates[0].cost.loss) {
        *ret_reason = obstacle_reasons[barred];
        return 0;
    }
    put_linked_first(at, ask, candidates, n);
    return n;
}

bool candidates_suffice(const struct situation *at, const struct card_ask *ask)
{
    const struct node *node = at->node;
    const int64_t bytes = ask->memory.kind == AMOUNT_THOUSANDTHS
                              ? 0
                              : amount_bytes(ask->memory, node->memory_unit);
    int32_t needed = ask->count;
    struct part part;

    /* The summary is of what cards really have. */
    if (bytes > node->memory_free_max &&
        !(at->request->terms && at->request->terms->oversubscribes))
        return false;
    for (int32_t i = 0; i < node->n_cards && needed > 0; i++) {
        const struct card *card = &node->cards[i];
        work_do(at->work, 1);
        needed -= bytes <= card_memory_free(node, card) &&
                  card_obstacle(at, ask, card, card, &part) == OBSTACLE_NONE;
    }
    return needed <= 0;
}
