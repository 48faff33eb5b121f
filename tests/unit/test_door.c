/* SPDX-License-Identifier: Apache-2.0 */
/* What the door lets through: limits, the stop key, capabilities that only observe, minimum running times. */
#include "evict/door.h"

#include "base/metrics.h"
#include "evicting_api.h"
#include "kube/clock.h"
#include "store/store.h"
#include "suite.h"

static const struct evictee web = {
    .ns = (char *)"ml", .name = (char *)"web", .uid = (char *)"u1", .node = (char *)"n1"};
static struct permits *permits;
static unsigned n_wanted;
static bool wanted;
static void (*at_asking)(void); /* happens while the caller is asked; NULL: nothing */
static uint64_t term;

static uint64_t term_of(struct leadership *leadership)
{
    return term;
}

static const struct leadership_ops leader_ops = {.term = term_of};
static struct leadership leader = {&leader_ops};

static void setup(void)
{
    evicting_begin();
    n_wanted = 0;
    wanted = true;
    at_asking = NULL;
    term = 1;
}

static void teardown(void)
{
    g_clear_pointer(&permits, permits_free);
    evicting_end();
}

static bool is_wanted(void *data, GError **error)
{
    n_wanted++;
    if (at_asking)
        at_asking();
    return wanted;
}

static struct door_order order(void)
{
    return (struct door_order){.client = client,
                               .ender = ENDER_PLAN,
                               .permits = permits,
                               .ns = "ml",
                               .name = "web",
                               .uid = "u1",
                               .leadership = &leader,
                               .term = 1,
                               .is_wanted = is_wanted};
}

static enum door_answer end(char **ret_why)
{
    const struct door_order asked = order();
    GError *failure = NULL;
    const enum door_answer answer = door_end(&asked, &web, &failure);

    if (ret_why)
        *ret_why = failure ? g_strdup(failure->message) : NULL;
    g_clear_error(&failure);
    return answer;
}

static uint64_t counted(enum eviction_outcome outcome)
{
    return metrics_counted(COUNTER_EVICTIONS, ENDER_PLAN * EVICTION_OUTCOME_N + outcome);
}

static enum limit left(void)
{
    return permits_forbid(permits, ENDER_PLAN, "ml");
}

/* One a minute. */
static void allow_one(void)
{
    permits = permits_new(&(struct permits_options){.limits.of[ENDER_PLAN].per_minute = 1});
}

/* --- limits --------------------------------------------------------------------------------------- */

START_TEST(what_ends_takes_its_place)
{
    const uint64_t before = counted(EVICTION_OUTCOME_EVICTED),
                   limited = counted(EVICTION_OUTCOME_LIMITED);
    g_autofree char *why = NULL;

    allow_one();
    accept_evictions(FAKE_ALWAYS);
    ck_assert_int_eq(end(NULL), DOOR_OPEN);
    ck_assert_uint_eq(counted(EVICTION_OUTCOME_EVICTED), before + 1);
    ck_assert_int_eq(end(&why), DOOR_LATER);
    ck_assert_str_eq(why, limit_texts[LIMIT_CAPABILITY]);
    ck_assert_uint_eq(counted(EVICTION_OUTCOME_LIMITED), limited + 1);
    ck_assert_uint_eq(count_evictions(), 1);
    ck_assert_uint_eq(n_wanted, 1);
    clock_skip_ms(60000);
    ck_assert_int_eq(end(NULL), DOOR_OPEN);
}
END_TEST

static const struct {
    int status;
    const char *text;
    enum door_answer answer;
    enum eviction_outcome outcome;
    bool keeps; /* its place */
} answers[] = {
    {201, NULL, DOOR_OPEN, EVICTION_OUTCOME_EVICTED, true},
    {403, NULL, DOOR_FAILED, EVICTION_OUTCOME_FAILED, false},
    {429, SAYS_BUDGET, DOOR_LATER, EVICTION_OUTCOME_BUDGET, false},
    {500, NULL, DOOR_UNKNOWN, EVICTION_OUTCOME_UNKNOWN, true},
    {429, SAYS_MOVING, DOOR_LATER, EVICTION_OUTCOME_MOVING, true},
};

START_TEST(the_outcome_says_whether_the_place_is_kept)
{
    const uint64_t before = counted(answers[_i].outcome);

    allow_one();
    answer("/eviction ", FAKE_ALWAYS, answers[_i].status, answers[_i].text);
    ck_assert_int_eq(end(NULL), answers[_i].answer);
    ck_assert_uint_eq(counted(answers[_i].outcome), before + 1);
    ck_assert_int_eq(left(), answers[_i].keeps ? LIMIT_CAPABILITY : LIMIT_NONE);
}
END_TEST

START_TEST(a_budget_that_refuses_the_second_attempt_frees_no_place)
{
    allow_one();
    answer("/eviction ", 1, 504, NULL);
    answer("/eviction ", 1, 429, SAYS_BUDGET);
    ck_assert_int_eq(end(NULL), DOOR_LATER);
    ck_assert_int_eq(left(), LIMIT_CAPABILITY);
    clock_skip_ms(60000);
    ck_assert_int_eq(left(), LIMIT_NONE);
}
END_TEST

START_TEST(what_is_not_wanted_takes_no_place)
{
    allow_one();
    wanted = false;
    ck_assert_int_eq(end(NULL), DOOR_UNWANTED);
    ck_assert_int_eq(left(), LIMIT_NONE);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

START_TEST(a_command_has_no_limits)
{
    accept_evictions(FAKE_ALWAYS);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(end(NULL), DOOR_OPEN);
}
END_TEST

/* --- the stop key --------------------------------------------------------------------------------- */

START_TEST(nothing_ends_while_evictions_are_stopped)
{
    const uint64_t before = counted(EVICTION_OUTCOME_STOPPED);
    g_autofree char *why = NULL, *unknown = NULL;

    permits = permits_new(&(struct permits_options){.stopped = true});
    accept_evictions(FAKE_ALWAYS);
    ck_assert_int_eq(end(&unknown), DOOR_LATER);
    permits_stop(permits, "somebody says so");
    ck_assert_int_eq(end(&why), DOOR_LATER);
    ck_assert_str_eq(why, "evictions are stopped: somebody says so");
    ck_assert_uint_eq(counted(EVICTION_OUTCOME_STOPPED), before + 2);
    ck_assert_uint_eq(fake_server_count(server), 0);
    ck_assert_uint_eq(n_wanted, 0);
    permits_stop(permits, NULL);
    ck_assert_int_eq(end(NULL), DOOR_OPEN);
}
END_TEST

static void stop(void)
{
    permits_stop(permits, "somebody says so");
}

START_TEST(what_was_heard_long_ago_counts_no_more)
{
    permits = permits_new(&(struct permits_options){.stopped = true, .stale_ms = 3000});
    accept_evictions(FAKE_ALWAYS);
    permits_stop(permits, NULL);
    clock_skip_ms(3000);
    ck_assert_int_eq(end(NULL), DOOR_OPEN);
    clock_skip_ms(1);
    ck_assert_int_eq(end(NULL), DOOR_LATER);
    permits_stop(permits, NULL);
    ck_assert_int_eq(end(NULL), DOOR_OPEN);
    permits_hear(permits, NULL, clock_ms() - 3001);
    ck_assert_int_eq(end(NULL), DOOR_LATER);
}
END_TEST

/* The caller may have read a ConfigMap meanwhile. */
START_TEST(what_is_stopped_while_the_caller_is_asked_ends_nothing)
{
    const uint64_t before = counted(EVICTION_OUTCOME_STOPPED);

    allow_one();
    accept_evictions(FAKE_ALWAYS);
    at_asking = stop;
    ck_assert_int_eq(end(NULL), DOOR_LATER);
    ck_assert_uint_eq(n_wanted, 1);
    ck_assert_uint_eq(counted(EVICTION_OUTCOME_STOPPED), before + 1);
    ck_assert_uint_eq(fake_server_count(server), 0);
    ck_assert_int_eq(left(), LIMIT_NONE);
}
END_TEST

/* --- who serves ----------------------------------------------------------------------------------- */

static void lose_term(void)
{
    term = 0;
}

START_TEST(who_serves_no_more_ends_nothing)
{
    const bool meanwhile = _i == 1;

    allow_one();
    accept_evictions(FAKE_ALWAYS);
    at_asking = meanwhile ? lose_term : NULL;
    term = meanwhile ? 1 : 2;
    ck_assert_int_eq(end(NULL), DOOR_UNWANTED);
    ck_assert_uint_eq(fake_server_count(server), 0);
    ck_assert_int_eq(left(), LIMIT_NONE);
}
END_TEST

/* --- observing ------------------------------------------------------------------------------------ */

START_TEST(what_observes_ends_nothing)
{
    const uint64_t before = counted(EVICTION_OUTCOME_OBSERVED);

    permits = permits_new(&(struct permits_options){.observes[ENDER_PLAN] = true,
                                                    .limits.of[ENDER_PLAN].per_minute = 1});
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(end(NULL), DOOR_OBSERVED);
    ck_assert_uint_eq(counted(EVICTION_OUTCOME_OBSERVED), before + 3);
    ck_assert_uint_eq(fake_server_count(server), 0);
    ck_assert_int_eq(left(), LIMIT_NONE); /* of what others may */
    wanted = false;
    ck_assert_int_eq(end(NULL), DOOR_UNWANTED);
}
END_TEST

START_TEST(capabilities_are_read_by_name)
{
    bool observes[ENDER_N] = {false};
    g_autoptr(GError) failure = NULL;

    ck_assert(item_list_read(&item_list_capabilities, "plans, reclaim", observes, NULL));
    ck_assert(observes[ENDER_PLAN] && observes[ENDER_RECLAIM]);
    ck_assert(!observes[ENDER_SWITCH] && !observes[ENDER_GANG_STRICT] && !observes[ENDER_DRAIN]);
    ck_assert(!item_list_read(&item_list_capabilities, "preemption", observes, &failure));
    ck_assert_ptr_nonnull(failure);
    ck_assert(!permits_observe(NULL, ENDER_PLAN));
}
END_TEST

/* --- minimum running times ------------------------------------------------------------------------ */

static const struct {
    enum ender ender;
    const char *started; /* the clock begins at 12:00 */
    enum door_answer answer;
} runs[] = {
    {ENDER_PLAN, "2026-01-05T11:49:59Z", DOOR_OPEN},
    {ENDER_PLAN, "2026-01-05T11:50:00Z", DOOR_OPEN},
    {ENDER_PLAN, "2026-01-05T11:50:01Z", DOOR_STAYS},
    {ENDER_PLAN, NULL, DOOR_STAYS},
    {ENDER_PLAN, "soon", DOOR_STAYS},
    {ENDER_RECLAIM, "2026-01-05T11:59:00Z", DOOR_STAYS},
    {ENDER_GANG_STRICT, "2026-01-05T11:59:00Z", DOOR_OPEN},
    {ENDER_SWITCH, "2026-01-05T11:59:00Z", DOOR_OPEN},
};

START_TEST(a_pod_has_to_have_run_for_a_while)
{
    g_auto(evictee) evictee = {0};
    g_autoptr(GError) failure = NULL;
    g_autofree char *started = runs[_i].started
                                   ? g_strdup_printf(",\"startTime\":\"%s\"", runs[_i].started)
                                   : g_strdup("");

    permits = permits_new(&(struct permits_options){.min_runtime_ms = 600000});
    answer("GET /api/v1/namespaces/ml/pods/web ", 1, 200,
           keep(g_strdup_printf(
               "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"web\",\"uid\":\"u1\","
               "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"o\",\"uid\":\"o\","
               "\"controller\":true}]},\"spec\":{},\"status\":{\"phase\":\"Running\"%s}}",
               started)));
    struct door_order asked = order();
    asked.ender = runs[_i].ender;
    ck_assert_int_eq(door_look(&asked, &evictee, &failure), runs[_i].answer);
    ck_assert_int_eq(failure != NULL, runs[_i].answer == DOOR_STAYS);
}
END_TEST

/* --- what is said --------------------------------------------------------------------------------- */

struct listener {
    struct observer base;
    GString *heard;
};

static uint64_t number_of(struct observer *observer)
{
    return 1;
}

static void hear(struct observer *observer, const struct observation *observation)
{
    const struct observed_eviction *eviction = observation->eviction;

    ck_assert_int_eq(observation->what, OBSERVED_EVICTION);
    ck_assert_str_eq(observation->key, eviction->uid);
    g_string_append_printf(((struct listener *)observer)->heard, "%s %s/%s %s for %s: %s;",
                           eviction->capability, eviction->ns, eviction->name, eviction->node,
                           eviction->whom, eviction->outcome);
}

static const struct {
    enum ender ender;
    int status;
    const char *text;
    const char *event;   /* NULL: none */
    bool tried;          /* also when it is only tried */
    const char *outcome; /* that is recorded */
} told[] = {
    {ENDER_PLAN, 201, NULL, "GPUPodMoved", false, "plans ml/web n1 for ml/big: evicted;"},
    {ENDER_RECLAIM, 201, NULL, "GPUQuotaReclaimed", false,
     "reclaim ml/web n1 for ml/big: evicted;"},
    {ENDER_GANG_STRICT, 403, NULL, "GPUEvictionRefused", true,
     "gang-strict ml/web n1 for ml/big: failed;"},
    {ENDER_SWITCH, 429, SAYS_BUDGET, "GPUEvictionRefused", true,
     "calendar ml/web n1 for ml/big: budget;"},
    {ENDER_PLAN, 429, SAYS_MOVING, "GPUEvictionRefused", true,
     "plans ml/web n1 for ml/big: moving;"},
    {ENDER_PLAN, 500, NULL, NULL, false, "plans ml/web n1 for ml/big: unknown;"},
};

static unsigned count_events(const char *reason)
{
    g_autofree char *word = reason ? g_strdup_printf("\"reason\":\"%s\"", reason) : NULL;

    return count_requests("/ml/events ", word);
}

/* An Event of the pod, without a word of for whom, and a line of the record. */
START_TEST(each_answer_is_told_and_recorded)
{
    struct listener listener = {{number_of, hear}, g_string_new(NULL)};
    struct store *store = store_new(&(struct store_options){.policy = &policies[0]});
    struct door_order asked;

    allow_one();
    store_set_observer(store, &listener.base);
    asked = order();
    asked.ender = told[_i].ender;
    asked.store = store;
    asked.uid = NULL; /* any pod of that name */
    asked.note = "because";
    asked.whom = "ml/big";
    answer("/eviction ", FAKE_ALWAYS, told[_i].status, told[_i].text);
    answer("/events ", FAKE_ALWAYS, 201, NULL);
    door_try(&asked, &web, NULL);
    ck_assert_uint_eq(count_events(NULL), told[_i].tried);
    ck_assert_str_eq(listener.heard->str, "");
    clock_skip_ms(600000); /* it may be said again */
    door_end(&asked, &web, NULL);
    ck_assert_str_eq(listener.heard->str, told[_i].outcome);
    const unsigned n = told[_i].event ? 1 + told[_i].tried : 0;
    ck_assert_uint_eq(count_events(NULL), n);
    if (n > 0)
        ck_assert_uint_eq(count_events(told[_i].event), n);
    ck_assert_uint_eq(count_requests("/ml/events ", "\"uid\":\"u1\""), n);
    ck_assert_uint_eq(count_requests("/ml/events ", "ml/big"), 0);
    store_free(store);
    g_string_free(listener.heard, TRUE);
}
END_TEST

/* However often it is tried. What ends is said each time. */
START_TEST(a_refusal_is_said_once_in_ten_minutes)
{
    struct door_order asked;

    permits = permits_new(&(struct permits_options){0});
    asked = order();
    asked.note = "because";
    answer("/eviction ", 3, 403, NULL);
    answer("/eviction ", FAKE_ALWAYS, 201, NULL);
    answer("/events ", FAKE_ALWAYS, 201, NULL);
    door_end(&asked, &web, NULL);
    clock_skip_ms(599999);
    door_end(&asked, &web, NULL);
    ck_assert_uint_eq(count_events("GPUEvictionRefused"), 1);
    clock_skip_ms(1);
    door_end(&asked, &web, NULL);
    ck_assert_uint_eq(count_events("GPUEvictionRefused"), 2);
    door_end(&asked, &web, NULL);
    door_end(&asked, &web, NULL);
    ck_assert_uint_eq(count_events("GPUPodMoved"), 2);
    door_tell(&asked, DOOR_PAUSED, "for a while");
    door_tell(&asked, DOOR_PAUSED, "for a while");
    ck_assert_uint_eq(count_events("GPUEvictionsPaused"), 1);
    /* Who runs a command sees it. */
    asked.permits = NULL;
    clock_skip_ms(600000);
    door_tell(&asked, DOOR_PAUSED, "for a while");
    ck_assert_uint_eq(count_events("GPUEvictionsPaused"), 1);
}
END_TEST

/* What a tenant makes anew adds up to nothing. */
START_TEST(so_much_is_said_at_most)
{
    unsigned n = 0;

    permits = permits_new(&(struct permits_options){0});
    for (int i = 0; i < 2 * PERMITS_TOLD_MAX; i++) {
        g_autofree char *uid = g_strdup_printf("%d", i);
        n += permits_may_tell(permits, uid, "x");
    }
    ck_assert_uint_eq(n, PERMITS_TOLD_MAX);
    clock_skip_ms(600000);
    ck_assert(permits_may_tell(permits, "0", "x"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("door");
    TCase *tests = tcase_create("door");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_ends_takes_its_place);
    tcase_add_loop_test(tests, the_outcome_says_whether_the_place_is_kept, 0,
                        G_N_ELEMENTS(answers));
    tcase_add_loop_test(tests, each_answer_is_told_and_recorded, 0, G_N_ELEMENTS(told));
    tcase_add_test(tests, a_refusal_is_said_once_in_ten_minutes);
    tcase_add_test(tests, so_much_is_said_at_most);
    tcase_add_test(tests, a_budget_that_refuses_the_second_attempt_frees_no_place);
    tcase_add_test(tests, what_is_not_wanted_takes_no_place);
    tcase_add_test(tests, a_command_has_no_limits);
    tcase_add_test(tests, nothing_ends_while_evictions_are_stopped);
    tcase_add_test(tests, what_was_heard_long_ago_counts_no_more);
    tcase_add_test(tests, what_is_stopped_while_the_caller_is_asked_ends_nothing);
    tcase_add_loop_test(tests, who_serves_no_more_ends_nothing, 0, 2);
    tcase_add_test(tests, what_observes_ends_nothing);
    tcase_add_test(tests, capabilities_are_read_by_name);
    tcase_add_loop_test(tests, a_pod_has_to_have_run_for_a_while, 0, G_N_ELEMENTS(runs));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
