/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the nodes that would take a pod it should go to. kube-scheduler adds our marks, times
 * ten and a weight, to its own, and picks at random among the highest: ties are therefore settled
 * here.
 */
#include "core/ledger.h"
#include "verbs/call.h"
#include "base/log.h"
#include "store/steering.h"

#include <gpuledger/ranking.h>

/* In cards, for each pod that comes before on a node that lets a pod wait: where all do, the shortest
 * queue is best, however the node packs. */
#define QUEUE_LOSS 1e6

/* The nodes of a call that would take the pod. */
struct contest {
    const struct policy *policy;
    double wait_loss; /* in cards */
    struct rank *ranks;
    size_t *places; /* where each stands in the call */
    size_t n;
    size_t winner;
    struct placement placement; /* on the node that is being rated; too large to make for each */
    struct placement later;     /* the same, once those have come who are on their way there */
};

static void contest_init(struct contest *contest, struct json_arena *arena, size_t n_names)
{
    *contest = (struct contest){
        .ranks = json_arena_alloc(arena, (n_names + 1) * sizeof *contest->ranks),
        .places = json_arena_alloc(arena, (n_names + 1) * sizeof *contest->places),
    };
}

/* The i-th node of the call has been rated. */
static void contest_enter(struct contest *contest, const struct filter_args *args, size_t i)
{
    contest->ranks[contest->n].name = args->names[i]; /* the node may be gone when the lock is */
    contest->places[contest->n++] = i;
}

/* The node that was asked about last, which takes the pod: as good as it will be when the pod comes
 * there, and worse for each pod that the node side serves before. */
static void rate(struct contest *contest, struct feasibility *question, struct rank *ret_rank)
{
    const bool at_once = feasibility_at_once(question, &contest->later);
    const struct placement *placement =
        at_once && question->coming ? &contest->later : &contest->placement;

    ranking_rate(contest->policy, question->seen, placement, question->admission.demand, ret_rank);
    ret_rank->waits = !at_once;
    ret_rank->loss += feasibility_ahead(question) * (at_once ? contest->wait_loss : QUEUE_LOSS);
}

/* One call, of a pod with a GPU. */
struct rating_call {
    struct contest *contest;
    struct node_book *book;
    struct feasibility *question;
    bool plain; /* of a node that is calm, what is remembered tells */
};

/* Whether the node would take the pod, and how good that would be. */
static bool rate_node(const struct rating_call *rating, const struct node_cursor *cursor,
                      struct rank *ret_rank)
{
    struct feasibility *question = rating->question;
    const struct node *node = cursor->node;
    const bool calm = rating->plain && node && feasibility_is_calm(question, cursor->pulse);
    bool takes;

    if (calm && rating_find(rating->book, cursor, &takes, ret_rank))
        return takes;
    const bool lasting = feasibility_lasts(question, node);
    if (lasting && !calm && rating_find(rating->book, cursor, &takes, ret_rank))
        return takes;
    takes = feasibility_ask(question, node, &rating->contest->placement) == REASON_NONE;
    if (takes)
        rate(rating->contest, question, ret_rank);
    if (lasting && !question->work.hasty)
        rating_note(rating->book, cursor, takes ? ret_rank : NULL);
    return takes;
}

/* Under the lock. */
static void rate_nodes(struct contest *contest, const struct call *call,
                       const struct request *request)
{
    const struct filter_args *args = &call->args;
    struct feasibility question;
    struct node_cursor cursor = {0};

    feasibility_init(&question, call->extender->store,
                     &(struct feasibility_about){GATE_BY_PRIORITIZE, &args->pod, request,
                                                 &call->moment, .of_many = true});
    contest->policy = terms_rating(request->terms, question.admission.policy);
    contest->wait_loss = (double)store_options(call->extender->store)->wait_loss / 1000;
    struct node_book *book =
        node_books_open(store_ratings(call->extender->store), question.ledger, request,
                        question.admission.policy, question.admission.demand);
    const struct rating_call rating = {contest, book, &question, feasibility_is_plain(&question)};
    const enum node_part part = rating.plain && !book->is_new ? NODE_PULSE : NODE_SUMMARY;
    for (size_t i = 0; i < args->n_names; i++) {
        ledger_next_node(question.ledger, &cursor, args->names[i], part);
        if (rate_node(&rating, &cursor, &contest->ranks[contest->n]))
            contest_enter(contest, args, i);
    }
    contest->winner = ranking_winner(contest->policy, contest->ranks, contest->n);
    if (contest->n > 0)
        steering_prefer(&question, contest->ranks[contest->winner].name, call->moment.now_ms);
    feasibility_clear(&question);
}

static void mark_winner(const struct contest *contest, int32_t *scores)
{
    if (contest->n > 0)
        scores[contest->places[contest->winner]] = RANKING_SCORE_MAX;
}

static void mark_scaled(const struct contest *contest, struct json_arena *arena, int32_t most,
                        int32_t *scores)
{
    int32_t *scaled = json_arena_alloc(arena, (contest->n + 1) * sizeof *scaled);

    ranking_scale(contest->ranks, contest->n, scaled);
    for (size_t i = 0; i < contest->n; i++)
        scores[contest->places[i]] = MAX(scaled[i] * most / RANKING_SCORE_MAX, 1);
}

/* A pod that holds cards already may only go where they are. */
static void mark_holder(const struct filter_args *args, const char *node, int32_t *scores)
{
    for (size_t i = 0; i < args->n_names; i++)
        scores[i] = g_str_equal(args->names[i], node) ? RANKING_SCORE_MAX : 0;
}

/* Under the lock. What a pod without a GPU takes of a node with GPUs, pods that need those may
 * lack; among the other nodes it is kube-scheduler's own marks that choose. Returns whether there
 * are others. */
static bool rate_hosts(struct contest *contest, const struct call *call, struct ledger *ledger,
                       int32_t *scores)
{
    const struct filter_args *args = &call->args;
    g_autoptr(request) nothing = request_new(NULL, 0);
    const struct demand *demand = store_demand_for(call->extender->store, NULL);
    struct node_cursor cursor = {0};
    bool others = false, takes;

    contest->placement.request = nothing;
    nothing->host = host_of_pod(&args->pod);
    contest->policy = store_options(call->extender->store)->policy;
    struct node_book *book = node_books_open(store_ratings(call->extender->store), ledger, nothing,
                                             contest->policy, demand);
    for (size_t i = 0; i < args->n_names; i++) {
        struct node *node = ledger_next_node(ledger, &cursor, args->names[i], NODE_SUMMARY);
        if (!node || !node->dialect) {
            scores[i] = RANKING_SCORE_MAX;
            others = true;
            continue;
        }
        struct rank *rank = &contest->ranks[contest->n];
        if (!rating_find(book, &cursor, &takes, rank)) {
            ranking_rate(contest->policy, node, &contest->placement, demand, rank);
            rating_note(book, &cursor, rank);
        }
        contest_enter(contest, args, i);
    }
    contest->winner = ranking_winner(contest->policy, contest->ranks, contest->n);
    return others;
}

/* The three best, for people. */
static void log_contest(const struct filter_args *args, struct contest *contest)
{
    g_autoptr(GString) best = g_string_new(NULL);
    g_autofree char *pod = NULL;
    const size_t n = contest->n;

    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    for (size_t i = 0; i < MIN(n, 3); i++) {
        const size_t winner = ranking_winner(contest->policy, contest->ranks, contest->n);
        const struct rank *rank = &contest->ranks[winner];
        g_string_append_printf(best, "%s%s (loses %.3f%s)", i ? ", " : "", rank->name, rank->loss,
                               rank->waits ? ", after a wait" : "");
        contest->ranks[winner] = contest->ranks[--contest->n];
    }
    pod = g_strdup_printf("%s/%s", args->pod.ns, args->pod.name);
    log_event_limited(LOG_LEVEL_DEBUG, "prioritized", LOG_TEXT("pod", pod),
                      LOG_TEXT("policy", contest->policy ? contest->policy->name : NULL),
                      LOG_NUMBER("nodes", n), LOG_TEXT("best", best->str));
}

/* NULL with an error, or without one: the call is not about this pod, or these nodes. */
static const int32_t *decide(struct call *call, enum prioritize_pods pods,
                             struct json_arena *arena, GError **error)
{
    const struct extender *extender = call->extender;
    const struct filter_args *args = &call->args;
    const struct store_options *options = store_options(extender->store);
    GError *failure = NULL;
    g_autoptr(request) request = dialect_read_request(&args->pod, &options->dialects, &failure);
    struct contest contest;
    bool others = false; /* nodes that are better than any in the contest */

    if (failure)
        g_propagate_error(error, failure);
    if (failure || (request && pods == PRIORITIZE_WITHOUT_GPU))
        return NULL;
    int32_t *scores = json_arena_alloc(arena, (args->n_names + 1) * sizeof *scores);
    contest_init(&contest, arena, args->n_names);
    call_phase(call, PHASE_DECODE);
    struct ledger *ledger = store_decide_recorded(extender->store, &call->moment);
    call_phase(call, PHASE_LOCK);
    const struct allocation *held = ledger_get(ledger, args->pod.uid);
    if (held)
        mark_holder(args, held->node->name, scores);
    else if (request)
        rate_nodes(&contest, call, request);
    else
        others = rate_hosts(&contest, call, ledger, scores);
    store_unlock(extender->store);
    if (!request && !held && contest.n == 0)
        return NULL; /* no node with GPUs: all would have the same mark */
    if (extender->shape == PRIORITIZE_SCALED)
        mark_scaled(&contest, arena, RANKING_SCORE_MAX / (others ? 2 : 1), scores);
    else if (!others)
        mark_winner(&contest, scores);
    log_contest(args, &contest);
    call_phase(call, PHASE_DECIDE);
    return scores;
}

bool extender_prioritize(struct extender *extender, enum prioritize_pods pods, const char *body,
                         size_t length, GString *reply, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GError *failure = NULL;
    const int32_t *scores = NULL;
    struct json_writer writer;
    struct call call;

    call_begin(&call, extender, VERB_PRIORITIZE);
    call.entry = pods;
    if (call_read(&call, arena, body, length, &failure))
        scores = decide(&call, pods, arena, &failure);
    if (failure) {
        log_event(LOG_LEVEL_WARN, "prioritize failed", LOG_TEXT("why", failure->message));
    } else {
        json_writer_init(&writer, reply);
        prioritize_result_encode(&writer, &call.args, scores);
    }
    call_end(&call, reply, failure);
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}
