/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "audit": what a running extender's last audit found, or what can be said of a cluster
 * without one.
 */
#include "audit/audit.h"
#include "base/printable.h"
#include "cmd/audit_answer.h"
#include "cmd/local.h"
#include "options/print.h"
#include "options/table.h"
#include "options/client_section.h"

#include <stdio.h>
#include <string.h>

#define STUCK_MS 60000

/* --- a cluster alone -------------------------------------------------------------------------- */

static const cJSON *look_at_cluster(struct json_arena *arena, const struct config *config,
                                    GError **error)
{
    struct local local;
    if (!local_open(config, &local, error))
        return NULL;
    g_autoptr(audit_report) report =
        audit_look(local.store, &(struct audit_options){.stuck_ms = STUCK_MS});
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;
    json_writer_init(&writer, text);
    audit_report_encode(&writer, report);
    local_close(&local);
    return json_parse(arena, text->str, text->len, error);
}

/* --- tables ----------------------------------------------------------------------------------- */

struct summary {
    bool compared;
    int64_t nodes, pods, differences, unchecked, omitted;
    const cJSON *causes, *rows;
};
static const struct json_field summary_fields[] = {
    JSON_FIELD_BOOL(struct summary, compared, "compared", 0),
    JSON_FIELD_INT64(struct summary, nodes, "nodes", 0),
    JSON_FIELD_INT64(struct summary, pods, "pods", 0),
    JSON_FIELD_INT64(struct summary, differences, "differences", JSON_REQUIRED),
    JSON_FIELD_INT64(struct summary, unchecked, "unchecked", 0),
    JSON_FIELD_INT64(struct summary, omitted, "omitted", 0),
    JSON_FIELD_ARRAY(struct summary, causes, "causes", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct summary, rows, "rows", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct cause_row {
    const char *cause, *text, *advice;
    int64_t count;
};
static const struct json_field cause_fields[] = {
    JSON_FIELD_STRING(struct cause_row, cause, "cause", JSON_REQUIRED),
    JSON_FIELD_STRING(struct cause_row, text, "text", JSON_REQUIRED),
    JSON_FIELD_STRING(struct cause_row, advice, "advice", JSON_REQUIRED),
    JSON_FIELD_INT64(struct cause_row, count, "count", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* "-" for what is not there. */
static void add_cell(struct table *table, const char *text)
{
    table_cell(table, "%s", text ? text : "-");
}

static bool add_cause(struct json_arena *arena, struct table *table, const cJSON *item, bool wide,
                      GError **error)
{
    struct cause_row cause = {0};
    if (!json_decode(arena, item, cause_fields, &cause, error))
        return false;
    if (cause.count == 0)
        return true;
    add_cell(table, cause.cause);
    table_tone(table, TONE_WRONG);
    table_cell(table, "%" G_GINT64_FORMAT, cause.count);
    add_cell(table, cause.text);
    if (wide)
        add_cell(table, cause.advice);
    return true;
}

static bool add_finding(struct json_arena *arena, struct table *table, const cJSON *item, bool wide,
                        GError **error)
{
    struct audit_answer_row row = {0};
    if (!json_decode(arena, item, audit_answer_fields, &row, error))
        return false;
    add_cell(table, row.cause);
    add_cell(table, row.ns);
    add_cell(table, row.name);
    add_cell(table, row.node);
    add_cell(table, row.cluster);
    add_cell(table, row.ledger);
    if (wide)
        add_cell(table, row.uid);
    return true;
}

struct listing {
    const char *headings[7];
    size_t n; /* one less unless it is wide */
    bool (*add)(struct json_arena *arena, struct table *table, const cJSON *item, bool wide,
                GError **error);
};
static const struct listing cause_listing = {
    {"CAUSE", "COUNT", "WHAT", "WHAT TO DO"}, 4, add_cause};
static const struct listing finding_listing = {
    {"CAUSE", "NAMESPACE", "POD", "NODE", "CLUSTER", "LEDGER", "UID"}, 7, add_finding};

static bool write_items(struct json_arena *arena, const cJSON *items, const struct listing *listing,
                        bool wide, GString *text, GError **error)
{
    struct table *table = table_new(wide ? listing->n : listing->n - 1, listing->headings);
    const cJSON *item;
    bool ok = true;
    cJSON_ArrayForEach (item, items)
        ok = ok && listing->add(arena, table, item, wide, error);
    if (ok)
        table_write(table, text);
    table_free(table);
    return ok;
}

static bool write_tables(struct json_arena *arena, const struct summary *summary, bool wide,
                         GString *text, GError **error)
{
    if (cJSON_GetArraySize(summary->rows) > 0) {
        if (!write_items(arena, summary->causes, &cause_listing, wide, text, error))
            return false;
        g_string_append_c(text, '\n');
        if (!write_items(arena, summary->rows, &finding_listing, wide, text, error))
            return false;
        g_string_append_c(text, '\n');
    }
    if (summary->omitted > 0)
        printable_append(text, "%" G_GINT64_FORMAT " more are not shown.\n", summary->omitted);
    if (summary->unchecked > 0)
        printable_append(text,
                         "%" G_GINT64_FORMAT " more pods seemed to differ, too many to be "
                         "asked about.\n",
                         summary->unchecked);
    printable_append(text,
                     "%" G_GINT64_FORMAT " differences; %" G_GINT64_FORMAT
                     " pods on %" G_GINT64_FORMAT " nodes %s.\n",
                     summary->differences, summary->pods, summary->nodes,
                     summary->compared ? "compared with the cluster"
                                       : "looked at, without a ledger to compare them with");
    return true;
}

/* --- the command ------------------------------------------------------------------------------ */

static bool print_report(struct json_arena *arena, const struct config *config,
                         const cJSON *document, int64_t *ret_differences, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct summary summary = {0};
    struct json_writer writer;
    if (!json_decode(arena, document, summary_fields, &summary, error))
        return false;
    json_writer_init(&writer, text);
    if (print_is_document(config))
        json_value(&writer, document);
    else if (!write_tables(arena, &summary, config_section(config, client)->output == OUTPUT_WIDE,
                           text, error))
        return false;
    print_answer(config, text, NULL);
    *ret_differences = summary.differences + summary.unchecked;
    return true;
}

enum exit_code audit_run(const struct config *config, const struct config_inputs *inputs)
{
    bool alone;
    if (!local_choose(config, &alone))
        return EXIT_USAGE;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    const cJSON *document = alone ? look_at_cluster(arena, config, &failure)
                                  : audit_answer_ask(arena, config, &failure);
    int64_t differences = 0;
    if (document && print_report(arena, config, document, &differences, &failure))
        return differences > 0 ? EXIT_DIFFERENT : EXIT_OK;
    return complain_of(failure);
}
