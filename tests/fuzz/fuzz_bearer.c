/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte says how many of those that follow are the token file, the rest is the header of
 * a caller. A file is refused with a message that does not show what stands in it, or its token is
 * accepted and nothing else is.
 */
#include "memory_file.h"

#include "http/bearer.h"

#include <string.h>

/* What the header carries, by another way than the program's; NULL: nothing. */
static char *shown(const char *header)
{
    g_auto(GStrv) words = g_strsplit_set(header, " ", -1);
    char **word = words;

    if (!*word || g_ascii_strcasecmp(*word, "bearer") != 0 || !strchr(header, ' '))
        return NULL;
    for (word++; *word && !**word; word++)
        ;
    return g_strdup(*word ? *word : "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const size_t length = MIN(data[0], size - 1);
    struct memory_file file = memory_file_new(data + 1, length);
    g_autofree char *token = g_strndup((const char *)data + 1, length);
    g_autofree char *header = g_strndup((const char *)data + 1 + length, size - 1 - length);
    g_autoptr(GError) error = NULL;
    struct bearer *bearer = bearer_new(file.path, &error);

    FUZZ_CHECK(!bearer == !!error);
    g_strstrip(token);
    if (bearer) {
        g_autofree char *right = g_strconcat("Bearer ", token, NULL);
        g_autofree char *word = shown(header);

        FUZZ_CHECK(*token && !bearer_accepts(bearer, NULL));
        FUZZ_CHECK(bearer_accepts(bearer, right));
        FUZZ_CHECK(bearer_accepts(bearer, header) == (word && g_str_equal(word, token)));
    } else if (strlen(token) >= 40) { /* longer than any word of the message */
        FUZZ_CHECK(!strstr(error->message, token));
    }
    bearer_free(bearer);
    memory_file_close(&file);
    return 0;
}
