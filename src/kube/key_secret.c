/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/clock.h"
#include "kube/key_storages.h"
#include "wire/secret.h"

#include <gpuledger/error.h>
#include <string.h>

#define CALL_MS 5000

struct key_secret {
    struct key_storage storage;
    struct api_client *client;
    char *path, *title;
};

/* What the API server said is wiped: it has the keys. */
static void wipe(GString *text)
{
    explicit_bzero(text->str, text->allocated_len);
    g_string_free(text, TRUE);
}

/* Also with the end of a line, which echo adds. */
static bool is_force(const char *rotate)
{
    gsize length = 0;
    g_autofree guchar *bytes = g_base64_decode(rotate, &length);
    g_autofree char *text = g_strndup((const char *)bytes, length);

    return g_str_equal(g_strstrip(text), "force");
}

static char *decode(const char *keys, const char *rotate, GError **error)
{
    gsize length = 0;
    guchar *bytes = keys ? g_base64_decode(keys, &length) : NULL;
    char *text = NULL;

    if (length > KEYRING_TEXT_MAX || (bytes && memchr(bytes, '\0', length)))
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                            "data.keys of the Secret is no text, or too long");
    else
        text = g_strdup_printf("%.*s%s", (int)length, bytes ? (const char *)bytes : "",
                               !rotate            ? ""
                               : is_force(rotate) ? "\nrotate force\n"
                                                  : "\nrotate\n");
    if (bytes)
        explicit_bzero(bytes, length);
    g_free(bytes);
    return text;
}

static char *read_secret(struct key_storage *storage, char **ret_version, GError **error)
{
    const struct key_secret *secret = (const struct key_secret *)storage;
    g_autoptr(json_arena) arena = json_arena_new();
    GString *reply = g_string_new(NULL);
    struct secret_view view;
    char *text = NULL;
    const struct api_call call = {
        .method = "GET", .path = secret->path, .deadline_ms = clock_ms() + CALL_MS};

    if (api_client_call(secret->client, &call, reply, error) == OUTCOME_OK) {
        const cJSON *object = json_parse(arena, reply->str, reply->len, error);
        if (object && secret_view_decode(arena, object, &view, error)) {
            text = decode(view.keys, view.rotate, error);
            *ret_version = g_strdup(view.version);
        }
    }
    wipe(reply);
    return text;
}

static enum outcome write_secret(struct key_storage *storage, const char *text, const char *version,
                                 GError **error)
{
    const struct key_secret *secret = (const struct key_secret *)storage;
    GString *body = g_string_sized_new(4096), *reply = g_string_new(NULL);
    struct json_writer writer;
    char *keys = g_base64_encode((const guchar *)text, strlen(text));

    json_writer_init(&writer, body);
    secret_patch_encode(&writer, version, keys);
    const struct api_call call = {.method = "PATCH",
                                  .path = secret->path,
                                  .body = body,
                                  .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(secret->client, &call, reply, error);
    keyring_text_free(keys);
    wipe(body);
    wipe(reply);
    return outcome;
}

static void release_secret(struct key_storage *storage)
{
    struct key_secret *secret = (struct key_secret *)storage;

    g_free(secret->path);
    g_free(secret->title);
    g_free(secret);
}

static const struct key_storage_ops ops = {read_secret, write_secret, release_secret};

struct key_storage *key_secret_new(struct api_client *client, const char *name, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);

    if (g_strv_length(parts) != 2 || !*parts[0] || !*parts[1]) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "'%s' is no Secret; expected NAMESPACE/NAME", name);
        return NULL;
    }
    g_autofree char *ns = transport_escape(parts[0], "namespace", error);
    g_autofree char *own = ns ? transport_escape(parts[1], "name", error) : NULL;
    if (!own)
        return NULL;
    struct key_secret *secret = g_new0(struct key_secret, 1);
    secret->client = client;
    secret->path = g_strdup_printf("/api/v1/namespaces/%s/secrets/%s", ns, own);
    secret->title = g_strdup_printf("Secret %s", name);
    secret->storage = (struct key_storage){&ops, secret->title};
    return &secret->storage;
}
