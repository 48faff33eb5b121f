/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include "http_client.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <signal.h>

#define BODY_MAX ((size_t)200000)
#define BODIES_MAX ((size_t)300000)

/* A gate at which handlers wait. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned waiting;
    bool open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};

static void gate_pass(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static void gate_await(unsigned waiting)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting < waiting)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_set(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void handle(void *data, struct http_request *request, struct http_response *response)
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

static struct server *start_timed(enum server_mode mode, unsigned connections_max,
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

static struct server *start(enum server_mode mode, unsigned connections_max, bool error_bodies)
{
    return start_timed(mode, connections_max, error_bodies,
                       (struct times){SERVER_TRANSFER_TIMEOUT_MS, SERVER_IDLE_TIMEOUT_S});
}

static char *letters(size_t length)
{
    char *text = g_malloc(length + 1);

    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + i % 23);
    text[length] = '\0';
    return text;
}

static const enum server_mode modes[] = {SERVER_THREADS, SERVER_ONE_THREAD};

static void assert_echo(int fd, size_t length)
{
    g_autofree char *body = letters(length);
    g_auto(http_reply) reply = {0};

    http_call(fd, &(struct http_call){"POST", "/echo", NULL, body, length}, &reply);
    ck_assert_int_eq(reply.status, 200);
    ck_assert_uint_eq(reply.body->len, length);
    ck_assert(memcmp(reply.body->str, body, length) == 0);
}

/* --- bodies --------------------------------------------------------------------------------- */

START_TEST(bodies_up_to_the_limit_arrive)
{
    static const size_t lengths[] = {0, 1, 4096, 100000, BODY_MAX - 1, BODY_MAX};
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++)
        assert_echo(fd, lengths[i]);
    close(fd);
}
END_TEST

static void send_chunk(int fd, const char *data, size_t length)
{
    g_autofree char *head = g_strdup_printf("%zx\r\n", length);

    http_send_text(fd, head);
    http_send(fd, data, length);
    http_send_text(fd, "\r\n");
}

static void send_chunked(int fd, const char *body, size_t length)
{
    http_send_text(fd, "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < length; at += 7777)
        send_chunk(fd, body + at, MIN(length - at, 7777));
    http_send_text(fd, "0\r\n\r\n");
}

START_TEST(chunked_bodies_have_the_same_limit)
{
    static const struct {
        size_t length;
        int status;
    } cases[] = {{0, 200}, {1, 200}, {50000, 200}, {BODY_MAX, 200}, {BODY_MAX + 1, 413}};
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *body = letters(cases[i].length);
        g_auto(http_reply) reply = {0};

        send_chunked(fd, body, cases[i].length);
        ck_assert(http_receive(fd, false, &reply));
        ck_assert_int_eq(reply.status, cases[i].status);
        if (reply.status == 200)
            ck_assert_str_eq(reply.body->str, body);
    }
    close(fd);
}
END_TEST

START_TEST(larger_bodies_are_refused_and_the_connection_lives)
{
    g_autofree char *body = letters(2 * BODY_MAX);
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));

    for (size_t length = BODY_MAX + 1; length <= 2 * BODY_MAX; length += BODY_MAX - 1) {
        g_auto(http_reply) reply = {0};

        http_call(fd, &(struct http_call){"POST", "/echo", NULL, body, length}, &reply);
        ck_assert_int_eq(reply.status, 413);
        ck_assert_str_eq(reply.body->str,
                         "{\"error\":\"the request is larger than this server accepts\"}");
        assert_echo(fd, 1000);
    }
    close(fd);
}
END_TEST

START_TEST(absurd_bodies_are_refused_unread)
{
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200001\r\n"
        "Expect: 100-continue\r\n\r\n",
    };
    g_autoptr(server) server = start(SERVER_THREADS, 8, false);

    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_auto(http_reply) reply = {0};
        int fd = http_connect(server_port(server));

        http_send_text(fd, heads[i]);
        ck_assert(http_receive(fd, false, &reply));
        ck_assert_int_eq(reply.status, 413);
        ck_assert_uint_eq(reply.body->len, 0);
        close(fd);
    }
}
END_TEST

START_TEST(malformed_lengths_are_refused)
{
    static const char *const lengths[] = {"-1", "1x", "", "99999999999999999999999999"};
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree char *head = g_strdup_printf(
            "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: %s\r\n\r\n", lengths[i]);
        g_auto(http_reply) reply = {0};
        int fd = http_connect(server_port(server));

        http_send_text(fd, head);
        shutdown(fd, SHUT_WR);
        if (http_receive(fd, false, &reply))
            ck_assert_msg(reply.status / 100 == 4, "'%s': %d", lengths[i], reply.status);
        close(fd);
    }
    ck_assert(server_drain(server, 1000));
}
END_TEST

START_TEST(all_bodies_together_are_limited)
{
    g_autofree char *body = letters(BODY_MAX);
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);
    int first = http_connect(server_port(server));
    int second = http_connect(server_port(server));
    g_auto(http_reply) reply = {0};

    gate_set(false);
    http_send_text(first, "POST /wait HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n");
    http_send(first, body, BODY_MAX);
    gate_await(1);
    assert_echo(second, BODIES_MAX - BODY_MAX);
    http_call(second, &(struct http_call){"POST", "/echo", NULL, body, BODY_MAX}, &reply);
    ck_assert_int_eq(reply.status, 503);
    http_reply_clear(&reply);
    gate_set(true);
    ck_assert(http_receive(first, false, &reply));
    ck_assert_int_eq(reply.status, 200);
    assert_echo(second, BODY_MAX);
    close(first);
    close(second);
}
END_TEST

START_TEST(bodies_of_broken_requests_are_given_back)
{
    g_autofree char *body = letters(BODY_MAX);
    g_autoptr(server) server = start(modes[_i], 8, true);

    for (unsigned i = 0; i < 5; i++) {
        int fd = http_connect(server_port(server));

        http_send_text(fd, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n");
        http_send(fd, body, BODY_MAX - 1);
        close(fd);
    }
    /* They may not all be noticed yet; a request that has to wait for that says so. */
    for (unsigned tries = 0;; tries++) {
        g_auto(http_reply) reply = {0};
        int fd = http_connect(server_port(server));

        http_call(fd, &(struct http_call){"POST", "/echo", NULL, body, BODY_MAX}, &reply);
        close(fd);
        if (reply.status == 200)
            break;
        ck_assert_int_eq(reply.status, 503);
        ck_assert_uint_lt(tries, 10000);
    }
}
END_TEST

/* --- answers -------------------------------------------------------------------------------- */

START_TEST(answers_carry_what_the_handler_set)
{
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));
    g_auto(http_reply) reply = {0};

    http_call(fd, &(struct http_call){"PUT", "/a%20b?status=202&x", "X-Test: one two\r\n", "hi", 2},
              &reply);
    g_autofree char *echo = http_header(&reply, "X-Echo");
    g_autofree char *type = http_header(&reply, "Content-Type");
    ck_assert_int_eq(reply.status, 202);
    ck_assert_str_eq(reply.body->str, "hi");
    ck_assert_pstr_eq(echo, "one two");
    ck_assert_pstr_eq(type, "text/test");
    close(fd);
}
END_TEST

START_TEST(failures_have_bodies_only_where_wanted)
{
    static const char *const bodies[] = {"", "{\"error\":\"no \\\"a\\\" here\"}"};

    for (unsigned with = 0; with < 2; with++) {
        g_autoptr(server) server = start(modes[_i], 8, with);
        int fd = http_connect(server_port(server));
        g_auto(http_reply) reply = {0};

        http_call(fd, &(struct http_call){"POST", "/fail?status=a", NULL, "x", 1}, &reply);
        g_autofree char *type = http_header(&reply, "Content-Type");
        ck_assert_int_eq(reply.status, 418);
        ck_assert_str_eq(reply.body->str, bodies[with]);
        ck_assert_pstr_eq(type, with ? "application/json" : NULL);
        assert_echo(fd, 10);
        close(fd);
    }
}
END_TEST

START_TEST(head_has_the_length_but_no_body)
{
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));
    g_auto(http_reply) reply = {0};

    http_call(fd, &(struct http_call){"HEAD", "/large", NULL, NULL, 0}, &reply);
    g_autofree char *length = http_header(&reply, "Content-Length");
    ck_assert_int_eq(reply.status, 200);
    ck_assert_pstr_eq(length, "8388608");
    assert_echo(fd, 10); /* nothing was left on the connection */
    close(fd);
}
END_TEST

START_TEST(clients_that_leave_do_no_harm)
{
    g_autoptr(server) server = start(modes[_i], 64, true);

    for (unsigned i = 0; i < 20; i++) {
        int fd = http_connect(server_port(server));

        http_send_text(fd, "GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
        /* With data unread, closing resets the connection under the server's writes. */
        close(fd);
    }
    int fd = http_connect(server_port(server));
    assert_echo(fd, 100);
    close(fd);
    ck_assert(server_drain(server, 5000));
}
END_TEST

/* --- connections ---------------------------------------------------------------------------- */

static void *echo_often(void *data)
{
    int fd = http_connect(*(const uint16_t *)data);

    for (unsigned i = 0; i < 20; i++)
        assert_echo(fd, 1000 + i);
    gate_pass(); /* all keep their connection until all are done */
    close(fd);
    return NULL;
}

START_TEST(a_hundred_connections_stay_open)
{
    g_autoptr(server) server = start(modes[_i], SERVER_CONNECTIONS, true);
    uint16_t port = server_port(server);
    pthread_t threads[100];

    gate_set(false);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, echo_often, &port), 0);
    gate_await(G_N_ELEMENTS(threads));
    gate_set(true);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(a_blocked_handler_stalls_nobody)
{
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);
    int blocked = http_connect(server_port(server));
    int free_one = http_connect(server_port(server));
    g_auto(http_reply) reply = {0};

    gate_set(false);
    http_send_text(blocked, "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    gate_await(1);
    assert_echo(free_one, 1000);
    gate_set(true);
    ck_assert(http_receive(blocked, false, &reply));
    close(blocked);
    close(free_one);
}
END_TEST

/* The other side has closed the connection. */
static bool is_cut(int fd)
{
    char byte;

    return recv(fd, &byte, 1, 0) <= 0;
}

START_TEST(a_newcomer_takes_the_place_of_who_waits_longest)
{
    g_autoptr(server) server = start(modes[_i], 3, true);
    int fds[6];

    /* 0 has never made a call. Those that have are taken in turn. */
    for (size_t i = 0; i < 3; i++)
        fds[i] = http_connect(server_port(server));
    assert_echo(fds[2], 10);
    g_usleep(200000); /* the server turns to waiting after the client has its answer */
    assert_echo(fds[1], 10);
    g_usleep(200000);
    for (size_t i = 3; i < 6; i++) {
        static const size_t leaves[] = {0, 2, 1};

        fds[i] = http_connect(server_port(server));
        assert_echo(fds[i], 10);
        ck_assert(is_cut(fds[leaves[i - 3]]));
    }
    for (size_t i = 0; i < 6; i++)
        close(fds[i]);
}
END_TEST

START_TEST(nobody_is_cut_in_the_middle_of_a_call)
{
    g_autoptr(server) server = start(SERVER_THREADS, 2, true);
    int busy[2], newcomer;

    gate_set(false);
    for (size_t i = 0; i < 2; i++) {
        busy[i] = http_connect(server_port(server));
        http_send_text(busy[i], "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    gate_await(2);
    newcomer = http_connect(server_port(server)); /* waits in the queue of the socket */
    http_send_text(newcomer, "GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
    g_usleep(100000);
    gate_set(true);
    for (size_t i = 0; i < 2; i++) {
        g_auto(http_reply) reply = {0};

        ck_assert(http_receive(busy[i], false, &reply));
        close(busy[i]);
    }
    g_auto(http_reply) reply = {0};
    ck_assert(http_receive(newcomer, false, &reply));
    close(newcomer);
}
END_TEST

static const char *const slow_requests[] = {
    "",
    "GET",
    "GET /echo HTTP/1.1\r\nHost: t\r\n",
    "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n",
};

/* A byte now and then does not help. */
START_TEST(slow_requests_are_cut)
{
    const char *const pieces[] = {"x", "x", "X-A: b\r\n", "x", "1\r\nx\r\n"};
    size_t which = (size_t)_i / 2;
    g_autoptr(server) server = start_timed(modes[_i % 2], 8, true, (struct times){200, 60});
    int fd = http_connect(server_port(server)), steady = http_connect(server_port(server));
    int64_t start_us = g_get_monotonic_time();
    unsigned calls = 0;

    http_send_text(fd, slow_requests[which]);
    while (send(fd, pieces[which], strlen(pieces[which]), MSG_NOSIGNAL) > 0) {
        char byte;

        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
            break;
        assert_echo(steady, 1000);
        calls++;
        g_usleep(20000);
        ck_assert_int_lt(g_get_monotonic_time() - start_us, 30 * G_USEC_PER_SEC);
    }
    ck_assert_int_ge(g_get_monotonic_time() - start_us, 150000);
    ck_assert_uint_gt(calls, 0);
    assert_echo(steady, 1000);
    close(fd);
    close(steady);
    ck_assert(server_drain(server, 5000));
}
END_TEST

START_TEST(answers_that_are_not_taken_are_cut)
{
    g_autoptr(server) server = start_timed(modes[_i], 8, true, (struct times){200, 60});
    int fd = http_connect(server_port(server));
    char piece[4096];
    size_t n = 0;
    ssize_t got;

    http_send_text(fd, "GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
    /* Until its request is no more. */
    g_usleep(100000);
    ck_assert(server_drain(server, 30000));
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
        n += (size_t)got;
    ck_assert_uint_lt(n, (size_t)8 << 20);
    close(fd);
}
END_TEST

START_TEST(idle_connections_outlast_slow_ones)
{
    g_autoptr(server) server = start_timed(modes[_i], 8, true, (struct times){100, 1});
    int used = http_connect(server_port(server)), fresh = http_connect(server_port(server));

    assert_echo(used, 10);
    g_usleep(400000);
    assert_echo(used, 10);
    assert_echo(fresh, 10);
    ck_assert(is_cut(used)); /* after a second */
    ck_assert(is_cut(fresh));
    close(used);
    close(fresh);
}
END_TEST

START_TEST(long_heads_are_refused)
{
    static const struct {
        const char *line;
        unsigned n;
    } cases[] = {{"X-Header: value value value value\r\n", 2000}, {"a:b\r\n", 20000}};
    g_autoptr(server) server = start(modes[_i], 8, true);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) head = g_string_new("GET /echo HTTP/1.1\r\nHost: t\r\n");
        int fd = http_connect(server_port(server));
        g_auto(http_reply) reply = {0};

        for (unsigned line = 0; line < cases[i].n; line++)
            g_string_append(head, cases[i].line);
        /* It need not read all of it. */
        for (size_t at = 0; at < head->len;) {
            ssize_t n = send(fd, head->str + at, head->len - at, MSG_NOSIGNAL);

            if (n <= 0)
                break;
            at += (size_t)n;
        }
        if (http_receive(fd, false, &reply))
            ck_assert_int_eq(reply.status, 431);
        close(fd);
    }
    int fd = http_connect(server_port(server));
    assert_echo(fd, 10);
    close(fd);
}
END_TEST

START_TEST(half_closed_connections_get_their_answer)
{
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);
    g_auto(http_reply) reply = {0};
    int fd = http_connect(server_port(server));

    gate_set(false);
    http_send_text(fd, "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    gate_await(1);
    shutdown(fd, SHUT_WR);
    gate_set(true);
    ck_assert(http_receive(fd, false, &reply));
    ck_assert(is_cut(fd));
    close(fd);
}
END_TEST

START_TEST(who_stalls_gives_its_memory_to_who_does_not)
{
    g_autofree char *body = letters(BODY_MAX);
    g_autoptr(server) server = start(modes[_i], 8, true);
    int stalled = http_connect(server_port(server));
    int lively = http_connect(server_port(server));
    g_auto(http_reply) reply = {0};

    http_send_text(stalled, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n");
    http_send(stalled, body, BODY_MAX - 1);
    /* What of it is still on its way may push the other out as well. */
    for (unsigned tries = 0; reply.status != 200; tries++) {
        ck_assert_uint_lt(tries, 1000);
        http_reply_clear(&reply);
        http_call(lively, &(struct http_call){"POST", "/echo", NULL, body, BODY_MAX}, &reply);
    }
    http_reply_clear(&reply);
    for (unsigned i = 0; i < 10; i++)
        assert_echo(lively, BODY_MAX);
    http_send(stalled, body, 1);
    ck_assert(http_receive(stalled, false, &reply));
    ck_assert(reply.status == 503 || reply.status == 200);
    assert_echo(stalled, BODY_MAX);
    close(stalled);
    close(lively);
}
END_TEST

/* --- start and end -------------------------------------------------------------------------- */

START_TEST(draining_lets_requests_finish)
{
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);
    uint16_t port = server_port(server);
    int busy = http_connect(port);
    int idle = http_connect(port);
    g_auto(http_reply) last = {0};
    g_auto(http_reply) late = {0};

    gate_set(false);
    assert_echo(idle, 10);
    http_send_text(busy, "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    gate_await(1);

    ck_assert(!server_drain(server, 10));
    ck_assert_int_lt(http_try_connect(port), 0);
    /* A connection that was open is still served, once. */
    http_call(idle, &(struct http_call){"GET", "/echo", NULL, NULL, 0}, &late);
    g_autofree char *connection = http_header(&late, "Connection");
    ck_assert_pstr_eq(connection, "close");

    gate_set(true);
    ck_assert(server_drain(server, 10000));
    ck_assert(http_receive(busy, false, &last));
    ck_assert_int_eq(last.status, 200);
    close(busy);
    close(idle);
}
END_TEST

static void *free_server(void *data)
{
    server_free(data);
    return NULL;
}

START_TEST(the_end_waits_for_handlers)
{
    struct server *server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));
    pthread_t thread;

    gate_set(false);
    http_send_text(fd, "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    gate_await(1);
    ck_assert(!server_drain(server, 10));
    ck_assert_int_eq(pthread_create(&thread, NULL, free_server, server), 0);
    gate_set(true);
    pthread_join(thread, NULL);
    close(fd);
}
END_TEST

START_TEST(an_idle_server_drains_at_once)
{
    g_autoptr(server) server = start(modes[_i], 8, true);
    int fd = http_connect(server_port(server));
    int64_t start_us = g_get_monotonic_time();

    assert_echo(fd, 10);
    ck_assert(server_drain(server, 60000));
    ck_assert_int_lt(g_get_monotonic_time() - start_us, 10000000);
    close(fd);
}
END_TEST

START_TEST(all_addresses_can_be_listened_on)
{
    static const char *const hosts[] = {"", "0.0.0.0", "::", "127.0.0.1", "localhost"};
    struct server_options options = {
        .name = "test",
        .connections_max = 4,
        .idle_timeout_s = 10,
        .body_max = BODY_MAX,
        .bodies_max = BODIES_MAX,
        .handler = handle,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(hosts); i++) {
        GError *failure = NULL;

        options.host = hosts[i];
        options.port = 0;
        g_autoptr(server) server = server_start(&options, &failure);
        if (!server && strcmp(hosts[i], "::") == 0) {
            g_clear_error(&failure); /* a host without IPv6 */
            continue;
        }
        ck_assert_msg(server, "'%s': %s", hosts[i], failure ? failure->message : "");
        if (strcmp(hosts[i], "localhost") != 0) {
            int fd = http_connect(server_port(server));

            assert_echo(fd, 10);
            close(fd);
        }

        options.port = server_port(server);
        struct server *again = server_start(&options, &failure);
        g_autofree char *address = g_strdup_printf(":%u'", options.port);
        ck_assert_ptr_null(again);
        ck_assert(g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
        ck_assert_msg(strstr(failure->message, address) && strstr(failure->message, "in use"), "%s",
                      failure->message);
        g_clear_error(&failure);
    }
}
END_TEST

START_TEST(a_host_that_does_not_exist_is_named)
{
    const struct server_options options = {.name = "test", .host = "256.1.1.1"};
    g_autoptr(GError) failure = NULL;

    ck_assert_ptr_null(server_start(&options, &failure));
    ck_assert(g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
    ck_assert_ptr_nonnull(strstr(failure->message, "'256.1.1.1'"));
}
END_TEST

static Suite *suite(void)
{
    const struct {
        const TTest *test;
        int end; /* 2 or twice something: in both modes */
    } tests[] = {
        {bodies_up_to_the_limit_arrive, 2},
        {chunked_bodies_have_the_same_limit, 2},
        {larger_bodies_are_refused_and_the_connection_lives, 2},
        {absurd_bodies_are_refused_unread, 1},
        {malformed_lengths_are_refused, 1},
        {all_bodies_together_are_limited, 1},
        {bodies_of_broken_requests_are_given_back, 2},
        {answers_carry_what_the_handler_set, 2},
        {failures_have_bodies_only_where_wanted, 2},
        {head_has_the_length_but_no_body, 2},
        {clients_that_leave_do_no_harm, 2},
        {a_hundred_connections_stay_open, 2},
        {a_blocked_handler_stalls_nobody, 1},
        {a_newcomer_takes_the_place_of_who_waits_longest, 2},
        {nobody_is_cut_in_the_middle_of_a_call, 1},
        {slow_requests_are_cut, 2 * G_N_ELEMENTS(slow_requests)},
        {answers_that_are_not_taken_are_cut, 2},
        {idle_connections_outlast_slow_ones, 2},
        {long_heads_are_refused, 2},
        {half_closed_connections_get_their_answer, 1},
        {who_stalls_gives_its_memory_to_who_does_not, 2},
        {draining_lets_requests_finish, 1},
        {the_end_waits_for_handlers, 2},
        {an_idle_server_drains_at_once, 2},
        {all_addresses_can_be_listened_on, 1},
        {a_host_that_does_not_exist_is_named, 1},
    };
    Suite *s = suite_create("server");
    TCase *tc = tcase_create("server");

    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        tcase_add_loop_test(tc, tests[i].test, 0, tests[i].end);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
