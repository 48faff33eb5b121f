/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/idleness.h"

struct idleness {
    gatomicrefcount references;
    int64_t until_ms, after_ms;
    GPtrArray *pods;   /* struct idle_pod * */
    GHashTable *named; /* the same, by namespace and name */
};

static guint hash_pod(gconstpointer key)
{
    const struct idle_pod *pod = key;

    return g_str_hash(pod->ns) * 31 + g_str_hash(pod->name);
}

static gboolean equal_pods(gconstpointer a, gconstpointer b)
{
    const struct idle_pod *left = a, *right = b;

    return g_str_equal(left->name, right->name) && g_str_equal(left->ns, right->ns);
}

static void free_pod(gpointer data)
{
    struct idle_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod);
}

struct idleness *idleness_new(int64_t until_ms, int64_t after_ms)
{
    struct idleness *idleness = g_new0(struct idleness, 1);

    g_atomic_ref_count_init(&idleness->references);
    idleness->until_ms = until_ms;
    idleness->after_ms = after_ms;
    idleness->pods = g_ptr_array_new_with_free_func(free_pod);
    idleness->named = g_hash_table_new(hash_pod, equal_pods);
    return idleness;
}

struct idleness *idleness_ref(struct idleness *idleness)
{
    if (idleness)
        g_atomic_ref_count_inc(&idleness->references);
    return idleness;
}

void idleness_unref(struct idleness *idleness)
{
    if (!idleness || !g_atomic_ref_count_dec(&idleness->references))
        return;
    g_hash_table_unref(idleness->named);
    g_ptr_array_unref(idleness->pods);
    g_free(idleness);
}

bool idleness_add(struct idleness *idleness, const struct idle_pod *pod)
{
    if (g_hash_table_contains(idleness->named, pod))
        return true;
    if (idleness->pods->len >= IDLENESS_PODS_MAX)
        return false;
    struct idle_pod *own = g_new0(struct idle_pod, 1);
    *own = (struct idle_pod){g_strdup(pod->ns), g_strdup(pod->name), pod->since_ms};
    g_ptr_array_add(idleness->pods, own);
    g_hash_table_add(idleness->named, own);
    return true;
}

int64_t idleness_since(const struct idleness *idleness, const struct allocation *pod,
                       int64_t now_ns)
{
    const int64_t now_ms = now_ns / 1000000;
    const struct idle_pod key = {(char *)pod->ns, (char *)pod->name, 0};

    if (!idleness || now_ms >= idleness->until_ms || !pod->ns || !pod->name)
        return 0;
    const struct idle_pod *known = g_hash_table_lookup(idleness->named, &key);
    if (!known)
        return 0;
    const int64_t since_ms = MAX(known->since_ms, pod->created_s * 1000);
    return now_ms - since_ms >= idleness->after_ms ? MAX(since_ms, 1) : 0;
}

size_t idleness_n(const struct idleness *idleness)
{
    return idleness->pods->len;
}

const struct idle_pod *idleness_at(const struct idleness *idleness, size_t at)
{
    return idleness->pods->pdata[at];
}

int64_t idleness_until(const struct idleness *idleness)
{
    return idleness->until_ms;
}

int64_t idleness_after(const struct idleness *idleness)
{
    return idleness->after_ms;
}
