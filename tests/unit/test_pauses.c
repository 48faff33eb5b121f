/* SPDX-License-Identifier: Apache-2.0 */
/* For whom nothing ends for a while, and for how long. */
#include "evict/pauses.h"
#include "suite.h"

#define FIRST 100
#define MOST 1000

static struct pauses *pauses;

static void setup(void)
{
    pauses = pauses_new(FIRST, MOST);
}

static void teardown(void)
{
    pauses_free(pauses);
}

START_TEST(each_is_twice_as_long_up_to_a_maximum)
{
    static const int64_t lengths[] = {100, 200, 400, 800, 1000, 1000};
    int64_t now = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        ck_assert_int_eq(pauses_left(pauses, "a", "c", now), 0);
        ck_assert_int_eq(pauses_begin(pauses, "a", "c", now), lengths[i]);
        ck_assert_int_eq(pauses_left(pauses, "a", "c", now), lengths[i]);
        ck_assert_int_eq(pauses_begin(pauses, "a", "c", now), 0); /* it lasts already */
        now += lengths[i] - 1;
        ck_assert_int_eq(pauses_left(pauses, "a", "c", now), 1);
        now++;
    }
    /* It is remembered for as long as the longest lasts. */
    ck_assert_int_eq(pauses_begin(pauses, "a", "c", now + MOST), FIRST);
    ck_assert_int_eq(pauses_next(INT64_MAX, FIRST, MOST), MOST);
}
END_TEST

START_TEST(others_do_not_wait)
{
    pauses_begin(pauses, "a", "c", 0);
    ck_assert_int_eq(pauses_left(pauses, "a", "d", 0), 0);
    ck_assert_int_eq(pauses_left(pauses, "a", NULL, 0), 0);
    ck_assert_int_eq(pauses_left(pauses, "b", "c", 0),
                     0); /* who says that it has that controller */
    pauses_begin(pauses, "a", NULL, 0);
    ck_assert_int_eq(pauses_left(pauses, "a", NULL, 0), FIRST);
    ck_assert_int_eq(pauses_left(pauses, "b", NULL, 0), 0);
}
END_TEST

START_TEST(what_was_not_in_vain_begins_anew)
{
    pauses_begin(pauses, "a", "c", 0);
    pauses_begin(pauses, "a", "c", FIRST);
    pauses_end(pauses, "a", "c");
    ck_assert_int_eq(pauses_left(pauses, "a", "c", FIRST), 0);
    ck_assert_int_eq(pauses_begin(pauses, "a", "c", FIRST), FIRST);
}
END_TEST

/* Whoever makes a new controller each time waits all the same, and nothing adds up. */
START_TEST(a_namespace_with_many_waits_as_a_whole)
{
    for (int i = 0; i < PAUSES_CONTROLLERS_MAX; i++) {
        g_autofree char *controller = g_strdup_printf("c%d", i);
        ck_assert_int_eq(pauses_begin(pauses, "a", controller, 0), FIRST);
        ck_assert_int_eq(pauses_left(pauses, "a", "another", 0), 0);
    }
    ck_assert_int_eq(pauses_begin(pauses, "a", "more", 0), FIRST);
    ck_assert_int_eq(pauses_left(pauses, "a", "another", 0), FIRST);
    ck_assert_int_eq(pauses_begin(pauses, "a", "again", FIRST), 2 * FIRST);
    ck_assert_int_eq(pauses_left(pauses, "b", "another", FIRST), 0);
    ck_assert_int_eq(pauses_left(pauses, "a", "another", 3 * FIRST), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pauses");
    TCase *tcase = tcase_create("pauses");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, each_is_twice_as_long_up_to_a_maximum);
    tcase_add_test(tcase, others_do_not_wait);
    tcase_add_test(tcase, what_was_not_in_vain_begins_anew);
    tcase_add_test(tcase, a_namespace_with_many_waits_as_a_whole);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
