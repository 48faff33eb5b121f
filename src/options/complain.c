/* SPDX-License-Identifier: Apache-2.0 */
#include "options/command.h"

#include <stdio.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    fprintf(stderr, PROGRAM ": %s\n", text);
}
