/* SPDX-License-Identifier: Apache-2.0 */
/* A kube-scheduler: filter and bind, and where no node passes, preempt; whom that names it ends itself. */
#include "../faults/sim.h"
#include "../killed/replica.h"
#include "../prop/chance.h"
#include "ends.h"
#include "pods.h"
#include "rules.h"

#include <string.h>

static GHashTable *asked; /* uid -> int64_t * */
static uint64_t n_preempted;

void scheduler_reset(void)
{
    g_clear_pointer(&asked, g_hash_table_unref);
    asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

int64_t scheduler_asked_us(const char *uid)
{
    const int64_t *at_us = g_hash_table_lookup(asked, uid);

    return at_us ? *at_us : 0;
}

uint64_t scheduler_n_preempted(void)
{
    return n_preempted;
}

static bool is_closed(const char *path)
{
    cJSON *node = api_get(path), *taint;
    bool closed = cJSON_IsTrue(api_at(node, "spec", "unschedulable"));

    cJSON_ArrayForEach (taint, api_at(node, "spec", "taints"))
        closed |= g_strcmp0(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(taint, "effect")),
                            "NoSchedule") == 0;
    return closed;
}

struct call {
    struct replica *replica;
    char *body;
};

static void send_bind(void *data)
{
    struct call *call = data;
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_bind(&call->replica->extender, call->body, strlen(call->body), reply);
    sim_trace("bind %s: %s", call->body, reply->str);
    g_free(call->body);
    g_free(call);
}

/* --- preempt ----------------------------------------------------------------------------------------- */

/* Less important ones there, as sums say it: kube-scheduler knows no cards. */
static void offer_node(GString *text, const char *node, int priority)
{
    g_autoptr(GPtrArray) paths = pods_paths();
    const char *comma = "";

    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        if (g_strcmp0(pod_node(pod), node) != 0 || pod_ends(pod) || pod_priority(pod) >= priority ||
            !chance_percent(80))
            continue;
        g_string_append_printf(text, "%s{\"UID\":\"%s\"}", comma, api_text(pod, "metadata", "uid"));
        comma = ",";
    }
}

static void end_victims(const cJSON *victims)
{
    const cJSON *victim;

    cJSON_ArrayForEach (victim, victims) {
        const cJSON *uid = cJSON_GetObjectItemCaseSensitive(victim, "UID");
        g_autofree char *path = pods_path_of(cJSON_GetStringValue(uid));
        if (!path || pod_ends(api_get(path)))
            continue;
        cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(api_get(path), "metadata"),
                                "deletionTimestamp", "2026-01-02T03:04:05Z");
        api_touch(path);
        n_preempted++;
    }
}

static void nominate(const char *path, const char *node)
{
    cJSON *status = cJSON_GetObjectItemCaseSensitive(api_get(path), "status");

    cJSON_DeleteItemFromObjectCaseSensitive(status, "nominatedNodeName");
    cJSON_AddStringToObject(status, "nominatedNodeName", node);
    api_touch(path);
}

static void preempt(struct replica *replica, const char *path)
{
    cJSON *pod = api_get(path);
    char *object = cJSON_PrintUnformatted(pod);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    g_string_printf(body, "{\"Pod\":%s,\"NodeNameToMetaVictims\":{", object);
    cJSON_free(object);
    for (int i = 0; i < NODES_N; i++) {
        g_autofree char *node = g_strdup_printf("n%d", i);
        g_string_append_printf(body, "%s\"%s\":{\"Pods\":[", i ? "," : "", node);
        offer_node(body, node, pod_priority(pod));
        g_string_append(body, "],\"NumPDBViolations\":0}");
    }
    g_string_append(body, "}}");
    if (!extender_preempt(&replica->extender, body->str, body->len, reply, &error))
        return;
    sim_trace("preempt %s: %s", path, reply->str);
    cJSON *tree = cJSON_Parse(reply->str), *node;
    const cJSON *chosen = NULL;
    cJSON_ArrayForEach (node, cJSON_GetObjectItemCaseSensitive(tree, "NodeNameToMetaVictims")) {
        const cJSON *victims = cJSON_GetObjectItemCaseSensitive(node, "Pods");
        rules_preempts(pod, node->string, victims);
        if (cJSON_GetArraySize(victims) > 0 && !chosen)
            chosen = node;
    }
    if (chosen && chance_percent(90)) {
        nominate(path, chosen->string);
        end_victims(cJSON_GetObjectItemCaseSensitive(chosen, "Pods"));
    }
    cJSON_Delete(tree);
}

/* --- filter ------------------------------------------------------------------------------------------ */

static char *ask_filter(struct replica *replica, const char *path)
{
    g_autoptr(GPtrArray) nodes = api_paths("/api/v1/nodes/");
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    char *text = cJSON_PrintUnformatted(api_get(path));
    const char *comma = "";

    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", text);
    cJSON_free(text);
    for (guint i = 0; i < nodes->len; i++) {
        if (is_closed(nodes->pdata[i]))
            continue;
        g_string_append_printf(body, "%s\"%s\"", comma,
                               (char *)nodes->pdata[i] + strlen("/api/v1/nodes/"));
        comma = ",";
    }
    g_string_append(body, "]}");
    extender_filter(&replica->extender, body->str, body->len, reply);
    sim_trace("filter %s: %s", path, reply->str);
    cJSON *tree = cJSON_Parse(reply->str);
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(tree, "NodeNames");
    const int n = cJSON_GetArraySize(names);
    char *node = n > 0 ? g_strdup(cJSON_GetStringValue(
                             cJSON_GetArrayItem(names, (int)chance_below((uint32_t)n))))
                       : NULL;
    cJSON_Delete(tree);
    return node;
}

void scheduler_ask(const char *path)
{
    struct replica *replica = replica_serving();
    cJSON *pod = api_get(path);
    const int64_t now_us = sim_now_us();

    if (!replica || !pod_asks(pod))
        return;
    g_hash_table_insert(asked, g_strdup(api_text(pod, "metadata", "uid")),
                        g_memdup2(&now_us, sizeof now_us));
    g_autofree char *node = ask_filter(replica, path);
    if (!node) {
        if (pod_priority(pod) > 0 && store_is_synced(replica->store))
            preempt(replica, path);
        return;
    }
    struct call *call = g_new(struct call, 1);
    *call = (struct call){replica, g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"%s\","
                                                   "\"PodUID\":\"%s\",\"Node\":\"%s\"}",
                                                   api_text(pod, "metadata", "name"),
                                                   api_text(pod, "metadata", "namespace"),
                                                   api_text(pod, "metadata", "uid"), node)};
    sim_spawn(send_bind, call);
}
