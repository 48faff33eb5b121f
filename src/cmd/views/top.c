/* SPDX-License-Identifier: Apache-2.0 */
/* The command "top": who has most of the GPUs, and what is left. */
#include "cmd/views/listing.h"
#include "base/printable.h"
#include "inspect/views.h"
#include "json/json.h"

#include <string.h>

#define WIDE_BAR 60
#define BAR 20
#define MISSING (-1)

/* Of the cluster, or of a row, as /api/v1/usage has them; MISSING where it has none. */
struct amounts {
    int64_t size, used, usable, useless, out, memory, pods, waiting;
    const char *name, *oldest, *created;
};
static const struct json_field amount_fields[] = {
    JSON_FIELD_STRING(struct amounts, name, "name", 0),
    JSON_FIELD_INT64(struct amounts, size, "gpuThousandths", 0),
    JSON_FIELD_INT64(struct amounts, used, "usedGpuThousandths", JSON_REQUIRED),
    JSON_FIELD_INT64(struct amounts, usable, "usableGpuThousandths", 0),
    JSON_FIELD_INT64(struct amounts, useless, "uselessGpuThousandths", 0),
    JSON_FIELD_INT64(struct amounts, out, "outOfServiceGpuThousandths", 0),
    JSON_FIELD_INT64(struct amounts, memory, "memoryUsedBytes", 0),
    JSON_FIELD_INT64(struct amounts, pods, "pods", 0),
    JSON_FIELD_INT64(struct amounts, waiting, "waiting", 0),
    JSON_FIELD_STRING(struct amounts, oldest, "oldestWaiting", 0),
    JSON_FIELD_STRING(struct amounts, created, "oldestCreated", 0),
    JSON_FIELD_END,
};

struct answer {
    const cJSON *cluster, *rows;
    int64_t total;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD_OBJECT(struct answer, cluster, "cluster", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct answer, rows, "rows", JSON_REQUIRED),
    JSON_FIELD_INT64(struct answer, total, "total", 0),
    JSON_FIELD_END,
};

static bool read_amounts(struct json_arena *arena, const cJSON *item, struct amounts *ret_amounts,
                         GError **error)
{
    *ret_amounts = (struct amounts){.size = MISSING, .pods = MISSING, .waiting = MISSING};
    return json_decode(arena, item, amount_fields, ret_amounts, error);
}

static bool read_answer(struct json_arena *arena, const GString *body, struct answer *ret_answer,
                        struct amounts *ret_cluster, GError **error)
{
    const cJSON *document = json_parse(arena, body->str, body->len, error);

    return document && json_decode(arena, document, answer_fields, ret_answer, error) &&
           read_amounts(arena, ret_answer->cluster, ret_cluster, error);
}

/* --- bars ------------------------------------------------------------------------------------- */

static double cards(int64_t thousandths)
{
    return (double)thousandths / 1000;
}

static int percent(int64_t of, int64_t whole)
{
    return whole > 0 ? (int)((of * 100 + whole / 2) / whole) : 0;
}

static void append_run(GString *bar, char letter, int64_t until, int64_t whole, size_t width)
{
    const size_t end = whole > 0 ? (size_t)((until * (int64_t)width + whole / 2) / whole) : 0;

    while (bar->len < end)
        g_string_append_c(bar, letter);
}

/* "[####..~~xx]": handed out, free, of no use, out of service. */
static char *draw(const struct amounts *amounts, int64_t whole, size_t width)
{
    GString *bar = g_string_new(NULL);

    append_run(bar, '#', amounts->used, whole, width);
    if (amounts->size != MISSING) {
        append_run(bar, '.', amounts->used + amounts->usable, whole, width);
        append_run(bar, '~', whole - amounts->out, whole, width);
        append_run(bar, 'x', whole, whole, width);
    }
    append_run(bar, ' ', 1, 1, width);
    g_string_truncate(bar, width);
    g_string_prepend_c(bar, '[');
    g_string_append_c(bar, ']');
    return g_string_free(bar, FALSE);
}

/* --- the cluster ------------------------------------------------------------------------------ */

static bool write_summary(const struct config *config, const GString *body, GString *text,
                          GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct answer answer = {0};
    struct amounts all;

    if (!read_answer(arena, body, &answer, &all, error))
        return false;
    static const char *const headings[] = {"GPUS",           "USED", "FREE",   "USELESS",
                                           "OUT OF SERVICE", "PODS", "WAITING"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);
    g_autofree char *bar = draw(&all, all.size, WIDE_BAR);
    table_cell(table, "%.2f", cards(all.size));
    table_cell(table, "%.2f (%d %%)", cards(all.used), percent(all.used, all.size));
    table_cell(table, "%.2f", cards(all.usable));
    table_tone(table, all.usable > 0 ? TONE_GOOD : TONE_CARE);
    table_cell(table, "%.2f", cards(all.useless));
    table_tone(table, all.useless > 0 ? TONE_CARE : TONE_PLAIN);
    table_cell(table, "%.2f", cards(all.out));
    table_tone(table, all.out > 0 ? TONE_WRONG : TONE_PLAIN);
    table_cell(table, "%" G_GINT64_FORMAT, all.pods);
    table_cell(table, all.oldest ? "%" G_GINT64_FORMAT ", %s since %s" : "%" G_GINT64_FORMAT,
               all.waiting, all.oldest, all.created);
    table_tone(table, all.waiting > 0 ? TONE_CARE : TONE_PLAIN);
    table_write(table, text);
    table_free(table);
    printable_append(text, "%s\n\n", bar);
    return true;
}

/* --- the rows --------------------------------------------------------------------------------- */

static const char *by(const struct config *config)
{
    return config->words->len ? config->words->pdata[0] : usage_names[USAGE_NAMESPACES];
}

static void write_memory(struct table *table, int64_t bytes)
{
    g_autofree char *text = g_format_size_full((guint64)bytes, G_FORMAT_SIZE_IEC_UNITS);

    table_cell(table, "%s", bytes > 0 ? text : "-");
}

static void write_device_row(struct table *table, const struct amounts *row)
{
    g_autofree char *bar = draw(row, row->size, BAR);

    table_cell(table, "%.2f", cards(row->size));
    table_cell(table, "%.2f", cards(row->used));
    table_cell(table, "%s %d %%", bar, percent(row->used, row->size));
    table_cell(table, "%.2f", cards(row->usable));
    table_cell(table, "%.2f", cards(row->useless));
    table_tone(table, row->useless > 0 ? TONE_CARE : TONE_PLAIN);
    table_cell(table, "%.2f", cards(row->out));
    table_tone(table, row->out > 0 ? TONE_WRONG : TONE_PLAIN);
    if (row->pods != MISSING)
        table_cell(table, "%" G_GINT64_FORMAT, row->pods);
}

static void write_tenant_row(struct table *table, const struct amounts *row, int64_t whole)
{
    g_autofree char *bar = draw(row, whole, BAR);

    table_cell(table, "%.2f", cards(row->used));
    table_cell(table, "%s %d %%", bar, percent(row->used, whole));
    write_memory(table, row->memory);
    table_cell(table, "%" G_GINT64_FORMAT, row->pods);
    table_cell(table, "%" G_GINT64_FORMAT, row->waiting);
    table_tone(table, row->waiting > 0 ? TONE_CARE : TONE_PLAIN);
}

static struct table *make_rows(const struct config *config, const GString *body, GError **error)
{
    static const char *const tenants[] = {"NAMESPACE", "GPUS", "SHARE",
                                          "MEMORY",    "PODS", "WAITING"};
    static const char *const nodes[] = {"NODE", "GPUS",    "USED",           "SHARE",
                                        "FREE", "USELESS", "OUT OF SERVICE", "PODS"};
    static const char *const models[] = {"MODEL", "GPUS",    "USED",          "SHARE",
                                         "FREE",  "USELESS", "OUT OF SERVICE"};
    g_autoptr(json_arena) arena = json_arena_new();
    struct answer answer = {0};
    struct amounts all, row;
    struct table *table;
    const cJSON *item;

    if (!read_answer(arena, body, &answer, &all, error))
        return NULL;
    const bool of_tenants = g_str_equal(by(config), usage_names[USAGE_NAMESPACES]);
    if (of_tenants)
        table = table_new(G_N_ELEMENTS(tenants), tenants);
    else if (g_str_equal(by(config), usage_names[USAGE_NODES]))
        table = table_new(G_N_ELEMENTS(nodes), nodes);
    else
        table = table_new(G_N_ELEMENTS(models), models);
    cJSON_ArrayForEach (item, answer.rows) {
        if (!read_amounts(arena, item, &row, error)) {
            table_free(table);
            return NULL;
        }
        table_cell(table, "%s", row.name ? row.name : "?");
        if (of_tenants)
            write_tenant_row(table, &row, all.size);
        else
            write_device_row(table, &row);
    }
    return table;
}

static void view(struct store *store, const struct config *config, GString *reply)
{
    enum usage_by chosen = USAGE_NAMESPACES;

    while (usage_names[chosen + 1] && !g_str_equal(by(config), usage_names[chosen]))
        chosen++;
    view_usage(store, chosen, reply);
}

enum exit_code top_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autofree char *path = g_strconcat("/api/v1/usage?by=", by(config), NULL);
    const struct listing listing = {
        .make_rows = make_rows,
        .write_summary = write_summary,
        .path = path,
        .view = view,
    };

    return listing_run(config, NULL, &listing);
}
