/* SPDX-License-Identifier: Apache-2.0 */
/* Kubelets and controllers: pods start, end, and are made again, a DaemonSet's and a mirror on the same node. */
#include "../faults/net.h"
#include "../faults/sim.h"
#include "../prop/chance.h"
#include "ends.h"
#include "pods.h"

#include <string.h>

#define OLD_US MINUTE /* a pod that has waited for so long is asked about less often */

static GHashTable *times; /* what and which -> int64_t *: when it is due */
static unsigned n_made;

void cast_reset(void)
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

static void run_pod(const char *path)
{
    cJSON *pod = api_get(path), *status = cJSON_GetObjectItemCaseSensitive(pod, "status");
    cJSON *ready = cJSON_CreateObject(), *conditions;
    g_autoptr(GDateTime) now = g_date_time_new_from_unix_utc(g_get_real_time() / 1000000);
    g_autofree char *text = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");

    cJSON_ReplaceItemInObjectCaseSensitive(status, "phase", cJSON_CreateString("Running"));
    cJSON_DeleteItemFromObjectCaseSensitive(status, "nominatedNodeName");
    cJSON_AddStringToObject(status, "startTime", text);
    conditions = cJSON_AddArrayToObject(status, "conditions");
    cJSON_AddStringToObject(ready, "type", "Ready");
    cJSON_AddStringToObject(ready, "status", "True");
    cJSON_AddItemToArray(conditions, ready);
    if (pod_word(pod, ASSIGNED))
        api_annotate(path, ASSIGNED, "true");
    else
        api_touch(path);
}

/* What the program and the node have written of it goes, unless it stays where it is. */
static void strip(cJSON *pod, bool stays)
{
    static const char *const gone[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                       "resourceVersion"};
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(pod, "metadata");
    cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations"), *after;

    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(meta, gone[i]);
    for (cJSON *item = annotations->child; item && !stays; item = after) {
        after = item->next;
        if (g_str_has_prefix(item->string, "ALIYUN_") ||
            g_str_has_prefix(item->string, "gpuledger.io/"))
            cJSON_DeleteItemFromObjectCaseSensitive(annotations, item->string);
    }
    if (!stays)
        cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(pod, "spec"),
                                                "nodeName");
    cJSON_ReplaceItemInObjectCaseSensitive(pod, "status", cJSON_Parse("{\"phase\":\"Pending\"}"));
}

/* Nobody makes again what has no owner, one that was made up, or whose owner was told to have one less. */
static void end_pod(const char *path)
{
    cJSON *pod = api_get(path), *next = cJSON_Duplicate(pod, true);
    const char *owner = api_owner(pod);
    const bool stays = pod_is_mirror(pod) || g_strcmp0(pod_owner_kind(pod), "DaemonSet") == 0;
    const bool again = owner && !g_str_has_prefix(owner, "fake-") && !pod_word(pod, "last");
    g_autofree char *ns = g_strdup(api_text(pod, "metadata", "namespace"));
    g_autofree char *name = again ? g_strdup_printf("%s-again-%u", owner, ++n_made) : NULL;

    api_remove(path);
    if (again) {
        strip(next, stays);
        cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(next, "metadata"),
                                               "name", cJSON_CreateString(name));
        g_autofree char *at = api_pod_path(ns, name);
        char *text = cJSON_PrintUnformatted(next);
        api_put(at, "%s", text);
        cJSON_free(text);
    }
    cJSON_Delete(next);
}

static void live_pod(const char *path)
{
    cJSON *pod = api_get(path);
    g_autofree char *uid = g_strdup(api_text(pod, "metadata", "uid"));

    if (pod_ends(pod)) {
        if (is_due("ends", uid, (pod_word(pod, "finalizer") ? 900 : chance_between(1, 4)) * S))
            end_pod(path);
    } else if (!pod_node(pod)) {
        const bool is_old = is_due("is old", uid, OLD_US);
        if (!is_due("waits", uid, chance_between(0, 1500) * (is_old ? 20 : 1) * MS))
            return;
        forget("waits", uid);
        scheduler_ask(path);
    } else if (!api_at(pod, "status", "conditions") && is_due("runs", uid, S)) {
        run_pod(path);
    }
}

static void live(void *data)
{
    int64_t seen = 0, calm_us = 0;

    for (;;) {
        g_autoptr(GPtrArray) paths = pods_paths();
        for (guint i = 0; i < paths->len; i++) {
            if (api_get(paths->pdata[i]))
                live_pod(paths->pdata[i]);
        }
        net_tell();
        calm_us = server.version == seen ? calm_us : sim_now_us() + 5 * S;
        seen = server.version;
        sim_sleep(sim_now_us() < calm_us ? 200 * MS : S);
    }
}

void cast_begin(void)
{
    sim_spawn(live, NULL);
}
