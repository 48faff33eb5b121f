/* SPDX-License-Identifier: Apache-2.0 */
/* What the program would log, in the trace of a run. */
#include "sim.h"

#include "base/log.h"

#include <string.h>

void __wrap_log_write(enum log_level level, const char *message, const struct log_field *fields,
                      size_t n_fields);

void __wrap_log_write(enum log_level level, const char *message, const struct log_field *fields,
                      size_t n_fields)
{
    g_autoptr(GString) text = g_string_new(message);

    for (size_t i = 0; i < n_fields && sim_traces(); i++) {
        if (strcmp(fields[i].key, "commit") == 0 || strcmp(fields[i].key, "file") == 0)
            continue;
        if (fields[i].text)
            g_string_append_printf(text, " %s=%s", fields[i].key, fields[i].text);
        else
            g_string_append_printf(text, " %s=%" G_GINT64_FORMAT, fields[i].key, fields[i].number);
    }
    sim_trace("log: %s", text->str);
}
