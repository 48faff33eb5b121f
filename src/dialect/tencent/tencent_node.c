/* SPDX-License-Identifier: Apache-2.0 */
/* A node's cards: how many, of what size each, and in which order gpu-manager counts them. */
#include "dialect/tencent/tencent.h"

#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/digits.h"
#include "dialect/marks/node_marks.h"
#include "dialect/warning.h"

#include <gpuledger/quantity.h>
#include <string.h>

/* Ours: the true size of each card by its minor number, in blocks ("59,59") or bytes
 * ("15109Mi,15107Mi"). gpu-manager tells kubelet their sum only
 * (tkestack/gpu-manager@8cd842e:pkg/services/allocator/nvidia/allocator.go). */
#define NODE_KEY_CARD_MEMORY NODE_CARD_MEMORY_KEY
/* Ours: the minor numbers in the order in which NVML counts the cards: "1,0". */
#define NODE_KEY_CARD_ORDER NODE_CARD_ORDER_KEY

/* The annotation's items, one per card; NULL otherwise. */
static char **split_by_card(const struct node_view *view, const char *key, int32_t n_cards,
                            char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, key);
    if (!text)
        return NULL;

    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    if (g_strv_length(items) == (guint)n_cards) {
        for (char **item = items; *item; item++)
            g_strstrip(*item);
        return g_steal_pointer(&items);
    }
    warn(ret_warning, g_strdup_printf("annotation '%s' lists %u cards of %d and is ignored", key,
                                      g_strv_length(items), n_cards));
    return NULL;
}

static bool read_size(const char *text, int64_t *ret_bytes)
{
    if (digits_parse(text, AMOUNT_BYTES_MAX / BLOCK_BYTES, ret_bytes)) {
        *ret_bytes *= BLOCK_BYTES;
        return true;
    }
    return quantity_parse(text, ret_bytes, NULL) && *ret_bytes <= AMOUNT_BYTES_MAX;
}

/* gpu-manager compares cards by blocks since v1.1.5, by bytes before. */
static void read_sizes(const struct node_view *view, const struct dialect_options *options,
                       struct topology *topology, char **ret_warning)
{
    const bool bytewise = options->tencent_order == TENCENT_ORDER_BYTES_NVML;
    g_auto(GStrv) items = split_by_card(view, NODE_KEY_CARD_MEMORY, topology->n_cards, ret_warning);
    int64_t bytes[NODE_CARDS_MAX];

    if (!items)
        return;
    for (int32_t i = 0; i < topology->n_cards; i++) {
        if (!read_size(items[i], &bytes[i])) {
            warn(ret_warning, g_strdup_printf("annotation '" NODE_KEY_CARD_MEMORY "': '%.32s' is "
                                              "not a size; all cards are taken to be equal",
                                              items[i]));
            return;
        }
    }
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = bytewise ? bytes[i] : bytes[i] - bytes[i] % BLOCK_BYTES;
}

static void read_order(const struct node_view *view, struct topology *topology, char **ret_warning)
{
    g_auto(GStrv) items = split_by_card(view, NODE_KEY_CARD_ORDER, topology->n_cards, ret_warning);
    bool seen[NODE_CARDS_MAX] = {false};
    int64_t minors[NODE_CARDS_MAX];

    if (!items)
        return;
    for (int32_t i = 0; i < topology->n_cards; i++) {
        if (!digits_parse(items[i], topology->n_cards - 1, &minors[i]) || seen[minors[i]]) {
            warn(ret_warning, g_strdup_printf("annotation '" NODE_KEY_CARD_ORDER "': '%.32s' is "
                                              "not the number of another card; it is ignored",
                                              items[i]));
            return;
        }
        seen[minors[i]] = true;
    }
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[minors[i]].rank = i;
}

bool tencent_read_topology(const struct node_view *view, const struct dialect_options *options,
                           struct topology *ret_topology, char **ret_warning, GError **error)
{
    /* Capacity, as gpu-manager states it once and for all: its devices never become unhealthy. */
    struct topology *topology = ret_topology;
    int64_t core, blocks;

    if (!read_capacity(view, RESOURCE_CORE, &core, error) ||
        !read_capacity(view, RESOURCE_MEMORY, &blocks, error))
        return false;
    if (core == 0)
        return false;
    if (core < CARD_CORE || core / CARD_CORE > NODE_CARDS_MAX || blocks < core / CARD_CORE)
        return fail_with(
            error, cards_error(core / CARD_CORE),
            "node '%s': capacity " RESOURCE_CORE " is %" G_GINT64_FORMAT " and " RESOURCE_MEMORY
            " is %" G_GINT64_FORMAT
            "; expected 100 of the one, and some of the other, for each of 1 to %d cards",
            view->name, core, blocks, NODE_CARDS_MAX);
    topology->n_cards = (int32_t)(core / CARD_CORE);
    topology->memory_unit = BLOCK_BYTES;
    for (int32_t i = 0; i < topology->n_cards; i++) {
        const struct amount size = {blocks / topology->n_cards, AMOUNT_NODE_UNITS};
        topology->cards[i].memory = amount_bytes(size, BLOCK_BYTES);
        topology->cards[i].rank = i;
    }
    read_sizes(view, options, topology, ret_warning);
    if (options->tencent_order != TENCENT_ORDER_BLOCKS_MINOR)
        read_order(view, topology, ret_warning);
    return true;
}
