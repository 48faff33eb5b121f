/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, in the man(7) macros, from the tables of commands and options. */
#include "base/version.h"
#include "options/command.h"

#include <stdio.h>
#include <string.h>

/* Text as roff shows it: '-' stays a hyphen that can be copied, '.' and ''' begin no request. */
static void append_escaped(GString *text, const char *plain)
{
    for (; *plain; plain++) {
        bool line_start = text->len == 0 || text->str[text->len - 1] == '\n';
        if (line_start && (*plain == '.' || *plain == '\''))
            g_string_append(text, "\\&");
        if (*plain == '\\')
            g_string_append(text, "\\e");
        else if (*plain == '-')
            g_string_append(text, "\\-");
        else
            g_string_append_c(text, *plain);
    }
}

static void append_paragraphs(GString *text, const char *paragraphs)
{
    g_auto(GStrv) parts = g_strsplit(paragraphs, "\n\n", -1);
    for (char **part = parts; *part; part++) {
        if (part != parts)
            g_string_append(text, ".PP\n");
        append_escaped(text, *part);
        g_string_append_c(text, '\n');
    }
}

static void append_option(GString *text, const struct option *option)
{
    g_string_append(text, ".TP\n\\fB");
    if (option->letter)
        g_string_append_printf(text, "\\-%c\\fR, \\fB", option->letter);
    g_string_append(text, "\\-\\-");
    append_escaped(text, option->name);
    g_string_append(text, "\\fR");
    if (option->metavar)
        g_string_append_printf(text, " \\fI%s\\fR", option->metavar);
    g_string_append_c(text, '\n');
    append_escaped(text, option->help);
    g_string_append_c(text, '\n');
    struct choice choice;
    for (size_t i = 0; option->kind == OPTION_CHOICE && option->choice(i, &choice); i++) {
        g_string_append(text, ".br\n\\fB");
        append_escaped(text, choice.name);
        g_string_append(text, "\\fR");
        if (choice.help) {
            g_string_append(text, ": ");
            append_escaped(text, choice.help);
        }
        g_string_append_c(text, '\n');
    }
    g_autofree char *sources = help_sources(option);
    if (*sources) {
        g_string_append(text, ".br\n[");
        append_escaped(text, sources);
        g_string_append(text, "]\n");
    }
}

static void append_command(GString *text, const struct command *command)
{
    g_autofree char *usage = help_usage(command);
    g_string_append(text, ".SS ");
    append_escaped(text, usage);
    g_string_append_c(text, '\n');
    append_paragraphs(text, command->description);
    options_each (option) {
        /* What every command takes is said once. */
        if ((option->commands & command->bit) && option->commands != COMMAND_ANY)
            append_option(text, option);
    }
}

enum exit_code manual_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text,
                           ".TH GPULEDGER 1 \"\" \"" PROGRAM " %s\" \"User Commands\"\n"
                           ".SH NAME\n" PROGRAM " \\- shares GPUs between pods, card by card\n"
                           ".SH SYNOPSIS\n",
                           version_text);
    for (const struct command *command = inputs->commands; command->name; command++) {
        g_string_append_printf(text, "%s\\fB" PROGRAM " %s\\fR [\\fIOPTION\\fR]... ",
                               command == inputs->commands ? "" : ".br\n", command->name);
        append_escaped(text, command->words);
        g_string_append_c(text, '\n');
    }
    g_string_append(text, ".SH DESCRIPTION\n");
    append_paragraphs(
        text,
        "A kube-scheduler extender with a ledger of who holds how much of which GPU.\n\n"
        "A value comes from the command line, else from the environment, else from the file "
        "named by --config, else it is the default. In the file, keys are the long names of the "
        "options without the dashes. serve --print-config shows each value and its source.");
    g_string_append(text, ".SH COMMANDS\n");
    for (const struct command *command = inputs->commands; command->name; command++)
        append_command(text, command);
    g_string_append(text, ".SH EVERY COMMAND\n");
    options_each (option) {
        if (option->commands == COMMAND_ANY)
            append_option(text, option);
    }
    g_string_append(text, ".SH ENVIRONMENT\n"
                          "Beside the variables named above, those of the extender that this one "
                          "replaces are understood.\n");
    for (const struct note *ignored = ignored_variables; ignored->name; ignored++) {
        g_string_append_printf(text, ".TP\n\\fB%s\\fR\nHas no effect: ", ignored->name);
        append_escaped(text, ignored->why);
        g_string_append(text, "\n");
    }
    g_string_append(text, ".SH EXIT STATUS\n"
                          ".TP\n0\nDone; for serve: ended by a signal, everything answered.\n"
                          ".TP\n1\nFailed; standard error says why.\n"
                          ".TP\n2\nThe command line, the environment or the configuration file "
                          "is not understood.\n"
                          ".TP\n3\nFor audit: there are differences.\n");
    fputs(text->str, stdout);
    return EXIT_OK;
}
