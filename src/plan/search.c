/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search.h"

#include "core/ledger.h"
#include "policy/effort/placement_search.h"

#include <gpuledger/fragmentation.h>
#include <string.h>

void search_step_free(void *data)
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

static bool is_goal_node(const struct search *search, const struct node *node)
{
    const struct plan_goal *goal = &search->query->goal;

    return goal->node && strcmp(node->name, goal->node) == 0;
}

int64_t plan_fragmented(const struct ledger *ledger, const struct demand *demand)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    int64_t sum = 0;

    for (guint i = 0; i < nodes->len; i++)
        sum += fragmentation_of(nodes->pdata[i], demand);
    return sum;
}

/* What is fragmented of the two, which may be one; `to` may be NULL. */
static int64_t fragmented_of(const struct search *search, const char *from, const char *to)
{
    const struct demand *demand = search->query->goal.demand;
    int64_t sum = 0;

    if (!demand)
        return 0;
    sum = fragmentation_of(ledger_node(search->ledger, from), demand);
    if (to && strcmp(from, to) != 0)
        sum += fragmentation_of(ledger_node(search->ledger, to), demand);
    return sum;
}

bool search_try(struct search *search)
{
    search->gave_up = search->gave_up || ++search->tries > PLAN_TRIES_MAX;
    return !search->gave_up;
}

const struct policy *search_policy(const struct search *search, const struct node *node)
{
    return node->policy ? node->policy : search->query->policy;
}

bool search_place(const struct search *search, const struct node *node,
                  const struct request *request, int32_t pinned, struct placement *ret_placement)
{
    const struct placement_query query = {search_policy(search, node), NULL, pinned, search->meter};

    return placement_search(node, request, &query, ret_placement) == REASON_NONE;
}

bool search_fits(const struct search *search, const struct node *node,
                 const struct request *request)
{
    const struct placement_query query = {search_policy(search, node), NULL, CARD_UNKNOWN,
                                          search->meter};

    return placement_suffices(node, request, &query);
}

bool search_any_card(const struct search *search, const struct request *request,
                     const struct node *node)
{
    return !search_policy(search, node)->foreseen && !request->alternative &&
           request->n_asks == 1 && request->asks[0].count == 1 && !request->asks[0].device;
}

bool search_may_pin(const struct search *search, const struct request *request,
                    const struct node *node)
{
    const struct plan_goal *goal = &search->query->goal;

    return !goal->demand && goal->n_group == 0 && !search->who &&
           search_any_card(search, request, node);
}

bool search_admits(const struct search *search, const struct node *node, const struct plan_pod *pod)
{
    return node->present && !node->cordoned &&
           (!search->query->admits || search->query->admits(node, pod, search->query->data));
}

bool search_is_in_the_way(const struct search *search, const struct allocation *holder)
{
    return is_goal_node(search, holder->node) &&
           touches(holder->shares, holder->n_shares, search->query->goal.card);
}

bool search_refills(const struct search *search, const struct node *node,
                    const struct placement *placement)
{
    return is_goal_node(search, node) &&
           touches(placement->shares, placement->n_shares, search->query->goal.card);
}

uint32_t search_least_moves(const struct search *search)
{
    const struct plan_goal *goal = &search->query->goal;
    const struct node *node = goal->node ? ledger_node(search->ledger, goal->node) : NULL;
    uint32_t n = 0;

    if (goal->demand)
        return search->fragmented > goal->fragmented_most;

    for (guint i = 0; node && i < node->allocations->len; i++)
        n += search_is_in_the_way(search, node->allocations->pdata[i]);
    return n;
}

bool search_admits_goal(const struct search *search, const struct node *node)
{
    return search_admits(search, node, search->who) &&
           search_fits(search, node, search->query->goal.admit);
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

    allocation_note_request(successor, request);
    successor->state = ALLOCATION_ASSUMED;
    successor->priority = old->priority;
    memcpy(successor->shares, placement->shares, placement->n_shares * sizeof *placement->shares);
    return successor;
}

bool search_may_move(const struct search *search, size_t pod)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    const struct allocation *old = ledger_get(search->ledger, plan_pod->uid);

    return !search->moved[pod] && old && !old->terminating &&
           within_limits(search, plan_pod, old->node->name);
}

static bool is_where(const struct allocation *one, const char *node,
                     const struct placement *placement)
{
    return strcmp(one->node->name, node) == 0 && one->n_shares == placement->n_shares &&
           one->n_shares == 1 && !one->shares[0].device && !placement->shares[0].device &&
           one->shares[0].card == placement->shares[0].card;
}

bool search_land(struct search *search, size_t pod, const char *to, struct placement *ret_placement)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    struct allocation *old = ledger_get(search->ledger, plan_pod->uid);

    if (strcmp(old->node->name, to) != 0) { /* its end makes no room there */
        return search_place(search, ledger_node(search->ledger, to), plan_pod->request,
                            CARD_UNKNOWN, ret_placement);
    }
    g_autofree char *from = g_strdup(old->node->name);
    struct allocation *kept = allocation_dup(old);

    ledger_drop(search->ledger, plan_pod->uid);
    const struct node *node = ledger_node(search->ledger, to);
    const bool found = search_place(search, node, plan_pod->request, CARD_UNKNOWN, ret_placement);
    ledger_put(search->ledger, from, kept);
    return found && !is_where(ledger_get(search->ledger, plan_pod->uid), to, ret_placement);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_step(const struct search *search, const struct plan_step *step)
{
    uint64_t hash = mix(1, (uint64_t)(step->pod - search->query->pods));

    hash = mix(hash, step->to ? g_str_hash(step->to) : 0);
    for (uint32_t i = 0; step->takes && i < step->takes->n_shares; i++) {
        const struct share *share = &step->takes->shares[i];
        hash = mix(hash, (uint64_t)share->card);
        hash = mix(hash, (uint64_t)share->place.layout << 16 | (uint64_t)share->place.start << 8 |
                             share->place.size);
        hash = mix(hash, share->device ? g_str_hash(share->device) : 0);
    }
    return mix(hash, 0);
}

uint64_t search_state(const struct search *search)
{
    uint64_t sum = 0;

    for (guint i = 0; i < search->steps->len; i++)
        sum += hash_step(search, search->steps->pdata[i]);
    return sum;
}

bool search_move(struct search *search, size_t pod, const char *to,
                 const struct placement *placement)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    const struct allocation *old = ledger_get(search->ledger, plan_pod->uid);
    struct allocation *takes = successor_of(old, placement);
    enum reason reason;

    struct plan_step *step = g_new(struct plan_step, 1);
    *step = (struct plan_step){plan_pod, allocation_dup(old), allocation_dup(takes),
                               g_strdup(old->node->name), g_strdup(to)};
    const int64_t before = fragmented_of(search, step->from, to);
    if (!ledger_reserve(search->ledger, to, takes, &reason)) {
        search_step_free(step);
        return false;
    }
    ledger_drop(search->ledger, plan_pod->uid);
    search->fragmented += fragmented_of(search, step->from, to) - before;
    g_ptr_array_add(search->steps, step);
    search->moved[pod] = true;
    return true;
}

void search_end(struct search *search, size_t pod)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    const struct allocation *old = ledger_get(search->ledger, plan_pod->uid);
    struct plan_step *step = g_new0(struct plan_step, 1);

    step->pod = plan_pod;
    step->frees = allocation_dup(old);
    step->from = g_strdup(old->node->name);
    const int64_t before = fragmented_of(search, step->from, NULL);
    ledger_drop(search->ledger, plan_pod->uid);
    search->fragmented += fragmented_of(search, step->from, NULL) - before;
    g_ptr_array_add(search->steps, step);
    search->moved[pod] = true;
}

void search_undo(struct search *search, const struct plan_step *step)
{
    const int64_t before = fragmented_of(search, step->from, step->to);

    if (step->takes)
        ledger_drop(search->ledger, step->takes->uid);
    ledger_put(search->ledger, step->from, allocation_dup(step->frees));
    search->fragmented += fragmented_of(search, step->from, step->to) - before;
    search->moved[step->pod - search->query->pods] = false;
}

void search_return(struct search *search, guint n)
{
    while (search->steps->len > n) {
        search_undo(search, search->steps->pdata[search->steps->len - 1]);
        g_ptr_array_set_size(search->steps, (int)search->steps->len - 1);
    }
}
