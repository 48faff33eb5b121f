/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Columns for terminals, as kubectl prints them: aligned to the left, three spaces apart, no
 * space at the end of a line. One thread at a time.
 */
#include <glib.h>

struct table;

/* `n_columns` headings, borrowed, follow. */
struct table *table_new(size_t n_columns, const char *const *headings);
void table_free(struct table *table);

/* The next cell, row by row. */
void table_cell(struct table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Appends headings and the rows that are complete. */
void table_write(const struct table *table, GString *text);
