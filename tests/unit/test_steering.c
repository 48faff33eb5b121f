/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts of equal pods: the next one does not go where it would wait for those before it, as long as
 * another node takes it at once. Two pods of 6 do not fit on one card of 10, so that on "duo", "twin"
 * and "third" the second waits until the first is matched.
 */
#include "app/steering.h"
#include "binding_world.h"
#include "suite.h"

#define COMING                                                                                     \
    "Other pods are on their way to the node's GPU plugin, and another node takes the pod at once"
#define AWAITING "A pod of the same size on the node still waits for its GPU"

static struct moment moment;

static void setup_three(void)
{
    setup();
    fake_cluster_put_node(cluster, "twin", 20, 2);
    fake_cluster_put_node(cluster, "third", 20, 2);
    world_catch_up(&world);
    moment = (struct moment){g_get_real_time() * 1000, g_get_monotonic_time() / 1000, 0};
    store_set_moment(world.store, &moment);
}

/* "duo twin": which nodes pass. */
static void expect_passed(const char *pod, const char *nodes, const char *passed)
{
    g_autofree char *answer = world_filter(&world, pod, nodes);
    g_auto(GStrv) asked = g_strsplit(nodes, ",", -1);
    g_autoptr(GString) found = g_string_new(NULL);

    for (char **node = asked; *node; node++) {
        g_autofree char *refusal = g_strdup_printf("\"%s\":\"", *node);
        if (!strstr(answer, refusal))
            g_string_append_printf(found, "%s%s", found->len ? " " : "", *node);
    }
    ck_assert_msg(g_str_equal(found->str, passed), "%s passed: %s", found->str, answer);
}

static void prefer(const char *pod, const char *nodes, const char *winner)
{
    g_autofree char *marks = world_prioritize(&world, PRIORITIZE_ALL, pod, nodes);
    g_autofree char *best = g_strdup_printf("%s=10", winner);

    ck_assert_msg(strstr(marks, best), "%s", marks);
}

static void add_pods(void)
{
    static const char *const pods[] = {"p", "q", "r", "s"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        world_add_pending(&world, pods[i], 6);
}

START_TEST(who_is_preferred_elsewhere_keeps_the_next_away)
{
    add_pods();
    expect_passed("p", "duo,third,twin", "duo third twin");
    prefer("p", "duo,third,twin", "duo");
    expect_passed("q", "duo,third,twin", "third twin");
    prefer("q", "third,twin", "third");
    expect_passed("r", "duo,third,twin", "twin"); /* the only one: it goes there */
    expect_passed("s", "duo,third,twin", "duo third twin");
    prefer("s", "duo,third,twin", "duo");
    /* Asked again, it may have its own place. */
    expect_passed("q", "duo,third,twin", "third");
}
END_TEST

START_TEST(the_reason_is_constant_and_evicts_nobody)
{
    add_pods();
    prefer("p", "duo,twin", "duo");
    g_autofree char *answer = world_filter(&world, "q", "duo,twin");
    ck_assert_msg(strstr(answer, "\"FailedAndUnresolvableNodes\":{\"duo\":\"" COMING "\"}"), "%s",
                  answer);
}
END_TEST

START_TEST(a_pod_that_waits_for_its_device_keeps_the_next_away)
{
    add_pods();
    world_expect_bind(&world, "p", "duo", "");
    expect_passed("q", "duo,third,twin", "third twin");
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    world_catch_up(&world);
    expect_passed("q", "duo,third,twin", "duo third twin");
}
END_TEST

START_TEST(other_sizes_are_not_turned_away)
{
    add_pods();
    world_add_pending(&world, "small", 2);
    prefer("p", "duo,twin", "duo");
    expect_passed("small", "duo,twin", "duo twin");
}
END_TEST

START_TEST(it_is_forgotten_in_time)
{
    add_pods();
    prefer("p", "duo,twin", "duo");
    moment.now_ms += HINT_LASTS_MS - 1;
    expect_passed("q", "duo,twin", "twin");
    moment.now_ms++;
    expect_passed("q", "duo,twin", "duo twin");
}
END_TEST

START_TEST(it_is_forgotten_with_the_pod)
{
    add_pods();
    prefer("p", "duo,twin", "duo");
    fake_cluster_delete_pod(cluster, "p");
    world_catch_up(&world);
    expect_passed("q", "duo,twin", "duo twin");
}
END_TEST

START_TEST(it_is_forgotten_once_the_pod_is_booked)
{
    add_pods();
    prefer("p", "duo,twin", "duo");
    world_expect_bind(&world, "p", "twin", ""); /* kube-scheduler chose otherwise */
    expect_passed("q", "duo,twin", "duo");
}
END_TEST

/* Since the room that others will take is no room either. */
START_TEST(nor_does_it_go_where_others_take_the_last_room)
{
    world_add_pending(&world, "a", 10);
    world_add_pending(&world, "b", 9);
    prefer("a", "mono", "mono");
    expect_passed("b", "duo,mono", "duo");
}
END_TEST

START_TEST(a_bind_that_would_wait_is_turned_to_a_free_node_once)
{
    add_pods();
    expect_passed("q", "duo,twin", "duo twin");
    expect_passed("r", "duo,twin", "duo twin");
    world_expect_bind(&world, "p", "duo", "");
    store_set_moment(world.store, NULL);
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "q", "duo", COMING);
    /* q will come to twin, which r need not be sent to as well. */
    world_expect_bind(&world, "r", "duo", AWAITING);
    expect_passed("q", "duo,twin", "twin");
    world_expect_bind(&world, "q", "twin", "");
}
END_TEST

START_TEST(a_bind_is_not_turned_to_a_node_that_nobody_asked_about)
{
    add_pods();
    expect_passed("q", "duo,mono", "duo mono");
    world_expect_bind(&world, "p", "duo", "");
    world_add_bound(&world, "full", "mono", 10, "0");
    store_set_moment(world.store, NULL);
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "q", "duo", AWAITING);
    world_expect_bind(&world, "s", "duo", AWAITING); /* filter was not asked */
}
END_TEST

START_TEST(of_nodes_where_all_wait_the_shortest_queue_is_best)
{
    add_pods();
    world_add_pending(&world, "t", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "q", "twin", "");
    expect_passed("r", "duo,twin", "duo twin");
    prefer("r", "duo,twin", "duo");
    prefer("s", "duo,twin", "twin");
    prefer("t", "duo,twin", "duo");
}
END_TEST

/* twin packs better by 0.2 cards, and its plugin has a pod to serve before. */
START_TEST(the_loss_of_waiting_is_weighed)
{
    world_add_pending(&world, "p", 2);
    world_add_pending(&world, "q", 1); /* another size: it is served at once, but after p */
    world_add_bound(&world, "first", "twin", 2, "0");
    world_add_bound(&world, "other", "duo", 2, "0");
    world_expect_bind(&world, "p", "twin", "");
    prefer("q", "duo,twin", "twin");
    ((struct store_options *)store_options(world.store))->wait_loss = 300;
    prefer("q", "duo,twin", "duo");
}
END_TEST

/* Two worlds that are told the same at the same moments. */
START_TEST(it_follows_from_the_calls_alone)
{
    add_pods();
    for (int i = 0; i < 2; i++) {
        prefer("p", "duo,third,twin", "duo");
        prefer("q", "third,twin", "third");
        expect_passed("r", "duo,third,twin", "twin");
        /* As where a file of a record ends: all begins anew. */
        g_autoptr(demand) demand = demand_new();
        store_learn(world.store, demand);
        expect_passed("r", "duo,third,twin", "duo third twin");
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("steering");
    TCase *tc = tcase_create("steering");

    tcase_add_checked_fixture(tc, setup_three, teardown);
    tcase_add_test(tc, who_is_preferred_elsewhere_keeps_the_next_away);
    tcase_add_test(tc, the_reason_is_constant_and_evicts_nobody);
    tcase_add_test(tc, a_pod_that_waits_for_its_device_keeps_the_next_away);
    tcase_add_test(tc, other_sizes_are_not_turned_away);
    tcase_add_test(tc, it_is_forgotten_in_time);
    tcase_add_test(tc, it_is_forgotten_with_the_pod);
    tcase_add_test(tc, it_is_forgotten_once_the_pod_is_booked);
    tcase_add_test(tc, nor_does_it_go_where_others_take_the_last_room);
    tcase_add_test(tc, a_bind_that_would_wait_is_turned_to_a_free_node_once);
    tcase_add_test(tc, a_bind_is_not_turned_to_a_node_that_nobody_asked_about);
    tcase_add_test(tc, of_nodes_where_all_wait_the_shortest_queue_is_best);
    tcase_add_test(tc, the_loss_of_waiting_is_weighed);
    tcase_add_test(tc, it_follows_from_the_calls_alone);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
