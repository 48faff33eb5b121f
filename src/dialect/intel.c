/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel GPU Aware Scheduling: counted, never placed. Its extender writes the cards of each container
 * into the pod, for the fractional mode of Intel's plugin; amounts are spread over them evenly.
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/hold.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <string.h>

DIALECT_ROW(intel, 55);

/* Source:
 * intel/platform-aware-scheduling@c4c90e3:gpu-aware-scheduling/pkg/gpuscheduler/scheduler.go,
 * gpu-aware-scheduling/docs/usage.md */
#define STEM "gpu.intel.com/"
#define RESOURCE_I915 STEM "i915"
#define RESOURCE_XE STEM "xe"
#define RESOURCE_CORE STEM "millicores"
#define RESOURCE_MEMORY STEM "memory.max"
#define LABEL_NUMBERS STEM "gpu-numbers" /* "0.1.2" */
#define LABEL_CARDS STEM "cards"         /* before that: "card0.card1" */
#define LABEL_PARTS_MAX 16
#define CARD "card"
#define KEY_CARDS "gas-container-cards" /* "card0,card1|card2": one item per container */

/* Of either driver; a node or a pod names one of them. */
static int64_t gpus_of(const struct string_pairs *pairs)
{
    return MIN(listed_or_none(pairs, RESOURCE_I915), INT32_MAX) +
           MIN(listed_or_none(pairs, RESOURCE_XE), INT32_MAX);
}

/* "3" or "card3". */
static bool read_card(const char *text, int32_t *ret_card)
{
    guint64 number;

    if (g_str_has_prefix(text, CARD))
        text += strlen(CARD);
    if (!g_ascii_string_to_unsigned(text, 10, 0, NODE_CARDS_MAX - 1, &number, NULL))
        return false;
    *ret_card = (int32_t)number;
    return true;
}

/* --- nodes ---------------------------------------------------------------------------------- */

/* A value is no longer than 63 bytes; what follows stands in labels of the same name with a number
 * from 2 on, after a Z
 * (intel/platform-aware-scheduling@c4c90e3:gpu-aware-scheduling/pkg/gpuscheduler/utils.go). */
static char *join_label(const struct node_view *view, const char *label)
{
    GString *text = g_string_new(string_pairs_get(&view->labels, label));

    for (int part = 2; part <= LABEL_PARTS_MAX && text->len > 0; part++) {
        g_autofree char *key = g_strdup_printf("%s%d", label, part);
        const char *more = string_pairs_get(&view->labels, key);
        if (!more)
            break;
        g_string_append(text, more + (*more == 'Z'));
    }
    return g_string_free(text, FALSE);
}

/* Numbers that are not named in between are of cards that do not exist. */
static bool read_numbers(const char *text, struct topology *topology)
{
    g_auto(GStrv) items = g_strsplit(text, ".", NODE_CARDS_MAX + 1);
    int32_t card, n = 0;

    for (char **item = items; *item; item++) {
        if (!read_card(*item, &card))
            return false;
        n = MAX(n, card + 1);
    }
    topology->n_cards = n;
    for (int32_t i = 0; i < n; i++)
        topology->cards[i].unhealthy = true;
    for (char **item = items; *item && read_card(*item, &card); item++)
        topology->cards[card].unhealthy = false;
    return n > 0;
}

static bool read_topology(const struct node_view *view, const struct dialect_options *options,
                          struct topology *topology, char **ret_warning, GError **error)
{
    g_autofree char *numbers = join_label(view, LABEL_NUMBERS);
    g_autofree char *cards = join_label(view, LABEL_CARDS);
    const char *text = *numbers ? numbers : cards;
    int64_t memory = listed_or_none(&view->allocatable, RESOURCE_MEMORY);
    int32_t n = 0;

    if (gpus_of(&view->allocatable) == 0 || !*text)
        return false;
    if (!read_numbers(text, topology))
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "node '%s': label %s '%.64s' does not number 1 to %d cards, as '0.1.2' does",
            view->name, *numbers ? LABEL_NUMBERS : LABEL_CARDS, text, NODE_CARDS_MAX);
    topology->dialect = &dialect_intel;
    topology->memory_unit = 1;
    for (int32_t i = 0; i < topology->n_cards; i++)
        n += !topology->cards[i].unhealthy;
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory =
            topology->cards[i].unhealthy ? 0 : MIN(memory / n, AMOUNT_BYTES_MAX);
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

static bool asks(const struct pod_view *view)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        if (gpus_of(&view->containers[i].limits) > 0)
            return true;
    }
    return false;
}

static struct request *read_request(const struct pod_view *view,
                                    const struct dialect_options *options, GError **error)
{
    if (asks(view))
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "the pod asks for '" STEM "…', which only Intel's GPU Aware Scheduling hands "
                    "out: set the pod's schedulerName to that of its scheduler");
    return NULL;
}

/* What the container has on each of `n` cards. */
static struct share share_of(const struct pod_view *view, size_t container, int64_t n, int32_t card)
{
    const struct string_pairs *limits = &view->containers[container].limits;
    int64_t memory = listed_or_none(limits, RESOURCE_MEMORY) / MAX(n, 1);
    int64_t core = listed_or_none(limits, RESOURCE_CORE) / MAX(n, 1);

    return (struct share){
        .memory = {MIN(memory, AMOUNT_BYTES_MAX), AMOUNT_BYTES},
        .container = (int32_t)container,
        .card = card,
        .core = (int32_t)MIN(core, CORE_WHOLE),
        .init = view->containers[container].init && !view->containers[container].sidecar,
        .sidecar = view->containers[container].sidecar,
        .basis = SHARE_OF_ITS_MAKE,
    };
}

/* Appends a share for each card that the annotation names; false: it does not suit the pod. */
static bool read_cards(const struct pod_view *view, const char *text, GArray *shares)
{
    g_auto(GStrv) items = g_strsplit(text, "|", (gint)view->n_containers + 1);
    const size_t n_items = g_strv_length(items);

    for (size_t i = 0; i < view->n_containers; i++) {
        g_auto(GStrv) names = g_strsplit(i < n_items ? items[i] : "", ",", NODE_CARDS_MAX + 1);
        const int64_t n = g_strv_length(names);
        int32_t card;
        if (n != gpus_of(&view->containers[i].limits))
            return false;
        for (char **name = names; *name; name++) {
            if (!read_card(*name, &card) || shares->len == REQUEST_ASKS_MAX)
                return false;
            struct share share = share_of(view, i, n, card);
            g_array_append_val(shares, share);
        }
    }
    return n_items <= view->n_containers;
}

/* What its containers ask for, on whatever cards. */
static void add_unknown(const struct pod_view *view, GArray *shares)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const int64_t n = MIN(gpus_of(&view->containers[i].limits), REQUEST_ASKS_MAX);
        for (int64_t j = 0; j < n && shares->len < REQUEST_ASKS_MAX; j++) {
            struct share share = share_of(view, i, n, CARD_UNKNOWN);
            g_array_append_val(shares, share);
        }
    }
}

static struct allocation *read_allocation(const struct pod_view *view,
                                          const struct dialect_options *options,
                                          char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, KEY_CARDS);
    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(struct share));
    enum distrust distrust = DISTRUST_NONE;

    if (!asks(view))
        return NULL;
    if (!text) {
        distrust = DISTRUST_UNMARKED;
        warn(ret_warning, g_strdup("asks for " STEM "… without " KEY_CARDS));
    } else if (!read_cards(view, text, shares)) {
        distrust = DISTRUST_MALFORMED;
        warn(ret_warning, g_strdup_printf("annotation " KEY_CARDS " '%.64s' does not name the cards "
                                          "that its containers ask for",
                                          text));
        g_array_set_size(shares, 0);
    }
    if (shares->len == 0)
        add_unknown(view, shares);
    const bool many = shares->len == 0;
    struct allocation *allocation = many ? dialect_hold_many(&dialect_intel, view, ret_warning)
                                         : dialect_hold(&dialect_intel, view, shares);
    if (many)
        allocation->shares[0].basis = SHARE_OF_ITS_MAKE;
    else
        allocation->distrust = distrust;
    return allocation;
}

static const char *const resources[] = {STEM "*", NULL};

/* Source:
 * intel/platform-aware-scheduling@c4c90e3:gpu-aware-scheduling/pkg/gpuscheduler/scheduler.go */
static const char *const records[] = {
    "gas-ts", KEY_CARDS, "gas-container-tiles", NULL,
};

const struct dialect dialect_intel = {
    .name = "intel",
    .title = "Intel GAS",
    .notes =
        {
            .asks = "Nothing of gpuledger: the extender of Intel's GPU Aware Scheduling places its "
                    "pods.",
            .nodes = "Label `gpu.intel.com/gpu-numbers`, or the older `gpu.intel.com/cards`; "
                     "allocatable `gpu.intel.com/memory.max`, divided among the cards.",
            .writes =
                "Nothing. The cards that `gas-container-cards` names are counted as taken by "
                "an equal part of the container's `millicores` and `memory.max` each, on nodes "
                "without cards of other dialects. On others its cards are not kept.",
            .own_scheduler = "Intel GAS",
            .sees = "Nothing. No other dialect's pods use a card of its make.",
            .played =
                "none: pods as its extender leaves them. Read: platform-aware-scheduling c4c90e3",
            .limits = "Pods that ask for its resources and come to gpuledger all the same. Tiles "
                      "are not told apart.",
        },
    .resources = resources,
    .records = records,
    .names_cards = true,
    .own_cards = true,
    .isolation = ISOLATION_NONE,
    .read_topology = read_topology,
    .read_request = read_request,
    .read_allocation = read_allocation,
};
