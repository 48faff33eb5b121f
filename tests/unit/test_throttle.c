/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods end at once, and within a minute. */
#include "reclaim/throttle.h"
#include "suite.h"

#define MINUTE 60000
#define GOING (10 * MINUTE)

static enum throttle_pod look_up(const char *uid, void *data)
{
    return *(const enum throttle_pod *)data;
}

static void settle(struct throttle *throttle, enum throttle_pod seen, int64_t now_ms)
{
    throttle_settle(throttle, look_up, &seen, now_ms);
}

START_TEST(so_many_are_on_their_way_out_at_once)
{
    struct throttle *throttle = throttle_new(2, 100);

    ck_assert(throttle_allows(throttle, 0));
    throttle_note(throttle, "a", 0);
    throttle_note(throttle, "a", 1); /* the same one */
    ck_assert(throttle_allows(throttle, 1));
    throttle_note(throttle, "b", 1);
    ck_assert(!throttle_allows(throttle, 1));
    ck_assert_uint_eq(g_hash_table_size(throttle_going(throttle)), 2);
    settle(throttle, THROTTLE_ENDS, GOING - 1);
    ck_assert(!throttle_allows(throttle, GOING - 1));
    settle(throttle, THROTTLE_ENDED, GOING - 1);
    ck_assert(throttle_allows(throttle, GOING - 1));
    ck_assert(!throttle_has(throttle, "a") && !throttle_has(throttle, "b"));
    throttle_free(throttle);
}
END_TEST

/* However quickly they end. */
START_TEST(so_many_end_within_a_minute)
{
    struct throttle *throttle = throttle_new(100, 2);

    throttle_note(throttle, "a", 0);
    throttle_note(throttle, "b", 30000);
    settle(throttle, THROTTLE_ENDED, 30000);
    ck_assert(!throttle_allows(throttle, MINUTE - 1));
    ck_assert(throttle_counts(throttle, "a", MINUTE - 1));
    ck_assert(throttle_allows(throttle, MINUTE));
    ck_assert(!throttle_counts(throttle, "a", MINUTE) && throttle_counts(throttle, "b", MINUTE));
    throttle_count(throttle, "c", MINUTE); /* which another replica has evicted, and has ended */
    ck_assert(!throttle_has(throttle, "c"));
    ck_assert(!throttle_allows(throttle, MINUTE));
    settle(throttle, THROTTLE_ENDED, 30000 + MINUTE);
    ck_assert(throttle_allows(throttle, 30000 + MINUTE));
    throttle_free(throttle);
}
END_TEST

/* Of one that was evicted it is waited for ten minutes, of one that may have been for one, unless it ends. */
static const struct {
    bool doubted;
    enum throttle_pod seen;
    int64_t until_ms;
} goings[] = {
    {false, THROTTLE_STAYS, GOING}, {false, THROTTLE_ENDS, GOING}, {false, THROTTLE_ENDED, 0},
    {true, THROTTLE_STAYS, MINUTE}, {true, THROTTLE_ENDS, GOING},  {true, THROTTLE_ENDED, 0},
};

START_TEST(how_long_one_is_on_its_way_out)
{
    struct throttle *throttle = throttle_new(1, 100);

    if (goings[_i].doubted)
        throttle_doubt(throttle, "a", 0);
    else
        throttle_note(throttle, "a", 0);
    ck_assert(throttle_counts(throttle, "a", 0));
    for (int64_t now_ms = 0; now_ms < goings[_i].until_ms; now_ms += MINUTE / 4) {
        settle(throttle, goings[_i].seen, now_ms);
        ck_assert(throttle_has(throttle, "a") && !throttle_allows(throttle, now_ms));
    }
    settle(throttle, goings[_i].seen, goings[_i].until_ms);
    ck_assert(!throttle_has(throttle, "a") && throttle_allows(throttle, goings[_i].until_ms));
    throttle_free(throttle);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("throttle");
    TCase *tests = tcase_create("throttle");

    tcase_add_test(tests, so_many_are_on_their_way_out_at_once);
    tcase_add_test(tests, so_many_end_within_a_minute);
    tcase_add_loop_test(tests, how_long_one_is_on_its_way_out, 0, G_N_ELEMENTS(goings));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
