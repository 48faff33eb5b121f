/* SPDX-License-Identifier: Apache-2.0 */
/* What the administrator says of single cards, on a node that a dialect shares. */
#include "suite.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

static struct topology *hardware;
static char *warning;
static struct ledger *book;

static const struct node *read_node(const char *key, const char *value)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "64"},
                                           {"aliyun.com/gpu-count", "4"}};
    const struct string_pair annotations[] = {{key, value}};
    const struct node_view view = {
        .name = "n", .capacity = {capacity, 2}, .annotations = {annotations, 1}};
    const struct dialect_options options = {0};

    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    return ledger_set_topology(book, "n", hardware);
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
    g_clear_pointer(&warning, g_free);
}

START_TEST(a_node_may_have_a_policy_of_its_own)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "64"},
                                           {"aliyun.com/gpu-count", "4"}};
    const struct string_pair label = {"gpuledger.io/policy", _i ? "tidy" : "spread"};
    const struct node_view view = {.name = "n", .capacity = {capacity, 2}, .labels = {&label, 1}};
    const struct dialect_options options = {0};

    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    ck_assert_ptr_eq(ledger_set_topology(book, "n", hardware)->policy,
                     _i ? NULL : policy_find("spread"));
    ck_assert_int_eq(warning != NULL, _i);
    ck_assert(!_i || strstr(warning, "'tidy' is not a policy"));
}
END_TEST

/* Not every row reads the sizes of cards and their order; who writes them for others is told. */
START_TEST(what_no_row_of_the_node_reads_is_said)
{
    static const struct {
        const char *memory, *cards, *key;
        bool read;
    } cases[] = {
        {"aliyun.com/gpu-mem", "aliyun.com/gpu-count", "gpuledger.io/card-memory", true},
        {"aliyun.com/gpu-mem", "aliyun.com/gpu-count", "gpuledger.io/card-order", false},
        {"volcano.sh/gpu-memory", "volcano.sh/gpu-number", "gpuledger.io/card-memory", false},
        {"volcano.sh/gpu-memory", "volcano.sh/gpu-number", "gpuledger.io/card-order", false},
    };
    const struct string_pair capacity[] = {{cases[_i].memory, "20"}, {cases[_i].cards, "2"}};
    const bool order = strstr(cases[_i].key, "order");
    const struct string_pair annotation = {cases[_i].key, order ? "0,1" : "10,10"};
    const struct node_view view = {.name = "n",
                                   .capacity = {capacity, 2},
                                   .allocatable = {capacity, 2},
                                   .annotations = {&annotation, 1}};
    const struct dialect_options options = {0};

    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    ck_assert_int_eq(warning == NULL, cases[_i].read);
    ck_assert(cases[_i].read || strstr(warning, cases[_i].key));
}
END_TEST

START_TEST(cordoned_cards_take_nobody)
{
    const struct node *node =
        read_node("gpuledger.io/cordoned-cards", _i ? "1=of:4,3=of:4" : "1, 3");

    ck_assert_ptr_null(warning);
    for (int32_t i = 0; i < 4; i++)
        {
        ck_assert(node->cards[i].healthy); /* it works, but is not given */
        ck_assert_int_eq(card_is_open(&node->cards[i]), i % 2 == 0);
    }
}
END_TEST

START_TEST(an_exclusive_card_never_gets_a_second_holder)
{
    const struct node *node = read_node("gpuledger.io/exclusive-cards", "*");
    enum reason reason;

    for (int i = 0; i < 5; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        struct request *request = request_new(hardware->dialect, 1);
        request->asks[0] = (struct card_ask){.memory = {1, AMOUNT_NODE_UNITS}, .count = 1};
        struct placement placement;
        reason = placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement);
        if (i < 4) {
            struct allocation *allocation = allocation_new(uid, "ml", uid, 1);
            ck_assert_int_eq(placement.shares[0].card, i);
            allocation->dialect = hardware->dialect;
            allocation->shares[0] = placement.shares[0];
            ck_assert_ptr_nonnull(ledger_reserve(book, "n", allocation, &reason));
        }
        request_free(request);
    }
    ck_assert_int_eq(reason, REASON_NO_SLOT);
}
END_TEST

START_TEST(guaranteed_compute_is_had_where_it_is_promised)
{
    const struct node *node =
        read_node("gpuledger.io/share-class", "0=best-effort:2,1=equal:2,2=fixed:4,3=best-effort:1");
    struct request *request = request_new(hardware->dialect, 1);
    struct placement placement;

    ck_assert_ptr_null(warning);
    request->asks[0] =
        (struct card_ask){.memory = {1, AMOUNT_NODE_UNITS}, .count = 1, .core = 250};
    ck_assert_int_eq(placement_find(node, request, policies, NULL, 0, &placement), REASON_TERMS);
    ck_assert_int_eq(placement_find(node, request, policies, NULL, 1, &placement), REASON_NONE);
    ck_assert_int_eq(placement_find(node, request, policies, NULL, 2, &placement), REASON_NONE);
    request->asks[0].core = 0;
    ck_assert_int_eq(placement_find(node, request, policies, NULL, 0, &placement), REASON_NONE);
    ck_assert_int_eq(node->cards[0].slots, 2);
    ck_assert_int_eq(node->cards[2].slots, 4);
    request_free(request);
}
END_TEST

static const struct {
    const char *key, *value;
} bad[] = {
    {"gpuledger.io/cordoned-cards", "4"},          {"gpuledger.io/cordoned-cards", "-1"},
    {"gpuledger.io/cordoned-cards", "1=yes"},      {"gpuledger.io/cordoned-cards", "GPU-1"},
    {"gpuledger.io/exclusive-cards", "99999999999999999999"},
    {"gpuledger.io/share-class", "4=fixed:4"},
};

START_TEST(what_cannot_be_read_is_said_and_changes_nothing)
{
    const struct node *node = read_node(bad[_i].key, bad[_i].value);

    ck_assert_ptr_nonnull(warning);
    ck_assert_msg(strstr(warning, bad[_i].key) != NULL, "%s", warning);
    for (int32_t i = 0; i < 4; i++) {
        ck_assert(node->cards[i].healthy && !node->cards[i].best_effort);
        ck_assert_int_eq(node->cards[i].slots, 0);
    }
}
END_TEST

static const struct {
    const char *value;
    int closed; /* as a set of bits */
} bad_cordons[] = {{"1=", 15},     {"-1", 15},    {"GPU-1", 15},   {"0,x", 15},
                   {"4", 15},      {"0,0", 1},    {"1=GPU-1", 15}, {"1=of:5", 15},
                   {"1=of:1", 15}, {"1=of:", 15}, {"*=GPU-1", 15}, {"1=of:4,*=1", 15}};

/* Somebody has taken a card out of service, and it may be any. */
START_TEST(a_cordon_that_nobody_can_read_closes_the_cards_it_may_mean)
{
    const struct node *node = read_node("gpuledger.io/cordoned-cards", bad_cordons[_i].value);

    ck_assert_ptr_nonnull(warning);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(!card_is_open(&node->cards[i]), bad_cordons[_i].closed >> i & 1);
}
END_TEST

static const struct {
    const char *value;
    int closed; /* as a set of bits */
} bad_classes[] = {
    {"0", 1},
    {"0=fixed", 1},
    {"0=fixed:0", 1},
    {"1=fixed:1001", 2},
    {"0=golden:4,1=fixed:4", 1},
    {"*=", 15},
    {"x=fixed:4", 15},
    {"GPU-1=fixed:4", 15},
    {"0=fixed:4,0=equal:2", 1},
    {"0=fixed:4,2=equal:2,0=fixed:4", 1},
    {"*=fixed:4,*=equal:2", 15},
};

START_TEST(a_card_of_a_class_that_nobody_can_tell_is_closed)
{
    const struct node *node = read_node("gpuledger.io/share-class", bad_classes[_i].value);

    ck_assert_ptr_nonnull(warning);
    ck_assert_msg(strstr(warning, "share-class") && strstr(warning, "closed"), "%s", warning);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_msg(!card_is_open(&node->cards[i]) == (bad_classes[_i].closed >> i & 1), "%s: %d",
                      bad_classes[_i].value, i);
}
END_TEST

/* Of N shares none is promised more than an N-th; which item comes first does not matter. */
START_TEST(a_share_promises_its_part_of_compute_at_most)
{
    static const char *const classes[] = {"0=fixed:4,*=equal:3", "*=equal:3,0=fixed:4"};
    const struct node *node = read_node("gpuledger.io/share-class", classes[_i]);
    static const struct {
        int32_t core, card;
        bool exclusive;
        enum reason reason;
    } asks[] = {
        {250, 0, false, REASON_NONE},  {260, 0, false, REASON_TERMS}, {500, 0, false, REASON_TERMS},
        {330, 1, false, REASON_NONE},  {340, 1, false, REASON_TERMS}, {0, 0, false, REASON_NONE},
        {0, 1, true, REASON_TERMS},
    };

    ck_assert_ptr_null(warning);
    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++) {
        struct request *request = request_new(hardware->dialect, 1);
        struct placement placement;
        request->asks[0] = (struct card_ask){.memory = {1, AMOUNT_NODE_UNITS},
                                             .count = 1,
                                             .core = asks[i].core,
                                             .exclusive = asks[i].exclusive};
        ck_assert_int_eq(placement_find(node, request, policies, NULL, asks[i].card, &placement),
                         asks[i].reason);
        request_free(request);
    }
}
END_TEST

/* --- how many holders each card takes ------------------------------------------------------------ */

/* gpushare's plugin has no slots of its own; a card in HAMi's register of this test has 10. */
static const struct node *read_slots(bool hami, const char *slots, const char *key,
                                     const char *value)
{
    const struct string_pair capacity[] = {
        {"aliyun.com/gpu-mem", "64"}, {"aliyun.com/gpu-count", "4"}, {"nvidia.com/gpu", "20"}};
    const struct string_pair annotations[] = {
        {"gpuledger.io/slots", slots},
        {key, value},
        {"hami.io/node-nvidia-register", "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:"
                                         "GPU-b,10,16384,100,NVIDIA-Tesla T4,0,true:"},
    };
    const struct node_view view = {.name = "n",
                                   .capacity = {hami ? capacity + 2 : capacity, hami ? 1 : 2},
                                   .allocatable = {capacity + 2, hami ? 1 : 0},
                                   .annotations = {annotations, hami ? 3 : 2}};
    const struct dialect_options options = {0};

    ck_assert(dialect_read_topology(&view, &options, hardware, &warning, NULL));
    return ledger_set_topology(book, "n", hardware);
}

static const struct {
    bool hami;
    const char *slots, *key, *value;
    int32_t most[2]; /* of the first two cards; 0: any number */
    int capped;      /* a set of bits: by gpuledger.io/slots */
} bounds[] = {
    {false, "4", "x", "", {4, 4}, 3},
    {false, "any", "x", "", {0, 0}, 0},
    {false, "1000", "x", "", {1000, 1000}, 3},
    {true, "4", "x", "", {4, 4}, 3},
    {true, "any", "x", "", {10, 10}, 0},
    {true, "10", "x", "", {10, 10}, 0},
    {true, "11", "x", "", {10, 10}, 0}, /* never more than its node side gives */
    {true, "any", "gpuledger.io/share-class", "0=fixed:20,1=best-effort:5", {10, 5}, 0},
    {true, "7", "gpuledger.io/share-class", "0=fixed:20,1=best-effort:5", {7, 5}, 1},
    {false, "7", "gpuledger.io/share-class", "*=fixed:4,0=equal:8", {7, 4}, 1},
    {false, "7", "gpuledger.io/exclusive-cards", "1", {7, 1}, 1},
    {false, "1", "gpuledger.io/exclusive-cards", "1", {1, 1}, 1},
};

START_TEST(the_smallest_of_all_words_bounds_the_holders_of_a_card)
{
    const struct node *node =
        read_slots(bounds[_i].hami, bounds[_i].slots, bounds[_i].key, bounds[_i].value);

    ck_assert_ptr_null(warning);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(node->cards[i].slots, bounds[_i].most[i]);
        ck_assert_int_eq(node->cards[i].capped, bounds[_i].capped >> i & 1);
        ck_assert(card_is_open(&node->cards[i]));
    }
}
END_TEST

START_TEST(a_number_of_slots_that_nobody_can_read_closes_the_cards)
{
    static const char *const bad_slots[] = {
        "",    "0",   "-1",  "1001", "four", "4 ",    " 4",  "+4",
        "4.0", "0=4", "*=4", "4,4",  "ANY",  "any,4", "0x4", "99999999999999999999"};

    for (size_t i = 0; i < G_N_ELEMENTS(bad_slots); i++) {
        const struct node *node = read_slots(i % 2, bad_slots[i], "x", "");
        ck_assert_ptr_nonnull(warning);
        ck_assert_msg(strstr(warning, "gpuledger.io/slots") != NULL, "%s", warning);
        ck_assert_int_eq(node->cards[0].closure, CLOSURE_SLOTS);
        ck_assert_int_eq(node->cards[1].closure, CLOSURE_SLOTS);
        g_clear_pointer(&warning, g_free);
        topology_free(hardware);
        hardware = topology_new();
    }
}
END_TEST

static enum reason find_place(const struct node *node, struct placement *ret_placement)
{
    struct request *request = request_new(hardware->dialect, 1);

    request->asks[0] = (struct card_ask){.memory = {1, AMOUNT_NODE_UNITS}, .count = 1};
    const enum reason reason =
        placement_find(node, request, policies, NULL, CARD_UNKNOWN, ret_placement);
    request_free(request);
    return reason;
}

/* Who is there stays, and a card with more than it may have takes nobody, until it has fewer. */
START_TEST(a_card_with_more_holders_than_it_may_have_takes_nobody)
{
    const struct node *node = read_slots(false, "2", "x", "");
    struct placement placement;
    enum reason reason;

    for (int i = 0; i < 8; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        struct allocation *allocation = allocation_new(uid, "ml", uid, 1);
        ck_assert_int_eq(find_place(node, &placement), REASON_NONE);
        allocation->dialect = hardware->dialect;
        allocation->shares[0] = placement.shares[0];
        ck_assert_ptr_nonnull(ledger_reserve(book, "n", allocation, &reason));
    }
    ck_assert_int_eq(find_place(node, &placement), REASON_NODE_SLOTS);
    struct allocation *more = allocation_new("more", "ml", "more", 1);
    more->dialect = hardware->dialect;
    more->shares[0] = (struct share){.memory = {1, AMOUNT_NODE_UNITS}, .card = 3};
    ck_assert_ptr_null(ledger_reserve(book, "n", more, &reason));
    ck_assert_int_eq(reason, REASON_NODE_SLOTS);

    topology_free(hardware);
    hardware = topology_new();
    node = read_slots(false, "1", "x", "");
    ledger_drop(book, "u0");
    ck_assert_int_eq(find_place(node, &placement), REASON_NODE_SLOTS);
    ledger_drop(book, "u1");
    ck_assert_int_eq(find_place(node, &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("node marks");
    TCase *tc = tcase_create("marks");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_node_may_have_a_policy_of_its_own, 0, 2);
    tcase_add_loop_test(tc, what_no_row_of_the_node_reads_is_said, 0, 4);
    tcase_add_loop_test(tc, cordoned_cards_take_nobody, 0, 2);
    tcase_add_loop_test(tc, a_cordon_that_nobody_can_read_closes_the_cards_it_may_mean, 0,
                        G_N_ELEMENTS(bad_cordons));
    tcase_add_test(tc, an_exclusive_card_never_gets_a_second_holder);
    tcase_add_test(tc, guaranteed_compute_is_had_where_it_is_promised);
    tcase_add_loop_test(tc, a_card_of_a_class_that_nobody_can_tell_is_closed, 0,
                        G_N_ELEMENTS(bad_classes));
    tcase_add_loop_test(tc, a_share_promises_its_part_of_compute_at_most, 0, 2);
    tcase_add_loop_test(tc, the_smallest_of_all_words_bounds_the_holders_of_a_card, 0,
                        G_N_ELEMENTS(bounds));
    tcase_add_test(tc, a_number_of_slots_that_nobody_can_read_closes_the_cards);
    tcase_add_test(tc, a_card_with_more_holders_than_it_may_have_takes_nobody);
    tcase_add_loop_test(tc, what_cannot_be_read_is_said_and_changes_nothing, 0, G_N_ELEMENTS(bad));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
