/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program, from its store to its HTTP client, against an API server where everything happens
 * and anything goes wrong, in time of its own: no socket, no clock, no thread but the simulated
 * ones (sim.h). The oracle (truth.h) checks every grant, every answer and, whenever all is quiet,
 * the whole ledger. Now and then the program is killed, wherever it is, and started again.
 *
 *   GPULEDGER_SEED=42 GPULEDGER_EVENTS=10000000 build/tests/faults/random_runs
 *
 * An event is a change of the cluster, a request that the API server gets, a change that a watch
 * tells, or a call of a verb. Each world of some thousand events has a seed of its own; a failure
 * names it, and GPULEDGER_SEED with it begins with that world. GPULEDGER_TRACE=FILE keeps a record
 * of all that was decided, the same byte for byte in every run of a seed.
 */
#include "faults.h"
#include "happen.h"
#include "net.h"
#include "preempts.h"
#include "schedulers.h"
#include "sim.h"
#include "truth.h"

#include "audit/audit.h"
#include "verbs/extender.h"
#include "base/log.h"
#include "record/recorder.h"
#include "record/replay.h"
#include "inspect/views.h"
#include "kube/api_cluster.h"
#include "kube/reflector.h"
#include "gate/node_backoff/node_backoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000
#define S (1000 * MS)
#define EVENTS_PER_WORLD 12000
#define ACTIONS_PER_ROUND 400
#define QUIET_US (300 * (int64_t)S) /* whatever was in flight has landed or been given up */

static struct world {
    struct store_options options;
    struct node_backoff_settings backoff;
    struct part_settings parts[2];
    struct store *store;
    struct recorder *recorder;
    struct api_client *client;
    struct cluster *cluster;
    struct extender extender;
    struct reflector *reflectors[FEEDS_MAX];
    struct preempts_feed budgets;
    bool stopping;
} world;

static struct {
    uint64_t worlds, rounds, audits, crashes;
    uint64_t changes, requests; /* events, with what net.h and schedulers.h count */
    uint64_t granted, repeated;
    uint64_t bound_at_once, left; /* when all is quiet */
    uint64_t records, decisions, orphans, what_was_learned;
    uint64_t kept; /* places that files which go on from others begin with */
} counts;
static char *token_file, *record_file, *old_record_file;

static uint64_t n_events(void)
{
    const struct schedulers_counts *calls = schedulers_counts();

    return counts.changes + calls->filters + calls->binds + counts.requests + server.n_requests +
           net_told();
}

/* --- the program's housekeeping ------------------------------------------------------------- */

static void keep_house(void *data)
{
    while (!world.stopping) {
        if (store_is_synced(world.store)) {
            extender_reconcile(&world.extender, 5000);
            store_end_waits(world.store);
            wake_run(world.extender.wake, world.store, world.cluster);
        }
        sim_sleep(S);
    }
}

/* --- what it records ------------------------------------------------------------------------ */

static bool use_options(void *data, const cJSON *options, struct store_options *ret_options,
                        struct extender *ret_extender, GError **error)
{
    *ret_options = world.options;
    return true;
}

static uint64_t count_kept(const char *line, const char *end)
{
    uint64_t n = 0;

    while ((line = g_strstr_len(line, end - line, "\"shares\":"))) {
        line++;
        n++;
    }
    return n;
}

/* Each decision is made once more, and comes to the same. */
static void check_record(const char *name)
{
    g_autoptr(replay) replay = replay_new(&(struct replay_options){.configure = use_options});
    g_autofree char *text = NULL;
    const struct replay_summary *summary = replay_summary(replay);
    gsize length;

    if (!g_file_get_contents(name, &text, &length, NULL))
        return;
    for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        g_autoptr(GError) error = NULL;
        HOLDS(replay_line(replay, at, (size_t)(end - at), &error), "%s: line %" G_GUINT64_FORMAT
              ": %s", name, summary->lines, error ? error->message : "");
        if (g_str_has_prefix(at, "{\"kind\":\"arrivals\""))
            counts.kept += count_kept(at, end);
        HOLDS(summary->different == 0, "record %" G_GUINT64_FORMAT ", %s:\n%s\nbecomes\n%s\n%s",
              summary->difference.number, summary->difference.what, summary->difference.recorded,
              summary->difference.replayed, summary->difference.ledger);
    }
    counts.what_was_learned += summary->what_was_learned;
    HOLDS(summary->unchecked == 0 && summary->lost == 0, "%s: incomplete", name);
    counts.orphans += summary->orphans;
    HOLDS(counts.orphans * 100 <= 100 + counts.decisions, "most of what was recorded cannot be made again");
    counts.records += summary->last - summary->first + 1;
    counts.decisions += summary->compared;
    unlink(name);
}

static void end_record(void)
{
    recorder_free(world.recorder);
    check_record(old_record_file);
    check_record(record_file);
}

/* --- the program --------------------------------------------------------------------------- */

static struct kube_config *where(void)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strdup("https://server");
    config->token_file = g_strdup(token_file);
    return config;
}

/* Mostly one that learns. */
static const struct policy *any_policy(void)
{
    static const char *const names[] = {"binpack", "spread", "first-fit", "fgd", "oc", "oc"};

    return policy_find(names[chance_below(G_N_ELEMENTS(names))]);
}

static void start_program(void)
{
    static const int64_t timeouts_ms[] = {250, 1500, 9000, 27000};

    memset(server.known, 0, sizeof server.known);
    world.options = (struct store_options){
        .policy = any_policy(), .patience_ms = chance_between(0, 60000), .gangs = server.groups};
    if (chance_percent(50)) {
        world.options.hold_ms = chance_between(1, 120000);
        world.options.n_places = chance_between(0, 6);
    }
    if (server.groups && chance_percent(50))
        world.options.gang_room_ms = chance_between(1000, 600000);
    if (chance_percent(50)) {
        const int64_t limit = chance_between(1, 4);
        world.backoff = (struct node_backoff_settings){limit, chance_between(1000, 600000)};
        world.parts[0] = (struct part_settings){&part_node_backoff, &world.backoff};
        world.options.parts = world.parts;
    }
    world.store = store_new(&world.options);
    world.recorder = recorder_new(
        &(struct recorder_options){record_file, 1 << chance_between(16, 18), "{}"}, NULL);
    HOLDS(world.recorder, "there is no record");
    recorder_observe(world.recorder, world.store);
    world.client = api_client_new(where(), NULL);
    world.cluster = api_cluster_new(world.client);
    world.extender = (struct extender){
        .store = world.store,
        .cluster = world.cluster,
        .wake = wake_new(),
        .denials = denials_new("", false),
        .bind_timeout_ms = timeouts_ms[chance_below(G_N_ELEMENTS(timeouts_ms))],
    };
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        world.reflectors[feed] = reflector_start(
            world.client, world.store, (enum feed)feed,
            &(struct reflector_options){.page = chance_percent(30) ? 0 : chance_between(1, 8)},
            NULL);
    for (int feed = FEED_POD_GROUPS; feed <= FEED_NATIVE_POD_GROUPS; feed++) { /* pods say it all */
        store_list_begin(world.store, (enum feed)feed);
        store_list_end(world.store, (enum feed)feed);
    }
    world.budgets = (struct preempts_feed){world.store, &world.stopping};
    sim_spawn(preempts_feed_budgets, &world.budgets);
    schedulers_start(&world.extender, &world.stopping);
    sim_spawn(keep_house, NULL);
}

static void free_program(void)
{
    for (int feed = 0; feed < FEED_N; feed++)
        reflector_free(world.reflectors[feed]);
    wake_free(world.extender.wake);
    denials_free(world.extender.denials);
    api_cluster_free(world.cluster);
    api_client_free(world.client);
    end_record();
    store_free(world.store);
}

/* SIGKILL, and a start. The calls that kube-schedulers were waiting for fail. */
static void crash(void)
{
    sim_trace("crash");
    net_crash();
    sim_kill();
    free_program();
    schedulers_lose_calls();
    for (int i = 0; i < PODS; i++)
        memset(server.pods[i].known, -1, sizeof server.pods[i].known);
    start_program();
    counts.crashes++;
}

/* --- rounds --------------------------------------------------------------------------------- */

static void let_time_pass(int64_t us)
{
    int64_t until_us = sim_now_us() + us;

    while (sim_now_us() < until_us)
        sim_step(until_us);
}

static void audit(void *data)
{
    struct audit_options options = {.stuck_ms = INT64_C(1) << 40, .settle_ms = 1000};
    g_autoptr(audit_report) report =
        audit_compare(world.store, world.cluster, &options, NULL);

    HOLDS(report, "the cluster could not be read");
    for (int cause = AUDIT_MISSING; cause < AUDIT_N; cause++)
        HOLDS(report->counts[cause] == 0, "audit: %s",
              audit_cause_info((enum audit_cause)cause)->code);
    counts.audits++;
    *(bool *)data = true;
}

/* Of nodes that are left out the oracle knows nothing. */
static void resume_nodes(void)
{
    for (int node = 0; node < NODES; node++) {
        g_autofree char *name = g_strdup_printf("n%d", node);
        store_order(world.store, "resume", name);
    }
}

/* Who has room gets it, and only they. */
static void check_verdicts(void)
{
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->units == 0 ||
            pod->group > 0)
            continue;
        int others_come; /* they take the pod all the same */
        int passing = schedulers_filter(pod, &others_come);
        bool several = pod->n_containers > 1;
        HOLDS(passing >= 0, "filter of %s", pod->uid);
        for (int node = 0; node < NODES; node++) {
            enum verdict verdict = truth_verdict(pod, node);
            bool passes = (passing | others_come) >> node & 1;
            bool left = !passes && world.options.hold_ms > 0;
            HOLDS(verdict == VERDICT_OPEN || passes == (verdict == VERDICT_YES) || several || left,
                  "n%d for %s: filter says %d", node, pod->uid, passes);
            HOLDS(!several || !passes, "n%d for %s with two containers", node, pod->uid);
        }
    }
}

/* Filter looks at a few of the older pods each time; bind may meet one that it has not looked at. */
static bool is_left_to_another(const char *error)
{
    return world.options.hold_ms > 0 &&
           g_str_equal(error, reason_info(REASON_EARLIER_POD)->text);
}

static void bind_now(int i, const struct pod *pod, int node)
{
    for (int times = 0; times < 2; times++) {
        g_autofree char *error = schedulers_bind(i, pod->uid, node);
        if (times == 0 && is_left_to_another(error)) {
            counts.left++;
            HOLDS(counts.left <= 10 + counts.bound_at_once / 100, "it is to be rare");
            return;
        }
        HOLDS(!*error, "%s to n%d, which has room: %s", pod->uid, node, error);
        HOLDS(pod->node == node, "%s is not on n%d", pod->uid, node);
        counts.bound_at_once += times == 0;
        counts.repeated += times > 0;
    }
}

static void bind_all(void *data)
{
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->terminating ||
            pod->group > 0)
            continue;
        int passing = schedulers_filter(pod, NULL);
        for (int node = 0; node < NODES; node++) {
            if (!(passing >> node & 1) || (pod->units && truth_verdict(pod, node) == VERDICT_OPEN))
                continue;
            /* Filter has no look at nodes for a pod without a GPU; bind does. */
            if (!pod->units && !server_shape(node)->exists)
                continue;
            bind_now(i, pod, node);
            break;
        }
    }
    *(bool *)data = true;
}

static void run_to_end(void (*run)(void *data))
{
    bool done = false;

    sim_spawn(run, &done);
    while (!done)
        HOLDS(sim_step(SIM_FOREVER), "stuck");
}

static void check_ledger(void)
{
    g_autofree char *json = schedulers_nodes();

    truth_check_nodes(json);
    for (int i = 0; i < PODS; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        const struct pod *pod = &server.pods[i];
        if (pod->exists)
            HOLDS(view_pod(world.store, "ml", pod->name, text) == truth_holds(pod), "%s: %s",
                  pod->uid, text->str);
    }
}

static void be_quiet(void)
{
    schedulers_pause(true);
    faults_set_trouble(0);
    let_time_pass(QUIET_US);
    check_ledger();
    run_to_end(audit);
    resume_nodes();
    check_verdicts();
    run_to_end(bind_all);
    let_time_pass(S);
    check_ledger();
    schedulers_pause(false);
    counts.rounds++;
    for (int i = 0; i < NODES; i++) { /* what is known to all needs no history */
        g_array_remove_range(server.shapes[i], 0, server.shapes[i]->len - 1);
        g_array_remove_range(server.health[i], 0, server.health[i]->len - 1);
    }
    for (int i = 0; i < PODS; i++)
        memset(server.pods[i].known, -1, sizeof server.pods[i].known);
}

/* SIGHUP, with another configuration. */
static void change_policy(void)
{
    const struct policy *policy = any_policy();

    store_set_policy(world.store, policy, chance_percent(50) ? 0 : chance_between(1, 60000));
}

/* As the thread that makes value models, with other things between its steps. */
static void step_outlook(void)
{
    if (chance_percent(50)) {
        store_begin_outlook(world.store, false);
        return;
    }
    store_make_outlook(world.store);
    store_swap_outlook(world.store);
}

static void run_round(void)
{
    static const int64_t paces_us[] = {200, MS, 5 * MS, 20 * MS, 100 * MS, S};
    int crash_at = chance_percent(40) ? (int)chance_below(ACTIONS_PER_ROUND) : -1;
    int64_t pace_us = paces_us[chance_below(G_N_ELEMENTS(paces_us))];

    int64_t trouble_max = chance_percent(20) ? 80 : 40;
    faults_set_trouble(chance_percent(25) ? 0 : (unsigned)chance_between(1, trouble_max));
    for (int i = 0; i < ACTIONS_PER_ROUND; i++) {
        let_time_pass(chance_between(0, 2 * pace_us));
        int64_t version = server.version;
        if (chance_percent(1))
            change_policy();
        if (chance_percent(10))
            step_outlook();
        if (i == crash_at)
            crash();
        chance_act(happenings, NULL);
        counts.changes += server.version != version;
        net_tell();
    }
    be_quiet();
}

/* --- worlds --------------------------------------------------------------------------------- */

static void begin_world(void)
{
    sim_reset();
    net_reset();
    counts.requests += server.n_requests;
    counts.granted += server.n_granted;
    server_reset();
    server.groups = chance_percent(40);
    server.on_granted = truth_check_grant;
    happen_begin(chance_percent(50), token_file);

    world = (struct world){0};
    schedulers_reset();
    start_program();
}

static void end_world(void)
{
    world.stopping = true;
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        reflector_stop(world.reflectors[feed]);
    for (int feed = 0; feed < FEED_N; feed++)
        g_clear_pointer(&world.reflectors[feed], reflector_free);
    while (sim_alive() > 1) /* the recorder's thread ends last */
        HOLDS(sim_step(SIM_FOREVER), "stuck");
    free_program();
    counts.worlds++;
}

static void run_world(uint64_t seed, uint64_t until)
{
    uint64_t events = n_events();

    chance_restart(seed);
    sim_trace("world %" G_GUINT64_FORMAT, seed);
    begin_world();
    do
        run_round();
    while (n_events() - events < EVENTS_PER_WORLD && n_events() < until);
    end_world();
}

static void report(void)
{
    const struct schedulers_counts *calls = schedulers_counts();
    uint64_t count;
    const char *name;

    printf("  %" G_GUINT64_FORMAT " worlds, %" G_GUINT64_FORMAT " times quiet, %" G_GUINT64_FORMAT
           " audits, %" G_GUINT64_FORMAT " crashes\n  events: %" G_GUINT64_FORMAT
           " (%" G_GUINT64_FORMAT " changes, %" G_GUINT64_FORMAT
           " told, %" G_GUINT64_FORMAT " requests, %" G_GUINT64_FORMAT " filters, %" G_GUINT64_FORMAT
           " binds)\n  %" G_GUINT64_FORMAT " cards granted, %" G_GUINT64_FORMAT
           " binds successful, %" G_GUINT64_FORMAT " repeated when bound\n  %" G_GUINT64_FORMAT
           " records, %" G_GUINT64_FORMAT " decisions made again, %" G_GUINT64_FORMAT
           " of preempt with victims, %" G_GUINT64_FORMAT " lessons, %" G_GUINT64_FORMAT " places kept\n  faults:",
           counts.worlds, counts.rounds, counts.audits, counts.crashes, n_events(), counts.changes,
           net_told(),
           counts.requests + server.n_requests, calls->filters, calls->binds,
           counts.granted + server.n_granted, calls->bound, counts.repeated, counts.records,
           counts.decisions, preempts_n_chosen(), counts.what_was_learned, counts.kept);
    for (unsigned i = 0; (name = faults_count(i, &count)); i++)
        printf("%s %s %" G_GUINT64_FORMAT, i ? "," : "", name, count);
    putchar('\n');
}

int main(void)
{
    const char *trace = g_getenv("GPULEDGER_TRACE");
    char *directory = g_dir_make_tmp("gpuledger-faults-XXXXXX", NULL);

    token_file = g_build_filename(directory, "token", NULL);
    record_file = g_build_filename(directory, "record", NULL);
    old_record_file = g_build_filename(directory, "record.1", NULL);
    chance_init("faults", 120000);
    if (trace)
        sim_trace_to(fopen(trace, "w"));
    log_configure(trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    uint64_t seed = chance_seed();
    for (uint64_t i = 0; n_events() < chance_events(); i++)
        run_world(seed + i, chance_events());
    report();
    unlink(token_file);
    rmdir(directory);
    g_free(token_file);
    g_free(record_file);
    g_free(old_record_file);
    g_free(directory);
    return EXIT_SUCCESS;
}
