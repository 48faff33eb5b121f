/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMap of claims: read back as it was written, and nothing else. */
#include "suite.h"

#include "wire/claim_sheet.h"

#include <string.h>

#define SINCE INT64_C(1764100000)

static struct claim_sheet *sheet;

static void setup(void)
{
    sheet = claim_sheet_new();
}

static void teardown(void)
{
    claim_sheet_free(sheet);
}

static void add(const char *node, const char *uid, const char *ns, const char *ending)
{
    const char *const ends[] = {ending, NULL};
    struct room_claim *claim = claim_new(uid, SINCE, CARD_UNKNOWN, ends);

    claim->ns = g_strdup(ns);
    claim_sheet_add(sheet, node, claim);
}

static struct claim_sheet *read_back(const char *text, GError **error)
{
    g_autofree char *sum = claim_sheet_sum(text);

    return claim_sheet_read(text, sum, error);
}

START_TEST(what_is_written_is_read)
{
    add("n2", "b1", "ml", "a1");
    add("n1", "b0", "ml", "a0");
    add("n1", "b2", "ml", NULL);
    add("n1", "b0", "ml", "a7"); /* in place of the one before */
    claim_sheet_pause(sheet, "x", &(struct claim_pause){SINCE + 60, 60});
    g_autofree char *text = claim_sheet_encode(sheet);
    ck_assert_str_eq(
        text,
        "{\"nodes\":{\"n1\":[{\"for\":\"b2\",\"namespace\":\"ml\",\"since\":1764100000,\"ends\":[]}"
        ","
        "{\"for\":\"b0\",\"namespace\":\"ml\",\"since\":1764100000,\"ends\":[\"a7\"]}],"
        "\"n2\":[{\"for\":\"b1\",\"namespace\":\"ml\",\"since\":1764100000,\"ends\":[\"a1\"]}]},"
        "\"pauses\":{\"x\":{\"until\":1764100060,\"seconds\":60}}}");
    g_autoptr(claim_sheet) read = read_back(text, NULL);
    ck_assert_ptr_nonnull(read);
    g_autoptr(claim_sheet) copy = claim_sheet_dup(read);
    g_autofree char *again = claim_sheet_encode(copy);
    ck_assert_str_eq(again, text);
    claim_sheet_remove(copy, "n2", "b1");
    ck_assert_ptr_null(claim_sheet_on(copy, "n2"));
    claim_sheet_remove(copy, "n2", "b1");
}
END_TEST

START_TEST(another_sum_is_not_believed)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *text = claim_sheet_encode(sheet), *sum = claim_sheet_sum(text);

    ck_assert_ptr_null(claim_sheet_read(text, "", &failure));
    g_clear_error(&failure);
    ck_assert_ptr_null(claim_sheet_read(text, NULL, &failure));
    g_clear_error(&failure);
    ck_assert_ptr_null(claim_sheet_read(NULL, NULL, &failure));
    g_clear_error(&failure);
    ck_assert_ptr_null(claim_sheet_read(" {}", sum, &failure));
    ck_assert_ptr_nonnull(failure);
}
END_TEST

static const char *const bad[] = {
    "",
    "[]",
    "{}",
    "{\"nodes\":{}}",
    "{\"nodes\":[],\"pauses\":{}}",
    "{\"nodes\":{\"n\":{}},\"pauses\":{}}",
    "{\"nodes\":{\"n\":[{\"for\":\"a\",\"since\":1,\"ends\":[]}]},\"pauses\":{}}",
    "{\"nodes\":{},\"pauses\":{\"x\":{\"until\":-1,\"seconds\":1}}}",
    "{\"nodes\":{},\"pauses\":{\"x\":{\"until\":1,\"seconds\":99999999999}}}",
    "{\"nodes\":{},\"pauses\":{\"x\":1}}",
};

START_TEST(what_cannot_be_read_is_none)
{
    g_autoptr(GError) failure = NULL;

    ck_assert_ptr_null(read_back(bad[_i], &failure));
    ck_assert_ptr_nonnull(failure);
}
END_TEST

static bool fits(void)
{
    g_autofree char *text = claim_sheet_encode(sheet);
    g_autoptr(claim_sheet) read = read_back(text, NULL);
    const bool does = claim_sheet_fits(sheet, text, NULL);

    ck_assert_int_eq(read != NULL, does);
    return does;
}

START_TEST(a_node_and_a_namespace_have_so_many)
{
    for (int i = 0; i < CLAIM_SHEET_NAMESPACE_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("b%d", i), *node = g_strdup_printf("n%d", i / 8);
        add(node, uid, "ml", NULL);
    }
    ck_assert(fits());
    add("m", "one", "other", NULL);
    ck_assert(fits());
    add("m", "two", "ml", NULL);
    ck_assert(!fits());
    claim_sheet_remove(sheet, "m", "two");
    for (int i = 0; i < CLAIMS_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("c%d", i);
        add("k", uid, "other", NULL);
    }
    ck_assert(fits());
    add("k", "another", "other", NULL);
    ck_assert(!fits());
}
END_TEST

START_TEST(pauses_and_bytes_are_bounded)
{
    for (int i = 0; i <= CLAIM_PAUSES_MAX; i++) {
        g_autofree char *ns = g_strdup_printf("ns-%d", i);
        ck_assert(i % 256 != 0 || fits());
        claim_sheet_pause(sheet, ns, &(struct claim_pause){SINCE, 60});
    }
    ck_assert(!fits());
    g_hash_table_remove(sheet->pauses, "ns-0");
    ck_assert(fits());
    g_autofree char *long_uid = g_strnfill(CLAIM_SHEET_MAX, 'u');
    add("n", long_uid, "ml", NULL);
    ck_assert(!fits());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("claim_sheet");
    TCase *tests = tcase_create("sheet");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, another_sum_is_not_believed);
    tcase_add_loop_test(tests, what_cannot_be_read_is_none, 0, (int)G_N_ELEMENTS(bad));
    tcase_add_test(tests, a_node_and_a_namespace_have_so_many);
    tcase_add_test(tests, pauses_and_bytes_are_bounded);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
