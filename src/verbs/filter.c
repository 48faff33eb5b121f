/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger.h"
#include "verbs/call.h"
#include "base/decisions.h"
#include "base/log.h"
#include "verbs/gang/gang_places.h"
#include "verbs/gang/gang_room.h"
#include "store/steering.h"
#include "core/reason/reasons.h"

#include <gpuledger/error.h>
#include <string.h>

#define REPLY_GUESS_MAX ((size_t)1 << 20)

/* A pod that holds cards already, because an earlier bind is not settled, may only go where they
 * are: a repeated bind there settles it. */
static bool keep_to_its_node(const struct filter_args *args, const char *node,
                             enum reason *ret_reasons, GError **error)
{
    bool offered = false;

    for (size_t i = 0; i < args->n_names; i++) {
        bool same = g_str_equal(args->names[i], node);
        ret_reasons[i] = same ? REASON_NONE : REASON_PLACED_ELSEWHERE;
        offered |= same;
    }
    if (!offered)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "the pod holds a GPU on node '%s' from an earlier bind that is not settled; "
                    "try again",
                    node);
    return offered;
}

/* The nodes that take the pod, for bind's sake. */
struct taking {
    uint32_t *marks; /* as many as were offered fit in; NULL: nobody wants to know */
    size_t n;
};

/* Most nodes of most calls are as they were when a pod like this one came. `book` NULL: nothing is
 * remembered for it. */
static enum reason ask_node(struct steering *steering, struct node_book *book,
                            const struct node_cursor *cursor)
{
    struct feasibility *question = steering->question;
    const struct node *node = cursor->node;
    const bool calm = book && node && feasibility_is_calm(question, cursor->pulse);
    struct node_verdict verdict;
    enum reason reason;

    if (calm && verdict_find(book, cursor, &verdict) &&
        feasibility_recall(question, &verdict, &reason)) {
        steering_recall(steering, cursor->place, reason);
        return reason;
    }
    reason = steering_pass(steering, node, feasibility_ask(question, node, NULL));
    if (calm && !question->work.hasty && feasibility_lasts_beside_limits(question, node)) {
        verdict = feasibility_verdict(question, reason);
        verdict_note(book, cursor, &verdict);
    }
    return reason;
}

/* --- in turn ---------------------------------------------------------------------------------- */

/* Those first for which the last call about the pod had no work left, in the order in which it asked. NULL: as they
 * are named. */
static size_t *order_nodes(const struct call *call)
{
    const struct filter_args *args = &call->args;
    g_autoptr(GHashTable) owed =
        passes_marks(store_unsearched(call->extender->store), args->pod.uid, call->moment.now_ms);
    size_t n = 0, n_later = 0;

    if (!owed)
        return NULL;
    const size_t n_owed = g_hash_table_size(owed);
    g_autofree size_t *first = g_new0(size_t, n_owed + 1); /* by place; 0: it is not offered */
    g_autofree size_t *later = g_new(size_t, args->n_names + 1);
    size_t *order = g_new(size_t, args->n_names + 1);
    for (size_t i = 0; i < args->n_names; i++) {
        gpointer mark = GUINT_TO_POINTER(g_str_hash(args->names[i]));
        const size_t place = GPOINTER_TO_SIZE(g_hash_table_lookup(owed, mark));
        if (place > 0 && place <= n_owed && first[place] == 0)
            first[place] = i + 1;
        else
            later[n_later++] = i;
    }
    for (size_t place = 1; place <= n_owed; place++) {
        if (first[place] > 0)
            order[n++] = first[place] - 1;
    }
    memcpy(&order[n], later, n_later * sizeof *later);
    return order;
}

/* A node that had little left of the work, and is refused for that, is the next call's to begin with. */
static void note_turn(GArray **owed, const char *name, int64_t left, enum reason reason)
{
    if (reason != REASON_WORK_LIMIT || left >= WORK_TURN)
        return;
    const uint32_t mark = g_str_hash(name);
    if (!*owed)
        *owed = g_array_new(FALSE, FALSE, sizeof mark);
    g_array_append_val(*owed, mark);
}

static void keep_turns(const struct call *call, GArray *take_owed)
{
    struct passes *unsearched = store_unsearched(call->extender->store);
    const struct pod_view *pod = &call->args.pod;

    passes_forget(unsearched, pod->uid);
    if (!take_owed)
        return;
    passes_note(unsearched, pod->uid, pod->ns, (const uint32_t *)(void *)take_owed->data,
                take_owed->len, call->moment.now_ms);
    g_array_unref(take_owed);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Under the lock, for every node offered: a reason, or none. No I/O. */
static void ask_nodes(const struct call *call, struct ledger *ledger,
                      const struct request *request, enum reason *ret_reasons,
                      struct taking *taking)
{
    const struct filter_args *args = &call->args;
    struct feasibility question;
    struct steering steering;
    struct node_cursor cursor = {0};
    GArray *owed = NULL;

    arrivals_ask(store_arrivals(call->extender->store), args->pod.uid,
                 call->moment.now_ms);
    store_stop_coming(call->extender->store, args->pod.uid);
    feasibility_init(&question, call->extender->store,
                     &(struct feasibility_about){GATE_BY_FILTER, &args->pod, request, &call->moment,
                                                 .of_many = true});
    steering_begin(&steering, &question, call->moment.now_ms);
    struct node_book *book = NULL;
    if (feasibility_is_plain_beside_limits(&question))
        book = node_books_open(store_verdicts(call->extender->store), ledger, request,
                               question.admission.policy, question.admission.demand);
    const enum node_part part = book && !book->is_new ? NODE_PULSE : NODE_SUMMARY;
    g_autofree size_t *order = order_nodes(call);
    steering.order = order;
    for (size_t k = 0; k < args->n_names; k++) {
        const size_t i = order ? order[k] : k;
        const struct node *node = ledger_next_node(ledger, &cursor, args->names[i], part);
        const int64_t left = question.work.left;
        ret_reasons[i] = ask_node(&steering, book, &cursor);
        note_turn(&owed, args->names[i], left, ret_reasons[i]);
        if (taking->marks)
            taking->marks[i] = node ? passes_mark(node) : 0;
    }
    const bool found = steering_end(&steering, args, ret_reasons);
    for (size_t i = 0; i < args->n_names && taking->marks; i++) {
        if (ret_reasons[i] == REASON_NONE)
            taking->marks[taking->n++] = taking->marks[i];
    }
    feasibility_clear(&question);
    keep_turns(call, owed);
    if (found)
        arrivals_renew(store_arrivals(call->extender->store), args->pod.uid);
}

/* --- a group ---------------------------------------------------------------------------------- */

static const enum reason gang_reasons[] = {
    [GANG_UNKNOWN] = REASON_GANG_UNKNOWN, [GANG_FEW] = REASON_GANG_FEW,
    [GANG_NO_ROOM] = REASON_GANG_NO_ROOM, [GANG_BUSY] = REASON_GANG_BUSY,
    [GANG_BACKOFF] = REASON_GANG_BACKOFF, [GANG_CAPPED] = REASON_GANG_CAPPED,
    [GANG_LOST] = REASON_GANG_LOST,       [GANG_SPENT] = REASON_GANG_WORK,
};

static bool is_offered(const struct filter_args *args, const char *node)
{
    for (size_t i = 0; i < args->n_names; i++) {
        if (g_str_equal(args->names[i], node))
            return true;
    }
    return false;
}

/* Under the lock: asks for a place, among the nodes that kube-scheduler has left. */
static enum gang_answer ask_gangs(const struct call *call, const struct ledger *ledger,
                                  const struct request *request, bool *ret_late)
{
    struct store *store = call->extender->store;
    const struct filter_args *args = &call->args;
    const struct allocation *held = ledger_get(ledger, args->pod.uid);
    struct gang_places_query query = {store,   &call->moment, &args->pod,
                                      request, args->names,   args->n_names};
    struct gang_row row;

    if (!store_join_asking(store, &args->pod, call->moment.now_ms))
        return GANG_CAPPED;
    if (gangs_tell(store_gangs(store), args->pod.uid, &row))
        query.timeout_ms = row.timeout_ms;
    if (held && !is_offered(args, held->node->name))
        gangs_lose(store_gangs(store), args->pod.uid);
    const enum gang_answer answer =
        gangs_ask(store_gangs(store), &(struct gang_ask){
                                          .uid = args->pod.uid,
                                          .pool = g_intern_string(request->dialect->name),
                                          .now_ms = call->moment.now_ms,
                                          .take = gang_places_take,
                                          .choose = gang_room_choose,
                                          .data = &query,
                                      });
    *ret_late = query.late;
    return answer;
}

/* Of a pod without a place. */
static enum reason why_no_place(enum gang_answer answer, bool late)
{
    return answer == GANG_NO_ROOM && late ? REASON_GANG_PLUGIN
                                          : gang_reasons[answer == GANG_YES ? GANG_LOST : answer];
}

/* Under the lock. False: the pod is in no group that holds it back. */
static bool ask_group(const struct call *call, const struct ledger *ledger,
                      const struct request *request, enum reason *ret_reasons,
                      struct taking *taking)
{
    struct store *store = call->extender->store;
    const struct filter_args *args = &call->args;

    if (!store_options(store)->gangs)
        return false;
    bool late = false;
    const enum gang_answer answer = ask_gangs(call, ledger, request, &late);
    if (answer == GANG_NONE)
        return false;
    const struct allocation *held = ledger_get(ledger, args->pod.uid);
    const char *place = answer == GANG_YES && held ? held->node->name : NULL;
    arrivals_ask(store_arrivals(store), args->pod.uid, call->moment.now_ms);
    for (size_t i = 0; i < args->n_names; i++) {
        const bool here = place && g_str_equal(args->names[i], place);
        ret_reasons[i] = here    ? REASON_NONE
                         : place ? REASON_GANG_PLACE
                                 : why_no_place(answer, late);
        if (here && taking->marks)
            taking->marks[taking->n++] = passes_mark(held->node);
    }
    return true;
}

static bool is_of_group(enum reason reason)
{
    return reason >= REASON_GANG_PLACE && reason <= REASON_GANG_LOST;
}

/* --- what is left of it ------------------------------------------------------------------------ */

/* Who found no node may have to be woken later. */
static void note_outcome(struct extender *extender, const struct filter_args *args,
                         const struct request *request, const enum reason *reasons,
                         uint64_t freed)
{
    bool refused = request != NULL;

    if (!extender->wake)
        return;
    for (size_t i = 0; i < args->n_names && refused; i++) {
        refused = reasons[i] != REASON_NONE;
        /* There is room, which may not be needed in the end. */
        freed = reasons[i] == REASON_EARLIER_POD || is_of_group(reasons[i]) ? 0 : freed;
    }
    if (refused)
        wake_note_refusal(extender->wake, &args->pod, freed);
    else
        wake_forget(extender->wake, args->pod.uid);
}

/* bind will come for it. */
static void note_pass(const struct call *call, const struct taking *taking)
{
    struct denials *denials = call->extender->denials;
    const struct pod_view *pod = &call->args.pod;

    if (denials)
        passes_note(denials->passes, pod->uid, pod->ns, taking->marks, taking->n,
                    g_get_monotonic_time() / 1000);
}

/* For people. */
static void note_decision(const struct filter_args *args, const uint64_t counts[REASONS_MAX])
{
    struct decision decision = {.verb = VERB_FILTER,
                                .ns = args->pod.ns,
                                .name = args->pod.name,
                                .card = CARD_UNKNOWN,
                                .n_nodes = args->n_names};

    decision.n_taking = (size_t)counts[REASON_NONE];
    decision_set_refusals(&decision, counts);
    decisions_note(&decision, g_get_real_time() / G_USEC_PER_SEC);
}

static void note_reasons(const struct filter_args *args, const enum reason *reasons)
{
    uint64_t counts[REASONS_MAX] = {0}, n_taking = 0;

    for (size_t i = 0; i < args->n_names; i++) {
        if (reasons[i] == REASON_NONE)
            n_taking++;
        else
            counts[reasons[i]]++;
    }
    counts[REASON_NONE] = n_taking;
    note_decision(args, counts);
    for (unsigned reason = REASON_NONE + 1; reason < reasons_count(); reason++) {
        if (counts[reason] > 0)
            metrics_add(COUNTER_REFUSALS, reason, counts[reason]);
    }
}

static bool decide(struct call *call, struct json_arena *arena, enum reason *ret_reasons,
                   GError **error)
{
    struct extender *extender = call->extender;
    const struct filter_args *args = &call->args;
    const struct store_options *options = store_options(extender->store);
    GError *failure = NULL;
    g_autoptr(request) request = dialect_read_request(&args->pod, &options->dialects, &failure);

    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    if (!request) { /* no GPU: every node will do */
        note_outcome(extender, args, NULL, ret_reasons, 0);
        note_pass(call, &(struct taking){0});
        return true;
    }

    call_phase(call, PHASE_DECODE);
    struct taking taking = {0};
    if (extender->denials)
        taking.marks = json_arena_alloc(arena, (args->n_names + 1) * sizeof *taking.marks);
    struct ledger *ledger = store_decide_recorded(extender->store, &call->moment);
    call_phase(call, PHASE_LOCK);
    const struct allocation *held = ledger_get(ledger, args->pod.uid);
    const uint64_t freed = ledger_freed(ledger);
    bool decided = true;
    if (held && held->state != ALLOCATION_HELD)
        decided = keep_to_its_node(args, held->node->name, ret_reasons, error);
    else if (!ask_group(call, ledger, request, ret_reasons, &taking))
        ask_nodes(call, ledger, request, ret_reasons, &taking);
    store_unlock(extender->store);
    if (taking.n > 0)
        note_pass(call, &taking);
    if (decided) {
        note_outcome(extender, args, request, ret_reasons, freed);
        note_reasons(args, ret_reasons);
    }
    call_phase(call, PHASE_DECIDE);
    return decided;
}

static bool filter(struct call *call, struct json_arena *arena, const char *body, size_t length,
                   struct json_writer *writer, GError **error)
{
    const struct filter_args *args = &call->args;

    if (!call_read(call, arena, body, length, error))
        return false;
    enum reason *reasons = json_arena_alloc(arena, (args->n_names + 1) * sizeof *reasons);
    if (!decide(call, arena, reasons, error))
        return false;
    filter_result_encode(writer, &(struct filter_result){.args = args, .reasons = reasons});
    return true;
}

void extender_filter(struct extender *extender, const char *body, size_t length, GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;
    struct call call;

    call_begin(&call, extender, VERB_FILTER);
    /* Most answers are about as long as the question; growing by doubling would copy them. */
    g_string_set_size(reply, MIN(length, REPLY_GUESS_MAX));
    g_string_truncate(reply, 0);
    json_writer_init(&writer, reply);
    if (!filter(&call, arena, body, length, &writer, &failure)) {
        filter_error_encode(&writer, failure->message);
        log_event(LOG_LEVEL_WARN, "filter failed", LOG_TEXT("why", failure->message));
    }
    call_end(&call, reply, failure);
}
