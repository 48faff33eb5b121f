/* SPDX-License-Identifier: Apache-2.0 */
#include "literals.h"
#include "suite.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define CORE "tencent.com/vcuda-core"
#define MEM "tencent.com/vcuda-memory"
#define TIME "tencent.com/predicate-time"
#define NODE "tencent.com/predicate-node"
#define IDX "tencent.com/predicate-gpu-idx-"
#define ASSIGNED "tencent.com/gpu-assigned"
#define CORE_LIMIT "tencent.com/vcuda-core-limit"
#define CARD_MEMORY "gpuledger.io/card-memory"
#define CARD_ORDER "gpuledger.io/card-order"

#define MIB (INT64_C(1) << 20)
#define BLOCK (256 * MIB)
#define SECOND INT64_C(1000000000)
#define NOW (INT64_C(1767225600) * SECOND)
#define PATIENCE (30 * SECOND)

#define WITH(core, memory)                                                                         \
    {                                                                                              \
        .name = "c", .limits = PAIRS({CORE, core}, {MEM, memory})                                  \
    }
#define INIT(core, memory)                                                                         \
    {                                                                                              \
        .name = "i", .init = true, .limits = PAIRS({CORE, core}, {MEM, memory})                    \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        .name = "p", .limits = PAIRS({"cpu", "1"})                                                 \
    }
#define POD(...)                                                                                   \
    {                                                                                              \
        .ns = "ml", .name = "a-0", .uid = "u1", CONTAINERS(__VA_ARGS__)                            \
    }

static const struct dialect *tencent;
static struct dialect_options options;
static struct ledger *book;

static void setup(void)
{
    tencent = dialect_find("tencent");
    ck_assert_ptr_nonnull(tencent);
    options = (struct dialect_options){0};
    book = ledger_new();
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(book, &error), "%s", error ? error->message : "");
    ledger_free(book);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static const struct node *add_node(const char *core, const char *memory, const char *sizes,
                                   const char *order)
{
    const struct string_pair annotations[] = {{sizes ? CARD_MEMORY : "x", sizes ? sizes : ""},
                                              {order ? CARD_ORDER : "y", order ? order : ""}};
    struct node_view view = {.name = "n1",
                             .capacity = PAIRS({CORE, core}, {MEM, memory}),
                             .annotations = {annotations, 2}};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(dialect_read_topology(&view, &options, topology, &warning, &error));
    ck_assert_ptr_null(warning);
    return ledger_set_topology(book, "n1", topology);
}

struct topology_case {
    const char *core, *memory, *sizes, *order;
    int64_t tencent_order;
    int32_t n_cards;   /* 0: not of this dialect; -1: an error */
    bool warns;
    int64_t bytes[3];
    int32_t ranks[3];
};

static const struct topology_case topology_cases[] = {
    {"200", "128", .n_cards = 2, .bytes = {64 * BLOCK, 64 * BLOCK}, .ranks = {0, 1}},
    {"300", "178", .n_cards = 3, .bytes = {59 * BLOCK, 59 * BLOCK, 59 * BLOCK}},
    {"250", "128", .n_cards = 2, .bytes = {64 * BLOCK, 64 * BLOCK}},
    {"0", "128"},
    {NULL, "128"},
    {"99", "128", .n_cards = -1},
    {"200", "1", .n_cards = -1},
    {"200", NULL, .n_cards = -1},
    {"200", "-5", .n_cards = -1},
    {"25700", "99999", .n_cards = -1},
    {"200", "100", "60, 40", .n_cards = 2, .bytes = {60 * BLOCK, 40 * BLOCK}},
    {"200", "100", "60,40,1", .n_cards = 2, .warns = true, .bytes = {50 * BLOCK, 50 * BLOCK}},
    {"200", "100", "60,many", .n_cards = 2, .warns = true, .bytes = {50 * BLOCK, 50 * BLOCK}},
    {"200", "120", "15361Mi,15363Mi", .n_cards = 2, .bytes = {60 * BLOCK, 60 * BLOCK}},
    {"200", "120", "15361Mi,15363Mi", NULL, TENCENT_ORDER_BYTES_NVML, 2, false,
     {15361 * MIB, 15363 * MIB}},
    {"200", "120", NULL, "1,0", TENCENT_ORDER_BLOCKS_NVML, 2, false,
     {60 * BLOCK, 60 * BLOCK}, {1, 0}},
    {"300", "180", NULL, "2,0,1", TENCENT_ORDER_BYTES_NVML, 3, false,
     {60 * BLOCK, 60 * BLOCK, 60 * BLOCK}, {1, 2, 0}},
    {"200", "120", NULL, "1,0", TENCENT_ORDER_BLOCKS_MINOR, 2, false,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
    {"200", "120", NULL, "1,1", TENCENT_ORDER_BLOCKS_NVML, 2, true,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
    {"200", "120", NULL, "2,0", TENCENT_ORDER_BLOCKS_NVML, 2, true,
     {60 * BLOCK, 60 * BLOCK}, {0, 1}},
};

START_TEST(nodes_are_read)
{
    const struct topology_case *c = &topology_cases[_i];
    struct string_pair capacity[2], annotations[2];
    struct node_view view = {.name = "n1",
                             .capacity = {capacity, 0},
                             .annotations = {annotations, 0}};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    options.tencent_order = c->tencent_order;
    if (c->core)
        capacity[view.capacity.n++] = (struct string_pair){CORE, c->core};
    if (c->memory)
        capacity[view.capacity.n++] = (struct string_pair){MEM, c->memory};
    if (c->sizes)
        annotations[view.annotations.n++] = (struct string_pair){CARD_MEMORY, c->sizes};
    if (c->order)
        annotations[view.annotations.n++] = (struct string_pair){CARD_ORDER, c->order};

    bool claimed = dialect_read_topology(&view, &options, topology, &warning, &error);
    ck_assert_int_eq(claimed, c->n_cards > 0);
    ck_assert_int_eq(error != NULL, c->n_cards < 0);
    ck_assert_int_eq(warning != NULL, c->warns);
    if (!claimed)
        return;
    ck_assert_ptr_eq(topology->dialect, tencent);
    ck_assert_int_eq(topology->n_cards, c->n_cards);
    for (int32_t i = 0; i < c->n_cards; i++) {
        ck_assert_int_eq(topology->cards[i].memory, c->bytes[i]);
        if (c->ranks[0] != c->ranks[1])
            ck_assert_int_eq(topology->cards[i].rank, c->ranks[i]);
    }
}
END_TEST

/* --- pods ----------------------------------------------------------------------------------- */

struct request_case {
    struct container_view containers[4];
    enum reason reason; /* on a node of two cards; REASON_N: no request; REASON_NONE and no asks: an
                         * error */
    struct card_ask asks[2];
};

static const struct request_case request_cases[] = {
    {{WITH("40", "24")}, REASON_NONE, {{{24 * BLOCK, AMOUNT_BYTES}, 0, 1, 400}}},
    {{PLAIN, WITH("1", "1")}, REASON_NONE, {{{BLOCK, AMOUNT_BYTES}, 1, 1, 10}}},
    {{WITH("99", "1")}, REASON_NONE, {{{BLOCK, AMOUNT_BYTES}, 0, 1, 990}}},
    {{WITH("100", "64")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 1, 1000, true}}},
    {{WITH("100", "999")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 1, 1000, true}}},
    {{WITH("200", "0")}, REASON_NONE, {{{0, AMOUNT_BYTES}, 0, 2, 1000, true}}},
    {{WITH("10", "2"), WITH("20", "3")},
     REASON_NONE,
     {{{2 * BLOCK, AMOUNT_BYTES}, 0, 1, 100}, {{3 * BLOCK, AMOUNT_BYTES}, 1, 1, 200}}},
    {{WITH("10", "2"), WITH("100", "0")},
     REASON_NONE,
     {{{2 * BLOCK, AMOUNT_BYTES}, 0, 1, 100}, {{0, AMOUNT_BYTES}, 1, 1, 1000, true}}},
    {{PLAIN}, REASON_N},
    {{WITH("0", "0")}, REASON_N},
    {{INIT("0", "0")}, REASON_N},
    {{WITH("150", "4")}, REASON_CORE_STEP},
    {{WITH("101", "4")}, REASON_CORE_STEP},
    {{WITH("199", "4")}, REASON_CORE_STEP},
    {{WITH("250", "4")}, REASON_CORE_STEP},
    {{WITH("10", "4"), WITH("150", "4")}, REASON_CORE_STEP},
    {{WITH("50", "0")}, REASON_CORE_WITHOUT_MEMORY},
    {{WITH("50", "0"), WITH("50", "0")}, REASON_CORE_WITHOUT_MEMORY},
    {{WITH("0", "4")}, REASON_MEMORY_WITHOUT_CORE},
    {{WITH("10", "4"), WITH("0", "4")}, REASON_MEMORY_WITHOUT_CORE},
    {{PLAIN, INIT("10", "4")}, REASON_GPU_INIT_CONTAINER},
    {{WITH("10", "4"), INIT("0", "4")}, REASON_GPU_INIT_CONTAINER},
    {{WITH("100", "0"), WITH("10", "2")}, REASON_UNFORESEEN_CARD},
    {{WITH("-1", "2")}},
    {{WITH("1", "2.5")}},
    {{WITH("6500", "1")}},
    {{WITH("3300", "1"), WITH("3200", "1")}},
};

START_TEST(requests_are_read)
{
    const struct request_case *c = &request_cases[_i];
    struct pod_view pod = {.ns = "ml", .name = "a-0", .uid = "u1", .containers = c->containers};
    bool wanted = c->asks[0].count > 0 || c->reason != REASON_NONE;
    g_autoptr(GError) error = NULL;

    while (pod.n_containers < 4 && c->containers[pod.n_containers].name)
        pod.n_containers++;
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    ck_assert_int_eq(error != NULL, !wanted);
    ck_assert_int_eq(request != NULL, wanted && c->reason != REASON_N);
    if (!request)
        return;
    ck_assert_int_eq(tencent->refuse(add_node("200", "128", NULL, NULL), request, &options),
                     c->reason);
    ck_assert_int_eq(reason_info(c->reason)->resolvable, c->reason == REASON_NONE);
    for (uint32_t i = 0; c->reason == REASON_NONE && i < 2; i++) {
        const struct card_ask *ask = &request->asks[i], *as = &c->asks[i];
        ck_assert_int_eq(i < request->n_asks, as->count > 0);
        if (as->count == 0)
            continue;
        ck_assert_int_eq(ask->memory.value, as->memory.value);
        ck_assert_int_eq(ask->memory.kind, as->memory.kind);
        ck_assert_int_eq(ask->container, as->container);
        ck_assert_int_eq(ask->count, as->count);
        ck_assert_int_eq(ask->core, as->core);
        ck_assert_int_eq(ask->exclusive, as->exclusive);
    }
}
END_TEST

START_TEST(a_limit_of_core_must_be_a_number)
{
    static const struct {
        const char *text;
        enum reason reason;
    } cases[] = {{"80", REASON_NONE},       {"250", REASON_NONE},     {"", REASON_CORE_LIMIT},
                 {"half", REASON_CORE_LIMIT}, {"80%", REASON_CORE_LIMIT}, {"-1", REASON_CORE_LIMIT}};
    struct pod_view pod = POD(WITH("40", "24"));

    pod.annotations = PAIRS({CORE_LIMIT, cases[_i].text});
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    ck_assert_int_eq(tencent->refuse(add_node("200", "128", NULL, NULL), request, &options),
                     cases[_i].reason);
}
END_TEST

START_TEST(one_card_cannot_be_mistaken)
{
    struct pod_view pod = POD(WITH("100", "0"), WITH("10", "2"));
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);

    ck_assert_int_eq(tencent->refuse(add_node("100", "64", NULL, NULL), request, &options),
                     REASON_NONE);
}
END_TEST

struct reading {
    struct string_pair annotations[4];
    const char *phase;
    bool started;
    bool assigned, waiting;
    enum doubt doubt;
    int32_t cards[3];
};

/* Of a pod whose first container shares a card and whose third takes two. */
static const struct reading readings[] = {
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     "Pending", false, false, true, DOUBT_NONE, {1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     NULL, false, false, true, DOUBT_NONE, {1, 0, 2}},
    /* admitted; which whole cards it has is written down later */
    {{{IDX "0", "1"}, {IDX "2", "0,2"}, {TIME, "7"}, {ASSIGNED, "false"}},
     "Pending", true, true, true, DOUBT_NONE, {1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "2", "3,2"}, {TIME, "7"}, {ASSIGNED, "true"}},
     "Pending", true, true, false, DOUBT_NONE, {1, 3, 2}},
    {{{IDX "0", "1"}, {IDX "2", "3,2"}, {TIME, "7"}, {ASSIGNED, "true"}},
     "Running", true, true, false, DOUBT_NONE, {1, 3, 2}},
    {{{IDX "0", "1"}, {IDX "2", "0"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_MALFORMED, {1, -1, -1}},
    {{{IDX "0", "1"}, {IDX "2", "0,0"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_MALFORMED, {1, -1, -1}},
    {{{IDX "0", "0,1"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "-1"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "256"}, {IDX "2", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_MALFORMED, {-1, 0, 2}},
    {{{IDX "0", "1"}, {IDX "1", "0,2"}, {TIME, "7"}},
     "Running", true, true, false, DOUBT_LOST, {1, -1, -1}},
    {{{TIME, "7"}}, "Running", true, true, false, DOUBT_LOST, {-1, -1, -1}},
    {{{"a", "b"}}, "Running", true, true, false, DOUBT_UNMARKED, {-1, -1, -1}},
    {{{"a", "b"}}, "Pending", false, false, true, DOUBT_UNMARKED, {-1, -1, -1}},
};

START_TEST(what_a_bound_pod_holds)
{
    const struct reading *c = &readings[_i];
    struct pod_view pod = POD(WITH("40", "24"), PLAIN, WITH("200", "0"));
    g_autofree char *warning = NULL;

    pod.phase = c->phase;
    pod.started = c->started;
    pod.annotations = (struct string_pairs){c->annotations, 0};
    while (pod.annotations.n < 4 && c->annotations[pod.annotations.n].key)
        pod.annotations.n++;
    g_autoptr(allocation) allocation = dialect_read_allocation(&pod, &options, &warning);
    ck_assert_int_eq(allocation->assigned, c->assigned);
    ck_assert_int_eq(allocation->waiting, c->waiting);
    ck_assert_int_eq(allocation->doubt, c->doubt);
    ck_assert_int_eq(warning != NULL, c->doubt != DOUBT_NONE);
    ck_assert_int_eq(allocation->n_shares, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(allocation->shares[i].card, c->cards[i]);
        ck_assert_int_eq(allocation->shares[i].container, i == 0 ? 0 : 2);
        ck_assert_int_eq(allocation->shares[i].exclusive, i > 0);
        ck_assert_int_eq(allocation->shares[i].core, i == 0 ? 400 : 1000);
    }
}
END_TEST

START_TEST(what_gpu_manager_does_not_serve_holds_nothing)
{
    const struct pod_view pods[] = {POD(WITH("150", "4")), POD(WITH("0", "4")),
                                    POD(WITH("40", "0")), POD(PLAIN, INIT("10", "4"))};

    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        ck_assert_ptr_null(dialect_read_allocation(&pods[i], &options, NULL));
}
END_TEST

/* --- placing -------------------------------------------------------------------------------- */

struct answer {
    enum admission admission;
    enum reason reason;
    struct placement placement;
};

static struct answer admit(const struct pod_view *pod)
{
    g_autoptr(request) request = dialect_read_request(pod, &options, NULL);
    struct admission_query query = {
        .request = request,
        .policy = policies,
        .options = &options,
        .now_ns = NOW,
        .patience_ns = PATIENCE,
    };
    struct answer answer = {0};
    enum reason reason;

    answer.admission =
        dialect_admit(ledger_node(book, "n1"), &query, &answer.placement, &answer.reason);
    ck_assert_int_eq(dialect_admit(ledger_node(book, "n1"), &query, NULL, &reason),
                     answer.admission);
    ck_assert_int_eq(reason, answer.reason);
    answer.placement.request = NULL;
    return answer;
}

/* What gpu-manager and kubelet have done with a pod since it was bound. */
enum stage {
    BOUND,
    ADMITTED,
    STARTED,
};

/* Places the pod, and takes it back from the annotations that were written. Its cards, or why not:
 * free with g_free. */
static char *run(const char *uid, struct pod_view pod, enum stage stage)
{
    struct answer answer = admit(&pod);
    g_auto(annotations) written = {0};
    struct string_pair pairs[ANNOTATIONS_MAX];
    GString *cards = g_string_new(NULL);
    enum reason reason;

    if (answer.admission != ADMISSION_YES) {
        const char *why = answer.admission == ADMISSION_WAIT ? "wait"
                                                             : reason_info(answer.reason)->code;
        g_string_assign(cards, why);
        return g_string_free(cards, FALSE);
    }
    pod.uid = pod.name = uid;
    pod.phase = stage == STARTED ? "Running" : "Pending";
    pod.started = stage != BOUND;
    struct allocation *allocation = allocation_new(uid, "ml", uid, answer.placement.n_shares);
    allocation->dialect = tencent;
    allocation->waiting = true;
    allocation->assume_time_ns = NOW;
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    allocation->host = request->host;
    allocation->match_amount = request->match_amount;
    allocation->terms = terms_ref(request->terms);
    memcpy(allocation->shares, answer.placement.shares,
           answer.placement.n_shares * sizeof *allocation->shares);
    allocation = ledger_reserve(book, "n1", allocation, &reason);
    ck_assert_ptr_nonnull(allocation);

    tencent->write_annotations(allocation, ledger_node(book, "n1"), &written);
    if (stage == STARTED)
        tencent->write_assigned(allocation, NOW, &written);
    for (size_t i = 0; i < written.n; i++) {
        /* The last word counts. */
        pairs[written.n - 1 - i] =
            (struct string_pair){written.items[i].key, written.items[i].value};
    }
    pod.annotations = (struct string_pairs){pairs, written.n};
    struct allocation *back = dialect_read_allocation(&pod, &options, NULL);
    back->node = allocation->node;
    ck_assert(stage != BOUND || allocation_equal(back, allocation));
    back = ledger_put(book, "n1", back);
    for (uint32_t i = 0; i < back->n_shares; i++)
        g_string_append_printf(cards, "%s%d", i ? "," : "", back->shares[i].card);
    return g_string_free(cards, FALSE);
}

#define RUN(uid, stage, wanted, ...)                                                               \
    do {                                                                                           \
        g_autofree char *got = run(uid, (struct pod_view)POD(__VA_ARGS__), stage);                 \
        ck_assert_str_eq(got, wanted);                                                             \
    } while (0)

START_TEST(the_example_in_both_orders)
{
    add_node("200", "128", NULL, NULL);
    RUN("job1", STARTED, "0", WITH("100", "64"));
    RUN("job2", STARTED, "1", WITH("40", "24"));
    RUN("job3", STARTED, "1", WITH("30", "24"));
    add_node("200", "128", NULL, NULL);
    ledger_drop(book, "job1");
    ledger_drop(book, "job2");
    ledger_drop(book, "job3");
    RUN("job2", STARTED, "0", WITH("40", "24"));
    RUN("job3", STARTED, "0", WITH("30", "24"));
    RUN("job1", STARTED, "1", WITH("100", "64"));
}
END_TEST

START_TEST(core_adds_up_whatever_its_limit)
{
    add_node("100", "64", NULL, NULL);
    RUN("a", STARTED, "0", WITH("40", "8"));
    RUN("b", STARTED, "0", WITH("30", "8"));
    RUN("c", STARTED, "insufficient_core", WITH("40", "8"));
    RUN("d", STARTED, "0", WITH("30", "8"));
    RUN("e", STARTED, "insufficient_core", WITH("1", "1"));
}
END_TEST

START_TEST(memory_adds_up)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", STARTED, "0", WITH("10", "60"));
    RUN("b", STARTED, "1", WITH("10", "5"));
    RUN("c", STARTED, "insufficient_memory", WITH("10", "60"));
    RUN("d", STARTED, "card_too_small", WITH("10", "65"));
    RUN("e", STARTED, "insufficient_memory", WITH("100", "0"));
    RUN("f", STARTED, "card_count", WITH("300", "0"));
}
END_TEST

START_TEST(each_container_has_its_cards)
{
    add_node("400", "240", NULL, NULL);
    RUN("a", STARTED, "0,1,2", WITH("60", "8"), PLAIN, WITH("60", "8"), WITH("100", "0"));
    const struct allocation *held = ledger_get(book, "a");
    g_auto(annotations) written = {0};
    tencent->write_annotations(held, held->node, &written);
    static const char *const wanted[][2] = {
        {TIME, "1767225600000000000"}, {NODE, "n1"},      {ASSIGNED, "false"},
        {IDX "0", "0"},                {IDX "2", "1"},    {IDX "3", "2"},
    };
    ck_assert_uint_eq(written.n, G_N_ELEMENTS(wanted));
    for (size_t i = 0; i < written.n; i++) {
        ck_assert_str_eq(written.items[i].key, wanted[i][0]);
        ck_assert_str_eq(written.items[i].value, wanted[i][1]);
    }
    RUN("b", STARTED, "insufficient_memory", WITH("200", "0"));
    ledger_drop(book, "a");
    RUN("b", STARTED, "0,1", WITH("200", "0"));
}
END_TEST

/* Least core, then least memory, then the first: and never the second best. */
START_TEST(cards_are_taken_in_the_order_of_gpu_manager)
{
    add_node("300", "180", NULL, NULL);
    RUN("a", STARTED, "0", WITH("30", "40"));
    RUN("b", STARTED, "1", WITH("30", "30"));
    RUN("c", STARTED, "0", WITH("10", "1"));
    RUN("d", STARTED, "1", WITH("65", "2"));
    RUN("e", STARTED, "1", WITH("5", "15"));
    RUN("f", STARTED, "2", WITH("5", "30"));
    ledger_drop(book, "e");
    ledger_drop(book, "f");
    /* Another order of these two containers would fit; gpu-manager does not look for one. */
    add_node("200", "120", NULL, NULL);
    ledger_drop(book, "d");
    ledger_drop(book, "c");
    /* free: 70 and 20, 70 and 30 */
    RUN("g", STARTED, "insufficient_memory", WITH("10", "15"), WITH("10", "15"), WITH("10", "20"));
    RUN("h", STARTED, "0,1,1", WITH("10", "20"), WITH("10", "15"), WITH("10", "15"));
}
END_TEST

/* gpu-manager is told of nothing that speaks against a card. */
START_TEST(a_card_that_gpu_manager_would_take_is_not_passed_over)
{
    add_node("200", "128", NULL, NULL);
    ledger_set_unhealthy(book, "n1", (int32_t[]){0}, 1);
    RUN("a", STARTED, "card_unhealthy", WITH("40", "24"));
    RUN("a", STARTED, "card_unhealthy", WITH("100", "0"));
    ledger_set_unhealthy(book, "n1", (int32_t[]){1}, 1);
    RUN("a", STARTED, "0", WITH("40", "24"));
    RUN("b", STARTED, "0", WITH("40", "24"));
    RUN("c", STARTED, "insufficient_memory", WITH("40", "24"));
}
END_TEST

START_TEST(unchecked_pods_have_a_time_that_gpu_manager_does_not_read)
{
    options.tencent_unchecked = true;
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    const struct allocation *held = ledger_get(book, "a");
    ck_assert_int_eq(held->assume_time_ns, NOW);
    g_auto(annotations) written = {0};
    g_autoptr(allocation) other = allocation_new("b", "ml", "b", 1);
    other->terms = terms_new();
    other->terms->unchecked = true;
    tencent->write_annotations(other, held->node, &written);
    ck_assert_str_eq(written.items[0].key, "gpuledger.io/predicate-time");
    RUN("b", BOUND, "wait", WITH("30", "24"));
}
END_TEST

START_TEST(versions_differ_over_equal_cards)
{
    /* NVML counts the second minor first, and finds a few MiB more on the first. */
    static const struct {
        enum tencent_order order;
        const char *first;
    } cases[] = {{TENCENT_ORDER_BLOCKS_MINOR, "0"},
                 {TENCENT_ORDER_BLOCKS_NVML, "2"},
                 {TENCENT_ORDER_BYTES_NVML, "1"}};

    options.tencent_order = cases[_i].order;
    add_node("300", "180", "15363Mi,15361Mi,15363Mi", "2,0,1");
    RUN("a", STARTED, cases[_i].first, WITH("10", "1"));
}
END_TEST

/* --- one at a time -------------------------------------------------------------------------- */

START_TEST(the_next_pod_waits_until_kubelet_has_admitted_the_last)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    RUN("b", BOUND, "wait", WITH("30", "24"));
    RUN("b", BOUND, "wait", WITH("100", "0"));
    RUN("b", BOUND, "insufficient_memory", WITH("200", "0"));
    ledger_drop(book, "a");
    RUN("a", ADMITTED, "0", WITH("40", "24"));
    RUN("b", ADMITTED, "0", WITH("30", "24"));
    RUN("c", ADMITTED, "1", WITH("100", "0"));
}
END_TEST

/* Of it gpu-manager has forgotten the cards, and would take it for the next one. */
START_TEST(the_next_pod_waits_for_the_end_of_one_that_never_ran)
{
    static const char *const cores[] = {"40", "100"};

    add_node("200", "128", NULL, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cores); i++) {
        struct pod_view pod = POD(WITH(cores[i], "24"));
        pod.uid = pod.name = "a";
        pod.phase = "Pending";
        pod.started = pod.terminating = true;
        pod.annotations = PAIRS({IDX "0", "0"}, {TIME, "7"}, {ASSIGNED, "false"});
        ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
        RUN("b", BOUND, "awaiting_turn", WITH("30", "24"));
        RUN("b", BOUND, "awaiting_turn", WITH("100", "0"));
        pod.phase = "Running";
        ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
        RUN("b", ADMITTED, i == 0 ? "0" : "1", WITH("30", "24"));
        ledger_drop(book, "a");
        ledger_drop(book, "b");
    }
}
END_TEST

START_TEST(nobody_waits_for_ever)
{
    add_node("200", "128", NULL, NULL);
    RUN("a", BOUND, "0", WITH("40", "24"));
    struct allocation *held = ledger_get(book, "a");
    held->assume_time_ns = NOW - PATIENCE;
    RUN("b", BOUND, "awaiting_turn", WITH("30", "24"));
}
END_TEST

START_TEST(whole_cards_are_provisional_until_gpu_manager_says_which)
{
    add_node("400", "240", NULL, NULL);
    RUN("a", STARTED, "0", WITH("40", "24"));
    RUN("w", ADMITTED, "1", WITH("100", "0"));
    /* There is room beside a; gpu-manager takes that card whichever w has. */
    RUN("b", STARTED, "0", WITH("40", "24"));
    /* No room there: which card is next depends on w's. */
    RUN("c", STARTED, "wait", WITH("40", "24"));
    RUN("c", STARTED, "wait", WITH("10", "1"), WITH("10", "1"));
    /* As many whole ones as are left, whichever they are. */
    RUN("x", ADMITTED, "2,3", WITH("200", "0"));
    RUN("y", ADMITTED, "insufficient_memory", WITH("100", "0"));
    ledger_drop(book, "x");
    RUN("x", ADMITTED, "2", WITH("100", "0"));

    /* gpu-manager had given w card 2. The ledger follows, and card 3 is all that is left. */
    struct pod_view pod = POD(WITH("100", "0"));
    pod.uid = pod.name = "w";
    pod.phase = "Pending";
    pod.started = true;
    pod.annotations = PAIRS({IDX "0", "2"}, {ASSIGNED, "true"}, {TIME, "7"});
    ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
    ck_assert_int_eq(node_card(ledger_node(book, "n1"), 2)->exclusive, 2);
    RUN("y", ADMITTED, "wait", WITH("200", "0"));
    RUN("c", STARTED, "wait", WITH("40", "24"));

    pod.uid = pod.name = "x";
    pod.annotations = PAIRS({IDX "0", "1"}, {ASSIGNED, "true"}, {TIME, "8"});
    ledger_put(book, "n1", dialect_read_allocation(&pod, &options, NULL));
    RUN("c", STARTED, "3", WITH("40", "24"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tencent");
    TCase *tcase = tcase_create("tencent");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, nodes_are_read, 0, G_N_ELEMENTS(topology_cases));
    tcase_add_loop_test(tcase, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_loop_test(tcase, a_limit_of_core_must_be_a_number, 0, 6);
    tcase_add_test(tcase, one_card_cannot_be_mistaken);
    tcase_add_loop_test(tcase, what_a_bound_pod_holds, 0, G_N_ELEMENTS(readings));
    tcase_add_test(tcase, what_gpu_manager_does_not_serve_holds_nothing);
    tcase_add_test(tcase, the_example_in_both_orders);
    tcase_add_test(tcase, core_adds_up_whatever_its_limit);
    tcase_add_test(tcase, memory_adds_up);
    tcase_add_test(tcase, each_container_has_its_cards);
    tcase_add_test(tcase, cards_are_taken_in_the_order_of_gpu_manager);
    tcase_add_test(tcase, a_card_that_gpu_manager_would_take_is_not_passed_over);
    tcase_add_test(tcase, unchecked_pods_have_a_time_that_gpu_manager_does_not_read);
    tcase_add_loop_test(tcase, versions_differ_over_equal_cards, 0, 3);
    tcase_add_test(tcase, the_next_pod_waits_until_kubelet_has_admitted_the_last);
    tcase_add_test(tcase, the_next_pod_waits_for_the_end_of_one_that_never_ran);
    tcase_add_test(tcase, nobody_waits_for_ever);
    tcase_add_test(tcase, whole_cards_are_provisional_until_gpu_manager_says_which);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
