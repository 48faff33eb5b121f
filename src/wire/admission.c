/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/admission.h"

#include "core/fail.h"
#include "wire/kubernetes.h"

#include <string.h>

#define VERSION "admission.k8s.io/v1"

/* --- reading --------------------------------------------------------------------------------- */

struct review_body {
    const char *version, *uid;
    const cJSON *containers, *init_containers;
};

static const struct json_field review_fields[] = {
    JSON_FIELD_STRING(struct review_body, version, "apiVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct review_body, uid, "request.uid", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct review_body, containers, "request.object.spec.containers",
                     JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct review_body, init_containers, "request.object.spec.initContainers", 0),
    JSON_FIELD_END,
};

struct container_body {
    struct container_view view;
    const char *restart_policy;
};

static const struct json_field container_fields[] = {
    JSON_FIELD_STRING(struct container_body, view.name, "name", 0),
    JSON_FIELD_STRING(struct container_body, restart_policy, "restartPolicy", 0),
    JSON_FIELD_PAIRS(struct container_body, view.limits, "resources.limits", JSON_NUMBERS),
    JSON_FIELD_PAIRS(struct container_body, view.requests, "resources.requests", JSON_NUMBERS),
    JSON_FIELD_END,
};

static bool read_containers(struct json_arena *arena, const cJSON *items, bool init,
                            struct admission_review *review, GError **error)
{
    const cJSON *item;
    size_t index = 0;

    cJSON_ArrayForEach (item, items) {
        struct admission_container *container = &review->containers[review->n_containers++];
        struct container_body body = {.view = {.init = init}};
        if (!json_decode(arena, item, container_fields, &body, error))
            return false;
        body.view.sidecar = init && g_strcmp0(body.restart_policy, "Always") == 0;
        *container = (struct admission_container){.view = body.view, .index = index++};
    }
    return true;
}

bool admission_review_parse(struct json_arena *arena, const char *text, size_t length,
                            struct admission_review *ret_review, GError **error)
{
    const cJSON *body = json_parse(arena, text, length, error);
    struct review_body fields = {0};
    struct admission_review review = {0};

    if (!body || !json_decode(arena, body, review_fields, &fields, error))
        return false;
    const size_t n = (size_t)cJSON_GetArraySize(fields.containers) +
                     (size_t)cJSON_GetArraySize(fields.init_containers);
    if (strcmp(fields.version, VERSION) != 0 || n > POD_CONTAINERS_MAX)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         strcmp(fields.version, VERSION) != 0
                             ? "field 'apiVersion': expected '" VERSION "'"
                             : "field 'request.object.spec.containers': too many");
    review.uid = fields.uid;
    review.containers = json_arena_alloc(arena, (n + 1) * sizeof *review.containers);
    if (!read_containers(arena, fields.containers, false, &review, error) ||
        !read_containers(arena, fields.init_containers, true, &review, error))
        return false;
    *ret_review = review;
    return true;
}

/* --- the patch ------------------------------------------------------------------------------- */

/* Begins an operation on what the container asks for; `key` NULL: on all of `list`. */
static void begin_operation(struct json_writer *writer, const char *operation,
                            const struct admission_container *container, const char *list,
                            const char *key)
{
    g_autoptr(GString) path = g_string_new(NULL);

    g_string_printf(path, "/spec/%s/%zu/resources/%s",
                    container->view.init ? "initContainers" : "containers", container->index,
                    list);
    if (key)
        g_string_append_c(path, '/');
    for (const char *at = key; at && *at; at++) {
        if (*at == '~' || *at == '/')
            g_string_append(path, *at == '~' ? "~0" : "~1");
        else
            g_string_append_c(path, *at);
    }
    json_begin_object(writer);
    json_key_string(writer, "op", operation);
    json_key_string(writer, "path", path->str);
}

static void replace(struct json_writer *writer, const struct admission_container *container,
                    const char *list, const struct string_pairs *pairs)
{
    static const char *const own[] = {ADMISSION_MIG_MEMORY, ADMISSION_MIG_SLICES};

    if (pairs->n == 0) { /* whether it is there and empty cannot be seen */
        begin_operation(writer, "add", container, list, NULL);
        json_key_object(writer, "value");
        json_key_string(writer, container->resource, "1");
        json_end_object(writer);
        json_end_object(writer);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++) {
        if (!string_pairs_get(pairs, own[i]))
            continue;
        begin_operation(writer, "remove", container, list, own[i]);
        json_end_object(writer);
    }
    begin_operation(writer, "add", container, list, container->resource);
    json_key_string(writer, "value", "1");
    json_end_object(writer);
}

static void begin_response(struct json_writer *writer, const struct admission_review *review,
                           bool allowed)
{
    json_begin_object(writer);
    json_key_string(writer, "apiVersion", VERSION);
    json_key_string(writer, "kind", "AdmissionReview");
    json_key_object(writer, "response");
    json_key_string(writer, "uid", review->uid);
    json_key_bool(writer, "allowed", allowed);
}

static void end_response(struct json_writer *writer)
{
    json_end_object(writer);
    json_end_object(writer);
}

void admission_answer_encode(struct json_writer *writer, const struct admission_review *review)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer patch;
    bool changes = false;

    json_writer_init(&patch, text);
    json_begin_array(&patch);
    for (size_t i = 0; i < review->n_containers; i++) {
        const struct admission_container *container = &review->containers[i];
        if (!container->resource)
            continue;
        changes = true;
        replace(&patch, container, "limits", &container->view.limits);
        replace(&patch, container, "requests", &container->view.requests);
    }
    json_end_array(&patch);
    begin_response(writer, review, true);
    if (changes) {
        g_autofree char *encoded = g_base64_encode((const guchar *)text->str, text->len);
        json_key_string(writer, "patchType", "JSONPatch");
        json_key_string(writer, "patch", encoded);
    }
    end_response(writer);
}

void admission_refusal_encode(struct json_writer *writer, const struct admission_review *review,
                              const char *message)
{
    begin_response(writer, review, false);
    json_key_object(writer, "status");
    json_key_string(writer, "reason", "Invalid");
    json_key_int(writer, "code", 422);
    json_key_string(writer, "message", message);
    json_end_object(writer);
    end_response(writer);
}
