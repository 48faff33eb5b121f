/* SPDX-License-Identifier: Apache-2.0 */
#include "base/no_proxy.h"

#include "suite.h"

#include <check.h>
#include <glib.h>

static const struct {
    const char *list, *host;
    bool named;
} rows[] = {
    {NULL, "10.0.0.1", false},
    {"", "10.0.0.1", false},
    {"*", "10.0.0.1", true},
    {"10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", "10.0.0.10", false},
    {"10.0.0.10", "10.0.0.1", false},
    {"a, 10.0.0.1 ,b", "10.0.0.1", true},
    {"10.0.0.0/8", "10.255.0.1", true},
    {"10.0.0.0/8", "11.0.0.1", false},
    {"10.0.0.0/12", "10.15.0.1", true},
    {"10.0.0.0/12", "10.16.0.1", false},
    {"10.0.0.1/32", "10.0.0.1", true},
    {"0.0.0.0/0", "8.8.8.8", true},
    {"10.0.0.0/33", "10.0.0.1", false},
    {"10.0.0.0/", "10.0.0.1", false},
    {"10.0.0.0/8", "fd00::1", false},
    {"10.0.0.0/8", "a.example", false},
    {"fd00::/8", "fd12::1", true},
    {"fd00::1", "fd00:0:0::1", true},
    {"[fd00::1]", "fd00::1", true},
    {"[fd00::1]:6443", "fd00::1", true},
    {"[fd00::1]:443", "fd00::1", false},
    {"10.0.0.1:6443", "10.0.0.1", true},
    {"10.0.0.1:443", "10.0.0.1", false},
    {"example.org", "example.org", true},
    {"Example.ORG", "api.example.org", true},
    {"example.org", "myexample.org", false},
    {".example.org", "api.example.org", true},
    {".example.org", "example.org", false},
    {"*.example.org", "api.example.org", true},
    {"example.org:6443", "example.org", true},
    {"example.org:443", "example.org", false},
    {"0.1", "10.0.0.1", false},
};

START_TEST(names_what_it_names)
{
    ck_assert_msg(no_proxy_names(rows[_i].list, rows[_i].host, 6443) == rows[_i].named,
                  "\"%s\" and %s", rows[_i].list ? rows[_i].list : "", rows[_i].host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("no_proxy");
    TCase *tests = tcase_create("lists");

    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, names_what_it_names, 0, G_N_ELEMENTS(rows));
    return suite_run(suite);
}
