/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The effective configuration of one invocation: what the table of options (options/options.h) makes
 * of the command line, the environment, the configuration file and the defaults, in that order of
 * precedence. Every value remembers where it came from.
 *
 * A struct config owns its strings. It is filled once and then only read: any thread.
 */
#include "core/section/option.h"
#include "gate/part.h"

#include <glib.h>
#include <gpuledger/dialect.h>
#include <stdbool.h>
#include <stdint.h>

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
    const char *file; /* strings are never NULL: "" where nothing was given */

    const char *kubeconfig;
    const char *context;
    const char *snapshot;
    const char *snapshot_out;
    int64_t api_timeout_ms;

    const char *only;
    bool end;

    int64_t shutdown_delay_ms;
    int64_t drain_timeout_ms;

    const char *sim_pods;
    const char *sim_trace_nodes;
    const char *sim_trace_pods;
    const char *sim_policies; /* these three as on the command line */
    const char *sim_arrivals;
    int64_t sim_pace_ms;
    int64_t sim_per_second;
    const char *sim_seeds;
    bool sim_churn;
    int64_t sim_lifetimes;
    const char *sim_moves; /* "N" or "N/h" */
    int64_t sim_lifetime_ms;
    bool sim_in_order;
    bool sim_foreseen;
    int64_t sim_ranked; /* enum ranked */
    int64_t sim_weight;
    int64_t sim_jobs; /* 0: one for each processor */
    const char *sim_cluster_out;
    bool sim_times;

    const char *filename; /* of a pod, or what makes pods */
    int64_t replicas; /* 0: as the file says, or as many as fit */
    const char *drain;    /* node names with commas between */
    const char *template; /* a file */

    const char *server;
    const char *pods_namespace; /* "": all of them */
    const char *pod_namespace;  /* of the pod that is named; "": its name says it */
    const char *token_file;
    const char *ca_file;
    int64_t output; /* enum output_format */
    const char *output_template; /* of OUTPUT_JSONPATH; else perhaps NULL */
    const char *sort_by;         /* "": as the server sends it */
    int64_t color;         /* enum color_when */
    bool watch;
    bool all_namespaces;
    const char *service; /* "NAMESPACE/NAME"; "": --server is asked directly */
    int64_t until;  /* 0: to the end */

    int64_t from; /* of peers */
    bool dry_run;
    const char *empty;       /* NODE or NODE/CARD */
    const char *group;       /* NAMESPACE/NAME */
    const char *defragment;  /* GPUs */
    const char *waiting;     /* a time */
    const char *mig_configs; /* "": none */
    int64_t max_moves, max_per_workload, max_per_node, max_per_namespace, max_per_hour;
    const char *moves_namespace;
    const char *window; /* as in maintain/window.h; "": always */
    bool apply;
    bool force;
    int64_t evict_timeout_ms;
    int64_t wait_for_nodes_ms;

    const char *certs_folder; /* "": nothing is kept */
    const char *certs_namespace;
    const char *certs_clients; /* these two with commas between */
    const char *certs_hosts;
    int64_t certs_days;
    bool certs_renew;

    struct settings *settings; /* what sections hold */
    struct part_settings parts[PART_ROWS_MAX + 1]; /* those of parts among them */

    GPtrArray *words;                   /* const char *: what was given beside options; borrowed */
    GPtrArray *warnings;                /* char *: sentences about what was ignored, for the log */
    struct origin origins[OPTIONS_MAX]; /* by option_position */
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

/* config_section(config, quotas) is a const struct quotas_settings *. */
#define config_section(config, name) settings_of((config)->settings, name)

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
