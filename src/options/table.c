/* SPDX-License-Identifier: Apache-2.0 */
#include "options/table.h"

#include "core/fail.h"
#include "base/printable.h"

#include <string.h>

#define GAP 3

struct cell {
    char *text;
    enum tone tone;
};

struct table {
    size_t n_columns;
    GArray *cells; /* struct cell, headings first */
};

/* Select Graphic Rendition (ECMA-48, 8.3.117): what every terminal knows. */
static const char *const tones[] = {
    [TONE_HEADING] = "1",
    [TONE_GOOD] = "32",
    [TONE_CARE] = "33",
    [TONE_WRONG] = "31",
};

static bool painted;

static void cell_clear(gpointer data)
{
    g_free(((struct cell *)data)->text);
}

static void add_cell(struct table *table, char *text, enum tone tone)
{
    const struct cell cell = {text, tone};

    g_array_append_val(table->cells, cell);
}

static const struct cell *cell_at(const struct table *table, size_t i)
{
    return &g_array_index(table->cells, struct cell, i);
}

struct table *table_new(size_t n_columns, const char *const *headings)
{
    struct table *table = g_new0(struct table, 1);
    table->n_columns = n_columns;
    table->cells = g_array_new(FALSE, FALSE, sizeof(struct cell));
    g_array_set_clear_func(table->cells, cell_clear);
    for (size_t i = 0; i < n_columns; i++)
        add_cell(table, g_strdup(headings[i]), TONE_HEADING);
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    g_array_unref(table->cells);
    g_free(table);
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    add_cell(table, printable_line(text), TONE_PLAIN);
}

void table_tone(struct table *table, enum tone tone)
{
    g_array_index(table->cells, struct cell, table->cells->len - 1).tone = tone;
}

void tables_paint(bool colours)
{
    painted = colours;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->cells->len; i += table->n_columns)
        width = MAX(width, (size_t)g_utf8_strlen(cell_at(table, i)->text, -1));
    return width;
}

static void append_row(const struct table *table, const size_t *widths, size_t first, GString *text)
{
    size_t owed = 0; /* spaces that come only if something follows them */

    for (size_t i = 0; i < table->n_columns; i++) {
        const struct cell *cell = cell_at(table, first + i);
        if (*cell->text) {
            g_string_append_printf(text, "%*s", (int)owed, "");
            if (painted && cell->tone != TONE_PLAIN)
                g_string_append_printf(text, "\033[%sm%s\033[0m", tones[cell->tone], cell->text);
            else
                g_string_append(text, cell->text);
            owed = 0;
        }
        owed += widths[i] - (size_t)g_utf8_strlen(cell->text, -1) + GAP;
    }
    g_string_append_c(text, '\n');
}

static size_t *column_widths(const struct table *table)
{
    size_t *widths = g_new(size_t, table->n_columns);

    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = column_width(table, i);
    return widths;
}

void table_write(const struct table *table, GString *text)
{
    g_autofree size_t *widths = column_widths(table);

    for (size_t i = 0; i + table->n_columns <= table->cells->len; i += table->n_columns)
        append_row(table, widths, i, text);
}

void table_write_new(const struct table *table, GHashTable *seen, GString *text)
{
    g_autofree size_t *widths = column_widths(table);
    g_autoptr(GHashTable) now = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    void *row;

    for (size_t i = 0; i + table->n_columns <= table->cells->len; i += table->n_columns) {
        g_autoptr(GString) cells = g_string_new(NULL);
        for (size_t j = 0; j < table->n_columns; j++)
            g_string_append_printf(cells, "%s\t", cell_at(table, i + j)->text);
        if (!g_hash_table_contains(seen, cells->str))
            append_row(table, widths, i, text);
        g_hash_table_add(now, g_strdup(cells->str));
    }
    g_hash_table_remove_all(seen);
    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &row, NULL))
        g_hash_table_add(seen, g_strdup(row));
}

/* --- sorting -------------------------------------------------------------------------------- */

struct order {
    size_t column;
    bool backwards;
};

/* "12", "3.5 GPU", "14356 MiB": false for what is no amount. */
static bool read_amount(const char *cell, double *ret_amount)
{
    static const char units[] = "KMGT";
    char *end;

    *ret_amount = g_ascii_strtod(cell, &end);
    const char *unit = *end == ' ' ? end + 1 : end;
    const char *known = *unit ? strchr(units, *unit) : NULL;
    for (ptrdiff_t i = 0; known && g_str_has_prefix(unit + 1, "iB") && i <= known - units; i++)
        *ret_amount *= 1024;
    return end != cell;
}

static int compare_cells(const char *a, const char *b)
{
    double x = 0, y = 0;
    const bool one = read_amount(a, &x), other = read_amount(b, &y);

    if (one != other)
        return one ? 1 : -1;
    return x != y ? (x < y ? -1 : 1) : g_utf8_collate(a, b);
}

static int compare_rows(const void *a, const void *b, void *data)
{
    const struct order *order = data;
    const struct cell *left = a, *right = b;
    const int compared = compare_cells(left[order->column].text, right[order->column].text);

    return order->backwards ? -compared : compared;
}

static bool find_column(const struct table *table, const char *heading, size_t *ret_column,
                        GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = cell_at(table, i)->text;
        if (g_ascii_strcasecmp(name, heading) == 0) {
            *ret_column = i;
            return true;
        }
        g_string_append_printf(names, "%s'%s'", i ? ", " : "", name);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "option '--sort-by': there is no column '%s'; there are %s", heading,
                     names->str);
}

bool table_sort(struct table *table, const char *heading, GError **error)
{
    struct order order = {.backwards = *heading == '-'};
    const size_t n = table->n_columns, n_rows = table->cells->len / n;

    if (!find_column(table, heading + order.backwards, &order.column, error))
        return false;
    if (n_rows > 1)
        g_qsort_with_data(&g_array_index(table->cells, struct cell, n), (int)n_rows - 1,
                          n * sizeof(struct cell), compare_rows, &order);
    return true;
}
