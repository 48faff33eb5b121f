/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/granted_unit.h"

#include "core/bytes.h"

#define MIB_FROM 1000 /* no card has so many GiB, and none so few MiB */

static int64_t largest_card(const struct node *node)
{
    int64_t largest = 0;

    for (int32_t i = 0; i < node->n_cards; i++)
        largest = MAX(largest, node->cards[i].memory);
    return largest;
}

/* What the stated card was counted in; 0: none is stated. */
static int64_t stated_unit(const struct allocation *allocation, const struct node *node)
{
    const int64_t now = node->memory_unit, units = allocation->card_units;

    for (int32_t i = 0; units > 0 && i < node->n_cards; i++) {
        if (node->cards[i].memory / now == units)
            return now;
    }
    return units >= MIB_FROM ? MIB : units > 0 ? GIB : 0;
}

bool granted_otherwise(const struct node *node)
{
    if (node->memory_unit != MIB || node->n_cards == 0)
        return false;
    for (guint i = 0; i < node->allocations->len; i++) {
        if (stated_unit(g_ptr_array_index(node->allocations, i), node) == GIB)
            return true;
    }
    return false;
}

struct amount granted_amount(const struct allocation *allocation, const struct node *node,
                             struct amount memory)
{
    const int64_t now = node->memory_unit;

    if (memory.kind != AMOUNT_NODE_UNITS || (now != MIB && now != GIB) || node->n_cards == 0)
        return memory;
    const int64_t stated = stated_unit(allocation, node), largest = largest_card(node);
    const bool in_gib = memory.value <= largest / GIB; /* it may be */
    if (now == MIB && (stated == GIB || (stated == 0 && in_gib && granted_otherwise(node))))
        return (struct amount){MIN(amount_bytes(memory, GIB), largest), AMOUNT_BYTES};
    if (now == GIB && stated == MIB && !in_gib && allocation->distrust != DISTRUST_UNSEALED)
        return (struct amount){amount_bytes(memory, MIB), AMOUNT_BYTES};
    return memory;
}
