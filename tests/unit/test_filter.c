/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "base/metrics.h"
#include "suite.h"
#include "wire/extender.h"

#include <string.h>

static struct world world;
static struct fake_cluster *cluster;

static void add_pod(const struct fake_pod *pod)
{
    fake_cluster_add_pod(cluster, pod);
    world_catch_up(&world);
}

/* Two cards of 10 units each, but for "small", two of 2, "mono", one of 10, and "plain", none. Both
 * cards of "full" are, and those of "sick" are unhealthy. */
static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "full", 20, 2);
    fake_cluster_put_node(cluster, "sick", 20, 2);
    fake_cluster_put_node(cluster, "small", 4, 2);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    fake_cluster_put_unhealthy(cluster, "sick", "0,1");
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "f0", .node = "full", .mem = 10, .card = "0"});
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "f1", .node = "full", .mem = 9, .card = "1"});
    world_sync(&world);
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

/* Sends a body twice: the answers are alike, and the ledger is as before. */
static char *ask_body(const char *body)
{
    g_autofree char *before = world_nodes(&world);
    g_autoptr(GString) again = g_string_new(NULL);
    GString *reply = g_string_new(NULL);

    extender_filter(&world.extender, body, strlen(body), reply);
    extender_filter(&world.extender, body, strlen(body), again);
    g_autofree char *after = world_nodes(&world);
    ck_assert_str_eq(before, after);
    ck_assert_str_eq(reply->str, again->str);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
    return g_string_free(reply, FALSE);
}

static char *ask(const char *pod, const char *nodes)
{
    g_autofree char *body = world_filter_body(&world, pod, nodes);
    return ask_body(body);
}

/* `passing` and the maps are the JSON between their brackets. */
static void expect(const char *pod, const char *nodes, const char *passing, const char *failed,
                   const char *hopeless)
{
    g_autofree char *reply = ask(pod, nodes);
    g_autofree char *expected =
        g_strdup_printf("{\"Nodes\":null,\"NodeNames\":[%s],\"FailedNodes\":{%s},"
                        "\"FailedAndUnresolvableNodes\":{%s},\"Error\":\"\"}",
                        passing, failed, hopeless);
    ck_assert_str_eq(reply, expected);
}

static void expect_error(const char *reply, const char *text)
{
    g_autofree char *expected =
        g_strdup_printf("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
                        "\"FailedAndUnresolvableNodes\":null,\"Error\":\"%s\"}",
                        text);
    ck_assert_str_eq(reply, expected);
}

#define NO_ROOM "Insufficient GPU Memory in one device"
#define TOO_SMALL NO_ROOM ": the request is larger than any card of the node"
#define UNHEALTHY NO_ROOM ": the cards large enough are unhealthy"
#define UNKNOWN "The node is not yet known to gpuledger"
#define NOT_SHARED "The node is not for GPU share, need skip"
#define SEVERAL "The node's GPU share plugin cannot serve several GPU containers of one pod"
#define INIT "The node's GPU share plugin cannot serve GPU memory in an init container"
#define AWAITING "A pod of the same size on the node still waits for its GPU"
#define ELSEWHERE "The pod holds a GPU on another node"

/* --- answers -------------------------------------------------------------------------------- */

START_TEST(every_node_gets_its_answer_in_the_order_asked)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    expect("p", "mono,full,duo,nope,plain,small,sick,zzz", "\"mono\",\"duo\"",
           "\"full\":\"" NO_ROOM "\"",
           "\"nope\":\"" UNKNOWN "\",\"plain\":\"" NOT_SHARED "\",\"small\":\"" TOO_SMALL
           "\",\"sick\":\"" UNHEALTHY "\",\"zzz\":\"" UNKNOWN "\"");
    expect("p", "full", "", "\"full\":\"" NO_ROOM "\"", "");
}
END_TEST

/* Nor does it read anything but the ledger. */
START_TEST(asking_writes_nothing)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    g_autofree char *before = world_nodes(&world);
    g_autofree char *passed = ask("p", "mono,duo,full");
    g_autofree char *marks = world_prioritize(&world, PRIORITIZE_ALL, "p", "mono,duo");
    g_autofree char *after = world_nodes(&world);

    ck_assert_ptr_nonnull(strstr(passed, "duo"));
    ck_assert_ptr_nonnull(strstr(marks, "=10"));
    ck_assert_str_eq(before, after);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_uint_eq(fake_cluster_n_annotated(cluster), 0);
}
END_TEST

START_TEST(the_last_unit_of_a_card_can_be_had)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 1});
    add_pod(&(struct fake_pod){.name = "q", .mem = 10});
    add_pod(&(struct fake_pod){.name = "r", .mem = 11});
    expect("p", "full", "\"full\"", "", "");
    expect("q", "duo,full", "\"duo\"", "\"full\":\"" NO_ROOM "\"", "");
    expect("r", "duo", "", "", "\"duo\":\"" TOO_SMALL "\"");
}
END_TEST

START_TEST(whole_nodes_come_back_as_they_came)
{
#define NODE(name) "{\"metadata\":{\"name\":\"" name "\",\"x\" : [1.50, null]}, \"y\":\"\\u00e9\"}"
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    g_autofree char *object = fake_cluster_pod_json(cluster, "p");
    g_autofree char *body = g_strdup_printf(
        "{\"pod\":%s,\"nodes\":{\"metadata\":{},\"items\":[%s,%s,%s]},\"nodeNames\":null}", object,
        NODE("full"), NODE("duo"), NODE("plain"));
    g_autofree char *reply = ask_body(body);
    ck_assert_str_eq(reply, "{\"Nodes\":{\"metadata\":{},\"items\":[" NODE(
                                "duo") "]},\"NodeNames\":null,\"FailedNodes\":{\"full\":\"" NO_ROOM
                                       "\"},\"FailedAndUnresolvableNodes\":{\"plain\":\"" NOT_SHARED
                                       "\"},\"Error\":\"\"}");
}
END_TEST

START_TEST(no_nodes_no_answer)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    g_autofree char *object = fake_cluster_pod_json(cluster, "p");
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[]}", object);
    g_autofree char *reply = ask_body(body);
    ck_assert_str_eq(reply, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},"
                            "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
}
END_TEST

/* So many names, of which the first are of one length and the others of another. */
static char *list_names(int n, int first, int length, int other_length)
{
    GString *names = g_string_new(NULL);

    for (int i = 0; i < n; i++)
        g_string_append_printf(names, "%s\"%0*d\"", i ? "," : "", i < first ? length : other_length,
                               i);
    return g_string_free(names, FALSE);
}

static const struct {
    int n, first, length, other_length;
} lists[] = {{63, 63, 4, 4},     {64, 64, 5, 5},    {65, 65, 6, 6},     {1000, 64, 3, 200},
             {1000, 64, 200, 4}, {1000, 500, 8, 9}, {1000, 1000, 7, 7}, {5000, 70, 253, 5}};

START_TEST(names_come_back_however_many_and_long)
{
    g_autofree char *names =
        list_names(lists[_i].n, lists[_i].first, lists[_i].length, lists[_i].other_length);
    g_autofree char *body =
        g_strdup_printf("{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\"},"
                        "\"spec\":{}},\"NodeNames\":[%s]}",
                        names);
    g_autofree char *wanted = g_strdup_printf("\"NodeNames\":[%s],\"FailedNodes\":{},", names);
    g_autofree char *reply = ask_body(body);

    ck_assert(strstr(reply, wanted));
}
END_TEST

/* Not even an unknown node is refused to a pod that has no business with us. */
START_TEST(a_pod_without_gpu_passes_everywhere)
{
    static const char *const containers[] = {
        NULL,
        "[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"0\"}}}]",
        "[{\"resources\":{\"limits\":{\"example.com/gpu\":\"1\"}}}]",
        "[]",
    };

    add_pod(&(struct fake_pod){.name = "p", .containers = containers[_i]});
    expect("p", "full,plain,nope", "\"full\",\"plain\",\"nope\"", "", "");
}
END_TEST

START_TEST(what_the_plugin_cannot_serve_is_refused_on_nodes_with_several_cards)
{
#define GPU(n) "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n "\"}}}"
    static const struct {
        const char *containers, *init_containers, *text;
    } pods[] = {
        {"[" GPU("2") "," GPU("2") "]", NULL, SEVERAL},
        {"[" GPU("2") "]", "[" GPU("2") "]", INIT},
        {"[{}]", "[" GPU("2") "]", INIT},
    };
    g_autofree char *failed =
        g_strdup_printf("\"duo\":\"%s\",\"mono\":\"%s\"", pods[_i].text, pods[_i].text);

    add_pod(&(struct fake_pod){.name = "p",
                               .containers = pods[_i].containers,
                               .init_containers = pods[_i].init_containers});
    expect("p", "duo,mono", "", "", failed);
}
END_TEST

START_TEST(the_newer_plugin_serves_any_container_on_a_single_card)
{
    const struct store_options options = {
        .policy = &policies[0], .patience_ms = 60000, .dialects.gpushare_any_on_single_card = true};
    store_free(world.store);
    world.extender.store = world.store = store_new(&options);
    world_sync(&world);
    add_pod(&(struct fake_pod){.name = "p", .containers = "[" GPU("2") "," GPU("2") "]"});
    expect("p", "duo,mono", "\"mono\"", "", "\"duo\":\"" SEVERAL "\"");
}
END_TEST

START_TEST(a_pod_without_a_card_takes_room_on_every_card)
{
    add_pod(&(struct fake_pod){.name = "bare", .node = "duo", .phase = "Running", .mem = 5,
                               .card = "lost"});
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    add_pod(&(struct fake_pod){.name = "q", .mem = 5});
    expect("p", "duo", "", "\"duo\":\"" NO_ROOM "\"", "");
    expect("q", "duo", "\"duo\"", "", "");
}
END_TEST

/* --- pods under way ------------------------------------------------------------------------- */

START_TEST(a_pod_whose_bind_is_not_settled_may_only_go_where_it_is)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_DELAY_EFFECT});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&world, "p", "duo",
                      "it is not known whether the pod was bound: fake: timed out");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);

    g_autofree char *before = world_nodes(&world);
    g_autofree char *reply = world_filter(&world, "p", "mono,duo,nope");
    ck_assert_str_eq(reply, "{\"Nodes\":null,\"NodeNames\":[\"duo\"],\"FailedNodes\":{},"
                            "\"FailedAndUnresolvableNodes\":{\"mono\":\"" ELSEWHERE
                            "\",\"nope\":\"" ELSEWHERE "\"},\"Error\":\"\"}");
    g_autofree char *other = world_filter(&world, "p", "mono");
    expect_error(other, "the pod holds a GPU on node 'duo' from an earlier bind that is not "
                        "settled; try again");
    g_autofree char *after = world_nodes(&world);
    ck_assert_str_eq(before, after);
}
END_TEST

START_TEST(an_equal_pod_passes_while_the_first_is_expected_to_be_matched)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    add_pod(&(struct fake_pod){.name = "q", .mem = 6});
    add_pod(&(struct fake_pod){.name = "r", .mem = 5});
    world_expect_bind(&world, "p", "duo", "");
    expect("q", "duo", "\"duo\"", "", "");
    store_set_policy(world.store, &policies[0], 0);
    expect("q", "duo,full", "", "\"full\":\"" NO_ROOM "\"", "\"duo\":\"" AWAITING "\"");
    expect("r", "duo", "\"duo\"", "", ""); /* another size cannot be mistaken */
    world_catch_up(&world);
    expect("q", "duo", "", "", "\"duo\":\"" AWAITING "\"");
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    world_catch_up(&world);
    expect("q", "duo", "\"duo\"", "", "");
}
END_TEST

/* What the watch has confirmed is as patient as what we remember. */
START_TEST(patience_counts_from_the_bind)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    add_pod(&(struct fake_pod){.name = "q", .mem = 6});
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    expect("q", "duo", "\"duo\"", "", "");
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1");
    world_catch_up(&world);
    expect("q", "duo", "\"duo\"", "", ""); /* nobody's word makes it older */
    struct moment moment = {.now_ns = G_MAXINT64, .now_ms = g_get_monotonic_time() / 1000};
    store_set_moment(world.store, &moment);
    expect("q", "duo", "", "", "\"duo\":\"" AWAITING "\"");
    store_set_moment(world.store, NULL);
}
END_TEST

/* --- errors --------------------------------------------------------------------------------- */

START_TEST(before_the_first_lists_it_says_so)
{
    struct world fresh;

    world_init(&fresh);
    fake_cluster_add_pod(fresh.cluster, &(struct fake_pod){.name = "p", .mem = 6});
    fake_cluster_put_node(fresh.cluster, "duo", 20, 2);
    fake_cluster_list(fresh.cluster, fresh.store, FEED_NODES);
    g_autofree char *reply = world_filter(&fresh, "p", "duo");
    expect_error(reply, "gpuledger has not read the cluster's pods, configmaps yet; try again");
    world_sync(&fresh);
    g_autofree char *later = world_filter(&fresh, "p", "duo");
    ck_assert_ptr_nonnull(strstr(later, "\"NodeNames\":[\"duo\"]"));
    world_release(&fresh);
}
END_TEST

#define POD(rest)                                                                                  \
    "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\",\"uid\":\"u\"},\"spec\":{" rest "}}"
#define ASK(pod) "{\"Pod\":" pod ",\"NodeNames\":[\"duo\"]}"
#define ASK_FOR(amount)                                                                            \
    ASK(POD("\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"             \
            "gpu-mem\":" amount "}}}]"))

static const struct {
    const char *body;
    const char *text; /* a part of the error */
} bad_bodies[] = {
    {"", ""},
    {"null", ""},
    {"[]", ""},
    {"{", ""},
    {"{}", "'Pod'"},
    {"\xff\xfe", ""},
    {ASK(POD("")) "x", ""},
    {"{\"Pod\":" POD("") ",\"NodeNames\":[\"duo\"", ""},
    {"{\"Pod\":" POD("") "}", "'NodeNames' and 'Nodes'"},
    {"{\"Pod\":" POD("") ",\"NodeNames\":[\"duo\"],\"Nodes\":{\"items\":[]}}", "got both"},
    {"{\"Pod\":" POD("") ",\"NodeNames\":\"duo\"}", "'NodeNames'"},
    {"{\"Pod\":" POD("") ",\"NodeNames\":[\"duo\",7]}", "item 1"},
    {"{\"Pod\":" POD("") ",\"NodeNames\":[\"\"]}", "item 0"},
    {"{\"Pod\":" POD("") ",\"Nodes\":{\"items\":[{\"metadata\":{}}]}}", "metadata.name"},
    {"{\"Pod\":\"p\",\"NodeNames\":[\"duo\"]}", "'Pod'"},
    {ASK("{\"metadata\":{\"namespace\":\"ml\",\"uid\":\"u\"}}"), "metadata.name"},
    {ASK("{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\"}}"), "'Pod.metadata.uid'"},
    {ASK("{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\",\"uid\":\"\"}}"), "metadata.uid"},
    {ASK("{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\",\"uid\":7}}"), "metadata.uid"},
    {ASK(POD("\"priority\":1e30")), "spec.priority"},
    {ASK(POD("\"priority\":1e999")), ""},
    {ASK(POD("\"priority\":0.5")), "spec.priority"},
    {ASK(POD("\"containers\":{}")), "spec.containers"},
    {ASK(POD("\"containers\":[7]")), "spec.containers"},
    {ASK_FOR("\"-1\""), "aliyun.com/gpu-mem"},
    {ASK_FOR("\"1.5\""), "aliyun.com/gpu-mem"},
    {ASK_FOR("\"1e30\""), "aliyun.com/gpu-mem"},
    {ASK_FOR("\"six\""), "container 'c'"},
    {ASK_FOR("\"\""), "aliyun.com/gpu-mem"},
    {ASK_FOR("true"), "resources.limits"},
    {ASK_FOR("9007199254740993"), "resources.limits"},
};

static void expect_bad(const char *body, const char *text)
{
    uint64_t before = metrics_counted(COUNTER_REQUESTS_BAD, VERB_FILTER);
    g_autofree char *reply = ask_body(body);
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *json = json_parse(arena, reply, strlen(reply), NULL);
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "Error"));

    ck_assert_msg(error && *error && strstr(error, text), "%s", reply);
    ck_assert(g_str_has_prefix(reply, "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"));
    ck_assert_uint_lt(strlen(error), 300);
    ck_assert_uint_eq(metrics_counted(COUNTER_REQUESTS_BAD, VERB_FILTER), before + 2);
}

START_TEST(bad_bodies_are_errors_that_say_why)
{
    expect_bad(bad_bodies[_i].body, bad_bodies[_i].text);
}
END_TEST

START_TEST(oversized_bodies_are_errors_too)
{
    g_autoptr(GString) deep = g_string_new(NULL);
    g_autoptr(GString) wide = g_string_new("{\"Pod\":" POD("") ",\"NodeNames\":[\"n\"");
    g_autoptr(GString) long_pod = g_string_new("{\"NodeNames\":[\"n\"],\"Pod\":{\"metadata\":{"
                                               "\"namespace\":\"ml\",\"name\":\"p\",\"uid\":\"u\"},"
                                               "\"spec\":{\"containers\":[{}");

    for (int i = 0; i < 100000; i++)
        g_string_append_c(deep, '[');
    for (int i = 0; i < EXTENDER_NODES_MAX; i++)
        g_string_append(wide, ",\"n\"");
    g_string_append(wide, "]}");
    for (int i = 0; i < POD_CONTAINERS_MAX; i++)
        g_string_append(long_pod, ",{}");
    g_string_append(long_pod, "]}}}");
    expect_bad(deep->str, "");
    expect_bad(wide->str, "at most");
    expect_bad(long_pod->str, "more than");
}
END_TEST

/* A sum that overflows is not a small request. */
START_TEST(amounts_beyond_all_cards_never_fit)
{
    add_pod(&(struct fake_pod){.name = "p", .mem = INT64_MAX});
    add_pod(&(struct fake_pod){.name = "q", .mem = (INT64_C(1) << 44) + 1});
    expect("p", "duo,mono", "", "", "\"duo\":\"" TOO_SMALL "\",\"mono\":\"" TOO_SMALL "\"");
    expect("q", "duo", "", "", "\"duo\":\"" TOO_SMALL "\"");
}
END_TEST

START_TEST(refusals_are_counted_by_reason)
{
    uint64_t room = metrics_counted(COUNTER_REFUSALS, REASON_INSUFFICIENT_MEMORY);
    uint64_t unknown = metrics_counted(COUNTER_REFUSALS, REASON_NODE_UNKNOWN);
    uint64_t none = metrics_counted(COUNTER_REFUSALS, REASON_NONE);
    uint64_t bad = metrics_counted(COUNTER_REQUESTS_BAD, VERB_FILTER);

    add_pod(&(struct fake_pod){.name = "p", .mem = 6});
    g_free(world_filter(&world, "p", "full,a,b,duo,c"));
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, REASON_INSUFFICIENT_MEMORY), room + 1);
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, REASON_NODE_UNKNOWN), unknown + 3);
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, REASON_NONE), none);
    ck_assert_uint_eq(metrics_counted(COUNTER_REQUESTS_BAD, VERB_FILTER), bad);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("filter");
    TCase *tc = tcase_create("filter");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_node_gets_its_answer_in_the_order_asked);
    tcase_add_test(tc, asking_writes_nothing);
    tcase_add_test(tc, the_last_unit_of_a_card_can_be_had);
    tcase_add_test(tc, whole_nodes_come_back_as_they_came);
    tcase_add_test(tc, no_nodes_no_answer);
    tcase_add_loop_test(tc, names_come_back_however_many_and_long, 0, G_N_ELEMENTS(lists));
    tcase_add_loop_test(tc, a_pod_without_gpu_passes_everywhere, 0, 4);
    tcase_add_loop_test(tc, what_the_plugin_cannot_serve_is_refused_on_nodes_with_several_cards, 0,
                        3);
    tcase_add_test(tc, the_newer_plugin_serves_any_container_on_a_single_card);
    tcase_add_test(tc, a_pod_without_a_card_takes_room_on_every_card);
    tcase_add_test(tc, a_pod_whose_bind_is_not_settled_may_only_go_where_it_is);
    tcase_add_test(tc, an_equal_pod_passes_while_the_first_is_expected_to_be_matched);
    tcase_add_test(tc, patience_counts_from_the_bind);
    tcase_add_test(tc, before_the_first_lists_it_says_so);
    tcase_add_loop_test(tc, bad_bodies_are_errors_that_say_why, 0, G_N_ELEMENTS(bad_bodies));
    tcase_add_test(tc, oversized_bodies_are_errors_too);
    tcase_add_test(tc, amounts_beyond_all_cards_never_fit);
    tcase_add_test(tc, refusals_are_counted_by_reason);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
