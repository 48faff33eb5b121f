/* SPDX-License-Identifier: Apache-2.0 */
/* The hour that all who move pods count together: against an API server with a script. */
#include "evict/moves.h"

#include "scripted_api.h"
#include "suite.h"

#include <string.h>

#define PATH "/api/v1/namespaces/gpu/configmaps"
#define MINUTE_S 60

static const struct moved_pod pod = {"uid-7", "ml", "n1"};
static GPtrArray *texts; /* of the script */

static const char *keep(char *text)
{
    g_ptr_array_add(texts, text);
    return text;
}

static char *time_of(int64_t ago_s)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) at = g_date_time_add_seconds(now, (double)-ago_s);

    return g_date_time_format(at, "%Y-%m-%dT%H:%M:%SZ");
}

/* The same of a capability. */
static const char *line_by(const char *uid, const char *by)
{
    g_autofree char *time = time_of(MINUTE_S);

    return keep(g_strdup_printf("%s %s web n9 %s\\n", time, uid, by));
}

/* A line of the ConfigMap, as JSON has it. */
static const char *line(const char *uid, int64_t ago_s)
{
    g_autofree char *time = time_of(ago_s);

    return keep(g_strdup_printf("%s %s web n9\\n", time, uid));
}

/* The next answers to GET, in order. */
static void say(const char *version, const char *lines)
{
    script(&(struct fake_reply){
        .match = "GET " PATH "/gpuledger-moves ",
        .chunks = {keep(g_strdup_printf(
            "{\"metadata\":{\"name\":\"gpuledger-moves\",\"resourceVersion\":\"%s\"},\"data\":{"
            "\"moves\":\"%s\"}}",
            version, lines))}});
}

static void answer(const char *match, int status)
{
    script(&(struct fake_reply){.match = match, .status = status, .chunks = {"{}"}});
}

static bool book(uint32_t per_hour, int64_t *ret_wait_ms, GError **error)
{
    const struct moves moves = {client, "gpu"}; /* each time another one, as after a restart */

    return moves_book(&moves, &pod, per_hour, ret_wait_ms, error);
}

static void setup(void)
{
    texts = g_ptr_array_new_with_free_func(g_free);
    api_begin();
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
    g_ptr_array_unref(texts);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Of two: one of plans, one of a switch. */
START_TEST(each_has_an_hour_of_its_own)
{
    const struct moves plans = {client, "gpu", MOVES_PLAN},
                       switches = {client, "gpu", MOVES_SWITCH}, all = {client, "gpu", NULL};
    const struct {
        const struct moves *moves;
        uint32_t per_hour;
        bool waits;
    } asked[] = {{&plans, 1, true},     {&plans, 2, false}, {&switches, 1, true},
                 {&switches, 2, false}, {&all, 2, true},    {&all, 3, false}};

    for (size_t i = 0; i < G_N_ELEMENTS(asked); i++) {
        int64_t wait_ms = -1;
        say("7", keep(g_strconcat(line_by("a", "plan"), line_by("b", "switch"), NULL)));
        ck_assert(moves_wait(asked[i].moves, asked[i].per_hour, &wait_ms, NULL));
        ck_assert_int_eq(wait_ms > 0, asked[i].waits);
    }
}
END_TEST

/* What an older version has written counts for all, and whose line it is stays. */
START_TEST(lines_stay_as_they_are)
{
    const struct moves switches = {client, "gpu", MOVES_SWITCH};
    int64_t wait_ms = -1;

    say("7", keep(g_strconcat(line("a", MINUTE_S), line_by("b", "plan"), NULL)));
    ck_assert(moves_book(&switches, &pod, 1, &wait_ms, NULL));
    ck_assert_int_gt(wait_ms, 0);
    say("7", keep(g_strconcat(line("a", MINUTE_S), line_by("b", "plan"), NULL)));
    answer("PATCH ", 200);
    ck_assert(moves_book(&switches, &pod, 2, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    g_autofree char *request = fake_server_request(server, 2);
    ck_assert_ptr_nonnull(strstr(request, " a web n9\\n"));
    ck_assert_ptr_nonnull(strstr(request, " b web n9 plan\\n"));
    ck_assert_ptr_nonnull(strstr(request, " uid-7 ml n1 switch\\n"));
}
END_TEST

START_TEST(the_first_one_makes_the_configmap)
{
    int64_t wait_ms = -1;

    answer("GET ", 404);
    answer("POST " PATH " ", 201);
    ck_assert(book(1, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    g_autofree char *request = fake_server_request(server, 1);
    ck_assert_ptr_nonnull(strstr(request, "\"name\":\"gpuledger-moves\""));
    ck_assert_ptr_nonnull(strstr(request, "Z uid-7 ml n1\\n\""));
    ck_assert_ptr_null(strstr(request, "resourceVersion"));
}
END_TEST

/* What others have moved counts, whoever they are; it is written against what was read, without what is over. */
START_TEST(the_hour_is_everybodys)
{
    const char *lines = g_strconcat(line("old", 61 * MINUTE_S), line("uid-2", 20 * MINUTE_S),
                                    line("uid-1", 50 * MINUTE_S), NULL);
    int64_t wait_ms = -1;

    keep((char *)lines);
    say("4", lines);
    ck_assert(book(2, &wait_ms, NULL));
    ck_assert_int_gt(wait_ms, 9 * MINUTE_S * 1000);
    ck_assert_int_le(wait_ms, 10 * MINUTE_S * 1000);
    ck_assert_uint_eq(fake_server_count(server), 1);

    say("4", lines);
    answer("PATCH " PATH "/gpuledger-moves ", 200);
    ck_assert(book(3, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    g_autofree char *request = fake_server_request(server, 2);
    ck_assert_ptr_nonnull(strstr(request, "\"resourceVersion\":\"4\""));
    ck_assert_ptr_null(strstr(request, "old"));
    const char *one = strstr(request, "uid-1"), *two = strstr(request, "uid-2");
    ck_assert(one && two && one < two && two < strstr(request, "uid-7 ml n1"));
}
END_TEST

/* Two would take the last place: who comes second reads again, and waits. */
START_TEST(one_place_is_taken_once)
{
    int64_t wait_ms = -1;

    say("4", line("uid-1", MINUTE_S));
    answer("PATCH ", 409);
    say("5", keep(g_strconcat(line("uid-1", MINUTE_S), line("uid-2", 0), NULL)));
    ck_assert(book(2, &wait_ms, NULL));
    ck_assert_int_gt(wait_ms, 58 * MINUTE_S * 1000);
    ck_assert_uint_eq(fake_server_count(server), 3);

    say("5", line("uid-1", MINUTE_S));
    answer("PATCH ", 409);
    say("6", line("uid-1", MINUTE_S));
    answer("PATCH ", 200);
    ck_assert(book(2, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    g_autofree char *request = fake_server_request(server, 6);
    ck_assert_ptr_nonnull(strstr(request, "\"resourceVersion\":\"6\""));
}
END_TEST

/* It was made by somebody else, or is gone, or nobody knows whether it was written. */
START_TEST(what_is_not_certain_is_read_again)
{
    int64_t wait_ms = -1;

    answer("GET ", 404);
    answer("POST ", 409);
    say("5", line("uid-1", 0));
    answer("PATCH ", 404);
    answer("GET ", 404);
    answer("POST ", 500);
    say("9", line("uid-7", 0));
    answer("PATCH ", 200);
    ck_assert(book(2, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    ck_assert_uint_eq(fake_server_count(server), 8);
}
END_TEST

START_TEST(a_pod_takes_one_place)
{
    int64_t wait_ms = -1;

    say("4", keep(g_strconcat(line("uid-1", MINUTE_S), line("uid-7", MINUTE_S), NULL)));
    answer("PATCH ", 200);
    ck_assert(book(2, &wait_ms, NULL));
    ck_assert_int_eq(wait_ms, 0);
    g_autofree char *request = fake_server_request(server, 1);
    const char *seen = strstr(request, "uid-7");
    ck_assert(seen && !strstr(seen + 1, "uid-7"));
}
END_TEST

/* Nothing is allowed, and it is said why. */
START_TEST(what_cannot_be_read_stops_it)
{
    static const struct {
        const char *lines, *said;
        int64_t ahead_s;
    } cases[] = {
        {"yesterday uid-1 web n9", "is not like 'TIME UID NAMESPACE NODE BY'", 0},
        {"%s uid-1 web", "is not like", 0},
        {"%s uid-1 web n9 n8", "is not like", 0},
        {"%s  web n9", "is not like", 0},
        {"%s uid-1 web n9\\nx", "is not like", 0},
        {"%s uid-1 web n9", "is in the future", 20 * MINUTE_S},
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *time = time_of(-cases[_i].ahead_s);
    g_auto(GStrv) parts = g_strsplit(cases[_i].lines, "%s", 2);
    int64_t wait_ms = -1;

    say("4", keep(g_strjoinv(time, parts)));
    ck_assert(!book(9, &wait_ms, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "ConfigMap gpu/gpuledger-moves"));
    ck_assert_msg(strstr(error->message, cases[_i].said), "%s", error->message);
    ck_assert_ptr_nonnull(strstr(error->message, "delete it"));
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

START_TEST(a_missing_right_is_named)
{
    const struct moves moves = {client, "gpu"};
    g_autoptr(GError) unread = NULL, unwritten = NULL;
    int64_t wait_ms = -1;

    answer("GET ", 403);
    ck_assert(!moves_wait(&moves, 9, &wait_ms, &unread));
    answer("GET ", 404);
    answer("POST ", 403);
    ck_assert(!book(9, &wait_ms, &unwritten));
    ck_assert_ptr_nonnull(strstr(unread->message, "cannot be read"));
    ck_assert_ptr_nonnull(strstr(unread->message, "get, create and patch of configmaps"));
    ck_assert_ptr_nonnull(strstr(unwritten->message, "cannot be written"));
    ck_assert_ptr_nonnull(strstr(unwritten->message, "get, create and patch of configmaps"));
}
END_TEST

START_TEST(conflicts_without_end_stop_it)
{
    g_autoptr(GError) error = NULL;
    int64_t wait_ms = -1;

    for (int i = 0; i < 8; i++)
        say("4", "");
    script(&(struct fake_reply){
        .match = "PATCH ", .status = 409, .times = FAKE_ALWAYS, .chunks = {"{}"}});
    ck_assert(!book(9, &wait_ms, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "cannot be written"));
    ck_assert_uint_eq(fake_server_count(server), 16);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, the_first_one_makes_the_configmap);
    tcase_add_test(all, each_has_an_hour_of_its_own);
    tcase_add_test(all, lines_stay_as_they_are);
    tcase_add_test(all, the_hour_is_everybodys);
    tcase_add_test(all, one_place_is_taken_once);
    tcase_add_test(all, what_is_not_certain_is_read_again);
    tcase_add_test(all, a_pod_takes_one_place);
    tcase_add_loop_test(all, what_cannot_be_read_stops_it, 0, 6);
    tcase_add_test(all, a_missing_right_is_named);
    tcase_add_test(all, conflicts_without_end_stop_it);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
