/* SPDX-License-Identifier: Apache-2.0 */
/* The key that stops all evictions. */
#include "evict/stop_key.h"

#include "evicting_api.h"
#include "suite.h"

#define PATH "GET /api/v1/namespaces/gpu/configmaps/gpuledger-evictions "
#define EVERY_MS 1000
#define STALE_MS 500 /* less than that, so that it is not read again before */

static struct permits *permits;
static struct stop_key *key;

static void setup(void)
{
    evicting_begin();
    permits = permits_new(&(struct permits_options){.stopped = true});
}

static void teardown(void)
{
    g_clear_pointer(&key, stop_key_free);
    permits_free(permits);
    evicting_end();
}

/* Once it has been read. */
static void start(void)
{
    key = stop_key_start(client, "gpu", permits, NULL);
    ck_assert_ptr_nonnull(key);
    clock_await_waiting(1);
}

static void read_again(void)
{
    clock_skip_ms(EVERY_MS);
    clock_await_waiting(1);
}

#define SAYS(value)                                                                                \
    "{\"metadata\":{\"name\":\"gpuledger-evictions\"},\"data\":{\"stop\":\"" value "\"}}"

static const struct {
    int status;
    const char *text;
    const char *why; /* part of it; NULL: evictions go on */
} readings[] = {
    {200, SAYS("true"), "gpu/gpuledger-evictions says so"},
    {200, SAYS("false"), NULL},
    {200, "{\"metadata\":{},\"data\":{\"other\":\"true\"}}", NULL},
    {200, "{\"metadata\":{}}", NULL},
    {404, SAYS_GONE, NULL},
    {200, SAYS("True"), "'True', neither 'true' nor 'false'"},
    {200, SAYS(""), "'', neither"},
    {200, SAYS("a text that is longer than what is said of it"), "'a text that is longe'"},
    {200, "{\"data\":{\"stop\":true}}", "cannot be understood"},
    {200, "nothing", "cannot be understood"},
    {403, NULL, "cannot be read"},
    {500, NULL, "cannot be read"},
};

START_TEST(what_it_says_counts)
{
    answer(PATH, FAKE_ALWAYS, readings[_i].status, readings[_i].text);
    start();
    g_autofree char *why = permits_why_stopped(permits);
    ck_assert_int_eq(why != NULL, readings[_i].why != NULL);
    ck_assert_msg(!why || strstr(why, readings[_i].why), "%s", why);
}
END_TEST

START_TEST(it_is_read_again_and_again)
{
    answer(PATH, 1, 404, SAYS_GONE);
    answer(PATH, 1, 200, SAYS("true"));
    answer(PATH, 1, 403, NULL);
    answer(PATH, FAKE_ALWAYS, 200, SAYS("false"));
    start();
    for (int i = 0; i < 4; i++) {
        g_autofree char *why = permits_why_stopped(permits);
        ck_assert_int_eq(why != NULL, i == 1 || i == 2);
        read_again();
    }
}
END_TEST

/* It says what was so when it was asked for, however long the answer takes. */
START_TEST(what_was_asked_for_long_ago_counts_no_more)
{
    permits_free(permits);
    permits = permits_new(&(struct permits_options){.stopped = true, .stale_ms = STALE_MS});
    script(&(struct fake_reply){.match = PATH, .status = 404, .chunks = {SAYS_GONE}, .held = true});
    answer(PATH, FAKE_ALWAYS, 404, SAYS_GONE);
    key = stop_key_start(client, "gpu", permits, NULL);
    ck_assert_ptr_nonnull(key);
    expect_requests(1);
    clock_skip_ms(STALE_MS + 1);
    fake_server_release(server);
    clock_await_waiting(1);
    g_autofree char *stale = permits_why_stopped(permits);
    ck_assert_ptr_nonnull(stale);
    read_again();
    g_autofree char *fresh = permits_why_stopped(permits);
    ck_assert_ptr_null(fresh);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stop_key");
    TCase *tests = tcase_create("stop_key");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_it_says_counts, 0, G_N_ELEMENTS(readings));
    tcase_add_test(tests, it_is_read_again_and_again);
    tcase_add_test(tests, what_was_asked_for_long_ago_counts_no_more);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
