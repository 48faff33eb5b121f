/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/relocation_work.h"

#include "core/fail.h"
#include "core/ledger.h"
#include "policy/effort/placement_search.h"
#include "policy/what_if.h"
#include "queue/pod_rules.h"
#include "store/amounts.h"
#include "verbs/gang/gang_places.h"
#include "wire/constraints.h"

#include <string.h>

#define LEFT "left by a plan" /* UID */
#define BAR_FORMAT "%s\n%s"   /* UID, "" for the pod to admit, and node */

void work_clear(struct work *work)
{
    movers_free(work->movers);
    request_free(work->request);
    g_clear_pointer(&work->members, g_ptr_array_unref);
    store_free(work->copy);
    g_hash_table_unref(work->barred);
    demand_free(work->demand);
    json_arena_free(work->arena);
}
/* --- what is barred ----------------------------------------------------------------------------- */

static void bar(struct work *work, const char *uid, const char *node)
{
    g_hash_table_add(work->barred, g_strdup_printf(BAR_FORMAT, uid ? uid : "", node));
}

bool work_is_barred(const struct work *work, const char *uid, const char *node)
{
    if (g_hash_table_size(work->barred) == 0)
        return false;
    g_autofree char *key = g_strdup_printf(BAR_FORMAT, uid ? uid : "", node);
    return g_hash_table_contains(work->barred, key);
}

bool work_fits(struct work *work, const struct node *node, const struct request *request)
{
    const struct policy *policy = node->policy ? node->policy : store_options(work->copy)->policy;
    const struct placement_query query = {policy, NULL, CARD_UNKNOWN, &work->meter};
    const bool fits = placement_suffices(node, request, &query);

    work->cut |= work->meter.cut;
    return fits;
}

bool work_may_be_on(const struct pod_view *pod, const struct request *request,
                    const struct node *node)
{
    const struct host left = node_host_free(node), *asked = &request->host;

    return node->present && dialect_serves(node, request) &&
           constraints_check(pod->constraints, node) == BARRIER_NONE && asked->pods <= left.pods &&
           asked->cpu <= left.cpu && asked->memory <= left.memory;
}

/* --- a group ----------------------------------------------------------------------------------- */

static void member_free(void *data)
{
    struct mover *member = data;

    request_free(member->request);
    g_free((char *)(uintptr_t)member->uid);
    g_free(member);
}

struct group_look {
    const struct relocation_query *query;
    struct gang_row row; /* its texts are of no use */
    bool known;
    GPtrArray *uids;
};

static bool is_it(const struct group_look *look, const struct gang_row *row)
{
    return g_str_equal(row->ns, look->query->group_ns) &&
           g_str_equal(row->name, look->query->group);
}

/* These two under the store's lock. */
static void find_row(struct group_look *look, bool native)
{
    const struct relocation_query *query = look->query;
    const struct pod_group_claim claim = {.name = query->group, .native = native};
    struct gang_row row;

    if (!gangs_tell_claimed(store_gangs(query->store), query->group_ns, &claim, &row) ||
        row.known == 0)
        return;
    look->row = row;
    look->known = true;
}

static void find_uid(const char *uid, int64_t since_ms, void *data)
{
    struct group_look *look = data;
    struct gang_row row;

    if (gangs_tell(store_gangs(look->query->store), uid, &row) && is_it(look, &row))
        g_ptr_array_add(look->uids, g_strdup(uid));
}

static gint compare_uids(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool work_are_alike(const struct mover *one, const struct mover *other)
{
    return request_equal(one->request, other->request) &&
           constraints_equal(one->view.constraints, other->view.constraints);
}

/* Behind the last that it is like, so that equal ones are in a row. */
static void add_member(GPtrArray *members, struct mover *take_member)
{
    guint at = members->len;

    while (at > 0 && !work_are_alike(members->pdata[at - 1], take_member))
        at--;
    g_ptr_array_insert(members, at > 0 ? (gint)at : -1, take_member);
}

/* Under the copy's lock. NULL: it cannot be read where it may go. */
static struct mover *read_member(const struct store *copy, const char *uid)
{
    const struct pod_rules *rules = store_rules(copy, uid);
    const struct request *request = store_pending(copy, uid);

    if (!rules || !rules->constraints || !request)
        return NULL;
    struct mover *member = g_new0(struct mover, 1);
    member->uid = g_strdup(uid);
    member->request = request_dup(request);
    member->view = (struct pod_view){.ns = rules->ns,
                                     .name = rules->name,
                                     .priority = store_pending_priority(copy, uid),
                                     .constraints = rules->constraints};
    return member;
}

/* What cannot be helped by moves; NULL: nothing. */
static char *why_no_group(const struct gang_row *row, guint waiting, guint needs)
{
    if (row->min == 0)
        return g_strdup("nobody says how many pods the group needs");
    if (needs > PLAN_GROUP_MAX)
        return g_strdup_printf("it lacks %u pods, and a plan is for %d at most", needs,
                               PLAN_GROUP_MAX);
    if (waiting < needs)
        return g_strdup_printf("it needs %u pods: %u have a node or a place, and %u wait", row->min,
                               row->there, waiting);
    return NULL;
}

static void read_members(struct work *work, const GPtrArray *uids, guint n)
{
    work->members = g_ptr_array_new_with_free_func(member_free);
    store_lock(work->copy);
    for (guint i = 0; i < uids->len && work->members->len < n; i++) {
        struct mover *member = read_member(work->copy, uids->pdata[i]);
        if (member)
            add_member(work->members, member);
    }
    store_unlock(work->copy);
}

bool work_read_group(struct work *work, GError **error)
{
    const struct relocation_query *query = work->query;
    struct relocation *found = work->found;
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    struct group_look look = {.query = query, .uids = uids};

    store_lock(query->store);
    const bool wanted = store_options(query->store)->gangs;
    find_row(&look, false);
    find_row(&look, true);
    store_waiting_each(query->store, find_uid, &look);
    store_unlock(query->store);
    if (!wanted)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "group %s/%s: groups are not looked after without --gangs",
                         query->group_ns, query->group);
    if (!look.known)
        return fail_with(error, GPULEDGER_ERROR_NOT_FOUND, "there is no group %s/%s",
                         query->group_ns, query->group);
    const guint needs = look.row.min > look.row.there ? look.row.min - look.row.there : 0;
    g_ptr_array_sort(uids, compare_uids);
    found->goal =
        g_strdup_printf("room for the group %s/%s (%u pods)", query->group_ns, query->group, needs);
    found->why = why_no_group(&look.row, uids->len, needs);
    found->reached = found->fewest = !found->why && needs == 0;
    if (found->why || needs == 0)
        return true;
    read_members(work, uids, needs);
    if (work->members->len < needs)
        found->why = g_strdup_printf("it cannot be read where %u of its pods may go",
                                     needs - work->members->len);
    return true;
}

GArray *work_group(const struct work *work)
{
    GArray *group = g_array_new(FALSE, TRUE, sizeof(struct plan_pod));
    const struct mover *like = NULL;

    for (guint i = 0; i < work->members->len; i++) {
        const struct mover *member = work->members->pdata[i];
        like = like && work_are_alike(like, member) ? like : member;
        const struct plan_pod pod = {.request = member->request, .tag = like};
        g_array_append_val(group, pod);
    }
    return group;
}

/* What is kept for a pod of the group, which holds it on the ledger of the trial. */
static struct kept_room *room_for_member(const struct work *work, const struct allocation *held)
{
    struct kept_room *room = kept_room_new();

    *room = (struct kept_room){.uid = g_strdup(held->uid),
                               .group = g_strdup(work->query->group),
                               .ns = g_strdup(work->query->group_ns),
                               .held = allocation_dup(held)};
    room->held->state = ALLOCATION_ASSUMED;
    return room;
}

static void add_seat(const struct work *work, const struct ledger *ledger,
                     const struct mover *member)
{
    const struct allocation *held = ledger_get(ledger, member->uid);
    const struct relocation_seat seat = {
        .ns = g_strdup(member->view.ns),
        .name = g_strdup(member->view.name),
        .node = g_strdup(held->node->name),
        .cards = shares_text(held->node, held->shares, held->n_shares),
        .room = room_for_member(work, held),
    };

    g_array_append_val(work->found->seats, seat);
}

/* --- the plan as a whole ------------------------------------------------------------------------ */

/* What a pod leaves, while it is kept for nobody. */
static struct allocation *left_by(const struct allocation *frees)
{
    struct allocation *left = allocation_new(LEFT, "", "", frees->n_shares);

    left->dialect = frees->dialect;
    left->state = ALLOCATION_ASSUMED;
    left->host = frees->host;
    left->oversubscribes = frees->oversubscribes;
    memcpy(left->shares, frees->shares, frees->n_shares * sizeof *frees->shares);
    return left;
}

/* `leaves`: what the pod has is kept until its successor has a place. */
static bool place(struct work *work, struct store *trial, const struct plan_step *step, bool leaves)
{
    const struct mover *mover = step->pod->tag;
    struct placement placement;
    struct feasibility question;
    struct moment moment;
    struct ledger *ledger = store_decide(trial, &moment);
    const struct trial_pod pod = {&mover->view, mover->request, &moment};

    ledger_drop(ledger, step->pod->uid);
    if (!step->to) {
        store_unlock(trial);
        return true;
    }
    const struct node *node = ledger_node(ledger, step->to);
    if (leaves)
        ledger_put(ledger, step->from, left_by(step->frees));
    feasibility_init(&question, trial,
                     &(struct feasibility_about){GATE_BY_TRIAL, pod.view, pod.request, &moment});
    question.work.left = WORK_APART;
    const bool takes = feasibility_takes(&question, node, &placement);
    if (takes && step->takes->n_shares == 1 && !step->takes->shares[0].device)
        card_place_on(question.seen, step->takes->shares[0].card, &placement);
    work->cut |= question.work.cut;
    feasibility_clear(&question);
    const bool placed = takes && trial_put(trial, &pod, step->takes->uid, node, &placement);
    ledger_drop(ledger, LEFT);
    store_unlock(trial);
    return placed;
}

/* Each pod ends and its successor is placed. False: one was refused, and is barred from that node. */
static bool try_steps(struct work *work, struct store *trial, const GPtrArray *steps)
{
    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        if (place(work, trial, step, work->demand || work->members))
            continue;
        bar(work, step->pod->uid, step->to);
        return false;
    }
    return true;
}

/* The node should take the pod to admit, and does not. */
static void bar_admit(struct work *work, struct feasibility *question, const struct node *node)
{
    work->reason = feasibility_ask(question, node, NULL);
    bar(work, NULL, node->name);
}

static void bar_all(struct work *work, struct feasibility *question, const GPtrArray *steps)
{
    const GPtrArray *nodes = ledger_nodes(question->ledger);

    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        bar_admit(work, question, ledger_node(question->ledger, step->from));
    }
    for (guint i = 0; steps->len == 0 && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (work_may_be_on(&work->admit, work->request, node) &&
            work_fits(work, node, work->request))
            bar_admit(work, question, node);
    }
}

/* What is to be kept of the node for the pod, while others leave it. */
static struct kept_room *room_for_admit(const struct work *work, const struct placement *placement)
{
    const struct pod_view *pod = &work->admit;
    struct kept_room *room = kept_room_new();

    room->uid = g_strdup(pod->uid);
    room->held = allocation_new(pod->uid, pod->ns ? pod->ns : "", pod->name ? pod->name : "",
                                placement->n_shares);
    allocation_note_request(room->held, placement->request);
    room->held->state = ALLOCATION_ASSUMED;
    room->held->priority = pod->priority;
    memcpy(room->held->shares, placement->shares, placement->n_shares * sizeof *placement->shares);
    return room;
}

/* Some node takes the pod to admit; else those that should have are barred. */
static bool try_admit(struct work *work, struct store *trial, const GPtrArray *steps)
{
    struct placement placement;
    struct feasibility question;
    struct moment moment;

    store_decide(trial, &moment);
    const struct trial_pod pod = {&work->admit, work->request, &moment, .cut = &work->cut};
    const struct node *node = trial_choose(trial, &pod, &placement);
    if (node) {
        work->found->node = g_strdup(node->name);
        if (steps->len > 0 && work->admit.uid)
            work->found->room = room_for_admit(work, &placement);
        work->found->cards = shares_text(node, placement.shares, placement.n_shares);
    } else {
        feasibility_init(
            &question, trial,
            &(struct feasibility_about){GATE_BY_TRIAL, pod.view, pod.request, &moment});
        bar_all(work, &question, steps);
        feasibility_clear(&question);
    }
    store_unlock(trial);
    return node != NULL;
}

/* As filter takes places for all of them. */
static bool try_group(struct work *work, struct store *trial, const GPtrArray *steps)
{
    const GPtrArray *members = work->members;
    const struct pod_view nobody = {.uid = "", .ns = work->query->group_ns, .name = ""};
    g_autofree bool *taken = g_new0(bool, members->len + 1);
    g_autoptr(GPtrArray) uids = g_ptr_array_new();
    struct moment moment;
    const struct ledger *ledger = store_decide(trial, &moment);
    struct gang_places_query query = {.store = trial, .moment = &moment, .pod = &nobody};
    guint n = 0;

    for (guint i = 0; i < members->len; i++)
        g_ptr_array_add(uids, (gpointer)((const struct mover *)members->pdata[i])->uid);
    work->cut |= gang_places_take(&query, (const char *const *)uids->pdata, uids->len, taken) >
                 GANG_WORK_MAX;
    for (guint i = 0; i < members->len; i++)
        n += taken[i];
    for (guint i = 0; n == members->len && i < n; i++)
        add_seat(work, ledger, members->pdata[i]);
    store_unlock(trial);
    if (n == members->len)
        return true;
    work->reason = REASON_GANG_NO_ROOM;
    if (steps->len > 0) {
        const struct plan_step *last = steps->pdata[steps->len - 1];
        bar(work, last->pod->uid, last->to);
    }
    return false;
}

/* The cards that the successors have in the end are as good as those of the plan; else the last one is barred
 * from its node. */
static bool try_measure(struct work *work, struct store *trial, const GPtrArray *steps)
{
    work->found->fragmented_then = plan_fragmented(store_lock(trial), work->demand);
    store_unlock(trial);
    if (work->found->fragmented_then <= work->found->fragmented_most)
        return true;
    const struct plan_step *last = steps->pdata[steps->len - 1];
    bar(work, last->pod->uid, last->to);
    return false;
}

bool work_try(struct work *work, const GPtrArray *steps)
{
    g_autoptr(store) trial = store_copy(work->copy);

    return try_steps(work, trial, steps) && (!work->request || try_admit(work, trial, steps)) &&
           (!work->members || try_group(work, trial, steps)) &&
           (!work->demand || try_measure(work, trial, steps));
}
