/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener of kube-scheduler. Source of its habits: pkg/scheduler/extender.go of Kubernetes:
 * only a body with status 200 is read. Source of paths and of the inspect view:
 * AliyunContainerService/gpushare-scheduler-extender, pkg/routes.
 */
#include "http/routes.h"

#include "verbs/admission.h"
#include "base/log.h"
#include "base/version.h"
#include "explain/dry_run.h"
#include "inspect/views.h"
#include "wire/extender.h"

#include <microhttpd.h>

#define JSON "application/json"

/* A replica that stands by, or turns binds away, lets go of its caller, whose next connection may lead to
 * the one that serves: a Service chooses per connection, and kube-scheduler would keep this one as long as
 * it calls. */
static void close_unless_serving(const struct extender *extender, struct http_response *response)
{
    if (leadership_term(extender->leadership) == 0 || g_atomic_int_get(&extender->draining))
        http_response_add_header(response, MHD_HTTP_HEADER_CONNECTION, g_strdup("close"));
}

static void handle_filter(void *context, const struct http_request *request,
                          struct http_response *response)
{
    metrics_observe(VERB_FILTER, PHASE_READ, request->read_us);
    extender_filter(context, request->body, request->length, response->body);
    close_unless_serving(context, response);
}

static void prioritize(struct extender *extender, enum prioritize_pods pods,
                       const struct http_request *request, struct http_response *response)
{
    g_autoptr(GError) failure = NULL;

    metrics_observe(VERB_PRIORITIZE, PHASE_READ, request->read_us);
    if (!extender_prioritize(extender, pods, request->body, request->length, response->body,
                             &failure))
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
    close_unless_serving(extender, response);
}

static void handle_prioritize(void *context, const struct http_request *request,
                              struct http_response *response)
{
    prioritize(context, PRIORITIZE_ALL, request, response);
}

static void handle_prioritize_cpu(void *context, const struct http_request *request,
                                  struct http_response *response)
{
    prioritize(context, PRIORITIZE_WITHOUT_GPU, request, response);
}

static void handle_preempt(void *context, const struct http_request *request,
                           struct http_response *response)
{
    g_autoptr(GError) failure = NULL;

    metrics_observe(VERB_PREEMPT, PHASE_READ, request->read_us);
    if (!extender_preempt(context, request->body, request->length, response->body, &failure))
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
    close_unless_serving(context, response);
}

static void handle_dry_run(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct extender *extender = context;

    dry_run_answer(extender->store, request->body, request->length, response->body);
}

/* Binds that wait keep their connections, and nobody may cut those. The others are for calls that
 * are answered at once, filter's above all. */
static void refuse_bind(struct http_response *response)
{
    struct json_writer writer;

    json_writer_init(&writer, response->body);
    bind_result_encode(&writer, "as many binds as may wait do so already; try again");
    metrics_count(COUNTER_BINDS, BIND_RESULT_CROWDED);
    log_event_limited(LOG_LEVEL_WARN, "bind refused",
                      LOG_TEXT("why", "as many as half of --max-connections are under way"));
}

static void handle_bind(void *context, const struct http_request *request,
                        struct http_response *response)
{
    if (request->crowded) {
        refuse_bind(response);
        return;
    }
    metrics_observe(VERB_BIND, PHASE_READ, request->read_us);
    extender_bind(context, request->body, request->length, response->body);
    close_unless_serving(context, response);
}

static void handle_admission(void *context, const struct http_request *request,
                             struct http_response *response)
{
    struct extender *extender = context;
    g_autoptr(GError) failure = NULL;

    if (!extender->admits)
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "%s",
                           "there is no admission without --admission");
    else if (!extender_admit_mig(extender, request->body, request->length, response->body,
                                 &failure))
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
}

static void handle_inspect(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct extender *extender = context;
    const char *node = request->n_params > 0 ? http_request_param(request, "node") : NULL;

    if (!view_inspect(extender->store, node, response->body))
        response->status = MHD_HTTP_NOT_FOUND;
}

static void handle_status(void *context, const struct http_request *request,
                          struct http_response *response)
{
    const struct extender *extender = context;

    view_status(extender->store, response->body);
}

/* Without a newline: scripts compare it. */
static void handle_version(void *context, const struct http_request *request,
                           struct http_response *response)
{
    g_string_append(response->body, version_text);
}

const struct route scheduler_routes[] = {
    {"POST", "/gpushare-scheduler/filter", JSON, handle_filter, "which nodes could take a pod"},
    {"POST", "/gpushare-scheduler/predicates", JSON, handle_filter, "the same"},
    {"POST", "/gpushare-scheduler/prioritize", JSON, handle_prioritize,
     "which of the nodes would be best for it"},
    {"POST", "/gpushare-scheduler/priorities", JSON, handle_prioritize, "the same"},
    {"POST", "/gpushare-scheduler/prioritize-cpu", JSON, handle_prioritize_cpu,
     "the same for pods without a GPU"},
    {"POST", "/gpushare-scheduler/preempt", JSON, handle_preempt,
     "which pods would have to end for it"},
    {"POST", "/gpushare-scheduler/bind", JSON, handle_bind, "gives a pod a card of a node",
     ROUTE_WAITS},
    {"POST", "/scheduler/filter", JSON, handle_filter, "which nodes could take a pod"},
    {"POST", "/scheduler/predicates", JSON, handle_filter, "the same"},
    {"POST", "/scheduler/prioritize", JSON, handle_prioritize,
     "which of the nodes would be best for it"},
    {"POST", "/scheduler/priorities", JSON, handle_prioritize, "the same"},
    {"POST", "/scheduler/prioritize-cpu", JSON, handle_prioritize_cpu,
     "the same for pods without a GPU"},
    {"POST", "/scheduler/preempt", JSON, handle_preempt,
     "which pods would have to end for it"},
    {"POST", "/scheduler/bind", JSON, handle_bind, "gives a pod a card of a node",
     ROUTE_WAITS},
    {"POST", "/scheduler/filter-dryrun", JSON, handle_dry_run,
     "the same without any effect, of new nodes too", ROUTE_QUESTION},
    {"POST", "/admission/mig", JSON, handle_admission,
     "which MIG profile a pod that asks for memory gets (--admission)"},
    {"GET", "/gpushare-scheduler/inspect", JSON, handle_inspect, "who holds which card", ROUTE_VIEW},
    {"GET", "/gpushare-scheduler/inspect/{node}", JSON, handle_inspect, "the same of one node"},
    {"GET", "/scheduler/status", JSON, handle_status, "what is free on which card", ROUTE_VIEW},
    {"GET", "/version", "text/plain; charset=utf-8", handle_version, "the version"},
    {NULL},
};
G_STATIC_ASSERT(G_N_ELEMENTS(scheduler_routes) <= ROUTES_MAX);
