/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file's JSON Schema. Source of the keywords: json-schema.org, draft 7. */
#include "options/options.h"
#include "dialect/classes/classes.h"
#include "json/json.h"

#include <string.h>

static const char *const types[][2] = {
    [OPTION_TEXT] = {"string"},
    [OPTION_LIST] = {"string"},
    [OPTION_NAMESPACE] = {"string"},
    [OPTION_PATH] = {"string"},
    [OPTION_INT] = {"integer"},
    [OPTION_BOOL] = {"boolean"},
    [OPTION_DURATION] = {"string"},
    [OPTION_SIZE] = {"string", "integer"}, /* a number of bytes needs no unit */
    [OPTION_CHOICE] = {"string"},
    [OPTION_ADDRESS] = {"string"},
    [OPTION_CLASSES] = {NULL}, /* write_classes */
};

static void write_type(struct json_writer *writer, const struct option *option)
{
    const char *const *type = types[option->kind];
    json_key(writer, "type");
    if (!type[1]) {
        json_string(writer, type[0]);
        return;
    }
    json_begin_array(writer);
    json_string(writer, type[0]);
    json_string(writer, type[1]);
    json_end_array(writer);
}

/* The option's help, as --help has it: what its choices mean, or what it takes. */
static void write_description(struct json_writer *writer, const struct option *option)
{
    g_autoptr(GString) text = g_string_new(option->help);
    struct choice choice;
    if (option->kind == OPTION_CHOICE) {
        for (size_t i = 0; option->choice(i, &choice); i++)
            g_string_append_printf(text, "\n%s%s%s", choice.name, choice.help ? ": " : "",
                                   choice.help ? choice.help : "");
    } else {
        g_autofree char *accepts = option_accepts(option);
        g_string_append_printf(text, "\nTakes %s.", accepts);
    }
    json_key_string(writer, "description", text->str);
}

static void write_limits(struct json_writer *writer, const struct option *option)
{
    g_autofree char *pattern = option_pattern(option);
    struct choice choice;
    if (pattern)
        json_key_string(writer, "pattern", pattern);
    if (option->kind == OPTION_INT || option->kind == OPTION_SIZE) {
        json_key_int(writer, "minimum", option->min);
        json_key_int(writer, "maximum", option->max);
    }
    if (option->kind == OPTION_CHOICE) {
        json_key_array(writer, "enum");
        for (size_t i = 0; option->choice(i, &choice); i++)
            json_string(writer, choice.name);
        json_end_array(writer);
    }
}

static void write_default(struct json_writer *writer, const struct option *option)
{
    if (!*option->fallback)
        return;
    json_key(writer, "default");
    if (option->kind == OPTION_INT || option->kind == OPTION_BOOL)
        json_raw(writer, option->fallback, strlen(option->fallback));
    else
        json_string(writer, option->fallback);
}

static void write_class_setting(struct json_writer *writer, const struct class_setting *setting)
{
    json_key_object(writer, setting->name);
    json_key_string(writer, "description", setting->help);
    json_key_string(writer, "type", setting->list ? "array" : setting->flag ? "boolean" : "string");
    if (setting->list) {
        json_key_object(writer, "items");
        json_key_string(writer, "type", "string");
        json_end_object(writer);
        json_key_int(writer, "maxItems", CLASS_NAMES_MAX);
    }
    if (setting->choices) {
        json_key_array(writer, "enum");
        for (const char *const *choice = setting->choices; *choice; choice++)
            json_string(writer, *choice);
        json_end_array(writer);
    }
    json_end_object(writer);
}

/* "default", or a row for each class, of whatever name. */
static void write_classes(struct json_writer *writer)
{
    json_key_array(writer, "anyOf");
    json_begin_object(writer);
    json_key_string(writer, "type", "string");
    json_key_array(writer, "enum");
    json_string(writer, "");
    json_string(writer, CLASS_DEFAULTS);
    json_end_array(writer);
    json_end_object(writer);
    json_begin_object(writer);
    json_key_string(writer, "type", "object");
    json_key_int(writer, "maxProperties", WORK_CLASSES_MAX);
    json_key_object(writer, "additionalProperties");
    json_key_array(writer, "type");
    json_string(writer, "object");
    json_string(writer, "null");
    json_end_array(writer);
    json_key_bool(writer, "additionalProperties", false);
    json_key_object(writer, "properties");
    for (const struct class_setting *setting = class_settings; setting->name; setting++)
        write_class_setting(writer, setting);
    json_end_object(writer);
    json_end_object(writer);
    json_end_object(writer);
    json_end_array(writer);
}

static void write_property(struct json_writer *writer, const struct option *option)
{
    json_key_object(writer, option->name);
    write_description(writer, option);
    if (option->kind == OPTION_CLASSES)
        write_classes(writer);
    else
        write_type(writer, option);
    write_limits(writer, option);
    write_default(writer, option);
    json_end_object(writer);
}

void config_schema(unsigned command, GString *text)
{
    struct json_writer writer;
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "$schema", "http://json-schema.org/draft-07/schema#");
    json_key_string(&writer, "title", "gpuledger's configuration file");
    json_key_array(&writer, "type");
    json_string(&writer, "object");
    json_string(&writer, "null"); /* a file of comments */
    json_end_array(&writer);
    json_key_bool(&writer, "additionalProperties", false);
    json_key_object(&writer, "properties");
    options_each (option) {
        if ((option->commands & command) && !(option->flags & (OPTION_FLAG_ONLY | OPTION_NO_FILE)))
            write_property(&writer, option);
    }
    json_end_object(&writer);
    json_end_object(&writer);
}
