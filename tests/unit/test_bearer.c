/* SPDX-License-Identifier: Apache-2.0 */
#include "http/bearer.h"

#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <string.h>
#include <unistd.h>

static char *path;

static void set_up(void)
{
    int fd = g_file_open_tmp("gpuledger-token-XXXXXX", &path, NULL);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void tear_down(void)
{
    g_unlink(path);
    g_free(path);
}

static struct bearer *read_bearer(const char *text)
{
    GError *failure = NULL;

    ck_assert(g_file_set_contents(path, text, -1, NULL));
    struct bearer *bearer = bearer_new(path, &failure);
    ck_assert_msg(bearer, "%s", failure ? failure->message : "");
    return bearer;
}

START_TEST(only_the_token_is_accepted)
{
    static const struct {
        const char *authorization;
        bool accepted;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"Bearer", false},
        {"Bearer ", false},
        {"Bearer s3cret-token", true},
        {"bearer s3cret-token", true},
        {"BEARER  s3cret-token ", true},
        {"Bearer s3cret-toke", false},
        {"Bearer s3cret-tokenn", false},
        {"Bearer S3cret-token", false},
        {"Bearers3cret-token", false},
        {"Basic s3cret-token", false},
        {"s3cret-token", false},
    };
    struct bearer *bearer = read_bearer("  s3cret-token\n");

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_msg(bearer_accepts(bearer, cases[i].authorization) == cases[i].accepted, "'%s'",
                      cases[i].authorization);
    bearer_free(bearer);
}
END_TEST

/* Some have a part of their digest in common with it. */
START_TEST(none_of_many_others_is_accepted)
{
    struct bearer *bearer = read_bearer("s3cret-token");

    for (int i = 0; i < 5000; i++) {
        g_autofree char *other = g_strdup_printf("Bearer %d", i);
        ck_assert_msg(!bearer_accepts(bearer, other), "'%s'", other);
    }
    bearer_free(bearer);
}
END_TEST

START_TEST(files_without_a_token_are_refused)
{
    static const char *const texts[] = {
        "", " \n", "hidden1 hidden2", "hidden1\nhidden2", "hidden\x01", "hidd\xc3\xa9n"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) failure = NULL;

        ck_assert(g_file_set_contents(path, texts[i], -1, NULL));
        ck_assert_ptr_null(bearer_new(path, &failure));
        ck_assert(g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
        ck_assert_ptr_nonnull(strstr(failure->message, path));
        ck_assert_ptr_null(strstr(failure->message, "hid"));
    }
    g_autofree char *large = g_strnfill(100000, 'x');
    g_autoptr(GError) failure = NULL;
    ck_assert(g_file_set_contents(path, large, -1, NULL));
    ck_assert_ptr_null(bearer_new(path, &failure));
    ck_assert(g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
}
END_TEST

START_TEST(a_changed_file_counts)
{
    struct bearer *bearer = read_bearer("first");

    ck_assert(g_file_set_contents(path, "second", -1, NULL));
    bearer_refresh(bearer);
    ck_assert(!bearer_accepts(bearer, "Bearer first"));
    ck_assert(bearer_accepts(bearer, "Bearer second"));

    /* Who takes the token away takes it from everybody. */
    ck_assert(g_file_set_contents(path, "", -1, NULL));
    bearer_refresh(bearer);
    ck_assert(!bearer_accepts(bearer, "Bearer second"));
    ck_assert(!bearer_accepts(bearer, "Bearer "));
    ck_assert(!bearer_accepts(bearer, "Bearer first"));
    g_unlink(path);
    bearer_refresh(bearer);
    ck_assert(!bearer_accepts(bearer, "Bearer second"));
    ck_assert(g_file_set_contents(path, "third", -1, NULL));
    bearer_refresh(bearer);
    ck_assert(bearer_accepts(bearer, "Bearer third"));
    bearer_free(bearer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bearer");
    TCase *cases = tcase_create("bearer");

    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, only_the_token_is_accepted);
    tcase_add_test(cases, none_of_many_others_is_accepted);
    tcase_add_test(cases, files_without_a_token_are_refused);
    tcase_add_test(cases, a_changed_file_counts);
    suite_add_tcase(suite, cases);

    return suite_run(suite);
}
