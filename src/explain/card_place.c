/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/card_place.h"

#include "core/fail.h"
#include "core/ledger.h"
#include "core/node.h"

#include <string.h>

bool card_place_parse(const char *word, struct card_place *ret_place, GError **error)
{
    const char *slash = strchr(word, '/');
    guint64 card = 0;

    if (slash == word || !*word)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "'%s': the node's name is empty, expected NODE or NODE/CARD, such as gpu-1/0", word);
    if (slash && !g_ascii_string_to_unsigned(slash + 1, 10, 0, NODE_CARDS_MAX - 1, &card, NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s': what follows the slash is no card's index, 0 to %d", word,
                         NODE_CARDS_MAX - 1);
    *ret_place = (struct card_place){
        .node = slash ? g_strndup(word, (gsize)(slash - word)) : g_strdup(word),
        .card = slash ? (int32_t)card : CARD_UNKNOWN,
    };
    return true;
}

void card_place_clear(struct card_place *place)
{
    g_clear_pointer(&place->node, g_free);
}

bool card_place_holds(const struct card_place *place, const struct allocation *allocation)
{
    if (place->card == CARD_UNKNOWN)
        return true;
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const int32_t card = allocation->shares[i].card;
        if (card == place->card || card == CARD_UNKNOWN)
            return true;
    }
    return false;
}

const struct node *card_place_find(const struct card_place *place, const struct ledger *ledger,
                                   GError **error)
{
    const struct node *node = ledger_node(ledger, place->node);

    if (!node || !node->present)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "node '%s' is not known",
                    place->node);
    else if (place->card != CARD_UNKNOWN && node->n_cards == 0)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "node '%s' hands out devices by count, and only its plugin knows on which card "
                    "they are; give the node alone",
                    place->node);
    else if (place->card != CARD_UNKNOWN && place->card >= node->n_cards)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND,
                    "node '%s' has no card %d, only 0 to %d", place->node, place->card,
                    node->n_cards - 1);
    else
        return node;
    return NULL;
}

void card_place_close(const struct card_place *place, struct ledger *ledger)
{
    const struct node *node = ledger_node(ledger, place->node);

    if (!node || place->card == CARD_UNKNOWN)
        return;
    g_autoptr(GArray) indices = node->unhealthy ? g_array_copy(node->unhealthy)
                                                : g_array_new(FALSE, FALSE, sizeof place->card);
    g_array_append_val(indices, place->card);
    ledger_set_unhealthy(ledger, place->node, (const int32_t *)(void *)indices->data, indices->len);
}
