/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/views.h"
#include "options/command.h"

#include <stdio.h>
#include <string.h>

#define LOCALLY                                                                                    \
    "With --kubeconfig, --context or --snapshot on the command line no extender is asked: the "    \
    "cluster is read and looked at alone."

const struct command commands[] = {
    {.name = "serve",
     .bit = COMMAND_SERVE,
     .words = "",
     .summary = "Answer kube-scheduler: the extender itself",
     .description =
         "Keeps a ledger of who holds how much of which GPU, answers kube-scheduler's filter and "
         "bind calls from it, and writes card and node into a pod in one Binding. The node side "
         "of gpushare finds its pods as before.\n\n"
         "The cluster is an API server (--kubeconfig, or the service account of the pod it runs "
         "in) or a saved one (--snapshot), for which no cluster is needed. What is in the "
         "annotations of the pods is all the state there is: it can be stopped and started at "
         "any time.\n\n"
         "SIGTERM or SIGINT: readiness fails at once, calls under way are answered, then it "
         "ends; the same signal again ends it at once. After SIGTERM it goes on answering for "
         "--shutdown-delay before that; of several replicas, another one takes over meanwhile. "
         "SIGHUP: reads the configuration again, "
         "applies what can change while it runs and logs what needs a restart.",
     .run = serve_run},
    {.name = "nodes",
     .bit = COMMAND_NODES,
     .words = "[NODE]",
     .max_words = 1,
     .summary = "Show what each node's cards hold",
     .description =
         "Asks a running extender. Each row is a node: what is used of each card, what "
         "is free on all of them together, and the largest pod that still fits on one.\n\n" LOCALLY,
     .run = nodes_run},
    {.name = "pods",
     .bit = COMMAND_PODS,
     .words = "",
     .summary = "Show which card each pod has, and how much of it",
     .description = "Asks a running extender. Each row is a pod that has a GPU: its cards, or its "
                    "devices by count, the memory of all its containers together, and whether its "
                    "node side has taken it.\n\n" LOCALLY,
     .run = pods_run},
    {.name = "quotas",
     .bit = COMMAND_QUOTAS,
     .words = "",
     .summary = "Show what namespaces may have, have, lend and borrow",
     .description =
         "Asks a running extender. Each row is a resource of a namespace that has a quota: "
         "what it is sure of (min), may have at most (max) and has, how much of its min "
         "others use, how much it has above it, and what its waiting pods ask for. Limits "
         "that are fixed have a max only.\n\n" LOCALLY,
     .run = quotas_run},
    {.name = "top",
     .bit = COMMAND_TOP,
     .words = "[namespaces|nodes|models]",
     .max_words = 1,
     .word_choices = usage_names,
     .summary = "Show who has most of the GPUs, and what is left",
     .description =
         "Asks a running extender. First the whole cluster in cards, whatever the dialect: "
         "handed out, free, free but of no use to the pods that are expected, out of service, and "
         "who has waited longest. Then a row for each namespace, node or model, the largest "
         "first. What a pod has of a card is the larger of its parts of memory and compute.\n\n"
         "With --watch the table is drawn anew every two seconds.\n\n" LOCALLY,
     .run = top_run},
    {.name = "inspect",
     .bit = COMMAND_INSPECT,
     .words = "[NODE]",
     .max_words = 1,
     .summary = "Show which pod holds what on which card",
     .description = "Asks a running extender. Each row is a card, with the pods on it.\n\n" LOCALLY,
     .run = inspect_run},
    {.name = "explain",
     .bit = COMMAND_EXPLAIN,
     .words = "[pod NAMESPACE/NAME]",
     .max_words = 2,
     .summary = "Say why a pod is where it is, or nowhere",
     .description =
         "Asks a running extender what filter answers for the pod, node by node, and why: nodes "
         "that refuse it for the same reason are one row, with the node that is closest to taking "
         "it and the numbers that decide there. --output=wide shows every node and card. Of a pod "
         "that has a GPU it tells which, since when, and who else is there; of one that would be "
         "taken, where it would go. Of one that is refused everywhere it tells which changes would "
         "admit it, or which two together, each of which it has tried, and whom preemption would "
         "end.\n\n"
         "The pod is one of the cluster, or one in a file (-f) that need not exist, a Deployment's "
         "or Job's, too. Nothing is changed anywhere.\n\n"
         "With --kubeconfig, --context or --snapshot on the command line no extender is asked: the "
         "cluster is read and looked at alone. The placement options should then be those that "
         "serve runs with.\n\n"
         "Nodes that kube-scheduler leaves out by itself are told as it sees them: cordons, "
         "taints, "
         "nodeSelector, nodeAffinity, CPU, memory and number of pods. What depends on other pods "
         "or "
         "on volumes is not looked at, and the answer says which of that the pod has.\n\n"
         "Exit status: 0 some node has the pod or takes it, or it asks for no GPU, 3 none takes "
         "it, "
         "1 it could not be found out.",
     .run = explain_run},
    {.name = "fit",
     .bit = COMMAND_FIT,
     .words = "",
     .summary = "Say how many pods fit, where, and after what",
     .description =
         "Places pods like the one in the file (-f), one after the other, on a copy of the ledger: "
         "as many as --replicas or the file says, else until nothing fits any more, and says on "
         "which nodes they end up and why one more does not fit.\n\n"
         "With --drain the pods of that node that have a GPU are placed on the others first; those "
         "that fit nowhere are named with the reason. With --template there may be more nodes like "
         "that one, for both, and the answer says how many are needed.\n\n"
         "Asks a running extender; with --kubeconfig, --context or --snapshot on the command line "
         "the cluster is looked at alone. Nothing is changed anywhere.\n\n"
         "Exit status: 0 all of it fits, 3 not all, 1 it could not be found out.",
     .run = fit_run},
    {.name = "audit",
     .bit = COMMAND_AUDIT,
     .words = "",
     .summary = "Check the ledger against the cluster",
     .description =
         "Has a running extender read the cluster afresh and compare it with its ledger, and shows "
         "what differs and why: how often each cause was found, then each pod with what the "
         "cluster and the ledger say of it.\n\n"
         "With --kubeconfig, --context or --snapshot on the command line no extender is asked: the "
         "cluster is looked at alone, for pods that others have bound, lost or edited annotations, "
         "cards that are gone or overbooked, and pods that their node side does not take.\n\n"
         "Exit status: 0 nothing found, 3 something found, 1 it could not be done.",
     .run = audit_run},
    {.name = "resume",
     .bit = COMMAND_RESUME,
     .words = "NODE",
     .max_words = 1,
     .summary = "Let a node take pods again that is left out",
     .description =
         "A node whose kubelet has rejected several pods is left out for a while (serve "
         "--reject-limit); 'audit' and 'explain' name it. This ends it at once, once kubelet and "
         "device plugin are known to work again.\n\n"
         "It asks one running extender. Of several replicas each counts for itself: there, set the "
         "node's annotation gpuledger.io/resume to any new value, which all of them see.",
     .run = resume_run},
    {.name = "cordon",
     .bit = COMMAND_CORDON,
     .words = "NODE[/CARD] ...",
     .max_words = 100,
     .summary = "Give no new pods to a card or a node",
     .description =
         "Who is there stays: drain moves them. A node is closed as kubectl cordon closes it. A "
         "card is named in the node's annotation gpuledger.io/cordoned-cards, with its UUID "
         "where the node lists one; gpuledger obeys that for every dialect. The card is also named "
         "in what other schedulers of the node's dialects read: an annotation of HAMi's, "
         "gpushare's ConfigMap of unhealthy cards.\n\n"
         "Asks the API server, no extender. Needs the right to get and patch nodes, and in "
         "kube-system to get, create and patch configmaps if the node is one of gpushare.",
     .run = cordon_run},
    {.name = "uncordon",
     .bit = COMMAND_UNCORDON,
     .words = "NODE[/CARD] ...",
     .max_words = 100,
     .summary = "Give new pods to a card or a node again",
     .description =
         "Takes back what cordon writes. A card that others have called unhealthy stays so. Asks "
         "the API server, no extender.",
     .run = uncordon_run},
    {.name = "switch",
     .bit = COMMAND_SWITCH,
     .words = "[NODE [LABEL=VALUE]]",
     .max_words = 2,
     .summary = "Let a node share its cards in another way, step by step",
     .description =
         "Shows which nodes are to be switched, by --calendar or an announcement, and how far that "
         "is; "
         "of one node with LABEL=VALUE what would be done, and how many pods with GPUs are there. "
         "LABEL is "
         "device-plugin.config or mig.config of a node of NVIDIA's plugin, or slots: how many "
         "holders a card takes at once where gpuledger chooses it (slots=4, slots=any). With "
         "mig.config=auto the layouts are compared that "
         "--calendar and --mig-configs name, by the pods that are known.\n\n"
         "With --apply the node takes no more pods with GPUs, those that are there are evicted, "
         "the "
         "label gets the value, and the node is given back when plugin, kubelet and labels agree. "
         "For slots only those are evicted that are too many on their card. "
         "What does not come about in time is rolled back; the node then keeps the taint "
         "gpuledger.io/switching until the annotation gpuledger.io/switch is taken away. It may be "
         "ended at any time and run again. Asks the API server alone.",
     .run = switch_run},
    {.name = "drain",
     .bit = COMMAND_DRAIN,
     .words = "NODE[/CARD] ...",
     .max_words = 100,
     .summary = "Show where the pods of a card or a node would go, and move them",
     .description =
         "Each pod that holds a GPU there is placed elsewhere on a copy of the ledger, one after "
         "the other, as its successor would be. With --apply the card or node is cordoned, and the "
         "pods are evicted in that order by the Eviction API: all are tried first (dryRun=All), a "
         "PodDisruptionBudget that has nothing to give is waited for, and the next pod goes when "
         "the successor of the last one is Ready. Pods of DaemonSets and kubelet's own stay; so do "
         "those that nobody makes again, unless --force is given. It stops at the first failure "
         "and says what it has left. kubectl drain moves pods without a GPU.\n\n"
         "Reads the cluster by itself; the placement options should be those that serve runs "
         "with. Exit status 3: some pod fits nowhere else, or has stayed.",
     .run = drain_command_run},
    {.name = "plan",
     .bit = COMMAND_PLAN,
     .words = "[NAMESPACE/POD]",
     .max_words = 1,
     .summary = "Show which pods to move so that a pod finds room, and move them",
     .description =
         "Looks for the fewest moves after which the pod fits on some node, or, with --group, all "
         "that a group still needs fit at once, or, with --empty, a node or card holds nobody, or, "
         "with --defragment, so much less GPU is free in pieces that nobody can use, or, with "
         "--waiting, one of those who wait fits; of as many moves, those of the smallest pods. "
         "Each "
         "step is "
         "shown with what it frees, where its successor finds room and what the next step waits "
         "for. Pods stay whose controller is a DaemonSet or that have none, that are of a group, "
         "that a PodDisruptionBudget keeps, or that carry an annotation of the descheduler, "
         "Koordinator, cluster-autoscaler or Karpenter by which they opt out.\n\n"
         "With --apply the first step is carried out, as drain does it: its eviction is tried "
         "(dryRun=All), sent, and waited for until the successor is Ready. Then the cluster is "
         "read again and the next plan made, until there is nothing left to do. It stops at the "
         "first failure, and when a step has not brought the goal closer. Run again, it goes on "
         "from there. Meanwhile room is kept for the pod and for the successors.\n\n"
         "Asks a running extender; with --kubeconfig, --context or --snapshot on the command line, "
         "and "
         "with --apply, the cluster is read and looked at alone. The placement options should then "
         "be "
         "those that serve runs with. Exit status: 0 the goal is, or can be, reached, 3 no such "
         "moves "
         "were found, 1 a failure.",
     .run = plan_command_run},
    {.name = "migrate",
     .bit = COMMAND_MIGRATE,
     .words = "",
     .summary = "Show how to take another scheduler's place, and what is in the way",
     .description =
         "Looks at a cluster whose GPUs another scheduler shares out (--from), and says what it "
         "found of "
         "it, what stands in the way (pods that gpuledger would refuse, cards that it cannot read, "
         "pods beyond what their card has), what will be different, the steps, and the way back. "
         "It "
         "changes nothing, and may be run as often as you like, also between the steps.\n\n"
         "Reads the cluster by itself, or a saved one with --snapshot; the options should be those "
         "that serve will run with.\n\n"
         "Exit status: 0 nothing stands in the way, 3 something does, 1 it could not be found out.",
     .run = migrate_run},
    {.name = "replay",
     .bit = COMMAND_REPLAY,
     .words = "FILE",
     .max_words = 1,
     .summary = "Decide again what a record holds, and compare",
     .description =
         "Plays a file that 'serve --record' has written: gives its events to a ledger of its own, "
         "in their order, makes each decision once more at the moment that the record names, and "
         "compares the answers byte by byte. No cluster is needed, and nothing is written.\n\n"
         "The first decision that differs is shown with its number, both answers and the node that "
         "it is about; --until with the number before it shows the whole ledger. What was recorded "
         "goes on in any case, so that each decision is judged by itself.\n\n"
         "With --policy: what would have been decided otherwise under that policy, each time in "
         "the "
         "cluster as it was.\n\n"
         "Exit status: 0 all decisions are equal, 3 some differ, 1 the file cannot be used.",
     .run = replay_run},
    {.name = "dialects",
     .bit = COMMAND_DIALECTS,
     .words = "",
     .summary = "Describe every way of sharing GPUs that is understood",
     .description = "What pods ask, what nodes say, what a bind writes, and what each node side "
                    "cannot serve, as Markdown.",
     .run = dialects_run},
    {.name = "simulate",
     .bit = COMMAND_SIMULATE,
     .words = "",
     .summary = "Try policies on a cluster and the pods that come to it",
     .description =
         "Lets pods come to a cluster one by one, through the same filter, prioritize and bind "
         "calls that kube-scheduler makes, and shows how much of the GPU is handed out before "
         "pods stop fitting, for each policy side by side.\n\n"
         "The cluster is a saved one (kubectl get nodes,pods -A -o json > cluster.json; "
         "--snapshot cluster.json), and its pods without a node are those that come, or those of "
         "--pods. Or both are of a GPU trace: --trace-nodes nodes.csv --trace-pods pods.csv.\n\n"
         "Of kube-scheduler's own part it knows what nodes have and pods request, and its scores "
         "for that, and where pods may go: node selectors and affinity, taints, cordons; "
         "not affinity between pods, topology spread or volumes.\n\n"
         "Columns: what was allocated when the pods that had come asked for 100% of the GPU, and "
         "at the end; when the first pod failed; how many failed in all, and of those that asked "
         "for a part of a card, for one, for several, for none; what is free in the end, on cards "
         "in use and on others; how much CPU time one pod's calls took.",
     .run = simulate_run},
    {.name = "certs",
     .bit = COMMAND_CERTS,
     .words = "",
     .summary = "Make the certificates and Secrets of an installation",
     .description =
         "Makes a CA, a certificate for the extender, one for kube-scheduler to call it with, and "
         "a "
         "token for whoever looks at the operations listener, keeps them in a folder, and prints "
         "the Secrets that the manifests want:\n\n"
         "  " PROGRAM " certs | kubectl apply -f -\n\n"
         "Secrets: gpuledger-tls (the extender's), gpuledger-kube-scheduler (kube-scheduler's; a "
         "control-plane node needs its three keys as files), gpuledger-ops (the token). The CA's "
         "key is in none of them.\n\n"
         "Run it again to renew what has less than a third of its time left; all else stays as it "
         "is. The extender takes changed Secrets while it runs; kube-scheduler reads its own "
         "certificate at its start.",
     .run = certs_run},
    {.name = "guard",
     .bit = COMMAND_GUARD,
     .words = "[own-writes]",
     .max_words = 1,
     .word_choices = guard_policies,
     .summary = "Print the policy that guards what pods were given",
     .description =
         "Prints a ValidatingAdmissionPolicy and its binding, for Kubernetes 1.30 and later: only "
         "the accounts and groups of the ConfigMap gpuledger-guard may set, change or remove the "
         "annotations and labels of pods by which schedulers and node sides say what a pod was "
         "given, or create a pod with spec.nodeName.\n\n"
         "manifests/overlays/guard is that, with the ConfigMap.\n\n"
         "With own-writes: a policy for gpuledger's own account instead. Of pods it may change the "
         "annotations that it and the dialects write, of Nodes its annotations, its taint, "
         "spec.unschedulable, the labels that a switch sets, and the dialects' locks and cordons. "
         "manifests/overlays/own-writes is that.",
     .run = guard_run},
    {.name = "completion",
     .bit = COMMAND_COMPLETION,
     .words = "bash|zsh|fish",
     .max_words = 1,
     .word_choices = completion_shells,
     .summary = "Print the completion script of a shell",
     .description = "For this bash: source <(" PROGRAM " completion bash). An installation puts "
                    "the scripts where the shells look for them.",
     .run = completion_run},
    {.name = "man",
     .bit = COMMAND_MAN,
     .words = "",
     .summary = "Print the manual page",
     .description = "As roff: " PROGRAM " man | man -l -",
     .run = manual_run},
    {.name = "version",
     .bit = COMMAND_VERSION,
     .words = "",
     .summary = "Print the version",
     .description = "The version of this program and of the libraries it runs with.",
     .run = version_run},
    {.name = "help",
     .bit = COMMAND_HELP,
     .words = "[COMMAND]",
     .max_words = 1,
     .summary = "Explain a command",
     .description = "The same as --help after the command.",
     .run = help_run},
    {.name = NULL},
};
