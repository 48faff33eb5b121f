/* SPDX-License-Identifier: Apache-2.0 */
#include "options/nearest.h"

#include <glib.h>
#include <string.h>

#define WORD_MAX 64

/* Edits (insert, delete, replace, swap neighbours) that turn one word into the other. */
static size_t distance(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > WORD_MAX || length_b > WORD_MAX)
        return WORD_MAX;
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *previous = rows[1], *current = rows[2];
    for (size_t j = 0; j <= length_b; j++)
        previous[j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        current[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t replaced = previous[j - 1] + (a[i - 1] != b[j - 1]);
            size_t best = MIN(MIN(previous[j] + 1, current[j - 1] + 1), replaced);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, before[j - 2] + 1);
            current[j] = best;
        }
        size_t *spare = before;
        before = previous;
        previous = current;
        current = spare;
    }
    return previous[length_b];
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
    size_t d = distance(nearest->word, candidate);
    /* A beginning of the right word counts as one slip, however much is missing. */
    if (strlen(nearest->word) >= 3 && g_str_has_prefix(candidate, nearest->word))
        d = 1;
    /* More than a third of the word wrong is a guess, not a typing error. */
    if (d > strlen(candidate) / 3 + 1 || d >= strlen(candidate))
        return;
    if (!nearest->match || d < nearest->distance) {
        nearest->match = candidate;
        nearest->distance = d;
    }
}
