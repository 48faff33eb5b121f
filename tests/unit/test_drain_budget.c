/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods may end for switches. */
#include "suite.h"

#include "switch/drain_budget.h"

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

int main(void)
{
    Suite *suite = suite_create("drain_budget");
    TCase *all = tcase_create("all");

    tcase_add_test(all, a_namespace_loses_no_more_than_it_may);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
