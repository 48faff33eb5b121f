/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order preempt names those whom it would end: kube-scheduler takes the first of a node for its most
 * important one.
 */
#include "preempting_extender.h"
#include "suite.h"

#include <string.h>

static char *call(const char *pod, const char *nominated, const char *victims)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
        "\"spec\":{\"priority\":100,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
        "\"" MEM "\":\"8\"},\"requests\":{\"cpu\":\"1\",\"" MEM "\":\"8\"}}}]},"
        "\"status\":{\"nominatedNodeName\":\"%s\"}},\"NodeNameToMetaVictims\":{%s}}",
        pod, nominated, victims);
    GString *reply = g_string_new(NULL);

    ck_assert_msg(extender_preempt(&extender, body, strlen(body), reply, &error), "%s",
                  error ? error->message : "");
    return g_string_free(reply, FALSE);
}

#define UID(uid) "{\"UID\":\"" uid "\"}"
#define N1(...) "\"n1\":{\"Pods\":[" __VA_ARGS__ "],\"NumPDBViolations\":0}"

static void expect_of(const char *pod, const char *nominated, const char *victims,
                      const char *answer)
{
    g_autofree char *reply = call(pod, nominated, victims);
    g_autofree char *wanted = g_strdup_printf("{\"NodeNameToMetaVictims\":{%s}}", answer);

    ck_assert_str_eq(reply, wanted);
}

static void apply_cpu_pod(const char *uid, int64_t priority)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .priority = priority,
                                       .node_name = "n1",
                                       .phase = "Running",
                                       CONTAINERS({.name = "c", .requests = PAIRS({"cpu", "1"})})});
}

/* Whoever needs a card of n1 ends "high", or both "low" and "mid". */
static void populate(void)
{
    apply((struct pod){"low", "6", "n1", "0", .priority = 1, .particular = true});
    apply((struct pod){"high", "6", "n1", "1", .priority = 200});
    apply((struct pod){"mid", "4", "n1", "0", .priority = 60});
}

START_TEST(the_most_important_is_the_first)
{
    populate();
    expect_of("p1", "", N1(UID("low")), N1(UID("mid") "," UID("low")));
}
END_TEST

/* The same pods once more, as kube-scheduler asks again. */
START_TEST(so_it_is_in_an_answer_that_is_repeated)
{
    populate();
    expect_of("p1", "", N1(UID("low")), N1(UID("mid") "," UID("low")));
    expect_of("p1", "n1", N1(UID("low")), N1(UID("mid") "," UID("low")));
    expect_of("p1", "n1", N1(UID("low") "," UID("mid")), N1(UID("mid") "," UID("low")));
}
END_TEST

START_TEST(of_equals_the_older_is_the_first)
{
    static const char *const created[] = {"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"};

    for (int i = 0; i < 2; i++)
        store_apply_pod(
            extender.store,
            &(struct pod_view){.ns = "ml",
                               .name = i ? "z" : "a",
                               .uid = i ? "z" : "a",
                               .created = created[i],
                               .priority = 5,
                               .node_name = "n1",
                               .particular = true,
                               .phase = "Running",
                               .started = true,
                               .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                                    {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
                               CONTAINERS({.name = "c", .limits = PAIRS({MEM, "5"})})});
    apply((struct pod){"high", "6", "n1", "1", .priority = 200});
    expect_of("p1", "", N1(UID("a") "," UID("z")), N1(UID("z") "," UID("a")));
}
END_TEST

/* Named for the sake of CPU. */
START_TEST(pods_without_gpus_stand_where_they_belong)
{
    populate();
    apply_cpu_pod("web", 30);
    expect_of("p1", "", N1(UID("web") "," UID("low")),
              N1(UID("mid") "," UID("web") "," UID("low")));
    apply_cpu_pod("web", 70);
    expect_of("p2", "", N1(UID("web") "," UID("low")),
              N1(UID("web") "," UID("mid") "," UID("low")));
}
END_TEST

/* One that the watch has not shown yet stays behind the one before it. */
START_TEST(pods_that_nobody_knows_keep_their_places)
{
    populate();
    apply_cpu_pod("web", 70);
    expect_of("p1", "", N1(UID("x") "," UID("web") "," UID("y") "," UID("low") "," UID("z")),
              N1(UID("x") "," UID("web") "," UID("y") "," UID("mid") "," UID("low") "," UID("z")));
}
END_TEST

/* kube-scheduler makes room for a bound pod's resize, of which nothing is known here. */
START_TEST(of_a_bound_pod_all_that_are_named_go)
{
    const char *body =
        "{\"Pod\":{\"metadata\":{\"name\":\"high\",\"namespace\":\"ml\",\"uid\":\"high\"},"
        "\"spec\":{\"nodeName\":\"n1\",\"priority\":200,\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"limits\":{\"" MEM "\":\"6\"}}}]}},"
        "\"NodeNameToMetaVictims\":{" N1(UID("web")) "}}";
    g_autoptr(GString) reply = g_string_new(NULL);

    populate();
    apply_cpu_pod("web", 30);
    ck_assert(extender_preempt(&extender, body, strlen(body), reply, NULL));
    ck_assert_str_eq(reply->str, "{\"NodeNameToMetaVictims\":{" N1(UID("web")) "}}");
}
END_TEST

/* --- mirrors of static pods ------------------------------------------------------------------- */

/* One whose end would be the cheapest, on card 1. */
static void apply_mirror(void)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "kube-system",
                           .name = "static",
                           .uid = "static",
                           .created = "2026-01-01T00:00:00Z",
                           .node_name = "n1",
                           .phase = "Running",
                           .started = true,
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "1"},
                                                {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                                {"kubernetes.io/config.mirror", "a1b2"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})});
}

START_TEST(no_mirror_ends)
{
    apply((struct pod){"mid", "6", "n1", "0", .priority = 60});
    apply_mirror();
    expect_of("p1", "", N1(UID("mid")), N1(UID("mid")));
    /* kube-scheduler knows no better. */
    expect_of("p2", "", N1(UID("static")), N1(UID("mid")));
}
END_TEST

START_TEST(where_only_a_mirror_would_end_the_node_is_left_out)
{
    apply((struct pod){"high", "6", "n1", "0", .priority = 200});
    apply_mirror();
    expect_of("p1", "", N1(UID("static")), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("victim_order");
    TCase *tests = tcase_create("victim_order");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_most_important_is_the_first);
    tcase_add_test(tests, so_it_is_in_an_answer_that_is_repeated);
    tcase_add_test(tests, of_equals_the_older_is_the_first);
    tcase_add_test(tests, pods_without_gpus_stand_where_they_belong);
    tcase_add_test(tests, pods_that_nobody_knows_keep_their_places);
    tcase_add_test(tests, of_a_bound_pod_all_that_are_named_go);
    tcase_add_test(tests, no_mirror_ends);
    tcase_add_test(tests, where_only_a_mirror_would_end_the_node_is_left_out);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
