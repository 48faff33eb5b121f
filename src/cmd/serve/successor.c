/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/successor.h"

#include "base/log.h"
#include "kube/api_list.h"
#include "kube/clock.h"
#include "kube/holder_label.h"
#include "wire/kubernetes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CALL_MS 2000

struct successor {
    struct succession succession;
    struct api_client *client;
    char *pods, *own; /* paths */
    char *pod;
    pthread_mutex_t lock;
    char *path; /* of all of them, once the own pod is known; guarded by the lock */
    atomic_bool came;
};

static bool is_of_a_revision(const char *label)
{
    return strcmp(label, "pod-template-hash") == 0 ||
           strcmp(label, "controller-revision-hash") == 0 ||
           strcmp(label, "pod-template-generation") == 0 || strcmp(label, HOLDER_LABEL) == 0;
}

/* NULL: its labels tell it from no other pod. */
static char *list_path(const struct successor *successor, const struct string_pairs *labels)
{
    g_autoptr(GString) selector = g_string_new(NULL);
    GString *path = g_string_new(successor->pods);

    for (size_t i = 0; i < labels->n; i++) {
        if (!is_of_a_revision(labels->items[i].key))
            g_string_append_printf(selector, "%s%s=%s", selector->len > 0 ? "," : "",
                                   labels->items[i].key, labels->items[i].value);
    }
    api_url_add(path, "labelSelector", selector->str);
    return g_string_free(path, selector->len == 0);
}

static const cJSON *get(const struct successor *successor, struct json_arena *arena,
                        const char *path, GString *reply, int64_t deadline_ms,
                        enum outcome *ret_outcome)
{
    g_autoptr(GError) failure = NULL;
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = MIN(deadline_ms, clock_ms() + CALL_MS)};
    const cJSON *object = NULL;

    *ret_outcome = api_client_call(successor->client, &call, reply, &failure);
    if (*ret_outcome == OUTCOME_OK)
        object = json_parse(arena, reply->str, reply->len, &failure);
    if (!object)
        log_event_limited(LOG_LEVEL_WARN, "cannot tell whether a successor is there",
                          LOG_TEXT("error", failure->message));
    return object;
}

/* Of the own pod; NULL: it is not known. Owned. */
static char *find_path(struct successor *successor, int64_t deadline_ms)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    struct pod_view pod;
    enum outcome outcome;
    char *path = NULL;

    pthread_mutex_lock(&successor->lock);
    path = g_strdup(successor->path);
    pthread_mutex_unlock(&successor->lock);
    if (path)
        return path;
    const cJSON *object = get(successor, arena, successor->own, reply, deadline_ms, &outcome);
    if (outcome == OUTCOME_NOT_FOUND)
        atomic_store(&successor->came, true);
    if (object && pod_view_decode(arena, object, &pod, NULL))
        path = list_path(successor, &pod.labels);
    pthread_mutex_lock(&successor->lock);
    if (path && !successor->path)
        successor->path = g_strdup(path);
    pthread_mutex_unlock(&successor->lock);
    return path;
}

struct pod_list {
    const cJSON *items;
};

static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct pod_list, items, "items", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* One that cannot be read is another one. */
static bool is_another(const struct successor *successor, struct json_arena *arena,
                       const cJSON *item)
{
    struct pod_view pod;

    return !pod_view_decode(arena, item, &pod, NULL) ||
           (!g_str_equal(pod.name, successor->pod) && !pod_view_is_terminal(&pod));
}

static enum succession_state find_another(struct successor *successor, const char *path,
                                          int64_t deadline_ms)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    struct pod_list list = {0};
    enum outcome outcome;
    const cJSON *item, *object = get(successor, arena, path, reply, deadline_ms, &outcome);

    if (!object || !json_decode(arena, object, list_fields, &list, NULL))
        return SUCCESSION_UNKNOWN;
    cJSON_ArrayForEach (item, list.items) {
        if (is_another(successor, arena, item)) {
            atomic_store(&successor->came, true);
            return SUCCESSION_THERE;
        }
    }
    return SUCCESSION_NONE;
}

static enum succession_state find(struct succession *succession, int64_t deadline_ms)
{
    struct successor *successor = (struct successor *)succession;

    if (atomic_load(&successor->came))
        return SUCCESSION_THERE;
    g_autofree char *path = find_path(successor, deadline_ms);
    if (path)
        return find_another(successor, path, deadline_ms);
    return atomic_load(&successor->came) ? SUCCESSION_THERE : SUCCESSION_UNKNOWN;
}

struct succession *successor_new(struct api_client *client, const char *ns, const char *pod,
                                 GError **error)
{
    g_autofree char *ns_part = transport_escape(ns, "namespace", error);
    g_autofree char *pod_part = ns_part ? transport_escape(pod, "pod", error) : NULL;

    if (!pod_part)
        return NULL;
    struct successor *successor = g_new0(struct successor, 1);
    successor->succession.find = find;
    successor->client = client;
    successor->pods = g_strdup_printf("/api/v1/namespaces/%s/pods", ns_part);
    successor->own = g_strdup_printf("%s/%s", successor->pods, pod_part);
    successor->pod = g_strdup(pod);
    pthread_mutex_init(&successor->lock, NULL);
    atomic_init(&successor->came, false);
    return &successor->succession;
}

void successor_free(struct succession *succession)
{
    struct successor *successor = (struct successor *)succession;

    if (!successor)
        return;
    pthread_mutex_destroy(&successor->lock);
    g_free(successor->pods);
    g_free(successor->own);
    g_free(successor->pod);
    g_free(successor->path);
    g_free(successor);
}
