/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lease against a scripted API server. Its decisions are tested in test_election.c; here it is
 * what is sent, and when a term begins and ends.
 */
#include "scripted_lease.h"
#include "suite.h"

#include <gpuledger/error.h>

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
    ck_assert_uint_eq(leadership_term(leadership()), 1);
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
    expect_part(
        1, "\"resourceVersion\":\"1\",\"uid\":\"u-1\",\"labels\":{\"l\":\"1\"},\"annotations\":"
           "{\"a\":\"b\"}}");
    expect_part(1, "\"leaseTransitions\":5}}");
    expect_no_part(1, "2026-01-02T03:04:05.000006Z");
}
END_TEST

/* An update replaces all of it: what would be left out would be gone. */
START_TEST(writes_what_others_have_said_of_it)
{
    static const char *const parts[] = {
        ("\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"gl\","
         "\"uid\":\"u-2\"}]"),
        "\"finalizers\":[\"example.com/keep\"]", "\"strategy\":\"OldestEmulationVersion\"",
        "\"preferredHolder\":\"other\""};
    g_autofree char *body = g_strdup_printf(
        "{\"metadata\":{\"name\":\"gl\",\"resourceVersion\":\"1\",\"uid\":\"u-1\",%s,%s},"
        "\"spec\":{\"holderIdentity\":\"\",%s,%s}}",
        parts[0], parts[1], parts[2], parts[3]);

    sync_store();
    script_read(body);
    script_write(LEASE("2", "me", ""));
    start();
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        expect_part(1, parts[i]);
    teardown(); /* before what it was told goes */
    setup();
}
END_TEST

/* Somebody has edited it: one more is a number that the API server does not take. */
START_TEST(the_last_number_of_transitions_is_no_obstacle)
{
    sync_store();
    script_read("{\"metadata\":{\"name\":\"gl\",\"resourceVersion\":\"1\"},\"spec\":{"
                "\"leaseTransitions\":2147483647,\"holderIdentity\":\"\"}}");
    script_write(LEASE("2", "me", ""));
    start();
    expect_part(1, "\"leaseTransitions\":2147483647}}");
}
END_TEST

/* While it slept, another may have taken the Lease; only a write of it tells. */
START_TEST(what_slept_asks_before_it_serves)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    start();
    ck_assert(comes_true(true));
    g_atomic_int_set(&slept_ms, 5000);
    ck_assert(!is_held());
    ck_assert_uint_eq(leadership_term(leadership()), 0);
    script_write(LEASE("3", "me", ""));
    ck_assert(!leadership_publish(leadership(), 1, clock_ms() + PATIENT_MS, NULL)); /* it has the Lease renewed */
    ck_assert(comes_true(true));
    ck_assert_uint_eq(leadership_term(leadership()), 1);
    g_atomic_int_set(&slept_ms, 0);
}
END_TEST

START_TEST(a_duration_of_years_is_named)
{
    sync_store();
    script(&(struct fake_reply){
        .match = "GET " PATH "/gl ",
        .times = FAKE_ALWAYS,
        .chunks = {"{\"kind\":\"Lease\",\"metadata\":{\"name\":\"gl\",\"resourceVersion\":\"1\"},"
                   "\"spec\":{\"holderIdentity\":\"another\",\"leaseDurationSeconds\":3600}}"}});
    start();
    g_free(take_request(1));
    expect_why("last held by another, which asks for 3600 s and is given 60");
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
    ck_assert_uint_eq(leadership_term(leadership()), 0);
    ck_assert_int_eq(leadership_cut(leadership(), 1, INT64_MAX), 0);
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
    ck_assert_uint_eq(leadership_term(leadership()), 0);
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
    ck_assert_uint_eq(leadership_term(leadership()), 1); /* still the first */
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
    ck_assert_uint_eq(leadership_term(leadership()), 1);
    ck_assert_uint_eq(atomic_load(&refreshes), 1);
}
END_TEST

/* Others count from when they saw the write, which may be long before its answer came. */
START_TEST(a_term_counts_from_before_the_write)
{
    sync_store();
    script_read(FREE);
    for (int i = 0; i < 2; i++)
        script(&(struct fake_reply){
            .match = "PUT ", .delay_ms = 300, .chunks = {LEASE("2", "me", "")}});
    script(&(struct fake_reply){.times = FAKE_ALWAYS, .end = FAKE_NO_REPLY});
    start_with_deadline(50000, 40);
    for (unsigned write = 0; write < 2; write++) {
        ck_assert(fake_server_wait(server, 2 + write, PATIENT_MS));
        const int64_t asked_ms = clock_ms();
        ck_assert(fake_server_wait(server, 3 + write, PATIENT_MS)); /* it has its answer */
        ck_assert_int_gt(leadership_cut(leadership(), 1, INT64_MAX), 0);
        ck_assert_int_le(leadership_cut(leadership(), 1, INT64_MAX), asked_ms + 50000);
    }
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
    const int64_t until_ms = leadership_cut(leadership(), 1, INT64_MAX);
    ck_assert_int_gt(until_ms, 0);
    ck_assert(comes_true(false));
    ck_assert_int_ge(clock_ms(), until_ms);
    ck_assert_uint_eq(leadership_term(leadership()), 0);
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
    while (leadership_term(leadership()) < 2)
        g_usleep(1000);
    ck_assert_int_eq(leadership_cut(leadership(), 1, INT64_MAX), 0);
    ck_assert_uint_eq(atomic_load(&refreshes), 2);
}
END_TEST

/* The API server would make it anew by an update: only the UID tells it that there was one, whose next
 * holder the writer may have missed. */
START_TEST(a_lease_that_was_deleted_is_not_brought_back)
{
    sync_store();
    script_read(FREE);
    script_write(LEASE("2", "me", ""));
    script_failure("PUT ", 409, STATUS("409"));
    script_failure("GET " PATH "/gl ", 404, STATUS("404"));
    script(&(struct fake_reply){
        .match = "POST " PATH "?timeout=", .status = 201, .chunks = {LEASE("5", "me", "")}});
    script(&(struct fake_reply){
        .match = "PUT ", .times = FAKE_ALWAYS, .chunks = {LEASE("6", "me", "")}});
    start_with_deadline(5000, 40);
    expect_part(2, "\"resourceVersion\":\"2\",\"uid\":\"u-1\"");
    expect_no_part(4, "\"uid\"");
    while (leadership_term(leadership()) < 2)
        g_usleep(1000);
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

START_TEST(no_two_have_one_identity)
{
    g_autofree char *one = lease_identity("name"), *other = lease_identity("name");

    ck_assert(g_str_has_prefix(one, "name_"));
    ck_assert(g_str_has_prefix(other, "name_"));
    ck_assert_str_ne(one, other);
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
    tcase_add_test(taking, writes_what_others_have_said_of_it);
    tcase_add_test(taking, the_last_number_of_transitions_is_no_obstacle);
    tcase_add_test(taking, what_slept_asks_before_it_serves);
    tcase_add_test(taking, a_duration_of_years_is_named);
    tcase_add_test(taking, does_not_touch_what_another_holds);
    tcase_add_test(taking, takes_nothing_before_it_knows_the_cluster);
    tcase_add_test(taking, serves_only_once_the_pods_have_been_read_afresh);
    tcase_add_test(taking, a_race_that_is_lost_is_no_failure);
    tcase_add_loop_test(taking, tries_again_after_a_failure, 0, G_N_ELEMENTS(refusals));
    tcase_add_test(taking, a_name_that_leads_elsewhere_is_refused);
    tcase_add_test(taking, no_two_have_one_identity);
    suite_add_tcase(suite, taking);

    tcase_add_checked_fixture(holding, setup, teardown);
    tcase_add_test(holding, renews_in_the_version_that_it_knows);
    tcase_add_test(holding, a_renewal_whose_answer_is_lost_does_not_end_the_term);
    tcase_add_test(holding, a_term_counts_from_before_the_write);
    tcase_add_test(holding, a_term_ends_when_renewals_do_not_come_through);
    tcase_add_test(holding, after_the_end_of_a_term_the_next_one_begins_afresh);
    tcase_add_test(holding, a_lease_that_was_deleted_is_not_brought_back);
    tcase_add_test(holding, another_holder_ends_the_term);
    suite_add_tcase(suite, holding);

    return suite_run(suite);
}
