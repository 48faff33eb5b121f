/* SPDX-License-Identifier: Apache-2.0 */
/* A group beside device plugins that serve one pod at a time: it begins when all of them take their pods, and
 * so is never left half behind one that is slow or silent. Looks of bind, without threads. */
#include "base/log.h"
#include "base/metrics.h"
#include "core/ledger.h"
#include "verbs/bind/attempt.h"
#include "verbs/extender.h"

#include "suite.h"

#include <string.h>

#define PATIENCE_MS 10000
#define TIMEOUT_MS 5000
#define PODS 4

static struct extender extender;
static struct moment moment;

static void put_node(const char *name)
{
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "40"},
                                           {"aliyun.com/gpu-count", "1"}};
    const struct string_pair labels[] = {{"name", name}};

    store_apply_node(
        extender.store,
        &(struct node_view){.name = name, .labels = {labels, 1}, .capacity = {capacity, 2}});
}

static void setup(void)
{
    const struct store_options options = {.policy = policy_find("binpack"),
                                          .patience_ms = PATIENCE_MS,
                                          .gangs = true,
                                          .silent = true};

    extender = (struct extender){.store = store_new(&options), .bind_timeout_ms = 1000};
    moment = (struct moment){.now_ns = 1700000000000000000, .now_ms = 1000000};
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        if (feed == FEED_NODES) {
            put_node("n0");
            put_node("n1");
            put_node("n2");
        }
        store_list_end(extender.store, (enum feed)feed);
    }
}

static void teardown(void)
{
    store_free(extender.store);
}

static void pass(int64_t ms)
{
    moment.now_ms += ms;
    moment.now_ns += ms * 1000000;
}

/* A pod of the group that runs on the node alone. */
static char *member_text(const char *name, const char *node, const char *says)
{
    return g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":{"
        "\"gang.scheduling.koordinator.sh/name\":\"g\",%s}},\"spec\":{\"nodeSelector\":{"
        "\"name\":\"%s\"},\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
        "\"aliyun.com/gpu-mem\":\"10\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
        name, name, says, node);
}

#define TWO "\"gang.scheduling.koordinator.sh/min-available\":\"2\""
#define THREE "\"gang.scheduling.koordinator.sh/min-available\":\"3\""

static void put(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    ck_assert(object && pod_view_decode(arena, object, &view, NULL));
    store_apply_pod(extender.store, &view);
}

static void put_member(const char *name, const char *node, const char *says)
{
    g_autofree char *text = member_text(name, node, says);

    put(text);
}

/* A pod of the same size that the plugin has yet to serve, or has. */
static void put_single(const char *name, const char *node, bool served)
{
    g_autofree char *text = g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_POD\":\"10\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"%s\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":"
        "\"%" G_GINT64_FORMAT
        "\"}},\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"limits\":{\"aliyun.com/gpu-mem\":\"10\"}}}]},\"status\":{\"phase\":\"%s\"}}",
        name, name, served ? "true" : "false", (gint64)1700000000000000000, node,
        served ? "Running" : "Pending");

    put(text);
}

static void expect_filter(const char *name, const char *node, const char *says, const char *part)
{
    g_autofree char *pod = member_text(name, node, says);
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"%s\"]}", pod, node);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    ck_assert_msg(strstr(reply->str, part), "%s", reply->str);
}

/* A bind of each pod, and what its last look came to. */
static struct bound_one {
    struct bind_args args;
    struct attempt attempt;
    enum attempt_step step;
} bindings[PODS];

static void begin_bind(int i, const char *name, const char *node)
{
    struct bound_one *one = &bindings[i];

    one->args = (struct bind_args){name, "ml", name, node};
    one->attempt = (struct attempt){
        .args = &one->args, .send_until_ms = moment.now_ms + 20000, .card = CARD_UNKNOWN};
}

/* What the look comes to, and what is waited for or why not. */
static void expect_look(int i, enum attempt_step step, const char *why)
{
    struct bound_one *one = &bindings[i];
    g_autoptr(GError) error = NULL;
    struct moment now;
    struct ledger *ledger = store_decide(extender.store, &now);

    one->step = attempt_look(&one->attempt, extender.store, ledger, &now, &error);
    store_unlock(extender.store);
    const char *said = error ? error->message : reason_info(one->attempt.waits)->code;
    ck_assert_msg(one->step == step && (!why || strstr(said, why)), "%s: step %d, %s",
                  one->args.pod_name, (int)one->step, said);
}

static void conclude(int i)
{
    store_decide(extender.store, &moment);
    attempt_conclude(extender.store, bindings[i].args.pod_uid, BIND_RESULT_BOUND, &moment);
    store_unlock(extender.store);
}

static void clear(int n)
{
    for (int i = 0; i < n; i++)
        attempt_clear(&bindings[i].attempt);
}

static struct gang_row tell(const char *uid)
{
    struct gang_row row = {0};

    ck_assert(gangs_tell(store_gangs(extender.store), uid, &row));
    return row;
}

/* Two pods, on n0 and n1; filter has been asked and both binds have come. */
static void start_two(void)
{
    put_member("a", "n0", TWO);
    put_member("b", "n1", TWO);
    expect_filter("a", "n0", TWO, "\"NodeNames\":[\"n0\"]");
    expect_filter("b", "n1", TWO, "\"NodeNames\":[\"n1\"]");
    begin_bind(0, "a", "n0");
    begin_bind(1, "b", "n1");
    expect_look(0, ATTEMPT_WAIT_GROUP, "gang_waiting");
}

START_TEST(beside_a_slow_plugin_none_is_bound)
{
    put_single("busy", "n1", false);
    start_two();
    expect_look(1, ATTEMPT_WAIT_GROUP, "gang_plugin");
    expect_look(0, ATTEMPT_WAIT_GROUP, "gang_plugin");
    ck_assert_uint_eq(tell("a").held, 2);
    ck_assert_uint_eq(tell("a").behind, 1);
    put_single("busy", "n1", true);
    expect_look(1, ATTEMPT_SEND, NULL);
    expect_look(0, ATTEMPT_SEND, NULL);
    clear(2);
}
END_TEST

/* Whichever looks first finds that both may go. */
START_TEST(who_waits_elsewhere_finds_the_plugin_free)
{
    put_single("busy", "n1", false);
    start_two();
    expect_look(1, ATTEMPT_WAIT_GROUP, "gang_plugin");
    put_single("busy", "n1", true);
    expect_look(0, ATTEMPT_SEND, NULL);
    ck_assert(gangs_take_news(store_gangs(extender.store)) == false); /* the others were told */
    expect_look(1, ATTEMPT_SEND, NULL);
    clear(2);
}
END_TEST

/* After its patience the place is given back, so that filter finds another node; nobody is bound. */
START_TEST(beside_a_silent_plugin_the_place_is_given_back)
{
    put_single("busy", "n1", false);
    start_two();
    expect_look(1, ATTEMPT_WAIT_GROUP, "gang_plugin");
    pass(PATIENCE_MS);
    expect_look(0, ATTEMPT_WAIT_GROUP, "gang_plugin");
    expect_look(1, ATTEMPT_FAILED, "still waits for its GPU");
    ck_assert_uint_eq(tell("a").held, 1);
    ck_assert_uint_eq(tell("a").bound, 0);
    clear(2);
}
END_TEST

/* Of three of which two are enough, the one behind a slow plugin does not keep the others. */
START_TEST(those_that_are_enough_go_without_the_one_behind)
{
    put_single("busy", "n1", false);
    put_member("c", "n2", TWO);
    start_two();
    expect_look(1, ATTEMPT_WAIT_GROUP, "gang_plugin");
    begin_bind(2, "c", "n2");
    expect_look(2, ATTEMPT_SEND, NULL);
    expect_look(0, ATTEMPT_SEND, NULL);
    conclude(0);
    conclude(2);
    expect_look(1, ATTEMPT_WAIT_NODE, "awaiting_assignment");
    ck_assert_uint_eq(tell("a").whole, true);
    clear(3);
}
END_TEST

/* Two on one node go one after the other; the second waits without being on its way. */
START_TEST(of_one_node_one_after_the_other)
{
    put_member("a", "n0", TWO);
    put_member("b", "n0", TWO);
    expect_filter("a", "n0", TWO, "\"NodeNames\":[\"n0\"]");
    begin_bind(0, "a", "n0");
    begin_bind(1, "b", "n0");
    expect_look(0, ATTEMPT_WAIT_GROUP, "gang_waiting");
    expect_look(1, ATTEMPT_SEND, NULL);
    conclude(1);
    expect_look(0, ATTEMPT_WAIT_NODE, "awaiting_assignment");
    ck_assert(tell("a").half);
    ck_assert_uint_eq(tell("a").behind, 1);
    clear(2);
}
END_TEST

/* ... and after the group's deadline it has no place any more, and the group is half by the audit's word. */
static void count_half(const struct gang_half *half, void *data)
{
    ck_assert_str_eq(half->uid, "b");
    ++*(int *)data;
}

START_TEST(the_deadline_ends_its_waiting)
{
    const char *says = TWO ",\"gang.scheduling.koordinator.sh/waiting-time\":\"5s\"";
    int n = 0;

    put_member("a", "n0", says);
    put_member("b", "n0", says);
    expect_filter("a", "n0", says, "\"NodeNames\":[\"n0\"]");
    begin_bind(0, "a", "n0");
    begin_bind(1, "b", "n0");
    expect_look(0, ATTEMPT_WAIT_GROUP, "gang_waiting");
    pass(3000);
    expect_look(1, ATTEMPT_SEND, NULL);
    conclude(1);
    gangs_expire(store_gangs(extender.store), moment.now_ms);
    expect_look(0, ATTEMPT_WAIT_NODE, "awaiting_assignment");
    gangs_each_half(store_gangs(extender.store), moment.now_ms, count_half, &n);
    ck_assert_int_eq(n, 0);
    pass(TIMEOUT_MS - 1);
    expect_look(0, ATTEMPT_WAIT_NODE, "awaiting_assignment");
    gangs_expire(store_gangs(extender.store), moment.now_ms);
    ck_assert_uint_eq(tell("a").held, 1); /* the deadline has begun anew with the first Binding */
    pass(2);
    gangs_each_half(store_gangs(extender.store), moment.now_ms, count_half, &n);
    ck_assert_int_eq(n, 1); /* though a bind waits */
    gangs_expire(store_gangs(extender.store), moment.now_ms);
    ck_assert_uint_eq(tell("a").held, 0);
    expect_look(0, ATTEMPT_FAILED, "is gone");
    clear(2);
}
END_TEST

/* Pods that come in between would keep the group from ever finding all plugins free. */
START_TEST(others_wait_behind_a_group_that_has_come)
{
    g_autofree char *text = member_text("s", "n0", "\"a\":\"b\"");

    put_single("busy", "n1", false);
    start_two();
    expect_look(1, ATTEMPT_WAIT_GROUP, "gang_plugin");
    g_autofree char *single = g_strdup(strstr(text, "\"spec\""));
    g_autofree char *pod = g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"web\",\"name\":\"s\",\"uid\":\"s\"},%s", single);
    put(pod);
    begin_bind(2, "s", "n0");
    bindings[2].args.pod_namespace = "web";
    expect_look(2, ATTEMPT_WAIT_NODE, "awaiting_turn");
    pass(GANG_FIRST_MS);
    expect_look(2, ATTEMPT_SEND, NULL); /* no longer: the group may never go */
    clear(3);
}
END_TEST

/* With 2 s, a node's plugin serves two of three pods, which need another node then. */
START_TEST(no_more_on_a_node_than_its_plugin_serves_in_time)
{
    const char *says = THREE ",\"gang.scheduling.koordinator.sh/waiting-time\":\"2s\"";

    put_member("a", "n0", says);
    put_member("b", "n0", says);
    put_member("c", "n0", says);
    expect_filter("a", "n0", says, "cannot take the pods of the pod's group in time");
    ck_assert_uint_eq(tell("a").held, 0);
    pass(1000);
    put_member("c", "n1", says);
    expect_filter("a", "n0", says, "\"NodeNames\":[\"n0\"]");
    ck_assert_uint_eq(tell("a").held, 3);
}
END_TEST

/* A list of the one kind of PodGroups says nothing of the other, which may have a group of the same name. */
START_TEST(a_list_ends_groups_of_its_own_kind)
{
    const enum feed feeds[] = {FEED_POD_GROUPS, FEED_NATIVE_POD_GROUPS};
    struct gangs *gangs = store_gangs(extender.store);
    struct gang_row row;

    for (int native = 0; native < 2; native++) {
        const struct pod_group_view group = {.ns = "ml", .name = "g", .native = native, .min = 2};
        store_apply_object(extender.store, feeds[native], &group);
    }
    for (int native = 1; native >= 0; native--) {
        store_list_begin(extender.store, feeds[native]);
        store_list_begin(extender.store, feeds[native]);
        store_list_end(extender.store, feeds[native]);
        ck_assert(!gangs_tell_claimed(
            gangs, "ml", &(struct pod_group_claim){.name = "g", .native = native}, &row));
        ck_assert_int_eq(
            gangs_tell_claimed(gangs, "ml",
                               &(struct pod_group_claim){.name = "g", .native = !native}, &row),
            native);
    }
}
END_TEST

/* A saved cluster, and a record, may have them all the same. */
START_TEST(without_the_option_no_object_declares_a_group)
{
    const struct pod_group_view group = {.ns = "ml", .name = "g", .min = 2};
    struct store *store = store_new(&(struct store_options){.silent = true});
    struct gang_row row;

    store_apply_object(store, FEED_POD_GROUPS, &group);
    ck_assert(!gangs_tell_claimed(store_gangs(store), "ml", &(struct pod_group_claim){.name = "g"},
                                  &row));
    store_free(store);
}
END_TEST

START_TEST(a_group_too_many_is_counted)
{
    const uint64_t before = metrics_counted(COUNTER_OBJECTS_BAD, FEED_POD_GROUPS);

    teardown();
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender.store = store_new(&(struct store_options){.gangs = true});
    for (int i = 0; i < GANGS_NAMESPACE_MAX + 2; i++) {
        g_autofree char *name = g_strdup_printf("g%d", i);
        const struct pod_group_view group = {.ns = "ml", .name = name, .min = 2};
        store_apply_object(extender.store, FEED_POD_GROUPS, &group);
    }
    ck_assert_uint_eq(metrics_counted(COUNTER_OBJECTS_BAD, FEED_POD_GROUPS), before + 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gang_plugins");
    TCase *tests = tcase_create("gang_plugins");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, beside_a_slow_plugin_none_is_bound);
    tcase_add_test(tests, who_waits_elsewhere_finds_the_plugin_free);
    tcase_add_test(tests, beside_a_silent_plugin_the_place_is_given_back);
    tcase_add_test(tests, those_that_are_enough_go_without_the_one_behind);
    tcase_add_test(tests, of_one_node_one_after_the_other);
    tcase_add_test(tests, the_deadline_ends_its_waiting);
    tcase_add_test(tests, others_wait_behind_a_group_that_has_come);
    tcase_add_test(tests, no_more_on_a_node_than_its_plugin_serves_in_time);
    tcase_add_test(tests, a_list_ends_groups_of_its_own_kind);
    tcase_add_test(tests, without_the_option_no_object_declares_a_group);
    tcase_add_test(tests, a_group_too_many_is_counted);
    return suite_run(suite);
}
