/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate/peers.h"

#include <stddef.h>

#define NODEPORT "manifests/overlays/nodeport"

static const struct peer_step nothing[] = {{NULL, NULL}};

/* --- gpushare --------------------------------------------------------------------------------- */

static const char *const gpushare_changes[] = {
    "Pods with several GPU containers, or a GPU init container, are refused with a reason; so far "
    "they were placed, and their device plugin failed them.",
    "Pods of one size wait inside bind, seconds each, until the plugin has served the one before "
    "them on that node; so far it could give one the card of another.",
    NULL,
};

static const struct peer_step gpushare_configure[] = {
    {"Of its own extender entry nothing stays: path and port may be the same, but gpuledger asks "
     "for "
     "kube-scheduler's certificate. Who wants to change no configuration puts gpuledger's image "
     "under "
     "its manifest instead: manifests/drop-in.",
     NULL},
    {NULL, NULL},
};

/* --- HAMi --------------------------------------------------------------------------------------- */

static const char *const hami_changes[] = {
    "There is no webhook: containers must name nvidia.com/gpu themselves where they ask for memory "
    "or cores of it, and pods keep the scheduler that they name.",
    "Cards: HAMi spreads pods over a node's cards unless told otherwise, gpuledger packs them. "
    "--policy=spread is as there; the pods' annotation hami.io/gpu-scheduler-policy holds in both.",
    "ResourceQuotas by limits.nvidia.com/gpumem and gpucores count with --hami-resource-quotas "
    "only.",
    NULL,
};

static const struct peer_step hami_first[] = {
    {"Take its webhook away, or new pods go on naming its scheduler.",
     "kubectl get mutatingwebhookconfigurations | grep -i -e hami -e vgpu\n"
     "kubectl delete mutatingwebhookconfiguration NAME"},
    {NULL, NULL},
};

static const struct peer_step hami_back[] = {
    {"Apply its chart again, which brings the webhook back. It counts the pods that gpuledger has "
     "placed: their annotations are those that it writes itself.",
     "helm upgrade --install hami hami-charts/hami -n kube-system -f YOUR-VALUES.yaml"},
    {NULL, NULL},
};

/* --- gpu-admission ------------------------------------------------------------------------------ */

static const char *const admission_changes[] = {
    "filter writes nothing any more: bind picks the card. So kube-scheduler's entry needs bindVerb "
    "and prioritizeVerb.",
    "Pods are bound one at a time on each node: the next one waits until kubelet has started the "
    "last, so that gpu-manager and the ledger take the same card.",
    "If gpu-manager is older than its last commits, say so: --tencent-gpu-manager.",
    NULL,
};

static const struct peer_step admission_back[] = {
    {"gpu-admission counts the pods that gpuledger has placed: it reads the same annotations.",
     NULL},
    {NULL, NULL},
};

/* --- Volcano ------------------------------------------------------------------------------------ */

static const char *const volcano_changes[] = {
    "Queues, fair share and PodGroups of Volcano have no counterpart. Pods that need them stay "
    "with "
    "Volcano, and go to other nodes than gpuledger's: it counts them, but Volcano does not ask it.",
    "Pods that name the scheduler volcano are not bound by gpuledger, unless --scheduler-names has "
    "it.",
    NULL,
};

static const struct peer_step volcano_first[] = {
    {"Keep Volcano off the GPU nodes that gpuledger is to serve, or two schedulers give away the "
     "same "
     "cards. Volcano itself may go on with other pods.",
     "kubectl taint nodes NODE gpuledger.io/served=true:NoSchedule"},
    {NULL, NULL},
};

static const struct peer_step volcano_configure[] = {
    {"Pods for these nodes need a toleration of that taint and no schedulerName.", NULL},
    {NULL, NULL},
};

static const struct peer_step volcano_back[] = {
    {"Take the taint off.", "kubectl taint nodes NODE gpuledger.io/served-"},
    {NULL, NULL},
};

/* --- elastic-gpu -------------------------------------------------------------------------------- */

static const char *const elastic_changes[] = {
    "Paths and port are those of elastic-gpu-scheduler; its weight of 1 hardly counts, 13 does.",
    "Pods with GPU init containers, and several cards together with memory, are refused: the agent "
    "cannot serve them.",
    NULL,
};

static const struct peer_step elastic_back[] = {
    {"elastic-gpu-scheduler finds the pods that it has to count by a label, which gpuledger does "
     "not "
     "write: write it, for pods of every release that you run, or it gives their cards away again.",
     "kubectl get pods -A -o json | jq -r '.items[] | . as $p | .metadata.annotations // {} | "
     "keys[]"
     " | "
     "select(test(\"^elasticgpu\\\\.(io|com)/assumed$|^nano-gpu\\\\.io/gpu$|^nano-gpu/assume$\"))"
     " | \"\\($p.metadata.namespace) \\($p.metadata.name) \\(.)\"' |\n"
     "    while read -r namespace pod key; do kubectl -n \"$namespace\" label pod \"$pod\" "
     "\"$key=true\" "
     "--overwrite; done"},
    {NULL, NULL},
};

const struct peer peers[] = {
    {
        .name = "gpushare",
        .title = "Aliyun's gpushare-scheduler-extender",
        .dialects = {"gpushare"},
        .schedulers = {"gpushare-schd-extender", "gpushare-sche", "gpushare-installer"},
        .node_sides = {"gpushare-device-plugin"},
        .overlay = NODEPORT,
        .changes = gpushare_changes,
        .first = nothing,
        .configure = gpushare_configure,
        .back = nothing,
    },
    {
        .name = "hami",
        .title = "HAMi, or 4paradigm's vGPU scheduler",
        .dialects = {"hami", "4paradigm"},
        .schedulers = {"hami-scheduler", "vgpu-scheduler", "k8s-vdevice-scheduler"},
        .node_sides = {"hami-device-plugin", "vgpu-device-plugin"},
        .scheduler_name = "hami-scheduler",
        .overlay = "manifests/overlays/hami",
        .changes = hami_changes,
        .first = hami_first,
        .configure = nothing,
        .back = hami_back,
    },
    {
        .name = "gpu-admission",
        .title = "Tencent's gpu-admission",
        .dialects = {"tencent"},
        .schedulers = {"gpu-admission", "gpu-quota-admission"},
        .node_sides = {"gpu-manager"},
        .overlay = NODEPORT,
        .changes = admission_changes,
        .first = nothing,
        .configure = nothing,
        .back = admission_back,
    },
    {
        .name = "volcano",
        .title = "Volcano's scheduler",
        .dialects = {"volcano", "volcano-vgpu"},
        .schedulers = {"volcano-scheduler", "vc-scheduler"},
        .node_sides = {"volcano-device-plugin", "volcano-vgpu-device-plugin"},
        .scheduler_name = "volcano",
        .group_key = "scheduling.k8s.io/group-name",
        .stays = true,
        .overlay = NODEPORT,
        .changes = volcano_changes,
        .first = volcano_first,
        .configure = volcano_configure,
        .back = volcano_back,
    },
    {
        .name = "elastic",
        .title = "elastic-gpu-scheduler, or nano-gpu-scheduler",
        .dialects = {"elastic", "elastic-com", "nano-io", "nano"},
        .schedulers = {"elastic-gpu-scheduler", "nano-gpu-scheduler"},
        .node_sides = {"elastic-gpu-agent", "nano-gpu-agent"},
        .overlay = NODEPORT,
        .changes = elastic_changes,
        .first = nothing,
        .configure = nothing,
        .back = elastic_back,
    },
    {.name = NULL},
};
