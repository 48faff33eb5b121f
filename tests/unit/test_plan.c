/* SPDX-License-Identifier: Apache-2.0 */
/* Single plans; any order of moves against an oracle is in tests/prop/plan_properties.c. */
#include "plan/plan.h"
#include "suite.h"

#include "core/node.h"

#include <string.h>

#define SIZE 8 /* of each card */
#define UNITS(n) {(n), AMOUNT_NODE_UNITS}

static const char row;
#define DIALECT ((const struct dialect *)(const void *)&row)

static struct ledger *known;
static struct plan_pod pods[4]; /* of the last query; the steps borrow them */
static GPtrArray *steps;
static bool fewest;
static const char *only; /* the node to which pods go; NULL: any */

static void setup(void)
{
    known = ledger_new();
    only = NULL;
}

static void teardown(void)
{
    ledger_free(known);
    g_clear_pointer(&steps, g_ptr_array_unref);
}

static void add_node(const char *name, int n_cards)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    topology->dialect = DIALECT;
    topology->memory_unit = 1 << 20;
    topology->n_cards = n_cards;
    for (int i = 0; i < n_cards; i++)
        topology->cards[i].memory = SIZE << 20;
    ledger_set_topology(known, name, topology);
}

static struct allocation *add_pod(const char *uid, const char *node, int32_t card, int size)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->dialect = DIALECT;
    allocation->shares[0] = (struct share){.memory = UNITS(size), .card = card};
    ledger_put(known, node, allocation);
    return allocation;
}

static bool goes_there(const struct node *node, const struct plan_pod *pod, void *data)
{
    return !only || strcmp(node->name, only) == 0;
}

/* The goal: a card or the node is to hold nobody. Who may be moved are those pods, of such sizes. */
static enum plan_outcome empty(const char *node, int32_t card, const char *const *uids,
                               const int *sizes)
{
    size_t n = 0;

    for (; uids[n]; n++) {
        struct request *request = request_new(DIALECT, 1);
        request->asks[0] = (struct card_ask){.memory = UNITS(sizes[n]), .count = 1};
        pods[n] = (struct plan_pod){.uid = uids[n], .request = request};
    }
    const struct plan_query query = {
        .goal = {.node = node, .card = card},
        .pods = pods,
        .n_pods = n,
        .policy = &policies[0],
        .moves_max = 4,
        .uncontrolled = true,
        .admits = goes_there,
    };
    g_clear_pointer(&steps, g_ptr_array_unref);
    const enum plan_outcome outcome = plan_make(known, &query, &fewest, &steps);
    for (size_t i = 0; i < n; i++)
        request_free((struct request *)(uintptr_t)pods[i].request);
    return outcome;
}

static enum plan_outcome empty_of(const char *uid, int size)
{
    return empty("n1", CARD_UNKNOWN, (const char *const[]){uid, NULL}, (const int[]){size});
}

START_TEST(who_ends_already_is_not_moved)
{
    add_node("n1", 1);
    add_node("n2", 1);
    add_pod("p", "n1", 0, 2)->terminating = _i;
    ck_assert_int_eq(empty_of("p", 2), _i ? PLAN_NONE : PLAN_FOUND);
    ck_assert_uint_eq(steps->len, _i ? 0 : 1);
}
END_TEST

START_TEST(nobody_is_moved_to_a_cordoned_node)
{
    add_node("n1", 1);
    add_node("n2", 1);
    add_pod("p", "n1", 0, 2);
    ((struct node *)(uintptr_t)ledger_node(known, "n2"))->cordoned = _i;
    ck_assert_int_eq(empty_of("p", 2), _i ? PLAN_NONE : PLAN_FOUND);
}
END_TEST

/* It may be on the card that is to hold nobody. */
START_TEST(who_is_on_no_known_card_leaves_each)
{
    static const int32_t cards[] = {0, 1, CARD_UNKNOWN};

    add_node("n1", 2);
    add_node("n2", 1);
    only = "n2";
    add_pod("p", "n1", cards[_i], 2);
    ck_assert_int_eq(empty("n1", 0, (const char *const[]){"p", NULL}, (const int[]){2}),
                     PLAN_FOUND);
    ck_assert_uint_eq(steps->len, cards[_i] == 1 ? 0 : 1);
}
END_TEST

/*
 * n1 holds t alone, which needs most of a card of n2: r has to leave that card, for the one that p leaves. So
 * p goes to the one of two equal cards where it is not in the way of t, which may be the second that is tried.
 */
START_TEST(another_card_of_the_same_node_is_another_plan)
{
    const int32_t target = _i ? 2 : 1, aside = _i ? 1 : 2;

    add_node("n1", 1);
    add_node("n2", 3);
    only = "n2";
    add_pod("t", "n1", 0, 7);
    add_pod("p", "n2", 0, 3);
    add_pod("beside p", "n2", 0, 4);
    add_pod("r", "n2", target, 4);
    add_pod("beside r", "n2", target, 1);
    add_pod("aside", "n2", aside, 5);
    ck_assert_int_eq(empty("n1", CARD_UNKNOWN, (const char *const[]){"t", "p", "r", NULL},
                           (const int[]){7, 3, 4}),
                     PLAN_FOUND);
    ck_assert_uint_eq(steps->len, 3);
    ck_assert(fewest);
    const struct plan_step *first = steps->pdata[0], *last = steps->pdata[2];
    ck_assert_str_eq(first->pod->uid, "p");
    ck_assert_int_eq(first->takes->shares[0].card, aside);
    ck_assert_str_eq(last->pod->uid, "t");
    ck_assert_int_eq(last->takes->shares[0].card, target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tests = tcase_create("plan");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_ends_already_is_not_moved, 0, 2);
    tcase_add_loop_test(tests, nobody_is_moved_to_a_cordoned_node, 0, 2);
    tcase_add_loop_test(tests, who_is_on_no_known_card_leaves_each, 0, 3);
    tcase_add_loop_test(tests, another_card_of_the_same_node_is_another_plan, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
