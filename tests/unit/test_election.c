/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election.h"

#include "suite.h"

#include <string.h>

#define SECOND INT64_C(1000)

static const struct election_options usual = {
    .identity = "me",
    .duration_ms = 15 * SECOND,
    .renew_deadline_ms = 10 * SECOND,
    .retry_ms = 2 * SECOND,
};

static struct election election;
static int64_t until_ms;

static void setup(void)
{
    election_init(&election, &usual);
    until_ms = -1;
}

static void teardown(void)
{
    election_release(&election);
}

static enum election_step next(int64_t now_ms)
{
    return election_next(&election, now_ms, true, false, &until_ms);
}

static void see(const char *version, const char *holder, int64_t now_ms)
{
    election_read(&election, &(struct lease_view){version, holder, 15}, now_ms);
}

static void write_lease(const char *version, int64_t began_ms, int64_t now_ms)
{
    election_wrote(&election, &(struct lease_view){version, "me", 15}, began_ms, now_ms);
}

static void expect_wait(int64_t now_ms, int64_t expected_ms)
{
    ck_assert_int_eq(next(now_ms), ELECTION_WAIT);
    ck_assert_int_eq(until_ms, expected_ms);
}

/* --- taking --------------------------------------------------------------------------------- */

START_TEST(looks_before_anything_else)
{
    ck_assert_int_eq(next(100), ELECTION_READ);
    election_read(&election, NULL, 110);
    ck_assert_int_eq(next(110), ELECTION_CREATE);
}
END_TEST

/* Somebody may have deleted the Lease of a holder that goes on for the rest of its term. */
START_TEST(who_never_saw_one_waits_before_he_makes_one)
{
    election.options.first_wait_ms = 15000;
    ck_assert_int_eq(next(100), ELECTION_READ);
    election_read(&election, NULL, 100);
    expect_wait(100, 600);
    for (int64_t now_ms = 600; now_ms < 15100; now_ms += 500) {
        ck_assert_int_eq(next(now_ms), ELECTION_READ);
        election_read(&election, NULL, now_ms);
    }
    ck_assert_int_eq(next(15099), ELECTION_WAIT);
    ck_assert_int_eq(next(15100), ELECTION_CREATE);
}
END_TEST

/* A Lease that appears meanwhile counts as any other. */
START_TEST(what_appears_meanwhile_is_no_ones_past)
{
    election.options.first_wait_ms = 15000;
    election_read(&election, NULL, 100);
    see("1", "", 700);
    ck_assert_int_eq(next(700), ELECTION_TAKE);
}
END_TEST

START_TEST(takes_what_nobody_holds_at_once)
{
    see("1", _i ? "" : NULL, 100);
    ck_assert_int_eq(next(100), ELECTION_TAKE);
}
END_TEST

START_TEST(takes_what_is_its_own)
{
    see("1", "me", 100);
    ck_assert_int_eq(election_until_ms(&election), 0);
    ck_assert_int_eq(next(100), ELECTION_TAKE);
}
END_TEST

START_TEST(waits_as_long_as_the_holder_asks_for)
{
    see("1", "other", 100);
    for (int64_t now_ms = 100; now_ms < 15100; now_ms += 500) {
        expect_wait(now_ms, MIN(now_ms + 500, 15100));
        if (now_ms + 500 >= 15100)
            break;
        ck_assert_int_eq(next(now_ms + 500), ELECTION_READ);
        see("1", "other", now_ms + 500);
    }
    ck_assert_int_eq(next(15100), ELECTION_TAKE);
}
END_TEST

/* Not to the next look: what is free is taken when it becomes free. */
START_TEST(wakes_for_the_end_of_the_wait)
{
    election_read(&election, &(struct lease_view){"1", "other", 1}, 100);
    ck_assert_int_eq(next(600), ELECTION_READ);
    election_read(&election, &(struct lease_view){"1", "other", 1}, 700);
    expect_wait(700, 1100);
    ck_assert_int_eq(next(1100), ELECTION_TAKE);
}
END_TEST

START_TEST(every_change_begins_the_wait_anew)
{
    see("1", "other", 100);
    see("2", "other", 15000);
    expect_wait(15100, 15500);
    ck_assert_int_eq(next(29999), ELECTION_READ);
    ck_assert_int_eq(next(30000), ELECTION_TAKE);
}
END_TEST

START_TEST(a_duration_that_makes_no_sense_is_ours)
{
    static const int64_t durations[] = {0, -5, INT64_MAX};

    election_read(&election, &(struct lease_view){"1", "other", durations[_i]}, 100);
    ck_assert_int_eq(next(15099), ELECTION_READ);
    ck_assert_int_eq(next(15100), ELECTION_TAKE);
}
END_TEST

START_TEST(takes_nothing_unless_willing)
{
    see("1", "", 100);
    ck_assert_int_eq(election_next(&election, 100, false, false, &until_ms), ELECTION_WAIT);
    ck_assert_int_eq(until_ms, 600);
    ck_assert_int_eq(election_next(&election, 600, false, false, &until_ms), ELECTION_READ);
    ck_assert_int_eq(election_next(&election, 600, true, false, &until_ms), ELECTION_TAKE);
}
END_TEST

START_TEST(a_lease_that_vanishes_is_no_less_held)
{
    see("1", "other", 100);
    election_read(&election, NULL, 5000);
    expect_wait(5000, 5500);
    ck_assert_int_eq(next(15100), ELECTION_CREATE);
}
END_TEST

START_TEST(who_loses_the_race_looks_again)
{
    see("1", "", 100);
    ck_assert_int_eq(next(100), ELECTION_TAKE);
    election_failed(&election, OUTCOME_CONFLICT, 120);
    ck_assert_int_eq(next(120), ELECTION_READ);
    see("2", "other", 130);
    expect_wait(130, 630);
}
END_TEST

START_TEST(who_is_refused_does_not_hammer)
{
    static const enum outcome outcomes[] = {OUTCOME_REFUSED, OUTCOME_UNKNOWN, OUTCOME_NOT_FOUND};

    election_read(&election, NULL, 100);
    ck_assert_int_eq(next(100), ELECTION_CREATE);
    election_failed(&election, outcomes[_i], 120);
    expect_wait(120, 620);
    ck_assert_int_eq(next(620), ELECTION_READ);
}
END_TEST

/* Edited to years, it stops nobody for longer than a minute. */
START_TEST(nobody_is_waited_for_beyond_patience)
{
    static const int64_t asked_s[] = {3600, INT32_MAX, 60, 61};
    const struct lease_view lease = {"7", "other", asked_s[_i]};

    election_read(&election, &lease, 100);
    ck_assert_int_eq(election.asked_ms, asked_s[_i] * 1000);
    for (int64_t now_ms = 600; now_ms < 100 + ELECTION_PATIENCE_MS; now_ms += 500) {
        ck_assert_int_eq(next(now_ms), ELECTION_READ);
        election_read(&election, &lease, now_ms);
    }
    ck_assert_int_ne(next(99 + ELECTION_PATIENCE_MS), ELECTION_TAKE);
    ck_assert_int_eq(next(100 + ELECTION_PATIENCE_MS), ELECTION_TAKE);
}
END_TEST

/* Who has a longer one himself grants it to others. */
START_TEST(a_long_duration_of_our_own_is_no_edit)
{
    election.options.duration_ms = 300000;
    election_read(&election, &(struct lease_view){"7", "other", 300}, 100);
    ck_assert_int_eq(election.duration_ms, 300000);
}
END_TEST

/* --- holding -------------------------------------------------------------------------------- */

static void hold(void)
{
    see("1", "", 90);
    ck_assert_int_eq(next(100), ELECTION_TAKE);
    write_lease("2", 100, 150);
}

START_TEST(a_term_counts_from_before_the_write)
{
    hold();
    ck_assert_int_eq(election_until_ms(&election), 100 + 10 * SECOND);
}
END_TEST

START_TEST(renews_when_it_is_due_or_when_there_is_something_to_write)
{
    hold();
    expect_wait(150, 2100);
    ck_assert_int_eq(election_next(&election, 150, true, true, &until_ms), ELECTION_RENEW);
    ck_assert_int_eq(next(2100), ELECTION_RENEW);
    write_lease("3", 2100, 2150);
    ck_assert_int_eq(election_until_ms(&election), 2100 + 10 * SECOND);
    expect_wait(2150, 4100);
}
END_TEST

START_TEST(a_holder_renews_willing_or_not)
{
    hold();
    ck_assert_int_eq(election_next(&election, 2100, false, false, &until_ms), ELECTION_RENEW);
}
END_TEST

START_TEST(a_failure_does_not_end_the_term)
{
    hold();
    election_failed(&election, OUTCOME_UNKNOWN, 5000);
    ck_assert_int_eq(election_until_ms(&election), 10100);
    expect_wait(5000, 5500);
    ck_assert_int_eq(next(5500), ELECTION_READ);
    see("3", "me", 5600); /* it came through, but who knows when it was sent */
    ck_assert_int_eq(election_until_ms(&election), 10100);
    ck_assert_int_eq(next(5600), ELECTION_RENEW);
}
END_TEST

START_TEST(the_deadline_ends_the_term)
{
    hold();
    election_failed(&election, OUTCOME_UNKNOWN, 9900);
    expect_wait(9900, 10100); /* sooner than the pause */
    expect_wait(10100, 10400);
    ck_assert_int_eq(election_until_ms(&election), 0);
    ck_assert_int_eq(next(10400), ELECTION_READ);
    see("2", "me", 10450);
    ck_assert_int_eq(election_until_ms(&election), 0); /* not before it has written */
    ck_assert_int_eq(next(10450), ELECTION_TAKE);
    write_lease("3", 10450, 10500);
    ck_assert_int_eq(election_until_ms(&election), 20450);
}
END_TEST

START_TEST(a_write_that_took_too_long_makes_no_holder)
{
    see("1", "", 90);
    write_lease("2", 100, 20000);
    ck_assert_int_eq(next(20000), ELECTION_TAKE);
    ck_assert_int_eq(election_until_ms(&election), 0);
}
END_TEST

START_TEST(another_holder_ends_the_term_at_once)
{
    hold();
    see("9", _i ? "other" : "", 3000);
    ck_assert_int_eq(election_until_ms(&election), 0);
}
END_TEST

START_TEST(a_deleted_lease_ends_the_term)
{
    hold();
    election_failed(&election, OUTCOME_NOT_FOUND, 3000);
    ck_assert_int_eq(next(3000), ELECTION_READ);
    election_read(&election, NULL, 3010);
    ck_assert_int_eq(election_until_ms(&election), 0);
    ck_assert_int_eq(next(3010), ELECTION_CREATE);
}
END_TEST

START_TEST(a_lease_that_is_given_back_is_nobodys)
{
    hold();
    election_resign(&election);
    election_wrote(&election, &(struct lease_view){"3", "", 1}, 3000, 3010);
    ck_assert_int_eq(election_until_ms(&election), 0);
    ck_assert_int_eq(election_next(&election, 3010, false, true, &until_ms), ELECTION_WAIT);
}
END_TEST

/* --- several candidates --------------------------------------------------------------------- */

/*
 * Candidates whose clocks differ in place and pace, who are stopped at any moment, and whose calls
 * and replies are late or lost; one Lease that is written by version. Nobody may act while another
 * one does, each judging by its own clock.
 */
#define CANDIDATES 3
#define ROUND_MS 200000

struct call {
    struct call *next; /* on the wire */
    struct candidate *candidate;
    enum election_step step;
    char version[24]; /* that is written over */
    int64_t arrives;  /* the world's clock, as all but began_ms */
};

struct candidate {
    struct election election;
    char identity[8];
    double pace;
    int64_t offset_ms;
    int64_t stopped_until;
    struct call *call; /* the last one; it may arrive after it has been given up */
    enum election_step step;
    int64_t began_ms; /* its own clock */
    int64_t ends;     /* when the call is answered or given up; 0: none is under way */
    int64_t reply_delay;
    bool arrived;
    bool refused; /* it did not take effect */
    char answer_version[24], answer_holder[8];
};

struct simulation {
    struct candidate candidates[CANDIDATES];
    struct call *wire;
    GRand *random;
    int64_t now;
    unsigned version;
    char holder[8];
    unsigned changes, acting, late;
};

static int64_t own_ms(const struct candidate *candidate, int64_t now)
{
    return candidate->offset_ms + (int64_t)((double)now * candidate->pace);
}

static bool chance(struct simulation *simulation, double probability)
{
    return g_rand_double(simulation->random) < probability;
}

static int64_t delay(struct simulation *simulation)
{
    return chance(simulation, 0.95) ? g_rand_int_range(simulation->random, 1, 40)
                                    : g_rand_int_range(simulation->random, 40, 40000);
}

static void begin_call(struct simulation *simulation, struct candidate *candidate,
                       enum election_step step)
{
    struct call *call = g_new0(struct call, 1);

    *call = (struct call){.next = simulation->wire, .candidate = candidate, .step = step};
    call->arrives = chance(simulation, 0.98) ? simulation->now + delay(simulation) : INT64_MAX;
    g_strlcpy(call->version, candidate->election.version ? candidate->election.version : "",
              sizeof call->version);
    simulation->wire = call;
    candidate->call = call;
    candidate->step = step;
    candidate->arrived = false;
    candidate->refused = false;
    candidate->began_ms = own_ms(candidate, simulation->now);
    candidate->ends = simulation->now + 3000;
    candidate->reply_delay = chance(simulation, 0.98) ? delay(simulation) : INT32_MAX;
}

static void carry_out(struct simulation *simulation, struct call *call)
{
    struct candidate *candidate = call->candidate;
    g_autofree char *current = g_strdup_printf("%u", simulation->version);
    bool refused = false;

    if (call->step != ELECTION_READ) {
        refused = strcmp(call->step == ELECTION_CREATE ? "0" : call->version, current) != 0;
        simulation->changes += !refused && strcmp(simulation->holder, candidate->identity) != 0;
        simulation->version += !refused;
        if (!refused)
            g_strlcpy(simulation->holder, candidate->identity, sizeof simulation->holder);
    }
    if (candidate->call != call) {
        simulation->late += !refused && call->step != ELECTION_READ;
        return;
    }
    candidate->arrived = simulation->now + candidate->reply_delay <= candidate->ends;
    if (candidate->arrived)
        candidate->ends = simulation->now + candidate->reply_delay;
    candidate->refused = refused;
    g_snprintf(candidate->answer_version, sizeof candidate->answer_version, "%u",
               simulation->version);
    g_strlcpy(candidate->answer_holder, simulation->holder, sizeof candidate->answer_holder);
}

static void deliver(struct simulation *simulation)
{
    struct call **link = &simulation->wire;

    while (*link) {
        struct call *call = *link;
        if (call->arrives > simulation->now) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        carry_out(simulation, call);
        if (call->candidate->call == call)
            call->candidate->call = NULL;
        g_free(call);
    }
}

static void end_call(struct simulation *simulation, struct candidate *candidate)
{
    const int64_t now_ms = own_ms(candidate, simulation->now);
    const struct lease_view answer = {candidate->answer_version, candidate->answer_holder, 15};
    struct election *own = &candidate->election;

    candidate->ends = 0;
    candidate->call = NULL;
    if (!candidate->arrived)
        election_failed(own, OUTCOME_UNKNOWN, now_ms);
    else if (candidate->refused)
        election_failed(own, OUTCOME_CONFLICT, now_ms);
    else if (candidate->step == ELECTION_READ)
        election_read(own, strcmp(answer.version, "0") != 0 ? &answer : NULL, now_ms);
    else
        election_wrote(own, &answer, candidate->began_ms, now_ms);
}

static void live(struct simulation *simulation, struct candidate *candidate)
{
    int64_t ignored_ms;

    if (candidate->stopped_until > simulation->now)
        return;
    if (chance(simulation, 0.0001))
        candidate->stopped_until =
            simulation->now + g_rand_int_range(simulation->random, 10, 30000);
    if (candidate->ends && candidate->ends <= simulation->now)
        end_call(simulation, candidate);
    if (candidate->ends)
        return;
    const enum election_step step =
        election_next(&candidate->election, own_ms(candidate, simulation->now), true,
                      chance(simulation, 0.05), &ignored_ms);
    if (step != ELECTION_WAIT)
        begin_call(simulation, candidate, step);
}

/* A candidate that is stopped counts: it acts as soon as it goes on. */
static bool acts(const struct simulation *simulation, const struct candidate *candidate)
{
    return own_ms(candidate, simulation->now) < election_until_ms(&candidate->election);
}

START_TEST(no_two_act_at_once)
{
    struct simulation simulation = {.random = g_rand_new_with_seed(1000 + (guint32)_i)};

    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *candidate = &simulation.candidates[i];
        struct election_options options = usual;

        g_snprintf(candidate->identity, sizeof candidate->identity, "c%d", i);
        options.identity = candidate->identity;
        election_init(&candidate->election, &options);
        candidate->pace = g_rand_double_range(simulation.random, 0.91, 1.09);
        candidate->offset_ms = g_rand_int_range(simulation.random, 0, 1000000);
    }
    for (simulation.now = 1; simulation.now < ROUND_MS; simulation.now++) {
        int n = 0;

        deliver(&simulation);
        for (int i = 0; i < CANDIDATES; i++)
            live(&simulation, &simulation.candidates[i]);
        for (int i = 0; i < CANDIDATES; i++)
            n += acts(&simulation, &simulation.candidates[i]);
        ck_assert_int_le(n, 1);
        simulation.acting += (unsigned)n;
    }
    /* It would be easy to be safe by never acting. */
    ck_assert_uint_gt(simulation.acting, ROUND_MS / 2);
    ck_assert_uint_gt(simulation.changes, 1);
    while (simulation.wire) {
        struct call *call = simulation.wire;
        simulation.wire = call->next;
        g_free(call);
    }
    for (int i = 0; i < CANDIDATES; i++)
        election_release(&simulation.candidates[i].election);
    g_rand_free(simulation.random);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("election");
    TCase *tcase = tcase_create("election");
    TCase *several = tcase_create("several");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, looks_before_anything_else);
    tcase_add_test(tcase, who_never_saw_one_waits_before_he_makes_one);
    tcase_add_test(tcase, what_appears_meanwhile_is_no_ones_past);
    tcase_add_loop_test(tcase, nobody_is_waited_for_beyond_patience, 0, 4);
    tcase_add_test(tcase, a_long_duration_of_our_own_is_no_edit);
    tcase_add_loop_test(tcase, takes_what_nobody_holds_at_once, 0, 2);
    tcase_add_test(tcase, takes_what_is_its_own);
    tcase_add_test(tcase, waits_as_long_as_the_holder_asks_for);
    tcase_add_test(tcase, wakes_for_the_end_of_the_wait);
    tcase_add_test(tcase, every_change_begins_the_wait_anew);
    tcase_add_loop_test(tcase, a_duration_that_makes_no_sense_is_ours, 0, 3);
    tcase_add_test(tcase, takes_nothing_unless_willing);
    tcase_add_test(tcase, a_lease_that_vanishes_is_no_less_held);
    tcase_add_test(tcase, who_loses_the_race_looks_again);
    tcase_add_loop_test(tcase, who_is_refused_does_not_hammer, 0, 3);
    tcase_add_test(tcase, a_term_counts_from_before_the_write);
    tcase_add_test(tcase, renews_when_it_is_due_or_when_there_is_something_to_write);
    tcase_add_test(tcase, a_holder_renews_willing_or_not);
    tcase_add_test(tcase, a_failure_does_not_end_the_term);
    tcase_add_test(tcase, the_deadline_ends_the_term);
    tcase_add_test(tcase, a_write_that_took_too_long_makes_no_holder);
    tcase_add_loop_test(tcase, another_holder_ends_the_term_at_once, 0, 2);
    tcase_add_test(tcase, a_deleted_lease_ends_the_term);
    tcase_add_test(tcase, a_lease_that_is_given_back_is_nobodys);
    suite_add_tcase(suite, tcase);

    tcase_set_timeout(several, 60);
    tcase_add_loop_test(several, no_two_act_at_once, 0, 10);
    suite_add_tcase(suite, several);

    return suite_run(suite);
}
