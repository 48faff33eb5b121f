/* SPDX-License-Identifier: Apache-2.0 */
#include "http/outgoing.h"
#include "suite.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUDGET ((size_t)1 << 20)
#define VIEWS (BUDGET / 4 * 3)

static struct outgoing *outgoing;
static struct connections *connections;
static struct connection *own;
static int sockets[2];

static struct connection *connect_from(int fd)
{
    const struct sockaddr_in peer = {.sin_family = AF_INET};

    return connections_add(connections, fd, (const struct sockaddr *)&peer, CONNECTION_IDLE);
}

static void set_up(void)
{
    outgoing = outgoing_new(BUDGET);
    connections = connections_new(&(struct connections_limits){.max = 8});
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    own = connect_from(1000); /* never written to */
}

static void tear_down(void)
{
    connection_remove(own);
    connections_free(connections);
    outgoing_free(outgoing);
    close(sockets[0]);
    close(sockets[1]);
}

static size_t hold(size_t length, bool is_view)
{
    size_t held = 1;

    ck_assert(outgoing_hold(outgoing, own, length, is_view, &held));
    return held;
}

static void assert_refused(size_t length, bool is_view)
{
    const size_t before = outgoing_held(outgoing);
    size_t held = 1;

    ck_assert(!outgoing_hold(outgoing, own, length, is_view, &held));
    ck_assert_uint_eq(held, 0);
    ck_assert_uint_eq(outgoing_held(outgoing), before);
}

START_TEST(views_leave_a_part_to_verbs)
{
    const size_t first = hold(VIEWS - ANSWER_SMALL, true);

    ck_assert_uint_eq(first, VIEWS - ANSWER_SMALL);
    assert_refused(ANSWER_SMALL + 1, true);
    const size_t second = hold(ANSWER_SMALL, true);
    assert_refused(ANSWER_SMALL, true);
    const size_t verb = hold(BUDGET - VIEWS, false);
    ck_assert_uint_eq(outgoing_held(outgoing), BUDGET);
    outgoing_release(outgoing, verb);
    outgoing_release(outgoing, first);
    outgoing_release(outgoing, second);
    ck_assert_uint_eq(outgoing_held(outgoing), 0);
}
END_TEST

START_TEST(little_ones_are_not_counted)
{
    const size_t all = hold(VIEWS, true);

    ck_assert_uint_eq(hold(ANSWER_SMALL - 1, true), 0);
    ck_assert_uint_eq(outgoing_held(outgoing), VIEWS);
    outgoing_release(outgoing, all);
}
END_TEST

/* A cluster may be larger than the budget. */
START_TEST(a_giant_passes_alone)
{
    const size_t giant = hold(10 * BUDGET, true);

    ck_assert_uint_eq(giant, 10 * BUDGET);
    assert_refused(ANSWER_SMALL, true);
    outgoing_release(outgoing, giant);
    outgoing_release(outgoing, hold(10 * BUDGET, false));
}
END_TEST

/* --- verbs cut who does not take his answer --------------------------------------------------- */

static struct connection *slow;
static size_t slow_held;

static void *leave_when_cut(void *data)
{
    char byte;

    /* The end comes by shutdown(2). */
    ck_assert_int_eq(read(sockets[1], &byte, 1), 0);
    connection_enter(slow, CONNECTION_IDLE);
    outgoing_release(outgoing, slow_held);
    return NULL;
}

START_TEST(a_verb_makes_room)
{
    pthread_t thread;

    slow = connect_from(sockets[1]);
    slow_held = hold(VIEWS, true);
    connection_send(slow, slow_held);
    ck_assert_int_eq(pthread_create(&thread, NULL, leave_when_cut, NULL), 0);
    const size_t verb = hold(BUDGET / 2, false);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(outgoing_held(outgoing), BUDGET / 2);
    outgoing_release(outgoing, verb);
    connection_remove(slow);
}
END_TEST

/* Who takes a little answer, or has not been answered yet, is not the one to go. */
START_TEST(nobody_else_is_cut)
{
    char byte;
    const size_t all = hold(BUDGET, false);

    slow = connect_from(sockets[1]);
    connection_send(slow, 0);
    assert_refused(ANSWER_SMALL, false);
    connection_enter(slow, CONNECTION_HANDLING);
    assert_refused(ANSWER_SMALL, false);
    ck_assert_int_lt(recv(sockets[1], &byte, 1, MSG_DONTWAIT), 0); /* still open */
    connection_remove(slow);
    outgoing_release(outgoing, all);
}
END_TEST

/* --- lines ------------------------------------------------------------------------------------ */

static gint entered, turned_away; /* atomic */

static void *stand_in_line(void *data)
{
    if (!outgoing_enter(outgoing, LINE_QUESTIONS)) {
        g_atomic_int_inc(&turned_away);
        return NULL;
    }
    ck_assert_int_eq(g_atomic_int_add(&entered, 1), 0); /* alone */
    g_usleep(1000);
    g_atomic_int_add(&entered, -1);
    outgoing_leave(outgoing, LINE_QUESTIONS);
    return NULL;
}

START_TEST(a_line_is_short)
{
    pthread_t threads[LINE_MAX_WAITING + 5];

    ck_assert(outgoing_enter(outgoing, LINE_QUESTIONS));
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, stand_in_line, NULL), 0);
    while (g_atomic_int_get(&turned_away) < 5)
        g_usleep(1000);
    ck_assert(outgoing_enter(outgoing, LINE_VIEWS)); /* the other is another */
    outgoing_leave(outgoing, LINE_VIEWS);
    outgoing_leave(outgoing, LINE_QUESTIONS);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(g_atomic_int_get(&turned_away), 5);
    ck_assert(outgoing_enter(outgoing, LINE_QUESTIONS));
    outgoing_leave(outgoing, LINE_QUESTIONS);
}
END_TEST

START_TEST(no_view_is_begun_without_memory)
{
    const size_t all = hold(VIEWS, true);

    ck_assert(!outgoing_enter(outgoing, LINE_VIEWS));
    ck_assert(outgoing_enter(outgoing, LINE_QUESTIONS));
    outgoing_leave(outgoing, LINE_QUESTIONS);
    outgoing_release(outgoing, all);
    ck_assert(outgoing_enter(outgoing, LINE_VIEWS));
    outgoing_leave(outgoing, LINE_VIEWS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("outgoing");
    TCase *cases = tcase_create("outgoing");

    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, views_leave_a_part_to_verbs);
    tcase_add_test(cases, little_ones_are_not_counted);
    tcase_add_test(cases, a_giant_passes_alone);
    tcase_add_test(cases, a_verb_makes_room);
    tcase_add_test(cases, nobody_else_is_cut);
    tcase_add_test(cases, a_line_is_short);
    tcase_add_test(cases, no_view_is_begun_without_memory);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
