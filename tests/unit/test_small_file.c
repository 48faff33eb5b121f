/* SPDX-License-Identifier: Apache-2.0 */
#include "base/small_file.h"

#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <string.h>
#include <unistd.h>

static char *path;

static void set_up(void)
{
    const int fd = g_file_open_tmp("gpuledger-file-XXXXXX", &path, NULL);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void tear_down(void)
{
    g_unlink(path);
    g_free(path);
}

START_TEST(a_file_is_read_up_to_its_maximum)
{
    g_autoptr(GError) error = NULL;
    size_t length = 0;

    ck_assert(g_file_set_contents(path,
                                  "12\0"
                                  "45",
                                  5, NULL));
    g_autofree char *text = small_file_read(path, 5, &length, NULL);
    ck_assert_uint_eq(length, 5);
    ck_assert_mem_eq(text,
                     "12\0"
                     "45\0",
                     6);
    ck_assert_ptr_null(small_file_read(path, 4, &length, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_ptr_nonnull(strstr(error->message, path));
}
END_TEST

START_TEST(what_cannot_be_read_is_named)
{
    g_autoptr(GError) error = NULL;

    g_unlink(path);
    ck_assert_ptr_null(small_file_read(path, 5, NULL, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
    ck_assert_ptr_nonnull(strstr(error->message, path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("small_file");
    TCase *tests = tcase_create("files");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_file_is_read_up_to_its_maximum);
    tcase_add_test(tests, what_cannot_be_read_is_named);
    suite_add_tcase(suite, tests);

    return suite_run(suite);
}
