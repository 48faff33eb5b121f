/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods should end so that a more important one finds a card. kube-scheduler has tried what
 * happens if pods end, by sums of a node, and names victims per node; those may not free a card.
 *
 * What it has named and the ledger does not know is kept: it may be needed for reasons of which
 * nothing is known here. Of the rest the least are chosen (core/victims.h), on a copy of the node
 * made under the lock; the search needs none.
 */
#include "app/call.h"
#include "app/log.h"
#include "core/victims.h"
#include "wire/preemption.h"

#include <gpuledger/error.h>
#include <string.h>

struct preempt {
    struct call call;
    struct preemption_args args;
    struct json_arena *arena;
    const struct request *request;
    struct admission_query admission;
    struct pod_facts *facts; /* the pod's */
    bool *allowed;           /* per node: what its namespace's quota says */
};

/* --- one node ------------------------------------------------------------------------------- */

/* A node, and who could end on it. */
struct inquiry {
    const struct preemption_node *named;
    struct trial *trial;
    struct victim *victims;
    size_t n;
    int64_t *allowed; /* of every budget */
    uint32_t n_allowed;
};

static bool is_named(const struct preemption_node *node, const char *uid)
{
    for (size_t i = 0; i < node->n_uids; i++) {
        if (g_str_equal(node->uids[i], uid))
            return true;
    }
    return false;
}

/* Whom the watch has not shown yet kube-scheduler may not have seen either; only what it names
 * itself it has. Of such a pod, and of one that it wants gone for a reason of which nothing is known
 * here, nothing is decided here. */
static void gather(const struct preempt *preempt, const struct budgets *budgets,
                   struct inquiry *inquiry)
{
    const GPtrArray *all = inquiry->trial->allocations;

    inquiry->victims = json_arena_alloc(preempt->arena, (all->len + 1) * sizeof(struct victim));
    for (guint i = 0; i < all->len; i++) {
        struct allocation *allocation = g_ptr_array_index(all, i);
        const bool named = is_named(inquiry->named, allocation->uid);
        const bool lesser = allocation->state == ALLOCATION_CONFIRMED &&
                            allocation->priority < preempt->args.pod.priority;
        if (!named && !lesser)
            continue;
        struct victim *victim = &inquiry->victims[inquiry->n++];
        *victim = (struct victim){
            .allocation = allocation,
            .named = named,
            .fixed = named && (!lesser || preempt->args.particular || !allocation->facts ||
                               allocation->facts->particular),
        };
        victim->n_budgets =
            budgets_of(budgets, allocation, victim->budgets, G_N_ELEMENTS(victim->budgets));
    }
    inquiry->n_allowed = budgets_n(budgets);
    inquiry->allowed =
        json_arena_alloc(preempt->arena, (inquiry->n_allowed + 1) * sizeof *inquiry->allowed);
    budgets_allowed(budgets, inquiry->allowed);
}

/* Copies what the search needs. False: nobody knows the node, or nothing that ends helps there. */
static bool look_at(const struct preempt *preempt, size_t at, struct inquiry *inquiry)
{
    struct store *store = preempt->call.extender->store;
    const struct ledger *ledger = store_lock(store);
    const struct node *node = ledger_node(ledger, preempt->args.nodes[at].name);
    struct nominees nominees = store_nominees(store, &preempt->admission, preempt->args.pod.uid,
                                              preempt->args.pod.priority);

    inquiry->named = &preempt->args.nodes[at];
    if (node && node->present && preempt->allowed[at]) {
        inquiry->trial = trial_new(nominees_see(&nominees, node));
        gather(preempt, store_budgets(store), inquiry);
    }
    nominees_clear(&nominees);
    store_unlock(store);
    return inquiry->trial;
}

/* Violations among those that kube-scheduler has named and the ledger does not know. */
static int64_t foreign_violations(const struct inquiry *inquiry)
{
    g_autofree int64_t *left =
        g_memdup2(inquiry->allowed, inquiry->n_allowed * sizeof *left);
    int64_t known = 0;

    for (size_t i = 0; i < inquiry->n; i++) {
        const struct victim *victim = &inquiry->victims[i];
        bool violates = false;
        for (uint32_t j = 0; victim->named && j < victim->n_budgets; j++)
            violates |= left[victim->budgets[j]]-- <= 0;
        known += violates;
    }
    return MAX(inquiry->named->violations - known, 0);
}

static const struct victim *find(const struct inquiry *inquiry, const char *uid)
{
    for (size_t i = 0; i < inquiry->n; i++) {
        if (g_str_equal(inquiry->victims[i].allocation->uid, uid))
            return &inquiry->victims[i];
    }
    return NULL;
}

static void keep_uid(struct preempt *preempt, struct preemption_node *answer, const char *uid)
{
    char *copy = json_arena_alloc(preempt->arena, strlen(uid) + 1);

    answer->uids[answer->n_uids++] = strcpy(copy, uid);
}

/* Those that kube-scheduler has named first, as it has named them. */
static void write_victims(struct preempt *preempt, const struct inquiry *inquiry,
                          struct preemption_node *answer)
{
    answer->uids = json_arena_alloc(
        preempt->arena, (inquiry->named->n_uids + inquiry->n + 1) * sizeof *answer->uids);
    for (size_t i = 0; i < inquiry->named->n_uids; i++) {
        const struct victim *victim = find(inquiry, inquiry->named->uids[i]);
        if (!victim || victim->chosen)
            keep_uid(preempt, answer, inquiry->named->uids[i]);
    }
    for (size_t i = 0; i < inquiry->n; i++) {
        if (inquiry->victims[i].chosen && !inquiry->victims[i].named)
            keep_uid(preempt, answer, inquiry->victims[i].allocation->uid);
    }
}

static bool finds_room(const struct node *node, void *data)
{
    enum reason reason;

    return dialect_admit(node, data, NULL, &reason) != ADMISSION_NO;
}

/* False: the node is no candidate any more. So it is where nobody has to end, which kube-scheduler
 * takes for an error: the pod is simply asked about again. */
static bool answer_node(struct preempt *preempt, size_t at, struct preemption_node *answer)
{
    struct inquiry inquiry = {0};
    struct victims_cost cost;

    if (!look_at(preempt, at, &inquiry))
        return false;
    g_autoptr(trial) trial = inquiry.trial;
    const struct victims_query query = {
        .admits = finds_room,
        .data = &preempt->admission,
        .asked_host = preempt->request->host,
        .asked = preempt->facts,
        .allowed = inquiry.allowed,
        .n_allowed = inquiry.n_allowed,
    };
    if (!victims_choose(trial, &query, inquiry.victims, inquiry.n, &cost))
        return false;
    *answer = (struct preemption_node){.name = inquiry.named->name};
    write_victims(preempt, &inquiry, answer);
    answer->violations = MIN(cost.violations + foreign_violations(&inquiry),
                             (int64_t)answer->n_uids);
    return answer->n_uids > 0;
}

static enum preempt_result compare(const struct preemption_node *named,
                                   const struct preemption_node *answer)
{
    if (named->n_uids != answer->n_uids)
        return PREEMPT_RESULT_CHANGED;
    for (size_t i = 0; i < named->n_uids; i++) {
        if (!g_str_equal(named->uids[i], answer->uids[i]))
            return PREEMPT_RESULT_CHANGED;
    }
    return PREEMPT_RESULT_KEPT;
}

/* --- all of them ---------------------------------------------------------------------------- */

/* False: the pod holds cards already, so no node is to be cleared for it. */
static bool look_up(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;
    const struct preemption_args *args = &preempt->args;
    const struct store_options *options = store_options(store);

    struct ledger *ledger = store_decide(store, &preempt->call.moment);
    g_autoptr(quota_room) room =
        quotas_room(store_quotas(store), ledger, args->pod.ns, preempt->request);
    preempt->admission = (struct admission_query){
        .request = preempt->request,
        .policy = options->policy,
        .options = &options->dialects,
        .now_ns = preempt->call.moment.now_ns,
        .patience_ns = options->patience_ms * 1000000,
    };
    for (size_t i = 0; i < args->n_nodes; i++) {
        const struct node *node = ledger_node(ledger, args->nodes[i].name);
        preempt->allowed[i] = node && quota_room_refuse(room, node, NULL) == REASON_NONE;
    }
    const bool holds = ledger_get(ledger, args->pod.uid);
    g_clear_pointer(&room, quota_room_free);
    store_unlock(store);
    return !holds;
}

static void log_answer(const struct preempt *preempt, const struct preemption_node *answers,
                       size_t n)
{
    g_autofree char *pod =
        g_strdup_printf("%s/%s", preempt->args.pod.ns, preempt->args.pod.name);
    size_t least = n > 0 ? answers[0].n_uids : 0;

    for (size_t i = 1; i < n; i++)
        least = MIN(least, answers[i].n_uids);
    log_event_limited(LOG_LEVEL_INFO, "victims chosen", LOG_TEXT("pod", pod),
                      LOG_NUMBER("nodes_offered", preempt->args.n_nodes), LOG_NUMBER("nodes", n),
                      LOG_NUMBER("victims_at_least", least));
}

static size_t decide(struct preempt *preempt, struct preemption_node *answers)
{
    size_t n = 0;

    if (!look_up(preempt))
        return 0;
    for (size_t i = 0; i < preempt->args.n_nodes; i++) {
        const bool kept = answer_node(preempt, i, &answers[n]);
        metrics_count(COUNTER_PREEMPT_NODES, kept ? compare(&preempt->args.nodes[i], &answers[n])
                                                  : PREEMPT_RESULT_DROPPED);
        n += kept;
    }
    log_answer(preempt, answers, n);
    return n;
}

/* Of a pod without a GPU nothing is known that kube-scheduler does not know. */
static size_t repeat(const struct preemption_args *args, struct preemption_node *answers)
{
    size_t n = 0;

    for (size_t i = 0; i < args->n_nodes; i++) {
        if (args->nodes[i].n_uids > 0)
            answers[n++] = args->nodes[i];
    }
    return n;
}

static bool run(struct preempt *preempt, const char *body, size_t length,
                struct json_writer *writer, GError **error)
{
    const struct store_options *options = store_options(preempt->call.extender->store);
    GError *failure = NULL;

    if (!call_check_ready(&preempt->call, error))
        return false;
    const cJSON *json = json_parse(preempt->arena, body, length, error);
    if (!json || !preemption_args_decode(preempt->arena, json, &preempt->args, error))
        return false;
    g_autoptr(request) request =
        dialect_read_request(&preempt->args.pod, &options->dialects, &failure);
    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    call_phase(&preempt->call, PHASE_DECODE);
    const size_t n_nodes = preempt->args.n_nodes + 1;
    struct preemption_node *answers = json_arena_alloc(preempt->arena, n_nodes * sizeof *answers);
    g_autoptr(pod_facts) facts = pod_facts_new(&preempt->args.pod);
    preempt->request = request;
    preempt->facts = facts;
    preempt->allowed = json_arena_alloc(preempt->arena, n_nodes * sizeof *preempt->allowed);
    const size_t n = request ? decide(preempt, answers) : repeat(&preempt->args, answers);
    call_phase(&preempt->call, PHASE_DECIDE);
    preemption_result_encode(writer, answers, n);
    return true;
}

bool extender_preempt(struct extender *extender, const char *body, size_t length, GString *reply,
                      GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GError *failure = NULL;
    struct preempt preempt = {.arena = arena};
    struct json_writer writer;

    call_begin(&preempt.call, extender, VERB_PREEMPT);
    json_writer_init(&writer, reply);
    const bool answered = run(&preempt, body, length, &writer, &failure);
    if (!answered)
        log_event(LOG_LEVEL_WARN, "preempt failed", LOG_TEXT("why", failure->message));
    call_end(&preempt.call, reply, failure);
    if (failure)
        g_propagate_error(error, failure);
    return answered;
}
