/* SPDX-License-Identifier: Apache-2.0 */
/* Dialects whose own schedulers place their pods: others find their cards taken. */
#include "desk.h"
#include "suite.h"

#define CORE "elasticgpu.io/gpu-core"
#define MEMORY "elasticgpu.io/gpu-memory"
#define KCORE "koordinator.sh/gpu-core"
#define KMEMORY "koordinator.sh/gpu-memory"
#define KRATIO "koordinator.sh/gpu-memory-ratio"
#define KGPU "koordinator.sh/gpu"
#define KSHARED "koordinator.sh/gpu.shared"
#define ALLOCATED "scheduling.koordinator.sh/device-allocated"
#define GPU "nvidia.com/gpu"
#define RESERVED "run.ai/reserve_for_gpu_index"

#define POD(ns_, uid_, annotations_, ...)                                                          \
    (&(struct pod_view){.ns = ns_,                                                                 \
                        .name = uid_,                                                              \
                        .uid = uid_,                                                               \
                        .annotations = annotations_,                                               \
                        CONTAINERS({.name = "c", .limits = PAIRS(__VA_ARGS__)})})
#define NOTHING ((struct string_pairs){0})
#define ASK(uid, core) POD("ml", uid, NOTHING, {CORE, core})
#define WRITTEN(card) "elasticgpu.io/assumed=true elasticgpu.io/container-c=" card

static char *held(const struct pod_view *pod)
{
    char *warning = NULL;

    ledger_put(book, "n1", dialect_read_allocation(pod, &options, &warning));
    return warning;
}

static void add_node(void)
{
    desk_node(&(struct node_view){.name = "n1",
                                  .capacity = PAIRS({CORE, "300"}, {MEMORY, "30000"},
                                                    {KCORE, "300"}, {KMEMORY, "30000Mi"})});
}

START_TEST(koordinators_cards_are_left_alone)
{
    add_node();
    ck_assert_int_eq(ledger_node(book, "n1")->cards[1].memory, 10000 * MIB);
    g_autofree char *warning =
        held(POD("ml", "k",
                 PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0,\"resources\":{\"" KCORE "\":\"1\",\"" KMEMORY
                                   "\":\"1\"}},{\"minor\":2}],\"rdma\":[{\"minor\":1}]}"}),
                 {KCORE, "150"}, {KMEMORY, "8Gi"}));
    ck_assert_ptr_null(warning);
    const struct node *node = ledger_node(book, "n1");
    for (int32_t i = 0; i < 3; i += 2) { /* the containers' sums, not what the annotation says */
        ck_assert_int_eq(node->cards[i].core_used, 750);
        ck_assert_int_eq(node->cards[i].memory_used, 4 * GIB);
    }
    ck_assert_int_eq(node->cards[1].holders, 0);
    ledger_drop(book, "k");
    g_free(held(POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0},{\"minor\":2}]}"}),
                    {KCORE, "200"}, {KRATIO, "200"})));
    ck_assert_int_eq(node->cards[2].memory_used, 10000 * MIB);
    desk_expect(ASK("a", "10"), "n1", WRITTEN("1"));
    desk_expect(ASK("b", "100"), "n1", "insufficient_memory");
    desk_expect(ASK("c", "90"), "n1", WRITTEN("1"));
}
END_TEST

/* What an init container has, the others get when it has ended. */
START_TEST(koordinators_init_containers_do_not_add_up)
{
    static const struct {
        const char *init, *app;
        int32_t used;
        bool sidecar;
    } cases[] = {{"60", "60", 600, false}, {"80", "60", 800, false}, {"40", "60", 1000, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        add_node();
        const struct pod_view pod = {
            .ns = "ml",
            .name = "k",
            .uid = "k",
            .annotations = PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0}]}"}),
            CONTAINERS({.name = "i",
                        .init = true,
                        .sidecar = cases[i].sidecar,
                        .limits = PAIRS({KGPU, cases[i].init})},
                       {.name = "c", .limits = PAIRS({KGPU, cases[i].app})})};
        g_autofree char *warning = held(&pod);
        ck_assert_ptr_null(warning);
        ck_assert_int_eq(ledger_node(book, "n1")->cards[0].core_used, cases[i].used);
        ledger_drop(book, "k");
    }
}
END_TEST

/* Compute and memory by one number, and both of several cards: most of its pods ask so. */
START_TEST(koordinators_other_words_count)
{
    static const struct {
        const char *resource, *amount, *cards;
        int32_t on_first, on_second;
    } cases[] = {
        {KGPU, "60", "{\"gpu\":[{\"minor\":0}]}", 600, 0},
        {KGPU, "200", "{\"gpu\":[{\"minor\":0},{\"minor\":1}]}", 1000, 1000},
        {KSHARED, "2", "{\"gpu\":[{\"minor\":0},{\"minor\":1}]}", 1000, 1000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        add_node();
        g_autofree char *warning = held(POD("ml", "k", PAIRS({ALLOCATED, cases[i].cards}),
                                            {cases[i].resource, cases[i].amount}));
        ck_assert_ptr_null(warning);
        const struct node *node = ledger_node(book, "n1");
        ck_assert_int_eq(node->cards[0].core_used, cases[i].on_first);
        ck_assert_int_eq(node->cards[0].memory_used, cases[i].on_first * 10 * MIB);
        ck_assert_int_eq(node->cards[1].core_used, cases[i].on_second);
        ledger_drop(book, "k");
    }
    g_free(held(POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0},{\"minor\":1}]}"}),
                    {KSHARED, "2"}, {KCORE, "100"}, {KMEMORY, "8Gi"})));
    ck_assert_int_eq(ledger_node(book, "n1")->cards[1].core_used, 500);
    ck_assert_int_eq(ledger_node(book, "n1")->cards[1].memory_used, 4 * GIB);
}
END_TEST

/* What a pod holds does not become less by naming more cards than it can have. */
START_TEST(more_cards_than_asked_for_count_everywhere)
{
    add_node();
    g_autofree char *warning = held(
        POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0},{\"minor\":1},{\"minor\":2}]}"}),
            {KCORE, "90"}, {KRATIO, "90"}));
    ck_assert_ptr_nonnull(strstr(warning, "names 3 cards"));
    ck_assert_int_eq(ledger_get(book, "k")->distrust, DISTRUST_MALFORMED);
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_core, 900);
}
END_TEST

#define SCHEDULER_POD(scheduler, annotations_, ...)                                                \
    (&(struct pod_view){.ns = "ml",                                                                \
                        .name = "s",                                                               \
                        .uid = "s",                                                                \
                        .scheduler_name = scheduler,                                               \
                        .annotations = annotations_,                                               \
                        CONTAINERS({.name = "c", .limits = PAIRS(__VA_ARGS__)})})

/* Its scheduler places pods of NVIDIA's resource, too: then its name is what tells. */
START_TEST(koordinators_scheduler_places_whole_cards)
{
    const struct string_pairs told = PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":1}]}"});

    add_node();
    g_free(held(SCHEDULER_POD("koord-scheduler", told, {GPU, "1"})));
    const struct node *node = ledger_node(book, "n1");
    ck_assert_int_eq(node->cards[1].core_used, 1000);
    ck_assert_int_eq(node->cards[1].memory_used, 10000 * MIB);
    ledger_drop(book, "s");
    g_free(held(SCHEDULER_POD("default-scheduler", told, {GPU, "1"})));
    ck_assert_int_eq(node->cards[1].holders, 0);
}
END_TEST

/* HAMi numbers cards by their places in what it registers, Koordinator by their device files. */
START_TEST(koordinators_uuids_go_before_its_numbers)
{
    static const struct {
        const char *uuid;
        int32_t on[2], unplaced; /* thousandths of compute, of cards a and b */
    } cases[] = {
        {"GPU-a", {500, 0}, 0},
        {"GPU-b", {0, 500}, 0},
        {"GPU-gone", {0, 0}, 500},
        {"0000:3b:00.0", {0, 500}, 0}, /* no UUID: the minor number has to do */
    };
    const struct node *node = desk_node(&(struct node_view){
        .name = "n1",
        .capacity = PAIRS({GPU, "20"}, {KCORE, "200"}, {KMEMORY, "20000Mi"}),
        .allocatable = PAIRS({GPU, "20"}),
        .annotations = PAIRS({"hami.io/node-nvidia-register",
                              "GPU-a,10,10000,100,NVIDIA-T4,0,true,0,hami-core:"
                              "GPU-b,10,10000,100,NVIDIA-T4,0,true,1,hami-core:"})});

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("{\"gpu\":[{\"minor\":1,\"id\":\"%s\"}]}", cases[i].uuid);
        g_autofree char *warning =
            held(POD("ml", "k", PAIRS({ALLOCATED, text}), {KCORE, "50"}, {KRATIO, "50"}));
        ck_assert_ptr_null(warning);
        for (int32_t j = 0; j < 2; j++)
            ck_assert_int_eq(node->cards[j].core_used, cases[i].on[j]);
        ck_assert_int_eq(node->unplaced_core, cases[i].unplaced);
        ledger_drop(book, "k");
    }
    g_autofree char *twice = held(POD("ml", "k",
                                      PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0,\"id\":\"GPU-a\"},"
                                                        "{\"minor\":1,\"id\":\"GPU-a\"}]}"}),
                                      {KCORE, "200"}, {KRATIO, "200"}));
    ck_assert_ptr_nonnull(twice);
    ck_assert_int_eq(ledger_get(book, "k")->distrust, DISTRUST_MALFORMED);
}
END_TEST

/* Where no dialect tells UUIDs; and an edit of either name is no other card's end. */
START_TEST(koordinators_numbers_do_where_nobody_tells_uuids)
{
    const struct pod_view edited =
        *POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":2,\"id\":\"GPU-b\"}]}"}),
             {KCORE, "50"}, {KRATIO, "50"});
    bool told = false;

    add_node();
    g_autofree char *warning =
        held(POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":1,\"id\":\"GPU-a\"}]}"}),
                 {KCORE, "50"}, {KRATIO, "50"}));
    const struct node *node = ledger_node(book, "n1");
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(node->cards[1].core_used, 500);
    ck_assert_int_eq(node->unplaced_core, 0);
    g_autoptr(allocation) known = allocation_dup(ledger_get(book, "k"));
    known->state = ALLOCATION_CONFIRMED;
    ledger_put(book, "n1",
               dialect_continue(known, dialect_read_allocation(&edited, &options, NULL), &told));
    ck_assert(told);
    ck_assert_int_eq(node->cards[1].core_used, 500);
    ck_assert_int_eq(node->unplaced_core, 0);
}
END_TEST

START_TEST(fewer_cards_than_asked_for_count_everywhere)
{
    add_node();
    g_autofree char *warning = held(
        POD("ml", "k", PAIRS({ALLOCATED, "{\"gpu\":[{\"minor\":0}]}"}), {KCORE, "150"}));
    ck_assert_ptr_nonnull(strstr(warning, "names 1 cards"));
    ck_assert_int_eq(ledger_get(book, "k")->distrust, DISTRUST_MALFORMED);
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_core, 750);
}
END_TEST

struct odd_case {
    const char *text;
    enum distrust distrust;
};

static const struct odd_case odd_cases[] = {
    {NULL, DISTRUST_UNMARKED},
    {"", DISTRUST_MALFORMED},
    {"[]", DISTRUST_MALFORMED},
    {"{\"gpu\":{}}", DISTRUST_MALFORMED},
    {"{\"gpu\":[{}]}", DISTRUST_MALFORMED},
    {"{\"gpu\":[{\"minor\":-1}]}", DISTRUST_MALFORMED},
    {"{\"gpu\":[{\"minor\":256}]}", DISTRUST_MALFORMED},
    {"{\"gpu\":[{\"minor\":0},{\"minor\":\"1\"}]}", DISTRUST_MALFORMED},
};

START_TEST(what_koordinator_does_not_say_counts_everywhere)
{
    const struct odd_case *c = &odd_cases[_i];
    struct string_pairs annotations = c->text ? PAIRS({ALLOCATED, c->text}) : NOTHING;

    add_node();
    g_autofree char *warning = held(POD("ml", "k", annotations, {KCORE, "60"}));
    ck_assert_ptr_nonnull(warning);
    ck_assert_uint_lt(strlen(warning), 250);
    ck_assert_int_eq(ledger_get(book, "k")->distrust, c->distrust);
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_core, 600);
    desk_expect(ASK("a", "10"), "n1", "other_use");
}
END_TEST

START_TEST(koordinators_pods_are_refused)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(
        POD("ml", "a", NOTHING, {"koordinator.sh/gpu.shared", "1"}), &options, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "schedulerName"));
    g_clear_error(&error);
    ck_assert_ptr_null(
        dialect_read_request(POD("ml", "a", NOTHING, {"cpu", "1"}), &options, &error));
    ck_assert_ptr_null(error);
    /* rdma only */
    ck_assert_ptr_null(dialect_read_allocation(
        POD("ml", "a", PAIRS({ALLOCATED, "{\"rdma\":[]}"}), {"cpu", "1"}), &options, NULL));
}
END_TEST

START_TEST(a_card_that_kai_reserved_is_left_alone)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({CORE, "200"}, {MEMORY, "200"})});
    desk_expect(ASK("a", "10"), "n1", WRITTEN("0"));
    ledger_drop(book, "a");
    ck_assert_ptr_null(held(POD("kai-resource-reservation", "r", NOTHING, {GPU, "1"})));
    desk_expect(ASK("a", "10"), "n1", "insufficient_memory"); /* any card may be the one */
    ck_assert_ptr_null(held(POD("kai-resource-reservation", "r", PAIRS({RESERVED, "0"}), {GPU, "1"})));
    desk_expect(ASK("a", "10"), "n1", WRITTEN("1"));
    g_autofree char *warning =
        held(POD("kai-resource-reservation", "r", PAIRS({RESERVED, "-1"}), {GPU, "1"}));
    ck_assert_ptr_nonnull(strstr(warning, RESERVED));
    desk_expect(ASK("b", "10"), "n1", "insufficient_memory");
    ck_assert_ptr_null(held(POD("runai-reservation", "r", PAIRS({RESERVED, "0"}), {GPU, "1"})));
    desk_expect(ASK("b", "10"), "n1", WRITTEN("1"));
}
END_TEST

/* What it writes is the card's UUID, whatever the key says. */
START_TEST(a_card_that_kai_reserved_by_uuid_is_left_alone)
{
    const struct node *node = desk_node(&(struct node_view){
        .name = "n1",
        .annotations =
            PAIRS({"hami.io/node-nvidia-register", "GPU-a,10,24576,100,NVIDIA-A10,0,true:"
                                                   "GPU-b,10,24576,100,NVIDIA-A10,0,true:"}),
        .capacity = PAIRS({GPU, "20"})});

    ck_assert_ptr_null(
        held(POD("kai-resource-reservation", "r", PAIRS({RESERVED, "GPU-b"}), {GPU, "1"})));
    ck_assert_int_eq(node->cards[0].holders, 0);
    ck_assert_int_eq(node->cards[1].exclusive, 1);
    /* Of an instance nobody knows on which card it is. */
    ck_assert_ptr_null(
        held(POD("kai-resource-reservation", "r", PAIRS({RESERVED, "MIG-b"}), {GPU, "1"})));
    ck_assert_int_eq(node->unplaced_exclusive, 1);
}
END_TEST

/* What it reserves is a device of NVIDIA's plugin as well as a card. */
START_TEST(kais_card_counts_beside_the_device)
{
    const struct node *node = desk_node(
        &(struct node_view){.name = "n1", .capacity = PAIRS({CORE, "200"}, {MEMORY, "200"}, {GPU, "2"})});

    g_free(held(POD("kai-resource-reservation", "r", PAIRS({RESERVED, "1"}), {GPU, "1"})));
    ck_assert_int_eq(node->cards[1].exclusive, 1);
    ck_assert_int_eq(node->cards[0].holders, 0);
    ck_assert_int_eq(node_pool(node, GPU)->used, 1);
}
END_TEST

#define QCORE "tke.cloud.tencent.com/qgpu-core"
#define QMEMORY "tke.cloud.tencent.com/qgpu-memory"

struct qgpu_case {
    const char *core, *memory, *says;
};

static const struct qgpu_case qgpu_cases[] = {
    {"7", "1", "multiple of 5"}, {"105", "1", "multiple of 5"}, {"150", "1", "multiple of 5"},
    {"1.5", "1", "qgpu-core: "},  {"30", "-1", "qgpu-memory: "}, {"30", "4", "leave the pod to it"},
    {"200", "0", "leave"},       {"0", "4", "leave"},           {"0", "0", NULL},
};

START_TEST(qgpus_pods_are_refused)
{
    const struct qgpu_case *c = &qgpu_cases[_i];
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(
        POD("ml", "a", NOTHING, {QCORE, c->core}, {QMEMORY, c->memory}), &options, &error));
    ck_assert_int_eq(error != NULL, c->says != NULL);
    if (error)
        ck_assert_msg(strstr(error->message, c->says), "%s", error->message);
}
END_TEST

START_TEST(qgpus_pods_count_on_every_card)
{
    struct node *node = desk_node(&(struct node_view){
        .name = "n1",
        .capacity = PAIRS({QCORE, "200"}, {QMEMORY, "30"}, {CORE, "200"}, {MEMORY, "30000"})});

    ck_assert_int_eq(node->cards[0].slots, 16);
    desk_expect(ASK("a", "10"), "n1", WRITTEN("0"));
    ledger_drop(book, "a");
    ck_assert_ptr_null(held(POD("ml", "q", NOTHING, {QCORE, "30"}, {QMEMORY, "4"})));
    ck_assert_int_eq(node->unplaced_core, 300);
    ck_assert_int_eq(node->unplaced_memory, 4 * GIB);
    desk_expect(ASK("a", "10"), "n1", "other_use");
    /* also where nobody says that qGPU runs on the node */
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({CORE, "200"}, {MEMORY, "30000"})});
    desk_expect(ASK("a", "80"), "n1", "insufficient_core");
    desk_expect(ASK("a", "70"), "n1", WRITTEN("0"));
    ck_assert_ptr_null(held(POD("ml", "q", NOTHING, {QCORE, "200"})));
    desk_expect(ASK("b", "10"), "n1", "insufficient_memory");
}
END_TEST

#define I915 "gpu.intel.com/i915"
#define MILLICORES "gpu.intel.com/millicores"
#define MAXIMUM "gpu.intel.com/memory.max"
#define GAS_CARDS "gas-container-cards"

static struct node *add_intel_node(const char *label, const char *cards)
{
    return desk_node(&(struct node_view){
        .name = "n1",
        .labels = PAIRS({label, cards}),
        .allocatable = PAIRS({I915, "200"}, {MILLICORES, "2000"}, {MAXIMUM, "24Gi"})});
}

START_TEST(intels_cards_are_counted)
{
    struct node *node = add_intel_node("gpu.intel.com/gpu-numbers", "0.2");

    ck_assert_int_eq(node->n_cards, 3);
    ck_assert_int_eq(node->cards[0].memory, 12 * GIB);
    ck_assert(!node->cards[1].healthy && node->cards[2].healthy);
    struct pod_view pod = {
        .ns = "ml",
        .name = "i",
        .uid = "i",
        .annotations = PAIRS({GAS_CARDS, "card0,card2||card2"}),
        CONTAINERS({.limits = PAIRS({I915, "2"}, {MILLICORES, "400"}, {MAXIMUM, "8Gi"})}, {0},
                   {.limits = PAIRS({"gpu.intel.com/xe", "1"}, {MILLICORES, "100"})})};
    ck_assert_ptr_null(held(&pod));
    ck_assert_int_eq(node->cards[0].core_used, 200);
    ck_assert_int_eq(node->cards[0].memory_used, 4 * GIB);
    ck_assert_int_eq(node->cards[2].core_used, 300);
    ck_assert_int_eq(node->cards[2].memory_used, 4 * GIB);

    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(dialect_read_request(&pod, &options, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "schedulerName"));
}
END_TEST

/* An NVIDIA card is none of Intel's, whatever its number; who uses an Intel GPU keeps nobody from it. */
START_TEST(intels_cards_are_no_others)
{
    const struct node *node =
        desk_node(&(struct node_view){.name = "n1",
                                      .labels = PAIRS({"gpu.intel.com/gpu-numbers", "0"}),
                                      .capacity = PAIRS({CORE, "200"}, {MEMORY, "20000"}),
                                      .allocatable = PAIRS({I915, "1"}, {MAXIMUM, "1Gi"})});

    ck_assert_int_eq(node->n_cards, 2);
    ck_assert_int_eq(node->n_dialects, 1);
    ck_assert_int_eq(node->cards[0].memory, 10000 * MIB);
    g_free(held(
        POD("ml", "i", PAIRS({"gas-container-cards", "card0"}), {I915, "1"}, {MAXIMUM, "1Gi"})));
    g_free(held(POD("ml", "j", NOTHING, {I915, "1"})));
    ck_assert_int_eq(node->cards[0].holders, 0);
    ck_assert_int_eq(node->unplaced_holders, 0);
    desk_expect(ASK("a", "100"), "n1", WRITTEN("0"));
    desk_expect(ASK("b", "100"), "n1", WRITTEN("1"));
}
END_TEST

START_TEST(intels_older_and_longer_labels_are_read)
{
    struct node *node = add_intel_node("gpu.intel.com/cards", "card0.card1");

    ck_assert_int_eq(node->n_cards, 2);
    node = desk_node(&(struct node_view){
        .name = "n1",
        .labels = PAIRS({"gpu.intel.com/gpu-numbers", "0.1"}, {"gpu.intel.com/gpu-numbers2", "Z.2"}),
        .allocatable = PAIRS({I915, "3"})});
    ck_assert_int_eq(node->n_cards, 3);
}
END_TEST

static const char *const odd_gas_cards[] = {NULL, "", "card0", "card0,card300", "card0,x",
                                            "card0,card1|card0", "card0||card1"};

START_TEST(what_gas_does_not_say_counts_everywhere)
{
    const char *text = odd_gas_cards[_i];
    struct node *node = add_intel_node("gpu.intel.com/gpu-numbers", "0.1");
    g_autofree char *warning =
        held(POD("ml", "i", text ? PAIRS({GAS_CARDS, text}) : NOTHING, {I915, "2"},
                 {MILLICORES, "400"}));

    ck_assert_ptr_nonnull(warning);
    ck_assert_int_eq(node->unplaced_core, 400);
    ck_assert_int_eq(ledger_get(book, "i")->distrust, text ? DISTRUST_MALFORMED : DISTRUST_UNMARKED);
}
END_TEST

struct many_case {
    const char *dialect, *resource, *amount;
};

static const struct many_case many_cases[] = {
    {"volcano", "volcano.sh/gpu-number", "65"},
    {"volcano", "volcano.sh/gpu-number", "9223372036854775807"},
    {"elastic", CORE, "6500"},
    {"elastic", CORE, "9223372036854775800"},
};

START_TEST(more_cards_than_are_told_apart_count_everywhere)
{
    const struct many_case *c = &many_cases[_i];

    add_node();
    g_autofree char *warning = held(POD("ml", "m", NOTHING, {c->resource, c->amount}));
    ck_assert_ptr_nonnull(strstr(warning, "more than 64"));
    ck_assert_str_eq(ledger_get(book, "m")->dialect->name, c->dialect);
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_exclusive, 1);
}
END_TEST

START_TEST(more_containers_than_are_told_apart_count_everywhere)
{
    static const char *const resources[] = {QCORE};

    for (size_t k = 0; k < G_N_ELEMENTS(resources); k++) {
        struct string_pair pair = {resources[k], "5"};
        struct container_view containers[65];
        add_node();
        for (size_t i = 0; i < G_N_ELEMENTS(containers); i++)
            containers[i] = (struct container_view){.name = "c", .limits = {&pair, 1}};
        struct pod_view pod = {.ns = "ml", .name = "m", .uid = "m", .containers = containers,
                               .n_containers = G_N_ELEMENTS(containers)};
        g_free(held(&pod));
        ck_assert_int_eq(ledger_node(book, "n1")->unplaced_exclusive, 1);
        ledger_drop(book, "m");
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("counted");
    TCase *tc = tcase_create("counted");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, intels_cards_are_counted);
    tcase_add_test(tc, intels_cards_are_no_others);
    tcase_add_test(tc, intels_older_and_longer_labels_are_read);
    tcase_add_loop_test(tc, what_gas_does_not_say_counts_everywhere, 0,
                        G_N_ELEMENTS(odd_gas_cards));
    tcase_add_test(tc, koordinators_cards_are_left_alone);
    tcase_add_test(tc, koordinators_init_containers_do_not_add_up);
    tcase_add_test(tc, koordinators_other_words_count);
    tcase_add_test(tc, more_cards_than_asked_for_count_everywhere);
    tcase_add_test(tc, koordinators_scheduler_places_whole_cards);
    tcase_add_test(tc, koordinators_uuids_go_before_its_numbers);
    tcase_add_test(tc, koordinators_numbers_do_where_nobody_tells_uuids);
    tcase_add_test(tc, fewer_cards_than_asked_for_count_everywhere);
    tcase_add_loop_test(tc, what_koordinator_does_not_say_counts_everywhere, 0,
                        G_N_ELEMENTS(odd_cases));
    tcase_add_test(tc, koordinators_pods_are_refused);
    tcase_add_test(tc, a_card_that_kai_reserved_is_left_alone);
    tcase_add_test(tc, a_card_that_kai_reserved_by_uuid_is_left_alone);
    tcase_add_test(tc, kais_card_counts_beside_the_device);
    tcase_add_loop_test(tc, qgpus_pods_are_refused, 0, G_N_ELEMENTS(qgpu_cases));
    tcase_add_test(tc, qgpus_pods_count_on_every_card);
    tcase_add_loop_test(tc, more_cards_than_are_told_apart_count_everywhere, 0,
                        G_N_ELEMENTS(many_cases));
    tcase_add_test(tc, more_containers_than_are_told_apart_count_everywhere);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
