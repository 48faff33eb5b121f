/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/memory_cluster.h"
#include "simulate/simulation_gangs.h"
#include "simulate/simulation_state.h"

#include <gpuledger/error.h>
#include <math.h>
#include <string.h>

#define BIND_TIMEOUT_MS 25000
#define PATIENCE_MS 10000 /* with a pace, as serve has it unless it is configured */
#define THOUSANDTHS 1000

const char *const pod_kind_names[POD_KIND_N] = {
    [POD_KIND_PART] = "part",
    [POD_KIND_ONE] = "one",
    [POD_KIND_SEVERAL] = "several",
    [POD_KIND_NO_GPU] = "noGpu",
};

/* --- pods that stay --------------------------------------------------------------------------- */

/* The mean over the arrivals at which the rounded percentage is the same. */
struct step {
    int64_t percent;
    double sum;
    unsigned n;
};

static void add_to_step(struct simulation *simulation, struct step *step, double percent)
{
    step->percent = (int64_t)round(percent);
    step->sum += simulation->used / simulation->gpus;
    step->n++;
}

static void end_step(struct simulation *simulation, struct step *step)
{
    if (step->n == 0)
        return;
    struct simulation_point point = simulation_look(simulation, (double)step->percent);
    point.allocated = step->sum / step->n;
    g_array_append_val(simulation->result->points, point);
    step->n = 0;
    step->sum = 0;
}

/* Of a group, its first pod stands for all. */
static bool begins(const struct simulation *simulation, uint32_t pod)
{
    return simulation_gang_begins(simulation,
                                  &g_array_index(simulation->kinds, struct kind_of_pod, pod));
}

static bool pick_arrival(struct simulation *simulation, uint32_t *ret_pod)
{
    const int64_t percent = simulation->options->percent;

    if (percent > 0 && simulation->asked >= simulation->gpus * (double)percent / 100)
        return false;
    while (workload_next(simulation->workload, ret_pod)) {
        if (begins(simulation, *ret_pod))
            return true;
    }
    if (percent == 0)
        return false;
    do {
        *ret_pod = workload_draw(simulation->workload);
    } while (!begins(simulation, *ret_pod));
    return true;
}

static void note_asked(struct simulation *simulation, guint pod)
{
    simulation->asked += g_array_index(simulation->kinds, struct kind_of_pod, pod).gpus;
}

static bool fill_up(struct simulation *simulation, GError **error)
{
    const double total = (double)simulation->options->percent / 100 * simulation->gpus;
    const guint n = simulation->kinds->len;
    struct step step = {0};
    GError *failure = NULL;
    uint32_t pod, node;

    while (!simulation_is_cancelled(simulation, &failure) && pick_arrival(simulation, &pod)) {
        struct kind_of_pod *kind = &g_array_index(simulation->kinds, struct kind_of_pod, pod);
        simulation_gang_each(simulation, kind, note_asked);
        const double percent = 100 * simulation->asked / simulation->gpus;
        if (step.percent != (int64_t)round(percent))
            end_step(simulation, &step);
        if (kind->gang)
            simulation_gang_arrive(simulation, kind, percent, &failure);
        else
            g_free(simulation_arrive(simulation, kind, percent, &node, &failure));
        if (failure)
            break;
        add_to_step(simulation, &step, percent);
        simulation_report(simulation, total > 0 ? simulation->asked / total
                                              : (double)simulation->result->arrivals / n);
    }
    end_step(simulation, &step);
    simulation->result->end =
        simulation_look(simulation, 100 * simulation->asked / simulation->gpus);
    simulation->result->refused =
        simulation->asked > 0 ? simulation->refused / simulation->asked : 0;
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}

/* --- the end ---------------------------------------------------------------------------------- */

static gint compare_times(gconstpointer a, gconstpointer b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static void sum_up_times(struct simulation *simulation)
{
    const guint n = simulation->took_ns->len;
    double sum = 0;

    if (n == 0)
        return;
    g_array_sort(simulation->took_ns, compare_times);
    for (guint i = 0; i < n; i++)
        sum += (double)g_array_index(simulation->took_ns, int64_t, i) / 1000;
    simulation->result->decision_mean_us = sum / n;
    const guint at_99 = (n - 1) * 99 / 100;
    simulation->result->decision_p99_us =
        (double)g_array_index(simulation->took_ns, int64_t, at_99) / 1000;
}

/* What must hold whatever came: no run is worth anything otherwise. */
static bool verify(struct simulation *simulation, unsigned overcommitted, GError **error)
{
    struct occupancy occupancy;

    const struct ledger *ledger = store_lock(simulation->store);
    const bool ok = ledger_verify(ledger, error);
    store_unlock(simulation->store);
    if (!ok)
        return false;
    simulation_occupancy(simulation, &occupancy);
    if (occupancy.overcommitted <= overcommitted)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                "%u cards hold more than they have, %u did at the beginning",
                occupancy.overcommitted, overcommitted);
    return false;
}

static void keep_pods(struct simulation *simulation)
{
    g_autoptr(GPtrArray) pods = memory_cluster_pods(simulation->cluster);
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < simulation->node_texts->len; i++)
        g_ptr_array_add(texts, g_strdup(simulation->node_texts->pdata[i]));
    for (guint i = 0; i < pods->len; i++)
        g_ptr_array_add(texts, memory_pod_format(pods->pdata[i]));
    simulation->result->pods = texts;
}

static void kind_clear(gpointer data)
{
    struct kind_of_pod *kind = data;

    g_array_unref(kind->needs);
    request_free(kind->request);
}

static int64_t bind_timeout(const struct simulation_options *options)
{
    if (options->pace_ms > 0)
        return 1;
    /* The time that is played may be ahead of the machine's. */
    return options->gangs && options->lifetimes > 0
               ? BIND_TIMEOUT_MS + 2 * (options->lifetimes + 2) * options->lifetime_ms
               : BIND_TIMEOUT_MS;
}

static void simulation_init(struct simulation *simulation, const struct simulation_options *options,
                            struct simulation_result *result)
{
    simulation->options = options;
    simulation->result = result;
    simulation->store =
        store_new(&(struct store_options){.dialects = options->dialects,
                                          .saved = true,
                                          .claims_on_nodes = true,
                                          .policy = options->policy,
                                          .patience_ms = options->pace_ms > 0 ? PATIENCE_MS : 0,
                                          .wait_loss = options->wait_loss,
                                          .seals = options->seals,
                                          .gangs = options->gangs,
                                          .gang_room_ms = options->gang_room_ms,
                                          .gangs_unhurried = true,
                                          .silent = true});
    simulation->cluster = memory_cluster_new(simulation->store);
    simulation->model = scheduler_model_new();
    simulation->workload = workload_new(options->seed, options->scenario->arrivals->len,
                                        !options->in_order);
    simulation->node_names = g_ptr_array_new_with_free_func(g_free);
    simulation->node_texts = g_ptr_array_new_with_free_func(g_free);
    simulation->gangs = simulation_gangs_new();
    simulation->queue = simulation_queue_new();
    simulation->barred = g_ptr_array_new_with_free_func(g_free);
    simulation->kinds = g_array_new(FALSE, TRUE, sizeof(struct kind_of_pod));
    g_array_set_clear_func(simulation->kinds, kind_clear);
    simulation->took_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    simulation->moved_ms = g_array_new(FALSE, FALSE, sizeof(int64_t));
    simulation->extender = (struct extender){
        .store = simulation->store,
        .cluster = simulation->cluster,
        .shape = options->shape,
        .bind_timeout_ms = bind_timeout(options),
    };
    *result = (struct simulation_result){
        .points = g_array_new(FALSE, TRUE, sizeof(struct simulation_point)),
        .first_failure = -1,
    };
}

static void simulation_clear(struct simulation *simulation)
{
    scheduler_cycle_free(simulation->cycle);
    pace_free(simulation->pace);
    g_array_unref(simulation->took_ns);
    g_array_unref(simulation->moved_ms);
    g_array_unref(simulation->kinds);
    g_ptr_array_unref(simulation->barred);
    g_free(simulation->counts);
    g_ptr_array_unref(simulation->queue);
    g_ptr_array_unref(simulation->gangs);
    g_ptr_array_unref(simulation->node_texts);
    g_ptr_array_unref(simulation->node_names);
    workload_free(simulation->workload);
    scheduler_model_free(simulation->model);
    memory_cluster_free(simulation->cluster);
    store_free(simulation->store);
}

static bool run(struct simulation *simulation, GError **error)
{
    const struct simulation_options *options = simulation->options;
    struct occupancy before;

    if (!simulation_fill(simulation, error))
        return false;
    simulation->cycle = scheduler_cycle_new(&(struct scheduler_cycle_options){
        .extender = &simulation->extender,
        .model = simulation->model,
        .nodes = (const char *const *)simulation->node_names->pdata,
        .n_nodes = simulation->node_names->len,
        .chance = simulation->workload,
        .weight = options->weight,
    });
    simulation_occupancy(simulation, &before);
    if (options->pace_ms > 0)
        simulation->pace = pace_new(simulation->store, simulation->cluster, options->pace_ms,
                                    options->per_second);
    if (!(options->lifetimes > 0 ? simulation_churn : fill_up)(simulation, error))
        return false;
    simulation->result->gpus = simulation->gpus;
    simulation->result->nodes = simulation->node_names->len;
    sum_up_times(simulation);
    if (simulation->pace)
        pace_sum_up(simulation->pace, &simulation->result->wait_median_s,
                    &simulation->result->wait_p99_s);
    if (options->keep_pods)
        keep_pods(simulation);
    return verify(simulation, before.overcommitted, error);
}

bool simulation_run(const struct simulation_options *options, struct simulation_result *ret_result,
                    GError **error)
{
    struct simulation simulation = {0};

    simulation_init(&simulation, options, ret_result);
    const bool ok = run(&simulation, error);
    simulation_clear(&simulation);
    return ok;
}

void simulation_result_clear(struct simulation_result *result)
{
    g_clear_pointer(&result->points, g_array_unref);
    g_clear_pointer(&result->pods, g_ptr_array_unref);
    g_clear_pointer(&result->error, g_free);
}

const struct simulation_point *simulation_point_at(const struct simulation_result *result,
                                                   double x)
{
    for (guint i = 0; result->points && i < result->points->len; i++) {
        const struct simulation_point *point =
            &g_array_index(result->points, struct simulation_point, i);
        if (point->x > x - 1e-9)
            return point;
    }
    return NULL;
}
