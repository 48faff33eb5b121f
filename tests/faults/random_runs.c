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
#include "sim.h"
#include "truth.h"

#include "app/audit.h"
#include "app/extender.h"
#include "app/log.h"
#include "app/recorder.h"
#include "app/replay.h"
#include "app/views.h"
#include "kube/api_cluster.h"
#include "kube/reflector.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000
#define S (1000 * MS)
#define SCHEDULERS 2
#define EVENTS_PER_WORLD 12000
#define ACTIONS_PER_ROUND 400
#define QUIET_US (300 * (int64_t)S) /* whatever was in flight has landed or been given up */

/* kube-scheduler's side of one pod. */
struct attempt {
    char uid[24];
    bool binding;
    int64_t asked_us, not_before_us, backoff_us;
};

struct scheduler {
    int number;
    int64_t timeout_us; /* of its calls: then it takes them for failed, and asks again */
    struct attempt attempts[PODS];
};

static struct world {
    struct store_options options;
    struct store *store;
    struct recorder *recorder;
    struct api_client *client;
    struct cluster *cluster;
    struct extender extender;
    struct reflector *reflectors[FEED_N];
    struct preempts_feed budgets;
    struct scheduler schedulers[SCHEDULERS];
    bool paused, stopping;
} world;

static struct {
    uint64_t worlds, rounds, audits, crashes;
    uint64_t changes, filters, binds, requests; /* events, with what net.h counts */
    uint64_t granted, bound, repeated;
    uint64_t records, decisions, orphans, lessons;
    uint64_t kept; /* places that files which go on from others begin with */
} counts;
static char *token_file, *record_file, *old_record_file;

static uint64_t n_events(void)
{
    return counts.changes + counts.filters + counts.binds + counts.requests + server.n_requests +
           net_told();
}

/* --- what the program would log ------------------------------------------------------------- */

void __wrap_log_write(enum log_level level, const char *message, const struct log_field *fields,
                      size_t n_fields);

void __wrap_log_write(enum log_level level, const char *message, const struct log_field *fields,
                      size_t n_fields)
{
    g_autoptr(GString) text = g_string_new(message);

    for (size_t i = 0; i < n_fields && sim_traces(); i++) {
        if (strcmp(fields[i].key, "commit") == 0 || strcmp(fields[i].key, "file") == 0)
            continue;
        if (fields[i].text)
            g_string_append_printf(text, " %s=%s", fields[i].key, fields[i].text);
        else
            g_string_append_printf(text, " %s=%" G_GINT64_FORMAT, fields[i].key, fields[i].number);
    }
    sim_trace("log: %s", text->str);
}

/* --- kube-schedulers ------------------------------------------------------------------------ */

static char *nodes_view(void)
{
    GString *text = g_string_new(NULL);

    HOLDS(view_nodes(world.store, NULL, text), "no nodes");
    return g_string_free(text, FALSE);
}

/* Which of the nodes pass, as bits; -1: an error. */
static int call_filter(const struct pod *pod)
{
    uint32_t order[NODES];
    g_autofree char *object = server_pod_json(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    bool compares = chance_percent(10);
    g_autofree char *before = compares ? nodes_view() : NULL;
    uint64_t requests = server.n_requests;
    int passing = 0;

    chance_order(order, NODES);
    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", object);
    for (int i = 0; i < NODES; i++)
        g_string_append_printf(body, "%s\"n%u\"", i ? "," : "", order[i]);
    g_string_append(body, "]}");
    extender_filter(&world.extender, body->str, body->len, reply);
    counts.filters++;

    HOLDS(server.n_requests == requests, "filter has asked the API server");
    if (compares) {
        g_autofree char *after = nodes_view();
        HOLDS(g_str_equal(before, after), "filter has changed\n%s\nto\n%s", before, after);
    }
    cJSON *tree = cJSON_Parse(reply->str);
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error"));
    const cJSON *name;
    HOLDS(tree && error, "%s", reply->str);
    cJSON_ArrayForEach (name, cJSON_GetObjectItemCaseSensitive(tree, "NodeNames"))
        passing |= 1 << (cJSON_GetStringValue(name)[1] - '0');
    if (*error)
        passing = -1;
    sim_trace("filter %s: %x %s", pod->uid, (unsigned)passing, error);
    cJSON_Delete(tree);
    return passing;
}

/* Which of the nodes that pass it likes best has no consequence; the record tells. */
static void call_prioritize(const struct pod *pod, int passing)
{
    g_autofree char *object = server_pod_json(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const char *comma = "";

    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", object);
    for (int i = 0; i < NODES; i++) {
        if (!(passing >> i & 1))
            continue;
        g_string_append_printf(body, "%s\"n%d\"", comma, i);
        comma = ",";
    }
    g_string_append(body, "]}");
    HOLDS(extender_prioritize(&world.extender, PRIORITIZE_ALL, body->str, body->len, reply, &error),
          "%s", error->message);
    sim_trace("prioritize %s: %s", pod->uid, reply->str);
}

/* A pause that doubles, or the scheduler has gone away for a while. */
static void back_off(struct attempt *attempt)
{
    attempt->backoff_us = MIN(attempt->backoff_us * 2, 10 * S);
    attempt->not_before_us =
        sim_now_us() + (chance_percent(10) ? chance_below(300 * S) : attempt->backoff_us);
}

struct binding_call {
    struct scheduler *scheduler;
    int pod, node;
    char uid[24];
};

/* The error, "" for success. */
static char *call_bind(int i, const char *uid, int node)
{
    g_autofree char *text = g_strdup_printf("{\"PodName\":\"p%d\",\"PodNamespace\":\"ml\","
                                            "\"PodUID\":\"%s\",\"Node\":\"n%d\"}",
                                            i, uid, node);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct pod *pod = &server.pods[i];

    if (pod->exists && g_str_equal(pod->uid, uid) && store_is_synced(world.store))
        truth_note_bind(pod);
    counts.binds++;
    sim_trace("bind %s to n%d", uid, node);
    extender_bind(&world.extender, text, strlen(text), reply);
    cJSON *tree = cJSON_Parse(reply->str);
    char *error =
        g_strdup(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error")));
    HOLDS(error, "%s", reply->str);
    cJSON_Delete(tree);
    sim_trace("bind %s to n%d: '%s'", uid, node, error);
    if (!*error) {
        int bound = GPOINTER_TO_INT(g_hash_table_lookup(server.bound, uid)) - 1;
        HOLDS(bound == node, "bind says that %s is on n%d, it is on n%d", uid, node, bound);
        counts.bound++;
    }
    return error;
}

static void run_binding_call(void *data)
{
    struct binding_call *call = data;
    struct attempt *attempt = &call->scheduler->attempts[call->pod];
    g_autofree char *error = call_bind(call->pod, call->uid, call->node);

    if (g_str_equal(attempt->uid, call->uid)) {
        attempt->binding = false;
        if (*error)
            back_off(attempt);
    }
    g_free(call);
}

/* The pod's turn has come: it waits for a node, and is not being bound as far as the scheduler
 * knows. */
static bool is_due(struct scheduler *scheduler, int i)
{
    const struct pod *pod = &server.pods[i];
    struct attempt *attempt = &scheduler->attempts[i];

    if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->terminating)
        return false;
    /* Each has pods of its own; now and then one takes up another's, as after a change of leader. */
    if (i % SCHEDULERS != scheduler->number && !chance_percent(10))
        return false;
    if (!g_str_equal(attempt->uid, pod->uid)) {
        *attempt = (struct attempt){.backoff_us = S};
        memcpy(attempt->uid, pod->uid, sizeof attempt->uid);
    }
    if (attempt->binding && sim_now_us() < attempt->asked_us + scheduler->timeout_us)
        return false;
    return sim_now_us() >= attempt->not_before_us;
}

static void schedule_one(struct scheduler *scheduler, int i)
{
    struct attempt *attempt = &scheduler->attempts[i];
    struct pod *pod = &server.pods[i];
    int passing = call_filter(pod);

    if (pod->units > 0 && chance_percent(30))
        preempts_call(&world.extender, pod);
    if (passing <= 0) {
        back_off(attempt);
        return;
    }
    call_prioritize(pod, passing);
    struct binding_call *call = g_new0(struct binding_call, 1);
    *call = (struct binding_call){.scheduler = scheduler, .pod = i};
    memcpy(call->uid, pod->uid, sizeof call->uid);
    do
        call->node = (int)chance_below(NODES);
    while (!(passing >> call->node & 1));
    attempt->binding = true;
    attempt->asked_us = sim_now_us();
    sim_sleep(chance_below(5 * MS)); /* other plugins */
    sim_spawn(run_binding_call, call);
}

static void run_scheduler(void *data)
{
    struct scheduler *scheduler = data;

    while (!world.stopping) {
        uint32_t order[PODS];
        int i = 0;

        sim_sleep(chance_below(20 * MS));
        if (world.paused)
            sim_sleep(S);
        if (world.paused || sim_alive() > 60)
            continue;
        chance_order(order, PODS);
        while (i < PODS && !is_due(scheduler, (int)order[i]))
            i++;
        if (i < PODS)
            schedule_one(scheduler, (int)order[i]);
        else
            sim_sleep(chance_below(500 * MS));
    }
}

/* --- the program's housekeeping ------------------------------------------------------------- */

static void keep_house(void *data)
{
    while (!world.stopping) {
        if (store_is_synced(world.store)) {
            extender_settle(&world.extender, 5000);
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
    counts.lessons += summary->lessons;
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
    world.options = (struct store_options){.policy = any_policy(),
                                           .patience_ms = chance_between(0, 60000)};
    if (chance_percent(50)) {
        world.options.hold_ms = chance_between(1, 120000);
        world.options.n_places = chance_between(0, 6);
    }
    world.store = store_new(&world.options);
    world.recorder = recorder_new(
        &(struct recorder_options){record_file, 1 << chance_between(16, 18), "{}"}, NULL);
    HOLDS(world.recorder, "there is no record");
    store_set_recorder(world.store, world.recorder);
    world.client = api_client_new(where(), NULL);
    world.cluster = api_cluster_new(world.client);
    world.extender = (struct extender){
        .store = world.store,
        .cluster = world.cluster,
        .wake = wake_new(),
        .bind_timeout_ms = timeouts_ms[chance_below(G_N_ELEMENTS(timeouts_ms))],
    };
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        world.reflectors[feed] = reflector_start(
            world.client, world.store, (enum feed)feed,
            &(struct reflector_options){.page = chance_percent(30) ? 0 : chance_between(1, 8)},
            NULL);
    world.budgets = (struct preempts_feed){world.store, &world.stopping};
    sim_spawn(preempts_feed_budgets, &world.budgets);
    for (int i = 0; i < SCHEDULERS; i++) {
        world.schedulers[i].number = i;
        world.schedulers[i].timeout_us = world.extender.bind_timeout_ms * chance_between(500, 2000);
        sim_spawn(run_scheduler, &world.schedulers[i]);
    }
    sim_spawn(keep_house, NULL);
}

static void free_program(void)
{
    for (int feed = 0; feed < FEED_N; feed++)
        reflector_free(world.reflectors[feed]);
    wake_free(world.extender.wake);
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
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int j = 0; j < PODS; j++) {
            struct attempt *attempt = &world.schedulers[i].attempts[j];
            if (attempt->binding)
                back_off(attempt);
            attempt->binding = false;
        }
    }
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

/* Who has room gets it, and only they. */
static void check_verdicts(void)
{
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->units == 0)
            continue;
        int passing = call_filter(pod);
        bool several = pod->n_containers > 1;
        HOLDS(passing >= 0, "filter of %s", pod->uid);
        for (int node = 0; node < NODES; node++) {
            enum verdict verdict = truth_verdict(pod, node);
            bool passes = passing >> node & 1;
            bool left = !passes && world.options.hold_ms > 0;
            HOLDS(verdict == VERDICT_OPEN || passes == (verdict == VERDICT_YES) || several || left,
                  "n%d for %s: filter says %d", node, pod->uid, passes);
            HOLDS(!several || !passes, "n%d for %s with two containers", node, pod->uid);
        }
    }
}

static void bind_all(void *data)
{
    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &server.pods[i];
        if (!pod->exists || pod->node >= 0 || pod->phase != PENDING || pod->terminating)
            continue;
        int passing = call_filter(pod);
        for (int node = 0; node < NODES; node++) {
            if (!(passing >> node & 1) || (pod->units && truth_verdict(pod, node) == VERDICT_OPEN))
                continue;
            for (int times = 0; times < 2; times++) {
                g_autofree char *error = call_bind(i, pod->uid, node);
                HOLDS(!*error, "%s to n%d, which has room: %s", pod->uid, node, error);
                HOLDS(pod->node == node, "%s is not on n%d", pod->uid, node);
                counts.repeated += times > 0;
            }
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
    g_autofree char *json = nodes_view();

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
    world.paused = true;
    faults_set_trouble(0);
    let_time_pass(QUIET_US);
    check_ledger();
    run_to_end(audit);
    check_verdicts();
    run_to_end(bind_all);
    let_time_pass(S);
    check_ledger();
    world.paused = false;
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
    server.on_granted = truth_check_grant;
    happen_begin(chance_percent(50), token_file);

    world = (struct world){0};
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
           counts.requests + server.n_requests, counts.filters, counts.binds,
           counts.granted + server.n_granted, counts.bound, counts.repeated, counts.records,
           counts.decisions, preempts_n_chosen(), counts.lessons, counts.kept);
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
    chance_init("faults", 200000);
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
