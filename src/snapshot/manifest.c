/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/manifest.h"

#include "core/fail.h"
#include "snapshot/object_tree.h"
#include "kube/yaml_document.h"
#include "wire/kubernetes.h"

#include <string.h>

#define DEPTH_MAX 4 /* of lists in lists */

/* --- text ----------------------------------------------------------------------------------- */

/* An arena keeps only what is parsed into it. */
static const cJSON *keep(struct json_arena *arena, const cJSON *tree, GError **error)
{
    g_autofree char *text = json_format(tree);
    return json_parse(arena, text, strlen(text), error);
}

const cJSON *manifest_load(struct json_arena *arena, const char *text, size_t length,
                           GError **error)
{
    size_t start = 0;

    if (length > MANIFEST_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "the manifest has %zu bytes, at most %zu are accepted", length, MANIFEST_MAX);
        return NULL;
    }
    while (start < length && strchr(" \t\r\n", text[start]) && text[start])
        start++;
    if (start < length && text[start] == '{')
        return json_parse(arena, text, length, error);
    cJSON *documents = yaml_load_all(text, length, error);
    if (!documents)
        return NULL;
    const cJSON *tree =
        keep(arena, cJSON_GetArraySize(documents) == 1 ? documents->child : documents, error);
    cJSON_Delete(documents);
    return tree;
}

/* --- objects -------------------------------------------------------------------------------- */

static const cJSON *child_of(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* What says which pods the object makes, and how many: its spec, or that of the jobs that it makes. */
static const cJSON *making_spec(const cJSON *object)
{
    const cJSON *spec = child_of(object, "spec");
    const cJSON *job = child_of(child_of(spec, "jobTemplate"), "spec");

    return job ? job : spec;
}

/* What the object makes pods from; NULL: it makes none. */
static const cJSON *template_of(const cJSON *object)
{
    return child_of(making_spec(object), "template");
}

static bool makes_pods(const cJSON *object)
{
    return strcmp(object_tree_get(object, "kind"), "Pod") == 0 ||
           cJSON_IsObject(template_of(object)) ||
           (!child_of(object, "kind") &&
            cJSON_IsArray(child_of(child_of(object, "spec"), "containers")));
}

/* Counts the objects that make pods, and remembers the first. */
static unsigned find_makers(const cJSON *tree, unsigned depth, const cJSON **ret_first)
{
    const cJSON *items = cJSON_IsArray(tree) ? tree : child_of(tree, "items");
    const cJSON *item;
    unsigned n = 0;

    if (!items) {
        if (!cJSON_IsObject(tree) || !makes_pods(tree))
            return 0;
        *ret_first = *ret_first ? *ret_first : tree;
        return 1;
    }
    if (depth == DEPTH_MAX)
        return 0;
    cJSON_ArrayForEach (item, items)
        n += find_makers(item, depth + 1, ret_first);
    return n;
}

struct counts {
    int64_t replicas, parallelism, completions;
};
static const struct json_field count_fields[] = {
    JSON_FIELD_INT64(struct counts, replicas, "replicas", 0),
    JSON_FIELD_INT64(struct counts, parallelism, "parallelism", 0),
    JSON_FIELD_INT64(struct counts, completions, "completions", 0),
    JSON_FIELD_END,
};

/* Nothing is said. */
#define UNSAID INT64_MIN

static bool read_replicas(struct json_arena *arena, const cJSON *object,
                          struct manifest *manifest, GError **error)
{
    const cJSON *spec = making_spec(object);
    struct counts counts = {UNSAID, UNSAID, UNSAID};

    if (spec && !json_decode(arena, spec, count_fields, &counts, error))
        return fail_within(error, "field 'spec': ");
    if (counts.completions >= 0) /* no more pods of a job run at once than have to end */
        counts.parallelism = MIN(counts.parallelism, counts.completions);
    const int64_t said = counts.replicas != UNSAID ? counts.replicas : counts.parallelism;
    manifest->counted = said != UNSAID;
    manifest->replicas = manifest->counted ? said : 1;
    if (manifest->replicas < 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "field 'spec.%s' is %" G_GINT64_FORMAT "; expected 0 or more",
                         counts.replicas != UNSAID ? "replicas" : "parallelism", said);
    if (manifest->replicas <= MANIFEST_REPLICAS_MAX)
        return true;
    return fail_with(error, GPULEDGER_ERROR_LIMIT, "field 'spec.replicas': at most %d are accepted",
                     MANIFEST_REPLICAS_MAX);
}

/* The pod that the object makes, with what it does not say filled in. */
static cJSON *make_pod(const cJSON *object)
{
    const cJSON *template = template_of(object);
    const cJSON *metadata = child_of(object, "metadata");
    cJSON *pod = cJSON_Duplicate(template ? template : object, true);

    if (child_of(pod, "metadata") && !cJSON_IsObject(child_of(pod, "metadata")))
        return pod; /* who decodes it will say so */
    cJSON *own = object_tree_descend(pod, "metadata");

    if (!*object_tree_get(own, "namespace"))
        object_tree_set(own, "namespace", *object_tree_get(metadata, "namespace")
                                              ? object_tree_get(metadata, "namespace")
                                              : "default");
    if (!*object_tree_get(own, "name"))
        object_tree_set(own, "name", *object_tree_get(metadata, "name")
                                         ? object_tree_get(metadata, "name")
                                         : "pod");
    return pod;
}

bool manifest_decode(struct json_arena *arena, const cJSON *tree, struct manifest *ret_manifest,
                     GError **error)
{
    const cJSON *object = NULL;
    const unsigned n = find_makers(tree, 0, &object);
    struct manifest manifest = {0};

    if (n != 1)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            n == 0 ? "expected a Pod, or an object with a pod template such as a Deployment"
                   : "%u objects make pods; give one of them",
            n);
    manifest.kind = *object_tree_get(object, "kind") ? object_tree_get(object, "kind") : "Pod";
    if (!read_replicas(arena, object, &manifest, error))
        return false;
    cJSON *made = make_pod(object);
    const cJSON *pod = keep(arena, made, error);
    cJSON_Delete(made);
    if (!pod || !pod_view_decode_anonymous(arena, pod, &manifest.pod, error))
        return fail_within(error, "%s: ", manifest.kind);
    if (manifest.pod.uid && !*manifest.pod.uid)
        manifest.pod.uid = NULL;
    *ret_manifest = manifest;
    return true;
}

bool manifest_parse(struct json_arena *arena, const char *text, size_t length,
                    struct manifest *ret_manifest, GError **error)
{
    const cJSON *tree = manifest_load(arena, text, length, error);

    return tree && manifest_decode(arena, tree, ret_manifest, error);
}
