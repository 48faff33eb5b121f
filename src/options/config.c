/* SPDX-License-Identifier: Apache-2.0 */
#include "options/config.h"

#include "core/fail.h"
#include "dialect/classes/classes.h"
#include "options/nearest.h"
#include "options/options.h"
#include "base/small_file.h"
#include "kube/yaml_document.h"
#include "json/json.h"
#include "gang/gangs_section.h"
#include "dialect/dialects_section.h"
#include "store/seals/seals_section.h"
#include "options/cluster_section.h"
#include "options/process_section.h"

#include <string.h>

#define OWN_PREFIX "GPULEDGER_"
#define FILE_MAX (1 << 20)

/* One option as the command line gives it. */
struct given {
    const struct option *option;
    const char *text;
};

static struct config *config_new(void)
{
    struct config *config = g_new0(struct config, 1);
    size_t count = 0;

    config->settings = settings_new(sections);
    for (size_t i = 0, n = 0; parts_table[i]; i++) {
        const struct section *section = parts_table[i]->section;
        if (section)
            config->parts[n++] =
                (struct part_settings){parts_table[i], settings_block(config->settings, section)};
    }
    config->words = g_ptr_array_new();
    config->warnings = g_ptr_array_new_with_free_func(g_free);
    options_each (option) {
        g_autoptr(GError) error = NULL;
        if (!option_parse(option, option->fallback, config, &error))
            g_error("default of --%s: %s", option->name, error->message);
        count++;
    }
    config->origins = g_new0(struct origin, count);
    return config;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    options_each (option)
        option_clear(option, config);
    settings_free(config->settings);
    g_free(config->origins);
    g_ptr_array_unref(config->words);
    g_ptr_array_unref(config->warnings);
    g_free(config);
}

/* SOURCE_DEFAULT for a name that no option has. Several commands may have one of the same name. */
static enum source source_of(const struct config *config, const char *name)
{
    enum source source = SOURCE_DEFAULT;

    options_each (option) {
        if (strcmp(option->name, name) == 0)
            source = MAX(source, config->origins[option_position(option)].source);
    }
    return source;
}

bool config_on_command_line(const struct config *config, const char *name)
{
    return source_of(config, name) == SOURCE_FLAG;
}

bool config_has_given(const struct config *config, const char *name)
{
    return source_of(config, name) != SOURCE_DEFAULT;
}

static void set_origin(struct config *config, const struct option *option, enum source source,
                       const char *name)
{
    config->origins[option_position(option)] = (struct origin){source, name};
}

/* --- the command line ------------------------------------------------------------------------ */

static bool unknown_option(const char *spelling, size_t length, unsigned command, GError **error)
{
    g_autofree char *word = g_strndup(spelling, length);
    const char *all = command & COMMAND_SERVE ? "--help-all" : "--help";
    const char *instead = option_gone(word + strspn(word, "-"));
    if (instead)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "option '%s' is gone: %s", word, instead);
    struct nearest nearest = {.word = word + strspn(word, "-")};
    options_each (option) {
        if (option->commands & command)
            nearest_offer(&nearest, option->name);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     nearest.match ? "unknown option '%s', did you mean '--%s'? See %s"
                                   : "unknown option '%s'; %s lists all",
                     word, nearest.match ? nearest.match : all, all);
}

static const struct option *find_letter(char letter, unsigned commands)
{
    options_each (option) {
        if ((option->commands & commands) && option->letter == letter)
            return option;
    }
    return NULL;
}

/* Reads the option at *cursor and moves on; its value may be the argument that follows. */
static bool read_option(const char *const **cursor, unsigned command, struct given *ret_given,
                        GError **error)
{
    const char *argument = *(*cursor)++;
    const struct option *option;
    const char *text;
    size_t length;
    if (argument[1] == '-') {
        length = strcspn(argument, "=");
        g_autofree char *name = g_strndup(argument + 2, length - 2);
        option = option_find(name, command);
        text = argument[length] ? argument + length + 1 : NULL;
    } else {
        length = 2;
        option = find_letter(argument[1], command);
        text = argument[2] ? argument + 2 + (argument[2] == '=') : NULL;
    }
    if (!option)
        return unknown_option(argument, length, command, error);
    if (!text && option->kind == OPTION_BOOL)
        text = "true";
    else if (!text)
        text = **cursor ? *(*cursor)++ : NULL;
    if (!text) {
        g_autofree char *accepts = option_accepts(option);
        return fail_with(error, GPULEDGER_ERROR_INVALID, "option '--%s' needs a value: %s",
                         option->name, accepts);
    }
    *ret_given = (struct given){option, text};
    return true;
}

static bool read_arguments(struct config *config, const struct config_inputs *inputs, GArray *given,
                           GError **error)
{
    const char *const *cursor = inputs->arguments;
    while (*cursor) {
        if (strcmp(*cursor, "--") == 0) {
            while (*++cursor)
                g_ptr_array_add(config->words, (void *)*cursor);
        } else if (**cursor == '-' && (*cursor)[1]) {
            struct given one;
            if (!read_option(&cursor, inputs->command, &one, error))
                return false;
            g_array_append_val(given, one);
        } else {
            g_ptr_array_add(config->words, (void *)*cursor++);
        }
    }
    return true;
}

/* Whether a name is missing: none is given, and there is none to take back. A variable of a script that is not
 * set would turn a saved cluster into the live one, or TLS off, without a word. */
static bool lacks_name(const struct config *config, const struct given *one)
{
    g_autofree char *before = option_format(one->option, config);

    return one->option->kind == OPTION_PATH && !*one->text && !*before;
}

static bool apply_arguments(struct config *config, const GArray *given, GError **error)
{
    for (guint i = 0; i < given->len; i++) {
        const struct given *one = &g_array_index(given, struct given, i);
        if (lacks_name(config, one))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "option '--%s': the name is empty; give one, or leave the option out",
                             one->option->name);
        const bool again = (one->option->flags & OPTION_MANY) &&
                           config->origins[option_position(one->option)].source == SOURCE_FLAG;
        g_autofree char *before = again ? option_format(one->option, config) : NULL;
        g_autofree char *text = again ? g_strconcat(before, ",", one->text, NULL) : NULL;
        if (!option_parse(one->option, again ? text : one->text, config, error))
            return fail_within(error, "option '--%s': ", one->option->name);
        set_origin(config, one->option, SOURCE_FLAG, NULL);
    }
    return true;
}

/* --- the environment -------------------------------------------------------------------------- */

/* A variable that is set to nothing counts as not set: manifests often leave one empty. */
static const char *lookup(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    }
    return NULL;
}

/* What another program's variable says. */
static bool apply_alias(struct config *config, const struct option *option, const char *text,
                        GError **error)
{
    if (option->alias_base && config->origins[option_position(option)].source == SOURCE_DEFAULT)
        option_parse(option, option->alias_base, config, NULL);
    if (option->read_alias)
        return option->read_alias(option, text, option_value(option, config), error);
    return option_parse(option, text, config, error);
}

static bool apply_variable(struct config *config, const struct option *option,
                           const char *const *environment, GError **error)
{
    g_autofree char *own = option_variable(option);
    const char *text = own ? lookup(environment, own) : NULL;
    const bool foreign = !text && option->alias;
    const char *name = foreign ? option->alias : own;

    if (foreign)
        text = lookup(environment, option->alias);
    if (!text)
        return true;
    if (!(foreign ? apply_alias(config, option, text, error)
                  : option_parse(option, text, config, error)))
        return fail_within(error, "environment variable '%s': ", name);
    set_origin(config, option, SOURCE_ENVIRONMENT, g_intern_string(name));
    return true;
}

/* Whoever set one relies on it. */
static bool check_gone(const char *const *environment, GError **error)
{
    for (const struct note *gone = gone_options; gone->name; gone++) {
        g_autofree char *name = option_variable(&(struct option){.name = gone->name});
        if (lookup(environment, name))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "environment variable '%s' is gone: %s", name, gone->why);
    }
    return true;
}

static bool apply_environment(struct config *config, const struct config_inputs *inputs,
                              GError **error)
{
    if (!check_gone(inputs->environment, error))
        return false;
    options_each (option) {
        if ((option->commands & inputs->command) &&
            !apply_variable(config, option, inputs->environment, error))
            return false;
    }
    return true;
}

/* Of a Service named gpuledger, kubelet tells every pod of its namespace in variables with our
 * prefix: GPULEDGER_SERVICE_HOST, GPULEDGER_PORT, GPULEDGER_PORT_39999_TCP … */
static bool is_service_variable(const char *name)
{
    return strcmp(name, OWN_PREFIX "PORT") == 0 || g_str_has_prefix(name, OWN_PREFIX "PORT_") ||
           g_str_has_prefix(name, OWN_PREFIX "SERVICE_");
}

static void note_variables(struct config *config, const char *const *environment)
{
    for (const char *const *entry = environment; *entry; entry++) {
        g_autofree char *name = g_strndup(*entry, strcspn(*entry, "="));
        bool known = !g_str_has_prefix(name, OWN_PREFIX) || is_service_variable(name);
        struct nearest nearest = {.word = known ? "" : name + strlen(OWN_PREFIX)};
        g_autoptr(GPtrArray) variables = g_ptr_array_new_with_free_func(g_free);
        options_each (option) {
            char *variable = known ? NULL : option_variable(option);
            if (!variable)
                continue;
            g_ptr_array_add(variables, variable);
            known = strcmp(variable, name) == 0;
            nearest_offer(&nearest, variable + strlen(OWN_PREFIX));
        }
        if (known)
            continue;
        g_ptr_array_add(config->warnings,
                        nearest.match
                            ? g_strdup_printf("environment variable '%s' is not known, did you "
                                              "mean '" OWN_PREFIX "%s'?",
                                              name, nearest.match)
                            : g_strdup_printf("environment variable '%s' is not known", name));
    }
    for (const struct note *ignored = ignored_variables; ignored->name; ignored++) {
        if (lookup(environment, ignored->name))
            g_ptr_array_add(config->warnings,
                            g_strdup_printf("environment variable '%s' has no effect: %s",
                                            ignored->name, ignored->why));
    }
}

/* --- the configuration file --------------------------------------------------------------- */

/* A YAML scalar as an option's text; NULL for what is none. */
static char *scalar_text(const cJSON *value)
{
    if (cJSON_IsString(value))
        return g_strdup(value->valuestring);
    if (cJSON_IsBool(value))
        return g_strdup(cJSON_IsTrue(value) ? "true" : "false");
    if (cJSON_IsNumber(value))
        return g_strdup_printf("%.15g", value->valuedouble);
    return NULL;
}

static bool apply_entry(struct config *config, const cJSON *entry, unsigned command, GError **error)
{
    const struct option *option = option_find(entry->string, command);
    if (!option) {
        const char *instead = option_gone(entry->string);
        if (instead)
            return fail_with(error, GPULEDGER_ERROR_INVALID, "key '%s' is gone: %s", entry->string,
                             instead);
        struct nearest nearest = {.word = entry->string};
        options_each (other) {
            if ((other->commands & command) &&
                !(other->flags & (OPTION_FLAG_ONLY | OPTION_NO_FILE)))
                nearest_offer(&nearest, other->name);
        }
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         nearest.match ? "unknown key '%s', did you mean '%s'?"
                                       : "unknown key '%s'; keys are the long names of options",
                         entry->string, nearest.match);
    }
    if (option->flags & (OPTION_FLAG_ONLY | OPTION_NO_FILE))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "key '%s' has no meaning in a file; give '--%s' on the command line",
                         option->name, option->name);
    if (cJSON_IsNull(entry)) /* "key:" with nothing behind it: as if it were not there */
        return true;
    g_autofree char *text = option->kind == OPTION_CLASSES && cJSON_IsObject(entry)
                                ? json_format(entry)
                                : scalar_text(entry);
    if (!text) {
        g_autofree char *accepts = option_accepts(option);
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "key '%s': a list or mapping is not valid, expected %s", option->name,
                         accepts);
    }
    if (!option_parse(option, text, config, error))
        return fail_within(error, "key '%s': ", option->name);
    set_origin(config, option, SOURCE_FILE, NULL);
    return true;
}

static bool apply_document(struct config *config, const cJSON *document, unsigned command,
                           GError **error)
{
    if (cJSON_IsNull(document))
        return true;
    if (!cJSON_IsObject(document))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "expected keys with values, such as 'log-level: debug'");
    const cJSON *entry;
    cJSON_ArrayForEach (entry, document) {
        if (!apply_entry(config, entry, command, error))
            return false;
    }
    return true;
}

static bool apply_file(struct config *config, unsigned command, GError **error)
{
    const struct process_settings *process = config_section(config, process);
    size_t length;
    g_autofree char *text = small_file_read(process->file, FILE_MAX, &length, error);
    if (!text)
        return fail_within(error, "option '--config': ");
    cJSON *document = yaml_load(text, length, error);
    bool ok = document && apply_document(config, document, command, error);
    cJSON_Delete(document);
    if (!ok)
        g_prefix_error(error, "file '%s': ", process->file);
    return ok;
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static bool is_as_ever(const struct config *config, const struct option *option)
{
    g_autofree char *value = option_format(option, config);

    return g_str_equal(value, option->fallback);
}

/* What does nothing alone, which nobody would notice. */
static void note_idle(struct config *config)
{
    options_each (option) {
        if (!(option->commands & COMMAND_SERVE) || is_as_ever(config, option))
            continue;
        if (option->needs && is_as_ever(config, option_find(option->needs, COMMAND_SERVE)))
            g_ptr_array_add(config->warnings,
                            g_strdup_printf("'%s' has no effect without '%s': set that, too",
                                            option->name, option->needs));
        if ((option->flags & OPTION_NEEDS_API) && *config_section(config, cluster)->snapshot)
            g_ptr_array_add(config->warnings,
                            g_strdup_printf("'%s' has no effect with 'snapshot': it needs an API "
                                            "server",
                                            option->name));
    }
}

/* KUBECONFIG is set for kubectl's sake; naming a snapshot is the clearer wish. */
static void prefer_snapshot(struct config *config)
{
    const struct option *option = option_find("kubeconfig", COMMAND_SERVE);
    const struct origin *origin = &config->origins[option_position(option)];

    if (!*config_section(config, cluster)->snapshot || g_strcmp0(origin->name, option->alias) != 0)
        return;
    option_parse(option, "", config, NULL);
    set_origin(config, option, SOURCE_DEFAULT, NULL);
}

static bool check(struct config *config, GError **error)
{
    prefer_snapshot(config);
    for (size_t i = 0; sections[i]; i++) {
        if (sections[i]->check && !sections[i]->check(config->settings, error))
            return false;
    }
    note_idle(config);
    return true;
}

/* The file's name is itself an option, so flag and variable are asked before the file is read. */
static bool find_file(struct config *config, const struct config_inputs *inputs,
                      const GArray *given, GError **error)
{
    const struct option *option = option_find("config", inputs->command);
    if (!option)
        return true;
    if (!apply_variable(config, option, inputs->environment, error))
        return false;
    for (guint i = 0; i < given->len; i++) {
        const struct given *one = &g_array_index(given, struct given, i);
        if (one->option == option && !option_parse(option, one->text, config, error))
            return false;
    }
    return true;
}

/* "-", as for kubectl: what is piped in. */
static void mean_standard_input(struct config *config, unsigned command)
{
    options_each (option) {
        if (!(option->flags & OPTION_INPUT) || !(option->commands & command))
            continue;
        g_autofree char *value = option_format(option, config);
        if (g_str_equal(value, "-"))
            option_parse(option, "/dev/stdin", config, NULL);
    }
}

static bool load(struct config *config, const struct config_inputs *inputs, GError **error)
{
    g_autoptr(GArray) given = g_array_new(FALSE, FALSE, sizeof(struct given));
    if (!read_arguments(config, inputs, given, error))
        return false;
    for (guint i = 0; i < given->len; i++) {
        const struct given *one = &g_array_index(given, struct given, i);
        if (g_str_equal(one->option->name, "help") || g_str_equal(one->option->name, "help-all")) {
            option_parse(one->option, "true", config, NULL);
            return true;
        }
    }
    note_variables(config, inputs->environment);
    if (!find_file(config, inputs, given, error) ||
        (*config_section(config, process)->file && !apply_file(config, inputs->command, error)) ||
        !apply_environment(config, inputs, error) || !apply_arguments(config, given, error))
        return false;
    mean_standard_input(config, inputs->command);
    return !(inputs->command & COMMAND_SERVE) || check(config, error);
}

struct config *config_load(const struct config_inputs *inputs, GError **error)
{
    struct config *config = config_new();
    if (!load(config, inputs, error))
        g_clear_pointer(&config, config_free);
    return config;
}

static void append_origin(const struct config *config, const struct option *option, GString *text)
{
    const struct origin *origin = &config->origins[option_position(option)];
    switch (origin->source) {
    case SOURCE_DEFAULT:
        g_string_append(text, "default");
        break;
    case SOURCE_FILE:
        g_string_append_printf(text, "file %s", config_section(config, process)->file);
        break;
    case SOURCE_ENVIRONMENT:
        g_string_append_printf(text, "environment %s", origin->name);
        break;
    case SOURCE_FLAG:
        g_string_append(text, "command line");
        break;
    }
}

/* A JSON string is a YAML string, but for characters that YAML wants escaped and JSON does not.
 * Source of the set: YAML 1.1, section 4.1. */
static void append_string(GString *line, const char *value)
{
    g_autoptr(GString) json = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, json);
    json_string(&writer, value);
    for (const char *at = json->str; *at; at = g_utf8_next_char(at)) {
        const gunichar character = g_utf8_get_char(at);

        if ((character >= 0x7f && character < 0xa0) || character == 0xfeff ||
            character == 0xfffe || character == 0xffff)
            g_string_append_printf(line, "\\u%04x", character);
        else
            g_string_append_unichar(line, character);
    }
}

void config_print(const struct config *config, unsigned command, GString *text)
{
    options_each (option) {
        if (!(option->commands & command) || (option->flags & (OPTION_FLAG_ONLY | OPTION_NO_FILE)))
            continue;
        g_autofree char *value = option_format(option, config);
        g_autoptr(GString) line = g_string_new(option->name);
        g_string_append(line, ": ");
        if (option->kind == OPTION_INT || option->kind == OPTION_BOOL ||
            (option->kind == OPTION_CLASSES && *value))
            g_string_append(line, value);
        else
            append_string(line, value);
        g_string_append_printf(text, "%-48s # ", line->str);
        append_origin(config, option, text);
        g_string_append_c(text, '\n');
    }
}
