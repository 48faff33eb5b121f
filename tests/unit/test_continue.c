/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod holds that is known, whatever its annotations are made to say (dialect_continue). */
#include "desk.h"
#include "suite.h"

#define MEM "aliyun.com/gpu-mem"
#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define VCORE "tencent.com/vcuda-core"
#define VMEM "tencent.com/vcuda-memory"
#define VIDX "tencent.com/predicate-gpu-idx-0"
#define GPU "nvidia.com/gpu"
#define HMEM "nvidia.com/gpumem"
#define HALLOCATED "hami.io/vgpu-devices-allocated"

static bool edited;

/* The pod as the watch shows it. */
static const struct allocation *see(const struct pod_view *pod)
{
    const struct allocation *known = ledger_get(book, pod->uid);
    struct allocation *fresh = dialect_read_allocation(pod, &options, NULL);

    edited = false;
    if (known)
        fresh = dialect_continue(known, fresh, &edited);
    fresh->state = ALLOCATION_CONFIRMED;
    return ledger_put(book, "n1", fresh);
}

static struct node *add_gpushare_node(void)
{
    return desk_node(&(struct node_view){
        .name = "n1", .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"})});
}

/* A pod of 5 units as its annotations say; NULL: without them. */
static struct pod_view gpushare_pod(const char *card, const char *assigned, bool started,
                                    struct string_pair *pairs)
{
    static const struct string_pair limit = {MEM, "5"};
    static const struct container_view container = {.name = "c", .limits = {&limit, 1}};
    size_t n = 0;

    if (assigned) {
        pairs[n++] = (struct string_pair){ASSIGNED, assigned};
        pairs[n++] = (struct string_pair){TIME, "1767225600000000001"};
    }
    if (card)
        pairs[n++] = (struct string_pair){IDX, card};
    return (struct pod_view){.ns = "ml", .name = "a", .uid = "a", .node_name = "n1",
                             .phase = started ? "Running" : "Pending", .started = started,
                             .annotations = {pairs, n}, .containers = &container,
                             .n_containers = 1};
}

static const struct allocation *see_gpushare(const char *card, const char *assigned, bool started)
{
    struct string_pair pairs[3];
    struct pod_view pod = gpushare_pod(card, assigned, started, pairs);

    return see(&pod);
}

/* GiB that cards 0 to 3 have in use, then those that may be anywhere: "5,0,0,0+0". */
static void expect_use(const char *wanted)
{
    const struct node *node = ledger_node(book, "n1");
    g_autoptr(GString) text = g_string_new(NULL);

    for (int32_t i = 0; i < node->n_cards; i++)
        g_string_append_printf(text, "%s%" G_GINT64_FORMAT, i ? "," : "",
                               node->cards[i].memory_used / GIB);
    g_string_append_printf(text, "+%" G_GINT64_FORMAT, node->unplaced_memory / GIB);
    ck_assert_str_eq(text->str, wanted);
}

/* --- edits ----------------------------------------------------------------------------------- */

START_TEST(both_are_held_while_the_node_side_may_take_either)
{
    add_gpushare_node();
    see_gpushare("0", "false", false);
    expect_use("5,0,0,0+0");
    const struct allocation *held = see_gpushare("2", "false", false);
    expect_use("5,0,5,0+0");
    ck_assert(edited && held->waiting);
    ck_assert_int_eq(held->distrust, DISTRUST_EDITED);
    ck_assert(!held->shares[0].named && held->shares[1].named);
    held = see_gpushare("3", "false", false); /* of the named ones the last */
    expect_use("5,0,0,5+0");
    held = see_gpushare("0", "false", false);
    expect_use("5,0,0,0+0");
    ck_assert(!edited);
    ck_assert_int_eq(held->distrust, DISTRUST_NONE);
}
END_TEST

START_TEST(the_first_is_held_after_the_start)
{
    add_gpushare_node();
    see_gpushare("0", "false", false);
    see_gpushare("0", "true", true);
    ck_assert(!edited);
    const struct allocation *held = see_gpushare("1", "true", true);
    expect_use("5,0,0,0+0");
    ck_assert(edited);
    ck_assert_int_eq(held->distrust, DISTRUST_EDITED);
    held = see_gpushare("1", "true", true);
    ck_assert(edited);
    see_gpushare("0", "true", true);
    ck_assert(!edited);
}
END_TEST

START_TEST(a_lost_annotation_keeps_the_card)
{
    add_gpushare_node();
    see_gpushare("1", "true", true);
    const struct allocation *held = see_gpushare(NULL, "true", true);
    expect_use("0,5,0,0+0");
    ck_assert_int_eq(held->distrust, DISTRUST_LOST);
    ck_assert(!edited);
    held = see_gpushare(NULL, NULL, true);
    expect_use("0,5,0,0+0");
    ck_assert_int_eq(held->distrust, DISTRUST_UNMARKED);
    held = see_gpushare("x", "true", true);
    expect_use("0,5,0,0+0");
    ck_assert_int_eq(held->distrust, DISTRUST_MALFORMED);
}
END_TEST

/* --- waiting --------------------------------------------------------------------------------- */

START_TEST(waiting_does_not_come_back)
{
    add_gpushare_node();
    ck_assert(see_gpushare("0", "false", false)->waiting);
    ck_assert(!see_gpushare("0", "true", true)->waiting);
    struct string_pair pairs[3];
    struct pod_view pod = gpushare_pod("2", "false", true, pairs);
    pod.phase = "Pending"; /* an image that does not exist */
    const struct allocation *held = see(&pod);
    ck_assert(!held->waiting && held->assigned);
    expect_use("5,0,0,0+0");
    ck_assert_int_eq(ledger_node(book, "n1")->n_waiting, 0);
}
END_TEST

START_TEST(who_has_waited_enough_waits_no_more)
{
    add_gpushare_node();
    see_gpushare("0", "false", false);
    ledger_get(book, "a")->waited_out = true;
    const struct allocation *held = see_gpushare("2", "false", false);
    ck_assert(!held->waiting && held->waited_out);
    expect_use("5,0,0,0+0");
}
END_TEST

/* gpu-manager may take a pod that ends before it has run for the next one that kubelet asks for. */
START_TEST(who_ends_before_it_has_run_waits_once_more)
{
    struct pod_view pod = {.ns = "ml", .name = "t", .uid = "t", .node_name = "n1",
                           .phase = "Pending", .started = true,
                           .annotations = PAIRS({VIDX, "0"}, {"tencent.com/gpu-assigned", "false"},
                                                {"tencent.com/predicate-time", "7"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({VCORE, "40"}, {VMEM, "4"})})};

    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({VCORE, "400"}, {VMEM, "240"})});
    ck_assert(!see(&pod)->waiting);
    pod.terminating = true;
    ck_assert(see(&pod)->waiting);
    ck_assert(see(&pod)->waiting);
    pod.phase = "Running";
    ck_assert(!see(&pod)->waiting);
}
END_TEST

/* --- cards that are not known yet ------------------------------------------------------------ */

START_TEST(an_unknown_card_stays_unknown_whoever_names_one)
{
    add_gpushare_node();
    see_gpushare(NULL, "false", false);
    expect_use("0,0,0,0+5");
    see_gpushare("3", "false", false);
    expect_use("0,0,0,0+5");
    ck_assert(edited);
}
END_TEST

START_TEST(an_unknown_card_of_a_running_pod_stays_unknown)
{
    add_gpushare_node();
    see_gpushare(NULL, "true", true);
    const struct allocation *held = see_gpushare("3", "true", true);
    expect_use("0,0,0,0+5");
    ck_assert(edited);
    ck_assert_int_eq(held->distrust, DISTRUST_EDITED);
}
END_TEST

START_TEST(who_holds_nothing_may_be_named_a_card_at_any_time)
{
    add_gpushare_node();
    ck_assert_uint_eq(see_gpushare(NULL, NULL, true)->n_shares, 0);
    expect_use("0,0,0,0+0");
    see_gpushare("3", "true", true);
    expect_use("0,0,0,5+0");
    ck_assert(!edited);
    see_gpushare("1", "true", true);
    expect_use("0,0,0,5+0");
    ck_assert(edited);
}
END_TEST

/* --- what the node side has to say itself ---------------------------------------------------- */

static struct pod_view whole_pod(const char *cards, const char *assigned, const char *phase,
                                 struct string_pair *pairs)
{
    static const struct string_pair limit = {VCORE, "200"};
    static const struct container_view container = {.name = "c", .limits = {&limit, 1}};

    pairs[0] = (struct string_pair){VIDX, cards};
    pairs[1] = (struct string_pair){"tencent.com/gpu-assigned", assigned};
    pairs[2] = (struct string_pair){"tencent.com/predicate-time", "7"};
    return (struct pod_view){.ns = "ml", .name = "w", .uid = "w", .node_name = "n1",
                             .phase = phase, .started = true, .annotations = {pairs, 3},
                             .containers = &container, .n_containers = 1};
}

static void expect_whole(const char *cards, const char *assigned, const char *phase,
                         const char *wanted)
{
    struct string_pair pairs[3];
    struct pod_view pod = whole_pod(cards, assigned, phase, pairs);
    g_autoptr(GString) text = g_string_new(NULL);

    see(&pod);
    const struct node *node = ledger_node(book, "n1");
    for (int32_t i = 0; i < node->n_cards; i++)
        g_string_append_printf(text, "%d", node->cards[i].exclusive);
    ck_assert_str_eq(text->str, wanted);
}

static void add_tencent_node(void)
{
    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({VCORE, "400"}, {VMEM, "240"})});
}

START_TEST(gpu_manager_says_which_whole_cards)
{
    add_tencent_node();
    expect_whole("0,1", "false", "Pending", "1100");
    expect_whole("1,3", "true", "Pending", "1101"); /* it may be its word, or not yet */
    ck_assert(!edited);
    expect_whole("1,3", "true", "Running", "0101");
    ck_assert(!edited);
    expect_whole("0,2", "true", "Running", "0101"); /* that was it */
    ck_assert(edited);
}
END_TEST

/* The same of what we have booked ourselves, though the watch saw nothing in between. */
START_TEST(what_was_booked_is_gpu_managers_to_say)
{
    static const struct string_pair limit = {VCORE, "200"};
    const struct container_view container = {.name = "c", .limits = {&limit, 1}};
    const struct pod_view pod = {.ns = "ml", .name = "w", .uid = "w", .containers = &container,
                                 .n_containers = 1};

    for (int between = 0; between < 2; between++) {
        add_tencent_node();
        g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
        const struct admission_query query = {.request = request, .policy = policies,
                                              .options = &options};
        struct placement placement;
        enum reason reason;
        ck_assert_int_eq(dialect_admit(ledger_node(book, "n1"), &query, &placement, &reason),
                         ADMISSION_YES);
        desk_reserve(&pod, "n1", &placement);
        if (between)
            expect_whole("0,1", "false", "Pending", "1100");
        expect_whole("2,3", "true", "Running", "0011");
        ck_assert(!edited);
        expect_whole("0,1", "true", "Running", "0011");
        ck_assert(edited);
        ledger_drop(book, "w");
    }
}
END_TEST

/* A part of a card is foreseen, and gpu-manager fails the pod where it finds another. */
START_TEST(a_checked_card_is_not_gpu_managers_to_say)
{
    struct pod_view pod = {.ns = "ml", .name = "t", .uid = "t", .node_name = "n1",
                           .phase = "Pending",
                           .annotations = PAIRS({VIDX, "0"}, {"tencent.com/gpu-assigned", "false"},
                                                {"tencent.com/predicate-time", "7"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({VCORE, "40"}, {VMEM, "4"})})};

    add_tencent_node();
    see(&pod);
    pod.phase = "Running";
    pod.started = true;
    pod.annotations = PAIRS({VIDX, "2"}, {"tencent.com/gpu-assigned", "true"},
                            {"tencent.com/predicate-time", "7"});
    see(&pod);
    ck_assert(edited);
    expect_use("1,0,0,0+0");
}
END_TEST

/* --- cards by name --------------------------------------------------------------------------- */

#define CARDS(a, b)                                                                                \
    a ",10,10000,100,NVIDIA-T4,0,true,0,hami-core:" b ",10,10000,100,NVIDIA-T4,0,true,1,hami-core:"

static const struct node *add_hami_node(const char *cards)
{
    return desk_node(&(struct node_view){
        .name = "n1",
        .annotations = PAIRS({"hami.io/node-nvidia-register", cards}),
        .allocatable = PAIRS({GPU, "20"})});
}

static struct pod_view hami_pod(const char *count, struct string_pair *limits,
                                struct container_view *container)
{
    limits[0] = (struct string_pair){GPU, count};
    limits[1] = (struct string_pair){HMEM, "5000"};
    *container = (struct container_view){.name = "c", .limits = {limits, 2}};
    return (struct pod_view){.ns = "ml", .name = "h", .uid = "h", .node_name = "n1",
                             .phase = "Pending", .containers = container, .n_containers = 1};
}

/* Our own booking knows the card by its number; its annotation names it. */
START_TEST(what_we_wrote_is_no_edit)
{
    struct string_pair limits[2];
    struct container_view container;
    struct pod_view pod = hami_pod("1", limits, &container);
    const struct node *node = add_hami_node(CARDS("GPU-a", "GPU-b"));
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    const struct admission_query query = {.request = request, .policy = policies,
                                          .options = &options};
    struct placement placement;
    enum reason reason;

    ck_assert_int_eq(dialect_admit(node, &query, &placement, &reason), ADMISSION_YES);
    desk_reserve(&pod, "n1", &placement);
    pod.annotations = PAIRS({HALLOCATED, "GPU-a,NVIDIA,5000,0:;"}, {"hami.io/vgpu-node", "n1"},
                            {"hami.io/bind-phase", "allocating"});
    const struct allocation *held = see(&pod);
    ck_assert(!edited);
    ck_assert_uint_eq(held->n_shares, 1);
    ck_assert_int_eq(held->distrust, DISTRUST_NONE);
    ck_assert_int_eq(node->cards[0].memory_used, 5000 * MIB);
    /* and from then on by that name */
    node = add_hami_node(CARDS("GPU-b", "GPU-a"));
    ck_assert_int_eq(node->cards[0].memory_used, 0);
    ck_assert_int_eq(node->cards[1].memory_used, 5000 * MIB);
}
END_TEST

/* Several cards that nobody gave were one share; they are several once they are named. */
START_TEST(cards_that_are_named_later_are_all_held)
{
    struct string_pair limits[2];
    struct container_view container;
    struct pod_view pod = hami_pod("2", limits, &container);
    const struct node *node = add_hami_node(CARDS("GPU-a", "GPU-b"));

    pod.annotations = PAIRS({"hami.io/bind-phase", "allocating"});
    see(&pod);
    ck_assert_int_eq(node->unplaced_memory, 0);
    for (int i = 0; i < 2; i++) { /* for good */
        pod.annotations =
            PAIRS({HALLOCATED, "GPU-a,NVIDIA,5000,0:GPU-b,NVIDIA,5000,0:;"}, {"hami.io/vgpu-node", "n1"},
                  {"hami.io/bind-phase", i ? "success" : "allocating"});
        pod.phase = i ? "Running" : "Pending";
        pod.started = i;
        const struct allocation *held = see(&pod);
        ck_assert_uint_eq(held->n_shares, 2);
        ck_assert(!held->shares[0].named && !held->shares[1].named && !edited);
        ck_assert_int_eq(node->unplaced_memory, 0);
        ck_assert_int_eq(node->cards[0].memory_used, 5000 * MIB);
        ck_assert_int_eq(node->cards[1].memory_used, 5000 * MIB);
    }
}
END_TEST

/* The words of another dialect, added later, change nothing. */
START_TEST(the_dialect_stays)
{
    struct string_pair limits[2];
    struct container_view container;
    struct pod_view pod = hami_pod("1", limits, &container);
    const struct node *node = add_hami_node(CARDS("GPU-a", "GPU-b"));

    pod.phase = "Running";
    pod.started = true;
    pod.annotations = PAIRS({HALLOCATED, "GPU-a,NVIDIA,5000,0:;"}, {"hami.io/bind-phase", "success"});
    see(&pod);
    pod.annotations = PAIRS({"4pd.io/vgpu-ids-new", "GPU-b,NVIDIA,5000,0:;"}, {"4pd.io/vgpu-node", "n1"},
                            {"4pd.io/vgpu-time", "4102444800"});
    const struct allocation *held = see(&pod);
    ck_assert_str_eq(held->dialect->name, "hami");
    ck_assert_int_eq(node->cards[0].memory_used, 5000 * MIB);
    ck_assert_int_eq(node->cards[1].memory_used, 0);
}
END_TEST

/* KAI's pod finds its card out itself, and says it once. */
START_TEST(kai_says_its_card_once)
{
    struct pod_view pod = {.ns = "kai-resource-reservation", .name = "r", .uid = "r",
                           .node_name = "n1", .phase = "Running", .started = true,
                           CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"})})};
    const struct node *node = add_gpushare_node();

    see(&pod);
    ck_assert_int_eq(node->unplaced_exclusive, 1);
    pod.annotations = PAIRS({"run.ai/reserve_for_gpu_index", "2"});
    see(&pod);
    ck_assert_int_eq(node->unplaced_exclusive, 0);
    ck_assert_int_eq(node->cards[2].exclusive, 1);
    pod.annotations = PAIRS({"run.ai/reserve_for_gpu_index", "1"});
    see(&pod);
    ck_assert(edited);
    ck_assert_int_eq(node->cards[2].exclusive, 1);
    ck_assert_int_eq(node->cards[1].exclusive, 0);
}
END_TEST

/* What NVIDIA's pods were given does not change with what they say. */
START_TEST(replicas_are_those_of_the_bind)
{
    struct pod_view pod = {.ns = "ml", .name = "g", .uid = "g", .node_name = "n1",
                           .phase = "Running", .started = true,
                           .annotations = PAIRS({"gpuledger.io/gpu-replicas", "1"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"})})};

    desk_node(&(struct node_view){.name = "n1", .capacity = PAIRS({GPU, "8"})});
    ck_assert_int_eq(see(&pod)->shares[0].replicas, 1);
    pod.annotations = PAIRS({"gpuledger.io/gpu-replicas", "7"},
                            {"gpuledger.io/gpu-memory", "1000Gi"});
    const struct allocation *held = see(&pod);
    ck_assert_int_eq(held->shares[0].replicas, 1);
    ck_assert_int_eq(held->shares[0].devices, 1);
    ck_assert_int_eq(held->terms ? held->terms->memory_wanted : 0, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("continue");
    TCase *tests = tcase_create("continue");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, both_are_held_while_the_node_side_may_take_either);
    tcase_add_test(tests, the_first_is_held_after_the_start);
    tcase_add_test(tests, a_lost_annotation_keeps_the_card);
    tcase_add_test(tests, waiting_does_not_come_back);
    tcase_add_test(tests, who_has_waited_enough_waits_no_more);
    tcase_add_test(tests, who_ends_before_it_has_run_waits_once_more);
    tcase_add_test(tests, an_unknown_card_stays_unknown_whoever_names_one);
    tcase_add_test(tests, an_unknown_card_of_a_running_pod_stays_unknown);
    tcase_add_test(tests, who_holds_nothing_may_be_named_a_card_at_any_time);
    tcase_add_test(tests, gpu_manager_says_which_whole_cards);
    tcase_add_test(tests, what_was_booked_is_gpu_managers_to_say);
    tcase_add_test(tests, a_checked_card_is_not_gpu_managers_to_say);
    tcase_add_test(tests, what_we_wrote_is_no_edit);
    tcase_add_test(tests, cards_that_are_named_later_are_all_held);
    tcase_add_test(tests, the_dialect_stays);
    tcase_add_test(tests, kai_says_its_card_once);
    tcase_add_test(tests, replicas_are_those_of_the_bind);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
