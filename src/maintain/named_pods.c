/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/named_pods.h"

#include "core/fail.h"
#include "core/ledger.h"
#include "store/node_walk.h"

static bool holds(const struct node *node, const char *title)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *holder = node->allocations->pdata[i];
        g_autofree char *own = g_strdup_printf("%s/%s", holder->ns, holder->name);
        if (g_str_equal(title, own))
            return true;
    }
    return false;
}

bool named_pods_has(const char *const *names, const char *ns, const char *name)
{
    g_autofree char *title = g_strdup_printf("%s/%s", ns, name);

    return !names || g_strv_contains(names, title);
}

/* Those that are found on the node are looked for no more. */
static void strike_out(const struct node *node, void *data)
{
    GPtrArray *sought = data;

    for (guint i = sought->len; i-- > 0;) {
        if (holds(node, sought->pdata[i]))
            g_ptr_array_remove_index(sought, i);
    }
}

struct uids {
    const char *const *names;
    GHashTable *set;
};

static void collect(const struct node *node, void *data)
{
    const struct uids *uids = data;

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *holder = node->allocations->pdata[i];
        if (named_pods_has(uids->names, holder->ns, holder->name))
            g_hash_table_add(uids->set, g_strdup(holder->uid));
    }
}

GHashTable *named_pods_uids(struct store *store, const char *const *names)
{
    struct uids uids = {names, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};

    node_walk_all(store, collect, &uids);
    return uids.set;
}

bool named_pods_check(struct store *store, const char *const *names, GError **error)
{
    g_autoptr(GPtrArray) sought = g_ptr_array_new();

    for (; names && *names; names++)
        g_ptr_array_add(sought, (gpointer)*names);
    if (sought->len == 0)
        return true;
    node_walk_all(store, strike_out, sought);
    return sought->len == 0 ||
           fail_with(
               error, GPULEDGER_ERROR_NOT_FOUND,
               "the pods that may be moved: '%s' is no NAMESPACE/NAME of a pod that holds a GPU",
               (const char *)sought->pdata[0]);
}
