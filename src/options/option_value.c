/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option values: text to C and back, one row per kind. Every parser names the text in quotes and
 * what it would have accepted; where the text stood is added by the caller.
 */
#include "core/fail.h"
#include "dialect/classes/classes.h"
#include "kube/yaml_document.h"
#include "options/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    int64_t factor;
};

/* Largest first; within one factor the first spelling is the one that is written. */
static const struct unit duration_units[] = {
    {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0},
};
static const struct unit size_units[] = {
    {"TiB", INT64_C(1) << 40},
    {"GiB", 1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"Ti", INT64_C(1) << 40},
    {"Gi", 1 << 30},
    {"Mi", 1 << 20},
    {"Ki", 1 << 10},
    {"TB", INT64_C(1000000000000)},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
    {"B", 1},
    {"", 1},
    {NULL, 0},
};

void *option_value(const struct option *option, const struct config *config)
{
    char *block = settings_block(config->settings, option_section(option));

    return block + option->offset;
}

/* Digits only: strtoll would take signs, spaces and hexadecimal. */
static bool read_digits(const char **cursor, int64_t *ret_value)
{
    const char *text = *cursor;
    int64_t value = 0;
    while (g_ascii_isdigit(*text)) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text - '0', &value))
            return false;
        text++;
    }
    if (text == *cursor)
        return false;
    *cursor = text;
    *ret_value = value;
    return true;
}

/* The unit that is spelt by the letters at the cursor, all of them. */
static const struct unit *read_unit(const char **cursor, const struct unit *units)
{
    size_t length = 0;
    while (g_ascii_isalpha((*cursor)[length]))
        length++;
    for (; units->name; units++) {
        if (strlen(units->name) == length && strncmp(*cursor, units->name, length) == 0) {
            *cursor += length;
            return units;
        }
    }
    return NULL;
}

/* NULL without an error: there are none. */
static struct classes *read_classes(const char *text, GError **error)
{
    cJSON *tree = yaml_load(text, strlen(text), error);
    struct classes *classes = tree ? classes_read(tree, error) : NULL;

    cJSON_Delete(tree);
    return classes;
}

static bool refuse(const struct option *option, const char *text, GError **error)
{
    if (option->kind == OPTION_CLASSES) { /* names the field */
        classes_free(read_classes(text, error));
        return false;
    }
    if (option->kind == OPTION_LIST) /* names the item */
        return item_list_read(option->list, text, NULL, error);
    g_autofree char *accepts = option_accepts(option);
    return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s' is not valid, expected %s", text,
                     accepts);
}

/* --- one pair of functions per kind ---------------------------------------------------------- */

static bool parse_text(const struct option *option, const char *text, void *ret_value)
{
    char **value = ret_value;
    g_free(*value);
    *value = g_strdup(text);
    return true;
}

static char *format_text(const struct option *option, const void *value)
{
    return g_strdup(*(char *const *)value);
}

static bool parse_list(const struct option *option, const char *text, void *ret_value)
{
    return item_list_read(option->list, text, NULL, NULL) && parse_text(option, text, ret_value);
}

#define NAMESPACE_LENGTH 63

/* A label of RFC 1123, as the API server wants it. */
static bool is_namespace(const char *text)
{
    const size_t length = strlen(text);

    return length > 0 && length <= NAMESPACE_LENGTH && text[0] != '-' && text[length - 1] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static bool parse_namespace(const struct option *option, const char *text, void *ret_value)
{
    return (*text ? is_namespace(text) : !*option->fallback) && parse_text(option, text, ret_value);
}

static bool in_bounds(const struct option *option, int64_t value, int64_t *ret_value)
{
    if (value < option->min || value > option->max)
        return false;
    *ret_value = value;
    return true;
}

static bool parse_int(const struct option *option, const char *text, void *ret_value)
{
    int64_t value;
    return read_digits(&text, &value) && !*text && in_bounds(option, value, ret_value);
}

static char *format_int(const struct option *option, const void *value)
{
    return g_strdup_printf("%" G_GINT64_FORMAT, *(const int64_t *)value);
}

static bool parse_bool(const struct option *option, const char *text, void *ret_value)
{
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0)
        return false;
    *(bool *)ret_value = yes;
    return true;
}

static char *format_bool(const struct option *option, const void *value)
{
    return g_strdup(*(const bool *)value ? "true" : "false");
}

/* "1m30s": numbers with units, each unit at most once and in falling order. */
static bool parse_duration(const struct option *option, const char *text, void *ret_value)
{
    int64_t sum = 0, factor = INT64_MAX;
    if (!*text)
        return false;
    while (*text) {
        int64_t value;
        const struct unit *unit;
        if (!read_digits(&text, &value) || !(unit = read_unit(&text, duration_units)) ||
            unit->factor >= factor || __builtin_mul_overflow(value, unit->factor, &value) ||
            __builtin_add_overflow(sum, value, &sum))
            return false;
        factor = unit->factor;
    }
    return in_bounds(option, sum, ret_value);
}

static char *duration_text(int64_t value)
{
    GString *text = g_string_new(NULL);
    for (const struct unit *unit = duration_units; unit->name; unit++) {
        if (value >= unit->factor)
            g_string_append_printf(text, "%" G_GINT64_FORMAT "%s", value / unit->factor,
                                   unit->name);
        value %= unit->factor;
    }
    if (!text->len)
        g_string_append(text, "0s");
    return g_string_free(text, FALSE);
}

static char *format_duration(const struct option *option, const void *value)
{
    return duration_text(*(const int64_t *)value);
}

static bool parse_size(const struct option *option, const char *text, void *ret_value)
{
    int64_t value;
    const struct unit *unit;
    return read_digits(&text, &value) && (unit = read_unit(&text, size_units)) && !*text &&
           !__builtin_mul_overflow(value, unit->factor, &value) &&
           in_bounds(option, value, ret_value);
}

static char *size_text(int64_t value)
{
    const struct unit *unit = size_units;
    while (value % unit->factor != 0 || value < unit->factor) {
        if (unit->factor == 1)
            break;
        unit++;
    }
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", value / unit->factor, unit->name);
}

static char *format_size(const struct option *option, const void *value)
{
    return size_text(*(const int64_t *)value);
}

static bool parse_choice(const struct option *option, const char *text, void *ret_value)
{
    return option_choose(option, text, ret_value);
}

static char *format_choice(const struct option *option, const void *value)
{
    struct choice choice;
    for (size_t i = 0; option->choice(i, &choice); i++) {
        if (choice.value == *(const int64_t *)value)
            return g_strdup(choice.name);
    }
    g_assert_not_reached();
}

static bool parse_address(const struct option *option, const char *text, void *ret_value)
{
    struct address *address = ret_value;
    if ((option->flags & OPTION_CAN_BE_OFF) && strcmp(text, "off") == 0) {
        *address = (struct address){.port = ADDRESS_OFF};
        return true;
    }
    const char *colon = strrchr(text, ':');
    if (!colon)
        return false;
    const char *port_text = colon + 1;
    int64_t port;
    if (!read_digits(&port_text, &port) || *port_text || port > UINT16_MAX)
        return false;
    size_t length = (size_t)(colon - text);
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (strcspn(text, "[]:") < length) {
        return false; /* of an IPv6 address without brackets the end is a guess */
    }
    if (length >= sizeof(address->host))
        return false;
    *address = (struct address){.port = (int32_t)port};
    memcpy(address->host, text, length);
    return true;
}

static char *format_address(const struct option *option, const void *value)
{
    return address_format(value);
}

static bool parse_classes(const struct option *option, const char *text, void *ret_value)
{
    struct classes **value = ret_value;
    g_autoptr(GError) failure = NULL;
    struct classes *classes = read_classes(text, &failure);

    if (failure)
        return false;
    classes_free(*value);
    *value = classes;
    return true;
}

static char *format_classes(const struct option *option, const void *value)
{
    return classes_format(*(struct classes *const *)value);
}

/* --- what is accepted, for people ------------------------------------------------------------- */

static char *accepts_text(const struct option *option)
{
    return g_strdup("text");
}

static char *accepts_namespace(const struct option *option)
{
    return g_strdup_printf(
        "a namespace: at most %d lower-case letters, digits and '-', none of them at an end, "
        "such as 'kube-system'",
        NAMESPACE_LENGTH);
}

static char *accepts_list(const struct option *option)
{
    return item_list_accepts(option->list);
}

static char *accepts_path(const struct option *option)
{
    return g_strdup("a file name");
}

static char *accepts_int(const struct option *option)
{
    return g_strdup_printf("a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                           option->min, option->max);
}

static char *accepts_bool(const struct option *option)
{
    return g_strdup("true or false");
}

static char *accepts_duration(const struct option *option)
{
    g_autofree char *min = duration_text(option->min);
    g_autofree char *max = duration_text(option->max);
    return g_strdup_printf("a duration such as 500ms, 30s or 1m30s, from %s to %s", min, max);
}

static char *accepts_size(const struct option *option)
{
    g_autofree char *min = size_text(option->min);
    g_autofree char *max = size_text(option->max);
    return g_strdup_printf("a size such as 512KiB or 64MiB, from %s to %s", min, max);
}

static char *accepts_choice(const struct option *option)
{
    GString *text = g_string_new(NULL);
    struct choice choice, next;
    for (size_t i = 0; option->choice(i, &choice); i++) {
        if (i > 0)
            g_string_append(text, option->choice(i + 1, &next) ? ", " : " or ");
        g_string_append(text, choice.name);
    }
    return g_string_free(text, FALSE);
}

static char *accepts_address(const struct option *option)
{
    return g_strdup_printf("ADDRESS:PORT with a port from 0 to 65535, such as 0.0.0.0:39999 or "
                           "[::1]:39999%s",
                           (option->flags & OPTION_CAN_BE_OFF) ? ", or off" : "");
}

static char *accepts_classes(const struct option *option)
{
    return g_strdup("'default', or a mapping of classes to their settings, such as "
                    "'{training: {priority-classes: [batch]}}'");
}

/* --- and for programs ------------------------------------------------------------------------ */

static char *pattern_duration(const struct option *option)
{
    GString *text = g_string_new("^(?=.)");
    for (const struct unit *unit = duration_units; unit->name; unit++)
        g_string_append_printf(text, "([0-9]+%s)?", unit->name);
    g_string_append_c(text, '$');
    return g_string_free(text, FALSE);
}

static char *pattern_size(const struct option *option)
{
    GString *text = g_string_new("^[0-9]+(");
    for (const struct unit *unit = size_units; unit->name; unit++)
        g_string_append_printf(text, "%s%s", unit == size_units ? "" : "|", unit->name);
    g_string_append(text, ")$");
    return g_string_free(text, FALSE);
}

static char *pattern_namespace(const struct option *option)
{
    return g_strdup_printf("^([a-z0-9]([-a-z0-9]{0,%d}[a-z0-9])?)%s$", NAMESPACE_LENGTH - 2,
                           *option->fallback ? "" : "?");
}

static char *pattern_address(const struct option *option)
{
    return g_strconcat((option->flags & OPTION_CAN_BE_OFF) ? "^off$|" : "",
                       "^([^\\[\\]:]*|\\[.+\\]):[0-9]+$", NULL);
}

static const struct {
    bool (*parse)(const struct option *option, const char *text, void *ret_value);
    char *(*format)(const struct option *option, const void *value);
    char *(*accepts)(const struct option *option);
    char *(*pattern)(const struct option *option);
} kinds[] = {
    [OPTION_TEXT] = {parse_text, format_text, accepts_text, NULL},
    [OPTION_LIST] = {parse_list, format_text, accepts_list, NULL},
    [OPTION_NAMESPACE] = {parse_namespace, format_text, accepts_namespace, pattern_namespace},
    [OPTION_PATH] = {parse_text, format_text, accepts_path, NULL},
    [OPTION_INT] = {parse_int, format_int, accepts_int, NULL},
    [OPTION_BOOL] = {parse_bool, format_bool, accepts_bool, NULL},
    [OPTION_DURATION] = {parse_duration, format_duration, accepts_duration, pattern_duration},
    [OPTION_SIZE] = {parse_size, format_size, accepts_size, pattern_size},
    [OPTION_CHOICE] = {parse_choice, format_choice, accepts_choice, NULL},
    [OPTION_ADDRESS] = {parse_address, format_address, accepts_address, pattern_address},
    [OPTION_CLASSES] = {parse_classes, format_classes, accepts_classes, NULL},
};

/* An open choice: its name, and then what the option keeps beside the choice. */
static bool parse_open(const struct option *option, const char *text, struct config *config)
{
    struct choice choice;

    for (size_t i = 0; option->rest && option->choice(i, &choice); i++) {
        if (!choice.open || !g_str_has_prefix(text, choice.name))
            continue;
        char **rest =
            (char **)((char *)option_value(option, config) - option->offset + option->rest);
        g_free(*rest);
        *rest = g_strdup(text + strlen(choice.name));
        *(int64_t *)option_value(option, config) = choice.value;
        return true;
    }
    return false;
}

void option_clear(const struct option *option, struct config *config)
{
    char **value = option_value(option, config);
    char **rest = (char **)((char *)value - option->offset + option->rest);

    if (kinds[option->kind].format == format_text)
        g_clear_pointer(value, g_free);
    else if (option->kind == OPTION_CLASSES)
        g_clear_pointer((struct classes **)value, classes_free);
    if (option->rest)
        g_clear_pointer(rest, g_free);
}

bool option_parse(const struct option *option, const char *text, struct config *config,
                  GError **error)
{
    if (parse_open(option, text, config))
        return true;
    return kinds[option->kind].parse(option, text, option_value(option, config)) ||
           refuse(option, text, error);
}

char *option_format(const struct option *option, const struct config *config)
{
    return kinds[option->kind].format(option, option_value(option, config));
}

char *option_accepts(const struct option *option)
{
    return kinds[option->kind].accepts(option);
}

char *option_pattern(const struct option *option)
{
    return kinds[option->kind].pattern ? kinds[option->kind].pattern(option) : NULL;
}
