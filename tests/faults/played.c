/* SPDX-License-Identifier: Apache-2.0 */
#include "played.h"

#include "../prop/chance.h"
#include "sim.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct played played;

static GHashTable *names; /* "ns/name" -> struct played_pod */

/* --- objects as texts ----------------------------------------------------------------------- */

static void append_string(GString *text, const char *string)
{
    g_string_append_c(text, '"');
    for (const unsigned char *at = (const unsigned char *)string; *at; at++) {
        if (*at == '"' || *at == '\\')
            g_string_append_printf(text, "\\%c", *at);
        else if (*at < 0x20)
            g_string_append_printf(text, "\\u%04x", *at);
        else
            g_string_append_c(text, (char)*at);
    }
    g_string_append_c(text, '"');
}

static void append_words(GString *text, const char *key, const struct words *words)
{
    g_string_append_printf(text, "\"%s\":{", key);
    for (unsigned i = 0; i < words->n; i++) {
        if (i > 0)
            g_string_append_c(text, ',');
        append_string(text, words->items[i].key);
        g_string_append_c(text, ':');
        append_string(text, words->items[i].value);
    }
    g_string_append_c(text, '}');
}

/* As the API server's clock has it, which the program's own follows. */
static void append_time(GString *text, const char *key, int64_t us)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(us / G_USEC_PER_SEC);
    g_autofree char *iso = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");

    g_string_append_printf(text, ",\"%s\":\"%s\"", key, iso);
}

static void append_boxes(GString *text, const struct played_pod *pod, bool init)
{
    const char *comma = "";

    for (unsigned i = 0; i < pod->boxes->len; i++) {
        const struct box *box = &g_array_index(pod->boxes, struct box, i);
        if ((box->sort != BOX_APP) != init)
            continue;
        g_string_append_printf(text, "%s{\"name\":\"%s\"", comma, box->name);
        if (box->sort == BOX_SIDECAR)
            g_string_append(text, ",\"restartPolicy\":\"Always\"");
        if (box->limits.n > 0) {
            g_string_append(text, ",\"resources\":{");
            append_words(text, "limits", &box->limits);
            g_string_append_c(text, ',');
            append_words(text, "requests", &box->limits);
            g_string_append_c(text, '}');
        }
        g_string_append_c(text, '}');
        comma = ",";
    }
}

const char *played_json(struct played_pod *pod)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};

    if (pod->text)
        return pod->text;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
                           "\"resourceVersion\":\"%" G_GINT64_FORMAT "\"",
                           pod->name, pod->ns, pod->uid, pod->version);
    append_time(text, "creationTimestamp", pod->created_us);
    if (pod->terminating)
        append_time(text, "deletionTimestamp", pod->created_us);
    g_string_append_c(text, ',');
    append_words(text, "annotations", &pod->annotations);
    g_string_append_c(text, ',');
    append_words(text, "labels", &pod->labels);
    g_string_append_printf(text, "},\"spec\":{\"priority\":0,\"schedulerName\":\"%s\",",
                           pod->scheduler ? pod->scheduler : "default-scheduler");
    if (pod->priority_class)
        g_string_append_printf(text, "\"priorityClassName\":\"%s\",", pod->priority_class);
    if (pod->gated)
        g_string_append(text, "\"schedulingGates\":[{\"name\":\"never\"}],");
    if (pod->elsewhere)
        g_string_append(text, "\"nodeSelector\":{\"zone\":\"nowhere\"},");
    if (pod->node >= 0)
        g_string_append_printf(text, "\"nodeName\":\"n%d\",", pod->node);
    g_string_append(text, "\"containers\":[");
    append_boxes(text, pod, false);
    g_string_append(text, "],\"initContainers\":[");
    append_boxes(text, pod, true);
    g_string_append_printf(text, "]},\"status\":{\"phase\":\"%s\"", phases[pod->phase]);
    if (pod->started)
        append_time(text, "startTime", pod->started_real_us);
    g_string_append(text, "}}");
    return pod->text = g_string_free(text, FALSE);
}

static char *node_json(int i)
{
    const struct played_node *node = &played.nodes[i];
    GString *text = g_string_new(NULL);

    g_string_append_printf(text,
                           "{\"metadata\":{\"name\":\"n%d\",\"uid\":\"uid-n%d-%u\",\"resourceVersion\":"
                           "\"%" G_GINT64_FORMAT "\",",
                           i, i, node->lives, node->version);
    append_words(text, "annotations", &node->annotations);
    g_string_append_c(text, ',');
    append_words(text, "labels", &node->labels);
    g_string_append_printf(text, "},\"spec\":{%s},\"status\":{", node->closed ? node->closed : "");
    append_words(text, "capacity", &node->capacity);
    g_string_append_c(text, ',');
    append_words(text, "allocatable", &node->capacity);
    g_string_append(text, "}}");
    return g_string_free(text, FALSE);
}

/* --- what happens --------------------------------------------------------------------------- */

static void forget_spec(struct played_pod *pod)
{
    for (unsigned i = 0; pod->boxes && i < pod->boxes->len; i++) {
        struct box *box = &g_array_index(pod->boxes, struct box, i);
        g_free(box->name);
        words_clear(&box->limits);
    }
    g_clear_pointer(&pod->boxes, g_array_unref);
    words_clear(&pod->annotations);
    words_clear(&pod->labels);
    words_clear(&pod->grant);
    g_clear_pointer(&pod->text, g_free);
}

static void pod_free(gpointer data)
{
    forget_spec(data);
    g_free(data);
}

void played_reset(void)
{
    g_clear_pointer(&played.pods, g_ptr_array_unref);
    g_clear_pointer(&played.bound, g_hash_table_unref);
    g_clear_pointer(&names, g_hash_table_unref);
    for (int i = 0; i < PLAYED_NODES; i++) {
        words_clear(&played.nodes[i].capacity);
        words_clear(&played.nodes[i].annotations);
        words_clear(&played.nodes[i].labels);
        played.nodes[i].closed = NULL;
    }
    server_end();
    server_start();
    played = (struct played){
        .pods = g_ptr_array_new_with_free_func(pod_free),
        .bound = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

unsigned played_n(void)
{
    return played.pods->len;
}

struct played_pod *played_at(unsigned slot)
{
    return g_ptr_array_index(played.pods, slot);
}

bool played_lives(const struct played_pod *pod)
{
    return pod->exists && pod->phase != SUCCEEDED && pod->phase != FAILED;
}

struct played_pod *played_slot(int max)
{
    for (unsigned i = 0; i < MIN(played_n(), (unsigned)max); i++) {
        if (!played_at(i)->exists)
            return played_at(i);
    }
    if (played_n() >= (unsigned)max)
        return NULL;
    struct played_pod *pod = g_new0(struct played_pod, 1);
    pod->slot = (int)played_n();
    g_ptr_array_add(played.pods, pod);
    return pod;
}

struct played_pod *played_pod_new(struct played_pod *pod, const char *ns)
{
    int slot = pod->slot;

    forget_spec(pod);
    *pod = (struct played_pod){.slot = slot, .node = -1, .known = -1};
    pod->boxes = g_array_new(FALSE, TRUE, sizeof(struct box));
    g_strlcpy(pod->ns, ns, sizeof pod->ns);
    g_snprintf(pod->name, sizeof pod->name, "p%d", slot);
    g_snprintf(pod->uid, sizeof pod->uid, "uid-%d-%u", slot, server.uids++);
    return pod;
}

struct box *played_add_box(struct played_pod *pod, enum box_sort sort, const char *limits)
{
    struct box box = {.sort = sort};

    box.name = g_strdup_printf("c%u", pod->boxes->len);
    words_parse(&box.limits, limits);
    g_array_append_val(pod->boxes, box);
    return &g_array_index(pod->boxes, struct box, pod->boxes->len - 1);
}

static char *key_of(const struct played_pod *pod)
{
    return g_strconcat(pod->ns, "/", pod->name, NULL);
}

void played_announce(struct played_pod *pod)
{
    pod->exists = true;
    pod->created_us = g_get_real_time();
    pod->version = ++server.version;
    if (pod->node >= 0) {
        pod->bound_version = pod->version;
        pod->bound_us = sim_now_us();
        words_add(&pod->grant, &pod->annotations);
        g_hash_table_insert(played.bound, g_strdup(pod->uid), GINT_TO_POINTER(pod->node + 1));
    }
    g_hash_table_insert(names, key_of(pod), pod);
    server_note(POD, "ADDED", g_strdup(played_json(pod)));
}

void played_touch(struct played_pod *pod)
{
    pod->version = ++server.version;
    g_clear_pointer(&pod->text, g_free);
    server_note(POD, "MODIFIED", g_strdup(played_json(pod)));
}

void played_delete(struct played_pod *pod)
{
    if (!pod->exists)
        return;
    g_autofree char *key = key_of(pod);

    pod->version = ++server.version;
    g_clear_pointer(&pod->text, g_free);
    server_note(POD, "DELETED", g_strdup(played_json(pod)));
    g_hash_table_remove(names, key);
    pod->exists = false;
}

void played_edit(struct played_pod *pod, const char *key, const char *value)
{
    words_set(&pod->annotations, key, value);
    played_touch(pod);
    if (pod->node < 0) {
        pod->wished_version = pod->version;
        return;
    }
    pod->edited = true;
    pod->edited_version = pod->version;
    pod->edited_us = sim_now_us();
    pod->edited_run = played.run;
}

void played_put_node(int i)
{
    g_snprintf(played.nodes[i].name, sizeof played.nodes[i].name, "n%d", i);
    played.nodes[i].lives++;
    played.nodes[i].version = ++server.version;
    server_note(NODE, "ADDED", node_json(i));
}

void played_delete_node(int i)
{
    played.nodes[i].version = ++server.version;
    server_note(NODE, "DELETED", node_json(i));
    played.nodes[i].version = 0;
}

void played_node_changed(int i)
{
    played.nodes[i].version = ++server.version;
    server_note(NODE, "MODIFIED", node_json(i));
}

/* --- requests ------------------------------------------------------------------------------- */

/* Two Bindings of one pod that are under way are server.c's business. */
struct pod *server_binding(const struct server_request *request, int *ret_card)
{
    return NULL;
}

/* `ret_rest`: what follows the name. NULL without it: no path of a pod. */
static struct played_pod *find_pod(const char *path, const char **ret_rest)
{
    static const char prefix[] = "/api/v1/namespaces/";
    g_auto(GStrv) parts = NULL;

    *ret_rest = NULL;
    if (!g_str_has_prefix(path, prefix))
        return NULL;
    parts = g_strsplit(path + strlen(prefix), "/", 4);
    if (g_strv_length(parts) < 3 || !g_str_equal(parts[1], "pods"))
        return NULL;
    g_autofree char *name = g_strndup(parts[2], strcspn(parts[2], "?"));
    g_autofree char *key = g_strconcat(parts[0], "/", name, NULL);
    *ret_rest = parts[3] && g_str_has_prefix(parts[3], "binding") ? "binding" : "";
    return g_hash_table_lookup(names, key);
}

GPtrArray *server_objects(enum resource resource, const char *selector)
{
    GPtrArray *objects = g_ptr_array_new_with_free_func(g_free);
    const char *of_node = selector ? strstr(selector, "spec.nodeName=n") : NULL;
    int node = of_node ? atoi(of_node + strlen("spec.nodeName=n")) : -1;

    for (unsigned i = 0; resource == POD && i < played_n(); i++) {
        struct played_pod *pod = played_at(i);
        /* Who asks about a node leaves out what has ended. */
        if (pod->exists && (!of_node || (played_lives(pod) && pod->node == node)))
            g_ptr_array_add(objects, g_strdup(played_json(pod)));
    }
    for (int i = 0; resource == NODE && i < PLAYED_NODES; i++) {
        if (played.nodes[i].version > 0)
            g_ptr_array_add(objects, node_json(i));
    }
    return objects;
}

static void take_words(struct words *words, const cJSON *pairs)
{
    const cJSON *pair;

    cJSON_ArrayForEach (pair, pairs)
        words_set(words, pair->string, cJSON_GetStringValue(pair));
}

static const cJSON *object_at(const cJSON *object, const char *outer, const char *inner)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, outer), inner);
}

static const char *text_at(const cJSON *object, const char *outer, const char *inner)
{
    const char *text = cJSON_GetStringValue(object_at(object, outer, inner));
    return text ? text : "";
}

static void bind(struct played_pod *pod, const cJSON *binding, struct server_reply *reply)
{
    const char *node = text_at(binding, "target", "name");

    HOLDS(node[0] == 'n' && node[1] >= '0' && node[1] < '0' + PLAYED_NODES && !node[2],
          "a Binding to '%s'", node);
    if (!pod) {
        server_refuse(reply, 404, "NotFound", "pods not found");
    } else if (!g_str_equal(text_at(binding, "metadata", "uid"), pod->uid) || pod->node >= 0 ||
               pod->terminating) {
        server_refuse(reply, 409, "Conflict", "pod p is already assigned to node \"n\"");
    } else {
        const struct played_node *to = &played.nodes[node[1] - '0'];
        HOLDS(!pod->elsewhere && !pod->scheduler && to->version > 0 && !to->closed,
              "%s/%s is bound to %s, where kube-scheduler would not have sent it", pod->ns,
              pod->name, node);
        bool was_seen = played_lives(pod);
        const cJSON *annotations = object_at(binding, "metadata", "annotations");
        pod->node = node[1] - '0';
        pod->ours = true;
        pod->run = played.run;
        words_clear(&pod->grant);
        take_words(&pod->grant, annotations);
        take_words(&pod->annotations, annotations);
        take_words(&pod->labels, object_at(binding, "metadata", "labels"));
        g_hash_table_insert(played.bound, g_strdup(pod->uid), GINT_TO_POINTER(pod->node + 1));
        server.n_granted++;
        pod->bound_us = sim_now_us();
        played_touch(pod);
        pod->bound_version = pod->version;
        if (was_seen)
            played.on_granted(pod);
        reply->status = 201;
        g_string_assign(reply->body, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":201}");
    }
}

static void patch_pod(struct played_pod *pod, const cJSON *merge, struct server_reply *reply)
{
    if (!pod) {
        server_refuse(reply, 404, "NotFound", "pods not found");
    } else if (!g_str_equal(text_at(merge, "metadata", "uid"), pod->uid)) {
        server_refuse(reply, 422, "Invalid", "metadata.uid: field is immutable");
    } else {
        take_words(&pod->annotations, object_at(merge, "metadata", "annotations"));
        played_touch(pod);
        played.n_patched++;
        if (played.on_patched)
            played.on_patched(pod);
        reply->status = 200;
        g_string_assign(reply->body, "{}");
    }
}

static void serve_node(const struct server_request *request, int i, struct server_reply *reply)
{
    struct played_node *node = &played.nodes[i];

    if (g_str_equal(request->method, "PATCH")) {
        cJSON *body = cJSON_Parse(request->body);
        const char *version = text_at(body, "metadata", "resourceVersion");
        if (*version && g_ascii_strtoll(version, NULL, 10) != node->version) {
            server_refuse(reply, 409, "Conflict", "the object has been modified");
            cJSON_Delete(body);
            return;
        }
        take_words(&node->annotations, object_at(body, "metadata", "annotations"));
        played_node_changed(i);
        cJSON_Delete(body);
    }
    g_autofree char *object = node_json(i);
    reply->status = 200;
    g_string_assign(reply->body, object);
}

void server_serve(const struct server_request *request, struct server_reply *reply)
{
    static const char nodes[] = "/api/v1/nodes/n";
    const char *rest;
    struct played_pod *pod = find_pod(request->url, &rest);

    server.n_requests++;
    if (g_str_has_prefix(request->url, "/version")) {
        reply->status = 200;
        g_string_assign(reply->body, "{\"gitVersion\":\"v1.36.3\"}");
    } else if (server_collection(request, reply)) {
        return;
    } else if (g_str_has_prefix(request->url, nodes)) {
        serve_node(request, request->url[strlen(nodes)] - '0', reply);
    } else if (rest && g_str_equal(request->method, "GET")) {
        if (!pod)
            server_refuse(reply, 404, "NotFound", "pods not found");
        else
            g_string_assign(reply->body, played_json(pod));
        reply->status = pod ? 200 : 404;
    } else if (rest) {
        cJSON *body = cJSON_Parse(request->body);
        HOLDS(body, "%s", request->body);
        if (g_str_equal(request->method, "POST") && *rest)
            bind(pod, body, reply);
        else if (g_str_equal(request->method, "PATCH"))
            patch_pod(pod, body, reply);
        else
            HOLDS(false, "%s %s", request->method, request->url);
        cJSON_Delete(body);
    } else {
        server_refuse(reply, 404, "NotFound", "the server could not find the requested resource");
    }
}
