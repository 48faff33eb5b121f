/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a quota of a tree may concern: its own namespace, and others only if the administrator has named its
 * namespace.
 */
#include "quota_extender.h"
#include "suite.h"

#define GPUS "gpuledger.io/gpus"
#define MEM "aliyun.com/gpu-mem"

static void begin(const char *tree_namespaces)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000,
                                                   .elastic_quotas = true,
                                                   .tree_namespaces = tree_namespaces,
                                                   .silent = true})};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "n",
                            .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void apply(const char *ns, const char *name, const char *amount,
                  const struct quota_tree_view *in)
{
    store_apply_resource_quota(extender.store,
                               &(struct resource_quota_view){.ns = ns,
                                                             .name = name,
                                                             .elastic = true,
                                                             .min = PAIRS({GPUS, amount}),
                                                             .max = PAIRS({GPUS, amount}),
                                                             .in = *in});
}

static const char *const lists_ml[] = {"ml", NULL};
static const struct quota_tree_view listing = {
    .inside = true, .tree = "", .namespaces = (const char **)lists_ml};
static const struct quota_tree_view plain = {0},
                                    parent = {.inside = true, .tree = "", .is_parent = true};

static void expect(const char *ns, bool passes)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"10\"}}}]}},\"NodeNames\":[\"n\"]}",
        ns);

    expect_filter(body, "n", passes ? "n" : "", "quota's max");
}

static void note(const struct elastic_count *count, void *data)
{
    if (g_str_equal(count->ns, "evil"))
        *(enum quota_fault *)data = count->fault;
}

static enum quota_fault fault_of_evil(void)
{
    enum quota_fault fault = QUOTA_FAULT_NONE;

    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note, &fault);
    return fault;
}

/* With a quota of its own and without one, in a tree and in none. */
START_TEST(a_list_of_another_namespace_limits_nobody)
{
    begin("quotas");
    apply("evil", "a", "0", &listing);
    expect("ml", true);
    expect("evil", false);
    ck_assert_int_eq(fault_of_evil(), QUOTA_FAULT_LISTS);
    apply("ml", "gpus", "4", &plain);
    expect("ml", true);
    apply("ml", "ml", "4", &(struct quota_tree_view){.inside = true, .tree = ""});
    expect("ml", true);
}
END_TEST

START_TEST(a_list_counts_from_a_namespace_that_is_named)
{
    begin("others, quotas");
    apply("quotas", "a", "0", &listing);
    expect("ml", false);
    apply("ml", "gpus", "4", &plain); /* its own comes first */
    expect("ml", true);
}
END_TEST

START_TEST(a_parent_of_that_name_elsewhere_changes_nothing)
{
    begin("quotas");
    apply("quotas", "research", "4", &parent);
    apply("quotas", "mlq", "4",
          &(struct quota_tree_view){.inside = true,
                                    .tree = "",
                                    .parent = "research",
                                    .namespaces = (const char **)lists_ml});
    expect("ml", true);
    apply("evil", "research", "0", &parent);
    expect("ml", true);
    apply("quotas", "research", "0", &parent);
    expect("ml", false);
}
END_TEST

/* What it were sure of there would be taken from those that are. */
START_TEST(nobody_moves_in_below_another_namespaces_parent)
{
    const struct quota_tree_view below = {.inside = true, .tree = "", .parent = "research"};

    begin("quotas");
    apply("quotas", "research", "0", &parent);
    apply("evil", "a", "4", &below);
    ck_assert_int_eq(fault_of_evil(), QUOTA_FAULT_NO_PARENT);
    apply("evil", "research", "4", &parent);
    ck_assert_int_eq(fault_of_evil(), QUOTA_FAULT_NONE);
    expect("evil", true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quota trees");
    TCase *trees = tcase_create("trees");

    tcase_add_checked_fixture(trees, NULL, teardown);
    tcase_add_test(trees, a_list_of_another_namespace_limits_nobody);
    tcase_add_test(trees, a_list_counts_from_a_namespace_that_is_named);
    tcase_add_test(trees, a_parent_of_that_name_elsewhere_changes_nothing);
    tcase_add_test(trees, nobody_moves_in_below_another_namespaces_parent);
    suite_add_tcase(suite, trees);
    return suite_run(suite);
}
