/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/reclaim/reclaim_plan.h"
#include "explain/reclaim/reclaim_path.h"

#include "explain/trial.h"
#include "policy/reclaim.h"
#include "queue/pod_rules.h"
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
};

const char *reclaim_code(enum reclaim_answer answer)
{
    return answers[answer].code;
}

const char *reclaim_text(enum reclaim_answer answer)
{
    return answers[answer].text;
}

/* What was changed for the last question. */
struct change {
    struct allocation *dropped; /* a copy; NULL: a pod was put */
    char *node, *uid;
};

struct reclaim_ground {
    struct store *copy;
    struct moment moment; /* of the store that it is a copy of */
    struct budgets *budgets;
    bool (*stays)(const struct allocation *allocation, void *data);
    void *data;
    GHashTable *going; /* account -> int64_t[ELASTIC_KEYS_MAX]: held by pods that end */
    GArray *changes;   /* struct change */
    guint number;      /* of pods that are put without a UID */
};

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

static void clear_change(gpointer data)
{
    struct change *change = data;

    allocation_free(change->dropped);
    g_free(change->node);
    g_free(change->uid);
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

void reclaim_ground_free(struct reclaim_ground *ground)
{
    if (!ground)
        return;
    store_free(ground->copy);
    budgets_free(ground->budgets);
    g_hash_table_unref(ground->going);
    g_array_unref(ground->changes);
    g_free(ground);
}

/* --- the cluster as it will be ---------------------------------------------------------------------- */

static struct elastic_quotas *quotas_of(const struct reclaim_ground *ground)
{
    return quotas_elastic(store_quotas(ground->copy));
}

/* For the pod's account and all above it. */
static void add_going(struct reclaim_ground *ground, const struct pod_view *pod,
                      const int64_t *amounts, int sign)
{
    const struct elastic_account *at = elastic_quotas_account(quotas_of(ground), pod);

    for (; at; at = elastic_account_parent(at)) {
        int64_t *sums = g_hash_table_lookup(ground->going, at);
        if (!sums) {
            sums = g_new0(int64_t, ELASTIC_KEYS_MAX);
            g_hash_table_insert(ground->going, (gpointer)at, sums);
        }
        for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
            sums[key] += sign * amounts[key];
    }
}

static struct pod_view view_of(const struct allocation *allocation)
{
    return (struct pod_view){.uid = allocation->uid, .ns = allocation->ns};
}

static void count_going(struct reclaim_ground *ground, const struct allocation *allocation,
                        int sign)
{
    const struct pod_view pod = view_of(allocation);
    int64_t amounts[ELASTIC_KEYS_MAX];

    elastic_quotas_measure(quotas_of(ground), allocation, amounts);
    add_going(ground, &pod, amounts, sign);
}

/* Under the copy's lock. */
static void drop(struct reclaim_ground *ground, struct allocation *allocation)
{
    const struct change change = {allocation_dup(allocation), g_strdup(allocation->node->name),
                                  NULL};

    count_going(ground, allocation, 1);
    ledger_drop(store_ledger(ground->copy), change.dropped->uid);
    g_array_append_val(ground->changes, change);
}

/* Under the copy's lock: the node takes the pod. */
static bool put(struct reclaim_ground *ground, const struct trial_pod *pod, const struct node *node,
                const struct placement *placement)
{
    g_autofree char *uid =
        pod->view->uid ? g_strdup(pod->view->uid) : g_strdup_printf("reclaim-%u", ground->number++);
    const struct change change = {NULL, NULL, uid};

    if (!trial_put(ground->copy, pod, uid, node, placement))
        return false;
    uid = NULL;
    g_array_append_val(ground->changes, change);
    return true;
}

/* Under the copy's lock: back to so many changes. */
static void undo(struct reclaim_ground *ground, guint n)
{
    struct ledger *ledger = store_ledger(ground->copy);

    while (ground->changes->len > n) {
        struct change *change =
            &g_array_index(ground->changes, struct change, ground->changes->len - 1);
        if (change->dropped) {
            const struct allocation *back =
                ledger_put(ledger, change->node, g_steal_pointer(&change->dropped));
            count_going(ground, back, -1);
        } else {
            ledger_drop(ledger, change->uid);
        }
        g_array_set_size(ground->changes, (gint)ground->changes->len - 1);
    }
}

struct claim_place {
    const char *node;
    const struct room_claim *claim;
};

struct claims {
    GArray *places; /* struct claim_place */
    int64_t now_ns;
};

static void add_claim(const char *node, const struct room_claim *claim, void *data)
{
    const struct claims *claims = data;
    const struct claim_place place = {node, claim};

    if (claim_counts(claim, claims->now_ns))
        g_array_append_val(claims->places, place);
}

bool reclaim_ground_pod(const struct reclaim_ground *ground, const char *uid,
                        struct pod_view *ret_view, struct reclaim_pod *ret_pod)
{
    const struct pod_rules *rules = store_rules(ground->copy, uid);
    const struct request *request = store_pending(ground->copy, uid);

    if (!rules || !rules->constraints || !request)
        return false;
    *ret_view = (struct pod_view){
        .uid = uid,
        .ns = rules->ns,
        .name = rules->name,
        .priority = store_pending_priority(ground->copy, uid),
        .constraints = rules->constraints,
    };
    *ret_pod = (struct reclaim_pod){ret_view, request};
    return true;
}

/* Under the copy's lock: the pod has the room that is made for it; at least it counts for its namespace. */
static void settle_claim(struct reclaim_ground *ground, const struct claim_place *place)
{
    const struct moment *moment = &ground->moment;
    struct pod_view view;
    struct reclaim_pod pod;
    struct feasibility question;
    struct placement placement;

    for (char **uid = place->claim->ends; *uid; uid++) {
        struct allocation *ending = ledger_get(store_ledger(ground->copy), *uid);
        if (ending)
            drop(ground, ending);
    }
    if (!reclaim_ground_pod(ground, place->claim->uid, &view, &pod) ||
        ledger_get(store_ledger(ground->copy), place->claim->uid))
        return;
    feasibility_init(&question, ground->copy,
                     &(struct feasibility_about){&view, pod.request, moment, WITHOUT_ORDER});
    const struct node *node = ledger_node(store_ledger(ground->copy), place->node);
    const bool takes = node && feasibility_takes(&question, node, &placement);
    if (takes)
        claim_place(place->claim, node, &placement);
    feasibility_clear(&question);
    if (takes && put(ground, &(struct trial_pod){&view, pod.request, moment}, node, &placement))
        return;
    const struct request *asks = node ? reservation_read_for(node, pod.request) : NULL;
    int64_t amounts[ELASTIC_KEYS_MAX];
    if (!asks)
        return;
    elastic_quotas_foresee(quotas_of(ground), node, asks, amounts);
    add_going(ground, &view, amounts, 1);
}

/* Under the copy's lock. */
static void drop_terminating(struct reclaim_ground *ground)
{
    const GPtrArray *nodes = ledger_nodes(store_ledger(ground->copy));

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        for (guint j = node->allocations->len; j-- > 0;) {
            struct allocation *one = node->allocations->pdata[j];
            if (one->terminating)
                drop(ground, one);
        }
    }
}

struct reclaim_ground *
reclaim_ground_new(struct store *store,
                   bool (*stays)(const struct allocation *allocation, void *data), void *data)
{
    struct reclaim_ground *ground = g_new0(struct reclaim_ground, 1);
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(struct claim_place));

    ground->stays = stays;
    ground->data = data;
    ground->going = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    ground->changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    g_array_set_clear_func(ground->changes, clear_change);
    store_decide(store, &ground->moment);
    ground->budgets = budgets_copy(store_budgets(store));
    store_unlock(store);
    ground->copy = store_copy(store);
    store_lock(ground->copy);
    drop_terminating(ground);
    nominations_each_claim(store_nominations(ground->copy), add_claim,
                           &(struct claims){places, ground->moment.now_ns});
    for (guint i = 0; i < places->len; i++)
        settle_claim(ground, &g_array_index(places, struct claim_place, i));
    store_unlock(ground->copy);
    return ground;
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
    const struct pod_view pod = view_of(allocation);
    const struct elastic_account *account = elastic_quotas_account(looking->quotas, &pod);
    const int at = account ? reclaim_path_meets(looking->path, account) : -1;

    return at > (int)looking->from ? borrower_of(looking, account) : NULL;
}

static bool read_giver(struct looking *looking, struct allocation *allocation,
                       struct giver *ret_giver)
{
    const struct reclaim_ground *ground = looking->ground;
    struct borrower *borrower;

    if ((allocation->state != ALLOCATION_CONFIRMED && allocation->state != ALLOCATION_BOUND) ||
        allocation->terminating || (ground->stays && ground->stays(allocation, ground->data)) ||
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

static void try_node(struct looking *looking, const struct node *node)
{
    const struct pod_view *pod = looking->pod->view;
    struct feasibility *question = looking->question;
    const struct request *asks = reservation_read_for(node, looking->pod->request);

    if (!node->present || !asks || g_hash_table_contains(looking->barred, node->name) ||
        constraints_check(pod->constraints, node) != BARRIER_NONE ||
        !is_sure(looking, node, asks) ||
        quota_room_refuse(question->room, node, NULL) != REASON_NONE)
        return;
    g_autoptr(what_if) what_if = what_if_new(nominees_see(&question->nominees, node));
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
    if (n == 0 || !reclaim_choose(what_if, &query, givers, n, &cost) ||
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
        drop(ground, ending);
    }
    const struct node *node = ledger_node(ledger, looking->node);
    feasibility_init(&question, ground->copy,
                     &(struct feasibility_about){pod->view, pod->request, moment, WITHOUT_ORDER});
    const bool takes = feasibility_takes(&question, node, &placement);
    feasibility_clear(&question);
    if (takes &&
        put(ground, &(struct trial_pod){pod->view, pod->request, moment}, node, &placement)) {
        keep_place(plan, node, &placement);
        return true;
    }
    undo(ground, before);
    g_array_set_size(plan->ends, n_ends);
    g_hash_table_add(looking->barred, g_strdup(looking->node));
    return false;
}

static enum reclaim_answer answer_of(const struct looking *looking)
{
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
                     &(struct feasibility_about){pod->view, pod->request, moment, WITHOUT_ORDER});
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
    struct elastic_quotas *quotas = quotas_of(ground);
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
    bool done = false;

    reclaim_path_find(quotas, store_ledger(ground->copy), ground->going, pod->view, &path);
    if (path.n == 0)
        return RECLAIM_NO_MIN;
    budgets_allowed(ground->budgets, allowed);
    for (int round = 0; round < ROUNDS_MAX && !done; round++) {
        look(&looking, moment);
        if (!looking.node)
            break;
        done = carry_out(&looking, moment, plan);
    }
    g_free(looking.node);
    return done ? RECLAIM_FOUND : answer_of(&looking);
}

/* Under the copy's lock. */
static enum reclaim_answer place(struct reclaim_ground *ground, const struct reclaim_pod *pod,
                                 const struct moment *moment, struct reclaim_plan *plan)
{
    const struct trial_pod trial = {pod->view, pod->request, moment};
    struct placement placement;
    const struct node *node = trial_choose(ground->copy, &trial, &placement);

    if (node && put(ground, &trial, node, &placement)) {
        keep_place(plan, node, &placement);
        return RECLAIM_ROOM;
    }
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
        undo(ground, 0);
    store_unlock(ground->copy);
    return plan;
}

void reclaim_plan_undo(struct reclaim_ground *ground)
{
    store_lock(ground->copy);
    undo(ground, 0);
    store_unlock(ground->copy);
}
