/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include "wire/claim.h"

#include <string.h>

#define SINCE INT64_C(1764100000)
#define SECOND INT64_C(1000000000)

START_TEST(what_is_written_is_read)
{
    const char *const ends[] = {"b", "c", NULL};
    g_autoptr(GPtrArray) claims = claims_decode(NULL, NULL);

    ck_assert_ptr_null(claims_encode(claims));
    g_ptr_array_add(claims, claim_new("a", SINCE, 3, ends));
    g_ptr_array_add(claims, claim_new("d", SINCE, CARD_UNKNOWN, &ends[2]));
    g_autofree char *text = claims_encode(claims);
    ck_assert_str_eq(text,
                     "[{\"for\":\"a\",\"since\":1764100000,\"card\":3,\"ends\":[\"b\",\"c\"]},"
                     "{\"for\":\"d\",\"since\":1764100000,\"ends\":[]}]");
    g_autoptr(GPtrArray) read = claims_decode(text, NULL);
    g_autofree char *again = claims_encode(read);
    ck_assert_str_eq(again, text);
    ck_assert(claim_names(read->pdata[0], "c"));
    ck_assert(!claim_names(read->pdata[0], "a"));
}
END_TEST

START_TEST(it_counts_for_ten_minutes)
{
    const char *const nobody[] = {NULL};
    struct room_claim *claim = claim_new("a", SINCE, CARD_UNKNOWN, nobody);

    ck_assert(claim_counts(claim, SINCE * SECOND));
    ck_assert(claim_counts(claim, (SINCE + 599) * SECOND));
    ck_assert(!claim_counts(claim, (SINCE + 600) * SECOND));
    ck_assert(!claim_counts(claim, (SINCE - 61) * SECOND)); /* it is of the future */
    claim_free(claim);
}
END_TEST

static const char *const bad[] = {
    "{}",
    "x",
    "[1]",
    "[{\"for\":\"a\",\"since\":1}]",
    "[{\"since\":1,\"ends\":[]}]",
    "[{\"for\":\"a\",\"since\":-1,\"ends\":[]}]",
    "[{\"for\":\"a\",\"since\":1,\"ends\":[1]}]",
    "[{\"for\":\"a\",\"since\":99999999999,\"ends\":[]}]",
};

START_TEST(what_cannot_be_read_is_none)
{
    g_autoptr(GError) failure = NULL;

    ck_assert_ptr_null(claims_decode(bad[_i], &failure));
    ck_assert_ptr_nonnull(failure);
}
END_TEST

START_TEST(there_are_only_so_many)
{
    g_autoptr(GString) claims = g_string_new("["), ends = g_string_new(NULL);

    for (int i = 0; i <= CLAIMS_MAX; i++)
        g_string_append_printf(claims, "%s{\"for\":\"a\",\"since\":1,\"ends\":[]}", i ? "," : "");
    g_string_append(claims, "]");
    ck_assert_ptr_null(claims_decode(claims->str, NULL));
    g_string_append(ends, "[{\"for\":\"a\",\"since\":1,\"ends\":[\"b\"");
    for (int i = 0; i < CLAIM_ENDS_MAX; i++)
        g_string_append(ends, ",\"b\"");
    g_string_append(ends, "]}]");
    ck_assert_ptr_null(claims_decode(ends->str, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("claim");
    TCase *tests = tcase_create("claim");

    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, it_counts_for_ten_minutes);
    tcase_add_loop_test(tests, what_cannot_be_read_is_none, 0, (int)G_N_ELEMENTS(bad));
    tcase_add_test(tests, there_are_only_so_many);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
