/* SPDX-License-Identifier: Apache-2.0 */
/* What is learned of pods, and what free parts of cards are worth to such pods. */
#include "demanding_book.h"
#include "suite.h"

/* --- learning ------------------------------------------------------------------------------- */

START_TEST(knows_nothing_at_first)
{
    add_node("a", 2, 0, "T4");
    ck_assert_uint_eq(demand_version(NULL), 0);
    expect_pods(15, 10, 1, 0);
    expect_pods(100, 0, 0, 1000); /* pods without a GPU say nothing of cards */
    demand_settle(expected, book);
    ck_assert_uint_eq(demand_version(expected), 0);
    expect_pods(1, 10, 1, 0);
    demand_settle(expected, book);
    ck_assert_uint_eq(demand_version(expected), 1);
    demand_settle(expected, book);
    expect_pods(1, 10, 1, 0);
    demand_settle(expected, book);
    ck_assert_uint_eq(demand_version(expected), 1);
    add_node("b", 1, 0, "T4");
    demand_settle(expected, book);
    ck_assert_uint_eq(demand_version(expected), 2);
}
END_TEST

static double worth_of(int32_t part)
{
    const struct node *node = ledger_node(book, "a");

    demand_settle(expected, book);
    const struct value_model *value_model = demand_value_model(expected);
    return (double)value_kind(value_model, node->cards[0].kind)->values->worth[part];
}

START_TEST(follows_a_changed_mix)
{
    add_node("a", 1, 0, "T4");
    expect_pods(5000, 11, 1, 0);
    expect_pods(1, 9, 1, 0);
    ck_assert_double_eq_tol(worth_of(550), 1, 1e-6); /* nothing goes beside it */
    expect_pods(60000, 10, 1, 0);
    ck_assert_double_eq_tol(worth_of(500), 0.5, 1e-6);
}
END_TEST

START_TEST(remembers_so_many_shapes_and_no_more)
{
    add_node("a", 1, 0, "T4");
    expect_pods(1000, 10, 1, 7);
    for (int i = 0; i < 3 * DEMAND_SHAPES_MAX; i++)
        expect_pods(1, 1 + i % 20, 1, 1000 + i);
    ck_assert_double_eq_tol(worth_of(500), 0.5, 1e-6);
}
END_TEST

START_TEST(a_copy_goes_its_own_way)
{
    add_node("a", 1, 0, "T4");
    expect_pods(100, 10, 1, 0);
    demand_settle(expected, book);
    g_autoptr(demand) copy = demand_dup(expected);
    demand_settle(copy, book);
    ck_assert_ptr_eq(demand_value_model(copy), demand_value_model(expected));
    expect_model(100, 5, "T4");
    demand_settle(expected, book);
    ck_assert_uint_eq(demand_version(copy), 1);
    ck_assert_uint_eq(demand_version(expected), 2);
}
END_TEST

START_TEST(what_was_learned_goes_on_elsewhere)
{
    add_node("a", 1, 0, "T4");
    add_node("b", 1, 0, "V100");
    expect_pods(50, 20, 1, 100);
    demand_settle(expected, book);
    expect_model(60, 5, "T4,P4");
    expect_pods(3, 0, 0, 1000);
    expect_devices(8, 4, "gpu");
    g_autoptr(demand) other = demand_new();
    const struct learned_demand learned = demand_tell(expected);
    demand_learn(other, &learned);
    for (int i = 0; i < 2; i++) {
        g_autoptr(request) request = asking(7, 1, 0);
        demand_settle_now(expected, book);
        demand_settle_now(other, book);
        const struct learned_demand told = demand_tell(expected), again = demand_tell(other);
        ck_assert_uint_eq(told.n, again.n);
        ck_assert_uint_eq(told.n_gpu, again.n_gpu);
        ck_assert(told.gain == again.gain && told.total == again.total); /* to the last bit */
        for (size_t j = 0; j < told.n; j++)
            ck_assert(told.shapes[j].count == again.shapes[j].count);
        const struct node *node = ledger_node(book, "b");
        for (int32_t part = 0; part <= 1000; part += 50)
            ck_assert(value_kind(demand_value_model(expected), node->cards[0].kind)
                          ->values->worth[part] ==
                      value_kind(demand_value_model(other), node->cards[0].kind)
                          ->values->worth[part]);
        demand_note(expected, request);
        demand_note(other, request);
    }
    ck_assert_uint_eq(demand_version(other), 2);
    demand_learn(other, &(struct learned_demand){.gain = 1});
    ck_assert_uint_eq(demand_version(other), 3);
    ck_assert_ptr_null(demand_value_model(other));
}
END_TEST

/* The nodes may be gone by then. */
START_TEST(what_follows_is_the_same_for_the_nodes_as_they_were)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    g_autoptr(supplies) supplies = supplies_new(true);

    add_node("a", 1, 4000, "T4");
    add_node("b", 2, 8000, "V100");
    add_node("c", 1, 4000, "T4");
    add_node("d", 2, 8000, "V100");
    add_cards("e", 4, 40, 16000, "A100");
    ledger_remove_node(book, "c"); /* it is not present, but for what is on it */
    expect_pods(50, 13, 1, 1000);
    expect_pods(20, 7, 2, 500);
    expect_model(30, 5, "T4,A100");
    g_autoptr(demand) other = demand_dup(expected);
    demand_settle_now(expected, book);
    const uint64_t supply = ledger_supply(book);
    const GPtrArray *nodes = ledger_nodes(book);
    uint64_t kinds[8];
    size_t n = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        supplies_add(supplies, node);
        if (node->n_cards > 0)
            kinds[n++] = node->cards[0].kind;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        ledger_remove_node(book, names[i]);
    ck_assert_uint_eq(supplies_hardware(supplies), supply);
    demand_settle_for(other, supplies);
    ck_assert_uint_eq(demand_version(other), demand_version(expected));
    ck_assert_uint_eq(n, 4);
    const struct value_model *one = demand_value_model(expected), *two = demand_value_model(other);
    ck_assert(one->cpu.mean == two->cpu.mean && one->cpu.variance == two->cpu.variance);
    ck_assert_uint_eq(one->n_kinds, two->n_kinds);
    for (size_t i = 0; i < n; i++) {
        const struct valued_kind *left = value_kind(one, kinds[i]),
                                 *right = value_kind(two, kinds[i]);
        ck_assert(left->cards == right->cards && left->share == right->share);
        ck_assert_mem_eq(left->values, right->values, sizeof *left->values);
    }
}
END_TEST

START_TEST(what_is_unsettled_is_worked_out_anew)
{
    add_node("a", 1, 0, "T4");
    expect_pods(50, 20, 1, 100);
    demand_settle(expected, book);
    const uint64_t version = demand_version(expected);
    g_autoptr(demand) before = demand_dup(expected);
    demand_unsettle(expected);
    ck_assert(!demand_is_settled(expected, book));
    ck_assert(!demand_follows(before, expected, book));
    ck_assert_uint_gt(demand_version(expected), version);
    ck_assert_ptr_null(demand_value_model(expected));
    demand_settle(expected, book);
    ck_assert(demand_is_settled(expected, book));
    ck_assert_ptr_nonnull(demand_value_model(expected));
}
END_TEST

/* --- fragmentation -------------------------------------------------------------------------- */

START_TEST(fragmentation_is_what_expected_pods_cannot_use)
{
    const struct node *node = add_node("a", 2, 8000, "T4");

    ck_assert_int_eq(fragmentation_of(node, NULL), 0);
    expect_pods(100, 10, 1, 1000);
    expect_pods(40, 0, 0, 100); /* pods without a GPU have no use for any */
    demand_settle(expected, book);
    ck_assert_int_eq(fragmentation_of(node, expected), 0);
    put("a", "u", 0, 12); /* leaves 8 of 20 */
    ck_assert_int_eq(fragmentation_of(node, expected), 400);
    put("a", "v", 1, 4);
    ck_assert_int_eq(fragmentation_of(node, expected), 400);
    ledger_put_cpu_pod(book, "a", "g", (struct host){.cpu = 7500}, 0);
    ck_assert_int_eq(fragmentation_of(node, expected), 1200); /* no CPU for any of them */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demand");
    TCase *tests = tcase_create("demand");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, knows_nothing_at_first);
    tcase_add_test(tests, follows_a_changed_mix);
    tcase_add_test(tests, remembers_so_many_shapes_and_no_more);
    tcase_add_test(tests, a_copy_goes_its_own_way);
    tcase_add_test(tests, what_was_learned_goes_on_elsewhere);
    tcase_add_test(tests, what_follows_is_the_same_for_the_nodes_as_they_were);
    tcase_add_test(tests, what_is_unsettled_is_worked_out_anew);
    tcase_add_test(tests, fragmentation_is_what_expected_pods_cannot_use);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
