/* SPDX-License-Identifier: Apache-2.0 */
/* One pod of a simulation comes. */
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

struct led_pod *led_pod_new(struct simulation *simulation, struct kind_of_pod *kind, const char *ns,
                            GError **error)
{
    const struct simulation_options *options = simulation->options;
    struct manifest manifest = *kind->manifest;
    struct led_pod *led = g_new0(struct led_pod, 1);
    GString *text = g_string_new(NULL);

    led->name = name_arrival(simulation, kind);
    led->ns = g_strdup(ns ? ns : manifest.ns);
    const bool same = g_str_equal(led->name, manifest.name) && g_strcmp0(led->ns, manifest.ns) == 0;
    led->uid = same && manifest.uid
                   ? g_strdup(manifest.uid)
                   : g_strdup_printf("sim-%" G_GUINT64_FORMAT, simulation->placed + 1);
    simulation->placed++;
    manifest.ns = led->ns;
    manifest_write(&manifest, FEED_PODS, led->name, led->uid, text);
    led->text = g_strdup(text->str);
    led->pod = (struct scheduler_pod){
        .ns = led->ns,
        .name = led->name,
        .uid = led->uid,
        .text = led->text,
        .needs = kind->needs,
        .barred = kind->barred,
        .filtered = kind->filtered,
        .ranked =
            options->ranked == RANKED_ALL || (kind->filtered && options->ranked == RANKED_GPU),
        .avoided = SIMULATION_ANYWHERE,
    };
    if (memory_cluster_add(simulation->cluster, g_string_free(text, FALSE), error))
        return led;
    led_pod_free(led);
    return NULL;
}

void led_pod_free(struct led_pod *led)
{
    if (!led)
        return;
    g_free(led->ns);
    g_free(led->name);
    g_free(led->uid);
    g_free(led->text);
    g_free(led);
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
    if (simulation->pace && !pace_arrive(simulation->pace, error))
        return NULL;
    struct led_pod *pod = led_pod_new(simulation, kind, NULL, error);
    char *name = NULL;
    if (!pod)
        return NULL;
    pod->pod.avoided = avoided;
    if (run_cycle(simulation, &pod->pod, &ret_led->node, &ret_led->took_ns, &ret_led->failure,
                  error))
        name = g_strdup(pod->name);
    else
        memory_cluster_remove(simulation->cluster, pod->ns, pod->name);
    led_pod_free(pod);
    return name;
}

void simulation_note_led(struct simulation *simulation, const struct kind_of_pod *kind,
                         const struct led_end *end)
{
    simulation->result->arrivals++;
    g_array_append_val(simulation->took_ns, end->took_ns);
    g_atomic_int_inc(simulation->options->decisions);
    if (end->bound) {
        simulation_recount(simulation, end->node);
        return;
    }
    simulation->refused += kind->gpus;
    count_failure(simulation, kind, end->x, end->failure);
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

    char *name = lead(simulation, kind, SIMULATION_ANYWHERE, &led, &broken);
    if (broken) {
        g_clear_error(&led.failure);
        g_free(name);
        g_propagate_error(error, broken);
        return NULL;
    }
    simulation_note_led(simulation, kind,
                        &(struct led_end){x, name != NULL, led.node, led.took_ns, led.failure});
    *ret_node = led.node;
    g_clear_error(&led.failure);
    return name;
}

static gint compare_departures(gconstpointer a, gconstpointer b, gpointer unused)
{
    const struct departure *left = a, *right = b;

    return left->at < right->at ? -1 : left->at > right->at;
}

void simulation_add_departure(GSequence *departures, struct kind_of_pod *kind, const char *ns,
                              char *take_name, uint32_t node, double at)
{
    struct departure *departure = g_new0(struct departure, 1);

    *departure = (struct departure){at, kind->gpus, kind, g_strdup(ns), take_name, node};
    g_sequence_insert_sorted(departures, departure, compare_departures, NULL);
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
