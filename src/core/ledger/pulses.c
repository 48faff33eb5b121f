/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/pulses.h"

void pulses_init(struct pulses *pulses)
{
    pulses->blocks = g_ptr_array_new_with_free_func(g_free);
}

void pulses_clear(struct pulses *pulses)
{
    g_ptr_array_unref(pulses->blocks);
}

struct node_pulse *pulses_reach(struct pulses *pulses, uint32_t place)
{
    while (pulses->blocks->len <= place / PULSES_BLOCK)
        g_ptr_array_add(pulses->blocks, g_new0(struct node_pulse, PULSES_BLOCK));
    return pulses_at(pulses, place);
}
