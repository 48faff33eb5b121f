/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/dialect.h>

void profile_words_add(struct profile_words *words, enum word_place place, const char *key,
                       char *take_value)
{
    g_assert(words->n < PROFILE_WORDS_MAX);
    words->items[words->n++] = (struct profile_word){place, key, take_value};
}

void profile_words_amount(struct profile_words *words, const char *key, int64_t amount)
{
    profile_words_add(words, WORD_RESOURCE, key, g_strdup_printf("%" G_GINT64_FORMAT, amount));
}

void profile_words_clear(struct profile_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        g_free(words->items[i].value);
    words->n = 0;
}
