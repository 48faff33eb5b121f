/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, and how a reflector ends. */
#include "kube/reflector.h"

#include "base/metrics.h"
#include "kube/api_list.h"
#include "kube/clock.h"
#include "scripted_reflector.h"
#include "suite.h"

START_TEST(lists_in_pages_then_watches)
{
    const uint64_t before = metrics_counted(COUNTER_LISTS, FEED_PODS);

    script(&(struct fake_reply){
        .match = "limit=2 ",
        .chunks = {PAGE_OF("10", "a/b+c=", POD("u1", "1", "n1") "," POD("u2", "2", ""))}});
    script(
        &(struct fake_reply){.match = "continue=", .chunks = {LIST_OF("11", POD("u3", "3", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@n1 u2@ u3@ ) ");

    expect_request(0, "GET /api/v1/pods?limit=2 ");
    expect_request(1, "limit=2&continue=a%2Fb%2Bc%3D ");
    expect_no_part(0, "resourceVersion");
    expect_no_part(1, "resourceVersion");
    /* All pages are of the moment that the first names. */
    expect_request(2, "watch=1&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=");
    expect_no_part(2, "fieldSelector"); /* pods that have ended count, too */
    ck_assert_uint_eq(metrics_counted(COUNTER_LISTS, FEED_PODS), before + 1);

    g_autofree char *list = fake_server_request(server, 0);
    g_autofree char *watch = fake_server_request(server, 2);
    ck_assert(strstr(list, "\r\nAccept-Encoding: gzip\r\n"));
    ck_assert(!strstr(watch, "Accept-Encoding"));
    const char *timeout = strstr(watch, "timeoutSeconds=") + strlen("timeoutSeconds=");
    ck_assert_int_ge(g_ascii_strtoll(timeout, NULL, 10), 300);
    ck_assert_int_le(g_ascii_strtoll(timeout, NULL, 10), 600);
    /* Connections are kept: one for the list's pages, and the one that a page came over ahead. */
    ck_assert_uint_le(fake_server_connections(server), 2);
}
END_TEST

START_TEST(asks_for_the_next_page_while_one_arrives)
{
    /* The first page never ends; the others come all the same, over one more connection. */
    script(&(struct fake_reply){
        .match = "limit=2 ",
        .end = FAKE_HANG,
        .chunks = {"{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"b\"},\"items\":[",
                   POD("u1", "1", "n1") ","}});
    script(&(struct fake_reply){.match = "continue=b",
                                .chunks = {PAGE_OF("10", "c", POD("u2", "2", "n1"))}});
    script(&(struct fake_reply){.match = "continue=c",
                                .chunks = {PAGE_OF("10", "d", POD("u3", "3", "n1"))}});
    script(&(struct fake_reply){.match = "continue=d", .chunks = {LIST_OF("10", "")}});
    start(FEED_PODS);
    expect_trace("( u1@n1 u2@n1 u3@n1 ");
    expect_request(3, "continue=d");
    ck_assert_uint_eq(fake_server_connections(server), 2);
}
END_TEST

START_TEST(a_page_that_fails_ends_the_list)
{
    script(&(struct fake_reply){
        .match = "limit=2 ",
        .end = FAKE_HANG,
        .chunks = {"{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"b\"},\"items\":[",
                   POD("u1", "1", "n1")}});
    script(&(struct fake_reply){
        .match = "continue=b",
        .status = 410,
        .chunks = {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"}});
    script(&(struct fake_reply){.match = "GET /api/v1/pods ",
                                .chunks = {LIST_OF("20", POD("u1", "1", "n1"))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@n1 ( u1@n1 ) ");
    expect_request(3, "watch=1&resourceVersion=20&");
}
END_TEST

START_TEST(takes_a_list_that_says_at_its_end_how_it_goes_on)
{
    script(&(struct fake_reply){
        .match = "limit=2 ",
        .chunks = {"{\"items\":[" POD("u1", "1", "n1") "],",
                   "\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"b\"}}"}});
    script(&(struct fake_reply){.match = "continue=b", .chunks = {LIST_OF("11", "")}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@n1 ) ");
    expect_request(2, "watch=1&resourceVersion=10&");
}
END_TEST

START_TEST(objects_reach_the_store_before_the_page_ends)
{
    script(&(struct fake_reply){
        .match = "limit=",
        .end = FAKE_HANG,
        .chunks = {"{\"items\":[" POD("u1", "1", "n1") ",{\"metadata\":{\"na"}});
    start(FEED_PODS);
    expect_trace("( u1@n1 ");
}
END_TEST

START_TEST(a_list_that_expires_between_pages_is_read_at_once)
{
    script(&(struct fake_reply){.match = "limit=2 ",
                                .chunks = {PAGE_OF("10", "x", POD("u1", "1", ""))}});
    script(&(struct fake_reply){
        .match = "continue=x",
        .status = 410,
        .chunks = {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"metadata\":"
                   "{\"continue\":\"y\"},\"message\":\"The provided continue parameter is too "
                   "old\"}"}});
    script(&(struct fake_reply){.match = "GET /api/v1/pods ",
                                .chunks = {LIST_OF("20", POD("u2", "2", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@ ( u2@ ) ");
    expect_no_part(2, "limit");
    expect_no_part(2, "continue");
    expect_request(3, "resourceVersion=20&");
}
END_TEST

/* It would be followed for ever, and as fast as it comes. */
START_TEST(a_list_that_goes_on_with_itself_is_begun_again)
{
    script(&(struct fake_reply){.match = "limit=2 ",
                                .chunks = {PAGE_OF("10", "x", POD("u1", "1", ""))}});
    script(&(struct fake_reply){.match = "continue=x",
                                .chunks = {PAGE_OF("10", "x", POD("u1", "1", ""))}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("20", POD("u2", "2", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@ u1@ ( u2@ ) ");
    expect_request(3, "resourceVersion=20&");
}
END_TEST

/* Each page names another token, and no two that follow each other are the same. */
START_TEST(a_list_without_an_end_is_given_up)
{
    script(&(struct fake_reply){.match = "limit=2 ", .chunks = {PAGE_OF("10", "a", "")}});
    script(&(struct fake_reply){
        .match = "continue=a", .times = FAKE_ALWAYS, .chunks = {PAGE_OF("10", "b", "")}});
    script(&(struct fake_reply){
        .match = "continue=b", .times = FAKE_ALWAYS, .chunks = {PAGE_OF("10", "a", "")}});
    script(
        &(struct fake_reply){.match = "limit=2 ", .chunks = {LIST_OF("20", POD("u2", "2", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    ck_assert(fake_server_wait(server, API_LIST_PAGES_MAX, 60000));
    expect_trace("( ( u2@ ) ");
    expect_request(API_LIST_PAGES_MAX - 1, "continue=");
    expect_no_part(API_LIST_PAGES_MAX, "continue=");
}
END_TEST

struct bad_list {
    int status;
    enum fake_end end;
    const char *body;
};

static const struct bad_list bad_lists[] = {
    {200, FAKE_CUT, "{\"items\":["},
    {200, FAKE_KEEP, "{\"items\":["},
    {200, FAKE_KEEP, "{\"items\":[]}"},
    {200, FAKE_KEEP, "{\"metadata\":{\"resourceVersion\":7},\"items\":[]}"},
    /* Not lists: taken for empty ones they would sweep the store. */
    {200, FAKE_KEEP, "{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"1\"}}"},
    {200, FAKE_KEEP, "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"},
    {200, FAKE_KEEP, "{\"metadata\":{\"resourceVersion\":\"1\"}}"},
    {200, FAKE_KEEP, "<html>"},
    {200, FAKE_NO_REPLY, NULL},
    {403, FAKE_KEEP, "{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}"},
    {401, FAKE_KEEP, "{}"},
    {429, FAKE_KEEP, "{}"},
    {500, FAKE_KEEP, "oops"},
    {404, FAKE_KEEP, "{}"},
};

START_TEST(a_list_that_fails_is_begun_again)
{
    const struct bad_list *row = &bad_lists[_i];

    script(&(struct fake_reply){
        .match = "limit=", .status = row->status, .end = row->end, .chunks = {row->body}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("10", POD("u1", "1", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( ( u1@ ) ");
}
END_TEST

START_TEST(an_object_that_cannot_be_used_does_not_keep_the_others_out)
{
    const uint64_t before = metrics_counted(COUNTER_OBJECTS_BAD, FEED_PODS);

    script(&(struct fake_reply){
        .match = "limit=",
        .chunks = {LIST_OF("10", POD("u1", "1", "") ",{\"metadata\":{\"name\":\"x\"}},{\"a\" 1},"
                                                    "{}," POD("u2", "2", ""))}});
    script(&(struct fake_reply){
        .match = "watch=1",
        .end = FAKE_HANG,
        .chunks = {EVENT("MODIFIED", "{\"metadata\":{\"name\":\"p\",\"uid\":\"u1\"},\"spec\":7}"),
                   "{\"type\":\"ADDED\"}", "{\"type\":\"ADDED\",\"object\":{]}",
                   EVENT("DELETED", "{\"metadata\":{\"name\":\"p\",\"uid\":\"u1\"},\"spec\":7}")}});
    start(FEED_PODS);
    expect_trace("( u1@ spared spared spared u2@ ) spared -u1 ");
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_PODS), before + 6);
}
END_TEST

/* --- ends ----------------------------------------------------------------------------------- */

static const struct fake_reply endless[] = {
    {.match = "limit=", .delay_ms = 60000},
    {.match = "limit=", .end = FAKE_HANG, .chunks = {"{\"items\":[" POD("u1", "1", "")}},
    {.match = "limit=", .status = 500, .headers = "Retry-After: 60\r\n", .times = FAKE_ALWAYS},
    {.match = "watch=1", .end = FAKE_HANG},
    {.match = "watch=1", .status = 429, .headers = "Retry-After: 60\r\n"},
};

START_TEST(stops_at_once_whatever_it_waits_for)
{
    const bool watching = strcmp(endless[_i].match, "watch=1") == 0;

    if (watching)
        script_empty_list();
    script(&endless[_i]);
    start(FEED_PODS);
    expect_requests(watching ? 2 : 1);
    g_usleep(20 * 1000);

    const int64_t began_ms = clock_ms();
    g_clear_pointer(&running, reflector_free);
    ck_assert_int_lt(clock_ms() - began_ms, PATIENT_MS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reflector");
    TCase *tcase = tcase_create("feeds");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, lists_in_pages_then_watches);
    tcase_add_test(tcase, asks_for_the_next_page_while_one_arrives);
    tcase_add_test(tcase, a_page_that_fails_ends_the_list);
    tcase_add_test(tcase, takes_a_list_that_says_at_its_end_how_it_goes_on);
    tcase_add_test(tcase, objects_reach_the_store_before_the_page_ends);
    tcase_add_test(tcase, a_list_that_expires_between_pages_is_read_at_once);
    tcase_add_test(tcase, a_list_that_goes_on_with_itself_is_begun_again);
    tcase_add_test(tcase, a_list_without_an_end_is_given_up);
    tcase_add_loop_test(tcase, a_list_that_fails_is_begun_again, 0, G_N_ELEMENTS(bad_lists));
    tcase_add_test(tcase, an_object_that_cannot_be_used_does_not_keep_the_others_out);
    tcase_add_loop_test(tcase, stops_at_once_whatever_it_waits_for, 0, G_N_ELEMENTS(endless));
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
