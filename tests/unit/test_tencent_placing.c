/* SPDX-License-Identifier: Apache-2.0 */
/* Which cards gpu-manager will take, and which pod waits for which. */
#include "suite.h"
#include "tencent_words.h"

struct answer {
    enum admission admission;
    enum reason reason;
    struct placement placement;
};

static struct answer admit(const struct pod_view *pod)
{
    g_autoptr(request) request = dialect_read_request(pod, &options, NULL);
    struct admission_query query = {
        .request = request,
        .policy = policies,
        .options = &options,
        .now_ns = NOW,
        .patience_ns = PATIENCE,
    };
    struct answer answer = {0};
    enum reason reason;

    answer.admission =
        dialect_admit(ledger_node(book, "n1"), &query, &answer.placement, &answer.reason);
    ck_assert_int_eq(dialect_admit(ledger_node(book, "n1"), &query, NULL, &reason),
                     answer.admission);
    ck_assert_int_eq(reason, answer.reason);
    answer.placement.request = NULL;
    return answer;
}

/* What gpu-manager and kubelet have done with a pod since it was bound. */
enum stage {
    BOUND,
    ADMITTED,
    STARTED,
};

/* Places the pod, and takes it back from the annotations that were written. Its cards, or why not:
 * free with g_free. */
static char *run(const char *uid, struct pod_view pod, enum stage stage)
{
    struct answer answer = admit(&pod);
    g_auto(annotations) written = {0};
    struct string_pair pairs[ANNOTATIONS_MAX];
    GString *cards = g_string_new(NULL);
    enum reason reason;

    if (answer.admission != ADMISSION_YES) {
        const char *why = answer.admission == ADMISSION_WAIT ? "wait"
                                                             : reason_info(answer.reason)->code;
        g_string_assign(cards, why);
        return g_string_free(cards, FALSE);
    }
    pod.uid = pod.name = uid;
    pod.phase = stage == STARTED ? "Running" : "Pending";
    pod.started = stage != BOUND;
    struct allocation *allocation = allocation_new(uid, "ml", uid, answer.placement.n_shares);
    allocation->dialect = tencent;
    allocation->waiting = true;
    allocation->assume_time_ns = NOW;
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    allocation->host = request->host;
    allocation->match_amount = request->match_amount;
    allocation->terms = terms_ref(request->terms);
    memcpy(allocation->shares, answer.placement.shares,
           answer.placement.n_shares * sizeof *allocation->shares);
    allocation = ledger_reserve(book, "n1", allocation, &reason);
    ck_assert_ptr_nonnull(allocation);

    tencent->write_annotations(allocation, ledger_node(book, "n1"), &written);
    if (stage == STARTED)
        tencent->write_assigned(allocation, NOW, &written);
    for (size_t i = 0; i < written.n; i++) {
        /* The last word counts. */
        pairs[written.n - 1 - i] =
            (struct string_pair){written.items[i].key, written.items[i].value};
    }
    pod.annotations = (struct string_pairs){pairs, written.n};
    struct allocation *back = dialect_read_allocation(&pod, &options, NULL);
    back->node = allocation->node;
    allocation->open = back->open; /* for dialect_continue to say of what was booked */
    ck_assert(stage != BOUND || allocation_equal(back, allocation));
    back = ledger_put(book, "n1", back);
    for (uint32_t i = 0; i < back->n_shares; i++)
        g_string_append_printf(cards, "%s%d", i ? "," : "", back->shares[i].card);
    return g_string_free(cards, FALSE);
}

#define RUN(uid, stage, wanted, ...)                                                               \
    do {                                                                                           \
        g_autofree char *got = run(uid, (struct pod_view)POD(__VA_ARGS__), stage);                 \
        ck_assert_str_eq(got, wanted);                                                             \
    } while (0)

START_TEST(the_example_in_both_orders)
{
    add_node("200", "128", NULL, NULL);
    RUN("job1", STARTED, "0", WITH("100", "64"));
    RUN("job2", STARTED, "1", WITH("40", "24"));
    RUN("job3", STARTED, "1", WITH("30", "24"));
    add_node("200", "128", NULL, NULL);
    ledger_drop(book, "job1");
    ledger_drop(book, "job2");
    ledger_drop(book, "job3");
    RUN("job2", STARTED, "0", WITH("40", "24"));
    RUN("job3", STARTED, "0", WITH("30", "24"));
    RUN("job1", STARTED, "1", WITH("100", "64"));
}
END_TEST

START_TEST(core_adds_up_whatever_its_limit)
{
    add_node("100", "64", NULL, NULL);
    RUN("a", STARTED, "0", WITH("40", "8"));
    RUN("b", STARTED, "0", WITH("30", "8"));
    RUN("c", STARTED, "insufficient_core", WITH("40", "8"));
    RUN("d", STARTED, "0", WITH("30", "8"));
    RUN("e", STARTED, "insufficient_core", WITH("1", "1"));
}
END_TEST

START_TEST(memory_adds_up)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", STARTED, "0", WITH("10", "60"));
    RUN("b", STARTED, "1", WITH("10", "5"));
    RUN("c", STARTED, "insufficient_memory", WITH("10", "60"));
    RUN("d", STARTED, "card_too_small", WITH("10", "65"));
    RUN("e", STARTED, "insufficient_memory", WITH("100", "0"));
    RUN("f", STARTED, "card_count", WITH("300", "0"));
}
END_TEST

START_TEST(each_container_has_its_cards)
{
    add_node("400", "240", NULL, NULL);
    RUN("a", STARTED, "0,1,2", WITH("60", "8"), PLAIN, WITH("60", "8"), WITH("100", "0"));
    const struct allocation *held = ledger_get(book, "a");
    g_auto(annotations) written = {0};
    tencent->write_annotations(held, held->node, &written);
    static const char *const wanted[][2] = {
        {TIME, "1767225600000000000"}, {NODE, "n1"},      {ASSIGNED, "false"},
        {IDX "0", "0"},                {IDX "2", "1"},    {IDX "3", "2"},
    };
    ck_assert_uint_eq(written.n, G_N_ELEMENTS(wanted));
    for (size_t i = 0; i < written.n; i++) {
        ck_assert_str_eq(written.items[i].key, wanted[i][0]);
        ck_assert_str_eq(written.items[i].value, wanted[i][1]);
    }
    RUN("b", STARTED, "insufficient_memory", WITH("200", "0"));
    ledger_drop(book, "a");
    RUN("b", STARTED, "0,1", WITH("200", "0"));
}
END_TEST

/* Least core, then least memory, then the first: and never the second best. */
START_TEST(cards_are_taken_in_the_order_of_gpu_manager)
{
    add_node("300", "180", NULL, NULL);
    RUN("a", STARTED, "0", WITH("30", "40"));
    RUN("b", STARTED, "1", WITH("30", "30"));
    RUN("c", STARTED, "0", WITH("10", "1"));
    RUN("d", STARTED, "1", WITH("65", "2"));
    RUN("e", STARTED, "1", WITH("5", "15"));
    RUN("f", STARTED, "2", WITH("5", "30"));
    ledger_drop(book, "e");
    ledger_drop(book, "f");
    /* Another order of these two containers would fit; gpu-manager does not look for one. */
    add_node("200", "120", NULL, NULL);
    ledger_drop(book, "d");
    ledger_drop(book, "c");
    /* free: 70 and 20, 70 and 30 */
    RUN("g", STARTED, "insufficient_memory", WITH("10", "15"), WITH("10", "15"), WITH("10", "20"));
    RUN("h", STARTED, "0,1,1", WITH("10", "20"), WITH("10", "15"), WITH("10", "15"));
}
END_TEST

/* gpu-manager is told of nothing that speaks against a card. */
START_TEST(a_card_that_gpu_manager_would_take_is_not_passed_over)
{
    add_node("200", "128", NULL, NULL);
    ledger_set_unhealthy(book, "n1", (int32_t[]){0}, 1);
    RUN("a", STARTED, "card_unhealthy", WITH("40", "24"));
    RUN("a", STARTED, "card_unhealthy", WITH("100", "0"));
    ledger_set_unhealthy(book, "n1", (int32_t[]){1}, 1);
    RUN("a", STARTED, "0", WITH("40", "24"));
    RUN("b", STARTED, "0", WITH("40", "24"));
    RUN("c", STARTED, "insufficient_memory", WITH("40", "24"));
}
END_TEST

START_TEST(unchecked_pods_have_a_time_that_gpu_manager_does_not_read)
{
    options.tencent_unchecked = true;
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    const struct allocation *held = ledger_get(book, "a");
    ck_assert_int_eq(held->assume_time_ns, NOW);
    g_auto(annotations) written = {0};
    g_autoptr(allocation) other = allocation_new("b", "ml", "b", 1);
    other->terms = terms_new();
    other->terms->unchecked = true;
    tencent->write_annotations(other, held->node, &written);
    ck_assert_str_eq(written.items[0].key, "gpuledger.io/predicate-time");
    RUN("b", BOUND, "wait", WITH("30", "24"));
}
END_TEST

START_TEST(versions_differ_over_equal_cards)
{
    /* NVML counts the second minor first, and finds a few MiB more on the first. */
    static const struct {
        enum tencent_order order;
        const char *first;
    } cases[] = {{TENCENT_ORDER_BLOCKS_MINOR, "0"},
                 {TENCENT_ORDER_BLOCKS_NVML, "2"},
                 {TENCENT_ORDER_BYTES_NVML, "1"}};

    options.tencent_order = cases[_i].order;
    add_node("300", "180", "15363Mi,15361Mi,15363Mi", "2,0,1");
    RUN("a", STARTED, cases[_i].first, WITH("10", "1"));
}
END_TEST

/* --- one at a time -------------------------------------------------------------------------- */

START_TEST(the_next_pod_waits_until_kubelet_has_admitted_the_last)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    RUN("b", BOUND, "wait", WITH("30", "24"));
    RUN("b", BOUND, "wait", WITH("100", "0"));
    RUN("b", BOUND, "insufficient_memory", WITH("200", "0"));
    ledger_drop(book, "a");
    RUN("a", ADMITTED, "0", WITH("40", "24"));
    RUN("b", ADMITTED, "0", WITH("30", "24"));
    RUN("c", ADMITTED, "1", WITH("100", "0"));
}
END_TEST

/* Of it gpu-manager has forgotten the cards, and would take it for the next one. */
START_TEST(the_next_pod_waits_for_the_end_of_one_that_never_ran)
{
    static const char *const cores[] = {"40", "100"};

    add_node("200", "128", NULL, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cores); i++) {
        struct pod_view pod = POD(WITH(cores[i], "24"));
        pod.uid = pod.name = "a";
        pod.phase = "Pending";
        pod.started = pod.terminating = true;
        pod.annotations = PAIRS({IDX "0", "0"}, {TIME, "7"}, {ASSIGNED, "false"});
        ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
        RUN("b", BOUND, "awaiting_turn", WITH("30", "24"));
        RUN("b", BOUND, "awaiting_turn", WITH("100", "0"));
        pod.phase = "Running";
        ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
        RUN("b", ADMITTED, i == 0 ? "0" : "1", WITH("30", "24"));
        ledger_drop(book, "a");
        ledger_drop(book, "b");
    }
}
END_TEST

START_TEST(nobody_waits_for_ever)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    struct allocation *held = ledger_get(book, "a");
    held->assume_time_ns = NOW - PATIENCE;
    RUN("b", BOUND, "awaiting_turn", WITH("30", "24"));
}
END_TEST

START_TEST(whole_cards_are_provisional_until_gpu_manager_says_which)
{
    add_node("400", "240", NULL, NULL);
    RUN("a", STARTED, "0", WITH("40", "24"));
    RUN("w", ADMITTED, "1", WITH("100", "0"));
    /* There is room beside a; gpu-manager takes that card whichever w has. */
    RUN("b", STARTED, "0", WITH("40", "24"));
    /* No room there: which card is next depends on w's. */
    RUN("c", STARTED, "wait", WITH("40", "24"));
    RUN("c", STARTED, "wait", WITH("10", "1"), WITH("10", "1"));
    /* As many whole ones as are left, whichever they are. */
    RUN("x", ADMITTED, "2,3", WITH("200", "0"));
    RUN("y", ADMITTED, "insufficient_memory", WITH("100", "0"));
    ledger_drop(book, "x");
    RUN("x", ADMITTED, "2", WITH("100", "0"));

    /* gpu-manager had given w card 2. The ledger follows, and card 3 is all that is left. */
    struct pod_view pod = POD(WITH("100", "0"));
    pod.uid = pod.name = "w";
    pod.phase = "Pending";
    pod.started = true;
    pod.annotations = PAIRS({IDX "0", "2"}, {ASSIGNED, "true"}, {TIME, "7"});
    ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
    ck_assert_int_eq(node_card(ledger_node(book, "n1"), 2)->exclusive, 2);
    RUN("y", ADMITTED, "wait", WITH("200", "0"));
    RUN("c", STARTED, "wait", WITH("40", "24"));

    pod.uid = pod.name = "x";
    pod.annotations = PAIRS({IDX "0", "1"}, {ASSIGNED, "true"}, {TIME, "8"});
    ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
    RUN("c", STARTED, "3", WITH("40", "24"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tencent_placing");
    TCase *tcase = tcase_create("tencent");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_example_in_both_orders);
    tcase_add_test(tcase, core_adds_up_whatever_its_limit);
    tcase_add_test(tcase, memory_adds_up);
    tcase_add_test(tcase, each_container_has_its_cards);
    tcase_add_test(tcase, cards_are_taken_in_the_order_of_gpu_manager);
    tcase_add_test(tcase, a_card_that_gpu_manager_would_take_is_not_passed_over);
    tcase_add_test(tcase, unchecked_pods_have_a_time_that_gpu_manager_does_not_read);
    tcase_add_loop_test(tcase, versions_differ_over_equal_cards, 0, 3);
    tcase_add_test(tcase, the_next_pod_waits_until_kubelet_has_admitted_the_last);
    tcase_add_test(tcase, the_next_pod_waits_for_the_end_of_one_that_never_ran);
    tcase_add_test(tcase, nobody_waits_for_ever);
    tcase_add_test(tcase, whole_cards_are_provisional_until_gpu_manager_says_which);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
