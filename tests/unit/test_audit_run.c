/* SPDX-License-Identifier: Apache-2.0 */
/* How an audit goes: what changes meanwhile, how it fails, its limits and its report. */
#include "audited_world.h"
#include "suite.h"

#include <pthread.h>

/* --- what changes meanwhile ------------------------------------------------------------------ */

static void deliver(void)
{
    world_catch_up(&world);
}

/* The watch is late with all of it, but not for long. */
START_TEST(what_the_watch_delivers_in_time_is_no_difference)
{
    add_known("gone", "duo", 4, "1");
    add_known("edited", "duo", 4, "0");
    fake_cluster_delete_pod(cluster, "gone");
    fake_cluster_annotate(cluster, "edited", ASSIGNED, "false");
    add("new", "duo", 1, "0");
    fake_cluster_put_node(cluster, "duo", 40, 2);
    meanwhile = deliver;
    expect("");
    meanwhile = NULL;
}
END_TEST

static void end_pod(void *data)
{
    fake_cluster_delete_pod(cluster, "a");
}

/* Asked twice, answered differently: the watch could not have delivered that in time. */
START_TEST(a_pod_that_changes_meanwhile_is_no_difference)
{
    add("a", "duo", 4, "1");
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER});
    fake_cluster_script_get(cluster, &(struct fake_step){.hook = end_pod});
    expect("");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 2);
}
END_TEST

static void edit_pod(void *data)
{
    fake_cluster_annotate(cluster, "a", ASSUME_TIME, LONG_AGO);
}

/* It was edited, and is once more: the watch may be about to deliver both. */
START_TEST(a_pod_that_changes_again_is_no_difference)
{
    add_known("a", "duo", 4, "1");
    add("a", "duo", 5, "1");
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER});
    fake_cluster_script_get(cluster, &(struct fake_step){.hook = edit_pod});
    expect("");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 2);
    expect("amount a duo | card 1, 5GiB | card 1, 4GiB\n");
}
END_TEST

static void deliver_late(void *data)
{
    world_catch_up(&world);
}

/* The ledger has heard of it before it is told of, while the pod was asked about once more. */
START_TEST(what_is_delivered_at_the_last_moment_is_no_difference)
{
    add("a", "duo", 4, "1");
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER});
    fake_cluster_script_get(cluster, &(struct fake_step){.hook = deliver_late});
    expect("");
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 2);
}
END_TEST

static void enlarge_node(void *data)
{
    fake_cluster_put_node(cluster, "mono", 80, 1);
}

/* Of five lists the last two are the second look at nodes. */
START_TEST(a_node_that_changes_again_is_no_difference)
{
    fake_cluster_put_node(cluster, "mono", 40, 1);
    for (int i = 0; i < 3; i++)
        fake_cluster_script_list(cluster, &(struct fake_step){FAKE_ANSWER});
    fake_cluster_script_list(cluster, &(struct fake_step){.hook = enlarge_node});
    expect("");
    expect("topology - mono | 80GiB | 10GiB\n");
}
END_TEST

static void *use_the_store(void *data)
{
    store_is_synced(world.store);
    return NULL;
}

/* From another thread, for the lock is no recursive one. */
static void use_the_lock(void *data)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_the_store, NULL);
    pthread_join(thread, NULL);
}

START_TEST(the_lock_is_free_while_the_cluster_is_asked)
{
    const struct fake_step step = {.hook = use_the_lock};

    add("a", "duo", 4, "1");
    fake_cluster_put_node(cluster, "mono", 40, 2);
    for (int i = 0; i < 5; i++)
        fake_cluster_script_list(cluster, &step);
    for (int i = 0; i < 2; i++)
        fake_cluster_script_get(cluster, &step);
    expect("missing a duo | card 1, 4 units | -\n"
           "topology - mono | 20GiB, 20GiB | 10GiB\n");
}
END_TEST

struct feeder {
    pthread_t thread;
    gint stop;
    gint steps; /* that are over */
};

static void *keep_changing(void *data)
{
    struct feeder *feeder = data;
    g_autoptr(GRand) random = g_rand_new_with_seed(7);

    for (unsigned step = 0; !g_atomic_int_get(&feeder->stop); step++) {
        g_autofree char *name = g_strdup_printf("p%d", g_rand_int_range(random, 0, 10));
        g_autofree char *uid = fake_cluster_uid(cluster, name);
        const char *card = g_rand_boolean(random) ? "0" : "1";
        g_autofree char *fresh = g_strdup_printf("uid-4%018u", step); /* and a time to come */
        if (!uid)
            fake_cluster_add_pod(cluster, &(struct fake_pod){.name = name,
                                                             .uid = fresh,
                                                             .node = "duo",
                                                             .mem = 1,
                                                             .card = card});
        else if (g_rand_boolean(random))
            fake_cluster_delete_pod(cluster, name);
        else
            fake_cluster_annotate(cluster, name, ASSUME_TIME, fresh + 4);
        g_usleep(1000); /* the watch is always late */
        world_catch_up(&world);
        g_atomic_int_inc(&feeder->steps);
    }
    return NULL;
}

/* Long enough for the watch to deliver what had happened before, and some more. */
static bool rest_for_real(void *data, int64_t duration_ms)
{
    struct feeder *feeder = data;
    gint before = g_atomic_int_get(&feeder->steps);

    while (g_atomic_int_get(&feeder->steps) < before + 5)
        g_usleep(1000);
    return true;
}

START_TEST(a_busy_cluster_looks_no_different)
{
    unsigned late = 0; /* audits in a row with a difference */
    struct feeder feeder = {.stop = 0};
    const struct audit_options patient = {
        .stuck_ms = 60000, .rest = rest_for_real, .rest_data = &feeder};

    pthread_create(&feeder.thread, NULL, keep_changing, &feeder);
    while (fake_cluster_n_gets(cluster) < 40) { /* as many suspects */
        g_autoptr(audit_report) report =
            audit_compare(world.store, world.extender.cluster, &patient, NULL);
        g_autofree char *rows = rows_text(report);
        /* A feed that is held up for longer than the audit rests looks like a difference, once. */
        late = audit_report_differences(report) > 0 ? late + 1 : 0;
        ck_assert_msg(late < 3, "%s", rows);
    }
    g_atomic_int_set(&feeder.stop, 1);
    pthread_join(feeder.thread, NULL);
}
END_TEST

/* --- when it cannot be done ------------------------------------------------------------------ */

static void expect_failure(const struct audit_options *with, const char *message)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(audit_compare(world.store, world.extender.cluster, with, &error));
    ck_assert_str_eq(error->message, message);
}

START_TEST(a_cluster_that_cannot_be_listed_tells_nothing)
{
    for (int lists = 0; lists < FEED_BUDGETS /* which is not read */; lists++) {
        for (int i = 0; i < lists; i++)
            fake_cluster_script_list(cluster, &(struct fake_step){FAKE_ANSWER});
        fake_cluster_script_list(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
        expect_failure(&options, "fake: timed out");
    }
}
END_TEST

START_TEST(a_pod_that_cannot_be_asked_about_tells_nothing)
{
    add("a", "duo", 4, "1");
    for (int asked = 0; asked < 2; asked++) {
        for (int i = 0; i < asked; i++)
            fake_cluster_script_get(cluster, &(struct fake_step){FAKE_ANSWER});
        fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
        expect_failure(&options, "fake: refused");
    }
}
END_TEST

static bool give_up(void *data, int64_t duration_ms)
{
    return false;
}

START_TEST(it_can_be_stopped)
{
    add("a", "duo", 4, "1");
    expect_failure(&(struct audit_options){.rest = give_up}, "stopped");
}
END_TEST

/* --- limits ---------------------------------------------------------------------------------- */

START_TEST(too_many_suspects_are_counted)
{
    for (int i = 0; i < 510; i++) {
        g_autofree char *name = g_strdup_printf("p%03d", i);
        add(name, "duo", 1, "1");
    }
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->counts[AUDIT_MISSING], 500);
    ck_assert_uint_eq(report->unchecked, 10);
}
END_TEST

/* One that is looked at first fills the table, and another one with few is looked at after it. */
START_TEST(who_has_most_suspects_loses_one)
{
    for (int i = 0; i < 510; i++) {
        g_autofree char *name = g_strdup_printf("evil/p%03d", i);
        add(name, "duo", 1, "1");
    }
    for (int i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("honest/p%03d", i);
        add(name, "duo", 1, "1");
    }
    g_autoptr(audit_report) report = compare();
    guint honest = 0;
    for (guint i = 0; i < report->rows->len; i++)
        honest += g_strcmp0(((const struct audit_row *)report->rows->pdata[i])->ns, "honest") == 0;
    ck_assert_uint_eq(honest, 5);
    ck_assert_uint_eq(report->counts[AUDIT_MISSING], 500);
    ck_assert_uint_eq(report->unchecked, 15);
}
END_TEST

START_TEST(too_many_rows_are_counted)
{
    for (int i = 0; i < AUDIT_ROWS_MAX + 5; i++) {
        g_autofree char *name = g_strdup_printf("p%04d", i);
        add(name, "duo", 1, NULL);
    }
    world_catch_up(&world);
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->counts[AUDIT_FOREIGN], AUDIT_ROWS_MAX + 5);
    ck_assert_uint_eq(report->rows->len, AUDIT_ROWS_MAX);
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;
    json_writer_init(&writer, text);
    audit_report_encode(&writer, report);
    ck_assert_msg(g_str_has_suffix(text->str, ",\"omitted\":5}"), "%s",
                  text->str + text->len - 40);
}
END_TEST

START_TEST(every_cause_is_explained)
{
    for (int cause = AUDIT_NONE + 1; cause < AUDIT_N; cause++) {
        const struct audit_cause_info *info = audit_cause_info((enum audit_cause)cause);
        ck_assert(*info->code && *info->text && *info->advice);
        ck_assert(info->event < POD_EVENT_N);
        for (int other = 0; other < cause; other++)
            ck_assert_str_ne(audit_cause_info((enum audit_cause)other)->code, info->code);
    }
}
END_TEST

START_TEST(a_report_is_json)
{
    add_known("a", "duo", 4, NULL);
    g_autoptr(audit_report) report = compare();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    struct json_writer writer;

    json_writer_init(&writer, text);
    audit_report_encode(&writer, report);
    const cJSON *json = json_parse(arena, text->str, text->len, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_ptr_nonnull(strstr(
        text->str, "\"differences\":1,\"unchecked\":0,\"causes\":[{\"cause\":\"foreign\",\"count\":1,"));
    ck_assert_ptr_nonnull(
        strstr(text->str, "\"rows\":[{\"cause\":\"foreign\",\"namespace\":\"ml\",\"name\":\"a\","
                          "\"uid\":\"uid-a\",\"node\":\"duo\",\"cluster\":\"no card, 4GiB\","
                          "\"ledger\":\"nothing: its node side gives it no card\"}],\"omitted\":0}"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit_run");
    TCase *tests = tcase_create("audit");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_the_watch_delivers_in_time_is_no_difference);
    tcase_add_test(tests, a_pod_that_changes_meanwhile_is_no_difference);
    tcase_add_test(tests, a_pod_that_changes_again_is_no_difference);
    tcase_add_test(tests, what_is_delivered_at_the_last_moment_is_no_difference);
    tcase_add_test(tests, a_node_that_changes_again_is_no_difference);
    tcase_add_test(tests, the_lock_is_free_while_the_cluster_is_asked);
    tcase_add_test(tests, a_busy_cluster_looks_no_different);
    tcase_add_test(tests, a_cluster_that_cannot_be_listed_tells_nothing);
    tcase_add_test(tests, a_pod_that_cannot_be_asked_about_tells_nothing);
    tcase_add_test(tests, it_can_be_stopped);
    tcase_add_test(tests, too_many_suspects_are_counted);
    tcase_add_test(tests, who_has_most_suspects_loses_one);
    tcase_add_test(tests, too_many_rows_are_counted);
    tcase_add_test(tests, every_cause_is_explained);
    tcase_add_test(tests, a_report_is_json);

    return suite_run(suite);
}
