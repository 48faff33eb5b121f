/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that is about to share its cards in another way takes those alone who have ended by then, as
 * their specs say, and filter, bind and explain give one answer.
 */
#include "literals.h"
#include "suite.h"

#include "base/log.h"
#include "core/ledger.h"
#include "simulate/memory_cluster.h"
#include "verbs/extender.h"
#include "wire/switch_mark.h"
#include "gate/gate.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define TARGET "nvidia.com/device-plugin.config=night@"
#define HOUR_S 3600

#define SLOTS "gpuledger.io/slots"

static struct extender extender;
static const char *slots; /* what the Node says of them; NULL: nothing */

/* "n1" with one card and these words of a switch; NULL: none. */
static void say(const char *mark, const char *state)
{
    struct string_pair said[3];
    size_t n = 0;

    if (slots)
        said[n++] = (struct string_pair){SLOTS, slots};
    if (mark)
        said[n++] = (struct string_pair){"gpuledger.io/switch", mark};
    if (state)
        said[n++] = (struct string_pair){"gpuledger.io/switch-state", state};
    store_apply_node(extender.store,
                     &(struct node_view){.name = "n1",
                                         .annotations = {said, n},
                                         .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})});
}

/* In so many seconds from now. */
static void announce(int64_t in_s)
{
    g_autofree char *time = switch_time_format(g_get_real_time() / G_USEC_PER_SEC + in_s);
    g_autofree char *mark = g_strconcat(TARGET, time, NULL);

    say(mark, NULL);
}

static void setup(void)
{
    slots = NULL;
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000}),
        .bind_timeout_ms = 60000,
    };
    extender.cluster = memory_cluster_new(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    say(NULL, NULL);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    memory_cluster_free(extender.cluster);
    store_free(extender.store);
}

/* `spec`: what it has beside its container, with a comma behind. */
static char *format_pod(const char *name, const char *spec)
{
    return g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\","
                           "\"annotations\":{\"gpuledger.io/max-duration\":\"1m\"}},"
                           "\"spec\":{%s\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
                           "{\"" MEM "\":\"2\"}}}]}}",
                           name, name, spec);
}

static void expect(GString *take_reply, const char *text)
{
    ck_assert_msg(strstr(take_reply->str, text), "%s: %s", text, take_reply->str);
    g_string_free(take_reply, TRUE);
}

static GString *filter(const char *pod)
{
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", pod);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    return reply;
}

static GString *bind(const char *name)
{
    g_autofree char *body =
        g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"ml\",\"PodUID\":\"%s\","
                        "\"Node\":\"n1\"}",
                        name, name);
    GString *reply = g_string_new(NULL);

    extender_bind(&extender, body, strlen(body), reply);
    return reply;
}

static void expect_refused(const char *name, const char *spec)
{
    g_autofree char *pod = format_pod(name, spec);
    const char *text = reason_info(gate_reason_find("mode_switch_ahead"))->text;

    ck_assert(memory_cluster_add(extender.cluster, format_pod(name, spec), NULL));
    expect(filter(pod), "\"FailedAndUnresolvableNodes\":{\"n1\"");
    expect(filter(pod), text);
    expect(bind(name), text);
}

static void expect_taken(const char *name, const char *spec)
{
    g_autofree char *pod = format_pod(name, spec);

    ck_assert(memory_cluster_add(extender.cluster, format_pod(name, spec), NULL));
    expect(filter(pod), "\"NodeNames\":[\"n1\"]");
    expect(bind(name), "\"Error\":\"\"");
}

START_TEST(who_may_outlast_the_switch_is_refused)
{
    announce(HOUR_S);
    expect_refused("silent", "");
    expect_refused("long", "\"activeDeadlineSeconds\":3600,");
    expect_refused("endless", "\"activeDeadlineSeconds\":2147483647,");
    /* Its time begins when kubelet has heard of it. */
    expect_refused("late", "\"activeDeadlineSeconds\":3520,");
    expect_taken("short", "\"activeDeadlineSeconds\":1800,");
}
END_TEST

/* The author of a pod chooses how long it may take to end, too. */
START_TEST(the_time_to_end_counts)
{
    announce(HOUR_S);
    expect_refused("slow", "\"activeDeadlineSeconds\":600,\"terminationGracePeriodSeconds\":3600,");
    expect_taken("quick", "\"activeDeadlineSeconds\":600,\"terminationGracePeriodSeconds\":60,");
}
END_TEST

START_TEST(when_the_time_has_come_nobody_is_taken)
{
    announce(-1);
    expect_refused("short", "\"activeDeadlineSeconds\":1,");
}
END_TEST

/* filter remembers what it has found out, but not where time counts. */
START_TEST(who_could_go_before_cannot_when_the_time_has_come)
{
    struct moment now = {.now_ns = g_get_real_time() * 1000, .now_ms = 1000};
    g_autofree char *pod = format_pod("short", "\"activeDeadlineSeconds\":1800,");

    announce(HOUR_S);
    store_set_moment(extender.store, &now);
    expect(filter(pod), "\"NodeNames\":[\"n1\"]");
    now.now_ns += INT64_C(1000000000) * HOUR_S;
    now.now_ms += INT64_C(1000) * HOUR_S;
    expect(filter(pod), reason_info(gate_reason_find("mode_switch_ahead"))->text);
    store_set_moment(extender.store, NULL);
}
END_TEST

START_TEST(what_cannot_be_read_stands_for_a_time_that_has_come)
{
    static const char *const marks[] = {"",
                                        "night",
                                        TARGET,
                                        TARGET "tomorrow",
                                        "=night@2999-01-01T00:00:00Z",
                                        "a=b@2999-13-01T00:00:00Z"};

    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        g_autofree char *name = g_strdup_printf("p%zu", i);
        say(marks[i], NULL);
        expect_refused(name, "\"activeDeadlineSeconds\":1,");
    }
}
END_TEST

START_TEST(a_switch_under_way_takes_nobody_whatever_else_is_said)
{
    say(NULL, "hold");
    expect_refused("one", "\"activeDeadlineSeconds\":1,");
    say(TARGET "2999-01-01T00:00:00Z", "hold");
    expect_refused("two", "\"activeDeadlineSeconds\":1,");
}
END_TEST

static void announce_slots(const char *is, const char *wanted, int64_t in_s)
{
    g_autofree char *time = switch_time_format(g_get_real_time() / G_USEC_PER_SEC + in_s);
    g_autofree char *mark = g_strdup_printf(SLOTS "=%s@%s", wanted, time);

    slots = is;
    say(mark, NULL);
}

/* Where a card takes more holders afterwards, nobody has to end. */
START_TEST(more_slots_ahead_refuse_nobody)
{
    announce_slots("2", "4", HOUR_S);
    expect_taken("silent", "");
    announce_slots("2", "any", -1);
    expect_taken("second", "");
    announce_slots("2", "2", HOUR_S);
    g_autofree char *third = format_pod("third", "");
    expect(filter(third), reason_info(REASON_NODE_SLOTS)->text);
}
END_TEST

/* As many come who outlast it as may be there afterwards; who does not outlast it comes as before. */
START_TEST(fewer_slots_ahead_refuse_those_that_would_be_too_many)
{
    announce_slots(NULL, "2", HOUR_S);
    expect_taken("first", "");
    expect_taken("short", "\"activeDeadlineSeconds\":600,");
    expect_refused("third", "");
    expect_taken("shorter", "\"activeDeadlineSeconds\":60,");
    announce_slots(NULL, "3", -1); /* the time has come: nobody, until the number is there */
    expect_refused("late", "\"activeDeadlineSeconds\":1,");
}
END_TEST

START_TEST(at_the_very_moment_of_fewer_slots_nobody_is_taken)
{
    g_autofree char *pod = format_pod("short", "\"activeDeadlineSeconds\":1,");
    struct moment now = {.now_ms = 1000};

    announce_slots(NULL, "2", HOUR_S);
    now.now_ns = ledger_node(store_lock(extender.store), "n1")->switches_ns;
    store_unlock(extender.store);
    store_set_moment(extender.store, &now);
    expect(filter(pod), reason_info(gate_reason_find("mode_switch_ahead"))->text);
    now.now_ns -= 1;
    expect(filter(pod), "\"NodeNames\":[\"n1\"]");
    store_set_moment(extender.store, NULL);
}
END_TEST

START_TEST(slots_ahead_that_cannot_be_read_refuse_everybody)
{
    announce_slots("4", "0", HOUR_S);
    expect_refused("one", "\"activeDeadlineSeconds\":1,");
    announce_slots("4", "many", HOUR_S);
    expect_refused("two", "\"activeDeadlineSeconds\":1,");
    slots = "x"; /* what is there now */
    say(NULL, NULL);
    g_autofree char *pod = format_pod("three", "");
    expect(filter(pod), reason_info(REASON_CARD_CLOSED)->text);
}
END_TEST

/* Those who were refused are looked at again. */
START_TEST(afterwards_the_node_is_as_before)
{
    announce(HOUR_S);
    expect_refused("silent", "");
    const uint64_t before = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    say(NULL, NULL);
    ck_assert_uint_gt(ledger_freed(store_lock(extender.store)), before);
    store_unlock(extender.store);
    expect_taken("other", "");
}
END_TEST

START_TEST(a_mark_is_read_as_it_was_written)
{
    struct switch_mark mark = {"nvidia.com/mig.config", "all-1g.5gb", 1795636800}, again;
    g_autofree char *text = switch_mark_format(&mark);

    ck_assert_str_eq(text, "nvidia.com/mig.config=all-1g.5gb@2026-11-25T20:00:00Z");
    ck_assert(switch_mark_parse(text, &again));
    ck_assert_mem_eq(mark.label, again.label, sizeof "nvidia.com/mig.config");
    ck_assert_str_eq(mark.value, again.value);
    ck_assert_int_eq(mark.at_s, again.at_s);
    ck_assert(switch_mark_parse("a=b@2026-11-25T21:00:00+01:00", &again));
    ck_assert_int_eq(mark.at_s, again.at_s);
    ck_assert(!switch_mark_parse("a=b=c@2026-11-25T21:00:00Z", &again));
    ck_assert(!switch_mark_parse("a=b@2026-11-25T21:00:00", &again));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("switch_ahead");
    TCase *tcase = tcase_create("switch_ahead");

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_may_outlast_the_switch_is_refused);
    tcase_add_test(tcase, the_time_to_end_counts);
    tcase_add_test(tcase, when_the_time_has_come_nobody_is_taken);
    tcase_add_test(tcase, who_could_go_before_cannot_when_the_time_has_come);
    tcase_add_test(tcase, what_cannot_be_read_stands_for_a_time_that_has_come);
    tcase_add_test(tcase, a_switch_under_way_takes_nobody_whatever_else_is_said);
    tcase_add_test(tcase, more_slots_ahead_refuse_nobody);
    tcase_add_test(tcase, fewer_slots_ahead_refuse_those_that_would_be_too_many);
    tcase_add_test(tcase, at_the_very_moment_of_fewer_slots_nobody_is_taken);
    tcase_add_test(tcase, slots_ahead_that_cannot_be_read_refuse_everybody);
    tcase_add_test(tcase, afterwards_the_node_is_as_before);
    tcase_add_test(tcase, a_mark_is_read_as_it_was_written);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
