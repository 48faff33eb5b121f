/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/memory_cluster.h"
#include "simulate/simulation_gangs.h"

#include <gpuledger/error.h>
#include <string.h>

struct named_node {
    const char *name;
    const struct manifest *manifest;
};

static gint compare_names(gconstpointer a, gconstpointer b)
{
    const struct named_node *left = a, *right = b;

    return strcmp(left->name, right->name);
}

/* The nodes by the names that they have in this run. */
static GArray *name_nodes(const struct scenario *scenario, uint32_t seed)
{
    const guint n = scenario->nodes->len;
    g_autofree uint32_t *names = workload_permutation(seed, n);
    GArray *nodes = g_array_sized_new(FALSE, FALSE, sizeof(struct named_node), n);

    for (guint i = 0; i < n; i++) {
        const struct manifest *named = scenario->nodes->pdata[scenario->anonymous ? names[i] : i];
        const struct named_node node = {named->name, scenario->nodes->pdata[i]};
        g_array_append_val(nodes, node);
    }
    g_array_sort(nodes, compare_names);
    return nodes;
}

static bool add_node(struct simulation *simulation, struct json_arena *arena,
                     const struct named_node *node, GError **error)
{
    GString *text = g_string_new(NULL);
    struct node_view view;

    manifest_write(node->manifest, FEED_NODES, node->name, NULL, text);
    g_ptr_array_add(simulation->node_texts, text->str);
    g_ptr_array_add(simulation->node_names, g_strdup(node->name));
    const char *json = g_string_free(text, FALSE);
    json_arena_clear(arena);
    const cJSON *object = json_parse(arena, json, strlen(json), error);
    if (!object || !node_view_decode(arena, object, &view, error))
        return false;
    scheduler_model_add_node(simulation->model, &view);
    store_apply_node(simulation->store, &view);
    return true;
}

static bool add_configmap(struct simulation *simulation, struct json_arena *arena,
                          const char *text, GError **error)
{
    struct configmap_view view;

    json_arena_clear(arena);
    const cJSON *object = json_parse(arena, text, strlen(text), error);
    if (!object || !configmap_view_decode(arena, object, &view, error))
        return false;
    store_apply_object(simulation->store, FEED_CONFIGMAPS, &view);
    return true;
}

static bool find_node(const struct simulation *simulation, const char *name, uint32_t *ret_node)
{
    for (guint i = 0; i < simulation->node_names->len; i++) {
        if (g_strcmp0(simulation->node_names->pdata[i], name) == 0) {
            *ret_node = i;
            return true;
        }
    }
    return false;
}

/* A pod that had a node before anything came. */
static bool add_bound(struct simulation *simulation, struct json_arena *arena,
                      const struct manifest *manifest, GError **error)
{
    GString *text = g_string_new(NULL);
    struct pod_view view;
    uint32_t node;

    manifest_write(manifest, FEED_PODS, NULL, NULL, text);
    json_arena_clear(arena);
    const cJSON *object = json_parse(arena, text->str, text->len, error);
    if (!object || !pod_view_decode(arena, object, &view, error)) {
        g_string_free(text, TRUE);
        return false;
    }
    if (find_node(simulation, view.node_name, &node)) {
        g_autoptr(GArray) needs = scheduler_model_needs(simulation->model, &view);
        scheduler_model_take(simulation->model, node, needs);
    }
    return memory_cluster_add(simulation->cluster, g_string_free(text, FALSE), error);
}

static bool is_possible(const struct simulation *simulation, GError **error)
{
    const struct simulation_options *options = simulation->options;
    const bool repeats = options->percent > 0;

    if (simulation->gpus > 0 && (!repeats || simulation->mean_gpus > 0))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                simulation->gpus > 0 ? "no pod asks for GPU, so that no number of them asks for "
                                       "a share of it; let each come once"
                                     : "no node of the cluster has a GPU that a dialect knows");
    return false;
}

bool simulation_fill(struct simulation *simulation, GError **error)
{
    const struct scenario *scenario = simulation->options->scenario;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GArray) nodes = name_nodes(scenario, simulation->options->seed);
    bool ok = true;

    for (int feed = 0; feed < kinds_n; feed++)
        store_list_begin(simulation->store, (enum feed)feed);
    for (guint i = 0; i < nodes->len && ok; i++)
        ok = add_node(simulation, arena, &g_array_index(nodes, struct named_node, i), error);
    for (guint i = 0; i < scenario->configmaps->len && ok; i++)
        ok = add_configmap(simulation, arena, scenario->configmaps->pdata[i], error);
    ok = ok && simulation_gangs_declare(simulation, error);
    for (guint i = 0; i < scenario->bound->len && ok; i++)
        ok = add_bound(simulation, arena, scenario->bound->pdata[i], error);
    for (int feed = 0; feed < kinds_n; feed++)
        store_list_end(simulation->store, (enum feed)feed);
    if (!ok)
        return false;
    simulation_count(simulation);
    return simulation_read_kinds(simulation, error) &&
           (!simulation->options->foreseen || simulation_foresee(simulation, error)) &&
           is_possible(simulation, error);
}
