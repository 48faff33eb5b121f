/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"
#include "core/ledger.h"
#include "suite.h"


/* --- amounts -------------------------------------------------------------------------------- */

struct amount_case {
    struct amount amount;
    int64_t unit;
    int64_t bytes;
};

static const struct amount_case amount_cases[] = {
    {{0, AMOUNT_BYTES}, GIB, 0},
    {{5, AMOUNT_BYTES}, GIB, 5},
    {{5, AMOUNT_NODE_UNITS}, GIB, 5 * GIB},
    {{5, AMOUNT_NODE_UNITS}, 1, 5},
    {{AMOUNT_BYTES_MAX, AMOUNT_BYTES}, 1, AMOUNT_BYTES_MAX},
    {{AMOUNT_BYTES_MAX + 1, AMOUNT_BYTES}, 1, AMOUNT_BYTES_MAX},
    {{INT64_MAX, AMOUNT_BYTES}, 1, AMOUNT_BYTES_MAX},
    {{16384, AMOUNT_NODE_UNITS}, GIB, AMOUNT_BYTES_MAX},
    {{16385, AMOUNT_NODE_UNITS}, GIB, AMOUNT_BYTES_MAX},
    {{INT64_MAX, AMOUNT_NODE_UNITS}, GIB, AMOUNT_BYTES_MAX},
    {{INT64_MAX, AMOUNT_NODE_UNITS}, INT64_MAX, AMOUNT_BYTES_MAX},
    {{INT64_C(1) << 34, AMOUNT_NODE_UNITS}, GIB, AMOUNT_BYTES_MAX}, /* the product is 2^64 */
    {{-1, AMOUNT_BYTES}, 1, 0},
    {{-1, AMOUNT_NODE_UNITS}, GIB, 0},
};

START_TEST(amounts_saturate)
{
    const struct amount_case *c = &amount_cases[_i];
    ck_assert_int_eq(amount_bytes(c->amount, c->unit), c->bytes);
}
END_TEST

START_TEST(the_largest_amounts_add_up_and_go_away_again)
{
    struct share shares[REQUEST_ASKS_MAX];
    const struct node *node = set_equal_cards("n1", 2, 16);

    for (size_t i = 0; i < G_N_ELEMENTS(shares); i++)
        shares[i] = units_on(i % 3 == 2 ? CARD_UNKNOWN : (int32_t)(i % 3), INT64_MAX);
    for (int i = 0; i < 300; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        ledger_put(book, "n1", holding(uid, G_N_ELEMENTS(shares), shares));
    }
    ck_assert_int_eq(node->cards[0].memory_used, 300 * 22 * AMOUNT_BYTES_MAX);
    ck_assert_int_eq(node->unplaced_memory, 300 * 21 * AMOUNT_BYTES_MAX);
    ck_assert_int_eq(free_on("n1", 0), 0);
    ck_assert_int_eq(free_on("n1", 1), 0);
    for (int i = 0; i < 300; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        ck_assert(ledger_drop(book, uid));
    }
    ck_assert_int_eq(free_on("n1", 0), 16);
    ck_assert_int_eq(free_on("n1", 1), 16);
}
END_TEST

/* --- reserving ------------------------------------------------------------------------------ */

START_TEST(an_empty_ledger_answers)
{
    ck_assert_uint_eq(ledger_size(book), 0);
    ck_assert_uint_eq(ledger_nodes(book)->len, 0);
    ck_assert_ptr_null(ledger_node(book, "n1"));
    ck_assert_ptr_null(ledger_get(book, "u1"));
    ck_assert(!ledger_drop(book, "u1"));
    ledger_remove_node(book, "n1");
    ledger_set_unhealthy(book, "n1", NULL, 0);
    ck_assert_uint_eq(ledger_nodes(book)->len, 0);
    ledger_free(NULL);
    allocation_free(NULL);
}
END_TEST

START_TEST(a_reservation_takes_and_a_drop_gives_back)
{
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(1, 6))), REASON_NONE);

    const struct allocation *allocation = ledger_get(book, "u1");
    ck_assert_str_eq(allocation->ns, "ml");
    ck_assert_int_eq(allocation->state, ALLOCATION_ASSUMED);
    ck_assert_ptr_eq(allocation->node, ledger_node(book, "n1"));
    ck_assert_uint_eq(allocation->node->allocations->len, 1);
    ck_assert_int_eq(free_on("n1", 0), 16);
    ck_assert_int_eq(free_on("n1", 1), 10);
    ck_assert_int_eq(node_card(allocation->node, 1)->holders, 1);

    ck_assert(ledger_drop(book, "u1"));
    ck_assert(!ledger_drop(book, "u1"));
    ck_assert_int_eq(free_on("n1", 1), 16);
    ck_assert_uint_eq(ledger_size(book), 0);
}
END_TEST

START_TEST(what_fits_exactly_fits)
{
    set_equal_cards("n1", 1, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 10))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(0, 7))), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(0, 6))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u3", {{1, AMOUNT_BYTES}})), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(free_on("n1", 0), 0);
    ck_assert_int_eq(reserve("n1", HOLDING("u3", units_on(0, 0))), REASON_NONE);
}
END_TEST

START_TEST(shares_of_one_pod_add_up)
{
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 9), units_on(0, 8))),
                     REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", core_on(0, 600), core_on(0, 500))),
                     REASON_INSUFFICIENT_CORE);
    ck_assert_int_eq(free_on("n1", 0), 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 9), units_on(1, 8), units_on(0, 7))),
                     REASON_NONE);
    ck_assert_int_eq(free_on("n1", 0), 0);
    ck_assert_int_eq(free_on("n1", 1), 8);
    ck_assert_int_eq(node_card(ledger_node(book, "n1"), 0)->holders, 2);
}
END_TEST

START_TEST(all_shares_or_none)
{
    set_equal_cards("n1", 3, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 1), units_on(2, 17))),
                     REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 1), units_on(3, 1))),
                     REASON_CARD_COUNT);
    ck_assert_int_eq(free_on("n1", 0), 16);
    ck_assert_uint_eq(ledger_node(book, "n1")->allocations->len, 0);
}
END_TEST

START_TEST(a_reservation_needs_its_card)
{
    static const int32_t unhealthy[] = {1};

    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 1))), REASON_NODE_UNKNOWN);
    ck_assert_ptr_null(ledger_node(book, "n1"));
    ledger_set_topology(book, "n1", NULL);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 1))), REASON_CARD_COUNT);
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(2, 1))), REASON_CARD_COUNT);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(-2, 1))), REASON_CARD_COUNT);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(INT32_MAX, 1))), REASON_CARD_COUNT);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(CARD_UNKNOWN, 1))), REASON_CARD_COUNT);
    ledger_set_unhealthy(book, "n1", unhealthy, 1);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(1, 1))), REASON_CARD_UNHEALTHY);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(0, 1))), REASON_NONE);
    ledger_remove_node(book, "n1");
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(0, 1))), REASON_NODE_UNKNOWN);
}
END_TEST

/* Also on a node with one card, where a pod without an index is known to sit on it. */
START_TEST(an_unknown_card_cannot_be_reserved)
{
    set_equal_cards("n1", 1, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(CARD_UNKNOWN, 1))), REASON_CARD_COUNT);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", units_on(1, 1))), REASON_CARD_COUNT);
}
END_TEST

START_TEST(core_is_shared_in_thousandths)
{
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", core_on(0, 600))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", core_on(0, 401))), REASON_INSUFFICIENT_CORE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", core_on(0, 400))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u3", core_on(1, CORE_WHOLE + 1))),
                     REASON_INSUFFICIENT_CORE);

    const struct node *node = ledger_node(book, "n1");
    ck_assert_int_eq(card_core_free(node, node_card(node, 0)), 0);
    ck_assert_int_eq(card_core_free(node, node_card(node, 1)), CORE_WHOLE);
    ledger_put(book, "n1", HOLDING("u4", core_on(0, 5000)));
    ck_assert_int_eq(card_core_free(node, node_card(node, 0)), 0);
}
END_TEST

START_TEST(an_exclusive_holder_is_alone)
{
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", exclusive_on(0))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u2", units_on(0, 1))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u2", units_on(0, 0))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u2", exclusive_on(0))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(1, 1))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u3", exclusive_on(1))), REASON_NONE);
    ledger_drop(book, "u1");
    ledger_drop(book, "u2");
    ck_assert_int_eq(reserve("n1", HOLDING("u3", exclusive_on(1))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u4", units_on(0, 16))), REASON_NONE);
}
END_TEST

/* A holder whose card is not known may be on this one. */
START_TEST(an_exclusive_holder_keeps_clear_of_the_unplaced)
{
    set_equal_cards("n1", 2, 16);
    put("n1", "u1", CARD_UNKNOWN, 0);
    ck_assert_int_ne(reserve("n1", HOLDING("u2", exclusive_on(0))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(0, 16))), REASON_NONE);
}
END_TEST

START_TEST(nobody_joins_an_exclusive_holder_that_is_unplaced)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    ledger_put(book, "n1", HOLDING("u1", exclusive_on(CARD_UNKNOWN)));
    ck_assert_int_ne(reserve("n1", HOLDING("u2", units_on(0, 1))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u2", units_on(1, 0))), REASON_NONE);
    ck_assert_int_lt(node->memory_free_max, 0);
    ledger_drop(book, "u1");
    ck_assert_int_eq(node->memory_free_max, 16 * GIB);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", units_on(0, 1))), REASON_NONE);
}
END_TEST

/* Nor does its own pod. */
START_TEST(an_exclusive_share_is_alone_in_its_pod)
{
    set_equal_cards("n1", 2, 16);
    ck_assert_int_ne(reserve("n1", HOLDING("u1", exclusive_on(0), units_on(0, 1))), REASON_NONE);
    ck_assert_int_ne(reserve("n1", HOLDING("u1", exclusive_on(0), exclusive_on(0))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", exclusive_on(0), units_on(1, 1))), REASON_NONE);
}
END_TEST

START_TEST(many_pods_are_told_apart)
{
    set_equal_cards("n1", 8, 1000);
    for (int i = 0; i < 1000; i++) {
        g_autofree char *uid = g_strdup_printf("6f9619ff-8b86-d011-b42d-%012d", i);
        ck_assert_int_eq(reserve("n1", HOLDING(uid, units_on(i % 8, 1))), REASON_NONE);
    }
    ck_assert_uint_eq(ledger_size(book), 1000);
    for (int i = 0; i < 1000; i += 2) {
        g_autofree char *uid = g_strdup_printf("6f9619ff-8b86-d011-b42d-%012d", i);
        ck_assert_str_eq(ledger_get(book, uid)->uid, uid);
        ck_assert(ledger_drop(book, uid));
        ck_assert_ptr_null(ledger_get(book, uid));
    }
    for (int32_t card = 0; card < 8; card++)
        ck_assert_int_eq(free_on("n1", card), card % 2 ? 875 : 1000);
}
END_TEST

/* --- recording what is ---------------------------------------------------------------------- */

START_TEST(what_is_recorded_may_exceed_the_card)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    put("n1", "u1", 0, 10);
    put("n1", "u2", 0, 10);
    ck_assert_int_eq(node->cards[0].memory_used, 20 * GIB);
    ck_assert_int_eq(free_on("n1", 0), 0);
    ck_assert_int_eq(free_on("n1", 1), 16);
    ck_assert_int_eq(reserve("n1", HOLDING("u3", units_on(0, 1))), REASON_INSUFFICIENT_MEMORY);
    ledger_drop(book, "u1");
    ck_assert_int_eq(free_on("n1", 0), 6);
    ck_assert_int_eq(reserve("n1", HOLDING("u3", units_on(0, 6))), REASON_NONE);
}
END_TEST

START_TEST(the_same_news_twice_is_no_news)
{
    set_equal_cards("n1", 2, 16);
    struct allocation *first = put("n1", "u1", 1, 6);
    struct allocation *again = HOLDING("u1", units_on(1, 6));

    again->state = ALLOCATION_CONFIRMED;
    again->since_ms = 77;
    allocation_own(again)->generation = 3;
    again->started = again->terminating = again->waited_out = again->heeded = true;
    ck_assert_ptr_eq(ledger_put(book, "n1", again), first);
    ck_assert(first->started && first->terminating && first->waited_out && first->heeded);
    ck_assert_int_eq(first->state, ALLOCATION_CONFIRMED);
    ck_assert_int_eq(first->since_ms, 77);
    ck_assert_uint_eq(allocation_own(first)->generation, 3);
    ck_assert_int_eq(free_on("n1", 1), 10);
    ck_assert_uint_eq(ledger_size(book), 1);
    ck_assert_uint_eq(ledger_node(book, "n1")->allocations->len, 1);
}
END_TEST

START_TEST(other_news_replace_the_old)
{
    set_equal_cards("n1", 2, 16);
    put("n1", "u1", 1, 6);
    put("n1", "u1", 0, 6);
    ck_assert_int_eq(free_on("n1", 0), 10);
    ck_assert_int_eq(free_on("n1", 1), 16);
    put("n1", "u1", 0, 9);
    ck_assert_int_eq(free_on("n1", 0), 7);
    ledger_put(book, "n1", HOLDING("u1", units_on(0, 2), units_on(1, 3)));
    ck_assert_int_eq(free_on("n1", 0), 14);
    ck_assert_int_eq(free_on("n1", 1), 13);
    ck_assert_uint_eq(ledger_size(book), 1);
    ck_assert_uint_eq(ledger_node(book, "n1")->allocations->len, 1);
}
END_TEST

START_TEST(a_pod_moves_between_nodes)
{
    set_equal_cards("n1", 1, 16);
    set_equal_cards("n2", 1, 16);
    put("n1", "u1", 0, 6);
    put("n1", "u2", 0, 1);
    put("n2", "u1", 0, 6);
    ck_assert_int_eq(free_on("n1", 0), 15);
    ck_assert_int_eq(free_on("n2", 0), 10);
    ck_assert_ptr_eq(ledger_get(book, "u1")->node, ledger_node(book, "n2"));
    ck_assert_uint_eq(ledger_node(book, "n1")->allocations->len, 1);
    put("n3", "u1", 0, 6); /* not known yet */
    ck_assert_int_eq(free_on("n2", 0), 16);
    ck_assert_int_eq(ledger_node(book, "n3")->unplaced_memory, 6);
    put("n2", "u1", 0, 6);
    ck_assert_ptr_null(ledger_node(book, "n3"));
    ck_assert_int_eq(free_on("n2", 0), 10);
}
END_TEST

START_TEST(a_pod_without_shares_holds_nothing)
{
    const struct node *node = set_equal_cards("n1", 2, 16);
    struct allocation *allocation = allocation_new("u1", "ml", "a", 0);

    allocation->waiting = true;
    ledger_put(book, "n1", allocation);
    ck_assert_int_eq(node->n_waiting, 1);
    ck_assert_int_eq(node->memory_free_max, 16 * GIB);
    ledger_drop(book, "u1");
    ck_assert_int_eq(node->n_waiting, 0);
}
END_TEST

START_TEST(waiting_pods_are_counted)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        struct allocation *allocation = HOLDING(uid, units_on(0, 1));
        allocation->waiting = i > 0;
        ledger_put(book, "n1", allocation);
    }
    ck_assert_int_eq(node->n_waiting, 2);
    set_equal_cards("n1", 3, 16);
    ck_assert_int_eq(node->n_waiting, 2);
    put("n1", "u1", 0, 1);
    ck_assert_int_eq(node->n_waiting, 1);
    ledger_drop(book, "u2");
    ck_assert_int_eq(node->n_waiting, 0);
}
END_TEST

/* --- unplaced shares ------------------------------------------------------------------------ */

START_TEST(an_unplaced_share_counts_on_every_card)
{
    const struct node *node = set_equal_cards("n1", 3, 16);

    put("n1", "u1", 1, 6);
    ledger_put(book, "n1", HOLDING("u2", units_on(CARD_UNKNOWN, 5)));
    put("n1", "u3", 7, 4); /* no such card */
    ck_assert_int_eq(free_on("n1", 0), 7);
    ck_assert_int_eq(free_on("n1", 1), 1);
    ck_assert_int_eq(free_on("n1", 2), 7);
    ck_assert_int_eq(node->unplaced_holders, 2);
    ck_assert_int_eq(reserve("n1", HOLDING("u4", units_on(0, 8))), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(reserve("n1", HOLDING("u4", units_on(0, 7))), REASON_NONE);
    ledger_drop(book, "u2");
    ledger_drop(book, "u3");
    ck_assert_int_eq(free_on("n1", 0), 9);
    ck_assert_int_eq(free_on("n1", 1), 10);
}
END_TEST

START_TEST(unplaced_core_counts_on_every_card)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    ledger_put(book, "n1", HOLDING("u1", core_on(CARD_UNKNOWN, 300)));
    ck_assert_int_eq(card_core_free(node, node_card(node, 1)), 700);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", core_on(1, 701))), REASON_INSUFFICIENT_CORE);
    ledger_put(book, "n1", HOLDING("u1", core_on(CARD_UNKNOWN, 5000)));
    ck_assert_int_eq(card_core_free(node, node_card(node, 1)), 0);
}
END_TEST

START_TEST(a_single_card_holds_whatever_is_on_the_node)
{
    const struct node *node = set_equal_cards("n1", 1, 16);

    put("n1", "u1", CARD_UNKNOWN, 5);
    put("n1", "u2", 3, 4);
    ck_assert_int_eq(node->cards[0].memory_used, 9 * GIB);
    ck_assert_int_eq(node->cards[0].holders, 2);
    ck_assert_int_eq(node->unplaced_memory, 0);
    ck_assert_int_eq(node->unplaced_holders, 0);
    ck_assert_int_eq(free_on("n1", 0), 7);
}
END_TEST

/* --- states --------------------------------------------------------------------------------- */

START_TEST(a_confirmed_allocation_stays_confirmed)
{
    set_equal_cards("n1", 1, 16);
    struct allocation *allocation = put("n1", "u1", 0, 1);

    for (int state = ALLOCATION_ASSUMED; state <= ALLOCATION_CONFIRMED; state++) {
        ledger_set_state(book, allocation, state);
        ck_assert_int_eq(allocation->state, state);
    }
    for (int state = ALLOCATION_ASSUMED; state <= ALLOCATION_CONFIRMED; state++) {
        ledger_set_state(book, allocation, state);
        ck_assert_int_eq(allocation->state, ALLOCATION_CONFIRMED);
    }
}
END_TEST

static void count_visit(struct allocation *allocation, void *data)
{
    (*(int *)data)++;
    allocation_own(allocation)->generation++;
}

START_TEST(each_allocation_is_visited_once)
{
    int visits = 0;

    put("n1", "u1", 0, 1);
    put("n1", "u2", 0, 1);
    put("n2", "u3", 0, 1);
    ledger_each(book, count_visit, &visits);
    ck_assert_int_eq(visits, 3);
    ck_assert_uint_eq(allocation_own(ledger_get(book, "u3"))->generation, 1);
}
END_TEST

/* --- equality ------------------------------------------------------------------------------- */

static const struct share sample_share = {{5, AMOUNT_NODE_UNITS}, 1, 2, 300, false};

static struct allocation *sample(const char *uid, const char *ns, const char *name, size_t n)
{
    struct allocation *allocation = allocation_new(uid, ns, name, n);

    allocation->dialect = DIALECT;
    allocation->match_amount = 5;
    allocation->assume_time_ns = 9;
    for (size_t i = 0; i < n; i++)
        allocation->shares[i] = sample_share;
    return allocation;
}

START_TEST(equality_looks_at_everything_but_state_and_marks)
{
    struct node elsewhere = {0};
    g_autoptr(allocation) a = sample("u", "n", "p", 2);
    g_autoptr(allocation) b = sample("u", "n", "p", 2);

    b->state = ALLOCATION_CONFIRMED;
    b->since_ms = 5;
    allocation_own(b)->generation = 8;
    ck_assert(allocation_equal(a, b));

#define DIFFERS(member, value)                                                                     \
    do {                                                                                           \
        g_autoptr(allocation) c = sample("u", "n", "p", 2);                                        \
        c->member = value;                                                                         \
        ck_assert_msg(!allocation_equal(a, c), "%s", #member);                                     \
        ck_assert_msg(!allocation_equal(c, a), "%s", #member);                                     \
    } while (0)
    DIFFERS(node, &elsewhere);
    DIFFERS(dialect, OTHER_DIALECT);
    DIFFERS(distrust, DISTRUST_LOST);
    DIFFERS(assigned, true);
    DIFFERS(waiting, true);
    DIFFERS(match_amount, 6);
    DIFFERS(host.cpu, 1);
    DIFFERS(host.memory, 1);
    DIFFERS(assume_time_ns, 10);
    DIFFERS(shares[1].memory.value, 6);
    DIFFERS(shares[1].memory.kind, AMOUNT_BYTES);
    DIFFERS(shares[1].container, 0);
    DIFFERS(shares[1].card, 0);
    DIFFERS(shares[1].core, 0);
    DIFFERS(shares[1].exclusive, true);

    static const char *const names[][3] = {{"v", "n", "p"}, {"u", "m", "p"}, {"u", "n", "q"}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(allocation) c = sample(names[i][0], names[i][1], names[i][2], 2);
        ck_assert(!allocation_equal(a, c));
    }
    g_autoptr(allocation) fewer = sample("u", "n", "p", 1);
    ck_assert(!allocation_equal(a, fewer));
    ck_assert(!allocation_equal(fewer, a));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ledger");
    TCase *tc = tcase_create("ledger");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, amounts_saturate, 0, G_N_ELEMENTS(amount_cases));
    tcase_add_test(tc, the_largest_amounts_add_up_and_go_away_again);
    tcase_add_test(tc, an_empty_ledger_answers);
    tcase_add_test(tc, a_reservation_takes_and_a_drop_gives_back);
    tcase_add_test(tc, what_fits_exactly_fits);
    tcase_add_test(tc, shares_of_one_pod_add_up);
    tcase_add_test(tc, all_shares_or_none);
    tcase_add_test(tc, a_reservation_needs_its_card);
    tcase_add_test(tc, an_unknown_card_cannot_be_reserved);
    tcase_add_test(tc, core_is_shared_in_thousandths);
    tcase_add_test(tc, an_exclusive_holder_is_alone);
    tcase_add_test(tc, an_exclusive_holder_keeps_clear_of_the_unplaced);
    tcase_add_test(tc, nobody_joins_an_exclusive_holder_that_is_unplaced);
    tcase_add_test(tc, an_exclusive_share_is_alone_in_its_pod);
    tcase_add_test(tc, many_pods_are_told_apart);
    tcase_add_test(tc, what_is_recorded_may_exceed_the_card);
    tcase_add_test(tc, the_same_news_twice_is_no_news);
    tcase_add_test(tc, other_news_replace_the_old);
    tcase_add_test(tc, a_pod_moves_between_nodes);
    tcase_add_test(tc, a_pod_without_shares_holds_nothing);
    tcase_add_test(tc, waiting_pods_are_counted);
    tcase_add_test(tc, an_unplaced_share_counts_on_every_card);
    tcase_add_test(tc, unplaced_core_counts_on_every_card);
    tcase_add_test(tc, a_single_card_holds_whatever_is_on_the_node);
    tcase_add_test(tc, a_confirmed_allocation_stays_confirmed);
    tcase_add_test(tc, each_allocation_is_visited_once);
    tcase_add_test(tc, equality_looks_at_everything_but_state_and_marks);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
