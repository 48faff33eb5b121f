/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/nvidia/nvidia_replicas.h"

#include "dialect/digits.h"

#include <string.h>

struct sought {
    const char *configuration;
    int64_t replicas;
};

/* Configurations are values of a label. */
static bool is_name(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (!g_ascii_isalnum(*at) && !strchr("-_.", *at))
            return false;
    }
    return *text;
}

static bool read_item(const char *item, void *into)
{
    struct sought *sought = into;
    const char *sign = strchr(item, '=');
    int64_t replicas;

    if (!sign)
        return false;
    g_autofree char *name = g_strstrip(g_strndup(item, (gsize)(sign - item)));
    g_autofree char *number = g_strstrip(g_strdup(sign + 1));
    if (!is_name(name) || !digits_parse(number, NVIDIA_REPLICAS_MAX, &replicas) || replicas == 0)
        return false;
    if (sought && g_str_equal(name, sought->configuration))
        sought->replicas = replicas;
    return true;
}

const struct item_list nvidia_replicas_list = {
    .form = "NAME=N, N from 1 to 65536",
    .example = "whole=1,quarter=4",
    .separator = ',',
    .sign = '=',
    .take = read_item,
};

int64_t nvidia_replicas_find(const char *table, const char *configuration)
{
    struct sought sought = {configuration, 0};

    item_list_read(&nvidia_replicas_list, table ? table : "", &sought, NULL);
    return sought.replicas;
}
