/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate.h"
#include "core/section/option.h"

void parts_start(struct part_set *parts, const struct part_base *base,
                 const struct part_settings *list)
{
    gates_register();
    for (size_t i = 0; list && list[i].part; i++)
        parts->settings[i] = (struct part_settings){
            list[i].part, g_memdup2(list[i].settings, list[i].part->section->size)};
    for (size_t i = 0; parts_table[i]; i++) {
        const struct part_settings *own = parts->settings;
        while (own->part && own->part != parts_table[i])
            own++;
        parts->bases[i] = *base;
        parts->bases[i].bit = gate_bit_of(parts_table[i]);
        parts->selves[i] = parts_table[i]->start(&parts->bases[i], own->settings);
    }
}

void parts_stop(struct part_set *parts)
{
    for (size_t i = 0; parts_table[i]; i++) {
        if (parts->selves[i] && parts_table[i]->stop)
            parts_table[i]->stop(parts->selves[i]);
    }
    for (size_t i = 0; parts->settings[i].part; i++)
        g_free((void *)parts->settings[i].settings);
}

size_t part_place(const struct part *part)
{
    size_t place = 0;

    while (parts_table[place] != part)
        place++;
    return place;
}

void *parts_of(const struct part_set *parts, const struct part *part)
{
    return parts->selves[part_place(part)];
}

bool parts_pod(struct part_set *parts, const struct pod_change *change)
{
    bool opened = false;

    for (size_t i = 0; parts_table[i]; i++) {
        if (parts->selves[i] && parts_table[i]->pod)
            opened |= parts_table[i]->pod(parts->selves[i], change);
    }
    return opened;
}

bool parts_node(struct part_set *parts, const char *name, const struct node_view *view)
{
    bool opened = false;

    for (size_t i = 0; parts_table[i]; i++) {
        if (parts->selves[i] && parts_table[i]->node)
            opened |= parts_table[i]->node(parts->selves[i], name, view);
    }
    return opened;
}

bool parts_order(struct part_set *parts, const char *verb, const char *node)
{
    bool changed = false;

    for (size_t i = 0; parts_table[i]; i++) {
        if (parts->selves[i] && parts_table[i]->order)
            changed |= parts_table[i]->order(parts->selves[i], verb, node);
    }
    return changed;
}

unsigned parts_settle(struct part_set *parts, int64_t now_ms)
{
    unsigned settled = 0;

    for (size_t i = 0; parts_table[i]; i++) {
        if (parts->selves[i] && parts_table[i]->settle)
            settled |= parts_table[i]->settle(parts->selves[i], now_ms);
    }
    return settled;
}
