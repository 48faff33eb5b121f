/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/secret.h"

static const struct json_field fields[] = {
    JSON_FIELD_STRING(struct secret_view, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct secret_view, keys, "data.keys", 0),
    JSON_FIELD_STRING(struct secret_view, rotate, "data.rotate", 0),
    JSON_FIELD_END,
};

bool secret_view_decode(struct json_arena *arena, const cJSON *object,
                        struct secret_view *ret_secret, GError **error)
{
    *ret_secret = (struct secret_view){NULL};
    return json_decode(arena, object, fields, ret_secret, error);
}

void secret_patch_encode(struct json_writer *writer, const char *version, const char *keys)
{
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    json_key_string(writer, "resourceVersion", version);
    json_end_object(writer);
    json_key_object(writer, "data");
    json_key_string(writer, "keys", keys);
    json_key_string(writer, "rotate", NULL);
    json_end_object(writer);
    json_end_object(writer);
}
