/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Lease against a scripted API server. */
#include "base/metrics.h"
#include "kube/clock.h"
#include "kube/lease.h"
#include "scripted_api.h"

#include <stdatomic.h>
#include <string.h>

#define PATH "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
#define STANDS_BY "this replica of gpuledger stands by, another one holds the Lease; try again"

static struct store *the_store;
static struct journal *bookings;
static struct lease *running;
static atomic_bool fresh;
static atomic_uint refreshes;

static inline uint64_t begin_refresh(void *data)
{
    return atomic_fetch_add(&refreshes, 1) + 1;
}

static inline bool refresh_is_done(void *data, uint64_t number)
{
    return atomic_load(&fresh) && number == atomic_load(&refreshes);
}

static inline void sync_store(void)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(the_store, (enum feed)feed);
        store_list_end(the_store, (enum feed)feed);
    }
}

static inline void setup(void)
{
    const struct store_options options = {.policy = &policies[0]};

    api_begin();
    the_store = store_new(&options);
    bookings = journal_new(the_store);
    atomic_store(&fresh, true);
    atomic_store(&refreshes, 0);
}

static inline void teardown(void)
{
    g_clear_pointer(&running, lease_free);
    journal_free(bookings);
    store_free(the_store);
    api_end();
}

static gint slept_ms; /* atomic; by how much the machine has slept */

static inline int64_t scripted_sleep(void)
{
    return g_atomic_int_get(&slept_ms);
}

static inline void start_with_deadline(int64_t renew_deadline_ms, int64_t retry_ms)
{
    g_autoptr(GError) error = NULL;
    const struct lease_args args = {
        .client = client,
        .store = the_store,
        .journal = bookings,
        .refresh = {begin_refresh, refresh_is_done, NULL},
        .ns = "ns",
        .name = "gl",
        .identity = "me",
        .duration_ms = 60000,
        .renew_deadline_ms = renew_deadline_ms,
        .retry_ms = retry_ms,
        .slept_ms = scripted_sleep,
    };

    running = lease_start(&args, &error);
    ck_assert_msg(running, "%s", error ? error->message : "");
}

/* Nothing falls due while a test runs: what is written is written for a reason. */
static inline void start(void)
{
    start_with_deadline(50000, 40000);
}

#define LEASE(version, holder, annotations)                                                        \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"gl\",\"namespace\":\"ns\",\"resourceVersion\":"  \
    "\"" version                                                                                   \
    "\",\"uid\":\"u-1\",\"labels\":{\"l\":\"1\"},\"annotations\":{\"a\":\"b\"" annotations         \
    "}},\"spec\":{\"holderIdentity\":\"" holder                                                    \
    "\",\"leaseDurationSeconds\":60,\"acquireTime\":\"2026-01-02T03:04:05.000006Z\","              \
    "\"leaseTransitions\":4}}"
#define STATUS(code) "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"scripted\"}"
#define FREE LEASE("1", "", "")

static inline void script_read(const char *body)
{
    script(&(struct fake_reply){.match = "GET " PATH "/gl ", .chunks = {body}});
}

static inline void script_write(const char *body)
{
    script(&(struct fake_reply){.match = "PUT " PATH "/gl?timeout=", .chunks = {body}});
}

static inline void script_failure(const char *match, int status, const char *body)
{
    script(&(struct fake_reply){.match = match, .status = status, .chunks = {body}});
}

static inline char *take_request(unsigned index)
{
    ck_assert_msg(fake_server_wait(server, index + 1, PATIENT_MS), "%u requests",
                  fake_server_count(server));
    return fake_server_request(server, index);
}

static inline void expect_part(unsigned index, const char *part)
{
    g_autofree char *text = take_request(index);
    ck_assert_msg(strstr(text, part), "request %u: \"%s\" is not in \"%s\"", index, part, text);
}

static inline void expect_no_part(unsigned index, const char *part)
{
    g_autofree char *text = take_request(index);
    ck_assert_msg(!strstr(text, part), "request %u: \"%s\" is in \"%s\"", index, part, text);
}

static inline bool is_held(void)
{
    g_autofree char *why = NULL;
    return lease_is_held(running, &why);
}

static inline bool comes_true(bool expected)
{
    const int64_t until_ms = clock_ms() + PATIENT_MS;

    while (is_held() != expected && clock_ms() < until_ms)
        g_usleep(1000);
    return is_held() == expected;
}

static inline void expect_why(const char *part)
{
    g_autofree char *why = NULL;

    ck_assert(!lease_is_held(running, &why));
    ck_assert_msg(why && strstr(why, part), "%s", why ? why : "no reason");
}

static inline struct leadership *leadership(void)
{
    return lease_leadership(running);
}

static inline uint64_t changes(enum lease_change change)
{
    return metrics_counted(COUNTER_LEASE_CHANGES, change);
}
