/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <gpuledger/dialect.h>

#define GIB (INT64_C(1) << 30)
#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(1767225600) * SECOND)
#define PATIENCE (30 * SECOND)

static const struct dialect *gpushare;
static struct dialect_options options;
static struct ledger *book;

static void setup(void)
{
    gpushare = dialect_find("gpushare");
    options = (struct dialect_options){0};
    book = ledger_new();
}

static void teardown(void)
{
    ledger_free(book);
}

static struct node *set_cards(int32_t n, const int64_t *gib)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    topology->dialect = gpushare;
    topology->memory_unit = GIB;
    topology->n_cards = n;
    for (int32_t i = 0; i < n; i++)
        topology->cards[i].memory = gib[i] * GIB;
    return ledger_set_topology(book, "n1", topology);
}

#define SET_CARDS(...)                                                                             \
    set_cards(G_N_ELEMENTS(((const int64_t[]){__VA_ARGS__})), (const int64_t[]){__VA_ARGS__})

static void put(const char *uid, int64_t units, int32_t card, bool waiting, int64_t age_ns)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->dialect = gpushare;
    allocation->waiting = waiting;
    allocation->assigned = !waiting;
    allocation->match_amount = units;
    allocation->assume_time_ns = NOW - age_ns;
    allocation->shares[0] = (struct share){.memory = {units, AMOUNT_NODE_UNITS}, .card = card};
    ledger_put(book, "n1", allocation);
}

static struct request *ask(int64_t units)
{
    struct request *request = request_new(gpushare, 1);

    request->match_amount = units;
    request->asks[0] = (struct card_ask){.memory = {units, AMOUNT_NODE_UNITS}, .count = 1};
    return request;
}

struct answer {
    enum admission admission;
    enum reason reason;
    int32_t card;
};

static struct answer admit_request(const struct node *node, const struct request *request)
{
    struct admission_query query = {
        .request = request,
        .policy = policies,
        .options = &options,
        .now_ns = NOW,
        .patience_ns = PATIENCE,
    };
    struct placement placement = {0};
    struct answer answer = {.card = CARD_UNKNOWN}, without = {.card = CARD_UNKNOWN};

    answer.admission = dialect_admit(node, &query, &placement, &answer.reason);
    if (answer.admission == ADMISSION_YES) {
        ck_assert_uint_eq(placement.n_shares, 1);
        answer.card = placement.shares[0].card;
    }
    /* Whoever does not want the placement gets the same answer. */
    without.admission = dialect_admit(node, &query, NULL, &without.reason);
    ck_assert_int_eq(without.admission, answer.admission);
    ck_assert_int_eq(without.reason, answer.reason);
    return answer;
}

static struct answer admit(int64_t units)
{
    g_autoptr(request) request = ask(units);
    return admit_request(ledger_node(book, "n1"), request);
}

static void assert_answer(struct answer answer, enum admission admission, enum reason reason,
                          int32_t card)
{
    ck_assert_int_eq(answer.admission, admission);
    ck_assert_int_eq(answer.reason, reason);
    ck_assert_int_eq(answer.card, card);
}

#define assert_yes(answer, card) assert_answer(answer, ADMISSION_YES, REASON_NONE, card)
#define assert_wait(answer) assert_answer(answer, ADMISSION_WAIT, REASON_NONE, CARD_UNKNOWN)
#define assert_no(answer, reason) assert_answer(answer, ADMISSION_NO, reason, CARD_UNKNOWN)

/* --- the node ------------------------------------------------------------------------------- */

START_TEST(a_node_must_be_known)
{
    assert_no(admit(1), REASON_NODE_UNKNOWN);
    put("a", 1, 0, false, 0); /* a pod came before its node */
    assert_no(admit(1), REASON_NODE_UNKNOWN);
    SET_CARDS(16, 16);
    ck_assert_int_eq(admit(1).admission, ADMISSION_YES);
    ledger_remove_node(book, "n1");
    assert_no(admit(1), REASON_NODE_UNKNOWN);
}
END_TEST

START_TEST(a_node_must_share_its_cards)
{
    ledger_set_topology(book, "n1", NULL);
    assert_no(admit(1), REASON_NOT_GPU_SHARE);
}
END_TEST

START_TEST(a_node_must_share_them_the_pods_way)
{
    struct dialect other = *gpushare;
    struct node *node = SET_CARDS(16, 16);
    g_autoptr(request) request = ask(1);

    request->dialect = &other;
    assert_no(admit_request(node, request), REASON_OTHER_DIALECT);
}
END_TEST

START_TEST(what_the_node_side_cannot_serve_is_refused_first)
{
    SET_CARDS(16, 16);
    g_autoptr(request) request = ask(99);
    const struct node *node = ledger_node(book, "n1");

    request->traits = REQUEST_SEVERAL_GPU_CONTAINERS;
    assert_no(admit_request(node, request), REASON_SEVERAL_GPU_CONTAINERS);
    request->traits = REQUEST_GPU_INIT_CONTAINER;
    assert_no(admit_request(node, request), REASON_GPU_INIT_CONTAINER);
    node = SET_CARDS(16);
    request->asks[0].memory.value = 9;
    assert_no(admit_request(node, request), REASON_GPU_INIT_CONTAINER);
    options.gpushare_any_on_single_card = true;
    assert_yes(admit_request(node, request), 0);
}
END_TEST

START_TEST(room_decides_for_the_rest)
{
    SET_CARDS(16, 8);
    assert_yes(admit(16), 0);
    assert_yes(admit(8), 1);
    assert_no(admit(17), REASON_CARD_TOO_SMALL);
    put("a", 10, 0, false, 0);
    assert_no(admit(9), REASON_INSUFFICIENT_MEMORY);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){0, 1}, 2);
    assert_no(admit(6), REASON_CARD_UNHEALTHY);
}
END_TEST

/* --- pods that wait for the node side ------------------------------------------------------- */

START_TEST(an_equal_pod_waits_for_the_one_that_waits)
{
    SET_CARDS(16, 16, 8);
    put("a", 5, 1, true, SECOND);
    assert_wait(admit(5)); /* on the same card, too */
    put("b", 5, 1, true, 0);
    assert_wait(admit(5));
    put("a", 5, 1, false, SECOND);
    assert_wait(admit(5));
    put("b", 5, 1, false, 0);
    assert_yes(admit(5), 1);
}
END_TEST

/* kubelet may still call the plugin for it. */
START_TEST(so_it_does_for_one_that_has_vanished)
{
    const struct departed departed = {gpushare, 5, NOW - SECOND};

    SET_CARDS(16, 16);
    ledger_set_departed(book, "n1", &departed, 1);
    assert_wait(admit(5));
    assert_yes(admit(4), 0);
    put("a", 5, 1, true, 2 * PATIENCE); /* the older one counts */
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
    put("a", 5, 1, false, 2 * PATIENCE);
    assert_wait(admit(5));
    ledger_set_departed(book, "n1", &(struct departed){gpushare, 5, NOW - PATIENCE}, 1);
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
    ledger_set_departed(book, "n1", NULL, 0);
    assert_yes(admit(5), 1);
}
END_TEST

START_TEST(another_size_does_not_care)
{
    SET_CARDS(16, 16, 8);
    put("a", 5, 1, true, SECOND);
    assert_yes(admit(4), 2);
    assert_yes(admit(6), 2);
}
END_TEST

START_TEST(a_pod_that_was_taken_is_waited_for_no_more)
{
    SET_CARDS(16, 16, 8);
    put("a", 5, 1, true, SECOND);
    put("a", 5, 1, false, SECOND);
    assert_yes(admit(5), 2);
}
END_TEST

START_TEST(so_is_one_that_ended)
{
    SET_CARDS(16, 16, 8);
    put("a", 5, 1, true, SECOND);
    ledger_drop(book, "a");
    assert_yes(admit(5), 2);
}
END_TEST

START_TEST(patience_ends_in_a_constant_reason)
{
    SET_CARDS(8, 16);
    put("a", 5, 0, true, PATIENCE - 1);
    assert_wait(admit(5));
    put("a", 5, 0, true, PATIENCE);
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
    put("a", 5, 0, true, 100 * PATIENCE);
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
    put("b", 5, 0, true, 0); /* over-booked; the oldest counts */
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
    put("a", 5, 0, true, -PATIENCE); /* another clock is ahead of ours */
    assert_wait(admit(5));
}
END_TEST

START_TEST(nobody_waits_for_room_that_will_not_be_there)
{
    SET_CARDS(8, 16);
    put("a", 5, 0, true, SECOND);
    put("b", 12, 1, false, SECOND);
    assert_no(admit(5), REASON_INSUFFICIENT_MEMORY);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){1}, 1);
    assert_no(admit(5), REASON_INSUFFICIENT_MEMORY);
}
END_TEST

START_TEST(one_that_waits_nobody_knows_where_counts)
{
    SET_CARDS(16, 16);
    put("a", 5, CARD_UNKNOWN, true, SECOND);
    assert_wait(admit(5));
    put("a", 5, 7, true, SECOND); /* no such card */
    assert_wait(admit(5));
    put("a", 5, CARD_UNKNOWN, true, NOW); /* nor since when */
    assert_no(admit(5), REASON_AWAITING_ASSIGNMENT);
}
END_TEST

START_TEST(a_sick_card_is_not_joined)
{
    SET_CARDS(16, 16);
    put("a", 5, 0, true, SECOND);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){0}, 1);
    assert_wait(admit(5));
}
END_TEST

/* Only the newest plugin gives its one card to who finds no match. */
START_TEST(on_a_single_card_as_well)
{
    SET_CARDS(16);
    put("a", 5, 0, true, SECOND);
    put("b", 5, CARD_UNKNOWN, true, SECOND);
    assert_wait(admit(5));
    put("c", 2, 0, true, SECOND);
    assert_no(admit(5), REASON_INSUFFICIENT_MEMORY);
}
END_TEST

START_TEST(asking_changes_nothing)
{
    const struct node *node = SET_CARDS(16, 16);

    put("a", 5, 0, true, SECOND);
    struct node before = *node;
    admit(5);
    admit(3);
    admit(99);
    ck_assert_mem_eq(&before, node, sizeof before);
    ck_assert(ledger_verify(book, NULL));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("admission");
    TCase *tc = tcase_create("admission");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_node_must_be_known);
    tcase_add_test(tc, a_node_must_share_its_cards);
    tcase_add_test(tc, a_node_must_share_them_the_pods_way);
    tcase_add_test(tc, what_the_node_side_cannot_serve_is_refused_first);
    tcase_add_test(tc, room_decides_for_the_rest);
    tcase_add_test(tc, an_equal_pod_waits_for_the_one_that_waits);
    tcase_add_test(tc, so_it_does_for_one_that_has_vanished);
    tcase_add_test(tc, another_size_does_not_care);
    tcase_add_test(tc, a_pod_that_was_taken_is_waited_for_no_more);
    tcase_add_test(tc, so_is_one_that_ended);
    tcase_add_test(tc, patience_ends_in_a_constant_reason);
    tcase_add_test(tc, nobody_waits_for_room_that_will_not_be_there);
    tcase_add_test(tc, one_that_waits_nobody_knows_where_counts);
    tcase_add_test(tc, a_sick_card_is_not_joined);
    tcase_add_test(tc, on_a_single_card_as_well);
    tcase_add_test(tc, asking_changes_nothing);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
