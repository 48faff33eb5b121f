/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things: lists, late answers, ends. What single objects say is in
 * test_store_objects.c.
 */
#include "stored_world.h"
#include "suite.h"

#include <string.h>

#define IDX "ALIYUN_COM_GPU_MEM_IDX"

static bool is_pending(const char *uid)
{
    store_lock(world.store);
    bool pending = store_pending(world.store, uid) != NULL;
    store_unlock(world.store);
    return pending;
}

static void settle_with(const char *object)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;

    ck_assert(pod_view_decode(arena, json_parse(arena, object, strlen(object), NULL), &view, NULL));
    store_reconcile_pod(world.store, &view, store_ask(world.store));
}

/* --- lists ---------------------------------------------------------------------------------- */

START_TEST(it_is_synced_after_a_list_of_every_feed)
{
    g_autoptr(store) store = store_new(&(struct store_options){0});
    static const char *const missing[] = {"nodes, pods, configmaps", "pods, configmaps",
                                          "configmaps"};

    for (int feed = 0; feed < FEED_BUDGETS; feed++) {
        g_autofree char *before = store_unsynced(store);
        ck_assert_str_eq(before, missing[feed]);
        store_list_begin(store, feed);
        ck_assert(!store_is_synced(store));
        store_list_end(store, feed);
    }
    g_autofree char *after = store_unsynced(store);
    ck_assert_str_eq(after, "");
    ck_assert(store_is_synced(store));
    store_list_begin(store, FEED_PODS); /* meanwhile what is known counts */
    ck_assert(store_is_synced(store));
}
END_TEST

START_TEST(says_why_a_feed_cannot_be_read)
{
    g_autoptr(store) store = store_new(&(struct store_options){0});

    store_set_trouble(store, FEED_PODS, "not now");
    store_set_trouble(store, FEED_PODS, "no");
    store_list_begin(store, FEED_NODES);
    store_list_end(store, FEED_NODES);
    g_autofree char *unsynced = store_unsynced(store), *troubles = store_troubles(store);
    ck_assert_str_eq(unsynced, "pods (no), configmaps");
    ck_assert_str_eq(troubles, "pods (no)");
    store_set_trouble(store, FEED_PODS, NULL);
    g_autofree char *none = store_troubles(store);
    ck_assert_str_eq(none, "");
}
END_TEST

START_TEST(a_list_sweeps_what_it_does_not_name)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    world_add_bound(&world, "b", "duo", 4, "1");
    world_add_pending(&world, "p", 2);
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    world_catch_up(&world);
    ck_assert(is_pending("uid-p") && !is_healthy("duo", 1));

    fake_cluster_delete_pod(cluster, "b");
    fake_cluster_delete_pod(cluster, "p");
    fake_cluster_delete_node(cluster, "mono");
    fake_cluster_put_unhealthy(cluster, "duo", NULL);
    world_sync(&world); /* the DELETED events are never seen */
    expect_used("duo", 3, 0, 0);
    ck_assert(!is_present("mono"));
    ck_assert(is_present("plain"));
    ck_assert(!is_pending("uid-p"));
    ck_assert(is_healthy("duo", 1));
}
END_TEST

START_TEST(a_list_sweeps_its_own_feed_only)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    world_catch_up(&world);
    fake_cluster_list(cluster, world.store, FEED_NODES);
    fake_cluster_list(cluster, world.store, FEED_CONFIGMAPS);
    expect_used("duo", 3, 0, 0);
    fake_cluster_list(cluster, world.store, FEED_PODS);
    ck_assert(!is_healthy("duo", 1));
    ck_assert(is_present("duo"));
}
END_TEST

START_TEST(a_list_that_failed_midway_sweeps_nothing)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    world_add_bound(&world, "b", "duo", 4, "1");
    store_list_begin(world.store, FEED_PODS); /* fails before its first object */
    expect_used("duo", 3, 4, 0);
    fake_cluster_list(cluster, world.store, FEED_PODS);
    expect_used("duo", 3, 4, 0);
}
END_TEST

START_TEST(a_list_keeps_what_was_bound_while_it_was_read)
{
    world_add_pending(&world, "p", 6);
    store_list_begin(world.store, FEED_PODS);
    g_autoptr(GPtrArray) objects = fake_cluster_snapshot(cluster, FEED_PODS);
    if (_i == 1)
        g_ptr_array_set_size(objects, 0); /* as if the pod was made since */
    world_expect_bind(&world, "p", "duo", "");
    for (guint i = 0; i < objects->len; i++)
        feed_event(world.store, FEED_PODS, false, g_ptr_array_index(objects, i));
    store_list_end(world.store, FEED_PODS);
    expect_used("duo", 6, 0, 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

/* The reply of the Binding is lost, a GET tells, and the list is older than both. */
START_TEST(a_list_keeps_what_a_get_has_shown)
{
    world_add_pending(&world, "p", 6);
    g_autoptr(GPtrArray) objects = fake_cluster_snapshot(cluster, FEED_PODS);
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_LOSE_REPLY});
    world_expect_bind(&world, "p", "duo", "");
    store_list_begin(world.store, FEED_PODS);
    for (guint i = 0; i < objects->len; i++)
        feed_event(world.store, FEED_PODS, false, g_ptr_array_index(objects, i));
    store_list_end(world.store, FEED_PODS);
    expect_used("duo", 6, 0, 0);
}
END_TEST

/* --- stale news ----------------------------------------------------------------------------- */

START_TEST(an_older_event_does_not_release_a_reservation)
{
    g_autofree char *unbound = NULL;

    world_add_pending(&world, "p", 6);
    unbound = fake_cluster_pod_json(cluster, "p");
    world_expect_bind(&world, "p", "duo", "");
    feed_event(world.store, FEED_PODS, false, unbound);
    expect_used("duo", 6, 0, 0);
    world_catch_up(&world);
    feed_event(world.store, FEED_PODS, false, unbound);
    expect_used("duo", 6, 0, 0);
    ck_assert(!is_pending("uid-p")); /* nobody leaves it room */
}
END_TEST

START_TEST(an_older_get_does_not_resurrect_a_pod)
{
    g_autofree char *bound = NULL;

    world_add_bound(&world, "a", "duo", 3, "0");
    bound = fake_cluster_pod_json(cluster, "a");
    fake_cluster_delete_pod(cluster, "a");
    world_catch_up(&world);
    settle_with(bound);
    expect_used("duo", 0, 0, 0);
    ck_assert_int_eq(world_state(&world, "uid-a"), -1);
}
END_TEST

START_TEST(an_older_get_does_not_undo_the_watch)
{
    g_autofree char *older = NULL;

    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "a", .node = "duo", .mem = 3, .card = "0"});
    world_catch_up(&world);
    older = fake_cluster_pod_json(cluster, "a");
    fake_cluster_annotate(cluster, "a", IDX, "1");
    world_catch_up(&world);
    expect_used("duo", 3, 3, 0); /* the one that it was bound to, and the one that it names */
    settle_with(older);
    expect_used("duo", 3, 3, 0);
}
END_TEST

START_TEST(a_get_of_an_unbound_pod_says_nothing)
{
    g_autofree char *unbound = NULL;

    world_add_pending(&world, "p", 6);
    unbound = fake_cluster_pod_json(cluster, "p");
    world_expect_bind(&world, "p", "duo", "");
    settle_with(unbound);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    expect_used("duo", 6, 0, 0);
}
END_TEST

START_TEST(a_get_settles_what_the_watch_has_not_shown)
{
    g_autofree char *object = NULL;

    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    if (_i == 1)
        fake_cluster_set_phase(cluster, "p", "Failed");
    object = fake_cluster_pod_json(cluster, "p");
    settle_with(object);
    expect_used("duo", _i == 1 ? 0 : 6, 0, 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), _i == 1 ? -1 : ALLOCATION_CONFIRMED);
    ck_assert(!is_pending("uid-p"));
}
END_TEST

/* --- ends ----------------------------------------------------------------------------------- */

START_TEST(a_pod_that_ends_releases_its_card)
{
    static const char *const phases[] = {"Succeeded", "Failed", NULL};

    world_add_bound(&world, "a", "duo", 3, "0");
    world_add_bound(&world, "b", "duo", 4, "0");
    if (phases[_i])
        fake_cluster_set_phase(cluster, "a", phases[_i]);
    else
        fake_cluster_delete_pod(cluster, "a");
    world_catch_up(&world);
    expect_used("duo", 4, 0, 0);
}
END_TEST

START_TEST(a_pod_that_ends_releases_its_reservation)
{
    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    fake_cluster_delete_pod(cluster, "p");
    g_autoptr(GPtrArray) gone = fake_cluster_snapshot(cluster, FEED_PODS); /* drops the events */
    ck_assert_uint_eq(gone->len, 0);
    store_delete_pod(world.store, "uid-p");
    expect_used("duo", 0, 0, 0);
    ck_assert(!is_pending("uid-p"));
}
END_TEST

START_TEST(a_pod_that_is_being_deleted_holds_its_card)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    fake_cluster_terminate(cluster, "a");
    world_catch_up(&world);
    expect_used("duo", 3, 0, 0);
    fake_cluster_list(cluster, world.store, FEED_PODS);
    expect_used("duo", 3, 0, 0);
}
END_TEST

START_TEST(a_pod_that_ends_twice_is_no_news)
{
    world_add_bound(&world, "a", "duo", 3, "0");
    fake_cluster_set_phase(cluster, "a", "Failed");
    fake_cluster_delete_pod(cluster, "a");
    world_catch_up(&world);
    store_delete_pod(world.store, "uid-a");
    store_delete_pod(world.store, "never-heard-of");
    expect_used("duo", 0, 0, 0);
}
END_TEST

START_TEST(a_pod_made_again_under_its_name_is_another_one)
{
    g_autofree char *old = NULL;

    world_add_bound(&world, "a", "duo", 3, "0");
    old = fake_cluster_pod_json(cluster, "a");
    fake_cluster_add_pod(
        cluster,
        &(struct fake_pod){.name = "a", .uid = "uid-a2", .node = "duo", .mem = 5, .card = "1"});
    if (_i == 0) { /* DELETED, ADDED */
        world_catch_up(&world);
    } else { /* a list instead */
        fake_cluster_list(cluster, world.store, FEED_PODS);
    }
    expect_used("duo", 0, 5, 0);
    feed_event(world.store, FEED_PODS, true, old); /* too late: it means the old one */
    expect_used("duo", 0, 5, 0);
}
END_TEST

/* --- waiting -------------------------------------------------------------------------------- */

/* Somebody who waits for "duo" or for "uid-a", and what was so when something woke him. */
struct sleep {
    bool asleep;   /* once the lock is free */
    bool expected; /* now he should be woken */
    bool woken, in_time;
};

static void *sleep_for_duo(void *data)
{
    struct sleep *sleep = data;

    store_lock(world.store);
    sleep->asleep = true;
    sleep->woken = store_wait(world.store, "duo", "uid-a", g_get_monotonic_time() / 1000 + 10000);
    sleep->in_time = sleep->expected;
    store_unlock(world.store);
    return NULL;
}

static bool is_asleep(const struct sleep *sleep)
{
    store_lock(world.store);
    const bool asleep = sleep->asleep;
    store_unlock(world.store);
    return asleep;
}

static void see_a_on_duo(void)
{
    world_add_bound(&world, "a", "duo", 3, "1");
}

static void see_another_on_duo(void)
{
    world_add_bound(&world, "b", "duo", 2, "0");
}

static void see_the_end_of_another_on_duo(void)
{
    fake_cluster_delete_pod(cluster, "c");
    world_catch_up(&world);
}

static void see_a_ask_for_more(void)
{
    world_add_pending(&world, "a", 9);
}

static void see_duo(void)
{
    store_apply_node(world.store, &(struct node_view){.name = "duo"});
}

static void see_duo_go(void)
{
    store_delete_node(world.store, "duo");
}

static void see_another_policy(void)
{
    store_set_policy(world.store, &policies[0], 1);
}

static void bind_another_to_duo_in_vain(void)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    g_autofree char *error = world_bind(&world, "f", "duo");
    ck_assert_str_ne(error, "");
}

static void bind_a_elsewhere(void)
{
    g_autofree char *error = world_bind(&world, "a", "mono");
    ck_assert_str_eq(error, "");
}

static void see_another_assigned(void)
{
    fake_cluster_assign(cluster, "g");
    world_catch_up(&world);
}

static void see_another_start(void)
{
    fake_cluster_start(cluster, "h");
    world_catch_up(&world);
}

static void (*const alarms[])(void) = {
    see_a_on_duo,  see_another_on_duo, see_the_end_of_another_on_duo,
    see_a_ask_for_more, see_duo, see_duo_go, see_another_policy, bind_another_to_duo_in_vain,
    bind_a_elsewhere, see_another_assigned, see_another_start,
};

/* Who waits is woken by what concerns him. What happens elsewhere may only wake him too early. */
START_TEST(who_waits_is_woken_by_his_node_and_his_pod)
{
    struct sleep sleep = {0};
    pthread_t thread;

    world_add_bound(&world, "c", "duo", 2, "0");
    world_add_bound(&world, "d", "mono", 2, "0");
    world_add_pending(&world, "a", 3);
    world_add_pending(&world, "g", 4);
    world_expect_bind(&world, "g", "duo", "");
    world_add_pending(&world, "h", 5);
    world_expect_bind(&world, "h", "duo", "");
    fake_cluster_assign(cluster, "h");
    world_catch_up(&world);
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_for_duo, &sleep), 0);
    while (!is_asleep(&sleep))
        g_usleep(1000);
    world_add_bound(&world, "e", "mono", 2, "0");
    world_add_pending(&world, "f", 3);
    store_delete_pod(world.store, "uid-d");
    fake_cluster_put_node(cluster, "mono", 10, 1);
    world_catch_up(&world);
    g_usleep(20000);
    store_lock(world.store);
    sleep.expected = true;
    store_unlock(world.store);
    alarms[_i]();
    pthread_join(thread, NULL);
    ck_assert(sleep.woken);
    ck_assert(sleep.in_time);
}
END_TEST

START_TEST(waiters_do_not_wait_for_ever)
{
    store_lock(world.store);
    int64_t start_ms = g_get_monotonic_time() / 1000;
    ck_assert(!store_wait(world.store, "duo", NULL, start_ms + 30));
    ck_assert_int_ge(g_get_monotonic_time() / 1000, start_ms + 30);
    ck_assert(!store_wait(world.store, NULL, NULL, start_ms)); /* over already */
    store_unlock(world.store);
}
END_TEST

START_TEST(the_policy_can_change)
{
    ck_assert_ptr_eq(store_options(world.store)->policy, &policies[0]);
    world_add_bound(&world, "a", "duo", 3, "1");
    store_set_policy(world.store, policy_find("spread"), 5);
    ck_assert_int_eq(store_options(world.store)->patience_ms, 5);
    world_add_pending(&world, "p", 2);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-p"), 0);
    store_set_policy(world.store, policy_find("binpack"), 5);
    world_add_pending(&world, "q", 1);
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-q"), 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store");
    TCase *tc = tcase_create("store");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, it_is_synced_after_a_list_of_every_feed);
    tcase_add_test(tc, says_why_a_feed_cannot_be_read);
    tcase_add_test(tc, a_list_sweeps_what_it_does_not_name);
    tcase_add_test(tc, a_list_sweeps_its_own_feed_only);
    tcase_add_test(tc, a_list_that_failed_midway_sweeps_nothing);
    tcase_add_loop_test(tc, a_list_keeps_what_was_bound_while_it_was_read, 0, 2);
    tcase_add_test(tc, a_list_keeps_what_a_get_has_shown);
    tcase_add_test(tc, an_older_event_does_not_release_a_reservation);
    tcase_add_test(tc, an_older_get_does_not_resurrect_a_pod);
    tcase_add_test(tc, an_older_get_does_not_undo_the_watch);
    tcase_add_test(tc, a_get_of_an_unbound_pod_says_nothing);
    tcase_add_loop_test(tc, a_get_settles_what_the_watch_has_not_shown, 0, 2);
    tcase_add_loop_test(tc, a_pod_that_ends_releases_its_card, 0, 3);
    tcase_add_test(tc, a_pod_that_ends_releases_its_reservation);
    tcase_add_test(tc, a_pod_that_is_being_deleted_holds_its_card);
    tcase_add_test(tc, a_pod_that_ends_twice_is_no_news);
    tcase_add_loop_test(tc, a_pod_made_again_under_its_name_is_another_one, 0, 2);
    tcase_add_loop_test(tc, who_waits_is_woken_by_his_node_and_his_pod, 0, G_N_ELEMENTS(alarms));
    tcase_add_test(tc, waiters_do_not_wait_for_ever);
    tcase_add_test(tc, the_policy_can_change);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
