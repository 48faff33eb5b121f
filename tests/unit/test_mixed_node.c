/* SPDX-License-Identifier: Apache-2.0 */
/* A node on which the node sides of several dialects run, as the table of dialects reads it. */
#include "suite.h"

#include "core/ledger.h"
#include "core/node.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

static struct topology *hardware;
static struct ledger *book;
static const char *card_order; /* NULL: nothing is said */
static char *warning;
static const struct dialect_options options;
static struct placement placement;
static struct request *asked; /* the last one, which the placement is of */

static const struct node *read_node(size_t n, const struct string_pair *capacity)
{
    const struct string_pair order[] = {{"gpuledger.io/card-order", card_order}};
    const struct node_view view = {
        .name = "n", .capacity = {capacity, n}, .annotations = {order, card_order ? 1 : 0}};

    topology_free(hardware);
    hardware = topology_new();
    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    return ledger_set_topology(book, "n", hardware);
}
#define READ_NODE(...)                                                                             \
    read_node(G_N_ELEMENTS(((const struct string_pair[]){__VA_ARGS__})),                           \
              (const struct string_pair[]){__VA_ARGS__})

static enum reason admit(size_t n, const struct string_pair *limits)
{
    const struct container_view container = {.name = "main", .limits = {limits, n}};
    const struct pod_view pod = {.containers = &container, .n_containers = 1};
    request_free(asked);
    asked = dialect_read_request(&pod, &options, NULL);
    const struct admission_query query = {
        .request = asked, .policy = &policies[0], .options = &options};
    enum reason reason;

    ck_assert_ptr_nonnull(asked);
    dialect_admit(ledger_node(book, "n"), &query, &placement, &reason);
    return reason;
}
#define ADMIT(...)                                                                                 \
    admit(G_N_ELEMENTS(((const struct string_pair[]){__VA_ARGS__})),                               \
          (const struct string_pair[]){__VA_ARGS__})

static void book_placement(const char *uid)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, placement.n_shares);
    enum reason reason;

    allocation->dialect = placement.request->dialect;
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof placement.shares[0]);
    ck_assert_ptr_nonnull(ledger_reserve(book, "n", allocation, &reason));
}

static void setup(void)
{
    hardware = topology_new();
    book = ledger_new();
}

static void teardown(void)
{
    topology_free(hardware);
    ledger_free(book);
    card_order = NULL;
    g_clear_pointer(&warning, g_free);
    g_clear_pointer(&asked, request_free);
}

/* Of a gpushare pod with one annotation, on a node with one label. */
static enum reason admit_annotated(const char *key, const char *value, const char *label,
                                   const char *text)
{
    static const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "4"}};
    static const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "32"},
                                                  {"aliyun.com/gpu-count", "2"}};
    const struct string_pair annotations[] = {{key, value}}, labels[] = {{label, text}};
    const struct node_view node = {
        .name = "n", .capacity = {capacity, 2}, .labels = {labels, label ? 1 : 0}};
    const struct container_view container = {.name = "main", .limits = {limits, 1}};
    const struct pod_view pod = {
        .containers = &container, .n_containers = 1, .annotations = {annotations, 1}};
    g_autoptr(topology) topology = topology_new();
    enum reason reason;

    ck_assert(dialect_read_topology(&node, &options, topology, &warning, NULL));
    ledger_set_topology(book, "n", topology);
    request_free(asked);
    asked = dialect_read_request(&pod, &options, NULL);
    ck_assert_ptr_nonnull(asked);
    const struct admission_query query = {
        .request = asked, .policy = &policies[0], .options = &options};
    dialect_admit(ledger_node(book, "n"), &query, &placement, &reason);
    return reason;
}

static const struct {
    const char *key, *value, *label, *text;
    enum reason reason;
} conditions[] = {
    {"gpuledger.io/isolation", "hook", NULL, NULL, REASON_ISOLATION},
    {"gpuledger.io/isolation", "none", NULL, NULL, REASON_NONE},
    {"gpuledger.io/gpu-models", "t4", "nvidia.com/gpu.product", "Tesla-T4", REASON_NONE},
    {"gpuledger.io/gpu-models", "a100", "nvidia.com/gpu.product", "Tesla-T4", REASON_TERMS},
    {"gpuledger.io/gpu-models", "t4", NULL, NULL, REASON_TERMS},
    {"gpuledger.io/gpu-memory-min", "16Gi", NULL, NULL, REASON_NONE},
    {"gpuledger.io/gpu-memory-min", "17Gi", NULL, NULL, REASON_TERMS},
    {"gpuledger.io/gpu-driver-min", "535", "nvidia.com/cuda.driver.major", "550", REASON_NONE},
    {"gpuledger.io/gpu-driver-min", "535", "nvidia.com/cuda.driver.major", "470", REASON_TERMS},
    {"gpuledger.io/gpu-driver-min", "535.104", "nvidia.com/cuda.driver.major", "550", REASON_NONE},
    {"gpuledger.io/gpu-driver-min", "535.104", "nvidia.com/cuda.driver.major", "535", REASON_TERMS},
    {"gpuledger.io/gpu-compute-min", "7.0", "nvidia.com/gpu.compute.major", "8", REASON_NONE},
    {"gpuledger.io/gpu-compute-min", "8.1", "nvidia.com/gpu.compute.major", "8", REASON_TERMS},
    {"gpuledger.io/containers", "same-card", NULL, NULL, REASON_NONE},
};

START_TEST(conditions_hold_for_every_dialect)
{
    ck_assert_int_eq(admit_annotated(conditions[_i].key, conditions[_i].value,
                                     conditions[_i].label, conditions[_i].text),
                     conditions[_i].reason);
}
END_TEST

#define GPUSHARE {"aliyun.com/gpu-mem", "32"}, {"aliyun.com/gpu-count", "2"}
#define TENCENT(core) {"tencent.com/vcuda-core", core}, {"tencent.com/vcuda-memory", "120"}

START_TEST(the_cards_are_those_that_all_speak_of)
{
    const struct node *node = READ_NODE(GPUSHARE, TENCENT("200"));

    ck_assert_ptr_null(warning);
    ck_assert_int_eq(node->n_dialects, 2);
    ck_assert_int_eq(node->n_cards, 2);
    /* 16 GiB as the one says, 15 as the other. */
    ck_assert_int_eq(node->cards[1].memory, 15 * GIB);
    /* gpushare's pods count in it. */
    ck_assert_int_eq(node->memory_unit, GIB);
}
END_TEST

START_TEST(who_counts_otherwise_is_ignored_and_named)
{
    const struct node *node = READ_NODE(GPUSHARE, TENCENT("400"));

    ck_assert_ptr_nonnull(warning);
    ck_assert_msg(strstr(warning, "gpu-manager") != NULL, "%s", warning);
    ck_assert_int_eq(node->n_dialects, 1);
    ck_assert_int_eq(node->n_cards, 2);
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_OTHER_DIALECT);
}
END_TEST

#define KOORDINATOR(core) {"koordinator.sh/gpu-core", core}, {"koordinator.sh/gpu-memory", "32Gi"}

static void expect_seen(const char *text)
{
    const struct node *node = ledger_node(book, "n");
    const struct allocation *booked = ledger_get(book, "a");
    g_auto(annotations) annotations = {0};

    dialect_find("koordinator")->write_seen(booked, node, &annotations);
    ck_assert_uint_eq(annotations.n, 1);
    ck_assert_str_eq(annotations.items[0].key, "scheduling.koordinator.sh/device-allocated");
    ck_assert_str_eq(annotations.items[0].value, text);
}

/* Koordinator's scheduler sees what others have. Its capacity may leave out a card that is not well. */
START_TEST(koordinator_is_told_which_cards_others_have)
{
    static const char *const cores[] = {"200", "100"};

    READ_NODE(GPUSHARE, KOORDINATOR(cores[_i]));
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(ledger_node(book, "n")->n_cards, 2);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "5"}), REASON_NONE);
    book_placement("a");
    expect_seen("{\"gpu\":[{\"minor\":0,\"resources\":{\"koordinator.sh/gpu-core\":\"0\","
                "\"koordinator.sh/gpu-memory\":\"5368709120\","
                "\"koordinator.sh/gpu-memory-ratio\":\"32\"}}]}");
}
END_TEST

/* Of a card, an init container has what it needs before the others come; a card of one's own is whole. */
START_TEST(koordinator_is_told_the_most_that_a_pod_has)
{
    READ_NODE(GPUSHARE, KOORDINATOR("200"));
    struct allocation *held = allocation_new("a", "ml", "a", 4);
    held->dialect = dialect_find("elastic");
    held->shares[0] = (struct share){.memory = {GIB, AMOUNT_BYTES}, .core = 101};
    held->shares[1] = (struct share){.memory = {GIB, AMOUNT_BYTES}, .core = 100, .container = 1};
    held->shares[2] =
        (struct share){.memory = {4 * GIB, AMOUNT_BYTES}, .core = 50, .container = 2, .init = true};
    held->shares[3] = (struct share){.card = 1, .exclusive = true};
    ledger_put(book, "n", held);
    expect_seen("{\"gpu\":[{\"minor\":0,\"resources\":{\"koordinator.sh/gpu-core\":\"21\","
                "\"koordinator.sh/gpu-memory\":\"4294967296\","
                "\"koordinator.sh/gpu-memory-ratio\":\"25\"}},"
                "{\"minor\":1,\"resources\":{\"koordinator.sh/gpu-core\":\"100\","
                "\"koordinator.sh/gpu-memory\":\"17179869184\","
                "\"koordinator.sh/gpu-memory-ratio\":\"100\"}}]}");
}
END_TEST

/* It could not be told which cards the node gives such a pod. */
START_TEST(who_is_given_a_card_by_the_node_is_not_placed_beside_koordinator)
{
    READ_NODE({"nvidia.com/gpu", "2"}, KOORDINATOR("200"));
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}), REASON_OTHER_DIALECT);
    READ_NODE(TENCENT("200"), KOORDINATOR("200"));
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_OTHER_DIALECT);
}
END_TEST

START_TEST(the_first_pod_decides_and_the_last_ones_end_frees)
{
    READ_NODE(GPUSHARE, TENCENT("200"));
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_OTHER_USE);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    ledger_drop(book, "a");
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_NONE);
    book_placement("b");
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_OTHER_USE);
}
END_TEST

/* A plugin that has gone, and what kubelet and the node say of the node then: its pods hold their cards. */
START_TEST(who_holds_a_card_holds_it_when_the_plugin_has_gone)
{
    READ_NODE(GPUSHARE, TENCENT("200"));
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    READ_NODE({"aliyun.com/gpu-mem", "0"}, {"aliyun.com/gpu-count", "0"}, TENCENT("200"));
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_OTHER_USE);
    ledger_drop(book, "a");
    ck_assert_int_eq(ADMIT({"tencent.com/vcuda-core", "10"}, {"tencent.com/vcuda-memory", "4"}),
                     REASON_NONE);
}
END_TEST

/* Nobody but the pods tells then what one of their units was. */
START_TEST(amounts_keep_their_unit_when_the_plugin_has_gone)
{
    static const struct {
        const char *amount;
        int64_t unit;
    } pods[] = {{"4", GIB}, {"4096", GIB / 1024}};
    const char *amount = pods[_i].amount;

    READ_NODE({"aliyun.com/gpu-mem", _i ? "32768" : "32"}, {"aliyun.com/gpu-count", "2"},
              TENCENT("200"));
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", amount}), REASON_NONE);
    book_placement("a");
    const struct node *node =
        READ_NODE({"aliyun.com/gpu-mem", "0"}, {"aliyun.com/gpu-count", "0"}, TENCENT("200"));
    ck_assert_int_eq(node->memory_unit, pods[_i].unit);
    ck_assert_int_eq(node->cards[0].memory_used, 4 * GIB);
    ledger_drop(book, "a");
    ck_assert_int_eq(node->cards[0].memory_used, 0);
}
END_TEST

START_TEST(devices_are_held_when_the_node_shares_its_cards_otherwise)
{
    READ_NODE({"nvidia.com/gpu", "2"});
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}), REASON_NONE);
    book_placement("a");
    READ_NODE({"nvidia.com/gpu", "0"}, GPUSHARE);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_OTHER_USE);
    ledger_drop(book, "a");
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("b");
    READ_NODE({"nvidia.com/gpu", "2"}, {"aliyun.com/gpu-mem", "0"});
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}), REASON_OTHER_USE);
}
END_TEST

#define ELASTIC {"elasticgpu.io/gpu-core", "200"}, {"elasticgpu.io/gpu-memory", "32768"}

/* gpushare's plugin takes NVML's index, elastic's agent /dev/nvidiaN. */
START_TEST(who_counts_cards_otherwise_does_not_come_there)
{
    READ_NODE(GPUSHARE, ELASTIC);
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_NONE); /* nobody is there */
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_CARD_NUMBERS);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    ledger_drop(book, "a");
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_NONE);
    book_placement("b");
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_CARD_NUMBERS);
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_NONE);
    /* A node with one card has one number. */
    ledger_drop(book, "b");
    READ_NODE({"aliyun.com/gpu-mem", "16"}, {"aliyun.com/gpu-count", "1"},
              {"elasticgpu.io/gpu-core", "100"}, {"elasticgpu.io/gpu-memory", "16384"});
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("c");
    ck_assert_int_ne(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_CARD_NUMBERS);
}
END_TEST

/* As the API server shows it. */
static const struct allocation *put_elastic(const char *uid, const char *cards)
{
    static const struct string_pair limits[] = {{"elasticgpu.io/gpu-core", "50"},
                                                {"elasticgpu.io/gpu-memory", "1000"}};
    const struct container_view container = {.name = "main", .limits = {limits, 2}};
    const struct string_pair written[] = {{"elasticgpu.io/assumed", "true"},
                                          {"elasticgpu.io/container-main", cards}};
    const struct pod_view pod = {.ns = "ml",
                                 .name = uid,
                                 .uid = uid,
                                 .node_name = "n",
                                 .phase = "Running",
                                 .annotations = {written, 2},
                                 .containers = &container,
                                 .n_containers = 1};
    struct allocation *told = dialect_read_allocation(&pod, &options, NULL);
    const struct allocation *known = ledger_get(book, uid);

    if (known)
        told = dialect_continue(known, told, NULL);
    return ledger_put(book, "n", told);
}

START_TEST(an_order_of_cards_says_which_are_the_same)
{
    card_order = "3,0";
    const struct node *node = READ_NODE(GPUSHARE, ELASTIC);
    g_auto(annotations) annotations = {0};

    ck_assert_ptr_null(warning);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    ck_assert_int_eq(placement.shares[0].card, 0);
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "50"}, {"elasticgpu.io/gpu-memory", "1000"}),
                     REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    book_placement("b");
    struct allocation *booked = ledger_get(book, "b");
    booked->terms = terms_ref(asked->terms);
    placement.request->dialect->write_annotations(booked, node, &annotations);
    ck_assert_str_eq(annotations.items[1].value, "0"); /* /dev/nvidia0 is NVML's second */
    /* Nothing changes when it is seen, and none of it is an edit. */
    const struct allocation *seen = put_elastic("b", "0");
    ck_assert_uint_eq(seen->n_shares, 1);
    ck_assert_int_eq(seen->shares[0].card, 1);
    ck_assert(!seen->shares[0].named);
    ck_assert_int_eq(put_elastic("c", "3")->shares[0].card, 0);
    /* Pods keep their cards when something else is said of the order. */
    card_order = "0,3";
    READ_NODE(GPUSHARE, ELASTIC);
    ck_assert_int_eq(ledger_get(book, "b")->shares[0].card, 0);
    ck_assert_int_eq(ledger_get(book, "c")->shares[0].card, 1);
}
END_TEST

START_TEST(an_order_of_other_cards_says_nothing)
{
    static const char *const orders[] = {"0", "0,0", "0,1,2", "0,x", "0,-1", "0,256", ",", "1;0"};

    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        card_order = orders[i];
        ck_assert(!READ_NODE(GPUSHARE, ELASTIC)->numbered);
        ck_assert_msg(warning && strstr(warning, "card-order"), "%s", orders[i]);
        g_clear_pointer(&warning, g_free);
    }
    card_order = "";
    ck_assert(!READ_NODE(GPUSHARE, ELASTIC)->numbered);
    ck_assert_ptr_null(warning);
}
END_TEST

/* Koordinator's scheduler is told minor numbers. */
START_TEST(koordinator_is_told_the_number_that_it_knows)
{
    card_order = "1,0";
    READ_NODE(GPUSHARE, KOORDINATOR("200"));
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "5"}), REASON_NONE);
    book_placement("a");
    expect_seen("{\"gpu\":[{\"minor\":1,\"resources\":{\"koordinator.sh/gpu-core\":\"0\","
                "\"koordinator.sh/gpu-memory\":\"5368709120\","
                "\"koordinator.sh/gpu-memory-ratio\":\"32\"}}]}");
}
END_TEST

/* Where both obey, the other cards are free. */
START_TEST(only_the_card_that_is_held_is_kept)
{
    card_order = "0,1";
    READ_NODE(GPUSHARE);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    READ_NODE({"aliyun.com/gpu-mem", "0"}, {"elasticgpu.io/gpu-core", "200"},
              {"elasticgpu.io/gpu-memory", "32768"});
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "10"}), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(ADMIT({"elasticgpu.io/gpu-core", "200"}), REASON_OTHER_USE);
}
END_TEST

/* One container with one GPU on the node, as a list or the watch shows the pod. */
static void put_plain(bool started, const char *memory)
{
    const struct string_pair limits[] = {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", memory}};
    const struct container_view container = {.name = "main", .limits = {limits, memory ? 2 : 1}};
    const struct pod_view pod = {.ns = "ml",
                                 .name = "a",
                                 .uid = "a",
                                 .node_name = "n",
                                 .phase = started ? "Running" : "Pending",
                                 .started = started,
                                 .containers = &container,
                                 .n_containers = 1};
    struct allocation *allocation = dialect_read_allocation(&pod, &options, NULL);

    allocation->started = started;
    ledger_put(book, "n", allocation);
}

/* HAMi's plugin in the place of NVIDIA's, which has given cards that nobody knows to pods that run. It
 * gives nothing itself to pods that no scheduler has promised a card. */
START_TEST(who_runs_holds_some_card_when_another_plugin_reports_the_resource)
{
    static const struct string_pair capacity[] = {{"nvidia.com/gpu", "20"}};
    const struct string_pair registered[] = {
        {_i ? "4pd.io/node-nvidia-register" : "hami.io/node-nvidia-register",
         "GPU-a,10,24576,100,NVIDIA-A10,0,true:GPU-b,10,24576,100,NVIDIA-A10,0,true:"}};
    const struct node_view view = {.name = "n",
                                   .capacity = {capacity, 1},
                                   .allocatable = {capacity, 1},
                                   .annotations = {registered, 1}};

    READ_NODE({"nvidia.com/gpu", "2"});
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}), REASON_NONE);
    topology_free(hardware);
    hardware = topology_new();
    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    const struct node *node = ledger_set_topology(book, "n", hardware);
    ck_assert_int_eq(node->n_cards, 2);
    for (int i = 0; i < 3; i++) { /* seen anew, then as it goes on */
        const bool runs = i == 1;
        put_plain(runs, NULL);
        ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "100"}),
                         runs ? REASON_OTHER_USE : REASON_NONE);
        ck_assert(node_verify(node, node_cpu_pods(node), NULL));
    }
    put_plain(true, "24576");
    ck_assert_int_ne(ADMIT({"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "100"}), REASON_NONE);
    ledger_drop(book, "a");
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "100"}), REASON_NONE);
}
END_TEST

/* kubelet gives nothing of what the node has never had. */
START_TEST(who_can_hold_nothing_keeps_nobody_away)
{
    READ_NODE(GPUSHARE);
    ck_assert_int_eq(ADMIT({"aliyun.com/gpu-mem", "4"}), REASON_NONE);
    book_placement("a");
    READ_NODE({"nvidia.com/gpu", "2"});
    ck_assert_int_eq(ADMIT({"nvidia.com/gpu", "1"}), REASON_NONE);
}
END_TEST

START_TEST(a_pod_may_not_ask_in_two_ways)
{
    static const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "4"},
                                                {"tencent.com/vcuda-core", "10"},
                                                {"tencent.com/vcuda-memory", "4"}};
    const struct container_view container = {.name = "main", .limits = {limits, 3}};
    const struct pod_view pod = {.containers = &container, .n_containers = 1};
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(&pod, &options, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->message,
                     "the pod asks for GPUs in two ways, 'aliyun.com/gpu-mem' (Aliyun gpushare) and "
                     "'tencent.com/vcuda-core' (Tencent gpu-manager): keep one");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("mixed node");
    TCase *tc = tcase_create("mixed node");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_cards_are_those_that_all_speak_of);
    tcase_add_test(tc, who_counts_otherwise_is_ignored_and_named);
    tcase_add_loop_test(tc, koordinator_is_told_which_cards_others_have, 0, 2);
    tcase_add_test(tc, koordinator_is_told_the_most_that_a_pod_has);
    tcase_add_test(tc, who_is_given_a_card_by_the_node_is_not_placed_beside_koordinator);
    tcase_add_test(tc, the_first_pod_decides_and_the_last_ones_end_frees);
    tcase_add_test(tc, who_holds_a_card_holds_it_when_the_plugin_has_gone);
    tcase_add_test(tc, devices_are_held_when_the_node_shares_its_cards_otherwise);
    tcase_add_loop_test(tc, who_runs_holds_some_card_when_another_plugin_reports_the_resource, 0,
                        2);
    tcase_add_test(tc, only_the_card_that_is_held_is_kept);
    tcase_add_test(tc, who_counts_cards_otherwise_does_not_come_there);
    tcase_add_test(tc, an_order_of_cards_says_which_are_the_same);
    tcase_add_test(tc, an_order_of_other_cards_says_nothing);
    tcase_add_test(tc, koordinator_is_told_the_number_that_it_knows);
    tcase_add_loop_test(tc, amounts_keep_their_unit_when_the_plugin_has_gone, 0, 2);
    tcase_add_test(tc, who_can_hold_nothing_keeps_nobody_away);
    tcase_add_test(tc, a_pod_may_not_ask_in_two_ways);
    tcase_add_loop_test(tc, conditions_hold_for_every_dialect, 0, G_N_ELEMENTS(conditions));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
