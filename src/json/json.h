/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON in and out. Input: text -> cJSON tree -> C struct through a table of fields. Output: one
 * writer that owns commas and escaping; nobody else prints a brace.
 *
 * Memory: a json_arena owns the trees parsed into it and every array decoded from them; all of it
 * goes at once with the arena. Strings in decoded structs are borrowed from the arena.
 * Threads: an arena and a writer belong to one thread at a time.
 */
#include <cjson/cJSON.h>
#include <glib.h>
#include <gpuledger/object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- reading -------------------------------------------------------------------------------- */

struct json_arena;

struct json_arena *json_arena_new(void);
/* Frees everything parsed or decoded, keeps the memory for the next document. */
void json_arena_clear(struct json_arena *arena);
void json_arena_free(struct json_arena *arena);
typedef struct json_arena json_arena; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(json_arena, json_arena_free)

/* Zeroed memory that lives as long as the arena's content, aligned for pointers and int64_t. Never
 * NULL: what is decoded is bounded by what was parsed. */
void *json_arena_alloc(struct json_arena *arena, size_t size);

/* Parses exactly one JSON value, nested at most CJSON_NESTING_LIMIT deep, into a tree of at most 8
 * times the size of the text and 4 MiB (260 MiB; 4 times for a larger text). The error says at which
 * byte (from 0) and what stands there. Of two equal keys in an object the first counts; a string
 * ends at \u0000. `text` is not kept, but see json_item_spans. Parsing and writing recurse, and
 * need less than 192 KiB of stack at the limit. */
const cJSON *json_parse(struct json_arena *arena, const char *text, size_t length,
                        GError **error);

enum json_flag {
    JSON_REQUIRED = 1 << 0,    /* missing or null is an error; an empty string too */
    JSON_IGNORE_CASE = 1 << 1, /* match the keys of this path regardless of case, as Go does */
    JSON_NUMBERS = 1 << 2,     /* JSON_PAIRS: numbers below 2^53 too, as text */
    JSON_CLAMP = 1 << 3, /* JSON_INT64: 2^53 and beyond counts as 2^53 - 1; likewise below 0 */
};

/* An array of strings that was read straight from a document's text. */
struct json_strings {
    size_t n;
    const char **values; /* terminated; NULL: there is no such array, or it has to be read as usual */
    const char *text;    /* where its bracket stands in the text that was parsed, which must stay */
    const char *copy;    /* the same byte in the arena's copy, which the values point into */
};

/* Like json_parse, but the value of the top-level field `key`, if it is an array of plain strings,
 * becomes `ret_strings`, and null in the tree: a tree of thousands of node names costs more than
 * everything else that is done with them. */
const cJSON *json_parse_strings(struct json_arena *arena, const char *text, size_t length,
                                const char *key, unsigned flags,
                                struct json_strings *ret_strings, GError **error);

enum json_kind {
    JSON_STRING,  /* const char * */
    JSON_INT64,   /* int64_t; a fraction, or 2^53 and beyond (but see JSON_CLAMP), is an error */
    JSON_BOOL,    /* bool */
    JSON_PRESENT, /* bool: the field exists and is not null, whatever its type */
    JSON_PAIRS,   /* struct string_pairs from an object whose values are strings */
    JSON_OBJECT,  /* const cJSON *: an object, untouched */
    JSON_ARRAY,   /* const cJSON *: an array, untouched */
};

struct json_field {
    const char *path; /* dotted: "metadata.uid" */
    enum json_kind kind;
    unsigned flags;
    size_t offset;
};

/* A member of another type than the row's is no alternative of _Generic, and does not compile. */
#define JSON_FIELD_CHECKED(kind, ctype, type, member, path, flags)                                 \
    {path, kind, flags, _Generic(((type *)0)->member, ctype: offsetof(type, member))}
#define JSON_FIELD_STRING(type, member, path, flags)                                               \
    JSON_FIELD_CHECKED(JSON_STRING, const char *, type, member, path, flags)
#define JSON_FIELD_INT64(type, member, path, flags)                                                \
    JSON_FIELD_CHECKED(JSON_INT64, int64_t, type, member, path, flags)
#define JSON_FIELD_BOOL(type, member, path, flags)                                                 \
    JSON_FIELD_CHECKED(JSON_BOOL, bool, type, member, path, flags)
#define JSON_FIELD_PRESENT(type, member, path, flags)                                              \
    JSON_FIELD_CHECKED(JSON_PRESENT, bool, type, member, path, flags)
#define JSON_FIELD_PAIRS(type, member, path, flags)                                                \
    JSON_FIELD_CHECKED(JSON_PAIRS, struct string_pairs, type, member, path, flags)
#define JSON_FIELD_OBJECT(type, member, path, flags)                                               \
    JSON_FIELD_CHECKED(JSON_OBJECT, const cJSON *, type, member, path, flags)
#define JSON_FIELD_ARRAY(type, member, path, flags)                                                \
    JSON_FIELD_CHECKED(JSON_ARRAY, const cJSON *, type, member, path, flags)
#define JSON_FIELD_END {NULL, JSON_STRING, 0, 0}

/* Fills the members that the table names (absent fields and null leave them as they are); the
 * error reads "field 'metadata.uid': expected a string". */
bool json_decode(struct json_arena *arena, const cJSON *object, const struct json_field *fields,
                 void *ret, GError **error);

struct json_span {
    const char *text;
    size_t length;
};

/* The text of each of the `n` items of the array at a dotted path of a document, as it stands in
 * the document's source. NULL if that is not available; then json_value writes the same items. */
const struct json_span *json_item_spans(struct json_arena *arena, const cJSON *document,
                                        const char *path, unsigned flags, size_t n);

/* --- writing -------------------------------------------------------------------------------- */

struct json_writer {
    GString *text;
    bool comma; /* the next value or key needs one before it */
};

/* Appends to `text`, which the caller owns. */
void json_writer_init(struct json_writer *writer, GString *text);

void json_begin_object(struct json_writer *writer);
void json_end_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer);
void json_end_array(struct json_writer *writer);
void json_key(struct json_writer *writer, const char *key);
/* NULL writes null; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json_writer *writer, const char *value);
void json_int(struct json_writer *writer, int64_t value);
void json_double(struct json_writer *writer, double value);
void json_bool(struct json_writer *writer, bool value);
void json_null(struct json_writer *writer);
/* A parsed value, written again; numbers as doubles carry them. */
void json_value(struct json_writer *writer, const cJSON *value);
/* The same as a text of its own; free with g_free. */
char *json_format(const cJSON *value);
/* A value that is JSON already. */
void json_raw(struct json_writer *writer, const char *text, size_t length);

/* Some of an array's strings, from `first` on, as they stood in the text. */
void json_strings_raw(struct json_writer *writer, const struct json_strings *strings, size_t first,
                      size_t n);

/* The other way round of json_decode: the members that the table names, as an object whose nesting
 * follows the paths. What is NULL, zero, false or empty is left out; a JSON_PRESENT is written as
 * true. Rows that hold a tree, which a struct made by hand lacks, are left to `tree` (NULL: they are
 * left out). */
struct json_encoding {
    const struct json_field *fields;
    const void *base;
    void (*tree)(struct json_writer *writer, const struct json_field *field, const void *base);
    bool (*has_tree)(const struct json_field *field, const void *base); /* NULL: it has them all */
};
void json_encode(struct json_writer *writer, const struct json_encoding *encoding);

/* Key and value together; of an object or array, the beginning. */
void json_key_object(struct json_writer *writer, const char *key);
void json_key_array(struct json_writer *writer, const char *key);
void json_key_string(struct json_writer *writer, const char *key, const char *value);
void json_key_int(struct json_writer *writer, const char *key, int64_t value);
/* null if it is not known. */
void json_key_known_int(struct json_writer *writer, const char *key, bool known, int64_t value);
void json_key_bool(struct json_writer *writer, const char *key, bool value);
