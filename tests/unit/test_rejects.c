/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes whose kubelet rejects pods are left out, whoever says so, and come back.
 */
#include "rejecting_extender.h"
#include "suite.h"

#include "base/metrics.h"
#include "core/ledger.h"
#include "store/feasibility.h"
#include "verbs/bind/attempt.h"
#include "gate/node_backoff/node_backoff.h"

/* --- what counts ------------------------------------------------------------------------------ */

static const struct {
    const char *reason, *message;
    bool counts;
} cases[] = {
    {ADMISSION, NO_DEVICES, true},
    {ADMISSION, NULL, true},
    {ADMISSION, PLUGIN_IS_GONE, true},
    {"TopologyAffinityError", "Resources cannot be allocated with Topology locality", true},
    {ADMISSION,
     "Allocate failed due to requested number of devices unavailable for " MEM
     ". Requested: 2, Available: 0, which is unexpected",
     true},
    {ADMISSION,
     "Allocate failed due to requested number of devices unavailable for rdma/hca. Requested: "
     "1, Available: 0, which is unexpected",
     false},
    {ADMISSION,
     "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
     "rdma/hca, which is unexpected",
     false},
    {ADMISSION,
     "Allocate failed due to not enough cpus available to satisfy request: requested=8, "
     "available=4, which is unexpected",
     false},
    {ADMISSION,
     "Allocate failed due to [memorymanager] failed to find NUMA nodes, which is unexpected",
     false},
    {"OutOfcpu", "Node didn't have enough resource: cpu", false},
    {"OutOfmemory", "Node didn't have enough resource: memory", false},
    {"OutOfpods", "Node didn't have enough resource: pods", false},
    {"OutOfrdma/hca", "Node didn't have enough resource: rdma/hca", false},
    {"NodeAffinity", "Predicate NodeAffinity failed", false},
    {"NodePorts", "Predicate NodePorts failed", false},
    {"OutOf" MEM, "Node didn't have enough resource: " MEM, true},
    {"Evicted", "The node was low on resource: memory", false},
    {"Unexpected", NO_DEVICES, false},
    {NULL, NO_DEVICES, false},
    {NULL, NULL, false},
};

START_TEST(what_kubelet_writes_counts_and_nothing_else)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        bind_on(uid, "ml", "a", "0");
        turn_down(uid, "ml", cases[_i].reason, cases[_i].message);
    }
    expect("ml", cases[_i].counts ? "b" : "a,b");
}
END_TEST

START_TEST(pods_that_only_succeed_or_were_never_seen_alive_do_not_count)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *old = g_strdup_printf("old%d", i), *done = g_strdup_printf("done%d", i);
        turn_down(old, "ml", ADMISSION, NO_DEVICES); /* listed at start */
        bind_on(done, "ml", "a", "0");
        see(&(struct seen){done, "ml", "a", "0", "Succeeded", ADMISSION, NO_DEVICES});
    }
    expect("ml", "a,b");
}
END_TEST

/* The spec names the node, so that no scheduler has seen them, whatever else they say. */
START_TEST(pods_that_name_their_node_do_not_count)
{
    static const char *const spaces[] = {"ml", "other"}, *const cards[] = {"0", NULL};

    for (int i = 0; i < 12; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        const char *ns = spaces[i % 2], *card = cards[i / 2 % 2];
        see(&(struct seen){uid, ns, "a", card, "Pending"});
        see(&(struct seen){uid, ns, "a", card, "Failed", ADMISSION, NO_DEVICES});
    }
    expect("ml", "a,b");
    expect("third", "a,b");
    reject_three("ml");
    expect("ml", "b");
}
END_TEST

/* The watch shows them bound, and not before. */
START_TEST(what_was_booked_here_counts)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        g_autofree char *warning = NULL;
        struct allocation *booking = dialect_read_allocation(
            &(struct pod_view){.ns = "ml",
                               .name = uid,
                               .uid = uid,
                               .node_name = "a",
                               .phase = "Pending",
                               .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                               CONTAINERS({.name = "c", .limits = PAIRS({MEM, "2"})})},
            &store_options(extender.store)->dialects, &warning);
        booking->state = ALLOCATION_ASSUMED;
        ledger_put(store_lock(extender.store), "a", booking);
        store_unlock(extender.store);
        see(&(struct seen){uid, "ml", "a", "0", "Pending"});
        see(&(struct seen){uid, "ml", "a", "0", "Pending"});
        turn_down(uid, "ml", ADMISSION, NO_DEVICES);
    }
    expect("ml", "b");
}
END_TEST

/* A list after a start shows pods that were bound before. */
START_TEST(pods_of_a_first_list_count)
{
    store_list_begin(extender.store, FEED_PODS);
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        see(&(struct seen){uid, "ml", "a", "0", "Pending"});
    }
    store_list_end(extender.store, FEED_PODS);
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        turn_down(uid, "ml", ADMISSION, NO_DEVICES);
    }
    expect("ml", "b");
}
END_TEST

START_TEST(a_pod_counts_once)
{
    bind_on("p", "ml", "a", "0");
    for (int i = 0; i < 5; i++)
        turn_down("p", "ml", ADMISSION, NO_DEVICES);
    expect("ml", "a,b");
}
END_TEST

START_TEST(two_are_not_three)
{
    reject("p", "ml");
    reject("q", "ml");
    expect("ml", "a,b");
    reject("r", "ml");
    expect("ml", "b");
}
END_TEST

START_TEST(what_is_older_than_the_window_does_not_count)
{
    reject("p", "ml");
    reject("q", "ml");
    pass(0);
    pass(60000);
    reject("r", "ml");
    expect("ml", "a,b");
    pass(59999);
    reject("s", "ml");
    reject("t", "ml");
    expect("ml", "b");
}
END_TEST

START_TEST(nothing_is_counted_without_a_limit)
{
    store_free(extender.store);
    begin_with(&(struct store_options){.patience_ms = 60000});
    reject_three("ml");
    expect("ml", "a,b");
}
END_TEST

START_TEST(every_reason_has_a_counter)
{
    const uint64_t before = metrics_counted(COUNTER_REJECTED, REJECTION_RESOURCE);

    bind_on("p", "ml", "a", "0");
    turn_down("p", "ml", "OutOf" MEM, "");
    turn_down("q", "ml", "OutOf" MEM, ""); /* nobody knew it */
    ck_assert_uint_eq(metrics_counted(COUNTER_REJECTED, REJECTION_RESOURCE), before + 1);
}
END_TEST

/* --- no more than one and the limit ----------------------------------------------------------- */

START_TEST(after_the_first_no_more_are_on_their_way_than_may_be_lost)
{
    reject("p", "ml");
    bind_on("q", "ml", "a", "0");
    bind_on("r", "ml", "a", "0");
    expect("ml", "a,b");
    bind_on("s", "ml", "a", "0");
    expect("ml", "b");
    expect("other", "a,b"); /* one namespace's word */
    start("q", "ml", "a");
    expect("ml", "a,b");
}
END_TEST

START_TEST(bind_refuses_too)
{
    struct bind_args args = {.pod_name = "x", .pod_namespace = "ml", .pod_uid = "x", .node = "a"};
    struct attempt attempt = {.args = &args, .send_until_ms = INT64_MAX, .card = CARD_UNKNOWN};
    g_autoptr(GError) error = NULL;
    struct moment now;

    reject_three("ml");
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml",
                                       .name = "x",
                                       .uid = "x",
                                       .phase = "Pending",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})});
    struct ledger *ledger = store_decide_recorded(extender.store, &now);
    ck_assert_int_eq(attempt_look(&attempt, extender.store, ledger, &now, &error), ATTEMPT_FAILED);
    store_unlock(extender.store);
    ck_assert_str_eq(error->message, reason_info(gate_reason_find("rejecting"))->text);
    attempt_clear(&attempt);
}
END_TEST

/* --- pauses ----------------------------------------------------------------------------------- */

START_TEST(a_pause_ends_with_one_trial_that_succeeds)
{
    reject_three("ml");
    expect("ml", "b");
    pass(9999);
    expect("ml", "b");
    pass(1);
    expect("ml", "a,b");
    bind_on("trial", "ml", "a", "0");
    expect("ml", "b");
    start("trial", "ml", "a");
    expect("ml", "a,b");
    bind_on("next", "ml", "a", "0");
    expect("ml", "a,b");
    reject("p", "ml"); /* it begins anew */
    reject("q", "ml");
    expect("ml", "a,b");
}
END_TEST

START_TEST(a_trial_that_is_rejected_doubles_the_pause)
{
    int64_t length = NODE_BACKOFF_MS;

    reject_three("ml");
    expect("ml", "b");
    for (int i = 0; i < 9; i++) {
        g_autofree char *uid = g_strdup_printf("trial%d", i);
        pass(length - 1);
        expect("ml", "b");
        pass(1);
        expect("ml", "a,b");
        reject(uid, "ml");
        expect("ml", "b");
        length = MIN(2 * length, NODE_BACKOFF_MAX_MS);
    }
    ck_assert_int_eq(length, NODE_BACKOFF_MAX_MS);
}
END_TEST

START_TEST(who_was_on_the_way_before_is_no_trial)
{
    bind_on("late", "ml", "a", "0");
    bind_on("later", "ml", "a", "0");
    reject_three("ml");
    expect("ml", "b");
    pass(10000);
    expect("ml", "a,b");
    turn_down("late", "ml", ADMISSION, NO_DEVICES);
    start("later", "ml", "a");
    expect("ml", "a,b");
    bind_on("trial", "ml", "a", "0");
    expect("ml", "b"); /* neither has it ended nor begun anew */
    turn_down("trial", "ml", ADMISSION, NO_DEVICES);
    pass(0);
    pass(19999);
    expect("ml", "b");
    pass(1);
    expect("ml", "a,b");
}
END_TEST

START_TEST(a_trial_of_which_kubelet_says_nothing_ends)
{
    reject_three("ml");
    expect("ml", "b");
    pass(10000);
    bind_on("hangs", "ml", "a", "0");
    expect("ml", "b");
    pass(59999);
    expect("ml", "b");
    pass(1);
    expect("ml", "a,b");
    store_delete_pod(extender.store, "hangs");
    bind_on("gone", "ml", "a", "0");
    expect("ml", "b");
    store_delete_pod(extender.store, "gone");
    expect("ml", "a,b");
}
END_TEST

/* --- tenants ---------------------------------------------------------------------------------- */

START_TEST(a_namespace_closes_a_node_for_itself_alone)
{
    for (int i = 0; i < 100; i++) {
        g_autofree char *uid = g_strdup_printf("forged%d", i);
        reject(uid, "evil");
        expect("ml", "a,b");
    }
    expect("evil", "b");
    pass(10000);
    expect("ml", "a,b");
}
END_TEST

/* As long as nothing of theirs has started there, it stays closed to each of them. */
START_TEST(a_node_closed_to_too_many_is_closed_to_all)
{
    for (int i = 0; i < 64; i++) {
        g_autofree char *ns = g_strdup_printf("evil%d", i);
        reject_three(ns);
        expect(ns, "b");
        pass(3600000);
        expect("ml", "a,b");
    }
    reject_three("late");
    expect("late", "b");
    expect("ml", "b");
}
END_TEST

START_TEST(a_namespace_kept_from_many_cards_is_kept_from_the_node)
{
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "a", .capacity = PAIRS({MEM, "700"}, {COUNT, "70"})});
    for (int i = 0; i < 3 * 65; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i), *card = g_strdup_printf("%d", i / 3);
        bind_on(uid, "evil", "a", card);
        see(&(struct seen){uid, "evil", "a", card, "Failed", ADMISSION, PLUGIN_SAYS});
        if (i % 3 < 2)
            continue;
        expect("evil", i / 3 < 64 ? "a,b" : "b");
        expect("ml", "a,b");
        pass(3600000);
    }
}
END_TEST

START_TEST(a_limit_of_one_does_not_change_that)
{
    store_free(extender.store);
    begin_with(&(struct store_options){.patience_ms = 60000, NODE_BACKOFF_SETTINGS(1, 60000)});
    reject("p", "evil");
    expect("ml", "a,b");
    expect("evil", "b");
    reject("q", "ml");
    expect("ml", "b");
    expect("other", "b");
}
END_TEST

START_TEST(several_namespaces_close_it_for_all)
{
    reject("p", "ml");
    reject("q", "ml");
    reject("r", "web");
    expect("other", "b");
    expect("ml", "b");
    pass(10000);
    bind_on("trial", "third", "a", "0");
    expect("other", "b");
    start("trial", "third", "a");
    expect("other", "a,b");
    expect("ml", "a,b");
}
END_TEST

/* Others wait for 10 s each time, never for longer, and the namespace itself for ever longer. */
START_TEST(a_namespace_that_fails_every_trial_does_not_double_the_pause_of_others)
{
    int64_t own = NODE_BACKOFF_MS;

    reject("p", "ml");
    reject("q", "web");
    reject("r", "evil");
    expect("other", "b");
    expect("evil", "b");
    pass(10000);
    reject("forged", "evil");
    expect("other", "b");
    for (int i = 0; i < 4; i++) {
        g_autofree char *uid = g_strdup_printf("forged%d", i);
        pass(9999);
        expect("other", "b");
        pass(1);
        expect("other", "a,b");
        if (own > 10000) {
            expect("evil", "b");
            pass(own - 10000);
        }
        expect("evil", "a,b");
        reject(uid, "evil");
        expect("other", "b");
        own *= 2;
    }
}
END_TEST

START_TEST(a_node_of_another_name_or_dialect_is_none_of_it)
{
    reject_three("ml");
    expect("ml", "b");
    store_apply_node(extender.store,
                     &(struct node_view){.name = "a", .capacity = PAIRS({"nvidia.com/gpu", "4"})});
    g_autofree char *body = g_strdup(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}},"
        "\"NodeNames\":[\"a\"]}");
    expect_filter(body, "a", "a", LEFT_OUT);
}
END_TEST

/* --- cards ------------------------------------------------------------------------------------ */

static void reject_on(const char *uid, const char *card, const char *message)
{
    bind_on(uid, "ml", "a", card);
    turn_down(uid, "ml", ADMISSION, message);
}

static void fill_card(const char *card)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "web",
                                       .name = "full",
                                       .uid = "full",
                                       .node_name = "a",
                                       .phase = "Running",
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card}),
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "40"})})});
}

/* The card that a pod of namespace ml would get on "a"; -1: none. */
static int32_t card_of(void)
{
    struct feasibility question;
    struct placement placement;
    struct moment now;
    const struct pod_view pod = {.ns = "ml",
                                 .name = "x",
                                 .uid = "x",
                                 CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})};

    g_autoptr(request) request =
        dialect_read_request(&pod, &store_options(extender.store)->dialects, NULL);
    struct ledger *ledger = store_decide_recorded(extender.store, &now);
    feasibility_init(&question, extender.store,
                     &(struct feasibility_about){GATE_BY_FILTER, &pod, request, &now, 0});
    const enum reason reason = feasibility_ask(&question, ledger_node(ledger, "a"), &placement);
    feasibility_clear(&question);
    store_unlock(extender.store);
    return reason == REASON_NONE ? placement.shares[0].card : -1;
}

START_TEST(only_the_card_is_left_out_that_the_plugin_refuses)
{
    bind_on("warm", "ml", "a", "0"); /* binpack would go on there */
    start("warm", "ml", "a");
    ck_assert_int_eq(card_of(), 0);
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        reject_on(uid, "0", PLUGIN_SAYS);
    }
    ck_assert_int_eq(card_of(), 1);
    expect("ml", "a,b");
    expect("web", "a,b");
    fill_card("1");
    expect("ml", "b"); /* for the other card has no room */
    store_delete_pod(extender.store, "full");
    reject_on("other", "1", PLUGIN_SAYS); /* it is not that card, then */
    ck_assert_int_eq(card_of(), -1);
    expect("ml", "b");
}
END_TEST

START_TEST(where_nobody_answered_it_is_the_node)
{
    static const char *const messages[] = {PLUGIN_IS_GONE, NO_DEVICES};

    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("p%d", i);
        reject_on(uid, "0", messages[_i]);
    }
    ck_assert_int_eq(card_of(), -1);
}
END_TEST

/* --- the end of it ---------------------------------------------------------------------------- */

START_TEST(people_end_it)
{
    reject_three("ml");
    expect("ml", "b");
    ck_assert(!store_order(extender.store, "other", "a"));
    expect("ml", "b");
    ck_assert(store_order(extender.store, "resume", "a"));
    expect("ml", "a,b");
    ck_assert(!store_order(extender.store, "resume", "a"));
    ck_assert(!store_order(extender.store, "resume", "nowhere"));
}
END_TEST

START_TEST(a_new_value_of_the_annotation_ends_it_and_an_old_one_does_not)
{
    put_node("a", "1");
    reject_three("ml");
    put_node("a", "1");
    expect("ml", "b");
    put_node("a", NULL);
    expect("ml", "b");
    put_node("a", "2");
    expect("ml", "a,b");
    reject("p", "ml");
    reject("q", "ml");
    reject("r", "ml");
    put_node("a", "2");
    expect("ml", "b");
}
END_TEST

START_TEST(a_node_that_is_deleted_begins_anew)
{
    reject_three("ml");
    expect("ml", "b");
    store_delete_node(extender.store, "a");
    put_node("a", NULL);
    expect("ml", "a,b");
}
END_TEST

/* Its former annotation is nothing that was seen of the new one. */
START_TEST(the_annotation_of_a_node_that_is_made_again_is_new)
{
    put_node("a", "1");
    bind_on("p", "ml", "a", "0");
    bind_on("q", "ml", "a", "0");
    bind_on("r", "ml", "a", "0");
    store_delete_node(extender.store, "a");
    turn_down("p", "ml", ADMISSION, NO_DEVICES);
    turn_down("q", "ml", ADMISSION, NO_DEVICES);
    turn_down("r", "ml", ADMISSION, NO_DEVICES);
    put_node("a", "1");
    expect("ml", "a,b");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rejects");
    TCase *tcase = tcase_create("rejects");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, what_kubelet_writes_counts_and_nothing_else, 0, G_N_ELEMENTS(cases));
    tcase_add_test(tcase, pods_that_only_succeed_or_were_never_seen_alive_do_not_count);
    tcase_add_test(tcase, pods_that_name_their_node_do_not_count);
    tcase_add_test(tcase, what_was_booked_here_counts);
    tcase_add_test(tcase, pods_of_a_first_list_count);
    tcase_add_test(tcase, a_pod_counts_once);
    tcase_add_test(tcase, two_are_not_three);
    tcase_add_test(tcase, what_is_older_than_the_window_does_not_count);
    tcase_add_test(tcase, nothing_is_counted_without_a_limit);
    tcase_add_test(tcase, every_reason_has_a_counter);
    tcase_add_test(tcase, after_the_first_no_more_are_on_their_way_than_may_be_lost);
    tcase_add_test(tcase, bind_refuses_too);
    tcase_add_test(tcase, a_pause_ends_with_one_trial_that_succeeds);
    tcase_add_test(tcase, a_trial_that_is_rejected_doubles_the_pause);
    tcase_add_test(tcase, who_was_on_the_way_before_is_no_trial);
    tcase_add_test(tcase, a_trial_of_which_kubelet_says_nothing_ends);
    tcase_add_test(tcase, a_namespace_closes_a_node_for_itself_alone);
    tcase_add_test(tcase, a_node_closed_to_too_many_is_closed_to_all);
    tcase_add_test(tcase, a_namespace_kept_from_many_cards_is_kept_from_the_node);
    tcase_add_test(tcase, a_limit_of_one_does_not_change_that);
    tcase_add_test(tcase, several_namespaces_close_it_for_all);
    tcase_add_test(tcase, a_namespace_that_fails_every_trial_does_not_double_the_pause_of_others);
    tcase_add_test(tcase, a_node_of_another_name_or_dialect_is_none_of_it);
    tcase_add_test(tcase, only_the_card_is_left_out_that_the_plugin_refuses);
    tcase_add_loop_test(tcase, where_nobody_answered_it_is_the_node, 0, 2);
    tcase_add_test(tcase, people_end_it);
    tcase_add_test(tcase, a_new_value_of_the_annotation_ends_it_and_an_old_one_does_not);
    tcase_add_test(tcase, a_node_that_is_deleted_begins_anew);
    tcase_add_test(tcase, the_annotation_of_a_node_that_is_made_again_is_new);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
