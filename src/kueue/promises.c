/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/promises.h"

struct promise {
    struct pod_sets *pods; /* a reference */
    int64_t said_s;        /* Unix time of the answer */
    int64_t until_s;
    bool admitted;
    GHashTable **come; /* for each of the sets, the UIDs (char *) of its pods that have come */
};

struct promises {
    GHashTable *by_uid; /* char * -> struct promise * */
    GHashTable *by_ns;  /* char * -> guint, how many */
};

static void promise_free(gpointer data)
{
    struct promise *promise = data;

    for (guint i = 0; i < promise->pods->sets->len; i++)
        g_hash_table_unref(promise->come[i]);
    g_free(promise->come);
    pod_sets_unref(promise->pods);
    g_free(promise);
}

struct promises *promises_new(void)
{
    struct promises *promises = g_new0(struct promises, 1);

    promises->by_uid = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, promise_free);
    promises->by_ns = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return promises;
}

void promises_free(struct promises *promises)
{
    if (!promises)
        return;
    g_hash_table_unref(promises->by_uid);
    g_hash_table_unref(promises->by_ns);
    g_free(promises);
}

static guint of_namespace(const struct promises *promises, const char *ns)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(promises->by_ns, ns));
}

bool promises_take(const struct promises *promises, const char *ns)
{
    return promises_count(promises) < PROMISES_MAX &&
           of_namespace(promises, ns) < PROMISES_PER_NAMESPACE;
}

bool promises_has(const struct promises *promises, const char *uid)
{
    return g_hash_table_contains(promises->by_uid, uid);
}

guint promises_count(const struct promises *promises)
{
    return g_hash_table_size(promises->by_uid);
}

void promises_add(struct promises *promises, struct pod_sets *pods, int64_t said_s)
{
    if (promises_has(promises, pods->uid) || pods->sets->len == 0)
        return;
    struct promise *promise = g_new0(struct promise, 1);
    promise->pods = pod_sets_ref(pods);
    promise->said_s = said_s;
    promise->until_s = said_s + PROMISE_S;
    promise->come = g_new0(GHashTable *, pods->sets->len);
    for (guint i = 0; i < pods->sets->len; i++)
        promise->come[i] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_insert(promises->by_uid, pods->uid, promise);
    g_hash_table_insert(promises->by_ns, g_strdup(pods->ns),
                        GUINT_TO_POINTER(of_namespace(promises, pods->ns) + 1));
}

void promises_admit(struct promises *promises, const char *uid, int64_t admitted_s)
{
    struct promise *promise = g_hash_table_lookup(promises->by_uid, uid);

    if (!promise || promise->admitted)
        return;
    promise->admitted = true;
    promise->until_s = MAX(promise->until_s, admitted_s + PROMISE_S);
}

void promises_forget(struct promises *promises, const char *uid)
{
    const struct promise *promise = g_hash_table_lookup(promises->by_uid, uid);

    if (!promise)
        return;
    const char *ns = promise->pods->ns;
    const guint n = of_namespace(promises, ns);
    if (n > 1)
        g_hash_table_insert(promises->by_ns, g_strdup(ns), GUINT_TO_POINTER(n - 1));
    else
        g_hash_table_remove(promises->by_ns, ns);
    g_hash_table_remove(promises->by_uid, uid);
}

void promises_forget_all(struct promises *promises)
{
    g_hash_table_remove_all(promises->by_uid);
    g_hash_table_remove_all(promises->by_ns);
}

static gint compare_promises(gconstpointer a, gconstpointer b)
{
    const struct promise *one = *(const struct promise *const *)a;
    const struct promise *other = *(const struct promise *const *)b;

    if (one->said_s != other->said_s)
        return one->said_s < other->said_s ? -1 : 1;
    return g_strcmp0(one->pods->uid, other->pods->uid);
}

/* struct promise *, the oldest first. */
static GPtrArray *list_all(const struct promises *promises)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer promise;

    g_hash_table_iter_init(&iter, promises->by_uid);
    while (g_hash_table_iter_next(&iter, NULL, &promise))
        g_ptr_array_add(list, promise);
    g_ptr_array_sort(list, compare_promises);
    return list;
}

/* Pods of the set that have not come. */
static int64_t left_of(const struct promise *promise, guint set)
{
    const int64_t count = g_array_index(promise->pods->sets, struct pod_set, set).count;

    return MAX(count - (int64_t)g_hash_table_size(promise->come[set]), 0);
}

static bool is_kept(const struct promise *promise)
{
    for (guint i = 0; i < promise->pods->sets->len; i++) {
        if (left_of(promise, i) > 0)
            return false;
    }
    return true;
}

void promises_lapse(struct promises *promises, int64_t now_s)
{
    g_autoptr(GPtrArray) list = list_all(promises);

    for (guint i = 0; i < list->len; i++) {
        struct promise *promise = list->pdata[i];
        /* The clock was set back: it is made now, and lasts for no longer. */
        promise->said_s = MIN(promise->said_s, now_s);
        promise->until_s = MIN(promise->until_s, now_s + PROMISE_S);
        if (promise->until_s <= now_s || is_kept(promise))
            promises_forget(promises, promise->pods->uid);
    }
}

/* False: it is none of this promise's pods, or all of its kind have come. */
static bool note_arrival(const struct promise *promise, const struct arrived *arrived)
{
    if (!g_str_equal(promise->pods->ns, arrived->ns) ||
        MAX(arrived->placed_s, arrived->created_s) < promise->said_s)
        return false;
    for (guint i = 0; i < promise->pods->sets->len; i++) {
        const struct pod_set *set = &g_array_index(promise->pods->sets, struct pod_set, i);
        if (!pod_set_describes(set, arrived->facts) || left_of(promise, i) == 0)
            continue;
        g_hash_table_add(promise->come[i], g_strdup(arrived->uid));
        return true;
    }
    return false;
}

static bool is_noted(const struct promise *promise, const char *uid)
{
    for (guint i = 0; i < promise->pods->sets->len; i++) {
        if (g_hash_table_contains(promise->come[i], uid))
            return true;
    }
    return false;
}

void promises_see(struct promises *promises, const struct arrived *arrived)
{
    if (of_namespace(promises, arrived->ns) == 0)
        return;
    g_autoptr(GPtrArray) list = list_all(promises);
    for (guint i = 0; i < list->len; i++) {
        if (is_noted(list->pdata[i], arrived->uid))
            return;
    }
    for (guint i = 0; i < list->len; i++) {
        if (note_arrival(list->pdata[i], arrived))
            return;
    }
}

GHashTable *promises_namespaces(const struct promises *promises)
{
    g_autoptr(GPtrArray) list = list_all(promises);
    GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (guint i = 0; i < list->len; i++) {
        const struct promise *promise = list->pdata[i];
        if (g_hash_table_contains(all, promise->pods->ns))
            continue;
        gint64 *since_s = g_new(gint64, 1);
        *since_s = promise->said_s;
        g_hash_table_insert(all, g_strdup(promise->pods->ns), since_s);
    }
    return all;
}

void owed_free(gpointer data)
{
    struct owed *owed = data;

    pod_sets_unref(owed->pods);
    g_free(owed->left);
    g_free(owed);
}

GPtrArray *promises_owed(const struct promises *promises)
{
    g_autoptr(GPtrArray) list = list_all(promises);
    GPtrArray *all = g_ptr_array_new_with_free_func(owed_free);

    for (guint i = 0; i < list->len; i++) {
        const struct promise *promise = list->pdata[i];
        struct owed *owed = g_new(struct owed, 1);
        owed->pods = pod_sets_ref(promise->pods);
        owed->left = g_new(int64_t, promise->pods->sets->len);
        for (guint j = 0; j < promise->pods->sets->len; j++)
            owed->left[j] = left_of(promise, j);
        g_ptr_array_add(all, owed);
    }
    return all;
}
