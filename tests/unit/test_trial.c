/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"

#include "core/node.h"
#include "policy/victims/stand_in.h"
#include "suite.h"


static struct allocation *find(const struct what_if *what_if, const char *uid)
{
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *allocation = g_ptr_array_index(what_if->allocations, i);
        if (g_str_equal(allocation->uid, uid))
            return allocation;
    }
    return NULL;
}

static void expect(const struct node *node, int64_t first, int64_t second)
{
    g_autoptr(GError) error = NULL;

    ck_assert_int_eq(node->cards[0].memory_used, first * GIB);
    ck_assert_int_eq(node->cards[1].memory_used, second * GIB);
    ck_assert_msg(node_verify(node, (struct host){0}, &error), "%s", error ? error->message : "");
}

START_TEST(a_trial_leaves_the_ledger_alone)
{
    const struct node *node = set_equal_cards("n", 2, 10);
    put("n", "a", 0, 4);
    put("n", "b", 1, 5)->priority = 7;
    g_autoptr(what_if) what_if = what_if_new(node);

    expect(what_if->node, 4, 5);
    ck_assert_str_eq(what_if->node->name, "n");
    ck_assert_int_eq(find(what_if, "b")->priority, 7);
    what_if_without(what_if, find(what_if, "a"));
    expect(what_if->node, 0, 5);
    ck_assert_int_eq(what_if->node->memory_free_max, 10 * GIB);
    expect(node, 4, 5);
    what_if_with(what_if, find(what_if, "a"));
    expect(what_if->node, 4, 5);

    what_if_add(what_if, HOLDING("more", units_on(0, 9))); /* 13 of 10 */
    expect(what_if->node, 13, 5);
    ck_assert_int_eq(card_memory_free(what_if->node, &what_if->node->cards[0]), 0);
    expect(node, 4, 5);
}
END_TEST

START_TEST(a_trial_outlives_what_it_was_made_of)
{
    set_equal_cards("n", 2, 10);
    put("n", "a", 0, 4);
    g_autoptr(what_if) what_if = what_if_new(ledger_node(book, "n"));

    ledger_drop(book, "a");
    ledger_remove_node(book, "n");
    expect(what_if->node, 4, 0);
    what_if_without(what_if, find(what_if, "a"));
    expect(what_if->node, 0, 0);
}
END_TEST

/* Nodes with so many pods that a few of them are as much as is kept. */
START_TEST(stand_ins_are_kept_up_to_a_limit)
{
    enum { N_NODES = 12, N_PODS = 8000 };
    struct stand_ins *stand_ins = stand_ins_new();
    g_autoptr(GPtrArray) left_over = g_ptr_array_new();

    for (int i = 0; i < N_NODES; i++) {
        g_autofree char *name = g_strdup_printf("n%d", i);
        const struct node *node = set_equal_cards(name, 1, 10);
        for (int j = 0; j < N_PODS; j++) {
            g_autofree char *uid = g_strdup_printf("%s-%d", name, j);
            put(name, uid, 0, 1);
        }
        struct stand_in *made = stand_in_new(node);
        stand_in_prepare(made);
        stand_ins_give(stand_ins, made, left_over);
        ck_assert_uint_le(stand_ins_bytes(stand_ins), STAND_INS_BYTES_MAX);
        struct stand_in *kept = stand_ins_take(stand_ins, node, left_over);
        ck_assert_ptr_eq(kept, made); /* who came last goes last */
        stand_ins_give(stand_ins, kept, left_over);
    }
    ck_assert_uint_gt(stand_ins_bytes(stand_ins), STAND_INS_BYTES_MAX / 2);
    ck_assert_uint_ge(left_over->len, 2);
    ck_assert_uint_lt(left_over->len, N_NODES - 2);
    for (guint i = 0; i < left_over->len; i++)
        stand_in_free(left_over->pdata[i]);
    stand_ins_free(stand_ins);
}
END_TEST

START_TEST(two_stand_ins_of_one_node_are_one)
{
    const struct node *node = set_equal_cards("n", 2, 10);
    struct stand_ins *stand_ins = stand_ins_new();
    g_autoptr(GPtrArray) left_over = g_ptr_array_new();
    struct stand_in *older = stand_in_new(node);

    put("n", "a", 0, 4);
    struct stand_in *newer = stand_in_new(node);
    stand_ins_give(stand_ins, newer, left_over);
    stand_ins_give(stand_ins, older, left_over);
    ck_assert_uint_eq(left_over->len, 1);
    ck_assert_ptr_eq(left_over->pdata[0], older);
    ck_assert_ptr_eq(stand_ins_take(stand_ins, node, left_over), newer);
    ck_assert_uint_eq(stand_ins_bytes(stand_ins), 0);
    stand_in_free(newer);
    stand_in_free(older);
    stand_ins_free(stand_ins);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trial");
    TCase *tests = tcase_create("trial");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_trial_leaves_the_ledger_alone);
    tcase_add_test(tests, a_trial_outlives_what_it_was_made_of);
    tcase_add_test(tests, stand_ins_are_kept_up_to_a_limit);
    tcase_add_test(tests, two_stand_ins_of_one_node_are_one);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
