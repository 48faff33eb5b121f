/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs of one of several replicas: what is said while standing by, and that no Binding leaves
 * outside the term in which it was booked.
 */
#include "world.h"

#include "base/metrics.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

#define STANDS_BY                                                                                  \
    "this replica of gpuledger stands by, another one holds the Lease; try again"
#define NOT_STORED "fake: not stored"

static struct world world;
static struct fake_cluster *cluster;

static struct fake_fence {
    struct leadership base;
    pthread_mutex_t lock; /* the rest */
    uint64_t term;        /* 0: stands by */
    int64_t until_ms;
    bool fails;
    void (*hook)(void); /* in publish, without the lock */
    unsigned published;
    char *journal; /* as it was published last */
} leadership = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t fake_term(struct leadership *base)
{
    pthread_mutex_lock(&leadership.lock);
    uint64_t term = leadership.term;
    pthread_mutex_unlock(&leadership.lock);
    return term;
}

static int64_t fake_until_ms(struct leadership *base, uint64_t term)
{
    pthread_mutex_lock(&leadership.lock);
    int64_t until_ms = term == leadership.term ? leadership.until_ms : 0;
    pthread_mutex_unlock(&leadership.lock);
    return until_ms;
}

static bool fake_publish(struct leadership *base, uint64_t term, int64_t deadline_ms, GError **error)
{
    GString *text = g_string_new(NULL);

    journal_encode(world.extender.journal, text);
    pthread_mutex_lock(&leadership.lock);
    g_free(leadership.journal);
    leadership.journal = g_string_free(text, FALSE);
    leadership.published++;
    bool stored = term == leadership.term && !leadership.fails;
    void (*hook)(void) = leadership.hook;
    pthread_mutex_unlock(&leadership.lock);
    if (hook)
        hook();
    if (!stored)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, NOT_STORED);
    return stored;
}

static const struct leadership_ops fake_ops = {fake_term, fake_until_ms, fake_publish};

/* The term that goes on from now; 0 ends it. Wakes whoever waits, as a leadership does. */
static void set_term(uint64_t term)
{
    pthread_mutex_lock(&leadership.lock);
    leadership.term = term;
    leadership.until_ms = g_get_monotonic_time() / 1000 + 10000;
    pthread_mutex_unlock(&leadership.lock);
    store_lock(world.store);
    store_notify_all(world.store);
    store_unlock(world.store);
}

static void end_term(void)
{
    set_term(0);
}

/* "mono" has one card of 10 units; pods "p" and "q" want 6 and are pending. */
static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    world.extender.journal = journal_new(world.store);
    world.extender.leadership = &leadership.base;
    leadership.base.ops = &fake_ops;
    leadership.fails = false;
    leadership.hook = NULL;
    leadership.published = 0;
    set_term(7);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 6});
    world_sync(&world);
}

static void teardown(void)
{
    g_autofree char *violation = fake_cluster_violation(cluster);

    ck_assert_msg(!violation, "%s", violation);
    world_verify(&world);
    journal_free(world.extender.journal);
    world_release(&world);
    g_clear_pointer(&leadership.journal, g_free);
}

static uint64_t not_ready(void)
{
    return metrics_counted(COUNTER_BINDS, BIND_RESULT_NOT_READY);
}

static void expect_nothing(void)
{
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-p"), -1);
    ck_assert_int_eq(world_used(&world, "mono", 0), 0);
}

/* --- standing by ---------------------------------------------------------------------------- */

START_TEST(who_stands_by_answers_with_an_error)
{
    const uint64_t before = not_ready();

    set_term(0);
    g_autofree char *reply = world_filter(&world, "p", "mono");
    ck_assert_msg(strstr(reply, "\"Error\":\"" STANDS_BY "\""), "%s", reply);
    ck_assert_msg(!strstr(reply, "mono"), "%s", reply);
    world_expect_bind(&world, "p", "mono", STANDS_BY);
    expect_nothing();
    ck_assert_uint_eq(leadership.published, 0);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
    ck_assert_uint_eq(not_ready(), before + 1);
}
END_TEST

START_TEST(who_serves_answers_as_ever)
{
    g_autofree char *reply = world_filter(&world, "p", "mono");
    ck_assert_msg(strstr(reply, "\"NodeNames\":[\"mono\"]"), "%s", reply);
    world_expect_bind(&world, "p", "mono", "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_BOUND);
}
END_TEST

/* --- publishing ----------------------------------------------------------------------------- */

static void check_nothing_was_sent(void)
{
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 0);
}

START_TEST(a_booking_is_published_before_its_binding_is_sent)
{
    leadership.hook = check_nothing_was_sent;
    world_expect_bind(&world, "p", "mono", "");
    ck_assert_uint_eq(leadership.published, 1);
    ck_assert_msg(strstr(leadership.journal, "\"uid\":\"uid-p\""), "%s", leadership.journal);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);

    g_autoptr(GString) text = g_string_new(NULL);
    journal_encode(world.extender.journal, text);
    ck_assert_str_eq(text->str, ""); /* its fate is known */
}
END_TEST

START_TEST(what_was_not_published_is_not_sent)
{
    leadership.fails = true;
    world_expect_bind(&world, "p", "mono", NOT_STORED);
    expect_nothing();
}
END_TEST

START_TEST(what_was_published_in_an_earlier_term_is_not_sent)
{
    leadership.hook = end_term;
    world_expect_bind(&world, "p", "mono", STANDS_BY);
    expect_nothing();
}
END_TEST

static void begin_another(void)
{
    set_term(8);
}

START_TEST(a_new_term_does_not_carry_bookings_of_the_old_one)
{
    leadership.hook = begin_another;
    world_expect_bind(&world, "p", "mono", STANDS_BY);
    expect_nothing();
    leadership.hook = NULL;
    world_expect_bind(&world, "p", "mono", "");
}
END_TEST

START_TEST(without_a_card_to_keep_nothing_is_published)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "plain"});
    world_catch_up(&world);
    world_expect_bind(&world, "plain", "mono", "");
    ck_assert_uint_eq(leadership.published, 0);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "plain2"});
    world_catch_up(&world);
    set_term(0);
    world_expect_bind(&world, "plain2", "mono", STANDS_BY);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* --- the end of a term ---------------------------------------------------------------------- */

static int64_t seen_deadline_ms;

static enum outcome note_deadline(struct cluster *base, const struct binding *binding,
                                  int64_t deadline_ms, GError **error)
{
    seen_deadline_ms = deadline_ms;
    return fake_cluster_base(cluster)->ops->bind(fake_cluster_base(cluster), binding, deadline_ms,
                                                 error);
}

static enum outcome pass_get_pod(struct cluster *base, struct json_arena *arena, const char *ns,
                                 const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                 GError **error)
{
    return fake_cluster_base(cluster)->ops->get_pod(fake_cluster_base(cluster), arena, ns, name,
                                                    deadline_ms, ret_pod, error);
}

START_TEST(a_binding_ends_before_the_term_does)
{
    static const struct cluster_ops ops = {"noting", note_deadline, pass_get_pod};
    struct cluster noting = {&ops};

    world.extender.cluster = &noting;
    world.extender.bind_timeout_ms = 60000;
    world_expect_bind(&world, "p", "mono", "");
    ck_assert_int_eq(seen_deadline_ms, leadership.until_ms);
}
END_TEST

static void end_term_hook(void *data)
{
    end_term();
}

START_TEST(an_unknown_outcome_stays_booked_when_the_term_ends)
{
    fake_cluster_script_bind(
        cluster, &(struct fake_step){FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN, .then = end_term_hook});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&world, "p", "mono", STANDS_BY);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1); /* not again */
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);

    /* A later term begins with it, and its journal too. */
    set_term(9);
    world_expect_bind(&world, "q", "mono", "Insufficient GPU Memory in one device");
    world_expect_bind(&world, "p", "mono", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 2);
    g_autofree char *first = fake_cluster_sent(cluster, 0);
    g_autofree char *second = fake_cluster_sent(cluster, 1);
    ck_assert_str_eq(first, second);
    fake_cluster_carry_out(cluster);
}
END_TEST

START_TEST(a_repeated_binding_that_is_not_published_stays_unknown)
{
    fake_cluster_script_bind(
        cluster, &(struct fake_step){FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN, .then = end_term_hook});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    world_expect_bind(&world, "p", "mono", STANDS_BY);
    set_term(9);
    leadership.fails = true;
    world_expect_bind(&world, "p", "mono", NOT_STORED);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    fake_cluster_carry_out(cluster);
    world_settle_down(&world);
    ck_assert_int_eq(world_used(&world, "mono", 0), 6);
}
END_TEST

START_TEST(a_binding_that_came_through_at_the_end_of_the_term_is_a_success)
{
    fake_cluster_script_bind(
        cluster, &(struct fake_step){FAKE_LOSE_REPLY, OUTCOME_UNKNOWN, .then = end_term_hook});
    world_expect_bind(&world, "p", "mono", "");
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

/* --- waiting for the node side -------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    char *error;
};

static void *wait_inside_bind(void *data)
{
    struct waiter *waiter = data;

    waiter->error = world_bind(&world, "same", "mono");
    return NULL;
}

/* Pod "same" cannot be told from one that the node side has not matched yet, and must wait. */
static struct waiter start_waiter(void)
{
    struct waiter waiter = {0};

    world.extender.bind_timeout_ms = 60000;
    fake_cluster_put_node(cluster, "mono", 20, 2);
    world_catch_up(&world);
    world_add_pending(&world, "first", 6);
    world_expect_bind(&world, "first", "mono", "");
    world_add_pending(&world, "same", 6);
    return waiter;
}

static const char *lose_term(void)
{
    set_term(0);
    return STANDS_BY;
}

static const char *shut_down(void)
{
    g_atomic_int_set(&world.extender.draining, 1);
    set_term(7);
    return "gpuledger is shutting down; try again";
}

static const char *(*const reasons_to_leave[])(void) = {lose_term, shut_down};

START_TEST(who_waits_leaves_when_the_replica_hands_over)
{
    struct waiter waiter = start_waiter();

    pthread_create(&waiter.thread, NULL, wait_inside_bind, &waiter);
    g_usleep(50000); /* most likely it waits by now; if not, it leaves all the same */
    const char *expected = reasons_to_leave[_i]();
    pthread_join(waiter.thread, NULL);
    ck_assert_str_eq(waiter.error, expected);
    g_free(waiter.error);
    ck_assert_uint_eq(fake_cluster_n_sent(cluster), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fence");
    TCase *tcase = tcase_create("fence");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_stands_by_answers_with_an_error);
    tcase_add_test(tcase, who_serves_answers_as_ever);
    tcase_add_test(tcase, a_booking_is_published_before_its_binding_is_sent);
    tcase_add_test(tcase, what_was_not_published_is_not_sent);
    tcase_add_test(tcase, what_was_published_in_an_earlier_term_is_not_sent);
    tcase_add_test(tcase, a_new_term_does_not_carry_bookings_of_the_old_one);
    tcase_add_test(tcase, without_a_card_to_keep_nothing_is_published);
    tcase_add_test(tcase, a_binding_ends_before_the_term_does);
    tcase_add_test(tcase, an_unknown_outcome_stays_booked_when_the_term_ends);
    tcase_add_test(tcase, a_repeated_binding_that_is_not_published_stays_unknown);
    tcase_add_test(tcase, a_binding_that_came_through_at_the_end_of_the_term_is_a_success);
    tcase_add_loop_test(tcase, who_waits_leaves_when_the_replica_hands_over, 0,
                        G_N_ELEMENTS(reasons_to_leave));
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
