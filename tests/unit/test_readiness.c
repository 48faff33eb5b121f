/* SPDX-License-Identifier: Apache-2.0 */
/* Who is ready, and who lets go of its callers. */
#include "http/bearer.h"
#include "base/longest.h"
#include "listening_extender.h"
#include "suite.h"

static void assert_not_ready(const char *line)
{
    g_auto(http_reply) probe = {0};
    g_auto(http_reply) alive = {0};

    call(OPERATIONS, "GET", "/readyz", NULL, NULL, &probe);
    g_autofree char *expected = g_strdup_printf("%s\nreadyz check failed\n", line);
    ck_assert_int_eq(probe.status, 503);
    ck_assert_str_eq(probe.body->str, expected);
    call(OPERATIONS, "GET", "/healthz", NULL, NULL, &alive);
    ck_assert_int_eq(alive.status, 200);
}

START_TEST(readiness_names_feeds_not_read)
{
    assert_not_ready("[-]synced failed: gpuledger has not read the cluster's nodes, pods, configmaps yet; try again");
    store_list_begin(extender.store, FEED_NODES);
    store_list_end(extender.store, FEED_NODES);
    store_set_trouble(extender.store, FEED_PODS, "we may not");
    assert_not_ready("[-]synced failed: gpuledger has not read the cluster's pods (we may not), configmaps yet; try again");
}
END_TEST

/* They repeat what the API server and credential commands have said. */
START_TEST(reasons_are_for_those_who_may_look)
{
    static const char token[] = "Authorization: Bearer secret\r\n";
    g_autofree char *folder = g_dir_make_tmp("gpuledger-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "token", NULL);
    g_auto(http_reply) bare = {0};
    g_auto(http_reply) shown = {0};
    g_auto(http_reply) troubled = {0};
    g_auto(http_reply) closed = {0};
    g_auto(http_reply) withheld = {0};

    ck_assert(g_file_set_contents(path, "secret", -1, NULL));
    routes[OPERATIONS].bearer = bearer_new(path, NULL);
    store_set_trouble(extender.store, FEED_PODS, "password hunter2 is wrong");
    assert_not_ready("[-]synced failed: reason withheld");
    call(OPERATIONS, "GET", "/readyz?verbose", token, NULL, &shown);
    ck_assert_ptr_nonnull(strstr(shown.body->str, "hunter2"));
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &bare);
    ck_assert_str_eq(bare.body->str, "[-]synced failed: reason withheld\n[+]serving ok\n"
                                     "[+]elected ok\n[+]labelled ok\nreadyz check failed\n");
    /* Ready in spite of a trouble: it is not told either. */
    feed_store();
    store_set_trouble(extender.store, FEED_PODS, "password hunter2 is wrong");
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &troubled);
    ck_assert_int_eq(troubled.status, 200);
    ck_assert_ptr_null(strstr(troubled.body->str, "hunter2"));
    /* So with claims: pods are bound all the same. */
    store_set_claims_trouble(extender.store, "its sum is another");
    call(OPERATIONS, "GET", "/readyz?verbose", token, NULL, &closed);
    ck_assert_int_eq(closed.status, 200);
    ck_assert_ptr_nonnull(strstr(closed.body->str, "[-]claims on lent quota cannot be read; nobody "
                                                   "ends: its sum is another\n"));
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &withheld);
    ck_assert_ptr_nonnull(strstr(withheld.body->str, "nobody ends: reason withheld\n"));
    g_clear_pointer(&routes[OPERATIONS].bearer, bearer_free);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(readiness_ends_with_leaving)
{
    g_auto(http_reply) verbose = {0};

    g_atomic_int_set(&extender.leaving, 1);
    assert_not_ready("[-]serving failed: shutting down");
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &verbose);
    ck_assert_int_eq(verbose.status, 503);
    ck_assert_str_eq(verbose.body->str, "[+]synced ok\n[-]serving failed: shutting down\n"
                                        "[+]elected ok\n[+]labelled ok\nreadyz check failed\n");
}
END_TEST

START_TEST(who_stands_by_is_not_ready)
{
    g_atomic_int_set(&elected, 0);
    assert_not_ready("[-]elected failed: another replica leads");
    g_atomic_int_set(&elected, 1);
    g_atomic_int_set(&labelled, 0);
    assert_not_ready("[-]labelled failed: still labelled");
    g_atomic_int_set(&labelled, 1);
}
END_TEST

/* A Service would lead the same connection to the same replica for ever. */
START_TEST(who_stands_by_lets_go_of_the_caller)
{
    static const char *const paths[] = {"/gpushare-scheduler/filter", "/gpushare-scheduler/bind"};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_auto(http_reply) serving = {0};
        g_auto(http_reply) entry_by = {0};

        call(SCHEDULER, "POST", paths[i], NULL, "{}", &serving);
        g_autofree char *kept = http_header(&serving, "Connection");
        ck_assert_ptr_null(kept);
        g_atomic_int_set(&elected, 0);
        call(SCHEDULER, "POST", paths[i], NULL, "{}", &entry_by);
        g_atomic_int_set(&elected, 1);
        g_autofree char *closed = http_header(&entry_by, "Connection");
        ck_assert_int_eq(entry_by.status, 200);
        ck_assert_pstr_eq(closed, "close");
        close(connections[SCHEDULER]);
        connections[SCHEDULER] = http_connect(server_port(servers[SCHEDULER]));
    }
}
END_TEST

START_TEST(a_check_can_be_left_out)
{
    g_auto(http_reply) probe = {0};
    g_auto(http_reply) other = {0};
    g_auto(http_reply) unknown = {0};

    g_atomic_int_set(&elected, 0);
    call(OPERATIONS, "GET", "/readyz?exclude=elected&verbose", NULL, NULL, &probe);
    call(OPERATIONS, "GET", "/readyz?exclude=labelled", NULL, NULL, &other);
    g_atomic_int_set(&elected, 1);
    ck_assert_int_eq(probe.status, 200);
    ck_assert_str_eq(probe.body->str, "[+]synced ok\n[+]serving ok\n[+]elected excluded: ok\n"
                                      "[+]labelled ok\nreadyz check passed\n");
    ck_assert_int_eq(other.status, 503);
    call(OPERATIONS, "GET", "/readyz?exclude=elect", NULL, NULL, &unknown);
    ck_assert_int_eq(unknown.status, 400);
    ck_assert_ptr_nonnull(strstr(unknown.body->str, "no check 'elect'"));
}
END_TEST

/* No other replica would answer instead. */
START_TEST(a_long_call_is_told_and_leaves_it_ready)
{
    g_auto(http_reply) verbose = {0};
    g_auto(http_reply) plain = {0};

    longest_note(VERB_FILTER, G_GINT64_CONSTANT(600000000), g_get_monotonic_time());
    call(OPERATIONS, "GET", "/readyz", NULL, NULL, &plain);
    ck_assert_int_eq(plain.status, 200);
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &verbose);
    ck_assert_int_eq(verbose.status, 200);
    ck_assert_ptr_nonnull(
        strstr(verbose.body->str, "[+]longest call of the last minute: filter, 600000 ms\n"));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("readiness");
    TCase *tc = tcase_create("readiness");
    TCase *empty = tcase_create("empty");

    tcase_set_timeout(tc, 60);
    tcase_set_timeout(empty, 60);
    tcase_add_checked_fixture(tc, longest_clear, NULL);
    tcase_add_checked_fixture(tc, world_begin, world_end);
    tcase_add_test(tc, readiness_ends_with_leaving);
    tcase_add_test(tc, who_stands_by_is_not_ready);
    tcase_add_test(tc, who_stands_by_lets_go_of_the_caller);
    tcase_add_test(tc, a_check_can_be_left_out);
    tcase_add_test(tc, a_long_call_is_told_and_leaves_it_ready);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(empty, longest_clear, NULL);
    tcase_add_checked_fixture(empty, world_begin_empty, world_end);
    tcase_add_test(empty, readiness_names_feeds_not_read);
    tcase_add_test(empty, reasons_are_for_those_who_may_look);
    suite_add_tcase(s, empty);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
