/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/slot_drain.h"

#include "policy/what_if.h"

static bool is_over(const struct node *node, const struct card *card, int32_t most)
{
    return most > 0 && card->holders + node->unplaced_holders > most;
}

static bool has_too_many(const struct node *node, int32_t most)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (is_over(node, &node->cards[i], most))
            return true;
    }
    return false;
}

/* Whether it is, or may be, on a card with too many. */
static bool is_in_the_way(const struct node *node, const struct allocation *allocation,
                          int32_t most)
{
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        const struct card *card = node_share_card(node, share);
        if (!share->device && (card ? is_over(node, card, most) : has_too_many(node, most)))
            return true;
    }
    return false;
}

/* Who goes first is less. */
static int compare(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct allocation *one = *(struct allocation *const *)a;
    const struct allocation *other = *(struct allocation *const *)b;
    GHashTable *staying = data;
    const bool one_stays = staying && g_hash_table_contains(staying, one->uid);
    const bool other_stays = staying && g_hash_table_contains(staying, other->uid);

    if (one_stays != other_stays)
        return one_stays ? 1 : -1;
    if (one->terminating != other->terminating)
        return one->terminating ? -1 : 1;
    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    if (one->created_s != other->created_s)
        return one->created_s > other->created_s ? -1 : 1;
    return g_strcmp0(one->uid, other->uid);
}

GHashTable *slot_drain_find(const struct node *node, int32_t most, GHashTable *staying)
{
    GHashTable *leaving = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    if (!has_too_many(node, most))
        return leaving;
    g_autoptr(what_if) left = what_if_new(node);
    g_autoptr(GPtrArray) order = g_ptr_array_copy(left->allocations, NULL, NULL);
    g_ptr_array_sort_with_data(order, compare, staying);
    for (guint i = 0; i < order->len && has_too_many(left->node, most); i++) {
        struct allocation *allocation = order->pdata[i];
        if (!is_in_the_way(left->node, allocation, most))
            continue;
        what_if_without(left, allocation);
        g_hash_table_add(leaving, g_strdup(allocation->uid));
    }
    return leaving;
}
