/* SPDX-License-Identifier: Apache-2.0 */
#include "app/judge.h"

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
        .turn = {.admission = &judge->admission,
                 .uid = uid,
                 .priority = pod->priority,
                 .now_ms = moment->now_ms,
                 .hold_ms = options->hold_ms},
    };
    judge->turn.ledger = judge->ledger;
    judge->room =
        quotas_room(store_quotas(store), judge->ledger, pod->ns ? pod->ns : "", request);
    judge->nominees = store_nominees(store, &judge->admission, uid, pod->priority);
}

void judge_clear(struct judge *judge)
{
    g_clear_pointer(&judge->room, quota_room_free);
    nominees_clear(&judge->nominees);
}

enum reason judge_node(struct judge *judge, const struct node *node,
                       struct placement *ret_placement)
{
    struct placement own;
    enum reason reason;

    if (judge->room && !ret_placement)
        ret_placement = &own; /* what a quota leaves depends on the cards */
    judge->seen = nominees_see(&judge->nominees, node);
    const enum admission admission =
        dialect_admit(judge->seen, &judge->admission, ret_placement, &reason);
    judge->waits = admission == ADMISSION_WAIT;
    if (admission == ADMISSION_NO)
        return reason;
    reason = quota_room_refuse(judge->room, judge->seen, ret_placement);
    if (reason != REASON_NONE)
        return reason;
    judge->older = arrivals_yield(judge->arrivals, judge->seen, &judge->turn);
    return judge->older ? REASON_EARLIER_POD : REASON_NONE;
}

bool judge_takes(struct judge *judge, const struct node *node, struct placement *ret_placement)
{
    return node->present && constraints_check(judge->constraints, node) == BARRIER_NONE &&
           judge_node(judge, node, ret_placement) == REASON_NONE;
}
