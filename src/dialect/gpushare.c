/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aliyun gpushare: aliyun.com/gpu-mem, one card per pod.
 *
 * What the node side does, and why we place as we do
 * (AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/allocate.go, podmanager.go,
 * podutils.go; aff8a23 and 2656995 too). kubelet calls the plugin once per container without naming
 * the pod. The plugin takes the pending, unassigned pod of its node with the oldest assume time
 * whose *total* equals this container's amount, and hands out the card that the pod's annotation
 * names. So
 *  - a pod with several GPU containers (or a GPU init container) never matches its own total; only
 *    the newest plugin, and only on a node with one card, serves it all the same;
 *  - two unassigned pods of one size on one node can swap cards, and one whose turn was taken by
 *    another finds none left once that one runs. Hence in_flight(): one at a time, on one-card nodes
 *    too, where only the newest plugin serves who finds none (dialect/lookalikes.h).
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/digits.h"
#include "core/bytes.h"
#include "dialect/hold.h"
#include "dialect/lookalikes.h"
#include "dialect/marks/node_marks.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <string.h>

DIALECT_ROW(gpushare, 10);

/* Source: AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/const.go */
#define RESOURCE_MEM "aliyun.com/gpu-mem"
#define RESOURCE_COUNT "aliyun.com/gpu-count"
/* ACK's cGPU adds these: hundredths of the card, and what the node's cGPU divides. */
#define RESOURCE_CORE "aliyun.com/gpu-core.percentage"
#define NODE_LABEL_SCHEDULE "ack.node.gpu.schedule"
#define NODE_LABEL_PLACEMENT "ack.node.gpu.placement"
#define SCHEDULE_CORE "core_mem"
/* Source: AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/const.go */
#define NODE_LABEL_DISABLE "cgpu.disable.isolation"
#define CORE_PER_CARD 100

/* Source: AliyunContainerService/gpushare-scheduler-extender@c0b6141:pkg/utils/const.go */
#define KEY_IDX "ALIYUN_COM_GPU_MEM_IDX"
#define KEY_DEV "ALIYUN_COM_GPU_MEM_DEV"
#define KEY_POD "ALIYUN_COM_GPU_MEM_POD"
#define KEY_ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define KEY_ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

/* Ours: the true size of each card, in the node's gpu-mem units, by index: "10,20". The plugin
 * sizes every card by the first one. */
#define NODE_KEY_CARD_MEMORY NODE_CARD_MEMORY_KEY
/* Of one card: NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md */
#define NODE_LABEL_MIB "nvidia.com/gpu.memory"
#define NODE_LABEL_MULTIPROCESSORS "nvidia.com/gpu.multiprocessors"
#define MULTIPROCESSORS_MAX 1000

/* Year 2116; later ones still fit above it. */
#define ASSUME_TIME_MAX (INT64_MAX / 2)

/* --- nodes ---------------------------------------------------------------------------------- */

/* No marker tells whether a node counts in GiB or MiB. The driver's own label decides if it is
 * there; else the size does: no card has 1000 GiB, and none is as small as 1000 MiB. */
static int64_t mib_from(const struct node_view *view)
{
    const char *label = string_pairs_get(&view->labels, NODE_LABEL_MIB);
    int64_t mib;

    if (label && digits_parse(label, AMOUNT_BYTES_MAX / MIB, &mib) && mib > 0)
        return mib / 32 + 1;
    return 1000;
}

static int64_t guess_unit(const struct node_view *view, int64_t units_per_card)
{
    return units_per_card >= mib_from(view) ? MIB : GIB;
}

/* Fills card_memory (in units) from the annotation; false if there is none or it is unusable. */
static bool read_card_sizes(const struct node_view *view, struct topology *topology,
                            char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, NODE_KEY_CARD_MEMORY);
    if (!text)
        return false;

    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    if (g_strv_length(items) != (guint)topology->n_cards) {
        warn(ret_warning,
             g_strdup_printf("annotation '" NODE_KEY_CARD_MEMORY "' lists %u sizes for %d cards; "
                             "all cards are taken to be equal",
                             g_strv_length(items), topology->n_cards));
        return false;
    }
    for (int32_t i = 0; i < topology->n_cards; i++) {
        int64_t units;
        if (!digits_parse(g_strstrip(items[i]), AMOUNT_BYTES_MAX, &units)) {
            warn(ret_warning,
                 g_strdup_printf("annotation '" NODE_KEY_CARD_MEMORY "': '%.32s' is not a size; "
                                 "all cards are taken to be equal",
                                 items[i]));
            return false;
        }
        topology->cards[i].memory = units;
    }
    return true;
}

/* 0: the node side does not count in them, or nobody says how many there are. */
static int32_t read_multiprocessors(const struct node_view *view,
                                    const struct dialect_options *options)
{
    const char *text = string_pairs_get(&view->labels, NODE_LABEL_MULTIPROCESSORS);
    int64_t value;

    if (!options->gpushare_multiprocessors || !text ||
        !digits_parse(text, MULTIPROCESSORS_MAX, &value))
        return 0;
    return (int32_t)value;
}

/* cGPU's module is what divides compute, and what of ACK's ways of sharing these two are. */
static enum isolation read_isolation(const struct node_view *view, int64_t core)
{
    const char *schedule = string_pairs_get(&view->labels, NODE_LABEL_SCHEDULE);
    const char *disabled = string_pairs_get(&view->labels, NODE_LABEL_DISABLE);

    if (g_strcmp0(disabled, "true") == 0)
        return ISOLATION_NONE;
    return core > 0 || g_strcmp0(schedule, SCHEDULE_CORE) == 0 ||
                   g_strcmp0(schedule, "cgpu") == 0
               ? ISOLATION_KERNEL
               : ISOLATION_NONE;
}

/* The plugin counts whole units of a card, and knows no models. */
static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    const int64_t unit = options->gpushare_memory_unit ? options->gpushare_memory_unit : GIB;

    if (profile->model || profile->slots || profile->memory < unit)
        return false;
    profile_words_amount(words, RESOURCE_COUNT, profile->cards);
    profile_words_amount(words, RESOURCE_MEM, profile->cards * (profile->memory / unit));
    return true;
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    int64_t total, count, core;

    if (!read_capacity(view, RESOURCE_MEM, &total, error) ||
        !read_capacity(view, RESOURCE_COUNT, &count, error))
        return false;
    if (total == 0)
        return false;
    if (count < 1 || count > NODE_CARDS_MAX || total < count)
        return fail_with(error, cards_error(count),
                         "node '%s': capacity " RESOURCE_MEM " is %" G_GINT64_FORMAT
                         " but " RESOURCE_COUNT " is %" G_GINT64_FORMAT
                         "; it must be between 1 and %d, and not above " RESOURCE_MEM,
                         view->name, total, count, NODE_CARDS_MAX);

    if (!read_capacity(view, RESOURCE_CORE, &core, error))
        return false;
    struct topology *topology = ret_topology;
    int32_t multiprocessors = read_multiprocessors(view, options);
    const char *mode = core > 0 || multiprocessors > 0
                           ? SCHEDULE_CORE
                           : string_pairs_get(&view->labels, NODE_LABEL_SCHEDULE);
    int64_t units_per_card = total / count;
    topology->policy = policy_find(string_pairs_get(&view->labels, NODE_LABEL_PLACEMENT));
    topology->dialect = &dialect_gpushare;
    topology->isolation = read_isolation(view, core);
    topology->n_cards = (int32_t)count;
    topology->memory_unit = options->gpushare_memory_unit ? options->gpushare_memory_unit
                                                          : guess_unit(view, units_per_card);
    if (!read_card_sizes(view, topology, ret_warning)) {
        for (int32_t i = 0; i < topology->n_cards; i++)
            topology->cards[i].memory = units_per_card;
    }
    for (int32_t i = 0; i < topology->n_cards; i++) {
        struct amount size = {topology->cards[i].memory, AMOUNT_NODE_UNITS};
        topology->cards[i].memory = amount_bytes(size, topology->memory_unit);
        topology->cards[i].mode = topology_keep(topology, mode);
        topology->cards[i].multiprocessors = multiprocessors;
    }
    return true;
}

/* The plugin writes gpu-count by itself, and it stays when the plugin is away. */
static bool read_sketch(const struct node_view *view, const struct dialect_options *options,
                        struct sketch *ret_sketch)
{
    int64_t count;

    ret_sketch->unit = options->gpushare_memory_unit;
    ret_sketch->mib_from = mib_from(view);
    if (read_capacity(view, RESOURCE_COUNT, &count, NULL) && count <= NODE_CARDS_MAX)
        ret_sketch->n_cards = (int32_t)count;
    return ret_sketch->n_cards > 0 || !string_pairs_get(&view->capacity, RESOURCE_COUNT);
}

static void read_health(const struct configmap_view *view, GArray *indices, char **ret_warning)
{
    const char *text = string_pairs_get(&view->data, "gpus");
    if (!text)
        return;

    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    for (char **item = items; *item; item++) {
        int64_t index;
        g_strstrip(*item);
        if (!**item)
            continue;
        if (!digits_parse(*item, NODE_CARDS_MAX - 1, &index)) {
            warn(ret_warning, g_strdup_printf("ConfigMap '%s': 'gpus' item '%.32s' is not a card "
                                              "index and is ignored",
                                              view->name, *item));
            continue;
        }
        int32_t value = (int32_t)index;
        g_array_append_val(indices, value);
    }
}

/* --- pods ----------------------------------------------------------------------------------- */

/* Kubernetes' own rule: app containers and sidecars add up; a plain init container needs its own
 * amount plus that of the sidecars started before it. */
struct sums {
    int64_t apps, sidecars, peak;
};

struct usage {
    int64_t matched;   /* sum over spec.containers: what the plugin compares */
    int64_t effective; /* what the pod holds at its peak, init containers counted */
    int32_t core;      /* thousandths, likewise */
    int32_t container; /* the only GPU container, or CONTAINER_POD */
    uint32_t traits;
};

static bool add(int64_t *sum, int64_t amount)
{
    const bool fits = !__builtin_add_overflow(*sum, amount, sum);

    *sum = fits ? *sum : INT64_MAX;
    return fits;
}

static bool sums_add(struct sums *sums, const struct container_view *container, int64_t amount)
{
    int64_t reach = sums->sidecars;
    bool fits = container->init ? container->sidecar ? add(&sums->sidecars, amount)
                                                     : add(&reach, amount)
                                : add(&sums->apps, amount);
    sums->peak = MAX(sums->peak, reach);
    return fits;
}

static int64_t sums_effective(const struct sums *sums)
{
    int64_t lasting = sums->apps;

    if (!add(&lasting, sums->sidecars))
        lasting = INT64_MAX;
    return MAX(lasting, sums->peak);
}

/* Amounts as they are; 0 for what cannot be read (see dialect_hold_unread). */
static void take_container(const struct container_view *container, int64_t *ret_memory,
                           int64_t *ret_core)
{
    *ret_memory = amount_or_none(container, RESOURCE_MEM);
    *ret_core = MIN(amount_or_none(container, RESOURCE_CORE), CORE_PER_CARD);
}

static bool read_container(const struct container_view *container, int64_t *ret_memory,
                           int64_t *ret_core, GError **error)
{
    if (!read_container_amount(container, RESOURCE_MEM, ret_memory, error) ||
        !read_container_amount(container, RESOURCE_CORE, ret_core, error))
        return false;
    if (*ret_core > CORE_PER_CARD || (*ret_core > 0 && *ret_memory == 0))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "container '%s': " RESOURCE_CORE " is %" G_GINT64_FORMAT
                         "; it must be at most %d, with " RESOURCE_MEM " beside it",
                         container->name, *ret_core, CORE_PER_CARD);
    return true;
}

/* `strict`: what the node side could not serve is an error; else it counts for as much as it can be. */
static bool read_usage(const struct pod_view *view, bool strict, struct usage *ret_usage,
                       GError **error)
{
    struct usage usage = {.container = CONTAINER_POD};
    struct sums memory = {0}, core = {0};
    int gpu_containers = 0;

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        int64_t amount, percentage;

        if (!strict)
            take_container(container, &amount, &percentage);
        else if (!read_container(container, &amount, &percentage, error))
            return false;
        if (amount == 0 && percentage == 0)
            continue;
        const bool fits = sums_add(&memory, container, amount);
        if (!(sums_add(&core, container, percentage) && fits) && strict)
            return fail_with(error, GPULEDGER_ERROR_RANGE,
                             "container '%s': " RESOURCE_MEM ": the pod's sum is too large",
                             container->name);
        if (container->init) {
            usage.traits |= REQUEST_GPU_INIT_CONTAINER;
        } else {
            usage.container = gpu_containers++ == 0 ? (int32_t)i : CONTAINER_POD;
        }
    }
    usage.matched = memory.apps;
    usage.effective = sums_effective(&memory);
    usage.core = (int32_t)MIN(MIN(sums_effective(&core), INT16_MAX) * CORE_WHOLE / CORE_PER_CARD,
                              INT16_MAX);
    if (gpu_containers > 1)
        usage.traits |= REQUEST_SEVERAL_GPU_CONTAINERS;
    if (usage.traits)
        usage.container = CONTAINER_POD;
    *ret_usage = usage;
    return true;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    struct usage usage;

    if (!read_usage(view, true, &usage, error) || usage.effective == 0)
        return NULL;
    struct request *request = request_new(&dialect_gpushare, 1);
    request->traits = usage.traits;
    request->match_amount = usage.matched;
    request->asks[0] = (struct card_ask){
        .memory = {usage.effective, AMOUNT_NODE_UNITS},
        .container = usage.container,
        .count = 1,
        .core = usage.core,
    };
    return request;
}

/* Whether anything is left of what a bind writes. */
static bool is_marked(const struct pod_view *view)
{
    static const char *const keys[] = {KEY_POD, KEY_ASSIGNED, KEY_ASSUME_TIME};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (string_pairs_get(&view->annotations, keys[i]))
            return true;
    }
    return false;
}

/* The card that the plugin will read, or CARD_UNKNOWN and why. */
static int32_t read_card(const struct pod_view *view, const struct usage *usage,
                         enum distrust *ret_distrust, char **ret_warning)
{
    const char *idx = string_pairs_get(&view->annotations, KEY_IDX);
    const char *total = string_pairs_get(&view->annotations, KEY_POD);
    int64_t card, stated;

    *ret_distrust = DISTRUST_NONE;
    if (!idx) {
        *ret_distrust = is_marked(view) ? DISTRUST_LOST : DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup(*ret_distrust == DISTRUST_LOST
                                       ? "has lost the annotation " KEY_IDX
                                       : "holds " RESOURCE_MEM " without " KEY_IDX
                                         ": bound by another scheduler?"));
        return CARD_UNKNOWN;
    }
    if (!digits_parse(idx, NODE_CARDS_MAX - 1, &card)) {
        *ret_distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_IDX " '%.32s' is not a card index",
                                          idx));
        return CARD_UNKNOWN;
    }
    if (total && (!digits_parse(total, INT64_MAX, &stated) || stated != usage->matched)) {
        *ret_distrust = DISTRUST_EDITED;
        warn(ret_warning,
             g_strdup_printf("annotation " KEY_POD " '%.32s' differs from the containers' %" G_GINT64_FORMAT
                             ", which counts",
                             total, usage->matched));
    }
    return (int32_t)card;
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    struct usage usage;
    g_autoptr(GError) failure = NULL;

    const bool served = read_usage(view, true, &usage, &failure);
    if (!served)
        read_usage(view, false, &usage, NULL);
    if (usage.effective == 0 && usage.core == 0)
        return NULL;

    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const char *assume_time = string_pairs_get(&view->annotations, KEY_ASSUME_TIME);
    const char *card_units = string_pairs_get(&view->annotations, KEY_DEV);
    bool pending = g_strcmp0(view->phase, "Pending") == 0 || !view->phase;
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, 1);

    allocation->dialect = &dialect_gpushare;
    allocation->match_amount = usage.matched;
    if (!card_units || !digits_parse(card_units, AMOUNT_BYTES_MAX, &allocation->card_units))
        allocation->card_units = 0;
    allocation->assigned = g_strcmp0(assigned, "true") == 0;
    /* A marked pod stays a candidate until it is taken. Any pod, a taken one too, may still take
     * another's mark until kubelet has asked for its containers. */
    bool candidate = assume_time && g_strcmp0(assigned, "false") == 0;
    allocation->waiting = pending && (candidate || !view->started);
    if (assume_time && !digits_parse(assume_time, ASSUME_TIME_MAX, &allocation->assume_time_ns))
        warn(ret_warning, g_strdup_printf("annotation " KEY_ASSUME_TIME " '%.32s' is not a time",
                                          assume_time));
    allocation->shares[0] = (struct share){
        .memory = {usage.effective, AMOUNT_NODE_UNITS},
        .container = usage.container,
        .card = read_card(view, &usage, &allocation->distrust, ret_warning),
        .core = usage.core,
    };
    if (!served) {
        warn(ret_warning, g_strdup(failure->message));
        allocation->distrust = allocation->distrust == DISTRUST_NONE ? DISTRUST_UNREAD : allocation->distrust;
    }
    /* The plugin finds no mark of its size, and gives its one card, or none. */
    if (allocation->distrust == DISTRUST_UNMARKED && !options->unplaced_everywhere)
        allocation->shares[0].basis = SHARE_ON_ONE_CARD;
    return allocation;
}

/* aff8a23, 2656995, 45fb8b8: pkg/gpu/nvidia/podmanager.go, podutils.go: pods of the node, Pending, with
 * an assume time and a mark that is exactly "false", however old. A plugin whose mark is lost admits
 * the pod all the same. */
static bool read_promise(const struct pod_view *view, struct device_promise *ret_promise)
{
    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const bool pending = g_strcmp0(view->phase, "Pending") == 0 || !view->phase;
    struct usage usage;

    if (!pending || !pod_view_is_bound(view) || g_strcmp0(assigned, "false") != 0 ||
        !string_pairs_get(&view->annotations, KEY_ASSUME_TIME))
        return false;
    read_usage(view, false, &usage, NULL);
    *ret_promise = (struct device_promise){.node = view->node_name, .match_amount = usage.matched};
    return usage.matched > 0;
}

static void write_revoked(struct annotations *annotations)
{
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("true"));
}

/* --- placement ------------------------------------------------------------------------------ */

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    if (request->asks[0].core > 0 && g_strcmp0(node->cards[0].mode, SCHEDULE_CORE) != 0)
        return REASON_OTHER_DIALECT;
    if (options->gpushare_any_on_single_card && node->n_cards == 1)
        return REASON_NONE;
    if (request->traits & REQUEST_GPU_INIT_CONTAINER)
        return REASON_GPU_INIT_CONTAINER;
    if (request->traits & REQUEST_SEVERAL_GPU_CONTAINERS)
        return REASON_SEVERAL_GPU_CONTAINERS;
    return REASON_NONE;
}

static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    /* NULL if the node has changed since the card was chosen. The plugin does not read the size. */
    const struct card *card = node_card(node, allocation->shares[0].card);
    const int64_t now = card ? card->memory / node->memory_unit : 0;
    /* A Binding that is sent again states what the pod was granted of. */
    const int64_t card_units = allocation->card_units ? allocation->card_units : now;

    annotations_add(annotations, KEY_IDX,
                    g_strdup_printf("%d", allocation->shares[0].card));
    annotations_add(annotations, KEY_DEV, g_strdup_printf("%" G_GINT64_FORMAT, card_units));
    annotations_add(annotations, KEY_POD,
                    g_strdup_printf("%" G_GINT64_FORMAT, allocation->match_amount));
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("false"));
    annotations_add(annotations, KEY_ASSUME_TIME,
                    g_strdup_printf("%" G_GINT64_FORMAT, allocation->assume_time_ns));
}

static void write_assigned(const struct allocation *allocation, int64_t now_ns,
                           struct annotations *annotations)
{
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("true"));
    annotations_add(annotations, KEY_ASSUME_TIME,
                    g_strdup_printf("%" G_GINT64_FORMAT, now_ns));
}

static const char *const resources[] = {RESOURCE_MEM, RESOURCE_CORE, NULL};

static const char *const records[] = {
    "ALIYUN_COM_GPU_MEM_*",
    /* ACK's (AliyunContainerService/gpushare-device-plugin@45fb8b8:cmd/inspect/nodeinfo.go) */
    "scheduler.framework.gpushare.*",
    NULL,
};

static const char *const replaced[] = {KEY_IDX,      KEY_DEV,         KEY_POD,
                                       KEY_ASSIGNED, KEY_ASSUME_TIME, NULL};

static const char *const card_marks[] = {NODE_CARD_MEMORY_KEY, NULL};

const struct dialect dialect_gpushare = {
    .name = "gpushare",
    .title = "Aliyun gpushare",
    .notes =
        {
            .asks =
                "`aliyun.com/gpu-mem` of one container: memory of one card, in the node's "
                "unit. `aliyun.com/gpu-core.percentage` (ACK's cGPU) beside it: hundredths of the "
                "card's compute.",
            .nodes = "Capacity `aliyun.com/gpu-mem` and `aliyun.com/gpu-count`: a card is their "
                     "quotient. Whether a unit is a GiB or a MiB is guessed per node, or said with "
                     "`--gpushare-memory-unit`. If the plugin is started with the other unit, pods "
                     "keep what they were granted. Unequal cards: annotation "
                     "`gpuledger.io/card-memory`, in the same unit, by index (`10,20`). The "
                     "ConfigMap `unhealthy-gpu-NODE` in `kube-system` takes cards out. Of ACK's "
                     "labels `ack.node.gpu.placement` (`binpack`, `spread`) is the node's own "
                     "policy, and `ack.node.gpu.schedule` `core_mem`, or a capacity of "
                     "`aliyun.com/gpu-core.percentage`, says that compute is divided. Either, or "
                     "`cgpu`, also says that the kernel keeps pods apart, unless the label "
                     "`cgpu.disable.isolation` is `true`. With "
                     "`--gpushare-multiprocessors` it is, by as many as the label "
                     "`nvidia.com/gpu.multiprocessors` says.",
            .writes =
                "`ALIYUN_COM_GPU_MEM_IDX`, `_DEV`, `_POD`, `_ASSIGNED` and `_ASSUME_TIME`. The "
                "plugin hands out the card of the oldest unassigned pod of the same size, so "
                "pods of one size wait for each other on a node, until it has marked them.",
            .own_scheduler = "gpushare-scheduler-extender",
            .sees = "The card of any pod with `ALIYUN_COM_GPU_MEM_IDX`. It forgets a pod "
                    "when its deletion begins, gpuledger when it has ended: in between it "
                    "may hand out memory that is in use.",
            .played = "device plugin aff8a23, 2656995 and 45fb8b8. Read besides: "
                      "gpushare-scheduler-extender c0b6141",
            .limits =
                "Several GPU containers, or a GPU init container, in one pod: the plugin "
                "matches each container against the pod's total and never finds it (but for "
                "one-card nodes with a plugin newer than b0d42f5: "
                "`--gpushare-any-on-single-card`). One card per pod: the plugin reads one "
                "index. Compute on nodes that do not divide it. The plugin writes the number of "
                "cards before it registers their memory, so that after the loss of a card each of "
                "the others counts for a moment as the old memory by the new number, which is more "
                "than it has. ACK's own node side is closed and was not played.",
        },
    .words = {.memory = RESOURCE_MEM, .core = RESOURCE_CORE},
    .resources = resources,
    .records = records,
    .replaces = replaced,
    .names_cards = true,
    .card_marks = card_marks,
    .node_units = true,
    .numbers = CARD_NUMBERS_NVML,
    .isolation = ISOLATION_NONE,
    /* Source: AliyunContainerService/gpushare-scheduler-extender@c0b6141:pkg/cache/nodeinfo.go */
    .health_namespace = "kube-system",
    .health_prefix = "unhealthy-gpu-",
    .read_topology = read_topology,
    .read_sketch = read_sketch,
    .write_profile = write_profile,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .in_flight = lookalikes_find,
    .read_promise = read_promise,
    .write_revoked = write_revoked,
    .write_annotations = write_annotations,
    .write_assigned = write_assigned,
    .read_health = read_health,
};
