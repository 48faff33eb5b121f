/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bindings that the API server refuses, loses or delays: what is reported, and what stays booked.
 */
#include "binding_world.h"
#include "suite.h"

#include <string.h>

#define NOT_KNOWN "it is not known whether the pod was bound: "
#define NO_ROOM "Insufficient GPU Memory in one device"

static void script_bind(enum fake_act act, enum outcome outcome)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){act, outcome});
}

static void script_get(enum fake_act act, enum outcome outcome)
{
    fake_cluster_script_get(cluster, &(struct fake_step){act, outcome});
}

/* A bind that gives up after its first try. */
static void bind_briefly(const char *pod, const char *node, const char *error)
{
    int64_t usual_ms = world.extender.bind_timeout_ms;

    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    world_expect_bind(&world, pod, node, error);
    world.extender.bind_timeout_ms = usual_ms;
}

/* Nothing was done, and nobody can tell. */
static void leave_unknown(enum fake_act act)
{
    script_bind(act, OUTCOME_UNKNOWN);
    script_get(FAKE_FAIL, OUTCOME_UNKNOWN);
    bind_briefly("p", "duo", NOT_KNOWN "fake: timed out");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}

static void expect_sent_alike(void)
{
    g_autofree char *first = fake_cluster_sent(cluster, 0);

    for (unsigned i = 1; i < fake_cluster_n_sent(cluster); i++) {
        g_autofree char *next = fake_cluster_sent(cluster, i);
        ck_assert_str_eq(first, next);
    }
}

/* --- definite answers ----------------------------------------------------------------------- */

static void nothing(void)
{
}

static void recreate(void)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .uid = "uid-p2", .mem = 6});
}

static void delete (void)
{
    fake_cluster_delete_pod(cluster, "p");
}

static void terminate(void)
{
    fake_cluster_terminate(cluster, "p");
}

static const struct {
    void (*before)(void); /* what the watch has not shown yet */
    struct fake_step step;
    const char *error;
    enum bind_result result;
} refusals[] = {
    {nothing, {FAKE_FAIL, OUTCOME_REFUSED}, "fake: refused", BIND_RESULT_REFUSED},
    {nothing, {FAKE_FAIL, OUTCOME_CONFLICT}, "fake: conflict", BIND_RESULT_CONFLICT},
    {nothing, {FAKE_FAIL, OUTCOME_NOT_FOUND}, "fake: not found", BIND_RESULT_CONFLICT},
    {delete, {FAKE_ANSWER}, "fake: not found", BIND_RESULT_CONFLICT},
    {recreate, {FAKE_ANSWER}, "fake: conflict", BIND_RESULT_CONFLICT},
    {terminate, {FAKE_ANSWER}, "fake: conflict", BIND_RESULT_CONFLICT},
    {terminate, {FAKE_FAIL, OUTCOME_UNKNOWN}, "fake: timed out", BIND_RESULT_CONFLICT},
    {delete, {FAKE_FAIL, OUTCOME_UNKNOWN}, "fake: timed out", BIND_RESULT_CONFLICT},
    {recreate, {FAKE_FAIL, OUTCOME_UNKNOWN}, "fake: timed out", BIND_RESULT_CONFLICT},
};

START_TEST(a_definite_no_releases_the_card)
{
    uint64_t before = metrics_counted(COUNTER_BINDS, refusals[_i].result);

    refusals[_i].before();
    script_bind(refusals[_i].step.act, refusals[_i].step.outcome);
    world_expect_bind(&world, "p", "duo", refusals[_i].error);
    ck_assert_uint_eq(metrics_counted(COUNTER_BINDS, refusals[_i].result), before + 1);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_catch_up(&world);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

START_TEST(a_pod_that_others_bound_is_counted_where_it_is)
{
    static const char *const nodes[] = {"mono", "duo"};

    fake_cluster_bind_bare(cluster, "p", nodes[_i]);
    world_expect_bind(&world, "p", "duo", "fake: conflict");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    ck_assert_int_eq(world_used(&world, "mono", 0), _i == 0 ? 6 : 0);
    ck_assert_int_eq(world_unplaced(&world, "duo"), 0); /* of several cards it is given none */
    world_catch_up(&world);
    world_expect_bind(&world, "p", nodes[_i], "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* The watch tells of it while our Binding is under way, so that it may be ours as well; the API server's
 * no says that it is not. */
static void bind_bare_and_show(void *data)
{
    fake_cluster_bind_bare(cluster, "p", "duo");
    world_catch_up(&world);
}

START_TEST(a_pod_that_others_bound_meanwhile_is_counted_where_it_is)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = bind_bare_and_show});
    world_expect_bind(&world, "p", "duo", "fake: conflict");
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_catch_up(&world);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

/* --- answers that got lost ------------------------------------------------------------------ */

START_TEST(a_lost_reply_is_asked_for)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    world_catch_up(&world);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* The plugin may have taken the pod before we ask. */
static void assign_p(void *data)
{
    fake_cluster_assign(cluster, "p");
}

START_TEST(a_bind_is_ours_after_the_node_side_took_the_pod)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER, .hook = assign_p});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

/* Somebody edits the pod in between, which the watch may show before we ask. */
static void move_p(void *data)
{
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_IDX", "1");
}

static void strip_p(void *data)
{
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_IDX", NULL);
}

static void spoil_p(void *data)
{
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_IDX", "first");
    fake_cluster_annotate(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "never");
}

static void move_and_show_p(void *data)
{
    move_p(data);
    world_catch_up(&world);
}

static void (*const edits[])(void *data) = {move_p, strip_p, spoil_p, move_and_show_p};

START_TEST(a_bind_is_ours_whatever_the_pod_says_since)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER, .hook = edits[_i]});
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

START_TEST(a_repeat_that_conflicts_with_itself_is_a_success)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    script_get(FAKE_FAIL, OUTCOME_UNKNOWN);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    ck_assert_uint_eq(fake_cluster_n_bound(cluster), 1);
    expect_sent_alike();
}
END_TEST

START_TEST(a_binding_that_comes_late_does_no_harm)
{
    script_bind(FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    expect_sent_alike();
    fake_cluster_carry_out(cluster);
    ck_assert_uint_eq(fake_cluster_n_bound(cluster), 1);
    world_catch_up(&world);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

START_TEST(a_plain_bind_survives_a_lost_reply)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "idle"});
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    world_expect_bind(&world, "idle", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* --- outcomes that stay unknown ------------------------------------------------------------- */

START_TEST(what_is_not_known_stays_booked)
{
    uint64_t before = metrics_counted(COUNTER_BINDS, BIND_RESULT_UNKNOWN);

    leave_unknown(FAKE_DELAY_EFFECT);
    ck_assert_uint_eq(metrics_counted(COUNTER_BINDS, BIND_RESULT_UNKNOWN), before + 1);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 5});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "r", .mem = 7});
    world_catch_up(&world);
    world_expect_bind(&world, "q", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-q"), 1);
    world_expect_bind(&world, "r", "duo", NO_ROOM);
    fake_cluster_carry_out(cluster);
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
}
END_TEST

START_TEST(a_list_keeps_what_is_not_known)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    fake_cluster_list(cluster, world.store, FEED_PODS);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
}
END_TEST

static const enum fake_act first_tries[] = {FAKE_FAIL, FAKE_LOSE_REPLY, FAKE_DELAY_EFFECT};

START_TEST(a_repeated_bind_says_the_same_again)
{
    leave_unknown(first_tries[_i]);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    expect_sent_alike();
    fake_cluster_carry_out(cluster);
    world_catch_up(&world);
    ck_assert_uint_eq(fake_cluster_n_bound(cluster), 1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

START_TEST(a_repeated_bind_to_another_node_is_turned_away)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    world_expect_bind(&world, "p", "mono", "the pod is being bound to node 'duo' already");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
    ck_assert_int_eq(world_used(&world, "mono", 0), 0);
}
END_TEST

static const enum outcome definite[] = {OUTCOME_REFUSED, OUTCOME_CONFLICT};

/* The first Binding may still be carried out, whatever becomes of the second. */
START_TEST(a_no_to_a_repeat_releases_nothing)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    script_bind(FAKE_FAIL, definite[_i]);
    bind_briefly("p", "duo",
                 definite[_i] == OUTCOME_REFUSED ? NOT_KNOWN "fake: refused"
                                                 : NOT_KNOWN "fake: conflict");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    expect_sent_alike();
}
END_TEST

START_TEST(a_no_after_a_timeout_releases_nothing)
{
    world.extender.bind_timeout_ms = 800;
    script_bind(FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN);
    for (int i = 0; i < 5; i++)
        script_bind(FAKE_FAIL, definite[_i]);
    world_expect_bind(&world, "p", "duo",
                      definite[_i] == OUTCOME_REFUSED ? NOT_KNOWN "fake: refused"
                                                      : NOT_KNOWN "fake: conflict");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    expect_sent_alike();
}
END_TEST

START_TEST(a_repeat_learns_that_the_pod_is_gone)
{
    leave_unknown(FAKE_DELAY_EFFECT);
    fake_cluster_delete_pod(cluster, "p");
    bind_briefly("p", "duo", "fake: not found");
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

/* --- the world moves on meanwhile ----------------------------------------------------------- */

static void see_deletion(void *data)
{
    fake_cluster_delete_pod(cluster, "p");
    world_catch_up(&world);
}

START_TEST(a_pod_may_vanish_while_it_is_bound)
{
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_ANSWER, .hook = see_deletion});
    world_expect_bind(&world, "p", "duo", "fake: not found");
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

static void catch_up(void *data)
{
    world_catch_up(&world);
}

/* The watch is faster than the reply, and knows better than a call that learns nothing. */
START_TEST(the_watch_may_be_faster_than_the_reply)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    fake_cluster_script_get(cluster,
                            &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN, .hook = catch_up});
    bind_briefly("p", "duo", NOT_KNOWN "fake: timed out");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    ck_assert_int_eq(world_used(&world, "duo", 0), 6);
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

static void see_end(void *data)
{
    world_catch_up(&world);
    fake_cluster_delete_pod(cluster, "p");
    world_catch_up(&world);
}

START_TEST(a_reply_does_not_resurrect_a_pod)
{
    script_bind(FAKE_LOSE_REPLY, OUTCOME_UNKNOWN);
    fake_cluster_script_get(cluster,
                            &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN, .hook = see_end});
    bind_briefly("p", "duo", NOT_KNOWN "fake: timed out");
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "duo", 0), 0);
}
END_TEST

static void lose_node(void)
{
    fake_cluster_delete_node(cluster, "duo");
}

static void shrink_node(void)
{
    fake_cluster_put_node(cluster, "duo", 15, 1);
}

static void stop_sharing(void)
{
    fake_cluster_put_node(cluster, "duo", 0, 0);
}

static void (*const changes[])(void) = {lose_node, shrink_node, stop_sharing};

/* The card was chosen and may be granted already; the choice stands. */
START_TEST(a_node_may_change_before_a_repeat)
{
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "a", .node = "duo", .mem = 5, .card = "0"});
    world_catch_up(&world);
    script_bind(first_tries[_i / 3], OUTCOME_UNKNOWN);
    script_get(FAKE_FAIL, OUTCOME_UNKNOWN);
    bind_briefly("p", "duo", NOT_KNOWN "fake: timed out");
    ck_assert_int_eq(world_card(&world, "uid-p"), 1);
    changes[_i % 3]();
    fake_cluster_deliver(cluster, world.store, FEED_NODES, 1);
    world_expect_bind(&world, "p", "duo", "");
    ck_assert_int_eq(world_card(&world, "uid-p"), 1);
    fake_cluster_carry_out(cluster);
    g_autofree char *card = fake_cluster_annotation(cluster, "p", "ALIYUN_COM_GPU_MEM_IDX");
    ck_assert_str_eq(card, "1");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("bind_outcomes");
    TCase *tc = tcase_create("bind_outcomes");

    tcase_add_checked_fixture(tc, setup_with_p, teardown);
    tcase_add_loop_test(tc, a_definite_no_releases_the_card, 0, G_N_ELEMENTS(refusals));
    tcase_add_loop_test(tc, a_pod_that_others_bound_is_counted_where_it_is, 0, 2);
    tcase_add_test(tc, a_pod_that_others_bound_meanwhile_is_counted_where_it_is);
    tcase_add_test(tc, a_lost_reply_is_asked_for);
    tcase_add_test(tc, a_bind_is_ours_after_the_node_side_took_the_pod);
    tcase_add_loop_test(tc, a_bind_is_ours_whatever_the_pod_says_since, 0, G_N_ELEMENTS(edits));
    tcase_add_test(tc, a_repeat_that_conflicts_with_itself_is_a_success);
    tcase_add_test(tc, a_binding_that_comes_late_does_no_harm);
    tcase_add_test(tc, a_plain_bind_survives_a_lost_reply);
    tcase_add_test(tc, what_is_not_known_stays_booked);
    tcase_add_test(tc, a_list_keeps_what_is_not_known);
    tcase_add_loop_test(tc, a_repeated_bind_says_the_same_again, 0, G_N_ELEMENTS(first_tries));
    tcase_add_test(tc, a_repeated_bind_to_another_node_is_turned_away);
    tcase_add_loop_test(tc, a_no_to_a_repeat_releases_nothing, 0, G_N_ELEMENTS(definite));
    tcase_add_loop_test(tc, a_no_after_a_timeout_releases_nothing, 0, G_N_ELEMENTS(definite));
    tcase_add_test(tc, a_repeat_learns_that_the_pod_is_gone);
    tcase_add_test(tc, a_pod_may_vanish_while_it_is_bound);
    tcase_add_test(tc, the_watch_may_be_faster_than_the_reply);
    tcase_add_test(tc, a_reply_does_not_resurrect_a_pod);
    tcase_add_loop_test(tc, a_node_may_change_before_a_repeat, 0, 9);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
