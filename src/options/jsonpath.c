/* SPDX-License-Identifier: Apache-2.0 */
#include "options/jsonpath.h"

#include "base/printable.h"
#include "core/fail.h"

#include <string.h>

#define DEPTH_MAX 8 /* ranges in ranges */

struct reader {
    const char *begin, *at;
    GString *text;
    GError **error;
};

static bool refuse(const struct reader *reader, const char *what)
{
    return fail_with(reader->error, GPULEDGER_ERROR_INVALID,
                     "option '--output': jsonpath, character %zu: %s",
                     (size_t)(reader->at - reader->begin) + 1, what);
}

static bool take(struct reader *reader, const char *word)
{
    if (!g_str_has_prefix(reader->at, word))
        return false;
    reader->at += strlen(word);
    return true;
}

static void skip_space(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n')
        reader->at++;
}

/* --- values --------------------------------------------------------------------------------- */

static void append_value(GString *text, const cJSON *value)
{
    if (cJSON_IsString(value)) {
        printable_append(text, "%s", value->valuestring);
        return;
    }
    char *json = cJSON_PrintUnformatted(value);
    g_string_append(text, json ? json : "");
    cJSON_free(json);
}

/* Instead of each value those of its members that the key names; NULL: all of them. */
static void descend(GPtrArray *values, const char *key)
{
    g_autoptr(GPtrArray) from = g_ptr_array_copy(values, NULL, NULL);

    g_ptr_array_set_size(values, 0);
    for (guint i = 0; i < from->len; i++) {
        const cJSON *value = from->pdata[i], *member;
        cJSON_ArrayForEach (member, value) {
            if (!key || g_strcmp0(member->string, key) == 0)
                g_ptr_array_add(values, (void *)member);
        }
    }
}

/* Instead of each value its item of that place, from the end if it is negative. */
static void pick(GPtrArray *values, int64_t place)
{
    g_autoptr(GPtrArray) from = g_ptr_array_copy(values, NULL, NULL);

    g_ptr_array_set_size(values, 0);
    for (guint i = 0; i < from->len; i++) {
        const int64_t n = cJSON_IsArray(from->pdata[i]) ? cJSON_GetArraySize(from->pdata[i]) : 0;
        const int64_t at = place < 0 ? n + place : place;
        if (at >= 0 && at < n)
            g_ptr_array_add(values, cJSON_GetArrayItem(from->pdata[i], (int)at));
    }
}

/* --- paths ---------------------------------------------------------------------------------- */

static bool read_quoted(struct reader *reader, GString *ret_text)
{
    const char quote = *reader->at++;

    for (; *reader->at && *reader->at != quote; reader->at++) {
        char c = *reader->at;
        if (c == '\\' && reader->at[1]) {
            c = *++reader->at;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        g_string_append_c(ret_text, c);
    }
    return *reader->at == quote ? reader->at++, true : refuse(reader, "the text has no end");
}

static bool read_bracket(struct reader *reader, GPtrArray *values)
{
    g_autoptr(GString) key = g_string_new(NULL);

    if (take(reader, "*")) {
        descend(values, NULL);
    } else if (*reader->at == '\'' || *reader->at == '"') {
        if (!read_quoted(reader, key))
            return false;
        descend(values, key->str);
    } else {
        char *end;
        const int64_t place = g_ascii_strtoll(reader->at, &end, 10);
        if (end == reader->at)
            return refuse(reader, "expected [*], [0] or ['key']; filters are not understood");
        reader->at = end;
        pick(values, place);
    }
    return take(reader, "]") || refuse(reader, "expected ']'");
}

static bool read_key(struct reader *reader, GPtrArray *values)
{
    g_autoptr(GString) key = g_string_new(NULL);

    if (take(reader, "*")) {
        descend(values, NULL);
        return true;
    }
    for (; *reader->at && !strchr(".[]{} '\"", *reader->at); reader->at++) {
        if (*reader->at == '\\' && reader->at[1])
            reader->at++;
        g_string_append_c(key, *reader->at);
    }
    if (key->len == 0)
        return refuse(reader, "expected a key behind '.'");
    descend(values, key->str);
    return true;
}

/* What the path at the reader leads to from the value. */
static bool read_path(struct reader *reader, const cJSON *from, GPtrArray *ret_values)
{
    g_ptr_array_add(ret_values, (void *)from);
    if (*reader->at == '$' || *reader->at == '@')
        reader->at++;
    while (*reader->at == '.' || *reader->at == '[') {
        const bool bracket = *reader->at++ == '[';
        if (!bracket && (*reader->at == '}' || *reader->at == '['))
            continue; /* "{.}" is all of it */
        if (!(bracket ? read_bracket : read_key)(reader, ret_values))
            return false;
    }
    skip_space(reader);
    return take(reader, "}") || refuse(reader, "expected '.', '[' or '}'");
}

/* --- templates ------------------------------------------------------------------------------ */

static bool write_part(struct reader *reader, const cJSON *value, int depth, bool silent);

/* From behind "{range" on to behind its {end}, once for each value. */
static bool write_range(struct reader *reader, const cJSON *from, int depth, bool silent)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();

    skip_space(reader);
    if (depth == DEPTH_MAX)
        return refuse(reader, "too many ranges in each other");
    if (!read_path(reader, from, values))
        return false;
    const char *body = reader->at;
    for (guint i = 0; i < values->len; i++) {
        reader->at = body;
        if (!write_part(reader, values->pdata[i], depth + 1, silent))
            return false;
    }
    return values->len > 0 || write_part(reader, from, depth + 1, true);
}

static bool write_path(struct reader *reader, const cJSON *from, bool silent)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();

    if (!read_path(reader, from, values))
        return false;
    for (guint i = 0; i < values->len && !silent; i++) {
        if (i > 0)
            g_string_append_c(reader->text, ' ');
        append_value(reader->text, values->pdata[i]);
    }
    return true;
}

static bool write_braces(struct reader *reader, const cJSON *value, int depth, bool silent)
{
    g_autoptr(GString) quoted = g_string_new(NULL);

    skip_space(reader);
    if (take(reader, "range "))
        return write_range(reader, value, depth, silent);
    if (*reader->at != '"' && *reader->at != '\'')
        return write_path(reader, value, silent);
    if (!read_quoted(reader, quoted))
        return false;
    if (!silent)
        g_string_append_len(reader->text, quoted->str, (gssize)quoted->len);
    skip_space(reader);
    return take(reader, "}") || refuse(reader, "expected '}'");
}

/* To the end of the template, or, in a range, to behind its {end}. `silent`: only reads it. */
static bool write_part(struct reader *reader, const cJSON *value, int depth, bool silent)
{
    while (*reader->at) {
        if (take(reader, "{end}"))
            return depth > 0 || refuse(reader, "{end} without {range}");
        if (take(reader, "{")) {
            if (!write_braces(reader, value, depth, silent))
                return false;
        } else {
            if (!silent)
                g_string_append_c(reader->text, *reader->at);
            reader->at++;
        }
    }
    return depth == 0 || refuse(reader, "{range} without {end}");
}

bool jsonpath_write(const char *template, const cJSON *document, GString *text, GError **error)
{
    struct reader reader = {.begin = template, .at = template, .text = text, .error = error};

    return write_part(&reader, document, 0, false);
}
