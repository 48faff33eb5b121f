/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three rows that differ in keys: HAMi, 4paradigm and Volcano's vGPU.
 *
 * What the node sides do, and why we place as we do. Sources:
 *  - Project-HAMi/HAMi@v2.10.0:pkg/util/util.go (GetPendingPod), also v2.4.1 to v2.9.0;
 *  - 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/util/util.go;
 *  - Project-HAMi/volcano-vgpu-device-plugin@v1.11.0:pkg/plugin/vgpu/util/util.go, since v1.9.0;
 *  - Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/util/util.go, the same at 4fb76ba.
 *
 * kubelet calls the plugin once per container without naming the pod. HAMi's takes the pod that the
 * lock on the node names, and without one any pod of the node that is being allocated (since v2.9
 * also one that was); the other two know no lock and take the first, or the oldest, such pod. Each
 * hands out the next unserved container's promise. So two pods of one node that are not served yet
 * can get each other's limits, in silence: there is never more than one, and the next waits inside
 * bind. The other two look for it in all pods of the cluster, whatever has become of them:
 * docs/design/promises.md.
 */
#include "dialect/hami/hami.h"

DIALECT_ROW(4paradigm, 85);
DIALECT_ROW(hami, 90);
DIALECT_ROW(volcano_vgpu, 95);

/* Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go;
 * 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/device/nvidia/device.go;
 * Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/util/types.go (models) */
#define MODEL_KEYS                                                                                 \
    .models = "nvidia.com/use-gputype", .models_not = "nvidia.com/nouse-gputype"
#define NVIDIA_RESOURCES                                                                           \
    .count = "nvidia.com/gpu", .memory = "nvidia.com/gpumem",                                      \
    .percentage = "nvidia.com/gpumem-percentage", .cores = "nvidia.com/gpucores"

#define CORDONED "hami.io/device-cordon"

/* Source: Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/device.go,
 * pkg/device/nvidia/mig_allocations.go, pkg/util/types.go */
static const struct vgpu hami = {
    .dialect = &dialect_hami,
    NVIDIA_RESOURCES,
    .registered = "hami.io/node-nvidia-register",
    .cordoned = CORDONED,
    .links = "hami.io/node-nvidia-score",
    .node = "hami.io/vgpu-node",
    .time = "hami.io/vgpu-time",
    .phase = "hami.io/bind-phase",
    .bind_time = "hami.io/bind-time",
    .allocated = {"hami.io/vgpu-devices-allocated"},
    .promised = {"hami.io/vgpu-devices-to-allocate"},
    .mig = true,
    .instances = "hami.io/vgpu-mig-allocations",
    .ends_each = true,
    .init_first = true,
    .several = true,
    .factor = true,
    .claims_unmarked = true,
    MODEL_KEYS,
    .uuids = "nvidia.com/use-gpuuuid",
    .uuids_not = "nvidia.com/nouse-gpuuuid",
    .mode = "nvidia.com/vgpu-mode",
    .same_numa = "nvidia.com/numa-bind",
    .policy = "hami.io/gpu-scheduler-policy",
    .node_policy = "hami.io/node-scheduler-policy",
    .weights = "hami.io/device-scoring-weights",
};

/* The plugin takes a promise's place for one among spec.containers, and writes what is left back
 * without what is between containers. The keys changed in its last months; each generation finds
 * its own.
 * Source: 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/device/nvidia/device.go, pkg/util/types.go */
static const struct vgpu paradigm = {
    .dialect = &dialect_4paradigm,
    NVIDIA_RESOURCES,
    .registered = "4pd.io/node-nvidia-register",
    .node = "4pd.io/vgpu-node",
    .time = "4pd.io/vgpu-time",
    .phase = "4pd.io/bind-phase",
    .bind_time = "4pd.io/bind-time",
    .allocated = {"hami.sh/vgpu-devices-allocated", "4pd.io/vgpu-ids-new"},
    .promised = {"hami.sh/vgpu-devices-to-allocate", "4pd.io/devices-to-allocate"},
    .ends_each = true,
    .needs_phase = true,
    .hook_by_name = true,
    MODEL_KEYS,
    .same_numa = "nvidia.com/numa-bind",
};

/* The newer plugin wants a pod whose promised cards in total are what one container asks for.
 * Source: Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/util/types.go;
 * volcano-sh/volcano@v1.15.1:pkg/scheduler/api/devices/nvidia/vgpu/type.go (the mode), and, of the
 * UUIDs, v1.16.0-alpha.1 */
static const struct vgpu volcano = {
    .dialect = &dialect_volcano_vgpu,
    .count = "volcano.sh/vgpu-number",
    .memory = "volcano.sh/vgpu-memory",
    .percentage = "volcano.sh/vgpu-memory-percentage",
    .cores = "volcano.sh/vgpu-cores",
    .registered = "volcano.sh/node-vgpu-register",
    .short_register = true,
    .hook_by_name = true,
    .mig = true,
    .mig_group = "group",
    .node = "volcano.sh/vgpu-node",
    .time = "volcano.sh/vgpu-time",
    .phase = "volcano.sh/bind-phase",
    .bind_time = "volcano.sh/bind-time",
    .allocated = {"volcano.sh/vgpu-ids-new"},
    .promised = {"volcano.sh/devices-to-allocate"},
    .claims_unmarked = true,
    .own_count = true,
    MODEL_KEYS,
    .uuids = "volcano.sh/vgpu-use-gpuuuid",
    .uuids_not = "volcano.sh/vgpu-nouse-gpuuuid",
    .mode = "volcano.sh/vgpu-mode",
};

static const struct vgpu *const family[] = {&hami, &paradigm, &volcano};

static const struct vgpu *find(const struct dialect *dialect)
{
    for (size_t i = 0; i < G_N_ELEMENTS(family); i++) {
        if (family[i]->dialect == dialect)
            return family[i];
    }
    g_assert_not_reached();
}

/* --- the functions of a row -------------------------------------------------------------------- */

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    const struct vgpu *vgpu = find(request->dialect);

    if (!vgpu->init_first && (request->traits & REQUEST_GPU_INIT_CONTAINER))
        return REASON_GPU_INIT_CONTAINER;
    if (!vgpu->several && (request->traits & REQUEST_SEVERAL_GPU_CONTAINERS))
        return REASON_SEVERAL_GPU_CONTAINERS;
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].mig || g_strcmp0(node->cards[i].mode, VGPU_MODE_MIG) != 0)
            return REASON_NONE;
    }
    return REASON_MIG_MODE;
}

static void in_flight(const struct node *node, const struct request *request,
                      struct in_flight *ret_in_flight)
{
    struct in_flight found = {.card = CARD_UNKNOWN, .since_ns = INT64_MAX};

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (!other->waiting || other->dialect != request->dialect)
            continue;
        found.restricted = true;
        found.since_ns = MIN(found.since_ns, other->assume_time_ns);
    }
    *ret_in_flight = found;
}

static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    vgpu_write_annotations(find(allocation->dialect), allocation, node, annotations);
}

static void write_assigned(const struct allocation *allocation, int64_t now_ns,
                           struct annotations *annotations)
{
    vgpu_write_assigned(find(allocation->dialect), allocation, annotations);
}

static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    return vgpu_write_profile(find(profile->dialect), profile, options, words);
}

static bool read_heartbeat(const struct node_view *view, int64_t *ret_ns, char **ret_warning)
{
    return hami_read_heartbeat(&hami, view, ret_ns, ret_warning);
}

/* Volcano's plugin since v1.10, whose nodes register a mode of each card, serves the least vgpu-time; v1.9
 * does not, but for its last release. Nothing is less than 0, and 1 leaves room for one pod only. */
static bool volcano_outranks(const struct node *node, int64_t time)
{
    return time > 1 && node->n_cards > 0 && node->cards[0].mode && *node->cards[0].mode;
}

/* Reading comes without a dialect to look up. */
#define READERS(row)                                                                               \
    static bool row##_read_topology(                                                               \
        const struct node_view *view, const struct dialect_options *options,                       \
        struct topology *ret_topology, char **ret_warning, GError **error)                         \
    {                                                                                              \
        return vgpu_read_topology(&row, view, options, ret_topology, ret_warning, error);                   \
    }                                                                                              \
    static struct request *row##_read_request(                                                     \
        const struct pod_view *view, const struct dialect_options *options, GError **error)        \
    {                                                                                              \
        return vgpu_read_request(&row, view, options, error);                                      \
    }                                                                                              \
    static struct allocation *row##_read_allocation(                                               \
        const struct pod_view *view, const struct dialect_options *options, char **ret_warning)    \
    {                                                                                              \
        return vgpu_read_allocation(&row, view, options, ret_warning);                             \
    }
READERS(hami)
READERS(paradigm)
READERS(volcano)

#define PROMISES(row)                                                                              \
    static bool row##_read_promise(const struct pod_view *view,                                    \
                                   struct device_promise *ret_promise)                             \
    {                                                                                              \
        return vgpu_read_promise(&row, view, ret_promise);                                         \
    }                                                                                              \
    static void row##_write_revoked(struct annotations *annotations)                               \
    {                                                                                              \
        vgpu_write_revoked(&row, annotations);                                                     \
    }
PROMISES(paradigm)
PROMISES(volcano)

#define FUNCTIONS(row)                                                                             \
    .read_topology = row##_read_topology, .write_profile = write_profile,                          \
    .read_request = row##_read_request, .read_allocation = row##_read_allocation,                  \
    .refuse = refuse, .in_flight = in_flight, .one_in_flight = true,                               \
    .write_annotations = write_annotations, .write_assigned = write_assigned, .names_cards = true, \
    .numbers = CARD_NUMBERS_NVML, .isolation = ISOLATION_HOOK

static const char *const hami_records[] = {
    "hami.io/vgpu-node", "hami.io/vgpu-time", "hami.io/bind-phase", "hami.io/bind-time",
    "hami.io/vgpu-devices-*", "hami.io/vgpu-mig-allocations", NULL,
};
static const char *const paradigm_records[] = {
    "4pd.io/vgpu-node", "4pd.io/vgpu-time", "4pd.io/bind-phase", "4pd.io/bind-time",
    "4pd.io/vgpu-ids-new", "4pd.io/devices-to-allocate", "hami.sh/vgpu-devices-*", NULL,
};
static const char *const volcano_records[] = {
    "volcano.sh/vgpu-node", "volcano.sh/vgpu-time", "volcano.sh/bind-phase",
    "volcano.sh/bind-time", "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate", NULL,
};

/* Those of struct vgpu that vgpu_write_annotations writes in any case. */
static const char *const hami_replaces[] = {
    "hami.io/vgpu-node",
    "hami.io/vgpu-time",
    "hami.io/bind-phase",
    "hami.io/bind-time",
    "hami.io/vgpu-devices-allocated",
    "hami.io/vgpu-devices-to-allocate",
    NULL,
};
static const char *const paradigm_replaces[] = {
    "4pd.io/vgpu-node",
    "4pd.io/vgpu-time",
    "4pd.io/bind-phase",
    "4pd.io/bind-time",
    "4pd.io/vgpu-ids-new",
    "4pd.io/devices-to-allocate",
    "hami.sh/vgpu-devices-allocated",
    "hami.sh/vgpu-devices-to-allocate",
    NULL,
};

static const char *const nvidia_resources[] = {
    "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
    NULL};
static const char *const volcano_resources[] = {
    "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage",
    "volcano.sh/vgpu-cores", NULL};

#define VGPU_WORDS(number, mib, cores)                                                             \
    {                                                                                              \
        .count = number, .memory = mib, .memory_unit = INT64_C(1) << 20, .core = cores,            \
        .percent = mib "-percentage",                                                              \
        .whole = number, .whole_units = 1                                                          \
    }
#define NVIDIA_WORDS VGPU_WORDS("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores")

#define ASKS(prefix, memory)                                                                       \
    "Per container, " prefix " different cards, and of each: `" memory                             \
    "` MiB, or its `-percentage`, or all of it (`--hami-default-memory`); and a percentage of "    \
    "its "                                                                                         \
    "compute, where 100 means a card of its own, unless its plugin registers more than 100 for "   \
    "the "                                                                                         \
    "card (deviceCoreScaling). "

#define UNLIMITED(value)                                                                           \
    "A container whose environment has `CUDA_DISABLE_CONTROL`" value                               \
    " runs without the plugin's limits: it needs a card that has no other holder, and holds all "  \
    "memory of it. "

#define ONE_AT_A_TIME                                                                              \
    "One pod at a time waits for the plugin on a node, the next inside bind, because the plugin "  \
    "is not told whose container it serves. "

#define STRAYS                                                                                     \
    "The plugin also hands out what pods were promised that kubelet has rejected, or that have "   \
    "no "                                                                                          \
    "node: pods are refused beside such a promise until it is revoked, which needs the verb "      \
    "patch "                                                                                       \
    "on pods."

/* Source: Project-HAMi/HAMi@v2.10.0:pkg/device/quota.go */
#define QUOTA_KEYS                                                                                 \
    .quota_memory = "limits.nvidia.com/gpumem", .quota_core = "limits.nvidia.com/gpucores"

const struct dialect dialect_hami = {
    .name = "hami",
    .title = "HAMi",
    .notes =
        {
            .asks =
                ASKS("`nvidia.com/gpu`",
                     "nvidia.com/gpumem") "`nvidia.com/gpucores`. "
                                          "Annotations `nvidia.com/[no]use-gputype`, "
                                          "`nvidia.com/[no]use-gpuuuid`, "
                                          "`nvidia.com/vgpu-mode`, `nvidia.com/numa-bind`, and "
                                          "`hami.io/gpu-scheduler-policy` (binpack, spread, mutex, "
                                          "numa, topology-aware, or several "
                                          "of them with commas), `hami.io/device-scoring-weights` "
                                          "for binpack and spread; "
                                          "`hami.io/node-scheduler-policy` (binpack, spread) for "
                                          "the scores of nodes. "
                                          "ResourceQuotas by `limits.nvidia.com/gpumem` and "
                                          "`limits.nvidia.com/gpucores` "
                                          "with `--hami-resource-quotas`; 0 is no limit, scopes "
                                          "are not read.",
            .nodes = "Annotation `hami.io/node-nvidia-register` in all three forms (seven or nine "
                     "fields, JSON), `hami.io/device-cordon`, and `hami.io/node-nvidia-score` for "
                     "topology-aware: several cards are those that are connected best, one is that "
                     "which is connected worst, among up to 64, MIG instances apart; allocatable "
                     "`nvidia.com/gpu` of 0 "
                     "takes all cards out, and so, with plugins up to v2.7, does "
                     "`hami.io/node-handshake` that has not changed for 5 minutes. Memory beyond "
                     "what a card really has "
                     "(`--hami-memory-scaling`, or the annotation `gpuledger.io/physical-memory`) "
                     "is for pods with `gpuledger.io/oversubscribe`; nobody gets any once the real "
                     "memory is promised to others, or in use. Of cards in MIG mode the profiles "
                     "and places that the "
                     "plugin registers since v2.10; before, its templates are "
                     "`--hami-mig-templates`.",
            .writes =
                "Before the Binding the Node's `hami.io/mutex.lock`, which names the pod that "
                "the plugin serves next; with it `hami.io/vgpu-devices-to-allocate`, "
                "`-allocated`, `vgpu-node`, `vgpu-time`, `bind-phase` and `bind-time`, and, "
                "where the API server takes labels from a Binding (1.36 does), the label "
                "`hami.io/vgpu-node`, by which vGPUmonitor finds the pod. On a card in MIG "
                "mode each device is an instance, the smallest with the memory and compute "
                "that are asked for, where it leaves the most places for others: "
                "`hami.io/vgpu-mig-allocations`, or before v2.10 "
                "`UUID[TEMPLATE-INSTANCE]`. " ONE_AT_A_TIME,
            .own_scheduler = "HAMi's own scheduler",
            .sees = "Pods with `hami.io/vgpu-node`. But it counts a pod from its filter on, bound "
                    "or not, "
                    "and its bind looks at no capacity: it fills what gpuledger has promised "
                    "meanwhile. This does not work.",
            .played = "HAMi's plugin v2.5.3, v2.8.3, v2.9.0 and v2.10.0, the last three with MIG. "
                      "Read besides: v2.4.1, v2.6.1, v2.7.1",
            .limits = UNLIMITED(
                ", true (not in an instance of a card in MIG mode),") "`hami.io/numa-alignment`, "
                                                                      "which came after v2.10, is "
                                                                      "not read: with it the "
                                                                      "plugin "
                                                                      "asks the scheduler for "
                                                                      "other cards after the "
                                                                      "Binding, when kubelet has "
                                                                      "chosen CPUs. There is no "
                                                                      "webhook: a container that "
                                                                      "asks for a part of a card "
                                                                      "but "
                                                                      "for no card is "
                                                                      "refused. Templates of MIG "
                                                                      "instances of different "
                                                                      "sizes, before v2.10, unless "
                                                                      "`--hami-mig-templates` says "
                                                                      "their order: the plugin "
                                                                      "asks NVML for an instance "
                                                                      "by number, and NVML "
                                                                      "promises no order of sizes. "
                                                                      "Since v2.10 the plugin "
                                                                      "takes a "
                                                                      "MIG instance down up to 5 s "
                                                                      "after its pod's end, and "
                                                                      "fails "
                                                                      "a pod whose instance of "
                                                                      "another size needs that "
                                                                      "place sooner. App "
                                                                      "containers get "
                                                                      "cards of the pod's init "
                                                                      "containers, as kubelet "
                                                                      "passes devices on, but for "
                                                                      "sidecars. With the plugin's "
                                                                      "`enablegetpreferredallocatio"
                                                                      "n` (since v2.9, off "
                                                                      "unless "
                                                                      "said) a pod may still get "
                                                                      "another card than it was "
                                                                      "promised: where pods from "
                                                                      "before the option have used "
                                                                      "up the card's devices, "
                                                                      "where a topology hint of "
                                                                      "kubelet's goes first, and "
                                                                      "where a container has "
                                                                      "several cards with "
                                                                      "different "
                                                                      "memory of each.",
        },
    .words = NVIDIA_WORDS,
    .resources = nvidia_resources,
    .records = hami_records,
    .replaces = hami_replaces,
    QUOTA_KEYS,
    .cordon_key = CORDONED,
    /* Source: Project-HAMi/HAMi@v2.10.0:pkg/util/nodelock/nodelock.go */
    .lock_key = "hami.io/mutex.lock",
    .node_label = "hami.io/vgpu-node", /* vGPUmonitor lists pods by it */
    .read_heartbeat = read_heartbeat,
    FUNCTIONS(hami),
};

const struct dialect dialect_4paradigm = {
    .name = "4paradigm",
    .title = "4paradigm vGPU",
    .notes =
        {
            .asks = ASKS("`nvidia.com/gpu`",
                         "nvidia.com/gpumem") "`nvidia.com/gpucores`. "
                                              "Annotations `nvidia.com/[no]use-gputype` and "
                                              "`nvidia.com/numa-bind`.",
            .nodes = "Annotation `4pd.io/node-nvidia-register`; allocatable `nvidia.com/gpu`.",
            .writes =
                "`4pd.io/vgpu-node`, `vgpu-time`, `bind-phase`, `bind-time`, and the cards under "
                "both generations of keys, `hami.sh/vgpu-devices-…` and `4pd.io/…`. " ONE_AT_A_TIME,
            .played = "the plugin at da7d4ed. Read besides: v2.3.4, v2.3.8",
            .limits = UNLIMITED(
                "") "Several GPU containers, or a GPU init container, in one pod: the plugin "
                    "writes back what is left without saying whose it is. " STRAYS,
        },
    .words = NVIDIA_WORDS,
    .resources = nvidia_resources,
    .records = paradigm_records,
    .replaces = paradigm_replaces,
    QUOTA_KEYS,
    .read_promise = paradigm_read_promise,
    .any_phase = true,
    .write_revoked = paradigm_write_revoked,
    FUNCTIONS(paradigm),
};

const struct dialect dialect_volcano_vgpu = {
    .name = "volcano-vgpu",
    .title = "Volcano vGPU",
    .scheduler = "volcano",
    .notes =
        {
            .asks = ASKS(
                "`volcano.sh/vgpu-number`",
                "volcano.sh/vgpu-memory") "`volcano.sh/vgpu-cores`. Annotations "
                                          "`volcano.sh/vgpu-[no]use-gpuuuid`, "
                                          "`volcano.sh/vgpu-mode`, `nvidia.com/[no]use-gputype`.",
            .nodes =
                "Annotation `volcano.sh/node-vgpu-register`; allocatable "
                "`volcano.sh/vgpu-number`. With the plugin's gpuMemoryFactor all memory counts in "
                "that "
                "many MiB (`--volcano-memory-factor`). Of cards in MIG mode the templates of "
                "`--hami-mig-templates`, which are groups named `group1`, `group2` and so on in "
                "that order, as in Volcano's ConfigMap `volcano-vgpu-device-config`.",
            .writes =
                "`volcano.sh/vgpu-ids-new`, `devices-to-allocate`, `vgpu-node`, `vgpu-time`, "
                "`bind-phase` and `bind-time`. `vgpu-time` is an order among the pods that wait, "
                "and the time of day for one that waits alone. A MIG instance is "
                "`UUID[GROUP-INSTANCE]`. " ONE_AT_A_TIME,
            .played =
                "volcano-vgpu-device-plugin v1.9.0, v1.9.4, v1.11.0 and v1.12.0, the last two "
                "with MIG. Read besides: v1.10.0, 4fb76ba; Volcano v1.10.0 to v1.16.0-alpha.1",
            .limits = UNLIMITED(
                "") "Several GPU containers, or a GPU init container, in one pod: the newer "
                    "plugin looks for a pod whose cards in total are what one container asks "
                    "for. Groups of MIG instances of different sizes whose order is not said, as "
                    "under HAMi; groups of other names. The wish "
                    "`volcano.sh/vgpu-podgroup-policy` (Volcano 1.15) is not read: pods of one "
                    "PodGroup may share a card. " STRAYS
                    " Since v1.10 the plugin prefers the pod that is bound beside it, which is not "
                    "refused then.",
        },
    .words =
        VGPU_WORDS("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"),
    .resources = volcano_resources,
    .records = volcano_records,
    .replaces = volcano_records,
    .read_promise = volcano_read_promise,
    .any_phase = true,
    .write_revoked = volcano_write_revoked,
    .outranks = volcano_outranks,
    .whole_cluster = true,
    FUNCTIONS(volcano),
};
