/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include "suite.h"

#include <math.h>
#include <string.h>

static GString *text;
static struct json_writer writer;

static void setup(void)
{
    text = g_string_new(NULL);
    json_writer_init(&writer, text);
}

static void teardown(void)
{
    g_string_free(text, TRUE);
}

static const struct {
    const char *value;
    const char *json;
} strings[] = {
    {NULL, "null"},
    {"", "\"\""},
    {"plain-name.example/1", "\"plain-name.example/1\""},
    {"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
    {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
    {"\x01\x1f\x7f<>&", "\"\\u0001\\u001f\x7f<>&\""},
    {"\n", "\"\\n\""},
    /* well-formed: the first and last of each length */
    {"\xc2\x80\xdf\xbf", "\"\xc2\x80\xdf\xbf\""},
    {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
     "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\""},
    {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
    /* not: lone continuation, overlong, surrogate, beyond U+10FFFF, impossible bytes, cut short */
    {"a\x80z", "\"a\xef\xbf\xbdz\""},
    {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xc1\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xe0\x9f\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf0\x8f\xbf\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf5\xff", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xc3", "\"\xef\xbf\xbd\""},
    {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf0\x9f\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xe2\"\xe2\x82\"", "\"\xef\xbf\xbd\\\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""},
};

START_TEST(escapes_strings)
{
    json_string(&writer, strings[_i].value);
    ck_assert_str_eq(text->str, strings[_i].json);
    ck_assert(g_utf8_validate(text->str, -1, NULL));
}
END_TEST

/* Wherever a character stands in a long run of plain ones. */
START_TEST(finds_what_to_escape_at_every_place)
{
    static const char *const escapes[][2] = {
        {"\"", "\\\""}, {"\\", "\\\\"}, {"\x1f", "\\u001f"}, {"\x80", "\xef\xbf\xbd"}};

    for (size_t i = 0; i < G_N_ELEMENTS(escapes); i++) {
        for (int before = 0; before < 20; before++) {
            g_autofree char *value =
                g_strdup_printf("%.*s%s%.*s", before, "~~~~~~~~~~~~~~~~~~~~", escapes[i][0],
                                20 - before, "!!!!!!!!!!!!!!!!!!!!");
            g_autofree char *json =
                g_strdup_printf("\"%.*s%s%.*s\"", before, "~~~~~~~~~~~~~~~~~~~~", escapes[i][1],
                                20 - before, "!!!!!!!!!!!!!!!!!!!!");

            g_string_truncate(text, 0);
            json_writer_init(&writer, text);
            json_string(&writer, value);
            ck_assert_str_eq(text->str, json);
        }
    }
}
END_TEST

START_TEST(every_character_comes_back)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GString *all = g_string_new(NULL);

    for (gunichar c = 1; c <= 0x10ffff; c += c < 0x3000 ? 1 : 251) {
        if (c < 0xd800 || c > 0xdfff)
            g_string_append_unichar(all, c);
    }
    json_string(&writer, all->str);
    const cJSON *back = json_parse(arena, text->str, text->len, NULL);
    ck_assert_ptr_nonnull(back);
    ck_assert_str_eq(back->valuestring, all->str);
    g_string_free(all, TRUE);
}
END_TEST

START_TEST(owns_the_commas)
{
    json_begin_object(&writer);
    json_key(&writer, "empty");
    json_begin_object(&writer);
    json_end_object(&writer);
    json_key(&writer, "list");
    json_begin_array(&writer);
    json_begin_array(&writer);
    json_end_array(&writer);
    json_int(&writer, INT64_MIN);
    json_int(&writer, INT64_MAX);
    json_bool(&writer, true);
    json_null(&writer);
    json_raw(&writer, "{\"raw\": 1}xyz", 10);
    json_begin_object(&writer);
    json_key_string(&writer, "k\n", "v");
    json_key_string(&writer, "none", NULL);
    json_key_int(&writer, "i", -1);
    json_key_bool(&writer, "b", false);
    json_end_object(&writer);
    json_end_array(&writer);
    json_end_object(&writer);
    ck_assert_str_eq(text->str,
                     "{\"empty\":{},\"list\":[[],-9223372036854775808,9223372036854775807,true,"
                     "null,{\"raw\": 1},{\"k\\n\":\"v\",\"none\":null,\"i\":-1,\"b\":false}]}");
}
END_TEST

START_TEST(appends_to_what_is_there)
{
    g_string_assign(text, "before ");
    json_writer_init(&writer, text);
    json_begin_array(&writer);
    json_end_array(&writer);
    ck_assert_str_eq(text->str, "before []");
}
END_TEST

static const struct {
    double value;
    const char *json;
} doubles[] = {
    {0, "0"},
    {-1.5, "-1.5"},
    {0.1, "0.1"},
    {1.0 / 3, "0.33333333333333331"},
    {9007199254740991, "9007199254740991"},
    {1e300, "1e+300"},
    {INFINITY, "null"},
    {NAN, "null"},
};

START_TEST(doubles_read_back)
{
    json_double(&writer, doubles[_i].value);
    ck_assert_str_eq(text->str, doubles[_i].json);
    if (isfinite(doubles[_i].value))
        ck_assert_double_eq(g_ascii_strtod(text->str, NULL), doubles[_i].value);
}
END_TEST

START_TEST(parsed_values_are_written_again)
{
    static const char json[] = "{\"a\":[1,-2.5,true,false,null,\"x\\n\xc3\xa9\"],\"\":{\"b\":{}},"
                               "\"n\":9007199254740991}";
    g_autoptr(json_arena) arena = json_arena_new();

    json_value(&writer, json_parse(arena, json, strlen(json), NULL));
    ck_assert_str_eq(text->str, json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_writer");
    TCase *tests = tcase_create("write");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, escapes_strings, 0, G_N_ELEMENTS(strings));
    tcase_add_test(tests, finds_what_to_escape_at_every_place);
    tcase_add_test(tests, every_character_comes_back);
    tcase_add_test(tests, owns_the_commas);
    tcase_add_test(tests, appends_to_what_is_there);
    tcase_add_loop_test(tests, doubles_read_back, 0, G_N_ELEMENTS(doubles));
    tcase_add_test(tests, parsed_values_are_written_again);

    return suite_run(suite);
}
