/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done in one hold of the store's lock does not grow with the pods of the cluster. The work of a hold is
 * known by what it takes from the heap or gives back, however fast the machine is.
 */
#include "objects.h"
#include "quota_extender.h"
#include "suite.h"

#include <malloc.h>

#define MEM "aliyun.com/gpu-mem"
#define PODS 2000
#define MOST (64 << 10) /* bytes; of 2,000 pods it would be several times that */

struct holds {
    size_t before, most;
};

static void begin_hold(void *data, const char *who, bool decides)
{
    ((struct holds *)data)->before = mallinfo2().uordblks;
}

static void end_hold(void *data)
{
    struct holds *holds = data;
    const size_t now = mallinfo2().uordblks;

    holds->most = MAX(holds->most, now > holds->before ? now - holds->before : holds->before - now);
}

static struct holds holds;
static const struct lock_meter meter = {begin_hold, end_hold, &holds};

static void begin(void)
{
    holds = (struct holds){0};
    extender = (struct extender){
        .store = store_new(&(struct store_options){
            .elastic_quotas = true, .resource_quotas = true, .model_label = "model"})};
}

static void note_waiting(const struct elastic_count *count, void *data)
{
    *(int64_t *)data = count->waiting;
}

static void show(const char *uid, const char *node)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = uid,
                           .uid = uid,
                           .node_name = node,
                           .phase = "Pending",
                           .labels = PAIRS({"quota.scheduling.koordinator.sh/name", "team"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

static void await_many(void)
{
    for (int i = 0; i < PODS; i++) {
        g_autofree char *uid = g_strdup_printf("waiting-%d", i);
        show(uid, NULL);
    }
}

START_TEST(a_copy_of_many_waiting_pods_is_made_in_portions)
{
    store_put_quota(extender.store, &(struct resource_quota_view){
                                        .ns = "ml",
                                        .name = "q",
                                        .elastic = true,
                                        .min = PAIRS({"gpuledger.io/gpus", "1"}),
                                        .max = PAIRS({"gpuledger.io/gpus", "2"}),
                                    });
    store_apply_node(extender.store,
                     &(struct node_view){
                         .name = "n",
                         .capacity = PAIRS({MEM, "10"}, {"aliyun.com/gpu-count", "1"}),
                         .allocatable = PAIRS({"cpu", "8"}, {"memory", "16Gi"}, {"pods", "100"})});
    show("bound", "n");
    await_many();
    store_measure(extender.store, &meter);
    struct store *copy = store_copy(extender.store);
    struct elastic_quotas *quotas = quotas_elastic(store_quotas(copy));
    int64_t waiting = 0;
    struct ledger *ledger = store_lock(copy);
    elastic_quotas_each(quotas, ledger, note_waiting, &waiting);
    ck_assert_int_eq(waiting, PODS * 1000000LL);
    ck_assert_str_eq(elastic_quotas_choice(quotas, "waiting-0"), "team");
    ck_assert_str_eq(elastic_quotas_choice(quotas, "bound"), "team");
    store_unlock(copy);
    store_free(copy);
    ck_assert_msg(holds.most < MOST, "%zu bytes in one hold", holds.most);
}
END_TEST

static char *write_quotas(int n)
{
    GString *text = g_string_new("{");

    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "%s\"team-%d\":{\"quota\":{\"M40\":8}}", i ? "," : "", i);
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

static void apply_quotas(int n)
{
    g_autofree char *text = write_quotas(n);

    store_apply_object(extender.store, FEED_CONFIGMAPS,
                       &(struct configmap_view){.ns = "kube-system",
                                                .name = "gpuquota",
                                                .data = PAIRS({"gpu_quota", text})});
}

static void note_limit(const struct model_limit *limit, void *data)
{
    ++*(int *)data;
}

START_TEST(a_text_is_read_before_the_lock_is_taken)
{
    int n = 0;

    store_measure(extender.store, &meter);
    apply_quotas(PODS);
    store_lock(extender.store);
    quotas_each(store_quotas(extender.store), note_limit, &n);
    store_unlock(extender.store);
    ck_assert_int_eq(n, PODS);
    apply_quotas(1); /* what was there is freed after it is given back */
    ck_assert_msg(holds.most < 1000, "%zu bytes in one hold", holds.most);
}
END_TEST

START_TEST(a_copy_shares_the_quotas_of_many_namespaces)
{
    for (int i = 0; i < PODS; i++) {
        g_autofree char *ns = g_strdup_printf("team-%d", i);
        store_put_quota(
            extender.store,
            &(struct resource_quota_view){
                .ns = ns, .name = "q", .hard = PAIRS({"limits.nvidia.com/gpumem", "8"})});
    }
    store_measure(extender.store, &meter);
    g_autoptr(store) copy = store_copy(extender.store);
    ck_assert(resource_quotas_limit(quotas_see_resources(store_quotas(copy))));
    ck_assert_msg(holds.most < MOST, "%zu bytes in one hold", holds.most);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("holds");
    TCase *copies = tcase_create("copies");

    tcase_add_checked_fixture(copies, begin, teardown);
    tcase_add_test(copies, a_copy_of_many_waiting_pods_is_made_in_portions);
    tcase_add_test(copies, a_copy_shares_the_quotas_of_many_namespaces);
    tcase_add_test(copies, a_text_is_read_before_the_lock_is_taken);
    suite_add_tcase(suite, copies);
    return suite_run(suite);
}
