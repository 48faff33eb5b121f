/* SPDX-License-Identifier: Apache-2.0 */
/* What pods ask of gpushare, and what they hold. */
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

/* An amount that cannot be read may be any; a sum that is too large is more than any card has. */
static void holds_as_much_as_there_is(const struct allocation *allocation)
{
    const struct share *share = &allocation->shares[0];

    ck_assert_uint_eq(allocation->n_shares, 1); /* its resource has no devices of a pool */
    ck_assert_int_eq(share->card, CARD_UNKNOWN);
    if (share->exclusive) {
        ck_assert_int_eq(allocation->distrust, DISTRUST_UNREAD);
    } else {
        ck_assert_int_ne(allocation->distrust, DISTRUST_NONE);
        ck_assert_int_eq(share->memory.value, INT64_MAX);
    }
}

START_TEST(what_a_pod_asks_is_what_it_holds)
{
    const struct request_case *c = &request_cases[_i];
    struct pod_view view = pod_of(c);
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation != NULL, c->amount != 0);
    ck_assert_int_eq(warning != NULL, c->amount != 0); /* unreadable, or no card named */
    if (c->amount < 0) {
        holds_as_much_as_there_is(allocation);
        return;
    }
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

struct distrust_case {
    struct string_pair annotations[2];
    enum distrust distrust;
    const char *warning; /* part of it */
};

static const struct distrust_case distrust_cases[] = {
    {{{IDX, "1"}, {POD, "5"}}, DISTRUST_NONE, NULL},
    {{{IDX, "1"}}, DISTRUST_NONE, NULL},
    {{{"example.com/a", "1"}}, DISTRUST_UNMARKED, "another scheduler"},
    {{{POD, "5"}}, DISTRUST_LOST, "has lost"},
    {{{ASSIGNED, "true"}}, DISTRUST_LOST, "has lost"},
    {{{ASSUME_TIME, "1"}}, DISTRUST_LOST, "has lost"},
    {{{IDX, "one"}, {POD, "5"}}, DISTRUST_MALFORMED, "'one'"},
    {{{IDX, "1"}, {POD, "6"}}, DISTRUST_EDITED, "'6'"},
};

START_TEST(what_is_wrong_with_a_card_is_told_apart)
{
    const struct distrust_case *c = &distrust_cases[_i];
    struct pod_view view = {
        .ns = "ml",
        .name = "a-0",
        .uid = "u1",
        .annotations = {c->annotations, c->annotations[1].key ? 2 : 1},
        CONTAINERS(WITH("5")),
    };
    g_autofree char *warning = NULL;
    g_autoptr(allocation) allocation = dialect_read_allocation(&view, &options, &warning);

    ck_assert_int_eq(allocation->distrust, c->distrust);
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

static Suite *suite(void)
{
    Suite *s = suite_create("gpushare");
    TCase *tc = tcase_create("gpushare");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(tc, a_pod_without_containers_asks_nothing);
    tcase_add_loop_test(tc, what_a_pod_asks_is_what_it_holds, 0, G_N_ELEMENTS(request_cases));
    tcase_add_loop_test(tc, card_indices_are_read_strictly, 0, G_N_ELEMENTS(index_cases));
    tcase_add_loop_test(tc, what_is_wrong_with_a_card_is_told_apart, 0, G_N_ELEMENTS(distrust_cases));
    tcase_add_loop_test(tc, a_stated_total_does_not_count, 0, G_N_ELEMENTS(total_cases));
    tcase_add_loop_test(tc, assume_times_are_read, 0, G_N_ELEMENTS(time_cases));
    tcase_add_loop_test(tc, waiting_is_what_the_plugin_may_still_match, 0,
                        G_N_ELEMENTS(waiting_cases));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
