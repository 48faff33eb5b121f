/* SPDX-License-Identifier: Apache-2.0 */
/* What cards with slots, cores and UUIDs, and pools of devices, are charged. */
#include "book.h"
#include "suite.h"

static struct topology *begin(int32_t n_cards)
{
    struct topology *topology = topology_new();

    topology->dialect = DIALECT;
    topology->memory_unit = 1;
    topology->n_cards = n_cards;
    for (int32_t i = 0; i < n_cards; i++)
        topology->cards[i].memory = 16 * GIB;
    return topology;
}

static struct share on(int32_t card, int64_t gib, int32_t core, bool init)
{
    return (struct share){.memory = {gib * GIB, AMOUNT_BYTES},
                          .card = card,
                          .core = core,
                          .init = init};
}

static struct share on_uuid(const char *uuid, int64_t gib)
{
    return (struct share){
        .memory = {gib * GIB, AMOUNT_BYTES}, .card = CARD_UNKNOWN, .key = card_key(uuid)};
}

static struct share of_pool(const char *device, int32_t devices)
{
    return (struct share){.card = CARD_UNKNOWN, .device = device, .devices = devices};
}

static const struct card *card_of(const char *node, int32_t index)
{
    return node_card(ledger_node(book, node), index);
}

static struct share of_container(int32_t container, struct share share)
{
    share.container = container;
    return share;
}

static struct share of_sidecar(int32_t container, struct share share)
{
    share.sidecar = true;
    return of_container(container, share);
}

START_TEST(init_containers_count_as_their_peak)
{
    g_autoptr(topology) topology = begin(2);

    ledger_set_topology(book, "n1", topology);
    /* Two that run one after the other before 3 + 4 GiB run together. */
    ck_assert_int_eq(reserve("n1", HOLDING("u1", of_container(2, on(0, 10, 100, true)),
                                           of_container(3, on(0, 6, 700, true)),
                                           of_container(0, on(0, 3, 200, false)),
                                           of_container(1, on(0, 4, 300, false)),
                                           of_container(4, on(1, 2, 0, true)))),
                     REASON_NONE);
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 10 * GIB);
    ck_assert_int_eq(card_of("n1", 0)->core_used, 700);
    ck_assert_int_eq(card_of("n1", 0)->holders, 2);
    ck_assert_int_eq(card_of("n1", 1)->memory_used, 2 * GIB);
    ck_assert_int_eq(card_of("n1", 1)->holders, 1);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", on(0, 7, 0, false))), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", on(0, 6, 0, false))), REASON_NONE);
    ledger_drop(book, "u1");
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 6 * GIB);
    ck_assert_int_eq(card_of("n1", 0)->core_used, 0);
    ck_assert_int_eq(card_of("n1", 1)->holders, 0);
}
END_TEST

/* HAMi's 100 cores: of a card that gives out 200 they are a half, and nobody's own card. */
START_TEST(a_whole_core_is_alone_unless_there_are_more)
{
    g_autoptr(topology) topology = begin(2);
    struct share whole = on(0, 1, CORE_WHOLE, false);

    whole.exclusive = true;
    topology->cards[0].core = CORE_WHOLE;
    topology->cards[1].core = 2 * CORE_WHOLE;
    ledger_set_topology(book, "n1", topology);
    for (whole.card = 0; whole.card < 2; whole.card++) {
        g_autofree char *first = g_strdup_printf("u%d", 2 * whole.card);
        g_autofree char *second = g_strdup_printf("u%d", 2 * whole.card + 1);
        ck_assert_int_eq(reserve("n1", HOLDING(first, whole)), REASON_NONE);
        ck_assert_int_eq(card_of("n1", whole.card)->exclusive, whole.card == 0);
        ck_assert_int_eq(reserve("n1", HOLDING(second, whole)) == REASON_NONE, whole.card == 1);
    }
    ck_assert_int_eq(reserve("n1", HOLDING("u4", on(1, 1, 1, false))), REASON_INSUFFICIENT_CORE);
}
END_TEST

/* kubelet's sum: each init container runs beside the sidecars that were started before it. */
START_TEST(sidecars_run_beside_the_init_containers_after_them)
{
    g_autoptr(topology) topology = begin(1);

    ledger_set_topology(book, "n1", topology);
    ledger_put(book, "n1", HOLDING("u1", of_container(0, on(0, 1, 0, false)),
                                   of_container(1, on(0, 6, 0, true)),
                                   of_sidecar(2, on(0, 9, 100, false)),
                                   of_container(3, on(0, 4, 500, true)),
                                   of_sidecar(4, on(0, 1, 0, false))));
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 13 * GIB); /* 9 + 4; later 1 + 9 + 1 */
    ck_assert_int_eq(card_of("n1", 0)->core_used, 600);
    ledger_drop(book, "u1");
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 0);
}
END_TEST

START_TEST(slots_limit_the_holders)
{
    g_autoptr(topology) topology = begin(1);

    topology->cards[0].slots = 2;
    ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", on(0, 1, 0, false), on(0, 1, 0, false))),
                     REASON_NONE);
    ck_assert_int_eq(ledger_node(book, "n1")->memory_free_max, -1);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", on(0, 1, 0, false))), REASON_NO_SLOT);
}
END_TEST

START_TEST(a_card_may_have_more_core_than_one)
{
    g_autoptr(topology) topology = begin(1);

    topology->cards[0].core = 1500;
    ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", on(0, 0, 1000, false))), REASON_NONE);
    ck_assert_int_eq(card_core_free(ledger_node(book, "n1"), card_of("n1", 0)), 500);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", on(0, 0, 501, false))), REASON_INSUFFICIENT_CORE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", on(0, 0, 500, false))), REASON_NONE);
    /* Nothing is left to compute with. */
    ck_assert_int_eq(reserve("n1", HOLDING("u3", on(0, 1, 0, false))), REASON_INSUFFICIENT_CORE);
}
END_TEST

START_TEST(a_card_is_known_by_its_uuid_wherever_it_is)
{
    g_autoptr(topology) before = begin(2), after = begin(3);

    before->cards[0].uuid = "GPU-a";
    before->cards[1].uuid = "GPU-b";
    after->cards[0].uuid = "GPU-c";
    after->cards[1].uuid = "GPU-b";
    after->cards[2].uuid = "GPU-a";
    /* The pod comes first, as lists may. */
    ledger_put(book, "n1", HOLDING("u1", on_uuid("GPU-a", 5), on_uuid("GPU-b", 3)));
    ck_assert_int_eq(ledger_get(book, "u1")->shares[0].card, CARD_UNKNOWN);
    ledger_set_topology(book, "n1", before);
    ck_assert_int_eq(ledger_get(book, "u1")->shares[0].card, 0);
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 5 * GIB);
    ledger_set_topology(book, "n1", after);
    ck_assert_int_eq(ledger_get(book, "u1")->shares[0].card, 2);
    ck_assert_int_eq(card_of("n1", 0)->memory_used, 0);
    ck_assert_int_eq(card_of("n1", 1)->memory_used, 3 * GIB);
    ck_assert_int_eq(card_of("n1", 2)->memory_used, 5 * GIB);
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_memory, 0);
}
END_TEST

START_TEST(a_uuid_that_the_node_lacks_is_unplaced)
{
    g_autoptr(topology) topology = begin(2);

    topology->cards[0].uuid = "GPU-a";
    topology->cards[1].uuid = "GPU-b";
    ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", on_uuid("GPU-z", 5))), REASON_CARD_COUNT);
    ledger_put(book, "n1", HOLDING("u1", on_uuid("GPU-z", 5)));
    ck_assert_int_eq(ledger_node(book, "n1")->unplaced_memory, 5 * GIB);
    ck_assert_int_eq(free_on("n1", 0), 11);
    ck_assert_int_eq(free_on("n1", 1), 11);
}
END_TEST

START_TEST(pools_are_counted)
{
    g_autoptr(topology) topology = begin(0);
    const struct node *node;

    topology->pools[topology->n_pools++] =
        (struct pool){.resource = topology_keep(topology, "example.com/gpu"), .capacity = 4};
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", of_pool("example.com/gpu", 3))), REASON_NONE);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", of_pool("example.com/gpu", 2))),
                     REASON_INSUFFICIENT_DEVICES);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", of_pool("example.com/mig", 1))),
                     REASON_INSUFFICIENT_DEVICES);
    ck_assert_int_eq(reserve("n1", HOLDING("u2", of_pool("example.com/gpu", 1))), REASON_NONE);
    ck_assert_int_eq(node_pool(node, "example.com/gpu")->used, 4);
    /* Whoever binds without asking may go beyond. */
    ledger_put(book, "n1", HOLDING("u3", of_pool("example.com/gpu", 1)));
    ck_assert_int_eq(node_pool(node, "example.com/gpu")->used, 5);
    /* The node's word changes under its pods. */
    topology->pools[0].capacity = 8;
    ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(node_pool(node, "example.com/gpu")->used, 5);
    ledger_drop(book, "u1");
    ck_assert_int_eq(node_pool(node, "example.com/gpu")->used, 2);
    ck_assert_int_eq(node->unplaced_holders, 0);
}
END_TEST

START_TEST(parts_of_a_card_are_whole_mebibytes)
{
    g_autoptr(topology) topology = begin(2);
    const struct node *node;

    topology->cards[1].memory = 11019 * MIB;
    node = ledger_set_topology(book, "n1", topology);
    const struct amount third = {333, AMOUNT_THOUSANDTHS}, whole = {1000, AMOUNT_THOUSANDTHS};
    ck_assert_int_eq(card_bytes(node, card_of("n1", 1), third), 3669 * MIB);
    ck_assert_int_eq(card_bytes(node, card_of("n1", 1), whole), 11019 * MIB);
    ck_assert_int_eq(card_bytes(node, NULL, whole), 16 * GIB);
}
END_TEST

START_TEST(what_the_node_says_of_its_health_counts)
{
    g_autoptr(topology) topology = begin(2);
    const int32_t first = 0;

    topology->cards[1].unhealthy = true;
    ledger_set_topology(book, "n1", topology);
    ck_assert(card_of("n1", 0)->healthy && !card_of("n1", 1)->healthy);
    ledger_set_unhealthy(book, "n1", &first, 1);
    ck_assert(!card_of("n1", 0)->healthy && !card_of("n1", 1)->healthy);
    ledger_set_unhealthy(book, "n1", NULL, 0);
    ck_assert(card_of("n1", 0)->healthy && !card_of("n1", 1)->healthy);
}
END_TEST

START_TEST(who_else_holds_a_card_is_known)
{
    g_autoptr(topology) topology = begin(2);
    struct allocation *other = HOLDING("u1", on(1, 1, 0, false));
    const struct node *node;

    topology->dialects[0] = DIALECT;
    topology->dialects[1] = OTHER_DIALECT;
    topology->n_dialects = 2;
    node = ledger_set_topology(book, "n1", topology);
    other->dialect = OTHER_DIALECT;
    ck_assert_int_eq(reserve("n1", other), REASON_NONE);
    ck_assert(node_offers(node, DIALECT) && node_offers(node, OTHER_DIALECT));
    ck_assert(node_taken_by_other(node, NULL, DIALECT));
    ck_assert(node_taken_by_other(node, card_of("n1", 1), DIALECT));
    ck_assert(!node_taken_by_other(node, card_of("n1", 0), DIALECT));
    ck_assert(!node_taken_by_other(node, card_of("n1", 1), OTHER_DIALECT));
    /* What may be anywhere is everywhere. */
    other = HOLDING("u2", on(CARD_UNKNOWN, 1, 0, false));
    other->dialect = OTHER_DIALECT;
    ledger_put(book, "n1", other);
    ck_assert(node_taken_by_other(node, card_of("n1", 0), DIALECT));
}
END_TEST

START_TEST(who_reserves_cards_is_no_pod_without_them)
{
    const struct host host = {100, 0, 1};

    set_equal_cards("n1", 1, 16);
    ledger_put_cpu_pod(book, "n1", "u1", host, 0);
    ck_assert_int_eq(reserve("n1", HOLDING("u1", on(0, 1, 0, false))), REASON_NONE);
    ck_assert_int_eq(ledger_node(book, "n1")->n_cpu_pods, 0);
    ck_assert(ledger_put_cpu_pod(book, "n1", "u1", host, 0));
    ck_assert(ledger_put_cpu_pod(book, "n1", "u2", host, 0));
    ck_assert_ptr_null(ledger_get(book, "u1"));
    ck_assert_int_eq(ledger_node(book, "n1")->n_cpu_pods, 2);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ledger cards");
    TCase *tc = tcase_create("cards");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_whole_core_is_alone_unless_there_are_more);
    tcase_add_test(tc, init_containers_count_as_their_peak);
    tcase_add_test(tc, sidecars_run_beside_the_init_containers_after_them);
    tcase_add_test(tc, slots_limit_the_holders);
    tcase_add_test(tc, a_card_may_have_more_core_than_one);
    tcase_add_test(tc, a_card_is_known_by_its_uuid_wherever_it_is);
    tcase_add_test(tc, a_uuid_that_the_node_lacks_is_unplaced);
    tcase_add_test(tc, pools_are_counted);
    tcase_add_test(tc, parts_of_a_card_are_whole_mebibytes);
    tcase_add_test(tc, what_the_node_says_of_its_health_counts);
    tcase_add_test(tc, who_else_holds_a_card_is_known);
    tcase_add_test(tc, who_reserves_cards_is_no_pod_without_them);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
