/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reflectors against a scripted API server. The store is a fake that writes down what it is told.
 */
#include "kube/reflector.h"

#include "app/metrics.h"
#include "kube/clock.h"
#include "kube/feeds.h"
#include "scripted_api.h"
#include "suite.h"

#include <pthread.h>
#include <string.h>

static struct reflector *running;

static const struct reflector_options quick = {
    .backoff_ms = 20,
    .backoff_max_ms = 80,
    .idle_ms = 10000,
    .short_watch_ms = 1,
    .page = 2,
};

/* --- the store ------------------------------------------------------------------------------ */

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t trace_grown = PTHREAD_COND_INITIALIZER;
static GString *trace; /* a word for each call, with a space after it */

G_GNUC_PRINTF(1, 2)
static void note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    pthread_mutex_lock(&trace_lock);
    g_string_append_vprintf(trace, format, arguments);
    g_string_append_c(trace, ' ');
    pthread_cond_broadcast(&trace_grown);
    pthread_mutex_unlock(&trace_lock);
    va_end(arguments);
}

void store_list_begin(struct store *store, enum feed feed)
{
    note("(");
}

void store_list_end(struct store *store, enum feed feed)
{
    note(")");
}

/* Only changes; read once the trace says that they have been made. */
static GString *troubles;

void store_set_trouble(struct store *store, enum feed feed, const char *why)
{
    g_autofree char *word = g_strconcat(why ? why : "well", " ", NULL);

    pthread_mutex_lock(&trace_lock);
    if (!g_str_has_suffix(troubles->str, word))
        g_string_append(troubles, word);
    pthread_mutex_unlock(&trace_lock);
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
    note("%s@%s", pod->uid, pod->node_name ? pod->node_name : "");
}

void store_delete_pod(struct store *store, const char *uid)
{
    note("-%s", uid);
}

void store_apply_node(struct store *store, const struct node_view *node)
{
    note("%s", node->name);
}

void store_delete_node(struct store *store, const char *name)
{
    note("-%s", name);
}

void store_apply_configmap(struct store *store, const struct configmap_view *configmap)
{
    note("%s/%s=%s", configmap->ns, configmap->name,
         configmap->data.n ? configmap->data.items[0].value : "");
}

void store_delete_configmap(struct store *store, const struct configmap_view *configmap)
{
    note("-%s/%s", configmap->ns, configmap->name);
}

void store_apply_budget(struct store *store, const struct budget_view *view)
{
    note("%s/%s=%d", view->ns, view->name, (int)view->allowed);
}

void store_delete_budget(struct store *store, const char *ns, const char *name)
{
    note("-%s/%s", ns, name);
}

void store_apply_resource_quota(struct store *store, const struct resource_quota_view *view)
{
    note("%s/%s=%zu", view->ns, view->name, view->hard.n);
}

void store_delete_resource_quota(struct store *store, const char *ns, const char *name)
{
    note("-%s/%s", ns, name);
}

/* Until the trace reads exactly so. */
static void expect_trace(const char *expected)
{
    const int64_t until_us = g_get_real_time() + PATIENT_MS * 1000;
    const struct timespec until = {until_us / G_USEC_PER_SEC, until_us % G_USEC_PER_SEC * 1000};
    int failure = 0;

    pthread_mutex_lock(&trace_lock);
    while (trace->len < strlen(expected) && failure == 0)
        failure = pthread_cond_timedwait(&trace_grown, &trace_lock, &until);
    g_autofree char *seen = g_strdup(trace->str);
    pthread_mutex_unlock(&trace_lock);
    ck_assert_str_eq(seen, expected);
}

/* --- the world ------------------------------------------------------------------------------ */

static void setup(void)
{
    api_begin();
    trace = g_string_new(NULL);
    troubles = g_string_new(NULL);
}

static void teardown(void)
{
    g_clear_pointer(&running, reflector_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
    g_string_free(trace, TRUE);
    g_string_free(troubles, TRUE);
}

static void start_with(enum feed feed, const struct reflector_options *options)
{
    running = reflector_start(client, NULL, feed, options, NULL);
    ck_assert(running);
}

static void start(enum feed feed)
{
    start_with(feed, &quick);
}

/* The first line of a request, which must have come or come soon. */
static char *request_line(unsigned index)
{
    expect_requests(index + 1);
    g_autofree char *request = fake_server_request(server, index);
    return g_strndup(request, strcspn(request, "\r\n"));
}

static void expect_request(unsigned index, const char *part)
{
    g_autofree char *line = request_line(index);
    ck_assert_msg(strstr(line, part), "request %u: \"%s\" is not in \"%s\"", index, part, line);
}

static void expect_no_part(unsigned index, const char *part)
{
    g_autofree char *line = request_line(index);
    ck_assert_msg(!strstr(line, part), "request %u: \"%s\" is in \"%s\"", index, part, line);
}

#define LIST_OF(version, items)                                                                    \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items   \
    "]}"
#define PAGE_OF(version, more, items)                                                              \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
    "\"},\"items\":[" items "]}"
#define POD(uid, version, node)                                                                    \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" uid                            \
    "\",\"resourceVersion\":\"" version "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"
#define BOOKMARK(version)                                                                          \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define ERROR_EVENT(code)                                                                          \
    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"too old\"}")

/* An empty list at version 10. */
static void script_empty_list(void)
{
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("10", "")}});
}

/* A watch that stays. */
static void script_quiet_watch(void)
{
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
}

/* --- lists ---------------------------------------------------------------------------------- */

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

    expect_request(0, "GET /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2C"
                      "status.phase%21%3DFailed&limit=2 ");
    expect_request(1, "&limit=2&continue=a%2Fb%2Bc%3D ");
    expect_no_part(0, "resourceVersion");
    expect_no_part(1, "resourceVersion");
    /* All pages are of the moment that the first names. */
    expect_request(2, "watch=1&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=");
    expect_request(2, "fieldSelector=status.phase");
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
    script(&(struct fake_reply){.match = "Failed ",
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
    script(&(struct fake_reply){.match = "/pods?fieldSelector",
                                .chunks = {LIST_OF("20", POD("u2", "2", ""))}});
    script_quiet_watch();
    start(FEED_PODS);
    expect_trace("( u1@ ( u2@ ) ");
    expect_no_part(2, "limit");
    expect_no_part(2, "continue");
    expect_request(3, "resourceVersion=20&");
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
    expect_trace("( u1@ u2@ ) -u1 ");
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_PODS), before + 6);
}
END_TEST

/* --- watches -------------------------------------------------------------------------------- */

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
    start_with(FEED_PODS, &options);
    expect_requests(3);
    g_usleep(300 * 1000);
    /* Pauses of at least 50, 100, 200 and 400 ms. */
    ck_assert_uint_le(fake_server_count(server), 1 + 4);
}
END_TEST

START_TEST(takes_silence_for_death)
{
    struct reflector_options options = quick;

    options.idle_ms = 100;
    script_empty_list();
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG, .chunks = {BOOKMARK("12")}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG, .times = FAKE_ALWAYS});
    start_with(FEED_PODS, &options);
    expect_request(2, "watch=1&resourceVersion=12&");
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
    ck_assert_int_lt(clock_ms() - began_ms, 100);
}
END_TEST

/* --- the other feeds ------------------------------------------------------------------------ */

START_TEST(follows_nodes)
{
    script(&(struct fake_reply){
        .match = "GET /api/v1/nodes?limit=2 ",
        .chunks = {LIST_OF("10", "{\"metadata\":{\"name\":\"n1\",\"uid\":\"a\"}}")}});
    script(&(struct fake_reply){
        .match = "GET /api/v1/nodes?watch=1&resourceVersion=10&",
        .end = FAKE_HANG,
        .chunks = {EVENT("ADDED", "{\"metadata\":{\"name\":\"n2\",\"uid\":\"b\"}}"),
                   EVENT("DELETED", "{\"metadata\":{\"name\":\"n1\",\"uid\":\"a\"}}")}});
    start(FEED_NODES);
    expect_trace("( n1 ) n2 -n1 ");
}
END_TEST

#define CONFIGMAP(name, data)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"kube-system\",\"uid\":\"" name           \
    "\"},\"data\":" data "}"

START_TEST(follows_only_the_configmaps_of_unhealthy_cards)
{
    script(&(struct fake_reply){
        .match = "GET /api/v1/namespaces/kube-system/configmaps?limit=2 ",
        .chunks = {LIST_OF("10", CONFIGMAP("extension-apiserver-authentication",
                                           "{\"x\":1}") "," CONFIGMAP("unhealthy-gpu-n1",
                                                                      "{\"gpus\":\"0,2\"}"))}});
    script(&(struct fake_reply){.match = "GET /api/v1/namespaces/kube-system/configmaps?watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("MODIFIED", CONFIGMAP("coredns", "7")),
                                           EVENT("DELETED", CONFIGMAP("coredns", "7")),
                                           EVENT("DELETED", CONFIGMAP("unhealthy-gpu-n1", "7"))}});
    start(FEED_CONFIGMAPS);
    expect_trace("( kube-system/unhealthy-gpu-n1=0,2 ) -kube-system/unhealthy-gpu-n1 ");
}
END_TEST

START_TEST(lists_instead_of_a_watch_that_is_not_permitted)
{
    const uint64_t before = metrics_counted(COUNTER_FEED_DENIED, FEED_PODS);

    for (int i = 0; i < 2; i++) {
        script(&(struct fake_reply){.match = "limit=",
                                    .chunks = {LIST_OF("10", POD("u1", "1", ""))}});
        script(&(struct fake_reply){.match = "watch=1",
                                    .status = 403,
                                    .chunks = {"{\"kind\":\"Status\",\"message\":\"no\"}"}});
    }
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("10", POD("u1", "1", ""))}});
    script(&(struct fake_reply){.match = "watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("ADDED", POD("u2", "11", ""))}});
    start(FEED_PODS);
    expect_trace("( u1@ ) ( u1@ ) ( u1@ ) u2@ ");
    ck_assert_str_eq(troubles->str, "well no well ");
    ck_assert_uint_eq(metrics_counted(COUNTER_FEED_DENIED, FEED_PODS), before + 2);
}
END_TEST

START_TEST(does_without_configmaps_until_they_are_permitted)
{
    for (int i = 0; i < 2; i++)
        script(&(struct fake_reply){.match = "configmaps?limit=2 ",
                                    .status = 403,
                                    .chunks = {"{\"kind\":\"Status\",\"message\":\"no\"}"}});
    script(&(struct fake_reply){
        .match = "configmaps?limit=2 ",
        .chunks = {LIST_OF("10", CONFIGMAP("unhealthy-gpu-n1", "{\"gpus\":\"0\"}"))}});
    script_quiet_watch();
    start(FEED_CONFIGMAPS);
    expect_trace("( ) ( ( kube-system/unhealthy-gpu-n1=0 ) ");
    ck_assert(g_str_has_prefix(troubles->str, "no "));
}
END_TEST

#define BUDGET(name, allowed)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ml\",\"uid\":\"" name                     \
    "\"},\"spec\":{\"selector\":{}},\"status\":{\"disruptionsAllowed\":" allowed "}}"
#define NO_SUCH_PATH .status = 404, .chunks = {"404 page not found"}

START_TEST(finds_budgets_where_an_older_server_has_them)
{
    script(&(struct fake_reply){.match = "GET /apis/policy/v1/poddisruptionbudgets?limit=2 ",
                                NO_SUCH_PATH});
    script(&(struct fake_reply){.match = "GET /apis/policy/v1beta1/poddisruptionbudgets?limit=2 ",
                                .chunks = {LIST_OF("10", BUDGET("b", "1"))}});
    script(&(struct fake_reply){.match = "GET /apis/policy/v1beta1/poddisruptionbudgets?watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("MODIFIED", BUDGET("b", "0")),
                                           EVENT("DELETED", BUDGET("b", "0"))}});
    start(FEED_BUDGETS);
    expect_trace("( ( ml/b=1 ) ml/b=0 -ml/b ");
}
END_TEST

START_TEST(does_without_budgets_that_no_server_has)
{
    for (int i = 0; i < 2; i++) {
        script(&(struct fake_reply){.match = "GET /apis/policy/", NO_SUCH_PATH});
        script(&(struct fake_reply){.match = "GET /apis/policy/", NO_SUCH_PATH});
    }
    script(&(struct fake_reply){.match = "GET /apis/policy/v1/",
                                .chunks = {LIST_OF("10", BUDGET("b", "1"))}});
    script_quiet_watch();
    start(FEED_BUDGETS);
    expect_trace("( ( ) ( ( ( ml/b=1 ) ");
}
END_TEST

/* feed_namespace takes the first that it finds. */
START_TEST(one_namespace_serves_all_dialects)
{
    const char *ns;

    ck_assert(feed_namespace(FEED_CONFIGMAPS, &ns));
    for (size_t i = 0; dialects[i]; i++) {
        if (dialects[i]->health_namespace)
            ck_assert_str_eq(dialects[i]->health_namespace, ns);
    }
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
    tcase_add_loop_test(tcase, a_list_that_fails_is_begun_again, 0, G_N_ELEMENTS(bad_lists));
    tcase_add_test(tcase, an_object_that_cannot_be_used_does_not_keep_the_others_out);
    tcase_add_test(tcase, applies_events_however_they_are_cut);
    tcase_add_test(tcase, goes_on_where_the_watch_ended);
    tcase_add_loop_test(tcase, lists_again_when_the_version_has_expired, 0, G_N_ELEMENTS(expiries));
    tcase_add_loop_test(tcase, tries_the_watch_again_after_a_hiccup, 0, G_N_ELEMENTS(hiccups));
    tcase_add_test(tcase, outlives_a_server_that_is_away);
    tcase_add_test(tcase, does_not_hammer_a_server_that_ends_watches_at_once);
    tcase_add_test(tcase, takes_silence_for_death);
    tcase_add_loop_test(tcase, stops_at_once_whatever_it_waits_for, 0, G_N_ELEMENTS(endless));
    tcase_add_test(tcase, follows_nodes);
    tcase_add_test(tcase, follows_only_the_configmaps_of_unhealthy_cards);
    tcase_add_test(tcase, lists_instead_of_a_watch_that_is_not_permitted);
    tcase_add_test(tcase, finds_budgets_where_an_older_server_has_them);
    tcase_add_test(tcase, does_without_budgets_that_no_server_has);
    tcase_add_test(tcase, does_without_configmaps_until_they_are_permitted);
    tcase_add_test(tcase, one_namespace_serves_all_dialects);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
