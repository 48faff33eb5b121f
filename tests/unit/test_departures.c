/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that vanish before their node side has taken them, and who waits for them. */
#include "app/departures.h"
#include "app/feasibility.h"
#include "app/waits.h"
#include "literals.h"
#include "stored_world.h"
#include "suite.h"

#define AWAITED "A pod of the same size on the node still waits for its GPU"

static struct moment moment;

static void begin(void)
{
    setup();
    moment = (struct moment){.now_ns = 1, .now_ms = g_get_monotonic_time() / 1000};
    world.extender.bind_timeout_ms = 60;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {"p", "q"};
        world_add_pending(&world, names[i], 5);
    }
    world_expect_bind(&world, "p", "duo", "");
    world_catch_up(&world);
}

/* A decision is made, so long after the last one. */
static void pass(int64_t ms)
{
    store_set_moment(world.store, &moment);
    moment.now_ms += ms;
    store_decide_recorded(world.store, &moment);
    store_unlock(world.store);
    store_set_moment(world.store, NULL);
}

static guint departed(struct store *store)
{
    const struct node *node = ledger_node(store_lock(store), "duo");
    const guint n = node && node->departed ? node->departed->len : 0;

    store_unlock(store);
    return n;
}

START_TEST(who_vanishes_waiting_counts_for_a_while)
{
    store_vanish_pod(world.store, "uid-p");
    expect_used("duo", 0, 0, 0); /* it holds nothing */
    pass(0);
    world_expect_bind(&world, "q", "duo", AWAITED);
    world_add_pending(&world, "r", 4); /* another size */
    world_expect_bind(&world, "r", "duo", "");
    pass(DEPARTURE_MAX_MS - 1);
    ck_assert_int_eq(departed(world.store), 1);
    pass(1);
    ck_assert_int_eq(departed(world.store), 0);
    world_expect_bind(&world, "q", "duo", "");
}
END_TEST

/* So that a moment that nobody has decided in is none of the wait. */
START_TEST(its_time_begins_with_a_decision)
{
    store_vanish_pod(world.store, "uid-p");
    pass(5 * DEPARTURE_MAX_MS);
    ck_assert_int_eq(departed(world.store), 1);
    pass(DEPARTURE_MAX_MS);
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

START_TEST(or_with_a_look_of_housekeeping)
{
    store_vanish_pod(world.store, "uid-p");
    store_set_moment(world.store, &moment);
    store_end_waits(world.store);
    moment.now_ms += DEPARTURE_MAX_MS;
    store_end_waits(world.store);
    store_set_moment(world.store, NULL);
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

START_TEST(who_has_ended_does_not)
{
    store_delete_pod(world.store, "uid-p");
    ck_assert_int_eq(departed(world.store), 0);
    world_expect_bind(&world, "q", "duo", "");
}
END_TEST

START_TEST(nor_who_was_taken)
{
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    world_catch_up(&world);
    store_vanish_pod(world.store, "uid-p");
    ck_assert_int_eq(departed(world.store), 0);
}
END_TEST

/* A list that does not name it tells the same as its deletion. */
START_TEST(who_is_missing_from_a_list_counts_as_well)
{
    store_list_begin(world.store, FEED_PODS);
    store_list_end(world.store, FEED_PODS);
    ck_assert_int_eq(departed(world.store), 1);
}
END_TEST

/* Patience ends without any change of the node. */
START_TEST(what_is_said_of_the_node_is_not_remembered)
{
    const struct pod_view pod = {.ns = "ml", .name = "q", .uid = "uid-q"};

    world_add_pending(&world, "r", 4);
    for (int gone = 0; gone < 2; gone++) {
        struct feasibility question;
        struct ledger *ledger;
        struct moment now;

        (gone ? store_vanish_pod : store_delete_pod)(world.store, gone ? "uid-r" : "uid-p");
        ledger = store_decide(world.store, &now);
        feasibility_init(&question, world.store,
                         &(struct feasibility_about){
                             &pod, store_pending(world.store, "uid-q"), &now, WITHOUT_ORDER});
        ck_assert(feasibility_lasts(&question, ledger_node(ledger, "duo")) == !gone);
        feasibility_clear(&question);
        store_unlock(world.store);
        if (!gone)
            world_expect_bind(&world, "r", "duo", "");
    }
}
END_TEST

START_TEST(a_copy_of_the_store_knows_them)
{
    store_vanish_pod(world.store, "uid-p");
    g_autoptr(store) copy = store_copy(world.store);
    ck_assert_int_eq(departed(copy), 1);
}
END_TEST

/* Where a record's next file begins. */
START_TEST(what_is_told_of_them_is_understood)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(ledger) other = ledger_new();
    struct departures *from = departures_new(), *to = departures_new();
    struct json_writer writer;

    departures_note(from, store_lock(world.store), ledger_get(store_ledger(world.store), "uid-p"));
    store_unlock(world.store);
    departures_begin(from, 7);
    json_writer_init(&writer, text);
    departures_encode(&writer, from);
    ck_assert(departures_decode(to, other, arena, json_parse(arena, text->str, text->len, NULL),
                                NULL));
    const struct node *node = ledger_node(other, "duo");
    ck_assert(node && node->departed && node->departed->len == 1);
    ck_assert_int_eq(g_array_index(node->departed, struct departed, 0).match_amount, 5);
    ck_assert(!departures_end(to, other, 7 + DEPARTURE_MAX_MS - 1));
    ck_assert(departures_end(to, other, 7 + DEPARTURE_MAX_MS));
    ck_assert_ptr_null(ledger_node(other, "duo")); /* it was there for them alone */
    /* What is told next takes the place of what was told. */
    ck_assert(departures_decode(to, other, arena, json_parse(arena, text->str, text->len, NULL),
                                NULL));
    ck_assert(departures_decode(to, other, arena, json_parse(arena, "[]", 2, NULL), NULL));
    ck_assert_ptr_null(ledger_node(other, "duo"));
    departures_free(from);
    departures_free(to);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("departures");
    TCase *tc = tcase_create("departures");

    tcase_add_checked_fixture(tc, begin, teardown);
    tcase_add_test(tc, who_vanishes_waiting_counts_for_a_while);
    tcase_add_test(tc, its_time_begins_with_a_decision);
    tcase_add_test(tc, or_with_a_look_of_housekeeping);
    tcase_add_test(tc, who_has_ended_does_not);
    tcase_add_test(tc, nor_who_was_taken);
    tcase_add_test(tc, who_is_missing_from_a_list_counts_as_well);
    tcase_add_test(tc, what_is_said_of_the_node_is_not_remembered);
    tcase_add_test(tc, a_copy_of_the_store_knows_them);
    tcase_add_test(tc, what_is_told_of_them_is_understood);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
