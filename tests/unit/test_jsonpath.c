/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"
#include "options/jsonpath.h"
#include "options/table.h"
#include "suite.h"

#include <string.h>

static const char document[] =
    "{\"nodes\":[{\"name\":\"a\",\"cards\":[1,2,3],\"of\":{\"x.y\":true}},"
    "{\"name\":\"b\",\"cards\":[],\"none\":null}],\"n\":7}";

static const struct {
    const char *template, *text;
} written[] = {
    {"", ""},
    {"plain", "plain"},
    {"{.n}", "7"},
    {"{$.n} {@.n}", "7 7"},
    {"{ .n }", "7"},
    {"{.nodes[*].name}", "a b"},
    {"{.nodes.*.name}", "a b"},
    {"{.nodes[0].name}{.nodes[-1].name}", "ab"},
    {"{.nodes[2].name}{.nodes[-3].name}{.missing.too}", ""},
    {"{.nodes[0].cards}", "[1,2,3]"},
    {"{.nodes[*].cards[*]}", "1 2 3"},
    {"{.nodes[0].of['x.y']}{.nodes[0].of.x\\.y}", "truetrue"},
    {"{['n']}{[\"n\"]}", "77"},
    {"{.nodes[1].none}", "null"},
    {"{\"a\\tb\\n\"}{'\\'{}'}", "a\tb\n'{}"},
    {"{range .nodes[*]}{.name}:{.cards[0]};{end}", "a:1;b:;"},
    {"{range .nodes[*]}{range .cards[*]}{@},{end}|{end}!", "1,2,3,||!"},
    {"{range .none[*]}{.name}{range .x}{end}{end}after", "after"},
};

START_TEST(a_template_takes_parts)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const cJSON *tree = json_parse(arena, document, strlen(document), NULL);

    ck_assert_msg(jsonpath_write(written[_i].template, tree, text, &error), "%s: %s",
                  written[_i].template, error ? error->message : "");
    ck_assert_str_eq(text->str, written[_i].text);
}
END_TEST

static const struct {
    const char *template, *says;
} refused[] = {
    {"{.n", "character 4: expected '.', '[' or '}'"},
    {"{n}", "character 2: expected '.', '[' or '}'"},
    {"{..name}", "character 3: expected a key behind '.'"},
    {"{.nodes[?(@.name==\"a\")]}", "character 9: expected [*], [0] or ['key']; filters are not"},
    {"{.nodes[0}", "character 10: expected ']'"},
    {"{\"x}", "character 5: the text has no end"},
    {"{\"x\".n}", "character 5: expected '}'"},
    {"{range .nodes[*]}{.name}", "character 25: {range} without {end}"},
    {"{.n}{end}", "character 10: {end} without {range}"},
};

START_TEST(what_is_not_understood_is_refused)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const cJSON *tree = json_parse(arena, document, strlen(document), NULL);

    ck_assert(!jsonpath_write(refused[_i].template, tree, text, &error));
    ck_assert_msg(strstr(error->message, refused[_i].says), "%s: %s", refused[_i].template,
                  error->message);
}
END_TEST

/* --- rows ----------------------------------------------------------------------------------- */

static const char *const headings[] = {"NAME", "FREE"};

static struct table *sample(void)
{
    static const char *const cells[] = {"b", "53 GiB", "a", "14356 MiB", "d", "-", "c", "5 GiB"};
    struct table *table = table_new(2, headings);

    for (size_t i = 0; i < G_N_ELEMENTS(cells); i++)
        table_cell(table, "%s", cells[i]);
    return table;
}

static const struct {
    const char *by, *names;
} orders[] = {{"name", "abcd"}, {"-NAME", "dcba"}, {"FREE", "dcab"}, {"-free", "bacd"}};

START_TEST(rows_are_sorted_by_a_column)
{
    struct table *table = sample();
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert(table_sort(table, orders[_i].by, NULL));
    table_write(table, text);
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(lines[i + 1][0] == orders[_i].names[i], "%s:\n%s", orders[_i].by, text->str);
    ck_assert(g_str_has_prefix(lines[0], "NAME"));
    table_free(table);
}
END_TEST

START_TEST(an_unknown_column_is_named)
{
    struct table *table = sample();
    g_autoptr(GError) error = NULL;

    ck_assert(!table_sort(table, "size", &error));
    ck_assert_str_eq(error->message,
                     "option '--sort-by': there is no column 'size'; there are 'NAME', 'FREE'");
    table_free(table);
}
END_TEST

START_TEST(only_new_rows_are_written_again)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    struct table *table = sample();

    table_write_new(table, seen, text);
    ck_assert_str_eq(text->str,
                     "NAME   FREE\nb      53 GiB\na      14356 MiB\nd      -\nc      5 GiB\n");
    g_string_truncate(text, 0);
    table_write_new(table, seen, text);
    ck_assert_str_eq(text->str, "");
    table_cell(table, "e");
    table_cell(table, "1 GiB");
    table_write_new(table, seen, text);
    ck_assert_str_eq(text->str, "e      1 GiB\n");
    table_free(table);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("jsonpath");
    TCase *tc = tcase_create("jsonpath");

    tcase_add_loop_test(tc, a_template_takes_parts, 0, G_N_ELEMENTS(written));
    tcase_add_loop_test(tc, what_is_not_understood_is_refused, 0, G_N_ELEMENTS(refused));
    tcase_add_loop_test(tc, rows_are_sorted_by_a_column, 0, G_N_ELEMENTS(orders));
    tcase_add_test(tc, an_unknown_column_is_named);
    tcase_add_test(tc, only_new_rows_are_written_again);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
