/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of seals, as text, and what they make of facts. */
#include "store/seals/keyring.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

#define OLD "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000\n"
#define NEW "key 0000000b 202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f 2000\n"

static struct keyring *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    struct keyring *keyring = keyring_parse(text, &error);

    ck_assert_msg(keyring && !error, "%s", error ? error->message : "");
    return keyring;
}

START_TEST(what_is_written_is_read)
{
    g_autoptr(keyring) keyring = parse("# keys\n\n" NEW OLD "adopted 5\nrotate\n");
    char *text = keyring_format(keyring);

    ck_assert_str_eq(text, OLD NEW "adopted 5\nrotate\n");
    ck_assert_int_eq(keyring_adopted(keyring), 5);
    ck_assert(keyring_wants_rotation(keyring));
    keyring_text_free(text);
}
END_TEST

START_TEST(an_empty_text_is_no_key)
{
    g_autoptr(keyring) keyring = parse("");

    ck_assert_uint_eq(keyring_size(keyring), 0);
    ck_assert_ptr_null(keyring_signer(keyring, 5000));
    ck_assert_ptr_null(keyring_seal(keyring, "{}", 5000));
}
END_TEST

static const char *const unreadable[] = {
    "key 0000000a 00 1000",
    "key 0000000A 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000",
    "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 0",
    "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1 2",
    OLD OLD,
    "adopted",
    "adopted soon",
    "rotate now",
    "rotate force now",
    "rotate force\nrotate now",
    "secret",
};

START_TEST(what_cannot_be_read_is_an_error_that_shows_no_key)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(keyring_parse(unreadable[_i], &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_ptr_null(strstr(error->message, "000102"));
}
END_TEST

START_TEST(a_seal_is_checked)
{
    g_autoptr(keyring) keyring = parse(OLD), other = parse(NEW);
    g_autofree char *seal = keyring_seal(keyring, "{\"a\":1}", 5000);
    const char *id = NULL;

    ck_assert(g_str_has_prefix(seal, "v1:0000000a:"));
    ck_assert_str_eq(keyring_check(keyring, seal, &id), "{\"a\":1}");
    ck_assert_str_eq(id, "0000000a");
    ck_assert_str_eq(keyring_facts(seal), "{\"a\":1}");
    ck_assert_ptr_null(keyring_check(other, seal, &id));
}
END_TEST

/* By the standard's own words, HMAC-SHA-256 of a text with a key of 32 bytes: a seal that another version
 * has made must go on to count. */
START_TEST(a_seal_is_the_same_for_ever)
{
    g_autoptr(keyring) keyring = parse(OLD);
    static const guint8 key[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    g_autofree char *mac = g_compute_hmac_for_string(G_CHECKSUM_SHA256, key, sizeof key,
                                                     "gpuledger.io/seal v1\n{}", -1);
    g_autofree char *wanted = g_strdup_printf("v1:0000000a:%s:{}", mac);
    g_autofree char *seal = keyring_seal(keyring, "{}", 5000);

    ck_assert_str_eq(seal, wanted);
}
END_TEST

/* Any byte of it. */
START_TEST(an_edited_seal_is_none)
{
    g_autoptr(keyring) keyring = parse(OLD NEW);
    g_autofree char *seal = keyring_seal(keyring, "{\"a\":1}", 5000);
    const size_t length = strlen(seal);
    const char *id;

    for (size_t i = 0; i < length; i++) {
        g_autofree char *cut = g_strndup(seal, i), *edited = g_strdup(seal);
        edited[i] = edited[i] == '0' ? '1' : '0';
        ck_assert_ptr_null(keyring_check(keyring, cut, &id));
        ck_assert_ptr_null(keyring_check(keyring, edited, &id));
    }
}
END_TEST

START_TEST(a_new_key_signs_when_all_have_had_time_to_read_it)
{
    g_autoptr(keyring) keyring = parse(OLD NEW);
    g_autofree char *early = keyring_seal(keyring, "{}", 2000 + KEYRING_SETTLE_S - 1);
    g_autofree char *late = keyring_seal(keyring, "{}", 2000 + KEYRING_SETTLE_S);
    const char *id;

    ck_assert(g_str_has_prefix(early, "v1:0000000a:"));
    ck_assert(g_str_has_prefix(late, "v1:0000000b:"));
    ck_assert_str_eq(keyring_check(keyring, early, &id), "{}");
    ck_assert_str_eq(keyring_check(keyring, late, &id), "{}");
}
END_TEST

START_TEST(a_key_goes_when_nothing_is_sealed_with_it)
{
    static const char *const both[] = {"0000000a", "0000000b", NULL}, *const none[] = {NULL};
    g_autoptr(keyring) keyring = parse(OLD NEW);

    ck_assert_uint_eq(keyring_drop(keyring, none, 2001), 0); /* it still signs */
    ck_assert_uint_eq(keyring_drop(keyring, both, 5000), 0);
    ck_assert_uint_eq(keyring_drop(keyring, none, 5000), 1);
    ck_assert_str_eq(keyring_id(keyring, 0), "0000000b");
    ck_assert_uint_eq(keyring_drop(keyring, none, 5000), 0);
}
END_TEST

/* As it is then, and once the clock is right. */
static void expect_order(const struct keyring *keyring, int64_t added_s, int64_t right_s)
{
    const unsigned newest = keyring_size(keyring) - 1;
    static const char *const none[] = {NULL};
    g_autoptr(keyring) later = keyring_dup(keyring);

    ck_assert_str_eq(keyring_id(keyring, 0), "0000000a");
    ck_assert_str_ne(keyring_signer(keyring, added_s), keyring_id(keyring, newest));
    ck_assert_str_eq(keyring_signer(keyring, added_s + KEYRING_SETTLE_S),
                     keyring_id(keyring, newest));
    ck_assert_str_eq(keyring_signer(keyring, right_s), keyring_id(keyring, newest));
    ck_assert_uint_eq(keyring_drop(later, none, right_s), newest);
}

START_TEST(a_new_key_is_the_newest_whatever_the_clock_was)
{
    g_autoptr(keyring) set_back = parse(OLD NEW), was_ahead = parse(OLD NEW);

    ck_assert(keyring_add(set_back, 500)); /* the others are of 1000 and 2000 */
    expect_order(set_back, 500, 9000);
    ck_assert(keyring_add(was_ahead, 1500));
    expect_order(was_ahead, 1500, 9000);
    char *text = keyring_format(set_back);
    g_autoptr(keyring) again = parse(text);
    ck_assert_str_eq(keyring_id(again, 2), keyring_id(set_back, 2));
    keyring_text_free(text);
}
END_TEST

START_TEST(keys_are_made_by_chance)
{
    g_autoptr(keyring) keyring = keyring_new();

    for (int i = 0; i < KEYRING_KEYS_MAX + 2; i++)
        ck_assert(keyring_add(keyring, 1000 + i));
    ck_assert_uint_eq(keyring_size(keyring), KEYRING_KEYS_MAX);
    for (unsigned i = 1; i < KEYRING_KEYS_MAX; i++)
        ck_assert_str_ne(keyring_id(keyring, i), keyring_id(keyring, i - 1));
    char *text = keyring_format(keyring);
    g_autoptr(keyring) again = parse(text);
    char *rewritten = keyring_format(again);
    ck_assert_str_eq(text, rewritten);
    keyring_text_free(text);
    keyring_text_free(rewritten);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keyring");
    TCase *tests = tcase_create("keyring");

    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, an_empty_text_is_no_key);
    tcase_add_loop_test(tests, what_cannot_be_read_is_an_error_that_shows_no_key, 0,
                        G_N_ELEMENTS(unreadable));
    tcase_add_test(tests, a_seal_is_checked);
    tcase_add_test(tests, a_seal_is_the_same_for_ever);
    tcase_add_test(tests, an_edited_seal_is_none);
    tcase_add_test(tests, a_new_key_signs_when_all_have_had_time_to_read_it);
    tcase_add_test(tests, a_key_goes_when_nothing_is_sealed_with_it);
    tcase_add_test(tests, a_new_key_is_the_newest_whatever_the_clock_was);
    tcase_add_test(tests, keys_are_made_by_chance);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
