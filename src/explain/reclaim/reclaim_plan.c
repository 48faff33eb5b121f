/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/reclaim/reclaim_ground.h"
#include "explain/reclaim/reclaim_path.h"

#include "policy/reclaim.h"
#include "policy/victims/may_end.h"
#include "queue/reservation.h"

#include <string.h>

G_STATIC_ASSERT(ELASTIC_KEYS_MAX == RECLAIM_KEYS_MAX);

#define ROUNDS_MAX 8 /* nodes that should take a pod, and do not */

static const struct {
    const char *code, *text;
} answers[RECLAIM_N] = {
    [RECLAIM_FOUND] = {"found", "pods give back what is lent to them"},
    [RECLAIM_NO_MIN] = {"no_min", "its namespace is sure of nothing that it asks for"},
    [RECLAIM_ABOVE_MIN] = {"above_min", "its namespace would have more than its min"},
    [RECLAIM_ROOM] = {"room", "there is room, or will be when those have ended that end already"},
    [RECLAIM_NOBODY] = {"nobody", "nobody who may be ended has borrowed anything where it may go"},
    [RECLAIM_TOO_LITTLE] = {"too_little", "what may be taken back where it may go makes no room"},
    [RECLAIM_WORK_LIMIT] = {"work_limit",
                            "a search for room was cut short, and no pod ends on that"},
};

const char *reclaim_code(enum reclaim_answer answer)
{
    return answers[answer].code;
}

const char *reclaim_text(enum reclaim_answer answer)
{
    return answers[answer].text;
}

/* One pod of a question. */
struct looking {
    struct reclaim_ground *ground;
    const struct reclaim_pod *pod;
    struct feasibility *question;
    struct elastic_quotas *quotas;
    const struct reclaim_path *path;
    guint from;            /* of the path: from there up what it would hold on the node is sure */
    GHashTable *borrowers; /* account -> struct borrower * */
    GHashTable *barred;    /* names of nodes */
    int64_t *allowed;
    bool sure, unsure; /* of some node, what the pod would hold there is within the min, or not */
    bool weighed;      /* there is a node where the pod may be */
    bool lent;         /* somebody may give something back */
    bool cut;          /* of some node nothing is known: a search was cut short */
    struct reclaim_cost best;
    char *node;
    GPtrArray *uids;
};

/* --- memory --------------------------------------------------------------------------------------- */

static void clear_end(gpointer data)
{
    struct reclaim_end *end = data;

    g_free(end->ns);
    g_free(end->name);
    g_free(end->uid);
    g_free(end->node);
}

static void clear_place(gpointer data)
{
    g_free(((struct reclaim_place *)data)->node);
}

static struct reclaim_plan *plan_new(void)
{
    struct reclaim_plan *plan = g_new0(struct reclaim_plan, 1);

    plan->places = g_array_new(FALSE, FALSE, sizeof(struct reclaim_place));
    g_array_set_clear_func(plan->places, clear_place);
    plan->ends = g_array_new(FALSE, FALSE, sizeof(struct reclaim_end));
    g_array_set_clear_func(plan->ends, clear_end);
    return plan;
}

void reclaim_plan_free(struct reclaim_plan *plan)
{
    if (!plan)
        return;
    g_array_unref(plan->places);
    g_array_unref(plan->ends);
    g_free(plan);
}

/* --- one node ------------------------------------------------------------------------------------- */

/* Whether the pod's accounts are sure of what it would hold there; notes what was found. */
static bool is_sure(struct looking *looking, const struct node *node, const struct request *asks)
{
    int64_t wanted[ELASTIC_KEYS_MAX];

    elastic_quotas_foresee(looking->quotas, node, asks, wanted);
    const enum reclaim_answer answer =
        reclaim_path_weigh(looking->quotas, looking->path, wanted, &looking->from);
    looking->weighed = true;
    looking->sure |= answer == RECLAIM_FOUND;
    looking->unsure |= answer == RECLAIM_ABOVE_MIN;
    return answer == RECLAIM_FOUND;
}

/* NULL: of the path. */
static struct borrower *borrower_of(struct looking *looking, const struct elastic_account *account)
{
    struct borrower *borrower = g_hash_table_lookup(looking->borrowers, account);
    struct elastic_sums sums;

    if (borrower || reclaim_path_has(looking->path, account))
        return borrower;
    const struct elastic_account *parent = elastic_account_parent(account);
    elastic_quotas_sum(looking->quotas, store_ledger(looking->ground->copy), account, &sums);
    borrower = g_new0(struct borrower, 1);
    borrower->parent = parent ? borrower_of(looking, parent) : NULL;
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++) {
        /* What nobody has a min for is lent by nobody. */
        const bool lends = elastic_quotas_lends(looking->quotas, (uint32_t)key);
        borrower->held[key] = lends ? sums.used[key] : 0;
        borrower->min[key] = lends ? sums.min[key] : 0;
    }
    g_hash_table_insert(looking->borrowers, (gpointer)account, borrower);
    return borrower;
}

/* Who may have to give back for the pod: NULL, nobody who counts where it does, or what it would hold there is
 * not sure. */
static struct borrower *find_borrower(struct looking *looking, const struct allocation *allocation)
{
    const struct pod_view pod = reclaim_view(allocation);
    const struct elastic_account *account = elastic_quotas_account(looking->quotas, &pod);
    const int at = account ? reclaim_path_meets(looking->path, account) : -1;

    return at > (int)looking->from ? borrower_of(looking, account) : NULL;
}

static bool is_tied(const struct reclaim_ground *ground, const struct allocation *allocation)
{
    return allocation->facts &&
           may_end_not(ENDER_RECLAIM, store_options(ground->copy)->reclaim_uncontrolled,
                       allocation->facts->ties);
}

static bool read_giver(struct looking *looking, struct allocation *allocation,
                       struct giver *ret_giver)
{
    const struct reclaim_ground *ground = looking->ground;
    struct borrower *borrower;

    if ((allocation->state != ALLOCATION_CONFIRMED && allocation->state != ALLOCATION_BOUND) ||
        allocation->terminating || is_tied(ground, allocation) ||
        (ground->stays && ground->stays(allocation, ground->data)) ||
        !(borrower = find_borrower(looking, allocation)))
        return false;
    *ret_giver = (struct giver){.allocation = allocation, .borrower = borrower};
    elastic_quotas_measure(looking->quotas, allocation, ret_giver->amounts);
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++) {
        if (!elastic_quotas_lends(looking->quotas, (uint32_t)key))
            ret_giver->amounts[key] = 0;
    }
    if (!borrower_may_give(borrower, ret_giver->amounts, ELASTIC_KEYS_MAX))
        return false;
    ret_giver->gpus = elastic_gpus(allocation);
    ret_giver->n_budgets = budgets_of(ground->budgets, allocation, ret_giver->budgets,
                                      G_N_ELEMENTS(ret_giver->budgets));
    return ret_giver->n_budgets <= 1; /* the Eviction API refuses pods of several */
}

/* By kube-scheduler's sums as well. */
static bool finds_room(const struct node *node, void *data)
{
    struct looking *looking = data;
    const struct host left = node_host_free(node), *asked = &looking->pod->request->host;

    return asked->pods <= left.pods && asked->cpu <= left.cpu && asked->memory <= left.memory &&
           dialect_admits(node, &looking->question->admission) != ADMISSION_NO;
}

/* Quotas are to let the pod in without any pod of its own that ends. */
static bool opens(struct feasibility *question, const struct node *node,
                  const struct node **ret_seen)
{
    struct feasibility_opening opening = {0};
    const bool open = feasibility_open(question, node, &opening) == REASON_NONE && !opening.relief;

    gates_relief_free(opening.relief);
    *ret_seen = opening.seen;
    return open;
}

static void try_node(struct looking *looking, const struct node *node)
{
    const struct pod_view *pod = looking->pod->view;
    const struct request *asks = reservation_read_for(node, looking->pod->request);
    const struct node *seen;

    if (!node->present || !asks || g_hash_table_contains(looking->barred, node->name) ||
        constraints_check(pod->constraints, node) != BARRIER_NONE ||
        !is_sure(looking, node, asks) || !opens(looking->question, node, &seen))
        return;
    g_autoptr(what_if) what_if = what_if_new(seen);
    g_autofree struct giver *givers = g_new(struct giver, what_if->allocations->len + 1);
    struct reclaim_cost cost;
    size_t n = 0;

    for (guint i = 0; i < what_if->allocations->len; i++)
        n += read_giver(looking, what_if->allocations->pdata[i], &givers[n]);
    looking->lent |= n > 0;
    const struct reclaim_query query = {
        .admits = finds_room,
        .data = looking,
        .n_keys = ELASTIC_KEYS_MAX,
        .allowed = looking->allowed,
        .n_allowed = budgets_n(looking->ground->budgets),
        .one_card = dialect_asks_one_card(what_if->node, looking->pod->request),
    };
    looking->question->work.cut = false;
    const bool found = n > 0 && reclaim_choose(what_if, &query, givers, n, &cost);
    looking->cut |= looking->question->work.cut;
    if (!found || looking->question->work.cut || /* no pod ends where not all was looked at */
        (looking->node && reclaim_cost_compare(&cost, &looking->best) >= 0))
        return;
    g_free(looking->node);
    looking->node = g_strdup(node->name);
    looking->best = cost;
    g_ptr_array_set_size(looking->uids, 0);
    for (size_t i = 0; i < n; i++) {
        if (givers[i].chosen)
            g_ptr_array_add(looking->uids, g_strdup(givers[i].allocation->uid));
    }
}

/* --- one pod ---------------------------------------------------------------------------------------- */

static void keep_end(struct reclaim_plan *plan, const struct allocation *allocation)
{
    const struct reclaim_end end = {
        .ns = g_strdup(allocation->ns),
        .name = g_strdup(allocation->name),
        .uid = g_strdup(allocation->uid),
        .node = g_strdup(allocation->node->name),
        .gpus = elastic_gpus(allocation),
        .priority = allocation->priority,
        .pod = plan->places->len,
    };

    g_array_append_val(plan->ends, end);
}

static void keep_place(struct reclaim_plan *plan, const struct node *node,
                       const struct placement *placement)
{
    const struct share *share = &placement->shares[0];
    const bool one = placement->n_shares == 1 && !share->device;
    const struct reclaim_place place = {g_strdup(node->name), one ? share->card : CARD_UNKNOWN};

    g_array_append_val(plan->places, place);
}

/* Under the copy's lock: they end, and the pod comes. False: the node does not take it after all. */
static bool carry_out(struct looking *looking, const struct moment *moment,
                      struct reclaim_plan *plan)
{
    struct reclaim_ground *ground = looking->ground;
    struct ledger *ledger = store_ledger(ground->copy);
    const struct reclaim_pod *pod = looking->pod;
    const guint before = ground->changes->len, n_ends = plan->ends->len;
    struct feasibility question;
    struct placement placement;

    for (guint i = 0; i < looking->uids->len; i++) {
        struct allocation *ending = ledger_get(ledger, looking->uids->pdata[i]);
        keep_end(plan, ending);
        reclaim_ground_drop(ground, ending);
    }
    const struct node *node = ledger_node(ledger, looking->node);
    feasibility_init(&question, ground->copy,
                     &(struct feasibility_about){GATE_BY_RECLAIM, pod->view, pod->request, moment,
                                                 WITHOUT_ORDER});
    question.work.left = WORK_APART;
    const bool takes = feasibility_takes(&question, node, &placement);
    feasibility_clear(&question);
    if (takes && reclaim_ground_put(ground, &(struct trial_pod){pod->view, pod->request, moment},
                                    node, &placement)) {
        keep_place(plan, node, &placement);
        return true;
    }
    reclaim_ground_undo(ground, before);
    g_array_set_size(plan->ends, n_ends);
    g_hash_table_add(looking->barred, g_strdup(looking->node));
    return false;
}

static enum reclaim_answer answer_of(const struct looking *looking)
{
    if (looking->cut)
        return RECLAIM_WORK_LIMIT;
    if (looking->sure)
        return looking->lent ? RECLAIM_TOO_LITTLE : RECLAIM_NOBODY;
    if (!looking->weighed)
        return RECLAIM_NOBODY;
    return looking->unsure ? RECLAIM_ABOVE_MIN : RECLAIM_NO_MIN;
}

/* Under the copy's lock: all nodes, as they are now. */
static void look(struct looking *looking, const struct moment *moment)
{
    const struct reclaim_pod *pod = looking->pod;
    struct feasibility question;

    g_clear_pointer(&looking->node, g_free);
    g_hash_table_remove_all(looking->borrowers);
    feasibility_init(&question, looking->ground->copy,
                     &(struct feasibility_about){GATE_BY_RECLAIM, pod->view, pod->request, moment,
                                                 WITHOUT_ORDER});
    question.work.left = WORK_APART;
    looking->question = &question;
    const GPtrArray *nodes = ledger_nodes(question.ledger);
    for (guint i = 0; i < nodes->len; i++)
        try_node(looking, nodes->pdata[i]);
    feasibility_clear(&question);
}

/* Under the copy's lock. */
static enum reclaim_answer take_back(struct reclaim_ground *ground, const struct reclaim_pod *pod,
                                     const struct moment *moment, struct reclaim_plan *plan)
{
    struct elastic_quotas *quotas = reclaim_ground_quotas(ground);
    g_autoptr(GHashTable) borrowers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GHashTable) barred = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    g_autofree int64_t *allowed = g_new0(int64_t, budgets_n(ground->budgets) + 1);
    struct reclaim_path path;
    struct looking looking = {
        .ground = ground,
        .pod = pod,
        .quotas = quotas,
        .path = &path,
        .borrowers = borrowers,
        .barred = barred,
        .allowed = allowed,
        .uids = uids,
    };
    const guint n_ends = plan->ends->len;
    bool done = false;

    reclaim_path_find(quotas, store_ledger(ground->copy), ground->going, pod->view, &path);
    if (path.n == 0 || elastic_quotas_refuse(quotas, pod->view, pod->request))
        return RECLAIM_NO_MIN;
    budgets_allowed(ground->budgets, allowed);
    for (int round = 0; round < ROUNDS_MAX && !done; round++) {
        look(&looking, moment);
        if (!looking.node)
            break;
        done = carry_out(&looking, moment, plan);
    }
    g_free(looking.node);
    if (done && plan->ends->len == n_ends) /* only the order of arrival keeps it from coming */
        return RECLAIM_ROOM;
    return done ? RECLAIM_FOUND : answer_of(&looking);
}

/* Under the copy's lock. */
static enum reclaim_answer place(struct reclaim_ground *ground, const struct reclaim_pod *pod,
                                 const struct moment *moment, struct reclaim_plan *plan)
{
    bool cut = false;
    const struct trial_pod trial = {pod->view, pod->request, moment, .cut = &cut};
    struct placement placement;
    const struct node *node = trial_choose(ground->copy, &trial, &placement);

    if (node && reclaim_ground_put(ground, &trial, node, &placement)) {
        keep_place(plan, node, &placement);
        return RECLAIM_ROOM;
    }
    if (cut) /* there may be room, and then no pod need end */
        return RECLAIM_WORK_LIMIT;
    return take_back(ground, pod, moment, plan);
}

/* --- the whole -------------------------------------------------------------------------------------- */

struct reclaim_plan *reclaim_plan_make(struct reclaim_ground *ground,
                                       const struct reclaim_pod *pods, size_t n)
{
    struct reclaim_plan *plan = plan_new();

    store_lock(ground->copy);
    /* What the last one has changed stays. */
    g_array_set_size(ground->changes, 0);
    plan->answer = RECLAIM_ROOM;
    for (size_t i = 0; i < n; i++) {
        const enum reclaim_answer answer = place(ground, &pods[i], &ground->moment, plan);
        if (answer != RECLAIM_ROOM)
            plan->answer = answer;
        if (answer != RECLAIM_ROOM && answer != RECLAIM_FOUND)
            break;
    }
    if (plan->answer != RECLAIM_FOUND) {
        g_array_set_size(plan->places, 0);
        g_array_set_size(plan->ends, 0);
    }
    if (plan->answer != RECLAIM_FOUND && plan->answer != RECLAIM_ROOM)
        reclaim_ground_undo(ground, 0);
    store_unlock(ground->copy);
    return plan;
}

void reclaim_plan_undo(struct reclaim_ground *ground)
{
    store_lock(ground->copy);
    reclaim_ground_undo(ground, 0);
    store_unlock(ground->copy);
}
