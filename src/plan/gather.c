/* SPDX-License-Identifier: Apache-2.0 */
/* Brings down what is fragmented, by one move after the other. */
#include "plan/search.h"

/* A move, and what is fragmented after it. */
struct choice {
    size_t pod;
    char *to; /* NULL: there is none */
    int64_t fragmented, cost;
};

static bool is_better(const struct choice *one, const struct choice *other)
{
    if (!other->to || one->fragmented != other->fragmented)
        return !other->to || one->fragmented < other->fragmented;
    return one->cost < other->cost;
}

/* Tries the pod on the node, and keeps the better one. The move is taken back. */
static void try_node(struct search *search, size_t pod, const char *name, struct choice *best)
{
    const struct plan_pod *plan_pod = &search->query->pods[pod];
    const guint n = search->steps->len;
    const struct node *node = ledger_node(search->ledger, name);
    struct placement placement;

    if (placement_find(node, plan_pod->request, search_policy(search, node), NULL, CARD_UNKNOWN,
                       &placement) != REASON_NONE ||
        !search_move(search, pod, name, &placement))
        return;
    const struct choice one = {pod, NULL, search->fragmented, plan_pod->cost};
    search_return(search, n);
    if (!is_better(&one, best))
        return;
    g_free(best->to);
    *best = one;
    best->to = g_strdup(name);
}

/* The one that leaves the least. False: none leaves less than there is. */
static bool take_best(struct search *search)
{
    const GPtrArray *nodes = ledger_nodes(search->ledger);
    struct choice best = {.fragmented = search->fragmented};
    struct placement placement;

    for (size_t p = 0; p < search->query->n_pods && !search->gave_up; p++) {
        if (!search_may_move(search, p))
            continue;
        for (guint i = 0; i < nodes->len && search_try(search); i++) {
            const struct node *node = nodes->pdata[i];
            g_autofree char *name = g_strdup(node->name);
            if (search_admits(search, node, &search->query->pods[p]))
                try_node(search, p, name, &best);
        }
    }
    g_autofree char *to = best.to;
    const struct node *node = to ? ledger_node(search->ledger, to) : NULL;
    return node && best.fragmented < search->fragmented &&
           placement_find(node, search->query->pods[best.pod].request, search_policy(search, node),
                          NULL, CARD_UNKNOWN, &placement) == REASON_NONE &&
           search_move(search, best.pod, to, &placement);
}

bool gather_find(struct search *search, uint32_t most)
{
    bool reached = search_reached(search);

    while (!reached && search->steps->len < most && take_best(search))
        reached = search_reached(search);
    search->gave_up = false; /* what follows counts its own tries */
    search->tries = 0;
    return reached;
}
