/* SPDX-License-Identifier: Apache-2.0 */
#include "usage/usage_source.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/small_file.h"
#include "base/version.h"
#include "base/worker.h"
#include "core/fail.h"
#include "gate/idle_pods/idle_pods.h"
#include "kube/secret.h"
#include "usage/usage_history.h"

#include <curl/curl.h>
#include <string.h>

#define TOKEN_MAX ((size_t)8 << 10)

struct usage_source {
    struct usage_options options;
    struct store *store;
    struct worker worker;
    struct usage_history *history; /* the thread's own */
};

/* --- one question ---------------------------------------------------------------------------- */

static size_t receive(char *data, size_t size, size_t n, void *user)
{
    GString *body = user;

    if (size * n > USAGE_ANSWER_MAX - body->len)
        return 0;
    g_string_append_len(body, data, (gssize)(size * n));
    return size * n;
}

/* Called by libcurl about once a second; not 0: give up. */
static int look_up(void *user, curl_off_t down, curl_off_t downloaded, curl_off_t up,
                   curl_off_t uploaded)
{
    struct usage_source *source = user;

    worker_lock(&source->worker);
    const bool stopped = source->worker.stopped;
    worker_unlock(&source->worker);
    return stopped;
}

static bool add_token(const char *file, struct curl_slist **headers, GError **error)
{
    if (!*file)
        return true;
    char *token = small_file_read(file, TOKEN_MAX, NULL, error);
    if (!token)
        return fail_within(error, "option '--usage-token-file': ");
    char *header = g_strconcat("Authorization: Bearer ", g_strstrip(token), NULL);
    const bool one_line = strcspn(header, "\r\n") == strlen(header);
    if (one_line)
        *headers = curl_slist_append(*headers, header);
    secret_free(header);
    secret_free(token);
    return one_line ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "option '--usage-token-file': \"%s\" has more than one line", file);
}

static char *url_of(const struct usage_options *options)
{
    g_autofree char *query = g_uri_escape_string(options->query, NULL, FALSE);
    size_t length = strlen(options->url);

    while (length > 0 && options->url[length - 1] == '/')
        length--;
    return g_strdup_printf("%.*s/api/v1/query?query=%s", (int)length, options->url, query);
}

static bool check_reply(CURL *curl, CURLcode code, GError **error)
{
    long status = 0;

    if (code == CURLE_WRITE_ERROR)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "the answer is larger than %zu MiB",
                         USAGE_ANSWER_MAX >> 20);
    if (code != CURLE_OK)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "%s", curl_easy_strerror(code));
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    /* Of other statuses Prometheus says more in the body, if it is Prometheus. */
    if (status != 200 && status != 400 && status != 422 && status != 503)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "status %ld", status);
    return true;
}

static bool get(struct usage_source *source, GString *ret_body, GError **error)
{
    const struct usage_options *options = &source->options;
    g_autofree char *url = url_of(options);
    g_autofree char *agent = g_strconcat("gpuledger/", version_text, NULL);
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");

    if (!add_token(options->token_file, &headers, error)) {
        curl_slist_free_all(headers);
        return false;
    }
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, source);
    if (*options->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_body);
    const bool ok = check_reply(curl, curl_easy_perform(curl), error);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    return ok;
}

/* --- what comes of it ------------------------------------------------------------------------ */

static enum usage_result result_of(const GError *failure)
{
    if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE))
        return USAGE_RESULT_OUT_OF_DATE;
    return g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID) ||
                   g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT)
               ? USAGE_RESULT_UNREADABLE
               : USAGE_RESULT_FAILED;
}

/* Of an answer that could be read: what is odd about it, all the same. */
static enum usage_result tell_oddities(const struct usage_reading *reading)
{
    const size_t n_pods = g_hash_table_size(reading->percents);

    if (reading->n_bad > 0)
        log_event_limited(LOG_LEVEL_WARN, "usage of pods is no percentage, and not known",
                          LOG_NUMBER("pods", reading->n_bad));
    if (reading->n_cut > 0)
        log_event_limited(LOG_LEVEL_WARN,
                          "usage is told of too many pods; the others are not known",
                          LOG_NUMBER("series", reading->n_cut));
    if (n_pods == 0)
        log_event_limited(LOG_LEVEL_WARN, "usage names no pod",
                          LOG_NUMBER("series", reading->n_series),
                          LOG_TEXT("hint", "see --usage-query for the labels"));
    return reading->n_cut > 0 ? USAGE_RESULT_CUT
           : n_pods == 0      ? USAGE_RESULT_EMPTY
                              : USAGE_RESULT_OK;
}

static void ask(struct usage_source *source)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct usage_reading reading = {0};

    const bool read =
        get(source, body, &failure) &&
        usage_answer_read(body->str, body->len, g_get_real_time() / 1000, &reading, &failure);
    worker_lock(&source->worker);
    const bool stopped = source->worker.stopped;
    worker_unlock(&source->worker);
    if (!read && !stopped) {
        metrics_count(COUNTER_USAGE, result_of(failure));
        log_event_limited(LOG_LEVEL_WARN, "usage is not known",
                          LOG_TEXT("url", source->options.url), LOG_TEXT("why", failure->message));
    }
    if (!read)
        return;
    const int64_t now_ms = g_get_real_time() / 1000;
    metrics_count(COUNTER_USAGE, tell_oddities(&reading));
    metrics_set(GAUGE_USAGE_ANSWERED, now_ms / 1000);
    usage_history_take(source->history, &reading, now_ms);
    usage_reading_clear(&reading);
    struct idleness *idleness = usage_history_tell(source->history);
    store_change_part(source->store, &part_idle_pods, idle_pods_take, &idleness);
    idleness_unref(idleness); /* the one before */
}

static void *run(void *data)
{
    struct usage_source *source = data;
    int64_t next_ms;

    worker_lock(&source->worker);
    do {
        next_ms = g_get_monotonic_time() / 1000 + source->options.interval_ms;
        worker_unlock(&source->worker);
        ask(source);
        worker_lock(&source->worker);
    } while (worker_wait(&source->worker, next_ms));
    worker_unlock(&source->worker);
    return NULL;
}

struct usage_source *usage_source_start(const struct usage_options *options, struct store *store,
                                        GError **error)
{
    struct usage_source *source = g_new0(struct usage_source, 1);

    source->options = *options;
    source->store = store;
    source->history =
        usage_history_new(&(struct usage_rule){.below = options->below,
                                               .after_ms = options->after_ms,
                                               .gap_ms = USAGE_GAP_FACTOR * options->interval_ms});
    worker_init(&source->worker);
    if (!worker_start(&source->worker, run, source, error))
        g_clear_pointer(&source, usage_source_free);
    return source;
}

void usage_source_free(struct usage_source *source)
{
    if (!source)
        return;
    worker_stop(&source->worker);
    worker_release(&source->worker);
    usage_history_free(source->history);
    g_free(source);
}
