/* SPDX-License-Identifier: Apache-2.0 */
/* Where instances may be on a card that is cut, by an A100 of 40 GB. */
#include "book.h"
#include "suite.h"

#include <gpuledger/mig.h>
#include <gpuledger/placement.h>

#define ROUNDS 1000

static const struct {
    const char *name;
    int64_t gib;
    int32_t slices, size, n;
    uint8_t starts[7];
} a100[] = {
    {"1g.5gb", 5, 1, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
    {"2g.10gb", 10, 2, 2, 3, {0, 2, 4}},
    {"3g.20gb", 20, 3, 4, 2, {0, 4}},
    {"4g.20gb", 20, 4, 4, 1, {0}},
    {"7g.40gb", 40, 7, 8, 1, {0}},
};

static struct mig_profiles *profiles_of_a100(void)
{
    struct mig_profiles *profiles = mig_profiles_new(G_N_ELEMENTS(a100));

    for (size_t i = 0; i < G_N_ELEMENTS(a100); i++) {
        struct mig_profile *profile = &profiles->items[i];
        g_strlcpy(profile->name, a100[i].name, sizeof profile->name);
        profile->memory = a100[i].gib * GIB;
        profile->core = a100[i].slices * 1000 / 7;
        profile->n_places = a100[i].n;
        for (int32_t j = 0; j < a100[i].n; j++)
            profile->places[j] = (struct mig_place){0, a100[i].starts[j], (uint8_t)a100[i].size};
    }
    return profiles;
}

static struct node *put_node(int32_t n_cards)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = 1;
    topology->n_cards = n_cards;
    for (int32_t i = 0; i < n_cards; i++)
        topology->cards[i] = (struct topology_card){.memory = 40 * GIB, .mig = profiles_of_a100()};
    return ledger_set_topology(book, "n1", topology);
}

static struct share instance(int64_t gib, uint8_t start, uint8_t size)
{
    return (struct share){.memory = {gib * GIB, AMOUNT_BYTES}, .place = {0, start, size}};
}

START_TEST(only_places_of_the_profile_are_instances)
{
    put_node(1);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", instance(5, 7, 1))), REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", instance(10, 1, 2))), REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", instance(6, 0, 1))), REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", instance(5, 0, 0))), REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", instance(20, 4, 4), instance(10, 2, 2))),
                     REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", instance(5, 3, 1))), REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", instance(5, 0, 1), instance(5, 0, 1))),
                     REASON_NO_MIG_PLACE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", instance(5, 0, 1), instance(5, 1, 1))),
                     REASON_NONE);
}
END_TEST

START_TEST(who_says_no_place_has_the_card)
{
    struct node *node = put_node(2);
    struct mig_taken taken;
    struct share nowhere = instance(5, 0, 0), unknown = instance(5, 0, 1);

    unknown.card = CARD_UNKNOWN;
    ledger_put(book, "n1", HOLDING("u1", nowhere));
    taken = mig_taken_of(node, &node->cards[0], NULL);
    ck_assert(taken.all);
    taken = mig_taken_of(node, &node->cards[1], NULL);
    ck_assert(!taken.all && !taken.any);
    ledger_put(book, "n1", HOLDING("u2", unknown));
    taken = mig_taken_of(node, &node->cards[1], NULL);
    ck_assert_msg(taken.all, "it may be on any");
}
END_TEST

START_TEST(layouts_exclude_each_other)
{
    struct mig_taken taken = {0};

    mig_take(&taken, (struct mig_place){2, 0, 1});
    ck_assert(mig_is_free(&taken, (struct mig_place){2, 1, 1}));
    ck_assert(!mig_is_free(&taken, (struct mig_place){2, 0, 1}));
    ck_assert(!mig_is_free(&taken, (struct mig_place){1, 1, 1}));
    mig_take(&taken, (struct mig_place){1, 1, 1});
    ck_assert(!mig_is_free(&taken, (struct mig_place){2, 5, 1}));
}
END_TEST

/* With 3g at 0 and 1g at 6, a 2g fits at 4 and nowhere else. */
START_TEST(the_planner_finds_the_place)
{
    g_autoptr(mig_profiles) profiles = profiles_of_a100();
    struct mig_taken taken = {0};
    struct mig_place place;

    mig_take(&taken, (struct mig_place){0, 0, 4});
    mig_take(&taken, (struct mig_place){0, 6, 1});
    ck_assert_str_eq(mig_choose(profiles, &taken, 10 * GIB, 0, &place)->name, "2g.10gb");
    ck_assert_int_eq(place.start, 4);
    ck_assert_ptr_null(mig_choose(profiles, &taken, 20 * GIB, 0, &place));
    mig_take(&taken, place);
    ck_assert_ptr_null(mig_choose(profiles, &taken, 1, 0, &place));
}
END_TEST

START_TEST(the_smallest_that_suffices_is_taken_where_it_hurts_least)
{
    static const struct {
        int64_t gib;
        int32_t core;
        const char *name; /* NULL: none */
        int start;        /* on an empty card */
    } cases[] = {
        {1, 0, "1g.5gb", 6},    {5, 142, "1g.5gb", 6},  {6, 0, "2g.10gb", 4},
        {5, 143, "2g.10gb", 4}, {11, 0, "3g.20gb", 4},  {11, 500, "4g.20gb", 0},
        {1, 1000, "7g.40gb", 0}, {40, 0, "7g.40gb", 0}, {41, 0, NULL, 0},
    };
    g_autoptr(mig_profiles) profiles = profiles_of_a100();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct mig_taken nothing = {0};
        struct mig_place place;
        const struct mig_profile *found =
            mig_choose(profiles, &nothing, cases[i].gib * GIB, cases[i].core, &place);
        ck_assert_ptr_eq(found, mig_smallest(profiles, cases[i].gib * GIB, cases[i].core));
        ck_assert_str_eq(found ? found->name : "-", cases[i].name ? cases[i].name : "-");
        if (found)
            ck_assert_msg(place.start == cases[i].start, "case %zu: %d", i, place.start);
    }
}
END_TEST

/* --- random lives ----------------------------------------------------------------------------- */

/* The card as a brute-force model sees it: one owner per slice. */
static void check_slices(const struct node *node)
{
    for (int32_t c = 0; c < node->n_cards; c++) {
        const void *owner[8] = {0};
        for (guint i = 0; i < node->allocations->len; i++) {
            const struct allocation *held = g_ptr_array_index(node->allocations, i);
            for (uint32_t j = 0; j < held->n_shares; j++) {
                const struct share *share = &held->shares[j];
                size_t p = 0;
                if (share->card != c)
                    continue;
                while (p < G_N_ELEMENTS(a100) &&
                       (a100[p].gib * GIB != share->memory.value ||
                        a100[p].size != share->place.size ||
                        !memchr(a100[p].starts, share->place.start, (size_t)a100[p].n)))
                    p++;
                ck_assert_msg(p < G_N_ELEMENTS(a100), "no such place");
                for (int s = share->place.start; s < share->place.start + share->place.size; s++) {
                    ck_assert_ptr_null(owner[s]);
                    owner[s] = share;
                }
            }
        }
    }
}

START_TEST(no_instance_is_ever_where_it_may_not_be)
{
    struct node *node = put_node(2);
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)_i + 1);
    char uid[16];
    int placed = 0;

    for (int round = 0; round < ROUNDS; round++) {
        g_snprintf(uid, sizeof uid, "u%d", g_rand_int_range(random, 0, 24));
        if (ledger_drop(book, uid))
            continue;
        g_autoptr(request) request = request_new(DIALECT, 1);
        struct placement placement;
        enum reason reason;
        request->asks[0] = (struct card_ask){
            .memory = {g_rand_int_range(random, 1, 41) * GIB, AMOUNT_BYTES},
            .count = g_rand_int_range(random, 1, 4),
            .core = g_rand_int_range(random, 0, 3) * 200};
        if (placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement) != REASON_NONE)
            continue;
        struct allocation *allocation = allocation_new(uid, "ml", uid, placement.n_shares);
        allocation->dialect = DIALECT;
        memcpy(allocation->shares, placement.shares,
               placement.n_shares * sizeof *placement.shares);
        ck_assert_ptr_nonnull(ledger_reserve(book, "n1", allocation, &reason));
        check_slices(node);
        placed++;
    }
    ck_assert_int_gt(placed, ROUNDS / 20);
}
END_TEST

/* 7 instances of the smallest size on each card, and no eighth. */
START_TEST(a_card_is_filled)
{
    struct node *node = put_node(1);
    g_autoptr(request) request = request_new(DIALECT, 1);
    struct placement placement;

    request->asks[0] = (struct card_ask){.memory = {4 * GIB, AMOUNT_BYTES}, .count = 7};
    ck_assert_int_eq(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    ck_assert_uint_eq(placement.n_shares, 7);
    ck_assert_int_eq(placement.shares[0].memory.value, 5 * GIB);
    ck_assert_int_eq(placement.shares[0].core, 142);
    request->asks[0].count = 8;
    ck_assert_int_eq(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NO_MIG_PLACE);
    request->asks[0].count = 1;
    ledger_put(book, "n1", HOLDING("u1", instance(20, 0, 4), instance(20, 4, 4)));
    ck_assert_int_ne(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    request->asks[0].memory.value = 41 * GIB;
    ck_assert_int_eq(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_CARD_TOO_SMALL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mig");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, only_places_of_the_profile_are_instances);
    tcase_add_test(all, who_says_no_place_has_the_card);
    tcase_add_test(all, layouts_exclude_each_other);
    tcase_add_test(all, the_planner_finds_the_place);
    tcase_add_test(all, the_smallest_that_suffices_is_taken_where_it_hurts_least);
    tcase_add_loop_test(all, no_instance_is_ever_where_it_may_not_be, 0, 10);
    tcase_add_test(all, a_card_is_filled);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
