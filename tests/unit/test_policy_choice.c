/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"

#include "policy/policy_choice.h"
#include "suite.h"

#include <gpuledger/placement.h>
#include <gpuledger/ranking.h>
#include <math.h>

static struct demand *expected;

static void begin(void)
{
    setup();
    expected = demand_new();
}

static void end(void)
{
    demand_free(expected);
    teardown();
}

/* Pods for so many GiB of one card, and with `model`, of such cards only. */
static void expect_pods(int n, int64_t gib, const char *model)
{
    g_autoptr(request) request = request_new(DIALECT, 1);

    request->host.cpu = 1000;
    request->asks[0] = (struct card_ask){.memory = {gib, AMOUNT_NODE_UNITS}, .count = 1};
    if (model) {
        request->terms = terms_new();
        request->terms->models = g_strsplit(model, ",", 0);
    }
    for (int i = 0; i < n; i++)
        demand_note(expected, request);
}

static void add_nodes(int n, const char *prefix, const char *model)
{
    for (int i = 0; i < n; i++) {
        g_autoptr(topology) topology = topology_new();
        g_autofree char *name = g_strdup_printf("%s-%02d", prefix, i);
        topology->dialect = DIALECT;
        topology->memory_unit = GIB;
        topology->host.cpu = 1000000;
        topology->n_cards = 4;
        for (int k = 0; k < 4; k++)
            topology->cards[k] = (struct topology_card){.memory = 16 * GIB, .model = model};
        ledger_set_topology(book, name, topology);
    }
}

static double run(struct lookahead *lookahead, const char *policy, double load)
{
    return lookahead_run(
        lookahead, &(struct lookahead_options){
                       .policy = policy_find(policy), .seed = 1, .load = load, .lifetimes = 5});
}

START_TEST(nothing_is_said_of_a_cluster_without_gpus_or_pods)
{
    ck_assert_ptr_null(lookahead_new(book, expected));
    add_nodes(2, "a", NULL);
    ck_assert_ptr_null(lookahead_new(book, expected));
    expect_pods(20, 8, NULL);
    lookahead_free(lookahead_new(book, expected));
}
END_TEST

START_TEST(what_fits_everywhere_is_allocated_as_it_comes)
{
    add_nodes(20, "a", NULL);
    expect_pods(100, 8, NULL);
    g_autoptr(lookahead) lookahead = lookahead_new(book, expected);
    const double half = run(lookahead, "binpack", 0.5);

    ck_assert_double_eq_tol(half, 0.5, 0.1);
    ck_assert_double_eq(half,
                        run(lookahead, "spread", 0.5)); /* the same arrivals, nobody refused */
    ck_assert_double_le(run(lookahead, "binpack", 2), 1);
    ck_assert_double_ge(run(lookahead, "binpack", 2), 0.98);
}
END_TEST

/* Half of the pods ask for all of a card, half for a quarter. */
START_TEST(it_sees_that_spreading_leaves_no_card_free)
{
    add_nodes(20, "a", NULL);
    expect_pods(100, 16, NULL);
    expect_pods(100, 4, NULL);
    g_autoptr(lookahead) lookahead = lookahead_new(book, expected);

    ck_assert_double_ge(run(lookahead, "binpack", 1), run(lookahead, "spread", 1) + 0.05);
}
END_TEST

START_TEST(the_same_look_says_the_same_and_changes_nothing)
{
    add_nodes(5, "a", NULL);
    expect_pods(100, 6, NULL);
    g_autoptr(lookahead) lookahead = lookahead_new(book, expected);
    const double first = run(lookahead, "oc", 1);

    run(lookahead, "binpack", 1);
    ck_assert_double_eq(first, run(lookahead, "oc", 1));
    ck_assert_uint_eq(ledger_size(book), 0);
}
END_TEST

START_TEST(a_look_that_is_cancelled_comes_to_nothing)
{
    const gint cancelled = 1;
    struct policy_choice *choice = policy_choice_new();

    add_nodes(5, "a", NULL);
    expect_pods(100, 6, NULL);
    ck_assert(!policy_choice_look(choice, book, expected, &cancelled));
    ck_assert_uint_eq(policy_choice_looks(choice), 0);
    policy_choice_free(choice);
}
END_TEST

START_TEST(oc_stays_where_models_are_scarce)
{
    struct policy_choice *choice = policy_choice_new();

    add_nodes(15, "a", "A100");
    add_nodes(5, "b", "T4");
    expect_pods(300, 16, NULL);
    expect_pods(100, 16, "T4");
    for (int i = 0; i < 4; i++)
        ck_assert(!policy_choice_look(choice, book, expected, NULL));
    ck_assert_str_eq(policy_choice_now(choice)->name, "oc");
    ck_assert_uint_eq(policy_choice_looks(choice), 4);
    ck_assert_double_lt(policy_choice_figures(choice)[1].gain, -1);
    ck_assert_double_eq(policy_choice_figures(choice)[1].lead, 0);
    policy_choice_free(choice);
}
END_TEST

/* Parts of compute and of memory, in percent, two of which are a card, not any two. */
static void expect_odd_parts(void)
{
    static const struct {
        int32_t core, memory, pods;
    } parts[] = {
        {15, 70, 78}, {25, 55, 80}, {35, 45, 88}, {45, 35, 92}, {55, 25, 87}, {70, 15, 75},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autoptr(request) request = request_new(DIALECT, 1);
        request->asks[0] = (struct card_ask){.memory = {10 * parts[i].memory, AMOUNT_THOUSANDTHS},
                                             .core = 10 * parts[i].core,
                                             .count = 1};
        for (int k = 0; k < parts[i].pods; k++)
            demand_note(expected, request);
    }
}

START_TEST(it_goes_over_when_looks_agree_and_not_before)
{
    struct policy_choice *choice = policy_choice_new();

    add_nodes(20, "a", NULL);
    expect_odd_parts();
    ck_assert(!policy_choice_look(choice, book, expected, NULL));
    ck_assert_double_ge(policy_choice_figures(choice)[1].gain, POLICY_CHOICE_LOOK_MAX);
    ck_assert_str_eq(policy_choice_now(choice)->name, "oc");
    while (policy_choice_looks(choice) < 4 && !policy_choice_look(choice, book, expected, NULL))
        ck_assert_str_eq(policy_choice_now(choice)->name, "oc");
    ck_assert_str_ne(policy_choice_now(choice)->name, "oc");
    ck_assert_uint_eq(policy_choice_looks_taken(choice), policy_choice_looks(choice));
    policy_choice_free(choice);
}
END_TEST

/* While the cluster is almost full nobody is refused by either: the mean of both loads is half of what
 * one gains over the other where pods are refused. */
START_TEST(a_load_at_which_nobody_is_refused_says_nothing)
{
    struct policy_choice *choice = policy_choice_new();

    add_nodes(60, "a", NULL);
    expect_odd_parts();
    policy_choice_look(choice, book, expected, NULL);
    const struct policy_figure *figures = policy_choice_figures(choice);
    const double apart = figures[1].allocated - figures[0].allocated;
    ck_assert_double_ge(apart, 0.1);
    ck_assert_double_eq_tol(figures[1].gain, 2 * apart, 2 * 0.01);
    policy_choice_free(choice);
}
END_TEST

/* What one look sees of binpack, second in order. */
static bool weigh(struct policy_choice *choice, double gain)
{
    const double gains[POLICY_CHOICE_N] = {0, gain, -1, -2};

    return policy_choice_weigh(choice, gains);
}

START_TEST(small_gains_add_up)
{
    struct policy_choice *choice = policy_choice_new();
    const double gain = POLICY_CHOICE_ALLOWANCE + POLICY_CHOICE_LEAD / 4 + 1e-9;

    for (int i = 1; i <= 3; i++) {
        ck_assert(!weigh(choice, gain));
        ck_assert_double_eq_tol(policy_choice_figures(choice)[1].lead, i * POLICY_CHOICE_LEAD / 4,
                                1e-6);
    }
    ck_assert(weigh(choice, gain));
    ck_assert_str_eq(policy_choice_now(choice)->name, "binpack");
    ck_assert_uint_eq(policy_choice_looks_taken(choice), 4);
    policy_choice_free(choice);
}
END_TEST

START_TEST(no_single_look_decides_and_a_bad_one_takes_back)
{
    struct policy_choice *choice = policy_choice_new();

    ck_assert(!weigh(choice, 50));
    ck_assert_double_eq(policy_choice_figures(choice)[1].lead, POLICY_CHOICE_LOOK_MAX);
    ck_assert(!weigh(choice, -50));
    ck_assert_double_eq(policy_choice_figures(choice)[1].lead, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert(!weigh(choice, POLICY_CHOICE_ALLOWANCE));
    policy_choice_free(choice);
}
END_TEST

/* The way back is as long as the way there. */
START_TEST(a_switch_begins_all_anew)
{
    struct policy_choice *choice = policy_choice_new();
    const double back[POLICY_CHOICE_N] = {1, 0, 1, -1};
    int there = 0, here = 0;

    while (!weigh(choice, 1))
        there++;
    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        ck_assert_double_eq(policy_choice_figures(choice)[i].lead, 0);
    while (!policy_choice_weigh(choice, back))
        here++;
    ck_assert_int_eq(here, there);
    ck_assert_str_eq(policy_choice_now(choice)->name, "oc"); /* of equals, the first */
    policy_choice_free(choice);
}
END_TEST

/* By another way of reckoning: a lead is the largest sum of what the last so many looks count, for any
 * number of them since the last switch, none included. */
static double lead_of(double (*looks)[POLICY_CHOICE_N], int since, int until, int policy)
{
    double most = 0, sum = 0;

    for (int i = until; i >= since; i--) {
        sum += fmin(looks[i][policy] - POLICY_CHOICE_ALLOWANCE, POLICY_CHOICE_LOOK_MAX);
        most = fmax(most, sum);
    }
    return most;
}

#define CHANCES 2000

START_TEST(leads_are_the_best_of_all_endings)
{
    static double looks[CHANCES][POLICY_CHOICE_N];
    g_autoptr(GRand) chance = g_rand_new_with_seed(1);
    struct policy_choice *choice = policy_choice_new();
    int since = 0, now = 0, switches = 0;

    for (int i = 0; i < CHANCES; i++) {
        for (int k = 0; k < POLICY_CHOICE_N; k++)
            looks[i][k] = k == now ? 0 : g_rand_double_range(chance, -0.5, 0.5);
        double best = 0;
        int of = now;
        for (int k = 0; k < POLICY_CHOICE_N; k++) {
            const double lead = k == now ? 0 : lead_of(looks, since, i, k);
            of = lead > best ? k : of;
            best = fmax(lead, best);
        }
        const bool changed = policy_choice_weigh(choice, looks[i]);
        ck_assert_int_eq(changed, best >= POLICY_CHOICE_LEAD);
        if (changed) {
            now = of;
            since = i + 1;
            switches++;
        }
        ck_assert_ptr_eq(policy_choice_now(choice), policy_choice_figures(choice)[now].policy);
        for (int k = 0; k < POLICY_CHOICE_N; k++)
            ck_assert_double_eq_tol(policy_choice_figures(choice)[k].lead,
                                    k == now ? 0 : lead_of(looks, since, i, k), 1e-9);
    }
    ck_assert_int_gt(switches, 20);
    ck_assert_uint_eq(policy_choice_looks(choice), CHANCES);
    policy_choice_free(choice);
}
END_TEST

START_TEST(auto_begins_as_oc_and_is_no_policy_of_a_node)
{
    ck_assert_ptr_eq(policy_begin(&policy_auto), policy_find("oc"));
    ck_assert_ptr_eq(policy_begin(policy_find("spread")), policy_find("spread"));
    ck_assert_ptr_null(policy_find("auto"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy_choice");
    TCase *tests = tcase_create("policy_choice");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, nothing_is_said_of_a_cluster_without_gpus_or_pods);
    tcase_add_test(tests, what_fits_everywhere_is_allocated_as_it_comes);
    tcase_add_test(tests, it_sees_that_spreading_leaves_no_card_free);
    tcase_add_test(tests, the_same_look_says_the_same_and_changes_nothing);
    tcase_add_test(tests, a_look_that_is_cancelled_comes_to_nothing);
    tcase_add_test(tests, oc_stays_where_models_are_scarce);
    tcase_add_test(tests, it_goes_over_when_looks_agree_and_not_before);
    tcase_add_test(tests, a_load_at_which_nobody_is_refused_says_nothing);
    tcase_add_test(tests, small_gains_add_up);
    tcase_add_test(tests, no_single_look_decides_and_a_bad_one_takes_back);
    tcase_add_test(tests, a_switch_begins_all_anew);
    tcase_add_test(tests, leads_are_the_best_of_all_endings);
    tcase_add_test(tests, auto_begins_as_oc_and_is_no_policy_of_a_node);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
