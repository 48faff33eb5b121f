/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which binds may wait when many would like to.
 */
#include "verbs/bind/waiters.h"
#include "suite.h"

#define N 64

static struct waiters waiters;
static struct waiting_bind binds[N];

static void setup(void)
{
    waiters = (struct waiters){.max = 8};
    memset(binds, 0, sizeof binds);
}

/* Whether it may wait; `cuts` says whether somebody else had to leave. */
static void enter(int i, const char *ns, const char *node, bool enters, bool cuts)
{
    bool cut;

    binds[i].ns = ns;
    binds[i].node = node;
    ck_assert_int_eq(waiters_enter(&waiters, &binds[i], &cut), enters);
    ck_assert_int_eq(cut, cuts);
}

/* Those who have to leave do. */
static void leave_cut(void)
{
    for (int i = 0; i < N; i++) {
        if (binds[i].cut)
            waiters_leave(&waiters, &binds[i]);
    }
}

static char *node_of(int i)
{
    static char names[N][8];

    g_snprintf(names[i], sizeof names[i], "n%d", i);
    return names[i];
}

START_TEST(one_namespace_alone_may_have_all)
{
    for (int i = 0; i < 8; i++)
        enter(i, "a", node_of(i), true, false);
    enter(8, "a", "n8", false, false);
    waiters_leave(&waiters, &binds[3]);
    enter(8, "a", "n8", true, false);
    ck_assert_uint_eq(waiters.n, 8);
}
END_TEST

START_TEST(who_has_most_gives_way_to_another)
{
    for (int i = 0; i < 8; i++)
        enter(i, "a", node_of(i), true, false);
    for (int i = 0; i < 4; i++) {
        enter(8 + i, "b", "x", i < 4, true);
        ck_assert(binds[7 - i].cut); /* the last that came */
        leave_cut();
    }
    enter(12, "b", "x", false, false);
    enter(13, "a", "x", false, false);
    enter(14, "c", "x", true, true);
    leave_cut();
    ck_assert_uint_eq(waiters.n, 8);
}
END_TEST

/* Who has been told to leave, and has not yet, is not counted; nor is it told twice. */
START_TEST(nobody_is_cut_twice)
{
    for (int i = 0; i < 8; i++)
        enter(i, "a", node_of(i), true, false);
    enter(8, "b", "x", true, true);
    enter(9, "b", "x", true, true);
    ck_assert(binds[7].cut && binds[6].cut && !binds[5].cut);
    enter(7, "a", "n7", false, false);
}
END_TEST

/* One has been told to leave, and another has left: there is room. */
START_TEST(who_is_cut_takes_no_place)
{
    for (int i = 0; i < 8; i++)
        enter(i, "a", node_of(i), true, false);
    enter(8, "b", "x", true, true);
    waiters_leave(&waiters, &binds[0]);
    enter(9, "c", "x", true, false);
}
END_TEST

/* With one more it would have as many. */
START_TEST(who_has_as_many_but_one_takes_no_place)
{
    for (int i = 0; i < 8; i++)
        enter(i, i < 4 ? "a" : i < 7 ? "b" : "c", node_of(i), true, false);
    enter(8, "b", "x", false, false);
    enter(9, "c", "x", true, true);
    ck_assert(binds[3].cut);
}
END_TEST

START_TEST(on_one_node_only_few_wait)
{
    waiters.max = N;
    for (int i = 0; i < WAITERS_PER_NODE_MAX; i++)
        enter(i, "a", "n", true, false);
    enter(20, "a", "n", false, false);
    enter(21, "a", "m", true, false);
    enter(22, "b", "n", true, true);
}
END_TEST

START_TEST(who_waits_already_goes_on)
{
    waiters.max = 1;
    enter(0, "a", "n", true, false);
    enter(0, "a", "n", true, false);
    ck_assert_uint_eq(waiters.n, 1);
    waiters_leave(&waiters, &binds[1]); /* never came */
    waiters_leave(&waiters, &binds[0]);
    ck_assert_uint_eq(waiters.n, 0);
    ck_assert_ptr_null(waiters.youngest);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waiters");
    TCase *tcase = tcase_create("waiters");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, one_namespace_alone_may_have_all);
    tcase_add_test(tcase, who_has_most_gives_way_to_another);
    tcase_add_test(tcase, nobody_is_cut_twice);
    tcase_add_test(tcase, who_is_cut_takes_no_place);
    tcase_add_test(tcase, who_has_as_many_but_one_takes_no_place);
    tcase_add_test(tcase, on_one_node_only_few_wait);
    tcase_add_test(tcase, who_waits_already_goes_on);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
