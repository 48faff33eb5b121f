/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists that somebody asks a reflector for. The store is a fake that counts lists and pods.
 */
#include "kube/reflector.h"

#include "app/log.h"
#include "fake_server.h"
#include "kube/clock.h"
#include "suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define PATIENT_MS 5000 /* how long a test waits for what must come */
#define EMPTY                                                                                      \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["                  \
    "]}"

static struct fake_server *server;
static struct api_client *client;
static struct reflector *running;
static atomic_uint begun, ended;

void store_list_begin(struct store *store, enum feed feed)
{
    atomic_fetch_add(&begun, 1);
}

void store_list_end(struct store *store, enum feed feed)
{
    atomic_fetch_add(&ended, 1);
}

void store_set_trouble(struct store *store, enum feed feed, const char *why)
{
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
}

void store_delete_pod(struct store *store, const char *uid)
{
}

void store_apply_node(struct store *store, const struct node_view *node)
{
}

void store_delete_node(struct store *store, const char *name)
{
}

void store_apply_configmap(struct store *store, const struct configmap_view *configmap)
{
}

void store_delete_configmap(struct store *store, const struct configmap_view *configmap)
{
}

void store_apply_budget(struct store *store, const struct budget_view *view)
{
}

void store_delete_budget(struct store *store, const char *ns, const char *name)
{
}

void store_apply_resource_quota(struct store *store, const struct resource_quota_view *view)
{
}

void store_delete_resource_quota(struct store *store, const char *ns, const char *name)
{
}

static void setup(void)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    signal(SIGPIPE, SIG_IGN);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    server = fake_server_new();
    config->source = g_strdup("test");
    config->server = g_strdup(fake_server_url(server));
    config->token = g_strdup("sesame");
    client = api_client_new(config, NULL);
    ck_assert(client);
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
}

static void teardown(void)
{
    g_clear_pointer(&running, reflector_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_client_free(client);
    fake_server_free(server);
}

static void script(const struct fake_reply *reply)
{
    fake_server_script(server, reply);
}

/* A pause of ten minutes after the first failure: nobody waits for that. */
static void start(void)
{
    static const struct reflector_options slow = {.backoff_ms = 600000, .backoff_max_ms = 600000};

    running = reflector_start(client, NULL, FEED_PODS, &slow, NULL);
    ck_assert(running);
}

static void expect_requests(unsigned count)
{
    ck_assert_msg(fake_server_wait(server, count, PATIENT_MS), "%u of %u requests",
                  fake_server_count(server), count);
}

static bool comes_true(uint64_t wanted)
{
    const int64_t until_ms = clock_ms() + PATIENT_MS;

    while (!reflector_has_listed(running, wanted) && clock_ms() < until_ms)
        g_usleep(1000);
    return reflector_has_listed(running, wanted);
}

START_TEST(a_watch_makes_way)
{
    script(&(struct fake_reply){.match = "limit=", .times = 2, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .times = 2, .end = FAKE_HANG});
    start();
    expect_requests(2);
    const uint64_t wanted = reflector_relist(running);
    ck_assert(comes_true(wanted));
    expect_requests(4);
    ck_assert_uint_eq(atomic_load(&ended), 2);
}
END_TEST

START_TEST(a_list_that_began_before_does_not_count)
{
    script(&(struct fake_reply){.match = "limit=", .delay_ms = 300, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "limit=", .delay_ms = 300, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(1);
    const uint64_t wanted = reflector_relist(running);
    expect_requests(2);
    ck_assert_uint_eq(atomic_load(&ended), 1);
    ck_assert(!reflector_has_listed(running, wanted));
    ck_assert(comes_true(wanted));
    expect_requests(3);
}
END_TEST

START_TEST(a_pause_is_cut_short)
{
    script(&(struct fake_reply){.match = "limit=", .status = 500, .chunks = {"{}"}});
    script(&(struct fake_reply){.match = "limit=", .times = 1, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(1);
    ck_assert(comes_true(reflector_relist(running)));
}
END_TEST

START_TEST(pauses_are_short_while_a_list_is_wanted)
{
    script(&(struct fake_reply){.match = "limit=", .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    script(&(struct fake_reply){.match = "limit=", .status = 500, .times = 2, .chunks = {"{}"}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(2);
    ck_assert(comes_true(reflector_relist(running)));
    ck_assert_uint_eq(atomic_load(&begun), 4);
    ck_assert_uint_eq(atomic_load(&ended), 2);
}
END_TEST

START_TEST(wishes_of_one_moment_share_a_list)
{
    script(&(struct fake_reply){.match = "limit=", .delay_ms = 200, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(1);
    const uint64_t first = reflector_relist(running);
    const uint64_t last = reflector_relist(running);
    ck_assert_uint_lt(first, last);
    ck_assert(comes_true(last));
    ck_assert(reflector_has_listed(running, first));
    expect_requests(3);
    ck_assert_uint_eq(atomic_load(&ended), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relist");
    TCase *tcase = tcase_create("relist");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_watch_makes_way);
    tcase_add_test(tcase, a_list_that_began_before_does_not_count);
    tcase_add_test(tcase, a_pause_is_cut_short);
    tcase_add_test(tcase, pauses_are_short_while_a_list_is_wanted);
    tcase_add_test(tcase, wishes_of_one_moment_share_a_list);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
