/* SPDX-License-Identifier: Apache-2.0 */
#include "http/routes.h"

#include "app/version.h"
#include "http/resources.h"
#include "http_client.h"
#include "suite.h"

#include <gpuledger/error.h>

/* --- a cluster of one node with two cards of 15, and a pod on the first ----------------------- */

static enum outcome fake_bind(struct cluster *cluster, const struct binding *binding,
                              int64_t deadline_ms, GError **error)
{
    return OUTCOME_OK;
}

static enum outcome fake_get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                                 const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                 GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "pod '%s/%s' not found", ns,
                name);
    return OUTCOME_NOT_FOUND;
}

static enum outcome fake_list(struct cluster *cluster, enum feed feed, struct store *store,
                              GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE, "no list");
    return OUTCOME_REFUSED;
}

static const struct cluster_ops fake_ops = {
    .name = "fake", .bind = fake_bind, .get_pod = fake_get_pod, .list = fake_list};
static struct cluster fake_cluster = {&fake_ops};

static void apply_node(struct store *store)
{
    static const struct string_pair amounts[] = {
        {"aliyun.com/gpu-count", "2"},
        {"aliyun.com/gpu-mem", "30"},
    };
    const struct node_view node = {
        .name = "n1",
        .capacity = {amounts, 2},
        .allocatable = {amounts, 2},
    };

    store_apply_node(store, &node);
}

static void apply_pod(struct store *store)
{
    static const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "6"}};
    static const struct container_view container = {.name = "main", .limits = {limits, 1}};
    static const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
        {"ALIYUN_COM_GPU_MEM_IDX", "0"},
        {"ALIYUN_COM_GPU_MEM_POD", "6"},
    };
    const struct pod_view pod = {
        .ns = "ml",
        .name = "a-0",
        .uid = "uid-1",
        .node_name = "n1",
        .phase = "Running",
        .annotations = {annotations, G_N_ELEMENTS(annotations)},
        .containers = &container,
        .n_containers = 1,
    };

    store_apply_pod(store, &pod);
}

static bool fake_add_pod(void *data, const char *body, size_t length, GString *reply,
                         GError **error)
{
    if (length == 2 && memcmp(body, "{}", 2) == 0) {
        g_string_append(reply, "{\"metadata\":{}}");
        return true;
    }
    g_set_error(error, GPULEDGER_ERROR,
                length > 0 ? GPULEDGER_ERROR_CONFLICT : GPULEDGER_ERROR_INVALID, "no");
    return false;
}

static bool fake_delete_pod(void *data, const char *ns, const char *name, GError **error)
{
    if (strcmp(ns, "ml") == 0 && strcmp(name, "a-0") == 0)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "no pod '%s/%s'", ns, name);
    return false;
}

static const struct snapshot_hooks fake_snapshot = {NULL, fake_add_pod, fake_delete_pod};

static gint elected = 1, labelled = 1; /* atomic */

static bool fake_is_elected(void *data, char **ret_why)
{
    if (!g_atomic_int_get(&elected))
        *ret_why = g_strdup("another replica leads");
    return g_atomic_int_get(&elected);
}

static uint64_t fake_term(struct fence *fence)
{
    return g_atomic_int_get(&elected) ? 1 : 0;
}

static int64_t fake_until_ms(struct fence *fence, uint64_t term)
{
    return INT64_MAX;
}

static bool fake_publish(struct fence *fence, uint64_t term, int64_t deadline_ms, GError **error)
{
    return true;
}

static const struct fence_ops fake_fence_ops = {fake_term, fake_until_ms, fake_publish};
static struct fence fake_fence = {&fake_fence_ops};

static bool fake_is_labelled(void *data, char **ret_why)
{
    if (!g_atomic_int_get(&labelled))
        *ret_why = g_strdup("still labelled");
    return g_atomic_int_get(&labelled);
}

static const struct replica_hooks fake_replica = {NULL, fake_is_elected, fake_is_labelled};

enum listener { SCHEDULER, OPERATIONS, LISTENERS_N };

static struct extender extender;
static struct operations operations;
static struct routes routes[LISTENERS_N];
static struct server *servers[LISTENERS_N];
static int connections[LISTENERS_N];

static void feed_store(void)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, (enum feed)feed);
        if (feed == FEED_NODES)
            apply_node(extender.store);
        if (feed == FEED_PODS)
            apply_pod(extender.store);
        store_list_end(extender.store, (enum feed)feed);
    }
}

/* Nothing has been read yet. */
static void world_begin_empty(void)
{
    static const struct store_options store_options = {
        .policy = policies,
        .dialects = {.gpushare_memory_unit = INT64_C(1) << 30},
    };
    static const struct route *const tables[] = {scheduler_routes, operations_routes};

    extender = (struct extender){
        .store = store_new(&store_options),
        .cluster = &fake_cluster,
        .fence = &fake_fence,
        .bind_timeout_ms = 1000,
    };
    operations = (struct operations){&extender, &fake_snapshot, &fake_replica, NULL};
    operations.auditor = auditor_start(&extender, &(struct auditor_options){0}, NULL);
    for (int i = 0; i < LISTENERS_N; i++) {
        routes[i] =
            (struct routes){tables[i], i == SCHEDULER ? (void *)&extender : (void *)&operations};
        const struct server_options options = {
            .name = i == SCHEDULER ? "scheduler" : "operations",
            .host = "127.0.0.1",
            .mode = i == SCHEDULER ? SERVER_THREADS : SERVER_ONE_THREAD,
            .connections_max = 8,
            .idle_timeout_s = 120,
            .body_max = 1 << 20,
            .bodies_max = 1 << 20,
            .error_bodies = i == OPERATIONS,
            .handler = routes_handle,
            .data = &routes[i],
        };
        servers[i] = server_start(&options, NULL);
        ck_assert_ptr_nonnull(servers[i]);
        connections[i] = http_connect(server_port(servers[i]));
    }
}

static void world_begin(void)
{
    world_begin_empty();
    feed_store();
}

static void world_end(void)
{
    for (int i = 0; i < LISTENERS_N; i++) {
        close(connections[i]);
        server_free(servers[i]);
    }
    auditor_free(operations.auditor);
    store_free(extender.store);
}

static void call(enum listener listener, const char *method, const char *path, const char *headers,
                 const char *body, struct http_reply *ret_reply)
{
    http_call(connections[listener],
              &(struct http_call){method, path, headers, body, body ? strlen(body) : 0}, ret_reply);
}

/* --- answers -------------------------------------------------------------------------------- */

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"b\",\"namespace\":\"ml\",\"uid\":\"uid-2\"},\"spec\":{"             \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}]"  \
    "}}"
#define FILTER_CALL "{\"Pod\":" POD ",\"Nodes\":null,\"NodeNames\":[\"n1\"]}"
#define PREEMPT_CALL "{\"Pod\":" POD ",\"NodeNameToMetaVictims\":{\"n9\":{\"Pods\":null}}}"
#define INSPECTION                                                                                 \
    "{\"nodes\":[{\"name\":\"n1\",\"totalGPU\":30,\"usedGPU\":6,\"devs\":[{\"id\":0,"              \
    "\"totalGPU\":15,\"usedGPU\":6,\"pods\":[{\"name\":\"a-0\",\"namespace\":\"ml\","              \
    "\"usedGPU\":6}]},{\"id\":1,\"totalGPU\":15,\"usedGPU\":0,\"pods\":[]}]}]}"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"
#define ACCEPT_TEXT "Accept: text/plain\r\n"
#define BROWSER "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"

static const struct answer_case {
    enum listener listener;
    const char *method;
    const char *path;
    const char *headers;
    const char *body;
    int status;
    const char *type;  /* NULL: no body */
    const char *reply; /* all of it, or with a leading '~' a part */
} answer_cases[] = {
    {SCHEDULER, "POST", "/gpushare-scheduler/filter", NULL, FILTER_CALL, 200, JSON,
     "~\"NodeNames\":[\"n1\"]"},
    {SCHEDULER, "POST", "/gpushare-scheduler/predicates", NULL, FILTER_CALL, 200, JSON,
     "~\"NodeNames\":[\"n1\"]"},
    {SCHEDULER, "POST", "/scheduler/filter", NULL, FILTER_CALL, 200, JSON,
     "~\"NodeNames\":[\"n1\"]"},
    {SCHEDULER, "POST", "/scheduler/predicates", NULL, FILTER_CALL, 200, JSON,
     "~\"NodeNames\":[\"n1\"]"},
    {SCHEDULER, "POST", "/gpushare-scheduler//filter", NULL, FILTER_CALL, 200, JSON,
     "~\"NodeNames\":[\"n1\"]"},
    {SCHEDULER, "POST", "/gpushare-scheduler/filter", NULL, "nonsense", 200, JSON, "~\"Error\":\""},
    {SCHEDULER, "POST", "/gpushare-scheduler/filter", NULL, NULL, 200, JSON, "~\"Error\":\""},
    {SCHEDULER, "POST", "/gpushare-scheduler/prioritize", NULL, FILTER_CALL, 200, JSON,
     "[{\"Host\":\"n1\",\"Score\":10}]"},
    {SCHEDULER, "POST", "/scheduler/priorities", NULL, FILTER_CALL, 200, JSON,
     "[{\"Host\":\"n1\",\"Score\":10}]"},
    {SCHEDULER, "POST", "/gpushare-scheduler/prioritize-cpu", NULL, FILTER_CALL, 200, JSON, "[]"},
    {SCHEDULER, "POST", "/gpushare-scheduler/preempt", NULL, PREEMPT_CALL, 200, JSON,
     "{\"NodeNameToMetaVictims\":{}}"},
    {SCHEDULER, "POST", "/scheduler/preempt", NULL, "nonsense", 400, NULL, ""},
    {SCHEDULER, "POST", "/gpushare-scheduler/prioritize", NULL, "nonsense", 400, NULL, ""},
    {SCHEDULER, "POST", "/scheduler/prioritize-cpu", NULL, NULL, 400, NULL, ""},
    {SCHEDULER, "POST", "/gpushare-scheduler/bind", NULL, "{}", 200, JSON, "~{\"Error\":\"field"},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "{}", 200, JSON, "~{\"Error\":\"field"},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect", NULL, NULL, 200, JSON, INSPECTION},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect/", NULL, NULL, 200, JSON, INSPECTION},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect/n1", NULL, NULL, 200, JSON, INSPECTION},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect/n%31/", NULL, NULL, 200, JSON, INSPECTION},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect/no", NULL, NULL, 404, JSON,
     "{\"nodes\":[],\"error\":\"node 'no' is not known\"}"},
    {SCHEDULER, "GET", "/scheduler/status", NULL, NULL, 200, JSON,
     "~{\"aliyun.com/gpu-mem\":\"{\\\"n1\\\":[{\\\"CoreAvailable\\\":100,"
     "\\\"MemoryAvailable\\\":9216,\\\"CoreTotal\\\":100,\\\"MemoryTotal\\\":15360}"},
    {SCHEDULER, "POST", "/scheduler/status", NULL, "{}", 405, NULL, ""},
    {SCHEDULER, "GET", "/gpushare-scheduler/filter", NULL, NULL, 405, NULL, ""},
    {SCHEDULER, "POST", "/gpushare-scheduler/nope", NULL, "{}", 404, NULL, ""},
    {SCHEDULER, "GET", "/metrics", NULL, NULL, 404, NULL, ""},

    {OPERATIONS, "GET", "/healthz", NULL, NULL, 200, TEXT, "ok\n"},
    {OPERATIONS, "GET", "/livez", NULL, NULL, 200, TEXT, "ok\n"},
    {OPERATIONS, "GET", "/readyz", NULL, NULL, 200, TEXT, "ok\n"},
    {OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, 200, TEXT,
     "[+]synced ok\n[+]serving ok\n[+]elected ok\n[+]labelled ok\nreadyz check passed\n"},
    {OPERATIONS, "GET", "/readyz?verbose=1", NULL, NULL, 200, TEXT, "~[+]synced ok\n"},
    {OPERATIONS, "GET", "/version", NULL, NULL, 200, JSON,
     "~\"cluster\":\"fake\",\"dialects\":[\"gpushare\""},
    {OPERATIONS, "GET", "/metrics", NULL, NULL, 200, "text/plain; version=0.0.4; charset=utf-8",
     "~\ngpuledger_card_memory_used_bytes{node=\"n1\",card=\"0\"} 6442450944\n"},
    {OPERATIONS, "GET", "/metrics", NULL, NULL, 200, "text/plain; version=0.0.4; charset=utf-8",
     "~\ngpuledger_http_responses_total{class=\"2xx\"} "},
    {OPERATIONS, "GET", "/openapi.yaml", NULL, NULL, 200, "application/yaml", "~\nopenapi: 3.0"},
    {OPERATIONS, "GET", "/", NULL, NULL, 200, TEXT, "~/api/v1/pods/{namespace}/{name}"},
    {OPERATIONS, "GET", "/", BROWSER, NULL, 200, "text/html; charset=utf-8",
     "~<a href=\"/api/v1/nodes\">"},
    {OPERATIONS, "GET", "/api/v1/nodes", NULL, NULL, 200, JSON, "~{\"nodes\":[{\"name\":\"n1\""},
    {OPERATIONS, "GET", "/api/v1/nodes", ACCEPT_TEXT, NULL, 200, TEXT, "~NODE"},
    {OPERATIONS, "GET", "/api/v1/nodes", BROWSER, NULL, 200, JSON, "~{\"nodes\":["},
    {OPERATIONS, "GET", "/api/v1/nodes?output=table", NULL, NULL, 200, TEXT, "~ml/a-0"},
    {OPERATIONS, "GET", "/api/v1/nodes?output=json", ACCEPT_TEXT, NULL, 200, JSON, "~{\"nodes\":["},
    {OPERATIONS, "GET", "/api/v1/nodes?output=%78ml", NULL, NULL, 400, JSON,
     "{\"error\":\"output 'xml' is not known; use 'json' or 'table'\"}"},
    {OPERATIONS, "GET", "/api/v1/nodes/n1", NULL, NULL, 200, JSON, "~{\"name\":\"n1\""},
    {OPERATIONS, "GET", "/api/v1/nodes/n1/", ACCEPT_TEXT, NULL, 200, TEXT, "~ml/a-0"},
    {OPERATIONS, "GET", "/api/v1/nodes/no", NULL, NULL, 404, JSON,
     "{\"error\":\"node 'no' is not known\"}"},
    {OPERATIONS, "GET", "/api/v1/nodes/no?output=table", NULL, NULL, 404, JSON,
     "{\"error\":\"node 'no' is not known\"}"},
    {OPERATIONS, "GET", "/api/v1/pods/ml/a-0", NULL, NULL, 200, JSON, "~\"uid\":\"uid-1\""},
    {OPERATIONS, "GET", "/api/v1/pods/ml/no", NULL, NULL, 404, JSON,
     "{\"error\":\"pod 'ml/no' holds no GPU\"}"},
    {OPERATIONS, "GET", "/api/v1/pods/ml", NULL, NULL, 404, JSON,
     "{\"error\":\"there is no '/api/v1/pods/ml' here\"}"},
    {OPERATIONS, "POST", "/api/v1/snapshot/pods", NULL, "{}", 201, JSON, "{\"metadata\":{}}"},
    {OPERATIONS, "POST", "/api/v1/snapshot/pods", NULL, "x", 409, JSON, "{\"error\":\"no\"}"},
    {OPERATIONS, "POST", "/api/v1/snapshot/pods", NULL, NULL, 400, JSON, "{\"error\":\"no\"}"},
    {OPERATIONS, "DELETE", "/api/v1/snapshot/pods/ml/a-0", NULL, NULL, 204, NULL, ""},
    {OPERATIONS, "DELETE", "/api/v1/snapshot/pods/ml/b", NULL, NULL, 404, JSON,
     "{\"error\":\"no pod 'ml/b'\"}"},
    {OPERATIONS, "PUT", "/healthz", NULL, "x", 405, JSON,
     "{\"error\":\"'/healthz' takes GET, HEAD, not PUT\"}"},
    {OPERATIONS, "GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", NULL, NULL, 404, JSON,
     "~there is no"},
    {OPERATIONS, "POST", "/gpushare-scheduler/filter", NULL, "{}", 404, JSON, "~there is no"},
    {OPERATIONS, "GET", "/a\"b\\", NULL, NULL, 404, JSON,
     "{\"error\":\"there is no '/a\\\"b\\\\' here\"}"},
};

START_TEST(answers)
{
    const struct answer_case *c = &answer_cases[_i];
    g_auto(http_reply) reply = {0};

    call(c->listener, c->method, c->path, c->headers, c->body, &reply);
    g_autofree char *type = http_header(&reply, "Content-Type");

    ck_assert_msg(reply.status == c->status, "%s %s: %d %s", c->method, c->path, reply.status,
                  reply.body->str);
    ck_assert_pstr_eq(type, c->type);
    if (c->reply[0] == '~')
        ck_assert_msg(strstr(reply.body->str, c->reply + 1), "%s %s: %s", c->method, c->path,
                      reply.body->str);
    else
        ck_assert_str_eq(reply.body->str, c->reply);

    if (strcmp(c->method, "GET") == 0) {
        g_auto(http_reply) head = {0};

        call(c->listener, "HEAD", c->path, c->headers, NULL, &head);
        g_autofree char *head_type = http_header(&head, "Content-Type");
        ck_assert_int_eq(head.status, c->status);
        ck_assert_pstr_eq(head_type, c->type);
    }
}
END_TEST

START_TEST(an_audit_is_asked_for)
{
    g_auto(http_reply) none = {0};
    g_auto(http_reply) asked = {0};

    call(OPERATIONS, "GET", "/api/v1/audit", NULL, NULL, &none);
    ck_assert_int_eq(none.status, 200);
    ck_assert_str_eq(none.body->str,
                     "{\"run\":0,\"running\":false,\"error\":null,\"report\":null}");
    call(OPERATIONS, "POST", "/api/v1/audit", NULL, NULL, &asked);
    ck_assert_int_eq(asked.status, 202);
    ck_assert_str_eq(asked.body->str, "{\"run\":1}");
    for (bool done = false; !done;) {
        g_auto(http_reply) reply = {0};

        call(OPERATIONS, "GET", "/api/v1/audit", NULL, NULL, &reply);
        done = strstr(reply.body->str, "\"run\":1,");
        ck_assert(!done || strstr(reply.body->str, "\"error\":\"no list\",\"report\":null"));
    }
}
END_TEST

START_TEST(the_schedulers_version_is_bare)
{
    g_auto(http_reply) reply = {0};

    call(SCHEDULER, "GET", "/version", NULL, NULL, &reply);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_str_eq(reply.body->str, version_text);
    ck_assert_ptr_null(strchr(reply.body->str, '\n'));
}
END_TEST

START_TEST(a_pod_is_bound_and_shown)
{
    g_auto(http_reply) bound = {0};
    g_auto(http_reply) shown = {0};

    /* The watch has shown the pod by the time it is bound. */
    {
        static const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "4"}};
        static const struct container_view container = {.name = "c", .limits = {limits, 1}};
        const struct pod_view pod = {
            .ns = "ml",
            .name = "b",
            .uid = "uid-2",
            .phase = "Pending",
            .containers = &container,
            .n_containers = 1,
        };
        store_apply_pod(extender.store, &pod);
    }
    call(SCHEDULER, "POST", "/gpushare-scheduler/bind", NULL,
         "{\"PodName\":\"b\",\"PodNamespace\":\"ml\",\"PodUID\":\"uid-2\",\"Node\":\"n1\"}",
         &bound);
    ck_assert_int_eq(bound.status, 200);
    ck_assert_str_eq(bound.body->str, "{\"Error\":\"\"}");
    call(OPERATIONS, "GET", "/api/v1/pods/ml/b", NULL, NULL, &shown);
    ck_assert_int_eq(shown.status, 200);
    ck_assert_ptr_nonnull(strstr(shown.body->str, "\"state\":\"bound\""));
}
END_TEST

START_TEST(other_methods_are_told_which_are_allowed)
{
    static const struct {
        enum listener listener;
        const char *path;
        const char *allow;
    } cases[] = {
        {OPERATIONS, "/healthz", "GET, HEAD"},
        {OPERATIONS, "/api/v1/snapshot/pods", "POST"},
        {OPERATIONS, "/api/v1/snapshot/pods/a/b", "DELETE"},
        {SCHEDULER, "/scheduler/bind/", "POST"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(http_reply) reply = {0};

        call(cases[i].listener, "PATCH", cases[i].path, NULL, NULL, &reply);
        g_autofree char *allow = http_header(&reply, "Allow");
        ck_assert_int_eq(reply.status, 405);
        ck_assert_pstr_eq(allow, cases[i].allow);
    }
}
END_TEST

/* --- readiness ------------------------------------------------------------------------------ */

static void assert_not_ready(const char *line)
{
    g_auto(http_reply) probe = {0};
    g_auto(http_reply) alive = {0};

    call(OPERATIONS, "GET", "/readyz", NULL, NULL, &probe);
    g_autofree char *expected = g_strdup_printf("%s\nreadyz check failed\n", line);
    ck_assert_int_eq(probe.status, 503);
    ck_assert_str_eq(probe.body->str, expected);
    call(OPERATIONS, "GET", "/healthz", NULL, NULL, &alive);
    ck_assert_int_eq(alive.status, 200);
}

START_TEST(readiness_names_feeds_not_read)
{
    assert_not_ready("[-]synced failed: not yet read from the cluster: nodes, pods, configmaps");
    store_list_begin(extender.store, FEED_NODES);
    store_list_end(extender.store, FEED_NODES);
    store_set_trouble(extender.store, FEED_PODS, "we may not");
    assert_not_ready("[-]synced failed: not yet read from the cluster: pods (we may not), configmaps");
}
END_TEST

START_TEST(readiness_ends_with_draining)
{
    g_auto(http_reply) verbose = {0};

    g_atomic_int_set(&extender.draining, 1);
    assert_not_ready("[-]serving failed: shutting down");
    call(OPERATIONS, "GET", "/readyz?verbose", NULL, NULL, &verbose);
    ck_assert_int_eq(verbose.status, 503);
    ck_assert_str_eq(verbose.body->str, "[+]synced ok\n[-]serving failed: shutting down\n"
                                        "[+]elected ok\n[+]labelled ok\nreadyz check failed\n");
}
END_TEST

START_TEST(who_stands_by_is_not_ready)
{
    g_atomic_int_set(&elected, 0);
    assert_not_ready("[-]elected failed: another replica leads");
    g_atomic_int_set(&elected, 1);
    g_atomic_int_set(&labelled, 0);
    assert_not_ready("[-]labelled failed: still labelled");
    g_atomic_int_set(&labelled, 1);
}
END_TEST

/* A Service would lead the same connection to the same replica for ever. */
START_TEST(who_stands_by_lets_go_of_the_caller)
{
    static const char *const paths[] = {"/gpushare-scheduler/filter", "/gpushare-scheduler/bind"};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_auto(http_reply) serving = {0};
        g_auto(http_reply) standing_by = {0};

        call(SCHEDULER, "POST", paths[i], NULL, "{}", &serving);
        g_autofree char *kept = http_header(&serving, "Connection");
        ck_assert_ptr_null(kept);
        g_atomic_int_set(&elected, 0);
        call(SCHEDULER, "POST", paths[i], NULL, "{}", &standing_by);
        g_atomic_int_set(&elected, 1);
        g_autofree char *closed = http_header(&standing_by, "Connection");
        ck_assert_int_eq(standing_by.status, 200);
        ck_assert_pstr_eq(closed, "close");
        close(connections[SCHEDULER]);
        connections[SCHEDULER] = http_connect(server_port(servers[SCHEDULER]));
    }
}
END_TEST

START_TEST(a_check_can_be_left_out)
{
    g_auto(http_reply) probe = {0};
    g_auto(http_reply) other = {0};
    g_auto(http_reply) unknown = {0};

    g_atomic_int_set(&elected, 0);
    call(OPERATIONS, "GET", "/readyz?exclude=elected&verbose", NULL, NULL, &probe);
    call(OPERATIONS, "GET", "/readyz?exclude=labelled", NULL, NULL, &other);
    g_atomic_int_set(&elected, 1);
    ck_assert_int_eq(probe.status, 200);
    ck_assert_str_eq(probe.body->str, "[+]synced ok\n[+]serving ok\n[+]elected excluded: ok\n"
                                      "[+]labelled ok\nreadyz check passed\n");
    ck_assert_int_eq(other.status, 503);
    call(OPERATIONS, "GET", "/readyz?exclude=elect", NULL, NULL, &unknown);
    ck_assert_int_eq(unknown.status, 400);
    ck_assert_ptr_nonnull(strstr(unknown.body->str, "no check 'elect'"));
}
END_TEST

START_TEST(snapshot_routes_need_a_snapshot)
{
    g_auto(http_reply) added = {0};
    g_auto(http_reply) deleted = {0};

    operations.snapshot = NULL;
    call(OPERATIONS, "POST", "/api/v1/snapshot/pods", NULL, "{}", &added);
    ck_assert_int_eq(added.status, 404);
    ck_assert_ptr_nonnull(strstr(added.body->str, "--snapshot"));
    call(OPERATIONS, "DELETE", "/api/v1/snapshot/pods/ml/a-0", NULL, NULL, &deleted);
    ck_assert_int_eq(deleted.status, 404);
}
END_TEST

/* --- tables --------------------------------------------------------------------------------- */

/* Each row is reached by its own pattern, is on the index page, and is in the API description. */
START_TEST(every_row_is_reached_listed_and_described)
{
    static const struct route *const tables[] = {scheduler_routes, operations_routes};
    g_auto(http_reply) index = {0};

    call(OPERATIONS, "GET", "/", NULL, NULL, &index);
    for (int i = 0; i < LISTENERS_N; i++) {
        for (const struct route *route = tables[i]; route->method; route++) {
            g_auto(http_reply) reply = {0};
            g_autofree char *line = g_strdup_printf("\n  %s:\n", route->pattern);

            call(i, "TRACE", route->pattern, NULL, NULL, &reply);
            ck_assert_msg(reply.status == 405, "%s: %d", route->pattern, reply.status);
            ck_assert_msg(strstr(index.body->str, route->pattern), "%s is not on the index",
                          route->pattern);
            ck_assert_msg(g_strstr_len(resource_openapi, (gssize)resource_openapi_length, line),
                          "%s is not in openapi.yaml", route->pattern);
            ck_assert_msg(route->help && route->help[0], "%s: no help", route->pattern);
            ck_assert_msg(route->content_type, "%s: no content type", route->pattern);
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("routes");
    TCase *tc = tcase_create("routes");
    TCase *empty = tcase_create("empty");

    tcase_set_timeout(tc, 60);
    tcase_set_timeout(empty, 60);
    tcase_add_checked_fixture(tc, world_begin, world_end);
    tcase_add_loop_test(tc, answers, 0, (int)G_N_ELEMENTS(answer_cases));
    tcase_add_test(tc, an_audit_is_asked_for);
    tcase_add_test(tc, the_schedulers_version_is_bare);
    tcase_add_test(tc, a_pod_is_bound_and_shown);
    tcase_add_test(tc, other_methods_are_told_which_are_allowed);
    tcase_add_test(tc, readiness_ends_with_draining);
    tcase_add_test(tc, who_stands_by_is_not_ready);
    tcase_add_test(tc, who_stands_by_lets_go_of_the_caller);
    tcase_add_test(tc, a_check_can_be_left_out);
    tcase_add_test(tc, snapshot_routes_need_a_snapshot);
    tcase_add_test(tc, every_row_is_reached_listed_and_described);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(empty, world_begin_empty, world_end);
    tcase_add_test(empty, readiness_names_feeds_not_read);
    suite_add_tcase(s, empty);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
