/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The effective configuration of one invocation: what all options (options/options.h) make
 * of the command line, the environment, the configuration file and the defaults, in that order of
 * precedence. Every value remembers where it came from.
 *
 * A struct config owns its strings. It is filled once and then only read: any thread.
 */
#include "core/section/option.h"
#include "gate/part.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum source {
    SOURCE_DEFAULT,
    SOURCE_FILE,
    SOURCE_ENVIRONMENT,
    SOURCE_FLAG,
};

struct origin {
    enum source source;
    const char *name; /* the environment variable; NULL for other sources */
};

struct config {
    struct settings *settings; /* the values; texts are never NULL: "" where nothing was given */
    struct part_settings parts[PART_ROWS_MAX + 1]; /* those of parts among them */
    GPtrArray *words;       /* const char *: what was given beside options; borrowed */
    GPtrArray *warnings;    /* char *: sentences about what was ignored, for the log */
    struct origin *origins; /* by option_position */
};

/* All borrowed; environment and arguments end with NULL. */
struct command;

struct config_inputs {
    unsigned command;               /* the COMMAND_ bit whose options apply */
    const char *const *arguments;   /* what follows the subcommand */
    const char *const *environment; /* "NAME=value", as environ */
    const struct command *commands; /* all that there are, for those that describe them */
};

/* Reads all sources. Errors are GPULEDGER_ERROR_INVALID or _RANGE (the text names the option, the
 * value and what is accepted) or _IO (the configuration file cannot be read). With --help on the
 * command line nothing else is looked at. */
struct config *config_load(const struct config_inputs *inputs, GError **error);
void config_free(struct config *config);

/* config_section(config, quotas) is a const struct quotas_settings *. */
#define config_section(config, name) settings_of((config)->settings, name)

/* Whether the option of that name was given on the command line. */
bool config_on_command_line(const struct config *config, const char *name);
/* Whether it was given anywhere. */
bool config_has_given(const struct config *config, const char *name);

/* Appends the values of the command's options as YAML that config_load reads, each with its
 * source as a comment. */
void config_print(const struct config *config, unsigned command, GString *text);

/* Appends the JSON Schema (draft 7) of the command's configuration file. It is stricter than
 * config_load where a reader would be misled: text is quoted if it looks like a number, and a key
 * has a value. It is laxer with the bounds of durations and sizes, which patterns cannot hold. */
void config_schema(unsigned command, GString *text);
