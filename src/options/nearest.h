/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* "Did you mean …?" Pure; any thread. */
#include <stddef.h>

/* Where the best match so far is kept; start with { .word = what was typed }. */
struct nearest {
    const char *word;
    const char *match; /* NULL: nothing is near enough to be worth suggesting */
    size_t distance;
};

/* Offers a candidate, which is borrowed. */
void nearest_offer(struct nearest *nearest, const char *candidate);
