/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare_words.h"
#include "suite.h"

#include <string.h>

/* --- requests ------------------------------------------------------------------------------- */

struct request_case {
    struct container_view containers[4];
    int64_t amount; /* 0: none; -1: an error */
    int64_t matched;
    int32_t container;
    uint32_t traits;
};

#define SEVERAL REQUEST_SEVERAL_GPU_CONTAINERS
#define INIT_TRAIT REQUEST_GPU_INIT_CONTAINER

static struct request_case request_cases[] = {
    {{WITH("5")}, 5, 5, 0},
    {{PLAIN, WITH("5"), PLAIN}, 5, 5, 1},
    {{{.name = "c", .requests = PAIRS({MEM, "5"})}}, 5, 5, 0},
    {{{.name = "c", .limits = PAIRS({MEM, "5"}), .requests = PAIRS({MEM, "5"})}}, 5, 5, 0},
    {{WITH("1k")}, 1000, 1000, 0},
    {{WITH("1Gi")}, GIB, GIB, 0},
    {{WITH("10G")}, 10000000000, 10000000000, 0},
    {{WITH("2000m")}, 2, 2, 0},
    {{WITH("9223372036854775807")}, INT64_MAX, INT64_MAX, 0},
    /* several containers */
    {{WITH("5"), WITH("3")}, 8, 8, CONTAINER_POD, SEVERAL},
    {{WITH("5"), PLAIN, WITH("5")}, 10, 10, CONTAINER_POD, SEVERAL},
    {{WITH("5"), WITH("0")}, 5, 5, 0},
    {{WITH("0"), WITH("5")}, 5, 5, 1},
    /* init containers: the peak counts, the plugin's sum does not know them */
    {{WITH("5"), INIT("5")}, 5, 5, CONTAINER_POD, INIT_TRAIT},
    {{WITH("5"), INIT("9")}, 9, 5, CONTAINER_POD, INIT_TRAIT},
    {{WITH("5"), INIT("2"), INIT("3")}, 5, 5, CONTAINER_POD, INIT_TRAIT},
    {{PLAIN, INIT("4")}, 4, 0, CONTAINER_POD, INIT_TRAIT},
    {{WITH("2"), WITH("3"), INIT("9")}, 9, 5, CONTAINER_POD, SEVERAL | INIT_TRAIT},
    {{WITH("5"), INIT("0")}, 5, 5, 0},
    /* sidecars stay */
    {{WITH("5"), SIDECAR("2")}, 7, 5, CONTAINER_POD, INIT_TRAIT},
    {{WITH("1"), SIDECAR("2"), INIT("9")}, 11, 1, CONTAINER_POD, INIT_TRAIT},
    {{WITH("1"), INIT("9"), SIDECAR("2")}, 9, 1, CONTAINER_POD, INIT_TRAIT},
    {{PLAIN, SIDECAR("2"), SIDECAR("3")}, 5, 0, CONTAINER_POD, INIT_TRAIT},
    /* nothing */
    {{PLAIN}},
    {{WITH("0")}},
    {{WITH("-0")}},
    {{WITH("0"), INIT("0"), SIDECAR("0")}},
    {{{.name = "c", .limits = PAIRS({COUNT, "1"})}}}, /* means nothing to anybody */
    {{{.name = "c", .limits = PAIRS({MEM, "0"}), .requests = PAIRS({MEM, "5"})}}},
    /* errors */
    {{WITH("-1")}, -1},
    {{WITH("1.5")}, -1},
    {{WITH("1500m")}, -1},
    {{WITH("")}, -1},
    {{WITH("five")}, -1},
    {{WITH(" 5")}, -1},
    {{WITH("9223372036854775808")}, -1},
    {{WITH("18446744073709551617")}, -1},
    {{WITH("9223372036854775807"), WITH("1")}, -1},
    {{WITH("5"), INIT("x")}, -1},
    {{PLAIN, SIDECAR("9223372036854775807"), SIDECAR("1")}, -1},
    {{PLAIN, SIDECAR("9223372036854775807"), INIT("1")}, -1},
    /* each sum fits alone */
    {{WITH("9223372036854775807"), SIDECAR("9223372036854775807")},
     INT64_MAX,
     INT64_MAX,
     CONTAINER_POD,
     INIT_TRAIT},
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

    ck_assert_int_eq(error != NULL, c->amount < 0);
    ck_assert_int_eq(request != NULL, c->amount > 0);
    if (error)
        ck_assert_ptr_nonnull(strstr(error->message, MEM));
    if (!request)
        return;
    ck_assert_ptr_eq(request->dialect, gpushare);
    ck_assert_int_eq(request->match_amount, c->matched);
    ck_assert_uint_eq(request->traits, c->traits);
    ck_assert_uint_eq(request->n_asks, 1);
    ck_assert_int_eq(request->asks[0].memory.value, c->amount);
    ck_assert_int_eq(request->asks[0].memory.kind, AMOUNT_NODE_UNITS);
    ck_assert_int_eq(request->asks[0].container, c->container);
    ck_assert_int_eq(request->asks[0].count, 1);
    ck_assert_int_eq(request->asks[0].core, 0);
    ck_assert(!request->asks[0].exclusive);
}
END_TEST

START_TEST(a_pod_without_containers_asks_nothing)
{
    struct pod_view view = {.ns = "ml", .name = "a-0", .uid = "u1"};
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert_ptr_null(error);
    ck_assert_ptr_null(dialect_read_allocation(&view, &options, NULL));
}
END_TEST

START_TEST(what_a_pod_asks_is_what_it_holds)
{
    const struct request_case *c = &request_cases[_i];
    struct pod_view view = pod_of(c);
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation != NULL, c->amount > 0);
    ck_assert_int_eq(warning != NULL, c->amount != 0); /* unreadable, or no card named */
    if (!allocation)
        return;
    ck_assert_str_eq(allocation->uid, "u1");
    ck_assert_str_eq(allocation->ns, "ml");
    ck_assert_str_eq(allocation->name, "a-0");
    ck_assert_ptr_eq(allocation->dialect, gpushare);
    ck_assert_int_eq(allocation->match_amount, c->matched);
    ck_assert_uint_eq(allocation->n_shares, 1);
    ck_assert_int_eq(allocation->shares[0].memory.value, c->amount);
    ck_assert_int_eq(allocation->shares[0].memory.kind, AMOUNT_NODE_UNITS);
    ck_assert_int_eq(allocation->shares[0].container, c->container);
    ck_assert_int_eq(allocation->shares[0].card, CARD_UNKNOWN);
}
END_TEST

/* --- allocations ---------------------------------------------------------------------------- */

struct index_case {
    const char *text;
    int32_t card;
};

static const struct index_case index_cases[] = {
    {"0", 0},
    {"3", 3},
    {"255", 255},
    {"01", 1}, /* as the plugin's parser reads it */
    {"0,1", CARD_UNKNOWN},
    {" 1", CARD_UNKNOWN},
    {"1 ", CARD_UNKNOWN},
    {"1\n", CARD_UNKNOWN},
    {"-1", CARD_UNKNOWN},
    {"-0", CARD_UNKNOWN},
    {"999", CARD_UNKNOWN},
    {"256", CARD_UNKNOWN},
    {"", CARD_UNKNOWN},
    {"0x1", CARD_UNKNOWN},
    {"1e0", CARD_UNKNOWN},
    {"1.0", CARD_UNKNOWN},
    {"none", CARD_UNKNOWN},
    {"4294967296", CARD_UNKNOWN},
    {"4294967297", CARD_UNKNOWN},
    {"18446744073709551616", CARD_UNKNOWN},
    {"18446744073709551617", CARD_UNKNOWN},
    {"340282366920938463463374607431768211456", CARD_UNKNOWN},
};

START_TEST(card_indices_are_read_strictly)
{
    const struct index_case *c = &index_cases[_i];
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .annotations = PAIRS({IDX, c->text}, {POD, "5"}),
        CONTAINERS(WITH("5")),
    };
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation->shares[0].card, c->card);
    ck_assert_int_eq(warning != NULL, c->card == CARD_UNKNOWN);
    if (warning)
        ck_assert_ptr_nonnull(strstr(warning, IDX));
}
END_TEST

struct doubt_case {
    struct string_pair annotations[2];
    enum doubt doubt;
    const char *warning; /* part of it */
};

static const struct doubt_case doubt_cases[] = {
    {{{IDX, "1"}, {POD, "5"}}, DOUBT_NONE, NULL},
    {{{IDX, "1"}}, DOUBT_NONE, NULL},
    {{{"example.com/a", "1"}}, DOUBT_UNMARKED, "another scheduler"},
    {{{POD, "5"}}, DOUBT_LOST, "has lost"},
    {{{ASSIGNED, "true"}}, DOUBT_LOST, "has lost"},
    {{{ASSUME_TIME, "1"}}, DOUBT_LOST, "has lost"},
    {{{IDX, "one"}, {POD, "5"}}, DOUBT_MALFORMED, "'one'"},
    {{{IDX, "1"}, {POD, "6"}}, DOUBT_EDITED, "'6'"},
};

START_TEST(what_is_wrong_with_a_card_is_told_apart)
{
    const struct doubt_case *c = &doubt_cases[_i];
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .annotations = {c->annotations, c->annotations[1].key ? 2 : 1},
        CONTAINERS(WITH("5")),
    };
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation->doubt, c->doubt);
    if (c->warning)
        ck_assert_msg(warning && strstr(warning, c->warning), "%s", warning);
    else
        ck_assert_ptr_null(warning);
}
END_TEST

struct total_case {
    const char *text;
    bool warns;
};

static const struct total_case total_cases[] = {
    {"5"},        {NULL},       {"05"},        {"6", true},
    {"0", true},  {"", true},   {"-5", true},  {"5Gi", true},
    {" 5", true}, {"5 ", true}, {"5.0", true}, {"18446744073709551621", true},
};

/* The containers' own amounts are what a kubelet has granted; a stated total is only compared. */
START_TEST(a_stated_total_does_not_count)
{
    const struct total_case *c = &total_cases[_i];
    struct string_pair annotations[] = {{IDX, "1"}, {POD, c->text}};
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .annotations = present(annotations, G_N_ELEMENTS(annotations)),
        CONTAINERS(WITH("5")),
    };
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation->shares[0].card, 1);
    ck_assert_int_eq(allocation->shares[0].memory.value, 5);
    ck_assert_int_eq(allocation->match_amount, 5);
    ck_assert_int_eq(warning != NULL, c->warns);
}
END_TEST

struct time_case {
    const char *text;
    int64_t time_ns;
    bool warns;
};

static const struct time_case time_cases[] = {
    {TODAY_TEXT, TODAY_NS},
    {"1", 1},
    {"0", 0},
    {NULL, 0},
    {"4611686018427387903", INT64_MAX / 2},
    {"4611686018427387904", 0, true},
    {"9223372036854775807", 0, true},
    {"9223372036854775808", 0, true},
    {"18446744073709551615", 0, true},
    {"18446744073709551616", 0, true},
    {"18446744073709551617", 0, true},
    {"-1", 0, true},
    {"", 0, true},
    {"yesterday", 0, true},
    {"2026-01-01T00:00:00Z", 0, true},
    {"1.7e18", 0, true},
    {" 1767225600000000001", 0, true},
};

START_TEST(assume_times_are_read)
{
    const struct time_case *c = &time_cases[_i];
    struct string_pair annotations[] = {{IDX, "1"}, {ASSUME_TIME, c->text}};
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .annotations = present(annotations, G_N_ELEMENTS(annotations)),
        CONTAINERS(WITH("5")),
    };
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation->assume_time_ns, c->time_ns);
    ck_assert_int_eq(warning != NULL, c->warns);
    ck_assert_int_eq(allocation->shares[0].card, 1);
}
END_TEST

/* --- waiting for the plugin ----------------------------------------------------------------- */

struct waiting_case {
    const char *phase, *assigned, *assume_time;
    bool started;
    bool is_assigned, waiting;
};

static const struct waiting_case waiting_cases[] = {
    /* The plugin may match it as long as it is pending and marked. */
    {"Pending", "false", TODAY_TEXT, false, false, true},
    {"Pending", "false", TODAY_TEXT, true, false, true},
    {NULL, "false", TODAY_TEXT, false, false, true},
    {"Running", "false", TODAY_TEXT, true, false, false},
    {"Unknown", "false", TODAY_TEXT, true, false, false},
    {"Pending", "false", "soon", true, false, true}, /* time 0: the first of all */
    /* Without marks it can only take another's card, until kubelet has asked for its own. */
    {"Pending", NULL, NULL, false, false, true},
    {"Pending", NULL, NULL, true, false, false},
    {"Running", NULL, NULL, true, false, false},
    {"Pending", NULL, TODAY_TEXT, true, false, false},
    {"Pending", "false", NULL, true, false, false},
    {"Pending", "False", TODAY_TEXT, false, false, true},
    {"Pending", "False", TODAY_TEXT, true, false, false},
    /* So it can when its own mark was taken by another's container. */
    {"Pending", "true", TODAY_TEXT, false, true, true},
    {"Pending", "true", TODAY_TEXT, true, true, false},
    {"Running", "true", TODAY_TEXT, true, true, false},
};

START_TEST(waiting_is_what_the_plugin_may_still_match)
{
    const struct waiting_case *c = &waiting_cases[_i];
    struct string_pair annotations[] = {
        {IDX, "1"}, {ASSIGNED, c->assigned}, {ASSUME_TIME, c->assume_time}};
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .phase = c->phase,
        .started = c->started,
        .annotations = present(annotations, G_N_ELEMENTS(annotations)),
        CONTAINERS(WITH("5")),
    };
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, NULL);

    ck_assert_int_eq(allocation->assigned, c->is_assigned);
    ck_assert_int_eq(allocation->waiting, c->waiting);
}
END_TEST

/* A ledger with one node "n1" of equal cards. */
static struct ledger *ledger_of(int32_t n_cards, int64_t units)
{
    struct ledger *ledger = ledger_new();
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    topology->dialect = gpushare;
    topology->memory_unit = GIB;
    topology->n_cards = n_cards;
    for (int32_t i = 0; i < n_cards; i++)
        topology->cards[i].memory = units * GIB;
    ledger_set_topology(ledger, "n1", topology);
    return ledger;
}

static struct allocation *put(struct ledger *ledger, const char *uid, int64_t units, int32_t card,
                              int64_t assume_time_ns)
{
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->dialect = gpushare;
    allocation->waiting = true;
    allocation->match_amount = units;
    allocation->assume_time_ns = assume_time_ns;
    allocation->shares[0] = (struct share){{units, AMOUNT_NODE_UNITS}, 0, card, 0, false};
    return ledger_put(ledger, "n1", allocation);
}

static struct in_flight ask_in_flight(struct ledger *ledger, int64_t units)
{
    g_autoptr(request) request = request_new(gpushare, 1);
    struct in_flight in_flight = {true, 99, 99}; /* whatever was there before */

    request->match_amount = units;
    gpushare->in_flight(ledger_node(ledger, "n1"), request, &in_flight);
    return in_flight;
}

START_TEST(only_equal_sizes_can_be_mistaken)
{
    g_autoptr(ledger) ledger = ledger_of(4, 16);

    ck_assert(!ask_in_flight(ledger, 5).restricted);
    put(ledger, "a", 6, 2, TODAY_NS);
    ck_assert(!ask_in_flight(ledger, 5).restricted);
    put(ledger, "b", 5, 3, TODAY_NS + 7);
    struct in_flight found = ask_in_flight(ledger, 5);
    ck_assert(found.restricted);
    ck_assert_int_eq(found.card, 3);
    ck_assert_int_eq(found.since_ns, TODAY_NS + 7);
}
END_TEST

START_TEST(the_oldest_of_those_waiting_counts)
{
    g_autoptr(ledger) ledger = ledger_of(4, 16);

    put(ledger, "a", 5, 2, TODAY_NS + 1);
    put(ledger, "b", 5, 2, TODAY_NS);
    put(ledger, "c", 5, 2, TODAY_NS + 2);
    struct in_flight found = ask_in_flight(ledger, 5);
    ck_assert_int_eq(found.card, 2);
    ck_assert_int_eq(found.since_ns, TODAY_NS);
}
END_TEST

START_TEST(those_waiting_on_two_cards_leave_none_to_join)
{
    static const int32_t orders[][3] = {{0, 1, 0},  {0, 0, 1},  {1, 0, 0},   {-1, 0, 0},
                                        {0, -1, 0}, {0, 0, -1}, {-1, -1, -1}};
    g_autoptr(ledger) ledger = ledger_of(4, 16);

    put(ledger, "a", 5, orders[_i][0], TODAY_NS);
    put(ledger, "b", 5, orders[_i][1], TODAY_NS);
    put(ledger, "c", 5, orders[_i][2], TODAY_NS);
    struct in_flight found = ask_in_flight(ledger, 5);
    ck_assert(found.restricted);
    ck_assert_int_eq(found.card, CARD_UNKNOWN);
}
END_TEST

START_TEST(few_may_wait_at_a_time)
{
    g_autoptr(ledger) ledger = ledger_of(4, 64);

    put(ledger, "other", 6, 2, TODAY_NS);
    for (int i = 1; i <= 8; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        put(ledger, uid, 5, 2, TODAY_NS + i);
        struct in_flight found = ask_in_flight(ledger, 5);
        ck_assert(found.restricted);
        ck_assert_int_eq(found.card, i < 8 ? 2 : CARD_UNKNOWN);
        ck_assert_int_eq(found.since_ns, TODAY_NS + 1);
    }
    ledger_drop(ledger, "u3");
    ck_assert_int_eq(ask_in_flight(ledger, 5).card, 2);
}
END_TEST

START_TEST(one_card_knows_no_swap)
{
    g_autoptr(ledger) ledger = ledger_of(1, 16);

    put(ledger, "a", 5, 0, TODAY_NS);
    ck_assert(!ask_in_flight(ledger, 5).restricted);
}
END_TEST

START_TEST(a_taken_pod_no_longer_waits)
{
    g_autoptr(ledger) ledger = ledger_of(2, 16);
    struct allocation *taken = allocation_new("a", "ml", "a", 1);

    put(ledger, "a", 5, 1, TODAY_NS);
    taken->dialect = gpushare;
    taken->assigned = true;
    taken->match_amount = 5;
    taken->shares[0] = (struct share){{5, AMOUNT_NODE_UNITS}, 0, 1, 0, false};
    ledger_put(ledger, "n1", taken);
    ck_assert_int_eq(ledger_node(ledger, "n1")->n_waiting, 0);
    ck_assert(!ask_in_flight(ledger, 5).restricted);
}
END_TEST

struct refusal_case {
    uint32_t traits;
    int32_t n_cards;
    bool any_on_single_card;
    enum reason reason;
};

static const struct refusal_case refusal_cases[] = {
    {0, 1, false, REASON_NONE},
    {0, 8, false, REASON_NONE},
    {0, 1, true, REASON_NONE},
    {SEVERAL, 2, false, REASON_SEVERAL_GPU_CONTAINERS},
    {SEVERAL, 2, true, REASON_SEVERAL_GPU_CONTAINERS},
    {SEVERAL, 1, false, REASON_SEVERAL_GPU_CONTAINERS},
    {SEVERAL, 1, true, REASON_NONE},
    {INIT_TRAIT, 2, false, REASON_GPU_INIT_CONTAINER},
    {INIT_TRAIT, 2, true, REASON_GPU_INIT_CONTAINER},
    {INIT_TRAIT, 1, false, REASON_GPU_INIT_CONTAINER},
    {INIT_TRAIT, 1, true, REASON_NONE},
    {SEVERAL | INIT_TRAIT, 2, false, REASON_GPU_INIT_CONTAINER},
    {SEVERAL | INIT_TRAIT, 1, true, REASON_NONE},
};

START_TEST(what_the_plugin_cannot_serve_is_refused)
{
    const struct refusal_case *c = &refusal_cases[_i];
    g_autoptr(ledger) ledger = ledger_of(c->n_cards, 16);
    g_autoptr(request) request = request_new(gpushare, 1);

    request->traits = c->traits;
    options.gpushare_any_on_single_card = c->any_on_single_card;
    ck_assert_int_eq(gpushare->refuse(ledger_node(ledger, "n1"), request, &options), c->reason);
}
END_TEST

/* --- what is written ------------------------------------------------------------------------ */

static const char *written(const struct annotations *annotations, const char *key)
{
    for (size_t i = 0; i < annotations->n; i++) {
        if (g_str_equal(annotations->items[i].key, key))
            return annotations->items[i].value;
    }
    ck_abort_msg("no %s", key);
}

START_TEST(five_annotations_are_written_as_plain_decimals)
{
    g_autoptr(ledger) ledger = ledger_of(12, 15);
    const struct allocation *allocation = put(ledger, "a", 1000, 11, TODAY_NS);
    g_auto(annotations) annotations = {0};

    gpushare->write_annotations(allocation, allocation->node, &annotations);
    ck_assert_uint_eq(annotations.n, 5);
    ck_assert_str_eq(written(&annotations, IDX), "11");
    ck_assert_str_eq(written(&annotations, DEV), "15");
    ck_assert_str_eq(written(&annotations, POD), "1000");
    ck_assert_str_eq(written(&annotations, ASSIGNED), "false");
    ck_assert_str_eq(written(&annotations, ASSUME_TIME), TODAY_TEXT);
}
END_TEST

/* A Binding whose outcome is not known is repeated, whatever has become of the node since. */
START_TEST(a_card_that_is_gone_is_written_all_the_same)
{
    g_autoptr(ledger) ledger = ledger_of(12, 15);
    const struct allocation *allocation = put(ledger, "a", 5, 11, TODAY_NS);
    g_auto(annotations) annotations = {0};

    ledger_remove_node(ledger, "n1");
    gpushare->write_annotations(allocation, allocation->node, &annotations);
    ck_assert_uint_eq(annotations.n, 5);
    ck_assert_str_eq(written(&annotations, IDX), "11");
    ck_assert_str_eq(written(&annotations, DEV), "0");
    ck_assert_str_eq(written(&annotations, POD), "5");
}
END_TEST

START_TEST(the_plugin_sets_two_of_them)
{
    struct allocation none = {0};
    g_auto(annotations) annotations = {0};

    gpushare->write_assigned(&none, TODAY_NS, &annotations);
    ck_assert_uint_eq(annotations.n, 2);
    ck_assert_str_eq(written(&annotations, ASSIGNED), "true");
    ck_assert_str_eq(written(&annotations, ASSUME_TIME), TODAY_TEXT);
}
END_TEST

START_TEST(what_was_written_is_read_back)
{
    g_autoptr(ledger) ledger = ledger_of(4, 15);
    const struct allocation *allocation = put(ledger, "a", 5, 3, TODAY_NS);
    g_auto(annotations) annotations = {0};
    struct string_pair pairs[ANNOTATIONS_MAX];
    g_autofree char *warning = NULL;

    gpushare->write_annotations(allocation, allocation->node, &annotations);
    for (size_t i = 0; i < annotations.n; i++)
        pairs[i] = (struct string_pair){annotations.items[i].key, annotations.items[i].value};
    struct pod_view view = {
        .ns = "ml",
        .name = "a",
        .uid = "a",
        .phase = "Pending",
        .annotations = {pairs, annotations.n},
        CONTAINERS(WITH("5")),
    };
    g_autoptr(allocation) back = dialect_read_allocation(&view, &options, &warning);
    back->node = allocation->node;
    back->host = allocation->host; /* what was booked was not read off a pod */
    ck_assert(allocation_equal(back, allocation));
    ck_assert_ptr_null(warning);
}
END_TEST

START_TEST(clearing_annotations_leaves_none)
{
    struct annotations annotations = {0};

    for (int i = 0; i < ANNOTATIONS_MAX; i++)
        annotations_add(&annotations, IDX, g_strdup("0"));
    annotations_clear(&annotations);
    ck_assert_uint_eq(annotations.n, 0);
    annotations_clear(&annotations);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("gpushare");
    TCase *tc = tcase_create("gpushare");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(tc, a_pod_without_containers_asks_nothing);
    tcase_add_loop_test(tc, what_a_pod_asks_is_what_it_holds, 0, G_N_ELEMENTS(request_cases));
    tcase_add_loop_test(tc, card_indices_are_read_strictly, 0, G_N_ELEMENTS(index_cases));
    tcase_add_loop_test(tc, what_is_wrong_with_a_card_is_told_apart, 0, G_N_ELEMENTS(doubt_cases));
    tcase_add_loop_test(tc, a_stated_total_does_not_count, 0, G_N_ELEMENTS(total_cases));
    tcase_add_loop_test(tc, assume_times_are_read, 0, G_N_ELEMENTS(time_cases));
    tcase_add_loop_test(tc, waiting_is_what_the_plugin_may_still_match, 0,
                        G_N_ELEMENTS(waiting_cases));
    tcase_add_test(tc, only_equal_sizes_can_be_mistaken);
    tcase_add_test(tc, the_oldest_of_those_waiting_counts);
    tcase_add_test(tc, few_may_wait_at_a_time);
    tcase_add_loop_test(tc, those_waiting_on_two_cards_leave_none_to_join, 0, 7);
    tcase_add_test(tc, one_card_knows_no_swap);
    tcase_add_test(tc, a_taken_pod_no_longer_waits);
    tcase_add_loop_test(tc, what_the_plugin_cannot_serve_is_refused, 0,
                        G_N_ELEMENTS(refusal_cases));
    tcase_add_test(tc, five_annotations_are_written_as_plain_decimals);
    tcase_add_test(tc, a_card_that_is_gone_is_written_all_the_same);
    tcase_add_test(tc, the_plugin_sets_two_of_them);
    tcase_add_test(tc, what_was_written_is_read_back);
    tcase_add_test(tc, clearing_annotations_leaves_none);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
