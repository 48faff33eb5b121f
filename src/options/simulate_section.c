/* SPDX-License-Identifier: Apache-2.0 */
#include "options/simulate_section.h"

#include "core/section/rows.h"
#include "simulate/simulation.h"

#define SETTINGS struct simulate_settings
#define SIMULATE FOR(COMMAND_SIMULATE), .flags = OPTION_FLAG_ONLY

static bool choices_ranked(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"all", "pods with GPU, and, by a second entry of the configuration, those without",
         RANKED_ALL},
        {"gpu", "pods with GPU", RANKED_GPU},
        {"none", "no pods: the extender filters and binds, as those without prioritize do",
         RANKED_NONE},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

/* clang-format off */
static const struct option rows[] = {
    {"pods", PATH(pods, "FILE", ""), SIMULATE,
     .help = "The pods that come, as 'kubectl get pods -A -o json' prints them, also if they have "
             "a node there. Without it: those of --snapshot that have none."},
    {"trace-nodes", PATH(trace_nodes, "FILE", ""), SIMULATE,
     .help = "Instead of --snapshot the nodes of a GPU trace, as CSV. Its first line names the "
             "columns: sn, cpu_milli, memory_mib, gpu, model."},
    {"trace-pods", PATH(trace_pods, "FILE", ""), SIMULATE,
     .help = "The pods of the trace, as CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli "
             "(thousandths of each card); if there are any, gpu_spec (models, 'A|B'), priority_class, "
             "priority, replica_of (a Deployment) and pod_group."},
    {"policy", TEXT(policies, "NAME,...", "binpack"), SIMULATE,
     .help = "Which policies to compare; 'gpuledger serve --help' explains them. All: 'all'."},
    {"arrivals", TEXT(arrivals, "PERCENT", "130%"), SIMULATE,
     .help = "Pods come until they have asked for so much of the cluster's GPU: each once, then "
             "any of them again. 'once': each once, and no more."},
    {"churn", BOOL(churn, "false"), SIMULATE,
     .help = "Pods leave, after lifetimes that are exponential; others keep coming, so many that "
             "without refusals they would hold the --arrivals on average."},
    {"lifetimes", INT(lifetimes, "N", "3", 1, 1000), SIMULATE,
     .help = "With --churn: for how many mean lifetimes it is counted, after one in which the "
             "cluster settles."},
    {"moves", TEXT(moves, "N[/h]", "0"), SIMULATE,
     .help = "With --churn: for a thousand pods that come, or with /h in any hour, so many may be moved "
             "to other nodes, each so that a pod which found no room is admitted. N/h is what max-per-hour "
             "is for a plan with waiting."},
    {"mean-lifetime", DURATION(lifetime_ms, "1h", 1000, 10000 * 60 * MINUTE_MS), SIMULATE,
     .help = "With --moves N/h, and with --gangs --churn: how long a pod stays on average, for how many "
             "come in an hour and what groups wait."},
    {"seeds", TEXT(seeds, "N,N..N", "42"), SIMULATE,
     .help = "One run of each policy for each: the order of the pods, and which are drawn again; "
             "with a trace also which node has which name, for names decide between equals."},
    {"in-order", BOOL(in_order, "false"), SIMULATE,
     .help = "Pods come in the order of the file, and nodes keep their names."},
    {"foreseen", BOOL(foreseen, "false"), SIMULATE,
     .help = "Tell policies that learn what pods to expect of all pods of the file before the "
             "first one comes, as experiments with traces often do."},
    {"plugin-pace", DURATION(pace_ms, "0s", 0, 60 * MINUTE_MS), SIMULATE,
     .help = "What the device plugin of a node takes for a pod, one after the other. Shows how long "
             "pods waited, from their coming until they were served."},
    {"pods-per-second", INT(per_second, "N", "10", 1, 1000000), SIMULATE,
     .help = "With --plugin-pace: how many pods come."},
    {"ranked", CHOICE(ranked, "PODS", "all", choices_ranked), SIMULATE,
     .help = "Whose nodes the extender ranks; kube-scheduler's own scores (LeastAllocated and "
             "BalancedAllocation) decide for the others, and between equals."},
    {"extender-weight", INT(weight, "N", "100", 1, 1000000), SIMULATE,
     .help = "The weight of the extender in kube-scheduler's configuration."},
    {"jobs", INT(jobs, "N", "0", 0, 1024), SIMULATE, .letter = 'j',
     .help = "Runs at a time; 0: as many as there are processors."},
    {"cluster-out", PATH(cluster_out, "FILE", ""), SIMULATE,
     .help = "Write the cluster as it is in the end, for --snapshot. For one policy and one seed."},
    {"times", BOOL(times, "true"), SIMULATE,
     .help = "Show how much CPU time decisions took: all calls about a pod, with their JSON. "
             "--times=false leaves out what differs from run to run."},
};
/* clang-format on */

const struct section section_simulate = {
    .name = "simulate",
    .title = "Simulating",
    ROWS(rows),
};
