/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface with a single transfer in it: unlike curl_easy_perform it can be woken
 * from another thread, and it leaves the question of who is dead to us.
 */
#include "kube/api_stream.h"

#include "app/metrics.h"
#include "kube/clock.h"

#include <gpuledger/error.h>
#include <stdatomic.h>

#define CONNECT_TIMEOUT_MS 10000
#define CREDENTIALS_TIMEOUT_MS 60000
#define REFUSAL_MAX ((size_t)64 << 10) /* of the body of another status than 200 */
#define POLL_MAX_MS 1000

struct api_stream {
    struct api_client *client;
    CURLM *multi; /* keeps the connection between calls */
    CURL *handle;
    atomic_bool stopped;
    atomic_bool woken; /* and nothing has ended for it yet */
};

struct transfer {
    CURL *handle;
    const struct api_stream_call *call;
    long status;
    int64_t heard_ms; /* when the last byte came, or the call began */
    bool aborted;     /* by the receiver */
    bool woken;
    GString *refusal;
    GError *error; /* the receiver's */
};

struct api_stream *api_stream_new(struct api_client *client)
{
    struct api_stream *stream = g_new0(struct api_stream, 1);

    stream->client = client;
    stream->multi = curl_multi_init();
    stream->handle = curl_easy_init();
    atomic_init(&stream->stopped, false);
    atomic_init(&stream->woken, false);
    return stream;
}

void api_stream_free(struct api_stream *stream)
{
    if (!stream)
        return;
    curl_easy_cleanup(stream->handle);
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

static size_t receive(char *bytes, size_t size, size_t n, void *data)
{
    struct transfer *transfer = data;
    const size_t length = size * n;

    transfer->heard_ms = clock_ms();
    if (transfer->status == 0)
        curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &transfer->status);
    if (transfer->status == 200) {
        transfer->aborted =
            !transfer->call->receive(bytes, length, transfer->call->data, &transfer->error);
        return transfer->aborted ? 0 : length;
    }
    if (transfer->refusal->len + length <= REFUSAL_MAX)
        g_string_append_len(transfer->refusal, bytes, (gssize)length);
    return length;
}

/* Runs the transfer to its end. False: stopped, woken, or nothing was heard for too long. */
static bool drive(struct api_stream *stream, struct transfer *transfer, CURLcode *ret_code)
{
    int running = 1;

    while (!api_stream_is_stopped(stream)) {
        int left;

        transfer->woken = transfer->call->wakeable && atomic_exchange(&stream->woken, false);
        if (transfer->woken)
            break;
        curl_multi_perform(stream->multi, &running);
        const CURLMsg *message = curl_multi_info_read(stream->multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            *ret_code = message->data.result;
            return true;
        }
        const int64_t idle_left_ms = transfer->heard_ms + transfer->call->idle_ms - clock_ms();
        if (idle_left_ms <= 0)
            break;
        curl_multi_poll(stream->multi, NULL, 0, (int)MIN(idle_left_ms, POLL_MAX_MS), NULL);
    }
    return false;
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

static void conclude(struct api_stream *stream, struct transfer *transfer, bool done, CURLcode code,
                     const struct transport_request *request, struct stream_result *result,
                     GError **error)
{
    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &transfer->status);
    result->status = transfer->status;
    if (transfer->aborted) {
        result->end = STREAM_ABORTED;
        g_propagate_error(error, g_steal_pointer(&transfer->error));
    } else if (api_stream_is_stopped(stream)) {
        result->end = STREAM_STOPPED;
    } else if (transfer->woken) {
        result->end = STREAM_WOKEN;
    } else if (!done) {
        set_cut(stream, result, "silence for too long", error);
    } else if (transfer->status != 0 && transfer->status != 200) {
        result->end = STREAM_STATUS;
        result->retry_after_ms = transport_retry_after_ms(transfer->handle);
        const int64_t retry_after_ms = transport_status_error(
            request, transfer->status, transfer->refusal->str, transfer->refusal->len, error);
        if (result->retry_after_ms == 0)
            result->retry_after_ms = retry_after_ms;
    } else if (code != CURLE_OK) {
        set_cut(stream, result, *request->message ? request->message : curl_easy_strerror(code),
                error);
    } else {
        result->end = STREAM_COMPLETE;
    }
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

struct stream_result api_stream_run(struct api_stream *stream, const struct api_stream_call *call,
                                    GError **error)
{
    struct stream_result result = {.end = STREAM_UNREACHABLE};
    char message[CURL_ERROR_SIZE];
    CURLcode code = CURLE_OK;

    if (api_stream_is_stopped(stream)) {
        result.end = STREAM_STOPPED;
        return result;
    }
    struct credentials *credentials = api_client_credentials(stream->client);
    g_autoptr(credential) credential =
        credentials_get(credentials, clock_ms() + CREDENTIALS_TIMEOUT_MS, error);
    if (!credential)
        return result;

    g_autoptr(GString) refusal = g_string_new(NULL);
    struct transfer transfer = {
        .handle = stream->handle,
        .call = call,
        .heard_ms = clock_ms(),
        .refusal = refusal,
    };
    const struct transport_request request = {
        .method = "GET",
        .path = call->path,
        .compressed = call->compressed,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .message = message,
    };
    struct curl_slist *headers = transport_prepare(api_client_transport(stream->client),
                                                   stream->handle, &request, credential);
    curl_easy_setopt(stream->handle, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(stream->handle, CURLOPT_WRITEDATA, &transfer);

    curl_multi_add_handle(stream->multi, stream->handle);
    const bool done = drive(stream, &transfer, &code);
    conclude(stream, &transfer, done, code, &request, &result, error);
    curl_multi_remove_handle(stream->multi, stream->handle);
    curl_slist_free_all(headers);

    metrics_count(COUNTER_API_CALLS, count_outcome(&result));
    if (result.status == 401)
        credentials_reject(credentials, credential);
    return result;
}
