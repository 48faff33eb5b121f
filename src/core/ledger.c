/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods there are, and where: the nodes are those of ledger/ledger_nodes.c. What pods hold of a
 * node's cards is counted in ledger/node_sums.c.
 */
#include "core/allocation.h"
#include "core/asked_order.h"
#include "core/card.h"
#include "core/ledger/ledger_state.h"
#include "core/node.h"

#include <string.h>

struct allocation *ledger_get(const struct ledger *ledger, const char *uid)
{
    return g_hash_table_lookup(ledger->allocations, uid);
}

static void ledger_note_end(struct ledger *ledger, const struct allocation *allocation)
{
    ledger_note_freed(ledger, allocation->node);
    ledger->freed_in[g_str_hash(allocation->ns) % FREED_IN] = ledger->freed;
}

/* It has come (1), or goes (-1), in the state that it is in. */
static void ledger_count_state(struct ledger *ledger, struct allocation *allocation, int sign)
{
    ledger->n_in_state[allocation->state] += (size_t)sign;
    if (allocation->state == ALLOCATION_CONFIRMED)
        return;
    if (sign > 0)
        g_hash_table_insert(ledger->open, (gpointer)allocation->uid, allocation);
    else
        g_hash_table_remove(ledger->open, allocation->uid);
}

static struct allocation *ledger_add(struct ledger *ledger, struct node *node,
                                     struct allocation *allocation)
{
    allocation->node = node;
    allocation_choose(allocation, node);
    g_ptr_array_add(node->allocations, allocation);
    node_charge(node, allocation, 1);
    ledger_count_state(ledger, allocation, 1);
    g_hash_table_insert(ledger->allocations, (gpointer)allocation->uid, allocation);
    ledger_redraw(ledger, node);
    return allocation;
}

bool ledger_drop(struct ledger *ledger, const char *uid)
{
    struct allocation *allocation = ledger_get(ledger, uid);
    if (!allocation)
        return ledger_drop_cpu_pod(ledger, uid);

    struct node *node = allocation->node;
    node_charge(node, allocation, -1);
    ledger_count_state(ledger, allocation, -1);
    ledger_note_end(ledger, allocation);
    g_ptr_array_remove_fast(node->allocations, allocation);
    g_hash_table_remove(ledger->allocations, uid);
    ledger_redraw(ledger, node);
    ledger_collect_node(ledger, node);
    return true;
}

/* Beside what allocation_equal compares. */
static bool says_the_same(const struct allocation *a, const struct allocation *b)
{
    return a->state == b->state && a->priority == b->priority && a->created_s == b->created_s &&
           a->started_s == b->started_s && a->card_units == b->card_units &&
           a->terminating == b->terminating && a->started == b->started &&
           a->waited_out == b->waited_out && a->heeded == b->heeded && a->facts == b->facts;
}

struct allocation *ledger_put(struct ledger *ledger, const char *node_name,
                              struct allocation *take_allocation)
{
    ledger_drop_cpu_pod(ledger, take_allocation->uid);
    struct node *node = ledger_intern_node(ledger, node_name);
    struct allocation *known = ledger_get(ledger, take_allocation->uid);

    take_allocation->node = node;
    allocation_choose(take_allocation, node);
    if (known && allocation_equal(known, take_allocation)) {
        node_own(node)->told += !says_the_same(known, take_allocation);
        ledger_count_state(ledger, known, -1);
        known->state = take_allocation->state;
        known->since_ms = take_allocation->since_ms;
        allocation_own(known)->generation = allocation_own(take_allocation)->generation;
        known->priority = take_allocation->priority;
        known->created_s = take_allocation->created_s;
        known->started_s = take_allocation->started_s;
        known->card_units = take_allocation->card_units;
        known->terminating = take_allocation->terminating;
        if (known->started != take_allocation->started) {
            node_charge(node, known, -1);
            known->started = take_allocation->started;
            node_charge(node, known, 1);
        }
        known->waited_out = take_allocation->waited_out;
        ledger_count_state(ledger, known, 1);
        known->heeded = take_allocation->heeded;
        known->awaited = take_allocation->awaited;
        known->placed = take_allocation->placed;
        struct pod_facts *facts = known->facts;
        known->facts = take_allocation->facts;
        take_allocation->facts = facts;
        allocation_free(take_allocation);
        ledger_redraw(ledger, node);
        return known;
    }
    /* Added before the old one goes, so that their common node is never collected between. */
    if (known) {
        node_charge(known->node, known, -1);
        ledger_count_state(ledger, known, -1);
        ledger_note_end(ledger, known);
        g_ptr_array_remove_fast(known->node->allocations, known);
        struct node *old = known->node;
        g_hash_table_steal(ledger->allocations, known->uid);
        ledger_add(ledger, node, take_allocation);
        allocation_free(known);
        ledger_redraw(ledger, old);
        ledger_collect_node(ledger, old);
        return take_allocation;
    }
    return ledger_add(ledger, node, take_allocation);
}

struct allocation *ledger_foresee(const struct node *node, struct allocation *take_allocation)
{
    allocation_choose(take_allocation, node);
    for (uint32_t i = 0; i < take_allocation->n_shares; i++) {
        struct share *share = &take_allocation->shares[i];
        const struct card *card = node_share_card(node, share);
        share_settle(share, card);
    }
    return take_allocation;
}

struct node *ledger_copy_node(struct ledger *ledger, const struct node *from)
{
    const char *name = from->name;
    struct node *node = ledger_intern_node(ledger, name);

    ledger->supply += node_own(from)->hardware - node_own(node)->hardware;
    ledger->n_cards += (size_t)from->n_cards - (size_t)node->n_cards;
    node_copy_hardware(node, from);
    for (guint i = 0; i < from->allocations->len; i++)
        ledger_put(ledger, name, allocation_dup(from->allocations->pdata[i]));
    if (from->n_cpu_pods > 0) { /* who they are only the other ledger knows: one stands for all */
        g_autofree char *uid = g_strdup_printf("CPU-only pods of %s", name);
        ledger_put_cpu_pod(ledger, name, uid, node_cpu_pods(from), 0);
    }
    ledger_note_freed(ledger, node);
    return node;
}

struct allocation *ledger_reserve(struct ledger *ledger, const char *node_name,
                                  struct allocation *take_allocation, enum reason *ret_reason)
{
    struct node *node = ledger_node(ledger, node_name);

    g_assert(!ledger_get(ledger, take_allocation->uid));
    *ret_reason = node && node->present ? node_check_fit(node, take_allocation) : REASON_NODE_UNKNOWN;
    if (*ret_reason != REASON_NONE) {
        allocation_free(take_allocation);
        return NULL;
    }
    ledger_drop_cpu_pod(ledger, take_allocation->uid);
    return ledger_add(ledger, node, take_allocation);
}

bool ledger_put_cpu_pod(struct ledger *ledger, const char *node_name, const char *uid,
                      struct host host, uint32_t generation)
{
    struct cpu_pod *known = ledger_cpu_pod(ledger, uid);

    if (known && g_str_equal(known->node->name, node_name)) {
        node_charge_host(known->node, &known->host, -1);
        node_charge_host(known->node, &host, 1);
        known->host = host;
        known->generation = generation;
        ledger_unlink_cpu_pod(ledger, known);
        ledger_append_cpu_pod(ledger, known);
        return false;
    }
    const size_t size = strlen(uid) + 1;
    struct cpu_pod *cpu_pod = g_malloc0(sizeof *cpu_pod + size);
    cpu_pod->uid = memcpy(cpu_pod + 1, uid, size);
    cpu_pod->node = ledger_intern_node(ledger, node_name);
    cpu_pod->host = host;
    cpu_pod->generation = generation;
    cpu_pod->node->n_cpu_pods++;
    node_charge_host(cpu_pod->node, &host, 1);
    /* Added before the old one goes, so that their common node is never collected between. */
    ledger_drop(ledger, uid);
    g_hash_table_add(ledger->cpu_pods, cpu_pod);
    ledger_append_cpu_pod(ledger, cpu_pod);
    return !known;
}

bool ledger_keep_cpu_pod(struct ledger *ledger, const char *node_name, const char *uid,
                         uint32_t generation)
{
    struct cpu_pod *known = ledger_cpu_pod(ledger, uid);

    if (!known || !g_str_equal(known->node->name, node_name))
        return false;
    known->generation = generation;
    ledger_unlink_cpu_pod(ledger, known);
    ledger_append_cpu_pod(ledger, known);
    return true;
}

void ledger_set_state(struct ledger *ledger, struct allocation *allocation,
                      enum allocation_state state)
{
    if (allocation->state == ALLOCATION_CONFIRMED)
        return;
    ledger_count_state(ledger, allocation, -1);
    allocation->state = state;
    ledger_count_state(ledger, allocation, 1);
    node_own(allocation->node)->told++;
}

size_t ledger_count(const struct ledger *ledger, enum allocation_state state)
{
    return ledger->n_in_state[state];
}

void ledger_each_open(const struct ledger *ledger, ledger_visit visit, void *data)
{
    GHashTableIter iter;
    gpointer allocation;

    g_hash_table_iter_init(&iter, ledger->open);
    while (g_hash_table_iter_next(&iter, NULL, &allocation))
        visit(allocation, data);
}

size_t ledger_size(const struct ledger *ledger)
{
    return g_hash_table_size(ledger->allocations);
}

void ledger_each(const struct ledger *ledger, ledger_visit visit, void *data)
{
    GHashTableIter iter;
    gpointer allocation;

    g_hash_table_iter_init(&iter, ledger->allocations);
    while (g_hash_table_iter_next(&iter, NULL, &allocation))
        visit(allocation, data);
}

/* Eight bytes at a time: filter looks thousands of names up per call, and g_str_hash goes byte by
 * byte. */
static guint name_hash(gconstpointer key)
{
    const char *name = key;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15), word;

    for (size_t left = strlen(name); left > 0;) {
        size_t n = MIN(left, sizeof word);
        word = 0;
        memcpy(&word, name, n);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
        name += n;
        left -= n;
    }
    return (guint)hash;
}

/* Nodes and CPU-only pods are sets, which GLib keeps in less memory than maps: a key is a pointer to the
 * pointer to a name or UID, as either begins with one. */
static guint named_hash(gconstpointer key)
{
    return name_hash(*(const char *const *)key);
}

static gboolean named_equal(gconstpointer a, gconstpointer b)
{
    return g_str_equal(*(const char *const *)a, *(const char *const *)b);
}

/* --- life ----------------------------------------------------------------------------------- */

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

struct ledger *ledger_new(void)
{
    struct ledger *ledger = g_new0(struct ledger, 1);
    ledger->nodes = g_hash_table_new(named_hash, named_equal);
    ledger->blocks = node_blocks_new();
    pulses_init(&ledger->pulses);
    ledger->allocations =
        g_hash_table_new_full(name_hash, g_str_equal, NULL, free_allocation);
    ledger->cpu_pods = g_hash_table_new_full(named_hash, named_equal, g_free, NULL);
    ledger->open = g_hash_table_new(name_hash, g_str_equal);
    ledger->sorted = g_ptr_array_new();
    ledger->asked = asked_order_new(&ledger->pulses);
    ledger->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    ledger->at_place = g_ptr_array_new();
    ledger->free_places = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    ledger->newest = 1;
    return ledger;
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    g_hash_table_unref(ledger->allocations);
    g_hash_table_unref(ledger->cpu_pods);
    g_hash_table_unref(ledger->nodes);
    for (guint i = 0; i < ledger->sorted->len; i++)
        ledger_free_node(ledger, ledger->sorted->pdata[i]);
    node_blocks_free(ledger->blocks);
    pulses_clear(&ledger->pulses);
    g_hash_table_unref(ledger->open);
    g_hash_table_unref(ledger->marks);
    g_ptr_array_unref(ledger->sorted);
    asked_order_free(ledger->asked);
    g_array_unref(ledger->free_places);
    g_ptr_array_unref(ledger->at_place);
    g_free(ledger);
}
