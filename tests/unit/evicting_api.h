/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An API server with a script (scripted_api.h) for what ends pods of namespace "ml": their texts, and what was asked
 * for in which order. Its clock stands still (stopped_clock.h). */
#include "scripted_api.h"
#include "stopped_clock.h"

#include <string.h>

/* As kube-apiserver says it. Source: kubernetes@v1.31.0:pkg/registry/core/pod/storage/eviction.go */
#define SAYS_BUDGET                                                                                \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\",\"code\":429,"     \
    "\"message\":\"Cannot evict pod as it would violate the pod's disruption budget.\"}"
#define SAYS_OVERLOAD                                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\",\"code\":429,"     \
    "\"message\":\"Too many requests, please try again later.\"}"
#define SAYS_BUDGETS                                                                               \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"InternalError\",\"code\":500,"       \
    "\"message\":\"This pod has more than one PodDisruptionBudget, which the eviction "            \
    "subresource does not support.\"}"

/* As KubeVirt's webhook says it, through the API server. */
#define SAYS_MOVING                                                                                \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":429,\"message\":\"admission webhook "    \
    "\\\"virt-launcher-eviction-interceptor.kubevirt.io\\\" denied the request: Eviction "         \
    "triggered "                                                                                   \
    "evacuation of VMI \\\"ml/vm\\\"\"}"

#define SAYS_GONE                                                                                  \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404,"            \
    "\"message\":\"pods \\\"p\\\" not found\"}"

static GPtrArray *texts; /* of the script */

static inline void evicting_begin(void)
{
    clock_begin();
    texts = g_ptr_array_new_with_free_func(g_free);
    api_begin();
}

static inline void evicting_end(void)
{
    api_end();
    g_ptr_array_unref(texts);
}

/* Until the server is gone. */
static inline const char *keep(char *take_text)
{
    g_ptr_array_add(texts, take_text);
    return take_text;
}

/* --- pods --------------------------------------------------------------------------------------- */

struct api_pod {
    const char *name;
    const char *uid;   /* NULL: "uid-" and the name */
    const char *owner; /* UID of its controller; NULL: it has none */
    const char *kind;  /* the controller's; NULL: ReplicaSet */
    const char *node, *phase;
    const char *annotations; /* JSON, in braces; NULL: none */
    bool deleted, ready;
};

static inline const char *pod_text(struct api_pod pod)
{
    g_autofree char *uid = pod.uid ? g_strdup(pod.uid) : g_strconcat("uid-", pod.name, NULL);
    g_autofree char *owners =
        pod.owner ? g_strdup_printf(",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
                                    "\"%s\",\"name\":\"o\",\"uid\":\"%s\",\"controller\":true}]",
                                    pod.kind ? pod.kind : "ReplicaSet", pod.owner)
                  : g_strdup("");

    return keep(g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":%s%s%s}"
        ","
        "\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":"
        "\"Ready\",\"status\":\"%s\"}]}}",
        pod.name, uid, pod.annotations ? pod.annotations : "{}", owners,
        pod.deleted ? ",\"deletionTimestamp\":\"2026-01-05T12:00:00Z\"" : "",
        pod.node ? pod.node : "", pod.phase ? pod.phase : "Running", pod.ready ? "True" : "False"));
}

/* --- the script --------------------------------------------------------------------------------- */

/* So many answers; FAKE_ALWAYS. They are given in the order of the script. */
static inline void answer(const char *match, int times, int status, const char *text)
{
    script(&(struct fake_reply){
        .match = match, .times = times, .status = status, .chunks = {text ? text : "{}"}});
}

static inline void show_pod(int times, struct api_pod pod)
{
    answer(keep(g_strdup_printf("GET /api/v1/namespaces/ml/pods/%s ", pod.name)), times, 200,
           pod_text(pod));
}

static inline void hide_pod(int times, const char *name)
{
    answer(keep(g_strdup_printf("GET /api/v1/namespaces/ml/pods/%s ", name)), times, 404, NULL);
}

/* A list of namespace "ml" with so many pods of that controller, all of them Ready. */
static inline void show_ready(int times, const char *owner, unsigned n)
{
    g_autoptr(GString) items = g_string_new("{\"items\":[");

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(
            items, "%s%s", i ? "," : "",
            pod_text((struct api_pod){.name = "any", .owner = owner, .ready = true}));
    g_string_append(items, "]}");
    answer("GET /api/v1/namespaces/ml/pods ", times, 200, keep(g_strdup(items->str)));
}

static inline void accept_evictions(int times)
{
    answer("/eviction ", times, 201, NULL);
}

/* --- what was asked for ------------------------------------------------------------------------- */

/* How many requests have all of these, the first in their first line; NULL: any. */
static inline unsigned count_requests(const char *line, const char *body)
{
    unsigned n = 0;

    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        g_autofree char *first = g_strndup(request, strcspn(request, "\r"));
        n += (!line || strstr(first, line)) && (!body || strstr(request, body));
    }
    return n;
}

static inline unsigned count_evictions(void)
{
    return count_requests("/eviction ", NULL) -
           count_requests("/eviction ", "\"dryRun\":[\"All\"]");
}

/* Of all requests the letter of the method, and what is asked for in namespace "ml" or beside it: "G web-1; P
 * web-1/eviction dry". Free with g_free. */
static inline char *list_requests(void)
{
    GString *list = g_string_new(NULL);

    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        g_auto(GStrv) words = g_strsplit(request, " ", 3);
        static const char *const prefixes[] = {"/api/v1/namespaces/ml/pods/",
                                               "/apis/events.k8s.io/v1/namespaces/",
                                               "/api/v1/namespaces/", "/api/v1/"};
        const char *path = words[1];
        for (size_t j = 0; j < G_N_ELEMENTS(prefixes); j++) {
            if (g_str_has_prefix(words[1], prefixes[j])) {
                path += strlen(prefixes[j]);
                break;
            }
        }
        g_string_append_printf(list, "%s%.1s %s%s", list->len ? "; " : "", words[0], path,
                               strstr(request, "\"dryRun\":[\"All\"]") ? " dry" : "");
    }
    return g_string_free(list, FALSE);
}

static inline void expect_list(const char *wanted)
{
    g_autofree char *list = list_requests();

    ck_assert_str_eq(list, wanted);
}
