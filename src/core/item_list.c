/* SPDX-License-Identifier: Apache-2.0 */
#include "core/item_list.h"

#include <gpuledger/error.h>
#include <string.h>

char *item_list_accepts(const struct item_list *list)
{
    if (!list->separator)
        return g_strdup_printf("%s, such as '%s'", list->form, list->example);
    return g_strdup_printf("%s, with '%c' between items, such as '%s'", list->form, list->separator,
                           list->example);
}

static bool refuse(const struct item_list *list, const char *item, GError **error)
{
    g_autofree char *accepts = item_list_accepts(list);

    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "item '%.200s' is not valid, expected %s", item, accepts);
    return false;
}

static char *name_of(const struct item_list *list, const char *item)
{
    const char *end = list->sign ? strchr(item, list->sign) : NULL;

    return g_strstrip(end ? g_strndup(item, (gsize)(end - item)) : g_strdup(item));
}

bool item_list_read(const struct item_list *list, const char *text, void *into, GError **error)
{
    const char separator[] = {list->separator, '\0'};
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) items = list->separator ? g_strsplit(text, separator, -1)
                                          : g_strsplit(text, "\n", 1);

    for (char **item = items; *item; item++) {
        if (!*g_strstrip(*item) || !list->take(*item, into))
            return refuse(list, *item, error);
        char *name = name_of(list, *item);
        if (!g_hash_table_add(names, name)) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "item '%.200s' says again what '%.200s' is; say it once", *item, name);
            return false;
        }
    }
    return true;
}

static bool is_text(const char *item, void *into)
{
    for (const char *at = item; *at; at++) {
        if (g_ascii_iscntrl(*at))
            return false;
    }
    return true;
}

/* The alphabet of Kubernetes' qualified names. */
static bool is_label(const char *item, void *into)
{
    const char *slash = strchr(item, '/'), *name = slash ? slash + 1 : item;

    for (const char *at = item; *at; at++) {
        if (at != slash && !g_ascii_isalnum(*at) && !strchr("-_.", *at))
            return false;
    }
    return slash != item && g_ascii_isalnum(name[0]) && g_ascii_isalnum(name[strlen(name) - 1]);
}

const struct item_list item_list_names = {
    .form = "names",
    .example = "one,another",
    .separator = ',',
    .take = is_text,
};

const struct item_list item_list_label = {
    .form = "a label's key",
    .example = "example.com/gpu-memory",
    .take = is_label,
};
