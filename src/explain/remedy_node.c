/* SPDX-License-Identifier: Apache-2.0 */
/* Something of the node changes, or time passes there. */
#include "explain/remedy_step.h"

#include "quota/share_amounts.h"
#include "gate/quotas.h"

#include <string.h>

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

/* Waiting pods of the node as the node side will have matched them; what they were is returned. */
static GPtrArray *match_all(struct search *search, const struct node *node)
{
    GPtrArray *waiting = g_ptr_array_new_with_free_func(free_allocation);

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        if (one->waiting)
            g_ptr_array_add(waiting, allocation_dup(one));
    }
    for (guint i = 0; i < waiting->len; i++) {
        struct allocation *matched = allocation_dup(waiting->pdata[i]);
        matched->waiting = false;
        matched->assigned = true;
        ledger_put(search->ledger, node->name, matched);
    }
    return waiting;
}

static void try_match(struct search *search, struct node *node)
{
    g_autoptr(GPtrArray) waiting = match_all(search, node);

    if (waiting->len > 0 && search_takes(search, node)) {
        struct remedy remedy = {
            .kind = REMEDY_MATCH,
            .pods = remedy_pods_new(),
            .text = g_strdup_printf("wait until the node side of %s has matched the pods that "
                                    "wait there",
                                    node->name),
        };
        for (guint i = 0; i < waiting->len; i++) {
            const struct allocation *one = waiting->pdata[i];
            const struct remedy_pod pod = {g_strdup(one->ns), g_strdup(one->name), NULL};
            g_array_append_val(remedy.pods, pod);
        }
        search_add(search, remedy, node);
    }
    for (guint i = 0; i < waiting->len; i++)
        ledger_put(search->ledger, node->name, allocation_dup(waiting->pdata[i]));
}

static void try_quota(struct search *search, struct node *node)
{
    struct quota_count count;
    struct feasibility question;

    search_begin(search, &question, search->query->pod, search->query->request, WITHOUT_LIMITS);
    const struct quota_room *room = quotas_gate_room(&question.gates);
    if (room) {
        quota_room_count(room, node, &count);
        const int64_t to = (count.used + count.wanted + SHARE_UNIT - 1) / SHARE_UNIT;
        if (count.limited && count.pooled && feasibility_ask(&question, node, NULL) == REASON_NONE)
            search_add(
                search,
                (struct remedy){.kind = REMEDY_QUOTA,
                                .key = g_strdup(count.model),
                                .from = g_strdup_printf("%g", (double)count.limit / SHARE_UNIT),
                                .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                                .text = g_strdup_printf("give namespace %s %" G_GINT64_FORMAT
                                                        " %s instead of "
                                                        "%g (ConfigMap kube-system/gpuquota)",
                                                        search->query->pod->ns, to, count.model,
                                                        (double)count.limit / SHARE_UNIT)},
                node);
    }
    feasibility_clear(&question);
}

static void try_resource_quota(struct search *search, struct node *node)
{
    struct resource_count count;
    struct placement placement;
    struct feasibility question;

    search_begin(search, &question, search->query->pod, search->query->request, WITHOUT_LIMITS);
    const struct quota_room *room = quotas_gate_room(&question.gates);
    if (room && feasibility_ask(&question, node, &placement) == REASON_NONE &&
        !resource_room_allows(quota_room_resources(room), node, &placement, &count) &&
        count.alone) {
        const int64_t to = count.used + count.wanted;
        search_add(search,
            (struct remedy){
                .kind = REMEDY_QUOTA,
                .key = g_strdup(count.key),
                .from = g_strdup_printf("%" G_GINT64_FORMAT, count.limit),
                .to = g_strdup_printf("%" G_GINT64_FORMAT, to),
                .text = g_strdup_printf("let ResourceQuota %s/%s have %" G_GINT64_FORMAT
                                        " instead of %" G_GINT64_FORMAT " under %s",
                                        search->query->pod->ns, count.quota, to, count.limit,
                                        count.key)},
            node);
    }
    feasibility_clear(&question);
}

static void try_turn(struct search *search, struct node *node)
{
    struct feasibility question;

    search_begin(search, &question, search->query->pod, search->query->request, 0);
    if (feasibility_ask(&question, node, NULL) == REASON_EARLIER_POD)
        search_add(search,
            (struct remedy){.kind = REMEDY_TURN,
                            .text = g_strdup_printf("wait: the room on %s is left to %s for a "
                                                    "while, which came first",
                                                    node->name, question.older.title)},
            node);
    feasibility_clear(&question);
}

/* Tells the step if that alone is enough. */
static void try_step(struct search *search, struct node *node, enum remedy_kind kind)
{
    struct step step;

    for (size_t i = 0; search_may_try(search) && !search_has(search, kind) &&
                       step_make(&step, search, node, kind, i);
         i++) {
        if (search_takes_as(search, node, &step.pod))
            search_add(search, step_tell(&step), node);
        step_undo(&step, node);
    }
}

static void try_label(struct search *search, struct node *node)
{
    try_step(search, node, REMEDY_LABEL);
}

/* What may help where the node says this. One node of each kind is enough. */
static const struct {
    enum reason reason;
    enum remedy_kind kind;
    void (*try)(struct search *search, struct node *node);
} rules[] = {
    {REASON_EARLIER_POD, REMEDY_TURN, try_turn},
    {REASON_AWAITING_ASSIGNMENT, REMEDY_MATCH, try_match},
    {REASON_AWAITING_TURN, REMEDY_MATCH, try_match},
    {REASON_QUOTA, REMEDY_QUOTA, try_quota},
    {REASON_RESOURCE_QUOTA, REMEDY_QUOTA, try_resource_quota},
    {REASON_TERMS, REMEDY_LABEL, try_label},
};

static void search_node(struct search *search, struct node *node)
{
    const enum barrier barrier = search_barrier(search, node);
    const enum reason reason =
        search_ask(search, node, search->query->pod, search->query->request, NULL);

    if (barrier != BARRIER_NONE) {
        if (reason == REASON_NONE)
            try_step(search, node, step_of_barrier(barrier));
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (rules[i].reason == reason && !search_has(search, rules[i].kind))
            rules[i].try(search, node);
    }
    try_step(search, node, REMEDY_HEAL); /* whatever the reason, a card more may do */
}

void search_nodes(struct search *search)
{
    for (const char *const *name = search->query->nodes; *name && search_may_try(search); name++)
        search_node(search, ledger_node(search->ledger, *name));
}
