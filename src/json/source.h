/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For the files of the reader and the writer: a document together with the text that it was parsed
 * from, and what text needs no second look.
 */
#include "json/json.h"

#include <string.h>

/* The text of the document that was parsed last; NULL for any other value. */
const char *json_arena_source(const struct json_arena *arena, const cJSON *document,
                              size_t *ret_length);

/* A copy that lives as long as the arena's content. */
char *json_arena_dup(struct json_arena *arena, const char *text, size_t size);

/* Skips characters that stand for themselves, eight at a time; all of them are ASCII. */
static inline const unsigned char *skip_plain(const unsigned char *s, const unsigned char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = ones << 7;
    uint64_t word;

    for (; end - s >= (ptrdiff_t)sizeof(word); s += sizeof(word)) {
        memcpy(&word, s, sizeof(word));
        word = GUINT64_FROM_LE(word); /* the first character is the lowest byte */
        /* The high bit of a byte is set if the byte is below 0x20, a quote, a backslash or not
         * ASCII; borrows only ever add bytes above one that is found anyway. */
        const uint64_t quote = word ^ (ones * '"');
        const uint64_t backslash = word ^ (ones * '\\');
        const uint64_t found =
            (((word - ones * 0x20) | (quote - ones) | (backslash - ones)) | word) & highs;
        if (found)
            return s + __builtin_ctzll(found) / 8;
    }
    while (s < end && *s >= 0x20 && *s < 0x80 && *s != '"' && *s != '\\')
        s++;
    return s;
}
