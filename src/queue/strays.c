/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/strays.h"

#include "core/ledger.h"

#include <gpuledger/error.h>
#include <string.h>

struct entry {
    struct stray stray; /* strings are owned, but for the node's, which is its group's */
    struct group *node;
    GQueue *tenant; /* who is to be revoked of its namespace; NULL: it is not to be */
    GList in_node, in_tenant;
    uint32_t generation;
    int64_t not_before_ms; /* monotonic */
};

struct group {
    char *name;
    GQueue entries;
};

struct strays {
    GHashTable *entries; /* set of struct entry, by dialect and UID */
    GHashTable *nodes;   /* name, the group's own -> struct group *; none is empty */
    GHashTable
        *tenants; /* namespace -> GQueue of struct entry, who was tried last at the end; none is
                          * empty */
};

static guint hash_stray(gconstpointer data)
{
    const struct stray *stray = data;

    return g_str_hash(stray->uid) ^ g_direct_hash(stray->dialect);
}

static gboolean same_stray(gconstpointer a, gconstpointer b)
{
    const struct stray *one = a, *other = b;

    return one->dialect == other->dialect && g_str_equal(one->uid, other->uid);
}

static void free_strings(struct stray *stray)
{
    g_free((char *)stray->uid);
    g_free((char *)stray->ns);
    g_free((char *)stray->name);
}

static void free_entry(gpointer data)
{
    struct entry *entry = data;

    free_strings(&entry->stray);
    g_free(entry);
}

static void free_group(gpointer data)
{
    struct group *group = data;

    g_free(group->name);
    g_free(group);
}

static void free_queue(gpointer data)
{
    g_queue_free(data);
}

struct strays *strays_new(void)
{
    struct strays *strays = g_new0(struct strays, 1);

    strays->entries = g_hash_table_new_full(hash_stray, same_stray, free_entry, NULL);
    strays->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_group);
    strays->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return strays;
}

void strays_free(struct strays *strays)
{
    GHashTableIter iter;
    gpointer queue;

    g_hash_table_iter_init(&iter, strays->tenants);
    while (g_hash_table_iter_next(&iter, NULL, &queue)) {
        ((GQueue *)queue)->head = ((GQueue *)queue)->tail = NULL; /* links are the entries' own */
        free_queue(queue);
    }
    g_hash_table_unref(strays->tenants);
    g_hash_table_unref(strays->nodes);
    g_hash_table_unref(strays->entries);
    g_free(strays);
}

/* --- which are stray -------------------------------------------------------------------------- */

/* Its own scheduler may have written it a moment ago, and bind the pod next. It writes the time of day. */
static bool may_be_bound(const struct dialect *dialect, const struct pod_view *pod, int64_t time)
{
    return !pod_view_is_bound(pod) && !pod_view_is_terminal(pod) && time > 1 &&
           dialect->scheduler && g_strcmp0(pod->scheduler_name, dialect->scheduler) == 0;
}

bool strays_read(const struct dialect *dialect, const struct pod_view *pod, struct stray *ret_stray)
{
    struct device_promise promise;
    bool awaited;

    if (!dialect_read_promise(dialect, pod, &promise, &awaited) || awaited)
        return false;
    *ret_stray = (struct stray){
        .dialect = dialect,
        .uid = pod->uid,
        .ns = pod->ns ? pod->ns : "",
        .name = pod->name ? pod->name : "",
        .node = promise.node,
        .match_amount = promise.match_amount,
        .time = promise.time,
        .revocable = dialect->write_revoked && !may_be_bound(dialect, pod, promise.time),
    };
    return true;
}

bool strays_await(const struct pod_view *pod)
{
    struct device_promise promise;
    bool awaited = false;

    for (size_t i = 0; dialects[i] && !awaited; i++)
        awaited = dialect_read_promise(dialects[i], pod, &promise, &awaited) && awaited;
    return awaited;
}

/* --- keeping them ----------------------------------------------------------------------------- */

static bool meets(const struct promised *promised, const struct stray *stray)
{
    return promised->dialect == stray->dialect && promised->match_amount == stray->match_amount;
}

static void tell(const struct group *group, const char *node, struct ledger *ledger)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct promised));

    for (const GList *link = group ? group->entries.head : NULL; link; link = link->next) {
        const struct stray *stray = &((const struct entry *)link->data)->stray;
        const struct promised next = {stray->dialect, stray->match_amount, stray->time};
        guint i = 0;
        while (i < all->len && !meets(&g_array_index(all, struct promised, i), stray))
            i++;
        if (i == all->len)
            g_array_append_val(all, next);
        struct promised *promised = &g_array_index(all, struct promised, i);
        promised->time = MIN(promised->time, stray->time);
    }
    ledger_set_promised(ledger, node, (const struct promised *)(void *)all->data, all->len);
}

void strays_show(const struct strays *strays, struct ledger *ledger, const char *node)
{
    tell(g_hash_table_lookup(strays->nodes, node), node, ledger);
}

static struct group *find_group(struct strays *strays, const char *name)
{
    struct group *group = g_hash_table_lookup(strays->nodes, name);

    if (!group) {
        group = g_new0(struct group, 1);
        group->name = g_strdup(name);
        g_hash_table_insert(strays->nodes, group->name, group);
    }
    return group;
}

static GQueue *find_queue(struct strays *strays, const char *ns)
{
    GQueue *queue = g_hash_table_lookup(strays->tenants, ns);

    if (!queue) {
        queue = g_queue_new();
        g_hash_table_insert(strays->tenants, g_strdup(ns), queue);
    }
    return queue;
}

static bool is_same(const struct stray *one, const struct stray *other)
{
    return g_str_equal(one->node, other->node) && one->match_amount == other->match_amount &&
           one->time == other->time && one->revocable == other->revocable;
}

static void forget(struct strays *strays, struct ledger *ledger, struct entry *entry)
{
    struct group *group = entry->node;

    g_queue_unlink(&group->entries, &entry->in_node);
    if (entry->tenant)
        g_queue_unlink(entry->tenant, &entry->in_tenant);
    if (entry->tenant && g_queue_is_empty(entry->tenant)) {
        free_queue(entry->tenant);
        g_hash_table_remove(strays->tenants, entry->stray.ns);
    }
    tell(group, group->name, ledger);
    g_hash_table_remove(strays->entries, entry);
    if (g_queue_is_empty(&group->entries))
        g_hash_table_remove(strays->nodes, group->name);
}

bool strays_set(struct strays *strays, struct ledger *ledger, const struct stray *stray,
                uint32_t generation)
{
    struct entry *entry = g_hash_table_lookup(strays->entries, stray);

    if (entry && is_same(&entry->stray, stray)) {
        entry->generation = generation;
        return false;
    }
    if (entry)
        forget(strays, ledger, entry);
    entry = g_new0(struct entry, 1);
    entry->stray = *stray;
    entry->stray.uid = g_strdup(stray->uid);
    entry->stray.ns = g_strdup(stray->ns);
    entry->stray.name = g_strdup(stray->name);
    entry->generation = generation;
    entry->node = find_group(strays, stray->node);
    entry->stray.node = entry->node->name;
    entry->in_node.data = entry->in_tenant.data = entry;
    g_queue_push_tail_link(&entry->node->entries, &entry->in_node);
    if (stray->revocable) {
        entry->tenant = find_queue(strays, stray->ns);
        g_queue_push_head_link(entry->tenant, &entry->in_tenant);
    }
    g_hash_table_add(strays->entries, entry);
    tell(entry->node, entry->node->name, ledger);
    return true;
}

bool strays_drop(struct strays *strays, struct ledger *ledger, const struct dialect *dialect,
                 const char *uid)
{
    const struct stray wanted = {.dialect = dialect, .uid = uid};
    struct entry *entry = g_hash_table_lookup(strays->entries, &wanted);

    if (entry)
        forget(strays, ledger, entry);
    return entry;
}

void strays_sweep(struct strays *strays, struct ledger *ledger, uint32_t generation)
{
    g_autoptr(GList) entries = g_hash_table_get_keys(strays->entries);

    for (const GList *item = entries; item; item = item->next) {
        if (((struct entry *)item->data)->generation != generation)
            forget(strays, ledger, item->data);
    }
}

void strays_each(const struct strays *strays, const char *node,
                 bool (*visit)(const struct stray *stray, void *data), void *data)
{
    const struct group *group = g_hash_table_lookup(strays->nodes, node);

    for (const GList *link = group ? group->entries.head : NULL; link; link = link->next) {
        if (!visit(&((const struct entry *)link->data)->stray, data))
            return;
    }
}

/* --- revoking them ---------------------------------------------------------------------------- */

static void free_copy(gpointer data)
{
    struct stray *copy = data;

    free_strings(copy);
    g_free((char *)copy->node);
    g_free(copy);
}

static struct stray *copy_of(const struct stray *stray)
{
    struct stray *copy = g_memdup2(stray, sizeof *stray);

    copy->uid = g_strdup(stray->uid);
    copy->ns = g_strdup(stray->ns);
    copy->name = g_strdup(stray->name);
    copy->node = g_strdup(stray->node);
    return copy;
}

/* Who is new comes first in its namespace. */
static bool take_first(GQueue *queue, GPtrArray *due, int64_t now_ms)
{
    struct entry *entry = g_queue_peek_head(queue);

    if (entry->not_before_ms > now_ms)
        return false;
    entry->not_before_ms = now_ms + REVOKE_AGAIN_MS;
    g_queue_unlink(queue, &entry->in_tenant);
    g_queue_push_tail_link(queue, &entry->in_tenant);
    g_ptr_array_add(due, copy_of(&entry->stray));
    return true;
}

GPtrArray *strays_take_due(struct strays *strays, guint most, int64_t now_ms)
{
    GPtrArray *due = g_ptr_array_new_with_free_func(free_copy);
    GHashTableIter iter;
    gpointer queue;
    bool more = true;

    while (more && due->len < most) {
        more = false;
        g_hash_table_iter_init(&iter, strays->tenants);
        while (due->len < most && g_hash_table_iter_next(&iter, NULL, &queue))
            more |= take_first(queue, due, now_ms);
    }
    return due;
}

/* --- records ---------------------------------------------------------------------------------- */

void stray_encode(struct json_writer *writer, const struct stray *stray)
{
    g_autofree char *time = g_strdup_printf("%" G_GINT64_FORMAT, stray->time);

    json_begin_object(writer);
    json_key_string(writer, "dialect", stray->dialect->name);
    json_key_string(writer, "uid", stray->uid);
    json_key_string(writer, "namespace", stray->ns);
    json_key_string(writer, "name", stray->name);
    json_key_string(writer, "node", stray->node);
    json_key_int(writer, "amount", stray->match_amount);
    json_key_string(writer, "time", time);
    json_key_bool(writer, "revocable", stray->revocable);
    json_end_object(writer);
}

struct stray_object {
    struct stray stray;
    const char *dialect, *time;
};

static const struct json_field stray_fields[] = {
    JSON_FIELD_STRING(struct stray_object, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_STRING(struct stray_object, stray.uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct stray_object, stray.ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct stray_object, stray.name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct stray_object, stray.node, "node", JSON_REQUIRED),
    JSON_FIELD_INT64(struct stray_object, stray.match_amount, "amount", JSON_REQUIRED),
    JSON_FIELD_STRING(struct stray_object, time, "time", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct stray_object, stray.revocable, "revocable", JSON_REQUIRED),
    JSON_FIELD_END,
};

bool stray_decode(struct json_arena *arena, const cJSON *object, struct stray *ret_stray,
                  GError **error)
{
    struct stray_object fields = {0};

    if (!json_decode(arena, object, stray_fields, &fields, error))
        return false;
    fields.stray.dialect = dialect_find(fields.dialect);
    if (!fields.stray.dialect) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "dialect '%.64s' is not known",
                    fields.dialect);
        return false;
    }
    fields.stray.time = g_ascii_strtoll(fields.time, NULL, 10);
    *ret_stray = fields.stray;
    return true;
}
