/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of switches that are only observed: once for each step of a node. */
#include "switch/switcher.h"

#include "base/metrics.h"
#include "evicting_api.h"
#include "kube/api_cluster.h"
#include "suite.h"

#define CUT "nvidia.com/mig.config=all-1g.10gb@2026-01-05T11:59:00Z"
#define INTERVAL_MS 5000
#define MINUTE_LOOKS (60000 / INTERVAL_MS)

static const struct dialect_options no_options;
static struct store *known;
static struct cluster *cluster;
static struct permits *permits;
static unsigned n_terms, term_until; /* how often it was asked; how often it serves, 0: always */

static uint64_t term_of(struct leadership *leadership)
{
    return term_until == 0 || n_terms++ < term_until ? 7 : 8;
}

static const struct leadership_ops ops = {.term = term_of};
static struct leadership leader = {&ops};

static void apply_node(void)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "20"},
                                           {"aliyun.com/gpu-count", "2"}};
    const struct string_pair annotations[] = {{"gpuledger.io/switch", CUT}};

    store_apply_node(known, &(struct node_view){.name = "n1",
                                                .capacity = {capacity, 2},
                                                .annotations = {annotations, 1}});
}

static void setup(void)
{
    evicting_begin();
    n_terms = term_until = 0;
    cluster = api_cluster_new(client);
    permits = permits_new(&(struct permits_options){.observes[ENDER_SWITCH] = true});
    known = store_new(&(struct store_options){.policy = &policies[0]});
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(known, (enum feed)feed);
        if (feed == FEED_NODES)
            apply_node();
        store_list_end(known, (enum feed)feed);
    }
    answer("GET /api/v1/nodes/n1 ", FAKE_ALWAYS, 200,
           "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\",\"annotations\":{"
           "\"gpuledger.io/switch\":\"" CUT "\"}},\"status\":{\"capacity\":{"
           "\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"}}}");
    answer("GET /api/v1/pods?", FAKE_ALWAYS, 200,
           "{\"items\":[{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"a\","
           "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n1\","
           "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
           "\"2\"}}}]},\"status\":{\"phase\":\"Running\"}}]}");
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    store_free(known);
    permits_free(permits);
    api_cluster_free(cluster);
    evicting_end();
}

static struct switcher *start(void)
{
    struct switcher *switcher =
        switcher_start(&(struct switcher_options){.with = {.client = client,
                                                           .cluster = cluster,
                                                           .store = known,
                                                           .permits = permits,
                                                           .limits = {.drain_s = 600},
                                                           .dialects = &no_options},
                                                  .leadership = &leader,
                                                  .interval_ms = INTERVAL_MS},
                       NULL);

    ck_assert(switcher);
    clock_await_waiting(1);
    return switcher;
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
                           ENDER_SWITCH * EVICTION_OUTCOME_N + EVICTION_OUTCOME_OBSERVED);
}

START_TEST(what_would_be_done_is_told_once)
{
    const uint64_t before = observed();
    struct switcher *switcher = start();

    ck_assert_uint_eq(observed(), before + 1);
    pass(3 * MINUTE_LOOKS);
    ck_assert_uint_eq(observed(), before + 1);
    ck_assert_uint_eq(count_requests("PATCH ", NULL) + count_requests("/eviction ", NULL), 0);
    switcher_free(switcher);
}
END_TEST

/* Of a node that is gone nothing is kept: one of the same name is another node. */
START_TEST(of_a_node_that_comes_back_it_is_told_again)
{
    const uint64_t before = observed();
    struct switcher *switcher = start();

    store_delete_node(known, "n1");
    pass(MINUTE_LOOKS + 1);
    apply_node();
    pass(1);
    ck_assert_uint_eq(observed(), before + 2);
    switcher_free(switcher);
}
END_TEST

/* Another replica serves by the time that the node has its turn. */
START_TEST(after_the_term_no_node_is_looked_at)
{
    term_until = 1;
    struct switcher *switcher = start();
    ck_assert_uint_eq(count_requests("GET /api/v1/nodes/n1 ", NULL), 0);
    switcher_free(switcher);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("switcher");
    TCase *tcase = tcase_create("switcher");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_would_be_done_is_told_once);
    tcase_add_test(tcase, of_a_node_that_comes_back_it_is_told_again);
    tcase_add_test(tcase, after_the_term_no_node_is_looked_at);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
