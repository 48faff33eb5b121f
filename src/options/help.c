/* SPDX-License-Identifier: Apache-2.0 */
#include "options/command.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80

/* Appends text broken at spaces so that lines, indented by `indent`, stay within 80 columns. */
static void wrap(GString *text, const char *paragraph, unsigned indent)
{
    size_t column = 0;
    while (*paragraph) {
        size_t length = strcspn(paragraph, " \n");
        if (column > 0 && column + 1 + length > COLUMNS) {
            g_string_append_c(text, '\n');
            column = 0;
        }
        if (column == 0) {
            g_string_append_printf(text, "%*s", (int)indent, "");
            column = indent;
        } else {
            g_string_append_c(text, ' ');
            column++;
        }
        g_string_append_len(text, paragraph, (gssize)length);
        column += length;
        paragraph += length;
        if (g_str_has_prefix(paragraph, "\n\n")) {
            g_string_append(text, "\n\n");
            column = 0;
        }
        paragraph += strspn(paragraph, " \n");
    }
    g_string_append_c(text, '\n');
}

char *help_sources(const struct option *option)
{
    GString *text = g_string_new(NULL);
    g_autofree char *variable = option_variable(option);
    if (*option->fallback && option->kind != OPTION_BOOL && !(option->flags & OPTION_REQUIRED))
        g_string_append_printf(text, "default %s", option->fallback);
    if (variable)
        g_string_append_printf(text, "%senvironment %s", text->len ? "; " : "", variable);
    if (option->alias)
        g_string_append_printf(text, " or %s (%s)", option->alias, option->alias_help);
    if (option->flags & OPTION_LIVE)
        g_string_append(text, "; SIGHUP applies a change");
    return g_string_free(text, FALSE);
}

char *help_usage(const struct command *command)
{
    return g_strconcat(PROGRAM, " ", command->name, " [OPTION]...", *command->words ? " " : "",
                       command->words, NULL);
}

static void write_option(const struct option *option, GString *text)
{
    g_string_append(text, option->letter ? "  -" : "      --");
    if (option->letter)
        g_string_append_printf(text, "%c, --", option->letter);
    g_string_append(text, option->name);
    if (option->metavar)
        g_string_append_printf(text, " %s", option->metavar);
    g_string_append_c(text, '\n');
    wrap(text, option->help, 10);

    struct choice choice;
    for (size_t i = 0; option->kind == OPTION_CHOICE && option->choice(i, &choice); i++) {
        g_autofree char *line =
            choice.help ? g_strdup_printf("%s: %s", choice.name, choice.help) : NULL;
        wrap(text, line ? line : choice.name, 14);
    }
    g_autofree char *sources = help_sources(option);
    if (*sources) {
        g_autofree char *line = g_strdup_printf("[%s]", sources);
        wrap(text, line, 10);
    }
}

/* Serve has more options than anybody reads. */
static bool is_shown(const struct option *option, const struct command *command, bool all)
{
    return (option->commands & command->bit) &&
           (all || command->bit != COMMAND_SERVE || (option->flags & OPTION_COMMON));
}

static void write_section(const struct section *section, const struct command *command, bool all,
                          GString *text)
{
    bool headed = false;

    for (size_t i = 0; i < section->n_rows; i++) {
        if (!is_shown(&section->rows[i], command, all))
            continue;
        if (!headed)
            g_string_append_printf(text, "\n%s:\n", section->title);
        headed = true;
        write_option(&section->rows[i], text);
    }
}

void help_write_command(const struct command *command, bool all, GString *text)
{
    g_autofree char *usage = help_usage(command);
    g_string_append_printf(text, "Usage: %s\n\n", usage);
    wrap(text, command->description, 0);
    for (size_t i = 0; sections[i]; i++)
        write_section(sections[i], command, all, text);
    if (command->bit == COMMAND_SERVE && !all)
        g_string_append(text, "\nThese are the options that most people need; '" PROGRAM
                              " serve --help-all' has all.\n");
}

void help_write_program(const struct command *commands, GString *text)
{
    g_string_append(text, "Usage: " PROGRAM " COMMAND [OPTION]...\n\n");
    wrap(text,
         "Shares GPUs between pods, card by card: a kube-scheduler extender with a ledger of who "
         "holds how much of which card.",
         0);
    g_string_append(text, "\nCommands:\n");
    for (const struct command *command = commands; command->name; command++)
        g_string_append_printf(text, "  %-12s %s\n", command->name, command->summary);
    g_string_append(text, "\nWithout a cluster:\n"
                          "  " PROGRAM " serve --snapshot examples/snapshot.json\n"
                          "In one:\n"
                          "  " PROGRAM " certs | kubectl apply --server-side -f -\n"
                          "  kubectl apply -k manifests/base\n"
                          "\n'" PROGRAM " COMMAND --help' explains a command and its options.\n"
                          "Exit status: 0 done, 1 failed, 2 not understood, 3 the answer is no.\n");
}

const struct command *command_find(const struct command *commands, const char *name)
{
    for (const struct command *command = commands; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

enum exit_code help_run(const struct config *config, const struct config_inputs *inputs)
{
    const char *name = config->words->len ? config->words->pdata[0] : NULL;
    const struct command *command = name ? command_find(inputs->commands, name) : NULL;
    if (name && !command) {
        complain("there is no command '%s' to explain; '" PROGRAM " help' lists all", name);
        return EXIT_USAGE;
    }
    g_autoptr(GString) text = g_string_new(NULL);
    if (command)
        help_write_command(command, false, text);
    else
        help_write_program(inputs->commands, text);
    fputs(text->str, stdout);
    return EXIT_OK;
}
