/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/printable.h"
#include "json/json.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static atomic_int threshold = LOG_LEVEL_INFO;
static atomic_int line_format = LOG_FORMAT_LOGFMT;

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

/* RFC 3339 in UTC with milliseconds. */
static void timestamp_format(char *text, size_t size)
{
    struct timespec now;
    struct tm utc;
    char seconds[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
    g_snprintf(text, size, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
}

/* Valid UTF-8 of at most LOG_VALUE_MAX bytes and an ellipsis; `ret_owned` holds a copy if the
 * value could not be used as it is. */
static const char *value_clean(const char *value, char **ret_owned)
{
    size_t length = strnlen(value, LOG_VALUE_MAX + 1);

    if (length <= LOG_VALUE_MAX && g_utf8_validate(value, (gssize)length, NULL))
        return value;
    if (length <= LOG_VALUE_MAX) {
        *ret_owned = g_utf8_make_valid(value, (gssize)length);
        return *ret_owned;
    }
    /* The cut must not fall inside a character. */
    length = LOG_VALUE_MAX;
    while (length > LOG_VALUE_MAX - 4 && ((unsigned char)value[length] & 0xC0) == 0x80)
        length--;
    g_autofree char *valid = g_utf8_make_valid(value, (gssize)length);
    *ret_owned = g_strconcat(valid, "…", NULL);
    return *ret_owned;
}

static bool needs_quotes(const char *value)
{
    if (value[0] == '\0')
        return true;
    for (const char *at = value; *at; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        if (c <= ' ' || c == '=' || c == '"' || c == '\\' || printable_steers(c))
            return true;
    }
    return false;
}

/* Escapes as in JSON, so that no value can end the line or steer a terminal. */
static void logfmt_value(GString *line, const char *value)
{
    if (!needs_quotes(value)) {
        g_string_append(line, value);
        return;
    }
    g_string_append_c(line, '"');
    for (const char *at = value; *at; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        if (c == '"' || c == '\\')
            g_string_append_printf(line, "\\%c", (char)c);
        else if (c == '\n')
            g_string_append(line, "\\n");
        else if (c == '\t')
            g_string_append(line, "\\t");
        else if (printable_steers(c))
            g_string_append_printf(line, "\\u%04x", c);
        else
            g_string_append_len(line, at, g_utf8_next_char(at) - at);
    }
    g_string_append_c(line, '"');
}

/* A line under construction, in either format. */
struct line {
    GString *text;
    struct json_writer json;
    enum log_format format;
};

static void line_text(struct line *line, const char *key, const char *value)
{
    g_autofree char *owned = NULL;
    const char *clean = value_clean(value, &owned);

    if (line->format == LOG_FORMAT_JSON) {
        json_key_string(&line->json, key, clean);
        return;
    }
    g_string_append_printf(line->text, "%s%s=", line->text->len ? " " : "", key);
    logfmt_value(line->text, clean);
}

static void line_number(struct line *line, const char *key, int64_t value)
{
    if (line->format == LOG_FORMAT_JSON) {
        json_key_int(&line->json, key, value);
        return;
    }
    g_string_append_printf(line->text, " %s=%" G_GINT64_FORMAT, key, value);
}

/* What JSON lets stand as it is may steer a terminal all the same. */
static void line_end_json(struct line *line)
{
    json_end_object(&line->json);
    g_autofree char *printable = printable_json(line->text->str);
    g_string_assign(line->text, printable);
}

static void line_send(const GString *text)
{
    const char *at = text->str;
    size_t left = text->len;

    while (left > 0) {
        ssize_t n = write(STDERR_FILENO, at, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nobody is left to tell */
        at += n;
        left -= (size_t)n;
    }
}

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t n_fields)
{
    struct line line = {
        .text = g_string_sized_new(256),
        .format = (enum log_format)atomic_load_explicit(&line_format, memory_order_relaxed),
    };
    char time[40];
    int saved_errno = errno;

    timestamp_format(time, sizeof(time));
    json_writer_init(&line.json, line.text);
    if (line.format == LOG_FORMAT_JSON)
        json_begin_object(&line.json);
    line_text(&line, "time", time);
    line_text(&line, "level", level_names[level]);
    line_text(&line, "msg", message);
    for (size_t i = 0; i < n_fields; i++) {
        if (fields[i].text)
            line_text(&line, fields[i].key, fields[i].text);
        else
            line_number(&line, fields[i].key, fields[i].number);
    }
    if (line.format == LOG_FORMAT_JSON)
        line_end_json(&line);
    g_string_append_c(line.text, '\n');
    line_send(line.text);
    g_string_free(line.text, TRUE);
    errno = saved_errno;
}

static enum log_level glib_level(GLogLevelFlags flags)
{
    if (flags & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
        return LOG_LEVEL_ERROR;
    if (flags & G_LOG_LEVEL_WARNING)
        return LOG_LEVEL_WARN;
    if (flags & (G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO))
        return LOG_LEVEL_INFO;
    return LOG_LEVEL_DEBUG;
}

static char *glib_field_dup(const GLogField *field)
{
    return field->length < 0 ? g_strdup(field->value)
                             : g_strndup(field->value, (size_t)field->length);
}

static GLogWriterOutput glib_write(GLogLevelFlags flags, const GLogField *fields, gsize n_fields,
                                   gpointer data)
{
    g_autofree char *message = NULL;
    g_autofree char *domain = NULL;
    enum log_level level = glib_level(flags);

    if (!log_enabled(level))
        return G_LOG_WRITER_HANDLED;
    for (gsize i = 0; i < n_fields; i++) {
        if (!message && strcmp(fields[i].key, "MESSAGE") == 0)
            message = glib_field_dup(&fields[i]);
        else if (!domain && strcmp(fields[i].key, "GLIB_DOMAIN") == 0)
            domain = glib_field_dup(&fields[i]);
    }
    const struct log_field domain_field = LOG_TEXT("domain", domain);
    log_write(level, message ? message : "", &domain_field, domain ? 1 : 0);
    return G_LOG_WRITER_HANDLED;
}

/* GLib allows this once in a process. */
static void glib_install(void)
{
    g_log_set_writer_func(glib_write, NULL, NULL);
}

void log_configure(enum log_level level, enum log_format format)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, glib_install);
    atomic_store(&threshold, level);
    atomic_store(&line_format, format);
}

bool log_limit_pass(struct log_limit *limit, int64_t now_ms, uint64_t *ret_suppressed)
{
    bool pass;

    pthread_mutex_lock(&limit->lock);
    if (limit->window_ms == 0 || now_ms - limit->window_ms >= LOG_LIMIT_WINDOW_MS) {
        *ret_suppressed = limit->seen > LOG_LIMIT_BURST ? limit->seen - LOG_LIMIT_BURST : 0;
        limit->window_ms = now_ms;
        limit->seen = 0;
    }
    pass = ++limit->seen <= LOG_LIMIT_BURST;
    pthread_mutex_unlock(&limit->lock);
    return pass;
}
