/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pod_word.h"

#include "core/fail.h"
#include "options/client_section.h"

#include <string.h>

bool pod_word_complete(const struct config *config, GError **error)
{
    GPtrArray *words = config->words;
    const char *ns = config_section(config, client)->pod_namespace;
    const char *word = words->len > 0 ? words->pdata[words->len - 1] : NULL;
    const char *slash = word ? strchr(word, '/') : NULL;
    const size_t length = strlen(ns);

    if (!*ns)
        return true;
    if (!word)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "option '--namespace': which pod of it? A pod in a file says its own");
    if (slash && ((size_t)(slash - word) != length || strncmp(word, ns, length) != 0))
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "option '--namespace': '%s' names another namespace than '%s'; say it once", word, ns);
    if (!slash) {
        g_autofree char *title = g_strdup_printf("%s/%s", ns, word);
        words->pdata[words->len - 1] = (gpointer)g_intern_string(title); /* words are borrowed */
    }
    return true;
}
