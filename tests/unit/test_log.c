/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "suite.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Standard error goes to a datagram socket, whose every message is one write(2). */
static int saved_stderr = -1;
static int lines = -1;

static void capture_begin(void)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(pair[1], STDERR_FILENO), 0);
    close(pair[1]);
    lines = pair[0];
    ck_assert_int_eq(fcntl(lines, F_SETFL, O_NONBLOCK), 0);
}

static void capture_end(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(lines);
}

/* The next line without its timestamp; NULL if there is none. */
static const char *next_line(void)
{
    static char text[65536];
    ssize_t n = recv(lines, text, sizeof(text) - 1, 0);

    if (n < 0)
        return NULL;
    text[n] = '\0';
    ck_assert_msg(n > 0 && text[n - 1] == '\n', "not a whole line: %s", text);
    text[n - 1] = '\0';
    ck_assert_ptr_null(strchr(text, '\n'));
    return text;
}

/* "2024-01-31T23:59:59.999Z" */
static void assert_timestamp(const char *text)
{
    g_autofree char *stamp = g_strndup(text, 24);
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(stamp, NULL);

    ck_assert_msg(time && stamp[19] == '.' && stamp[23] == 'Z', "not a timestamp: %s", stamp);
    gint64 age = g_get_real_time() / 1000000 - g_date_time_to_unix(time);
    ck_assert_int_ge(age, -1);
    ck_assert_int_le(age, 60);
}

static const char *next_logfmt(void)
{
    const char *line = next_line();

    if (!line)
        return NULL;
    ck_assert_msg(g_str_has_prefix(line, "time="), "%s", line);
    assert_timestamp(line + 5);
    return line + 5 + 24 + 1;
}

static const char *next_json(void)
{
    const char *line = next_line();

    if (!line)
        return NULL;
    ck_assert_msg(g_str_has_prefix(line, "{\"time\":\""), "%s", line);
    assert_timestamp(line + 9);
    return line + 9 + 24 + 2;
}

static const struct value_case {
    const char *value;
    const char *logfmt;
    const char *json;
} value_cases[] = {
    {"plain", "plain", "\"plain\""},
    {"a/b-c_d.e:f", "a/b-c_d.e:f", "\"a/b-c_d.e:f\""},
    {"", "\"\"", "\"\""},
    {NULL, "\"\"", "\"\""},
    {"two words", "\"two words\"", "\"two words\""},
    {"a=b", "\"a=b\"", "\"a=b\""},
    {"say \"no\"", "\"say \\\"no\\\"\"", "\"say \\\"no\\\"\""},
    {"back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\""},
    {"two\nlines", "\"two\\nlines\"", "\"two\\nlines\""},
    {"tab\there", "\"tab\\there\"", "\"tab\\there\""},
    {"\x1b[31mred", "\"\\u001b[31mred\"", "\"\\u001b[31mred\""},
    {"\xc2\x9b", "\"\\u009b\"", "\"\\u009b\""},
    {"ünï", "ünï", "\"ünï\""},
    {"bad\xff", "bad\xef\xbf\xbd", "\"bad\xef\xbf\xbd\""},
};

START_TEST(values_are_quoted)
{
    const struct value_case *c = &value_cases[_i];
    g_autofree char *logfmt = g_strdup_printf("level=info msg=event key=%s n=-3", c->logfmt);
    g_autofree char *json =
        g_strdup_printf("\"level\":\"info\",\"msg\":\"event\",\"key\":%s,\"n\":-3}", c->json);

    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    log_event(LOG_LEVEL_INFO, "event", LOG_TEXT("key", c->value), LOG_NUMBER("n", -3));
    ck_assert_pstr_eq(next_logfmt(), logfmt);

    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_event(LOG_LEVEL_INFO, "event", LOG_TEXT("key", c->value), LOG_NUMBER("n", -3));
    ck_assert_pstr_eq(next_json(), json);
}
END_TEST

START_TEST(an_event_needs_no_fields)
{
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    log_event(LOG_LEVEL_WARN, "all is lost");
    ck_assert_pstr_eq(next_logfmt(), "level=warn msg=\"all is lost\"");
}
END_TEST

START_TEST(levels_below_the_threshold_are_silent)
{
    unsigned evaluated = 0;

    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    log_event(LOG_LEVEL_INFO, "quiet", LOG_NUMBER("n", ++evaluated));
    log_event(LOG_LEVEL_DEBUG, "quiet", LOG_NUMBER("n", ++evaluated));
    ck_assert_ptr_null(next_line());
    ck_assert_uint_eq(evaluated, 0);
    log_event(LOG_LEVEL_WARN, "heard");
    ck_assert_pstr_eq(next_logfmt(), "level=warn msg=heard");
    log_configure(LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    log_event(LOG_LEVEL_DEBUG, "heard");
    ck_assert_pstr_eq(next_logfmt(), "level=debug msg=heard");
}
END_TEST

START_TEST(long_values_are_cut_between_characters)
{
    /* Each of these shifts the cut to another byte of a three-byte character. */
    for (unsigned shift = 0; shift < 3; shift++) {
        g_autoptr(GString) value = g_string_new(NULL);
        const char *line, *shown;

        for (unsigned i = 0; i < shift; i++)
            g_string_append_c(value, 'x');
        while (value->len < 3 * LOG_VALUE_MAX)
            g_string_append(value, "€");
        log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
        log_event(LOG_LEVEL_INFO, "long", LOG_TEXT("key", value->str));
        line = next_logfmt();
        ck_assert_ptr_nonnull(line);
        ck_assert(g_utf8_validate(line, -1, NULL));
        ck_assert(g_str_has_suffix(line, "€…"));
        ck_assert_ptr_null(strstr(line, "\xef\xbf\xbd"));
        shown = strstr(line, "key=") + 4;
        ck_assert_uint_gt(strlen(shown), LOG_VALUE_MAX - 3);
        ck_assert_uint_le(strlen(shown), LOG_VALUE_MAX + strlen("…"));
    }
}
END_TEST

START_TEST(errno_survives)
{
    errno = ENOTTY;
    log_event(LOG_LEVEL_ERROR, "event");
    ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

START_TEST(glib_messages_come_out_the_same)
{
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    g_log("Lib", G_LOG_LEVEL_WARNING, "it %s", "happened");
    ck_assert_pstr_eq(next_logfmt(), "level=warn msg=\"it happened\" domain=Lib");
    g_log("Lib", G_LOG_LEVEL_CRITICAL, "assertion");
    ck_assert_pstr_eq(next_logfmt(), "level=error msg=assertion domain=Lib");
    g_log(NULL, G_LOG_LEVEL_MESSAGE, "note");
    ck_assert_pstr_eq(next_logfmt(), "level=info msg=note");
    g_log("Lib", G_LOG_LEVEL_DEBUG, "detail");
    ck_assert_ptr_null(next_line());
    /* Once in a process is all GLib allows; configuring again must not try. */
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    g_log("Lib", G_LOG_LEVEL_INFO, "note");
    ck_assert_pstr_eq(next_json(), "\"level\":\"info\",\"msg\":\"note\",\"domain\":\"Lib\"}");
}
END_TEST

START_TEST(limit_counts_what_it_drops)
{
    struct log_limit limit = LOG_LIMIT_INIT;
    int64_t now_ms = 1000;
    uint64_t suppressed = 0;

    for (unsigned i = 0; i < LOG_LIMIT_BURST; i++)
        ck_assert(log_limit_pass(&limit, now_ms++, &suppressed));
    for (unsigned i = 0; i < 7; i++)
        ck_assert(!log_limit_pass(&limit, now_ms++, &suppressed));
    ck_assert_uint_eq(suppressed, 0);

    now_ms = 1000 + LOG_LIMIT_WINDOW_MS - 1;
    ck_assert(!log_limit_pass(&limit, now_ms, &suppressed));
    now_ms++;
    ck_assert(log_limit_pass(&limit, now_ms, &suppressed));
    ck_assert_uint_eq(suppressed, 8);

    suppressed = 0;
    now_ms += LOG_LIMIT_WINDOW_MS;
    ck_assert(log_limit_pass(&limit, now_ms, &suppressed));
    ck_assert_uint_eq(suppressed, 0);
}
END_TEST

START_TEST(limited_events_stop_after_the_burst)
{
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    for (unsigned i = 0; i < 3 * LOG_LIMIT_BURST; i++)
        log_event_limited(LOG_LEVEL_WARN, "again", LOG_NUMBER("n", i));
    for (unsigned i = 0; i < LOG_LIMIT_BURST; i++) {
        g_autofree char *expected = g_strdup_printf("level=warn msg=again n=%u", i);

        ck_assert_pstr_eq(next_logfmt(), expected);
    }
    ck_assert_ptr_null(next_line());
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("log");
    TCase *tc = tcase_create("log");

    tcase_add_checked_fixture(tc, capture_begin, capture_end);
    tcase_add_loop_test(tc, values_are_quoted, 0, (int)G_N_ELEMENTS(value_cases));
    tcase_add_test(tc, an_event_needs_no_fields);
    tcase_add_test(tc, levels_below_the_threshold_are_silent);
    tcase_add_test(tc, long_values_are_cut_between_characters);
    tcase_add_test(tc, errno_survives);
    tcase_add_test(tc, glib_messages_come_out_the_same);
    tcase_add_test(tc, limit_counts_what_it_drops);
    tcase_add_test(tc, limited_events_stop_after_the_burst);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
