/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "core/allocation.h"
#include "core/ledger.h"
#include "core/node.h"
#include "policy/demand.h"
#include "policy/value_model.h"
#include "store/images/ledger_reader.h"
#include "suite.h"

#include <string.h>

#define CARDS 4
#define MANY 1000 /* pods, for which no room is at hand at first */

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

/* So many pods on it, one GiB each, on one card after the other; every third asks in a way that depends on
 * the node. */
static void put_pods(const char *node, int n)
{
    struct ledger *ledger = store_lock(world.store);

    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%04d", node, i);
        struct allocation *pod = allocation_new(uid, "default", uid, 2);
        pod->state = ALLOCATION_CONFIRMED;
        pod->dialect = dialect_find("gpushare");
        for (int k = 0; k < 2; k++)
            pod->shares[k] = (struct share){
                .memory = {k ? 0 : 1, AMOUNT_NODE_UNITS},
                .card = i % CARDS,
                .container = k,
                .basis = k && i % 3 == 0 ? SHARE_NOT_GIVEN : SHARE_HELD,
            };
        ledger_put(ledger, node, pod);
    }
    store_unlock(world.store);
}

static void drop_all(const char *node)
{
    struct ledger *ledger = store_lock(world.store);

    for (guint n = ledger_node(ledger, node)->allocations->len; n > 0; n--) {
        const struct allocation *pod = ledger_node(ledger, node)->allocations->pdata[0];
        ledger_drop(ledger, pod->uid);
    }
    ledger_remove_node(ledger, node);
    store_unlock(world.store);
}

struct planned {
    const char *name;
    guint pods;
};

/* To name NULL. A list would sweep pods that it does not name. */
static void put_nodes(const struct planned *nodes)
{
    for (size_t i = 0; nodes[i].name; i++)
        fake_cluster_put_node(world.cluster, nodes[i].name, MANY, CARDS);
    world_sync(&world);
    for (size_t i = 0; nodes[i].name; i++)
        put_pods(nodes[i].name, (int)nodes[i].pods);
}

static void put_node(const char *name, guint pods)
{
    put_nodes((struct planned[]){{name, pods}, {NULL, 0}});
}

static void expect_image(const struct node *node, const char *name, guint pods)
{
    ck_assert_str_eq(node->name, name);
    ck_assert_int_eq(node->n_cards, CARDS);
    ck_assert_uint_eq(node->allocations->len, pods);
    for (guint i = 0; i < pods; i++) {
        const struct allocation *pod = g_ptr_array_index(node->allocations, i);
        g_autofree char *uid = g_strdup_printf("%s-%04u", name, i);
        ck_assert_str_eq(pod->uid, uid);
        ck_assert_str_eq(pod->name, uid);
        ck_assert_str_eq(pod->ns, "default");
        ck_assert_ptr_eq(pod->node, node);
        ck_assert_uint_eq(pod->n_shares, i % 3 == 0 ? 1 : 2);
        ck_assert_int_eq(pod->shares[0].card, (int32_t)i % CARDS);
    }
    ck_assert(node_verify(node, node_cpu_pods(node), NULL));
}

START_TEST(an_image_outlives_its_node)
{
    g_autoptr(node_images) images = node_images_new(world.store, true);

    put_node("n1", 10);
    const struct node *image = node_images_one(images, "n1");
    drop_all("n1");
    expect_image(image, "n1", 10);
    g_autoptr(ledger) other = ledger_new();
    ledger_copy_node(other, image);
    ck_assert(ledger_verify(other, NULL));
    ck_assert_uint_eq(ledger_size(other), 10);
    ck_assert_ptr_null(node_images_one(images, "n1"));
}
END_TEST

static void count(const struct node *node, void *data)
{
    (*(int *)data)++;
}

START_TEST(nodes_come_in_order_and_once_however_large_they_are)
{
    static const struct planned nodes[] = {{"n1", 0},        {"n2", MANY}, {"n3", 1}, {"n4", MANY},
                                           {"n5", 2 * MANY}, {"n6", 0},    {NULL, 0}};
    const guint n = G_N_ELEMENTS(nodes) - 1;
    g_autoptr(node_images) images = node_images_new(world.store, false);
    const GPtrArray *some;
    guint seen = 0;
    int told = 0;

    put_nodes(nodes);
    while ((some = node_images_next(images, count, &told))) {
        for (guint i = 0; i < some->len; i++, seen++) {
            ck_assert_uint_lt(seen, n);
            expect_image(node_image_node(g_ptr_array_index(some, i)), nodes[seen].name,
                         nodes[seen].pods);
        }
    }
    ck_assert_uint_eq(seen, n);
    ck_assert_int_eq(told, (int)n);
    some = node_images_next(images, NULL, NULL);
    expect_image(node_image_node(g_ptr_array_index(some, 0)), "n1", 0);
}
END_TEST

START_TEST(what_is_held_is_read_with_its_node)
{
    g_autoptr(ledger_reader) reader = ledger_reader_new(world.store, true);
    guint nodes = 0, pods = 0;
    const GArray *some;

    put_nodes((struct planned[]){{"n1", 3}, {"n2", MANY}, {NULL, 0}});
    while ((some = ledger_reader_next(reader))) {
        for (guint i = 0; i < some->len; i++, nodes++) {
            const struct held_node *held = &g_array_index(some, struct held_node, i);
            ck_assert_uint_eq(held->number, 0); /* nobody is told */
            pods += held->pods->len;
            for (guint j = 0; j < held->pods->len; j++) {
                const struct held_pod *pod = &g_array_index(held->pods, struct held_pod, j);
                ck_assert(g_str_has_prefix(pod->allocation->uid, held->name));
                ck_assert_ptr_null(pod->quota);
            }
        }
    }
    ck_assert_uint_eq(nodes, 2);
    ck_assert_uint_eq(pods, MANY + 3);
}
END_TEST

START_TEST(sums_that_are_wrong_are_found)
{
    put_node("n1", 3);
    store_verify(world.store);
    ck_assert(store_is_sound(world.store));
    struct node *node = ledger_node(store_lock(world.store), "n1");
    node->cards[1].memory_used += 1;
    store_unlock(world.store);
    store_verify(world.store);
    ck_assert(!store_is_sound(world.store));
    node->cards[1].memory_used -= 1;
    struct allocation *pod = node->allocations->pdata[0];
    pod->node = NULL;
    store_verify(world.store);
    ck_assert(!store_is_sound(world.store));
    pod->node = node;
    store_verify(world.store);
    ck_assert(store_is_sound(world.store));
}
END_TEST

/* A decision's model is its own, and no reader's. */
START_TEST(what_readers_work_out_is_what_the_next_decision_will)
{
    struct store *store = world.store;

    for (int i = 0; i < 40; i++) {
        g_autofree char *name = g_strdup_printf("p-%d", i);
        fake_cluster_add_pod(world.cluster, &(struct fake_pod){.name = name, .mem = 1 + i % 3});
    }
    put_node("n1", 0);
    g_autoptr(demand) first = store_demand_copy(store), second = store_demand_copy(store);
    const struct value_model *model = demand_value_model(first);
    ck_assert_ptr_nonnull(model);
    ck_assert_ptr_eq(demand_value_model(second), model);
    store_lock(store);
    const struct demand *decided = store_demand(store);
    ck_assert_uint_eq(demand_version(decided), demand_version(first));
    const struct value_model *own = demand_value_model(decided);
    store_unlock(store);
    ck_assert_ptr_ne(own, model);
    ck_assert_uint_eq(own->n_kinds, 1);
    ck_assert_uint_eq(model->n_kinds, 1);
    ck_assert_mem_eq(own->kinds[0].values, model->kinds[0].values, sizeof *own->kinds[0].values);
    g_autoptr(demand) third = store_demand_copy(store);
    ck_assert_ptr_eq(demand_value_model(third), own);
    put_nodes((struct planned[]){{"n1", 0}, {"n2", 0}, {NULL, 0}});
    g_autoptr(demand) fourth = store_demand_copy(store), fifth = store_demand_copy(store);
    ck_assert_ptr_ne(demand_value_model(fourth), own);
    ck_assert_ptr_eq(demand_value_model(fourth), demand_value_model(fifth));
    ck_assert(demand_value_model(fourth)->kinds[0].cards == 2 * CARDS);
}
END_TEST

static Suite *suite(void)
{
    TCase *tcase = tcase_create("node_images");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_image_outlives_its_node);
    tcase_add_test(tcase, nodes_come_in_order_and_once_however_large_they_are);
    tcase_add_test(tcase, what_is_held_is_read_with_its_node);
    tcase_add_test(tcase, sums_that_are_wrong_are_found);
    tcase_add_test(tcase, what_readers_work_out_is_what_the_next_decision_will);
    Suite *suite = suite_create("node_images");
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(suite());
}
