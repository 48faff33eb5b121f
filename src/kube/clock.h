/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The clock of deadlines: milliseconds that only grow, the same as everywhere in the program.
 */
#include <glib.h>
#include <stdint.h>

static inline int64_t clock_ms(void)
{
    return g_get_monotonic_time() / 1000;
}
