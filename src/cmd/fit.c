/* SPDX-License-Identifier: Apache-2.0 */
/* The command "fit": how many pods fit, where, and after what. */
#include "explain/fit.h"
#include "core/fail.h"
#include "client/client.h"
#include "cmd/local.h"
#include "options/print.h"
#include "snapshot/fit_body.h"
#include "base/small_file.h"
#include "options/client_section.h"

#include <string.h>

/* Writes the object in a file below that key; no file writes nothing. */
static bool add_file(struct json_writer *writer, struct json_arena *arena, const char *key,
                     const char *file, GError **error)
{
    if (!*file)
        return true;
    g_autofree char *text = small_file_read(file, MANIFEST_MAX, NULL, error);
    const cJSON *tree = text ? manifest_load(arena, text, strlen(text), error) : NULL;
    if (!tree)
        return false;
    if (!cJSON_IsObject(tree) && !cJSON_IsArray(tree))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "file '%s': expected an object, such as a Pod or a Node, as JSON or YAML",
                         file);
    json_key(writer, key);
    if (cJSON_IsArray(tree)) { /* documents, as a List has them */
        json_begin_object(writer);
        json_key_string(writer, "kind", "List");
        json_key(writer, "items");
        json_value(writer, tree);
        json_end_object(writer);
    } else {
        json_value(writer, tree);
    }
    return true;
}

/* What a running extender is asked; the cluster alone is asked the same. */
static bool write_body(const struct config *config, GString *body, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    g_autoptr(json_arena) arena = json_arena_new();
    g_auto(GStrv) drain = g_strsplit(client_options->drain, ",", -1);
    struct json_writer writer;
    struct fit_body asked;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    if (!add_file(&writer, arena, "pod", client_options->filename, error))
        return fail_within(error, "option '--filename': ");
    if (!add_file(&writer, arena, "template", client_options->template, error))
        return fail_within(error, "option '--template': ");
    json_key_int(&writer, "replicas", client_options->replicas);
    json_key_array(&writer, "drain");
    for (char **node = drain; *node; node++)
        json_string(&writer, *node);
    json_end_array(&writer);
    json_end_object(&writer);
    return fit_body_parse(arena, body->str, body->len, &asked, error);
}

/* For people and for the exit status: the words are the server's. */
static bool ask_server(const struct config *config, const GString *body, bool table,
                       GString *ret_text, GError **error)
{
    const struct client_request request = {
        .path = table ? "/api/v1/fit?output=table" : "/api/v1/fit?output=json",
        .accept = table ? "text/plain" : "application/json",
        .post = true,
        .body = body->str,
        .length = body->len,
    };

    g_autoptr(client) client = client_open(config, error);

    return client && client_get(client, &request, ret_text, error);
}

static bool look_at_cluster(const struct config *config, const GString *body, GString *ret_json,
                            GString *ret_table, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct fit_body asked;
    struct local local;
    struct json_writer writer;

    if (!fit_body_parse(arena, body->str, body->len, &asked, error) ||
        !local_open(config, &local, error))
        return false;
    g_autoptr(fit) fit = fit_find(
        &(struct fit_query){
            .store = local.store,
            .cluster = backend_cluster(local.backend),
            .pod = asked.has_pod ? &asked.manifest.pod : NULL,
            .replicas = asked.replicas,
            .drain = asked.drain,
            .template = asked.has_template ? &asked.template : NULL,
        },
        error);
    local_close(&local);
    if (!fit)
        return false;
    json_writer_init(&writer, ret_json);
    fit_encode(&writer, fit);
    fit_write(ret_table, fit);
    return true;
}

struct outcome_row {
    bool fits;
};
static const struct json_field row_fields[] = {
    JSON_FIELD_BOOL(struct outcome_row, fits, "fits", 0),
    JSON_FIELD_END,
};

enum exit_code fit_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct client_settings *client_options = config_section(config, client);
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) json = g_string_new(NULL);
    g_autoptr(GString) table = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct outcome_row row = {false};
    const cJSON *document = NULL;
    bool alone;

    if (!local_choose(config, &alone))
        return EXIT_USAGE;
    if (!*client_options->filename && !*client_options->drain) {
        complain("what is to fit? Give a pod with -f, or --drain a node");
        return EXIT_USAGE;
    }
    if (!write_body(config, body, &failure)) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    if (alone ? look_at_cluster(config, body, json, table, &failure)
              : ask_server(config, body, false, json, &failure) &&
                    (print_is_document(config) || ask_server(config, body, true, table, &failure)))
        document = json_parse(arena, json->str, json->len, &failure);
    if (document)
        json_decode(arena, document, row_fields, &row, &failure);
    const enum exit_code code =
        print_answer(config, print_is_document(config) ? json : table, failure);
    return code == EXIT_OK && !row.fits ? EXIT_DIFFERENT : code;
}
