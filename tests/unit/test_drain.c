/* SPDX-License-Identifier: Apache-2.0 */
/* Evictions one after the other: which pods, in which order, what is waited for, and what ends it. */
#include "evict/drain.h"

#include "evicting_api.h"
#include "suite.h"

#define TIMEOUT_MS 60000

static GString *told;      /* all progress, a line each */
static int n_asked;        /* how often it was asked whether to go on */
static int stops_at;       /* which of these says no; 0: none */
static struct api_pod web; /* of a ReplicaSet */

static void setup(void)
{
    evicting_begin();
    told = g_string_new(NULL);
    n_asked = stops_at = 0;
    web = (struct api_pod){.name = "web", .owner = "r1", .node = "n1", .ready = true};
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    evicting_end();
    g_string_free(told, TRUE);
}

static void tell(void *data, const char *text)
{
    g_string_append_printf(told, "%s\n", text);
}

static bool go_on(void *data, GError **error)
{
    if (++n_asked != stops_at)
        return true;
    g_set_error(error, g_quark_from_static_string("test"), 0, "nobody wants it");
    return false;
}

static unsigned n_terms, term_until; /* how often it was asked; how often it serves, 0: always */

static uint64_t term_of(struct leadership *leadership)
{
    return term_until == 0 || n_terms++ < term_until ? 7 : 8;
}

static const struct leadership_ops ops = {.term = term_of};
static struct leadership leader = {&ops};

static bool drain(struct drain_pod *pods, guint n, bool force, GError **error)
{
    return drain_run(&(struct drain_query){.client = client,
                                           .ender = ENDER_DRAIN,
                                           .leadership = &leader,
                                           .term = 7,
                                           .pods = pods,
                                           .n_pods = n,
                                           .force = force,
                                           .timeout_ms = TIMEOUT_MS,
                                           .progress = tell,
                                           .go_on = go_on},
                     error);
}

static void expect_error(const GError *error, const char *text)
{
    ck_assert_msg(error && strstr(error->message, text), "'%s', not '%s'",
                  error ? error->message : "no error", text);
}

/* --- who stays ------------------------------------------------------------------------------------ */

static const struct {
    struct api_pod pod;
    bool force;
    const char *why; /* NULL: it is evicted */
} candidates[] = {
    {{.name = "a", .owner = "r1"}, false, NULL},
    {{.name = "a", .owner = "s1", .kind = "StatefulSet"}, false, NULL},
    {{.name = "a", .owner = "j1", .kind = "Job"}, false, NULL},
    {{.name = "a", .owner = "d1", .kind = "DaemonSet"}, false, "its DaemonSet would make it again"},
    {{.name = "a", .owner = "d1", .kind = "DaemonSet"}, true, "its DaemonSet would make it again"},
    {{.name = "a"}, false, "nobody makes it again; --force ends it"},
    {{.name = "a"}, true, NULL},
    {{.name = "a", .owner = "r1", .annotations = "{\"kubernetes.io/config.mirror\":\"x\"}"},
     true,
     "it is kubelet's own"},
    /* Whoever drains a node means all of its pods: no other program's opt-out counts here. (A plan asks for them
     * before: test_movers.c.) */
    {{.name = "a", .owner = "r1", .annotations = "{\"karpenter.sh/do-not-disrupt\":\"true\"}"},
     false,
     NULL},
    {{.name = "a",
      .owner = "r1",
      .annotations = "{\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\"}"},
     false,
     NULL},
};

START_TEST(who_would_come_back_or_be_lost_stays)
{
    struct drain_pod pod = {.ns = "ml", .name = "a", .alone = true};

    show_pod(2, candidates[_i].pod);
    hide_pod(1, "a");
    if (candidates[_i].pod.owner)
        show_ready(1, candidates[_i].pod.owner, 1);
    accept_evictions(2);
    ck_assert(drain(&pod, 1, candidates[_i].force, NULL));
    ck_assert_uint_eq(count_evictions(), candidates[_i].why ? 0 : 1);
    ck_assert_int_eq(pod.state, candidates[_i].why ? DRAIN_STAYS : DRAIN_EVICTED);
    if (candidates[_i].why)
        ck_assert_msg(pod.why && strstr(pod.why, candidates[_i].why), "%s", pod.why);
    g_free(pod.why);
}
END_TEST

static const struct {
    struct api_pod pod;
    int status; /* of the pod */
    const char *uid;
    bool gone;
    unsigned evictions;
} ways_to_go[] = {
    {{.name = "a", .owner = "r1"}, 404, "uid-a", true},
    {{.name = "a", .owner = "r1", .uid = "other"}, 200, "uid-a", true},
    {{.name = "a", .owner = "r1", .phase = "Succeeded"}, 200, "uid-a", true},
    {{.name = "a", .owner = "r1", .phase = "Failed"}, 200, NULL, true},
    {{.name = "a", .owner = "r1", .uid = "other"}, 200, NULL, false, 1}, /* any will do */
    /* Somebody has deleted it, and it is still there: its end is waited for, and nobody else evicts it. */
    {{.name = "a", .owner = "r1", .deleted = true}, 200, "uid-a", false},
};

START_TEST(who_has_gone_by_itself_is_not_evicted)
{
    struct drain_pod pod = {.ns = "ml", .name = "a", .uid = ways_to_go[_i].uid, .alone = true};
    const bool gone = ways_to_go[_i].gone;

    if (ways_to_go[_i].status == 404)
        hide_pod(FAKE_ALWAYS, "a");
    show_pod(2, ways_to_go[_i].pod);
    hide_pod(1, "a");
    show_ready(1, "r1", 1);
    accept_evictions(2);
    ck_assert(drain(&pod, 1, false, NULL));
    ck_assert_int_eq(pod.state, gone ? DRAIN_GONE : DRAIN_EVICTED);
    ck_assert_uint_eq(count_evictions(), ways_to_go[_i].evictions);
    ck_assert_ptr_null(pod.why);
}
END_TEST

/* --- order ---------------------------------------------------------------------------------------- */

START_TEST(all_are_tried_before_the_first_ends)
{
    struct drain_pod pods[] = {{.ns = "ml", .name = "a"}, {.ns = "ml", .name = "b"}};

    show_pod(2, (struct api_pod){.name = "a", .owner = "r1"});
    hide_pod(1, "a");
    show_pod(2, (struct api_pod){.name = "b", .owner = "r2"});
    hide_pod(1, "b");
    show_ready(FAKE_ALWAYS, "r1", 0);
    accept_evictions(4);
    ck_assert(drain(pods, 2, false, NULL));
    expect_list("G a; P a/eviction dry; G b; P b/eviction dry; "
                "G a; G ml/pods; P a/eviction; G a; G ml/pods; "
                "G b; G ml/pods; P b/eviction; G b; G ml/pods");
    ck_assert_int_eq(pods[0].state, DRAIN_EVICTED);
    ck_assert_int_eq(pods[1].state, DRAIN_EVICTED);
}
END_TEST

static const struct {
    int status;
    const char *text;
    bool fails;
} tries[] = {
    {403, NULL, true},         {409, NULL, true},
    {500, SAYS_BUDGETS, true}, /* several budgets cover it */
    {500, NULL, true},         {429, SAYS_OVERLOAD, true},
    {429, SAYS_BUDGET, false}, /* it may have something to give by then */
    {404, NULL, false},        {201, NULL, false},
};

START_TEST(nobody_ends_if_one_of_them_would_not)
{
    struct drain_pod pods[] = {{.ns = "ml", .name = "a", .alone = true},
                               {.ns = "ml", .name = "b", .alone = true}};
    g_autoptr(GError) error = NULL;

    show_pod(2, (struct api_pod){.name = "a", .owner = "r1"});
    hide_pod(1, "a");
    show_pod(1, (struct api_pod){.name = "b", .owner = "r2"});
    hide_pod(1, "b");
    show_ready(FAKE_ALWAYS, "r1", 0);
    answer("a/eviction ", 2, 201, NULL);
    answer("b/eviction ", FAKE_ALWAYS, tries[_i].status, tries[_i].text);
    ck_assert_int_eq(drain(pods, 2, false, &error), !tries[_i].fails);
    ck_assert_uint_eq(count_evictions(), tries[_i].fails ? 0 : 1);
    ck_assert_int_eq(pods[0].state, tries[_i].fails ? DRAIN_STAYS : DRAIN_EVICTED);
    ck_assert_int_eq(pods[1].state, tries[_i].fails ? DRAIN_FAILED : DRAIN_GONE);
    if (tries[_i].fails)
        expect_error(error, "ml/b: ");
    g_free(pods[1].why);
}
END_TEST

START_TEST(whatever_goes_wrong_ends_it)
{
    struct drain_pod pods[] = {{.ns = "ml", .name = "a", .alone = true},
                               {.ns = "ml", .name = "b", .alone = true}};
    g_autoptr(GError) error = NULL;

    show_pod(2, (struct api_pod){.name = "a", .owner = "r1"});
    show_pod(1, (struct api_pod){.name = "b", .owner = "r2"});
    show_ready(FAKE_ALWAYS, "r1", 0);
    accept_evictions(2);
    answer("a/eviction ", 1, 403, NULL);
    ck_assert(!drain(pods, 2, false, &error));
    expect_error(error, "ml/a: ");
    ck_assert_int_eq(pods[0].state, DRAIN_FAILED);
    ck_assert_ptr_nonnull(pods[0].why);
    ck_assert_int_eq(pods[1].state, DRAIN_STAYS);
    ck_assert_uint_eq(count_requests("b/eviction ", NULL), 1); /* its try */
    g_free(pods[0].why);
}
END_TEST

/* --- what is waited for ----------------------------------------------------------------------- */

/* The pod, of which so many others are Ready, is tried, and read again. */
static void show_web(void)
{
    show_pod(2, web);
    show_ready(1, "r1", 2);
    accept_evictions(1);
}

static bool lost; /* the last one */

static bool drain_web(GError **error)
{
    struct drain_pod pod = {.ns = "ml", .name = "web", .uid = "uid-web", .note = "to make room"};
    const bool ok = drain(&pod, 1, false, error);

    ck_assert_int_eq(pod.state, ok ? DRAIN_EVICTED : DRAIN_FAILED);
    ck_assert_int_eq(pod.why != NULL, !ok);
    g_free(pod.why);
    lost = pod.lost;
    return ok;
}

START_TEST(a_budget_its_end_and_its_successor_are_waited_for)
{
    show_web();
    show_pod(2, web);                          /* after each pause */
    answer("/eviction ", 2, 429, SAYS_BUDGET); /* two looks */
    accept_evictions(1);
    answer("/events ", 1, 201, NULL);
    web.deleted = true;
    show_pod(2, web);
    answer("GET /api/v1/namespaces/ml/pods/web ", 9, 500, NULL); /* one look: nobody can say */
    show_pod(1, web);
    hide_pod(1, "web");
    show_ready(2, "r1", 1);
    answer("GET /api/v1/namespaces/ml/pods ", 1, 403, NULL);
    show_ready(1, "r1", 2);
    ck_assert(drain_web(NULL));
    ck_assert_str_eq(told->str, "ml/web: waits for a PodDisruptionBudget\n"
                                "ml/web: is evicted and ends\n"
                                "ml/web: has ended; its successor is not Ready yet\n"
                                "ml/web: evicted, and its successor is Ready\n");
    ck_assert_uint_eq(count_requests("/events ", "\"note\":\"to make room\""), 1);
    ck_assert_uint_eq(count_requests("GET /api/v1/namespaces/ml/pods/web ", NULL),
                      2 + 2 + 2 + 9 + 2);
}
END_TEST

START_TEST(no_more_successors_are_waited_for_than_were_there)
{
    struct drain_pod pod = {.ns = "ml", .name = "web", .counted = true, .n_ready = 3};

    show_pod(2, web);
    accept_evictions(2);
    hide_pod(1, "web");
    show_ready(1, "r1", 2);
    show_ready(1, "r1", 3);
    ck_assert(drain(&pod, 1, false, NULL));
    expect_list("G web; P web/eviction dry; G web; P web/eviction; G web; G ml/pods; G ml/pods");
}
END_TEST

static const struct {
    struct api_pod now;
    bool ended;
} ends[] = {
    {{.name = "web", .owner = "r1", .uid = "another"}, true},
    {{.name = "web", .owner = "r1", .phase = "Succeeded"}, true},
    {{.name = "web", .owner = "r1", .phase = "Failed"}, true},
    {{.name = "web", .owner = "r1"}, false},
    {{.name = "web", .owner = "r1", .deleted = true}, false},
};

START_TEST(its_end_is_seen)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_passed_ms();

    show_web();
    accept_evictions(1);
    answer("/events ", 1, 201, NULL);
    show_pod(FAKE_ALWAYS, ends[_i].now);
    show_ready(FAKE_ALWAYS, "r1", 2);
    ck_assert_int_eq(drain_web(&error), ends[_i].ended);
    ck_assert_int_eq(lost, !ends[_i].ended);
    if (ends[_i].ended)
        return;
    expect_error(error, "ml/web: is evicted, but has not ended in time");
    ck_assert_int_eq(clock_passed_ms() - began_ms, TIMEOUT_MS);
}
END_TEST

START_TEST(a_budget_that_gives_nothing_ends_it_in_time)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_passed_ms();

    show_web();
    show_pod(FAKE_ALWAYS, web);
    answer("/eviction ", FAKE_ALWAYS, 429, SAYS_BUDGET);
    ck_assert(!drain_web(&error));
    expect_error(error, "disruption budget");
    ck_assert(lost);
    ck_assert_int_ge(clock_passed_ms() - began_ms, TIMEOUT_MS);
    ck_assert_int_lt(clock_passed_ms() - began_ms, TIMEOUT_MS + 2000);
    ck_assert_str_eq(told->str, "ml/web: waits for a PodDisruptionBudget\n");
}
END_TEST

/* What was written while a budget kept the pod counts. */
static const struct {
    struct api_pod now;
    enum drain_state state;
} waited[] = {
    {{.name = "web"}, DRAIN_STAYS}, /* nobody makes it again any more */
    {{.name = "web", .owner = "r1", .annotations = "{\"kubernetes.io/config.mirror\":\"x\"}"},
     DRAIN_STAYS},
    {{.name = "web", .owner = "r1", .phase = "Succeeded"}, DRAIN_GONE},
};

START_TEST(a_pod_that_was_waited_for_is_read_again)
{
    struct drain_pod pod = {.ns = "ml", .name = "web"};

    show_web();
    answer("/eviction ", FAKE_ALWAYS, 429, SAYS_BUDGET);
    show_pod(1, waited[_i].now);
    ck_assert(drain(&pod, 1, false, NULL));
    ck_assert_int_eq(pod.state, waited[_i].state);
    ck_assert_uint_eq(count_evictions(), 1);
    g_free(pod.why);
}
END_TEST

START_TEST(a_successor_that_does_not_come_ends_it_in_time)
{
    g_autoptr(GError) error = NULL;

    show_web();
    accept_evictions(1);
    answer("/events ", 1, 201, NULL);
    hide_pod(1, "web");
    show_ready(FAKE_ALWAYS, "r1", 1);
    ck_assert(!drain_web(&error));
    expect_error(error,
                 "its successor is not Ready in time: of its ReplicaSet's pods 1 are, 2 were");
    ck_assert(lost);
}
END_TEST

/* Between two of its evictions. */
START_TEST(who_serves_no_more_ends_nobody_else)
{
    struct drain_pod pods[] = {{.ns = "ml", .name = "a"}, {.ns = "ml", .name = "b"}};
    g_autoptr(GError) error = NULL;

    n_terms = 0;
    term_until = 1;
    show_pod(2, (struct api_pod){.name = "a", .owner = "r1"});
    show_pod(FAKE_ALWAYS, (struct api_pod){.name = "b", .owner = "r1"});
    hide_pod(FAKE_ALWAYS, "a");
    show_ready(FAKE_ALWAYS, "r1", 2);
    accept_evictions(FAKE_ALWAYS);
    ck_assert(!drain(pods, 2, false, &error));
    expect_error(error, "ml/b: this replica of gpuledger stands by");
    ck_assert_uint_eq(count_evictions(), 1);
    ck_assert_int_eq(pods[0].state, DRAIN_EVICTED);
    ck_assert_int_eq(pods[1].state, DRAIN_FAILED);
    ck_assert(!pods[1].lost);
    for (int i = 0; i < 2; i++)
        g_free(pods[i].why);
    term_until = 0;
}
END_TEST

/* How many are Ready has to be known before. */
START_TEST(nobody_ends_whose_successor_nobody_could_know)
{
    g_autoptr(GError) error = NULL;

    show_pod(2, web);
    accept_evictions(1);
    answer("GET /api/v1/namespaces/ml/pods ", 1, 403, NULL);
    ck_assert(!drain_web(&error));
    ck_assert_uint_eq(count_evictions(), 0);
}
END_TEST

/* Nobody knows whether it was done: it is not gone on with. */
START_TEST(an_eviction_without_an_answer_ends_it)
{
    g_autoptr(GError) error = NULL;

    show_web();
    script(&(struct fake_reply){
        .match = "/eviction ", .end = FAKE_NO_REPLY, .times = FAKE_ALWAYS, .chunks = {"{}"}});
    ck_assert(!drain_web(&error));
    expect_error(error, "no reply");
    ck_assert_uint_eq(count_requests("/events ", NULL), 0);
}
END_TEST

START_TEST(an_event_that_is_lost_is_told)
{
    show_web();
    accept_evictions(1);
    answer("/events ", 1, 403, NULL);
    hide_pod(1, "web");
    show_ready(1, "r1", 2);
    ck_assert(drain_web(NULL));
    ck_assert_ptr_nonnull(strstr(told->str, "ml/web: no Event could be written: "));
}
END_TEST

/* --- held ------------------------------------------------------------------------------------- */

static struct permits *held_permits;

/* After ten seconds they go on, unless it is the first of the runs. */
static bool let_go_on(void *data, GError **error)
{
    if (*(const int *)data > 0 && clock_passed_ms() >= 10000)
        permits_stop(held_permits, NULL);
    return true;
}

/* The stop key is waited for, as a budget is; who goes on then has lost nothing. */
START_TEST(it_waits_while_evictions_are_stopped)
{
    struct permits *permits = permits_new(&(struct permits_options){.stopped = true});
    struct drain_pod pod = {.ns = "ml", .name = "web"};
    g_autoptr(GError) error = NULL;

    held_permits = permits;
    permits_stop(permits, "somebody says so");
    show_pod(FAKE_ALWAYS, (struct api_pod){.name = "web", .owner = "r1", .ready = true});
    show_ready(FAKE_ALWAYS, "r1", 1);
    accept_evictions(FAKE_ALWAYS);
    const bool ok = drain_run(&(struct drain_query){.client = client,
                                                    .pods = &pod,
                                                    .n_pods = 1,
                                                    .ender = ENDER_PLAN,
                                                    .permits = permits,
                                                    .timeout_ms = 60000,
                                                    .go_on = let_go_on,
                                                    .data = (void *)&_i},
                              &error);
    ck_assert(!ok);
    if (_i == 0) { /* they stay stopped: nobody's pod is to blame */
        expect_error(error, "evictions are stopped: somebody says so");
        ck_assert_uint_eq(count_evictions(), 0);
        ck_assert(!pod.lost);
    } else {
        ck_assert_uint_eq(count_evictions(), 1);
    }
    g_free(pod.why);
    permits_free(permits);
}
END_TEST

/* --- stopped ---------------------------------------------------------------------------------- */

/* It is asked before each eviction that is sent, and after each pause. */
static const struct {
    int stops_at;
    unsigned evictions, requests;
} stops[] = {
    {1, 0, 4},  /* before the first */
    {2, 1, 5},  /* after the pause for the budget */
    {3, 1, 6},  /* before it is asked again */
    {4, 2, 9},  /* after the pause for its end */
    {5, 2, 11}, /* for its successor */
    {0, 2, 12},
};

START_TEST(what_nobody_wants_any_more_stops)
{
    g_autoptr(GError) error = NULL;

    show_web();
    answer("/eviction ", 1, 429, SAYS_BUDGET);
    accept_evictions(1);
    answer("/events ", 1, 201, NULL);
    show_pod(2, web);
    hide_pod(1, "web");
    show_ready(1, "r1", 1);
    show_ready(1, "r1", 2);
    stops_at = stops[_i].stops_at;
    ck_assert_int_eq(drain_web(&error), stops_at == 0);
    if (stops_at > 0)
        expect_error(error, "ml/web: nobody wants it");
    ck_assert_uint_eq(count_evictions(), stops[_i].evictions);
    ck_assert_uint_eq(fake_server_count(server), stops[_i].requests);
}
END_TEST

/* --- what another one has begun --------------------------------------------------------------- */

static const struct {
    struct api_pod now;
    int status; /* of the pod */
    const char *owner;
    enum drain_state state;
    unsigned requests;
} begun[] = {
    {{.name = "web"}, 200, "r1", DRAIN_STAYS, 1}, /* nobody has evicted it */
    {{.name = "web"}, 404, "r1", DRAIN_EVICTED, 3},
    {{.name = "web"}, 404, NULL, DRAIN_EVICTED, 2},
    {{.name = "web", .uid = "another"}, 200, "r1", DRAIN_EVICTED, 3},
    {{.name = "web", .phase = "Succeeded"}, 200, "r1", DRAIN_EVICTED, 3},
    {{.name = "web"}, 403, "r1", DRAIN_FAILED, 1},
};

START_TEST(what_another_one_has_begun_is_finished)
{
    struct drain_pod pod = {.ns = "ml", .name = "web", .uid = "uid-web", .n_ready = 2};
    const struct drain_query query = {
        .client = client, .pods = &pod, .n_pods = 1, .timeout_ms = TIMEOUT_MS};
    g_autoptr(GError) error = NULL;

    answer("GET /api/v1/namespaces/ml/pods/web ", FAKE_ALWAYS, begun[_i].status,
           begun[_i].status == 200 ? pod_text(begun[_i].now) : NULL);
    show_ready(1, "r1", 2);
    ck_assert_int_eq(drain_finish(&query, begun[_i].owner, &error),
                     begun[_i].state != DRAIN_FAILED);
    ck_assert_int_eq(pod.state, begun[_i].state);
    ck_assert_uint_eq(fake_server_count(server), begun[_i].requests);
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    if (begun[_i].state == DRAIN_FAILED)
        expect_error(error, "ml/web: ");
    g_free(pod.why);
}
END_TEST

START_TEST(who_is_about_to_end_is_waited_for)
{
    struct drain_pod pod = {.ns = "ml", .name = "web", .uid = "uid-web", .n_ready = 2};
    const struct drain_query query = {
        .client = client, .pods = &pod, .n_pods = 1, .timeout_ms = TIMEOUT_MS};

    web.deleted = true;
    show_pod(3, web);
    hide_pod(1, "web");
    show_ready(1, "r1", 1);
    show_ready(1, "r1", 2);
    ck_assert(drain_finish(&query, "r1", NULL));
    ck_assert_int_eq(pod.state, DRAIN_EVICTED);
    expect_list("G web; G web; G web; G web; G ml/pods; G ml/pods");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drain");
    TCase *tests = tcase_create("drain");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, who_would_come_back_or_be_lost_stays, 0, G_N_ELEMENTS(candidates));
    tcase_add_loop_test(tests, who_has_gone_by_itself_is_not_evicted, 0, G_N_ELEMENTS(ways_to_go));
    tcase_add_test(tests, all_are_tried_before_the_first_ends);
    tcase_add_loop_test(tests, nobody_ends_if_one_of_them_would_not, 0, G_N_ELEMENTS(tries));
    tcase_add_test(tests, whatever_goes_wrong_ends_it);
    tcase_add_test(tests, a_budget_its_end_and_its_successor_are_waited_for);
    tcase_add_test(tests, no_more_successors_are_waited_for_than_were_there);
    tcase_add_loop_test(tests, its_end_is_seen, 0, G_N_ELEMENTS(ends));
    tcase_add_test(tests, a_budget_that_gives_nothing_ends_it_in_time);
    tcase_add_loop_test(tests, a_pod_that_was_waited_for_is_read_again, 0, G_N_ELEMENTS(waited));
    tcase_add_test(tests, a_successor_that_does_not_come_ends_it_in_time);
    tcase_add_test(tests, nobody_ends_whose_successor_nobody_could_know);
    tcase_add_test(tests, an_eviction_without_an_answer_ends_it);
    tcase_add_test(tests, an_event_that_is_lost_is_told);
    tcase_add_test(tests, who_serves_no_more_ends_nobody_else);
    tcase_add_loop_test(tests, it_waits_while_evictions_are_stopped, 0, 2);
    tcase_add_loop_test(tests, what_nobody_wants_any_more_stops, 0, G_N_ELEMENTS(stops));
    tcase_add_loop_test(tests, what_another_one_has_begun_is_finished, 0, G_N_ELEMENTS(begun));
    tcase_add_test(tests, who_is_about_to_end_is_waited_for);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
