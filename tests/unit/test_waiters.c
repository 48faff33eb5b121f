/* SPDX-License-Identifier: Apache-2.0 */
#include "app/waiters.h"
#include "suite.h"

START_TEST(so_many_wait_for_a_node)
{
    struct waiters *waiters = waiters_new(10, 2);

    ck_assert(waiters_enter(waiters, "a"));
    ck_assert(waiters_enter(waiters, "a"));
    ck_assert(!waiters_enter(waiters, "a"));
    ck_assert(waiters_enter(waiters, "b"));
    waiters_leave(waiters, "a");
    ck_assert(waiters_enter(waiters, "a"));
    ck_assert(!waiters_enter(waiters, "a"));
    waiters_free(waiters);
}
END_TEST

START_TEST(so_many_wait_in_all)
{
    struct waiters *waiters = waiters_new(2, 5);

    ck_assert(waiters_enter(waiters, "a"));
    ck_assert(waiters_enter(waiters, "b"));
    ck_assert(!waiters_enter(waiters, "c"));
    waiters_leave(waiters, "a");
    ck_assert(waiters_enter(waiters, "c"));
    ck_assert(!waiters_enter(waiters, "a"));
    waiters_free(waiters);
}
END_TEST

START_TEST(without_waiters_everybody_may)
{
    for (int i = 0; i < 100; i++)
        ck_assert(waiters_enter(NULL, "a"));
    waiters_leave(NULL, "a");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waiters");
    TCase *cases = tcase_create("waiters");

    tcase_add_test(cases, so_many_wait_for_a_node);
    tcase_add_test(cases, so_many_wait_in_all);
    tcase_add_test(cases, without_waiters_everybody_may);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
