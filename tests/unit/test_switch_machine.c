/* SPDX-License-Identifier: Apache-2.0 */
/* What is done next with a node, by what the API server shows of it. */
#include "literals.h"
#include "suite.h"

#include "json/json.h"
#include "switch/machine.h"

#include <string.h>

#define CONFIG "nvidia.com/device-plugin.config"
#define MIG "nvidia.com/mig.config"
#define NOON 1795608000 /* 2026-11-25T12:00:00Z */
#define AT "2026-11-25T12:00:00Z"

static struct switch_step step;

static void teardown(void)
{
    switch_step_clear(&step);
}

static const struct taint_view held = {SWITCH_TAINT, "", "NoSchedule"};

/* Node, pods and time; the taint is there. */
static void look(struct node_view node, guint n_holders, int64_t now_s)
{
    switch_step_clear(&step);
    node.name = "n1";
    node.taints = &held;
    node.n_taints = 1;
    const struct switch_sight sight = {
        .now_s = now_s,
        .node = &node,
        .replicas = "day=4,night=1",
        .limits = switch_limits_default,
        .n_holders = n_holders,
        .counts_cards = true,
    };
    switch_step_find(&sight, &step);
}

static void expect(enum switch_event event, const char *state, const char *label)
{
    ck_assert_str_eq(switch_events[step.event], switch_events[event]);
    ck_assert_int_eq(step.state.set, state != NULL);
    if (state)
        ck_assert_msg(g_str_has_prefix(step.state.text ? step.state.text : "", state), "%s",
                      step.state.text);
    ck_assert_int_eq(step.label.set, label != NULL);
    if (label)
        ck_assert_str_eq(step.label.text ? step.label.text : "", label);
}

#define NODE_DAY                                                                                   \
    .labels = PAIRS({CONFIG, "day"}, {"nvidia.com/gpu.count", "2"},                                \
                    {"nvidia.com/gpu.replicas", "4"}, {"nvidia.com/gpu.product", "A100-SHARED"}),  \
    .capacity = PAIRS({"nvidia.com/gpu", "8"}), .allocatable = PAIRS({"nvidia.com/gpu", "8"})
#define NODE_NIGHT(devices, told, product)                                                         \
    .labels = PAIRS({CONFIG, "night"}, {"nvidia.com/gpu.count", "2"},                              \
                    {"nvidia.com/gpu.replicas", told}, {"nvidia.com/gpu.product", product}),       \
    .capacity = PAIRS({"nvidia.com/gpu", devices}),                                                \
    .allocatable = PAIRS({"nvidia.com/gpu", devices})
#define SAID(state)                                                                                \
    .annotations = PAIRS({SWITCH_KEY, CONFIG "=night@" AT}, {SWITCH_STATE_KEY, state})

START_TEST(nothing_is_done_before_its_time)
{
    look((struct node_view){NODE_DAY, .annotations = PAIRS({SWITCH_KEY, CONFIG "=night@" AT})}, 3,
         NOON - 1);
    ck_assert(!step.writes && !step.drains);
    ck_assert_ptr_nonnull(step.waits);
}
END_TEST

START_TEST(pods_end_behind_the_taint_before_the_label_changes)
{
    look((struct node_view){NODE_DAY, .annotations = PAIRS({SWITCH_KEY, CONFIG "=night@" AT})}, 3,
         NOON);
    expect(SWITCH_EVENT_BEGUN, "draining@" AT "/day", NULL);
    ck_assert(step.taint && !step.mark.set);
    look((struct node_view){NODE_DAY, SAID("draining@" AT "/day")}, 3, NOON + 60);
    ck_assert(step.drains && !step.writes);
    look((struct node_view){NODE_DAY, SAID("draining@" AT "/day")}, 0, NOON + 120);
    expect(SWITCH_EVENT_SET, "setting@2026-11-25T12:02:00Z/day", "night");
    ck_assert(step.taint && step.clears_state);
}
END_TEST

/* Somebody has taken both annotations away: the taint would keep everybody away without a word. */
START_TEST(a_taint_that_nothing_explains_is_told)
{
    look((struct node_view){NODE_DAY}, 0, NOON);
    ck_assert(step.stuck && !step.writes);
    ck_assert_ptr_nonnull(strstr(step.waits, SWITCH_TAINT));
}
END_TEST

START_TEST(who_outlasts_the_drain_keeps_the_node_as_it_is)
{
    look((struct node_view){NODE_DAY, SAID("draining@" AT "/day")}, 1,
         NOON + switch_limits_default.drain_s + 1);
    expect(SWITCH_EVENT_GIVEN_UP, "", NULL);
    ck_assert(!step.taint && step.mark.set && !step.mark.text && !step.state.text);
    ck_assert(g_str_has_prefix(step.done.text, CONFIG "=day@"));
}
END_TEST

static const struct {
    const char *devices, *told, *product;
    bool agrees;
} nights[] = {
    {"2", "1", "A100", true},         {"8", "1", "A100", false}, /* kubelet is late */
    {"2", "4", "A100", false},                                   /* labels are */
    {"2", "1", "A100-SHARED", false},                            /* one of them is */
    {"0", "1", "A100", false},                                   /* the plugin is away */
    {"1", "1", "A100", false},                                   /* a card is gone */
};

START_TEST(the_node_is_given_back_when_all_agree)
{
    look((struct node_view){NODE_NIGHT(nights[_i].devices, nights[_i].told, nights[_i].product),
                            SAID("setting@" AT "/day")},
         0, NOON + 60);
    if (!nights[_i].agrees) {
        ck_assert(!step.writes);
        ck_assert_ptr_nonnull(step.waits);
        return;
    }
    expect(SWITCH_EVENT_DONE, "", NULL);
    ck_assert(!step.taint && !step.mark.text && !step.state.text);
    ck_assert_str_eq(step.done.text, CONFIG "=night@2026-11-25T12:01:00Z");
}
END_TEST

START_TEST(what_does_not_come_about_in_time_is_rolled_back)
{
    const int64_t late_s = NOON + switch_limits_default.deadline_s + 1;

    look((struct node_view){NODE_NIGHT("8", "4", "A100-SHARED"), SAID("setting@" AT "/day")}, 0,
         late_s);
    expect(SWITCH_EVENT_ROLLED_BACK, "back@", "day");
    ck_assert(step.taint);
    look((struct node_view){NODE_DAY, SAID("back@" AT "/day")}, 0, NOON + 1);
    expect(SWITCH_EVENT_NONE, "stuck@", NULL);
    ck_assert(step.stuck && step.taint);
    look((struct node_view){NODE_DAY, SAID("stuck@" AT "/day")}, 0, NOON + 100000);
    ck_assert(step.stuck && !step.writes);
    ck_assert_ptr_nonnull(step.waits);
}
END_TEST

/* Somebody has looked, and takes the announcement away. */
START_TEST(the_node_is_given_back_when_the_announcement_goes)
{
    look((struct node_view){NODE_DAY, .annotations = PAIRS({SWITCH_STATE_KEY, "stuck@" AT "/day"})},
         0, NOON);
    expect(SWITCH_EVENT_WITHDRAWN, "", NULL);
    ck_assert(!step.taint && !step.state.text);
    look((struct node_view){NODE_NIGHT("8", "4", "A100-SHARED"),
                            .annotations = PAIRS({SWITCH_STATE_KEY, "stuck@" AT "/day"})},
         0, NOON);
    ck_assert(!step.writes && step.stuck);
}
END_TEST

START_TEST(who_changes_the_label_meanwhile_is_left_alone)
{
    look((struct node_view){NODE_DAY, SAID("setting@" AT "/day")}, 0, NOON + 1);
    expect(SWITCH_EVENT_NONE, "stuck@", NULL);
    ck_assert(step.stuck);
}
END_TEST

#define NODE_MIG(value, state, resource, n)                                                        \
    .labels = PAIRS({MIG, value}, {MIG ".state", state}, {resource ".count", n}),                  \
    .capacity = PAIRS({resource, n}), .allocatable = PAIRS({resource, n})
#define SAID_MIG(state)                                                                            \
    .annotations = PAIRS({SWITCH_KEY, MIG "=all-1g.5gb@" AT}, {SWITCH_STATE_KEY, state})

/* It acts on changes alone. */
START_TEST(mig_manager_is_asked_twice)
{
    const int64_t deadline_s = switch_limits_default.deadline_s;

    look((struct node_view){NODE_MIG("all-1g.5gb", "pending", "nvidia.com/mig-3g.20gb", "4"),
                            SAID_MIG("setting@" AT "/all-3g.20gb")},
         0, NOON + deadline_s);
    ck_assert(!step.writes);
    look((struct node_view){NODE_MIG("all-1g.5gb", "pending", "nvidia.com/mig-3g.20gb", "4"),
                            SAID_MIG("setting@" AT "/all-3g.20gb")},
         0, NOON + deadline_s + 1);
    expect(SWITCH_EVENT_RETRIED, "other@", "all-3g.20gb");
    ck_assert(step.clears_state);
    look((struct node_view){NODE_MIG("all-3g.20gb", "success", "nvidia.com/mig-3g.20gb", "4"),
                            SAID_MIG("other@" AT "/all-3g.20gb")},
         0, NOON + 5);
    expect(SWITCH_EVENT_SET, "again@", "all-1g.5gb");
    look((struct node_view){NODE_MIG("all-1g.5gb", "failed", "nvidia.com/mig-3g.20gb", "4"),
                            SAID_MIG("again@" AT "/all-3g.20gb")},
         0, NOON + 5);
    expect(SWITCH_EVENT_ROLLED_BACK, "back@", "all-3g.20gb");
}
END_TEST

/* The label is not changed under its hands, and not held up for longer than a drain may take. */
START_TEST(mig_manager_finishes_first)
{
    const struct node_view busy = {
        NODE_MIG("all-3g.20gb", "pending", "nvidia.com/mig-3g.20gb", "4"),
        SAID_MIG("draining@" AT "/all-3g.20gb")};
    const struct node_view idle = {
        NODE_MIG("all-3g.20gb", "success", "nvidia.com/mig-3g.20gb", "4"),
        SAID_MIG("draining@" AT "/all-3g.20gb")};

    look(busy, 0, NOON + 60);
    ck_assert(!step.writes && !step.label.set && !step.drains);
    ck_assert_str_eq(step.waits, "mig-manager is at something else");
    look(idle, 0, NOON + 60);
    expect(SWITCH_EVENT_SET, "setting@", "all-1g.5gb");
    look(busy, 0, NOON + switch_limits_default.drain_s + 1);
    expect(SWITCH_EVENT_GIVEN_UP, "", NULL);
}
END_TEST

/* "success" alone may be of the change before: what kubelet reports has to be new as well. */
START_TEST(success_alone_is_not_enough)
{
    look((struct node_view){NODE_MIG("all-1g.5gb", "success", "nvidia.com/mig-3g.20gb", "4"),
                            SAID_MIG("setting@" AT "/all-3g.20gb")},
         0, NOON + 5);
    ck_assert(!step.writes);
    look((struct node_view){NODE_MIG("all-1g.5gb", "success", "nvidia.com/mig-1g.5gb", "14"),
                            SAID_MIG("setting@" AT "/all-3g.20gb")},
         0, NOON + 5);
    expect(SWITCH_EVENT_DONE, "", NULL);
}
END_TEST

START_TEST(vgpu_guests_are_never_cut)
{
    look((struct node_view){.labels =
                                PAIRS({"nvidia.com/vgpu.present", "true"}, {MIG, "all-3g.20gb"}),
                            .annotations = PAIRS({SWITCH_KEY, MIG "=all-1g.5gb@" AT})},
         0, NOON);
    expect(SWITCH_EVENT_GIVEN_UP, "", NULL);
    ck_assert(!step.taint);
}
END_TEST

/* --- how many holders a card takes -------------------------------------------------------------- */

#define SLOTS "gpuledger.io/slots"

static void look_at_slots(const char *is, const char *wanted, const char *state, guint n_leaving,
                          int64_t now_s)
{
    g_autofree char *mark = g_strdup_printf(SLOTS "=%s@" AT, wanted);
    struct string_pair words[3] = {{SWITCH_KEY, mark}};
    struct node_view node = {.annotations = {words, 1}};

    if (is)
        words[node.annotations.n++] = (struct string_pair){SLOTS, is};
    if (state)
        words[node.annotations.n++] = (struct string_pair){SWITCH_STATE_KEY, state};
    look(node, n_leaving, now_s);
}

static const struct {
    const char *is, *wanted;
} more[] = {{"2", "4"}, {"2", "any"}, {"x", "any"}, {NULL, "any"}, {"2", "2"}};

START_TEST(more_slots_are_there_at_once)
{
    look_at_slots(more[_i].is, more[_i].wanted, NULL, 7, NOON);
    ck_assert(!step.drains && !step.taint && step.writes);
    ck_assert_str_eq(switch_events[step.event], switch_events[SWITCH_EVENT_DONE]);
    ck_assert(step.mark.set && !step.mark.text && step.state.set && !step.state.text);
    ck_assert_int_eq(step.label.set, g_strcmp0(more[_i].is, more[_i].wanted) != 0);
    ck_assert(!step.label.set || g_str_equal(step.label.text, more[_i].wanted));
}
END_TEST

static const struct {
    const char *is, *from;
} fewer[] = {{NULL, ""}, {"4", "4"}, {"any", "any"}, {"x", "x"}};

START_TEST(fewer_slots_are_there_when_no_card_has_more_holders)
{
    g_autofree char *state = g_strconcat("draining@" AT "/", fewer[_i].from, NULL);

    look_at_slots(fewer[_i].is, "3", NULL, 2, NOON - 1);
    ck_assert(!step.writes && step.waits);
    look_at_slots(fewer[_i].is, "3", NULL, 2, NOON);
    expect(SWITCH_EVENT_BEGUN, state, NULL);
    ck_assert(step.taint && !step.mark.set);
    look_at_slots(fewer[_i].is, "3", state, 2, NOON + 60);
    ck_assert(step.drains && !step.writes);
    look_at_slots(fewer[_i].is, "3", state, 0, NOON + 90);
    expect(SWITCH_EVENT_DONE, "", "3");
    ck_assert(!step.taint && step.mark.set && !step.mark.text && !step.state.text);
    ck_assert_str_eq(step.done.text, SLOTS "=3@2026-11-25T12:01:30Z");
    look_at_slots(fewer[_i].is, "3", state, 1, NOON + switch_limits_default.drain_s + 1);
    ck_assert_str_eq(switch_events[step.event], switch_events[SWITCH_EVENT_GIVEN_UP]);
    ck_assert(!step.taint && !step.label.set && !step.state.text);
}
END_TEST

START_TEST(slots_that_nobody_can_read_or_count_are_not_switched)
{
    const struct switch_sight sight = {
        .now_s = NOON,
        .node =
            &(struct node_view){.name = "n1", .annotations = PAIRS({SWITCH_KEY, SLOTS "=1@" AT})},
        .limits = switch_limits_default,
    };

    look_at_slots("4", "0", NULL, 0, NOON);
    ck_assert_str_eq(switch_events[step.event], switch_events[SWITCH_EVENT_GIVEN_UP]);
    ck_assert(!step.label.set && !step.mark.text);
    look_at_slots("4 4", "1", NULL, 0, NOON);
    ck_assert(!step.writes && step.stuck);
    look_at_slots("5", "1", "draining@" AT "/4", 0, NOON);
    ck_assert(step.stuck && !step.label.set);
    switch_step_clear(&step);
    switch_step_find(&sight, &step); /* who is on which card nobody knows */
    ck_assert_str_eq(switch_events[step.event], switch_events[SWITCH_EVENT_GIVEN_UP]);
    ck_assert_str_eq(step.waits, switch_uncounted);
    ck_assert(!step.label.set);
}
END_TEST

/* --- a window that leaves the layout to what is expected ---------------------------------------------- */

static struct calendar *autos;

/* From noon to midnight the best layout, and for the rest of the day that of the night. */
static void begin_calendar(void)
{
    static const char text[] =
        "{\"timeZone\":\"UTC\",\"notice\":\"1h\",\"layouts\":{\"all-1g.5gb\":{\"1g.5gb\":7},"
        "\"all-disabled\":{}},\"nodes\":[{\"label\":\"mig.config\",\"windows\":[{\"from\":\"12:"
        "00\","
        "\"to\":\"00:00\",\"target\":\"auto\"},{\"from\":\"00:00\",\"to\":\"12:00\",\"target\":"
        "\"all-disabled\"}]}]}";
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;

    autos = calendar_new(json_parse(arena, text, strlen(text), NULL), "", &error);
    ck_assert_msg(autos, "%s", error ? error->message : "");
}

static void end_calendar(void)
{
    teardown();
    g_clear_pointer(&autos, calendar_free);
}

#define HOUR INT64_C(3600)

/* Whether anybody has to be asked what is best is found out first, as node_switch does. */
static void look_ahead(struct string_pairs annotations, int64_t now_s, bool asks,
                       const struct switch_advice *advice)
{
    const struct node_view node = {
        .name = "n1", .labels = PAIRS({MIG, "all-disabled"}), .annotations = annotations};
    struct switch_sight sight = {
        .now_s = now_s, .node = &node, .calendar = autos, .limits = *calendar_limits(autos)};

    switch_step_clear(&step);
    ck_assert_int_eq(switch_wants_advice(&sight), asks);
    sight.advice = advice;
    switch_step_find(&sight, &step);
}

static const struct switch_advice cut = {false, (char *)"all-1g.5gb"}, stay = {true, NULL},
                                  nothing = {false, NULL};

START_TEST(what_serves_most_is_announced_in_time)
{
    look_ahead((struct string_pairs){0}, NOON - 2 * HOUR, false, NULL);
    ck_assert(!step.writes);
    look_ahead((struct string_pairs){0}, NOON - HOUR - 1, false, NULL);
    ck_assert(!step.writes);
    look_ahead((struct string_pairs){0}, NOON - HOUR, true, &cut);
    ck_assert_int_eq(step.event, SWITCH_EVENT_ANNOUNCED);
    look_ahead((struct string_pairs){0}, NOON - HOUR / 2, true, &cut);
    ck_assert_int_eq(step.event, SWITCH_EVENT_ANNOUNCED);
    ck_assert_str_eq(step.mark.text, MIG "=all-1g.5gb@" AT);
    look_ahead(PAIRS({SWITCH_KEY, MIG "=all-1g.5gb@" AT}), NOON - 1, false, NULL);
    ck_assert(!step.writes);
    look_ahead(PAIRS({SWITCH_KEY, MIG "=all-1g.5gb@" AT}), NOON, false, NULL);
    ck_assert_int_eq(step.event, SWITCH_EVENT_BEGUN);
}
END_TEST

/* While nobody looked its window has ended: that of the night wants the node as it is. */
START_TEST(what_another_window_has_made_pointless_is_withdrawn)
{
    look_ahead(PAIRS({SWITCH_KEY, MIG "=all-1g.5gb@2026-11-24T12:00:00Z"}), NOON - HOUR, false,
               NULL);
    ck_assert_int_eq(step.event, SWITCH_EVENT_WITHDRAWN);
    ck_assert(step.mark.set && !step.mark.text && !step.state.set && !step.label.set);
}
END_TEST

START_TEST(who_knows_nothing_changes_nothing)
{
    for (int i = 0; i < 2; i++) {
        look_ahead((struct string_pairs){0}, i ? NOON + HOUR : NOON - 1, true, i ? NULL : &nothing);
        ck_assert(!step.writes);
        ck_assert_str_eq(step.waits, i ? "an extender chooses its layout"
                                       : "which layout serves most is not known");
    }
}
END_TEST

/* Until the window begins it may come to something else; then it is settled for the window. */
START_TEST(a_layout_that_stays_is_kept_for_its_window)
{
    look_ahead((struct string_pairs){0}, NOON - 1, true, &stay);
    ck_assert(!step.writes);
    look_ahead((struct string_pairs){0}, NOON + 5, true, &stay);
    ck_assert_int_eq(step.event, SWITCH_EVENT_KEPT);
    ck_assert_str_eq(step.done.text, MIG "=all-disabled@2026-11-25T12:00:05Z");
    ck_assert(!step.taint && !step.label.set);
    look_ahead(PAIRS({SWITCH_DONE_KEY, MIG "=all-disabled@2026-11-25T12:00:05Z"}), NOON + HOUR,
               false, &cut);
    ck_assert(!step.writes);
    look_ahead(PAIRS({SWITCH_DONE_KEY, MIG "=all-disabled@2026-11-25T12:00:05Z"}),
               NOON + 24 * HOUR - 1, true, &cut); /* tomorrow's */
    ck_assert_int_eq(step.event, SWITCH_EVENT_ANNOUNCED);
}
END_TEST

START_TEST(a_window_that_has_begun_is_announced_with_the_same_notice)
{
    look_ahead((struct string_pairs){0}, NOON + HOUR, true, &cut);
    ck_assert_str_eq(step.mark.text, MIG "=all-1g.5gb@2026-11-25T14:00:00Z");
    look_ahead((struct string_pairs){0}, NOON + 11 * HOUR + 1, false, &cut); /* too late */
    ck_assert(!step.writes);
}
END_TEST

START_TEST(what_cannot_be_read_is_left_to_people)
{
    static const char *const states[] = {"", "setting", "setting@/day", ("dancing@" AT "/day"),
                                         ("setting@" AT)};

    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        look((struct node_view){NODE_DAY, SAID(states[i])}, 0, NOON);
        ck_assert(!step.writes && !step.drains && step.stuck);
        ck_assert_ptr_nonnull(step.waits);
    }
    look((struct node_view){NODE_DAY, .annotations = PAIRS({SWITCH_KEY, "nonsense"})}, 0, NOON);
    ck_assert(!step.writes && step.stuck);
    ck_assert_str_eq(step.waits, "its annotation cannot be read");
    look((struct node_view){NODE_DAY, .annotations = PAIRS({SWITCH_KEY, "a/b=c@" AT})}, 0, NOON);
    ck_assert(!step.writes && step.stuck);
}
END_TEST

START_TEST(a_state_is_read_as_it_was_written)
{
    for (unsigned phase = SWITCH_DRAINING; phase < SWITCH_PHASES; phase++) {
        const struct switch_state state = {(enum switch_phase)phase, NOON, "all-1g.5gb"};
        g_autofree char *text = switch_state_format(&state);
        struct switch_state again;
        ck_assert(switch_state_parse(text, &again));
        ck_assert_int_eq(again.phase, state.phase);
        ck_assert_int_eq(again.since_s, state.since_s);
        ck_assert_str_eq(again.from, state.from);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("switch_machine");
    TCase *tcase = tcase_create("switch_machine");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, nothing_is_done_before_its_time);
    tcase_add_test(tcase, pods_end_behind_the_taint_before_the_label_changes);
    tcase_add_test(tcase, a_taint_that_nothing_explains_is_told);
    tcase_add_test(tcase, who_outlasts_the_drain_keeps_the_node_as_it_is);
    tcase_add_loop_test(tcase, the_node_is_given_back_when_all_agree, 0, G_N_ELEMENTS(nights));
    tcase_add_test(tcase, what_does_not_come_about_in_time_is_rolled_back);
    tcase_add_test(tcase, the_node_is_given_back_when_the_announcement_goes);
    tcase_add_test(tcase, who_changes_the_label_meanwhile_is_left_alone);
    tcase_add_test(tcase, mig_manager_is_asked_twice);
    tcase_add_test(tcase, mig_manager_finishes_first);
    tcase_add_test(tcase, success_alone_is_not_enough);
    tcase_add_test(tcase, vgpu_guests_are_never_cut);
    tcase_add_loop_test(tcase, more_slots_are_there_at_once, 0, G_N_ELEMENTS(more));
    tcase_add_loop_test(tcase, fewer_slots_are_there_when_no_card_has_more_holders, 0,
                        G_N_ELEMENTS(fewer));
    tcase_add_test(tcase, slots_that_nobody_can_read_or_count_are_not_switched);
    tcase_add_test(tcase, what_cannot_be_read_is_left_to_people);
    tcase_add_test(tcase, a_state_is_read_as_it_was_written);
    suite_add_tcase(suite, tcase);
    TCase *advised = tcase_create("advised");
    tcase_add_checked_fixture(advised, begin_calendar, end_calendar);
    tcase_add_test(advised, what_serves_most_is_announced_in_time);
    tcase_add_test(advised, what_another_window_has_made_pointless_is_withdrawn);
    tcase_add_test(advised, who_knows_nothing_changes_nothing);
    tcase_add_test(advised, a_layout_that_stays_is_kept_for_its_window);
    tcase_add_test(advised, a_window_that_has_begun_is_announced_with_the_same_notice);
    suite_add_tcase(suite, advised);

    return suite_run(suite);
}
