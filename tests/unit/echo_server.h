/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server that answers with what it was sent, or as the path says: /wait at a gate that the test
 * opens, /fail with an error, /large with 8 MiB; ?status= and X-Test: set the answer's.
 */
#include "http/server.h"
#include "http_client.h"

#include <pthread.h>

#define BODY_MAX ((size_t)200000)
#define BODIES_MAX ((size_t)300000)

/* A gate at which handlers wait. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned waiting;
    bool open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};

static inline void gate_pass(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static inline void gate_await(unsigned waiting)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting < waiting)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static inline void gate_set(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static inline void handle(void *data, struct http_request *request, struct http_response *response)
{
    const char *status = http_request_query(request, "status");
    const char *header = http_request_header(request, "x-test");

    ck_assert_ptr_nonnull(request->body);
    ck_assert_int_ge(request->read_us, 0);
    if (strcmp(request->path, "/wait") == 0)
        gate_pass();
    if (strcmp(request->path, "/fail") == 0) {
        http_response_fail(response, 418, "no \"%s\" here", status);
        return;
    }
    if (header)
        http_response_add_header(response, "X-Echo", g_strdup(header));
    if (status)
        response->status = (unsigned)g_ascii_strtoull(status, NULL, 10);
    response->content_type = "text/test";
    if (strcmp(request->path, "/large") == 0)
        g_string_set_size(response->body, 8 << 20);
    else
        g_string_append_len(response->body, request->body, (gssize)request->length);
}

struct times {
    int64_t transfer_ms;
    unsigned idle_s;
};

static inline struct server *start_timed(enum server_mode mode, unsigned connections_max,
                                  bool error_bodies, struct times times)
{
    const struct server_options options = {
        .name = "test",
        .host = "127.0.0.1",
        .mode = mode,
        .connections_max = connections_max,
        .idle_timeout_s = times.idle_s,
        .transfer_timeout_ms = times.transfer_ms,
        .body_max = BODY_MAX,
        .bodies_max = BODIES_MAX,
        .error_bodies = error_bodies,
        .handler = handle,
    };
    GError *failure = NULL;
    struct server *server = server_start(&options, &failure);

    ck_assert_msg(server, "%s", failure ? failure->message : "");
    return server;
}

static inline struct server *start(enum server_mode mode, unsigned connections_max, bool error_bodies)
{
    return start_timed(mode, connections_max, error_bodies,
                       (struct times){SERVER_TRANSFER_TIMEOUT_MS, SERVER_IDLE_TIMEOUT_S});
}

static inline char *letters(size_t length)
{
    char *text = g_malloc(length + 1);

    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + i % 23);
    text[length] = '\0';
    return text;
}

static const enum server_mode modes[] = {SERVER_THREADS, SERVER_ONE_THREAD};

static inline void assert_echo(int fd, size_t length)
{
    g_autofree char *body = letters(length);
    g_auto(http_reply) reply = {0};

    http_call(fd, &(struct http_call){"POST", "/echo", NULL, body, length}, &reply);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_uint_eq(reply.body->len, length);
    ck_assert(memcmp(reply.body->str, body, length) == 0);
}

struct server_test {
    const TTest *test;
    int end; /* 2 or twice something: in both modes */
};

static inline Suite *server_suite(const char *name, const struct server_test *tests, size_t n)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_loop_test(tcase, tests[i].test, 0, tests[i].end);
    suite_add_tcase(suite, tcase);
    return suite;
}
