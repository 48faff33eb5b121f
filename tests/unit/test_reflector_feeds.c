/* SPDX-License-Identifier: Apache-2.0 */
/* What each feed lists and watches, and what may not be read. */
#include "kube/reflector.h"

#include "base/metrics.h"
#include "kube/feeds.h"
#include "scripted_reflector.h"
#include "suite.h"

START_TEST(follows_nodes)
{
    script(&(struct fake_reply){
        .match = "GET /api/v1/nodes?limit=2 ",
        .chunks = {LIST_OF("10", "{\"metadata\":{\"name\":\"n1\",\"uid\":\"a\"}}")}});
    script(&(struct fake_reply){
        .match = "GET /api/v1/nodes?watch=1&resourceVersion=10&",
        .end = FAKE_HANG,
        .chunks = {EVENT("ADDED", "{\"metadata\":{\"name\":\"n2\",\"uid\":\"b\"}}"),
                   EVENT("DELETED", "{\"metadata\":{\"name\":\"n1\",\"uid\":\"a\"}}")}});
    start(FEED_NODES);
    expect_trace("( n1 ) n2 -n1 ");
}
END_TEST

#define CONFIGMAP(name, data)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"kube-system\",\"uid\":\"" name           \
    "\"},\"data\":" data "}"

START_TEST(follows_only_the_configmaps_of_unhealthy_cards)
{
    script(&(struct fake_reply){
        .match = "GET /api/v1/namespaces/kube-system/configmaps?limit=2 ",
        .chunks = {LIST_OF("10", CONFIGMAP("extension-apiserver-authentication",
                                           "{\"x\":1}") "," CONFIGMAP("unhealthy-gpu-n1",
                                                                      "{\"gpus\":\"0,2\"}"))}});
    script(&(struct fake_reply){.match = "GET /api/v1/namespaces/kube-system/configmaps?watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("MODIFIED", CONFIGMAP("coredns", "7")),
                                           EVENT("DELETED", CONFIGMAP("coredns", "7")),
                                           EVENT("DELETED", CONFIGMAP("unhealthy-gpu-n1", "7"))}});
    start(FEED_CONFIGMAPS);
    expect_trace("( kube-system/unhealthy-gpu-n1=0,2 ) -kube-system/unhealthy-gpu-n1 ");
}
END_TEST

START_TEST(lists_instead_of_a_watch_that_is_not_permitted)
{
    const uint64_t before = metrics_counted(COUNTER_FEED_DENIED, FEED_PODS);

    for (int i = 0; i < 2; i++) {
        script(&(struct fake_reply){.match = "limit=",
                                    .chunks = {LIST_OF("10", POD("u1", "1", ""))}});
        script(&(struct fake_reply){.match = "watch=1",
                                    .status = 403,
                                    .chunks = {"{\"kind\":\"Status\",\"message\":\"no\"}"}});
    }
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("10", POD("u1", "1", ""))}});
    script(&(struct fake_reply){.match = "watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("ADDED", POD("u2", "11", ""))}});
    start(FEED_PODS);
    expect_trace("( u1@ ) ( u1@ ) ( u1@ ) u2@ ");
    ck_assert_str_eq(troubles->str, "well no well ");
    ck_assert_uint_eq(metrics_counted(COUNTER_FEED_DENIED, FEED_PODS), before + 2);
}
END_TEST

START_TEST(does_without_configmaps_until_they_are_permitted)
{
    for (int i = 0; i < 2; i++)
        script(&(struct fake_reply){.match = "configmaps?limit=2 ",
                                    .status = 403,
                                    .chunks = {"{\"kind\":\"Status\",\"message\":\"no\"}"}});
    script(&(struct fake_reply){
        .match = "configmaps?limit=2 ",
        .chunks = {LIST_OF("10", CONFIGMAP("unhealthy-gpu-n1", "{\"gpus\":\"0\"}"))}});
    script_quiet_watch();
    start(FEED_CONFIGMAPS);
    expect_trace("( ) ( ( kube-system/unhealthy-gpu-n1=0 ) ");
    ck_assert(g_str_has_prefix(troubles->str, "no "));
}
END_TEST

#define BUDGET(name, allowed)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ml\",\"uid\":\"" name                     \
    "\"},\"spec\":{\"selector\":{}},\"status\":{\"disruptionsAllowed\":" allowed "}}"
#define NO_SUCH_PATH .status = 404, .chunks = {"404 page not found"}

START_TEST(finds_budgets_where_an_older_server_has_them)
{
    script(&(struct fake_reply){.match = "GET /apis/policy/v1/poddisruptionbudgets?limit=2 ",
                                NO_SUCH_PATH});
    script(&(struct fake_reply){.match = "GET /apis/policy/v1beta1/poddisruptionbudgets?limit=2 ",
                                .chunks = {LIST_OF("10", BUDGET("b", "1"))}});
    script(&(struct fake_reply){.match = "GET /apis/policy/v1beta1/poddisruptionbudgets?watch=1",
                                .end = FAKE_HANG,
                                .chunks = {EVENT("MODIFIED", BUDGET("b", "0")),
                                           EVENT("DELETED", BUDGET("b", "0"))}});
    start(FEED_BUDGETS);
    expect_trace("( ( ml/b=1 ) ml/b=0 -ml/b ");
}
END_TEST

#define ELASTIC_QUOTA                                                                              \
    "{\"metadata\":{\"name\":\"q\",\"namespace\":\"ml\",\"uid\":\"q\"},\"spec\":{\"min\":{"        \
    "\"gpuledger.io/gpus\":"                                                                       \
    "\"1\"}}}"

/* Koordinator has a copy of the CRD in another group. */
START_TEST(finds_elastic_quotas_where_koordinator_has_them)
{
    script(&(struct fake_reply){
        .match = "GET /apis/scheduling.x-k8s.io/v1alpha1/elasticquotas?limit=2 ", NO_SUCH_PATH});
    script(&(struct fake_reply){
        .match = "GET /apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas?limit=2 ",
        .chunks = {LIST_OF("10", ELASTIC_QUOTA)}});
    script(&(struct fake_reply){
        .match = "GET /apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas?watch=1",
        .end = FAKE_HANG,
        .chunks = {EVENT("DELETED", ELASTIC_QUOTA)}});
    start(FEED_ELASTIC_QUOTAS);
    expect_trace("( ( ml/q=0 ) -ml/q ");
}
END_TEST

START_TEST(does_without_budgets_that_no_server_has)
{
    for (int i = 0; i < 2; i++) {
        script(&(struct fake_reply){.match = "GET /apis/policy/", NO_SUCH_PATH});
        script(&(struct fake_reply){.match = "GET /apis/policy/", NO_SUCH_PATH});
    }
    script(&(struct fake_reply){.match = "GET /apis/policy/v1/",
                                .chunks = {LIST_OF("10", BUDGET("b", "1"))}});
    script_quiet_watch();
    start(FEED_BUDGETS);
    expect_trace("( ( ) ( ( ( ml/b=1 ) ");
}
END_TEST

/* feed_namespace takes the first that it finds. */
START_TEST(one_namespace_serves_all_dialects)
{
    const char *ns;

    ck_assert(feed_namespace(FEED_CONFIGMAPS, &ns));
    for (size_t i = 0; dialects[i]; i++) {
        if (dialects[i]->health_namespace)
            ck_assert_str_eq(dialects[i]->health_namespace, ns);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reflector_feeds");
    TCase *tcase = tcase_create("feeds");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, follows_nodes);
    tcase_add_test(tcase, follows_only_the_configmaps_of_unhealthy_cards);
    tcase_add_test(tcase, lists_instead_of_a_watch_that_is_not_permitted);
    tcase_add_test(tcase, finds_budgets_where_an_older_server_has_them);
    tcase_add_test(tcase, finds_elastic_quotas_where_koordinator_has_them);
    tcase_add_test(tcase, does_without_budgets_that_no_server_has);
    tcase_add_test(tcase, does_without_configmaps_until_they_are_permitted);
    tcase_add_test(tcase, one_namespace_serves_all_dialects);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
