/* SPDX-License-Identifier: Apache-2.0 */
/* What is done once a second, on a clock that stands still. */
#include "cmd/serve/housekeeping.h"

#include "gate/waits/departures.h"
#include "stopped_clock.h"
#include "suite.h"
#include "world.h"

static struct world world;
static struct housekeeping *housekeeping;
static gint term; /* atomic */

static uint64_t term_of(struct leadership *leadership)
{
    return (uint64_t)g_atomic_int_get(&term);
}

static int64_t until_ms(struct leadership *leadership, uint64_t of)
{
    return INT64_MAX;
}

static bool publish(struct leadership *leadership, uint64_t of, int64_t deadline_ms, GError **error)
{
    return true;
}

static const struct leadership_ops ops = {term_of, until_ms, publish};
static struct leadership leadership = {&ops};

static void setup(void)
{
    clock_begin();
    world_init(&world);
    world_populate(&world);
    world_sync(&world);
    world.extender.wake = wake_new();
    world.extender.leadership = &leadership;
    g_atomic_int_set(&term, 1);
}

static void begin(void)
{
    housekeeping = housekeeping_start(&world.extender, NULL, NULL);
    ck_assert_ptr_nonnull(housekeeping);
    clock_await_waiting(1);
}

static void teardown(void)
{
    housekeeping_free(housekeeping);
    g_clear_pointer(&world.extender.wake, wake_free);
    world_release(&world);
}

/* It is waiting again afterwards. */
static void let_it_run(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        clock_skip_ms(1000);
        clock_await_waiting(1);
    }
}

/* The pod might be bound by the replica that has refused it. */
START_TEST(who_stands_by_wakes_nobody)
{
    world_add_bound(&world, "old", "mono", 8, "0");
    world_add_pending(&world, "new", 5);
    g_autofree char *refused = world_filter(&world, "new", "mono");
    ck_assert_ptr_nonnull(refused);
    fake_cluster_delete_pod(world.cluster, "old");
    world_catch_up(&world);
    g_atomic_int_set(&term, 0);
    begin();
    let_it_run(3);
    ck_assert_uint_eq(fake_cluster_n_annotated(world.cluster), 0);
    g_atomic_int_set(&term, 2);
    let_it_run(1);
    ck_assert_uint_eq(fake_cluster_n_annotated(world.cluster), 1);
}
END_TEST

static guint departed(void)
{
    const struct node *node = ledger_node(store_lock(world.store), "duo");
    const guint n = node->departed ? node->departed->len : 0;

    store_unlock(world.store);
    return n;
}

START_TEST(nobody_waits_for_ever_for_who_has_gone)
{
    world_add_pending(&world, "p", 5);
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
    store_vanish_pod(world.store, "uid-p");
    ck_assert_uint_eq(departed(), 1);
    begin();
    let_it_run(2);
    ck_assert_uint_eq(departed(), 1);
    clock_skip_ms(DEPARTURE_MAX_MS);
    let_it_run(1);
    ck_assert_uint_eq(departed(), 0);
}
END_TEST

/* The Binding was carried out, and neither its reply nor the watch says so. */
START_TEST(a_bind_of_which_nothing_is_known_is_settled)
{
    const struct fake_step lost = {.act = FAKE_LOSE_REPLY, .outcome = OUTCOME_UNKNOWN};

    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    world_add_pending(&world, "p", 5);
    fake_cluster_script_bind(world.cluster, &lost);
    fake_cluster_script_get(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    g_autofree char *error = world_bind(&world, "p", "duo");
    ck_assert_str_ne(error, "");
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_UNKNOWN);
    begin();
    let_it_run(10);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("housekeeping");
    TCase *tests = tcase_create("housekeeping");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, who_stands_by_wakes_nobody);
    tcase_add_test(tests, nobody_waits_for_ever_for_who_has_gone);
    tcase_add_test(tests, a_bind_of_which_nothing_is_known_is_settled);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
