/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds that have to wait: for another bind of the same pod, or for the node side.
 */
#include "binding_world.h"
#include "literals.h"
#include "suite.h"

#define NO_ROOM "Insufficient GPU Memory in one device"
#define AWAITING "A pod of the same size on the node still waits for its GPU"

#define AWAY "The node's GPU plugin is not registered with kubelet just now"
#define HOUR_MS INT64_C(3600000)

static char p[] = "p", q[] = "q";

static void *bind_to_duo(void *pod)
{
    return world_bind(&world, pod, "duo");
}

/* --- binds of one pod at once ---------------------------------------------------------------- */

#define TWINS 8

START_TEST(binds_of_one_pod_at_once_are_one_binding)
{
    pthread_t threads[TWINS];

    world_add_pending(&world, "p", 6);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .delay_ms = 30});
    for (int i = 0; i < TWINS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, bind_to_duo, p), 0);
    for (int i = 0; i < TWINS; i++) {
        g_autofree char *error = NULL;
        pthread_join(threads[i], (void **)&error);
        ck_assert_str_eq(error, "");
    }
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

/* The one who waits for the first takes over when that fails. */
START_TEST(a_twin_tries_again_what_was_refused)
{
    pthread_t first, second;
    g_autofree char *one = NULL, *two = NULL;

    world_add_pending(&world, "p", 6);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED, 50});
    ck_assert_int_eq(pthread_create(&first, NULL, bind_to_duo, p), 0);
    ck_assert_int_eq(pthread_create(&second, NULL, bind_to_duo, p), 0);
    pthread_join(first, (void **)&one);
    pthread_join(second, (void **)&two);
    ck_assert_str_eq(*one ? one : two, "fake: refused");
    ck_assert_str_eq(*one ? two : one, "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
}
END_TEST

static gint released;

static void wait_for_release(void *data)
{
    while (!g_atomic_int_get(&released))
        g_usleep(1000);
}

START_TEST(a_twin_does_not_wait_for_ever)
{
    pthread_t first;
    g_autofree char *one = NULL;

    world_add_pending(&world, "p", 6);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = wait_for_release});
    ck_assert_int_eq(pthread_create(&first, NULL, bind_to_duo, p), 0);
    while (fake_cluster_n_sent(cluster) == 0)
        g_usleep(1000);
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "p", "duo", "another bind of the same pod is still running");
    g_atomic_int_set(&released, 1);
    pthread_join(first, (void **)&one);
    ck_assert_str_eq(one, "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
}
END_TEST

/* --- waiting for the node side -------------------------------------------------------------- */

static void served(void)
{
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
}

static void running(void)
{
    fake_cluster_set_phase(cluster, "p", "Running");
}

static void deleted(void)
{
    fake_cluster_delete_pod(cluster, "p");
}

static void (*const ends_of_waiting[])(void) = {served, running, deleted};

START_TEST(an_equal_pod_waits_until_the_first_is_matched)
{
    pthread_t thread;
    g_autofree char *error = NULL;

    world.extender.bind_timeout_ms = 20000;
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_to_duo, q), 0);
    g_usleep(30000);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_state(&world, "uid-q"), -1);
    ends_of_waiting[_i]();
    world_catch_up(&world);
    pthread_join(thread, (void **)&error);
    ck_assert_str_eq(error, "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    ck_assert_int_eq(world_card(&world, "uid-q"), ends_of_waiting[_i] == deleted ? 0 : 1);
}
END_TEST

/* The plugin may have taken p for the container of another pod: its own has not asked yet. */
START_TEST(an_equal_pod_waits_until_the_first_has_started)
{
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    fake_cluster_assign(cluster, "p");
    world_catch_up(&world);
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "q", "duo", AWAITING);
    fake_cluster_start(cluster, "p");
    world_catch_up(&world);
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-q"), 1);
}
END_TEST

START_TEST(waiting_ends_in_time_and_leaves_nothing)
{
    uint64_t before = results(BIND_RESULT_TIMED_OUT);

    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    world.extender.bind_timeout_ms = 60;
    int64_t start_ms = g_get_monotonic_time() / 1000;
    world_expect_bind(&world, "q", "duo", AWAITING);
    ck_assert_int_ge(g_get_monotonic_time() / 1000 - start_ms, 30);
    ck_assert_uint_eq(results(BIND_RESULT_TIMED_OUT), before + 1);
    ck_assert_int_eq(world_state(&world, "uid-q"), -1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    world_expect_bind(&world, "q", "mono", "");
}
END_TEST

START_TEST(nobody_waits_for_another_size)
{
    world.extender.bind_timeout_ms = 20000;
    world_add_pending(&world, "p", 4);
    world_add_pending(&world, "q", 3);
    world_add_pending(&world, "r", 7);
    world_add_pending(&world, "s", 8);
    world_expect_bind(&world, "p", "mono", "");
    world_expect_bind(&world, "q", "mono", "");
    world_expect_bind(&world, "r", "duo", "");
    world_expect_bind(&world, "s", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-s"), 1);
}
END_TEST

START_TEST(waiting_does_not_hide_that_there_is_no_room)
{
    world_add_bound(&world, "a", "duo", 5, "1");
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "q", "duo", NO_ROOM);
}
END_TEST

static void add_managed(const char *name, const char *core)
{
    g_autofree char *containers = g_strdup_printf(
        "[{\"name\":\"c\",\"resources\":{\"limits\":{\"tencent.com/vcuda-core\":\"%s\","
        "\"tencent.com/vcuda-memory\":\"8\"}}}]",
        core);

    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = name, .containers = containers});
    world_catch_up(&world);
}

/* gpu-manager could take any pod for any other. */
START_TEST(who_waits_for_a_pod_of_another_size_is_told_so)
{
    const struct node_view node = {.name = "managed",
                                   .capacity = PAIRS({"tencent.com/vcuda-core", "200"},
                                                     {"tencent.com/vcuda-memory", "64"})};

    store_apply_node(world.store, &node);
    add_managed("p", "40");
    add_managed("q", "30");
    world_expect_bind(&world, "p", "managed", "");
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "q", "managed",
                      "Another pod on the node still waits for its GPU, and its GPU plugin serves "
                      "one at a time");
    store_delete_pod(world.store, "uid-p");
    world_expect_bind(&world, "q", "managed", "");
}
END_TEST

static bool is_waiting(void)
{
    store_lock(world.store);
    const bool waiting = world.extender.waiters.n > 0;
    store_unlock(world.store);
    return waiting;
}

/* Each that waits holds a connection. */
START_TEST(of_many_that_would_wait_most_are_answered_at_once)
{
    const uint64_t before = results(BIND_RESULT_CROWDED);
    pthread_t thread;
    g_autofree char *error = NULL;

    world.extender.bind_timeout_ms = 60000;
    world.extender.waiters.max = 1;
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_add_pending(&world, "r", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_to_duo, q), 0);
    while (!is_waiting())
        g_usleep(1000);
    world_expect_bind(&world, "r", "duo", "too many binds wait already; try again");
    ck_assert_uint_eq(results(BIND_RESULT_CROWDED), before + 1);
    ck_assert_int_eq(world_state(&world, "uid-r"), -1);
    served();
    world_catch_up(&world);
    pthread_join(thread, (void **)&error);
    ck_assert_str_eq(error, "");
    ck_assert(!is_waiting());
    fake_cluster_assign(cluster, "q");
    fake_cluster_start(cluster, "q");
    world_catch_up(&world);
    world_expect_bind(&world, "r", "mono", "");
}
END_TEST

/* So does who waits for another bind of its pod. */
START_TEST(twins_that_wait_count_as_well)
{
    pthread_t first;
    g_autofree char *one = NULL;
    bool cut;

    g_atomic_int_set(&released, 0);
    world_add_pending(&world, "p", 6);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = wait_for_release});
    ck_assert_int_eq(pthread_create(&first, NULL, bind_to_duo, p), 0);
    while (fake_cluster_n_sent(cluster) == 0)
        g_usleep(1000);
    struct waiting_bind other = {.ns = "ml", .node = "duo"};
    world.extender.waiters.max = 1;
    ck_assert(waiters_enter(&world.extender.waiters, &other, &cut));
    world_expect_bind(&world, "p", "duo", "too many binds wait already; try again");
    waiters_leave(&world.extender.waiters, &other);
    g_atomic_int_set(&released, 1);
    pthread_join(first, (void **)&one);
    ck_assert_str_eq(one, "");
}
END_TEST

/* --- who is waited for no longer ---------------------------------------------------------------- */

static void *bind_q(void *error)
{
    *(char **)error = world_bind(&world, q, "duo");
    return NULL;
}

/* Deadlines are so far away that a bind which keeps to them only ends the test by its time limit. */
static void be_patient(int64_t patience_ms)
{
    world.extender.bind_timeout_ms = HOUR_MS;
    store_set_policy(world.store, store_options(world.store)->policy, patience_ms);
}

START_TEST(waiting_ends_with_patience)
{
    const uint64_t before = results(BIND_RESULT_TIMED_OUT);

    be_patient(30);
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "q", "duo", AWAITING);
    ck_assert_uint_eq(results(BIND_RESULT_TIMED_OUT), before + 1);
    ck_assert_int_eq(world_state(&world, "uid-q"), -1);
    /* By now filter says the same, and so does the next bind. */
    world_expect_bind(&world, "q", "duo", AWAITING);
    g_autofree char *answer = world_filter(&world, "q", "duo");
    ck_assert_msg(strstr(answer, AWAITING), "%s", answer);
}
END_TEST

/* Whoever waits goes by what is configured now. */
START_TEST(less_patience_ends_waiting_at_once)
{
    pthread_t thread;
    char *error = NULL;

    be_patient(HOUR_MS);
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_q, &error), 0);
    while (!is_waiting())
        g_usleep(1000);
    store_set_policy(world.store, store_options(world.store)->policy, 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(error, AWAITING);
    g_free(error);
    ck_assert(!is_waiting());
}
END_TEST

static void fill(void)
{
    world_add_bound(&world, "a", "duo", 5, "1");
}

static void remove_node(void)
{
    store_delete_node(world.store, "duo");
}

static const struct {
    void (*happens)(void);
    const char *says;
} changes[] = {
    {fill, NO_ROOM},
    {remove_node, "The node is not yet known to gpuledger"},
};

START_TEST(who_would_be_refused_now_waits_no_longer)
{
    pthread_t thread;
    char *error = NULL;

    be_patient(HOUR_MS);
    world_add_pending(&world, "p", 6);
    world_add_pending(&world, "q", 6);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_q, &error), 0);
    while (!is_waiting())
        g_usleep(1000);
    changes[_i].happens();
    pthread_join(thread, NULL);
    ck_assert_str_eq(error, changes[_i].says);
    g_free(error);
}
END_TEST

/* kubelet has restarted, and the plugin has not come back. */
START_TEST(a_plugin_that_is_away_is_waited_for_with_patience)
{
    const uint64_t before = results(BIND_RESULT_TIMED_OUT);

    be_patient(30);
    world_add_pending(&world, "p", 6);
    store_apply_node(world.store, &(struct node_view){
                                      .name = "duo",
                                      .capacity = PAIRS({"aliyun.com/gpu-mem", "0"},
                                                        {"aliyun.com/gpu-count", "0"})});
    world_expect_bind(&world, "p", "duo", AWAY);
    ck_assert_uint_eq(results(BIND_RESULT_TIMED_OUT), before + 1);
    world_catch_up(&world);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("bind_queue");
    TCase *tc = tcase_create("bind_queue");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, binds_of_one_pod_at_once_are_one_binding);
    tcase_add_test(tc, a_twin_tries_again_what_was_refused);
    tcase_add_test(tc, a_twin_does_not_wait_for_ever);
    tcase_add_loop_test(tc, an_equal_pod_waits_until_the_first_is_matched, 0,
                        G_N_ELEMENTS(ends_of_waiting));
    tcase_add_test(tc, an_equal_pod_waits_until_the_first_has_started);
    tcase_add_test(tc, waiting_ends_in_time_and_leaves_nothing);
    tcase_add_test(tc, nobody_waits_for_another_size);
    tcase_add_test(tc, who_waits_for_a_pod_of_another_size_is_told_so);
    tcase_add_test(tc, waiting_does_not_hide_that_there_is_no_room);
    tcase_add_test(tc, waiting_ends_with_patience);
    tcase_add_test(tc, less_patience_ends_waiting_at_once);
    tcase_add_loop_test(tc, who_would_be_refused_now_waits_no_longer, 0,
                        G_N_ELEMENTS(changes));
    tcase_add_test(tc, a_plugin_that_is_away_is_waited_for_with_patience);
    tcase_add_test(tc, of_many_that_would_wait_most_are_answered_at_once);
    tcase_add_test(tc, twins_that_wait_count_as_well);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
