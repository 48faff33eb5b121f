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

static const char *const headings[] = {"NAMESPACE", "RESOURCE", "MIN",      "MAX",
                                       "USED",      "LENT",     "BORROWED", "WAITING"};

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

static void write_elastic(struct table *table, const cJSON *row)
{
    static const char *const numbers[] = {"min", "max", "used", "lent", "borrowed", "waiting"};
    const char *ns = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "namespace"));
    const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "key"));

    table_cell(table, "%s", ns ? ns : "?");
    table_cell(table, "%s", key ? key : "?");
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        write_number(table, row, numbers[i], g_strcmp0(key, MEMORY) == 0);
}

/* A fixed limit: it lends nothing. */
static bool write_fixed(struct table *table, struct json_arena *arena, const cJSON *item,
                        GError **error)
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
    for (int i = 0; i < 3; i++)
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
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);
    cJSON_ArrayForEach (item, answer.elastic)
        write_elastic(table, item);
    cJSON_ArrayForEach (item, answer.quotas) {
        if (!write_fixed(table, arena, item, error)) {
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
