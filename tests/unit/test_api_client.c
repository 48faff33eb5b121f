/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_cluster.h"

#include "base/metrics.h"
#include "base/version.h"
#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <pthread.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

static struct cluster *cluster;

static void setup(void)
{
    /* What GLib sets up with its first error is done with locks that TSan does not see. */
    g_error_free(g_error_new(GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "first"));

    api_begin();
    cluster = api_cluster_new(client);
    api_cluster_set_version(cluster, "v1.36.3");
}

static void teardown(void)
{
    api_cluster_free(cluster);
    api_end();
}

static struct annotations written;

static enum outcome send_binding(int64_t timeout_ms, GError **error)
{
    const struct binding binding = {
        .ns = "ns", .name = "p", .uid = "u1", .node = "n1", .annotations = &written};

    return cluster->ops->bind(cluster, &binding, clock_ms() + timeout_ms, error);
}

static enum outcome get_pod(int64_t timeout_ms, struct json_arena *arena, struct pod_view *ret_pod,
                            GError **error)
{
    return cluster->ops->get_pod(cluster, arena, "ns", "p", clock_ms() + timeout_ms, ret_pod,
                                 error);
}

/* How many requests came whose first line begins so. */
static unsigned requests(const char *prefix)
{
    unsigned n = 0;

    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        n += g_str_has_prefix(request, prefix);
    }
    return n;
}

#define CREATED "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":201}"
#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\",\"annotations\":"           \
    "{\"a\":\"b\"}},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}"
#define STATUS(code, message)                                                                      \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message "\",\"code\":" code "}"

/* --- what is sent --------------------------------------------------------------------------- */

START_TEST(binds_with_annotations_in_one_call)
{
    g_autoptr(GError) error = NULL;
    const uint64_t before = metrics_counted(COUNTER_API_CALLS, OUTCOME_OK);

    annotations_add(&written, "example.com/card", g_strdup("3"));
    script(&(struct fake_reply){.status = 201, .chunks = {CREATED}});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_OK);
    annotations_clear(&written);

    g_autofree char *request = fake_server_request(server, 0);
    g_autofree char *agent = g_strdup_printf("User-Agent: gpuledger/%s\r\n", version_text);
    ck_assert(g_str_has_prefix(request, "POST /api/v1/namespaces/ns/pods/p/binding?timeout="));
    ck_assert_msg(strstr(request, "\r\nAuthorization: Bearer sesame\r\n"), "%s", request);
    ck_assert_msg(strstr(request, "\r\nContent-Type: application/json\r\n"), "%s", request);
    ck_assert_msg(strstr(request, agent), "%s", request);
    ck_assert_ptr_null(strstr(request, "Expect:"));
    ck_assert_msg(strstr(request, "\"uid\":\"u1\",\"annotations\":{\"example.com/card\":\"3\"}"),
                  "%s", request);
    ck_assert_uint_eq(metrics_counted(COUNTER_API_CALLS, OUTCOME_OK), before + 1);
}
END_TEST

static const struct {
    const char *version; /* what the server says */
    bool trusted;        /* it compares UIDs itself */
} versions[] = {
    {"v1.20.2", false},  {"v1.22.17", false}, {"v1.23.0", true},  {"v1.24.17-eks-1", true},
    {"v1.25.8", false},  {"v1.25.9", true},   {"v1.26.3", false}, {"v1.26.4+k3s1", true},
    {"v1.27.0", true},   {"v1.36.3", true},   {"v1.36", true},    {"v2.0.0", false},
    {"unknown", false},
};

START_TEST(looks_at_the_pod_where_the_server_does_not_compare_uids)
{
    g_autofree char *version = g_strdup_printf("{\"gitVersion\":\"%s\"}", versions[_i].version);
    g_autoptr(GError) error = NULL;

    api_cluster_free(cluster);
    cluster = api_cluster_new(client);
    script(&(struct fake_reply){.match = "GET /version ", .chunks = {version}});
    script(&(struct fake_reply){.match = "GET /api/v1/namespaces/ns/pods/p ", .chunks = {POD}});
    script(&(struct fake_reply){.match = "GET /api/v1/namespaces/ns/pods/p ", .chunks = {POD}});
    script(&(struct fake_reply){.match = "POST ", .status = 201, .chunks = {CREATED}, .times = 2});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_OK);
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_OK);
    ck_assert_uint_eq(requests("GET /version "), 1);
    ck_assert_uint_eq(requests("GET /api/v1/namespaces/ns/pods/p "), versions[_i].trusted ? 0 : 2);
    ck_assert_uint_eq(requests("POST "), 2);
}
END_TEST

START_TEST(does_not_bind_a_pod_that_was_created_again)
{
    g_autoptr(GError) error = NULL;

    api_cluster_set_version(cluster, "v1.20.2");
    script(&(struct fake_reply){
        .match = "GET ",
        .chunks = {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u2\"}}"}});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_CONFLICT);
    ck_assert_str_eq(error->message,
                     "pod 'ns/p' has another UID: it was deleted and created again");
    ck_assert_uint_eq(requests("POST "), 0);
}
END_TEST

START_TEST(does_not_bind_a_pod_that_it_cannot_look_at)
{
    g_autoptr(GError) error = NULL;

    api_cluster_set_version(cluster, "v1.20.2");
    script(&(struct fake_reply){.match = "GET ", .status = 403, .chunks = {STATUS("403", "no")}});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_REFUSED);
    ck_assert_uint_eq(requests("POST "), 0);
}
END_TEST

START_TEST(reads_a_pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    script(&(struct fake_reply){.match = "GET /api/v1/namespaces/ns/pods/p ", .chunks = {POD}});
    ck_assert_int_eq(get_pod(PATIENT_MS, arena, &pod, &error), OUTCOME_OK);
    ck_assert_str_eq(pod.uid, "u1");
    ck_assert_str_eq(pod.node_name, "n1");
    ck_assert_str_eq(string_pairs_get(&pod.annotations, "a"), "b");
}
END_TEST

START_TEST(reads_the_pods_of_a_node)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view *pods;
    size_t n;

    script(&(struct fake_reply){
        .match = "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DSucceeded"
                 "%2Cstatus.phase%21%3DFailed ",
        .chunks = {"{\"kind\":\"PodList\",\"items\":[" POD "," POD "]}"}});
    script(&(struct fake_reply){.chunks = {"{\"items\":[7]}"}});
    ck_assert_int_eq(cluster->ops->list_pods_on(cluster, arena, "n1", clock_ms() + PATIENT_MS,
                                                &pods, &n, &error),
                     OUTCOME_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(pods[1].uid, "u1");
    ck_assert_int_eq(cluster->ops->list_pods_on(cluster, arena, "n1", clock_ms() + PATIENT_MS,
                                                &pods, &n, &error),
                     OUTCOME_UNKNOWN);
}
END_TEST

START_TEST(keeps_its_connection)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod;

    script(&(struct fake_reply){.times = FAKE_ALWAYS, .chunks = {POD}});
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(get_pod(PATIENT_MS, arena, &pod, NULL), OUTCOME_OK);
    ck_assert_uint_eq(fake_server_count(server), 10);
    ck_assert_uint_eq(fake_server_connections(server), 1);
}
END_TEST

static const char *const impossible_names[] = {"", ".", "..", "a/b", "..%2fnodes"};

START_TEST(sends_nothing_to_another_path)
{
    const struct binding binding = {
        .ns = "ns", .name = impossible_names[_i], .uid = "u1", .node = "n1"};
    g_autoptr(GError) error = NULL;

    ck_assert_int_eq(cluster->ops->bind(cluster, &binding, clock_ms() + PATIENT_MS, &error),
                     OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

/* --- what the answer means ------------------------------------------------------------------ */

struct answer {
    int status;
    const char *body;
    enum outcome outcome;
    int code;
    const char *message;
};

static const struct answer answers[] = {
    {409, STATUS("409", "pod p is already assigned to node \\\"n\\\""), OUTCOME_CONFLICT,
     GPULEDGER_ERROR_CONFLICT, "pod p is already assigned to node \"n\""},
    {404, STATUS("404", "pods \\\"p\\\" not found"), OUTCOME_NOT_FOUND, GPULEDGER_ERROR_NOT_FOUND,
     "pods \"p\" not found"},
    /* A proxy's. */
    {404, "404 page not found", OUTCOME_UNKNOWN, GPULEDGER_ERROR_UNKNOWN, "404 page not found"},
    {404, "{\"error\":\"no such route\"}", OUTCOME_UNKNOWN, GPULEDGER_ERROR_UNKNOWN,
     "no such route"},
    {403, STATUS("403", "pods \\\"p\\\" is forbidden: no"), OUTCOME_REFUSED, GPULEDGER_ERROR_DENIED,
     "pods \"p\" is forbidden: no"},
    {401, STATUS("401", "Unauthorized"), OUTCOME_REFUSED, GPULEDGER_ERROR_CREDENTIALS,
     "our credentials are not accepted: Unauthorized"},
    {422, STATUS("422", "invalid"), OUTCOME_REFUSED, GPULEDGER_ERROR_INVALID, "invalid"},
    {400, "not JSON <b>\x01\x02</b>", OUTCOME_REFUSED, GPULEDGER_ERROR_INVALID,
     "POST /api/v1/namespaces/ns/pods/p/binding was answered with 400: not JSON <b>  </b>"},
    {302, "", OUTCOME_REFUSED, GPULEDGER_ERROR_INVALID, "was answered with 302"},
    {500, STATUS("500", "etcdserver: request timed out"), OUTCOME_UNKNOWN, GPULEDGER_ERROR_UNKNOWN,
     "etcdserver: request timed out"},
    {503, "{}", OUTCOME_UNKNOWN, GPULEDGER_ERROR_UNKNOWN, "was answered with 503"},
    {504, "[]", OUTCOME_UNKNOWN, GPULEDGER_ERROR_UNKNOWN, "was answered with 504"},
};

START_TEST(says_how_a_binding_ended)
{
    const struct answer *row = &answers[_i];
    g_autoptr(GError) error = NULL;

    script(&(struct fake_reply){
        .status = row->status, .times = FAKE_ALWAYS, .chunks = {*row->body ? row->body : NULL}});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), row->outcome);
    ck_assert_int_eq(error->code, row->code);
    ck_assert_msg(strstr(error->message, row->message), "%s", error->message);
    /* None of these may be sent twice. */
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

START_TEST(a_reply_that_is_no_pod_is_no_answer)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    script(&(struct fake_reply){.chunks = {"{\"metadata\":{\"name\":\"p\"}}"}});
    ck_assert_int_eq(get_pod(PATIENT_MS, arena, &pod, &error), OUTCOME_UNKNOWN);
    ck_assert_msg(strstr(error->message, "field 'metadata.namespace': missing"), "%s",
                  error->message);
}
END_TEST

START_TEST(caps_a_reply)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = "/x", .deadline_ms = clock_ms() + PATIENT_MS, .reply_max = 8};

    script(&(struct fake_reply){.times = FAKE_ALWAYS, .chunks = {"12345", "6789"}});
    ck_assert_int_eq(api_client_call(client, &call, reply, &error), OUTCOME_UNKNOWN);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT));
    ck_assert_uint_eq(reply->len, 0);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

/* --- repeats -------------------------------------------------------------------------------- */

START_TEST(a_binding_waits_as_long_as_it_is_told)
{
    const int64_t began_ms = clock_ms();

    script(&(struct fake_reply){.status = 429, .headers = "Retry-After: 1\r\n", .chunks = {"{}"}});
    script(&(struct fake_reply){.status = 201, .chunks = {CREATED}});
    ck_assert_int_eq(send_binding(PATIENT_MS, NULL), OUTCOME_OK);
    ck_assert_uint_eq(fake_server_count(server), 2);
    ck_assert_int_ge(clock_ms() - began_ms, 1000);
}
END_TEST

START_TEST(a_binding_does_not_wait_past_its_deadline)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_ms();

    script(
        &(struct fake_reply){.status = 429,
                             .chunks = {"{\"kind\":\"Status\",\"message\":\"too many\",\"details\":"
                                        "{\"retryAfterSeconds\":30}}"}});
    ck_assert_int_eq(send_binding(PATIENT_MS / 2, &error), OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_str_eq(error->message, "too many");
    ck_assert_int_lt(clock_ms() - began_ms, PATIENT_MS / 2);
}
END_TEST

START_TEST(a_read_is_repeated_after_failures)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    script(&(struct fake_reply){.status = 500, .chunks = {"{}"}});
    script(&(struct fake_reply){.end = FAKE_CUT, .chunks = {"{\"metadata\""}});
    script(&(struct fake_reply){.chunks = {POD}});
    ck_assert_int_eq(get_pod(PATIENT_MS, arena, &pod, &error), OUTCOME_OK);
    ck_assert_str_eq(pod.uid, "u1");
    ck_assert_uint_eq(fake_server_count(server), 3);
}
END_TEST

START_TEST(a_binding_without_a_reply_has_an_unknown_end)
{
    g_autoptr(GError) error = NULL;

    script(&(struct fake_reply){.end = FAKE_NO_REPLY, .times = FAKE_ALWAYS});
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_UNKNOWN);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNKNOWN));
    ck_assert_uint_eq(requests("POST "), 1);
}
END_TEST

START_TEST(a_binding_that_takes_too_long_has_an_unknown_end)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_ms();

    script(&(struct fake_reply){.end = FAKE_HANG});
    ck_assert_int_eq(send_binding(200, &error), OUTCOME_UNKNOWN);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNKNOWN));
    ck_assert_int_lt(clock_ms() - began_ms, PATIENT_MS);
}
END_TEST

START_TEST(a_binding_that_was_never_sent_is_refused)
{
    g_autoptr(GError) error = NULL;
    const int64_t began_ms = clock_ms();

    fake_server_refuse(server, true);
    ck_assert_int_eq(send_binding(500, &error), OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_msg(strstr(error->message, fake_server_url(server)), "%s", error->message);
    ck_assert_int_lt(clock_ms() - began_ms, PATIENT_MS);
    fake_server_refuse(server, false);
}
END_TEST

START_TEST(a_binding_tells_the_server_when_to_give_up)
{
    static const char head[] = "POST /api/v1/namespaces/ns/pods/p/binding?timeout=";

    script(&(struct fake_reply){.status = 429, .headers = "Retry-After: 1\r\n", .chunks = {"{}"}});
    script(&(struct fake_reply){.status = 201, .chunks = {CREATED}});
    ck_assert_int_eq(send_binding(PATIENT_MS, NULL), OUTCOME_OK);
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *request = fake_server_request(server, i);
        char *unit;

        ck_assert(g_str_has_prefix(request, head));
        const guint64 timeout_ms = g_ascii_strtoull(request + strlen(head), &unit, 10);
        ck_assert(g_str_has_prefix(unit, "ms HTTP/1.1\r\n"));
        ck_assert_uint_gt(timeout_ms, 0);
        ck_assert_uint_le(timeout_ms, PATIENT_MS - i * 1000);
    }
}
END_TEST

START_TEST(a_binding_that_is_late_is_not_sent)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    /* A connection stands, so that nothing but the clock keeps it from being sent. */
    script(&(struct fake_reply){.chunks = {POD}});
    ck_assert_int_eq(get_pod(PATIENT_MS, arena, &pod, NULL), OUTCOME_OK);
    ck_assert_int_eq(send_binding(0, &error), OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_uint_eq(requests("POST "), 0);
}
END_TEST

static void *open_port_soon(void *data)
{
    g_usleep(150 * 1000);
    fake_server_refuse(server, false);
    return NULL;
}

START_TEST(a_binding_is_sent_as_soon_as_somebody_listens)
{
    pthread_t opener;

    fake_server_refuse(server, true);
    script(&(struct fake_reply){.status = 201, .chunks = {CREATED}});
    ck_assert_int_eq(pthread_create(&opener, NULL, open_port_soon, NULL), 0);
    ck_assert_int_eq(send_binding(PATIENT_MS, NULL), OUTCOME_OK);
    pthread_join(opener, NULL);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

/* --- credentials ---------------------------------------------------------------------------- */

static void reconnect_with_token_file(const char *path)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    api_cluster_free(cluster);
    api_client_free(client);
    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strdup(fake_server_url(server));
    config->token_file = g_strdup(path);
    client = api_client_new(config, NULL);
    cluster = api_cluster_new(client);
}

static int option_of(curl_socket_t socket, int name)
{
    int value = 0;
    socklen_t size = sizeof value;

    ck_assert_int_eq(getsockopt(socket, IPPROTO_TCP, name, &value, &size), 0);
    return value;
}

START_TEST(a_peer_that_is_gone_is_noticed_after_45_s)
{
    char message[CURL_ERROR_SIZE];
    const struct transport_request request = {
        .method = "GET", .path = "/", .connect_timeout_ms = PATIENT_MS, .message = message};
    g_autoptr(credential) credential =
        credentials_get(api_client_credentials(client), clock_ms() + PATIENT_MS, NULL);
    curl_socket_t socket;

    CURL *handle = curl_easy_init();
    struct curl_slist *headers =
        transport_prepare(api_client_transport(client), handle, &request, credential);
    curl_easy_setopt(handle, CURLOPT_CONNECT_ONLY, 1L);
    ck_assert_int_eq(curl_easy_perform(handle), CURLE_OK);
    ck_assert_int_eq(curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket), CURLE_OK);
    ck_assert_int_eq(option_of(socket, TCP_KEEPIDLE) +
                         option_of(socket, TCP_KEEPINTVL) * option_of(socket, TCP_KEEPCNT),
                     45);
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
}
END_TEST

/* By the name of its certificate no list of hosts knows it. */
START_TEST(the_real_host_decides_about_a_proxy)
{
    const char *port = strrchr(fake_server_url(server), ':');
    const bool direct = _i == 0;
    struct kube_config *config = g_new0(struct kube_config, 1);

    g_setenv("https_proxy", "http://127.0.0.1:9", TRUE);
    g_setenv("no_proxy", direct ? "127.0.0.0/8" : "kubernetes", TRUE);
    api_cluster_free(cluster);
    api_client_free(client);
    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strconcat("https://127.0.0.1", port, NULL);
    config->tls_server_name = g_strdup("kubernetes");
    config->token = g_strdup("sesame");
    client = api_client_new(config, NULL);
    cluster = api_cluster_new(client);
    ck_assert_int_eq(send_binding(100, NULL), OUTCOME_REFUSED); /* it speaks no TLS */
    ck_assert_uint_eq(fake_server_connections(server) > 0, direct);
}
END_TEST

START_TEST(without_credentials_nothing_is_sent)
{
    g_autoptr(GError) error = NULL;

    reconnect_with_token_file("/nonexistent/token");
    ck_assert_int_eq(send_binding(PATIENT_MS, &error), OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS));
    ck_assert_msg(strstr(error->message, "/nonexistent/token"), "%s", error->message);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

/* --- many at once --------------------------------------------------------------------------- */

#define THREADS (2 * API_CONNECTIONS_MAX)
#define CALLS 5

static void *read_many(void *data)
{
    g_autoptr(json_arena) arena = json_arena_new();
    unsigned *good = data;
    struct pod_view pod;

    for (unsigned i = 0; i < CALLS; i++) {
        json_arena_clear(arena);
        *good += get_pod(PATIENT_MS, arena, &pod, NULL) == OUTCOME_OK;
    }
    return NULL;
}

START_TEST(serves_many_threads_at_once)
{
    pthread_t threads[THREADS];
    unsigned good[THREADS] = {0};

    script(&(struct fake_reply){.times = FAKE_ALWAYS, .chunks = {POD}});
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_many, &good[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(good[i], CALLS);
    }
    ck_assert_uint_le(fake_server_connections(server), API_CONNECTIONS_MAX);
}
END_TEST

static void *send_in_vain(void *data)
{
    send_binding(PATIENT_MS, NULL);
    return NULL;
}

START_TEST(a_call_that_gets_no_connection_is_refused)
{
    g_autoptr(GError) error = NULL;
    pthread_t threads[API_CONNECTIONS_MAX];

    script(&(struct fake_reply){.times = FAKE_ALWAYS, .end = FAKE_HANG});
    for (unsigned i = 0; i < API_CONNECTIONS_MAX; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_in_vain, NULL), 0);
    ck_assert(fake_server_wait(server, API_CONNECTIONS_MAX, PATIENT_MS));
    ck_assert_int_eq(send_binding(50, &error), OUTCOME_REFUSED);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_msg(strstr(error->message, "in use"), "%s", error->message);
    ck_assert_uint_eq(fake_server_count(server), API_CONNECTIONS_MAX);
    api_client_abort(client);
    for (unsigned i = 0; i < API_CONNECTIONS_MAX; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

/* --- calls that are cut --------------------------------------------------------------------- */

#define HOUR_MS 3600000

static void *call_for_long(void *data)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = "/version", .deadline_ms = clock_ms() + HOUR_MS};

    *(enum outcome *)data = api_client_call(client, &call, reply, NULL);
    return NULL;
}

/* Whether the server is silent, or has asked for an hour's patience: the thread ends. */
START_TEST(calls_under_way_end_when_they_are_cut)
{
    enum outcome outcome = OUTCOME_OK;
    pthread_t thread;

    if (_i == 0)
        script(&(struct fake_reply){.status = 200, .chunks = {"{"}, .end = FAKE_HANG});
    else
        script(&(struct fake_reply){
            .status = 503, .headers = "Retry-After: 3000\r\n", .chunks = {"{}"}});
    ck_assert_int_eq(pthread_create(&thread, NULL, call_for_long, &outcome), 0);
    ck_assert(fake_server_wait(server, 1, PATIENT_MS));
    api_client_abort(client);
    pthread_join(thread, NULL);
    ck_assert_int_ne(outcome, OUTCOME_OK);
    call_for_long(&outcome);
    ck_assert_int_ne(outcome, OUTCOME_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_client");
    TCase *calls = tcase_create("calls");
    TCase *repeats = tcase_create("repeats");

    tcase_add_checked_fixture(calls, setup, teardown);
    tcase_add_test(calls, binds_with_annotations_in_one_call);
    tcase_add_loop_test(calls, looks_at_the_pod_where_the_server_does_not_compare_uids, 0,
                        G_N_ELEMENTS(versions));
    tcase_add_test(calls, does_not_bind_a_pod_that_was_created_again);
    tcase_add_test(calls, does_not_bind_a_pod_that_it_cannot_look_at);
    tcase_add_test(calls, reads_a_pod);
    tcase_add_test(calls, reads_the_pods_of_a_node);
    tcase_add_test(calls, keeps_its_connection);
    tcase_add_loop_test(calls, sends_nothing_to_another_path, 0, G_N_ELEMENTS(impossible_names));
    tcase_add_loop_test(calls, says_how_a_binding_ended, 0, G_N_ELEMENTS(answers));
    tcase_add_test(calls, a_reply_that_is_no_pod_is_no_answer);
    tcase_add_test(calls, caps_a_reply);
    tcase_add_test(calls, without_credentials_nothing_is_sent);
    tcase_add_loop_test(calls, the_real_host_decides_about_a_proxy, 0, 2);
    tcase_add_test(calls, a_peer_that_is_gone_is_noticed_after_45_s);
    tcase_add_test(calls, serves_many_threads_at_once);
    tcase_add_test(calls, a_call_that_gets_no_connection_is_refused);
    tcase_add_loop_test(calls, calls_under_way_end_when_they_are_cut, 0, 2);
    suite_add_tcase(suite, calls);

    tcase_add_checked_fixture(repeats, setup, teardown);
    tcase_add_test(repeats, a_binding_waits_as_long_as_it_is_told);
    tcase_add_test(repeats, a_binding_does_not_wait_past_its_deadline);
    tcase_add_test(repeats, a_read_is_repeated_after_failures);
    tcase_add_test(repeats, a_binding_without_a_reply_has_an_unknown_end);
    tcase_add_test(repeats, a_binding_that_takes_too_long_has_an_unknown_end);
    tcase_add_test(repeats, a_binding_that_was_never_sent_is_refused);
    tcase_add_test(repeats, a_binding_tells_the_server_when_to_give_up);
    tcase_add_test(repeats, a_binding_that_is_late_is_not_sent);
    tcase_add_test(repeats, a_binding_is_sent_as_soon_as_somebody_listens);
    suite_add_tcase(suite, repeats);

    return suite_run(suite);
}
