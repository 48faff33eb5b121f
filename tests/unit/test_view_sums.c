/* SPDX-License-Identifier: Apache-2.0 */
/* What views add up: limits of namespaces and what counts towards them, and who has how much of the GPUs. */
#include "literals.h"
#include "objects.h"
#include "suite.h"

#include "inspect/views.h"
#include "store/store.h"

#include <string.h>

#define GPUS "gpuledger.io/gpus"
#define MEM "aliyun.com/gpu-mem"
#define MODEL "gaia.tencent.com/gpu-model"

static struct store *known;
static GString *reply;

static void setup(void)
{
    known = store_new(&(struct store_options){.policy = &policies[0],
                                              .patience_ms = 60000,
                                              .elastic_quotas = true,
                                              .resource_quotas = true,
                                              .model_label = MODEL,
                                              .silent = true});
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(known, (enum feed)feed);
        store_list_end(known, (enum feed)feed);
    }
    reply = g_string_new(NULL);
}

static void teardown(void)
{
    store_free(known);
    g_string_free(reply, TRUE);
}

/* Of gpushare, two cards of 10 units. */
static void add_node(const char *name, const char *cordoned)
{
    store_apply_node(known, &(struct node_view){
                                .name = name,
                                .annotations = PAIRS({"gpuledger.io/cordoned-cards", cordoned}),
                                .capacity = PAIRS({MEM, "20"}, {"aliyun.com/gpu-count", "2"}),
                                .allocatable = PAIRS({MEM, "20"}, {"aliyun.com/gpu-count", "2"})});
}

static void hold(const char *ns, const char *uid, const char *node, const char *card,
                 const char *amount)
{
    store_apply_pod(
        known, &(struct pod_view){.ns = ns,
                                  .name = uid,
                                  .uid = uid,
                                  .node_name = node,
                                  .phase = "Running",
                                  .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card},
                                                       {"ALIYUN_COM_GPU_MEM_POD", amount},
                                                       {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, amount})})});
}

static void expect(const char *part)
{
    ck_assert_msg(strstr(reply->str, part), "no %s in %s", part, reply->str);
}

/* --- limits --------------------------------------------------------------------------------------- */

static void look_at_quotas(void)
{
    g_string_truncate(reply, 0);
    view_quotas(known, reply);
}

START_TEST(a_limit_by_model_is_told_in_thousandths)
{
    store_put_configmap(
        known,
        &(struct configmap_view){.ns = "kube-system",
                                 .name = "gpuquota",
                                 .data = PAIRS({"gpu_quota", "{\"ml\":{\"quota\":{\"M40\":2}}}"})});
    store_apply_node(known,
                     &(struct node_view){.name = "m",
                                         .labels = PAIRS({MODEL, "M40"}),
                                         .capacity = PAIRS({"tencent.com/vcuda-core", "200"},
                                                           {"tencent.com/vcuda-memory", "80"})});
    store_apply_pod(known, &(struct pod_view){
                               .ns = "ml",
                               .name = "p",
                               .uid = "p",
                               .node_name = "m",
                               .phase = "Running",
                               .annotations = PAIRS({"tencent.com/predicate-gpu-idx-0", "0"}),
                               CONTAINERS({.name = "c",
                                           .limits = PAIRS({"tencent.com/vcuda-core", "50"},
                                                           {"tencent.com/vcuda-memory", "4"})})});
    look_at_quotas();
    expect("\"key\":\"M40\",\"unit\":\"thousandths\",\"limit\":2000,\"used\":500}");
}
END_TEST

/* As many rows as a page has, and how many there are. */
START_TEST(limits_beyond_the_most_are_counted)
{
    for (int i = 0; i < VIEW_QUOTAS + 7; i++) {
        g_autofree char *ns = g_strdup_printf("ns%d", i);
        store_put_quota(
            known, &(struct resource_quota_view){
                       .ns = ns, .name = "q", .hard = PAIRS({"limits.nvidia.com/gpumem", "8"})});
    }
    look_at_quotas();
    expect("\"total\":207,");
    int n = 0;
    for (const char *at = reply->str; (at = strstr(at, "\"limit\":8")); at++)
        n++;
    ck_assert_int_eq(n, VIEW_QUOTAS);
}
END_TEST

static void apply_elastic(const char *ns, const char *min, const char *tree, bool keeps)
{
    store_put_quota(
        known, &(struct resource_quota_view){.ns = ns,
                                             .name = "q",
                                             .elastic = true,
                                             .min = PAIRS({GPUS, min}),
                                             .in = {.inside = true, .tree = tree, .keeps = keeps}});
}

static void expect_lent(const char *ns, const char *lent)
{
    g_autofree char *begin = g_strdup_printf("{\"namespace\":\"%s\"", ns);
    g_autofree char *word = g_strdup_printf("\"lent\":%s,", lent);
    const char *row = strstr(reply->str, begin);

    ck_assert_msg(row && g_str_has_prefix(strstr(row, "\"lent\":"), word), "%s: not %s in %s", ns,
                  lent, reply->str);
}

/* b has borrowed one GPU: of whom is told only by what those of its tree that lend have left. */
START_TEST(only_those_that_lend_in_its_tree_have_lent)
{
    add_node("n", "");
    apply_elastic("a", "2", "x", false);
    apply_elastic("b", "0", "y", false);
    apply_elastic("c", "2", "y", false);
    apply_elastic("d", "2", "y", true);
    hold("b", "p", "n", "0", "10");
    look_at_quotas();
    expect_lent("a", "0");
    expect_lent("b", "0");
    expect_lent("c", "1");
    expect_lent("d", "0");
    expect("\"elasticTotal\":4");
}
END_TEST

/* --- who has how much ------------------------------------------------------------------------------ */

static void look_at_usage(enum usage_by by)
{
    g_string_truncate(reply, 0);
    view_usage(known, by, reply);
}

START_TEST(a_card_that_nobody_shares_is_used)
{
    add_node("n", "");
    store_lock(known);
    struct allocation *held = allocation_new("p", "ml", "p", 1);
    held->dialect = ledger_node(store_ledger(known), "n")->dialect;
    held->shares[0] =
        (struct share){.card = 1, .memory = {2, AMOUNT_NODE_UNITS}, .exclusive = true};
    ledger_put(store_ledger(known), "n", held);
    store_unlock(known);
    look_at_usage(USAGE_NODES);
    expect("\"rows\":[{\"name\":\"n\",\"gpuThousandths\":2000,\"usableGpuThousandths\":1000,");
    expect("\"usedGpuThousandths\":1000,");
}
END_TEST

START_TEST(what_is_free_of_a_closed_card_is_out_of_service)
{
    add_node("n", "1");
    hold("ml", "p", "n", "1", "4");
    look_at_usage(USAGE_NODES);
    expect("\"usableGpuThousandths\":1000,\"uselessGpuThousandths\":0,"
           "\"outOfServiceGpuThousandths\":600,\"usedGpuThousandths\":400,");
}
END_TEST

/* More devices are held than there are: those of a pool that has shrunk. */
START_TEST(a_pool_has_no_more_used_than_it_has)
{
    store_apply_node(known, &(struct node_view){.name = "n",
                                                .capacity = PAIRS({"nvidia.com/gpu", "2"}),
                                                .allocatable = PAIRS({"nvidia.com/gpu", "2"})});
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        store_apply_pod(known,
                        &(struct pod_view){
                            .ns = "ml",
                            .name = uid,
                            .uid = uid,
                            .node_name = "n",
                            .phase = "Running",
                            CONTAINERS({.name = "c", .limits = PAIRS({"nvidia.com/gpu", "1"})})});
    }
    look_at_usage(USAGE_NODES);
    expect("\"gpuThousandths\":2000,\"usableGpuThousandths\":0,");
    expect("\"usedGpuThousandths\":2000,");
}
END_TEST

/* Of both cards 3 of 10 units are free, and pods of 5 are expected: of the node, and of all. */
START_TEST(what_is_useless_is_told_of_all_nodes_too)
{
    g_autoptr(demand) demand = demand_new();

    add_node("n", "");
    hold("ml", "p", "n", "0", "7");
    hold("ml", "q", "n", "1", "7");
    store_lock(known);
    const struct dialect *dialect = ledger_node(store_ledger(known), "n")->dialect;
    store_unlock(known);
    for (int i = 0; i < 40; i++) {
        g_autoptr(request) request = request_new(dialect, 1);
        request->asks[0] = (struct card_ask){.memory = {5, AMOUNT_NODE_UNITS}, .count = 1};
        demand_note(demand, request);
    }
    store_learn(known, demand, false);
    look_at_usage(USAGE_NODES);
    expect("{\"cluster\":{\"gpuThousandths\":2000,\"usableGpuThousandths\":0,"
           "\"uselessGpuThousandths\":600,");
    expect("\"rows\":[{\"name\":\"n\",\"gpuThousandths\":2000,\"usableGpuThousandths\":0,"
           "\"uselessGpuThousandths\":600,");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("view_sums");
    TCase *quotas = tcase_create("quotas"), *usage = tcase_create("usage");

    tcase_add_checked_fixture(quotas, setup, teardown);
    tcase_add_test(quotas, a_limit_by_model_is_told_in_thousandths);
    tcase_add_test(quotas, limits_beyond_the_most_are_counted);
    tcase_add_test(quotas, only_those_that_lend_in_its_tree_have_lent);
    suite_add_tcase(suite, quotas);
    tcase_add_checked_fixture(usage, setup, teardown);
    tcase_add_test(usage, a_card_that_nobody_shares_is_used);
    tcase_add_test(usage, what_is_free_of_a_closed_card_is_out_of_service);
    tcase_add_test(usage, a_pool_has_no_more_used_than_it_has);
    tcase_add_test(usage, what_is_useless_is_told_of_all_nodes_too);
    suite_add_tcase(suite, usage);
    return suite_run(suite);
}
