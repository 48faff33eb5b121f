/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects are kept as JSON text, a fraction of what their trees would take, and become trees for
 * the moment in which they change. Changes wait in a queue that one thread at a time hands to the
 * store: in order, as a watch would, and without holding the lock over a call into another module.
 */
#include "snapshot/snapshot.h"

#include "base/log.h"
#include "core/fail.h"
#include "kube/feeds.h"
#include "snapshot/object_tree.h"
#include "snapshot/snapshot_file.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define NAME_MAX_LENGTH 253 /* of a DNS subdomain, as the API server has it */

struct object {
    char *key; /* "namespace/name", or "/name" of a node */
    char *uid;
    char *text; /* JSON */
};

/* A change that the store has not been told of yet. */
struct delivery {
    char *text;
    enum feed feed;
    bool gone;
};

struct snapshot {
    struct cluster cluster;
    struct store *store;
    pthread_mutex_t lock;

    /* Under the lock: */
    GHashTable *objects[FEEDS_MAX]; /* key -> struct object * */
    GQueue deliveries;
    bool delivering; /* some thread is at it and will take what is added */
    uint64_t version;
};

static void object_free(void *data)
{
    struct object *object = data;

    g_free(object->key);
    g_free(object->uid);
    g_free(object->text);
    g_free(object);
}

static char *key_new(const char *ns, const char *name)
{
    return g_strconcat(ns ? ns : "", "/", name, NULL);
}

/* --- objects -------------------------------------------------------------------------------- */

/* Under the lock: every change gets a version of its own. */
static void set_version(struct snapshot *snapshot, cJSON *tree)
{
    char text[24];

    g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, ++snapshot->version);
    object_tree_set(object_tree_descend(tree, "metadata"), "resourceVersion", text);
}

/* --- the store ------------------------------------------------------------------------------ */

static void hand_over(struct store *store, struct json_arena *arena,
                      const struct delivery *delivery)
{
    g_autoptr(GError) failure = NULL;

    json_arena_clear(arena);
    const cJSON *tree = json_parse(arena, delivery->text, strlen(delivery->text), &failure);
    if (!(delivery->gone ? tree && feed_forget(delivery->feed, store, arena, tree, &failure)
                         : feed_apply(delivery->feed, store, arena, tree, &failure)))
        log_event(LOG_LEVEL_ERROR, "object cannot be read",
                  LOG_TEXT("kind", kinds[delivery->feed]->kind),
                  LOG_TEXT("error", failure->message));
}

/* Under the lock. */
static void enqueue(struct snapshot *snapshot, enum feed feed, const struct object *object,
                    bool gone)
{
    struct delivery *delivery = g_new0(struct delivery, 1);

    delivery->feed = feed;
    delivery->text = g_strdup(object->text);
    delivery->gone = gone;
    g_queue_push_tail(&snapshot->deliveries, delivery);
}

/* Without the lock: tells the store of all changes so far, one thread at a time and in order. */
static void deliver(struct snapshot *snapshot)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct delivery *delivery;

    pthread_mutex_lock(&snapshot->lock);
    if (snapshot->delivering) {
        pthread_mutex_unlock(&snapshot->lock);
        return;
    }
    snapshot->delivering = true;
    while ((delivery = g_queue_pop_head(&snapshot->deliveries))) {
        pthread_mutex_unlock(&snapshot->lock);
        hand_over(snapshot->store, arena, delivery);
        g_free(delivery->text);
        g_free(delivery);
        pthread_mutex_lock(&snapshot->lock);
    }
    snapshot->delivering = false;
    pthread_mutex_unlock(&snapshot->lock);
}

/* --- loading -------------------------------------------------------------------------------- */

/* Whether the store will understand it; the error names the object. */
static bool check(enum feed feed, const cJSON *tree, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");

    const bool ok =
        kinds[feed]->decode(arena, tree, json_arena_alloc(arena, kinds[feed]->size), error);
    if (!ok)
        g_prefix_error(error, "%s %s/%s: ", kinds[feed]->kind,
                       object_tree_get(metadata, "namespace"), object_tree_get(metadata, "name"));
    return ok;
}

/* Under the lock, or before there are other threads. */
static struct object *put_object(struct snapshot *snapshot, enum feed feed, const cJSON *tree)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    struct object *object = g_new0(struct object, 1);

    object->key =
        key_new(object_tree_get(metadata, "namespace"), object_tree_get(metadata, "name"));
    object->uid = g_strdup(object_tree_get(metadata, "uid"));
    object->text = json_format(tree);
    g_hash_table_replace(snapshot->objects[feed], object->key, object);
    return object;
}

/* Files that were joined may have an object twice. */
static bool check_new(const struct snapshot *snapshot, enum feed feed, const cJSON *tree,
                      GError **error)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    const char *ns = object_tree_get(metadata, "namespace"),
               *name = object_tree_get(metadata, "name");
    g_autofree char *key = key_new(ns, name);
    const struct object *there = g_hash_table_lookup(snapshot->objects[feed], key);
    g_autofree char *text = there ? json_format(tree) : NULL;

    return !there || g_str_equal(there->text, text) ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "%s %s%s%s is there twice, and the two differ; leave one of them out",
                     kinds[feed]->kind, ns, *ns ? "/" : "", name);
}

static bool load_object(enum feed feed, const cJSON *borrowed, void *data, GError **error)
{
    struct snapshot *snapshot = data;
    cJSON *tree = cJSON_Duplicate(borrowed, true);
    uint64_t version;

    object_tree_complete(tree, feed);
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    const bool wanted =
        !kinds[feed]->concerns ||
        kinds[feed]->concerns(NULL, &(struct object_name){object_tree_get(metadata, "namespace"),
                                                          object_tree_get(metadata, "name")});
    const bool ok = !wanted || (check(feed, tree, error) && check_new(snapshot, feed, tree, error));
    if (wanted && ok) {
        if (g_ascii_string_to_unsigned(object_tree_get(metadata, "resourceVersion"), 10, 0,
                                       INT64_MAX, &version, NULL))
            snapshot->version = MAX(snapshot->version, version);
        put_object(snapshot, feed, tree);
    }
    cJSON_Delete(tree);
    return ok;
}

static gint compare_keys(gconstpointer a, gconstpointer b)
{
    const struct object *const *left = a;
    const struct object *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

/* Objects of one kind in order of name, so that runs are alike. */
static GPtrArray *sorted_objects(const struct snapshot *snapshot, enum feed feed)
{
    GPtrArray *objects = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, snapshot->objects[feed]);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(objects, value);
    g_ptr_array_sort(objects, compare_keys);
    return objects;
}

static bool check_uids(const struct snapshot *snapshot, const char *file, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) pods = sorted_objects(snapshot, FEED_PODS);

    for (guint i = 0; i < pods->len; i++) {
        struct object *object = pods->pdata[i];
        const struct object *other = g_hash_table_lookup(seen, object->uid);
        if (other)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "\"%s\": field 'metadata.uid': Pods %s and %s have the same, \"%s\"",
                             file, other->key, object->key, object->uid);
        g_hash_table_insert(seen, object->uid, object);
    }
    return true;
}

/* The texts of all objects of a kind, as they are now. */
static GPtrArray *copy_texts(struct snapshot *snapshot, enum feed feed)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    pthread_mutex_lock(&snapshot->lock);
    g_autoptr(GPtrArray) objects = sorted_objects(snapshot, feed);
    for (guint i = 0; i < objects->len; i++) {
        const struct object *object = objects->pdata[i];
        g_ptr_array_add(texts, g_strdup(object->text));
    }
    pthread_mutex_unlock(&snapshot->lock);
    return texts;
}

static enum outcome snapshot_list(struct cluster *cluster, enum feed feed, struct store *store,
                                  GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    g_autoptr(json_arena) arena = json_arena_new();

    store_list_begin(store, feed);
    g_autoptr(GPtrArray) texts = copy_texts(snapshot, feed);
    for (guint i = 0; i < texts->len; i++) {
        const struct delivery delivery = {.text = texts->pdata[i], .feed = feed};
        hand_over(store, arena, &delivery);
    }
    store_list_end(store, feed);
    return OUTCOME_OK;
}

/* --- bind ----------------------------------------------------------------------------------- */

static enum outcome no_pod(const char *name, GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "pods \"%s\" not found", name);
    return OUTCOME_NOT_FOUND;
}

G_GNUC_PRINTF(3, 4)
static enum outcome conflict(const char *name, GError **error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                "Operation cannot be fulfilled on pods \"%s\": %s", name, text);
    return OUTCOME_CONFLICT;
}

/* The API server's preconditions of a Binding. */
static enum outcome may_bind(const cJSON *tree, const struct binding *binding, GError **error)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(tree, "spec");
    const cJSON *gates = cJSON_GetObjectItemCaseSensitive(spec, "schedulingGates");
    const char *uid = object_tree_get(metadata, "uid");

    if (binding->uid && *binding->uid && !g_str_equal(binding->uid, uid))
        return conflict(binding->name, error,
                        "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                        binding->uid, uid);
    if (*object_tree_get(metadata, "deletionTimestamp"))
        return conflict(binding->name, error,
                        "pod %s is being deleted, cannot be assigned to a host", binding->name);
    if (*object_tree_get(spec, "nodeName"))
        return conflict(binding->name, error, "pod %s is already assigned to node \"%s\"",
                        binding->name, object_tree_get(spec, "nodeName"));
    if (gates && gates->child)
        return conflict(binding->name, error, "pod %s has non-empty .spec.schedulingGates",
                        binding->name);
    return OUTCOME_OK;
}

/* What the dialect's plugin and the kubelet do with a pod that has come to their node. */
static void play_node_side(const struct snapshot *snapshot, cJSON *tree)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(allocation) read = NULL;
    g_autofree char *warning = NULL;
    g_autofree char *now = object_tree_timestamp();
    g_auto(annotations) written = {0};
    struct pod_view view;

    if (pod_view_decode(arena, tree, &view, NULL)) {
        read = dialect_read_allocation(&view, &store_options(snapshot->store)->dialects, &warning);
        /* What was booked says in which of several dialects that read the same resources. */
        const struct allocation *booked = ledger_get(store_lock(snapshot->store), view.uid);
        const struct allocation *held = booked ? booked : read;
        if (held && held->dialect->write_assigned)
            held->dialect->write_assigned(held, g_get_real_time() * 1000, &written);
        store_unlock(snapshot->store);
    }
    object_tree_annotate(tree, &written);
    cJSON *status = object_tree_descend(tree, "status");
    object_tree_set(status, "phase", "Running");
    object_tree_set(status, "startTime", now);
}

static enum outcome snapshot_bind(struct cluster *cluster, const struct binding *binding,
                                  int64_t deadline_ms, GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    g_autofree char *key = key_new(binding->ns, binding->name);
    g_autoptr(json_arena) arena = json_arena_new();
    cJSON *tree = NULL;

    pthread_mutex_lock(&snapshot->lock);
    struct object *object = g_hash_table_lookup(snapshot->objects[FEED_PODS], key);
    enum outcome outcome = object ? OUTCOME_OK : no_pod(binding->name, error);
    if (object) {
        tree = object_tree_parse(arena, object->text);
        outcome = may_bind(tree, binding, error);
    }
    if (outcome == OUTCOME_OK) {
        object_tree_set(object_tree_descend(tree, "spec"), "nodeName", binding->node);
        object_tree_annotate(tree, binding->annotations);
        play_node_side(snapshot, tree);
        set_version(snapshot, tree);
        g_free(object->text);
        object->text = json_format(tree);
        enqueue(snapshot, FEED_PODS, object, false);
    }
    pthread_mutex_unlock(&snapshot->lock);
    cJSON_Delete(tree);
    deliver(snapshot);
    return outcome;
}

static enum outcome snapshot_get_pod(struct cluster *cluster, struct json_arena *arena,
                                     const char *ns, const char *name, int64_t deadline_ms,
                                     struct pod_view *ret_pod, GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    g_autofree char *key = key_new(ns, name);
    char *text = NULL;

    pthread_mutex_lock(&snapshot->lock);
    const struct object *object = g_hash_table_lookup(snapshot->objects[FEED_PODS], key);
    if (object) {
        const size_t size = strlen(object->text) + 1;
        text = memcpy(json_arena_alloc(arena, size), object->text, size);
    }
    pthread_mutex_unlock(&snapshot->lock);
    if (!text)
        return no_pod(name, error);
    const cJSON *tree = json_parse(arena, text, strlen(text), error);
    return tree && pod_view_decode(arena, tree, ret_pod, error) ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static enum outcome snapshot_list_pods_on(struct cluster *cluster, struct json_arena *arena,
                                          const char *node, int64_t deadline_ms,
                                          struct pod_view **ret_pods, size_t *ret_n,
                                          GError **error)
{
    g_autoptr(GPtrArray) texts = copy_texts((struct snapshot *)cluster, FEED_PODS);
    struct pod_view *pods = json_arena_alloc(arena, (texts->len + 1) * sizeof *pods);
    size_t n = 0;

    for (guint i = 0; i < texts->len; i++) {
        const char *text = texts->pdata[i];
        if (!strstr(text, node))
            continue;
        const cJSON *tree = json_parse(arena, text, strlen(text), error);
        if (!tree || !pod_view_decode(arena, tree, &pods[n], error))
            return OUTCOME_UNKNOWN;
        n += g_strcmp0(pods[n].node_name, node) == 0 && !pod_view_is_terminal(&pods[n]);
    }
    *ret_pods = pods;
    *ret_n = n;
    return OUTCOME_OK;
}

static const struct cluster_ops snapshot_ops = {
    .name = "snapshot",
    .bind = snapshot_bind,
    .get_pod = snapshot_get_pod,
    .list_pods_on = snapshot_list_pods_on,
    .list = snapshot_list,
};

/* --- pods that come and go ------------------------------------------------------------------ */

static bool name_is_valid(const char *name)
{
    const size_t length = strlen(name);

    return length > 0 && length <= NAME_MAX_LENGTH && g_ascii_isalnum(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length;
}

static bool uid_is_taken(const struct snapshot *snapshot, const char *uid)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, snapshot->objects[FEED_PODS]);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct object *object = value;
        if (g_str_equal(object->uid, uid))
            return true;
    }
    return false;
}

/* The pod as it will be kept, or NULL. */
static cJSON *read_new_pod(const char *body, size_t length, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *now = object_tree_timestamp();
    const cJSON *given = json_parse(arena, body, length, error);

    if (!given)
        return NULL;
    const char *kind = object_tree_get(given, "kind");
    if (!cJSON_IsObject(given) || (*kind && !g_str_equal(kind, "Pod"))) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "field 'kind': expected \"Pod\"");
        return NULL;
    }
    cJSON *tree = cJSON_Duplicate(given, true);
    object_tree_complete(tree, FEED_PODS);
    cJSON *metadata = object_tree_descend(tree, "metadata");
    if (!*object_tree_get(metadata, "name") && *object_tree_get(metadata, "generateName")) {
        g_autofree char *name = g_strdup_printf("%s%06x", object_tree_get(metadata, "generateName"),
                                                g_random_int() & 0xffffff);
        object_tree_set(metadata, "name", name);
    }
    if (!*object_tree_get(metadata, "creationTimestamp"))
        object_tree_set(metadata, "creationTimestamp", now);
    if (!name_is_valid(object_tree_get(metadata, "name")) ||
        !name_is_valid(object_tree_get(metadata, "namespace"))) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "fields 'metadata.name' and 'metadata.namespace': expected lower-case "
                    "letters, digits, '-' and '.', at most %d",
                    NAME_MAX_LENGTH);
        g_clear_pointer(&tree, cJSON_Delete);
    } else if (!check(FEED_PODS, tree, error)) {
        g_clear_pointer(&tree, cJSON_Delete);
    }
    return tree;
}

bool snapshot_add_pod(struct cluster *cluster, const char *body, size_t length, GString *reply,
                      GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    cJSON *tree = read_new_pod(body, length, error);
    bool ok = false;

    if (!tree)
        return false;
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    g_autofree char *key =
        key_new(object_tree_get(metadata, "namespace"), object_tree_get(metadata, "name"));

    pthread_mutex_lock(&snapshot->lock);
    if (g_hash_table_contains(snapshot->objects[FEED_PODS], key)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "pods \"%s\" already exists",
                    object_tree_get(metadata, "name"));
    } else if (uid_is_taken(snapshot, object_tree_get(metadata, "uid"))) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT,
                    "field 'metadata.uid': \"%s\" is another pod's",
                    object_tree_get(metadata, "uid"));
    } else {
        set_version(snapshot, tree);
        const struct object *object = put_object(snapshot, FEED_PODS, tree);
        g_string_append(reply, object->text);
        enqueue(snapshot, FEED_PODS, object, false);
        ok = true;
    }
    pthread_mutex_unlock(&snapshot->lock);
    cJSON_Delete(tree);
    deliver(snapshot);
    return ok;
}

bool snapshot_delete_pod(struct cluster *cluster, const char *ns, const char *name, GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    g_autofree char *key = key_new(ns, name);

    pthread_mutex_lock(&snapshot->lock);
    const struct object *object = g_hash_table_lookup(snapshot->objects[FEED_PODS], key);
    const bool found = object;
    if (found) {
        enqueue(snapshot, FEED_PODS, object, true);
        g_hash_table_remove(snapshot->objects[FEED_PODS], key);
    }
    pthread_mutex_unlock(&snapshot->lock);
    if (found)
        deliver(snapshot);
    else
        no_pod(name, error);
    return found;
}

/* --- the whole ------------------------------------------------------------------------------ */

struct cluster *snapshot_cluster_new(const char *file, struct store *store, GError **error)
{
    struct snapshot *snapshot = g_new0(struct snapshot, 1);

    snapshot->cluster.ops = &snapshot_ops;
    snapshot->store = store;
    pthread_mutex_init(&snapshot->lock, NULL);
    g_queue_init(&snapshot->deliveries);
    for (int feed = 0; feed < kinds_n; feed++)
        snapshot->objects[feed] = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, object_free);
    if (!snapshot_file_read(file, load_object, snapshot, error) ||
        !check_uids(snapshot, file, error)) {
        snapshot_cluster_free(&snapshot->cluster);
        return NULL;
    }
    for (int feed = 0; feed < kinds_n; feed++)
        snapshot_list(&snapshot->cluster, (enum feed)feed, store, NULL);
    log_event(LOG_LEVEL_INFO, "snapshot loaded", LOG_TEXT("file", file),
              LOG_NUMBER("nodes", g_hash_table_size(snapshot->objects[FEED_NODES])),
              LOG_NUMBER("pods", g_hash_table_size(snapshot->objects[FEED_PODS])));
    return &snapshot->cluster;
}

void snapshot_cluster_free(struct cluster *cluster)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;

    if (!snapshot)
        return;
    for (int feed = 0; feed < kinds_n; feed++)
        g_hash_table_unref(snapshot->objects[feed]);
    pthread_mutex_destroy(&snapshot->lock);
    g_free(snapshot);
}

bool snapshot_save(struct cluster *cluster, const char *file, GError **error)
{
    struct snapshot *snapshot = (struct snapshot *)cluster;
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    for (int feed = 0; feed < kinds_n; feed++)
        g_ptr_array_extend_and_steal(texts, copy_texts(snapshot, (enum feed)feed));
    return snapshot_file_write(file, texts, error);
}
