/* SPDX-License-Identifier: Apache-2.0 */
#include "http/routes.h"
#include "base/longest.h"

#include "base/version.h"
#include "http/resources.h"
#include "listening_extender.h"
#include "suite.h"

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
    {SCHEDULER, "GET", "/version%00x", NULL, NULL, 404, NULL, ""},

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
     "~<script type=\"module\" src=\"page/app.js\"></script>"},
    {OPERATIONS, "GET", "/page/app.js", NULL, NULL, 200, "text/javascript; charset=utf-8",
     "~import "},
    {OPERATIONS, "GET", "/page/no.js", NULL, NULL, 404, JSON,
     "{\"error\":\"the page has no file 'no.js'\"}"},
    {OPERATIONS, "GET", "/page/..%2Fapp.js", NULL, NULL, 404, JSON, "~there is no"},
    {OPERATIONS, "GET", "/api/v1/wall", NULL, NULL, 200, JSON, "~{\"nodes\":[{\"name\":\"n1\""},
    {OPERATIONS, "GET", "/api/v1/wall?after=n1", NULL, NULL, 200, JSON, "~\"next\":null"},
    {OPERATIONS, "GET", "/api/v1/waiting", NULL, NULL, 200, JSON, "~\"total\":"},
    {OPERATIONS, "GET", "/api/v1/decisions", NULL, NULL, 200, JSON, "~{\"decisions\":["},
    {OPERATIONS, "GET", "/api/v1/plan?pod=x", NULL, NULL, 400, JSON, "~which pod?"},
    {OPERATIONS, "GET", "/api/v1/plan?empty=n1&moves=99", NULL, NULL, 400, JSON,
     "{\"error\":\"'moves' is a number from 1 to 64\"}"},
    {OPERATIONS, "GET", "/api/v1/usage?by=pods", NULL, NULL, 400, JSON,
     "{\"error\":\"'by' is namespaces, nodes or models\"}"},
    {OPERATIONS, "GET", "/api/v1/quotas", NULL, NULL, 200, JSON,
     "{\"quotas\":[],\"total\":0,\"elastic\":[],\"elasticTotal\":0}"},
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

/* --- doors ---------------------------------------------------------------------------------- */

#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"
#define YAML "Content-Type: application/yaml\r\n"
#define ORIGIN "Origin: http://evil.example\r\n"
#define BIND_CALL "{\"PodName\":\"b\",\"PodNamespace\":\"ml\",\"PodUID\":\"uid-2\",\"Node\":\"n1\"}"

static const struct door_case {
    enum listener listener;
    const char *method, *path;
    const char *host; /* NULL: a known one */
    const char *headers, *body;
    int status;
} door_cases[] = {
    {SCHEDULER, "POST", "/scheduler/bind", NULL, AS_JSON, BIND_CALL, 200},
    {SCHEDULER, "POST", "/scheduler/bind", NULL,
     "content-type: Application/JSON; charset=utf-8\r\n", BIND_CALL, 200},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "Content-Type: application/json ;x=y\r\n",
     BIND_CALL, 200},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, FORM, BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "Content-Type: text/plain\r\n", BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "Content-Type: text/plain;application/json\r\n",
     BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "Content-Type: application/jsonx\r\n", BIND_CALL,
     415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "Content-Type:\r\n", BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, "", BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, YAML, BIND_CALL, 415},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, AS_JSON ORIGIN, BIND_CALL, 403},
    {SCHEDULER, "POST", "/scheduler/bind", NULL, AS_JSON "Origin: null\r\n", BIND_CALL, 403},
    {SCHEDULER, "GET", "/gpushare-scheduler/inspect", NULL, ORIGIN, NULL, 403},
    {SCHEDULER, "GET", "/nowhere", NULL, ORIGIN, NULL, 403},
    {SCHEDULER, "OPTIONS", "/scheduler/bind", NULL, ORIGIN, NULL, 403},
    {SCHEDULER, "GET", "/version", "any.example", NULL, NULL, 200},
    {OPERATIONS, "POST", "/api/v1/audit", NULL, FORM, NULL, 415},
    {OPERATIONS, "POST", "/api/v1/audit", NULL, "", NULL, 415},
    {OPERATIONS, "POST", "/api/v1/audit", NULL, YAML, NULL, 415},
    {OPERATIONS, "POST", "/api/v1/audit", NULL, AS_JSON ORIGIN, NULL, 202},
    {OPERATIONS, "POST", "/api/v1/nodes/n1/resume", NULL, FORM, NULL, 415},
    {OPERATIONS, "POST", "/api/v1/snapshot/pods", NULL, FORM, "{}", 415},
    {OPERATIONS, "POST", "/api/v1/explain", NULL, YAML,
     "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n", 200},
    {OPERATIONS, "POST", "/api/v1/explain", NULL, FORM, POD, 415},
    {OPERATIONS, "POST", "/api/v1/fit", NULL, "Content-Type: text/yaml\r\n", "{}", 415},
    {OPERATIONS, "POST", "/api/v1/plan", NULL, "", POD, 415},
    {OPERATIONS, "DELETE", "/api/v1/snapshot/pods/ml/a-0", NULL, NULL, NULL, 204},
    {OPERATIONS, "GET", "/api/v1/nodes", "gpus.example", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "GPUS.example.:80", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "localhost:39998", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "127.0.0.1", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "192.0.2.7:39998", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "[2001:db8::1]:39998", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "[fe80::1%25eth0]", NULL, NULL, 200},
    {OPERATIONS, "GET", "/api/v1/nodes", "evil.example", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "gpus.example.evil.example", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "127.0.0.1.evil.example", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "localhost.evil.example:80", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "gpus.example,test", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "[evil.example]", NULL, NULL, 403},
    {OPERATIONS, "GET", "/api/v1/nodes", "", NULL, NULL, 403},
    {OPERATIONS, "GET", "/healthz", "evil.example", NULL, NULL, 403},
    {OPERATIONS, "GET", "/", "evil.example", NULL, NULL, 403},
    {OPERATIONS, "POST", "/api/v1/audit", "evil.example", AS_JSON, NULL, 403},
    {OPERATIONS, "DELETE", "/api/v1/snapshot/pods/ml/a-0", "evil.example", NULL, NULL, 403},
};

/* What a web page of another site could have a browser send. */
START_TEST(doors)
{
    const struct door_case *c = &door_cases[_i];
    const char *body = c->body ? c->body : "";
    g_auto(http_reply) reply = {0};

    http_call(connections[c->listener],
              &(struct http_call){c->method, c->path, c->headers, body, strlen(body), c->host},
              &reply);
    ck_assert_msg(reply.status == c->status, "%s %s, Host %s, %s: %d %s", c->method, c->path,
                  c->host ? c->host : "-", c->headers ? c->headers : "-", reply.status,
                  reply.body->str);
    if (c->status > 400 && c->listener == OPERATIONS)
        ck_assert_msg(strstr(reply.body->str, c->status == 415 ? "Content-Type" : "--ops-hosts"),
                      "%s", reply.body->str);
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

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, longest_clear, NULL);
    tcase_add_checked_fixture(tc, world_begin, world_end);
    tcase_add_loop_test(tc, answers, 0, (int)G_N_ELEMENTS(answer_cases));
    tcase_add_loop_test(tc, doors, 0, (int)G_N_ELEMENTS(door_cases));
    tcase_add_test(tc, an_audit_is_asked_for);
    tcase_add_test(tc, the_schedulers_version_is_bare);
    tcase_add_test(tc, a_pod_is_bound_and_shown);
    tcase_add_test(tc, other_methods_are_told_which_are_allowed);
    tcase_add_test(tc, snapshot_routes_need_a_snapshot);
    tcase_add_test(tc, every_row_is_reached_listed_and_described);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
