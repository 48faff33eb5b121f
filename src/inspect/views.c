/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/views.h"

#include "base/printable.h"
#include "base/metrics.h"
#include "store/node_copy.h"
#include "store/node_walk.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

static void add_left_out(const struct node_backoff_row *row, void *data)
{
    if (row->place.size == 0 && !g_hash_table_contains(data, row->node))
        g_hash_table_add(data, g_strdup(row->node));
}

GHashTable *view_left_out(struct store *store)
{
    GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct part_cursor at = PART_BEGIN;
    bool more;

    do {
        store_lock_again(store);
        more = node_backoff_walk(store_part(store, &part_node_backoff), &at, add_left_out, names);
        store_unlock(store);
    } while (more);
    return names;
}

/* --- the view of the Aliyun command-line tool ----------------------------------------------- */

static int64_t units(const struct node_copy *node, int64_t bytes)
{
    return bytes / node->memory_unit;
}

static void write_inspect_card(struct json_writer *writer, const struct node_copy *node,
                               const struct card *card)
{
    json_begin_object(writer);
    json_key_int(writer, "id", card->index);
    json_key_int(writer, "totalGPU", units(node, card->memory));
    json_key_int(writer, "usedGPU", units(node, card->memory_used));
    json_key_array(writer, "pods");
    for (uint32_t i = 0; i < node->n_pods; i++) {
        const struct pod_copy *pod = &node->pods[i];
        int64_t bytes = 0;
        bool here = false;
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            if (!share_copy_is_on(node, &pod->shares[j], card))
                continue;
            here = true;
            bytes += pod->shares[j].memory;
        }
        if (!here)
            continue;
        json_begin_object(writer);
        json_key_string(writer, "name", pod->name);
        json_key_string(writer, "namespace", pod->ns);
        json_key_int(writer, "usedGPU", units(node, bytes));
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void write_inspect_node(struct json_writer *writer, const struct node_copy *node)
{
    int64_t total = 0, used = 0;

    for (int32_t i = 0; i < node->n_cards; i++) {
        total += units(node, node->cards[i].memory);
        used += units(node, node->cards[i].memory_used);
    }
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    json_key_int(writer, "totalGPU", total);
    json_key_int(writer, "usedGPU", used);
    json_key_array(writer, "devs");
    for (int32_t i = 0; i < node->n_cards; i++)
        write_inspect_card(writer, node, &node->cards[i]);
    json_end_array(writer);
    json_end_object(writer);
}

bool view_inspect(struct store *store, const char *name, GString *reply)
{
    int64_t start_us = g_get_monotonic_time();
    g_autoptr(node_reader) reader = node_reader_new(store, name, true);
    const GArray *nodes;
    bool found = !name;
    struct json_writer writer;

    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    json_key_array(&writer, "nodes");
    while ((nodes = node_reader_next(reader))) {
        found = true;
        for (guint i = 0; i < nodes->len; i++) {
            const struct node_copy *node = &g_array_index(nodes, struct node_copy, i);
            if (name || node->n_cards > 0 || node->n_pools == 0) /* the tool knows only cards */
                write_inspect_node(&writer, node);
        }
    }
    json_end_array(&writer);
    if (!found) {
        g_autofree char *text = g_strdup_printf("node '%s' is not known", name);
        json_key_string(&writer, "error", text);
    }
    json_end_object(&writer);
    metrics_observe(VERB_INSPECT, PHASE_TOTAL, g_get_monotonic_time() - start_us);
    return found;
}

/* --- nodes ---------------------------------------------------------------------------------- */

const char *const view_states[VIEW_STATES_N] = {
    [ALLOCATION_ASSUMED] = "reserved", [ALLOCATION_UNKNOWN] = "unknown",
    [ALLOCATION_BOUND] = "bound",      [ALLOCATION_CONFIRMED] = "confirmed",
    [ALLOCATION_HELD] = "held",
};

static void write_share(struct json_writer *writer, const struct share_copy *share)
{
    json_begin_object(writer);
    json_key(writer, "card");
    if (share->card == CARD_UNKNOWN)
        json_null(writer);
    else
        json_int(writer, share->card);
    json_key(writer, "container");
    if (share->container == CONTAINER_POD)
        json_null(writer);
    else
        json_int(writer, share->container);
    json_key_int(writer, "memoryBytes", share->memory);
    json_key_int(writer, "coreThousandths", share->core);
    json_key_string(writer, "resource", share->device);
    json_key_int(writer, "devices", share->devices);
    json_end_object(writer);
}

static void write_pod(struct json_writer *writer, const struct pod_copy *pod, const char *node)
{
    json_begin_object(writer);
    json_key_string(writer, "namespace", pod->ns);
    json_key_string(writer, "name", pod->name);
    json_key_string(writer, "uid", pod->uid);
    json_key_string(writer, "node", node);
    json_key_string(writer, "dialect", pod->dialect->name);
    json_key_string(writer, "state", pod->assigned ? "assigned" : view_states[pod->state]);
    json_key_bool(writer, "waiting", pod->waiting);
    json_key_array(writer, "shares");
    for (uint32_t i = 0; i < pod->n_shares; i++)
        write_share(writer, &pod->shares[i]);
    json_end_array(writer);
    json_end_object(writer);
}

static void write_card(struct json_writer *writer, const struct node_copy *node,
                       const struct card *card)
{
    json_begin_object(writer);
    json_key_int(writer, "index", card->index);
    json_key_string(writer, "uuid", card->uuid);
    json_key_string(writer, "model", card->model);
    json_key_bool(writer, "healthy", card->healthy);
    json_key_bool(writer, "closed", card->closure != CLOSURE_NONE);
    json_key_int(writer, "memoryBytes", card->memory);
    json_key_int(writer, "memoryUsedBytes", card->memory_used);
    json_key_int(writer, "memoryFreeBytes", card_copy_free(node, card));
    json_key_int(writer, "coreThousandths", card_core_told(card, card->core));
    json_key_int(writer, "coreUsedThousandths", card_core_told(card, card->core_used));
    json_key_int(writer, "holders", card->holders);
    json_key_known_int(writer, "slots", card->slots > 0, card->slots);
    json_end_object(writer);
}

static void write_pool(struct json_writer *writer, const struct pool *pool)
{
    json_begin_object(writer);
    json_key_string(writer, "resource", pool->resource);
    json_key_string(writer, "model", pool->model);
    json_key_bool(writer, "shared", pool->shared);
    json_key_int(writer, "capacity", pool->capacity);
    json_key_int(writer, "used", pool->used);
    json_key_known_int(writer, "memoryBytes", pool->memory > 0, pool->memory);
    json_end_object(writer);
}

static void write_node(struct json_writer *writer, const struct node_copy *node)
{
    json_begin_object(writer);
    json_key_string(writer, "name", node->name);
    json_key_array(writer, "dialects");
    for (int32_t i = 0; i < node->n_dialects; i++)
        json_string(writer, node->dialects[i]->name);
    json_end_array(writer);
    json_key_bool(writer, "present", node->present);
    json_key_int(writer, "memoryUnitBytes", node->memory_unit);
    json_key_int(writer, "unplacedMemoryBytes", node->unplaced_memory);
    json_key_int(writer, "fragmentedGpuThousandths", node->fragmented);
    json_key_array(writer, "cards");
    for (int32_t i = 0; i < node->n_cards; i++)
        write_card(writer, node, &node->cards[i]);
    json_end_array(writer);
    json_key_array(writer, "pools");
    for (int32_t i = 0; i < node->n_pools; i++)
        write_pool(writer, &node->pools[i]);
    json_end_array(writer);
    json_key_array(writer, "pods");
    for (uint32_t i = 0; i < node->n_pods; i++)
        write_pod(writer, &node->pods[i], node->name);
    json_end_array(writer);
    json_end_object(writer);
}

bool view_nodes(struct store *store, const char *name, GString *reply)
{
    g_autoptr(node_reader) reader = node_reader_new(store, name, true);
    const GArray *nodes = node_reader_next(reader);
    struct json_writer writer;

    if (name && !nodes)
        return false;
    json_writer_init(&writer, reply);
    if (name) {
        write_node(&writer, &g_array_index(nodes, struct node_copy, 0));
        return true;
    }
    json_begin_object(&writer);
    json_key_array(&writer, "nodes");
    for (; nodes; nodes = node_reader_next(reader)) {
        for (guint i = 0; i < nodes->len; i++)
            write_node(&writer, &g_array_index(nodes, struct node_copy, i));
    }
    json_end_array(&writer);
    json_end_object(&writer);
    return true;
}

/* --- tables --------------------------------------------------------------------------------- */

/* "15GiB", "4096MiB": the node's own unit, so that it compares with what pods ask for. */
static char *format_units(const struct node_copy *node, int64_t bytes)
{
    const char *suffix = node->memory_unit == (INT64_C(1) << 20) ? "MiB" : "GiB";
    int64_t unit = node->memory_unit > 1 ? node->memory_unit : INT64_C(1) << 30;
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", bytes / unit, suffix);
}

#define BAR_WIDTH 20

static void append_bar(GString *text, int64_t used, int64_t total)
{
    int64_t filled = total > 0 ? MIN(used * BAR_WIDTH / total, BAR_WIDTH) : 0;
    if (used > 0 && filled == 0)
        filled = 1;
    for (int64_t i = 0; i < BAR_WIDTH; i++)
        g_string_append_c(text, i < filled ? '#' : '.');
}

/* The pods on a card (NULL: on none that is known) or with devices of a pool. */
static void append_pods(GString *text, const struct node_copy *node, const struct card *card,
                        const struct pool *pool)
{
    bool first = true;

    for (uint32_t i = 0; i < node->n_pods; i++) {
        const struct pod_copy *pod = &node->pods[i];
        for (uint32_t j = 0; j < pod->n_shares; j++) {
            const struct share_copy *share = &pod->shares[j];
            if (pool ? g_strcmp0(share->device, pool->resource) != 0
                     : !share_copy_is_on(node, share, card))
                continue;
            g_autofree char *size = pool ? g_strdup_printf("%d", share->devices)
                                         : format_units(node, share->memory);
            printable_append(text, "%s%s/%s(%s%s)", first ? "" : " ", pod->ns, pod->name, size,
                             pod->waiting ? ", waiting" : "");
            first = false;
        }
    }
    if (first)
        g_string_append_c(text, '-');
}

static void append_card_row(GString *text, const struct node_copy *node, const struct card *card,
                            int name_width)
{
    g_autofree char *used = format_units(node, card->memory_used);
    g_autofree char *total = format_units(node, card->memory);
    g_autofree char *usage = g_strdup_printf("%s/%s", used, total);

    printable_append(text, "%-*s  %4d  ", name_width, node->name, card->index);
    append_bar(text, card->memory_used, card->memory);
    printable_append(text, "  %-17s  %-9s  ", usage,
                     !card->healthy  ? "UNHEALTHY"
                     : card->closure ? "CLOSED"
                                     : "healthy");
    append_pods(text, node, card, NULL);
    g_string_append_c(text, '\n');
}

static void append_pool_row(GString *text, const struct node_copy *node, const struct pool *pool,
                            int name_width)
{
    g_autofree char *usage = g_strdup_printf("%" G_GINT64_FORMAT "/%d", pool->used, pool->capacity);

    printable_append(text, "%-*s     *  ", name_width, node->name);
    append_bar(text, pool->used, pool->capacity);
    printable_append(text, "  %-17s  %-9s  %s: ", usage, pool->shared ? "shared" : "-",
                     pool->resource);
    append_pods(text, node, NULL, pool);
    g_string_append_c(text, '\n');
}

static void append_rows(GString *text, const struct node_copy *node, int name_width)
{
    for (int32_t j = 0; j < node->n_cards; j++)
        append_card_row(text, node, &node->cards[j], name_width);
    for (int32_t j = 0; j < node->n_pools; j++)
        append_pool_row(text, node, &node->pools[j], name_width);
    if (node->unplaced_memory > 0) {
        g_autofree char *size = format_units(node, node->unplaced_memory);
        printable_append(text, "%-*s     ?  on no known card, counted on each: %s: ", name_width,
                         node->name, size);
        append_pods(text, node, NULL, NULL);
        g_string_append_c(text, '\n');
    }
}

static void widen(const struct node *node, void *data)
{
    int *width = data;

    if (node->n_cards > 0 || node->n_pools > 0 || node->allocations->len > 0)
        *width = MAX(*width, (int)strlen(node->name));
}

bool view_nodes_table(struct store *store, const char *name, GString *reply)
{
    g_autoptr(node_reader) reader = node_reader_new(store, name, true);
    const GArray *nodes = node_reader_next(reader);
    int name_width = 4;

    if (name && !nodes)
        return false;
    if (name)
        name_width = MAX(name_width, (int)strlen(name));
    else
        node_walk_all(store, widen, &name_width);
    g_string_append_printf(reply, "%-*s  CARD  %-*s  %-17s  %-9s  PODS\n", name_width, "NODE",
                           BAR_WIDTH, "MEMORY", "USED/TOTAL", "HEALTH");
    for (; nodes; nodes = node_reader_next(reader)) {
        for (guint i = 0; i < nodes->len; i++)
            append_rows(reply, &g_array_index(nodes, struct node_copy, i), name_width);
    }
    return true;
}

/* --- pods ----------------------------------------------------------------------------------- */

bool view_pod(struct store *store, const char *ns, const char *name, GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_copy pod;
    const char *node;
    struct json_writer writer;

    if (!pod_copy_find(store, arena, ns, name, &pod, &node))
        return false;
    json_writer_init(&writer, reply);
    write_pod(&writer, &pod, node);
    return true;
}
