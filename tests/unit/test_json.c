/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include "suite.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct json_arena *arena;

static void setup(void)
{
    arena = json_arena_new();
}

static void teardown(void)
{
    json_arena_free(arena);
}

/* Parses a copy that ends where the text does, so that reading past it is seen. */
static const cJSON *parse_bytes(const char *text, size_t length, GError **error)
{
    char *copy = malloc(length ? length : 1);

    memcpy(copy, text, length);
    const cJSON *document = json_parse(arena, copy, length, error);
    free(copy);
    return document;
}

static const cJSON *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    const cJSON *document = parse_bytes(text, strlen(text), &error);

    ck_assert_msg(document != NULL, "%s: %s", text, error ? error->message : "");
    return document;
}

/* --- parsing -------------------------------------------------------------------------------- */

static const char *const well_formed[] = {
    "{}",
    "[]",
    "null",
    "true",
    "-0.5e-3",
    "\"\"",
    " \t\r\n{ } \t\r\n",
    "\xef\xbb\xbf{}",
    "[[[]],{\"a\":[{}]}]",
    "\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\"",
};

START_TEST(parses_well_formed_text)
{
    parse(well_formed[_i]);
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} malformed[] = {
    {"", "invalid JSON: the text is empty"},
    {"   ", "invalid JSON at byte 2 near ' '"},
    {"{", "invalid JSON at byte 0 near '{'"},
    {"[1,2", "invalid JSON at byte 3 near '2'"},
    {"{\"a\":}", "invalid JSON at byte 5 near '}'"},
    {"{\"a\" 1}", "invalid JSON at byte 5 near '1}'"},
    {"{\"pod\":\"abc", "invalid JSON at byte 8 near 'abc'"},
    {"{'a':1}", "invalid JSON at byte 2 near 'a':1}'"},
    {"[1,]", "invalid JSON at byte 3 near ']'"},
    {"nul", "invalid JSON at byte 0 near 'nul'"},
    {"[-]", "invalid JSON at byte 1 near '-]'"},
    {"{} x", "invalid JSON at byte 3 near 'x'"},
    {"{}{}", "invalid JSON at byte 2 near '{}'"},
    {"1 2", "invalid JSON at byte 2 near '2'"},
    {"[\"\\ud800\"]", "invalid JSON at byte 2 near '\\ud800\"]'"},
    {"[\"\\x\"]", "invalid JSON at byte 2 near '\\x\"]'"},
    {"[!\x01\xff\n0123456789012345678901234567890]",
     "invalid JSON at byte 1 near '!???01234567890123456789...'"},
};

START_TEST(says_where_text_is_malformed)
{
    g_autoptr(GError) error = NULL;
    const char *text = malformed[_i].text;

    ck_assert_ptr_null(parse_bytes(text, strlen(text), &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_str_eq(error->message, malformed[_i].message);
}
END_TEST

START_TEST(takes_no_nul_for_the_end)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(parse_bytes("{}\0", 3, &error));
    ck_assert_str_eq(error->message, "invalid JSON at byte 2 near '?'");
}
END_TEST

START_TEST(refuses_every_truncation)
{
    static const char text[] =
        "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",true,null,{\"b\":{}}],\"c\":false}";

    for (size_t length = 0; length < strlen(text); length++) {
        g_autoptr(GError) error = NULL;

        ck_assert_msg(parse_bytes(text, length, &error) == NULL, "%zu bytes", length);
        ck_assert_ptr_nonnull(error);
    }
    parse(text);
}
END_TEST

static char *nested(size_t depth)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < depth; i++)
        g_string_append(text, i % 2 ? "{\"[\":" : "[\"{\",");
    g_string_append(text, "1");
    for (size_t i = depth; i > 0; i--)
        g_string_append_c(text, (i - 1) % 2 ? '}' : ']');
    return g_string_free(text, FALSE);
}

/* On a stack as small as the scheduler listener's threads have. */
static void *parse_deep(void *data)
{
    struct json_arena *deep = json_arena_new();
    g_autofree char *allowed = nested(CJSON_NESTING_LIMIT);
    g_autofree char *refused = nested(CJSON_NESTING_LIMIT + 1);
    g_autofree char *hopeless = g_strnfill(1 << 20, '[');
    g_autoptr(GError) error = NULL;
    GString *again = g_string_new(NULL);
    struct json_writer writer;

    const cJSON *document = json_parse(deep, allowed, strlen(allowed), NULL);
    ck_assert_ptr_nonnull(document);
    json_writer_init(&writer, again);
    json_value(&writer, document);
    ck_assert_str_eq(again->str, allowed);
    g_string_free(again, TRUE);

    ck_assert_ptr_null(json_parse(deep, refused, strlen(refused), &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_str_eq(error->message, "invalid JSON at byte 5000: nested deeper than 1000 levels");
    g_clear_error(&error);
    ck_assert_ptr_null(json_parse(deep, hopeless, strlen(hopeless), &error));
    ck_assert_str_eq(error->message, "invalid JSON at byte 1000: nested deeper than 1000 levels");
    json_arena_free(deep);
    return NULL;
}

START_TEST(bounds_nesting_within_a_small_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)512 << 10);
    ck_assert_int_eq(pthread_create(&thread, &attributes, parse_deep, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}
END_TEST

/* --- arena ---------------------------------------------------------------------------------- */

START_TEST(an_arena_reuses_its_memory_zeroed)
{
    char *first = json_arena_alloc(arena, 100);

    memset(first, 0xff, 100);
    json_arena_clear(arena);
    char *second = json_arena_alloc(arena, 100);
    ck_assert_ptr_eq(first, second);
    for (size_t i = 0; i < 100; i++)
        ck_assert_int_eq(second[i], 0);
}
END_TEST

START_TEST(an_arena_grows_and_aligns)
{
    for (size_t size = 0; size < ((size_t)16 << 20); size = size * 2 + 3) {
        char *memory = json_arena_alloc(arena, size);

        ck_assert_uint_eq((uintptr_t)memory % sizeof(double), 0);
        memset(memory, 1, size);
    }
    json_arena_clear(arena);
    parse("[1]");
}
END_TEST

/* A list of so many equal items. */
static GString *list_of(const char *item, size_t n)
{
    GString *text = g_string_new("[");

    for (size_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s", i ? "," : "", item);
    return g_string_append_c(text, ']');
}

static const struct {
    const char *item;
    size_t n;
    bool fits;
} amounts[] = {
    {"0", 30000, true},
    {"0", 1000000, false},
    {"{}", 1000000, false},
    {"[[[[]]]]", 300000, false},
    {"\"\"", 1000000, false},
    /* Of what Kubernetes writes, this takes the most. */
    {"{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}}}", 100000, true},
    {"{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"none\"}", 100000, true},
    {"\"gpu-node-0001\"", 100000, true},
};

START_TEST(trees_are_bounded_by_their_text)
{
    g_autoptr(GString) text = list_of(amounts[_i].item, amounts[_i].n);
    g_autoptr(GError) error = NULL;
    const cJSON *document = json_parse(arena, text->str, text->len, &error);

    ck_assert_msg((document != NULL) == amounts[_i].fits, "%s: %s", amounts[_i].item,
                  error ? error->message : "it fits");
    if (!document) {
        g_autofree char *message = g_strdup_printf(
            "a JSON document of %zu bytes takes more memory than there is for it", text->len);
        ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
        ck_assert_str_eq(error->message, message);
    }
    /* Neither the arena nor decoding is worse off for it. */
    memset(json_arena_alloc(arena, 64 << 20), 1, 64 << 20);
    ck_assert_ptr_nonnull(json_parse(arena, "[1]", 3, NULL));
    json_arena_clear(arena);
    ck_assert_ptr_nonnull(json_parse(arena, "[1]", 3, NULL));
}
END_TEST

START_TEST(documents_of_one_arena_live_side_by_side)
{
    const cJSON *a = parse("{\"a\":\"first\"}");
    const cJSON *b = parse("{\"a\":\"second\"}");

    ck_assert_str_eq(cJSON_GetObjectItemCaseSensitive(a, "a")->valuestring, "first");
    ck_assert_str_eq(cJSON_GetObjectItemCaseSensitive(b, "a")->valuestring, "second");
}
END_TEST

static void *parse_often(void *data)
{
    struct json_arena *own = json_arena_new();

    for (int i = 0; i < 200; i++) {
        g_autofree char *text = g_strdup_printf("{\"n\":%d,\"list\":[1,2,{\"x\":\"y\"}]}", i);
        const cJSON *document = json_parse(own, text, strlen(text), NULL);

        ck_assert_int_eq(cJSON_GetObjectItemCaseSensitive(document, "n")->valueint, i);
        /* A tree that is no arena's business. */
        cJSON *tree = cJSON_CreateObject();
        cJSON_AddStringToObject(tree, "k", "v");
        char *printed = cJSON_PrintUnformatted(tree);
        ck_assert_str_eq(printed, "{\"k\":\"v\"}");
        cJSON_free(printed);
        cJSON_Delete(tree);
        json_arena_clear(own);
    }
    json_arena_free(own);
    return NULL;
}

START_TEST(threads_do_not_share_an_arena)
{
    pthread_t threads[4];

    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, parse_often, NULL), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
}
END_TEST

/* --- decoding ------------------------------------------------------------------------------- */

struct sample {
    const char *name;
    const char *nick;
    int64_t number;
    bool flag;
    bool present;
    struct string_pairs pairs;
    struct string_pairs amounts;
    const cJSON *object;
    const cJSON *array;
};

#define SAMPLE(KIND, member, path, flags) JSON_FIELD_##KIND(struct sample, member, path, flags)
static const struct json_field sample_fields[] = {
    SAMPLE(STRING, name, "meta.name", JSON_REQUIRED),
    SAMPLE(STRING, nick, "meta.Nick", JSON_IGNORE_CASE),
    SAMPLE(INT64, number, "meta.deep.number", 0),
    SAMPLE(BOOL, flag, "flag", 0),
    SAMPLE(PRESENT, present, "present", 0),
    SAMPLE(PAIRS, pairs, "pairs", 0),
    SAMPLE(PAIRS, amounts, "amounts", JSON_NUMBERS),
    SAMPLE(OBJECT, object, "object", 0),
    SAMPLE(ARRAY, array, "array", 0),
    JSON_FIELD_END,
};

static struct sample decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    struct sample sample = {.number = -1};

    ck_assert_msg(json_decode(arena, parse(text), sample_fields, &sample, &error), "%s: %s", text,
                  error ? error->message : "");
    return sample;
}

START_TEST(decodes_every_kind)
{
    const struct sample sample =
        decode("{\"meta\":{\"name\":\"n\",\"nICK\":\"k\",\"deep\":{\"number\":42}},\"flag\":true,"
               "\"present\":0,\"pairs\":{\"a/b.c\":\"1\",\"d\":\"\"},"
               "\"amounts\":{\"gpu\":8,\"memory\":\"16Gi\",\"cpu\":0.5,\"big\":9007199254740991},"
               "\"object\":{\"x\":1},\"array\":[1,2]}");

    ck_assert_str_eq(sample.name, "n");
    ck_assert_str_eq(sample.nick, "k");
    ck_assert_int_eq(sample.number, 42);
    ck_assert(sample.flag);
    ck_assert(sample.present);
    ck_assert_uint_eq(sample.pairs.n, 2);
    ck_assert_str_eq(sample.pairs.items[0].key, "a/b.c");
    ck_assert_str_eq(string_pairs_get(&sample.pairs, "a/b.c"), "1");
    ck_assert_str_eq(string_pairs_get(&sample.pairs, "d"), "");
    ck_assert_ptr_null(string_pairs_get(&sample.pairs, "e"));
    ck_assert_str_eq(string_pairs_get(&sample.amounts, "gpu"), "8");
    ck_assert_str_eq(string_pairs_get(&sample.amounts, "memory"), "16Gi");
    ck_assert_str_eq(string_pairs_get(&sample.amounts, "cpu"), "0.5");
    ck_assert_str_eq(string_pairs_get(&sample.amounts, "big"), "9007199254740991");
    ck_assert_int_eq(cJSON_GetArraySize(sample.object), 1);
    ck_assert_int_eq(cJSON_GetArraySize(sample.array), 2);
}
END_TEST

static const char *const absent[] = {
    "{\"meta\":{\"name\":\"n\"}}",
    ("{\"meta\":{\"name\":\"n\",\"Nick\":null,\"deep\":null},\"flag\":null,\"present\":null,"
     "\"pairs\":null,\"amounts\":null,\"object\":null,\"array\":null}"),
    "{\"metadata\":1,\"meta\":{\"names\":\"no\",\"na\":1,\"name\":\"n\"},\"flags\":1}",
    "{\"meta\":{\"NAME\":\"no\",\"name\":\"n\",\"deep\":{}},\"Flag\":3}",
};

START_TEST(leaves_what_is_absent)
{
    const struct sample sample = decode(absent[_i]);

    ck_assert_str_eq(sample.name, "n");
    ck_assert_ptr_null(sample.nick);
    ck_assert_int_eq(sample.number, -1);
    ck_assert(!sample.flag);
    ck_assert(!sample.present);
    ck_assert_uint_eq(sample.pairs.n, 0);
    ck_assert_uint_eq(sample.amounts.n, 0);
    ck_assert_ptr_null(sample.object);
    ck_assert_ptr_null(sample.array);
}
END_TEST

START_TEST(the_first_of_two_equal_keys_counts)
{
    const struct sample sample =
        decode("{\"meta\":{\"name\":\"a\",\"name\":\"b\",\"NICK\":\"c\",\"Nick\":\"d\"},"
               "\"meta\":{\"name\":\"e\"}}");

    ck_assert_str_eq(sample.name, "a");
    ck_assert_str_eq(sample.nick, "c");
}
END_TEST

static const struct {
    const char *text;
    const char *message;
    enum gpuledger_error code;
} undecodable[] = {
    {"[]", "expected a JSON object", GPULEDGER_ERROR_INVALID},
    {"null", "expected a JSON object", GPULEDGER_ERROR_INVALID},
    {"{}", "field 'meta.name': missing", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":null}", "field 'meta.name': missing", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":null}}", "field 'meta.name': missing", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"\"}}", "field 'meta.name': must not be empty", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":1}}", "field 'meta.name': expected a string", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":\"x\"}", "field 'meta': expected an object", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\",\"deep\":[]}}", "field 'meta.deep': expected an object",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\",\"nick\":{}}}", "field 'meta.Nick': expected a string",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":\"5\"}}}",
     "field 'meta.deep.number': expected a number", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":5.5}}}",
     "field 'meta.deep.number': expected a whole number", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"flag\":1}", "field 'flag': expected true or false",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"pairs\":[]}", "field 'pairs': expected an object",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"pairs\":{\"a\":\"b\",\"x\":1}}",
     "field 'pairs': value of 'x' is not a string", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"pairs\":{\"x\":null}}",
     "field 'pairs': value of 'x' is not a string", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"pairs\":{\"a key that is much longer than fits\\n\":{}}}",
     "field 'pairs': value of 'a key that is much longe...' is not a string",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"amounts\":{\"x\":true}}",
     "field 'amounts': value of 'x' is not a string or a number", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"amounts\":{\"x\":1e300}}",
     "field 'amounts': value of 'x' is not a string or a number", GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"object\":[]}", "field 'object': expected an object",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\"},\"array\":{}}", "field 'array': expected an array",
     GPULEDGER_ERROR_INVALID},
    {"{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":9007199254740992}}}",
     "field 'meta.deep.number': expected a number between -2^53 and 2^53", GPULEDGER_ERROR_RANGE},
    {"{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":-9007199254740993}}}",
     "field 'meta.deep.number': expected a number between -2^53 and 2^53", GPULEDGER_ERROR_RANGE},
    {"{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":1e999}}}",
     "field 'meta.deep.number': expected a number between -2^53 and 2^53", GPULEDGER_ERROR_RANGE},
};

START_TEST(names_the_field_that_is_wrong)
{
    g_autoptr(GError) error = NULL;
    struct sample sample = {0};
    const cJSON *document = parse(undecodable[_i].text);

    ck_assert_msg(!json_decode(arena, document, sample_fields, &sample, &error), "%s",
                  undecodable[_i].text);
    ck_assert_str_eq(error->message, undecodable[_i].message);
    ck_assert_int_eq(error->code, undecodable[_i].code);
}
END_TEST

static const struct {
    const char *text;
    int64_t value;
} integers[] = {
    {"0", 0},
    {"-0", 0},
    {"5.0", 5},
    {"1e3", 1000},
    {"-2147483649", INT64_C(-2147483649)},
    {"9007199254740991", INT64_C(9007199254740991)},
    {"-9007199254740991", INT64_C(-9007199254740991)},
};

START_TEST(integers_are_exact)
{
    g_autofree char *text =
        g_strdup_printf("{\"meta\":{\"name\":\"n\",\"deep\":{\"number\":%s}}}", integers[_i].text);

    ck_assert_int_eq(decode(text).number, integers[_i].value);
}
END_TEST

/* --- spans ---------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    const char *items[3]; /* none: not available */
} spanned[] = {
    {"{\"list\":{\"items\":[1]}}", {"1"}},
    {" { \"x\" : [ { } , \"]\\\"\" ] , \"List\" : { \"Items\" : [ {\"a\":[]} , \"}\\\\\" , -1e5 ] "
     "} }",
     {"{\"a\":[]}", "\"}\\\\\"", "-1e5"}},
    {"\xef\xbb\xbf{\"list\":{\"items\":[9007199254740993]},\"list\":{\"items\":[2]}}",
     {"9007199254740993"}},
    {"{\"l\\u0069st\":{\"items\":[1]},\"list\":{\"items\":[2]}}", {NULL}},
    {"{\"list\":{\"items\":[\"\t\"]}}", {NULL}},
    {"{\"list\":{\"items\":[\x01 1]}}", {NULL}},
    {"{\"list\":{\"items\":{\"a\":1}}}", {NULL}},
    {"{\"list\":null}", {NULL}},
    {"[]", {NULL}},
};

START_TEST(finds_the_text_of_items)
{
    const char *text = spanned[_i].text;
    size_t n = 0;

    while (n < G_N_ELEMENTS(spanned[_i].items) && spanned[_i].items[n])
        n++;
    const cJSON *document = json_parse(arena, text, strlen(text), NULL);
    ck_assert_ptr_nonnull(document);
    const struct json_span *spans =
        json_item_spans(arena, document, "list.items", JSON_IGNORE_CASE, MAX(n, 1));
    ck_assert_int_eq(spans != NULL, n > 0);
    for (size_t i = 0; i < n; i++) {
        g_autofree char *item = g_strndup(spans[i].text, spans[i].length);
        ck_assert_str_eq(item, spanned[_i].items[i]);
    }
}
END_TEST

START_TEST(spans_need_the_latest_document_and_the_right_number)
{
    static const char text[] = "{\"a\":[1,2]}";
    const cJSON *old = json_parse(arena, text, strlen(text), NULL);
    const cJSON *latest = json_parse(arena, text, strlen(text), NULL);

    ck_assert_ptr_null(json_item_spans(arena, old, "a", 0, 2));
    ck_assert_ptr_null(json_item_spans(arena, latest, "a", 0, 1));
    ck_assert_ptr_null(json_item_spans(arena, latest, "a", 0, 3));
    ck_assert_ptr_null(json_item_spans(arena, latest, "A", 0, 2));
    ck_assert_ptr_nonnull(json_item_spans(arena, latest, "a", 0, 2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *reading = tcase_create("parse");
    TCase *memory = tcase_create("arena");
    TCase *decoding = tcase_create("decode");
    TCase *spans = tcase_create("span");
    TCase *const cases[] = {reading, memory, decoding, spans};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        tcase_add_checked_fixture(cases[i], setup, teardown);
        suite_add_tcase(suite, cases[i]);
    }
    tcase_add_loop_test(reading, parses_well_formed_text, 0, G_N_ELEMENTS(well_formed));
    tcase_add_loop_test(reading, says_where_text_is_malformed, 0, G_N_ELEMENTS(malformed));
    tcase_add_test(reading, takes_no_nul_for_the_end);
    tcase_add_test(reading, refuses_every_truncation);
    tcase_add_test(reading, bounds_nesting_within_a_small_stack);
    tcase_add_test(memory, an_arena_reuses_its_memory_zeroed);
    tcase_add_test(memory, an_arena_grows_and_aligns);
    tcase_set_timeout(memory, 60);
    tcase_add_loop_test(memory, trees_are_bounded_by_their_text, 0, G_N_ELEMENTS(amounts));
    tcase_add_test(memory, documents_of_one_arena_live_side_by_side);
    tcase_add_test(memory, threads_do_not_share_an_arena);
    tcase_add_test(decoding, decodes_every_kind);
    tcase_add_loop_test(decoding, leaves_what_is_absent, 0, G_N_ELEMENTS(absent));
    tcase_add_test(decoding, the_first_of_two_equal_keys_counts);
    tcase_add_loop_test(decoding, names_the_field_that_is_wrong, 0, G_N_ELEMENTS(undecodable));
    tcase_add_loop_test(decoding, integers_are_exact, 0, G_N_ELEMENTS(integers));
    tcase_add_loop_test(spans, finds_the_text_of_items, 0, G_N_ELEMENTS(spanned));
    tcase_add_test(spans, spans_need_the_latest_document_and_the_right_number);

    return suite_run(suite);
}
