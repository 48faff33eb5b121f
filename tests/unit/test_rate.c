/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rate.h"
#include "suite.h"

#define MINUTE INT64_C(60000)

/* Steps that began in the hour before. */
static guint count(const GArray *times, int64_t now)
{
    guint n = 0;

    for (guint i = 0; i < times->len; i++)
        n += g_array_index(times, int64_t, i) > now - 60 * MINUTE;
    return n;
}

/* Whenever they are asked for; and none waits without need. */
START_TEST(no_hour_has_more_steps_than_it_may)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    const uint32_t most = (uint32_t)_i;
    int64_t now = 5 * MINUTE;

    for (int step = 0; step < 30; step++) {
        const int64_t wait = rate_wait_ms(times, most, RATE_HOUR_MS, now);

        ck_assert_int_eq(wait > 0, most > 0 && count(times, now) >= most);
        ck_assert_uint_eq(rate_left(times, most, RATE_HOUR_MS, now),
                          most == 0 ? UINT32_MAX : most - MIN(count(times, now), most));
        now += wait;
        ck_assert(most == 0 || count(times, now) < most);
        ck_assert(wait == 0 || count(times, now - 1) >= most);
        g_array_append_val(times, now);
        now += (step * 7) % 23 * MINUTE;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rate");
    TCase *tests = tcase_create("rate");

    tcase_add_loop_test(tests, no_hour_has_more_steps_than_it_may, 0, 6);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
