/* SPDX-License-Identifier: Apache-2.0 */
#include "store/changes/node_changes.h"

#include "core/ledger.h"

struct change {
    int64_t since_ms;
    uint64_t to; /* as in struct pool */
    bool over;   /* it has lasted CHANGE_MS */
};

struct changes {
    GHashTable *nodes;   /* name -> struct change * */
    int64_t earliest_ms; /* none that goes on has begun earlier; INT64_MAX: there is none */
};

struct changes *changes_new(void)
{
    struct changes *changes = g_new0(struct changes, 1);

    changes->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    changes->earliest_ms = INT64_MAX;
    return changes;
}

void changes_free(struct changes *changes)
{
    g_hash_table_unref(changes->nodes);
    g_free(changes);
}

static uint64_t changed_to(const struct node *node)
{
    for (int32_t i = 0; node && i < node->n_pools; i++) {
        if (node->pools[i].withheld == WITHHELD_CHANGE)
            return node->pools[i].change;
    }
    return 0;
}

int64_t changes_see(struct changes *changes, struct ledger *ledger, const char *node,
                    int64_t now_ms)
{
    const uint64_t to = changed_to(ledger_node(ledger, node));
    struct change *change = g_hash_table_lookup(changes->nodes, node);

    if (to == 0) {
        changes_forget(changes, node);
        return 0;
    }
    if (!change) {
        change = g_new0(struct change, 1);
        g_hash_table_insert(changes->nodes, g_strdup(node), change);
    }
    if (change->to != to)
        *change = (struct change){MAX(now_ms, 1), to, false};
    if (change->over)
        ledger_end_change(ledger, node);
    else
        changes->earliest_ms = MIN(changes->earliest_ms, change->since_ms);
    return change->since_ms;
}

void changes_forget(struct changes *changes, const char *node)
{
    g_hash_table_remove(changes->nodes, node);
}

bool changes_end(struct changes *changes, struct ledger *ledger, int64_t now_ms)
{
    GHashTableIter iter;
    gpointer name, value;
    bool ended = false;

    if (changes->earliest_ms == INT64_MAX || now_ms - changes->earliest_ms < CHANGE_MS)
        return false;
    changes->earliest_ms = INT64_MAX;
    g_hash_table_iter_init(&iter, changes->nodes);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        struct change *change = value;
        if (!change->over && now_ms - change->since_ms >= CHANGE_MS) {
            change->over = ended = true;
            ledger_end_change(ledger, name);
        } else if (!change->over) {
            changes->earliest_ms = MIN(changes->earliest_ms, change->since_ms);
        }
    }
    return ended;
}
