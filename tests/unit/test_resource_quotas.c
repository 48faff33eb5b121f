/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces have as much of their cards as their ResourceQuotas say, by HAMi's keys.
 */
#include "core/ledger.h"
#include "objects.h"
#include "quota/resources/left_out.h"
#include "quota_extender.h"
#include "suite.h"

#define GPU "nvidia.com/gpu"
#define MEM "nvidia.com/gpumem"
#define PERCENT "nvidia.com/gpumem-percentage"
#define CORES "nvidia.com/gpucores"
#define LIMIT_MEM "limits.nvidia.com/gpumem"
#define LIMIT_CORES "limits.nvidia.com/gpucores"
#define LEAVES "ResourceQuota leaves less"

static void add_node(const char *name, const char *mib)
{
    g_autofree char *text = g_strdup_printf(
        "GPU-%s-0,10,%s,100,T4,0,true,0,hami-core:GPU-%s-1,10,%s,100,T4,0,true,1,hami-core:", name,
        mib, name, mib);

    store_apply_node(extender.store,
                     &(struct node_view){
                         .name = name,
                         .annotations = PAIRS({"hami.io/node-nvidia-register", text}),
                         .allocatable = PAIRS({GPU, "20"})});
}

#define SET_QUOTA(name_, ...)                                                                      \
    store_put_quota(extender.store, &(struct resource_quota_view){                                 \
                                        .ns = "ml", .name = name_, .hard = PAIRS(__VA_ARGS__)})

static void begin_with(bool resource_quotas, int64_t factor)
{
    extender = (struct extender){
        .store = store_new(&(struct store_options){.patience_ms = 60000,
                                                   .dialects.hami_memory_factor = factor,
                                                   .resource_quotas = resource_quotas}),
    };
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    add_node("small", "10000");
    add_node("large", "40000");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void begin(bool resource_quotas)
{
    begin_with(resource_quotas, 0);
}

/* `promised` as the annotation has it. */
static void hold(const char *uid, const char *ns, const char *promised,
                 const struct container_view *containers, size_t n)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){
                        .ns = ns,
                        .name = uid,
                        .uid = uid,
                        .node_name = "large",
                        .phase = "Running",
                        .containers = containers,
                        .n_containers = n,
                        .annotations = PAIRS({"hami.io/vgpu-node", "large"},
                                             {"hami.io/bind-phase", "success"},
                                             {"hami.io/vgpu-devices-allocated", promised})});
}

/* One container, with the limits that the text has: "UUID,NVIDIA,MiB,percent:;". */
static void hold_one(const char *uid, const char *ns, const char *promised)
{
    g_auto(GStrv) fields = g_strsplit(promised, ",", 4);
    g_autofree char *cores = g_strndup(fields[3], strcspn(fields[3], ":"));
    const struct container_view container = {
        .name = "c", .limits = PAIRS({GPU, "1"}, {MEM, fields[2]}, {CORES, cores})};

    hold(uid, ns, promised, &container, 1);
}

/* Which of the two nodes would take a pod with such limits: "small,large". */
static void expect(const char *ns, const char *limits, const char *wanted)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{%s}}}]}},"
        "\"NodeNames\":[\"small\",\"large\"]}",
        ns, limits);

    expect_filter(body, "small,large", wanted, LEAVES);
}

static void expect_closed(const char *ns, const char *limits, bool closed)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{%s}}}]}},"
        "\"NodeNames\":[\"small\"]}",
        ns, limits);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg((strstr(reply->str, "cannot be kept") != NULL) == closed, "%s", reply->str);
    g_string_free(reply, TRUE);
}

#define ONE "\"" GPU "\":\"1\","
#define MIBS(n) ONE "\"" MEM "\":\"" n "\""
#define CORE(n) MIBS("1") ",\"" CORES "\":\"" n "\""

/* Both in the unit that pods ask in, and by what a container runs with. */
START_TEST(a_factor_is_that_of_limits_as_well)
{
    begin_with(true, 1000);
    SET_QUOTA("q", {LIMIT_MEM, "8"}, {LIMIT_CORES, "100"});
    expect("ml", MIBS("8"), "small,large");
    expect("ml", MIBS("9"), "");
    hold("a", "ml", "GPU-large-0,NVIDIA,3000,60:;",
         &(const struct container_view){.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "2"})}, 1);
    expect("ml", MIBS("5"), "small,large");
    expect("ml", MIBS("6"), "");
}
END_TEST

/* Whom nothing holds to what it asks for. */
START_TEST(who_switches_limits_off_uses_a_whole_card)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "41000"});
    hold("a", "ml", "GPU-large-0,NVIDIA,1,0:;",
         &(const struct container_view){
             .name = "c", .hook = HOOK_OFF, .limits = PAIRS({GPU, "1"}, {MEM, "1"})},
         1);
    expect("ml", MIBS("1000"), "small,large");
    expect("ml", MIBS("1001"), "");
}
END_TEST

START_TEST(memory_and_compute_are_limited)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"}, {LIMIT_CORES, "100"}, {"requests." GPU, "1"});
    expect("ml", MIBS("8000"), "small,large");
    expect("ml", MIBS("8001"), "");
    expect("other", MIBS("8001"), "small,large");
    hold_one("a", "ml", "GPU-large-0,NVIDIA,3000,60:;");
    hold_one("b", "other", "GPU-large-0,NVIDIA,3000,30:;");
    expect("ml", MIBS("5000"), "small,large");
    expect("ml", MIBS("5001"), "");
    expect("ml", CORE("40"), "small,large");
    expect("ml", CORE("41"), "");
    expect("ml", "\"" GPU "\":\"2\",\"" MEM "\":\"2501\"", "");
    store_delete_pod(extender.store, "a");
    expect("ml", MIBS("8000"), "small,large");
}
END_TEST

/* As the API server does: an exceeded amount refuses those that want more of it, and no others. */
START_TEST(an_overdrawn_amount_concerns_only_those_that_want_some)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"}, {LIMIT_CORES, "50"});
    hold_one("a", "ml", "GPU-large-0,NVIDIA,3000,60:;");
    expect("ml", MIBS("5000"), "small,large");
    expect("ml", MIBS("5001"), "");
    expect("ml", CORE("1"), "");
}
END_TEST

START_TEST(a_percentage_is_of_the_card_that_it_will_be)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "10000"});
    expect("ml", ONE "\"" PERCENT "\":\"25\"", "small,large");
    expect("ml", ONE "\"" PERCENT "\":\"26\"", "small");
    expect("ml", "\"" GPU "\":\"1\"", "small"); /* by default, all of it */
    hold_one("a", "ml", "GPU-large-0,NVIDIA,1,0:;");
    expect("ml", "\"" GPU "\":\"1\"", "");
}
END_TEST

START_TEST(pods_whose_binding_is_under_way_count)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"});
    hold_one("a", "ml", "GPU-large-0,NVIDIA,3000,0:;");
    struct allocation *held = ledger_get(store_lock(extender.store), "a");
    held->state = ALLOCATION_ASSUMED;
    store_unlock(extender.store);
    expect("ml", MIBS("5001"), "");
}
END_TEST

START_TEST(each_quota_counts)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"});
    SET_QUOTA("r", {LIMIT_MEM, "6000"}, {LIMIT_CORES, "0"});
    expect("ml", MIBS("6001"), "");
    expect("ml", CORE("100"), "small,large"); /* 0 is no limit */
    SET_QUOTA("r", {LIMIT_MEM, "7k"});
    expect("ml", MIBS("7000"), "small,large");
    expect("ml", MIBS("7001"), "");
    SET_QUOTA("r", {LIMIT_MEM, "much"}); /* what it said before counts */
    expect("ml", MIBS("7001"), "");
    SET_QUOTA("r", {"pods", "7"});
    expect("ml", MIBS("7001"), "small,large");
    expect("ml", MIBS("8001"), "");
    store_drop_quota(extender.store, &(struct resource_quota_view){"other", "q"});
    expect("ml", MIBS("8001"), "");
    store_drop_quota(extender.store, &(struct resource_quota_view){"ml", "q"});
    expect("ml", MIBS("8001"), "small,large");
}
END_TEST

/* Who was refused is then looked at again (verbs/wake.h). */
START_TEST(changed_limits_may_be_room)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"});
    const uint64_t before = ledger_freed(store_lock(extender.store));
    store_unlock(extender.store);
    SET_QUOTA("q", {LIMIT_MEM, "8k"}, {"pods", "7"});
    ck_assert_uint_eq(ledger_freed(store_lock(extender.store)), before);
    store_unlock(extender.store);
    SET_QUOTA("q", {LIMIT_MEM, "9k"});
    const struct ledger *ledger = store_lock(extender.store);
    ck_assert_uint_gt(ledger_freed_on(ledger, ledger_node(ledger, "large")), before);
    store_unlock(extender.store);
}
END_TEST

START_TEST(one_that_a_list_does_not_name_is_gone)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "1"});
    SET_QUOTA("r", {LIMIT_MEM, "2"});
    store_list_begin(extender.store, FEED_RESOURCE_QUOTAS);
    SET_QUOTA("r", {LIMIT_MEM, "2"});
    expect("ml", MIBS("2"), "");
    const struct ledger *ledger = store_ledger(extender.store);
    const uint64_t before = ledger_freed(ledger);
    store_list_end(extender.store, FEED_RESOURCE_QUOTAS);
    ck_assert_uint_gt(ledger_freed_on(ledger, ledger_node(ledger, "large")), before);
    expect("ml", MIBS("2"), "small,large");
    expect("ml", MIBS("3"), "");
    store_list_begin(extender.store, FEED_RESOURCE_QUOTAS);
    SET_QUOTA("r", {LIMIT_MEM, "much"}); /* it is named, and what it said before counts */
    store_list_end(extender.store, FEED_RESOURCE_QUOTAS);
    expect("ml", MIBS("3"), "");
}
END_TEST

START_TEST(init_containers_come_before_the_others)
{
    const struct container_view containers[] = {
        {.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "1000"})},
        {.name = "d", .limits = PAIRS({GPU, "1"}, {MEM, "2000"})},
        {.name = "i", .init = true, .limits = PAIRS({GPU, "1"}, {MEM, "5000"})},
        {.name = "j", .init = true, .limits = PAIRS({GPU, "2"}, {MEM, "3000"})},
    };

    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"});
    /* 5000 and 2 x 3000 one after the other, then 1000 + 2000 together. */
    hold("a", "ml",
         "GPU-large-0,NVIDIA,5000,0:;GPU-large-0,NVIDIA,3000,0:GPU-large-1,NVIDIA,3000,0:;"
         "GPU-large-0,NVIDIA,1000,0:;GPU-large-1,NVIDIA,2000,0:;",
         containers, G_N_ELEMENTS(containers));
    expect("ml", MIBS("2000"), "small,large");
    expect("ml", MIBS("2001"), "");
}
END_TEST

START_TEST(a_copy_knows_the_same)
{
    begin(true);
    SET_QUOTA("q", {LIMIT_MEM, "8000"});
    struct store *copy = store_copy(extender.store);
    store_free(extender.store);
    extender.store = copy;
    expect("ml", MIBS("8001"), "");
}
END_TEST

START_TEST(without_the_option_there_are_none)
{
    begin(false);
    SET_QUOTA("q", {LIMIT_MEM, "1"});
    expect("ml", MIBS("8001"), "small,large");
}
END_TEST

START_TEST(they_are_waited_for_if_they_are_wanted)
{
    for (int wanted = 0; wanted < 2; wanted++) {
        g_autoptr(store) store =
            store_new(&(struct store_options){.resource_quotas = wanted == 1});
        for (int feed = 0; feed < FEED_N; feed++) {
            store_list_begin(store, feed);
            if (feed != FEED_RESOURCE_QUOTAS)
                store_list_end(store, feed);
        }
        ck_assert(store_is_synced(store) == (wanted == 0));
        g_autofree char *missing = store_unsynced(store);
        ck_assert_str_eq(missing, wanted ? "resourcequotas" : "");
        store_list_end(store, FEED_RESOURCE_QUOTAS);
        ck_assert(store_is_synced(store));
    }
}
END_TEST

/* Nothing is known of it: it lets nobody of its namespace pass, and others do. */
START_TEST(a_new_limit_that_cannot_be_read_lets_nothing_pass)
{
    static const char *const spaces[] = {"ml", "other"};

    begin(true);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            SET_QUOTA("new", {LIMIT_MEM, "much"});
        else
            SET_QUOTA("new", {LIMIT_MEM, "9999"});
        for (size_t i = 0; i < G_N_ELEMENTS(spaces); i++) {
            g_autofree char *body =
                g_strdup_printf("{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\","
                                "\"uid\":\"x\"},\"spec\":{"
                                "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" GPU
                                "\":\"1\",\"" MEM "\":\"100\"}}}]}},\"NodeNames\":[\"small\"]}",
                                spaces[i]);
            expect_filter(body, "small", round == 0 && i == 0 ? "" : "small", "cannot be kept");
        }
    }
}
END_TEST

/* 64 of a namespace are kept; it is closed for what the others limit, and no other namespace is. */
START_TEST(a_namespace_with_too_many_closes_itself_alone)
{
    begin(true);
    for (int i = 0; i <= RESOURCE_QUOTAS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("q%d", i);
        expect("ml", MIBS("100"), "small,large");
        SET_QUOTA(name, {LIMIT_MEM, "9999"});
    }
    for (int round = 0; round < 2; round++) {
        expect_closed("ml", MIBS("100"), true);
        expect_closed("other", MIBS("100"), false);
        SET_QUOTA("q64", {LIMIT_MEM, "9999"}); /* told of again */
    }
    store_drop_quota(extender.store, &(struct resource_quota_view){.ns = "ml", .name = "q3"});
    expect_closed("ml", MIBS("100"), false); /* the other has its place */
    SET_QUOTA("q64", {LIMIT_MEM, "50"});
    expect("ml", MIBS("100"), ""); /* and counts */
    SET_QUOTA("q65", {LIMIT_MEM, "9999"});
    expect_closed("ml", MIBS("10"), true);
    SET_QUOTA("q65", {LIMIT_MEM, "0"}); /* no limit */
    expect_closed("ml", MIBS("10"), false);
}
END_TEST

/* What was left out counts as it was told last, once another one goes, by a list or alone. */
START_TEST(another_one_takes_the_place_of_one_that_goes)
{
    begin(true);
    for (int i = 0; i < RESOURCE_QUOTAS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("q%02d", i);
        SET_QUOTA(name, {LIMIT_MEM, "9999"});
    }
    SET_QUOTA("r", {LIMIT_MEM, "9999"});
    SET_QUOTA("s", {LIMIT_MEM, "60"});
    SET_QUOTA("r", {LIMIT_MEM, "50"});
    expect_closed("ml", MIBS("10"), true);
    SET_QUOTA("q00", {LIMIT_MEM, "0"});    /* limits nothing */
    expect_closed("ml", MIBS("10"), true); /* "s" is left */
    store_list_begin(extender.store, FEED_RESOURCE_QUOTAS);
    for (int i = 2; i < RESOURCE_QUOTAS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("q%02d", i);
        SET_QUOTA(name, {LIMIT_MEM, "9999"});
    }
    SET_QUOTA("r", {LIMIT_MEM, "70"});
    SET_QUOTA("s", {LIMIT_MEM, "60"});
    store_list_end(extender.store, FEED_RESOURCE_QUOTAS);
    expect_closed("ml", MIBS("10"), false);
    expect("ml", MIBS("65"), "");
    store_drop_quota(extender.store, &(struct resource_quota_view){.ns = "ml", .name = "s"});
    expect("ml", MIBS("65"), "small,large");
}
END_TEST

START_TEST(what_a_dialect_has_no_key_for_is_not_left_out)
{
    g_autoptr(GHashTable) spaces = left_out_new();
    g_autoptr(GArray) limits = g_array_new(FALSE, FALSE, 1);
    const struct left_out quota = {"ml", "q", 1, limits};
    const char *const keys[] = {LIMIT_MEM, NULL};

    left_out_add(spaces, &quota, keys);
    ck_assert(left_out_has(spaces, "ml", LIMIT_MEM));
    ck_assert(!left_out_has(spaces, "ml", NULL));
}
END_TEST

/* More than have names: closed until a list has fewer. */
START_TEST(a_list_opens_a_namespace_with_too_many)
{
    begin(true);
    for (int i = 0; i < RESOURCE_QUOTAS_MAX + LEFT_OUT_MAX + 1; i++) {
        g_autofree char *name = g_strdup_printf("q%d", i);
        SET_QUOTA(name, {LIMIT_MEM, "9999"});
    }
    for (int i = 0; i < LEFT_OUT_MAX + 1; i++) {
        g_autofree char *name = g_strdup_printf("q%d", RESOURCE_QUOTAS_MAX + i);
        store_drop_quota(extender.store, &(struct resource_quota_view){.ns = "ml", .name = name});
    }
    expect_closed("ml", MIBS("100"), true);
    store_list_begin(extender.store, FEED_RESOURCE_QUOTAS);
    SET_QUOTA("q1", {LIMIT_MEM, "9999"});
    store_list_end(extender.store, FEED_RESOURCE_QUOTAS);
    expect_closed("ml", MIBS("100"), false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resource_quotas");
    TCase *tcase = tcase_create("resource_quotas");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, memory_and_compute_are_limited);
    tcase_add_test(tcase, who_switches_limits_off_uses_a_whole_card);
    tcase_add_test(tcase, a_factor_is_that_of_limits_as_well);
    tcase_add_test(tcase, an_overdrawn_amount_concerns_only_those_that_want_some);
    tcase_add_test(tcase, a_percentage_is_of_the_card_that_it_will_be);
    tcase_add_test(tcase, pods_whose_binding_is_under_way_count);
    tcase_add_test(tcase, each_quota_counts);
    tcase_add_test(tcase, changed_limits_may_be_room);
    tcase_add_test(tcase, one_that_a_list_does_not_name_is_gone);
    tcase_add_test(tcase, init_containers_come_before_the_others);
    tcase_add_test(tcase, a_copy_knows_the_same);
    tcase_add_test(tcase, without_the_option_there_are_none);
    tcase_add_test(tcase, a_namespace_with_too_many_closes_itself_alone);
    tcase_add_test(tcase, another_one_takes_the_place_of_one_that_goes);
    tcase_add_test(tcase, what_a_dialect_has_no_key_for_is_not_left_out);
    tcase_add_test(tcase, a_list_opens_a_namespace_with_too_many);
    TCase *lists = tcase_create("lists");
    tcase_add_test(lists, they_are_waited_for_if_they_are_wanted);
    tcase_add_test(tcase, a_new_limit_that_cannot_be_read_lets_nothing_pass);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, lists);
    return suite_run(suite);
}
