/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/window.h"
#include "suite.h"

#include <string.h>

/* 2026-01-05 is a Monday. */
static bool is_open(const char *text, const char *time)
{
    g_autoptr(GDateTime) moment = g_date_time_new_from_iso8601(time, NULL);
    g_autoptr(window) window = window_parse(text, NULL);

    ck_assert_msg(window && moment, "%s at %s", text, time);
    return window_is_open(window, g_date_time_to_unix(moment));
}

static const struct {
    const char *text, *time;
    bool open;
} moments[] = {
    {"08:00-18:00", "2026-01-05T08:00:00Z", true},
    {"08:00-18:00", "2026-01-05T07:59:59Z", false},
    {"08:00-18:00", "2026-01-05T17:59:59Z", true},
    {"08:00-18:00", "2026-01-05T18:00:00Z", false},
    {"22:00-06:00", "2026-01-05T23:00:00Z", true},
    {"22:00-06:00", "2026-01-05T05:59:00Z", true},
    {"22:00-06:00", "2026-01-05T06:00:00Z", false},
    {"Mon 22:00-06:00", "2026-01-05T05:00:00Z", false}, /* Sunday's would be open */
    {"Mon 22:00-06:00", "2026-01-06T05:00:00Z", true},
    {"Mon 22:00-06:00", "2026-01-06T22:00:00Z", false},
    {"sat,sun 00:00-24:00", "2026-01-04T23:59:00Z", true},
    {"sat,sun 00:00-24:00", "2026-01-05T00:00:00Z", false},
    {"Fri-Mon 00:00-24:00", "2026-01-05T12:00:00Z", true},
    {"Fri-Mon 00:00-24:00", "2026-01-06T12:00:00Z", false},
    {"Mon 10:00-10:00", "2026-01-06T09:59:00Z", true}, /* a whole day */
    {"22:00-06:00 Europe/Berlin", "2026-01-05T21:00:00Z", true},
    {"22:00-06:00 Europe/Berlin", "2026-01-05T20:59:00Z", false},
    {"22:00-06:00 Europe/Berlin", "2026-07-06T20:00:00Z", true}, /* in summer an hour earlier */
    {"22:00-06:00 Europe/Berlin", "2026-07-06T04:00:00Z", false},
    /* The night in which clocks go forward, at 2:00, has no half past two. */
    {"02:30-03:30 Europe/Berlin", "2026-03-29T00:59:00Z", false},
    {"02:30-03:30 Europe/Berlin", "2026-03-29T01:00:00Z", true},
    {"02:30-03:30 Europe/Berlin", "2026-03-29T01:30:00Z", false},
};

START_TEST(it_is_open_from_its_beginning_to_before_its_end)
{
    ck_assert_msg(is_open(moments[_i].text, moments[_i].time) == moments[_i].open, "%s at %s",
                  moments[_i].text, moments[_i].time);
}
END_TEST

static const char *const faults[] = {
    "",
    "always",
    "8:00-18:00",
    "08:00",
    "08:00-18:00-20:00",
    "25:00-26:00",
    "24:00-06:00",
    "08:60-10:00",
    "Mo 08:00-10:00",
    "Mon- 08:00-10:00",
    "Mon",
    "Mon,,Tue 08:00-10:00",
    "08:00-10:00 Nowhere/Town",
    "08:00-10:00 UTC more",
    "08:00 -10:00",
    "Mon-Tue-Wed 08:00-10:00",
};

START_TEST(what_is_no_window_is_refused)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(!window_parse(faults[_i], &error), "%s", faults[_i]);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "HH:MM-HH:MM"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tests = tcase_create("window");

    tcase_add_loop_test(tests, it_is_open_from_its_beginning_to_before_its_end, 0,
                        G_N_ELEMENTS(moments));
    tcase_add_loop_test(tests, what_is_no_window_is_refused, 0, G_N_ELEMENTS(faults));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
