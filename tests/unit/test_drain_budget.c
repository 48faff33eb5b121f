/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods may end for switches. */
#include "suite.h"

#include "switch/drain_budget.h"

#define HOUR_MS INT64_C(3600000)

START_TEST(a_namespace_loses_no_more_than_it_may)
{
    const struct pod_view pods[] = {{.ns = "a"}, {.ns = "b"}, {.ns = "a"}, {.ns = "a"}};
    struct switch_limits limits = switch_limits_default;

    ck_assert_ptr_null(drain_budget_forbids(&limits, pods, 4));
    limits.max_per_namespace = 3;
    ck_assert_ptr_null(drain_budget_forbids(&limits, pods, 4));
    limits.max_per_namespace = 2;
    ck_assert_ptr_nonnull(drain_budget_forbids(&limits, pods, 4));
    ck_assert_ptr_null(drain_budget_forbids(&limits, pods, 3));
    ck_assert_ptr_null(drain_budget_forbids(&limits, NULL, 0));
}
END_TEST

/* Evicts whenever it may, for three hours, minute by minute. */
START_TEST(no_hour_has_more_than_it_may)
{
    struct switch_limits limits = switch_limits_default;
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(int64_t));

    limits.max_per_hour = (uint32_t)_i;
    for (int64_t now_ms = 0; now_ms < 3 * HOUR_MS; now_ms += 60000) {
        if (!drain_budget_allows(&limits, times, now_ms))
            continue;
        g_array_append_val(times, now_ms);
        guint n = 0;
        for (guint i = 0; i < times->len; i++)
            n += now_ms - g_array_index(times, int64_t, i) < HOUR_MS;
        ck_assert(_i == 0 || n <= (guint)_i);
    }
    ck_assert_uint_eq(times->len, _i == 0 ? 180 : 3U * (guint)_i);
    ck_assert(drain_budget_allows(&limits, NULL, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drain_budget");
    TCase *all = tcase_create("all");

    tcase_add_test(all, a_namespace_loses_no_more_than_it_may);
    tcase_add_loop_test(all, no_hour_has_more_than_it_may, 0, 5);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
