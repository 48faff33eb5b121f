/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes and allocations there are. What they hold of a node's cards is counted in node.c.
 */
#include "core/allocation.h"
#include "core/asked_order.h"
#include "core/ledger.h"
#include "core/node.h"
#include "core/node_traits.h"
#include "core/sketch.h"

#include <gpuledger/mig.h>
#include <string.h>

/* A pod without a GPU. There may be many more of these than of the others. */
struct cpu_pod {
    const char *uid; /* lives in the CPU-only pod's own block */
    struct node *node;
    struct host host;
    uint32_t generation;
    struct cpu_pod *before, *after; /* in the order in which they were put */
};

#define FREED_IN 256 /* namespaces told apart, by hash */

struct ledger {
    GHashTable *nodes;       /* struct node *, a set by name */
    GHashTable *allocations; /* uid (the allocation's own) -> struct allocation * */
    GHashTable *cpu_pods;      /* struct cpu_pod *, a set by uid */
    struct cpu_pod *first_cpu_pod, *last_cpu_pod; /* the one put longest ago is the first */
    GHashTable *open; /* likewise: those that are not confirmed */
    GHashTable *waited_out; /* likewise: those that nobody waits for any longer */
    size_t n_in_state[ALLOCATION_STATES];
    GPtrArray *sorted;   /* nodes by name */
    GArray *free_places; /* uint32_t, of nodes that are gone */
    uint32_t n_places;
    uint64_t newest; /* no node that is gone was of this version or a later one */
    uint64_t supply; /* the sum of the nodes' hardware */
    size_t n_cards;
    uint64_t freed; /* counts what may have made room */
    uint64_t freed_in[FREED_IN];
    struct asked_order *asked;
    uint64_t flag_round; /* of ledger_flag */
};

struct node *ledger_node(const struct ledger *ledger, const char *name)
{
    return g_hash_table_lookup(ledger->nodes, &name);
}

struct node *ledger_next_node(struct ledger *ledger, struct node *after, const char *name)
{
    struct node *node = asked_order_guess(ledger->asked, after, name);

    if (node)
        return node;
    node = ledger_node(ledger, name);
    if (node)
        asked_order_correct(ledger->asked, after, node);
    return node;
}

uint64_t ledger_flag_round(struct ledger *ledger)
{
    return ++ledger->flag_round;
}

void ledger_flag(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);

    if (node)
        node_own(node)->flagged = ledger->flag_round;
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

static struct node *ledger_intern_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);
    if (node)
        return node;

    node = node_new(name);
    node_own(node)->version = ledger->newest;
    node_own(node)->place = ledger->n_places;
    if (ledger->free_places->len > 0) {
        const guint last = ledger->free_places->len - 1;
        node_own(node)->place = g_array_index(ledger->free_places, uint32_t, last);
        g_array_set_size(ledger->free_places, last);
    } else {
        ledger->n_places++;
    }
    g_hash_table_add(ledger->nodes, node);
    asked_order_add(ledger->asked, node);
    g_ptr_array_insert(ledger->sorted, (gint)ledger_find_sorted(ledger, name), node);
    return node;
}

static void ledger_note_freed(struct ledger *ledger, struct node *node)
{
    node_own(node)->freed_at = ++ledger->freed;
}

static void ledger_note_end(struct ledger *ledger, const struct allocation *allocation)
{
    ledger_note_freed(ledger, allocation->node);
    ledger->freed_in[g_str_hash(allocation->ns) % FREED_IN] = ledger->freed;
}

uint64_t ledger_freed_in(const struct ledger *ledger, const char *ns)
{
    return ledger->freed_in[g_str_hash(ns) % FREED_IN];
}

uint64_t ledger_freed(const struct ledger *ledger)
{
    return ledger->freed;
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

size_t ledger_cards(const struct ledger *ledger)
{
    return ledger->n_cards;
}

uint64_t ledger_supply(const struct ledger *ledger)
{
    return ledger->supply;
}

/* A node that neither exists nor holds anything nor has a health record is forgotten. */
static void ledger_collect_node(struct ledger *ledger, struct node *node)
{
    if (node->present || node->allocations->len > 0 || node->n_cpu_pods > 0 || node->unhealthy ||
        node->departed)
        return;
    g_ptr_array_remove_index(ledger->sorted, ledger_find_sorted(ledger, node->name));
    asked_order_remove(ledger->asked, node);
    ledger->newest = MAX(ledger->newest, node_own(node)->version + 1);
    g_array_append_val(ledger->free_places, node_own(node)->place);
    g_hash_table_remove(ledger->nodes, node);
}

const GPtrArray *ledger_nodes(const struct ledger *ledger)
{
    return ledger->sorted;
}

/* After a change of the node's allocations. */
static void ledger_redraw(struct ledger *ledger, struct node *node)
{
    const uint64_t hardware = node_own(node)->hardware;
    const size_t cards = (size_t)node->n_cards;

    sketch_draw(node);
    ledger->supply += node_own(node)->hardware - hardware;
    ledger->n_cards += (size_t)node->n_cards - cards;
}

struct node *ledger_set_topology(struct ledger *ledger, const char *name,
                                 const struct topology *topology)
{
    static const struct topology none = {.memory_unit = 1};
    struct node *node = ledger_intern_node(ledger, name);

    if (!topology)
        topology = &none;
    const uint64_t hardware = node_own(node)->hardware;
    const size_t cards = (size_t)node->n_cards;
    node->present = true;
    node_set_topology(node, topology);
    sketch_draw(node);
    ledger->supply += node_own(node)->hardware - hardware;
    ledger->n_cards += (size_t)node->n_cards - cards;
    ledger_note_freed(ledger, node);
    return node;
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

void ledger_set_unhealthy(struct ledger *ledger, const char *name, const int32_t *indices,
                          size_t n)
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

void ledger_set_departed(struct ledger *ledger, const char *name, const struct departed *departed,
                         size_t n)
{
    struct node *node = n > 0 ? ledger_intern_node(ledger, name) : ledger_node(ledger, name);

    if (!node)
        return;
    g_clear_pointer(&node->departed, g_array_unref);
    if (n > 0) {
        node->departed = g_array_sized_new(FALSE, FALSE, sizeof *departed, (guint)n);
        g_array_append_vals(node->departed, departed, (guint)n);
    }
    node_own(node)->version++;
    ledger_note_freed(ledger, node);
    ledger_collect_node(ledger, node);
}

/* --- allocations ---------------------------------------------------------------------------- */

struct allocation *ledger_get(const struct ledger *ledger, const char *uid)
{
    return g_hash_table_lookup(ledger->allocations, uid);
}

/* It has come (1), or goes (-1), in the state that it is in. */
static void ledger_count_state(struct ledger *ledger, struct allocation *allocation, int sign)
{
    GHashTable *const sets[] = {
        allocation->state != ALLOCATION_CONFIRMED ? ledger->open : NULL,
        allocation->waited_out ? ledger->waited_out : NULL,
    };

    ledger->n_in_state[allocation->state] += (size_t)sign;
    for (size_t i = 0; i < G_N_ELEMENTS(sets); i++) {
        if (sets[i] && sign > 0)
            g_hash_table_insert(sets[i], (gpointer)allocation->uid, allocation);
        else if (sets[i])
            g_hash_table_remove(sets[i], allocation->uid);
    }
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

static struct cpu_pod *ledger_cpu_pod(const struct ledger *ledger, const char *uid)
{
    return g_hash_table_lookup(ledger->cpu_pods, &uid);
}

static void ledger_append_cpu_pod(struct ledger *ledger, struct cpu_pod *cpu_pod)
{
    cpu_pod->before = ledger->last_cpu_pod;
    cpu_pod->after = NULL;
    *(cpu_pod->before ? &cpu_pod->before->after : &ledger->first_cpu_pod) = cpu_pod;
    ledger->last_cpu_pod = cpu_pod;
}

static void ledger_unlink_cpu_pod(struct ledger *ledger, const struct cpu_pod *cpu_pod)
{
    *(cpu_pod->before ? &cpu_pod->before->after : &ledger->first_cpu_pod) = cpu_pod->after;
    *(cpu_pod->after ? &cpu_pod->after->before : &ledger->last_cpu_pod) = cpu_pod->before;
}

const char *ledger_stale_cpu_pod(const struct ledger *ledger, uint32_t generation)
{
    const struct cpu_pod *first = ledger->first_cpu_pod;

    return first && first->generation != generation ? first->uid : NULL;
}

/* Leaves the node, even if nothing is on it any more. */
static void ledger_release_cpu_pod(struct ledger *ledger, const struct cpu_pod *cpu_pod)
{
    ledger_unlink_cpu_pod(ledger, cpu_pod);
    node_charge_host(cpu_pod->node, &cpu_pod->host, -1);
    cpu_pod->node->n_cpu_pods--;
}

static bool ledger_drop_cpu_pod(struct ledger *ledger, const char *uid)
{
    struct cpu_pod *cpu_pod = ledger_cpu_pod(ledger, uid);
    if (!cpu_pod)
        return false;

    struct node *node = cpu_pod->node;
    ledger_release_cpu_pod(ledger, cpu_pod);
    g_hash_table_remove(ledger->cpu_pods, cpu_pod);
    ledger_collect_node(ledger, node);
    return true;
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
           a->card_units == b->card_units && a->terminating == b->terminating &&
           a->started == b->started && a->waited_out == b->waited_out && a->heeded == b->heeded &&
           a->facts == b->facts;
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
        known->card_units = take_allocation->card_units;
        known->terminating = take_allocation->terminating;
        known->started = take_allocation->started;
        known->waited_out = take_allocation->waited_out;
        ledger_count_state(ledger, known, 1);
        known->heeded = take_allocation->heeded;
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
        if (share->key)
            share->card = card ? card->index : CARD_UNKNOWN;
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

void ledger_sweep_cpu_pods(struct ledger *ledger, uint32_t generation)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, ledger->cpu_pods);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const struct cpu_pod *cpu_pod = key;
        struct node *node = cpu_pod->node;
        if (cpu_pod->generation == generation)
            continue;
        ledger_release_cpu_pod(ledger, cpu_pod);
        g_hash_table_iter_remove(&iter);
        ledger_collect_node(ledger, node);
    }
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

static void visit_set(GHashTable *set, ledger_visit visit, void *data)
{
    GHashTableIter iter;
    gpointer allocation;

    g_hash_table_iter_init(&iter, set);
    while (g_hash_table_iter_next(&iter, NULL, &allocation))
        visit(allocation, data);
}

void ledger_each_open(const struct ledger *ledger, ledger_visit visit, void *data)
{
    visit_set(ledger->open, visit, data);
}

void ledger_each_waited_out(const struct ledger *ledger, ledger_visit visit, void *data)
{
    visit_set(ledger->waited_out, visit, data);
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

static void free_node(gpointer data)
{
    node_free(data);
}

static void free_allocation(gpointer data)
{
    allocation_free(data);
}

struct ledger *ledger_new(void)
{
    struct ledger *ledger = g_new0(struct ledger, 1);
    ledger->nodes = g_hash_table_new_full(named_hash, named_equal, free_node, NULL);
    ledger->allocations =
        g_hash_table_new_full(name_hash, g_str_equal, NULL, free_allocation);
    ledger->cpu_pods = g_hash_table_new_full(named_hash, named_equal, g_free, NULL);
    ledger->open = g_hash_table_new(name_hash, g_str_equal);
    ledger->waited_out = g_hash_table_new(name_hash, g_str_equal);
    ledger->sorted = g_ptr_array_new();
    ledger->asked = asked_order_new();
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
    g_hash_table_unref(ledger->open);
    g_hash_table_unref(ledger->waited_out);
    g_ptr_array_unref(ledger->sorted);
    asked_order_free(ledger->asked);
    g_array_unref(ledger->free_places);
    g_free(ledger);
}

/* --- verification --------------------------------------------------------------------------- */

/* Node -> struct host, what its CPU-only pods have; nodes without CPU-only pods are not in it. */
static GHashTable *add_up_cpu_pods(const struct ledger *ledger)
{
    GHashTable *sums = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, ledger->cpu_pods);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const struct cpu_pod *cpu_pod = key;
        struct host *sum = g_hash_table_lookup(sums, cpu_pod->node);
        if (!sum) {
            sum = g_new0(struct host, 1);
            g_hash_table_insert(sums, cpu_pod->node, sum);
        }
        sum->cpu += cpu_pod->host.cpu;
        sum->memory += cpu_pod->host.memory;
        sum->pods += cpu_pod->host.pods;
    }
    return sums;
}

/* NULL: what the node holds is what the ledger says that it does; else an allocation that is not. */
static const struct allocation *find_stray(const struct ledger *ledger, const struct node *node)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (allocation->node != node || ledger_get(ledger, allocation->uid) != allocation)
            return allocation;
    }
    return NULL;
}

bool ledger_holds(const struct ledger *ledger, const struct node *node)
{
    return !find_stray(ledger, node);
}

static bool verify_states(const struct ledger *ledger, GError **error)
{
    size_t n[ALLOCATION_STATES] = {0};
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, ledger->allocations);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct allocation *allocation = data;
        n[allocation->state]++;
        const bool open = g_hash_table_lookup(ledger->open, allocation->uid) == data;
        if (open != (allocation->state == ALLOCATION_CONFIRMED))
            continue;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "pod '%s' is not counted in its state", allocation->uid);
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(n); i++) {
        if (n[i] == ledger->n_in_state[i])
            continue;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "%zu pods are in state %zu, counted were %zu", n[i], i, ledger->n_in_state[i]);
        return false;
    }
    return true;
}

bool ledger_verify(const struct ledger *ledger, GError **error)
{
    static const struct host none = {0};
    g_autoptr(GHashTable) cpu_pods = add_up_cpu_pods(ledger);
    GHashTableIter iter;
    gpointer data;
    size_t held = 0;

    g_hash_table_iter_init(&iter, ledger->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct node *node = data;
        const struct host *sum = g_hash_table_lookup(cpu_pods, node);
        if (!node_verify(node, sum ? *sum : none, error))
            return false;
        const struct allocation *stray = find_stray(ledger, node);
        if (stray) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                        "node '%s' holds pod '%s', which the ledger does not", node->name,
                        stray->uid);
            return false;
        }
        held += node->allocations->len;
    }
    if (held != ledger_size(ledger)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "nodes hold %zu pods, the ledger %zu", held, ledger_size(ledger));
        return false;
    }
    return verify_states(ledger, error);
}
