/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/word_list.h"

#include "core/fail.h"

#include <string.h>

static bool is_within_bounds(const char *text)
{
    for (int n = 1; n <= WORD_LIST_ITEMS_MAX; n++) {
        const size_t length = strcspn(text, ",");
        if (length > WORD_LIST_BYTES_MAX)
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
    return false;
}

bool word_list_check(const char *key, const char *text, GError **error)
{
    if (!key || !text || is_within_bounds(text))
        return true;
    return fail_with(error, GPULEDGER_ERROR_LIMIT,
                     "annotation '%s' may have at most %d items of at most %d bytes each", key,
                     WORD_LIST_ITEMS_MAX, WORD_LIST_BYTES_MAX);
}

char **word_list_read(const struct pod_view *view, const char *key)
{
    const char *text = key ? string_pairs_get(&view->annotations, key) : NULL;

    if (!text || !is_within_bounds(text))
        return NULL;
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    bool any = false;
    for (char **part = parts; *part; part++) {
        if (!*g_strstrip(*part))
            continue;
        g_strv_builder_add(words, *part);
        any = true;
    }
    return any ? g_strv_builder_end(words) : NULL;
}
