/* SPDX-License-Identifier: Apache-2.0 */
/* Where policies put a pod by what is expected. */
#include "demanding_book.h"
#include "suite.h"

/* --- oc ------------------------------------------------------------------------------------- */

START_TEST(oc_leaves_what_others_can_use)
{
    /* Pods of 13 and of 7 GiB fill a card of 20 together; 10 go in pairs. */
    add_node("a", 2, 0, "T4");
    expect_pods(100, 13, 1, 0);
    expect_pods(100, 7, 1, 0);
    expect_pods(50, 10, 1, 0);
    put("a", "u", 0, 10);
    expect_choice("binpack", 7, 0, "a", 0);
    expect_choice("oc", 10, 0, "a", 0);
    put("a", "v", 1, 13);
    expect_choice("binpack", 7, 0, "a", 1);
    expect_choice("oc", 7, 0, "a", 1);
}
END_TEST

START_TEST(oc_keeps_named_models_for_those_who_name_them)
{
    add_node("a", 1, 0, "T4");
    add_node("b", 1, 0, "V100");
    expect_pods(50, 20, 1, 0);
    expect_choice("oc", 20, 0, "a", 0);
    expect_model(50, 20, "T4");
    expect_choice("oc", 20, 0, "b", 0);
}
END_TEST

START_TEST(oc_keeps_large_cards_for_those_who_fit_no_others)
{
    add_cards("a", 1, 40, 0, "L40");
    add_cards("b", 1, 20, 0, "L40");
    expect_pods(50, 20, 1, 0);
    expect_choice("oc", 20, 0, "b", 0); /* which it fills */
    put("b", "u", 0, 10);
    expect_choice("oc", 10, 0, "b", 0);
    ledger_drop(book, "u");
    expect_pods(50, 40, 1, 0);
    expect_choice("oc", 20, 0, "b", 0);
}
END_TEST

/* 13 and 7 GiB fill the small card. Cut from large ones alone, 7 GiB are less than from small ones
 * alone; but they are the same pods. */
START_TEST(oc_gives_a_size_one_price_on_all_kinds_of_cards)
{
    add_cards("a", 1, 20, 0, "L40");
    add_cards("b", 1, 80, 0, "L40");
    expect_pods(100, 13, 1, 0);
    expect_pods(100, 7, 1, 0);
    put("a", "u", 0, 13);
    expect_choice("oc", 7, 0, "a", 0);
}
END_TEST

START_TEST(oc_keeps_groups_of_cards_together)
{
    add_node("a", 5, 0, "T4");
    add_node("b", 5, 0, "T4");
    put("a", "u", 0, 20);
    expect_pods(100, 20, 1, 0);
    expect_choice("oc", 20, 0, "a", 1);
    expect_pods(100, 20, 4, 0);
    expect_choice("oc", 20, 0, "b", 0);
}
END_TEST

/* Both kinds of nodes have the cards for them, but only one has the CPU. */
START_TEST(oc_keeps_places_for_groups_where_their_cpu_is)
{
    add_node("a", 4, 128000, "T4");
    add_node("b", 4, 96000, "T4");
    expect_pods(50, 20, 1, 1000);
    expect_pods(50, 20, 4, 80000);
    expect_choice("oc", 20, 1000, "a", 0);
    expect_pods(200, 20, 4, 120000);
    expect_choice("oc", 20, 1000, "b", 0);
    expect_choice("oc", 0, 10000, "b", CARD_UNKNOWN);
    put("a", "u", 0, 20);
    expect_choice("oc", 20, 1000, "b", 0); /* the place may soon be there again */
    put("a", "v", 1, 20);
    put("a", "w", 2, 20);
    expect_choice("oc", 20, 1000, "a", 3); /* not so soon */
}
END_TEST

static struct request *asking_both(int64_t gib, int32_t core)
{
    struct request *request = asking(gib, 1, 0);

    request->asks[0].core = core;
    return request;
}

static void expect_both(int n, int64_t gib, int32_t core)
{
    g_autoptr(request) request = asking_both(gib, core);

    for (int i = 0; i < n; i++)
        demand_note(expected, request);
}

static void put_both(const char *node, const char *uid, int32_t card, int64_t gib, int32_t core)
{
    struct share share = units_on(card, gib);

    share.core = core;
    ledger_put(book, node, holding(uid, 1, &share));
}

static void expect_no_pairs(const char *name)
{
    demand_settle(expected, book);
    ck_assert(!value_kind(demand_value_model(expected), ledger_node(book, name)->cards[0].kind)
                   ->values->paired);
}

/* What is left beside a pod that wants most of the memory is what one wants that wants most of the
 * compute; by the smaller part it would be the tighter card. */
START_TEST(oc_sees_memory_and_compute_apart)
{
    g_autoptr(request) small = asking_both(8, 400);
    int32_t card = CARD_UNKNOWN;

    /* Two cards of a node, then two nodes of one card. */
    add_node("a", _i ? 1 : 2, 0, "T4");
    add_node("b", 1, 0, "T4");
    put_both("a", "u", 0, 12, 200);
    put_both(_i ? "b" : "a", "v", _i ? 0 : 1, 10, 500);
    if (_i == 0)
        put("b", "w", 0, 20);
    expect_both(50, 12, 200);
    expect_no_pairs("a");
    expect_both(50, 8, 800);
    expect_both(1, 8, 400);
    ck_assert_str_eq(choose("oc", small, &card), _i ? "b" : "a");
    ck_assert_int_eq(card, _i ? 0 : 1);
}
END_TEST

static double worth_of_both(int32_t memory, int32_t core)
{
    demand_settle_now(expected, book);
    const struct card_values *values =
        value_kind(demand_value_model(expected), ledger_node(book, "a")->cards[0].kind)->values;
    ck_assert(values->paired);
    return (double)card_values_worth(values, (struct room){memory, core});
}

/* A card has room for a large pod and a small one. Whether a few more of the large ones have come or
 * of the small ones, room for one that completes the other is worth something. */
START_TEST(pairs_that_complete_each_other_are_both_worth_something)
{
    add_node("a", 1, 0, "T4"); /* of 20 GiB */
    expect_both(_i == 0 ? 65 : 55, 15, 600);
    expect_both(50, 5, 400);
    expect_both(10, 5, 300);
    const double large = worth_of_both(750, 600), small = worth_of_both(250, 400);
    ck_assert_msg(large < 0.9 && small > 0.1, "large %f, small %f", large, small);
    ck_assert_double_eq_tol(worth_of_both(1000, 1000), 1, 0.05);
}
END_TEST

/* 31 % and 69.9 % of the compute are more than a card has, but not in fiftieths, rounded down. */
START_TEST(pairs_that_do_not_fit_are_not_thought_to)
{
    add_node("a", 1, 0, "T4");
    expect_both(50, 13, 310);
    expect_both(50, 1, 700);
    expect_both(50, 7, 699);
    const double first = worth_of_both(650, 310), both = worth_of_both(1000, 1000);
    ck_assert_msg(both < 1.0001 && first + worth_of_both(350, 699) > both + 0.02,
                  "first %f, all %f", first, both);
}
END_TEST

START_TEST(so_many_pairs_are_told_apart_and_no_more)
{
    add_node("a", 1, 0, "T4");
    for (int i = 0; i < DEMAND_SHAPES_MAX; i++)
        expect_both(1, 1 + i % 20, 10 * (1 + i * 37 % 100));
    demand_settle(expected, book);
    const struct card_values *values =
        value_kind(demand_value_model(expected), ledger_node(book, "a")->cards[0].kind)->values;
    ck_assert(values->paired);
    const double whole = (double)card_values_worth(values, (struct room){1000, 1000});
    const double half = (double)card_values_worth(values, (struct room){500, 500});
    ck_assert(whole <= 1.0001 && half > 0 && whole >= 2 * half);
}
END_TEST

START_TEST(a_place_is_wanted_as_much_as_it_is_scarce)
{
    for (int i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("n%d", i);
        add_node(name, 4, 96000, "T4");
    }
    const struct node *large = add_node("n4", 4, 128000, "T4");
    expect_pods(40, 20, 1, 1000);
    expect_pods(2, 20, 4, 10000);
    expect_pods(10, 20, 4, 120000);
    demand_settle(expected, book);
    const struct card_values *values =
        value_kind(demand_value_model(expected), large->cards[0].kind)->values;
    ck_assert_int_eq(values->n_groups, 2);
    ck_assert_int_eq(values->groups[0].cpu, 10000);
    ck_assert_double_eq_tol(values->groups[0].want, 8.0 / 88, 1e-3); /* of 20 cards */
    ck_assert_int_eq(values->groups[1].cpu, 120000);
    ck_assert_double_eq_tol(values->groups[1].want, 1, 1e-9); /* 9 cards of 4 */
}
END_TEST

static void hold(const char *node, const char *uid, int32_t devices, const char *device)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->shares[0] =
        (struct share){.card = CARD_UNKNOWN, .devices = devices, .device = device};
    ledger_put(book, node, allocation);
}

static void add_pools(const char *name, int32_t used)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->n_pools = 2;
    topology->pools[0] = (struct pool){.resource = topology_keep(topology, "gpu"), .capacity = 5};
    topology->pools[1] = (struct pool){.resource = topology_keep(topology, "mig"), .capacity = 5};
    ledger_set_topology(book, name, topology);
    if (used > 0)
        hold(name, name, used, "gpu");
}

START_TEST(policies_keep_groups_of_devices_together)
{
    static const char *const names[] = {"oc", "fgd"};
    g_autoptr(request) one = asking_devices(1, "gpu");

    add_pools("a", 0);
    add_pools("b", 1);
    expect_devices(60, 1, "gpu");
    expect_devices(60, 4, "mig"); /* which is nothing to devices of another kind */
    ck_assert_str_eq(choose("oc", one, NULL), "b");
    expect_devices(120, 4, "gpu");
    ck_assert_str_eq(choose(names[_i], one, NULL), "a");
    ck_assert_int_eq(fragmentation_of(ledger_node(book, "b"), expected), 0);
    hold("b", "v", 2, "gpu");
    ck_assert_int_gt(fragmentation_of(ledger_node(book, "b"), expected), 0);
    /* Nobody who wants four goes to b: for fgd it never counts again, for oc it does when pods have
     * left, while the fifth device of a is of no use to them. */
    ck_assert_str_eq(choose(names[_i], one, NULL), _i == 0 ? "a" : "b");
}
END_TEST

START_TEST(oc_leaves_cards_the_cpu_that_their_pods_need)
{
    add_node("a", 4, 16000, "T4");
    add_node("b", 4, 64000, "T4");
    expect_pods(100, 20, 1, 7000);
    expect_pods(100, 20, 1, 9000);
    expect_choice("oc", 0, 12000, "b", CARD_UNKNOWN);
    put("a", "u0", 0, 20);
    put("a", "u1", 1, 20);
    put("a", "u2", 2, 20);
    put("a", "u3", 3, 20);
    expect_choice("oc", 0, 12000, "a", CARD_UNKNOWN); /* nobody will need it there */
}
END_TEST

/* Nodes are alike but for their memory, which half of the pods need and the others do not. */
START_TEST(oc_leaves_cards_the_memory_that_their_pods_need)
{
    static const struct host small = {64000, 64 * GIB, 0}, large = {64000, 512 * GIB, 0};
    g_autoptr(request) heavy = asking(20, 1, 1000), light = asking(20, 1, 1000);
    g_autoptr(request) without = asking(0, 0, 1000);

    add_node("a", 4, 0, "T4")->host = small;
    add_node("b", 4, 0, "T4")->host = large;
    heavy->host.memory = 60 * GIB;
    light->host.memory = 30 * GIB;
    without->host.memory = 40 * GIB;
    for (int i = 0; i < 100; i++) {
        demand_note(expected, heavy);
        demand_note(expected, light);
    }
    ck_assert_str_eq(choose("oc", without, NULL), "b");
    for (int32_t i = 0; i < 4; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        put("a", uid, i, 20);
    }
    ck_assert_str_eq(choose("oc", without, NULL), "a"); /* nobody will need it there */
}
END_TEST

/* Both nodes lack memory more than CPU, but only one of them lacks CPU as well. */
START_TEST(oc_spares_cpu_where_memory_is_short_too)
{
    g_autoptr(request) usual = asking(20, 1, 8000);

    add_node("a", 4, 0, "T4")->host = (struct host){9000, 30 * GIB, 0};
    add_node("b", 4, 0, "T4")->host = (struct host){64000, 30 * GIB, 0};
    usual->host.memory = 30 * GIB;
    for (int i = 0; i < 100; i++)
        demand_note(expected, usual);
    expect_choice("oc", 0, 600, "b", CARD_UNKNOWN);
}
END_TEST

/* One pod in hundreds that no node could ever take, for its CPU, its memory or both. */
START_TEST(one_absurd_pod_weighs_nothing)
{
    g_autoptr(request) usual = asking(20, 1, 4000), absurd = asking(20, 1, 4000);
    struct company cpu, memory;

    add_node("a", 4, 0, "T4")->host = (struct host){64000, 512 * GIB, 0};
    usual->host.memory = 30 * GIB;
    for (int i = 0; i < 100; i++)
        demand_note(expected, usual);
    demand_settle_now(expected, book);
    cpu = demand_value_model(expected)->cpu;
    memory = demand_value_model(expected)->memory;
    ck_assert_double_eq_tol(cpu.mean, 4000, 1e-6);
    ck_assert_double_eq_tol(memory.mean, 30, 1e-6);
    if (_i != 1)
        absurd->host.cpu = INT64_C(1000000000);
    if (_i != 0)
        absurd->host.memory = INT64_C(1000000) * GIB;
    demand_note(expected, absurd);
    for (int i = 0; i < 100; i++)
        demand_note(expected, usual);
    demand_settle_now(expected, book);
    ck_assert_double_eq_tol(demand_value_model(expected)->cpu.mean, cpu.mean, 1e-6);
    ck_assert_double_eq_tol(demand_value_model(expected)->cpu.variance, cpu.variance, 1e-3);
    ck_assert_double_eq_tol(demand_value_model(expected)->memory.mean, memory.mean, 1e-6);
    ck_assert_double_eq_tol(demand_value_model(expected)->memory.variance, memory.variance, 1e-3);
}
END_TEST

START_TEST(policies_pack_while_nothing_is_known)
{
    static const char *const names[] = {"oc", "fgd"};

    add_node("a", 2, 0, "T4");
    add_node("b", 2, 0, "T4");
    put("b", "u", 1, 5);
    expect_choice("binpack", 6, 0, "b", 1);
    expect_choice(names[_i], 6, 0, "b", 1);
}
END_TEST

/* --- fgd ------------------------------------------------------------------------------------ */

START_TEST(fgd_breaks_what_is_useless_already)
{
    /* What is left beside 15 GiB is of no use to a typical pod, so taking some of it costs nothing. */
    add_node("a", 1, 0, "T4");
    add_node("b", 1, 0, "T4");
    expect_pods(100, 10, 1, 0);
    expect_pods(1, 3, 1, 0);
    put("b", "u", 0, 15);
    expect_choice("fgd", 3, 0, "b", 0);
    expect_choice("fgd", 10, 0, "a", 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demand_policies");
    TCase *tests = tcase_create("demand_policies");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, oc_leaves_what_others_can_use);
    tcase_add_test(tests, oc_keeps_named_models_for_those_who_name_them);
    tcase_add_test(tests, oc_keeps_large_cards_for_those_who_fit_no_others);
    tcase_add_test(tests, oc_gives_a_size_one_price_on_all_kinds_of_cards);
    tcase_add_test(tests, oc_keeps_groups_of_cards_together);
    tcase_add_test(tests, oc_keeps_places_for_groups_where_their_cpu_is);
    tcase_add_loop_test(tests, oc_sees_memory_and_compute_apart, 0, 2);
    tcase_add_loop_test(tests, pairs_that_complete_each_other_are_both_worth_something, 0, 2);
    tcase_add_test(tests, pairs_that_do_not_fit_are_not_thought_to);
    tcase_add_test(tests, so_many_pairs_are_told_apart_and_no_more);
    tcase_add_test(tests, a_place_is_wanted_as_much_as_it_is_scarce);
    tcase_add_loop_test(tests, policies_keep_groups_of_devices_together, 0, 2);
    tcase_add_test(tests, oc_leaves_cards_the_cpu_that_their_pods_need);
    tcase_add_test(tests, oc_leaves_cards_the_memory_that_their_pods_need);
    tcase_add_test(tests, oc_spares_cpu_where_memory_is_short_too);
    tcase_add_loop_test(tests, one_absurd_pod_weighs_nothing, 0, 3);
    tcase_add_loop_test(tests, policies_pack_while_nothing_is_known, 0, 2);
    tcase_add_test(tests, fgd_breaks_what_is_useless_already);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
