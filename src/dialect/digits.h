/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Numbers as annotations and labels have them. */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Decimal digits and nothing else, up to `max`; NULL is no number. */
static inline bool digits_parse(const char *text, int64_t max, int64_t *ret_value)
{
    guint64 value;

    if (!text || !g_ascii_string_to_unsigned(text, 10, 0, (guint64)max, &value, NULL))
        return false;
    *ret_value = (int64_t)value;
    return true;
}
