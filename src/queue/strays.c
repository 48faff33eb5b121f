/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/strays.h"

#include "core/ledger.h"
#include "queue/turns/turns.h"

#include <gpuledger/error.h>
#include <string.h>

struct entry {
    struct stray stray; /* strings are owned, but for the node's, which is its group's */
    struct group *node;
    GQueue *tenant; /* who is to be revoked of its namespace; NULL: it is not to be */
    struct size *size;
    GSequenceIter *in_size, *in_cluster; /* the latter NULL: only its own node's side looks there */
    GList in_node, in_tenant, in_heard;
    uint32_t generation;
    int64_t not_before_ms; /* monotonic */
    int64_t since_ms; /* of one that is spared, when strays_take_due has found it; 0: it has not */
};

/* Those of one dialect and amount on one node; never empty. */
struct size {
    struct promised promised;
    GSequence *entries; /* by time */
};

struct group {
    char *name;
    GQueue entries;
    GPtrArray *sizes; /* struct size, by promised_compare */
};

struct strays {
    GHashTable *entries; /* set of struct entry, by dialect and UID */
    GQueue heard;        /* of the same, who was heard of last at the end */
    GQueue spared;       /* those that another scheduler may be about to bind, by in_tenant */
    GSequence *cluster;  /* those of `whole_cluster`, by time */
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

    g_ptr_array_unref(group->sizes);
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
    strays->cluster = g_sequence_new(NULL);
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
    g_sequence_free(strays->cluster);
    g_free(strays);
}

/* --- which are stray -------------------------------------------------------------------------- */

/* Its own scheduler may have written it a moment ago, and bind the pod next. It writes the time of day. */
static bool may_be_bound(const struct dialect *dialect, const struct pod_view *pod, int64_t time)
{
    return !pod_view_is_bound(pod) && !pod_view_is_terminal(pod) && time >= TURN_EARLIEST &&
           dialect->scheduler && g_strcmp0(pod->scheduler_name, dialect->scheduler) == 0;
}

bool strays_read(const struct dialect *dialect, const struct pod_view *pod, struct stray *ret_stray,
                 bool *ret_awaited)
{
    struct device_promise promise;

    if (!dialect_read_promise(dialect, pod, &promise, ret_awaited))
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

/* The first place in the list of which that size, or one after it, is. */
static guint find_place(const GPtrArray *sizes, const struct promised *promised)
{
    guint low = 0, high = sizes->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const struct size *size = sizes->pdata[middle];
        if (promised_compare(&size->promised, promised) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct size *size_at(const GPtrArray *sizes, guint at)
{
    return at < sizes->len ? sizes->pdata[at] : NULL;
}

static gint by_time(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct entry *one = a, *other = b;

    return one->stray.time < other->stray.time ? -1 : one->stray.time > other->stray.time;
}

static void free_size(gpointer data)
{
    struct size *size = data;

    g_sequence_free(size->entries);
    g_free(size);
}

static void join_size(struct group *group, struct entry *entry)
{
    const struct promised wanted = {entry->stray.dialect, entry->stray.match_amount, 0};
    const guint at = find_place(group->sizes, &wanted);
    const struct size *there = size_at(group->sizes, at);

    if (!there || promised_compare(&there->promised, &wanted) != 0) {
        struct size *size = g_new(struct size, 1);
        *size = (struct size){wanted, g_sequence_new(NULL)};
        g_ptr_array_insert(group->sizes, (gint)at, size);
    }
    entry->size = group->sizes->pdata[at];
    entry->in_size = g_sequence_insert_sorted(entry->size->entries, entry, by_time, NULL);
}

int64_t strays_least_before(const struct strays *strays, const char *ns, const char *name)
{
    GSequenceIter *at = g_sequence_get_begin_iter(strays->cluster);

    for (int i = 1; !g_sequence_iter_is_end(at); i++, at = g_sequence_iter_next(at)) {
        const struct stray *stray = &((const struct entry *)g_sequence_get(at))->stray;
        if (i > TURNS_LOOK_MAX || turns_compare(stray->ns, stray->name, ns, name) < 0)
            return stray->time;
    }
    return INT64_MAX;
}

static void leave_size(struct group *group, struct entry *entry)
{
    g_sequence_remove(entry->in_size);
    if (g_sequence_is_empty(entry->size->entries))
        g_ptr_array_remove_index(group->sizes, find_place(group->sizes, &entry->size->promised));
}

/* Tells those of one dialect, which begin at `from`; returns where the next one's do. */
static guint append_sizes(const GPtrArray *sizes, guint from, GArray *all)
{
    const struct dialect *dialect = size_at(sizes, from)->promised.dialect;
    guint to = find_place(sizes, &(struct promised){dialect, INT64_MAX, 0});

    while (size_at(sizes, to) && size_at(sizes, to)->promised.dialect == dialect)
        to++;
    if (to - from > STRAYS_SIZES_MAX) {
        const struct promised any = {dialect, 0, 0};
        g_array_append_val(all, any);
        return to;
    }
    for (guint i = from; i < to; i++) {
        const struct size *size = size_at(sizes, i);
        const struct entry *first = g_sequence_get(g_sequence_get_begin_iter(size->entries));
        const struct promised promised = {dialect, size->promised.match_amount, first->stray.time};
        g_array_append_val(all, promised);
    }
    return to;
}

static void tell(const struct group *group, const char *node, struct ledger *ledger)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct promised));

    for (guint at = 0; group && at < group->sizes->len;)
        at = append_sizes(group->sizes, at, all);
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
        group->sizes = g_ptr_array_new_with_free_func(free_size);
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

static bool is_spared(const struct entry *entry)
{
    return !entry->tenant && !entry->stray.revocable && entry->stray.dialect->write_revoked;
}

static void join_tenant(struct strays *strays, struct entry *entry)
{
    entry->tenant = find_queue(strays, entry->stray.ns);
    g_queue_push_head_link(entry->tenant, &entry->in_tenant);
}

static void forget(struct strays *strays, struct ledger *ledger, struct entry *entry)
{
    struct group *group = entry->node;

    g_queue_unlink(&group->entries, &entry->in_node);
    g_queue_unlink(&strays->heard, &entry->in_heard);
    leave_size(group, entry);
    if (entry->in_cluster)
        g_sequence_remove(entry->in_cluster);
    if (is_spared(entry))
        g_queue_unlink(&strays->spared, &entry->in_tenant);
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
        g_queue_unlink(&strays->heard, &entry->in_heard);
        g_queue_push_tail_link(&strays->heard, &entry->in_heard);
        return false;
    }
    const int64_t since_ms = entry ? entry->since_ms : 0; /* no edit makes it new */
    if (entry)
        forget(strays, ledger, entry);
    entry = g_new0(struct entry, 1);
    entry->since_ms = since_ms;
    entry->stray = *stray;
    entry->stray.uid = g_strdup(stray->uid);
    entry->stray.ns = g_strdup(stray->ns);
    entry->stray.name = g_strdup(stray->name);
    entry->generation = generation;
    entry->node = find_group(strays, stray->node);
    entry->stray.node = entry->node->name;
    entry->in_node.data = entry->in_tenant.data = entry->in_heard.data = entry;
    g_queue_push_tail_link(&entry->node->entries, &entry->in_node);
    g_queue_push_tail_link(&strays->heard, &entry->in_heard);
    join_size(entry->node, entry);
    if (stray->dialect->whole_cluster)
        entry->in_cluster = g_sequence_insert_sorted(strays->cluster, entry, by_time, NULL);
    if (stray->revocable)
        join_tenant(strays, entry);
    else if (is_spared(entry))
        g_queue_push_tail_link(&strays->spared, &entry->in_tenant);
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

void stray_free(struct stray *copy)
{
    if (!copy)
        return;
    free_strings(copy);
    g_free((char *)copy->node);
    g_free(copy);
}

static void free_copy(gpointer data)
{
    stray_free(data);
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

static struct entry *stale_entry(const struct strays *strays, uint32_t generation)
{
    const GList *link = strays->heard.head;
    struct entry *entry = link ? link->data : NULL;

    return entry && entry->generation != generation ? entry : NULL;
}

struct stray *strays_stale(const struct strays *strays, uint32_t generation)
{
    const struct entry *entry = stale_entry(strays, generation);

    return entry ? copy_of(&entry->stray) : NULL;
}

void strays_sweep(struct strays *strays, struct ledger *ledger, uint32_t generation)
{
    struct entry *entry;

    while ((entry = stale_entry(strays, generation)))
        forget(strays, ledger, entry);
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

/* No scheduler is about to bind a pod for so long. */
static void end_sparing(struct strays *strays, int64_t now_ms)
{
    GList *next;

    for (GList *link = strays->spared.head; link; link = next) {
        struct entry *entry = link->data;
        next = link->next;
        if (entry->since_ms == 0)
            entry->since_ms = now_ms;
        if (now_ms - entry->since_ms < STRAY_SPARED_MS)
            continue;
        g_queue_unlink(&strays->spared, link);
        join_tenant(strays, entry);
    }
}

GPtrArray *strays_take_due(struct strays *strays, guint most, int64_t now_ms)
{
    GPtrArray *due = g_ptr_array_new_with_free_func(free_copy);
    GHashTableIter iter;
    gpointer queue;
    bool more = true;

    end_sparing(strays, now_ms);
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
