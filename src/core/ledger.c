/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage is kept, not computed: every allocation that enters or leaves a node is charged to or
 * credited from its cards by the one function node_count(). A change of the cards themselves
 * counts everything anew.
 */
#include <gpuledger/error.h>
#include <gpuledger/ledger.h>
#include <string.h>

struct ledger {
    GHashTable *nodes;       /* struct node *, a set by name */
    GHashTable *allocations; /* uid (the allocation's own) -> struct allocation * */
    GPtrArray *sorted;       /* nodes by name; valid unless stale */
    bool sorted_stale;
    uint64_t freed; /* counts what may have made room */
    struct node *first_asked; /* ledger_next_node's guess for the first name */
};

/* --- amounts and cards ---------------------------------------------------------------------- */

int64_t amount_bytes(struct amount amount, int64_t memory_unit)
{
    int64_t unit = amount.kind == AMOUNT_NODE_UNITS ? memory_unit : 1;
    int64_t bytes;

    if (__builtin_mul_overflow(amount.value, unit, &bytes) || bytes > AMOUNT_BYTES_MAX)
        return AMOUNT_BYTES_MAX;
    return MAX(bytes, 0);
}

static struct card *find_card(const struct node *node, int32_t index)
{
    /* Cards are numbered from 0 without gaps by every node side read so far; the search is for
     * those that will not be. */
    if (index >= 0 && index < node->n_cards && node->cards[index].index == index)
        return &node->cards[index];
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].index == index)
            return &node->cards[i];
    }
    return NULL;
}

const struct card *node_card(const struct node *node, int32_t index)
{
    return find_card(node, index);
}

int64_t card_memory_free(const struct node *node, const struct card *card)
{
    int64_t left = card->memory - card->memory_used - node->unplaced_memory;
    return MAX(left, 0);
}

int32_t card_core_free(const struct node *node, const struct card *card)
{
    int64_t left = CORE_WHOLE - (int64_t)card->core_used - node->unplaced_core;
    return left > 0 ? (int32_t)left : 0;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void node_free(gpointer data)
{
    struct node *node = data;
    g_free(node->cards);
    g_clear_pointer(&node->unhealthy, g_array_unref);
    g_ptr_array_unref(node->allocations);
    g_free(node);
}

/* A card that somebody has to himself is not free, whatever its memory. */
static void node_summarize(struct node *node)
{
    node->memory_free_max = -1;
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        if (card->healthy && card->exclusive + node->unplaced_exclusive == 0)
            node->memory_free_max = MAX(node->memory_free_max, card_memory_free(node, card));
    }
}

/* Adds (sign 1) or takes away (sign -1) what an allocation holds. */
static void node_count(struct node *node, const struct allocation *allocation, int sign)
{
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        int64_t bytes = amount_bytes(share->memory, node->memory_unit);
        struct card *card = node->n_cards == 1 ? &node->cards[0] : find_card(node, share->card);

        if (card) {
            card->memory_used += sign * bytes;
            card->core_used += sign * share->core;
            card->holders += sign;
            card->exclusive += share->exclusive ? sign : 0;
        } else {
            node->unplaced_memory += sign * bytes;
            node->unplaced_core += sign * share->core;
            node->unplaced_holders += sign;
            node->unplaced_exclusive += share->exclusive ? sign : 0;
        }
    }
    if (allocation->waiting)
        node->n_waiting += sign;
}

static void node_charge(struct node *node, const struct allocation *allocation, int sign)
{
    node_count(node, allocation, sign);
    node_summarize(node);
}

static void node_charge_all(struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        struct card *card = &node->cards[i];
        card->holders = card->exclusive = card->core_used = 0;
        card->memory_used = 0;
    }
    node->unplaced_memory = node->unplaced_core = 0;
    node->unplaced_holders = node->unplaced_exclusive = node->n_waiting = 0;
    for (guint i = 0; i < node->allocations->len; i++)
        node_count(node, g_ptr_array_index(node->allocations, i), 1);
    node_summarize(node);
}

static void node_apply_health(struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++)
        node->cards[i].healthy = true;
    for (guint i = 0; node->unhealthy && i < node->unhealthy->len; i++) {
        struct card *card = find_card(node, g_array_index(node->unhealthy, int32_t, i));
        if (card)
            card->healthy = false;
    }
    node_summarize(node);
}

struct node *ledger_node(const struct ledger *ledger, const char *name)
{
    return g_hash_table_lookup(ledger->nodes, &name);
}

struct node *ledger_next_node(struct ledger *ledger, struct node *after, const char *name)
{
    struct node **guess = after ? &after->followed_by : &ledger->first_asked;

    if (!*guess || !g_str_equal((*guess)->name, name)) {
        struct node *found = ledger_node(ledger, name);
        if (!found)
            return NULL;
        *guess = found;
    }
    return *guess;
}

/* Before a node is freed. */
static void ledger_forget_guesses(struct ledger *ledger, const struct node *node)
{
    GHashTableIter iter;
    gpointer key;

    if (ledger->first_asked == node)
        ledger->first_asked = NULL;
    g_hash_table_iter_init(&iter, ledger->nodes);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        struct node *other = key;
        if (other->followed_by == node)
            other->followed_by = NULL;
    }
}

static struct node *ledger_intern_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);
    if (node)
        return node;

    size_t size = strlen(name) + 1;
    node = g_malloc0(sizeof *node + size);
    node->name = memcpy(node + 1, name, size);
    node->memory_unit = 1;
    node->allocations = g_ptr_array_new();
    g_hash_table_add(ledger->nodes, node);
    ledger->sorted_stale = true;
    return node;
}

static void ledger_note_freed(struct ledger *ledger, struct node *node)
{
    node->freed_at = ++ledger->freed;
}

uint64_t ledger_freed(const struct ledger *ledger)
{
    return ledger->freed;
}

/* A node that neither exists nor holds anything nor has a health record is forgotten. */
static void ledger_collect_node(struct ledger *ledger, struct node *node)
{
    if (node->present || node->allocations->len > 0 || node->unhealthy)
        return;
    ledger->sorted_stale = true;
    ledger_forget_guesses(ledger, node);
    g_hash_table_remove(ledger->nodes, node);
}

static gint compare_nodes(gconstpointer a, gconstpointer b)
{
    const struct node *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

const GPtrArray *ledger_nodes(struct ledger *ledger)
{
    if (ledger->sorted_stale) {
        GHashTableIter iter;
        gpointer node;

        g_ptr_array_set_size(ledger->sorted, 0);
        g_hash_table_iter_init(&iter, ledger->nodes);
        while (g_hash_table_iter_next(&iter, NULL, &node))
            g_ptr_array_add(ledger->sorted, node);
        g_ptr_array_sort(ledger->sorted, compare_nodes);
        ledger->sorted_stale = false;
    }
    return ledger->sorted;
}

struct node *ledger_set_topology(struct ledger *ledger, const char *name,
                                 const struct topology *topology)
{
    static const struct topology none = {.memory_unit = 1};
    struct node *node = ledger_intern_node(ledger, name);

    if (!topology)
        topology = &none;
    node->present = true;
    node->dialect = topology->dialect;
    node->memory_unit = topology->memory_unit;
    if (node->n_cards != topology->n_cards) {
        node->n_cards = topology->n_cards;
        g_free(node->cards);
        node->cards = g_new0(struct card, (gsize)topology->n_cards);
    }
    for (int32_t i = 0; i < node->n_cards; i++) {
        node->cards[i].index = i;
        node->cards[i].memory = topology->card_memory[i];
    }
    node_apply_health(node);
    node_charge_all(node);
    ledger_note_freed(ledger, node);
    return node;
}

void ledger_remove_node(struct ledger *ledger, const char *name)
{
    struct node *node = ledger_node(ledger, name);
    if (!node)
        return;
    ledger_set_topology(ledger, name, NULL);
    node->present = false;
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

/* --- allocations ---------------------------------------------------------------------------- */

struct allocation *allocation_new(const char *uid, const char *ns, const char *name,
                                  size_t n_shares)
{
    g_assert(n_shares <= REQUEST_ASKS_MAX);
    size_t fixed = sizeof(struct allocation) + n_shares * sizeof(struct share);
    size_t uid_size = strlen(uid) + 1, ns_size = strlen(ns) + 1, name_size = strlen(name) + 1;
    struct allocation *allocation = g_malloc0(fixed + uid_size + ns_size + name_size);
    char *strings = (char *)allocation + fixed;

    allocation->uid = memcpy(strings, uid, uid_size);
    allocation->ns = memcpy(strings + uid_size, ns, ns_size);
    allocation->name = memcpy(strings + uid_size + ns_size, name, name_size);
    allocation->n_shares = (uint32_t)n_shares;
    return allocation;
}

void allocation_free(struct allocation *allocation)
{
    g_free(allocation);
}

static bool share_equal(const struct share *a, const struct share *b)
{
    return a->memory.value == b->memory.value && a->memory.kind == b->memory.kind &&
           a->container == b->container && a->card == b->card && a->core == b->core &&
           a->exclusive == b->exclusive;
}

bool allocation_equal(const struct allocation *a, const struct allocation *b)
{
    if (a->node != b->node || a->dialect != b->dialect || a->doubt != b->doubt ||
        a->assigned != b->assigned ||
        a->waiting != b->waiting || a->match_amount != b->match_amount ||
        a->assume_time_ns != b->assume_time_ns || a->n_shares != b->n_shares ||
        !g_str_equal(a->uid, b->uid) || !g_str_equal(a->ns, b->ns) ||
        !g_str_equal(a->name, b->name))
        return false;
    for (uint32_t i = 0; i < a->n_shares; i++) {
        if (!share_equal(&a->shares[i], &b->shares[i]))
            return false;
    }
    return true;
}

struct allocation *ledger_get(const struct ledger *ledger, const char *uid)
{
    return g_hash_table_lookup(ledger->allocations, uid);
}

static struct allocation *ledger_add(struct ledger *ledger, struct node *node,
                                     struct allocation *allocation)
{
    allocation->node = node;
    g_ptr_array_add(node->allocations, allocation);
    node_charge(node, allocation, 1);
    g_hash_table_insert(ledger->allocations, (gpointer)allocation->uid, allocation);
    return allocation;
}

bool ledger_drop(struct ledger *ledger, const char *uid)
{
    struct allocation *allocation = ledger_get(ledger, uid);
    if (!allocation)
        return false;

    struct node *node = allocation->node;
    node_charge(node, allocation, -1);
    ledger_note_freed(ledger, node);
    g_ptr_array_remove_fast(node->allocations, allocation);
    g_hash_table_remove(ledger->allocations, uid);
    ledger_collect_node(ledger, node);
    return true;
}

struct allocation *ledger_put(struct ledger *ledger, const char *node_name,
                              struct allocation *take_allocation)
{
    struct node *node = ledger_intern_node(ledger, node_name);
    struct allocation *known = ledger_get(ledger, take_allocation->uid);

    take_allocation->node = node;
    if (known && allocation_equal(known, take_allocation)) {
        known->state = take_allocation->state;
        known->since_ms = take_allocation->since_ms;
        known->generation = take_allocation->generation;
        allocation_free(take_allocation);
        return known;
    }
    /* Added before the old one goes, so that their common node is never collected between. */
    if (known) {
        node_charge(known->node, known, -1);
        ledger_note_freed(ledger, known->node);
        g_ptr_array_remove_fast(known->node->allocations, known);
        struct node *old = known->node;
        g_hash_table_steal(ledger->allocations, known->uid);
        ledger_add(ledger, node, take_allocation);
        allocation_free(known);
        ledger_collect_node(ledger, old);
        return take_allocation;
    }
    return ledger_add(ledger, node, take_allocation);
}

/* Whether every share fits its card beside what is there, several on one card added up. */
static enum reason check_fit(const struct node *node, const struct allocation *allocation)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *card = &node->cards[i];
        int64_t memory = 0, core = 0;
        int32_t shares = 0, exclusive = 0;

        for (uint32_t j = 0; j < allocation->n_shares; j++) {
            const struct share *share = &allocation->shares[j];
            if (share->card != card->index)
                continue;
            memory += amount_bytes(share->memory, node->memory_unit);
            core += share->core;
            exclusive += share->exclusive;
            shares++;
        }
        if (shares == 0)
            continue;
        if (!card->healthy)
            return REASON_CARD_UNHEALTHY;
        if (memory > card_memory_free(node, card))
            return REASON_INSUFFICIENT_MEMORY;
        if (core > card_core_free(node, card))
            return REASON_INSUFFICIENT_CORE;
        if (card->exclusive + node->unplaced_exclusive > 0 ||
            (exclusive > 0 && card->holders + node->unplaced_holders + shares > 1))
            return REASON_INSUFFICIENT_MEMORY;
    }
    for (uint32_t j = 0; j < allocation->n_shares; j++) {
        if (!node_card(node, allocation->shares[j].card))
            return REASON_CARD_COUNT;
    }
    return REASON_NONE;
}

struct allocation *ledger_reserve(struct ledger *ledger, const char *node_name,
                                  struct allocation *take_allocation, enum reason *ret_reason)
{
    struct node *node = ledger_node(ledger, node_name);

    g_assert(!ledger_get(ledger, take_allocation->uid));
    *ret_reason = node && node->present ? check_fit(node, take_allocation) : REASON_NODE_UNKNOWN;
    if (*ret_reason != REASON_NONE) {
        allocation_free(take_allocation);
        return NULL;
    }
    return ledger_add(ledger, node, take_allocation);
}

void ledger_set_state(struct ledger *ledger, struct allocation *allocation,
                      enum allocation_state state)
{
    if (allocation->state != ALLOCATION_CONFIRMED)
        allocation->state = state;
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

/* The nodes are a set, which GLib keeps in less memory than a map: a key is a pointer to the pointer
 * to a name, as a node begins with one. */
static guint node_hash(gconstpointer key)
{
    return name_hash(*(const char *const *)key);
}

static gboolean node_equal(gconstpointer a, gconstpointer b)
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
    ledger->nodes = g_hash_table_new_full(node_hash, node_equal, node_free, NULL);
    ledger->allocations =
        g_hash_table_new_full(name_hash, g_str_equal, NULL, free_allocation);
    ledger->sorted = g_ptr_array_new();
    return ledger;
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    g_hash_table_unref(ledger->allocations);
    g_hash_table_unref(ledger->nodes);
    g_ptr_array_unref(ledger->sorted);
    g_free(ledger);
}

/* --- verification --------------------------------------------------------------------------- */

static bool verify_failed(GError **error, const struct node *node, const char *what, int64_t kept,
                          int64_t found)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                "node '%s': %s is kept as %" G_GINT64_FORMAT " but adds up to %" G_GINT64_FORMAT,
                node->name, what, kept, found);
    return false;
}

static bool node_verify(const struct node *node, GError **error)
{
    struct node fresh = *node;
    g_autofree struct card *cards = g_memdup2(node->cards, sizeof(struct card) *
                                                               (gsize)node->n_cards);
    fresh.cards = cards;
    node_charge_all(&fresh);

    if (fresh.memory_free_max != node->memory_free_max)
        return verify_failed(error, node, "the largest free amount", node->memory_free_max,
                             fresh.memory_free_max);
    if (fresh.unplaced_memory != node->unplaced_memory)
        return verify_failed(error, node, "unplaced memory", node->unplaced_memory,
                             fresh.unplaced_memory);
    if (fresh.unplaced_core != node->unplaced_core)
        return verify_failed(error, node, "unplaced core", node->unplaced_core,
                             fresh.unplaced_core);
    if (fresh.unplaced_holders != node->unplaced_holders ||
        fresh.unplaced_exclusive != node->unplaced_exclusive)
        return verify_failed(error, node, "unplaced holders", node->unplaced_holders,
                             fresh.unplaced_holders);
    if (fresh.n_waiting != node->n_waiting)
        return verify_failed(error, node, "waiting pods", node->n_waiting, fresh.n_waiting);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct card *kept = &node->cards[i], *found = &cards[i];
        if (kept->memory_used != found->memory_used)
            return verify_failed(error, node, "a card's memory", kept->memory_used,
                                 found->memory_used);
        if (kept->core_used != found->core_used)
            return verify_failed(error, node, "a card's core", kept->core_used,
                                 found->core_used);
        if (kept->holders != found->holders || kept->exclusive != found->exclusive)
            return verify_failed(error, node, "a card's holders", kept->holders, found->holders);
    }
    return true;
}

bool ledger_verify(const struct ledger *ledger, GError **error)
{
    GHashTableIter iter;
    gpointer data;
    size_t held = 0;

    g_hash_table_iter_init(&iter, ledger->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct node *node = data;
        if (!node_verify(node, error))
            return false;
        for (guint i = 0; i < node->allocations->len; i++) {
            const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
            if (allocation->node != node || ledger_get(ledger, allocation->uid) != allocation) {
                g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                            "node '%s' holds pod '%s', which the ledger does not", node->name,
                            allocation->uid);
                return false;
            }
        }
        held += node->allocations->len;
    }
    if (held != ledger_size(ledger)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "nodes hold %zu pods, the ledger %zu", held, ledger_size(ledger));
        return false;
    }
    return true;
}
