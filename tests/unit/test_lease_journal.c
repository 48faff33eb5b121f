/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a holder publishes with the Lease, what it finds in it, and what it leaves: when a write is
 * waited for, and which journal it has.
 */
#include "scripted_lease.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <pthread.h>

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

static void book(const char *uid)
{
    struct allocation *booking = allocation_new(uid, "ml", "p", 1);

    booking->dialect = dialects[0];
    booking->state = ALLOCATION_ASSUMED;
    booking = ledger_put(store_lock(the_store), "n", booking);
    ck_assert(journal_add(bookings, booking));
    store_unlock(the_store);
}

static bool publish(GError **error)
{
    return leadership_publish(leadership(), leadership_term(leadership()), clock_ms() + PATIENT_MS, error);
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

/* While one write is under way, all that come meanwhile wait for the next: 16 that do not wait to see it,
 * so that they have come for sure, and threads that do, which may each be late. */
START_TEST(publications_share_writes)
{
    pthread_t threads[4];
    uint64_t term;

    take_it();
    script(&(struct fake_reply){.match = "PUT ", .held = true, .chunks = {LEASE("3", "me", "")}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("4", "me", "")}});
    term = leadership_term(leadership());
    for (int i = 0; i < 16; i++)
        ck_assert(!leadership_publish(leadership(), term, clock_ms(), NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, publish_in_thread, NULL), 0);
    fake_server_release(server);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        void *published;
        pthread_join(threads[i], &published);
        ck_assert(GPOINTER_TO_INT(published));
    }
    ck_assert_uint_le(fake_server_count(server), 2 + 2 + G_N_ELEMENTS(threads));
}
END_TEST

/* Or after a takeover nobody knows of the booking, and its card is given again. The delay leaves time to
 * publish during the first write; a slow machine only makes the two follow each other. */
START_TEST(a_write_under_way_acknowledges_no_later_booking)
{
    pthread_t thread;
    void *published;

    take_it();
    script(
        &(struct fake_reply){.match = "PUT ", .delay_ms = 300, .chunks = {LEASE("3", "me", "")}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("4", "me", "")}});
    book("uid-1");
    ck_assert_int_eq(pthread_create(&thread, NULL, publish_in_thread, NULL), 0);
    expect_part(2, "uid-1"); /* it is under way */
    expect_no_part(2, "uid-2");
    book("uid-2");
    ck_assert(publish(NULL));
    ck_assert_uint_ge(fake_server_count(server), 4);
    expect_part(3, "uid-2");
    pthread_join(thread, &published);
    ck_assert(GPOINTER_TO_INT(published));
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
    ck_assert(!leadership_publish(leadership(), 1, clock_ms() + 50, &error));
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
    ck_assert(!leadership_publish(leadership(), 2, clock_ms() + PATIENT_MS, &error));
    ck_assert_str_eq(error->message, STANDS_BY);
}
END_TEST

/* The others did not sleep: whoever holds the Lease by now may not have seen the booking. */
START_TEST(what_was_written_before_the_machine_slept_is_not_published)
{
    pthread_t publisher;
    void *published;

    take_it();
    script(&(struct fake_reply){.match = "PUT ", .held = true, .chunks = {LEASE("3", "me", "")}});
    ck_assert_int_eq(pthread_create(&publisher, NULL, publish_in_thread, NULL), 0);
    ck_assert(fake_server_wait(server, 3, PATIENT_MS));
    g_atomic_int_add(&slept_ms, 5000);
    fake_server_release(server);
    pthread_join(publisher, &published);
    ck_assert(!GPOINTER_TO_INT(published));
}
END_TEST

static atomic_bool waiting;

static void *wait_in_thread(void *data)
{
    store_lock(the_store);
    atomic_store(&waiting, true);
    const bool woken = store_wait(the_store, "n", "uid-1", clock_ms() + PATIENT_MS);
    store_unlock(the_store);
    return GINT_TO_POINTER(woken);
}

START_TEST(binds_that_wait_look_up_when_the_lease_is_lost)
{
    pthread_t waiter;
    void *woken;

    take_it();
    atomic_store(&waiting, false);
    ck_assert_int_eq(pthread_create(&waiter, NULL, wait_in_thread, NULL), 0);
    while (!atomic_load(&waiting))
        g_usleep(1000);
    store_lock(the_store); /* so it waits by now */
    store_unlock(the_store);
    script_failure("PUT ", 409, STATUS("409"));
    script(&(struct fake_reply){
        .match = "GET ", .times = FAKE_ALWAYS, .chunks = {LEASE("3", "another", "")}});
    ck_assert(!publish(NULL));
    pthread_join(waiter, &woken);
    ck_assert(GPOINTER_TO_INT(woken));
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
    ck_assert_uint_eq(leadership_term(leadership()), 0);
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
    Suite *suite = suite_create("lease_journal");
    TCase *journal = tcase_create("journal");

    tcase_set_timeout(journal, 60);
    tcase_add_checked_fixture(journal, setup, teardown);
    tcase_add_test(journal, what_is_published_has_been_written);
    tcase_add_test(journal, publications_share_writes);
    tcase_add_test(journal, a_write_under_way_acknowledges_no_later_booking);
    tcase_add_test(journal, who_publishes_when_the_lease_is_lost_is_told);
    tcase_add_test(journal, publishing_ends_at_its_deadline);
    tcase_add_test(journal, publishing_is_for_the_present_term);
    tcase_add_test(journal, what_was_written_before_the_machine_slept_is_not_published);
    tcase_add_test(journal, binds_that_wait_look_up_when_the_lease_is_lost);
    tcase_add_test(journal, keeps_what_the_former_holder_has_left_open);
    tcase_add_test(journal, a_lease_that_was_deleted_comes_back_with_its_journal);
    tcase_add_test(journal, gives_the_lease_back_with_its_journal);
    tcase_add_test(journal, who_does_not_hold_it_gives_nothing_back);
    tcase_add_test(journal, who_publishes_when_it_is_given_back_is_told);
    suite_add_tcase(suite, journal);

    return suite_run(suite);
}
