/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of a record begins with: whoever plays it knows what a store knew that saw all before.
 */
#include "next_file.h"
#include "part_record.h"

#include "gate/waits/waits.h"
#include "store/images/learned.h"
#include "inspect/views.h"
#include "core/constraints.h"

/* --- tests ---------------------------------------------------------------------------------- */

/* Of pods with room kept for them the first that came has it, where there is not enough for all. */
START_TEST(objects_come_in_the_order_in_which_they_came)
{
    g_autofree char *small = ask("4"), *large = ask("3");
    const bool forth = _i < 8;

    list_all();
    for (int i = 0; i < 8; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", (_i + (forth ? i : 8 - i)) % 8);
        add_pod(uid, i % 2 ? "7" : "6", i % 4 < 2 ? "n1" : "n2");
    }
    begin_file();
    expect_same(small);
    expect_same(large);
}
END_TEST

/* What a node had before its plugin went away counts in the next file, too; and when it is back, not. */
START_TEST(a_node_whose_plugin_is_away_is_known)
{
    const struct node_view nodes[] = {
        {.name = "n1", .capacity = PAIRS({MEM, "0"}, {COUNT, "1"})},
        {.name = "n1", .capacity = PAIRS({MEM, "20"}, {COUNT, "1"})},
    };

    list_all();
    for (int i = 0; i < 2; i++) {
        store_apply_node(live, &nodes[0]);
        note(record_new(&(struct observation){
            .what = OBSERVED_NODE, .number = ++number, .node = &nodes[0], .paused = true}));
    }
    if (_i == 1) {
        store_apply_node(live, &nodes[1]);
        note(record_new(
            &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &nodes[1]}));
    }
    begin_file();
    const struct node *node = ledger_node(store_lock(replay_store(next_file)), "n1");
    ck_assert_int_eq(node->n_cards, 1);
    ck_assert(node->paused == (_i == 0) && node->cards[0].healthy == (_i == 1));
    ck_assert_int_eq(node->cards[0].memory, (_i == 0 ? INT64_C(10) : INT64_C(20)) << 30);
    store_unlock(replay_store(next_file));
}
END_TEST

/* The ledger goes by the watch. */
START_TEST(what_is_said_of_an_eviction_changes_nothing)
{
    const struct observed_eviction eviction = {"reclaim", "evicted", "team/big", "ml",
                                               "web",     "u1",      "n1"};

    list_all();
    add_running("u1", "4", "n1");
    for (int i = 0; i < 2; i++) {
        struct record *record = record_new(&(struct observation){.what = OBSERVED_EVICTION,
                                                                 .number = ++number,
                                                                 .key = eviction.uid,
                                                                 .eviction = &eviction});
        g_autofree char *line = g_strdup_printf(
            "{\"n\":%" G_GUINT64_FORMAT ",\"kind\":\"eviction\",\"key\":\"u1\",\"result\":"
            "\"evicted\",\"capability\":\"reclaim\",\"for\":\"team/big\",\"namespace\":"
            "\"ml\",\"name\":\"web\",\"node\":\"n1\"}",
            number);
        ck_assert_str_eq(record->text->str, line);
        note(record); /* before the file begins, and in it */
        if (i == 0)
            begin_file();
    }
    ck_assert_ptr_nonnull(ledger_get(store_lock(replay_store(next_file)), "u1"));
    store_unlock(replay_store(next_file));
}
END_TEST

/* A node that is being changed is so for a minute, and not for one more with each file. */
START_TEST(since_when_a_node_is_being_changed_is_known)
{
    static char table[] = "whole=1,shared=4";
    const struct node_view node = {.name = "n1",
                                   .labels = PAIRS({"nvidia.com/device-plugin.config", "shared"},
                                                   {"nvidia.com/gpu.count", "4"},
                                                   {"nvidia.com/gpu.replicas", "1"}),
                                   .capacity = PAIRS({"nvidia.com/gpu", "4"})};
    const struct moment moment = {.now_ns = 1, .now_ms = 1000 + (_i == 0 ? 59999 : 60000)};

    live_options.dialects.nvidia_config_replicas = table;
    list_all();
    note(record_new(&(struct observation){
        .what = OBSERVED_NODE, .number = ++number, .node = &node, .change_ms = 1000}));
    begin_file();
    note(record_new(
        &(struct observation){.what = OBSERVED_TIME, .number = ++number, .moment = &moment}));
    const struct node *known = ledger_node(store_lock(replay_store(next_file)), "n1");
    ck_assert_int_eq(known->pools[0].capacity, _i == 0 ? 0 : 4);
    store_unlock(replay_store(next_file));
}
END_TEST

/* Whom kubelet may still call the plugin for. */
START_TEST(a_pod_that_vanished_is_known)
{
    const struct pod_view pod = {
        .ns = "ml",
        .name = "u",
        .uid = "u",
        .node_name = "n1",
        .phase = "Pending",
        .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
        CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};

    list_all();
    store_apply_pod(live, &pod);
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &pod, .trust = TRUST_ANNOTATIONS}));
    if (_i == 1)
        begin_file();
    store_vanish_pod(live, "u");
    note(record_new(
        &(struct observation){.what = OBSERVED_POD_VANISHED, .number = ++number, .key = "u"}));
    if (_i == 0) {
        note(record_part(live, &part_waits, ++number));
        begin_file();
    }
    const struct node *node = ledger_node(store_lock(replay_store(next_file)), "n1");
    ck_assert(node->departed && node->departed->len == 1);
    ck_assert_int_eq(node->allocations->len, 0);
    store_unlock(replay_store(next_file));
}
END_TEST

/* What a pod was promised that has ended, which the store does not keep: said again by a list that is under
 * way, not said by one that has ended, or until the pod is gone. */
START_TEST(a_stray_promise_is_known)
{
    const struct pod_view pod = {
        .ns = "ml",
        .name = "u",
        .uid = "u",
        .node_name = "n1",
        .phase = "Failed",
        .annotations = PAIRS({"volcano.sh/vgpu-node", "n1"}, {"volcano.sh/vgpu-time", "7"},
                             {"volcano.sh/devices-to-allocate", "GPU-a,NVIDIA,1,0:"})};
    struct stray stray;
    bool awaited;

    ck_assert(strays_read(dialect_find("volcano-vgpu"), &pod, &stray, &awaited));
    ck_assert(!awaited);
    list_all();
    for (int i = 0; i < 1 + (_i == 1); i++) {
        if (i == 1)
            list(OBSERVED_LIST_BEGIN, FEED_PODS);
        store_apply_pod(live, &pod);
        note(record_new(
            &(struct observation){.what = OBSERVED_PROMISE, .number = ++number, .stray = &stray}));
    }
    if (_i == 2) {
        list(OBSERVED_LIST_BEGIN, FEED_PODS);
        list(OBSERVED_LIST_END, FEED_PODS);
    } else if (_i == 3) {
        store_vanish_pod(live, "u");
        note(record_new(
            &(struct observation){.what = OBSERVED_POD_VANISHED, .number = ++number, .key = "u"}));
    } else if (_i == 4) {
        note(record_new(&(struct observation){
            .what = OBSERVED_PROMISE_GONE, .number = ++number, .stray = &stray}));
    }
    begin_file();
    if (_i == 1) /* it has been named */
        list(OBSERVED_LIST_END, FEED_PODS);
    const struct node *node = ledger_node(store_lock(replay_store(next_file)), "n1");
    ck_assert(!node->promised == (_i > 1));
    if (_i <= 1)
        ck_assert_int_eq(g_array_index(node->promised, struct promised, 0).time, 7);
    store_unlock(replay_store(next_file));
}
END_TEST

/* A pod is on the card that it was bound to, in the next file, too. */
START_TEST(an_edited_pod_stays_on_its_card)
{
    const struct node_view node = {.name = "n9", .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})};
    struct pod_view pod = {.ns = "ml",
                           .name = "u",
                           .uid = "u",
                           .node_name = "n9",
                           .phase = "Running",
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};

    list_all();
    store_apply_node(live, &node);
    note(record_new(
        &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &node}));
    for (int i = 1; i >= 0; i--) {
        pod.annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", i ? "1" : "0"});
        store_apply_pod(live, &pod);
        note(record_new(&(struct observation){
            .what = OBSERVED_POD, .number = ++number, .pod = &pod, .trust = TRUST_ANNOTATIONS}));
    }
    begin_file();
    const struct allocation *known = ledger_get(store_lock(replay_store(next_file)), "u");
    ck_assert_int_eq(known->shares[0].card, 1);
    ck_assert_int_eq(known->distrust, DISTRUST_EDITED);
    store_unlock(replay_store(next_file));
}
END_TEST

/* Of "u", on card 1; by which key it was made nobody asks. */
static const char sealed[] =
    "v1:0000000a:0000000000000000000000000000000000000000000000000000000000000000:"
    "{\"settled\":true,\"booking\":{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"u\","
    "\"node\":\"n9\",\"dialect\":\"gpushare\",\"amount\":6,\"time\":\"1\",\"shares\":["
    "{\"memory\":6,\"units\":true,\"card\":1,\"container\":0,\"exclusive\":false}]}}";

/* "u" of 6 units on card 1 says so, and then that it is on card 0. A record has what was believed of it,
 * not the key. */
static const struct {
    enum trust trust;
    const char *annotation;
    int card;
    enum distrust distrust;
} trusts[] = {
    {TRUST_ANNOTATIONS, "1", 1, DISTRUST_EDITED},
    {TRUST_NOTHING, "1", CARD_UNKNOWN, DISTRUST_UNSEALED},
    {TRUST_SEAL, "0", 1, DISTRUST_EDITED},
};

START_TEST(what_was_believed_of_a_pod_is_believed)
{
    const struct node_view node = {.name = "n9", .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})};
    struct pod_view pod = {.ns = "ml",
                           .name = "u",
                           .uid = "u",
                           .node_name = "n9",
                           .phase = "Running",
                           .started = true,
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};

    list_all();
    store_apply_node(live, &node);
    note(record_new(
        &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &node}));
    for (int i = 1; i >= 0; i--) {
        pod.annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", i ? trusts[_i].annotation : "0"},
                                {SEAL_ANNOTATION, sealed});
        note(record_new(&(struct observation){
            .what = OBSERVED_POD, .number = ++number, .pod = &pod, .trust = trusts[_i].trust}));
    }
    begin_file();
    const struct allocation *known = ledger_get(store_lock(replay_store(next_file)), "u");
    ck_assert_int_eq(known->shares[0].card, trusts[_i].card);
    ck_assert_int_eq(known->distrust, trusts[_i].distrust);
    store_unlock(replay_store(next_file));
}
END_TEST

/* A seal that comes back is believed from then on. */
START_TEST(a_seal_that_comes_back_is_believed)
{
    const struct node_view node = {.name = "n9", .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})};
    struct pod_view pod = {.ns = "ml",
                           .name = "u",
                           .uid = "u",
                           .node_name = "n9",
                           .phase = "Running",
                           .started = true,
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};

    list_all();
    store_apply_node(live, &node);
    note(record_new(
        &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &node}));
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &pod, .trust = TRUST_NOTHING}));
    pod.annotations = PAIRS({SEAL_ANNOTATION, sealed});
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &pod, .trust = TRUST_SEAL}));
    begin_file();
    const struct allocation *known = ledger_get(store_lock(replay_store(next_file)), "u");
    ck_assert_int_eq(known->shares[0].card, 1);
    store_unlock(replay_store(next_file));
}
END_TEST

/* What it has not named by its end goes; what it has named stays. */
START_TEST(a_list_under_way_goes_on)
{
    g_autofree char *body = ask("4");

    list_all();
    add_pod("kept", "6", "n1");
    add_pod("gone", "7", "n2");
    list(OBSERVED_LIST_BEGIN, FEED_NODES);
    add_node("n2");
    list(OBSERVED_LIST_BEGIN, FEED_PODS);
    add_pod("kept", "6", "n1");
    begin_file();
    expect_same(body);
    list(OBSERVED_LIST_END, FEED_NODES);
    expect_same(body);
    list(OBSERVED_LIST_END, FEED_PODS);
    expect_same(body);
    add_node("n1");
    expect_same(body);
}
END_TEST

/* A booking of the pod u, on a card of n1. */
static void book(void)
{
    struct record *look = record_new(&(struct observation){
        .what = OBSERVED_INHERITED,
        .number = ++number,
        .key = "u",
        .booking = "{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"u\",\"node\":\"n1\",\"dialect\":"
                   "\"gpushare\",\"amount\":6,\"time\":\"1767240616097659000\",\"shares\":[{"
                   "\"memory\":6,\"units\":true,"
                   "\"card\":0}]}"});
    look->kind = OBSERVED_LOOK; /* which tells a booking in the same way */
    look->result = BIND_RESULT_BOUND;
    note(look);
}

/* A bind goes on for a pod that has been found bound elsewhere, and fails. */
START_TEST(a_settled_pod_is_known)
{
    const struct pod_view pod = {.ns = "ml",
                                 .name = "u",
                                 .uid = "u",
                                 .node_name = "n2",
                                 .phase = "Running",
                                 CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};
    const enum bind_result results[] = {BIND_RESULT_CONFLICT, BIND_RESULT_UNKNOWN};
    const enum allocation_state states[] = {ALLOCATION_BOUND, ALLOCATION_UNKNOWN};

    list_all();
    book();
    note(record_new(
        &(struct observation){.what = OBSERVED_ASKED_POD, .number = ++number, .pod = &pod}));
    note(record_new(&(struct observation){.what = OBSERVED_CONCLUSION,
                                          .moment = &(struct moment){.number = ++number},
                                          .key = "u",
                                          .result = results[_i]}));
    begin_file();
    const struct allocation *known = ledger_get(store_lock(replay_store(next_file)), "u");
    ck_assert_ptr_nonnull(known);
    ck_assert_str_eq(known->node->name, "n2");
    ck_assert_int_eq(known->state, states[_i]);
    store_unlock(replay_store(next_file));
}
END_TEST

/* Somebody else has bound it, without a card. The watch shows that first, then our Binding is refused. */
START_TEST(a_booking_that_was_refused_late_is_none)
{
    const struct pod_view pod = {.ns = "ml",
                                 .name = "u",
                                 .uid = "u",
                                 .node_name = "n1",
                                 .phase = "Pending",
                                 CONTAINERS({.name = "c", .limits = PAIRS({MEM, "6"})})};
    struct pod_view started = pod;

    list_all();
    book();
    note(record_new(&(struct observation){.what = OBSERVED_POD, .number = ++number, .pod = &pod}));
    note(record_new(
        &(struct observation){.what = OBSERVED_REFUSED, .number = ++number, .key = "u"}));
    note(record_new(&(struct observation){
        .what = OBSERVED_ASKED_POD, .number = ++number, .pod = &pod, .confirmed = true}));
    if (_i) {
        started.phase = "Running";
        note(record_new(
            &(struct observation){.what = OBSERVED_POD, .number = ++number, .pod = &started}));
    }
    begin_file();
    const struct allocation *known = ledger_get(store_lock(replay_store(next_file)), "u");
    ck_assert_ptr_nonnull(known);
    for (uint32_t i = 0; i < known->n_shares; i++)
        ck_assert_int_eq(known->shares[i].card, CARD_UNKNOWN);
    store_unlock(replay_store(next_file));
}
END_TEST

START_TEST(budgets_are_known)
{
    int64_t allowed[3] = {0};

    list_all();
    list(OBSERVED_LIST_BEGIN, FEED_BUDGETS);
    add_budget("b", 2);
    add_budget("a", 1);
    list(OBSERVED_LIST_END, FEED_BUDGETS);
    list(OBSERVED_LIST_BEGIN, FEED_BUDGETS);
    add_budget("b", 3);
    begin_file();
    struct store *stores[] = {live, replay_store(next_file)};
    for (int i = 0; i < 2; i++) {
        store_lock(stores[i]);
        ck_assert_uint_eq(budgets_n(store_budgets(stores[i])), 2);
        budgets_allowed(store_budgets(stores[i]), allowed);
        store_unlock(stores[i]);
        ck_assert_int_eq(allowed[0], 1);
        ck_assert_int_eq(allowed[1], 3);
    }
    list(OBSERVED_LIST_END, FEED_BUDGETS);
    for (int i = 0; i < 2; i++) {
        store_lock(stores[i]);
        ck_assert_uint_eq(budgets_n(store_budgets(stores[i])), 1);
        store_unlock(stores[i]);
    }
}
END_TEST

static char *learned_of(const struct demand *demand)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    learned_encode(&writer, demand, false);
    return g_string_free(text, FALSE);
}

static char *learned_by(struct store *store)
{
    store_lock(store);
    char *text = learned_of(store_demand(store));
    store_unlock(store);
    return text;
}

START_TEST(what_was_learned_is_known)
{
    list_all();
    for (int i = 0; i < 40; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        add_pod(uid, i % 3 ? "7" : "6", NULL);
        if (i % 2)
            remove_pod(uid);
    }
    note(record_part(live, &part_learned, ++number));
    begin_file();
    for (int i = 0; i < 2; i++) {
        g_autofree char *expected = learned_by(live), *got = learned_by(replay_store(next_file));
        ck_assert_str_eq(got, expected);
        add_pod("another", "5", NULL); /* news once */
    }
}
END_TEST

/* All that a shape is, and the limits. */
START_TEST(a_lesson_is_read_as_it_was_written)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(demand) demand = demand_new();
    g_autoptr(terms) terms = terms_new();
    terms->models = g_strsplit("T4,\"x\"", ",", 0);
    terms->models_not = g_strsplit("V100", ",", 0);
    const struct shape shapes[] = {
        {.memory = {10, AMOUNT_NODE_UNITS},
         .core = 300,
         .cards = 1,
         .cpu = 1500,
         .count = 1.0 / 3,
         .gib = 2.0 / 3,
         .gib_squares = 1e15},
        {.cards = 2, .exclusive = true, .terms = terms, .count = 1e-9},
        {.cards = 2, .exclusive = true, .device = (char *)"nvidia.com/mig-1g.5gb", .count = 7},
    };
    demand_learn(demand, &(struct learned_demand){shapes, 3, 1.0001, 7.1, 12});
    g_autofree char *text = learned_of(demand);
    bool bare = true;
    g_autoptr(demand) again =
        learned_decode(arena, json_parse(arena, text, strlen(text), NULL), &bare, NULL);
    ck_assert_ptr_nonnull(again);
    ck_assert(!bare);
    g_autofree char *same = learned_of(again);
    ck_assert_str_eq(same, text);
    const struct learned_demand read = demand_tell(again);
    ck_assert_uint_eq(read.n_gpu, 12);
    ck_assert(read.gain == 1.0001 && read.total == 7.1);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        ck_assert(read.shapes[i].count == shapes[i].count);
        ck_assert(read.shapes[i].gib == shapes[i].gib);
        ck_assert(read.shapes[i].gib_squares == shapes[i].gib_squares);
        ck_assert_pstr_eq(read.shapes[i].device, shapes[i].device);
        ck_assert_int_eq(read.shapes[i].memory.value, shapes[i].memory.value);
        ck_assert_int_eq(read.shapes[i].cpu, shapes[i].cpu);
        ck_assert(!read.shapes[i].terms == !shapes[i].terms);
    }
    ck_assert_str_eq(read.shapes[1].terms->models[1], "\"x\"");
    ck_assert_str_eq(read.shapes[1].terms->models_not[0], "V100");
    static const char *const bad[] = {
        "{}",
        "{\"gain\":\"0.5\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[]}",
        "{\"gain\":\"1\",\"total\":\"nan\",\"gpuPods\":1,\"shapes\":[]}",
        "{\"gain\":\"1\",\"total\":\"1x\",\"gpuPods\":1,\"shapes\":[]}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":-1,\"shapes\":[]}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[{}]}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[{\"count\":\"1\",\"cards\":17}]"
        "}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[{\"count\":\"1\",\"models\":[1]}"
        "]}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[{\"count\":\"1\",\"gib\":\"-1\"}"
        "]}",
        "{\"gain\":\"1\",\"total\":\"1\",\"gpuPods\":1,\"shapes\":[{\"count\":\"1\",\"gibSquares\":"
        "\"1e30\"}]}",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        const cJSON *tree = json_parse(arena, bad[i], strlen(bad[i]), NULL);
        ck_assert_ptr_null(learned_decode(arena, tree, &bare, &error));
        ck_assert_ptr_nonnull(error);
    }
}
END_TEST

/* No record tells of it, so nothing may follow from it. */
START_TEST(who_looks_changes_nothing)
{
    uint64_t version[2];

    list_all();
    for (int i = 0; i < 40; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        g_autoptr(GString) seen = g_string_new(NULL);
        add_pod(uid, "7", NULL);
        if (i == 19 || i == 39) {
            store_lock(live);
            version[i == 39] = demand_version(store_demand(live));
            store_unlock(live);
        }
        if (i == 29)
            view_nodes(live, NULL, seen);
    }
    ck_assert_uint_eq(version[1], version[0] + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tests = tcase_create("record");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, objects_come_in_the_order_in_which_they_came, 0, 16);
    tcase_add_loop_test(tests, a_node_whose_plugin_is_away_is_known, 0, 2);
    tcase_add_test(tests, what_is_said_of_an_eviction_changes_nothing);
    tcase_add_loop_test(tests, since_when_a_node_is_being_changed_is_known, 0, 2);
    tcase_add_loop_test(tests, a_pod_that_vanished_is_known, 0, 2);
    tcase_add_loop_test(tests, a_stray_promise_is_known, 0, 5);
    tcase_add_test(tests, an_edited_pod_stays_on_its_card);
    tcase_add_loop_test(tests, what_was_believed_of_a_pod_is_believed, 0, G_N_ELEMENTS(trusts));
    tcase_add_test(tests, a_seal_that_comes_back_is_believed);
    tcase_add_test(tests, a_list_under_way_goes_on);
    tcase_add_loop_test(tests, a_settled_pod_is_known, 0, 2);
    tcase_add_loop_test(tests, a_booking_that_was_refused_late_is_none, 0, 2);
    tcase_add_test(tests, budgets_are_known);
    tcase_add_test(tests, what_was_learned_is_known);
    tcase_add_test(tests, a_lesson_is_read_as_it_was_written);
    tcase_add_test(tests, who_looks_changes_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
