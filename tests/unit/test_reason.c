/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <glib.h>
#include <gpuledger/reason.h>
#include <string.h>

/* What the peer says, and people grep for. */
#define INSUFFICIENT "Insufficient GPU Memory in one device"

/* A text with a number, an amount or a name in it would differ from node to node and from try to
 * try, and queue its pod for ever. */
START_TEST(texts_are_constant)
{
    const struct reason_info *info = reason_info((enum reason)_i);

    ck_assert_ptr_eq(info, reason_info((enum reason)_i));
    for (const char *p = info->text; *p; p++) {
        ck_assert_msg(g_ascii_isprint(*p), "%s", info->text);
        ck_assert_msg(!g_ascii_isdigit(*p), "%s", info->text);
        ck_assert_msg(!strchr("%\"<>{}[]()/=_", *p), "%s", info->text);
    }
}
END_TEST

START_TEST(texts_are_sentences_to_put_into_a_list)
{
    const char *text = reason_info((enum reason)_i)->text;

    if (_i == REASON_NONE) {
        ck_assert_str_eq(text, "");
        return;
    }
    ck_assert_msg(g_ascii_isupper(text[0]), "%s", text);
    ck_assert_msg(g_ascii_isalnum(text[strlen(text) - 1]), "%s", text);
    ck_assert_uint_lt(strlen(text), 120);
}
END_TEST

START_TEST(codes_are_words_of_their_own)
{
    const char *code = reason_info((enum reason)_i)->code;

    ck_assert_uint_gt(strlen(code), 0);
    ck_assert_uint_eq(strspn(code, "abcdefghijklmnopqrstuvwxyz_"), strlen(code));
    for (int other = 0; other < REASON_N; other++) {
        const struct reason_info *info = reason_info((enum reason)other);
        if (other == _i)
            continue;
        ck_assert_str_ne(info->code, code);
        ck_assert_str_ne(info->text, reason_info((enum reason)_i)->text);
    }
}
END_TEST

START_TEST(what_is_no_reason_is_none)
{
    ck_assert_ptr_eq(reason_info(REASON_N), reason_info(REASON_NONE));
    ck_assert_ptr_eq(reason_info((enum reason) - 1), reason_info(REASON_NONE));
    ck_assert_ptr_eq(reason_info((enum reason)INT_MAX), reason_info(REASON_NONE));
}
END_TEST

START_TEST(texts_that_people_know_are_kept)
{
    static const enum reason prefixed[] = {REASON_INSUFFICIENT_MEMORY, REASON_CARD_TOO_SMALL,
                                           REASON_CARD_UNHEALTHY};

    ck_assert_str_eq(reason_info(REASON_INSUFFICIENT_MEMORY)->text, INSUFFICIENT);
    for (size_t i = 0; i < G_N_ELEMENTS(prefixed); i++)
        ck_assert(g_str_has_prefix(reason_info(prefixed[i])->text, INSUFFICIENT));
    ck_assert_ptr_nonnull(
        strstr(reason_info(REASON_NOT_GPU_SHARE)->text, "is not for GPU share, need skip"));
}
END_TEST

/* Evicting pods makes no card larger, healthier, of another kind, or known. */
START_TEST(preemption_is_invited_where_it_helps)
{
    static const enum reason resolvable[] = {REASON_NONE,
                                             REASON_INSUFFICIENT_MEMORY,
                                             REASON_UNLIMITED,
                                             REASON_INSUFFICIENT_CORE,
                                             REASON_INSUFFICIENT_DEVICES,
                                             REASON_WITHHELD,
                                             REASON_NO_SLOT,
                                             REASON_NODE_SLOTS,
                                             REASON_OTHER_USE,
                                             REASON_CARD_NUMBERS,
                                             REASON_OTHER_TENANT,
                                             REASON_OTHER_CLASS,
                                             REASON_NO_MIG_PLACE,
                                             REASON_OVERSUBSCRIBED,
                                             REASON_SHARED_MEMORY,
                                             REASON_WORK_LIMIT};

    for (int reason = 0; reason < REASON_N; reason++) {
        bool expected = false;
        for (size_t i = 0; i < G_N_ELEMENTS(resolvable); i++)
            expected |= resolvable[i] == (enum reason)reason;
        ck_assert_msg(reason_info((enum reason)reason)->resolvable == expected, "%s",
                      reason_info((enum reason)reason)->code);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("reason");
    TCase *tc = tcase_create("reason");

    tcase_add_loop_test(tc, texts_are_constant, 0, REASON_N);
    tcase_add_loop_test(tc, texts_are_sentences_to_put_into_a_list, 0, REASON_N);
    tcase_add_loop_test(tc, codes_are_words_of_their_own, 0, REASON_N);
    tcase_add_test(tc, what_is_no_reason_is_none);
    tcase_add_test(tc, texts_that_people_know_are_kept);
    tcase_add_test(tc, preemption_is_invited_where_it_helps);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
