/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Koordinator: counted, never placed. Its own scheduler chooses devices, which it knows from objects
 * of its own, and writes its choice into the pod; whoever else uses the node's cards must see them
 * taken.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/hold.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include "json/json.h"

#include <string.h>

DIALECT_ROW(koordinator, 70);

/* Source: koordinator-sh/koordinator@a7a1b76b:apis/extension/device_share.go */
#define STEM "koordinator.sh/gpu"
#define RESOURCE_BOTH "koordinator.sh/gpu"          /* percents of compute, and as many of memory */
#define RESOURCE_SHARED "koordinator.sh/gpu.shared" /* among so many cards the rest is divided */
#define RESOURCE_CORE "koordinator.sh/gpu-core"
#define RESOURCE_MEMORY "koordinator.sh/gpu-memory"
#define RESOURCE_RATIO "koordinator.sh/gpu-memory-ratio"
#define RESOURCE_WHOLE "nvidia.com/gpu"
#define KEY_ALLOCATED "scheduling.koordinator.sh/device-allocated"
#define UUID_PREFIX "GPU-"
#define PERCENT 10 /* thousandths */
#define CORE_MAX (100 * NODE_CARDS_MAX)

/* Its scheduler chooses devices for pods that ask for NVIDIA's resource, too
 * (koordinator-sh/koordinator@a7a1b76b:pkg/scheduler/plugins/deviceshare). */
#define SCHEDULER "koord-scheduler"

/* --- nodes ---------------------------------------------------------------------------------- */

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    int64_t core = listed_or_none(&view->capacity, RESOURCE_CORE);
    int64_t memory = listed_or_none(&view->capacity, RESOURCE_MEMORY);

    if (core == 0)
        return false;
    if (core % 100 || core / 100 > NODE_CARDS_MAX)
        return fail_with(error, cards_error(core / 100),
                         "node '%s': capacity " RESOURCE_CORE " is %" G_GINT64_FORMAT
                         "; it must be 100 for each of 1 to %d cards",
                         view->name, core, NODE_CARDS_MAX);
    topology->dialect = &dialect_koordinator;
    topology->memory_unit = 1;
    topology->n_cards = (int32_t)(core / 100);
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = MIN(memory / topology->n_cards, AMOUNT_BYTES_MAX);
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* The first of its resources that the pod asks for, or NULL. */
static const char *find_resource(const struct pod_view *view)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct string_pairs *all[] = {&view->containers[i].limits,
                                            &view->containers[i].requests};
        for (size_t j = 0; j < G_N_ELEMENTS(all); j++) {
            for (size_t k = 0; k < all[j]->n; k++) {
                const struct string_pair *pair = &all[j]->items[k];
                if (g_str_has_prefix(pair->key, STEM) && amount_asks(pair->value))
                    return pair->key;
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

/* A minor number is not what others call the card whose UUID is beside it. */
struct device {
    int64_t minor;
    const char *uuid;
};

static const struct json_field device_fields[] = {
    JSON_FIELD_INT64(struct device, minor, "minor", JSON_REQUIRED),
    JSON_FIELD_STRING(struct device, uuid, "id", 0),
    JSON_FIELD_END,
};

struct devices {
    const cJSON *gpu;
};

static const struct json_field devices_fields[] = {
    JSON_FIELD_ARRAY(struct devices, gpu, "gpu", 0),
    JSON_FIELD_END,
};

/* What the containers ask for together: percents of cards, and bytes or percents of their memory; and of
 * how many cards, if they say so. */
struct wish {
    int64_t core, ratio, bytes, shared;
    int64_t whole; /* percents, by another resource: only if nothing else is said */
};

static struct wish wish_of(const struct container_view *container)
{
    const int64_t both = MIN(amount_or_none(container, RESOURCE_BOTH), CORE_MAX);

    return (struct wish){
        .core = MIN(amount_or_none(container, RESOURCE_CORE), CORE_MAX) + both,
        .ratio = MIN(amount_or_none(container, RESOURCE_RATIO), CORE_MAX) + both,
        .bytes = MIN(amount_or_none(container, RESOURCE_MEMORY), AMOUNT_BYTES_MAX),
        .shared = MIN(amount_or_none(container, RESOURCE_SHARED), NODE_CARDS_MAX),
        .whole = MIN(amount_or_none(container, RESOURCE_WHOLE), NODE_CARDS_MAX) * 100,
    };
}

static struct wish wish_sum(const struct wish *a, const struct wish *b)
{
    return (struct wish){a->core + b->core, a->ratio + b->ratio, a->bytes + b->bytes,
                         a->shared + b->shared, a->whole + b->whole};
}

static void wish_raise(struct wish *wish, const struct wish *least)
{
    wish->core = MAX(wish->core, least->core);
    wish->ratio = MAX(wish->ratio, least->ratio);
    wish->bytes = MAX(wish->bytes, least->bytes);
    wish->shared = MAX(wish->shared, least->shared);
    wish->whole = MAX(wish->whole, least->whole);
}

/* Of each resource the larger of what runs together and of what each init container needs beside the
 * sidecars before it
 * (koordinator-sh/koordinator@a7a1b76b:pkg/scheduler/plugins/deviceshare/utils.go). */
static struct wish read_wish(const struct pod_view *view)
{
    struct wish wish = {0}, sidecars = {0}, start = {0};

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        const struct wish own = wish_of(container);
        if (container->init && !container->sidecar) {
            const struct wish meanwhile = wish_sum(&sidecars, &own);
            wish_raise(&start, &meanwhile);
            continue;
        }
        wish = wish_sum(&wish, &own);
        if (container->sidecar)
            sidecars = wish_sum(&sidecars, &own);
    }
    wish_raise(&wish, &start);
    if (wish.core + wish.ratio + wish.bytes == 0) /* whole ones, if how much of them is not said */
        wish.core = wish.ratio = wish.shared > 0 ? wish.shared * 100 : wish.whole;
    return wish;
}

static int64_t divide(int64_t amount, int64_t n)
{
    return (amount + n - 1) / n;
}

/* The least number of cards that have so much. */
static int64_t cards_needed(const struct wish *wish)
{
    return MAX(MAX(divide(MAX(wish->core, wish->ratio), 100), wish->shared), 1);
}

/* The most that can have it: how many bytes a card has is its node's to say. */
static int64_t cards_most(const struct wish *wish)
{
    return wish->shared > 0 || wish->core > 0 || wish->ratio > 0 ? cards_needed(wish)
                                                                 : NODE_CARDS_MAX;
}

/* What the pod has of each of `n` cards. */
static struct share share_of(const struct wish *wish, int64_t n)
{
    const int64_t ratio = MIN(divide(wish->ratio, n), 100), core = MIN(divide(wish->core, n), 100);

    return (struct share){
        .memory = wish->bytes > 0
                      ? (struct amount){MIN(divide(wish->bytes, n), AMOUNT_BYTES_MAX), AMOUNT_BYTES}
                      : (struct amount){ratio * PERCENT, AMOUNT_THOUSANDTHS},
        .container = CONTAINER_POD,
        .card = CARD_UNKNOWN,
        .core = (int32_t)core * PERCENT,
    };
}

/* What the pod has of one card, by each of the card's names. */
static void add_card(const struct device *device, struct share share, GArray *shares)
{
    if (device->uuid) {
        share.key = card_key(device->uuid);
        share.basis = SHARE_BY_UUID;
        g_array_append_val(shares, share);
        share.key = 0;
        share.basis = SHARE_BY_NUMBER;
    }
    share.card = (int32_t)device->minor;
    share.minor = (int32_t)device->minor + 1;
    g_array_append_val(shares, share);
}

static bool is_named(const GArray *cards, const char *uuid)
{
    for (guint i = 0; uuid && i < cards->len; i++) {
        if (g_strcmp0(g_array_index(cards, struct device, i).uuid, uuid) == 0)
            return true;
    }
    return false;
}

/* Appends the cards (struct device) that the annotation names, each once. */
static bool read_cards(struct json_arena *arena, const char *text, GArray *cards, GError **error)
{
    struct devices devices = {0};
    const cJSON *document = json_parse(arena, text, strlen(text), error), *item;
    bool seen[NODE_CARDS_MAX] = {false};

    if (!document || !json_decode(arena, document, devices_fields, &devices, error))
        return false;
    cJSON_ArrayForEach(item, devices.gpu) {
        struct device device = {0};
        if (!json_decode(arena, item, device_fields, &device, error))
            return false;
        if (device.uuid && !g_str_has_prefix(device.uuid, UUID_PREFIX))
            device.uuid = NULL; /* of another make */
        if (device.minor < 0 || device.minor >= NODE_CARDS_MAX || seen[device.minor] ||
            is_named(cards, device.uuid) || cards->len == REQUEST_ASKS_MAX)
            return fail_with(error, GPULEDGER_ERROR_RANGE,
                             "there are at most %d cards, of which a pod has at most %d, each once",
                             NODE_CARDS_MAX, REQUEST_ASKS_MAX);
        seen[device.minor] = true;
        g_array_append_val(cards, device);
    }
    return true;
}

/* The amounts are what the containers ask for; the cards are what its scheduler has written, if they
 * can be as many. */
static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    const bool asks = find_resource(view) != NULL;
    const char *text = asks || g_strcmp0(view->scheduler_name, SCHEDULER) == 0
                           ? string_pairs_get(&view->annotations, KEY_ALLOCATED)
                           : NULL;
    const struct wish wish = read_wish(view);
    g_autoptr(GArray) cards = g_array_new(FALSE, TRUE, sizeof(struct device));
    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(struct share));
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    enum distrust distrust = DISTRUST_NONE;

    if ((!asks && !text) || wish.core + wish.ratio + wish.bytes == 0)
        return NULL; /* other devices than GPUs */
    if (!text) {
        distrust = DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup("asks for " STEM "… without " KEY_ALLOCATED));
    } else if (!read_cards(arena, text, cards, &failure)) {
        distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_ALLOCATED ": %.120s",
                                          failure->message));
    } else if (cards->len < cards_needed(&wish) || cards->len > cards_most(&wish)) {
        distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_ALLOCATED " names %u cards, the "
                                          "containers ask for %" G_GINT64_FORMAT,
                                          cards->len, cards_needed(&wish)));
    }
    for (guint i = 0; distrust == DISTRUST_NONE && i < cards->len; i++)
        add_card(&g_array_index(cards, struct device, i), share_of(&wish, cards->len), shares);
    if (shares->len == 0) {
        struct share share = share_of(&wish, cards_needed(&wish));
        g_array_append_val(shares, share);
    }
    struct allocation *allocation = dialect_hold(&dialect_koordinator, view, shares);
    allocation->distrust = distrust;
    return allocation;
}

/* --- pods of others ---------------------------------------------------------------------------- */

/* What a pod has of a card: the larger of what runs together and of each init container. */
struct part {
    int64_t bytes, core; /* thousandths */
    bool held;
};

static struct part part_of(const struct allocation *allocation, const struct node *node,
                           const struct card *card)
{
    struct part part = {0}, start = {0};

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (share->device || node_share_card(node, share) != card)
            continue;
        const int64_t bytes =
            share->exclusive ? card->memory : card_bytes(node, card, share->memory);
        const int64_t core = share->exclusive ? CORE_WHOLE : share->core;
        part.held = true;
        part.bytes += share->init ? 0 : bytes;
        part.core += share->init ? 0 : core;
        start.bytes = share->init ? MAX(start.bytes, bytes) : start.bytes;
        start.core = share->init ? MAX(start.core, core) : start.core;
    }
    return (struct part){MIN(MAX(part.bytes, start.bytes), card->memory),
                         MIN(MAX(part.core, start.core), CORE_WHOLE), part.held};
}

static void write_amount(struct json_writer *writer, const char *resource, int64_t amount)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, amount);

    json_key_string(writer, resource, text);
}

static void write_card(struct json_writer *writer, const struct card *card, const struct part *part)
{
    json_begin_object(writer);
    json_key_int(writer, "minor", card->minor);
    if (card->uuid && g_str_has_prefix(card->uuid, UUID_PREFIX))
        json_key_string(writer, "id", card->uuid);
    json_key_object(writer, "resources");
    write_amount(writer, RESOURCE_CORE, divide(part->core, PERCENT));
    write_amount(writer, RESOURCE_MEMORY, part->bytes);
    write_amount(writer, RESOURCE_RATIO,
                 card->memory > 0 ? divide(part->bytes * 100, card->memory) : 100);
    json_end_object(writer);
    json_end_object(writer);
}

/* Its scheduler counts what device-allocated says of any pod, whoever has bound it, and looks at nothing else:
 * koordinator a7a1b76b, pkg/scheduler/plugins/deviceshare/eventhandler_pod.go:44,104. */
static void write_seen(const struct allocation *allocation, const struct node *node,
                       struct annotations *annotations)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_array(&writer, "gpu");
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct part part = part_of(allocation, node, &node->cards[i]);
        if (part.held)
            write_card(&writer, &node->cards[i], &part);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    annotations_add(annotations, KEY_ALLOCATED, g_strdup(text->str));
}

static const char *const resources[] = {STEM "*", NULL};

/* Source:
 * koordinator-sh/koordinator@a7a1b76b:pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go */
static const char *const records[] = {
    KEY_ALLOCATED, "scheduling.koordinator.sh/gpu-minors",
    "scheduling.koordinator.sh/bind-timestamp", NULL,
};

const struct dialect dialect_koordinator = {
    .name = "koordinator",
    .title = "Koordinator",
    .scheduler = SCHEDULER,
    .notes =
        {
            .asks = "Nothing of gpuledger: Koordinator's own scheduler places its pods.",
            .nodes = "Capacity `koordinator.sh/gpu-core`, 100 for each card, and "
                     "`koordinator.sh/gpu-memory`, divided among them.",
            .writes = "With pods of other dialects on nodes with its capacity "
                      "`scheduling.koordinator.sh/device-allocated`, by which its scheduler sees "
                      "what they have of which cards. For its own pods nothing. What "
                      "`scheduling.koordinator.sh/device-allocated` says of a pod's "
                      "cards is counted, with what its containers ask for, so that pods of other "
                      "dialects find those cards taken: by its `id`, a UUID, on nodes whose "
                      "dialects tell UUIDs, else by its `minor`.",
            .own_scheduler = "Koordinator's scheduler",
            .sees = "What `device-allocated` says, which comes with the Binding. gpuledger "
                    "does not see its Reservation objects.",
            .played = "none: pods as its scheduler leaves them. Read: v1.5.0 to v1.8.0, a7a1b76b",
            .limits =
                "Pods that ask for its resources and come to gpuledger all the same. On a node "
                "with its capacity, pods whose cards the node chooses, those of NVIDIA's "
                "plugin and gpu-manager: its scheduler could not be told which they have. "
                "Its Reservation objects are not read: what they keep is given to others.",
        },
    .resources = resources,
    .records = records,
    .names_cards = true,
    .numbers = CARD_NUMBERS_MINOR,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .write_seen = write_seen,
};
