/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is either refused with a message, or what the writer makes of it parses and is written
 * the same way again; and an item's span is that item.
 */
#include "target.h"

#include "json/json.h"

#include <string.h>

struct sample {
    const char *string;
    int64_t integer;
    bool flag;
    bool present;
    struct string_pairs pairs;
    struct string_pairs amounts;
    const cJSON *items;
};

#define SAMPLE(KIND, member, path, flags) JSON_FIELD_##KIND(struct sample, member, path, flags)
static const struct json_field fields[] = {
    SAMPLE(STRING, string, "a", 0),
    SAMPLE(INT64, integer, "b.i", 0),
    SAMPLE(BOOL, flag, "b.f", JSON_IGNORE_CASE),
    SAMPLE(PRESENT, present, "b.p", 0),
    SAMPLE(PAIRS, pairs, "c.pairs", 0),
    SAMPLE(PAIRS, amounts, "c.amounts", JSON_NUMBERS),
    SAMPLE(ARRAY, items, "List.Items", JSON_IGNORE_CASE),
    JSON_FIELD_END,
};

static char *write_value(const cJSON *value)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_value(&writer, value);
    FUZZ_CHECK(g_utf8_validate(text->str, (gssize)text->len, NULL));
    return g_string_free(text, FALSE);
}

static void check_rewriting(const cJSON *document)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *once = write_value(document);
    const cJSON *back = json_parse(arena, once, strlen(once), NULL);

    FUZZ_CHECK(back);
    g_autofree char *twice = write_value(back);
    FUZZ_CHECK(g_str_equal(once, twice));
}

static void check_pairs(const struct string_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        FUZZ_CHECK(string_pairs_get(pairs, pairs->items[i].key));
}

static void check_spans(struct json_arena *arena, const cJSON *document, const cJSON *items)
{
    const size_t n = (size_t)cJSON_GetArraySize(items);
    const struct json_span *spans =
        json_item_spans(arena, document, "List.Items", JSON_IGNORE_CASE, n);
    const cJSON *item;

    if (!spans || n == 0)
        return;
    cJSON_ArrayForEach (item, items) {
        g_autoptr(json_arena) other = json_arena_new();
        g_autofree char *as_item = write_value(item);
        const cJSON *value = json_parse(other, spans->text, spans->length, NULL);

        FUZZ_CHECK(value);
        g_autofree char *as_span = write_value(value);
        FUZZ_CHECK(g_str_equal(as_item, as_span));
        spans++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct sample sample = {0};
    const cJSON *document = json_parse(arena, (const char *)data, size, &error);

    FUZZ_CHECK(!document == !!error);
    if (error)
        FUZZ_CHECK(g_str_has_prefix(error->message, "invalid JSON"));
    if (!document)
        return 0;
    check_rewriting(document);
    const bool decoded = json_decode(arena, document, fields, &sample, &error);
    FUZZ_CHECK(decoded == !error);
    check_pairs(&sample.pairs);
    check_pairs(&sample.amounts);
    if (decoded && sample.items)
        check_spans(arena, document, sample.items);
    return 0;
}
