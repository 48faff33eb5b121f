/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server says of an eviction, and what is made of it. */
#include "evict/eviction.h"

#include "evicting_api.h"
#include "suite.h"

static const struct evictee web = {.ns = (char *)"ml", .name = (char *)"web", .uid = (char *)"u1"};

/* --- outcomes ----------------------------------------------------------------------------------- */

/* An answer that comes so often; then nothing else is scripted, which is a 501. */
struct reply {
    int status;
    const char *retry_after, *text;
    enum fake_end end;
    int times;
};

static const struct {
    struct reply replies[2];
    enum eviction eviction;
    unsigned requests;
    int64_t passed_ms;
    const char *error; /* NULL: none */
} outcomes[] = {
    {{{201, NULL, NULL, FAKE_KEEP, 1}}, EVICTION_DONE, 1, 0, NULL},
    {{{200, NULL, NULL, FAKE_KEEP, 1}}, EVICTION_DONE, 1, 0, NULL},
    {{{404, NULL, SAYS_GONE, FAKE_KEEP, 1}}, EVICTION_DONE, 1, 0, NULL},
    /* A proxy's. */
    {{{404, NULL, "404 page not found", FAKE_KEEP, 1}}, EVICTION_UNKNOWN, 1, 0, "404"},
    /* Another pod has the name, or the API server would not have it: nothing was done. */
    {{{409, NULL, NULL, FAKE_KEEP, 1}}, EVICTION_FAILED, 1, 0, "409"},
    {{{403, NULL, NULL, FAKE_KEEP, 1}}, EVICTION_FAILED, 1, 0, "403"},
    {{{422, NULL, NULL, FAKE_KEEP, 1}}, EVICTION_FAILED, 1, 0, "422"},
    /* A budget is not asked again at once. */
    {{{429, NULL, SAYS_BUDGET, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_LATER, 1, 0, "disruption budget"},
    {{{429, "1", SAYS_BUDGET, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_LATER, 1, 0, "disruption budget"},
    {{{429, "10", SAYS_BUDGET, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_LATER, 1, 0, "disruption budget"},
    /* KubeVirt moves the machine first. */
    {{{429, NULL, SAYS_MOVING, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_MOVING, 1, 0, "evacuation"},
    /* No budget: the API server has too much to do. */
    {{{429, "10", SAYS_OVERLOAD, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_FAILED, 1, 0, "Too many"},
    {{{429, "1", SAYS_OVERLOAD, FAKE_KEEP, 1}, {201, NULL, NULL, FAKE_KEEP, 1}},
     EVICTION_DONE,
     2,
     1000,
     NULL},
    /* That is a refusal, too: kube-apiserver has done nothing. */
    {{{500, NULL, SAYS_BUDGETS, FAKE_KEEP, FAKE_ALWAYS}},
     EVICTION_FAILED,
     1,
     0,
     "more than one PodDisruptionBudget"},
    {{{500, NULL, NULL, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_UNKNOWN, 4, 700, "500"},
    {{{504, NULL, NULL, FAKE_KEEP, FAKE_ALWAYS}}, EVICTION_UNKNOWN, 4, 700, "504"},
    {{{503, NULL, NULL, FAKE_KEEP, 1}, {404, NULL, SAYS_GONE, FAKE_KEEP, 1}},
     EVICTION_DONE,
     2,
     100,
     NULL},
    /* It may have arrived. */
    {{{201, NULL, NULL, FAKE_NO_REPLY, FAKE_ALWAYS}}, EVICTION_UNKNOWN, 4, 700, "no reply"},
    {{{201, NULL, NULL, FAKE_NO_REPLY, 1}, {404, NULL, SAYS_GONE, FAKE_KEEP, 1}},
     EVICTION_DONE,
     2,
     100,
     NULL},
    /* So may it where only the second attempt is refused. */
    {{{201, NULL, NULL, FAKE_NO_REPLY, 1}, {403, NULL, NULL, FAKE_KEEP, 1}},
     EVICTION_UNKNOWN,
     2,
     100,
     "403"},
    /* Another pod has the name by then: the first attempt may have ended the one that was meant. */
    {{{504, NULL, NULL, FAKE_KEEP, 1}, {409, NULL, NULL, FAKE_KEEP, 1}},
     EVICTION_UNKNOWN,
     2,
     100,
     "409"},
    {{{429, "1", SAYS_OVERLOAD, FAKE_KEEP, 1}, {409, NULL, NULL, FAKE_KEEP, 1}},
     EVICTION_FAILED,
     2,
     1000,
     "409"},
    {{{201, NULL, NULL, FAKE_NO_REPLY, 1}, {429, "10", SAYS_OVERLOAD, FAKE_KEEP, 1}},
     EVICTION_UNKNOWN,
     2,
     100,
     "Too many"},
    /* The first one may have what the budget had to give, and end its pod yet. */
    {{{503, NULL, NULL, FAKE_KEEP, 1}, {429, NULL, SAYS_BUDGET, FAKE_KEEP, 1}},
     EVICTION_DOUBTED,
     2,
     100,
     "disruption budget"},
    {{{201, NULL, NULL, FAKE_NO_REPLY, 1}, {429, NULL, SAYS_BUDGET, FAKE_KEEP, 1}},
     EVICTION_DOUBTED,
     2,
     100,
     "disruption budget"},
    {{{429, "1", SAYS_OVERLOAD, FAKE_KEEP, 1}, {429, NULL, SAYS_BUDGET, FAKE_KEEP, 1}},
     EVICTION_LATER,
     2,
     1000,
     "disruption budget"},
};

START_TEST(each_answer_has_its_outcome)
{
    const int64_t began_ms = clock_passed_ms();
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < 2 && outcomes[_i].replies[i].status; i++) {
        const struct reply *reply = &outcomes[_i].replies[i];
        const char *headers = reply->retry_after
                                  ? keep(g_strdup_printf("Retry-After: %s\r\n", reply->retry_after))
                                  : NULL;
        script(&(struct fake_reply){.match = "POST /api/v1/namespaces/ml/pods/web/eviction ",
                                    .status = reply->status,
                                    .headers = headers,
                                    .end = reply->end,
                                    .times = reply->times,
                                    .chunks = {reply->text ? reply->text : "{}"}});
    }
    ck_assert_int_eq(eviction_send(client, &web, false, &error), outcomes[_i].eviction);
    ck_assert_uint_eq(fake_server_count(server), outcomes[_i].requests);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    ck_assert_int_eq(clock_passed_ms() - began_ms, outcomes[_i].passed_ms);
    if (outcomes[_i].error)
        ck_assert_msg(error && strstr(error->message, outcomes[_i].error), "%s",
                      error ? error->message : "no error");
    else
        ck_assert_ptr_null(error);
}
END_TEST

START_TEST(what_was_never_sent_was_not_done)
{
    g_autoptr(GError) error = NULL;

    fake_server_refuse(server, true);
    ck_assert_int_eq(eviction_send(client, &web, false, &error), EVICTION_FAILED);
    ck_assert_ptr_nonnull(strstr(error->message, "no connection"));
    fake_server_refuse(server, false);
}
END_TEST

/* Whichever attempt arrives, it does nothing. */
START_TEST(what_was_only_tried_is_not_doubted)
{
    answer("/eviction ", 1, 503, NULL);
    answer("/eviction ", 1, 429, SAYS_BUDGET);
    ck_assert_int_eq(eviction_send(client, &web, true, NULL), EVICTION_LATER);
    ck_assert_uint_eq(fake_server_count(server), 2);
}
END_TEST

/* --- the request -------------------------------------------------------------------------------- */

START_TEST(the_pod_of_that_uid_is_evicted)
{
    const bool try = _i == 1;

    accept_evictions(1);
    ck_assert_int_eq(eviction_send(client, &web, try, NULL), EVICTION_DONE);
    g_autofree char *request = fake_server_request(server, 0);
    const char *body = strstr(request, "\r\n\r\n") + 4;
    ck_assert_str_eq(body,
                     try ? "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                           "\"name\":\"web\",\"namespace\":\"ml\"},\"deleteOptions\":{"
                           "\"preconditions\":{\"uid\":\"u1\"},\"dryRun\":[\"All\"]}}"
                         : "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                           "\"name\":\"web\",\"namespace\":\"ml\"},\"deleteOptions\":{"
                           "\"preconditions\":{\"uid\":\"u1\"}}}");
}
END_TEST

START_TEST(an_event_is_posted_once)
{
    g_autoptr(GError) error = NULL;
    const struct pod_event events[] = {
        {POD_EVENT_MOVED, "ml", "web", "u1", "why"},
        {POD_EVENT_PLAN_MOVED, NULL, "n1", "n1", "moved"},
        {POD_EVENT_PLAN_STOPPED, NULL, "n1", "n1", "stopped"},
    };

    answer("/events ", FAKE_ALWAYS, 500, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
        ck_assert_int_eq(eviction_tell(client, &events[i], i == 0 ? &error : NULL),
                         OUTCOME_UNKNOWN);
    expect_list("P ml/events; P default/events; P default/events");
    ck_assert_uint_eq(count_requests("/ml/events ", "\"reason\":\"GPUPodMoved\""), 1);
    ck_assert_uint_eq(count_requests("/ml/events ", "\"uid\":\"u1\""), 1);
    ck_assert_uint_eq(count_requests("/ml/events ", "\"note\":\"why\""), 1);
    ck_assert_uint_eq(count_requests(NULL, "\"reason\":\"GPUPlanMoved\""), 1);
    ck_assert_uint_eq(count_requests(NULL, "\"reason\":\"GPUPlanStopped\""), 1);
    ck_assert_uint_eq(count_requests(NULL, "\"type\":\"Warning\""), 1);
    ck_assert_uint_eq(count_requests(NULL, "\"note\":\"stopped\""), 1);
}
END_TEST

/* --- pods --------------------------------------------------------------------------------------- */

static const struct {
    struct api_pod pod;
    bool placed, ended, ready, ends;
    unsigned ties; /* beside POD_TIE_BARE */
} pods[] = {
    {{.name = "web"}, .ended = false},
    {{.name = "web", .node = "n1"}, .placed = true},
    {{.name = "web", .annotations = "{\"kubernetes.io/config.mirror\":\"x\"}"},
     .ties = POD_TIE_MIRROR},
    {{.name = "web", .annotations = "{\"gang.scheduling.koordinator.sh/name\":\"g\"}"},
     .ties = POD_TIE_GROUP},
    {{.name = "web", .annotations = "{\"karpenter.sh/do-not-disrupt\":\"true\"}"},
     .ties = POD_TIE_OPT_OUT},
    {{.name = "web", .phase = "Succeeded"}, .ended = true},
    {{.name = "web", .phase = "Failed"}, .ended = true},
    {{.name = "web", .phase = "Pending"}, .ended = false},
    {{.name = "web", .ready = true}, .ready = true},
    {{.name = "web", .ready = true, .deleted = true}, .ends = true},
};

START_TEST(a_pod_is_read_as_it_is)
{
    g_auto(evictee) read = {0};

    show_pod(1, pods[_i].pod);
    ck_assert_int_eq(evictee_read(client, "ml", "web", &read, NULL), OUTCOME_OK);
    ck_assert_str_eq(read.ns, "ml");
    ck_assert_str_eq(read.name, "web");
    ck_assert_str_eq(read.uid, "uid-web");
    ck_assert_ptr_null(read.owner);
    ck_assert_uint_eq(read.ties, pods[_i].ties | POD_TIE_BARE);
    ck_assert_int_eq(read.placed, pods[_i].placed);
    ck_assert_int_eq(read.ended, pods[_i].ended);
    ck_assert_int_eq(read.ready, pods[_i].ready);
    ck_assert_int_eq(read.ends, pods[_i].ends);
}
END_TEST

START_TEST(what_is_no_pod_is_not_read)
{
    static const char *const texts_of[] = {"{}", "nonsense", "{\"metadata\":{\"name\":\"web\"}}"};
    g_auto(evictee) read = {0};
    g_autoptr(GError) error = NULL;

    answer("GET", 1, 200, texts_of[_i]);
    ck_assert_int_eq(evictee_read(client, "ml", "web", &read, &error), OUTCOME_REFUSED);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_null(read.uid);
}
END_TEST

START_TEST(only_ready_pods_of_the_controller_count)
{
    static const struct api_pod all[] = {
        {.name = "a", .owner = "r1", .kind = "StatefulSet", .ready = true},
        {.name = "b", .owner = "r1", .ready = true},
        {.name = "ends", .owner = "r1", .ready = true, .deleted = true},
        {.name = "starts", .owner = "r1"},
        {.name = "other", .owner = "r2", .ready = true},
        {.name = "alone", .ready = true},
    };
    g_autoptr(GString) list = g_string_new("{\"items\":[{}");
    guint n = 77;

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        g_string_append_printf(list, ",%s", pod_text(all[i]));
    g_string_append(list, "]}");
    answer("GET /api/v1/namespaces/ml/pods ", 1, 200, list->str);
    ck_assert_int_eq(eviction_count_ready(client, "ml", "r1", &n, NULL), OUTCOME_OK);
    ck_assert_uint_eq(n, 2);
    answer("GET", 1, 403, NULL);
    ck_assert_int_ne(eviction_count_ready(client, "ml", "r1", &n, NULL), OUTCOME_OK);
    ck_assert_uint_eq(n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("eviction");
    TCase *tests = tcase_create("eviction");

    tcase_add_checked_fixture(tests, evicting_begin, evicting_end);
    tcase_add_loop_test(tests, each_answer_has_its_outcome, 0, G_N_ELEMENTS(outcomes));
    tcase_add_test(tests, what_was_never_sent_was_not_done);
    tcase_add_test(tests, what_was_only_tried_is_not_doubted);
    tcase_add_loop_test(tests, the_pod_of_that_uid_is_evicted, 0, 2);
    tcase_add_test(tests, an_event_is_posted_once);
    tcase_add_loop_test(tests, a_pod_is_read_as_it_is, 0, G_N_ELEMENTS(pods));
    tcase_add_loop_test(tests, what_is_no_pod_is_not_read, 0, 3);
    tcase_add_test(tests, only_ready_pods_of_the_controller_count);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
