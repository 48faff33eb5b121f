/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lease against a scripted API server. Its decisions are tested in test_election.c; here it is
 * what is sent, when a term begins and ends, and what publishing waits for.
 */
#include "kube/lease.h"

#include "app/metrics.h"
#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <stdatomic.h>
#include <string.h>

#define PATH "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
#define STANDS_BY "this replica of gpuledger stands by, another one holds the Lease; try again"

static struct store *the_store;
static struct journal *bookings;
static struct lease *running;
static atomic_bool fresh;
static atomic_uint refreshes;

static uint64_t begin_refresh(void *data)
{
    return atomic_fetch_add(&refreshes, 1) + 1;
}

static bool refresh_is_done(void *data, uint64_t number)
{
    return atomic_load(&fresh) && number == atomic_load(&refreshes);
}

static void sync_store(void)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(the_store, (enum feed)feed);
        store_list_end(the_store, (enum feed)feed);
    }
}

static void setup(void)
{
    const struct store_options options = {.policy = &policies[0]};

    api_begin();
    the_store = store_new(&options);
    bookings = journal_new(the_store);
    atomic_store(&fresh, true);
    atomic_store(&refreshes, 0);
}

static void teardown(void)
{
    g_clear_pointer(&running, lease_free);
    journal_free(bookings);
    store_free(the_store);
    api_end();
}

static void start_with_deadline(int64_t renew_deadline_ms, int64_t retry_ms)
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
    };

    running = lease_start(&args, &error);
    ck_assert_msg(running, "%s", error ? error->message : "");
}

/* Nothing falls due while a test runs: what is written is written for a reason. */
static void start(void)
{
    start_with_deadline(50000, 40000);
}

#define LEASE(version, holder, annotations)                                                        \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"gl\",\"namespace\":\"ns\",\"resourceVersion\":"  \
    "\"" version "\",\"labels\":{\"l\":\"1\"},\"annotations\":{\"a\":\"b\"" annotations            \
    "}},\"spec\":{\"holderIdentity\":\"" holder                                                    \
    "\",\"leaseDurationSeconds\":60,\"acquireTime\":\"2026-01-02T03:04:05.000006Z\","              \
    "\"leaseTransitions\":4}}"
#define STATUS(code) "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"scripted\"}"
#define FREE LEASE("1", "", "")

static void script_read(const char *body)
{
    script(&(struct fake_reply){.match = "GET " PATH "/gl ", .chunks = {body}});
}

static void script_write(const char *body)
{
    script(&(struct fake_reply){.match = "PUT " PATH "/gl?timeout=", .chunks = {body}});
}

static void script_failure(const char *match, int status, const char *body)
{
    script(&(struct fake_reply){.match = match, .status = status, .chunks = {body}});
}

static char *take_request(unsigned index)
{
    ck_assert_msg(fake_server_wait(server, index + 1, PATIENT_MS), "%u requests",
                  fake_server_count(server));
    return fake_server_request(server, index);
}

static void expect_part(unsigned index, const char *part)
{
    g_autofree char *text = take_request(index);
    ck_assert_msg(strstr(text, part), "request %u: \"%s\" is not in \"%s\"", index, part, text);
}

static void expect_no_part(unsigned index, const char *part)
{
    g_autofree char *text = take_request(index);
    ck_assert_msg(!strstr(text, part), "request %u: \"%s\" is in \"%s\"", index, part, text);
}

static bool is_held(void)
{
    g_autofree char *why = NULL;
    return lease_is_held(running, &why);
}

static bool comes_true(bool expected)
{
    const int64_t until_ms = clock_ms() + PATIENT_MS;

    while (is_held() != expected && clock_ms() < until_ms)
        g_usleep(1000);
    return is_held() == expected;
}

static void expect_why(const char *part)
{
    g_autofree char *why = NULL;

    ck_assert(!lease_is_held(running, &why));
    ck_assert_msg(strstr(why, part), "%s", why);
}

static struct fence *fence(void)
{
    return lease_fence(running);
}

static uint64_t changes(enum lease_change change)
{
    return metrics_counted(COUNTER_LEASE_CHANGES, change);
}

/* --- taking --------------------------------------------------------------------------------- */

static bool is_micro_time(const char *text)
{
    return g_regex_match_simple("^\"20\\d\\d-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z\"", text,
                                0, 0);
}

START_TEST(makes_the_lease_where_there_is_none)
{
    const uint64_t before = changes(LEASE_CHANGE_TAKEN);

    sync_store();
    script_failure("GET " PATH "/gl ", 404, STATUS("404"));
    script(&(struct fake_reply){
        .match = "POST " PATH "?timeout=", .status = 201, .chunks = {LEASE("1", "me", "")}});
    start();
    ck_assert(comes_true(true));
    expect_part(1, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":"
                   "{\"name\":\"gl\",\"namespace\":\"ns\",\"annotations\":{}},\"spec\":"
                   "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":60,\"acquireTime\":\"");
    expect_part(1, "\"leaseTransitions\":0}}");
    g_autofree char *text = take_request(1);
    ck_assert(is_micro_time(strstr(text, "\"acquireTime\":") + strlen("\"acquireTime\":")));
    ck_assert(is_micro_time(strstr(text, "\"renewTime\":") + strlen("\"renewTime\":")));
    ck_assert_uint_eq(changes(LEASE_CHANGE_TAKEN), before + 1);
    ck_assert_uint_eq(fence_term(fence()), 1);
    ck_assert_uint_eq(atomic_load(&refreshes), 1);
}
END_TEST

START_TEST(takes_a_free_lease_and_keeps_what_is_not_its_own)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    start();
    ck_assert(comes_true(true));
    expect_part(1, "\"resourceVersion\":\"1\",\"labels\":{\"l\":\"1\"},\"annotations\":"
                   "{\"a\":\"b\"}}");
    expect_part(1, "\"leaseTransitions\":5}}");
    expect_no_part(1, "2026-01-02T03:04:05.000006Z");
}
END_TEST

START_TEST(does_not_touch_what_another_holds)
{
    sync_store();
    script(&(struct fake_reply){
        .match = "GET " PATH "/gl ", .times = FAKE_ALWAYS, .chunks = {LEASE("1", "another", "")}});
    start_with_deadline(400, 40);
    ck_assert(fake_server_wait(server, 4, PATIENT_MS));
    expect_why("stands by; the Lease ns/gl was last held by another");
    ck_assert_uint_eq(fence_term(fence()), 0);
    ck_assert_int_eq(fence_cut(fence(), 1, INT64_MAX), 0);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
}
END_TEST

START_TEST(takes_nothing_before_it_knows_the_cluster)
{
    script(
        &(struct fake_reply){.match = "GET " PATH "/gl ", .times = FAKE_ALWAYS, .chunks = {FREE}});
    script_write(LEASE("2", "me", ""));
    start_with_deadline(400, 40);
    ck_assert(fake_server_wait(server, 4, PATIENT_MS));
    expect_why("stands by; nobody holds the Lease ns/gl");
    sync_store();
    ck_assert(fake_server_wait(server, 5, PATIENT_MS));
}
END_TEST

START_TEST(serves_only_once_the_pods_have_been_read_afresh)
{
    sync_store();
    atomic_store(&fresh, false);
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    start();
    ck_assert(fake_server_wait(server, 2, PATIENT_MS));
    g_usleep(20000);
    expect_why("");
    ck_assert_uint_eq(fence_term(fence()), 0);
    atomic_store(&fresh, true);
    ck_assert(comes_true(true));
    ck_assert_uint_eq(atomic_load(&refreshes), 1);
}
END_TEST

START_TEST(a_race_that_is_lost_is_no_failure)
{
    sync_store();
    script_read(FREE);
    script_failure("PUT ", 409, STATUS("409"));
    script(&(struct fake_reply){
        .match = "GET " PATH "/gl ", .times = FAKE_ALWAYS, .chunks = {LEASE("2", "another", "")}});
    start();
    ck_assert(fake_server_wait(server, 3, PATIENT_MS));
    expect_why("");
    ck_assert_uint_eq(atomic_load(&refreshes), 0);
}
END_TEST

static const struct refusal {
    const char *match;
    int status;
    enum outcome outcome;
} refusals[] = {
    {"GET ", 403, OUTCOME_REFUSED},
    {"PUT ", 403, OUTCOME_REFUSED},
    {"PUT ", 500, OUTCOME_UNKNOWN},
    {"PUT ", 200, OUTCOME_OK}, /* and a body that is no Lease */
};

START_TEST(tries_again_after_a_failure)
{
    const struct refusal *row = &refusals[_i];
    const uint64_t before =
        row->outcome ? metrics_counted(COUNTER_LEASE_FAILURES, row->outcome) : 0;

    sync_store();
    script_failure(row->match, row->status, STATUS("403"));
    script(
        &(struct fake_reply){.match = "GET " PATH "/gl ", .times = FAKE_ALWAYS, .chunks = {FREE}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("2", "me", "")}});
    start_with_deadline(5000, 40);
    ck_assert(comes_true(true));
    if (row->outcome)
        ck_assert_uint_gt(metrics_counted(COUNTER_LEASE_FAILURES, row->outcome), before);
}
END_TEST

START_TEST(a_name_that_leads_elsewhere_is_refused)
{
    g_autoptr(GError) error = NULL;
    const struct lease_args args = {.client = client, .ns = "ns", .name = "../pods"};

    ck_assert_ptr_null(lease_start(&args, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID));
}
END_TEST

/* --- holding -------------------------------------------------------------------------------- */

static void take_it_for(int64_t renew_deadline_ms)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    start_with_deadline(renew_deadline_ms, renew_deadline_ms * 4 / 5);
    ck_assert(comes_true(true));
}

static void take_it(void)
{
    take_it_for(50000);
}

START_TEST(renews_in_the_version_that_it_knows)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script_write(LEASE("3", "me", ""));
    script_write(LEASE("4", "me", ""));
    start_with_deadline(5000, 40);
    expect_part(2, "\"resourceVersion\":\"2\"");
    expect_part(2, "\"acquireTime\":\"2026-01-02T03:04:05.000006Z\"");
    expect_part(2, "\"leaseTransitions\":4");
    expect_part(3, "\"resourceVersion\":\"3\"");
    ck_assert_uint_eq(fence_term(fence()), 1); /* still the first */
}
END_TEST

START_TEST(a_renewal_whose_answer_is_lost_does_not_end_the_term)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script(&(struct fake_reply){.match = "PUT ", .end = FAKE_CUT, .chunks = {"{"}});
    script_read(LEASE("3", "me", ""));
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("4", "me", "")}});
    start_with_deadline(5000, 40);
    expect_part(4, "\"resourceVersion\":\"3\"");
    ck_assert_uint_eq(fence_term(fence()), 1);
    ck_assert_uint_eq(atomic_load(&refreshes), 1);
}
END_TEST

START_TEST(a_term_ends_when_renewals_do_not_come_through)
{
    const uint64_t before = changes(LEASE_CHANGE_LOST);

    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script(&(struct fake_reply){.times = FAKE_ALWAYS, .end = FAKE_NO_REPLY});
    start_with_deadline(300, 40);
    ck_assert(comes_true(true));
    const int64_t until_ms = fence_cut(fence(), 1, INT64_MAX);
    ck_assert_int_gt(until_ms, 0);
    ck_assert(comes_true(false));
    ck_assert_int_ge(clock_ms(), until_ms);
    ck_assert_uint_eq(fence_term(fence()), 0);
    while (changes(LEASE_CHANGE_LOST) == before)
        g_usleep(1000);
}
END_TEST

/* What happened to the Lease meanwhile is not known, so all of it is done again. */
START_TEST(after_the_end_of_a_term_the_next_one_begins_afresh)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script(&(struct fake_reply){.match = "PUT ", .end = FAKE_HANG});
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("2", "me", "")}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("3", "me", "")}});
    start_with_deadline(300, 200);
    while (fence_term(fence()) < 2)
        g_usleep(1000);
    ck_assert_int_eq(fence_cut(fence(), 1, INT64_MAX), 0);
    ck_assert_uint_eq(atomic_load(&refreshes), 2);
}
END_TEST

START_TEST(another_holder_ends_the_term)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script_failure("PUT ", 409, STATUS("409"));
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("3", "another", "")}});
    start_with_deadline(5000, 40);
    ck_assert(fake_server_wait(server, 4, PATIENT_MS));
    ck_assert(comes_true(false));
}
END_TEST

/* --- publishing ----------------------------------------------------------------------------- */

static void book(const char *uid)
{
    struct allocation *booking = allocation_new(uid, "ml", "p", 1);

    booking->dialect = dialects[0];
    booking->state = ALLOCATION_RESERVED;
    booking = ledger_put(store_lock(the_store), "n", booking);
    ck_assert(journal_add(bookings, booking));
    store_unlock(the_store);
}

static bool publish(GError **error)
{
    return fence_publish(fence(), fence_term(fence()), clock_ms() + PATIENT_MS, error);
}

START_TEST(what_is_published_has_been_written)
{
    take_it();
    script_write(LEASE("3", "me", ""));
    book("uid-1");
    ck_assert(publish(NULL));
    ck_assert_uint_eq(fake_server_count(server), 3);
    expect_part(2, "\"resourceVersion\":\"2\"");
    expect_part(2, "\"gpuledger.io/bookings\":\"{\\\"bookings\\\":[{\\\"uid\\\":\\\"uid-1\\\"");
    expect_part(2, "\"a\":\"b\"");
}
END_TEST

static void *publish_in_thread(void *data)
{
    return GINT_TO_POINTER(publish(NULL));
}

/* While one write is under way, all that come meanwhile wait for the next. */
START_TEST(publications_share_writes)
{
    pthread_t threads[16];

    take_it();
    script(
        &(struct fake_reply){.match = "PUT ", .delay_ms = 150, .chunks = {LEASE("3", "me", "")}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("4", "me", "")}});
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, publish_in_thread, NULL), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        void *published;
        pthread_join(threads[i], &published);
        ck_assert(GPOINTER_TO_INT(published));
    }
    ck_assert_uint_le(fake_server_count(server), 2 + 5);
}
END_TEST

START_TEST(who_publishes_when_the_lease_is_lost_is_told)
{
    g_autoptr(GError) error = NULL;

    take_it();
    script_failure("PUT ", 409, STATUS("409"));
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("3", "another", "")}});
    ck_assert(!publish(&error));
    ck_assert_str_eq(error->message, STANDS_BY);
    ck_assert(!is_held());
}
END_TEST

START_TEST(publishing_ends_at_its_deadline)
{
    g_autoptr(GError) error = NULL;

    take_it_for(3000); /* or it takes long to stop */
    script(&(struct fake_reply){.match = "PUT ", .end = FAKE_HANG});
    ck_assert(!fence_publish(fence(), 1, clock_ms() + 50, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
    ck_assert_str_ne(error->message, STANDS_BY);
}
END_TEST

START_TEST(publishing_is_for_the_present_term)
{
    g_autoptr(GError) error = NULL;

    take_it();
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("3", "me", "")}});
    ck_assert(!fence_publish(fence(), 2, clock_ms() + PATIENT_MS, &error));
    ck_assert_str_eq(error->message, STANDS_BY);
}
END_TEST

/* --- handing over --------------------------------------------------------------------------- */

#define BOOKED                                                                                     \
    ",\"gpuledger.io/bookings\":\"{\\\"bookings\\\":[{\\\"uid\\\":\\\"uid-9\\\","                  \
    "\\\"namespace\\\":\\\"ml\\\",\\\"name\\\":\\\"p\\\",\\\"node\\\":\\\"n\\\","                  \
    "\\\"dialect\\\":\\\"gpushare\\\",\\\"amount\\\":6,\\\"time\\\":\\\"5\\\",\\\"shares\\\":["    \
    "{\\\"memory\\\":6,\\\"units\\\":true,\\\"card\\\":0}]}]}\""

START_TEST(keeps_what_the_former_holder_has_left_open)
{
    sync_store();
    script_read(LEASE("1", "", BOOKED));
    script_write(LEASE("2", "me", ""));
    start();
    ck_assert(comes_true(true));
    expect_part(1, "uid-9"); /* in the write that takes it, for the one after us */
    const struct allocation *kept = ledger_get(store_lock(the_store), "uid-9");
    ck_assert(kept && kept->state == ALLOCATION_UNKNOWN);
    store_unlock(the_store);
}
END_TEST

START_TEST(a_lease_that_was_deleted_comes_back_with_its_journal)
{
    sync_store();
    script_read(LEASE("1", "", BOOKED));
    script_failure("PUT ", 404, STATUS("404"));
    script_failure("GET ", 404, STATUS("404"));
    script(&(struct fake_reply){
        .match = "POST " PATH "?", .status = 201, .chunks = {LEASE("2", "me", "")}});
    start();
    ck_assert(comes_true(true));
    expect_part(3, "uid-9");
    expect_no_part(3, "resourceVersion");
}
END_TEST

START_TEST(gives_the_lease_back_with_its_journal)
{
    const uint64_t before = changes(LEASE_CHANGE_RELEASED);

    take_it();
    script_write(LEASE("3", "", ""));
    book("uid-1");
    lease_stop(running);
    ck_assert_uint_eq(fake_server_count(server), 3);
    expect_part(2, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,");
    expect_part(2, "\"resourceVersion\":\"2\"");
    expect_part(2, "uid-1");
    ck_assert_uint_eq(changes(LEASE_CHANGE_RELEASED), before + 1);
    ck_assert_uint_eq(fence_term(fence()), 0);
    expect_why("");
}
END_TEST

START_TEST(who_does_not_hold_it_gives_nothing_back)
{
    sync_store();
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("1", "another", "")}});
    start();
    ck_assert(fake_server_wait(server, 1, PATIENT_MS));
    lease_stop(running);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
}
END_TEST

static void *stop_in_thread(void *data)
{
    lease_stop(running);
    return NULL;
}

START_TEST(who_publishes_when_it_is_given_back_is_told)
{
    g_autoptr(GError) error = NULL;
    pthread_t stopper;

    take_it();
    script(&(struct fake_reply){
        .match = "PUT ", .delay_ms = 100, .end = FAKE_NO_REPLY, .times = FAKE_ALWAYS});
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("2", "me", "")}});
    ck_assert_int_eq(pthread_create(&stopper, NULL, stop_in_thread, NULL), 0);
    ck_assert(!publish(&error));
    ck_assert_str_eq(error->message, STANDS_BY);
    pthread_join(stopper, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lease");
    TCase *taking = tcase_create("taking");
    TCase *holding = tcase_create("holding");

    tcase_set_timeout(taking, 60);
    tcase_set_timeout(holding, 60);
    tcase_add_checked_fixture(taking, setup, teardown);
    tcase_add_test(taking, makes_the_lease_where_there_is_none);
    tcase_add_test(taking, takes_a_free_lease_and_keeps_what_is_not_its_own);
    tcase_add_test(taking, does_not_touch_what_another_holds);
    tcase_add_test(taking, takes_nothing_before_it_knows_the_cluster);
    tcase_add_test(taking, serves_only_once_the_pods_have_been_read_afresh);
    tcase_add_test(taking, a_race_that_is_lost_is_no_failure);
    tcase_add_loop_test(taking, tries_again_after_a_failure, 0, G_N_ELEMENTS(refusals));
    tcase_add_test(taking, a_name_that_leads_elsewhere_is_refused);
    suite_add_tcase(suite, taking);

    tcase_add_checked_fixture(holding, setup, teardown);
    tcase_add_test(holding, renews_in_the_version_that_it_knows);
    tcase_add_test(holding, a_renewal_whose_answer_is_lost_does_not_end_the_term);
    tcase_add_test(holding, a_term_ends_when_renewals_do_not_come_through);
    tcase_add_test(holding, after_the_end_of_a_term_the_next_one_begins_afresh);
    tcase_add_test(holding, another_holder_ends_the_term);
    tcase_add_test(holding, what_is_published_has_been_written);
    tcase_add_test(holding, publications_share_writes);
    tcase_add_test(holding, who_publishes_when_the_lease_is_lost_is_told);
    tcase_add_test(holding, publishing_ends_at_its_deadline);
    tcase_add_test(holding, publishing_is_for_the_present_term);
    tcase_add_test(holding, keeps_what_the_former_holder_has_left_open);
    tcase_add_test(holding, a_lease_that_was_deleted_comes_back_with_its_journal);
    tcase_add_test(holding, gives_the_lease_back_with_its_journal);
    tcase_add_test(holding, who_does_not_hold_it_gives_nothing_back);
    tcase_add_test(holding, who_publishes_when_it_is_given_back_is_told);
    suite_add_tcase(suite, holding);

    return suite_run(suite);
}
