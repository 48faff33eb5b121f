/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that could not come whoever ended: elastic quotas keep nothing for them, neither their namespace's min
 * nor a part of what is lent.
 */
#include "core/constraints.h"
#include "objects.h"
#include "quota_extender.h"
#include "store/store_state.h"
#include "suite.h"

#define GPUS "gpuledger.io/gpus"
#define MEM "aliyun.com/gpu-mem"
#define WORDS_ASSIGNED                                                                             \
    {"ALIYUN_COM_GPU_MEM_POD", "10"}, {"ALIYUN_COM_GPU_MEM_DEV", "10"},                            \
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}, {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}

static const char *const other = "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\","
                                 "\"uid\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"c\","
                                 "\"resources\":{\"limits\":{\"" MEM "\":\"10\"}}}]}},"
                                 "\"NodeNames\":[\"n\"]}";

static const char *const owned_other =
    "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\",\"uid\":\"x\","
    "\"ownerReferences\":[{"
    "\"kind\":\"ReplicaSet\",\"uid\":\"rs\",\"controller\":true}]},\"spec\":{\"containers\":[{"
    "\"name\":"
    "\"c\",\"resources\":{\"limits\":{\"" MEM "\":\"10\"}}}]}},\"NodeNames\":[\"n\"]}";

static void apply_node(const char *name, const char *zone, bool cordoned)
{
    store_apply_node(extender.store,
                     &(struct node_view){
                         .name = name,
                         .labels = PAIRS({"zone", zone}),
                         .cordoned = cordoned,
                         .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"}),
                         .allocatable = PAIRS({"cpu", "8"}, {"memory", "16Gi"}, {"pods", "100"})});
}

static void apply_quota(const char *ns, const char *min, const char *max)
{
    store_put_quota(extender.store, &(struct resource_quota_view){
                                        .ns = ns,
                                        .name = "q",
                                        .elastic = true,
                                        .min = PAIRS({GPUS, min}),
                                        .max = PAIRS({GPUS, max}),
                                    });
}

static void hold_of(const char *ns, const char *uid, const char *card)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = ns,
                           .name = uid,
                           .uid = uid,
                           .node_name = "n",
                           .phase = "Running",
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card}, WORDS_ASSIGNED),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

static void hold(const char *uid, const char *card)
{
    hold_of("other", uid, card);
}

/* One namespace is sure of a card, another of two, which it has; it wants a third. */
static void begin_with(bool reclaim)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000,
                                                   .elastic_quotas = true,
                                                   .tree_namespaces = "quotas",
                                                   .gangs = true,
                                                   .reclaim = reclaim,
                                                   .silent = true}),
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    apply_node("n", "a", false);
    apply_quota("ml", "1", "3");
    apply_quota("other", "2", "4");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
    hold("h0", "0");
    hold("h1", "1");
}

static void begin(void)
{
    begin_with(false);
}

static const struct constraints gated = {.overlooked = 1U << OVERLOOKED_SCHEDULING_GATES};
static const struct string_pair nowhere[] = {{"zone", "b"}};
static const struct constraints picky = {.selector = {nowhere, 1}};

struct waiter_case {
    const char *units, *more, *cpu; /* of its containers, NULL: it has no second one */
    const struct constraints *constraints;
    bool terminating, comes;
};
static const struct waiter_case waiters[] = {
    {.units = "10", .comes = true},
    {.units = "10", .constraints = &gated},
    {.units = "10", .constraints = &picky},
    {.units = "10", .terminating = true},
    {.units = "11"},             /* larger than any card */
    {.units = "7", .more = "4"}, /* each fits, but not on one card */
    {.units = "10", .cpu = "9"}, /* larger than any node */
    {.units = "10", .cpu = "7500m", .comes = true},
};

static void await(const char *uid, const struct waiter_case *told)
{
    struct container_view containers[] = {
        {.name = "c",
         .limits = PAIRS({MEM, told->units}),
         .requests = PAIRS({"cpu", told->cpu ? told->cpu : "1"})},
        {.name = "d", .limits = PAIRS({MEM, told->more ? told->more : "1"})},
    };

    store_apply_pod(extender.store, &(struct pod_view){.ns = "ml",
                                                       .name = uid,
                                                       .uid = uid,
                                                       .phase = "Pending",
                                                       .constraints = told->constraints,
                                                       .terminating = told->terminating,
                                                       .containers = containers,
                                                       .n_containers = told->more ? 2 : 1});
}

static void expect_kept(bool kept)
{
    expect_filter(other, "n", kept ? "" : "n", "would borrow");
}

START_TEST(a_min_is_kept_for_whom_could_come)
{
    begin();
    await("p", &waiters[_i]);
    expect_kept(waiters[_i].comes);
    store_delete_pod(extender.store, "p");
    expect_kept(false);
}
END_TEST

/* What a pod says of itself changes, and others' pods on the node do not matter. */
START_TEST(who_may_come_after_all_is_waited_for)
{
    begin();
    await("p", &waiters[1]);
    expect_kept(false);
    await("p", &waiters[0]); /* its gate is gone */
    expect_kept(true);
    await("p", &waiters[4]);
    expect_kept(false);
    hold("h2", "2");
    hold("h3", "3");
    await("p", &waiters[0]); /* the node is full */
    store_delete_pod(extender.store, "h2");
    store_delete_pod(extender.store, "h3");
    expect_kept(true);
    await("p", &waiters[3]);
    expect_kept(false);
}
END_TEST

START_TEST(a_node_may_come_and_go)
{
    begin();
    await("p", &waiters[2]);
    expect_kept(false);
    apply_node("m", "b", false);
    expect_kept(true);
    apply_node("m", "b", true);
    expect_kept(false);
    apply_node("m", "b", false);
    expect_kept(true);
    apply_node("m", "c", false);
    expect_kept(false);
    apply_node("o", "b", false);
    expect_kept(true);
    store_delete_node(extender.store, "o");
    expect_kept(false);
}
END_TEST

/* Before any node is known, as after a restart, and where a cluster grows from nothing. */
START_TEST(pods_may_be_known_before_nodes)
{
    begin();
    store_delete_node(extender.store, "n");
    await("p", &waiters[0]);
    apply_node("n", "a", false);
    expect_kept(true);
}
END_TEST

/* More than the namespace, or all together, may ever have. */
START_TEST(who_may_never_have_as_much_is_kept_nothing)
{
    begin();
    apply_quota("ml", "1", "500m");
    await("p", &waiters[0]);
    expect_kept(false);
    apply_quota("ml", "1", "1");
    expect_kept(true);
}
END_TEST

static void apply_tree(const char *name, const char *ns, const char *min, const char *max,
                       const char *parent)
{
    const char *spaces[] = {ns, NULL};

    store_put_quota(extender.store,
                    &(struct resource_quota_view){.ns = "quotas",
                                                  .name = name,
                                                  .elastic = true,
                                                  .min = PAIRS({GPUS, min}),
                                                  .max = PAIRS({GPUS, max}),
                                                  .in = {.inside = true,
                                                         .is_parent = !ns,
                                                         .tree = "",
                                                         .parent = parent,
                                                         .namespaces = ns ? spaces : NULL}});
}

/* Two that divide three cards by weight, of which nobody is sure: what one that cannot come waits for is no
 * wish. */
START_TEST(a_part_by_weight_is_kept_for_whom_could_come)
{
    begin();
    store_drop_quota(extender.store,
                     &(struct resource_quota_view){.ns = "ml", .name = "q", .elastic = true});
    store_drop_quota(extender.store,
                     &(struct resource_quota_view){.ns = "other", .name = "q", .elastic = true});
    apply_tree("root", NULL, "3", "3", NULL);
    apply_tree("mls", "ml", "0", "4", "root");
    apply_tree("others", "other", "0", "4", "root");
    expect_kept(false);
    await("p", &waiters[_i]);
    expect_kept(waiters[_i].comes);
}
END_TEST

static void await_owned(const char *uid, const char *controller)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .phase = "Pending",
                                       .controller = controller,
                                       .controller_kind = controller ? "ReplicaSet" : NULL,
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

/* Where only what can be taken back is lent, a pod without a controller waits for no part beyond its account's
 * min, which is held already; with one it does. */
START_TEST(a_part_by_weight_is_kept_for_what_can_be_lent)
{
    begin_with(true);
    store_drop_quota(extender.store,
                     &(struct resource_quota_view){.ns = "ml", .name = "q", .elastic = true});
    store_drop_quota(extender.store,
                     &(struct resource_quota_view){.ns = "other", .name = "q", .elastic = true});
    apply_tree("root", NULL, "4", "4", NULL);
    apply_tree("mls", "ml", "1", "4", "root");
    apply_tree("others", "other", "0", "4", "root");
    hold_of("ml", "h2", "2");
    expect_filter(owned_other, "n", "n", "would borrow");
    await_owned("p", NULL);
    expect_filter(owned_other, "n", "n", "would borrow");
    await_owned("p", "rs");
    expect_filter(owned_other, "n", "", "would borrow");
    await_owned("p", NULL);
    expect_filter(owned_other, "n", "n", "would borrow");
    store_delete_pod(extender.store, "h2");
    expect_filter(owned_other, "n", "n", "would borrow");
    apply_tree("root", NULL, "3", "3", NULL);
    expect_filter(owned_other, "n", "", "would borrow"); /* within the min it counts */
}
END_TEST

/* A pod that is lent nothing, and asks for more than the min, never comes. */
START_TEST(a_min_is_kept_for_whom_it_is_enough)
{
    begin_with(true);
    apply_quota("ml", "900m", "3");
    apply_quota("other", "2100m", "4");
    await_owned("p", "rs");
    expect_filter(owned_other, "n", "", "would borrow");
    await_owned("p", NULL);
    expect_filter(owned_other, "n", "n", "would borrow");
}
END_TEST

static enum pod_tie tie_of(const char *uid)
{
    const struct pod_view pod = {.uid = uid, .ns = "ml"};
    struct ledger *ledger = store_lock(extender.store);
    g_autoptr(quota_room) room =
        quotas_room(store_quotas(extender.store), ledger, &pod, store_pending(extender.store, uid));
    const enum pod_tie tie = elastic_room_tie(quota_room_elastic(room));

    store_unlock(extender.store);
    return tie;
}

/* bind, wake and the order of arrival know names only. */
START_TEST(whether_a_pod_can_be_taken_back_is_known_by_its_uid)
{
    begin_with(true);
    await_owned("p", NULL);
    ck_assert_int_eq(tie_of("p"), POD_TIE_BARE);
    await_owned("p", "rs"); /* asks for the same as before */
    ck_assert_int_eq(tie_of("p"), 0);
    await_owned("p", NULL);
    struct store *live = extender.store;
    extender.store = store_copy(live);
    ck_assert_int_eq(tie_of("p"), POD_TIE_BARE);
    store_free(extender.store);
    extender.store = live;
}
END_TEST

static void await_grouped(const char *uid, const char *least, bool terminating)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .phase = "Pending",
                                       .terminating = terminating,
                                       .annotations = PAIRS(
                                           {"gang.scheduling.koordinator.sh/name", "g"},
                                           {"gang.scheduling.koordinator.sh/min-available", least}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

/* Of a group each counts once there are enough of them. */
START_TEST(a_group_that_lacks_pods_is_kept_nothing)
{
    begin();
    await_grouped("a", "2", false);
    expect_kept(false);
    await_grouped("b", "2", false);
    expect_kept(true);
    await_grouped("b", "2", true);
    expect_kept(false);
    await_grouped("c", "2", false);
    expect_kept(true);
    await_grouped("c", "3", false);
    expect_kept(false);
    await_grouped("c", "2", false);
    expect_kept(true);
    store_delete_pod(extender.store, "c");
    expect_kept(false);
    store_put_group(extender.store, &(struct pod_group_view){.ns = "ml", .name = "g", .min = 1});
    store_delete_pod(extender.store, "b");
    await_grouped("a", "1", false);
    expect_kept(true);
}
END_TEST

/* All are different, and all want a node that is not there. */
START_TEST(thousands_that_never_come_hold_up_nobody)
{
    begin();
    for (int i = 0; i < 3000; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        g_autofree char *zone = g_strdup_printf("z%d", i);
        const struct string_pair selector[] = {{"zone", zone}};
        const struct constraints wants = {.selector = {selector, 1}};
        await(uid, &(struct waiter_case){.units = "10", .constraints = &wants});
    }
    expect_kept(false);
    for (int i = 0; i < 100; i++) {
        g_autofree char *zone = g_strdup_printf("z%d", i);
        apply_node("m", zone, false);
        expect_kept(true);
    }
    apply_node("m", "none", false);
    expect_kept(false);
}
END_TEST

/* A node of six cards, of which each takes four of its containers. */
static void await_hard(int n, const struct constraints *constraints)
{
    static const struct string_pair limits[] = {{"nvidia.com/gpu", "1"},
                                                {"nvidia.com/gpumem", "2400"}};
    struct container_view containers[32];

    store_apply_node(
        extender.store,
        &(struct node_view){.name = "m",
                            .annotations =
                                PAIRS({"hami.io/node-nvidia-register",
                                       "GPU-0,9,10000,100,T4,0,true:GPU-1,9,10000,100,T4,0,"
                                       "true:GPU-2,9,10000,100,T4,0,true:GPU-3,9,10000,100,"
                                       "T4,0,true:GPU-4,9,10000,100,T4,0,true:GPU-5,9,10000,"
                                       "100,T4,0,true:"}),
                            .labels = PAIRS({"zone", "b"}),
                            .capacity = PAIRS({"nvidia.com/gpu", "54"}),
                            .allocatable = PAIRS({"nvidia.com/gpu", "54"}, {"cpu", "64"},
                                                 {"memory", "64Gi"}, {"pods", "100"})});
    for (int i = 0; i < n; i++)
        containers[i] = (struct container_view){.name = "c", .limits = {limits, 2}};
    store_apply_pod(extender.store, &(struct pod_view){.ns = "ml",
                                                       .name = "hard",
                                                       .uid = "hard",
                                                       .phase = "Pending",
                                                       .constraints = constraints,
                                                       .containers = containers,
                                                       .n_containers = (size_t)n});
}

static void expect_hope(const char *node)
{
    const struct pending *pending = g_hash_table_lookup(extender.store->pending, "hard");

    ck_assert_ptr_nonnull(pending);
    ck_assert_pstr_eq(pending->could_be_on, node);
}

/* Nobody counts that 32 are too many for it: a search would find out, and takes too long. */
START_TEST(whom_a_search_leaves_open_could_come)
{
    begin();
    await_hard(32, NULL);
    expect_hope("m");
    await_hard(32, &gated);
    expect_hope(NULL);
}
END_TEST

/* So many values that they are compared with some nodes only: the pod might be on any of the others. */
START_TEST(whom_not_all_nodes_are_compared_with_could_come)
{
    static const char *values[100];
    struct match matches[200];
    const struct match_term term = {matches, G_N_ELEMENTS(matches)};
    const struct constraints dear = {.has_affinity = true, .terms = &term, .n_terms = 1};

    for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
        values[i] = "c";
    for (size_t i = 0; i < G_N_ELEMENTS(matches); i++)
        matches[i] = (struct match){"zone", MATCH_IN, false, values, G_N_ELEMENTS(values)};
    begin();
    for (int i = 0; i < (_i ? 40 : 4); i++) {
        g_autofree char *name = g_strdup_printf("m%d", i);
        apply_node(name, "b", false);
    }
    await("p", &(struct waiter_case){.units = "10", .constraints = &dear});
    expect_kept(_i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elastic hopes");
    TCase *hopes = tcase_create("hopes");

    tcase_add_checked_fixture(hopes, NULL, teardown);
    tcase_add_loop_test(hopes, a_min_is_kept_for_whom_could_come, 0, G_N_ELEMENTS(waiters));
    tcase_add_test(hopes, who_may_come_after_all_is_waited_for);
    tcase_add_test(hopes, a_node_may_come_and_go);
    tcase_add_test(hopes, pods_may_be_known_before_nodes);
    tcase_add_test(hopes, who_may_never_have_as_much_is_kept_nothing);
    tcase_add_loop_test(hopes, a_part_by_weight_is_kept_for_whom_could_come, 0,
                        G_N_ELEMENTS(waiters));
    tcase_add_test(hopes, a_part_by_weight_is_kept_for_what_can_be_lent);
    tcase_add_test(hopes, a_min_is_kept_for_whom_it_is_enough);
    tcase_add_test(hopes, whether_a_pod_can_be_taken_back_is_known_by_its_uid);
    tcase_add_test(hopes, a_group_that_lacks_pods_is_kept_nothing);
    tcase_add_test(hopes, thousands_that_never_come_hold_up_nobody);
    tcase_add_test(hopes, whom_a_search_leaves_open_could_come);
    tcase_add_loop_test(hopes, whom_not_all_nodes_are_compared_with_could_come, 0, 2);
    suite_add_tcase(suite, hopes);
    return suite_run(suite);
}
