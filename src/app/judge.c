/* SPDX-License-Identifier: Apache-2.0 */
#include "app/judge.h"

#include "app/telling.h"

void judge_init(struct judge *judge, struct store *store, const struct pod_view *pod,
                const struct request *request, const struct moment *moment)
{
    const struct store_options *options = store_options(store);
    const char *uid = pod->uid ? pod->uid : ""; /* a pod that need not exist */

    *judge = (struct judge){
        .arrivals = store_arrivals(store),
        .ledger = store_ledger(store),
        .constraints = pod->constraints,
        .admission = {.request = request,
                      .policy = options->policy,
                      .options = &options->dialects,
                      .now_ns = moment->now_ns,
                      .patience_ns = options->patience_ms * 1000000,
                      .demand = store_demand(store)},
        .turn = {.ledger = store_ledger(store),
                 .nominees = &judge->nominees,
                 .quotas = store_quotas(store),
                 .now_ms = moment->now_ms,
                 .hold_ms = options->hold_ms,
                 .n_places = options->n_places},
    };
    judge->room =
        quotas_room(store_quotas(store), judge->ledger, pod->ns ? pod->ns : "", request);
    judge->nominees = store_nominees(store, &judge->admission, uid, pod->priority);
    arrivals_settle(judge->arrivals, &judge->turn);
}

void judge_clear(struct judge *judge)
{
    g_clear_pointer(&judge->room, quota_room_free);
    nominees_clear(&judge->nominees);
    g_clear_pointer(&judge->cover, trial_free);
    g_clear_pointer(&judge->turn.older, g_ptr_array_unref);
}

/* Whether the node, which takes the pod, is left to older ones. */
static enum reason beside_older(struct judge *judge, struct placement *ret_placement)
{
    const struct node *as_it_is = judge->seen;
    struct placement *placement = ret_placement ? ret_placement : &judge->scratch;
    enum reason reason;

    judge->cover = arrivals_cover(judge->arrivals, judge->seen, &judge->turn);
    if (judge->cover)
        judge->seen = judge->cover->node;
    const enum admission admission =
        dialect_admit(judge->seen, &judge->admission, placement, &reason);
    judge->waits = admission == ADMISSION_WAIT;
    judge->older = admission == ADMISSION_NO
                       ? arrivals_leave(judge->arrivals, as_it_is, &judge->turn)
                       : arrivals_yield(as_it_is, placement, &judge->turn);
    return judge->older.title ? REASON_EARLIER_POD : REASON_NONE;
}

enum reason judge_node(struct judge *judge, const struct node *node,
                       struct placement *ret_placement)
{
    enum reason reason;

    g_clear_pointer(&judge->cover, trial_free);
    if (judge->room && !ret_placement)
        ret_placement = &judge->scratch; /* what a quota leaves depends on the cards */
    judge->seen = nominees_see(&judge->nominees, node);
    const enum admission admission =
        dialect_admit(judge->seen, &judge->admission, ret_placement, &reason);
    judge->waits = admission == ADMISSION_WAIT;
    if (admission == ADMISSION_NO)
        return reason;
    reason = quota_room_refuse(judge->room, judge->seen, ret_placement);
    if (reason != REASON_NONE)
        return reason;
    return judge->turn.hold_ms == 0 ? REASON_NONE : beside_older(judge, ret_placement);
}

enum barrier judge_barrier(struct judge *judge, const struct node *node)
{
    const enum barrier barrier = constraints_check(judge->constraints, node);

    if (barrier != BARRIER_NONE || !judge->constraints)
        return barrier;
    const struct host left = node_host_free(nominees_see(&judge->nominees, node));
    const struct host *asked = &judge->admission.request->host;
    return asked->pods > left.pods       ? BARRIER_PODS
           : asked->cpu > left.cpu       ? BARRIER_CPU
           : asked->memory > left.memory ? BARRIER_MEMORY
                                         : BARRIER_NONE;
}

char *judge_tell_barrier(struct judge *judge, const struct node *node, enum barrier barrier)
{
    if (barrier != BARRIER_PODS && barrier != BARRIER_CPU && barrier != BARRIER_MEMORY)
        return constraints_tell(judge->constraints, node, barrier);

    const struct node *seen = nominees_see(&judge->nominees, node);
    const struct host left = node_host_free(seen);
    const struct host *asked = &judge->admission.request->host, *all = &node->host;
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

bool judge_takes(struct judge *judge, const struct node *node, struct placement *ret_placement)
{
    return node->present && judge_barrier(judge, node) == BARRIER_NONE &&
           judge_node(judge, node, ret_placement) == REASON_NONE;
}
