/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the items of an array stand in a document's text, so that they can be handed on as they
 * came: faster than writing the tree again, and no number passes through a double.
 *
 * The scan only finds places; the parser decides what is JSON. Wherever the scan could come to
 * another result than the parser (an escape in a key, a bare control character), it gives up.
 */
#include "json/source.h"

#include <string.h>

#define STRINGS_FIRST 64 /* of an array that have memory at once */

struct scan {
    const char *at;
    const char *end;
};

static const char *skip_space_until(const char *at, const char *end)
{
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static void skip_space(struct scan *scan)
{
    scan->at = skip_space_until(scan->at, scan->end);
}

static bool skip_literal(struct scan *scan)
{
    const char *begin = scan->at;

    while (scan->at < scan->end &&
           (g_ascii_isalnum(*scan->at) || *scan->at == '-' || *scan->at == '+' || *scan->at == '.'))
        scan->at++;
    return scan->at > begin;
}

static bool skip_string(struct scan *scan, bool *ret_escaped)
{
    *ret_escaped = false;
    for (scan->at++; scan->at < scan->end; scan->at++) {
        const unsigned char c = (unsigned char)*scan->at;

        if (c == '"') {
            scan->at++;
            return true;
        }
        if (c < ' ')
            return false;
        if (c == '\\') {
            *ret_escaped = true;
            scan->at++;
        }
    }
    return false;
}

static bool skip_value(struct scan *scan)
{
    size_t depth = 0;
    bool escaped;

    do {
        skip_space(scan);
        if (scan->at >= scan->end)
            return false;
        switch (*scan->at) {
        case '"':
            if (!skip_string(scan, &escaped))
                return false;
            break;
        case '{':
        case '[':
            depth++;
            scan->at++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return false;
            depth--;
            scan->at++;
            break;
        case ',':
        case ':':
            scan->at++;
            break;
        default:
            if (!skip_literal(scan))
                return false;
        }
    } while (depth > 0);
    return true;
}

/* From an object's brace to the value of its first key of that name. */
static bool enter_key(struct scan *scan, const char *key, size_t length, unsigned flags)
{
    skip_space(scan);
    if (scan->at >= scan->end || *scan->at != '{')
        return false;
    scan->at++;
    for (;;) {
        bool escaped;

        skip_space(scan);
        if (scan->at >= scan->end || *scan->at != '"')
            return false;
        const char *name = scan->at + 1;
        if (!skip_string(scan, &escaped) || escaped)
            return false;
        const size_t name_length = (size_t)(scan->at - 1 - name);
        skip_space(scan);
        scan->at++; /* the colon */
        if (name_length == length &&
            (flags & JSON_IGNORE_CASE ? g_ascii_strncasecmp(name, key, length)
                                      : memcmp(name, key, length)) == 0)
            return true;
        if (!skip_value(scan))
            return false;
        skip_space(scan);
        if (scan->at >= scan->end || *scan->at != ',')
            return false;
        scan->at++;
    }
}

const struct json_span *json_item_spans(struct json_arena *arena, const cJSON *document,
                                        const char *path, unsigned flags, size_t n)
{
    size_t length;
    const char *source = json_arena_source(arena, document, &length);

    if (!source)
        return NULL;
    struct scan scan = {source, source + length};
    if (length >= 3 && memcmp(source, "\xef\xbb\xbf", 3) == 0)
        scan.at += 3;
    for (const char *key = path; key;) {
        const char *dot = strchr(key, '.');

        if (!enter_key(&scan, key, dot ? (size_t)(dot - key) : strlen(key), flags))
            return NULL;
        key = dot ? dot + 1 : NULL;
    }
    skip_space(&scan);
    if (scan.at >= scan.end || *scan.at != '[')
        return NULL;

    struct json_span *spans = json_arena_alloc(arena, n * sizeof(*spans));
    for (size_t i = 0; i < n; i++) {
        scan.at++; /* the bracket, then commas */
        skip_space(&scan);
        const char *begin = scan.at;
        if (!skip_value(&scan))
            return NULL;
        spans[i] = (struct json_span){begin, (size_t)(scan.at - begin)};
        skip_space(&scan);
        if (scan.at >= scan.end || *scan.at != (i + 1 < n ? ',' : ']'))
            return NULL;
    }
    return spans;
}

/* --- arrays of strings ---------------------------------------------------------------------- */

/* For how many strings there will be memory, where it was for `room`: at first by how far those have
 * got in the text. */
static size_t more_room(size_t room, size_t so_far, size_t in_all)
{
    return MAX(2 * room, room == STRINGS_FIRST ? in_all / (so_far / room + 1) * 9 / 8 : 0);
}

/* Ends each string of an array with a zero in place, from its bracket past its end; false if one is
 * not plain or is empty. */
static bool lift_array(struct json_arena *arena, char *at, const char *end,
                       struct json_strings *strings, const char **ret_end)
{
    const char *const begin = at;
    size_t room = STRINGS_FIRST;
    bool more = true;

    strings->values = json_arena_alloc(arena, room * sizeof(*strings->values));
    for (at++; more; at++) {
        at = (char *)skip_space_until(at, end);
        if (at >= end || *at != '"')
            return false;
        const char *value = ++at;
        at += skip_plain((const unsigned char *)at, (const unsigned char *)end) -
              (const unsigned char *)at;
        if (at >= end || *at != '"' || at == value)
            return false;
        *at++ = '\0';
        if (strings->n == room) {
            const size_t larger = more_room(room, (size_t)(at - begin), (size_t)(end - begin));
            const char **values = json_arena_alloc(arena, larger * sizeof(*values));
            memcpy(values, strings->values, room * sizeof(*values));
            strings->values = values;
            room = larger;
        }
        strings->values[strings->n++] = value;
        at = (char *)skip_space_until(at, end);
        if (at >= end || (*at != ',' && *at != ']'))
            return false;
        more = *at == ',';
    }
    *ret_end = at;
    return true;
}

const cJSON *json_parse_strings(struct json_arena *arena, const char *text, size_t length,
                                const char *key, unsigned flags,
                                struct json_strings *ret_strings, GError **error)
{
    static const char null[] = {'n', 'u', 'l', 'l'};
    struct scan scan = {text, text + length};
    struct json_strings strings = {0};

    *ret_strings = strings;
    if (!enter_key(&scan, key, strlen(key), flags))
        return json_parse(arena, text, length, error);
    skip_space(&scan);
    if (scan.at >= scan.end || *scan.at != '[')
        return json_parse(arena, text, length, error);
    const size_t room = (size_t)(scan.end - scan.at);
    char *copy = json_arena_dup(arena, scan.at, room);
    const char *copy_end;
    strings.text = scan.at;
    strings.copy = copy;
    if (!lift_array(arena, copy, copy + room, &strings, &copy_end))
        return json_parse(arena, text, length, error);
    scan.at += copy_end - copy;

    /* What is left of the document tells whether it is one; if it is not, the whole text is parsed
     * again, so that the error names the right place. */
    const size_t before = (size_t)(strings.text - text), after = (size_t)(scan.end - scan.at);
    char *rest = json_arena_alloc(arena, before + sizeof(null) + after);
    memcpy(rest, text, before);
    memcpy(rest + before, null, sizeof(null));
    memcpy(rest + before + sizeof(null), scan.at, after);
    const cJSON *document = json_parse(arena, rest, before + sizeof(null) + after, NULL);
    if (!document)
        return json_parse(arena, text, length, error);
    *ret_strings = strings;
    return document;
}

void json_strings_raw(struct json_writer *writer, const struct json_strings *strings, size_t first,
                      size_t n)
{
    const char *last = strings->values[first + n - 1];
    const size_t begin = (size_t)(strings->values[first] - strings->copy) - 1;
    const size_t end = (size_t)(last - strings->copy) + strlen(last) + 1;

    json_raw(writer, strings->text + begin, end - begin);
}
