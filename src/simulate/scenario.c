/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/scenario.h"

#include "dialect/discovery.h"
#include "store/kinds/kind.h"
#include "wire/kubernetes.h"
#include "wire/pod_group.h"

#include <string.h>

#define DIALECT "elastic" /* in whose words a trace's pods ask: any share of a card, and no memory */
#define MODELS "gpuledger.io/gpu-models"
#define MODELS_NOT "gpuledger.io/gpu-models-not"
#define REPLICA_OF "pod-template-hash"
#define POD_GROUP "scheduling.x-k8s.io/pod-group"
#define TRACE_NAMESPACE "trace"
#define NODE_PODS "1000" /* the trace knows no such limit */

static void manifest_free(gpointer data)
{
    struct manifest *manifest = data;

    g_free(manifest->ns);
    g_free(manifest->name);
    g_free(manifest->uid);
    g_free(manifest->labels);
    g_free(manifest->annotations);
    g_free(manifest->spec);
    g_free(manifest->status);
    g_free(manifest);
}

static void group_free(gpointer data)
{
    struct scenario_group *group = data;

    g_free(group->text);
    g_free(group);
}

struct scenario *scenario_new(void)
{
    struct scenario *scenario = g_new0(struct scenario, 1);

    scenario->nodes = g_ptr_array_new_with_free_func(manifest_free);
    scenario->bound = g_ptr_array_new_with_free_func(manifest_free);
    scenario->arrivals = g_ptr_array_new_with_free_func(manifest_free);
    scenario->groups = g_ptr_array_new_with_free_func(group_free);
    scenario->configmaps = g_ptr_array_new_with_free_func(g_free);
    return scenario;
}

void scenario_free(struct scenario *scenario)
{
    if (!scenario)
        return;
    g_ptr_array_unref(scenario->nodes);
    g_ptr_array_unref(scenario->bound);
    g_ptr_array_unref(scenario->arrivals);
    g_ptr_array_unref(scenario->groups);
    g_ptr_array_unref(scenario->configmaps);
    g_free(scenario);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_part(struct json_writer *writer, const char *key, const char *json)
{
    if (!json)
        return;
    json_key(writer, key);
    json_raw(writer, json, strlen(json));
}

void manifest_write(const struct manifest *manifest, enum feed feed, const char *name,
                    const char *uid, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", "v1");
    json_key_string(&writer, "kind", feed == FEED_NODES ? "Node" : "Pod");
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", name ? name : manifest->name);
    if (manifest->ns)
        json_key_string(&writer, "namespace", manifest->ns);
    if (uid || manifest->uid)
        json_key_string(&writer, "uid", uid ? uid : manifest->uid);
    write_part(&writer, "labels", manifest->labels);
    write_part(&writer, "annotations", manifest->annotations);
    json_end_object(&writer);
    write_part(&writer, "spec", manifest->spec);
    write_part(&writer, "status", manifest->status);
    json_end_object(&writer);
}

/* --- Kubernetes' objects ---------------------------------------------------------------------- */

struct parts {
    const char *ns, *name, *uid, *node, *phase;
    const cJSON *labels, *annotations, *spec, *status;
};
#define PART(KIND, member, path) JSON_FIELD_##KIND(struct parts, member, path, 0)
static const struct json_field part_fields[] = {
    PART(STRING, ns, "metadata.namespace"),
    PART(STRING, name, "metadata.name"),
    PART(STRING, uid, "metadata.uid"),
    PART(STRING, node, "spec.nodeName"),
    PART(STRING, phase, "status.phase"),
    PART(OBJECT, labels, "metadata.labels"),
    PART(OBJECT, annotations, "metadata.annotations"),
    PART(OBJECT, spec, "spec"),
    PART(OBJECT, status, "status"),
    JSON_FIELD_END,
};

/* The spec without the node that the pod has, for a pod that shall find one. */
static char *format_unbound(const cJSON *spec)
{
    cJSON *copy = cJSON_Duplicate(spec, true);

    cJSON_DeleteItemFromObjectCaseSensitive(copy, "nodeName");
    char *text = json_format(copy);
    cJSON_Delete(copy);
    return text;
}

/* What the verbs will make of it. */
static bool check(struct json_arena *arena, enum feed feed, const cJSON *object, GError **error)
{
    struct pod_view pod;

    return feed == FEED_PODS
               ? pod_view_decode_anonymous(arena, object, &pod, error)
               : kinds[feed]->decode(arena, object, json_arena_alloc(arena, kinds[feed]->size),
                                     error);
}

static void add_pod(struct scenario *scenario, const struct parts *parts, bool arrives)
{
    const bool bound = parts->node && *parts->node && !arrives;
    struct manifest *pod = g_new0(struct manifest, 1);

    pod->ns = g_strdup(parts->ns);
    pod->name = g_strdup(parts->name);
    pod->uid = parts->uid && *parts->uid ? g_strdup(parts->uid)
                                         : g_strconcat(parts->ns, "/", parts->name, NULL);
    pod->labels = parts->labels ? json_format(parts->labels) : NULL;
    pod->annotations = parts->annotations ? json_format(parts->annotations) : NULL;
    pod->spec = !parts->spec ? NULL
                : bound      ? json_format(parts->spec)
                             : format_unbound(parts->spec);
    pod->status = bound && parts->status ? json_format(parts->status) : NULL;
    g_ptr_array_add(bound ? scenario->bound : scenario->arrivals, pod);
}

static void add_node(struct scenario *scenario, const struct parts *parts)
{
    struct manifest *node = g_new0(struct manifest, 1);

    node->name = g_strdup(parts->name);
    node->labels = parts->labels ? json_format(parts->labels) : NULL;
    node->annotations = parts->annotations ? json_format(parts->annotations) : NULL;
    node->spec = parts->spec ? json_format(parts->spec) : NULL;
    node->status = parts->status ? json_format(parts->status) : NULL;
    g_ptr_array_add(scenario->nodes, node);
}

static void add_group(struct scenario *scenario, enum feed feed, const cJSON *object)
{
    struct scenario_group *group = g_new0(struct scenario_group, 1);

    group->text = json_format(object);
    group->native = feed == FEED_NATIVE_POD_GROUPS;
    g_ptr_array_add(scenario->groups, group);
}

bool scenario_add(struct scenario *scenario, enum feed feed, const cJSON *object, bool arrives,
                  GError **error)
{
    static const char *const taken[FEEDS_MAX] = {
        [FEED_NODES] = "Node",
        [FEED_PODS] = "Pod",
        [FEED_CONFIGMAPS] = "ConfigMap",
        [FEED_POD_GROUPS] = "PodGroup",
        [FEED_NATIVE_POD_GROUPS] = "PodGroup",
    };
    g_autoptr(json_arena) arena = json_arena_new();
    struct parts parts = {0};

    if (!taken[feed])
        return true;
    if (!json_decode(arena, object, part_fields, &parts, error) ||
        !check(arena, feed, object, error)) {
        g_prefix_error(error, "%s %s%s%s: ", taken[feed], parts.ns ? parts.ns : "",
                       parts.ns ? "/" : "", parts.name ? parts.name : "without a name");
        return false;
    }
    if (feed == FEED_NODES)
        add_node(scenario, &parts);
    else if (feed == FEED_POD_GROUPS || feed == FEED_NATIVE_POD_GROUPS)
        add_group(scenario, feed, object);
    else if (feed == FEED_CONFIGMAPS)
        g_ptr_array_add(scenario->configmaps, json_format(object));
    else if (arrives || (g_strcmp0(parts.phase, "Succeeded") && g_strcmp0(parts.phase, "Failed")))
        add_pod(scenario, &parts, arrives);
    return true;
}

/* --- traces ----------------------------------------------------------------------------------- */

static void write_amount(struct json_writer *writer, const char *key, int64_t amount,
                         const char *unit)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "%s", amount, unit);

    json_key_string(writer, key, text);
}

static void write_amounts(struct json_writer *writer, int64_t cpu_milli, int64_t memory_mib,
                          int64_t core)
{
    json_begin_object(writer);
    write_amount(writer, "cpu", cpu_milli, "m");
    write_amount(writer, "memory", memory_mib, "Mi");
    if (core > 0)
        write_amount(writer, dialect_find(DIALECT)->words.core, core, "");
}

static char *trace_node_status(const struct trace_node *node)
{
    static const char *const keys[] = {"capacity", "allocatable"};
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        json_key(&writer, keys[i]);
        write_amounts(&writer, node->cpu_milli, node->memory_mib, node->cards * dialect_find(DIALECT)->words.whole_units);
        json_key_string(&writer, "pods", NODE_PODS);
        json_end_object(&writer);
    }
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

static char *format_pairs(const char *key, const char *value, const char *key2, const char *value2)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, key, value);
    if (value2)
        json_key_string(&writer, key2, value2);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

static char *trace_pod_spec(const struct trace_pod *pod)
{
    static const char *const keys[] = {"requests", "limits"};
    const int64_t core = pod->cards * pod->card_milli * dialect_find(DIALECT)->words.whole_units / CORE_WHOLE;
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    if (*pod->priority_class)
        json_key_string(&writer, "priorityClassName", pod->priority_class);
    if (pod->priority > 0)
        json_key_int(&writer, "priority", pod->priority);
    json_key_array(&writer, "containers");
    json_begin_object(&writer);
    json_key_string(&writer, "name", "main");
    json_key_string(&writer, "image", "example.com/none:1");
    json_key_object(&writer, "resources");
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        json_key(&writer, keys[i]);
        write_amounts(&writer, pod->cpu_milli, pod->memory_mib, core);
        json_end_object(&writer);
    }
    json_end_object(&writer);
    json_end_object(&writer);
    json_end_array(&writer);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

static char *trace_pod_labels(const struct trace_pod *pod)
{
    const char *group = *pod->group ? pod->group : NULL;

    if (*pod->replica_of)
        return format_pairs(REPLICA_OF, pod->replica_of, POD_GROUP, group);
    return group ? format_pairs(POD_GROUP, group, NULL, NULL) : NULL;
}

/* A trace names models in full, the annotation accepts a part of the name: "A10" must not take a
 * card of the model "A100". */
static char *trace_pod_annotations(const struct trace_pod *pod, GHashTable *models)
{
    g_auto(GStrv) accepted = g_strsplit(pod->models, "|", -1);
    g_autofree char *listed = g_strjoinv(",", accepted);
    g_autoptr(GString) others = g_string_new(NULL);
    GHashTableIter iter;
    gpointer model;

    if (!*pod->models)
        return NULL;
    g_hash_table_iter_init(&iter, models);
    while (g_hash_table_iter_next(&iter, &model, NULL)) {
        bool meant = false, taken = false;
        for (char **one = accepted; *one; one++) {
            meant |= g_str_equal(*one, (const char *)model);
            taken |= strcasestr(model, *one) != NULL;
        }
        if (taken && !meant)
            g_string_append_printf(others, "%s%s", others->len ? "," : "", (const char *)model);
    }
    return format_pairs(MODELS, listed, MODELS_NOT, others->len ? others->str : NULL);
}

static void add_trace_group(struct scenario *scenario, const char *name, int64_t min)
{
    struct scenario_group *group = g_new0(struct scenario_group, 1);
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "namespace", TRACE_NAMESPACE);
    json_key_string(&writer, "name", name);
    json_end_object(&writer);
    json_key_object(&writer, "spec");
    json_key_int(&writer, "minMember", min);
    json_end_object(&writer);
    json_end_object(&writer);
    group->text = g_string_free(text, FALSE);
    g_ptr_array_add(scenario->groups, group);
}

/* One that does not say how many come together needs all its pods. */
static void add_trace_groups(struct scenario *scenario, const struct trace *trace)
{
    g_autoptr(GHashTable) sizes = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < trace->pods->len; i++) {
        const char *name = g_array_index(trace->pods, struct trace_pod, i).group;
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(sizes, name));
        g_hash_table_insert(sizes, (gpointer)name, GUINT_TO_POINTER(n + 1));
    }
    for (guint i = 0; i < trace->pods->len; i++) {
        const struct trace_pod *pod = &g_array_index(trace->pods, struct trace_pod, i);
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(sizes, pod->group));
        if (!*pod->group || n == 0)
            continue;
        add_trace_group(scenario, pod->group, pod->group_min > 0 ? pod->group_min : n);
        g_hash_table_insert(sizes, (gpointer)pod->group, NULL);
    }
}

void scenario_add_trace(struct scenario *scenario, const struct trace *trace)
{
    g_autoptr(GHashTable) models = g_hash_table_new(g_str_hash, g_str_equal);

    scenario->anonymous = true;
    add_trace_groups(scenario, trace);
    for (guint i = 0; i < trace->nodes->len; i++) {
        const struct trace_node *node = &g_array_index(trace->nodes, struct trace_node, i);
        struct manifest *manifest = g_new0(struct manifest, 1);
        manifest->name = g_strdup(node->name);
        if (*node->model)
            manifest->labels = format_pairs(DISCOVERY_PRODUCT, node->model, NULL, NULL);
        manifest->status = trace_node_status(node);
        g_ptr_array_add(scenario->nodes, manifest);
        g_hash_table_add(models, (gpointer)node->model);
    }
    for (guint i = 0; i < trace->pods->len; i++) {
        const struct trace_pod *pod = &g_array_index(trace->pods, struct trace_pod, i);
        struct manifest *manifest = g_new0(struct manifest, 1);
        manifest->ns = g_strdup(TRACE_NAMESPACE);
        manifest->name = g_strdup(pod->name);
        manifest->labels = trace_pod_labels(pod);
        manifest->annotations = trace_pod_annotations(pod, models);
        manifest->spec = trace_pod_spec(pod);
        g_ptr_array_add(scenario->arrivals, manifest);
    }
}
