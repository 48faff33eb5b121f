/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys are counted, when quotas name more than ELASTIC_KEYS_MAX: those that namespaces name first, one of
 * each namespace before the second of any. So a namespace that names many loses its own.
 */
#include "quota/elastic/elastic_state.h"

#include <string.h>

/* A key that is named. */
struct wish {
    const char *key; /* interned */
    guint rank;      /* among those of the namespace where it comes first */
    guint spaces;    /* how many name it */
};

static bool adds_up(const char *key)
{
    return g_str_equal(key, KEY_GPUS) || g_str_equal(key, KEY_MEMORY);
}

/* In a namespace: those that add up over dialects, then by name. */
static gint compare_keys(gconstpointer a, gconstpointer b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const int order = adds_up(right) - adds_up(left);

    return order ? order : strcmp(left, right);
}

static gint compare_wishes(gconstpointer a, gconstpointer b)
{
    const struct wish *left = *(struct wish *const *)a, *right = *(struct wish *const *)b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->spaces != right->spaces)
        return left->spaces > right->spaces ? -1 : 1;
    return strcmp(left->key, right->key);
}

static void free_set(gpointer set)
{
    g_hash_table_unref(set);
}

/* By namespace, a set of the keys of all its quotas. */
static GHashTable *list_keys(const struct elastic_quotas *quotas)
{
    GHashTable *spaces = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_set);

    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = quotas->all->pdata[i];
        GHashTable *keys = g_hash_table_lookup(spaces, quota->ns);
        if (!keys) {
            keys = g_hash_table_new(NULL, NULL);
            g_hash_table_insert(spaces, quota->ns, keys);
        }
        for (guint j = 0; j < quota->limits->len; j++)
            g_hash_table_add(keys, (gpointer)g_array_index(quota->limits, struct limit, j).key);
    }
    return spaces;
}

/* All keys of a namespace that is named come first. */
static void add_wishes(GHashTable *wishes, GHashTable *set, bool named)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    GHashTableIter iter;
    gpointer named_key;

    g_hash_table_iter_init(&iter, set);
    while (g_hash_table_iter_next(&iter, &named_key, NULL))
        g_ptr_array_add(keys, named_key);
    g_ptr_array_sort(keys, compare_keys);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];
        struct wish *wish = g_hash_table_lookup(wishes, key);
        if (!wish) {
            wish = g_new0(struct wish, 1);
            *wish = (struct wish){.key = key, .rank = G_MAXUINT};
            g_hash_table_insert(wishes, (gpointer)key, wish);
        }
        wish->rank = MIN(wish->rank, named ? 0 : i);
        wish->spaces++;
    }
}

static gboolean is_same(gconstpointer key, gconstpointer other)
{
    return key == other;
}

/* If there is room for all of them. */
static void keep_former(GPtrArray *keys, const GPtrArray *former)
{
    const guint chosen = keys->len;

    for (guint i = 0; i < former->len; i++) {
        if (!g_ptr_array_find_with_equal_func(keys, former->pdata[i], is_same, NULL))
            g_ptr_array_add(keys, former->pdata[i]);
    }
    if (keys->len > ELASTIC_KEYS_MAX)
        g_ptr_array_set_size(keys, (gint)chosen);
}

GPtrArray *keys_choose(const struct elastic_quotas *quotas)
{
    g_autoptr(GHashTable) spaces = list_keys(quotas);
    g_autoptr(GHashTable) wishes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GPtrArray *chosen = g_ptr_array_new();
    GHashTableIter iter;
    gpointer ns, set, wish;

    g_hash_table_iter_init(&iter, spaces);
    while (g_hash_table_iter_next(&iter, &ns, &set))
        add_wishes(wishes, set, g_hash_table_contains(quotas->trusted, ns));
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    g_hash_table_iter_init(&iter, wishes);
    while (g_hash_table_iter_next(&iter, NULL, &wish))
        g_ptr_array_add(order, wish);
    g_ptr_array_sort(order, compare_wishes);
    for (guint i = 0; i < MIN(order->len, ELASTIC_KEYS_MAX); i++)
        g_ptr_array_add(chosen, (gpointer)((const struct wish *)order->pdata[i])->key);
    keep_former(chosen, quotas->keys);
    g_ptr_array_sort(chosen, compare_keys);
    return chosen;
}

/* The pod asks by that word, in one of its readings. */
static bool concerns(const char *key, const struct request *request)
{
    for (; request; request = request->alternative) {
        if (adds_up(key))
            return true;
        for (uint32_t i = 0; i < request->n_asks; i++) {
            if (request->asks[i].device ? g_str_equal(request->asks[i].device, key)
                                        : request->dialect && dialect_reads(request->dialect, key))
                return true;
        }
    }
    return false;
}

bool unkept_concerns(const struct elastic_account *account, const struct request *request)
{
    for (guint i = 0; i < account->unkept->len; i++) {
        if (concerns(account->unkept->pdata[i], request))
            return true;
    }
    return false;
}
