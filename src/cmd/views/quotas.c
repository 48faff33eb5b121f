/* SPDX-License-Identifier: Apache-2.0 */
/* The command "quotas": what namespaces may have, have, lend and borrow. */
#include "cmd/views/listing.h"
#include "inspect/views.h"
#include "json/json.h"

#include <string.h>

#define GIB ((double)(1 << 30))
#define MEMORY "gpuledger.io/gpu-memory"

/* As /api/v1/quotas has them. */
struct answer {
    const cJSON *quotas, *elastic;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD_ARRAY(struct answer, quotas, "quotas", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct answer, elastic, "elastic", 0),
    JSON_FIELD_END,
};

struct quota_row {
    const char *ns, *key, *unit;
    int64_t limit, used;
};
static const struct json_field quota_fields[] = {
    JSON_FIELD_STRING(struct quota_row, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct quota_row, key, "key", JSON_REQUIRED),
    JSON_FIELD_STRING(struct quota_row, unit, "unit", JSON_REQUIRED),
    JSON_FIELD_INT64(struct quota_row, limit, "limit", JSON_REQUIRED),
    JSON_FIELD_INT64(struct quota_row, used, "used", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* The last one only where a quota is in a tree. */
static const char *const headings[] = {"NAMESPACE", "RESOURCE", "MIN",     "MAX",   "USED",
                                       "LENT",      "BORROWED", "WAITING", "PARENT"};

/* "-" where the number is missing. */
static void write_number(struct table *table, const cJSON *row, const char *name, bool bytes)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(row, name);

    if (!cJSON_IsNumber(number))
        table_cell(table, "-");
    else if (bytes)
        table_cell(table, "%.4gGi", number->valuedouble / GIB);
    else
        table_cell(table, "%.4g", number->valuedouble);
}

static const char *get_text(const cJSON *row, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));
}

static void write_parent(struct table *table, const cJSON *row)
{
    const char *parent = get_text(row, "parent"), *tree = get_text(row, "tree");
    const char *fault = get_text(row, "fault");
    g_autofree char *words =
        g_strconcat(tree ? tree : "", tree ? ":" : "", parent ? parent : "-", fault ? " (" : "",
                    fault ? fault : "", fault ? ")" : "", NULL);

    table_cell(table, "%s", words);
}

static void write_elastic(struct table *table, const cJSON *row, bool trees)
{
    static const char *const numbers[] = {"min", "max", "used", "lent", "borrowed", "waiting"};
    const char *ns = get_text(row, "namespace"), *key = get_text(row, "key");
    const char *quota = get_text(row, "quota");

    table_cell(table, "%s%s%s", ns ? ns : "?", quota ? "/" : "", quota ? quota : "");
    table_cell(table, "%s", key ? key : "?");
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        write_number(table, row, numbers[i], g_strcmp0(key, MEMORY) == 0);
    if (trees)
        write_parent(table, row);
}

static bool has_trees(const cJSON *elastic)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, elastic) {
        if (get_text(item, "quota") || get_text(item, "fault"))
            return true;
    }
    return false;
}

/* A fixed limit: it lends nothing. */
static bool write_fixed(struct table *table, struct json_arena *arena, const cJSON *item,
                        bool trees, GError **error)
{
    struct quota_row row = {0};

    if (!json_decode(arena, item, quota_fields, &row, error))
        return false;
    const double unit = g_str_equal(row.unit, "thousandths") ? 1000 : 1;
    table_cell(table, "%s", row.ns);
    table_cell(table, "%s", row.key);
    table_cell(table, "-");
    table_cell(table, "%.4g", (double)row.limit / unit);
    table_cell(table, "%.4g", (double)row.used / unit);
    for (int i = 0; i < (trees ? 4 : 3); i++)
        table_cell(table, "-");
    return true;
}

static struct table *make_rows(const struct config *config, const GString *body, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, error), *item;
    struct answer answer = {0};

    if (!document || !json_decode(arena, document, answer_fields, &answer, error))
        return NULL;
    const bool trees = has_trees(answer.elastic);
    struct table *table = table_new(G_N_ELEMENTS(headings) - !trees, headings);
    cJSON_ArrayForEach (item, answer.elastic)
        write_elastic(table, item, trees);
    cJSON_ArrayForEach (item, answer.quotas) {
        if (!write_fixed(table, arena, item, trees, error)) {
            table_free(table);
            return NULL;
        }
    }
    return table;
}

static void view(struct store *store, const struct config *config, GString *reply)
{
    view_quotas(store, reply);
}

enum exit_code quotas_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct listing listing = {
        .make_rows = make_rows,
        .path = "/api/v1/quotas",
        .view = view,
    };

    return listing_run(config, NULL, &listing);
}
