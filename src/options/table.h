/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Columns for terminals, as kubectl prints them: aligned to the left, three spaces apart, no
 * space at the end of a line. One thread at a time.
 */
#include <glib.h>
#include <stdbool.h>

struct table;

/* `n_columns` headings, borrowed, follow. */
struct table *table_new(size_t n_columns, const char *const *headings);
void table_free(struct table *table);

/* The next cell, row by row. */
void table_cell(struct table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* How a cell looks in colours. Whoever prints none loses no word by it. */
enum tone {
    TONE_PLAIN,
    TONE_HEADING,
    TONE_GOOD,
    TONE_CARE,  /* look at it */
    TONE_WRONG, /* do something */
};
/* Of the last cell. */
void table_tone(struct table *table, enum tone tone);
/* Whether tables are written in colours, as terminals understand them: said once, before the first. */
void tables_paint(bool colours);

/* Sorts the rows by the column of that heading, in any case of letters; '-' before it: backwards. Cells
 * that begin with numbers go by these. False: there is no such column; the error names those there are. */
bool table_sort(struct table *table, const char *heading, GError **error);

/* Appends the rows, headings among them, whose texts `seen` does not have, and leaves it with those of
 * now. `seen` owns its texts (g_hash_table_new_full with g_str_hash, g_str_equal and g_free). */
void table_write_new(const struct table *table, GHashTable *seen, GString *text);

/* Appends headings and the rows that are complete. */
void table_write(const struct table *table, GString *text);
