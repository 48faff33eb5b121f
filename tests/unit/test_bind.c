/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds that the API server carries out at once: what is written, and where. Who has to wait is in
 * test_bind_queue.c, how a Binding goes wrong in test_bind_outcomes.c.
 */
#include "binding_world.h"
#include "suite.h"

#include <string.h>

#define ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define NO_ROOM "Insufficient GPU Memory in one device"

static int64_t assume_time(const char *pod)
{
    g_autofree char *text = fake_cluster_annotation(cluster, pod, ASSUME_TIME);
    return text ? g_ascii_strtoll(text, NULL, 10) : 0;
}

/* --- what is written ------------------------------------------------------------------------ */

START_TEST(one_binding_carries_the_node_and_five_annotations)
{
    int64_t before_ns = g_get_real_time() * 1000;
    uint64_t bound = results(BIND_RESULT_BOUND);

    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
    ck_assert_uint_eq(results(BIND_RESULT_BOUND), bound + 1);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);

    int64_t time_ns = assume_time("p");
    ck_assert_int_ge(time_ns, before_ns);
    ck_assert_int_le(time_ns, g_get_real_time() * 1000);
    g_autofree char *sent = fake_cluster_sent(cluster, 0);
    g_autofree char *expected = g_strdup_printf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\","
        "\"namespace\":\"ml\",\"uid\":\"uid-p\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_DEV\":\"10\","
        "\"ALIYUN_COM_GPU_MEM_POD\":\"6\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\","
        "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"%" G_GINT64_FORMAT "\"}},"
        "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"duo\"}}",
        time_ns);
    ck_assert_str_eq(sent, expected);
}
END_TEST

START_TEST(the_fullest_card_with_room_is_chosen)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    world_add_bound(&world, "b", "duo", 6, "1");
    world_add_pending(&world, "p", 4);
    world_expect_bind(&world, "p", "duo", ""); /* 7 free on card 0, 4 on card 1 */
    ck_assert_int_eq(world_card(&world, "uid-p"), 1);
    world_add_pending(&world, "q", 1);
    world_expect_bind(&world, "q", "duo", ""); /* card 1 is full */
    ck_assert_int_eq(world_card(&world, "uid-q"), 0);
}
END_TEST

START_TEST(of_equal_cards_the_first_is_chosen)
{
    fake_cluster_put_node(cluster, "duo", 40, 4);
    world_add_bound(&world, "a", "duo", 3, "3");
    world_add_bound(&world, "b", "duo", 3, "2");
    world_add_pending(&world, "p", 7);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-p"), 2);
    world_add_pending(&world, "q", 8);
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-q"), 0);
}
END_TEST

/* The plugin serves the oldest first, whatever our clock does. */
START_TEST(assume_times_grow_on_a_node)
{
    int64_t future_ns = (g_get_real_time() + INT64_C(3600) * G_USEC_PER_SEC) * 1000;
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, future_ns);

    world_add_bound(&world, "a", "duo", 1, "0");
    fake_cluster_annotate(cluster, "a", ASSUME_TIME, text);
    world_add_pending(&world, "p", 2);
    world_add_pending(&world, "q", 3);
    world_add_pending(&world, "r", 4);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "q", "duo", "");
    world_expect_bind(&world, "r", "mono", "");
    ck_assert_int_eq(assume_time("p"), future_ns + 1);
    ck_assert_int_eq(assume_time("q"), future_ns + 2);
    ck_assert_int_lt(assume_time("r"), future_ns);
}
END_TEST

static const struct fake_pod plain_pods[] = {
    {.name = "p"},
    {.name = "p", .containers = "[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"0\"}}}]"},
};

START_TEST(a_pod_without_gpu_is_bound_plainly)
{
    fake_cluster_add_pod(cluster, &plain_pods[_i]);
    world_catch_up(&world);
    world_expect_bind(&world, "p", "plain", "");
    g_autofree char *sent = fake_cluster_sent(cluster, 0);
    ck_assert_str_eq(sent,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\","
                     "\"namespace\":\"ml\",\"uid\":\"uid-p\"},\"target\":{\"apiVersion\":\"v1\","
                     "\"kind\":\"Node\",\"name\":\"plain\"}}");
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    world_expect_bind(&world, "p", "plain", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    world_expect_bind(&world, "p", "duo", "the pod is bound to another node");
}
END_TEST

/* --- who is bound already ------------------------------------------------------------------- */

START_TEST(a_repeated_bind_changes_nothing)
{
    uint64_t repeated = results(BIND_RESULT_REPEATED);

    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "duo", "");
    fake_cluster_assign(cluster, "p");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_uint_eq(results(BIND_RESULT_REPEATED), repeated + 3);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

START_TEST(a_bound_pod_is_not_bound_elsewhere)
{
    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "p", "mono", "the pod is being bound to node 'duo' already");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "mono", "the pod is being bound to node 'duo' already");
    ck_assert_int_eq(world_used(&world, "mono", 0), 0);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

static void bind_elsewhere(void *data)
{
    world_expect_bind(&world, "p", "mono", "the pod is being bound to node 'duo' already");
}

START_TEST(a_pod_in_flight_is_not_bound_elsewhere)
{
    world_add_pending(&world, "p", 6);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = bind_elsewhere});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_used(&world, "mono", 0), 0);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* --- a pod that the watch has not shown ----------------------------------------------------- */

START_TEST(an_unseen_pod_is_read_first)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

static const struct {
    struct fake_pod pod;
    struct fake_step get;
    const char *error;
    enum bind_result result;
} unseen[] = {
    {{.name = "q"}, {0}, "fake: not found", BIND_RESULT_CONFLICT},
    {{.name = "p", .mem = 6}, {FAKE_FAIL, OUTCOME_UNKNOWN}, "fake: timed out", BIND_RESULT_REFUSED},
    {{.name = "p", .mem = 6}, {FAKE_FAIL, OUTCOME_REFUSED}, "fake: refused", BIND_RESULT_REFUSED},
    {{.name = "p", .uid = "other", .mem = 6},
     {0},
     "the pod of that name has another UID: it was deleted and created again",
     BIND_RESULT_CONFLICT},
    {{.name = "p", .mem = 6, .node = "duo"}, {0}, "", BIND_RESULT_REPEATED},
    {{.name = "p", .mem = 6, .node = "mono"},
     {0},
     "the pod is bound to another node",
     BIND_RESULT_CONFLICT},
    {{.name = "p",
      .containers =
          "[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1.5\"}}}]"},
     {0},
     "container 'c': aliyun.com/gpu-mem: quantity '1.5' is not a whole number",
     BIND_RESULT_INVALID},
};

START_TEST(an_unseen_pod_that_cannot_be_bound_leaves_nothing)
{
    uint64_t before = results(unseen[_i].result);

    fake_cluster_add_pod(cluster, &unseen[_i].pod);
    if (unseen[_i].get.act == FAKE_FAIL)
        fake_cluster_script_get(cluster, &unseen[_i].get);
    world_expect_bind(&world, "p", "duo", unseen[_i].error);
    ck_assert_uint_eq(results(unseen[_i].result), before + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    /* Who cannot be understood is told so. */
    g_autofree char *said = fake_cluster_posted(cluster, 0);
    g_autofree char *wanted = g_strconcat("GPURequestInvalid ml/p: ", unseen[_i].error, NULL);
    ck_assert_pstr_eq(said, unseen[_i].result == BIND_RESULT_INVALID ? wanted : NULL);
}
END_TEST

/* A Binding sent too late to learn its fate would keep a card booked for nothing. */
START_TEST(without_time_left_nothing_is_booked)
{
    uint64_t before = results(BIND_RESULT_TIMED_OUT);

    world.extender.bind_timeout_ms = 120;
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER, .delay_ms = 110});
    world_expect_bind(&world, "p", "duo", "no time was left to bind the pod; try again");
    ck_assert_uint_eq(results(BIND_RESULT_TIMED_OUT), before + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
}
END_TEST

/* --- no room -------------------------------------------------------------------------------- */

static const struct {
    const char *node;
    int64_t mem;
    const char *error;
    enum reason reason;
} no_room[] = {
    {"mono", 5, NO_ROOM, REASON_INSUFFICIENT_MEMORY},
    {"duo", 11, NO_ROOM ": the request is larger than any card of the node", REASON_CARD_TOO_SMALL},
    {"plain", 1, "The node is not for GPU share, need skip", REASON_NOT_GPU_SHARE},
    {"sick", 1, NO_ROOM ": the cards large enough are unhealthy", REASON_CARD_UNHEALTHY},
};

START_TEST(without_room_nothing_is_sent_or_kept)
{
    uint64_t results_before = results(BIND_RESULT_NO_ROOM);
    uint64_t reasons_before = metrics_counted(COUNTER_REFUSALS, no_room[_i].reason);

    fake_cluster_put_node(cluster, "sick", 10, 1);
    fake_cluster_put_unhealthy(cluster, "sick", "0");
    world_add_bound(&world, "a", "mono", 6, "0");
    world_add_pending(&world, "p", no_room[_i].mem);
    g_autofree char *before = world_nodes(&world);
    world_expect_bind(&world, "p", no_room[_i].node, no_room[_i].error);
    g_autofree char *after = world_nodes(&world);
    ck_assert_str_eq(before, after);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_uint_eq(results(BIND_RESULT_NO_ROOM), results_before + 1);
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, no_room[_i].reason), reasons_before + 1);
}
END_TEST

START_TEST(two_gpu_containers_go_to_no_node_with_several_cards)
{
#define GPU "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}"
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "p", .containers = "[" GPU "," GPU "]"});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "duo",
                      "The node's GPU share plugin cannot serve several GPU containers of one pod");
}
END_TEST

/* --- calls that are turned away ------------------------------------------------------------- */

static const struct {
    const char *body, *text;
} bad_bodies[] = {
    {"", ""},
    {"null", ""},
    {"[]", ""},
    {"{\"PodName\":\"p\"", ""},
    {"{}", "'PodName'"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ml\",\"PodUID\":\"uid-p\"}", "'Node'"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ml\",\"PodUID\":\"\",\"Node\":\"duo\"}", "'PodUID'"},
    {"{\"PodName\":\"p\",\"PodNamespace\":\"ml\",\"PodUID\":7,\"Node\":\"duo\"}", "'PodUID'"},
    {"{\"PodName\":\"\",\"PodNamespace\":\"ml\",\"PodUID\":\"u\",\"Node\":\"duo\"}", "'PodName'"},
    {"{\"PodName\":\"p\",\"PodNamespace\":null,\"PodUID\":\"u\",\"Node\":\"duo\"}",
     "'PodNamespace'"},
};

static char *send_body(const char *body)
{
    GString *reply = g_string_new(NULL);
    extender_bind(&world.extender, body, strlen(body), reply);
    return g_string_free(reply, FALSE);
}

START_TEST(bad_bodies_are_errors_that_say_why)
{
    uint64_t invalid = results(BIND_RESULT_INVALID);
    uint64_t bad = metrics_counted(COUNTER_REQUESTS_BAD, VERB_BIND);
    world_add_pending(&world, "p", 6);
    g_autofree char *reply = send_body(bad_bodies[_i].body);

    ck_assert_msg(g_str_has_prefix(reply, "{\"Error\":\"") && strlen(reply) > 15 &&
                      strstr(reply, bad_bodies[_i].text),
                  "%s", reply);
    ck_assert_uint_eq(results(BIND_RESULT_INVALID), invalid + 1);
    ck_assert_uint_eq(metrics_counted(COUNTER_REQUESTS_BAD, VERB_BIND), bad + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster) + fake_cluster_n_gets(cluster), 0);
}
END_TEST

START_TEST(keys_are_read_in_any_case)
{
    world_add_pending(&world, "p", 6);
    g_autofree char *reply = send_body("{\"podname\":\"p\",\"podNamespace\":\"ml\","
                                       "\"PODUID\":\"uid-p\",\"node\":\"duo\",\"More\":{}}");
    ck_assert_str_eq(reply, "{\"Error\":\"\"}");
}
END_TEST

/* Without a Lease: whoever follows knows nothing of what is booked here. */
struct fake_succession {
    struct succession succession;
    enum succession_state found;
    unsigned asked;
};

static enum succession_state find_successor(struct succession *succession, int64_t deadline_ms)
{
    struct fake_succession *fake = (struct fake_succession *)succession;

    fake->asked++;
    return fake->found;
}

START_TEST(who_leaves_binds_until_a_successor_is_there)
{
    struct fake_succession fake = {.succession.find = find_successor};

    world.extender.succession = &fake.succession;
    for (int i = 0; i < 4; i++)
        world_add_pending(&world, (const char *[]){"p", "q", "r", "s"}[i], 1 + i);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake.asked, 0);
    g_atomic_int_set(&world.extender.leaving, 1);
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_uint_eq(fake.asked, 1);
    fake.found = SUCCESSION_UNKNOWN;
    world_expect_bind(&world, "r", "duo", "gpuledger is shutting down; try again");
    ck_assert_uint_eq(fake.asked, 2);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    fake.found = SUCCESSION_NONE;
    world_expect_bind(&world, "r", "duo", "");
    ck_assert_uint_eq(fake.asked, 3);
    fake.found = SUCCESSION_THERE;
    const uint64_t before = results(BIND_RESULT_NOT_READY);
    const int64_t held = world_used(&world, "duo", 0);
    world_expect_bind(&world, "s", "duo", "gpuledger is shutting down; try again");
    world_expect_bind(&world, "s", "duo", "gpuledger is shutting down; try again");
    ck_assert_uint_eq(fake.asked, 4); /* once is enough */
    ck_assert_uint_eq(results(BIND_RESULT_NOT_READY), before + 2);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 3);
    ck_assert_int_eq(world_used(&world, "duo", 0), held);
}
END_TEST

START_TEST(a_draining_extender_binds_no_more)
{
    uint64_t before = results(BIND_RESULT_NOT_READY);

    world_add_pending(&world, "p", 6);
    g_atomic_int_set(&world.extender.draining, 1);
    world_expect_bind(&world, "p", "duo", "gpuledger is shutting down; try again");
    ck_assert_uint_eq(results(BIND_RESULT_NOT_READY), before + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

START_TEST(before_the_first_lists_nothing_is_bound)
{
    struct world fresh;

    world_init(&fresh);
    fake_cluster_add_pod(fresh.cluster, &(struct fake_pod){.name = "p", .mem = 6});
    fake_cluster_put_node(fresh.cluster, "duo", 20, 2);
    fake_cluster_list(fresh.cluster, fresh.store, FEED_NODES);
    world_expect_bind(&fresh, "p", "duo",
                      "gpuledger has not read the cluster's pods, configmaps yet; try again");
    ck_assert_uint_eq(fake_cluster_n_sent(fresh.cluster), 0);
    world_sync(&fresh);
    world_expect_bind(&fresh, "p", "duo", "");
    world_release(&fresh);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("bind");
    TCase *tc = tcase_create("bind");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_binding_carries_the_node_and_five_annotations);
    tcase_add_test(tc, the_fullest_card_with_room_is_chosen);
    tcase_add_test(tc, of_equal_cards_the_first_is_chosen);
    tcase_add_test(tc, assume_times_grow_on_a_node);
    tcase_add_loop_test(tc, a_pod_without_gpu_is_bound_plainly, 0, G_N_ELEMENTS(plain_pods));
    tcase_add_test(tc, a_repeated_bind_changes_nothing);
    tcase_add_test(tc, a_bound_pod_is_not_bound_elsewhere);
    tcase_add_test(tc, a_pod_in_flight_is_not_bound_elsewhere);
    tcase_add_test(tc, an_unseen_pod_is_read_first);
    tcase_add_loop_test(tc, an_unseen_pod_that_cannot_be_bound_leaves_nothing, 0,
                        G_N_ELEMENTS(unseen));
    tcase_add_test(tc, without_time_left_nothing_is_booked);
    tcase_add_loop_test(tc, without_room_nothing_is_sent_or_kept, 0, G_N_ELEMENTS(no_room));
    tcase_add_test(tc, two_gpu_containers_go_to_no_node_with_several_cards);
    tcase_add_loop_test(tc, bad_bodies_are_errors_that_say_why, 0, G_N_ELEMENTS(bad_bodies));
    tcase_add_test(tc, keys_are_read_in_any_case);
    tcase_add_test(tc, a_draining_extender_binds_no_more);
    tcase_add_test(tc, who_leaves_binds_until_a_successor_is_there);
    tcase_add_test(tc, before_the_first_lists_nothing_is_bound);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
