/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"
#include "suite.h"

#define CORE "elasticgpu.io/gpu-core"
#define MEMORY "elasticgpu.io/gpu-memory"
#define MARK "elasticgpu.io/assumed"
#define KEY(name) "elasticgpu.io/container-" name

#define WITH(name_, ...)                                                                           \
    {                                                                                              \
        .name = name_, .limits = PAIRS(__VA_ARGS__)                                                \
    }
#define INIT(name_, ...)                                                                           \
    {                                                                                              \
        .name = name_, .init = true, .limits = PAIRS(__VA_ARGS__)                                  \
    }
#define SIDECAR(name_, ...)                                                                        \
    {                                                                                              \
        .name = name_, .init = true, .sidecar = true, .limits = PAIRS(__VA_ARGS__)                 \
    }
#define PLAIN(name_)                                                                               \
    {                                                                                              \
        .name = name_, .limits = PAIRS({"cpu", "500m"})                                            \
    }
#define POD(uid_, ...) (&(struct pod_view){.ns = "ml", .name = uid_, .uid = uid_, __VA_ARGS__})
#define OF(uid, ...) POD(uid, CONTAINERS(WITH("main", __VA_ARGS__)))
#define NODE(name_, ...) (&(struct node_view){.name = name_, .capacity = PAIRS(__VA_ARGS__)})

/* --- nodes ---------------------------------------------------------------------------------- */

struct node_case {
    struct string_pair capacity[2];
    const char *dialect; /* NULL: none; "": an error */
    int32_t n_cards;
    int64_t card_bytes;
};

static const struct node_case node_cases[] = {
    {{{CORE, "200"}, {MEMORY, "32320"}}, "elastic", 2, 16160 * MIB},
    {{{CORE, "200"}, {MEMORY, "32321"}}, "elastic", 2, 16160 * MIB},
    {{{"elasticgpu.com/gpu-core", "100"}, {"elasticgpu.com/gpu-memory", "16160"}},
     "elastic-com",
     1,
     16160 * MIB},
    {{{"nano-gpu.io/gpu-core", "800"}, {"nano-gpu.io/gpu-memory", "8000"}}, "nano-io", 8, 1000 * MIB},
    {{{"nano-gpu/gpu-percent", "200"}, {"cpu", "8"}}, "nano", 2, 0},
    {{{CORE, "25600"}, {MEMORY, "0"}}, "elastic", 256, 0},
    {{{CORE, "0"}, {MEMORY, "0"}}, NULL},
    {{{"cpu", "8"}, {"memory", "8Gi"}}, NULL},
    {{{CORE, "99"}, {MEMORY, "100"}}, ""},
    {{{CORE, "150"}, {MEMORY, "100"}}, ""},
    {{{CORE, "25700"}, {MEMORY, "100"}}, ""},
    {{{CORE, "0"}, {MEMORY, "100"}}, ""},
    {{{CORE, "x"}, {MEMORY, "100"}}, ""},
    {{{CORE, "100"}, {MEMORY, "1.5"}}, ""},
};

START_TEST(nodes_are_read)
{
    const struct node_case *c = &node_cases[_i];
    struct node_view view = {.name = "n1", .capacity = {c->capacity, 2}};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    bool claims = dialect_read_topology(&view, &options, topology, &warning, &error);
    ck_assert_int_eq(claims, c->dialect && *c->dialect);
    ck_assert_int_eq(error != NULL, c->dialect && !*c->dialect);
    if (error)
        ck_assert_ptr_nonnull(strstr(error->message, "'n1'"));
    if (!claims)
        return;
    ck_assert_str_eq(topology->dialect->name, c->dialect);
    ck_assert_int_eq(topology->n_cards, c->n_cards);
    for (int32_t i = 0; i < c->n_cards; i++)
        ck_assert_int_eq(topology->cards[i].memory, c->card_bytes);
}
END_TEST

/* --- requests ------------------------------------------------------------------------------- */

struct request_case {
    struct string_pair limits[2];
    const char *says; /* part of the error; NULL: none */
    int32_t count;    /* 0: asks for nothing */
    int32_t core;
    bool exclusive;
    int64_t memory; /* bytes, or thousandths of a card that is held whole */
};

#define COM_CORE "elasticgpu.com/gpu-core"
#define NANO_CORE "nano-gpu.io/gpu-core"
#define PERCENT "nano-gpu/gpu-percent"

static const struct request_case request_cases[] = {
    {{{CORE, "30"}, {MEMORY, "256"}}, NULL, 1, 300, false, 256 * MIB},
    {{{CORE, "1"}, {MEMORY, "0"}}, NULL, 1, 10, false, 0},
    {{{CORE, "0"}, {MEMORY, "256"}}, NULL, 1, 0, false, 256 * MIB},
    {{{CORE, "99"}, {MEMORY, "0"}}, NULL, 1, 990, false, 0},
    {{{CORE, "100"}, {MEMORY, "256"}}, NULL, 1, 1000, true, 1000},
    {{{CORE, "200"}, {MEMORY, "0"}}, NULL, 2, 1000, true, 1000},
    {{{COM_CORE, "200"}, {"cpu", "1"}}, NULL, 2, 1000, true, 1000},
    {{{NANO_CORE, "100"}, {"cpu", "1"}}, NULL, 1, 1000, true, 1000},
    {{{PERCENT, "25"}, {"cpu", "1"}}, NULL, 1, 250, false, 0},
    {{{CORE, "0"}, {MEMORY, "0"}}},
    {{{"cpu", "1"}, {"memory", "1"}}},
    /* what the agent could not carry out */
    {{{CORE, "200"}, {MEMORY, "256"}}, "without gpu-memory"},
    {{{CORE, "101"}, {MEMORY, "0"}}, "multiple"},
    {{{CORE, "150"}, {MEMORY, "0"}}, "multiple"},
    {{{CORE, "250"}, {MEMORY, "0"}}, "multiple"},
    {{{CORE, "9223372036854775800"}, {MEMORY, "0"}}, "fewer cards"},
    {{{NANO_CORE, "200"}, {"cpu", "1"}}, "one card"},
    {{{PERCENT, "101"}, {"cpu", "1"}}, "one card"},
    /* no amount */
    {{{CORE, "-1"}, {MEMORY, "0"}}, CORE},
    {{{CORE, "1"}, {MEMORY, "1.5"}}, MEMORY},
    /* two spellings */
    {{{CORE, "10"}, {COM_CORE, "10"}}, "in two ways"},
    {{{CORE, "10"}, {PERCENT, "10"}}, "in two ways"},
};

START_TEST(requests_are_read)
{
    const struct request_case *c = &request_cases[_i];
    struct container_view container = {.name = "main", .limits = {c->limits, 2}};
    struct pod_view view = *POD("a", .containers = &container, .n_containers = 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&view, &options, &error);

    ck_assert_int_eq(error != NULL, c->says != NULL);
    if (error)
        ck_assert_msg(strstr(error->message, c->says), "%s", error->message);
    ck_assert_int_eq(request != NULL, c->count > 0);
    if (!request)
        return;
    ck_assert_uint_eq(request->n_asks, 1);
    ck_assert_int_eq(request->asks[0].count, c->count);
    ck_assert_int_eq(request->asks[0].core, c->core);
    ck_assert_int_eq(request->asks[0].exclusive, c->exclusive);
    ck_assert_int_eq(request->asks[0].memory.value, c->memory);
}
END_TEST

#define LONG_53 "a1234567890123456789012345678901234567890123456789012"

START_TEST(a_containers_name_must_fit_its_annotation)
{
    struct container_view containers[2] = {WITH(LONG_53, {CORE, "10"}),
                                           PLAIN(LONG_53 "0123456789")};
    struct pod_view view = *POD("a", .containers = containers, .n_containers = 2);
    g_autoptr(GError) error = NULL;

    desk_node(NODE("n1", {CORE, "100"}, {MEMORY, "100"}));
    desk_expect(&view, "n1", MARK "=true " KEY(LONG_53) "=0");
    containers[0].name = LONG_53 "3";
    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "53 characters"));
    g_clear_error(&error);
    containers[0].limits = PAIRS({NANO_CORE, "10"}); /* "gpu-" is shorter */
    g_autoptr(request) request = dialect_read_request(&view, &options, &error);
    ck_assert_ptr_nonnull(request);
}
END_TEST

/* --- allocations ---------------------------------------------------------------------------- */

struct card_case {
    const char *core, *cards, *mark;
    enum distrust distrust;
    int32_t found[3]; /* cards of the shares, then -2 */
};

#define UNKNOWN CARD_UNKNOWN

static const struct card_case card_cases[] = {
    {"30", "1", "true", DISTRUST_NONE, {1, -2}},
    {"30", "1", NULL, DISTRUST_NONE, {1, -2}},
    {"200", "0,2", "true", DISTRUST_NONE, {0, 2, -2}},
    {"200", "0", "true", DISTRUST_EDITED, {0, UNKNOWN, -2}},
    {"30", "1,2", "true", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {"200", "0,1,2", "true", DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {"200", "0,1,2", NULL, DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {"30", NULL, "true", DISTRUST_LOST, {UNKNOWN, -2}},
    {"30", NULL, NULL, DISTRUST_UNMARKED, {UNKNOWN, -2}},
    {"30", "-1", "true", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {"30", "", "true", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {"30", "256", "true", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {"200", "0,x", "true", DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {"150", "1", "true", DISTRUST_EDITED, {1, UNKNOWN, -2}}, /* by a scheduler that lets it pass */
    {"150", "1,0", "true", DISTRUST_NONE, {1, 0, -2}},
};

START_TEST(cards_are_read)
{
    const struct card_case *c = &card_cases[_i];
    struct string_pair annotations[2];
    struct pod_view view = *OF("a", {CORE, c->core});
    g_autofree char *warning = NULL;
    size_t n = 0;

    if (c->cards)
        annotations[n++] = (struct string_pair){KEY("main"), c->cards};
    if (c->mark)
        annotations[n++] = (struct string_pair){MARK, c->mark};
    view.annotations = (struct string_pairs){annotations, n};
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);
    ck_assert_int_eq(allocation->distrust, c->distrust);
    ck_assert_int_eq(warning != NULL, c->distrust != DISTRUST_NONE);
    ck_assert(!allocation->waiting);
    for (uint32_t i = 0; i < allocation->n_shares; i++)
        ck_assert_int_eq(allocation->shares[i].card, c->found[i]);
    ck_assert_int_eq(c->found[allocation->n_shares], -2);
}
END_TEST

START_TEST(what_cannot_be_read_holds_everything)
{
    struct pod_view view = *OF("a", {CORE, "many"});
    g_autofree char *warning = NULL;
    const struct node *node = desk_node(NODE("n1", {CORE, "200"}, {MEMORY, "200"}));

    ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
    ck_assert_ptr_nonnull(strstr(warning, CORE));
    ck_assert_int_eq(ledger_get(book, "a")->distrust, DISTRUST_UNREAD);
    ck_assert_int_eq(node->unplaced_exclusive, 1);
    desk_expect(OF("b", {CORE, "1"}), "n1", "insufficient_memory");
}
END_TEST

/* --- the whole way -------------------------------------------------------------------------- */

START_TEST(each_container_has_its_own_card)
{
    desk_node(NODE("n1", {CORE, "200"}, {MEMORY, "32320"}));
    desk_expect(POD("a", CONTAINERS(WITH("x", {CORE, "30"}, {MEMORY, "8000"}), PLAIN("log"),
                                    WITH("y", {CORE, "50"}, {MEMORY, "8000"}))),
                "n1", MARK "=true " KEY("x") "=0 " KEY("y") "=0");
    desk_expect(POD("b", CONTAINERS(WITH("x", {CORE, "30"}), WITH("y", {CORE, "90"}))), "n1",
                "insufficient_core");
    desk_expect(POD("b", CONTAINERS(WITH("x", {CORE, "20"}), WITH("y", {CORE, "90"}))), "n1",
                MARK "=true " KEY("x") "=0 " KEY("y") "=1");
    const struct node *node = ledger_node(book, "n1");
    ck_assert_int_eq(node->cards[0].core_used, 1000);
    ck_assert_int_eq(node->cards[1].core_used, 900);
    ck_assert_int_eq(node->cards[0].memory_used, 16000 * MIB);
}
END_TEST

START_TEST(whole_cards_are_held_alone)
{
    desk_node(NODE("n1", {CORE, "300"}, {MEMORY, "30000"}));
    desk_expect(OF("share", {CORE, "10"}, {MEMORY, "1"}), "n1", MARK "=true " KEY("main") "=0");
    desk_expect(OF("two", {CORE, "200"}), "n1", MARK "=true " KEY("main") "=1,2");
    desk_expect(OF("one", {CORE, "100"}), "n1", "insufficient_memory");
    desk_expect(OF("four", {CORE, "400"}), "n1", "card_count");
    desk_expect(OF("more", {CORE, "90"}, {MEMORY, "9999"}), "n1",
                MARK "=true " KEY("main") "=0");
    ck_assert_int_eq(ledger_node(book, "n1")->cards[2].memory_used, 10000 * MIB);
}
END_TEST

/* A side container without GPU leaves the card as it was: whole again once the pod is gone. */
START_TEST(containers_without_gpu_hold_nothing)
{
    desk_node(NODE("n1", {CORE, "100"}, {MEMORY, "1000"}));
    desk_expect(POD("a", CONTAINERS(WITH("x", {CORE, "100"}), PLAIN("log"))), "n1",
                MARK "=true " KEY("x") "=0");
    ledger_drop(book, "a");
    desk_expect(OF("b", {CORE, "100"}), "n1", MARK "=true " KEY("main") "=0");
}
END_TEST

START_TEST(equal_pods_need_not_wait)
{
    desk_node(NODE("n1", {CORE, "200"}, {MEMORY, "200"}));
    desk_expect(OF("a", {CORE, "60"}), "n1", MARK "=true " KEY("main") "=0");
    desk_expect(OF("b", {CORE, "60"}), "n1", MARK "=true " KEY("main") "=1");
    desk_expect(OF("c", {CORE, "60"}), "n1", "insufficient_core");
}
END_TEST

START_TEST(an_init_container_is_refused)
{
    desk_node(NODE("n1", {CORE, "200"}, {MEMORY, "200"}));
    desk_expect(POD("a", CONTAINERS(WITH("x", {CORE, "10"}), INIT("i", {CORE, "10"}))), "n1",
                "gpu_init_container");
    desk_expect(POD("a", CONTAINERS(WITH("x", {CORE, "10"}), SIDECAR("i", {CORE, "10"}))), "n1",
                "gpu_init_container");
}
END_TEST

struct spelling_case {
    const char *core, *memory, *written;
};

static const struct spelling_case spelling_cases[] = {
    {CORE, MEMORY, MARK "=true " KEY("main") "=0"},
    {COM_CORE, "elasticgpu.com/gpu-memory",
     "elasticgpu.io/assumed=true elasticgpu.io/container-main=0"},
    {NANO_CORE, "nano-gpu.io/gpu-memory", "nano-gpu.io/gpu=true nano-gpu.io/gpu-main=0"},
    {PERCENT, "cpu", "nano-gpu/assume=true nano-gpu/container-main=0"},
};

START_TEST(each_spelling_is_of_its_own_nodes)
{
    const struct spelling_case *c = &spelling_cases[_i];

    for (size_t i = 0; i < G_N_ELEMENTS(spelling_cases); i++) {
        const struct spelling_case *on = &spelling_cases[i];
        desk_node(NODE("n1", {on->core, "100"}, {on->memory, "1000"}));
        desk_expect(OF("a", {c->core, "40"}, {c->memory, "10"}), "n1",
                    on == c ? c->written : "other_dialect");
    }
}
END_TEST

START_TEST(warnings_quote_a_little)
{
    g_autofree char *junk = g_strnfill(200000, 'x');
    struct pod_view pods[] = {*OF("a", {CORE, "5"}), *OF("a", {CORE, junk})};
    char *texts[2] = {0};

    pods[0].annotations = PAIRS({KEY("main"), junk});
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        allocation_free(dialect_read_allocation(&pods[i], &options, &texts[i]));
        ck_assert_ptr_nonnull(texts[i]);
        ck_assert_msg(strlen(texts[i]) < 250, "%.300s", texts[i]);
        g_free(texts[i]);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("elastic");
    TCase *tc = tcase_create("elastic");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, nodes_are_read, 0, G_N_ELEMENTS(node_cases));
    tcase_add_loop_test(tc, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(tc, a_containers_name_must_fit_its_annotation);
    tcase_add_loop_test(tc, cards_are_read, 0, G_N_ELEMENTS(card_cases));
    tcase_add_test(tc, what_cannot_be_read_holds_everything);
    tcase_add_test(tc, each_container_has_its_own_card);
    tcase_add_test(tc, whole_cards_are_held_alone);
    tcase_add_test(tc, containers_without_gpu_hold_nothing);
    tcase_add_test(tc, equal_pods_need_not_wait);
    tcase_add_test(tc, an_init_container_is_refused);
    tcase_add_loop_test(tc, each_spelling_is_of_its_own_nodes, 0, G_N_ELEMENTS(spelling_cases));
    tcase_add_test(tc, warnings_quote_a_little);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
