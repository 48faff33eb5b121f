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

bool feed_wants_configmap(const char *ns, const char *name)
{
    const char *node;

    return dialect_of_quotas(ns, name) || dialect_of_health(ns, name, &node);
}

static bool apply_configmap(struct store *store, struct json_arena *arena, const cJSON *object,
                            GError **error)
{
    struct identity identity = {0};
    struct configmap_view view;

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    if (!feed_wants_configmap(identity.ns, identity.name))
        return true;
    if (!configmap_view_decode(arena, object, &view, error))
        return false;
    store_apply_configmap(store, &view);
    return true;
}

static bool forget_configmap(struct store *store, struct json_arena *arena, const cJSON *object,
                             GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    if (!feed_wants_configmap(identity.ns, identity.name))
        return true;
    const struct configmap_view view = {.ns = identity.ns, .name = identity.name};
    store_delete_configmap(store, &view);
    return true;
}

static bool apply_budget(struct store *store, struct json_arena *arena, const cJSON *object,
                         GError **error)
{
    struct budget_view view;

    if (!budget_view_decode(arena, object, &view, error))
        return false;
    store_apply_budget(store, &view);
    return true;
}

static bool forget_budget(struct store *store, struct json_arena *arena, const cJSON *object,
                          GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    store_delete_budget(store, identity.ns ? identity.ns : "", identity.name);
    return true;
}

static bool apply_resource_quota(struct store *store, struct json_arena *arena,
                                 const cJSON *object, GError **error)
{
    struct resource_quota_view view;

    if (!resource_quota_view_decode(arena, object, &view, error))
        return false;
    store_apply_resource_quota(store, &view);
    return true;
}

static bool apply_elastic_quota(struct store *store, struct json_arena *arena, const cJSON *object,
                                GError **error)
{
    struct resource_quota_view view;

    if (!elastic_quota_view_decode(arena, object, &view, error))
        return false;
    store_apply_resource_quota(store, &view);
    return true;
}

static bool forget_quota(struct store *store, struct json_arena *arena, const cJSON *object,
                         bool elastic, GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    store_delete_resource_quota(store, &(struct resource_quota_view){identity.ns ? identity.ns : "",
                                                                     identity.name, elastic});
    return true;
}

static bool forget_elastic_quota(struct store *store, struct json_arena *arena, const cJSON *object,
                                 GError **error)
{
    return forget_quota(store, arena, object, true, error);
}

static bool forget_resource_quota(struct store *store, struct json_arena *arena,
                                  const cJSON *object, GError **error)
{
    return forget_quota(store, arena, object, false, error);
}

static bool apply_pod_group(struct store *store, struct json_arena *arena, const cJSON *object,
                            GError **error)
{
    struct pod_group_view view;

    if (!pod_group_view_decode(arena, object, false, &view, error))
        return false;
    store_apply_pod_group(store, &view);
    return true;
}

static bool apply_native_pod_group(struct store *store, struct json_arena *arena,
                                   const cJSON *object, GError **error)
{
    struct pod_group_view view;

    if (!pod_group_view_decode(arena, object, true, &view, error))
        return false;
    store_apply_pod_group(store, &view);
    return true;
}

static bool forget_group(struct store *store, struct json_arena *arena, const cJSON *object,
                         bool native, GError **error)
{
    struct identity identity = {0};

    if (!json_decode(arena, object, identity_fields, &identity, error))
        return false;
    store_delete_pod_group(
        store, &(struct pod_group_view){identity.ns ? identity.ns : "", identity.name, native});
    return true;
}

static bool forget_pod_group(struct store *store, struct json_arena *arena, const cJSON *object,
                             GError **error)
{
    return forget_group(store, arena, object, false, error);
}

static bool forget_native_pod_group(struct store *store, struct json_arena *arena,
                                    const cJSON *object, GError **error)
{
    return forget_group(store, arena, object, true, error);
}

#define CORE "/api/v1"

/* Pods that have ended are shown, too: kubelet may have rejected them, and some plugins hand out what they
 * were promised all the same (docs/design/promises.md). The roles that people have installed for other extenders do not all grant ConfigMaps. */
const struct feed_row feeds[FEED_N] = {
    [FEED_NODES] = {"nodes", "Node", CORE, NULL, false, apply_node, NULL, forget_node},
    [FEED_PODS] = {"pods", "Pod", CORE, NULL, false, apply_pod, keep_pod, forget_pod},
    [FEED_CONFIGMAPS] = {"configmaps", "ConfigMap", CORE, NULL, true, apply_configmap, NULL,
                         forget_configmap},
    [FEED_BUDGETS] = {"poddisruptionbudgets", "PodDisruptionBudget", "/apis/policy/v1",
                      "/apis/policy/v1beta1", true, apply_budget, NULL, forget_budget},
    [FEED_RESOURCE_QUOTAS] = {"resourcequotas", "ResourceQuota", CORE, NULL, true,
                              apply_resource_quota, NULL, forget_resource_quota},
    [FEED_ELASTIC_QUOTAS] = {"elasticquotas", "ElasticQuota", "/apis/scheduling.x-k8s.io/v1alpha1",
                             "/apis/scheduling.sigs.k8s.io/v1alpha1", true, apply_elastic_quota,
                             NULL, forget_elastic_quota},
    [FEED_POD_GROUPS] = {"podgroups", "PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1", NULL, true,
                         apply_pod_group, NULL, forget_pod_group},
    [FEED_NATIVE_POD_GROUPS] = {"podgroups", "PodGroup", "/apis/scheduling.k8s.io/v1beta1",
                                "/apis/scheduling.k8s.io/v1alpha2", true, apply_native_pod_group,
                                NULL, forget_native_pod_group},
};

bool feed_apply(enum feed feed, struct store *store, struct json_arena *arena, const cJSON *object,
                GError **error)
{
    const struct feed_row *row = &feeds[feed];

    if (object && row->apply(store, arena, object, error))
        return true;
    if (!object || !row->keep || !row->keep(store, arena, object))
        store_list_spare(store, feed);
    return false;
}

bool feed_namespace(enum feed feed, const char **ret_ns)
{
    *ret_ns = NULL;
    if (feed != FEED_CONFIGMAPS)
        return true;
    /* One namespace serves all dialects; test_reflector holds their rows to it. */
    for (size_t i = 0; dialects[i] && !*ret_ns; i++)
        *ret_ns = dialects[i]->health_namespace;
    return *ret_ns;
}

char *feed_path(enum feed feed)
{
    const char *resource = feeds[feed].resource;
    const char *ns;

    if (!feed_namespace(feed, &ns))
        return NULL;
    return ns ? g_strdup_printf("%s/namespaces/%s/%s", feeds[feed].api, ns, resource)
              : g_strdup_printf("%s/%s", feeds[feed].api, resource);
}

char *feed_older_path(enum feed feed)
{
    const char *api = feeds[feed].older_api;

    return api ? g_strdup_printf("%s/%s", api, feeds[feed].resource) : NULL;
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

    return feeds[fed->feed].forget(fed->store, arena, object, error);
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
    const struct feed_row *row = &feeds[feed];
    g_autofree char *path = feed_path(feed);
    g_autofree char *older_path = feed_older_path(feed);
    struct fed *fed = g_new(struct fed, 1);
    struct reflected reflected = {
        .resource = row->resource,
        .kind = row->kind,
        .path = path,
        .older_path = older_path,
        .cell = feed,
        .optional = row->optional,
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
