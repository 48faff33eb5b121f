/* SPDX-License-Identifier: Apache-2.0 */
/* Who writes seals, and with which key: keys that change, replicas of other versions, patches that fail. */
#include "sealed_cluster.h"
#include "suite.h"

#include "base/metrics.h"

static void expect_sealed(const char *key, unsigned n)
{
    store_lock(first.store);
    ck_assert_uint_eq(sealing_count(store_sealing(first.store), key), n);
    store_unlock(first.store);
}

START_TEST(a_rotated_key_seals_anew)
{
    run_p();
    set_keys(KEY OTHER_KEY ADOPTED);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 1);
    world_catch_up(&first);
    g_autofree char *seal = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    ck_assert(g_str_has_prefix(seal, "v1:0000000b:"));
    expect_sealed("0000000a", 0);
    expect_sealed("0000000b", 1);
    expect_sealed(NULL, 0);
    set_keys(OTHER_KEY ADOPTED);
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    restart();
    expect_used(&now, 3, 0, 0);
}
END_TEST

/* The patch has failed, and the watch shows the pod with its old seal once more. */
START_TEST(an_old_seal_that_is_shown_again_is_not_enough)
{
    run_p();
    set_keys(KEY OTHER_KEY ADOPTED);
    fake_cluster_script_annotate(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 0);
    expect_sealed(NULL, 1);
    fake_cluster_annotate(cluster, "p", "example.com/x", "1");
    world_catch_up(&first);
    expect_sealed(NULL, 1);
    expect_sealed("0000000a", 1);
}
END_TEST

/* Or its key could never be dropped. */
START_TEST(a_pod_that_is_gone_needs_no_key)
{
    run_p();
    expect_sealed("0000000a", 1);
    fake_cluster_delete_pod(cluster, "p");
    world_catch_up(&first);
    expect_sealed("0000000a", 0);
    expect_sealed(NULL, 0);
}
END_TEST

/* Of two replicas the one that serves is of a version that knows no seals. */
START_TEST(what_an_older_version_binds_is_sealed_by_the_one_that_watches)
{
    begin(&now);
    end(&first);
    struct seals *kept = seals;
    seals = NULL;
    begin(&first);
    seals = kept;
    run_p();
    g_autofree char *none = fake_cluster_annotation(cluster, "p", SEAL_ANNOTATION);
    ck_assert_ptr_null(none);
    g_autofree char *pod = fake_cluster_pod_json(cluster, "p");
    feed_event(now.store, FEED_PODS, false, pod);
    ck_assert_uint_eq(sealer_run(now.store, now.extender.cluster), 1);
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    restart();
    expect_used(&now, 3, 0, 0);
}
END_TEST

/* After a rollback: as it was before there were seals. */
START_TEST(an_older_version_reads_what_is_annotated)
{
    run_p();
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    struct seals *kept = seals;
    seals = NULL;
    restart();
    seals = kept;
    expect_used(&now, 0, 3, 0);
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_NONE);
}
END_TEST

/* What one replica has sealed the next one knows. */
START_TEST(a_binding_that_arrives_after_a_takeover_is_sealed)
{
    first.extender.bind_timeout_ms = 100;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_DELAY_EFFECT, OUTCOME_UNKNOWN});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    g_autofree char *error = world_bind(&first, "p", "duo");
    ck_assert_str_ne(error, "");
    begin(&now);
    fake_cluster_carry_out(cluster);
    fake_cluster_start(cluster, "p");
    fake_cluster_annotate(cluster, "p", INDEX, "1");
    restart();
    ck_assert_int_eq(distrust_of(&now, "uid-p"), DISTRUST_EDITED);
    const struct allocation *held = ledger_get(store_lock(now.store), "uid-p");
    ck_assert_int_eq(held->shares[0].card, 0);
    store_unlock(now.store);
}
END_TEST

START_TEST(a_lost_key_leaves_nothing_sealed)
{
    run_p();
    set_keys(OTHER_KEY ADOPTED);
    restart();
    expect_used(&now, 0, 0, 3);
}
END_TEST

START_TEST(a_failed_patch_is_tried_again_later)
{
    others_run_r();
    world_catch_up(&first);
    fake_cluster_script_annotate(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    const uint64_t failed = metrics_counted(COUNTER_SEALS, SEAL_RESULT_FAILED);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 0);
    ck_assert_uint_eq(metrics_counted(COUNTER_SEALS, SEAL_RESULT_FAILED), failed + 1);
    ck_assert_uint_eq(sealer_run(first.store, first.extender.cluster), 0);
    ck_assert_uint_eq(fake_cluster_n_annotated(cluster), 1);
    store_lock(first.store);
    ck_assert(!sealing_has_tried(store_sealing(first.store)));
    store_unlock(first.store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seal_keys");
    TCase *tests = tcase_create("seal_keys");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_rotated_key_seals_anew);
    tcase_add_test(tests, an_old_seal_that_is_shown_again_is_not_enough);
    tcase_add_test(tests, a_pod_that_is_gone_needs_no_key);
    tcase_add_test(tests, what_an_older_version_binds_is_sealed_by_the_one_that_watches);
    tcase_add_test(tests, an_older_version_reads_what_is_annotated);
    tcase_add_test(tests, a_binding_that_arrives_after_a_takeover_is_sealed);
    tcase_add_test(tests, a_lost_key_leaves_nothing_sealed);
    tcase_add_test(tests, a_failed_patch_is_tried_again_later);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
