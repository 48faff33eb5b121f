/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/scheduler_model.h"

#include <gpuledger/quantity.h>
#include <math.h>
#include <string.h>

/* Resources are columns; these three come first, extended ones as they are met. */
enum { CPU, MEMORY, PODS, FIRST_EXTENDED };
#define SCORE_MAX 100

struct need {
    guint resource;
    int64_t amount;
};

struct model_node {
    GArray *total, *used; /* int64_t by resource; total -1: enough */
};

struct scheduler_model {
    GHashTable *resources; /* name -> column */
    GPtrArray *nodes;      /* struct model_node */
};

static void node_free(gpointer data)
{
    struct model_node *node = data;

    g_array_unref(node->total);
    g_array_unref(node->used);
    g_free(node);
}

/* The column of a resource, a new one if need be. */
static guint column_of(struct scheduler_model *model, const char *name)
{
    gpointer column;

    if (g_hash_table_lookup_extended(model->resources, name, NULL, &column))
        return GPOINTER_TO_UINT(column);
    const guint next = g_hash_table_size(model->resources);
    g_hash_table_insert(model->resources, g_strdup(name), GUINT_TO_POINTER(next));
    return next;
}

struct scheduler_model *scheduler_model_new(void)
{
    static const char *const first[] = {[CPU] = "cpu", [MEMORY] = "memory", [PODS] = "pods"};
    struct scheduler_model *model = g_new0(struct scheduler_model, 1);

    model->resources = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    model->nodes = g_ptr_array_new_with_free_func(node_free);
    for (size_t i = 0; i < G_N_ELEMENTS(first); i++)
        column_of(model, first[i]);
    return model;
}

void scheduler_model_free(struct scheduler_model *model)
{
    if (!model)
        return;
    g_hash_table_unref(model->resources);
    g_ptr_array_unref(model->nodes);
    g_free(model);
}

/* What cannot be read counts as nothing, as the API server lets nothing else through. */
static int64_t read_amount(guint resource, const char *text)
{
    int64_t amount = 0;

    if (resource == CPU)
        quantity_parse_thousandths(text, &amount, NULL);
    else
        quantity_parse(text, &amount, NULL);
    return MIN(amount, INT64_MAX / 4096);
}

static int64_t amount_at(const GArray *amounts, guint resource)
{
    return resource < amounts->len ? g_array_index(amounts, int64_t, resource) : 0;
}

static int64_t *amount_of(GArray *amounts, guint resource)
{
    if (resource >= amounts->len)
        g_array_set_size(amounts, resource + 1);
    return &g_array_index(amounts, int64_t, resource);
}

void scheduler_model_add_node(struct scheduler_model *model, const struct node_view *view)
{
    struct model_node *node = g_new0(struct model_node, 1);

    node->total = g_array_new(FALSE, TRUE, sizeof(int64_t));
    node->used = g_array_new(FALSE, TRUE, sizeof(int64_t));
    for (guint i = 0; i < FIRST_EXTENDED; i++)
        *amount_of(node->total, i) = -1;
    for (size_t i = 0; i < view->allocatable.n; i++) {
        const struct string_pair *pair = &view->allocatable.items[i];
        const guint resource = column_of(model, pair->key);
        *amount_of(node->total, resource) = read_amount(resource, pair->value);
    }
    g_ptr_array_add(model->nodes, node);
}

/* --- pods ------------------------------------------------------------------------------------- */

/* What a container requests: the limit, if that is all it says. */
static GArray *read_container(struct scheduler_model *model, const struct container_view *container)
{
    const struct string_pairs *both[] = {&container->limits, &container->requests};
    GArray *amounts = g_array_new(FALSE, TRUE, sizeof(int64_t));

    for (size_t k = 0; k < G_N_ELEMENTS(both); k++) {
        for (size_t i = 0; i < both[k]->n; i++) {
            const struct string_pair *pair = &both[k]->items[i];
            const guint resource = column_of(model, pair->key);
            *amount_of(amounts, resource) = read_amount(resource, pair->value);
        }
    }
    return amounts;
}

static void add(GArray *sum, const GArray *amounts)
{
    for (guint i = 0; i < amounts->len; i++)
        *amount_of(sum, i) += amount_at(amounts, i);
}

static void cover(GArray *highest, const GArray *amounts, const GArray *beside)
{
    for (guint i = 0; i < MAX(amounts->len, beside->len); i++)
        *amount_of(highest, i) =
            MAX(amount_at(highest, i), amount_at(amounts, i) + amount_at(beside, i));
}

pod_needs *scheduler_model_needs(struct scheduler_model *model, const struct pod_view *pod)
{
    g_autoptr(GArray) running = g_array_new(FALSE, TRUE, sizeof(int64_t));
    g_autoptr(GArray) sidecars = g_array_new(FALSE, TRUE, sizeof(int64_t));
    g_autoptr(GArray) highest = g_array_new(FALSE, TRUE, sizeof(int64_t));
    g_autoptr(GArray) nothing = g_array_new(FALSE, TRUE, sizeof(int64_t));
    GArray *needs = g_array_new(FALSE, FALSE, sizeof(struct need));

    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *container = &pod->containers[i];
        g_autoptr(GArray) amounts = read_container(model, container);
        if (container->sidecar)
            add(sidecars, amounts);
        else if (container->init)
            cover(highest, amounts, sidecars);
        else
            add(running, amounts);
    }
    add(running, sidecars);
    cover(highest, running, nothing);
    *amount_of(highest, PODS) = 1;
    for (guint i = 0; i < highest->len; i++) {
        const struct need need = {i, amount_at(highest, i)};
        if (need.amount > 0)
            g_array_append_val(needs, need);
    }
    return needs;
}

static bool fits(const struct model_node *node, const pod_needs *needs)
{
    for (guint i = 0; i < needs->len; i++) {
        const struct need *need = &g_array_index(needs, struct need, i);
        const int64_t total = amount_at(node->total, need->resource);
        if (total >= 0 && need->amount > total - amount_at(node->used, need->resource))
            return false;
    }
    return true;
}

size_t scheduler_model_filter(const struct scheduler_model *model, const pod_needs *needs,
                              uint32_t *ret_nodes)
{
    size_t n = 0;

    for (guint i = 0; i < model->nodes->len; i++) {
        if (fits(model->nodes->pdata[i], needs))
            ret_nodes[n++] = i;
    }
    return n;
}

bool scheduler_model_fits(const struct scheduler_model *model, uint32_t node,
                          const pod_needs *needs)
{
    return fits(model->nodes->pdata[node], needs);
}

void scheduler_model_take(struct scheduler_model *model, uint32_t node, const pod_needs *needs)
{
    struct model_node *taken = model->nodes->pdata[node];

    for (guint i = 0; i < needs->len; i++) {
        const struct need *need = &g_array_index(needs, struct need, i);
        *amount_of(taken->used, need->resource) += need->amount;
    }
}

void scheduler_model_give(struct scheduler_model *model, uint32_t node, const pod_needs *needs)
{
    struct model_node *given = model->nodes->pdata[node];

    for (guint i = 0; i < needs->len; i++) {
        const struct need *need = &g_array_index(needs, struct need, i);
        *amount_of(given->used, need->resource) -= need->amount;
    }
}

/* --- scores ----------------------------------------------------------------------------------- */

/* The part of it in use once the pod is there; 0 where the node does not say what it has. */
static double part_used(const struct model_node *node, const pod_needs *needs, guint resource)
{
    const int64_t total = amount_at(node->total, resource);
    int64_t used = amount_at(node->used, resource);

    for (guint i = 0; i < needs->len; i++) {
        const struct need *need = &g_array_index(needs, struct need, i);
        used += need->resource == resource ? need->amount : 0;
    }
    return total > 0 ? (double)used / (double)total : 0;
}

int32_t scheduler_model_score(const struct scheduler_model *model, uint32_t node,
                              const pod_needs *needs)
{
    const struct model_node *rated = model->nodes->pdata[node];
    const double cpu = part_used(rated, needs, CPU), memory = part_used(rated, needs, MEMORY);
    const int32_t least =
        ((int32_t)((1 - cpu) * SCORE_MAX) + (int32_t)((1 - memory) * SCORE_MAX)) / 2;

    return least + (int32_t)((1 - fabs(cpu - memory) / 2) * SCORE_MAX);
}
