/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/auditor.h"
#include "objects.h"

#include "suite.h"
#include "world.h"

#include <string.h>

#define PATIENCE_MS 60000
#define NEVER_MS 3600000

static struct world world;
static struct fake_cluster *cluster;

/* "duo" has two cards of 10 units. */
static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
}

static void teardown(void)
{
    world_release(&world);
}

static void add(const char *name, const char *card)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){
                                      .name = name, .node = "duo", .mem = 6, .card = card});
}

static struct auditor *start(int64_t interval_ms, int64_t look_ms)
{
    const struct auditor_options options = {
        .interval_ms = interval_ms, .settle_ms = 1, .look_ms = look_ms, .rest_ms = 1};
    return auditor_start(&world.extender, &options, NULL);
}

/* Until the answer contains that text. */
static void await(struct auditor *auditor, const char *part)
{
    g_autoptr(GString) answer = g_string_new(NULL);
    int64_t until_us = g_get_monotonic_time() + PATIENCE_MS * 1000;

    while (!strstr(answer->str, part)) {
        ck_assert_msg(g_get_monotonic_time() < until_us, "%s", answer->str);
        g_usleep(1000);
        g_string_truncate(answer, 0);
        auditor_encode(auditor, answer);
    }
}

START_TEST(the_first_audit_waits_for_the_lists)
{
    g_autoptr(auditor) auditor = start(0, 0);

    ck_assert_uint_eq(auditor_request(auditor), 1);
    g_usleep(20000);
    await(auditor, "{\"run\":0,\"running\":false,\"error\":null,\"report\":null}");
    add("a", NULL);
    world_sync(&world);
    await(auditor, "{\"run\":1,\"running\":false,\"error\":null,\"report\":{\"finished\":");
    await(auditor, "\"differences\":1,");
}
END_TEST

START_TEST(audits_come_again_and_again)
{
    uint64_t before = metrics_counted(COUNTER_AUDITS, AUDIT_RESULT_CLEAN);

    world_sync(&world);
    g_autoptr(auditor) auditor = start(1, 0);
    ck_assert_ptr_nonnull(auditor);
    while (metrics_counted(COUNTER_AUDITS, AUDIT_RESULT_CLEAN) < before + 3)
        g_usleep(1000);
}
END_TEST

START_TEST(without_an_interval_only_who_asks_gets_one)
{
    g_autoptr(GString) answer = g_string_new(NULL);

    world_sync(&world);
    g_autoptr(auditor) auditor = start(0, 1);
    g_usleep(50000);
    ck_assert_int_eq(auditor_encode(auditor, answer), -1);
    ck_assert(g_str_has_prefix(answer->str, "{\"run\":0,"));
    for (int i = 1; i < 4; i++) {
        g_autofree char *wanted = g_strdup_printf("{\"run\":%d,\"running\":false", i);
        ck_assert_uint_eq(auditor_request(auditor), i);
        await(auditor, wanted);
    }
    g_string_truncate(answer, 0);
    ck_assert_int_ge(auditor_encode(auditor, answer), 0);
}
END_TEST

static struct auditor *the_auditor;

/* While the first list is read. */
static void ask_thrice(void *data)
{
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(auditor_request(the_auditor), 1);
    await(the_auditor, "{\"run\":0,\"running\":true,");
}

START_TEST(there_is_one_audit_at_a_time)
{
    g_autoptr(GString) answer = g_string_new(NULL);

    world_sync(&world);
    fake_cluster_script_list(cluster, &(struct fake_step){.hook = ask_thrice});
    g_autoptr(auditor) auditor = start(0, 0);
    the_auditor = auditor;
    auditor_request(auditor);
    await(auditor, "{\"run\":1,\"running\":false");
    g_usleep(20000);
    auditor_encode(auditor, answer);
    ck_assert(g_str_has_prefix(answer->str, "{\"run\":1,"));
}
END_TEST

/* The pause is nine times as long as the audit took. */
START_TEST(there_is_time_between_audits)
{
    world_sync(&world);
    fake_cluster_script_list(cluster, &(struct fake_step){.delay_ms = 30});
    g_autoptr(auditor) auditor = start(0, 0);
    const int64_t began_us = g_get_monotonic_time();
    auditor_request(auditor);
    await(auditor, "{\"run\":1,");
    auditor_request(auditor);
    await(auditor, "{\"run\":2,");
    ck_assert_int_ge(g_get_monotonic_time() - began_us,
                     10 * 29 * 1000); /* parts of a ms are cut off */
}
END_TEST

START_TEST(a_failure_keeps_the_last_report)
{
    world_sync(&world);
    add("a", NULL);
    world_catch_up(&world);
    g_autoptr(auditor) auditor = start(0, 0);
    auditor_request(auditor);
    await(auditor, "{\"run\":1,");
    fake_cluster_script_list(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    auditor_request(auditor);
    await(auditor, "{\"run\":2,\"running\":false,\"error\":\"fake: timed out\",\"report\":{");
    auditor_request(auditor);
    await(auditor, "{\"run\":3,\"running\":false,\"error\":null,\"report\":{");
}
END_TEST

/* --- what pods are told ---------------------------------------------------------------------- */

static void await_posted(unsigned i, const char *part)
{
    int64_t until_us = g_get_monotonic_time() + PATIENCE_MS * 1000;

    for (;;) {
        g_autofree char *text = fake_cluster_posted(cluster, i);
        if (text && strstr(text, part))
            return;
        ck_assert_msg(g_get_monotonic_time() < until_us, "%s", text);
        g_usleep(1000);
    }
}

/* However often somebody asks, the cluster is read once meanwhile; a look costs it nothing. */
START_TEST(audits_that_are_asked_for_have_a_pause)
{
    g_autoptr(GString) answer = g_string_new(NULL);

    world_sync(&world);
    g_autoptr(auditor) auditor = auditor_start(
        &world.extender,
        &(struct auditor_options){.settle_ms = 1, .look_ms = 1, .rest_ms = 3600000}, NULL);
    auditor_request(auditor);
    await(auditor, "{\"run\":1,\"running\":false");
    add("a", NULL);
    world_catch_up(&world);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(auditor_request(auditor), 2);
    await_posted(0, "GPUCardUnknown ml/a: ");
    auditor_encode(auditor, answer);
    ck_assert_msg(g_str_has_prefix(answer->str, "{\"run\":1,\"running\":false"), "%s", answer->str);
}
END_TEST

START_TEST(a_pod_is_told_without_an_audit)
{
    world_sync(&world);
    add("a", NULL);
    world_catch_up(&world);
    g_autoptr(auditor) auditor = start(0, 1);
    ck_assert_ptr_nonnull(auditor);
    await_posted(0, "GPUCardUnknown ml/a: On node duo: bound by a scheduler that does not ask "
                    "gpuledger: no card is written (no card, 6GiB; nothing: its node side gives it no card). What "
                    "to do: ");
    ck_assert_uint_eq(auditor_request(auditor), 1);
}
END_TEST

START_TEST(an_overbooked_card_is_told)
{
    world_sync(&world);
    add("a", "1");
    add("b", "1");
    world_catch_up(&world);
    g_autoptr(auditor) auditor = start(0, 1);
    ck_assert_ptr_nonnull(auditor);
    await_posted(0, "GPUCardOverbooked ml/b: ");
}
END_TEST

static uint64_t no_term(struct leadership *leadership)
{
    return 0;
}

START_TEST(a_replica_that_stands_by_tells_nobody)
{
    static const struct leadership_ops ops = {.term = no_term};
    static struct leadership leadership = {&ops};

    world.extender.leadership = &leadership;
    world_sync(&world);
    add("a", NULL);
    world_catch_up(&world);
    g_autoptr(auditor) auditor = start(0, 1);
    auditor_request(auditor);
    await(auditor, "\"differences\":1,");
    g_usleep(20000);
    g_autofree char *posted = fake_cluster_posted(cluster, 0);
    ck_assert_ptr_null(posted);
}
END_TEST

/* --- metrics --------------------------------------------------------------------------------- */

START_TEST(metrics_are_those_of_the_last_audit)
{
    g_autoptr(GString) before = g_string_new(NULL);
    g_autoptr(GString) after = g_string_new(NULL);
    uint64_t different = metrics_counted(COUNTER_AUDITS, AUDIT_RESULT_DIFFERENT);

    world_sync(&world);
    add("a", NULL);
    world_catch_up(&world);
    g_autoptr(auditor) auditor = start(0, 0);
    auditor_metrics(auditor, before);
    ck_assert_str_eq(before->str, "");
    auditor_request(auditor);
    await(auditor, "{\"run\":1,");
    auditor_metrics(auditor, after);
    ck_assert(strstr(after->str, "\ngpuledger_audit_differences{cause=\"foreign\"} 1\n"));
    ck_assert(strstr(after->str, "\ngpuledger_audit_differences{cause=\"missing\"} 0\n"));
    ck_assert(strstr(after->str, "\ngpuledger_audit_last_run_timestamp_seconds 1"));
    g_autoptr(GString) answer = g_string_new(NULL);
    auditor_encode(auditor, answer);
    const int took_ms = atoi(strstr(answer->str, "\"durationMs\":") + strlen("\"durationMs\":"));
    g_autofree char *duration = g_strdup_printf("\ngpuledger_audit_duration_seconds %d.%03d\n",
                                                took_ms / 1000, took_ms % 1000);
    ck_assert(strstr(after->str, duration));
    ck_assert_uint_eq(metrics_counted(COUNTER_AUDITS, AUDIT_RESULT_DIFFERENT), different + 1);
}
END_TEST

START_TEST(a_quota_that_is_not_kept_has_an_event_of_its_namespace)
{
    const struct string_pair min[] = {{"gpuledger.io/gpus", "some"}};
    const struct resource_quota_view unread = {
        .ns = "ml", .name = "gpus", .elastic = true, .min = {min, 1}};

    store_free(world.store);
    world.store = world.extender.store =
        store_new(&(struct store_options){.policy = policy_find("binpack"),
                                          .patience_ms = 60000,
                                          .elastic_quotas = true,
                                          .silent = true});
    world_sync(&world);
    store_put_quota(world.store, &unread);
    g_autoptr(auditor) auditor = start(0, 0);
    auditor_request(auditor);
    await_posted(0, "GPUQuotaUnkept ml/ml: gpus: a quota cannot be kept, so pods of its namespace "
                    "are refused (cannot be read");
}
END_TEST

/* --- the end --------------------------------------------------------------------------------- */

/* Or the test takes longer than it may. */
START_TEST(it_ends_at_once)
{
    auditor_free(start(NEVER_MS, NEVER_MS)); /* waiting for the lists */
    world_sync(&world);
    struct auditor *auditor = start(NEVER_MS, NEVER_MS);
    g_usleep(10000);
    auditor_free(auditor); /* waiting for the time */
    add("a", "0");
    auditor =
        auditor_start(&world.extender, &(struct auditor_options){.settle_ms = NEVER_MS}, NULL);
    auditor_request(auditor);
    await(auditor, "\"running\":true");
    auditor_free(auditor); /* waiting for the watch */
    auditor_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("auditor");
    TCase *tests = tcase_create("auditor");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_first_audit_waits_for_the_lists);
    tcase_add_test(tests, audits_come_again_and_again);
    tcase_add_test(tests, without_an_interval_only_who_asks_gets_one);
    tcase_add_test(tests, a_quota_that_is_not_kept_has_an_event_of_its_namespace);
    tcase_add_test(tests, there_is_one_audit_at_a_time);
    tcase_add_test(tests, there_is_time_between_audits);
    tcase_add_test(tests, a_failure_keeps_the_last_report);
    tcase_add_test(tests, audits_that_are_asked_for_have_a_pause);
    tcase_add_test(tests, a_pod_is_told_without_an_audit);
    tcase_add_test(tests, an_overbooked_card_is_told);
    tcase_add_test(tests, a_replica_that_stands_by_tells_nobody);
    tcase_add_test(tests, metrics_are_those_of_the_last_audit);
    tcase_add_test(tests, it_ends_at_once);

    return suite_run(suite);
}
