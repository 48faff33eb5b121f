/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom filter has let pass, where, and for how long that is remembered.
 */
#include "queue/books/passes.h"
#include "suite.h"

#define NODES 4096

static struct passes *passes;
static struct node nodes[NODES];
static uint32_t all[NODES];

static void setup(void)
{
    passes = passes_new();
    for (int i = 0; i < NODES; i++)
        all[i] = passes_mark(&nodes[i]);
}

static void teardown(void)
{
    passes_free(passes);
}

static void note(const char *ns, int pod, size_t n, int64_t now_ms)
{
    g_autofree char *uid = g_strdup_printf("%s-%d", ns, pod);

    passes_note(passes, uid, ns, all, n, now_ms);
}

static bool has(const char *ns, int pod, int node, int64_t now_ms)
{
    g_autofree char *uid = g_strdup_printf("%s-%d", ns, pod);

    return passes_has(passes, uid, node < 0 ? NULL : &nodes[node], now_ms);
}

START_TEST(a_pod_has_passed_where_it_has)
{
    note("a", 1, 2, 1000);
    ck_assert(has("a", 1, 0, 1000));
    ck_assert(has("a", 1, 1, 1000));
    ck_assert(!has("a", 1, 2, 1000));
    ck_assert(has("a", 1, -1, 1000));
    ck_assert(!has("a", 2, 0, 1000));
    ck_assert(!has("a", 2, -1, 1000));
}
END_TEST

START_TEST(a_pod_without_gpu_passes_anywhere)
{
    note("a", 1, 0, 1000);
    ck_assert(has("a", 1, 77, 1000));
}
END_TEST

START_TEST(the_last_word_counts)
{
    note("a", 1, 2, 1000);
    note("a", 1, 1, 2000);
    ck_assert(!has("a", 1, 1, 2000));
    ck_assert(has("a", 1, 0, 1000 + PASSES_MS));
}
END_TEST

START_TEST(it_is_forgotten_in_time)
{
    note("a", 1, 1, 1000);
    ck_assert(has("a", 1, 0, 1000 + PASSES_MS - 1));
    ck_assert(!has("a", 1, 0, 1000 + PASSES_MS));
    ck_assert(!has("a", 1, -1, 1000 + PASSES_MS));
    passes_forget(passes, "a-1");
    passes_forget(passes, "a-1");
    ck_assert(!has("a", 1, 0, 1000));
}
END_TEST

START_TEST(who_has_most_loses_its_oldest)
{
    for (int i = 0; i < PASSES_PODS_MAX - 3; i++)
        note("flood", i, 1, 1000);
    for (int i = 0; i < 3; i++)
        note("quiet", i, 1, 1000);
    for (int i = 0; i < 2 * PASSES_PODS_MAX; i++)
        note("flood", PASSES_PODS_MAX + i, 1, 1000);
    for (int i = 0; i < 3; i++)
        ck_assert(has("quiet", i, 0, 1000));
    ck_assert(!has("flood", 0, 0, 1000));
    ck_assert(has("flood", 3 * PASSES_PODS_MAX - 1, 0, 1000));
}
END_TEST

/* The oldest of them all are in a namespace of one, each. */
START_TEST(what_has_ended_makes_room_first)
{
    for (int i = 0; i < PASSES_PODS_MAX / 2; i++) {
        g_autofree char *ns = g_strdup_printf("ns%d", i);
        note(ns, 0, 1, 1000);
    }
    for (int i = 0; i < PASSES_PODS_MAX / 2; i++)
        note("b", i, 1, 1000 + PASSES_MS);
    for (int i = 0; i < PASSES_PODS_MAX / 2; i++)
        note("b", PASSES_PODS_MAX + i, 1, 1000 + PASSES_MS);
    for (int i = 0; i < PASSES_PODS_MAX / 2; i++)
        ck_assert(has("b", i, 0, 1000 + PASSES_MS));
}
END_TEST

START_TEST(nodes_are_bounded_as_well)
{
    const int fit = PASSES_NODES_MAX / NODES;

    note("quiet", 0, NODES, 1000);
    for (int i = 0; i < 2 * fit; i++)
        note("flood", i, NODES, 1000);
    int n = 0;
    for (int i = 0; i < 2 * fit; i++)
        n += has("flood", i, 0, 1000);
    ck_assert_int_eq(n, fit - 1);
    ck_assert(has("flood", 2 * fit - 1, NODES - 1, 1000));
    ck_assert(has("quiet", 0, 0, 1000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("passes");
    TCase *tcase = tcase_create("passes");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_pod_has_passed_where_it_has);
    tcase_add_test(tcase, a_pod_without_gpu_passes_anywhere);
    tcase_add_test(tcase, the_last_word_counts);
    tcase_add_test(tcase, it_is_forgotten_in_time);
    tcase_add_test(tcase, who_has_most_loses_its_oldest);
    tcase_add_test(tcase, what_has_ended_makes_room_first);
    tcase_add_test(tcase, nodes_are_bounded_as_well);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
