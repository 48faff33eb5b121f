/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one table of subcommands, and what is written from it and from all options: help texts,
 * the manual page, shell completion.
 */
#include "options/options.h"

#define PROGRAM "gpuledger"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* what was asked for could not be done */
    EXIT_USAGE = 2,  /* it was asked for in a way that cannot be understood */
    EXIT_DIFFERENT =
        3, /* the answer is no: explain, fit, plan, drain; something was found: audit, migrate, replay */
};

struct command {
    const char *name;
    enum command_bit bit;
    const char *words; /* what it takes beside options, as the usage line shows it; "" for none */
    unsigned max_words;
    const char *const *word_choices; /* the words it knows, NULL-terminated; NULL: any */
    const char *summary;             /* half a line */
    const char *description;         /* paragraphs, separated by empty lines */

    /* The configuration has been read. `inputs` lets it be read again. */
    enum exit_code (*run)(const struct config *config, const struct config_inputs *inputs);
};

/* Ends with a row whose name is NULL. */
extern const struct command commands[];

enum exit_code serve_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code nodes_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code pods_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code inspect_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code dialects_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code fit_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code explain_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code audit_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code resume_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code quotas_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code top_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code cordon_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code uncordon_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code drain_command_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code switch_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code migrate_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code plan_command_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code simulate_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code replay_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code certs_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code guard_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code completion_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code manual_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code version_run(const struct config *config, const struct config_inputs *inputs);
enum exit_code help_run(const struct config *config, const struct config_inputs *inputs);

/* One line on standard error: "gpuledger: " and the printf arguments. */
void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* Complains about an error. EXIT_USAGE if it is about what an option says, or about the file that it names:
 * such an error begins with the option. Else EXIT_FAILED. */
enum exit_code complain_of(const GError *failure);
/* The same without the program's name: what it does just now. */
void say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* NULL if there is none of that name. */
const struct command *command_find(const struct command *commands, const char *name);

/* Appends the text of --help: of a command, with all of its options or those that most people need, and of the
 * whole program. */
void help_write_command(const struct command *command, bool all, GString *text);
void help_write_program(const struct command *commands, GString *text);

/* "default 25s; environment GPULEDGER_X or X (…)", or "" where there is nothing to say. Free with
 * g_free. */
char *help_sources(const struct option *option);

/* Usage line without "Usage: ". Free with g_free. */
char *help_usage(const struct command *command);

/* Appends the table of `gpuledger nodes` from an answer of /api/v1/nodes. */
bool nodes_write(const GString *body, bool wide, GString *text, GError **error);

extern const char *const completion_shells[];
extern const char *const guard_policies[]; /* beside the guard itself */

/* What kubectl offers for the last of the words behind "kubectl gpuledger"; it may be empty. NULL ends
 * them. */
void plugin_completion_write(const struct command *commands, const char *const *words, GString *text);
