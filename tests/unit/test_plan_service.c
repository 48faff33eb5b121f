/* SPDX-License-Identifier: Apache-2.0 */
/* Orders in ConfigMaps: what is only observed, what waits while evictions are stopped, and whose pods are passed over. */
#include "maintain/plans/plan_service.h"

#include "base/metrics.h"
#include "evicting_api.h"
#include "kube/api_cluster.h"
#include "literals.h"
#include "suite.h"

#define MEM "aliyun.com/gpu-mem"
#define MADE "2026-01-05T11:00:00Z"
#define ORDERS "GET /api/v1/namespaces/gpu/configmaps?"
#define INTERVAL_MS 5000

static const struct dialect_options no_options;
static struct store *known;
static struct cluster *cluster;
static struct permits *permits;
static struct plan_service *service;

/* `wants` units, on the first card of `node` or on none. */
static const char *text_of(const char *name, const char *owner, int wants, const char *node)
{
    return keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"uid-%s\","
        "\"creationTimestamp\":\"" MADE "\",\"annotations\":{%s},\"ownerReferences\":[{"
        "\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"o\",\"uid\":\"%s\","
        "\"controller\":true}]},\"spec\":{%s%s%s\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"limits\":{\"" MEM "\":\"%d\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        name, name,
        node ? "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"" : "",
        owner, node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"," : "", wants,
        node ? "Running" : "Pending"));
}

static void apply(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;

    ck_assert(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &view, NULL));
    store_apply_pod(known, &view);
}

/* n1: one card of 10, with "web" of 4. n2: one of 4, which takes it. "big" of 8 waits. */
static void setup(void)
{
    evicting_begin();
    const char *web = text_of("web", "own-web", 4, "n1"), *big = text_of("big", "own-big", 8, NULL);
    cluster = api_cluster_new(client);
    known = store_new(&(struct store_options){.policy = policies});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(known, (enum feed)feed);
    for (int i = 0; i < 2; i++)
        store_apply_node(
            known, &(struct node_view){
                       .name = i ? "n2" : "n1",
                       .capacity = PAIRS({MEM, i ? "4" : "10"}, {"aliyun.com/gpu-count", "1"}),
                       .allocatable = PAIRS({MEM, i ? "4" : "10"}, {"aliyun.com/gpu-count", "1"})});
    apply(web);
    apply(big);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, (enum feed)feed);
    answer("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1", FAKE_ALWAYS, 200,
           keep(g_strdup_printf("{\"items\":[%s]}", web)));
    answer("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn2", FAKE_ALWAYS, 200, "{\"items\":[]}");
    answer("GET /api/v1/namespaces/ml/pods/big ", FAKE_ALWAYS, 200, big);
    answer("PATCH /api/v1/namespaces/gpu/configmaps/order ", FAKE_ALWAYS, 200,
           "{\"metadata\":{\"name\":\"order\",\"namespace\":\"gpu\",\"uid\":\"u1\","
           "\"resourceVersion\":\"6\"}}");
}

static void teardown(void)
{
    plan_service_free(service);
    service = NULL;
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    g_clear_pointer(&permits, permits_free);
    store_free(known);
    api_cluster_free(cluster);
    evicting_end();
}

static void order(const char *data)
{
    answer(ORDERS, FAKE_ALWAYS, 200,
           keep(g_strdup_printf("{\"items\":[{\"metadata\":{\"namespace\":\"gpu\",\"name\":"
                                "\"order\",\"uid\":\"u1\",\"resourceVersion\":\"5\",\"labels\":{"
                                "\"gpuledger.io/plan\":\"run\"}},\"data\":{%s}}]}",
                                data)));
}

static void start(const struct permits_options *options)
{
    permits = permits_new(options);
    service = plan_service_start(&(struct plan_service_options){.client = client,
                                                                .cluster = cluster,
                                                                .store = known,
                                                                .dialects = &no_options,
                                                                .permits = permits,
                                                                .ns = "gpu"},
                                 NULL);
    ck_assert(service);
    clock_await_waiting(1);
}

static void pass(int looks)
{
    for (int i = 0; i < looks; i++) {
        clock_skip_ms(INTERVAL_MS);
        clock_await_waiting(1);
    }
}

static uint64_t observed(void)
{
    return metrics_counted(COUNTER_EVICTIONS,
                           ENDER_PLAN * EVICTION_OUTCOME_N + EVICTION_OUTCOME_OBSERVED);
}

static unsigned n_writes(const char *text)
{
    return count_requests("PATCH /api/v1/namespaces/gpu/configmaps/order ", text);
}

/* Its status says what would leave first; no Node and no pod is touched. */
START_TEST(what_is_only_observed_is_told_and_moves_nobody)
{
    const uint64_t before = observed();

    order("\"pod\":\"ml/big\"");
    start(&(struct permits_options){.observes[ENDER_PLAN] = true});
    pass(1);
    ck_assert_uint_eq(n_writes("observed: ml/web on n1 would be the first of 1 pods to leave"), 1);
    ck_assert_uint_eq(observed(), before + 1);
    pass(5);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert_uint_eq(count_requests("/api/v1/nodes/", NULL), 0);
    ck_assert_uint_eq(count_requests("/events ", NULL), 0);
}
END_TEST

/* Nor is one that has a pod for which it is: an order 'waiting' looks for one, and is then free for another. */
START_TEST(an_order_that_looks_for_its_pod_is_only_observed_as_well)
{
    order("\"waiting\":\"1m\",\"max-per-hour\":\"10\"");
    start(&(struct permits_options){.observes[ENDER_PLAN] = true});
    answer("GET /api/v1/namespaces/gpu/configmaps/gpuledger-moves ", FAKE_ALWAYS, 404, NULL);
    pass(3);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert_uint_eq(count_requests("/api/v1/nodes/", NULL), 0);
    ck_assert_uint_ge(n_writes(NULL), 1);
}
END_TEST

/* It says why it waits, and begins when they go on. */
START_TEST(an_order_waits_while_evictions_are_stopped)
{
    order("\"pod\":\"ml/big\"");
    start(&(struct permits_options){.stopped = true});
    permits_stop(permits, "somebody says so");
    pass(10);
    ck_assert_uint_ge(n_writes("waits: evictions are stopped: somebody says so"), 1);
    ck_assert_uint_eq(n_writes("begins"), 0);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert_uint_eq(count_requests("/api/v1/nodes/", NULL), 0);
    /* An audit cannot be made here, so it stops then; but it has begun. */
    answer("GET /", FAKE_ALWAYS, 403, NULL);
    answer("PATCH /api/v1/nodes/", FAKE_ALWAYS, 403, NULL);
    permits_stop(permits, NULL);
    clock_skip_ms(INTERVAL_MS);
    while (n_writes("begins") == 0)
        expect_requests(fake_server_count(server) + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_service");
    TCase *tcase = tcase_create("plan_service");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_only_observed_is_told_and_moves_nobody);
    tcase_add_test(tcase, an_order_that_looks_for_its_pod_is_only_observed_as_well);
    tcase_add_test(tcase, an_order_waits_while_evictions_are_stopped);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
