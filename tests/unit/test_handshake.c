/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node whose HAMi plugin has stopped reporting takes no new pods of HAMi: what hami.io/node-handshake
 * says, version by version, and what filter, bind and preempt make of it.
 */
#include "literals.h"
#include "suite.h"

#include "core/ledger.h"
#include "inspect/views.h"
#include "simulate/memory_cluster.h"
#include "verbs/extender.h"

#include <string.h>

#define GPU "nvidia.com/gpu"
#define HANDSHAKE "hami.io/node-handshake"
#define S INT64_C(1000000000)
#define NINE "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true,0,hami-core:"
#define SEVEN "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:"
#define JSON                                                                                       \
    "[{\"id\":\"GPU-a\",\"count\":10,\"devmem\":16384,\"devcore\":100,\"type\":\"NVIDIA-Tesla "    \
    "T4\","                                                                                        \
    "\"mode\":\"hami-core\",\"health\":true}]"

/* 2026-11-25 12:00:00 UTC, which every decision is made at, and what passes. */
#define NOON (INT64_C(1795608000) * S)

static struct extender extender;
static struct moment moment;

/* --- what the annotation says ------------------------------------------------------------------- */

static const struct {
    const char *registered, *text;
    bool reads; /* it says something */
    int64_t ns; /* which is this */
    bool warns;
} texts[] = {
    {NINE, "Reported 2026-11-25 12:00:00.123456789 +0000 UTC m=+0.000012", true, NOON},
    {NINE, "Reported 2026-11-25 20:00:00.5 +0800 CST m=+3600.5", true, NOON},
    {NINE, "Reported 2026-11-25 07:00:00 -0500 EST", true, NOON},
    {SEVEN, "Reported 2026-11-25 12:00:00 +0000 UTC", true, NOON},
    /* The zone of a scheduler is not said: it may have been half a day later. */
    {NINE, "Requesting_2026-11-25 00:00:00", true, NOON},
    {SEVEN, "Requesting_2026.11.25 00:00:00", true, NOON},
    {NINE, "Deleted_2026-11-25 12:00:00", true, HEARTBEAT_NONE_NS},
    {NINE, "Deleted_2026.11.25 12:00:00", true, HEARTBEAT_NONE_NS},
    /* Since v2.8 no plugin writes or reads it, and schedulers since v2.9 stamp every node. */
    {JSON, "Requesting_2020-01-01 00:00:00"},
    {JSON, "Deleted_2020-01-01 00:00:00"},
    {JSON, "Reported 2020-01-01 00:00:00 +0000 UTC m=+1"},
    {NULL, "Requesting_2020-01-01 00:00:00"},
    {NINE, NULL},
    {NINE, ""},
    {NINE, "Reported", .warns = true},
    {NINE, "Reported ", .warns = true},
    {NINE, "Reported 2026-11-25", .warns = true},
    {NINE, "Reported 2026-11-25 12:00:00", .warns = true},
    {NINE, "Reported 2026-13-25 12:00:00 +0000 UTC", .warns = true},
    {NINE, "Requesting_", .warns = true},
    {NINE, "Requesting_2026-11-25", .warns = true},
    {NINE, "Requesting_yesterday at noon", .warns = true},
    {NINE, "Reported 0001-01-01 00:00:00 +0000 UTC", .warns = true},
    {NINE, "reported 2026-11-25 12:00:00 +0000 UTC", .warns = true},
    {NINE, "Requesting 2026-11-25 12:00:00", .warns = true},
};

START_TEST(what_the_annotation_says)
{
    struct string_pair said[2];
    size_t n = 0;
    g_autofree char *warning = NULL;
    struct heartbeat heartbeat;

    if (texts[_i].registered)
        said[n++] = (struct string_pair){"hami.io/node-nvidia-register", texts[_i].registered};
    if (texts[_i].text)
        said[n++] = (struct string_pair){HANDSHAKE, texts[_i].text};
    dialect_read_heartbeat(&(struct node_view){.name = "n1", .annotations = {said, n}}, &heartbeat,
                           &warning);
    ck_assert_ptr_eq(heartbeat.dialect, texts[_i].reads ? dialect_find("hami") : NULL);
    if (texts[_i].reads)
        ck_assert_int_eq(heartbeat.said_ns, texts[_i].ns);
    ck_assert_int_eq(warning != NULL, texts[_i].warns);
}
END_TEST

/* --- what comes of it --------------------------------------------------------------------------- */

/* "n1" says so. */
static void say(const char *registered, const char *handshake)
{
    const struct string_pair said[] = {{"hami.io/node-nvidia-register", registered},
                                       {HANDSHAKE, handshake}};

    store_apply_node(extender.store, &(struct node_view){
                                         .name = "n1",
                                         .annotations = {said, handshake ? 2 : 1},
                                         .capacity = PAIRS({GPU, "10"}),
                                         .allocatable = PAIRS({GPU, "10"}),
                                     });
}

/* The plugin reports, so many seconds from noon. */
static void report(int64_t at_s)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(NOON / S + at_s);
    g_autofree char *clock = g_date_time_format(time, "%Y-%m-%d %H:%M:%S");
    g_autofree char *text = g_strdup_printf("Reported %s.000000001 +0000 UTC m=+7.5", clock);

    say(NINE, text);
}

static void pass(int64_t to_s)
{
    moment = (struct moment){.now_ns = NOON + to_s * S, .now_ms = 1000000 + to_s * 1000};
}

static void setup(void)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000}),
        .bind_timeout_ms = 60000,
    };
    extender.cluster = memory_cluster_new(extender.store);
    pass(0);
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    report(0);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    memory_cluster_free(extender.cluster);
    store_free(extender.store);
}

static char *format_pod(const char *name)
{
    return g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
                           "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
                           "{\"" GPU "\":\"1\",\"nvidia.com/gpumem\":\"1000\"}}}]}}",
                           name, name);
}

static bool filter_takes(void)
{
    g_autofree char *pod = format_pod("p");
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", pod);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    const bool takes = strstr(reply->str, "\"NodeNames\":[\"n1\"]");
    if (!takes)
        ck_assert_msg(strstr(reply->str, reason_info(REASON_PLUGIN_SILENT)->text), "%s",
                      reply->str);
    g_string_free(reply, TRUE);
    return takes;
}

START_TEST(a_plugin_that_reports_is_given_pods)
{
    for (int64_t at = 0; at < 3600; at += 30) {
        report(at);
        pass(at + 29);
        ck_assert(filter_takes());
    }
}
END_TEST

START_TEST(a_silent_plugin_is_given_none_until_it_reports)
{
    pass(300);
    ck_assert(filter_takes());
    pass(302);
    ck_assert(!filter_takes());
    const uint64_t freed = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    report(310);
    pass(311);
    ck_assert(filter_takes());
    ck_assert_uint_gt(ledger_freed(store_lock(extender.store)),
                      freed); /* who was refused looks again */
    store_unlock(extender.store);
}
END_TEST

static bool metrics_call_it_silent(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    view_metrics(extender.store, 0, text);
    return strstr(text->str, "gpuledger_node_silent{node=\"n1\"} 1\n");
}

START_TEST(metrics_tell_of_a_silent_plugin)
{
    pass(300);
    ck_assert(!metrics_call_it_silent());
    pass(302);
    ck_assert(metrics_call_it_silent());
    report(310);
    pass(311);
    ck_assert(!metrics_call_it_silent());
    say(NINE, "Deleted_2026.01.02 15:04:05");
    ck_assert(metrics_call_it_silent());
}
END_TEST

START_TEST(bind_refuses_what_filter_would)
{
    static const char body[] =
        "{\"PodName\":\"p\",\"PodNamespace\":\"ml\",\"PodUID\":\"p\",\"Node\":\"n1\"}";
    GString *reply = g_string_new(NULL);

    ck_assert(memory_cluster_add(extender.cluster, format_pod("p"), NULL));
    pass(400);
    extender_bind(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, reason_info(REASON_PLUGIN_SILENT)->text), "%s", reply->str);
    g_string_truncate(reply, 0);
    report(400);
    extender.bind_timeout_ms = INT32_MAX; /* `moment` may be later than this machine's clock */
    extender_bind(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, "\"Error\":\"\""), "%s", reply->str);
    g_string_free(reply, TRUE);
}
END_TEST

START_TEST(the_future_is_when_it_was_first_seen)
{
    report(86400 * 365);
    pass(299);
    ck_assert(filter_takes());
    report(86400 * 365); /* the same once more, of a node that changed otherwise */
    pass(302);
    ck_assert(!filter_takes());
}
END_TEST

START_TEST(a_scheduler_that_gave_the_plugin_up_is_believed)
{
    say(NINE, "Deleted_2026-11-25 11:59:59");
    ck_assert(!filter_takes());
    report(1);
    ck_assert(filter_takes());
}
END_TEST

START_TEST(a_question_that_nobody_answers)
{
    say(NINE, "Requesting_2026-11-25 12:00:00"); /* in whichever zone: seen at noon */
    pass(299);
    ck_assert(filter_takes());
    pass(302);
    ck_assert(!filter_takes());
    report(303);
    ck_assert(filter_takes());
    /* Whoever starts later sees that it is old wherever it was written. */
    pass(43200 + 299);
    say(NINE, "Requesting_2026-11-25 12:00:01");
    ck_assert(filter_takes());
    pass(43200 + 400);
    say(NINE, "Requesting_2026-11-25 12:00:00");
    ck_assert(!filter_takes());
}
END_TEST

START_TEST(newer_plugins_have_no_handshake)
{
    say(JSON, "Deleted_2026-11-25 11:00:00");
    pass(86400);
    ck_assert(filter_takes());
    say(NINE, NULL);
    ck_assert(filter_takes());
    say(NINE, "what is this?");
    ck_assert(filter_takes());
}
END_TEST

START_TEST(in_a_saved_cluster_nobody_reports)
{
    const struct string_pair said[] = {{"hami.io/node-nvidia-register", NINE},
                                       {HANDSHAKE, "Deleted_2026-11-25 11:00:00"}};
    struct store *saved = store_new(&(struct store_options){.saved = true});

    store_apply_node(saved, &(struct node_view){.name = "n1", .annotations = {said, 2}});
    const struct node *node = ledger_node(store_lock(saved), "n1");
    ck_assert(node && node->dialect && !node_is_silent(node, node->dialect, INT64_MAX));
    store_unlock(saved);
    store_free(saved);
}
END_TEST

START_TEST(an_upgrade_ends_silence)
{
    pass(302);
    ck_assert(!filter_takes());
    say(JSON, "Reported 2026-11-25 12:00:00 +0000 UTC m=+7.5");
    ck_assert(filter_takes());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handshake");
    TCase *tests = tcase_create("handshake");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_the_annotation_says, 0, G_N_ELEMENTS(texts));
    tcase_add_test(tests, a_plugin_that_reports_is_given_pods);
    tcase_add_test(tests, a_silent_plugin_is_given_none_until_it_reports);
    tcase_add_test(tests, metrics_tell_of_a_silent_plugin);
    tcase_add_test(tests, bind_refuses_what_filter_would);
    tcase_add_test(tests, the_future_is_when_it_was_first_seen);
    tcase_add_test(tests, a_scheduler_that_gave_the_plugin_up_is_believed);
    tcase_add_test(tests, a_question_that_nobody_answers);
    tcase_add_test(tests, newer_plugins_have_no_handshake);
    tcase_add_test(tests, in_a_saved_cluster_nobody_reports);
    tcase_add_test(tests, an_upgrade_ends_silence);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
