/* SPDX-License-Identifier: Apache-2.0 */
#include "literals.h"
#include "suite.h"

#include <gpuledger/dialect.h>
#include <gpuledger/error.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

static const struct dialect *nvidia;
static struct dialect_options options;
static struct ledger *book;
static char *warning;

static GPtrArray *kept, *kept_words; /* until the end of the test */

static void free_words(gpointer words)
{
    g_strfreev(words);
}

static void setup(void)
{
    kept = g_ptr_array_new_with_free_func(g_free);
    kept_words = g_ptr_array_new_with_free_func(free_words);
    nvidia = dialect_find("nvidia");
    options = (struct dialect_options){0};
    book = ledger_new();
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(book, &error), "%s", error ? error->message : "");
    ledger_free(book);
    g_clear_pointer(&warning, g_free);
    g_clear_pointer(&kept, g_ptr_array_unref);
    g_clear_pointer(&kept_words, g_ptr_array_unref);
}

/* --- words ---------------------------------------------------------------------------------- */

/* "key=value key=value" as pairs; NULL and "" are none. They live until the end of the test. */
static struct string_pairs pairs(const char *text)
{
    char **words = g_strsplit(text ? text : "", " ", -1);
    struct string_pair *items = g_new0(struct string_pair, g_strv_length(words) + 1);
    size_t n = 0;

    g_ptr_array_add(kept_words, words);
    g_ptr_array_add(kept, items);
    for (char **word = words; *word && **word; word++) {
        char *sign = strchr(*word, '=');
        *sign = '\0';
        items[n++] = (struct string_pair){*word, sign + 1};
    }
    return (struct string_pairs){items, n};
}

struct node_words {
    const char *capacity, *allocatable, *labels, *annotations;
};

static bool read_node(const char *name, const struct node_words *words, struct topology *topology)
{
    struct node_view view = {
        .name = name,
        .labels = pairs(words->labels),
        .annotations = pairs(words->annotations),
        .capacity = pairs(words->capacity),
        .allocatable = pairs(words->allocatable),
    };
    g_autoptr(GError) error = NULL;

    g_clear_pointer(&warning, g_free);
    bool claimed = dialect_read_topology(&view, &options, topology, &warning, &error);
    ck_assert_msg(!error, "%s", error ? error->message : "");
    return claimed;
}

static const struct node *set_node(const char *name, const struct node_words *words)
{
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_node(name, words, topology));
    return ledger_set_topology(book, name, topology);
}

#define NODE(name, ...) set_node(name, &(struct node_words){__VA_ARGS__})

/* One container's devices, "nvidia.com/gpu=1"; `init` those of a plain init container. */
struct pod_words {
    const char *devices, *second, *init, *annotations;
};

static struct pod_view pod_view(const char *name, const struct pod_words *words)
{
    struct container_view *containers = g_new0(struct container_view, 3);
    size_t n = 0;

    g_ptr_array_add(kept, containers);
    containers[n++] = (struct container_view){.name = "c", .limits = pairs(words->devices)};
    if (words->second)
        containers[n++] = (struct container_view){.name = "d", .limits = pairs(words->second)};
    if (words->init)
        containers[n++] =
            (struct container_view){.name = "i", .init = true, .limits = pairs(words->init)};
    return (struct pod_view){.ns = "ml",
                             .name = name,
                             .uid = name,
                             .phase = "Pending",
                             .annotations = pairs(words->annotations),
                             .containers = containers,
                             .n_containers = n};
}

static struct request *read_request(const struct pod_words *words)
{
    struct pod_view view = pod_view("p", words);
    g_autoptr(GError) error = NULL;
    struct request *request = dialect_read_request(&view, &options, &error);

    ck_assert_msg(!error, "%s", error ? error->message : "");
    return request;
}

#define REQUEST(...) read_request(&(struct pod_words){__VA_ARGS__})

static enum reason ask(const char *node, const struct pod_words *words)
{
    g_autoptr(request) request = read_request(words);
    struct admission_query query = {.request = request, .policy = policies, .options = &options};
    struct placement placement;
    enum reason reason, without;

    ck_assert_ptr_nonnull(request);
    enum admission admission =
        dialect_admit(ledger_node(book, node), &query, &placement, &reason);
    ck_assert_int_eq(dialect_admit(ledger_node(book, node), &query, NULL, &without), admission);
    ck_assert_int_eq(without, reason);
    ck_assert_int_eq(admission == ADMISSION_YES, reason == REASON_NONE);
    return reason;
}

#define ASK(node, ...) ask(node, &(struct pod_words){__VA_ARGS__})

/* The pod as the watch shows it after a Binding by us (`by_us`) or by kube-scheduler itself. */
static void put(const char *node, const char *name, bool by_us, const struct pod_words *words)
{
    struct pod_view view = pod_view(name, words);
    g_auto(annotations) annotations = {0};
    g_autoptr(allocation) planned = nvidia->read_allocation(&view, &options, &warning);

    ck_assert_ptr_nonnull(planned);
    nvidia->write_annotations(planned, ledger_node(book, node), &annotations);
    ck_assert_uint_le(annotations.n, 1);
    struct string_pair words_of_both[4];
    size_t n = 0;
    for (; n < view.annotations.n && n < 3; n++)
        words_of_both[n] = view.annotations.items[n];
    if (by_us && annotations.n > 0)
        words_of_both[n++] =
            (struct string_pair){annotations.items[0].key, annotations.items[0].value};
    view.annotations = (struct string_pairs){words_of_both, n};
    struct allocation *bound = dialect_read_allocation(&view, &options, &warning);
    ck_assert_ptr_eq(bound->dialect, nvidia);
    ck_assert_uint_eq(bound->doubt, DOUBT_NONE);
    ck_assert(!bound->waiting);
    bound->state = ALLOCATION_CONFIRMED;
    ledger_put(book, node, bound);
}

#define PUT(node, name, ...) put(node, name, true, &(struct pod_words){__VA_ARGS__})

/* Admits and binds pods of one device each until one is refused. */
static int fill(const char *node, const char *devices, enum reason expected)
{
    for (int n = 0;; n++) {
        g_autofree char *name = g_strdup_printf("fill-%d", n);
        enum reason reason = ASK(node, devices);
        if (reason != REASON_NONE) {
            ck_assert_str_eq(reason_info(reason)->code, reason_info(expected)->code);
            return n;
        }
        PUT(node, name, devices);
    }
}

static const struct pool *pool_of(const char *node, const char *resource)
{
    const struct pool *pool = node_pool(ledger_node(book, node), resource);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

#define ck_assert_reason(reason, expected)                                                         \
    ck_assert_str_eq(reason_info(reason)->code, reason_info(expected)->code)

#define GPUS "nvidia.com/gpu"
#define T4 "nvidia.com/gpu.product=Tesla-T4 nvidia.com/gpu.memory=15360 "

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
        {GPUS "=1", .annotations = "hami.io/vgpu-node=n"},
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
        ck_assert_msg(!nvidia->read_allocation(&view, &options, &warning), "%zu", i);
    }
}
END_TEST

START_TEST(absurd_numbers_are_errors)
{
    static const struct pod_words pods[] = {{GPUS "=65537"}, {GPUS "=1500m"}, {GPUS "=x"}};
    static const char *const capacities[] = {GPUS "=65537", GPUS "=1500m", GPUS "=-1"};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        struct pod_view view = pod_view("p", &pods[i]);
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(nvidia->read_request(&view, &options, &error));
        ck_assert_msg(error && strstr(error->message, "container 'c': " GPUS ": "), "%zu", i);
        ck_assert_ptr_null(nvidia->read_allocation(&view, &options, &warning));
        ck_assert_ptr_nonnull(warning);
        g_clear_pointer(&warning, g_free);
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

/* --- kinds of cards ------------------------------------------------------------------------- */

#define FACTS(product, memory, major, minor, driver)                                               \
    "nvidia.com/gpu.product=" product " nvidia.com/gpu.memory=" memory                             \
    " nvidia.com/gpu.compute.major=" major " nvidia.com/gpu.compute.minor=" minor                  \
    " nvidia.com/cuda.driver-version.major=" driver " "

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
    {GPUS "=1", "nvidia.com/gpu.compute.major=8 nvidia.com/cuda.driver.major=535", true},
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
    {"gpuledger.io/gpu-driver-min=535.104", "'535'"},
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
    ck_assert_int_eq(terms->driver_min, 470);
    ck_assert(!terms->unshared);
    ck_assert_int_eq(terms->isolation_min, ISOLATION_KERNEL);
    g_autoptr(request) plain = REQUEST(GPUS "=1");
    ck_assert_ptr_null(plain->terms);
}
END_TEST

/* --- shared cards --------------------------------------------------------------------------- */

START_TEST(replicas_of_one_card)
{
    NODE("n", GPUS "=2", .labels = "nvidia.com/gpu.product=Tesla-T4-SHARED "
                                   "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    ck_assert_ptr_null(warning);
    ck_assert_str_eq(pool_of("n", GPUS)->model, "Tesla-T4");
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=hook"),
                     REASON_ISOLATION);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 2);
}
END_TEST

START_TEST(forty_renamed_replicas)
{
    NODE("n", GPUS "=0 nvidia.com/gpu.shared=40",
         .labels = T4 "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=5");
    ck_assert_ptr_null(warning);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_TERMS);
    ck_assert_int_eq(fill("n", "nvidia.com/gpu.shared=1", REASON_INSUFFICIENT_DEVICES), 40);
}
END_TEST

START_TEST(more_than_one_replica_at_a_time)
{
    static const struct node_words words = {
        GPUS "=4", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"};

    set_node("n", &words);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_NONE);
    options.nvidia_fail_requests_greater_than_one = true;
    set_node("n", &words);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert(!reason_info(REASON_DEVICES_AT_ONCE)->resolvable);
    ck_assert_reason(ASK("n", GPUS "=1", .init = GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert_reason(ASK("n", GPUS "=1", GPUS "=1"), REASON_NONE);
    NODE("whole", GPUS "=4", .labels = T4 "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=1");
    ck_assert_reason(ASK("whole", GPUS "=2"), REASON_NONE);
}
END_TEST

#define WANTS "gpuledger.io/gpu-memory="
#define SLICED(n, cards, replicas)                                                                 \
    NODE("n", n, .labels = T4 "nvidia.com/gpu.count=" cards " nvidia.com/gpu.replicas=" replicas)

START_TEST(what_pods_want_of_a_card_is_kept_within_it)
{
    static const struct pod_words ten = {GPUS "=1", .annotations = WANTS "10Gi"};

    SLICED(GPUS "=2", "1", "2");
    put("n", "first", true, &ten);
    ck_assert_reason(ask("n", &ten), REASON_NONE); /* unless it is asked for */
    options.nvidia_memory_guard = true;
    ck_assert_reason(ask("n", &ten), REASON_SHARED_MEMORY);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "5Gi"), REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_SHARED_MEMORY); /* counts with 7.5 */
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "16Gi"), REASON_CARD_TOO_SMALL);
    ledger_drop(book, "first");
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 2);
}
END_TEST

/* kubelet may give those who want most to one card, and no more than its replicas. */
START_TEST(the_most_demanding_pods_may_meet)
{
    options.nvidia_memory_guard = true;
    SLICED(GPUS "=6", "2", "3");
    put("n", "a", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "7Gi"});
    put("n", "b", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    put("n", "c", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "5Gi"), REASON_SHARED_MEMORY);
    put("n", "d", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    put("n", "e", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "4Gi"), REASON_NONE);
    /* Two replicas are one pod's, and it wants what it says. */
    ledger_drop(book, "e");
    ck_assert_reason(ASK("n", GPUS "=2", .annotations = WANTS "4Gi"), REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_SHARED_MEMORY);
}
END_TEST

/* Whoever has a card alone, or a part that is kept apart, is not asked. */
START_TEST(only_time_slicing_is_guarded)
{
    options.nvidia_memory_guard = true;
    NODE("whole", GPUS "=2", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.memory=15360");
    NODE("mps", GPUS "=2", .labels = "nvidia.com/gpu.sharing-strategy=mps nvidia.com/gpu.count=1 "
                                     "nvidia.com/gpu.replicas=2 nvidia.com/gpu.memory=15360");
    NODE("dark", GPUS "=2", .labels = "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"whole", "mps", "dark"};
        put(names[i], names[i], true,
            &(struct pod_words){GPUS "=1", .annotations = WANTS "12Gi"});
        ck_assert_reason(ASK(names[i], GPUS "=1", .annotations = WANTS "12Gi"), REASON_NONE);
    }
}
END_TEST

#define MPS "nvidia.com/gpu.sharing-strategy=mps "

START_TEST(mps_divides_the_card)
{
    NODE("n", GPUS "=10", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=10 "
                                        "nvidia.com/gpu.memory=16384");
    ck_assert_int_eq(pool_of("n", GPUS)->memory, 16384 * MIB / 10);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=1Gi"),
                     REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=2Gi"),
                     REASON_CARD_TOO_SMALL);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=hook"),
                     REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=kernel"),
                     REASON_ISOLATION);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 10);
}
END_TEST

START_TEST(mps_serves_48_clients)
{
    NODE("n", GPUS "=64", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=64");
    ck_assert_ptr_nonnull(strstr(warning, "48"));
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 48);
}
END_TEST

START_TEST(cards_for_one_process_take_one_pod)
{
    static const char exclusive[] = "gpuledger.io/exclusive-cards=1";

    NODE("n", GPUS "=4", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2",
         .annotations = exclusive);
    ck_assert_ptr_nonnull(strstr(warning, "one holder"));
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 1);
    NODE("whole", GPUS "=2", .annotations = exclusive);
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(pool_of("whole", GPUS)->capacity, 2);
}
END_TEST

/* --- labels that contradict ----------------------------------------------------------------- */

START_TEST(capacity_outdoes_labels)
{
    NODE("n", GPUS "=7", .labels = "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 7);
    ck_assert_ptr_nonnull(strstr(warning, "promise 8 of nvidia.com/gpu, it has 7"));
    NODE("n", GPUS "=8", .labels = "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 8);
    ck_assert(pool_of("n", GPUS)->shared);
    ck_assert_ptr_nonnull(warning);
    NODE("n", GPUS "=8", .labels = "nvidia.com/gpu.count=x nvidia.com/gpu.replicas=-1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 8);
    ck_assert(!pool_of("n", GPUS)->shared);
}
END_TEST

#define CONFIG(name) "nvidia.com/device-plugin.config=" name " "

/* Between the flip of the label and the end of the change, in any order in which plugin and labels
 * follow, the node gives nothing. */
static const struct flip {
    const char *configuration, *capacity, *replicas;
    int32_t usable;
} flips[] = {
    {"whole", "8", "1", 8},  {"shared", "8", "1", 0},  {"shared", "32", "1", 0},
    {"shared", "8", "4", 0}, {"shared", "32", "4", 32}, {"whole", "32", "4", 0},
    {"whole", "8", "4", 0},  {"whole", "32", "1", 0},  {"whole", "7", "1", 7},
    {"shared", "28", "4", 28}, {"unheard-of", "8", "1", 8}, {"unheard-of", "32", "1", 0},
};

START_TEST(a_changing_configuration_gives_nothing)
{
    const struct flip *flip = &flips[_i];
    g_autofree char *capacity = g_strconcat(GPUS "=", flip->capacity, NULL);
    g_autofree char *labels = g_strdup_printf(
        "nvidia.com/device-plugin.config=%s nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=%s",
        flip->configuration, flip->replicas);
    char table[] = "whole=1, shared = 4,,x,y=z";

    options.nvidia_config_replicas = table;
    NODE("n", capacity, .labels = labels);
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, flip->usable);
    ck_assert(flip->usable > 0 || strstr(warning, flip->configuration));
    ck_assert_reason(ASK("n", GPUS "=1"), flip->usable ? REASON_NONE : REASON_CARD_COUNT);
}
END_TEST

START_TEST(pods_of_other_replicas_must_end_first)
{
    static const struct node_words
        whole = {GPUS "=2", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=1"},
        twice = {GPUS "=4", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"},
        thrice = {GPUS "=6", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=3"};

    set_node("n", &whole);
    PUT("n", "a", GPUS "=1");
    put("n", "unmarked", false, &(struct pod_words){GPUS "=1"});
    set_node("n", &twice);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "a");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    PUT("n", "b", GPUS "=1");
    set_node("n", &thrice); /* they take turns whatever their number */
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ledger_drop(book, "unmarked");
    set_node("n", &whole);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "b");
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_NONE);
}
END_TEST

START_TEST(mps_parts_of_other_sizes_must_end_first)
{
    NODE("n", GPUS "=2", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    PUT("n", "a", GPUS "=1");
    NODE("n", GPUS "=4", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
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
    tcase_add_loop_test(tcase, conditions_pick_exactly_the_right_nodes, 0,
                        G_N_ELEMENTS(mixed_nodes));
    tcase_add_test(tcase, models_and_memory);
    tcase_add_loop_test(tcase, a_malformed_condition_is_named, 0, G_N_ELEMENTS(bad_conditions));
    tcase_add_test(tcase, conditions_become_terms);
    tcase_add_test(tcase, replicas_of_one_card);
    tcase_add_test(tcase, forty_renamed_replicas);
    tcase_add_test(tcase, more_than_one_replica_at_a_time);
    tcase_add_test(tcase, what_pods_want_of_a_card_is_kept_within_it);
    tcase_add_test(tcase, the_most_demanding_pods_may_meet);
    tcase_add_test(tcase, only_time_slicing_is_guarded);
    tcase_add_test(tcase, mps_divides_the_card);
    tcase_add_test(tcase, mps_serves_48_clients);
    tcase_add_test(tcase, cards_for_one_process_take_one_pod);
    tcase_add_test(tcase, capacity_outdoes_labels);
    tcase_add_loop_test(tcase, a_changing_configuration_gives_nothing, 0, G_N_ELEMENTS(flips));
    tcase_add_test(tcase, pods_of_other_replicas_must_end_first);
    tcase_add_test(tcase, mps_parts_of_other_sizes_must_end_first);
    tcase_add_test(tcase, mig_single);
    tcase_add_test(tcase, mig_mixed);
    tcase_add_loop_test(tcase, memory_by_a_label_of_ones_own, 0, G_N_ELEMENTS(memory_labels));
    tcase_add_test(tcase, five_guests);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
