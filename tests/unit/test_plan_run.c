/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan that a ConfigMap orders, taken up where another replica has left it: what its last step has come to, whose
 * marks are taken over, and what ends it. (Whole runs, and being killed in them: tests/killed.)
 */
#include "evicting_api.h"

#include "base/metrics.h"
#include "kube/api_cluster.h"
#include "literals.h"
#include "maintain/plans/plan_marks.h"
#include "maintain/plans/plan_run.h"
#include "suite.h"

#define ORDER "/api/v1/namespaces/gpu/configmaps/order "
#define DATA "\"data\":{\"pod\":\"ml/big\"}"
#define MEM "aliyun.com/gpu-mem"

static const struct dialect_options no_options;
static struct cluster *cluster;
static struct store *known;
static struct worker worker;
static struct plan_order *order;
static struct plan_status *status;
static GHashTable *passed;
static struct pauses *waiters, *stayed;
static unsigned n_terms, term_until; /* how often it was asked; how often it serves, 0: always */

static uint64_t term_of(struct leadership *leadership)
{
    return term_until == 0 || n_terms++ < term_until ? 7 : 8;
}

static const struct leadership_ops ops = {.term = term_of};
static struct leadership leader = {&ops};

static const char *order_text(const char *uid, const char *label, const char *data)
{
    return keep(
        g_strdup_printf("{\"metadata\":{\"namespace\":\"gpu\",\"name\":\"order\",\"uid\":"
                        "\"%s\",\"resourceVersion\":\"5\",\"labels\":{\"gpuledger.io/plan\":"
                        "\"%s\"}},%s}",
                        uid, label, data));
}

static struct plan_order *decode(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct plan_order *decoded =
        plan_order_decode(arena, json_parse(arena, text, strlen(text), NULL), NULL);

    ck_assert(decoded && !decoded->problem);
    return decoded;
}

/* What the store has heard of a node and its plan; NULL: nothing. */
static void hear(const char *node, const char *by, const char *until)
{
    g_autofree char *mark = g_strdup_printf(
        "{\"doing\":\"things\",\"by\":\"%s\",\"until\":\"%s\",\"rooms\":[]}", by, until);
    const struct string_pair said = {"gpuledger.io/plan", mark};

    store_apply_node(
        known, &(struct node_view){.name = node,
                                   .annotations = {&said, 1},
                                   .capacity = PAIRS({MEM, "10"}, {"aliyun.com/gpu-count", "1"})});
    g_autofree char *match = g_strdup_printf("GET /api/v1/nodes/%s ", node);
    g_autofree char *escaped = g_strescape(mark, NULL);
    answer(keep(g_steal_pointer(&match)), FAKE_ALWAYS, 200,
           keep(g_strdup_printf("{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"1\","
                                "\"annotations\":{\"gpuledger.io/plan\":\"%s\"}}}",
                                node, escaped)));
}

static void setup(void)
{
    evicting_begin();
    cluster = api_cluster_new(client);
    known = store_new(&(struct store_options){.policy = policies});
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(known, feed);
        store_list_end(known, feed);
    }
    worker_init(&worker);
    passed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    waiters = pauses_new(PLAN_PAUSE_MS, PLAN_PAUSE_MS);
    stayed = pauses_new(PLAN_PAUSE_MS, PLAN_PAUSE_MS);
    order = decode(order_text("u1", "run", DATA));
    status = plan_status_new(order->digest);
    n_terms = term_until = 0;
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    plan_status_free(status);
    plan_order_free(order);
    g_hash_table_unref(passed);
    pauses_free(waiters);
    pauses_free(stayed);
    worker_release(&worker);
    store_free(known);
    api_cluster_free(cluster);
    evicting_end();
}

/* The pod of the order has a node, so there is nothing else to do. */
static void show_goal(void)
{
    answer("GET /api/v1/namespaces/ml/pods/big ", FAKE_ALWAYS, 200,
           "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"big\",\"uid\":\"big\"},\"spec\":{"
           "\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
           "\":\"8\"}}}]},\"status\":{\"phase\":\"Running\"}}");
}

static void accept_writes(void)
{
    answer("PATCH " ORDER, FAKE_ALWAYS, 200, order_text("u1", "run", DATA));
    answer("PATCH /api/v1/nodes/", FAKE_ALWAYS, 200, NULL);
}

static void run(void)
{
    const struct plan_service_options with = {.client = client,
                                              .cluster = cluster,
                                              .store = known,
                                              .dialects = &no_options,
                                              .leadership = &leader,
                                              .ns = "gpu"};

    plan_run(&(struct plan_run_args){.with = &with,
                                     .worker = &worker,
                                     .term = 7,
                                     .passed = passed,
                                     .waiters = waiters,
                                     .stayed = stayed,
                                     .order = order,
                                     .status = status});
}

/* A step that had begun: ml/web leaves n1 for n2; two pods of its controller were Ready. */
static void open_step(void)
{
    char ns[] = "ml", name[] = "web", uid[] = "uid-web", from[] = "n1", to[] = "n2", own[] = "r1";
    const struct relocation_step step = {
        .ns = ns, .name = name, .uid = uid, .from = from, .to = to, .owner = own};

    step_log_note(status->log, &(struct executor_news){EXECUTOR_STEP, &step, 2, NULL}, 1000);
}

static void expect_end(enum plan_phase phase, const char *text)
{
    ck_assert_int_eq(status->phase, phase);
    ck_assert_msg(strstr(status->text, text), "'%s', not '%s'", status->text, text);
}

/* --- the step under way --------------------------------------------------------------------------- */

/* What the API server says of its pod, and how many of its controller are Ready by now. */
static const struct {
    int read;
    unsigned ready, steps;     /* that the log has afterwards */
    enum executor_event event; /* of the last */
    enum plan_phase phase;
    const char *text;
} begun[] = {
    {404, 2, 1, EXECUTOR_MOVED, PLAN_PHASE_DONE, "the goal is reached"},
    {200, 2, 0, EXECUTOR_STEP, PLAN_PHASE_DONE, "the goal is reached"}, /* nobody has evicted it */
    {404, 1, 1, EXECUTOR_FAILED, PLAN_PHASE_STOPPED, "stopped: ml/web: its successor is not Ready"},
    {403, 2, 1, EXECUTOR_FAILED, PLAN_PHASE_STOPPED, "stopped: ml/web: "},
};

START_TEST(a_step_that_had_begun_is_finished)
{
    const uint64_t done = metrics_counted(COUNTER_PLANS, PLAN_RESULT_DONE);
    const uint64_t stopped = metrics_counted(COUNTER_PLANS, PLAN_RESULT_STOPPED);
    const bool ok = begun[_i].phase == PLAN_PHASE_DONE;

    open_step();
    status->left = 3;
    answer("GET /api/v1/namespaces/ml/pods/web ", FAKE_ALWAYS, begun[_i].read,
           begun[_i].read == 200 ? pod_text((struct api_pod){.name = "web", .owner = "r1"}) : NULL);
    show_ready(FAKE_ALWAYS, "r1", begun[_i].ready);
    answer("GET " ORDER, FAKE_ALWAYS, 200, order_text("u1", "run", DATA));
    show_goal();
    accept_writes();
    run();
    expect_end(begun[_i].phase, begun[_i].text);
    ck_assert_uint_eq(step_log_n(status->log), begun[_i].steps);
    if (begun[_i].steps > 0)
        ck_assert_int_eq(step_log_get(status->log, 0)->event, begun[_i].event);
    ck_assert_uint_eq(status->moved, begun[_i].event == EXECUTOR_MOVED ? 1 : 0);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert_uint_eq(metrics_counted(COUNTER_PLANS, PLAN_RESULT_DONE), done + ok);
    ck_assert_uint_eq(metrics_counted(COUNTER_PLANS, PLAN_RESULT_STOPPED), stopped + !ok);
}
END_TEST

/* An order 'waiting' goes on without the pods of a controller of which one was not made again, or does not end, as any
 * tenant could have it; others go on. */
START_TEST(a_controller_whose_pod_is_not_made_again_is_passed_over)
{
    const int64_t now = g_get_monotonic_time() / 1000;
    const bool ends = _i == 0;

    plan_order_free(order);
    order = decode(order_text("u1", "run", "\"data\":{\"waiting\":\"1m\",\"max-per-hour\":\"9\"}"));
    plan_status_free(status);
    status = plan_status_new(order->digest);
    order->aim.ns = g_strdup("ml");
    order->aim.name = g_strdup("big");
    status->waiter = g_strdup("ml/big");
    open_step();
    if (ends)
        hide_pod(FAKE_ALWAYS, "web");
    else
        show_pod(FAKE_ALWAYS, (struct api_pod){.name = "web", .owner = "r1", .deleted = true});
    show_ready(FAKE_ALWAYS, "r1", 1);
    answer("GET " ORDER, FAKE_ALWAYS, 200,
           order_text("u1", "run", "\"data\":{\"waiting\":\"1m\",\"max-per-hour\":\"9\"}"));
    accept_writes();
    run();
    expect_end(PLAN_PHASE_WAITING, "ml/big is passed over for an hour: ");
    ck_assert_int_gt(pauses_left(stayed, "ml", "r1", now), 0);
    ck_assert_int_eq(pauses_left(stayed, "other", "r1", now), 0); /* who only says so */
    ck_assert_int_eq(pauses_left(stayed, "ml", "r2", now), 0);
    ck_assert_ptr_null(status->waiter);
}
END_TEST

/* It goes on with other pods, and does not help the same one again. */
START_TEST(a_pod_that_was_helped_is_passed_over)
{
    const int64_t now = g_get_monotonic_time() / 1000;

    plan_order_free(order);
    order = decode(order_text("u1", "run", "\"data\":{\"waiting\":\"1m\",\"max-per-hour\":\"9\"}"));
    plan_status_free(status);
    status = plan_status_new(order->digest);
    order->aim.ns = g_strdup("ml");
    order->aim.name = g_strdup("big");
    status->waiter = g_strdup("ml/big");
    show_goal();
    accept_writes();
    run();
    expect_end(PLAN_PHASE_WAITING, "room for ml/big has been made");
    ck_assert(g_hash_table_contains(passed, "big"));
    ck_assert_int_eq(pauses_left(waiters, "ml", NULL, now), 0);
}
END_TEST

/* While its successor is waited for: the ConfigMap is looked at every two seconds. */
static const struct {
    int status;
    const char *uid, *label, *data;
    const char *text; /* NULL: it goes on until the successor's time is over */
} orders[] = {
    {200, "u1", "run", DATA, NULL},
    {500, "u1", "run", DATA, NULL}, /* what cannot be read may still be ordered */
    {404, "u1", "run", DATA, "its ConfigMap is gone"},
    {200, "u2", "run", DATA, "its ConfigMap orders it no longer"},
    {200, "u1", "stop", DATA, "its ConfigMap orders it no longer"},
    {200, "u1", "run", "\"data\":{\"pod\":\"ml/other\"}", "its ConfigMap orders it no longer"},
};

START_TEST(what_is_ordered_no_longer_stops)
{
    open_step();
    hide_pod(FAKE_ALWAYS, "web");
    show_ready(FAKE_ALWAYS, "r1", 0);
    answer("GET " ORDER, FAKE_ALWAYS, orders[_i].status,
           orders[_i].status == 200 ? order_text(orders[_i].uid, orders[_i].label, orders[_i].data)
                                    : NULL);
    accept_writes();
    run();
    expect_end(PLAN_PHASE_STOPPED, orders[_i].text ? orders[_i].text : "is not Ready in time");
    ck_assert_uint_gt(count_requests("GET " ORDER, NULL), 0);
    ck_assert_uint_eq(count_requests("GET /api/v1/namespaces/ml/pods/big ", NULL), 0);
}
END_TEST

/* --- the term ------------------------------------------------------------------------------------- */

/* Whoever serves next goes on with it: nothing is written any more, neither of the plan nor on nodes. */
START_TEST(after_the_term_it_is_left_as_it_is)
{
    open_step();
    hear("n1", "plan gpu/order", "2026-01-05T12:01:00Z");
    hide_pod(FAKE_ALWAYS, "web");
    show_ready(FAKE_ALWAYS, "r1", 0);
    answer("GET " ORDER, FAKE_ALWAYS, 200, order_text("u1", "run", DATA));
    accept_writes();
    term_until = (unsigned)_i;
    run();
    ck_assert_int_eq(status->phase, PLAN_PHASE_RUNNING);
    ck_assert_ptr_nonnull(step_log_open(status->log));
    ck_assert_uint_eq(count_requests("PATCH /api/v1/nodes/", NULL), 0);
    ck_assert_uint_eq(count_requests("PATCH " ORDER, "\\\"phase\\\":\\\"stopped\\\""), 0);
    ck_assert_uint_eq(count_requests("GET /api/v1/namespaces/ml/pods/big ", NULL), 0);
}
END_TEST

/* Somebody else has written what has come of it: another replica is at it. */
START_TEST(what_another_one_is_at_does_not_begin)
{
    hear("n1", "plan gpu/order", "2026-01-05T12:01:00Z");
    answer("PATCH " ORDER, FAKE_ALWAYS, 409, NULL);
    answer("GET " ORDER, FAKE_ALWAYS, 200,
           "{\"metadata\":{\"namespace\":\"gpu\",\"name\":\"order\",\"uid\":\"u1\",\"labels\":{"
           "\"gpuledger.io/plan\":\"run\"},\"resourceVersion\":\"6\",\"annotations\":{"
           "\"gpuledger.io/plan-status\":\"theirs\"}}," DATA "}");
    run();
    expect_list("P gpu/configmaps/order; G gpu/configmaps/order");
}
END_TEST

/* --- what was kept -------------------------------------------------------------------------------- */

/* Our own is given back when it is over, as is what plans have left that were killed; another's stays. */
START_TEST(marks_are_taken_over)
{
    hear("n1", "plan gpu/order", "2026-01-05T12:01:00Z");
    hear("n2", "plan gpu/other", "2026-01-05T12:01:00Z");
    hear("n3", "plan gpu/other", "2026-01-05T11:59:00Z");
    show_goal();
    accept_writes();
    run();
    expect_end(PLAN_PHASE_DONE, "the goal is reached");
    ck_assert_uint_eq(count_requests("PATCH /api/v1/nodes/n1 ", "\"gpuledger.io/plan\":null"), 1);
    ck_assert_uint_eq(count_requests("/api/v1/nodes/n2 ", NULL), 0);
    ck_assert_uint_eq(count_requests("PATCH /api/v1/nodes/n3 ", "\"gpuledger.io/plan\":null"), 1);
}
END_TEST

START_TEST(a_sweep_takes_only_what_is_dead)
{
    hear("n1", "plan gpu/order", "2026-01-05T12:01:00Z");
    hear("n3", "plan gpu/other", "2026-01-05T11:59:00Z");
    accept_writes();
    plan_marks_sweep(&(struct plan_service_options){.client = client, .store = known});
    expect_list("G nodes/n3; P nodes/n3");
}
END_TEST

/* A pod that nobody knows is no goal. */
START_TEST(a_goal_that_cannot_be_read_stops_it)
{
    answer("GET /api/v1/namespaces/ml/pods/big ", FAKE_ALWAYS, 404, NULL);
    accept_writes();
    run();
    expect_end(PLAN_PHASE_STOPPED, "stopped: there is no pod 'ml/big'");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_run");
    TCase *tests = tcase_create("plan_run");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_step_that_had_begun_is_finished, 0, G_N_ELEMENTS(begun));
    tcase_add_loop_test(tests, a_controller_whose_pod_is_not_made_again_is_passed_over, 0, 2);
    tcase_add_test(tests, a_pod_that_was_helped_is_passed_over);
    tcase_add_loop_test(tests, what_is_ordered_no_longer_stops, 0, G_N_ELEMENTS(orders));
    tcase_add_loop_test(tests, after_the_term_it_is_left_as_it_is, 1, 4);
    tcase_add_test(tests, what_another_one_is_at_does_not_begin);
    tcase_add_test(tests, marks_are_taken_over);
    tcase_add_test(tests, a_sweep_takes_only_what_is_dead);
    tcase_add_test(tests, a_goal_that_cannot_be_read_stops_it);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
