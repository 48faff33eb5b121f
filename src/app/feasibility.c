/* SPDX-License-Identifier: Apache-2.0 */
#include "app/feasibility.h"

#include "app/telling.h"

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
        .ns = pod->ns,
        .constraints = pod->constraints,
        .without = about->without,
        .admission = {.request = about->request,
                      .policy = options->policy,
                      .options = &options->dialects,
                      .now_ns = moment->now_ns,
                      .patience_ns = about->without & WITHOUT_PATIENCE ? INT64_MAX : patience_ns,
                      .demand = about->demand ? about->demand : store_demand(store)},
        .turn = {.ledger = store_ledger(store),
                 .nominees = &question->nominees,
                 .quotas = store_quotas(store),
                 .now_ms = moment->now_ms,
                 .patience_ns = patience_ns,
                 .hold_ms = about->without & WITHOUT_ORDER ? 0 : options->hold_ms,
                 .n_places = options->n_places,
                 .all_ask = options->all_ask},
    };
    question->room = quotas_room(store_quotas(store), question->ledger, pod->ns ? pod->ns : "",
                                 about->request);
    question->nominees = store_nominees(store, &question->admission, pod->uid ? pod->uid : "",
                                        pod->priority);
    arrivals_settle(question->arrivals, &question->turn);
    question->ordered =
        question->turn.hold_ms != 0 && !arrivals_are_idle(question->arrivals, &question->turn);
}

void feasibility_clear(struct feasibility *question)
{
    g_clear_pointer(&question->room, quota_room_free);
    nominees_clear(&question->nominees);
    g_clear_pointer(&question->cover, trial_free);
    g_clear_pointer(&question->turn.older, g_ptr_array_unref);
}

static const struct quota_room *limits(const struct feasibility *question)
{
    return question->without & WITHOUT_QUOTAS ? NULL : question->room;
}

int feasibility_unsealed(const struct feasibility *question, const struct node *node)
{
    int n = 0;

    for (guint i = 0; i < node->allocations->len && node->n_unsealed > 0; i++) {
        const struct allocation *other = node->allocations->pdata[i];
        n += other->doubt == DOUBT_UNSEALED && g_strcmp0(other->ns, question->ns) == 0;
    }
    return n;
}

/* Whoever has taken seals away, or may have, is not given more there to do so with. */
static bool is_closed(const struct feasibility *question, const struct node *node)
{
    return node->n_unsealed > UNSEALED_MAX &&
           feasibility_unsealed(question, node) > UNSEALED_MAX;
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
    if (!is_closed(question, question->seen))
        return REASON_NONE;
    question->waits = false;
    return REASON_UNSEALED;
}

/* Whether the node, which takes the pod, is left to older ones. */
static enum reason beside_older(struct feasibility *question, struct placement *placement)
{
    const struct node *as_it_is = question->seen;
    enum reason covered = REASON_NONE;

    question->cover = arrivals_cover(question->arrivals, question->seen, &question->turn);
    if (question->cover) {
        question->seen = question->cover->node;
        covered = admit(question, placement);
    }
    question->older = covered == REASON_NONE
                          ? arrivals_yield(as_it_is, placement, &question->turn)
                          : arrivals_leave(question->arrivals, as_it_is, &question->turn);
    return question->older.title ? REASON_EARLIER_POD : covered;
}

enum reason feasibility_ask(struct feasibility *question, const struct node *node,
                            struct placement *ret_placement)
{
    const struct quota_room *room = limits(question);
    enum reason reason;

    g_clear_pointer(&question->cover, trial_free);
    /* What a quota leaves depends on the cards, and what older pods leave. */
    if ((room || question->ordered) && !ret_placement)
        ret_placement = &question->scratch;
    question->seen = nominees_see(&question->nominees, node);
    reason = admit(question, ret_placement);
    if (reason == REASON_NONE)
        reason = quota_room_refuse(room, question->seen, ret_placement);
    return reason != REASON_NONE || !question->ordered ? reason
                                                       : beside_older(question, ret_placement);
}

bool feasibility_lasts(struct feasibility *question, const struct node *node)
{
    return node && node->n_waiting == 0 && node->n_unsealed <= UNSEALED_MAX && !limits(question) && !question->ordered &&
           nominees_see(&question->nominees, node) == node;
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
    g_autofree char *wants = tell_bytes(asked->memory);
    g_autofree char *has = tell_bytes(left.memory);
    g_autofree char *of = tell_bytes(all->memory);
    return g_strdup_printf("wants %s of the node's memory, which has %s free of %s", wants, has, of);
}

bool feasibility_takes(struct feasibility *question, const struct node *node,
                       struct placement *ret_placement)
{
    return node->present && feasibility_barrier(question, node) == BARRIER_NONE &&
           feasibility_ask(question, node, ret_placement) == REASON_NONE;
}
