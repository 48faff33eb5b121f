/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up dialect, to show how one is added and to test that nothing else knows of it: containers ask
 * for MiB of one card, and the pod's annotation says which card it is on. Its plugin is told by kubelet
 * whose container it serves, so no pod waits for another.
 */
#include "dialect/amounts.h"
#include "dialect/hold.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>

DIALECT_ROW(example, 99);

#define RESOURCE "cards.example.com/memory"
#define COUNT "cards.example.com/count"
#define KEY_CARD "cards.example.com/card"
#define MIB (INT64_C(1) << 20)

static int64_t mib_bytes(int64_t mib)
{
    return amount_bytes((struct amount){mib, AMOUNT_NODE_UNITS}, MIB);
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    const char *count = string_pairs_get(&view->capacity, COUNT);
    const char *memory = string_pairs_get(&view->capacity, RESOURCE);
    int64_t cards, mib;

    if (!count || !memory)
        return false;
    if (!quantity_parse(count, &cards, error) || !quantity_parse(memory, &mib, error)) {
        g_prefix_error(error, "node '%s': capacity of example.com's cards: ", view->name);
        return false;
    }
    if (cards < 1 || cards > NODE_CARDS_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE,
                    "node '%s': capacity " COUNT " must be 1 to %d", view->name, NODE_CARDS_MAX);
        return false;
    }
    topology->dialect = &dialect_example;
    topology->memory_unit = 1;
    topology->n_cards = (int32_t)cards;
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = mib_bytes(mib / cards);
    return true;
}

/* Of all containers together, which get the same card. */
static int64_t sum_memory(const struct pod_view *view)
{
    int64_t sum = 0;

    for (size_t i = 0; i < view->n_containers; i++)
        sum += amount_or_none(&view->containers[i], RESOURCE);
    return sum;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    int64_t amount;

    for (size_t i = 0; i < view->n_containers; i++) {
        const char *text = container_view_amount(&view->containers[i], RESOURCE);
        if (text && !quantity_parse(text, &amount, error)) {
            g_prefix_error(error, "container '%s': " RESOURCE ": ", view->containers[i].name);
            return NULL;
        }
    }
    if (sum_memory(view) == 0)
        return NULL;
    struct request *request = request_new(&dialect_example, 1);
    request->asks[0] = (struct card_ask){
        .memory = {mib_bytes(sum_memory(view)), AMOUNT_BYTES},
        .container = CONTAINER_POD,
        .count = 1,
    };
    return request;
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, KEY_CARD);
    guint64 card;

    if (sum_memory(view) == 0)
        return NULL;
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, 1);
    const bool known = text && g_ascii_string_to_unsigned(text, 10, 0, NODE_CARDS_MAX - 1, &card, NULL);
    allocation->dialect = &dialect_example;
    allocation->assigned = view->started;
    allocation->shares[0] = (struct share){
        .memory = {mib_bytes(sum_memory(view)), AMOUNT_BYTES},
        .container = CONTAINER_POD,
        .card = known ? (int32_t)card : CARD_UNKNOWN,
    };
    if (!known) {
        allocation->distrust = text ? DISTRUST_MALFORMED : DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_CARD " '%.32s' is not a card", text ? text : ""));
    }
    return allocation;
}

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    return REASON_NONE;
}

static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    annotations_add(annotations, KEY_CARD, g_strdup_printf("%d", allocation->shares[0].card));
}

static const char *const resources[] = {RESOURCE, NULL};
static const char *const records[] = {KEY_CARD, NULL};

const struct dialect dialect_example = {
    .name = "example",
    .title = "Example's cards",
    .notes =
        {
            .asks = "`cards.example.com/memory` of each container: MiB of the pod's one card.",
            .nodes = "Capacity `cards.example.com/count`, and `cards.example.com/memory`, divided among "
                     "them.",
            .writes = "`cards.example.com/card`, which its plugin reads.",
            .played = "none: it is made up",
            .limits = "One card for each pod.",
        },
    .words = {.memory = RESOURCE, .memory_unit = MIB},
    .resources = resources,
    .records = records,
    .names_cards = true,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .write_annotations = write_annotations,
};
