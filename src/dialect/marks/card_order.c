/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/marks/card_order.h"

#include "dialect/digits.h"
#include "dialect/marks/node_marks.h"
#include "dialect/warning.h"

#define ORDER NODE_CARD_ORDER_KEY

bool card_order_matters(const struct topology *topology)
{
    bool found = false;

    for (int32_t i = 0; i < topology->n_dialects; i++)
        found |= topology->dialects[i]->numbers == CARD_NUMBERS_MINOR;
    return found;
}

/* A row that serves the node alone calls the ledger's cards by their minor numbers itself. */
static bool has_own_reader(const struct topology *topology)
{
    bool found = false;

    for (int32_t i = 0; i < topology->n_dialects; i++) {
        const char *const *keys = topology->dialects[i]->card_marks;
        found |= keys && g_strv_contains(keys, ORDER);
    }
    return found;
}

/* Each card's, each once. */
static bool read_order(const char *text, int32_t n_cards, int32_t *minors)
{
    g_auto(GStrv) items = g_strsplit(text, ",", NODE_CARDS_MAX + 1);
    bool seen[NODE_CARDS_MAX] = {false};
    int64_t minor;

    if (g_strv_length(items) != (guint)n_cards)
        return false;
    for (int32_t i = 0; i < n_cards; i++) {
        if (!digits_parse(g_strstrip(items[i]), NODE_CARDS_MAX - 1, &minor) || seen[minor])
            return false;
        seen[minor] = true;
        minors[i] = (int32_t)minor;
    }
    return true;
}

void card_order_apply(const struct node_view *view, struct topology *topology, char **ret_warning)
{
    const char *text = string_pairs_get(&view->annotations, ORDER);
    int32_t minors[NODE_CARDS_MAX];

    if (!text || !*text || topology->n_cards == 0 || has_own_reader(topology))
        return;
    if (!read_order(text, topology->n_cards, minors)) {
        warn(ret_warning,
             g_strdup_printf("annotation '" ORDER "': '%.64s' is not the minor number of "
                             "each of the %d cards; it is ignored",
                             text, topology->n_cards));
        return;
    }
    topology->numbered = true;
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].minor = minors[i];
}

int32_t card_order_minor(const struct node *node, int32_t index)
{
    const struct card *card = node_card(node, index);

    return card ? card->minor : index;
}

/* A card whose UUID is named is where it is, whatever it is called. */
static bool is_of(const struct allocation *pod, const struct share *share,
                  enum card_numbering numbers)
{
    const enum card_numbering its = allocation_share_dialect(pod, share)->numbers;

    return !share->device && share->card != CARD_UNKNOWN && its != CARD_NUMBERS_NONE &&
           its != numbers && !(its == CARD_NUMBERS_MINOR && share->key);
}

const struct allocation *card_order_stranger(const struct node *node, const struct dialect *dialect)
{
    if (node->numbered || node->n_cards < 2 || dialect->numbers == CARD_NUMBERS_NONE)
        return NULL;
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *pod = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            if (is_of(pod, &pod->shares[j], dialect->numbers))
                return pod;
        }
    }
    return NULL;
}
