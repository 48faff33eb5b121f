/* SPDX-License-Identifier: Apache-2.0 */
/* What simulations count, and that they end where a card would hold more than it has. */
#include "simulate/simulation_state.h"

#include "suite.h"
#include "world.h"

#include <signal.h>

static struct world world;
static struct simulation simulation;

/* "mono" with a card of 10 units is all that is counted. */
static void setup(void)
{
    world_init(&world);
    world_populate(&world);
    simulation = (struct simulation){
        .store = world.store,
        .node_names = g_ptr_array_new(),
        .counts = g_new0(struct node_count, 1),
        .gpus = 1,
    };
    g_ptr_array_add(simulation.node_names, (gpointer) "mono");
}

static void teardown(void)
{
    g_ptr_array_unref(simulation.node_names);
    g_free(simulation.counts);
    world_release(&world);
}

START_TEST(what_pods_hold_is_counted)
{
    world_add_bound(&world, "a", "mono", 4, "0");
    simulation_recount(&simulation, 0);
    ck_assert_double_eq_tol(simulation.used, 0.4, 1e-9);
    world_add_bound(&world, "b", "mono", 6, "0");
    simulation_recount(&simulation, 0);
    ck_assert_double_eq_tol(simulation.used, 1, 1e-9);
}
END_TEST

START_TEST(a_card_that_nobody_shares_is_used)
{
    struct ledger *ledger = store_lock(world.store);
    struct allocation *held = allocation_new("p", "ml", "p", 1);

    held->dialect = ledger_node(ledger, "mono")->dialect;
    held->shares[0] =
        (struct share){.card = 0, .memory = {2, AMOUNT_NODE_UNITS}, .exclusive = true};
    ledger_put(ledger, "mono", held);
    store_unlock(world.store);
    simulation_recount(&simulation, 0);
    ck_assert_double_eq_tol(simulation.used, 1, 1e-9);
}
END_TEST

START_TEST(a_card_that_holds_more_than_it_has_ends_the_run)
{
    world_add_bound(&world, "a", "mono", 6, "0");
    world_add_bound(&world, "b", "mono", 6, "0");
    simulation_recount(&simulation, 0);
}
END_TEST

START_TEST(others_may_have_overbooked_it_before)
{
    world_add_bound(&world, "a", "mono", 6, "0");
    world_add_bound(&world, "b", "mono", 6, "0");
    simulation.counts[0].overcommitted = 1;
    simulation_recount(&simulation, 0);
    ck_assert_double_eq_tol(simulation.used, 1, 1e-9);
}
END_TEST

START_TEST(a_sum_of_more_than_there_is_ends_the_run)
{
    world_add_bound(&world, "a", "mono", 6, "0");
    simulation.used = 0.5; /* of another node, which the cluster does not have */
    simulation_recount(&simulation, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("occupancy");
    TCase *tcase = tcase_create("occupancy");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_pods_hold_is_counted);
    tcase_add_test(tcase, a_card_that_nobody_shares_is_used);
    tcase_add_test(tcase, others_may_have_overbooked_it_before);
    if (g_strcmp0(g_getenv("CK_FORK"), "no") == 0) { /* a signal would end the whole program */
        suite_add_tcase(suite, tcase);
        return suite_run(suite);
    }
    tcase_add_test_raise_signal(tcase, a_card_that_holds_more_than_it_has_ends_the_run, SIGTRAP);
    tcase_add_test_raise_signal(tcase, a_sum_of_more_than_there_is_ends_the_run, SIGTRAP);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
