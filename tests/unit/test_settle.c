/* SPDX-License-Identifier: Apache-2.0 */
#include "binding_world.h"
#include "suite.h"

#include <string.h>

#define NOT_KNOWN "it is not known whether the pod was bound: fake: timed out"
#define LONG_AGO_MS 151000 /* no Binding of then can still be under way */

static void leave_unknown(enum fake_act act)
{
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    fake_cluster_script_bind(cluster, &(struct fake_step){act, OUTCOME_UNKNOWN});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&world, "p", "duo", NOT_KNOWN);
    world.extender.bind_timeout_ms = 3000;
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
}

/* The API server accepted the Binding, and the watch says nothing. */
static void leave_bound(enum fake_act act)
{
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
}

static void (*const leave[])(enum fake_act act) = {leave_unknown, leave_bound};

static void settle(unsigned expected)
{
    ck_assert_uint_eq(extender_reconcile(&world.extender, 0), expected);
}

START_TEST(a_bound_pod_is_confirmed)
{
    leave[_i](FAKE_LOSE_REPLY);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    settle(0);
    unsigned gets = fake_cluster_n_gets(cluster);
    settle(0);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), gets);
}
END_TEST

static void delete (void)
{
    fake_cluster_delete_pod(cluster, "p");
}

static void recreate(void)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .uid = "uid-p2", .mem = 6});
}

static void end(void)
{
    fake_cluster_set_phase(cluster, "p", "Failed");
}

static void (*const ends[])(void) = {delete, recreate, end};

START_TEST(a_pod_that_is_over_is_released)
{
    leave[_i / 3](FAKE_DELAY_EFFECT);
    ends[_i % 3]();
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_catch_up(&world);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

START_TEST(an_unbound_pod_is_kept_while_its_binding_may_be_under_way)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    settle(0);
    world_age(&world, "uid-p", 80000);
    settle(0);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    fake_cluster_carry_out(cluster);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

START_TEST(an_unbound_pod_is_released_when_no_binding_can_be_under_way)
{
    leave_unknown(FAKE_FAIL);
    world_age(&world, "uid-p", LONG_AGO_MS);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_expect_bind(&world, "p", "mono", "");
}
END_TEST

static const enum outcome silence[] = {OUTCOME_UNKNOWN, OUTCOME_REFUSED, OUTCOME_CONFLICT};

START_TEST(an_api_server_that_does_not_tell_changes_nothing)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    world_age(&world, "uid-p", LONG_AGO_MS);
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, silence[_i]});
    settle(0);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

START_TEST(a_pod_that_others_bound_is_counted_where_it_is)
{
    leave_unknown(FAKE_FAIL);
    fake_cluster_bind_bare(cluster, "p", "mono");
    settle(1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    ck_assert_int_eq(world_used(&world, "mono", 0), 6);
}
END_TEST

START_TEST(only_what_is_old_enough_is_asked_for)
{
    unsigned gets;

    leave[_i](FAKE_DELAY_EFFECT);
    gets = fake_cluster_n_gets(cluster);
    ck_assert_uint_eq(extender_reconcile(&world.extender, 5000), 0);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), gets);
    world_age(&world, "uid-p", 5000);
    extender_reconcile(&world.extender, 5000);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), gets + 1);
}
END_TEST

static void settle_nothing(void *data)
{
    settle(0);
}

START_TEST(a_bind_in_flight_is_left_alone)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = settle_nothing});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
}
END_TEST

START_TEST(all_are_settled_in_one_go)
{
    leave_unknown(FAKE_LOSE_REPLY);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 3});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "r", .mem = 4});
    world_expect_bind(&world, "q", "duo", "");
    world_expect_bind(&world, "r", "mono", "");
    fake_cluster_delete_pod(cluster, "r");
    settle(3);
    ck_assert_int_eq(world_used(&world, "duo", 0), 9);
    ck_assert_int_eq(world_used(&world, "mono", 0), 0);
}
END_TEST

static void drain(void *data)
{
    g_atomic_int_set(&world.extender.draining, 1);
}

START_TEST(a_draining_extender_asks_for_no_more)
{
    leave_unknown(FAKE_LOSE_REPLY);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 3});
    world_expect_bind(&world, "q", "duo", "");
    unsigned gets = fake_cluster_n_gets(cluster);
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER, .hook = drain});
    settle(1);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), gets + 1);
}
END_TEST

/* --- settling and lists at once -------------------------------------------------------------- */

/* The watch was cut, and the list that follows leaves out what has ended meanwhile: nothing else
 * will ever say so. */
static void end_unseen(void *data)
{
    fake_cluster_delete_pod(cluster, "p");
    if (data)
        store_list_begin(world.store, FEED_PODS);
    g_ptr_array_unref(fake_cluster_snapshot(cluster, FEED_PODS));
    store_list_end(world.store, FEED_PODS);
}

/* The list begins while the GET is under way, or before. */
static void begin_list(bool before)
{
    if (before)
        store_list_begin(world.store, FEED_PODS);
    fake_cluster_script_get(
        cluster, &(struct fake_step){FAKE_ANSWER, .then = end_unseen, .data = before ? NULL : cluster});
}

START_TEST(a_get_older_than_a_list_does_not_confirm)
{
    leave[_i / 2](FAKE_LOSE_REPLY);
    begin_list(_i % 2);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
}
END_TEST

START_TEST(nor_does_that_of_a_bind)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_LOSE_REPLY});
    begin_list(_i);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
}
END_TEST

static void bind_elsewhere_unseen(void *data)
{
    fake_cluster_bind_bare(cluster, "p", "mono");
    store_list_begin(world.store, FEED_PODS);
}

/* What others have bound counts where it is, though the bind itself has failed. */
START_TEST(a_bind_keeps_what_a_get_has_shown)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_CONFLICT,
                                                          .then = bind_elsewhere_unseen});
    world_expect_bind(&world, "p", "duo", "fake: conflict");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    ck_assert_int_eq(world_used(&world, "mono", 0), 6);
    fake_cluster_list(cluster, world.store, FEED_PODS);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

/* --- settling and binding at once ----------------------------------------------------------- */

static void bind_again(void *data)
{
    world_expect_bind(&world, "p", "duo", "");
}

static void bind_again_in_vain(void *data)
{
    leave_unknown(FAKE_DELAY_EFFECT);
}

static void (*const repeats[])(void *data) = {bind_again, bind_again_in_vain};

/* The GET said "unbound", and that was old news when it arrived. */
START_TEST(a_bind_that_was_repeated_meanwhile_is_left_alone)
{
    leave_unknown(FAKE_FAIL);
    world_age(&world, "uid-p", LONG_AGO_MS);
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER, .then = repeats[_i]});
    settle(0);
    ck_assert_int_eq(world_state(&world, "uid-p"), _i == 0 ? ALLOCATION_BOUND : ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

static void *bind_q(void *data)
{
    return world_bind(&world, "q", "duo");
}

START_TEST(who_waits_for_an_unsettled_pod_goes_on)
{
    pthread_t thread;
    g_autofree char *error = NULL;

    leave_unknown(FAKE_FAIL);
    world.extender.bind_timeout_ms = 20000;
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 6});
    world_catch_up(&world);
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_q, NULL), 0);
    g_usleep(30000);
    ck_assert_int_eq(world_state(&world, "uid-q"), -1);
    world_age(&world, "uid-p", LONG_AGO_MS);
    settle(1);
    pthread_join(thread, (void **)&error);
    ck_assert_str_eq(error, "");
    ck_assert_int_eq(world_card(&world, "uid-q"), 0);
}
END_TEST

/* --- an API server that was set back to a backup ---------------------------------------------- */

static void set_back(void)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .uid = "uid-p", .mem = 6});
}

static void confirm(void)
{
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}

#define SET_BACK "the pod was bound, and a list of the pods says that it is not; try again"

/* Otherwise its cards were never free again, and bind said that it had been done. */
START_TEST(a_pod_that_was_set_back_is_released_and_can_be_bound)
{
    confirm();
    set_back();
    world_sync(&world);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6); /* one word is not enough */
    world_expect_bind(&world, "p", "duo", SET_BACK);
    settle(1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    settle(0);
}
END_TEST

/* Who cannot be asked about yet is asked about again; who is gone is doubted no longer. */
START_TEST(a_doubt_lasts_until_it_is_settled)
{
    confirm();
    set_back();
    world_sync(&world);
    for (int i = 0; i < 3; i++) {
        store_lock(world.store);
        g_autoptr(GPtrArray) uids = store_doubted(world.store, 10);
        store_unlock(world.store);
        ck_assert_uint_eq(uids->len, 1);
        ck_assert_str_eq(uids->pdata[0], "uid-p");
    }
    fake_cluster_delete_pod(world.cluster, "p");
    world_catch_up(&world);
    store_lock(world.store);
    ck_assert(!store_doubts(world.store, "uid-p"));
    g_autoptr(GPtrArray) none = store_doubted(world.store, 10);
    store_unlock(world.store);
    ck_assert_uint_eq(none->len, 0);
}
END_TEST

START_TEST(a_list_that_is_old_is_not_believed)
{
    g_autofree char *unbound = fake_cluster_pod_json(cluster, "p");

    confirm();
    store_list_begin(world.store, FEED_PODS);
    feed_event(world.store, FEED_PODS, false, unbound);
    store_list_end(world.store, FEED_PODS);
    settle(1);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    world_expect_bind(&world, "p", "duo", "");
    settle(0);
}
END_TEST

START_TEST(who_is_seen_bound_again_is_not_asked_about)
{
    g_autofree char *unbound = fake_cluster_pod_json(cluster, "p");

    confirm();
    store_list_begin(world.store, FEED_PODS);
    feed_event(world.store, FEED_PODS, false, unbound);
    store_list_end(world.store, FEED_PODS);
    world_sync(&world);
    settle(0);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

/* Whom the API server does not tell of comes again when the others have had their turn. */
START_TEST(some_at_a_time_are_asked_about_and_all_in_turn)
{
    enum { PODS = 120 };
    unsigned rounds = 0;

    for (int i = 0; i < PODS; i++) {
        g_autofree char *name = g_strdup_printf("q%d", i), *uid = g_strdup_printf("uid-q%d", i);
        world_add_bound(&world, name, "plain", 1, NULL);
        fake_cluster_add_pod(cluster, &(struct fake_pod){.name = name, .uid = uid});
    }
    world_sync(&world);
    const unsigned gets = fake_cluster_n_gets(cluster);
    while (extender_reconcile(&world.extender, 0) > 0) {
        rounds++;
        ck_assert_uint_le(fake_cluster_n_gets(cluster) - gets, rounds * 50);
    }
    ck_assert_uint_eq(fake_cluster_n_gets(cluster) - gets, PODS);
    ck_assert_uint_eq(rounds, 3);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("settle");
    TCase *tc = tcase_create("settle");

    tcase_add_checked_fixture(tc, setup_with_p, teardown);
    tcase_add_loop_test(tc, a_bound_pod_is_confirmed, 0, 2);
    tcase_add_loop_test(tc, a_pod_that_is_over_is_released, 0, 6);
    tcase_add_test(tc, an_unbound_pod_is_kept_while_its_binding_may_be_under_way);
    tcase_add_test(tc, an_unbound_pod_is_released_when_no_binding_can_be_under_way);
    tcase_add_loop_test(tc, an_api_server_that_does_not_tell_changes_nothing, 0,
                        G_N_ELEMENTS(silence));
    tcase_add_test(tc, a_pod_that_others_bound_is_counted_where_it_is);
    tcase_add_loop_test(tc, only_what_is_old_enough_is_asked_for, 0, 2);
    tcase_add_test(tc, a_bind_in_flight_is_left_alone);
    tcase_add_test(tc, all_are_settled_in_one_go);
    tcase_add_test(tc, a_draining_extender_asks_for_no_more);
    tcase_add_loop_test(tc, a_get_older_than_a_list_does_not_confirm, 0, 4);
    tcase_add_loop_test(tc, nor_does_that_of_a_bind, 0, 2);
    tcase_add_test(tc, a_bind_keeps_what_a_get_has_shown);
    tcase_add_loop_test(tc, a_bind_that_was_repeated_meanwhile_is_left_alone, 0, 2);
    tcase_add_test(tc, who_waits_for_an_unsettled_pod_goes_on);
    tcase_add_test(tc, a_pod_that_was_set_back_is_released_and_can_be_bound);
    tcase_add_test(tc, a_doubt_lasts_until_it_is_settled);
    tcase_add_test(tc, a_list_that_is_old_is_not_believed);
    tcase_add_test(tc, some_at_a_time_are_asked_about_and_all_in_turn);
    tcase_add_test(tc, who_is_seen_bound_again_is_not_asked_about);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
