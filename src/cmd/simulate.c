/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "simulate": runs of policies and seeds, as many at a time as there are processors,
 * and what they came to.
 */
#include "core/fail.h"
#include "base/printable.h"
#include "base/log.h"
#include "options/command.h"
#include "options/print.h"
#include "cmd/keys.h"
#include "cmd/simulate_report.h"
#include "base/small_file.h"
#include "snapshot/snapshot_file.h"
#include "gang/gangs_section.h"
#include "dialect/dialects_section.h"
#include "verbs/placing_section.h"
#include "options/cluster_section.h"
#include "options/simulate_section.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOVES_HOUR_MAX 1000000
#define SEEDS_MAX 1000
#define PROGRESS_MS 200

/* --- what options say ------------------------------------------------------------------------- */

struct experiment {
    struct scenario *scenario;
    struct keys *keys;
    GPtrArray *policies; /* const struct policy *, borrowed */
    GArray *seeds;       /* uint32_t */
    int64_t percent;     /* 0: each pod once */
    int64_t moves;       /* 0: none */
    bool hourly;         /* so many in any hour, not for a thousand pods */
};

static void experiment_free(struct experiment *experiment)
{
    scenario_free(experiment->scenario);
    keys_free(experiment->keys);
    g_ptr_array_unref(experiment->policies);
    g_array_unref(experiment->seeds);
    g_free(experiment);
}
typedef struct experiment experiment;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(experiment, experiment_free)

static char *policy_names(void)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (const struct policy *policy = policies; policy->name; policy++)
        printable_append(names, "%s%s", names->len ? ", " : "", policy->name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static bool read_policies(const char *text, GPtrArray *found, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);

    if (g_str_equal(text, "all")) {
        for (const struct policy *policy = policies; policy->name; policy++)
            g_ptr_array_add(found, (gpointer)policy);
        return true;
    }
    for (char **name = names; *name; name++) {
        const struct policy *policy = policy_find(g_strstrip(*name));
        if (!policy || g_ptr_array_find(found, policy, NULL)) {
            g_autofree char *known = policy_names();
            return fail_with(
                error, GPULEDGER_ERROR_INVALID,
                policy ? "option '--policy': '%s' is there twice%s"
                       : "option '--policy': '%s' is not valid, expected some of %s, with "
                         "commas between",
                *name, policy ? "" : known);
        }
        g_ptr_array_add(found, (gpointer)policy);
    }
    return true;
}

static bool read_range(const char *text, uint32_t *ret_from, uint32_t *ret_to)
{
    g_auto(GStrv) ends = g_strsplit(text, "..", 3);
    guint64 from, to;

    if (!*ends || g_strv_length(ends) > 2 ||
        !g_ascii_string_to_unsigned(ends[0], 10, 0, UINT32_MAX - 1, &from, NULL) ||
        !g_ascii_string_to_unsigned(ends[1] ? ends[1] : ends[0], 10, from, UINT32_MAX - 1, &to,
                                    NULL))
        return false;
    *ret_from = (uint32_t)from;
    *ret_to = (uint32_t)to;
    return true;
}

static bool read_seeds(const char *text, GArray *seeds, GError **error)
{
    g_auto(GStrv) items = g_strsplit(text, ",", SEEDS_MAX + 1);
    uint32_t from, to;

    for (char **item = items; *item; item++) {
        if (!read_range(g_strstrip(*item), &from, &to) || to - from >= SEEDS_MAX - seeds->len)
            return fail_with(
                error, GPULEDGER_ERROR_INVALID,
                "option '--seeds': '%s' is not valid, expected numbers and ranges such as "
                "'42..51', at most %d in all",
                *item, SEEDS_MAX);
        for (uint32_t seed = from; seed <= to; seed++)
            g_array_append_val(seeds, seed);
    }
    return true;
}

static bool read_percent(const char *text, int64_t *ret_percent, GError **error)
{
    g_autofree char *digits = g_strdup(text);
    guint64 percent;

    if (g_str_equal(text, "once")) {
        *ret_percent = 0;
        return true;
    }
    if (g_str_has_suffix(digits, "%"))
        digits[strlen(digits) - 1] = '\0';
    if (!g_ascii_string_to_unsigned(digits, 10, 1, SIMULATION_PERCENT_MAX, &percent, NULL))
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "option '--arrivals': '%s' is not valid, expected 'once' or a percentage of "
            "the cluster's GPU such as '130%%', at most %d%%",
            text, SIMULATION_PERCENT_MAX);
    *ret_percent = (int64_t)percent;
    return true;
}

/* "20" or "20/h". */
static bool read_moves(const char *text, struct experiment *experiment, GError **error)
{
    g_autofree char *digits = g_strdup(text);
    guint64 moves;

    experiment->hourly = g_str_has_suffix(digits, "/h");
    if (experiment->hourly)
        digits[strlen(digits) - 2] = '\0';
    if (!g_ascii_string_to_unsigned(digits, 10, 0, experiment->hourly ? MOVES_HOUR_MAX : 1000,
                                    &moves, NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "option '--moves': '%s' is not valid, expected a number of moves for a "
                         "thousand pods, at most 1000, or for an hour, such as '20/h'",
                         text);
    experiment->moves = (int64_t)moves;
    return true;
}

/* What no option can say alone. */
static bool check(const struct config *config, const struct experiment *experiment, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    const struct cluster_settings *cluster_options = config_section(config, cluster);
    const struct gangs_settings *gangs_options = config_section(config, gangs);
    const bool trace = *simulate->trace_nodes || *simulate->trace_pods;
    const char *why = NULL;

    if (trace && (!*simulate->trace_nodes || !*simulate->trace_pods))
        why = "a trace has nodes and pods: give both '--trace-nodes' and '--trace-pods'";
    else if (trace && (*cluster_options->snapshot || *simulate->pods))
        why = "'--trace-nodes' and '--snapshot' or '--pods' are both given; keep one of them";
    else if (!trace && !*cluster_options->snapshot)
        why = "no cluster is given: name a saved one with --snapshot, or a trace with "
              "--trace-nodes and --trace-pods";
    else if (simulate->churn && experiment->percent == 0)
        why = "option '--churn' needs '--arrivals' as a percentage: pods come again and again";
    else if (experiment->moves > 0 && (!simulate->churn || simulate->pace_ms > 0))
        why = "option '--moves' is for '--churn' without '--plugin-pace'";
    else if (gangs_options->on && (experiment->moves > 0 || simulate->pace_ms > 0))
        why = "option '--gangs' is without '--moves' and '--plugin-pace'";
    else if (gangs_options->keep_room_ms > 0 && (!gangs_options->on || !simulate->churn))
        why = "option '--gang-keep-room' is for '--gangs' with '--churn': else no time passes in "
              "which "
              "groups wait";
    else if (*simulate->cluster_out &&
             (experiment->policies->len > 1 || experiment->seeds->len > 1))
        why = "option '--cluster-out' is for one cluster: give one policy and one seed";
    if (why)
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, why);
    return !why;
}

/* --- what files say --------------------------------------------------------------------------- */

static bool visit_cluster(enum feed feed, const cJSON *object, void *data, GError **error)
{
    return scenario_add(data, feed, object, false, error);
}

static bool visit_pods(enum feed feed, const cJSON *object, void *data, GError **error)
{
    const bool group = feed == FEED_POD_GROUPS || feed == FEED_NATIVE_POD_GROUPS;

    return (feed != FEED_PODS && !group) || scenario_add(data, feed, object, true, error);
}

static bool read_csv(const char *file, struct trace *trace,
                     bool (*read)(struct trace *, const char *, size_t, GError **), GError **error)
{
    size_t length;
    g_autofree char *text = small_file_read(file, TRACE_SIZE_MAX, &length, error);

    if (!text)
        return false;
    if (read(trace, text, length, error))
        return true;
    return fail_within(error, "\"%s\": ", file);
}

static bool read_trace(const struct config *config, struct scenario *scenario, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    g_autoptr(trace) trace = trace_new();

    if (!read_csv(simulate->trace_nodes, trace, trace_read_nodes, error))
        return fail_within(error, "option '--trace-nodes': ");
    if (!read_csv(simulate->trace_pods, trace, trace_read_pods, error))
        return fail_within(error, "option '--trace-pods': ");
    scenario_add_trace(scenario, trace);
    if (config_section(config, gangs)->on && scenario->groups->len > GANGS_NAMESPACE_MAX) {
        g_set_error(
            error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
            "option '--trace-pods': it has %u groups, more than the %d that a namespace may "
            "have with '--gangs'",
            scenario->groups->len, GANGS_NAMESPACE_MAX);
        return false;
    }
    return true;
}

static bool read_objects(const struct config *config, struct scenario *scenario, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);

    if (!snapshot_file_read(config_section(config, cluster)->snapshot, visit_cluster, scenario,
                            error))
        return fail_within(error, "option '--snapshot': ");
    if (!*simulate->pods)
        return true;
    g_ptr_array_set_size(scenario->arrivals, 0);
    if (snapshot_file_read(simulate->pods, visit_pods, scenario, error))
        return true;
    return fail_within(error, "option '--pods': ");
}

static bool read_scenario(const struct config *config, struct experiment *experiment, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    const bool trace = *simulate->trace_nodes;

    if (!(trace ? read_trace : read_objects)(config, experiment->scenario, error))
        return false;
    if (simulate->in_order)
        experiment->scenario->anonymous = false;
    if (experiment->scenario->arrivals->len > 0)
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     trace ? "option '--trace-pods': there are no pods in it"
                           : "no pods come: those of --snapshot all have a node; name others with "
                             "--pods");
}

/* --- runs ------------------------------------------------------------------------------------- */

struct run {
    struct simulation_options options;
    struct simulation_result *result;
    GError *failure;
    gint progress;
};

struct runs {
    struct run *items;
    guint n;
    gint decisions, cancelled;
    GMutex lock;
    GCond finished;
    guint n_finished; /* under the lock */
};

static void run_one(gpointer data, gpointer user_data)
{
    struct run *run = data;
    struct runs *runs = user_data;

    if (!simulation_run(&run->options, run->result, &run->failure))
        g_atomic_int_set(&runs->cancelled, 1);
    g_atomic_int_set(&run->progress, 1000);
    g_mutex_lock(&runs->lock);
    runs->n_finished++;
    g_cond_signal(&runs->finished);
    g_mutex_unlock(&runs->lock);
}

static void show_progress(struct runs *runs, int64_t start_us, bool over)
{
    const double took_s = (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
    double done = 0;

    for (guint i = 0; i < runs->n; i++)
        done += g_atomic_int_get(&runs->items[i].progress) / 1000.0 / runs->n;
    if (over) {
        fputs("\r\033[K", stderr);
        return;
    }
    fprintf(stderr, "\r\033[K%3.0f%%  %d pods, %.0f/s, %u of %u runs done", 100 * done,
            g_atomic_int_get(&runs->decisions), g_atomic_int_get(&runs->decisions) / took_s,
            runs->n_finished, runs->n);
    if (done > 0.01)
        fprintf(stderr, ", %.0f s left", took_s / done * (1 - done));
    fflush(stderr);
}

/* Until all have ended. */
static void wait_for_runs(struct runs *runs)
{
    const int64_t start_us = g_get_monotonic_time();
    const bool shown = isatty(STDERR_FILENO);

    g_mutex_lock(&runs->lock);
    while (runs->n_finished < runs->n) {
        g_cond_wait_until(&runs->finished, &runs->lock,
                          g_get_monotonic_time() + PROGRESS_MS * G_TIME_SPAN_MILLISECOND);
        if (shown)
            show_progress(runs, start_us, runs->n_finished == runs->n);
    }
    g_mutex_unlock(&runs->lock);
}

static struct run *new_runs(const struct config *config, const struct experiment *experiment,
                            struct simulation_result *results, struct runs *runs)
{
    const struct placing_settings *placing = config_section(config, placing);
    const struct simulate_settings *simulate = config_section(config, simulate);
    const struct gangs_settings *gangs = config_section(config, gangs);
    struct run *items = g_new0(struct run, runs->n);

    for (guint i = 0; i < runs->n; i++) {
        items[i].result = &results[i];
        items[i].options = (struct simulation_options){
            .scenario = experiment->scenario,
            .policy = experiment->policies->pdata[i / experiment->seeds->len],
            .dialects = config_section(config, dialects)->options,
            .seals = keys_seals(experiment->keys),
            .shape = (enum prioritize_shape)placing->shape,
            .ranked = (enum ranked)simulate->ranked,
            .weight = simulate->weight,
            .seed = g_array_index(experiment->seeds, uint32_t, i % experiment->seeds->len),
            .in_order = simulate->in_order,
            .foreseen = simulate->foreseen,
            .percent = experiment->percent,
            .lifetimes = simulate->churn ? simulate->lifetimes : 0,
            .moves_per_thousand = experiment->hourly ? 0 : experiment->moves,
            .moves_per_hour = experiment->hourly ? (uint32_t)experiment->moves : 0,
            .lifetime_ms = simulate->lifetime_ms,
            .pace_ms = simulate->pace_ms,
            .per_second = simulate->per_second,
            .wait_loss = placing->wait_loss,
            .gangs = gangs->on,
            .gang_room_ms = gangs->keep_room_ms,
            .keep_pods = *simulate->cluster_out,
            .progress = &items[i].progress,
            .decisions = &runs->decisions,
            .cancelled = &runs->cancelled,
        };
    }
    return items;
}

/* The first that failed by itself, rather than because another had. */
static bool collect_failure(struct runs *runs, GError **error)
{
    GError **first = NULL;

    for (guint i = 0; i < runs->n; i++) {
        GError **failure = &runs->items[i].failure;
        if (*failure && (!first || g_error_matches(*first, GPULEDGER_ERROR,
                                                   GPULEDGER_ERROR_UNAVAILABLE)))
            first = failure;
    }
    if (first)
        g_propagate_error(error, g_steal_pointer(first));
    for (guint i = 0; i < runs->n; i++)
        g_clear_error(&runs->items[i].failure);
    return !first;
}

static bool run_all(const struct config *config, const struct experiment *experiment,
                    struct simulation_result *results, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    struct runs runs = {.n = experiment->policies->len * experiment->seeds->len};
    const gint jobs = simulate->jobs > 0 ? (gint)simulate->jobs : (gint)g_get_num_processors();

    g_mutex_init(&runs.lock);
    g_cond_init(&runs.finished);
    runs.items = new_runs(config, experiment, results, &runs);
    GThreadPool *pool = g_thread_pool_new(run_one, &runs, jobs, FALSE, NULL);
    for (guint i = 0; i < runs.n; i++)
        g_thread_pool_push(pool, &runs.items[i], NULL);
    wait_for_runs(&runs);
    g_thread_pool_free(pool, FALSE, TRUE);
    const bool ok = collect_failure(&runs, error);
    g_free(runs.items);
    g_cond_clear(&runs.finished);
    g_mutex_clear(&runs.lock);
    return ok;
}

/* --- the command ------------------------------------------------------------------------------ */

static bool write_results(const struct config *config, const struct experiment *experiment,
                          const struct simulation_result *results, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    const struct simulate_report report = {
        .policies = (const struct policy *const *)experiment->policies->pdata,
        .n_policies = experiment->policies->len,
        .seeds = (const uint32_t *)(void *)experiment->seeds->data,
        .n_seeds = experiment->seeds->len,
        .results = results,
        .percent = experiment->percent,
        .lifetimes = simulate->churn ? simulate->lifetimes : 0,
        .gangs = config_section(config, gangs)->on,
        .moves = experiment->moves > 0,
        .times = simulate->times,
        .paced = simulate->pace_ms > 0,
    };
    g_autoptr(GString) text = g_string_new(NULL);

    (print_is_document(config) ? simulate_report_json : simulate_report_table)(&report, text);
    print_answer(config, text, NULL);
    if (results[0].error)
        complain("a pod that could not be placed: %s", results[0].error);
    if (!*simulate->cluster_out ||
        snapshot_file_write(simulate->cluster_out, results[0].pods, error))
        return true;
    return fail_within(error, "option '--cluster-out': ");
}

static struct experiment *read_experiment(const struct config *config, GError **error)
{
    const struct simulate_settings *simulate = config_section(config, simulate);
    g_autoptr(experiment) experiment = g_new0(struct experiment, 1);

    experiment->scenario = scenario_new();
    experiment->keys = keys_new_checking();
    experiment->policies = g_ptr_array_new();
    experiment->seeds = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    if (read_policies(simulate->policies, experiment->policies, error) &&
        read_seeds(simulate->seeds, experiment->seeds, error) &&
        read_percent(simulate->arrivals, &experiment->percent, error) &&
        read_moves(simulate->moves, experiment, error) && check(config, experiment, error))
        return g_steal_pointer(&experiment);
    return NULL;
}

enum exit_code simulate_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(experiment) experiment = read_experiment(config, &failure);

    if (!experiment) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (!keys_read(experiment->keys, config, NULL, &failure) ||
        !read_scenario(config, experiment, &failure))
        return complain_of(failure);
    const guint n = experiment->policies->len * experiment->seeds->len;
    g_autofree struct simulation_result *results = g_new0(struct simulation_result, n);
    const bool ok = run_all(config, experiment, results, &failure) &&
                    write_results(config, experiment, results, &failure);
    for (guint i = 0; i < n; i++)
        simulation_result_clear(&results[i]);
    keys_say_unchecked(experiment->keys);
    return ok ? EXIT_OK : complain_of(failure);
}
