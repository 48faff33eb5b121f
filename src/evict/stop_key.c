/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/stop_key.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/worker.h"
#include "kube/clock.h"

#define EVERY_MS 1000
#define CALL_MS 2000

struct stop_key {
    struct api_client *client;
    struct permits *permits;
    char *ns, *path;
    char *told; /* that was logged last; NULL: evictions go on */
    bool known;
    struct worker worker;
};

struct fields {
    struct string_pairs data;
};
static const struct json_field fields[] = {
    JSON_FIELD_PAIRS(struct fields, data, "data", 0),
    JSON_FIELD_END,
};

/* Why evictions are stopped; NULL: they are not. Free with g_free. */
static char *judge(const struct stop_key *key, const GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    const cJSON *object = json_parse(arena, reply->str, reply->len, &failure);
    struct fields read = {0};

    if (!object || !json_decode(arena, object, fields, &read, &failure))
        return g_strdup_printf("the ConfigMap %s/" STOP_KEY_CONFIGMAP " cannot be understood: %s",
                               key->ns, failure->message);
    const char *value = string_pairs_get(&read.data, STOP_KEY);
    if (!value || g_str_equal(value, "false"))
        return NULL;
    if (g_str_equal(value, "true"))
        return g_strdup_printf("the ConfigMap %s/" STOP_KEY_CONFIGMAP " says so", key->ns);
    return g_strdup_printf("the key '" STOP_KEY "' of the ConfigMap %s/" STOP_KEY_CONFIGMAP
                           " is '%.20s', neither 'true' nor 'false'",
                           key->ns, value);
}

static char *read_key(const struct stop_key *key)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    const struct api_call call = {
        .method = "GET", .path = key->path, .deadline_ms = clock_ms() + CALL_MS};

    switch (api_client_call(key->client, &call, reply, &failure)) {
    case OUTCOME_OK:
        return judge(key, reply);
    case OUTCOME_NOT_FOUND:
        return NULL;
    default:
        return g_strdup_printf("the ConfigMap %s/" STOP_KEY_CONFIGMAP " cannot be read: %s",
                               key->ns, failure->message);
    }
}

static void look(struct stop_key *key)
{
    const int64_t at_ms = clock_ms();
    g_autofree char *why = read_key(key);

    permits_hear(key->permits, why, at_ms);
    metrics_set(GAUGE_EVICTIONS_STOPPED, why != NULL);
    if (key->known && g_strcmp0(key->told, why) == 0)
        return;
    if (why)
        log_event_limited(LOG_LEVEL_WARN, "all evictions are stopped", LOG_TEXT("why", why));
    else if (key->known)
        log_event(LOG_LEVEL_INFO, "evictions go on", LOG_TEXT("namespace", key->ns));
    g_free(key->told);
    key->told = g_steal_pointer(&why);
    key->known = true;
}

static void *run(void *data)
{
    struct stop_key *key = data;

    do
        look(key);
    while (worker_rest(&key->worker, EVERY_MS));
    return NULL;
}

struct stop_key *stop_key_start(struct api_client *client, const char *ns, struct permits *permits,
                                GError **error)
{
    struct stop_key *key = g_new0(struct stop_key, 1);
    g_autofree char *escaped = g_uri_escape_string(ns, NULL, FALSE);

    key->client = client;
    key->permits = permits;
    key->ns = g_strdup(ns);
    key->path = g_strdup_printf("/api/v1/namespaces/%s/configmaps/" STOP_KEY_CONFIGMAP, escaped);
    worker_init(&key->worker);
    if (!worker_start(&key->worker, run, key, error))
        g_clear_pointer(&key, stop_key_free);
    return key;
}

void stop_key_free(struct stop_key *key)
{
    if (!key)
        return;
    worker_release(&key->worker);
    g_free(key->ns);
    g_free(key->path);
    g_free(key->told);
    g_free(key);
}
