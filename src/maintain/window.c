/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/window.h"

#include "core/fail.h"

#include <string.h>

#define DAYS 7
#define DAY_MIN (24 * 60)

static const char *const day_names[DAYS] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

struct window {
    bool days[DAYS];
    int begin_min, end_min; /* of a day; an end that is not later is on the next day */
    GTimeZone *zone;
};

void window_free(struct window *window)
{
    if (!window)
        return;
    if (window->zone)
        g_time_zone_unref(window->zone);
    g_free(window);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int find_day(const char *name)
{
    for (int i = 0; i < DAYS; i++) {
        if (g_ascii_strcasecmp(name, day_names[i]) == 0)
            return i;
    }
    return -1;
}

/* "Mon", or "Fri-Mon". */
static bool read_range(const char *text, bool *days)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 3);
    const guint n = g_strv_length(ends);
    const int first = n > 0 ? find_day(ends[0]) : -1;
    const int last = n == 2 ? find_day(ends[1]) : first;

    if (n < 1 || n > 2 || first < 0 || last < 0)
        return false;
    for (int i = first; i != last; i = (i + 1) % DAYS)
        days[i] = true;
    days[last] = true;
    return true;
}

static bool read_days(const char *text, bool *days)
{
    g_auto(GStrv) ranges = g_strsplit(text, ",", -1);

    for (char **range = ranges; *range; range++) {
        if (!read_range(*range, days))
            return false;
    }
    return *ranges;
}

/* "06:00", at most 24:00. */
static bool read_time(const char *text, int *ret_min)
{
    if (strlen(text) != 5 || text[2] != ':' || !g_ascii_isdigit(text[0]) ||
        !g_ascii_isdigit(text[1]) || !g_ascii_isdigit(text[3]) || !g_ascii_isdigit(text[4]))
        return false;
    const int minute = (text[3] - '0') * 10 + text[4] - '0';
    *ret_min = ((text[0] - '0') * 10 + text[1] - '0') * 60 + minute;
    return minute < 60 && *ret_min <= DAY_MIN;
}

static bool read_times(const char *text, struct window *window)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 3);

    return g_strv_length(ends) == 2 && read_time(ends[0], &window->begin_min) &&
           read_time(ends[1], &window->end_min) && window->begin_min < DAY_MIN;
}

static bool read_words(char **words, struct window *window)
{
    if (*words && g_ascii_isalpha(**words)) {
        if (!read_days(*words++, window->days))
            return false;
    } else {
        memset(window->days, true, sizeof window->days);
    }
    if (!*words || !read_times(*words++, window))
        return false;
    window->zone = *words ? g_time_zone_new_identifier(*words++) : g_time_zone_new_utc();
    return window->zone && !*words;
}

struct window *window_parse(const char *text, GError **error)
{
    g_autoptr(window) window = g_new0(struct window, 1);
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    if (strlen(text) <= WINDOW_MAX && read_words(words, window))
        return g_steal_pointer(&window);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "'%.*s': expected [DAYS] HH:MM-HH:MM [ZONE], such as 'Mon-Fri 22:00-06:00 "
                "Europe/Berlin'",
                WINDOW_MAX, text);
    return NULL;
}

/* --- asking ----------------------------------------------------------------------------------- */

bool window_is_open(const struct window *window, int64_t unix_s)
{
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(unix_s);
    g_autoptr(GDateTime) local = utc ? g_date_time_to_timezone(utc, window->zone) : NULL;

    if (!local)
        return false;
    const int now = g_date_time_get_hour(local) * 60 + g_date_time_get_minute(local);
    const int today = g_date_time_get_day_of_week(local) - 1, before = (today + DAYS - 1) % DAYS;

    if (window->begin_min < window->end_min)
        return window->days[today] && now >= window->begin_min && now < window->end_min;
    return (window->days[today] && now >= window->begin_min) ||
           (window->days[before] && now < window->end_min);
}
