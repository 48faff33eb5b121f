/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nodes, ConfigMaps and annotations mean for the ledger.
 */
#include "literals.h"
#include "stored_world.h"
#include "suite.h"

#include "base/metrics.h"
#include "gate/waits/waits.h"

#include <string.h>

#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define DEV "ALIYUN_COM_GPU_MEM_DEV"

static int64_t cpu_used(const char *name)
{
    const struct node *node = ledger_node(store_lock(world.store), name);
    int64_t cpu = node ? node->host_used.cpu : -1;
    store_unlock(world.store);
    return cpu;
}

/* --- the node's own resources --------------------------------------------------------------- */

#define CPU(limits, cpu)                                                                           \
    "[{\"name\":\"c\",\"resources\":{\"limits\":{" limits "},\"requests\":{\"cpu\":\"" cpu "\"}}}]"

START_TEST(pods_with_and_without_gpus_use_the_node)
{
    const struct fake_pod guest = {.name = "g", .node = "duo", .containers = CPU("", "1500m")};
    const struct fake_pod holder = {
        .name = "h",
        .node = "duo",
        .card = "1",
        .containers = CPU("\"aliyun.com/gpu-mem\":\"3\"", "2"),
    };

    fake_cluster_add_pod(cluster, &guest);
    fake_cluster_add_pod(cluster, &holder);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .containers = CPU("", "8")});
    world_catch_up(&world);
    expect_used("duo", 0, 3, 0);
    ck_assert_int_eq(cpu_used("duo"), 3500);

    fake_cluster_set_phase(cluster, "g", "Succeeded");
    world_catch_up(&world);
    ck_assert_int_eq(cpu_used("duo"), 2000);
    fake_cluster_delete_pod(cluster, "h");
    world_catch_up(&world);
    ck_assert_int_eq(cpu_used("duo"), 0);
}
END_TEST

START_TEST(guests_that_a_list_does_not_name_are_gone)
{
    const struct fake_pod guest = {.name = "g", .node = "duo", .containers = CPU("", "1")};
    const struct fake_pod stranger = {.name = "s", .node = "far", .containers = CPU("", "2")};

    fake_cluster_add_pod(cluster, &guest);
    fake_cluster_add_pod(cluster, &stranger);
    world_catch_up(&world);
    ck_assert_int_eq(cpu_used("far"), 2000);
    fake_cluster_delete_pod(cluster, "s");
    fake_cluster_list(cluster, world.store, FEED_PODS);
    ck_assert_int_eq(cpu_used("far"), -1);
    ck_assert_int_eq(cpu_used("duo"), 1000);
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------- */

START_TEST(pods_of_a_vanished_node_count_until_they_end)
{
    world_add_bound(&world, "a", "duo", 3, "1");
    fake_cluster_delete_node(cluster, "duo");
    world_catch_up(&world);
    ck_assert(!is_present("duo"));
    ck_assert_int_eq(world_card(&world, "uid-a"), 1);

    fake_cluster_put_node(cluster, "duo", 20, 2);
    world_catch_up(&world);
    expect_used("duo", 0, 3, 0);

    fake_cluster_delete_node(cluster, "duo");
    fake_cluster_delete_pod(cluster, "a");
    world_catch_up(&world);
    ck_assert_ptr_null(ledger_node(store_lock(world.store), "duo"));
    store_unlock(world.store);
}
END_TEST

START_TEST(pods_may_come_before_their_node)
{
    world_add_bound(&world, "a", "late", 3, "1");
    ck_assert_int_eq(world_card(&world, "uid-a"), 1);
    fake_cluster_put_node(cluster, "late", 20, 2);
    world_catch_up(&world);
    expect_used("late", 0, 3, 0);
}
END_TEST

START_TEST(a_node_may_come_back_as_another_one)
{
    world_add_bound(&world, "a", "duo", 3, "1");
    world_add_bound(&world, "b", "duo", 4, "0");
    fake_cluster_put_node(cluster, "duo", 40, 4);
    world_catch_up(&world);
    expect_used("duo", 4, 3, 0);
    fake_cluster_put_node(cluster, "duo", 10, 1); /* all is on the only card */
    world_catch_up(&world);
    expect_used("duo", 7, -1, 0);
    fake_cluster_put_other_node(cluster, "duo", "{}");
    world_catch_up(&world);
    expect_used("duo", -1, -1, 7);
    fake_cluster_put_node(cluster, "duo", 40960, 2); /* now in MiB */
    world_catch_up(&world);
    expect_used("duo", 4, 3, 0);
    fake_cluster_put_node(cluster, "duo", 20, 2);
    world_catch_up(&world);
    expect_used("duo", 4, 3, 0);
}
END_TEST

/* kubelet has restarted, and the plugin has not registered with it again. */
START_TEST(a_node_whose_plugin_is_away_keeps_what_pods_hold)
{
    static const char away[] = "The node's GPU plugin is not registered with kubelet just now";

    world.extender.bind_timeout_ms = 60;
    world_add_bound(&world, "a", "duo", 3, "1");
    world_add_pending(&world, "p", 5);
    for (int i = 0; i < 2; i++) { /* kubelet says so again and again */
        fake_cluster_put_node(cluster, "duo", 0, 2);
        world_catch_up(&world);
        expect_used("duo", 0, 3, 0);
        ck_assert(is_present("duo") && !is_healthy("duo", 0) && !is_healthy("duo", 1));
    }
    g_autofree char *filtered = world_filter(&world, "p", "duo");
    ck_assert_msg(strstr(filtered, away), "%s", filtered);
    const uint64_t late = metrics_counted(COUNTER_BINDS, BIND_RESULT_TIMED_OUT);
    world_expect_bind(&world, "p", "duo", away); /* after it has waited */
    ck_assert_uint_eq(metrics_counted(COUNTER_BINDS, BIND_RESULT_TIMED_OUT), late + 1);
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    fake_cluster_put_node(cluster, "duo", 20, 2);
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && !is_healthy("duo", 1));
    expect_used("duo", 0, 3, 0);
    world_expect_bind(&world, "p", "duo", "");
}
END_TEST

static int64_t card_memory(const char *name, int32_t card)
{
    const struct node *node = ledger_node(store_lock(world.store), name);
    int64_t memory = card < node->n_cards ? node->cards[card].memory : -1;
    store_unlock(world.store);
    return memory;
}

static void apply_holder(const char *name, const char *units, const char *card, const char *card_units,
                         const char *phase)
{
    const struct pod_view pod = {
        .ns = "ml",
        .name = name,
        .uid = name,
        .node_name = "late",
        .phase = phase,
        .annotations = PAIRS({IDX, card}, {DEV, card_units}),
        CONTAINERS({.name = "c", .limits = PAIRS({"aliyun.com/gpu-mem", units})})};

    store_apply_pod(world.store, &pod);
}

/* The plugin was started again with another unit; who may patch the pod removes the size of its card. */
START_TEST(a_pod_keeps_the_unit_in_which_it_was_granted)
{
    fake_cluster_put_node(cluster, "late", 20, 2);
    world_catch_up(&world);
    apply_holder("a", "3", "1", "10", "Running");
    expect_used("late", 0, 3, 0);
    fake_cluster_put_node(cluster, "late", 20480, 2);
    world_catch_up(&world);
    expect_used("late", 0, 3072, 0);
    apply_holder("a", "3", "1", NULL, "Running");
    expect_used("late", 0, 3072, 0);
    fake_cluster_put_node(cluster, "late", 20, 2);
    world_catch_up(&world);
    expect_used("late", 0, 3, 0);
}
END_TEST

/* The program starts while no plugin is registered: pods tell what a card has, in whatever order they
 * and the node come. */
START_TEST(a_node_whose_plugin_was_away_at_the_start_is_what_its_pods_say)
{
    static const char away[] = "The node's GPU plugin is not registered with kubelet just now";

    world.extender.bind_timeout_ms = 60;
    world_add_pending(&world, "p", 5);
    if (_i == 0)
        fake_cluster_put_node(cluster, "late", 0, 2);
    world_catch_up(&world);
    apply_holder("b", "4", "0", "unreadable", "Running");
    if (_i == 1)
        fake_cluster_put_node(cluster, "late", 0, 2);
    world_catch_up(&world);
    expect_used("late", -1, -1, 4); /* nobody says what a card has */
    apply_holder("a", "3", "1", "10", "Running");
    expect_used("late", 4, 3, 0);
    ck_assert_int_eq(card_memory("late", 0), INT64_C(10) << 30);
    ck_assert(is_present("late") && !is_healthy("late", 0) && !is_healthy("late", 1));
    world_verify(&world);

    g_autofree char *filtered = world_filter(&world, "p", "late");
    ck_assert_msg(strstr(filtered, away), "%s", filtered);
    const uint64_t waited = metrics_counted(COUNTER_BINDS, BIND_RESULT_TIMED_OUT);
    world_expect_bind(&world, "p", "late", away);
    ck_assert_uint_eq(metrics_counted(COUNTER_BINDS, BIND_RESULT_TIMED_OUT), waited + 1);

    apply_holder("c", "512", "1", "10240", "Running"); /* those are MiB */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(card_memory("late", 1), INT64_C(10) << 30);
        fake_cluster_put_node(cluster, "late", 0, 2); /* kubelet says so again and again */
        world_catch_up(&world);
    }
    apply_holder("a", "3", "1", "10", "Succeeded");
    apply_holder("c", "512", "1", "10240", "Succeeded");
    expect_used("late", -1, -1, 4);
    fake_cluster_put_node(cluster, "late", 20, 2);
    world_catch_up(&world);
    expect_used("late", 4, 0, 0);
    ck_assert(is_healthy("late", 0));
    world_expect_bind(&world, "p", "late", "");
}
END_TEST

/* Another program, and this one after its own restart, show the same. */
START_TEST(a_start_while_a_plugin_is_away_changes_no_amount)
{
    world_add_pending(&world, "a", 3);
    world_expect_bind(&world, "a", "duo", "");
    fake_cluster_put_node(cluster, "duo", 0, 2);
    world_catch_up(&world);
    expect_used("duo", 3, 0, 0);
    g_autofree char *before = world_nodes(&world), *after = world_replay(&world);
    ck_assert_str_eq(before, after);
}
END_TEST

/* gpu-manager counts in blocks of 256 MiB whatever is registered. */
START_TEST(the_unit_of_another_dialect_is_known_without_its_plugin)
{
    const struct fake_pod pod = {
        .name = "t",
        .node = "late",
        .containers = "[{\"name\":\"c\",\"resources\":{\"limits\":{\"tencent.com/vcuda-core\":\"20\","
                      "\"tencent.com/vcuda-memory\":\"8\"}}}]"};

    fake_cluster_put_other_node(cluster, "late",
                                "{\"capacity\":{\"tencent.com/vcuda-core\":\"0\","
                                "\"tencent.com/vcuda-memory\":\"0\"}}");
    fake_cluster_add_pod(cluster, &pod);
    world_catch_up(&world);
    const struct node *node = ledger_node(store_lock(world.store), "late");
    ck_assert_int_eq(node->unplaced_memory, INT64_C(2) << 30);
    ck_assert_int_eq(node->memory_unit, INT64_C(256) << 20);
    store_unlock(world.store);
}
END_TEST

/* It never had any, or names them no longer. */
START_TEST(a_node_without_gpus_has_no_plugin_that_is_away)
{
    ck_assert(is_present("plain"));
    fake_cluster_put_node(cluster, "plain", 0, 0);
    fake_cluster_put_other_node(cluster, "duo", "{\"capacity\":{\"cpu\":\"4\"}}");
    world_catch_up(&world);
    expect_used("plain", -1, -1, 0);
    expect_used("duo", -1, -1, 0);
}
END_TEST

START_TEST(a_node_that_cannot_be_understood_shares_nothing)
{
    uint64_t before = metrics_counted(COUNTER_OBJECTS_BAD, FEED_NODES);

    world_add_bound(&world, "a", "duo", 3, "1");
    fake_cluster_put_node(cluster, "duo", 20, 0); /* gpu-mem without gpu-count */
    world_catch_up(&world);
    expect_used("duo", -1, -1, 3);
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_NODES), before + 1);
}
END_TEST

/* --- health --------------------------------------------------------------------------------- */

START_TEST(unhealthy_cards_come_and_go)
{
    fake_cluster_put_unhealthy(cluster, "duo", "0, 1 ,");
    world_catch_up(&world);
    ck_assert(!is_healthy("duo", 0) && !is_healthy("duo", 1));
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && !is_healthy("duo", 1));
    fake_cluster_put_unhealthy(cluster, "duo", "");
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && is_healthy("duo", 1));
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    fake_cluster_put_unhealthy(cluster, "duo", NULL);
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && is_healthy("duo", 1));
}
END_TEST

START_TEST(health_outlives_its_node)
{
    fake_cluster_put_unhealthy(cluster, "duo", "1");
    fake_cluster_put_unhealthy(cluster, "late", "0");
    fake_cluster_delete_node(cluster, "duo");
    world_catch_up(&world);
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "late", 20, 2);
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && !is_healthy("duo", 1));
    ck_assert(!is_healthy("late", 0) && is_healthy("late", 1));
}
END_TEST

START_TEST(bad_items_of_health_are_ignored_and_counted)
{
    uint64_t before = metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);

    fake_cluster_put_unhealthy(cluster, "duo", "x,-1,1,99999999999999999999");
    world_catch_up(&world);
    ck_assert(is_healthy("duo", 0) && !is_healthy("duo", 1));
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS), before + 1);
}
END_TEST

START_TEST(other_configmaps_are_not_read)
{
    static const char *const others[] = {
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"unhealthy-gpu-duo\"},"
        "\"data\":{\"gpus\":\"0\"}}",
        "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"healthy-gpu-duo\"},"
        "\"data\":{\"gpus\":\"0\"}}",
    };

    feed_event(world.store, FEED_CONFIGMAPS, false, others[_i]);
    ck_assert(is_healthy("duo", 0));
    fake_cluster_put_unhealthy(cluster, "duo", "0");
    world_catch_up(&world);
    feed_event(world.store, FEED_CONFIGMAPS, true, others[_i]);
    ck_assert(!is_healthy("duo", 0));
}
END_TEST

/* --- annotations ---------------------------------------------------------------------------- */

START_TEST(a_pod_without_a_card_counts_on_all_of_them)
{
    static const char *const cards[] = {"7", "-1", "0,1", "", " 1", "99999999999999999999"};

    world_add_bound(&world, "a", "duo", 3, cards[_i]);
    expect_used("duo", 0, 0, 3);
    world_add_bound(&world, "b", "mono", 3, cards[_i]);
    expect_used("mono", 3, -1, 0);
    fake_cluster_delete_pod(cluster, "a");
    world_catch_up(&world);
    expect_used("duo", 0, 0, 0);
}
END_TEST

/* The plugin gives whom nobody has marked its one card, and none of several. */
START_TEST(a_pod_that_nobody_marked_holds_what_the_plugin_gives)
{
    world_add_bound(&world, "a", "duo", 3, NULL);
    world_add_bound(&world, "b", "mono", 3, NULL);
    expect_used("duo", 0, 0, 0);
    expect_used("mono", 3, -1, 0);
    fake_cluster_put_node(cluster, "duo", 10, 1); /* one card is gone: which one, nobody knows */
    world_catch_up(&world);
    expect_used("duo", 3, -1, 0);
}
END_TEST

START_TEST(a_pod_stays_on_its_card_whatever_its_annotations_say)
{
    world_add_bound(&world, "a", "duo", 3, "1");
    fake_cluster_annotate(cluster, "a", IDX, NULL);
    world_catch_up(&world);
    expect_used("duo", 0, 3, 0);
    fake_cluster_annotate(cluster, "a", IDX, "0");
    world_catch_up(&world);
    expect_used("duo", 0, 3, 0);
}
END_TEST

/* As long as the plugin may still go by it. */
START_TEST(a_card_that_an_edit_names_is_held_beside_the_first)
{
    struct moment moment = {.now_ns = 1, .now_ms = 1000};

    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "a", .mem = 3});
    world_catch_up(&world);
    world_expect_bind(&world, "a", "duo", "");
    world_catch_up(&world);
    expect_used("duo", 3, 0, 0);
    fake_cluster_annotate(cluster, "a", IDX, "1");
    world_catch_up(&world);
    expect_used("duo", 3, 3, 0);
    fake_cluster_start(cluster, "a"); /* until then it may be served, however long that takes */
    world_catch_up(&world);
    store_set_moment(world.store, &moment);
    for (int i = 0; i < 2; i++) {
        store_decide_recorded(world.store, &moment);
        store_unlock(world.store);
        expect_used("duo", 3, i == 0 ? 3 : 0, 0);
        moment.now_ms += WAIT_MAX_MS;
    }
    fake_cluster_annotate(cluster, "a", "ALIYUN_COM_GPU_MEM_ASSIGNED", "false"); /* nor does it wait again */
    world_catch_up(&world);
    expect_used("duo", 3, 0, 0);
    const struct allocation *held = ledger_get(store_lock(world.store), "uid-a");
    ck_assert(!held->waiting && held->waited_out);
    store_unlock(world.store);
    store_set_moment(world.store, NULL);
}
END_TEST

static void expect_named(const char *uid, const char *cards)
{
    store_lock(world.store);
    g_autofree char *named = g_strdup(store_named_cards(world.store, uid));
    store_unlock(world.store);
    ck_assert_msg(g_strcmp0(named, cards) == 0, "%s, not %s", named ? named : "none",
                  cards ? cards : "none");
}

/* The container stays where it was started. */
START_TEST(the_first_card_is_remembered)
{
    static const struct {
        const char *idx; /* NULL: taken away */
        const char *named;
    } edits[] = {{"1", "1"}, {"7", "7"}, {NULL, NULL}, {"x", NULL}, {"0", NULL}, {"1", "1"}};

    world_add_bound(&world, "a", "duo", 3, "0");
    expect_named("uid-a", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(edits); i++) {
        fake_cluster_annotate(cluster, "a", IDX, edits[i].idx);
        world_catch_up(&world);
        expect_named("uid-a", edits[i].named);
    }
    fake_cluster_set_phase(cluster, "a", "Succeeded");
    world_catch_up(&world);
    expect_named("uid-a", NULL);
}
END_TEST

START_TEST(a_card_that_comes_late_is_the_first)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "a", .node = "duo", .mem = 3});
    world_catch_up(&world);
    fake_cluster_annotate(cluster, "a", IDX, "1");
    world_catch_up(&world);
    expect_named("uid-a", NULL);
    expect_used("duo", 0, 3, 0);
    fake_cluster_annotate(cluster, "a", IDX, "0");
    world_catch_up(&world);
    expect_named("uid-a", "0");
    fake_cluster_delete_pod(cluster, "a");
    world_sync(&world); /* its DELETED was missed */
    expect_named("uid-a", NULL);
}
END_TEST

START_TEST(a_silent_store_says_and_counts_nothing)
{
    const struct store_options options = {.policy = &policies[0], .silent = true};
    g_autoptr(store) silent = store_new(&options);
    uint64_t unplaced = metrics_counted(COUNTER_UNPLACED, 0);
    uint64_t bad = metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);

    world_add_bound(&world, "a", "duo", 3, NULL);
    ck_assert_uint_eq(metrics_counted(COUNTER_UNPLACED, 0), unplaced + 1);
    fake_cluster_put_unhealthy(cluster, "duo", "x");
    for (int feed = 0; feed < FEED_N; feed++)
        fake_cluster_list(cluster, silent, feed);
    ck_assert_uint_eq(metrics_counted(COUNTER_UNPLACED, 0), unplaced + 1);
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS), bad);
}
END_TEST

START_TEST(only_pods_on_no_known_card_count_as_unplaced)
{
    uint64_t before = metrics_counted(COUNTER_UNPLACED, 0);

    world_add_bound(&world, "a", "duo", 3, "1");
    fake_cluster_annotate(cluster, "a", "ALIYUN_COM_GPU_MEM_POD", "5"); /* a lie, but placed */
    world_catch_up(&world);
    world_add_bound(&world, "b", "duo", 3, "1");
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "c", .node = "duo", .mem = 2, .card = "1"});
    fake_cluster_annotate(cluster, "c", "ALIYUN_COM_GPU_MEM_POD", "5");
    fake_cluster_list(cluster, world.store, FEED_PODS); /* so that it is seen like that first */
    ck_assert_uint_eq(metrics_counted(COUNTER_UNPLACED, 0), before);

    world_add_bound(&world, "d", "duo", 3, NULL);
    ck_assert_uint_eq(metrics_counted(COUNTER_UNPLACED, 0), before + 1);
    fake_cluster_set_phase(cluster, "d", "Running"); /* nothing new about its card */
    world_catch_up(&world);
    ck_assert_uint_eq(metrics_counted(COUNTER_UNPLACED, 0), before + 1);
}
END_TEST

START_TEST(the_time_of_a_bind_is_read_back)
{
    world_add_pending(&world, "p", 6);
    world_expect_bind(&world, "p", "duo", "");
    g_autofree char *written =
        fake_cluster_annotation(cluster, "p", "ALIYUN_COM_GPU_MEM_ASSUME_TIME");
    world_catch_up(&world);
    ck_assert_int_eq(world_state(&world, "uid-p"), ALLOCATION_CONFIRMED);
    int64_t read = ledger_get(store_lock(world.store), "uid-p")->assume_time_ns;
    store_unlock(world.store);
    ck_assert_int_eq(read, g_ascii_strtoll(written, NULL, 10));
}
END_TEST

START_TEST(a_pod_counts_at_its_peak)
{
#define GPU(n) "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":" n "}}}"
    static const struct {
        const char *containers, *init_containers;
        int64_t held;
    } pods[] = {
        {"[" GPU("2") "," GPU("\"3\"") "]", NULL, 5},
        {"[" GPU("2") "]", "[" GPU("4") "]", 4},
        {"[" GPU("4") "]", "[" GPU("2") "]", 4},
        {"[" GPU("2") "]",
         "[{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":"
         "\"1\"}}}," GPU("1") "]",
         3},
        {"[{\"name\":\"idle\"}]", NULL, 0},
        {"[" GPU("\"4000m\"") "]", NULL, 4},
    };

    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "a",
                                                     .node = "duo",
                                                     .containers = pods[_i].containers,
                                                     .init_containers = pods[_i].init_containers,
                                                     .mem = 1,
                                                     .card = "1"});
    world_catch_up(&world);
    expect_used("duo", 0, pods[_i].held, 0);
}
END_TEST

START_TEST(a_pod_that_holds_nothing_any_more_is_forgotten)
{
    world_add_bound(&world, "a", "duo", 3, "1");
    feed_event(world.store, FEED_PODS, false,
               "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\"},"
               "\"spec\":{\"nodeName\":\"duo\"}}");
    expect_used("duo", 0, 0, 0);
}
END_TEST

START_TEST(overbooked_cards_have_nothing_free)
{
    world_add_bound(&world, "a", "mono", 8, "0");
    world_add_bound(&world, "b", "mono", INT64_MAX / 2, NULL);
    const struct node *node = ledger_node(store_lock(world.store), "mono");
    ck_assert_int_eq(card_memory_free(node, node_card(node, 0)), 0);
    store_unlock(world.store);
    fake_cluster_delete_pod(cluster, "b");
    world_catch_up(&world);
    expect_used("mono", 8, -1, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("store_objects");
    TCase *tc = tcase_create("store_objects");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, pods_with_and_without_gpus_use_the_node);
    tcase_add_test(tc, guests_that_a_list_does_not_name_are_gone);
    tcase_add_test(tc, pods_of_a_vanished_node_count_until_they_end);
    tcase_add_test(tc, pods_may_come_before_their_node);
    tcase_add_test(tc, a_node_may_come_back_as_another_one);
    tcase_add_test(tc, a_pod_keeps_the_unit_in_which_it_was_granted);
    tcase_add_test(tc, a_node_that_cannot_be_understood_shares_nothing);
    tcase_add_test(tc, unhealthy_cards_come_and_go);
    tcase_add_test(tc, health_outlives_its_node);
    tcase_add_test(tc, bad_items_of_health_are_ignored_and_counted);
    tcase_add_loop_test(tc, other_configmaps_are_not_read, 0, 2);
    tcase_add_loop_test(tc, a_pod_without_a_card_counts_on_all_of_them, 0, 6);
    tcase_add_test(tc, a_pod_that_nobody_marked_holds_what_the_plugin_gives);
    tcase_add_test(tc, a_card_that_an_edit_names_is_held_beside_the_first);
    tcase_add_test(tc, a_pod_stays_on_its_card_whatever_its_annotations_say);
    tcase_add_test(tc, a_node_whose_plugin_is_away_keeps_what_pods_hold);
    tcase_add_test(tc, a_start_while_a_plugin_is_away_changes_no_amount);
    tcase_add_test(tc, the_unit_of_another_dialect_is_known_without_its_plugin);
    tcase_add_loop_test(tc, a_node_whose_plugin_was_away_at_the_start_is_what_its_pods_say, 0, 2);
    tcase_add_test(tc, a_node_without_gpus_has_no_plugin_that_is_away);
    tcase_add_test(tc, the_first_card_is_remembered);
    tcase_add_test(tc, a_card_that_comes_late_is_the_first);
    tcase_add_test(tc, a_silent_store_says_and_counts_nothing);
    tcase_add_test(tc, only_pods_on_no_known_card_count_as_unplaced);
    tcase_add_test(tc, the_time_of_a_bind_is_read_back);
    tcase_add_loop_test(tc, a_pod_counts_at_its_peak, 0, 6);
    tcase_add_test(tc, a_pod_that_holds_nothing_any_more_is_forgotten);
    tcase_add_test(tc, overbooked_cards_have_nothing_free);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
