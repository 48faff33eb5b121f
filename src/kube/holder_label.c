/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/holder_label.h"

#include "base/log.h"
#include "base/worker.h"
#include "kube/clock.h"
#include "json/json.h"

#include <gpuledger/error.h>

#define CALL_MS 3000
#define RETRY_MS 500

enum state {
    UNKNOWN,
    OFF,
    ON,
};

struct holder_label {
    struct api_client *client;
    char *ns, *pod;
    char *path;
    int64_t again_ms;
    int64_t said_ms; /* the thread's own: when it was last confirmed */
    struct worker worker;
    enum state wanted; /* under the worker's lock, like what follows; never UNKNOWN */
    enum state actual; /* as the API server has confirmed it last */
};

/* --- the thread ----------------------------------------------------------------------------- */

static void encode(GString *body, enum state wanted)
{
    struct json_writer writer;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    json_key_object(&writer, "metadata");
    json_key_object(&writer, "labels");
    json_key(&writer, HOLDER_LABEL);
    if (wanted == ON)
        json_string(&writer, "true");
    else
        json_null(&writer);
    json_end_object(&writer);
    json_end_object(&writer);
    json_end_object(&writer);
}

static bool write_label(const struct holder_label *label, enum state wanted)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const struct api_call call = {
        .method = "PATCH",
        .path = label->path,
        .body = body,
        .deadline_ms = clock_ms() + CALL_MS,
        .timely = true, /* what a later one overtakes must not come true after it */
    };

    encode(body, wanted);
    const enum outcome outcome = api_client_call(label->client, &call, reply, &error);
    if (outcome == OUTCOME_OK)
        return true;
    log_event_limited(
        LOG_LEVEL_ERROR, "cannot label our own pod", LOG_TEXT("namespace", label->ns),
        LOG_TEXT("pod", label->pod), LOG_TEXT("error", error->message),
        LOG_TEXT("advice", outcome == OUTCOME_NOT_FOUND
                               ? "--pod-name must name the pod that this runs in, and "
                                 "--lease-namespace its namespace"
                           : g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED)
                               ? "grant the verb patch on pods"
                               : "it is tried again"));
    return false;
}

static void *run(void *data)
{
    struct holder_label *label = data;
    struct worker *worker = &label->worker;
    int64_t until_ms = 0;

    worker_lock(worker);
    while (worker_wait(worker, until_ms)) {
        const enum state wanted = label->wanted;

        until_ms = label->said_ms + label->again_ms;
        if (label->actual == wanted && clock_ms() < until_ms)
            continue;
        /* Said again, it holds until the API server has answered something else. */
        if (label->actual != wanted)
            label->actual = UNKNOWN;
        worker_unlock(worker);
        const bool done = write_label(label, wanted);
        worker_lock(worker);
        if (done) {
            label->actual = wanted;
            label->said_ms = clock_ms();
        }
        until_ms = done ? label->said_ms + label->again_ms : clock_ms() + RETRY_MS;
        if (done && label->actual != label->wanted)
            until_ms = 0;
    }
    worker_unlock(worker);
    return NULL;
}

/* --- for others ----------------------------------------------------------------------------- */

struct holder_label *holder_label_start(struct api_client *client, const char *ns, const char *pod,
                                        int64_t again_ms, GError **error)
{
    g_autofree char *ns_part = transport_escape(ns, "namespace", error);
    g_autofree char *pod_part = ns_part ? transport_escape(pod, "pod", error) : NULL;

    if (!pod_part)
        return NULL;
    struct holder_label *label = g_new0(struct holder_label, 1);
    label->client = client;
    label->ns = g_strdup(ns);
    label->pod = g_strdup(pod);
    label->path = g_strdup_printf("/api/v1/namespaces/%s/pods/%s", ns_part, pod_part);
    label->wanted = OFF;
    label->again_ms = again_ms;
    worker_init(&label->worker);
    if (!worker_start(&label->worker, run, label, error))
        g_clear_pointer(&label, holder_label_free);
    return label;
}

void holder_label_set(struct holder_label *label, bool serves)
{
    worker_lock(&label->worker);
    label->wanted = serves ? ON : OFF;
    worker_wake(&label->worker);
    worker_unlock(&label->worker);
}

bool holder_label_is_off(struct holder_label *label)
{
    worker_lock(&label->worker);
    const bool off = label->actual == OFF;
    worker_unlock(&label->worker);
    return off;
}

void holder_label_free(struct holder_label *label)
{
    if (!label)
        return;
    worker_release(&label->worker);
    g_free(label->ns);
    g_free(label->pod);
    g_free(label->path);
    g_free(label);
}
