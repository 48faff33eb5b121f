/* SPDX-License-Identifier: Apache-2.0 */
/* Room for one pod of a group after the other, each beside those before it. */
#include "plan/search.h"

static bool take_seat(struct search *search, size_t member)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        struct placement placement;
        if (search_admits_goal(search, node) &&
            search_place(search, node, search->query->goal.admit, CARD_UNKNOWN, &placement) &&
            seat_take(search, member, node, &placement))
            return true;
    }
    return false;
}

/* The same pods to the same nodes, now that none of the group has a place, so that the policy may choose other
 * cards. */
static bool go_again(struct search *search)
{
    g_autoptr(GPtrArray) steps = g_steal_pointer(&search->steps);
    bool ok = true;

    search->steps = g_ptr_array_new_with_free_func(search_step_free);
    for (guint i = steps->len; i-- > 0;)
        search_undo(search, steps->pdata[i]);
    for (guint i = 0; ok && i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        const struct node *node = ledger_node(search->ledger, step->to);
        struct placement placement;
        ok = search_place(search, node, step->pod->request, CARD_UNKNOWN, &placement) &&
             search_move(search, (size_t)(step->pod - search->query->pods), step->to, &placement);
    }
    return ok;
}

bool group_find(struct search *search, uint32_t most)
{
    const struct plan_query *query = search->query;
    size_t n = 0;

    for (; n < query->goal.n_group; n++) {
        struct plan_query alone = *query;
        alone.goal = (struct plan_goal){.admit = query->goal.group[n].request};
        search->query = &alone;
        search->who = &query->goal.group[n];
        const bool has =
            take_seat(search, n) || (direct_find(search, most) && take_seat(search, n));
        search->query = query;
        search->who = NULL;
        if (!has)
            break;
    }
    for (size_t i = 0; i < n; i++)
        seat_leave(search, i);
    return n == query->goal.n_group && go_again(search) && search_reached(search);
}
