/* SPDX-License-Identifier: Apache-2.0 */
/* Remedies of a single change, of all kinds, the smallest first. */
#include "explain/remedy_search.h"

static void (*const searches[])(struct search *search) = {
    search_nodes, search_amounts,  search_dialects, search_annotations,
    search_pods,  search_cpu_pods, search_quotas,
};

static gint compare_remedies(gconstpointer a, gconstpointer b)
{
    const struct remedy *left = a, *right = b;
    return (gint)left->kind - (gint)right->kind;
}

/* Each has an equal part of the questions that are left, so that none takes another's. */
void search_singles(struct search *search)
{
    const int all = search->tries_max;
    const int part = (all - search->tries) / (int)G_N_ELEMENTS(searches);

    for (size_t i = 0; i < G_N_ELEMENTS(searches); i++) {
        search->tries_max = search->tries + part;
        searches[i](search);
    }
    search->tries_max = all;
    g_array_sort(search->found, compare_remedies);
}
