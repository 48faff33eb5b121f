/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that leave. Time is counted in mean lifetimes. */
#include "simulate/memory_cluster.h"
#include "simulate/simulation_gangs.h"
#include "simulate/simulation_state.h"

#define POINTS_PER_LIFETIME 20
#define TRY_MS 20000 /* kube-scheduler asks again about who has found no room */
/* When the first pod comes: any time that is long ago, so that runs of one seed are equal. */
#define BEGIN_MS 1000000
#define BEGIN_NS INT64_C(1700000000000000000)

/* What is counted after the first lifetime, in which the cluster settles. */
struct tally {
    GSequence *departures; /* struct departure, by time */
    double since, used_time, asked, refused, part_used, untouched;
    unsigned looks;
    double tried; /* when groups that wait were asked about last */
};

static void departure_free(gpointer data)
{
    struct departure *departure = data;

    g_free(departure->ns);
    g_free(departure->name);
    g_free(departure);
}

static void depart(struct simulation *simulation, const struct departure *departure)
{
    memory_cluster_remove(simulation->cluster, departure->ns, departure->name);
    scheduler_model_give(simulation->model, departure->node, departure->of->needs);
    simulation_recount(simulation, departure->node);
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

/* Nothing else knows a time of its own. */
static void set_time(struct simulation *simulation, double x)
{
    const int64_t ms = (int64_t)(x * (double)simulation->options->lifetime_ms);

    if (!simulation->options->gangs)
        return;
    simulation->moment =
        (struct moment){.now_ms = BEGIN_MS + ms, .now_ns = BEGIN_NS + ms * 1000000};
    store_set_moment(simulation->store, &simulation->moment);
}

/* Of those that ask for so much, if `refused` or just come. */
static void note_asked(struct tally *tally, double now, double gpus, bool refused)
{
    if (now < 1)
        return;
    if (refused)
        tally->refused += gpus;
    else
        tally->asked += gpus;
}

/* A pod alone. */
static bool come_alone(struct simulation *simulation, struct tally *tally, struct kind_of_pod *kind,
                       double now, double stays, GError **error)
{
    GError *failure = NULL;
    uint32_t node;
    char *name = simulation_arrive(simulation, kind, now, &node, &failure);

    if (!name && !failure)
        name = simulation_make_room(simulation, tally->departures, kind, now, &node, &failure);
    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    note_asked(tally, now, kind->gpus, false);
    if (name)
        simulation_add_departure(tally->departures, kind, kind->manifest->ns, name, node,
                                 now + stays);
    else
        note_asked(tally, now, kind->gpus, true);
    simulation->asked += kind->gpus;
    return true;
}

static bool come_together(struct simulation *simulation, struct tally *tally,
                          struct kind_of_pod *kind, double now, double stays, GError **error)
{
    const double gpus = simulation_gang_gpus(simulation, kind);

    note_asked(tally, now, gpus, false);
    simulation->asked += gpus;
    return simulation_gang_queue(simulation, kind, now, stays, tally->departures, error);
}

static bool come(struct simulation *simulation, struct tally *tally, double now, GError **error)
{
    struct kind_of_pod *kind;

    do {
        kind = &g_array_index(simulation->kinds, struct kind_of_pod,
                              workload_draw(simulation->workload));
    } while (!simulation_gang_begins(simulation, kind));
    const double stays = workload_time(simulation->workload, 1);
    return (kind->gang ? come_together : come_alone)(simulation, tally, kind, now, stays, error);
}

/* Until then: who leaves, and whether groups that wait find room meanwhile. */
static void pass_time(struct simulation *simulation, struct tally *tally, double now)
{
    const double pause = (double)TRY_MS / (double)simulation->options->lifetime_ms;

    while (simulation->queue->len > 0 && tally->tried + pause <= now) {
        tally->tried += pause;
        let_go(simulation, tally, tally->tried);
        note_time(simulation, tally, tally->tried);
        set_time(simulation, tally->tried);
        note_asked(tally, tally->tried,
                   simulation_gangs_try(simulation, tally->tried, tally->departures), true);
    }
    if (simulation->queue->len == 0)
        tally->tried = now;
    let_go(simulation, tally, now);
    note_time(simulation, tally, now);
    set_time(simulation, now);
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

/* Of one pod, or of a whole group: cards. */
static double mean_of_arrival(const struct simulation *simulation)
{
    double gpus = 0;
    guint n = 0;

    for (guint i = 0; i < simulation->kinds->len; i++) {
        const struct kind_of_pod *kind = &g_array_index(simulation->kinds, struct kind_of_pod, i);
        gpus += kind->gpus;
        n += simulation_gang_begins(simulation, kind);
    }
    return gpus / n;
}

/* Begins with as many pods as there would be: what is left of an exponential lifetime is as long as
 * the whole. */
static bool turn_over(struct simulation *simulation, struct tally *tally, double end,
                      GError **error)
{
    const double load = simulation->gpus * (double)simulation->options->percent / 100;
    const double pause = mean_of_arrival(simulation) / load;
    double now = 0;
    int64_t looks = 0;
    bool ok = true;

    set_time(simulation, now);
    while (ok && simulation->asked < load)
        ok = !simulation_is_cancelled(simulation, error) && come(simulation, tally, 0, error);
    while (ok && (now += workload_time(simulation->workload, pause)) < end) {
        pass_time(simulation, tally, now);
        for (; looks <= now * POINTS_PER_LIFETIME; looks++)
            look_around(simulation, tally, (double)looks / POINTS_PER_LIFETIME);
        ok = !simulation_is_cancelled(simulation, error) && come(simulation, tally, now, error);
        simulation_report(simulation, (now + 1) / (end + 1));
    }
    pass_time(simulation, tally, end);
    note_asked(tally, end, simulation_gangs_give_up(simulation, tally->departures), true);
    return ok;
}

bool simulation_churn(struct simulation *simulation, GError **error)
{
    const double end = 1 + (double)simulation->options->lifetimes;
    struct tally tally = {.departures = g_sequence_new(departure_free), .since = 1};
    const bool ok = turn_over(simulation, &tally, end, error);

    g_sequence_free(tally.departures);
    if (!ok)
        return false;
    simulation->result->end = (struct simulation_point){
        .x = end,
        .allocated = tally.used_time / simulation->gpus / (end - 1),
        .part_used = tally.part_used / MAX(tally.looks, 1),
        .untouched = tally.untouched / MAX(tally.looks, 1),
    };
    simulation->result->refused = tally.asked > 0 ? tally.refused / tally.asked : 0;
    return true;
}
