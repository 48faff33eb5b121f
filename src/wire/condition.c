/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/condition.h"

#include <glib.h>

struct condition {
    const char *type, *status;
};
static const struct json_field condition_fields[] = {
    JSON_FIELD_STRING(struct condition, type, "type", 0),
    JSON_FIELD_STRING(struct condition, status, "status", 0),
    JSON_FIELD_END,
};

bool condition_is_true(struct json_arena *arena, const cJSON *conditions, const char *type)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, conditions) {
        struct condition condition = {0};
        if (json_decode(arena, item, condition_fields, &condition, NULL) &&
            g_strcmp0(condition.type, type) == 0)
            return g_strcmp0(condition.status, "True") == 0;
    }
    return false;
}
