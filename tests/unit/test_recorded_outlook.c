/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes the value model of policies that go by the expected pods, when, and that a record of it gives the same
 * decisions again.
 */
#include "literals.h"
#include "recorded_calls.h"
#include "suite.h"

#include "policy/demand.h"
#include "store/store_state.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define NODES 6

static struct extender extender;
static struct store_options options;

static void add_node(int i, int units, int cards, const char *policy)
{
    g_autofree char *name = g_strdup_printf("n%d", i);
    g_autofree char *memory = g_strdup_printf("%d", units * cards);
    g_autofree char *count = g_strdup_printf("%d", cards);

    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .labels = PAIRS({"gpuledger.io/policy", policy}),
                                         .capacity = PAIRS({MEM, memory}, {COUNT, count})});
}

static void expect_pods(int n, const char *units)
{
    static int last;

    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", last++);
        store_apply_pod(
            extender.store,
            &(struct pod_view){.ns = "ml",
                               .name = uid,
                               .uid = uid,
                               .phase = "Pending",
                               CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
    }
}

static void begin(const char *policy)
{
    options = (struct store_options){.patience_ms = 60000, .policy = policy_find(policy)};
    extender = (struct extender){.store = store_new(&options)};
    record_begin(extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    for (int i = 0; i < NODES; i++)
        add_node(i, 20 + 4 * i, 4, "");
    expect_pods(30, "13");
    expect_pods(30, "7");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    record_end(extender.store);
    g_clear_pointer(&extender.store, store_free);
}

static char *ask(const char *units)
{
    g_autoptr(GString) body = g_string_new(NULL);
    GString *reply = g_string_new(NULL);

    g_string_printf(body,
                    "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},"
                    "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
                    "\":\"%s\"}}}]}},\"NodeNames\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\"]}",
                    units);
    extender_filter(&extender, body->str, body->len, reply);
    g_string_truncate(reply, 0);
    ck_assert(extender_prioritize(&extender, PRIORITIZE_ALL, body->str, body->len, reply, NULL));
    return g_string_free(reply, FALSE);
}

/* How many models the store has gone by. */
static uint64_t models(void)
{
    return demand_version(extender.store->demand);
}

START_TEST(policies_that_expect_nothing_never_pay)
{
    begin("binpack");
    g_free(ask("7"));
    store_refresh_outlook(extender.store);
    ck_assert_uint_eq(models(), 0);
    add_node(1, 30, 4, "oc"); /* its own */
    g_free(ask("7"));
    ck_assert_uint_eq(models(), 1);
    add_node(1, 30, 4, "");
    add_node(2, 30, 4, "");
    g_free(ask("7"));
    ck_assert_uint_eq(models(), 1);
}
END_TEST

START_TEST(no_call_makes_a_model_once_the_thread_does)
{
    begin("oc");
    g_free(ask("7"));
    ck_assert_uint_eq(models(), 1);
    store_refresh_outlook(extender.store);
    ck_assert_uint_eq(models(), 2);
    for (int i = 0; i < 32; i++) { /* as many kinds of cards */
        add_node(i % NODES, 40 + i, 1 + i % 8, "");
        expect_pods(3, "9");
        g_free(ask("7"));
    }
    ck_assert_uint_eq(models(), 2);
    store_refresh_outlook(extender.store);
    ck_assert_uint_eq(models(), 3);
    store_refresh_outlook(extender.store); /* nothing has changed */
    ck_assert_uint_eq(models(), 3);
}
END_TEST

static void change(int round)
{
    for (int i = 0; i < NODES; i++)
        add_node(i, 8 + 5 * ((i + round) % 4), 1 + (i + round) % 3, "");
    expect_pods(20, round % 2 ? "8" : "17");
}

/* The model is of what was known where it was begun, and counts from where it was swapped in. */
START_TEST(a_replay_goes_over_at_the_same_place)
{
    begin("oc");
    g_free(ask("7"));
    store_refresh_outlook(extender.store);
    change(1);
    g_free(ask("7"));
    ck_assert(store_begin_outlook(extender.store, false));
    change(2);
    g_free(ask("7"));
    store_make_outlook(extender.store);
    g_free(ask("8"));
    store_swap_outlook(extender.store);
    g_free(ask("7"));
    ck_assert_ptr_nonnull(strstr(lines->str, "\"kind\":\"outlook-begun\""));
    ck_assert_ptr_nonnull(strstr(lines->str, "\"kind\":\"outlook\""));
    expect_played(&options, 10, 0);
}
END_TEST

/* Where a file begins no call makes a model either: the thread that writes the file does. */
START_TEST(a_file_that_begins_makes_its_own)
{
    begin("oc");
    g_free(ask("7"));
    store_refresh_outlook(extender.store);
    change(1);
    store_tell_known(extender.store);
    ck_assert_ptr_nonnull(demand_value_model(extender.store->demand));
    const uint64_t before = models();
    g_free(ask("7"));
    change(2);
    g_free(ask("7"));
    ck_assert_uint_eq(models(), before);
    store_refresh_outlook(extender.store);
    g_free(ask("7"));
    ck_assert_ptr_nonnull(strstr(lines->str, "\"withoutModel\":true"));
    expect_played(&options, 8, 0);
}
END_TEST

/* A model that is being made is of no use then. Decisions go without one until the next is there. */
START_TEST(a_file_that_begins_meanwhile_begins_anew)
{
    begin("oc");
    g_free(ask("7"));
    store_refresh_outlook(extender.store);
    change(1);
    g_autofree char *with = ask("7");
    ck_assert(store_begin_outlook(extender.store, false));
    store_tell_known(extender.store);
    const uint64_t before = models();
    store_make_outlook(extender.store);
    store_swap_outlook(extender.store);
    ck_assert_uint_eq(models(), before);
    g_autofree char *without = ask("7");
    ck_assert_str_ne(with, without);
    ck_assert_uint_eq(models(), before);
    change(2);
    store_refresh_outlook(extender.store);
    ck_assert_uint_eq(models(), before + 1);
    g_free(ask("7"));
    expect_played(&options, 8, 0);
}
END_TEST

/* So did versions before. */
START_TEST(a_file_that_does_not_say_so_has_the_next_call_make_it)
{
    begin("oc");
    g_free(ask("7"));
    store_refresh_outlook(extender.store);
    change(1);
    store_drop_outlook(extender.store); /* no thread makes models */
    store_tell_known(extender.store);
    const uint64_t before = models();
    g_free(ask("7"));
    ck_assert_uint_eq(models(), before + 1);
    ck_assert_ptr_null(strstr(lines->str, "withoutModel"));
    expect_played(&options, 4, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recorded outlook");
    TCase *models_made = tcase_create("models");

    tcase_add_checked_fixture(models_made, NULL, teardown);
    tcase_add_test(models_made, policies_that_expect_nothing_never_pay);
    tcase_add_test(models_made, no_call_makes_a_model_once_the_thread_does);
    tcase_add_test(models_made, a_replay_goes_over_at_the_same_place);
    tcase_add_test(models_made, a_file_that_begins_makes_its_own);
    tcase_add_test(models_made, a_file_that_begins_meanwhile_begins_anew);
    tcase_add_test(models_made, a_file_that_does_not_say_so_has_the_next_call_make_it);
    suite_add_tcase(suite, models_made);
    return suite_run(suite);
}
