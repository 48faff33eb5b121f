/* SPDX-License-Identifier: Apache-2.0 */
#include "literals.h"
#include "suite.h"

#include <gpuledger/pod_facts.h>

#define MEM "aliyun.com/gpu-mem"

START_TEST(amounts_are_summed_as_kube_scheduler_sums_them)
{
    const struct pod_view pod = {
        CONTAINERS({.name = "a", .requests = PAIRS({"io", "250m"}, {"cpu", "1"}, {MEM, "2"})},
                   {.name = "b", .requests = PAIRS({"io", "1"}), .limits = PAIRS({MEM, "3"})},
                   {.name = "i", .init = true, .requests = PAIRS({"io", "1"})},
                   {.name = "s", .init = true, .sidecar = true, .requests = PAIRS({"io", "100m"})},
                   {.name = "j", .init = true, .requests = PAIRS({"io", "1500m"}, {"x", "7"})}),
    };
    g_autoptr(pod_facts) facts = pod_facts_new(&pod);

    ck_assert_int_eq(pod_facts_amount(facts, "io"), 1600); /* j beside the sidecar before it */
    ck_assert_int_eq(pod_facts_amount(facts, MEM), 5000);
    ck_assert_int_eq(pod_facts_amount(facts, "x"), 7000);
    ck_assert_int_eq(pod_facts_amount(facts, "cpu"), 0); /* that is host.h's */
    ck_assert_uint_eq(facts->n_amounts, 3);
    ck_assert(!facts->particular);
    ck_assert_int_eq(pod_facts_amount(NULL, "io"), 0);
}
END_TEST

START_TEST(what_cannot_be_summed_is_particular)
{
    static const char *const amounts[] = {"nonsense", "-1", "1e40"};
    struct string_pair labels[POD_FACTS_LABELS_MAX + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(amounts); i++) {
        g_autoptr(pod_facts) facts = pod_facts_new(
            &(struct pod_view){CONTAINERS({.requests = PAIRS({"example.com/x", amounts[i]})})});
        ck_assert_msg(facts->particular || pod_facts_amount(facts, "example.com/x") > (INT64_C(1) << 57),
                      "%s", amounts[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(labels); i++)
        labels[i] = (struct string_pair){"k", "v"};
    g_autoptr(pod_facts) many =
        pod_facts_new(&(struct pod_view){.labels = {labels, G_N_ELEMENTS(labels)}});
    ck_assert_uint_eq(many->n_labels, POD_FACTS_LABELS_MAX);
    ck_assert(many->particular);
    g_autoptr(pod_facts) said = pod_facts_new(&(struct pod_view){.particular = true});
    ck_assert(said->particular);
}
END_TEST

START_TEST(labels_are_found)
{
    g_autoptr(pod_facts) facts =
        pod_facts_new(&(struct pod_view){.labels = PAIRS({"app", "a"}, {"tier", ""})});

    ck_assert_str_eq(pod_facts_label(facts, "app"), "a");
    ck_assert_str_eq(pod_facts_label(facts, "tier"), "");
    ck_assert_ptr_null(pod_facts_label(facts, "ap"));
    ck_assert_ptr_null(pod_facts_label(NULL, "app"));
}
END_TEST

START_TEST(containers_have_their_names)
{
    struct container_view containers[POD_FACTS_CONTAINERS_MAX + 1] = {{.name = "main"}, {.name = NULL}};
    g_autoptr(pod_facts) facts = pod_facts_new(&(struct pod_view){
        .containers = containers, .n_containers = G_N_ELEMENTS(containers)});

    ck_assert_str_eq(pod_facts_container(facts, 0), "main");
    ck_assert_str_eq(pod_facts_container(facts, 1), "");
    ck_assert_ptr_null(pod_facts_container(facts, -1));
    ck_assert_ptr_null(pod_facts_container(facts, POD_FACTS_CONTAINERS_MAX));
    ck_assert_ptr_null(pod_facts_container(NULL, 0));
}
END_TEST

START_TEST(other_names_are_other_facts)
{
    struct pod_facts_pool *pool = pod_facts_pool_new();
    g_autoptr(pod_facts) one = pod_facts_pool_get(pool, &(struct pod_view){CONTAINERS({.name = "a"})});
    g_autoptr(pod_facts) same = pod_facts_pool_get(pool, &(struct pod_view){CONTAINERS({.name = "a"})});
    g_autoptr(pod_facts) other = pod_facts_pool_get(pool, &(struct pod_view){CONTAINERS({.name = "b"})});

    ck_assert_ptr_eq(one, same);
    ck_assert_ptr_ne(one, other);
    pod_facts_pool_free(pool);
}
END_TEST

/* --- one of each ---------------------------------------------------------------------------- */

static struct pod_facts *get(struct pod_facts_pool *pool, const char *app, const char *cpu)
{
    const struct pod_view pod = {.labels = PAIRS({"app", app}),
                                 CONTAINERS({.requests = PAIRS({"io", cpu})})};
    return pod_facts_pool_get(pool, &pod);
}

START_TEST(pods_alike_share_their_facts)
{
    struct pod_facts_pool *pool = pod_facts_pool_new();
    g_autoptr(pod_facts) one = get(pool, "a", "1"), same = get(pool, "a", "1000m");
    g_autoptr(pod_facts) other = get(pool, "b", "1"), larger = get(pool, "a", "2");

    ck_assert_ptr_eq(one, same);
    ck_assert_ptr_ne(one, other);
    ck_assert_ptr_ne(one, larger);
    ck_assert_uint_eq(pod_facts_pool_size(pool), 3);
    pod_facts_pool_free(pool);
    ck_assert_str_eq(pod_facts_label(one, "app"), "a"); /* outlives the pool */
}
END_TEST

START_TEST(what_nobody_has_any_more_goes)
{
    struct pod_facts_pool *pool = pod_facts_pool_new();
    g_autoptr(pod_facts) kept = get(pool, "kept", "1");

    for (int i = 0; i < 10000; i++) {
        g_autofree char *app = g_strdup_printf("app-%d", i);
        pod_facts_unref(get(pool, app, "1"));
        ck_assert_uint_le(pod_facts_pool_size(pool), 128);
    }
    g_autoptr(pod_facts) again = get(pool, "kept", "1");
    ck_assert_ptr_eq(kept, again);
    pod_facts_pool_free(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pod_facts");
    TCase *tests = tcase_create("pod_facts");

    tcase_add_test(tests, amounts_are_summed_as_kube_scheduler_sums_them);
    tcase_add_test(tests, what_cannot_be_summed_is_particular);
    tcase_add_test(tests, labels_are_found);
    tcase_add_test(tests, containers_have_their_names);
    tcase_add_test(tests, other_names_are_other_facts);
    tcase_add_test(tests, pods_alike_share_their_facts);
    tcase_add_test(tests, what_nobody_has_any_more_goes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
