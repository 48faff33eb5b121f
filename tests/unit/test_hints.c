/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of pods on their way from filter to bind, and for how long.
 */
#include "core/ledger.h"
#include "queue/hints.h"
#include "suite.h"

#include <string.h>

static struct hints *hints;
static struct ledger *empty;
static struct request *asked;

static void setup(void)
{
    hints = hints_new();
    empty = ledger_new();
    asked = request_new(NULL, 0);
}

static void teardown(void)
{
    hints_free(hints);
    ledger_free(empty);
    request_free(asked);
}

static struct hint *note(const char *uid, const char *ns, const char *node, int64_t until_ms)
{
    return hints_note(hints, &(struct hint_about){uid, ns, node, asked, until_ms});
}

/* "a b": those on their way there. */
static void expect(const char *node, const char *uids)
{
    g_autoptr(GString) found = g_string_new(NULL);
    const GPtrArray *list = hints_of(hints, node);

    for (guint i = 0; list && i < list->len; i++)
        g_string_append_printf(found, "%s%s", i ? " " : "",
                               ((const struct hint *)list->pdata[i])->uid);
    ck_assert_str_eq(found->str, uids);
}

START_TEST(a_pod_is_on_its_way_to_one_node)
{
    note("a", "ml", "n1", 100);
    note("b", "ml", "n1", 100);
    expect("n1", "a b");
    note("a", "ml", "n2", 100);
    expect("n1", "b");
    expect("n2", "a");
    note("a", "ml", NULL, 100);
    expect("n2", "");
    ck_assert_ptr_nonnull(hints_find(hints, "a"));
    hints_forget(hints, "b");
    hints_forget(hints, "nobody");
    expect("n1", "");
    ck_assert_ptr_null(hints_find(hints, "b"));
    ck_assert_ptr_null(hints_find(hints, NULL));
}
END_TEST

START_TEST(what_it_asks_for_now_counts)
{
    const struct hint *hint = note("a", "ml", "n1", 100);

    asked->match_amount = 6; /* it was resized */
    ck_assert(!request_equal(hint->request, asked));
    note("a", "ml", "n1", 100);
    ck_assert(request_equal(hint->request, asked));
}
END_TEST

START_TEST(its_time_ends)
{
    note("a", "ml", "n1", 100);
    note("b", "ml", "n1", 200);
    hints_end(hints, empty, 99);
    expect("n1", "a b");
    hints_end(hints, empty, 100);
    expect("n1", "b");
    note("b", "ml", "n1", 300); /* it waits for longer */
    hints_end(hints, empty, 299);
    expect("n1", "b");
    hints_end(hints, empty, 300);
    expect("n1", "");
    note("c", "ml", "n1", 400);
    hints_forget_all(hints);
    expect("n1", "");
    ck_assert_ptr_null(hints_find(hints, "c"));
}
END_TEST

static void fill(const char *ns, int n)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("%s%d", ns, i);
        note(uid, ns, ns, 100);
    }
}

START_TEST(a_namespace_has_so_many)
{
    note("mine", "mine", "n1", 100);
    fill("a", HINTS_NAMESPACE_MAX + 5);
    ck_assert_uint_eq(hints_of(hints, "a")->len, HINTS_NAMESPACE_MAX);
    ck_assert_ptr_null(hints_find(hints, "a4"));
    ck_assert_ptr_nonnull(hints_find(hints, "a5"));
    fill("b", HINTS_NAMESPACE_MAX);
    /* One more than there may be in all: who has most has lost the oldest. */
    ck_assert_uint_eq(hints_of(hints, "a")->len, HINTS_NAMESPACE_MAX - 1);
    ck_assert_uint_eq(hints_of(hints, "b")->len, HINTS_NAMESPACE_MAX);
    expect("n1", "mine");
}
END_TEST

START_TEST(it_tells_which_nodes_filter_was_asked_about)
{
    g_autoptr(ledger) ledger = ledger_new();
    struct hint *hint = note("a", "ml", NULL, 100);
    const struct topology none = {0};
    char name[8];

    for (int i = 0; i < 20; i++) {
        g_snprintf(name, sizeof name, "n%d", i);
        ledger_set_topology(ledger, name, &none);
        const struct node *node = ledger_node(ledger, name);
        ck_assert_ptr_nonnull(node);
        if (i % 7 == 0)
            hint_ask(hint, ledger, node_own(node)->place);
        ck_assert_int_eq(hint_has_asked(hint, node_own(node)->place), i % 7 == 0);
    }
    ck_assert(hint_has_asked(hint, node_own(ledger_node(ledger, "n7"))->place));
    ck_assert(!hint_has_asked(hint, 1000));
    note("a", "ml", "n7", 200);
    ck_assert(hint_has_asked(hint, node_own(ledger_node(ledger, "n14"))->place));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("hints");
    TCase *tc = tcase_create("hints");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_pod_is_on_its_way_to_one_node);
    tcase_add_test(tc, what_it_asks_for_now_counts);
    tcase_add_test(tc, its_time_ends);
    tcase_add_test(tc, a_namespace_has_so_many);
    tcase_add_test(tc, it_tells_which_nodes_filter_was_asked_about);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
