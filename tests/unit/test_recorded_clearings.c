/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What preempt goes by besides the ledger stands in its call's line, so that the call is decided again as it
 * was, wherever a file begins and whatever came of other calls.
 */
#include "preempting_extender.h"
#include "recorded_calls.h"
#include "suite.h"

static const struct store_options options = {.patience_ms = 60000};

static void begin(void)
{
    setup();
    record_begin(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 1; i <= 2; i++)
        store_apply_node(extender.store,
                         &(struct node_view){.name = i == 1 ? "n1" : "n2",
                                             .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    apply((struct pod){"a", "10", "n1", "0", .priority = 1});
    apply((struct pod){"x", "10", "n2", "0", .priority = 2});
    apply((struct pod){"b", "10", "n1", "1", .priority = 1000});
    apply((struct pod){"y", "10", "n2", "1", .priority = 1000});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
    store_tell_known(extender.store);
}

static void end(void)
{
    record_end(extender.store);
    teardown();
}

static char *ask(const char *nodes)
{
    GString *reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"},\"spec\":{"
        "\"priority\":100,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"8\"}}}]}},\"NodeNameToMetaVictims\":{%s}}",
        nodes);

    ck_assert(extender_preempt(&extender, body, strlen(body), reply, NULL));
    return g_string_free(reply, FALSE);
}

#define NODE(name, uid) "\"" name "\":{\"Pods\":[{\"UID\":\"" uid "\"}]}"
#define BEGAN ",\"recalled\":{\"uid\":\"p\",\"nodes\":{\"n1\":[\"a\"]}}"

static void cut(const char *text)
{
    char *at = strstr(lines->str, text);

    ck_assert_ptr_nonnull(at);
    g_string_erase(lines, at - lines->str, (gssize)strlen(text));
}

START_TEST(a_second_answer_is_given_again)
{
    g_autofree char *first = ask(NODE("n1", "a")), *second = ask(NODE("n2", "x"));

    ck_assert_ptr_nonnull(strstr(first, "\"a\""));
    ck_assert_str_eq(second, "{\"NodeNameToMetaVictims\":{}}");
    ck_assert_ptr_nonnull(strstr(lines->str, BEGAN));
    expect_played(&options, 2, 0);
    /* What the line does not say is not so, whatever was answered before. */
    cut(BEGAN);
    expect_played(&options, 2, 1);
}
END_TEST

START_TEST(what_counts_no_longer_is_not_told)
{
    struct moment moment = {.now_ns = INT64_C(1900000000000000000), .now_ms = 100000};

    store_set_moment(extender.store, &moment);
    g_free(ask(NODE("n1", "a")));
    g_free(ask(NODE("n2", "x")));
    moment.now_ms += CLEARING_MS - 1;
    g_free(ask(NODE("n2", "x")));
    moment.now_ms += 1;
    g_autofree char *later = ask(NODE("n2", "x"));
    ck_assert_ptr_nonnull(strstr(later, "\"x\""));
    store_set_moment(extender.store, NULL);
    expect_played(&options, 4, 0);
}
END_TEST

START_TEST(a_file_may_begin_between_two_calls)
{
    g_autofree char *before = g_strdup(lines->str);
    const uint64_t last = number;

    g_free(ask(NODE("n1", "a")));
    g_string_assign(lines, before);
    number = last;
    g_free(ask(NODE("n2", "x")));
    expect_played(&options, 1, 0);
}
END_TEST

START_TEST(what_cannot_be_understood_is_an_error)
{
    g_autoptr(GError) error = NULL;

    g_free(ask(NODE("n1", "a")));
    g_free(ask(NODE("n2", "x")));
    cut(BEGAN);
    g_string_insert(lines, strstr(lines->str, ",\"body\":{\"Pod\"") - lines->str,
                    ",\"recalled\":{\"nodes\":{}}");
    ck_assert_ptr_null(play_lines(&options, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "field 'recalled': field 'uid': missing"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recorded_clearings");
    TCase *tests = tcase_create("recorded_clearings");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_second_answer_is_given_again);
    tcase_add_test(tests, what_counts_no_longer_is_not_told);
    tcase_add_test(tests, a_file_may_begin_between_two_calls);
    tcase_add_test(tests, what_cannot_be_understood_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
