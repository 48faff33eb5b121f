/* SPDX-License-Identifier: Apache-2.0 */
#include "app/audit.h"

#include "suite.h"
#include "world.h"

#include <gpuledger/error.h>
#include <string.h>

#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define POD "ALIYUN_COM_GPU_MEM_POD"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define LONG_AGO "1700000000000000000"

static struct world world;
static struct fake_cluster *cluster;

/* "duo" has two cards of 10 units, "mono" one of 10. */
static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    world_sync(&world);
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static void add(const char *name, const char *node, int64_t mem, const char *card)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){
                                      .name = name, .node = node, .mem = mem, .card = card});
}

static void add_known(const char *name, const char *node, int64_t mem, const char *card)
{
    add(name, node, mem, card);
    world_catch_up(&world);
}

static void annotate(const char *name, const char *key, const char *value)
{
    fake_cluster_annotate(cluster, name, key, value);
    world_catch_up(&world);
}

/* --- reports -------------------------------------------------------------------------------- */

/* What happens while the audit gives the watch its time; NULL: nothing. */
static void (*meanwhile)(void);

static bool rest(void *data, int64_t duration_ms)
{
    if (meanwhile)
        meanwhile();
    return true;
}

static const struct audit_options options = {.stuck_ms = 60000, .rest = rest};

static char *row_text(const struct audit_row *row)
{
    return g_strdup_printf("%s %s %s | %s | %s\n", audit_cause_info(row->cause)->code,
                           row->name ? row->name : "-", row->node,
                           row->cluster ? row->cluster : "-", row->ledger ? row->ledger : "-");
}

static char *rows_text(const struct audit_report *report)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < report->rows->len; i++) {
        g_autofree char *row = row_text(g_ptr_array_index(report->rows, i));
        g_string_append(text, row);
    }
    return g_string_free(text, FALSE);
}

static struct audit_report *compare(void)
{
    g_autoptr(GError) error = NULL;
    struct audit_report *report =
        audit_compare(world.store, world.extender.cluster, &options, &error);
    ck_assert_msg(report, "%s", error ? error->message : "");
    ck_assert(report->compared);
    return report;
}

/* One line per row: "cause pod node | cluster | ledger". */
static void expect(const char *wanted)
{
    g_autoptr(audit_report) report = compare();
    g_autofree char *rows = rows_text(report);
    ck_assert_msg(g_str_equal(rows, wanted), "got\n%swanted\n%s", rows, wanted);
}

/* --- the cluster itself ---------------------------------------------------------------------- */

START_TEST(nothing_is_wrong_with_a_sound_cluster)
{
    add_known("a", "duo", 6, "0");
    add_known("b", "duo", 6, "1");
    add_known("c", "mono", 10, "0");
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->rows->len, 0);
    ck_assert_uint_eq(audit_report_differences(report), 0);
    ck_assert_uint_eq(report->pods, 3);
    ck_assert_uint_eq(report->nodes, 2);
}
END_TEST

START_TEST(pods_of_other_schedulers_are_found)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "a", .mem = 4});
    fake_cluster_bind_bare(cluster, "a", "duo");
    add_known("b", "mono", 4, NULL);
    expect("foreign a duo | no card, 4GiB | counted on every card\n"
           "foreign b mono | no card, 4GiB | counted on its only card\n");
}
END_TEST

START_TEST(a_lost_index_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", IDX, NULL);
    expect("annotation_lost a duo | no card, 4GiB | card 1 at first\n");
    annotate("a", POD, NULL);
    annotate("a", ASSIGNED, NULL);
    expect("annotation_lost a duo | no card, 4GiB | card 1 at first\n");
    annotate("a", IDX, "1");
    expect("");
}
END_TEST

/* After a restart nobody remembers the card, but the other annotations are there. */
START_TEST(an_index_lost_before_our_time_is_found)
{
    add("a", "duo", 4, "1");
    fake_cluster_annotate(cluster, "a", IDX, NULL);
    world_sync(&world);
    expect("annotation_lost a duo | no card, 4GiB | counted on every card\n");
}
END_TEST

START_TEST(a_malformed_index_is_found)
{
    add_known("a", "duo", 4, "0,1");
    expect("annotation_malformed a duo | no card, 4GiB | counted on every card\n");
}
END_TEST

START_TEST(an_edited_index_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", IDX, "0");
    expect("annotation_edited a duo | card 0, 4GiB | card 1 at first\n");
}
END_TEST

START_TEST(an_edited_amount_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", POD, "1");
    expect("annotation_edited a duo | card 1, 4GiB | by its containers; the annotation states "
           "another amount\n");
}
END_TEST

START_TEST(a_card_that_is_gone_is_found)
{
    add_known("a", "duo", 4, "1");
    fake_cluster_put_node(cluster, "duo", 10, 1);
    world_catch_up(&world);
    expect("card_gone a duo | card 1, 4GiB | the node has 1 cards\n");
    fake_cluster_delete_node(cluster, "duo"); /* its pods will follow */
    world_catch_up(&world);
    expect("");
}
END_TEST

START_TEST(who_came_last_to_a_full_card_is_found)
{
    add_known("first", "duo", 6, "0");
    annotate("first", ASSUME_TIME, "1");
    add_known("second", "duo", 6, "0");
    annotate("second", ASSUME_TIME, "2");
    add_known("some-time", "duo", 1, "0");
    add_known("beside", "duo", 6, "1");
    fake_cluster_set_phase(cluster, "first", "Running");
    fake_cluster_set_phase(cluster, "second", "Running");
    world_catch_up(&world);
    expect("card_overbooked second duo | card 0, 6GiB | card 0 holds 13GiB of 10GiB\n"
           "card_overbooked some-time duo | card 0, 1GiB | card 0 holds 13GiB of 10GiB\n");
}
END_TEST

START_TEST(a_pod_that_waits_for_long_is_found)
{
    add_known("a", "duo", 4, "1");
    annotate("a", ASSUME_TIME, LONG_AGO);
    annotate("a", ASSIGNED, "false");
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(report->counts[AUDIT_UNASSIGNED], 1);
    const struct audit_row *row = g_ptr_array_index(report->rows, 0);
    ck_assert_msg(g_str_has_prefix(row->ledger, "waiting for "), "%s", row->ledger);
    g_autofree char *now = g_strdup_printf("%" G_GINT64_FORMAT, g_get_real_time() * 1000);
    annotate("a", ASSUME_TIME, now);
    expect("");
}
END_TEST

START_TEST(one_side_alone_can_be_looked_at)
{
    add_known("a", "duo", 4, NULL);
    g_autoptr(audit_report) report = audit_look(world.store, &options);
    g_autofree char *rows = rows_text(report);
    ck_assert_str_eq(rows, "foreign a duo | no card, 4GiB | counted on every card\n");
    ck_assert(!report->compared);
    ck_assert_uint_eq(fake_cluster_n_gets(cluster), 0);
}
END_TEST

/* --- the ledger against the cluster ----------------------------------------------------------- */

START_TEST(a_pod_that_the_ledger_lacks_is_found)
{
    add("a", "duo", 4, "1");
    expect("missing a duo | card 1, 4 units | -\n");
}
END_TEST

START_TEST(a_pod_that_is_left_over_is_found)
{
    add_known("gone", "duo", 4, "1");
    add_known("ended", "duo", 4, "0");
    add_known("another", "mono", 4, "0");
    fake_cluster_delete_pod(cluster, "gone");
    fake_cluster_set_phase(cluster, "ended", "Failed");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "another", .uid = "new", .mem = 1});
    expect("left_over another mono | - | card 0, 4GiB\n"
           "left_over ended duo | - | card 0, 4GiB\n"
           "left_over gone duo | - | card 1, 4GiB\n");
}
END_TEST

START_TEST(devices_are_named_by_their_resource)
{
    feed_event(world.store, FEED_PODS, false,
               "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\"},"
               "\"spec\":{\"nodeName\":\"mono\",\"containers\":[{\"name\":\"c\","
               "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"3\"}}}]},"
               "\"status\":{\"phase\":\"Running\"}}");
    expect("left_over a mono | - | 3 of nvidia.com/gpu\n");
}
END_TEST

START_TEST(a_pod_in_another_place_is_found)
{
    add_known("card", "duo", 4, "1");
    add_known("node", "duo", 4, "0");
    fake_cluster_annotate(cluster, "card", IDX, "0");
    add("node", "mono", 4, "0");
    expect("place card duo | duo: card 0, 4GiB | duo: card 1, 4GiB\n"
           "place node mono | mono: card 0, 4GiB | duo: card 0, 4GiB\n");
}
END_TEST

START_TEST(another_amount_is_found)
{
    add_known("a", "duo", 4, "1");
    add("a", "duo", 5, "1");
    expect("amount a duo | card 1, 5GiB | card 1, 4GiB\n");
}
END_TEST

START_TEST(an_older_state_is_found)
{
    add_known("a", "duo", 4, "1");
    fake_cluster_annotate(cluster, "a", ASSIGNED, "false");
    fake_cluster_annotate(cluster, "a", ASSUME_TIME, "7");
    expect("stale a duo | card 1, 4GiB, not assigned, waiting, placed at 7 | "
           "card 1, 4GiB, assigned, waiting, placed at 0\n");
}
END_TEST

START_TEST(nodes_with_other_cards_are_found)
{
    fake_cluster_put_node(cluster, "duo", 20, 1);
    fake_cluster_put_unhealthy(cluster, "mono", "0");
    fake_cluster_put_node(cluster, "new", 8, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    expect("topology - duo | 20GiB | 10GiB, 10GiB\n"
           "topology - mono | 10GiB unhealthy | 10GiB\n"
           "topology - new | 8GiB | -\n"
           "topology - plain | no cards | -\n");
    fake_cluster_delete_node(cluster, "duo");
    fake_cluster_deliver_all(cluster, world.store);
    expect("");
}
END_TEST

START_TEST(a_bind_under_way_is_no_difference)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_catch_up(&world);
    world_expect_bind(&world, "p", "mono", "");
    expect("unconfirmed p mono | card 0, 6GiB | card 0, 6GiB\n");
    g_autoptr(audit_report) report = compare();
    ck_assert_uint_eq(audit_report_differences(report), 0);
}
END_TEST

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
                          "\"ledger\":\"counted on every card\"}],\"omitted\":0}"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit");
    TCase *tests = tcase_create("audit");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nothing_is_wrong_with_a_sound_cluster);
    tcase_add_test(tests, pods_of_other_schedulers_are_found);
    tcase_add_test(tests, a_lost_index_is_found);
    tcase_add_test(tests, an_index_lost_before_our_time_is_found);
    tcase_add_test(tests, a_malformed_index_is_found);
    tcase_add_test(tests, an_edited_index_is_found);
    tcase_add_test(tests, an_edited_amount_is_found);
    tcase_add_test(tests, a_card_that_is_gone_is_found);
    tcase_add_test(tests, who_came_last_to_a_full_card_is_found);
    tcase_add_test(tests, a_pod_that_waits_for_long_is_found);
    tcase_add_test(tests, one_side_alone_can_be_looked_at);
    tcase_add_test(tests, a_pod_that_the_ledger_lacks_is_found);
    tcase_add_test(tests, a_pod_that_is_left_over_is_found);
    tcase_add_test(tests, devices_are_named_by_their_resource);
    tcase_add_test(tests, a_pod_in_another_place_is_found);
    tcase_add_test(tests, another_amount_is_found);
    tcase_add_test(tests, an_older_state_is_found);
    tcase_add_test(tests, nodes_with_other_cards_are_found);
    tcase_add_test(tests, a_bind_under_way_is_no_difference);
    tcase_add_test(tests, what_the_watch_delivers_in_time_is_no_difference);
    tcase_add_test(tests, a_pod_that_changes_meanwhile_is_no_difference);
    tcase_add_test(tests, the_lock_is_free_while_the_cluster_is_asked);
    tcase_add_test(tests, a_busy_cluster_looks_no_different);
    tcase_add_test(tests, a_cluster_that_cannot_be_listed_tells_nothing);
    tcase_add_test(tests, a_pod_that_cannot_be_asked_about_tells_nothing);
    tcase_add_test(tests, it_can_be_stopped);
    tcase_add_test(tests, too_many_suspects_are_counted);
    tcase_add_test(tests, too_many_rows_are_counted);
    tcase_add_test(tests, every_cause_is_explained);
    tcase_add_test(tests, a_report_is_json);

    return suite_run(suite);
}
