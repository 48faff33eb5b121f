/* SPDX-License-Identifier: Apache-2.0 */
/* The command "resume": a node that is left out for what it has rejected takes pods again. */
#include "core/fail.h"
#include "client/client.h"
#include "options/print.h"
#include "json/json.h"

struct answer {
    bool resumed;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD_BOOL(struct answer, resumed, "resumed", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool resume(const struct config *config, const char *node, GString *ret_body,
                   struct answer *ret_answer, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *escaped = g_uri_escape_string(node, NULL, FALSE);
    g_autofree char *path = g_strconcat("/api/v1/nodes/", escaped, "/resume", NULL);
    const struct client_request request = {path, "application/json", .post = true};
    g_autoptr(client) client = client_open(config, error);

    if (!client || !client_get(client, &request, ret_body, error))
        return false;
    const cJSON *document = json_parse(arena, ret_body->str, ret_body->len, error);
    if (document && json_decode(arena, document, answer_fields, ret_answer, error))
        return true;
    return fail_within(error, "the answer of '%s' is not understood: ", client_name(client));
}

enum exit_code resume_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct answer answer = {0};

    if (config->words->len == 0) {
        complain("which node? " PROGRAM " resume NODE");
        return EXIT_USAGE;
    }
    const char *node = config->words->pdata[0];
    if (!resume(config, node, body, &answer, &failure) || print_is_document(config))
        return print_answer(config, body, failure);
    g_string_printf(text, answer.resumed ? "node %s is asked again" : "node %s was not left out",
                    node);
    return print_answer(config, text, NULL);
}
