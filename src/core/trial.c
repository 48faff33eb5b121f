/* SPDX-License-Identifier: Apache-2.0 */
#include "core/trial.h"

#include "core/node.h"

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

struct trial *trial_new(const struct node *node)
{
    struct trial *trial = g_new0(struct trial, 1);
    struct node *copy = node_new(node->name);

    copy->present = node->present;
    trial->node = copy;
    trial->allocations = g_ptr_array_new_with_free_func(free_allocation);
    for (guint i = 0; i < node->allocations->len; i++) {
        struct allocation *allocation = allocation_dup(g_ptr_array_index(node->allocations, i));
        allocation->node = copy;
        g_ptr_array_add(copy->allocations, allocation);
        g_ptr_array_add(trial->allocations, allocation);
    }
    node_copy_hardware(copy, node);
    copy->host_used = node->host_used;
    copy->n_guests = node->n_guests;
    return trial;
}

void trial_free(struct trial *trial)
{
    if (!trial)
        return;
    node_free(trial->node);
    g_ptr_array_unref(trial->allocations);
    g_free(trial);
}

void trial_without(struct trial *trial, struct allocation *allocation)
{
    node_charge(trial->node, allocation, -1);
    g_ptr_array_remove_fast(trial->node->allocations, allocation);
}

void trial_with(struct trial *trial, struct allocation *allocation)
{
    g_ptr_array_add(trial->node->allocations, allocation);
    node_charge(trial->node, allocation, 1);
}

void trial_add(struct trial *trial, struct allocation *take_allocation)
{
    take_allocation->node = trial->node;
    g_ptr_array_add(trial->allocations, take_allocation);
    trial_with(trial, take_allocation);
}
