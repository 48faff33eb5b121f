/* SPDX-License-Identifier: Apache-2.0 */
/* Of two kinds that are much alike, each object ends as one of its own. */
#include "base/metrics.h"
#include "gang/gangs.h"
#include "literals.h"
#include "objects.h"
#include "quota/elastic/elastic_quotas.h"
#include "quota/quotas.h"
#include "suite.h"

static const struct string_pair min[] = {{"gpuledger.io/gpus", "2"}};
static struct store *known;

static void setup(void)
{
    known = store_new(&(struct store_options){.gangs = true,
                                              .resource_quotas = true,
                                              .elastic_quotas = true,
                                              .model_label = "model",
                                              .silent = true});
}

static void teardown(void)
{
    store_free(known);
}

static bool limits(void)
{
    return elastic_quotas_limit(quotas_elastic(store_quotas(known)));
}

static struct resource_quota_view quota_of(bool elastic)
{
    return (struct resource_quota_view){
        .ns = elastic ? "ml" : "web", .name = "gpus", .elastic = elastic, .min = {min, 1}};
}

static void list_nothing(enum feed feed)
{
    store_list_begin(known, feed);
    store_list_end(known, feed);
}

START_TEST(a_quota_ends)
{
    const struct resource_quota_view quota = quota_of(_i);

    store_put_quota(known, &quota);
    ck_assert(limits());
    store_drop_quota(known, &quota);
    ck_assert(!limits());
}
END_TEST

/* Whichever is listed first. */
START_TEST(a_list_ends_quotas_of_its_own_kind)
{
    const struct resource_quota_view first = quota_of(_i), second = quota_of(!_i);

    store_put_quota(known, &first);
    store_put_quota(known, &second);
    list_nothing(feed_of_quota(&first));
    ck_assert(limits());
    store_drop_quota(known, &second);
    ck_assert(!limits());
}
END_TEST

START_TEST(a_group_ends)
{
    const struct pod_group_view group = {.ns = "ml", .name = "g", .native = _i, .min = 2};
    const struct pod_group_claim claim = {.name = "g", .native = _i};
    struct gang_row row;

    store_put_group(known, &group);
    ck_assert(gangs_tell_claimed(store_gangs(known), "ml", &claim, &row));
    store_drop_group(known, &group);
    ck_assert(!gangs_tell_claimed(store_gangs(known), "ml", &claim, &row));
}
END_TEST

START_TEST(quotas_that_cannot_be_read_are_counted)
{
    const struct configmap_view bad = {
        .ns = "kube-system", .name = "gpuquota", .data = PAIRS({"gpu_quota", "["})};

    store_free(known);
    known = store_new(&(struct store_options){.model_label = "model"});
    const uint64_t before = metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);
    store_put_configmap(known, &bad);
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS), before + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_kinds");
    TCase *tests = tcase_create("store_kinds");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_quota_ends, 0, 2);
    tcase_add_loop_test(tests, a_list_ends_quotas_of_its_own_kind, 0, 2);
    tcase_add_loop_test(tests, a_group_ends, 0, 2);
    tcase_add_test(tests, quotas_that_cannot_be_read_are_counted);

    return suite_run(suite);
}
