/* SPDX-License-Identifier: Apache-2.0 */
/* What a command that a signal ends leaves on nodes, against an API server with a script. */
#include "cmd/changes/ending.h"

#include "evicting_api.h"
#include "no_exit.h"
#include "suite.h"

#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM};
static sigset_t before;
static struct keeping *plan;

static void complain(void *data, const char *text)
{
    ck_abort_msg("%s", text);
}

static void setup(void)
{
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    ending_block_signals();
    evicting_begin();
    plan = keeping_new(&(struct keeping_options){.client = client, .by = "plan", .tell = complain});
}

static void teardown(void)
{
    keeping_free(plan);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    evicting_end();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A Node with the mark of this plan. */
static const char *node_text(const char *node)
{
    return keep(g_strdup_printf(
        "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"7\",\"annotations\":{"
        "\"gpuledger.io/plan\":\"{\\\"doing\\\":\\\"things\\\",\\\"by\\\":\\\"plan\\\","
        "\\\"until\\\":\\\"2026-01-05T12:01:00Z\\\",\\\"rooms\\\":[]}\"}}}",
        node));
}

START_TEST(a_signal_takes_marks_away)
{
    static const char *const nodes[] = {"n1", "n2"};
    const struct keeping_place places[] = {{nodes[0], NULL}, {nodes[1], NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++)
        answer(keep(g_strdup_printf("GET /api/v1/nodes/%s ", nodes[i])), FAKE_ALWAYS, 200,
               node_text(nodes[i]));
    answer("PATCH /api/v1/nodes/", FAKE_ALWAYS, 200, NULL);
    ck_assert(keeping_set(plan, "things", places, G_N_ELEMENTS(places), NULL));
    ck_assert_uint_eq(count_requests("PATCH ", "things"), 2);
    G_GNUC_UNUSED g_autoptr(ending) ending = ending_new(plan);
    kill(getpid(), signals[_i]);
    ck_assert_int_eq(no_exit_await(), 128 + signals[_i]);
    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *line = g_strdup_printf("PATCH /api/v1/nodes/%s ", nodes[i]);
        ck_assert_uint_eq(count_requests(line, "\"gpuledger.io/plan\":null"), 1);
    }
}
END_TEST

START_TEST(without_one_it_ends_nothing)
{
    const unsigned n = fake_server_count(server);

    ending_free(ending_new(plan));
    ck_assert_uint_eq(fake_server_count(server), n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ending");
    TCase *tests = tcase_create("ending");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_signal_takes_marks_away, 0, G_N_ELEMENTS(signals));
    tcase_add_test(tests, without_one_it_ends_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
