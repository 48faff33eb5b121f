/* SPDX-License-Identifier: Apache-2.0 */
/* Remedies of a single change, of all kinds, the smallest first. */
#include "explain/remedy_search.h"

static gint compare_remedies(gconstpointer a, gconstpointer b)
{
    const struct remedy *left = a, *right = b;
    return (gint)left->kind - (gint)right->kind;
}

/* Each finds the same whatever the others found; what is left of the questions is all that they share,
 * so the cheap ones come first. */
static void (*const searches[])(struct search *search) = {
    search_nodes, search_amounts, search_dialects, search_annotations, search_pods, search_cpu_pods,
};

void search_singles(struct search *search)
{
    for (size_t i = 0; i < G_N_ELEMENTS(searches); i++)
        searches[i](search);
    g_array_sort(search->found, compare_remedies);
}
