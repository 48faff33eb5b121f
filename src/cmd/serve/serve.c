/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extender's life: open the cluster, listen, read, serve, drain.
 *
 * Threads: this one takes all signals and waits for them; housekeeping settles what the watch
 * leaves open; listeners and feeds bring their own. The listeners are up before the cluster has
 * been read, so that probes get an answer; verbs turn calls away until then.
 */
#include "core/fail.h"
#include "audit/auditor.h"
#include "verbs/extender.h"
#include "base/log.h"
#include "record/recorder.h"
#include "base/version.h"
#include "cmd/backend.h"
#include "options/command.h"
#include "cmd/keys.h"
#include "cmd/serve/evicting.h"
#include "cmd/serve/housekeeping.h"
#include "cmd/serve/listening.h"
#include "cmd/serve/replica.h"
#include "cmd/serve/successor.h"
#include "verbs/outlook.h"
#include "evict/eviction.h"
#include "reclaim/reclaimer.h"
#include "quota/quotas_section.h"
#include "quota/elastic/reclaim_section.h"
#include "record/record_section.h"
#include "audit/audit_section.h"
#include "inspect/metrics_section.h"
#include "base/log_section.h"
#include "verbs/placing_section.h"
#include "verbs/bind/binding_section.h"
#include "verbs/wake_section.h"
#include "kube/lease/election_section.h"
#include "http/listeners_section.h"
#include "options/cluster_section.h"
#include "options/process_section.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPS_DRAIN_MS 1000
#define HAND_OVER_MS 1000 /* in which most Bindings end; nobody serves meanwhile */

struct serve {
    const struct config *started; /* what runs; borrowed */
    struct config *current;       /* what SIGHUP made of it; NULL before the first */
    const struct config_inputs *inputs;
    struct store *store;
    struct recorder *recorder; /* NULL: nothing is recorded */
    struct backend *backend;
    struct keys *keys;             /* NULL: nothing is sealed */
    struct replica *replica;       /* NULL: the only one */
    struct succession *succession; /* of the only one; NULL: it is no pod's */
    struct api_client *asking;     /* its own */
    struct extender extender;
    struct auditor *auditor;
    struct outlook *outlook;
    struct reclaimer *reclaimer; /* NULL: nothing that is lent is taken back */
    struct evicting *evicting;
    struct claim_config_map claims;
    struct listening listening;
    struct housekeeping *housekeeping;
};

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* --- changing the configuration -------------------------------------------------------------- */

static void apply_live(struct serve *serve, const struct config *config)
{
    const struct log_settings *log_options = config_section(config, log);

    log_configure((enum log_level)log_options->level, (enum log_format)log_options->format);
    store_set_policy(serve->store, &policies[config_section(config, placing)->policy],
                     config_section(config, binding)->patience_ms);
}

static void reload(struct serve *serve)
{
    g_autoptr(GError) failure = NULL;
    listening_refresh(&serve->listening);
    struct config *fresh = config_load(serve->inputs, &failure);
    if (!fresh) {
        log_event(LOG_LEVEL_ERROR, "configuration not reloaded", LOG_TEXT("why", failure->message));
        return;
    }
    const struct config *live = serve->current ? serve->current : serve->started;
    apply_live(serve, fresh);
    unsigned changed = 0, restart = 0;
    options_each (option) {
        bool is_live = option->flags & OPTION_LIVE;
        g_autofree char *before = option_format(option, is_live ? live : serve->started);
        g_autofree char *after = option_format(option, fresh);
        if (strcmp(before, after) == 0)
            continue;
        changed += is_live;
        restart += !is_live;
        log_event(is_live ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
                  is_live ? "option changed" : "option needs a restart",
                  LOG_TEXT("option", option->name), LOG_TEXT("from", before),
                  LOG_TEXT("to", after));
    }
    log_event(LOG_LEVEL_INFO, "configuration reloaded", LOG_NUMBER("changed", changed),
              LOG_NUMBER("need_restart", restart));
    config_free(serve->current);
    serve->current = fresh;
}

/* --- signals ---------------------------------------------------------------------------------- */

static const int handled_signals[] = {SIGTERM, SIGINT, SIGHUP};

static sigset_t block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(handled_signals); i++)
        sigaddset(&set, handled_signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return set;
}

static void exit_at_once(int number)
{
    _exit(EXIT_FAILED);
}

/* From here on another SIGTERM or SIGINT does not wait for anything. */
static void stop_waiting_for_signals(void)
{
    struct sigaction at_once = {.sa_handler = exit_at_once};
    sigset_t set;
    sigemptyset(&set);
    sigaction(SIGTERM, &at_once, NULL);
    sigaction(SIGINT, &at_once, NULL);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Returns the signal that asks for the end. */
static int wait_for_the_end(struct serve *serve, const sigset_t *signals)
{
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGHUP)
            reload(serve);
        else if (number > 0)
            return number;
    }
}

/* --- all of it ---------------------------------------------------------------------------------
 */

/* What decisions depend on, as `gpuledger replay` reads it. */
static char *options_text(const struct config *config)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    options_each (option) {
        if (!option_section(option)->recorded || !(option->commands & COMMAND_SERVE))
            continue;
        g_autofree char *value = option_format(option, config);
        json_key_string(&writer, option->name, value);
    }
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

static bool start_recorder(struct serve *serve, GError **error)
{
    const struct config *config = serve->started;
    const struct record_settings *record_options = config_section(config, record);

    if (!*record_options->file)
        return true;
    g_autofree char *text = options_text(config);
    serve->recorder = recorder_new(&(struct recorder_options){.path = record_options->file,
                                                              .file_max = record_options->file_max,
                                                              .options = text},
                                   error);
    if (!serve->recorder)
        return fail_within(error, "option '--record': ");
    recorder_observe(serve->recorder, serve->store);
    return true;
}

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    return eviction_send(data, evictee, try, error);
}

static bool start_reclaimer(struct serve *serve, GError **error)
{
    const struct config *config = serve->started;
    const struct reclaim_settings *reclaim_options = config_section(config, reclaim);

    if (!reclaim_options->on ||
        *config_section(config, cluster)->snapshot) /* nobody can be evicted from a saved cluster */
        return true;
    if (!config_section(config, quotas)->elastic)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "option '--reclaim': without --elastic-quotas nothing is lent; give both");
    struct api_client *client = evicting_client(serve->evicting);
    serve->claims = (struct claim_config_map){client, api_client_config(client)->ns};
    serve->reclaimer = reclaimer_new(&(struct reclaimer_args){
        .store = serve->store,
        .cluster = evicting_cluster(serve->evicting),
        .files = &claim_config_map_files,
        .files_data = &serve->claims,
        .leadership = serve->extender.leadership,
        .denials = serve->extender.denials,
        .permits = evicting_permits(serve->evicting),
        .evict = evict,
        .data = evicting_client(serve->evicting),
        .options = {.delay_ms = reclaim_options->delay_ms,
                    .at_once = reclaim_options->at_once,
                    .per_minute = reclaim_options->per_minute},
    });
    return reclaimer_start(serve->reclaimer, error);
}

static bool start_evicting(struct serve *serve, GError **error)
{
    const struct backend_evicting with = {.client = evicting_client(serve->evicting),
                                          .cluster = evicting_cluster(serve->evicting),
                                          .permits = evicting_permits(serve->evicting),
                                          .leadership = serve->extender.leadership};
    return backend_switch_nodes(serve->backend, &with, error) &&
           backend_end_half_groups(serve->backend, &with, error) &&
           backend_carry_out_plans(serve->backend, &with, error) && start_reclaimer(serve, error);
}

/* Whatever they wait for. What they have begun is left to the replica that serves next. */
static void stop_evicting(struct serve *serve)
{
    evicting_abort(serve->evicting);
    g_clear_pointer(&serve->reclaimer, reclaimer_free);
    backend_stop_evicting(serve->backend);
}

static bool open_succession(struct serve *serve, const struct config *config, GError **error)
{
    const struct election_settings *election = config_section(config, election);

    if (!*election->pod_name || *config_section(config, cluster)->snapshot)
        return true;
    serve->asking = backend_new_client(serve->backend, error);
    if (serve->asking)
        serve->succession = successor_new(serve->asking, election->ns, election->pod_name, error);
    return serve->succession;
}

static bool listen_all(struct serve *serve, GError **error)
{
    const struct metrics_settings *metrics = config_section(serve->started, metrics);
    const struct operations operations = {
        .extender = &serve->extender,
        .snapshot = backend_hooks(serve->backend),
        .replica = replica_hooks(serve->replica),
        .auditor = serve->auditor,
        .permits = evicting_permits(serve->evicting),
        .pod_metrics = metrics->pods,
        .card_metrics_max = metrics->cards_max,
    };

    return listening_open(&serve->listening, serve->started, &serve->extender, &operations, error);
}

static bool open_all(struct serve *serve, GError **error)
{
    const struct config *config = serve->started;
    const struct listeners_settings *listeners = config_section(config, listeners);
    const struct binding_settings *binding = config_section(config, binding);
    const struct cluster_settings *cluster_options = config_section(config, cluster);
    struct store_options store_options = backend_store_options(config);
    serve->keys = keys_new(config);
    store_options.seals = keys_seals(serve->keys);
    serve->store = store_new(&store_options);
    if (!start_recorder(serve, error) || !keys_open(serve->keys, config, NULL, error))
        return false;
    serve->backend = backend_open(config, serve->store, error);
    if (!serve->backend)
        return false;
    serve->evicting = evicting_start(config, serve->backend, error);
    if (!serve->evicting)
        return false;
    if (config_section(config, election)->on) {
        serve->replica = replica_start(config, serve->store, serve->backend, error);
        if (!serve->replica)
            return false;
    } else if (!open_succession(serve, config, error)) {
        return false;
    }
    serve->extender = (struct extender){
        .store = serve->store,
        .cluster = backend_cluster(serve->backend),
        .leadership = replica_leadership(serve->replica),
        .journal = replica_journal(serve->replica),
        .succession = serve->succession,
        .shape = (enum prioritize_shape)config_section(config, placing)->shape,
        .admits = listeners->admission,
        .bind_timeout_ms = binding->timeout_ms,
        .waiters = {.max = (unsigned)MAX(listeners->max_connections / 2, 1)},
        .wake = config_section(config, wake)->on ? wake_new() : NULL,
        .denials = denials_new(binding->scheduler_names, binding->trusts_filter),
    };
    const char *version = version_text, *commit = version_commit;
    log_event(LOG_LEVEL_INFO, "starting", LOG_TEXT("version", version), LOG_TEXT("commit", commit),
              LOG_TEXT("cluster", serve->extender.cluster->ops->name),
              LOG_TEXT("at", backend_title(serve->backend)));
    serve->auditor = auditor_start(
        &serve->extender,
        &(struct auditor_options){.interval_ms = config_section(config, audit)->interval_ms},
        error);
    if (!*cluster_options->snapshot) /* where nothing changes but by calls */
        serve->outlook = outlook_start(serve->store, error);
    return serve->auditor && (serve->outlook || *cluster_options->snapshot) &&
           listen_all(serve, error) && keys_open(serve->keys, config, serve->backend, error) &&
           (serve->housekeeping = housekeeping_start(&serve->extender, serve->keys, error)) &&
           backend_start(serve->backend, error) &&
           backend_answer_kueue(serve->backend, serve->extender.leadership, error) &&
           backend_ask_usage(serve->backend, error) && start_evicting(serve, error);
}

static void close_all(struct serve *serve)
{
    listening_close(&serve->listening);
    housekeeping_free(serve->housekeeping);
    reclaimer_free(serve->reclaimer);
    auditor_free(serve->auditor);
    outlook_free(serve->outlook);
    replica_free(serve->replica);
    successor_free(serve->succession);
    if (serve->asking)
        api_client_free(serve->asking);
    if (serve->backend)
        backend_stop_evicting(serve->backend);
    evicting_free(serve->evicting);
    backend_free(serve->backend);
    wake_free(serve->extender.wake);
    denials_free(serve->extender.denials);
    recorder_free(serve->recorder);
    store_free(serve->store);
    keys_free(serve->keys);
    config_free(serve->current);
}

/* Binds that wait for something look up, and leave the pod to another replica. */
static void hurry_binds(struct serve *serve)
{
    store_lock(serve->store);
    store_notify_all(serve->store);
    store_unlock(serve->store);
}

/* Of several replicas, another one can take over at once; from here on this one closes each
 * connection with its answer, until its callers have been led to the other. What is still under way
 * after a moment is in the journal that goes with the Lease. */
static void hand_over(struct serve *serve)
{
    if (!serve->replica)
        return;
    g_atomic_int_set(&serve->extender.draining, 1);
    hurry_binds(serve);
    server_await_idle(serve->listening.scheduler, HAND_OVER_MS);
    replica_stop(serve->replica);
}

/* A Service leads to pods, which have this variable, and to none that serves a saved cluster. With an
 * option somebody knows it better. */
static bool is_behind_service(const struct config *config)
{
    if (config_has_given(config, "shutdown-delay") || config_section(config, election)->on)
        return true;
    return !*config_section(config, cluster)->snapshot && g_getenv("KUBERNETES_SERVICE_HOST");
}

/* Whoever calls through a Service has been sent here until a moment ago, and is still: a process that
 * has gone takes the pod's address along, and a connection to it neither comes about nor fails. So
 * readiness fails, and calls are answered as before until nobody is sent here any more, but that without a
 * Lease no Binding is sent once a successor is there. A terminal's
 * SIGINT waits for no Service. Ended by another signal, see stop_waiting_for_signals. */
static void linger(struct serve *serve, const struct config *config, int signal_number)
{
    const struct process_settings *process = config_section(config, process);

    g_atomic_int_set(&serve->extender.leaving, 1);
    if (signal_number != SIGTERM || process->shutdown_delay_ms == 0 || !is_behind_service(config))
        return;
    int64_t until_ms = now_ms() + process->shutdown_delay_ms;
    log_event(LOG_LEVEL_INFO, "leaving", LOG_TEXT("signal", strsignal(signal_number)),
              LOG_NUMBER("ms", process->shutdown_delay_ms));
    hand_over(serve);
    while (now_ms() < until_ms)
        g_usleep((gulong)MAX(until_ms - now_ms(), 0) * 1000);
}

/* The probes go on being answered. The Lease goes last, unless it has gone: what is still under way
 * is in the journal that goes with it. */
static enum exit_code drain(struct serve *serve, const struct config *config, int signal_number)
{
    g_autoptr(GError) failure = NULL;
    int64_t start_ms = now_ms();
    g_atomic_int_set(&serve->extender.draining, 1);
    log_event(LOG_LEVEL_INFO, "draining", LOG_TEXT("signal", strsignal(signal_number)));
    hurry_binds(serve);
    bool drained =
        server_drain(serve->listening.scheduler, config_section(config, process)->drain_timeout_ms);
    replica_stop(serve->replica);
    if (serve->listening.operations)
        server_drain(serve->listening.operations, OPS_DRAIN_MS);
    if (!backend_stop(serve->backend, &failure)) {
        complain("%s", failure->message);
        drained = false;
    }
    log_event(drained ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
              drained ? "stopped" : "stopped with calls under way",
              LOG_NUMBER("ms", now_ms() - start_ms));
    return drained ? EXIT_OK : EXIT_FAILED;
}

static enum exit_code print_config(const struct config *config)
{
    g_autoptr(GString) text = g_string_new(NULL);
    config_print(config, COMMAND_SERVE, text);
    fputs(text->str, stdout);
    return EXIT_OK;
}

static enum exit_code print_schema(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    config_schema(COMMAND_SERVE, text);
    puts(text->str);
    return EXIT_OK;
}

enum exit_code serve_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct process_settings *process = config_section(config, process);
    const struct log_settings *log_options = config_section(config, log);

    if (process->print_config)
        return print_config(config);
    if (process->print_schema)
        return print_schema();
    sigset_t signals = block_signals();
    struct serve serve = {.started = config, .inputs = inputs};
    g_autoptr(GError) failure = NULL;
    log_configure((enum log_level)log_options->level, (enum log_format)log_options->format);
    for (guint i = 0; i < config->warnings->len; i++)
        log_event(LOG_LEVEL_WARN, "ignored", LOG_TEXT("what", config->warnings->pdata[i]));
    if (!open_all(&serve, &failure)) {
        const enum exit_code misuse = complain_of(failure);
        close_all(&serve);
        return misuse;
    }
    int signal_number = wait_for_the_end(&serve, &signals);
    stop_waiting_for_signals();
    config = serve.current ? serve.current : config;
    stop_evicting(&serve);
    linger(&serve, config, signal_number);
    enum exit_code code = drain(&serve, config, signal_number);
    /* Waiting for what did not end in time is what the time limit is there to prevent. */
    if (code != EXIT_OK)
        _exit(code);
    close_all(&serve);
    return code;
}
