/* SPDX-License-Identifier: Apache-2.0 */
#include "book.h"
#include "core/ledger.h"
#include "suite.h"


/* --- nodes that change ---------------------------------------------------------------------- */

START_TEST(nodes_are_in_order_of_name)
{
    static const char *const names[] = {"n2", "n10", "n1", "a", "n1.example", "N1"};
    static const char *const sorted[] = {"N1", "a", "n1", "n1.example", "n10", "n2"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        ledger_set_topology(book, names[i], NULL);
    const GPtrArray *nodes = ledger_nodes(book);
    ck_assert_uint_eq(nodes->len, G_N_ELEMENTS(sorted));
    for (guint i = 0; i < nodes->len; i++)
        ck_assert_str_eq(((struct node *)g_ptr_array_index(nodes, i))->name, sorted[i]);
    ledger_remove_node(book, "n1");
    put("m", "u1", 0, 1);
    nodes = ledger_nodes(book);
    ck_assert_uint_eq(nodes->len, G_N_ELEMENTS(sorted));
    ck_assert_str_eq(((struct node *)g_ptr_array_index(nodes, 2))->name, "m");
    ledger_drop(book, "u1");
    ck_assert_uint_eq(ledger_nodes(book)->len, G_N_ELEMENTS(sorted) - 1);
}
END_TEST

START_TEST(many_nodes_are_told_apart)
{
    for (int i = 0; i < 2000; i++) {
        g_autofree char *name = g_strdup_printf("gpu-pool-a-%d%s", i, i % 2 ? ".internal" : "");
        set_equal_cards(name, 1, i + 1);
    }
    for (int i = 0; i < 2000; i++) {
        g_autofree char *name = g_strdup_printf("gpu-pool-a-%d%s", i, i % 2 ? ".internal" : "");
        ck_assert_int_eq(free_on(name, 0), i + 1);
        g_autofree char *stranger = g_strdup_printf("gpu-pool-a-%d%s", i, i % 2 ? "" : "x");
        ck_assert_ptr_null(ledger_node(book, stranger));
    }
    ck_assert_uint_eq(ledger_nodes(book)->len, 2000);
}
END_TEST

/* Of all lengths, so that the node's memory is where others' is, or its own. */
static char *name_of_length(int i)
{
    return g_strdup_printf("%0*d", 4 + i % 250, i);
}

START_TEST(nodes_that_come_after_others_have_gone_are_new)
{
    for (int turn = 0; turn < 3; turn++) {
        for (int i = turn; i < 1000; i++) {
            g_autofree char *name = name_of_length(i);
            ck_assert_ptr_null(ledger_node(book, name));
            const struct node *node = set_equal_cards(name, 1, i + 1);
            ck_assert_str_eq(node->name, name);
            ck_assert_uint_eq(node->allocations->len, 0);
            put(name, name, 0, 1);
            ck_assert_int_eq(free_on(name, 0), i);
        }
        for (int i = turn; i < 1000; i++) {
            g_autofree char *name = name_of_length(i);
            ck_assert_int_eq(free_on(name, 0), i);
            ck_assert(ledger_drop(book, name));
            ledger_remove_node(book, name);
        }
    }
}
END_TEST

START_TEST(a_pod_may_come_before_its_node)
{
    const struct node *node = put("n1", "u1", 1, 6)->node;

    ck_assert(!node->present);
    ck_assert_ptr_null(node->dialect);
    set_equal_cards("n1", 2, 16);
    ck_assert(node->present);
    ck_assert_int_eq(free_on("n1", 0), 16);
    ck_assert_int_eq(free_on("n1", 1), 10);
    ck_assert_int_eq(node->unplaced_memory, 0);
}
END_TEST

START_TEST(cards_come_and_go_below_their_pods)
{
    const struct node *node = set_equal_cards("n1", 4, 16);

    put("n1", "u1", 0, 6);
    put("n1", "u2", 3, 5);
    set_equal_cards("n1", 2, 16); /* pod u2 is somewhere on the two that are left */
    ck_assert_int_eq(node->n_cards, 2);
    ck_assert_int_eq(free_on("n1", 0), 5);
    ck_assert_int_eq(free_on("n1", 1), 11);
    set_equal_cards("n1", 1, 16);
    ck_assert_int_eq(free_on("n1", 0), 5);
    ck_assert_int_eq(node->unplaced_memory, 0);
    set_equal_cards("n1", 0, 16);
    ck_assert_int_eq(node->unplaced_memory, 11 * GIB);
    set_equal_cards("n1", 8, 16);
    ck_assert_int_eq(free_on("n1", 0), 10);
    ck_assert_int_eq(free_on("n1", 3), 11);
    ck_assert_int_eq(free_on("n1", 7), 16);
    ledger_drop(book, "u2");
    ck_assert_int_eq(free_on("n1", 3), 16);
}
END_TEST

START_TEST(a_card_may_shrink_below_its_pods)
{
    set_equal_cards("n1", 2, 16);
    put("n1", "u1", 0, 12);
    set_cards("n1", GIB, 2, (const int64_t[]){10, 20});
    ck_assert_int_eq(free_on("n1", 0), 0);
    ck_assert_int_eq(free_on("n1", 1), 20);
    set_equal_cards("n1", 2, 24);
    ck_assert_int_eq(free_on("n1", 0), 12);
}
END_TEST

/* What a pod was granted stays what it was, if the size of its card tells the unit. */
START_TEST(what_was_granted_in_another_unit_stays)
{
    static const struct {
        int64_t units, card_units, in_gib, in_mib;
    } cases[] = {
        {8, 16, 8 * GIB, 8 * GIB},       {8, 0, 8 * GIB, 8 * MIB},
        {8, 16384, 8 * GIB, 8 * MIB}, /* it may have been edited: no less than in GiB, there */
        {4096, 16384, 4 * GIB, 4 * GIB}, {4096, 0, 4096 * GIB, 4 * GIB},
        {32, 16, 32 * GIB, 16 * GIB},
    };
    const struct node *node = set_cards("n1", GIB, 2, (const int64_t[]){16, 16});

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct allocation *held =
            HOLDING("u", {.memory = {cases[i].units, AMOUNT_NODE_UNITS}, .card = 0});
        held->card_units = cases[i].card_units;
        ledger_put(book, "n1", held);
        for (int j = 0; j < 3; j++) { /* there and back */
            const int64_t unit = j == 1 ? MIB : GIB, size = 16 * GIB / unit;
            set_cards("n1", unit, 2, (const int64_t[]){size, size});
            ck_assert_msg(node->cards[0].memory_used ==
                              (j == 1 ? cases[i].in_mib : cases[i].in_gib),
                          "case %zu, %d: %" G_GINT64_FORMAT, i, j, node->cards[0].memory_used);
        }
        ledger_drop(book, "u");
    }
}
END_TEST

/* A pod that states no card may have been granted GiB, where others were. */
START_TEST(what_may_be_of_the_other_unit_is_the_larger)
{
    const struct node *node = set_cards("n1", MIB, 1, (const int64_t[]){16384});

    put("n1", "u", 0, 4);
    put("n1", "v", 0, 4096); /* no card has so many GiB */
    ck_assert_int_eq(node->cards[0].memory_used, 4100 * MIB);
    struct allocation *other = HOLDING("w", {.memory = {3, AMOUNT_NODE_UNITS}, .card = 0});
    other->card_units = 16;
    ledger_put(book, "n1", other);
    ck_assert_int_eq(node->cards[0].memory_used, 11 * GIB);
    ledger_drop(book, "w");
    ck_assert_int_eq(node->cards[0].memory_used, 4100 * MIB);
}
END_TEST

/* Whoever may patch a pod may have written the size of its card. */
START_TEST(what_is_not_believed_lowers_nothing)
{
    const struct node *node = set_cards("n1", GIB, 1, (const int64_t[]){16});
    struct allocation *held = HOLDING("u", {.memory = {20, AMOUNT_NODE_UNITS}, .card = 0});

    held->card_units = 16384;
    held->distrust = DISTRUST_UNSEALED;
    ledger_put(book, "n1", held);
    ck_assert_int_eq(node->cards[0].memory_used, 20 * GIB);
}
END_TEST

START_TEST(a_change_of_unit_is_a_change_of_amounts)
{
    const struct node *node = set_cards("n1", GIB, 2, (const int64_t[]){16, 16});

    put("n1", "u1", 0, 8);
    ledger_put(book, "n1", HOLDING("u2", {.memory = {GIB, AMOUNT_BYTES}, .card = 0}));
    ck_assert_int_eq(node->cards[0].memory_used, 9 * GIB);
    set_cards("n1", MIB, 2, (const int64_t[]){16384, 16384});
    ck_assert_int_eq(node->cards[0].memory, 16 * GIB);
    ck_assert_int_eq(node->cards[0].memory_used, GIB + 8 * MIB);
    ledger_drop(book, "u1");
    ck_assert_int_eq(node->cards[0].memory_used, GIB);
}
END_TEST

START_TEST(a_node_may_stop_sharing)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    put("n1", "u1", 0, 8);
    ledger_set_topology(book, "n1", NULL);
    ck_assert(node->present);
    ck_assert_ptr_null(node->dialect);
    ck_assert_int_eq(node->n_cards, 0);
    ck_assert_ptr_null(node_card(node, 0));
    ck_assert_int_eq(node->unplaced_holders, 1);
}
END_TEST

START_TEST(a_node_that_goes_keeps_its_pods_until_they_end)
{
    const struct node *node = set_equal_cards("n1", 2, 16);

    put("n1", "u1", 1, 8);
    put("n1", "u2", 1, 4);
    ledger_remove_node(book, "n1");
    ledger_remove_node(book, "n1");
    ck_assert(!node->present);
    ck_assert_ptr_eq(ledger_node(book, "n1"), node);
    ck_assert_uint_eq(ledger_size(book), 2);
    set_equal_cards("n1", 2, 16); /* back under its name, with what still runs on it */
    ck_assert_int_eq(free_on("n1", 1), 4);
    ledger_remove_node(book, "n1");
    ledger_drop(book, "u1");
    ck_assert_ptr_nonnull(ledger_node(book, "n1"));
    ledger_drop(book, "u2");
    ck_assert_ptr_null(ledger_node(book, "n1"));
    ck_assert_uint_eq(ledger_nodes(book)->len, 0);
    set_equal_cards("n1", 2, 16);
    ck_assert_int_eq(free_on("n1", 1), 16);
}
END_TEST

START_TEST(names_may_be_the_ledgers_own)
{
    struct node *node = set_equal_cards("n1", 1, 16);
    struct allocation *allocation = put("n2", "u1", 0, 1);

    ledger_set_unhealthy(book, node->name, (const int32_t[]){0}, 1);
    ledger_set_unhealthy(book, node->name, NULL, 0);
    ledger_remove_node(book, node->name);
    ck_assert_ptr_null(ledger_node(book, "n1"));
    ck_assert(ledger_drop(book, allocation->uid));
    ck_assert_ptr_null(ledger_node(book, "n2"));
}
END_TEST

/* The cursor has of the node what the node has. */
static void expect_same(const struct node_cursor *cursor, const struct node *node)
{
    ck_assert_ptr_eq(cursor->node, node);
    if (!node)
        return;
    ck_assert_uint_eq(cursor->place, node_own(node)->place);
    ck_assert_ptr_eq(cursor->pulse, node_own(node)->pulse);
}

/* Asks for names in a row, as filter does; every answer is what a look-up gives. */
static void ask_in_order(const char *const *names)
{
    struct node_cursor cursor = {0};

    for (; *names; names++) {
        struct node *node = ledger_next_node(book, &cursor, *names, NODE_SUMMARY);
        ck_assert_ptr_eq(node, ledger_node(book, *names));
        expect_same(&cursor, node);
    }
}

START_TEST(nodes_asked_for_in_order_are_the_right_ones)
{
    static const char *const order[] = {"c", "a", "unknown", "b", "a", NULL};
    static const char *const other[] = {"b", "c", "a", NULL};
    static const char *const rest[] = {"a", "b", "c", NULL};

    set_equal_cards("a", 1, 8);
    set_equal_cards("b", 1, 8);
    set_equal_cards("c", 1, 8);
    ask_in_order(order);
    ask_in_order(order);
    ask_in_order(other);
    ledger_remove_node(book, "c"); /* guessed both as the first and as the next one */
    ask_in_order(order);
    ask_in_order(other);
    ledger_remove_node(book, "a");
    ask_in_order(rest);
    set_equal_cards("a", 1, 8);
    ask_in_order(rest);
}
END_TEST

/* Removed ones leave their places to others, of another version. */
START_TEST(pulses_of_many_nodes_stay_where_they_are)
{
    struct node_cursor cursor = {0};
    const struct node_pulse *first = node_own(set_equal_cards("n0", 1, 8))->pulse;
    char name[8];

    for (int i = 0; i < 1000; i++) {
        g_snprintf(name, sizeof name, "n%d", i);
        set_equal_cards(name, 1, 8);
    }
    const uint32_t place = node_own(ledger_node(book, "n700"))->place;
    const uint64_t version = node_own(ledger_node(book, "n700"))->pulse->version;
    ledger_remove_node(book, "n700");
    const struct node *other = set_equal_cards("other", 1, 8);
    ck_assert_uint_eq(node_own(other)->place, place);
    ck_assert_uint_gt(node_own(other)->pulse->version, version);
    for (int i = 0; i < 1000; i++) {
        g_snprintf(name, sizeof name, "n%d", i);
        const struct node *node = ledger_next_node(book, &cursor, name, NODE_PULSE);
        ck_assert_int_eq(node != NULL, i != 700);
        expect_same(&cursor, node);
    }
    ck_assert_ptr_eq(node_own(ledger_node(book, "n0"))->pulse, first);
    ledger_next_node(book, &cursor, "other", NODE_PULSE);
    expect_same(&cursor, other);
}
END_TEST

/* --- health --------------------------------------------------------------------------------- */

START_TEST(exactly_the_named_cards_are_unhealthy)
{
    const struct node *node = set_equal_cards("n1", 3, 16);

    for (int32_t i = 0; i < 3; i++)
        ck_assert(node->cards[i].healthy);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){0, 2, 2, 9, -1}, 5);
    ck_assert(!node->cards[0].healthy);
    ck_assert(node->cards[1].healthy);
    ck_assert(!node->cards[2].healthy);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){1}, 1);
    ck_assert(node->cards[0].healthy);
    ck_assert(!node->cards[1].healthy);
    ledger_set_unhealthy(book, "n1", NULL, 0);
    ck_assert(node->cards[1].healthy);
}
END_TEST

START_TEST(health_outlives_cards_and_nodes)
{
    ledger_set_unhealthy(book, "n1", (const int32_t[]){3}, 1);
    const struct node *node = set_equal_cards("n1", 2, 16);
    ck_assert(node->cards[0].healthy && node->cards[1].healthy);
    set_equal_cards("n1", 4, 16);
    ck_assert(!node->cards[3].healthy);
    ledger_remove_node(book, "n1");
    ck_assert_ptr_nonnull(ledger_node(book, "n1"));
    set_equal_cards("n1", 4, 16);
    ck_assert(!node->cards[3].healthy);
    ledger_remove_node(book, "n1");
    ledger_set_unhealthy(book, "n1", NULL, 0);
    ck_assert_ptr_null(ledger_node(book, "n1"));
}
END_TEST

/* --- the summary ---------------------------------------------------------------------------- */

START_TEST(the_summary_follows_every_change)
{
    const struct node *node = set_cards("n1", GIB, 3, (const int64_t[]){8, 16, 12});

    ck_assert_int_eq(node->memory_free_max, 16 * GIB);
    put("n1", "u1", 1, 10);
    ck_assert_int_eq(node->memory_free_max, 12 * GIB);
    put("n1", "u2", CARD_UNKNOWN, 1);
    ck_assert_int_eq(node->memory_free_max, 11 * GIB);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){2}, 1);
    ck_assert_int_eq(node->memory_free_max, 7 * GIB);
    ledger_put(book, "n1", HOLDING("u3", exclusive_on(0)));
    ck_assert_int_eq(node->memory_free_max, 5 * GIB);
    ledger_drop(book, "u1");
    ck_assert_int_eq(node->memory_free_max, 15 * GIB);
    ledger_drop(book, "u2");
    ck_assert_int_eq(node->memory_free_max, 16 * GIB);
    ledger_set_unhealthy(book, "n1", (const int32_t[]){0, 1, 2}, 3);
    ck_assert_int_lt(node->memory_free_max, 0);
    ledger_set_unhealthy(book, "n1", NULL, 0);
    put("n1", "u4", 1, 99);
    ck_assert_int_eq(node->memory_free_max, 12 * GIB);
    set_equal_cards("n1", 0, 0);
    ck_assert_int_lt(node->memory_free_max, 0);
}
END_TEST

/* --- room ----------------------------------------------------------------------------------- */

/* Whether something may have become free on the node since it was asked last. */
static bool freed(const char *name)
{
    static uint64_t seen;
    const struct node *node = ledger_node(book, name);
    bool news = node && node_own(node)->freed_at > seen;

    seen = ledger_freed(book);
    return news;
}

START_TEST(who_waits_for_room_learns_of_it)
{
    static const int32_t first = 0;

    set_equal_cards("n1", 2, 10);
    set_equal_cards("n2", 2, 10);
    ck_assert(freed("n2")); /* it is new */
    put("n1", "u1", 0, 4);
    ck_assert(!freed("n1")); /* less is free */
    put("n1", "u1", 0, 4);
    ck_assert(!freed("n1")); /* no news */
    put("n1", "u1", 1, 4);
    ck_assert(freed("n1"));
    ck_assert(!freed("n2"));
    put("n2", "u1", 1, 4);
    ck_assert(freed("n1")); /* moved away */
    ledger_drop(book, "u1");
    ck_assert(freed("n2"));
    ck_assert(!freed("n1"));
    ledger_set_unhealthy(book, "n1", &first, 1);
    freed("n1");
    ledger_set_unhealthy(book, "n1", NULL, 0);
    ck_assert(freed("n1"));
    set_equal_cards("n1", 2, 20);
    ck_assert(freed("n1"));
}
END_TEST

/* --- verification --------------------------------------------------------------------------- */

/* Any field that drifts is found. The change is undone, for teardown verifies once more. */
START_TEST(drift_is_found)
{
    struct node *node = set_equal_cards("n1", 2, 16);
    g_autoptr(GError) error = NULL;

    put("n1", "u1", 1, 5);
    put("n1", "u2", CARD_UNKNOWN, 5);
    ck_assert(ledger_verify(book, &error));

#define DRIFTS(lvalue)                                                                             \
    do {                                                                                           \
        (lvalue)++;                                                                                \
        ck_assert_msg(!ledger_verify(book, &error), "%s", #lvalue);                                \
        ck_assert_msg(strstr(error->message, "'n1'") != NULL, "%s", error->message);               \
        ck_assert(!ledger_verify(book, NULL));                                                     \
        g_clear_error(&error);                                                                     \
        (lvalue)--;                                                                                \
    } while (0)
    DRIFTS(node->cards[1].memory_used);
    DRIFTS(node->cards[0].memory_used);
    DRIFTS(node->cards[1].core_used);
    DRIFTS(node->cards[1].holders);
    DRIFTS(node->cards[1].exclusive);
    DRIFTS(node->unplaced_memory);
    DRIFTS(node->unplaced_core);
    DRIFTS(node->unplaced_holders);
    DRIFTS(node->unplaced_exclusive);
    DRIFTS(node->n_waiting);
    DRIFTS(node->memory_free_max);
    ck_assert(ledger_verify(book, NULL));
}
END_TEST

START_TEST(a_pod_on_the_wrong_list_is_found)
{
    struct node *node = set_equal_cards("n1", 2, 16);
    struct node *other = set_equal_cards("n2", 2, 16);
    struct allocation *allocation = put("n1", "u1", 0, 0);

    g_ptr_array_add(other->allocations, allocation);
    other->cards[0].holders++;
    ck_assert(!ledger_verify(book, NULL));
    g_ptr_array_remove(node->allocations, allocation);
    node->cards[0].holders--;
    ck_assert(!ledger_verify(book, NULL));
    g_ptr_array_remove(other->allocations, allocation);
    other->cards[0].holders--;
    ck_assert(!ledger_verify(book, NULL));
    g_ptr_array_add(node->allocations, allocation);
    node->cards[0].holders++;
}
END_TEST

static uint32_t marks_of(const char *name)
{
    return node_own(ledger_node(book, name))->pulse->marks;
}

START_TEST(a_mark_stays_with_the_name)
{
    set_equal_cards("n1", 1, 1);
    ledger_mark(book, "n1", 3, true);
    ledger_mark(book, "n1", 5, true);
    ledger_mark(book, "n2", 3, true);
    ck_assert_uint_eq(marks_of("n1"), 1 << 3 | 1 << 5);
    set_equal_cards("n2", 1, 1);
    set_equal_cards("n3", 1, 1);
    ck_assert_uint_eq(marks_of("n2"), 1 << 3);
    ck_assert_uint_eq(marks_of("n3"), 0);
    ledger_mark(book, "n1", 3, false);
    ck_assert_uint_eq(marks_of("n1"), 1 << 5);
    ledger_remove_node(book, "n1");
    ledger_mark(book, "n1", 5, false);
    set_equal_cards("n1", 1, 1);
    ck_assert_uint_eq(marks_of("n1"), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ledger_nodes");
    TCase *tc = tcase_create("ledger_nodes");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nodes_are_in_order_of_name);
    tcase_add_test(tc, many_nodes_are_told_apart);
    tcase_add_test(tc, nodes_that_come_after_others_have_gone_are_new);
    tcase_add_test(tc, a_pod_may_come_before_its_node);
    tcase_add_test(tc, cards_come_and_go_below_their_pods);
    tcase_add_test(tc, a_card_may_shrink_below_its_pods);
    tcase_add_test(tc, what_was_granted_in_another_unit_stays);
    tcase_add_test(tc, what_may_be_of_the_other_unit_is_the_larger);
    tcase_add_test(tc, what_is_not_believed_lowers_nothing);
    tcase_add_test(tc, a_change_of_unit_is_a_change_of_amounts);
    tcase_add_test(tc, a_node_may_stop_sharing);
    tcase_add_test(tc, a_node_that_goes_keeps_its_pods_until_they_end);
    tcase_add_test(tc, names_may_be_the_ledgers_own);
    tcase_add_test(tc, nodes_asked_for_in_order_are_the_right_ones);
    tcase_add_test(tc, pulses_of_many_nodes_stay_where_they_are);
    tcase_add_test(tc, exactly_the_named_cards_are_unhealthy);
    tcase_add_test(tc, health_outlives_cards_and_nodes);
    tcase_add_test(tc, the_summary_follows_every_change);
    tcase_add_test(tc, who_waits_for_room_learns_of_it);
    tcase_add_test(tc, a_mark_stays_with_the_name);
    tcase_add_test(tc, drift_is_found);
    tcase_add_test(tc, a_pod_on_the_wrong_list_is_found);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
