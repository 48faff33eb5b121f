/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of gates says of its rows: places and reasons. */
#include "gate/gate.h"

#include "core/reason/reasons.h"

#include <string.h>

static unsigned count_reasons(const struct gate *gate)
{
    unsigned n = 0;

    while (gate->reasons && gate->reasons[n].code)
        n++;
    return n;
}

void gates_register(void)
{
    static gsize once;
    static struct reason_info list[REASONS_MAX - REASON_N];
    unsigned n = 0;

    if (!g_once_init_enter(&once))
        return;
    for (size_t i = 0; gates_table[i]; i++) {
        g_assert(gates_table[i]->left_out[GATE_BY_NOBODY]); /* as GATE_ASKERS has it */
        g_assert(i < GATES_MAX && n + count_reasons(gates_table[i]) <= G_N_ELEMENTS(list));
        for (const struct gate_reason *row = gates_table[i]->reasons; row && row->code; row++)
            list[n++] = (struct reason_info){row->code, row->text, row->resolvable};
    }
    reasons_extend(list, n);
    g_once_init_leave(&once, 1);
}

enum reason gate_reason(const struct gate *gate, unsigned answer)
{
    unsigned number = REASON_N;

    if (answer == 0)
        return REASON_NONE;
    for (size_t i = 0; gates_table[i] != gate; i++)
        number += count_reasons(gates_table[i]);
    return number + answer - 1;
}

enum reason gate_reason_find(const char *code)
{
    gates_register();
    for (unsigned number = REASON_N; number < reasons_count(); number++) {
        if (strcmp(reason_info(number)->code, code) == 0)
            return number;
    }
    return REASON_NONE;
}

const struct gate *gate_of_reason(enum reason reason)
{
    unsigned number = REASON_N;

    for (size_t i = 0; gates_table[i] && (unsigned)reason >= REASON_N; i++) {
        number += count_reasons(gates_table[i]);
        if (reason < number)
            return gates_table[i];
    }
    return NULL;
}

unsigned gate_bit(const struct gate *gate)
{
    unsigned bit = 0;

    while (gates_table[bit] != gate)
        bit++;
    return bit;
}

unsigned gate_bit_of(const struct part *part)
{
    unsigned bit = 0;

    while (gates_table[bit] && gates_table[bit]->part != part)
        bit++;
    return bit;
}
