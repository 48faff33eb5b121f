/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page of elastic-gpu-scheduler. Source of its shape: elastic-ai/elastic-gpu-scheduler
 * 09b010d, pkg/routes: a map of resource names to JSON once more, in strings.
 */
#include "core/bytes.h"
#include "inspect/views.h"
#include "store/node_walk.h"

#define HUNDREDTH (CORE_WHOLE / 100)

/* What is said of a card: compute in hundredths, memory in MiB. */
struct card_row {
    int64_t core_free, core;
    int64_t memory_free, memory;
};

struct node_row {
    char *name;
    const struct dialect *dialects[NODE_DIALECTS_MAX];
    int32_t n_dialects;
    int32_t n_cards;
    struct card_row *cards;
};

static void node_row_clear(gpointer data)
{
    struct node_row *row = data;
    g_free(row->name);
    g_free(row->cards);
}

static struct card_row card_row(const struct node *node, const struct card *card)
{
    bool open = card_is_open(card) && card->exclusive == 0;

    return (struct card_row){
        .core_free = open ? card_core_told(card, card_core_free(node, card)) / HUNDREDTH : 0,
        .core = card_core_told(card, card->core) / HUNDREDTH,
        .memory_free = open ? card_memory_free(node, card) / MIB : 0,
        .memory = card->memory / MIB,
    };
}

static void copy_row(const struct node *node, void *data)
{
    if (!node->present || node->n_cards == 0)
        return;
    struct node_row row = {
        .name = g_strdup(node->name),
        .n_dialects = node->n_dialects,
        .n_cards = node->n_cards,
        .cards = g_new(struct card_row, (gsize)node->n_cards),
    };
    for (int32_t k = 0; k < row.n_dialects; k++)
        row.dialects[k] = node->dialects[k];
    for (int32_t k = 0; k < row.n_cards; k++)
        row.cards[k] = card_row(node, &node->cards[k]);
    g_array_append_val((GArray *)data, row);
}

static bool offers(const struct node_row *row, const struct dialect *dialect)
{
    for (int32_t i = 0; i < row->n_dialects; i++) {
        if (row->dialects[i] == dialect)
            return true;
    }
    return false;
}

static void write_cards(struct json_writer *writer, const struct node_row *row)
{
    json_key_array(writer, row->name);
    for (int32_t i = 0; i < row->n_cards; i++) {
        json_begin_object(writer);
        json_key_int(writer, "CoreAvailable", row->cards[i].core_free);
        json_key_int(writer, "MemoryAvailable", row->cards[i].memory_free);
        json_key_int(writer, "CoreTotal", row->cards[i].core);
        json_key_int(writer, "MemoryTotal", row->cards[i].memory);
        json_end_object(writer);
    }
    json_end_array(writer);
}

/* NULL if no node offers it. */
static char *dialect_text(const GArray *rows, const struct dialect *dialect)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;
    bool offered = false;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    for (guint i = 0; i < rows->len; i++) {
        const struct node_row *row = &g_array_index(rows, struct node_row, i);
        if (!offers(row, dialect))
            continue;
        offered = true;
        write_cards(&writer, row);
    }
    json_end_object(&writer);
    return offered ? g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

void view_status(struct store *store, GString *reply)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct node_row));
    struct json_writer writer;

    g_array_set_clear_func(rows, node_row_clear);
    node_walk_all(store, copy_row, rows);
    json_writer_init(&writer, reply);
    json_begin_object(&writer);
    for (size_t i = 0; dialects[i]; i++) {
        g_autofree char *text = dialect_text(rows, dialects[i]);
        for (size_t k = 0; text && dialects[i]->resources[k]; k++)
            json_key_string(&writer, dialects[i]->resources[k], text);
    }
    json_end_object(&writer);
}
