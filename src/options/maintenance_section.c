/* SPDX-License-Identifier: Apache-2.0 */
#include "options/maintenance_section.h"

#include "core/section/rows.h"
#include "migrate/peers.h"

#define SETTINGS struct maintenance_settings

static bool choices_peer(size_t i, struct choice *ret_choice)
{
    if (!peers[i].name)
        return false;
    *ret_choice = (struct choice){peers[i].name, peers[i].title, (int64_t)i};
    return true;
}

/* clang-format off */
static const struct option rows[] = {
    {"from", CHOICE(from, "SCHEDULER", "gpushare", choices_peer), FOR(COMMAND_MIGRATE),
     .flags = OPTION_FLAG_ONLY | OPTION_REQUIRED,
     .help = "The scheduler whose place gpuledger takes. It must be said."},
    {"dry-run", BOOL(dry_run, "false"), FOR(COMMANDS_CORDONING), .flags = OPTION_FLAG_ONLY,
     .help = "Show what would be written, and write nothing."},
    {"empty", TEXT(empty, "NODE[/CARD]", ""), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is that no pod with a GPU is on this node or card, instead of room for a pod."},
    {"group", TEXT(group, "NAMESPACE/NAME", ""), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is room for all that a group of pods still needs, at once or not at all. With "
             "--gangs only."},
    {"defragment", TEXT(defragment, "GPUS", ""), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is so much less free GPU that the pods that are expected cannot use, such as 1.5: "
             "the metric gpuledger_fragmented_gpus."},
    {"waiting", TEXT(waiting, "TIME", ""), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is room for the pods that have had no node for so long, such as 5m: the first "
             "for which moves make any. With --apply for one after the other, until nobody is left "
             "whom moves help."},
    {"only", TEXT(only, "PODS", ""), FOR(COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "Move these pods and no others, each NAMESPACE/NAME, with commas between, as explain names "
             "them."},
    {"end", BOOL(end, "false"), FOR(COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "With --only, for a pod of the cluster: end those pods instead, wherever their successors "
             "then find room, if anywhere."},
    {"max-moves", INT(max_moves, "N", "8", 1, 64), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many pods may be moved for the goal, at most."},
    {"max-per-workload", INT(max_per_workload, "N", "0", 0, 64), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of these may be of one controller, such as a ReplicaSet; 0: any number. They "
             "are moved one after the other in any case."},
    {"max-per-node", INT(max_per_node, "N", "0", 0, 64), FOR(COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of these may leave one node; 0: any number."},
    {"max-per-namespace", INT(max_per_namespace, "N", "0", 0, 64), FOR(COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of the pods that are moved, or end for a switch, may be of one namespace; 0: any "
             "number, or what --calendar says."},
    {"max-per-hour", INT(max_per_hour, "N", "0", 0, 3600), FOR(COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: how many may be moved, or end for a switch, in any hour, with those of all other "
             "plans, or switches, that have such a bound; the next one waits. 0: any number, or what --calendar says."},
    {"moves-namespace", NAMESPACE(moves_namespace, "kube-system"), FOR(COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "gpuledger's own namespace, in which the ConfigMap gpuledger-moves has the moves of the last hour. "
             "It is read and written where there is a bound for the hour. With --elastic-quotas, the ConfigMap "
             "gpuledger-claims there says which room is kept for others."},
    {"window", TEXT(window, "WINDOW", ""), FOR(COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: no move begins outside of it: \"22:00-06:00\", or \"Mon-Fri 22:00-06:00 "
             "Europe/Berlin\". Without a zone it is UTC."},
    {"apply", BOOL(apply, "false"), FOR(COMMANDS_MOVING | COMMAND_SWITCH), .flags = OPTION_FLAG_ONLY,
     .help = "Evict the pods, one after the other, after the card or node that is to be emptied was "
             "cordoned. Without it nothing is written."},
    {"mig-configs", TEXT(mig_configs, "NAMESPACE/NAME", ""), FOR(COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "The ConfigMap of mig-manager's configurations, of which mig.config=auto may choose beside "
             "the layouts of --calendar."},
    {"force", BOOL(force, "false"), FOR(COMMANDS_MOVING), .flags = OPTION_FLAG_ONLY,
     .help = "Also evict pods that nobody makes again, and in a drain those that fit nowhere else."},
    {"evict-timeout", DURATION(evict_timeout_ms, "10m", 1000, 24 * 60 * MINUTE_MS),
     FOR(COMMANDS_MOVING), .flags = OPTION_FLAG_ONLY,
     .help = "How long one pod may take: to wait for a PodDisruptionBudget, to end, and until its "
             "successor is Ready."},
    {"wait-for-nodes", DURATION(wait_for_nodes_ms, "0s", 0, 24 * 60 * MINUTE_MS),
     FOR(COMMANDS_MOVING), .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: while cluster-autoscaler or Karpenter brings nodes, wait so long at most "
             "before anything is looked at or evicted. For the pod that is to find room, if there is "
             "one in the cluster; else for anybody."},
};
/* clang-format on */

const struct section section_maintenance = {
    .name = "maintenance",
    .title = "Taking out of service",
    ROWS(rows),
};
