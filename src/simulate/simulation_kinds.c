/* SPDX-License-Identifier: Apache-2.0 */
/* What the pods of a simulation ask for, and where they may go. */
#include "core/constraints.h"
#include "simulate/simulation_gangs.h"
#include "wire/constraints.h"

#include <string.h>

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

/* In an order of chance: the latest count most, and files are often in order of kinds. */
bool simulation_foresee(struct simulation *simulation, GError **error)
{
    const guint n = simulation->kinds->len;
    g_autofree uint32_t *order = workload_permutation(simulation->options->seed, n);
    g_autoptr(json_arena) arena = json_arena_new();
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

/* --- kinds ------------------------------------------------------------------------------------ */

struct reading {
    struct json_arena *arena;
    struct simulation *simulation;
    GPtrArray *nodes; /* struct node *, as simulation->node_names; NULL: the ledger has none */
    GHashTable *seen; /* text of a pod -> place of the first kind that has it, plus one */
};

/* A pod whose constraints cannot be read goes nowhere, and the result says so. */
static bool read_constraints(const struct reading *reading, struct pod_view *view)
{
    struct simulation_result *result = reading->simulation->result;
    g_autoptr(GError) failure = NULL;

    if (constraints_decode(reading->arena, view, &failure))
        return true;
    if (!result->error)
        result->error = g_strdup_printf("pod %s/%s: %s", view->ns, view->name, failure->message);
    return false;
}

/* Which nodes kube-scheduler does not offer to the pod for what they are: a byte of 1. NULL: it offers
 * all. */
static uint8_t *find_barred(const struct reading *reading, struct pod_view *view)
{
    const bool known = read_constraints(reading, view);
    g_autofree uint8_t *barred = g_new0(uint8_t, reading->nodes->len);
    bool any = false;

    for (guint i = 0; i < reading->nodes->len; i++) {
        const struct node *node = reading->nodes->pdata[i];
        barred[i] = !known || (node && constraints_check(view->constraints, node) != BARRIER_NONE);
        any |= barred[i];
    }
    if (!any)
        return NULL;
    g_ptr_array_add(reading->simulation->barred, barred);
    return g_steal_pointer(&barred);
}

/* All of a manifest on which it depends what the pod asks for and where it may go. */
static char *text_of(const struct manifest *manifest)
{
    return g_strjoin("\n", manifest->spec ? manifest->spec : "",
                     manifest->annotations ? manifest->annotations : "",
                     manifest->labels ? manifest->labels : "", NULL);
}

/* Pods of one controller are alike. */
static void measure(const struct reading *reading, struct pod_view *view, struct kind_of_pod *kind)
{
    GArray *kinds = reading->simulation->kinds;
    char *text = text_of(kind->manifest);
    const guint first = GPOINTER_TO_UINT(g_hash_table_lookup(reading->seen, text));

    if (first > 0) {
        const struct kind_of_pod *like = &g_array_index(kinds, struct kind_of_pod, first - 1);
        kind->barred = like->barred;
        kind->gpus = like->gpus;
        g_free(text);
        return;
    }
    g_hash_table_insert(reading->seen, text, GUINT_TO_POINTER(kinds->len + 1));
    kind->barred = find_barred(reading, view);
    if (kind->request)
        kind->gpus = occupancy_of_request(reading->nodes, kind->barred, kind->request);
}

/* One that cannot be understood is left to the verbs to refuse. */
static bool read_kind(const struct reading *reading, const struct manifest *manifest,
                      GError **error)
{
    struct simulation *simulation = reading->simulation;
    struct kind_of_pod kind = {.manifest = manifest};
    g_autoptr(GError) failure = NULL;
    struct pod_view view;

    if (!read_arrival(reading->arena, manifest, &view, error))
        return false;
    kind.request = dialect_read_request(&view, &simulation->options->dialects, &failure);
    kind.needs = scheduler_model_needs(simulation->model, &view);
    kind.filtered = kind.request || failure;
    kind.gang = simulation_gang_join(simulation, &view);
    measure(reading, &view, &kind);
    kind.kind = kind.gpus <= 0  ? POD_KIND_NO_GPU
                : kind.gpus < 1 ? POD_KIND_PART
                : kind.gpus > 1 ? POD_KIND_SEVERAL
                                : POD_KIND_ONE;
    g_array_append_val(simulation->kinds, kind);
    simulation->mean_gpus += kind.gpus / simulation->options->scenario->arrivals->len;
    return true;
}

bool simulation_read_kinds(struct simulation *simulation, GError **error)
{
    const GPtrArray *arrivals = simulation->options->scenario->arrivals;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    const struct reading reading = {arena, simulation, nodes, seen};
    bool ok = true;

    const struct ledger *ledger = store_lock(simulation->store);
    for (guint i = 0; i < simulation->node_names->len; i++)
        g_ptr_array_add(nodes, ledger_node(ledger, simulation->node_names->pdata[i]));
    for (guint i = 0; i < arrivals->len && ok; i++)
        ok = read_kind(&reading, arrivals->pdata[i], error);
    store_unlock(simulation->store);
    return ok;
}
