/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes whose kubelet rejects pods are left out, whoever says so, and come back.
 */
#include "quota_extender.h"
#include "suite.h"

#include "audit/audit.h"
#include "audit/auditor.h"
#include "explain/explain.h"
#include "store/feasibility.h"
#include "verbs/bind/attempt.h"
#include "base/log.h"
#include "base/metrics.h"
#include "inspect/views.h"

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define LEFT_OUT "has rejected pods that were bound to it"
#define ADMISSION "UnexpectedAdmissionError"
#define NO_DEVICES                                                                                 \
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices " MEM   \
    ", which is unexpected"
#define PLUGIN_SAYS                                                                                \
    "Allocate failed due to rpc error: code = Unknown desc = cannot reset the GPU, which is "     \
    "unexpected"
#define PLUGIN_IS_GONE                                                                             \
    "Allocate failed due to rpc error: code = Unavailable desc = transport is closing, which is " \
    "unexpected"

static struct moment moment;
static const struct store_options store_defaults = {
    .patience_ms = 60000, .reject_limit = 3, .reject_window_ms = 60000};

static void pass(int64_t ms)
{
    moment.now_ms += ms;
    moment.now_ns += ms * 1000000;
    store_end_waits(extender.store); /* as the clock does every second */
}

static void put_node(const char *name, const char *mark)
{
    const struct string_pairs marks = PAIRS({REJECTS_RESUME, mark});

    store_apply_node(extender.store,
                     &(struct node_view){.name = name,
                                         .annotations = {marks.items, mark ? 1 : 0},
                                         .capacity = PAIRS({MEM, "80"}, {COUNT, "2"})});
}

static void begin_with(const struct store_options *options)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){.store = store_new(options)};
    moment = (struct moment){INT64_C(1700000000) * 1000000000, 5000, 0};
    store_set_moment(extender.store, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    put_node("a", NULL);
    put_node("b", NULL);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void setup(void)
{
    begin_with(&store_defaults);
}

struct seen {
    const char *uid, *ns, *node, *card, *phase, *reason, *message;
};

static void see(const struct seen *seen)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = seen->ns,
                                       .name = seen->uid,
                                       .uid = seen->uid,
                                       .node_name = seen->node,
                                       .phase = seen->phase,
                                       .started = !g_str_equal(seen->phase, "Pending"),
                                       .status_reason = seen->reason,
                                       .status_message = seen->message,
                                       .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", seen->card}),
                                       /* of another size than who asks, who need not wait for it */
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "2"})})});
}

static void bind_on(const char *uid, const char *ns, const char *node, const char *card)
{
    see(&(struct seen){uid, ns, node, card, "Pending"});
}

static void start(const char *uid, const char *ns, const char *node)
{
    see(&(struct seen){uid, ns, node, "0", "Running"});
}

static void turn_down(const char *uid, const char *ns, const char *reason, const char *message)
{
    see(&(struct seen){uid, ns, "a", "0", "Failed", reason, message});
}

/* It was bound to "a", and kubelet does not take it. */
static void reject(const char *uid, const char *ns)
{
    bind_on(uid, ns, "a", "0");
    turn_down(uid, ns, ADMISSION, NO_DEVICES);
}

static void reject_three(const char *ns)
{
    for (int i = 0; i < 3; i++) {
        g_autofree char *uid = g_strdup_printf("%s-%d", ns, i);
        reject(uid, ns);
    }
}

/* Which of the nodes filter passes. */
static void expect(const char *ns, const char *wanted)
{
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"%s\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
        "\":\"1\"}}}]}},\"NodeNames\":[\"a\",\"b\"]}",
        ns);

    expect_filter(body, "a,b", wanted, LEFT_OUT);
}

/* --- what counts ------------------------------------------------------------------------------ */

START_TEST(what_kubelet_writes_counts_and_nothing_else)
{
    static const struct {
        const char *reason, *message;
        bool counts;
    } cases[] = {
        {ADMISSION, NO_DEVICES, true},
        {ADMISSION, NULL, true},
        {ADMISSION, PLUGIN_IS_GONE, true},
        {"TopologyAffinityError", "Resources cannot be allocated with Topology locality", true},
        {"OutOfcpu", "Node didn't have enough resource: cpu", true},
        {"OutOf" MEM, "Node didn't have enough resource: " MEM, true},
        {"Evicted", "The node was low on resource: memory", false},
        {"Unexpected", NO_DEVICES, false},
        {NULL, NO_DEVICES, false},
        {NULL, NULL, false},
    };

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
    turn_down("p", "ml", "OutOfcpu", "");
    turn_down("q", "ml", "OutOfcpu", ""); /* nobody knew it */
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
    ck_assert_str_eq(error->message, reason_info(REASON_REJECTING)->text);
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
    int64_t length = REJECTS_PAUSE_MS;

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
        length = MIN(2 * length, REJECTS_PAUSE_MAX_MS);
    }
    ck_assert_int_eq(length, REJECTS_PAUSE_MAX_MS);
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

START_TEST(a_limit_of_one_does_not_change_that)
{
    store_free(extender.store);
    begin_with(&(struct store_options){
        .patience_ms = 60000, .reject_limit = 1, .reject_window_ms = 60000});
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
    int64_t own = REJECTS_PAUSE_MS;

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
                     &(struct feasibility_about){&pod, request, &now, 0});
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
    ck_assert(store_resume_node(extender.store, "a"));
    expect("ml", "a,b");
    ck_assert(!store_resume_node(extender.store, "a"));
    ck_assert(!store_resume_node(extender.store, "nowhere"));
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

/* --- what is told ----------------------------------------------------------------------------- */

START_TEST(copies_and_records_know_it)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct json_writer writer;

    reject_three("ml");
    reject("p", "web");
    expect("ml", "b");
    pass(10000);
    bind_on("stays", "ml", "a", "0");
    expect("ml", "b");
    json_writer_init(&writer, text);
    rejects_encode(&writer, store_rejects(extender.store));
    struct store *copy = store_copy(extender.store);
    store_free(extender.store);
    extender.store = copy;
    store_set_moment(copy, &moment);
    expect("ml", "b");
    ck_assert(store_learn_rejects(copy, arena, json_parse(arena, text->str, text->len, NULL),
                                  &error));
    json_writer_init(&writer, again);
    rejects_encode(&writer, store_rejects(copy));
    ck_assert_str_eq(again->str, text->str);
    expect("ml", "b");
    start("stays", "ml", "a");
    expect("ml", "a,b");
}
END_TEST

START_TEST(the_audit_names_the_node)
{
    reject_three("ml");
    expect("ml", "b");
    g_autoptr(audit_report) report =
        audit_look(extender.store, &(struct audit_options){.stuck_ms = 60000});
    ck_assert_uint_eq(report->counts[AUDIT_LEFT_OUT], 1);
    ck_assert_uint_eq(audit_report_differences(report), 1);
    const struct audit_row *row = report->rows->pdata[0];
    ck_assert_str_eq(row->node, "a");
    ck_assert_ptr_null(row->name);
    ck_assert_str_eq(row->cluster, "rejected pods: 3 (admission)");
    ck_assert_str_eq(row->ledger, "is left out, for pods of namespace ml");
}
END_TEST

START_TEST(a_gauge_names_the_node_once)
{
    g_autoptr(GString) text = g_string_new(NULL);

    reject_three("ml");
    reject_three("web");
    expect("ml", "b");
    view_metrics(extender.store, 100, text);
    const char *found = strstr(text->str, "gpuledger_node_left_out{node=\"a\"} 1\n");
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(strstr(found + 1, "gpuledger_node_left_out{"));
    ck_assert_ptr_nonnull(strstr(text->str, "\ngpuledger_nodes_left_out 1\n"));
}
END_TEST

static char *sentence_of(const char *ns)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const struct pod_view pod = {.ns = ns,
                                 .name = "x",
                                 .uid = "x",
                                 CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})};
    g_autoptr(explanation) explanation = explain_pod(extender.store, extender.cluster, &pod);

    explanation_write(text, explanation, true);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

START_TEST(explain_says_for_whom_and_why)
{
    reject_three("ml");
    expect("ml", "b");
    g_autofree char *told = sentence_of("ml");
    ck_assert_msg(strstr(told, ", for pods of namespace ml, for its kubelet has rejected 3 pods "
                               "(admission)"), "%s", told);
    g_autofree char *others = sentence_of("web");
    ck_assert_msg(!strstr(others, "rejected"), "%s", others);
    pass(10000);
    bind_on("trial", "ml", "a", "0");
    expect("ml", "b");
    g_autofree char *what_if = sentence_of("ml");
    ck_assert_msg(strstr(what_if, "takes one pod at a time, until one is admitted"), "%s", what_if);
}
END_TEST

/* ThreadSanitizer sees these locks, and not those of GLib's queues. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    char *text;
} posted = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

static void post_event(struct cluster *cluster, const struct pod_event *event)
{
    pthread_mutex_lock(&posted.mutex);
    g_free(posted.text);
    posted.text = g_strdup_printf("%s %s %s %s: %s", pod_event_info(event->cause)->reason,
                                  event->ns ? event->ns : "-", event->name, event->uid, event->note);
    pthread_cond_signal(&posted.came);
    pthread_mutex_unlock(&posted.mutex);
}

/* Check's time limit ends it otherwise. */
static char *await_event(void)
{
    pthread_mutex_lock(&posted.mutex);
    while (!posted.text)
        pthread_cond_wait(&posted.came, &posted.mutex);
    char *text = g_steal_pointer(&posted.text);
    pthread_mutex_unlock(&posted.mutex);
    return text;
}

START_TEST(the_node_gets_an_event)
{
    static const struct cluster_ops ops = {.name = "test", .post_event = post_event};
    struct cluster cluster = {&ops};

    extender.cluster = &cluster;
    reject_three("ml");
    expect("ml", "b");
    struct auditor *auditor = auditor_start(&extender, &(struct auditor_options){0}, NULL);
    g_autofree char *text = await_event();
    auditor_free(auditor);
    ck_assert_msg(g_str_has_prefix(text, "GPUNodeLeftOut - a a: On node a: its kubelet rejects pods"),
                  "%s", text);
    g_free(posted.text);
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
    static const char *const texts[] = {
        "{}", "{\"sites\":7}", "{\"sites\":[{}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"none\",\"rejects\":[],\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"last\":3,\"rejects\":[],"
        "\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[{\"uid\":\"u\","
        "\"namespace\":\"n\",\"card\":-2}],\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[],\"pauses\":["
        "{\"card\":0,\"until\":1,\"length\":0}]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[],\"pauses\":["
        "{\"card\":0,\"until\":-1,\"length\":1}]}]}",
    };
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;

    ck_assert(!store_learn_rejects(extender.store, arena,
                                   json_parse(arena, texts[_i], strlen(texts[_i]), NULL), &error));
    ck_assert_ptr_nonnull(error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rejects");
    TCase *tcase = tcase_create("rejects");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, what_kubelet_writes_counts_and_nothing_else, 0, 10);
    tcase_add_test(tcase, pods_that_only_succeed_or_were_never_seen_alive_do_not_count);
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
    tcase_add_test(tcase, a_limit_of_one_does_not_change_that);
    tcase_add_test(tcase, several_namespaces_close_it_for_all);
    tcase_add_test(tcase, a_namespace_that_fails_every_trial_does_not_double_the_pause_of_others);
    tcase_add_test(tcase, a_node_of_another_name_or_dialect_is_none_of_it);
    tcase_add_test(tcase, only_the_card_is_left_out_that_the_plugin_refuses);
    tcase_add_loop_test(tcase, where_nobody_answered_it_is_the_node, 0, 2);
    tcase_add_test(tcase, people_end_it);
    tcase_add_test(tcase, a_new_value_of_the_annotation_ends_it_and_an_old_one_does_not);
    tcase_add_test(tcase, a_node_that_is_deleted_begins_anew);
    tcase_add_test(tcase, copies_and_records_know_it);
    tcase_add_test(tcase, the_audit_names_the_node);
    tcase_add_test(tcase, a_gauge_names_the_node_once);
    tcase_add_test(tcase, explain_says_for_whom_and_why);
    tcase_add_test(tcase, the_node_gets_an_event);
    tcase_add_loop_test(tcase, what_is_no_record_is_refused, 0, 8);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
