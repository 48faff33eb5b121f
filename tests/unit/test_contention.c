/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody at once: binds that go wrong, filters, feeds, fresh lists, a node side, settling and
 * views, while an auditor looks on. No card is ever granted twice, neither by the ledger's word
 * nor by the API server's. Most useful under ThreadSanitizer.
 */
#include "world.h"

#include "inspect/views.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define RUN_AT_LEAST_MS 1000
#define RUN_AT_MOST_MS 8000 /* if the machine is so slow that little happens */
#define BOUND_AT_LEAST 200
#define BINDERS 7
#define FILTERS 2
#define PODS 40

static struct world world;
static struct fake_cluster *cluster;
static int64_t start_ms;
static gint seeds, generation;

static const char *const nodes[] = {"duo0", "duo1", "quad", "mono"};

static bool time_is_left(void)
{
    int64_t ran_ms = g_get_monotonic_time() / 1000 - start_ms;
    return ran_ms < RUN_AT_LEAST_MS ||
           (ran_ms < RUN_AT_MOST_MS && fake_cluster_n_bound(cluster) < BOUND_AT_LEAST);
}

static GRand *new_chance(void)
{
    return g_rand_new_with_seed((guint32)g_atomic_int_add(&seeds, 1));
}

static void any_pod(GRand *chance, char *ret_name)
{
    snprintf(ret_name, 8, "p%d", g_rand_int_range(chance, 0, PODS));
}

static const char *any_node(GRand *chance)
{
    return nodes[g_rand_int_range(chance, 0, G_N_ELEMENTS(nodes))];
}

/* A new pod of that name, now and then one without a GPU. */
static void create_pod(const char *name, GRand *chance)
{
    static const int sizes[] = {2, 3, 5, 6, 2, 3, 5, 0};
    g_autofree char *uid = g_strdup_printf("uid-%s-%d", name, g_atomic_int_add(&generation, 1));

    fake_cluster_add_pod(
        cluster,
        &(struct fake_pod){.name = name,
                           .uid = uid,
                           .mem = sizes[g_rand_int_range(chance, 0, G_N_ELEMENTS(sizes))]});
}

/* --- who takes part ------------------------------------------------------------------------- */

static void *bind_pods(void *data)
{
    GRand *chance = new_chance();
    char pod[8];

    while (time_is_left()) {
        any_pod(chance, pod);
        g_autofree char *uid = fake_cluster_uid(cluster, pod);
        if (uid)
            g_free(world_bind_uid(&world, pod, uid, any_node(chance)));
    }
    g_rand_free(chance);
    return NULL;
}

static void *filter_pods(void *data)
{
    GRand *chance = new_chance();
    char pod[8];

    while (time_is_left()) {
        any_pod(chance, pod);
        g_autofree char *object = fake_cluster_pod_json(cluster, pod);
        if (!object)
            continue;
        g_autofree char *body = g_strdup_printf(
            "{\"Pod\":%s,\"NodeNames\":[\"duo0\",\"duo1\",\"quad\",\"mono\",\"nope\"]}", object);
        g_autoptr(GString) reply = g_string_new(NULL);
        extender_filter(&world.extender, body, strlen(body), reply);
    }
    g_rand_free(chance);
    return NULL;
}

static void *feed_pods(void *data)
{
    GRand *chance = new_chance();

    while (time_is_left()) {
        if (g_rand_int_range(chance, 0, 50) == 0)
            fake_cluster_list(cluster, world.store, FEED_PODS);
        fake_cluster_deliver(cluster, world.store, FEED_PODS, 20);
        g_usleep(500);
    }
    g_rand_free(chance);
    return NULL;
}

static void *feed_nodes(void *data)
{
    GRand *chance = new_chance();

    while (time_is_left()) {
        fake_cluster_put_unhealthy(cluster, any_node(chance), g_rand_boolean(chance) ? "0" : NULL);
        for (int feed = 0; feed < FEED_N; feed++) {
            if (feed == FEED_PODS)
                continue;
            if (g_rand_int_range(chance, 0, 20) == 0)
                fake_cluster_list(cluster, world.store, (enum feed)feed);
            fake_cluster_deliver(cluster, world.store, (enum feed)feed, UINT_MAX);
        }
        g_usleep(2000);
    }
    g_rand_free(chance);
    return NULL;
}

/* Kubelet, plugin and controllers. */
static void *run_pods(void *data)
{
    GRand *chance = new_chance();
    char pod[8];

    while (time_is_left()) {
        any_pod(chance, pod);
        switch (g_rand_int_range(chance, 0, 10)) {
        case 0:
            fake_cluster_set_phase(cluster, pod, "Succeeded");
            break;
        case 1:
            fake_cluster_delete_pod(cluster, pod);
            break;
        case 2:
            fake_cluster_terminate(cluster, pod);
            break;
        case 3:
        case 4:
            create_pod(pod, chance);
            break;
        case 5:
            fake_cluster_carry_out(cluster);
            break;
        case 6:
            fake_cluster_set_phase(cluster, pod, "Running");
            break;
        default:
            fake_cluster_assign(cluster, pod);
            fake_cluster_start(cluster, pod);
        }
        g_usleep(300);
    }
    g_rand_free(chance);
    return NULL;
}

static void *settle_pods(void *data)
{
    while (time_is_left()) {
        extender_reconcile(&world.extender, 5);
        g_usleep(3000);
    }
    return NULL;
}

static void *look_on(void *data)
{
    GRand *chance = new_chance();

    while (time_is_left()) {
        g_autoptr(GString) text = g_string_new(NULL);
        view_nodes(world.store, NULL, text);
        view_inspect(world.store, any_node(chance), text);
        view_nodes_table(world.store, NULL, text);
        view_pod(world.store, "ml", "p7", text);
        view_metrics(world.store, 100, text);
        store_set_policy(world.store, &policies[g_rand_int_range(chance, 0, 3)], 60000);
        g_usleep(1000);
    }
    g_rand_free(chance);
    return NULL;
}

/* What living pods hold of a card. An event older than a GET that has seen a pod's end brings that
 * pod back until the watch has caught up; nobody is hurt by that. */
static int64_t held_by_the_living(const struct node *node, int32_t card)
{
    int64_t held = 0;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *allocation = g_ptr_array_index(node->allocations, i);
        if (allocation->shares[0].card == card &&
            fake_cluster_lives(cluster, allocation->name, allocation->uid))
            held += amount_bytes(allocation->shares[0].memory, node->memory_unit);
    }
    return held;
}

static void audit_node(const struct node *node)
{
    ck_assert_int_eq(node->unplaced_memory, 0);
    for (int32_t i = 0; i < node->n_cards; i++)
        ck_assert_msg(node->cards[i].memory_used <= node->cards[i].memory ||
                          held_by_the_living(node, i) <= node->cards[i].memory,
                      "card %d of %s holds %" G_GINT64_FORMAT, i, node->name,
                      node->cards[i].memory_used);
}

static void *audit(void *data)
{
    while (time_is_left()) {
        g_autoptr(GError) error = NULL;
        struct ledger *ledger = store_lock(world.store);
        bool sound = ledger_verify(ledger, &error);
        for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++)
            audit_node(ledger_node(ledger, nodes[i]));
        store_unlock(world.store);
        ck_assert_msg(sound, "%s", error ? error->message : "");
        g_usleep(200);
    }
    return NULL;
}

START_TEST(no_card_is_granted_twice)
{
    static void *(*const others[])(void *data) = {feed_pods,   feed_nodes, run_pods, run_pods,
                                                  settle_pods, look_on,    audit};
    pthread_t threads[BINDERS + FILTERS + G_N_ELEMENTS(others)];
    size_t n = 0;
    char name[8];

    world_init(&world);
    cluster = world.cluster;
    world.extender.bind_timeout_ms = 30;
    fake_cluster_put_node(cluster, "duo0", 20, 2);
    fake_cluster_put_node(cluster, "duo1", 20, 2);
    fake_cluster_put_node(cluster, "quad", 28, 4);
    fake_cluster_put_node(cluster, "mono", 11, 1);
    GRand *chance = new_chance();
    for (int i = 0; i < PODS; i++) {
        snprintf(name, sizeof name, "p%d", i);
        create_pod(name, chance);
    }
    g_rand_free(chance);
    world_sync(&world);
    fake_cluster_set_chaos(cluster, 1, 15);

    start_ms = g_get_monotonic_time() / 1000;
    for (int i = 0; i < BINDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[n++], NULL, bind_pods, NULL), 0);
    for (int i = 0; i < FILTERS; i++)
        ck_assert_int_eq(pthread_create(&threads[n++], NULL, filter_pods, NULL), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        ck_assert_int_eq(pthread_create(&threads[n++], NULL, others[i], NULL), 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);

    world_settle_down(&world);
    g_autofree char *violation = fake_cluster_violation(cluster);
    ck_assert_msg(!violation, "%s", violation);
    world_verify(&world);
    g_autofree char *grown = world_nodes(&world);
    g_autofree char *fresh = world_replay(&world);
    ck_assert_str_eq(grown, fresh);
    ck_assert_uint_gt(fake_cluster_n_bound(cluster), 10);
    world_release(&world);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("contention");
    TCase *tc = tcase_create("contention");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, no_card_is_granted_twice);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
