/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include <string.h>

static const void *member(const struct json_encoding *encoding, const struct json_field *field)
{
    return (const char *)encoding->base + field->offset;
}

static bool is_set(const struct json_encoding *encoding, const struct json_field *field)
{
    const void *value = member(encoding, field);

    switch (field->kind) {
    case JSON_STRING:
        return *(const char *const *)value != NULL;
    case JSON_INT64:
        return *(const int64_t *)value != 0;
    case JSON_BOOL:
    case JSON_PRESENT:
        return *(const bool *)value;
    case JSON_PAIRS:
        return ((const struct string_pairs *)value)->n > 0;
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    return encoding->tree && (!encoding->has_tree || encoding->has_tree(field, encoding->base));
}

static void write_pairs(struct json_writer *writer, const struct string_pairs *pairs)
{
    json_begin_object(writer);
    for (size_t i = 0; i < pairs->n; i++)
        json_key_string(writer, pairs->items[i].key, pairs->items[i].value);
    json_end_object(writer);
}

static void write_value(struct json_writer *writer, const struct json_encoding *encoding,
                        const struct json_field *field)
{
    const void *value = member(encoding, field);

    switch (field->kind) {
    case JSON_STRING:
        json_string(writer, *(const char *const *)value);
        break;
    case JSON_INT64:
        json_int(writer, *(const int64_t *)value);
        break;
    case JSON_BOOL:
    case JSON_PRESENT:
        json_bool(writer, true);
        break;
    case JSON_PAIRS:
        write_pairs(writer, value);
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        encoding->tree(writer, field, encoding->base);
        break;
    }
}

/* Whether an earlier row has begun the object that `length` bytes of this row's path name. */
static bool is_begun(const struct json_encoding *encoding, const struct json_field *field,
                     size_t length)
{
    for (const struct json_field *other = encoding->fields; other != field; other++) {
        if (strncmp(other->path, field->path, length) == 0 && is_set(encoding, other))
            return true;
    }
    return false;
}

/* The rows that share the first `length` bytes of `first`, which is the first of them. */
static void write_level(struct json_writer *writer, const struct json_encoding *encoding,
                        const struct json_field *first, size_t length)
{
    json_begin_object(writer);
    for (const struct json_field *field = first; field->path; field++) {
        if (strncmp(field->path, first->path, length) != 0 || !is_set(encoding, field))
            continue;
        const char *dot = strchr(field->path + length, '.');
        if (!dot) {
            json_key(writer, field->path + length);
            write_value(writer, encoding, field);
            continue;
        }
        const size_t deeper = (size_t)(dot + 1 - field->path);
        if (is_begun(encoding, field, deeper))
            continue;
        g_autofree char *key = g_strndup(field->path + length, deeper - 1 - length);
        json_key(writer, key);
        write_level(writer, encoding, field, deeper);
    }
    json_end_object(writer);
}

void json_encode(struct json_writer *writer, const struct json_encoding *encoding)
{
    write_level(writer, encoding, encoding->fields, 0);
}
