/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which elastic quota a pod counts is known to whoever plays a file of a record, whatever its label says
 * by then. The live store tells all that it is given itself.
 */
#include "next_file.h"
#include "objects.h"

#include "quota/share_amounts.h"

#define LABEL "quota.scheduling.koordinator.sh/"

static bool loses;

static uint64_t give_number(struct observer *observer)
{
    return loses ? 0 : ++number;
}

static void take(struct observer *observer, const struct observation *what)
{
    struct record *record = record_new(what);

    if (record)
        note(record);
}

static void add_quota(const char *name)
{
    store_put_quota(live,
                    &(struct resource_quota_view){.ns = "ml",
                                                  .name = name,
                                                  .elastic = true,
                                                  .min = PAIRS({"gpuledger.io/gpus", "1"}),
                                                  .labels = PAIRS({LABEL "is-parent", "false"}),
                                                  .in = {.inside = true, .tree = ""}});
}

static void show_node(const char *name)
{
    store_apply_node(
        live, &(struct node_view){.name = name,
                                  .capacity = PAIRS({MEM, "10"}, {"aliyun.com/gpu-count", "1"})});
}

/* `recorded`: a file begins with the first line. */
static void begin_with(bool recorded)
{
    static struct observer observer = {give_number, take};

    setup_with((struct store_options){.patience_ms = 60000, .elastic_quotas = true});
    loses = false;
    store_set_observer(live, &observer);
    if (recorded)
        begin_file();
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(live, feed);
    show_node("n1");
    show_node("n2");
    add_quota("a");
    add_quota("b");
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(live, feed);
}

static void begin(void)
{
    begin_with(false);
}

static void begin_recorded(void)
{
    begin_with(true);
}

/* Of "u"; by which key it was made nobody asks. */
static const char seal[] =
    "v1:0000000a:0000000000000000000000000000000000000000000000000000000000000000:"
    "{\"settled\":true,\"booking\":{\"uid\":\"u\",\"namespace\":\"ml\",\"name\":\"u\","
    "\"node\":\"n1\",\"dialect\":\"gpushare\",\"amount\":2,\"time\":\"1\",\"shares\":["
    "{\"memory\":2,\"units\":true,\"card\":0,\"container\":0,\"exclusive\":false}]}}";

/* `node` NULL: it waits; `quota` NULL: it has no such label. */
static void tell_pod(const char *uid, const char *node, const char *quota, enum trust trust)
{
    struct string_pair label = {LABEL "name", (char *)quota};
    const struct pod_view view = {.ns = "ml",
                                  .name = uid,
                                  .uid = uid,
                                  .node_name = node,
                                  .phase = node ? "Running" : "Pending",
                                  .annotations = trust == TRUST_SEAL
                                                     ? PAIRS({SEAL_ANNOTATION, seal})
                                                     : PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                  .labels = {&label, quota != NULL},
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, "2"})})};

    store_set_trust(live, trust);
    store_apply_pod(live, &view);
    store_set_trust(live, TRUST_ANNOTATIONS);
}

static void note_used(const struct elastic_count *count, void *data)
{
    g_string_append_printf(data, "%s=%d ", count->quota, (int)share_thousandths(count->used));
}

static char *used_of(struct store *store)
{
    GString *text = g_string_new(NULL);
    struct ledger *ledger = store_lock(store);

    elastic_quotas_each(quotas_elastic(store_quotas(store)), ledger, note_used, text);
    store_unlock(store);
    return g_string_free(text, FALSE);
}

static char *ledger_of(struct store *store)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    record_ledger_encode(&writer, store_lock(store), NULL, store_elastic_quotas(store));
    store_unlock(store);
    return g_string_free(text, FALSE);
}

static void expect(const char *used)
{
    struct store *played = replay_store(next_file);
    g_autofree char *here = used_of(live), *there = used_of(played);
    g_autofree char *held = ledger_of(live), *holds = ledger_of(played);

    ck_assert_str_eq(here, used);
    ck_assert_str_eq(there, used);
    ck_assert_str_eq(holds, held);
}

static void tell_edited_pods(void)
{
    tell_pod("u", NULL, "b", TRUST_ANNOTATIONS);
    tell_pod("u", NULL, "a", TRUST_ANNOTATIONS);
    tell_pod("u", "n1", "a", TRUST_ANNOTATIONS);
    tell_pod("u", "n1", "b", TRUST_ANNOTATIONS); /* too late */
    tell_pod("v", "n1", NULL, TRUST_ANNOTATIONS);
    tell_pod("v", "n1", "b", TRUST_ANNOTATIONS);
}

/* Those who come later count by their labels. */
static void expect_known(void)
{
    begin_file();
    expect("a=400 b=0 ");
    tell_pod("w", "n2", "b", TRUST_ANNOTATIONS);
    tell_pod("v", "n1", "b", TRUST_ANNOTATIONS);
    expect("a=400 b=200 ");
}

START_TEST(a_file_that_goes_on_knows_where_pods_count)
{
    tell_edited_pods();
    expect_known();
}
END_TEST

/* Lines that were lost are those that showed the pods being bound. */
START_TEST(a_record_that_begins_anew_knows_it)
{
    loses = true;
    tell_edited_pods();
    loses = false;
    record_state_lose(state);
    store_list_begin(live, FEED_PODS);
    tell_pod("u", "n1", "b", TRUST_ANNOTATIONS);
    tell_pod("v", "n1", "b", TRUST_ANNOTATIONS);
    if (_i == 0)
        store_list_end(live, FEED_PODS);
    expect_known();
}
END_TEST

/* Of a pod whose seal comes back nothing counts that was recorded of it before. */
START_TEST(a_seal_that_comes_back_changes_nothing)
{
    tell_pod("u", "n1", "a", TRUST_NOTHING);
    tell_pod("u", "n1", "b", TRUST_SEAL);
    if (_i == 1)
        tell_pod("u", "n1", "a", TRUST_SEAL);
    begin_file();
    expect("a=200 b=0 ");
}
END_TEST

/* Whether filter lets another pod of the quota pass. */
static bool passes(struct extender *extender)
{
    static const char body[] =
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\",\"labels\":{"
        "\"" LABEL
        "name\":\"a\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"2\"}}}]}},\"NodeNames\":[\"n1\"]}";
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(extender, body, strlen(body), reply);
    return strstr(reply->str, "\"NodeNames\":[\"n1\"]") != NULL;
}

/* A decision that was made before all was counted is made again as it was, though a replay counts at once. */
START_TEST(what_was_not_counted_yet_is_not_counted_again)
{
    struct extender extender = {.store = live};

    ck_assert(passes(&extender));
    quotas_set_most(store_quotas(live), 1);
    tell_pod("u", "n1", "a", TRUST_ANNOTATIONS);
    tell_pod("v", "n2", "a", TRUST_ANNOTATIONS);
    ck_assert(!passes(&extender));
    ck_assert(passes(&extender));
    const struct replay_summary *summary = replay_summary(next_file);
    ck_assert_uint_eq(summary->compared, 3);
    ck_assert_uint_eq(summary->different, 0);
    expect("a=400 b=0 ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recorded quotas");
    TCase *tests = tcase_create("recorded quotas");

    tcase_add_checked_fixture(tests, begin, teardown);
    tcase_add_test(tests, a_file_that_goes_on_knows_where_pods_count);
    tcase_add_loop_test(tests, a_record_that_begins_anew_knows_it, 0, 2);
    tcase_add_loop_test(tests, a_seal_that_comes_back_changes_nothing, 0, 2);
    suite_add_tcase(suite, tests);
    TCase *recorded = tcase_create("recorded");
    tcase_add_checked_fixture(recorded, begin_recorded, teardown);
    tcase_add_test(recorded, what_was_not_counted_yet_is_not_counted_again);
    suite_add_tcase(suite, recorded);
    return suite_run(suite);
}
