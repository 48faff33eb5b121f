/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <string.h>

bool printable_steers(gunichar c)
{
    return g_unichar_iscntrl(c) ||         /* C0, DEL, C1 */
           c == 0x061c ||                  /* Arabic letter mark */
           c == 0x200e || c == 0x200f ||   /* left-to-right, right-to-left mark */
           (c >= 0x2028 && c <= 0x202e) || /* separators; embeddings and overrides */
           (c >= 0x2066 && c <= 0x2069);   /* isolates */
}

static void append_line(GString *text, const char *from, const char *end)
{
    g_autofree char *valid = g_utf8_make_valid(from, end - from);

    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        if (printable_steers(g_utf8_get_char(at)))
            g_string_append_c(text, '?');
        else
            g_string_append_len(text, at, g_utf8_next_char(at) - at);
    }
}

char *printable_line(const char *text)
{
    GString *line = g_string_new(NULL);

    append_line(line, text, text + strlen(text));
    return g_string_free(line, FALSE);
}

void printable_append(GString *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *made = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    const char *from = made + strspn(made, "\n");
    const char *end = from + strlen(from);
    while (end > from && end[-1] == '\n')
        end--;
    g_string_append_len(text, made, from - made);
    append_line(text, from, end);
    g_string_append(text, end);
}

char *printable_json(const char *json)
{
    g_autofree char *valid = g_utf8_make_valid(json, -1);
    GString *text = g_string_new(NULL);

    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        const gunichar c = g_utf8_get_char(at);
        /* Between values blanks are no part of any; inside of one they are escapes already. */
        if (printable_steers(c) && !strchr("\n\t\r", (int)MIN(c, 0x7f)))
            g_string_append_printf(text, "\\u%04x", c);
        else
            g_string_append_len(text, at, g_utf8_next_char(at) - at);
    }
    return g_string_free(text, FALSE);
}
