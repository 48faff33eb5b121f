/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <gpuledger/host.h>

#define GI (INT64_C(1) << 30)

static void expect(const struct pod_view *pod, int64_t cpu, int64_t gib)
{
    const struct host host = host_of_pod(pod);

    ck_assert_int_eq(host.cpu, cpu);
    ck_assert_int_eq(host.memory, gib * GI);
    ck_assert_int_eq(host.pods, 1);
}

#define ASKS(CPU, MEMORY)                                                                          \
    .requests = {(const struct string_pair[]){{"cpu", CPU}, {"memory", MEMORY}}, 2}

START_TEST(containers_add_up_and_init_containers_do_not)
{
    const struct container_view all[] = {
        {ASKS("1500m", "2Gi")},
        {ASKS("1", "1Gi")},
        {ASKS("4", "1Gi"), .init = true},
        {ASKS("2", "5Gi"), .init = true},
    };

    expect(&(struct pod_view){.containers = all, .n_containers = 2}, 2500, 3);
    expect(&(struct pod_view){.containers = all, .n_containers = 4}, 4000, 5);
    expect(&(struct pod_view){0}, 0, 0);
}
END_TEST

START_TEST(sidecars_stay_beside_what_comes_after_them)
{
    const struct container_view before[] = {
        {ASKS("1", "1Gi")},
        {ASKS("1", "1Gi"), .init = true, .sidecar = true},
        {ASKS("3", "1Gi"), .init = true},
    };
    const struct container_view after[] = {
        {ASKS("1", "1Gi")},
        {ASKS("3", "1Gi"), .init = true},
        {ASKS("1", "1Gi"), .init = true, .sidecar = true},
    };

    expect(&(struct pod_view){.containers = before, .n_containers = 3}, 4000, 2);
    expect(&(struct pod_view){.containers = after, .n_containers = 3}, 3000, 2);
}
END_TEST

START_TEST(limits_stand_in_and_overhead_is_added)
{
    const struct container_view limited = {
        .limits = {(const struct string_pair[]){{"cpu", "2"}, {"memory", "3Gi"}}, 2},
        .requests = {(const struct string_pair[]){{"cpu", "500m"}}, 1},
    };
    const struct pod_view pod = {
        .overhead = {(const struct string_pair[]){{"cpu", "100m"}, {"memory", "1Gi"}}, 2},
        .containers = &limited,
        .n_containers = 1,
    };

    expect(&pod, 600, 4);
}
END_TEST

START_TEST(what_is_too_much_or_no_amount_does_no_harm)
{
    const struct container_view all[] = {{ASKS("9000000000000000", "8Ei")},
                                         {ASKS("9000000000000", "7Ei")},
                                         {ASKS("many", "-1")}};
    const struct host host = host_of_pod(&(struct pod_view){.containers = all, .n_containers = 3});

    ck_assert_int_eq(host.cpu, HOST_AMOUNT_MAX);
    ck_assert_int_eq(host.memory, HOST_AMOUNT_MAX);
    expect(&(struct pod_view){.containers = &all[2], .n_containers = 1}, 0, 0);
}
END_TEST

START_TEST(a_node_has_what_is_allocatable)
{
    const struct node_view node = {
        .capacity = {(const struct string_pair[]){{"cpu", "9"}}, 1},
        .allocatable = {(const struct string_pair[]){{"cpu", "7910m"}, {"memory", "31Gi"}, {"pods", "110"}}, 3},
    };

    ck_assert_int_eq(host_of_node(&node).cpu, 7910);
    ck_assert_int_eq(host_of_node(&node).memory, 31 * GI);
    ck_assert_int_eq(host_of_node(&node).pods, 110);
    ck_assert_int_eq(host_of_node(&(struct node_view){0}).cpu, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("host");
    TCase *tc = tcase_create("host");

    tcase_add_test(tc, containers_add_up_and_init_containers_do_not);
    tcase_add_test(tc, sidecars_stay_beside_what_comes_after_them);
    tcase_add_test(tc, limits_stand_in_and_overhead_is_added);
    tcase_add_test(tc, what_is_too_much_or_no_amount_does_no_harm);
    tcase_add_test(tc, a_node_has_what_is_allocatable);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
