/* SPDX-License-Identifier: Apache-2.0 */
#include "options/print.h"

#include "options/yaml_text.h"

#include <stdio.h>

bool print_is_document(const struct config *config)
{
    return config->output == OUTPUT_JSON || config->output == OUTPUT_YAML;
}

enum exit_code print_answer(const struct config *config, const GString *body,
                            const GError *failure)
{
    g_autoptr(GString) yaml = g_string_new(NULL);
    g_autoptr(GError) unclear = NULL;

    if (!failure && config->output == OUTPUT_YAML && !yaml_text_write(body, yaml, &unclear))
        failure = unclear;
    if (failure) {
        complain("%s", failure->message);
        return EXIT_FAILED;
    }
    const GString *text = config->output == OUTPUT_YAML ? yaml : body;
    fputs(text->str, stdout);
    if (text->len && text->str[text->len - 1] != '\n')
        putchar('\n');
    return EXIT_OK;
}
