/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/resource_quota.h"

#define QUOTA(KIND, member, path, flags)                                                           \
    JSON_FIELD_##KIND(struct resource_quota_view, member, path, flags)
static const struct json_field quota_fields[] = {
    QUOTA(STRING, name, "metadata.name", JSON_REQUIRED),
    QUOTA(STRING, ns, "metadata.namespace", JSON_REQUIRED),
    QUOTA(PAIRS, hard, "spec.hard", JSON_NUMBERS),
    JSON_FIELD_END,
};

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error)
{
    struct resource_quota_view quota = {0};

    if (!json_decode(arena, object, quota_fields, &quota, error))
        return false;
    *ret_quota = quota;
    return true;
}

void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota)
{
    json_encode(writer, &(struct json_encoding){.fields = quota_fields, .base = quota});
}
