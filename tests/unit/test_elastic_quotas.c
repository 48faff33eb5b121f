/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What counts for a namespace's elastic quota: every pod once, whatever happens to it in which order.
 */
#include "core/ledger.h"
#include "objects.h"
#include "quota/share_amounts.h"
#include "quota_extender.h"
#include "suite.h"

#define GPUS "gpuledger.io/gpus"
#define MEM "aliyun.com/gpu-mem"

static struct elastic_count seen;

static void begin(void)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000, .elastic_quotas = true}),
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "n",
                            .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"})});
    store_put_quota(extender.store,
                    &(struct resource_quota_view){
                        .ns = "ml", .name = "q", .elastic = true, .min = PAIRS({GPUS, "2"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

/* `node` NULL: it waits. */
static void tell(const char *uid, const char *node)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = uid,
                           .uid = uid,
                           .node_name = node,
                           .phase = node ? "Running" : "Pending",
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                                {"ALIYUN_COM_GPU_MEM_POD", "10"},
                                                {"ALIYUN_COM_GPU_MEM_DEV", "10"},
                                                {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                                {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

/* As bind does, and filter for the members of a group. */
static void book(const char *uid, enum allocation_state state)
{
    struct ledger *ledger = store_ledger(extender.store);
    struct allocation *booking = allocation_new(uid, "ml", uid, 1);

    booking->dialect = dialect_find("gpushare");
    booking->state = state;
    booking->shares[0] = (struct share){
        .card = 1, .memory = {ledger_node(ledger, "n")->cards[1].memory, AMOUNT_BYTES}};
    ledger_put(ledger, "n", booking);
}

static void note(const struct elastic_count *count, void *data)
{
    if (g_str_equal(count->ns, "ml"))
        seen = *count;
}

static void expect(int cards_used, int cards_waiting)
{
    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note, NULL);
    ck_assert_int_eq(seen.used, cards_used * SHARE_UNIT);
    ck_assert_int_eq(seen.waiting, cards_waiting * SHARE_UNIT);
}

START_TEST(a_booking_counts_once)
{
    static const enum allocation_state states[] = {ALLOCATION_HELD, ALLOCATION_ASSUMED,
                                                   ALLOCATION_BOUND, ALLOCATION_UNKNOWN};

    begin();
    tell("p", NULL);
    expect(0, 1);
    book("p", states[_i]);
    expect(1, 0);
    tell("p", NULL); /* the watch is late */
    expect(1, 0);
    tell("p", "n");
    expect(1, 0);
    store_delete_pod(extender.store, "p");
    expect(0, 0);
}
END_TEST

/* Whole cards of gpu-manager come with their memory, whatever their pod asks for; those of Volcano are
 * asked for by a resource of their own. */
START_TEST(the_memory_of_whole_cards_counts_where_it_is_named)
{
    const int64_t size = INT64_C(16) << 30;
    struct node node = {.cards = (struct card[]){{.memory = size}}, .n_cards = 1};
    const struct share whole = {.core = CORE_WHOLE, .exclusive = true};
    const struct share part = {.memory = {size / 2, AMOUNT_BYTES}, .core = CORE_WHOLE / 2};
    const struct dialect *tencent = dialect_find("tencent"), *volcano = dialect_find("volcano");

    ck_assert_int_eq(share_units(&node, &whole, tencent, "tencent.com/vcuda-memory"), 64 * 1000);
    ck_assert_int_eq(share_units(&node, &part, tencent, "tencent.com/vcuda-memory"), 32 * 1000);
    ck_assert_int_eq(share_units(&node, &whole, tencent, "tencent.com/vcuda-core"), 100 * 1000);
    ck_assert_int_eq(share_units(&node, &whole, volcano, "volcano.sh/gpu-memory"), 0);
}
END_TEST

/* Seven sevenths are a card, to a limit of cards, and six are less. */
START_TEST(what_fits_on_a_card_counts_as_a_card)
{
    begin();
    for (int64_t n = 1; n <= 2000; n++) {
        const int64_t size = INT64_C(80) << 30;
        struct node node = {.cards = (struct card[]){{.memory = size}}, .n_cards = 1};
        const struct share replica = {
            .device = "nvidia.com/gpu.shared", .devices = 1, .replicas = (int32_t)n};
        const struct share bytes = {.memory = {size / n, AMOUNT_BYTES}};
        const int64_t parts[] = {share_gpus(&node, &replica), share_gpus(&node, &bytes)};

        for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
            ck_assert_int_le(n * parts[i], SHARE_UNIT);
            ck_assert_int_ge(n * parts[i], SHARE_UNIT - 2 * n);
            ck_assert_int_gt(parts[i], 0);
        }
    }
    const struct node node = {.n_cards = 0};
    const struct share slice = {.device = "nvidia.com/mig-1g.10gb", .devices = 7};
    const struct share half = {.device = "nvidia.com/mig-3g.40gb", .devices = 1};
    const struct share other_half = {.device = "nvidia.com/mig-4g.40gb", .devices = 1};
    ck_assert_int_le(share_gpus(&node, &slice), SHARE_UNIT);
    ck_assert_int_eq(share_thousandths(share_gpus(&node, &slice)), 1000);
    ck_assert_int_le(share_gpus(&node, &half) + share_gpus(&node, &other_half), SHARE_UNIT);
    const struct share crumb = {
        .device = "nvidia.com/gpu.shared", .devices = 1, .replicas = INT32_MAX};
    ck_assert_int_gt(share_gpus(&node, &crumb), 0);
}
END_TEST

static void hold_a_third(const char *uid)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = uid,
                           .uid = uid,
                           .node_name = "thirds",
                           .phase = "Running",
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"},
                                                {"ALIYUN_COM_GPU_MEM_POD", "8"},
                                                {"ALIYUN_COM_GPU_MEM_DEV", "24"},
                                                {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                                {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "8"})})});
}

START_TEST(three_thirds_are_a_card_to_whoever_may_have_one)
{
    static const char *const holders[] = {"a", "b", "c"};
    const char *third =
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"8\"}}}]}},\"NodeNames\":[\"thirds\"]}";

    begin();
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "thirds",
                            .capacity = PAIRS({MEM, "48"}, {"aliyun.com/gpu-count", "2"})});
    store_put_quota(extender.store,
                    &(struct resource_quota_view){
                        .ns = "ml", .name = "q", .elastic = true, .max = PAIRS({GPUS, "1"})});
    for (size_t i = 0; i < G_N_ELEMENTS(holders); i++) {
        expect_filter(third, "thirds", "thirds", "quota's max");
        hold_a_third(holders[i]);
    }
    expect_filter(third, "thirds", "", "quota's max");
}
END_TEST

/* Some resources are counted in bytes: a few cards are many units. */
START_TEST(units_may_be_bytes)
{
    const char *key = "koordinator.sh/gpu-memory";
    const int64_t size = INT64_C(160) << 30;

    begin();
    store_put_quota(extender.store,
                    &(struct resource_quota_view){
                        .ns = "ml", .name = "q", .elastic = true, .max = PAIRS({key, "160Gi"})});
    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note, NULL);
    ck_assert_str_eq(seen.key, key);
    ck_assert_int_eq(seen.max, size * 1000);
    ck_assert_double_eq(elastic_units(seen.key, seen.max), (double)size);
}
END_TEST

/* As many cards together have more than any one pod. */
START_TEST(a_limit_in_bytes_may_be_of_many_cards)
{
    begin();
    store_put_quota(extender.store, &(struct resource_quota_view){
                                        .ns = "ml",
                                        .name = "q",
                                        .elastic = true,
                                        .max = PAIRS({"koordinator.sh/gpu-memory", "320Ti"})});
    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note, NULL);
    ck_assert_double_eq(elastic_units(seen.key, seen.max), (double)(INT64_C(320) << 40));
}
END_TEST

START_TEST(who_loses_the_booking_waits_again)
{
    begin();
    tell("p", NULL);
    book("p", ALLOCATION_ASSUMED);
    expect(1, 0);
    ledger_drop(store_ledger(extender.store), "p");
    expect(0, 1);
    book("p", ALLOCATION_ASSUMED);
    ledger_drop(store_ledger(extender.store), "p");
    expect(0, 1);
}
END_TEST

/* A booking from before a restart is known before the watch shows the pod. */
START_TEST(who_is_booked_before_it_is_seen_counts_once)
{
    begin();
    book("p", ALLOCATION_UNKNOWN);
    expect(1, 0);
    tell("p", NULL);
    expect(1, 0);
    ledger_drop(store_ledger(extender.store), "p");
    expect(0, 1);
}
END_TEST

/* --- who asks for as much as can be said ------------------------------------------------------- */

#define GREEDY 4200 /* more than go into 64 bits together */

struct lent {
    const char *ns, *quota;
    struct elastic_count count;
};

static void note_lent(const struct elastic_count *count, void *data)
{
    struct lent *lent = data;

    if (g_str_equal(count->ns, lent->ns) && g_strcmp0(count->quota, lent->quota) == 0 &&
        g_str_equal(count->key, MEM))
        lent->count = *count;
}

static struct elastic_count count_of(const char *ns, const char *quota)
{
    struct lent lent = {.ns = ns, .quota = quota};

    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note_lent, &lent);
    ck_assert_ptr_nonnull(lent.count.key);
    return lent.count;
}

/* `node` NULL: they wait. */
static void tell_greedy(int n, const char *node)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *uid = g_strdup_printf("greedy-%d", i);
        store_apply_pod(
            extender.store,
            &(struct pod_view){
                .ns = "ml",
                .name = uid,
                .uid = uid,
                .node_name = node,
                .phase = node ? "Running" : "Pending",
                .annotations =
                    PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}, {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                          {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}),
                CONTAINERS({.name = "c", .limits = PAIRS({MEM, "9223372036854775807"})}),
            });
    }
}

static void begin_greedy(const struct quota_tree_view *in)
{
    static const char *const spaces[] = {"ml", "other"};

    begin();
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "down",
                            .capacity = PAIRS({MEM, "40"}, {"aliyun.com/gpu-count", "4"})});
    for (size_t i = 0; i < G_N_ELEMENTS(spaces); i++)
        store_put_quota(extender.store, &(struct resource_quota_view){.ns = spaces[i],
                                                                      .name = "own",
                                                                      .elastic = true,
                                                                      .min = PAIRS({MEM, "20"}),
                                                                      .max = PAIRS({MEM, "60"}),
                                                                      .in = *in});
}

/* Of both as if it were one pod: others are lent what they would be, and it is kept its own min; nothing, where
 * they wait for what no card has. */
static void expect_as_of_one(const char *quota, const char *node)
{
    tell_greedy(1, node);
    const struct elastic_count own = count_of("ml", quota), other = count_of("other", quota);
    ck_assert_int_eq(own.waiting, 0);
    ck_assert(node ? own.used > 0 : own.used == 0);
    tell_greedy(GREEDY, node);
    const struct elastic_count now = count_of("ml", quota);
    ck_assert_int_eq(now.waiting, 0);
    ck_assert(node ? now.used > own.used : now.used == 0);
    ck_assert_int_eq(now.lendable, own.lendable);
    if (!node)
        ck_assert_int_eq(count_of("other", quota).lendable, other.lendable);
    for (int i = 0; i < GREEDY; i++) {
        g_autofree char *uid = g_strdup_printf("greedy-%d", i);
        store_delete_pod(extender.store, uid);
    }
    ck_assert_int_eq(count_of("ml", quota).waiting, 0);
    ck_assert_int_eq(count_of("ml", quota).used, 0);
}

START_TEST(however_much_pods_ask_for_sums_do_not_wrap)
{
    begin_greedy(&(struct quota_tree_view){.inside = _i % 2, .tree = ""});
    expect_as_of_one(_i % 2 ? "own" : NULL, _i / 2 ? "down" : NULL);
}
END_TEST

/* --- quotas of a tree ------------------------------------------------------------------------- */

static void await(const char *uid, const char *quota)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = uid,
                           .uid = uid,
                           .phase = "Pending",
                           .labels = PAIRS({"quota.scheduling.koordinator.sh/name", quota}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
}

static void note_tree(const struct elastic_count *count, void *data)
{
    int64_t *used = data;

    if (g_strcmp0(count->quota, "r") == 0)
        used[0] = count->used;
    if (g_strcmp0(count->quota, "s") == 0)
        used[1] = count->used;
}

static void expect_used(int in_r, int in_s)
{
    int64_t used[2] = {-1, -1};

    elastic_quotas_each(quotas_elastic(store_quotas(extender.store)), store_ledger(extender.store),
                        note_tree, used);
    ck_assert_int_eq(used[0], in_r * SHARE_UNIT);
    ck_assert_int_eq(used[1], in_s * SHARE_UNIT);
}

/* Its author changes the label between filter and bind. Others' pods are not counted anew for it. */
START_TEST(who_is_booked_and_asks_for_another_quota_counts_there)
{
    static const char *const quotas[] = {"r", "s"};

    begin();
    for (size_t i = 0; i < G_N_ELEMENTS(quotas); i++)
        store_put_quota(extender.store,
                        &(struct resource_quota_view){.ns = "ml",
                                                      .name = quotas[i],
                                                      .elastic = true,
                                                      .min = PAIRS({GPUS, "2"}),
                                                      .in = {.inside = true, .tree = ""}});
    await("p", "r");
    book("p", ALLOCATION_ASSUMED);
    expect_used(1, 0);
    await("p", "s");
    expect_used(0, 1);
    store_delete_pod(extender.store, "p");
    expect_used(0, 0);
}
END_TEST

START_TEST(a_change_of_quotas_counts_anew)
{
    begin();
    tell("p", NULL);
    tell("q", NULL);
    book("p", ALLOCATION_ASSUMED);
    expect(1, 1);
    store_put_quota(extender.store,
                    &(struct resource_quota_view){
                        .ns = "ml", .name = "q", .elastic = true, .min = PAIRS({GPUS, "3"})});
    expect(1, 1);
    book("q", ALLOCATION_ASSUMED);
    expect(2, 0);
}
END_TEST

/* What a pod holds is not kept for it once more: the rest is lent. */
START_TEST(what_is_booked_is_not_kept_as_well)
{
    const char *body =
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"10\"}}}]}},\"NodeNames\":[\"n\"]}";

    begin();
    store_put_quota(extender.store,
                    &(struct resource_quota_view){
                        .ns = "other", .name = "q", .elastic = true, .min = PAIRS({GPUS, "0"})});
    tell("p", NULL);
    book("p", ALLOCATION_ASSUMED);
    expect_filter(body, "n", "n", "would borrow");
    tell("q", NULL);
    expect_filter(body, "n", "", "would borrow");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elastic quotas");
    TCase *counting = tcase_create("counting");

    tcase_add_checked_fixture(counting, NULL, teardown);
    tcase_add_loop_test(counting, a_booking_counts_once, 0, 4);
    tcase_add_test(counting, the_memory_of_whole_cards_counts_where_it_is_named);
    tcase_add_test(counting, what_fits_on_a_card_counts_as_a_card);
    tcase_add_test(counting, units_may_be_bytes);
    tcase_add_test(counting, a_limit_in_bytes_may_be_of_many_cards);
    tcase_add_loop_test(counting, however_much_pods_ask_for_sums_do_not_wrap, 0, 4);
    tcase_add_test(counting, three_thirds_are_a_card_to_whoever_may_have_one);
    tcase_add_test(counting, who_loses_the_booking_waits_again);
    tcase_add_test(counting, who_is_booked_before_it_is_seen_counts_once);
    tcase_add_test(counting, who_is_booked_and_asks_for_another_quota_counts_there);
    tcase_add_test(counting, a_change_of_quotas_counts_anew);
    tcase_add_test(counting, what_is_booked_is_not_kept_as_well);
    suite_add_tcase(suite, counting);
    return suite_run(suite);
}
