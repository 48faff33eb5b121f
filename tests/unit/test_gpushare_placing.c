/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the plugin could mistake for whom, whom it cannot serve, and what is written for it. */
#include "gpushare_words.h"
#include "suite.h"

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
    ck_assert_int_eq(found.card, CARD_UNKNOWN);
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
    ck_assert_int_eq(found.card, CARD_UNKNOWN);
    ck_assert_int_eq(found.since_ns, TODAY_NS);
}
END_TEST

/* All plugins but the newest refuse who finds no match there. */
START_TEST(one_card_is_no_exception)
{
    g_autoptr(ledger) ledger = ledger_of(1, 16);

    put(ledger, "a", 5, 0, TODAY_NS);
    ck_assert(ask_in_flight(ledger, 5).restricted);
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
    Suite *s = suite_create("gpushare_placing");
    TCase *tc = tcase_create("gpushare");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, only_equal_sizes_can_be_mistaken);
    tcase_add_test(tc, the_oldest_of_those_waiting_counts);
    tcase_add_test(tc, one_card_is_no_exception);
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
