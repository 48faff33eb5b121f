/* SPDX-License-Identifier: Apache-2.0 */
#include "options/rest_section.h"

#include "queue/arrivals/arrivals.h"
#include "core/section/rows.h"
#include "options/config.h"
#include "options/choices.h"
#include "evict/permits.h"
#include "http/authority.h"
#include "usage/usage_source.h"

#define SETTINGS struct config
#define IN(group_, commands_) FOR(commands_)
#define SIMULATE FOR(COMMAND_SIMULATE), .flags = OPTION_FLAG_ONLY
#define CERTS FOR(COMMAND_CERTS), .flags = OPTION_FLAG_ONLY
#define PLANS COMMANDS_ASKING
#define VIEWS COMMANDS_VIEWING
#define ROWS_OF COMMANDS_LISTING
#define CLIENT COMMANDS_OF_CLIENTS
#define MOVES COMMANDS_MOVING
#define CLUSTER COMMANDS_ON_CLUSTERS
#define CORDONS COMMANDS_CORDONING
#define LOOKS COMMANDS_LOOKING
#define READER COMMANDS_READING

/* clang-format off */
static const struct option cluster_rows[] = {
    {"kubeconfig", PATH(kubeconfig, "FILE", ""), IN(CLUSTER, CLUSTER | CORDONS | COMMAND_SWITCH),
     .alias = "KUBECONFIG", .alias_help = "which may list several, as for kubectl",
     .help = "How to reach the API server. Without it: the service account of the pod that this "
             "runs in, else ~/.kube/config."},
    {"context", TEXT(context, "NAME", ""), IN(CLUSTER, CLUSTER | CORDONS | COMMAND_SWITCH),
     .help = "The context of the kubeconfig to use instead of its current one."},
    {"snapshot", PATH(snapshot, "FILE", ""), IN(CLUSTER, READER), .flags = OPTION_INPUT,
     .help = "A saved cluster instead of an API server: the output of 'kubectl get "
             "nodes,pods,configmaps -A -o json'; '-' is standard input. Binds change it in memory "
             "only."},
    {"snapshot-out", PATH(snapshot_out, "FILE", ""), IN(CLUSTER, COMMAND_SERVE),
     .help = "Where to write the snapshot, with what binds changed in it, at the end."},
    {"api-timeout", DURATION(api_timeout_ms, "10s", 1000, 5 * MINUTE_MS), IN(CLUSTER, CLUSTER),
     .help = "How long one call to the API server may take before it counts as lost and is tried "
             "again, while there is time. Watches are not limited by it."},

};

static const struct option running_rows[] = {
    {"shutdown-delay", DURATION(shutdown_delay_ms, "8s", 0, 10 * MINUTE_MS),
     IN(RUNNING, COMMAND_SERVE), .flags = OPTION_LIVE,
     .help = "How long it goes on answering after SIGTERM with readiness failing, so that nobody is "
             "sent here any more when it ends: the readiness probe's period times its "
             "failureThreshold, and some seconds for Service and kube-proxy. Where it is not given, it "
             "counts in pods and with --leader-elect only: elsewhere no Service leads here."},
    {"drain-timeout", DURATION(drain_timeout_ms, "20s", 0, 10 * MINUTE_MS),
     IN(RUNNING, COMMAND_SERVE), .flags = OPTION_LIVE,
     .help = "How long calls that are under way may take to finish after SIGTERM and "
             "--shutdown-delay. Keep the sum of both below the pod's "
             "terminationGracePeriodSeconds (30 unless configured)."},
    {"config", PATH(file, "FILE", ""), IN(RUNNING, COMMAND_SERVE), .flags = OPTION_NO_FILE,
     .help = "A YAML file with values for these options: flat, the keys are their long names. "
             "SIGHUP reads it again."},
    {"print-config", BOOL(print_config, "false"),
     IN(RUNNING, COMMAND_SERVE), .flags = OPTION_FLAG_ONLY,
     .help = "Print the effective configuration as YAML, with the source of each value, and "
             "exit."},
    {"print-schema", BOOL(print_schema, "false"),
     IN(RUNNING, COMMAND_SERVE), .flags = OPTION_FLAG_ONLY,
     .help = "Print the JSON Schema of the configuration file, for editors and validators, and "
             "exit."},

};

static const struct option client_rows[] = {
#include "options/client_rows.h"
};

static const struct option certs_rows[] = {

    {"folder", PATH(certs_folder, "FOLDER", "gpuledger-tls"), CERTS,
     .help = "Where all of it is kept for the next time, readable by its owner only. The key of the "
             "CA is nowhere else: whoever has it may bind pods. With --folder= nothing is kept, and "
             "the next time makes another CA."},
    {"namespace", NAMESPACE(certs_namespace, "kube-system"), CERTS,
     .help = "Where the extender and its Services are."},
    {"clients", LIST(certs_clients, "NAME,...", "kube-scheduler", item_list_names), CERTS,
     .help = "Who gets a certificate to call --listen with, each in a Secret gpuledger-NAME of its "
             "own. Name the same ones in --tls-client-names of serve."},
    {"hosts", LIST(certs_hosts, "HOST,...", "", item_list_names), CERTS,
     .help = "By which further names or addresses the extender is called, beside those of its "
             "Services and of this machine."},
    {"days", INT(certs_days, "N", "365", 1, AUTHORITY_DAYS), CERTS,
     .help = "How long new certificates are good. Those of which a third of the time is left are "
             "kept. The CA lasts ten years."},
    {"renew", BOOL(certs_renew, "false"), CERTS,
     .help = "Make certificates and token anew although they are good; the CA stays."},
};

static const struct option general_rows[] = {

    {"until", INT(until, "N", "0", 0, INT64_C(1) << 53),
     IN(GENERAL, COMMAND_REPLAY), .flags = OPTION_FLAG_ONLY,
     .help = "Stop after the record with this number and print the ledger as it was then; 0: play "
             "all."},


    {"help", BOOL(help, "false"),
     IN(GENERAL, COMMAND_ANY), .flags = OPTION_FLAG_ONLY, .letter = 'h',
     .help = "Print this and exit."},
};

static const struct option simulate_rows[] = {
#include "options/simulate_rows.h"
};
/* clang-format on */

#define REST(name_, title_, ...)                                                                   \
    const struct section section_##name_ = {.name = #name_,                                        \
                                            .title = title_,                                       \
                                            .rows = name_##_rows,                                  \
                                            .n_rows = G_N_ELEMENTS(name_##_rows),                  \
                                            __VA_ARGS__}
REST(cluster, "Where the cluster is");
REST(running, "Running");
REST(client, "Asking a running extender");
REST(maintenance, "Taking out of service");
REST(simulate, "Simulating");
REST(certs, "Making certificates");
REST(general, "General");
