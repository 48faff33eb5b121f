/* SPDX-License-Identifier: Apache-2.0 */
/* Where pods go that have conditions, several containers, or want devices of a pool. */
#include "book.h"
#include "suite.h"

#include <gpuledger/placement.h>

static struct topology *hardware;
static struct placement placement;

static void begin(int32_t n_cards)
{
    hardware = topology_new();
    hardware->dialect = DIALECT;
    hardware->memory_unit = 1;
    hardware->n_cards = n_cards;
    for (int32_t i = 0; i < n_cards; i++)
        hardware->cards[i] = (struct topology_card){.memory = 16 * GIB};
}

static void start(void)
{
    setup();
    begin(4);
}

static void stop(void)
{
    topology_free(hardware);
    teardown();
}

static struct request *asking(size_t n, const struct card_ask *asks, struct terms *take_terms)
{
    struct request *request = request_new(DIALECT, n);

    memcpy(request->asks, asks, n * sizeof *asks);
    request->terms = take_terms;
    return request;
}

#define ASKING(terms, ...)                                                                         \
    asking(G_N_ELEMENTS(((const struct card_ask[]){__VA_ARGS__})),                                 \
           (const struct card_ask[]){__VA_ARGS__}, terms)
#define ASK(gib, n, ...)                                                                           \
    {.memory = {(gib) * GIB, AMOUNT_BYTES}, .count = n, __VA_ARGS__}

/* Places and frees the request. */
static enum reason find(struct request *take_request)
{
    const struct node *node = ledger_set_topology(book, "n1", hardware);
    enum reason reason =
        placement_find(node, take_request, policy_find("first-fit"), NULL, CARD_UNKNOWN, &placement);

    request_free(take_request);
    return reason;
}

static struct terms *list(size_t offset, const char *items)
{
    struct terms *terms = terms_new();
    *(char ***)((char *)terms + offset) = g_strsplit(items, ",", -1);
    return terms;
}
#define LIST(member, items) list(offsetof(struct terms, member), items)

START_TEST(models_are_parts_of_names)
{
    hardware->cards[1].model = "NVIDIA A100-SXM4-40GB";
    hardware->cards[2].model = "Tesla T4";
    ck_assert_int_eq(find(ASKING(LIST(models, "a100,v100"), ASK(1, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(find(ASKING(LIST(models, "a100,t4"), ASK(1, 3))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(LIST(models, "h100"), ASK(1, 1))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(LIST(models_not, "A100,t4"), ASK(1, 2))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    ck_assert_int_eq(placement.shares[1].card, 3);
}
END_TEST

START_TEST(uuids_are_exact)
{
    hardware->cards[2].uuid = "GPU-22";
    ck_assert_int_eq(find(ASKING(LIST(uuids, "GPU-2,GPU-22"), ASK(1, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 2);
    ck_assert_int_eq(find(ASKING(LIST(uuids, "GPU-2"), ASK(1, 1))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(LIST(uuids_not, "GPU-22"), ASK(1, 4))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(LIST(uuids_not, "GPU-22"), ASK(1, 3))), REASON_NONE);
    ck_assert_int_eq(placement.shares[2].card, 3);
}
END_TEST

START_TEST(cards_of_a_container_share_a_numa_node)
{
    struct terms *terms = terms_new();

    terms->same_numa = true;
    hardware->cards[0].numa = 0;
    hardware->cards[1].numa = hardware->cards[3].numa = 1;
    hardware->cards[2].numa = 2;
    ck_assert_int_eq(find(ASKING(terms_ref(terms), ASK(1, 2))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[1].card, 3);
    ck_assert_int_ne(find(ASKING(terms_ref(terms), ASK(1, 3))), REASON_NONE);
    /* Another container may be elsewhere. */
    ck_assert_int_eq(find(ASKING(terms, ASK(1, 2), ASK(16, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[2].card, 0);
}
END_TEST

START_TEST(idle_cards_have_no_holders)
{
    struct terms *terms = terms_new();

    terms->idle = true;
    put("n1", "u1", 0, 0);
    ck_assert_int_eq(find(ASKING(terms_ref(terms), ASK(1, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(find(ASKING(terms, ASK(1, 4))), REASON_INSUFFICIENT_MEMORY);
}
END_TEST

START_TEST(a_mode_is_one_of_those_accepted)
{
    struct terms *terms = terms_new();

    terms->mode = g_strdup("mig,mps");
    for (int i = 0; i < 3; i++)
        hardware->cards[i].mode = "hami-core";
    hardware->cards[3].mode = "mig";
    ck_assert_int_eq(find(ASKING(terms, ASK(1, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 3);
}
END_TEST

START_TEST(a_card_without_a_mode_is_not_cut)
{
    struct terms *hook = terms_new(), *mig = terms_new();

    hook->mode = g_strdup("hami-core");
    mig->mode = g_strdup("mig");
    for (int i = 1; i < 4; i++)
        hardware->cards[i].mode = "mps";
    ck_assert_int_eq(find(ASKING(hook, ASK(1, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    ck_assert_int_eq(find(ASKING(mig, ASK(1, 1))), REASON_TERMS);
}
END_TEST

START_TEST(containers_are_beside_each_other_or_apart)
{
    struct terms *same = terms_new(), *different = terms_new();

    same->neighbours = NEIGHBOURS_SAME_CARD;
    different->neighbours = NEIGHBOURS_DIFFERENT_CARDS;
#define THREE {.memory = {4 * GIB, AMOUNT_BYTES}, .count = 1, .container = 0},                     \
              {.memory = {4 * GIB, AMOUNT_BYTES}, .count = 1, .container = 1},                     \
              {.memory = {4 * GIB, AMOUNT_BYTES}, .count = 1, .container = 2}
    put("n1", "u1", 0, 8 * GIB); /* leaves room for two of them */
    ck_assert_int_eq(find(ASKING(same, THREE)), REASON_NONE);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(placement.shares[i].card, 1);
    ck_assert_int_eq(find(ASKING(terms_ref(different), THREE)), REASON_NONE);
    for (int32_t i = 0; i < 3; i++)
        ck_assert_int_eq(placement.shares[i].card, i);
    hardware->cards[2].unhealthy = hardware->cards[3].unhealthy = true;
    ck_assert_int_ne(find(ASKING(different, THREE)), REASON_NONE);
    ck_assert_int_eq(find(ASKING(NULL, THREE)), REASON_NONE);
}
END_TEST

START_TEST(an_earlier_container_makes_room_for_a_later_one)
{
    struct terms *terms = LIST(uuids, "GPU-0,GPU-1");

    /* Taken greedily, card 0 goes to the first, and the second finds 12 GiB nowhere. */
    hardware->cards[0].uuid = "GPU-0";
    hardware->cards[1].uuid = "GPU-1";
    hardware->cards[1].memory = 6 * GIB;
    ck_assert_int_eq(find(ASKING(terms, ASK(6, 1), ASK(12, 1))), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(placement.shares[1].card, 0);
}
END_TEST

START_TEST(a_search_without_end_is_given_up)
{
    struct card_ask asks[40];

    topology_free(hardware);
    begin(32);
    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++)
        asks[i] = (struct card_ask)ASK(10, 1);
    ck_assert_int_eq(find(asking(G_N_ELEMENTS(asks), asks, NULL)), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(find(asking(32, asks, NULL)), REASON_NONE);
}
END_TEST

START_TEST(init_containers_are_placed_beside_nobody_of_their_pod)
{
    ck_assert_int_eq(find(ASKING(NULL, ASK(16, 4, .container = 0), ASK(16, 4, .container = 1,
                                                                       .init = true))),
                     REASON_NONE);
    ck_assert_uint_eq(placement.n_shares, 8);
}
END_TEST

START_TEST(devices_come_from_their_pool)
{
    hardware->pools[hardware->n_pools++] = (struct pool){
        .resource = topology_keep(hardware, "example.com/mig"), .capacity = 4, .at_once = 2,
        .memory = 5 * GIB, .model = topology_keep(hardware, "A100"), .shared = true};
    struct terms *large = terms_new(), *alone = terms_new();
    large->memory_min = 6 * GIB;
    alone->unshared = true;
#define DEVICES(n) {.count = n, .device = "example.com/mig"}
    ck_assert_int_eq(find(ASKING(NULL, DEVICES(2), DEVICES(2))), REASON_NONE);
    ck_assert_str_eq(placement.shares[1].device, "example.com/mig");
    ck_assert_int_eq(placement.shares[1].devices, 2);
    ck_assert_int_eq(find(ASKING(NULL, DEVICES(2), DEVICES(2), DEVICES(1))),
                     REASON_INSUFFICIENT_DEVICES);
    ck_assert_int_eq(find(ASKING(NULL, DEVICES(3))), REASON_DEVICES_AT_ONCE);
    ck_assert_int_eq(find(ASKING(NULL, {.count = 1, .device = "example.com/gpu"})),
                     REASON_CARD_COUNT);
    ck_assert_int_eq(find(ASKING(large, DEVICES(1))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(alone, DEVICES(1))), REASON_TERMS);
    ck_assert_int_eq(find(ASKING(LIST(models, "a30"), DEVICES(1))), REASON_TERMS);
}
END_TEST

START_TEST(isolation_has_names)
{
    enum isolation isolation;

    for (unsigned i = 0; i < ISOLATION_N; i++) {
        ck_assert(isolation_find(isolation_name(i), &isolation));
        ck_assert_uint_eq(isolation, i);
    }
    ck_assert(!isolation_find("strong", &isolation));
    ck_assert(!isolation_find(NULL, &isolation));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("terms");
    TCase *tc = tcase_create("terms");

    tcase_add_checked_fixture(tc, start, stop);
    tcase_add_test(tc, models_are_parts_of_names);
    tcase_add_test(tc, uuids_are_exact);
    tcase_add_test(tc, cards_of_a_container_share_a_numa_node);
    tcase_add_test(tc, idle_cards_have_no_holders);
    tcase_add_test(tc, a_mode_is_one_of_those_accepted);
    tcase_add_test(tc, a_card_without_a_mode_is_not_cut);
    tcase_add_test(tc, containers_are_beside_each_other_or_apart);
    tcase_add_test(tc, an_earlier_container_makes_room_for_a_later_one);
    tcase_add_test(tc, a_search_without_end_is_given_up);
    tcase_add_test(tc, init_containers_are_placed_beside_nobody_of_their_pod);
    tcase_add_test(tc, devices_come_from_their_pool);
    tcase_add_test(tc, isolation_has_names);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
