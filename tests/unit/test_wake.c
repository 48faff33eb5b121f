/* SPDX-License-Identifier: Apache-2.0 */
#include "literals.h"
#include "stopped_clock.h"
#include "suite.h"
#include "world.h"

static struct world world;

static void setup(void)
{
    world_init(&world);
    world_populate(&world);
    world_sync(&world);
    world_add_bound(&world, "old", "mono", 8, "0");
    world.extender.wake = wake_new();
}

static void teardown(void)
{
    g_clear_pointer(&world.extender.wake, wake_free);
    world_release(&world);
}

static unsigned run(void)
{
    return wake_run(world.extender.wake, world.store, world.extender.cluster);
}

static void filter(const char *pod, const char *nodes)
{
    g_autofree char *answer = world_filter(&world, pod, nodes);
    ck_assert_ptr_nonnull(answer);
}

/* As if the pod had been refused longer ago than kube-scheduler needs to ask again. */
static void let_grace_pass(void)
{
    clock_skip_ms(1100);
}

static void end_old(void)
{
    fake_cluster_delete_pod(world.cluster, "old");
    world_catch_up(&world);
}

START_TEST(a_refused_pod_is_woken_once_there_is_room)
{
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    let_grace_pass();
    ck_assert_uint_eq(run(), 0); /* no room */
    end_old();
    ck_assert_uint_eq(run(), 1);
    ck_assert_uint_eq(fake_cluster_n_annotated(world.cluster), 1);
    let_grace_pass();
    ck_assert_uint_eq(run(), 0); /* that room has had its turn */
}
END_TEST

START_TEST(who_is_woken_asks_for_what_it_asks_for_now)
{
    world_add_pending(&world, "new", 11); /* no card has so much */
    filter("new", "mono");
    world_add_pending(&world, "new", 5);
    let_grace_pass();
    end_old();
    ck_assert_uint_eq(run(), 1);
}
END_TEST

/* As if filter had refused so many pods of a namespace, of which the watch has shown none. */
static void refuse(const char *ns, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("%s-%u", ns, i);
        wake_note_refusal(world.extender.wake,
                          &(struct pod_view){.ns = ns, .name = name, .uid = name}, 0);
    }
}

#define MORE_THAN_ARE_REMEMBERED 5000

START_TEST(nobody_is_forgotten_for_the_many_of_another_namespace)
{
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    refuse("crowd", MORE_THAN_ARE_REMEMBERED);
    let_grace_pass();
    end_old();
    ck_assert_uint_eq(run(), 1);
}
END_TEST

START_TEST(who_comes_after_the_many_of_another_namespace_is_remembered)
{
    refuse("crowd", MORE_THAN_ARE_REMEMBERED);
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    let_grace_pass();
    end_old();
    ck_assert_uint_eq(run(), 1);
}
END_TEST

/* Of twenty that are woken at a time each namespace has its share. */
START_TEST(namespaces_are_woken_in_turns)
{
    for (unsigned i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("crowd-%u", i);
        store_apply_pod(world.store,
                        &(struct pod_view){.ns = "crowd", .name = name, .uid = name,
                                           CONTAINERS({.name = "c",
                                                       .limits = PAIRS({"aliyun.com/gpu-mem",
                                                                        "5"})})});
    }
    refuse("crowd", 100);
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    let_grace_pass();
    end_old();
    run();
    g_autofree char *woken = fake_cluster_annotation(world.cluster, "new", WAKE_ANNOTATION);
    ck_assert_ptr_nonnull(woken);
}
END_TEST

START_TEST(kube_scheduler_gets_its_chance_first)
{
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    end_old();
    ck_assert_uint_eq(run(), 0); /* refused a moment ago */
    filter("new", "mono");       /* it did ask again, and found room */
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
}
END_TEST

START_TEST(room_that_does_not_help_wakes_nobody)
{
    world_add_pending(&world, "new", 5);
    world_add_bound(&world, "small", "duo", 1, "0");
    world_add_bound(&world, "d0", "duo", 9, "0");
    world_add_bound(&world, "d1", "duo", 9, "1");
    filter("new", "mono,duo");
    fake_cluster_delete_pod(world.cluster, "small");
    world_catch_up(&world);
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
}
END_TEST

/* preempt waits for pods that do not end: without any room somebody has to ask again, once. */
START_TEST(who_is_awaited_in_vain_is_asked_about_again)
{
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    wake_note_awaited(world.extender.wake, "uid-new", 1000000);
    wake_note_awaited(world.extender.wake, "nobody", 0);
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
    wake_note_awaited(world.extender.wake, "uid-new", 0);
    ck_assert_uint_eq(run(), 1);
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
    /* kube-scheduler has asked by itself. */
    wake_note_awaited(world.extender.wake, "uid-new", 0);
    filter("new", "mono");
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
}
END_TEST

START_TEST(a_pod_that_is_gone_is_forgotten)
{
    world_add_pending(&world, "new", 5);
    filter("new", "mono");
    fake_cluster_delete_pod(world.cluster, "new");
    end_old();
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
    ck_assert_uint_eq(fake_cluster_n_annotated(world.cluster), 0);
}
END_TEST

/* filter may be asked about a pod long before the watch shows it. */
START_TEST(a_pod_that_the_watch_shows_late_is_woken)
{
    fake_cluster_add_pod(world.cluster, &(struct fake_pod){.name = "new", .mem = 5});
    filter("new", "mono");
    let_grace_pass();
    ck_assert_uint_eq(run(), 0); /* nothing is known of it */
    end_old();                   /* which shows the pod as well */
    ck_assert_uint_eq(run(), 1);
}
END_TEST

START_TEST(a_late_pod_is_woken_for_what_became_free_before_it_was_shown)
{
    fake_cluster_delete_pod(world.cluster, "old");
    fake_cluster_add_pod(world.cluster, &(struct fake_pod){.name = "new", .mem = 5});
    filter("new", "mono");
    fake_cluster_deliver(world.cluster, world.store, FEED_PODS, 1); /* the end alone */
    let_grace_pass();
    ck_assert_uint_eq(run(), 0);
    world_catch_up(&world);
    ck_assert_uint_eq(run(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wake");
    TCase *tcase = tcase_create("wake");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_refused_pod_is_woken_once_there_is_room);
    tcase_add_test(tcase, who_is_woken_asks_for_what_it_asks_for_now);
    tcase_add_test(tcase, nobody_is_forgotten_for_the_many_of_another_namespace);
    tcase_add_test(tcase, who_comes_after_the_many_of_another_namespace_is_remembered);
    tcase_add_test(tcase, namespaces_are_woken_in_turns);
    tcase_add_test(tcase, kube_scheduler_gets_its_chance_first);
    tcase_add_test(tcase, room_that_does_not_help_wakes_nobody);
    tcase_add_test(tcase, who_is_awaited_in_vain_is_asked_about_again);
    tcase_add_test(tcase, a_pod_that_is_gone_is_forgotten);
    tcase_add_test(tcase, a_pod_that_the_watch_shows_late_is_woken);
    tcase_add_test(tcase, a_late_pod_is_woken_for_what_became_free_before_it_was_shown);
    tcase_set_timeout(tcase, 30);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
