/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"
#include "suite.h"

#define MEMORY "volcano.sh/gpu-memory"
#define NUMBER "volcano.sh/gpu-number"
#define INDEX "volcano.sh/gpu-index"
#define TIME "volcano.sh/predicate-time"
#define ASSIGNED "volcano.sh/gpu-assigned"
#define UNHEALTHY "volcano.sh/gpu-unhealthy-ids"
#define GFD "nvidia.com/gpu.memory"

#define WITH(resource, amount)                                                                     \
    {                                                                                              \
        .name = "c", .limits = PAIRS({resource, amount})                                           \
    }
#define INIT(resource, amount)                                                                     \
    {                                                                                              \
        .name = "i", .init = true, .limits = PAIRS({resource, amount})                             \
    }
#define SIDECAR(resource, amount)                                                                  \
    {                                                                                              \
        .name = "s", .init = true, .sidecar = true, .limits = PAIRS({resource, amount})            \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        .name = "p", .limits = PAIRS({"cpu", "500m"})                                              \
    }
#define POD(uid_, ...) (&(struct pod_view){.ns = "ml", .name = uid_, .uid = uid_, __VA_ARGS__})
#define OF(uid, resource, amount) POD(uid, CONTAINERS(WITH(resource, amount)))

static const struct dialect *volcano(void)
{
    return dialect_find("volcano");
}

/* --- nodes ---------------------------------------------------------------------------------- */

struct node_case {
    const char *memory, *number, *unhealthy, *label;
    int64_t factor;
    int32_t n_cards; /* 0: not of this dialect; -1: an error */
    int64_t card_bytes;
    const char *mode;
    uint32_t sick; /* bit by card */
    bool warns;
};

static const struct node_case node_cases[] = {
    {"32320", "2", NULL, NULL, 0, 2, 16160 * MIB, "memory"},
    {"32320", "2", NULL, NULL, 1, 2, 16160 * MIB, "memory"},
    {"3232", "2", NULL, NULL, 10, 2, 16160 * MIB, "memory"},
    {"32321", "2", NULL, NULL, 0, 2, 16160 * MIB, "memory"},
    {"32320", "2", NULL, "16160", 0, 2, 16160 * MIB, "memory"},
    {NULL, "2", NULL, NULL, 0, 2, 0, "number"},
    {"0", "2", NULL, NULL, 0, 2, 0, "number"}, /* kubelet keeps what another plugin left */
    {"0", "2", NULL, "16160", 10, 2, 16160 * MIB, "number"},
    {"0", "2", NULL, "huge", 0, 2, 0, "number"},
    {"32320", "2", "1", NULL, 0, 2, 16160 * MIB, "memory", 2},
    {"32320", "2", "0,1", NULL, 0, 2, 16160 * MIB, "memory", 3},
    {"32320", "2", "", NULL, 0, 2, 16160 * MIB, "memory", 0},
    {"32320", "2", "1,x", NULL, 0, 2, 16160 * MIB, "memory", 2, true},
    {"32320", "2", "-1,256", NULL, 0, 2, 16160 * MIB, "memory", 0, true},
    {"9223372036854775807", "1", NULL, NULL, 1000000, 1, AMOUNT_BYTES_MAX, "memory"},
    {NULL, NULL},
    {"0", "0"},
    {"32320", NULL, .n_cards = -1},
    {"32320", "0", .n_cards = -1},
    {"1", "2", .n_cards = -1},
    {"32320", "257", .n_cards = -1},
    {"x", "2", .n_cards = -1},
    {"32320", "1.5", .n_cards = -1},
};

static struct string_pairs present(struct string_pair *items, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (items[i].value)
            items[kept++] = items[i];
    }
    return (struct string_pairs){items, kept};
}

START_TEST(nodes_are_read)
{
    const struct node_case *c = &node_cases[_i];
    struct string_pair capacity[] = {{MEMORY, c->memory}, {NUMBER, c->number}};
    struct string_pair annotations[] = {{UNHEALTHY, c->unhealthy}};
    struct string_pair labels[] = {{GFD, c->label}};
    struct node_view view = {
        .name = "n1",
        .capacity = present(capacity, 2),
        .annotations = present(annotations, 1),
        .labels = present(labels, 1),
    };
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    options.volcano_memory_factor = c->factor;
    bool claims = volcano()->read_topology(&view, &options, topology, &warning, &error);
    ck_assert_int_eq(claims, c->n_cards > 0);
    ck_assert_int_eq(error != NULL, c->n_cards < 0);
    ck_assert_int_eq(warning != NULL, c->warns);
    if (error)
        ck_assert_ptr_nonnull(strstr(error->message, "'n1'"));
    if (!claims)
        return;
    ck_assert_int_eq(topology->n_cards, c->n_cards);
    for (int32_t i = 0; i < c->n_cards; i++) {
        ck_assert_int_eq(topology->cards[i].memory, c->card_bytes);
        ck_assert_str_eq(topology->cards[i].mode, c->mode);
        ck_assert_int_eq(topology->cards[i].unhealthy, c->sick >> i & 1);
    }
}
END_TEST

/* --- requests ------------------------------------------------------------------------------- */

struct request_case {
    struct container_view containers[4];
    int32_t asks; /* 0: none; -1: an error */
    int64_t matched;
    int32_t count;
    uint32_t traits;
};

#define SEVERAL REQUEST_SEVERAL_GPU_CONTAINERS
#define INIT_TRAIT REQUEST_GPU_INIT_CONTAINER

static const struct request_case request_cases[] = {
    {{WITH(MEMORY, "8000")}, 1, 8000, 1},
    {{PLAIN, WITH(MEMORY, "8k")}, 1, 8000, 1},
    {{WITH(MEMORY, "8000"), WITH(MEMORY, "5")}, 2, 8000, 1, SEVERAL},
    {{WITH(MEMORY, "8000"), INIT(MEMORY, "5")}, 2, 8000, 1, INIT_TRAIT},
    {{PLAIN, SIDECAR(MEMORY, "5")}, 1, 0, 1, INIT_TRAIT},
    {{WITH(MEMORY, "9223372036854775807")}, 1, INT64_MAX, 1},
    {{WITH(NUMBER, "2")}, 1, 2, 2},
    {{WITH(NUMBER, "256")}, 1, 256, 256},
    {{WITH(NUMBER, "4000000000")}, 1, 4000000000, 257},
    {{PLAIN}},
    {{WITH(MEMORY, "0"), WITH(NUMBER, "0")}},
    {{{.name = "c", .limits = PAIRS({MEMORY, "8000"}, {NUMBER, "0"})}}, 1, 8000, 1},
    /* both ways */
    {{{.name = "c", .limits = PAIRS({MEMORY, "8000"}, {NUMBER, "1"})}}, -1},
    {{WITH(MEMORY, "8000"), WITH(NUMBER, "1")}, -1},
    {{WITH(NUMBER, "1"), INIT(MEMORY, "8000")}, -1},
    {{WITH(MEMORY, "-1")}, -1},
    {{WITH(NUMBER, "1.5")}, -1},
    {{WITH(MEMORY, "x")}, -1},
};

static struct pod_view pod_of(const struct request_case *c)
{
    struct pod_view view = {.ns = "ml", .name = "a-0", .uid = "u1", .containers = c->containers};

    while (view.n_containers < G_N_ELEMENTS(c->containers) && c->containers[view.n_containers].name)
        view.n_containers++;
    return view;
}

START_TEST(requests_are_read)
{
    const struct request_case *c = &request_cases[_i];
    struct pod_view view = pod_of(c);
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&view, &options, &error);

    ck_assert_int_eq(error != NULL, c->asks < 0);
    ck_assert_int_eq(request != NULL, c->asks > 0);
    if (!request)
        return;
    ck_assert_ptr_eq(request->dialect, volcano());
    ck_assert_ptr_null(request->alternative);
    ck_assert_uint_eq(request->n_asks, (uint32_t)c->asks);
    ck_assert_int_eq(request->match_amount, c->matched);
    ck_assert_int_eq(request->asks[0].count, c->count);
    ck_assert_uint_eq(request->traits, c->traits);
}
END_TEST

START_TEST(an_amount_is_in_units_of_the_factor)
{
    options.volcano_memory_factor = 10;
    g_autoptr(request) request = dialect_read_request(OF("a", MEMORY, "800"), &options, NULL);

    ck_assert_int_eq(request->asks[0].memory.kind, AMOUNT_BYTES);
    ck_assert_int_eq(request->asks[0].memory.value, 8000 * MIB);
    ck_assert_int_eq(request->match_amount, 800);
}
END_TEST

/* --- allocations ---------------------------------------------------------------------------- */

struct card_case {
    const char *resource, *amount, *index, *time;
    enum distrust distrust;
    int32_t cards[3]; /* of the shares, then -2 */
};

#define UNKNOWN CARD_UNKNOWN

static const struct card_case card_cases[] = {
    {MEMORY, "8000", "1", "7", DISTRUST_NONE, {1, -2}},
    {MEMORY, "8000", "0,1", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {MEMORY, "8000", NULL, NULL, DISTRUST_UNMARKED, {UNKNOWN, -2}},
    {MEMORY, "8000", NULL, "7", DISTRUST_LOST, {UNKNOWN, -2}},
    {MEMORY, "8000", "x", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {MEMORY, "8000", "", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {MEMORY, "8000", "-1", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {MEMORY, "8000", "256", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {NUMBER, "2", "0,1", "7", DISTRUST_NONE, {0, 1, -2}},
    {NUMBER, "2", "3,1", "7", DISTRUST_NONE, {3, 1, -2}},
    {NUMBER, "2", "0", "7", DISTRUST_EDITED, {0, UNKNOWN, -2}},
    {NUMBER, "1", "0,1", "7", DISTRUST_MALFORMED, {UNKNOWN, -2}},
    {NUMBER, "2", "0,1,2", NULL, DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {NUMBER, "2", "", "7", DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {NUMBER, "2", "0,,1", "7", DISTRUST_MALFORMED, {UNKNOWN, UNKNOWN, -2}},
    {NUMBER, "2", NULL, NULL, DISTRUST_UNMARKED, {UNKNOWN, UNKNOWN, -2}},
};

START_TEST(cards_are_read)
{
    const struct card_case *c = &card_cases[_i];
    struct string_pair annotations[] = {{INDEX, c->index}, {TIME, c->time}};
    struct pod_view view = *OF("u1", c->resource, c->amount);
    g_autofree char *warning = NULL;

    view.annotations = present(annotations, G_N_ELEMENTS(annotations));
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);
    ck_assert_int_eq(allocation->distrust, c->distrust);
    ck_assert_int_eq(warning != NULL, c->distrust != DISTRUST_NONE);
    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        ck_assert_int_eq(allocation->shares[i].card, c->cards[i]);
        ck_assert_int_eq(allocation->shares[i].exclusive, g_str_equal(c->resource, NUMBER));
    }
    ck_assert_int_eq(c->cards[allocation->n_shares], -2);
}
END_TEST

/* Volcano's own scheduler binds these. */
START_TEST(several_containers_count)
{
    struct pod_view share = *POD("u1", CONTAINERS(WITH(MEMORY, "3"), WITH(MEMORY, "4"),
                                                  INIT(MEMORY, "9"), SIDECAR(MEMORY, "1")));
    struct pod_view whole =
        *POD("u2", CONTAINERS(WITH(NUMBER, "1"), WITH(NUMBER, "1"), INIT(NUMBER, "2")));

    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({MEMORY, "20"}, {NUMBER, "2"})});
    desk_node(&(struct node_view){.name = "n2", .capacity = PAIRS({NUMBER, "2"})});
    share.annotations = PAIRS({INDEX, "1"}, {TIME, "7"});
    whole.annotations = PAIRS({INDEX, "0,1"}, {TIME, "7"});
    ledger_put(book, "n1", dialect_read_allocation(&share, &options, NULL));
    ledger_put(book, "n2", dialect_read_allocation(&whole, &options, NULL));
    const struct node *n1 = ledger_node(book, "n1"), *n2 = ledger_node(book, "n2");
    ck_assert_int_eq(n1->cards[1].memory_used, 9 * MIB); /* not 8, not 17 */
    ck_assert_int_eq(n1->cards[0].memory_used, 0);
    ck_assert_int_eq(n2->cards[0].exclusive, 1);
    ck_assert_int_eq(n2->cards[1].exclusive, 1);
}
END_TEST

struct waiting_case {
    const char *phase, *assigned;
    bool started, terminating;
    bool is_assigned, waiting;
};

static const struct waiting_case waiting_cases[] = {
    {"Pending", "false", .waiting = true},
    {"Pending", NULL, .waiting = true}, /* a candidate without any mark */
    {NULL, NULL, .waiting = true},
    {"Pending", "false", .started = true, .waiting = true},
    {"Pending", NULL, .started = true, .waiting = true},
    {"Pending", NULL, .started = true, .terminating = true},
    {"Pending", NULL, .terminating = true, .waiting = true}, /* may still take another's place */
    {"Pending", "true", .is_assigned = true, .waiting = true},
    {"Pending", "true", .started = true, .is_assigned = true},
    {"Pending", "", .started = true, .is_assigned = true},
    {"Running", "false", .started = true},
    {"Running", NULL, .started = true},
};

START_TEST(waiting_is_what_the_plugin_may_still_match)
{
    const struct waiting_case *c = &waiting_cases[_i];
    struct string_pair annotations[] = {{INDEX, "1"}, {TIME, "7"}, {ASSIGNED, c->assigned}};
    struct pod_view view = *OF("u1", MEMORY, "5");

    view.annotations = present(annotations, G_N_ELEMENTS(annotations));
    view.phase = c->phase;
    view.started = c->started;
    view.terminating = c->terminating;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, NULL);
    ck_assert_int_eq(allocation->assigned, c->is_assigned);
    ck_assert_int_eq(allocation->waiting, c->waiting);
    ck_assert_int_eq(allocation->assume_time_ns, 7);
}
END_TEST

START_TEST(a_time_that_cannot_be_read_is_said)
{
    static const char *const texts[] = {"", "soon", "-1", "9223372036854775807", "1e9"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct pod_view view = *OF("u1", MEMORY, "5");
        g_autofree char *warning = NULL;
        view.annotations = PAIRS({INDEX, "1"}, {TIME, texts[i]});
        g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);
        ck_assert_int_eq(allocation->assume_time_ns, 0);
        ck_assert_ptr_nonnull(strstr(warning, TIME));
    }
}
END_TEST

/* --- the whole way -------------------------------------------------------------------------- */

/* What the plugin does with a pod that it has found. */
static void take(const char *uid, const char *resource, const char *amount, const char *index)
{
    struct pod_view view = *OF(uid, resource, amount);

    view.annotations = PAIRS({INDEX, index}, {TIME, "7"}, {ASSIGNED, "true"});
    view.started = true;
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
}

#define WRITTEN(index) INDEX "=" index " " ASSIGNED "=false"

START_TEST(one_of_a_size_at_a_time)
{
    desk_node(&(struct node_view){.name = "n1",
                                  .capacity = PAIRS({MEMORY, "32320"}, {NUMBER, "2"})});
    desk_expect(OF("a", MEMORY, "8000"), "n1", WRITTEN("0"));
    desk_expect(OF("b", MEMORY, "8000"), "n1", "wait"); /* on the same card, too */
    desk_expect(OF("d", MEMORY, "8001"), "n1", WRITTEN("0"));
    take("a", MEMORY, "8000", "0");
    desk_expect(OF("b", MEMORY, "8000"), "n1", WRITTEN("1"));
    take("b", MEMORY, "8000", "1");
    desk_expect(OF("c", MEMORY, "8000"), "n1", WRITTEN("1"));
    take("c", MEMORY, "8000", "1");
    desk_expect(OF("e", MEMORY, "8000"), "n1", "insufficient_memory");
    desk_expect(OF("f", MEMORY, "16161"), "n1", "card_too_small");
}
END_TEST

START_TEST(an_unhealthy_card_is_not_used)
{
    desk_node(&(struct node_view){.name = "n1",
                                  .annotations = PAIRS({UNHEALTHY, "0"}),
                                  .capacity = PAIRS({MEMORY, "32320"}, {NUMBER, "2"})});
    desk_expect(OF("a", MEMORY, "8000"), "n1", WRITTEN("1"));
    desk_expect(OF("b", MEMORY, "160"), "n1", WRITTEN("1"));
    desk_expect(OF("c", MEMORY, "16000"), "n1", "insufficient_memory");
    desk_node(&(struct node_view){.name = "n1",
                                  .annotations = PAIRS({UNHEALTHY, "0,1"}),
                                  .capacity = PAIRS({MEMORY, "32320"}, {NUMBER, "2"})});
    desk_expect(OF("d", MEMORY, "1"), "n1", "card_unhealthy");
}
END_TEST

START_TEST(whole_cards_by_number)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({NUMBER, "3"})});
    desk_expect(OF("one", NUMBER, "1"), "n1", WRITTEN("0"));
    desk_expect(OF("two", NUMBER, "2"), "n1", WRITTEN("1,2"));
    desk_expect(OF("more", NUMBER, "1"), "n1", "insufficient_memory");
    desk_expect(OF("four", NUMBER, "4"), "n1", "card_count");
    desk_expect(OF("many", NUMBER, "4000000000"), "n1", "card_count");
    ledger_drop(book, "two");
    desk_expect(OF("again", NUMBER, "1"), "n1", "wait"); /* it could swap with "one" */
    desk_expect(OF("pair", NUMBER, "2"), "n1", WRITTEN("1,2"));
}
END_TEST

START_TEST(two_cards_need_two_free_ones)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({NUMBER, "2"})});
    take("one", NUMBER, "1", "0");
    desk_expect(OF("two", NUMBER, "2"), "n1", "insufficient_memory");
    ledger_drop(book, "one");
    desk_expect(OF("two", NUMBER, "2"), "n1", WRITTEN("0,1"));
}
END_TEST

/* The plugin registers one of the two resources. */
START_TEST(a_node_serves_memory_or_number)
{
    desk_node(&(struct node_view){.name = "n1",
                                  .capacity = PAIRS({MEMORY, "32320"}, {NUMBER, "2"})});
    desk_node(&(struct node_view){.name = "n2", .capacity = PAIRS({NUMBER, "2"})});
    desk_expect(OF("a", NUMBER, "1"), "n1", "other_dialect");
    desk_expect(OF("a", MEMORY, "1"), "n2", "other_dialect");
    desk_expect(OF("a", NUMBER, "1"), "n2", WRITTEN("0"));
    desk_expect(OF("b", MEMORY, "1"), "n1", WRITTEN("0"));
}
END_TEST

START_TEST(what_the_plugin_cannot_serve_is_refused)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({MEMORY, "16160"}, {NUMBER, "1"})});
    desk_expect(POD("a", CONTAINERS(WITH(MEMORY, "1"), WITH(MEMORY, "2"))), "n1",
                "several_gpu_containers");
    desk_expect(POD("a", CONTAINERS(WITH(MEMORY, "1"), INIT(MEMORY, "1"))), "n1",
                "gpu_init_container");
    desk_expect(POD("a", CONTAINERS(WITH(MEMORY, "1"), SIDECAR(MEMORY, "1"))), "n1",
                "gpu_init_container");
}
END_TEST

START_TEST(a_mark_that_came_with_the_template_is_undone)
{
    struct pod_view view = *OF("a", MEMORY, "1");

    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({MEMORY, "16160"}, {NUMBER, "1"})});
    view.annotations = PAIRS({ASSIGNED, "true"});
    desk_expect(&view, "n1", WRITTEN("0"));
}
END_TEST

START_TEST(an_unmatched_pod_is_not_waited_for_for_ever)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({NUMBER, "2"})});
    desk_expect(OF("a", NUMBER, "1"), "n1", WRITTEN("0"));
    desk_expect(OF("b", NUMBER, "1"), "n1", "wait");
    now_ns += PATIENCE + SECOND;
    desk_expect(OF("b", NUMBER, "1"), "n1", "awaiting_assignment");
}
END_TEST

START_TEST(warnings_quote_a_little)
{
    g_autofree char *junk = g_strnfill(200000, 'x');
    struct node_view node = {.name = "n1",
                             .annotations = PAIRS({UNHEALTHY, junk}),
                             .capacity = PAIRS({MEMORY, "20"}, {NUMBER, "2"})};
    struct pod_view pods[] = {*OF("a", MEMORY, "5"), *OF("a", MEMORY, "5"), *OF("a", MEMORY, junk)};
    g_autoptr(topology) topology = topology_new();
    char *texts[4] = {0};

    pods[0].annotations = PAIRS({INDEX, junk});
    pods[1].annotations = PAIRS({INDEX, "0"}, {TIME, junk});
    ck_assert(volcano()->read_topology(&node, &options, topology, &texts[0], NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        allocation_free(dialect_read_allocation(&pods[i], &options, &texts[1 + i]));
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        ck_assert_ptr_nonnull(texts[i]);
        ck_assert_msg(strlen(texts[i]) < 250, "%.300s", texts[i]);
        g_free(texts[i]);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("volcano");
    TCase *tc = tcase_create("volcano");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, nodes_are_read, 0, G_N_ELEMENTS(node_cases));
    tcase_add_loop_test(tc, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(tc, an_amount_is_in_units_of_the_factor);
    tcase_add_loop_test(tc, cards_are_read, 0, G_N_ELEMENTS(card_cases));
    tcase_add_test(tc, several_containers_count);
    tcase_add_loop_test(tc, waiting_is_what_the_plugin_may_still_match, 0,
                        G_N_ELEMENTS(waiting_cases));
    tcase_add_test(tc, a_time_that_cannot_be_read_is_said);
    tcase_add_test(tc, one_of_a_size_at_a_time);
    tcase_add_test(tc, an_unhealthy_card_is_not_used);
    tcase_add_test(tc, whole_cards_by_number);
    tcase_add_test(tc, two_cards_need_two_free_ones);
    tcase_add_test(tc, a_node_serves_memory_or_number);
    tcase_add_test(tc, what_the_plugin_cannot_serve_is_refused);
    tcase_add_test(tc, a_mark_that_came_with_the_template_is_undone);
    tcase_add_test(tc, an_unmatched_pod_is_not_waited_for_for_ever);
    tcase_add_test(tc, warnings_quote_a_little);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
