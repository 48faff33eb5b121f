/* SPDX-License-Identifier: Apache-2.0 */
/* What gpu-manager, its nodes and pods say, and what is refused. */
#include "suite.h"
#include "tencent_words.h"

struct topology_case {
    const char *core, *memory, *sizes, *order;
    int64_t tencent_order;
    int32_t n_cards;   /* 0: not of this dialect; -1: an error */
    bool warns;
    int64_t bytes[3];
    int32_t ranks[3];
};

static const struct topology_case topology_cases[] = {
    {"200", "128", .n_cards = 2, .bytes = {64 * BLOCK, 64 * BLOCK}, .ranks = {0, 1}},
    {"300", "178", .n_cards = 3, .bytes = {59 * BLOCK, 59 * BLOCK, 59 * BLOCK}},
    {"250", "128", .n_cards = 2, .bytes = {64 * BLOCK, 64 * BLOCK}},
    {"0", "128"},
    {NULL, "128"},
    {"99", "128", .n_cards = -1},
    {"200", "1", .n_cards = -1},
    {"200", NULL, .n_cards = -1},
    {"200", "-5", .n_cards = -1},
    {"25700", "99999", .n_cards = -1},
    {"200", "100", "60, 40", .n_cards = 2, .bytes = {60 * BLOCK, 40 * BLOCK}},
    {"200", "100", "60,40,1", .n_cards = 2, .warns = true, .bytes = {50 * BLOCK, 50 * BLOCK}},
    {"200", "100", "60,many", .n_cards = 2, .warns = true, .bytes = {50 * BLOCK, 50 * BLOCK}},
    {"200", "120", "15361Mi,15363Mi", .n_cards = 2, .bytes = {60 * BLOCK, 60 * BLOCK}},
    {"200", "120", "15361Mi,15363Mi", NULL, TENCENT_ORDER_BYTES_NVML, 2, false,
     {15361 * MIB, 15363 * MIB}},
    {"200", "120", NULL, "1,0", TENCENT_ORDER_BLOCKS_NVML, 2, false,
     {60 * BLOCK, 60 * BLOCK}, {1, 0}},
    {"300", "180", NULL, "2,0,1", TENCENT_ORDER_BYTES_NVML, 3, false,
     {60 * BLOCK, 60 * BLOCK, 60 * BLOCK}, {1, 2, 0}},
    {"200", "120", NULL, "1,0", TENCENT_ORDER_BLOCKS_MINOR, 2, false,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
    {"200", "120", NULL, "1,1", TENCENT_ORDER_BLOCKS_NVML, 2, true,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
    {"200", "120", NULL, "2,0", TENCENT_ORDER_BLOCKS_NVML, 2, true,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
};

START_TEST(nodes_are_read)
{
    const struct topology_case *c = &topology_cases[_i];
    struct string_pair capacity[2], annotations[2];
    struct node_view view = {.name = "n1",
                             .capacity = {capacity, 0},
                             .annotations = {annotations, 0}};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    options.tencent_order = c->tencent_order;
    if (c->core)
        capacity[view.capacity.n++] = (struct string_pair){CORE, c->core};
    if (c->memory)
        capacity[view.capacity.n++] = (struct string_pair){MEM, c->memory};
    if (c->sizes)
        annotations[view.annotations.n++] = (struct string_pair){CARD_MEMORY, c->sizes};
    if (c->order)
        annotations[view.annotations.n++] = (struct string_pair){CARD_ORDER, c->order};

    bool claimed = dialect_read_topology(&view, &options, topology, &warning, &error);
    ck_assert_int_eq(claimed, c->n_cards > 0);
    ck_assert_int_eq(error != NULL, c->n_cards < 0);
    ck_assert_int_eq(warning != NULL, c->warns);
    if (!claimed)
        return;
    ck_assert_ptr_eq(topology->dialect, tencent);
    ck_assert_int_eq(topology->n_cards, c->n_cards);
    for (int32_t i = 0; i < c->n_cards; i++) {
        ck_assert_int_eq(topology->cards[i].memory, c->bytes[i]);
        if (c->ranks[0] != c->ranks[1])
            ck_assert_int_eq(topology->cards[i].rank, c->ranks[i]);
    }
}
END_TEST

/* --- pods ----------------------------------------------------------------------------------- */

struct request_case {
    struct container_view containers[4];
    enum reason reason; /* on a node of two cards; REASON_N: no request; REASON_NONE and no asks: an
                         * error */
    struct card_ask asks[2];
};

static const struct request_case request_cases[] = {
    {{WITH("40", "24")}, REASON_NONE, {{{24 * BLOCK, AMOUNT_BYTES}, 0, 1, 400}}},
    {{PLAIN, WITH("1", "1")}, REASON_NONE, {{{BLOCK, AMOUNT_BYTES}, 1, 1, 10}}},
    {{WITH("99", "1")}, REASON_NONE, {{{BLOCK, AMOUNT_BYTES}, 0, 1, 990}}},
    {{WITH("100", "64")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 1, 1000, true}}},
    {{WITH("100", "999")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 1, 1000, true}}},
    {{WITH("200", "0")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 2, 1000, true}}},
    {{WITH("10", "2"), WITH("20", "3")},
     REASON_NONE,
     {{{2 * BLOCK, AMOUNT_BYTES}, 0, 1, 100}, {{3 * BLOCK, AMOUNT_BYTES}, 1, 1, 200}}},
    {{WITH("10", "2"), WITH("100", "0")},
     REASON_NONE,
     {{{2 * BLOCK, AMOUNT_BYTES}, 0, 1, 100}, {{0, AMOUNT_BYTES}, 1, 1, 1000, true}}},
    {{PLAIN}, REASON_N},
    {{WITH("0", "0")}, REASON_N},
    {{INIT("0", "0")}, REASON_N},
    {{WITH("150", "4")}, REASON_CORE_STEP},
    {{WITH("101", "4")}, REASON_CORE_STEP},
    {{WITH("199", "4")}, REASON_CORE_STEP},
    {{WITH("250", "4")}, REASON_CORE_STEP},
    {{WITH("10", "4"), WITH("150", "4")}, REASON_CORE_STEP},
    {{WITH("50", "0")}, REASON_CORE_WITHOUT_MEMORY},
    {{WITH("50", "0"), WITH("50", "0")}, REASON_CORE_WITHOUT_MEMORY},
    {{WITH("0", "4")}, REASON_MEMORY_WITHOUT_CORE},
    {{WITH("10", "4"), WITH("0", "4")}, REASON_MEMORY_WITHOUT_CORE},
    {{PLAIN, INIT("10", "4")}, REASON_GPU_INIT_CONTAINER},
    {{WITH("10", "4"), INIT("0", "4")}, REASON_GPU_INIT_CONTAINER},
    {{WITH("100", "0"), WITH("10", "2")}, REASON_UNFORESEEN_CARD},
    {{WITH("-1", "2")}},
    {{WITH("1", "2.5")}},
    {{WITH("6500", "1")}},
    {{WITH("3300", "1"), WITH("3200", "1")}},
};

START_TEST(requests_are_read)
{
    const struct request_case *c = &request_cases[_i];
    struct pod_view pod = {.ns = "ml", .name = "a-0", .uid = "u1", .containers = c->containers};
    bool wanted = c->asks[0].count > 0 || c->reason != REASON_NONE;
    g_autoptr(GError) error = NULL;

    while (pod.n_containers < 4 && c->containers[pod.n_containers].name)
        pod.n_containers++;
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    ck_assert_int_eq(error != NULL, !wanted);
    ck_assert_int_eq(request != NULL, wanted && c->reason != REASON_N);
    if (!request)
        return;
    ck_assert_int_eq(tencent->refuse(add_node("200", "128", NULL, NULL), request, &options),
                     c->reason);
    ck_assert_int_eq(reason_info(c->reason)->resolvable, c->reason == REASON_NONE);
    for (uint32_t i = 0; c->reason == REASON_NONE && i < 2; i++) {
        const struct card_ask *ask = &request->asks[i], *as = &c->asks[i];
        ck_assert_int_eq(i < request->n_asks, as->count > 0);
        if (as->count == 0)
            continue;
        ck_assert_int_eq(ask->memory.value, as->memory.value);
        ck_assert_int_eq(ask->memory.kind, as->memory.kind);
        ck_assert_int_eq(ask->container, as->container);
        ck_assert_int_eq(ask->count, as->count);
        ck_assert_int_eq(ask->core, as->core);
        ck_assert_int_eq(ask->exclusive, as->exclusive);
    }
}
END_TEST

START_TEST(a_limit_of_core_must_be_a_number)
{
    static const struct {
        const char *text;
        enum reason reason;
    } cases[] = {{"80", REASON_NONE},       {"250", REASON_NONE},     {"", REASON_CORE_LIMIT},
                 {"half", REASON_CORE_LIMIT}, {"80%", REASON_CORE_LIMIT}, {"-1", REASON_CORE_LIMIT}};
    struct pod_view pod = POD(WITH("40", "24"));

    pod.annotations = PAIRS({CORE_LIMIT, cases[_i].text});
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    ck_assert_int_eq(tencent->refuse(add_node("200", "128", NULL, NULL), request, &options),
                     cases[_i].reason);
}
END_TEST

START_TEST(one_card_cannot_be_mistaken)
{
    struct pod_view pod = POD(WITH("100", "0"), WITH("10", "2"));
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);

    ck_assert_int_eq(tencent->refuse(add_node("100", "64", NULL, NULL), request, &options),
                     REASON_NONE);
}
END_TEST

struct reading {
    struct string_pair annotations[4];
    const char *phase;
    bool started;
    bool assigned, waiting;
    enum distrust distrust;
    int32_t cards[3];
};

/* Of a pod whose first container shares a card and whose third takes two. */
static const struct reading readings[] = {
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     "Pending", false, false, true, DISTRUST_NONE, {1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     NULL, false, false, true, DISTRUST_NONE, {1, 0, 2}},
    /* admitted; which whole cards it has is written down later */
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     "Pending", true, true, true, DISTRUST_NONE, {1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "2", "3,2"}, {TIME, "7"}, {ASSIGNED, "true"}},
     "Pending", true, true, false, DISTRUST_NONE, {1, 3, 2}},
    {{{IDX "0", "1"}, {IDX "2", "3,2"}, {TIME, "7"}, {ASSIGNED, "true"}},
     "Running", true, true, false, DISTRUST_NONE, {1, 3, 2}},
    {{{IDX "0", "1"}, {IDX "2", "0"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_MALFORMED, {1, -1, -1}},
    {{{IDX "0", "1"}, {IDX "2", "0,0"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_MALFORMED, {1, -1, -1}},
    {{{IDX "0", "0,1"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "-1"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "256"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "1", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DISTRUST_LOST, {1, -1, -1}},
    {{{TIME, "7"}}, "Running", true, true, false, DISTRUST_LOST, {-1, -1, -1}},
    {{{"a", "b"}}, "Running", true, true, false, DISTRUST_UNMARKED, {-1, -1, -1}},
    {{{"a", "b"}}, "Pending", false, false, true, DISTRUST_UNMARKED, {-1, -1, -1}},
};

START_TEST(what_a_bound_pod_holds)
{
    const struct reading *c = &readings[_i];
    struct pod_view pod = POD(WITH("40", "24"), PLAIN, WITH("200", "0"));
    g_autofree char *warning = NULL;

    pod.phase = c->phase;
    pod.started = c->started;
    pod.annotations = (struct string_pairs){c->annotations, 0};
    while (pod.annotations.n < 4 && c->annotations[pod.annotations.n].key)
        pod.annotations.n++;
    g_autoptr(allocation) allocation = dialect_read_allocation(&pod, &options, &warning);
    ck_assert_int_eq(allocation->assigned, c->assigned);
    ck_assert_int_eq(allocation->waiting, c->waiting);
    ck_assert_int_eq(allocation->distrust, c->distrust);
    ck_assert_int_eq(warning != NULL, c->distrust != DISTRUST_NONE);
    ck_assert_int_eq(allocation->n_shares, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(allocation->shares[i].card, c->cards[i]);
        ck_assert_int_eq(allocation->shares[i].container, i == 0 ? 0 : 2);
        ck_assert_int_eq(allocation->shares[i].exclusive, i > 0);
        ck_assert_int_eq(allocation->shares[i].core, i == 0 ? 400 : 1000);
    }
}
END_TEST

START_TEST(what_gpu_manager_does_not_serve_counts_all_the_same)
{
    const struct {
        struct pod_view pod;
        int32_t n, core;
        int64_t blocks;
        bool exclusive, init;
    } cases[] = {
        {POD(WITH("150", "4")), 2, 1000, 0, true, false},
        {POD(WITH("0", "4")), 1, 0, 4, false, false},
        {POD(WITH("40", "0")), 1, 400, 0, false, false},
        {POD(PLAIN, INIT("10", "4")), 1, 100, 4, false, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *warning = NULL;
        g_autoptr(allocation) held = dialect_read_allocation(&cases[i].pod, &options, &warning);
        ck_assert_msg(held && held->n_shares == (uint32_t)cases[i].n, "case %zu", i);
        ck_assert_int_eq(held->distrust, DISTRUST_UNMARKED);
        ck_assert_ptr_nonnull(warning);
        for (uint32_t j = 0; j < held->n_shares; j++) {
            const struct share *share = &held->shares[j];
            ck_assert_int_eq(share->card, CARD_UNKNOWN);
            ck_assert_int_eq(share->core, cases[i].core);
            ck_assert_int_eq(share->memory.value, cases[i].blocks * BLOCK);
            ck_assert_int_eq(share->exclusive, cases[i].exclusive);
            ck_assert_int_eq(share->init, cases[i].init);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tencent");
    TCase *tcase = tcase_create("tencent");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, nodes_are_read, 0, G_N_ELEMENTS(topology_cases));
    tcase_add_loop_test(tcase, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_loop_test(tcase, a_limit_of_core_must_be_a_number, 0, 6);
    tcase_add_test(tcase, one_card_cannot_be_mistaken);
    tcase_add_loop_test(tcase, what_a_bound_pod_holds, 0, G_N_ELEMENTS(readings));
    tcase_add_test(tcase, what_gpu_manager_does_not_serve_counts_all_the_same);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
