/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pairs of texts, a key once: annotations, labels, amounts. Uses nothing of the program. */
#include <glib.h>

struct word {
    char *key, *value;
};
struct words {
    struct word *items;
    unsigned n;
};
const char *words_get(const struct words *words, const char *key); /* or NULL */
void words_set(struct words *words, const char *key, const char *value); /* NULL: takes it away */
void words_setf(struct words *words, const char *key, const char *format, ...) G_GNUC_PRINTF(3, 4);
void words_add(struct words *words, const struct words *more);
void words_clear(struct words *words);
/* "a=1 b=2" */
void words_parse(struct words *words, const char *text);
