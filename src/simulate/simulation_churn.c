/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that leave. Time is counted in mean lifetimes. */
#include "simulate/memory_cluster.h"
#include "simulate/simulation_bound.h"
#include "simulate/simulation_state.h"

#define POINTS_PER_LIFETIME 20

/* What is counted after the first lifetime, in which the cluster settles. */
struct tally {
    GSequence *departures; /* struct departure, by time */
    double end; /* of the run */
    double since, used_time, asked, refused, part_used, untouched;
    unsigned looks;
};

static void departure_free(gpointer data)
{
    struct departure *departure = data;

    g_free(departure->name);
    g_free(departure);
}

static gint compare_departures(gconstpointer a, gconstpointer b, gpointer unused)
{
    const struct departure *left = a, *right = b;

    return left->at < right->at ? -1 : left->at > right->at;
}

static void depart(struct simulation *simulation, const struct departure *departure)
{
    memory_cluster_remove(simulation->cluster, departure->of->manifest->ns, departure->name);
    scheduler_model_give(simulation->model, departure->node, departure->of->needs);
    simulation->used -= departure->gpus;
}

static void note_time(const struct simulation *simulation, struct tally *tally, double now)
{
    if (now <= MAX(tally->since, 1))
        return;
    tally->used_time += simulation->used * (now - MAX(tally->since, 1));
    tally->since = now;
}

/* All that leave until then. */
static void let_go(struct simulation *simulation, struct tally *tally, double now)
{
    GSequenceIter *first;

    while (!g_sequence_iter_is_end(first = g_sequence_get_begin_iter(tally->departures))) {
        const struct departure *departure = g_sequence_get(first);
        if (departure->at > now)
            return;
        note_time(simulation, tally, departure->at);
        depart(simulation, departure);
        g_sequence_remove(first);
    }
}

static bool come(struct simulation *simulation, struct tally *tally, double now, GError **error)
{
    struct kind_of_pod *kind = &g_array_index(simulation->kinds, struct kind_of_pod,
                                              workload_draw(simulation->workload));
    const double stays = workload_time(simulation->workload, 1);
    GError *failure = NULL;
    uint32_t node;
    char *name = simulation_arrive(simulation, kind, now, &node, &failure);

    if (!name && !failure)
        name = simulation_make_room(simulation, tally->departures, kind, now, &node, &failure);
    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    if (simulation->bound)
        simulation->came[kind - (struct kind_of_pod *)(void *)simulation->kinds->data] +=
            MAX(MIN(now + stays, tally->end) - MAX(now, 1), 0) / (tally->end - 1);
    if (now >= 1) {
        tally->asked += kind->gpus;
        tally->refused += name ? 0 : kind->gpus;
    }
    if (name) {
        struct departure *departure = g_new0(struct departure, 1);
        *departure = (struct departure){now + stays, kind->gpus, kind, name, node};
        g_sequence_insert_sorted(tally->departures, departure, compare_departures, NULL);
    }
    simulation->asked += kind->gpus;
    return true;
}

static void look_around(struct simulation *simulation, struct tally *tally, double now)
{
    const struct simulation_point point = simulation_look(simulation, now);

    g_array_append_val(simulation->result->points, point);
    if (now < 1)
        return;
    tally->part_used += point.part_used;
    tally->untouched += point.untouched;
    tally->looks++;
}

/* Begins with as many pods as there would be: what is left of an exponential lifetime is as long as
 * the whole. */
static bool turn_over(struct simulation *simulation, struct tally *tally, double end,
                      GError **error)
{
    const double load = simulation->gpus * (double)simulation->options->percent / 100;
    const double pause = simulation->mean_gpus / load;
    double now = 0;
    int64_t looks = 0;
    bool ok = true;

    while (ok && simulation->asked < load)
        ok = !simulation_is_cancelled(simulation, error) && come(simulation, tally, 0, error);
    while (ok && (now += workload_time(simulation->workload, pause)) < end) {
        let_go(simulation, tally, now);
        note_time(simulation, tally, now);
        for (; looks <= now * POINTS_PER_LIFETIME; looks++)
            look_around(simulation, tally, (double)looks / POINTS_PER_LIFETIME);
        ok = !simulation_is_cancelled(simulation, error) && come(simulation, tally, now, error);
        simulation_report(simulation, (now + 1) / (end + 1));
    }
    let_go(simulation, tally, end);
    note_time(simulation, tally, end);
    return ok;
}

bool simulation_churn(struct simulation *simulation, GError **error)
{
    const double end = 1 + (double)simulation->options->lifetimes;
    struct tally tally = {.departures = g_sequence_new(departure_free), .end = end, .since = 1};
    const bool ok = turn_over(simulation, &tally, end, error);

    g_sequence_free(tally.departures);
    if (!ok)
        return false;
    simulation->result->end = (struct simulation_point){
        .x = end,
        .allocated = tally.used_time / simulation->gpus / (end - 1),
        .part_used = tally.part_used / MAX(tally.looks, 1),
        .untouched = tally.untouched / MAX(tally.looks, 1),
        .bound = simulation->bound ? simulation_bound_for(simulation->bound, simulation->came) : 0,
    };
    simulation->result->refused = tally.asked > 0 ? tally.refused / tally.asked : 0;
    return true;
}
