/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/device_taint.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "wire/kubernetes.h"

#include <string.h>

#define CALL_MS 10000
#define GROUP "/apis/resource.k8s.io/"
#define TAINT_KEY "gpuledger.io/cordoned"

static enum outcome call(const struct device_taint *taint, const char *method, const char *path,
                         const GString *body, GString *reply, GError **error)
{
    const struct api_call asked = {.method = method,
                                   .path = path,
                                   .body = body,
                                   .deadline_ms = clock_ms() + CALL_MS,
                                   .once = body != NULL};

    return api_client_call(taint->client, &asked, reply, error);
}

/* The version in which the server has what the path names; NULL without an error: in none. */
static const char *find_version(const struct device_taint *taint, const char *resource,
                                GString *reply, GError **error)
{
    static const char *const versions[] = {"v1", "v1beta2"};

    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *path = g_strconcat(GROUP, versions[i], "/", resource, NULL);
        g_autoptr(GError) failure = NULL;
        g_string_truncate(reply, 0);
        const enum outcome outcome = call(taint, "GET", path, NULL, reply, &failure);
        if (outcome == OUTCOME_OK)
            return versions[i];
        if (outcome != OUTCOME_NOT_FOUND) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return NULL;
        }
    }
    return NULL;
}

/* --- devices of the card ------------------------------------------------------------------------ */

struct list {
    const cJSON *items;
};
static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list, items, "items", 0),
    JSON_FIELD_END,
};

struct slice {
    const char *driver, *pool;
    const cJSON *devices;
};
static const struct json_field slice_fields[] = {
    JSON_FIELD_STRING(struct slice, driver, "spec.driver", JSON_REQUIRED),
    JSON_FIELD_STRING(struct slice, pool, "spec.pool.name", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct slice, devices, "spec.devices", 0),
    JSON_FIELD_END,
};

struct device {
    const char *name, *uuid;
};
static const struct json_field device_fields[] = {
    JSON_FIELD_STRING(struct device, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct device, uuid, "attributes.uuid.string", 0),
    JSON_FIELD_END,
};

/* --- rules ---------------------------------------------------------------------------------------- */

static void write_rule(GString *body, const char *version, const char *name,
                       const struct slice *slice, const struct device *device)
{
    g_autofree char *api = g_strconcat("resource.k8s.io/", version, NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", api);
    json_key_string(&writer, "kind", "DeviceTaintRule");
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", name);
    json_end_object(&writer);
    json_key_object(&writer, "spec");
    json_key_object(&writer, "deviceSelector");
    json_key_string(&writer, "driver", slice->driver);
    json_key_string(&writer, "pool", slice->pool);
    json_key_string(&writer, "device", device->name);
    json_end_object(&writer);
    json_key_object(&writer, "taint");
    json_key_string(&writer, "key", TAINT_KEY);
    json_key_string(&writer, "effect", "NoSchedule");
    json_end_object(&writer);
    json_end_object(&writer);
    json_end_object(&writer);
}

static bool set_rule(const struct device_taint *taint, const char *version,
                     const struct slice *slice, const struct device *device, GError **error)
{
    g_autofree char *name = g_strdup_printf("gpuledger-%s-%s", taint->node, device->name);
    g_autofree char *all = g_strconcat(GROUP, version, "/devicetaintrules", NULL);
    g_autofree char *one = g_strconcat(all, "/", name, NULL);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    GError *failure = NULL;
    enum outcome outcome = call(taint, "GET", one, NULL, reply, &failure);

    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND) {
        g_propagate_error(error, failure);
        return false;
    }
    g_clear_error(&failure);
    if ((outcome == OUTCOME_OK) != taint->open)
        return true;
    taint->changed(taint->data, name, !taint->open);
    if (taint->dry_run)
        return true;
    if (!taint->open)
        write_rule(body, version, name, slice, device);
    outcome = call(taint, taint->open ? "DELETE" : "POST", taint->open ? one : all,
                   taint->open ? NULL : body, reply, &failure);
    if (outcome == OUTCOME_OK || outcome == (taint->open ? OUTCOME_NOT_FOUND : OUTCOME_CONFLICT)) {
        g_clear_error(&failure);
        return true;
    }
    g_propagate_error(error, failure);
    return false;
}

static bool set_slice(const struct device_taint *taint, const char *version,
                      struct json_arena *arena, const cJSON *object, GError **error)
{
    struct slice slice = {0};
    const cJSON *item;

    if (!json_decode(arena, object, slice_fields, &slice, error))
        return false;
    cJSON_ArrayForEach (item, slice.devices) {
        struct device device = {0};
        if (json_decode(arena, item, device_fields, &device, NULL) &&
            g_strcmp0(device.uuid, taint->uuid) == 0 &&
            !set_rule(taint, version, &slice, &device, error))
            return false;
    }
    return true;
}

bool device_taint_set(const struct device_taint *taint, GError **error)
{
    g_autofree char *escaped = g_uri_escape_string(taint->node, NULL, FALSE);
    g_autofree char *slices =
        g_strconcat("resourceslices?fieldSelector=spec.nodeName%3D", escaped, NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    GError *failure = NULL;
    struct list list = {0};
    const cJSON *item;

    const char *version = find_version(taint, "devicetaintrules?limit=1", reply, &failure);
    if (!version || !find_version(taint, slices, reply, &failure)) {
        const bool ok = !failure;
        if (failure)
            g_propagate_prefixed_error(error, failure, "devices of DRA: ");
        return ok;
    }
    const cJSON *tree = json_parse(arena, reply->str, reply->len, error);
    if (!tree || !json_decode(arena, tree, list_fields, &list, error))
        return false;
    cJSON_ArrayForEach (item, list.items) {
        if (!set_slice(taint, version, arena, item, error))
            return fail_within(error, "devices of DRA: ");
    }
    return true;
}
