/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <string.h>

struct search {
    struct ledger *ledger;
    const struct plan_query *query;
    GPtrArray *steps; /* taken so far */
    bool *moved;      /* of each pod of the query */
    uint32_t tries;
    bool gave_up;
};

static void step_free(void *data)
{
    struct plan_step *step = data;

    allocation_free(step->frees);
    allocation_free(step->takes);
    g_free(step->from);
    g_free(step->to);
    g_free(step);
}

static bool touches(const struct share *shares, uint32_t n, int32_t card)
{
    for (uint32_t i = 0; i < n; i++)
        if (card == CARD_UNKNOWN || shares[i].device || shares[i].card == CARD_UNKNOWN ||
            shares[i].card == card)
            return true;
    return false;
}

static bool is_goal_node(const struct plan_goal *goal, const struct node *node)
{
    return !goal->admit && strcmp(node->name, goal->node) == 0;
}

static const struct policy *policy_of(const struct search *search, const struct node *node)
{
    return node->policy ? node->policy : search->query->policy;
}

static bool admits(const struct search *search, const struct node *node, const struct plan_pod *pod)
{
    return node->present && !node->cordoned &&
           (!search->query->admits || search->query->admits(node, pod, search->query->data));
}

static bool is_in_the_way(const struct plan_goal *goal, const struct allocation *holder)
{
    return is_goal_node(goal, holder->node) &&
           touches(holder->shares, holder->n_shares, goal->card);
}

/* Moves that are needed at least: who is to leave leaves by one move of his own. */
static uint32_t least_moves(const struct search *search)
{
    const struct plan_goal *goal = &search->query->goal;
    const struct node *node = goal->admit ? NULL : ledger_node(search->ledger, goal->node);
    uint32_t n = 0;

    for (guint i = 0; node && i < node->allocations->len; i++)
        n += is_in_the_way(goal, node->allocations->pdata[i]);
    return n;
}

static bool reached(struct search *search)
{
    const struct plan_goal *goal = &search->query->goal;

    if (!goal->admit)
        return least_moves(search) == 0;
    const GPtrArray *nodes = ledger_nodes(search->ledger);
    for (guint i = 0; i < nodes->len; i++)
        if (admits(search, nodes->pdata[i], NULL) &&
            placement_fits(nodes->pdata[i], goal->admit, policy_of(search, nodes->pdata[i]), NULL))
            return true;
    return false;
}

/* Whether the limits leave room for one more move of the pod. */
static bool within_limits(const struct search *search, const struct plan_pod *pod, const char *from)
{
    const struct plan_query *query = search->query;
    uint32_t of_owner = 0, of_node = 0;

    if (pod->refuses || (!pod->owner && !query->uncontrolled))
        return false;
    for (guint i = 0; i < search->steps->len; i++) {
        const struct plan_step *step = search->steps->pdata[i];
        of_owner += g_strcmp0(step->pod->owner, pod->owner) == 0;
        of_node += strcmp(step->from, from) == 0;
    }
    if ((query->per_owner && pod->owner && of_owner >= query->per_owner) ||
        (query->per_node && of_node >= query->per_node))
        return false;
    for (uint32_t b = 0; b < pod->n_budgets; b++) {
        int64_t drawn = 1;

        for (guint i = 0; i < search->steps->len; i++) {
            const struct plan_step *step = search->steps->pdata[i];
            for (uint32_t k = 0; k < step->pod->n_budgets; k++)
                drawn += step->pod->budgets[k] == pod->budgets[b];
        }
        if (pod->budgets[b] >= query->n_allowed || drawn > query->allowed[pod->budgets[b]])
            return false;
    }
    return true;
}

static struct allocation *successor_of(const struct allocation *old,
                                       const struct placement *placement)
{
    const struct request *request = placement->request;
    g_autofree char *uid = g_strconcat("after ", old->uid, NULL);
    struct allocation *successor = allocation_new(uid, old->ns, old->name, placement->n_shares);

    successor->dialect = request->dialect;
    successor->state = ALLOCATION_ASSUMED;
    successor->terms = terms_ref(request->terms);
    successor->oversubscribes = request->terms && request->terms->oversubscribes;
    successor->host = request->host;
    successor->match_amount = request->match_amount;
    successor->priority = old->priority;
    memcpy(successor->shares, placement->shares, placement->n_shares * sizeof *placement->shares);
    return successor;
}

static bool advance(struct search *search, uint32_t left);

/* Takes the step, looks further and takes it back, unless the goal is reached. */
static bool try_step(struct search *search, size_t pod, const char *to,
                     const struct placement *placement, uint32_t left)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    const struct allocation *old = ledger_get(search->ledger, plan_pod->uid);
    struct allocation *frees = allocation_dup(old);
    g_autofree char *from = g_strdup(old->node->name);
    struct allocation *takes = successor_of(old, placement);
    struct allocation *copy = allocation_dup(takes);
    g_autofree char *uid = g_strdup(takes->uid);
    enum reason reason;

    if (!ledger_reserve(search->ledger, to, takes, &reason)) {
        allocation_free(copy);
        allocation_free(frees);
        return false;
    }
    ledger_drop(search->ledger, plan_pod->uid);
    struct plan_step *step = g_new0(struct plan_step, 1);
    *step = (struct plan_step){plan_pod, frees, copy, g_strdup(from), g_strdup(to)};
    g_ptr_array_add(search->steps, step);
    search->moved[pod] = true;
    if (advance(search, left - 1))
        return true;
    search->moved[pod] = false;
    ledger_drop(search->ledger, uid);
    ledger_put(search->ledger, from, allocation_dup(frees));
    g_ptr_array_set_size(search->steps, (int)search->steps->len - 1);
    return false;
}

/* Where the policy, or any one card of the node, would have the pod. */
static bool try_node(struct search *search, size_t pod, struct node *node, uint32_t left)
{
    const struct plan_goal *goal = &search->query->goal;
    const struct request *request = search->query->pods[pod].request;
    const struct policy *policy = policy_of(search, node);
    bool each = !policy->foreseen && !request->alternative && request->n_asks == 1 &&
                request->asks[0].count == 1 && !request->asks[0].device;
    g_autofree char *name = g_strdup(node->name);

    for (int32_t i = 0; i < (each ? node->n_cards : 1); i++) {
        struct placement placement;
        int32_t pinned = each ? node->cards[i].index : CARD_UNKNOWN;

        if (++search->tries > PLAN_TRIES_MAX) {
            search->gave_up = true;
            return false;
        }
        if (placement_find(node, request, policy, NULL, pinned, &placement) != REASON_NONE)
            continue;
        if (is_goal_node(goal, node) && touches(placement.shares, placement.n_shares, goal->card))
            continue;
        if (try_step(search, pod, name, &placement, left))
            return true;
        node = ledger_node(search->ledger, name);
    }
    return false;
}

static bool advance(struct search *search, uint32_t left)
{
    const struct plan_query *query = search->query;

    const uint32_t least = least_moves(search);

    if (left == 0)
        return reached(search);
    if (least > left)
        return false;
    for (size_t p = 0; p < query->n_pods && !search->gave_up; p++) {
        const struct allocation *old = ledger_get(search->ledger, query->pods[p].uid);

        if (search->moved[p] || !old || old->terminating ||
            (least == left && !is_in_the_way(&query->goal, old)) ||
            !within_limits(search, &query->pods[p], old->node->name))
            continue;
        for (guint n = 0; n < ledger_nodes(search->ledger)->len && !search->gave_up; n++) {
            struct node *node = ledger_nodes(search->ledger)->pdata[n];
            if (admits(search, node, &query->pods[p]) && try_node(search, p, node, left))
                return true;
        }
    }
    return false;
}

enum plan_outcome plan_make(struct ledger *ledger, const struct plan_query *query,
                            GPtrArray **ret_steps)
{
    g_autofree bool *moved = g_new0(bool, query->n_pods + 1);
    struct search search = {ledger, query, g_ptr_array_new_with_free_func(step_free),
                            moved,  0,     false};
    bool found = false;

    for (uint32_t n = 0; !found && !search.gave_up && n <= MIN(query->moves_max, PLAN_MOVES_MAX);
         n++)
        found = advance(&search, n);
    *ret_steps = search.steps;
    return found ? PLAN_FOUND : search.gave_up ? PLAN_GAVE_UP : PLAN_NONE;
}
