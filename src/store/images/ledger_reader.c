/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/ledger_reader.h"

#include "json/source.h"
#include "store/store_state.h"

#include <string.h>

#define NODES_AT_ONCE 64 /* of a step, mostly; and of its pods so many */
#define QUOTAS_AT_ONCE 256

struct ledger_reader {
    struct store *store;
    bool numbered;
    struct node_images *images;
    GArray *nodes;            /* struct held_node */
    GPtrArray *quotas;        /* const char *, of the arena, pod by pod; empty: they are not kept */
    struct json_arena *arena; /* of what the step has noted under the lock */
};

const char *held_quota(const struct elastic_quotas *quotas, const char *uid)
{
    const char *quota = quotas ? elastic_quotas_choice(quotas, uid) : NULL;

    return quotas && !quota ? "" : quota;
}

static void clear_node(gpointer data)
{
    struct held_node *node = data;

    g_clear_pointer(&node->pods, g_array_unref);
}

struct ledger_reader *ledger_reader_new_by(struct store *store, bool numbered, const char *who)
{
    struct ledger_reader *reader = g_new0(struct ledger_reader, 1);

    reader->store = store;
    reader->numbered = numbered;
    reader->images = node_images_new_by(store, false, who);
    reader->nodes = g_array_sized_new(FALSE, FALSE, sizeof(struct held_node), NODES_AT_ONCE);
    g_array_set_clear_func(reader->nodes, clear_node);
    reader->quotas = g_ptr_array_sized_new(QUOTAS_AT_ONCE);
    reader->arena = json_arena_new();
    return reader;
}

void ledger_reader_free(struct ledger_reader *reader)
{
    if (!reader)
        return;
    node_images_free(reader->images);
    g_array_unref(reader->nodes);
    g_ptr_array_unref(reader->quotas);
    json_arena_free(reader->arena);
    g_free(reader);
}

/* Under the lock: what the image does not have. */
static void note_node(const struct node *node, void *data)
{
    struct ledger_reader *reader = data;
    struct store *store = reader->store;
    const struct elastic_quotas *quotas = store_elastic_quotas(store);
    const bool told =
        reader->numbered && (node->n_cards > 0 || node->n_pools > 0 || node->allocations->len > 0);
    const struct held_node held = {.number = told ? observer_number(store->observer) : 0};

    g_array_append_val(reader->nodes, held);
    for (guint i = 0; quotas && i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        const char *quota = held_quota(quotas, allocation->uid);
        g_ptr_array_add(reader->quotas, json_arena_dup(reader->arena, quota, strlen(quota) + 1));
    }
}

const GArray *ledger_reader_next(struct ledger_reader *reader)
{
    guint at = 0;

    g_array_set_size(reader->nodes, 0);
    g_ptr_array_set_size(reader->quotas, 0);
    json_arena_clear(reader->arena);
    const GPtrArray *images = node_images_next(reader->images, note_node, reader);
    for (guint i = 0; images && i < images->len; i++) {
        struct held_node *held = &g_array_index(reader->nodes, struct held_node, i);
        const struct node *node = node_image_node(g_ptr_array_index(images, i));
        held->name = node->name;
        held->pods =
            g_array_sized_new(FALSE, FALSE, sizeof(struct held_pod), node->allocations->len);
        for (guint j = 0; j < node->allocations->len; j++) {
            const struct held_pod pod = {
                .allocation = g_ptr_array_index(node->allocations, j),
                .quota = reader->quotas->len > 0 ? g_ptr_array_index(reader->quotas, at++) : NULL,
            };
            g_array_append_val(held->pods, pod);
        }
    }
    return images ? reader->nodes : NULL;
}
