/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one warning that a reading function gives: the first that it came to. */
#include <glib.h>

/* NULL: nobody wants it. */
static inline void warn(char **ret_warning, char *take_text)
{
    if (ret_warning && !*ret_warning)
        *ret_warning = take_text;
    else
        g_free(take_text);
}
