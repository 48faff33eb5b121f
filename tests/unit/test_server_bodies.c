/* SPDX-License-Identifier: Apache-2.0 */
/* What requests carry: its limits, and whose memory it is. */
#include "echo_server.h"
#include "suite.h"

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

/* Another program in between might end such a request elsewhere, and take the rest for a request of
 * somebody else's. Whatever follows on the connection is not looked at. */
START_TEST(heads_in_doubt_are_refused)
{
    static const struct {
        const char *head; /* after the first line */
        int status;
    } cases[] = {
        {"Host: t\r\nContent-Length: 2\r\nContent-Length: 0\r\n", 400},
        {"Host: t\r\nContent-Length: 2\r\nContent-Length: 2\r\n", 400},
        {"Host: t\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", 400},
        {"Host: t\r\ncontent-length: 2\r\ntransfer-encoding: identity\r\n", 400},
        {"Host: t\r\nTransfer-Encoding: gzip, chunked\r\n", 501},
        {"Host: t\r\nTransfer-Encoding: xchunked\r\n", 501},
        {"Host: t\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501},
        {"Content-Length: 2\r\n", 400},
        {"Host: t\r\nHost: u\r\nContent-Length: 2\r\n", 400},
        {"Host: t\r\nContent-Length : 2\r\n", 400},
        {"Host: t\r\nHost: u\r\n", 400},
    };
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("POST /echo HTTP/1.1\r\n%s\r\n{}"
                                                "GET /next HTTP/1.1\r\nHost: t\r\n\r\n",
                                                cases[i].head);
        g_auto(http_reply) reply = {0};
        g_auto(http_reply) next = {0};
        int fd = http_connect(server_port(server));

        http_send_text(fd, text);
        ck_assert_msg(http_receive(fd, false, &reply), "%zu", i);
        g_autofree char *connection = http_header(&reply, "Connection");
        ck_assert_msg(reply.status == cases[i].status, "%zu: %d", i, reply.status);
        ck_assert_pstr_eq(connection, "close");
        ck_assert_msg(!http_receive(fd, false, &next), "%zu: %d", i, next.status);
        close(fd);
    }
    ck_assert(server_drain(server, 1000));
}
END_TEST

START_TEST(good_heads_are_not)
{
    static const char *const texts[] = {
        "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        "POST /a%2500 HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\n{}",
    };
    g_autoptr(server) server = start(SERVER_THREADS, 8, true);

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_auto(http_reply) reply = {0};
        int fd = http_connect(server_port(server));

        http_send_text(fd, texts[i]);
        ck_assert(http_receive(fd, false, &reply));
        ck_assert_int_eq(reply.status, 200);
        ck_assert_str_eq(reply.body->str, "{}");
        close(fd);
    }
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
    assert_echo(second, BODIES_MAX - BODY_MAX); /* what was refused holds nothing */
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

int main(void)
{
    const struct server_test tests[] = {
        {bodies_up_to_the_limit_arrive, 2},
        {chunked_bodies_have_the_same_limit, 2},
        {larger_bodies_are_refused_and_the_connection_lives, 2},
        {absurd_bodies_are_refused_unread, 1},
        {malformed_lengths_are_refused, 1},
        {heads_in_doubt_are_refused, 1},
        {good_heads_are_not, 1},
        {all_bodies_together_are_limited, 1},
        {bodies_of_broken_requests_are_given_back, 2},
        {who_stalls_gives_its_memory_to_who_does_not, 2},
    };

    return suite_run(server_suite("server_bodies", tests, G_N_ELEMENTS(tests)));
}
