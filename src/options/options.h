/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All options: the rows of all sections (core/section/section.h), and their values as text. Command line,
 * environment, configuration file, --help, the manual page, shell completion and --print-config are made
 * from the rows: a new row is complete. Constant data and pure functions: any thread.
 */
#include "options/config.h"
#include "core/section/option.h"

/* All sections, by rank; src/options/sections.py writes them. Ends with NULL. */
extern const struct section *const sections[];

/* All rows of all sections, in order: the one after `option`, the first for NULL, NULL after the last. */
const struct option *option_next(const struct option *option);
#define options_each(row)                                                                          \
    for (const struct option *row = option_next(NULL); row; row = option_next(row))

/* The section of a row. */
const struct section *option_section(const struct option *option);

/* NULL if the commands have none of that name. */
const struct option *option_find(const char *name, unsigned commands);

/* Its position among all rows, which is also that of its origin in struct config. */
size_t option_position(const struct option *option);

/* The environment variable, or NULL if it has none. Free with g_free. */
char *option_variable(const struct option *option);

/* Its member, of the kind's type. */
void *option_value(const struct option *option, const struct config *config);
/* Frees what the member points to. */
void option_clear(const struct option *option, struct config *config);

/* Sets the option's member; the error quotes the text and says what is accepted, and leaves it to
 * the caller to say where the text stood. */
bool option_parse(const struct option *option, const char *text, struct config *config,
                  GError **error);

/* The value as option_parse reads it. Free with g_free. */
char *option_format(const struct option *option, const struct config *config);

/* What option_parse accepts, to follow "expected ". Free with g_free. */
char *option_accepts(const struct option *option);

/* The same as a regular expression (ECMA 262), bounds aside; NULL where the kind says it all. Free
 * with g_free. */
char *option_pattern(const struct option *option);

/* A name that is still met, and what to say of it. */
struct note {
    const char *name;
    const char *why;
};

/* Variables of the replaced extender that are understood but change nothing; ends with NULL. */
extern const struct note ignored_variables[];

/* Options that there were once, and what to do instead; ends with NULL. */
extern const struct note gone_options[];

/* What to do instead of the option of that name; NULL: there never was one. */
const char *option_gone(const char *name);
