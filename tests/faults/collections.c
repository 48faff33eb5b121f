/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server does with every kind of object: lists in pages, which are of one moment, and a log
 * that watches are served from.
 */
#include "server.h"

#include "sim.h"

#include "../prop/chance.h"

#include <stdlib.h>
#include <string.h>

struct server server;

static void change_free(gpointer data)
{
    struct change *change = data;
    g_free(change->object);
    g_free(change);
}

struct snapshot {
    int64_t version;
    GPtrArray *objects; /* texts */
};

static void snapshot_free(gpointer data)
{
    struct snapshot *snapshot = data;
    g_ptr_array_unref(snapshot->objects);
    g_free(snapshot);
}

void server_start(void)
{
    server.version = 1000;
    server.token_before = -1;
    server.snapshots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, snapshot_free);
    for (int resource = 0; resource < RESOURCES; resource++)
        server.log[resource] = g_ptr_array_new_with_free_func(change_free);
}

void server_end(void)
{
    for (int resource = 0; resource < RESOURCES; resource++)
        g_clear_pointer(&server.log[resource], g_ptr_array_unref);
    g_clear_pointer(&server.snapshots, g_hash_table_unref);
    memset(&server, 0, sizeof server);
}

/* --- the log -------------------------------------------------------------------------------- */

void server_note(enum resource resource, const char *type, char *take_object)
{
    struct change *change = g_new(struct change, 1);

    *change = (struct change){server.version, type, take_object};
    g_ptr_array_add(server.log[resource], change);
}

const struct change *server_change(enum resource resource, uint64_t cursor, bool *ret_gone)
{
    GPtrArray *log = server.log[resource];

    *ret_gone = cursor < server.cut[resource];
    if (*ret_gone || cursor - server.cut[resource] >= log->len)
        return NULL;
    return g_ptr_array_index(log, cursor - server.cut[resource]);
}

void server_compact(void)
{
    for (int resource = 0; resource < RESOURCES; resource++) {
        GPtrArray *log = server.log[resource];
        guint n = log->len > 0 ? chance_below(log->len + 1) : 0;
        if (n == 0)
            continue;
        server.cut_version[resource] = ((struct change *)g_ptr_array_index(log, n - 1))->version;
        server.cut[resource] += n;
        g_ptr_array_remove_range(log, 0, n);
    }
    g_hash_table_remove_all(server.snapshots);
}

/* --- requests ------------------------------------------------------------------------------- */

void server_refuse(struct server_reply *reply, long status, const char *reason, const char *message)
{
    reply->status = status;
    g_string_printf(reply->body,
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
                    "\"%s\",\"reason\":\"%s\",\"code\":%ld}",
                    message, reason, status);
}

static char *query(const char *url, const char *name)
{
    const char *question = strchr(url, '?');
    g_auto(GStrv) pairs = g_strsplit(question ? question + 1 : "", "&", -1);

    for (char **pair = pairs; *pair; pair++) {
        size_t length = strlen(name);
        if (strncmp(*pair, name, length) == 0 && (*pair)[length] == '=')
            return g_uri_unescape_string(*pair + length + 1, NULL);
    }
    return NULL;
}

static void list(const struct server_request *request, struct server_reply *reply)
{
    g_autofree char *limit_text = query(request->url, "limit");
    g_autofree char *token = query(request->url, "continue");
    g_autofree char *selector = query(request->url, "fieldSelector");
    g_auto(GStrv) parts = g_strsplit(token ? token : "", "_", 2);
    guint from = token ? (guint)atoi(parts[1]) : 0;
    guint limit = limit_text ? (guint)atoi(limit_text) : G_MAXUINT;
    struct snapshot *snapshot = token ? g_hash_table_lookup(server.snapshots, parts[0]) : NULL;
    g_autofree char *id = token ? g_strdup(parts[0]) : g_strdup_printf("s%u", server.tokens_given++);

    if (token && !snapshot) {
        server_refuse(reply, 410, "Expired", "The provided continue parameter is too old");
        return;
    }
    if (!snapshot) {
        snapshot = g_new(struct snapshot, 1);
        *snapshot = (struct snapshot){server.version, server_objects(reply->resource, selector)};
        g_hash_table_insert(server.snapshots, g_strdup(id), snapshot);
    }
    guint to = limit < snapshot->objects->len - from ? from + limit : snapshot->objects->len;
    reply->status = 200;
    g_string_printf(reply->body,
                    "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%"
                    G_GINT64_FORMAT "\"",
                    snapshot->version);
    if (to < snapshot->objects->len)
        g_string_append_printf(reply->body, ",\"continue\":\"%s_%u\"", id, to);
    g_string_append(reply->body, "},\"items\":[");
    for (guint i = from; i < to; i++)
        g_string_append_printf(reply->body, "%s%s", i > from ? "," : "",
                               (char *)g_ptr_array_index(snapshot->objects, i));
    g_string_append(reply->body, "]}");
    if (to == snapshot->objects->len) {
        reply->list_version = snapshot->version;
        g_hash_table_remove(server.snapshots, id);
    }
}

static void watch(const struct server_request *request, struct server_reply *reply)
{
    g_autofree char *version_text = query(request->url, "resourceVersion");
    GPtrArray *log = server.log[reply->resource];

    HOLDS(version_text, "a watch from nowhere: %s", request->url);
    int64_t version = g_ascii_strtoll(version_text, NULL, 10);
    if (version < server.cut_version[reply->resource]) {
        server_refuse(reply, 410, "Expired", "too old resource version");
        return;
    }
    reply->watch = true;
    reply->status = 200;
    guint i = log->len;
    while (i > 0 && ((struct change *)g_ptr_array_index(log, i - 1))->version > version)
        i--;
    reply->cursor = server.cut[reply->resource] + i;
}

static bool is_collection(const char *url, enum resource *ret_resource)
{
    static const char *const paths[RESOURCES] = {
        [NODE] = "/api/v1/nodes",
        [POD] = "/api/v1/pods",
        [CONFIGMAP] = "/api/v1/namespaces/kube-system/configmaps",
    };

    for (int i = 0; i < RESOURCES; i++) {
        size_t length = strlen(paths[i]);
        if (strncmp(url, paths[i], length) == 0 && (url[length] == '?' || !url[length])) {
            *ret_resource = (enum resource)i;
            return true;
        }
    }
    return false;
}

bool server_collection(const struct server_request *request, struct server_reply *reply)
{
    if (!is_collection(request->url, &reply->resource))
        return false;
    if (strstr(request->url, "watch=1"))
        watch(request, reply);
    else
        list(request, reply);
    return true;
}
