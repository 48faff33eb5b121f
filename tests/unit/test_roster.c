/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the search for victims spares the pods of a node. */
#include "suite.h"

#include "core/ledger.h"
#include "policy/victims/roster.h"

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

static const struct {
    const char *uid;
    int64_t priority, created_s;
    bool terminating;
} pods[] = {
    {"d", 0, 2, false}, {"b", 7, 1, false},  {"z", 900, 1, true}, {"c", 0, 1, false},
    {"a", 8, 9, false}, {"f", -5, 1, false}, {"e", 0, 2, false},
};

START_TEST(the_dearest_are_spared_first)
{
    g_autoptr(ledger) known = ledger_new();
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    g_autoptr(GString) order = g_string_new(NULL);

    topology->dialect = DIALECT;
    topology->memory_unit = 1 << 20;
    topology->n_cards = 1;
    topology->cards[0].memory = 100 << 20;
    ledger_set_topology(known, "n", topology);
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        struct allocation *allocation = allocation_new(pods[i].uid, "ml", pods[i].uid, 1);
        allocation->dialect = DIALECT;
        allocation->shares[0] = (struct share){.memory = {1, AMOUNT_NODE_UNITS}};
        allocation->priority = pods[i].priority;
        allocation->created_s = pods[i].created_s;
        allocation->terminating = pods[i].terminating;
        ledger_put(known, "n", allocation);
    }
    g_autoptr(what_if) what_if = what_if_new(ledger_node(known, "n"));
    g_autoptr(roster) roster = roster_new(what_if);
    for (uint32_t i = 0; i < roster->n; i++)
        g_string_append(order, roster->seats[i].uid);
    ck_assert_str_eq(order->str, "abcdefz");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roster");
    TCase *tests = tcase_create("order");

    tcase_add_test(tests, the_dearest_are_spared_first);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
