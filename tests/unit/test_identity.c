/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that come back under other numbers, or other names, while pods run on them. */
#include "desk.h"
#include "suite.h"

#define REGISTERED "hami.io/node-nvidia-register"
#define FORMER "gpuledger.io/former-uuids"
#define CARD(index, uuid)                                                                          \
    "{\"id\":\"" uuid "\",\"index\":" index ",\"count\":10,\"devmem\":16384,\"devcore\":100,"      \
    "\"type\":\"NVIDIA-T4\",\"numa\":0,\"health\":true}"

static const struct node *add_node(const char *cards, const char *former)
{
    const struct string_pair annotations[] = {{REGISTERED, cards}, {FORMER, former}};
    const struct node_view view = {.name = "n", .annotations = {annotations, former ? 2 : 1}};

    return desk_node(&view);
}

/* 4 GiB of the one card, 8 GiB of the other. */
static void add_pods(void)
{
    static const char *const held[] = {"GPU-a,NVIDIA,4096,0:;", "GPU-b,NVIDIA,8192,0:;"};
    static const char *const limits[] = {"4096", "8192"};

    for (size_t i = 0; i < G_N_ELEMENTS(held); i++) {
        g_autofree char *uid = g_strdup_printf("u%zu", i);
        struct pod_view pod = {
            .ns = "ml",
            .name = uid,
            .uid = uid,
            .node_name = "n",
            .annotations = PAIRS({"hami.io/vgpu-devices-allocated", held[i]},
                                 {"hami.io/bind-phase", "success"}, {"hami.io/vgpu-node", "n"}),
            CONTAINERS({.name = "c",
                        .limits = PAIRS({"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", limits[i]})})};
        ledger_put(book, "n", dialect_read_allocation(&pod, &options, NULL));
    }
}

static void expect_use(const struct node *node, int64_t gib_of_0, int64_t gib_of_1,
                       int64_t gib_anywhere)
{
    ck_assert_int_eq(node->cards[0].memory_used, gib_of_0 * GIB);
    ck_assert_int_eq(node->cards[1].memory_used, gib_of_1 * GIB);
    ck_assert_int_eq(node->unplaced_memory, gib_anywhere * GIB);
}

START_TEST(other_numbers_change_nothing)
{
    add_node("[" CARD("0", "GPU-a") "," CARD("1", "GPU-b") "]", NULL);
    add_pods();
    expect_use(ledger_node(book, "n"), 4, 8, 0);
    expect_use(add_node("[" CARD("0", "GPU-b") "," CARD("1", "GPU-a") "]", NULL), 8, 4, 0);
}
END_TEST

START_TEST(other_names_may_be_any_card)
{
    add_node("[" CARD("0", "GPU-a") "," CARD("1", "GPU-b") "]", NULL);
    add_pods();
    expect_use(add_node("[" CARD("0", "GPU-x") "," CARD("1", "GPU-y") "]", NULL), 0, 0, 12);
}
END_TEST

START_TEST(former_names_say_which)
{
    add_node("[" CARD("0", "GPU-a") "," CARD("1", "GPU-b") "]", NULL);
    add_pods();
    const struct node *node = add_node("[" CARD("0", "GPU-x") "," CARD("1", "GPU-y") "]",
                                       "0=GPU-b, 1=GPU-a");
    expect_use(node, 8, 4, 0);
    ck_assert_str_eq(node->cards[0].uuid, "GPU-x"); /* what the next pod is told */
}
END_TEST

START_TEST(a_former_name_must_be_one)
{
    static const char *const odd[] = {"0", "0=", "GPU-a", "2=GPU-a"};
    g_autoptr(topology) topology = topology_new();

    for (size_t i = 0; i < G_N_ELEMENTS(odd); i++) {
        const struct string_pair annotations[] = {
            {REGISTERED, "[" CARD("0", "GPU-x") "," CARD("1", "GPU-y") "]"}, {FORMER, odd[i]}};
        const struct node_view view = {.name = "n", .annotations = {annotations, 2}};
        g_autofree char *warning = NULL;
        ck_assert(dialect_read_topology(&view, &options, topology, &warning, NULL));
        ck_assert_msg(warning && strstr(warning, FORMER), "'%s': %s", odd[i], warning);
        topology->n_dialects = 0;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("identity");
    TCase *tests = tcase_create("identity");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, other_numbers_change_nothing);
    tcase_add_test(tests, other_names_may_be_any_card);
    tcase_add_test(tests, former_names_say_which);
    tcase_add_test(tests, a_former_name_must_be_one);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
