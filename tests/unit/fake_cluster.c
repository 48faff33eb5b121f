/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static gint compare_keys(gconstpointer a, gconstpointer b, gpointer data)
{
    return strcmp(a, b);
}

static void free_pod(gpointer data)
{
    struct pod_object *pod = data;
    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->uid);
    g_free(pod->node);
    g_free(pod->phase);
    g_free(pod->containers);
    g_free(pod->init_containers);
    for (size_t i = 0; i < G_N_ELEMENTS(pod->spec); i++) {
        g_free(pod->spec[i][0]);
        g_free(pod->spec[i][1]);
    }
    g_tree_unref(pod->annotations);
    g_free(pod);
}

static void free_node(gpointer data)
{
    struct node_object *node = data;
    g_free(node->name);
    g_free(node->status);
    g_tree_unref(node->annotations);
    g_free(node);
}

static void free_event(gpointer data)
{
    struct event *event = data;
    g_free(event->object);
    g_free(event);
}

static char *pod_key(const char *name)
{
    return strchr(name, '/') ? g_strdup(name) : g_strdup_printf("ml/%s", name);
}

static struct pod_object *find_pod(struct fake_cluster *fake, const char *name)
{
    g_autofree char *key = pod_key(name);
    return g_tree_lookup(fake->pods, key);
}

bool fake_pod_is_over(const struct pod_object *pod)
{
    return g_str_equal(pod->phase, "Succeeded") || g_str_equal(pod->phase, "Failed");
}

/* --- objects as text ------------------------------------------------------------------------ */

static gboolean write_annotation(gpointer key, gpointer value, gpointer data)
{
    json_key_string(data, key, value);
    return FALSE;
}

static char *pod_json(const struct pod_object *pod)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key(&writer, "metadata");
    json_begin_object(&writer);
    json_key_string(&writer, "namespace", pod->ns);
    json_key_string(&writer, "name", pod->name);
    json_key_string(&writer, "uid", pod->uid);
    if (pod->terminating)
        json_key_string(&writer, "deletionTimestamp", "2026-01-02T03:04:05Z");
    json_key(&writer, "annotations");
    json_begin_object(&writer);
    g_tree_foreach(pod->annotations, write_annotation, &writer);
    json_end_object(&writer);
    json_end_object(&writer);
    json_key(&writer, "spec");
    json_begin_object(&writer);
    if (pod->node)
        json_key_string(&writer, "nodeName", pod->node);
    for (size_t i = 0; i < G_N_ELEMENTS(pod->spec) && pod->spec[i][0]; i++) {
        json_key(&writer, pod->spec[i][0]);
        json_raw(&writer, pod->spec[i][1], strlen(pod->spec[i][1]));
    }
    json_key(&writer, "containers");
    json_raw(&writer, pod->containers, strlen(pod->containers));
    if (pod->init_containers) {
        json_key(&writer, "initContainers");
        json_raw(&writer, pod->init_containers, strlen(pod->init_containers));
    }
    json_end_object(&writer);
    json_key(&writer, "status");
    json_begin_object(&writer);
    json_key_string(&writer, "phase", pod->phase);
    if (pod->started)
        json_key_string(&writer, "startTime", "2026-01-02T03:04:05Z");
    json_end_object(&writer);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

char *fake_cluster_node_json(const struct node_object *node)
{
    GString *text = g_string_new(NULL);
    g_autofree char *version = g_strdup_printf("%" G_GINT64_FORMAT, node->version);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key(&writer, "metadata");
    json_begin_object(&writer);
    json_key_string(&writer, "name", node->name);
    json_key_string(&writer, "resourceVersion", version);
    json_key(&writer, "annotations");
    json_begin_object(&writer);
    g_tree_foreach(node->annotations, write_annotation, &writer);
    json_end_object(&writer);
    json_end_object(&writer);
    json_key(&writer, "status");
    json_raw(&writer, node->status, strlen(node->status));
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

/* --- feeds ---------------------------------------------------------------------------------- */

static void push_event(struct fake_cluster *fake, enum feed feed, bool deleted, char *take_object)
{
    struct event *event = g_new(struct event, 1);

    *event = (struct event){deleted, take_object};
    g_queue_push_tail(&fake->events[feed], event);
}

void fake_cluster_pod_changed(struct fake_cluster *fake, const struct pod_object *pod, bool deleted)
{
    push_event(fake, FEED_PODS, deleted, pod_json(pod));
}

unsigned fake_cluster_deliver(struct fake_cluster *fake, struct store *store, enum feed feed,
                              unsigned max)
{
    unsigned n = 0;

    for (; n < max; n++) {
        lock(fake);
        struct event *event = g_queue_pop_head(&fake->events[feed]);
        unlock(fake);
        if (!event)
            break;
        feed_event(store, feed, event->deleted, event->object);
        free_event(event);
    }
    return n;
}

void fake_cluster_deliver_all(struct fake_cluster *fake, struct store *store)
{
    for (int feed = 0; feed < FEED_N; feed++)
        fake_cluster_deliver(fake, store, feed, UINT_MAX);
}

static gboolean collect_pod(gpointer key, gpointer pod, gpointer array)
{
    g_ptr_array_add(array, pod_json(pod));
    return FALSE;
}

static gboolean collect_node(gpointer key, gpointer data, gpointer array)
{
    const struct node_object *node = data;
    g_ptr_array_add(array, fake_cluster_node_json(node));
    return FALSE;
}

static gboolean collect_text(gpointer key, gpointer text, gpointer array)
{
    g_ptr_array_add(array, g_strdup(text));
    return FALSE;
}

GPtrArray *fake_cluster_objects(struct fake_cluster *fake, enum feed feed)
{
    GPtrArray *objects = g_ptr_array_new_with_free_func(g_free);

    lock(fake);
    if (feed == FEED_PODS)
        g_tree_foreach(fake->pods, collect_pod, objects);
    else if (feed == FEED_NODES)
        g_tree_foreach(fake->nodes, collect_node, objects);
    else if (feed == FEED_CONFIGMAPS)
        g_tree_foreach(fake->configmaps, collect_text, objects);
    unlock(fake);
    return objects;
}

GPtrArray *fake_cluster_snapshot(struct fake_cluster *fake, enum feed feed)
{
    lock(fake);
    g_queue_clear_full(&fake->events[feed], free_event);
    unlock(fake);
    return fake_cluster_objects(fake, feed);
}

void fake_cluster_list(struct fake_cluster *fake, struct store *store, enum feed feed)
{
    store_list_begin(store, feed);
    g_autoptr(GPtrArray) objects = fake_cluster_snapshot(fake, feed);
    for (guint i = 0; i < objects->len; i++)
        feed_event(store, feed, false, g_ptr_array_index(objects, i));
    store_list_end(store, feed);
}

/* --- pods ----------------------------------------------------------------------------------- */

static struct pod_object *new_pod(const struct fake_pod *from)
{
    struct pod_object *pod = g_new0(struct pod_object, 1);
    g_autofree char *key = pod_key(from->name);
    const char *slash = strchr(key, '/');

    pod->ns = g_strndup(key, (gsize)(slash - key));
    pod->name = g_strdup(slash + 1);
    pod->uid = from->uid ? g_strdup(from->uid) : g_strdup_printf("uid-%s", from->name);
    pod->node = g_strdup(from->node);
    pod->phase = g_strdup(from->phase ? from->phase : "Pending");
    pod->mem = from->mem;
    pod->started = g_str_equal(pod->phase, "Running");
    if (from->containers)
        pod->containers = g_strdup(from->containers);
    else if (from->mem > 0)
        pod->containers = g_strdup_printf("[{\"name\":\"main\",\"resources\":{\"limits\":{"
                                          "\"aliyun.com/gpu-mem\":\"%" G_GINT64_FORMAT "\"}}}]",
                                          from->mem);
    else
        pod->containers = g_strdup("[{\"name\":\"main\"}]");
    pod->init_containers = g_strdup(from->init_containers);
    for (size_t i = 0; i < G_N_ELEMENTS(pod->spec); i++) {
        pod->spec[i][0] = g_strdup(from->spec[i].key);
        pod->spec[i][1] = g_strdup(from->spec[i].value);
    }
    pod->annotations = g_tree_new_full(compare_keys, NULL, g_free, g_free);
    if (from->card) {
        g_tree_insert(pod->annotations, g_strdup(KEY_IDX), g_strdup(from->card));
        g_tree_insert(pod->annotations, g_strdup(KEY_POD),
                      g_strdup_printf("%" G_GINT64_FORMAT, from->mem));
        g_tree_insert(pod->annotations, g_strdup(KEY_ASSIGNED), g_strdup("true"));
    }
    return pod;
}

void fake_cluster_add_pod(struct fake_cluster *fake, const struct fake_pod *from)
{
    struct pod_object *pod = new_pod(from);

    lock(fake);
    const struct pod_object *old = find_pod(fake, from->name);
    if (old && !g_str_equal(old->uid, pod->uid))
        fake_cluster_pod_changed(fake, old, true);
    fake_cluster_pod_changed(fake, pod, false);
    g_tree_insert(fake->pods, pod_key(from->name), pod);
    unlock(fake);
}

void fake_cluster_delete_pod(struct fake_cluster *fake, const char *name)
{
    g_autofree char *key = pod_key(name);

    lock(fake);
    const struct pod_object *pod = g_tree_lookup(fake->pods, key);
    if (pod) {
        fake_cluster_pod_changed(fake, pod, true);
        g_tree_remove(fake->pods, key);
    }
    unlock(fake);
}

void fake_cluster_annotate(struct fake_cluster *fake, const char *name, const char *key,
                           const char *value)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod) {
        if (value)
            g_tree_insert(pod->annotations, g_strdup(key), g_strdup(value));
        else
            g_tree_remove(pod->annotations, key);
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

void fake_cluster_set_phase(struct fake_cluster *fake, const char *name, const char *phase)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod && !fake_pod_is_over(pod)) {
        g_free(pod->phase);
        pod->phase = g_strdup(phase);
        pod->started |= g_str_equal(phase, "Running");
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

void fake_cluster_terminate(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod) {
        pod->terminating = true;
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

void fake_cluster_assign(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod && pod->node &&
        g_strcmp0(g_tree_lookup(pod->annotations, KEY_ASSIGNED), "false") == 0) {
        g_auto(annotations) written = {0};
        struct allocation none = {0};

        dialect_find("gpushare")->write_assigned(&none, g_get_real_time() * 1000, &written);
        for (size_t i = 0; i < written.n; i++)
            g_tree_insert(pod->annotations, g_strdup(written.items[i].key),
                          g_strdup(written.items[i].value));
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

void fake_cluster_start(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod && pod->node && !pod->started) {
        pod->started = true;
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

void fake_cluster_bind_bare(struct fake_cluster *fake, const char *name, const char *node)
{
    lock(fake);
    struct pod_object *pod = find_pod(fake, name);
    if (pod && !pod->node) {
        pod->node = g_strdup(node);
        fake_cluster_pod_changed(fake, pod, false);
    }
    unlock(fake);
}

bool fake_cluster_lives(struct fake_cluster *fake, const char *name, const char *uid)
{
    lock(fake);
    const struct pod_object *pod = find_pod(fake, name);
    bool lives = pod && g_str_equal(pod->uid, uid) && !fake_pod_is_over(pod);
    unlock(fake);
    return lives;
}

char *fake_cluster_pod_json(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    const struct pod_object *pod = find_pod(fake, name);
    char *text = pod ? pod_json(pod) : NULL;
    unlock(fake);
    return text;
}

char *fake_cluster_uid(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    const struct pod_object *pod = find_pod(fake, name);
    char *uid = pod ? g_strdup(pod->uid) : NULL;
    unlock(fake);
    return uid;
}

char *fake_cluster_annotation(struct fake_cluster *fake, const char *name, const char *key)
{
    lock(fake);
    const struct pod_object *pod = find_pod(fake, name);
    char *value = pod ? g_strdup(g_tree_lookup(pod->annotations, key)) : NULL;
    unlock(fake);
    return value;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void put_node(struct fake_cluster *fake, const char *name, int mem, int count,
                     const char *status)
{
    struct node_object *node = g_new(struct node_object, 1);

    *node = (struct node_object){mem, count, g_strdup(name), g_strdup(status), 1,
                                 g_tree_new_full(compare_keys, NULL, g_free, g_free)};
    lock(fake);
    push_event(fake, FEED_NODES, false, fake_cluster_node_json(node));
    g_tree_insert(fake->nodes, g_strdup(name), node);
    unlock(fake);
}

void fake_cluster_put_node(struct fake_cluster *fake, const char *name, int mem, int count)
{
    g_autofree char *status = g_strdup_printf(
        "{\"capacity\":{\"aliyun.com/gpu-mem\":\"%d\",\"aliyun.com/gpu-count\":\"%d\"}}", mem,
        count);
    put_node(fake, name, mem, count, status);
}

void fake_cluster_put_other_node(struct fake_cluster *fake, const char *name, const char *status)
{
    put_node(fake, name, 0, 0, status);
}

void fake_cluster_change_node(struct fake_cluster *fake, struct node_object *node, const char *key,
                              const char *value)
{
    if (value)
        g_tree_insert(node->annotations, g_strdup(key), g_strdup(value));
    else
        g_tree_remove(node->annotations, key);
    node->version++;
    push_event(fake, FEED_NODES, false, fake_cluster_node_json(node));
}

void fake_cluster_annotate_node(struct fake_cluster *fake, const char *name, const char *key,
                                const char *value)
{
    lock(fake);
    fake_cluster_change_node(fake, g_tree_lookup(fake->nodes, name), key, value);
    unlock(fake);
}

char *fake_cluster_node_annotation(struct fake_cluster *fake, const char *name, const char *key)
{
    lock(fake);
    const struct node_object *node = g_tree_lookup(fake->nodes, name);
    char *value = node ? g_strdup(g_tree_lookup(node->annotations, key)) : NULL;
    unlock(fake);
    return value;
}

void fake_cluster_delete_node(struct fake_cluster *fake, const char *name)
{
    lock(fake);
    const struct node_object *node = g_tree_lookup(fake->nodes, name);
    if (node) {
        push_event(fake, FEED_NODES, true, fake_cluster_node_json(node));
        g_tree_remove(fake->nodes, name);
    }
    unlock(fake);
}

void fake_cluster_put_unhealthy(struct fake_cluster *fake, const char *node, const char *gpus)
{
    char *text = g_strdup_printf("{\"metadata\":{\"namespace\":\"kube-system\","
                                 "\"name\":\"unhealthy-gpu-%s\"},\"data\":{\"gpus\":\"%s\"}}",
                                 node, gpus ? gpus : "");

    lock(fake);
    push_event(fake, FEED_CONFIGMAPS, !gpus, g_strdup(text));
    if (gpus)
        g_tree_insert(fake->configmaps, g_strdup(node), text);
    else
        g_tree_remove(fake->configmaps, node);
    unlock(fake);
    if (!gpus)
        g_free(text);
}

/* --- life ----------------------------------------------------------------------------------- */

struct fake_cluster *fake_cluster_new(void)
{
    struct fake_cluster *fake = g_new0(struct fake_cluster, 1);

    fake->base.ops = &fake_cluster_ops;
    pthread_mutex_init(&fake->mutex, NULL);
    fake->pods = g_tree_new_full(compare_keys, NULL, g_free, free_pod);
    fake->nodes = g_tree_new_full(compare_keys, NULL, g_free, free_node);
    fake->configmaps = g_tree_new_full(compare_keys, NULL, g_free, g_free);
    fake->sent = g_ptr_array_new_with_free_func(g_free);
    fake->posted = g_ptr_array_new_with_free_func(g_free);
    fake->chaos = g_rand_new_with_seed(1);
    return fake;
}

void fake_cluster_free(struct fake_cluster *fake)
{
    g_tree_unref(fake->pods);
    g_tree_unref(fake->nodes);
    g_tree_unref(fake->configmaps);
    for (int feed = 0; feed < FEED_N; feed++)
        g_queue_clear_full(&fake->events[feed], free_event);
    g_queue_clear_full(&fake->bind_script, g_free);
    g_queue_clear_full(&fake->get_script, g_free);
    g_queue_clear_full(&fake->list_script, g_free);
    g_queue_clear_full(&fake->annotate_script, g_free);
    g_queue_clear_full(&fake->lock_script, g_free);
    g_queue_clear_full(&fake->delayed, fake_delayed_free);
    g_ptr_array_unref(fake->sent);
    g_ptr_array_unref(fake->posted);
    g_rand_free(fake->chaos);
    g_free(fake->violation);
    pthread_mutex_destroy(&fake->mutex);
    g_free(fake);
}

struct cluster *fake_cluster_base(struct fake_cluster *fake)
{
    return &fake->base;
}
