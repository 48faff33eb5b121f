/* SPDX-License-Identifier: Apache-2.0 */
#include "http/questions.h"

#include "explain/explain.h"
#include "explain/fit.h"
#include "http/answers.h"
#include "maintain/named_pods.h"
#include "maintain/plans/plan_aim.h"
#include "maintain/waiting.h"
#include "plan/plan.h"
#include "snapshot/fit_body.h"

#include <gpuledger/error.h>
#include <microhttpd.h>
#include <string.h>

#define GET_POD_MS 5000

/* The pod that ?pod= names, as the cluster has it, or the one in the body. */
static bool read_pod(const struct extender *extender, const struct http_request *request,
                     struct json_arena *arena, struct pod_view *ret_pod, GError **error)
{
    const char *title = http_request_query(request, "pod");
    struct manifest manifest;

    if (strcmp(request->method, MHD_HTTP_METHOD_POST) == 0) {
        if (!manifest_parse(arena, request->body, request->length, &manifest, error))
            return false;
        *ret_pod = manifest.pod;
        return true;
    }
    const char *slash = title ? strchr(title, '/') : NULL;
    if (!slash || slash == title || !slash[1] || strchr(slash + 1, '/')) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "which pod? '?pod=NAMESPACE/NAME', or POST one");
        return false;
    }
    g_autofree char *ns = g_strndup(title, (gsize)(slash - title));
    return explain_read_pod(extender->cluster, arena, ns, slash + 1,
                            g_get_monotonic_time() / 1000 + GET_POD_MS, ret_pod, error);
}

void questions_explain(void *context, const struct http_request *request,
                   struct http_response *response)
{
    const struct operations *operations = context;
    const struct extender *extender = operations->extender;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    enum answer answer;
    struct pod_view pod;
    struct json_writer writer;

    if (!answer_choose(request, response, true, &answer))
        return;
    if (!store_check_synced(extender->store, &failure) ||
        !read_pod(extender, request, arena, &pod, &failure)) {
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
        return;
    }
    g_autoptr(explanation) explanation = explain_pod(extender->store, extender->cluster, &pod);
    explanation->brief = g_strcmp0(http_request_query(request, "nodes"), "0") == 0;
    json_writer_init(&writer, response->body);
    if (answer == ANSWER_JSON)
        explanation_encode(&writer, explanation);
    else
        explanation_write(response->body, explanation, answer == ANSWER_WIDE);
}

static struct fit *find_fit(const struct extender *extender, const struct http_request *request,
                            struct json_arena *arena, GError **error)
{
    struct fit_body body;

    if (!store_check_synced(extender->store, error) ||
        !fit_body_parse(arena, request->body, request->length, &body, error))
        return NULL;
    struct fit *fit = fit_find(
        &(struct fit_query){
            .store = extender->store,
            .cluster = extender->cluster,
            .pod = body.has_pod ? &body.manifest.pod : NULL,
            .replicas = body.replicas,
            .drain = body.drain,
            .template = body.has_template ? &body.template : NULL,
        },
        error);
    return fit;
}

void questions_fit(void *context, const struct http_request *request, struct http_response *response)
{
    const struct operations *operations = context;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    enum answer answer;
    struct json_writer writer;

    if (!answer_choose(request, response, true, &answer))
        return;
    g_autoptr(fit) fit = find_fit(operations->extender, request, arena, &failure);
    if (!fit) {
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
        return;
    }
    json_writer_init(&writer, response->body);
    if (answer == ANSWER_JSON)
        fit_encode(&writer, fit);
    else
        fit_write(response->body, fit);
}

/* --- moves ------------------------------------------------------------------------------------ */

#define MOVES 8 /* as the command plan has it, unless it is told */

/* A number from `least` to PLAN_MOVES_MAX; without it `ret_n` stays as it is. */
static bool read_number(const struct http_request *request, const char *name, guint least,
                        uint32_t *ret_n, GError **error)
{
    const char *text = http_request_query(request, name);
    guint64 n = *ret_n;

    if (text && !g_ascii_string_to_unsigned(text, 10, least, PLAN_MOVES_MAX, &n, NULL)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "'%s' is a number from %u to %d", name, least, PLAN_MOVES_MAX);
        return false;
    }
    *ret_n = (uint32_t)n;
    return true;
}

/* Without it: false. */
static bool read_flag(const struct http_request *request, const char *name, bool *ret_flag,
                      GError **error)
{
    const char *text = http_request_query(request, name);

    *ret_flag = g_strcmp0(text, "true") == 0;
    if (!text || *ret_flag || g_str_equal(text, "false"))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "'%s' is true or false", name);
    return false;
}

/* Whether pods just end. */
static bool read_end(const struct http_request *request, bool *ret_end, GError **error)
{
    if (!read_flag(request, "end", ret_end, error))
        return false;
    if (!*ret_end || (http_request_query(request, "only") && http_request_query(request, "pod")))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "'end' ends the pods of 'only', for a 'pod' of the cluster");
    return false;
}

/* What is not room for a pod. */
static bool read_aim(const struct http_request *request, struct plan_aim *aim, GError **error)
{
    for (const char *const *word = plan_aim_words; *word; word++) {
        const char *text = http_request_query(request, *word);
        if (text && !g_str_equal(*word, "pod") && !plan_aim_read(aim, *word, text, error)) {
            g_prefix_error(error, "'%s': ", *word);
            return false;
        }
    }
    if (plan_aim_count(aim) + (http_request_query(request, "pod") != NULL) < 2)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "a plan has one goal");
    return false;
}

static struct relocation *find_plan(const struct extender *extender,
                                    const struct http_request *request, struct json_arena *arena,
                                    GError **error)
{
    const char *names = http_request_query(request, "only");
    g_auto(GStrv) only = names ? g_strsplit(names, ",", 0) : NULL;
    g_auto(plan_aim_cleared) aim = {0};
    g_autoptr(GHashTable) ends = NULL;
    bool end = false;
    struct pod_view pod;
    struct relocation_query query = {.store = extender->store,
                                     .cluster = extender->cluster,
                                     .moves_max = MOVES,
                                     .fragmented_most = -1};

    if (!store_check_synced(extender->store, error) ||
        !read_number(request, "moves", 1, &query.moves_max, error) ||
        !read_number(request, "perWorkload", 0, &query.per_owner, error) ||
        !read_number(request, "perNode", 0, &query.per_node, error) ||
        !read_number(request, "perNamespace", 0, &query.per_namespace, error) ||
        !read_flag(request, "force", &query.force, error) || !read_end(request, &end, error))
        return NULL;
    if (!read_aim(request, &aim, error) ||
        (plan_aim_count(&aim) == 0 && !read_pod(extender, request, arena, &pod, error)))
        return NULL;
    query.admit = plan_aim_count(&aim) == 0 ? &pod : NULL;
    query.empty = aim.place.node ? &aim.place : NULL;
    query.group_ns = aim.group_ns;
    query.group = aim.group;
    query.less = aim.less;
    query.only = (const char *const *)only;
    if (!named_pods_check(extender->store, query.only, error))
        return NULL;
    query.ends = ends = end ? named_pods_uids(extender->store, query.only) : NULL;
    const struct waiting_query waiters = {.relocation = query,
                                          .waited_ms = aim.waited_ms,
                                          .now_s = g_get_real_time() / G_USEC_PER_SEC};
    return aim.waits ? waiting_find(&waiters, error) : relocation_find(&query, error);
}

void questions_plan(void *context, const struct http_request *request,
                    struct http_response *response)
{
    const struct operations *operations = context;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;

    g_autoptr(relocation) plan = find_plan(operations->extender, request, arena, &failure);
    if (!plan) {
        http_response_fail(response, http_error_status(failure), "%s", failure->message);
        return;
    }
    json_writer_init(&writer, response->body);
    relocation_encode(&writer, plan, 0, NULL);
}
