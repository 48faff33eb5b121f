/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <gpuledger/placement.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)
#define NOWHERE (-9)

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

/* A node "n" whose cards have the given sizes, of which the given amounts are used. */
struct cards {
    int32_t n;
    int64_t size[8];
    int64_t used[8];
    int32_t core[8];
    bool sick[8], exclusive[8];
    int64_t unplaced;
    bool unplaced_exclusive;
};

static const struct node *build(struct ledger *ledger, const struct cards *cards)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    int32_t sick[8];
    size_t n_sick = 0;

    topology->dialect = DIALECT;
    topology->memory_unit = GIB;
    topology->n_cards = cards->n;
    for (int32_t i = 0; i < cards->n; i++)
        topology->cards[i].memory = cards->size[i] * GIB;
    ledger_set_topology(ledger, "n", topology);
    for (int32_t i = 0; i < cards->n; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

        allocation->shares[0] = (struct share){
            .memory = {cards->used[i], AMOUNT_NODE_UNITS},
            .card = i,
            .core = cards->core[i],
            .exclusive = cards->exclusive[i],
        };
        if (cards->used[i] || cards->core[i] || cards->exclusive[i])
            ledger_put(ledger, "n", allocation);
        else
            allocation_free(allocation);
        if (cards->sick[i])
            sick[n_sick++] = i;
    }
    if (cards->unplaced || cards->unplaced_exclusive) {
        struct allocation *allocation = allocation_new("u", "ml", "u", 1);
        allocation->shares[0] = (struct share){
            .memory = {cards->unplaced, AMOUNT_NODE_UNITS},
            .card = CARD_UNKNOWN,
            .exclusive = cards->unplaced_exclusive,
        };
        ledger_put(ledger, "n", allocation);
    }
    ledger_set_unhealthy(ledger, "n", sick, n_sick);
    return ledger_node(ledger, "n");
}

static struct card_ask gib(int64_t units)
{
    return (struct card_ask){.memory = {units, AMOUNT_NODE_UNITS}, .count = 1};
}

static struct request *asking(size_t n, const struct card_ask *asks)
{
    struct request *request = request_new(DIALECT, n);
    memcpy(request->asks, asks, n * sizeof *asks);
    return request;
}

#define ASKING(...)                                                                                \
    asking(G_N_ELEMENTS(((const struct card_ask[]){__VA_ARGS__})),                                 \
           (const struct card_ask[]){__VA_ARGS__})

/* --- policies ------------------------------------------------------------------------------- */

START_TEST(policies_are_found_by_name)
{
    ck_assert_str_eq(policies[0].name, "binpack"); /* the default, as the peer's */
    for (const struct policy *policy = policies; policy->name; policy++) {
        ck_assert_ptr_eq(policy_find(policy->name), policy);
        ck_assert_ptr_nonnull(policy->help);
        ck_assert_ptr_nonnull(policy->cost);
    }
    ck_assert_ptr_null(policy_find("best"));
    ck_assert_ptr_null(policy_find(""));
    ck_assert_ptr_null(policy_find(NULL));
}
END_TEST

struct policy_case {
    struct cards cards;
    int64_t ask;
    int32_t binpack, spread, first_fit; /* card, or NOWHERE */
};

static const struct policy_case policy_cases[] = {
    /* ties go to the lowest index */
    {{4, {16, 16, 16, 16}}, 4, 0, 0, 0},
    {{4, {16, 16, 16, 16}, {8, 4, 8, 4}}, 4, 0, 1, 0},
    {{4, {16, 16, 16, 16}, {4, 8, 4, 8}}, 4, 1, 0, 0},
    /* what is left counts, neither size nor use */
    {{3, {32, 16, 24}, {20, 2, 14}}, 4, 2, 1, 0},
    {{2, {10, 20}}, 10, 0, 1, 0},
    {{2, {20, 10}}, 10, 1, 0, 0},
    /* only cards that fit are ordered */
    {{3, {16, 16, 16}, {15, 10, 0}}, 4, 1, 2, 1},
    {{3, {16, 16, 16}, {15, 13, 12}}, 4, 2, 2, 2},
    {{3, {16, 16, 16}, {15, 13, 14}}, 4, NOWHERE, NOWHERE, NOWHERE},
    {{3, {16, 16, 16}, {8, 0, 0}, .sick = {true, true}}, 4, 2, 2, 2},
    {{3, {16, 16, 16}, {8, 0, 0}, .exclusive = {true}}, 4, 1, 1, 1},
    /* exactly */
    {{2, {16, 16}, {0, 6}}, 10, 1, 0, 0},
    {{2, {16, 16}, {0, 6}}, 11, 0, 0, 0},
    {{2, {16, 16}, {0, 6}}, 16, 0, 0, 0},
    {{2, {16, 16}, {0, 6}}, 17, NOWHERE, NOWHERE, NOWHERE},
    /* a card with more on it than it has is full */
    {{2, {16, 16}, {99, 4}}, 1, 1, 1, 1},
    {{2, {16, 16}, {99, 16}}, 1, NOWHERE, NOWHERE, NOWHERE},
    /* so is a card that does not count what may be on it */
    {{2, {16, 16}, {4, 8}, .unplaced = 8}, 4, 0, 0, 0},
    {{2, {16, 16}, {4, 8}, .unplaced = 8}, 5, NOWHERE, NOWHERE, NOWHERE},
    {{2, {16, 16}, .unplaced_exclusive = true}, 1, NOWHERE, NOWHERE, NOWHERE},
    /* nothing at all fits everywhere that is healthy */
    {{2, {16, 16}, {16, 20}}, 0, 0, 0, 0},
};

START_TEST(policies_order_the_cards_that_fit)
{
    const struct policy_case *c = &policy_cases[_i];
    const int32_t cards[] = {c->binpack, c->spread, c->first_fit};
    static const char *const names[] = {"binpack", "spread", "first-fit"};
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &c->cards);
    g_autoptr(request) request = ASKING(gib(c->ask));

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        struct placement placement = {.n_shares = 99};
        enum reason reason =
            placement_find(node, request, policy_find(names[i]), NULL, CARD_UNKNOWN, &placement);
        ck_assert_msg((reason == REASON_NONE) == (cards[i] != NOWHERE), "%s", names[i]);
        /* What a summary can tell is never wrong; here it can always tell. */
        ck_assert_int_eq(placement_is_obvious(node, request), reason == REASON_NONE);
        if (reason != REASON_NONE)
            continue;
        ck_assert_uint_eq(placement.n_shares, 1);
        ck_assert_msg(placement.shares[0].card == cards[i], "%s: card %d", names[i],
                      placement.shares[0].card);
        ck_assert_int_eq(placement.shares[0].memory.value, c->ask);
        ck_assert_int_eq(placement.shares[0].memory.kind, AMOUNT_NODE_UNITS);
    }
}
END_TEST

/* Shares of compute alone, or that take nothing but a slot. */
START_TEST(compute_and_slots_decide_where_memory_does_not)
{
    static const int32_t held[] = {100, 300, 300, 0}; /* thousandths */
    static const char *const uids[] = {"u0", "u1", "u2", "u3"};
    g_autoptr(ledger) ledger = ledger_new();
    g_autoptr(topology) topology = topology_new();
    g_autoptr(request) request = request_new(DIALECT, 1);
    struct placement placement;

    topology->dialect = DIALECT;
    topology->n_cards = G_N_ELEMENTS(held);
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i] = (struct topology_card){.slots = 8};
    const struct node *node = ledger_set_topology(ledger, "n", topology);
    for (int32_t i = 0; i < topology->n_cards; i++) {
        struct allocation *allocation = allocation_new(uids[i], "ml", "p", i == 2 ? 2 : 1);
        for (uint32_t j = 0; j < allocation->n_shares; j++)
            allocation->shares[j] = (struct share){.card = i, .core = j == 0 ? held[i] : 0};
        ledger_put(ledger, "n", allocation);
    }
    request->asks[0] = (struct card_ask){.core = 200, .count = 1};
    placement_find(node, request, policy_find("binpack"), NULL, CARD_UNKNOWN, &placement);
    ck_assert_int_eq(placement.shares[0].card, 2); /* as much compute as 1, fewer slots */
    placement_find(node, request, policy_find("spread"), NULL, CARD_UNKNOWN, &placement);
    ck_assert_int_eq(placement.shares[0].card, 3);
    request->asks[0].core = 800;
    placement_find(node, request, policy_find("binpack"), NULL, CARD_UNKNOWN, &placement);
    ck_assert_int_eq(placement.shares[0].card, 0);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------- */

struct refusal_case {
    struct cards cards;
    struct card_ask ask;
    int32_t pinned;
    enum reason reason;
};

/* Of one card, unless it says otherwise. */
#define ANY CARD_UNKNOWN
#define ASK(units, ...)                                                                            \
    {                                                                                              \
        .memory = {units, AMOUNT_NODE_UNITS}, __VA_ARGS__                                          \
    }

static const struct refusal_case refusal_cases[] = {
    {{0}, ASK(1), ANY, REASON_NOT_GPU_SHARE},
    {{2, {16, 16}}, ASK(17), ANY, REASON_CARD_TOO_SMALL},
    {{2, {16, 16}}, ASK(INT64_MAX), ANY, REASON_CARD_TOO_SMALL},
    {{2, {16, 16}, {9, 9}}, ASK(8), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 8}, {9, 0}}, ASK(9), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, .sick = {true, true}}, ASK(8), ANY, REASON_CARD_UNHEALTHY},
    {{2, {16, 8}, .sick = {true}}, ASK(9), ANY, REASON_CARD_UNHEALTHY},
    {{2, {16, 8}, .sick = {false, true}}, ASK(17), ANY, REASON_CARD_TOO_SMALL},
    {{2, {16, 16}, {9, 0}, .sick = {false, true}}, ASK(8), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, .core = {600, 600}}, ASK(8, .core = 500), ANY, REASON_INSUFFICIENT_CORE},
    {{2, {16, 16}, {9, 0}, {0, 600}}, ASK(8, .core = 500), ANY, REASON_INSUFFICIENT_CORE},
    {{2, {16, 16}, {9, 9}, {600, 600}}, ASK(8, .core = 500), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, .exclusive = {true, true}}, ASK(1), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, {1, 1}}, ASK(1, .exclusive = true), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, .unplaced = 1}, ASK(1, .exclusive = true), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}}, ASK(1, .count = 3), ANY, REASON_CARD_COUNT},
    {{2, {16, 16}, {9, 0}}, ASK(8, .count = 2), ANY, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 16}, .sick = {true}}, ASK(8, .count = 2), ANY, REASON_CARD_UNHEALTHY},
    /* one card to use */
    {{2, {16, 16}}, ASK(8), 1, REASON_NONE},
    {{2, {16, 16}, {0, 9}}, ASK(8), 1, REASON_INSUFFICIENT_MEMORY},
    {{2, {16, 8}}, ASK(9), 1, REASON_CARD_TOO_SMALL},
    {{2, {16, 16}, .sick = {false, true}}, ASK(8), 1, REASON_CARD_UNHEALTHY},
    {{2, {16, 16}, .core = {0, 600}}, ASK(8, .core = 500), 1, REASON_INSUFFICIENT_CORE},
    {{2, {16, 16}}, ASK(8, .count = 2), 1, REASON_CARD_COUNT},
};

START_TEST(refusals_tell_of_the_card_that_got_furthest)
{
    const struct refusal_case *c = &refusal_cases[_i];
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node =
        c->cards.n ? build(ledger, &c->cards) : ledger_set_topology(ledger, "n", NULL);
    g_autoptr(request) request = ASKING(c->ask);
    struct placement placement;

    request->asks[0].count = MAX(c->ask.count, 1);
    for (const struct policy *policy = policies; policy->name; policy++) {
        ck_assert_int_eq(placement_find(node, request, policy, NULL, c->pinned, &placement), c->reason);
        if (c->reason != REASON_NONE)
            continue;
        ck_assert_int_eq(placement.shares[0].card, c->pinned);
    }
    if (c->reason != REASON_NONE && c->pinned == ANY)
        ck_assert(!placement_is_obvious(node, request));
}
END_TEST

START_TEST(a_pin_on_no_card_finds_none)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){2, {16, 16}});
    g_autoptr(request) request = ASKING(gib(1));
    struct placement placement;

    ck_assert_int_ne(placement_find(node, request, policies, NULL, 2, &placement), REASON_NONE);
    ck_assert_int_ne(placement_find(node, request, policies, NULL, INT32_MAX, &placement), REASON_NONE);
}
END_TEST

/* --- several shares ------------------------------------------------------------------------- */

START_TEST(one_ask_gets_different_cards)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){4, {16, 16, 16, 16}, {8, 15, 4, 0}});
    g_autoptr(request) request = ASKING({.memory = {4, AMOUNT_NODE_UNITS}, .count = 3});

    for (const struct policy *policy = policies; policy->name; policy++) {
        struct placement placement;
        bool seen[4] = {false};

        ck_assert_int_eq(placement_find(node, request, policy, NULL, CARD_UNKNOWN, &placement),
                         REASON_NONE);
        ck_assert_uint_eq(placement.n_shares, 3);
        for (uint32_t i = 0; i < placement.n_shares; i++) {
            ck_assert(!seen[placement.shares[i].card]);
            seen[placement.shares[i].card] = true;
        }
        ck_assert(!seen[1]);
    }
}
END_TEST

START_TEST(what_was_placed_first_is_gone_for_the_second)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){2, {16, 16}, {0, 10}});
    struct placement placement;

    g_autoptr(request) memory = ASKING(gib(6), gib(10), gib(6));
    ck_assert_int_eq(placement_find(node, memory, policies, NULL, CARD_UNKNOWN, &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[1].card, 0);
    ck_assert_int_eq(placement.shares[2].card, 0);

    g_autoptr(request) too_much = ASKING(gib(10), gib(10));
    ck_assert_int_eq(placement_find(node, too_much, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_INSUFFICIENT_MEMORY);

    g_autoptr(request) core =
        ASKING({.count = 1, .core = 600}, {.count = 1, .core = 600}, {.count = 1, .core = 600});
    ck_assert_int_eq(placement_find(node, core, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_INSUFFICIENT_CORE);

    g_autoptr(request) exclusive =
        ASKING({.count = 1, .exclusive = true}, {.memory = {1, AMOUNT_BYTES}, .count = 1});
    ck_assert_int_eq(placement_find(node, exclusive, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    ck_assert_int_eq(placement.shares[1].card, 1);
    g_autoptr(request) greedy = ASKING(gib(1), {.count = 1, .exclusive = true}, gib(10));
    ck_assert_int_eq(placement_find(node, greedy, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_INSUFFICIENT_MEMORY);
}
END_TEST

START_TEST(policies_see_what_was_placed_first)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){2, {8, 10}});
    struct placement placement;

    g_autoptr(request) filling = ASKING(gib(9), gib(1));
    ck_assert_int_eq(
        placement_find(node, filling, policy_find("binpack"), NULL, CARD_UNKNOWN, &placement),
        REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[1].card, 1);

    g_autoptr(request) even = ASKING(gib(3), gib(3));
    ck_assert_int_eq(placement_find(node, even, policy_find("spread"), NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[1].card, 0);
}
END_TEST

START_TEST(shares_carry_what_was_asked)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){2, {16, 16}});
    g_autoptr(request) request = ASKING(
        {.memory = {3, AMOUNT_NODE_UNITS}, .container = 2, .count = 1, .core = 250},
        {.memory = {5, AMOUNT_BYTES}, .container = CONTAINER_POD, .count = 1, .exclusive = true});
    struct placement placement;

    ck_assert_int_eq(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    ck_assert_uint_eq(placement.n_shares, 2);
    const struct share *first = &placement.shares[0], *second = &placement.shares[1];
    ck_assert_int_eq(first->memory.value, 3);
    ck_assert_int_eq(first->memory.kind, AMOUNT_NODE_UNITS);
    ck_assert_int_eq(first->container, 2);
    ck_assert_int_eq(first->core, 250);
    ck_assert(!first->exclusive);
    ck_assert_int_eq(second->memory.value, 5);
    ck_assert_int_eq(second->memory.kind, AMOUNT_BYTES);
    ck_assert_int_eq(second->container, CONTAINER_POD);
    ck_assert(second->exclusive);
    ck_assert_int_ne(first->card, second->card);
}
END_TEST

START_TEST(shares_are_limited)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){8, {16, 16, 16, 16, 16, 16, 16, 16}});
    struct card_ask asks[9];
    struct placement placement;

    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++)
        asks[i] = (struct card_ask){.memory = {1, AMOUNT_BYTES}, .count = i < 8 ? 8 : 1};
    g_autoptr(request) most = asking(8, asks);
    ck_assert_int_eq(placement_find(node, most, policies, NULL, CARD_UNKNOWN, &placement), REASON_NONE);
    ck_assert_uint_eq(placement.n_shares, REQUEST_ASKS_MAX);
    g_autoptr(request) more = asking(9, asks);
    ck_assert_int_eq(placement_find(node, more, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_CARD_COUNT);
}
END_TEST

START_TEST(a_search_changes_nothing)
{
    g_autoptr(ledger) ledger = ledger_new();
    const struct node *node = build(ledger, &(struct cards){2, {16, 16}, {3, 0}});
    g_autoptr(request) request = ASKING(gib(4), gib(5));
    struct node before = *node;
    struct card cards[2];
    struct placement placement;

    memcpy(cards, node->cards, sizeof cards);
    placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement);
    ck_assert_mem_eq(&before, node, sizeof before);
    ck_assert_mem_eq(cards, node->cards, sizeof cards);
    ck_assert(ledger_verify(ledger, NULL));
}
END_TEST

/* --- requests ------------------------------------------------------------------------------- */

START_TEST(a_request_is_copied_whole)
{
    g_autoptr(request) request = ASKING(gib(4), gib(5));
    request->traits = REQUEST_GPU_INIT_CONTAINER;
    request->match_amount = 9;
    g_autoptr(request) copy = request_dup(request);

    ck_assert_ptr_ne(copy, request);
    ck_assert_mem_eq(copy, request, sizeof *request + 2 * sizeof request->asks[0]);
    request_free(NULL);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("placement");
    TCase *tc = tcase_create("placement");

    tcase_add_test(tc, policies_are_found_by_name);
    tcase_add_loop_test(tc, policies_order_the_cards_that_fit, 0, G_N_ELEMENTS(policy_cases));
    tcase_add_test(tc, compute_and_slots_decide_where_memory_does_not);
    tcase_add_loop_test(tc, refusals_tell_of_the_card_that_got_furthest, 0,
                        G_N_ELEMENTS(refusal_cases));
    tcase_add_test(tc, a_pin_on_no_card_finds_none);
    tcase_add_test(tc, one_ask_gets_different_cards);
    tcase_add_test(tc, what_was_placed_first_is_gone_for_the_second);
    tcase_add_test(tc, policies_see_what_was_placed_first);
    tcase_add_test(tc, shares_carry_what_was_asked);
    tcase_add_test(tc, shares_are_limited);
    tcase_add_test(tc, a_search_changes_nothing);
    tcase_add_test(tc, a_request_is_copied_whole);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
