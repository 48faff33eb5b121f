/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/quotas_section.h"

#include "core/section/rows.h"

#define SETTINGS struct quotas_settings

/* clang-format off */
static const struct option rows[] = {
    {"quota-model-label", LIST(model_label, "LABEL", "", item_list_label),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "Keep namespaces to the quotas of the ConfigMap kube-system/gpuquota, as "
             "gpu-quota-admission does: so many GPUs on nodes whose label of this name says the "
             "model. Without it there are no quotas."},
    {"quota-pool-label", LIST(pool_label, "LABEL", "", item_list_label),
     FOR(COMMAND_SERVE | COMMANDS_ASKING), .needs = "quota-model-label",
     .help = "The node label that quotas mean by a pool."},
    {"hami-resource-quotas", BOOL(hami, "false"),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "Keep namespaces to ResourceQuotas with HAMi's keys limits.nvidia.com/gpumem and "
             "limits.nvidia.com/gpucores, as HAMi's scheduler does: the API server counts nothing "
             "under them."},
    {"elastic-quotas", BOOL(elastic, "false"),
     FOR(COMMAND_SERVE | COMMANDS_MOVING | COMMAND_QUOTAS | COMMANDS_ASKING), .flags = OPTION_COMMON,
     .help = "Keep namespaces to ElasticQuotas (scheduling.x-k8s.io/v1alpha1): no more than max, and "
             "above min only what others do not need within theirs. ResourceQuotas with the "
             "annotations gpuledger.io/min and gpuledger.io/max are read likewise. Keys are the "
             "resources of pods, and gpuledger.io/gpus and gpuledger.io/gpu-memory for all of them."},
    {"quota-tree-namespaces", LIST(tree_namespaces, "NAMESPACE,...", "", item_list_names),
     FOR(COMMAND_SERVE | COMMANDS_MOVING | COMMAND_QUOTAS | COMMANDS_ASKING), .needs = "elastic-quotas",
     .help = "With --elastic-quotas: the namespaces whose quotas may list other namespaces, and have a "
             "parent in another one of these. Only the administrator should be able to write quotas "
             "there. Others limit their own namespace alone."},
};
/* clang-format on */

const struct section section_quotas = {
    .name = "quotas",
    .title = "Quotas",
    ROWS(rows),
    .recorded = true,
};
