/* SPDX-License-Identifier: Apache-2.0 */
/* What a source of usage says, what follows from one answer after the other, and a server that is slow,
 * lies, says too much, or is gone. */
#include "usage/usage_source.h"

#include "base/metrics.h"
#include "fake_server.h"
#include "gate/idle_pods/idle_pods.h"
#include "suite.h"
#include "usage/usage_history.h"

#include <gpuledger/error.h>
#include <string.h>
#include <unistd.h>

#define NOW_MS INT64_C(1767225600000)
#define MINUTE INT64_C(60000)
#define VECTOR(rows)                                                                               \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" rows "]}}"
#define ROW_AT(labels, at, value) "{\"metric\":{" labels "},\"value\":[" at ",\"" value "\"]}"
#define ROW(labels, value) ROW_AT(labels, "1767225600.5", value)
#define POD(name, value) ROW("\"namespace\":\"ml\",\"pod\":\"" name "\"", value)

/* --- an answer ------------------------------------------------------------------------------- */

static bool decode(const char *text, struct usage_reading *ret_reading, GError **error)
{
    return usage_answer_read(text, strlen(text), NOW_MS, ret_reading, error);
}

static double percent(const struct usage_reading *reading, const char *pod)
{
    const double *known = g_hash_table_lookup(reading->percents, pod);
    return known ? *known : -1;
}

START_TEST(the_labels_of_the_pod_go_before_those_of_the_exporter)
{
    struct usage_reading reading;

    ck_assert(decode(VECTOR(ROW("\"namespace\":\"monitoring\",\"pod\":\"dcgm-1\","
                                "\"exported_namespace\":\"ml\",\"exported_pod\":\"a\"",
                                "7.5") "," ROW("\"namespace\":\"ml\",\"pod\":\"b\"",
                                               "0") "," ROW("\"exported_namespace\":\"ml\","
                                                            "\"namespace\":\"x\",\"pod\":\"c\"",
                                                            "1") "," ROW("\"gpu\":\"0\"", "99")),
                     &reading, NULL));
    ck_assert_uint_eq(g_hash_table_size(reading.percents), 3);
    ck_assert_double_eq(percent(&reading, "ml/a"), 7.5);
    ck_assert_double_eq(percent(&reading, "ml/b"), 0);
    ck_assert_double_eq(percent(&reading, "x/c"), 1);
    ck_assert_uint_eq(reading.n_series, 4);
    usage_reading_clear(&reading);
}
END_TEST

START_TEST(a_pod_is_as_busy_as_its_busiest_card)
{
    struct usage_reading reading;

    ck_assert(decode(VECTOR(POD("a", "3") "," POD("a", "80") "," POD("a", "1")), &reading, NULL));
    ck_assert_double_eq(percent(&reading, "ml/a"), 80);
    usage_reading_clear(&reading);
}
END_TEST

/* One bad value, and the pod is not known, whatever its other cards have. */
START_TEST(what_is_no_percentage_is_not_known)
{
    static const char *const bad[] = {"NaN", "+Inf", "-1", "101", "1e400", "0x", "", "5%"};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strdup_printf(
            VECTOR(POD("a", "0") "," POD("a", "%s") "," POD("a", "0") "," POD("b", "2")), bad[i]);
        struct usage_reading reading;
        ck_assert(decode(text, &reading, NULL));
        ck_assert_msg(percent(&reading, "ml/a") == -1, "%s", bad[i]);
        ck_assert_double_eq(percent(&reading, "ml/b"), 2);
        ck_assert_uint_eq(reading.n_bad, 1);
        usage_reading_clear(&reading);
    }
}
END_TEST

START_TEST(what_names_no_pod_is_left_out)
{
    struct usage_reading reading;

    ck_assert(decode(
        VECTOR(POD("", "0") "," POD("A", "0") "," POD("a/b", "0") "," POD("a\\n", "0") "," ROW(
            "\"namespace\":7,\"pod\":\"a\"", "0") ",{\"value\":[1767225600,\"0\"]}"),
        &reading, NULL));
    ck_assert_uint_eq(g_hash_table_size(reading.percents), 0);
    usage_reading_clear(&reading);
    ck_assert(decode(VECTOR(""), &reading, NULL));
    usage_reading_clear(&reading);
}
END_TEST

START_TEST(an_answer_that_is_none_is_refused)
{
    static const struct {
        const char *text, *why;
        int code;
    } rows[] = {
        {"", "", GPULEDGER_ERROR_INVALID},
        {"[]", "", GPULEDGER_ERROR_INVALID},
        {"{}", "status", GPULEDGER_ERROR_INVALID},
        {"{\"status\":\"error\",\"error\":\"parse error\"}", "parse error",
         GPULEDGER_ERROR_INVALID},
        {"{\"status\":\"success\"}", "vector", GPULEDGER_ERROR_INVALID},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}", "matrix",
         GPULEDGER_ERROR_INVALID},
        {"{\"status\":\"success\",\"warnings\":[\"a store is away\"],\"data\":"
         "{\"resultType\":\"vector\",\"result\":[]}}",
         "a store is away", GPULEDGER_ERROR_INVALID},
        {VECTOR("{\"metric\":{},\"value\":[]}"), "no time", GPULEDGER_ERROR_INVALID},
        {VECTOR("7"), "no time", GPULEDGER_ERROR_INVALID},
        {VECTOR(ROW_AT("", "1767225479", "0")), "121 s away", GPULEDGER_ERROR_RANGE},
        {VECTOR(ROW_AT("", "1767225721", "0")), "121 s away", GPULEDGER_ERROR_RANGE},
        {VECTOR(POD("a", "0") "," ROW_AT("", "1", "0")), "away", GPULEDGER_ERROR_RANGE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        struct usage_reading reading;
        ck_assert_msg(!decode(rows[i].text, &reading, &error), "%s", rows[i].text);
        ck_assert_msg(g_error_matches(error, GPULEDGER_ERROR, rows[i].code), "%s: %s", rows[i].text,
                      error->message);
        ck_assert_msg(strstr(error->message, rows[i].why), "%s", error->message);
    }
}
END_TEST

START_TEST(of_too_many_pods_the_rest_is_not_known)
{
    g_autoptr(GString) rows = g_string_new(NULL);
    struct usage_reading reading;

    for (int i = 0; i < USAGE_PODS_MAX + 2; i++)
        g_string_append_printf(rows, "%s" POD("p%d", "0"), i ? "," : "", i);
    g_autofree char *text = g_strdup_printf(VECTOR("%s"), rows->str);
    ck_assert(decode(text, &reading, NULL));
    ck_assert_uint_eq(g_hash_table_size(reading.percents), USAGE_PODS_MAX);
    ck_assert_uint_eq(reading.n_cut, 2);
    usage_reading_clear(&reading);
}
END_TEST

/* --- one after the other ---------------------------------------------------------------------- */

static struct usage_history *history;

static void take(int64_t now_ms, const char *text)
{
    struct usage_reading reading;

    ck_assert(decode(text, &reading, NULL));
    usage_history_take(history, &reading, now_ms);
    usage_reading_clear(&reading);
}

/* For how many minutes the pod counts as idle; 0: it does not. */
static int64_t idle_min(const char *name, int64_t created_ms, int64_t now_ms)
{
    g_autoptr(idleness) told = usage_history_tell(history);
    struct allocation pod = {.ns = "ml", .name = name, .created_s = created_ms / 1000};
    const int64_t since_ms = idleness_since(told, &pod, now_ms * 1000000);

    return since_ms > 0 ? (now_ms - since_ms) / MINUTE : 0;
}

static void begin_history(void)
{
    history = usage_history_new(
        &(struct usage_rule){.below = 5, .after_ms = 30 * MINUTE, .gap_ms = 3 * MINUTE});
}

static void end_history(void)
{
    usage_history_free(history);
}

START_TEST(idle_is_who_has_been_quiet_for_long_enough)
{
    for (int64_t at = 0; at <= 30; at++) {
        take(NOW_MS + at * MINUTE, at == 10
                                       ? VECTOR(POD("a", "4.9") "," POD("b", "5") "," POD("c", "0"))
                                       : VECTOR(POD("a", "0") "," POD("b", "0")));
        ck_assert_int_eq(idle_min("a", 0, NOW_MS + at * MINUTE), at == 30 ? 30 : 0);
    }
    const int64_t now_ms = NOW_MS + 30 * MINUTE;
    ck_assert_int_eq(idle_min("b", 0, now_ms), 0); /* 5 is not below 5 */
    ck_assert_int_eq(idle_min("c", 0, now_ms), 0);
    ck_assert_int_eq(idle_min("d", 0, now_ms), 0);
    /* A later pod of the same name. */
    ck_assert_int_eq(idle_min("a", now_ms - 10 * MINUTE, now_ms), 0);
    take(now_ms + MINUTE, VECTOR(POD("b", "0")));
    ck_assert_int_eq(idle_min("a", 0, now_ms + MINUTE), 0); /* not known any more */
    take(now_ms + 2 * MINUTE, VECTOR(POD("a", "0")));
    ck_assert_int_eq(idle_min("a", 0, now_ms + 2 * MINUTE), 0); /* and then anew */
}
END_TEST

START_TEST(what_is_old_says_nothing)
{
    for (int64_t at = 0; at <= 40; at++)
        take(NOW_MS + at * MINUTE, VECTOR(POD("a", "0")));
    const int64_t last_ms = NOW_MS + 40 * MINUTE;
    ck_assert_int_eq(idle_min("a", 0, last_ms + 3 * MINUTE - 1), 42);
    ck_assert_int_eq(idle_min("a", 0, last_ms + 3 * MINUTE), 0);
    take(last_ms + 3 * MINUTE, VECTOR(POD("a", "0"))); /* one answer in between was missed */
    ck_assert_int_eq(idle_min("a", 0, last_ms + 3 * MINUTE), 43);
    take(last_ms + 6 * MINUTE + 1, VECTOR(POD("a", "0")));
    ck_assert_int_eq(idle_min("a", 0, last_ms + 6 * MINUTE + 1), 0);
}
END_TEST

START_TEST(a_clock_that_is_set_back_proves_nothing)
{
    for (int64_t at = 0; at <= 40; at++)
        take(NOW_MS + at * MINUTE, VECTOR(POD("a", "0")));
    take(NOW_MS + 39 * MINUTE, VECTOR(POD("a", "0")));
    ck_assert_int_eq(idle_min("a", 0, NOW_MS + 39 * MINUTE), 0);
}
END_TEST

/* --- a server --------------------------------------------------------------------------------- */

static struct fake_server *server;
static struct store *known;
static uint64_t before[USAGE_RESULT_N];
static char *scratch; /* what replies borrow */

static void begin_server(void)
{
    server = fake_server_new();
    known = store_new(&(struct store_options){0});
    for (unsigned i = 0; i < USAGE_RESULT_N; i++)
        before[i] = metrics_counted(COUNTER_USAGE, i);
}

static void end_server(void)
{
    fake_server_free(server);
    store_free(known);
    g_clear_pointer(&scratch, g_free);
}

/* Of now, or of as many seconds before. */
static const char *answer_of(int64_t age_s)
{
    g_free(scratch);
    scratch = g_strdup_printf(
        VECTOR(ROW_AT("\"namespace\":\"ml\",\"pod\":\"a\"", "%" G_GINT64_FORMAT, "0")),
        g_get_real_time() / 1000000 - age_s);
    return scratch;
}

static void await(enum usage_result result, uint64_t n)
{
    const int64_t until = g_get_monotonic_time() + 30 * G_TIME_SPAN_SECOND;

    while (metrics_counted(COUNTER_USAGE, result) - before[result] < n) {
        ck_assert_msg(g_get_monotonic_time() < until, "result %d", result);
        g_usleep(1000);
    }
}

/* At that Unix time in milliseconds; 0: as long as the last answer counts. */
static bool is_idle(int64_t at_ms)
{
    const struct allocation pod = {.ns = "ml", .name = "a"};

    store_lock(known);
    const struct idleness *told = idle_pods_known(store_part(known, &part_idle_pods));
    const int64_t now_ms = told && at_ms == 0 ? idleness_until(told) - 1 : at_ms;
    const bool idle = idleness_since(told, &pod, now_ms * 1000000) > 0;
    store_unlock(known);
    return idle;
}

static struct usage_source *start(int64_t timeout_ms, const char *token_file)
{
    struct usage_source *source =
        usage_source_start(&(struct usage_options){.url = fake_server_url(server),
                                                   .query = "max by (pod) (x{a=\"b\"})",
                                                   .ca_file = "",
                                                   .token_file = token_file,
                                                   .interval_ms = 50,
                                                   .below = 5,
                                                   .timeout_ms = timeout_ms},
                           known, NULL);
    ck_assert_ptr_nonnull(source);
    return source;
}

static void script(struct fake_reply reply)
{
    fake_server_script(server, &reply);
}

START_TEST(it_is_asked_again_and_again)
{
    g_autofree char *file = NULL;
    const int fd = g_file_open_tmp("usage-XXXXXX", &file, NULL);

    ck_assert(g_file_set_contents(file, "secret\n", -1, NULL));
    script((struct fake_reply){
        .match = "GET /api/v1/query?query=max%20by%20%28pod%29%20%28x%7Ba%3D%22b%22%7D%29 ",
        .times = FAKE_ALWAYS,
        .chunks = {answer_of(0)}});
    struct usage_source *source = start(20000, file);
    await(USAGE_RESULT_OK, 3);
    usage_source_free(source);
    ck_assert(is_idle(0));
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    g_autofree char *request = fake_server_request(server, 0);
    ck_assert_msg(strstr(request, "Authorization: Bearer secret\r\n"), "%s", request);
    unlink(file);
    close(fd);
}
END_TEST

/* Each as often as it is asked; then one good answer, which still counts. */
START_TEST(one_that_cannot_be_understood_is_counted)
{
    g_autofree char *huge = g_strnfill(USAGE_ANSWER_MAX + 1, ' ');
    g_autofree char *old = g_strdup(answer_of(300));

    script((struct fake_reply){.chunks = {"<html>"}});
    script((struct fake_reply){.chunks = {huge}});
    script(
        (struct fake_reply){.status = 400, .chunks = {"{\"status\":\"error\",\"error\":\"x\"}"}});
    script((struct fake_reply){.chunks = {old}});
    script((struct fake_reply){.status = 403, .chunks = {"{}"}});
    script((struct fake_reply){.status = 302, .headers = "Location: /\r\n", .chunks = {"{}"}});
    script((struct fake_reply){.end = FAKE_CUT, .chunks = {"{\"status\""}});
    script((struct fake_reply){.chunks = {VECTOR("")}});
    script((struct fake_reply){.times = FAKE_ALWAYS, .chunks = {answer_of(0)}});
    struct usage_source *source = start(20000, "");
    await(USAGE_RESULT_OK, 1);
    usage_source_free(source);
    ck_assert(is_idle(0));
    ck_assert_uint_eq(metrics_counted(COUNTER_USAGE, USAGE_RESULT_UNREADABLE) -
                          before[USAGE_RESULT_UNREADABLE],
                      3);
    ck_assert_uint_eq(metrics_counted(COUNTER_USAGE, USAGE_RESULT_OUT_OF_DATE) -
                          before[USAGE_RESULT_OUT_OF_DATE],
                      1);
    ck_assert_uint_eq(
        metrics_counted(COUNTER_USAGE, USAGE_RESULT_FAILED) - before[USAGE_RESULT_FAILED], 3);
    ck_assert_uint_eq(
        metrics_counted(COUNTER_USAGE, USAGE_RESULT_EMPTY) - before[USAGE_RESULT_EMPTY], 1);
}
END_TEST

/* Of the first answers one comes in time, however busy the machine is. */
START_TEST(one_that_is_slow_or_gone_leaves_nobody_idle)
{
    script((struct fake_reply){.times = 10, .chunks = {answer_of(0)}});
    script((struct fake_reply){.times = FAKE_ALWAYS, .end = FAKE_HANG, .chunks = {"{"}});
    struct usage_source *source = start(100, "");
    await(USAGE_RESULT_OK, 1);
    before[USAGE_RESULT_FAILED] = metrics_counted(COUNTER_USAGE, USAGE_RESULT_FAILED);
    await(USAGE_RESULT_FAILED, 2);
    fake_server_refuse(server, true);
    await(USAGE_RESULT_FAILED, 4);
    usage_source_free(source);
    ck_assert(is_idle(0));
    ck_assert(!is_idle(g_get_real_time() / 1000));
}
END_TEST

/* The end does not wait for an answer. */
START_TEST(it_ends_while_it_waits)
{
    script((struct fake_reply){.end = FAKE_HANG, .chunks = {"{"}});
    struct usage_source *source = start(3600000, "");
    ck_assert(fake_server_wait(server, 1, 30000));
    usage_source_free(source);
    ck_assert(!is_idle(0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *answers = tcase_create("answers");
    TCase *history = tcase_create("history");
    TCase *source = tcase_create("source");

    suite_add_tcase(suite, answers);
    tcase_set_timeout(answers, 60);
    tcase_add_test(answers, the_labels_of_the_pod_go_before_those_of_the_exporter);
    tcase_add_test(answers, a_pod_is_as_busy_as_its_busiest_card);
    tcase_add_test(answers, what_is_no_percentage_is_not_known);
    tcase_add_test(answers, what_names_no_pod_is_left_out);
    tcase_add_test(answers, an_answer_that_is_none_is_refused);
    tcase_add_test(answers, of_too_many_pods_the_rest_is_not_known);
    suite_add_tcase(suite, history);
    tcase_add_checked_fixture(history, begin_history, end_history);
    tcase_set_timeout(history, 60);
    tcase_add_test(history, idle_is_who_has_been_quiet_for_long_enough);
    tcase_add_test(history, what_is_old_says_nothing);
    tcase_add_test(history, a_clock_that_is_set_back_proves_nothing);
    suite_add_tcase(suite, source);
    tcase_add_checked_fixture(source, begin_server, end_server);
    tcase_set_timeout(source, 60);
    tcase_add_test(source, it_is_asked_again_and_again);
    tcase_add_test(source, one_that_cannot_be_understood_is_counted);
    tcase_add_test(source, one_that_is_slow_or_gone_leaves_nobody_idle);
    tcase_add_test(source, it_ends_while_it_waits);

    return suite_run(suite);
}
