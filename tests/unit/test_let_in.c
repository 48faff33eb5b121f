/* SPDX-License-Identifier: Apache-2.0 */
/* Whom Kueue may let in, beside whom, and who comes next. */
#include "kueue/joint_fit.h"
#include "kueue/waiting.h"
#include "kueue_cluster.h"
#include "suite.h"

/* --- cards ---------------------------------------------------------------------------------- */

static struct answer ask(struct joint_fit *joint, const char *name, int count, int units)
{
    g_autoptr(pod_sets) pods = pods_of(name, name, count, units);

    return joint_fit_ask(joint, pods);
}

static void expect_answer(struct answer answer, enum kueue_result result, const char *part)
{
    ck_assert_msg(answer.result == result, "%d, not %d: %s", (int)answer.result, (int)result,
                  answer.message);
    ck_assert_msg(strstr(answer.message, part), "%s", answer.message);
    g_free(answer.message);
}

/* Two cards of 10: the sum of 18 would do, and no card has 6 once each of them has. */
START_TEST(cards_count_and_not_their_sum)
{
    g_autoptr(store) store = two_cards("20");
    g_autoptr(joint_fit) joint = joint_fit_new(store);

    expect_answer(ask(joint, "three", 3, 6), KUEUE_RESULT_RETRY, "pod set 'three': 2 of 3 pods");
    expect_answer(ask(joint, "two", 2, 6), KUEUE_RESULT_READY, "all 2 pods with a GPU fit");
    expect_answer(ask(joint, "one", 1, 6), KUEUE_RESULT_RETRY,
                  "0 of 1 pods (6 units of memory of one card) fit beside 2 pods of Workloads that "
                  "were let in "
                  "before; one more: of 1 nodes 1 insufficient_memory (n1, card 0: wants 6GiB, "
                  "4GiB free of 10GiB)");
    expect_answer(ask(joint, "small", 2, 4), KUEUE_RESULT_READY, "all 2 pods");
}
END_TEST

START_TEST(a_refused_workload_leaves_nothing_behind)
{
    g_autoptr(store) store = two_cards("20");
    g_autoptr(joint_fit) joint = joint_fit_new(store);

    for (int i = 0; i < 5; i++)
        expect_answer(ask(joint, "three", 3, 6), KUEUE_RESULT_RETRY, "2 of 3");
    expect_answer(ask(joint, "both", 2, 10), KUEUE_RESULT_READY, "all 2");
    /* And nothing of it is in the store itself. */
    g_autoptr(joint_fit) other = joint_fit_new(store);
    expect_answer(ask(other, "both", 2, 10), KUEUE_RESULT_READY, "all 2");
}
END_TEST

START_TEST(no_other_pod_is_named)
{
    g_autoptr(store) store = two_cards("20");

    occupy(store, "secret", "secret-a", "9", "0");
    occupy(store, "secret", "secret-b", "9", "1");
    g_autoptr(joint_fit) joint = joint_fit_new(store);
    struct answer answer = ask(joint, "one", 1, 6);
    ck_assert_ptr_null(strstr(answer.message, "secret"));
    expect_answer(answer, KUEUE_RESULT_RETRY, "wants 6GiB, 1GiB free of 10GiB");
}
END_TEST

/* --- promises ------------------------------------------------------------------------------- */

static int64_t left_of(const struct promises *promises, guint n)
{
    g_autoptr(GPtrArray) owed = promises_owed(promises);
    int64_t left = 0;

    ck_assert_uint_eq(owed->len, n);
    for (guint i = 0; i < owed->len; i++)
        left += ((const struct owed *)owed->pdata[i])->left[0];
    return left;
}

static void promise(struct promises *promises, const char *name, int count, int units)
{
    g_autoptr(pod_sets) pods = pods_of(name, name, count, units);

    promises_add(promises, pods, TIME_S);
}

/* A pod as the ledger has it. */
static void come(struct promises *promises, const char *app, const char *uid, const char *units,
                 int64_t when_s)
{
    const struct container_view container = {.name = "c",
                                             .limits = PAIRS({"aliyun.com/gpu-mem", units})};
    const struct pod_view pod = {.ns = "ml",
                                 .name = uid,
                                 .labels = PAIRS({"app", app}, {"more", "labels"}),
                                 .containers = &container,
                                 .n_containers = 1};
    g_autoptr(pod_facts) facts = pod_facts_new(&pod);

    promises_see(promises, &(struct arrived){uid, "ml", when_s, when_s - 5, facts});
}

START_TEST(what_was_promised_takes_cards_until_the_pods_have_come)
{
    g_autoptr(store) store = two_cards("20");
    struct promises *promises = promises_new();

    promise(promises, "a", 2, 6);
    {
        g_autoptr(joint_fit) joint = joint_fit_new(store);
        g_autoptr(GPtrArray) owed = promises_owed(promises);
        joint_fit_owe(joint, owed->pdata[0]);
        expect_answer(ask(joint, "b", 1, 6), KUEUE_RESULT_RETRY, "beside 2 pods");
    }
    come(promises, "a", "p1", "6", TIME_S);
    come(promises, "a", "p1", "6", TIME_S + 1);
    ck_assert_int_eq(left_of(promises, 1), 1);
    come(promises, "a", "p2", "6", TIME_S - 1); /* before it was let in */
    come(promises, "b", "p3", "6", TIME_S);     /* another's */
    come(promises, "a", "p4", "5", TIME_S);     /* asks for something else */
    ck_assert_int_eq(left_of(promises, 1), 1);
    come(promises, "a", "p5", "6", TIME_S);
    come(promises, "a", "p6", "6", TIME_S); /* more than were promised */
    ck_assert_int_eq(left_of(promises, 1), 0);
    promises_lapse(promises, TIME_S);
    ck_assert_uint_eq(promises_count(promises), 0);
    promises_free(promises);
}
END_TEST

START_TEST(one_pod_keeps_one_promise)
{
    struct promises *promises = promises_new();
    g_autoptr(pod_sets) first = pods_of("a", "same", 1, 6);
    g_autoptr(pod_sets) second = pods_of("b", "same", 1, 6);

    promises_add(promises, first, TIME_S);
    promises_add(promises, second, TIME_S + 1);
    promises_add(promises, second, TIME_S + 1);
    for (int i = 0; i < 3; i++)
        come(promises, "same", "p1", "6", TIME_S + 5);
    ck_assert_int_eq(left_of(promises, 2), 1);
    come(promises, "same", "p2", "6", TIME_S + 5);
    ck_assert_int_eq(left_of(promises, 2), 0);
    promises_free(promises);
}
END_TEST

START_TEST(a_promise_ends)
{
    struct promises *promises = promises_new();

    promise(promises, "a", 1, 6);
    promise(promises, "b", 1, 6);
    promise(promises, "c", 1, 6);
    promises_admit(promises, "uid-b", TIME_S + 60);
    promises_admit(promises, "uid-b", TIME_S + 90); /* once */
    promises_lapse(promises, TIME_S + PROMISE_S - 1);
    promises_forget(promises, "uid-c");
    ck_assert_uint_eq(promises_count(promises), 2);
    promises_lapse(promises, TIME_S + PROMISE_S);
    ck_assert(promises_has(promises, "uid-b") && !promises_has(promises, "uid-a"));
    promises_lapse(promises, TIME_S + PROMISE_S + 60);
    ck_assert_uint_eq(promises_count(promises), 0);
    promises_free(promises);
}
END_TEST

START_TEST(a_promise_lasts_no_longer_when_the_clock_is_set_back)
{
    struct promises *promises = promises_new();
    const int64_t back_s = TIME_S - 18000;

    promise(promises, "a", 1, 6);
    promise(promises, "b", 1, 6);
    promises_lapse(promises, back_s);
    come(promises, "b", "p1", "6", back_s + 1);
    ck_assert_int_eq(left_of(promises, 2), 1);
    promises_lapse(promises, back_s + PROMISE_S - 1);
    ck_assert(promises_has(promises, "uid-a") && !promises_has(promises, "uid-b"));
    promises_lapse(promises, back_s + PROMISE_S);
    ck_assert_uint_eq(promises_count(promises), 0);
    promises_free(promises);
}
END_TEST

START_TEST(a_namespace_has_so_many_promises)
{
    struct promises *promises = promises_new();

    for (int i = 0; i < PROMISES_PER_NAMESPACE; i++) {
        g_autofree char *name = g_strdup_printf("w%d", i);
        ck_assert(promises_take(promises, "ml"));
        promise(promises, name, 1, 1);
    }
    ck_assert(!promises_take(promises, "ml"));
    ck_assert(promises_take(promises, "other"));
    promise(promises, "w1", 1, 1); /* is one already */
    ck_assert_uint_eq(promises_count(promises), PROMISES_PER_NAMESPACE);
    promises_forget(promises, "uid-w0");
    promises_forget(promises, "uid-w0");
    ck_assert(promises_take(promises, "ml"));
    promise(promises, "after", 1, 1);
    ck_assert(!promises_take(promises, "ml"));
    promises_forget_all(promises);
    g_autoptr(GHashTable) namespaces = promises_namespaces(promises);
    ck_assert_uint_eq(g_hash_table_size(namespaces), 0);
    promises_free(promises);
}
END_TEST

/* --- turns ---------------------------------------------------------------------------------- */

static bool queue_up(struct waiting *waiting, const char *ns, const char *uid, int64_t since_s,
                     enum waiting_for what)
{
    return waiting_put(waiting, &(struct waiting_workload){.uid = (char *)uid,
                                                           .ns = (char *)ns,
                                                           .name = (char *)uid,
                                                           .what = what,
                                                           .since_s = since_s});
}

static char *order_of(const struct waiting *waiting, guint max, int64_t now_ms,
                      int64_t *ret_next_ms)
{
    g_autoptr(GPtrArray) next = waiting_next(waiting, max, now_ms, ret_next_ms);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < next->len; i++)
        g_string_append_printf(text, "%s ", ((const struct waiting_workload *)next->pdata[i])->uid);
    return g_string_free(text, FALSE);
}

static void expect_order(const struct waiting *waiting, guint max, const char *expected)
{
    int64_t next_ms;
    g_autofree char *order = order_of(waiting, max, 0, &next_ms);

    ck_assert_str_eq(order, expected);
}

START_TEST(namespaces_take_turns)
{
    struct waiting *waiting = waiting_new();
    int64_t next_ms;

    queue_up(waiting, "a", "a3", 30, WAITING_ANSWER);
    queue_up(waiting, "a", "a1", 10, WAITING_ANSWER);
    queue_up(waiting, "a", "a2", 20, WAITING_ANSWER);
    queue_up(waiting, "b", "b1", 99, WAITING_ANSWER);
    queue_up(waiting, "c", "c1", 500, WAITING_MEMORY);
    expect_order(waiting, 9, "c1 a1 b1 a2 a3 ");
    expect_order(waiting, 2, "c1 a1 ");
    waiting_pause(waiting, "a1", 1000);
    waiting_pause(waiting, "nobody", 1000);
    g_autofree char *order = order_of(waiting, 9, 0, &next_ms);
    ck_assert_str_eq(order, "c1 a2 b1 a3 ");
    ck_assert_int_eq(next_ms, 1000);
    g_autofree char *later = order_of(waiting, 9, 1000, &next_ms);
    ck_assert_str_eq(later, "c1 a1 b1 a2 a3 ");
    ck_assert_int_eq(next_ms, INT64_MAX);
    waiting_remove(waiting, "a1");
    waiting_remove(waiting, "a1");
    expect_order(waiting, 9, "c1 a2 b1 a3 ");
    waiting_free(waiting);
}
END_TEST

START_TEST(a_list_takes_away_what_it_does_not_name)
{
    struct waiting *waiting = waiting_new();

    queue_up(waiting, "a", "a1", 1, WAITING_ANSWER);
    queue_up(waiting, "a", "a2", 2, WAITING_ANSWER);
    waiting_begin(waiting);
    queue_up(waiting, "a", "a2", 2, WAITING_ANSWER);
    queue_up(waiting, "a", "a3", 3, WAITING_ANSWER);
    waiting_end(waiting);
    expect_order(waiting, 9, "a2 a3 ");
    waiting_free(waiting);
}
END_TEST

START_TEST(a_namespace_has_so_many_waiting)
{
    struct waiting *waiting = waiting_new();

    for (int i = 0; i < WAITING_PER_NAMESPACE; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        ck_assert(queue_up(waiting, "a", uid, i, WAITING_ANSWER));
    }
    ck_assert(queue_up(waiting, "a", "u5", 5, WAITING_ANSWER)); /* it is there already */
    ck_assert(!waiting_missed(waiting));
    ck_assert(!queue_up(waiting, "a", "more", 0, WAITING_ANSWER));
    ck_assert(queue_up(waiting, "b", "other", 0, WAITING_ANSWER));
    waiting_remove(waiting, "u5");
    ck_assert(queue_up(waiting, "a", "u5", 5, WAITING_ANSWER));
    ck_assert(!waiting_missed(waiting)); /* whoever always makes more is not listed without end */
    for (int i = 0; i < WAITING_PER_NAMESPACE / 2; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        waiting_remove(waiting, uid);
    }
    ck_assert(waiting_missed(waiting));
    ck_assert(!waiting_missed(waiting));
    waiting_free(waiting);
}
END_TEST

/* --- pauses --------------------------------------------------------------------------------- */

START_TEST(pauses_double_and_are_bounded)
{
    const struct answer retry = {KUEUE_RESULT_RETRY, NULL}, ready = {KUEUE_RESULT_NO_GPU, NULL},
                        unread = {KUEUE_RESULT_UNREADABLE, NULL};
    static const int64_t wanted[] = {5, 10, 20, 40, 60, 60};

    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        ck_assert_int_eq(answer_pause_s(&retry, (int64_t)i), wanted[i]);
    ck_assert_int_eq(answer_pause_s(&retry, INT32_MAX), 60);
    ck_assert_int_eq(answer_pause_s(&ready, 9), 0);
    ck_assert_int_eq(answer_pause_s(&unread, 0), 300);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("let in");
    TCase *tests = tcase_create("let in");

    tcase_add_test(tests, cards_count_and_not_their_sum);
    tcase_add_test(tests, a_refused_workload_leaves_nothing_behind);
    tcase_add_test(tests, no_other_pod_is_named);
    tcase_add_test(tests, what_was_promised_takes_cards_until_the_pods_have_come);
    tcase_add_test(tests, one_pod_keeps_one_promise);
    tcase_add_test(tests, a_promise_ends);
    tcase_add_test(tests, a_promise_lasts_no_longer_when_the_clock_is_set_back);
    tcase_add_test(tests, a_namespace_has_so_many_promises);
    tcase_add_test(tests, namespaces_take_turns);
    tcase_add_test(tests, a_list_takes_away_what_it_does_not_name);
    tcase_add_test(tests, a_namespace_has_so_many_waiting);
    tcase_add_test(tests, pauses_double_and_are_bounded);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
