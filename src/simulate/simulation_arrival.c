/* SPDX-License-Identifier: Apache-2.0 */
/* One pod of a simulation comes, and how things are after it. */
#include "simulate/memory_cluster.h"
#include "simulate/simulation_state.h"

#include <gpuledger/error.h>

#define THOUSANDTHS 1000

static void count_failure(struct simulation *simulation, const struct kind_of_pod *kind, double x,
                          const GError *failure)
{
    struct simulation_result *result = simulation->result;

    result->failed[kind->kind]++;
    if (result->first_failure < 0)
        result->first_failure = x;
    if (failure && !result->error)
        result->error = g_strdup_printf("pod %s/%s: %s", kind->manifest->ns, kind->manifest->name,
                                        failure->message);
}

/* The name that the manifest has, or the first of NAME.2, NAME.3, … that nobody else has. */
static char *name_arrival(struct simulation *simulation, struct kind_of_pod *kind)
{
    const struct manifest *manifest = kind->manifest;
    char *name = kind->times == 0 ? g_strdup(manifest->name) : NULL;

    kind->times = MAX(kind->times, 2);
    while (!name || memory_cluster_node(simulation->cluster, manifest->ns, name)) {
        g_free(name);
        name = g_strdup_printf("%s.%u", manifest->name, kind->times++);
    }
    return name;
}

/* Where node sides take their time a pod may have to wait for them: it is then asked about anew when the
 * next has been served. */
static bool run_cycle(struct simulation *simulation, const struct scheduler_pod *pod,
                      uint32_t *ret_node, int64_t *ret_ns, GError **failure, GError **error)
{
    bool bound;

    do {
        g_clear_error(failure);
        bound = scheduler_cycle_run(simulation->cycle, pod, ret_node, ret_ns, failure);
    } while (*failure && simulation->pace && pace_pass(simulation->pace, error));
    if (bound && simulation->pace && pod->filtered)
        pace_bind(simulation->pace, pod->ns, pod->name, simulation->node_names->pdata[*ret_node]);
    return bound;
}

/* What came of it. */
struct led {
    uint32_t node;
    int64_t took_ns;
    GError *failure;
};

/* Leads a pod through the verbs. NULL, perhaps with a failure of the pod: it is gone again. */
static char *lead(struct simulation *simulation, struct kind_of_pod *kind, uint32_t avoided,
                  struct led *ret_led, GError **error)
{
    const struct manifest *manifest = kind->manifest;
    g_autofree char *name = name_arrival(simulation, kind);
    const bool same = g_str_equal(name, manifest->name);
    g_autofree char *uid = same && manifest->uid
                               ? g_strdup(manifest->uid)
                               : g_strdup_printf("sim-%" G_GUINT64_FORMAT, simulation->placed + 1);
    GString *text = g_string_new(NULL);

    simulation->placed++;
    manifest_write(manifest, FEED_PODS, name, uid, text);
    const struct scheduler_pod pod = {
        .ns = manifest->ns,
        .name = name,
        .uid = uid,
        .text = text->str,
        .needs = kind->needs,
        .filtered = kind->filtered,
        .ranked = simulation->options->ranked == RANKED_ALL ||
                  (kind->filtered && simulation->options->ranked == RANKED_GPU),
        .avoided = avoided,
    };
    if (simulation->pace && !pace_arrive(simulation->pace, error)) {
        g_string_free(text, TRUE);
        return NULL;
    }
    if (!memory_cluster_add(simulation->cluster, g_string_free(text, FALSE), error))
        return NULL;
    if (run_cycle(simulation, &pod, &ret_led->node, &ret_led->took_ns, &ret_led->failure, error))
        return g_steal_pointer(&name);
    memory_cluster_remove(simulation->cluster, manifest->ns, name);
    return NULL;
}

char *simulation_place(struct simulation *simulation, struct kind_of_pod *kind, uint32_t avoided,
                       uint32_t *ret_node, GError **error)
{
    struct led led = {0};
    char *name = lead(simulation, kind, avoided, &led, error);

    g_clear_error(&led.failure);
    *ret_node = led.node;
    return name;
}

char *simulation_arrive(struct simulation *simulation, struct kind_of_pod *kind, double x,
                        uint32_t *ret_node, GError **error)
{
    struct led led = {0};
    GError *broken = NULL;

    simulation_choose(simulation);
    simulation->result->arrivals++;
    char *name = lead(simulation, kind, SIMULATION_ANYWHERE, &led, &broken);
    if (broken) {
        g_clear_error(&led.failure);
        g_free(name);
        g_propagate_error(error, broken);
        return NULL;
    }
    g_array_append_val(simulation->took_ns, led.took_ns);
    g_atomic_int_inc(simulation->options->decisions);
    if (name) {
        simulation->used += kind->gpus;
        *ret_node = led.node;
    } else {
        count_failure(simulation, kind, x, led.failure);
    }
    g_clear_error(&led.failure);
    return name;
}

bool simulation_is_cancelled(const struct simulation *simulation, GError **error)
{
    if (!g_atomic_int_get(simulation->options->cancelled))
        return false;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, "interrupted");
    return true;
}

void simulation_report(const struct simulation *simulation, double part)
{
    g_atomic_int_set(simulation->options->progress, (gint)(CLAMP(part, 0, 1) * THOUSANDTHS));
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
