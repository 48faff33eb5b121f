/* SPDX-License-Identifier: Apache-2.0 */
/* filter-dryrun: the answer of filter without an effect, for nodes that are not there yet, too. */
#include "suite.h"

#include "explain/dry_run.h"
#include "explained_cluster.h"

#define POD(name, mem)                                                                             \
    "{'metadata':{'name':'" name "','namespace':'ml'},'spec':{'containers':[{'name':'main',"       \
    "'resources':{'limits':{'" MEM "':'" mem "'}}}]}}"
#define NEW(name, mem)                                                                             \
    "{'metadata':{'name':'" name "'},'status':{'capacity':{'" MEM "':'" mem                        \
    "','aliyun.com/gpu-count':'1'}}}"
#define PLACED(name, fits, node, why, reasons)                                                     \
    "{'Namespace':'ml','Name':'" name "','Fits':" fits ",'Node':" node ",'Why':'" why              \
    "','Reasons':{" reasons "}}"

static void expect_answer(const char *body, const char *expected)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *json = json_of(body);

    dry_run_answer(told, json, strlen(json), reply);
    g_strdelimit(reply->str, "\"", '\'');
    expect_text(reply->str, expected);
}

static void populate(void)
{
    begin();
    add_node((struct said_node){"n", .amounts = MONO});
    add_node((struct said_node){"full", .amounts = MONO});
    add_node((struct said_node){"closed", .spec = "'unschedulable':true", .amounts = MONO});
    hold("a", "full", "0", "8");
}

START_TEST(nodes_are_sorted_as_by_filter)
{
    populate();
    expect_answer(
        "{'Pod':" POD("p", "5") ",'NodeNames':['n','full','closed','none']}",
        "{'Nodes':null,'NodeNames':['n'],'FailedNodes':{'full':'Insufficient GPU Memory in one "
        "device'},"
        "'FailedAndUnresolvableNodes':{'closed':'cordoned','none':'The node is not yet known "
        "to gpuledger'},'Error':''}");
}
END_TEST

/* A node of the body counts as it is written there only if the cluster has none of its name. */
START_TEST(new_nodes_are_empty_ones)
{
    populate();
    expect_answer("{'Pod':" POD("p", "5") ",'Nodes':{'items':[" NEW("full", "90") "," NEW(
                      "new", "6") "," NEW("small", "4") "]}}",
                  "{'Nodes':{'metadata':{},'items':[" NEW(
                      "new", "6") "]},'NodeNames':null,"
                                  "'FailedNodes':{'full':'Insufficient GPU Memory in one device'},"
                                  "'FailedAndUnresolvableNodes':{'small':'Insufficient GPU Memory "
                                  "in one device: the "
                                  "request is larger than any card of the node'},'Error':''}");
    ck_assert_ptr_null(ledger_node(store_lock(told), "new"));
    store_unlock(told);
}
END_TEST

/* An autoscaler's template is a copy of a node that runs: how that one does is not of its kind. */
START_TEST(a_new_node_is_sound)
{
#define SICK                                                                                       \
    "{'metadata':{'name':'new','annotations':{'gpuledger.io/cordoned-cards':'0'}},'spec':{"        \
    "'unschedulable':true,'taints':[{'key':'node.kubernetes.io/unreachable','effect':"             \
    "'NoExecute'}]},'status':{'capacity':{'" MEM "':'10','aliyun.com/gpu-count':'1'}}}"
    populate();
    expect_answer("{'Pod':" POD("p", "5") ",'Nodes':{'items':[" SICK "]}}",
                  "{'Nodes':{'metadata':{},'items':[" SICK "]},'NodeNames':null,'FailedNodes':{},"
                  "'FailedAndUnresolvableNodes':{},'Error':''}");
}
END_TEST

START_TEST(pods_come_one_after_the_other)
{
    populate();
    expect_answer(
        "{'Pods':[" POD("p", "6") "," POD("q", "6") "," POD("r", "2") "," POD("cpu", "0") "," POD(
            "odd", "x") "],'NodeNames':['n','full','closed']}",
        "{'Placements':[" PLACED("p", "true", "'n'", "", "") "," PLACED(
            "q", "false", "null", "",
            "'insufficient_memory':2,'cordoned':1") "," PLACED("r", "true", "'full'", "",
                                                               "") "," PLACED("cpu", "true", "null",
                                                                              "it asks for no GPU: "
                                                                              "any node will do",
                                                                              "") "," PLACED("odd",
                                                                                             "fals"
                                                                                             "e",
                                                                                             "null",
                                                                                             "conta"
                                                                                             "iner "
                                                                                             "'main"
                                                                                             "': "
                                                                                             "aliyu"
                                                                                             "n."
                                                                                             "com/"
                                                                                             "gpu-"
                                                                                             "mem: "
                                                                                             "quant"
                                                                                             "ity "
                                                                                             "'x' "
                                                                                             "is "
                                                                                             "not "
                                                                                             "a "
                                                                                             "numbe"
                                                                                             "r "
                                                                                             "with "
                                                                                             "an "
                                                                                             "optio"
                                                                                             "nal "
                                                                                             "suffi"
                                                                                             "x "
                                                                                             "such "
                                                                                             "as "
                                                                                             "k, "
                                                                                             "M, "
                                                                                             "Gi",
                                                                                             "") "]"
                                                                                                 ","
                                                                                                 "'"
                                                                                                 "E"
                                                                                                 "r"
                                                                                                 "r"
                                                                                                 "o"
                                                                                                 "r"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "'"
                                                                                                 "'"
                                                                                                 "}");
    ck_assert_uint_eq(ledger_size(store_lock(told)), 1);
    store_unlock(told);
}
END_TEST

/* Nodes that are not named are not offered. */
START_TEST(only_named_nodes_are_used)
{
    populate();
    expect_answer("{'Pods':[" POD("p", "2") "],'NodeNames':['full']}",
                  "{'Placements':[" PLACED("p", "true", "'full'", "", "") "],'Error':''}");
    expect_answer(
        "{'Pods':[" POD("p", "5") "],'NodeNames':['full','none']}",
        "{'Placements':[" PLACED("p", "false", "null", "",
                                 "'node_unknown':1,'insufficient_memory':1") "],'Error':''}");
}
END_TEST

static const struct {
    const char *body, *error;
} bad[] = {
    {"x", "invalid JSON at byte 0 near 'x'"},
    {"{'NodeNames':['n']}", "expected one of 'Pod' and 'Pods', got neither"},
    {"{'Pod':" POD("p", "5") ",'Pods':[" POD("p", "5") "],'NodeNames':['n']}",
     "expected one of 'Pod' and 'Pods', got both"},
    {"{'Pod':" POD("p", "x") ",'NodeNames':['n']}",
     "field 'Pod': container 'main': aliyun.com/gpu-mem: quantity 'x' is not a number with an "
     "optional suffix such as k, M, Gi"},
};

START_TEST(what_cannot_be_read_is_an_error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *json = json_of(bad[_i].body);

    populate();
    dry_run_answer(told, json, strlen(json), reply);
    g_autofree char *part = g_strdup_printf("\"Error\":\"%s\"}", bad[_i].error);
    ck_assert_msg(strstr(reply->str, part), "%s", reply->str);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain_dry_run");
    TCase *tests = tcase_create("dry run");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, nodes_are_sorted_as_by_filter);
    tcase_add_test(tests, new_nodes_are_empty_ones);
    tcase_add_test(tests, a_new_node_is_sound);
    tcase_add_test(tests, pods_come_one_after_the_other);
    tcase_add_test(tests, only_named_nodes_are_used);
    tcase_add_loop_test(tests, what_cannot_be_read_is_an_error, 0, G_N_ELEMENTS(bad));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
