/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes there are. */
#include "core/asked_order.h"
#include "core/ledger/granted_unit.h"
#include "core/ledger/ledger_state.h"
#include "core/ledger/sketch.h"
#include "core/node.h"
#include "core/node_traits.h"

#include <stdlib.h>
#include <string.h>

struct node *ledger_node(const struct ledger *ledger, const char *name)
{
    return g_hash_table_lookup(ledger->nodes, &name);
}

struct node *ledger_next_node(struct ledger *ledger, struct node_cursor *cursor, const char *name,
                              enum node_part part)
{
    if (asked_order_guess(ledger->asked, cursor, name, part))
        return cursor->node;
    cursor->node = ledger_node(ledger, name);
    if (cursor->node)
        asked_order_correct(ledger->asked, cursor);
    return cursor->node;
}

uint32_t ledger_flag_round(struct ledger *ledger)
{
    if (++ledger->flag_round == 0) {
        for (uint32_t place = 0; place < ledger->n_places; place++)
            pulses_at(&ledger->pulses, place)->flagged = 0;
        ledger->flag_round = 1;
    }
    return ledger->flag_round;
}

void ledger_flag(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);

    if (node)
        node_own(node)->pulse->flagged = ledger->flag_round;
}

static uint32_t marks_of(const struct ledger *ledger, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(ledger->marks, name));
}

void ledger_mark(struct ledger *ledger, const char *name, unsigned bit, bool on)
{
    const uint32_t before = marks_of(ledger, name);
    const uint32_t marks = on ? before | 1U << bit : before & ~(1U << bit);
    struct node *node = ledger_node(ledger, name);

    if (marks == before)
        return;
    if (marks)
        g_hash_table_insert(ledger->marks, g_strdup(name), GUINT_TO_POINTER(marks));
    else
        g_hash_table_remove(ledger->marks, name);
    if (node)
        node_own(node)->pulse->marks = marks;
}

/* Where a node of that name is, or would be, among the sorted ones. Lists come in order of names, and a
 * node of them after the last. */
static guint ledger_find_sorted(const struct ledger *ledger, const char *name)
{
    guint from = 0, to = ledger->sorted->len;

    if (to > 0 && strcmp(((const struct node *)ledger->sorted->pdata[to - 1])->name, name) < 0)
        return to;
    while (from < to) {
        const guint middle = (from + to) / 2;
        if (strcmp(((const struct node *)ledger->sorted->pdata[middle])->name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct node *ledger_intern_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);
    if (node)
        return node;

    node = node_init(node_blocks_take(ledger->blocks, node_block_size(name)), name);
    node_own(node)->place = ledger->n_places;
    if (ledger->free_places->len > 0) {
        const guint last = ledger->free_places->len - 1;
        node_own(node)->place = g_array_index(ledger->free_places, uint32_t, last);
        g_array_set_size(ledger->free_places, last);
    } else {
        ledger->n_places++;
        g_ptr_array_add(ledger->at_place, NULL);
    }
    ledger->at_place->pdata[node_own(node)->place] = node;
    node_own(node)->pulse = pulses_reach(&ledger->pulses, node_own(node)->place);
    *node_own(node)->pulse =
        (struct node_pulse){.version = ledger->newest, .marks = marks_of(ledger, name)};
    node_own(node)->changes = &ledger->changes;
    ledger->changes++;
    g_hash_table_add(ledger->nodes, node);
    asked_order_add(ledger->asked, node);
    g_ptr_array_insert(ledger->sorted, (gint)ledger_find_sorted(ledger, name), node);
    return node;
}

void ledger_free_node(struct ledger *ledger, struct node *node)
{
    const size_t size = node_block_size(node->name);

    node_clear(node);
    node_blocks_give(ledger->blocks, node_own(node), size);
}

void ledger_note_freed(struct ledger *ledger, struct node *node)
{
    node_own(node)->freed_at = ++ledger->freed;
}

uint64_t ledger_freed_in(const struct ledger *ledger, const char *ns)
{
    return ledger->freed_in[g_str_hash(ns) % FREED_IN];
}

uint64_t ledger_freed(const struct ledger *ledger)
{
    return ledger->freed;
}

uint64_t ledger_freed_on(const struct ledger *ledger, const struct node *node)
{
    return MAX(node_own(node)->freed_at, ledger->all_freed);
}

void ledger_mark_all_freed(struct ledger *ledger)
{
    ledger->all_freed = ++ledger->freed;
}

void ledger_mark_freed(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);

    if (node)
        ledger_note_freed(ledger, node);
}

uint32_t ledger_places(const struct ledger *ledger)
{
    return ledger->n_places;
}

const struct node *ledger_node_at(const struct ledger *ledger, uint32_t place)
{
    return ledger->at_place->pdata[place];
}

uint64_t ledger_version_at(const struct ledger *ledger, uint32_t place)
{
    return pulses_at(&ledger->pulses, place)->version;
}

uint64_t ledger_changes(const struct ledger *ledger)
{
    return ledger->changes;
}

size_t ledger_cards(const struct ledger *ledger)
{
    return ledger->n_cards;
}

uint64_t ledger_supply(const struct ledger *ledger)
{
    return ledger->supply;
}

void ledger_collect_node(struct ledger *ledger, struct node *node)
{
    if (node->present || node->allocations->len > 0 || node->n_cpu_pods > 0 || node->unhealthy ||
        node->departed)
        return;
    g_ptr_array_remove_index(ledger->sorted, ledger_find_sorted(ledger, node->name));
    asked_order_remove(ledger->asked, node);
    ledger->newest = MAX(ledger->newest, node_own(node)->pulse->version + 1);
    node_own(node)->pulse->version = ledger->newest++; /* of the place without a node */
    ledger->changes++;
    ledger->at_place->pdata[node_own(node)->place] = NULL;
    g_array_append_val(ledger->free_places, node_own(node)->place);
    g_hash_table_remove(ledger->nodes, node);
    ledger_free_node(ledger, node);
}

const GPtrArray *ledger_nodes(const struct ledger *ledger)
{
    return ledger->sorted;
}

/* After its topology or its pods have changed; `topology` NULL: that has not. */
static void redraw(struct ledger *ledger, struct node *node, const struct topology *topology)
{
    const uint64_t hardware = node_own(node)->hardware;
    const size_t cards = (size_t)node->n_cards;

    if (topology)
        node_set_topology(node, topology);
    sketch_draw(node);
    /* Pods that state no card count by what the others state. */
    const bool otherwise = granted_otherwise(node);
    if (otherwise != node_own(node)->granted_otherwise) {
        node_own(node)->granted_otherwise = otherwise;
        node_set_unit(node, node->memory_unit);
    }
    ledger->supply += node_own(node)->hardware - hardware;
    ledger->n_cards += (size_t)node->n_cards - cards;
}

void ledger_redraw(struct ledger *ledger, struct node *node)
{
    redraw(ledger, node, NULL);
}

struct node *ledger_set_topology(struct ledger *ledger, const char *name,
                                 const struct topology *topology)
{
    static const struct topology none = {.memory_unit = 1};
    struct node *node = ledger_intern_node(ledger, name);

    node->present = true;
    redraw(ledger, node, topology ? topology : &none);
    ledger_note_freed(ledger, node);
    return node;
}

void ledger_end_change(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);

    if (!node)
        return;
    const uint64_t hardware = node_own(node)->hardware;
    node_end_change(node);
    ledger->supply += node_own(node)->hardware - hardware;
    ledger_note_freed(ledger, node);
}

struct node *ledger_pause_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_intern_node(ledger, name);

    node->present = node->paused = true;
    node_apply_health(node);
    return node;
}

void ledger_remove_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);
    if (!node)
        return;
    ledger_set_topology(ledger, name, NULL);
    node->present = false;
    g_clear_pointer(&node->traits, node_traits_unref);
    ledger_collect_node(ledger, node);
}

void ledger_set_unhealthy(struct ledger *ledger, const char *name, const int32_t *indices, size_t n)
{
    struct node *node = ledger_node(ledger, name);
    if (!node && n == 0)
        return;
    if (!node)
        node = ledger_intern_node(ledger, name);
    g_clear_pointer(&node->unhealthy, g_array_unref);
    if (n > 0) {
        node->unhealthy = g_array_sized_new(FALSE, FALSE, sizeof *indices, (guint)n);
        g_array_append_vals(node->unhealthy, indices, (guint)n);
    }
    node_apply_health(node);
    ledger_note_freed(ledger, node);
    ledger_collect_node(ledger, node);
}

/* Replaces what the node says of pods that it does not have; the arrays may be shared with images. */
static void replace(GArray **array, const void *items, size_t n, guint size)
{
    g_clear_pointer(array, g_array_unref);
    if (n == 0)
        return;
    *array = g_array_sized_new(FALSE, FALSE, size, (guint)n);
    g_array_append_vals(*array, items, (guint)n);
}

void ledger_set_departed(struct ledger *ledger, const char *name, const struct departed *departed,
                         size_t n)
{
    struct node *node = n > 0 ? ledger_intern_node(ledger, name) : ledger_node(ledger, name);

    if (!node)
        return;
    replace(&node->departed, departed, n, sizeof *departed);
    node_note_change(node);
    ledger_note_freed(ledger, node);
    ledger_collect_node(ledger, node);
}

int promised_compare(const struct promised *a, const struct promised *b)
{
    if (a->dialect != b->dialect)
        return (uintptr_t)a->dialect < (uintptr_t)b->dialect ? -1 : 1;
    return a->match_amount < b->match_amount ? -1 : a->match_amount > b->match_amount;
}

static int compare(const void *a, const void *b)
{
    return promised_compare(a, b);
}

const struct promised *node_promised(const struct node *node, const struct dialect *dialect,
                                     int64_t match_amount)
{
    const struct promised wanted = {dialect, match_amount, 0};

    return node->promised
               ? bsearch(&wanted, node->promised->data, node->promised->len, sizeof wanted, compare)
               : NULL;
}

void ledger_set_promised(struct ledger *ledger, const char *name, const struct promised *promised,
                         size_t n)
{
    struct node *node = ledger_node(ledger, name);

    if (!node || (n == 0 && !node->promised))
        return;
    replace(&node->promised, promised, n, sizeof *promised);
    node_note_change(node);
    ledger_note_freed(ledger, node);
}
