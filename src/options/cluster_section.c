/* SPDX-License-Identifier: Apache-2.0 */
#include "options/cluster_section.h"

#include "core/section/rows.h"
#include "core/fail.h"
#include "store/seals/seals_section.h"

#define SETTINGS struct cluster_settings

/* clang-format off */
static const struct option rows[] = {
    {"kubeconfig", PATH(kubeconfig, "FILE", ""), FOR(COMMANDS_ON_CLUSTERS | COMMANDS_CORDONING | COMMAND_SWITCH), .flags = OPTION_COMMON,
     .alias = "KUBECONFIG", .alias_help = "which may list several, as for kubectl",
     .help = "How to reach the API server. Without it: the service account of the pod that this "
             "runs in, else ~/.kube/config."},
    {"context", TEXT(context, "NAME", ""), FOR(COMMANDS_ON_CLUSTERS | COMMANDS_CORDONING | COMMAND_SWITCH),
     .help = "The context of the kubeconfig to use instead of its current one."},
    {"snapshot", PATH(snapshot, "FILE", ""), FOR(COMMANDS_READING), .flags = OPTION_INPUT | OPTION_COMMON,
     .help = "A saved cluster instead of an API server: the output of 'kubectl get "
             "nodes,pods,configmaps -A -o json'; '-' is standard input. Binds change it in memory "
             "only."},
    {"snapshot-out", PATH(snapshot_out, "FILE", ""), FOR(COMMAND_SERVE),
     .help = "Where to write the snapshot, with what binds changed in it, at the end."},
    {"api-timeout", DURATION(api_timeout_ms, "10s", 1000, 5 * MINUTE_MS), FOR(COMMANDS_ON_CLUSTERS),
     .help = "How long one call to the API server may take before it counts as lost and is tried "
             "again, while there is time. Watches are not limited by it."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    const struct cluster_settings *cluster = settings_of(settings, cluster);
    const struct seals_settings *seals = settings_of(settings, seals);

    if (*cluster->snapshot && *cluster->kubeconfig)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'snapshot' and 'kubeconfig' are both set; a cluster comes from one of "
                         "them, leave out the other");
    if (*cluster->snapshot_out && !*cluster->snapshot)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'snapshot-out' is set without 'snapshot'; with an API server there is no "
                         "snapshot to write, leave it out");
    if (*seals->secret && (*seals->key_file || *cluster->snapshot))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'seal-secret' is set as well as '%s'; leave one of them out",
                         *seals->key_file ? "seal-key-file" : "snapshot");
    return true;
}

const struct section section_cluster = {
    .name = "cluster",
    .title = "Where the cluster is",
    ROWS(rows),
    .check = check,
};
