/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt, asked again about a pod for which it has named victims: nobody else ends while a node of that
 * answer will take the pod.
 */
#include "preempting_extender.h"
#include "suite.h"

#include <string.h>

/* Pods of 8 fit on neither node before "a" ends on n1, or "x" on n2. */
static void populate(void)
{
    apply((struct pod){"a", "10", "n1", "0", .priority = 1});
    apply((struct pod){"x", "10", "n2", "0", .priority = 2});
    apply((struct pod){"b", "10", "n1", "1", .priority = 1000});
    apply((struct pod){"y", "10", "n2", "1", .priority = 1000});
}

static char *ask(const char *uid, const char *nominated, const char *nodes)
{
    g_autoptr(GError) error = NULL;
    GString *reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
        "\"status\":{%s%s%s},\"spec\":{\"priority\":100,\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"limits\":{\"" MEM "\":\"8\"}}}]}},\"NodeNameToMetaVictims\":{%s}}",
        uid, nominated ? "\"nominatedNodeName\":\"" : "", nominated ? nominated : "",
        nominated ? "\"" : "", nodes);

    if (!extender_preempt(&extender, body, strlen(body), reply, &error))
        g_string_printf(reply, "error: %s", error->message);
    return g_string_free(reply, FALSE);
}

static void expect_for(const char *uid, const char *nominated, const char *nodes,
                       const char *answer)
{
    g_autofree char *reply = ask(uid, nominated, nodes);
    g_autofree char *wanted = g_strdup_printf("{\"NodeNameToMetaVictims\":{%s}}", answer);

    ck_assert_str_eq(reply, wanted);
}

static void expect(const char *nominated, const char *nodes, const char *answer)
{
    expect_for("p", nominated, nodes, answer);
}

#define NODE(name, uid) "\"" name "\":{\"Pods\":[{\"UID\":\"" uid "\"}],\"NumPDBViolations\":0}"
#define BOTH NODE("n1", "a") "," NODE("n2", "x")

/* kube-scheduler has ended "a", and knows it. */
START_TEST(nobody_else_ends_before_the_watch_shows_the_end)
{
    static const char *const nominations[] = {"n1", NULL, "n7"};

    populate();
    expect(NULL, BOTH, BOTH);
    expect(nominations[_i], NODE("n2", "x"), "");
    expect(nominations[_i], NODE("n2", "x"), "");
    apply((struct pod){"a", "10", "n1", "0", .priority = 1, .terminating = true});
    expect(nominations[_i], NODE("n2", "x"), "");
    store_delete_pod(extender.store, "a");
    expect(nominations[_i], NODE("n2", "x"), "");
}
END_TEST

START_TEST(the_same_question_has_the_same_answer)
{
    populate();
    expect(NULL, BOTH, BOTH);
    expect(NULL, BOTH, BOTH);
    /* Its own node, and no other one beside it. */
    expect("n1", BOTH, NODE("n1", "a"));
    expect("n2", BOTH, NODE("n2", "x"));
    /* So it is where something cheaper has come meanwhile. */
    store_delete_pod(extender.store, "y");
    apply((struct pod){"z", "8", "n2", "1", .priority = 1});
    expect("n2", NODE("n2", "x"), NODE("n2", "x"));
}
END_TEST

START_TEST(what_has_begun_goes_on)
{
    populate();
    expect(NULL, BOTH, BOTH);
    apply((struct pod){"a", "10", "n1", "0", .priority = 1, .terminating = true});
    expect(NULL, BOTH, NODE("n1", "a"));
    expect("n1", BOTH, NODE("n1", "a"));
    /* kube-scheduler sees "a" there longer than the watch here. */
    store_delete_pod(extender.store, "a");
    expect(NULL, BOTH, NODE("n1", "a"));
    expect(NULL, NODE("n2", "x"), "");
    expect(NULL, "\"n1\":null," NODE("n2", "x"), "");
}
END_TEST

/* Of two who have to end there one has. */
START_TEST(what_has_half_begun_goes_on)
{
    static const char both[] =
        "\"n1\":{\"Pods\":[{\"UID\":\"a\"},{\"UID\":\"a2\"}],\"NumPDBViolations\":0}";
    g_autofree char *nodes = g_strdup_printf("%s,%s", both, NODE("n2", "x"));
    g_autofree char *other_way = g_strdup_printf("%s,%s", NODE("n2", "x"), both);

    populate();
    apply((struct pod){"a", "5", "n1", "0", .priority = 2});
    apply((struct pod){"a2", "5", "n1", "0", .priority = 2});
    expect(NULL, nodes, nodes);
    store_delete_pod(extender.store, "a");
    expect(NULL, NODE("n1", "a2") "," NODE("n2", "x"), NODE("n1", "a2"));
    expect(NULL, NODE("n2", "x") "," NODE("n1", "a2"), NODE("n1", "a2"));
    apply((struct pod){"a", "5", "n1", "0", .priority = 2, .terminating = true});
    expect(NULL, nodes, both);
    expect(NULL, other_way, both);
}
END_TEST

START_TEST(what_stands_does_not_hang_on_the_order)
{
    populate();
    expect(NULL, BOTH, BOTH);
    apply((struct pod){"x", "10", "n2", "0", .priority = 2, .terminating = true});
    expect(NULL, BOTH, NODE("n2", "x"));
    expect(NULL, NODE("n2", "x") "," NODE("n1", "a"), NODE("n2", "x"));
}
END_TEST

START_TEST(where_another_pod_took_the_room_others_end)
{
    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    store_delete_pod(extender.store, "a");
    expect("n1", NODE("n2", "x"), "");
    apply((struct pod){"taker", "10", "n1", "0", .priority = 100});
    expect("n1", NODE("n2", "x"), NODE("n2", "x"));
    /* That is the last answer now. */
    store_delete_pod(extender.store, "taker");
    apply((struct pod){"less", "10", "n1", "0", .priority = 1});
    expect("n1", NODE("n1", "less"), "");
}
END_TEST

START_TEST(room_kept_for_another_pod_is_taken)
{
    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    store_delete_pod(extender.store, "a");
    apply((struct pod){"first", "8", .nominated = "n1", .priority = 100});
    expect("n1", NODE("n2", "x"), NODE("n2", "x"));
}
END_TEST

/* Somebody on the node has to end whom the last answer did not name: so kube-scheduler says. */
START_TEST(where_the_node_lacks_more_the_question_is_new)
{
    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    expect("n1", NODE("n1", "stranger"),
           "\"n1\":{\"Pods\":[{\"UID\":\"stranger\"},{\"UID\":\"a\"}],"
           "\"NumPDBViolations\":0}");
}
END_TEST

/* Another node is a candidate then, which was none of the last answer. */
START_TEST(where_the_node_lacks_more_other_nodes_count_too)
{
    static const char both[] = NODE("n1", "stranger") "," NODE("n2", "x");

    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    expect(NULL, both,
           "\"n1\":{\"Pods\":[{\"UID\":\"stranger\"},{\"UID\":\"a\"}],"
           "\"NumPDBViolations\":0}," NODE("n2", "x"));
}
END_TEST

/* Who is being deleted anyway is waited for like those who were named. */
START_TEST(room_that_another_one_is_leaving_is_waited_for)
{
    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    store_delete_pod(extender.store, "a");
    apply((struct pod){"taker", "10", "n1", "0", .priority = 1, .terminating = true});
    expect("n1", NODE("n2", "x"), "");
    apply((struct pod){"taker", "10", "n1", "0", .priority = 1});
    expect("n1", NODE("n2", "x"), NODE("n2", "x"));
}
END_TEST

START_TEST(a_node_that_is_gone_is_waited_for_no_longer)
{
    populate();
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    store_delete_node(extender.store, "n1");
    expect("n1", NODE("n2", "x"), NODE("n2", "x"));
}
END_TEST

/* The API server may have refused to end the pod. */
START_TEST(who_does_not_end_is_waited_for_as_long_as_is_said)
{
    struct moment moment = {.now_ns = INT64_C(1900000000000000000), .now_ms = 100000};

    populate();
    store_set_moment(extender.store, &moment);
    expect(NULL, NODE("n1", "a"), NODE("n1", "a"));
    moment.now_ms += 600000; /* since it was answered: a pod may take long to end */
    expect("n1", NODE("n2", "x"), "");
    moment.now_ms += CLEARING_MS - 1;
    expect("n1", NODE("n2", "x"), "");
    moment.now_ms += 1;
    expect("n1", NODE("n2", "x"), NODE("n2", "x"));
    /* And anew from there. */
    expect("n2", NODE("n1", "a"), "");
    moment.now_ms += CLEARING_MS - 1;
    expect("n2", NODE("n1", "a"), "");
    store_set_moment(extender.store, NULL);
}
END_TEST

START_TEST(what_another_pod_was_told_does_not_count)
{
    populate();
    expect_for("p", NULL, NODE("n1", "a"), NODE("n1", "a"));
    expect_for("q", NULL, NODE("n2", "x"), NODE("n2", "x"));
    expect_for("q", "n2", NODE("n1", "a"), "");
}
END_TEST

static size_t weight(void)
{
    store_lock(extender.store);
    const size_t weight = clearings_weight(store_clearings(extender.store));
    store_unlock(extender.store);
    return weight;
}

START_TEST(it_is_known_while_the_pod_waits)
{
    populate();
    apply((struct pod){"p", "8", .priority = 100});
    expect(NULL, BOTH, BOTH);
    ck_assert_uint_eq(weight(), 5);
    store_delete_pod(extender.store, "a");
    apply((struct pod){"p", "8", "n1", "0", .priority = 100});
    ck_assert_uint_eq(weight(), 0);
    expect_for("q", NULL, BOTH, NODE("n2", "x"));
    ck_assert_uint_eq(weight(), 3);
    store_delete_pod(extender.store, "q"); /* which the watch never showed */
    ck_assert_uint_eq(weight(), 0);
}
END_TEST

/* --- the table ------------------------------------------------------------------------------ */

static void put(struct clearings *clearings, const char *ns, int i, size_t n_uids)
{
    g_autofree char *uid = g_strdup_printf("%s-%d", ns, i);
    g_autofree const char **uids = g_new(const char *, n_uids + 1);
    const struct preemption_node node = {.name = "n1", .uids = uids, .n_uids = n_uids};

    for (size_t j = 0; j < n_uids; j++)
        uids[j] = "victim";
    clearings_put(clearings, clearing_new(uid, ns, &node, 1));
}

START_TEST(a_namespace_alone_loses_its_oldest)
{
    struct clearings *clearings = clearings_new();

    put(clearings, "small", 0, 1);
    for (int i = 0; i == 0 || clearings_get(clearings, "many-0"); i++)
        put(clearings, "many", i, 98);
    ck_assert_uint_le(clearings_weight(clearings), CLEARINGS_MAX);
    ck_assert_uint_gt(clearings_weight(clearings), CLEARINGS_MAX - 200);
    ck_assert_ptr_nonnull(clearings_get(clearings, "small-0"));
    ck_assert_ptr_null(clearings_get(clearings, "many-0"));
    ck_assert_ptr_nonnull(clearings_get(clearings, "many-1"));
    put(clearings, "small", 0, 2); /* in the place of what was there */
    ck_assert_uint_eq(clearings_get(clearings, "small-0")->nodes[0].n_uids, 2);
    /* What is too much by itself is not kept, and takes no other namespace's. */
    put(clearings, "huge", 0, CLEARINGS_MAX);
    ck_assert_ptr_null(clearings_get(clearings, "huge-0"));
    ck_assert_ptr_nonnull(clearings_get(clearings, "small-0"));
    ck_assert_ptr_nonnull(clearings_get(clearings, "many-1"));
    /* So is a name: whoever calls may make one as long as the call. */
    g_autofree char *name = g_strnfill(CLEARINGS_MAX * CLEARING_UNIT, 'x');
    const struct preemption_node node = {.name = "n1", .uids = (const char *[]){name}, .n_uids = 1};
    clearings_put(clearings, clearing_new("long-0", "long", &node, 1));
    ck_assert_ptr_null(clearings_get(clearings, "long-0"));
    ck_assert_ptr_nonnull(clearings_get(clearings, "small-0"));
    clearings_clear(clearings);
    ck_assert_uint_eq(clearings_weight(clearings), 0);
    clearings_free(clearings);
}
END_TEST

static struct clearing *decode(struct json_arena *arena, const char *text, GError **error)
{
    return clearing_decode(arena, json_parse(arena, text, strlen(text), NULL), error);
}

START_TEST(it_is_written_and_read)
{
    static const char text[] = "{\"uid\":\"p\",\"nodes\":{\"n1\":[\"a\",\"b\"],\"n2\":[]}}";
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) written = g_string_new(NULL);
    g_autoptr(clearing) clearing = decode(arena, text, NULL);
    struct json_writer writer;

    ck_assert_ptr_nonnull(clearing);
    json_writer_init(&writer, written);
    clearing_encode(&writer, clearing, clearing->nodes, clearing->n_nodes);
    ck_assert_str_eq(written->str, text);
    g_string_truncate(written, 0);
    json_writer_init(&writer, written);
    clearing_encode(&writer, clearing, &clearing->nodes[1], 1);
    ck_assert_str_eq(written->str, "{\"uid\":\"p\",\"nodes\":{\"n2\":[]}}");
}
END_TEST

START_TEST(what_cannot_be_read_is_an_error)
{
    static const char *const texts[] = {
        "{\"nodes\":{}}",
        "{\"uid\":\"p\"}",
        "{\"uid\":\"p\",\"nodes\":{\"n1\":5}}",
        "{\"uid\":\"p\",\"nodes\":{\"n1\":{}}}",
        "{\"uid\":\"p\",\"nodes\":{\"n1\":[5]}}",
        "{\"uid\":\"p\",\"nodes\":[]}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(json_arena) arena = json_arena_new();
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(decode(arena, texts[i], &error));
        ck_assert_ptr_nonnull(error);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clearings");
    TCase *tests = tcase_create("clearings");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, nobody_else_ends_before_the_watch_shows_the_end, 0, 3);
    tcase_add_test(tests, the_same_question_has_the_same_answer);
    tcase_add_test(tests, what_has_begun_goes_on);
    tcase_add_test(tests, what_has_half_begun_goes_on);
    tcase_add_test(tests, what_stands_does_not_hang_on_the_order);
    tcase_add_test(tests, where_another_pod_took_the_room_others_end);
    tcase_add_test(tests, room_kept_for_another_pod_is_taken);
    tcase_add_test(tests, where_the_node_lacks_more_the_question_is_new);
    tcase_add_test(tests, where_the_node_lacks_more_other_nodes_count_too);
    tcase_add_test(tests, room_that_another_one_is_leaving_is_waited_for);
    tcase_add_test(tests, a_node_that_is_gone_is_waited_for_no_longer);
    tcase_add_test(tests, who_does_not_end_is_waited_for_as_long_as_is_said);
    tcase_add_test(tests, what_another_pod_was_told_does_not_count);
    tcase_add_test(tests, it_is_known_while_the_pod_waits);
    tcase_add_test(tests, a_namespace_alone_loses_its_oldest);
    tcase_add_test(tests, it_is_written_and_read);
    tcase_add_test(tests, what_cannot_be_read_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
