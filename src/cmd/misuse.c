/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/misuse.h"

#include "explain/card_place.h"
#include "options/jsonpath.h"
#include "options/client_section.h"

#include <gpuledger/error.h>
#include <string.h>

#define OF_PLACES (COMMAND_CORDON | COMMAND_UNCORDON | COMMAND_DRAIN)

static bool is_place(const char *word, GError **error)
{
    g_auto(card_place) place = {0};

    return card_place_parse(word, &place, error);
}

static bool places_make_sense(const struct command *command, const struct config *config,
                              GError **error)
{
    g_auto(GStrv) drain = g_strsplit(
        command->bit == COMMAND_FIT ? config_section(config, client)->drain : "", ",", -1);

    for (guint i = 0; command->bit & OF_PLACES && i < config->words->len; i++) {
        if (!is_place(config->words->pdata[i], error))
            return false;
    }
    for (char **place = drain; *place; place++) {
        if (!is_place(*place, error)) {
            g_prefix_error(error, "option '--drain': ");
            return false;
        }
    }
    return true;
}

static bool template_makes_sense(const struct config *config, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    const cJSON nothing = {.type = cJSON_Object};
    g_autoptr(GString) text = g_string_new(NULL);

    return client_options->output != OUTPUT_JSONPATH ||
           jsonpath_write(client_options->output_template, &nothing, text, error);
}

/* Of "switch NODE LABEL=VALUE" the second word. */
static bool goal_makes_sense(const struct command *command, const struct config *config,
                             GError **error)
{
    const bool has_goal = command->bit == COMMAND_SWITCH && config->words->len > 1;
    const char *goal = has_goal ? config->words->pdata[1] : "";

    if (!has_goal || strchr(goal, '='))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "'%s' is not like LABEL=VALUE",
                goal);
    return false;
}

static bool server_makes_sense(const struct config *config, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    const char *sign = strstr(client_options->server, "://");

    if (!sign || g_str_has_prefix(client_options->server, "http://") ||
        g_str_has_prefix(client_options->server, "https://"))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "option '--server': '%s' begins neither with http:// nor with https://",
                client_options->server);
    return false;
}

bool misuse_found(const struct command *command, const struct config *config)
{
    g_autoptr(GError) failure = NULL;

    if (places_make_sense(command, config, &failure) && template_makes_sense(config, &failure) &&
        server_makes_sense(config, &failure) && goal_makes_sense(command, config, &failure))
        return false;
    complain("%s", failure->message);
    return true;
}
