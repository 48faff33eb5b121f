/* SPDX-License-Identifier: Apache-2.0 */
/* What pods say of the card that they accept. */
#include "nvidia_words.h"
#include "suite.h"

static const struct mixed_node {
    const char *capacity, *labels;
    bool fits; /* "driver >= 535, compute >= 8.0, not shared" */
} mixed_nodes[] = {
    {GPUS "=8", FACTS("NVIDIA-A100-SXM4-40GB", "40960", "8", "0", "535"), true},
    {GPUS "=8", FACTS("NVIDIA-A100-SXM4-80GB", "81920", "8", "0", "550"), true},
    {GPUS "=8", FACTS("NVIDIA-A100-SXM4-80GB", "81920", "8", "0", "525"), false},
    {GPUS "=8", FACTS("NVIDIA-H100-80GB-HBM3", "81559", "9", "0", "570"), true},
    {GPUS "=1", FACTS("Tesla-T4", "15360", "7", "5", "535"), false},
    {GPUS "=1", FACTS("Tesla-V100", "16384", "7", "0", "550"), false},
    {GPUS "=2", FACTS("NVIDIA-L4", "23034", "8", "9", "535"), true},
    {GPUS "=4", FACTS("NVIDIA-L4-SHARED", "23034", "8", "9", "535"), false},
    {"nvidia.com/gpu.shared=4", FACTS("NVIDIA-L4", "23034", "8", "9", "535"), false},
    {GPUS "=4", FACTS("NVIDIA-L4", "23034", "8", "9", "535") "nvidia.com/gpu.replicas=2", false},
    {GPUS "=4", FACTS("NVIDIA-L4", "23034", "8", "9", "535") "nvidia.com/gpu.count=2", false},
    {GPUS "=4",
     FACTS("NVIDIA-L4", "23034", "8", "9", "535") "nvidia.com/gpu.sharing-strategy=time-slicing",
     false},
    {GPUS "=4", FACTS("NVIDIA-L4", "23034", "8", "9", "535") "nvidia.com/gpu.sharing-strategy=none",
     true},
    {GPUS "=7", FACTS("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "4864", "8", "0", "535"), true},
    {GPUS "=1",
     "nvidia.com/gpu.replicas=1 nvidia.com/gpu.compute.major=8 "
     "nvidia.com/cuda.driver.major=535",
     true},
    {GPUS "=1", "nvidia.com/gpu.compute.major=8", false},
    {GPUS "=1", "nvidia.com/cuda.driver-version.major=570", false},
    {GPUS "=1", FACTS("X", "1", "eight", "0", "535"), false},
    {GPUS "=1", FACTS("X", "1", "10", "3", "580"), true},
    {GPUS "=1", NULL, false},
};

START_TEST(conditions_pick_exactly_the_right_nodes)
{
    const struct mixed_node *mixed = &mixed_nodes[_i];
    static const char wish[] = "gpuledger.io/gpu-driver-min=535 gpuledger.io/gpu-compute-min=8.0 "
                               "gpuledger.io/gpu-unshared=true";
    const char *devices = strstr(mixed->capacity, ".shared") ? "nvidia.com/gpu.shared=1"
                                                             : GPUS "=1";
    NODE("n", mixed->capacity, .labels = mixed->labels);
    ck_assert_reason(ASK("n", devices), REASON_NONE);
    ck_assert_reason(ASK("n", devices, .annotations = wish),
                     mixed->fits ? REASON_NONE : REASON_TERMS);
}
END_TEST

/* A version is a prefix: this driver, or a later one. */
START_TEST(a_driver_is_as_late_as_its_version)
{
    static const struct {
        const char *wish;
        bool fits;
    } cases[] = {
        {"535", true},        {"535.104", true},     {"535.104.05", true}, {"535.86.10", true},
        {"470.999.99", true}, {"535.104.06", false}, {"535.129", false},   {"536", false},
        {"550.54.15", false},
    };

    NODE("n", GPUS "=1",
         .labels = "nvidia.com/cuda.driver-version.major=535 nvidia.com/cuda.driver-version.minor=104 "
                   "nvidia.com/cuda.driver-version.revision=05");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *wish = g_strconcat("gpuledger.io/gpu-driver-min=", cases[i].wish, NULL);
        ck_assert_reason(ASK("n", GPUS "=1", .annotations = wish),
                         cases[i].fits ? REASON_NONE : REASON_TERMS);
    }
}
END_TEST

START_TEST(models_and_memory)
{
    NODE("n", GPUS "=4", .labels = FACTS("NVIDIA-A100-SXM4-40GB", "40960", "8", "0", "535"));
    static const struct {
        const char *annotations;
        enum reason reason;
    } cases[] = {
        {"gpuledger.io/gpu-models=A100", REASON_NONE},
        {"gpuledger.io/gpu-models=h100,a100-sxm4", REASON_NONE},
        {"gpuledger.io/gpu-models=T4", REASON_TERMS},
        {"gpuledger.io/gpu-models-not=A100", REASON_TERMS},
        {"gpuledger.io/gpu-models-not=T4,MIG", REASON_NONE},
        {"gpuledger.io/gpu-memory-min=40Gi", REASON_NONE},
        {"gpuledger.io/gpu-memory-min=41Gi", REASON_CARD_TOO_SMALL},
        {"gpuledger.io/isolation=hardware", REASON_NONE},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_reason(ASK("n", GPUS "=1", .annotations = cases[i].annotations),
                         cases[i].reason);
    NODE("dumb", GPUS "=4");
    ck_assert_reason(ASK("dumb", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=1Gi"),
                     REASON_TERMS);
}
END_TEST

static const struct {
    const char *annotation, *fix;
} bad_conditions[] = {
    {"gpuledger.io/gpu-memory-min=10GB", "'10Gi'"},
    {"gpuledger.io/gpu-memory-min=8", "'10Gi'"},
    {"gpuledger.io/gpu-memory-min=-1Gi", "'10Gi'"},
    {"gpuledger.io/gpu-memory-min=", "'10Gi'"},
    {"gpuledger.io/gpu-memory-min=17Ti", "'10Gi'"},
    {"gpuledger.io/gpu-models=", "'T4,A10'"},
    {"gpuledger.io/gpu-models=T4,,A10", "'T4,A10'"},
    {"gpuledger.io/gpu-models-not=,", "'T4,A10'"},
    {"gpuledger.io/gpu-compute-min=8,0", "'8.0'"},
    {"gpuledger.io/gpu-compute-min=8.", "'8.0'"},
    {"gpuledger.io/gpu-compute-min=sm_80", "'8.0'"},
    {"gpuledger.io/gpu-compute-min=8.0.1", "'8.0'"},
    {"gpuledger.io/gpu-driver-min=535.x", "'535'"},
    {"gpuledger.io/gpu-driver-min=", "'535'"},
    {"gpuledger.io/gpu-unshared=yes", "'true' or 'false'"},
    {"gpuledger.io/isolation=strong", "'hardware'"},
    {"gpuledger.io/policy=tidy", "'binpack'"},
};

START_TEST(a_malformed_condition_is_named)
{
    struct pod_words words = {GPUS "=1", .annotations = bad_conditions[_i].annotation};
    struct pod_view view = pod_view("p", &words);
    g_autofree char *key = g_strndup(words.annotations, strcspn(words.annotations, "="));
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_msg(strstr(error->message, key) && strstr(error->message, bad_conditions[_i].fix),
                  "%s", error->message);
    /* It does not keep a bound pod from being counted. */
    g_autoptr(allocation) bound = dialect_read_allocation(&view, &options, &warning);
    ck_assert_ptr_nonnull(bound);
}
END_TEST

START_TEST(conditions_become_terms)
{
    g_autoptr(request) request = REQUEST(
        GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=8G gpuledger.io/gpu-models=T4,A10 "
                                  "gpuledger.io/gpu-models-not=MIG gpuledger.io/gpu-compute-min=7 "
                                  "gpuledger.io/gpu-driver-min=470 gpuledger.io/gpu-unshared=false "
                                  "gpuledger.io/isolation=kernel");
    const struct terms *terms = request->terms;

    ck_assert_int_eq(terms->memory_min, INT64_C(8000000000));
    ck_assert_uint_eq(g_strv_length(terms->models), 2);
    ck_assert_str_eq(terms->models[1], "A10");
    ck_assert_str_eq(terms->models_not[0], "MIG");
    ck_assert_int_eq(terms->compute_min, 700);
    ck_assert_int_eq(terms->driver_min, DRIVER_VERSION(470, 0, 0));
    ck_assert(!terms->unshared);
    ck_assert_int_eq(terms->isolation_min, ISOLATION_KERNEL);
    g_autoptr(request) plain = REQUEST(GPUS "=1");
    ck_assert_ptr_null(plain->terms);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nvidia_conditions");
    TCase *tcase = tcase_create("nvidia");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, conditions_pick_exactly_the_right_nodes, 0,
                        G_N_ELEMENTS(mixed_nodes));
    tcase_add_test(tcase, a_driver_is_as_late_as_its_version);
    tcase_add_test(tcase, models_and_memory);
    tcase_add_loop_test(tcase, a_malformed_condition_is_named, 0, G_N_ELEMENTS(bad_conditions));
    tcase_add_test(tcase, conditions_become_terms);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
