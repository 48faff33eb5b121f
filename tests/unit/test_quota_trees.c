/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a quota may concern: its own namespace, and others only if the administrator has named its namespace;
 * also where it cannot be kept.
 */
#include "quota_extender.h"
#include "objects.h"
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
    store_put_quota(extender.store, &(struct resource_quota_view){.ns = ns,
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

/* --- what cannot be kept ---------------------------------------------------------------------- */

static void limit(const char *ns, const char *name, struct string_pairs max)
{
    store_put_quota(extender.store, &(struct resource_quota_view){
                                        .ns = ns, .name = name, .elastic = true, .max = max});
}

/* As many keys as there are places, and one more. */
static void fill_keys(const char *ns)
{
    for (int quota = 0; quota < 3; quota++) {
        g_autofree char *name = g_strdup_printf("q%d", quota);
        struct string_pair pairs[11];
        for (int i = 0; i < 11; i++)
            pairs[i] = (struct string_pair){
                g_strdup_printf("nvidia.com/mig-%dg.%dgb", quota + 1, 5 * (i + 1)), "9"};
        limit(ns, name, (struct string_pairs){pairs, 11});
        for (int i = 0; i < 11; i++)
            g_free((char *)pairs[i].key);
    }
}

static void expect_of(const char *ns, const char *resource, const char *refusal)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"%s\":\"1\"}}}]}},"
        "\"NodeNames\":[\"n\",\"mig\"]}",
        ns, resource);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(refusal ? strstr(reply->str, refusal) != NULL
                          : strstr(reply->str, "\"NodeNames\":[]") == NULL,
                  "%s of %s: %s", resource, ns, reply->str);
}

#define UNKEPT "cannot be kept"

static void begin_with_mig(void)
{
    begin(NULL);
    store_apply_node(
        extender.store,
        &(struct node_view){
            .name = "mig",
            .labels = PAIRS({"nvidia.com/gpu.count", "1"}, {"nvidia.com/mig.strategy", "mixed"}),
            .capacity = PAIRS({"nvidia.com/mig-1g.5gb", "7"}, {"nvidia.com/mig-3g.55gb", "7"})});
}

/* Whoever comes first. */
START_TEST(who_names_all_keys_loses_its_own_alone)
{
    begin_with_mig();
    if (_i)
        limit("ml", "q", PAIRS({MEM, "0"}));
    fill_keys("evil");
    if (!_i)
        limit("ml", "q", PAIRS({MEM, "0"}));
    expect_of("ml", MEM, "quota's max");
    expect_of("ml", "nvidia.com/mig-1g.5gb", NULL);
    expect_of("other", MEM, NULL);
    expect_of("evil", MEM, NULL);
    expect_of("evil", "nvidia.com/mig-3g.55gb", UNKEPT);
    ck_assert_uint_eq(elastic_quotas_n_unkept(store_elastic_quotas(extender.store)), 1);
    store_drop_quota(extender.store,
                     &(struct resource_quota_view){.ns = "evil", .name = "q0", .elastic = true});
    expect_of("evil", "nvidia.com/mig-3g.55gb", NULL);
    expect_of("ml", MEM, "quota's max");
    ck_assert_uint_eq(elastic_quotas_n_unkept(store_elastic_quotas(extender.store)), 0);
}
END_TEST

START_TEST(a_quota_that_cannot_be_read_closes_its_namespace)
{
    begin_with_mig();
    limit("evil", "q", PAIRS({MEM, "many"}));
    expect_of("evil", MEM, UNKEPT);
    expect_of("evil", "nvidia.com/mig-1g.5gb", UNKEPT);
    expect_of("ml", MEM, NULL);
    limit("evil", "q", PAIRS({MEM, "1"}));
    expect_of("evil", MEM, NULL);
    limit("evil", "q", PAIRS({MEM, "many"})); /* what it said before counts on */
    expect_of("evil", MEM, NULL);
    limit("evil", "r", PAIRS({MEM, "many"}));
    expect_of("evil", MEM, UNKEPT);
    store_list_begin(extender.store, FEED_ELASTIC_QUOTAS);
    limit("evil", "q", PAIRS({MEM, "1"}));
    store_list_end(extender.store, FEED_ELASTIC_QUOTAS);
    expect_of("evil", MEM, NULL);
}
END_TEST

START_TEST(a_quota_of_too_many_keys_closes_its_namespace)
{
    struct string_pair pairs[65];

    begin_with_mig();
    for (int i = 0; i < 65; i++)
        pairs[i] = (struct string_pair){g_strdup_printf("nvidia.com/mig-1g.%dgb", i + 1), "9"};
    limit("evil", "q", (struct string_pairs){pairs, 65});
    expect_of("evil", MEM, UNKEPT);
    expect_of("ml", MEM, NULL);
    for (int i = 0; i < 65; i++)
        g_free((char *)pairs[i].key);
}
END_TEST

/* A namespace with one quota takes the place of one of those of which a namespace has many. */
START_TEST(who_has_all_quotas_loses_one_of_them)
{
    begin_with_mig();
    for (int i = 0; i < ELASTIC_QUOTAS_MAX + 3; i++) {
        g_autofree char *name = g_strdup_printf("q%04d", i);
        limit("evil", name, PAIRS({GPUS, "4"}));
        if (i == ELASTIC_QUOTAS_MAX - 1)
            expect_of("evil", MEM, NULL);
    }
    limit("ml", "q", PAIRS({MEM, "0"}));
    expect_of("ml", MEM, "quota's max");
    expect_of("evil", MEM, UNKEPT);
    expect_of("other", MEM, NULL);
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
    tcase_add_loop_test(trees, who_names_all_keys_loses_its_own_alone, 0, 2);
    tcase_add_test(trees, a_quota_that_cannot_be_read_closes_its_namespace);
    tcase_add_test(trees, a_quota_of_too_many_keys_closes_its_namespace);
    tcase_add_test(trees, who_has_all_quotas_loses_one_of_them);
    suite_add_tcase(suite, trees);
    return suite_run(suite);
}
