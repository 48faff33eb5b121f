/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include "../faults/sim.h"
#include "../prop/chance.h"
#include "strikes.h"

#include <stdlib.h>
#include <string.h>

#define RETRIES_US 30000000

struct api api;

static GTree *objects; /* path -> cJSON */
static unsigned n_uids;

static gint compare(gconstpointer a, gconstpointer b, gpointer data)
{
    return strcmp(a, b);
}

static void delete_object(gpointer object)
{
    cJSON_Delete(object);
}

static void clear_eviction(gpointer data)
{
    struct api_eviction *eviction = data;

    g_free(eviction->uid);
    g_free(eviction->name);
    g_free(eviction->owner);
}

void api_reset(void)
{
    g_clear_pointer(&objects, g_tree_unref);
    g_clear_pointer(&api.evictions, g_array_unref);
    g_clear_pointer(&api.events, g_ptr_array_unref);
    server_end();
    server_start();
    objects = g_tree_new_full(compare, NULL, g_free, delete_object);
    n_uids = 0;
    api = (struct api){.evictions = g_array_new(FALSE, TRUE, sizeof(struct api_eviction)),
                       .events = g_ptr_array_new_with_free_func(g_free)};
    g_array_set_clear_func(api.evictions, clear_eviction);
}

/* --- objects -------------------------------------------------------------------------------------- */

cJSON *api_at(cJSON *object, const char *outer, const char *inner)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, outer), inner);
}

const char *api_text(cJSON *object, const char *outer, const char *inner)
{
    return cJSON_GetStringValue(api_at(object, outer, inner));
}

cJSON *api_get(const char *path)
{
    return g_tree_lookup(objects, path);
}

const char *api_owner(cJSON *pod)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetArrayItem(api_at(pod, "metadata", "ownerReferences"), 0), "uid"));
}

char *api_pod_path(const char *ns, const char *name)
{
    return g_strdup_printf("/api/v1/namespaces/%s/pods/%s", ns, name);
}

static void set_text(cJSON *object, const char *key, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddStringToObject(object, key, text);
}

static bool is_watched(const char *path, enum resource *ret_resource)
{
    const bool node = g_str_has_prefix(path, "/api/v1/nodes/"), pod = strstr(path, "/pods/");

    *ret_resource = node ? NODE : pod ? POD : CONFIGMAP;
    return node || pod || g_str_has_prefix(path, "/api/v1/namespaces/" API_NS "/configmaps/");
}

static void tell(const char *path, const char *type, cJSON *object)
{
    enum resource resource;

    if (!is_watched(path, &resource))
        return;
    if (api.told)
        api.told(path, type, object);
    char *text = cJSON_PrintUnformatted(object);
    server_note(resource, type, g_strdup(text));
    free(text);
}

static void set_version(cJSON *object)
{
    g_autofree char *version = g_strdup_printf("%" G_GINT64_FORMAT, ++server.version);

    set_text(cJSON_GetObjectItemCaseSensitive(object, "metadata"), "resourceVersion", version);
}

void api_touch(const char *path)
{
    cJSON *object = api_get(path);

    set_version(object);
    tell(path, "MODIFIED", object);
}

static cJSON *take(const char *path, cJSON *take_object)
{
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(take_object, "metadata");
    const bool is_new = !api_get(path);

    HOLDS(meta, "an object without metadata at %s", path);
    if (!cJSON_GetObjectItemCaseSensitive(meta, "uid")) {
        g_autofree char *uid = g_strdup_printf("u-%u", ++n_uids);
        cJSON_AddStringToObject(meta, "uid", uid);
    }
    if (!cJSON_GetObjectItemCaseSensitive(meta, "creationTimestamp")) {
        g_autoptr(GDateTime) now = g_date_time_new_from_unix_utc(g_get_real_time() / 1000000);
        g_autofree char *text = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
        cJSON_AddStringToObject(meta, "creationTimestamp", text);
    }
    g_tree_insert(objects, g_strdup(path), take_object);
    set_version(take_object);
    tell(path, is_new ? "ADDED" : "MODIFIED", take_object);
    return take_object;
}

cJSON *api_put(const char *path, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    cJSON *object = cJSON_Parse(text);
    HOLDS(object, "%s: %s", path, text);
    return take(path, object);
}

void api_remove(const char *path)
{
    cJSON *object = api_get(path);

    if (!object)
        return;
    set_version(object);
    tell(path, "DELETED", object);
    g_tree_remove(objects, path);
}

struct collecting {
    const char *prefix;
    GPtrArray *paths;
};

static gboolean collect(gpointer path, gpointer object, gpointer data)
{
    struct collecting *collecting = data;

    if (g_str_has_prefix(path, collecting->prefix))
        g_ptr_array_add(collecting->paths, g_strdup(path));
    return FALSE;
}

GPtrArray *api_paths(const char *prefix)
{
    struct collecting collecting = {prefix, g_ptr_array_new_with_free_func(g_free)};

    g_tree_foreach(objects, collect, &collecting);
    return collecting.paths;
}

const char *api_annotation(const char *path, const char *key)
{
    cJSON *object = api_get(path);

    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(api_at(object, "metadata", "annotations"), key));
}

void api_annotate(const char *path, const char *key, const char *value)
{
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(api_get(path), "metadata");
    cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations");

    if (!annotations)
        annotations = cJSON_AddObjectToObject(meta, "annotations");
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, key);
    if (value)
        cJSON_AddStringToObject(annotations, key, value);
    api_touch(path);
}

/* --- lists ---------------------------------------------------------------------------------------- */

/* "spec.nodeName=n0,status.phase!=Failed" */
static bool is_selected(cJSON *object, const char *selector)
{
    g_auto(GStrv) terms = g_strsplit(selector ? selector : "", ",", -1);

    for (char **term = terms; *term; term++) {
        const char *equals = strchr(*term, '=');
        if (!equals)
            continue;
        const bool negated = equals > *term && equals[-1] == '!';
        g_autofree char *field = g_strndup(*term, (gsize)(equals - *term) - negated);
        g_auto(GStrv) parts = g_strsplit(field, ".", 2);
        const char *text = api_text(object, parts[0], parts[1]);
        if (g_str_equal(text ? text : "", equals + 1) == negated)
            return false;
    }
    return true;
}

GPtrArray *server_objects(enum resource resource, const char *selector)
{
    g_autoptr(GPtrArray) paths = api_paths("/api/v1/");
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < paths->len; i++) {
        enum resource own;
        cJSON *object = api_get(paths->pdata[i]);
        if (!is_watched(paths->pdata[i], &own) || own != resource || !is_selected(object, selector))
            continue;
        char *text = cJSON_PrintUnformatted(object);
        g_ptr_array_add(texts, g_strdup(text));
        free(text);
    }
    return texts;
}

static void list(const char *path, const char *label, struct server_reply *reply)
{
    g_autofree char *prefix = g_strconcat(path, "/", NULL);
    g_autoptr(GPtrArray) paths = api_paths(prefix);
    const char *comma = "";

    reply->status = 200;
    g_string_printf(reply->body,
                    "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%" G_GINT64_FORMAT
                    "\"},\"items\":[",
                    server.version);
    for (guint i = 0; i < paths->len; i++) {
        cJSON *object = api_get(paths->pdata[i]);
        if (label && !cJSON_GetObjectItemCaseSensitive(api_at(object, "metadata", "labels"), label))
            continue;
        char *text = cJSON_PrintUnformatted(object);
        g_string_append_printf(reply->body, "%s%s", comma, text);
        free(text);
        comma = ",";
    }
    g_string_append(reply->body, "]}");
}

/* --- requests ------------------------------------------------------------------------------------- */

static void merge(cJSON *into, const cJSON *patch)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, patch) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(into, item->string);
        if (cJSON_IsObject(item)) {
            if (!cJSON_IsObject(old)) {
                cJSON_DeleteItemFromObjectCaseSensitive(into, item->string);
                old = cJSON_AddObjectToObject(into, item->string);
            }
            merge(old, item);
            continue;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(into, item->string);
        if (!cJSON_IsNull(item))
            cJSON_AddItemToObject(into, item->string, cJSON_Duplicate(item, true));
    }
}

/* What a Secret's stringData says counts. */
static void fold_secret(cJSON *object)
{
    const cJSON *item, *texts = cJSON_GetObjectItemCaseSensitive(object, "stringData");
    cJSON *data = cJSON_GetObjectItemCaseSensitive(object, "data");

    if (texts && !data)
        data = cJSON_AddObjectToObject(object, "data");
    cJSON_ArrayForEach (item, texts) {
        g_autofree char *coded =
            g_base64_encode((const guchar *)item->valuestring, strlen(item->valuestring));
        set_text(data, item->string, coded);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(object, "stringData");
}

static bool is_current(cJSON *object, cJSON *body, struct server_reply *reply)
{
    const char *version = api_text(body, "metadata", "resourceVersion");
    const char *uid = api_text(body, "metadata", "uid");

    if (version && g_strcmp0(version, api_text(object, "metadata", "resourceVersion")) != 0) {
        server_refuse(reply, 409, "Conflict", "the object has been modified");
        return false;
    }
    if (uid && g_strcmp0(uid, api_text(object, "metadata", "uid")) != 0) {
        server_refuse(reply, 409, "Conflict", "Precondition failed: UID in precondition");
        return false;
    }
    return true;
}

static void answer(struct server_reply *reply, long status, const cJSON *object)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;

    reply->status = status;
    g_string_assign(reply->body,
                    text ? text : "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":201}");
    free(text);
}

static void evict(const char *path, cJSON *body, char by, struct server_reply *reply)
{
    cJSON *pod = api_get(path), *options = cJSON_GetObjectItemCaseSensitive(body, "deleteOptions");
    const char *wanted = api_text(options, "preconditions", "uid");

    if (!pod) {
        server_refuse(reply, 404, "NotFound", "pods not found");
        return;
    }
    const char *uid = api_text(pod, "metadata", "uid");
    if (wanted && g_strcmp0(wanted, uid) != 0) {
        server_refuse(reply, 409, "Conflict", "the UID in the precondition is another");
        return;
    }
    const bool ends = api_at(pod, "metadata", "deletionTimestamp") != NULL;
    if (!ends && api.forbids && api.forbids(pod)) {
        server_refuse(reply, 429, "TooManyRequests",
                      "Cannot evict pod as it would violate the pod's disruption budget.");
        return;
    }
    if (!cJSON_GetObjectItemCaseSensitive(options, "dryRun")) {
        for (guint i = 0; ends && i < api.evictions->len; i++) {
            struct api_eviction *old = &g_array_index(api.evictions, struct api_eviction, i);
            /* A client that has had no answer asks once more, which changes nothing. */
            old->again += g_strcmp0(old->uid, uid) == 0 &&
                          (old->by != by || sim_now_us() - old->at_us > RETRIES_US);
        }
        if (!ends) {
            const struct api_eviction eviction = {.uid = g_strdup(uid),
                                                  .name =
                                                      g_strdup(api_text(pod, "metadata", "name")),
                                                  .owner = g_strdup(api_owner(pod)),
                                                  .at_us = sim_now_us(),
                                                  .by = by};
            g_array_append_val(api.evictions, eviction);
            cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(pod, "metadata"),
                                    "deletionTimestamp", "2026-01-02T03:04:05Z");
            api_touch(path);
        }
    }
    answer(reply, 201, NULL);
}

static void bind(const char *path, cJSON *body, struct server_reply *reply)
{
    cJSON *pod = api_get(path);
    const char *uid = api_text(body, "metadata", "uid");

    if (!pod) {
        server_refuse(reply, 404, "NotFound", "pods not found");
    } else if ((uid && g_strcmp0(uid, api_text(pod, "metadata", "uid")) != 0) ||
               api_at(pod, "spec", "nodeName") || api_at(pod, "metadata", "deletionTimestamp")) {
        server_refuse(reply, 409, "Conflict", "Operation cannot be fulfilled on pods/binding");
    } else {
        cJSON *meta = cJSON_GetObjectItemCaseSensitive(pod, "metadata");
        if (!cJSON_GetObjectItemCaseSensitive(meta, "annotations"))
            cJSON_AddObjectToObject(meta, "annotations");
        merge(cJSON_GetObjectItemCaseSensitive(meta, "annotations"),
              api_at(body, "metadata", "annotations"));
        cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(pod, "spec"), "nodeName",
                                api_text(body, "target", "name"));
        api_touch(path);
        answer(reply, 201, NULL);
    }
}

static void create(const char *path, cJSON *take_body, struct server_reply *reply)
{
    const char *name = api_text(take_body, "metadata", "name");
    g_autofree char *own = g_strconcat(path, "/", name, NULL);

    if (g_str_has_suffix(path, "/events")) {
        g_ptr_array_add(api.events,
                        g_strdup_printf("%s %s",
                                        cJSON_GetStringValue(
                                            cJSON_GetObjectItemCaseSensitive(take_body, "reason")),
                                        api_text(take_body, "regarding", "name")));
        answer(reply, 201, take_body);
        cJSON_Delete(take_body);
    } else if (api_get(own)) {
        server_refuse(reply, 409, "AlreadyExists", "it exists already");
        cJSON_Delete(take_body);
    } else {
        answer(reply, 201, take(own, take_body));
    }
}

static void change(const struct server_request *request, const char *path, cJSON *take_body,
                   struct server_reply *reply)
{
    cJSON *object = api_get(path);

    if (!object) {
        server_refuse(reply, 404, "NotFound", "not found");
    } else if (is_current(object, take_body, reply)) {
        if (g_str_equal(request->method, "PATCH")) {
            merge(object, take_body);
            fold_secret(object);
            api_touch(path);
        } else {
            object = take(path, g_steal_pointer(&take_body));
        }
        answer(reply, 200, object);
    }
    cJSON_Delete(take_body);
}

static void write_object(const struct server_request *request, const char *path,
                         struct server_reply *reply)
{
    cJSON *body = request->body ? cJSON_Parse(request->body) : NULL;
    const char by =
        request->authorization ? request->authorization[strlen(request->authorization) - 1] : '?';
    const char *last = strrchr(path, '/');
    g_autofree char *above = g_strndup(path, (gsize)(last - path));

    if (g_str_equal(request->method, "DELETE")) {
        answer(reply, api_get(path) ? 200 : 404, api_get(path));
        api_remove(path);
    } else if (g_str_equal(last, "/eviction")) {
        evict(above, body, by, reply);
    } else if (g_str_equal(last, "/binding")) {
        bind(above, body, reply);
    } else if (g_str_equal(request->method, "POST")) {
        create(path, g_steal_pointer(&body), reply);
    } else {
        change(request, path, g_steal_pointer(&body), reply);
    }
    cJSON_Delete(body);
    if (reply->status < 300 && api.changed)
        api.changed(request, path);
}

struct pod *server_binding(const struct server_request *request, int *ret_card)
{
    return NULL;
}

void server_serve(const struct server_request *request, struct server_reply *reply)
{
    g_autofree char *path = g_strndup(request->url, strcspn(request->url, "?"));

    server.n_requests++;
    if (!g_str_equal(request->method, "GET")) {
        write_object(request, path, reply);
        strikes_served();
    } else if (g_str_equal(path, "/version")) {
        reply->status = 200;
        g_string_assign(reply->body, "{\"gitVersion\":\"v1.36.3\"}");
    } else if (api_get(path)) {
        answer(reply, 200, api_get(path));
    } else if (strstr(request->url, "labelSelector=gpuledger.io%2Fplan")) {
        list(path, "gpuledger.io/plan", reply);
    } else if (!server_collection(request, reply)) {
        if (g_str_has_suffix(path, "/pods"))
            list(path, NULL, reply);
        else
            server_refuse(reply, 404, "NotFound",
                          "the server could not find the requested resource");
    }
}
