/* SPDX-License-Identifier: Apache-2.0 */
/* Every order of moves, and every card of every node. */
#include "plan/search.h"

#include <string.h>

static bool advance(struct search *search, uint32_t left);

/* The step, and what may follow it. */
static bool take(struct search *search, size_t pod, const char *to,
                 const struct placement *placement, uint32_t left)
{
    const guint n = search->steps->len;

    if (search_refills(search, ledger_node(search->ledger, to), placement) ||
        !search_move(search, pod, to, placement))
        return false;
    if (advance(search, left - 1))
        return true;
    search_return(search, n);
    return false;
}

/* Of cards that hold nobody and are the same, one is tried. */
static bool is_like_one_before(const struct search *search, const struct node *node, int32_t at)
{
    const struct plan_goal *goal = &search->query->goal;
    const struct card *card = &node->cards[at];

    if (goal->node && strcmp(goal->node, node->name) == 0)
        return false;
    for (int32_t i = 0; i < at; i++) {
        const struct card *other = &node->cards[i];
        if (card->holders == 0 && other->holders == 0 && !card->mig && !other->mig &&
            card->kind == other->kind && card->memory == other->memory &&
            card->memory_used == other->memory_used && card->core == other->core &&
            card->core_used == other->core_used && card->slots == other->slots &&
            card->parts == other->parts && card->healthy == other->healthy &&
            card->closure == other->closure && card->pressed == other->pressed &&
            card->best_effort == other->best_effort)
            return true;
    }
    return false;
}

/* Any one card of the node. */
static bool try_cards(struct search *search, size_t pod, const char *name, uint32_t left)
{
    const struct request *request = search->query->pods[pod].request;
    const bool alike =
        !search->query->goal.admit ||
        search_any_card(search, search->query->goal.admit, ledger_node(search->ledger, name));
    const struct node *node = ledger_node(search->ledger, name);

    for (int32_t i = 0; i < node->n_cards; i++) {
        struct placement placement;

        if (alike && is_like_one_before(search, node, i))
            continue;
        if (!search_try(search))
            return false;
        if (search_place(search, node, request, node->cards[i].index, &placement) &&
            take(search, pod, name, &placement, left))
            return true;
        node = ledger_node(search->ledger, name);
    }
    return false;
}

/* The pod takes several cards at once, and its successor may be on others than those that the policy chooses. */
static bool takes_several(const struct search *search, const struct request *request,
                          const struct node *node)
{
    const struct plan_goal *goal = &search->query->goal;
    bool several = request->n_asks > 1 && !request->asks[0].device;

    for (uint32_t i = 0; i < request->n_asks; i++)
        several |= request->asks[i].count > 1 && !request->asks[i].device;
    return several && !goal->demand && goal->n_group == 0 && !search->who && node->n_cards > 1 &&
           !search_policy(search, node)->foreseen;
}

/* Where the policy, or else any one card of the node, would have the pod. */
static bool try_node(struct search *search, size_t pod, const struct node *node, uint32_t left)
{
    const struct request *request = search->query->pods[pod].request;
    const bool each = search_may_pin(search, request, node);
    g_autofree char *name = g_strdup(node->name);
    struct placement placement;

    search->unsure |= takes_several(search, request, node);
    search->could_pin |= each && node->n_cards > 1;
    if (each && search->pins)
        return try_cards(search, pod, name, left);
    return search_try(search) &&
           (each ? search_land(search, pod, name, &placement)
                 : search_place(search, node, request, CARD_UNKNOWN, &placement)) &&
           take(search, pod, name, &placement, left);
}

static bool try_end(struct search *search, size_t pod, uint32_t left)
{
    const guint n = search->steps->len;

    if (!search_try(search))
        return false;
    search_end(search, pod);
    if (advance(search, left - 1))
        return true;
    search_return(search, n);
    return false;
}

/* Two ends after each other come to the same in both orders. */
static bool is_tried_in_another_order(const struct search *search, size_t pod)
{
    const struct plan_step *last =
        search->steps->len > 0 ? search->steps->pdata[search->steps->len - 1] : NULL;

    return last && !last->to && search->query->pods[pod].ends &&
           last->pod > &search->query->pods[pod];
}

/* Whether the pod's end alone would reach the goal. */
static bool is_last(struct search *search, size_t pod)
{
    struct allocation *old = ledger_get(search->ledger, search->query->pods[pod].uid);
    g_autofree char *name = g_strdup(old->node->name);
    struct allocation *kept = allocation_dup(old);

    ledger_drop(search->ledger, kept->uid);
    const struct node *node = ledger_node(search->ledger, name);
    const bool reached =
        search_reached(search) || (search->query->goal.admit && search_admits_goal(search, node));
    ledger_put(search->ledger, name, kept);
    return reached;
}

/* Whether the pod is worth a try, if so many moves are left, of which `least` are needed for others. */
static bool may_help(struct search *search, size_t pod, uint32_t left, uint32_t least)
{
    const struct plan_query *query = search->query;

    if (!search_may_move(search, pod) || is_tried_in_another_order(search, pod))
        return false;
    if (query->goal.demand)
        return true;
    return (least < left ||
            search_is_in_the_way(search, ledger_get(search->ledger, query->pods[pod].uid))) &&
           (left > 1 || is_last(search, pod));
}

/* Each pod, to each node. */
static bool step(struct search *search, uint32_t left, uint32_t least)
{
    const struct plan_query *query = search->query;

    for (size_t p = 0; p < query->n_pods && !search->gave_up; p++) {
        if (!may_help(search, p, left, least))
            continue;
        if (query->pods[p].ends) {
            if (try_end(search, p, left))
                return true;
            continue;
        }
        for (guint n = 0; n < ledger_nodes(search->ledger)->len && !search->gave_up; n++) {
            const struct node *node = ledger_nodes(search->ledger)->pdata[n];
            if (search_admits(search, node, &query->pods[p]) && try_node(search, p, node, left))
                return true;
        }
    }
    return false;
}

/* By exactly so many moves more. Whatever the order of the steps before, what follows is the same. */
static bool advance(struct search *search, uint32_t left)
{
    const uint32_t least = search_least_moves(search);
    const uint64_t state = search_state(search);

    if (left == 0)
        return search_reached(search);
    if (least > left ||
        (left > 1 && GPOINTER_TO_UINT(g_hash_table_lookup(search->seen, &state)) >= left))
        return false;
    if (step(search, left, least))
        return true;
    if (left > 1 && !search->gave_up)
        g_hash_table_insert(search->seen, g_memdup2(&state, sizeof state), GUINT_TO_POINTER(left));
    return false;
}

static bool advance_anew(struct search *search, uint32_t left, bool pins)
{
    g_hash_table_remove_all(search->seen);
    search->pins = pins;
    const bool found = advance(search, left);
    search->pins = false;
    return found;
}

/* By as few moves as it takes, of fewer than `end`. */
static bool find_fewer(struct search *search, uint32_t end)
{
    for (uint32_t n = 1; n < end && !search->gave_up; n++) {
        if (advance_anew(search, n, false) || (search->could_pin && advance_anew(search, n, true)))
            return true;
    }
    return false;
}

static bool find_quickly(struct search *search, uint32_t most)
{
    const struct plan_goal *goal = &search->query->goal;

    return goal->demand        ? gather_find(search, most)
           : goal->n_group > 0 ? group_find(search, most)
                               : direct_find(search, most);
}

static enum plan_outcome find(struct search *search, bool *ret_fewest)
{
    const uint32_t most = MIN(search->query->moves_max, PLAN_MOVES_MAX);

    *ret_fewest = true;
    if (search_reached(search))
        return PLAN_FOUND;
    const bool direct = find_quickly(search, most);
    const uint32_t n = direct ? search->steps->len : most + 1;
    search_return(search, 0);
    if (find_fewer(search, n)) {
        *ret_fewest = !search->unsure;
        return PLAN_FOUND;
    }
    const bool gave_up = search->gave_up;
    *ret_fewest = !gave_up && !search->unsure;
    if (direct && find_quickly(search, most)) /* it goes the same way again */
        return PLAN_FOUND;
    return gave_up || search->unsure ? PLAN_GAVE_UP : PLAN_NONE;
}

enum plan_outcome plan_make(struct ledger *ledger, const struct plan_query *query, bool *ret_fewest,
                            GPtrArray **ret_steps)
{
    g_autofree bool *moved = g_new0(bool, query->n_pods + 1);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    struct work_meter meter = {.left = WORK_APART};
    struct search search = {.ledger = ledger,
                            .query = query,
                            .meter = &meter,
                            .steps = g_ptr_array_new_with_free_func(search_step_free),
                            .moved = moved,
                            .seen = seen};

    if (query->goal.demand)
        search.fragmented = plan_fragmented(ledger, query->goal.demand);
    enum plan_outcome outcome = find(&search, ret_fewest);
    if (meter.cut) /* who would have to move is not known */
        outcome = PLAN_GAVE_UP;
    if (outcome != PLAN_FOUND)
        search_return(&search, 0);
    *ret_steps = search.steps;
    return outcome;
}
