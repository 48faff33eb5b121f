/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of bind that kube-scheduler would not have made.
 */
#include "binding_world.h"
#include "suite.h"

#include <string.h>

#define TAINTED "{\"key\":\"dedicated\",\"value\":\"ml\",\"effect\":\"NoSchedule\"}"
#define CPU_4                                                                                      \
    "[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"},"                   \
    "\"requests\":{\"cpu\":\"4\"}}}]"

/* A node of two cards of 10 units, with more of its spec and its labels as JSON. */
static void put_node(const char *name, const char *labels, const char *spec, const char *cpu)
{
    g_autofree char *text = g_strdup_printf(
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"spec\":{%s},\"status\":{"
        "\"capacity\":{\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"},"
        "\"allocatable\":{\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"%s%s%s}}}",
        name, labels, spec, cpu ? ",\"cpu\":\"" : "", cpu ? cpu : "", cpu ? "\"" : "");

    fake_cluster_put_node(cluster, name, 20, 2);
    world_catch_up(&world);
    feed_event(world.store, FEED_NODES, false, text);
}

static uint64_t denied(const char *name)
{
    for (unsigned i = 0; i < DENIAL_N; i++) {
        if (g_strcmp0(denial_name(i), name) == 0)
            return metrics_counted(COUNTER_BIND_DENIALS, i);
    }
    ck_abort_msg("there is no '%s'", name);
}

static void configure(const char *names, bool filter_suffices)
{
    denials_free(world.extender.denials);
    world.extender.denials = denials_new(names, filter_suffices);
}

static void let_pass(const char *pod, const char *node)
{
    g_autofree char *reply = world_filter(&world, pod, node);
    g_autofree char *expected = g_strdup_printf("\"NodeNames\":[\"%s\"]", node);

    ck_assert_msg(strstr(reply, expected) != NULL, "%s", reply);
}

/* --- what the pod itself says ---------------------------------------------------------------- */

static const struct {
    const char *cause, *error;
    struct string_pair spec; /* of the pod */
    const char *labels, *node; /* of the node */
} cases[] = {
    {"cordoned", "the pod may not be on the node: cordoned", {NULL}, "", "\"unschedulable\":true"},
    {"taint", "the pod may not be on the node: taint dedicated=ml:NoSchedule is not tolerated",
     {NULL}, "", "\"taints\":[" TAINTED "]"},
    {"taint", "the pod may not be on the node: taint gone:NoExecute is not tolerated",
     {"tolerations", "[{\"key\":\"dedicated\",\"operator\":\"Exists\"}]"}, "",
     "\"taints\":[" TAINTED ",{\"key\":\"gone\",\"effect\":\"NoExecute\"}]"},
    {"node_selector",
     "the pod may not be on the node: nodeSelector: zone=b; the node has zone=a",
     {"nodeSelector", "{\"zone\":\"b\"}"}, "\"zone\":\"a\"", ""},
    {"node_affinity",
     "the pod may not be on the node: nodeAffinity: zone In [b]; the node has no label zone",
     {"affinity", "{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                  "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"zone\","
                  "\"operator\":\"In\",\"values\":[\"b\"]}]}]}}}"}, "", ""},
    {"scheduler",
     "the pod's schedulerName is 'volcano', whose pods are not bound here (--scheduler-names)",
     {"schedulerName", "\"volcano\""}, "", ""},
    {"scheduler",
     "the pod's schedulerName is 'koord-scheduler', whose pods are not bound here "
     "(--scheduler-names)",
     {"schedulerName", "\"koord-scheduler\""}, "", ""},
    {"scheduler",
     "the pod's schedulerName is 'kai-scheduler', whose pods are not bound here "
     "(--scheduler-names)",
     {"schedulerName", "\"kai-scheduler\""}, "", ""},
    {"unreadable",
     "where the pod may go cannot be read: field 'spec.tolerations': item 0: field 'operator': "
     "'Some' is not one that is known",
     {"tolerations", "[{\"key\":\"a\",\"operator\":\"Some\"}]"}, "", ""},
};

static void put_case(int i)
{
    put_node("node", cases[i].labels, cases[i].node, NULL);
}

static struct fake_pod pod_of_case(int i, int64_t mem)
{
    return (struct fake_pod){.name = "p", .mem = mem, .spec = {cases[i].spec}};
}

static void expect_denial(int i)
{
    const uint64_t before = denied(cases[i].cause), results_before = results(BIND_RESULT_DENIED);

    world_expect_bind(&world, "p", "node", cases[i].error);
    ck_assert_uint_eq(denied(cases[i].cause), before + 1);
    ck_assert_uint_eq(results(BIND_RESULT_DENIED), results_before + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    g_autofree char *posted = fake_cluster_posted(cluster, 0);
    g_autofree char *event = g_strdup_printf("GPUBindDenied ml/p: %s", cases[i].error);
    ck_assert_str_eq(posted, event);
}

START_TEST(a_pod_goes_where_its_spec_lets_it)
{
    const struct fake_pod pod = pod_of_case(_i, 6);

    put_case(_i);
    fake_cluster_add_pod(cluster, &pod);
    world_catch_up(&world);
    expect_denial(_i);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0); /* the watch has said it all */
}
END_TEST

/* A call of filter can be forged as well. */
START_TEST(filter_does_not_stand_for_the_spec)
{
    const struct fake_pod pod = pod_of_case(_i, 6);

    put_case(_i);
    fake_cluster_add_pod(cluster, &pod);
    world_catch_up(&world);
    let_pass("p", "node");
    expect_denial(_i);
}
END_TEST

START_TEST(a_pod_without_gpu_goes_nowhere_else)
{
    const struct fake_pod pod = pod_of_case(_i, 0);

    put_case(_i);
    fake_cluster_add_pod(cluster, &pod);
    world_catch_up(&world);
    expect_denial(_i);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
}
END_TEST

START_TEST(an_unseen_pod_is_read_for_it)
{
    const struct fake_pod pod = pod_of_case(_i, 6);

    put_case(_i);
    fake_cluster_add_pod(cluster, &pod);
    expect_denial(_i);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
}
END_TEST

START_TEST(an_unseen_pod_is_read_once)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
}
END_TEST

static const struct {
    struct string_pair spec[2];
    const char *labels, *node;
} welcome[] = {
    {{{"tolerations", "[{\"key\":\"dedicated\",\"value\":\"ml\"}]"}}, "",
     "\"taints\":[" TAINTED "]"},
    {{{"tolerations", "[{\"operator\":\"Exists\"}]"}}, "",
     "\"unschedulable\":true,\"taints\":[" TAINTED ",{\"key\":\"gone\",\"effect\":\"NoExecute\"}]"},
    {{{NULL}}, "", "\"taints\":[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]"},
    {{{"nodeSelector", "{\"zone\":\"a\"}"}, {"schedulerName", "\"hami-scheduler\""}},
     "\"zone\":\"a\"", ""},
    {{{"affinity", "{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{"
                   "\"weight\":1,\"preference\":{\"matchExpressions\":[{\"key\":\"zone\","
                   "\"operator\":\"Exists\"}]}}]}}"}}, "", ""},
};

START_TEST(nobody_else_is_kept_out)
{
    put_node("node", welcome[_i].labels, welcome[_i].node, NULL);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p",
                                                     .mem = 6,
                                                     .spec = {welcome[_i].spec[0],
                                                              welcome[_i].spec[1]}});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "node", "");
}
END_TEST

START_TEST(what_the_pod_says_last_counts)
{
    put_node("node", "", "\"taints\":[" TAINTED "]", NULL);
    world_add_pending(&world, "p", 6);
    g_autofree char *refused = world_bind(&world, "p", "node");
    ck_assert(*refused);
    fake_cluster_add_pod(
        cluster, &(struct fake_pod){.name = "p",
                                    .mem = 6,
                                    .spec = {{"tolerations", "[{\"key\":\"dedicated\","
                                                             "\"operator\":\"Exists\"}]"}}});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "node", "");
}
END_TEST

/* What a list does not name any more is asked about. */
START_TEST(a_list_sweeps_what_it_does_not_name)
{
    put_node("node", "", "", NULL);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .spec = {cases[3].spec}});
    world_catch_up(&world);
    fake_cluster_delete_pod(cluster, "p");
    world_sync(&world);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
}
END_TEST

/* --- the node, the name ---------------------------------------------------------------------- */

START_TEST(nobody_goes_to_a_node_that_is_not_known)
{
    const char *error = reason_info(REASON_NODE_UNKNOWN)->text;
    const uint64_t before = denied("node_unknown");

    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 0);
    world_expect_bind(&world, "p", "nowhere", error);
    world_expect_bind(&world, "q", "nowhere", error);
    world_expect_bind(&world, "unheard-of", "nowhere", error);
    fake_cluster_delete_node(cluster, "mono");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "mono", error);
    ck_assert_uint_eq(denied("node_unknown"), before + 4);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    /* Nothing is said about pods that nobody has seen. */
    for (unsigned i = 0; i < 3; i++) {
        g_autofree char *posted = fake_cluster_posted(cluster, i);
        ck_assert_msg(posted && !strstr(posted, "unheard-of"), "%s", posted);
    }
    g_autofree char *posted = fake_cluster_posted(cluster, 3);
    ck_assert_ptr_null(posted);
}
END_TEST

START_TEST(a_uid_has_one_name)
{
    const uint64_t before = denied("other_pod");

    world_add_pending(&world, "p", 6);
    g_autofree char *text = world_bind_uid(&world, "q", "uid-p", "duo");
    ck_assert_str_eq(text, "the pod of that UID has another name");
    ck_assert_uint_eq(denied("other_pod"), before + 1);
    g_autofree char *posted = fake_cluster_posted(cluster, 0);
    ck_assert_ptr_null(posted);
}
END_TEST

/* --- schedulers ------------------------------------------------------------------------------ */

START_TEST(schedulers_that_are_named_are_served_and_no_others)
{
    static const char *const names[] = {"volcano", "\"volcano\"", "gpu", "\"gpu\"", "other",
                                        "\"other\""};

    configure("volcano, gpu", false);
    for (size_t i = 0; i < 6; i += 2) {
        fake_cluster_add_pod(cluster, &(struct fake_pod){.name = names[i],
                                                         .mem = 1 + (int64_t)i,
                                                         .spec = {{"schedulerName", names[i + 1]}}});
        world_catch_up(&world);
        g_autofree char *text = world_bind(&world, names[i], "duo");
        ck_assert_int_eq(*text != '\0', i == 4);
    }
    world_add_pending(&world, "p", 2);
    world_expect_bind(&world, "p", "duo",
                      "the pod's schedulerName is 'default-scheduler', whose pods are not bound "
                      "here (--scheduler-names)");
    configure("default-scheduler", false);
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

/* --- what filter has let pass ----------------------------------------------------------------- */

START_TEST(sums_are_looked_at_where_filter_was_not_asked)
{
    const uint64_t before = denied("cpu");

    put_node("node", "", "", "3");
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "p", .mem = 1, .containers = CPU_4});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "node",
                      "the node has less CPU left than the pod asks for, and filter has not let the "
                      "pod pass there lately");
    ck_assert_uint_eq(denied("cpu"), before + 1);
    let_pass("p", "duo"); /* elsewhere */
    g_autofree char *text = world_bind(&world, "p", "node");
    ck_assert(*text);
    let_pass("p", "node");
    world_expect_bind(&world, "p", "node", "");
}
END_TEST

START_TEST(filter_suffices_where_that_is_said)
{
    if (cases[_i].cause && g_str_equal(cases[_i].cause, "scheduler"))
        return;
    const struct fake_pod pod = pod_of_case(_i, 6);

    configure("", true);
    put_case(_i);
    fake_cluster_add_pod(cluster, &pod);
    world_catch_up(&world);
    expect_denial(_i);
    let_pass("p", "node");
    world_expect_bind(&world, "p", "node", "");
}
END_TEST

/* --- idempotence ------------------------------------------------------------------------------ */

START_TEST(a_bound_pod_is_not_judged_again)
{
    put_node("node", "", "", NULL);
    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "node", "");
    put_node("node", "", "\"unschedulable\":true,\"taints\":[" TAINTED "]", NULL);
    world_expect_bind(&world, "p", "node", "");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "node", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

START_TEST(a_binding_of_unknown_fate_is_repeated_all_the_same)
{
    put_node("node", "", "", NULL);
    world_add_pending(&world, "p", 6);
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    fake_cluster_script_bind(cluster, &(struct fake_step){.act = FAKE_FAIL,
                                                          .outcome = OUTCOME_UNKNOWN});
    g_autofree char *text = world_bind(&world, "p", "node");
    ck_assert(*text);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    world.extender.bind_timeout_ms = 3000;
    put_node("node", "", "\"unschedulable\":true", NULL);
    world_expect_bind(&world, "p", "node", "");
}
END_TEST

/* --- lookups ---------------------------------------------------------------------------------- */

#define STRANGE "too many binds of pods that are not known here; try again"

static unsigned flood(unsigned n)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("invented-%u", i);
        g_autofree char *text = world_bind(&world, name, "duo");
        refused += g_str_equal(text, STRANGE);
    }
    return refused;
}

START_TEST(strangers_cause_few_lookups)
{
    const uint64_t before = denied("lookups");
    const unsigned refused = flood(3 * LOOKUPS_STRANGER_BURST);

    ck_assert_uint_ge(refused, LOOKUPS_STRANGER_BURST);
    ck_assert_uint_eq(denied("lookups"), before + refused);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 3 * LOOKUPS_STRANGER_BURST - refused);

    /* Whom the watch has shown needs none, and whom filter knows has its own. */
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "plain", 0);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "plain", "duo", "");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 5});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "r"});
    let_pass("q", "duo");
    let_pass("r", "duo");
    flood(LOOKUPS_STRANGER_BURST);
    world_expect_bind(&world, "q", "duo", "");
    world_expect_bind(&world, "r", "duo", "");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("denials");
    TCase *tc = tcase_create("denials");
    const int n = G_N_ELEMENTS(cases);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_pod_goes_where_its_spec_lets_it, 0, n);
    tcase_add_loop_test(tc, filter_does_not_stand_for_the_spec, 0, n);
    tcase_add_loop_test(tc, a_pod_without_gpu_goes_nowhere_else, 0, n);
    tcase_add_loop_test(tc, an_unseen_pod_is_read_for_it, 0, n);
    tcase_add_test(tc, an_unseen_pod_is_read_once);
    tcase_add_loop_test(tc, nobody_else_is_kept_out, 0, G_N_ELEMENTS(welcome));
    tcase_add_test(tc, what_the_pod_says_last_counts);
    tcase_add_test(tc, a_list_sweeps_what_it_does_not_name);
    tcase_add_test(tc, nobody_goes_to_a_node_that_is_not_known);
    tcase_add_test(tc, a_uid_has_one_name);
    tcase_add_test(tc, schedulers_that_are_named_are_served_and_no_others);
    tcase_add_test(tc, sums_are_looked_at_where_filter_was_not_asked);
    tcase_add_loop_test(tc, filter_suffices_where_that_is_said, 0, n);
    tcase_add_test(tc, a_bound_pod_is_not_judged_again);
    tcase_add_test(tc, a_binding_of_unknown_fate_is_repeated_all_the_same);
    tcase_add_test(tc, strangers_cause_few_lookups);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
