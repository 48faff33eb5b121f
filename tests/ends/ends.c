/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that ends pods, together: --reclaim, --plans, switched nodes, --gang-strict, and kube-scheduler's preemption by
 * our answers, in a cluster where tenants, kubelets and people write what they may, calls go wrong, and the program is
 * killed or deposed at any time. At each eviction it sends the oracle (rules.h, rates.h) asks whether docs/security.md
 * allows it. Then, in some worlds, nobody changes anything any more: the ends have to come to an end as well, and nobody
 * may wait within its min for room that others only have to give back (waiting.h).
 *
 *   GPULEDGER_SEED=7 GPULEDGER_EVENTS=1000000 build/tests/ends/ends
 *
 * An event is what somebody does, a change of a pod or a Node, or a write of the program. GPULEDGER_TRACE=FILE records
 * what was decided.
 */
#include "ends.h"

#include "../faults/faults.h"
#include "../faults/net.h"
#include "../faults/sim.h"
#include "../killed/replica.h"
#include "../prop/chance.h"
#include "facts.h"
#include "pods.h"
#include "rates.h"
#include "rules.h"
#include "waiting.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

#define ACTS 250
#define RESTS_PERCENT 40 /* of the worlds: a rest takes as long as all that is done before */
#define REST_US (45 * MINUTE)
#define CALM_US (15 * MINUTE) /* of these at the end nobody ends */
#define LAG_CALM_US (8 * S)
#define LAG_US (100 * S)

struct settings settings;

static uint64_t n_events, n_worlds, n_kills;
static int64_t troubled_us; /* when something may have gone wrong last */
static bool troubled;
static int64_t killed_us;

void ends_count_event(void)
{
    n_events++;
}

static bool is_untroubled(void)
{
    return !troubled && sim_now_us() - troubled_us > 2 * MINUTE;
}

int64_t ends_lag_us(void)
{
    return is_untroubled() ? LAG_CALM_US : LAG_US;
}

/* A budget: what is guarded may not be evicted now. */
static bool forbids(const cJSON *pod)
{
    return pod_word((cJSON *)pod, "guarded") != NULL;
}

static void draw_settings(void)
{
    settings = (struct settings){
        .per_minute = (uint32_t)chance_between(3, 8),
        .for_reclaim = (uint32_t)chance_between(0, 2),
        .per_namespace = (uint32_t)chance_between(1, 4),
        .reclaim_minute = (uint32_t)chance_between(1, 6),
        .reclaim_at_once = (uint32_t)chance_between(1, 2),
        .strict_minute = (uint32_t)chance_between(2, 4),
        .plans_hour = (uint32_t)chance_between(2, 6),
        .switch_hour = chance_percent(50) ? 0 : (uint32_t)chance_between(2, 4),
        .delay_ms = chance_between(3, 30) * 1000,
        .min_runtime_ms = chance_percent(50) ? 0 : chance_between(20, 120) * 1000,
    };
    for (int i = 0; i < CAPABILITIES; i++)
        settings.modes[i] = chance_percent(85)   ? MODE_ON
                            : chance_percent(60) ? MODE_OBSERVE
                                                 : MODE_OFF;
    if (settings.modes[RECLAIM] == MODE_OFF)
        settings.for_reclaim = 0;
    /* A borrower that is more important preempts whoever is within his min, who takes it back. */
    settings.priorities = settings.modes[RECLAIM] != MODE_ON;
}

static void build(void)
{
    for (int i = 0; i < NODES_N; i++) {
        const char name[] = {'n', (char)('0' + i), '\0'};
        pods_put_node(name, CARDS_N);
    }
    for (int i = 0; i < NAMESPACES; i++) {
        const char name[] = {'t', (char)('0' + i), '\0'};
        capabilities_put_min(i, (int)chance_between(0, 3));
        facts_min(name, capabilities_min(i));
    }
}

static void start(void)
{
    cast_begin();
    replica_start();
    rates_begin();
}

static void kill_all(void)
{
    sim_trace("killed");
    n_kills++;
    replicas_kill();
    start();
}

static void set_trouble(unsigned percent)
{
    if (troubled)
        troubled_us = sim_now_us();
    troubled = percent > 0;
    faults_set_trouble(percent);
}

static void disturb(void)
{
    if (chance_percent(1))
        kill_all();
    if (chance_percent(1) && killed_us == 0) {
        sim_trace("deposed");
        replica_depose();
        rates_begin();
        killed_us = sim_now_us() + chance_between(20, 100) * S;
    }
    if (killed_us > 0 && sim_now_us() >= killed_us) {
        kill_all();
        killed_us = 0;
    }
    if (chance_percent(4))
        set_trouble(chance_percent(50) ? 0 : (unsigned)chance_between(1, 20));
}

static void let_pass(int64_t us)
{
    const int64_t until_us = sim_now_us() + us;

    while (sim_now_us() < until_us)
        sim_step(until_us);
    waiting_look(is_untroubled() && actors_stopped_us() == 0 && killed_us == 0);
}

static void begin_world(void)
{
    sim_reset();
    net_reset();
    api_reset();
    facts_reset();
    rates_reset();
    rules_reset();
    waiting_reset();
    cast_reset();
    scheduler_reset();
    actors_reset();
    troubled = false;
    troubled_us = killed_us = 0;
    faults_set_trouble(0);
    draw_settings();
    capabilities_reset();
    api.told = facts_told;
    api.changed = rules_changed;
    api.forbids = forbids;
    build();
    start();
}

/* Nobody changes anything any more: the ends come to an end. */
static void rest(void)
{
    set_trouble(0);
    if (killed_us > 0)
        kill_all();
    actors_rest();
    const int64_t end_us = sim_now_us() + REST_US;
    uint64_t n_preempted = 0;
    while (sim_now_us() < end_us) {
        let_pass(5 * S);
        if (sim_now_us() < end_us - CALM_US)
            n_preempted = scheduler_n_preempted();
    }
    /* An order 'waiting' tries a pod again after an hour. */
    const unsigned n = rates_n_ended(CALM_US), most = actors_ordered(0) ? 3 : 0;
    HOLDS(n <= most, "%u have ended in the last %d minutes", n, (int)(CALM_US / MINUTE));
    HOLDS(scheduler_n_preempted() == n_preempted, "preemption goes on");
}

static void play(void)
{
    begin_world();
    for (int i = 0; i < ACTS; i++) {
        actors_act();
        disturb();
        let_pass(chance_between(0, 12000) * MS);
    }
    n_worlds++;
    if (chance_percent(RESTS_PERCENT))
        rest();
    replicas_kill();
}

int main(int argc, char **argv)
{
    const char *trace = g_getenv("GPULEDGER_TRACE");
    int64_t most_us;

    chance_init("ends", 12000);
    if (trace)
        sim_trace_to(fopen(trace, "w"));
    log_configure(trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    sim_bear_locks(2 * MINUTE);
    net_watcher = (struct net_watcher){rules_sent, rules_heard};
    for (uint64_t seed = chance_seed(); n_events < chance_events(); seed++) {
        chance_restart(seed);
        play();
    }
    printf("%" G_GUINT64_FORMAT " worlds, %" G_GUINT64_FORMAT " events, %" G_GUINT64_FORMAT
           " kills, preempted %" G_GUINT64_FORMAT,
           n_worlds, n_events, n_kills, scheduler_n_preempted());
    for (int i = 0; i < CAPABILITIES; i++)
        printf(", %s %" G_GUINT64_FORMAT, capability_names[i], rates_n((enum capability)i));
    const uint64_t n_waited = waiting_n(&most_us);
    printf("; %" G_GUINT64_FORMAT " waited for their min, %d s at most\n", n_waited,
           (int)(most_us / S));
    return EXIT_SUCCESS;
}
