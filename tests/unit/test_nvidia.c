/* SPDX-License-Identifier: Apache-2.0 */
/* Whole cards, MIG instances and the guests of vGPU. */
#include "nvidia_words.h"
#include "suite.h"

/* --- whole cards ---------------------------------------------------------------------------- */

START_TEST(whole_cards_are_counted)
{
    NODE("n", GPUS "=4", .labels = "nvidia.com/gpu.product=GeForce-RTX-2080-Ti "
                                   "nvidia.com/gpu.memory=11264 nvidia.com/gpu.count=4 "
                                   "nvidia.com/gpu.replicas=1");
    ck_assert_ptr_null(warning);
    ck_assert_reason(ASK("n", GPUS "=5"), REASON_CARD_COUNT);
    PUT("n", "a", GPUS "=3");
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_INSUFFICIENT_DEVICES);
    ck_assert_reason(ASK("n", GPUS "=1", GPUS "=1"), REASON_INSUFFICIENT_DEVICES);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 1);
    ck_assert_int_eq(pool_of("n", GPUS)->used, 4);
    ledger_drop(book, "a");
    ck_assert_reason(ASK("n", GPUS "=3"), REASON_NONE);
}
END_TEST

START_TEST(kubernetes_own_bindings_count)
{
    NODE("n", GPUS "=2");
    put("n", "a", false, &(struct pod_words){GPUS "=2"});
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_INSUFFICIENT_DEVICES);
    put("n", "b", false, &(struct pod_words){GPUS "=2"}); /* whoever did that */
    ck_assert_int_eq(pool_of("n", GPUS)->used, 4);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_INSUFFICIENT_DEVICES);
}
END_TEST

START_TEST(init_containers_hand_their_devices_on)
{
    NODE("n", GPUS "=2");
    ck_assert_reason(ASK("n", GPUS "=1", GPUS "=1", GPUS "=2"), REASON_NONE);
    PUT("n", "a", GPUS "=1", .init = GPUS "=2");
    ck_assert_int_eq(pool_of("n", GPUS)->used, 2);
    ledger_drop(book, "a");
    ck_assert_int_eq(pool_of("n", GPUS)->used, 0);
    PUT("n", "b", GPUS "=2", .init = GPUS "=1");
    ck_assert_int_eq(pool_of("n", GPUS)->used, 2);
    ck_assert_reason(ASK("n", NULL, .init = GPUS "=3"), REASON_CARD_COUNT);
}
END_TEST

START_TEST(sick_devices_are_not_given)
{
    NODE("n", GPUS "=8", GPUS "=7");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 7);
    NODE("n", GPUS "=8", GPUS "=0");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_CARD_COUNT);
}
END_TEST

START_TEST(other_plugins_nodes_and_pods_are_left_alone)
{
    static const struct node_words nodes[] = {
        {GPUS "=10", .annotations = "4pd.io/node-nvidia-register=x"},
        {GPUS "=10", .annotations = "hami.io/node-nvidia-register=x"},
        {GPUS "=0"},
        {"nvidia.com/vgpu-number=4"},
        {"nvidia.com/mig-=4"},
    };
    static const struct pod_words pods[] = {
        {GPUS "=1 nvidia.com/gpumem=1000"},
        {GPUS "=1 nvidia.com/gpucores=30"},
        {GPUS "=1", .second = "nvidia.com/gpumem-percentage=50"},
        {"nvidia.com/gpus=1"},
        {GPUS "=0"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autoptr(topology) topology = topology_new();
        struct node_view view = {.name = "n",
                                 .annotations = pairs(nodes[i].annotations),
                                 .capacity = pairs(nodes[i].capacity)};
        ck_assert_msg(!nvidia->read_topology(&view, &options, topology, &warning, NULL), "%zu", i);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        struct pod_view view = pod_view("p", &pods[i]);
        ck_assert_msg(!nvidia->read_request(&view, &options, NULL), "%zu", i);
        /* kubelet hands out by the name alone, whoever bound the pod */
        g_autoptr(allocation) held = nvidia->read_allocation(&view, &options, &warning);
        ck_assert_msg((held != NULL) == (i < 3), "%zu", i);
    }
}
END_TEST

START_TEST(absurd_numbers_are_errors)
{
    static const struct pod_words pods[] = {{GPUS "=262145"}, {GPUS "=1500m"}, {GPUS "=x"}};
    static const char *const capacities[] = {GPUS "=262145", GPUS "=1500m", GPUS "=-1"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        struct pod_view view = pod_view("p", &pods[i]);
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(nvidia->read_request(&view, &options, &error));
        ck_assert_msg(error && strstr(error->message, "container 'c': " GPUS ": "), "%zu", i);
        NODE("n", GPUS "=8");
        ledger_put(book, "n", dialect_read_allocation(&view, &options, &warning));
        ck_assert_int_ge(pool_of("n", GPUS)->used, 8);
        ck_assert_reason(ASK("n", GPUS "=1"), REASON_INSUFFICIENT_DEVICES);
        ck_assert_msg(i == 0 || warning, "%zu", i);
        g_clear_pointer(&warning, g_free);
        ledger_drop(book, "p");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(capacities); i++) {
        g_autoptr(topology) topology = topology_new();
        g_autoptr(GError) error = NULL;
        struct node_view view = {.name = "n", .capacity = pairs(capacities[i])};
        ck_assert(!nvidia->read_topology(&view, &options, topology, &warning, &error));
        ck_assert_msg(error && strstr(error->message, "node 'n': "), "%zu", i);
    }
}
END_TEST

/* --- MIG ------------------------------------------------------------------------------------ */

START_TEST(mig_single)
{
    NODE("n", GPUS "=7",
         .labels = "nvidia.com/mig.strategy=single nvidia.com/gpu.count=7 "
                   "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb "
                   "nvidia.com/gpu.memory=4864 nvidia.com/gpu.replicas=1");
    ck_assert_ptr_null(warning);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=8Gi"),
                     REASON_CARD_TOO_SMALL);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models=mig-1g.5gb "
                                                        "gpuledger.io/gpu-unshared=true "
                                                        "gpuledger.io/isolation=hardware"),
                     REASON_NONE);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 7);
}
END_TEST

#define MIG_2G "nvidia.com/mig-2g.10gb"

START_TEST(mig_mixed)
{
    NODE("n", GPUS "=1 " MIG_2G "=1 nvidia.com/mig-1g.5gb.me=2 nvidia.com/mig-3g.20gb=0",
         .labels = FACTS("NVIDIA-A100-SXM4-40GB", "40960", "8", "0", "535")
             "nvidia.com/mig.strategy=mixed nvidia.com/gpu.count=1 " MIG_2G ".count=1 " MIG_2G
             ".memory=9856 " MIG_2G ".product=NVIDIA-A100-SXM4-40GB-MIG-2g.10gb");
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(pool_of("n", MIG_2G)->memory, 9856 * MIB);
    ck_assert_int_eq(pool_of("n", "nvidia.com/mig-1g.5gb.me")->memory, INT64_C(4750000000));
    ck_assert_int_eq(pool_of("n", GPUS)->memory, 40 * GIB);
    ck_assert_reason(ASK("n", "nvidia.com/mig-3g.20gb=1"), REASON_TERMS);
    PUT("n", "job1", GPUS "=1");
    ck_assert_reason(ASK("n", MIG_2G "=1"), REASON_NONE);
    PUT("n", "job2", MIG_2G "=1");
    ck_assert_reason(ASK("n", MIG_2G "=1"), REASON_INSUFFICIENT_DEVICES);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_INSUFFICIENT_DEVICES);
    ck_assert_reason(ASK("n", "nvidia.com/mig-1g.5gb.me=1", "nvidia.com/mig-1g.5gb.me=1"),
                     REASON_NONE);
    /* Who knows of cards alone cannot serve a pod of both. */
    ledger_drop(book, "job1");
    ledger_drop(book, "job2");
    ck_assert_reason(ASK("n", GPUS "=1 " MIG_2G "=1"), REASON_NONE);
    /* Names outlive the words they were read from. */
    g_autoptr(request) request = REQUEST(MIG_2G "=1", MIG_2G "=1");
    ck_assert_str_eq(request->asks[0].device, MIG_2G);
    ck_assert_ptr_eq(request->asks[0].device, request->asks[1].device);
}
END_TEST

/* --- vGPU guests ---------------------------------------------------------------------------- */

static const struct {
    const char *label;
    int64_t mib; /* 0: not understood */
} memory_labels[] = {
    {"4GB", 4096}, {"4Gi", 4096}, {"4GiB", 4096}, {"4gb", 4096}, {"4096", 4096},
    {"4096MiB", 4096}, {"4096Mi", 4096}, {"4096MB", 4096},
    {"4G", 0}, {"4TB", 0}, {"", 0}, {"GB", 0}, {"0", 0}, {"-4GB", 0}, {"4.5GB", 0},
    {"17179869185", 0}, {"99999999999999999999GB", 0},
};

START_TEST(memory_by_a_label_of_ones_own)
{
    char label[] = "example.com/vgpu-memory";
    g_autofree char *labels =
        g_strdup_printf("%s=%s nvidia.com/vgpu.present=true nvidia.com/gpu.memory=1024", label,
                        memory_labels[_i].label);

    options.nvidia_memory_label = label;
    NODE("n", GPUS "=1", .labels = labels);
    int64_t expected = memory_labels[_i].mib ? memory_labels[_i].mib : 1024;
    ck_assert_int_eq(pool_of("n", GPUS)->memory, expected * MIB);
    ck_assert(memory_labels[_i].mib || strstr(warning, label));
}
END_TEST

START_TEST(five_guests)
{
    char label[] = "vgpu-memory";
    static const char small[] = "gpuledger.io/gpu-memory-min=3Gi",
                      large[] = "gpuledger.io/gpu-memory-min=8Gi";

    options.nvidia_memory_label = label;
    for (int i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("guest-%d", i);
        NODE(name, GPUS "=1", .labels = "vgpu-memory=4GB nvidia.com/vgpu.present=true");
        ck_assert_reason(ASK(name, GPUS "=1", .annotations = small), REASON_NONE);
        ck_assert_reason(ASK(name, GPUS "=1", .annotations = large), REASON_CARD_TOO_SMALL);
    }
    ck_assert(!reason_info(REASON_CARD_TOO_SMALL)->resolvable);
    NODE("big", GPUS "=1", .labels = "vgpu-memory=16GB nvidia.com/vgpu.present=true");
    ck_assert_reason(ASK("big", GPUS "=1", .annotations = large), REASON_NONE);
    PUT("big", "a", GPUS "=1");
    ck_assert_reason(ASK("big", GPUS "=1", .annotations = large), REASON_INSUFFICIENT_DEVICES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nvidia");
    TCase *tcase = tcase_create("nvidia");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, whole_cards_are_counted);
    tcase_add_test(tcase, kubernetes_own_bindings_count);
    tcase_add_test(tcase, init_containers_hand_their_devices_on);
    tcase_add_test(tcase, sick_devices_are_not_given);
    tcase_add_test(tcase, other_plugins_nodes_and_pods_are_left_alone);
    tcase_add_test(tcase, absurd_numbers_are_errors);
    tcase_add_test(tcase, mig_single);
    tcase_add_test(tcase, mig_mixed);
    tcase_add_loop_test(tcase, memory_by_a_label_of_ones_own, 0, G_N_ELEMENTS(memory_labels));
    tcase_add_test(tcase, five_guests);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
