/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_server.h"
#include "suite.h"

#include <gpuledger/error.h>

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

/* The library's thread may not have seen them yet. */
START_TEST(the_end_comes_right_after_connections)
{
    for (unsigned i = 0; i < 100; i++) {
        struct server *server = start(modes[_i], 8, true);
        int fds[3];

        for (size_t j = 0; j < G_N_ELEMENTS(fds); j++)
            fds[j] = http_connect(server_port(server));
        g_usleep(5 * i); /* the end comes later each time; whenever it comes, it is well */
        server_free(server);
        for (size_t j = 0; j < G_N_ELEMENTS(fds); j++)
            close(fds[j]);
    }
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

int main(void)
{
    const struct server_test tests[] = {
        {answers_carry_what_the_handler_set, 2},    {failures_have_bodies_only_where_wanted, 2},
        {head_has_the_length_but_no_body, 2},       {clients_that_leave_do_no_harm, 2},
        {draining_lets_requests_finish, 1},         {the_end_waits_for_handlers, 2},
        {the_end_comes_right_after_connections, 2}, {an_idle_server_drains_at_once, 2},
        {all_addresses_can_be_listened_on, 1},      {a_host_that_does_not_exist_is_named, 1},
    };

    return suite_run(server_suite("server", tests, G_N_ELEMENTS(tests)));
}
