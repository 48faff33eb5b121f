/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pulses of a ledger's nodes (core/ledger.h), side by side in the order of their places: who asks
 * about thousands of nodes that have not changed reads four of them with one line of the cache. A pulse
 * stays where it is as long as the ledger lives; that of a node that is gone is given to the next one at
 * its place.
 */
#include "core/ledger.h"

#define PULSES_BLOCK 256

struct pulses {
    GPtrArray *blocks; /* of so many each */
};

void pulses_init(struct pulses *pulses);
void pulses_clear(struct pulses *pulses);

/* Of the place, from now on. */
struct node_pulse *pulses_reach(struct pulses *pulses, uint32_t place);

/* Of a place that has been reached. */
static inline struct node_pulse *pulses_at(const struct pulses *pulses, uint32_t place)
{
    struct node_pulse *block = pulses->blocks->pdata[place / PULSES_BLOCK];

    return &block[place % PULSES_BLOCK];
}
