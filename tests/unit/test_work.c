/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that are cut short, and what counts tell then. */
#include "policy/effort/placement_search.h"
#include "policy/effort/work_meter.h"
#include "suite.h"

#include <string.h>

#define GIB (INT64_C(1) << 30)
#define CARDS 16
#define ASKS_MAX 24

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

static struct ledger *book;
static const struct node *node;
static struct request *asks;
static struct work_meter work;
static struct placement placement;

static void setup(void)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    topology->dialect = DIALECT;
    topology->memory_unit = GIB;
    topology->n_cards = CARDS;
    for (int32_t i = 0; i < CARDS; i++) {
        topology->cards[i].memory = 100 * GIB;
        topology->cards[i].model = "NVIDIA A100";
    }
    book = ledger_new();
    node = ledger_set_topology(book, "n", topology);
    asks = request_new(DIALECT, ASKS_MAX);
    asks->n_asks = 0;
    work_begin(&work);
}

static void teardown(void)
{
    request_free(asks);
    ledger_free(book);
}

static void ask(int64_t gib, int32_t core)
{
    asks->asks[asks->n_asks] = (struct card_ask){.memory = {gib * GIB, AMOUNT_BYTES},
                                                 .container = (int32_t)asks->n_asks,
                                                 .count = 1,
                                                 .core = core};
    asks->n_asks++;
}

static enum reason find(void)
{
    const struct placement_query query = {policies, NULL, CARD_UNKNOWN, &work};

    return placement_search(node, asks, &query, &placement);
}

/* What everybody holds of a card is no more than it has. */
static void check_placement(void)
{
    int64_t left[CARDS];

    ck_assert_uint_eq(placement.n_shares, asks->n_asks);
    for (int i = 0; i < CARDS; i++)
        left[i] = 100 * GIB;
    for (uint32_t i = 0; i < placement.n_shares; i++)
        left[placement.shares[i].card] -= placement.shares[i].memory.value;
    for (int i = 0; i < CARDS; i++)
        ck_assert_int_ge(left[i], 0);
}

/* Each needs more than half a card, and there is one more than there are cards. */
START_TEST(more_large_shares_than_cards_are_counted)
{
    const bool core = _i;

    for (int i = 0; i < CARDS + 1; i++)
        ask(core ? 1 : 61 + i % 30, core ? 501 + i : 0);
    ask(1, 1); /* a small one beside them hides them from no count */
    ck_assert_int_eq(find(), core ? REASON_INSUFFICIENT_CORE : REASON_INSUFFICIENT_MEMORY);
    ck_assert(!work.cut);
    ck_assert_int_lt(work.done, 2000);
}
END_TEST

/* Ten for a third and ten for two thirds of a card. */
static void ask_for_thirds(void)
{
    for (int i = 0; i < 10; i++)
        ask(33, 0);
    for (int i = 0; i < 10; i++)
        ask(66, 0);
}

START_TEST(what_fits_side_by_side_is_found_without_a_search)
{
    for (int i = 0; i < 20; i++)
        ask(40 + i % 3, 0);
    work.left = INT64_MIN / 2;
    ck_assert_int_eq(find(), REASON_NONE);
    check_placement();
    ck_assert(work.hasty);
    ck_assert(!work.cut);
    ck_assert_int_lt(work.done, 300);
}
END_TEST

START_TEST(a_search_finds_what_counts_do_not)
{
    ask_for_thirds();
    ck_assert_int_eq(find(), REASON_NONE);
    check_placement();
    ck_assert(!work.hasty);
}
END_TEST

/* None fits beside the one before it. */
START_TEST(nothing_is_known_without_a_search_and_without_counts)
{
    for (int i = 0; i < 20; i++)
        ask(i % 2 ? 40 : 70, 0);
    work.left = INT64_MIN / 2;
    ck_assert_int_eq(find(), REASON_WORK_LIMIT);
    ck_assert(work.cut);
    ck_assert(work.hasty);
    ck_assert(reason_info(REASON_WORK_LIMIT)->resolvable);
}
END_TEST

/* As of any node, whatever others have cost. */
START_TEST(a_little_is_left_for_each_node)
{
    ask(40, 0);
    ask(70, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(find(), REASON_NONE);
    ck_assert(!work.hasty);
    check_placement();
}
END_TEST

START_TEST(a_model_is_judged_once)
{
    ask(1, 0);
    asks->terms = terms_new();
    asks->terms->models = g_strsplit("V100,H100,A100", ",", -1);
    ck_assert_int_eq(find(), REASON_NONE);
    ck_assert_int_eq(work.done, CARDS + 3);
    for (int i = 0; i < 10; i++)
        find();
    ck_assert_int_eq(work.done, 11 * CARDS + 3);

    struct terms *others = terms_new();
    others->models_not = g_strsplit("A100", ",", -1);
    terms_unref(asks->terms);
    asks->terms = others;
    ck_assert_int_eq(find(), REASON_TERMS);
}
END_TEST

/* What is cheap is always done; what is dear, as often as there is something left for searches. */
START_TEST(what_a_pod_makes_dear_is_done_while_there_is_work_left)
{
    work.left = 100;
    for (int i = 0; i < 1000; i++)
        ck_assert(work_afford(&work, WORK_NODE));
    ck_assert(work_afford(&work, WORK_NODE + 60));
    ck_assert_int_eq(work.left, 40);
    ck_assert(!work.cut);
    ck_assert(!work_afford(&work, WORK_NODE + 60));
    ck_assert(work.cut);
    ck_assert(work_afford(&work, WORK_NODE + 40));
    ck_assert_int_eq(work.left, 0);
    ck_assert_int_eq(work.done, 1002 * WORK_NODE + 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("work");
    TCase *tests = tcase_create("work");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, more_large_shares_than_cards_are_counted, 0, 2);
    tcase_add_test(tests, what_fits_side_by_side_is_found_without_a_search);
    tcase_add_test(tests, a_search_finds_what_counts_do_not);
    tcase_add_test(tests, nothing_is_known_without_a_search_and_without_counts);
    tcase_add_test(tests, a_little_is_left_for_each_node);
    tcase_add_test(tests, a_model_is_judged_once);
    tcase_add_test(tests, what_a_pod_makes_dear_is_done_while_there_is_work_left);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
