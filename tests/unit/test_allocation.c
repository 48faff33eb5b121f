/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that several dialects read: what of that counts on which node. */
#include "core/ledger.h"
#include "desk.h"
#include "suite.h"

#define GPU "nvidia.com/gpu"
#define MEM "nvidia.com/gpumem"
#define HALLOCATED "hami.io/vgpu-devices-allocated"
#define ALI "aliyun.com/gpu-mem"
#define VOLCANO "volcano.sh/gpu-memory"
#define CARDS "GPU-a,10,10000,100,NVIDIA-T4,0,true,0,hami-core:GPU-b,10,10000,100,NVIDIA-T4,0,true,1,hami-core:"

static struct node *add_hami_node(void)
{
    return desk_node(&(struct node_view){
        .name = "n1",
        .annotations = PAIRS({"hami.io/node-nvidia-register", CARDS}),
        .allocatable = PAIRS({GPU, "20"})});
}

static struct node *add_nvidia_node(void)
{
    return desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({GPU, "8"})});
}

#define PUT(annotations_, ...)                                                                     \
    ledger_put(book, "n1",                                                                         \
               dialect_read_allocation(&(struct pod_view){.ns = "ml", .name = "p", .uid = "p",     \
                                                          .node_name = "n1",                       \
                                                          .phase = "Running", .started = true,     \
                                                          .annotations = annotations_,             \
                                                          CONTAINERS(__VA_ARGS__)},                \
                                       &options, NULL))
#define NOTHING ((struct string_pairs){0})
#define MARKED PAIRS({HALLOCATED, "GPU-a,NVIDIA,3000,0:;"}, {"hami.io/vgpu-node", "n1"})
#define ONE {.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "3000"})}

START_TEST(the_node_decides)
{
    struct node *node = add_hami_node();
    const struct allocation *held = PUT(MARKED, ONE);

    ck_assert_str_eq(held->dialect->name, "hami");
    ck_assert_uint_eq(held->n_shares, 1);
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
    node = add_nvidia_node(); /* the same pod, on what the node has become */
    ck_assert_str_eq(held->dialect->name, "nvidia");
    ck_assert_int_eq(node_pool(node, GPU)->used, 1);
    ck_assert_int_eq(held->distrust, DISTRUST_NONE);
    node = add_hami_node();
    ck_assert_str_eq(held->dialect->name, "hami");
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
}
END_TEST

/* Before it is on a node, the words that say the most are told of it. */
START_TEST(distrust_is_told_before_there_is_a_node)
{
    g_autofree char *warning = NULL;
    g_autoptr(allocation) read = dialect_read_allocation(
        &(struct pod_view){.ns = "ml", .name = "p", .uid = "p", .node_name = "n1",
                           .annotations = PAIRS({HALLOCATED, "x"}), CONTAINERS(ONE)},
        &options, &warning);

    ck_assert_uint_gt(allocation_own(read)->n_readings, 1);
    ck_assert_str_eq(read->dialect->name, "hami");
    ck_assert_int_eq(read->distrust, DISTRUST_MALFORMED);
    ck_assert(read->waiting);
}
END_TEST

/* HAMi's annotation hides no pod of NVIDIA's. */
START_TEST(an_annotation_takes_no_device_from_the_pool)
{
    static const char *const keys[] = {"hami.io/vgpu-node", "4pd.io/vgpu-node", HALLOCATED,
                                       "scheduling.koordinator.sh/device-allocated",
                                       "run.ai/reserve_for_gpu_index"};
    struct node *node = add_nvidia_node();

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        PUT(PAIRS({keys[i], "n1"}), {.name = "c", .limits = PAIRS({GPU, "3"})});
        ck_assert_msg(node_pool(node, GPU)->used == 3, "%s", keys[i]);
        ck_assert_int_eq(node->n_waiting, 0);
    }
}
END_TEST

START_TEST(words_of_several_dialects_all_count)
{
    struct node *node = desk_node(&(struct node_view){
        .name = "n1",
        .capacity = PAIRS({ALI, "40"}, {"aliyun.com/gpu-count", "2"}, {VOLCANO, "40960"},
                          {"volcano.sh/gpu-number", "2"}, {GPU, "2"})});
    const struct allocation *held =
        PUT(PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}, {"volcano.sh/gpu-index", "0"}),
            {.name = "c", .limits = PAIRS({ALI, "1"}, {VOLCANO, "16000"}, {GPU, "1"})});

    ck_assert_uint_eq(held->n_shares, 3);
    ck_assert_int_eq(node->cards[0].memory_used, GIB + 16000 * MIB);
    ck_assert_int_eq(node_pool(node, GPU)->used, 1);
}
END_TEST

/* Nobody can say which of two that the node serves has placed it. */
START_TEST(of_alternatives_that_the_node_serves_all_count)
{
    struct node *node = desk_node(&(struct node_view){
        .name = "n1",
        .annotations = PAIRS({"hami.io/node-nvidia-register", CARDS},
                             {"4pd.io/node-nvidia-register", "GPU-a,10,10000,100,NVIDIA-T4,0,true:"
                                                             "GPU-b,10,10000,100,NVIDIA-T4,0,true:"}),
        .allocatable = PAIRS({GPU, "20"})});

    PUT(PAIRS({HALLOCATED, "GPU-a,NVIDIA,3000,0:;"}, {"4pd.io/vgpu-ids-new", "GPU-b,NVIDIA,3000,0:;"}),
        ONE);
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
    ck_assert_int_eq(node->cards[1].memory_used, 3000 * MIB);
}
END_TEST

/* gpushare's plugin gives an unmarked pod its only card; one of several it does not give. */
START_TEST(an_unmarked_pod_is_on_the_only_card)
{
    for (int i = 0; i < 4; i++) {
        struct node *node = desk_node(&(struct node_view){
            .name = "n1",
            .capacity = PAIRS({ALI, "40"}, {"aliyun.com/gpu-count", i % 2 ? "2" : "1"})});
        options.unplaced_everywhere = i >= 2;
        PUT(NOTHING, {.name = "c", .limits = PAIRS({ALI, "7"})});
        ck_assert_int_eq(node->cards[0].memory_used, i % 2 ? 0 : 7 * GIB);
        ck_assert_int_eq(node->unplaced_memory, i == 3 ? 7 * GIB : 0);
        ck_assert_int_eq(ledger_get(book, "p")->distrust, DISTRUST_UNMARKED);
    }
}
END_TEST

START_TEST(more_shares_than_one_pod_may_have_are_not_joined)
{
    struct allocation *first = allocation_new("p", "ml", "p", ALLOCATION_SHARES_MAX - 1);
    struct allocation *other = allocation_new("p", "ml", "p", 1);
    struct allocation *third = allocation_new("p", "ml", "p", 1);

    first->dialect = dialects[0];
    other->dialect = dialects[1];
    third->dialect = dialects[2];
    first = allocation_join(first, other);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(allocation_own(first)->n_readings, 2);
    ck_assert_ptr_eq(allocation_share_dialect(first, &first->shares[ALLOCATION_SHARES_MAX - 1]),
                     dialects[1]);
    ck_assert_ptr_null(allocation_join(first, third));
}
END_TEST

START_TEST(a_copy_is_the_same)
{
    add_hami_node();
    const struct allocation *held = PUT(MARKED, ONE);
    g_autoptr(allocation) copy = allocation_dup(held);
    uint32_t n, n_copy;

    copy->node = held->node;
    ck_assert(allocation_equal(copy, held));
    allocation_known(held, &n);
    ck_assert_ptr_nonnull(allocation_known(copy, &n_copy));
    ck_assert_uint_eq(n, n_copy);
    ck_assert_uint_gt(n, held->n_shares);
    allocation_own(copy)->known[0].devices++;
    ck_assert(!allocation_equal(copy, held));
}
END_TEST

/* --- what cannot be read --------------------------------------------------------------------- */

/* All cards and all devices, whatever else it asks for and is marked with. */
START_TEST(an_unreadable_amount_holds_everything)
{
    static const struct string_pair limits[] = {
        {GPU, "1e30"}, {MEM, "1e30"}, {ALI, "x"}, {"tencent.com/vcuda-core", "-1"},
        {"volcano.sh/gpu-memory", "1.5"}, {"koordinator.sh/gpu-core", "?"},
        {"nvidia.com/mig-1g.5gb", ""}, {"tke.cloud.tencent.com/qgpu-core", "x"}};

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        struct node *node = desk_node(&(struct node_view){
            .name = "n1",
            .capacity = PAIRS({ALI, "40"}, {"aliyun.com/gpu-count", "2"}, {GPU, "2"})});
        const struct allocation *held =
            PUT(PAIRS({HALLOCATED, "GPU-a,NVIDIA,1,0:;"}, {"4pd.io/vgpu-ids-new", "GPU-b,NVIDIA,1,0:;"}),
                {.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "1"})},
                {.name = "d", .limits = PAIRS(limits[i])});
        ck_assert_int_eq(held->distrust, DISTRUST_UNREAD);
        ck_assert_msg(node->unplaced_exclusive == 1, "%s", limits[i].key);
        /* kubelet gives devices of the plugin only to who names them */
        ck_assert_msg(node_pool(node, GPU)->used ==
                          (g_str_has_prefix(limits[i].key, "nvidia.com/mig") || i == 0 ? 2 : 1),
                      "%s", limits[i].key);
    }
}
END_TEST

START_TEST(only_devices_that_a_pod_names_count_beside_what_cannot_be_read)
{
    const struct string_pairs limits[] = {
        PAIRS({MEM, "8Ei"}), PAIRS({"nvidia.com/gpucores", "?"}, {"nvidia.com/mig-2g.20gb", "3"}),
        PAIRS({"nvidia.com/mig-2g.20gb", "8Ei"}), PAIRS({MEM, "8Ei"}, {"nvidia.com/mig-2g.20gb", "8Ei"})};
    static const int used[][2] = {{0, 0}, {0, 3}, {16, 4}, {16, 4}};

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        struct node *node = desk_node(&(struct node_view){
            .name = "n1", .capacity = PAIRS({GPU, "16"}, {"nvidia.com/mig-2g.20gb", "4"})});
        const struct allocation *held =
            PUT(PAIRS({"k", "v"}), {.name = "c", .limits = limits[i]});
        ck_assert_int_eq(held->distrust, DISTRUST_UNREAD);
        ck_assert_int_eq(node->unplaced_exclusive, 1);
        ck_assert_int_eq(node_pool(node, GPU)->used, used[i][0]);
        ck_assert_int_eq(node_pool(node, "nvidia.com/mig-2g.20gb")->used, used[i][1]);
    }
}
END_TEST

START_TEST(containers_that_are_not_read_may_hold_everything)
{
    struct node *node = add_nvidia_node();
    const struct container_view container = {.name = "c", .limits = PAIRS({"cpu", "1"})};
    const struct pod_view view = {.ns = "ml", .name = "p", .uid = "p", .node_name = "n1",
                                  .containers = &container, .n_containers = 1, .truncated = true};
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
    ck_assert_ptr_nonnull(strstr(warning, "containers"));
    ck_assert_int_eq(node_pool(node, GPU)->used, 8);
    ck_assert_int_eq(ledger_get(book, "p")->distrust, DISTRUST_UNREAD);
    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert_ptr_nonnull(error);
}
END_TEST

START_TEST(a_gpushare_pod_beyond_what_is_served_counts)
{
    struct node *node = desk_node(&(struct node_view){
        .name = "n1", .capacity = PAIRS({ALI, "32"}, {"aliyun.com/gpu-count", "2"})});
    const struct allocation *held =
        PUT(PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
            {.name = "c", .limits = PAIRS({ALI, "16"}, {"aliyun.com/gpu-core.percentage", "101"})});

    ck_assert_int_eq(held->distrust, DISTRUST_UNREAD);
    ck_assert_int_eq(node->cards[0].memory_used, 16 * GIB);
    ck_assert_int_eq(node->cards[0].core_used, 1000);
    ck_assert_int_eq(node->cards[1].holders, 0);
}
END_TEST

/* --- many ------------------------------------------------------------------------------------ */

START_TEST(many_containers_count)
{
    static const struct string_pair limit = {GPU, "1"};
    static const size_t numbers[] = {64, 65, 128, 129, 300, 32768};
    g_autofree struct container_view *containers = g_new0(struct container_view, 32768);
    struct node *node = add_nvidia_node();

    for (size_t i = 0; i < 32768; i++)
        containers[i] = (struct container_view){.name = "c", .limits = {&limit, 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const struct pod_view view = {.ns = "ml", .name = "p", .uid = "p", .node_name = "n1",
                                      .containers = containers, .n_containers = numbers[i]};
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
        ck_assert_int_eq(node_pool(node, GPU)->used, numbers[i]);
    }
}
END_TEST

/* More kinds of devices than are told apart, and as many amounts of nothing as an object can have. */
START_TEST(many_resources_end_in_time)
{
    const size_t n = 40000;
    g_autofree struct string_pair *pairs = g_new0(struct string_pair, n);
    g_autoptr(GStringChunk) names = g_string_chunk_new(1 << 16);
    struct node *node = add_nvidia_node();

    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < n; k++) {
            g_autofree char *name = g_strdup_printf("nvidia.com/mig-%zu", k);
            pairs[k] = (struct string_pair){g_string_chunk_insert(names, name), i ? "1" : "0"};
        }
        const struct container_view container = {
            .name = "c", .limits = {pairs, n}, .requests = {pairs, n}};
        const struct pod_view view = {.ns = "ml", .name = "p", .uid = "p", .node_name = "n1",
                                      .containers = &container, .n_containers = 1};
        struct allocation *read = dialect_read_allocation(&view, &options, NULL);
        ck_assert_int_eq(read != NULL, i);
        if (read)
            ledger_put(book, "n1", read);
        ck_assert_int_eq(node_pool(node, GPU)->used, i ? 8 : 0);
    }
}
END_TEST

/* 0 asks for nothing, of any resource that any row of the table reads: neither alone nor beside others. */
START_TEST(zero_is_nothing_asked)
{
    static const char *const zeros[] = {"0", "0Ki", "0e3", "00"};

    for (size_t i = 0; dialects[i]; i++) {
        for (const char *const *resource = dialects[i]->resources; *resource; resource++) {
            for (size_t k = 0; k < 3 * G_N_ELEMENTS(zeros); k++) {
                g_autofree char *wild = g_strdelimit(g_strdup(*resource), "*", 'x');
                const char *star = strchr(*resource, '*');
                const char *name = !star ? *resource
                                   : g_str_has_prefix(*resource, "koordinator")
                                       ? "koordinator.sh/gpu"
                                   : g_str_has_prefix(*resource, "gpu.intel") ? "gpu.intel.com/i915"
                                                                              : wild;
                const struct string_pair zero = {name, zeros[k / 3]};
                const struct string_pair all[] = {{ALI, "4"}, zero};
                const bool alone = k % 3 < 2 || g_str_equal(name, ALI);
                const struct string_pairs said = {alone ? &zero : all, alone ? 1 : 2};
                const struct container_view container = {
                    .name = "c",
                    .limits = k % 3 == 1 ? (struct string_pairs){0} : said,
                    .requests = k % 3 == 0 ? (struct string_pairs){0} : said};
                const struct pod_view view = {.ns = "ml",
                                              .name = "p",
                                              .uid = "p",
                                              .containers = &container,
                                              .n_containers = 1};
                g_autoptr(GError) error = NULL;
                g_autoptr(request) request = dialect_read_request(&view, &options, &error);
                ck_assert_msg(!error, "%s '%s': %s", name, zero.value, error ? error->message : "");
                ck_assert_msg(!request == alone, "%s '%s'", name, zero.value);
                ck_assert(!request || !request->alternative);
                g_autoptr(allocation) held = dialect_read_allocation(&view, &options, NULL);
                ck_assert_msg(!held == alone, "%s '%s'", name, zero.value);
            }
        }
    }
}
END_TEST

/* A pod that names amounts of HAMi's as 0 is served by whichever plugin has its cards. */
START_TEST(zeros_choose_no_dialect)
{
    const struct pod_view plain = {.ns = "ml",
                                   .name = "p",
                                   .uid = "p",
                                   CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"})})};
    const struct pod_view named = {
        .ns = "ml",
        .name = "p",
        .uid = "p",
        CONTAINERS({.name = "c",
                    .limits = PAIRS({GPU, "1"}, {MEM, "0"}, {"nvidia.com/gpucores", "0"},
                                    {"nvidia.com/gpumem-percentage", "0"})})};
    g_autoptr(request) request = dialect_read_request(&plain, &options, NULL);
    g_autoptr(request) other = dialect_read_request(&named, &options, NULL);
    const struct request *a = request, *b = other;

    for (; a && b; a = a->alternative, b = b->alternative)
        ck_assert_str_eq(a->dialect->name, b->dialect->name);
    ck_assert(request && !a && !b);
    struct allocation *held = dialect_read_allocation(&named, &options, NULL);
    ck_assert(held && held->dialect == dialect_find("nvidia"));
    allocation_free(held);
}
END_TEST

/* The largest amounts there are, of every resource, in several hundred containers. */
START_TEST(large_amounts_do_not_wrap)
{
    static const char *const resources[] = {
        GPU, ALI, "aliyun.com/gpu-core.percentage", VOLCANO, "volcano.sh/gpu-number",
        "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "tencent.com/vcuda-core",
        "tencent.com/vcuda-memory", "elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory",
        "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio",
        "tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory", MEM,
        "nvidia.com/gpucores", "gpu.intel.com/i915", "gpu.intel.com/xe", "gpu.intel.com/memory.max"};
    struct string_pair limits[G_N_ELEMENTS(resources)];
    struct container_view containers[300];

    for (size_t i = 0; i < G_N_ELEMENTS(resources); i++)
        limits[i] = (struct string_pair){resources[i], "9223372036854775807"};
    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++)
        containers[i] = (struct container_view){
            .name = "c", .init = i % 3 == 1, .sidecar = i % 6 == 1,
            .limits = {limits, G_N_ELEMENTS(limits)}};
    for (size_t i = 0; i <= G_N_ELEMENTS(resources); i++) {
        const bool all = i == G_N_ELEMENTS(resources);
        struct node *node = desk_node(&(struct node_view){
            .name = "n1",
            .capacity = PAIRS({ALI, "40"}, {"aliyun.com/gpu-count", "2"}, {GPU, "2"})});
        struct pod_view view = {.ns = "ml", .name = "p", .uid = "p", .node_name = "n1",
                                .containers = containers, .n_containers = all ? 300 : 2};
        if (!all) {
            containers[0].limits = (struct string_pairs){&limits[i], 1};
            containers[1].limits = (struct string_pairs){&limits[i], 1};
        } else {
            containers[0].limits = containers[1].limits = containers[2].limits;
        }
        struct allocation *read = dialect_read_allocation(&view, &options, NULL);
        if (!read)
            continue;
        ledger_put(book, "n1", read);
        for (int32_t k = 0; k < 2; k++)
            ck_assert_int_ge(node->cards[k].memory_used, 0);
        ck_assert_int_ge(node->unplaced_memory, 0);
        ck_assert_int_ge(node->unplaced_core, 0);
        ck_assert(!all || node->unplaced_exclusive > 0);
        ledger_drop(book, "p");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("allocation");
    TCase *tests = tcase_create("allocation");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_node_decides);
    tcase_add_test(tests, distrust_is_told_before_there_is_a_node);
    tcase_add_test(tests, an_annotation_takes_no_device_from_the_pool);
    tcase_add_test(tests, words_of_several_dialects_all_count);
    tcase_add_test(tests, of_alternatives_that_the_node_serves_all_count);
    tcase_add_test(tests, an_unmarked_pod_is_on_the_only_card);
    tcase_add_test(tests, more_shares_than_one_pod_may_have_are_not_joined);
    tcase_add_test(tests, a_copy_is_the_same);
    tcase_add_test(tests, an_unreadable_amount_holds_everything);
    tcase_add_test(tests, containers_that_are_not_read_may_hold_everything);
    tcase_add_test(tests, only_devices_that_a_pod_names_count_beside_what_cannot_be_read);
    tcase_add_test(tests, a_gpushare_pod_beyond_what_is_served_counts);
    tcase_add_test(tests, many_containers_count);
    tcase_add_test(tests, many_resources_end_in_time);
    tcase_add_test(tests, zero_is_nothing_asked);
    tcase_add_test(tests, zeros_choose_no_dialect);
    tcase_add_test(tests, large_amounts_do_not_wrap);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
