/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections, slow ones and those that are cut. */
#include "echo_server.h"
#include "stopped_clock.h"
#include "suite.h"

#define PATIENT_MS 60000 /* of a clock that stands still */

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
    for (size_t i = 2; i > 0; i--) {
        clock_skip_ms(1);
        assert_echo(fds[i], 10);
        /* It is after the client has its answer. */
        ck_assert(server_await_idle(server, PATIENT_MS));
    }
    clock_skip_ms(1);
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
    clock_await_waiting(1); /* for a place */
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
        clock_skip_ms(20);
    }
    ck_assert_int_gt(g_get_monotonic_time() - start_us, 200000);
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
    ck_assert_int_eq(recv(fd, piece, 1, MSG_PEEK), 1); /* it is being sent */
    ck_assert(!server_await_idle(server, 0));
    clock_skip_ms(201);
    ck_assert(server_drain(server, PATIENT_MS)); /* the request is no more */
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
        n += (size_t)got;
    ck_assert_uint_lt(n, (size_t)8 << 20);
    close(fd);
}
END_TEST

START_TEST(idle_connections_outlast_slow_ones)
{
    g_autoptr(server) server = start_timed(modes[_i], 8, true, (struct times){100, 1});
    int used = http_connect(server_port(server)), fresh = http_connect(server_port(server)),
        slow = http_connect(server_port(server));
    char said[64];

    assert_echo(used, 10);
    ck_assert(server_await_idle(server, PATIENT_MS));
    http_send_text(slow, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n"
                         "Expect: 100-continue\r\n\r\n");
    ck_assert_int_gt(recv(slow, said, sizeof(said), 0), 0); /* its body is awaited */
    clock_skip_ms(400);
    while (recv(slow, said, sizeof(said), 0) > 0)
        continue;
    assert_echo(used, 10);
    assert_echo(fresh, 10);
    ck_assert(server_await_idle(server, PATIENT_MS));
    clock_skip_ms(1001);
    ck_assert(is_cut(used));
    ck_assert(is_cut(fresh));
    close(used);
    close(fresh);
    close(slow);
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

int main(void)
{
    const struct server_test tests[] = {
        {a_hundred_connections_stay_open, 2},
        {a_blocked_handler_stalls_nobody, 1},
        {a_newcomer_takes_the_place_of_who_waits_longest, 2},
        {nobody_is_cut_in_the_middle_of_a_call, 1},
        {slow_requests_are_cut, 2 * G_N_ELEMENTS(slow_requests)},
        {answers_that_are_not_taken_are_cut, 2},
        {idle_connections_outlast_slow_ones, 2},
        {long_heads_are_refused, 2},
        {half_closed_connections_get_their_answer, 1},
    };

    return suite_run(server_suite("server_connections", tests, G_N_ELEMENTS(tests)));
}
