/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volcano gpushare: volcano.sh/gpu-memory (one card per pod) and volcano.sh/gpu-number (whole
 * cards). Its successor, volcano-vgpu, is another dialect.
 *
 * What the node side does, and why we place as we do
 * (volcano-sh/devices@95b591b6:pkg/plugin/nvidia/kube_interactor.go, server.go, utils.go; 0d68534
 * too). The plugin registers one of the two resources, so a node serves one of them: by memory if
 * it reports gpu-memory (gpu-number is then only the number of its cards), else by number. kubelet
 * calls it once per container without naming the pod. It takes the pending, unassigned pod with the
 * oldest predicate time that has any container of that size, hands out the cards that the pod
 * names, and marks the whole pod as assigned. So
 *  - the second GPU container of a pod finds its own pod taken; it fails, or takes another's;
 *  - two unassigned pods of one size can swap cards, see dialect/lookalikes.h;
 *  - a pod without any annotation is a candidate too, so it waits like the others.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/lookalikes.h"
#include "core/bytes.h"
#include "dialect/hold.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <string.h>

DIALECT_ROW(volcano, 20);

/* Source: volcano-sh/volcano@ed72c7c8:pkg/scheduler/api/devices/nvidia/gpushare/type.go */
#define RESOURCE_MEMORY "volcano.sh/gpu-memory"
#define RESOURCE_NUMBER "volcano.sh/gpu-number"

/* Source: volcano-sh/devices@95b591b6:pkg/plugin/nvidia/const.go;
 * volcano-sh/volcano@ed72c7c8:pkg/scheduler/api/devices/nvidia/gpushare/type.go (unhealthy ones) */
#define KEY_INDEX "volcano.sh/gpu-index"
#define KEY_TIME "volcano.sh/predicate-time"
#define KEY_ASSIGNED "volcano.sh/gpu-assigned"
#define NODE_KEY_UNHEALTHY "volcano.sh/gpu-unhealthy-ids"
/* MiB of one card: NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md */
#define NODE_LABEL_MIB "nvidia.com/gpu.memory"

/* Which of the two resources a node's plugin serves, as its cards' mode. */
#define MODE_MEMORY "memory"
#define MODE_NUMBER "number"

/* Year 2116; later ones still fit above it. */
#define TIME_MAX (INT64_MAX / 2)

static int64_t units_bytes(int64_t units, const struct dialect_options *options)
{
    struct amount amount = {units, AMOUNT_NODE_UNITS};

    return amount_bytes(amount, MIB * MAX(options->volcano_memory_factor, 1));
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void read_unhealthy(const struct node_view *view, struct topology *topology,
                           char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, NODE_KEY_UNHEALTHY);
    if (!text || view->as_new)
        return;

    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    for (char **item = items; *item; item++) {
        guint64 index;
        g_strstrip(*item);
        if (!**item)
            continue;
        if (g_ascii_string_to_unsigned(*item, 10, 0, NODE_CARDS_MAX - 1, &index, NULL))
            topology->cards[index].unhealthy = true;
        else
            warn(ret_warning, g_strdup_printf("annotation '" NODE_KEY_UNHEALTHY "': '%.32s' is "
                                              "not a card index and is ignored",
                                              *item));
    }
}

/* The plugin counts cards, and MiB or as many as its factor says. */
static bool write_profile(const struct card_profile *profile, const struct dialect_options *options,
                          struct profile_words *words)
{
    const int64_t unit = units_bytes(1, options);

    if (profile->model || profile->slots || profile->memory < unit)
        return false;
    profile_words_amount(words, RESOURCE_NUMBER, profile->cards);
    profile_words_amount(words, RESOURCE_MEMORY, profile->cards * (profile->memory / unit));
    return true;
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *ret_topology, char **ret_warning, GError **error)
{
    const char *label = string_pairs_get(&view->labels, NODE_LABEL_MIB);
    int64_t memory, number;
    guint64 mib = 0;

    if (!read_capacity(view, RESOURCE_MEMORY, &memory, error) ||
        !read_capacity(view, RESOURCE_NUMBER, &number, error))
        return false;
    if (memory == 0 && number == 0)
        return false;
    if (number < 1 || number > NODE_CARDS_MAX || (memory > 0 && memory < number))
        return fail_with(error, cards_error(number),
                         "node '%s': capacity " RESOURCE_MEMORY " is %" G_GINT64_FORMAT
                         " but " RESOURCE_NUMBER " is %" G_GINT64_FORMAT
                         "; it must be between 1 and %d, and not above " RESOURCE_MEMORY,
                         view->name, memory, number, NODE_CARDS_MAX);

    struct topology *topology = ret_topology;
    int64_t size = units_bytes(memory / number, options);
    topology->dialect = &dialect_volcano;
    topology->n_cards = (int32_t)number;
    topology->memory_unit = 1;
    if (memory == 0 && label &&
        g_ascii_string_to_unsigned(label, 10, 0, AMOUNT_BYTES_MAX / MIB, &mib, NULL))
        size = (int64_t)mib * MIB;
    for (int32_t i = 0; i < topology->n_cards; i++) {
        topology->cards[i].memory = size;
        topology->cards[i].mode = memory > 0 ? MODE_MEMORY : MODE_NUMBER;
    }
    read_unhealthy(view, topology, ret_warning);
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

/* What one container asks for: so many units, or so many cards. */
struct wish {
    int32_t container;
    bool init, sidecar;
    int64_t amount;
};

struct wishes {
    bool by_number;
    uint32_t traits;
    int64_t match_amount; /* what the plugin compares: the first container's that is not init */
    guint n;
    struct wish items[REQUEST_ASKS_MAX];
};

/* Appends the container's wish, if it has one. */
static bool read_wish(const struct pod_view *view, size_t i, struct wishes *wishes, GError **error)
{
    const struct container_view *container = &view->containers[i];
    int64_t memory, number;

    if (!read_container_amount(container, RESOURCE_MEMORY, &memory, error) ||
        !read_container_amount(container, RESOURCE_NUMBER, &number, error))
        return false;
    if (memory == 0 && number == 0)
        return true;
    if ((memory > 0 && number > 0) || (wishes->n > 0 && wishes->by_number != (number > 0)))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "container '%s': " RESOURCE_MEMORY " and " RESOURCE_NUMBER
                         " exclude each other in a pod: keep one",
                         container->name);
    if (wishes->n == G_N_ELEMENTS(wishes->items))
        return fail_with(error, GPULEDGER_ERROR_RANGE,
                         "container '%s': a pod may have at most %d GPU containers",
                         container->name, REQUEST_ASKS_MAX);
    wishes->by_number = number > 0;
    wishes->items[wishes->n++] = (struct wish){
        .container = (int32_t)i,
        .init = container->init && !container->sidecar,
        .sidecar = container->sidecar,
        .amount = MAX(memory, number),
    };
    if (container->init)
        wishes->traits |= REQUEST_GPU_INIT_CONTAINER;
    else if (wishes->match_amount > 0)
        wishes->traits |= REQUEST_SEVERAL_GPU_CONTAINERS;
    else
        wishes->match_amount = MAX(memory, number);
    return true;
}

/* Whether containers ask for both kinds, which a pod cannot have; or for more than can be told apart. */
static bool is_many(const struct pod_view *view)
{
    int64_t n = 0;
    bool memory = false, number = false;

    for (size_t i = 0; i < view->n_containers; i++) {
        const int64_t units = amount_or_none(&view->containers[i], RESOURCE_MEMORY);
        const int64_t cards = amount_or_none(&view->containers[i], RESOURCE_NUMBER);
        memory |= units > 0;
        number |= cards > 0;
        n += MIN(cards, NODE_CARDS_MAX) + (units > 0);
    }
    return (memory && number) || n > REQUEST_ASKS_MAX;
}

static bool read_wishes(const struct pod_view *view, struct wishes *ret_wishes, GError **error)
{
    ret_wishes->by_number = false;
    ret_wishes->traits = 0;
    ret_wishes->match_amount = 0;
    ret_wishes->n = 0;
    for (size_t i = 0; i < view->n_containers; i++) {
        if (!read_wish(view, i, ret_wishes, error))
            return false;
    }
    return true;
}

static struct amount wish_memory(const struct wishes *wishes, const struct wish *wish,
                                 const struct dialect_options *options)
{
    if (wishes->by_number)
        return (struct amount){1000, AMOUNT_THOUSANDTHS};
    return (struct amount){units_bytes(wish->amount, options), AMOUNT_BYTES};
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    struct wishes wishes;

    if (!read_wishes(view, &wishes, error) || wishes.n == 0)
        return NULL;
    struct request *request = request_new(&dialect_volcano, wishes.n);
    request->traits = wishes.traits;
    request->match_amount = wishes.match_amount;
    for (guint i = 0; i < wishes.n; i++) {
        const struct wish *wish = &wishes.items[i];
        struct card_ask *ask = &request->asks[i];
        ask->container = wish->container;
        ask->init = wish->init;
        ask->count = 1;
        ask->memory = wish_memory(&wishes, wish, options);
        ask->core = wishes.by_number ? CORE_WHOLE : 0;
        ask->exclusive = wishes.by_number;
        if (wishes.by_number) /* more than any node has are too many, however many */
            ask->count = (int32_t)MIN(wish->amount, NODE_CARDS_MAX + 1);
    }
    return request;
}

/* The cards that the annotation names, in order. NULL and why: it names none, or not only cards. */
static GArray *read_cards(const struct pod_view *view, enum distrust *ret_distrust, char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, KEY_INDEX);

    *ret_distrust = DISTRUST_NONE;
    if (!text) {
        bool marked = string_pairs_get(&view->annotations, KEY_TIME) ||
                      string_pairs_get(&view->annotations, KEY_ASSIGNED);
        *ret_distrust = marked ? DISTRUST_LOST : DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup(marked ? "has lost the annotation " KEY_INDEX
                                          : "holds Volcano GPUs without " KEY_INDEX
                                            ": bound by another scheduler?"));
        return NULL;
    }
    g_autoptr(GArray) cards = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    for (char **item = items; *item || cards->len == 0; item++) {
        guint64 index;
        if (!*item ||
            !g_ascii_string_to_unsigned(*item, 10, 0, NODE_CARDS_MAX - 1, &index, NULL)) {
            *ret_distrust = DISTRUST_MALFORMED;
            warn(ret_warning,
                 g_strdup_printf("annotation " KEY_INDEX " '%.32s' is not a list of cards", text));
            return NULL;
        }
        int32_t card = (int32_t)index;
        g_array_append_val(cards, card);
    }
    return g_steal_pointer(&cards);
}

/* How many cards the containers hold together; plain init containers take theirs from the same. */
static int64_t count_cards(const struct wishes *wishes)
{
    int64_t lasting = 0, peak = 0;

    if (!wishes->by_number)
        return 1;
    for (guint i = 0; i < wishes->n; i++) {
        int64_t cards = MIN(wishes->items[i].amount, NODE_CARDS_MAX);
        if (wishes->items[i].init)
            peak = MAX(peak, cards);
        else
            lasting += cards;
    }
    return MAX(lasting, peak);
}

static uint32_t count_shares(const struct wishes *wishes)
{
    uint32_t n = 0;

    for (guint i = 0; i < wishes->n; i++)
        n += wishes->by_number ? (uint32_t)MIN(wishes->items[i].amount, NODE_CARDS_MAX) : 1;
    return n;
}

/* Deals the cards out: each container that lasts gets the next ones, a plain init container the
 * first ones; all of a pod that shares by memory are on the one card. */
static void fill_shares(struct allocation *allocation, const struct wishes *wishes,
                        const GArray *cards, const struct dialect_options *options)
{
    guint next = 0;
    uint32_t n = 0;

    for (guint i = 0; i < wishes->n; i++) {
        const struct wish *wish = &wishes->items[i];
        int64_t count = wishes->by_number ? MIN(wish->amount, NODE_CARDS_MAX) : 1;
        for (guint k = 0; k < count; k++) {
            guint at = !wishes->by_number ? 0 : wish->init ? k : next++;
            bool known = cards && at < cards->len;
            allocation->shares[n++] = (struct share){
                .memory = wish_memory(wishes, wish, options),
                .container = wish->container,
                .card = known ? g_array_index(cards, int32_t, at) : CARD_UNKNOWN,
                .core = wishes->by_number ? CORE_WHOLE : 0,
                .exclusive = wishes->by_number,
                .init = wish->init,
                .sidecar = wish->sidecar,
            };
        }
    }
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    struct wishes wishes;
    enum distrust distrust;

    if (is_many(view))
        return dialect_hold_many(&dialect_volcano, view, ret_warning);
    if (!read_wishes(view, &wishes, NULL) || wishes.n == 0)
        return NULL; /* what cannot be read, dialect_read_allocation holds */

    g_autoptr(GArray) cards = read_cards(view, &distrust, ret_warning);
    if (cards && cards->len != count_cards(&wishes)) {
        /* By memory the plugin hands out all that are named, and nobody can say how it is used; of
         * too many whole ones nobody can say which it has. */
        const bool too_many = !wishes.by_number || cards->len > count_cards(&wishes);
        distrust = too_many ? DISTRUST_MALFORMED : DISTRUST_EDITED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_INDEX " names %u cards, the "
                                          "containers ask for %" G_GINT64_FORMAT,
                                          cards->len, count_cards(&wishes)));
        if (too_many)
            g_clear_pointer(&cards, g_array_unref);
    }

    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const char *time = string_pairs_get(&view->annotations, KEY_TIME);
    bool pending = g_strcmp0(view->phase, "Pending") == 0 || !view->phase;
    guint64 time_ns = 0;
    struct allocation *allocation =
        allocation_new(view->uid, view->ns, view->name, count_shares(&wishes));
    allocation->dialect = &dialect_volcano;
    allocation->distrust = distrust;
    allocation->match_amount = wishes.match_amount;
    allocation->assigned = assigned && !g_str_equal(assigned, "false");
    /* Until kubelet has asked for its containers, a pod may also take another's place. */
    allocation->waiting =
        pending && (!view->started || (!allocation->assigned && !view->terminating));
    if (time && !g_ascii_string_to_unsigned(time, 10, 0, TIME_MAX, &time_ns, NULL))
        warn(ret_warning, g_strdup_printf("annotation " KEY_TIME " '%.32s' is not a time", time));
    allocation->assume_time_ns = (int64_t)time_ns;
    fill_shares(allocation, &wishes, cards, options);
    return allocation;
}

/* volcano-sh/devices 0d68534, 95b591b6: pkg/plugin/nvidia/kube_interactor.go: pods of the node, Pending,
 * not assigned and not terminating, that have a container of the size. */
static bool read_promise(const struct pod_view *view, struct device_promise *ret_promise)
{
    const char *assigned = string_pairs_get(&view->annotations, KEY_ASSIGNED);
    const bool pending = g_strcmp0(view->phase, "Pending") == 0 || !view->phase;
    struct wishes wishes;

    if (!pending || !pod_view_is_bound(view) || view->terminating ||
        (assigned && !g_str_equal(assigned, "false")))
        return false;
    const bool many = is_many(view);
    if (!many && (!read_wishes(view, &wishes, NULL) || wishes.n == 0))
        return false;
    *ret_promise = (struct device_promise){
        .node = view->node_name,
        .match_amount = many || wishes.n > 1 ? 0 : wishes.match_amount,
    };
    return true;
}

static void write_revoked(struct annotations *annotations)
{
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("true"));
}

/* --- placement ------------------------------------------------------------------------------ */

static enum reason refuse(const struct node *node, const struct request *request,
                          const struct dialect_options *options)
{
    const char *mode = request->asks[0].exclusive ? MODE_NUMBER : MODE_MEMORY;

    if (node->n_cards > 0 && g_strcmp0(node->cards[0].mode, mode) != 0)
        return REASON_OTHER_DIALECT;
    if (request->traits & REQUEST_GPU_INIT_CONTAINER)
        return REASON_GPU_INIT_CONTAINER;
    if (request->traits & REQUEST_SEVERAL_GPU_CONTAINERS)
        return REASON_SEVERAL_GPU_CONTAINERS;
    return REASON_NONE;
}

/* "false" is what the plugin takes the lack of the mark for; writing it undoes a mark that came
 * with the pod's template. */
static void write_annotations(const struct allocation *allocation, const struct node *node,
                              struct annotations *annotations)
{
    g_autoptr(GString) cards = g_string_new(NULL);

    for (uint32_t i = 0; i < allocation->n_shares; i++)
        g_string_append_printf(cards, "%s%d", i ? "," : "", allocation->shares[i].card);
    annotations_add(annotations, KEY_INDEX, g_string_free(g_steal_pointer(&cards), FALSE));
    annotations_add(annotations, KEY_TIME,
                    g_strdup_printf("%" G_GINT64_FORMAT, allocation->assume_time_ns));
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("false"));
}

static void write_assigned(const struct allocation *allocation, int64_t now_ns,
                           struct annotations *annotations)
{
    annotations_add(annotations, KEY_ASSIGNED, g_strdup("true"));
}

static const char *const resources[] = {RESOURCE_MEMORY, RESOURCE_NUMBER, NULL};

static const char *const records[] = {
    "volcano.sh/gpu-index", "volcano.sh/predicate-time", "volcano.sh/gpu-assigned", NULL,
};

const struct dialect dialect_volcano = {
    .name = "volcano",
    .title = "Volcano gpushare",
    /* Source: volcano-sh/volcano@ed72c7c8:cmd/scheduler/app/options/options.go */
    .scheduler = "volcano",
    .notes =
        {
            .asks =
                "`volcano.sh/gpu-memory` of one container: memory of one card, in MiB times the "
                "plugin's factor (`--volcano-memory-factor`). Or `volcano.sh/gpu-number`: "
                "whole cards.",
            .nodes =
                "Capacity `volcano.sh/gpu-memory` and `volcano.sh/gpu-number`: a card is their "
                "quotient. A node that reports no gpu-memory serves whole cards only, any "
                "other only memory: its plugin registers one of the two. Annotation "
                "`volcano.sh/gpu-unhealthy-ids` takes cards out.",
            .writes = "`volcano.sh/gpu-index` (`0`, or `0,1`), `volcano.sh/predicate-time`, and "
                      "`volcano.sh/gpu-assigned` as `false`. The plugin hands out the cards of the "
                      "oldest unassigned pod that has a container of the same size, so pods of one "
                      "size wait for each other on a node, until it has marked them.",
            .own_scheduler = "Volcano's scheduler",
            .sees = "The cards of any pod with `volcano.sh/gpu-index`.",
            .played = "device plugin 0d68534, and 95b591b6 in both of its modes. Read besides: "
                      "volcano ed72c7c8",
            .limits = "Several GPU containers, or a GPU init container, in one pod: the plugin "
                      "marks the pod as served after the first. Both resources in one pod.",
        },
    .words = {.memory = RESOURCE_MEMORY,
              .memory_unit = MIB,
              .whole = RESOURCE_NUMBER,
              .whole_units = 1},
    .resources = resources,
    .records = records,
    .replaces = records,
    .names_cards = true,
    .numbers = CARD_NUMBERS_NVML,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .write_profile = write_profile,
    .read_request = read_request,
    .read_allocation = read_allocation,
    .refuse = refuse,
    .in_flight = lookalikes_find,
    .read_promise = read_promise,
    .write_revoked = write_revoked,
    .write_annotations = write_annotations,
    .write_assigned = write_assigned,
};
