/* SPDX-License-Identifier: Apache-2.0 */
/* The command "explain": why a pod is where it is, or nowhere. */
#include "explain/explain.h"
#include "core/fail.h"
#include "client/client.h"
#include "cmd/local.h"
#include "cmd/pod_word.h"
#include "options/print.h"
#include "snapshot/manifest.h"
#include "base/small_file.h"
#include "options/client_section.h"

#include <string.h>

#define GET_POD_MS 30000

/* What is asked about: a pod of the cluster, or one in a file. */
struct question {
    char *ns, *name;
    char *file; /* its text, or NULL */
};

static void question_clear(struct question *question)
{
    g_free(question->ns);
    g_free(question->name);
    g_free(question->file);
}

/* "pod NAMESPACE/NAME", "NAMESPACE/NAME"; without a namespace it is "default". */
static bool read_words(const GPtrArray *words, struct question *question, GError **error)
{
    const char *title = words->len ? words->pdata[words->len - 1] : "";
    const char *slash = strchr(title, '/');

    if (words->len == 2 && strcmp(words->pdata[0], "pod") != 0 &&
        strcmp(words->pdata[0], "pods") != 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "only pods are explained, not '%s'",
                         (const char *)words->pdata[0]);
    question->ns = slash ? g_strndup(title, (gsize)(slash - title)) : g_strdup("default");
    question->name = g_strdup(slash ? slash + 1 : title);
    if (*question->ns && *question->name && !strchr(question->name, '/') &&
        (words->len == 2 || slash))
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "which pod? 'explain pod NAMESPACE/NAME', 'explain pod NAME -n NAMESPACE', or "
                     "one in a file with -f");
}

static bool read_question(const struct config *config, struct question *question, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);

    if (!pod_word_complete(config, error))
        return false;
    if (!*client_options->filename)
        return read_words(config->words, question, error);
    if (config->words->len > 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "option '--filename': a pod is named as well; keep one of them");
    g_autoptr(json_arena) arena = json_arena_new();
    struct manifest manifest;
    question->file = small_file_read(client_options->filename, MANIFEST_MAX, NULL, error);
    return (question->file &&
            manifest_parse(arena, question->file, strlen(question->file), &manifest, error)) ||
           fail_within(error, "option '--filename': ");
}

/* --- a running extender --------------------------------------------------------------------- */

static const char *table_name(const struct config *config)
{
    return config_section(config, client)->output == OUTPUT_WIDE ? "wide" : "table";
}

static bool ask_server(const struct config *config, const struct question *question, bool table,
                       GString *ret_text, GError **error)
{
    g_autofree char *title =
        question->file ? NULL : g_strdup_printf("%s/%s", question->ns, question->name);
    g_autofree char *escaped = title ? g_uri_escape_string(title, "/", FALSE) : NULL;
    g_autofree char *path =
        g_strdup_printf("/api/v1/explain?output=%s%s%s", table ? table_name(config) : "json",
                        title ? "&pod=" : "", title ? escaped : "");
    const struct client_request request = {
        .path = path,
        .accept = table ? "text/plain" : "application/json",
        .post = question->file != NULL,
        .body = question->file,
        .length = question->file ? strlen(question->file) : 0,
    };

    g_autoptr(client) client = client_open(config, error);

    return client && client_get(client, &request, ret_text, error);
}

/* --- a cluster alone ------------------------------------------------------------------------ */

static bool read_pod(const struct local *local, const struct question *question,
                     struct json_arena *arena, struct pod_view *ret_pod, GError **error)
{
    struct manifest manifest;

    if (!question->file)
        return explain_read_pod(backend_cluster(local->backend), arena, question->ns,
                                question->name, g_get_monotonic_time() / 1000 + GET_POD_MS,
                                ret_pod, error);
    if (!manifest_parse(arena, question->file, strlen(question->file), &manifest, error))
        return fail_within(error, "option '--filename': ");
    *ret_pod = manifest.pod;
    return true;
}

static bool look_at_cluster(const struct config *config, const struct question *question,
                            GString *ret_json, GString *ret_table, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct local local;
    struct pod_view pod;
    struct json_writer writer;

    if (!local_open(config, &local, error))
        return false;
    const bool found = read_pod(&local, question, arena, &pod, error);
    if (found) {
        g_autoptr(explanation) explanation =
            explain_pod(local.store, backend_cluster(local.backend), &pod);
        json_writer_init(&writer, ret_json);
        explanation_encode(&writer, explanation);
        explanation_write(ret_table, explanation,
                          config_section(config, client)->output == OUTPUT_WIDE);
    }
    local_close(&local);
    return found;
}

struct told {
    const char *verdict;
};
static const struct json_field told_fields[] = {
    JSON_FIELD_STRING(struct told, verdict, "verdict", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* Whether no node takes the pod, by the answer. */
static bool is_no(const GString *json, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, json->str, json->len, error);
    struct told told = {0};

    return document && json_decode(arena, document, told_fields, &told, error) &&
           (strcmp(told.verdict, "refused") == 0 || strcmp(told.verdict, "invalid") == 0);
}

enum exit_code explain_run(const struct config *config, const struct config_inputs *inputs)
{
    const bool is_document = print_is_document(config);
    g_autoptr(GString) json = g_string_new(NULL);
    g_autoptr(GString) table = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct question question = {0};
    bool alone;

    if (!local_choose(config, &alone))
        return EXIT_USAGE;
    if (!read_question(config, &question, &failure)) {
        complain("%s", failure->message);
        question_clear(&question);
        return EXIT_USAGE;
    }
    const bool ok = alone
                        ? look_at_cluster(config, &question, json, table, &failure)
                        : ask_server(config, &question, false, json, &failure) &&
                              (is_document || ask_server(config, &question, true, table, &failure));
    const bool no = ok && is_no(json, &failure);
    question_clear(&question);
    const enum exit_code code = print_answer(config, is_document ? json : table, failure);
    return code == EXIT_OK && no ? EXIT_DIFFERENT : code;
}
