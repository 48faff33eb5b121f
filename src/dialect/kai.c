/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KAI: counted, never placed. For every card that its scheduler shares it starts a pod that takes
 * the card as a whole from NVIDIA's plugin; which one that is, the pod finds out and writes down. The
 * pods that share the card ask for nothing that anybody counts.
 *
 * The pod writes NVML's UUID under the name of an index
 * (NVIDIA/KAI-Scheduler@v0.17.0:pkg/resourcereservation/patcher/pod_patcher.go). Run:ai, from which
 * KAI comes, has its pods in another namespace.
 */
#include "dialect/amounts.h"
#include "dialect/rows.h"
#include "dialect/warning.h"


DIALECT_ROW(kai, 60);

/* Source: NVIDIA/KAI-Scheduler@72de64fc:cmd/binder/app/options.go */
#define NAMESPACE "kai-resource-reservation"
#define NAMESPACE_RUNAI "runai-reservation"
/* Source: NVIDIA/KAI-Scheduler@v0.17.0:pkg/common/constants/constants.go */
#define RESOURCE "nvidia.com/gpu"
/* Source:
 * NVIDIA/KAI-Scheduler@72de64fc:pkg/binder/binding/resourcereservation/resource_reservation.go */
#define KEY_INDEX "run.ai/reserve_for_gpu_index"

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    return false;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    return NULL;
}

static int64_t count_cards(const struct pod_view *view)
{
    int64_t sum = 0;

    for (size_t i = 0; i < view->n_containers; i++)
        sum += MIN(amount_or_none(&view->containers[i], RESOURCE), NODE_CARDS_MAX);
    return sum;
}

static bool is_reservation(const struct pod_view *view)
{
    return (g_strcmp0(view->ns, NAMESPACE) == 0 || g_strcmp0(view->ns, NAMESPACE_RUNAI) == 0) &&
           count_cards(view) == 1;
}

/* A UUID, or a number. Sets the share's card; false: it is neither. */
static bool read_card(const char *text, struct share *share)
{
    guint64 index;

    if (g_ascii_string_to_unsigned(text, 10, 0, NODE_CARDS_MAX - 1, &index, NULL))
        share->card = (int32_t)index;
    else if (g_str_has_prefix(text, "GPU-") || g_str_has_prefix(text, "MIG-"))
        share->key = card_key(text); /* an instance's is no card's, so it counts on all of them */
    else
        return false;
    return true;
}

/* One card for itself: any, until it says which. NVIDIA's row counts the device of the pool. */
static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, KEY_INDEX);

    if (!is_reservation(view))
        return NULL;
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, 1);
    allocation->shares[0] = (struct share){
        .memory = {1000, AMOUNT_THOUSANDTHS},
        .container = CONTAINER_POD,
        .card = CARD_UNKNOWN,
        .core = CORE_WHOLE,
        .exclusive = true,
    };
    bool known = text && read_card(text, &allocation->shares[0]);
    allocation->dialect = &dialect_kai;
    allocation->assigned = view->started;
    allocation->open = !known;
    if (text && !known) {
        allocation->distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_INDEX " '%.32s' is not a card", text));
    }
    return allocation;
}

static const char *const resources[] = {RESOURCE, NULL};

static const char *const records[] = {
    "runai-gpu-group", "runai-gpu-group/*", "received-resource-type", KEY_INDEX, NULL,
};

const struct dialect dialect_kai = {
    .name = "kai",
    .title = "KAI",
    .scheduler = "kai-scheduler", /* pkg/common/constants, DefaultSchedulerName */
    .notes =
        {
            .asks = "Nothing of gpuledger: KAI's own scheduler places its pods.",
            .nodes = "Nothing.",
            .writes = "Nothing. Each pod in `kai-resource-reservation`, or in Run:ai's "
                      "`runai-reservation`, counts as the only holder of the card whose UUID "
                      "`run.ai/reserve_for_gpu_index` has, and of every card of its node until it "
                      "does, or where no other dialect tells the UUIDs.",
            .own_scheduler = "KAI",
            .sees = "Pods with `nvidia.com/gpu` only. While its reservation holds a card, "
                    "gpuledger keeps others off. Where pods of other dialects were there "
                    "before, KAI puts its own on the same card: this does not work.",
            .played =
                "none: reservation pods as its binder leaves them. Read: KAI-Scheduler v0.17.0, "
                "72de64fc",
            .limits = "The pods that share a reserved card are not told apart.",
        },
    .resources = resources,
    .records = records,
    .names_cards = true,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
};
