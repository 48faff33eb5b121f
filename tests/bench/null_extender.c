/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extender that knows nothing: what any extender costs, so that others can be held to it. By the HTTP
 * library of gpuledger it answers filter with all names, prioritize with no marks, and bind with one
 * Binding by libcurl. Nothing is checked, and whoever calls it wrongly ends it.
 *
 *     null_extender PORT https://api-server CA-FILE TOKEN-FILE
 */
#include <curl/curl.h>
#include <glib.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *server, *ca_file;
static char *authorization;

static char *find(const char *text, const char *mark)
{
    char *found = strstr(text, mark);

    if (!found)
        g_error("\"%s\" is not in %s", mark, text);
    return found + strlen(mark);
}

/* The value of a text of the body; free with g_free. */
static char *value_of(const char *body, const char *key)
{
    g_autofree char *mark = g_strdup_printf("\"%s\":\"", key);
    const char *value = find(body, mark);

    return g_strndup(value, strcspn(value, "\""));
}

static size_t ignore(char *data, size_t size, size_t n, void *to)
{
    return size * n;
}

static void handle_free(void *curl)
{
    curl_easy_cleanup(curl);
}

/* Idle handles. There are no more than gpuledger has: a connection to the API server costs more than a
 * call, and too many at a time keep it from its work. */
#define HANDLES 32
static GAsyncQueue *idle;

static CURL *handle_new(void)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = NULL;

    headers = curl_slist_append(headers, authorization);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (*ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
    return curl;
}

/* The same annotations as gpuledger's, of a pod of the smallest size. */
static void answer_bind(const char *body, GString *reply)
{
    g_autofree char *name = value_of(body, "PodName"), *ns = value_of(body, "PodNamespace"),
                    *uid = value_of(body, "PodUID"), *node = value_of(body, "Node");
    g_autofree char *url =
        g_strdup_printf("%s/api/v1/namespaces/%s/pods/%s/binding", server, ns, name);
    g_autofree char *binding = g_strdup_printf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
        "\"uid\":\"%s\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\","
        "\"ALIYUN_COM_GPU_MEM_DEV\":\"100000\",\"ALIYUN_COM_GPU_MEM_POD\":\"1000\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"%" G_GINT64_FORMAT
        "\"}},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\"}}",
        name, ns, uid, g_get_real_time() * 1000, node);
    CURL *curl = g_async_queue_pop(idle);
    long status = 0;

    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, binding);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    g_async_queue_push_front(idle, curl); /* the one that was used last is connected */
    if (code != CURLE_OK || status / 100 != 2)
        g_string_append_printf(reply, "{\"Error\":\"%s, status %ld\"}", curl_easy_strerror(code), status);
    else
        g_string_append(reply, "{\"Error\":\"\"}");
}

static void answer_filter(const char *body, GString *reply)
{
    const char *names = strrchr(body, '[');

    g_string_append_printf(reply, "{\"NodeNames\":%.*s,\"FailedNodes\":{},\"Error\":\"\"}",
                           (int)(strcspn(names, "]") + 1), names);
}

static enum MHD_Result step(void *data, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *piece,
                            size_t *piece_length, void **state)
{
    GString *body = *state;

    if (!body) {
        *state = g_string_new(NULL);
        return MHD_YES;
    }
    if (*piece_length > 0) {
        g_string_append_len(body, piece, (gssize)*piece_length);
        *piece_length = 0;
        return MHD_YES;
    }
    GString *reply = g_string_new(NULL);
    if (g_str_has_suffix(path, "/bind"))
        answer_bind(body->str, reply);
    else if (g_str_has_suffix(path, "/filter"))
        answer_filter(body->str, reply);
    else
        g_string_append(reply, "[]");
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(reply->len, reply->str, g_free);
    g_string_free(reply, FALSE);
    MHD_add_response_header(response, "Content-Type", "application/json");
    const enum MHD_Result queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

static void complete(void *data, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    if (*state)
        g_string_free(*state, TRUE);
    *state = NULL;
}

int main(int argc, char **argv)
{
    g_autofree char *token = NULL;
    int received;
    sigset_t ends;

    if (argc != 5) {
        fprintf(stderr, "usage: null_extender PORT https://api-server CA-FILE TOKEN-FILE\n");
        return 2;
    }
    server = argv[2];
    ca_file = argv[3];
    if (!g_file_get_contents(argv[4], &token, NULL, NULL))
        g_error("\"%s\" cannot be read", argv[4]);
    authorization = g_strconcat("Authorization: Bearer ", g_strstrip(token), NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    idle = g_async_queue_new_full(handle_free);
    for (int i = 0; i < HANDLES; i++)
        g_async_queue_push_front(idle, handle_new());
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before threads inherit it */
    signal(SIGPIPE, SIG_IGN);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
        (uint16_t)strtoul(argv[1], NULL, 10), NULL, NULL, step, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        complete, NULL, MHD_OPTION_END);
    if (!daemon)
        g_error("port %s cannot be listened at", argv[1]);
    sigwait(&ends, &received);
    MHD_stop_daemon(daemon);
    return 0;
}
