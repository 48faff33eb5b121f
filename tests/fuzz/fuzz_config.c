/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is lines: those that begin with 'a' are arguments, with 'e' variables, the others are
 * the configuration file. All of it together is refused with a message, or every value is one that
 * its option accepts again, and what --print-config writes is a file that says the same.
 */
#include "memory_file.h"

#include "options/config.h"
#include "options/options.h"
#include "options/general_section.h"

#include <string.h>

#define WORDS_MAX 32

struct input {
    const char *arguments[WORDS_MAX + 2]; /* the first names the file */
    const char *environment[WORDS_MAX + 1];
    size_t n_arguments, n_environment;
    GString *file;
};

/* Nothing that could name a file of this machine. */
static void split(struct input *input, char **lines)
{
    for (char **line = lines; *line; line++) {
        const char *word = *line + 1;

        if (**line == 'a' && input->n_arguments < WORDS_MAX && !strchr(word, '/'))
            input->arguments[input->n_arguments++] = word;
        else if (**line == 'e' && input->n_environment < WORDS_MAX && !strchr(word, '/'))
            input->environment[input->n_environment++] = word;
        else
            g_string_append_printf(input->file, "%s\n", *line);
    }
}

static struct config *load(const struct input *input, GError **error)
{
    return config_load(
        &(struct config_inputs){COMMAND_SERVE, input->arguments, input->environment}, error);
}

static void check_again(const struct config *config)
{
    g_autoptr(GString) text = g_string_new(NULL);

    config_print(config, COMMAND_SERVE, text);
    struct memory_file file = memory_file_new(text->str, text->len);
    g_autofree char *argument = g_strconcat("--config=", file.path, NULL);
    const struct input input = {.arguments = {argument}};
    g_autoptr(GError) error = NULL;
    struct config *again = load(&input, &error);

    FUZZ_CHECK(again && !error);
    options_each (option) {
        if (!(option->commands & COMMAND_SERVE) ||
            (option->flags & (OPTION_FLAG_ONLY | OPTION_NO_FILE)))
            continue;
        g_autofree char *before = option_format(option, config);
        g_autofree char *after = option_format(option, again);
        FUZZ_CHECK(g_str_equal(before, after));
    }
    config_free(again);
    memory_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) file_text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    struct input input = {.file = file_text, .n_arguments = 1};

    split(&input, lines);
    struct memory_file file = memory_file_new(file_text->str, file_text->len);
    g_autofree char *argument = g_strconcat("--config=", file.path, NULL);
    input.arguments[0] = argument;
    struct config *config = load(&input, &error);

    FUZZ_CHECK(!config == !!error);
    FUZZ_CHECK(config || *error->message);
    /* A file name that is not UTF-8 cannot be written in YAML. */
    if (config && !config_section(config, general)->help && g_utf8_validate(text, -1, NULL))
        check_again(config);
    config_free(config);
    memory_file_close(&file);
    return 0;
}
