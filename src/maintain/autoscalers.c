/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/autoscalers.h"

#include "json/json.h"
#include "kube/clock.h"
#include "kube/yaml_document.h"
#include "evict/eviction.h"
#include "plan/scale_up.h"
#include "wire/condition.h"

#include <string.h>

#define CALL_MS 10000
#define LOOK_US G_TIME_SPAN_SECOND
#define REPLY_MAX ((size_t)16 << 20)
#define WORDS_MAX 500 /* Events of one pod; the API server keeps them for an hour */

#define REPORT_PATH "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"
#define CLAIMS_PATH "/apis/karpenter.sh/v1/nodeclaims?limit=500"

/* Unix time; 0: it is none. */
static int64_t time_ns(const char *text)
{
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return time ? g_date_time_to_unix(time) * 1000000000 +
                      g_date_time_get_microsecond(time) * INT64_C(1000)
                : 0;
}

/* NULL without an error: there is none. */
static const cJSON *get(struct api_client *client, struct json_arena *arena, const char *path,
                        GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS, .reply_max = REPLY_MAX};
    GError *failure = NULL;
    const enum outcome outcome = api_client_call(client, &call, reply, &failure);

    if (outcome == OUTCOME_OK)
        return json_parse(arena, reply->str, reply->len, error);
    if (outcome == OUTCOME_NOT_FOUND)
        g_clear_error(&failure);
    else
        g_propagate_error(error, failure);
    return NULL;
}

struct list {
    const cJSON *items;
};
static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list, items, "items", 0),
    JSON_FIELD_END,
};

/* --- Events of a pod -------------------------------------------------------------------------- */

/* Source: core/v1 Event. Who reports stands in one field or the other, and so does when. */
struct event {
    const char *reason, *message, *component, *reporter;
    const char *last, *time, *observed;
};
static const struct json_field event_fields[] = {
    JSON_FIELD_STRING(struct event, reason, "reason", 0),
    JSON_FIELD_STRING(struct event, message, "message", 0),
    JSON_FIELD_STRING(struct event, component, "source.component", 0),
    JSON_FIELD_STRING(struct event, reporter, "reportingComponent", 0),
    JSON_FIELD_STRING(struct event, last, "lastTimestamp", 0),
    JSON_FIELD_STRING(struct event, time, "eventTime", 0),
    JSON_FIELD_STRING(struct event, observed, "series.lastObservedTime", 0),
    JSON_FIELD_END,
};

static bool read_words(const struct autoscalers_query *query, const char *uid,
                       struct json_arena *arena, struct scale_up_facts *facts, GError **error)
{
    g_autofree char *ns = g_uri_escape_string(query->ns, NULL, FALSE);
    g_autofree char *escaped = g_uri_escape_string(uid, NULL, FALSE);
    g_autofree char *path = g_strdup_printf(
        "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.uid%%3D%s&limit=%d", ns, escaped,
        WORDS_MAX);
    GError *failure = NULL;
    const cJSON *item, *object = get(query->client, arena, path, &failure);
    struct list list = {0};
    size_t n = 0;

    if (failure || (object && !json_decode(arena, object, list_fields, &list, &failure))) {
        g_propagate_prefixed_error(error, failure, "the pod's Events: ");
        return false;
    }
    struct scale_up_word *words =
        json_arena_alloc(arena, ((size_t)cJSON_GetArraySize(list.items) + 1) * sizeof *words);
    cJSON_ArrayForEach (item, list.items) {
        struct event event = {0};
        if (!json_decode(arena, item, event_fields, &event, NULL))
            continue;
        words[n++] = (struct scale_up_word){
            event.component && *event.component ? event.component : event.reporter, event.reason,
            event.message,
            MAX(MAX(time_ns(event.last), time_ns(event.time)), time_ns(event.observed))};
    }
    facts->words = words;
    facts->n_words = n;
    return true;
}

/* --- cluster-autoscaler's report -------------------------------------------------------------- */

/* Source: kubernetes/autoscaler, clusterstate/api/types.go, since 1.30: YAML in the key "status". Before,
 * it was text for people, of which nothing is read. */
struct report {
    const char *status, *probed;
};
static const struct json_field report_fields[] = {
    JSON_FIELD_STRING(struct report, status, "clusterWide.scaleUp.status", 0),
    JSON_FIELD_STRING(struct report, probed, "clusterWide.scaleUp.lastProbeTime", 0),
    JSON_FIELD_END,
};

struct configmap {
    const char *status;
};
static const struct json_field configmap_fields[] = {
    JSON_FIELD_STRING(struct configmap, status, "data.status", 0),
    JSON_FIELD_END,
};

static bool read_report(struct api_client *client, struct json_arena *arena,
                        struct scale_up_facts *facts, GError **error)
{
    GError *failure = NULL;
    const cJSON *object = get(client, arena, REPORT_PATH, &failure);
    struct configmap configmap = {0};
    struct report report = {0};

    if (failure) {
        g_propagate_prefixed_error(error, failure, "cluster-autoscaler's ConfigMap: ");
        return false;
    }
    if (!object || !json_decode(arena, object, configmap_fields, &configmap, NULL) ||
        !configmap.status)
        return true;
    cJSON *document = yaml_load(configmap.status, strlen(configmap.status), NULL);
    if (document && json_decode(arena, document, report_fields, &report, NULL)) {
        facts->reported_ns = time_ns(report.probed);
        facts->groups_grow = g_strcmp0(report.status, "InProgress") == 0;
    }
    cJSON_Delete(document);
    return true;
}

/* --- Karpenter's NodeClaims ------------------------------------------------------------------- */

struct claim {
    const char *deleted;
    const cJSON *conditions;
};
static const struct json_field claim_fields[] = {
    JSON_FIELD_STRING(struct claim, deleted, "metadata.deletionTimestamp", 0),
    JSON_FIELD_ARRAY(struct claim, conditions, "status.conditions", 0),
    JSON_FIELD_END,
};

static bool read_claims(struct api_client *client, struct json_arena *arena,
                        struct scale_up_facts *facts, GError **error)
{
    GError *failure = NULL;
    const cJSON *item, *object = get(client, arena, CLAIMS_PATH, &failure);
    struct list list = {0};

    if (failure || (object && !json_decode(arena, object, list_fields, &list, &failure))) {
        g_propagate_prefixed_error(error, failure, "Karpenter's NodeClaims: ");
        return false;
    }
    facts->claims_known = object != NULL;
    cJSON_ArrayForEach (item, list.items) {
        struct claim claim = {0};
        facts->n_claims += json_decode(arena, item, claim_fields, &claim, NULL) && !claim.deleted &&
                           !condition_is_true(arena, claim.conditions, "Initialized");
    }
    return true;
}

/* --- the question ----------------------------------------------------------------------------- */

/* `ret_uid` NULL: the pod waits for no node. Free with g_free. */
static bool read_pod(const struct autoscalers_query *query, char **ret_uid, GError **error)
{
    g_auto(evictee) pod = {0};
    GError *failure = NULL;
    const enum outcome outcome =
        evictee_read(query->client, query->ns, query->name, &pod, &failure);

    *ret_uid = NULL;
    if (outcome == OUTCOME_OK && !pod.placed && !pod.ended)
        *ret_uid = g_steal_pointer(&pod.uid);
    if (outcome == OUTCOME_OK || outcome == OUTCOME_NOT_FOUND) {
        g_clear_error(&failure);
        return true;
    }
    g_propagate_prefixed_error(error, failure, "%s/%s: ", query->ns, query->name);
    return false;
}

/* `ret_who`: who brings nodes, a constant, or NULL: nobody, or the pod has a node, has ended or is gone.
 * False, with an error: it cannot be known. */
static bool ask(const struct autoscalers_query *query, const char **ret_who, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct scale_up_facts facts = {.of_pod = query->ns != NULL};
    g_autofree char *uid = NULL;

    *ret_who = NULL;
    if (facts.of_pod && !read_pod(query, &uid, error))
        return false;
    if (facts.of_pod && !uid)
        return true;
    if ((uid && !read_words(query, uid, arena, &facts, error)) ||
        !read_report(query->client, arena, &facts, error) ||
        !read_claims(query->client, arena, &facts, error))
        return false;
    facts.now_ns = g_get_real_time() * 1000;
    *ret_who = scale_up_find(&facts);
    return true;
}

bool autoscalers_await(const struct autoscalers_wait *wait, GError **error)
{
    const int64_t until_ms = clock_ms() + wait->most_ms;
    const char *who, *said = NULL;

    for (;;) {
        if (!ask(&wait->query, &who, error))
            return false;
        if (!who)
            return true;
        if (clock_ms() >= until_ms) {
            wait->progress(wait->data, "no more waiting for nodes: the time is over");
            return true;
        }
        if (who != said) {
            g_autofree char *text = g_strdup_printf("waits for nodes that %s brings", who);
            wait->progress(wait->data, text);
        }
        said = who;
        g_usleep(LOOK_US);
    }
}
