/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate.h"

#include "core/ledger.h"
#include "policy/what_if.h"

/* --- which are asked ---------------------------------------------------------------------------- */

void gates_begin(struct gates *gates, const struct part_set *parts,
                 const struct gate_ground *ground, const struct gate_who *who)
{
    gates->who = *who;
    gates->all = gates->marked = gates->by_fields = 0;
    for (unsigned i = 0; gates_table[i]; i++) {
        const struct gate *gate = gates_table[i];
        const void *self = gates->selves[i] = gate->part ? parts_of(parts, gate->part) : ground;
        const enum gate_scope scope = !self         ? GATE_IDLE
                                      : gate->begin ? gate->begin(self, who)
                                                    : GATE_MARKED;
        if (scope == GATE_ALL)
            gates->all |= 1U << i;
        else if (scope == GATE_MARKED && gate->concerns)
            gates->by_fields |= 1U << i;
        else if (scope == GATE_MARKED)
            gates->marked |= 1U << i;
    }
}

uint32_t gates_of(const struct gates *gates, const struct node *node)
{
    uint32_t todo = gates->all;

    if (!node)
        return todo;
    todo |= gates->marked & node_own(node)->pulse->marks;
    for (uint32_t bits = gates->by_fields; bits; bits &= bits - 1) {
        const int at = __builtin_ctz(bits);
        todo |= gates_table[at]->concerns(node) ? 1U << at : 0;
    }
    return todo;
}

/* --- asking ------------------------------------------------------------------------------------- */

enum reason gates_shut(const struct gates *gates, uint32_t todo, const struct node *node,
                       enum gate_turn turn)
{
    for (; todo; todo &= todo - 1) {
        const int at = __builtin_ctz(todo);
        const struct gate *gate = gates_table[at];
        if (!gate->shut || gate->turn != turn)
            continue;
        const unsigned answer = gate->shut(gates->selves[at], &gates->who, node);
        if (answer)
            return gate_reason(gate, answer);
    }
    return REASON_NONE;
}

enum reason gates_shut_out(const struct gates *gates, const struct gate_who *other,
                           const struct node *node)
{
    const uint32_t marks = node_own(node)->pulse->marks;

    for (unsigned i = 0; gates_table[i]; i++) {
        const struct gate *gate = gates_table[i];
        const bool concerned = gate->concerns ? gate->concerns(node)
                               : gate->begin  ? true
                                              : marks & 1U << i;
        const unsigned answer = gate->shut && concerned && gates->selves[i]
                                    ? gate->shut(gates->selves[i], other, node)
                                    : 0;
        if (answer)
            return gate_reason(gate, answer);
    }
    return REASON_NONE;
}

struct what_if *gates_narrow(const struct gates *gates, uint32_t *todo, const struct node *node,
                             const struct node *seen, const struct gate **ret_gate)
{
    struct what_if *left = NULL;

    for (; *todo && !left; *todo &= *todo - 1) {
        const int at = __builtin_ctz(*todo);
        *ret_gate = gates_table[at];
        if (gates_table[at]->narrow)
            left = gates_table[at]->narrow(gates->selves[at], &gates->who, node, seen);
    }
    return left;
}

enum reason gates_open(const struct gates *gates, const struct node *node, const struct node *seen,
                       struct what_if **ret_left)
{
    uint32_t todo = gates_of(gates, node);
    const struct gate *gate;
    struct what_if *left;

    *ret_left = NULL;
    for (enum gate_turn turn = GATE_BEFORE_CARDS; turn <= GATE_LAST; turn++) {
        const enum reason reason = gates_shut(gates, todo, node, turn);
        if (reason != REASON_NONE)
            return reason;
    }
    while ((left = gates_narrow(gates, &todo, node, seen, &gate))) {
        what_if_free(*ret_left);
        *ret_left = left;
        seen = left->node;
    }
    return REASON_NONE;
}

bool gates_message(const struct gates *gates, enum reason reason, const struct node *node,
                   GString *text)
{
    const struct gate *gate = gate_of_reason(reason);

    if (!gate || !gate->message)
        return false;
    gate->message(gates->selves[gate_bit(gate)], &gates->who, node, text);
    return true;
}
