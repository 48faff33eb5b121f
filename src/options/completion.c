/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts from the tables of commands and options. Names, choices and shells are made
 * of letters, digits and dashes, so that they need no quoting; help texts are quoted per shell.
 */
#include "options/command.h"

#include <stdio.h>
#include <string.h>

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

static void append_commands(const struct command *commands, GString *text)
{
    for (const struct command *command = commands; command->name; command++)
        g_string_append_printf(text, "%s%s", command == commands ? "" : " ", command->name);
}

static void append_choices(const struct option *option, GString *text)
{
    struct choice choice;
    for (size_t i = 0; option->choice(i, &choice); i++)
        g_string_append_printf(text, "%s%s", i ? " " : "", choice.name);
}

static void append_words(const struct command *command, const struct command *commands,
                         GString *text)
{
    for (const char *const *word = command->word_choices; word && *word; word++)
        g_string_append_printf(text, "%s%s", word == command->word_choices ? "" : " ", *word);
    if (command->bit == COMMAND_HELP)
        append_commands(commands, text);
}

/* The first sentence, on one line, without the characters in `banned`. */
static char *brief_help(const struct option *option, const char *banned)
{
    const char *end = strstr(option->help, ". ");
    char *brief =
        end ? g_strndup(option->help, (size_t)(end - option->help)) : g_strdup(option->help);
    size_t length = strlen(brief);
    if (length && brief[length - 1] == '.')
        brief[length - 1] = '\0';
    return g_strdelimit(brief, banned, ' ');
}

/* --- bash ------------------------------------------------------------------------------------ */

/* compgen's argument for the value of an option; NULL where there is nothing to offer. */
static char *bash_values(const struct option *option)
{
    if (option->kind == OPTION_PATH)
        return g_strdup("-f");
    if (option->kind != OPTION_CHOICE)
        return NULL;
    GString *text = g_string_new("-W '");
    append_choices(option, text);
    g_string_append_c(text, '\'');
    return g_string_free(text, FALSE);
}

static void write_bash(const struct command *commands, GString *text)
{
    g_string_append(text, "# bash completion of " PROGRAM "\n"
                          "_" PROGRAM "()\n"
                          "{\n"
                          "    local word=$2 before=$3 command=${COMP_WORDS[1]}\n"
                          "    COMPREPLY=()\n"
                          "    # bash splits at '=': --policy=bin is three words\n"
                          "    if [[ $word == '=' ]]; then\n"
                          "        word=''\n"
                          "    elif [[ $before == '=' ]]; then\n"
                          "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
                          "    fi\n"
                          "    if ((COMP_CWORD == 1)); then\n"
                          "        COMPREPLY=($(compgen -W '");
    append_commands(commands, text);
    g_string_append(text, " --help --version' -- \"$word\"))\n"
                          "        return\n"
                          "    fi\n"
                          "    case $before in\n");
    options_each (option) {
        if (option->kind == OPTION_BOOL)
            continue;
        g_autofree char *values = bash_values(option);
        g_string_append(text, "    ");
        if (option->letter)
            g_string_append_printf(text, "-%c|", option->letter);
        g_string_append_printf(text, "--%s) ", option->name);
        if (values)
            g_string_append_printf(text, "COMPREPLY=($(compgen %s -- \"$word\")); ", values);
        g_string_append(text, "return ;;\n");
    }
    g_string_append(text, "    esac\n"
                          "    case $command in\n");
    for (const struct command *command = commands; command->name; command++) {
        g_string_append_printf(text, "    %s) COMPREPLY=($(compgen -W '", command->name);
        options_each (option) {
            if (option->commands & command->bit)
                g_string_append_printf(text, "--%s ", option->name);
        }
        append_words(command, commands, text);
        g_string_append(text, "' -- \"$word\")) ;;\n");
    }
    g_string_append(text, "    esac\n"
                          "}\n"
                          "complete -o default -F _" PROGRAM " " PROGRAM "\n");
}

/* --- zsh ------------------------------------------------------------------------------------- */

static void zsh_option(const struct option *option, GString *text)
{
    g_autofree char *help = brief_help(option, "'[]:\"`$\\");
    g_autoptr(GString) action = g_string_new(NULL);
    if (option->kind == OPTION_PATH) {
        g_string_append(action, ":file:_files");
    } else if (option->kind == OPTION_CHOICE) {
        g_string_append_printf(action, ":%s:(", option->name);
        append_choices(option, action);
        g_string_append_c(action, ')');
    } else if (option->metavar) {
        g_string_append_printf(action, ":%s:", option->name);
    }
    if (option->letter)
        g_string_append_printf(text, " \\\n            '-%c[%s]%s'", option->letter, help,
                               action->str);
    g_string_append_printf(text, " \\\n            '--%s%s[%s]%s'", option->name,
                           option->metavar ? "=" : "", help, action->str);
}

static void write_zsh(const struct command *commands, GString *text)
{
    g_string_append(text, "#compdef " PROGRAM "\n"
                          "_" PROGRAM "()\n"
                          "{\n"
                          "    if ((CURRENT == 2)); then\n"
                          "        local -a names=(\n");
    for (const struct command *command = commands; command->name; command++) {
        g_autofree char *summary = g_strdup(command->summary);
        g_string_append_printf(text, "            '%s:%s'\n", command->name,
                               g_strdelimit(summary, "':\\", ' '));
    }
    g_string_append(text, "        )\n"
                          "        _describe command names\n"
                          "        return\n"
                          "    fi\n"
                          "    local command=${words[2]}\n"
                          "    shift words\n"
                          "    ((CURRENT--))\n"
                          "    case $command in\n");
    for (const struct command *command = commands; command->name; command++) {
        g_string_append_printf(text, "    %s)\n        _arguments -s", command->name);
        options_each (option) {
            if (option->commands & command->bit)
                zsh_option(option, text);
        }
        if (command->word_choices || command->bit == COMMAND_HELP) {
            g_string_append(text, " \\\n            '1:word:(");
            append_words(command, commands, text);
            g_string_append(text, ")'");
        }
        g_string_append(text, " ;;\n");
    }
    g_string_append(text, "    esac\n"
                          "}\n"
                          "compdef _" PROGRAM " " PROGRAM "\n");
}

/* --- fish ------------------------------------------------------------------------------------ */

static void fish_option(const struct command *command, const struct option *option, GString *text)
{
    g_autofree char *help = brief_help(option, "'\\");
    g_string_append_printf(text,
                           "complete -c " PROGRAM " -n '__fish_seen_subcommand_from %s' "
                           "-l %s",
                           command->name, option->name);
    if (option->letter)
        g_string_append_printf(text, " -s %c", option->letter);
    if (option->kind == OPTION_PATH) {
        g_string_append(text, " -r -F");
    } else if (option->kind == OPTION_CHOICE) {
        g_string_append(text, " -x -a '");
        append_choices(option, text);
        g_string_append_c(text, '\'');
    } else if (option->metavar) {
        g_string_append(text, " -x");
    }
    g_string_append_printf(text, " -d '%s'\n", help);
}

static void write_fish(const struct command *commands, GString *text)
{
    g_string_append(text, "# fish completion of " PROGRAM "\n"
                          "complete -c " PROGRAM " -f\n");
    for (const struct command *command = commands; command->name; command++) {
        g_autofree char *summary = g_strdup(command->summary);
        g_string_append_printf(text,
                               "complete -c " PROGRAM " -n __fish_use_subcommand -a %s -d '%s'\n",
                               command->name, g_strdelimit(summary, "'\\", ' '));
        options_each (option) {
            if (option->commands & command->bit)
                fish_option(command, option, text);
        }
        if (command->word_choices || command->bit == COMMAND_HELP) {
            g_string_append_printf(
                text, "complete -c " PROGRAM " -n '__fish_seen_subcommand_from %s' -a '",
                command->name);
            append_words(command, commands, text);
            g_string_append(text, "'\n");
        }
    }
}

static const struct {
    const char *name;
    void (*write)(const struct command *commands, GString *text);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

enum exit_code completion_run(const struct config *config, const struct config_inputs *inputs)
{
    const char *name = config->words->len ? config->words->pdata[0] : NULL;
    if (!name) {
        complain("for which shell? '" PROGRAM " completion bash', zsh or fish");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(shells); i++) {
        if (strcmp(shells[i].name, name) == 0) {
            g_autoptr(GString) text = g_string_new(NULL);
            shells[i].write(inputs->commands, text);
            fputs(text->str, stdout);
            return EXIT_OK;
        }
    }
    return EXIT_USAGE; /* main has complained */
}
