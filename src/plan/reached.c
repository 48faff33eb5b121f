/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the goal is reached. The pods of a group are put on the ledger to see, and taken off it again. */
#include "plan/search.h"

#include "core/ledger.h"

#include <string.h>

#define SEATS_PER_TRY 8 /* take as long as to try a move */

static char *seat_uid(size_t member)
{
    return g_strdup_printf("member %zu", member);
}

bool seat_take(struct search *search, size_t member, const struct node *node,
               const struct placement *placement)
{
    g_autofree char *uid = seat_uid(member), *name = g_strdup(node->name);
    struct allocation *held = allocation_new(uid, "", uid, placement->n_shares);
    enum reason reason;

    allocation_note_request(held, placement->request);
    held->state = ALLOCATION_ASSUMED;
    memcpy(held->shares, placement->shares, placement->n_shares * sizeof *placement->shares);
    return ledger_reserve(search->ledger, name, held, &reason);
}

void seat_leave(struct search *search, size_t member)
{
    g_autofree char *uid = seat_uid(member);

    ledger_drop(search->ledger, uid);
}

/* --- whether all fit ---------------------------------------------------------------------------- */

/* Where the pod before has its place: equal ones need not be tried before that. */
struct seat {
    guint node;
    int32_t way;
};

static bool is_like_the_last(const struct search *search, size_t member)
{
    const struct plan_pod *group = search->query->goal.group;

    return member > 0 && group[member].tag == group[member - 1].tag &&
           request_equal(group[member].request, group[member - 1].request);
}

static bool seat_from(struct search *search, size_t member, struct seat last);

/* On that node, from that card on. */
static bool seat_on(struct search *search, size_t member, guint at, int32_t from)
{
    const struct plan_pod *pod = &search->query->goal.group[member];
    const struct node *node = ledger_nodes(search->ledger)->pdata[at];
    const bool each = search_any_card(search, pod->request, node);

    for (int32_t i = each ? from : 0; i < (each ? node->n_cards : 1); i++) {
        struct placement placement;
        if (++search->seats > PLAN_SEATS_MAX)
            return false;
        if (!search_place(search, node, pod->request, each ? node->cards[i].index : CARD_UNKNOWN,
                          &placement) ||
            !seat_take(search, member, node, &placement))
            continue;
        const bool all = seat_from(search, member + 1, (struct seat){at, i});
        seat_leave(search, member);
        if (all)
            return true;
        node = ledger_nodes(search->ledger)->pdata[at];
    }
    return false;
}

static bool seat_from(struct search *search, size_t member, struct seat last)
{
    const struct plan_goal *goal = &search->query->goal;

    if (member == goal->n_group)
        return true;
    const bool like = is_like_the_last(search, member);
    for (guint i = like ? last.node : 0; i < ledger_nodes(search->ledger)->len; i++) {
        const struct node *node = ledger_nodes(search->ledger)->pdata[i];
        if (search->seats > PLAN_SEATS_MAX)
            return false;
        if (search_admits(search, node, &goal->group[member]) &&
            seat_on(search, member, i, like && i == last.node ? last.way : 0))
            return true;
    }
    return false;
}

static bool group_fits(struct search *search)
{
    search->seats = 0;
    const bool fits = seat_from(search, 0, (struct seat){0, 0});

    search->tries += search->seats / SEATS_PER_TRY;
    search->gave_up = search->gave_up || search->tries > PLAN_TRIES_MAX;
    search->unsure = search->unsure || (!fits && search->seats > PLAN_SEATS_MAX);
    return fits;
}

/* --- any goal ------------------------------------------------------------------------------------ */

/* After a step there is more room only where one has left. */
bool search_reached(struct search *search)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);

    if (search->query->goal.n_group > 0)
        return group_fits(search);
    if (!search->query->goal.admit)
        return search_least_moves(search) == 0;
    for (guint i = 0; i < search->steps->len; i++) {
        const struct plan_step *step = search->steps->pdata[i];
        if (search_admits_goal(search, ledger_node(search->ledger, step->from)))
            return true;
    }
    for (guint i = 0; search->steps->len == 0 && i < nodes->len; i++)
        if (search_admits_goal(search, nodes->pdata[i]))
            return true;
    return false;
}
