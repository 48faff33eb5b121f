/* SPDX-License-Identifier: Apache-2.0 */
/* Every order of moves, and every card of every node. */
#include "plan/search.h"

static bool advance(struct search *search, uint32_t left);

/* Where the policy, or any one card of the node, would have the pod. */
static bool try_node(struct search *search, size_t pod, const struct node *node, uint32_t left)
{
    const struct request *request = search->query->pods[pod].request;
    const struct policy *policy = search_policy(search, node);
    const bool each = search_may_pin(search, request, node);
    g_autofree char *name = g_strdup(node->name);
    const guint n = search->steps->len;

    for (int32_t i = 0; i < (each ? node->n_cards : 1); i++) {
        struct placement placement;
        int32_t pinned = each ? node->cards[i].index : CARD_UNKNOWN;

        if (!search_try(search))
            return false;
        if (placement_find(node, request, policy, NULL, pinned, &placement) != REASON_NONE ||
            search_refills(search, node, &placement) || !search_move(search, pod, name, &placement))
            continue;
        if (advance(search, left - 1))
            return true;
        search_return(search, n);
        node = ledger_node(search->ledger, name);
    }
    return false;
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

/* By exactly so many moves more. */
static bool advance(struct search *search, uint32_t left)
{
    const struct plan_query *query = search->query;
    const uint32_t least = search_least_moves(search);

    if (left == 0)
        return search_reached(search);
    if (least > left)
        return false;
    for (size_t p = 0; p < query->n_pods && !search->gave_up; p++) {
        if (!search_may_move(search, p) ||
            (!query->goal.demand &&
             ((least == left &&
               !search_is_in_the_way(search, ledger_get(search->ledger, query->pods[p].uid))) ||
              (left == 1 && !is_last(search, p)))) ||
            is_tried_in_another_order(search, p))
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

/* By as few moves as it takes, of fewer than `end`. */
static bool find_fewer(struct search *search, uint32_t end)
{
    for (uint32_t n = 1; n < end && !search->gave_up; n++)
        if (advance(search, n))
            return true;
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
    return gave_up ? PLAN_GAVE_UP : PLAN_NONE;
}

enum plan_outcome plan_make(struct ledger *ledger, const struct plan_query *query, bool *ret_fewest,
                            GPtrArray **ret_steps)
{
    g_autofree bool *moved = g_new0(bool, query->n_pods + 1);
    struct search search = {.ledger = ledger,
                            .query = query,
                            .steps = g_ptr_array_new_with_free_func(search_step_free),
                            .moved = moved};

    if (query->goal.demand)
        search.fragmented = plan_fragmented(ledger, query->goal.demand);
    const enum plan_outcome outcome = find(&search, ret_fewest);
    if (outcome != PLAN_FOUND)
        search_return(&search, 0);
    *ret_steps = search.steps;
    return outcome;
}
