/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Koordinator: counted, never placed. Its own scheduler chooses devices, which it knows from objects
 * of its own, and writes its choice into the pod; whoever else uses the node's cards must see them
 * taken.
 *
 * Source of the keys: koordinator a7a1b76b, apis/extension/device_share.go.
 */
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>

#include "json/json.h"

#include <string.h>

#define STEM "koordinator.sh/gpu"
#define RESOURCE_CORE "koordinator.sh/gpu-core"
#define RESOURCE_MEMORY "koordinator.sh/gpu-memory"
#define RESOURCE_RATIO "koordinator.sh/gpu-memory-ratio"
#define RESOURCE_WHOLE "nvidia.com/gpu"
#define KEY_ALLOCATED "scheduling.koordinator.sh/device-allocated"
#define PERCENT 10 /* thousandths */

/* 0 for what is not there or cannot be read. */
static int64_t amount_of(const struct string_pairs *pairs, const char *resource)
{
    const char *text = string_pairs_get(pairs, resource);
    int64_t amount;

    return text && quantity_parse(text, &amount, NULL) ? amount : 0;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    int64_t core = amount_of(&view->capacity, RESOURCE_CORE);
    int64_t memory = amount_of(&view->capacity, RESOURCE_MEMORY);

    if (core == 0)
        return false;
    if (core % 100 || core / 100 > NODE_CARDS_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE,
                    "node '%s': capacity " RESOURCE_CORE " is %" G_GINT64_FORMAT
                    "; it must be 100 for each of 1 to %d cards",
                    view->name, core, NODE_CARDS_MAX);
        return false;
    }
    topology->dialect = &dialect_koordinator;
    topology->memory_unit = 1;
    topology->n_cards = (int32_t)(core / 100);
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = MIN(memory / topology->n_cards, AMOUNT_BYTES_MAX);
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* The first of its resources that the pod names, or NULL. */
static const char *find_resource(const struct pod_view *view)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct string_pairs *all[] = {&view->containers[i].limits,
                                            &view->containers[i].requests};
        for (size_t j = 0; j < G_N_ELEMENTS(all); j++) {
            for (size_t k = 0; k < all[j]->n; k++) {
                if (g_str_has_prefix(all[j]->items[k].key, STEM))
                    return all[j]->items[k].key;
            }
        }
    }
    return NULL;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    const char *resource = find_resource(view);

    if (resource)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "the pod asks for '%s', which only Koordinator's scheduler hands out: set the "
                    "pod's schedulerName to koord-scheduler",
                    resource);
    return NULL;
}

struct device {
    int64_t minor;
    struct string_pairs resources;
};

static const struct json_field device_fields[] = {
    JSON_FIELD_INT64(struct device, minor, "minor", JSON_REQUIRED),
    JSON_FIELD_PAIRS(struct device, resources, "resources", JSON_NUMBERS),
    JSON_FIELD_END,
};

struct devices {
    const cJSON *gpu;
};

static const struct json_field devices_fields[] = {
    JSON_FIELD_ARRAY(struct devices, gpu, "gpu", 0),
    JSON_FIELD_END,
};

/* Of memory it states bytes, a percentage, or both. */
static struct share share_of(const struct string_pairs *resources, int32_t card)
{
    int64_t bytes = amount_of(resources, RESOURCE_MEMORY);
    int64_t ratio = amount_of(resources, RESOURCE_RATIO);
    int64_t core = amount_of(resources, RESOURCE_CORE);

    return (struct share){
        .memory = bytes > 0 ? (struct amount){MIN(bytes, AMOUNT_BYTES_MAX), AMOUNT_BYTES}
                            : (struct amount){MIN(ratio, 100) * PERCENT, AMOUNT_THOUSANDTHS},
        .container = CONTAINER_POD,
        .card = card,
        .core = (int32_t)MIN(core, 100) * PERCENT,
    };
}

#define CARD_SHARES_MAX (REQUEST_ASKS_MAX - 1) /* one is for add_pool */

/* Appends a share for each GPU that the annotation names. */
static bool read_devices(struct json_arena *arena, const char *text, GArray *shares,
                         GError **error)
{
    struct devices devices = {0};
    const cJSON *document = json_parse(arena, text, strlen(text), error), *item;

    if (!document || !json_decode(arena, document, devices_fields, &devices, error))
        return false;
    cJSON_ArrayForEach(item, devices.gpu) {
        struct device device = {0};
        if (!json_decode(arena, item, device_fields, &device, error))
            return false;
        if (device.minor < 0 || device.minor >= NODE_CARDS_MAX || shares->len == CARD_SHARES_MAX) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE,
                        "there are at most %d cards, of which a pod has at most %d", NODE_CARDS_MAX,
                        CARD_SHARES_MAX);
            return false;
        }
        struct share share = share_of(&device.resources, (int32_t)device.minor);
        g_array_append_val(shares, share);
    }
    return true;
}

/* What its containers ask for, on whatever card. */
static void add_unknown(const struct pod_view *view, GArray *shares)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        struct share share = share_of(&container->limits, CARD_UNKNOWN);
        if ((share.memory.value > 0 || share.core > 0) && shares->len < CARD_SHARES_MAX)
            g_array_append_val(shares, share);
    }
}

/* Whole cards count in the pool of NVIDIA's own plugin too. */
static void add_pool(const struct pod_view *view, GArray *shares)
{
    struct share share = {.container = CONTAINER_POD, .device = RESOURCE_WHOLE};

    for (size_t i = 0; i < view->n_containers; i++)
        share.devices +=
            (int32_t)MIN(amount_of(&view->containers[i].limits, RESOURCE_WHOLE), NODE_CARDS_MAX);
    if (share.devices > 0)
        g_array_append_val(shares, share);
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, KEY_ALLOCATED);
    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(struct share));
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    enum doubt doubt = DOUBT_NONE;

    if (!find_resource(view) && !text)
        return NULL;
    if (!text) {
        doubt = DOUBT_UNMARKED;
        warn(ret_warning, g_strdup("asks for " STEM "… without " KEY_ALLOCATED));
    } else if (!read_devices(arena, text, shares, &failure)) {
        doubt = DOUBT_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_ALLOCATED ": %.120s",
                                          failure->message));
        g_array_set_size(shares, 0);
    }
    if (shares->len == 0)
        add_unknown(view, shares);
    if (shares->len > 0 || find_resource(view))
        add_pool(view, shares);
    if (shares->len == 0)
        return NULL; /* other devices than GPUs */

    struct allocation *allocation = dialect_hold(&dialect_koordinator, view, shares);
    allocation->doubt = doubt;
    return allocation;
}

static const char *const resources[] = {STEM "*", NULL};

const struct dialect dialect_koordinator = {
    .name = "koordinator",
    .title = "Koordinator",
    .notes =
        {
            .asks = "Nothing of gpuledger: Koordinator's own scheduler places its pods.",
            .nodes = "Capacity `koordinator.sh/gpu-core`, 100 for each card, and "
                     "`koordinator.sh/gpu-memory`, divided among them.",
            .writes = "Nothing. What `scheduling.koordinator.sh/device-allocated` says that a pod "
                      "holds is counted, so that pods of other dialects find those cards taken.",
            .played = "none: pods as its scheduler leaves them",
            .limits = "Pods that ask for its resources and come to gpuledger all the same.",
        },
    .resources = resources,
    .names_cards = true,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
};
