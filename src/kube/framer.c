/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This is not a parser, and one parser that is asked for token after token would replace neither it
 * nor json/span.c nor cJSON: here text is cut before the rest of it has come and before anybody knows
 * that it is JSON; span.c finds places in a text that cJSON has accepted. What those two share is how
 * a string ends. A tree is what json_decode's tables read, so cJSON would stay.
 */
#include "kube/framer.h"

#include "core/fail.h"

#include <string.h>

#define BUFFER_KEPT ((size_t)256 << 10) /* a larger one is not kept for the next object */
#define KEY_MAX 8                       /* enough to tell "items" from every other key */

/* Depths at which a list has its keys and its items. */
#define LIST_KEYS 1
#define LIST_ITEMS 2

struct framer {
    enum framer_mode mode;
    size_t object_max;
    framer_emit emit;
    void *data;

    GString *object;   /* the one under way */
    GString *envelope; /* of a list */
    char *skip;        /* quoted, with its colon: what stands before an array to be skipped; or NULL */
    size_t skip_length;
    bool skipping;     /* inside such an array, */
    size_t skip_depth; /* with that many open brackets around it */
    size_t depth;      /* open brackets */
    bool quoted;       /* inside a string */
    bool escaped;      /* after a backslash in a string */
    bool in_items;     /* inside the array "items" */
    bool ended;        /* a list's last bracket was seen */
    bool failed;

    /* The last string of the envelope, which is a key if a colon follows. */
    char key[KEY_MAX];
    size_t key_length;
    bool is_items_key;
};

struct framer *framer_new(enum framer_mode mode, size_t object_max, framer_emit emit, void *data)
{
    struct framer *framer = g_new0(struct framer, 1);

    framer->mode = mode;
    framer->object_max = object_max ? object_max : FRAMER_OBJECT_MAX;
    framer->emit = emit;
    framer->data = data;
    framer->object = g_string_new(NULL);
    framer->envelope = g_string_new(NULL);
    return framer;
}

void framer_free(struct framer *framer)
{
    if (!framer)
        return;
    g_string_free(framer->object, TRUE);
    g_string_free(framer->envelope, TRUE);
    g_free(framer->skip);
    g_free(framer);
}

void framer_skip(struct framer *framer, const char *key)
{
    g_free(framer->skip);
    framer->skip = g_strdup_printf("\"%s\":", key);
    framer->skip_length = strlen(framer->skip);
}

static void truncate_kept(GString **text)
{
    if ((*text)->allocated_len > BUFFER_KEPT) {
        g_string_free(*text, TRUE);
        *text = g_string_new(NULL);
    } else {
        g_string_truncate(*text, 0);
    }
}

void framer_clear(struct framer *framer)
{
    truncate_kept(&framer->object);
    truncate_kept(&framer->envelope);
    framer->depth = 0;
    framer->quoted = false;
    framer->escaped = false;
    framer->skipping = false;
    framer->in_items = false;
    framer->ended = false;
    framer->failed = false;
    framer->key_length = 0;
    framer->is_items_key = false;
}

bool framer_is_complete(const struct framer *framer)
{
    return !framer->failed && framer->depth == 0 &&
           (framer->mode == FRAMER_SEQUENCE || framer->ended);
}

const char *framer_envelope(const struct framer *framer, size_t *ret_length)
{
    *ret_length = framer->envelope->len;
    return framer->envelope->str;
}

/* --- where bytes go ------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool keep(GString *text, size_t max, const char *bytes, size_t length, GError **error)
{
    if (text->len + length > max)
        return fail_with(error, GPULEDGER_ERROR_LIMIT,
                         "an object is larger than the %zu bytes that are accepted", max);
    g_string_append_len(text, bytes, (gssize)length);
    return true;
}

static bool keep_envelope(struct framer *framer, const char *bytes, size_t length, GError **error)
{
    return keep(framer->envelope, framer->object_max, bytes, length, error);
}

/* Open brackets around an object that is to be handed out. */
static size_t base_depth(const struct framer *framer)
{
    return framer->mode == FRAMER_SEQUENCE ? 0 : LIST_ITEMS;
}

static bool in_object(const struct framer *framer)
{
    return framer->depth > base_depth(framer) &&
           (framer->mode == FRAMER_SEQUENCE || framer->in_items);
}

static bool unexpected(char c, const char *where, GError **error)
{
    return fail_with(error, GPULEDGER_ERROR_INVALID, "unexpected byte 0x%02x %s", (unsigned char)c,
                     where);
}

/* --- strings -------------------------------------------------------------------------------- */

/* Bytes of a string up to and with its closing quote, or to the end of the input. */
static size_t string_span(struct framer *framer, const char *bytes, size_t length)
{
    size_t i = 0;

    while (i < length && framer->quoted) {
        if (framer->escaped) {
            framer->escaped = false;
            i++;
            continue;
        }
        while (i < length && bytes[i] != '"' && bytes[i] != '\\')
            i++;
        if (i == length)
            break;
        framer->escaped = bytes[i] == '\\';
        framer->quoted = bytes[i] != '"';
        i++;
    }
    return i;
}

/* Remembers the beginning of a string that may be the key of a list. */
static void note_key(struct framer *framer, const char *bytes, size_t length)
{
    const size_t n = MIN(length, KEY_MAX - framer->key_length);

    memcpy(framer->key + framer->key_length, bytes, n);
    framer->key_length += n;
}

/* --- outside of objects --------------------------------------------------------------------- */

static bool between_items(const struct framer *framer)
{
    return framer->in_items && framer->depth == LIST_ITEMS;
}

/* The bracket with which an object to be handed out begins, or one of the envelope. */
static bool open_bracket(struct framer *framer, char c, GError **error)
{
    if (framer->depth == 0 && c != '{')
        return unexpected(c, "where an object should begin", error);
    if (between_items(framer) && c != '{')
        return unexpected(c, "where an item of the list should begin", error);
    if (framer->depth == LIST_KEYS && c == '[' && framer->is_items_key)
        framer->in_items = true;
    framer->depth++;
    return in_object(framer) ? keep(framer->object, framer->object_max, &c, 1, error)
                             : keep_envelope(framer, &c, 1, error);
}

/* Of the envelope: within it brackets are only counted. */
static bool close_bracket(struct framer *framer, char c, GError **error)
{
    if (framer->depth == 0)
        return unexpected(c, "where an object should begin", error);
    if (between_items(framer)) {
        if (c != ']')
            return unexpected(c, "where the list should end", error);
        framer->in_items = false;
        framer->is_items_key = false;
    }
    framer->depth--;
    framer->ended = framer->depth == 0;
    if (framer->ended && c != '}')
        return unexpected(c, "where an object should end", error);
    return keep_envelope(framer, &c, 1, error);
}

/* Everything that is neither string nor bracket: numbers, words, commas, colons, spaces. */
static bool plain_byte(struct framer *framer, char c, GError **error)
{
    static const char items[] = "items\"";

    if (framer->depth == 0)
        return is_space(c) || unexpected(c, "where an object should begin", error);
    if (between_items(framer))
        return is_space(c) || c == ',' ||
               unexpected(c, "where an item of the list should begin", error);
    if (framer->depth == LIST_KEYS && c == ':')
        framer->is_items_key = framer->key_length == sizeof(items) - 1 &&
                               memcmp(framer->key, items, sizeof(items) - 1) == 0;
    return keep_envelope(framer, &c, 1, error);
}

static bool step(struct framer *framer, char c, GError **error)
{
    if (framer->ended && !is_space(c))
        return unexpected(c, "after the end of the list", error);
    switch (c) {
    case '{':
    case '[':
        return open_bracket(framer, c, error);
    case '}':
    case ']':
        return close_bracket(framer, c, error);
    case '"':
        if (framer->depth == 0 || between_items(framer))
            return unexpected(c, "where an object should begin", error);
        framer->quoted = true;
        framer->key_length = 0;
        return keep_envelope(framer, &c, 1, error);
    default:
        return plain_byte(framer, c, error);
    }
}

/* --- objects -------------------------------------------------------------------------------- */

/* Byte `back` before the input, whose first `n` bytes go on with what has been kept; 0: none. */
static char byte_before(const struct framer *framer, const char *bytes, size_t n, size_t back)
{
    if (back <= n)
        return bytes[n - back];
    back -= n;
    return back <= framer->object->len ? framer->object->str[framer->object->len - back] : '\0';
}

/* Whether the bracket at bytes[n] begins an array to be skipped. What looks like its key is one: a
 * quote inside of a string has a backslash before it. */
static bool begins_skip(const struct framer *framer, const char *bytes, size_t n)
{
    if (!framer->skip)
        return false;
    for (size_t i = 0; i < framer->skip_length; i++) {
        if (byte_before(framer, bytes, n, i + 1) != framer->skip[framer->skip_length - 1 - i])
            return false;
    }
    const char before = byte_before(framer, bytes, n, framer->skip_length + 1);
    return before == ',' || before == '{';
}

/* Bytes of the object under way, to its end, the beginning or the end of an array to be skipped, or
 * the end of the input. Nearly all bytes of a stream pass here, so they are only looked at, and
 * kept as one piece. */
static size_t object_span(struct framer *framer, const char *bytes, size_t length)
{
    const size_t base = framer->skipping ? framer->skip_depth : base_depth(framer);
    size_t i = 0;

    while (i < length && framer->depth > base) {
        if (framer->quoted) {
            i += string_span(framer, bytes + i, length - i);
            continue;
        }
        switch (bytes[i++]) {
        case '"':
            framer->quoted = true;
            break;
        case '[':
            if (!framer->skipping && begins_skip(framer, bytes, i - 1)) {
                framer->skipping = true;
                framer->skip_depth = framer->depth++;
                return i;
            }
            framer->depth++;
            break;
        case '{':
            framer->depth++;
            break;
        case '}':
        case ']':
            framer->depth--;
            break;
        default:
            break;
        }
    }
    return i;
}

/* Takes what belongs to the object under way; its last byte hands it out. */
static bool feed_object(struct framer *framer, const char *bytes, size_t length, size_t *ret_taken,
                        GError **error)
{
    const bool skipped = framer->skipping;
    const size_t span = object_span(framer, bytes, length);

    *ret_taken = span;
    if (skipped) {
        if (framer->depth > framer->skip_depth)
            return true;
        framer->skipping = false;
        return keep(framer->object, framer->object_max, bytes + span - 1, 1, error);
    }
    if (!keep(framer->object, framer->object_max, bytes, span, error))
        return false;
    if (framer->depth > base_depth(framer))
        return true;
    if (bytes[span - 1] != '}')
        return unexpected(bytes[span - 1], "where an object should end", error);
    const bool ok = framer->emit(framer->object->str, framer->object->len, framer->data, error);
    truncate_kept(&framer->object);
    return ok;
}

bool framer_feed(struct framer *framer, const char *bytes, size_t length, GError **error)
{
    size_t n;

    if (framer->failed)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "the stream failed before");
    for (size_t i = 0; i < length && !framer->failed; i += n) {
        if (in_object(framer)) {
            framer->failed = !feed_object(framer, bytes + i, length - i, &n, error);
        } else if (framer->quoted) {
            n = string_span(framer, bytes + i, length - i);
            note_key(framer, bytes + i, n);
            framer->failed = !keep_envelope(framer, bytes + i, n, error);
        } else {
            n = 1;
            framer->failed = !step(framer, bytes[i], error);
        }
    }
    return !framer->failed;
}
