/* SPDX-License-Identifier: Apache-2.0 */
/* Which accounts there are, which is below which, and whose pods count where. */
#include "quota/elastic/elastic_state.h"

#include <string.h>

void account_free(gpointer data)
{
    struct elastic_account *account = data;

    g_free(account->id);
    g_free(account->ns);
    g_free(account->name);
    g_ptr_array_unref(account->unkept);
    g_free(account);
}

/* While it is made. */
struct making {
    struct elastic_quotas *quotas;
    GHashTable *spaces;      /* namespace -> its account */
    GHashTable *wholes;      /* tree -> what all of it share */
    GHashTable *own_parents; /* "NAMESPACE/NAME" -> the account of that parent */
    GHashTable *parents;     /* name -> that of a named namespace; NULL: there are several */
};

static struct elastic_account *add(struct making *making, const char *ns, const struct quota *quota)
{
    struct elastic_account *account = g_new0(struct elastic_account, 1);

    account->ns = g_strdup(ns);
    account->name = quota ? g_strdup(quota->name) : NULL;
    account->id = quota ? g_strdup_printf("%s/%s", ns, quota->name) : g_strdup(ns);
    account->quota = quota;
    account->tree = g_intern_string(quota ? quota->tree : "");
    account->weighted = quota != NULL;
    account->keeps = quota && quota->keeps;
    account->unkept = g_ptr_array_new();
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++) {
        account->max[key] = INT64_MAX;
        account->weight[key] = -1;
    }
    g_ptr_array_add(making->quotas->accounts, account);
    return account;
}

static struct elastic_account *account_of(struct making *making, const struct quota *quota)
{
    struct elastic_account *account =
        quota->inside ? NULL : g_hash_table_lookup(making->spaces, quota->ns);

    if (account)
        return account;
    account = add(making, quota->ns, quota->inside ? quota : NULL);
    if (!quota->inside)
        g_hash_table_insert(making->spaces, account->ns, account);
    return account;
}

static struct elastic_account *whole_of(struct making *making, const char *tree)
{
    struct elastic_account *whole = g_hash_table_lookup(making->wholes, tree);

    if (whole)
        return whole;
    whole = add(making, "", NULL);
    whole->whole = true;
    whole->tree = tree;
    g_hash_table_insert(making->wholes, (gpointer)tree, whole);
    return whole;
}

/* -1: it is not counted. */
static int key_place(const struct elastic_quotas *quotas, const char *key)
{
    for (guint i = 0; i < quotas->keys->len; i++) {
        if (quotas->keys->pdata[i] == key) /* interned */
            return (int)i;
    }
    return -1;
}

/* Of several quotas of a namespace mins add up, and each max holds. */
static void add_limits(struct elastic_quotas *quotas, struct elastic_account *account,
                       const struct quota *quota)
{
    for (guint i = 0; i < quota->limits->len; i++) {
        const struct limit *limit = &g_array_index(quota->limits, struct limit, i);
        const int key = key_place(quotas, limit->key);
        if (key < 0) {
            g_ptr_array_add(account->unkept, (gpointer)limit->key);
            continue;
        }
        quotas->min[key] |= limit->min > 0;
        account->said[key] |= limit->min >= 0;
        account->min[key] = amount_add(account->min[key], MAX(limit->min, 0));
        if (limit->max >= 0)
            account->max[key] = MIN(account->max[key], limit->max);
        account->weight[key] = limit->weight;
    }
}

/* Who says none has one of its max, or else of its min. */
static void complete_weights(const struct elastic_quotas *quotas, struct elastic_account *account)
{
    for (guint key = 0; key < quotas->keys->len; key++) {
        const int64_t unit = elastic_unit(quotas->keys->pdata[key]);
        if (account->weight[key] < 0)
            account->weight[key] =
                account->max[key] < INT64_MAX ? account->max[key] : MAX(account->min[key], unit);
    }
}

/* --- who is below whom ---------------------------------------------------------------------------- */

/* The administrator has named its namespace (elastic_quotas_trust): it may concern other namespaces. */
static bool is_trusted(const struct elastic_quotas *quotas, const struct elastic_account *account)
{
    return g_hash_table_contains(quotas->trusted, account->ns);
}

static void list_parents(struct making *making)
{
    const GPtrArray *accounts = making->quotas->accounts;

    for (guint i = 0; i < accounts->len; i++) {
        struct elastic_account *account = accounts->pdata[i];
        if (!account->quota || !account->quota->is_parent)
            continue;
        g_hash_table_insert(making->own_parents, account->id, account);
        if (!is_trusted(making->quotas, account))
            continue;
        const bool twice = g_hash_table_contains(making->parents, account->name);
        g_hash_table_insert(making->parents, account->name, twice ? NULL : account);
    }
}

static void detach(struct elastic_account *account, enum quota_fault fault)
{
    account->fault = fault;
    account->parent = NULL;
}

/* Of its own namespace first; of others only between namespaces that are named. False: there is none. */
static bool look_up_parent(const struct making *making, const struct elastic_account *account,
                           gpointer *ret_parent)
{
    const char *name = account->quota->parent;
    g_autofree char *own = g_strdup_printf("%s/%s", account->ns, name);

    return g_hash_table_lookup_extended(making->own_parents, own, NULL, ret_parent) ||
           (is_trusted(making->quotas, account) &&
            g_hash_table_lookup_extended(making->parents, name, NULL, ret_parent));
}

static void find_parent(struct making *making, struct elastic_account *account)
{
    gpointer parent = NULL;

    if (!account->quota || !account->quota->parent)
        account->parent = whole_of(making, account->tree);
    else if (!look_up_parent(making, account, &parent))
        detach(account, QUOTA_FAULT_NO_PARENT);
    else if (!parent)
        detach(account, QUOTA_FAULT_PARENT_TWICE);
    else if (((struct elastic_account *)parent)->tree != account->tree)
        detach(account, QUOTA_FAULT_TREE);
    else
        account->parent = parent;
}

/* Whoever is on a circle is cut off; those below stay below it. */
static void break_circles(const GPtrArray *accounts)
{
    g_autoptr(GHashTable) done = g_hash_table_new(NULL, NULL);

    for (guint i = 0; i < accounts->len; i++) {
        g_autoptr(GPtrArray) path = g_ptr_array_new();
        struct elastic_account *at = accounts->pdata[i];
        guint from;
        for (; at && g_hash_table_add(done, at); at = at->parent)
            g_ptr_array_add(path, at);
        if (!at || !g_ptr_array_find(path, at, &from))
            continue;
        for (guint j = from; j < path->len; j++)
            detach(path->pdata[j], QUOTA_FAULT_CIRCLE);
    }
}

/* Those that are too deep are cut off. */
static void find_depth(struct elastic_account *account)
{
    g_autoptr(GPtrArray) path = g_ptr_array_new();
    struct elastic_account *at = account;

    for (; at && at->depth == 0 && !at->whole; at = at->parent)
        g_ptr_array_add(path, at);
    for (guint i = path->len; i-- > 0;) {
        struct elastic_account *one = path->pdata[i];
        one->depth = one->parent ? one->parent->depth + 1 : 1;
        if (one->depth > ELASTIC_DEPTH_MAX) {
            detach(one, QUOTA_FAULT_DEPTH);
            one->depth = 1;
        }
    }
}

static gint compare_accounts(gconstpointer a, gconstpointer b)
{
    const struct elastic_account *left = *(struct elastic_account *const *)a;
    const struct elastic_account *right = *(struct elastic_account *const *)b;

    if (left->depth != right->depth)
        return left->depth < right->depth ? -1 : 1;
    return strcmp(left->id, right->id);
}

static void order(GPtrArray *accounts)
{
    for (guint i = 0; i < accounts->len; i++)
        find_depth(accounts->pdata[i]);
    g_ptr_array_sort(accounts, compare_accounts);
    for (guint i = 0; i < accounts->len; i++)
        ((struct elastic_account *)accounts->pdata[i])->place = i;
}

/* A parent that does not say one has what those below it have together. */
static void add_up_mins(const struct elastic_quotas *quotas)
{
    for (guint i = quotas->accounts->len; i-- > 0;) {
        const struct elastic_account *account = quotas->accounts->pdata[i];
        struct elastic_account *parent = account->parent;
        for (guint key = 0; parent && key < quotas->keys->len; key++) {
            if (!parent->said[key])
                parent->min[key] = amount_add(parent->min[key], account->min[key]);
        }
    }
}

/* --- whose pods count where ------------------------------------------------------------------------ */

static void add_door(struct elastic_quotas *quotas, const char *ns, struct elastic_account *account)
{
    GPtrArray *doors = g_hash_table_lookup(quotas->doors, ns);

    if (!doors) {
        doors = g_ptr_array_new();
        g_hash_table_insert(quotas->doors, g_strdup(ns), doors);
    }
    if (!g_ptr_array_find(doors, account, NULL))
        g_ptr_array_add(doors, account);
}

/* The quota of the namespace that is called like it; those of the namespace; those that list it. */
static int rank(const struct elastic_account *account, const char *ns)
{
    if (!g_str_equal(account->ns, ns))
        return 2;
    return g_strcmp0(account->name, ns) == 0 ? 0 : 1;
}

static gint compare_doors(gconstpointer a, gconstpointer b, gpointer ns)
{
    const struct elastic_account *left = *(struct elastic_account *const *)a;
    const struct elastic_account *right = *(struct elastic_account *const *)b;
    const int order = rank(left, ns) - rank(right, ns);

    return order ? order : strcmp(left->id, right->id);
}

/* Quotas of a tree count for their own namespace before its others. */
static void open_own_doors(struct making *making)
{
    struct elastic_quotas *quotas = making->quotas;
    GHashTableIter iter;
    gpointer ns, value;

    for (guint i = 0; i < quotas->accounts->len; i++) {
        struct elastic_account *account = quotas->accounts->pdata[i];
        if (account->quota && !account->quota->is_parent)
            add_door(quotas, account->ns, account);
    }
    g_hash_table_iter_init(&iter, making->spaces);
    while (g_hash_table_iter_next(&iter, &ns, &value)) {
        if (g_hash_table_contains(quotas->doors, ns))
            detach(value, QUOTA_FAULT_BESIDE);
        else
            add_door(quotas, ns, value);
    }
}

static void open_listed_doors(struct elastic_quotas *quotas, struct elastic_account *account)
{
    for (char **other = account->quota->namespaces; other && *other; other++) {
        if (is_trusted(quotas, account))
            add_door(quotas, *other, account);
        else if (account->fault == QUOTA_FAULT_NONE && !g_str_equal(*other, account->ns))
            account->fault = QUOTA_FAULT_LISTS;
    }
}

static void open_doors(struct making *making)
{
    struct elastic_quotas *quotas = making->quotas;
    GHashTableIter iter;
    gpointer ns, value;

    open_own_doors(making);
    for (guint i = 0; i < quotas->accounts->len; i++) {
        struct elastic_account *account = quotas->accounts->pdata[i];
        if (account->quota && !account->quota->is_parent)
            open_listed_doors(quotas, account);
    }
    g_hash_table_iter_init(&iter, quotas->doors);
    while (g_hash_table_iter_next(&iter, &ns, &value))
        g_ptr_array_sort_with_data(value, compare_doors, ns);
}

struct elastic_account *accounts_find(const struct elastic_quotas *quotas, const char *ns,
                                      const char *choice)
{
    const GPtrArray *doors = g_hash_table_lookup(quotas->doors, ns);

    for (guint i = 0; choice && doors && i < doors->len; i++) {
        struct elastic_account *account = doors->pdata[i];
        if (g_strcmp0(account->name, choice) == 0)
            return account;
    }
    return doors ? doors->pdata[0] : NULL;
}

/* --- all of it ------------------------------------------------------------------------------------ */

void accounts_make(struct elastic_quotas *quotas)
{
    struct making making = {
        .quotas = quotas,
        .spaces = g_hash_table_new(g_str_hash, g_str_equal),
        .wholes = g_hash_table_new(NULL, NULL),
        .own_parents = g_hash_table_new(g_str_hash, g_str_equal),
        .parents = g_hash_table_new(g_str_hash, g_str_equal),
    };

    g_ptr_array_set_size(quotas->accounts, 0);
    g_hash_table_remove_all(quotas->doors);
    memset(quotas->min, 0, sizeof quotas->min);
    for (guint i = 0; i < quotas->all->len; i++)
        add_limits(quotas, account_of(&making, quotas->all->pdata[i]), quotas->all->pdata[i]);
    for (guint i = 0; i < quotas->accounts->len; i++)
        complete_weights(quotas, quotas->accounts->pdata[i]);
    list_parents(&making);
    for (guint i = 0, n = quotas->accounts->len; i < n; i++)
        find_parent(&making, quotas->accounts->pdata[i]);
    open_doors(&making);
    break_circles(quotas->accounts);
    order(quotas->accounts);
    add_up_mins(quotas);
    for (guint key = 0; key < ELASTIC_KEYS_MAX; key++)
        g_clear_pointer(&quotas->outlooks[key], g_free);
    g_hash_table_unref(making.spaces);
    g_hash_table_unref(making.wholes);
    g_hash_table_unref(making.own_parents);
    g_hash_table_unref(making.parents);
}
