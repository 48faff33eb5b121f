/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/extender.h"

#include "parsed_json.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

static struct filter_args decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    struct filter_args args;

    ck_assert_msg(filter_args_parse(arena, text, strlen(text), &args, &error), "%s: %s", text,
                  error ? error->message : "");
    return args;
}

static char *encode(const struct filter_args *args, const enum reason *reasons)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    filter_result_encode(&writer, &(struct filter_result){.args = args, .reasons = reasons});
    return g_string_free(text, FALSE);
}

/* --- filter --------------------------------------------------------------------------------- */

#define POD "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\"}}"

static const char *const by_name[] = {
    "{\"Pod\":" POD ",\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\",\"n3\"]}",
    "{\"NodeNames\":[\"n1\",\"n2\",\"n3\"],\"Unknown\":{},\"Pod\":" POD "}",
    "{\"pod\":" POD ",\"nodenames\":[\"n1\",\"n2\",\"n3\"],\"NODES\":null}",
};

START_TEST(reads_node_names)
{
    const struct filter_args args = decode(by_name[_i]);

    ck_assert_str_eq(args.pod.uid, "u");
    ck_assert(args.by_name);
    ck_assert_uint_eq(args.n_names, 3);
    ck_assert_str_eq(args.names[0], "n1");
    ck_assert_str_eq(args.names[2], "n3");
    ck_assert_ptr_null(args.nodes);
    ck_assert_ptr_null(args.spans);
}
END_TEST

START_TEST(only_the_outermost_keys_ignore_case)
{
    static const char wrong_case[] = "{\"Pod\":{\"metadata\":{\"Name\":\"p\",\"namespace\":\"n\"}},"
                                     "\"NodeNames\":[]}";
    g_autoptr(GError) error = NULL;
    struct filter_args args;

    ck_assert(
        !filter_args_parse(arena, wrong_case, strlen(wrong_case), &args, &error));
    ck_assert_str_eq(error->message, "field 'Pod': field 'metadata.name': missing");
}
END_TEST

START_TEST(an_empty_list_is_a_list)
{
    const enum reason none = REASON_NONE;
    struct filter_args args = decode("{\"Pod\":" POD ",\"NodeNames\":[]}");

    ck_assert(args.by_name);
    ck_assert_uint_eq(args.n_names, 0);
    g_autofree char *names = encode(&args, &none);
    ck_assert_str_eq(names, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},"
                            "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");

    args = decode("{\"Pod\":" POD ",\"Nodes\":{\"metadata\":{},\"items\":null}}");
    ck_assert(!args.by_name);
    ck_assert_uint_eq(args.n_names, 0);
    g_autofree char *nodes = encode(&args, &none);
    ck_assert_str_eq(nodes, "{\"Nodes\":{\"metadata\":{},\"items\":[]},\"NodeNames\":null,"
                            "\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
}
END_TEST

START_TEST(the_uid_is_optional)
{
    const struct filter_args args =
        decode("{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\"}},\"NodeNames\":[]}");

    ck_assert_ptr_null(args.pod.uid);
    ck_assert_str_eq(args.pod.name, "p");
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} bad_filters[] = {
    {"[]", "expected a JSON object"},
    {"{}", "field 'Pod': missing"},
    {"{\"Pod\":null,\"NodeNames\":[]}", "field 'Pod': missing"},
    {"{\"Pod\":[],\"NodeNames\":[]}", "field 'Pod': expected an object"},
    {"{\"Pod\":{},\"NodeNames\":[]}", "field 'Pod': field 'metadata.name': missing"},
    {"{\"Pod\":" POD "}", "expected one of 'NodeNames' and 'Nodes', got neither"},
    {"{\"Pod\":" POD ",\"Nodes\":null,\"NodeNames\":null}",
     "expected one of 'NodeNames' and 'Nodes', got neither"},
    {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[]},\"NodeNames\":[]}",
     "expected one of 'NodeNames' and 'Nodes', got both"},
    {"{\"Pod\":" POD ",\"NodeNames\":{}}", "field 'NodeNames': expected an array"},
    {"{\"Pod\":" POD ",\"NodeNames\":[\"a\",5]}",
     "field 'NodeNames': item 1: expected the name of a node"},
    {"{\"Pod\":" POD ",\"NodeNames\":[\"\"]}",
     "field 'NodeNames': item 0: expected the name of a node"},
    {"{\"Pod\":" POD ",\"Nodes\":[]}", "field 'Nodes': expected an object"},
    {"{\"Pod\":" POD ",\"Nodes\":{\"items\":{}}}", "field 'Nodes.items': expected an array"},
    {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\"}},null]}}",
     "field 'Nodes.items': item 1: expected a JSON object"},
    {"{\"Pod\":" POD ",\"Nodes\":{\"items\":[{\"metadata\":{}}]}}",
     "field 'Nodes.items': item 0: field 'metadata.name': missing"},
};

START_TEST(says_what_is_wrong_with_a_filter_call)
{
    g_autoptr(GError) error = NULL;
    struct filter_args args = {.n_names = 77};

    const char *text = bad_filters[_i].text;

    ck_assert_msg(!filter_args_parse(arena, text, strlen(text), &args, &error), "%s", text);
    ck_assert_str_eq(error->message, bad_filters[_i].message);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_uint_eq(args.n_names, 77);
}
END_TEST

static const struct {
    const char *names; /* the array in the call */
    bool lifted;       /* read from the text, without a tree */
    const char *answer;
} name_lists[] = {
    {"[\"a\",\"b\",\"c\",\"d\",\"e\"]", true, "[\"a\",\"b\",\"d\"]"},
    {" [ \"a\" ,\n\"b\" , \"c\",\"d\",\"e\" ] ", true, "[\"a\" ,\n\"b\",\"d\"]"},
    {"[\"\\u0061\",\"b\",\"c\",\"d\",\"e\"]", false, "[\"a\",\"b\",\"d\"]"},
    {"[\"a]\",\"b,\",\"c\",\"{\",\"e\"]", true, "[\"a]\",\"b,\",\"{\"]"},
    {"[\"\303\244\",\"b\",\"c\",\"d\",\"e\"]", false, "[\"\303\244\",\"b\",\"d\"]"},
};

/* The third and the fifth fail; the others go back as they came. */
START_TEST(names_read_from_the_text_are_the_same)
{
    const enum reason reasons[] = {REASON_NONE, REASON_NONE, REASON_NODE_UNKNOWN, REASON_NONE,
                                   REASON_NODE_UNKNOWN};
    g_autofree char *text = g_strdup_printf("{\"NodeNames\":%s,\"Pod\":" POD "}",
                                            name_lists[_i].names);
    struct filter_args args = decode(text);

    ck_assert_uint_eq(args.n_names, 5);
    ck_assert_str_eq(args.names[2], "c");
    ck_assert(args.by_name);
    ck_assert_int_eq(args.strings.values != NULL, name_lists[_i].lifted);
    g_autofree char *answer = encode(&args, reasons);
    g_autofree char *expected = g_strdup_printf("{\"Nodes\":null,\"NodeNames\":%s,\"FailedNodes\":{",
                                                name_lists[_i].answer);
    ck_assert_msg(g_str_has_prefix(answer, expected), "%s", answer);
}
END_TEST

/* Each name that has a mark with it, however the list is laid out. */
START_TEST(every_mark_is_named)
{
    static const int32_t scores[] = {0, 10, INT32_MIN, -7, INT32_MAX};
    g_autofree char *text =
        g_strdup_printf("{\"NodeNames\":%s,\"Pod\":" POD "}", name_lists[_i].names);
    struct filter_args args = decode(text);
    g_autoptr(GString) answer = g_string_new(NULL), expected = g_string_new("[");
    struct json_writer writer;

    json_writer_init(&writer, answer);
    prioritize_result_encode(&writer, &args, scores);
    for (size_t i = 1; i < G_N_ELEMENTS(scores); i++)
        g_string_append_printf(expected, "%s{\"Host\":\"%s\",\"Score\":%d}", i > 1 ? "," : "",
                               args.names[i], scores[i]);
    g_string_append_c(expected, ']');
    ck_assert_str_eq(answer->str, expected->str);
    g_string_truncate(answer, 0);
    json_writer_init(&writer, answer);
    prioritize_result_encode(&writer, &args, NULL);
    ck_assert_str_eq(answer->str, "[]");
}
END_TEST

static char *many_names(size_t n)
{
    GString *text = g_string_new("{\"Pod\":" POD ",\"NodeNames\":[");

    for (size_t i = 0; i < n; i++)
        g_string_append(text, i ? ",\"n\"" : "\"n\"");
    g_string_append(text, "]}");
    return g_string_free(text, FALSE);
}

START_TEST(the_number_of_nodes_is_bounded)
{
    g_autofree char *allowed = many_names(EXTENDER_NODES_MAX);
    g_autofree char *refused = many_names(EXTENDER_NODES_MAX + 1);
    g_autoptr(GError) error = NULL;
    struct filter_args args;

    ck_assert_uint_eq(decode(allowed).n_names, EXTENDER_NODES_MAX);
    ck_assert(!filter_args_parse(arena, refused, strlen(refused), &args, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_str_eq(error->message,
                     "field 'NodeNames': 50001 nodes, at most 50000 are accepted in one call");
}
END_TEST

START_TEST(every_reason_goes_to_its_list)
{
    GString *body = g_string_new("{\"Pod\":" POD ",\"NodeNames\":[");
    enum reason reasons[REASON_N];

    for (unsigned i = 0; i < REASON_N; i++) {
        g_string_append_printf(body, "%s\"n%u\"", i ? "," : "", i);
        reasons[i] = (enum reason)i;
    }
    g_string_append(body, "]}");
    const struct filter_args args = decode(body->str);
    g_autofree char *text = encode(&args, reasons);
    const cJSON *reply = parse(text);
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(reply, "NodeNames");
    const cJSON *failed = cJSON_GetObjectItemCaseSensitive(reply, "FailedNodes");
    const cJSON *hopeless = cJSON_GetObjectItemCaseSensitive(reply, "FailedAndUnresolvableNodes");

    ck_assert(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(reply, "Nodes")));
    ck_assert_str_eq(cJSON_GetObjectItemCaseSensitive(reply, "Error")->valuestring, "");
    ck_assert_int_eq(cJSON_GetArraySize(names), 1);
    ck_assert_str_eq(names->child->valuestring, "n0");
    ck_assert_int_eq(cJSON_GetArraySize(failed) + cJSON_GetArraySize(hopeless), REASON_N - 1);
    for (unsigned i = 1; i < REASON_N; i++) {
        const struct reason_info *info = reason_info((enum reason)i);
        const cJSON *item =
            cJSON_GetObjectItemCaseSensitive(info->resolvable ? failed : hopeless, args.names[i]);
        ck_assert_msg(item != NULL, "%s", info->code);
        ck_assert_str_eq(item->valuestring, info->text);
    }
    g_string_free(body, TRUE);
}
END_TEST

START_TEST(names_are_escaped)
{
    static const enum reason reasons[] = {REASON_NONE, REASON_INSUFFICIENT_MEMORY};
    const struct filter_args args =
        decode("{\"Pod\":" POD ",\"NodeNames\":[\"a\\\"\",\"b\\n\xff\"]}");
    g_autofree char *text = encode(&args, reasons);
    g_autofree char *expected = g_strdup_printf(
        "{\"Nodes\":null,\"NodeNames\":[\"a\\\"\"],\"FailedNodes\":{\"b\\n\xef\xbf\xbd\":\"%s\"},"
        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}",
        reason_info(REASON_INSUFFICIENT_MEMORY)->text);

    ck_assert_str_eq(text, expected);
}
END_TEST

/* The second body cannot be handed on by its text, so its numbers become doubles. */
static const struct {
    const char *text;
    const char *item;
} whole_nodes[] = {
    {"{\"Pod\":" POD ",\"nodes\":{\"metadata\":{},\"ITEMS\":[{\"metadata\":{\"name\":\"n1\"}} , "
     "{ \"metadata\":{\"name\":\"n2\"}, \"x\":9007199254740993.10 }]},\"NodeNames\":null}",
     "{ \"metadata\":{\"name\":\"n2\"}, \"x\":9007199254740993.10 }"},
    {"{\"P\\u006fd\":" POD ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\"}},"
     "{ \"metadata\":{\"name\":\"n2\"}, \"x\":[1, 2.5 ]}]}}",
     "{\"metadata\":{\"name\":\"n2\"},\"x\":[1,2.5]}"},
};

START_TEST(whole_nodes_go_back_whole)
{
    static const enum reason reasons[] = {REASON_NOT_GPU_SHARE, REASON_NONE};
    const struct filter_args args = decode(whole_nodes[_i].text);

    ck_assert(!args.by_name);
    ck_assert_uint_eq(args.n_names, 2);
    ck_assert_str_eq(args.names[0], "n1");
    ck_assert_str_eq(args.names[1], "n2");
    ck_assert_ptr_nonnull(args.nodes);
    ck_assert_int_eq(args.spans != NULL, _i == 0);
    g_autofree char *text = encode(&args, reasons);
    g_autofree char *expected = g_strdup_printf(
        "{\"Nodes\":{\"metadata\":{},\"items\":[%s]},\"NodeNames\":null,\"FailedNodes\":{},"
        "\"FailedAndUnresolvableNodes\":{\"n1\":\"%s\"},\"Error\":\"\"}",
        whole_nodes[_i].item, reason_info(REASON_NOT_GPU_SHARE)->text);
    ck_assert_str_eq(text, expected);
}
END_TEST

START_TEST(an_error_carries_no_nodes)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    filter_error_encode(&writer, "not \"synced\"");
    ck_assert_str_eq(text->str,
                     "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
                     "\"FailedAndUnresolvableNodes\":null,\"Error\":\"not \\\"synced\\\"\"}");
    g_string_free(text, TRUE);
}
END_TEST

/* --- bind ----------------------------------------------------------------------------------- */

static const char *const binds[] = {
    "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"n\"}",
    "{\"podname\":\"p\",\"PODNAMESPACE\":\"ns\",\"podUID\":\"u\",\"node\":\"n\",\"more\":[]}",
};

START_TEST(reads_bind_arguments)
{
    g_autoptr(GError) error = NULL;
    struct bind_args args;

    ck_assert(bind_args_decode(arena, parse(binds[_i]), &args, &error));
    ck_assert_str_eq(args.pod_name, "p");
    ck_assert_str_eq(args.pod_namespace, "ns");
    ck_assert_str_eq(args.pod_uid, "u");
    ck_assert_str_eq(args.node, "n");
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} bad_binds[] = {
    {"\"x\"", "expected a JSON object"},
    {"{}", "field 'PodName': missing"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"\"}", "field 'PodNamespace': must not be empty"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":null}", "field 'PodUID': missing"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":[\"n\"]}",
     "field 'Node': expected a string"},
};

/* Nobody honest writes a key twice, and what checks are made, they are made of what is bound. Go's
 * decoder would take the last one. */
START_TEST(of_equal_keys_the_first_counts)
{
    static const char text[] = "{\"PodName\":\"a\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\","
                               "\"Node\":\"n1\",\"Node\":\"n2\",\"podname\":\"b\","
                               "\"PODUID\":\"v\",\"PodNamespace\":\"other\"}";
    struct bind_args args;

    ck_assert(bind_args_decode(arena, parse(text), &args, NULL));
    ck_assert_str_eq(args.node, "n1");
    ck_assert_str_eq(args.pod_name, "a");
    ck_assert_str_eq(args.pod_uid, "u");
    ck_assert_str_eq(args.pod_namespace, "ns");
}
END_TEST

START_TEST(says_what_is_wrong_with_a_bind_call)
{
    g_autoptr(GError) error = NULL;
    struct bind_args args = {.node = "untouched"};

    ck_assert(!bind_args_decode(arena, parse(bad_binds[_i].text), &args, &error));
    ck_assert_str_eq(error->message, bad_binds[_i].message);
    ck_assert_str_eq(args.node, "untouched");
}
END_TEST

START_TEST(answers_a_bind)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    bind_result_encode(&writer, "");
    ck_assert_str_eq(text->str, "{\"Error\":\"\"}");
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    bind_result_encode(&writer, "no\nroom");
    ck_assert_str_eq(text->str, "{\"Error\":\"no\\nroom\"}");
    g_string_free(text, TRUE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("extender_bodies");
    TCase *filter = tcase_create("filter");
    TCase *bind = tcase_create("bind");
    TCase *const cases[] = {filter, bind};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        tcase_add_checked_fixture(cases[i], setup, teardown);
        suite_add_tcase(suite, cases[i]);
    }
    tcase_add_loop_test(filter, reads_node_names, 0, G_N_ELEMENTS(by_name));
    tcase_add_test(filter, only_the_outermost_keys_ignore_case);
    tcase_add_test(filter, an_empty_list_is_a_list);
    tcase_add_test(filter, the_uid_is_optional);
    tcase_add_loop_test(filter, says_what_is_wrong_with_a_filter_call, 0,
                        G_N_ELEMENTS(bad_filters));
    tcase_add_loop_test(filter, every_mark_is_named, 0, G_N_ELEMENTS(name_lists));
    tcase_add_loop_test(filter, names_read_from_the_text_are_the_same, 0,
                        G_N_ELEMENTS(name_lists));
    tcase_add_test(filter, the_number_of_nodes_is_bounded);
    tcase_add_test(filter, every_reason_goes_to_its_list);
    tcase_add_test(filter, names_are_escaped);
    tcase_add_loop_test(filter, whole_nodes_go_back_whole, 0, G_N_ELEMENTS(whole_nodes));
    tcase_add_test(filter, an_error_carries_no_nodes);
    tcase_add_loop_test(bind, reads_bind_arguments, 0, G_N_ELEMENTS(binds));
    tcase_add_loop_test(bind, says_what_is_wrong_with_a_bind_call, 0, G_N_ELEMENTS(bad_binds));
    tcase_add_test(bind, of_equal_keys_the_first_counts);
    tcase_add_test(bind, answers_a_bind);

    return suite_run(suite);
}
