/* SPDX-License-Identifier: Apache-2.0 */
/* A plan step by step: what is kept and told, what each step needs, what stops it. */
#include "maintain/executor.h"

#include "evicting_api.h"
#include "suite.h"
#include "verbs/leadership.h"

#include <gpuledger/dialect.h>

#define LOOKS_MAX 4

/* --- a plan --------------------------------------------------------------------------------------- */

static struct keeping *kept;
static struct executor executor;
static struct moves hour;
static GString *told; /* what happens, a line each */
static const char
    *plans[LOOKS_MAX + 1];      /* steps that are left, "a b", at each look; NULL: it cannot look */
static const char *why_not;     /* the goal of the last look is not reached */
static const char *node_of_big; /* where the pod to admit will be */
static int n_looks;
static int refuses_step, refuses_wish; /* which of these questions is answered with no; 0: none */
static int n_steps, n_wishes;
static bool paused, stalled, refuses_note;
static guint moved;

static struct kept_room *room_of(const char *uid, const char *group)
{
    struct kept_room *room = kept_room_new();

    *room = (struct kept_room){.uid = g_strdup(uid),
                               .group = g_strdup(group),
                               .ns = g_strdup("ml"),
                               .held = allocation_new(uid, "ml", uid, 0)};
    room->held->dialect = dialects[0];
    return room;
}

/* Each pod leaves n1 for n2, "x…" just ends; those that begin with "l" leave room for nobody. Those with a capital
 * letter have no controller. */
static struct relocation *plan_of(const char *pods)
{
    struct relocation *plan = relocation_new();
    g_auto(GStrv) names = g_strsplit(pods, " ", -1);

    plan->goal = g_strdup("room for ml/big");
    plan->reached = why_not == NULL;
    plan->why = g_strdup(why_not);
    for (char **name = names; *name && **name; name++) {
        const bool ends = **name == 'x', owned = !g_ascii_isupper(**name);
        const struct relocation_step step = {
            .ns = g_strdup("ml"),
            .name = g_strdup(*name),
            .uid = g_strconcat("uid-", *name, NULL),
            .from = g_strdup("n1"),
            .to = ends ? NULL : g_strdup("n2"),
            .owner = owned ? g_strdup_printf("own-%c", **name) : NULL,
            .room = ends ? NULL : room_of("successor", NULL),
            .left = **name == 'l' ? room_of("left by it", NULL) : NULL,
        };
        g_array_append_val(plan->steps, step);
    }
    plan->node = g_strdup(node_of_big);
    plan->room = room_of("big", NULL);
    return plan;
}

static bool refuse(GError **error, const char *text)
{
    g_set_error(error, g_quark_from_static_string("test"), 0, "%s", text);
    return false;
}

static struct relocation *look(void *data, GError **error)
{
    const char *pods = n_looks < LOOKS_MAX ? plans[n_looks] : NULL;

    n_looks++;
    if (pods)
        return plan_of(pods);
    refuse(error, "nobody can look");
    return NULL;
}

static bool may_go_on(void *data, const struct relocation *plan, GError **error)
{
    n_steps++;
    return n_steps != refuses_step || refuse(error, "a finding");
}

static bool is_wanted(void *data, GError **error)
{
    n_wishes++;
    return n_wishes != refuses_wish || refuse(error, "nobody wants it");
}

static bool note(void *data, const struct executor_news *news, GError **error)
{
    static const char *const names[] = {"STEP", "MOVED", "FAILED", "GONE"};

    g_string_append_printf(told, "%s %s of %u Ready, after %u evictions%s%s\n", names[news->event],
                           news->step->name, news->n_ready, count_evictions(),
                           news->why ? ": " : "", news->why ? news->why : "");
    return !refuses_note || refuse(error, "it cannot be noted down");
}

static void tell(void *data, const char *text)
{
    g_string_append_printf(told, "%s\n", text);
}

static char *lost, *lost_ns;
static bool in_vain;

static void note_lost(void *data, const char *ns, const char *owner)
{
    lost = g_strdup(owner);
    lost_ns = g_strdup(ns);
}

static void setup(void)
{
    evicting_begin();
    told = g_string_new(NULL);
    memset(plans, 0, sizeof plans);
    why_not = NULL;
    node_of_big = "n3";
    n_looks = n_steps = n_wishes = refuses_step = refuses_wish = 0;
    paused = stalled = refuses_note = in_vain = false;
    g_clear_pointer(&lost, g_free);
    g_clear_pointer(&lost_ns, g_free);
    hour = (struct moves){client, "gpu"};
    kept = keeping_new(
        &(struct keeping_options){.client = client, .by = "plan", .tell = tell, .data = NULL});
    executor = (struct executor){.client = client,
                                 .keeping = kept,
                                 .moves = &hour,
                                 .timeout_ms = 120000,
                                 .paused = &paused,
                                 .stalled = &stalled,
                                 .in_vain = &in_vain,
                                 .note_lost = note_lost,
                                 .look = look,
                                 .may_go_on = may_go_on,
                                 .is_wanted = is_wanted,
                                 .note = note,
                                 .tell = tell};
    for (int i = 1; i <= 3; i++) {
        answer(keep(g_strdup_printf("GET /api/v1/nodes/n%d ", i)), FAKE_ALWAYS, 200,
               keep(g_strdup_printf("{\"metadata\":{\"name\":\"n%d\",\"resourceVersion\":\"1\","
                                    "\"annotations\":{\"gpuledger.io/plan\":\"{}\"}}}",
                                    i)));
    }
    answer("PATCH /api/v1/nodes/", FAKE_ALWAYS, 200, NULL);
}

static void teardown(void)
{
    keeping_free(kept);
    g_clear_pointer(&lost, g_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    evicting_end();
    g_string_free(told, TRUE);
}

/* The pod ends as soon as it is evicted, and its successor is Ready at once, as one before it was. */
static void show_step(const char *name)
{
    const struct api_pod pod = {
        .name = name, .owner = keep(g_strconcat("own-", name, NULL)), .node = "n1", .ready = true};

    show_pod(2, pod);
    hide_pod(1, name);
}

static void show_all(void)
{
    show_step("a");
    show_step("b");
    show_step("b2");
    show_step("l");
    show_step("x");
    answer("GET /api/v1/namespaces/ml/pods ", FAKE_ALWAYS, 200,
           keep(g_strdup_printf(
               "{\"items\":[%s,%s,%s]}",
               pod_text((struct api_pod){.name = "a-2", .owner = "own-a", .ready = true}),
               pod_text((struct api_pod){.name = "b-2", .owner = "own-b", .ready = true}),
               pod_text((struct api_pod){.name = "l-2", .owner = "own-l", .ready = true}))));
    accept_evictions(FAKE_ALWAYS);
    answer("/events ", FAKE_ALWAYS, 201, NULL);
}

static bool run(const char *pods, GError **error)
{
    g_autoptr(relocation) plan = plan_of(pods);

    return executor_run(&executor, &plan, &moved, error);
}

/* NULL: it succeeds. */
static void expect_run(const char *pods, const char *error)
{
    g_autoptr(GError) failure = NULL;
    const bool ok = run(pods, &failure);

    ck_assert_msg(ok == (error == NULL), "%s", failure ? failure->message : "it succeeded");
    if (error)
        ck_assert_msg(strstr(failure->message, error), "'%s', not '%s'", failure->message, error);
}

static unsigned n_marks(const char *node, const char *text)
{
    g_autofree char *line = g_strdup_printf("PATCH /api/v1/nodes/%s ", node);

    return count_requests(line, text);
}

/* --- steps ---------------------------------------------------------------------------------------- */

START_TEST(each_step_is_told_before_and_after)
{
    show_all();
    plans[0] = "b";
    plans[1] = "";
    expect_run("a b", NULL);
    ck_assert_uint_eq(moved, 2);
    ck_assert_str_eq(told->str, "STEP a of 1 Ready, after 0 evictions\n"
                                "ml/a: evicted, and its successor is Ready\n"
                                "MOVED a of 1 Ready, after 1 evictions\n"
                                "STEP b of 1 Ready, after 1 evictions\n"
                                "ml/b: evicted, and its successor is Ready\n"
                                "MOVED b of 1 Ready, after 2 evictions\n");
    ck_assert_uint_eq(count_requests("/default/events ", "\"reason\":\"GPUPlanMoved\""), 2);
    ck_assert_int_eq(n_steps, 3); /* before each step, and after the last */
    ck_assert(!paused && !stalled);
}
END_TEST

/* For the pod to admit, and for the successor; n1 is only told. */
START_TEST(room_is_kept_before_anybody_ends)
{
    show_all();
    refuses_note = true;
    expect_run("a b", "it cannot be noted down");
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert_uint_eq(moved, 0);
    ck_assert_uint_eq(n_marks("n1", "move 1 of 2, ml/a leaves n1 (since 2026-01-05T12:00:00Z)"), 1);
    ck_assert_uint_eq(n_marks("n1", "\\\"id\\\""), 0);
    ck_assert_uint_eq(n_marks("n2", "\\\"id\\\":\\\"successor\\\""), 1);
    ck_assert_uint_eq(n_marks("n3", "\\\"id\\\":\\\"big\\\""), 1);
}
END_TEST

/* Another plan is at work on the node where the room would be. */
START_TEST(where_room_cannot_be_kept_nobody_ends)
{
    show_all();
    answer("GET /api/v1/nodes/n4 ", FAKE_ALWAYS, 200,
           "{\"metadata\":{\"name\":\"n4\",\"resourceVersion\":\"1\",\"annotations\":{"
           "\"gpuledger.io/plan\":\"{\\\"doing\\\":\\\"other things\\\",\\\"by\\\":\\\"other\\\","
           "\\\"until\\\":\\\"2026-01-05T12:01:00Z\\\",\\\"rooms\\\":[]}\"}}}");
    node_of_big = "n4";
    expect_run("a", "another plan is at work on node 'n4'");
    ck_assert_str_eq(told->str, "");
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
}
END_TEST

/* The last place of a pod that just ends is nobody's; it has no successor. */
START_TEST(a_pod_that_just_ends_has_no_successor)
{
    show_all();
    plans[0] = "";
    expect_run("x", NULL);
    ck_assert_ptr_nonnull(strstr(told->str, "ml/x: evicted\n"));
    ck_assert_uint_eq(n_marks("n1", "ml/x ends on n1"), 1);
    ck_assert_uint_eq(n_marks("n2", NULL), 0);
    ck_assert_uint_eq(count_requests("/ml/events ", "was not asked"), 1);
    ck_assert_uint_eq(count_requests("/default/events ", "a plan has ended ml/x"), 1);
}
END_TEST

/* What is kept so that nobody comes back is given back when the pod has gone. */
START_TEST(what_a_pod_leaves_is_kept_until_it_has_gone)
{
    show_all();
    plans[0] = "";
    expect_run("l", NULL);
    ck_assert_uint_eq(n_marks("n1", "\\\"id\\\":\\\"left by it\\\""), 1);
    ck_assert_uint_ge(n_marks("n1", "\"gpuledger.io/plan\":null"), 1);
}
END_TEST

/* Another one may have its name by now. */
START_TEST(who_has_gone_by_itself_is_no_move)
{
    if (_i == 0)
        hide_pod(FAKE_ALWAYS, "a");
    else
        show_pod(FAKE_ALWAYS, (struct api_pod){.name = "a", .uid = "another", .owner = "own-a"});
    show_all();
    plans[0] = "b"; /* as many as before, which does not matter then */
    plans[1] = "";
    expect_run("a", NULL);
    ck_assert_uint_eq(moved, 1);
    ck_assert(strstr(told->str, "GONE a of 1 Ready, after 0 evictions\nSTEP b"));
    ck_assert_uint_eq(count_requests("/default/events ", NULL), 1); /* of "b" */
}
END_TEST

static const struct {
    struct api_pod pod;
    int status; /* of its eviction */
    bool force;
    const char *text, *error;
    bool lost; /* others may move */
} failures[] = {
    {{.name = "a", .owner = "own-a"}, 403, false, NULL, "stopped: ml/a: "},
    /* Its author has had second thoughts. */
    {{.name = "a", .owner = "own-a", .annotations = "{\"karpenter.sh/do-not-disrupt\":\"true\"}"},
     201,
     false,
     NULL,
     "ml/a stays: one of its annotations says so",
     true},
    {{.name = "a", .owner = "own-a"}, 409, false, NULL, "stopped: ml/a: "},
    {{.name = "a", .owner = "own-a"}, 500, false, NULL, "stopped: ml/a: "},
    {{.name = "a", .owner = "own-a"},
     500,
     false,
     SAYS_BUDGETS,
     "more than one PodDisruptionBudget"},
    {{.name = "a", .owner = "own-a", .kind = "DaemonSet"},
     201,
     true,
     NULL,
     "ml/a stays: its Dae",
     true},
    {{.name = "a"}, 201, false, NULL, "ml/a stays: nobody makes it again", true},
    {{.name = "a", .annotations = "{\"kubernetes.io/config.mirror\":\"x\"}"},
     201,
     true,
     NULL,
     "ml/a stays: it is kubelet's own",
     true},
};

START_TEST(a_step_that_fails_ends_it)
{
    show_pod(FAKE_ALWAYS, failures[_i].pod);
    show_ready(FAKE_ALWAYS, "own-a", 1);
    answer("/eviction ", FAKE_ALWAYS, failures[_i].status, failures[_i].text);
    answer("/events ", FAKE_ALWAYS, 201, NULL);
    executor.force = failures[_i].force;
    expect_run("a b", failures[_i].error);
    ck_assert_uint_eq(moved, 0);
    ck_assert_ptr_nonnull(strstr(told->str, "FAILED a of 1 Ready, after 0 evictions: "));
    ck_assert_uint_eq(count_evictions(), 0);
    ck_assert_uint_eq(count_requests("/default/events ", "\"reason\":\"GPUPlanStopped\""), 1);
    ck_assert(!paused && !stalled);
    ck_assert_str_eq(lost ? lost : "", failures[_i].lost ? "own-a" : "");
    ck_assert_str_eq(lost_ns ? lost_ns : "", failures[_i].lost ? "ml" : "");
}
END_TEST

/* --- what a step needs ---------------------------------------------------------------------------- */

static const struct executor_past before = {"own-a", "n1", "ml"};

static const struct {
    struct executor_budgets budgets;
    guint n_past;
    const char *pods, *error;
    guint moved;
} budgets[] = {
    {{.per_owner = 1}, 0, "a b", NULL, 2},
    {{.per_owner = 1}, 1, "a b", "as many pods of controller own-a have moved as may (1)", 1},
    {{.per_owner = 2}, 1, "a b", NULL, 3},
    {{.per_owner = 1}, 1, "b", NULL, 2},
    {{.per_owner = 1}, 0, "b b2", "controller own-b", 1},
    {{.per_node = 1}, 0, "a b", "as many pods of node n1 have moved as may (1)", 1},
    {{.per_node = 2}, 0, "a b", NULL, 2},
    {{.per_node = 2}, 1, "a b", "node n1", 2},
    {{.per_namespace = 1}, 0, "a b", "as many pods of namespace ml have moved as may (1)", 1},
    {{.per_namespace = 2}, 0, "a b", NULL, 2},
    {{.per_namespace = 2}, 2, "a b", "namespace ml", 2},
    {{0}, 3, "a b", NULL, 5},
};

START_TEST(budgets_count_what_was_moved_before)
{
    g_autoptr(GArray) past = g_array_new(FALSE, FALSE, sizeof(struct executor_past));

    for (guint i = 0; i < budgets[_i].n_past; i++)
        g_array_append_val(past, before);
    show_all();
    plans[0] = strchr(budgets[_i].pods, ' ') ? strchr(budgets[_i].pods, ' ') + 1 : "";
    plans[1] = "";
    executor.past = past;
    executor.budgets = budgets[_i].budgets;
    expect_run(budgets[_i].pods, budgets[_i].error);
    ck_assert_uint_eq(moved, budgets[_i].moved);
    ck_assert_uint_eq(count_evictions(), budgets[_i].moved - budgets[_i].n_past);
    ck_assert(!paused && !stalled);
}
END_TEST

/* Whom nobody makes again draws on no controller's budget. */
START_TEST(who_has_no_controller_is_counted_all_the_same)
{
    show_pod(2, (struct api_pod){.name = "A"});
    hide_pod(1, "A");
    show_all();
    executor.force = true;
    executor.budgets = (struct executor_budgets){.per_owner = 1, .per_node = 1};
    plans[0] = "b";
    expect_run("A b", "node n1");
    ck_assert_uint_eq(moved, 1);
}
END_TEST

START_TEST(outside_of_its_window_no_step_begins)
{
    static const struct {
        const char *window;
        bool open;
    } rows[] = {{"11:00-13:00", true}, {"13:00-14:00", false}, {"Tue 00:00-24:00", false}};
    g_autoptr(window) window = window_parse(rows[_i].window, NULL);

    show_all();
    plans[0] = "";
    executor.window = window;
    expect_run("a", rows[_i].open ? NULL : "the window in which pods may be moved is closed");
    ck_assert_int_eq(paused, !rows[_i].open);
}
END_TEST

START_TEST(a_finding_stops_it_before_a_step_and_after_the_last)
{
    show_all();
    plans[0] = "b";
    plans[1] = "";
    refuses_step = _i;
    expect_run("a b", "a finding");
    ck_assert_uint_eq(count_evictions(), (unsigned)_i - 1);
}
END_TEST

START_TEST(what_nobody_wants_does_not_begin)
{
    show_all();
    refuses_wish = 1;
    expect_run("a", "nobody wants it");
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

static uint64_t next_term(struct leadership *leadership)
{
    return 8;
}

/* Whoever serves by now may be at it. */
START_TEST(after_the_term_no_pod_ends)
{
    static const struct leadership_ops ops = {.term = next_term};
    struct leadership next = {&ops};

    show_all();
    executor.leadership = &next;
    executor.term = 7;
    expect_run("a", "another one holds the Lease");
    ck_assert_uint_eq(count_evictions(), 0);
}
END_TEST

/* What was kept may be others' by now. */
START_TEST(what_could_not_be_renewed_stops_it)
{
    keeping_abandon(kept);
    clock_skip_ms(KEEPING_LIFE_MS);
    expect_run("a", "others may have it");
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

START_TEST(of_whom_nobody_can_count_nobody_ends)
{
    answer("GET /api/v1/namespaces/ml/pods ", 1, 403, NULL);
    expect_run("a", "403");
    ck_assert_str_eq(told->str, "");
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

/* --- the hour is full ------------------------------------------------------------------------- */

/* Another one has moved a pod half an hour ago. */
static void fill_hour(int times)
{
    answer("GET /api/v1/namespaces/gpu/configmaps/gpuledger-moves ", times, 200,
           "{\"metadata\":{\"resourceVersion\":\"4\"},\"data\":{\"moves\":"
           "\"2026-01-05T11:30:00Z uid-7 web n9\\n\"}}");
}

START_TEST(a_full_hour_pauses_it)
{
    show_all();
    fill_hour(1);
    executor.budgets.per_hour = 1;
    expect_run("a", "as many pods have moved in this hour as may (1); the next one waits 1801 s");
    ck_assert(paused && !stalled);
    expect_list("G ml/pods; G gpu/configmaps/gpuledger-moves");
}
END_TEST

/* Nothing is kept meanwhile, and another plan is made afterwards. */
START_TEST(a_full_hour_is_waited_for)
{
    show_all();
    fill_hour(FAKE_ALWAYS);
    answer("PATCH /api/v1/namespaces/gpu/configmaps/", FAKE_ALWAYS, 200, NULL);
    executor.budgets.per_hour = 1;
    executor.paused = NULL;
    plans[0] = "b";
    plans[1] = "";
    expect_run("a", NULL);
    ck_assert_int_ge(clock_passed_ms(), 1800 * 1000);
    ck_assert_uint_eq(moved, 1);
    ck_assert_ptr_nonnull(strstr(told->str, "the next one waits 1801 s\nSTEP b of 1 Ready"));
    ck_assert_uint_eq(count_requests("gpuledger-moves ", "uid-b ml n1"), 1);
    ck_assert_uint_eq(count_requests("gpuledger-moves ", "uid-a"), 0);
}
END_TEST

/* What was kept for the step before is others' then. */
START_TEST(while_the_hour_is_waited_for_nothing_is_kept)
{
    static const char *const bodies[] = {
        "{\"metadata\":{\"resourceVersion\":\"4\"},\"data\":{\"moves\":\"\"}}",
        "{\"metadata\":{\"resourceVersion\":\"4\"},\"data\":{\"moves\":"
        "\"2026-01-05T12:00:00Z uid-a ml n1\\n\"}}"};

    show_all();
    answer("GET /api/v1/namespaces/gpu/configmaps/gpuledger-moves ", 1, 200, bodies[0]);
    answer("GET /api/v1/namespaces/gpu/configmaps/gpuledger-moves ", FAKE_ALWAYS, 200, bodies[1]);
    answer("PATCH /api/v1/namespaces/gpu/configmaps/", FAKE_ALWAYS, 200, NULL);
    executor.budgets.per_hour = 1;
    executor.paused = NULL;
    plans[0] = "b";
    plans[1] = "b";
    plans[2] = "";
    expect_run("a b", NULL);
    ck_assert_uint_eq(moved, 2);
    for (int i = 1; i <= 3; i++)
        ck_assert_uint_eq(n_marks(keep(g_strdup_printf("n%d", i)), "\"gpuledger.io/plan\":null"),
                          1);
}
END_TEST

/* The place in the hour is taken before anybody ends. */
START_TEST(an_hour_that_nobody_knows_stops_it)
{
    show_all();
    answer("GET /api/v1/namespaces/gpu/configmaps/gpuledger-moves ", 1, 403, NULL);
    executor.budgets.per_hour = 1;
    expect_run("a", "stopped: the moves of the last hour");
    ck_assert_uint_eq(count_requests("/eviction ", NULL), 0);
    ck_assert(!paused);
}
END_TEST

/* --- the goal --------------------------------------------------------------------------------- */

static const struct {
    const char *first, *then, *why_not, *error;
    bool stalled;
    guint moved;
} ends[] = {
    {"a b", "a b", NULL, "stopped after 1 move: as many are needed as before the last", true, 1},
    {"a", "b a", NULL, "stopped after 1 move: as many are needed", true, 1},
    {"a", NULL, NULL, "nobody can look", false, 1},
    {"a", "b", "no moves help", "stopped after 0 moves: no moves help", true, 0},
    {"", "", NULL, NULL, false, 0},
};

START_TEST(it_stops_where_it_comes_no_closer)
{
    show_all();
    why_not = ends[_i].why_not;
    plans[0] = ends[_i].then;
    expect_run(ends[_i].first, ends[_i].error);
    ck_assert_int_eq(stalled, ends[_i].stalled);
    ck_assert_uint_eq(moved, ends[_i].moved);
    ck_assert_uint_eq(count_evictions(), ends[_i].moved);
}
END_TEST

/* Once a second, and a minute at most. */
START_TEST(the_room_is_kept_until_the_pod_has_it)
{
    const bool comes = _i == 0;

    show_all();
    plans[0] = "";
    executor.ns = "ml";
    executor.name = "big";
    show_pod(3, (struct api_pod){.name = "big", .phase = "Pending"});
    show_pod(FAKE_ALWAYS, (struct api_pod){.name = "big", .node = comes ? "n3" : NULL});
    expect_run("a", NULL);
    ck_assert_int_eq(clock_passed_ms(), comes ? 3000 : 60000);
    ck_assert_int_eq(strstr(told->str, "ml/big has no node yet") != NULL, !comes);
    ck_assert_int_eq(in_vain, !comes);
    /* Of the others nothing is kept while it is waited for. */
    ck_assert_uint_ge(n_marks("n3", "\\\"id\\\":\\\"big\\\""), 2); /* it is renewed as well */
    ck_assert_uint_eq(n_marks("n2", "\\\"id\\\""), 1);
    ck_assert_uint_eq(n_marks("n2", "\"gpuledger.io/plan\":null"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor");
    TCase *steps = tcase_create("steps");

    tcase_add_checked_fixture(steps, setup, teardown);
    tcase_add_test(steps, each_step_is_told_before_and_after);
    tcase_add_test(steps, room_is_kept_before_anybody_ends);
    tcase_add_test(steps, where_room_cannot_be_kept_nobody_ends);
    tcase_add_test(steps, a_pod_that_just_ends_has_no_successor);
    tcase_add_test(steps, what_a_pod_leaves_is_kept_until_it_has_gone);
    tcase_add_loop_test(steps, who_has_gone_by_itself_is_no_move, 0, 2);
    tcase_add_loop_test(steps, a_step_that_fails_ends_it, 0, G_N_ELEMENTS(failures));
    tcase_add_loop_test(steps, budgets_count_what_was_moved_before, 0, G_N_ELEMENTS(budgets));
    tcase_add_test(steps, who_has_no_controller_is_counted_all_the_same);
    tcase_add_loop_test(steps, outside_of_its_window_no_step_begins, 0, 3);
    tcase_add_loop_test(steps, a_finding_stops_it_before_a_step_and_after_the_last, 1, 4);
    tcase_add_test(steps, what_nobody_wants_does_not_begin);
    tcase_add_test(steps, after_the_term_no_pod_ends);
    tcase_add_test(steps, what_could_not_be_renewed_stops_it);
    tcase_add_test(steps, of_whom_nobody_can_count_nobody_ends);
    tcase_add_test(steps, a_full_hour_pauses_it);
    tcase_add_test(steps, a_full_hour_is_waited_for);
    tcase_add_test(steps, while_the_hour_is_waited_for_nothing_is_kept);
    tcase_add_test(steps, an_hour_that_nobody_knows_stops_it);
    tcase_add_loop_test(steps, it_stops_where_it_comes_no_closer, 0, G_N_ELEMENTS(ends));
    tcase_add_loop_test(steps, the_room_is_kept_until_the_pod_has_it, 0, 2);
    suite_add_tcase(suite, steps);
    return suite_run(suite);
}
