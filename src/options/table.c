/* SPDX-License-Identifier: Apache-2.0 */
#include "options/table.h"

#define GAP 3

struct table {
    size_t n_columns;
    GPtrArray *cells; /* char *, headings first */
};

struct table *table_new(size_t n_columns, const char *const *headings)
{
    struct table *table = g_new0(struct table, 1);
    table->n_columns = n_columns;
    table->cells = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < n_columns; i++)
        g_ptr_array_add(table->cells, g_strdup(headings[i]));
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    g_ptr_array_unref(table->cells);
    g_free(table);
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(table->cells, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->cells->len; i += table->n_columns)
        width = MAX(width, (size_t)g_utf8_strlen(table->cells->pdata[i], -1));
    return width;
}

void table_write(const struct table *table, GString *text)
{
    g_autofree size_t *widths = g_new(size_t, table->n_columns);
    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = column_width(table, i);
    for (size_t i = 0; i + table->n_columns <= table->cells->len; i += table->n_columns) {
        size_t owed = 0; /* spaces that come only if something follows them */
        for (size_t j = 0; j < table->n_columns; j++) {
            const char *cell = table->cells->pdata[i + j];
            if (*cell) {
                g_string_append_printf(text, "%*s%s", (int)owed, "", cell);
                owed = 0;
            }
            owed += widths[j] - (size_t)g_utf8_strlen(cell, -1) + GAP;
        }
        g_string_append_c(text, '\n');
    }
}
