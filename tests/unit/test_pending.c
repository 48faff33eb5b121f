/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod that waits asks for may change: its newest word counts, everywhere.
 */
#include "literals.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "simulate/memory_cluster.h"
#include "suite.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define MODELS "gpuledger.io/gpu-models"
#define EARLIER "left to a pod that has waited for longer"
#define INSUFFICIENT "Insufficient GPU Memory"
#define WRONG_MODEL "no GPU of the kind that the pod asks for"
#define HOUR_MS (3600 * 1000)

static struct extender extender;

static void apply_node(const char *name, const char *model)
{
    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .labels = PAIRS({"nvidia.com/gpu.product", model}),
                                         .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})});
}

/* Node "a" has an A100 of 10 units, "h" an H100. */
static void setup(void)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000, .hold_ms = HOUR_MS}),
        .bind_timeout_ms = 60000,
    };
    extender.cluster = memory_cluster_new(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    apply_node("a", "A100");
    apply_node("h", "H100");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    memory_cluster_free(extender.cluster);
    store_free(extender.store);
}

struct wish {
    const char *uid, *units, *models, *nominated;
    int64_t priority;
    const char *created;
};

static void apply(const struct wish *wish)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = wish->uid,
                                       .uid = wish->uid,
                                       .created = wish->created,
                                       .phase = "Pending",
                                       .priority = wish->priority,
                                       .nominated_node = wish->nominated,
                                       .annotations = PAIRS({MODELS, wish->models ? wish->models
                                                                                  : "A100,H100"}),
                                       CONTAINERS({.name = "c",
                                                   .limits = PAIRS({MEM, wish->units})})});
}

/* The pod as the API server has it, for a GET and a Binding. */
static void store_at_api_server(const char *name, const char *units)
{
    ck_assert(memory_cluster_add(
        extender.cluster,
        g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
                        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\""
                        MEM "\":\"%s\"}}}]}}", name, name, units),
        NULL));
}

static void expect_bind(const char *name, const char *node, const char *said)
{
    g_autofree char *body =
        g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"ml\",\"PodUID\":\"%s\","
                        "\"Node\":\"%s\"}", name, name, node);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_bind(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, said), "%s: %s", said, reply->str);
}

static void expect_filter(const char *name, int priority, const char *units, const char *node,
                          const char *said)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{"
        "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%s\"}}}]}},\"NodeNames\":[\"%s\"]}",
        name, name, priority, units, node);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, said), "%s: %s", said, reply->str);
}

START_TEST(bind_goes_by_what_the_pod_asks_for_now)
{
    store_at_api_server("p", "5");
    apply(&(struct wish){"p", "5", .models = "V100"});
    expect_bind("p", "h", WRONG_MODEL);
    apply(&(struct wish){"p", "5", .models = "H100"});
    expect_bind("p", "a", WRONG_MODEL);
    expect_bind("p", "h", "\"Error\":\"\"");
}
END_TEST

START_TEST(a_fresh_list_says_so_too)
{
    store_at_api_server("p", "5");
    apply(&(struct wish){"p", "5", .models = "A100"});
    store_list_begin(extender.store, FEED_PODS);
    apply(&(struct wish){"p", "5", .models = "H100"});
    store_list_end(extender.store, FEED_PODS);
    expect_bind("p", "a", WRONG_MODEL);
    expect_bind("p", "h", "\"Error\":\"\"");
}
END_TEST

static void *change_wish(void *data)
{
    g_usleep(20000); /* the bind waits, or not yet: it ends alike */
    apply(&(struct wish){"p", "6", .models = "H100"});
    return NULL;
}

/* While it waits for the node side, too. */
START_TEST(a_bind_that_waits_looks_at_the_new_wish)
{
    g_autofree char *now = g_strdup_printf("%" G_GINT64_FORMAT, g_get_real_time() * 1000);
    pthread_t thread;

    store_at_api_server("p", "6");
    apply(&(struct wish){"p", "6", .models = "A100"});
    store_apply_node(extender.store,
                     &(struct node_view){.name = "a",
                                         .labels = PAIRS({"nvidia.com/gpu.product", "A100"}),
                                         .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "flying",
                                       .uid = "flying",
                                       .node_name = "a",
                                       .phase = "Pending",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                                            {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                                                            {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", now}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})});
    extender.bind_timeout_ms = 60000;
    ck_assert_int_eq(pthread_create(&thread, NULL, change_wish, NULL), 0);
    expect_bind("p", "a", WRONG_MODEL);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(older_pods_count_for_what_they_ask_for_now)
{
    apply(&(struct wish){"old", "8", .created = "2026-01-01T00:00:01Z"});
    apply(&(struct wish){"new", "8", .created = "2026-01-01T00:00:02Z"});
    expect_filter("old", 0, "8", "a", "\"NodeNames\":[\"a\"]");
    expect_filter("new", 0, "8", "a", EARLIER);
    apply(&(struct wish){"old", "2", .created = "2026-01-01T00:00:01Z"});
    expect_filter("new", 0, "8", "a", "\"NodeNames\":[\"a\"]");
    apply(&(struct wish){"old", "8", .created = "2026-01-01T00:00:01Z"});
    expect_filter("new", 0, "8", "a", EARLIER); /* it has not lost its turn */
    apply(&(struct wish){"new", "8", .priority = 1, .created = "2026-01-01T00:00:02Z"});
    expect_filter("new", 1, "8", "a", "\"NodeNames\":[\"a\"]");
    expect_filter("old", 0, "8", "a", "\"NodeNames\":[\"a\"]");
}
END_TEST

START_TEST(an_older_pod_that_became_less_important_is_passed)
{
    apply(&(struct wish){"old", "8", .priority = 5, .created = "2026-01-01T00:00:01Z"});
    expect_filter("old", 5, "8", "a", "\"NodeNames\":[\"a\"]");
    expect_filter("new", 5, "8", "a", EARLIER);
    apply(&(struct wish){"old", "8", .priority = 4, .created = "2026-01-01T00:00:01Z"});
    expect_filter("new", 5, "8", "a", "\"NodeNames\":[\"a\"]");
}
END_TEST

START_TEST(room_is_kept_for_what_a_nominated_pod_asks_for_now)
{
    apply(&(struct wish){"high", "4", .nominated = "a", .priority = 10});
    expect_filter("p", 10, "6", "a", "\"NodeNames\":[\"a\"]");
    apply(&(struct wish){"high", "8", .nominated = "a", .priority = 10});
    expect_filter("p", 10, "6", "a", INSUFFICIENT);
    apply(&(struct wish){"high", "8", .nominated = "a", .priority = 9});
    expect_filter("p", 10, "6", "a", "\"NodeNames\":[\"a\"]");
}
END_TEST

/* Whoever cannot be understood any more keeps nothing, and bind says why. */
START_TEST(what_cannot_be_read_any_more_counts_no_longer)
{
    store_at_api_server("old", "5k5"); /* which no API server would admit */
    apply(&(struct wish){"old", "8", .created = "2026-01-01T00:00:01Z"});
    apply(&(struct wish){"high", "8", .nominated = "h", .created = "2026-01-01T00:00:01Z"});
    expect_filter("old", 0, "8", "a", "\"NodeNames\":[\"a\"]");
    expect_filter("new", 0, "8", "a", EARLIER);
    expect_filter("new", 0, "8", "h", INSUFFICIENT);
    apply(&(struct wish){"old", "5k5", .created = "2026-01-01T00:00:01Z"});
    apply(&(struct wish){"high", "5k5", .nominated = "h", .created = "2026-01-01T00:00:01Z"});
    expect_filter("new", 0, "8", "a", "\"NodeNames\":[\"a\"]");
    expect_filter("new", 0, "8", "h", "\"NodeNames\":[\"h\"]");
    expect_bind("old", "a", "5k5");
}
END_TEST

START_TEST(who_asks_for_no_gpu_any_more_waits_for_none)
{
    apply(&(struct wish){"old", "8", .created = "2026-01-01T00:00:01Z"});
    expect_filter("old", 0, "8", "a", "\"NodeNames\":[\"a\"]");
    store_apply_pod(extender.store, &(struct pod_view){.ns = "ml", .name = "old", .uid = "old",
                                                       CONTAINERS({.name = "c"})});
    expect_filter("new", 0, "8", "a", "\"NodeNames\":[\"a\"]");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pending");
    TCase *tcase = tcase_create("pending");

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, bind_goes_by_what_the_pod_asks_for_now);
    tcase_add_test(tcase, a_fresh_list_says_so_too);
    tcase_add_test(tcase, a_bind_that_waits_looks_at_the_new_wish);
    tcase_add_test(tcase, older_pods_count_for_what_they_ask_for_now);
    tcase_add_test(tcase, an_older_pod_that_became_less_important_is_passed);
    tcase_add_test(tcase, room_is_kept_for_what_a_nominated_pod_asks_for_now);
    tcase_add_test(tcase, what_cannot_be_read_any_more_counts_no_longer);
    tcase_add_test(tcase, who_asks_for_no_gpu_any_more_waits_for_none);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
