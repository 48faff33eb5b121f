/* SPDX-License-Identifier: Apache-2.0 */
/* What ACK's cGPU adds to gpushare: compute beside memory, and the node's own policy. */
#include "desk.h"
#include "suite.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define CORE "aliyun.com/gpu-core.percentage"
#define SCHEDULE "ack.node.gpu.schedule"
#define PLACEMENT "ack.node.gpu.placement"

#define POD(uid_, ...)                                                                             \
    (&(struct pod_view){.ns = "ml",                                                                \
                        .name = uid_,                                                              \
                        .uid = uid_,                                                               \
                        CONTAINERS({.name = "c", .limits = PAIRS(__VA_ARGS__)})})

static void add_node(const char *name, const char *core, const char *schedule,
                     const char *placement)
{
    desk_node(&(struct node_view){
        .name = name,
        .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}, {CORE, core}),
        .labels = PAIRS({SCHEDULE, schedule}, {PLACEMENT, placement}),
    });
}

/* "0" if the pod got card 0, or why it got none. */
static void expect(const struct pod_view *pod, const char *node, const char *answer)
{
    g_autofree char *found = desk_bind(pod, node);
    const char *idx = strstr(found, "IDX=");
    g_autofree char *card = idx ? g_strndup(idx + 4, strcspn(idx + 4, " ")) : g_strdup(found);

    ck_assert_str_eq(card, answer);
}

/* The plugin has matched it. */
static void take(const char *uid)
{
    const struct allocation *placed = ledger_get(book, uid);
    struct allocation *taken = allocation_dup(placed);

    taken->waiting = false;
    ledger_put(book, placed->node->name, taken);
}

START_TEST(memory_and_compute_must_fit_on_one_card)
{
    add_node("n1", "200", "core_mem", "");
    expect(POD("a", {MEM, "2"}, {CORE, "80"}), "n1", "0");
    expect(POD("b", {MEM, "10"}, {CORE, "10"}), "n1", "0");
    expect(POD("c", {MEM, "8"}, {CORE, "30"}), "n1", "1"); /* card 0 has neither */
    expect(POD("d", {MEM, "3"}, {CORE, "71"}), "n1", "insufficient_core");
    expect(POD("e", {MEM, "3"}, {CORE, "70"}), "n1", "1");
    expect(POD("f", {MEM, "1"}), "n1", "0"); /* none in particular, of what is left */
    const struct node *node = ledger_node(book, "n1");
    ck_assert_int_eq(node->cards[0].core_used, 900);
    ck_assert_int_eq(node->cards[1].core_used, 1000);
}
END_TEST

struct schedule_case {
    const char *core, *schedule;
    bool divides;
};

static const struct schedule_case schedule_cases[] = {
    {"200", "core_mem", true}, {"200", "", true}, {"0", "core_mem", true}, {"0", "cgpu"},
    {"0", "share"},            {"0", "mps"},      {"0", ""},
};

START_TEST(compute_is_asked_of_nodes_that_divide_it)
{
    const struct schedule_case *c = &schedule_cases[_i];

    add_node("n1", c->core, c->schedule, "");
    expect(POD("a", {MEM, "8"}, {CORE, "30"}), "n1", c->divides ? "0" : "other_dialect");
    expect(POD("b", {MEM, "4"}), "n1", "0");
}
END_TEST

START_TEST(a_nodes_own_policy_counts)
{
    add_node("packed", "0", "cgpu", "binpack");
    add_node("spread", "0", "cgpu", "spread");
    add_node("odd", "0", "cgpu", "sideways");
    for (size_t i = 0; i < 3; i++) {
        static const char *const nodes[] = {"packed", "spread", "odd"};
        g_autofree char *first = g_strdup_printf("a%zu", i), *second = g_strdup_printf("b%zu", i);
        expect(POD(first, {MEM, "4"}), nodes[i], "0");
        expect(POD(second, {MEM, "5"}), nodes[i], i == 1 ? "1" : "0");
    }
}
END_TEST

struct wrong_case {
    const char *mem, *core;
};

static const struct wrong_case wrong_cases[] = {
    {"0", "30"}, {"8", "101"}, {"8", "-1"}, {"8", "0.5"}, {"8", "9223372036854775807"},
};

START_TEST(what_makes_no_sense_is_an_error)
{
    const struct wrong_case *c = &wrong_cases[_i];
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(
        dialect_read_request(POD("a", {MEM, c->mem}, {CORE, c->core}), &options, &error));
    ck_assert_ptr_nonnull(strstr(error->message, CORE));
}
END_TEST

/* By fewer multiprocessors: 10 % of 80 are 8, of 68 they are 7. */
START_TEST(compute_is_rounded_up_to_multiprocessors)
{
    static const struct {
        const char *label, *core;
        int32_t charged; /* thousandths, as people are told */
        int pods; /* that fit on a card */
    } cases[] = {{"80", "10", 100, 10}, {"68", "10", 103, 9}, {"1", "10", 1000, 1},
                 {"80", "1", 13, 80},   {"132", "33", 334, 3}, {"68", "7", 74, 13},
                 {"132", "50", 500, 2}, {"999", "1", 11, 99}, {"1000", "1", 10, 100}};

    options.gpushare_multiprocessors = true;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strdup_printf("%s-%s", cases[i].label, cases[i].core);
        struct node *node = desk_node(&(struct node_view){
            .name = name,
            .capacity = PAIRS({MEM, "200"}, {COUNT, "1"}),
            .labels = PAIRS({"nvidia.com/gpu.multiprocessors", cases[i].label}),
        });
        for (int pod = 0; pod <= cases[i].pods; pod++) {
            g_autofree char *uid = g_strdup_printf("%s-%s-%d", cases[i].label, cases[i].core, pod);
            expect(POD(uid, {MEM, "1"}, {CORE, cases[i].core}), name,
                   pod < cases[i].pods ? "0" : "insufficient_core");
            if (pod == 0)
                ck_assert_int_eq(card_core_told(&node->cards[0], node->cards[0].core_used),
                                 cases[i].charged);
            if (pod < cases[i].pods)
                take(uid);
        }
    }
}
END_TEST

START_TEST(multiprocessors_count_where_they_are_known_and_meant)
{
    static const char *const labels[] = {"", "0", "many", "1001", "-1"};

    for (size_t i = 0; i <= G_N_ELEMENTS(labels); i++) {
        bool meant = i < G_N_ELEMENTS(labels);
        options.gpushare_multiprocessors = meant;
        desk_node(&(struct node_view){
            .name = "n1",
            .capacity = PAIRS({MEM, "15"}, {COUNT, "1"}),
            .labels = PAIRS({"nvidia.com/gpu.multiprocessors", meant ? labels[i] : "80"}),
        });
        expect(POD("a", {MEM, "1"}, {CORE, "10"}), "n1", "other_dialect");
    }
}
END_TEST

/* What nobody states is not zero. */
START_TEST(a_node_side_without_memory_leaves_it_to_others)
{
    static const char *const percent = "nano-gpu/gpu-percent";
    struct node *node = desk_node(
        &(struct node_view){.name = "n1",
                            .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}, {percent, "200"}),
                            .annotations = PAIRS({"gpuledger.io/card-order", "0,1"})});

    ck_assert_int_eq(node->n_dialects, 2);
    ck_assert_int_eq(node->cards[0].memory, 15 * GIB);
    expect(POD("a", {MEM, "8"}), "n1", "0");
    desk_expect(POD("b", {percent, "30"}), "n1",
                "nano-gpu/assume=true nano-gpu/container-c=1");
}
END_TEST

/* "0" or the reason, for a pod that wants the kernel to keep it apart. */
static void expect_kept_apart(const char *node, const char *answer)
{
    struct pod_view pod = *POD("k", {MEM, "1"});

    pod.annotations = PAIRS({"gpuledger.io/isolation", "kernel"});
    expect(&pod, node, answer);
    ledger_drop(book, "k");
}

START_TEST(cgpu_keeps_pods_apart_by_the_kernel)
{
    add_node("a", "0", "cgpu", "");
    add_node("b", "0", "core_mem", "");
    add_node("c", "200", "", "");
    add_node("d", "0", "share", "");
    add_node("e", "0", "", "");
    desk_node(&(struct node_view){
        .name = "f",
        .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}, {CORE, "200"}),
        .labels = PAIRS({SCHEDULE, "core_mem"}, {"cgpu.disable.isolation", "true"}),
    });
    expect_kept_apart("a", "0");
    expect_kept_apart("b", "0");
    expect_kept_apart("c", "0");
    expect_kept_apart("d", "isolation");
    expect_kept_apart("e", "isolation");
    expect_kept_apart("f", "isolation");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("cgpu");
    TCase *tc = tcase_create("cgpu");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, cgpu_keeps_pods_apart_by_the_kernel);
    tcase_add_test(tc, memory_and_compute_must_fit_on_one_card);
    tcase_add_loop_test(tc, compute_is_asked_of_nodes_that_divide_it, 0,
                        G_N_ELEMENTS(schedule_cases));
    tcase_add_test(tc, a_nodes_own_policy_counts);
    tcase_add_loop_test(tc, what_makes_no_sense_is_an_error, 0, G_N_ELEMENTS(wrong_cases));
    tcase_add_test(tc, compute_is_rounded_up_to_multiprocessors);
    tcase_add_test(tc, multiprocessors_count_where_they_are_known_and_meant);
    tcase_add_test(tc, a_node_side_without_memory_leaves_it_to_others);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
