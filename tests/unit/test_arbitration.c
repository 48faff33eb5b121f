/* SPDX-License-Identifier: Apache-2.0 */
/* One node, several dialects: who may have which card, and when. */
#include "ledger_end.h"
#include "suite.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

static enum reason never_refuse(const struct node *node, const struct request *request,
                                const struct dialect_options *options)
{
    return REASON_NONE;
}

/* Two whose node sides obey the card, and one whose node side chooses for itself. */
static const struct dialect slices = {
    .name = "slices", .names_cards = true, .isolation = ISOLATION_HOOK, .refuse = never_refuse};
static const struct dialect shares = {
    .name = "shares", .names_cards = true, .refuse = never_refuse};
static const struct dialect wholes = {
    .name = "wholes", .isolation = ISOLATION_HARDWARE, .refuse = never_refuse};

static struct ledger *book;
static struct placement placement;
static const struct dialect_options options;

static void serve(const char *name, size_t n, const struct dialect *const *dialects_there)
{
    g_autoptr(topology) topology = topology_new();

    topology->dialect = dialects_there[0];
    memcpy(topology->dialects, dialects_there, n * sizeof *dialects_there);
    topology->n_dialects = (int32_t)n;
    topology->memory_unit = 1;
    topology->n_cards = 2;
    topology->compute = 750;
    topology->cards[0].memory = topology->cards[1].memory = 16 * GIB;
    ledger_set_topology(book, name, topology);
}
#define SERVE(name, ...)                                                                           \
    serve(name, G_N_ELEMENTS(((const struct dialect *[]){__VA_ARGS__})),                           \
          (const struct dialect *[]){__VA_ARGS__})

static void setup(void)
{
    book = ledger_new();
    SERVE("n", &slices, &shares, &wholes);
}

static void teardown(void)
{
    ledger_end(book);
}

static struct request *asking(const struct dialect *dialect, int64_t gib, int32_t count)
{
    struct request *request = request_new(dialect, 1);

    request->isolation = dialect->isolation;
    request->asks[0] = (struct card_ask){
        .memory = {gib * GIB, AMOUNT_BYTES}, .count = count, .exclusive = dialect == &wholes};
    return request;
}

static enum reason admit(const char *node, const struct request *request)
{
    const struct admission_query query = {
        .request = request, .policy = &policies[0], .options = &options};
    enum reason reason;
    enum admission admission =
        dialect_admit(ledger_node(book, node), &query, &placement, &reason);

    ck_assert_int_eq(admission == ADMISSION_YES, reason == REASON_NONE);
    return reason;
}

/* Admits and books. */
static enum reason grant(const char *uid, struct request *take_request)
{
    enum reason reason = admit("n", take_request);

    if (reason == REASON_NONE) {
        struct allocation *allocation = allocation_new(uid, "ml", uid, placement.n_shares);
        allocation->dialect = placement.request->dialect;
        memcpy(allocation->shares, placement.shares,
               placement.n_shares * sizeof placement.shares[0]);
        ck_assert_ptr_nonnull(ledger_reserve(book, "n", allocation, &reason));
    }
    request_free(take_request);
    return reason;
}

START_TEST(two_that_obey_use_different_cards)
{
    ck_assert_int_eq(grant("a", asking(&slices, 4, 1)), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    /* 12 GiB are free beside it, but not for this kind. */
    ck_assert_int_eq(grant("b", asking(&shares, 4, 1)), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    ck_assert_int_eq(grant("c", asking(&slices, 12, 1)), REASON_NONE);
    ck_assert_int_eq(grant("d", asking(&slices, 4, 1)), REASON_INSUFFICIENT_MEMORY);
    ck_assert_int_eq(grant("d", asking(&shares, 12, 1)), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
}
END_TEST

START_TEST(a_card_changes_hands_when_it_is_empty)
{
    ck_assert_int_eq(grant("a", asking(&slices, 4, 2)), REASON_NONE);
    ck_assert_int_eq(grant("b", asking(&shares, 4, 1)), REASON_OTHER_USE);
    ck_assert(ledger_drop(book, "a"));
    ck_assert_int_eq(grant("b", asking(&shares, 4, 1)), REASON_NONE);
}
END_TEST

START_TEST(one_that_chooses_for_itself_has_the_node_to_itself)
{
    ck_assert_int_eq(grant("a", asking(&slices, 4, 1)), REASON_NONE);
    ck_assert_int_eq(grant("b", asking(&wholes, 0, 1)), REASON_OTHER_USE);
    ck_assert(ledger_drop(book, "a"));
    ck_assert_int_eq(grant("b", asking(&wholes, 0, 1)), REASON_NONE);
    ck_assert_int_eq(grant("c", asking(&shares, 4, 1)), REASON_OTHER_USE);
    ck_assert_int_eq(grant("c", asking(&wholes, 0, 1)), REASON_NONE);
    ck_assert_int_eq(grant("d", asking(&wholes, 0, 1)), REASON_INSUFFICIENT_MEMORY);
}
END_TEST

START_TEST(what_may_be_anywhere_keeps_others_off_every_card)
{
    struct allocation *allocation = allocation_new("a", "ml", "a", 1);

    allocation->dialect = &slices;
    allocation->shares[0] = (struct share){.memory = {GIB, AMOUNT_BYTES}, .card = CARD_UNKNOWN};
    ledger_put(book, "n", allocation);
    ck_assert_int_eq(grant("b", asking(&shares, 4, 1)), REASON_OTHER_USE);
    ck_assert_int_eq(grant("b", asking(&slices, 4, 1)), REASON_NONE);
}
END_TEST

START_TEST(the_node_decides_between_alternatives)
{
    g_autoptr(request) request = asking(&wholes, 0, 1);

    SERVE("shared", &shares);
    SERVE("whole", &wholes);
    SERVE("sliced", &slices);
    request->alternative = asking(&shares, 2, 1);
    ck_assert_int_eq(admit("whole", request), REASON_NONE);
    ck_assert_ptr_eq(placement.request, request);
    ck_assert(placement.shares[0].exclusive);
    ck_assert_int_eq(admit("shared", request), REASON_NONE);
    ck_assert_ptr_eq(placement.request, request->alternative);
    ck_assert_int_eq(placement.shares[0].memory.value, 2 * GIB);
    ck_assert_int_eq(admit("sliced", request), REASON_OTHER_DIALECT);

    g_autoptr(request) copy = request_dup(request);
    ck_assert_ptr_ne(copy->alternative, request->alternative);
    ck_assert_int_eq(copy->alternative->asks[0].memory.value, 2 * GIB);
}
END_TEST

START_TEST(a_pod_may_demand_isolation)
{
    static const enum isolation offered[] = {ISOLATION_HOOK, ISOLATION_NONE, ISOLATION_HARDWARE};
    const struct dialect *const rows[] = {&slices, &shares, &wholes};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (unsigned wanted = 0; wanted < ISOLATION_N; wanted++) {
            g_autoptr(request) request = asking(rows[i], 0, 1);
            request->terms = terms_new();
            request->terms->isolation_min = wanted;
            ck_assert_int_eq(admit("n", request),
                             wanted > offered[i] ? REASON_ISOLATION : REASON_NONE);
        }
    }
}
END_TEST

START_TEST(a_pod_may_demand_what_the_node_can)
{
    g_autoptr(request) request = asking(&slices, 1, 1);

    request->terms = terms_new();
    request->terms->compute_min = 750;
    ck_assert_int_eq(admit("n", request), REASON_NONE);
    request->terms->compute_min = 800;
    ck_assert_int_eq(admit("n", request), REASON_TERMS);
    request->terms->compute_min = 0;
    request->terms->driver_min = 535; /* of which the node says nothing */
    ck_assert_int_eq(admit("n", request), REASON_TERMS);
}
END_TEST

START_TEST(a_pods_own_policy_counts)
{
    g_autoptr(request) request = asking(&slices, 1, 1);

    ck_assert_int_eq(grant("a", asking(&slices, 4, 1)), REASON_NONE);
    ck_assert_int_eq(admit("n", request), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    request->terms = terms_new();
    request->terms->policy = policy_find("spread");
    ck_assert_int_eq(admit("n", request), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("arbitration");
    TCase *tc = tcase_create("arbitration");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, two_that_obey_use_different_cards);
    tcase_add_test(tc, a_card_changes_hands_when_it_is_empty);
    tcase_add_test(tc, one_that_chooses_for_itself_has_the_node_to_itself);
    tcase_add_test(tc, what_may_be_anywhere_keeps_others_off_every_card);
    tcase_add_test(tc, the_node_decides_between_alternatives);
    tcase_add_test(tc, a_pod_may_demand_isolation);
    tcase_add_test(tc, a_pod_may_demand_what_the_node_can);
    tcase_add_test(tc, a_pods_own_policy_counts);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
