/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"
#include "suite.h"

#include <gpuledger/ranking.h>

/* The node that the policy prefers for a pod that asks so. */
static const char *winner_of(const char *policy_name, struct card_ask ask)
{
    const struct policy *policy = policy_find(policy_name);
    const GPtrArray *nodes = ledger_nodes(book);
    g_autofree struct request *request = request_new(DIALECT, 1);
    struct rank ranks[8];
    size_t n = 0;

    request->asks[0] = ask;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = g_ptr_array_index(nodes, i);
        struct placement placement;
        if (placement_find(node, request, policy, NULL, CARD_UNKNOWN, &placement) == REASON_NONE)
            ranking_rate(policy, node, &placement, NULL, &ranks[n++]);
    }
    return n > 0 ? ranks[ranking_winner(policy, ranks, n)].name : NULL;
}

static const char *winner(const char *policy_name, int64_t units)
{
    return winner_of(policy_name,
                     (struct card_ask){.memory = {units, AMOUNT_NODE_UNITS}, .count = 1});
}

static void hold(const char *node, const char *uid, struct share share)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->shares[0] = share;
    ledger_put(book, node, allocation);
}

START_TEST(packs_and_spreads)
{
    set_equal_cards("a", 2, 16);
    set_equal_cards("b", 2, 16);
    set_equal_cards("c", 2, 16);
    hold("b", "u1", units_on(0, 4));
    hold("c", "u2", units_on(1, 8));

    ck_assert_str_eq(winner("binpack", 8), "c");
    ck_assert_str_eq(winner("binpack", 12), "b");
    ck_assert_str_eq(winner("binpack", 16), "c"); /* a free card of the fuller node */
    ck_assert_str_eq(winner("spread", 8), "a");
    ck_assert_str_eq(winner("first-fit", 8), "a");
    ck_assert_ptr_null(winner("binpack", 17));
}
END_TEST

static void set_pool(const char *name, int32_t compute, int64_t gib, int32_t capacity, int32_t used)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->compute = compute;
    topology->n_pools = 1;
    topology->pools[0] = (struct pool){
        .resource = topology_keep(topology, "x/gpu"), .capacity = capacity, .memory = gib * GIB};
    ledger_set_topology(book, name, topology);
    if (used > 0)
        hold(name, name, (struct share){.card = CARD_UNKNOWN, .devices = used, .device = "x/gpu"});
}

static const char *device_winner(const char *policy_name)
{
    return winner_of(policy_name, (struct card_ask){.count = 1, .device = "x/gpu"});
}

/* As vGPU guests and whole cards under NVIDIA's plugin are. */
START_TEST(gives_the_smallest_device_of_the_fullest_pool)
{
    set_pool("a", 750, 16, 4, 3);
    set_pool("b", 800, 4, 4, 0);
    set_pool("c", 700, 4, 4, 1);
    ck_assert_str_eq(device_winner("binpack"), "c");
    ck_assert_str_eq(device_winner("spread"), "b");
    ck_assert_str_eq(device_winner("strongest"), "b");
    hold("c", "rest", (struct share){.card = CARD_UNKNOWN, .devices = 3, .device = "x/gpu"});
    ck_assert_str_eq(device_winner("binpack"), "b");
    hold("b", "rest of b", (struct share){.card = CARD_UNKNOWN, .devices = 4, .device = "x/gpu"});
    ck_assert_str_eq(device_winner("binpack"), "a");
}
END_TEST

START_TEST(settles_ties_by_name)
{
    set_equal_cards("n2", 1, 16);
    set_equal_cards("n1", 1, 16);
    ck_assert_str_eq(winner("binpack", 8), "n1");
    ck_assert_str_eq(winner("spread", 8), "n1");
}
END_TEST

START_TEST(counts_near_losses_as_equal)
{
    const struct policy coarse = {.slack = 0.04};
    const struct rank ranks[] = {
        {.loss = 1.00, .ties = {2}, .name = "a"},
        {.loss = 1.03, .ties = {1}, .name = "b"},
        {.loss = 1.05, .ties = {0}, .name = "c"},
    };

    ck_assert_uint_eq(ranking_winner(&coarse, ranks, 3), 1);
    ck_assert_uint_eq(ranking_winner(&policies[0], ranks, 3), 0);
    ck_assert_uint_eq(ranking_winner(&coarse, ranks, 0), 0);
}
END_TEST

START_TEST(prefers_not_to_wait)
{
    const struct rank ranks[] = {
        {.loss = 0.5, .waits = true, .ties = {-1}, .name = "a"},
        {.loss = 1, .name = "b"},
        {.loss = 2, .name = "c"},
        {.loss = 0.4, .waits = true, .name = "d"},
    };
    const struct rank all_wait[] = {ranks[0], ranks[3]};
    int32_t scores[4];

    ck_assert_uint_eq(ranking_winner(&policies[0], ranks, 4), 1);
    ck_assert_uint_eq(ranking_winner(&policies[0], all_wait, 2), 1);
    ck_assert_int_lt(ranking_compare(&ranks[2], &ranks[0]), 0);
    ck_assert_int_gt(ranking_compare(&ranks[0], &ranks[2]), 0);
    ck_assert_int_lt(ranking_compare(&ranks[1], &ranks[2]), 0);
    ck_assert_int_gt(ranking_compare(&ranks[0], &ranks[3]), 0);
    ranking_scale(ranks, 4, scores);
    ck_assert_int_eq(scores[0], 0);
    ck_assert_int_eq(scores[1], RANKING_SCORE_MAX);
    ck_assert_int_eq(scores[2], 0);
    ck_assert_int_eq(scores[3], 0);
    ranking_scale(all_wait, 2, scores);
    ck_assert_int_eq(scores[0], 0);
    ck_assert_int_eq(scores[1], RANKING_SCORE_MAX);
}
END_TEST

START_TEST(scales_losses)
{
    const struct rank ranks[] = {{.loss = 3}, {.loss = 1}, {.loss = 2}};
    int32_t scores[3];

    ranking_scale(ranks, 3, scores);
    ck_assert_int_eq(scores[0], 0);
    ck_assert_int_eq(scores[1], RANKING_SCORE_MAX);
    ck_assert_int_eq(scores[2], 5);
    ranking_scale(ranks, 1, scores);
    ck_assert_int_eq(scores[0], RANKING_SCORE_MAX);
}
END_TEST

/* As for guests, whose vGPU is taken whole: none is lost, but a smaller one is enough. */
START_TEST(scales_ties_where_nothing_is_lost)
{
    const struct rank sizes[] = {{.ties = {4}}, {.ties = {16}}, {.ties = {8}}};
    const struct rank equal[] = {{.loss = 1, .ties = {0, 3}}, {.loss = 1}};
    int32_t scores[3];

    ranking_scale(sizes, 3, scores);
    ck_assert_int_eq(scores[0], RANKING_SCORE_MAX);
    ck_assert_int_eq(scores[1], 0);
    ck_assert_int_eq(scores[2], 7);
    ranking_scale(equal, 2, scores);
    ck_assert_int_eq(scores[0], RANKING_SCORE_MAX);
    ck_assert_int_eq(scores[1], RANKING_SCORE_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranking");
    TCase *tests = tcase_create("ranking");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, packs_and_spreads);
    tcase_add_test(tests, gives_the_smallest_device_of_the_fullest_pool);
    tcase_add_test(tests, settles_ties_by_name);
    tcase_add_test(tests, counts_near_losses_as_equal);
    tcase_add_test(tests, prefers_not_to_wait);
    tcase_add_test(tests, scales_losses);
    tcase_add_test(tests, scales_ties_where_nothing_is_lost);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
