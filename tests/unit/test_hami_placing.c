/* SPDX-License-Identifier: Apache-2.0 */
/* Which card a pod gets of HAMi and its relatives, and who gets none. */
#include "hami_desk.h"
#include "suite.h"

START_TEST(each_container_gets_different_cards)
{
    struct placement placement;

    ck_assert_int_eq(place(&POD(WITH({GPU, "2"}, {MEM, "100"})), &placement), REASON_NONE);
    ck_assert_int_ne(placement.shares[0].card, placement.shares[1].card);
    ck_assert_int_eq(place(&POD(WITH({GPU, "3"}, {MEM, "100"})), NULL), REASON_CARD_COUNT);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "20001"})), NULL), REASON_CARD_TOO_SMALL);
    ck_assert_int_eq(place(&POD(WITH({GPU, "2"}, {MEM, "10001"})), NULL) != REASON_NONE, true);
    ck_assert_int_eq(place(&POD(WITH({GPU, "2"})), NULL), REASON_NONE);
}
END_TEST

/* kubelet gives the devices of init containers to the app containers. */
START_TEST(app_containers_have_the_cards_of_their_init_containers)
{
    const struct {
        uint32_t n;
        struct container_view containers[3];
        const char *cards; /* by container, or what is in the way */
    } cases[] = {
        /* 8,000 of 10,000 are taken of card 0, so that only card 1 has room for the app. */
        {2, {WITH({GPU, "1"}, {MEM, "14000"}), INIT({GPU, "1"}, {MEM, "1000"})}, "1 1 "},
        {2, {WITH({GPU, "1"}, {MEM, "1000"}), INIT({GPU, "1"}, {MEM, "14000"})}, "1 1 "},
        {2, {WITH({GPU, "1"}, {MEM, "1000"}), INIT({GPU, "2"}, {MEM, "2000"})}, "0 0 1 "},
        {2, {WITH({GPU, "2"}, {MEM, "1000"}), INIT({GPU, "1"}, {MEM, "2001"})}, "0 1 1 "},
        {3,
         {WITH({GPU, "1"}, {MEM, "14000"}), WITH({GPU, "1"}, {MEM, "1500"}),
          INIT({GPU, "1"}, {MEM, "100"})},
         "1 0 1 "},
        {3,
         {WITH({GPU, "1"}, {MEM, "100"}), WITH({GPU, "1"}, {MEM, "14000"}),
          INIT({GPU, "2"}, {MEM, "100"})},
         "0 1 0 1 "},
        {2,
         {WITH({GPU, "1"}, {MEM, "100"}, {CORES, "60"}), INIT({GPU, "1"}, {MEM, "14000"})},
         "refused"},
    };
    const struct pod_view view = {.ns = "ml",
                                  .name = "p",
                                  .uid = "p",
                                  .containers = cases[_i].containers,
                                  .n_containers = cases[_i].n};
    struct placement placement;
    g_autoptr(GString) cards = g_string_new(NULL);

    hold("u", "GPU-a,NVIDIA,8000,0:;", "success");
    if (_i == 6)
        hold("v", "GPU-b,NVIDIA,100,50:;", "success");
    if (place(&view, &placement) != REASON_NONE)
        g_string_assign(cards, "refused");
    for (uint32_t i = 0; i < placement.n_shares && !g_str_equal(cards->str, "refused"); i++)
        g_string_append_printf(cards, "%d ", placement.shares[i].card);
    ck_assert_str_eq(cards->str, cases[_i].cards);
}
END_TEST

START_TEST(slots_and_cores_are_kept)
{
    char uid[8];
    for (int i = 0; i < 20; i++) {
        g_snprintf(uid, sizeof uid, "u%d", i);
        hold(uid, i < 10 ? "GPU-a,NVIDIA,10,5:;" : "GPU-b,NVIDIA,10,10:;", "success");
    }
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NO_SLOT);
    ledger_drop(book, "u19");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NONE);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "11"})), NULL) != REASON_NONE,
                     true);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "10"})), NULL), REASON_NONE);
}
END_TEST

START_TEST(all_cores_are_a_card_of_ones_own)
{
    struct placement placement;

    hold("u1", "GPU-a,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "100"})), &placement),
                     REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    hold("u2", "GPU-b,NVIDIA,10,100:;", "success");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    hold("u3", "GPU-a,NVIDIA,10,60:;", "success");
    hold("u4", "GPU-a,NVIDIA,10,40:;", "success");
    ck_assert_int_ne(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NONE);
}
END_TEST

#define FREE(word, ...) {.name = "c", .hook = word, .limits = PAIRS(__VA_ARGS__)}

/* Whom nothing holds to a part may take all of a card. */
START_TEST(who_switches_limits_off_is_alone)
{
    const struct pod_view off = POD(FREE(HOOK_OFF, {GPU, "1"}, {MEM, "10"}));
    const struct pod_view named = POD(FREE(HOOK_NAMED, {GPU, "1"}, {MEM, "10"}));
    const struct pod_view sidecar =
        POD(WITH({GPU, "1"}, {MEM, "10"}), {.name = "d", .hook = HOOK_OFF});
    struct placement placement;

    hold("u1", "GPU-a,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&off, &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[0].memory.value, 20000 * MIB);
    hold("u2", "GPU-b,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&off, NULL), REASON_UNLIMITED);
    ck_assert_int_eq(place(&named, NULL), REASON_NONE);   /* HAMi looks at the value */
    ck_assert_int_eq(place(&sidecar, NULL), REASON_NONE); /* it has no card */
}
END_TEST

/* Whoever has bound it. */
START_TEST(who_runs_without_limits_holds_the_card)
{
    struct pod_view view = POD(FREE(HOOK_OFF, {GPU, "1"}, {MEM, "10"}));

    view.node_name = "n1";
    view.annotations = PAIRS({ALLOCATED, "GPU-b,NVIDIA,10,0:;"}, {"hami.io/bind-phase", "success"});
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
    ck_assert_int_eq(node->cards[1].memory_used, 20000 * MIB);
    ck_assert_int_eq(node->cards[0].memory_used, 0);
}
END_TEST

/* By how the node side keeps it apart, which is not at all. */
START_TEST(who_switches_limits_off_demands_no_isolation)
{
    struct pod_view view = POD(FREE(HOOK_OFF, {GPU, "1"}, {MEM, "10"}));

    view.annotations = PAIRS({"gpuledger.io/isolation", "hook"});
    ck_assert_int_eq(place(&view, NULL), REASON_ISOLATION);
    view.annotations = PAIRS({"gpuledger.io/isolation", "none"});
    ck_assert_int_eq(place(&view, NULL), REASON_NONE);
}
END_TEST

START_TEST(conditions_are_kept)
{
    static const struct {
        struct string_pair annotation;
        const char *count;
        int32_t card; /* -1: refused */
    } cases[] = {
        {{"nvidia.com/use-gputype", "a30"}, "1", 1},
        {{"nvidia.com/nouse-gputype", "T4,V100"}, "1", 1},
        {{"nvidia.com/use-gpuuuid", "GPU-b"}, "1", 1},
        {{"nvidia.com/nouse-gpuuuid", "GPU-a"}, "1", 1},
        {{"nvidia.com/use-gputype", "H100"}, "1", -1},
        {{"nvidia.com/use-gputype", "A30"}, "2", -1},
        {{"nvidia.com/vgpu-mode", "hami-core"}, "1", 0},
        {{"nvidia.com/vgpu-mode", "mps"}, "1", -1},
        {{"nvidia.com/numa-bind", "true"}, "1", 0},
        {{"nvidia.com/numa-bind", "true"}, "2", -1},
        {{"nvidia.com/numa-bind", "t"}, "2", -1},
        {{"nvidia.com/numa-bind", "T"}, "2", -1},
        {{"hami.io/gpu-scheduler-policy", "spread"}, "1", 1},
        {{"hami.io/gpu-scheduler-policy", "binpack"}, "1", 0},
        {{"hami.io/gpu-scheduler-policy", "mutex"}, "1", 0},
    };
    struct placement placement;
    struct pod_view view = POD(WITH({GPU, cases[_i].count}, {MEM, "10"}));

    view.annotations = PAIRS(cases[_i].annotation);
    const enum reason reason = place(&view, &placement);
    ck_assert_int_eq(reason == REASON_NONE, cases[_i].card >= 0);
    if (reason == REASON_NONE)
        ck_assert_int_eq(placement.shares[0].card, cases[_i].card);
}
END_TEST

START_TEST(mutex_means_an_idle_card)
{
    struct placement placement;
    struct pod_view view = POD(WITH({GPU, "1"}, {MEM, "10"}));

    view.annotations = PAIRS({"hami.io/gpu-scheduler-policy", "mutex"});
    hold("u1", "GPU-a,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&view, &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    hold("u2", "GPU-b,NVIDIA,10,0:;", "success");
    ck_assert_int_ne(place(&view, NULL), REASON_NONE);
}
END_TEST

/* Cards 0 and 2 are on one NUMA node, 1 and 3 on the other; the emptiest are 0 and 1. */
START_TEST(numa_is_a_wish)
{
    static const struct {
        const char *key, *policy, *count;
        int32_t cards[3]; /* -1 in the first: refused */
    } cases[] = {
        {"hami.io/gpu-scheduler-policy", "spread", "2", {0, 1}},
        {"hami.io/gpu-scheduler-policy", "numa,spread", "2", {0, 2}},
        {"hami.io/gpu-scheduler-policy", "spread,numa", "3", {0, 1, 2}},
        {"nvidia.com/numa-bind", "true", "3", {-1}},
    };
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology("hami", REGISTERED,
                            "GPU-a,10,9000,100,T4,0,true,0,hami-core:"
                            "GPU-b,10,8000,100,T4,1,true,1,hami-core:"
                            "GPU-c,10,7000,100,T4,0,true,2,hami-core:"
                            "GPU-d,10,6000,100,T4,1,true,3,hami-core:",
                            "40", "", topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct pod_view view = POD(WITH({GPU, cases[i].count}, {MEM, "10"}));
        struct placement placement;
        view.annotations = PAIRS({cases[i].key, cases[i].policy});
        const enum reason reason = place(&view, &placement);
        ck_assert_msg((reason == REASON_NONE) == (cases[i].cards[0] >= 0), "case %zu", i);
        for (uint32_t j = 0; reason == REASON_NONE && j < placement.n_shares; j++)
            ck_assert_msg(placement.shares[j].card == cases[i].cards[j], "case %zu", i);
    }
}
END_TEST

START_TEST(one_pod_at_a_time_waits_for_the_plugin)
{
    struct pod_view view = POD(WITH({GPU, "1"}, {MEM, "10"}));
    g_autoptr(request) request = dialect_read_request(&view, &options, NULL);
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    enum reason reason;

    hold("u1", "GPU-b,NVIDIA,500,0:;", "allocating");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_WAIT);
    ck_assert_int_eq(dialect_why_wait(node, request), REASON_AWAITING_TURN);
    hold("u1", "GPU-b,NVIDIA,500,0:;", "success");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_YES);
    hold("u1", "GPU-b,NVIDIA,500,0:;", "failed");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_YES);
}
END_TEST

START_TEST(what_a_plugin_cannot_serve_is_refused)
{
    static const struct {
        const char *dialect, *key, *text;
    } nodes[] = {
        {"4paradigm", "4pd.io/node-nvidia-register", A7},
        {"volcano-vgpu", "volcano.sh/node-vgpu-register", "GPU-a,10,15360,T4,true,hami-core:"},
    };
    const bool volcano = _i == 1;
    const char *count = volcano ? VGPU : GPU;
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology(nodes[_i].dialect, nodes[_i].key, nodes[_i].text, "10", "", topology,
                            NULL));
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(place(&POD(WITH({count, "1"})), NULL), REASON_NONE);
    ck_assert_int_eq(place(&POD(WITH({count, "1"}), WITH({count, "1"})), NULL),
                     REASON_SEVERAL_GPU_CONTAINERS);
    ck_assert_int_eq(place(&POD(WITH({count, "1"}), INIT({count, "1"})), NULL),
                     REASON_GPU_INIT_CONTAINER);
}
END_TEST

START_TEST(mig_cards_are_refused_by_name)
{
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology("hami", REGISTERED, "GPU-a,7,40960,100,A100,0,true,0,mig:", "7", "",
                            topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"})), NULL), REASON_MIG_MODE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hami_placing");
    TCase *placing = tcase_create("placing");

    tcase_add_checked_fixture(placing, setup, teardown);
    tcase_add_test(placing, each_container_gets_different_cards);
    tcase_add_loop_test(placing, app_containers_have_the_cards_of_their_init_containers, 0, 7);
    tcase_add_test(placing, slots_and_cores_are_kept);
    tcase_add_test(placing, all_cores_are_a_card_of_ones_own);
    tcase_add_test(placing, who_switches_limits_off_is_alone);
    tcase_add_test(placing, who_runs_without_limits_holds_the_card);
    tcase_add_test(placing, who_switches_limits_off_demands_no_isolation);
    tcase_add_loop_test(placing, conditions_are_kept, 0, 13);
    tcase_add_test(placing, mutex_means_an_idle_card);
    tcase_add_test(placing, numa_is_a_wish);
    tcase_add_test(placing, one_pod_at_a_time_waits_for_the_plugin);
    tcase_add_loop_test(placing, what_a_plugin_cannot_serve_is_refused, 0, 2);
    tcase_add_test(placing, mig_cards_are_refused_by_name);
    suite_add_tcase(suite, placing);
    return suite_run(suite);
}
