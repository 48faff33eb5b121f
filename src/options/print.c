/* SPDX-License-Identifier: Apache-2.0 */
#include "options/print.h"

#include "base/printable.h"
#include "json/json.h"
#include "options/jsonpath.h"
#include "options/yaml_text.h"
#include "options/client_section.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The next one where a key goes, or means something else. */
#define DOCUMENT_VERSION "gpuledger.io/v1"

bool print_is_document(const struct config *config)
{
    const struct client_settings *client_options = config_section(config, client);

    return client_options->output == OUTPUT_JSON || client_options->output == OUTPUT_YAML ||
           client_options->output == OUTPUT_JSONPATH;
}

bool print_has_colours(const struct config *config)
{
    const struct client_settings *client_options = config_section(config, client);
    const char *no = g_getenv("NO_COLOR"); /* no-color.org: set and not empty */

    if (client_options->color != COLOR_AUTO)
        return client_options->color == COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && !(no && *no) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
}

static bool write_template(const struct config *config, const GString *body, GString *text,
                           GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, error);

    return document &&
           jsonpath_write(config_section(config, client)->output_template, document, text, error);
}

/* --- columns and sentences -------------------------------------------------------------------- */

/* Select Graphic Rendition, as tables have it; its length, or 0. */
static size_t rendition(const char *at)
{
    size_t n = 2;

    if (at[0] != '\033' || at[1] != '[')
        return 0;
    n += strspn(at + n, "0123456789");
    return at[n] == 'm' ? n + 1 : 0;
}

/* Words of tenants may stand in it, which must not steer somebody's terminal. */
static void append_safely(GString *text, const char *line, bool colours)
{
    for (const char *at = line; *at;) {
        const size_t n = colours ? rendition(at) : 0;
        const char *next = n > 0 ? at + n : g_utf8_next_char(at);
        if (n == 0 && *at != '\t' && printable_steers(g_utf8_get_char(at)))
            g_string_append_c(text, '?');
        else
            g_string_append_len(text, at, next - at);
        at = next;
    }
}

/* "NODES  REASON  CLOSEST" */
static bool is_heading(const char *line)
{
    return strspn(line, G_CSET_A_2_Z " (/)") == strlen(line) && strpbrk(line, G_CSET_A_2_Z);
}

/* What a server or a command has written for people. Tables are in colours already. */
static void write_for_people(const GString *body, bool colours, GString *text)
{
    g_autofree char *valid = g_utf8_make_valid(body->str, (gssize)body->len);
    g_auto(GStrv) lines = g_strsplit(valid, "\n", -1);

    for (size_t i = 0; lines[i]; i++) {
        const bool bold = colours && is_heading(lines[i]);
        g_string_append(text, i > 0 ? "\n" : "");
        g_string_append(text, bold ? "\033[1m" : "");
        append_safely(text, lines[i], colours);
        g_string_append(text, bold ? "\033[0m" : "");
    }
}

/* JSON, and YAML of ours, keep their values; of everything else the reader is a person. */
static char *make_printable(const struct config *config, const GString *text)
{
    const struct client_settings *client_options = config_section(config, client);
    const bool plain =
        client_options->output == OUTPUT_JSONPATH || client_options->output == OUTPUT_NAME;
    GString *shown;

    if (client_options->output == OUTPUT_JSON || client_options->output == OUTPUT_YAML)
        return printable_json(text->str);
    shown = g_string_new(NULL);
    write_for_people(text, !plain && print_has_colours(config), shown);
    return g_string_free(shown, FALSE);
}

/* The document with the version of what scripts may rely on, which docs/api.md states. */
static GString *add_version(const GString *body)
{
    const char *rest = body->str + 1 + strspn(body->str + 1, " \n");
    GString *text = g_string_new("{\"apiVersion\":\"" DOCUMENT_VERSION "\"");

    g_string_append(text, *rest == '}' ? "" : ",");
    g_string_append(text, rest);
    return text;
}

enum exit_code print_answer(const struct config *config, const GString *answer,
                            const GError *failure)
{
    const struct client_settings *client_options = config_section(config, client);
    const bool is_whole =
        client_options->output == OUTPUT_JSON || client_options->output == OUTPUT_YAML;
    g_autoptr(GString) versioned = is_whole && answer->str[0] == '{' ? add_version(answer) : NULL;
    g_autoptr(GString) made = g_string_new(NULL);
    g_autoptr(GError) unclear = NULL;
    const GString *body = versioned ? versioned : answer;
    const GString *text = body;

    if (!failure && client_options->output == OUTPUT_YAML) {
        text = made;
        yaml_text_write(body, made, &unclear);
    } else if (!failure && client_options->output == OUTPUT_JSONPATH) {
        text = made;
        write_template(config, body, made, &unclear);
    }
    if (failure || unclear)
        return complain_of(failure ? failure : unclear);
    g_autofree char *shown = make_printable(config, text);
    fputs(shown, stdout);
    if (*shown && !g_str_has_suffix(shown, "\n"))
        putchar('\n');
    return EXIT_OK;
}
