/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label of the holder's pod against a scripted API server: what is sent, and when it counts as
 * gone.
 */
#include "kube/holder_label.h"

#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

#define MATCH "PATCH /api/v1/namespaces/ns/pods/gl-0?timeout="
#define POD "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"gl-0\"}}"
#define ON "\r\n\r\n{\"metadata\":{\"labels\":{\"gpuledger.io/holder\":\"true\"}}}"
#define OFF "\r\n\r\n{\"metadata\":{\"labels\":{\"gpuledger.io/holder\":null}}}"

static struct holder_label *label;

static void setup(void)
{
    api_begin();
}

static void teardown(void)
{
    g_clear_pointer(&label, holder_label_free);
    api_end();
}

static void start_saying(int64_t again_ms)
{
    g_autoptr(GError) error = NULL;

    label = holder_label_start(client, "ns", "gl-0", again_ms, &error);
    ck_assert_msg(label, "%s", error ? error->message : "");
}

static void start(void)
{
    start_saying(600000);
}

static void accept_all(void)
{
    fake_server_script(server, &(struct fake_reply){
                                   .match = MATCH, .times = FAKE_ALWAYS, .chunks = {POD}});
}

static void expect_end(unsigned index, const char *end)
{
    ck_assert_msg(fake_server_wait(server, index + 1, PATIENT_MS), "%u requests",
                  fake_server_count(server));
    g_autofree char *text = fake_server_request(server, index);
    ck_assert_msg(g_str_has_suffix(text, end), "request %u: %s", index, text);
}

static void expect_off(void)
{
    const int64_t until_ms = clock_ms() + PATIENT_MS;

    while (!holder_label_is_off(label) && clock_ms() < until_ms)
        g_usleep(1000);
    ck_assert(holder_label_is_off(label));
}

START_TEST(what_an_earlier_process_left_is_removed)
{
    accept_all();
    start();
    expect_end(0, OFF);
    expect_off();
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
}
END_TEST

START_TEST(it_comes_and_goes_with_the_lease)
{
    accept_all();
    start();
    expect_off();
    holder_label_set(label, true);
    fake_server_release(server);
    expect_end(1, ON);
    ck_assert(!holder_label_is_off(label));
    holder_label_set(label, false);
    expect_end(2, OFF);
    expect_off();
    ck_assert_uint_eq(fake_server_count(server), 3);
}
END_TEST

START_TEST(it_is_not_gone_before_the_server_says_so)
{
    fake_server_script(server, &(struct fake_reply){.match = MATCH, .status = 403, .chunks = {"{}"}});
    fake_server_script(server, &(struct fake_reply){.match = MATCH, .status = 404, .chunks = {"{}"}});
    fake_server_script(server, &(struct fake_reply){.match = MATCH, .end = FAKE_HANG});
    start();
    expect_end(2, OFF);
    ck_assert(!holder_label_is_off(label));
    accept_all();
    expect_off();
    expect_end(3, OFF);
}
END_TEST

START_TEST(who_changes_their_mind_meanwhile_is_heard)
{
    fake_server_script(server, &(struct fake_reply){.match = MATCH, .held = true, .chunks = {POD}});
    accept_all();
    start();
    ck_assert(fake_server_wait(server, 1, PATIENT_MS));
    holder_label_set(label, true);
    expect_end(1, ON);
    ck_assert(!holder_label_is_off(label));
}
END_TEST

/* Somebody may have edited the pod since. */
START_TEST(it_is_said_again)
{
    fake_server_script(server, &(struct fake_reply){.match = MATCH, .chunks = {POD}});
    fake_server_script(server,
                       &(struct fake_reply){.match = MATCH, .status = 403, .chunks = {"{}"}});
    accept_all();
    start_saying(50);
    expect_end(1, OFF);
    ck_assert(holder_label_is_off(label)); /* nobody else has said anything */
    expect_end(2, OFF);
    holder_label_set(label, true);
    while (holder_label_is_off(label))
        g_usleep(1000);
    const unsigned n = fake_server_count(server);
    expect_end(n + 1, ON);
    ck_assert(!holder_label_is_off(label));
}
END_TEST

START_TEST(a_name_that_leads_elsewhere_is_refused)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!holder_label_start(client, "ns", "..", 600000, &error));
    ck_assert_msg(strstr(error->message, "pod"), "%s", error->message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("holder_label");
    TCase *tc = tcase_create("holder_label");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_an_earlier_process_left_is_removed);
    tcase_add_test(tc, it_comes_and_goes_with_the_lease);
    tcase_add_test(tc, it_is_not_gone_before_the_server_says_so);
    tcase_add_test(tc, who_changes_their_mind_meanwhile_is_heard);
    tcase_add_test(tc, it_is_said_again);
    tcase_add_test(tc, a_name_that_leads_elsewhere_is_refused);
    suite_add_tcase(suite, tc);

    return suite_run(suite);
}
