/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node whose plugin is away. kubelet goes on reporting what the plugin had registered, and none of
 * it: what is known of the node's cards is what it said before, or what a sketch says (core/ledger/sketch.h).
 */
#include <gpuledger/dialect.h>

/* kubelet says 0 of what a plugin had registered that is gone. */
static bool has_none(const struct dialect *dialect, const struct node_view *view)
{
    const char *const *resource = dialect->resources;

    for (; resource && *resource; resource++) {
        if (g_strcmp0(string_pairs_get(&view->capacity, *resource), "0") == 0)
            return true;
    }
    return false;
}

bool dialect_read_sketch(const struct node_view *view, const struct dialect_options *options,
                         struct topology *ret_topology)
{
    const struct dialect *dialect = NULL;

    /* Of several, the one whose unit the others' amounts are shown in. */
    for (size_t i = 0; dialects[i]; i++) {
        if ((!dialect || (dialects[i]->node_units && !dialect->node_units)) &&
            has_none(dialects[i], view))
            dialect = dialects[i];
    }
    struct sketch sketch = {.dialect = dialect};
    if (!dialect || (dialect->read_sketch && !dialect->read_sketch(view, options, &sketch)))
        return false;
    ret_topology->memory_unit = dialect->words.memory_unit ? dialect->words.memory_unit : 1;
    ret_topology->host = host_of_node(view);
    ret_topology->sketch = sketch;
    return true;
}

bool dialect_is_paused(const struct node *node, const struct node_view *view)
{
    for (int32_t i = 0; i < node->n_dialects && !node->sketch.dialect; i++) {
        if (has_none(node->dialects[i], view))
            return true;
    }
    return false;
}

void dialect_read_heartbeat(const struct node_view *view, struct heartbeat *ret_heartbeat,
                            char **ret_warning)
{
    *ret_heartbeat = (struct heartbeat){0};
    for (size_t i = 0; dialects[i] && !ret_heartbeat->dialect && !view->as_new; i++) {
        if (dialects[i]->read_heartbeat &&
            dialects[i]->read_heartbeat(view, &ret_heartbeat->said_ns, ret_warning))
            ret_heartbeat->dialect = dialects[i];
    }
}
