/* SPDX-License-Identifier: Apache-2.0 */
/* preempt over the nodes: which are searched, which are left alone, and which of them kube-scheduler is offered. */
#include "fake_cluster.h"
#include "objects.h"
#include "preempting_extender.h"
#include "suite.h"

#include "base/metrics.h"
#include "verbs/wake.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

#define NOW_NS (INT64_C(1767614400) * 1000000000) /* 2026-01-05 12:00 UTC */

static struct moment moment;

static void begin(const struct store_options *options)
{
    moment = (struct moment){.now_ns = NOW_NS, .now_ms = 100000};
    begin_with(options);
    store_set_moment(extender.store, &moment);
}

static void setup_nodes(void)
{
    begin(&(struct store_options){.patience_ms = 60000});
}

/* A pod of 8, of priority 100; `more` is more of its metadata, `spec` of its spec. */
static void expect_with(const char *uid, const char *more, const char *spec, const char *nodes,
                        const char *answer)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"%s\"%s},\"spec\":{%s"
        "\"priority\":100,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"8\"}}}]}},\"NodeNameToMetaVictims\":{%s}}",
        uid, more, spec, nodes);
    g_autofree char *wanted = g_strdup_printf("{\"NodeNameToMetaVictims\":{%s}}", answer);

    ck_assert_msg(extender_preempt(&extender, body, strlen(body), reply, &error), "%s",
                  error ? error->message : "");
    ck_assert_str_eq(reply->str, wanted);
}

static void expect(const char *nodes, const char *answer)
{
    static int n_asked;
    g_autofree char *uid = g_strdup_printf("asks-%d", n_asked++);

    expect_with(uid, "", "", nodes, answer);
}

#define NODE(name, ...) "\"" name "\":{\"Pods\":[" __VA_ARGS__ "],\"NumPDBViolations\":0}"
#define UID(uid) "{\"UID\":\"" uid "\"}"

/* Both nodes are full: "a" and "x" may end for the pod. */
static void populate(void)
{
    apply((struct pod){"a", "10", "n1", "0", .priority = 1});
    apply((struct pod){"b", "10", "n1", "1", .priority = 1000});
    apply((struct pod){"x", "10", "n2", "0", .priority = 2});
    apply((struct pod){"y", "10", "n2", "1", .priority = 1000});
}

static void say_node(const char *key, const char *value)
{
    store_apply_node(extender.store,
                     &(struct node_view){.name = "n1",
                                         .annotations = PAIRS({key, value}),
                                         .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
}

/* --- nodes that are left alone -------------------------------------------------------------------- */

/* What the Node says, and whether it is searched for a pod that ends in an hour or never. */
static const struct {
    const char *key, *value, *spec;
    bool searched;
} said[] = {
#define SWITCH "gpuledger.io/switch", "nvidia.com/mig.config=x@2026-01-05T"
    {SWITCH "14:00:00Z", "", false},
    {SWITCH "14:00:00Z", "\"activeDeadlineSeconds\":3600,", true},
    {SWITCH "12:30:00Z", "\"activeDeadlineSeconds\":3600,", false},
    {SWITCH "11:00:00Z", "\"activeDeadlineSeconds\":3600,", false},
    {"gpuledger.io/switch", "nonsense", "", false},
    {"gpuledger.io/switch-state", "draining@2026-01-05T11:00:00Z/", "", false},
    {"other.io/switch", "x", "", true},
    /* Both cards are cordoned: nobody's end lets the pod in. */
    {"gpuledger.io/cordoned-cards", "*", "", false},
    /* The one that "a" holds is. */
    {"gpuledger.io/cordoned-cards", "0", "", false},
    {"gpuledger.io/cordoned-cards", "1", "", true},
};

START_TEST(where_no_end_would_help_nobody_ends)
{
    say_node(said[_i].key, said[_i].value);
    populate();
    expect_with("asks", "", said[_i].spec, NODE("n1", UID("a")) "," NODE("n2", UID("x")),
                said[_i].searched ? NODE("n1", UID("a")) "," NODE("n2", UID("x"))
                                  : NODE("n2", UID("x")));
    expect_with("alone", "", said[_i].spec, NODE("n1"),
                said[_i].searched ? NODE("n1", UID("a")) : "");
}
END_TEST

static void reject_on_card_0(void)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("r%d", i), *ns = g_strdup_printf("ns%d", i);
        for (int step = 0; step < 3; step++) { /* it waits, is bound, and has failed */
            const bool failed = step == 2;
            store_apply_pod(
                extender.store,
                &(struct pod_view){.ns = ns,
                                   .name = uid,
                                   .uid = uid,
                                   .node_name = step > 0 ? "n1" : NULL,
                                   .phase = failed ? "Failed" : "Pending",
                                   .status_reason = failed ? "UnexpectedAdmissionError" : NULL,
                                   .status_message =
                                       "Allocate failed due to rpc error: code = Unknown desc = "
                                       "cannot reset the GPU, which is unexpected",
                                   .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                   CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})});
        }
    }
}

/* Three pods were rejected on the card that "a" holds: filter refuses it until the backoff is over, so the end of
 * "a" would not let the pod in. That of "b", on the other card, does, if it is less important. */
START_TEST(a_card_in_backoff_is_left_out)
{
    teardown();
    begin(&(struct store_options){.patience_ms = 60000, NODE_BACKOFF_SETTINGS(3, 60000)});
    reject_on_card_0();
    populate();
    expect(NODE("n1", UID("a")), "");
    apply((struct pod){"b", "10", "n1", "1", .priority = 5});
    expect(NODE("n1", UID("a")), NODE("n1", UID("b")));
    store_delete_pod(extender.store, "a");
    g_autoptr(GString) reply = g_string_new(NULL);
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"8\"}}}]}},\"NodeNames\":[\"n1\"]}";
    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, "has rejected pods that were bound to it"), "%s", reply->str);
}
END_TEST

/* Nor is it by one rule only: card 0 is in backoff, and of what is left a card takes one holder from then on. */
START_TEST(what_two_rules_leave_out_is_left_out)
{
    teardown();
    begin(&(struct store_options){.patience_ms = 60000, NODE_BACKOFF_SETTINGS(3, 60000)});
    reject_on_card_0();
    apply((struct pod){"b", "2", "n1", "1", .priority = 1000});
    apply((struct pod){"c", "8", "n1", "1", .priority = 1});
    expect(NODE("n1", UID("c")), NODE("n1", UID("c")));
    say_node("gpuledger.io/switch", "gpuledger.io/slots=1@2026-01-05T14:00:00Z");
    expect(NODE("n1", UID("c")), "");
}
END_TEST

/* For one pod of a group nobody ends: the others might find no room all the same. */
START_TEST(for_one_of_a_group_nobody_ends)
{
    static const char *const names[] = {
        ",\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"2\"}",
        ",\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
        "\"gang.scheduling.koordinator.sh/min-available\":\"1\"}",
        "",
    };
    struct string_pair words[] = {{"gang.scheduling.koordinator.sh/name", "g"},
                                  {"gang.scheduling.koordinator.sh/min-available", "2"}};
    const bool group = _i < 1;

    teardown();
    begin(&(struct store_options){.patience_ms = 60000, .gangs = true});
    populate();
    if (_i == 1)
        words[1].value = "1";
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "p",
                                       .uid = "p",
                                       .phase = "Pending",
                                       .priority = 100,
                                       .annotations = {words, _i < 2 ? 2 : 0},
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "8"})})});
    expect_with("p", names[_i], "", NODE("n1", UID("a")), group ? "" : NODE("n1", UID("a")));
}
END_TEST

/* --- room that is kept ------------------------------------------------------------------------ */

static const struct {
    const char *uid;
    int64_t priority;
    bool kept; /* so the only pod of n1 that may end does not make room for both */
} nominees[] = {
    {"first", 100, true},
    {"first", 101, true},
    {"first", 99, false},
    {"asks", 100, false}, /* itself */
};

START_TEST(room_is_kept_for_nominated_pods)
{
    populate();
    apply(
        (struct pod){nominees[_i].uid, "8", .nominated = "n1", .priority = nominees[_i].priority});
    expect_with("asks", "", "", NODE("n1", UID("a")),
                nominees[_i].kept ? "" : NODE("n1", UID("a")));
    store_delete_pod(extender.store, nominees[_i].uid);
    expect_with("later", "", "", NODE("n1", UID("a")), NODE("n1", UID("a")));
}
END_TEST

/* --- quotas ----------------------------------------------------------------------------------- */

static void hold_as(const char *ns, const char *uid, const char *node, const char *card,
                    int64_t priority)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){
            .ns = ns,
            .name = uid,
            .uid = uid,
            .created = "2026-01-01T00:00:00Z",
            .priority = priority,
            .node_name = node,
            .phase = "Running",
            .started = true,
            .annotations =
                PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card}, {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
            CONTAINERS(
                {.name = "c", .limits = PAIRS({MEM, "10"}), .requests = PAIRS({"cpu", "1"})})});
}

/* Namespace ml has two cards: one on each node, beside one of namespace web. */
static const struct {
    const char *most;    /* cards */
    int64_t own, others; /* priorities */
    const char *named, *answer;
} quotas[] = {
    /* At its limit it ends its own, however cheap the others are. */
    {"2", 50, 1, NODE("n1", UID("web1")), NODE("n1", UID("ml1"))},
    {"2", 50, 1, NODE("n1"), NODE("n1", UID("ml1"))},
    /* Below it, whoever costs least. */
    {"4", 50, 1, NODE("n1"), NODE("n1", UID("web1"))},
    /* Its own are as important: nobody ends, since others' would give the quota nothing. */
    {"2", 100, 1, NODE("n1"), ""},
    /* Two would have to give back, and only one is there. */
    {"1", 50, 1, NODE("n1"), ""},
};

START_TEST(at_its_quota_a_namespace_ends_its_own)
{
    teardown();
    begin(&(struct store_options){.patience_ms = 60000, .elastic_quotas = true});
    hold_as("ml", "ml1", "n1", "0", quotas[_i].own);
    hold_as("web", "web1", "n1", "1", quotas[_i].others);
    hold_as("ml", "ml2", "n2", "0", 1000);
    hold_as("web", "web2", "n2", "1", 1000);
    store_put_quota(extender.store, &(struct resource_quota_view){
                                        .ns = "ml",
                                        .name = "q",
                                        .elastic = true,
                                        .min = PAIRS({"gpuledger.io/gpus", quotas[_i].most}),
                                        .max = PAIRS({"gpuledger.io/gpus", quotas[_i].most})});
    expect(quotas[_i].named, quotas[_i].answer);
}
END_TEST

/* --- what is counted -------------------------------------------------------------------------- */

static uint64_t counted(enum preempt_result result)
{
    return metrics_counted(COUNTER_PREEMPT_NODES, result);
}

/* n1 is answered as it was named, n2 otherwise, n9 not at all. */
START_TEST(each_node_is_counted_once)
{
    const uint64_t kept = counted(PREEMPT_RESULT_KEPT), changed = counted(PREEMPT_RESULT_CHANGED),
                   dropped = counted(PREEMPT_RESULT_DROPPED),
                   awaited = counted(PREEMPT_RESULT_AWAITED);

    populate();
    expect_with("asks", "", "", NODE("n1", UID("a")) "," NODE("n2") "," NODE("n9", UID("z")),
                NODE("n1", UID("a")) "," NODE("n2", UID("x")));
    ck_assert_uint_eq(counted(PREEMPT_RESULT_KEPT), kept + 1);
    ck_assert_uint_eq(counted(PREEMPT_RESULT_CHANGED), changed + 1);
    ck_assert_uint_eq(counted(PREEMPT_RESULT_DROPPED), dropped + 1);
    /* "a" has ended, as kube-scheduler sees it: the others are waited for by nobody. */
    expect_with("asks", "", "", NODE("n2", UID("x")) "," NODE("n9"), "");
    ck_assert_uint_eq(counted(PREEMPT_RESULT_AWAITED), awaited + 2);
    ck_assert_uint_eq(counted(PREEMPT_RESULT_DROPPED), dropped + 1);
}
END_TEST

/* --- limits ----------------------------------------------------------------------------------- */

/* Of more pods than are copied the first nodes are answered, in the turn that the moment decides. */
START_TEST(of_many_pods_some_nodes_wait_for_their_turn)
{
    g_autoptr(GString) nodes = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    unsigned n = 0;

    for (int i = 0; i < 30; i++) {
        g_autofree char *node = g_strdup_printf("m%02d", i);
        store_apply_node(
            extender.store,
            &(struct node_view){.name = node, .capacity = PAIRS({MEM, "500"}, {COUNT, "1"})});
        for (int j = 0; j < 500; j++) {
            g_autofree char *uid = g_strdup_printf("%s-%d", node, j);
            apply((struct pod){uid, "1", node, "0", .priority = 1});
        }
        g_string_append_printf(nodes, "%s\"%s\":null", i ? "," : "", node);
    }
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"},\"spec\":{"
        "\"priority\":100,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"1\"}}}]}},\"NodeNameToMetaVictims\":{%s}}",
        nodes->str);
    ck_assert(extender_preempt(&extender, body, strlen(body), reply, NULL));
    for (const char *at = reply->str; (at = strstr(at, "\"UID\":")); at++)
        n++;
    ck_assert_uint_eq(n, 20); /* 10,000 pods */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preempt_nodes");
    TCase *tests = tcase_create("preempt_nodes");

    tcase_add_checked_fixture(tests, setup_nodes, teardown);
    tcase_add_loop_test(tests, where_no_end_would_help_nobody_ends, 0, G_N_ELEMENTS(said));
    tcase_add_test(tests, a_card_in_backoff_is_left_out);
    tcase_add_test(tests, what_two_rules_leave_out_is_left_out);
    tcase_add_loop_test(tests, for_one_of_a_group_nobody_ends, 0, 3);
    tcase_add_loop_test(tests, room_is_kept_for_nominated_pods, 0, G_N_ELEMENTS(nominees));
    tcase_add_loop_test(tests, at_its_quota_a_namespace_ends_its_own, 0, G_N_ELEMENTS(quotas));
    tcase_add_test(tests, each_node_is_counted_once);
    tcase_add_test(tests, of_many_pods_some_nodes_wait_for_their_turn);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
