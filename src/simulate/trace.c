/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/trace.h"

#include "gang/gangs.h"

#include <gpuledger/error.h>
#include <gpuledger/ledger.h>
#include <gpuledger/request.h>
#include <string.h>

#define CPU_MILLI_MAX INT64_C(1000000000)
#define PRIORITY_MAX INT64_C(2000000000)
#define MEMORY_MIB_MAX (INT64_C(1) << 24)
/* What one pod may ask of a node at most: a share of each card. */
#define POD_CARDS_MAX REQUEST_ASKS_MAX

struct column {
    const char *name;
    const char *alias; /* another name for it, or NULL */
    bool optional;
    bool text;    /* const char *, else int64_t up to `max` */
    bool filled;  /* text that may not be empty */
    int64_t max;
    size_t offset;
};

static const struct column node_columns[] = {
    {.name = "sn", .alias = "name", .text = true, .filled = true,
     .offset = offsetof(struct trace_node, name)},
    {.name = "cpu_milli", .max = CPU_MILLI_MAX, .offset = offsetof(struct trace_node, cpu_milli)},
    {.name = "memory_mib", .max = MEMORY_MIB_MAX,
     .offset = offsetof(struct trace_node, memory_mib)},
    {.name = "gpu", .max = NODE_CARDS_MAX, .offset = offsetof(struct trace_node, cards)},
    {.name = "model", .optional = true, .text = true, .offset = offsetof(struct trace_node, model)},
};

static const struct column pod_columns[] = {
    {.name = "name", .text = true, .filled = true, .offset = offsetof(struct trace_pod, name)},
    {.name = "cpu_milli", .max = CPU_MILLI_MAX, .offset = offsetof(struct trace_pod, cpu_milli)},
    {.name = "memory_mib", .max = MEMORY_MIB_MAX, .offset = offsetof(struct trace_pod, memory_mib)},
    {.name = "num_gpu", .max = POD_CARDS_MAX, .offset = offsetof(struct trace_pod, cards)},
    {.name = "gpu_milli", .max = CORE_WHOLE, .offset = offsetof(struct trace_pod, card_milli)},
    {.name = "gpu_spec",
     .optional = true,
     .text = true,
     .offset = offsetof(struct trace_pod, models)},
    {.name = "priority_class",
     .optional = true,
     .text = true,
     .offset = offsetof(struct trace_pod, priority_class)},
    {.name = "priority",
     .optional = true,
     .max = PRIORITY_MAX,
     .offset = offsetof(struct trace_pod, priority)},
    {.name = "replica_of",
     .optional = true,
     .text = true,
     .offset = offsetof(struct trace_pod, replica_of)},
    {.name = "pod_group",
     .optional = true,
     .text = true,
     .offset = offsetof(struct trace_pod, group)},
    {.name = "pod_group_min",
     .optional = true,
     .max = GANG_MEMBERS_MAX,
     .offset = offsetof(struct trace_pod, group_min)},
};

/* What is being read. */
struct reading {
    struct trace *trace;
    const struct column *columns;
    size_t n_columns;
    const char *at, *end;
    unsigned line;                            /* from 1 */
    char *fields[TRACE_COLUMNS_MAX];          /* of the line */
    size_t n_fields;
    const struct column *by_field[TRACE_COLUMNS_MAX]; /* NULL: passed over */
    size_t n_named;                           /* fields that the first line has */
};

struct trace *trace_new(void)
{
    struct trace *trace = g_new0(struct trace, 1);

    trace->nodes = g_array_new(FALSE, TRUE, sizeof(struct trace_node));
    trace->pods = g_array_new(FALSE, TRUE, sizeof(struct trace_pod));
    trace->strings = g_string_chunk_new(1 << 16);
    return trace;
}

void trace_free(struct trace *trace)
{
    if (!trace)
        return;
    g_array_unref(trace->nodes);
    g_array_unref(trace->pods);
    g_string_chunk_free(trace->strings);
    g_free(trace);
}

/* `field` counts from 0; that of a column, or SIZE_MAX for the line as a whole. */
G_GNUC_PRINTF(4, 5)
static bool fail(const struct reading *reading, size_t field, GError **error, const char *format,
                 ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (field == SIZE_MAX)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "line %u: %s", reading->line,
                    why);
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "line %u, column %zu%s%s%s: %s",
                    reading->line, field + 1, reading->by_field[field] ? " (" : "",
                    reading->by_field[field] ? reading->by_field[field]->name : "",
                    reading->by_field[field] ? ")" : "", why);
    return false;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* One field, in place: quotes go, two of them inside quotes are one. Returns what ends it: ',' or
 * '\0'; or '"' where a quote stands that does not belong there. */
static char split_field(char **cursor, char **ret_field)
{
    char *from = *cursor, *to = from;
    bool quoted = *from == '"';

    *ret_field = from;
    from += quoted;
    for (; *from && (quoted || *from != ','); from++) {
        if (*from != '"') {
            *to++ = *from;
        } else if (!quoted) {
            return '"';
        } else if (from[1] == '"') {
            *to++ = *from++;
        } else {
            quoted = false;
            if (from[1] && from[1] != ',')
                return '"';
        }
    }
    const char end = quoted ? '"' : *from;
    *cursor = from + (*from == ',');
    *to = '\0';
    return end;
}

/* Reads the next line that is not empty into fields, which point into `line`; false at the end, or
 * with an error. */
static bool next_line(struct reading *reading, GString *line, GError **error)
{
    do {
        if (reading->at == reading->end)
            return false;
        const char *end = memchr(reading->at, '\n', (size_t)(reading->end - reading->at));
        const char *stop = end ? end : reading->end;
        g_string_truncate(line, 0);
        g_string_append_len(line, reading->at, stop - reading->at);
        if (line->len && line->str[line->len - 1] == '\r')
            g_string_truncate(line, line->len - 1);
        reading->at = end ? end + 1 : reading->end;
        reading->line++;
    } while (line->len == 0);
    if (strlen(line->str) != line->len || !g_utf8_validate(line->str, -1, NULL))
        return fail(reading, SIZE_MAX, error, "not text in UTF-8; is this a CSV file?");

    char *cursor = line->str, end;
    reading->n_fields = 0;
    do {
        if (reading->n_fields == TRACE_COLUMNS_MAX)
            return fail(reading, SIZE_MAX, error, "more than %d columns", TRACE_COLUMNS_MAX);
        end = split_field(&cursor, &reading->fields[reading->n_fields++]);
        if (end == '"')
            return fail(reading, reading->n_fields - 1, error,
                        "a quotation mark that is not closed, or not doubled inside quotes");
    } while (end == ',');
    return true;
}

/* --- columns ---------------------------------------------------------------------------------- */

static bool has_name(const struct column *column, const char *name)
{
    return g_str_equal(column->name, name) || g_strcmp0(column->alias, name) == 0;
}

static bool read_heading(struct reading *reading, GError **error)
{
    for (size_t i = 0; i < reading->n_fields; i++) {
        const char *name = g_strstrip(reading->fields[i]);
        for (size_t j = 0; j < reading->n_columns; j++) {
            if (!has_name(&reading->columns[j], name))
                continue;
            for (size_t k = 0; k < i; k++) {
                if (reading->by_field[k] == &reading->columns[j])
                    return fail(reading, i, error, "the column '%s' is there already", name);
            }
            reading->by_field[i] = &reading->columns[j];
        }
    }
    for (size_t j = 0; j < reading->n_columns; j++) {
        bool found = reading->columns[j].optional;
        for (size_t i = 0; i < reading->n_fields; i++)
            found |= reading->by_field[i] == &reading->columns[j];
        if (!found)
            return fail(reading, SIZE_MAX, error,
                        "there is no column '%s'; the first line must name the columns",
                        reading->columns[j].name);
    }
    reading->n_named = reading->n_fields;
    return true;
}

static bool read_field(const struct reading *reading, size_t field, void *row, GError **error)
{
    const struct column *column = reading->by_field[field];
    const char *text = g_strstrip(reading->fields[field]);
    void *member = (char *)row + column->offset;
    guint64 number;

    if (!column->text) {
        if (!g_ascii_string_to_unsigned(text, 10, 0, (guint64)column->max, &number, NULL))
            return fail(reading, field, error,
                        "'%.64s' is not a whole number from 0 to %" G_GINT64_FORMAT, text,
                        column->max);
        *(int64_t *)member = (int64_t)number;
        return true;
    }
    if (column->filled && !*text)
        return fail(reading, field, error, "is empty");
    if (strlen(text) > TRACE_TEXT_MAX)
        return fail(reading, field, error, "is longer than %d bytes", TRACE_TEXT_MAX);
    *(const char **)member = g_string_chunk_insert_const(reading->trace->strings, text);
    return true;
}

static bool read_row(const struct reading *reading, void *row, GError **error)
{
    if (reading->n_fields != reading->n_named)
        return fail(reading, SIZE_MAX, error, "%zu columns, the first line has %zu",
                    reading->n_fields, reading->n_named);
    for (size_t i = 0; i < reading->n_fields; i++) {
        if (reading->by_field[i] && !read_field(reading, i, row, error))
            return false;
    }
    return true;
}

static size_t field_of(const struct reading *reading, const char *name)
{
    size_t i = 0;

    while (!reading->by_field[i] || !has_name(reading->by_field[i], name))
        i++;
    return i;
}

/* --- the two files ---------------------------------------------------------------------------- */

static bool begin(struct reading *reading, GString *line, const char *text, size_t length,
                  GError **error)
{
    const bool marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    GError *failure = NULL;

    reading->at = text + (marked ? 3 : 0);
    reading->end = text + length;
    if (!next_line(reading, line, &failure)) {
        if (!failure)
            g_set_error(&failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "the file is empty");
        g_propagate_error(error, failure);
        return false;
    }
    return read_heading(reading, error);
}

bool trace_read_nodes(struct trace *trace, const char *text, size_t length, GError **error)
{
    struct reading reading = {
        .trace = trace, .columns = node_columns, .n_columns = G_N_ELEMENTS(node_columns)};
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    GError *failure = NULL;

    if (!begin(&reading, line, text, length, error))
        return false;
    while (next_line(&reading, line, &failure)) {
        struct trace_node node = {.model = ""};
        if (!read_row(&reading, &node, error))
            return false;
        if (!g_hash_table_add(names, (gpointer)node.name))
            return fail(&reading, field_of(&reading, "sn"), error,
                        "'%s' is the name of a node above", node.name);
        if (trace->nodes->len == TRACE_NODES_MAX)
            return fail(&reading, SIZE_MAX, error, "more than %d nodes", TRACE_NODES_MAX);
        g_array_append_val(trace->nodes, node);
    }
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}

/* All rows of a group say the same. */
static bool check_group(const struct reading *reading, GHashTable *groups,
                        const struct trace_pod *pod, GError **error)
{
    gpointer known;

    if (!*pod->group && pod->group_min == 0)
        return true;
    const size_t field = field_of(reading, pod->group_min ? "pod_group_min" : "pod_group");
    if (!*pod->group)
        return fail(reading, field, error, "the pod is in no pod_group");
    if (!g_hash_table_lookup_extended(groups, pod->group, NULL, &known))
        g_hash_table_insert(groups, (gpointer)pod->group, GINT_TO_POINTER((int)pod->group_min));
    else if (GPOINTER_TO_INT(known) != pod->group_min)
        return fail(reading, field, error, "another pod of '%s' above says that it needs %d",
                    pod->group, GPOINTER_TO_INT(known));
    return true;
}

bool trace_read_pods(struct trace *trace, const char *text, size_t length, GError **error)
{
    struct reading reading = {
        .trace = trace, .columns = pod_columns, .n_columns = G_N_ELEMENTS(pod_columns)};
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GHashTable) groups = g_hash_table_new(g_str_hash, g_str_equal);
    GError *failure = NULL;

    if (!begin(&reading, line, text, length, error))
        return false;
    while (next_line(&reading, line, &failure)) {
        struct trace_pod pod = {.models = "", .priority_class = "", .replica_of = "", .group = ""};
        if (!read_row(&reading, &pod, error))
            return false;
        if (!check_group(&reading, groups, &pod, error))
            return false;
        const size_t milli = field_of(&reading, "gpu_milli");
        if (pod.cards > 1 && pod.card_milli != CORE_WHOLE)
            return fail(&reading, milli, error,
                        "is %" G_GINT64_FORMAT "; several cards go as a whole, 1000 of each",
                        pod.card_milli);
        if (pod.cards == 1 && (pod.card_milli == 0 || pod.card_milli % 10))
            return fail(&reading, milli, error,
                        "is %" G_GINT64_FORMAT
                        "; a share of a card must be 10 to 1000, a multiple of 10",
                        pod.card_milli);
        if (trace->pods->len == TRACE_ROWS_MAX)
            return fail(&reading, SIZE_MAX, error, "more than %d pods", TRACE_ROWS_MAX);
        g_array_append_val(trace->pods, pod);
    }
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}
