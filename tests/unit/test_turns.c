/* SPDX-License-Identifier: Apache-2.0 */
/* The order among pods that wait for plugins which may begin with the first pod of the cluster. */
#include "queue/turns/turns.h"
#include "core/ledger.h"
#include "core/node.h"
#include "core/node_traits.h"

#include <gpuledger/dialect.h>

#include "suite.h"

#define NOW INT64_C(1767225600)
#define N_PODS 200

static struct ledger *book;
static struct turns *turns;

static void setup(void)
{
    book = ledger_new();
    turns = turns_new();
}

static void teardown(void)
{
    turns_free(turns);
    ledger_free(book);
}

static char *name_of(int number)
{
    return g_strdup_printf("p%03d", number);
}

static int64_t choose(int number, int64_t before)
{
    g_autofree char *name = name_of(number);

    return turns_choose(turns, book, &(struct turn){name, "ml", name, 0}, NOW, before);
}

/* That has such a plugin. */
static const struct node *add_node(const char *name)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = dialect_find("volcano-vgpu");
    topology->dialects[topology->n_dialects++] = topology->dialect;
    return ledger_set_topology(book, name, topology);
}

/* `waiting` for its plugin. */
static void put_pod(int number, int64_t time, bool waiting)
{
    g_autofree char *name = name_of(number);
    struct allocation *allocation = allocation_new(name, "ml", name, 1);

    allocation->shares[0].card = CARD_UNKNOWN;
    allocation->dialect = dialect_find("volcano-vgpu");
    allocation->waiting = waiting;
    ledger_put(book, name, allocation);
    turns_set(turns, &(struct turn){name, "ml", name, time}, true);
}

/* On a node that nobody knows. */
static void put_away(int number, int64_t time)
{
    put_pod(number, time, true);
}

static void put_served(int number, int64_t time)
{
    put_pod(number, time, false);
}

/* Each on a node of its own. */
static void put(int number, int64_t time)
{
    g_autofree char *name = name_of(number);

    add_node(name);
    put_away(number, time);
}

static void end(int number)
{
    g_autofree char *name = name_of(number);

    ledger_drop(book, name);
}

/* Whether the plugin of each one's node takes it, whichever of them the list begins with. */
static void check(const int64_t times[N_PODS])
{
    int64_t largest_after = 0;

    for (int i = N_PODS - 1; i >= 0; i--) {
        if (times[i] == 0)
            continue;
        ck_assert_msg(times[i] > largest_after, "p%03d has %" G_GINT64_FORMAT, i, times[i]);
        largest_after = times[i];
    }
}

START_TEST(whoever_comes_first_is_not_mistaken)
{
    int64_t times[N_PODS] = {0};
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)_i + 1);
    int n_refused = 0;

    for (int event = 0; event < 4000; event++) {
        const int number = g_rand_int_range(rand, 0, N_PODS);
        if (times[number] > 0) {
            end(number);
            times[number] = 0;
            continue;
        }
        const int64_t time = choose(number, INT64_MAX);
        n_refused += time == 0;
        times[number] = time;
        if (time > 0)
            put(number, time);
        check(times);
    }
    ck_assert_int_lt(n_refused, 40); /* of 2000, with 100 in flight all the time */
}
END_TEST

/* As those of a Job come, and each waits until all are bound. */
START_TEST(many_come_in_the_order_of_their_names)
{
    int64_t times[N_PODS] = {0};

    for (int i = 0; i < N_PODS; i++) {
        const int number = _i ? i : N_PODS - 1 - i;
        times[number] = choose(number, INT64_MAX);
        ck_assert_int_gt(times[number], 0);
        put(number, times[number]);
        check(times);
    }
}
END_TEST

START_TEST(alone_it_is_the_time_of_day)
{
    ck_assert_int_eq(choose(1, INT64_MAX), NOW);
    put(1, NOW);
    end(1);
    ck_assert_int_eq(choose(0, INT64_MAX), NOW);
    ck_assert_int_eq(choose(2, INT64_MAX), NOW);
}
END_TEST

/* Those that came a moment ago leave room for one between them. */
START_TEST(others_fit_between_two_of_one_moment)
{
    put(9, NOW - 1);
    const int64_t first = choose(1, INT64_MAX);
    ck_assert_int_gt(first, NOW);
    put(1, first);
    const int64_t between = choose(5, INT64_MAX);
    ck_assert_int_gt(between, NOW - 1);
    ck_assert_int_lt(between, first);
}
END_TEST

START_TEST(it_is_below_what_it_has_to_outrank)
{
    ck_assert_int_lt(choose(1, 1000), 1000);
    ck_assert_int_eq(choose(1, 2), 1);
    ck_assert_int_eq(choose(1, 1), 0);
    put(5, 1000);
    ck_assert_int_eq(choose(1, 1000), 0); /* above one, and below another */
    ck_assert_int_gt(choose(1, 2000), 1000);
    ck_assert_int_lt(choose(1, 2000), 2000);
}
END_TEST

START_TEST(what_no_longer_waits_is_not_in_the_way)
{
    put(0, 1);
    ck_assert_int_eq(choose(1, INT64_MAX), 0);
    turns_drop(turns, "p000");
    ck_assert_int_eq(choose(1, INT64_MAX), NOW);
    put(0, 1);
    end(0);
    ck_assert_int_eq(choose(1, INT64_MAX), NOW);
    put_served(0, 1);
    ck_assert_int_eq(choose(1, INT64_MAX), NOW);
}
END_TEST

static void taint(int number, const char *key)
{
    static const struct node_facts facts = {0};
    g_autofree char *name = name_of(number);
    const struct taint_view view = {.key = key, .value = "", .effect = "NoExecute"};
    struct node *node = ledger_node(book, name);

    node_traits_unref(node_set_facts(
        node, &facts, node_traits_new(&(struct node_view){.taints = &view, .n_taints = 1})));
}

/* Two that their author has bound where no plugin asks for them, with times that leave none between. */
START_TEST(who_is_not_asked_for_keeps_nobody_waiting)
{
    put_away(1, 2000000);
    put_away(8, 3000000);
    ck_assert_int_gt(choose(5, INT64_MAX), 0);
    ck_assert_int_lt(choose(5, INT64_MAX), 2000000); /* the list may begin with it all the same */
    ck_assert_int_gt(choose(0, INT64_MAX), 3000000);
    put(7, 1500000);
    ck_assert_int_gt(choose(5, INT64_MAX), 1500000);
    put(8, 3000000);
    ck_assert_int_eq(choose(5, INT64_MAX), 0); /* a plugin may ask for that */
    taint(8, "node.kubernetes.io/not-ready");
    ck_assert_int_eq(choose(5, INT64_MAX), 0);
    taint(8, "node.kubernetes.io/unreachable");
    ck_assert_int_gt(choose(5, INT64_MAX), 1500000);
    ck_assert_int_lt(choose(5, INT64_MAX), 2000000);
}
END_TEST

/* No call looks at all of many. What it has not looked at might be in the way. */
START_TEST(of_many_some_are_looked_at)
{
    put(0, 900000);
    for (int i = 0; i < TURNS_LOOK_MAX; i++) {
        g_autofree char *name = g_strdup_printf("z%d", i);
        turns_set(turns, &(struct turn){name, "ml", name, 1000 + i}, false);
    }
    ck_assert_int_lt(choose(1, INT64_MAX), 900000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("turns");
    TCase *tests = tcase_create("turns");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, whoever_comes_first_is_not_mistaken, 0, 10);
    tcase_add_loop_test(tests, many_come_in_the_order_of_their_names, 0, 2);
    tcase_add_test(tests, alone_it_is_the_time_of_day);
    tcase_add_test(tests, others_fit_between_two_of_one_moment);
    tcase_add_test(tests, it_is_below_what_it_has_to_outrank);
    tcase_add_test(tests, what_no_longer_waits_is_not_in_the_way);
    tcase_add_test(tests, who_is_not_asked_for_keeps_nobody_waiting);
    tcase_add_test(tests, of_many_some_are_looked_at);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
