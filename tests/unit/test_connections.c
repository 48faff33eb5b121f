/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include "stopped_clock.h"
#include "suite.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections that are pairs of sockets: [0] is the server's end. */
#define N_MAX 16

static struct connections *connections;
static int ends[N_MAX][2];
static struct connection *added[N_MAX];

static void begin(unsigned max, int64_t limit_ms)
{
    const struct connections_limits limits = {
        .max = max,
        .limit_us = {[CONNECTION_HANDSHAKE] = limit_ms * 1000,
                     [CONNECTION_IDLE] = limit_ms * 2000,
                     [CONNECTION_RECEIVING] = limit_ms * 1000,
                     [CONNECTION_SENDING] = limit_ms * 1000},
    };

    connections = connections_new(&limits);
}

static void add(unsigned i, const char *address)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
    bool is_ipv4 = inet_pton(AF_INET, address, &ipv4.sin_addr) == 1;

    ck_assert(is_ipv4 || inet_pton(AF_INET6, address, &ipv6.sin6_addr) == 1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
    added[i] = connections_add(connections, ends[i][0],
                               is_ipv4 ? (struct sockaddr *)&ipv4 : (struct sockaddr *)&ipv6,
                               CONNECTION_IDLE);
    clock_skip_ms(1); /* the order of times */
}

static bool is_cut(unsigned i)
{
    char byte;

    return recv(ends[i][1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void drop(unsigned i)
{
    connection_remove(added[i]);
    close(ends[i][0]);
    close(ends[i][1]);
    added[i] = NULL;
}

static void end(void)
{
    for (unsigned i = 0; i < N_MAX; i++) {
        if (added[i])
            drop(i);
    }
    connections_free(connections);
}

/* Asks for room until nobody can be cut any more, and notes who was, in order. */
static void assert_order(unsigned n, const unsigned *order)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert(!is_cut(order[i]));
        ck_assert(connections_make_room(connections, 0));
        for (unsigned j = 0; j < N_MAX && added[j]; j++)
            ck_assert_msg(is_cut(j) == (j == order[i]), "step %u: %u", i, j);
        drop(order[i]);
        add(order[i], "10.9.9.9");
        connection_enter(added[order[i]], CONNECTION_HANDLING);
    }
    ck_assert(!connections_make_room(connections, 0));
}

START_TEST(who_waits_longest_goes_first)
{
    static const unsigned order[] = {1, 2, 0, 3};

    begin(4, 0);
    for (unsigned i = 0; i < 4; i++)
        add(i, "10.0.0.1");
    connection_enter(added[0], CONNECTION_RECEIVING);
    clock_skip_ms(1);
    connection_enter(added[3], CONNECTION_RECEIVING);
    assert_order(4, order);
    end();
}
END_TEST

/* Byte by byte a head arrives; that it arrives is said again and again. */
START_TEST(who_goes_on_sending_gains_no_time)
{
    static const unsigned order[] = {0, 1};

    begin(2, 0);
    for (unsigned i = 0; i < 2; i++)
        add(i, "10.0.0.1");
    for (unsigned i = 0; i < 2; i++) {
        connection_enter(added[i], CONNECTION_RECEIVING);
        clock_skip_ms(1);
    }
    connection_enter(added[0], CONNECTION_RECEIVING);
    assert_order(2, order);
    end();
}
END_TEST

START_TEST(who_never_made_a_call_goes_before_who_did)
{
    static const unsigned order[] = {1, 3, 0, 2};

    begin(4, 0);
    for (unsigned i = 0; i < 4; i++)
        add(i, "10.0.0.1");
    for (unsigned i = 0; i < 4; i += 2) {
        connection_enter(added[i], CONNECTION_HANDLING);
        connection_enter(added[i], CONNECTION_IDLE);
        clock_skip_ms(1);
    }
    assert_order(4, order);
    end();
}
END_TEST

static const char *const crowds[][2] = {
    {"10.0.0.1", "10.0.0.1"},
    {"2001:db8::1", "2001:db8::ffff:2"}, /* one /64 */
    {"10.0.0.1", "::ffff:10.0.0.1"},
};

START_TEST(who_is_new_may_still_make_a_call)
{
    static const unsigned order[] = {0, 1, 2};

    begin(3, 0);
    connections_free(connections);
    connections = connections_new(&(struct connections_limits){.max = 3, .grace_us = 60000000});
    for (unsigned i = 0; i < 3; i++)
        add(i, "10.0.0.1");
    connection_enter(added[0], CONNECTION_HANDLING);
    connection_enter(added[0], CONNECTION_IDLE);
    clock_skip_ms(1);
    connection_enter(added[1], CONNECTION_RECEIVING);
    clock_skip_ms(1);
    connection_enter(added[2], CONNECTION_RECEIVING);
    assert_order(3, order);
    end();
}
END_TEST

START_TEST(who_holds_much_goes_before_who_does_not)
{
    static const unsigned order[] = {2, 3, 4, 0, 1};

    begin(8, 0);
    add(0, "10.0.0.2");
    add(1, "2001:db8:0:1::1");
    for (unsigned i = 2; i < 5; i++)
        add(i, crowds[_i][i % 2]);
    for (unsigned i = 5; i < 8; i++) {
        add(i, "10.0.0.3");
        connection_enter(added[i], CONNECTION_HANDLING);
    }
    /* Proven, but many. */
    for (unsigned i = 2; i < 5; i++) {
        connection_enter(added[i], CONNECTION_HANDLING);
        connection_enter(added[i], CONNECTION_IDLE);
        clock_skip_ms(1);
    }
    /* With two left it is no crowd any more, and they have made calls. */
    ck_assert(connections_make_room(connections, 0));
    ck_assert(is_cut(order[0]));
    drop(order[0]);
    add(order[0], "10.9.9.9");
    connection_enter(added[order[0]], CONNECTION_HANDLING);
    static const unsigned rest[] = {0, 1, 3, 4};
    assert_order(4, rest);
    end();
}
END_TEST

static void *wait_for_room(void *data)
{
    *(bool *)data = connections_make_room(connections, 50);
    return NULL;
}

START_TEST(room_is_waited_for)
{
    pthread_t thread;
    bool room;

    begin(2, 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(connections_make_room(connections, 0));
        add(i, "10.0.0.1");
        connection_enter(added[i], CONNECTION_HANDLING);
    }
    for (int drops = 0; drops < 2; drops++) {
        room = !drops;
        ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_room, &room), 0);
        clock_await_waiting(1);
        clock_skip_ms(49);
        clock_await_waiting(1); /* still */
        if (drops)
            drop(0);
        else
            clock_skip_ms(1);
        pthread_join(thread, NULL);
        ck_assert(room == drops);
    }
    end();
}
END_TEST

static const enum connection_state timed_states[] = {CONNECTION_HANDSHAKE, CONNECTION_IDLE,
                                                     CONNECTION_RECEIVING, CONNECTION_SENDING};

START_TEST(what_takes_too_long_is_cut)
{
    enum connection_state state = timed_states[_i];

    begin(4, 20);
    add(0, "10.0.0.1");
    add(1, "10.0.0.1");
    connection_enter(added[0], CONNECTION_SENDING);
    connection_enter(added[0], state);
    connection_enter(added[1], CONNECTION_HANDLING);
    connections_watch(connections);
    ck_assert(!is_cut(0));
    connection_enter(added[0], state); /* does not begin anew */
    clock_skip_ms(state == CONNECTION_IDLE ? 40 : 20);
    connections_watch(connections);
    ck_assert(!is_cut(0));
    clock_skip_ms(1);
    connections_watch(connections);
    ck_assert(is_cut(0));
    ck_assert(!is_cut(1));
    connections_watch(connections);
    end();
}
END_TEST

static void note(void *data)
{
    ++*(unsigned *)data;
}

START_TEST(the_oldest_gives_up)
{
    unsigned gave[4] = {0};

    begin(8, 0);
    for (unsigned i = 0; i < 4; i++) {
        add(i, "10.0.0.1");
        connection_enter(added[i], CONNECTION_RECEIVING);
        connection_offer(added[i], note, &gave[i]);
    }
    connection_keep(added[1]);
    ck_assert(connections_reclaim(connections, added[0], false));
    ck_assert_uint_eq(gave[2], 1);
    ck_assert(!connections_reclaim(connections, added[0], true)); /* it is the oldest itself */
    ck_assert(connections_reclaim(connections, added[3], true));
    ck_assert_uint_eq(gave[0], 1);
    ck_assert(connections_reclaim(connections, added[1], false));
    ck_assert_uint_eq(gave[3], 1);
    ck_assert(!connections_reclaim(connections, added[1], false));
    ck_assert_uint_eq(gave[1], 0);
    end();
}
END_TEST

START_TEST(a_descriptor_may_come_again)
{
    begin(1, 0);
    add(0, "10.0.0.1");
    /* The library closed the first one and did not say so. */
    struct sockaddr_in peer = {.sin_family = AF_INET};
    added[0] = connections_add(connections, ends[0][0], (struct sockaddr *)&peer, CONNECTION_IDLE);
    ck_assert_ptr_eq(connections_find(connections, ends[0][0]), added[0]);
    drop(0);
    ck_assert_ptr_null(connections_find(connections, ends[0][0]));
    ck_assert(connections_make_room(connections, 0));
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connections");
    TCase *cases = tcase_create("connections");

    tcase_add_test(cases, who_waits_longest_goes_first);
    tcase_add_test(cases, who_goes_on_sending_gains_no_time);
    tcase_add_test(cases, who_never_made_a_call_goes_before_who_did);
    tcase_add_test(cases, who_is_new_may_still_make_a_call);
    tcase_add_loop_test(cases, who_holds_much_goes_before_who_does_not, 0, G_N_ELEMENTS(crowds));
    tcase_add_test(cases, room_is_waited_for);
    tcase_add_loop_test(cases, what_takes_too_long_is_cut, 0, G_N_ELEMENTS(timed_states));
    tcase_add_test(cases, the_oldest_gives_up);
    tcase_add_test(cases, a_descriptor_may_come_again);
    suite_add_tcase(suite, cases);

    return suite_run(suite);
}
