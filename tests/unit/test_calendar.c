/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of the week, and what changes of the clock do to them. */
#include "literals.h"
#include "suite.h"

#include "json/json.h"
#include "switch/calendar.h"
#include "wire/switch_mark.h"

#include <string.h>

#define CONFIG "nvidia.com/device-plugin.config"
#define REPLICAS "day=4,night=1,noon=2"

static struct json_arena *arena;
static struct calendar *weeks;

static void setup(void)
{
    arena = json_arena_new();
}

static void teardown(void)
{
    g_clear_pointer(&weeks, calendar_free);
    json_arena_free(arena);
}

static struct calendar *load(const char *text, GError **error)
{
    const cJSON *tree = json_parse(arena, text, strlen(text), NULL);

    ck_assert_ptr_nonnull(tree);
    return calendar_new(tree, REPLICAS, error);
}

/* Of all nodes, in that zone. */
static void begin(const char *zone, const char *windows)
{
    g_autofree char *text = g_strdup_printf("{\"nodes\":[{\"label\":\"" CONFIG
                                            "\",\"timeZone\":\"%s\",\"windows\":[%s]}]}",
                                            zone, windows);
    g_autoptr(GError) error = NULL;

    weeks = load(text, &error);
    ck_assert_msg(weeks, "%s", error ? error->message : "");
}

static struct calendar_answer ask(const char *time)
{
    struct calendar_answer answer;
    int64_t now_s;

    ck_assert(switch_time_parse(time, &now_s));
    ck_assert(calendar_ask(weeks, &(struct string_pairs){0}, now_s, &answer));
    return answer;
}

static void expect_time(int64_t time_s, const char *text)
{
    g_autofree char *told = switch_time_format(time_s);

    ck_assert_str_eq(told, text);
}

/* At that time; "": none. */
static void expect(const char *time, const char *now, const char *next, const char *next_time)
{
    const struct calendar_answer answer = ask(time);

    ck_assert_msg(g_strcmp0(answer.now ? answer.now : "", now) == 0, "%s: %s, not %s", time,
                  answer.now, now);
    ck_assert_msg(g_strcmp0(answer.next ? answer.next : "", next) == 0, "%s: then %s, not %s", time,
                  answer.next, next);
    if (*next)
        expect_time(answer.next_s, next_time);
}

#define DAY "{\"from\":\"08:00\",\"to\":\"20:00\",\"target\":\"day\"}"
#define NIGHT "{\"from\":\"20:00\",\"to\":\"08:00\",\"target\":\"night\"}"

START_TEST(day_and_night_take_turns)
{
    begin("UTC", DAY "," NIGHT);
    expect("2026-11-25T07:59:59Z", "night", "day", "2026-11-25T08:00:00Z");
    expect("2026-11-25T08:00:00Z", "day", "night", "2026-11-25T20:00:00Z");
    expect("2026-11-25T19:59:59Z", "day", "night", "2026-11-25T20:00:00Z");
    expect("2026-11-25T23:59:59Z", "night", "day", "2026-11-26T08:00:00Z");
    expect("2026-12-31T23:00:00Z", "night", "day", "2027-01-01T08:00:00Z");
    const struct calendar_answer answer = ask("2026-11-26T03:00:00Z");
    expect_time(answer.since_s, "2026-11-25T20:00:00Z");
    expect_time(answer.until_s, "2026-11-26T08:00:00Z");
}
END_TEST

START_TEST(days_are_those_on_which_a_window_begins)
{
    begin("UTC", "{\"days\":[\"Fri\"],\"from\":\"20:00\",\"to\":\"08:00\",\"target\":\"night\"}");
    expect("2026-11-27T19:00:00Z", "", "night", "2026-11-27T20:00:00Z"); /* a Friday */
    expect("2026-11-28T07:00:00Z", "night", "night", "2026-12-04T20:00:00Z");
    expect("2026-11-28T08:00:00Z", "", "night", "2026-12-04T20:00:00Z");
}
END_TEST

START_TEST(of_windows_that_overlap_the_one_that_began_last_counts)
{
    begin("UTC", DAY ",{\"from\":\"12:00\",\"to\":\"13:00\",\"target\":\"noon\"}");
    expect("2026-11-25T11:00:00Z", "day", "noon", "2026-11-25T12:00:00Z");
    expect("2026-11-25T12:30:00Z", "noon", "day", "2026-11-26T08:00:00Z");
    expect("2026-11-25T13:00:00Z", "day", "day", "2026-11-26T08:00:00Z");
}
END_TEST

/* In Berlin 2026-03-29 has no 02:00 to 03:00, and 2026-10-25 has it twice. */
START_TEST(windows_are_those_of_the_clock_on_the_wall)
{
    begin("Europe/Berlin", DAY "," NIGHT);
    expect("2026-03-28T18:59:59Z", "day", "night", "2026-03-28T19:00:00Z");
    expect("2026-03-28T19:00:00Z", "night", "day", "2026-03-29T06:00:00Z"); /* an hour less */
    expect("2026-10-24T18:00:00Z", "night", "day", "2026-10-25T07:00:00Z"); /* an hour more */
    expect("2026-10-25T06:59:59Z", "night", "day", "2026-10-25T07:00:00Z");
}
END_TEST

START_TEST(a_time_that_is_left_out_is_the_moment_of_the_change)
{
    begin("Europe/Berlin", "{\"from\":\"02:30\",\"to\":\"06:00\",\"target\":\"night\"}");
    expect("2026-03-29T00:59:59Z", "", "night", "2026-03-29T01:00:00Z");
    expect("2026-03-29T01:00:00Z", "night", "night", "2026-03-30T00:30:00Z");
    g_clear_pointer(&weeks, calendar_free);
    /* One that would begin and end in the hour that is missing does not come. */
    begin("Europe/Berlin", "{\"from\":\"02:10\",\"to\":\"02:50\",\"target\":\"night\"}");
    expect("2026-03-29T00:59:59Z", "", "night", "2026-03-30T00:10:00Z");
}
END_TEST

START_TEST(a_time_that_comes_twice_is_that_of_standard_time)
{
    begin("Europe/Berlin", "{\"from\":\"02:30\",\"to\":\"06:00\",\"target\":\"night\"}");
    expect("2026-10-25T00:30:00Z", "", "night", "2026-10-25T01:30:00Z");
    expect("2026-10-25T01:30:00Z", "night", "night", "2026-10-26T01:30:00Z");
    g_clear_pointer(&weeks, calendar_free);
    begin("Europe/Berlin", "{\"from\":\"20:00\",\"to\":\"02:30\",\"target\":\"day\"}");
    expect("2026-10-25T01:29:59Z", "day", "day", "2026-10-25T19:00:00Z");
    expect("2026-10-25T01:30:00Z", "", "day", "2026-10-25T19:00:00Z");
}
END_TEST

/* Whatever the zone, a window is never twice in one night and never missing from a day. */
START_TEST(every_day_of_a_year_has_its_windows_once)
{
    static const char *const zones[] = {
        "UTC",         "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
        "Pacific/Apia"};

    for (size_t i = 0; i < G_N_ELEMENTS(zones); i++) {
        begin(zones[i], DAY "," NIGHT);
        struct calendar_answer answer = ask("2026-01-01T12:00:00Z");
        int64_t last_s = 0;
        for (int n = 0; n < 2 * 365; n++) {
            const int64_t now_s = answer.next_s;
            const char *target = answer.next;
            ck_assert(calendar_ask(weeks, &(struct string_pairs){0}, now_s, &answer));
            ck_assert_str_eq(answer.now, target);
            ck_assert_int_eq(answer.since_s, now_s);
            ck_assert_str_ne(answer.next, target);
            ck_assert(last_s == 0 || (now_s - last_s >= 11 * 3600 && now_s - last_s <= 13 * 3600));
            last_s = now_s;
        }
        g_clear_pointer(&weeks, calendar_free);
    }
}
END_TEST

START_TEST(nodes_are_those_with_the_labels)
{
    g_autoptr(GError) error = NULL;
    struct calendar_answer answer;

    weeks = load(
        "{\"timeZone\":\"UTC\",\"nodes\":["
        "{\"label\":\"device-plugin.config\",\"selector\":{\"pool\":\"school\"},\"windows\":[" DAY
        "]},{\"label\":\"nvidia.com/mig.config\",\"windows\":[{\"from\":\"00:00\","
        "\"to\":\"00:00\",\"target\":\"all-1g.5gb\"}]}]}",
        &error);
    ck_assert_msg(weeks, "%s", error ? error->message : "");
    const struct string_pairs school = PAIRS({"pool", "school"}, {"zone", "a"});
    ck_assert(calendar_ask(weeks, &school, 1795600000, &answer));
    ck_assert_str_eq(answer.mode->label, CONFIG);
    ck_assert(calendar_ask(weeks, &(struct string_pairs){0}, 1795600000, &answer));
    ck_assert_str_eq(answer.mode->label, "nvidia.com/mig.config");
    ck_assert_str_eq(answer.now, "all-1g.5gb");
}
END_TEST

/* With quotes or without. */
START_TEST(slots_are_numbers_or_any)
{
    g_autoptr(GError) error = NULL;
    struct calendar_answer answer;

    weeks = load("{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"slots\",\"windows\":["
                 "{\"from\":\"08:00\",\"to\":\"20:00\",\"target\":4},"
                 "{\"from\":\"20:00\",\"to\":\"22:00\",\"target\":\"1\"},"
                 "{\"from\":\"22:00\",\"to\":\"08:00\",\"target\":\"any\"}]}]}",
                 &error);
    ck_assert_msg(weeks, "%s", error ? error->message : "");
    ck_assert(calendar_ask(weeks, &(struct string_pairs){0}, 1795608000, &answer)); /* noon */
    ck_assert_str_eq(answer.mode->label, "gpuledger.io/slots");
    ck_assert_str_eq(answer.now, "4");
    ck_assert_str_eq(answer.next, "1");
    ck_assert(calendar_ask(weeks, &(struct string_pairs){0}, 1795608000 + 9 * 3600, &answer));
    ck_assert_str_eq(answer.next, "any");
}
END_TEST

static const struct {
    const char *text, *why;
} faults[] = {
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"slots\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":0}]}]}",
     "neither a number from 1 to 1000 nor 'any'"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"slots\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":1.5}]}]}",
     "'target'"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"slots\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\"}]}]}",
     "'target': missing"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"slots\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":\"auto\"}]}]}",
     "mig.config"},
    {"[]", "no mapping"},
    {"{}", "nodes"},
    {"{\"notice\":\"1x\",\"nodes\":[]}", "notice"},
    {"{\"notice\":\"999999999999h\",\"nodes\":[]}", "notice"},
    {"{\"nodes\":[{\"windows\":[]}]}", "label"},
    {"{\"nodes\":[{\"label\":\"a\",\"windows\":[]}]}", "'label'"},
    {"{\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[" DAY "]}]}", "timeZone"},
    {"{\"timeZone\":\"Mars/Base\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[" DAY "]}]}",
     "Mars/Base"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[]}]}", "no windows"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"24:00\","
     "\"to\":\"08:00\",\"target\":\"day\"}]}]}",
     "24:00"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"days\":[\"Monday\"],\"target\":\"day\"}]}]}",
     "Monday"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":\"dusk\"}]}]}",
     "--nvidia-config-replicas"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":\"a b\"}]}]}",
     "value of a label"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"mig.config\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":\"mixed\"}]}]}",
     "layouts"},
    {"{\"layouts\":{\"mixed\":{\"1g.5gb\":0}},\"nodes\":[]}", "mixed"},
    {"{\"layouts\":{\"mixed\":7},\"nodes\":[]}", "mixed"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"mig.config\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"target\":\"auto\"}]}]}",
     "layouts"},
    {"{\"timeZone\":\"UTC\",\"layouts\":{\"small\":{\"1g.5gb\":7}},\"nodes\":[{\"label\":\"" CONFIG
     "\",\"windows\":[{\"from\":\"20:00\",\"to\":\"08:00\",\"target\":\"auto\"}]}]}",
     "mig.config"},
    {"{\"layouts\":{\"all-1g.5gb\":{}},\"nodes\":[]}", "all-1g.5gb"},
    {"{\"layouts\":{\"a b\":{\"1g.5gb\":7}},\"nodes\":[]}", "value of a label"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"days\":[],\"target\":\"day\"}]}]}",
     "'days'"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG "\",\"windows\":[{\"from\":\"20:00\","
     "\"to\":\"08:00\",\"day\":[\"Mon\"],\"target\":\"day\"}]}]}",
     "no field 'day'"},
    {"{\"timeZone\":\"UTC\",\"nodes\":[{\"label\":\"" CONFIG
     "\",\"selecter\":{\"pool\":\"school\"},\"windows\":[" DAY "]}]}",
     "no field 'selecter'"},
    {"{\"nodes\":[[1]]}", "expected a JSON object"},
    {"{\"maxPerhour\":1,\"nodes\":[]}", "no field 'maxPerhour'"},
    {"{\"maxPerHour\":-1,\"nodes\":[]}", "maxPerHour"},
    {"{\"maxPerHour\":3601,\"nodes\":[]}", "maxPerHour"},
    {"{\"maxPerNamespace\":10001,\"nodes\":[]}", "maxPerNamespace"},
};

START_TEST(what_is_wrong_is_named)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(load(faults[_i].text, &error));
    ck_assert_msg(strstr(error->message, faults[_i].why), "%s: %s", faults[_i].text,
                  error->message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calendar");
    TCase *tcase = tcase_create("calendar");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, day_and_night_take_turns);
    tcase_add_test(tcase, days_are_those_on_which_a_window_begins);
    tcase_add_test(tcase, of_windows_that_overlap_the_one_that_began_last_counts);
    tcase_add_test(tcase, windows_are_those_of_the_clock_on_the_wall);
    tcase_add_test(tcase, a_time_that_is_left_out_is_the_moment_of_the_change);
    tcase_add_test(tcase, a_time_that_comes_twice_is_that_of_standard_time);
    tcase_add_test(tcase, every_day_of_a_year_has_its_windows_once);
    tcase_add_test(tcase, nodes_are_those_with_the_labels);
    tcase_add_test(tcase, slots_are_numbers_or_any);
    tcase_add_loop_test(tcase, what_is_wrong_is_named, 0, G_N_ELEMENTS(faults));
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
