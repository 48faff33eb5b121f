/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"

#include "core/node.h"
#include "policy/what_if.h"
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

int main(void)
{
    Suite *suite = suite_create("trial");
    TCase *tests = tcase_create("trial");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_trial_leaves_the_ledger_alone);
    tcase_add_test(tests, a_trial_outlives_what_it_was_made_of);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
