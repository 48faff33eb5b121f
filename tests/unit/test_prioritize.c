/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "base/metrics.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

static struct world world;
static struct fake_cluster *cluster;

/* Two cards of 10 units on "duo" and "twin", one on "mono"; "small" has one of 4, "plain" none. */
static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "twin", 20, 2);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    fake_cluster_put_node(cluster, "small", 4, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    world_sync(&world);
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

/* Asks twice: the marks are alike, and the ledger is as before. */
static void expect_of(enum prioritize_pods pods, const char *pod, const char *nodes,
                      const char *marks)
{
    g_autofree char *before = world_nodes(&world);
    g_autofree char *found = world_prioritize(&world, pods, pod, nodes);
    g_autofree char *again = world_prioritize(&world, pods, pod, nodes);
    g_autofree char *after = world_nodes(&world);

    ck_assert_str_eq(found, marks);
    ck_assert_str_eq(again, marks);
    ck_assert_str_eq(before, after);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
}

static void expect(const char *pod, const char *nodes, const char *marks)
{
    expect_of(PRIORITIZE_ALL, pod, nodes, marks);
}

#define PAIRS(...)                                                                                 \
    {                                                                                              \
        (const struct string_pair[]){__VA_ARGS__},                                                 \
            sizeof((const struct string_pair[]){__VA_ARGS__}) / sizeof(struct string_pair)         \
    }

/* --- marks ---------------------------------------------------------------------------------- */

START_TEST(the_winner_takes_all)
{
    world_add_pending(&world, "p", 4);
    expect("p", "twin,duo", "twin=0 duo=10"); /* equal: by name */
    world_add_bound(&world, "old", "twin", 5, "1");
    expect("p", "duo,mono,small", "duo=0 mono=0 small=10");
    expect("p", "duo,twin,mono", "duo=0 twin=10 mono=0");
    expect("p", "duo", "duo=10");
}
END_TEST

START_TEST(who_would_not_take_the_pod_has_nothing)
{
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "huge", 11);
    expect("p", "plain,nope,small,duo", "plain=0 nope=0 small=0 duo=10");
    expect("huge", "plain,duo", "plain=0 duo=0");
    world.extender.shape = PRIORITIZE_SCALED;
    expect("p", "plain,nope,small,duo", "plain=0 nope=0 small=0 duo=10");
    expect("huge", "plain,duo", "plain=0 duo=0");
}
END_TEST

/* The worst of those that would is better than any that would not. */
START_TEST(marks_go_by_what_is_lost)
{
    world.extender.shape = PRIORITIZE_SCALED;
    world_add_pending(&world, "p", 4);
    world_add_bound(&world, "old", "twin", 4, "1");
    expect("p", "duo,twin,mono,small,plain", "duo=1 twin=10 mono=1 small=4 plain=0");
    expect("p", "duo,mono", "duo=10 mono=10");
}
END_TEST

START_TEST(the_policy_decides)
{
    world_add_pending(&world, "p", 2);
    world_add_bound(&world, "old", "mono", 4, "0");
    expect("p", "duo,mono,twin", "duo=0 mono=10 twin=0");
    store_set_policy(world.store, policy_find("spread"), 60000);
    expect("p", "mono,twin,duo", "mono=0 twin=0 duo=10");
    store_set_policy(world.store, policy_find("first-fit"), 60000);
    expect("p", "twin,mono", "twin=0 mono=10");
}
END_TEST

/* A node's own word, "ack.node.gpu.placement", is about its cards. */
START_TEST(the_pods_policy_comes_before_the_clusters)
{
    const struct node_view view = {
        .name = "label",
        .capacity = PAIRS({"aliyun.com/gpu-mem", "20"}, {"aliyun.com/gpu-count", "2"}),
        .labels = PAIRS({"ack.node.gpu.placement", "spread"}),
    };

    store_apply_node(world.store, &view);
    world_add_bound(&world, "old", "label", 4, "0");
    world_add_pending(&world, "p", 2);
    expect("p", "duo,label", "duo=0 label=10");
    fake_cluster_annotate(cluster, "p", "gpuledger.io/policy", "spread");
    expect("p", "duo,label", "duo=10 label=0");
    fake_cluster_annotate(cluster, "p", "gpuledger.io/policy", NULL);
    world_expect_bind(&world, "p", "label", "");
    ck_assert_int_eq(world_card(&world, "uid-p"), 1);
}
END_TEST

START_TEST(whole_nodes_are_marked_by_name)
{
    world_add_pending(&world, "p", 6);
    g_autofree char *object = fake_cluster_pod_json(cluster, "p");
    g_autofree char *body = g_strdup_printf(
        "{\"pod\":%s,\"nodes\":{\"items\":[{\"metadata\":{\"name\":\"small\"}},"
        "{\"metadata\":{\"name\":\"d\\u0075o\"}}]},\"nodeNames\":null}",
        object);
    g_autoptr(GString) reply = g_string_new(NULL);

    ck_assert(extender_prioritize(&world.extender, PRIORITIZE_ALL, body, strlen(body), reply,
                                  NULL));
    ck_assert_str_eq(reply->str, "[{\"Host\":\"duo\",\"Score\":10}]");
}
END_TEST

/* --- pods under way ------------------------------------------------------------------------- */

START_TEST(a_pod_that_holds_a_card_stays_with_it)
{
    world_add_pending(&world, "p", 6);
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_DELAY_EFFECT});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&world, "p", "twin",
                      "it is not known whether the pod was bound: fake: timed out");
    for (int i = 0; i < 2; i++) {
        world.extender.shape = i ? PRIORITIZE_SCALED : PRIORITIZE_WINNER;
        g_autofree char *marks = world_prioritize(&world, PRIORITIZE_ALL, "p", "mono,twin,duo");
        ck_assert_str_eq(marks, "mono=0 twin=10 duo=0");
        g_autofree char *others = world_prioritize(&world, PRIORITIZE_ALL, "p", "mono,duo");
        ck_assert_str_eq(others, "mono=0 duo=0");
    }
}
END_TEST

/* Two pods of one size on different cards of a node might swap them, so the second would wait. */
START_TEST(an_equal_node_where_nobody_waits_is_better)
{
    static const char *const pods[] = {"a", "b", "p"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        world_add_pending(&world, pods[i], 6);
    world_add_bound(&world, "other", "twin", 6, "0");
    world_expect_bind(&world, "a", "duo", "");
    expect("p", "duo,twin", "duo=0 twin=10");
    world.extender.shape = PRIORITIZE_SCALED;
    expect("p", "duo,twin", "duo=1 twin=10");
    fake_cluster_assign(cluster, "a");
    fake_cluster_start(cluster, "a");
    world_catch_up(&world);
    expect("p", "duo,twin", "duo=10 twin=10");
    world.extender.shape = PRIORITIZE_WINNER;
    expect("p", "duo,twin", "duo=10 twin=0");
}
END_TEST

/* --- pods without a GPU --------------------------------------------------------------------- */

START_TEST(pods_without_a_gpu_leave_nodes_with_gpus_alone)
{
    world_add_pending(&world, "web", 0);
    world_add_pending(&world, "p", 2);
    expect_of(PRIORITIZE_WITHOUT_GPU, "web", "duo,plain,nope", "duo=0 plain=10 nope=10");
    expect_of(PRIORITIZE_ALL, "web", "duo,plain,nope", "duo=0 plain=10 nope=10");
    expect_of(PRIORITIZE_WITHOUT_GPU, "p", "duo,plain", "duo=0 plain=0");
    expect_of(PRIORITIZE_ALL, "web", "plain,nope", "plain=0 nope=0"); /* nothing tells them apart */
    world.extender.shape = PRIORITIZE_SCALED;
    world_add_bound(&world, "old", "mono", 4, "0");
    expect_of(PRIORITIZE_WITHOUT_GPU, "web", "duo,plain,mono", "duo=5 plain=10 mono=5");
}
END_TEST

/* Where GPUs are in use already, the rest of the node is of least use to others. */
START_TEST(pods_without_a_gpu_go_where_gpus_are_in_use)
{
    world_add_pending(&world, "web", 0);
    world_add_bound(&world, "old", "twin", 4, "1");
    expect_of(PRIORITIZE_WITHOUT_GPU, "web", "duo,twin,mono", "duo=0 twin=10 mono=0");
    world_add_bound(&world, "whole", "mono", 10, "0");
    expect_of(PRIORITIZE_WITHOUT_GPU, "web", "duo,twin,mono", "duo=0 twin=0 mono=10");
}
END_TEST

/* --- errors --------------------------------------------------------------------------------- */

START_TEST(what_cannot_be_answered_is_an_error)
{
#define POD(uid, amount)                                                                           \
    "{\"Pod\":{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p\",\"uid\":\"" uid "\"},\"spec\":{"  \
    "\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" amount "\"}}}]}},"     \
    "\"NodeNames\":[\"duo\"]}"
    static const char *const bodies[] = {"", "[]", "{}", POD("", "1"), POD("u", "x")};
    const uint64_t before = metrics_counted(COUNTER_REQUESTS_BAD, VERB_PRIORITIZE);

    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
        g_autoptr(GString) reply = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        ck_assert(!extender_prioritize(&world.extender, PRIORITIZE_ALL, bodies[i],
                                       strlen(bodies[i]), reply, &error));
        ck_assert_int_eq(error->code, GPULEDGER_ERROR_INVALID);
        ck_assert_uint_eq(reply->len, 0);
    }
    ck_assert_uint_eq(metrics_counted(COUNTER_REQUESTS_BAD, VERB_PRIORITIZE),
                      before + G_N_ELEMENTS(bodies));

    struct world fresh;
    world_init(&fresh);
    fake_cluster_add_pod(fresh.cluster, &(struct fake_pod){.name = "p", .mem = 6});
    g_autofree char *unsynced = world_prioritize(&fresh, PRIORITIZE_ALL, "p", "duo");
    ck_assert(g_str_has_prefix(unsynced, "gpuledger has not read the cluster's "));
    world_release(&fresh);
}
END_TEST

/* --- what is expected ------------------------------------------------------------------------ */

static uint64_t expectation(struct store *store)
{
    store_lock(store);
    const uint64_t version = demand_version(store_demand(store));
    store_unlock(store);
    return version;
}

/* Sixteen pods are what it takes to say anything. */
START_TEST(each_pod_is_expected_once)
{
    const struct store_options options = {.patience_ms = 60000};
    g_autoptr(store) fresh = store_new(&options);

    for (int i = 0; i < 15; i++) {
        g_autofree char *name = g_strdup_printf("p%d", i);
        world_add_pending(&world, name, 2);
    }
    world_expect_bind(&world, "p0", "duo", "");
    fake_cluster_assign(cluster, "p0");
    fake_cluster_annotate(cluster, "p1", "any", "change");
    world_catch_up(&world);
    world_sync(&world);
    ck_assert_uint_eq(expectation(world.store), 0);
    world_add_bound(&world, "another", "twin", 2, "0");
    ck_assert_uint_gt(expectation(world.store), 0);
    /* After a restart the cluster tells it again. */
    for (int feed = 0; feed < FEED_N; feed++)
        fake_cluster_list(cluster, fresh, feed);
    ck_assert_uint_gt(expectation(fresh), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prioritize");
    TCase *tests = tcase_create("prioritize");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_winner_takes_all);
    tcase_add_test(tests, who_would_not_take_the_pod_has_nothing);
    tcase_add_test(tests, marks_go_by_what_is_lost);
    tcase_add_test(tests, the_policy_decides);
    tcase_add_test(tests, the_pods_policy_comes_before_the_clusters);
    tcase_add_test(tests, whole_nodes_are_marked_by_name);
    tcase_add_test(tests, a_pod_that_holds_a_card_stays_with_it);
    tcase_add_test(tests, an_equal_node_where_nobody_waits_is_better);
    tcase_add_test(tests, pods_without_a_gpu_leave_nodes_with_gpus_alone);
    tcase_add_test(tests, pods_without_a_gpu_go_where_gpus_are_in_use);
    tcase_add_test(tests, what_cannot_be_answered_is_an_error);
    tcase_add_test(tests, each_pod_is_expected_once);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
