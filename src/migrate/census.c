/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate/census.h"

#include "core/fail.h"
#include "wire/kubernetes.h"

#include <string.h>

/* What is read of a pod beside what a view of it has. */
struct pod_row {
    const char *ns, *name, *node, *scheduler, *phase, *template_hash;
    struct string_pairs annotations;
    const cJSON *owners, *containers;
};
static const struct json_field pod_fields[] = {
    JSON_FIELD_STRING(struct pod_row, ns, "metadata.namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, name, "metadata.name", JSON_REQUIRED),
    JSON_FIELD_PAIRS(struct pod_row, annotations, "metadata.annotations", 0),
    JSON_FIELD_STRING(struct pod_row, template_hash, "metadata.labels.pod-template-hash", 0),
    JSON_FIELD_ARRAY(struct pod_row, owners, "metadata.ownerReferences", 0),
    JSON_FIELD_STRING(struct pod_row, node, "spec.nodeName", 0),
    JSON_FIELD_STRING(struct pod_row, scheduler, "spec.schedulerName", 0),
    JSON_FIELD_ARRAY(struct pod_row, containers, "spec.containers", 0),
    JSON_FIELD_STRING(struct pod_row, phase, "status.phase", 0),
    JSON_FIELD_END,
};

static void part_free(gpointer data)
{
    struct census_part *part = data;

    g_free(part->pod);
    g_free(part->node);
    g_free(part->owner);
    g_free(part);
}

static void pod_free(gpointer data)
{
    struct census_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->node);
    g_free(pod->group);
    g_free(pod->unread);
    request_free(pod->request);
    g_free(pod);
}

struct census *census_new(const struct peer *peer, const struct dialect_options *options)
{
    struct census *census = g_new0(struct census, 1);

    census->peer = peer;
    census->options = options;
    census->schedulers = g_ptr_array_new_with_free_func(part_free);
    census->node_sides = g_ptr_array_new_with_free_func(part_free);
    census->kube_schedulers = g_ptr_array_new_with_free_func(part_free);
    census->pods = g_ptr_array_new_with_free_func(pod_free);
    census->owners = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return census;
}

void census_free(struct census *census)
{
    g_ptr_array_unref(census->schedulers);
    g_ptr_array_unref(census->node_sides);
    g_ptr_array_unref(census->kube_schedulers);
    g_ptr_array_unref(census->pods);
    g_hash_table_unref(census->owners);
    g_free(census);
}

/* --- who made it ------------------------------------------------------------------------------ */

/* Names stand in commands that somebody copies into a shell, and the API server lets owners be called
 * anything. */
static bool is_plain(const char *name)
{
    return name && *name &&
           strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-.") == strlen(name);
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* "Deployment ml/web": the ReplicaSet between them has the template's hash behind its name. NULL: nobody
 * makes the pod again. */
static char *owner_of(const struct pod_row *row)
{
    const cJSON *owner;

    cJSON_ArrayForEach (owner, row->owners) {
        const char *kind = text_of(owner, "kind"), *name = text_of(owner, "name");
        if (!is_plain(kind) || !is_plain(name) || !is_plain(row->ns) ||
            !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")))
            continue;
        g_autofree char *tail = g_strconcat("-", row->template_hash, NULL);
        if (row->template_hash && g_str_equal(kind, "ReplicaSet") && g_str_has_suffix(name, tail))
            return g_strdup_printf("Deployment %s/%.*s", row->ns,
                                   (int)(strlen(name) - strlen(tail)), name);
        return g_str_equal(kind, "Node") ? g_strdup_printf("static pod on %s", name)
                                         : g_strdup_printf("%s %s/%s", kind, row->ns, name);
    }
    return NULL;
}

/* --- what it is ------------------------------------------------------------------------------- */

static bool has_word(const char *text, const char *const *words)
{
    for (size_t i = 0; text && i < PEER_WORDS && words[i]; i++) {
        if (strstr(text, words[i]))
            return true;
    }
    return false;
}

/* "registry/house/name:tag" -> "name:tag" */
static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

/* By the names of the pod, its containers, their images and programs. */
static bool is_called(const struct pod_row *row, const char *const *words)
{
    const cJSON *container;
    bool found = has_word(row->name, words);

    cJSON_ArrayForEach (container, row->containers) {
        const cJSON *command = cJSON_GetObjectItemCaseSensitive(container, "command");
        const char *program = cJSON_GetStringValue(cJSON_GetArrayItem(command, 0));
        found = found || has_word(text_of(container, "name"), words) ||
                has_word(last_part(text_of(container, "image")), words) ||
                has_word(last_part(program), words);
    }
    return found;
}

static void add_part(GPtrArray *parts, const struct pod_row *row)
{
    struct census_part *part = g_new0(struct census_part, 1);

    part->pod = g_strdup_printf("%s/%s", row->ns, row->name);
    part->node = g_strdup(row->node);
    part->owner = owner_of(row);
    g_ptr_array_add(parts, part);
}

static bool serves(const struct peer *peer, const struct dialect *dialect)
{
    for (size_t i = 0; i < PEER_WORDS && peer->dialects[i]; i++) {
        if (g_str_equal(peer->dialects[i], dialect->name))
            return true;
    }
    return false;
}

/* --- pods that have a GPU, or want one -------------------------------------------------------- */

static bool is_of_peer(const struct peer *peer, const struct request *request)
{
    for (; request; request = request->alternative) {
        if (serves(peer, request->dialect))
            return true;
    }
    return false;
}

/* Volcano makes a group for each pod that names none. */
static const char *group_of(const struct census *census, const struct pod_row *row)
{
    const char *key = census->peer->group_key;
    const char *group = key ? string_pairs_get(&row->annotations, key) : NULL;

    return group && !g_str_has_prefix(group, "podgroup-") ? group : NULL;
}

static bool add_pod(struct census *census, const cJSON *object, const struct pod_row *row,
                    GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) unread = NULL;
    struct pod_view view;

    if (!pod_view_decode(arena, object, &view, error))
        return false;
    g_autoptr(request) request = dialect_read_request(&view, census->options, &unread);
    if (!request && !unread)
        return true;
    if (request && !is_of_peer(census->peer, request))
        return true;
    struct census_pod *pod = g_new0(struct census_pod, 1);
    pod->ns = g_strdup(row->ns);
    pod->name = g_strdup(row->name);
    pod->node = g_strdup(row->node);
    pod->group = g_strdup(group_of(census, row));
    pod->unread = unread ? g_strdup(unread->message) : NULL;
    pod->request = g_steal_pointer(&request);
    g_ptr_array_add(census->pods, pod);
    return true;
}

static void add_named(struct census *census, const struct pod_row *row)
{
    g_autofree char *owner = owner_of(row);

    if (g_strcmp0(row->scheduler, census->peer->scheduler_name) != 0)
        return;
    census->named_placed += row->node != NULL;
    census->named_waiting += row->node == NULL;
    if (!owner)
        owner = g_strdup_printf("Pod %s/%s", row->ns, row->name);
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(census->owners, owner));
    g_hash_table_replace(census->owners, g_steal_pointer(&owner), GUINT_TO_POINTER(n + 1));
}

bool census_add(struct census *census, const cJSON *pod, GError **error)
{
    static const char *const kube_scheduler[PEER_WORDS] = {"kube-scheduler"};
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_row row = {0};

    if (!json_decode(arena, pod, pod_fields, &row, error))
        return false;
    if (!is_plain(row.ns) || !is_plain(row.name)) {
        g_autofree char *shown = g_strescape(row.name, NULL);
        return fail_with(error, GPULEDGER_ERROR_INVALID, "no API server lets a pod be called '%s'",
                         shown);
    }
    if (g_strcmp0(row.phase, "Succeeded") == 0 || g_strcmp0(row.phase, "Failed") == 0)
        return true;
    if (is_called(&row, census->peer->schedulers))
        add_part(census->schedulers, &row);
    else if (is_called(&row, census->peer->node_sides))
        add_part(census->node_sides, &row);
    else if (is_called(&row, kube_scheduler))
        add_part(census->kube_schedulers, &row);
    if (census->peer->scheduler_name)
        add_named(census, &row);
    return add_pod(census, pod, &row, error);
}
