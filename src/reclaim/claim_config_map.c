/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claim_config_map.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "wire/claim_sheet.h"

#define CALL_MS 5000

void claim_file_clear(struct claim_file *file)
{
    g_free(file->version);
    g_free(file->text);
    g_free(file->sum);
    *file = (struct claim_file){0};
}

/* Free with g_free. NULL, with an error: that is no namespace. */
static char *path_of(const struct claim_config_map *map, const char *name, GError **error)
{
    g_autofree char *ns = transport_escape(map->ns, "namespace", error);

    return ns ? g_strconcat("/api/v1/namespaces/", ns, "/configmaps", name, NULL) : NULL;
}

struct fields {
    const char *version, *text, *sum;
};
static const struct json_field fields[] = {
    JSON_FIELD_STRING(struct fields, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct fields, text, "data.claims", 0),
    JSON_FIELD_STRING(struct fields, sum, "data.sum", 0),
    JSON_FIELD_END,
};

static enum outcome decode(const GString *reply, struct claim_file *ret_file, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    struct fields read = {0};

    if (!object || !json_decode(arena, object, fields, &read, error))
        return OUTCOME_UNKNOWN;
    *ret_file =
        (struct claim_file){g_strdup(read.version), g_strdup(read.text), g_strdup(read.sum)};
    return OUTCOME_OK;
}

/* The error says what to do. */
static enum outcome explain(const struct claim_config_map *map, enum outcome outcome,
                            GError **error)
{
    if (outcome != OUTCOME_OK)
        g_prefix_error(error,
                       "ConfigMap %s/" CLAIM_SHEET_NAME " (--reclaim needs the rights get, create "
                       "and patch there): ",
                       map->ns);
    return outcome;
}

static enum outcome read_map(void *data, struct claim_file *ret_file, GError **error)
{
    const struct claim_config_map *map = data;
    g_autofree char *path = path_of(map, "/" CLAIM_SHEET_NAME, error);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    g_autoptr(GError) failure = NULL;
    enum outcome outcome =
        path ? api_client_call(map->client, &call, reply, &failure) : OUTCOME_REFUSED;

    if (outcome == OUTCOME_NOT_FOUND) {
        *ret_file = (struct claim_file){0};
        return OUTCOME_OK;
    }
    if (outcome == OUTCOME_OK)
        outcome = decode(reply, ret_file, &failure);
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    return explain(map, outcome, error);
}

static void encode(GString *body, const struct claim_file *file)
{
    struct json_writer writer;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    if (!file->version) {
        json_key_string(&writer, "apiVersion", "v1");
        json_key_string(&writer, "kind", "ConfigMap");
    }
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", CLAIM_SHEET_NAME);
    if (file->version)
        json_key_string(&writer, "resourceVersion", file->version);
    json_end_object(&writer);
    json_key_object(&writer, "data");
    json_key_string(&writer, "claims", file->text);
    json_key_string(&writer, "sum", file->sum);
    json_end_object(&writer);
    json_end_object(&writer);
}

static enum outcome write_map(void *data, const struct claim_file *file, char **ret_version,
                              GError **error)
{
    const struct claim_config_map *map = data;
    g_autofree char *path = path_of(map, file->version ? "/" CLAIM_SHEET_NAME : "", error);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_auto(claim_file) written = {0};

    if (!path)
        return OUTCOME_REFUSED;
    encode(body, file);
    enum outcome outcome =
        api_client_call(map->client,
                        &(struct api_call){.method = file->version ? "PATCH" : "POST",
                                           .path = path,
                                           .body = body,
                                           .deadline_ms = clock_ms() + CALL_MS,
                                           .once = true},
                        reply, error);
    if (outcome == OUTCOME_OK)
        outcome = decode(reply, &written, error);
    *ret_version = g_steal_pointer(&written.version);
    return explain(map, outcome, error);
}

const struct claim_files claim_config_map_files = {read_map, write_map};
