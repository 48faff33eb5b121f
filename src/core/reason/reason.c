/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reason/reasons.h"

#include <glib.h>

/* Users grep for the first words of the gpushare texts; they stay a prefix. */
#define INSUFFICIENT "Insufficient GPU Memory in one device"

static const struct reason_info table[REASON_N] = {
    [REASON_NONE] = {"none", "", true},
    [REASON_NODE_UNKNOWN] = {"node_unknown", "The node is not yet known to gpuledger", false},
    [REASON_NOT_GPU_SHARE] = {"not_gpu_share", "The node is not for GPU share, need skip", false},
    [REASON_NODE_LIMIT] = {"node_limit",
                           "The node has more GPUs than gpuledger serves on one node: a limit of "
                           "gpuledger, not of the node",
                           false},
    [REASON_OTHER_DIALECT] = {"other_dialect",
                              "The node shares its GPUs in another way than the pod asks for",
                              false},
    [REASON_INSUFFICIENT_MEMORY] = {"insufficient_memory", INSUFFICIENT, true},
    [REASON_UNLIMITED] = {"unlimited",
                          "A container of the pod switches its limits off, so it needs GPUs that "
                          "have no other holder",
                          true},
    [REASON_CARD_TOO_SMALL] = {"card_too_small",
                               INSUFFICIENT ": the request is larger than any card of the node",
                               false},
    [REASON_CARD_UNHEALTHY] = {"card_unhealthy",
                               INSUFFICIENT ": the cards large enough are unhealthy", false},
    [REASON_CARD_CLOSED] = {"card_closed",
                            INSUFFICIENT ": the cards large enough are closed to new pods", false},
    [REASON_INSUFFICIENT_CORE] = {"insufficient_core", "Insufficient GPU core in one device", true},
    [REASON_INSUFFICIENT_DEVICES] = {"insufficient_devices", "Insufficient GPU devices", true},
    [REASON_CHANGING] =
        {"changing",
         "The node is being changed to another configuration of its GPU plugin, and "
         "gives no GPU until both agree",
         false},
    [REASON_WITHHELD] =
        {"withheld",
         "Insufficient GPU devices: those that are left may all be on one GPU, which "
         "serves no more pods",
         true},
    [REASON_DEVICES_AT_ONCE] =
        {"devices_at_once",
         "The node's GPU plugin gives a container fewer devices at a time than "
         "the pod asks for",
         false},
    [REASON_SHARED_MEMORY] =
        {"shared_memory",
         "The pods that may share one GPU of the node want more memory than it has", true},
    [REASON_NO_SLOT] = {"no_slot", "The GPUs with room have as many holders as they may", true},
    [REASON_NODE_SLOTS] = {"node_slots",
                           "The GPUs with room have as many holders as an annotation of the node "
                           "lets them",
                           true},
    [REASON_OTHER_USE] = {"other_use",
                          "The node's GPUs are in use by pods that share them in another way",
                          true},
    [REASON_CARD_NUMBERS] = {"card_numbers",
                             "Pods on the node number its GPUs in another way, and no annotation "
                             "card-order of gpuledger says how",
                             true},
    [REASON_OTHER_TENANT] = {"other_tenant",
                             "The GPUs with room are shared by pods of another namespace", true},
    [REASON_OTHER_CLASS] = {"other_class",
                            "The GPUs with room have holders that the pod's class shares none with",
                            true},
    [REASON_TERMS] = {"terms", "The node has no GPU of the kind that the pod asks for", false},
    [REASON_ISOLATION] = {"isolation",
                          "The node does not keep pods on one GPU apart as well as the pod asks",
                          false},
    [REASON_CARD_COUNT] = {"card_count", "The node has fewer GPUs than the pod asks for", false},
    [REASON_SEVERAL_GPU_CONTAINERS] =
        {"several_gpu_containers",
         "The node's GPU share plugin cannot serve several GPU containers of one pod", false},
    [REASON_GPU_INIT_CONTAINER] =
        {"gpu_init_container",
         "The node's GPU share plugin cannot serve GPU memory in an init container", false},
    [REASON_CORE_STEP] =
        {"core_step",
         "The node's GPU plugin gives parts of one GPU, or whole GPUs, but no part "
         "beside a whole",
         false},
    [REASON_CORE_WITHOUT_MEMORY] =
        {"core_without_memory",
         "The node's GPU plugin gives no part of a GPU to a container without GPU memory", false},
    [REASON_MEMORY_WITHOUT_CORE] =
        {"memory_without_core",
         "The node's GPU plugin gives no GPU to a container that asks for GPU memory only", false},
    [REASON_CORE_LIMIT] =
        {"core_limit",
         "The pod's limit of GPU core is not a whole number, or is below what it asks for", false},
    [REASON_UNFORESEEN_CARD] =
        {"unforeseen_card",
         "The node's GPU plugin cannot serve a container that shares a GPU after one that takes "
         "whole GPUs",
         false},
    [REASON_MIG_MODE] =
        {"mig_mode", "The node's GPUs are in MIG mode, and how its plugin cuts them is not known",
         false},
    [REASON_NO_MIG_PLACE] =
        {"no_mig_place",
         "No MIG instance as large as the pod asks for fits beside those on the node's GPUs", true},
    [REASON_OVERSUBSCRIBED] = {"oversubscribed",
                               INSUFFICIENT
                               ": what is left is oversubscribed, which pods have to accept",
                               true},
    [REASON_CLASS_GROUP] = {"class_group",
                            "The pod's class is for pods of a group, and the pod names none",
                            false},
    [REASON_ANNOTATIONS] =
        {"annotations", "The pod's annotations leave too little room for what a GPU needs there",
         false},
    [REASON_QUOTA] = {"quota",
                      "The namespace may not have that much of the node's GPUs: ExceedsGPUQuota",
                      false},
    [REASON_RESOURCE_QUOTA] =
        {"resource_quota",
         "The namespace's ResourceQuota leaves less of GPUs than the pod asks for", false},
    [REASON_QUOTA_MAX] = {"quota_max",
                          "The namespace may not have more of GPUs than its quota's max", false},
    [REASON_QUOTA_LENT] =
        {"quota_lent",
         "The namespace has its quota's min of GPUs, and others need what it would borrow", false},
    [REASON_QUOTA_UNRECLAIMABLE] =
        {"quota_unreclaimable",
         "The namespace has its quota's min of GPUs, and more only by pods that can be taken back",
         false},
    [REASON_QUOTA_UNKEPT] =
        {"quota_unkept",
         "A quota of the pod's namespace cannot be kept, so its pods get none of what it limits",
         false},
    [REASON_QUOTA_COUNTING] =
        {"quota_counting",
         "What pods hold is still being added up for the quotas of the pod's namespace", false},
    [REASON_EARLIER_POD] = {"earlier_pod",
                            "The room on the node is left to a pod that has waited for longer",
                            false},
    [REASON_AWAITING_ASSIGNMENT] = {"awaiting_assignment",
                                    "A pod of the same size on the node still waits for its GPU",
                                    false},
    [REASON_AWAITING_TURN] =
        {"awaiting_turn",
         "Another pod on the node still waits for its GPU, and its GPU plugin serves one at a time",
         false},
    [REASON_PROMISE_STANDS] =
        {"promise_stands",
         "The node's GPU plugin may give the pod a GPU that another pod was promised", false},
    [REASON_PLUGIN_AWAY] = {"plugin_away",
                            "The node's GPU plugin is not registered with kubelet just now", false},
    [REASON_PLUGIN_SILENT] = {"plugin_silent",
                              "The node's GPU plugin has stopped reporting its cards", false},
    [REASON_PLACED_ELSEWHERE] = {"placed_elsewhere", "The pod holds a GPU on another node", false},
    [REASON_SPOKEN_FOR] = {"spoken_for",
                           "Pods that wait for the node's GPU plugin take the room that is left",
                           false},
    [REASON_GANG_PLACE] = {"gang_place", "The pod's group has a place for it on another node",
                           false},
    [REASON_GANG_UNKNOWN] = {"gang_unknown",
                             "Nothing says how many pods the pod's group needs at least", false},
    [REASON_GANG_FEW] = {"gang_few", "The pod's group has fewer pods than it needs", false},
    [REASON_GANG_NO_ROOM] = {"gang_no_room", "There is no room for the pod's group as a whole",
                             false},
    [REASON_GANG_BUSY] = {"gang_busy", "Another group of pods is being placed", false},
    [REASON_GANG_BACKOFF] = {"gang_backoff",
                             "The pod's group did not come in time, and is left out for a while",
                             false},
    [REASON_GANG_CAPPED] = {"gang_capped",
                            "The namespace has too many groups of pods, or too large ones", false},
    [REASON_GANG_WORK] = {"gang_work",
                          "Looking for places for the namespace's groups of pods takes too long",
                          false},
    [REASON_GANG_PLUGIN] = {"gang_plugin",
                            "The GPU plugins of the nodes cannot take the pods of the pod's group "
                            "in time",
                            false},
    [REASON_GANG_WAITING] = {"gang_waiting", "The other pods of the pod's group have yet to come",
                             false},
    [REASON_GANG_LOST] = {"gang_lost", "The place that the pod's group had for it is gone", false},
    [REASON_WORK_LIMIT] = {"work_limit",
                           "Looking for GPUs for all of the pod's containers takes too long here "
                           "for now",
                           true},
    [REASON_OTHERS_COMING] =
        {"others_coming",
         "Other pods are on their way to the node's GPU plugin, and another node takes the pod "
         "sooner",
         false},
};

/* Written once, before any number of them is known to another thread. */
static const struct reason_info *more;
static gint n_more;

void reasons_extend(const struct reason_info *rows, unsigned n)
{
    more = rows;
    g_atomic_int_set(&n_more, (gint)n);
}

unsigned reasons_count(void)
{
    return REASON_N + (unsigned)g_atomic_int_get(&n_more);
}

const struct reason_info *reason_info(enum reason reason)
{
    const unsigned number = reason;

    if (number >= REASON_N && number < reasons_count())
        return &more[number - REASON_N];
    return &table[number < REASON_N ? number : REASON_NONE];
}
