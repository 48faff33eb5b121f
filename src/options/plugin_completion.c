/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubectl offers behind "kubectl gpuledger". Source of the protocol: kubectl's help of "plugin" and
 * cobra's completions: a line for each candidate, then ":" and a number, 4 for "no file names", 0 for
 * file names as well.
 */
#include "options/command.h"

#include <string.h>

#define FILES 0
#define NO_FILES 4

static void offer(GString *text, const char *before, const char *name, const char *begun)
{
    g_autofree char *candidate = g_strconcat(before, name, NULL);

    if (g_str_has_prefix(candidate, begun))
        g_string_append_printf(text, "%s\n", candidate);
}

static void offer_commands(const struct command *commands, const char *begun, GString *text)
{
    for (const struct command *command = commands; command->name; command++)
        offer(text, "", command->name, begun);
}

/* "--output", "-o". NULL: the command has none of that name. */
static const struct option *find_option(const struct command *command, const char *word)
{
    if (g_str_has_prefix(word, "--"))
        return option_find(word + 2, command->bit);
    if (word[0] != '-' || strlen(word) != 2)
        return NULL;
    options_each (option) {
        if (option->letter == word[1] && option->commands & command->bit)
            return option;
    }
    return NULL;
}

/* `before` is what stands in the same word, such as "--output=". */
static int offer_values(const struct option *option, const char *before, const char *begun,
                        GString *text)
{
    struct choice choice;

    if (option->kind == OPTION_CHOICE) {
        for (size_t i = 0; option->choice(i, &choice); i++)
            offer(text, before, choice.name, begun);
    }
    return option->kind == OPTION_PATH ? FILES : NO_FILES;
}

static int offer_options(const struct command *command, const char *begun, GString *text)
{
    const char *equals = strchr(begun, '=');

    if (equals) {
        g_autofree char *name = g_strndup(begun, (gsize)(equals - begun));
        g_autofree char *before = g_strndup(begun, (gsize)(equals - begun) + 1);
        const struct option *option = find_option(command, name);
        return option ? offer_values(option, before, begun, text) : NO_FILES;
    }
    options_each (option) {
        if (option->commands & command->bit)
            offer(text, "--", option->name, begun);
    }
    return NO_FILES;
}

void plugin_completion_write(const struct command *commands, const char *const *words, GString *text)
{
    const guint n = g_strv_length((char **)words);
    const char *begun = n > 0 ? words[n - 1] : "";
    const struct command *command = n > 1 ? command_find(commands, words[0]) : NULL;
    const struct option *option = command && n > 2 ? find_option(command, words[n - 2]) : NULL;
    int directive = NO_FILES;

    if (n <= 1) {
        offer_commands(commands, begun, text);
    } else if (option && option->kind != OPTION_BOOL) {
        directive = offer_values(option, "", begun, text);
    } else if (command && begun[0] == '-') {
        directive = offer_options(command, begun, text);
    } else if (command) {
        for (const char *const *word = command->word_choices; word && *word; word++)
            offer(text, "", *word, begun);
        if (command->bit == COMMAND_HELP)
            offer_commands(commands, begun, text);
    }
    g_string_append_printf(text, ":%d\n", directive);
}
