/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/dialects_section.h"

#include "core/section/rows.h"
#include "dialect/classes/classes.h"
#include "dialect/hami/hami_mig.h"
#include "dialect/nvidia/nvidia_replicas.h"
#include "dialect/profile/card_profile.h"

#define SETTINGS struct dialects_settings

static bool choices_isolation(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"none", "any card", ISOLATION_NONE},
        {"hook", "the CUDA library is intercepted", ISOLATION_HOOK},
        {"kernel", "the driver keeps them apart", ISOLATION_KERNEL},
        {"hardware", "each has a partition", ISOLATION_HARDWARE},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

static bool choices_memory_unit(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"auto", "guess per node from the size of its cards", 0},
        {"GiB", "the plugin runs with --memory-unit=GiB, its default", 1 << 30},
        {"MiB", "the plugin runs with --memory-unit=MiB", 1 << 20},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

static bool choices_unplaced(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"as-given", "what its node side gives such a pod; every card where that is not known", 0},
        {"every-card", "every card of its node, until it ends", 1},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

static bool choices_gpu_manager(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"8cd842e", "and what was built from later sources", TENCENT_ORDER_BLOCKS_MINOR},
        {"v1.1.5", "equal cards go in the order in which NVML counts them",
         TENCENT_ORDER_BLOCKS_NVML},
        {"v1.1.4", "and earlier: also, a few MiB of difference between cards count",
         TENCENT_ORDER_BYTES_NVML},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

/* clang-format off */
static const struct option rows[] = {
    {"tenant-isolation", CHOICE(options.tenant_isolation, "CLASS", "none", choices_isolation),
     FOR(COMMANDS_ON_CLUSTERS),
     .help = "Pods of several namespaces share one card only where its holders are kept apart at "
             "least so. Where kubelet picks the card, a node then serves one namespace at a time."},
    {"classes", CLASSES(options.classes), FOR(COMMANDS_READING), .flags = OPTION_COMMON,
     .help = "Classes of work and their settings, in the file as a section of its own; 'default': "
             "interactive, inference and training, as they are built in. A pod's class follows from "
             "its PriorityClass, or from its annotation gpuledger.io/class where its namespace may "
             "choose. Without it there are no classes."},
    {"gpushare-memory-unit", CHOICE(options.gpushare_memory_unit, "UNIT", "auto",
     choices_memory_unit), FOR(COMMANDS_READING),
     .help = "What one aliyun.com/gpu-mem is. Nodes do not say; it matters for what people are "
             "shown, placement is right either way."},
    {"unplaced", CHOICE(options.unplaced_everywhere, "HOW", "as-given", choices_unplaced),
     FOR(COMMANDS_READING),
     .help = "What a pod holds that others have bound without writing a card: gpushare's plugin "
             "gives it the only card of a one-card node and none elsewhere, those of HAMi, "
             "4paradigm and Volcano's vGPU fail it, so that one that runs all the same counts on "
             "every card. Either way it gets an Event."},
    {"gpushare-any-on-single-card", BOOL(options.gpushare_any_on_single_card, "false"),
     FOR(COMMANDS_READING),
     .help = "The gpushare plugin hands out the only card of a one-card node without asking "
             "which pod it is for, so that pods with several GPU containers may go there. The "
             "plugin's latest version does; the images that its manifests name do not."},
    {"gpushare-multiprocessors", BOOL(options.gpushare_multiprocessors, "false"),
     FOR(COMMANDS_READING),
     .help = "The node side limits compute by giving containers fewer multiprocessors, so that "
             "what a pod asks of aliyun.com/gpu-core.percentage is rounded up to whole ones, on "
             "nodes that state them with the label nvidia.com/gpu.multiprocessors."},
    {"volcano-memory-factor", INT(options.volcano_memory_factor, "N", "1", 1, 1 << 20),
     FOR(COMMANDS_READING),
     .help = "How many MiB one volcano.sh/gpu-memory or volcano.sh/vgpu-memory is: the "
             "--gpu-memory-factor that the plugin of Volcano's GPU sharing runs with, and the "
             "gpuMemoryFactor of its vGPUs. Nodes do not say; it matters for MIG instances, for "
             "what people are shown, and beside other ways to share the same cards."},
    {"tencent-gpu-manager", CHOICE(options.tencent_order, "VERSION", "8cd842e",
     choices_gpu_manager), FOR(COMMANDS_READING),
     .help = "Which gpu-manager the nodes run: versions order equal cards in different ways, and "
             "gpu-manager fails pods whose card was not the one that it would take itself."},
    {"tencent-unchecked", BOOL(options.tencent_unchecked, "false"), FOR(COMMANDS_READING),
     .help = "Let gpu-manager take its own card and say which, rather than fail a pod whose card it "
             "would not have taken: when a pod has ended meanwhile, or equal cards differ in what "
             "only gpu-manager sees."},
    {"hami-memory-factor", INT(options.hami_memory_factor, "N", "1", 1, 1 << 20),
     FOR(COMMANDS_READING),
     .help = "How many MiB one nvidia.com/gpumem is: HAMi's memoryFactor, since v2.8. Nodes do not "
             "say; without it pods get less than they ask for."},
    {"hami-default-memory", INT(options.hami_default_memory, "MIB", "0", 0, 16777216),
     FOR(COMMANDS_READING),
     .help = "What a container gets of each card's memory if it asks HAMi's, 4paradigm's or "
             "Volcano's vGPU plugin for cards and says no more; 0: all of it."},
    {"hami-default-cores", INT(options.hami_default_cores, "PERCENT", "0", 0, 100),
     FOR(COMMANDS_READING),
     .help = "What it gets of each card's compute; 0: as much as there is, beside others."},
    {"hami-memory-scaling", INT(options.hami_memory_scaling, "PERCENT", "100", 100, 1000),
     FOR(COMMANDS_READING),
     .help = "How much memory HAMi's and 4paradigm's plugin register for each card, of what it "
             "really has: their deviceMemoryScaling, 180 for 1.8. Volcano's vGPU plugin ignores "
             "its own. What is beyond "
             "the real memory goes only to pods with the annotation gpuledger.io/oversubscribe. A "
             "node's annotation gpuledger.io/physical-memory goes before it."},
    {"hami-mig-templates", LIST(options.hami_mig_templates, "MODEL=TEMPLATE,...;...", "",
     hami_mig_templates_list), FOR(COMMANDS_READING),
     .help = "How HAMi's plugin before v2.10, and Volcano's, cut cards in MIG mode: their "
             "knownMigGeometries, for each model the templates in their order, such as "
             "'7x1g.5gb:5120' (instances, name, MiB of each), and '-' for one that is not to be "
             "used. Several sizes in one template have '+' between them, in the order in which "
             "nvidia-smi -L lists them on a card cut so. Without it: what HAMi's chart configures "
             "for A30 and A100, of which only templates of one size are used."},
    {"nvidia-fail-requests-greater-than-one", BOOL(options.nvidia_fail_requests_greater_than_one,
     "false"), FOR(COMMANDS_READING),
     .help = "NVIDIA's plugin is configured with failRequestsGreaterThanOne: it fails containers "
             "that ask for more than one replica of time-sliced GPUs, so they are refused. With "
             "MPS see --nvidia-mps-several."},
    {"nvidia-mps-several", BOOL(options.nvidia_mps_several, "false"), FOR(COMMANDS_READING),
     .help = "Allow containers more than one MPS device. Set it where NVIDIA's plugin, v0.20.0 or "
             "later, is configured with sharing.mps.failRequestsGreaterThanOne: false; without "
             "that, and before, the plugin fails such containers."},
    {"nvidia-memory-guard", BOOL(options.nvidia_memory_guard, "false"), FOR(COMMANDS_READING),
     .help = "Keep what pods want of time-sliced GPUs (annotation gpuledger.io/gpu-memory) within a "
             "card: of a node's pods as many as a card has replicas, the most demanding ones, have "
             "room on one card, since kubelet may put them there. Pods without the annotation count "
             "with their replicas' equal part."},
    {"nvidia-memory-label", LIST(options.nvidia_memory_label, "LABEL", "", item_list_label),
     FOR(COMMANDS_READING),
     .help = "A node label with the memory of one nvidia.com/gpu, such as '4GB' or '4096' (MiB), "
             "for guests whose vGPU nobody else describes. Nodes without it have "
             "nvidia.com/gpu.memory."},
    {"nvidia-config-replicas", LIST(options.nvidia_config_replicas, "NAME=N,...", "",
     nvidia_replicas_list), FOR(COMMANDS_READING | COMMAND_SWITCH),
     .help = "How many nvidia.com/gpu each configuration of NVIDIA's plugin makes of a card, by "
             "the name that the node label nvidia.com/device-plugin.config has. After the label "
             "has been changed, such a node gives no GPU until its status agrees."},
    {"card-profiles", LIST(options.card_profiles, "SELECTOR: DIALECT, cards=N, ...;...", "",
     card_profiles_list), FOR(COMMANDS_READING),
     .help = "What cards the nodes of a group have that an autoscaler has scaled to zero, for fit "
             "--template and filter-dryrun: by the labels of the group's template, in whichever "
             "dialect, how many cards, the memory of each (24Gi), into how many slots its plugin "
             "splits each and which model it is. A Node that is there is never read so, and nothing "
             "is bound by it."},
};
/* clang-format on */

const struct section section_dialects = {
    .name = "dialects",
    .title = "Device plugins",
    ROWS(rows),
    .recorded = true,
};
