/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/nominees.h"

#include "core/ledger.h"
#include "policy/victims/victims.h"
#include "queue/nominations_state.h"

#include <string.h>

static bool finds_room(const struct node *node, void *data)
{
    return dialect_admits(node, data) == ADMISSION_YES;
}

bool card_place_on(const struct node *node, int32_t card, struct placement *placement)
{
    struct placement own;

    if (card == CARD_UNKNOWN || placement->n_shares != 1 || placement->shares[0].device)
        return false;
    if (placement->shares[0].card == card)
        return true;
    if (placement_find(node, placement->request, &policies[0], NULL, card, &own) != REASON_NONE)
        return false;
    *placement = own;
    return true;
}

/* Takes away who ends for any claim on the node, and who ends anyway, whom no claim names: what they
 * leave is shared out together. */
static void keep_claims(struct what_if *what_if, const GPtrArray *claims, int64_t now_ns)
{
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *one = what_if->allocations->pdata[i];
        bool ends = one->terminating;
        for (guint j = 0; claims && j < claims->len && !ends; j++)
            ends =
                claim_counts(claims->pdata[j], now_ns) && claim_names(claims->pdata[j], one->uid);
        if (ends)
            what_if_without(what_if, one);
    }
}

/* Takes away whom the pod would have to end, among those at last who are being deleted, and, `all_who_end`,
 * those of these, too, who are more important. False: whatever ends, the pod finds no room. */
static bool clear_way_of(struct what_if *what_if, const struct nomination *nomination,
                         struct admission_query *admission, bool all_who_end)
{
    g_autoptr(roster) roster = roster_new(what_if);
    g_autofree struct victim *all = g_new0(struct victim, roster->n + 1);
    struct victims victims = {all, 0, 0};
    const struct victims_query query = {
        .admits = finds_room,
        .data = admission,
        .one_card = dialect_asks_one_card(what_if->node, nomination->request),
        .fickle = dialect_is_fickle(nomination->request),
    };
    struct victims_cost cost;

    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        if (seat->confirmed && !seat->stays &&
            (seat->priority < nomination->priority || (all_who_end && seat->terminating)))
            all[victims.n++].seat = seat;
    }
    if (!victims_choose(what_if, roster, &query, &victims, &cost))
        return false;
    for (size_t i = 0; i < victims.n_chosen; i++)
        what_if_without(what_if, all[i].seat->allocation);
    return true;
}

/* Whom preempt names is less important, and so is sought first. */
static bool clear_way(struct what_if *what_if, const struct nomination *nomination,
                      struct admission_query *admission)
{
    return clear_way_of(what_if, nomination, admission, false) ||
           clear_way_of(what_if, nomination, admission, true);
}

/* The node as it will be when the pod comes: whom the node side has not matched yet it will have by then. */
static struct what_if *look_later(const struct node *node)
{
    struct what_if *later = what_if_new(node);

    later->node->n_waiting = 0;
    g_clear_pointer(&later->node->departed, g_array_unref);
    g_clear_pointer(&later->node->promised, g_array_unref); /* and revoked */
    return later;
}

/* Adds what a pod will hold that is on its way; it has found room. */
static void place_coming(struct what_if *what_if, const struct hint *hint,
                         const struct nominees *nominees)
{
    g_autoptr(what_if) later = look_later(what_if->node);
    struct admission_query admission = nominees->admission;
    struct placement placement;
    enum reason reason;

    admission.request = hint->request;
    if (dialect_admit(later->node, &admission, &placement, &reason) == ADMISSION_YES)
        what_if_add(what_if, what_if_allocation(hint->uid, 0, &placement));
}

static bool comes(const struct nomination *nomination, const struct nominees *nominees)
{
    return nomination->comes_until_ns == COMES_NOW ||
           nomination->comes_until_ns > nominees->admission.now_ns;
}

/* Adds what the nominated pod will hold; those whom it waits for are still there, too. */
static void place(struct what_if *what_if, const struct nomination *nomination,
                  const struct nominees *nominees)
{
    g_autoptr(what_if) later = look_later(what_if->node);
    struct admission_query admission = nominees->admission;
    struct placement placement;
    enum reason reason;
    const bool waits = !nomination->claim && nomination->priority >= nominees->priority;

    admission.request = nomination->request;
    if (nomination->claim)
        keep_claims(later, nominations_claims(nominees->nominations, nomination->node),
                    nominees->admission.now_ns);
    if ((waits && !clear_way(later, nomination, &admission)) ||
        dialect_admit(later->node, &admission, &placement, &reason) != ADMISSION_YES)
        return;
    if (nomination->claim)
        card_place_on(later->node, nomination->claim->card, &placement);
    what_if_add(what_if, what_if_allocation(nomination->uid, nomination->priority, &placement));
}

static void free_what_if(gpointer data)
{
    what_if_free(data);
}

static bool is_of_group(const struct nominees *nominees, const struct kept_room *room)
{
    return room->group && g_strcmp0(room->group, nominees->group) == 0 &&
           g_strcmp0(room->ns, nominees->ns) == 0;
}

static bool is_for(const struct nominees *nominees, const struct kept_room *room)
{
    const struct kept_room_taker asking = {.uid = nominees->uid,
                                           .ns = nominees->ns,
                                           .controller = nominees->controller,
                                           .request = nominees->admission.request};

    return room->uid ? g_strcmp0(room->uid, nominees->uid) == 0 : nomination_is_for(room, &asking);
}

/* Its time is not over, and whoever it is for is not there yet. */
static bool is_free(const struct nominees *nominees, const struct kept_room *room)
{
    const char *there = room->uid ? room->uid : room->taken;
    const int64_t left_ns = room->until_ns - nominees->admission.now_ns;

    return left_ns > 0 && left_ns <= KEPT_ROOM_MAX_NS &&
           !(there && ledger_get(nominees->ledger, there));
}

/* Not for whom it is, nor once he is there. */
static bool is_kept_from(const struct nominees *nominees, const struct kept_room *room)
{
    return is_free(nominees, room) && !is_of_group(nominees, room) && !is_for(nominees, room);
}

static bool asks_us(const struct nominees *nominees, const struct nomination *nomination)
{
    return !nominees->schedulers || g_strcmp0(nomination->scheduler, nominees->scheduler) == 0 ||
           g_hash_table_contains(nominees->schedulers, nomination->scheduler);
}

static bool counts_coming(const struct nominees *nominees, const struct hint *hint)
{
    return g_strcmp0(hint->uid, nominees->uid) != 0 && !ledger_get(nominees->ledger, hint->uid);
}

static bool counts(const struct nominees *nominees, const struct nomination *nomination)
{
    if (nominees->came && g_ptr_array_find((GPtrArray *)nominees->came, nomination, NULL))
        return false;
    if (nomination->room)
        return nomination->priority >= nominees->priority &&
               is_kept_from(nominees, nomination->room);
    if (!nomination->claim &&
        (!asks_us(nominees, nomination) || hints_keep(nominees->hints, nomination->uid)))
        return false; /* of one that is kept its hint counts */
    return (nomination->claim
                ? claim_counts(nomination->claim, nominees->admission.now_ns)
                : nomination->priority >= nominees->priority || comes(nomination, nominees)) &&
           g_strcmp0(nomination->uid, nominees->uid) != 0 &&
           !ledger_get(nominees->ledger, nomination->uid);
}

int32_t nominees_card(const struct nominees *nominees, const struct node *node)
{
    const GPtrArray *rooms = nominees->nominations->rooms;

    for (guint i = 0; i < rooms->len; i++) {
        const struct nomination *one = rooms->pdata[i];
        const struct allocation *held = one->room->held;
        if (g_str_equal(one->node, node->name) && is_free(nominees, one->room) &&
            !one->room->group && is_for(nominees, one->room))
            return held->n_shares == 1 && !held->shares[0].device ? held->shares[0].card
                                                                  : CARD_UNKNOWN;
    }
    return CARD_UNKNOWN;
}

bool nominees_concern(const struct nominees *nominees, const struct node *node)
{
    return nominations_concern(nominees->nominations, node) ||
           hints_kept_on(nominees->hints, node->name);
}

/* NULL: nobody is to be placed. */
static struct what_if *place_all_coming(const struct nominees *nominees, const struct node *node,
                                        const GPtrArray *coming)
{
    struct what_if *what_if = NULL;

    for (guint i = 0; coming && i < coming->len; i++) {
        if (!counts_coming(nominees, coming->pdata[i]))
            continue;
        if (!what_if)
            what_if = what_if_new(node);
        place_coming(what_if, coming->pdata[i], nominees);
    }
    return what_if;
}

const struct node *nominees_see(struct nominees *nominees, const struct node *node)
{
    struct what_if *what_if = NULL;

    if (!node) /* the usual case, asked for every node */
        return node;
    const GPtrArray *coming = hints_kept_on(nominees->hints, node->name);
    const GPtrArray *list = g_hash_table_size(nominees->nominations->nodes) == 0
                                ? NULL
                                : g_hash_table_lookup(nominees->nominations->nodes, node->name);
    if (!list && !coming)
        return node;
    if (nominees->what_ifs && (what_if = g_hash_table_lookup(nominees->what_ifs, node->name)))
        return what_if->node;
    what_if = place_all_coming(nominees, node, coming);
    for (guint i = 0; list && i < list->len; i++) {
        const struct nomination *nomination = g_ptr_array_index(list, i);
        if (!counts(nominees, nomination))
            continue;
        if (!what_if)
            what_if = what_if_new(node);
        if (nomination->room)
            what_if_add(what_if, allocation_dup(nomination->room->held));
        else
            place(what_if, nomination, nominees);
    }
    if (!what_if)
        return node;
    if (!nominees->what_ifs)
        nominees->what_ifs = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_what_if);
    g_hash_table_insert(nominees->what_ifs, (gpointer)what_if->node->name, what_if);
    return what_if->node;
}

bool nominees_find_room(struct nominees *nominees, const struct node *node)
{
    g_autoptr(what_if) later = look_later(nominees_see(nominees, node));

    return dialect_admits(later->node, &nominees->admission) == ADMISSION_YES;
}

bool nominees_agree(const struct nominees *nominees, const struct nominees *other,
                    const struct node *node)
{
    const GPtrArray *list = g_hash_table_lookup(nominees->nominations->nodes, node->name);
    const GPtrArray *coming = hints_kept_on(nominees->hints, node->name);

    for (guint i = 0; list && i < list->len; i++) {
        if (counts(nominees, list->pdata[i]) != counts(other, list->pdata[i]))
            return false;
    }
    for (guint i = 0; coming && i < coming->len; i++) {
        if (counts_coming(nominees, coming->pdata[i]) != counts_coming(other, coming->pdata[i]))
            return false;
    }
    return true;
}

/* As nominations_take has it: of a controller's rooms one for each successor. */
void nominees_take(const struct nominees *nominees, const struct node *node, GPtrArray *came)
{
    const GPtrArray *rooms = nominees->nominations->rooms;
    struct nomination *own = g_hash_table_lookup(nominees->nominations->pods, nominees->uid);

    if (own && g_str_equal(own->node, node->name))
        g_ptr_array_add(came, own);
    for (guint i = 0; i < rooms->len; i++) {
        struct nomination *one = rooms->pdata[i];
        if (!g_str_equal(one->node, node->name) || g_ptr_array_find(came, one, NULL) ||
            !is_free(nominees, one->room) || !is_for(nominees, one->room))
            continue;
        g_ptr_array_add(came, one);
        return;
    }
}

void nominees_clear(struct nominees *nominees)
{
    g_clear_pointer(&nominees->what_ifs, g_hash_table_unref);
}
