/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What filter remembers of nodes it does not use for another question: by another policy, with another
 * demand, or of another namespace where that counts.
 */
#include "hami_words.h"
#include "suite.h"

#include "base/log.h"
#include "core/ledger.h"
#include "queue/books/verdicts.h"
#include "store/feasibility.h"
#include "verbs/extender.h"
#include "gate/gate.h"

#include <string.h>

#define UNITS "aliyun.com/gpu-mem"
#define CARDS "aliyun.com/gpu-count"
#define KEYS                                                                                       \
    "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000\n"         \
    "adopted 1000\n"

static struct extender extender;
static struct seals *seals;

/* "hami" has two cards, and "units" two of 10 units. */
static void begin(struct seals *of_pods)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){
        .store = store_new(&(struct store_options){
            .policy = policy_find("binpack"), .patience_ms = 60000, .seals = of_pods})};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "hami",
                            .capacity = PAIRS({GPU, "20"}),
                            .allocatable = PAIRS({GPU, "20"}),
                            .annotations =
                                PAIRS({REGISTERED, "GPU-a,10,10000,100,NVIDIA-Tesla T4,0,true:"
                                                   "GPU-b,10,10000,100,NVIDIA-Tesla T4,0,true:"})});
    store_apply_node(extender.store,
                     &(struct node_view){.name = "units",
                                         .capacity = PAIRS({UNITS, "20"}, {CARDS, "2"}),
                                         .allocatable = PAIRS({UNITS, "20"}, {CARDS, "2"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void setup(void)
{
    begin(NULL);
}

static void teardown(void)
{
    store_free(extender.store);
}

static void setup_sealed(void)
{
    seals = seals_new();
    seals_set(seals, keyring_parse(KEYS, NULL));
    begin(seals);
}

static void teardown_sealed(void)
{
    teardown();
    seals_free(seals);
}

/* What filter says of the node to a new pod with those limits of its containers: "" or the reason. */
static char *ask(const char *ns, const char *node, const char *containers)
{
    static int n_asked;
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf("{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":"
                                            "\"%s\",\"uid\":\"asked-%d\"},\"spec\":{"
                                            "\"containers\":[%s]}},\"NodeNames\":[\"%s\"]}",
                                            ns, n_asked++, containers, node);

    extender_filter(&extender, body, strlen(body), reply);
    cJSON *json = cJSON_Parse(reply->str);
    ck_assert_ptr_nonnull(json);
    const cJSON *why = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "FailedNodes"), node);
    if (!why)
        why = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "FailedAndUnresolvableNodes"), node);
    char *text = g_strdup(why ? why->valuestring : cJSON_GetObjectItem(json, "Error")->valuestring);
    cJSON_Delete(json);
    return text;
}

static void expect(const char *ns, const char *node, const char *containers, enum reason reason)
{
    g_autofree char *text = ask(ns, node, containers);

    ck_assert_str_eq(text, reason == REASON_NONE ? "" : reason_info(reason)->text);
}

/* --- policies ------------------------------------------------------------------------------- */

static void hold(const char *uid, const char *devices, const char *memory, const char *cores)
{
    store_apply_pod(
        extender.store,
        &(struct pod_view){
            .ns = "ml",
            .name = uid,
            .uid = uid,
            .node_name = "hami",
            .phase = "Running",
            .started = true,
            .annotations = PAIRS({"hami.io/vgpu-node", "hami"}, {ALLOCATED, devices},
                                 {"hami.io/bind-phase", "success"}),
            CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, memory}, {CORES, cores})})});
}

#define LIMITS(name, limits) "{\"name\":\"" name "\",\"resources\":{\"limits\":{" limits "}}}"

/* The second container fits on neither card. Where the first one is tried first, it is cores that are
 * missing for it beside that one, or memory. */
START_TEST(a_policy_has_verdicts_of_its_own)
{
    static const char two[] = LIMITS("small", "\"" GPU "\":\"1\",\"" MEM "\":\"100\"") "," LIMITS(
        "large", "\"" GPU "\":\"1\",\"" MEM "\":\"8000\",\"" CORES "\":\"60\"");

    hold("a", "GPU-a,NVIDIA,2000,50:;", "2000", "50");
    hold("b", "GPU-b,NVIDIA,3000,0:;", "3000", "0");
    for (int i = 0; i < 2; i++) {
        store_set_policy(extender.store, policy_find("binpack"), 60000);
        expect("ml", "hami", two, REASON_INSUFFICIENT_CORE);
        expect("ml", "hami", two, REASON_INSUFFICIENT_CORE);
        store_set_policy(extender.store, policy_find("spread"), 60000);
        expect("ml", "hami", two, REASON_INSUFFICIENT_MEMORY);
    }
}
END_TEST

/* --- seals ---------------------------------------------------------------------------------- */

static const char three_units[] = LIMITS("c", "\"" UNITS "\":\"3\"");

/* Five pods of a namespace, whose cards nobody knows. */
static void list_unsealed(void)
{
    store_list_begin(extender.store, FEED_PODS);
    for (int i = 0; i <= 4; i++) {
        g_autofree char *uid = g_strdup_printf("u%d", i);
        store_apply_pod(
            extender.store,
            &(struct pod_view){.ns = "ml",
                               .name = uid,
                               .uid = uid,
                               .node_name = "units",
                               .phase = "Running",
                               CONTAINERS({.name = "c", .limits = PAIRS({UNITS, "1"})})});
    }
    store_list_end(extender.store, FEED_PODS);
}

START_TEST(what_is_closed_to_one_namespace_is_not_to_another)
{
    list_unsealed();
    for (int i = 0; i < 2; i++) {
        expect("ml", "units", three_units, gate_reason_find("unsealed"));
        expect("web", "units", three_units, REASON_NONE);
    }
}
END_TEST

/* --- the table ------------------------------------------------------------------------------ */

static struct request *request_of(const char *units)
{
    const struct pod_view view = {.ns = "ml",
                                  .name = "p",
                                  .uid = "p",
                                  CONTAINERS({.name = "c", .limits = PAIRS({UNITS, units})})};

    return dialect_read_request(&view, &(struct dialect_options){0}, NULL);
}

static struct demand *demand_of(struct ledger *ledger, const struct request *request)
{
    struct demand *demand = demand_new();

    for (int i = 0; i < 100; i++)
        demand_note(demand, request);
    demand_settle(demand, ledger);
    return demand;
}

static struct node_book *open_book(struct node_books *verdicts, struct ledger *ledger,
                                   const struct admission_query *query)
{
    return node_books_open(verdicts, ledger, query->request, query->policy, query->demand);
}

static void note(struct node_books *verdicts, struct ledger *ledger,
                 const struct admission_query *query, enum reason reason)
{
    struct node_cursor cursor = {0};

    ledger_next_node(ledger, &cursor, "units", NODE_SUMMARY);
    verdict_note(open_book(verdicts, ledger, query), &cursor, &(struct node_verdict){reason, 0});
}

/* REASON_N: nothing is remembered. */
static enum reason find_verdict(struct node_books *verdicts, struct ledger *ledger,
                                const struct admission_query *query)
{
    struct node_cursor cursor = {0};
    struct node_verdict verdict;

    ledger_next_node(ledger, &cursor, "units", NODE_SUMMARY);
    return verdict_find(open_book(verdicts, ledger, query), &cursor, &verdict) ? verdict.reason
                                                                               : REASON_N;
}

START_TEST(each_part_of_the_key_counts)
{
    struct ledger *ledger = store_lock(extender.store);
    struct node_books *verdicts = verdicts_new();
    g_autoptr(request) request = request_of("3"), other = request_of("4");
    g_autoptr(demand) demand = demand_of(ledger, request);
    const struct admission_query queries[] = {
        {.request = request, .policy = &policies[0]},
        {.request = other, .policy = &policies[0]},
        {.request = request, .policy = &policies[1]},
        {.request = request, .policy = &policies[0], .demand = demand},
    };

    ck_assert_uint_gt(demand_version(demand), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
        ck_assert_int_eq(find_verdict(verdicts, ledger, &queries[i]), REASON_N);
        note(verdicts, ledger, &queries[i], (enum reason)i);
        for (size_t j = 0; j <= i; j++)
            ck_assert_int_eq(find_verdict(verdicts, ledger, &queries[j]), j);
    }
    node_books_free(verdicts);
    store_unlock(extender.store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdicts");
    TCase *tests = tcase_create("verdicts"), *sealed = tcase_create("sealed");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_policy_has_verdicts_of_its_own);
    tcase_add_test(tests, each_part_of_the_key_counts);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(sealed, setup_sealed, teardown_sealed);
    tcase_add_test(sealed, what_is_closed_to_one_namespace_is_not_to_another);
    suite_add_tcase(suite, sealed);
    return suite_run(suite);
}
