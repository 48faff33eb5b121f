/* SPDX-License-Identifier: Apache-2.0 */
#include "options/print.h"

#include "json/json.h"
#include "options/jsonpath.h"
#include "options/yaml_text.h"

#include <stdio.h>
#include <unistd.h>

bool print_is_document(const struct config *config)
{
    return config->output == OUTPUT_JSON || config->output == OUTPUT_YAML ||
           config->output == OUTPUT_JSONPATH;
}

bool print_has_colours(const struct config *config)
{
    const char *no = g_getenv("NO_COLOR"); /* no-color.org: set and not empty */

    if (config->color != COLOR_AUTO)
        return config->color == COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && !(no && *no) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
}

static bool write_template(const struct config *config, const GString *body, GString *text,
                           GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, error);

    return document && jsonpath_write(config->output_template, document, text, error);
}

enum exit_code print_answer(const struct config *config, const GString *body,
                            const GError *failure)
{
    g_autoptr(GString) made = g_string_new(NULL);
    g_autoptr(GError) unclear = NULL;
    const GString *text = body;

    if (!failure && config->output == OUTPUT_YAML) {
        text = made;
        yaml_text_write(body, made, &unclear);
    } else if (!failure && config->output == OUTPUT_JSONPATH) {
        text = made;
        write_template(config, body, made, &unclear);
    }
    if (failure || unclear) {
        complain("%s", (failure ? failure : unclear)->message);
        return EXIT_FAILED;
    }
    fputs(text->str, stdout);
    if (text->len && text->str[text->len - 1] != '\n')
        putchar('\n');
    return EXIT_OK;
}
