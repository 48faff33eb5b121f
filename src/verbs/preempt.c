/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods should end so that a more important one finds a card. kube-scheduler has tried what
 * happens if pods end, by sums of a node, and names victims per node; those may not free a card.
 *
 * What it has named and the ledger does not know is kept: it may be needed for reasons of which
 * nothing is known here. Of the rest the least are chosen (policy/victims/victims.h), on copies of the nodes
 * that are all of one moment; the search needs no lock.
 */
#include "verbs/call.h"
#include "base/log.h"
#include "queue/quota_relief.h"
#include "store/feasibility.h"
#include "store/shortfall.h"
#include "policy/victims/stand_in.h"
#include "policy/victims/victims.h"
#include "wire/preemption.h"

#include <gpuledger/error.h>
#include <stdlib.h>
#include <string.h>

/* So much of one call is copied, for the lock is held meanwhile: some milliseconds. Where
 * kube-scheduler names more, it is the nodes from a place on that the moment decides, so that each
 * has its turn; the others are no candidates this time. It names a tenth of all nodes unless it is
 * told otherwise. */
#define NODES_MAX 2000
#define PODS_MAX 10000

struct preempt {
    struct call call;
    struct preemption_args args;
    struct json_arena *arena;
    const struct request *request;
    struct admission_query admission;
    struct pod_facts *facts; /* the pod's */

    /* Of the moment: */
    struct candidate *candidates; /* per node */
    GPtrArray *left_over;         /* struct stand_in *, to be freed once no lock is held */
    struct budgets *budgets; /* NULL: nothing was looked at */
    int64_t *allowed;        /* of every budget */
    struct idleness *idleness; /* NULL: nobody is known to be idle */
};

/* A node that kube-scheduler has named. */
struct candidate {
    struct stand_in *stand_in; /* NULL: nobody knows it, or nothing that ends helps there */
    bool alone;                /* no room is kept on it, so the next one who asks sees it so, too */
    struct quota_relief *relief; /* NULL: quotas let the pod in as things are */
};

/* --- the moment ----------------------------------------------------------------------------- */

/* Under the lock. */
static size_t stand_in(struct preempt *preempt, const struct node *node, const struct node *seen,
                       struct candidate *candidate)
{
    candidate->alone = seen == node;
    if (candidate->alone)
        candidate->stand_in = stand_ins_take(store_stand_ins(preempt->call.extender->store), node,
                                             preempt->left_over);
    if (!candidate->stand_in)
        candidate->stand_in = stand_in_new(seen);
    return node->allocations->len;
}

/* Under the lock. */
static void copy_nodes(struct preempt *preempt, struct ledger *ledger)
{
    const struct preemption_args *args = &preempt->args;
    struct store *store = preempt->call.extender->store;
    g_autoptr(quota_room) room =
        quotas_room(store_quotas(store), ledger, &args->pod, preempt->request);
    struct nominees nominees = store_nominees(store, &preempt->admission, &args->pod);
    const uint64_t from = (uint64_t)preempt->call.moment.now_ns;
    size_t n_pods = 0;

    for (size_t i = 0; i < MIN(args->n_nodes, NODES_MAX) && n_pods < PODS_MAX; i++) {
        const size_t at = (from + i) % args->n_nodes;
        const struct node *node = ledger_node(ledger, args->nodes[at].name);
        if (!node || !node->present ||
            feasibility_outlasts(preempt->request, node, preempt->call.moment.now_ns) ||
            dialect_is_silent(node, preempt->request, preempt->call.moment.now_ns))
            continue;
        if (quota_room_refuse(room, node, NULL) != REASON_NONE) {
            preempt->candidates[at].relief = quota_relief_new(room, node, args->pod.priority);
            if (!preempt->candidates[at].relief) {
                n_pods += node->allocations->len;
                continue;
            }
        }
        n_pods += stand_in(preempt, node, nominees_see(&nominees, node), &preempt->candidates[at]);
    }
    nominees_clear(&nominees);
}

/* Copies what the search needs, all of one moment. A pod that holds cards already needs no node
 * cleared; and for one pod of a group nobody ends, since the others might find no room all the same. */
static void look(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;
    const struct store_options *options = store_options(store);
    struct ledger *ledger = store_decide_recorded(store, &preempt->call.moment);

    preempt->admission = (struct admission_query){
        .request = preempt->request,
        .policy = options->policy,
        .options = &options->dialects,
        .now_ns = preempt->call.moment.now_ns,
        .patience_ns = options->patience_ms * 1000000,
    };
    preempt->budgets = budgets_copy(store_budgets(store));
    preempt->idleness = idleness_ref(store_idleness(store));
    if (!ledger_get(ledger, preempt->args.pod.uid) &&
        gangs_judge(store_gangs(store), preempt->args.pod.uid, preempt->call.moment.now_ms) ==
            GANG_NONE)
        copy_nodes(preempt, ledger);
    store_unlock(store);
}

/* Afterwards nothing of the answers is there any more. */
static void look_away(struct preempt *preempt)
{
    struct store *store = preempt->call.extender->store;

    store_lock(store);
    for (size_t i = 0; i < preempt->args.n_nodes; i++) {
        struct candidate *candidate = &preempt->candidates[i];
        if (candidate->alone)
            stand_ins_give(store_stand_ins(store), candidate->stand_in, preempt->left_over);
        else if (candidate->stand_in)
            g_ptr_array_add(preempt->left_over, candidate->stand_in);
    }
    store_unlock(store);
    for (size_t i = 0; i < preempt->args.n_nodes; i++)
        quota_relief_free(preempt->candidates[i].relief);
    g_ptr_array_unref(preempt->left_over);
    budgets_free(preempt->budgets);
    idleness_unref(preempt->idleness);
}

/* --- one node ------------------------------------------------------------------------------- */

/* One that kube-scheduler has named. */
struct named {
    guint hash; /* of its UID */
    size_t at;  /* in the order of their names */
};

/* A node, and who could end on it. */
struct inquiry {
    const struct preemption_node *on; /* as kube-scheduler has named it */
    const struct roster *roster;
    struct named *named; /* by hash */
    uint64_t hashes;     /* a bit for the last six of each hash: most who are there are not named */
    const struct seat *
        *seats; /* of each that is named, in the order of their names; NULL: unknown */
    struct victims victims;
};

static int compare_hashes(const void *a, const void *b)
{
    const struct named *one = a, *other = b;

    return (one->hash > other->hash) - (one->hash < other->hash);
}

static uint64_t hash_bit(guint hash)
{
    return UINT64_C(1) << hash % 64;
}

static void hash_named(const struct preempt *preempt, struct inquiry *inquiry)
{
    const struct preemption_node *on = inquiry->on;

    inquiry->named = json_arena_alloc(preempt->arena, (on->n_uids + 1) * sizeof *inquiry->named);
    inquiry->seats = json_arena_alloc(preempt->arena, (on->n_uids + 1) * sizeof *inquiry->seats);
    for (size_t i = 0; i < on->n_uids; i++) {
        inquiry->named[i] = (struct named){g_str_hash(on->uids[i]), i};
        inquiry->hashes |= hash_bit(inquiry->named[i].hash);
    }
    qsort(inquiry->named, on->n_uids, sizeof *inquiry->named, compare_hashes);
}

/* The first with that hash or a greater one. */
static size_t find_hash(const struct inquiry *inquiry, guint hash)
{
    size_t from = 0, to = inquiry->on->n_uids;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (inquiry->named[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Whether kube-scheduler has named who is there, perhaps more than once. */
static bool note_named(const struct inquiry *inquiry, const struct seat *seat)
{
    const size_t n = inquiry->on->n_uids;
    bool found = false;

    for (size_t i = find_hash(inquiry, seat->uid_hash);
         i < n && inquiry->named[i].hash == seat->uid_hash; i++) {
        const size_t at = inquiry->named[i].at;
        if (!g_str_equal(inquiry->on->uids[at], seat->uid))
            continue;
        inquiry->seats[at] = seat;
        found = true;
    }
    return found;
}

/* Whom the watch has not shown yet kube-scheduler may not have seen either; only what it names
 * itself it has. Of such a pod, and of one that it wants gone for a reason of which nothing is known
 * here, nothing is decided here. */
static void gather(const struct preempt *preempt, struct inquiry *inquiry)
{
    const struct roster *roster = inquiry->roster;
    const bool budgets = budgets_n(preempt->budgets) > 0;

    hash_named(preempt, inquiry);
    for (uint32_t i = 0; i < roster->n; i++) {
        const struct seat *seat = &roster->seats[i];
        struct allocation *allocation = seat->allocation;
        const bool named = inquiry->hashes & hash_bit(seat->uid_hash) && note_named(inquiry, seat);
        const bool lesser = seat->confirmed && seat->priority < preempt->args.pod.priority;
        if (!named && !lesser)
            continue;
        struct victim *victim = &inquiry->victims.all[inquiry->victims.n++];
        *victim = (struct victim){
            .seat = seat,
            .allocation = allocation,
            .named = named,
            .fixed = named && (!lesser || preempt->args.particular || !allocation->facts ||
                               allocation->facts->particular),
            .idle = preempt->idleness &&
                    idleness_since(preempt->idleness, allocation, preempt->call.moment.now_ns) > 0,
        };
        if (budgets)
            victim->n_budgets = budgets_of(preempt->budgets, allocation, victim->budgets,
                                           G_N_ELEMENTS(victim->budgets));
    }
}

/* Violations among those that kube-scheduler has named and the ledger does not know. */
static int64_t foreign_violations(const struct preempt *preempt, const struct inquiry *inquiry)
{
    g_autofree int64_t *left =
        g_memdup2(preempt->allowed, budgets_n(preempt->budgets) * sizeof *left);
    int64_t known = 0;

    for (size_t i = 0; inquiry->on->violations > 0 && i < inquiry->victims.n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        bool violates = false;
        for (uint32_t j = 0; victim->named && j < victim->n_budgets; j++)
            violates |= left[victim->budgets[j]]-- <= 0;
        known += violates;
    }
    return MAX(inquiry->on->violations - known, 0);
}

static bool knows_named(const struct inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->on->n_uids; i++) {
        if (!inquiry->seats[i])
            return false;
    }
    return true;
}

/* Those that kube-scheduler has named first, as it has named them. `n`: how many are chosen. */
static void write_victims(const struct preempt *preempt, const struct inquiry *inquiry, size_t n,
                          struct preemption_node *answer)
{
    const size_t n_named = inquiry->on->n_uids;
    const struct seat *seats = inquiry->roster->seats;
    g_autofree bool *spared = g_new0(bool, inquiry->roster->n + 1);
    const char **others =
        json_arena_alloc(preempt->arena, (n_named + n + 1) * sizeof *answer->uids);
    size_t n_others = 0;

    answer->uids = others;
    others += n_named;
    for (size_t i = 0; i < inquiry->victims.n; i++) {
        const struct victim *victim = &inquiry->victims.all[i];
        if (victim->named)
            spared[victim->seat - seats] = !victim->chosen;
        else if (victim->chosen)
            others[n_others++] = victim->seat->uid;
        if (victim->chosen)
            __builtin_prefetch(victim->seat->uid); /* it is written soon */
    }
    for (size_t i = 0; i < n_named; i++) {
        const struct seat *seat = inquiry->seats[i];
        if (!seat || !spared[seat - seats])
            answer->uids[answer->n_uids++] = inquiry->on->uids[i];
    }
    memmove(&answer->uids[answer->n_uids], others, n_others * sizeof *others);
    answer->n_uids += n_others;
}

/* What has to be so for the pod to come. */
struct wish {
    struct admission_query admission;
    const struct quota_relief *relief;
};

static bool finds_room(const struct node *node, void *data)
{
    struct wish *wish = data;

    return quota_relief_suffices(wish->relief, node) &&
           dialect_admits(node, &wish->admission) != ADMISSION_NO;
}

/* False: the node is no candidate any more. So it is where nobody has to end, which kube-scheduler
 * takes for an error: the pod is simply asked about again. */
static bool answer_node(const struct preempt *preempt, size_t at, struct preemption_node *answer)
{
    struct stand_in *stand_in = preempt->candidates[at].stand_in;
    struct inquiry inquiry = {.on = &preempt->args.nodes[at]};
    struct victims_cost cost;

    if (!stand_in)
        return false;
    const struct node *node = stand_in->what_if->node;
    stand_in_prepare(stand_in);
    inquiry.roster = stand_in->roster;
    g_autofree struct victim *victims = g_new(struct victim, inquiry.roster->n + 1);
    inquiry.victims.all = victims;
    gather(preempt, &inquiry);
    int64_t lacks[VICTIM_AMOUNTS_MAX];
    shortfall_measure(node, inquiry.roster, preempt->request, preempt->facts, lacks);
    struct wish wish = {preempt->admission, preempt->candidates[at].relief};
    const struct victims_query query = {
        .admits = finds_room,
        .data = &wish,
        .asked_host = preempt->request->host,
        .asked = preempt->facts,
        .lacks = knows_named(&inquiry) ? lacks : NULL,
        .allowed = preempt->allowed,
        .n_allowed = budgets_n(preempt->budgets),
        .one_card = !wish.relief && dialect_asks_one_card(node, preempt->request),
        .fickle = dialect_is_fickle(preempt->request),
    };
    if (!victims_choose(stand_in->what_if, inquiry.roster, &query, &inquiry.victims, &cost))
        return false;
    *answer = (struct preemption_node){.name = inquiry.on->name};
    answer->dearest = cost.dearest;
    write_victims(preempt, &inquiry, (size_t)(cost.n + cost.going), answer);
    answer->violations = MIN(cost.violations + foreign_violations(preempt, &inquiry),
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

static void free_stand_in(gpointer data)
{
    stand_in_free(data);
}

/* --- all of them ---------------------------------------------------------------------------- */

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
        metrics_count(COUNTER_PREEMPT_NODES,
                      chosen ? compare(&named[i], &answers[at]) : PREEMPT_RESULT_DROPPED);
        if (chosen)
            answers[kept++] = answers[at];
        at += answered;
    }
    return kept;
}

static size_t decide(struct preempt *preempt, struct preemption_node *answers)
{
    size_t n = 0;

    preempt->candidates =
        json_arena_alloc(preempt->arena, preempt->args.n_nodes * sizeof *preempt->candidates);
    preempt->left_over = g_ptr_array_new_with_free_func(free_stand_in);
    look(preempt);
    call_phase(&preempt->call, PHASE_LOCK);
    preempt->allowed =
        json_arena_alloc(preempt->arena, budgets_n(preempt->budgets) * sizeof *preempt->allowed);
    budgets_allowed(preempt->budgets, preempt->allowed);
    for (size_t i = 0; i < preempt->args.n_nodes; i++)
        n += answer_node(preempt, i, &answers[n]);
    n = keep_first_victims(preempt, answers, n);
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
    preempt->request = request;
    preempt->facts = facts;
    const size_t n = request ? decide(preempt, answers) : repeat(&preempt->args, answers);
    call_phase(&preempt->call, PHASE_DECIDE);
    preemption_result_encode(writer, answers, n);
    if (request)
        look_away(preempt);
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
