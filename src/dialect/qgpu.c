/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tencent's qGPU, of TKE: counted, never placed. What its scheduler writes for its node side is not
 * public, so nobody else can choose its cards, nor read which one a pod has: what a pod holds counts
 * on every card of its node.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/hold.h"
#include "core/bytes.h"
#include "dialect/rows.h"


DIALECT_ROW(qgpu, 50);

/* Source: elastic-ai/elastic-gpu@94fc37e:apis/elasticgpu/v1alpha1/types.go (names); what they may
 * be: TKE's public documentation, 457/59103 */
#define RESOURCE_CORE "tke.cloud.tencent.com/qgpu-core"
#define RESOURCE_MEMORY "tke.cloud.tencent.com/qgpu-memory"
#define CORE_PER_CARD 100
#define CORE_STEP 5
#define HOLDERS_MAX 16

static int64_t gib_bytes(int64_t gib)
{
    struct amount amount = {gib, AMOUNT_NODE_UNITS};

    return amount_bytes(amount, GIB);
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    int64_t core, memory;

    if (!read_capacity(view, RESOURCE_CORE, &core, error) ||
        !read_capacity(view, RESOURCE_MEMORY, &memory, error))
        return false;
    if (core == 0)
        return false;
    if (core % CORE_PER_CARD || core / CORE_PER_CARD > NODE_CARDS_MAX)
        return fail_with(error, cards_error(core / CORE_PER_CARD),
                         "node '%s': capacity " RESOURCE_CORE " is %" G_GINT64_FORMAT
                         "; it must be %d for each of 1 to %d cards",
                         view->name, core, CORE_PER_CARD, NODE_CARDS_MAX);
    topology->dialect = &dialect_qgpu;
    topology->memory_unit = 1;
    topology->n_cards = (int32_t)(core / CORE_PER_CARD);
    for (int32_t i = 0; i < topology->n_cards; i++) {
        topology->cards[i].memory = gib_bytes(memory / topology->n_cards);
        topology->cards[i].slots = HOLDERS_MAX;
    }
    return true;
}

/* Both are 0 if the container asks for neither. */
static bool read_container(const struct container_view *container, int64_t *ret_core,
                           int64_t *ret_memory, GError **error)
{
    return read_container_amount(container, RESOURCE_CORE, ret_core, error) &&
           read_container_amount(container, RESOURCE_MEMORY, ret_memory, error);
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        int64_t core, memory;

        if (!read_container(container, &core, &memory, error))
            return NULL;
        if (core == 0 && memory == 0)
            continue;
        if (core % (core > CORE_PER_CARD ? CORE_PER_CARD : CORE_STEP))
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "container '%s': " RESOURCE_CORE " is %" G_GINT64_FORMAT
                        "; it must be a multiple of %d up to %d, or of %d for whole cards",
                        container->name, core, CORE_STEP, CORE_PER_CARD, CORE_PER_CARD);
        else
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "container '%s' asks for qGPU, which only TKE's own scheduler hands out: "
                        "leave the pod to it",
                        container->name);
        return NULL;
    }
    return NULL;
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    g_autoptr(GArray) shares = g_array_new(FALSE, FALSE, sizeof(struct share));

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        int64_t core, memory;

        if (!read_container(container, &core, &memory, NULL) || (core == 0 && memory == 0))
            continue;
        const bool whole = core >= CORE_PER_CARD;
        const struct share share = {
            .memory = whole ? (struct amount){1000, AMOUNT_THOUSANDTHS}
                            : (struct amount){gib_bytes(memory), AMOUNT_BYTES},
            .container = (int32_t)i,
            .card = CARD_UNKNOWN,
            .core = (int32_t)MIN(core, CORE_PER_CARD) * (CORE_WHOLE / CORE_PER_CARD),
            .exclusive = whole,
            .init = container->init && !container->sidecar,
            .sidecar = container->sidecar,
        };
        g_array_append_val(shares, share);
    }
    if (shares->len == 0)
        return NULL;
    if (shares->len > REQUEST_ASKS_MAX)
        return dialect_hold_many(&dialect_qgpu, view, ret_warning);
    return dialect_hold(&dialect_qgpu, view, shares);
}

static const char *const resources[] = {RESOURCE_CORE, RESOURCE_MEMORY, NULL};

const struct dialect dialect_qgpu = {
    .name = "qgpu",
    .title = "TKE qGPU",
    .notes =
        {
            .asks = "Nothing of gpuledger: TKE's own scheduler places its pods.",
            .nodes = "Capacity `tke.cloud.tencent.com/qgpu-core`, 100 for each card, and "
                     "`tke.cloud.tencent.com/qgpu-memory` in GiB, divided among them; at most 16 "
                     "holders of a card.",
            .writes = "Nothing: what its node side reads is not public. What a pod asks for counts "
                      "on every card of its node, and no other dialect uses the node beside it.",
            .played = "none: its node side is closed. Read: TKE's documentation",
            .limits = "Its pods that come to gpuledger all the same, those with amounts that qGPU "
                      "does not know with the reason.",
        },
    .resources = resources,
    .isolation = ISOLATION_KERNEL,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
};
