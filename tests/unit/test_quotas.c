/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces have the GPUs that the ConfigMap allows them, by model.
 */
#include "quota_extender.h"
#include "objects.h"
#include "stopped_clock.h"
#include "suite.h"

#define CORE "tencent.com/vcuda-core"
#define MEM "tencent.com/vcuda-memory"
#define MODEL "gaia.tencent.com/gpu-model"
#define POOL "gaia.tencent.com/gpu-pool"
#define EXCEEDS "ExceedsGPUQuota"

static void add_node(const char *name, const char *model, const char *pool)
{
    store_apply_node(extender.store, &(struct node_view){
                                         .name = name,
                                         .labels = PAIRS({MODEL, model}, {POOL, pool}),
                                         .capacity = PAIRS({CORE, "800"}, {MEM, "480"})});
}

static void set_quotas(const char *text)
{
    store_put_configmap(extender.store,
                        &(struct configmap_view){.ns = "kube-system",
                                                 .name = "gpuquota",
                                                 .data = PAIRS({"gpu_quota", text})});
}

static void begin(const char *model_label)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){
            .patience_ms = 60000, .model_label = model_label, .pool_label = POOL}),
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    add_node("m", "M40", "public");
    add_node("p", "P100", "public");
    add_node("q", "M40", "private");
    set_quotas("{\"ml\":{\"quota\":{\"M40\":2},\"pool\":[\"public\"]},"
               "\"none\":{\"quota\":{}},\"any\":{\"quota\":{\"M40\":1,\"P100\":1}}}");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

/* `cards` as the annotation names them: "0", "0,1". */
static void hold_cards(const char *uid, const char *ns, const char *node, const char *core,
                       const char *cards)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = ns,
                           .name = uid,
                           .uid = uid,
                           .node_name = node,
                           .phase = "Running",
                           .annotations = PAIRS({"tencent.com/predicate-gpu-idx-0", cards}),
                           CONTAINERS({.name = "c", .limits = PAIRS({CORE, core}, {MEM, "4"})})});
}

static void hold(const char *uid, const char *ns, const char *node, const char *core)
{
    hold_cards(uid, ns, node, core, "0");
}

/* Which of the three nodes would take a pod: "m,p,q". */
static void expect(const char *ns, const char *core, const char *wanted)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" CORE "\":\"%s\",\"" MEM
        "\":\"4\"}}}]}},\"NodeNames\":[\"m\",\"p\",\"q\"]}",
        ns, core);

    expect_filter(body, "m,p,q", wanted, EXCEEDS);
}

START_TEST(models_and_pools_are_those_that_are_listed)
{
    begin(MODEL);
    expect("ml", "100", "m");
    expect("none", "100", "");
    expect("any", "100", "m,p,q");
    expect("other", "800", "m,p,q");
}
END_TEST

/* filter remembers what it has found out, of those without a quota alone. */
START_TEST(what_others_may_does_not_count)
{
    begin(MODEL);
    expect("other", "100", "m,p,q");
    expect("ml", "100", "m");
    expect("other", "100", "m,p,q");
}
END_TEST

START_TEST(what_a_namespace_holds_counts_wherever_it_is)
{
    begin(MODEL);
    expect("ml", "200", "m");
    expect("ml", "300", "");
    hold("a", "ml", "q", "100");
    hold("b", "ml", "m", "30");
    hold("c", "ml", "p", "50");
    hold("d", "other", "m", "60");
    expect("ml", "70", "m");
    expect("ml", "71", "");
    store_delete_pod(extender.store, "a");
    expect("ml", "100", "m");
}
END_TEST

/* Each of its cards once, whatever the number of them. */
START_TEST(a_pod_of_several_cards_counts_once)
{
    begin(MODEL);
    set_quotas("{\"ml\":{\"quota\":{\"M40\":3},\"pool\":[\"public\"]}}");
    hold_cards("a", "ml", "q", "200", "0,1");
    expect("ml", "100", "m");
    expect("ml", "200", "");
}
END_TEST

static void add_other_node(const char *name, const char *model, const char *amount,
                           const char *cards_key, const char *cards)
{
    store_apply_node(
        extender.store,
        &(struct node_view){.name = name,
                            .labels = PAIRS({MODEL, model}, {POOL, "public"}),
                            .capacity = PAIRS({cards_key, cards}, {"aliyun.com/gpu-mem", amount}),
                            .allocatable = PAIRS({cards_key, cards})});
}

static void expect_other(const char *key, const char *amount, const char *wanted)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"%s\":\"%s\"}}}]}},"
        "\"NodeNames\":[\"s\",\"t\"]}",
        key, amount);

    expect_filter(body, "s,t", wanted, EXCEEDS);
}

/* They name no compute: memory, or devices that kubelet hands out, are parts of GPUs as well. */
START_TEST(pods_of_every_dialect_count)
{
    begin(MODEL);
    add_other_node("s", "M40", "32", "aliyun.com/gpu-count", "2");
    add_other_node("t", "P100", "32", "aliyun.com/gpu-count", "2");
    expect_other("aliyun.com/gpu-mem", "16", "s");
    hold("a", "ml", "q", "100");
    hold("b", "ml", "m", "50");
    expect_other("aliyun.com/gpu-mem", "8", "s");
    expect_other("aliyun.com/gpu-mem", "9", "");
    store_apply_pod(extender.store,
                    &(struct pod_view){
                        .ns = "ml",
                        .name = "c",
                        .uid = "c",
                        .node_name = "s",
                        .phase = "Running",
                        .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                        CONTAINERS({.name = "c", .limits = PAIRS({"aliyun.com/gpu-mem", "4"})})});
    expect_other("aliyun.com/gpu-mem", "4", "s");
    expect_other("aliyun.com/gpu-mem", "5", "");
    expect("ml", "25", "m");
    expect("ml", "26", "");
}
END_TEST

START_TEST(devices_count_as_gpus)
{
    begin(MODEL);
    add_other_node("s", "M40", "0", "nvidia.com/gpu", "8");
    add_other_node("t", "P100", "0", "nvidia.com/gpu", "8");
    expect_other("nvidia.com/gpu", "2", "s");
    expect_other("nvidia.com/gpu", "3", "");
}
END_TEST

START_TEST(pods_whose_binding_is_under_way_count)
{
    begin(MODEL);
    hold("a", "any", "m", "60");
    struct allocation *held = ledger_get(store_lock(extender.store), "a");
    held->state = ALLOCATION_ASSUMED;
    store_unlock(extender.store);
    expect("any", "50", "p");
}
END_TEST

START_TEST(what_cannot_be_read_changes_nothing)
{
    static const char *const texts[] = {"", "[]", "{\"ml\":7}", "{\"ml\":{\"quota\":{\"M40\":\"x\"}}}",
                                        "{\"ml\":{\"quota\":[]}}"};

    begin(MODEL);
    set_quotas(texts[_i]);
    expect("ml", "300", "");
    expect("ml", "200", "m");
    set_quotas("{\"ml\":{\"quota\":{\"M40\":\"3\"}}}");
    expect("ml", "300", "m,q");
}
END_TEST

START_TEST(without_the_configmap_there_are_no_limits)
{
    begin(MODEL);
    expect("ml", "300", "");
    store_list_begin(extender.store, FEED_CONFIGMAPS);
    store_list_end(extender.store, FEED_CONFIGMAPS);
    expect("ml", "300", "m,p,q");
    set_quotas("{\"ml\":{}}");
    expect("ml", "100", "");
    store_drop_configmap(extender.store,
                         &(struct configmap_view){.ns = "kube-system", .name = "gpuquota"});
    expect("ml", "300", "m,p,q");
}
END_TEST

static unsigned n_annotated;

static enum outcome annotate(struct cluster *cluster, const struct pod_annotation *annotation,
                             int64_t deadline_ms, GError **error)
{
    ck_assert_str_eq(annotation->key, WAKE_ANNOTATION);
    ck_assert_str_eq(annotation->name, "x");
    n_annotated++;
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {.annotate_pod = annotate};
static struct cluster cluster = {&ops};

/* Refused for the quota, by the one node of a model and pool that it may use. */
static void refuse_and_let_grace_pass(void)
{
    begin(MODEL);
    extender.wake = wake_new();
    hold("other", "other", "m", "100");
    hold("a", "ml", "m", "100");
    hold("b", "ml", "q", "100");
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "x",
                                       .uid = "x",
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c",
                                                   .limits = PAIRS({CORE, "100"}, {MEM, "4"})})});
    n_annotated = 0;
    expect("ml", "100", "");
    clock_skip_ms(1100); /* as in test_wake */
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), 0);
}

static void expect_woken(unsigned times)
{
    ck_assert_uint_eq(wake_run(extender.wake, extender.store, &cluster), times);
    ck_assert_uint_eq(n_annotated, times);
    g_clear_pointer(&extender.wake, wake_free);
}

/* Which is where nothing has become free. */
START_TEST(who_was_refused_is_woken_where_there_is_room)
{
    refuse_and_let_grace_pass();
    store_delete_pod(extender.store, "b");
    expect_woken(1);
}
END_TEST

START_TEST(who_was_refused_is_not_woken_by_what_the_quota_does_not_leave)
{
    refuse_and_let_grace_pass();
    store_delete_pod(extender.store, "other");
    expect_woken(0);
}
END_TEST

START_TEST(who_was_refused_is_woken_by_a_larger_quota)
{
    const struct configmap_view none = {.ns = "kube-system", .name = "gpuquota"};

    refuse_and_let_grace_pass();
    switch (_i) {
    case 0:
        set_quotas("{\"ml\":{\"quota\":{\"M40\":3}}}");
        break;
    case 1:
        store_drop_configmap(extender.store, &none);
        break;
    case 2: /* a list that does not name it */
        store_list_begin(extender.store, FEED_CONFIGMAPS);
        store_list_end(extender.store, FEED_CONFIGMAPS);
        break;
    case 3:
        set_quotas("{\"ml\":{\"quota\":{\"M40\":2}}}");
        break;
    default:
        break;
    }
    expect_woken(_i < 3);
}
END_TEST

START_TEST(without_a_label_there_are_no_quotas)
{
    begin(NULL);
    expect("ml", "300", "m,p,q");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quotas");
    TCase *tcase = tcase_create("quotas");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, models_and_pools_are_those_that_are_listed);
    tcase_add_test(tcase, what_others_may_does_not_count);
    tcase_add_test(tcase, what_a_namespace_holds_counts_wherever_it_is);
    tcase_add_test(tcase, a_pod_of_several_cards_counts_once);
    tcase_add_test(tcase, pods_of_every_dialect_count);
    tcase_add_test(tcase, devices_count_as_gpus);
    tcase_add_test(tcase, pods_whose_binding_is_under_way_count);
    tcase_add_loop_test(tcase, what_cannot_be_read_changes_nothing, 0, 5);
    tcase_add_test(tcase, without_the_configmap_there_are_no_limits);
    tcase_add_test(tcase, who_was_refused_is_woken_where_there_is_room);
    tcase_add_test(tcase, who_was_refused_is_not_woken_by_what_the_quota_does_not_leave);
    tcase_add_loop_test(tcase, who_was_refused_is_woken_by_a_larger_quota, 0, 4);
    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase, without_a_label_there_are_no_quotas);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
