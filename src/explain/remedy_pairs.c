/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two changes that are enough only together: one is made, and the search for single remedies asked
 * what else that node needs. It is worth its lines: of 138 pods that 60 random clusters of
 * tests/cli/test_remedies.py refused, 51 had no single remedy, but a pair; 6 had neither.
 */
#include "explain/remedy_step.h"

#include <string.h>

/* What may come first; whatever a search finds may come second, so a pair of which only the second
 * could come first is found the other way round. */
static const enum remedy_kind firsts[] = {
    REMEDY_UNCORDON, REMEDY_TOLERATE,  REMEDY_SELECTOR, REMEDY_AFFINITY,
    REMEDY_HEAL,     REMEDY_CONDITION, REMEDY_LABEL,
};

/* The step is made: what else would let the pod go to the node? */
static void search_second(struct search *search, struct node *node, struct step *step)
{
    const char *const nodes[] = {node->name, NULL};
    struct remedies_query query = *search->query;
    struct search inner = {
        .query = &query,
        .ledger = search->ledger,
        .moment = search->moment,
        .found = remedies_new(),
        .only = node,
        .tries = search->tries,
        .tries_max = search->tries_max,
        .lists = search->lists,
    };

    query.pod = &step->pod;
    query.request = step->request ? step->request : search->query->request;
    query.nodes = nodes;
    search_singles(&inner);
    search->tries = inner.tries;
    search->lists = inner.lists;
    if (inner.found->len > 0) {
        struct remedy *second = &g_array_index(inner.found, struct remedy, 0);
        search_add_pair(search, step_tell(step), *second, node);
        *second = (struct remedy){0};
    }
    g_array_unref(inner.found);
}

static void search_firsts(struct search *search, struct node *node)
{
    const enum barrier barrier = search_barrier(search, node);
    struct step step;

    for (size_t k = 0; k < G_N_ELEMENTS(firsts); k++) {
        /* As long as kube-scheduler does not ask, nothing but that comes first. */
        if (barrier != BARRIER_NONE && firsts[k] != step_of_barrier(barrier))
            continue;
        for (size_t i = 0; search_may_try(search) &&
                           step_make(&step, search, node, firsts[k], i);
             i++) {
            search_second(search, node, &step);
            step_undo(&step, node);
        }
    }
}

static gint compare_pairs(gconstpointer a, gconstpointer b)
{
    const struct remedy *left = ((const struct remedy_pair *)a)->changes;
    const struct remedy *right = ((const struct remedy_pair *)b)->changes;

    return left[1].kind != right[1].kind ? (gint)left[1].kind - (gint)right[1].kind
                                         : (gint)left[0].kind - (gint)right[0].kind;
}

void search_pairs(struct search *search)
{
    const char *const *name = search->query->nodes;

    search->tries = 0;
    search_two_amounts(search);
    for (int n = 0; *name && n < REMEDY_PAIR_NODES_MAX && search_may_try(search); name++, n++)
        search_firsts(search, ledger_node(search->ledger, *name));
    g_array_sort(search->pairs, compare_pairs);
    if (search->pairs->len > REMEDY_PAIRS_MAX)
        g_array_set_size(search->pairs, REMEDY_PAIRS_MAX);
}
