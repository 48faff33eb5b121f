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

START_TEST(cordoned_cards_take_nobody)
{
    const struct node *node = read_node("gpuledger.io/cordoned-cards", "1, 3");

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
} bad_cordons[] = {{"1=yes", 2}, {"-1", 15}, {"GPU-1", 15}, {"0,x", 15}, {"4", 0}, {"0,0", 1}};

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

static Suite *suite(void)
{
    Suite *s = suite_create("node marks");
    TCase *tc = tcase_create("marks");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_node_may_have_a_policy_of_its_own, 0, 2);
    tcase_add_test(tc, cordoned_cards_take_nobody);
    tcase_add_loop_test(tc, a_cordon_that_nobody_can_read_closes_the_cards_it_may_mean, 0,
                        G_N_ELEMENTS(bad_cordons));
    tcase_add_test(tc, an_exclusive_card_never_gets_a_second_holder);
    tcase_add_test(tc, guaranteed_compute_is_had_where_it_is_promised);
    tcase_add_loop_test(tc, a_card_of_a_class_that_nobody_can_tell_is_closed, 0,
                        G_N_ELEMENTS(bad_classes));
    tcase_add_loop_test(tc, a_share_promises_its_part_of_compute_at_most, 0, 2);
    tcase_add_loop_test(tc, what_cannot_be_read_is_said_and_changes_nothing, 0, G_N_ELEMENTS(bad));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
