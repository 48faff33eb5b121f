/* SPDX-License-Identifier: Apache-2.0 */
/* What wake does at a time is bounded, whatever there is of nodes and pods, and nobody is passed over for it. */
#include "literals.h"
#include "objects.h"
#include "stopped_clock.h"
#include "suite.h"

#include "core/ledger.h"
#include "verbs/extender.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define NODES 650
#define PODS 150 /* each of which may ask all nodes: more than a run can */
#define RUNS_MAX 40

static struct extender extender;
static unsigned n_woken;
static bool small_woken;

static enum outcome annotate(struct cluster *cluster, const struct pod_annotation *annotation,
                             int64_t deadline_ms, GError **error)
{
    n_woken++;
    small_woken |= g_str_equal(annotation->name, "small");
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {.annotate_pod = annotate};
static struct cluster cluster = {&ops};

static void apply(const char *ns, const char *uid, const char *units, const char *node)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = ns,
                                       .name = uid,
                                       .uid = uid,
                                       .node_name = node,
                                       .phase = node ? "Running" : "Pending",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
}

static void remember(const char *uid, const char *units)
{
    apply("ml", uid, units, NULL);
    wake_note_refusal(extender.wake, &(struct pod_view){.ns = "ml", .name = uid, .uid = uid}, 0);
}

/* Each node has one card of 10, which is full; the last has 1 left. An elastic quota may open any node. */
static void setup(void)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){
            .policy = &policies[0], .patience_ms = 60000, .elastic_quotas = true, .silent = true}),
        .wake = wake_new(),
    };
    n_woken = 0;
    small_woken = false;
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_put_quota(
        extender.store,
        &(struct resource_quota_view){
            .ns = "ml", .name = "q", .elastic = true, .max = PAIRS({"gpuledger.io/gpus", "9999"})});
    for (int i = 0; i < NODES; i++) {
        g_autofree char *node = g_strdup_printf("n%d", i), *uid = g_strdup_printf("on-%d", i);
        store_apply_node(
            extender.store,
            &(struct node_view){.name = node, .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})});
        apply("others", uid, i == NODES - 1 ? "9" : "10", node);
    }
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    wake_free(extender.wake);
    store_free(extender.store);
}

static void let_grace_pass(void)
{
    clock_skip_ms(1100);
}

/* Something became free everywhere before it. */
static void run(void)
{
    const struct wake_work before = wake_work(extender.wake);

    ledger_mark_all_freed(store_lock(extender.store));
    store_unlock(extender.store);
    wake_run(extender.wake, extender.store, &cluster);
    const struct wake_work after = wake_work(extender.wake);
    ck_assert_uint_le(after.most_at_once, WAKE_HOLD_STEPS + WAKE_ASK_STEPS);
    ck_assert_uint_le(after.steps - before.steps,
                      WAKE_RUN_STEPS + WAKE_HOLD_STEPS + WAKE_ASK_STEPS);
}

/* The one that fits is remembered last, and something is free again before each run. */
START_TEST(the_last_one_has_its_turn)
{
    for (int i = 0; i < PODS; i++) {
        g_autofree char *uid = g_strdup_printf("large-%d", i);
        remember(uid, "5");
    }
    remember("small", "1");
    let_grace_pass();
    run();
    ck_assert(!small_woken); /* or this test says nothing */
    for (int i = 0; i < RUNS_MAX && !small_woken; i++)
        run();
    ck_assert(small_woken);
    ck_assert_uint_eq(n_woken, 1);
}
END_TEST

/* What became free behind a look that has not ended is found by the next one. */
START_TEST(what_becomes_free_behind_the_look_is_found)
{
    for (int i = 0; i < PODS; i++) {
        g_autofree char *uid = g_strdup_printf("large-%d", i);
        remember(uid, "5");
    }
    let_grace_pass();
    run();
    ck_assert_uint_ne(wake_work(extender.wake).steps % (NODES * (1 + WAKE_ASK_STEPS)), 0);
    store_delete_pod(extender.store, "on-0");
    for (int i = 0; i < RUNS_MAX && n_woken < PODS; i++)
        wake_run(extender.wake, extender.store, &cluster);
    ck_assert_uint_eq(n_woken, PODS);
}
END_TEST

/* What an elastic quota lends becomes free with another namespace's pod, wherever that was. */
START_TEST(who_may_borrow_again_is_woken_where_nothing_became_free)
{
    const struct resource_quota_view quotas[] = {
        {.ns = "ml", .name = "q", .elastic = true, .min = PAIRS({"gpuledger.io/gpus", "1"})},
        {.ns = "lender", .name = "q", .elastic = true, .min = PAIRS({"gpuledger.io/gpus", "1"})},
    };

    store_put_quota(extender.store, &quotas[0]);
    store_put_quota(extender.store, &quotas[1]);
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "large", .capacity = PAIRS({MEM, "40"}, {COUNT, "2"})});
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "small", .capacity = PAIRS({MEM, "5"}, {COUNT, "1"})});
    apply("ml", "own", "20", "large");
    apply("lender", "lent", "5", "small");
    remember("more", "20");
    let_grace_pass();
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 0);
    store_delete_pod(extender.store, "lent"); /* where the pod has no room */
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 1);
}
END_TEST

/* Nothing has become free but what an elastic quota says. */
START_TEST(a_larger_elastic_quota_wakes)
{
    struct resource_quota_view quota = {
        .ns = "ml", .name = "q", .elastic = true, .max = PAIRS({"gpuledger.io/gpus", "0"})};

    store_put_quota(extender.store, &quota);
    remember("small", "1");
    let_grace_pass();
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 0);
    let_grace_pass();
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 0);
    quota.max = (struct string_pairs)PAIRS({"gpuledger.io/gpus", "1"});
    store_put_quota(extender.store, &quota);
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wake_work");
    TCase *tests = tcase_create("wake_work");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_last_one_has_its_turn);
    tcase_add_test(tests, what_becomes_free_behind_the_look_is_found);
    tcase_add_test(tests, who_may_borrow_again_is_woken_where_nothing_became_free);
    tcase_add_test(tests, a_larger_elastic_quota_wakes);
    suite_add_tcase(suite, tests);

    return suite_run(suite);
}
