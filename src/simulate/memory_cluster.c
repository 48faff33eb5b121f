/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/memory_cluster.h"

#include <gpuledger/error.h>
#include <string.h>

struct memory_cluster {
    struct cluster cluster;
    struct store *store;
    struct json_arena *arena; /* for the pod that is being looked at */
    bool paced;
    GHashTable *pods;         /* "namespace/name" -> struct memory_pod */
};

static void pod_free(gpointer data)
{
    struct memory_pod *pod = data;

    g_free(pod->uid);
    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->text);
    g_free(pod->node);
    annotations_clear(&pod->words);
    g_free(pod);
}

static struct memory_pod *find(struct cluster *cluster, const char *ns, const char *name)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;
    g_autofree char *key = g_strconcat(ns, "/", name, NULL);

    return g_hash_table_lookup(memory->pods, key);
}

/* The pod as the API server has it now. */
static bool view_pod(struct json_arena *arena, const struct memory_pod *pod,
                     struct pod_view *ret_view, GError **error)
{
    const cJSON *tree = json_parse(arena, pod->text, strlen(pod->text), error);

    if (!tree || !pod_view_decode(arena, tree, ret_view, error))
        return false;
    if (!pod->node)
        return true;
    struct string_pair *pairs = json_arena_alloc(
        arena, (ret_view->annotations.n + pod->words.n + 1) * sizeof *pairs);
    size_t n = 0;
    for (size_t i = 0; i < pod->words.n; i++) /* the first of two equal keys counts */
        pairs[n++] = (struct string_pair){pod->words.items[i].key, pod->words.items[i].value};
    for (size_t i = 0; i < ret_view->annotations.n; i++)
        pairs[n++] = ret_view->annotations.items[i];
    ret_view->annotations = (struct string_pairs){pairs, n};
    ret_view->node_name = pod->node;
    ret_view->phase = pod->served ? "Running" : "Pending";
    ret_view->started = pod->served;
    return true;
}

static enum outcome no_pod(const char *name, GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "pods \"%s\" not found", name);
    return OUTCOME_NOT_FOUND;
}

static void add_words(struct annotations *words, const struct annotations *more)
{
    for (size_t i = 0; i < more->n && words->n < ANNOTATIONS_MAX; i++)
        annotations_add(words, more->items[i].key, g_strdup(more->items[i].value));
}

static bool serve(struct memory_cluster *memory, struct memory_pod *pod, GError **error)
{
    const struct dialect_options *options = &store_options(memory->store)->dialects;
    g_auto(annotations) taken = {0};
    struct pod_view view;

    pod->served = true;
    json_arena_clear(memory->arena);
    if (!view_pod(memory->arena, pod, &view, error))
        return false;
    g_autoptr(allocation) held = dialect_read_allocation(&view, options, NULL);
    if (held && held->dialect->write_assigned) {
        held->dialect->write_assigned(held, g_get_real_time() * 1000, &taken);
        add_words(&pod->words, &taken);
        if (!view_pod(memory->arena, pod, &view, error))
            return false;
    }
    store_apply_pod(memory->store, &view);
    return true;
}

static enum outcome memory_bind(struct cluster *cluster, const struct binding *binding,
                                int64_t deadline_ms, GError **error)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;
    struct memory_pod *pod = find(cluster, binding->ns, binding->name);
    struct pod_view view;

    if (!pod)
        return no_pod(binding->name, error);
    if (pod->node || (binding->uid && !g_str_equal(binding->uid, pod->uid))) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "pod %s is bound already, or another one", binding->name);
        return OUTCOME_CONFLICT;
    }
    pod->node = g_strdup(binding->node);
    if (binding->annotations)
        add_words(&pod->words, binding->annotations);

    if (!memory->paced)
        return serve(memory, pod, error) ? OUTCOME_OK : OUTCOME_REFUSED;
    json_arena_clear(memory->arena);
    if (!view_pod(memory->arena, pod, &view, error))
        return OUTCOME_REFUSED;
    store_apply_pod(memory->store, &view);
    return OUTCOME_OK;
}

void memory_cluster_set_paced(struct cluster *cluster)
{
    ((struct memory_cluster *)cluster)->paced = true;
}

bool memory_cluster_serve(struct cluster *cluster, const char *ns, const char *name, GError **error)
{
    struct memory_pod *pod = find(cluster, ns, name);

    return !pod || pod->served || serve((struct memory_cluster *)cluster, pod, error);
}

static enum outcome memory_get_pod(struct cluster *cluster, struct json_arena *arena,
                                   const char *ns, const char *name, int64_t deadline_ms,
                                   struct pod_view *ret_pod, GError **error)
{
    const struct memory_pod *pod = find(cluster, ns, name);

    if (!pod)
        return no_pod(name, error);
    return view_pod(arena, pod, ret_pod, error) ? OUTCOME_OK : OUTCOME_REFUSED;
}

static enum outcome memory_list(struct cluster *cluster, enum feed feed, struct store *store,
                                GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                "a simulation's cluster is not listed");
    return OUTCOME_REFUSED;
}

static const struct cluster_ops memory_ops = {
    .name = "simulation",
    .bind = memory_bind,
    .get_pod = memory_get_pod,
    .list = memory_list,
};

struct cluster *memory_cluster_new(struct store *store)
{
    struct memory_cluster *memory = g_new0(struct memory_cluster, 1);

    memory->cluster.ops = &memory_ops;
    memory->store = store;
    memory->arena = json_arena_new();
    memory->pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, pod_free);
    return &memory->cluster;
}

void memory_cluster_free(struct cluster *cluster)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;

    if (!memory)
        return;
    g_hash_table_unref(memory->pods);
    json_arena_free(memory->arena);
    g_free(memory);
}

bool memory_cluster_add(struct cluster *cluster, char *take_text, GError **error)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;
    struct memory_pod *pod = g_new0(struct memory_pod, 1);
    struct pod_view view;

    pod->text = take_text;
    json_arena_clear(memory->arena);
    if (!view_pod(memory->arena, pod, &view, error)) {
        pod_free(pod);
        return false;
    }
    if (find(cluster, view.ns, view.name)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "pod %s/%s is there already",
                    view.ns, view.name);
        pod_free(pod);
        return false;
    }
    pod->uid = g_strdup(view.uid);
    pod->ns = g_strdup(view.ns);
    pod->name = g_strdup(view.name);
    if (pod_view_is_bound(&view))
        pod->node = g_strdup(view.node_name);
    pod->served = pod->node != NULL;
    g_hash_table_replace(memory->pods, g_strconcat(pod->ns, "/", pod->name, NULL), pod);
    store_apply_pod(memory->store, &view);
    return true;
}

void memory_cluster_remove(struct cluster *cluster, const char *ns, const char *name)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;
    g_autofree char *key = g_strconcat(ns, "/", name, NULL);

    store_delete_pod(memory->store, find(cluster, ns, name)->uid);
    g_hash_table_remove(memory->pods, key);
}

const char *memory_cluster_node(struct cluster *cluster, const char *ns, const char *name)
{
    const struct memory_pod *pod = find(cluster, ns, name);

    return pod ? pod->node : NULL;
}

static gint compare_pods(gconstpointer a, gconstpointer b)
{
    const struct memory_pod *const *left = a, *const *right = b;
    const int order = strcmp((*left)->ns, (*right)->ns);

    return order ? order : strcmp((*left)->name, (*right)->name);
}

GPtrArray *memory_cluster_pods(struct cluster *cluster)
{
    struct memory_cluster *memory = (struct memory_cluster *)cluster;
    GPtrArray *pods = g_ptr_array_new();
    GHashTableIter iter;
    gpointer pod;

    g_hash_table_iter_init(&iter, memory->pods);
    while (g_hash_table_iter_next(&iter, NULL, &pod))
        g_ptr_array_add(pods, pod);
    g_ptr_array_sort(pods, compare_pods);
    return pods;
}

/* The object below that key, made if need be. */
static cJSON *descend(cJSON *parent, const char *key)
{
    cJSON *child = cJSON_GetObjectItemCaseSensitive(parent, key);

    return child ? child : cJSON_AddObjectToObject(parent, key);
}

char *memory_pod_format(const struct memory_pod *pod)
{
    cJSON *tree = cJSON_Parse(pod->text);

    if (pod->words.n > 0) {
        cJSON *annotations = descend(descend(tree, "metadata"), "annotations");
        for (size_t i = 0; i < pod->words.n; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(annotations, pod->words.items[i].key);
            cJSON_AddStringToObject(annotations, pod->words.items[i].key,
                                    pod->words.items[i].value);
        }
    }
    if (pod->node) {
        cJSON_DeleteItemFromObjectCaseSensitive(descend(tree, "spec"), "nodeName");
        cJSON_AddStringToObject(descend(tree, "spec"), "nodeName", pod->node);
        cJSON_DeleteItemFromObjectCaseSensitive(descend(tree, "status"), "phase");
        cJSON_AddStringToObject(descend(tree, "status"), "phase", "Running");
    }
    char *text = json_format(tree);
    cJSON_Delete(tree);
    return text;
}
