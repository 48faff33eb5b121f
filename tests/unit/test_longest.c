/* SPDX-License-Identifier: Apache-2.0 */
/* The longest call of the last minute. */
#include "base/longest.h"
#include "suite.h"

#include <string.h>

#define S INT64_C(1000000)
#define NOW (5000 * S)

static void expect(int64_t now_us, int64_t duration_us, enum verb verb)
{
    enum verb found = VERB_N;

    ck_assert_int_eq(longest_call(now_us, &found), duration_us);
    ck_assert_int_eq(found, verb);
}

START_TEST(of_all_calls_the_longest_is_told)
{
    expect(NOW, 0, VERB_N);
    longest_note(VERB_FILTER, 700, NOW);
    longest_note(VERB_PREEMPT, 900, NOW);
    longest_note(VERB_PRIORITIZE, 800, NOW);
    longest_note(VERB_FILTER, 850, NOW + S);
    expect(NOW + S, 900, VERB_PREEMPT);
}
END_TEST

START_TEST(it_is_forgotten_after_a_minute)
{
    longest_note(VERB_PREEMPT, 900, NOW);
    longest_note(VERB_FILTER, 700, NOW + 10 * S);
    expect(NOW + 59 * S, 900, VERB_PREEMPT);
    expect(NOW + 60 * S, 700, VERB_FILTER);
    expect(NOW + 70 * S, 0, VERB_N);
    longest_note(VERB_FILTER, 5, NOW + 60 * S); /* in the same place as the first */
    expect(NOW + 61 * S, 700, VERB_FILTER);
    expect(NOW + 70 * S, 5, VERB_FILTER);
}
END_TEST

START_TEST(prometheus_reads_seconds)
{
    g_autoptr(GString) text = g_string_new(NULL);

    longest_note(VERB_FILTER, 2500000, NOW);
    longest_write(text, NOW);
    ck_assert_ptr_nonnull(strstr(text->str, "\ngpuledger_longest_call_seconds 2.500000\n"));
    ck_assert_ptr_nonnull(strstr(text->str, "# TYPE gpuledger_longest_call_seconds gauge\n"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("longest");
    TCase *tests = tcase_create("longest");

    tcase_add_checked_fixture(tests, longest_clear, NULL);
    tcase_add_test(tests, of_all_calls_the_longest_is_told);
    tcase_add_test(tests, it_is_forgotten_after_a_minute);
    tcase_add_test(tests, prometheus_reads_seconds);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
