/* SPDX-License-Identifier: Apache-2.0 */
#include "pods.h"

#include "../prop/chance.h"

#include <stdlib.h>
#include <string.h>

#define NS_PATH "/api/v1/namespaces/"

void pods_put_node(const char *name, int cards)
{
    g_autofree char *path = g_strconcat("/api/v1/nodes/", name, NULL);
    g_autofree char *amounts = g_strdup_printf(
        "{\"" MEM "\":\"%d\",\"aliyun.com/gpu-count\":\"%d\"}", cards * UNITS, cards);

    api_put(path,
            "{\"metadata\":{\"name\":\"%s\",\"annotations\":{},\"labels\":{}},\"spec\":{},"
            "\"status\":{\"capacity\":%s,\"allocatable\":%s}}",
            name, amounts, amounts);
}

static char *now_text(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_from_unix_utc(g_get_real_time() / 1000000);

    return g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
}

static char *owners_of(const struct pod_wish *wish)
{
    return wish->owner ? g_strdup_printf(
                             ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\","
                             "\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]",
                             wish->kind ? wish->kind : "ReplicaSet", wish->owner, wish->owner)
                       : g_strdup("");
}

void pods_put(const struct pod_wish *wish)
{
    g_autofree char *path = api_pod_path(wish->ns, wish->name), *owners = owners_of(wish);
    g_autofree char *now = now_text(), *placed = NULL, *where = NULL, *status = NULL;

    if (wish->node) {
        placed = g_strdup_printf(",\"" IDX "\":\"%d\",\"ALIYUN_COM_GPU_MEM_POD\":\"%d\",\"" ASSIGNED
                                 "\":\"true\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\"",
                                 wish->card, wish->units);
        where = g_strdup_printf("\"nodeName\":\"%s\",", wish->node);
        status = g_strdup_printf(",\"startTime\":\"%s\",\"conditions\":[{\"type\":\"Ready\","
                                 "\"status\":\"True\"}]",
                                 now);
    }
    api_put(path,
            "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"labels\":{\"app\":\"%s\"}%s,"
            "\"annotations\":{\"x\":\"y\"%s%s}},"
            "\"spec\":{%s%s\"priority\":%d,\"containers\":[{\"name\":\"main\",\"resources\":"
            "{\"limits\":{\"" MEM "\":\"%d\"},\"requests\":{\"" MEM "\":\"%d\"}}}]},"
            "\"status\":{\"phase\":\"%s\"%s}}",
            wish->ns, wish->name, wish->owner ? wish->owner : "none", owners, placed ? placed : "",
            wish->words ? wish->words : "", where ? where : "", wish->spec ? wish->spec : "",
            wish->priority, wish->units, wish->units, wish->node ? "Running" : "Pending",
            status ? status : "");
}

GPtrArray *pods_paths(void)
{
    GPtrArray *paths = api_paths(NS_PATH);

    for (guint i = paths->len; i-- > 0;) {
        if (!strstr(paths->pdata[i], "/pods/"))
            g_ptr_array_remove_index(paths, i);
    }
    return paths;
}

char *pods_path_of(const char *uid)
{
    g_autoptr(GPtrArray) paths = pods_paths();

    for (guint i = 0; i < paths->len; i++) {
        if (g_strcmp0(api_text(api_get(paths->pdata[i]), "metadata", "uid"), uid) == 0)
            return g_strdup(paths->pdata[i]);
    }
    return NULL;
}

char *pods_draw(const char *ns)
{
    g_autoptr(GPtrArray) paths = pods_paths();
    g_autofree char *prefix = ns ? g_strconcat(NS_PATH, ns, "/", NULL) : g_strdup("");

    for (guint i = paths->len; i-- > 0;) {
        if (!g_str_has_prefix(paths->pdata[i], prefix))
            g_ptr_array_remove_index(paths, i);
    }
    return paths->len > 0 ? g_strdup(paths->pdata[chance_below(paths->len)]) : NULL;
}

/* --- one pod -------------------------------------------------------------------------------------- */

const char *pod_node(cJSON *pod)
{
    return api_text(pod, "spec", "nodeName");
}

const char *pod_word(cJSON *pod, const char *key)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(api_at(pod, "metadata", "annotations"), key));
}

const char *pod_owner_kind(cJSON *pod)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetArrayItem(api_at(pod, "metadata", "ownerReferences"), 0), "kind"));
}

int pod_units(cJSON *pod)
{
    cJSON *box = cJSON_GetArrayItem(api_at(pod, "spec", "containers"), 0);
    const char *text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(api_at(box, "resources", "limits"), MEM));

    return text ? atoi(text) : 0;
}

int pod_card(cJSON *pod)
{
    const char *text = pod_word(pod, IDX);

    return pod_node(pod) && text ? atoi(text) : -1;
}

int pod_priority(cJSON *pod)
{
    const cJSON *number = api_at(pod, "spec", "priority");

    return number ? number->valueint : 0;
}

bool pod_ends(cJSON *pod)
{
    return api_at(pod, "metadata", "deletionTimestamp") != NULL;
}

bool pod_asks(cJSON *pod)
{
    return cJSON_GetArraySize(api_at(pod, "spec", "schedulingGates")) == 0 &&
           !api_at(pod, "spec", "schedulerName");
}

bool pod_is_mirror(cJSON *pod)
{
    return pod_word(pod, "kubernetes.io/config.mirror") != NULL;
}

int64_t pod_started_us(cJSON *pod)
{
    const char *text = api_text(pod, "status", "startTime");
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return time ? g_date_time_to_unix(time) * 1000000 : 0;
}

int pods_used(const char *node, int card)
{
    g_autoptr(GPtrArray) paths = pods_paths();
    int used = 0;

    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        if (g_strcmp0(pod_node(pod), node) == 0 && pod_card(pod) == card)
            used += pod_units(pod);
    }
    return used;
}
