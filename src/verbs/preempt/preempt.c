/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods should end so that a more important one finds a card. kube-scheduler has tried what
 * happens if pods end, by sums of a node, and names victims per node; those may not free a card.
 *
 * What it has named and the ledger does not know is kept: it may be needed for reasons of which
 * nothing is known here. Of the rest the least are chosen (policy/victims/victims.h), on copies of the nodes
 * that are all of one moment; the search needs no lock.
 */
#include "verbs/preempt/preempt_state.h"

#include "base/log.h"
#include "core/ledger.h"
#include "gate/idle_pods/idle_pods.h"
#include "gate/quotas.h"
#include "store/feasibility.h"

#include <gpuledger/error.h>
#include <string.h>

/* So much of one call is copied, for the lock is held meanwhile: some milliseconds. Where
 * kube-scheduler names more, it is the nodes from a place on that the moment decides, so that each
 * has its turn; the others are no candidates this time. It names a tenth of all nodes unless it is
 * told otherwise. */
#define NODES_MAX 2000
#define PODS_MAX 10000

/* --- the moment ----------------------------------------------------------------------------- */

/* Under the lock. */
static void stand_in(struct preempt *preempt, const struct node *node, const struct node *seen,
                     struct candidate *candidate)
{
    candidate->alone = seen == node;
    if (candidate->alone)
        candidate->stand_in = stand_ins_take(store_stand_ins(preempt->call.extender->store), node,
                                             preempt->left_over);
    if (!candidate->stand_in)
        candidate->stand_in = stand_in_new(seen);
}

/* What nodes are seen with, under the lock. */
struct looking {
    struct ledger *ledger;
    struct feasibility question;
    struct elastic_sparing *sparing; /* NULL: no pod is spared */
    size_t n_pods;                   /* copied so far */
};

/* Of those whom the node's copy will not have. */
static int64_t *look_up_priorities(const struct preempt *preempt, const struct ledger *ledger,
                                   const struct preemption_node *on)
{
    int64_t *priorities = json_arena_alloc(preempt->arena, (on->n_uids + 1) * sizeof *priorities);

    for (size_t i = 0; i < on->n_uids; i++) {
        if (!ledger_cpu_pod_priority(ledger, on->uids[i], &priorities[i]))
            priorities[i] = INT64_MIN;
    }
    return priorities;
}

/* `on`: as it will be asked about. */
static void copy_node(struct preempt *preempt, struct looking *looking,
                      const struct preemption_node *on, struct candidate *candidate)
{
    const struct node *node = ledger_node(looking->ledger, on->name);

    if (candidate->seen)
        return;
    candidate->seen = true;
    candidate->priorities = look_up_priorities(preempt, looking->ledger, on);
    if (!node || !node->present)
        return;
    struct feasibility_opening opening;
    looking->n_pods += node->allocations->len;
    if (feasibility_open(&looking->question, node, &opening) != REASON_NONE)
        return;
    candidate->relief = opening.relief;
    candidate->spared = elastic_sparing_find(looking->sparing, node, preempt->args.pod.priority);
    stand_in(preempt, node, opening.seen, candidate);
}

/* The nodes of the last answer, whosever turn it is. */
static void copy_recalled(struct preempt *preempt, struct looking *looking)
{
    const struct preemption_args *args = &preempt->args;
    const struct recall *recall = &preempt->recall;

    for (size_t i = 0; i < recall->n_absent && looking->n_pods < PODS_MAX; i++)
        copy_node(preempt, looking, &(struct preemption_node){.name = recall->absent[i]->name},
                  &recall->candidates[i]);
    for (size_t i = 0; recall->offered && i < args->n_nodes && looking->n_pods < PODS_MAX; i++) {
        if (recall->offered[i])
            copy_node(preempt, looking, &args->nodes[i], &preempt->candidates[i]);
    }
}

/* Under the lock. */
static void copy_nodes(struct preempt *preempt, struct ledger *ledger)
{
    const struct preemption_args *args = &preempt->args;
    struct looking looking = {.ledger = ledger};
    const uint64_t from = (uint64_t)preempt->call.moment.now_ns;

    feasibility_init(&looking.question, preempt->call.extender->store,
                     &(struct feasibility_about){GATE_BY_PREEMPT, &args->pod,
                                                 preempt->query.request, &preempt->call.moment,
                                                 WITHOUT_ORDER});
    preempt->query.admission = looking.question.admission;
    preempt->query.admission.work = &preempt->work;
    preempt->query.admission.demand = NULL; /* nothing is rated, and no lock is held */
    looking.sparing = quotas_gate_sparing(&looking.question.gates, ledger);
    copy_recalled(preempt, &looking);
    for (size_t i = 0; i < MIN(args->n_nodes, NODES_MAX) && looking.n_pods < PODS_MAX; i++) {
        const size_t at = (from + i) % args->n_nodes;
        copy_node(preempt, &looking, &args->nodes[at], &preempt->candidates[at]);
    }
    elastic_sparing_free(looking.sparing);
    feasibility_clear(&looking.question);
}

/* Copies what the search needs, all of one moment. A pod that holds cards already needs no node
 * cleared; and for one pod of a group nobody ends, since the others might find no room all the same. */
static void look(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;
    struct ledger *ledger = store_decide_recorded(store, &preempt->call.moment);

    recall_check(preempt);
    preempt->query.now_ns = preempt->call.moment.now_ns;
    preempt->query.budgets = preempt->budgets = budgets_copy(store_budgets(store));
    preempt->query.idleness = preempt->idleness =
        idleness_ref(idle_pods_known(store_part(store, &part_idle_pods)));
    if (!ledger_get(ledger, preempt->args.pod.uid) &&
        gangs_judge(store_gangs(store), preempt->args.pod.uid, preempt->call.moment.now_ms) ==
            GANG_NONE)
        copy_nodes(preempt, ledger);
    store_unlock(store);
}

/* Under the lock. */
static void give_back(struct preempt *preempt, struct candidate *candidate)
{
    if (candidate->alone)
        stand_ins_give(store_stand_ins(preempt->call.extender->store), candidate->stand_in,
                       preempt->left_over);
    else if (candidate->stand_in)
        g_ptr_array_add(preempt->left_over, candidate->stand_in);
}

/* Afterwards nothing of the answers is there any more. */
static void look_away(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;
    struct recall *recall = &preempt->recall;

    store_lock(store);
    for (size_t i = 0; i < preempt->args.n_nodes; i++)
        give_back(preempt, &preempt->candidates[i]);
    for (size_t i = 0; i < recall->n_absent; i++)
        give_back(preempt, &recall->candidates[i]);
    recall_keep(preempt);
    store_unlock(store);
    for (size_t i = 0; i < preempt->args.n_nodes; i++)
        candidate_clear(&preempt->candidates[i]);
    for (size_t i = 0; i < recall->n_absent; i++)
        candidate_clear(&recall->candidates[i]);
    g_ptr_array_unref(preempt->left_over);
    budgets_free(preempt->budgets);
    idleness_unref(preempt->idleness);
}

/* --- all of them ---------------------------------------------------------------------------- */

static void free_stand_in(gpointer data)
{
    stand_in_free(data);
}

static void log_answer(const struct preempt *preempt, const struct preemption_node *answers,
                       size_t n)
{
    g_autofree char *pod = g_strdup_printf("%s/%s", preempt->args.pod.ns, preempt->args.pod.name);
    size_t least = n > 0 ? answers[0].n_uids : 0;

    for (size_t i = 1; i < n; i++)
        least = MIN(least, answers[i].n_uids);
    log_event_limited(LOG_LEVEL_INFO, "victims chosen", LOG_TEXT("pod", pod),
                      LOG_NUMBER("nodes_offered", preempt->args.n_nodes), LOG_NUMBER("nodes", n),
                      LOG_NUMBER("victims_at_least", least));
}

/* kube-scheduler, which chooses among the nodes, knows no classes: those are left where whom it would end
 * is of the class to end first. */
static size_t keep_first_victims(const struct preempt *preempt, struct preemption_node *answers,
                                 size_t n)
{
    const struct preemption_node *named = preempt->args.nodes;
    int64_t violations = INT64_MAX, dearest = INT64_MAX;
    size_t kept = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        if (answers[i].violations > violations)
            continue;
        dearest = answers[i].violations < violations ? answers[i].dearest
                                                     : MIN(dearest, answers[i].dearest);
        violations = answers[i].violations;
    }
    for (size_t i = 0; i < preempt->args.n_nodes; i++) {
        const bool answered = at < n && answers[at].name == named[i].name;
        const bool chosen = answered && answers[at].dearest <= dearest;
        metrics_count(COUNTER_PREEMPT_NODES, !chosen                ? PREEMPT_RESULT_DROPPED
                                             : answers[at].as_named ? PREEMPT_RESULT_KEPT
                                                                    : PREEMPT_RESULT_CHANGED);
        if (chosen)
            answers[kept++] = answers[at];
        at += answered;
    }
    return kept;
}

/* Nobody ends but those who were named before. If they do not, nothing else may make kube-scheduler ask again. */
static void await(const struct preempt *preempt)
{
    const struct extender *extender = preempt->call.extender;

    metrics_add(COUNTER_PREEMPT_NODES, PREEMPT_RESULT_AWAITED, preempt->args.n_nodes);
    if (extender->wake)
        wake_note_awaited(extender->wake, preempt->args.pod.uid, CLEARING_MS);
}

/* A node where nobody has to end is no candidate: kube-scheduler takes it for an error. The pod is simply
 * asked about again. */
static size_t search_all(const struct preempt *preempt, struct preemption_node *answers)
{
    struct preempt_answer answer;
    size_t n = 0;

    for (size_t i = 0; i < preempt->args.n_nodes; i++) {
        if (preempt_search(&preempt->query, &preempt->candidates[i], &preempt->args.nodes[i], NULL,
                           &answer) &&
            answer.node.n_uids > 0)
            answers[n++] = answer.node;
    }
    return n;
}

static size_t decide(struct preempt *preempt, struct preemption_node *answers)
{
    const struct pod_view *pod = &preempt->args.pod;
    size_t n = 0;

    preempt->candidates =
        json_arena_alloc(preempt->arena, preempt->args.n_nodes * sizeof *preempt->candidates);
    preempt->left_over = g_ptr_array_new_with_free_func(free_stand_in);
    recall_find(preempt);
    look(preempt);
    call_phase(&preempt->call, PHASE_LOCK);
    int64_t *allowed =
        json_arena_alloc(preempt->arena, budgets_n(preempt->budgets) * sizeof *allowed);
    budgets_allowed(preempt->budgets, allowed);
    preempt->query.allowed = allowed;
    preempt->recalled = recall_answer(preempt, answers, &n);
    if (!preempt->recalled)
        n = search_all(preempt, answers);
    if (preempt->recalled && n == 0)
        await(preempt);
    else
        n = keep_first_victims(preempt, answers, n);
    if (!preempt->recalled && n > 0)
        preempt->answered = clearing_new(pod->uid, pod->ns, answers, n);
    log_answer(preempt, answers, n);
    return n;
}

/* Of a pod without a GPU nothing is known that kube-scheduler does not know; nor of a bound one, which has its
 * cards: kube-scheduler makes room for its resize. Source: kubernetes/kubernetes 1.37.2,
 * pkg/scheduler/eventhandlers.go, deferred resizes. */
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

    preempt->call.body = body;
    preempt->call.length = length;
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
    struct preemption_node *answers =
        json_arena_alloc(preempt->arena, (preempt->args.n_nodes + 1) * sizeof *answers);
    g_autoptr(pod_facts) facts = pod_facts_new(&preempt->args.pod);
    preempt->work = (struct work_meter){.left = WORK_APART};
    preempt->query = (struct preempt_query){
        .arena = preempt->arena,
        .request = request,
        .facts = facts,
        .priority = preempt->args.pod.priority,
        .particular = preempt->args.particular,
    };
    const bool places = request && !pod_view_is_bound(&preempt->args.pod);
    const size_t n = places ? decide(preempt, answers) : repeat(&preempt->args, answers);
    call_phase(&preempt->call, PHASE_DECIDE);
    preemption_result_encode(writer, answers, n);
    if (places) {
        preempt->call.recalled = recall_text(preempt);
        look_away(preempt);
    }
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
    if (preempt.call.recalled)
        g_string_free(preempt.call.recalled, TRUE);
    recall_clear(&preempt);
    if (failure)
        g_propagate_error(error, failure);
    return answered;
}
