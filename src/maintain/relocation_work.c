/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/relocation_work.h"

#include "policy/what_if.h"
#include "store/amounts.h"

#define BAR_FORMAT "%s\n%s" /* UID, "" for the pod to admit, and node */

void work_clear(struct work *work)
{
    movers_free(work->movers);
    request_free(work->request);
    store_free(work->copy);
    g_hash_table_unref(work->barred);
    g_clear_pointer(&work->looked, g_hash_table_unref);
    demand_free(work->demand);
    json_arena_free(work->arena);
}
/* --- what is barred ----------------------------------------------------------------------------- */

static void bar(struct work *work, const char *uid, const char *node)
{
    g_hash_table_add(work->barred, g_strdup_printf(BAR_FORMAT, uid ? uid : "", node));
}

bool work_is_barred(const struct work *work, const char *uid, const char *node)
{
    if (g_hash_table_size(work->barred) == 0)
        return false;
    g_autofree char *key = g_strdup_printf(BAR_FORMAT, uid ? uid : "", node);
    return g_hash_table_contains(work->barred, key);
}

const struct policy *work_policy(const struct work *work, const struct node *node)
{
    return node->policy ? node->policy : store_options(work->copy)->policy;
}

bool work_may_be_on(const struct pod_view *pod, const struct request *request,
                    const struct node *node)
{
    const struct host left = node_host_free(node), *asked = &request->host;

    return node->present && dialect_serves(node, request) &&
           constraints_check(pod->constraints, node) == BARRIER_NONE && asked->pods <= left.pods &&
           asked->cpu <= left.cpu && asked->memory <= left.memory;
}

/* --- the plan as a whole ------------------------------------------------------------------------ */

static bool place(struct store *trial, const struct mover *mover, const struct plan_step *step)
{
    struct placement placement;
    struct feasibility question;
    struct moment moment;
    struct ledger *ledger = store_decide(trial, &moment);
    const struct node *node = ledger_node(ledger, step->to);
    const struct trial_pod pod = {&mover->view, mover->request, &moment};

    ledger_drop(ledger, step->pod->uid);
    feasibility_init(&question, trial, &(struct feasibility_about){pod.view, pod.request, &moment});
    const bool takes = feasibility_takes(&question, node, &placement);
    feasibility_clear(&question);
    const bool placed = takes && trial_put(trial, &pod, step->takes->uid, node, &placement);
    store_unlock(trial);
    return placed;
}

/* Each pod ends and its successor is placed. False: one was refused, and is barred from that node. */
static bool try_steps(struct work *work, struct store *trial, const GPtrArray *steps)
{
    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        if (place(trial, step->pod->tag, step))
            continue;
        bar(work, step->pod->uid, step->to);
        return false;
    }
    return true;
}

/* The node should take the pod to admit, and does not. */
static void bar_admit(struct work *work, struct feasibility *question, const struct node *node)
{
    work->reason = feasibility_ask(question, node, NULL);
    bar(work, NULL, node->name);
}

static void bar_all(struct work *work, struct feasibility *question, const GPtrArray *steps)
{
    const GPtrArray *nodes = ledger_nodes(question->ledger);

    for (guint i = 0; i < steps->len; i++) {
        const struct plan_step *step = steps->pdata[i];
        bar_admit(work, question, ledger_node(question->ledger, step->from));
    }
    for (guint i = 0; steps->len == 0 && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (work_may_be_on(&work->admit, work->request, node) &&
            placement_fits(node, work->request, work_policy(work, node), NULL))
            bar_admit(work, question, node);
    }
}

/* What is to be kept of the node for the pod, while others leave it. */
static struct kept_room *room_for_admit(const struct work *work, const struct placement *placement)
{
    const struct pod_view *pod = &work->admit;
    struct kept_room *room = kept_room_new();

    room->uid = g_strdup(pod->uid);
    room->held = what_if_allocation(pod->uid, pod->priority, placement);
    return room;
}

/* Some node takes the pod to admit; else those that should have are barred. */
static bool try_admit(struct work *work, struct store *trial, const GPtrArray *steps)
{
    struct placement placement;
    struct feasibility question;
    struct moment moment;

    store_decide(trial, &moment);
    const struct trial_pod pod = {&work->admit, work->request, &moment};
    const struct node *node = trial_choose(trial, &pod, &placement);
    if (node) {
        work->found->node = g_strdup(node->name);
        if (steps->len > 0 && work->admit.uid)
            work->found->room = room_for_admit(work, &placement);
        work->found->cards = shares_text(node, placement.shares, placement.n_shares);
    } else {
        feasibility_init(&question, trial,
                         &(struct feasibility_about){pod.view, pod.request, &moment});
        bar_all(work, &question, steps);
        feasibility_clear(&question);
    }
    store_unlock(trial);
    return node != NULL;
}

/* The cards that the successors have in the end are as good as those of the plan; else the last one is barred
 * from its node. */
static bool try_measure(struct work *work, struct store *trial, const GPtrArray *steps)
{
    work->found->fragmented_then = plan_fragmented(store_lock(trial), work->demand);
    store_unlock(trial);
    if (work->found->fragmented_then <= work->found->fragmented_most)
        return true;
    const struct plan_step *last = steps->pdata[steps->len - 1];
    bar(work, last->pod->uid, last->to);
    return false;
}

bool work_try(struct work *work, const GPtrArray *steps)
{
    g_autoptr(store) trial = store_copy(work->copy);

    return try_steps(work, trial, steps) && (!work->request || try_admit(work, trial, steps)) &&
           (!work->demand || try_measure(work, trial, steps));
}
