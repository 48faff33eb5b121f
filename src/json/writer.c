/* SPDX-License-Identifier: Apache-2.0 */
#include "json/source.h"

#include <math.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_writer_init(struct json_writer *writer, GString *text)
{
    *writer = (struct json_writer){.text = text};
}

/* The next so many characters, to be filled. Thousands of short pieces a call: each would be a call of GLib. */
static char *extend(GString *text, size_t length)
{
    const size_t before = text->len;

    if (length >= text->allocated_len - before) {
        g_string_set_size(text, before + length);
    } else {
        text->len += length;
        text->str[text->len] = '\0';
    }
    return text->str + before;
}

static void append(GString *text, const char *piece, size_t length)
{
    memcpy(extend(text, length), piece, length);
}

static void separate(struct json_writer *writer)
{
    if (writer->comma)
        g_string_append_c(writer->text, ',');
    writer->comma = true;
}

static void begin(struct json_writer *writer, char bracket)
{
    separate(writer);
    g_string_append_c(writer->text, bracket);
    writer->comma = false;
}

static void end(struct json_writer *writer, char bracket)
{
    g_string_append_c(writer->text, bracket);
    writer->comma = true;
}

void json_begin_object(struct json_writer *writer)
{
    begin(writer, '{');
}

void json_end_object(struct json_writer *writer)
{
    end(writer, '}');
}

void json_begin_array(struct json_writer *writer)
{
    begin(writer, '[');
}

void json_end_array(struct json_writer *writer)
{
    end(writer, ']');
}

/* Length of the well-formed UTF-8 sequence at `s` (no overlong forms, no surrogates, nothing past
 * U+10FFFF), or 0. Reads no further than the terminating NUL, which is never a continuation. */
static size_t utf8_length(const unsigned char *s)
{
#define CONTINUES(c) (((c)&0xc0) == 0x80)
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        return CONTINUES(s[1]) ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
            return 0;
        return CONTINUES(s[1]) && CONTINUES(s[2]) ? 3 : 0;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
            return 0;
        return CONTINUES(s[1]) && CONTINUES(s[2]) && CONTINUES(s[3]) ? 4 : 0;
    }
    return 0;
#undef CONTINUES
}

static void append_escape(GString *text, unsigned char c)
{
    static const char shorthand[0x80] = {['"'] = '"',  ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r',
                                         ['\t'] = 't', ['\b'] = 'b',  ['\f'] = 'f'};

    if (shorthand[c])
        g_string_append_printf(text, "\\%c", shorthand[c]);
    else
        g_string_append_printf(text, "\\u%04x", c);
}

static void append_quoted(GString *text, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    const size_t length = strlen(value);
    const unsigned char *end = s + length;
    const unsigned char *span = s; /* what stands as it is and is not yet appended */

    if (skip_plain(s, end) == end) { /* keys and names, thousands a call */
        char *at = extend(text, length + 2);
        *at++ = '"';
        memcpy(at, value, length);
        at[length] = '"';
        return;
    }
    g_string_append_c(text, '"');
    for (;;) {
        s = skip_plain(s, end);
        const size_t wide = *s >= 0x80 ? utf8_length(s) : 0;
        if (wide) {
            s += wide;
            continue;
        }
        if (s > span)
            g_string_append_len(text, (const char *)span, s - span);
        if (!*s)
            break;
        if (*s >= 0x80)
            g_string_append_len(text, REPLACEMENT, sizeof(REPLACEMENT) - 1);
        else
            append_escape(text, *s);
        span = ++s;
    }
    g_string_append_c(text, '"');
}

void json_key(struct json_writer *writer, const char *key)
{
    separate(writer);
    append_quoted(writer->text, key);
    g_string_append_c(writer->text, ':');
    writer->comma = false;
}

void json_string(struct json_writer *writer, const char *value)
{
    if (!value) {
        json_null(writer);
        return;
    }
    separate(writer);
    append_quoted(writer->text, value);
}

/* By hand: prioritize writes thousands of marks a call. */
void json_int(struct json_writer *writer, int64_t value)
{
    char digits[20], *const end = digits + sizeof digits, *at = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--at = '-';
    separate(writer);
    append(writer->text, at, (size_t)(end - at));
}

void json_double(struct json_writer *writer, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    if (!isfinite(value)) {
        json_null(writer);
        return;
    }
    /* The shorter of the two that reads back as the same number. */
    g_ascii_formatd(text, sizeof(text), "%.15g", value);
    if (g_ascii_strtod(text, NULL) != value)
        g_ascii_formatd(text, sizeof(text), "%.17g", value);
    separate(writer);
    g_string_append(writer->text, text);
}

void json_bool(struct json_writer *writer, bool value)
{
    separate(writer);
    g_string_append(writer->text, value ? "true" : "false");
}

void json_null(struct json_writer *writer)
{
    separate(writer);
    g_string_append(writer->text, "null");
}

void json_raw(struct json_writer *writer, const char *text, size_t length)
{
    separate(writer);
    append(writer->text, text, length);
}

void json_value(struct json_writer *writer, const cJSON *value)
{
    const cJSON *item;

    if (cJSON_IsObject(value)) {
        json_begin_object(writer);
        cJSON_ArrayForEach (item, value) {
            json_key(writer, item->string);
            json_value(writer, item);
        }
        json_end_object(writer);
    } else if (cJSON_IsArray(value)) {
        json_begin_array(writer);
        cJSON_ArrayForEach (item, value)
            json_value(writer, item);
        json_end_array(writer);
    } else if (cJSON_IsString(value)) {
        json_string(writer, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        json_double(writer, value->valuedouble);
    } else if (cJSON_IsBool(value)) {
        json_bool(writer, cJSON_IsTrue(value));
    } else {
        json_null(writer);
    }
}

char *json_format(const cJSON *value)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_value(&writer, value);
    return g_string_free(text, FALSE);
}

void json_key_string(struct json_writer *writer, const char *key, const char *value)
{
    json_key(writer, key);
    json_string(writer, value);
}

void json_key_int(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_int(writer, value);
}

void json_key_known_int(struct json_writer *writer, const char *key, bool known, int64_t value)
{
    json_key(writer, key);
    if (known)
        json_int(writer, value);
    else
        json_null(writer);
}

void json_key_bool(struct json_writer *writer, const char *key, bool value)
{
    json_key(writer, key);
    json_bool(writer, value);
}

void json_key_object(struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    json_begin_object(writer);
}

void json_key_array(struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    json_begin_array(writer);
}
