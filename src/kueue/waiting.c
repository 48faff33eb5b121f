/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/waiting.h"

struct entry {
    struct waiting_workload workload;
    uint64_t list; /* the last in which it was named */
    guint rank;    /* among the due ones of its namespace */
};

struct waiting {
    GHashTable *by_uid; /* char * -> struct entry * */
    GHashTable *by_ns;  /* char * -> guint, how many */
    GHashTable *missed; /* char *, namespaces of which something was left out */
    uint64_t list;
};

static void clear_workload(struct waiting_workload *workload)
{
    g_free(workload->uid);
    g_free(workload->ns);
    g_free(workload->name);
}

static void entry_free(gpointer data)
{
    struct entry *entry = data;

    clear_workload(&entry->workload);
    g_free(entry);
}

static void workload_free(gpointer data)
{
    clear_workload(data);
    g_free(data);
}

struct waiting *waiting_new(void)
{
    struct waiting *waiting = g_new0(struct waiting, 1);

    waiting->by_uid = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    waiting->by_ns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    waiting->missed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return waiting;
}

void waiting_free(struct waiting *waiting)
{
    if (!waiting)
        return;
    g_hash_table_unref(waiting->by_uid);
    g_hash_table_unref(waiting->by_ns);
    g_hash_table_unref(waiting->missed);
    g_free(waiting);
}

static guint count(const struct waiting *waiting)
{
    return g_hash_table_size(waiting->by_uid);
}

static guint of_namespace(const struct waiting *waiting, const char *ns)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(waiting->by_ns, ns));
}

static void count_namespace(struct waiting *waiting, const char *ns, guint n)
{
    if (n > 0)
        g_hash_table_insert(waiting->by_ns, g_strdup(ns), GUINT_TO_POINTER(n));
    else
        g_hash_table_remove(waiting->by_ns, ns);
}

bool waiting_put(struct waiting *waiting, const struct waiting_workload *workload)
{
    struct entry *entry = g_hash_table_lookup(waiting->by_uid, workload->uid);

    if (entry) {
        entry->list = waiting->list;
        entry->workload.what = workload->what;
        entry->workload.since_s = workload->since_s;
        return true;
    }
    const guint n = of_namespace(waiting, workload->ns);
    if (n >= WAITING_PER_NAMESPACE || count(waiting) >= WAITING_MAX) {
        g_hash_table_add(waiting->missed, g_strdup(workload->ns));
        return false;
    }
    entry = g_new0(struct entry, 1);
    entry->workload = *workload;
    entry->workload.uid = g_strdup(workload->uid);
    entry->workload.ns = g_strdup(workload->ns);
    entry->workload.name = g_strdup(workload->name);
    entry->list = waiting->list;
    g_hash_table_insert(waiting->by_uid, entry->workload.uid, entry);
    count_namespace(waiting, workload->ns, n + 1);
    return true;
}

void waiting_remove(struct waiting *waiting, const char *uid)
{
    const struct entry *entry = g_hash_table_lookup(waiting->by_uid, uid);

    if (!entry)
        return;
    count_namespace(waiting, entry->workload.ns, of_namespace(waiting, entry->workload.ns) - 1);
    g_hash_table_remove(waiting->by_uid, uid);
}

void waiting_pause(struct waiting *waiting, const char *uid, int64_t not_before_ms)
{
    struct entry *entry = g_hash_table_lookup(waiting->by_uid, uid);

    if (entry)
        entry->workload.not_before_ms = not_before_ms;
}

/* Half of the room must be free again, or whoever always makes more would be listed without end. */
static gboolean has_room(gpointer ns, gpointer value, gpointer data)
{
    const struct waiting *waiting = data;

    return of_namespace(waiting, ns) <= WAITING_PER_NAMESPACE / 2;
}

bool waiting_missed(struct waiting *waiting)
{
    return count(waiting) <= WAITING_MAX / 2 &&
           g_hash_table_foreach_remove(waiting->missed, has_room, waiting) > 0;
}

void waiting_begin(struct waiting *waiting)
{
    waiting->list++;
}

void waiting_end(struct waiting *waiting)
{
    g_autoptr(GPtrArray) gone = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, waiting->by_uid);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct entry *entry = data;
        if (entry->list != waiting->list)
            g_ptr_array_add(gone, g_strdup(entry->workload.uid));
    }
    for (guint i = 0; i < gone->len; i++)
        waiting_remove(waiting, gone->pdata[i]);
}

/* --- order ---------------------------------------------------------------------------------- */

static gint compare_age(const struct entry *one, const struct entry *other)
{
    if (one->workload.what != other->workload.what)
        return one->workload.what == WAITING_MEMORY ? -1 : 1;
    if (one->workload.since_s != other->workload.since_s)
        return one->workload.since_s < other->workload.since_s ? -1 : 1;
    return g_strcmp0(one->workload.uid, other->workload.uid);
}

static gint compare_namespaces(gconstpointer a, gconstpointer b)
{
    const struct entry *one = *(const struct entry *const *)a;
    const struct entry *other = *(const struct entry *const *)b;
    const int order = g_strcmp0(one->workload.ns, other->workload.ns);

    return order ? order : compare_age(one, other);
}

static gint compare_turns(gconstpointer a, gconstpointer b)
{
    const struct entry *one = *(const struct entry *const *)a;
    const struct entry *other = *(const struct entry *const *)b;

    if (one->workload.what != other->workload.what || one->rank == other->rank)
        return compare_age(one, other);
    return one->rank < other->rank ? -1 : 1;
}

/* The due ones in the order in which they are handed out. */
static GPtrArray *take_turns(const struct waiting *waiting, int64_t now_ms, int64_t *ret_next_ms)
{
    GPtrArray *due = g_ptr_array_new();
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, waiting->by_uid);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        const struct entry *entry = data;
        if (entry->workload.not_before_ms <= now_ms)
            g_ptr_array_add(due, data);
        else
            *ret_next_ms = MIN(*ret_next_ms, entry->workload.not_before_ms);
    }
    g_ptr_array_sort(due, compare_namespaces);
    for (guint i = 0; i < due->len; i++) {
        struct entry *entry = due->pdata[i];
        const struct entry *last = i > 0 ? due->pdata[i - 1] : NULL;
        const bool same = last && g_str_equal(last->workload.ns, entry->workload.ns);
        entry->rank = same ? last->rank + 1 : 0;
    }
    g_ptr_array_sort(due, compare_turns);
    return due;
}

GPtrArray *waiting_next(const struct waiting *waiting, guint max, int64_t now_ms,
                        int64_t *ret_next_ms)
{
    GPtrArray *next = g_ptr_array_new_with_free_func(workload_free);

    *ret_next_ms = INT64_MAX;
    g_autoptr(GPtrArray) due = take_turns(waiting, now_ms, ret_next_ms);
    for (guint i = 0; i < due->len && i < max; i++) {
        const struct entry *entry = due->pdata[i];
        struct waiting_workload *copy = g_new(struct waiting_workload, 1);
        *copy = entry->workload;
        copy->uid = g_strdup(copy->uid);
        copy->ns = g_strdup(copy->ns);
        copy->name = g_strdup(copy->name);
        g_ptr_array_add(next, copy);
    }
    if (due->len > max)
        *ret_next_ms = now_ms;
    return next;
}
