/* SPDX-License-Identifier: Apache-2.0 */
#include "core/asked_order.h"

#include "core/ledger.h"
#include "core/ledger/pulses.h"

#include <string.h>

/* So many nodes ahead, what a call reads of each is fetched: else it waits for memory, node by node. */
#define PREFETCHED 8

/* One line of the cache. */
struct seat {
    struct node *node;
    uint32_t place; /* the node's, and so is the name; empty: it is too long for here */
    char name[NODE_ALIGNMENT - sizeof(struct node *) - sizeof(uint32_t)];
};
G_STATIC_ASSERT(sizeof(struct seat) == NODE_ALIGNMENT);

struct asked_order {
    GArray *seats; /* struct seat */
    const struct pulses *pulses;
    guint first; /* where a call began */
};

struct asked_order *asked_order_new(const struct pulses *pulses)
{
    struct asked_order *order = g_new0(struct asked_order, 1);

    order->pulses = pulses;
    order->seats = g_array_new(FALSE, FALSE, sizeof(struct seat));
    return order;
}

void asked_order_free(struct asked_order *order)
{
    g_array_unref(order->seats);
    g_free(order);
}

static struct seat *seat_at(const struct asked_order *order, guint turn)
{
    return &g_array_index(order->seats, struct seat, turn);
}

static void put(struct asked_order *order, const struct seat *seat, guint turn)
{
    node_own(seat->node)->turn = turn;
    *seat_at(order, turn) = *seat;
}

void asked_order_add(struct asked_order *order, struct node *node)
{
    const size_t size = strlen(node->name) + 1;
    struct seat last = {.node = node, .place = node_own(node)->place};

    if (size <= sizeof last.name)
        memcpy(last.name, node->name, size);
    g_array_append_val(order->seats, last);
    node_own(node)->turn = order->seats->len - 1;
}

void asked_order_remove(struct asked_order *order, struct node *node)
{
    const struct seat last = *seat_at(order, order->seats->len - 1);

    put(order, &last, node_own(node)->turn);
    g_array_set_size(order->seats, order->seats->len - 1);
}

static void prefetch(const struct asked_order *order, guint turn, enum node_part part)
{
    const guint wrapped = turn < order->seats->len ? turn : turn % order->seats->len;
    const struct seat *seat = seat_at(order, wrapped);
    const char *block = (const char *)node_own(seat->node);

    __builtin_prefetch(pulses_at(order->pulses, seat->place));
    if (part == NODE_PULSE)
        return;
    for (size_t at = 0; at < offsetof(struct node_own, node.unplaced_holders); at += NODE_ALIGNMENT)
        __builtin_prefetch(block + at);
}

static guint next_turn(const struct asked_order *order, const struct node_cursor *cursor)
{
    const guint turn = cursor->begun ? cursor->turn + 1 : order->first;

    return turn < order->seats->len ? turn : 0;
}

/* The cursor's node has that turn. */
static void move_to(const struct asked_order *order, struct node_cursor *cursor, guint turn)
{
    cursor->place = seat_at(order, turn)->place;
    cursor->pulse = pulses_at(order->pulses, cursor->place);
    cursor->turn = turn;
    cursor->begun = true;
}

bool asked_order_guess(struct asked_order *order, struct node_cursor *cursor, const char *name,
                       enum node_part part)
{
    if (order->seats->len == 0)
        return false;
    const guint turn = next_turn(order, cursor);
    const struct seat *guess = seat_at(order, turn);
    prefetch(order, turn + PREFETCHED, part);
    if (!g_str_equal(guess->name[0] ? guess->name : guess->node->name, name))
        return false;
    cursor->node = guess->node;
    move_to(order, cursor, turn);
    return true;
}

/* A list may begin elsewhere at the next call and go on in the same order: who follows whom stays true
 * for longer than who is the n-th. A node that was not expected changes places with the one that was, so
 * one call in a new order leaves that order. */
void asked_order_correct(struct asked_order *order, struct node_cursor *cursor)
{
    const guint turn = node_own(cursor->node)->turn;

    if (!cursor->begun) {
        order->first = turn;
    } else {
        const struct seat expected = *seat_at(order, next_turn(order, cursor)),
                          meant = *seat_at(order, turn);
        put(order, &meant, node_own(expected.node)->turn);
        put(order, &expected, turn);
    }
    move_to(order, cursor, node_own(cursor->node)->turn);
}
