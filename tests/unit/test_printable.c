/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include "suite.h"

static const struct {
    const char *text, *line, *json;
} cases[] = {
    {"plain text, 100 %", "plain text, 100 %", "plain text, 100 %"},
    {"größer, 大きい, שלום", "größer, 大きい, שלום", "größer, 大きい, שלום"},
    {"\033[31mred", "?[31mred", "\\u001b[31mred"},
    {"a\nb\tc\rd", "a?b?c?d", "a\nb\tc\rd"},
    {"\x01\x07\x08\x7f", "????", "\\u0001\\u0007\\u0008\\u007f"},
    {"\xc2\x80\xc2\x85\xc2\x9b", "???", "\\u0080\\u0085\\u009b"},
    {"\xd8\x9c|\xe2\x80\x8e\xe2\x80\x8f", "?|??", "\\u061c|\\u200e\\u200f"},
    {"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae", "????", "\\u2028\\u2029\\u202a\\u202e"},
    {"\xe2\x81\xa6\xe2\x81\xa9", "??", "\\u2066\\u2069"},
    {"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
     "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
     "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
    {"\x9b"
     "31m\xff",
     "\xef\xbf\xbd"
     "31m\xef\xbf\xbd",
     "\xef\xbf\xbd"
     "31m\xef\xbf\xbd"},
};

START_TEST(lines_and_documents)
{
    g_autofree char *line = printable_line(cases[_i].text);
    g_autofree char *json = printable_json(cases[_i].text);

    ck_assert_str_eq(line, cases[_i].line);
    ck_assert_str_eq(json, cases[_i].json);
}
END_TEST

START_TEST(a_sentence_keeps_its_own_ends_of_lines)
{
    g_autoptr(GString) text = g_string_new(NULL);

    printable_append(text, "\n\nWHY %s (%d)\n", "a\nb\x1b", 7);
    printable_append(text, "%s", "");
    printable_append(text, "%s", "\n");
    printable_append(text, "%s\n", "x");
    ck_assert_str_eq(text->str, "\n\nWHY a?b? (7)\n\nx\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("printable");
    TCase *tests = tcase_create("printable");

    tcase_add_loop_test(tests, lines_and_documents, 0, G_N_ELEMENTS(cases));
    tcase_add_test(tests, a_sentence_keeps_its_own_ends_of_lines);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
