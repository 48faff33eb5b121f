/* SPDX-License-Identifier: Apache-2.0 */
/* A Lease is written as it was read, but for what is ours. */
#include "suite.h"

#include "wire/lease.h"

#include <string.h>

#define OTHERS "\"ownerReferences\":[{\"uid\":\"o\"}],\"finalizers\":[\"example.com/f\"]"

static const char lease_text[] =
    "{\"metadata\":{\"name\":\"l\",\"namespace\":\"ns\",\"resourceVersion\":\"7\",\"uid\":"
    "\"u\"," OTHERS
    ",\"labels\":{\"k\":\"v\"},\"annotations\":{\"ours\":\"old\",\"theirs\":\"kept\"}},"
    "\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,\"leaseTransitions\":2}}";

static const struct {
    const char *value, *annotations;
} rows[] = {
    {"new", "\"annotations\":{\"theirs\":\"kept\",\"ours\":\"new\"}"},
    {"", "\"annotations\":{\"theirs\":\"kept\"}"},
};

START_TEST(what_is_of_others_is_written_as_it_was_read)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;
    struct lease_view lease;

    ck_assert(lease_view_decode(arena, json_parse(arena, lease_text, strlen(lease_text), NULL),
                                &lease, NULL));
    json_writer_init(&writer, text);
    lease_encode(&writer, "ns", "l", &lease, "ours", rows[_i].value);
    ck_assert_msg(strstr(text->str, OTHERS), "%s", text->str);
    ck_assert_msg(strstr(text->str, rows[_i].annotations), "%s", text->str);
    ck_assert_msg(strstr(text->str, "\"labels\":{\"k\":\"v\"}"), "%s", text->str);
    ck_assert_msg(strstr(text->str, "\"resourceVersion\":\"7\",\"uid\":\"u\""), "%s", text->str);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lease_view");
    TCase *tests = tcase_create("lease");

    tcase_add_loop_test(tests, what_is_of_others_is_written_as_it_was_read, 0, G_N_ELEMENTS(rows));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
