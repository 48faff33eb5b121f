/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one filter of what a person reads in a terminal or in the log. Tenants and nodes write some of it, and
 * must not steer a terminal, turn the order of letters, or make one line look like two. Any thread.
 */
#include <glib.h>
#include <stdbool.h>

/* Controls (C0, DEL, C1), those that turn the direction of writing, separators of lines and paragraphs. */
bool printable_steers(gunichar c);

/* One line of valid UTF-8, with '?' in place of each such character, line feeds and tabs included. Free with
 * g_free. */
char *printable_line(const char *text);

/* Appends one, formatted. Line feeds at both its ends stay. */
void printable_append(GString *text, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* JSON of the same meaning, with such characters as escapes. Free with g_free. */
char *printable_json(const char *json);
