/* SPDX-License-Identifier: Apache-2.0 */
#include "options/options.h"

#include "queue/arrivals.h"
#include "options/alias.h"
#include "options/choices.h"
#include "dialect/hami/hami_mig.h"
#include "dialect/nvidia/nvidia_replicas.h"
#include "http/authority.h"

#include <string.h>

const char *const option_groups[GROUP_N] = {
    [GROUP_CLUSTER] = "Where the cluster is",     [GROUP_LISTENERS] = "Listening",
    [GROUP_PLACEMENT] = "Placing pods",           [GROUP_REPLICAS] = "Several replicas",
    [GROUP_RUNNING] = "Running",                  [GROUP_CLIENT] = "Asking a running extender",
    [GROUP_SIMULATION] = "Simulating",            [GROUP_CERTIFICATES] = "Making certificates",
    [GROUP_GENERAL] = "General",
};

/* --- the table ------------------------------------------------------------------------------- */

/* A row's kind is checked against the member's type at compile time. */
#define AT(option_kind, ctype, member_)                                                            \
    .kind = option_kind,                                                                           \
    .offset = offsetof(struct config, member_) +                                                   \
              0 * sizeof(char[_Generic(((struct config *)0)->member_, ctype : 1)])
#define TEXT(member_) AT(OPTION_TEXT, char *, member_)
#define LIST(member_, list_) AT(OPTION_LIST, char *, member_), .list = &list_
#define PATH(member_) AT(OPTION_PATH, char *, member_)
#define INT(member_, min_, max_) AT(OPTION_INT, int64_t, member_), .min = min_, .max = max_
#define BOOL(member_) AT(OPTION_BOOL, bool, member_)
#define DURATION(member_, min_, max_)                                                              \
    AT(OPTION_DURATION, int64_t, member_), .min = min_, .max = max_
#define SIZE(member_, min_, max_) AT(OPTION_SIZE, int64_t, member_), .min = min_, .max = max_
#define CHOICE(member_, choice_) AT(OPTION_CHOICE, int64_t, member_), .choice = choice_
#define ADDRESS(member_) AT(OPTION_ADDRESS, struct address, member_)

#define PLANS (COMMAND_EXPLAIN | COMMAND_FIT) /* they answer as serve would */
#define VIEWS (COMMAND_NODES | COMMAND_PODS | COMMAND_INSPECT) /* they show the ledger */
#define CLIENT (VIEWS | COMMAND_AUDIT | COMMAND_RESUME | PLANS)
#define CLUSTER (COMMAND_SERVE | COMMAND_AUDIT | COMMAND_RESUME | VIEWS | PLANS)
#define LOOKS (COMMAND_SERVE | COMMAND_AUDIT | VIEWS | PLANS)
#define READER (CLUSTER | COMMAND_SIMULATE) /* of a saved cluster */
#define MINUTE_MS INT64_C(60000)

const struct option options[] = {
    {.name = "kubeconfig",
     PATH(kubeconfig),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_CLUSTER,
     .commands = CLUSTER,
     .alias = "KUBECONFIG",
     .alias_help = "which may list several, as for kubectl",
     .help = "How to reach the API server. Without it: the service account of the pod that this "
             "runs in, else ~/.kube/config."},
    {.name = "context",
     TEXT(context),
     .metavar = "NAME",
     .fallback = "",
     .group = GROUP_CLUSTER,
     .commands = CLUSTER,
     .help = "The context of the kubeconfig to use instead of its current one."},
    {.name = "snapshot",
     PATH(snapshot),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_CLUSTER,
     .commands = READER,
     .help = "A saved cluster instead of an API server: the output of 'kubectl get "
             "nodes,pods,configmaps -A -o json'. Binds change it in memory only."},
    {.name = "snapshot-out",
     PATH(snapshot_out),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_CLUSTER,
     .commands = COMMAND_SERVE,
     .help = "Where to write the snapshot, with what binds changed in it, at the end."},
    {.name = "api-timeout",
     DURATION(api_timeout_ms, 1000, 5 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "10s",
     .group = GROUP_CLUSTER,
     .commands = CLUSTER,
     .help = "How long one call to the API server may take before it counts as lost and is tried "
             "again, while there is time. Watches are not limited by it."},

#include "options/listener_rows.h"

    {.name = "policy",
     CHOICE(policy, choices_policy),
     .metavar = "NAME",
     .fallback = "binpack",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | COMMAND_REPLAY | PLANS,
     .flags = OPTION_LIVE,
     .help = "Which card of a node a pod gets, among those it fits on, and by prioritize which "
             "node."},
    {.name = "prioritize",
     CHOICE(prioritize, choices_prioritize),
     .metavar = "SHAPE",
     .fallback = "winner",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | COMMAND_SIMULATE,
     .help = "How prioritize marks nodes, from 0 to 10; kube-scheduler adds ten times that, times "
             "the extender's weight, to its own marks."},
    {.name = "tenant-isolation",
     CHOICE(dialects.tenant_isolation, choices_isolation),
     .metavar = "CLASS",
     .fallback = "none",
     .group = GROUP_PLACEMENT,
     .commands = CLUSTER,
     .help = "Pods of several namespaces share one card only where its holders are kept apart at "
             "least so. Where kubelet picks the card, a node then serves one namespace at a time."},

#include "options/dialect_rows.h"

    {.name = "bind-timeout",
     DURATION(bind_timeout_ms, 1000, 10 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "25s",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "How long one bind may take, waiting included. Keep it below kube-scheduler's "
             "httpTimeout for the extender (5s unless configured; the manifests here say 30s), "
             "or kube-scheduler gives up on binds that succeed."},
    {.name = "scheduler-names",
     LIST(scheduler_names, item_list_names),
     .metavar = "NAME,...",
     .fallback = "",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "Bind only pods with one of these as schedulerName (default-scheduler where a pod says "
             "none). Without it: all but those whose own scheduler places them, of Volcano, KAI and "
             "Koordinator."},
    {.name = "bind-trusts-filter",
     BOOL(bind_trusts_filter),
     .fallback = "false",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "Do not ask again, of a pod that filter has let pass on the node in the last five "
             "minutes, whether its nodeSelector, affinity and tolerations let it be there. For "
             "profiles of kube-scheduler without the plugins that ask; who can forge a call of bind "
             "can forge one of filter as well."},
    {.name = "assign-patience",
     DURATION(assign_patience_ms, 0, 60 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "10s",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .flags = OPTION_LIVE,
     .help = "How long the node side is expected to take to match a pod. A pod that it could "
             "mistake for one bound less than this ago waits inside bind; for an older one it is "
             "turned away until that one is matched or gone."},
    {.name = "wait-loss",
     INT(wait_loss, 0, 1000000),
     .metavar = "THOUSANDTHS",
     .fallback = "50",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | COMMAND_SIMULATE,
     .help = "Prefer a node whose device plugin serves a pod sooner over one that packs better by "
             "less than so many thousandths of a card for each pod that this one has to serve "
             "before. 0: packing alone counts while a node takes the pod at once."},

    {.name = "arrival-hold",
     DURATION(arrival_hold_ms, 0, 60 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "0s",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .help = "Leave room to the pod that was created first, for so long, instead of giving it to "
             "whoever asks first; 0s: in no order."},
    {.name = "arrival-places",
     INT(arrival_places, 0, ARRIVALS_PLACES_MAX),
     .metavar = "N",
     .fallback = "8",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .help = "With --arrival-hold: keep a place for each of the N oldest pods that fit nowhere, "
             "where least must become free for it, however long that takes. Younger pods pass where "
             "they fit beside it. 0: pods for which there is no room are passed."},
    {.name = "reject-limit",
     INT(reject_limit, 0, 100),
     .metavar = "N",
     .fallback = "3",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "Leave a node, or one of its cards, out once its kubelet has rejected so many pods within "
             "--reject-window: for 10s, then with one pod at a time, and twice as long after each that "
             "is rejected again, up to 10m. The pods of one namespace close a node to that namespace, "
             "those of several to all. 0: never."},
    {.name = "reject-window",
     DURATION(reject_window_ms, 1000, 60 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "1m",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "See --reject-limit."},
    {.name = "quota-model-label",
     LIST(quota_model_label, item_list_label),
     .metavar = "LABEL",
     .fallback = "",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .help = "Keep namespaces to the quotas of the ConfigMap kube-system/gpuquota, as "
             "gpu-quota-admission does: so many GPUs on nodes whose label of this name says the "
             "model. Without it there are no quotas."},
    {.name = "quota-pool-label",
     LIST(quota_pool_label, item_list_label),
     .metavar = "LABEL",
     .fallback = "",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .help = "The node label that quotas mean by a pool."},
    {.name = "hami-resource-quotas",
     BOOL(hami_resource_quotas),
     .fallback = "false",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE | PLANS,
     .help = "Keep namespaces to ResourceQuotas with HAMi's keys limits.nvidia.com/gpumem and "
             "limits.nvidia.com/gpucores, as HAMi's scheduler does: the API server counts nothing "
             "under them."},
    {.name = "wake",
     BOOL(wake),
     .fallback = "true",
     .group = GROUP_PLACEMENT,
     .commands = COMMAND_SERVE,
     .help = "Wake a refused pod when room for it has appeared and kube-scheduler has not asked "
             "again within a second: its annotation gpuledger.io/woken is set. Needs the verb "
             "patch on pods. Without it such a pod may wait for minutes in a quiet cluster."},

    {.name = "leader-elect",
     BOOL(leader_elect),
     .fallback = "false",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "Serve only while holding a Lease, so that several replicas may run: one answers "
             "kube-scheduler, the others follow the cluster and stand by. Needs the verbs get, "
             "create and update on leases of the group coordination.k8s.io."},
    {.name = "lease-name",
     TEXT(lease_name),
     .metavar = "NAME",
     .fallback = "gpuledger",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "The Lease. All that book cards of one cluster must share it."},
    {.name = "lease-namespace",
     TEXT(lease_namespace),
     .metavar = "NAMESPACE",
     .fallback = "kube-system",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "Where it is."},
    {.name = "lease-duration",
     DURATION(lease_duration_ms, 3000, 10 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "15s",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "For how long the others wait for a holder that does not renew it, in whole seconds. "
             "The holder itself stops binding when it could not renew it for two thirds of this."},
    {.name = "lease-identity",
     TEXT(lease_identity),
     .metavar = "NAME",
     .fallback = "",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "The holder's name in the Lease. No two replicas may share one. Without it: the "
             "host's name, which is a pod's own, and something random."},

    {.name = "pod-name",
     TEXT(pod_name),
     .metavar = "NAME",
     .fallback = "",
     .group = GROUP_REPLICAS,
     .commands = COMMAND_SERVE,
     .help = "The pod that this runs in, in the Lease's namespace: while it serves it has the "
             "label gpuledger.io/holder=true, for a Service to select. Needs the verb patch on "
             "pods. Without it the Service has to go by readiness alone."},

    {.name = "audit-interval",
     DURATION(audit_interval_ms, 0, 24 * 60 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "5m",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .help = "How often the ledger is checked against the cluster, which is read as a whole for "
             "it; 0s: only when somebody asks."},
    {.name = "events",
     BOOL(events),
     .fallback = "true",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .help = "Write Events about pods with which something is wrong: bound without a card, on a "
             "card that holds too much, not taken by their node side, not to be understood. Needs "
             "the verbs create and patch on events of the group events.k8s.io."},
    {.name = "pod-metrics",
     BOOL(pod_metrics),
     .fallback = "false",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .help = "Also export what each container was granted of each card, with namespace, pod, "
             "container and the card's UUID, to be joined with what is measured of cards: two "
             "metrics with a series for every container and card."},
    {.name = "log-level",
     CHOICE(log_level, choices_log_level),
     .metavar = "LEVEL",
     .fallback = "info",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_LIVE,
     .alias = "LOG_LEVEL",
     .alias_help = "also a number",
     .read_alias = alias_read_log_level,
     .help = "How much is logged to standard error."},
    {.name = "log-format",
     CHOICE(log_format, choices_log_format),
     .metavar = "FORMAT",
     .fallback = "logfmt",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_LIVE,
     .help = "How it is written."},
    {.name = "shutdown-delay",
     DURATION(shutdown_delay_ms, 0, 10 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "8s",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_LIVE,
     .help = "How long it goes on answering after SIGTERM with readiness failing, so that nobody is "
             "sent here any more when it ends: the readiness probe's period times its "
             "failureThreshold, and some seconds for Service and kube-proxy. 0s where no Service "
             "leads here."},
    {.name = "drain-timeout",
     DURATION(drain_timeout_ms, 0, 10 * MINUTE_MS),
     .metavar = "DURATION",
     .fallback = "20s",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_LIVE,
     .help = "How long calls that are under way may take to finish after SIGTERM and "
             "--shutdown-delay. Keep the sum of both below the pod's "
             "terminationGracePeriodSeconds (30 unless configured)."},
    {.name = "seal-key-file",
     PATH(seal_key_file),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_RUNNING,
     .commands = LOOKS | COMMAND_SIMULATE,
     .help = "Seal every grant with the key in this file, which is made if it is not there: what a pod "
             "was given is known after a restart, whatever its annotations were made to say. Without "
             "a key annotations are believed. Commands that look at a cluster by themselves check "
             "seals with it, and make none."},
    {.name = "seal-secret",
     TEXT(seal_secret),
     .metavar = "NAMESPACE/NAME",
     .fallback = "",
     .group = GROUP_RUNNING,
     .commands = LOOKS,
     .help = "The same with a key in a Secret, which must exist and may be empty; see "
             "manifests/base/seal.yaml."},
    {.name = "record",
     PATH(record),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .help = "Write down every event and every decision, for 'gpuledger replay'. Of objects only "
             "what decisions read is kept, which holds no environment and no Secrets, but names, "
             "labels and annotations. A file that is there becomes FILE.1."},
    {.name = "record-max",
     SIZE(record_max, 1 << 16, INT64_C(1) << 40),
     .metavar = "SIZE",
     .fallback = "256MiB",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .help = "How large the file of --record grows before it becomes FILE.1, whose place it takes, "
             "and the next one begins with what is known by then."},
    {.name = "config",
     PATH(file),
     .metavar = "FILE",
     .fallback = "",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_NO_FILE,
     .help = "A YAML file with values for these options: flat, the keys are their long names. "
             "SIGHUP reads it again."},
    {.name = "print-config",
     BOOL(print_config),
     .fallback = "false",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_FLAG_ONLY,
     .help = "Print the effective configuration as YAML, with the source of each value, and "
             "exit."},
    {.name = "print-schema",
     BOOL(print_schema),
     .fallback = "false",
     .group = GROUP_RUNNING,
     .commands = COMMAND_SERVE,
     .flags = OPTION_FLAG_ONLY,
     .help = "Print the JSON Schema of the configuration file, for editors and validators, and "
             "exit."},

#include "options/client_rows.h"

#include "options/certs_rows.h"

    {.name = "until",
     INT(until, 0, INT64_C(1) << 53),
     .metavar = "N",
     .fallback = "0",
     .group = GROUP_GENERAL,
     .commands = COMMAND_REPLAY,
     .flags = OPTION_FLAG_ONLY,
     .help = "Stop after the record with this number and print the ledger as it was then; 0: play "
             "all."},

#include "options/simulate_rows.h"

    {.name = "help",
     BOOL(help),
     .fallback = "false",
     .group = GROUP_GENERAL,
     .commands = COMMAND_ANY,
     .letter = 'h',
     .flags = OPTION_FLAG_ONLY,
     .help = "Print this and exit."},
    {.name = NULL},
};

G_STATIC_ASSERT(G_N_ELEMENTS(options) <= OPTIONS_MAX);

const struct option *option_find(const char *name, unsigned commands)
{
    for (const struct option *option = options; option->name; option++) {
        if ((option->commands & commands) && strcmp(option->name, name) == 0)
            return option;
    }
    return NULL;
}

size_t option_position(const struct option *option)
{
    return (size_t)(option - options);
}

char *option_variable(const struct option *option)
{
    if (option->flags & OPTION_FLAG_ONLY)
        return NULL;
    g_autofree char *capitals = g_ascii_strup(option->name, -1);
    return g_strconcat("GPULEDGER_", g_strdelimit(capitals, "-", '_'), NULL);
}
