/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sleeps at a node is woken by what changes there, and by nothing else.
 */
#include "gate/waits/waits.h"
#include "stored_world.h"
#include "suite.h"

#define HOUR_MS INT64_C(3600000)
#define NAP_MS 50

static int64_t sleep_ms;
static gint asleep, woken;

/* Both are of the store's lock: whoever has it after `asleep` is set finds the sleeper asleep. */
static void *sleep_at_duo(void *data)
{
    store_lock(world.store);
    g_atomic_int_set(&asleep, 1);
    g_atomic_int_set(&woken, store_wait(world.store, "duo", NULL,
                                        g_get_monotonic_time() / 1000 + sleep_ms));
    store_unlock(world.store);
    return NULL;
}

static bool wakes(void (*happens)(void), int64_t ms)
{
    pthread_t thread;

    sleep_ms = ms;
    asleep = woken = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_at_duo, NULL), 0);
    while (!g_atomic_int_get(&asleep))
        g_usleep(1000);
    happens();
    pthread_join(thread, NULL);
    return g_atomic_int_get(&woken);
}

static void told(void)
{
    world_catch_up(&world);
}

static void sleeps_beside_p(void)
{
    setup();
    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
}

static void comes(void)
{
    world_add_bound(&world, "a", "duo", 3, "1");
}

static void is_taken(void)
{
    fake_cluster_assign(cluster, "p");
    told();
}

static void is_admitted(void)
{
    fake_cluster_start(cluster, "p");
    told();
}

static void goes(void)
{
    fake_cluster_delete_pod(cluster, "p");
    told();
}

static void grows(void)
{
    fake_cluster_put_node(cluster, "duo", 40, 2);
    told();
}

static void vanishes(void)
{
    fake_cluster_delete_node(cluster, "duo");
    told();
}

static void falls_ill(void)
{
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    told();
}

/* Its plugin has had as long as anybody waits for. */
static void is_given_up(void)
{
    struct moment moment = {.now_ns = 1, .now_ms = 1000};

    store_set_moment(world.store, &moment);
    for (int i = 0; i < 2; i++) {
        store_decide_recorded(world.store, &moment);
        store_unlock(world.store);
        moment.now_ms += WAIT_MAX_MS;
    }
    store_set_moment(world.store, NULL);
}

static void (*const there[])(void) = {comes, is_taken, is_admitted, goes,
                                      grows, vanishes, falls_ill,   is_given_up};

START_TEST(what_changes_there_wakes)
{
    if (there[_i] == is_given_up) /* until kubelet has started it, it is not */
        is_admitted();
    ck_assert(wakes(there[_i], HOUR_MS));
}
END_TEST

static void comes_elsewhere(void)
{
    world_add_bound(&world, "a", "mono", 3, "0");
}

static void waits_elsewhere(void)
{
    world_add_pending(&world, "q", 6);
}

static void is_told_again(void)
{
    g_autofree char *same = fake_cluster_pod_json(cluster, "p");

    feed_event(world.store, FEED_PODS, false, same);
}

static void (*const elsewhere[])(void) = {comes_elsewhere, waits_elsewhere, is_told_again};

START_TEST(what_changes_elsewhere_does_not)
{
    ck_assert(!wakes(elsewhere[_i], NAP_MS));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sleepers");
    TCase *tc = tcase_create("sleepers");

    tcase_add_checked_fixture(tc, sleeps_beside_p, teardown);
    tcase_add_loop_test(tc, what_changes_there_wakes, 0, G_N_ELEMENTS(there));
    tcase_add_loop_test(tc, what_changes_elsewhere_does_not, 0, G_N_ELEMENTS(elsewhere));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
