/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists that somebody asks a reflector for. The store is a fake that counts lists and pods.
 */
#include "kube/reflector.h"

#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#include <stdatomic.h>
#include <string.h>

#define EMPTY                                                                                      \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["                  \
    "]}"

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

void store_list_spare(struct store *store, enum feed feed)
{
}

void store_set_unwatched(struct store *store, enum feed feed, const char *why)
{
}

void store_set_trouble(struct store *store, enum feed feed, const char *why)
{
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
}

void store_vanish_pod(struct store *store, const char *uid)
{
}

void store_apply_node(struct store *store, const struct node_view *node)
{
}

void store_delete_node(struct store *store, const char *name)
{
}

void store_apply_object(struct store *store, enum feed feed, const void *view)
{
}

void store_remove_object(struct store *store, enum feed feed, const struct object_name *name)
{
}

static void setup(void)
{
    api_begin();
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
}

static void teardown(void)
{
    g_clear_pointer(&running, reflector_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
}

/* A pause of ten minutes after the first failure: nobody waits for that. */
static void start(void)
{
    static const struct reflector_options slow = {.backoff_ms = 600000, .backoff_max_ms = 600000};

    running = reflector_start(client, NULL, FEED_PODS, &slow, NULL);
    ck_assert(running);
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
    script(&(struct fake_reply){.match = "limit=", .times = 2, .held = true, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(1);
    const uint64_t wanted = reflector_relist(running);
    fake_server_release(server);
    expect_requests(2);
    ck_assert_uint_eq(atomic_load(&ended), 1);
    ck_assert(!reflector_has_listed(running, wanted));
    fake_server_release(server);
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
    script(&(struct fake_reply){.match = "limit=", .held = true, .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "limit=", .chunks = {EMPTY}});
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
    start();
    expect_requests(1);
    const uint64_t first = reflector_relist(running);
    const uint64_t last = reflector_relist(running);
    ck_assert_uint_lt(first, last);
    fake_server_release(server);
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
