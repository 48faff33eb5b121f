/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate.h"

#include "core/ledger.h"
#include "policy/what_if.h"

/* --- which are asked ---------------------------------------------------------------------------- */

void gates_begin(struct gates *gates, const struct part_set *parts,
                 const struct gate_ground *ground, const struct gate_who *who, bool without_limits)
{
    g_assert(who->asker > GATE_BY_NOBODY && who->asker < GATE_ASKERS_N);
    gates->who = *who;
    gates->all = gates->marked = gates->by_fields = gates->limits = 0;
    for (unsigned i = 0; gates_table[i]; i++) {
        const struct gate *gate = gates_table[i];
        const void *self = gates->selves[i] = gate->part ? parts_of(parts, gate->part) : ground;
        const bool asked = self && !gate->left_out[who->asker];
        gates->left[i] = asked && gate->limit ? gate->limit->measure(self, who) : NULL;
        if (gates->left[i] && !without_limits)
            gates->limits |= 1U << i;
        const enum gate_scope scope = !asked || gate->limit ? GATE_IDLE
                                      : gate->begin         ? gate->begin(self, who)
                                                            : GATE_MARKED;
        if (scope == GATE_ALL)
            gates->all |= 1U << i;
        else if (scope == GATE_MARKED && gate->concerns)
            gates->by_fields |= 1U << i;
        else if (scope == GATE_MARKED)
            gates->marked |= 1U << i;
    }
}

void gates_end(struct gates *gates)
{
    for (unsigned i = 0; gates_table[i]; i++) {
        if (gates->left[i])
            gates_table[i]->limit->free(gates->left[i]);
        gates->left[i] = NULL;
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
        const unsigned answer =
            gate->shut && concerned && gates->selves[i] && !gate->left_out[other->asker]
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

/* --- limits ------------------------------------------------------------------------------------- */

enum reason gates_refuse(const struct gates *gates, const struct node *node,
                         const struct placement *placement)
{
    enum reason reason = REASON_NONE;

    for (uint32_t bits = gates->limits; bits && reason == REASON_NONE; bits &= bits - 1) {
        const int at = __builtin_ctz(bits);
        reason = gates_table[at]->limit->refuse(gates->left[at], node, placement);
    }
    return reason;
}

const void *gates_left(const struct gates *gates, const struct gate *gate)
{
    return gates->left[gate_bit(gate)];
}

void gates_take(struct gates *gates, struct allocation *taken)
{
    for (unsigned i = 0; gates_table[i]; i++) {
        if (gates->left[i])
            gates_table[i]->limit->take(gates->left[i], taken);
    }
}

uint64_t gates_number(const struct gates *gates, const struct node *node,
                      const struct placement *placement)
{
    const int at = __builtin_ctz(gates->limits);

    /* Of several the numbers would have to be told apart. */
    return gates->limits == 1U << at
               ? gates_table[at]->limit->number(gates->left[at], node, placement)
               : 0;
}

bool gates_judge(struct gates *gates, uint64_t number, enum reason *ret_reason)
{
    const int at = __builtin_ctz(gates->limits);

    return number != 0 && gates->limits == 1U << at &&
           gates_table[at]->limit->judge(gates->left[at], number, ret_reason);
}

bool gates_freed(const struct gates *gates, const struct ledger *ledger, uint64_t since)
{
    bool freed = false;

    for (unsigned i = 0; gates_table[i] && !freed; i++) {
        if (gates->left[i])
            freed = (gates_table[i]->limit->is_of_cluster(gates->left[i])
                         ? ledger_freed(ledger)
                         : ledger_freed_in(ledger, gates->who.ns)) > since;
    }
    return freed;
}

struct gates_relief {
    void *of[GATES_MAX];
};

enum reason gates_relieve(const struct gates *gates, const struct node *node,
                          const struct node *seen, struct gates_relief **ret_relief)
{
    struct gates_relief *relief = NULL;
    enum reason reason = REASON_NONE;

    for (uint32_t bits = gates->limits; bits && reason == REASON_NONE; bits &= bits - 1) {
        const int at = __builtin_ctz(bits);
        const struct gate_limit *limit = gates_table[at]->limit;
        const enum reason lacking = limit->refuse(gates->left[at], seen, NULL);
        if (lacking == REASON_NONE)
            continue;
        if (!relief)
            relief = g_new0(struct gates_relief, 1);
        relief->of[at] = limit->relieve(gates->left[at], node, gates->who.priority);
        reason = relief->of[at] ? REASON_NONE : lacking;
    }
    if (reason != REASON_NONE)
        g_clear_pointer(&relief, gates_relief_free);
    *ret_relief = relief;
    return reason;
}

bool gates_suffice(const struct gates_relief *relief, const struct node *node)
{
    bool suffices = true;

    for (unsigned i = 0; relief && gates_table[i] && suffices; i++)
        suffices = !relief->of[i] || gates_table[i]->limit->suffices(relief->of[i], node);
    return suffices;
}

void gates_relief_free(struct gates_relief *relief)
{
    for (unsigned i = 0; relief && gates_table[i]; i++) {
        if (relief->of[i])
            gates_table[i]->limit->free_relief(relief->of[i]);
    }
    g_free(relief);
}

/* --- for people, and for who asks what would be --------------------------------------------------- */

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
