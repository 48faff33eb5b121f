/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods with volumes or claims come to bind minutes after filter: until then their room is kept from all others, as
 * kube-scheduler's own sums do. And which nominated pods count, and for whom.
 */
#include "core/ledger.h"
#include "preempting_extender.h"
#include "recorded_calls.h"
#include "store/store_state.h"
#include "suite.h"

#define KEPT_MS 600000
#define VOLUME "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"v\"}}],"

static struct moment now;
static struct cluster *no_cluster;

static const struct store_options keeping = {.patience_ms = 60000, .volume_bind_ms = KEPT_MS};

static void show_nothing(void)
{
}

static void list(void (*show_pods)(void))
{
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 1; i <= 2; i++)
        store_apply_node(extender.store,
                         &(struct node_view){.name = i == 1 ? "n1" : "n2",
                                             .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    show_pods();
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void setup_late(void)
{
    now = (struct moment){.now_ns = INT64_C(1900000000000000000), .now_ms = 100000};
    extender = (struct extender){.store = store_new(&keeping), .bind_timeout_ms = 3000};
    extender.cluster = no_cluster;
    list(show_nothing);
    store_set_moment(extender.store, &now);
}

static void pass_time(int64_t ms)
{
    now.now_ns += ms * 1000000;
    now.now_ms += ms;
}

static char *body_of(const char *uid, const char *mem, int priority, const char *spec,
                     const char *nodes)
{
    g_auto(GStrv) names = g_strsplit(nodes, ",", -1);
    g_autofree char *list = g_strjoinv("\",\"", names);

    return g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\"},\"spec\":{%s"
        "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%s\"}}}]}},\"NodeNames\":[\"%s\"]}",
        uid, uid, spec, priority, mem, list);
}

/* The nodes that filter lets pass, "n1,n2". */
static char *filter(const char *uid, const char *mem, int priority, const char *spec,
                    const char *nodes)
{
    g_autofree char *body = body_of(uid, mem, priority, spec, nodes);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, "\"Error\":\"\""), "%s", reply->str);
    const char *passing = strstr(reply->str, "\"NodeNames\":[") + strlen("\"NodeNames\":[");
    g_autofree char *names = g_strndup(passing, strcspn(passing, "]"));
    g_auto(GStrv) parts = g_strsplit(names, "\"", -1);
    return g_strjoinv("", parts);
}

static void expect(const char *uid, const char *mem, int priority, const char *spec,
                   const char *nodes, const char *passing)
{
    g_autofree char *found = filter(uid, mem, priority, spec, nodes);

    ck_assert_str_eq(found, passing);
}

/* A node of two cards of 10: "late" takes one, and "small" what is left. */
static void let_pass(const char *spec)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    expect("late", "8", 0, spec, "n1", "n1");
}

static void apply_nominated(const char *scheduler)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "coming",
                                       .uid = "coming",
                                       .scheduler_name = scheduler,
                                       .nominated_node = "n1",
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "8"})})});
}

/* --- volumes and claims ----------------------------------------------------------------------- */

START_TEST(its_room_is_kept_from_pods_of_any_priority)
{
    static const char *const specs[] = {
        VOLUME,
        "\"volumes\":[{\"name\":\"v\",\"ephemeral\":{\"volumeClaimTemplate\":{}}}],",
        "\"resourceClaims\":[{\"name\":\"r\"}],",
    };

    let_pass(specs[_i]);
    pass_time(KEPT_MS - 1);
    expect("small", "3", 0, "", "n1", "");
    expect("urgent", "3", 1000, "", "n1", "");
    expect("beside", "2", 0, "", "n1", "n1");
    expect("elsewhere", "10", 0, "", "n2", "n2");
    expect("late", "8", 0, specs[_i], "n1", "n1"); /* not from itself */
}
END_TEST

START_TEST(of_others_nothing_is_kept_for_long)
{
    static const char *const specs[] = {
        "",
        "\"volumes\":[{\"name\":\"v\",\"configMap\":{\"name\":\"m\"}}],",
        "\"volumes\":[{\"name\":\"w\",\"emptyDir\":{}}],",
        "\"resourceClaims\":[],",
    };

    let_pass(specs[_i]);
    pass_time(HINT_LASTS_MS + 1);
    expect("small", "3", 0, "", "n1", "n1");
}
END_TEST

static bool has_freed(void (*change)(void))
{
    g_free(filter("other", "3", 0, "", "n1"));
    const uint64_t before = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    change();
    g_autofree char *passing = filter("small", "3", 0, "", "n1");
    const uint64_t after = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    return g_str_equal(passing, "n1") && after > before; /* whoever waits may be woken */
}

static void let_time_end(void)
{
    pass_time(KEPT_MS);
}

static void ask_elsewhere(void)
{
    expect("late", "8", 0, VOLUME, "n2", "n2");
}

static void ask_in_vain(void)
{
    expect("late", "11", 0, VOLUME, "n1", "");
}

static void end_pod(void)
{
    store_delete_pod(extender.store, "late");
}

static void bind_elsewhere(void)
{
    apply((struct pod){"late", "8", .node = "n2", .card = "0"});
}

START_TEST(it_ends)
{
    static void (*const ends[])(void) = {let_time_end, ask_elsewhere, ask_in_vain, end_pod,
                                         bind_elsewhere};

    let_pass(VOLUME);
    ck_assert(has_freed(ends[_i]));
}
END_TEST

/* Once it is there it counts as what it is. */
START_TEST(it_counts_once)
{
    let_pass(VOLUME);
    apply((struct pod){"late", "8", .node = "n1", .card = "1"});
    expect("beside", "2", 0, "", "n1", "n1");
    expect("small", "3", 0, "", "n1", "");
}
END_TEST

/* Nor twice where its status says where it goes. */
START_TEST(it_counts_once_if_it_is_nominated)
{
    expect("coming", "8", 0, VOLUME, "n1", "n1");
    apply_nominated(NULL);
    expect("whole", "10", 0, "", "n1", "n1");
    pass_time(HINT_LASTS_MS + 1);
    expect("whole", "10", 100, "", "n1", "n1");
    expect("coming", "8", 0, VOLUME, "n2", "n2"); /* it has changed its mind */
    pass_time(HINT_LASTS_MS + 1);
    expect("whole", "10", 100, "", "n1", "n1");
}
END_TEST

START_TEST(of_several_nodes_the_preferred_one_counts)
{
    g_autofree char *body = body_of("late", "10", 0, VOLUME, "n1,n2");
    g_autoptr(GString) reply = g_string_new(NULL);

    apply((struct pod){"full", "10", .node = "n1", .card = "0"});
    expect("late", "10", 0, VOLUME, "n1,n2", "n1,n2");
    pass_time(HINT_LASTS_MS + 1);
    expect("other", "10", 0, "", "n1", "n1"); /* nobody knows yet where it goes */
    pass_time(HINT_LASTS_MS + 1);
    ck_assert(extender_prioritize(&extender, PRIORITIZE_ALL, body, strlen(body), reply, NULL));
    ck_assert_msg(strstr(reply->str, "\"n1\""), "%s", reply->str);
    pass_time(HINT_LASTS_MS + 1);
    expect("other", "10", 0, "", "n1", "");
}
END_TEST

/* Who ends makes room beside it. */
START_TEST(preempt_leaves_it_its_room)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const char *body =
        "{\"Pod\":{\"metadata\":{\"name\":\"w\",\"namespace\":\"ml\",\"uid\":\"w\"},\"spec\":{"
        "\"priority\":500,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"5\"}}}]}},\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"low\"}]}}}";

    apply((struct pod){"low", "2", .node = "n1", .card = "1", .priority = 1});
    apply((struct pod){"mid", "9", .node = "n1", .card = "0", .priority = 2});
    expect("late", "8", 0, VOLUME, "n1", "n1");
    ck_assert(extender_preempt(&extender, body, strlen(body), reply, NULL));
    ck_assert_ptr_nonnull(strstr(reply->str, "[{\"UID\":\"mid\"}]"));
}
END_TEST

/* --- nominations ------------------------------------------------------------------------------ */

START_TEST(where_nobody_has_to_end_it_is_on_its_way)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply_nominated(NULL);
    expect("urgent", "3", 100, "", "n1", "");
    expect("beside", "2", 100, "", "n1", "n1");
    apply_nominated(NULL); /* the watch shows it again */
    expect("urgent", "3", 100, "", "n1", "");
    const uint64_t freed = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    pass_time(KEPT_MS);
    expect("urgent", "3", 100, "", "n1", "n1");
    ck_assert_uint_gt(ledger_freed(store_lock(extender.store)), freed);
    store_unlock(extender.store);
    expect("small", "3", 0, "", "n1", ""); /* it is nominated all the same */
}
END_TEST

START_TEST(once_filter_is_asked_about_it_it_is_not)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply_nominated(NULL);
    expect("urgent", "3", 100, "", "n1", "");
    expect("coming", "8", 0, "", "n2", "n2");
    expect("urgent", "3", 100, "", "n1", "n1");
}
END_TEST

START_TEST(where_others_have_to_end_it_waits)
{
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"low", "3", .node = "n1", .card = "1", .priority = -1});
    apply_nominated(NULL);
    expect("urgent", "7", 100, "", "n1", "n1");
    store_delete_pod(extender.store, "low");
    expect("urgent", "10", 100, "", "n1", "n1");
    expect("small", "3", 0, "", "n1", "");
}
END_TEST

/* At the first list a node looks empty until its pods have been named. */
START_TEST(in_a_list_it_is_looked_at_once_all_are_there)
{
    store_list_begin(extender.store, FEED_PODS);
    apply_nominated(NULL);
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"low", "3", .node = "n1", .card = "1", .priority = -1});
    store_list_end(extender.store, FEED_PODS);
    expect("urgent", "7", 100, "", "n1", "n1");
    expect("small", "2", 0, "", "n1", "");
    store_delete_pod(extender.store, "low");
    expect("urgent", "10", 100, "", "n1", "n1");
}
END_TEST

/* The room that is kept on the node is none. */
START_TEST(beside_one_that_is_kept_others_have_to_end)
{
    apply((struct pod){"low", "10", .node = "n1", .card = "0", .priority = -1});
    expect("late", "8", 0, VOLUME, "n1", "n1");
    apply_nominated(NULL);
    store_delete_pod(extender.store, "low");
    expect("urgent", "10", 100, "", "n1", "n1");
}
END_TEST

/* A scheduler that does not ask us books nothing here. */
START_TEST(nominations_of_other_schedulers_do_not_count)
{
    static const char *const asking =
        "\"schedulerName\":\"other\","; /* as the nominated pod has it */

    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply_nominated("other");
    expect("small", "3", 0, "", "n1", "n1");
    pass_time(HINT_LASTS_MS + 1);
    expect("small", "3", 0, asking, "n1", "");
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "another",
                                       .uid = "another",
                                       .scheduler_name = "other",
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})});
    expect("another", "1", 0, asking, "n2", "n2"); /* now it has asked */
    expect("small", "3", 0, "", "n1", "");
}
END_TEST

/* --- records ---------------------------------------------------------------------------------- */

static void apply_pending(const char *uid)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = uid,
                                       .uid = uid,
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "8"})})});
}

static void show_pods(void)
{
    apply_pending("late");
    apply((struct pod){"full", "10", .node = "n1", .card = "0", .priority = 1000});
    apply((struct pod){"low", "3", .node = "n1", .card = "1", .priority = -1});
    apply((struct pod){"whole", "10", .node = "n2", .card = "0", .priority = 1000});
}

/* A file is full, and the next one begins with what is known. */
static void begin_file(void)
{
    store_tell_known(extender.store);
    g_string_assign(lines, HEADER);
    record_state_write(known, lines);
}

START_TEST(a_record_has_it_wherever_a_file_begins)
{
    record_begin(extender.store);
    list(show_pods);
    apply_nominated(NULL); /* "low" has to end for it */
    store_delete_pod(extender.store, "low");
    begin_file();
    expect("late", "8", 0, VOLUME, "n2", "n2");
    expect("urgent", "3", 100, "", "n2", "");
    expect("urgent", "3", 100, "", "n1", "n1");
    expect_played(&keeping, 3, 0);
    pass_time(1000);
    begin_file();
    expect("urgent", "3", 100, "", "n2", "");
    expect("urgent", "3", 100, "", "n1", "n1");
    pass_time(KEPT_MS);
    expect("urgent", "3", 100, "", "n2", "n2");
    expect_played(&keeping, 3, 0);
    record_end(extender.store);
}
END_TEST

/* Likewise one that is nominated, for the rest of its time. */
START_TEST(a_record_has_who_is_nominated)
{
    record_begin(extender.store);
    list(show_pods);
    store_delete_pod(extender.store, "low");
    apply_nominated(NULL);
    begin_file(); /* its time has not begun */
    expect("urgent", "3", 100, "", "n1", "");
    expect_played(&keeping, 1, 0);
    pass_time(KEPT_MS - 1);
    begin_file();
    expect("urgent", "3", 100, "", "n1", "");
    pass_time(1);
    expect("urgent", "3", 100, "", "n1", "n1");
    expect_played(&keeping, 2, 0);
    record_end(extender.store);
}
END_TEST

START_TEST(what_cannot_be_read_is_an_error)
{
    static const char *const objects[] = {
        "{\"pods\":[{}]}",
        "{\"pods\":[{\"uid\":\"a\",\"namespace\":\"ml\",\"node\":\"n1\"}]}",
        "{\"nominated\":[{\"uid\":\"a\",\"until\":\"soon\"}]}",
        "{\"nominated\":[{\"uid\":\"a\",\"until\":\"-3\"}]}",
        "{\"pods\":7}",
    };
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *object = json_parse(arena, objects[_i], strlen(objects[_i]), NULL);

    ck_assert(!store_learn_part(extender.store, &part_coming, arena, object, &error));
    ck_assert_ptr_nonnull(error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("late_binds");
    TCase *tests = tcase_create("late_binds");

    tcase_add_checked_fixture(tests, setup_late, teardown);
    tcase_add_loop_test(tests, its_room_is_kept_from_pods_of_any_priority, 0, 3);
    tcase_add_loop_test(tests, of_others_nothing_is_kept_for_long, 0, 4);
    tcase_add_loop_test(tests, it_ends, 0, 5);
    tcase_add_test(tests, it_counts_once);
    tcase_add_test(tests, it_counts_once_if_it_is_nominated);
    tcase_add_test(tests, of_several_nodes_the_preferred_one_counts);
    tcase_add_test(tests, preempt_leaves_it_its_room);
    tcase_add_test(tests, where_nobody_has_to_end_it_is_on_its_way);
    tcase_add_test(tests, once_filter_is_asked_about_it_it_is_not);
    tcase_add_test(tests, where_others_have_to_end_it_waits);
    tcase_add_test(tests, in_a_list_it_is_looked_at_once_all_are_there);
    tcase_add_test(tests, beside_one_that_is_kept_others_have_to_end);
    tcase_add_test(tests, nominations_of_other_schedulers_do_not_count);
    tcase_add_test(tests, a_record_has_it_wherever_a_file_begins);
    tcase_add_test(tests, a_record_has_who_is_nominated);
    tcase_add_loop_test(tests, what_cannot_be_read_is_an_error, 0, 5);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
