/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/drain_budget.h"

const char *drain_budget_forbids(const struct switch_limits *limits, const struct pod_view *pods,
                                 size_t n)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t i = 0; limits->max_per_namespace > 0 && i < n; i++) {
        const char *ns = pods[i].ns ? pods[i].ns : "";
        const guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, ns)) + 1;
        if (count > limits->max_per_namespace)
            return "more pods of one namespace are there than may end";
        g_hash_table_insert(counts, (gpointer)ns, GUINT_TO_POINTER(count));
    }
    return NULL;
}
