/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface: unlike curl_easy_perform it can be woken from another thread, and it
 * leaves the question of who is dead to us.
 */
#include "kube/api_stream.h"

#include "base/metrics.h"
#include "kube/clock.h"

#include <gpuledger/error.h>
#include <stdatomic.h>

#define CONNECT_TIMEOUT_MS 10000
#define CREDENTIALS_TIMEOUT_MS 60000
#define REFUSAL_MAX ((size_t)64 << 10) /* of the body of another status than 200 */
#define POLL_MAX_MS 1000

struct transfer {
    CURL *handle; /* kept from call to call */
    struct api_stream_call call;
    char *path;
    struct credential *credential;
    struct curl_slist *headers; /* NULL: no call is under way */
    long status;
    int64_t heard_ms; /* when the last byte came, or the call began */
    int64_t began_ms;
    bool opened;      /* and the receiver has been told */
    bool aborted;     /* by the receiver */
    GString *refusal;
    GError *error; /* the receiver's */
    char message[CURL_ERROR_SIZE];
};

struct api_stream {
    struct api_client *client;
    CURLM *multi; /* keeps the connections between calls */
    struct transfer transfers[API_STREAM_CALLS];
    struct api_stream_call next; /* waits for a transfer */
    char *next_path;             /* NULL: none does */
    atomic_bool stopped;
    atomic_bool woken; /* and nothing has ended for it yet */
};

struct api_stream *api_stream_new(struct api_client *client)
{
    struct api_stream *stream = g_new0(struct api_stream, 1);

    stream->client = client;
    stream->multi = curl_multi_init();
    atomic_init(&stream->stopped, false);
    atomic_init(&stream->woken, false);
    return stream;
}

void api_stream_free(struct api_stream *stream)
{
    if (!stream)
        return;
    for (size_t i = 0; i < API_STREAM_CALLS; i++)
        curl_easy_cleanup(stream->transfers[i].handle);
    curl_multi_cleanup(stream->multi);
    g_free(stream);
}

void api_stream_stop(struct api_stream *stream)
{
    atomic_store(&stream->stopped, true);
    curl_multi_wakeup(stream->multi);
}

void api_stream_wake(struct api_stream *stream)
{
    atomic_store(&stream->woken, true);
    curl_multi_wakeup(stream->multi);
}

bool api_stream_is_stopped(const struct api_stream *stream)
{
    return atomic_load(&stream->stopped);
}

bool api_stream_pause(struct api_stream *stream, int64_t duration_ms)
{
    const int64_t until_ms = clock_ms() + duration_ms;

    while (!api_stream_is_stopped(stream)) {
        const int64_t left_ms = until_ms - clock_ms();

        if (left_ms <= 0 || atomic_exchange(&stream->woken, false))
            return true;
        curl_multi_poll(stream->multi, NULL, 0, (int)MIN(left_ms, POLL_MAX_MS), NULL);
    }
    return false;
}

/* --- one call ------------------------------------------------------------------------------- */

static size_t receive(char *bytes, size_t size, size_t n, void *data)
{
    struct transfer *transfer = data;
    const size_t length = size * n;

    transfer->heard_ms = clock_ms();
    if (transfer->status == 0)
        curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &transfer->status);
    if (transfer->status == 200) {
        transfer->aborted =
            !transfer->call.receive(bytes, length, transfer->call.data, &transfer->error);
        return transfer->aborted ? 0 : length;
    }
    if (transfer->refusal->len + length <= REFUSAL_MAX)
        g_string_append_len(transfer->refusal, bytes, (gssize)length);
    return length;
}

static struct transport_request transfer_request(struct transfer *transfer)
{
    return (struct transport_request){
        .method = "GET",
        .path = transfer->path,
        .compressed = transfer->call.compressed,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .message = transfer->message,
    };
}

/* Begins the call that waits. */
static bool begin(struct api_stream *stream, struct transfer *transfer, GError **error)
{
    const struct transport *transport = api_client_transport(stream->client);
    struct credential *credential =
        credentials_get(api_client_credentials(stream->client),
                        clock_ms() + CREDENTIALS_TIMEOUT_MS, error);

    if (!credential)
        return false;
    *transfer = (struct transfer){
        .handle = transfer->handle ? transfer->handle : curl_easy_init(),
        .call = stream->next,
        .path = g_steal_pointer(&stream->next_path),
        .credential = credential,
        .heard_ms = clock_ms(),
        .began_ms = clock_ms(),
        .refusal = g_string_new(NULL),
    };
    const struct transport_request request = transfer_request(transfer);
    transfer->headers = transport_prepare(transport, transfer->handle, &request, credential);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_PRIVATE, transfer);
    curl_multi_add_handle(stream->multi, transfer->handle);
    return true;
}

static void set_cut(const struct api_stream *stream, struct stream_result *result,
                    const char *message, GError **error)
{
    if (result->status == 200) {
        result->end = STREAM_CUT;
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, "the reply was cut: %s",
                    message);
        return;
    }
    result->end = STREAM_UNREACHABLE;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                "no reply from the API server at %s: %s",
                transport_server(api_client_transport(stream->client)), message);
}

/* What the transfer's own end, by libcurl's word, comes to. */
static struct stream_result conclude(const struct api_stream *stream, struct transfer *transfer,
                                     CURLcode code, GError **error)
{
    struct stream_result result = {.end = STREAM_COMPLETE};

    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &transfer->status);
    result.status = transfer->status;
    if (code == CURLE_SSL_CERTPROBLEM || transfer->status == 401)
        credentials_reject(api_client_credentials(stream->client), transfer->credential);
    if (code == CURLE_OK && transfer->status == 200 && transfer->call.complete)
        transfer->aborted = !transfer->call.complete(transfer->call.data, &transfer->error);
    if (transfer->aborted) {
        result.end = STREAM_ABORTED;
        g_propagate_error(error, g_steal_pointer(&transfer->error));
    } else if (transfer->status != 0 && transfer->status != 200) {
        const struct transport_request request = transfer_request(transfer);
        const int64_t retry_after_ms = transport_status_error(
            &request, transfer->status, transfer->refusal->str, transfer->refusal->len, error);

        result.end = STREAM_STATUS;
        result.retry_after_ms = transport_retry_after_ms(transfer->handle);
        if (result.retry_after_ms == 0)
            result.retry_after_ms = retry_after_ms;
    } else if (code != CURLE_OK) {
        set_cut(stream, &result,
                *transfer->message ? transfer->message : curl_easy_strerror(code), error);
    }
    return result;
}

static enum outcome count_outcome(const struct stream_result *result)
{
    switch (result->end) {
    case STREAM_COMPLETE:
    case STREAM_ABORTED:
    case STREAM_STOPPED:
    case STREAM_WOKEN:
        return OUTCOME_OK;
    case STREAM_STATUS:
        return api_outcome(result->status);
    case STREAM_UNREACHABLE:
        return OUTCOME_REFUSED;
    case STREAM_CUT:
        break;
    }
    return OUTCOME_UNKNOWN;
}

/* `result`: what has become of the call. One that has not ended loses its connection. */
static void end(struct api_stream *stream, struct transfer *transfer,
                const struct stream_result *result)
{
    curl_multi_remove_handle(stream->multi, transfer->handle);
    metrics_count(COUNTER_API_CALLS, count_outcome(result));
    credential_unref(transfer->credential);
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    g_string_free(transfer->refusal, TRUE);
    g_clear_error(&transfer->error);
    g_free(transfer->path);
}

/* --- all of them ---------------------------------------------------------------------------- */

static struct transfer *find_transfer(struct api_stream *stream, bool active)
{
    for (size_t i = 0; i < API_STREAM_CALLS; i++) {
        if (!stream->transfers[i].headers == !active)
            return &stream->transfers[i];
    }
    return NULL;
}

void api_stream_add(struct api_stream *stream, const struct api_stream_call *call)
{
    g_free(stream->next_path);
    stream->next = *call;
    stream->next_path = g_strdup(call->path);
}

/* The one that has heard nothing for too long; else NULL, and how long it may take from now. */
static struct transfer *find_dead(struct api_stream *stream, int64_t *ret_left_ms)
{
    const int64_t now_ms = clock_ms();

    *ret_left_ms = POLL_MAX_MS;
    for (size_t i = 0; i < API_STREAM_CALLS; i++) {
        struct transfer *transfer = &stream->transfers[i];
        const int64_t left_ms = transfer->heard_ms + transfer->call.idle_ms - now_ms;

        if (transfer->headers && left_ms <= 0)
            return transfer;
        if (transfer->headers)
            *ret_left_ms = MIN(*ret_left_ms, left_ms);
    }
    return NULL;
}

static void tell_opened(struct api_stream *stream)
{
    for (size_t i = 0; i < API_STREAM_CALLS; i++) {
        struct transfer *transfer = &stream->transfers[i];
        long status = 0;

        if (!transfer->headers || !transfer->call.opened || transfer->opened ||
            clock_ms() - transfer->began_ms < transfer->call.open_ms)
            continue;
        curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
        if (status != 200)
            continue;
        transfer->opened = true;
        transfer->call.opened(transfer->call.data);
    }
}

/* Takes note of the calls that have ended; false once one has failed. */
static bool reap(struct api_stream *stream, struct stream_result *result, GError **error)
{
    const CURLMsg *message;
    int left;

    while (result->end == STREAM_COMPLETE &&
           (message = curl_multi_info_read(stream->multi, &left))) {
        const CURLcode code = message->data.result;
        struct transfer *transfer = NULL;

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        *result = conclude(stream, transfer, code, error);
        end(stream, transfer, result);
    }
    return result->end == STREAM_COMPLETE;
}

/* Runs calls until none is left or one has failed. */
static struct stream_result drive(struct api_stream *stream, GError **error)
{
    struct stream_result result = {.end = STREAM_COMPLETE};
    int running;
    int64_t left_ms;

    for (;;) {
        struct transfer *idle = find_transfer(stream, false);

        if (stream->next_path && idle && !begin(stream, idle, error)) {
            result.end = STREAM_UNREACHABLE;
            return result;
        }
        struct transfer *active = find_transfer(stream, true);
        if (!active)
            return result;
        if (api_stream_is_stopped(stream)) {
            result.end = STREAM_STOPPED;
            return result;
        }
        if (active->call.wakeable && atomic_exchange(&stream->woken, false)) {
            result.end = STREAM_WOKEN;
            return result;
        }
        curl_multi_perform(stream->multi, &running);
        if (!reap(stream, &result, error))
            return result;
        tell_opened(stream);
        struct transfer *dead = find_dead(stream, &left_ms);
        if (dead) {
            curl_easy_getinfo(dead->handle, CURLINFO_RESPONSE_CODE, &result.status);
            set_cut(stream, &result, "silence for too long", error);
            result.silent = true;
            end(stream, dead, &result);
            return result;
        }
        if (find_transfer(stream, true) && !(stream->next_path && find_transfer(stream, false)))
            curl_multi_poll(stream->multi, NULL, 0, (int)left_ms, NULL);
    }
}

struct stream_result api_stream_run(struct api_stream *stream, GError **error)
{
    const struct stream_result given_up = {.end = STREAM_STOPPED};
    struct transfer *active;
    const struct stream_result result =
        api_stream_is_stopped(stream) ? given_up : drive(stream, error);

    while ((active = find_transfer(stream, true)))
        end(stream, active, &given_up);
    g_clear_pointer(&stream->next_path, g_free);
    return result;
}
