/* SPDX-License-Identifier: Apache-2.0 */
/* The listener for probes, Prometheus and people. */
#include "http/routes.h"

#include "base/longest.h"
#include "base/log.h"
#include "base/version.h"
#include "evict/permits.h"
#include "store/kinds/kind.h"
#include "inspect/views.h"
#include "http/answers.h"
#include "http/page.h"
#include "http/questions.h"
#include "http/resources.h"

#include <gpuledger/error.h>
#include <microhttpd.h>
#include <string.h>

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

/* --- probes --------------------------------------------------------------------------------- */

static void handle_alive(void *context, const struct http_request *request,
                         struct http_response *response)
{
    g_string_append(response->body, "ok\n");
}

static bool check_synced(const struct operations *operations, char **ret_why)
{
    g_autoptr(GError) failure = NULL;

    if (!store_check_synced(operations->extender->store, &failure)) {
        *ret_why = g_strdup(failure->message);
        return false;
    }
    g_autofree char *unwatched = store_unwatched(operations->extender->store);
    *ret_why = *unwatched ? g_strdup_printf("no watch lives of %s", unwatched)
                          : store_troubles(operations->extender->store);
    return !*unwatched;
}

static bool check_serving(const struct operations *operations, char **ret_why)
{
    if (!g_atomic_int_get(&operations->extender->leaving))
        return true;
    *ret_why = g_strdup("shutting down");
    return false;
}

static bool check_elected(const struct operations *operations, char **ret_why)
{
    return !operations->replica ||
           operations->replica->is_elected(operations->replica->data, ret_why);
}

static bool check_labelled(const struct operations *operations, char **ret_why)
{
    return !operations->replica ||
           operations->replica->is_labelled(operations->replica->data, ret_why);
}

static const struct {
    const char *name;
    bool (*passes)(const struct operations *operations, char **ret_why);
} ready_checks[] = {
    {"synced", check_synced},
    {"serving", check_serving},
    {"elected", check_elected},
    {"labelled", check_labelled},
};

static bool is_ready_check(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ready_checks); i++) {
        if (strcmp(ready_checks[i].name, name) == 0)
            return true;
    }
    return false;
}

/* For people only: whoever is slow stays ready, since no other replica would answer instead. */
static void tell_longest(GString *text)
{
    enum verb verb;
    const int64_t us = longest_call(g_get_monotonic_time(), &verb);

    if (us > 0)
        g_string_append_printf(text,
                               "[+]longest call of the last minute: %s, %" G_GINT64_FORMAT " ms\n",
                               metrics_verb(verb), (us + 999) / 1000);
}

/* Likewise: no pod is evicted, and all else goes on. */
static void tell_stopped(const struct operations *operations, bool trusted, GString *text)
{
    g_autofree char *why = operations->permits ? permits_why_stopped(operations->permits) : NULL;

    if (why)
        g_string_append_printf(text, "[+]evictions ok, but stopped: %s\n",
                               trusted ? why : "reason withheld");
    else if (operations->permits)
        g_string_append(text, "[+]evictions ok\n");
}

/* The same: it binds pods all the same. */
static void tell_claims(const struct operations *operations, bool trusted, GString *text)
{
    g_autofree char *why = store_claims_trouble(operations->extender->store);

    if (why)
        g_string_append_printf(text, "[-]claims on lent quota cannot be read; nobody ends: %s\n",
                               trusted ? why : "reason withheld");
}

/* In the form that Kubernetes' own components use, ?verbose and ?exclude=CHECK included. Reasons
 * repeat what API server and credential commands have said, so they are for those who may look. */
static void handle_ready(void *context, const struct http_request *request,
                         struct http_response *response)
{
    const struct operations *operations = context;
    const bool verbose = http_request_query(request, "verbose") != NULL;
    const char *exclude = http_request_query(request, "exclude");

    if (exclude && !is_ready_check(exclude)) {
        http_response_fail(response, MHD_HTTP_BAD_REQUEST,
                           "there is no check '%s'; ?verbose lists them", exclude);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(ready_checks); i++) {
        g_autofree char *why = NULL;

        if (g_strcmp0(ready_checks[i].name, exclude) == 0) {
            if (verbose)
                g_string_append_printf(response->body, "[+]%s excluded: ok\n", exclude);
            continue;
        }
        bool passes = ready_checks[i].passes(context, &why);
        const char *told = !why || request->trusted ? why : "reason withheld";

        if (!passes)
            response->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        if (!passes)
            g_string_append_printf(response->body, "[-]%s failed: %s\n", ready_checks[i].name,
                                   told ? told : "");
        else if (verbose)
            g_string_append_printf(response->body, "[+]%s ok%s%s\n", ready_checks[i].name,
                                   request->trusted && why && *why ? ", but cannot be read: " : "",
                                   request->trusted && why ? why : "");
    }
    if (verbose) {
        tell_stopped(operations, request->trusted, response->body);
        tell_longest(response->body);
        tell_claims(operations, request->trusted, response->body);
    }
    if (response->status == MHD_HTTP_OK)
        g_string_append(response->body, verbose ? "readyz check passed\n" : "ok\n");
    else
        g_string_append(response->body, "readyz check failed\n");
}

/* --- about the process ---------------------------------------------------------------------- */

static void handle_version(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct operations *operations = context;
    struct json_writer writer;

    json_writer_init(&writer, response->body);
    json_begin_object(&writer);
    json_key_string(&writer, "version", version_text);
    json_key_string(&writer, "commit", version_commit);
    json_key_string(&writer, "cluster", operations->extender->cluster->ops->name);
    json_key_array(&writer, "dialects");
    for (size_t i = 0; dialects[i]; i++)
        json_string(&writer, dialects[i]->name);
    json_end_array(&writer);
    json_end_object(&writer);
}

static void handle_metrics(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct operations *operations = context;

    metrics_write(response->body, kind_cell_name);
    view_metrics(operations->extender->store, operations->card_metrics_max, response->body);
    if (operations->pod_metrics)
        view_pod_metrics(operations->extender->store, response->body);
    auditor_metrics(operations->auditor, response->body);
}

static void handle_openapi(void *context, const struct http_request *request,
                           struct http_response *response)
{
    g_string_append_len(response->body, resource_openapi, (gssize)resource_openapi_length);
}

/* --- the ledger ----------------------------------------------------------------------------- */

static void handle_nodes(void *context, const struct http_request *request,
                         struct http_response *response)
{
    static bool (*const views[])(struct store *, const char *, GString *) = {
        [ANSWER_JSON] = view_nodes,
        [ANSWER_TABLE] = view_nodes_table,
    };
    const struct operations *operations = context;
    const char *name = request->n_params > 0 ? http_request_param(request, "name") : NULL;
    enum answer answer = ANSWER_JSON;

    if (!answer_choose(request, response, false, &answer))
        return;
    if (!views[answer](operations->extender->store, name, response->body))
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "node '%s' is not known", name);
}

static void handle_pod(void *context, const struct http_request *request,
                       struct http_response *response)
{
    const struct operations *operations = context;
    const char *ns = http_request_param(request, "namespace");
    const char *name = http_request_param(request, "name");

    if (!view_pod(operations->extender->store, ns, name, response->body))
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "pod '%s/%s' holds no GPU", ns, name);
}

static void handle_resume(void *context, const struct http_request *request,
                          struct http_response *response)
{
    const struct operations *operations = context;
    const char *name = http_request_param(request, "name");
    struct store *store = operations->extender->store;
    struct json_writer writer;
    const bool known = ledger_node(store_lock(store), name) != NULL;

    store_unlock(store);
    if (!known) {
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "node '%s' is not known", name);
        return;
    }
    const bool resumed = store_order(store, "resume", name);
    if (resumed)
        log_event(LOG_LEVEL_INFO, "node resumed", LOG_TEXT("node", name));
    json_writer_init(&writer, response->body);
    json_begin_object(&writer);
    json_key_string(&writer, "node", name);
    json_key_bool(&writer, "resumed", resumed);
    json_end_object(&writer);
}

/* --- audits --------------------------------------------------------------------------------- */

static void handle_audit(void *context, const struct http_request *request,
                         struct http_response *response)
{
    const struct operations *operations = context;
    int64_t age_ms = auditor_encode(operations->auditor, response->body);

    if (age_ms >= 0)
        http_response_add_header(response, MHD_HTTP_HEADER_AGE,
                                 g_strdup_printf("%" G_GINT64_FORMAT, age_ms / 1000));
}

static void handle_start_audit(void *context, const struct http_request *request,
                               struct http_response *response)
{
    const struct operations *operations = context;
    struct json_writer writer;

    response->status = MHD_HTTP_ACCEPTED;
    json_writer_init(&writer, response->body);
    json_begin_object(&writer);
    json_key_int(&writer, "run", (int64_t)auditor_request(operations->auditor));
    json_end_object(&writer);
}

/* --- the embedded cluster ------------------------------------------------------------------- */

static void change_answer(struct http_response *response, unsigned status, const GError *failure)
{
    if (failure)
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
    else
        response->status = status;
}

static bool snapshot_is_there(const struct operations *operations, struct http_response *response)
{
    if (operations->snapshot)
        return true;
    http_response_fail(response, MHD_HTTP_NOT_FOUND,
                       "the cluster is a real one; start with --snapshot to change pods here");
    return false;
}

static void handle_add_pod(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct operations *operations = context;
    g_autoptr(GError) failure = NULL;

    if (!snapshot_is_there(operations, response))
        return;
    operations->snapshot->add_pod(operations->snapshot->data, request->body, request->length,
                                  response->body, &failure);
    change_answer(response, MHD_HTTP_CREATED, failure);
}

static void handle_delete_pod(void *context, const struct http_request *request,
                              struct http_response *response)
{
    const struct operations *operations = context;
    g_autoptr(GError) failure = NULL;

    if (!snapshot_is_there(operations, response))
        return;
    operations->snapshot->delete_pod(operations->snapshot->data,
                                     http_request_param(request, "namespace"),
                                     http_request_param(request, "name"), &failure);
    change_answer(response, MHD_HTTP_NO_CONTENT, failure);
}

/* --- for the page --------------------------------------------------------------------------- */

static void handle_wall(void *context, const struct http_request *request,
                        struct http_response *response)
{
    const struct operations *operations = context;

    view_wall(operations->extender->store, http_request_query(request, "after"), response->body);
}

static void handle_waiting(void *context, const struct http_request *request,
                           struct http_response *response)
{
    const struct operations *operations = context;

    view_waiting(operations->extender->store, http_request_query(request, "search"),
                 response->body);
}

static void handle_quotas(void *context, const struct http_request *request,
                          struct http_response *response)
{
    const struct operations *operations = context;

    view_quotas(operations->extender->store, response->body);
}

static void handle_usage(void *context, const struct http_request *request,
                         struct http_response *response)
{
    const struct operations *operations = context;
    const char *by = http_request_query(request, "by");
    enum usage_by chosen = USAGE_NAMESPACES;

    while (by && usage_names[chosen] && !g_str_equal(by, usage_names[chosen]))
        chosen++;
    if (by && !usage_names[chosen])
        http_response_fail(response, 400, "'by' is namespaces, nodes or models");
    else
        view_usage(operations->extender->store, chosen, response->body);
}

static void handle_decisions(void *context, const struct http_request *request,
                             struct http_response *response)
{
    view_decisions(response->body);
}

static void handle_page(void *context, const struct http_request *request,
                        struct http_response *response)
{
    const char *name = http_request_param(request, "file");

    if (!page_answer(request, name, response))
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "the page has no file '%s'", name);
}

static void index_text(GString *text, const char *title, const struct route *rows)
{
    g_string_append_printf(text, "%s\n", title);
    for (const struct route *route = rows; route->method; route++)
        g_string_append_printf(text, "  %-6s  %-43s  %s\n", route->method, route->pattern,
                               route->help);
}

static void handle_index(void *context, const struct http_request *request,
                         struct http_response *response)
{
    if (answer_accepts(request, "text/html")) {
        page_answer(request, "index.html", response);
        return;
    }
    index_text(response->body, "This listener", operations_routes);
    index_text(response->body, "The scheduler's listener", scheduler_routes);
}

const struct route operations_routes[] = {
    {"GET", "/", TEXT, handle_index, "the page for browsers; for others, this list",
     ROUTE_OPEN | ROUTE_TAGGED},
    {"GET", "/page/{file}", TEXT, handle_page, "what the page is made of",
     ROUTE_OPEN | ROUTE_TAGGED},
    {"GET", "/healthz", TEXT, handle_alive, "whether the process serves", ROUTE_OPEN},
    {"GET", "/livez", TEXT, handle_alive, "the same", ROUTE_OPEN},
    {"GET", "/readyz", TEXT, handle_ready, "whether binds are accepted; ?verbose lists checks",
     ROUTE_OPEN},
    {"GET", "/version", JSON, handle_version, "what runs here"},
    {"GET", "/metrics", "text/plain; version=0.0.4; charset=utf-8", handle_metrics,
     "for Prometheus", ROUTE_VIEW},
    {"GET", "/openapi.yaml", "application/yaml", handle_openapi, "this API, described"},
    {"GET", "/api/v1/nodes", JSON, handle_nodes,
     "nodes, cards and who holds them; ?output=table for terminals", ROUTE_VIEW},
    {"GET", "/api/v1/nodes/{name}", JSON, handle_nodes, "one node"},
    {"POST", "/api/v1/nodes/{name}/resume", JSON, handle_resume,
     "a node that is left out takes pods again"},
    {"GET", "/api/v1/pods/{namespace}/{name}", JSON, handle_pod, "what a pod holds"},
    {"GET", "/api/v1/wall", JSON, handle_wall, "cards as the page draws them, after ?after=NODE",
     ROUTE_VIEW | ROUTE_TAGGED},
    {"GET", "/api/v1/waiting", JSON, handle_waiting,
     "pods that ask for a GPU and have no node, in order of arrival", ROUTE_TAGGED},
    {"GET", "/api/v1/decisions", JSON, handle_decisions, "what was decided lately, and why",
     ROUTE_TAGGED},
    {"GET", "/api/v1/usage", JSON, handle_usage,
     "who has how much, by ?by=namespaces, nodes or models", ROUTE_TAGGED},
    {"GET", "/api/v1/quotas", JSON, handle_quotas, "limits of namespaces, and what counts",
     ROUTE_TAGGED},
    {"GET", "/api/v1/explain", JSON, questions_explain,
     "why ?pod=NAMESPACE/NAME is where it is, or nowhere; ?output=table or wide", ROUTE_QUESTION},
    {"POST", "/api/v1/explain", JSON, questions_explain, "the same of a pod that is sent",
     ROUTE_QUESTION | ROUTE_MANIFEST},
    {"GET", "/api/v1/plan", JSON, questions_plan,
     "which pods to move so that ?pod=NAMESPACE/NAME finds room, or ?empty=NODE/CARD",
     ROUTE_QUESTION},
    {"POST", "/api/v1/plan", JSON, questions_plan, "the same for a pod that is sent",
     ROUTE_QUESTION | ROUTE_MANIFEST},
    {"POST", "/api/v1/fit", JSON, questions_fit,
     "how many pods fit, where, and after nodes are drained", ROUTE_QUESTION | ROUTE_MANIFEST},
    {"GET", "/api/v1/audit", JSON, handle_audit, "what the last audit of the ledger found",
     ROUTE_TAGGED},
    {"POST", "/api/v1/audit", JSON, handle_start_audit, "has the ledger audited"},
    {"POST", "/api/v1/snapshot/pods", JSON, handle_add_pod, "adds a pod to the snapshot"},
    {"DELETE", "/api/v1/snapshot/pods/{namespace}/{name}", JSON, handle_delete_pod,
     "deletes a pod of the snapshot"},
    {NULL},
};
G_STATIC_ASSERT(G_N_ELEMENTS(operations_routes) <= ROUTES_MAX);
