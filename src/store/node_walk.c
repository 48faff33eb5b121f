/* SPDX-License-Identifier: Apache-2.0 */
#include "store/node_walk.h"

#include <string.h>

/* The position of the first node whose name comes after this one. */
static guint find_next(const GPtrArray *nodes, const char *name)
{
    guint low = 0, high = nodes->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const struct node *node = g_ptr_array_index(nodes, middle);
        if (strcmp(node->name, name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void node_walk(struct store *store, const char *after, node_visit visit, void *data)
{
    g_autofree char *last = g_strdup(after ? after : "");
    bool go_on = true;

    while (go_on) {
        const GPtrArray *nodes = ledger_nodes(store_lock(store));
        guint at = find_next(nodes, last);
        const guint end = MIN(at + NODE_WALK_STEP, nodes->len);

        go_on = at < end;
        for (; go_on && at < end; at++) {
            const struct node *node = g_ptr_array_index(nodes, at);
            if (at + 1 == end) {
                g_free(last);
                last = g_strdup(node->name);
            }
            go_on = visit(node, data);
        }
        store_unlock(store);
    }
}
