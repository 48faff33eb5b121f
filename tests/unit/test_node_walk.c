/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "core/ledger.h"
#include "store/node_walk.h"
#include "suite.h"

static struct world world;

static void setup(void)
{
    world_init(&world);
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static void put_nodes(const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        fake_cluster_put_node(world.cluster, names[i], 20, 2);
    world_sync(&world);
}

/* Takes so long that no second node is visited under the same hold. */
static void note_slowly(const struct node *node, void *data)
{
    g_string_append_printf(data, "%s ", node->name);
    g_usleep(1000);
}

START_TEST(all_nodes_are_visited_in_order)
{
    static const char *const names[] = {"n3", "n1", "n2", NULL};
    g_autoptr(GString) seen = g_string_new(NULL);

    put_nodes(names);
    node_walk_all(world.store, note_slowly, seen);
    ck_assert_str_eq(seen->str, "n1 n2 n3 ");
}
END_TEST

START_TEST(a_walk_goes_on_behind_the_last_whatever_comes_and_goes)
{
    static const char *const names[] = {"n1", "n3", "n5", "n7", NULL};
    g_autoptr(GString) seen = g_string_new(NULL);
    struct node_walk walk;

    put_nodes(names);
    node_walk_init(&walk, world.store);
    ck_assert(node_walk_step(&walk, note_slowly, seen));
    ck_assert(node_walk_step(&walk, note_slowly, seen));
    ck_assert_str_eq(seen->str, "n1 n3 ");
    /* Before, at and behind where the walk is. */
    struct ledger *ledger = store_lock(world.store);
    ledger_remove_node(ledger, "n3");
    ledger_set_topology(ledger, "n0", NULL);
    ledger_set_topology(ledger, "n2", NULL);
    ledger_set_topology(ledger, "n6", NULL);
    store_unlock(world.store);
    while (node_walk_step(&walk, note_slowly, seen))
        continue;
    ck_assert_str_eq(seen->str, "n1 n3 n5 n6 n7 ");
    node_walk_clear(&walk);
}
END_TEST

START_TEST(a_walk_may_be_left)
{
    static const char *const names[] = {"n1", "n2", NULL};
    g_autoptr(GString) seen = g_string_new(NULL);
    struct node_walk walk;

    put_nodes(names);
    node_walk_init(&walk, world.store);
    ck_assert(node_walk_step(&walk, note_slowly, seen));
    node_walk_clear(&walk);
    node_walk_init(&walk, world.store);
    g_string_truncate(seen, 0);
    ck_assert(node_walk_step(&walk, note_slowly, seen));
    ck_assert_str_eq(seen->str, "n1 ");
    node_walk_clear(&walk);
}
END_TEST

START_TEST(nodes_stay_in_order)
{
    static const char *const names[] = {"b", "d", NULL};
    g_autoptr(GString) seen = g_string_new(NULL);

    put_nodes(names);
    struct ledger *ledger = store_lock(world.store);
    ck_assert_uint_eq(ledger_nodes(ledger)->len, 2);
    ledger_set_topology(ledger, "c", NULL);
    ledger_set_topology(ledger, "a", NULL);
    ledger_set_topology(ledger, "e", NULL);
    ledger_remove_node(ledger, "b");
    for (guint i = 0; i < ledger_nodes(ledger)->len; i++)
        g_string_append(seen, ((const struct node *)ledger_nodes(ledger)->pdata[i])->name);
    store_unlock(world.store);
    ck_assert_str_eq(seen->str, "acde");
}
END_TEST

START_TEST(cards_are_counted_as_nodes_come_and_go)
{
    static const char *const names[] = {"n1", "n2", NULL};

    put_nodes(names);
    struct ledger *ledger = store_lock(world.store);
    ck_assert_uint_eq(ledger_cards(ledger), 4);
    ledger_remove_node(ledger, "n1");
    ck_assert_uint_eq(ledger_cards(ledger), 2);
    g_autoptr(ledger) copy = ledger_new();
    ledger_copy_node(copy, ledger_node(ledger, "n2"));
    ledger_copy_node(copy, ledger_node(ledger, "n2"));
    ck_assert_uint_eq(ledger_cards(copy), 2);
    store_unlock(world.store);
}
END_TEST

START_TEST(pods_are_counted_by_state)
{
    static const char *const names[] = {"n1", NULL};

    fake_cluster_add_pod(world.cluster, &(struct fake_pod){.name = "p", .mem = 4});
    put_nodes(names);
    world_expect_bind(&world, "p", "n1", "");
    struct ledger *ledger = store_lock(world.store);
    ck_assert_uint_eq(ledger_count(ledger, ALLOCATION_BOUND), 1);
    ck_assert_uint_eq(ledger_count(ledger, ALLOCATION_CONFIRMED), 0);
    store_unlock(world.store);
    world_catch_up(&world);
    ledger = store_lock(world.store);
    ck_assert_uint_eq(ledger_count(ledger, ALLOCATION_BOUND), 0);
    ck_assert_uint_eq(ledger_count(ledger, ALLOCATION_CONFIRMED), 1);
    store_unlock(world.store);
}
END_TEST

static Suite *suite(void)
{
    TCase *tcase = tcase_create("node_walk");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_nodes_are_visited_in_order);
    tcase_add_test(tcase, a_walk_goes_on_behind_the_last_whatever_comes_and_goes);
    tcase_add_test(tcase, a_walk_may_be_left);
    tcase_add_test(tcase, nodes_stay_in_order);
    tcase_add_test(tcase, cards_are_counted_as_nodes_come_and_go);
    tcase_add_test(tcase, pods_are_counted_by_state);
    Suite *suite = suite_create("node_walk");
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(suite());
}
