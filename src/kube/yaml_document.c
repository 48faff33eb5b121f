/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml's events are turned into a tree with a stack of the open collections; nothing recurses
 * but for the copying of aliases, whose depth is checked first.
 */
#include "kube/yaml_document.h"

#include "core/fail.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#define KEYS_SEARCHED 32

struct open_collection {
    cJSON *value;
    char *key;    /* of a mapping: read, its value not yet */
    char *anchor; /* known to aliases once the collection is complete, so none contains itself */
    GHashTable *keys; /* of a mapping: those it has, borrowed from the tree; NULL while few */
    unsigned n_keys;
};

struct loader {
    yaml_parser_t parser;
    cJSON *documents;
    GArray *open;        /* struct open_collection */
    GHashTable *anchors; /* name -> cJSON *, borrowed from the current document */
    size_t alias_values;
    yaml_mark_t mark; /* where the current event starts */
};

G_GNUC_PRINTF(4, 5)
static bool refuse(const struct loader *loader, enum gpuledger_error code, GError **error,
                   const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return fail_with(error, code, "line %zu, column %zu: %s", loader->mark.line + 1,
                     loader->mark.column + 1, text);
}

static void open_collection_clear(void *data)
{
    struct open_collection *open = data;

    g_free(open->key);
    g_free(open->anchor);
    g_clear_pointer(&open->keys, g_hash_table_unref);
}

static struct open_collection *innermost(const struct loader *loader)
{
    return loader->open->len
               ? &g_array_index(loader->open, struct open_collection, loader->open->len - 1)
               : NULL;
}

/* Puts a value where the next one belongs; it is the tree's from then on. */
static bool place(struct loader *loader, cJSON *take_value, GError **error)
{
    struct open_collection *open = innermost(loader);

    if (!open) {
        cJSON_AddItemToArray(loader->documents, take_value);
    } else if (cJSON_IsArray(open->value)) {
        cJSON_AddItemToArray(open->value, take_value);
    } else if (open->key) {
        cJSON_AddItemToObject(open->value, open->key, take_value);
        g_clear_pointer(&open->key, g_free);
        if (open->keys)
            g_hash_table_add(open->keys, take_value->string);
    } else {
        cJSON_Delete(take_value);
        return refuse(loader, GPULEDGER_ERROR_INVALID, error, "a key must be plain text");
    }
    return true;
}

static bool wants_key(const struct loader *loader)
{
    const struct open_collection *open = innermost(loader);
    return open && cJSON_IsObject(open->value) && !open->key;
}

/* A mapping of the usual size is searched, a large one is hashed. */
static bool has_key(struct open_collection *open, const char *key)
{
    const cJSON *item;

    if (open->n_keys == KEYS_SEARCHED && !open->keys) {
        open->keys = g_hash_table_new(g_str_hash, g_str_equal);
        cJSON_ArrayForEach (item, open->value)
            g_hash_table_add(open->keys, item->string);
    }
    if (open->keys)
        return g_hash_table_contains(open->keys, key);
    cJSON_ArrayForEach (item, open->value) {
        if (g_str_equal(item->string, key))
            return true;
    }
    return false;
}

static bool take_key(struct loader *loader, const char *text, size_t length, GError **error)
{
    struct open_collection *open = innermost(loader);

    g_assert(open); /* or no key would be due */
    if (memchr(text, '\0', length))
        return refuse(loader, GPULEDGER_ERROR_INVALID, error, "a key holds a NUL character");
    if (g_str_equal(text, "<<"))
        return refuse(loader, GPULEDGER_ERROR_INVALID, error,
                      "merge keys (\"<<\") are not supported; write the values out");
    if (has_key(open, text))
        return refuse(loader, GPULEDGER_ERROR_INVALID, error, "the key \"%.64s\" comes twice",
                      text);
    open->n_keys++;
    open->key = g_strndup(text, length);
    return true;
}

/* The number that the whole text is in JSON's grammar. */
static bool json_number(const char *text, double *ret_number)
{
    const char *at = text + (*text == '-');

    if (!g_ascii_isdigit(*at) || (at[0] == '0' && g_ascii_isdigit(at[1])))
        return false;
    while (g_ascii_isdigit(*at))
        at++;
    if (*at == '.') {
        if (!g_ascii_isdigit(*++at))
            return false;
        while (g_ascii_isdigit(*at))
            at++;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        if (!g_ascii_isdigit(*at))
            return false;
        while (g_ascii_isdigit(*at))
            at++;
    }
    *ret_number = g_ascii_strtod(text, NULL);
    return *at == '\0';
}

static cJSON *plain_value(const char *text)
{
    double number;

    if (*text == '\0' || g_str_equal(text, "~") || g_str_equal(text, "null"))
        return cJSON_CreateNull();
    if (g_str_equal(text, "true") || g_str_equal(text, "false"))
        return cJSON_CreateBool(*text == 't');
    return json_number(text, &number) ? cJSON_CreateNumber(number) : cJSON_CreateString(text);
}

static void set_anchor(struct loader *loader, const char *anchor, cJSON *value)
{
    if (anchor)
        g_hash_table_replace(loader->anchors, g_strdup(anchor), value);
}

/* "!!str" makes a string of what looks like a number; the other tags of the core schema say what
 * is evident anyway. */
static bool check_tag(const struct loader *loader, const char *tag, GError **error)
{
    static const char *const known[] = {YAML_STR_TAG,  YAML_INT_TAG, YAML_FLOAT_TAG, YAML_BOOL_TAG,
                                        YAML_NULL_TAG, YAML_SEQ_TAG, YAML_MAP_TAG,   "!"};

    if (!tag)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_str_equal(tag, known[i]))
            return true;
    }
    return refuse(loader, GPULEDGER_ERROR_INVALID, error, "the tag \"%.64s\" is not supported",
                  tag);
}

static bool on_scalar(struct loader *loader, const yaml_event_t *event, GError **error)
{
    const char *text = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    const char *tag = (const char *)event->data.scalar.tag;

    if (!check_tag(loader, tag, error))
        return false;
    if (wants_key(loader))
        return take_key(loader, text, length, error);
    if (memchr(text, '\0', length))
        return refuse(loader, GPULEDGER_ERROR_INVALID, error, "a text holds a NUL character");

    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                       g_strcmp0(tag, YAML_STR_TAG) != 0 && g_strcmp0(tag, "!") != 0;
    cJSON *value = plain ? plain_value(text) : cJSON_CreateString(text);
    set_anchor(loader, (const char *)event->data.scalar.anchor, value);
    return place(loader, value, error);
}

static bool on_start(struct loader *loader, cJSON *take_value, const yaml_char_t *anchor,
                     const yaml_char_t *tag, GError **error)
{
    if (!check_tag(loader, (const char *)tag, error)) {
        cJSON_Delete(take_value);
        return false;
    }
    if (loader->open->len >= YAML_DEPTH_MAX) {
        cJSON_Delete(take_value);
        return refuse(loader, GPULEDGER_ERROR_LIMIT, error, "nested deeper than %d levels",
                      YAML_DEPTH_MAX);
    }
    if (!place(loader, take_value, error))
        return false;
    const struct open_collection open = {
        .value = take_value,
        .anchor = g_strdup((const char *)anchor),
    };
    g_array_append_val(loader->open, open);
    return true;
}

static bool on_end(struct loader *loader)
{
    const struct open_collection *open = innermost(loader);

    g_assert(open); /* the parser reports no end without a beginning */
    set_anchor(loader, open->anchor, open->value);
    g_array_set_size(loader->open, loader->open->len - 1);
    return true;
}

/* Counts the values below `value` into `n`, up to the limit; returns the levels of collections. */
static unsigned measure(const cJSON *value, size_t *n)
{
    unsigned deepest = 0;
    const cJSON *item;

    if (++*n > YAML_ALIAS_VALUES_MAX || !(cJSON_IsArray(value) || cJSON_IsObject(value)))
        return 0;
    cJSON_ArrayForEach (item, value) {
        const unsigned depth = measure(item, n);
        deepest = MAX(deepest, depth);
    }
    return deepest + 1;
}

static bool on_alias(struct loader *loader, const char *anchor, GError **error)
{
    const cJSON *value = g_hash_table_lookup(loader->anchors, anchor);

    if (!value)
        return refuse(loader, GPULEDGER_ERROR_INVALID, error,
                      "the alias \"*%.64s\" has no complete anchor before it", anchor);
    if (wants_key(loader)) {
        if (!cJSON_IsString(value))
            return refuse(loader, GPULEDGER_ERROR_INVALID, error, "a key must be plain text");
        return take_key(loader, value->valuestring, strlen(value->valuestring), error);
    }
    const unsigned depth = measure(value, &loader->alias_values);
    if (loader->alias_values > YAML_ALIAS_VALUES_MAX)
        return refuse(loader, GPULEDGER_ERROR_LIMIT, error, "aliases expand to more than %d values",
                      YAML_ALIAS_VALUES_MAX);
    if (loader->open->len + depth > YAML_DEPTH_MAX)
        return refuse(loader, GPULEDGER_ERROR_LIMIT, error, "nested deeper than %d levels",
                      YAML_DEPTH_MAX);
    return place(loader, cJSON_Duplicate(value, true), error);
}

static bool on_event(struct loader *loader, const yaml_event_t *event, GError **error)
{
    loader->mark = event->start_mark;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(loader, event, error);
    case YAML_MAPPING_START_EVENT:
        return on_start(loader, cJSON_CreateObject(), event->data.mapping_start.anchor,
                        event->data.mapping_start.tag, error);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(loader, cJSON_CreateArray(), event->data.sequence_start.anchor,
                        event->data.sequence_start.tag, error);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return on_end(loader);
    case YAML_ALIAS_EVENT:
        return on_alias(loader, (const char *)event->data.alias.anchor, error);
    case YAML_DOCUMENT_END_EVENT:
        g_hash_table_remove_all(loader->anchors);
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
        break;
    }
    return true;
}

static bool refuse_syntax(struct loader *loader, GError **error)
{
    const yaml_parser_t *parser = &loader->parser;

    loader->mark = parser->problem_mark;
    if (parser->error == YAML_MEMORY_ERROR)
        return refuse(loader, GPULEDGER_ERROR_LIMIT, error, "not enough memory");
    return refuse(loader, GPULEDGER_ERROR_INVALID, error, "invalid YAML: %s",
                  parser->problem ? parser->problem : "unreadable");
}

static bool load(struct loader *loader, GError **error)
{
    yaml_event_type_t type = YAML_NO_EVENT;

    while (type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;

        if (!yaml_parser_parse(&loader->parser, &event))
            return refuse_syntax(loader, error);
        type = event.type;
        const bool ok = on_event(loader, &event, error);
        yaml_event_delete(&event);
        if (!ok)
            return false;
    }
    return true;
}

cJSON *yaml_load_all(const char *text, size_t length, GError **error)
{
    struct loader loader = {0};

    if (length > YAML_SIZE_MAX) {
        refuse(&loader, GPULEDGER_ERROR_LIMIT, error, "more than %zu bytes of YAML", YAML_SIZE_MAX);
        return NULL;
    }
    if (!yaml_parser_initialize(&loader.parser)) {
        refuse(&loader, GPULEDGER_ERROR_LIMIT, error, "not enough memory");
        return NULL;
    }
    yaml_parser_set_input_string(&loader.parser, (const unsigned char *)text, length);
    loader.documents = cJSON_CreateArray();
    loader.open = g_array_new(FALSE, FALSE, sizeof(struct open_collection));
    g_array_set_clear_func(loader.open, open_collection_clear);
    loader.anchors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    if (!load(&loader, error))
        g_clear_pointer(&loader.documents, cJSON_Delete);
    g_hash_table_unref(loader.anchors);
    g_array_unref(loader.open);
    yaml_parser_delete(&loader.parser);
    return loader.documents;
}

cJSON *yaml_load(const char *text, size_t length, GError **error)
{
    cJSON *documents = yaml_load_all(text, length, error);
    cJSON *document = NULL;

    if (!documents)
        return NULL;
    if (!documents->child)
        document = cJSON_CreateNull();
    else if (!documents->child->next)
        document = cJSON_DetachItemViaPointer(documents, documents->child);
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "line 1, column 1: several YAML documents where one is expected");
    cJSON_Delete(documents);
    return document;
}
