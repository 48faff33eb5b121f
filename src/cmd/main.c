/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"
#include "cmd/misuse.h"
#include "options/command.h"
#include "options/nearest.h"
#include "options/print.h"
#include "options/table.h"
#include "options/general_section.h"
#include "options/client_section.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <malloc.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum exit_code version_run(const struct config *config, const struct config_inputs *inputs)
{
    printf(PROGRAM " %s %s\nlibcurl %s, libmicrohttpd %s, GLib %u.%u.%u, libyaml %s, cJSON %s\n",
           version_text, version_commit, curl_version_info(CURLVERSION_NOW)->version,
           MHD_get_version(), glib_major_version, glib_minor_version, glib_micro_version,
           yaml_get_version_string(), cJSON_Version());
    return EXIT_OK;
}

static enum exit_code unknown_command(const char *name)
{
    struct nearest nearest = {.word = name};
    for (const struct command *command = commands; command->name; command++)
        nearest_offer(&nearest, command->name);
    if (nearest.match)
        complain("unknown command '%s', did you mean '%s'?", name, nearest.match);
    else
        complain("unknown command '%s'; '" PROGRAM " help' lists all", name);
    return EXIT_USAGE;
}

/* Those of a command that takes only some. */
static bool knows_words(const struct command *command, const GPtrArray *words)
{
    return !command->word_choices || words->len == 0 ||
           g_strv_contains(command->word_choices, words->pdata[0]);
}

static bool has_empty_word(const GPtrArray *words)
{
    for (guint i = 0; i < words->len; i++) {
        if (!*(const char *)words->pdata[i])
            return true;
    }
    return false;
}

static enum exit_code run(const struct command *command, const struct config_inputs *inputs)
{
    g_autoptr(GError) error = NULL;
    struct config *config = config_load(inputs, &error);
    const struct general_settings *general = config ? config_section(config, general) : NULL;
    enum exit_code code = EXIT_USAGE;
    if (!config) {
        complain("%s", error->message);
    } else if (general->help || general->help_all) {
        g_autoptr(GString) text = g_string_new(NULL);
        help_write_command(command, general->help_all, text);
        fputs(text->str, stdout);
        code = EXIT_OK;
    } else if (config->words->len > command->max_words) {
        complain("'%s' is one word too many; '" PROGRAM " %s --help' says what it takes",
                 (const char *)config->words->pdata[command->max_words], command->name);
    } else if (has_empty_word(config->words)) {
        complain("'" PROGRAM
                 " %s' was given an empty word; it takes %s. Is a variable of a script not set?",
                 command->name, command->words);
    } else if (config_section(config, client)->output == OUTPUT_NAME &&
               !(command->bit & (COMMAND_NODES | COMMAND_PODS))) {
        complain("option '--output': name is for nodes and pods; %s has no objects of its own",
                 command->name);
    } else if (!knows_words(command, config->words)) {
        complain("'" PROGRAM " %s' does not know '%s'; it takes %s", command->name,
                 (const char *)config->words->pdata[0], command->words);
    } else if (!misuse_found(command, config)) {
        tables_paint(print_has_colours(config));
        code = command->run(config, inputs);
    }
    config_free(config);
    return code;
}

/* What was printed must have arrived: "gpuledger man > /full/disk" is a failure. */
static enum exit_code flush(enum exit_code code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* Whoever reads no further, as `head`, wants no complaint. */
    if (errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    complain("standard output cannot be written: %s", g_strerror(errno));
    return code == EXIT_OK ? EXIT_FAILED : code;
}

static bool is_called(const char *path, const char *name)
{
    g_autofree char *base = path ? g_path_get_basename(path) : NULL;

    return base && strcmp(base, name) == 0;
}

int main(int argc, char **argv)
{
    /* A thread per connection would otherwise get an arena per thread, and request bodies of
     * many sizes would each raise the threshold above which freed memory goes back to the system:
     * resident memory would follow the worst minute instead of the ledger. A filter over 5,000
     * nodes (0.1 MiB) stays below the threshold: fresh pages for each would be a third of its
     * time. So they would be if what an answer leaves at the end of an arena were given back each
     * time. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);

    /* kubectl calls a plugin's completion by this name. */
    if (is_called(argv[0], "kubectl_complete-" PROGRAM)) {
        g_autoptr(GString) text = g_string_new(NULL);
        plugin_completion_write(commands, (const char *const *)argv + 1, text);
        fputs(text->str, stdout);
        return flush(EXIT_OK);
    }
    /* As kubectl's plugin it finds the extender by itself. */
    if (is_called(argv[0], "kubectl-" PROGRAM) && !g_getenv("GPULEDGER_SERVER"))
        g_setenv("GPULEDGER_SERVICE", "kube-system/gpuledger-ops", FALSE);
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        g_autoptr(GString) text = g_string_new(NULL);
        help_write_program(commands, text);
        fputs(text->str, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0)
        name = "version";
    const struct command *command = command_find(commands, name);
    if (!command)
        return unknown_command(name);
    const struct config_inputs inputs = {
        .command = command->bit,
        .arguments = (const char *const *)argv + 2,
        .environment = (const char *const *)environ,
        .commands = commands,
    };
    return flush(run(command, &inputs));
}
