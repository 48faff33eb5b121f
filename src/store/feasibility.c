/* SPDX-License-Identifier: Apache-2.0 */
#include "store/feasibility.h"

#include "store/amounts.h"
#include "core/ledger.h"
#include "core/node.h"

/* Of how many nodes somebody is on the way or has room kept does not depend on how many there are. */
static uint32_t flag_nodes(const struct feasibility *question)
{
    const uint32_t round = ledger_flag_round(question->ledger);

    hints_flag(question->hints, question->ledger);
    nominations_flag(question->nominees.nominations, question->ledger);
    return round;
}

bool feasibility_is_calm(const struct feasibility *question, const struct node_pulse *pulse)
{
    return question->flags > 0 && pulse->flagged < question->flags &&
           !(pulse->marks & question->gates.marked);
}

static bool is_calm(const struct feasibility *question, const struct node *node)
{
    return node && feasibility_is_calm(question, node_own(node)->pulse);
}

/* Of an older pod. */
static bool shut_out(const void *data, const struct older_pod *pod, const struct node *node)
{
    const struct gates *gates = data;
    const struct gate_who older = {.asker = GATE_BY_ARRIVALS,
                                   .uid = pod->uid,
                                   .ns = pod->ns,
                                   .priority = pod->priority,
                                   .request = pod->request,
                                   .now_ns = gates->who.now_ns,
                                   .now_ms = gates->who.now_ms};

    return gates_shut_out(gates, &older, node) != REASON_NONE;
}

static void begin_gates(struct feasibility *question, struct store *store,
                        const struct feasibility_about *about)
{
    question->ground = (struct gate_ground){question->ledger, store_quotas(store),
                                            store_gangs(store), store_nominations(store)};
    gates_begin(&question->gates, store_parts(store), &question->ground,
                &(struct gate_who){.asker = about->asker,
                                   .pod = about->pod,
                                   .uid = about->pod->uid ? about->pod->uid : "",
                                   .ns = question->ns,
                                   .priority = about->pod->priority,
                                   .request = about->request,
                                   .now_ns = about->moment->now_ns,
                                   .now_ms = about->moment->now_ms},
                about->without & WITHOUT_LIMITS);
}

void feasibility_init(struct feasibility *question, struct store *store,
                      const struct feasibility_about *about)
{
    const struct store_options *options = store_options(store);
    const struct pod_view *pod = about->pod;
    const struct moment *moment = about->moment;
    const int64_t patience_ns = options->patience_ms * 1000000;

    *question = (struct feasibility){
        .arrivals = store_arrivals(store),
        .ledger = store_ledger(store),
        .strays = store_strays(store),
        .hints = store_hints(store),
        .ns = pod->ns ? pod->ns : "",
        .constraints = pod->constraints,
        .without = about->without,
        .admission = {.request = about->request,
                      .policy = options->policy,
                      .options = &options->dialects,
                      .now_ns = moment->now_ns,
                      .patience_ns = patience_ns,
                      .awaits_plugin = about->without & WITHOUT_PLUGIN,
                      .demand =
                          about->demand ? about->demand : store_demand_for(store, about->request),
                      .work = &question->work},
        .turn = {.ledger = store_ledger(store),
                 .nominees = &question->nominees,
                 .quotas = store_quotas(store),
                 .gangs = store_gangs(store),
                 .shut_out = shut_out,
                 .gates = &question->gates,
                 .now_ms = moment->now_ms,
                 .patience_ns = patience_ns,
                 .hold_ms = about->without & WITHOUT_ORDER ? 0 : options->hold_ms,
                 .n_places = options->n_places,
                 .all_ask = options->all_ask},
    };
    work_begin(&question->work);
    question->barrier_work = constraints_size(pod->constraints) / WORK_VALUES;
    begin_gates(question, store, about);
    question->uid = pod->uid;
    question->priority = pod->priority;
    question->late_ms = pod->binds_late ? options->volume_bind_ms : 0;
    question->nominees = store_nominees(store, &question->admission, pod);
    arrivals_settle(question->arrivals, &question->turn);
    question->ordered =
        question->turn.hold_ms != 0 && !arrivals_are_idle(question->arrivals, &question->turn);
    if (about->of_many)
        question->flags = flag_nodes(question);
}

static struct placement *scratch_of(struct feasibility *question)
{
    if (!question->scratch)
        question->scratch = g_new0(struct placement, 1);
    return question->scratch;
}

static void forget_last(struct feasibility *question)
{
    g_clear_pointer(&question->cover, what_if_free);
    g_clear_pointer(&question->left, what_if_free);
    g_clear_pointer(&question->coming, what_if_free);
}

void feasibility_clear(struct feasibility *question)
{
    gates_end(&question->gates);
    nominees_clear(&question->nominees);
    forget_last(question);
    g_clear_pointer(&question->turn.older, g_ptr_array_unref);
    g_clear_pointer(&question->scratch, g_free);
}

void feasibility_go_on(struct feasibility *question, struct store *store,
                       const struct pod_view *pod)
{
    nominees_clear(&question->nominees);
    question->nominees = store_nominees(store, &question->admission, pod);
    g_clear_pointer(&question->coming, what_if_free);
}

void feasibility_note_taken(struct feasibility *question, struct allocation *taken)
{
    gates_take(&question->gates, taken);
}

/* The card that a plan keeps for the pod, if it takes it. Not where the node side chooses, nor where it has pods
 * yet to match, among whom the pod must be on the card that tells it apart. */
static void prefer_kept(const struct feasibility *question, struct placement *placement)
{
    const struct node *node = question->seen;

    if (!placement->request->dialect->policy && node->n_waiting == 0 && !node->departed &&
        !node->promised)
        card_place_on(node, nominees_card(&question->nominees, node), placement);
}

/* Whether a card is free for the pod on the node as it is seen. */
static enum reason admit(struct feasibility *question, struct placement *ret_placement)
{
    enum reason reason;
    const enum admission admission =
        dialect_admit(question->seen, &question->admission, ret_placement, &reason);

    question->waits = admission == ADMISSION_WAIT;
    if (question->waits && question->without & WITHOUT_WAITING)
        return dialect_why_wait(question->seen, question->admission.request);
    if (admission == ADMISSION_NO)
        return reason;
    if (ret_placement && !question->waits && !question->calm)
        prefer_kept(question, ret_placement);
    return REASON_NONE;
}

/* Whether the node, which takes the pod, is left to older ones. */
static enum reason beside_older(struct feasibility *question, const struct node *node,
                                struct placement *placement)
{
    const struct arrivals_node asked = {node, question->seen};
    enum reason covered = REASON_NONE;

    question->cover = arrivals_cover(question->arrivals, question->seen, &question->turn);
    if (question->cover) {
        question->seen = question->cover->node;
        covered = admit(question, placement);
    }
    question->older = covered == REASON_NONE
                          ? arrivals_yield(&asked, placement, &question->turn)
                          : arrivals_leave(question->arrivals, &asked, &question->turn);
    return question->older.title ? REASON_EARLIER_POD : covered;
}

/* What the gates say once the cards have taken the pod; those that narrow the node have the cards asked again. */
static enum reason pass_gates(struct feasibility *question, const struct node *node, uint32_t todo,
                              struct placement *ret_placement)
{
    enum reason reason = gates_shut(&question->gates, todo, node, GATE_AFTER_CARDS);
    const struct gate *gate;
    struct what_if *left;

    while (reason == REASON_NONE &&
           (left = gates_narrow(&question->gates, &todo, node, question->seen, &gate))) {
        g_clear_pointer(&question->left, what_if_free);
        question->left = left;
        question->seen = left->node;
        if (admit(question, ret_placement) != REASON_NONE)
            reason = gate_reason(gate, 1);
    }
    return reason;
}

/* Once for a node, whichever questions come of it. */
static uint32_t gates_todo(struct feasibility *question, const struct node *node)
{
    if (question->judged != node || !node) {
        question->judged = node;
        question->todo = gates_of(&question->gates, node);
    }
    return question->todo;
}

static enum reason ask(struct feasibility *question, const struct node *node,
                       struct placement *ret_placement)
{
    const bool limited = question->gates.limits != 0;
    const bool calm = question->calm = is_calm(question, node);
    const uint32_t todo = gates_todo(question, node);
    enum reason reason;

    forget_last(question);
    if (calm && !todo && !limited && !question->ordered) { /* most of most calls */
        question->seen = question->found = node;
        return admit(question, ret_placement);
    }
    /* What a quota leaves depends on the cards, and what older pods leave. */
    if ((limited || question->ordered) && !ret_placement)
        ret_placement = scratch_of(question);
    question->seen = calm ? node : nominees_see(&question->nominees, node);
    reason = gates_shut(&question->gates, todo, node, GATE_BEFORE_CARDS);
    if (reason == REASON_NONE)
        reason = admit(question, ret_placement);
    if (reason == REASON_NONE)
        reason = pass_gates(question, node, todo, ret_placement);
    question->found = question->seen;
    question->limited = reason == REASON_NONE;
    if (reason == REASON_NONE)
        reason = gates_refuse(&question->gates, question->seen, ret_placement);
    if (reason == REASON_NONE && question->ordered)
        reason = beside_older(question, node, ret_placement);
    return reason == REASON_NONE ? gates_shut(&question->gates, todo, node, GATE_LAST) : reason;
}

enum reason feasibility_ask(struct feasibility *question, const struct node *node,
                            struct placement *ret_placement)
{
    work_do(&question->work, WORK_NODE);
    question->work.hasty = false;
    const enum reason reason = ask(question, node, ret_placement);

    question->waits &= reason == REASON_NONE;
    return reason;
}

/* --- once pods have ended ---------------------------------------------------------------------- */

enum reason feasibility_open(struct feasibility *question, const struct node *node,
                             struct feasibility_opening *ret_opening)
{
    const struct node *seen;
    enum reason reason;

    *ret_opening = (struct feasibility_opening){0};
    forget_last(question);
    seen = question->seen = nominees_see(&question->nominees, node);
    reason = gates_open(&question->gates, node, seen, &question->left);
    if (reason != REASON_NONE)
        return reason;
    if (question->left)
        question->seen = question->left->node;
    ret_opening->seen = question->seen;
    return gates_relieve(&question->gates, node, seen, &ret_opening->relief);
}

/* --- those on their way --------------------------------------------------------------------- */

/* As a bind of it would place it after those before it. */
static void let_come(struct feasibility *question, const struct hint *hint)
{
    struct admission_query admission = question->admission;
    struct placement placement;
    enum reason reason;

    admission.request = hint->request;
    admission.patience_ns = INT64_MAX;
    if (!question->coming)
        question->coming = what_if_new(question->found);
    if (dialect_admit(question->coming->node, &admission, &placement, &reason) == ADMISSION_NO)
        return;
    struct allocation *allocation = what_if_allocation(hint->uid, 0, &placement);
    allocation->waiting = placement.request->dialect->in_flight != NULL;
    allocation->assume_time_ns = admission.now_ns;
    what_if_add(question->coming, allocation);
}

/* Of the others on their way there, those whose binds wait, or those whose binds have yet to come. */
static void let_all_come(struct feasibility *question, const GPtrArray *list, bool waits)
{
    for (guint i = 0; list && i < list->len; i++) {
        const struct hint *hint = list->pdata[i];
        if (hint->waits == waits && g_strcmp0(hint->uid, question->nominees.uid) != 0)
            let_come(question, hint);
    }
}

/* Whether the node with those who come has no room for the pod, not even after a wait. */
static bool is_full(struct feasibility *question)
{
    enum reason reason;

    return question->coming &&
           dialect_admit(question->coming->node, &question->admission, NULL, &reason) ==
               ADMISSION_NO;
}

/* How many others are on their way there, if all ask for the same as the pod, which waits for the node
 * side, and there is room for all of them and for it; else -1. So it is in a burst of equal pods, and
 * nobody need work out who gets which card. */
static int32_t count_equals(const struct feasibility *question, const GPtrArray *list)
{
    const struct node *node = question->found;
    const struct request *request = question->admission.request;
    int32_t n = 0;

    if (!question->waits || !list || node->dialect != request->dialect || node->paused ||
        node->departed || node->promised || node->sketch.dialect || request->dialect->policy)
        return -1;
    for (guint i = 0; i < list->len; i++) {
        const struct hint *hint = list->pdata[i];
        if (g_strcmp0(hint->uid, question->nominees.uid) == 0)
            continue;
        if (!request_equal(hint->request, request))
            return -1;
        n++;
    }
    return placement_of_all_is_obvious(node, request, n + 1) ? n : -1;
}

bool feasibility_at_once(struct feasibility *question, struct placement *ret_placement)
{
    const bool waits = question->waits;
    const GPtrArray *list;
    bool at_once;

    question->spoken_for = false;
    question->n_equals = 0;
    if (question->calm)
        return !waits;
    list = question->found ? hints_of(question->hints, question->found->name) : NULL;
    const int32_t n_equals = count_equals(question, list);
    if (n_equals >= 0) {
        question->n_equals = n_equals;
        return false;
    }
    let_all_come(question, list, true);
    question->spoken_for = is_full(question);
    let_all_come(question, list, false);
    if (!question->coming || waits)
        return !waits;
    const struct node *alone = question->seen;
    question->seen = question->coming->node;
    at_once =
        admit(question, ret_placement ? ret_placement : scratch_of(question)) == REASON_NONE &&
        !question->waits;
    question->waits = waits;
    if (!at_once)
        question->seen = alone;
    return at_once;
}

int32_t feasibility_ahead(const struct feasibility *question)
{
    return (question->coming ? question->coming->node : question->found)->n_waiting +
           question->n_equals;
}

bool feasibility_is_plain_beside_limits(const struct feasibility *question)
{
    return !question->ordered && !question->gates.all;
}

bool feasibility_is_plain(const struct feasibility *question)
{
    return question->gates.limits == 0 && feasibility_is_plain_beside_limits(question);
}

bool feasibility_lasts_beside_limits(struct feasibility *question, const struct node *node)
{
    return node && node->n_waiting == 0 && !node->departed && !node->heartbeat.dialect &&
           feasibility_is_plain_beside_limits(question) && gates_todo(question, node) == 0 &&
           (is_calm(question, node) || (!hints_of(question->hints, node->name) &&
                                        nominees_see(&question->nominees, node) == node));
}

bool feasibility_lasts(struct feasibility *question, const struct node *node)
{
    return question->gates.limits == 0 && feasibility_lasts_beside_limits(question, node);
}

struct node_verdict feasibility_verdict(const struct feasibility *question, enum reason reason)
{
    if (question->gates.limits == 0 || !question->limited)
        return (struct node_verdict){reason, 0};
    return (struct node_verdict){
        REASON_NONE, gates_number(&question->gates, question->found, question->scratch)};
}

bool feasibility_recall(struct feasibility *question, const struct node_verdict *verdict,
                        enum reason *ret_reason)
{
    *ret_reason = verdict->reason;
    if (question->gates.limits == 0 || verdict->reason != REASON_NONE)
        return true;
    return gates_judge(&question->gates, verdict->number, ret_reason);
}

void feasibility_rate(const struct feasibility *question, const struct policy *policy,
                      const struct node *node, const struct placement *placement,
                      struct rank *ret_rank)
{
    ranking_rate(policy, question->seen, placement, question->admission.demand, ret_rank);
    ret_rank->waits = question->waits;
    ret_rank->name = node->name;
}

enum barrier feasibility_barrier(struct feasibility *question, const struct node *node)
{
    const enum barrier barrier = constraints_check(question->constraints, node);

    if (barrier != BARRIER_NONE || !question->constraints)
        return barrier;
    const struct host left = node_host_free(nominees_see(&question->nominees, node));
    const struct host *asked = &question->admission.request->host;
    return asked->pods > left.pods       ? BARRIER_PODS
           : asked->cpu > left.cpu       ? BARRIER_CPU
           : asked->memory > left.memory ? BARRIER_MEMORY
                                         : BARRIER_NONE;
}

char *feasibility_tell_barrier(struct feasibility *question, const struct node *node,
                               enum barrier barrier)
{
    if (barrier != BARRIER_PODS && barrier != BARRIER_CPU && barrier != BARRIER_MEMORY)
        return constraints_tell(question->constraints, node, barrier);

    const struct node *seen = nominees_see(&question->nominees, node);
    const struct host left = node_host_free(seen);
    const struct host *asked = &question->admission.request->host, *all = &node->host;
    if (barrier == BARRIER_PODS)
        return g_strdup_printf("the node has %" G_GINT64_FORMAT " pods of at most %" G_GINT64_FORMAT,
                               seen->host_used.pods, all->pods);
    if (barrier == BARRIER_CPU)
        return g_strdup_printf("wants %g CPU, the node has %g free of %g",
                               (double)asked->cpu / 1000, (double)left.cpu / 1000,
                               (double)all->cpu / 1000);
    g_autofree char *wants = bytes_text(asked->memory);
    g_autofree char *has = bytes_text(left.memory);
    g_autofree char *of = bytes_text(all->memory);
    return g_strdup_printf("wants %s of the node's memory, which has %s free of %s", wants, has, of);
}

bool feasibility_takes(struct feasibility *question, const struct node *node,
                       struct placement *ret_placement)
{
    return node->present && work_afford(&question->work, question->barrier_work) &&
           feasibility_barrier(question, node) == BARRIER_NONE &&
           feasibility_ask(question, node, ret_placement) == REASON_NONE;
}
