/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the table of options (options/rest_section.c) that are about asking a running extender;
 * included there and nowhere else.
 */
/* clang-format off */
    {"server", TEXT(server, "URL", "http://127.0.0.1:39998"), IN(CLIENT, CLIENT), .letter = 's',
     .help = "The --ops-listen address of a running extender."},
    {"token-file", PATH(token_file, "FILE", ""), IN(CLIENT, CLIENT),
     .help = "The token that the extender asks for, if it was started with --ops-token-file."},
    {"ca-file", PATH(ca_file, "FILE", ""), IN(CLIENT, CLIENT),
     .help = "The CAs that may have signed the extender's certificate, in PEM form, if --server is "
             "an https:// address; without it, those of the system."},
    {"service", TEXT(service, "NAMESPACE/NAME", ""), IN(CLIENT, CLIENT),
     .help = "Reach the extender through this Service of the current context, by 'kubectl "
             "port-forward', with the token and the CA of the Secret of the same name unless "
             "--token-file and --ca-file name others. kubectl gpuledger does so by itself, with "
             "kube-system/gpuledger-ops."},
    {"namespace", NAMESPACE(pods_namespace, ""),
     IN(CLIENT, COMMAND_PODS), .letter = 'n', .flags = OPTION_FLAG_ONLY,
     .help = "Only pods of this namespace; without it, those of all."},
    {"namespace", NAMESPACE(pod_namespace, ""),
     IN(CLIENT, COMMAND_EXPLAIN | COMMAND_PLAN), .letter = 'n', .flags = OPTION_FLAG_ONLY,
     .help = "The namespace of the pod that is named, if its name is given without."},
    {"all-namespaces", BOOL(all_namespaces, "false"),
     IN(CLIENT, COMMAND_PODS), .letter = 'A', .flags = OPTION_FLAG_ONLY,
     .help = "The pods of all namespaces, as without --namespace."},
    {"filename", PATH(filename, "FILE", ""),
     IN(CLIENT, PLANS | COMMAND_PLAN), .flags = OPTION_FLAG_ONLY | OPTION_INPUT, .letter = 'f',
     .help = "A pod that is not in the cluster, as JSON or YAML, or what makes pods from a "
             "template: a Deployment, a StatefulSet, a Job; '-' is standard input."},
    {"replicas", INT(replicas, "N", "0", 0, 1000000),
     IN(CLIENT, COMMAND_FIT), .flags = OPTION_FLAG_ONLY,
     .help = "How many pods are to fit; 0: as many as the file says, else as many as there is room "
             "for, of which 10000 are tried at most."},
    {"drain", LIST(drain, "NODE[/CARD]", "", item_list_names),
     IN(CLIENT, COMMAND_FIT), .flags = OPTION_FLAG_ONLY | OPTION_MANY,
     .help = "As if this node or card were taken out of service, and its pods had to go elsewhere. May "
             "be given several times."},
    {"template", PATH(template, "FILE", ""), IN(CLIENT, COMMAND_FIT), .flags = OPTION_FLAG_ONLY,
     .help = "A Node, as JSON or YAML, of which there may be as many more as are needed, 1000 at "
             "most."},
    {"output", CHOICE(output, "FORMAT", "table", choices_output),
     IN(CLIENT, CLIENT | COMMAND_SIMULATE | COMMAND_REPLAY | COMMAND_MIGRATE | MOVES | CORDONS | COMMAND_SWITCH), .flags = OPTION_FLAG_ONLY, .letter = 'o',
     .rest = offsetof(struct config, output_template),
     .help = "How to print the answer."},
    {"sort-by", TEXT(sort_by, "COLUMN", ""), IN(CLIENT, ROWS_OF), .flags = OPTION_FLAG_ONLY,
     .help = "Sort the rows by the column with this heading, numbers by their size; with a minus "
             "before it, the largest first."},
    {"watch", BOOL(watch, "false"), IN(CLIENT, ROWS_OF), .flags = OPTION_FLAG_ONLY, .letter = 'w',
     .help = "Go on asking, every two seconds, and print the rows that have changed; top draws its "
             "table anew."},
    {"color", CHOICE(color, "WHEN", "auto", choices_color), IN(CLIENT, ROWS_OF | PLANS | COMMAND_INSPECT | COMMAND_AUDIT | COMMAND_MIGRATE | MOVES | CORDONS | COMMAND_SIMULATE | COMMAND_SWITCH),
     .help = "Whether tables have colours."},
};

static const struct option maintenance_rows[] = {
    {"from", CHOICE(from, "SCHEDULER", "gpushare", choices_peer), IN(MAINTENANCE, COMMAND_MIGRATE),
     .flags = OPTION_FLAG_ONLY | OPTION_REQUIRED,
     .help = "The scheduler whose place gpuledger takes. It must be said."},
    {"dry-run", BOOL(dry_run, "false"), IN(MAINTENANCE, CORDONS), .flags = OPTION_FLAG_ONLY,
     .help = "Show what would be written, and write nothing."},
    {"empty", TEXT(empty, "NODE[/CARD]", ""), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is that no pod with a GPU is on this node or card, instead of room for a pod."},
    {"group", TEXT(group, "NAMESPACE/NAME", ""), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is room for all that a group of pods still needs, at once or not at all. With "
             "--gangs only."},
    {"defragment", TEXT(defragment, "GPUS", ""), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is so much less free GPU that the pods that are expected cannot use, such as 1.5: "
             "the metric gpuledger_fragmented_gpus."},
    {"waiting", TEXT(waiting, "TIME", ""), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "The goal is room for the pods that have had no node for so long, such as 5m: the first "
             "for which moves make any. With --apply for one after the other, until nobody is left "
             "whom moves help."},
    {"only", TEXT(only, "PODS", ""), IN(MAINTENANCE, COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "Move these pods and no others, each NAMESPACE/NAME, with commas between, as explain names "
             "them."},
    {"end", BOOL(end, "false"), IN(MAINTENANCE, COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "With --only, for a pod of the cluster: end those pods instead, wherever their successors "
             "then find room, if anywhere."},
    {"max-moves", INT(max_moves, "N", "8", 1, 64), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many pods may be moved for the goal, at most."},
    {"max-per-workload", INT(max_per_workload, "N", "0", 0, 64), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of these may be of one controller, such as a ReplicaSet; 0: any number. They "
             "are moved one after the other in any case."},
    {"max-per-node", INT(max_per_node, "N", "0", 0, 64), IN(MAINTENANCE, COMMAND_PLAN),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of these may leave one node; 0: any number."},
    {"max-per-namespace", INT(max_per_namespace, "N", "0", 0, 64), IN(MAINTENANCE, COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "How many of the pods that are moved, or end for a switch, may be of one namespace; 0: any "
             "number, or what --calendar says."},
    {"max-per-hour", INT(max_per_hour, "N", "0", 0, 3600), IN(MAINTENANCE, COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: how many may be moved, or end for a switch, in any hour, with those of all other "
             "plans, or switches, that have such a bound; the next one waits. 0: any number, or what --calendar says."},
    {"moves-namespace", NAMESPACE(moves_namespace, "kube-system"), IN(MAINTENANCE, COMMAND_PLAN | COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "gpuledger's own namespace, in which the ConfigMap gpuledger-moves has the moves of the last hour. "
             "It is read and written where there is a bound for the hour. With --elastic-quotas, the ConfigMap "
             "gpuledger-claims there says which room is kept for others."},
    {"window", TEXT(window, "WINDOW", ""), IN(MAINTENANCE, COMMAND_PLAN), .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: no move begins outside of it: \"22:00-06:00\", or \"Mon-Fri 22:00-06:00 "
             "Europe/Berlin\". Without a zone it is UTC."},
    {"apply", BOOL(apply, "false"), IN(MAINTENANCE, MOVES | COMMAND_SWITCH), .flags = OPTION_FLAG_ONLY,
     .help = "Evict the pods, one after the other, after the card or node that is to be emptied was "
             "cordoned. Without it nothing is written."},
    {"mig-configs", TEXT(mig_configs, "NAMESPACE/NAME", ""), IN(MAINTENANCE, COMMAND_SWITCH),
     .flags = OPTION_FLAG_ONLY,
     .help = "The ConfigMap of mig-manager's configurations, of which mig.config=auto may choose beside "
             "the layouts of --calendar."},
    {"force", BOOL(force, "false"), IN(MAINTENANCE, MOVES), .flags = OPTION_FLAG_ONLY,
     .help = "Also evict pods that nobody makes again, and in a drain those that fit nowhere else."},
    {"evict-timeout", DURATION(evict_timeout_ms, "10m", 1000, 24 * 60 * MINUTE_MS),
     IN(MAINTENANCE, MOVES), .flags = OPTION_FLAG_ONLY,
     .help = "How long one pod may take: to wait for a PodDisruptionBudget, to end, and until its "
             "successor is Ready."},
    {"wait-for-nodes", DURATION(wait_for_nodes_ms, "0s", 0, 24 * 60 * MINUTE_MS),
     IN(MAINTENANCE, MOVES), .flags = OPTION_FLAG_ONLY,
     .help = "With --apply: while cluster-autoscaler or Karpenter brings nodes, wait so long at most "
             "before anything is looked at or evicted. For the pod that is to find room, if there is "
             "one in the cluster; else for anybody."},
