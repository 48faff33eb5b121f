/* SPDX-License-Identifier: Apache-2.0 */
#include "base/decisions.h"

#include "suite.h"
#include "core/reason/reasons.h"

static void note(const char *name, size_t n_taking, int64_t now_s)
{
    decisions_note(
        &(struct decision){
            .verb = VERB_FILTER, .ns = "ml", .name = name, .card = -1, .n_taking = n_taking},
        now_s);
}

static void write_row(const struct decision_row *row, void *data)
{
    g_string_append_printf(
        data, "%s:%zu %" G_GINT64_FORMAT "-%" G_GINT64_FORMAT " x%" G_GUINT64_FORMAT ";",
        row->decision.name, row->decision.n_taking, row->first_s, row->last_s, row->times);
}

static void expect(const char *rows)
{
    g_autoptr(GString) text = g_string_new(NULL);

    decisions_each(write_row, text);
    ck_assert_str_eq(text->str, rows);
}

START_TEST(the_same_again_counts)
{
    note("a", 1, 10);
    note("b", 1, 11);
    note("a", 1, 12);
    note("a", 1, 13);
    expect("a:1 10-13 x3;b:1 11-11 x1;");
    note("a", 2, 14); /* another answer */
    note("a", 1, 15); /* not the same as the last */
    expect("a:1 15-15 x1;a:2 14-14 x1;a:1 10-13 x3;b:1 11-11 x1;");
}
END_TEST

static void take_name(const struct decision_row *row, void *data)
{
    const char **last = data;

    *last = g_intern_string(row->decision.name);
}

START_TEST(the_oldest_are_dropped)
{
    const char *last = NULL;

    for (int i = 0; i <= DECISIONS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("p%d", i);
        note(name, 1, i);
    }
    decisions_each(take_name, &last);
    ck_assert_str_eq(last, "p1");
}
END_TEST

START_TEST(the_reasons_of_most_nodes_are_kept)
{
    struct decision decision = {.verb = VERB_FILTER};
    uint64_t counts[REASONS_MAX] = {[REASON_NONE] = 9, [1] = 1, [2] = 4, [3] = 2, [4] = 3};

    decision_set_refusals(&decision, counts);
    ck_assert_uint_eq(decision.refusals[0].reason, 2);
    ck_assert_uint_eq(decision.refusals[0].n, 4);
    ck_assert_uint_eq(decision.refusals[1].reason, 4);
    ck_assert_uint_eq(decision.refusals[2].reason, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decisions");
    TCase *tests = tcase_create("ring");

    tcase_add_test(tests, the_same_again_counts);
    tcase_add_test(tests, the_oldest_are_dropped);
    tcase_add_test(tests, the_reasons_of_most_nodes_are_kept);
    suite_add_tcase(suite, tests);

    return suite_run(suite);
}
