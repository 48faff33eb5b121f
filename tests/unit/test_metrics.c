/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"
#include "base/metrics_text.h"
#include "store/kinds/kind.h"

#include "store/cluster.h"
#include "store/store.h"
#include "suite.h"

#include <gpuledger/reason.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The number after "name{labels} ", or -1. */
static double sample(const char *text, const char *series)
{
    g_autofree char *key = g_strdup_printf("\n%s ", series);
    const char *at = strstr(text, key);

    return at ? g_ascii_strtod(at + strlen(key), NULL) : -1;
}

START_TEST(counters_count_by_cell)
{
    g_autoptr(GString) text = g_string_new(NULL);

    metrics_count(COUNTER_REFUSALS, REASON_CARD_TOO_SMALL);
    metrics_count(COUNTER_REFUSALS, REASON_CARD_TOO_SMALL);
    metrics_count(COUNTER_BINDS, BIND_RESULT_TIMED_OUT);
    metrics_count(COUNTER_API_CALLS, OUTCOME_UNKNOWN);
    metrics_count(COUNTER_EVENTS, FEED_CONFIGMAPS);
    metrics_count(COUNTER_REQUESTS_BAD, VERB_INSPECT);
    metrics_count(COUNTER_UNPLACED, 0);
    metrics_count(COUNTER_HTTP_RESPONSES, 4);
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, REASON_CARD_TOO_SMALL), 2);
    ck_assert_uint_eq(metrics_counted(COUNTER_REFUSALS, REASON_CARD_UNHEALTHY), 0);

    metrics_write(text, kind_cell_name);
    const struct {
        const char *series;
        double value;
    } expected[] = {
        {"gpuledger_refusals_total{reason=\"card_too_small\"}", 2},
        {"gpuledger_refusals_total{reason=\"card_unhealthy\"}", 0},
        {"gpuledger_binds_total{result=\"timed_out\"}", 1},
        {"gpuledger_binds_total{result=\"bound\"}", 0},
        {"gpuledger_api_calls_total{outcome=\"unknown\"}", 1},
        {"gpuledger_events_total{feed=\"configmaps\"}", 1},
        {"gpuledger_requests_bad_total{verb=\"inspect\"}", 1},
        {"gpuledger_unplaced_pods_total", 1},
        {"gpuledger_http_responses_total{class=\"4xx\"}", 1},
        {"gpuledger_refusals_total{reason=\"none\"}", -1},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
        double value = sample(text->str, expected[i].series);

        ck_assert_msg(value == expected[i].value, "%s is %g", expected[i].series, value);
    }
}
END_TEST

START_TEST(gauges_are_written_once_they_are_set)
{
    g_autoptr(GString) before = g_string_new(NULL);
    g_autoptr(GString) after = g_string_new(NULL);

    metrics_write(before, kind_cell_name);
    ck_assert_double_eq(sample(before->str, "gpuledger_lease_held"), -1);
    metrics_set(GAUGE_LEASE_HELD, 1);
    metrics_set(GAUGE_LEASE_HELD, 0);
    metrics_write(after, kind_cell_name);
    ck_assert_double_eq(sample(after->str, "gpuledger_lease_held"), 0);
    ck_assert(strstr(after->str, "# TYPE gpuledger_lease_held gauge\n"));
    ck_assert_double_eq(sample(after->str, "gpuledger_lease_journal_bytes"), -1);
}
END_TEST

START_TEST(durations_fall_into_their_buckets)
{
    g_autoptr(GString) text = g_string_new(NULL);

    metrics_observe(VERB_BIND, PHASE_API, -7);
    metrics_observe(VERB_BIND, PHASE_API, 50);
    metrics_observe(VERB_BIND, PHASE_API, 51);
    metrics_observe(VERB_BIND, PHASE_API, 1500000);
    metrics_observe(VERB_BIND, PHASE_API, 31000000);
    metrics_write(text, kind_cell_name);

#define SERIES(suffix, le)                                                                         \
    "gpuledger_verb_duration_seconds_" suffix "{verb=\"bind\",phase=\"api\"" le "}"
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"0.00005\"")), 2);
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"0.0001\"")), 3);
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"1\"")), 3);
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"5\"")), 4);
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"30\"")), 4);
    ck_assert_double_eq(sample(text->str, SERIES("bucket", ",le=\"+Inf\"")), 5);
    ck_assert_double_eq(sample(text->str, SERIES("count", "")), 5);
    ck_assert_double_eq_tol(sample(text->str, SERIES("sum", "")), 32.500101, 1e-9);
#undef SERIES
    ck_assert_ptr_null(strstr(text->str, "verb=\"filter\",phase"));
}
END_TEST

/* Every line is a sample of the family that the last HELP and TYPE announced, each once. */
START_TEST(text_is_well_formed)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) families = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) samples = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *family = NULL;

    metrics_observe(VERB_FILTER, PHASE_TOTAL, 100);
    metrics_observe(VERB_INSPECT, PHASE_READ, 100);
    metrics_write(text, kind_cell_name);
    ck_assert(g_str_has_suffix(text->str, "\n"));
    g_string_truncate(text, text->len - 1);

    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    for (size_t i = 0; lines[i]; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", 4);

        if (g_str_has_prefix(lines[i], "# HELP ")) {
            ck_assert_msg(words[3] && words[3][0], "no help: %s", lines[i]);
            ck_assert_msg(g_hash_table_add(families, g_strdup(words[2])), "twice: %s", lines[i]);
            g_free(family);
            family = g_strdup(words[2]);
            ck_assert(g_str_has_prefix(lines[i + 1], "# TYPE "));
            continue;
        }
        if (g_str_has_prefix(lines[i], "# TYPE ")) {
            ck_assert_str_eq(words[2], family);
            ck_assert(strcmp(words[3], "counter") == 0 || strcmp(words[3], "gauge") == 0 ||
                      strcmp(words[3], "histogram") == 0);
            if (strcmp(words[3], "counter") == 0)
                ck_assert(g_str_has_suffix(family, "_total"));
            continue;
        }
        char *end = NULL;
        g_ascii_strtod(words[1], &end);
        ck_assert_msg(end > words[1] && *end == '\0' && !words[2], "no number: %s", lines[i]);
        ck_assert_msg(g_str_has_prefix(words[0], family), "%s outside of %s", words[0], family);
        ck_assert_msg(g_hash_table_add(samples, g_strdup(words[0])), "twice: %s", lines[i]);
    }
    ck_assert_uint_gt(g_hash_table_size(families), COUNTER_N);
}
END_TEST

START_TEST(the_process_is_described)
{
    g_autoptr(GString) text = g_string_new(NULL);

    metrics_write(text, kind_cell_name);
    double start = sample(text->str, "process_start_time_seconds");
    ck_assert_double_gt(start, (double)time(NULL) - 3600);
    ck_assert_double_lt(start, (double)time(NULL) + 2);
    ck_assert_double_gt(sample(text->str, "process_resident_memory_bytes"), 100000);
    ck_assert_double_ge(sample(text->str, "process_cpu_seconds_total"), 0);
    double fds = sample(text->str, "process_open_fds");
    ck_assert_double_ge(fds, 1);
    int fd = dup(STDOUT_FILENO);
    g_string_truncate(text, 0);
    metrics_write(text, kind_cell_name);
    ck_assert_double_eq(sample(text->str, "process_open_fds"), fds + 1);
    close(fd);
    ck_assert_ptr_nonnull(strstr(text->str, "gpuledger_build_info{version=\""));
}
END_TEST

START_TEST(labels_are_escaped)
{
    g_autoptr(GString) text = g_string_new(NULL);

    metrics_append_label(text, "a\"b\\c\nd");
    ck_assert_str_eq(text->str, "a\\\"b\\\\c\\nd");
}
END_TEST

#define THREADS 8
#define ROUNDS 20000

static void *hammer(void *data)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        metrics_count(COUNTER_EVENTS, FEED_PODS);
        metrics_observe(VERB_FILTER, PHASE_LOCK, i);
    }
    return NULL;
}

START_TEST(threads_lose_nothing)
{
    pthread_t threads[THREADS];
    g_autoptr(GString) text = g_string_new(NULL);

    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    metrics_write(text, kind_cell_name); /* beside the writers */
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(metrics_counted(COUNTER_EVENTS, FEED_PODS), THREADS * ROUNDS);
    g_string_truncate(text, 0);
    metrics_write(text, kind_cell_name);
    ck_assert_double_eq(
        sample(text->str, "gpuledger_verb_duration_seconds_count{verb=\"filter\",phase=\"lock\"}"),
        THREADS * ROUNDS);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("metrics");
    TCase *tc = tcase_create("metrics");

    tcase_add_test(tc, counters_count_by_cell);
    tcase_add_test(tc, gauges_are_written_once_they_are_set);
    tcase_add_test(tc, durations_fall_into_their_buckets);
    tcase_add_test(tc, text_is_well_formed);
    tcase_add_test(tc, the_process_is_described);
    tcase_add_test(tc, labels_are_escaped);
    tcase_add_test(tc, threads_lose_nothing);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
