/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search knows cards, selectors, taints and sums of nodes. What else may refuse a pod, such as a
 * quota, an older pod or a node that is left out, is seen when the plan is tried as a whole; then that
 * pod is barred from that node, and another plan is looked for.
 */
#include "core/fail.h"
#include "maintain/named_pods.h"
#include "maintain/relocation_work.h"
#include "policy/what_if.h"
#include "store/amounts.h"
#include "wire/constraints.h"

#include <gpuledger/fragmentation.h>
#include <string.h>

#define ROUNDS_MAX 16
static void clear_step(void *data)
{
    struct relocation_step *step = data;

    g_free(step->ns);
    g_free(step->name);
    g_free(step->uid);
    g_free(step->from);
    g_free(step->frees);
    g_free(step->to);
    g_free(step->takes);
    g_free(step->owner_kind);
    g_free(step->owner);
    kept_room_free(step->room);
    kept_room_free(step->left);
}

static void clear_stay(void *data)
{
    struct relocation_stay *stay = data;

    g_free(stay->ns);
    g_free(stay->name);
    g_free(stay->node);
    g_free(stay->why);
}

static void clear_seat(void *data)
{
    struct relocation_seat *seat = data;

    g_free(seat->ns);
    g_free(seat->name);
    g_free(seat->node);
    g_free(seat->cards);
    kept_room_free(seat->room);
}

struct relocation *relocation_new(void)
{
    struct relocation *relocation = g_new0(struct relocation, 1);

    relocation->steps = g_array_new(FALSE, TRUE, sizeof(struct relocation_step));
    g_array_set_clear_func(relocation->steps, clear_step);
    relocation->stays = g_array_new(FALSE, TRUE, sizeof(struct relocation_stay));
    g_array_set_clear_func(relocation->stays, clear_stay);
    relocation->seats = g_array_new(FALSE, TRUE, sizeof(struct relocation_seat));
    g_array_set_clear_func(relocation->seats, clear_seat);
    return relocation;
}

void relocation_free(struct relocation *relocation)
{
    if (!relocation)
        return;
    g_array_unref(relocation->steps);
    g_array_unref(relocation->stays);
    g_array_unref(relocation->seats);
    kept_room_free(relocation->room);
    g_free(relocation->goal);
    g_free(relocation->ns);
    g_free(relocation->name);
    g_free(relocation->uid);
    g_free(relocation->node);
    g_free(relocation->cards);
    g_free(relocation->why);
    g_free(relocation);
}

static bool admits(const struct node *node, const struct plan_pod *pod, void *data)
{
    const struct work *work = data;
    const struct mover *mover = pod ? pod->tag : NULL;

    return !work_is_barred(work, pod ? pod->uid : NULL, node->name) &&
           (mover ? work_may_be_on(&mover->view, mover->request, node)
                  : work_may_be_on(&work->admit, work->request, node));
}

/* --- whose pods are looked at ------------------------------------------------------------------- */

struct candidate {
    char *node;
    int64_t free; /* bytes of its cards; or what is fragmented of it */
};

static void clear_candidate(void *data)
{
    g_free(((struct candidate *)data)->node);
}

static gint compare_candidates(gconstpointer a, gconstpointer b)
{
    const struct candidate *one = a, *other = b;

    return one->free != other->free ? (one->free < other->free ? 1 : -1)
                                    : strcmp(one->node, other->node);
}

/* The pod would find room if nobody were there. */
static bool fits_when_empty(struct work *work, const struct request *request,
                            const struct node *node)
{
    g_autoptr(what_if) what_if = what_if_new(node);

    for (guint i = 0; i < what_if->allocations->len; i++)
        what_if_without(what_if, what_if->allocations->pdata[i]);
    return work_fits(work, what_if->node, request);
}

/* It may lend room to the pod to admit, or to some pod of the group. */
static bool might_take(struct work *work, const struct node *node)
{
    bool might = !work->request && !work->members;

    if (work->request)
        might = constraints_check(work->admit.constraints, node) == BARRIER_NONE &&
                dialect_serves(node, work->request) && fits_when_empty(work, work->request, node);
    for (guint i = 0; work->members && !might && i < work->members->len; i++) {
        const struct mover *member = work->members->pdata[i];
        might = (i == 0 || !work_are_alike(member, work->members->pdata[i - 1])) &&
                constraints_check(member->view.constraints, node) == BARRIER_NONE &&
                dialect_serves(node, member->request) &&
                fits_when_empty(work, member->request, node);
    }
    return might;
}

static int64_t free_memory(const struct node *node)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        sum += MAX(node->cards[i].memory - node->cards[i].memory_used, 0);
    for (int32_t i = 0; i < node->n_pools; i++)
        sum +=
            MAX(node->pools[i].capacity - node->pools[i].used, 0) * MAX(node->pools[i].memory, 1);
    return sum;
}

/* Whoever is to end may be where the pod cannot go, and yet be in its way. */
static bool holds_named(const struct relocation_query *query, const struct node *node)
{
    bool holds = false;

    for (guint i = 0; query->ends && !holds && i < node->allocations->len; i++) {
        const struct allocation *holder = node->allocations->pdata[i];
        holds = g_hash_table_contains(query->ends, holder->uid);
    }
    return holds;
}

/* Nodes to look at: of a pod to admit those that it may be on, after those of pods that are to end; else the one to
 * be emptied first. */
static GArray *list_candidates(struct work *work)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct candidate));
    const GPtrArray *nodes = ledger_nodes(store_lock(work->copy));

    g_array_set_clear_func(list, clear_candidate);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const bool named =
            holds_named(work->query, node) ||
            (work->query->empty && g_str_equal(node->name, work->query->empty->node));
        if (!named && (!node->present || node->cordoned || !might_take(work, node)))
            continue;
        const struct candidate one = {g_strdup(node->name),
                                      named          ? INT64_MAX
                                      : work->demand ? fragmentation_of(node, work->demand)
                                                     : free_memory(node)};
        g_array_append_val(list, one);
    }
    store_unlock(work->copy);
    g_array_sort(list, compare_candidates);
    return list;
}

/* What is fragmented is brought down by pods of these nodes, which may go to any. */
static bool look(struct work *work, GError **error)
{
    g_autoptr(GArray) list = list_candidates(work);

    work->found->n_nodes = list->len;
    work->found->n_looked =
        MIN(list->len, work->demand ? RELOCATION_LENDERS_MAX : RELOCATION_NODES_MAX);
    for (guint i = 0; i < work->found->n_looked; i++) {
        const char *node = g_array_index(list, struct candidate, i).node;
        if (!movers_read(work->movers, work->query->store, node, error))
            return false;
    }
    return true;
}

/* --- the search --------------------------------------------------------------------------------- */

/* Bytes; one GiB for each device that is handed out by count. */
static int64_t cost_of(const struct allocation *holder)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < holder->n_shares; i++) {
        const struct share *share = &holder->shares[i];
        sum += share->device ? (int64_t)share->devices << 30
                             : card_bytes(holder->node, NULL, share->memory);
    }
    return sum;
}

/* Of a name in the order in which they come, from 0. */
static uint32_t number_of(GHashTable *numbers, const char *name)
{
    const guint n = g_hash_table_size(numbers);
    gpointer known;

    if (g_hash_table_lookup_extended(numbers, name, NULL, &known))
        return GPOINTER_TO_UINT(known);
    g_hash_table_insert(numbers, (gpointer)name, GUINT_TO_POINTER(n));
    return n;
}

/* One that the query names and that is not among those that were looked at; or NULL. */
static const char *find_unknown(const struct work *work)
{
    for (const char *const *name = work->query->only; name && *name; name++) {
        const char *const alone[] = {*name, NULL};
        bool known = false;
        for (guint i = 0; i < movers_n(work->movers) && !known; i++) {
            const struct mover *mover = movers_get(work->movers, i);
            known = named_pods_has(alone, mover->view.ns, mover->view.name);
        }
        if (!known)
            return *name;
    }
    return NULL;
}

/* Those that end are the pods that had the names, and no successor that has one of them again. */
static bool is_named(const struct work *work, const struct mover *mover)
{
    const struct relocation_query *query = work->query;

    return query->ends ? g_hash_table_contains(query->ends, mover->uid)
                       : named_pods_has(query->only, mover->view.ns, mover->view.name);
}

/* Under the copy's lock. Array of struct plan_pod; each draws on the budget of its namespace. */
static GArray *list_pods(const struct work *work)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_str_hash, g_str_equal);
    GArray *pods = g_array_new(FALSE, TRUE, sizeof(struct plan_pod));

    for (guint i = 0; i < movers_n(work->movers); i++) {
        const struct mover *mover = movers_get(work->movers, i);
        const struct allocation *holder = ledger_get(store_ledger(work->copy), mover->uid);
        if (mover->stays || !holder || !is_named(work, mover))
            continue;
        const struct plan_pod pod = {
            .uid = mover->uid,
            .request = mover->request,
            .owner = mover->controller.uid,
            .cost = cost_of(holder),
            .tag = mover,
            .ends = work->query->ends != NULL,
            .n_budgets = work->query->per_namespace > 0 ? 1 : 0,
            .budgets = {number_of(numbers, mover->view.ns)},
        };
        g_array_append_val(pods, pod);
    }
    return pods;
}

/* What is to be kept for the pod that its controller makes in its place. */
static struct kept_room *room_for_successor(const struct plan_step *step)
{
    const struct mover *mover = step->pod->tag;
    const struct request *request = mover->request;

    if (!mover->controller.uid || !step->takes)
        return NULL;
    while (request && request->dialect != step->takes->dialect)
        request = request->alternative;
    struct kept_room *room = kept_room_new();
    *room = (struct kept_room){
        .ns = g_strdup(mover->view.ns),
        .controller = g_strdup(mover->controller.uid),
        .asks = kept_room_asks(request ? request : mover->request),
        .held = allocation_dup(step->takes),
    };
    return room;
}

/* What the pod has, for nobody: its successor would find it free again. */
static struct kept_room *room_left(const struct plan_step *step)
{
    const struct mover *mover = step->pod->tag;
    struct kept_room *room = kept_room_new();

    room->uid = g_strconcat(RELOCATION_LEFT, mover->uid, NULL);
    room->held = allocation_dup(step->frees);
    return room;
}

static void keep_step(struct work *work, const struct plan_step *step)
{
    const struct mover *mover = step->pod->tag;
    const struct ledger *ledger = store_ledger(work->copy);
    const struct relocation_step kept = {
        .ns = g_strdup(mover->view.ns),
        .name = g_strdup(mover->view.name),
        .uid = g_strdup(mover->uid),
        .from = g_strdup(step->from),
        .frees = shares_text(ledger_node(ledger, step->from), step->frees->shares,
                             step->frees->n_shares),
        .to = g_strdup(step->to),
        .takes = step->takes ? shares_text(ledger_node(ledger, step->to), step->takes->shares,
                                           step->takes->n_shares)
                             : NULL,
        .owner_kind = g_strdup(mover->controller.kind),
        .owner = g_strdup(mover->controller.uid),
        .room = room_for_successor(step),
        .left = work->demand || work->members ? room_left(step) : NULL,
        .overlooked = mover->view.constraints ? mover->view.constraints->overlooked : 0,
    };

    g_array_append_val(work->found->steps, kept);
}

/* One plan, on a copy of its own. */
static enum plan_outcome search(struct work *work, const GArray *pods, GPtrArray **ret_steps)
{
    const struct relocation_query *query = work->query;
    g_autoptr(store) ground = store_copy(work->copy);
    g_autofree int64_t *allowed = g_new(int64_t, pods->len + 1); /* not more namespaces than pods */
    for (guint i = 0; i <= pods->len; i++)
        allowed[i] = query->per_namespace;
    g_autoptr(GArray) group = work->members ? work_group(work) : NULL;
    const struct plan_query asked = {
        .goal = {.admit = work->request,
                 .group = (const struct plan_pod *)(const void *)(group ? group->data : NULL),
                 .n_group = group ? group->len : 0,
                 .node = query->empty ? query->empty->node : NULL,
                 .card = query->empty ? query->empty->card : CARD_UNKNOWN,
                 .demand = work->demand,
                 .fragmented_most = work->found->fragmented_most},
        .pods = (const struct plan_pod *)(const void *)pods->data,
        .n_pods = pods->len,
        .policy = store_options(ground)->policy,
        .moves_max = query->moves_max,
        .per_owner = query->per_owner,
        .per_node = query->per_node,
        .allowed = allowed,
        .n_allowed = pods->len,
        .uncontrolled = query->force,
        .admits = admits,
        .data = work,
    };
    struct ledger *ledger = store_lock(ground);
    const enum plan_outcome outcome = plan_make(ledger, &asked, &work->found->fewest, ret_steps);

    store_unlock(ground);
    return outcome;
}

static void keep_steps(struct work *work, const GPtrArray *steps)
{
    store_lock(work->copy);
    for (guint i = 0; i < steps->len; i++)
        keep_step(work, steps->pdata[i]);
    store_unlock(work->copy);
    work->found->reached = true;
}

/* The pod has room, or could have, and is refused for something else, which the end of some may change. */
static void find_ends(struct work *work, GArray *pods)
{
    bool fewest;
    g_autoptr(GPtrArray) steps = work_find_ends(work, pods, &fewest);

    work->found->fewest = fewest;
    if (steps)
        keep_steps(work, steps);
}

/* Until a plan holds as a whole. */
static void find(struct work *work)
{
    enum plan_outcome outcome = PLAN_GAVE_UP;

    store_lock(work->copy);
    g_autoptr(GArray) pods = list_pods(work);
    store_unlock(work->copy);
    for (int round = 0; round < ROUNDS_MAX && !work->cut; round++) {
        g_autoptr(GPtrArray) steps = NULL;
        outcome = search(work, pods, &steps);
        work->found->fewest = work->found->fewest && round == 0;
        if (outcome != PLAN_FOUND)
            break;
        if (!work_try(work, steps))
            continue;
        keep_steps(work, steps);
        return;
    }
    work->found->fewest = work->found->fewest && outcome == PLAN_NONE && !work->cut;
    if (!work->cut && work->query->ends && work->reason != REASON_NONE)
        find_ends(work, pods);
}

/* --- words -------------------------------------------------------------------------------------- */

static void keep_stays(struct work *work)
{
    for (guint i = 0; i < movers_n(work->movers); i++) {
        const struct mover *mover = movers_get(work->movers, i);
        const struct allocation *holder;

        if (!mover->stays)
            continue;
        store_lock(work->copy);
        holder = ledger_get(store_ledger(work->copy), mover->uid);
        const struct relocation_stay stay = {g_strdup(mover->view.ns), g_strdup(mover->view.name),
                                             g_strdup(holder ? holder->node->name : ""),
                                             g_strdup(mover->stays)};
        const bool counts = holder && (!work->query->ends || is_named(work, mover)) &&
                            (work->request || work->demand || work->members ||
                             (g_str_equal(stay.node, work->query->empty->node) &&
                              card_place_holds(work->query->empty, holder)));
        store_unlock(work->copy);
        if (counts)
            g_array_append_val(work->found->stays, stay);
        else
            clear_stay((void *)&stay);
    }
}

static char *why_not(const struct work *work)
{
    const struct relocation *found = work->found;
    const char *unknown = find_unknown(work);

    if ((work->request || work->members) && found->n_nodes == 0 && !work->cut)
        return g_strdup("no node would take it, even if nobody were there");
    if (unknown)
        return g_strdup_printf("%s holds no GPU on a node that was looked at", unknown);
    if (work->reason != REASON_NONE)
        return g_strdup_printf("room can be made, but the pod is refused all the same: %s",
                               reason_info(work->reason)->text);
    if (work->demand && found->fragmented_most < 0)
        return g_strdup_printf("only %.2f GPU are free that the expected pods cannot use",
                               (double)found->fragmented / 1000);
    if (work->query->empty && found->stays->len > 0)
        return g_strdup_printf("%u of its pods may not be moved", found->stays->len);
    return g_strdup_printf(found->fewest && found->n_looked == found->n_nodes
                               ? "no moves exist: no order of at most %u does it"
                               : "no order was found, of at most %u moves; not all were tried",
                           work->query->moves_max);
}

/* --- the whole ---------------------------------------------------------------------------------- */

/* A goal that is there already leaves nothing to look for. */
static bool read_admit(struct work *work, GError **error)
{
    GError *failure = NULL;

    work->admit = *work->query->admit;
    work->admit.node_name = NULL;
    if (constraints_decode(work->arena, &work->admit, &failure))
        work->request =
            dialect_read_request(&work->admit, &store_options(work->copy)->dialects, &failure);
    if (failure) {
        g_propagate_prefixed_error(error, failure, "%s/%s: ", work->admit.ns, work->admit.name);
        return false;
    }
    if (!work->request)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "%s/%s asks for no GPU", work->admit.ns,
                         work->admit.name);
    work->found->ns = g_strdup(work->admit.ns);
    work->found->name = g_strdup(work->admit.name);
    work->found->uid = g_strdup(work->admit.uid);
    g_autofree char *asks = request_text(NULL, work->request);
    work->found->goal =
        g_strdup_printf("room for %s/%s (%s)", work->admit.ns, work->admit.name, asks);
    if (pod_view_is_bound(work->query->admit)) {
        work->found->reached = work->found->fewest = true;
        work->found->node = g_strdup(work->query->admit->node_name);
    }
    return true;
}

static bool read_empty(struct work *work, GError **error)
{
    const struct card_place *place = work->query->empty;
    struct ledger *ledger = store_lock(work->copy);
    const bool known = card_place_find(place, ledger, error) != NULL;

    if (known)
        card_place_close(place, ledger);
    store_unlock(work->copy);
    work->found->goal = place->card == CARD_UNKNOWN
                            ? g_strdup_printf("nobody on %s", place->node)
                            : g_strdup_printf("nobody on %s/%d", place->node, place->card);
    return known;
}

static bool read_less(struct work *work, GError **error)
{
    const struct relocation_query *query = work->query;
    struct relocation *found = work->found;

    work->demand = store_demand_copy(work->copy);
    if (!demand_version(work->demand))
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                         "too few pods were seen to say what is fragmented");
    found->fragmented = plan_fragmented(store_lock(work->copy), work->demand);
    store_unlock(work->copy);
    found->fragmented_then = found->fragmented;
    found->measured = true;
    found->fragmented_most =
        query->fragmented_most >= 0 ? query->fragmented_most : found->fragmented - query->less;
    found->reached = found->fewest =
        found->fragmented_most >= 0 && found->fragmented <= found->fragmented_most;
    found->goal = g_strdup_printf("at most %.2f GPU in pieces",
                                  (double)MAX(found->fragmented_most, 0) / 1000);
    return true;
}

static bool read_goal(struct work *work, GError **error)
{
    return work->query->admit   ? read_admit(work, error)
           : work->query->group ? work_read_group(work, error)
           : work->query->empty ? read_empty(work, error)
                                : read_less(work, error);
}

struct relocation *relocation_find(const struct relocation_query *query, GError **error)
{
    g_autoptr(relocation) found = relocation_new();
    g_auto(work_cleared) work = {
        .query = query,
        .found = found,
        .copy = store_copy(query->store),
        .arena = json_arena_new(),
        .movers = movers_new(query->cluster, query->force),
        .barred = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .meter = {.left = WORK_APART},
    };

    if (!read_goal(&work, error))
        return NULL;
    if (query->ends)
        movers_spare_above(work.movers, work.admit.priority);
    movers_spare_paused(work.movers, query->paused);
    movers_spare_new(work.movers, query->permits);
    if (found->reached || found->why)
        return g_steal_pointer(&found);
    if (!look(&work, error))
        return NULL;
    keep_stays(&work);
    if (!work.demand || found->fragmented_most >= 0)
        find(&work);
    if (!found->reached)
        found->why = why_not(&work);
    return g_steal_pointer(&found);
}
