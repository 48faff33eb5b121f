/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "options/command.h"

#include <stdio.h>

G_GNUC_PRINTF(2, 0)
static void print_line(const char *before, const char *format, va_list arguments)
{
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    g_autofree char *line = printable_line(text);

    fprintf(stderr, "%s%s\n", before, line);
}

void complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line(PROGRAM ": ", format, arguments);
    va_end(arguments);
}

void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}
