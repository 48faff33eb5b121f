/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang/gang_gate.h"

#include "policy/effort/work_meter.h"
#include "policy/what_if.h"

#include <string.h>

static void take_away(struct what_if *what_if, const char *uid)
{
    for (guint i = 0; i < what_if->node->allocations->len; i++) {
        struct allocation *one = what_if->node->allocations->pdata[i];
        if (!g_str_equal(one->uid, uid))
            continue;
        what_if_without(what_if, one);
        return;
    }
}

enum admission gang_gate_ask(struct store *store, const struct moment *moment,
                             const struct allocation *held, const struct request *request,
                             enum reason *ret_reason)
{
    const struct store_options *options = store_options(store);
    g_autoptr(what_if) without = what_if_new(held->node);
    struct work_meter work;
    const struct admission_query query = {.request = request,
                                          .policy = options->policy,
                                          .options = &options->dialects,
                                          .now_ns = moment->now_ns,
                                          .patience_ns = options->patience_ms * 1000000,
                                          .awaits_plugin = true,
                                          .demand = store_demand_for(store, request),
                                          .work = &work};

    work_begin(&work);
    take_away(without, held->uid);
    const enum admission answer = dialect_admit(without->node, &query, NULL, ret_reason);
    const struct turn turn = {held->uid, held->ns, held->name, 0};
    return answer == ADMISSION_YES &&
                   store_choose_turn(store, held->dialect, held->node, &turn, moment->now_ns) == 0
               ? ADMISSION_WAIT
               : answer;
}

bool gang_gate_is_taken(struct store *store, const struct moment *moment, const struct node *node)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (one->state == ALLOCATION_HELD && one->dialect && one->dialect->in_flight &&
            gangs_go_first(store_gangs(store), one->uid, moment->now_ms))
            return true;
    }
    return false;
}
