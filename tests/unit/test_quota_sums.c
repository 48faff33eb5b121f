/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What quotas of every kind compare is kept as pods come and go: a call looks at the pods of nodes that have
 * changed, and at no others. Counted, not timed.
 */
#include "core/ledger.h"
#include "objects.h"
#include "quota/sums/node_tallies.h"
#include "quota_extender.h"
#include "suite.h"

#define CORE "tencent.com/vcuda-core"
#define MEM "tencent.com/vcuda-memory"
#define MODEL "model"
#define NODES 20
#define PODS_ON_ONE 10

enum sort { KIND_MODEL, KIND_HAMI, KIND_ELASTIC, KIND_N };

static void apply_quota(enum sort kind, const char *amount)
{
    g_autofree char *models = g_strdup_printf("{\"ml\":{\"quota\":{\"M40\":%s}}}", amount);

    if (kind == KIND_MODEL)
        store_put_configmap(extender.store,
                            &(struct configmap_view){.ns = "kube-system",
                                                     .name = "gpuquota",
                                                     .data = PAIRS({"gpu_quota", models})});
    if (kind == KIND_HAMI)
        store_put_quota(
            extender.store,
            &(struct resource_quota_view){
                .ns = "ml", .name = "q", .hard = PAIRS({"limits.nvidia.com/gpumem", amount})});
    if (kind == KIND_ELASTIC)
        store_put_quota(extender.store,
                        &(struct resource_quota_view){.ns = "ml",
                                                      .name = "q",
                                                      .elastic = true,
                                                      .max = PAIRS({"gpuledger.io/gpus", amount})});
}

static void add_node(int i, const char *model)
{
    g_autofree char *name = g_strdup_printf("n%02d", i);

    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .labels = PAIRS({MODEL, model}),
                                         .capacity = PAIRS({CORE, "800"}, {MEM, "480"})});
}

static void hold_core(const char *ns, const char *uid, int node, const char *core)
{
    g_autofree char *name = g_strdup_printf("n%02d", node);

    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = ns,
                           .name = uid,
                           .uid = uid,
                           .node_name = name,
                           .phase = "Running",
                           .annotations = PAIRS({"tencent.com/predicate-gpu-idx-0", "0"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({CORE, core}, {MEM, "1"})})});
}

static void hold(const char *ns, const char *uid, int node)
{
    hold_core(ns, uid, node, "10");
}

/* 200 pods of others, ten on a node, and two of "ml", which may have so many GPUs. */
static void begin(enum sort kind, const char *amount)
{
    extender = (struct extender){.store = store_new(&(struct store_options){.patience_ms = 60000,
                                                                            .model_label = MODEL,
                                                                            .resource_quotas = true,
                                                                            .elastic_quotas = true,
                                                                            .silent = true})};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 0; i < NODES; i++)
        add_node(i, "M40");
    apply_quota(kind, amount);
    for (int i = 0; i < NODES * PODS_ON_ONE; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        hold(i < 2 ? "ml" : "others", uid, i % NODES);
    }
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

/* How many allocations a call about a pod of "ml" looks at. */
static uint64_t ask(const char *wanted)
{
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" CORE "\":\"10\",\"" MEM
        "\":\"1\"}}}]}},\"NodeNames\":[\"n10\"]}";
    const uint64_t before = quotas_n_counted(store_quotas(extender.store));

    expect_filter(body, "n10", wanted, "uota");
    return quotas_n_counted(store_quotas(extender.store)) - before;
}

START_TEST(a_call_looks_at_no_pods_but_those_of_nodes_that_have_changed)
{
    begin(_i, "100");
    ask("n10");
    ck_assert_uint_eq(ask("n10"), 0);
    hold("others", "new", 3);
    uint64_t counted = 0;
    for (int i = 0; i < 100; i++) /* as wake asks for each pod that waits */
        counted += ask("n10");
    ck_assert_uint_ge(counted, 1);
    ck_assert_uint_le(counted, PODS_ON_ONE + 1);
    store_delete_pod(extender.store, "p0");
    ck_assert_uint_le(ask("n10"), PODS_ON_ONE);
    apply_quota(_i, "99"); /* the pods hold what they did */
    ck_assert_uint_eq(ask("n10"), 0);
    store_delete_node(extender.store, "n05");
    add_node(5, "M40");
    ck_assert_uint_le(ask("n10"), 2 * PODS_ON_ONE);
}
END_TEST

static void note_counted(void *data, uint32_t place, const struct node *node)
{
    ++*(guint *)data;
}

/* How many places are looked at to find what has changed, and how many have changed. */
static void expect_look(struct node_tallies *tallies, uint64_t n_looks, guint n_changed)
{
    const uint64_t before = tallies->n_looks;
    uint64_t left = UINT64_MAX;
    guint changed = 0;

    ck_assert(node_tallies_catch_up(tallies, store_ledger(extender.store), &left, note_counted,
                                    &changed));
    ck_assert_uint_eq(tallies->n_looks - before, n_looks);
    ck_assert_uint_eq(changed, n_changed);
}

/* A decision catches up more than once. */
START_TEST(places_are_looked_at_only_after_a_change)
{
    struct node_tallies tallies;
    uint64_t left = 1;
    guint changed = 0;

    begin(KIND_ELASTIC, "100");
    node_tallies_init(&tallies);
    ck_assert(!node_tallies_catch_up(&tallies, store_ledger(extender.store), &left, note_counted,
                                     &changed));
    expect_look(&tallies, NODES, NODES - 1); /* the rest */
    expect_look(&tallies, 0, 0);
    hold("others", "new", 3);
    expect_look(&tallies, NODES, 1);
    expect_look(&tallies, 0, 0);
    store_delete_pod(extender.store, "new");
    expect_look(&tallies, NODES, 1);
    node_tallies_renew(&tallies, "n07");
    expect_look(&tallies, NODES, 1);
    add_node(NODES, "M40");
    expect_look(&tallies, NODES + 1, 1);
    store_delete_node(extender.store, "n20");
    expect_look(&tallies, NODES + 1, 1); /* its place is empty */
    expect_look(&tallies, 0, 0);
    node_tallies_clear(&tallies);
}
END_TEST

static void limit_core(const char *ns, const char *amount)
{
    store_put_quota(extender.store, &(struct resource_quota_view){.ns = ns,
                                                                  .name = "by-core",
                                                                  .elastic = true,
                                                                  .max = PAIRS({CORE, amount})});
}

/* All pods have been added up by every key that a quota may name. "ml" holds 20 of the key and asks for 10. */
START_TEST(another_key_of_a_quota_looks_at_no_pods)
{
    begin(KIND_ELASTIC, "100");
    ask("n10");
    limit_core("elsewhere", "1000");
    ck_assert_uint_eq(ask("n10"), 0);
    limit_core("ml", "29");
    ck_assert_uint_eq(ask(""), 0);
    limit_core("ml", "30");
    ck_assert_uint_eq(ask("n10"), 0);
    hold("ml", "more", 4);
    ck_assert_uint_le(ask(""), PODS_ON_ONE + 1);
    store_delete_pod(extender.store, "p0");
    ask("n10");
    store_verify(extender.store);
    ck_assert(store_is_sound(extender.store));
}
END_TEST

static void await(const char *ns, const char *uid, const char *core, const char *mem)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = ns,
                           .name = uid,
                           .uid = uid,
                           .phase = "Pending",
                           CONTAINERS({.name = "c", .limits = PAIRS({CORE, core}, {MEM, mem})})});
}

/* Whether or not there are quotas, all is counted before the first decision. */
START_TEST(the_first_look_counts_no_pods)
{
    begin(KIND_N, NULL);
    apply_quota(_i, "100");
    ck_assert_uint_eq(ask("n10"), 0);
    apply_quota(_i, "0");
    ask(_i == KIND_HAMI ? "n10" : ""); /* which does not limit pods of other dialects */
}
END_TEST

#define MOST 30

static const enum sort limiting[] = {KIND_MODEL, KIND_ELASTIC}; /* the pods that are asked about */

/* A decision counts so many pods and those of one node; what is limited is refused until all is counted. */
START_TEST(a_look_counts_so_many_pods_and_no_more)
{
    begin(limiting[_i], "100");
    quotas_set_most(store_quotas(extender.store), MOST);
    ask("n10");
    for (int i = 0; i < NODES; i++) {
        g_autofree char *uid = g_strdup_printf("more%d", i);
        hold("others", uid, i);
    }
    uint64_t counted = 0, looks = 0, once;
    for (bool all = false; !all; looks++) {
        all = counted + MOST >= NODES * (PODS_ON_ONE + 1);
        once = ask(all ? "n10" : "");
        ck_assert_uint_le(once, MOST + PODS_ON_ONE + 1);
        counted += once;
    }
    ck_assert_uint_gt(looks, 1); /* or this test says nothing */
    ck_assert_uint_eq(counted, NODES * (PODS_ON_ONE + 1));
}
END_TEST

/* Who waits while others are counted is asked about again. */
START_TEST(what_was_refused_meanwhile_is_noted)
{
    struct moment moment;

    begin(limiting[_i], "100");
    quotas_set_most(store_quotas(extender.store), MOST);
    for (int i = 0; i < NODES; i++) {
        g_autofree char *uid = g_strdup_printf("more%d", i);
        hold("others", uid, i);
    }
    ask("");
    const uint64_t freed = ledger_freed(store_decide(extender.store, &moment));
    store_unlock(extender.store);
    store_end_waits(extender.store);
    ck_assert_uint_eq(ledger_freed(store_ledger(extender.store)), freed);
    store_count_quotas(extender.store);
    store_end_waits(extender.store);
    ck_assert_uint_gt(ledger_freed(store_ledger(extender.store)), freed);
    ck_assert_uint_eq(ask("n10"), 0);
}
END_TEST

#define WAITING 1000

/* A thousand pods that wait alike are one kind, whatever quotas change. */
START_TEST(another_quota_measures_kinds_of_pods_that_wait)
{
    begin(KIND_ELASTIC, "100");
    for (int i = 0; i < WAITING; i++) {
        g_autofree char *uid = g_strdup_printf("w%d", i);
        await(i % 2 ? "ml" : "elsewhere", uid, "10", "1");
    }
    ck_assert_uint_ge(ask("n10"), WAITING);
    apply_quota(KIND_ELASTIC, "99");
    const uint64_t examined = ask("n10");
    ck_assert_uint_ge(examined, 2); /* or this test says nothing */
    ck_assert_uint_le(examined, 4);
}
END_TEST

#define KINDS 300

/* More than a namespace may have: its own count for nothing. */
START_TEST(a_namespace_has_so_many_kinds_of_pods_that_wait)
{
    begin(KIND_ELASTIC, "100");
    for (int i = 0; i < KINDS; i++) {
        g_autofree char *uid = g_strdup_printf("w%d", i);
        g_autofree char *core = g_strdup_printf("%d", 1 + i % 50);
        g_autofree char *mem = g_strdup_printf("%d", 1 + i / 50);
        await("ml", uid, core, mem);
    }
    await("others", "other", "10", "1");
    ask("n10");
    apply_quota(KIND_ELASTIC, "99");
    const uint64_t examined = ask("n10");
    ck_assert_uint_ge(examined, 256);
    ck_assert_uint_le(examined, 256 + 3);
}
END_TEST

/* Two tenths of a GPU are held; a third one would be too much, until one ends. */
START_TEST(what_was_kept_is_what_decides)
{
    begin(KIND_ELASTIC, "0.25");
    ask("");
    store_delete_pod(extender.store, "p0");
    ask("n10");
    hold("ml", "again", 7);
    ask("");
    store_delete_pod(extender.store, "again");
    ask("n10");
    hold("ml", "p1", 9); /* it is elsewhere: one, as before */
    ask("n10");
}
END_TEST

/* In the order in which they came, 1.7 GPUs of "ml" are there, two tenths are elsewhere, and one is asked for. */
START_TEST(pods_of_one_node_are_told_apart)
{
    static const struct {
        const char *ns, *core;
    } pods[] = {{"ml", "10"}, {"ml", "10"},     {"others", "10"}, {"ml", "10"}, {"ml", "20"},
                {"ml", "20"}, {"others", "20"}, {"others", "90"}, {"ml", "50"}, {"ml", "50"}};

    static const enum sort kinds[] = {KIND_MODEL, KIND_ELASTIC};

    begin(kinds[_i], "2");
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        g_autofree char *uid = g_strdup_printf("one-%zu", i);
        hold_core(pods[i].ns, uid, 3, pods[i].core);
    }
    ask("n10");
    hold_core("ml", "more", 3, "1");
    ask("");
}
END_TEST

/* The label decides for which model pods count. */
START_TEST(pods_count_for_the_model_that_their_node_has_now)
{
    begin(KIND_MODEL, "0");
    ask("");
    apply_quota(KIND_MODEL, "1");
    ask("n10");
    for (int i = 0; i < 10; i++) {
        g_autofree char *uid = g_strdup_printf("m%d", i);
        hold("ml", uid, 2);
    }
    ask("");
    add_node(2, "P100");
    ask("n10");
    add_node(2, "M40");
    ask("");
}
END_TEST

static struct allocation *find(const char *uid)
{
    return ledger_get(store_ledger(extender.store), uid);
}

/* A sum that is not what adds up refuses its namespace's pods, and no others'. */
START_TEST(a_wrong_sum_closes_its_quota_until_it_is_right)
{
    begin(_i == 0 ? KIND_MODEL : KIND_ELASTIC, "100");
    ask("n10");
    store_verify(extender.store);
    ck_assert(store_is_sound(extender.store));
    ask("n10");
    find("p1")->shares[0].core += 10; /* as no change of the ledger leaves it */
    store_verify(extender.store);
    ck_assert(!store_is_sound(extender.store));
    ck_assert_uint_eq(quotas_n_wrong(store_quotas(extender.store)), 1);
    ask("");
    find("p1")->shares[0].core -= 10;
    store_verify(extender.store);
    ask("n10");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quota sums");
    TCase *sums = tcase_create("sums");

    tcase_add_checked_fixture(sums, NULL, teardown);
    tcase_add_loop_test(sums, a_call_looks_at_no_pods_but_those_of_nodes_that_have_changed, 0,
                        KIND_N);
    tcase_add_test(sums, places_are_looked_at_only_after_a_change);
    tcase_add_test(sums, another_key_of_a_quota_looks_at_no_pods);
    tcase_add_loop_test(sums, the_first_look_counts_no_pods, 0, KIND_N);
    tcase_add_loop_test(sums, a_look_counts_so_many_pods_and_no_more, 0, 2);
    tcase_add_loop_test(sums, what_was_refused_meanwhile_is_noted, 0, 2);
    tcase_add_test(sums, another_quota_measures_kinds_of_pods_that_wait);
    tcase_add_test(sums, a_namespace_has_so_many_kinds_of_pods_that_wait);
    tcase_add_test(sums, what_was_kept_is_what_decides);
    tcase_add_loop_test(sums, pods_of_one_node_are_told_apart, 0, 2);
    tcase_add_loop_test(sums, a_wrong_sum_closes_its_quota_until_it_is_right, 0, 2);
    tcase_add_test(sums, pods_count_for_the_model_that_their_node_has_now);
    suite_add_tcase(suite, sums);
    return suite_run(suite);
}
