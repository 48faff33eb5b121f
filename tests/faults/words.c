/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <string.h>

const char *words_get(const struct words *words, const char *key)
{
    for (unsigned i = 0; i < words->n; i++) {
        if (g_str_equal(words->items[i].key, key))
            return words->items[i].value;
    }
    return NULL;
}

void words_set(struct words *words, const char *key, const char *value)
{
    unsigned i = 0;

    while (i < words->n && !g_str_equal(words->items[i].key, key))
        i++;
    if (i < words->n) {
        g_free(words->items[i].value);
        if (value) {
            words->items[i].value = g_strdup(value);
        } else {
            g_free(words->items[i].key);
            words->items[i] = words->items[--words->n];
        }
    } else if (value) {
        words->items = g_renew(struct word, words->items, words->n + 1);
        words->items[words->n++] = (struct word){g_strdup(key), g_strdup(value)};
    }
}

void words_setf(struct words *words, const char *key, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *value = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    words_set(words, key, value);
}

void words_add(struct words *words, const struct words *more)
{
    for (unsigned i = 0; i < more->n; i++)
        words_set(words, more->items[i].key, more->items[i].value);
}

void words_clear(struct words *words)
{
    for (unsigned i = 0; i < words->n; i++) {
        g_free(words->items[i].key);
        g_free(words->items[i].value);
    }
    g_clear_pointer(&words->items, g_free);
    words->n = 0;
}

void words_parse(struct words *words, const char *text)
{
    g_auto(GStrv) pairs = g_strsplit(text, " ", -1);

    for (char **pair = pairs; *pair; pair++) {
        char *value = strchr(*pair, '=');
        if (!value)
            continue;
        *value++ = '\0';
        words_set(words, *pair, value);
    }
}
