/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of several namespaces on one card, where the administrator minds. */
#include "desk.h"
#include "suite.h"

#define CORE "elasticgpu.io/gpu-core"
#define MEMORY "elasticgpu.io/gpu-memory"
#define GPU "nvidia.com/gpu"
#define POD(ns_, uid_, ...)                                                                        \
    (&(struct pod_view){.ns = ns_,                                                                 \
                        .name = uid_,                                                              \
                        .uid = uid_,                                                               \
                        CONTAINERS({.name = "c", .limits = PAIRS(__VA_ARGS__)})})
#define PART(ns, uid) POD(ns, uid, {CORE, "20"})
#define ONE(ns, uid) POD(ns, uid, {GPU, "1"})
#define ON(card) "elasticgpu.io/assumed=true elasticgpu.io/container-c=" card

static void add_cards(void)
{
    desk_node(&(struct node_view){.name = "n",
                                  .capacity = PAIRS({CORE, "200"}, {MEMORY, "20000"})});
}

static void add_replicas(const char *strategy)
{
    struct string_pairs labels =
        PAIRS({"nvidia.com/gpu.sharing-strategy", strategy}, {"nvidia.com/gpu.count", "1"},
              {"nvidia.com/gpu.replicas", "10"});
    desk_node(&(struct node_view){.name = "n", .labels = labels, .capacity = PAIRS({GPU, "10"})});
}

/* Whether the namespace's pod is let in; it then stays. */
static bool enters(const struct pod_view *pod)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(pod, &options, &error);
    const struct admission_query query = {
        .request = request, .policy = &policies[0], .options = &options, .now_ns = now_ns,
        .patience_ns = PATIENCE};
    struct placement placement;
    enum reason reason;

    ck_assert_msg(request, "%s", error ? error->message : "asks for nothing");
    if (dialect_admit(ledger_node(book, "n"), &query, &placement, &reason) != ADMISSION_YES) {
        ck_assert_int_eq(reason, REASON_OTHER_TENANT);
        return false;
    }
    desk_reserve(pod, "n", &placement);
    return true;
}

START_TEST(anybody_shares_unless_told_otherwise)
{
    add_cards();
    desk_expect(PART("a", "1"), "n", ON("0"));
    desk_expect(PART("b", "2"), "n", ON("0"));
}
END_TEST

START_TEST(namespaces_keep_to_cards_of_their_own)
{
    options.tenant_isolation = ISOLATION_KERNEL;
    add_cards();
    desk_expect(PART("a", "1"), "n", ON("0"));
    desk_expect(PART("b", "2"), "n", ON("1"));
    desk_expect(PART("a", "3"), "n", ON("0"));
    desk_expect(PART("c", "4"), "n", "other_tenant");
    ledger_drop(book, "2");
    desk_expect(PART("c", "4"), "n", ON("1"));
}
END_TEST

START_TEST(a_card_that_nobody_knows_may_be_anybodys)
{
    struct allocation *allocation = allocation_new("x", "b", "x", 1);

    options.tenant_isolation = ISOLATION_KERNEL;
    add_cards();
    allocation->dialect = dialect_find("elastic");
    allocation->shares[0] = (struct share){.core = 100, .card = CARD_UNKNOWN};
    ledger_put(book, "n", allocation);
    desk_expect(PART("a", "1"), "n", "other_tenant");
    desk_expect(PART("b", "2"), "n", ON("0"));
}
END_TEST

START_TEST(replicas_serve_one_namespace_at_a_time)
{
    options.tenant_isolation = ISOLATION_KERNEL;
    add_replicas("mps");
    ck_assert(enters(ONE("a", "1")));
    ck_assert(!enters(ONE("b", "2")));
    ck_assert(enters(ONE("a", "3")));
    ledger_drop(book, "1");
    ledger_drop(book, "3");
    ck_assert(enters(ONE("b", "2")));
}
END_TEST

START_TEST(what_is_kept_apart_well_enough_is_shared)
{
    options.tenant_isolation = ISOLATION_HOOK;
    add_replicas("mps");
    ck_assert(enters(ONE("a", "1")));
    ck_assert(enters(ONE("b", "2")));
}
END_TEST

START_TEST(whole_cards_are_nobodys_neighbours)
{
    options.tenant_isolation = ISOLATION_HARDWARE;
    desk_node(&(struct node_view){.name = "n",
                                  .labels = PAIRS({"nvidia.com/gpu.replicas", "1"}),
                                  .capacity = PAIRS({GPU, "2"})});
    ck_assert(enters(ONE("a", "1")));
    ck_assert(enters(ONE("b", "2")));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tenants");
    TCase *tests = tcase_create("tenants");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, anybody_shares_unless_told_otherwise);
    tcase_add_test(tests, namespaces_keep_to_cards_of_their_own);
    tcase_add_test(tests, a_card_that_nobody_knows_may_be_anybodys);
    tcase_add_test(tests, replicas_serve_one_namespace_at_a_time);
    tcase_add_test(tests, what_is_kept_apart_well_enough_is_shared);
    tcase_add_test(tests, whole_cards_are_nobodys_neighbours);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
