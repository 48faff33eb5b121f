/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/feeds.h"

#include "kube/reflector.h"
#include "wire/kubernetes.h"

#include <string.h>

/* The metadata that identifies an object, whatever the rest of it looks like. */
struct identity {
    const char *ns;
    const char *name;
    const char *uid;
};

static const struct json_field identity_fields[] = {
    JSON_FIELD_STRING(struct identity, ns, "metadata.namespace", 0),
    JSON_FIELD_STRING(struct identity, name, "metadata.name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct identity, uid, "metadata.uid", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool apply_pod(struct store *store, struct json_arena *arena, const cJSON *object,
                      GError **error)
{
    struct pod_view view;

    if (!pod_view_decode(arena, object, &view, error))
        return false;
    store_apply_pod(store, &view);
    return true;
}

static bool keep_pod(struct store *store, struct json_arena *arena, const cJSON *object)
{
    struct pod_view view;

    if (!pod_view_decode_part(arena, object, &view))
        return false;
    store_apply_pod(store, &view);
    return true;
}

static bool forget_pod(struct store *store, struct json_arena *arena, const cJSON *object,
                       GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    store_vanish_pod(store, identity.uid);
    return true;
}

static bool apply_node(struct store *store, struct json_arena *arena, const cJSON *object,
                       GError **error)
{
    struct node_view view;

    if (!node_view_decode(arena, object, &view, error))
        return false;
    store_apply_node(store, &view);
    return true;
}

static bool forget_node(struct store *store, struct json_arena *arena, const cJSON *object,
                        GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    store_delete_node(store, identity.name);
    return true;
}

static bool read_name(struct json_arena *arena, const cJSON *object, struct object_name *ret_name,
                      GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    *ret_name = (struct object_name){identity.ns ? identity.ns : "", identity.name};
    return true;
}

static bool apply_object(enum feed feed, struct store *store, struct json_arena *arena,
                         const cJSON *object, GError **error)
{
    const struct kind *kind = kinds[feed];
    struct object_name name;

    if (kind->concerns) {
        if (!read_name(arena, object, &name, error))
            return false;
        if (!kind->concerns(NULL, &name))
            return true;
    }
    void *view = json_arena_alloc(arena, kind->size);
    if (!kind->decode(arena, object, view, error))
        return false;
    store_apply_object(store, feed, view);
    return true;
}

static bool forget_object(enum feed feed, struct store *store, struct json_arena *arena,
                          const cJSON *object, GError **error)
{
    struct object_name name;

    if (!read_name(arena, object, &name, error))
        return false;
    if (!kinds[feed]->concerns || kinds[feed]->concerns(NULL, &name))
        store_remove_object(store, feed, &name);
    return true;
}

static bool apply(enum feed feed, struct store *store, struct json_arena *arena,
                  const cJSON *object, GError **error)
{
    return feed == FEED_NODES  ? apply_node(store, arena, object, error)
           : feed == FEED_PODS ? apply_pod(store, arena, object, error)
                               : apply_object(feed, store, arena, object, error);
}

bool feed_apply(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                GError **error)
{
    if (object && apply(feed, store, arena, object, error))
        return true;
    if (!object || feed != FEED_PODS || !keep_pod(store, arena, object))
        store_list_spare(store, feed);
    return false;
}

bool feed_forget(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                 GError **error)
{
    return feed == FEED_NODES  ? forget_node(store, arena, object, error)
           : feed == FEED_PODS ? forget_pod(store, arena, object, error)
                               : forget_object(feed, store, arena, object, error);
}

bool feed_namespace(enum feed feed, const char **ret_ns)
{
    const char *(*within)(void) = kinds[feed]->within;

    *ret_ns = within ? within() : NULL;
    return !within || *ret_ns;
}

char *feed_path(enum feed feed)
{
    const struct kind *kind = kinds[feed];
    const char *ns;

    if (!feed_namespace(feed, &ns))
        return NULL;
    return ns ? g_strdup_printf("%s/namespaces/%s/%s", kind->api, ns, kind->resource)
              : g_strdup_printf("%s/%s", kind->api, kind->resource);
}

char *feed_older_path(enum feed feed)
{
    const struct kind *kind = kinds[feed];

    return kind->older_api ? g_strdup_printf("%s/%s", kind->older_api, kind->resource) : NULL;
}

/* --- a reflector that tells the store ---------------------------------------------------------- */

struct fed {
    struct store *store;
    enum feed feed;
};

static void begin_store(void *data)
{
    const struct fed *fed = data;

    store_list_begin(fed->store, fed->feed);
}

static void end_store(void *data)
{
    const struct fed *fed = data;

    store_list_end(fed->store, fed->feed);
}

static bool apply_to_store(void *data, struct json_arena *arena, const cJSON *object,
                           GError **error)
{
    const struct fed *fed = data;

    return feed_apply(fed->feed, fed->store, arena, object, error);
}

static void spare_store(void *data)
{
    const struct fed *fed = data;

    store_list_spare(fed->store, fed->feed);
}

static bool forget_in_store(void *data, struct json_arena *arena, const cJSON *object,
                            GError **error)
{
    const struct fed *fed = data;

    return feed_forget(fed->feed, fed->store, arena, object, error);
}

static void trouble_store(void *data, const char *why)
{
    const struct fed *fed = data;

    store_set_trouble(fed->store, fed->feed, why);
}

static void unwatched_in_store(void *data, const char *why)
{
    const struct fed *fed = data;

    store_set_unwatched(fed->store, fed->feed, why);
}

struct reflector *reflector_start(struct api_client *client, struct store *store, enum feed feed,
                                  const struct reflector_options *options, GError **error)
{
    const struct kind *kind = kinds[feed];
    g_autofree char *path = feed_path(feed);
    g_autofree char *older_path = feed_older_path(feed);
    struct fed *fed = g_new(struct fed, 1);
    struct reflected reflected = {
        .resource = kind->resource,
        .kind = kind->kind,
        .path = path,
        .older_path = older_path,
        .cell = feed,
        .optional = kind->optional,
        .begin = begin_store,
        .end = end_store,
        .apply = apply_to_store,
        .spare = spare_store,
        .forget = forget_in_store,
        .trouble = trouble_store,
        .unwatched = unwatched_in_store,
        .data = fed,
        .release = g_free,
    };

    *fed = (struct fed){store, feed};
    feed_namespace(feed, &reflected.ns);
    return reflector_start_on(client, &reflected, options, error);
}
