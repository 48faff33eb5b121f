/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"
#include "options/command.h"

#include <gpuledger/error.h>
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

/* What fails at these is outside: a port in use, a full disk, kubectl. */
static bool is_outside(const char *message)
{
    static const char *const options[] = {"listen",      "ops-listen", "record",     "snapshot-out",
                                          "cluster-out", "service",    "seal-secret"};

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        g_autofree char *title = g_strdup_printf("option '--%s':", options[i]);
        if (g_str_has_prefix(message, title))
            return true;
    }
    return false;
}

enum exit_code complain_of(const GError *failure)
{
    static const enum gpuledger_error codes[] = {GPULEDGER_ERROR_INVALID, GPULEDGER_ERROR_RANGE,
                                                 GPULEDGER_ERROR_LIMIT, GPULEDGER_ERROR_IO};
    bool misuse = false;

    complain("%s", failure->message);
    if (!(g_str_has_prefix(failure->message, "option '--") ||
          g_str_has_prefix(failure->message, "options '--")) ||
        is_outside(failure->message))
        return EXIT_FAILED;
    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++)
        misuse |= g_error_matches(failure, GPULEDGER_ERROR, (gint)codes[i]);
    return misuse ? EXIT_USAGE : EXIT_FAILED;
}

void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}
