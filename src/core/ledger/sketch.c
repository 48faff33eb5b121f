/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a node whose plugin is away since before anybody looked: its Node object says how
 * many cards there are, if anything, and the pods that hold some of them what one card has.
 */
#include "core/ledger/sketch.h"

#include "core/bytes.h"
#include "core/card.h"
#include "core/node.h"

/* In the node's units: of the largest card that a pod of the dialect states, and of the largest
 * pod or share. */
static void look(const struct node *node, const struct dialect *dialect, int64_t *ret_card,
                 int64_t *ret_pod)
{
    *ret_card = *ret_pod = 0;
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = node->allocations->pdata[i];
        if (allocation->dialect != dialect || allocation->distrust != DISTRUST_NONE)
            continue;
        *ret_card = MAX(*ret_card, allocation->card_units);
        *ret_pod = MAX(*ret_pod, allocation->match_amount);
        for (uint32_t j = 0; j < allocation->n_shares; j++) {
            const struct amount memory = allocation->shares[j].memory;
            if (memory.kind == AMOUNT_NODE_UNITS)
                *ret_pod = MAX(*ret_pod, memory.value);
        }
    }
}

static int64_t tell_unit(const struct sketch *sketch, int64_t largest)
{
    const int64_t guess = largest >= sketch->mib_from ? MIB : GIB;

    return sketch->unit ? sketch->unit : guess;
}

/* The cards are others' to tell. */
static void draw_unit(struct node *node)
{
    int64_t card, pod;

    look(node, node->absent.dialect, &card, &pod);
    const int64_t unit = tell_unit(&node->absent, MAX(card, pod));
    if (unit != node->memory_unit)
        node_set_unit(node, unit);
}

void sketch_draw(struct node *node)
{
    const struct sketch sketch = node->sketch;
    int64_t card, pod;

    if (node->absent.dialect)
        draw_unit(node);
    if (!sketch.dialect || sketch.mib_from == 0)
        return;
    look(node, sketch.dialect, &card, &pod);
    const int64_t unit = tell_unit(&sketch, MAX(card, pod));
    const bool known = card > 0 && sketch.n_cards > 0;
    const struct amount size = {card, AMOUNT_NODE_UNITS};
    if (node->memory_unit == unit && node->n_cards == (known ? sketch.n_cards : 0) &&
        (!known || node->cards[0].memory == amount_bytes(size, unit)))
        return;

    g_autoptr(topology) topology = topology_new();
    topology->dialect = known ? sketch.dialect : NULL;
    topology->memory_unit = unit;
    topology->compute = node->compute;
    topology->driver = node->driver;
    topology->policy = node->policy;
    topology->host = node->host;
    topology->n_cards = known ? sketch.n_cards : 0;
    topology->sketch = sketch;
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i].memory = amount_bytes(size, unit);
    node_set_topology(node, topology);
}
