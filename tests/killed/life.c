/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include "../faults/net.h"
#include "../faults/sim.h"
#include "../prop/chance.h"
#include "replica.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000)
#define S (1000 * MS)
#define OLD_US (60 * S) /* whoever has waited for so long is asked about less often */
#define CARDS 64        /* of a node, at most */
#define MEM "aliyun.com/gpu-mem"
#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"

static GHashTable *times; /* what and which -> int64_t *: when it is due */
static unsigned n_made;

void life_reset(void)
{
    g_clear_pointer(&times, g_hash_table_unref);
    times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    n_made = 0;
}

/* True from so long on after it was asked first. */
static bool is_due(const char *what, const char *uid, int64_t after_us)
{
    g_autofree char *key = g_strconcat(what, " ", uid, NULL);
    const int64_t *due_us = g_hash_table_lookup(times, key);
    const int64_t at_us = sim_now_us() + after_us;

    if (!due_us)
        g_hash_table_insert(times, g_steal_pointer(&key), g_memdup2(&at_us, sizeof at_us));
    return due_us && *due_us <= sim_now_us();
}

static void forget(const char *what, const char *uid)
{
    g_autofree char *key = g_strconcat(what, " ", uid, NULL);

    g_hash_table_remove(times, key);
}

/* --- objects -------------------------------------------------------------------------------------- */

void life_put_node(const char *name, int cards, int units)
{
    g_autofree char *path = g_strconcat("/api/v1/nodes/", name, NULL);
    g_autofree char *amounts = g_strdup_printf(
        "{\"" MEM "\":\"%d\",\"aliyun.com/gpu-count\":\"%d\"}", cards * units, cards);

    api_put(path,
            "{\"metadata\":{\"name\":\"%s\",\"annotations\":{},\"labels\":{}},\"spec\":{},"
            "\"status\":{\"capacity\":%s,\"allocatable\":%s}}",
            name, amounts, amounts);
}

void life_put_pod(const char *ns, const char *name, int units, const char *node, int card,
                  const char *owner, const char *words)
{
    g_autofree char *path = api_pod_path(ns, name);
    g_autofree char *owners =
        owner
            ? g_strdup_printf(",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
                              "\"ReplicaSet\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]",
                              owner, owner)
            : g_strdup("");
    g_autofree char *placed =
        node ? g_strdup_printf(",\"" IDX "\":\"%d\",\"ALIYUN_COM_GPU_MEM_POD\":\"%d\",\"" ASSIGNED
                               "\":\"true\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\"",
                               card, units)
             : g_strdup("");
    g_autofree char *where = node ? g_strdup_printf("\"nodeName\":\"%s\",", node) : g_strdup("");

    api_put(
        path,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"%s,\"annotations\":{\"x\":\"y\"%s%s}},"
        "\"spec\":{%s\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"" MEM
        "\":\"%d\"},\"requests\":{\"" MEM "\":\"%d\"}}}]},\"status\":{\"phase\":\"%s\"%s}}",
        ns, name, owners, placed, words, where, units, units, node ? "Running" : "Pending",
        node ? ",\"startTime\":\"2026-01-02T03:04:05Z\",\"conditions\":[{\"type\":\"Ready\","
               "\"status\":\"True\"}]"
             : "");
}

const char *life_node(const char *ns, const char *name)
{
    g_autofree char *path = api_pod_path(ns, name);

    return api_text(api_get(path), "spec", "nodeName");
}

static GPtrArray *pods(void)
{
    GPtrArray *paths = api_paths("/api/v1/namespaces/");

    for (guint i = paths->len; i-- > 0;) {
        if (!strstr(paths->pdata[i], "/pods/"))
            g_ptr_array_remove_index(paths, i);
    }
    return paths;
}

static int count(const char *ns, const char *owner, bool ready)
{
    g_autoptr(GPtrArray) paths = pods();
    int n = 0;

    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        n += g_strcmp0(api_text(pod, "metadata", "namespace"), ns) == 0 &&
             (!owner || g_strcmp0(api_owner(pod), owner) == 0) &&
             (!ready || (api_at(pod, "status", "conditions") &&
                         !api_at(pod, "metadata", "deletionTimestamp")));
    }
    return n;
}

int life_n_ready(const char *ns, const char *owner)
{
    return count(ns, owner, true);
}

int life_n_pods(const char *ns, const char *owner)
{
    return count(ns, owner, false);
}

bool life_ends(const char *uid)
{
    g_autoptr(GPtrArray) paths = pods();

    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        if (g_strcmp0(api_text(pod, "metadata", "uid"), uid) == 0)
            return api_at(pod, "metadata", "deletionTimestamp") != NULL;
    }
    return true;
}

/* --- what must hold ------------------------------------------------------------------------------- */

static int units_of(cJSON *pod)
{
    cJSON *box = cJSON_GetArrayItem(api_at(pod, "spec", "containers"), 0);
    cJSON *limits = api_at(box, "resources", "limits");
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(limits, MEM));

    return text ? atoi(text) : 0;
}

/* No card has more than it is. */
static void check_cards(void)
{
    g_autoptr(GPtrArray) paths = pods(), nodes = api_paths("/api/v1/nodes/");

    for (guint n = 0; n < nodes->len; n++) {
        cJSON *capacity = api_at(api_get(nodes->pdata[n]), "status", "capacity");
        const char *all = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(capacity, MEM));
        const char *cards = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(capacity, "aliyun.com/gpu-count"));
        int used[CARDS] = {0};
        for (guint i = 0; all && cards && i < paths->len; i++) {
            cJSON *pod = api_get(paths->pdata[i]);
            const char *card = api_annotation(paths->pdata[i], IDX);
            const char *node = api_text(pod, "spec", "nodeName");
            if (node && card &&
                g_str_equal(node, (char *)nodes->pdata[n] + strlen("/api/v1/nodes/")))
                used[atoi(card)] += units_of(pod);
        }
        for (int i = 0; all && cards && i < CARDS; i++)
            HOLDS(used[i] <= atoi(all) / atoi(cards), "card %d of %s has %d", i,
                  (char *)nodes->pdata[n], used[i]);
    }
}

/* --- a kube-scheduler ----------------------------------------------------------------------------- */

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
    check_cards();
    g_free(call->body);
    g_free(call);
}

/* Whoever passes is asked for in the order of names. */
static void schedule(const char *path)
{
    struct replica *replica = replica_serving();
    g_autoptr(GPtrArray) nodes = api_paths("/api/v1/nodes/");
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    cJSON *pod = api_get(path);
    const char *comma = "";

    if (!replica)
        return;
    char *text = cJSON_PrintUnformatted(pod);
    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", text);
    free(text);
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
    const char *node = cJSON_GetStringValue(
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "NodeNames"), 0));
    if (node) {
        struct call *call = g_new(struct call, 1);
        *call = (struct call){
            replica, g_strdup_printf(
                         "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"%s\","
                         "\"Node\":\"%s\"}",
                         api_text(pod, "metadata", "name"), api_text(pod, "metadata", "namespace"),
                         api_text(pod, "metadata", "uid"), node)};
        sim_spawn(send_bind, call);
    }
    cJSON_Delete(tree);
}

/* --- kubelets and controllers --------------------------------------------------------------------- */

static void run_pod(const char *path)
{
    cJSON *pod = api_get(path), *status = cJSON_GetObjectItemCaseSensitive(pod, "status");
    cJSON *ready = cJSON_CreateObject(), *conditions;

    cJSON_ReplaceItemInObjectCaseSensitive(status, "phase", cJSON_CreateString("Running"));
    cJSON_AddStringToObject(status, "startTime", "2026-01-02T03:04:05Z");
    conditions = cJSON_AddArrayToObject(status, "conditions");
    cJSON_AddStringToObject(ready, "type", "Ready");
    cJSON_AddStringToObject(ready, "status", "True");
    cJSON_AddItemToArray(conditions, ready);
    if (api_annotation(path, ASSIGNED))
        api_annotate(path, ASSIGNED, "true");
    else
        api_touch(path);
}

static void end_pod(const char *path)
{
    cJSON *pod = api_get(path);
    g_autofree char *owner = g_strdup(api_owner(pod));
    g_autofree char *ns = g_strdup(api_text(pod, "metadata", "namespace"));
    g_autofree char *name = owner ? g_strdup_printf("%s-again-%u", owner, ++n_made) : NULL;
    cJSON *next = owner ? cJSON_Duplicate(pod, true) : NULL;

    api_remove(path);
    if (!owner)
        return;
    /* The template's words stay, and no others. */
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(next, "metadata");
    cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
    static const char *const gone[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                       "resourceVersion"};
    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(meta, gone[i]);
    for (cJSON *item = annotations->child, *after; item; item = after) {
        after = item->next;
        if (g_str_has_prefix(item->string, "ALIYUN_") ||
            g_str_has_prefix(item->string, "gpuledger.io/"))
            cJSON_DeleteItemFromObjectCaseSensitive(annotations, item->string);
    }
    cJSON_ReplaceItemInObjectCaseSensitive(meta, "name", cJSON_CreateString(name));
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(next, "spec"),
                                            "nodeName");
    cJSON_ReplaceItemInObjectCaseSensitive(next, "status", cJSON_Parse("{\"phase\":\"Pending\"}"));
    g_autofree char *at = api_pod_path(ns, name);
    char *text = cJSON_PrintUnformatted(next);
    api_put(at, "%s", text);
    free(text);
    cJSON_Delete(next);
}

static void live_pod(const char *path)
{
    cJSON *pod = api_get(path);
    g_autofree char *uid = g_strdup(api_text(pod, "metadata", "uid"));

    if (api_at(pod, "metadata", "deletionTimestamp")) {
        if (is_due("ends", uid, chance_between(1, 4) * S))
            end_pod(path);
    } else if (!api_at(pod, "spec", "nodeName")) {
        const bool is_old = is_due("is old", uid, OLD_US);
        if (!is_due("waits", uid, chance_between(0, 1500) * (is_old ? 20 : 1) * MS))
            return;
        forget("waits", uid);
        schedule(path);
    } else if (!api_at(pod, "status", "conditions") && is_due("runs", uid, S)) {
        run_pod(path);
    }
}

static void live(void *data)
{
    int64_t seen = 0, calm_us = 0;

    for (;;) {
        g_autoptr(GPtrArray) paths = pods();
        for (guint i = 0; i < paths->len; i++) {
            if (api_get(paths->pdata[i]))
                live_pod(paths->pdata[i]);
        }
        if (scenario->live)
            scenario->live();
        net_tell();
        calm_us = server.version == seen ? calm_us : sim_now_us() + 5 * S;
        seen = server.version;
        sim_sleep(sim_now_us() < calm_us ? 200 * MS : 2 * S);
    }
}

void life_begin(void)
{
    sim_spawn(live, NULL);
}
