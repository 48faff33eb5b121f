/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The clock of deadlines: milliseconds that only grow, the same as everywhere in the program.
 */
#include <glib.h>
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* For how long the machine has slept, which that clock leaves out. What was paused from outside, as a
 * virtual machine is, does not know it. */
static inline int64_t clock_slept_ms(void)
{
    struct timespec with, without;

    clock_gettime(CLOCK_BOOTTIME, &with);
    clock_gettime(CLOCK_MONOTONIC, &without);
    return (with.tv_sec - without.tv_sec) * 1000 + (with.tv_nsec - without.tv_nsec) / 1000000;
}
