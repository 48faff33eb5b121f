/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program among tenants who write whatever they like (tenants.h), on nodes of every dialect, in
 * simulated time (sim.h) and with all that goes wrong on the way to the API server (faults.h). Judged
 * by true holders (holders.h, scales.h), which no annotation of a tenant's changes:
 *
 *  - after every Binding that the API server accepted: no card of it holds more than it has;
 *  - under siege by edits of running pods and by pods that never come: who asks again and again, while
 *    there is a place whatever is counted against it, is bound within a minute.
 *
 *   GPULEDGER_SEED=42 GPULEDGER_EVENTS=10000000 build/tests/faults/tenant_runs
 *
 * A failure names its seed; GPULEDGER_TRACE=FILE keeps a record. GPULEDGER_GOES_ON=N does not end at
 * the first failure but tries N worlds, each in a process of its own, and prints what each found.
 * With GPULEDGER_HONEST nobody means any harm: then a failure is the oracle's, or a plain defect.
 * GPULEDGER_WITHOUT="edit,crash" leaves out what has one of these in its name (tenants.c; "crash",
 * "hold", "seal"), to find out what a failure needs. Without seals who is edited while the program is
 * down is believed, and worlds with crashes fail.
 */
#include "faults.h"
#include "kubelets.h"
#include "net.h"
#include "program.h"
#include "scales.h"
#include "sim.h"
#include "sites.h"
#include "tenants.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000
#define S (1000 * MS)
#define EVENTS_PER_WORLD 8000
#define ACTIONS_PER_ROUND 300
#define QUIET_US (300 * (int64_t)S) /* whatever was in flight has landed or been given up */
#define FREE_MAX_US (60 * (int64_t)S)
#define SIEGE_US (200 * (int64_t)S)

static struct {
    uint64_t worlds, rounds, sieges, served, hopeless;
    uint64_t changes, requests, granted;
} counts;

static bool honest;
static char **without;
static struct chance_action actions[32], sieges[32];

static void check_grant(struct played_pod *pod)
{
    program_check_words(pod);
    scales_check_grant(pod);
}

static uint64_t n_events(void)
{
    const struct program_counts *calls = program_counts();

    return counts.changes + calls->filters + calls->binds + counts.requests + server.n_requests +
           net_told();
}

static bool is_left_out(const char *name)
{
    for (char **at = without; *at; at++) {
        if (**at && strstr(name, *at))
            return true;
    }
    return false;
}

static void choose_actions(struct chance_action *to, const struct chance_action *from)
{
    for (; from->run; from++) {
        if (!is_left_out(from->name))
            *to++ = *from;
    }
}

/* --- under siege ---------------------------------------------------------------------------- */

/* One who asks for a part of a card, as anybody would, or with the words of a running pod. */
static struct played_pod *begin_probe(void)
{
    struct played_pod *pod = played_slot(TENANTS_PODS + 8);
    int at = (int)chance_below(PLAYED_NODES);
    const struct played_node *node = &played.nodes[at];
    enum tongue tongue;

    do
        tongue = (enum tongue)chance_below(TONGUES);
    while (!(node->serves >> tongue & 1));
    played_pod_new(pod, "bank");
    tenants_draw_class(pod);
    tenants_ask(pod, tongue, node, (int)chance_between(1, 4));
    if (!honest && chance_percent(30))
        tenants_copy_words(pod);
    pod->quiet = true; /* we ask for it */
    played_announce(pod);
    net_tell();
    return pod;
}

static int open_nodes(const struct played_pod *pod)
{
    int open = 0;

    for (int node = 0; node < PLAYED_NODES; node++)
        open |= scales_open(pod, node) << node;
    return open;
}

struct probe {
    struct played_pod *pod;
    int passing;
    char *error;
};

static void ask_for(void *data)
{
    struct probe *probe = data;
    struct played_pod *pod = probe->pod;

    g_clear_pointer(&probe->error, g_free);
    probe->passing = program_filter(pod);
    for (int node = 0; probe->passing > 0 && node < PLAYED_NODES && pod->node < 0; node++) {
        if (!(probe->passing >> node & 1))
            continue;
        g_free(probe->error);
        probe->error = program_bind(pod, node);
    }
}

/* What is asked for, and each node with room as everybody sees it. */
static char *why_not(struct played_pod *pod, int open)
{
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "\n %s\n %s", played_json(pod), program_last());
    for (int node = 0; node < PLAYED_NODES; node++) {
        if (!(open >> node & 1))
            continue;
        g_autofree char *truth = scales_describe(pod, node);
        g_autofree char *ledger = program_node(node);
        g_string_append_printf(text, "\n n%d in truth:%s\n n%d in the ledger: %s", node, truth, node,
                               ledger);
    }
    return g_string_free(text, FALSE);
}

static void besiege(void)
{
    struct probe probe = {begin_probe()};
    struct played_pod *pod = probe.pod;
    int64_t begun_us = sim_now_us(), free_us = begun_us;
    bool ever = false;

    counts.sieges++;
    while (pod->node < 0 && sim_now_us() < begun_us + SIEGE_US) {
        int open = open_nodes(pod);
        if (!open)
            free_us = sim_now_us();
        ever |= open != 0;
        program_run(ask_for, &probe);
        if (pod->node >= 0)
            break;
        HOLDS(sim_now_us() <= free_us + FREE_MAX_US,
              "%s/%s (%s) has waited for %d s although nodes %x have room; filter passes %x, bind says "
              "'%s'%s", pod->ns, pod->name, pod->uid, (int)((sim_now_us() - free_us) / S),
              (unsigned)open, (unsigned)probe.passing, probe.error ? probe.error : "",
              why_not(pod, open));
        program_let_pass(chance_between(1, 3) * S);
        if (!honest && chance_percent(70)) {
            chance_act(sieges, NULL);
            counts.changes++;
            net_tell();
        }
    }
    if (pod->node >= 0)
        counts.served++;
    else if (!ever)
        counts.hopeless++;
    g_free(probe.error);
    played_delete(pod);
    net_tell();
}

static void drain(void)
{
    program_schedule(false);
    faults_set_trouble(0);
    for (int i = 0; i < 60; i++) {
        program_let_pass(QUIET_US / 60);
        while (kubelets_act())
            counts.changes++;
        net_tell();
    }
}

/* --- rounds --------------------------------------------------------------------------------- */

static void run_round(void)
{
    static const int64_t paces_us[] = {MS, 5 * MS, 20 * MS, 100 * MS, S};
    int crash_at = chance_percent(40) ? (int)chance_below(ACTIONS_PER_ROUND) : -1;
    int64_t pace_us = paces_us[chance_below(G_N_ELEMENTS(paces_us))];

    faults_set_trouble(chance_percent(40) ? 0 : (unsigned)chance_between(1, 40));
    program_schedule(true);
    for (int i = 0; i < ACTIONS_PER_ROUND; i++) {
        program_let_pass(chance_between(0, 2 * pace_us));
        int64_t version = server.version;
        if (i == crash_at && !is_left_out("crash"))
            program_crash();
        chance_act(actions, NULL);
        counts.changes += server.version != version;
        net_tell();
    }
    drain();
    if (chance_percent(20) && !is_left_out("crash")) {
        program_crash();
        program_let_pass(30 * (int64_t)S);
    }
    for (int i = 0; i < 3; i++)
        besiege();
    for (unsigned i = 0; i < played_n(); i++)
        played_at(i)->known = -1;
    counts.rounds++;
}

static void run_world(uint64_t seed, uint64_t until)
{
    /* Those that learn take their time, and choose among the same cards. */
    static const char *const policies[] = {"binpack", "spread", "first-fit"};
    static const int64_t timeouts_ms[] = {1500, 9000, 27000};
    struct program_options options = {.sealed = !is_left_out("seal")};
    uint64_t events = n_events();

    chance_restart(seed);
    sim_trace("world %" G_GUINT64_FORMAT, seed);
    sim_reset();
    net_reset();
    counts.requests += server.n_requests;
    counts.granted += server.n_granted;
    played_reset();
    played.on_granted = check_grant;
    sites_draw();
    options.policy = policies[chance_below(G_N_ELEMENTS(policies))];
    options.patience_ms = chance_between(0, 30000);
    options.bind_timeout_ms = timeouts_ms[chance_below(G_N_ELEMENTS(timeouts_ms))];
    if (chance_percent(50) && !honest && !is_left_out("hold")) {
        options.hold_ms = chance_between(1, 20000);
        options.n_places = chance_between(0, 6);
    }
    options.classed = chance_percent(60) && !is_left_out("class");
    program_start(&options);
    do
        run_round();
    while (n_events() - events < EVENTS_PER_WORLD && n_events() < until);
    program_schedule(false);
    faults_set_trouble(0);
    program_end();
    counts.worlds++;
}

static void report(void)
{
    const struct program_counts *calls = program_counts();

    printf("  %" G_GUINT64_FORMAT " worlds, %" G_GUINT64_FORMAT " rounds, %" G_GUINT64_FORMAT
           " crashes\n  events: %" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT " changes, %" G_GUINT64_FORMAT
           " told, %" G_GUINT64_FORMAT " requests, %" G_GUINT64_FORMAT " filters, %" G_GUINT64_FORMAT
           " binds)\n  %" G_GUINT64_FORMAT " Bindings weighed, %" G_GUINT64_FORMAT
           " binds successful\n  %" G_GUINT64_FORMAT " besieged, %" G_GUINT64_FORMAT
           " served, %" G_GUINT64_FORMAT " without a place all the time\n",
           counts.worlds, counts.rounds, calls->crashes, n_events(), counts.changes, net_told(),
           counts.requests + server.n_requests, calls->filters, calls->binds, scales_n_checked(),
           calls->bound, counts.sieges, counts.served, counts.hopeless);
}

/* What is wrong today: one process for each world. */
static int try_worlds(uint64_t seed, unsigned n)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < n; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            run_world(seed + i, UINT64_MAX);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    printf("  %u of %u worlds failed\n", failed, n);
    return failed > 0;
}

int main(void)
{
    const char *trace = g_getenv("GPULEDGER_TRACE"), *goes_on = g_getenv("GPULEDGER_GOES_ON");
    char *directory = g_dir_make_tmp("gpuledger-tenants-XXXXXX", NULL);
    int status = EXIT_SUCCESS;

    program_init(directory);
    chance_init("tenants", 150000);
    if (trace)
        sim_trace_to(fopen(trace, "w"));
    log_configure(trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    honest = g_getenv("GPULEDGER_HONEST") != NULL;
    uint64_t seed = chance_seed();
    without = g_strsplit(g_getenv("GPULEDGER_WITHOUT") ? g_getenv("GPULEDGER_WITHOUT") : "", ",", -1);
    choose_actions(actions, honest ? tenants_honest : tenants_actions);
    choose_actions(sieges, tenants_sieges);
    if (goes_on)
        return try_worlds(seed, (unsigned)atoi(goes_on));
    for (uint64_t i = 0; n_events() < chance_events(); i++)
        run_world(seed + i, chance_events());
    report();
    g_free(directory);
    return status;
}
