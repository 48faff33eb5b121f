/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cJSON asks its hooks for memory, and the hooks ask the arena of the document that this thread is
 * parsing. Outside of a parse they are malloc and free, so that code which builds cJSON trees by
 * other means is not concerned. Nothing in an arena is freed one by one.
 */
#include "core/fail.h"
#include "json/source.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN ((size_t)32 << 10)
#define CHUNK_MAX ((size_t)4 << 20)  /* chunks double up to this; larger only for one allocation */
#define CHUNK_KEPT ((size_t)1 << 20) /* what an idle arena may hold: a filter of 5,000 names */

/* A tree takes 3 to 4 times the text of Kubernetes objects, but 32 times that of "[0,0,0…": what a
 * client may make of us with one body is bounded here. */
#define TREE_FREE ((size_t)4 << 20)
#define TREE_RATIO (GUARD ? 16 : 8) /* guards are memory, too */
#define TREE_MAX ((size_t)256 << 20) /* or TREE_LARGE_RATIO times the text */
#define TREE_LARGE_RATIO 4

#define EXCERPT_MAX 24                 /* bytes of foreign text in a message */
#define INTEGER_END 9007199254740992.0 /* 2^53: from here on doubles skip integers */

/* --- arena ---------------------------------------------------------------------------------- */

/* Under AddressSanitizer memory that was not handed out, or was cleared, is out of bounds. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define GUARD sizeof(double)
#define FORBID(memory, size) ASAN_POISON_MEMORY_REGION(memory, size)
#define ALLOW(memory, size) ASAN_UNPOISON_MEMORY_REGION(memory, size)
#else
#define GUARD 0
#define FORBID(memory, size) (void)0
#define ALLOW(memory, size) (void)0
#endif

#define ARENA_MAX (SIZE_MAX - sizeof(struct chunk)) /* where nothing else limits it */

struct chunk {
    struct chunk *next;
    size_t size; /* of data */
    size_t used;
    _Alignas(double) char data[];
};

struct json_arena {
    struct chunk *chunks; /* the first one is being filled */
    size_t size;          /* of all chunks' data */
    size_t size_max;      /* of the same, during a parse */
    bool exhausted;       /* there was no memory left during the current parse */
    const cJSON *document;
    const char *source; /* what `document` was parsed from; the caller's */
    size_t source_length;
};

static _Thread_local struct json_arena *current;

/* An arena that a thread has done with waits for its next document: fresh memory is paid for page
 * by page. */
static _Thread_local struct json_arena *spare;
static pthread_key_t spare_key; /* its destructor frees the spare of a thread that ends */

static void *arena_take(struct json_arena *arena, size_t size)
{
    const size_t rounded = ((size + sizeof(double) - 1) & ~(sizeof(double) - 1)) + GUARD;
    struct chunk *chunk = arena->chunks;

    if (rounded < size)
        return NULL;
    if (!chunk || chunk->size - chunk->used < rounded) {
        const size_t doubled = chunk ? MIN(chunk->size * 2, CHUNK_MAX) : CHUNK_MIN;
        const size_t capacity = MAX(doubled, rounded);

        chunk = capacity < arena->size_max - arena->size ? malloc(sizeof(*chunk) + capacity) : NULL;
        if (!chunk)
            return NULL;
        chunk->size = capacity;
        arena->size += capacity;
        chunk->used = 0;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        FORBID(chunk->data, capacity);
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += rounded;
    ALLOW(memory, size);
    return memory;
}

static void *hook_malloc(size_t size)
{
    if (!current)
        return malloc(size);
    void *memory = arena_take(current, size);
    if (!memory)
        current->exhausted = true;
    return memory;
}

static void hook_free(void *memory)
{
    if (!current)
        free(memory);
}

/* Of a cleared arena. */
static void arena_destroy(void *data)
{
    struct json_arena *arena = data;

    free(arena->chunks);
    g_free(arena);
}

static void install_hooks(void)
{
    cJSON_Hooks hooks = {.malloc_fn = hook_malloc, .free_fn = hook_free};
    cJSON_InitHooks(&hooks);
    pthread_key_create(&spare_key, arena_destroy);
}

struct json_arena *json_arena_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_hooks);
    if (!spare) {
        struct json_arena *arena = g_new0(struct json_arena, 1);

        arena->size_max = ARENA_MAX;
        return arena;
    }
    pthread_setspecific(spare_key, NULL);
    return g_steal_pointer(&spare);
}

void json_arena_clear(struct json_arena *arena)
{
    struct chunk *kept = NULL;

    while (arena->chunks) {
        struct chunk *chunk = arena->chunks;
        struct chunk *dropped = chunk;

        arena->chunks = chunk->next;
        if (chunk->size <= CHUNK_KEPT && (!kept || chunk->size > kept->size)) {
            dropped = kept;
            kept = chunk;
        }
        free(dropped);
    }
    if (kept) {
        kept->next = NULL;
        kept->used = 0;
        FORBID(kept->data, kept->size);
    }
    arena->chunks = kept;
    arena->size = kept ? kept->size : 0;
    arena->document = NULL;
    arena->source = NULL;
}

void json_arena_free(struct json_arena *arena)
{
    if (!arena)
        return;
    json_arena_clear(arena);
    if (spare) {
        arena_destroy(arena);
        return;
    }
    spare = arena;
    pthread_setspecific(spare_key, spare);
}

static void *take_or_die(struct json_arena *arena, size_t size)
{
    void *memory = arena_take(arena, size);

    if (!memory)
        g_error("out of memory: %zu bytes for a decoded document", size);
    return memory;
}

void *json_arena_alloc(struct json_arena *arena, size_t size)
{
    return memset(take_or_die(arena, size), 0, size);
}

char *json_arena_dup(struct json_arena *arena, const char *text, size_t size)
{
    return memcpy(take_or_die(arena, size), text, size);
}

const char *json_arena_source(const struct json_arena *arena, const cJSON *document,
                              size_t *ret_length)
{
    if (!document || document != arena->document)
        return NULL;
    *ret_length = arena->source_length;
    return arena->source;
}

/* --- text to tree --------------------------------------------------------------------------- */

/* Foreign text for a message: short, printable, on one line. */
static char *excerpt(const char *text, size_t length)
{
    GString *out = g_string_sized_new(EXCERPT_MAX);

    for (size_t i = 0; i < MIN(length, EXCERPT_MAX); i++)
        g_string_append_c(out, g_ascii_isprint(text[i]) ? text[i] : '?');
    if (length > EXCERPT_MAX)
        g_string_append(out, "...");
    return g_string_free(out, FALSE);
}

static size_t nesting_at(const char *text, size_t length)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        const char c = text[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']') && depth > 0)
            depth--;
    }
    return depth;
}

static void set_parse_error(const char *text, size_t length, size_t at, GError **error)
{
    if (length == 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "invalid JSON: the text is empty");
        return;
    }
    if (nesting_at(text, at) >= CJSON_NESTING_LIMIT) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "invalid JSON at byte %zu: nested deeper than %d levels", at,
                    CJSON_NESTING_LIMIT);
        return;
    }
    g_autofree char *near = excerpt(text + at, length - at);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "invalid JSON at byte %zu near '%s'", at, near);
}

static size_t tree_max(size_t length)
{
    if (length > SIZE_MAX / 2 / TREE_RATIO)
        return SIZE_MAX / 2;
    return TREE_FREE + MIN(length * TREE_RATIO, MAX(TREE_MAX, length * TREE_LARGE_RATIO));
}

const cJSON *json_parse(struct json_arena *arena, const char *text, size_t length, GError **error)
{
    const char *end = text;

    /* Not require_null_terminated: it would want a NUL inside the length. */
    arena->exhausted = false;
    arena->size_max = arena->size + tree_max(length);
    current = arena;
    const cJSON *document = cJSON_ParseWithLengthOpts(text, length, &end, false);
    current = NULL;
    arena->size_max = ARENA_MAX;

    if (arena->exhausted) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "a JSON document of %zu bytes takes more memory than there is for it", length);
        return NULL;
    }
    size_t at = end ? (size_t)(end - text) : 0;
    if (document) {
        while (at < length && strchr(" \t\r\n", text[at]) && text[at])
            at++;
        if (at == length) {
            arena->document = document;
            arena->source = text;
            arena->source_length = length;
            return document;
        }
    }
    set_parse_error(text, length, at, error);
    return NULL;
}

/* --- tree to struct ------------------------------------------------------------------------- */

static const cJSON *find_key(const cJSON *object, const char *key, size_t length, unsigned flags)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, object) {
        const int difference = flags & JSON_IGNORE_CASE
                                   ? g_ascii_strncasecmp(item->string, key, length)
                                   : strncmp(item->string, key, length);
        if (difference == 0 && item->string[length] == '\0')
            return item;
    }
    return NULL;
}

static bool expected(const char *path, size_t length, const char *what, GError **error)
{
    return fail_with(error, GPULEDGER_ERROR_INVALID, "field '%.*s': expected %s", (int)length, path,
                     what);
}

/* Descends to the object that holds the last key of the path; NULL in `ret_parent` if there is
 * none on the way. */
static bool find_parent(const cJSON *object, const struct json_field *field, size_t length,
                        const cJSON **ret_parent, GError **error)
{
    const char *key = field->path;
    const char *end = field->path + length;

    while (object && key < end) {
        const char *dot = memchr(key, '.', (size_t)(end - key));
        const char *key_end = dot ? dot : end;

        object = find_key(object, key, (size_t)(key_end - key), field->flags);
        if (cJSON_IsNull(object))
            object = NULL;
        if (object && !cJSON_IsObject(object))
            return expected(field->path, (size_t)(key_end - field->path), "an object", error);
        key = key_end + 1;
    }
    *ret_parent = object;
    return true;
}

static bool decode_string(struct json_arena *arena, const struct json_field *field,
                          const cJSON *item, void *ret, GError **error)
{
    if (!cJSON_IsString(item))
        return expected(field->path, strlen(field->path), "a string", error);
    if (field->flags & JSON_REQUIRED && item->valuestring[0] == '\0')
        return fail_with(error, GPULEDGER_ERROR_INVALID, "field '%s': must not be empty",
                         field->path);
    *(const char **)ret = item->valuestring;
    return true;
}

static bool is_whole(const cJSON *item)
{
    return fabs(item->valuedouble) < INTEGER_END && trunc(item->valuedouble) == item->valuedouble;
}

static bool decode_int64(struct json_arena *arena, const struct json_field *field,
                         const cJSON *item, void *ret, GError **error)
{
    if (!cJSON_IsNumber(item))
        return expected(field->path, strlen(field->path), "a number", error);
    if (fabs(item->valuedouble) >= INTEGER_END && field->flags & JSON_CLAMP) {
        *(int64_t *)ret = (int64_t)copysign(INTEGER_END - 1, item->valuedouble);
        return true;
    }
    if (fabs(item->valuedouble) >= INTEGER_END)
        return fail_with(error, GPULEDGER_ERROR_RANGE,
                         "field '%s': expected a number between -2^53 and 2^53", field->path);
    if (!is_whole(item))
        return expected(field->path, strlen(field->path), "a whole number", error);
    *(int64_t *)ret = (int64_t)item->valuedouble;
    return true;
}

static bool decode_bool(struct json_arena *arena, const struct json_field *field, const cJSON *item,
                        void *ret, GError **error)
{
    if (!cJSON_IsBool(item))
        return expected(field->path, strlen(field->path), "true or false", error);
    *(bool *)ret = cJSON_IsTrue(item);
    return true;
}

static bool decode_present(struct json_arena *arena, const struct json_field *field,
                           const cJSON *item, void *ret, GError **error)
{
    *(bool *)ret = true;
    return true;
}

/* The text of a pair's value; NULL if its type is not allowed. */
static const char *pair_text(struct json_arena *arena, const cJSON *item, unsigned flags)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    if (cJSON_IsString(item))
        return item->valuestring;
    if (!(flags & JSON_NUMBERS) || !cJSON_IsNumber(item) || fabs(item->valuedouble) >= INTEGER_END)
        return NULL;
    /* Sixteen digits write every whole number below 2^53 out in full. */
    g_ascii_formatd(text, sizeof(text), is_whole(item) ? "%.16g" : "%.15g", item->valuedouble);
    const size_t size = strlen(text) + 1;
    return memcpy(json_arena_alloc(arena, size), text, size);
}

static bool decode_pairs(struct json_arena *arena, const struct json_field *field,
                         const cJSON *item, void *ret, GError **error)
{
    struct string_pairs *pairs = ret;
    const cJSON *child;
    size_t n = 0;

    if (!cJSON_IsObject(item))
        return expected(field->path, strlen(field->path), "an object", error);
    cJSON_ArrayForEach (child, item)
        n++;
    if (n == 0) {
        *pairs = (struct string_pairs){NULL, 0};
        return true;
    }
    struct string_pair *items = json_arena_alloc(arena, n * sizeof(*items));
    n = 0;
    cJSON_ArrayForEach (child, item) {
        const char *value = pair_text(arena, child, field->flags);

        if (!value) {
            g_autofree char *key = excerpt(child->string, strlen(child->string));
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field '%s': value of '%s' is not a string%s", field->path, key,
                             field->flags & JSON_NUMBERS ? " or a number" : "");
        }
        items[n++] = (struct string_pair){child->string, value};
    }
    *pairs = (struct string_pairs){items, n};
    return true;
}

static bool decode_object(struct json_arena *arena, const struct json_field *field,
                          const cJSON *item, void *ret, GError **error)
{
    if (!cJSON_IsObject(item))
        return expected(field->path, strlen(field->path), "an object", error);
    *(const cJSON **)ret = item;
    return true;
}

static bool decode_array(struct json_arena *arena, const struct json_field *field,
                         const cJSON *item, void *ret, GError **error)
{
    if (!cJSON_IsArray(item))
        return expected(field->path, strlen(field->path), "an array", error);
    *(const cJSON **)ret = item;
    return true;
}

static bool (*const decoders[])(struct json_arena *arena, const struct json_field *field,
                                const cJSON *item, void *ret, GError **error) = {
    [JSON_STRING] = decode_string,   [JSON_INT64] = decode_int64, [JSON_BOOL] = decode_bool,
    [JSON_PRESENT] = decode_present, [JSON_PAIRS] = decode_pairs, [JSON_OBJECT] = decode_object,
    [JSON_ARRAY] = decode_array,
};

bool json_decode(struct json_arena *arena, const cJSON *object, const struct json_field *fields,
                 void *ret, GError **error)
{
    const struct json_field *previous = NULL;
    size_t previous_length = 0;
    const cJSON *parent = NULL;

    if (!cJSON_IsObject(object))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "expected a JSON object");
    for (const struct json_field *field = fields; field->path; field++) {
        const char *dot = strrchr(field->path, '.');
        const size_t length = dot ? (size_t)(dot - field->path) : 0;
        const char *key = dot ? dot + 1 : field->path;

        /* Neighbours in a table mostly share their parent. */
        if (!previous || length != previous_length ||
            (field->flags ^ previous->flags) & JSON_IGNORE_CASE ||
            memcmp(field->path, previous->path, length) != 0) {
            if (!find_parent(object, field, length, &parent, error))
                return false;
            previous = field;
            previous_length = length;
        }
        const cJSON *item = parent ? find_key(parent, key, strlen(key), field->flags) : NULL;
        if (!item || cJSON_IsNull(item)) {
            if (!(field->flags & JSON_REQUIRED))
                continue;
            return fail_with(error, GPULEDGER_ERROR_INVALID, "field '%s': missing", field->path);
        }
        if (!decoders[field->kind](arena, field, item, (char *)ret + field->offset, error))
            return false;
    }
    return true;
}
