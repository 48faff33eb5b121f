/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/yaml_document.h"

#include "json/json.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

static char *to_json(const cJSON *tree)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_value(&writer, tree);
    return g_string_free(text, FALSE);
}

/* Loads a copy that ends where the text does. */
static cJSON *load(const char *text, GError **error)
{
    const size_t length = strlen(text);
    g_autofree char *copy = g_memdup2(text, MAX(length, 1));

    return yaml_load(copy, length, error);
}

struct accepted {
    const char *yaml;
    const char *json;
};

static const struct accepted accepted[] = {
    {"", "null"},
    {"---\n", "null"},
    {"a: b\n", "{\"a\":\"b\"}"},
    {"a:\n- 1\n- two\n- {x: y}\n- [p, q]\n", "{\"a\":[1,\"two\",{\"x\":\"y\"},[\"p\",\"q\"]]}"},
    {"{\"a\": [1, true, null, \"x\"]}", "{\"a\":[1,true,null,\"x\"]}"},
    /* What JSON would not make something else of is a string. */
    {"[1, -1, 0, 1.5, 1e3, -0.5E-1]", "[1,-1,0,1.5,1000,-0.05]"},
    {"[+1, 01, 0x1f, 1_000, .5, 5., 1e, .inf, .nan, 1.2.3, 12:30:45]",
     "[\"+1\",\"01\",\"0x1f\",\"1_000\",\".5\",\"5.\",\"1e\",\".inf\",\".nan\",\"1.2.3\","
     "\"12:30:45\"]"},
    {"[true, false, yes, No, on, True]", "[true,false,\"yes\",\"No\",\"on\",\"True\"]"},
    {"[null, ~, {a: , b}, Null]", "[null,null,{\"a\":null,\"b\":null},\"Null\"]"},
    {"[\"1\", 'true', !!str 1, ! 2, !!int 3]", "[\"1\",\"true\",\"1\",\"2\",3]"},
    {"a: |\n  one\n  two\nb: >\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\\n\"}"},
    {"1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}"},
    {"a: &x [1, 2]\nb: *x\nc: {d: *x}\n", "{\"a\":[1,2],\"b\":[1,2],\"c\":{\"d\":[1,2]}}"},
    {"- &k name\n- {*k : 1}\n", "[\"name\",{\"name\":1}]"},
    {"a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}"},
    {"# comment\na: 1 # more\n", "{\"a\":1}"},
    {"\xef\xbb\xbf"
     "a: \xc3\xa9\n",
     "{\"a\":\"\xc3\xa9\"}"},
};

START_TEST(makes_the_tree_that_json_would)
{
    g_autoptr(GError) error = NULL;
    cJSON *tree = load(accepted[_i].yaml, &error);

    ck_assert_msg(tree, "%s: %s", accepted[_i].yaml, error ? error->message : "");
    g_autofree char *json = to_json(tree);
    ck_assert_str_eq(json, accepted[_i].json);
    cJSON_Delete(tree);
}
END_TEST

struct refused {
    const char *yaml;
    int code;
    const char *message;
};

static const struct refused refused[] = {
    {"a: b: c", GPULEDGER_ERROR_INVALID, "line 1, column 5: invalid YAML: mapping values"},
    {"a: [1", GPULEDGER_ERROR_INVALID, "invalid YAML"},
    {"a: 1\na: 2\n", GPULEDGER_ERROR_INVALID, "line 2, column 1: the key \"a\" comes twice"},
    {"a: *x", GPULEDGER_ERROR_INVALID, "line 1, column 4: the alias \"*x\""},
    {"a: &x [*x]", GPULEDGER_ERROR_INVALID, "the alias \"*x\" has no complete anchor"},
    {"a: &x 1\n---\nb: *x\n", GPULEDGER_ERROR_INVALID, "the alias \"*x\""},
    {"b: &x {c: 1}\na: {<<: *x}\n", GPULEDGER_ERROR_INVALID, "merge keys"},
    {"? [1]\n: 2\n", GPULEDGER_ERROR_INVALID, "a key must be plain text"},
    {"- &x [1]\n- {*x : 1}\n", GPULEDGER_ERROR_INVALID, "a key must be plain text"},
    {"a: !!binary aGk=", GPULEDGER_ERROR_INVALID, "the tag \"tag:yaml.org,2002:binary\""},
    {"a: !mine 1", GPULEDGER_ERROR_INVALID, "the tag \"!mine\""},
    {"a: \"x\\0y\"", GPULEDGER_ERROR_INVALID, "NUL"},
    {"\"x\\0y\": a", GPULEDGER_ERROR_INVALID, "NUL"},
    {"a: 1\n---\nb: 1\n", GPULEDGER_ERROR_INVALID, "several YAML documents"},
    {"a: \xff\xfe\n", GPULEDGER_ERROR_INVALID, "invalid YAML"},
    {"\t- a", GPULEDGER_ERROR_INVALID, "invalid YAML"},
};

START_TEST(says_where_and_what_is_wrong)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!load(refused[_i].yaml, &error));
    ck_assert_int_eq(error->code, refused[_i].code);
    ck_assert_msg(strstr(error->message, refused[_i].message), "%s", error->message);
    ck_assert_msg(g_str_has_prefix(error->message, "line "), "%s", error->message);
}
END_TEST

START_TEST(bounds_depth)
{
    g_autoptr(GString) deep = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < YAML_DEPTH_MAX; i++)
        g_string_append_c(deep, '[');
    for (unsigned i = 0; i < YAML_DEPTH_MAX; i++)
        g_string_append_c(deep, ']');
    cJSON *tree = load(deep->str, &error);
    ck_assert_msg(tree, "%s", error ? error->message : "");
    cJSON_Delete(tree);

    /* Never closed: refused where the limit is, not at the end. */
    g_string_prepend_c(deep, '[');
    ck_assert(!load(deep->str, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
}
END_TEST

START_TEST(bounds_what_aliases_expand_to)
{
    g_autoptr(GString) laughs = g_string_new("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    g_autoptr(GError) error = NULL;

    for (unsigned i = 1; i < 12; i++) {
        g_string_append_printf(laughs, "a%u: &a%u [", i, i);
        for (unsigned j = 0; j < 10; j++)
            g_string_append_printf(laughs, "%s*a%u", j ? ", " : "", i - 1);
        g_string_append(laughs, "]\n");
    }
    ck_assert(!load(laughs->str, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_msg(strstr(error->message, "aliases"), "%s", error->message);
}
END_TEST

START_TEST(bounds_depth_through_aliases)
{
    g_autoptr(GString) tower = g_string_new("a0: &a0 [x]\n");
    g_autoptr(GError) error = NULL;

    for (unsigned i = 1; i <= YAML_DEPTH_MAX; i++)
        g_string_append_printf(tower, "a%u: &a%u [*a%u]\n", i, i, i - 1);
    ck_assert(!load(tower->str, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_msg(strstr(error->message, "nested"), "%s", error->message);
}
END_TEST

START_TEST(a_wide_mapping_keeps_its_keys_apart)
{
    g_autoptr(GString) wide = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < 20000; i++)
        g_string_append_printf(wide, "k%u: %u\n", i, i);
    cJSON *tree = load(wide->str, &error);
    ck_assert_msg(tree, "%s", error ? error->message : "");
    ck_assert_int_eq(cJSON_GetArraySize(tree), 20000);
    cJSON_Delete(tree);

    g_string_append(wide, "k19999: 1\n");
    ck_assert(!load(wide->str, &error));
    ck_assert_msg(strstr(error->message, "the key \"k19999\" comes twice"), "%s", error->message);
}
END_TEST

START_TEST(loads_several_documents)
{
    static const char text[] = "a: &x 1\n---\n- 2\n---\n";
    g_autoptr(GError) error = NULL;
    cJSON *documents = yaml_load_all(text, strlen(text), &error);

    ck_assert_msg(documents, "%s", error ? error->message : "");
    g_autofree char *json = to_json(documents);
    ck_assert_str_eq(json, "[{\"a\":1},[2],null]");
    cJSON_Delete(documents);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("yaml_document");
    TCase *tcase = tcase_create("load");

    tcase_add_loop_test(tcase, makes_the_tree_that_json_would, 0, G_N_ELEMENTS(accepted));
    tcase_add_loop_test(tcase, says_where_and_what_is_wrong, 0, G_N_ELEMENTS(refused));
    tcase_add_test(tcase, bounds_depth);
    tcase_add_test(tcase, bounds_what_aliases_expand_to);
    tcase_add_test(tcase, bounds_depth_through_aliases);
    tcase_add_test(tcase, a_wide_mapping_keeps_its_keys_apart);
    tcase_add_test(tcase, loads_several_documents);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
