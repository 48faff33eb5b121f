/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: how they are read, how they end, and what comes then. */
#include "kube/reflector.h"

#include "base/metrics.h"
#include "kube/clock.h"
#include "scripted_reflector.h"
#include "suite.h"

START_TEST(applies_events_however_they_are_cut)
{
    const uint64_t before = metrics_counted(COUNTER_EVENTS, FEED_PODS);

    script_empty_list();
    script(&(struct fake_reply){
        .match = "watch=1",
        .end = FAKE_HANG,
        .chunks = {EVENT("ADDED", POD("u1", "11", "")) "\n",
                   EVENT("MODIFIED", POD("u1", "12", "n1")) EVENT("ADDED", POD("u2", "13", "n2")),
                   "\n{\"type\":\"DELE", "TED\",\"object\":{\"metadata\":{\"uid\":\"u1\",\"name\":",
                   "\"p\",\"resourceVersion\":\"14\"}}", "}", BOOKMARK("15") "\n"}});
    start(FEED_PODS);
    expect_trace("( ) u1@ u1@n1 u2@n2 -u1 ");
    ck_assert_uint_eq(metrics_counted(COUNTER_EVENTS, FEED_PODS), before + 4);
}
END_TEST

START_TEST(goes_on_where_the_watch_ended)
{
    const uint64_t lists = metrics_counted(COUNTER_LISTS, FEED_PODS);
    const uint64_t restarts = metrics_counted(COUNTER_WATCH_RESTARTS, FEED_PODS);

    script_empty_list();
    /* A clean end after an event, one after a bookmark, one in the middle of an event. */
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .chunks = {EVENT("ADDED", POD("u1", "11", ""))}});
    script(&(struct fake_reply){.match = "resourceVersion=11&", .chunks = {BOOKMARK("15")}});
    script(&(struct fake_reply){
        .match = "resourceVersion=15&",
        .end = FAKE_CUT,
        .chunks = {EVENT("MODIFIED", POD("u1", "16", "n1")), "{\"type\":\"DELETED\",\"obj"}});
    script(&(struct fake_reply){.match = "resourceVersion=16&",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("DELETED", POD("u1", "17", "n1"))}});
    start(FEED_PODS);
    expect_trace("( ) u1@ u1@n1 -u1 ");
    ck_assert_uint_eq(metrics_counted(COUNTER_LISTS, FEED_PODS), lists + 1);
    ck_assert_uint_eq(metrics_counted(COUNTER_WATCH_RESTARTS, FEED_PODS), restarts + 3);
}
END_TEST

struct expiry {
    int status;
    const char *body;
};

static const struct expiry expiries[] = {
    {200, EVENT("ADDED", POD("u1", "11", "")) ERROR_EVENT("410")},
    {410, "{\"kind\":\"Status\",\"code\":410,\"message\":\"too old resource version\"}"},
    {400, "{\"kind\":\"Status\",\"code\":400,\"message\":\"Invalid resource version\"}"},
};

START_TEST(lists_again_when_the_version_has_expired)
{
    const bool with_event = expiries[_i].status == 200;

    script_empty_list();
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .status = expiries[_i].status,
                                .chunks = {expiries[_i].body}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("30", POD("u2", "29", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace(with_event ? "( ) u1@ ( u2@ ) " : "( ) ( u2@ ) ");
    expect_request(3, "resourceVersion=30&");
}
END_TEST

struct hiccup {
    int status;
    enum fake_end end;
    const char *headers;
    const char *body;
    int64_t at_least_ms;
};

static const struct hiccup hiccups[] = {
    {500, FAKE_KEEP, NULL, "{\"kind\":\"Status\",\"code\":500}", 20},
    {503, FAKE_KEEP, NULL, "oops", 20},
    {429, FAKE_KEEP, "Retry-After: 1\r\n", "{}", 1000},
    {429, FAKE_KEEP, NULL, "{\"message\":\"busy\",\"details\":{\"retryAfterSeconds\":1}}", 1000},
    {401, FAKE_KEEP, NULL, "{}", 20},
    {200, FAKE_NO_REPLY, NULL, NULL, 0}, /* libcurl itself repeats a GET on a kept connection */
    {200, FAKE_KEEP, NULL, ERROR_EVENT("500"), 20},
    {200, FAKE_KEEP, NULL, "<html>", 20},
};

START_TEST(tries_the_watch_again_after_a_hiccup)
{
    const struct hiccup *row = &hiccups[_i];
    const int64_t began_ms = clock_ms();

    script_empty_list();
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .status = row->status,
                                .headers = row->headers,
                                .end = row->end,
                                .chunks = {row->body}});
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("ADDED", POD("u1", "11", ""))}});
    start(FEED_PODS);
    expect_trace("( ) u1@ ");
    ck_assert_int_ge(clock_ms() - began_ms, row->at_least_ms);
}
END_TEST

/* What the API server cannot decode it cannot decode each time. */
START_TEST(two_errors_at_one_version_lead_to_a_list)
{
    script_empty_list();
    script(
        &(struct fake_reply){.match = "resourceVersion=10&",
                             .chunks = {EVENT("ADDED", POD("u1", "11", "")), ERROR_EVENT("500")}});
    script(&(struct fake_reply){.match = "resourceVersion=11&", .chunks = {ERROR_EVENT("500")}});
    script_empty_list();
    script_quiet_watch();
    start(FEED_PODS);
    expect_request(1, "resourceVersion=10&");
    expect_request(2, "resourceVersion=11&");
    expect_request(3, "limit=");
}
END_TEST

START_TEST(says_that_no_watch_lives)
{
    const struct reflector_options options = {.backoff_ms = 1,
                                              .backoff_max_ms = 1,
                                              .short_watch_ms = 10000,
                                              .unwatched_ms = 1,
                                              .page = 2};

    script_empty_list();
    script(&(struct fake_reply){
        .match = "watch=1", .times = 2, .delay_ms = 20, .chunks = {ERROR_EVENT("500")}});
    script_empty_list();
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG, .chunks = {BOOKMARK("12")}});
    start_with(FEED_PODS, &options);
    expect_trace("( ) unwatched unwatched ( ) watched ");
}
END_TEST

START_TEST(a_watch_without_a_word_lives)
{
    struct reflector_options options = quick;

    options.unwatched_ms = 1;
    options.short_watch_ms = 1000;
    script_empty_list();
    script(
        &(struct fake_reply){.match = "watch=1", .delay_ms = 20, .chunks = {ERROR_EVENT("500")}});
    script_quiet_watch();
    start_with(FEED_PODS, &options);
    expect_trace("( ) unwatched watched ");
}
END_TEST

START_TEST(outlives_a_server_that_is_away)
{
    const uint64_t lists = metrics_counted(COUNTER_LISTS, FEED_PODS);

    script_empty_list();
    /* Cut a while after the port has been closed. */
    script(&(struct fake_reply){.match = "watch=1", .delay_ms = 100, .end = FAKE_NO_REPLY});
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("ADDED", POD("u1", "11", ""))}});
    start(FEED_PODS);
    expect_requests(2);
    fake_server_refuse(server, true);
    g_usleep(300 * 1000);
    fake_server_refuse(server, false);
    expect_trace("( ) u1@ ");
    ck_assert_uint_eq(metrics_counted(COUNTER_LISTS, FEED_PODS), lists + 1);
}
END_TEST

START_TEST(does_not_hammer_a_server_that_ends_watches_at_once)
{
    const struct reflector_options options = {
        .backoff_ms = 50, .backoff_max_ms = 1000, .short_watch_ms = 10000, .page = 2};

    script_empty_list();
    script(&(struct fake_reply){.match = "watch=1", .times = FAKE_ALWAYS});
    const int64_t began_ms = clock_ms();
    start_with(FEED_PODS, &options);
    expect_requests(1 + 4);
    /* Pauses of at least 50, 100 and 200 ms. */
    ck_assert_int_ge(clock_ms() - began_ms, 50 + 100 + 200);
}
END_TEST

START_TEST(takes_silence_for_death)
{
    struct reflector_options options = quick;

    options.idle_ms = 100;
    script_empty_list();
    script(&(struct fake_reply){.match = "resourceVersion=10&",
                                .end = FAKE_HANG,
                                .times = FAKE_ALWAYS,
                                .chunks = {BOOKMARK("12")}});
    script(&(struct fake_reply){
        .match = "resourceVersion=12&", .end = FAKE_HANG, .times = FAKE_ALWAYS});
    start_with(FEED_PODS, &options);
    /* A machine that is busy may keep the bookmark back for longer than that as well. */
    for (unsigned index = 1;; index++) {
        g_autofree char *line = request_line(index);
        if (strstr(line, "watch=1&resourceVersion=12&"))
            break;
        ck_assert_msg(strstr(line, "watch=1&resourceVersion=10&"), "%s", line);
    }
}
END_TEST

/* It has come back from a backup, and has not reached the version yet. */
START_TEST(lists_again_when_a_watch_says_nothing_at_all)
{
    struct reflector_options options = quick;

    options.idle_ms = 100;
    script_empty_list();
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG, .chunks = {" "}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    script_empty_list();
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG, .times = FAKE_ALWAYS});
    start_with(FEED_PODS, &options);
    expect_request(3, "limit=");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reflector_watch");
    TCase *tcase = tcase_create("feeds");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, applies_events_however_they_are_cut);
    tcase_add_test(tcase, goes_on_where_the_watch_ended);
    tcase_add_loop_test(tcase, lists_again_when_the_version_has_expired, 0, G_N_ELEMENTS(expiries));
    tcase_add_loop_test(tcase, tries_the_watch_again_after_a_hiccup, 0, G_N_ELEMENTS(hiccups));
    tcase_add_test(tcase, outlives_a_server_that_is_away);
    tcase_add_test(tcase, two_errors_at_one_version_lead_to_a_list);
    tcase_add_test(tcase, says_that_no_watch_lives);
    tcase_add_test(tcase, a_watch_without_a_word_lives);
    tcase_add_test(tcase, does_not_hammer_a_server_that_ends_watches_at_once);
    tcase_add_test(tcase, takes_silence_for_death);
    tcase_add_test(tcase, lists_again_when_a_watch_says_nothing_at_all);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
