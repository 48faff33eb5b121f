/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this pod go on this node now: filter, prioritize and bind give one answer.
 */
#include "literals.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "simulate/memory_cluster.h"
#include "suite.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define EARLIER "left to a pod that has waited for longer"
#define HOUR_MS (3600 * 1000)

static struct extender extender;

/* "n1" has `cards` cards of 10 units. */
static void begin(const char *cards, const char *units)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000, .hold_ms = HOUR_MS}),
        .bind_timeout_ms = 60000,
    };
    extender.cluster = memory_cluster_new(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(extender.store,
                     &(struct node_view){.name = "n1",
                                         .capacity = PAIRS({MEM, units}, {COUNT, cards})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    memory_cluster_free(extender.cluster);
    store_free(extender.store);
}

static char *format_pod(const char *name, const char *created, int units)
{
    return g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\","
                           "\"creationTimestamp\":\"2026-01-01T00:00:%sZ\"},\"spec\":{"
                           "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
                           "\":\"%d\"}}}]}}",
                           name, name, created, units);
}

static void come(const char *name, const char *created, int units)
{
    ck_assert(memory_cluster_add(extender.cluster, format_pod(name, created, units), NULL));
}

/* Bound a moment ago, and its node side has not matched it to a container yet. */
static void apply_waiting(const char *name, const char *units, const char *card)
{
    g_autofree char *now = g_strdup_printf("%" G_GINT64_FORMAT, g_get_real_time() * 1000);

    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = name,
                                       .uid = name,
                                       .node_name = "n1",
                                       .phase = "Pending",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card},
                                                            {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                                                            {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", now}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
}

static char *body_of(const char *name, int units)
{
    g_autofree char *pod = format_pod(name, "59", units);

    return g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", pod);
}

/* What each verb says of the pod on n1, so that a test can hold one to the other. */
static GString *filter(const char *name, int units)
{
    g_autofree char *body = body_of(name, units);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    return reply;
}

static GString *prioritize(const char *name, int units)
{
    g_autofree char *body = body_of(name, units);
    GString *reply = g_string_new(NULL);

    ck_assert(extender_prioritize(&extender, PRIORITIZE_ALL, body, strlen(body), reply, NULL));
    return reply;
}

static GString *bind(const char *name)
{
    g_autofree char *body =
        g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"ml\",\"PodUID\":\"%s\","
                        "\"Node\":\"n1\"}", name, name);
    GString *reply = g_string_new(NULL);

    extender_bind(&extender, body, strlen(body), reply);
    return reply;
}

static void expect_text(GString *take_reply, const char *text)
{
    ck_assert_msg(strstr(take_reply->str, text), "%s: %s", text, take_reply->str);
    g_string_free(take_reply, TRUE);
}

static void expect_left_to_older(const char *name, int units)
{
    expect_text(filter(name, units), EARLIER);
    expect_text(prioritize(name, units), "[]");
    expect_text(bind(name), EARLIER);
}

static void expect_taken(const char *name, int units)
{
    expect_text(filter(name, units), "\"NodeNames\":[\"n1\"]");
    expect_text(prioritize(name, units), "\"Score\":10");
    expect_text(bind(name), "\"Error\":\"\"");
}

/* bind too, whoever calls it. */
START_TEST(room_is_left_to_who_came_first)
{
    begin("1", "10");
    come("old", "01", 8);
    come("new", "02", 8);
    expect_text(filter("old", 8), "\"NodeNames\":[\"n1\"]"); /* it has asked, and may come */
    expect_left_to_older("new", 8);
    expect_taken("old", 8);
}
END_TEST

/* What the older one has to wait for on the node, filter lets it wait for: its room is not free. */
START_TEST(a_younger_pod_does_not_take_the_place_of_one_that_waits_for_another)
{
    begin("2", "20");
    apply_waiting("flying", "6", "0");
    come("old", "01", 6);
    come("new", "02", 8);
    expect_text(filter("old", 6), "\"NodeNames\":[\"n1\"]");
    expect_left_to_older("new", 8);
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "flying",
                                       .uid = "flying",
                                       .node_name = "n1",
                                       .phase = "Running",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                                            {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})});
    expect_left_to_older("new", 8);
    expect_taken("old", 6);
}
END_TEST

/* What bind does where nobody older is in the way is what prioritize has rated. */
START_TEST(who_fits_beside_the_older_ones_is_taken)
{
    begin("1", "10");
    come("old", "01", 6);
    come("new", "02", 4);
    expect_text(filter("old", 6), "\"NodeNames\":[\"n1\"]");
    expect_taken("new", 4);
    expect_taken("old", 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("feasibility");
    TCase *tcase = tcase_create("feasibility");

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, room_is_left_to_who_came_first);
    tcase_add_test(tcase, a_younger_pod_does_not_take_the_place_of_one_that_waits_for_another);
    tcase_add_test(tcase, who_fits_beside_the_older_ones_is_taken);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
