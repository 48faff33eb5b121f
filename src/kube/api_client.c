/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be tried again turns on one question: can the server have seen the request? libcurl
 * says so through its hook before the first byte (before_request). Until then everything may be
 * repeated; after it only what the server says that it did not do (429, 401), and calls that do
 * no harm twice. The rest ends as OUTCOME_UNKNOWN, and the caller asks the API server what became
 * of it. libcurl itself repeats a request on a kept connection that was closed without a byte of a
 * reply; a Binding that arrived twice that way is answered with 409, which leads to the same
 * question.
 */
#include "kube/api_client.h"

#include "base/metrics.h"
#include "kube/clock.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 5000
#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 2000
#define REST_MS 200 /* between looks at whether calls are to end */

struct api_client {
    struct kube_config *config;
    struct credentials *credentials;
    struct transport *transport;
    pthread_mutex_t lock;
    pthread_cond_t returned; /* on CLOCK_MONOTONIC */
    atomic_bool aborted;
    unsigned in_use;
    GPtrArray *idle; /* CURL *; the last one was used last and is most likely connected */
};

struct api_client *api_client_new(struct kube_config *take_config, GError **error)
{
    struct transport *transport = transport_new(take_config, error);

    if (!transport) {
        kube_config_free(take_config);
        return NULL;
    }
    struct api_client *client = g_new0(struct api_client, 1);
    client->config = take_config;
    client->transport = transport;
    client->credentials = credentials_new(take_config, NULL);
    client->idle = g_ptr_array_new_with_free_func((GDestroyNotify)curl_easy_cleanup);
    pthread_mutex_init(&client->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&client->returned, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return client;
}

void api_client_free(struct api_client *client)
{
    if (!client)
        return;
    g_ptr_array_unref(client->idle);
    credentials_free(client->credentials);
    transport_free(client->transport);
    kube_config_free(client->config);
    pthread_cond_destroy(&client->returned);
    pthread_mutex_destroy(&client->lock);
    g_free(client);
}

void api_client_abort(struct api_client *client)
{
    atomic_store(&client->aborted, true);
}

const struct kube_config *api_client_config(const struct api_client *client)
{
    return client->config;
}

struct credentials *api_client_credentials(struct api_client *client)
{
    return client->credentials;
}

const struct transport *api_client_transport(const struct api_client *client)
{
    return client->transport;
}

/* --- the pool ------------------------------------------------------------------------------- */

/* NULL: none came back in time. */
static CURL *take_handle(struct api_client *client, int64_t deadline_ms)
{
    const struct timespec until = {deadline_ms / 1000, deadline_ms % 1000 * 1000000};
    CURL *handle = NULL;
    int failure = 0;

    pthread_mutex_lock(&client->lock);
    while (client->in_use == API_CONNECTIONS_MAX && failure == 0)
        failure = pthread_cond_timedwait(&client->returned, &client->lock, &until);
    const bool granted = client->in_use < API_CONNECTIONS_MAX;
    if (granted)
        client->in_use++;
    if (granted && client->idle->len > 0)
        handle = g_ptr_array_steal_index(client->idle, client->idle->len - 1);
    pthread_mutex_unlock(&client->lock);
    return handle || !granted ? handle : curl_easy_init();
}

static void return_handle(struct api_client *client, CURL *handle)
{
    pthread_mutex_lock(&client->lock);
    g_ptr_array_add(client->idle, handle);
    client->in_use--;
    pthread_cond_signal(&client->returned);
    pthread_mutex_unlock(&client->lock);
}

/* --- one attempt ---------------------------------------------------------------------------- */

struct attempt {
    CURLcode code;
    long status;
    bool sent;      /* the request, or part of it, may have left us */
    bool too_large; /* the reply */
    bool timely;    /* nothing may be sent after the deadline */
    bool late;      /* nor was it */
    int64_t deadline_ms;
    int64_t retry_after_ms;
    size_t reply_max;
    GString *reply;
    char message[CURL_ERROR_SIZE];
};

static size_t receive(char *bytes, size_t size, size_t n, void *data)
{
    struct attempt *attempt = data;

    if (attempt->reply->len + size * n > attempt->reply_max) {
        attempt->too_large = true;
        return 0;
    }
    g_string_append_len(attempt->reply, bytes, (gssize)(size * n));
    return size * n;
}

/* libcurl calls this at least once a second. */
static int may_abort(void *data, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                     curl_off_t up)
{
    return atomic_load(&((struct api_client *)data)->aborted);
}

/* Sleeps between two attempts. False: no other one is to begin. */
static bool rest(const struct api_client *client, int64_t duration_ms)
{
    const int64_t until_ms = clock_ms() + duration_ms;

    while (clock_ms() < until_ms && !atomic_load(&client->aborted))
        g_usleep((gulong)CLAMP(until_ms - clock_ms(), 0, REST_MS) * 1000);
    return !atomic_load(&client->aborted);
}

/* libcurl calls this when a connection stands and nothing has been written to it yet. */
static int before_request(void *data, char *remote_ip, char *local_ip, int remote_port,
                          int local_port)
{
    struct attempt *attempt = data;

    attempt->late = attempt->timely && clock_ms() >= attempt->deadline_ms;
    if (attempt->late)
        return CURL_PREREQFUNC_ABORT;
    attempt->sent = true;
    return CURL_PREREQFUNC_OK;
}

static void attempt_run(struct api_client *client, const struct transport_request *untimed,
                        const struct credential *credential, struct attempt *attempt)
{
    if (atomic_load(&client->aborted)) {
        attempt->code = CURLE_ABORTED_BY_CALLBACK;
        g_strlcpy(attempt->message, "this process ends", sizeof attempt->message);
        return;
    }
    CURL *handle = take_handle(client, attempt->deadline_ms);
    if (!handle) {
        attempt->code = CURLE_OPERATION_TIMEDOUT;
        g_strlcpy(attempt->message, "all are in use", sizeof attempt->message);
        return;
    }
    const int64_t left_ms = MAX(attempt->deadline_ms - clock_ms(), 1);
    struct transport_request request = *untimed;
    request.drops = true;
    request.server_timeout_ms = attempt->timely ? left_ms : 0;
    struct curl_slist *headers = transport_prepare(client->transport, handle, &request, credential);

    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(handle, CURLOPT_PREREQDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, may_abort);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, client);
    attempt->code = curl_easy_perform(handle);
    if (attempt->code == CURLE_OK) {
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &attempt->status);
        attempt->retry_after_ms = transport_retry_after_ms(handle);
    }
    curl_slist_free_all(headers);
    return_handle(client, handle);
}

enum outcome api_outcome(long status)
{
    if (status >= 200 && status < 300)
        return OUTCOME_OK;
    if (status == 409)
        return OUTCOME_CONFLICT;
    if (status == 404)
        return OUTCOME_NOT_FOUND;
    return status >= 500 ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
}

/* A proxy has 404s of its own, and they make no object gone. The API server's come as a Status, but for
 * API groups that it does not serve; then it says what many a proxy says as well. */
static bool is_foreign_404(const struct attempt *attempt, const char *path)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct status_view status = {0};

    if (attempt->code != CURLE_OK || attempt->status != 404)
        return false;
    const cJSON *object = json_parse(arena, attempt->reply->str, attempt->reply->len, NULL);
    if (object && status_view_decode(arena, object, &status, NULL) &&
        g_strcmp0(status.kind, "Status") == 0)
        return false;
    return !g_str_has_prefix(path, "/apis/") ||
           !g_str_has_prefix(attempt->reply->str, "404 page not found");
}

static enum outcome attempt_outcome(const struct attempt *attempt)
{
    if (attempt->code == CURLE_OK)
        return api_outcome(attempt->status);
    return attempt->sent ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
}

/* Sets the error, and what a Status asks us to wait. */
static void attempt_error(struct attempt *attempt, const struct api_client *client,
                          const struct transport_request *request, bool once, GError **error)
{
    if (attempt->code == CURLE_OK) {
        const int64_t retry_after_ms = transport_status_error(
            request, attempt->status, attempt->reply->str, attempt->reply->len, error);
        if (attempt->retry_after_ms == 0)
            attempt->retry_after_ms = retry_after_ms;
        /* Nobody knows what a server that failed had done before. */
        if (once && attempt->status >= 500 && error && *error)
            (*error)->code = GPULEDGER_ERROR_UNKNOWN;
        return;
    }
    const char *message = attempt->late       ? "no time is left"
                          : *attempt->message ? attempt->message
                                              : curl_easy_strerror(attempt->code);
    if (attempt->too_large)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "the reply to %s %s is larger than the %zu bytes that are accepted",
                    request->method, request->path, attempt->reply_max);
    else if (!attempt->sent)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                    "no connection to the API server at %s: %s",
                    transport_server(client->transport), message);
    else
        g_set_error(error, GPULEDGER_ERROR,
                    once ? GPULEDGER_ERROR_UNKNOWN : GPULEDGER_ERROR_UNAVAILABLE,
                    "no reply to %s %s: %s", request->method, request->path, message);
}

/* What time does not heal is not tried again. */
static bool is_hopeless(CURLcode code)
{
    static const CURLcode codes[] = {
        CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,      CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CERTPROBLEM,      CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
        if (codes[i] == code)
            return true;
    }
    return false;
}

static bool may_repeat(const struct attempt *attempt, bool once)
{
    if (attempt->code == CURLE_OK)
        return attempt->status == 429 || (!once && attempt->status >= 500);
    if (attempt->too_large || is_hopeless(attempt->code))
        return false;
    return !attempt->sent || !once;
}

/* --- calls ---------------------------------------------------------------------------------- */

enum outcome api_client_call(struct api_client *client, const struct api_call *call, GString *reply,
                             GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct attempt attempt = {.reply = text};
    const struct transport_request request = {
        .method = call->method,
        .path = call->path,
        .body = call->body ? call->body->str : NULL,
        .body_length = call->body ? call->body->len : 0,
        .apply = call->apply,
        .connect_timeout_ms = CLAMP(call->deadline_ms - clock_ms(), 1, CONNECT_TIMEOUT_MS),
        .message = attempt.message,
    };
    int64_t delay_ms = RETRY_FIRST_MS;
    const bool writes = !g_str_equal(call->method, "GET");
    bool renewed = false, doubted = false; /* an earlier attempt may have done it */

    for (;;) {
        g_autoptr(GError) failure = NULL;
        g_autoptr(credential) credential =
            credentials_get(client->credentials, call->deadline_ms, error);
        if (!credential)
            return doubted ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;

        g_string_truncate(text, 0);
        attempt = (struct attempt){
            .reply = text,
            .reply_max = call->reply_max ? call->reply_max : API_REPLY_MAX,
            .timely = call->timely,
            .deadline_ms = call->deadline_ms,
        };
        attempt_run(client, &request, credential, &attempt);
        const bool foreign = is_foreign_404(&attempt, call->path);
        const enum outcome outcome = foreign ? OUTCOME_UNKNOWN : attempt_outcome(&attempt);
        metrics_count(COUNTER_API_CALLS, outcome);
        if (outcome == OUTCOME_OK) {
            g_string_append_len(reply, text->str, (gssize)text->len);
            return outcome;
        }
        attempt_error(&attempt, client, &request, call->once, &failure);
        if ((attempt.status == 401 || attempt.code == CURLE_SSL_CERTPROBLEM) && !renewed &&
            credentials_reject(client->credentials, credential)) {
            renewed = true;
            continue;
        }
        if (foreign)
            failure->code = call->once ? GPULEDGER_ERROR_UNKNOWN : GPULEDGER_ERROR_UNAVAILABLE;
        if (call->is_final && attempt.code == CURLE_OK && call->is_final(failure->message)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return doubted ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
        }
        const int64_t wait_ms = MAX(delay_ms, attempt.retry_after_ms);
        if (!may_repeat(&attempt, call->once) || clock_ms() + wait_ms >= call->deadline_ms ||
            !rest(client, wait_ms)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return doubted && outcome == OUTCOME_REFUSED ? OUTCOME_UNKNOWN : outcome;
        }
        doubted |= writes && outcome == OUTCOME_UNKNOWN;
        if (call->ret_doubted)
            *call->ret_doubted = doubted;
        delay_ms = MIN(delay_ms * 2, RETRY_MAX_MS);
    }
}
