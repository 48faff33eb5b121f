/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"

#include "core/node.h"
#include "core/trial.h"
#include "suite.h"


static struct allocation *find(const struct trial *trial, const char *uid)
{
    for (guint i = 0; i < trial->allocations->len; i++) {
        struct allocation *allocation = g_ptr_array_index(trial->allocations, i);
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
    g_autoptr(trial) trial = trial_new(node);

    expect(trial->node, 4, 5);
    ck_assert_str_eq(trial->node->name, "n");
    ck_assert_int_eq(find(trial, "b")->priority, 7);
    trial_without(trial, find(trial, "a"));
    expect(trial->node, 0, 5);
    ck_assert_int_eq(trial->node->memory_free_max, 10 * GIB);
    expect(node, 4, 5);
    trial_with(trial, find(trial, "a"));
    expect(trial->node, 4, 5);

    trial_add(trial, HOLDING("more", units_on(0, 9))); /* 13 of 10 */
    expect(trial->node, 13, 5);
    ck_assert_int_eq(card_memory_free(trial->node, &trial->node->cards[0]), 0);
    expect(node, 4, 5);
}
END_TEST

START_TEST(a_trial_outlives_what_it_was_made_of)
{
    set_equal_cards("n", 2, 10);
    put("n", "a", 0, 4);
    g_autoptr(trial) trial = trial_new(ledger_node(book, "n"));

    ledger_drop(book, "a");
    ledger_remove_node(book, "n");
    expect(trial->node, 4, 0);
    trial_without(trial, find(trial, "a"));
    expect(trial->node, 0, 0);
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
