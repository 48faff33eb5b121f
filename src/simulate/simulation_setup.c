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
    store_apply_configmap(simulation->store, &view);
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

void simulation_occupancy(struct simulation *simulation, struct occupancy *ret_occupancy)
{
    struct ledger *ledger = store_lock(simulation->store);

    occupancy_read(ledger_nodes(ledger), ret_occupancy);
    store_unlock(simulation->store);
}

struct simulation_point simulation_look(struct simulation *simulation, double x)
{
    struct occupancy occupancy;

    simulation_occupancy(simulation, &occupancy);
    return (struct simulation_point){.x = x,
                                     .allocated = simulation->used / simulation->gpus,
                                     .part_used = occupancy.part_used / occupancy.gpus,
                                     .untouched = occupancy.untouched / occupancy.gpus};
}

/* The pod that comes, as the API server would show it; the view borrows from the arena. */
static bool read_arrival(struct json_arena *arena, const struct manifest *manifest,
                         struct pod_view *ret_view, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    manifest_write(manifest, FEED_PODS, NULL, "?", text);
    json_arena_clear(arena);
    const cJSON *object = json_parse(arena, text->str, text->len, error);
    return object && pod_view_decode(arena, object, ret_view, error);
}

/* The store learns of each pod, and that it has gone; of one without GPU it learns where it is bound
 * only. In an order of chance: the latest count most, and files are often in order of kinds. */
static bool foresee(struct simulation *simulation, struct json_arena *arena, GError **error)
{
    const guint n = simulation->kinds->len;
    g_autofree uint32_t *order = workload_permutation(simulation->options->seed, n);
    struct pod_view view;

    for (guint i = 0; i < n; i++) {
        const struct kind_of_pod *kind =
            &g_array_index(simulation->kinds, struct kind_of_pod, order[i]);
        if (!read_arrival(arena, kind->manifest, &view, error))
            return false;
        view.node_name = kind->filtered ? NULL : "foreseen";
        store_apply_pod(simulation->store, &view);
        store_delete_pod(simulation->store, view.uid);
    }
    return true;
}

/* What each arrival asks for; one that cannot be understood is left to the verbs to refuse. */
static bool read_kind(struct simulation *simulation, struct json_arena *arena,
                      const struct occupancy *occupancy, const struct manifest *manifest,
                      GError **error)
{
    struct kind_of_pod kind = {.manifest = manifest};
    g_autoptr(GError) failure = NULL;
    struct pod_view view;

    if (!read_arrival(arena, manifest, &view, error))
        return false;
    struct request *request = kind.request =
        dialect_read_request(&view, &simulation->options->dialects, &failure);
    kind.needs = scheduler_model_needs(simulation->model, &view);
    kind.filtered = request || failure;
    kind.gang = simulation_gang_join(simulation, &view);
    kind.gpus = request ? occupancy_of_request(occupancy, request) : 0;
    kind.kind = kind.gpus <= 0  ? POD_KIND_NO_GPU
                : kind.gpus < 1 ? POD_KIND_PART
                : kind.gpus > 1 ? POD_KIND_SEVERAL
                                : POD_KIND_ONE;
    g_array_append_val(simulation->kinds, kind);
    simulation->mean_gpus += kind.gpus / simulation->options->scenario->arrivals->len;
    return true;
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
    struct occupancy occupancy;
    bool ok = true;

    for (unsigned feed = 0; feed < FEED_N; feed++)
        store_list_begin(simulation->store, (enum feed)feed);
    for (guint i = 0; i < nodes->len && ok; i++)
        ok = add_node(simulation, arena, &g_array_index(nodes, struct named_node, i), error);
    for (guint i = 0; i < scenario->configmaps->len && ok; i++)
        ok = add_configmap(simulation, arena, scenario->configmaps->pdata[i], error);
    ok = ok && simulation_gangs_declare(simulation, error);
    for (guint i = 0; i < scenario->bound->len && ok; i++)
        ok = add_bound(simulation, arena, scenario->bound->pdata[i], error);
    for (unsigned feed = 0; feed < FEED_N; feed++)
        store_list_end(simulation->store, (enum feed)feed);
    simulation_occupancy(simulation, &occupancy);
    for (guint i = 0; i < scenario->arrivals->len && ok; i++)
        ok = read_kind(simulation, arena, &occupancy, scenario->arrivals->pdata[i], error);
    if (ok && simulation->options->foreseen)
        ok = foresee(simulation, arena, error);
    simulation->gpus = occupancy.gpus;
    simulation->asked = simulation->used = occupancy.used;
    return ok && is_possible(simulation, error);
}
