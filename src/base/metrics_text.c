/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics_text.h"

void metrics_append_head(GString *text, const char *name, const char *type, const char *help)
{
    g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_append_label(GString *text, const char *value)
{
    for (const char *at = value; *at; at++) {
        if (*at == '\n')
            g_string_append(text, "\\n");
        else if (*at == '\\' || *at == '"')
            g_string_append_printf(text, "\\%c", *at);
        else
            g_string_append_c(text, *at);
    }
}

void metrics_append_seconds(GString *text, uint64_t us)
{
    g_string_append_printf(text, "%" G_GUINT64_FORMAT ".%06" G_GUINT64_FORMAT, us / 1000000,
                           us % 1000000);
}
