/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that are registered with more memory than they have: 28.8 GiB of 16. */
#include "hami_words.h"
#include "ledger_end.h"
#include "suite.h"

#include <string.h>

#define CONSENT "gpuledger.io/oversubscribe"
#define PHYSICAL "gpuledger.io/physical-memory"
#define IN_USE "gpuledger.io/memory-in-use"

#define CARDS                                                                                      \
    "GPU-a,10,29491,100,NVIDIA-Tesla T4,0,true,0,hami-core:"                                       \
    "GPU-b,10,29491,100,NVIDIA-Tesla T4,0,true,1,hami-core:"

static const struct dialect_options options;
static struct ledger *book;
static struct node *node;

static void put_node_as(const char *physical, const char *in_use,
                        const struct dialect_options *said)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    const struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({REGISTERED, CARDS}, {PHYSICAL, physical}, {IN_USE, in_use}),
        .allocatable = PAIRS({GPU, "20"})};

    ck_assert(dialect_read_topology(&view, said, topology, &warning, NULL));
    node = ledger_set_topology(book, "n1", topology);
}

static void put_node(const char *in_use)
{
    put_node_as("*=16Gi", in_use, &options);
}

static void setup(void)
{
    book = ledger_new();
    put_node("");
}

static void teardown(void)
{
    ledger_end(book);
}

/* A pod that holds MiB of a card, as text. */
static void hold(const char *uid, const char *card, int mib, const char *consent)
{
    g_autofree char *text = g_strdup_printf("%s,NVIDIA,%d,0:;", card, mib);
    g_autofree char *limit = g_strdup_printf("%d", mib);
    struct pod_view view = {.ns = "ml", .name = uid, .uid = uid, .node_name = "n1",
                            .phase = "Running",
                            .annotations = PAIRS({ALLOCATED, text}, {CONSENT, consent}),
                            CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, limit})})};

    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
}

/* Where such a pod goes, and that the ledger agrees; -1: nowhere. */
static int place(const char *resource, const char *amount, const char *consent,
                 enum reason *ret_reason)
{
    const struct pod_view view = {.ns = "ml", .name = "p", .uid = "p",
                                  .annotations = PAIRS({CONSENT, consent}),
                                  CONTAINERS({.name = "c",
                                              .limits = PAIRS({GPU, "1"}, {resource, amount})})};
    g_autoptr(request) request = dialect_read_request(&view, &options, NULL);
    struct placement placement;

    ck_assert_ptr_nonnull(request);
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    if (dialect_admit(node, &query, &placement, ret_reason) != ADMISSION_YES)
        return -1;
    struct allocation *allocation = allocation_new("p", "ml", "p", 1);
    enum reason reason;
    allocation->dialect = request->dialect;
    allocation->oversubscribes = g_str_equal(consent, "true");
    allocation->shares[0] = placement.shares[0];
    ck_assert_ptr_nonnull(ledger_reserve(book, "n1", allocation, &reason));
    ledger_drop(book, "p");
    return placement.shares[0].card;
}

/* Grants up to 28.8 GiB, of which 16 to whom they are promised. */
START_TEST(virtual_and_physical_are_two_sums)
{
    enum reason reason;

    put_node("");
    ledger_set_unhealthy(book, "n1", (const int32_t[]){1}, 1);
    ck_assert_int_eq(place(MEM, "29491", "true", &reason), 0);
    ck_assert_int_eq(place(MEM, "29492", "true", &reason), -1);
    ck_assert_int_eq(reason, REASON_CARD_TOO_SMALL);
    ck_assert_int_eq(place(MEM, "16384", "false", &reason), 0);
    ck_assert_int_eq(place(MEM, "16385", "false", &reason), -1);
    hold("u1", "GPU-a", 10000, "false");
    ck_assert_int_eq(place(MEM, "6384", "false", &reason), 0);
    ck_assert_int_eq(place(MEM, "6385", "false", &reason), -1);
    ck_assert_int_eq(reason, REASON_OVERSUBSCRIBED);
    ck_assert_int_eq(place(MEM, "19491", "true", &reason), 0);
    ck_assert_int_eq(place(MEM, "19492", "true", &reason), -1);
    ck_assert_int_eq(reason, REASON_INSUFFICIENT_MEMORY);
}
END_TEST

/* Who does not consent is never part of the portion beyond the physical memory. */
START_TEST(what_is_beyond_needs_consent)
{
    enum reason reason;

    ledger_set_unhealthy(book, "n1", (const int32_t[]){1}, 1);
    hold("u1", "GPU-a", 16000, "true");
    ck_assert_int_eq(place(MEM, "384", "false", &reason), 0);
    ck_assert_int_eq(place(MEM, "385", "false", &reason), -1);
    ck_assert_int_eq(reason, REASON_OVERSUBSCRIBED);
    ck_assert_int_eq(place(MEM, "385", "true", &reason), 0);
}
END_TEST

START_TEST(an_exhausted_card_gets_nobody)
{
    enum reason reason;

    hold("u1", "GPU-a", 16384, "false");
    ck_assert_int_eq(place(MEM, "100", "true", &reason), 1);
    ck_assert_int_eq(place(MEM, "100", "false", &reason), 1);
    hold("u1", "GPU-a", 16383, "false");
    ck_assert_int_eq(place(MEM, "100", "true", &reason), 0);
    ck_assert_int_eq(place(MEM, "100", "false", &reason), 1);

    put_node("0=94");
    ck_assert_int_eq(place(MEM, "100", "true", &reason), 0);
    put_node("0=95");
    ck_assert_int_eq(place(MEM, "100", "true", &reason), 1);
    put_node("*=100");
    ck_assert_int_eq(place(MEM, "100", "true", &reason), -1);
    ck_assert_int_eq(reason, REASON_OVERSUBSCRIBED);
}
END_TEST

START_TEST(a_part_of_a_card_is_of_what_it_really_has)
{
    enum reason reason;

    ledger_set_unhealthy(book, "n1", (const int32_t[]){1}, 1);
    ck_assert_int_eq(place(PERCENT, "100", "false", &reason), 0);
    hold("u1", "GPU-a", 8192, "false");
    ck_assert_int_eq(place(PERCENT, "50", "false", &reason), 0);
    ck_assert_int_eq(place(PERCENT, "51", "false", &reason), -1);
    ck_assert_int_eq(place(PERCENT, "72", "true", &reason), 0); /* 21233 of 29491 */
    ck_assert_int_eq(place(PERCENT, "73", "true", &reason), -1);
}
END_TEST

START_TEST(the_scaling_may_be_said_for_all_nodes)
{
    const struct dialect_options said = {.hami_memory_scaling = 180};

    put_node_as("", "", &said);
    ck_assert_int_eq(node_card(node, 0)->physical, 16384 * MIB); /* of which 180 % are 29491.2 */
    put_node_as("0=15Gi", "", &said);
    ck_assert_int_eq(node_card(node, 0)->physical, 15360 * MIB);
    ck_assert_int_eq(node_card(node, 1)->physical, 16384 * MIB);
    put_node_as("0=15,1=x", "", &options);
    ck_assert_int_eq(node_card(node, 0)->physical, 0);
    put_node_as("*=64Gi", "0=99", &options);
    ck_assert_int_eq(node_card(node, 0)->physical, 0);
    ck_assert_int_eq(card_memory_room(node, node_card(node, 0), false), 29491 * MIB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oversubscribed");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, virtual_and_physical_are_two_sums);
    tcase_add_test(all, what_is_beyond_needs_consent);
    tcase_add_test(all, an_exhausted_card_gets_nobody);
    tcase_add_test(all, a_part_of_a_card_is_of_what_it_really_has);
    tcase_add_test(all, the_scaling_may_be_said_for_all_nodes);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
