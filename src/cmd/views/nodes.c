/* SPDX-License-Identifier: Apache-2.0 */
/* The commands "nodes" and "inspect": the ledger as tables. */
#include "cmd/views/listing.h"
#include "base/printable.h"
#include "cmd/local.h"
#include "core/bytes.h"
#include "options/print.h"
#include "options/table.h"
#include "json/json.h"
#include "options/client_section.h"

/* As the server's /api/v1/nodes has them. */
struct node_row {
    const char *name;
    bool present;
    int64_t memory_unit, unplaced, fragmented;
    const cJSON *dialects, *cards, *pools, *pods;
};
static const struct json_field node_fields[] = {
    JSON_FIELD_STRING(struct node_row, name, "name", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct node_row, dialects, "dialects", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct node_row, present, "present", 0),
    JSON_FIELD_INT64(struct node_row, memory_unit, "memoryUnitBytes", 0),
    JSON_FIELD_INT64(struct node_row, unplaced, "unplacedMemoryBytes", 0),
    JSON_FIELD_INT64(struct node_row, fragmented, "fragmentedGpuThousandths", 0),
    JSON_FIELD_ARRAY(struct node_row, cards, "cards", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct node_row, pools, "pools", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct node_row, pods, "pods", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct card_row {
    bool healthy, closed;
    int64_t memory, used, left;
};
static const struct json_field card_fields[] = {
    JSON_FIELD_BOOL(struct card_row, healthy, "healthy", 0),
    JSON_FIELD_BOOL(struct card_row, closed, "closed", 0),
    JSON_FIELD_INT64(struct card_row, memory, "memoryBytes", 0),
    JSON_FIELD_INT64(struct card_row, used, "memoryUsedBytes", 0),
    JSON_FIELD_INT64(struct card_row, left, "memoryFreeBytes", 0),
    JSON_FIELD_END,
};

struct pool_row {
    const char *resource;
    int64_t capacity, used;
};
static const struct json_field pool_fields[] = {
    JSON_FIELD_STRING(struct pool_row, resource, "resource", JSON_REQUIRED),
    JSON_FIELD_INT64(struct pool_row, capacity, "capacity", 0),
    JSON_FIELD_INT64(struct pool_row, used, "used", 0),
    JSON_FIELD_END,
};

/* Amounts in what the node counts in, so that they compare with what pods ask for. */
static int64_t in_units(const struct node_row *node, int64_t bytes)
{
    return bytes / (node->memory_unit == MIB ? MIB : GIB);
}

static const char *unit_name(const struct node_row *node)
{
    return node->memory_unit == MIB ? "MiB" : "GiB";
}

static const char *const headings[] = {"NAME", "CARDS (USED/TOTAL)", "FREE",    "LARGEST FREE",
                                       "PODS", "UNPLACED",           "USELESS", "DIALECTS"};
#define COLUMNS_NARROW 4

/* What the cards have, and what is left of those that may take pods. */
struct card_sums {
    GString *text;
    int64_t left, largest;
    bool closed; /* one of them */
};

static bool add_cards(struct json_arena *arena, const struct node_row *node, struct card_sums *sums,
                      GError **error)
{
    const cJSON *element;

    cJSON_ArrayForEach (element, node->cards) {
        struct card_row card = {0};
        if (!json_decode(arena, element, card_fields, &card, error))
            return false;
        printable_append(sums->text, "%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "%s ",
                         in_units(node, card.used), in_units(node, card.memory),
                         card.healthy && !card.closed ? "" : "!");
        if (card.healthy && !card.closed) {
            sums->left += card.left;
            sums->largest = MAX(sums->largest, card.left);
        }
        sums->closed = sums->closed || !card.healthy || card.closed;
    }
    if (node->cards->child)
        g_string_append(sums->text, unit_name(node));
    return true;
}

static bool add_pools(struct json_arena *arena, const struct node_row *node, GString *text,
                      GError **error)
{
    const cJSON *element;

    cJSON_ArrayForEach (element, node->pools) {
        struct pool_row pool = {0};
        if (!json_decode(arena, element, pool_fields, &pool, error))
            return false;
        printable_append(text, "%s%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT " %s",
                         text->len ? ", " : "", pool.used, pool.capacity, pool.resource);
    }
    return true;
}

static void add_memory_cell(struct table *table, const struct node_row *node, int64_t bytes)
{
    if (node->cards->child)
        table_cell(table, "%" G_GINT64_FORMAT " %s", in_units(node, bytes), unit_name(node));
    else
        table_cell(table, "-");
}

static void add_dialects_cell(struct table *table, const struct node_row *node)
{
    g_autoptr(GString) names = g_string_new(NULL);
    const cJSON *name;

    cJSON_ArrayForEach (name, node->dialects) {
        if (cJSON_IsString(name))
            printable_append(names, "%s%s", names->len ? "," : "", name->valuestring);
    }
    table_cell(table, "%s", names->len ? names->str : "none");
}

static bool add_node(struct json_arena *arena, struct table *table, const cJSON *item, bool wide,
                     GError **error)
{
    struct node_row node = {0};
    g_autoptr(GString) text = g_string_new(NULL);
    struct card_sums sums = {.text = text};

    if (!json_decode(arena, item, node_fields, &node, error) ||
        !add_cards(arena, &node, &sums, error) || !add_pools(arena, &node, text, error))
        return false;
    table_cell(table, "%s%s", node.name, node.present ? "" : " (gone)");
    table_tone(table, node.present ? TONE_PLAIN : TONE_WRONG);
    table_cell(table, "%s", text->len ? text->str : "-");
    table_tone(table, sums.closed ? TONE_CARE : TONE_PLAIN);
    add_memory_cell(table, &node, sums.left);
    add_memory_cell(table, &node, sums.largest);
    if (wide) {
        table_cell(table, "%d", cJSON_GetArraySize(node.pods));
        table_cell(table, "%" G_GINT64_FORMAT " %s", in_units(&node, node.unplaced),
                   unit_name(&node));
        table_cell(table, "%.2f GPU", (double)node.fragmented / 1000);
        add_dialects_cell(table, &node);
    }
    return true;
}

/* The answer to a question about all nodes has a list, the one about one node is that node. */
static struct table *make_rows(bool wide, const GString *body, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, error);
    if (!document)
        return NULL;
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(document, "nodes");
    struct table *table = table_new(wide ? G_N_ELEMENTS(headings) : COLUMNS_NARROW, headings);
    bool ok = true;
    if (nodes) {
        const cJSON *item;
        cJSON_ArrayForEach (item, nodes)
            ok = ok && add_node(arena, table, item, wide, error);
    } else {
        ok = add_node(arena, table, document, wide, error);
    }
    if (!ok)
        g_clear_pointer(&table, table_free);
    return table;
}

bool nodes_write(const GString *body, bool wide, GString *text, GError **error)
{
    struct table *table = make_rows(wide, body, error);
    if (!table)
        return false;
    table_write(table, text);
    table_free(table);
    return true;
}

static struct table *make_node_rows(const struct config *config, const GString *body,
                                    GError **error)
{
    return make_rows(config_section(config, client)->output == OUTPUT_WIDE, body, error);
}

enum exit_code nodes_run(const struct config *config, const struct config_inputs *inputs)
{
    const char *node = config->words->len ? config->words->pdata[0] : NULL;
    const struct listing listing = {
        .make_rows = make_node_rows,
        .names = node ? "node/{.name}" : "{range .nodes[*]}node/{.name}{'\\n'}{end}",
    };

    return listing_run(config, node, &listing);
}

enum exit_code inspect_run(const struct config *config, const struct config_inputs *inputs)
{
    struct node_query query = {
        .node = config->words->len ? config->words->pdata[0] : NULL,
        .table = !print_is_document(config),
    };
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    bool local;

    if (!local_choose(config, &local))
        return EXIT_USAGE;
    g_autoptr(client) client = local ? NULL : client_open(config, &failure);
    query.client = client;
    if (!failure)
        node_query_ask(config, &query, body, &failure);
    return print_answer(config, body, failure);
}
