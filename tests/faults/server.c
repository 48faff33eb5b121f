/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "sim.h"

#include "../prop/chance.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const key_names[KEYS] = {
    [IDX] = "ALIYUN_COM_GPU_MEM_IDX",
    [DEV] = "ALIYUN_COM_GPU_MEM_DEV",
    [TOTAL] = "ALIYUN_COM_GPU_MEM_POD",
    [ASSIGNED] = "ALIYUN_COM_GPU_MEM_ASSIGNED",
    [ASSUME_TIME] = "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
    [GANG_MIN] = "gpuledger.io/gang-min",
    [WOKEN] = "gpuledger.io/woken",
};
static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};

static void forget_annotations(struct pod *pod)
{
    for (int key = 0; key < KEYS; key++)
        g_clear_pointer(&pod->annotations[key], g_free);
}

void server_reset(void)
{
    for (int i = 0; i < PODS; i++)
        forget_annotations(&server.pods[i]);
    for (int i = 0; i < NODES; i++) {
        g_clear_pointer(&server.shapes[i], g_array_unref);
        g_clear_pointer(&server.health[i], g_array_unref);
    }
    g_clear_pointer(&server.bound, g_hash_table_unref);
    server_end();
    server_start();
    server.bound = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < NODES; i++) {
        struct shape shape = {.version = server.version};
        struct health health = {.version = server.version};
        server.shapes[i] = g_array_new(FALSE, FALSE, sizeof shape);
        server.health[i] = g_array_new(FALSE, FALSE, sizeof health);
        g_array_append_val(server.shapes[i], shape);
        g_array_append_val(server.health[i], health);
    }
}

struct shape *server_shape(int node)
{
    return &g_array_index(server.shapes[node], struct shape, server.shapes[node]->len - 1);
}

uint32_t server_sick(int node)
{
    return g_array_index(server.health[node], struct health, server.health[node]->len - 1).sick;
}

/* --- objects as texts ----------------------------------------------------------------------- */

char *server_pod_json(const struct pod *pod)
{
    GString *text = g_string_new(NULL);
    const char *comma = "";

    g_string_append_printf(text,
                           "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\","
                           "\"resourceVersion\":\"%" G_GINT64_FORMAT "\"",
                           pod->name, pod->uid, pod->version);
    if (pod->terminating)
        g_string_append(text, ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
    g_string_append(text, ",\"annotations\":{");
    for (int key = 0; key < KEYS; key++) {
        if (!pod->annotations[key])
            continue;
        g_string_append_printf(text, "%s\"%s\":\"%s\"", comma, key_names[key],
                               pod->annotations[key]);
        comma = ",";
    }
    if (pod->group > 0)
        g_string_append_printf(text,
                               "%s\"gang.scheduling.koordinator.sh/name\":\"g%d\","
                               "\"gang.scheduling.koordinator.sh/min-available\":\"%d\"",
                               comma, pod->group, GROUPS_OF(pod->group));
    g_string_append_printf(text, "},\"creationTimestamp\":\"2026-01-02T03:04:%02dZ\"",
                           pod->label * 10 + pod->priority / 10);
    if (pod->label < 3)
        g_string_append_printf(text, ",\"labels\":{\"app\":\"a%d\"}", pod->label);
    g_string_append_printf(text, "},\"spec\":{\"priority\":%d,", pod->priority);
    if (pod->particular)
        g_string_append(text, "\"affinity\":{\"podAntiAffinity\":{}},");
    if (pod->node >= 0)
        g_string_append_printf(text, "\"nodeName\":\"n%d\",", pod->node);
    g_string_append(text, "\"containers\":[");
    for (int i = 0; i < pod->n_containers; i++) {
        int units = pod->units / pod->n_containers + (i == 0 ? pod->units % pod->n_containers : 0);
        g_string_append_printf(text, "%s{\"name\":\"c%d\",\"resources\":{\"limits\":{", i ? "," : "",
                               i);
        if (units > 0)
            g_string_append_printf(text, "\"aliyun.com/gpu-mem\":\"%d\"", units);
        g_string_append(text, "}}}");
    }
    g_string_append_printf(text, "]},\"status\":{\"phase\":\"%s\"", phases[pod->phase]);
    if (pod->started)
        g_string_append(text, ",\"startTime\":\"2026-01-02T03:04:05Z\"");
    if (pod->rejected)
        g_string_append(text, ",\"reason\":\"UnexpectedAdmissionError\"");
    g_string_append(text, "}}");
    return g_string_free(text, FALSE);
}

/* Without cards it names no GPU: one that names them and has none is about to have them again. */
static char *node_json(int node)
{
    const struct shape *shape = server_shape(node);
    g_autofree char *cards =
        shape->cards == 0 ? g_strdup("")
                          : g_strdup_printf("\"aliyun.com/gpu-mem\":\"%d\","
                                            "\"aliyun.com/gpu-count\":\"%d\"",
                                            shape->cards * shape->units, shape->cards);

    return g_strdup_printf("{\"metadata\":{\"name\":\"n%d\",\"uid\":\"uid-n%d\","
                           "\"resourceVersion\":\"%" G_GINT64_FORMAT "\"},\"status\":{"
                           "\"capacity\":{%s}}}",
                           node, node, shape->version, cards);
}

static char *configmap_json(int node)
{
    const struct health *health =
        &g_array_index(server.health[node], struct health, server.health[node]->len - 1);
    GString *text = g_string_new(NULL);
    const char *comma = "";

    g_string_append_printf(text,
                           "{\"metadata\":{\"name\":\"unhealthy-gpu-n%d\",\"namespace\":"
                           "\"kube-system\",\"uid\":\"uid-c%d\",\"resourceVersion\":"
                           "\"%" G_GINT64_FORMAT "\"},\"data\":{\"gpus\":\"",
                           node, node, health->version);
    for (int card = 0; card < 32; card++) {
        if (!(server_sick(node) >> card & 1))
            continue;
        g_string_append_printf(text, "%s%d", comma, card);
        comma = ",";
    }
    g_string_append(text, "\"}}");
    return g_string_free(text, FALSE);
}

/* --- what happens --------------------------------------------------------------------------- */

static bool is_seen(const struct pod *pod)
{
    return pod->exists;
}

void server_touch_pod(struct pod *pod, bool was_seen)
{
    pod->version = ++server.version;
    if (is_seen(pod))
        server_note(POD, "MODIFIED", server_pod_json(pod));
    else if (was_seen)
        server_note(POD, "DELETED", server_pod_json(pod));
}

struct pod *server_create_pod(int i, int units, int n_containers)
{
    struct pod *pod = &server.pods[i];

    server_delete_pod(pod);
    *pod = (struct pod){
        .exists = true,
        .units = units,
        .n_containers = n_containers,
        .node = -1,
        .priority = (int)chance_below(3) * 10,
        .label = (int)chance_below(4),
        .particular = chance_percent(10),
        .group = server.groups && chance_percent(30) ? 1 + (int)chance_below(GROUPS) : 0,
        .known = {-1, -1, -1},
    };
    g_snprintf(pod->name, sizeof pod->name, "p%d", i);
    g_snprintf(pod->uid, sizeof pod->uid, "uid-%d-%u", i, server.uids++);
    pod->version = ++server.version;
    server_note(POD, "ADDED", server_pod_json(pod));
    return pod;
}

void server_delete_pod(struct pod *pod)
{
    if (!pod->exists)
        return;
    pod->version = ++server.version;
    if (is_seen(pod))
        server_note(POD, "DELETED", server_pod_json(pod));
    forget_annotations(pod);
    pod->exists = false;
    pod->node = -1;
}

static void set_annotation(struct pod *pod, enum key key, const char *value)
{
    g_free(pod->annotations[key]);
    pod->annotations[key] = g_strdup(value);
}

void server_annotate(struct pod *pod, enum key key, const char *value)
{
    set_annotation(pod, key, value);
    server_touch_pod(pod, is_seen(pod));
}

static void put_shape(int node, struct shape shape)
{
    const char *type = !server_shape(node)->exists ? "ADDED" : shape.exists ? "MODIFIED" : "DELETED";

    shape.version = ++server.version;
    if (shape.exists || server_shape(node)->exists) {
        g_array_append_val(server.shapes[node], shape);
        server_note(NODE, type, node_json(node));
    }
}

void server_put_node(int node, int cards, int units)
{
    put_shape(node, (struct shape){.exists = true, .cards = cards, .units = units});
}

void server_delete_node(int node)
{
    put_shape(node, (struct shape){0});
}

static void put_health(int node, uint32_t sick, bool exists)
{
    const char *type = !server.has_configmap[node] ? "ADDED" : exists ? "MODIFIED" : "DELETED";
    struct health health = {++server.version, sick};

    if (!exists && !server.has_configmap[node])
        return;
    server.has_configmap[node] = exists;
    g_array_append_val(server.health[node], health);
    server_note(CONFIGMAP, type, configmap_json(node));
}

void server_put_health(int node, uint32_t sick)
{
    put_health(node, sick, true);
}

void server_delete_health(int node)
{
    put_health(node, 0, false);
}

/* --- requests ------------------------------------------------------------------------------- */

static struct pod *find_pod(const char *path, size_t *ret_length)
{
    static const char prefix[] = "/api/v1/namespaces/ml/pods/p";
    char *end;

    if (!g_str_has_prefix(path, prefix))
        return NULL;
    unsigned long i = strtoul(path + strlen(prefix), &end, 10);
    *ret_length = (size_t)(end - path);
    HOLDS(i < PODS, "%s", path);
    return &server.pods[i];
}

GPtrArray *server_objects(enum resource resource, const char *selector)
{
    GPtrArray *objects = g_ptr_array_new_with_free_func(g_free);

    for (int i = 0; resource == POD && i < PODS; i++) {
        if (is_seen(&server.pods[i]))
            g_ptr_array_add(objects, server_pod_json(&server.pods[i]));
    }
    for (int i = 0; i < NODES; i++) {
        if (resource == NODE && server_shape(i)->exists)
            g_ptr_array_add(objects, node_json(i));
        if (resource == CONFIGMAP && server.has_configmap[i])
            g_ptr_array_add(objects, configmap_json(i));
    }
    return objects;
}

/* The annotations of a Binding or a patch. False: some are none that the program should write. */
static void take_annotations(struct pod *pod, const cJSON *annotations)
{
    const cJSON *annotation;

    cJSON_ArrayForEach (annotation, annotations) {
        int key = 0;
        while (key < KEYS && strcmp(annotation->string, key_names[key]) != 0)
            key++;
        HOLDS(key < KEYS && cJSON_IsString(annotation), "annotation '%s'", annotation->string);
        set_annotation(pod, (enum key)key, annotation->valuestring);
    }
}

static const char *text_at(const cJSON *object, const char *outer, const char *inner)
{
    const char *text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, outer), inner));
    return text ? text : "";
}

static void bind(struct pod *pod, const cJSON *binding, struct server_reply *reply)
{
    const char *uid = text_at(binding, "metadata", "uid");
    const char *node = text_at(binding, "target", "name");
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(binding, "metadata");
    const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");

    HOLDS(*uid && node[0] == 'n' && node[1] >= '0' && node[1] < '0' + NODES && !node[2],
          "a Binding of '%s' to '%s'", uid, node);
    if (!pod->exists) {
        server_refuse(reply, 404, "NotFound", "pods not found");
    } else if (strcmp(uid, pod->uid) != 0 || pod->node >= 0 || pod->terminating) {
        server_refuse(reply, 409, "Conflict", "pod p is already assigned to node \"n\"");
    } else {
        bool was_seen = is_seen(pod);
        pod->node = node[1] - '0';
        take_annotations(pod, annotations);
        pod->moved_us = sim_now_us();
        pod->granted = cJSON_GetArraySize(annotations) > 0;
        g_hash_table_insert(server.bound, g_strdup(uid), GINT_TO_POINTER(pod->node + 1));
        server.n_granted += pod->granted;
        if (pod->granted)
            server.on_granted(pod);
        server_touch_pod(pod, was_seen);
        reply->status = 201;
        g_string_assign(reply->body, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":201}");
    }
}

static void patch(struct pod *pod, const cJSON *merge, struct server_reply *reply)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(merge, "metadata");

    if (!pod->exists) {
        server_refuse(reply, 404, "NotFound", "pods not found");
    } else if (strcmp(text_at(merge, "metadata", "uid"), pod->uid) != 0) {
        server_refuse(reply, 422, "Invalid", "metadata.uid: field is immutable");
    } else {
        take_annotations(pod, cJSON_GetObjectItemCaseSensitive(metadata, "annotations"));
        server_touch_pod(pod, is_seen(pod));
        reply->status = 200;
        g_string_assign(reply->body, "{}");
    }
}

struct pod *server_binding(const struct server_request *request, int *ret_card)
{
    size_t length;
    struct pod *pod = find_pod(request->url, &length);

    if (!pod || strcmp(request->method, "POST") != 0)
        return NULL;
    cJSON *body = cJSON_Parse(request->body);
    const char *uid = text_at(body, "metadata", "uid");
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(body, "metadata");
    const char *card = text_at(metadata, "annotations", key_names[IDX]);
    *ret_card = *card ? atoi(card) : -1;
    if (!pod->exists || strcmp(uid, pod->uid) != 0)
        pod = NULL;
    cJSON_Delete(body);
    return pod;
}

static bool is_authorized(const char *authorization)
{
    int token;

    if (!authorization || sscanf(authorization, "Bearer token-%d", &token) != 1)
        return false;
    return token == server.token || token == server.token_before;
}

void server_serve(const struct server_request *request, struct server_reply *reply)
{
    size_t length = 0;
    struct pod *pod = find_pod(request->url, &length);

    server.n_requests++;
    if (!is_authorized(request->authorization)) {
        server_refuse(reply, 401, "Unauthorized", "Unauthorized");
    } else if (g_str_has_prefix(request->url, "/version")) {
        reply->status = 200;
        g_string_assign(reply->body, "{\"gitVersion\":\"v1.36.3\"}");
    } else if (g_str_has_prefix(request->url, "/apis/policy/")) {
        server_refuse(reply, 404, "NotFound", "the server could not find the requested resource");
    } else if (server_collection(request, reply)) {
        /* it has been answered */
    } else if (pod && strcmp(request->method, "GET") == 0) {
        reply->status = 200;
        g_autofree char *object = server_pod_json(pod);
        if (!pod->exists)
            server_refuse(reply, 404, "NotFound", "pods not found");
        else
            g_string_assign(reply->body, object);
    } else if (pod) {
        cJSON *body = cJSON_Parse(request->body);
        HOLDS(body, "%s", request->body);
        if (strcmp(request->method, "POST") == 0 &&
            g_str_has_prefix(request->url + length, "/binding"))
            bind(pod, body, reply);
        else if (strcmp(request->method, "PATCH") == 0)
            patch(pod, body, reply);
        else
            HOLDS(false, "%s %s", request->method, request->url);
        cJSON_Delete(body);
    } else {
        HOLDS(false, "%s %s", request->method, request->url);
    }
}
