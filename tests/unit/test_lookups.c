/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many unknown pods the API server is asked about.
 */
#include "verbs/lookups.h"
#include "suite.h"

static struct lookups lookups;
static int64_t now_ms;

static void setup(void)
{
    lookups = (struct lookups){0};
    now_ms = 1000000;
}

static int taken(enum lookups_for whom)
{
    int n = 0;

    while (lookups_take(&lookups, whom, now_ms))
        n++;
    return n;
}

START_TEST(it_begins_full)
{
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), LOOKUPS_STRANGER_BURST);
    ck_assert_int_eq(taken(LOOKUPS_FILTERED), LOOKUPS_FILTERED_BURST);
}
END_TEST

START_TEST(tokens_come_back_with_time)
{
    taken(LOOKUPS_STRANGER);
    now_ms += 1000 / LOOKUPS_STRANGER_PER_S - 1;
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), 0);
    now_ms += 1;
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), 1);
    now_ms += 3000;
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), 3 * LOOKUPS_STRANGER_PER_S);
}
END_TEST

/* Who asks every millisecond gets no more than who asks once a second. */
START_TEST(parts_of_tokens_add_up)
{
    int n = 0;

    taken(LOOKUPS_STRANGER);
    for (int i = 0; i < 10000; i++) {
        now_ms++;
        n += taken(LOOKUPS_STRANGER);
    }
    ck_assert_int_eq(n, 10 * LOOKUPS_STRANGER_PER_S);
}
END_TEST

START_TEST(no_time_makes_it_more_than_full)
{
    taken(LOOKUPS_STRANGER);
    now_ms += INT64_C(1) << 50;
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), LOOKUPS_STRANGER_BURST);
    now_ms -= 5000; /* nor does a clock that goes back */
    ck_assert_int_eq(taken(LOOKUPS_STRANGER), 0);
}
END_TEST

START_TEST(strangers_take_nothing_of_whom_filter_knows)
{
    for (int i = 0; i < 100000; i++)
        lookups_take(&lookups, LOOKUPS_STRANGER, now_ms);
    ck_assert_int_eq(taken(LOOKUPS_FILTERED), LOOKUPS_FILTERED_BURST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lookups");
    TCase *tcase = tcase_create("lookups");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, it_begins_full);
    tcase_add_test(tcase, tokens_come_back_with_time);
    tcase_add_test(tcase, parts_of_tokens_add_up);
    tcase_add_test(tcase, no_time_makes_it_more_than_full);
    tcase_add_test(tcase, strangers_take_nothing_of_whom_filter_knows);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
