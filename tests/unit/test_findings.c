/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/findings.h"
#include "suite.h"

static const char *const moves[] = {"n1", "n2", NULL};

/* Whether a plan goes on, with what the error has to say if not. */
static void expect(const struct findings *now, const struct findings *before, const char *why)
{
    g_autoptr(GError) failure = NULL;
    const bool goes_on = findings_check(now, before, moves, &failure);

    ck_assert_int_eq(goes_on, why == NULL);
    ck_assert(goes_on || strstr(failure->message, why));
}

static void find(struct findings *findings, const char *cause, const char *pod, const char *node)
{
    findings_add(findings, &(struct finding){cause, pod ? "ml" : NULL, pod, node});
}

START_TEST(what_is_known_and_elsewhere_does_not_stop_it)
{
    g_autoptr(findings) now = findings_new(), before = findings_new();

    expect(now, before, NULL);
    find(before, "foreign", "a", "n3");
    expect(now, before, NULL); /* it is over */
    find(now, "foreign", "a", "n3");
    expect(now, before, NULL);
    find(now, "foreign", "b", "n3");
    expect(now, before, "foreign n3 ml/b");
}
END_TEST

START_TEST(what_is_about_a_node_of_the_next_move_does)
{
    for (int i = 0; i < 2; i++) {
        g_autoptr(findings) now = findings_new(), before = findings_new();

        find(now, "left_out", i ? "n1" : NULL, "n10"); /* another node, and a pod of that name */
        find(before, "left_out", i ? "n1" : NULL, "n10");
        expect(now, before, NULL);
        find(now, "left_out", i ? "a" : NULL, "n1");
        find(before, "left_out", i ? "a" : NULL, "n1");
        expect(now, before, "left_out n1");
    }
}
END_TEST

START_TEST(what_cannot_be_told_apart_does)
{
    g_autoptr(findings) now = findings_new(), before = findings_new();

    for (int i = 0; i <= FINDINGS_KNOWN_MAX; i++) {
        g_autofree char *node = g_strdup_printf("x%d", i);

        expect(now, before, NULL);
        find(now, "left_out", NULL, node);
        find(before, "left_out", NULL, node);
    }
    expect(now, before, "more than 64");
}
END_TEST

START_TEST(what_is_not_told_does)
{
    g_autoptr(findings) now = findings_new(), before = findings_new();

    findings_add_untold(now, 0);
    expect(now, before, NULL);
    findings_add_untold(now, 1);
    expect(now, before, "does not tell all");
}
END_TEST

START_TEST(its_texts_are_learned_again)
{
    g_autoptr(findings) now = findings_new(), before = findings_new();

    find(now, "foreign", "b", "n3");
    find(now, "foreign", "a", "n3");
    g_auto(GStrv) texts = findings_texts(now);
    ck_assert_uint_eq(g_strv_length(texts), 2);
    ck_assert_str_eq(texts[0], "foreign n3 ml/a");
    for (char **text = texts; *text; text++)
        findings_learn(before, *text);
    expect(now, before, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("findings");
    TCase *tests = tcase_create("findings");

    tcase_add_test(tests, what_is_known_and_elsewhere_does_not_stop_it);
    tcase_add_test(tests, what_is_about_a_node_of_the_next_move_does);
    tcase_add_test(tests, what_cannot_be_told_apart_does);
    tcase_add_test(tests, what_is_not_told_does);
    tcase_add_test(tests, its_texts_are_learned_again);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
