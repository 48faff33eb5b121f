/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The effective configuration of one invocation: what the table of options (options/options.h) makes
 * of the command line, the environment, the configuration file and the defaults, in that order of
 * precedence. Every value remembers where it came from.
 *
 * A struct config owns its strings. It is filled once and then only read: any thread.
 */
#include <glib.h>
#include <gpuledger/dialect.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a listener listens. */
struct address {
    char host[256]; /* a name or a numeric address, no brackets for IPv6; "": all there are */
    int32_t port;   /* 0: any free one; ADDRESS_OFF: no listener */
};
#define ADDRESS_OFF (-1)

/* As option_parse reads it: "127.0.0.1:80", "[::1]:80", "off". Free with g_free. */
char *address_format(const struct address *address);

enum source {
    SOURCE_DEFAULT,
    SOURCE_FILE,
    SOURCE_ENVIRONMENT,
    SOURCE_FLAG,
};

struct origin {
    enum source source;
    const char *name; /* the environment variable; NULL for other sources */
};

enum output_format {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_NAME,
    OUTPUT_JSONPATH,
};

enum color_when {
    COLOR_AUTO,
    COLOR_ALWAYS,
    COLOR_NEVER,
};

#define OPTIONS_MAX 176

struct config {
    bool help;
    bool print_config;
    bool print_schema;
    char *file; /* strings are never NULL: "" where nothing was given */

    char *kubeconfig;
    char *context;
    char *snapshot;
    char *snapshot_out;
    int64_t api_timeout_ms;

    struct address listen;
    struct address ops_listen;
    int64_t max_connections;
    int64_t max_body; /* bytes */
    int64_t transfer_timeout_ms;
    char *tls_cert;
    char *tls_key;
    char *tls_client_ca;
    char *tls_client_names;
    bool ops_tls;
    char *ops_hosts;
    char *ops_token_file;

    int64_t policy;      /* index into policies */
    int64_t prioritize;  /* enum prioritize_shape */
    struct dialect_options dialects;
    bool admission;
    int64_t bind_timeout_ms;
    char *scheduler_names; /* "": the usual ones */
    bool bind_trusts_filter;
    int64_t assign_patience_ms;
    int64_t volume_bind_timeout_ms;
    int64_t wait_loss;
    int64_t arrival_hold_ms;
    int64_t arrival_places;
    int64_t reject_limit;
    int64_t reject_window_ms;
    char *quota_model_label; /* "": no quotas */
    char *quota_pool_label;
    bool hami_resource_quotas;
    bool elastic_quotas;
    char *quota_tree_namespaces;
    bool gangs;
    bool gang_strict;
    int64_t gang_keep_room_ms; /* 0: none is kept */
    bool kueue;
    char *usage; /* a URL; "": nobody is asked how busy pods are */
    char *usage_query, *usage_ca_file, *usage_token_file;
    int64_t usage_interval_ms;
    int64_t usage_idle_below; /* percent */
    int64_t usage_idle_for_ms;
    bool plans;
    char *only;
    bool end;
    char *calendar; /* "": no node is switched */
    bool reclaim;
    int64_t reclaim_delay_ms;
    int64_t reclaim_at_once, reclaim_per_minute; /* evictions */
    bool reclaim_uncontrolled;
    bool lend_unreclaimable;
    char *evictions_observe; /* "": no capability only observes */
    int64_t evictions_per_minute, evictions_for_reclaim, evictions_per_namespace;
    int64_t evictions_min_runtime_ms;
    bool wake;

    bool leader_elect;
    char *lease_name;
    char *lease_namespace;
    int64_t lease_duration_ms;
    char *lease_identity; /* what the holder's name begins with; "": the host's name */
    char *pod_name;       /* "": no label is kept */

    int64_t audit_interval_ms; /* 0: only when asked */
    bool events;
    bool pod_metrics;
    int64_t card_metrics_max; /* of more cards metrics tell sums only */
    int64_t log_level;  /* enum log_level */
    int64_t log_format; /* enum log_format */
    int64_t shutdown_delay_ms;
    int64_t drain_timeout_ms;
    char *seal_key_file; /* these two "": nothing is sealed */
    char *seal_secret;
    char *record; /* "": nothing is recorded */
    int64_t record_max; /* bytes */

    char *sim_pods;
    char *sim_trace_nodes;
    char *sim_trace_pods;
    char *sim_policies; /* these three as on the command line */
    char *sim_arrivals;
    int64_t sim_pace_ms;
    int64_t sim_per_second;
    char *sim_seeds;
    bool sim_churn;
    int64_t sim_lifetimes;
    char *sim_moves; /* "N" or "N/h" */
    int64_t sim_lifetime_ms;
    bool sim_in_order;
    bool sim_foreseen;
    int64_t sim_ranked; /* enum ranked */
    int64_t sim_weight;
    int64_t sim_jobs; /* 0: one for each processor */
    char *sim_cluster_out;
    bool sim_times;

    char *filename; /* of a pod, or what makes pods */
    int64_t replicas; /* 0: as the file says, or as many as fit */
    char *drain;      /* node names with commas between */
    char *template;   /* a file */

    char *server;
    char *pods_namespace; /* "": all of them */
    char *pod_namespace;  /* of the pod that is named; "": its name says it */
    char *token_file;
    char *ca_file;
    int64_t output; /* enum output_format */
    char *output_template; /* of OUTPUT_JSONPATH; else perhaps NULL */
    char *sort_by;         /* "": as the server sends it */
    int64_t color;         /* enum color_when */
    bool watch;
    bool all_namespaces;
    char *service;  /* "NAMESPACE/NAME"; "": --server is asked directly */
    int64_t until;  /* 0: to the end */

    int64_t from; /* of peers */
    bool dry_run;
    char *empty;       /* NODE or NODE/CARD */
    char *group;       /* NAMESPACE/NAME */
    char *defragment;  /* GPUs */
    char *waiting;     /* a time */
    char *mig_configs; /* "": none */
    int64_t max_moves, max_per_workload, max_per_node, max_per_namespace, max_per_hour;
    char *moves_namespace;
    char *window; /* as in maintain/window.h; "": always */
    bool apply;
    bool force;
    int64_t evict_timeout_ms;
    int64_t wait_for_nodes_ms;

    char *certs_folder; /* "": nothing is kept */
    char *certs_namespace;
    char *certs_clients; /* these two with commas between */
    char *certs_hosts;
    int64_t certs_days;
    bool certs_renew;

    GPtrArray *words;                   /* const char *: what was given beside options; borrowed */
    GPtrArray *warnings;                /* char *: sentences about what was ignored, for the log */
    struct origin origins[OPTIONS_MAX]; /* by position in options[] */
};

/* All borrowed; environment and arguments end with NULL. */
struct command;

struct config_inputs {
    unsigned command;               /* the COMMAND_ bit whose options apply */
    const char *const *arguments;   /* what follows the subcommand */
    const char *const *environment; /* "NAME=value", as environ */
    const struct command *commands; /* all that there are, for those that describe them */
};

/* Reads all sources. Errors are GPULEDGER_ERROR_INVALID or _RANGE (the text names the option, the
 * value and what is accepted) or _IO (the configuration file cannot be read). With --help on the
 * command line nothing else is looked at. */
struct config *config_load(const struct config_inputs *inputs, GError **error);
void config_free(struct config *config);

/* Whether the option of that name was given on the command line. */
bool config_on_command_line(const struct config *config, const char *name);
/* Whether it was given anywhere. */
bool config_has_given(const struct config *config, const char *name);

/* Appends the values of the command's options as YAML that config_load reads, each with its
 * source as a comment. */
void config_print(const struct config *config, unsigned command, GString *text);

/* Appends the JSON Schema (draft 7) of the command's configuration file. It is stricter than
 * config_load where a reader would be misled: text is quoted if it looks like a number, and a key
 * has a value. It is laxer with the bounds of durations and sizes, which patterns cannot hold. */
void config_schema(unsigned command, GString *text);
