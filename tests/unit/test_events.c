/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/events.h"

#include "base/metrics.h"
#include "scripted_api.h"
#include "stopped_clock.h"
#include "suite.h"
#include "wire/kubernetes.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define CREATE "POST /apis/events.k8s.io/v1/namespaces/ml/events "
#define UPDATE "PATCH /apis/events.k8s.io/v1/namespaces/ml/events/"

static struct events *events;
static uint64_t before[POD_EVENT_RESULT_N];

static void setup(void)
{
    api_begin();
    for (unsigned i = 0; i < POD_EVENT_RESULT_N; i++)
        before[i] = metrics_counted(COUNTER_POD_EVENTS, i);
}

static void teardown(void)
{
    g_clear_pointer(&events, events_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
}

static void answer(const char *match, int status, int times)
{
    fake_server_script(server, &(struct fake_reply){.match = match,
                                                    .status = status,
                                                    .times = times,
                                                    .chunks = {"{\"kind\":\"Status\"}"}});
}

static void start(const struct events_options *options)
{
    events = events_start(client, options, NULL);
    ck_assert_ptr_nonnull(events);
}

static void post(enum pod_event_cause cause, const char *pod, const char *note)
{
    g_autofree char *uid = g_strdup_printf("uid-%s", pod);
    events_post(events, &(struct pod_event){cause, "ml", pod, uid, note});
}

static uint64_t counted(enum pod_event_result result)
{
    return metrics_counted(COUNTER_POD_EVENTS, result) - before[result];
}

/* Until that many came to that end. */
static void await(enum pod_event_result result, uint64_t n)
{
    while (counted(result) < n)
        usleep(1000); /* of real time */
    ck_assert_uint_eq(counted(result), n);
}

static char *body_of(unsigned request)
{
    g_autofree char *text = fake_server_request(server, request);
    return g_strdup(strstr(text, "\r\n\r\n") + 4);
}

/* What follows a key, up to the next quote. */
static char *value_of(const char *json, const char *key)
{
    g_autofree char *start = g_strdup_printf("\"%s\":\"", key);
    const char *at = strstr(json, start);
    ck_assert_msg(at, "%s", json);
    at += strlen(start);
    return g_strndup(at, strcspn(at, "\""));
}

/* --- what is written ------------------------------------------------------------------------- */

START_TEST(an_event_is_written)
{
    answer(CREATE, 201, 0);
    start(NULL);
    post(POD_EVENT_NO_CARD, "train-0", "No card.");
    await(POD_EVENT_RESULT_WRITTEN, 1);
    g_autofree char *body = body_of(0);
    g_autofree char *name = value_of(body, "name");
    g_autofree char *time = value_of(body, "eventTime");

    ck_assert_msg(g_regex_match_simple("^train-0\\.[0-9a-f]{16}$", name, 0, 0), "%s", name);
    ck_assert_msg(g_regex_match_simple("^20..-..-..T..:..:..\\.[0-9]{6}Z$", time, 0, 0), "%s", time);
    ck_assert_ptr_nonnull(strstr(body, "\"reason\":\"GPUCardUnknown\",\"action\":\"Auditing\""));
    ck_assert_ptr_nonnull(strstr(body, "\"reportingController\":\"gpuledger.io/extender\""));
    ck_assert_ptr_nonnull(strstr(body, "\"name\":\"train-0\",\"uid\":\"uid-train-0\"}"));
    ck_assert_ptr_nonnull(strstr(body, "\"note\":\"No card.\"}"));
}
END_TEST

START_TEST(a_node_has_events_in_the_default_namespace)
{
    answer("POST /apis/events.k8s.io/v1/namespaces/default/events ", 201, 1);
    start(NULL);
    events_post(events, &(struct pod_event){POD_EVENT_LEFT_OUT, NULL, "n1", "n1", "why"});
    await(POD_EVENT_RESULT_WRITTEN, 1);
    g_autofree char *request = fake_server_request(server, 0);
    ck_assert_msg(strstr(request, "\"namespace\":\"default\"},") &&
                      strstr(request, "\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Node\","
                                      "\"name\":\"n1\",\"uid\":\"n1\"}"),
                  "%s", request);
}
END_TEST

START_TEST(long_words_are_cut)
{
    g_autoptr(GString) pod = g_string_new(NULL);
    g_autoptr(GString) note = g_string_new(NULL);

    while (pod->len < 253)
        g_string_append(pod, "ab.-");
    g_string_truncate(pod, 253);
    while (note->len < EVENT_NOTE_MAX + 100)
        g_string_append(note, "€");
    answer("POST ", 201, 0);
    start(NULL);
    post(POD_EVENT_NO_CARD, pod->str, note->str);
    await(POD_EVENT_RESULT_WRITTEN, 1);
    g_autofree char *body = body_of(0);
    g_autofree char *name = value_of(body, "name");
    g_autofree char *said = value_of(body, "note");

    ck_assert_uint_le(strlen(name), EVENT_NAME_MAX);
    ck_assert_msg(g_regex_match_simple("^[a-z0-9.-]+[a-z0-9]\\.[0-9a-f]{16}$", name, 0, 0), "%s",
                  name);
    ck_assert_uint_eq(strlen(said), EVENT_NOTE_MAX / 3 * 3);
    ck_assert(g_utf8_validate(said, -1, NULL));
}
END_TEST

START_TEST(a_namespace_cannot_lead_elsewhere)
{
    start(NULL);
    events_post(events, &(struct pod_event){POD_EVENT_NO_CARD, "a/../b", "p", "u", "n"});
    await(POD_EVENT_RESULT_FAILED, 1);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

/* --- what is said again ---------------------------------------------------------------------- */

START_TEST(what_is_said_again_is_counted)
{
    answer(CREATE, 201, 0);
    start(NULL);
    for (int i = 0; i < 5; i++)
        post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 1);
    for (int i = 0; i < 5; i++)
        post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_MERGED, 9);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

START_TEST(another_pod_or_cause_is_another_event)
{
    answer(CREATE, 201, 3);
    start(NULL);
    post(POD_EVENT_NO_CARD, "p", "n");
    post(POD_EVENT_NO_CARD, "q", "n");
    post(POD_EVENT_UNASSIGNED, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 3);
}
END_TEST

START_TEST(a_series_goes_on_after_a_pause)
{
    answer(CREATE, 201, 0);
    answer(UPDATE, 200, FAKE_ALWAYS);
    start(&(struct events_options){.repeat_ms = 1000});
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 1);
    post(POD_EVENT_NO_CARD, "p", "n"); /* too early */
    clock_skip_ms(1050);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 2);
    g_autofree char *created = body_of(0);
    g_autofree char *name = value_of(created, "name");
    g_autofree char *request = fake_server_request(server, 1);
    g_autofree char *line = g_strconcat(UPDATE, name, " HTTP/1.1\r\n", NULL);
    g_autofree char *body = body_of(1);

    ck_assert_msg(g_str_has_prefix(request, line), "%s", request);
    ck_assert_ptr_nonnull(strstr(request, "application/merge-patch+json"));
    ck_assert_msg(g_str_has_prefix(body, "{\"series\":{\"count\":3,\"lastObservedTime\":\"20"), "%s",
                  body);
    clock_skip_ms(1050); /* the pause has doubled */
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_MERGED, 2);
}
END_TEST

START_TEST(a_series_that_has_expired_begins_anew)
{
    answer(CREATE, 201, 2);
    answer(UPDATE, 404, 0);
    start(&(struct events_options){.repeat_ms = 1});
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 1);
    clock_skip_ms(5);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_FAILED, 1);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 2);
}
END_TEST

/* --- what is too much ------------------------------------------------------------------------ */

static void post_many(enum pod_event_cause cause, const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *pod = g_strdup_printf("%s%d", prefix, i);
        post(cause, pod, "n");
    }
}

START_TEST(each_cause_has_a_budget)
{
    answer(CREATE, 201, FAKE_ALWAYS);
    start(&(struct events_options){.burst = 3, .refill_ms = 60000});
    post_many(POD_EVENT_NO_CARD, "p", 10);
    await(POD_EVENT_RESULT_WRITTEN, 3);
    await(POD_EVENT_RESULT_LIMITED, 7);
    post_many(POD_EVENT_UNASSIGNED, "p", 10);
    await(POD_EVENT_RESULT_WRITTEN, 6);
    await(POD_EVENT_RESULT_LIMITED, 14);
}
END_TEST

START_TEST(all_causes_have_a_budget)
{
    answer(CREATE, 201, FAKE_ALWAYS);
    start(&(struct events_options){.burst = 3, .refill_ms = 60000});
    for (unsigned cause = 0; cause < POD_EVENT_N; cause++)
        post_many((enum pod_event_cause)cause, "p", 3);
    await(POD_EVENT_RESULT_WRITTEN, 12);
    await(POD_EVENT_RESULT_LIMITED, POD_EVENT_N * 3 - 12);
}
END_TEST

START_TEST(a_budget_grows_again)
{
    answer(CREATE, 201, FAKE_ALWAYS);
    start(&(struct events_options){.burst = 1, .refill_ms = 50});
    post_many(POD_EVENT_NO_CARD, "p", 5);
    await(POD_EVENT_RESULT_WRITTEN, 1);
    await(POD_EVENT_RESULT_LIMITED, 4);
    clock_skip_ms(60);
    post(POD_EVENT_NO_CARD, "p4", "n"); /* said for the first time, then */
    await(POD_EVENT_RESULT_WRITTEN, 2);
}
END_TEST

/* The API server hangs: nobody who posts waits for it. */
START_TEST(a_slow_server_blocks_nobody)
{
    fake_server_script(server, &(struct fake_reply){.match = CREATE, .end = FAKE_HANG});
    answer(CREATE, 201, FAKE_ALWAYS);
    start(&(struct events_options){.burst = 100, .queue_max = 4});
    post(POD_EVENT_NO_CARD, "first", "n");
    ck_assert(fake_server_wait(server, 1, PATIENT_MS));
    post_many(POD_EVENT_NO_CARD, "p", 50);
    await(POD_EVENT_RESULT_QUEUE_FULL, 46);
}
END_TEST

/* --- when it cannot be done ------------------------------------------------------------------ */

START_TEST(without_the_right_it_pauses)
{
    answer(CREATE, 403, 0);
    start(NULL);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_FAILED, 1);
    post_many(POD_EVENT_NO_CARD, "q", 5);
    await(POD_EVENT_RESULT_FAILED, 6);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

START_TEST(a_namespace_that_goes_away_silences_no_other)
{
    fake_server_script(
        server,
        &(struct fake_reply){
            .match = CREATE,
            .status = 403,
            .chunks = {
                "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"events."
                "events.k8s.io "
                "\\\"p.1\\\" is forbidden: unable to create new content in namespace ns because "
                "it is being terminated\"}"}});
    answer(CREATE, 201, 0);
    start(NULL);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_FAILED, 1);
    post(POD_EVENT_NO_CARD, "q", "n");
    await(POD_EVENT_RESULT_WRITTEN, 1);
}
END_TEST

START_TEST(what_failed_is_written_when_it_is_said_again)
{
    answer(CREATE, 422, 0);
    answer(CREATE, 201, 0);
    start(NULL);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_FAILED, 1);
    post(POD_EVENT_NO_CARD, "p", "n");
    await(POD_EVENT_RESULT_WRITTEN, 1);
}
END_TEST

/* --- many at once ---------------------------------------------------------------------------- */

static void *keep_posting(void *data)
{
    const char *prefix = data;

    for (int i = 0; i < 3000; i++) {
        g_autofree char *pod = g_strdup_printf("%s%d", prefix, i);
        post((enum pod_event_cause)(i % POD_EVENT_N), pod, "n");
    }
    return NULL;
}

START_TEST(more_pods_than_can_be_remembered)
{
    static char a[] = "a", b[] = "b";
    pthread_t threads[2];

    answer(CREATE, 201, FAKE_ALWAYS);
    answer(UPDATE, 200, FAKE_ALWAYS);
    start(&(struct events_options){.burst = 100000, .queue_max = 100000, .repeat_ms = 1});
    pthread_create(&threads[0], NULL, keep_posting, a);
    pthread_create(&threads[1], NULL, keep_posting, b);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    events_free(g_steal_pointer(&events)); /* with much left to write */
    events_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("events");
    TCase *tests = tcase_create("events");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, an_event_is_written);
    tcase_add_test(tests, a_node_has_events_in_the_default_namespace);
    tcase_add_test(tests, long_words_are_cut);
    tcase_add_test(tests, a_namespace_cannot_lead_elsewhere);
    tcase_add_test(tests, what_is_said_again_is_counted);
    tcase_add_test(tests, another_pod_or_cause_is_another_event);
    tcase_add_test(tests, a_series_goes_on_after_a_pause);
    tcase_add_test(tests, a_series_that_has_expired_begins_anew);
    tcase_add_test(tests, each_cause_has_a_budget);
    tcase_add_test(tests, all_causes_have_a_budget);
    tcase_add_test(tests, a_budget_grows_again);
    tcase_add_test(tests, a_slow_server_blocks_nobody);
    tcase_add_test(tests, without_the_right_it_pauses);
    tcase_add_test(tests, a_namespace_that_goes_away_silences_no_other);
    tcase_add_test(tests, what_failed_is_written_when_it_is_said_again);
    tcase_add_test(tests, more_pods_than_can_be_remembered);

    return suite_run(suite);
}
