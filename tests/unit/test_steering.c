/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts of equal pods: the next one does not go where it would wait for those before it, as long as
 * another node takes it at once. Two pods of 6 do not fit on one card of 10, so that on "duo", "twin"
 * and "third" the second waits until the first is matched.
 */
#include "core/ledger.h"
#include "store/steering.h"
#include "binding_world.h"
#include "suite.h"

#define COMING                                                                                     \
    "Other pods are on their way to the node's GPU plugin, and another node takes the pod sooner"
#define SPOKEN "Pods that wait for the node's GPU plugin take the room that is left"
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

static void hint_of(const char *pod, const char *node)
{
    g_autofree char *uid = g_strdup_printf("uid-%s", pod);

    hints_note(store_hints(world.store),
               &(struct hint_about){uid, "default", node, store_pending(world.store, uid),
                                    INT64_MAX});
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

/* What is remembered of a node is so without those on their way there. */
START_TEST(prioritize_does_not_prefer_one_node_for_all)
{
    add_pods();
    prefer("p", "duo,twin", "duo");
    prefer("q", "duo,twin", "twin");
    moment.now_ms += HINT_LASTS_MS;
    prefer("r", "duo,twin", "duo");
}
END_TEST

/* p waits for so long that nobody of its size is let in any more; q will come all the same. */
START_TEST(who_comes_takes_room_however_long_it_waits)
{
    add_pods();
    world_add_pending(&world, "five", 5);
    world_expect_bind(&world, "p", "duo", "");
    hint_of("q", "duo");
    moment.now_ns += INT64_C(3600000000000);
    expect_passed("five", "duo,twin", "twin");
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

static void *bind_q_to_duo(void *data)
{
    return world_bind(&world, "q", "duo");
}

/* Nothing happens at the node where it waits. */
START_TEST(a_bind_that_waits_sees_another_node_become_free)
{
    pthread_t thread;
    g_autofree char *error = NULL;

    add_pods();
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "r", "twin", "");
    expect_passed("q", "duo,twin", "duo twin");
    store_set_moment(world.store, NULL);
    world.extender.bind_timeout_ms = 3600000;
    store_set_policy(world.store, store_options(world.store)->policy, 3600000);
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_q_to_duo, NULL), 0);
    for (bool waits = false; !waits; g_usleep(1000)) {
        store_lock(world.store);
        const struct hint *hint = hints_find(store_hints(world.store), "uid-q");
        waits = hint && hint->waits;
        store_unlock(world.store);
    }
    fake_cluster_assign(cluster, "r");
    fake_cluster_start(cluster, "r");
    world_catch_up(&world);
    pthread_join(thread, (void **)&error);
    ck_assert_str_eq(error, COMING);
}
END_TEST

START_TEST(who_is_refused_is_on_no_way)
{
    struct hints *hints = store_hints(world.store);

    add_pods();
    prefer("p", "mono,twin", "mono");
    world_add_bound(&world, "full", "mono", 10, "0");
    g_autofree char *error = world_bind(&world, "p", "mono");
    ck_assert_str_ne(error, "");
    ck_assert_ptr_null(hints_find(hints, "uid-p"));
    expect_passed("p", "mono", "");
    ck_assert_ptr_null(hints_find(hints, "uid-p"));
}
END_TEST

START_TEST(only_the_last_question_counts)
{
    add_pods();
    expect_passed("q", "duo,twin", "duo twin");
    expect_passed("q", "duo", "duo"); /* kube-scheduler has ruled twin out */
    world_expect_bind(&world, "p", "duo", "");
    store_set_moment(world.store, NULL);
    world.extender.bind_timeout_ms = 60;
    world_expect_bind(&world, "q", "duo", AWAITING);
}
END_TEST

/* Whether the pod's bind, which would wait at the node, is turned away now. */
static bool turns(const char *uid, const char *node)
{
    const struct pod_view pod = {.uid = uid, .ns = "default"};

    store_lock(world.store);
    const bool turned = steering_turns(world.store,
                                       &(struct feasibility_about){GATE_BY_FILTER, &pod,
                                                                   store_pending(world.store, uid),
                                                                   &moment, WITHOUT_PLUGIN},
                                       node, INT64_MAX);
    store_unlock(world.store);
    return turned;
}

START_TEST(a_bind_that_waits_looks_again_unless_its_node_is_fast)
{
    struct hints *hints = store_hints(world.store);

    add_pods();
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "r", "twin", "");
    expect_passed("q", "duo,twin", "duo twin");
    ck_assert(!turns("uid-q", "duo"));
    ck_assert(hints_find(hints, "uid-q")->waits);
    fake_cluster_assign(cluster, "r");
    fake_cluster_start(cluster, "r");
    world_catch_up(&world);
    moment.now_ms += HINT_LOOK_MS - 1;
    ck_assert(!turns("uid-q", "duo")); /* too early */
    hints_book(hints, "one", "duo", moment.now_ms - 100);
    hints_book(hints, "another", "duo", moment.now_ms);
    moment.now_ms++;
    ck_assert(!turns("uid-q", "duo")); /* it will be served before it were back */
    moment.now_ms += HINT_LOOK_MS;
    ck_assert(turns("uid-q", "duo"));
    ck_assert(!hints_find(hints, "uid-q")->waits);
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

START_TEST(of_nodes_where_all_wait_filter_leaves_the_shortest_queues)
{
    add_pods();
    world_add_pending(&world, "t", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_expect_bind(&world, "q", "twin", "");
    expect_passed("r", "duo,twin", "duo twin");
    prefer("r", "duo,twin", "duo");
    expect_passed("s", "duo,twin", "twin"); /* the only one: it goes there */
    expect_passed("t", "duo,twin", "duo twin");
    prefer("t", "duo,twin", "duo");
    expect_passed("s", "duo,twin", "twin");
    expect_passed("s", "twin,duo", "twin"); /* in whatever order */
    expect_passed("s", "duo,third,twin", "third");
}
END_TEST

/* There is room for all of them, on whatever card: nobody works out which they get. */
START_TEST(small_pods_on_their_way_lengthen_a_queue)
{
    static const char *const pods[] = {"a", "b", "c", "d", "e"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        world_add_pending(&world, pods[i], 1);
    world_expect_bind(&world, "a", "duo", "");
    world_expect_bind(&world, "b", "twin", "");
    expect_passed("e", "duo,twin", "duo twin");
    hint_of("c", "duo");
    expect_passed("e", "duo,twin", "twin");
    hints_find(store_hints(world.store), "uid-c")->waits = true;
    expect_passed("e", "duo,twin", "twin");
    hint_of("d", "twin");
    expect_passed("e", "duo,twin", "duo twin");
    hint_of("c", "third");
    expect_passed("e", "duo,twin", "duo");
}
END_TEST

static void hint_to(const char *uid, const char *node)
{
    g_autoptr(request) asked = request_new(NULL, 0);

    hints_note(store_hints(world.store),
               &(struct hint_about){uid, "default", node, asked, INT64_MAX});
}

static bool freed_since(uint64_t *freed)
{
    const uint64_t before = *freed;

    store_end_waits(world.store); /* as housekeeping does */
    *freed = ledger_freed(store_ledger(world.store));
    return *freed > before;
}

/* Two cards of 10: of three pods of 6 one finds no room, and waits for nothing. */
START_TEST(those_who_wait_leave_no_room_for_the_next)
{
    struct hints *hints = store_hints(world.store);
    uint64_t freed;

    add_pods();
    world_add_pending(&world, "small", 2);
    world_expect_bind(&world, "p", "duo", "");
    hint_of("q", "duo");
    expect_passed("r", "duo", "duo"); /* q's bind may never come */
    hints_find(hints, "uid-q")->waits = true;
    g_autofree char *answer = world_filter(&world, "r", "duo");
    ck_assert_msg(strstr(answer, "\"duo\":\"" SPOKEN "\""), "%s", answer);
    expect_passed("r", "duo,twin", "twin");
    expect_passed("small", "duo", "duo");
    expect_passed("q", "duo", "duo"); /* asked anew: its bind has waited in vain */
    expect_passed("r", "duo", "duo");
    freed_since(&freed);
    hint_of("q", "duo");
    hints_find(hints, "uid-q")->waits = true;
    ck_assert(!freed_since(&freed));
    hints_forget(hints, "uid-q");
    ck_assert(freed_since(&freed)); /* who was refused for it is woken */
    hint_of("q", "duo");
    hints_find(hints, "uid-q")->waits = true;
    hints_book(hints, "uid-q", "duo", moment.now_ms);
    ck_assert(!freed_since(&freed));
    hint_of("q", "duo");
    hints_find(hints, "uid-q")->waits = true;
    hints_book(hints, "uid-q", "twin", moment.now_ms); /* it has waited there in vain */
    ck_assert(freed_since(&freed));
}
END_TEST

/* Who is turned away comes back after a second or two. */
START_TEST(a_node_that_serves_all_before_that_keeps_those_who_wait)
{
    struct hints *hints = store_hints(world.store);

    for (const char *uid = "a\0b\0c\0d\0e\0"; *uid; uid += 2)
        hint_to(uid, "duo");
    hints_book(hints, "a", "duo", 1000);
    ck_assert(!hints_end_soon(hints, "duo", 1000)); /* nobody knows how fast it is */
    hints_book(hints, "b", "duo", 1500);
    ck_assert(hints_end_soon(hints, "duo", 2500));
    ck_assert(!hints_end_soon(hints, "duo", 2501)); /* it does not go on */
    hints_book(hints, "c", "duo", 2251);            /* two are left, 751 ms each */
    ck_assert(!hints_end_soon(hints, "duo", 2251));
    hints_forget(hints, "d");
    ck_assert(hints_end_soon(hints, "duo", 2251));
    ck_assert(!hints_end_soon(hints, "twin", 2251));
    hints_book(hints, "e", "duo", 2300);
    ck_assert(!hints_end_soon(hints, "duo", 2300)); /* nobody is left */
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
        store_learn(world.store, demand, false);
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
    tcase_add_test(tc, prioritize_does_not_prefer_one_node_for_all);
    tcase_add_test(tc, who_comes_takes_room_however_long_it_waits);
    tcase_add_test(tc, the_reason_is_constant_and_evicts_nobody);
    tcase_add_test(tc, a_pod_that_waits_for_its_device_keeps_the_next_away);
    tcase_add_test(tc, other_sizes_are_not_turned_away);
    tcase_add_test(tc, it_is_forgotten_in_time);
    tcase_add_test(tc, it_is_forgotten_with_the_pod);
    tcase_add_test(tc, it_is_forgotten_once_the_pod_is_booked);
    tcase_add_test(tc, nor_does_it_go_where_others_take_the_last_room);
    tcase_add_test(tc, a_bind_that_would_wait_is_turned_to_a_free_node_once);
    tcase_add_test(tc, a_bind_is_not_turned_to_a_node_that_nobody_asked_about);
    tcase_add_test(tc, a_bind_that_waits_sees_another_node_become_free);
    tcase_add_test(tc, who_is_refused_is_on_no_way);
    tcase_add_test(tc, only_the_last_question_counts);
    tcase_add_test(tc, a_bind_that_waits_looks_again_unless_its_node_is_fast);
    tcase_add_test(tc, of_nodes_where_all_wait_the_shortest_queue_is_best);
    tcase_add_test(tc, of_nodes_where_all_wait_filter_leaves_the_shortest_queues);
    tcase_add_test(tc, small_pods_on_their_way_lengthen_a_queue);
    tcase_add_test(tc, a_node_that_serves_all_before_that_keeps_those_who_wait);
    tcase_add_test(tc, those_who_wait_leave_no_room_for_the_next);
    tcase_add_test(tc, the_loss_of_waiting_is_weighed);
    tcase_add_test(tc, it_follows_from_the_calls_alone);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
